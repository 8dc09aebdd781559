/* SPDX-License-Identifier: MIT
 *
 * Decoders alone: GPT-2, Llama and those that came from them.
 */
#include "families/rows.h"

/* A decoder alone. */
static const model_keys gpt2_keys = {
    .d = "n_embd",
    .decoder_layers = "n_layer",
    .decoder_heads = "n_head",
    .decoder_ffn = "n_inner",
    .source_vocabulary = "vocab_size",
    .max_positions = "n_positions",
    .activation = "activation_function",
    .norm_eps = "layer_norm_epsilon",
};
static const model_names gpt2_names = {
    .prefix = "transformer.",
    .decoder = {.layers = "transformer.h.",
                .self = {"attn.c_attn", NULL, NULL, "attn.c_proj"},
                .self_norm = "ln_1",
                .fc1 = "mlp.c_fc",
                .fc2 = "mlp.c_proj",
                .ffn_norm = "ln_2",
                .positions = "transformer.wpe",
                .final_norm = "transformer.ln_f"},
    .shared = "transformer.wte.weight",
    .head = "lm_head.weight",
};

#define LLAMA_KEYS                                                                                 \
    .d = "hidden_size", .decoder_layers = "num_hidden_layers",                                     \
    .decoder_heads = "num_attention_heads", .decoder_ffn = "intermediate_size",                    \
    .source_vocabulary = "vocab_size", .max_positions = "max_position_embeddings",                 \
    .activation = "hidden_act", .norm_eps = "rms_norm_eps", .head_width = "head_dim",              \
    .key_heads = "num_key_value_heads", .rope_theta = "rope_theta"
static const model_keys llama_keys = {LLAMA_KEYS, .attention_bias = "attention_bias",
                                      .ffn_bias = "mlp_bias"};
static const model_keys mistral_keys = {LLAMA_KEYS, .window = "sliding_window"};
static const model_keys phi3_keys = {LLAMA_KEYS, .window = "sliding_window",
                                     .rotary_part = "partial_rotary_factor"};
static const model_keys gemma_keys = {LLAMA_KEYS, .attention_bias = "attention_bias"};
#define GEMMA_KEYS                                                                                 \
    .d = "hidden_size", .decoder_layers = "num_hidden_layers",                                     \
    .decoder_heads = "num_attention_heads", .decoder_ffn = "intermediate_size",                    \
    .source_vocabulary = "vocab_size", .max_positions = "max_position_embeddings",                 \
    .activation = "hidden_activation", .norm_eps = "rms_norm_eps", .head_width = "head_dim",       \
    .key_heads = "num_key_value_heads", .attention_bias = "attention_bias",                        \
    .rope_theta = "rope_theta", .window = "sliding_window",                                        \
    .query_scalar = "query_pre_attn_scalar", .logits_cap = "final_logit_softcapping"
static const model_keys gemma2_keys = {GEMMA_KEYS, .attention_cap = "attn_logit_softcapping"};
static const model_keys gemma3_keys = {GEMMA_KEYS, .window_pattern = "sliding_window_pattern",
                                       .local_theta = "rope_local_base_freq"};
static const model_keys opt_keys = {
    .d = "hidden_size",
    .decoder_layers = "num_hidden_layers",
    .decoder_heads = "num_attention_heads",
    .decoder_ffn = "ffn_dim",
    .source_vocabulary = "vocab_size",
    .max_positions = "max_position_embeddings",
    .activation = "activation_function",
    .attention_bias = "enable_bias",
    .ffn_bias = "enable_bias",
    .embedding_width = "word_embed_proj_dim",
};
static const model_keys qwen2_keys = {LLAMA_KEYS, .window = "sliding_window",
                                      .use_window = "use_sliding_window",
                                      .window_from = "max_window_layers"};
static const model_keys qwen3_keys = {
    LLAMA_KEYS, .attention_bias = "attention_bias", .window = "sliding_window",
    .use_window = "use_sliding_window", .window_from = "max_window_layers"};
static const model_names llama_names = {
    .prefix = "model.",
    .decoder = {.layers = "model.layers.",
                .self = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                         "self_attn.o_proj"},
                .self_norm = "input_layernorm",
                .head_norm = {"self_attn.q_norm", "self_attn.k_norm"},
                .gate = {"mlp.gate_proj", "mlp.up_proj"},
                .fc2 = "mlp.down_proj",
                .ffn_norm = "post_attention_layernorm",
                .final_norm = "model.norm"},
    .shared = "model.embed_tokens.weight",
    .head = "lm_head.weight",
};
/* Of Gemma 2 and 3; a model of texts and images has its decoder behind one of two prefixes. */
#define GEMMA_NAMES(before, model, top)                                                            \
    {                                                                                              \
        .prefix = before model,                                                                    \
        .decoder = {.layers = before model "layers.",                                              \
                    .self = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",           \
                             "self_attn.o_proj"},                                                  \
                    .self_norm = "input_layernorm",                                                \
                    .self_after = "post_attention_layernorm",                                      \
                    .head_norm = {"self_attn.q_norm", "self_attn.k_norm"},                         \
                    .gate = {"mlp.gate_proj", "mlp.up_proj"},                                      \
                    .fc2 = "mlp.down_proj",                                                        \
                    .ffn_norm = "pre_feedforward_layernorm",                                       \
                    .ffn_after = "post_feedforward_layernorm",                                     \
                    .final_norm = before model "norm"},                                            \
        .shared = before model "embed_tokens.weight", .head = top "lm_head.weight",                \
    }
static const model_names gemma_names = GEMMA_NAMES("", "model.", ""),
                         gemma_part_names =
                             GEMMA_NAMES("language_model.", "model.", "language_model."),
                         gemma_other_names = GEMMA_NAMES("model.", "language_model.", "");
static const model_names phi3_names = {
    .prefix = "model.",
    .decoder = {.layers = "model.layers.",
                .self = {"self_attn.qkv_proj", NULL, NULL, "self_attn.o_proj"},
                .self_norm = "input_layernorm",
                .gate = {"mlp.gate_up_proj"},
                .fc2 = "mlp.down_proj",
                .ffn_norm = "post_attention_layernorm",
                .final_norm = "model.norm"},
    .shared = "model.embed_tokens.weight",
    .head = "lm_head.weight",
};
static const model_names opt_names = {
    .prefix = "model.",
    .decoder = {.layers = "model.decoder.layers.",
                BART_LAYER,
                .positions = "model.decoder.embed_positions",
                .final_norm = "model.decoder.final_layer_norm"},
    .shared = "model.decoder.embed_tokens.weight",
    .head = "lm_head.weight",
};
/* What Llama and those that came from its code share. */
#define LLAMA_LAYERS                                                                               \
    .rms_norm = 1, .pre_norm = 1, .final_norm = 1, .gated = 1, .rope_theta = 10000,                \
    .share_embeddings = 1, .start = MODEL_NO_ID, .unk = MODEL_NO_ID
#define FROM_LLAMA                                                                                 \
    .names = &llama_names, LLAMA_LAYERS, .d = 4096, .decoder_layers = 32, .decoder_heads = 32,     \
    .activation_name = "silu", .norm_eps = 1e-6, .pad = MODEL_NO_ID

/* What Gemma 2 and 3 share. */
#define GEMMA_LAYERS                                                                               \
    .names = &gemma_names, .rms_norm = 1, .norm_less_one = 1, .pre_norm = 1, .norms_after = 1,     \
    .final_norm = 1, .gated = 1, .share_embeddings = 1, .start = MODEL_NO_ID, .unk = MODEL_NO_ID,  \
    .norm_eps = 1e-6, .d = 2304, .decoder_layers = 26, .decoder_heads = 8, .key_heads = 4,         \
    .head_width = 256, .query_scalar = 256, .activation_name = "gelu_pytorch_tanh",                \
    .decoder_ffn = 9216, .window = 4096, .scale_embedding = 1, .tie_logits = 1, .pad = 0,          \
    .bos = 2, .eos = {(const uint32_t[]){1}, 1}
#define GEMMA3                                                                                     \
    .keys = &gemma3_keys, GEMMA_LAYERS, .head_norm = 1, .rope_theta = 1000000,                     \
    .local_theta = 10000, .source_vocabulary = 262208, .max_positions = 131072,                    \
    .window_pattern = 6,                                                                           \
    .must = {{"use_bidirectional_attention", "false"}, {"attn_logit_softcapping", "null"}}

static const model_config rows[] = {
    /* Radford et al. 2019, "Language Models are Unsupervised Multitask Learners". */
    {.family = "gpt2",
     .keys = &gpt2_keys,
     .names = &gpt2_names,
     .must = {{"scale_attn_weights", "true"},
              {"scale_attn_by_inverse_layer_idx", "false"},
              {"add_cross_attention", "false"}},
     .d = 768,
     .decoder_layers = 12,
     .decoder_heads = 12,
     .source_vocabulary = 50257,
     .max_positions = 1024,
     .activation_name = "gelu_new",
     .norm_eps = 1e-5,
     .norm_bias = 1,
     .pre_norm = 1,
     .final_norm = 1,
     .attention_bias = 1,
     .ffn_bias = 1,
     .linear_in_out = 1,
     .position = MODEL_POS_LEARNED,
     .share_embeddings = 1,
     .tie_logits = 1,
     .pad = MODEL_NO_ID,
     .bos = 50256,
     .start = MODEL_NO_ID,
     .unk = MODEL_NO_ID,
     .eos = {(const uint32_t[]){50256}, 1}},
    /* Touvron et al. 2023, arXiv 2302.13971; Llama 2 and 3 too. */
    {.family = "llama",
     .keys = &llama_keys,
     FROM_LLAMA,
     .decoder_ffn = 11008,
     .source_vocabulary = 32000,
     .max_positions = 2048,
     .bos = 1,
     .eos = {(const uint32_t[]){2}, 1}},
    /* Jiang et al. 2023, arXiv 2310.06825. */
    {.family = "mistral",
     .keys = &mistral_keys,
     FROM_LLAMA,
     .decoder_ffn = 14336,
     .key_heads = 8,
     .source_vocabulary = 32000,
     .max_positions = 131072,
     .window = 4096,
     .bos = 1,
     .eos = {(const uint32_t[]){2}, 1}},
    /* Yang et al. 2024, arXiv 2407.10671; Qwen2.5 too. */
    {.family = "qwen2",
     .keys = &qwen2_keys,
     FROM_LLAMA,
     .attention_bias = 1,
     .no_output_bias = 1,
     .decoder_ffn = 22016,
     .source_vocabulary = 151936,
     .max_positions = 32768,
     .window = 4096,
     .window_from = 28,
     .bos = MODEL_NO_ID},
    /* Yang et al. 2025, arXiv 2505.09388. */
    {.family = "qwen3",
     .keys = &qwen3_keys,
     FROM_LLAMA,
     .head_width = 128,
     .head_norm = 1,
     .key_heads = 32,
     .decoder_ffn = 22016,
     .source_vocabulary = 151936,
     .max_positions = 32768,
     .window = 4096,
     .window_from = 28,
     .bos = MODEL_NO_ID},
    /* Abdin et al. 2024, arXiv 2404.14219; Phi-4-mini too. */
    {.family = "phi3",
     .keys = &phi3_keys,
     .names = &phi3_names,
     LLAMA_LAYERS,
     .d = 3072,
     .decoder_layers = 32,
     .decoder_heads = 32,
     .activation_name = "silu",
     .norm_eps = 1e-5,
     .decoder_ffn = 8192,
     .source_vocabulary = 32064,
     .max_positions = 4096,
     .pad = 32000,
     .bos = 1,
     .eos = {(const uint32_t[]){32000}, 1}},
    /* Gemma Team 2024, arXiv 2403.08295. */
    {.family = "gemma",
     .keys = &gemma_keys,
     .names = &llama_names,
     LLAMA_LAYERS,
     .norm_eps = 1e-6,
     .must = {{"use_bidirectional_attention", "false"}},
     .d = 3072,
     .decoder_layers = 28,
     .decoder_heads = 16,
     .key_heads = 16,
     .head_width = 256,
     .activation_name = "gelu_pytorch_tanh",
     .gelu_is_tanh = 1,
     .norm_less_one = 1,
     .decoder_ffn = 24576,
     .source_vocabulary = 256000,
     .max_positions = 8192,
     .scale_embedding = 1,
     .tie_logits = 1,
     .pad = 0,
     .bos = 2,
     .eos = {(const uint32_t[]){1}, 1}},
    /* Gemma Team 2024, arXiv 2408.00118. */
    {.family = "gemma2",
     .keys = &gemma2_keys,
     GEMMA_LAYERS,
     .must = {{"use_bidirectional_attention", "false"}},
     .attention_cap = 50,
     .logits_cap = 30,
     .rope_theta = 10000,
     .source_vocabulary = 256000,
     .max_positions = 8192,
     .window_pattern = 2},
    /* Gemma Team 2025, arXiv 2503.19786; and the decoder of those that see images, too. */
    {.family = "gemma3_text", GEMMA3},
    {.family = "gemma3",
     GEMMA3,
     .part = "text_config",
     .part_type = "gemma3_text",
     .other_names = {&gemma_part_names, &gemma_other_names}},
    /* Zhang et al. 2022, arXiv 2205.01068. */
    {.family = "opt",
     .keys = &opt_keys,
     .names = &opt_names,
     .must = {{"do_layer_norm_before", "true"},
              {"_remove_final_layer_norm", "false"},
              {"layer_norm_elementwise_affine", "true"}},
     .d = 768,
     .decoder_layers = 12,
     .decoder_heads = 12,
     .decoder_ffn = 3072,
     .source_vocabulary = 50272,
     .max_positions = 2048,
     .activation_name = "relu",
     .norm_eps = 1e-5,
     .norm_bias = 1,
     .pre_norm = 1,
     .final_norm = 1,
     .attention_bias = 1,
     .ffn_bias = 1,
     .position = MODEL_POS_LEARNED,
     .position_offset = 2,
     .share_embeddings = 1,
     .tie_logits = 1,
     .pad = 1,
     .bos = 2,
     .start = MODEL_NO_ID,
     .unk = MODEL_NO_ID,
     .eos = {(const uint32_t[]){2}, 1}},
};
const model_family_rows model_gpt_rows = {rows, sizeof rows / sizeof *rows};
