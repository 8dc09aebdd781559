/* SPDX-License-Identifier: MIT
 *
 * See gguf_files.h.
 */
#include "gguf_files.h"

#include <string.h>

enum { U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 };
enum { Q4_0 = 2, I8_TENSOR = 24, F64_TENSOR = 28, BF16 = 30 };
#define ONE_F32 0x3f800000u

void gguf_put(blob *b, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char byte = (unsigned char)(i < 8 ? value >> 8 * i : 0);
        blob_add(b, &byte, 1);
    }
}

void gguf_string(blob *b, const char *text, size_t bytes) {
    gguf_put(b, bytes, 8);
    blob_add(b, text, bytes);
}

static int begins(gguf_maker *m, const char *key, uint32_t type) {
    if (m->skip && strcmp(m->skip, key) == 0)
        return 0;
    gguf_string(&m->values, key, strlen(key));
    gguf_put(&m->values, type, 4);
    m->value_count++;
    return 1;
}

void gguf_number(gguf_maker *m, const char *key, uint32_t type, uint64_t value, size_t bytes) {
    if (begins(m, key, type))
        gguf_put(&m->values, value, bytes);
}

void gguf_u32(gguf_maker *m, const char *key, uint32_t value) {
    gguf_number(m, key, U32, value, 4);
}

void gguf_text(gguf_maker *m, const char *key, const char *value) {
    if (begins(m, key, STRING))
        gguf_string(&m->values, value, strlen(value));
}

void gguf_texts(gguf_maker *m, const char *key, const char *const *values) {
    size_t count = 0;
    if (!begins(m, key, ARRAY))
        return;
    while (values[count])
        count++;
    gguf_put(&m->values, STRING, 4);
    gguf_put(&m->values, count, 8);
    for (size_t i = 0; i < count; i++)
        gguf_string(&m->values, values[i], strlen(values[i]));
}

void gguf_numbers(gguf_maker *m, const char *key, uint32_t type, const uint32_t *values,
                  size_t count) {
    if (!begins(m, key, ARRAY))
        return;
    gguf_put(&m->values, type, 4);
    gguf_put(&m->values, count, 8);
    for (size_t i = 0; i < count; i++)
        gguf_put(&m->values, values[i], 4);
}

static void numbers(gguf_maker *m, const char *key, const uint32_t *values, size_t count) {
    gguf_numbers(m, key, I32, values, count);
}

void gguf_tensor(gguf_maker *m, const char *name, uint32_t type, uint32_t rank,
                 const uint64_t *sizes, size_t bytes) {
    if (m->skip && strcmp(m->skip, name) == 0)
        return;
    while (m->data.count % m->alignment)
        gguf_put(&m->data, 0, 1);
    gguf_string(&m->tensors, name, strlen(name));
    gguf_put(&m->tensors, rank, 4);
    for (uint32_t i = 0; i < rank; i++)
        gguf_put(&m->tensors, sizes[i], 8);
    gguf_put(&m->tensors, type, 4);
    if (m->tensor_count < sizeof m->places / sizeof *m->places)
        m->places[m->tensor_count] = m->tensors.count;
    gguf_put(&m->tensors, m->data.count, 8);
    for (size_t i = 0; i < bytes; i += 2) /* halves of floats around 0.5, and of others */
        gguf_put(&m->data, 0x3e00 + i % 251, bytes - i < 2 ? 1 : 2);
    m->tensor_count++;
}

static void f32(gguf_maker *m, const char *name, uint64_t k, uint64_t n) {
    const uint64_t sizes[] = {k, n};
    gguf_tensor(m, name, 0, n ? 2 : 1, sizes, (size_t)(4 * k * (n ? n : 1)));
}

void gguf_good(gguf_maker *m) {
    static const char *const tokens[] = {"<|end|>", "a", "b", "ab", "\xc4\xa0", "c", "x", NULL};
    static const char *const merges[] = {"a b", NULL};
    static const uint32_t types[] = {3, 1, 1, 1, 1, 1, 5};
    m->version = 3;
    m->alignment = 32;
    gguf_text(m, "general.architecture", "llama");
    gguf_u32(m, "llama.block_count", 1);
    gguf_u32(m, "llama.context_length", 8);
    gguf_u32(m, "llama.embedding_length", 4);
    gguf_u32(m, "llama.feed_forward_length", 3);
    gguf_u32(m, "llama.attention.head_count", 2);
    gguf_u32(m, "llama.attention.head_count_kv", 1);
    gguf_number(m, "llama.attention.layer_norm_rms_epsilon", F32, ONE_F32, 4);
    gguf_u32(m, "tokenizer.ggml.eos_token_id", 0);
    gguf_text(m, "tokenizer.ggml.model", "gpt2");
    gguf_text(m, "tokenizer.ggml.pre", "gpt-2");
    gguf_texts(m, "tokenizer.ggml.tokens", tokens);
    numbers(m, "tokenizer.ggml.token_type", types, 7);
    gguf_texts(m, "tokenizer.ggml.merges", merges);
    f32(m, "token_embd.weight", 4, 7);
    f32(m, "blk.0.attn_norm.weight", 4, 0);
    f32(m, "blk.0.attn_q.weight", 4, 4);
    f32(m, "blk.0.attn_k.weight", 4, 2);
    f32(m, "blk.0.attn_v.weight", 4, 2);
    f32(m, "blk.0.attn_output.weight", 4, 4);
    f32(m, "blk.0.ffn_norm.weight", 4, 0);
    f32(m, "blk.0.ffn_gate.weight", 4, 3);
    f32(m, "blk.0.ffn_up.weight", 4, 3);
    f32(m, "blk.0.ffn_down.weight", 3, 4);
    f32(m, "output_norm.weight", 4, 0);
}

blob gguf_finish(gguf_maker *m) {
    blob b = {0};
    blob_add(&b, "GGUF", 4);
    gguf_put(&b, m->version, 4);
    gguf_put(&b, m->tensor_count, 8);
    gguf_put(&b, m->value_count, 8);
    blob_add(&b, m->values.bytes, m->values.count);
    blob_add(&b, m->tensors.bytes, m->tensors.count);
    while (m->tensor_count && b.count % m->alignment)
        gguf_put(&b, 0, 1);
    blob_add(&b, m->data.bytes, m->data.count);
    blob_free(&m->values);
    blob_free(&m->tensors);
    blob_free(&m->data);
    return b;
}

/* -------------------------------------------------------------------------------------- rows */

static void raw(gguf_maker *m, const void *data, size_t bytes) {
    blob_add(&m->values, data, bytes);
    m->value_count++;
}

/* Values. */
static void twice(gguf_maker *m) { gguf_u32(m, "llama.block_count", 1); }
static void unused(gguf_maker *m) {
    static const unsigned char bytes[] = {U8, I8, BOOL};
    static const unsigned char pairs[] = {U16, I16}, fours[] = {I32, F32},
                               eights[] = {U64, I64, F64};
    char key[] = "x.0";
    for (size_t i = 0; i < sizeof bytes; i++, key[2]++)
        gguf_number(m, key, bytes[i], 1, 1);
    for (size_t i = 0; i < sizeof pairs; i++, key[2]++)
        gguf_number(m, key, pairs[i], 1, 2);
    for (size_t i = 0; i < sizeof fours; i++, key[2]++)
        gguf_number(m, key, fours[i], 1, 4);
    for (size_t i = 0; i < sizeof eights; i++, key[2]++)
        gguf_number(m, key, eights[i], 1, 8);
    gguf_texts(m, "x.texts", (const char *const[]){NULL});
}
static void no_name(gguf_maker *m) { gguf_u32(m, "", 1); }
static void nul_name(gguf_maker *m) { raw(m, "\2\0\0\0\0\0\0\0a\0\4\0\0\0\0\0\0\0", 18); }
static void odd_name(gguf_maker *m) { raw(m, "\2\0\0\0\0\0\0\0a\xff\4\0\0\0\0\0\0\0", 18); }
static void name_of(gguf_maker *m, size_t bytes) {
    char name[4098];
    memset(name, 'a', sizeof name);
    name[bytes] = 0;
    gguf_u32(m, name, 1);
}
static void long_name(gguf_maker *m) { name_of(m, 4097); }
static void longest_name(gguf_maker *m) { name_of(m, 4096); }
static void far_name(gguf_maker *m) {
    raw(m,
        "\xff\xff\xff\xff\xff\xff\xff\xff"
        "aaaaaa",
        14);
}
static void odd_type(gguf_maker *m) { gguf_number(m, "x", 13, 0, 4); }
static void odd_bool(gguf_maker *m) { gguf_number(m, "x", BOOL, 2, 1); }
static void nested(gguf_maker *m) { gguf_number(m, "x", ARRAY, ARRAY, 12); }
static void long_array(gguf_maker *m) {
    gguf_number(m, "x", ARRAY, U64, 4);
    gguf_put(&m->values, UINT64_C(1) << 61, 8);
}
static void long_texts(gguf_maker *m) {
    gguf_number(m, "x", ARRAY, STRING, 4);
    gguf_put(&m->values, 1000, 8);
}
static void far_text(gguf_maker *m) { gguf_number(m, "x", STRING, UINT64_C(1) << 40, 8); }
static void odd_item(gguf_maker *m) {
    gguf_number(m, "x", ARRAY, BOOL, 4);
    gguf_put(&m->values, 2, 8);
    gguf_put(&m->values, 0x0301, 2);
}
static void split_file(gguf_maker *m) { gguf_number(m, "split.count", U16, 3, 2); }
static void no_split(gguf_maker *m) { gguf_number(m, "split.count", U16, 1, 2); }
static void odd_split(gguf_maker *m) { gguf_text(m, "split.count", "3"); }
static void align_24(gguf_maker *m) { gguf_u32(m, "general.alignment", 24); }
static void align_4(gguf_maker *m) { gguf_u32(m, "general.alignment", 4); }
static void align_most(gguf_maker *m) { gguf_u32(m, "general.alignment", 131072); }
static void align_64k(gguf_maker *m) { gguf_u32(m, "general.alignment", 65536); }
static void align_text(gguf_maker *m) { gguf_text(m, "general.alignment", "32"); }
static void align_other(gguf_maker *m) { gguf_u32(m, "general.alignment", 16384); }

/* Tensors. */
static void same_tensor(gguf_maker *m) { f32(m, "token_embd.weight", 4, 7); }
static void quantised(gguf_maker *m) {
    gguf_tensor(m, "blk.0.attn_q.weight", Q4_0, 2, (const uint64_t[]){32, 4}, 72);
}
static void mxfp4(gguf_maker *m) { gguf_tensor(m, "x", 39, 1, (const uint64_t[]){32}, 17); }
static void type_4711(gguf_maker *m) { gguf_tensor(m, "x", 4711, 1, (const uint64_t[]){1}, 4); }
static void whole_numbers(gguf_maker *m) {
    gguf_tensor(m, "x", I8_TENSOR, 1, (const uint64_t[]){5}, 5);
}
static void wider_numbers(gguf_maker *m) {
    for (uint32_t i = 1; i < 4; i++)
        gguf_tensor(m, &"x\0y\0z"[2 * (i - 1)], I8_TENSOR + i, 1, (const uint64_t[]){5},
                    (size_t)5 << i);
}
static void needed_numbers(gguf_maker *m) {
    gguf_tensor(m, "output_norm.weight", I8_TENSOR, 1, (const uint64_t[]){4}, 4);
}
static void doubles(gguf_maker *m) {
    gguf_tensor(m, "output_norm.weight", F64_TENSOR, 1, (const uint64_t[]){4}, 32);
}
static void no_rank(gguf_maker *m) { gguf_tensor(m, "x", 0, 0, NULL, 4); }
static void rank_5(gguf_maker *m) {
    gguf_tensor(m, "x", 0, 5, (const uint64_t[]){1, 1, 1, 1, 1}, 4);
}
static void rank_4(gguf_maker *m) { gguf_tensor(m, "x", 0, 4, (const uint64_t[]){1, 2, 1, 1}, 8); }
static void empty(gguf_maker *m) { gguf_tensor(m, "x", 0, 2, (const uint64_t[]){4, 0}, 0); }
static void vast(gguf_maker *m) {
    gguf_tensor(m, "x", 0, 2, (const uint64_t[]){UINT64_C(1) << 40, UINT64_C(1) << 40}, 4);
}
static void vast_bytes(gguf_maker *m) {
    gguf_tensor(m, "x", 0, 1, (const uint64_t[]){UINT64_C(1) << 62}, 4);
}
static void nul_tensor(gguf_maker *m) {
    gguf_tensor(m, "x", 0, 1, (const uint64_t[]){1}, 4);
    m->tensors.bytes[m->tensors.count - 25] = 0;
}
static void odd_tensor(gguf_maker *m) {
    gguf_tensor(m, "x", 0, 1, (const uint64_t[]){1}, 4);
    m->tensors.bytes[m->tensors.count - 25] = 0xff;
}
static void no_tensor_name(gguf_maker *m) { gguf_tensor(m, "", 0, 1, (const uint64_t[]){1}, 4); }
static void move(gguf_maker *m, size_t tensor, uint64_t to) {
    for (size_t i = 0; i < 8; i++)
        m->tensors.bytes[m->places[tensor] + i] = (unsigned char)(to >> 8 * i);
}
static void unaligned(gguf_maker *m) { move(m, 1, 113); }
static void overlap(gguf_maker *m) { move(m, 1, 96); }
static void hole(gguf_maker *m) { move(m, 1, 160); }
static void wrapped(gguf_maker *m) { move(m, 0, UINT64_MAX - 31); }
static void swapped(gguf_maker *m) { /* in another order than that of the list */
    move(m, 1, 352);
    move(m, 6, 128);
}
static void too_much(gguf_maker *m) {
    for (int i = 0; i < 64; i++)
        gguf_put(&m->data, 0, 1);
}
static void too_little(gguf_maker *m) { m->data.count -= 4; }

/* Architectures. */
static void gemma(gguf_maker *m) { gguf_text(m, "general.architecture", "gemma"); }
static void number(gguf_maker *m) { gguf_u32(m, "general.architecture", 1); }
static void adapter(gguf_maker *m) { gguf_text(m, "general.type", "adapter"); }
static void list_of_heads(gguf_maker *m) {
    numbers(m, "llama.attention.head_count", (const uint32_t[]){2}, 1);
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
    numbers(m, "llama.expert_count", (const uint32_t[]){0}, 1);
}
static void text_of_experts(gguf_maker *m) { gguf_text(m, "llama.expert_count", ""); }
static void softcap(gguf_maker *m) {
    gguf_number(m, "llama.final_logit_softcapping", F32, ONE_F32, 4);
}
static void not_causal(gguf_maker *m) { gguf_number(m, "llama.attention.causal", BOOL, 0, 1); }
static void causal(gguf_maker *m) { gguf_number(m, "llama.attention.causal", BOOL, 1, 1); }
static void norms_of_q(gguf_maker *m) { f32(m, "blk.0.attn_q_norm.weight", 2, 0); }
static void narrow_rope(gguf_maker *m) { gguf_u32(m, "llama.rope.dimension_count", 1); }
static void narrow_values(gguf_maker *m) { gguf_u32(m, "llama.attention.value_length", 1); }
static void dynamic(gguf_maker *m) { gguf_text(m, "llama.rope.scaling.type", "dynamic"); }
static void longrope(gguf_maker *m) { gguf_text(m, "llama.rope.scaling.type", "longrope"); }
static void long_factors(gguf_maker *m) {
    longrope(m);
    gguf_u32(m, "llama.rope.scaling.original_context_length", 4);
    gguf_number(m, "llama.rope.scaling.attn_factor", F32, ONE_F32 + 1, 4);
    f32(m, "rope_factors_long.weight", 1, 0);
    f32(m, "rope_factors_short.weight", 1, 0);
}
static void long_alone(gguf_maker *m) {
    longrope(m);
    f32(m, "rope_factors_long.weight", 1, 0);
}
static void wide_factors(gguf_maker *m) {
    longrope(m);
    f32(m, "rope_factors_long.weight", 2, 0);
    f32(m, "rope_factors_short.weight", 2, 0);
}
static void matrix_factors(gguf_maker *m) {
    longrope(m);
    f32(m, "rope_factors_long.weight", 1, 0);
    f32(m, "rope_factors_short.weight", 1, 1);
}
static void short_numbers(gguf_maker *m) {
    const uint64_t one = 1;
    longrope(m);
    f32(m, "rope_factors_long.weight", 1, 0);
    gguf_tensor(m, "rope_factors_short.weight", BF16, 1, &one, 2);
}
static void no_number_factor(gguf_maker *m) {
    longrope(m);
    f32(m, "rope_factors_short.weight", 1, 0);
    memset(m->data.bytes + m->data.count - 4, 0xff, 4);
    f32(m, "rope_factors_long.weight", 1, 0);
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
    f32(m, "rope_factors_long.weight", 1, 0);
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
static void inside(gguf_maker *m) { move(m, 1, 32); }
static void infinite_items(gguf_maker *m) {
    gguf_numbers(m, "llama.x", F32, (const uint32_t[]){0x7f800000}, 1);
}
static void odd_own_text(gguf_maker *m) { gguf_text(m, "llama.x", "\xff"); }
static void kind_number(gguf_maker *m) { gguf_u32(m, "tokenizer.ggml.model", 1); }
static void merges_number(gguf_maker *m) { gguf_u32(m, "tokenizer.ggml.merges", 1); }
static void words_number(gguf_maker *m) { gguf_u32(m, "tokenizer.ggml.pre", 1); }
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
static void divisors(gguf_maker *m) { f32(m, "rope_freqs.weight", 1, 0); }
static void two_divisors(gguf_maker *m) { f32(m, "rope_freqs.weight", 2, 0); }
static void no_divisor(gguf_maker *m) {
    f32(m, "rope_freqs.weight", 1, 0);
    memset(m->data.bytes + m->data.count - 4, 0, 4);
}
static void eos_beyond(gguf_maker *m) { gguf_u32(m, "tokenizer.ggml.eos_token_id", 7); }
static void eos_text(gguf_maker *m) { gguf_text(m, "tokenizer.ggml.eos_token_id", "0"); }
static void other_vocabulary(gguf_maker *m) { gguf_u32(m, "llama.vocab_size", 8); }

/* Tokenizers. */
static void rwkv(gguf_maker *m) { gguf_text(m, "tokenizer.ggml.model", "rwkv"); }
static void spm(gguf_maker *m) { gguf_text(m, "tokenizer.ggml.model", "llama"); }
static void falcon(gguf_maker *m) { gguf_text(m, "tokenizer.ggml.pre", "falcon"); }
static void type_numbers(gguf_maker *m) {
    numbers(m, "tokenizer.ggml.tokens", (const uint32_t[]){1}, 1);
}
static void few_types(gguf_maker *m) {
    numbers(m, "tokenizer.ggml.token_type", (const uint32_t[]){1, 1}, 2);
}
static void odd_types(gguf_maker *m) {
    numbers(m, "tokenizer.ggml.token_type", (const uint32_t[]){1, 1, 1, 1, 1, 7, 1}, 7);
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

#define AT(where, ...)                                                                             \
    NULL, NULL, where, sizeof((unsigned char[]){__VA_ARGS__}), { __VA_ARGS__ }
const gguf_row gguf_rows[] = {
    {"good", ISOBIT_OK, "", 0, NULL, NULL, 0, 0, {0}},
    {"version 2", ISOBIT_OK, "", 0, AT(4, 2)},

    /* The head. */
    {"no GGUF", ISOBIT_E_UNSUPPORTED, "model.gguf: this is no GGUF file", 0, AT(3, 'H')},
    {"version 1", ISOBIT_E_UNSUPPORTED, "GGUF of version 1; isobit reads versions 2 and 3", 0,
     AT(4, 1)},
    {"version 4", ISOBIT_E_UNSUPPORTED, "GGUF of version 4", 0, AT(4, 4)},
    {"version 0", ISOBIT_E_UNSUPPORTED, "GGUF of version 0", 0, AT(4, 0)},
    {"big-endian", ISOBIT_E_UNSUPPORTED, "a big-endian GGUF file", 0, AT(4, 0, 0, 0, 3)},
    {"many tensors", ISOBIT_E_LIMIT, "262145 tensors; at most 65536 and 262144", 0, AT(8, 1, 0, 4)},
    {"all tensors", ISOBIT_E_LIMIT, "18446744073709551615 tensors", 0,
     AT(8, 255, 255, 255, 255, 255, 255, 255, 255)},
    {"many values", ISOBIT_E_LIMIT, "65537 values", 0, AT(16, 1, 0, 1)},
    {"more than there is", ISOBIT_E_TRUNCATED, "too short for what it counts", 0, AT(8, 0, 0, 4)},
    {"one tensor more", ISOBIT_E_TRUNCATED, "a tensor goes beyond the end", 0, AT(8, 12)},
    {"one tensor less", ISOBIT_E_HOLE, "the last tensor ends at byte 560", 0, AT(8, 10)},

    /* Metadata. */
    {"values of all types", ISOBIT_OK, "", 0, NULL, unused, 0, 0, {0}},
    {"key twice",
     ISOBIT_E_DUPLICATE,
     "the key \"llama.block_count\" occurs twice",
     0,
     NULL,
     twice,
     0,
     0,
     {0}},
    {"key empty",
     ISOBIT_E_LIMIT,
     "a value has a name that has not 1 to 4096 bytes",
     0,
     NULL,
     no_name,
     0,
     0,
     {0}},
    {"key too long", ISOBIT_E_LIMIT, "has not 1 to 4096 bytes", 0, NULL, long_name, 0, 0, {0}},
    {"key as long as can be", ISOBIT_OK, "", 0, NULL, longest_name, 0, 0, {0}},
    {"key with NUL", ISOBIT_E_UTF8, "not UTF-8, or has a NUL", 0, NULL, nul_name, 0, 0, {0}},
    {"key no UTF-8", ISOBIT_E_UTF8, "not UTF-8, or has a NUL", 0, NULL, odd_name, 0, 0, {0}},
    {"key beyond the end",
     ISOBIT_E_TRUNCATED,
     "a value goes beyond the end",
     0,
     NULL,
     far_name,
     0,
     0,
     {0}},
    {"type 13",
     ISOBIT_E_UNSUPPORTED,
     "the value of \"x\" has the type 13; 0 to 12",
     0,
     NULL,
     odd_type,
     0,
     0,
     {0}},
    {"bool 2",
     ISOBIT_E_CONFIG,
     "the value of \"x\" is neither 0 nor 1",
     0,
     NULL,
     odd_bool,
     0,
     0,
     {0}},
    {"bool 3 in an array", ISOBIT_E_CONFIG, "is neither 0 nor 1", 0, NULL, odd_item, 0, 0, {0}},
    {"array of arrays",
     ISOBIT_E_UNSUPPORTED,
     "\"x\" is an array of arrays",
     0,
     NULL,
     nested,
     0,
     0,
     {0}},
    {"array beyond the end",
     ISOBIT_E_TRUNCATED,
     "\"x\" goes beyond the end",
     0,
     NULL,
     long_array,
     0,
     0,
     {0}},
    {"strings beyond the end",
     ISOBIT_E_TRUNCATED,
     "\"x\" goes beyond the end",
     0,
     NULL,
     long_texts,
     0,
     0,
     {0}},
    {"string beyond the end",
     ISOBIT_E_TRUNCATED,
     "\"x\" goes beyond the end",
     0,
     NULL,
     far_text,
     0,
     0,
     {0}},
    {"split",
     ISOBIT_E_UNSUPPORTED,
     "model.gguf is one of 3 files of a model that was split",
     0,
     NULL,
     split_file,
     0,
     0,
     {0}},
    {"items of a list, unused", ISOBIT_OK, "", 0, NULL, infinite_items, 0, 0, {0}},
    {"split into one", ISOBIT_OK, "", 0, NULL, no_split, 0, 0, {0}},
    {"split into a string",
     ISOBIT_E_CONFIG,
     "\"split.count\" is a string; a 16-bit number is expected",
     0,
     NULL,
     odd_split,
     0,
     0,
     {0}},
    {"alignment 24",
     ISOBIT_E_CONFIG,
     "\"general.alignment\" is 24; a power of 2",
     0,
     NULL,
     align_24,
     0,
     0,
     {0}},
    {"alignment 4", ISOBIT_E_CONFIG, "\"general.alignment\" is 4", 0, NULL, align_4, 0, 0, {0}},
    {"alignment 131072",
     ISOBIT_E_CONFIG,
     "\"general.alignment\" is 131072",
     0,
     NULL,
     align_most,
     0,
     0,
     {0}},
    {"alignment as text",
     ISOBIT_E_CONFIG,
     "\"general.alignment\" is a string; a 32-bit",
     0,
     NULL,
     align_text,
     0,
     0,
     {0}},
    {"alignment 65536",
     ISOBIT_E_OFFSET,
     "tensor \"blk.0.attn_norm.weight\" does not begin at a multiple",
     0,
     NULL,
     align_64k,
     0,
     0,
     {0}},
    {"alignment that the tensors lack",
     ISOBIT_E_OFFSET,
     "tensor \"blk.0.attn_norm.weight\" does not begin at a multiple",
     0,
     NULL,
     align_other,
     0,
     0,
     {0}},

    /* Tensors. */
    {"quantised",
     ISOBIT_E_UNSUPPORTED,
     "tensor \"blk.0.attn_q.weight\" has type Q4_0, which isobit does not read yet",
     0,
     "blk.0.attn_q.weight",
     quantised,
     0,
     0,
     {0}},
    {"quantised, unused",
     ISOBIT_E_UNSUPPORTED,
     "tensor \"x\" has type MXFP4",
     0,
     NULL,
     mxfp4,
     0,
     0,
     {0}},
    {"unknown type",
     ISOBIT_E_UNSUPPORTED,
     "tensor \"x\" has type 4711, which isobit does not know",
     0,
     NULL,
     type_4711,
     0,
     0,
     {0}},
    {"whole numbers, unused", ISOBIT_OK, "", 0, NULL, whole_numbers, 0, 0, {0}},
    {"wider whole numbers", ISOBIT_OK, "", 0, NULL, wider_numbers, 0, 0, {0}},
    {"whole numbers",
     ISOBIT_E_DTYPE,
     "\"output_norm.weight\" has the element type I8",
     0,
     "output_norm.weight",
     needed_numbers,
     0,
     0,
     {0}},
    {"doubles", ISOBIT_OK, "", 0, "output_norm.weight", doubles, 0, 0, {0}},
    {"tensor twice",
     ISOBIT_E_DUPLICATE,
     "tensor \"token_embd.weight\" occurs twice",
     0,
     NULL,
     same_tensor,
     0,
     0,
     {0}},
    {"rank 0",
     ISOBIT_E_LIMIT,
     "tensor \"x\" has not 1 to 4 dimensions",
     0,
     NULL,
     no_rank,
     0,
     0,
     {0}},
    {"rank 5", ISOBIT_E_LIMIT, "has not 1 to 4 dimensions", 0, NULL, rank_5, 0, 0, {0}},
    {"rank 4", ISOBIT_OK, "", 0, NULL, rank_4, 0, 0, {0}},
    {"size 0", ISOBIT_E_SHAPE, "tensor \"x\" has a dimension of 0", 0, NULL, empty, 0, 0, {0}},
    {"product of the shape",
     ISOBIT_E_OVERFLOW,
     "the product of the shape overflows",
     0,
     NULL,
     vast,
     0,
     0,
     {0}},
    {"size in bytes",
     ISOBIT_E_OVERFLOW,
     "the size in bytes overflows",
     0,
     NULL,
     vast_bytes,
     0,
     0,
     {0}},
    {"name with NUL",
     ISOBIT_E_UTF8,
     "a tensor has a name that is not UTF-8",
     0,
     NULL,
     nul_tensor,
     0,
     0,
     {0}},
    {"name no UTF-8",
     ISOBIT_E_UTF8,
     "a tensor has a name that is not UTF-8",
     0,
     NULL,
     odd_tensor,
     0,
     0,
     {0}},
    {"no name",
     ISOBIT_E_LIMIT,
     "a tensor has a name that has not 1 to",
     0,
     NULL,
     no_tensor_name,
     0,
     0,
     {0}},
    {"not aligned",
     ISOBIT_E_OFFSET,
     "\"blk.0.attn_norm.weight\" does not begin at a multiple",
     0,
     NULL,
     unaligned,
     0,
     0,
     {0}},
    {"overlapping",
     ISOBIT_E_OFFSET,
     "\"blk.0.attn_norm.weight\" begins at byte 96 of the data; it should at 128",
     0,
     NULL,
     overlap,
     0,
     0,
     {0}},
    {"a text of the family that is not UTF-8",
     ISOBIT_E_CONFIG,
     "\"llama.x\" is not finite, or a string that is not UTF-8",
     0,
     NULL,
     odd_own_text,
     0,
     0,
     {0}},
    {"one in another",
     ISOBIT_E_OFFSET,
     "\"blk.0.attn_norm.weight\" begins at byte 32 of the data; it should at 128",
     0,
     NULL,
     inside,
     0,
     0,
     {0}},
    {"hole", ISOBIT_E_HOLE, "begins at byte 160 of the data", 0, NULL, hole, 0, 0, {0}},
    {"end beyond 2^64",
     ISOBIT_E_OVERFLOW,
     "\"token_embd.weight\" ends beyond 2^64 bytes",
     0,
     NULL,
     wrapped,
     0,
     0,
     {0}},
    {"another order", ISOBIT_OK, "", 0, NULL, swapped, 0, 0, {0}},
    {"behind the last tensor",
     ISOBIT_E_HOLE,
     "the last tensor ends at byte 592 of the data",
     0,
     NULL,
     too_much,
     0,
     0,
     {0}},
    {"not all data",
     ISOBIT_E_TRUNCATED,
     "\"output_norm.weight\" ends at byte 592 of the data, of which there are 588",
     0,
     NULL,
     too_little,
     0,
     0,
     {0}},
    {"missing",
     ISOBIT_E_MISSING,
     "model.gguf has no tensor \"blk.0.attn_v.weight\"",
     0,
     "blk.0.attn_v.weight",
     NULL,
     0,
     0,
     {0}},

    /* Architectures. */
    {"no architecture",
     ISOBIT_E_MISSING,
     "no key \"general.architecture\"",
     0,
     "general.architecture",
     NULL,
     0,
     0,
     {0}},
    {"architecture a number",
     ISOBIT_E_CONFIG,
     "\"general.architecture\" is a 32-bit number",
     0,
     "general.architecture",
     number,
     0,
     0,
     {0}},
    {"another architecture",
     ISOBIT_E_UNSUPPORTED,
     "the architecture \"gemma\" is not one of llama, qwen2, qwen3, gpt2, bert, t5",
     0,
     "general.architecture",
     gemma,
     0,
     0,
     {0}},
    {"adapter",
     ISOBIT_E_UNSUPPORTED,
     "\"general.type\" is not \"model\"",
     0,
     NULL,
     adapter,
     0,
     0,
     {0}},
    {"no layers",
     ISOBIT_E_MISSING,
     "model.gguf has no key \"llama.block_count\"",
     0,
     "llama.block_count",
     NULL,
     0,
     0,
     {0}},
    {"no epsilon",
     ISOBIT_E_MISSING,
     "no key \"llama.attention.layer_norm_rms_epsilon\"",
     0,
     "llama.attention.layer_norm_rms_epsilon",
     NULL,
     0,
     0,
     {0}},
    {"no positions",
     ISOBIT_E_MISSING,
     "no key \"llama.context_length\"",
     0,
     "llama.context_length",
     NULL,
     0,
     0,
     {0}},
    {"heads of each layer",
     ISOBIT_E_CONFIG,
     "\"llama.attention.head_count\" is a list",
     0,
     "llama.attention.head_count",
     list_of_heads,
     0,
     0,
     {0}},
    {"heads as text",
     ISOBIT_E_CONFIG,
     "\"llama.attention.head_count\" is \"2\"",
     0,
     "llama.attention.head_count",
     text_of_heads,
     0,
     0,
     {0}},
    {"three heads",
     ISOBIT_E_CONFIG,
     "\"llama.embedding_length\" 4 is not a multiple of \"llama.attention.head_count\" 3",
     0,
     "llama.attention.head_count",
     three_heads,
     0,
     0,
     {0}},
    {"not a number",
     ISOBIT_E_CONFIG,
     "\"llama.attention.layer_norm_rms_epsilon\" is not finite",
     0,
     "llama.attention.layer_norm_rms_epsilon",
     no_number,
     0,
     0,
     {0}},
    {"two layers",
     ISOBIT_E_MISSING,
     "no tensor \"blk.1.attn_q.weight\"",
     0,
     "llama.block_count",
     many_layers,
     0,
     0,
     {0}},
    {"experts",
     ISOBIT_E_UNSUPPORTED,
     "\"llama.expert_count\" is not 0",
     0,
     NULL,
     experts,
     0,
     0,
     {0}},
    {"experts in an array",
     ISOBIT_E_UNSUPPORTED,
     "\"llama.expert_count\" is not 0",
     0,
     NULL,
     listed_experts,
     0,
     0,
     {0}},
    {"experts as text",
     ISOBIT_E_UNSUPPORTED,
     "\"llama.expert_count\" is not 0",
     0,
     NULL,
     text_of_experts,
     0,
     0,
     {0}},
    {"no experts", ISOBIT_OK, "", 0, NULL, no_experts, 0, 0, {0}},
    {"soft caps",
     ISOBIT_E_UNSUPPORTED,
     "\"llama.final_logit_softcapping\" is not 0",
     0,
     NULL,
     softcap,
     0,
     0,
     {0}},
    {"not causal",
     ISOBIT_E_UNSUPPORTED,
     "\"llama.attention.causal\" is not as",
     0,
     NULL,
     not_causal,
     0,
     0,
     {0}},
    {"causal", ISOBIT_OK, "", 0, NULL, causal, 0, 0, {0}},
    {"norms of q",
     ISOBIT_E_UNSUPPORTED,
     "tensor \"blk.0.attn_q_norm.weight\" is of a variant",
     0,
     NULL,
     norms_of_q,
     0,
     0,
     {0}},
    {"a part of a head turns",
     ISOBIT_E_UNSUPPORTED,
     "\"llama.rope.dimension_count\" is not the width of a head, 2",
     0,
     NULL,
     narrow_rope,
     0,
     0,
     {0}},
    {"narrow values",
     ISOBIT_E_UNSUPPORTED,
     "\"llama.attention.value_length\" is not the width",
     0,
     NULL,
     narrow_values,
     0,
     0,
     {0}},
    {"scalings in an array",
     ISOBIT_E_UNSUPPORTED,
     "\"llama.rope.scaling.type\" is not \"none\", \"linear\", \"yarn\" or \"longrope\"",
     0,
     NULL,
     scalings,
     0,
     0,
     {0}},
    {"first token a text, the model",
     ISOBIT_E_CONFIG,
     "\"tokenizer.ggml.bos_token_id\" is a string; a 32-bit number",
     0,
     NULL,
     bos_text,
     0,
     0,
     {0}},
    {"another scaling",
     ISOBIT_E_UNSUPPORTED,
     "\"llama.rope.scaling.type\" is not \"none\", \"linear\", \"yarn\" or \"longrope\"",
     0,
     NULL,
     dynamic,
     0,
     0,
     {0}},
    {"longrope", ISOBIT_OK, "", 0, NULL, long_factors, 0, 0, {0}},
    {"longrope without factors",
     ISOBIT_E_MISSING,
     "has no tensor \"rope_factors_short.weight\"",
     0,
     NULL,
     long_alone,
     0,
     0,
     {0}},
    {"longrope, another width",
     ISOBIT_E_CONFIG,
     "\"short_factor\" has 2 numbers; 1 are expected",
     0,
     NULL,
     wide_factors,
     0,
     0,
     {0}},
    {"longrope, a matrix",
     ISOBIT_E_SHAPE,
     "\"rope_factors_short.weight\" has type F32 and 2 dimensions",
     0,
     NULL,
     matrix_factors,
     0,
     0,
     {0}},
    {"longrope, BF16",
     ISOBIT_E_SHAPE,
     "\"rope_factors_short.weight\" has type BF16 and 1 dim",
     0,
     NULL,
     short_numbers,
     0,
     0,
     {0}},
    {"longrope, not a number",
     ISOBIT_E_RANGE,
     "\"rope_factors_short.weight\": element 0 is not finite",
     0,
     NULL,
     no_number_factor,
     0,
     0,
     {0}},
    {"YaRN with factors",
     ISOBIT_E_UNSUPPORTED,
     "tensor \"rope_factors_long.weight\" is of a variant",
     0,
     NULL,
     factors_of_yarn,
     0,
     0,
     {0}},
    {"YaRN", ISOBIT_OK, "", 0, NULL, yarn, 0, 0, {0}},
    {"YaRN without its ramp",
     ISOBIT_E_UNSUPPORTED,
     "\"llama.rope.scaling.yarn_ext_factor\" is not 1; isobit",
     0,
     NULL,
     yarn_ext,
     0,
     0,
     {0}},
    {"YaRN of DeepSeek",
     ISOBIT_E_UNSUPPORTED,
     "\"llama.rope.scaling.yarn_log_multiplier\" is not 0; isobit",
     0,
     NULL,
     yarn_log,
     0,
     0,
     {0}},
    {"scaled cosines",
     ISOBIT_E_UNSUPPORTED,
     "\"llama.rope.scaling.attn_factor\" is not 1; isobit",
     0,
     NULL,
     linear_scaled,
     0,
     0,
     {0}},
    {"YaRN with a text", ISOBIT_E_CONFIG, "\"beta_fast\" is \"32\"", 0, NULL, yarn_beta, 0, 0, {0}},
    {"no scaling", ISOBIT_OK, "", 0, NULL, no_scaling, 0, 0, {0}},
    {"no factor",
     ISOBIT_E_MISSING,
     "\"llama.rope.scaling.factor\" is not there",
     0,
     NULL,
     no_factor,
     0,
     0,
     {0}},
    {"a factor alone",
     ISOBIT_E_MISSING,
     "\"llama.rope.scaling.factor\" is there without a type",
     0,
     NULL,
     factor_alone,
     0,
     0,
     {0}},
    {"an old factor", ISOBIT_OK, "", 0, NULL, old_factor, 0, 0, {0}},
    {"divisors", ISOBIT_OK, "", 0, NULL, divisors, 0, 0, {0}},
    {"two divisors",
     ISOBIT_E_SHAPE,
     "\"rope_freqs.weight\" has rank 1 and shape [2]; [1]",
     0,
     NULL,
     two_divisors,
     0,
     0,
     {0}},
    {"divisor 0",
     ISOBIT_E_RANGE,
     "\"rope_freqs.weight\": element 0 is not above 0",
     0,
     NULL,
     no_divisor,
     0,
     0,
     {0}},
    {"end beyond the vocabulary",
     ISOBIT_E_CONFIG,
     "\"eos_token_id\" is 7; the vocabulary has 7 tokens",
     0,
     "tokenizer.ggml.eos_token_id",
     eos_beyond,
     0,
     0,
     {0}},
    {"end as text",
     ISOBIT_E_CONFIG,
     "\"tokenizer.ggml.eos_token_id\" is a string",
     0,
     "tokenizer.ggml.eos_token_id",
     eos_text,
     0,
     0,
     {0}},
    {"no end", ISOBIT_OK, "", 0, "tokenizer.ggml.eos_token_id", NULL, 0, 0, {0}},
    {"another vocabulary",
     ISOBIT_E_SHAPE,
     "\"token_embd.weight\" has rank 2 and shape [7, 4]",
     0,
     NULL,
     other_vocabulary,
     0,
     0,
     {0}},

    /* Tokenizers. */
    {"tokens", ISOBIT_OK, "", 1, NULL, NULL, 0, 0, {0}},
    {"no tokenizer",
     ISOBIT_E_MISSING,
     "no key \"tokenizer.ggml.model\"",
     1,
     "tokenizer.ggml.model",
     NULL,
     0,
     0,
     {0}},
    {"another kind",
     ISOBIT_E_UNSUPPORTED,
     "\"tokenizer.ggml.model\" is \"rwkv\", which isobit does not have",
     1,
     "tokenizer.ggml.model",
     rwkv,
     0,
     0,
     {0}},
    {"SentencePiece with words",
     ISOBIT_E_UNSUPPORTED,
     "\"tokenizer.ggml.pre\" is \"gpt-2\", which isobit does not have",
     1,
     "tokenizer.ggml.model",
     spm,
     0,
     0,
     {0}},
    {"no words",
     ISOBIT_E_MISSING,
     "no key \"tokenizer.ggml.pre\"",
     1,
     "tokenizer.ggml.pre",
     NULL,
     0,
     0,
     {0}},
    {"other words",
     ISOBIT_E_UNSUPPORTED,
     "\"tokenizer.ggml.pre\" is \"falcon\", which",
     1,
     "tokenizer.ggml.pre",
     falcon,
     0,
     0,
     {0}},
    {"no tokens",
     ISOBIT_E_MISSING,
     "no key \"tokenizer.ggml.tokens\"",
     1,
     "tokenizer.ggml.tokens",
     NULL,
     0,
     0,
     {0}},
    {"tokens as numbers",
     ISOBIT_E_CONFIG,
     "\"tokenizer.ggml.tokens\" is an array, each item a signed 32-bit number; an array, each item "
     "a string",
     1,
     "tokenizer.ggml.tokens",
     type_numbers,
     0,
     0,
     {0}},
    {"no merges",
     ISOBIT_E_MISSING,
     "no key \"tokenizer.ggml.merges\"",
     1,
     "tokenizer.ggml.merges",
     NULL,
     0,
     0,
     {0}},
    {"two types",
     ISOBIT_E_CONFIG,
     "7 tokens, but 2 types of tokens",
     1,
     "tokenizer.ggml.token_type",
     few_types,
     0,
     0,
     {0}},
    {"type 7",
     ISOBIT_E_CONFIG,
     "token 5 has the type 7; 1 to 6 are possible",
     1,
     "tokenizer.ggml.token_type",
     odd_types,
     0,
     0,
     {0}},
    {"no types", ISOBIT_OK, "", 1, "tokenizer.ggml.token_type", NULL, 0, 0, {0}},
    {"no pair",
     ISOBIT_E_CONFIG,
     "merge 0 is no pair",
     1,
     "tokenizer.ggml.merges",
     no_pair,
     0,
     0,
     {0}},
    {"empty merge",
     ISOBIT_E_CONFIG,
     "merge 0 is no pair",
     1,
     "tokenizer.ggml.merges",
     empty_merge,
     0,
     0,
     {0}},
    {"merge of no token",
     ISOBIT_E_CONFIG,
     "model.gguf: merge 0 has parts that are not",
     1,
     "tokenizer.ggml.merges",
     no_token,
     0,
     0,
     {0}},
    {"token twice",
     ISOBIT_E_DUPLICATE,
     "token 5, \"a\", occurs twice",
     1,
     "tokenizer.ggml.tokens",
     same_token,
     0,
     0,
     {0}},
    {"token no UTF-8",
     ISOBIT_E_UTF8,
     "token 5 is not UTF-8",
     1,
     "tokenizer.ggml.tokens",
     odd_token,
     0,
     0,
     {0}},
    {"token with NUL",
     ISOBIT_E_UTF8,
     "token 5 is not UTF-8, or has a NUL",
     1,
     "tokenizer.ggml.tokens",
     nul_token,
     0,
     0,
     {0}},
    {"a number for the kind",
     ISOBIT_E_CONFIG,
     "\"tokenizer.ggml.model\" is a 32-bit number; a string is expected",
     1,
     "tokenizer.ggml.model",
     kind_number,
     0,
     0,
     {0}},
    {"a number for the merges",
     ISOBIT_E_CONFIG,
     "\"tokenizer.ggml.merges\" is a 32-bit number; an array, each item a string is expected",
     1,
     "tokenizer.ggml.merges",
     merges_number,
     0,
     0,
     {0}},
    {"a number for the words",
     ISOBIT_E_CONFIG,
     "\"tokenizer.ggml.pre\" is a 32-bit number; a string is expected",
     1,
     "tokenizer.ggml.pre",
     words_number,
     0,
     0,
     {0}},
    {"no first token",
     ISOBIT_E_MISSING,
     "no key \"tokenizer.ggml.bos_token_id\"",
     1,
     NULL,
     wants_bos,
     0,
     0,
     {0}},
    {"first token beyond",
     ISOBIT_E_CONFIG,
     "\"tokenizer.ggml.bos_token_id\" is 7, which is no",
     1,
     NULL,
     bos_beyond,
     0,
     0,
     {0}},
    {"first token unused",
     ISOBIT_E_CONFIG,
     "\"tokenizer.ggml.bos_token_id\" is 6, which is no",
     1,
     NULL,
     bos_unused,
     0,
     0,
     {0}},
    {"first token a number",
     ISOBIT_E_CONFIG,
     "\"tokenizer.ggml.add_bos_token\" is a 32-bit number; true or false",
     1,
     NULL,
     bos_number,
     0,
     0,
     {0}},
};
const size_t gguf_row_count = sizeof gguf_rows / sizeof *gguf_rows;

blob gguf_spoilt(const gguf_row *row) {
    gguf_maker m = {.skip = row->skip};
    gguf_good(&m);
    m.skip = NULL;
    if (row->add)
        row->add(&m);
    blob b = gguf_finish(&m);
    memcpy(b.bytes + row->at, row->to, row->bytes);
    return b;
}
