/* SPDX-License-Identifier: MIT
 *
 * The base model of the paper with random weights, written to a temporary directory in the form
 * that the library loads: what a benchmark needs of a model is its shape.
 */
#include "cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH = 512, HEADS = 8, HIDDEN = 2048, LAYERS = 6, VOCABULARY = 37000 };

/* Goes over all tensors twice: first into the header, then as data. */
struct writer {
    FILE *header, *data;
    uint64_t at; /* bytes of data so far */
    uint32_t random;
};

/* BF16: the upper half of a float between centre - spread and centre + spread. */
static void write_numbers(struct writer *w, size_t count, double centre, double spread) {
    unsigned char bytes[4096];
    for (size_t i = 0; i < count;) {
        size_t used = 0;
        for (; i < count && used < sizeof bytes; i++) {
            w->random = w->random * 1664525U + 1013904223U;
            float x = (float)(centre + spread * ((double)(w->random >> 8) * 0x1p-23 - 1));
            uint32_t bits;
            memcpy(&bits, &x, sizeof bits);
            bytes[used++] = (unsigned char)(bits >> 16);
            bytes[used++] = (unsigned char)(bits >> 24);
        }
        fwrite(bytes, 1, used, w->data);
    }
}

static void tensor(struct writer *w, const char *prefix, const char *name, size_t n, size_t k,
                   double centre, double spread) {
    const size_t count = k != 0 ? n * k : n;
    const uint64_t end = w->at + 2 * (uint64_t)count;
    if (w->data != NULL) {
        write_numbers(w, count, centre, spread);
    } else {
        fprintf(w->header, "%s\"%s%s\":{\"dtype\":\"BF16\",\"shape\":[%zu", w->at != 0 ? "," : "",
                prefix, name, n);
        if (k != 0)
            fprintf(w->header, ",%zu", k);
        fprintf(w->header, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", w->at, end);
    }
    w->at = end;
}

/* y = x W^T + b, the weights so small that y is about as large as x. */
static void linear(struct writer *w, const char *prefix, const char *name, size_t n, size_t k) {
    char full[64];
    snprintf(full, sizeof full, "%s.weight", name);
    tensor(w, prefix, full, n, k, 0, k == WIDTH ? 0.0765 : 0.0383); /* sqrt(3 / k) */
    snprintf(full, sizeof full, "%s.bias", name);
    tensor(w, prefix, full, n, 0, 0, 0.1);
}

static void norm(struct writer *w, const char *prefix, const char *name) {
    char full[64];
    snprintf(full, sizeof full, "%s.weight", name);
    tensor(w, prefix, full, WIDTH, 0, 1, 0.1);
    snprintf(full, sizeof full, "%s.bias", name);
    tensor(w, prefix, full, WIDTH, 0, 0, 0.1);
}

static void attention(struct writer *w, const char *prefix, const char *name) {
    static const char *const parts[] = {"q_proj", "k_proj", "v_proj", "out_proj"};
    char full[48];
    for (int i = 0; i < 4; i++) {
        snprintf(full, sizeof full, "%s.%s", name, parts[i]);
        linear(w, prefix, full, WIDTH, WIDTH);
    }
    snprintf(full, sizeof full, "%s_layer_norm", name);
    norm(w, prefix, full);
}

static void all_tensors(struct writer *w) {
    char prefix[48];
    tensor(w, "", "model.shared.weight", VOCABULARY, WIDTH, 0, 0.0765);
    for (int i = 0; i < 2 * LAYERS; i++) {
        const bool decoder = i >= LAYERS;
        snprintf(prefix, sizeof prefix, "model.%s.layers.%d.", decoder ? "decoder" : "encoder",
                 i % LAYERS);
        attention(w, prefix, "self_attn");
        if (decoder)
            attention(w, prefix, "encoder_attn");
        linear(w, prefix, "fc1", HIDDEN, WIDTH);
        linear(w, prefix, "fc2", WIDTH, HIDDEN);
        norm(w, prefix, "final_layer_norm");
    }
}

static bool write_weights(FILE *file) {
    char *text = NULL;
    size_t bytes = 0;
    struct writer w = {.header = open_memstream(&text, &bytes)};
    if (w.header == NULL)
        return false;
    fputc('{', w.header);
    all_tensors(&w);
    fputc('}', w.header);
    bool written = fclose(w.header) == 0;
    for (int i = 0; i < 8; i++)
        fputc((int)((uint64_t)bytes >> (8 * i) & 0xff), file);
    fwrite(text, 1, bytes, file);
    free(text);
    w = (struct writer){.data = file, .random = 1};
    if (written)
        all_tensors(&w);
    return written && !ferror(file);
}

static bool write_config(FILE *file) {
    return fprintf(file,
                   "{\"model_type\":\"isobit-transformer\",\"vocab_size\":%d,\"d_model\":%d,"
                   "\"encoder_layers\":%d,\"decoder_layers\":%d,\"encoder_attention_heads\":%d,"
                   "\"decoder_attention_heads\":%d,\"encoder_ffn_dim\":%d,\"decoder_ffn_dim\":%d,"
                   "\"max_position_embeddings\":512,\"pad_token_id\":0,\"bos_token_id\":1,"
                   "\"decoder_start_token_id\":1,\"eos_token_id\":2}\n",
                   VOCABULARY, WIDTH, LAYERS, LAYERS, HEADS, HEADS, HIDDEN, HIDDEN) > 0;
}

static bool write_file(const char *directory, const char *name, bool (*write)(FILE *file)) {
    char path[RANDOM_MODEL_PATH + 32];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "wbx");
    if (file == NULL)
        return false;
    bool written = write(file);
    return fclose(file) == 0 && written;
}

int random_model_make(char directory[RANDOM_MODEL_PATH]) {
    const char *place = getenv("TMPDIR");
    if (place == NULL || place[0] == '\0')
        place = "/tmp";
    int length = snprintf(directory, RANDOM_MODEL_PATH, "%s/isobit-bench-XXXXXX", place);
    if (length >= RANDOM_MODEL_PATH || mkdtemp(directory) == NULL) {
        directory[0] = '\0';
        return fail("cannot make a directory in %s for the weights", place);
    }
    if (!write_file(directory, "config.json", write_config) ||
        !write_file(directory, "model.safetensors", write_weights))
        return fail("cannot write the weights (130 MB) to %s", directory);
    return 0;
}

void random_model_remove(const char *directory) {
    static const char *const names[] = {"config.json", "model.safetensors"};
    char path[RANDOM_MODEL_PATH + 32];
    if (directory[0] == '\0')
        return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        unlink(path);
    }
    rmdir(directory);
}
