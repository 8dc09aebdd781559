/* SPDX-License-Identifier: MIT
 *
 * The paper's own model, and BART and those that came from its code.
 */
#include "families/rows.h"

/* Keys and tensors of BART and those that came from its code. */
#define BART_KEYS                                                                                  \
    .d = "d_model", .encoder_layers = "encoder_layers", .decoder_layers = "decoder_layers",        \
    .encoder_heads = "encoder_attention_heads", .decoder_heads = "decoder_attention_heads",        \
    .encoder_ffn = "encoder_ffn_dim", .decoder_ffn = "decoder_ffn_dim",                            \
    .source_vocabulary = "vocab_size", .target_vocabulary = "decoder_vocab_size",                  \
    .max_positions = "max_position_embeddings", .activation = "activation_function"
static const model_keys bart_keys = {BART_KEYS};
static const model_keys paper_keys = {BART_KEYS, .norm_eps = "layer_norm_epsilon"};

static const model_names bart_names = {
    .prefix = "model.",
    .encoder = {.layers = "model.encoder.layers.",
                BART_LAYER,
                .positions = "model.encoder.embed_positions",
                .embedding_norm = "model.encoder.layernorm_embedding",
                .final_norm = "model.encoder.layer_norm"},
    .decoder = {.layers = "model.decoder.layers.",
                BART_LAYER,
                .cross = {"encoder_attn.q_proj", "encoder_attn.k_proj", "encoder_attn.v_proj",
                          "encoder_attn.out_proj"},
                .cross_norm = "encoder_attn_layer_norm",
                .positions = "model.decoder.embed_positions",
                .embedding_norm = "model.decoder.layernorm_embedding",
                .final_norm = "model.decoder.layer_norm"},
    .shared = "model.shared.weight",
    .source = "model.encoder.embed_tokens.weight",
    .target = "model.decoder.embed_tokens.weight",
    .head = "lm_head.weight",
    .head_bias = "final_logits_bias",
};

/* What BART and those that came from its code share. */
#define FROM_BART                                                                                  \
    .keys = &bart_keys, .names = &bart_names, .d = 1024, .encoder_layers = 12,                     \
    .decoder_layers = 12, .encoder_heads = 16, .decoder_heads = 16, .encoder_ffn = 4096,           \
    .decoder_ffn = 4096, .max_positions = 1024, .norm_eps = 1e-5, .norm_bias = 1,                  \
    .attention_bias = 1, .ffn_bias = 1, .share_embeddings = 1, .tie_logits = 1, .unk = MODEL_NO_ID

static const model_config rows[] = {
    /* "Attention Is All You Need": post-norm, ReLU, interleaved sinusoids, one embedding matrix. */
    {.family = "isobit-transformer",
     .keys = &paper_keys,
     .names = &bart_names,
     .d = 512,
     .encoder_layers = 6,
     .decoder_layers = 6,
     .encoder_heads = 8,
     .decoder_heads = 8,
     .encoder_ffn = 2048,
     .decoder_ffn = 2048,
     .max_positions = 512,
     .activation_name = "relu",
     .norm_eps = 1e-6,
     .norm_bias = 1,
     .attention_bias = 1,
     .ffn_bias = 1,
     .position = MODEL_POS_SINUSOIDS,
     .position_layout = ISOBIT_POS_INTERLEAVED,
     .scale_embedding = 1,
     .share_embeddings = 1,
     .tie_logits = 1,
     .pad = MODEL_NO_ID,
     .bos = MODEL_NO_ID,
     .start = MODEL_NO_ID,
     .unk = MODEL_NO_ID},
    /* OPUS-MT as transformers runs it; its class defaults. */
    {.family = "marian",
     FROM_BART,
     .activation_name = "gelu",
     .source_vocabulary = 58101,
     .logits_bias = MODEL_ALWAYS,
     .position = MODEL_POS_SINUSOIDS,
     .position_layout = ISOBIT_POS_HALF_D,
     .stored_positions = 1,
     .pad = 58100,
     .bos = MODEL_NO_ID,
     .start = 58100,
     .eos = {(const uint32_t[]){0}, 1},
     .forces_eos = 1},
    /* Lewis et al. 2019, arXiv 1910.13461: learned positions from row 2 on, a norm on the sum. */
    {.family = "bart",
     FROM_BART,
     .activation_name = "gelu",
     FAIRSEQ_IDS,
     .source_vocabulary = 50265,
     .embedding_norm = 1,
     .logits_bias = MODEL_IF_STORED,
     .position = MODEL_POS_LEARNED,
     .position_offset = 2,
     .start = 2,
     .forces_eos = 1},
    /* Liu et al. 2020, arXiv 2001.08210: BART with pre-norm and a norm at the end. */
    {.family = "mbart",
     FROM_BART,
     .activation_name = "gelu",
     FAIRSEQ_IDS,
     .source_vocabulary = 50265,
     .pre_norm = 1,
     .embedding_norm = 1,
     .final_norm = 1,
     .logits_bias = MODEL_IF_STORED,
     .position = MODEL_POS_LEARNED,
     .position_offset = 2,
     .start = MODEL_NO_ID,
     .forces_eos = 1},
    /* Zhang et al. 2019, arXiv 1912.08777. */
    {.family = "pegasus",
     FROM_BART,
     .activation_name = "gelu",
     .source_vocabulary = 50265,
     .pre_norm = 1,
     .final_norm = 1,
     .logits_bias = MODEL_IF_STORED,
     .position = MODEL_POS_SINUSOIDS,
     .position_layout = ISOBIT_POS_HALF_D,
     .stored_positions = 1,
     .pad = 0,
     .bos = MODEL_NO_ID,
     .start = 0,
     .eos = {(const uint32_t[]){1}, 1},
     .forces_eos = 1},
    /* M2M100 (Fan et al. 2020, arXiv 2010.11125) and NLLB-200 (arXiv 2207.04672): positions are
     * counted from pad + 1 = 2 and always computed; the forced target language is generation's. */
    {.family = "m2m_100",
     FROM_BART,
     FAIRSEQ_IDS,
     .source_vocabulary = 128112,
     .activation_name = "relu",
     .scale_embedding = 1,
     .pre_norm = 1,
     .final_norm = 1,
     .position = MODEL_POS_SINUSOIDS,
     .position_layout = ISOBIT_POS_HALF_HM1,
     .position_offset = 2,
     .start = 2},
};
const model_family_rows model_bart_rows = {rows, sizeof rows / sizeof *rows};
