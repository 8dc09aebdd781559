/* SPDX-License-Identifier: MIT
 *
 * A GGUF file: its places, its configuration, its tokenizer, and, where it is a small one, the
 * model with a token through it. Of what is accepted every tensor must lie in the file, and every
 * value within what precedes the tensors.
 */
#include "blocks.h"
#include "fuzz.h"
#include "gguf.h"

#include <stdlib.h>
#include <string.h>

#define PATH FUZZ_DIRECTORY "/model.gguf"
enum { MOST_POSITIONS = 4096, MOST_IDS = 128 };

static void check_values(const model_gguf *g, const model_checkpoint *c) {
    const uint64_t all = c->data_start;
    uint64_t sum = 0;
    for (size_t i = 0; i < g->count; i++) {
        const gguf_value *v = &g->values[i];
        FUZZ_CHECK(v->key_bytes && v->type < GGUF_TYPES && v->type != GGUF_ARRAY);
        FUZZ_CHECK(v->array || v->count == 1);
        sum += v->key_bytes + v->bytes;
        if (v->type != GGUF_STRING)
            continue;
        const char *at = v->data;
        for (size_t k = 0; k < v->count; k++) {
            size_t bytes;
            const char *text = model_gguf_string(&at, &bytes);
            FUZZ_CHECK(fuzz_equal(text, text, bytes));
        }
        FUZZ_CHECK(at == v->data + v->bytes);
    }
    FUZZ_CHECK(sum <= all);
}

static void check_tensors(const model_checkpoint *c, uint64_t bytes) {
    uint64_t sum = 0;
    for (size_t i = 0; i < c->header.count; i++) {
        const model_tensor *t = &c->header.tensors[i];
        uint64_t elements = 1;
        FUZZ_CHECK(t->name_bytes && strlen(t->name) == t->name_bytes && !t->strides);
        FUZZ_CHECK(model_checkpoint_find(c, t->name) == t);
        FUZZ_CHECK(t->rank >= 1 && t->rank <= 4);
        for (size_t k = 0; k < t->rank; k++)
            elements *= t->shape[k];
        /* blocks are whole, and other elements take a byte at least */
        const model_block_type *blocks = model_block_type_of(t->dtype);
        if (blocks) {
            FUZZ_CHECK(t->shape[t->rank - 1] % model_block_elements(blocks) == 0);
            elements = elements / model_block_elements(blocks) * blocks->bytes;
        }
        FUZZ_CHECK(elements && elements <= t->end - t->begin);
        FUZZ_CHECK(c->data_start + t->end <= bytes);
        sum += t->end - t->begin;
    }
    FUZZ_CHECK(c->header.count == 0 || c->data_start + sum <= bytes);
}

/* Every byte of the tensors, in the order in which they are read. */
static void read_all(const model_checkpoint *c) {
    iso_error error = {0};
    unsigned char piece[48];
    for (size_t i = 0; i < c->header.count; i++) {
        const model_tensor *t = &c->header.tensors[i];
        const uint64_t all = t->end - t->begin;
        for (uint64_t at = 0; at < all && at < 4096; at += sizeof piece) {
            const size_t n = all - at < sizeof piece ? (size_t)(all - at) : sizeof piece;
            FUZZ_CHECK(model_checkpoint_read(c, t, piece, at, n, &error) == ISOBIT_OK);
            FUZZ_CHECK(fuzz_equal(piece, piece, n));
        }
    }
}

/* Whether a model of it would be small. */
static int read_config(size_t bytes) {
    iso_error error = {0};
    model_arena arena = {0};
    model_checkpoint c;
    model_gguf g;
    model_config config = {0};
    iso_status status = model_gguf_open(&g, &c, FUZZ_DIRECTORY, "model.gguf", 1 << 20, &error);
    FUZZ_CHECK(c.arena.bytes <= 16 * bytes + 1024);
    if (!status) {
        check_values(&g, &c);
        check_tensors(&c, bytes);
        status = model_gguf_config(&g, &c, &config, &arena);
        read_all(&c);
    }
    if (status)
        fuzz_check_error(status, &error);
    model_checkpoint_close(&c);
    model_arena_free(&arena);
    return !status && config.max_positions <= MOST_POSITIONS && config.d <= 4096;
}

/* Read, and mapped or widened: the same bits. */
static void run_model(void) {
    iso_error error = {0};
    iso_model *models[2] = {NULL, NULL};
    float *logits[2] = {NULL, NULL};
    const iso_load_options mapped = {.size = sizeof mapped, .map = 1, .widen = 1};
    const iso_status status = iso_model_load(&models[0], PATH, NULL, NULL, &error);
    FUZZ_CHECK(iso_model_load(&models[1], PATH, &mapped, NULL, &error) == status);
    const iso_model_info *info = iso_model_get_info(models[0]);
    const uint32_t ids[2] = {0};
    if (status) {
        fuzz_check_error(status, &error);
        return;
    }
    FUZZ_CHECK(info->max_positions <= MOST_POSITIONS);
    const size_t floats = 2 * info->target_vocabulary;
    if (info->decoder_layers && info->target_vocabulary <= 4096 && info->max_positions >= 2) {
        for (int i = 0; i < 2; i++) {
            logits[i] = calloc(floats, sizeof **logits);
            FUZZ_CHECK(logits[i]);
            FUZZ_CHECK(iso_logits_f32(logits[i], models[i], NULL, 0, ids, 2, 0, NULL, &error) ==
                       ISOBIT_OK);
        }
        FUZZ_CHECK(fuzz_equal(logits[0], logits[1], floats * sizeof **logits));
    }
    for (int i = 0; i < 2; i++) {
        free(logits[i]);
        iso_model_free(models[i]);
    }
}

static void run_tokenizer(void) {
    static const char text[] = "abc a b<|end|>ab 1234 x";
    iso_error error = {0};
    iso_tokenizer *t = NULL;
    uint32_t ids[MOST_IDS];
    size_t count, length, sequences, needed;
    char back[1024];
    iso_status status = iso_tokenizer_load(&t, PATH, &error);
    if (status) {
        fuzz_check_error(status, &error);
        return;
    }
    status = iso_tokenizer_encode(t, text, sizeof text - 1, ids, MOST_IDS, &count, &length, 1,
                                  &sequences, &error);
    FUZZ_CHECK(status == ISOBIT_OK && count <= MOST_IDS);
    status = iso_tokenizer_decode(t, ids, count, back, sizeof back, &needed);
    FUZZ_CHECK(status == ISOBIT_OK || (status == ISOBIT_E_WORKSPACE && needed > sizeof back));
    iso_tokenizer_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fuzz_no_files();
    uint8_t *exact = fuzz_copy(data, bytes);
    fuzz_file("model.gguf", exact, bytes);
    const int small = read_config(bytes);
    run_tokenizer();
    if (small)
        run_model();
    free(exact);
    return 0;
}
