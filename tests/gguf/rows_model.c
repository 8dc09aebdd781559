/* SPDX-License-Identifier: MIT
 *
 * See gguf_files.h: the rows of what is wrong with the model or the tokenizer in a file that is
 * whole.
 */
#include "rows.h"

#include <string.h>

/* Architectures. */
static void gemma3n(gguf_maker *m) { gguf_text(m, "general.architecture", "gemma3n"); }
static void number(gguf_maker *m) { gguf_u32(m, "general.architecture", 1); }
static void adapter(gguf_maker *m) { gguf_text(m, "general.type", "adapter"); }
static void list_of_heads(gguf_maker *m) {
    gguf_i32s(m, "llama.attention.head_count", (const uint32_t[]){2}, 1);
}
static void text_of_heads(gguf_maker *m) { gguf_text(m, "llama.attention.head_count", "2"); }
static void three_heads(gguf_maker *m) { gguf_u32(m, "llama.attention.head_count", 3); }
static void no_number(gguf_maker *m) {
    gguf_number(m, "llama.attention.layer_norm_rms_epsilon", F32, 0x7fc00000, 4);
}
static void many_layers(gguf_maker *m) { gguf_u32(m, "llama.block_count", 2); }
static void experts(gguf_maker *m) { gguf_u32(m, "llama.expert_count", 8); }
static void no_experts(gguf_maker *m) { gguf_u32(m, "llama.expert_count", 0); }
static void listed_experts(gguf_maker *m) {
    gguf_i32s(m, "llama.expert_count", (const uint32_t[]){0}, 1);
}
static void text_of_experts(gguf_maker *m) { gguf_text(m, "llama.expert_count", ""); }
static void softcap(gguf_maker *m) {
    gguf_number(m, "llama.final_logit_softcapping", F32, ONE_F32, 4);
}
static void local_base(gguf_maker *m) {
    gguf_number(m, "llama.rope.freq_base_swa", F32, ONE_F32, 4);
}
static void not_causal(gguf_maker *m) { gguf_number(m, "llama.attention.causal", BOOL, 0, 1); }
static void causal(gguf_maker *m) { gguf_number(m, "llama.attention.causal", BOOL, 1, 1); }
static void norms_of_q(gguf_maker *m) { gguf_f32(m, "blk.0.attn_q_norm.weight", 2, 0); }
static void narrow_rope(gguf_maker *m) { gguf_u32(m, "llama.rope.dimension_count", 1); }
static void narrow_values(gguf_maker *m) { gguf_u32(m, "llama.attention.value_length", 1); }
static void dynamic(gguf_maker *m) { gguf_text(m, "llama.rope.scaling.type", "dynamic"); }
static void longrope(gguf_maker *m) { gguf_text(m, "llama.rope.scaling.type", "longrope"); }
static void long_factors(gguf_maker *m) {
    longrope(m);
    gguf_u32(m, "llama.rope.scaling.original_context_length", 4);
    gguf_number(m, "llama.rope.scaling.attn_factor", F32, ONE_F32 + 1, 4);
    gguf_f32(m, "rope_factors_long.weight", 1, 0);
    gguf_f32(m, "rope_factors_short.weight", 1, 0);
}
static void long_alone(gguf_maker *m) {
    longrope(m);
    gguf_f32(m, "rope_factors_long.weight", 1, 0);
}
static void wide_factors(gguf_maker *m) {
    longrope(m);
    gguf_f32(m, "rope_factors_long.weight", 2, 0);
    gguf_f32(m, "rope_factors_short.weight", 2, 0);
}
static void matrix_factors(gguf_maker *m) {
    longrope(m);
    gguf_f32(m, "rope_factors_long.weight", 1, 0);
    gguf_f32(m, "rope_factors_short.weight", 1, 1);
}
static void short_numbers(gguf_maker *m) {
    const uint64_t one = 1;
    longrope(m);
    gguf_f32(m, "rope_factors_long.weight", 1, 0);
    gguf_tensor(m, "rope_factors_short.weight", BF16, 1, &one, 2);
}
static void no_number_factor(gguf_maker *m) {
    longrope(m);
    gguf_f32(m, "rope_factors_short.weight", 1, 0);
    memset(m->data.bytes + m->data.count - 4, 0xff, 4);
    gguf_f32(m, "rope_factors_long.weight", 1, 0);
}
static void yarn(gguf_maker *m) {
    gguf_text(m, "llama.rope.scaling.type", "yarn");
    gguf_number(m, "llama.rope.scaling.factor", F32, ONE_F32 + 0x00800000, 4);
    gguf_u32(m, "llama.rope.scaling.original_context_length", 4);
    gguf_number(m, "llama.rope.scaling.attn_factor", F32, ONE_F32, 4);
    gguf_number(m, "llama.rope.scaling.yarn_log_multiplier", F32, 0, 4);
}
static void factors_of_yarn(gguf_maker *m) {
    yarn(m);
    gguf_f32(m, "rope_factors_long.weight", 1, 0);
}
static void yarn_ext(gguf_maker *m) {
    yarn(m);
    gguf_number(m, "llama.rope.scaling.yarn_ext_factor", F32, 0, 4);
}
static void yarn_log(gguf_maker *m) {
    gguf_text(m, "llama.rope.scaling.type", "yarn");
    gguf_number(m, "llama.rope.scaling.factor", F32, ONE_F32, 4);
    gguf_number(m, "llama.rope.scaling.yarn_log_multiplier", F32, ONE_F32, 4);
}
static void linear_scaled(gguf_maker *m) {
    gguf_text(m, "llama.rope.scaling.type", "linear");
    gguf_number(m, "llama.rope.scaling.factor", F32, ONE_F32, 4);
    gguf_number(m, "llama.rope.scaling.attn_factor", F32, ONE_F32 + 1, 4);
}
static void yarn_beta(gguf_maker *m) {
    yarn(m);
    gguf_text(m, "llama.rope.scaling.yarn_beta_fast", "32");
}
static void no_scaling(gguf_maker *m) {
    gguf_text(m, "llama.rope.scaling.type", "none");
    gguf_number(m, "llama.rope.scaling.factor", F32, ONE_F32, 4);
}
static void scalings(gguf_maker *m) {
    gguf_texts(m, "llama.rope.scaling.type", (const char *const[]){"none", NULL});
}
static void bos_text(gguf_maker *m) { gguf_text(m, "tokenizer.ggml.bos_token_id", "1"); }
static void no_factor(gguf_maker *m) { gguf_text(m, "llama.rope.scaling.type", "linear"); }
static void factor_alone(gguf_maker *m) {
    gguf_number(m, "llama.rope.scaling.factor", F32, ONE_F32, 4);
}
static void old_factor(gguf_maker *m) {
    gguf_number(m, "llama.rope.scale_linear", F32, ONE_F32, 4);
}
static void divisors(gguf_maker *m) { gguf_f32(m, "rope_freqs.weight", 1, 0); }
static void two_divisors(gguf_maker *m) { gguf_f32(m, "rope_freqs.weight", 2, 0); }
static void no_divisor(gguf_maker *m) {
    gguf_f32(m, "rope_freqs.weight", 1, 0);
    memset(m->data.bytes + m->data.count - 4, 0, 4);
}
static void eos_beyond(gguf_maker *m) { gguf_u32(m, "tokenizer.ggml.eos_token_id", 7); }
static void eos_text(gguf_maker *m) { gguf_text(m, "tokenizer.ggml.eos_token_id", "0"); }
static void other_vocabulary(gguf_maker *m) { gguf_u32(m, "llama.vocab_size", 8); }

/* Tokenizers. */
static void kind_number(gguf_maker *m) { gguf_u32(m, "tokenizer.ggml.model", 1); }
static void merges_number(gguf_maker *m) { gguf_u32(m, "tokenizer.ggml.merges", 1); }
static void words_number(gguf_maker *m) { gguf_u32(m, "tokenizer.ggml.pre", 1); }
static void rwkv(gguf_maker *m) { gguf_text(m, "tokenizer.ggml.model", "rwkv"); }
static void spm(gguf_maker *m) { gguf_text(m, "tokenizer.ggml.model", "llama"); }
static void falcon(gguf_maker *m) { gguf_text(m, "tokenizer.ggml.pre", "falcon"); }
static void type_numbers(gguf_maker *m) {
    gguf_i32s(m, "tokenizer.ggml.tokens", (const uint32_t[]){1}, 1);
}
static void few_types(gguf_maker *m) {
    gguf_i32s(m, "tokenizer.ggml.token_type", (const uint32_t[]){1, 1}, 2);
}
static void odd_types(gguf_maker *m) {
    gguf_i32s(m, "tokenizer.ggml.token_type", (const uint32_t[]){1, 1, 1, 1, 1, 7, 1}, 7);
}
static void one_merge(gguf_maker *m, const char *merge) {
    gguf_texts(m, "tokenizer.ggml.merges", (const char *const[]){merge, NULL});
}
static void no_pair(gguf_maker *m) { one_merge(m, "ab"); }
static void empty_merge(gguf_maker *m) { one_merge(m, ""); }
static void no_token(gguf_maker *m) { one_merge(m, "b a"); }
static void tokens(gguf_maker *m, const char *sixth) {
    gguf_texts(m, "tokenizer.ggml.tokens",
               (const char *const[]){"<|end|>", "a", "b", "ab", "\xc4\xa0", sixth, "x", NULL});
}
static void same_token(gguf_maker *m) { tokens(m, "a"); }
static void odd_token(gguf_maker *m) { tokens(m, "\xff"); }
static void nul_token(gguf_maker *m) {
    tokens(m, "c");
    m->values.bytes[m->values.count - 10] = 0;
}
static void wants_bos(gguf_maker *m) { gguf_number(m, "tokenizer.ggml.add_bos_token", BOOL, 1, 1); }
static void bos_beyond(gguf_maker *m) {
    wants_bos(m);
    gguf_u32(m, "tokenizer.ggml.bos_token_id", 7);
}
static void bos_unused(gguf_maker *m) {
    wants_bos(m);
    gguf_u32(m, "tokenizer.ggml.bos_token_id", 6);
}
static void bos_number(gguf_maker *m) { gguf_u32(m, "tokenizer.ggml.add_bos_token", 1); }

static const gguf_row rows[] = {
    /* Architectures. */
    {"no architecture", ISOBIT_E_MISSING, "no key \"general.architecture\"",
     .skip = "general.architecture"},
    {"architecture a number", ISOBIT_E_CONFIG, "\"general.architecture\" is a 32-bit number",
     .skip = "general.architecture", .add = number},
    {"another architecture", ISOBIT_E_UNSUPPORTED,
     "the architecture \"gemma3n\" is not one of llama, qwen2, qwen3, gemma, gemma2, gemma3, gpt2",
     .skip = "general.architecture", .add = gemma3n},
    {"adapter", ISOBIT_E_UNSUPPORTED, "\"general.type\" is not \"model\"", .add = adapter},
    {"no layers", ISOBIT_E_MISSING, "model.gguf has no key \"llama.block_count\"",
     .skip = "llama.block_count"},
    {"no epsilon", ISOBIT_E_MISSING, "no key \"llama.attention.layer_norm_rms_epsilon\"",
     .skip = "llama.attention.layer_norm_rms_epsilon"},
    {"no positions", ISOBIT_E_MISSING, "no key \"llama.context_length\"",
     .skip = "llama.context_length"},
    {"heads of each layer", ISOBIT_E_CONFIG, "\"llama.attention.head_count\" is a list",
     .skip = "llama.attention.head_count", .add = list_of_heads},
    {"heads as text", ISOBIT_E_CONFIG, "\"llama.attention.head_count\" is \"2\"",
     .skip = "llama.attention.head_count", .add = text_of_heads},
    {"three heads", ISOBIT_E_CONFIG,
     "\"llama.embedding_length\" 4 is not a multiple of \"llama.attention.head_count\" 3",
     .skip = "llama.attention.head_count", .add = three_heads},
    {"not a number", ISOBIT_E_CONFIG, "\"llama.attention.layer_norm_rms_epsilon\" is not finite",
     .skip = "llama.attention.layer_norm_rms_epsilon", .add = no_number},
    {"two layers", ISOBIT_E_MISSING, "no tensor \"blk.1.attn_q.weight\"",
     .skip = "llama.block_count", .add = many_layers},
    {"experts", ISOBIT_E_UNSUPPORTED, "\"llama.expert_count\" is not 0", .add = experts},
    {"experts in an array", ISOBIT_E_UNSUPPORTED, "\"llama.expert_count\" is not 0",
     .add = listed_experts},
    {"experts as text", ISOBIT_E_UNSUPPORTED, "\"llama.expert_count\" is not 0",
     .add = text_of_experts},
    {"no experts", ISOBIT_OK, "", .add = no_experts},
    {"soft caps", ISOBIT_E_UNSUPPORTED, "\"llama.final_logit_softcapping\" is not 0",
     .add = softcap},
    {"a base for windows", ISOBIT_E_UNSUPPORTED, "\"llama.rope.freq_base_swa\" is not 0",
     .add = local_base},
    {"not causal", ISOBIT_E_UNSUPPORTED, "\"llama.attention.causal\" is not as", .add = not_causal},
    {"causal", ISOBIT_OK, "", .add = causal},
    {"norms of q", ISOBIT_E_UNSUPPORTED, "tensor \"blk.0.attn_q_norm.weight\" is of a variant",
     .add = norms_of_q},
    {"a part of a head turns", ISOBIT_E_UNSUPPORTED,
     "\"llama.rope.dimension_count\" is not the width of a head, 2", .add = narrow_rope},
    {"narrow values", ISOBIT_E_UNSUPPORTED, "\"llama.attention.value_length\" is not the width",
     .add = narrow_values},
    {"scalings in an array", ISOBIT_E_UNSUPPORTED,
     "\"llama.rope.scaling.type\" is not \"none\", \"linear\", \"yarn\" or \"longrope\"",
     .add = scalings},
    {"first token a text, the model", ISOBIT_E_CONFIG,
     "\"tokenizer.ggml.bos_token_id\" is a string; a 32-bit number", .add = bos_text},
    {"another scaling", ISOBIT_E_UNSUPPORTED,
     "\"llama.rope.scaling.type\" is not \"none\", \"linear\", \"yarn\" or \"longrope\"",
     .add = dynamic},
    {"longrope", ISOBIT_OK, "", .add = long_factors},
    {"longrope without factors", ISOBIT_E_MISSING, "has no tensor \"rope_factors_short.weight\"",
     .add = long_alone},
    {"longrope, another width", ISOBIT_E_CONFIG, "\"short_factor\" has 2 numbers; 1 are expected",
     .add = wide_factors},
    {"longrope, a matrix", ISOBIT_E_SHAPE,
     "\"rope_factors_short.weight\" has type F32 and 2 dimensions", .add = matrix_factors},
    {"longrope, BF16", ISOBIT_E_SHAPE, "\"rope_factors_short.weight\" has type BF16 and 1 dim",
     .add = short_numbers},
    {"longrope, not a number", ISOBIT_E_RANGE,
     "\"rope_factors_short.weight\": element 0 is not finite", .add = no_number_factor},
    {"YaRN with factors", ISOBIT_E_UNSUPPORTED,
     "tensor \"rope_factors_long.weight\" is of a variant", .add = factors_of_yarn},
    {"YaRN", ISOBIT_OK, "", .add = yarn},
    {"YaRN without its ramp", ISOBIT_E_UNSUPPORTED,
     "\"llama.rope.scaling.yarn_ext_factor\" is not 1; isobit", .add = yarn_ext},
    {"YaRN of DeepSeek", ISOBIT_E_UNSUPPORTED,
     "\"llama.rope.scaling.yarn_log_multiplier\" is not 0; isobit", .add = yarn_log},
    {"scaled cosines", ISOBIT_E_UNSUPPORTED, "\"llama.rope.scaling.attn_factor\" is not 1; isobit",
     .add = linear_scaled},
    {"YaRN with a text", ISOBIT_E_CONFIG, "\"beta_fast\" is \"32\"", .add = yarn_beta},
    {"no scaling", ISOBIT_OK, "", .add = no_scaling},
    {"no factor", ISOBIT_E_MISSING, "\"llama.rope.scaling.factor\" is not there", .add = no_factor},
    {"a factor alone", ISOBIT_E_MISSING, "\"llama.rope.scaling.factor\" is there without a type",
     .add = factor_alone},
    {"an old factor", ISOBIT_OK, "", .add = old_factor},
    {"divisors", ISOBIT_OK, "", .add = divisors},
    {"two divisors", ISOBIT_E_SHAPE, "\"rope_freqs.weight\" has rank 1 and shape [2]; [1]",
     .add = two_divisors},
    {"divisor 0", ISOBIT_E_RANGE, "\"rope_freqs.weight\": element 0 is not above 0",
     .add = no_divisor},
    {"end beyond the vocabulary", ISOBIT_E_CONFIG,
     "\"eos_token_id\" is 7; the vocabulary has 7 tokens", .skip = "tokenizer.ggml.eos_token_id",
     .add = eos_beyond},
    {"end as text", ISOBIT_E_CONFIG, "\"tokenizer.ggml.eos_token_id\" is a string",
     .skip = "tokenizer.ggml.eos_token_id", .add = eos_text},
    {"no end", ISOBIT_OK, "", .skip = "tokenizer.ggml.eos_token_id"},
    {"another vocabulary", ISOBIT_E_SHAPE, "\"token_embd.weight\" has rank 2 and shape [7, 4]",
     .add = other_vocabulary},

    /* Tokenizers. */
    {"tokens", ISOBIT_OK, "", .text = 1},
    {"no tokenizer", ISOBIT_E_MISSING, "no key \"tokenizer.ggml.model\"", .text = 1,
     .skip = "tokenizer.ggml.model"},
    {"another kind", ISOBIT_E_UNSUPPORTED,
     "\"tokenizer.ggml.model\" is \"rwkv\", which isobit does not have", .text = 1,
     .skip = "tokenizer.ggml.model", .add = rwkv},
    {"SentencePiece with words", ISOBIT_E_UNSUPPORTED,
     "\"tokenizer.ggml.pre\" is \"gpt-2\", which isobit does not have", .text = 1,
     .skip = "tokenizer.ggml.model", .add = spm},
    {"no words", ISOBIT_E_MISSING, "no key \"tokenizer.ggml.pre\"", .text = 1,
     .skip = "tokenizer.ggml.pre"},
    {"other words", ISOBIT_E_UNSUPPORTED, "\"tokenizer.ggml.pre\" is \"falcon\", which", .text = 1,
     .skip = "tokenizer.ggml.pre", .add = falcon},
    {"no tokens", ISOBIT_E_MISSING, "no key \"tokenizer.ggml.tokens\"", .text = 1,
     .skip = "tokenizer.ggml.tokens"},
    {"tokens as numbers", ISOBIT_E_CONFIG,
     "\"tokenizer.ggml.tokens\" is an array, each item a signed 32-bit number; an array, each item "
     "a string",
     .text = 1, .skip = "tokenizer.ggml.tokens", .add = type_numbers},
    {"no merges", ISOBIT_E_MISSING, "no key \"tokenizer.ggml.merges\"", .text = 1,
     .skip = "tokenizer.ggml.merges"},
    {"two types", ISOBIT_E_CONFIG, "7 tokens, but 2 types of tokens", .text = 1,
     .skip = "tokenizer.ggml.token_type", .add = few_types},
    {"type 7", ISOBIT_E_CONFIG, "token 5 has the type 7; 1 to 6 are possible", .text = 1,
     .skip = "tokenizer.ggml.token_type", .add = odd_types},
    {"no types", ISOBIT_OK, "", .text = 1, .skip = "tokenizer.ggml.token_type"},
    {"no pair", ISOBIT_E_CONFIG, "merge 0 is no pair", .text = 1, .skip = "tokenizer.ggml.merges",
     .add = no_pair},
    {"empty merge", ISOBIT_E_CONFIG, "merge 0 is no pair", .text = 1,
     .skip = "tokenizer.ggml.merges", .add = empty_merge},
    {"merge of no token", ISOBIT_E_CONFIG, "model.gguf: merge 0 has parts that are not", .text = 1,
     .skip = "tokenizer.ggml.merges", .add = no_token},
    {"token twice", ISOBIT_E_DUPLICATE, "token 5, \"a\", occurs twice", .text = 1,
     .skip = "tokenizer.ggml.tokens", .add = same_token},
    {"token no UTF-8", ISOBIT_E_UTF8, "token 5 is not UTF-8", .text = 1,
     .skip = "tokenizer.ggml.tokens", .add = odd_token},
    {"token with NUL", ISOBIT_E_UTF8, "token 5 is not UTF-8, or has a NUL", .text = 1,
     .skip = "tokenizer.ggml.tokens", .add = nul_token},
    {"a number for the kind", ISOBIT_E_CONFIG,
     "\"tokenizer.ggml.model\" is a 32-bit number; a string is expected", .text = 1,
     .skip = "tokenizer.ggml.model", .add = kind_number},
    {"a number for the merges", ISOBIT_E_CONFIG,
     "\"tokenizer.ggml.merges\" is a 32-bit number; an array, each item a string is expected",
     .text = 1, .skip = "tokenizer.ggml.merges", .add = merges_number},
    {"a number for the words", ISOBIT_E_CONFIG,
     "\"tokenizer.ggml.pre\" is a 32-bit number; a string is expected", .text = 1,
     .skip = "tokenizer.ggml.pre", .add = words_number},
    {"no first token", ISOBIT_E_MISSING, "no key \"tokenizer.ggml.bos_token_id\"", .text = 1,
     .add = wants_bos},
    {"first token beyond", ISOBIT_E_CONFIG, "\"tokenizer.ggml.bos_token_id\" is 7, which is no",
     .text = 1, .add = bos_beyond},
    {"first token unused", ISOBIT_E_CONFIG, "\"tokenizer.ggml.bos_token_id\" is 6, which is no",
     .text = 1, .add = bos_unused},
    {"first token a number", ISOBIT_E_CONFIG,
     "\"tokenizer.ggml.add_bos_token\" is a 32-bit number; true or false", .text = 1,
     .add = bos_number},
};
const gguf_table gguf_model_rows = {rows, sizeof rows / sizeof *rows};
