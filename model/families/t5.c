/* SPDX-License-Identifier: MIT
 *
 * T5 and its kind.
 */
#include "families/rows.h"

#define T5_LAYER(ffn)                                                                              \
    .self = {"layer.0.SelfAttention.q", "layer.0.SelfAttention.k", "layer.0.SelfAttention.v",      \
             "layer.0.SelfAttention.o"},                                                           \
    .self_norm = "layer.0.layer_norm",                                                             \
    .relative = "layer.0.SelfAttention.relative_attention_bias", .fc1 = ffn ".DenseReluDense.wi",  \
    .gate = {ffn ".DenseReluDense.wi_0", ffn ".DenseReluDense.wi_1"},                              \
    .fc2 = ffn ".DenseReluDense.wo", .ffn_norm = ffn ".layer_norm"
static const model_keys t5_keys = {
    .d = "d_model",
    .encoder_layers = "num_layers",
    .decoder_layers = "num_decoder_layers",
    .encoder_heads = "num_heads",
    .decoder_heads = "num_heads",
    .encoder_ffn = "d_ff",
    .decoder_ffn = "d_ff",
    .source_vocabulary = "vocab_size",
    .gated_activation = "feed_forward_proj",
    .norm_eps = "layer_norm_epsilon",
    .head_width = "d_kv",
    .buckets = "relative_attention_num_buckets",
    .max_distance = "relative_attention_max_distance",
};
static const model_names t5_names = {
    .prefix = "",
    .encoder = {.layers = "encoder.block.",
                T5_LAYER("layer.1"),
                .final_norm = "encoder.final_layer_norm"},
    .decoder = {.layers = "decoder.block.",
                T5_LAYER("layer.2"),
                .cross = {"layer.1.EncDecAttention.q", "layer.1.EncDecAttention.k",
                          "layer.1.EncDecAttention.v", "layer.1.EncDecAttention.o"},
                .cross_norm = "layer.1.layer_norm",
                .final_norm = "decoder.final_layer_norm"},
    .shared = "shared.weight",
    .source = "encoder.embed_tokens.weight",
    .target = "decoder.embed_tokens.weight",
    .head = "lm_head.weight",
};

/* Pre-norm without any bias but that of distances, which take the place of positions. Positions
 * have no end: the limit is for what a call may ask for. */
#define FROM_T5                                                                                    \
    .keys = &t5_keys, .names = &t5_names, .d = 512, .head_width = 64, .max_positions = 1 << 20,    \
    .norm_eps = 1e-6, .rms_norm = 1, .pre_norm = 1, .final_norm = 1, .unscaled_attention = 1,      \
    .buckets = 32, .max_distance = 128, .share_embeddings = 1, .scale_tied_logits = 1, .pad = 0,   \
    .bos = MODEL_NO_ID, .start = 0, .unk = MODEL_NO_ID, .eos = {(const uint32_t[]){1}, 1}
/* mT5 (Xue et al. 2020, arXiv 2010.11934), and umT5 (Chung et al. 2023, arXiv 2304.09151). */
#define FROM_MT5                                                                                   \
    FROM_T5, .encoder_layers = 8, .encoder_heads = 6, .decoder_heads = 6, .encoder_ffn = 1024,     \
             .decoder_ffn = 1024, .source_vocabulary = 250112, .activation_name = "gated-gelu"

static const model_config rows[] = {
    /* Raffel et al. 2019, arXiv 1910.10683; FLAN-T5 and MADLAD-400 too. */
    {.family = "t5",
     FROM_T5,
     .encoder_class = "T5EncoderModel",
     .encoder_layers = 6,
     .encoder_heads = 8,
     .decoder_heads = 8,
     .encoder_ffn = 2048,
     .decoder_ffn = 2048,
     .source_vocabulary = 32128,
     .activation_name = "relu",
     .tie_logits = 1},
    {.family = "mt5", FROM_MT5, .encoder_class = "MT5EncoderModel"},
    {.family = "umt5",
     FROM_MT5,
     .encoder_class = "UMT5EncoderModel",
     .relative_in_each = 1,
     .tie_logits = 1},
};
const model_family_rows model_t5_rows = {rows, sizeof rows / sizeof *rows};
