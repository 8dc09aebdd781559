/* SPDX-License-Identifier: MIT
 *
 * See gguf_files.h: a file, value by value, and what a row makes of the good one.
 */
#include "rows.h"

#include <string.h>

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

void gguf_i32s(gguf_maker *m, const char *key, const uint32_t *values, size_t count) {
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

void gguf_f32(gguf_maker *m, const char *name, uint64_t k, uint64_t n) {
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
    gguf_i32s(m, "tokenizer.ggml.token_type", types, 7);
    gguf_texts(m, "tokenizer.ggml.merges", merges);
    gguf_f32(m, "token_embd.weight", 4, 7);
    gguf_f32(m, "blk.0.attn_norm.weight", 4, 0);
    gguf_f32(m, "blk.0.attn_q.weight", 4, 4);
    gguf_f32(m, "blk.0.attn_k.weight", 4, 2);
    gguf_f32(m, "blk.0.attn_v.weight", 4, 2);
    gguf_f32(m, "blk.0.attn_output.weight", 4, 4);
    gguf_f32(m, "blk.0.ffn_norm.weight", 4, 0);
    gguf_f32(m, "blk.0.ffn_gate.weight", 4, 3);
    gguf_f32(m, "blk.0.ffn_up.weight", 4, 3);
    gguf_f32(m, "blk.0.ffn_down.weight", 3, 4);
    gguf_f32(m, "output_norm.weight", 4, 0);
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

const gguf_row *gguf_row_at(size_t i) {
    if (i < gguf_file_rows.count)
        return &gguf_file_rows.rows[i];
    i -= gguf_file_rows.count;
    return i < gguf_model_rows.count ? &gguf_model_rows.rows[i] : NULL;
}

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
