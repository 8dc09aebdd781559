/* SPDX-License-Identifier: MIT
 *
 * See model_files.h. A test that cannot write its files has no result: abort.
 */
#include "model_files.h"

#include <endian.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void files_make(files *f) {
    (void)snprintf(f->directory, sizeof f->directory, "/tmp/isobit-test-XXXXXX");
    if (!mkdtemp(f->directory))
        abort();
}

void files_path(const files *f, const char *name, char *path, size_t bytes) {
    (void)snprintf(path, bytes, "%s/%s", f->directory, name);
}

void files_write(const files *f, const char *name, const void *data, size_t bytes) {
    char path[160];
    files_path(f, name, path, sizeof path);
    FILE *out = fopen(path, "wb");
    if (!out || (bytes && fwrite(data, 1, bytes, out) != bytes) || fclose(out) != 0)
        abort();
}

void files_text(const files *f, const char *name, const char *text) {
    files_write(f, name, text, strlen(text));
}

void files_remove(const files *f) {
    static const char *const names[] = {"config.json",
                                        "generation_config.json",
                                        "model.safetensors",
                                        "tokenizer_config.json",
                                        "vocab.json",
                                        "pytorch_model.bin",
                                        "tokenizer.json",
                                        "merges.txt",
                                        "vocab.txt",
                                        "modules.json",
                                        "sentence_bert_config.json",
                                        "config_sentence_transformers.json",
                                        "1_Pooling/config.json",
                                        "1_Pooling"};
    char path[160];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        files_path(f, names[i], path, sizeof path);
        (void)unlink(path);
        (void)rmdir(path);
    }
    (void)rmdir(f->directory);
}

void blob_add(blob *b, const void *data, size_t bytes) {
    if (b->count + bytes > b->room) {
        b->room = 2 * (b->count + bytes) + 64;
        if (!(b->bytes = realloc(b->bytes, b->room)))
            abort();
    }
    if (bytes)
        memcpy(b->bytes + b->count, data, bytes);
    b->count += bytes;
}

/* A number as files hold it: little-endian. */
static void add_float(blob *b, float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = htole32(bits);
    blob_add(b, &bits, sizeof bits);
}

void blob_free(blob *b) {
    free(b->bytes);
    *b = (blob){0};
}

blob blob_file(const char *header, size_t header_bytes, size_t data_bytes) {
    blob b = {0};
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)header_bytes >> (8 * i));
    blob_add(&b, length, 8);
    blob_add(&b, header, header_bytes);
    for (size_t i = 0; i < data_bytes; i++)
        blob_add(&b, "", 1);
    return b;
}

/* In [-1, 1). */
static float builder_random(builder *b) {
    b->state = b->state * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(b->state >> 32) * 0x1p-31f;
}

void builder_given(builder *b, const char *name, const char *dtype, const char *shape,
                   const void *elements, size_t bytes) {
    char entry[400];
    (void)snprintf(entry, sizeof entry,
                   "%c\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                   b->header.count ? ',' : '{', name, dtype, shape, b->data.count,
                   b->data.count + bytes);
    blob_add(&b->header, entry, strlen(entry));
    blob_add(&b->data, elements, bytes);
}

/* A matrix of int8, and a scale for each row. */
static void add_integers(builder *b, const char *name, size_t n, size_t k, float spread) {
    blob integers = {0}, scales = {0};
    char shape[48], scale_name[200];
    for (size_t i = 0; i < n * k; i++) {
        const int8_t q = (int8_t)lrintf(127 * builder_random(b));
        blob_add(&integers, &q, 1);
    }
    for (size_t i = 0; i < n; i++)
        add_float(&scales, spread / 127 * (1.5f + builder_random(b)));
    (void)snprintf(shape, sizeof shape, "%zu,%zu", n, k);
    builder_given(b, name, "I8", shape, integers.bytes, integers.count);
    (void)snprintf(shape, sizeof shape, "%zu,1", n);
    (void)snprintf(scale_name, sizeof scale_name, "%s_scale", name);
    builder_given(b, scale_name, "F32", shape, scales.bytes, scales.count);
    blob_free(&integers);
    blob_free(&scales);
}

void builder_tensor(builder *b, const char *name, size_t n, size_t k, float centre, float spread) {
    char entry[400];
    const size_t count = n * (k ? k : 1);
    if (b->skip && strcmp(b->skip, name) == 0)
        return;
    if (b->int8 && n > 1 && k) {
        add_integers(b, name, n, k, spread);
        return;
    }
    const char *dtype = b->odd && strcmp(b->odd, name) == 0 ? b->dtype : "F32";
    char shape[48];
    (void)snprintf(shape, sizeof shape, k ? "%zu,%zu" : "%zu", n, k);
    (void)snprintf(entry, sizeof entry,
                   "%c\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                   b->header.count ? ',' : '{', name, dtype, shape, b->data.count,
                   b->data.count + count * 4);
    blob_add(&b->header, entry, strlen(entry));
    for (size_t i = 0; i < count; i++) {
        add_float(&b->data, centre + spread * builder_random(b));
    }
}

static void builder_linear(builder *b, const char *prefix, const char *tail, size_t n, size_t k) {
    char name[160];
    (void)snprintf(name, sizeof name, "%s%s.weight", prefix, tail);
    builder_tensor(b, name, n, k, 0, 1.5f / sqrtf((float)k));
    (void)snprintf(name, sizeof name, "%s%s.bias", prefix, tail);
    builder_tensor(b, name, n, 0, 0, 0.1f);
}

static void builder_norm(builder *b, const char *prefix, const char *tail, size_t d) {
    char name[160];
    (void)snprintf(name, sizeof name, "%s%s.weight", prefix, tail);
    builder_tensor(b, name, d, 0, 1, 0.3f);
    (void)snprintf(name, sizeof name, "%s%s.bias", prefix, tail);
    builder_tensor(b, name, d, 0, 0, 0.1f);
}

static void builder_attention(builder *b, const char *prefix, const char *name, size_t d) {
    static const char *const parts[] = {"q_proj", "k_proj", "v_proj", "out_proj"};
    char tail[64];
    for (int i = 0; i < 4; i++) {
        (void)snprintf(tail, sizeof tail, "%s.%s", name, parts[i]);
        builder_linear(b, prefix, tail, d, d);
    }
    (void)snprintf(tail, sizeof tail, "%s_layer_norm", name);
    builder_norm(b, prefix, tail, d);
}

void builder_model(builder *b, size_t V, size_t d, size_t f, int bias) {
    builder_tensor(b, "model.shared.weight", V, d, 0, 1);
    for (int decoder = 0; decoder < 2; decoder++) {
        const char *prefix = decoder ? "model.decoder.layers.0." : "model.encoder.layers.0.";
        builder_attention(b, prefix, "self_attn", d);
        if (decoder)
            builder_attention(b, prefix, "encoder_attn", d);
        builder_linear(b, prefix, "fc1", f, d);
        builder_linear(b, prefix, "fc2", d, f);
        builder_norm(b, prefix, "final_layer_norm", d);
    }
    if (bias)
        builder_tensor(b, "final_logits_bias", 1, V, 0, 0.5f);
}

void builder_write(builder *b, const files *f) {
    unsigned char length[8];
    blob file = {0};
    blob_add(&b->header, "}", 1);
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)b->header.count >> (8 * i));
    blob_add(&file, length, 8);
    blob_add(&file, b->header.bytes, b->header.count);
    blob_add(&file, b->data.bytes, b->data.count);
    files_write(f, "model.safetensors", file.bytes, file.count);
    blob_free(&file);
    blob_free(&b->header);
    blob_free(&b->data);
}

void files_config(const files *f, const char *type, size_t V, size_t d, size_t H, size_t ffn,
                  const char *more) {
    char text[1500];
    (void)snprintf(text, sizeof text,
                   "{\"model_type\":\"%s\",\"vocab_size\":%zu,\"d_model\":%zu,"
                   "\"encoder_layers\":1,\"decoder_layers\":1,\"encoder_attention_heads\":%zu,"
                   "\"decoder_attention_heads\":%zu,\"encoder_ffn_dim\":%zu,"
                   "\"decoder_ffn_dim\":%zu,\"activation_function\":\"relu\"%s}",
                   type, V, d, H, H, ffn, ffn, more);
    files_text(f, "config.json", text);
}
