/* SPDX-License-Identifier: MIT
 *
 * GGUF files with blocks of Q8_0 and Q4_0. Beside each of tests/data/gguf lies one with the floats
 * that the package gguf makes of its blocks (tools/make_gguf.py): results must have the bits of
 * that, with every set and several threads, held in blocks or widened. And what is refused.
 */
#include "gguf.h"

#include "gguf/refused.h"

#include <isobit/model.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GGUF ISOBIT_TEST_DATA "/gguf/"
#define COUNT(a) (sizeof(a) / sizeof *(a))

static const char *const names[] = {"llama-q8_0", "qwen2-q4_0", "qwen3-q"};

static iso_model *load_with(const char *name, const char *end, const iso_load_options *options,
                            const iso_context *context) {
    iso_error error = {0};
    iso_model *model = NULL;
    char path[400];
    (void)snprintf(path, sizeof path, GGUF "%s%s.gguf", name, end);
    if (iso_model_load(&model, path, options, context, &error))
        fail_msg("%s: %s", path, error.message);
    return model;
}

static iso_model *load(const char *name, const char *end, size_t widen, int map,
                       const iso_context *context) {
    const iso_load_options options = {.size = sizeof options, .widen = widen, .map = map};
    return load_with(name, end, &options, context);
}

/* -------------------------------------------------------------------------------- same bits */

enum { LENGTH = 20, MOST = 64 };

/* At once, which has rows enough to dequantise blocks, or token by token. */
static void logits(float *to, const iso_model *model, size_t length, int stepwise,
                   const iso_context *context) {
    static const uint32_t ids[LENGTH] = {7,  11, 5, 2,  49, 0,  23, 8,  1,  33,
                                         12, 49, 3, 30, 31, 32, 40, 41, 10, 9};
    iso_error error = {0};
    memset(to, 0, LENGTH * MOST * sizeof *to);
    assert_true(iso_model_get_info(model)->target_vocabulary <= MOST);
    if (iso_logits_f32(to, model, NULL, 0, ids, length, stepwise, context, &error))
        fail_msg("%s", error.message);
}

static void same(const float *got, const float *expected, const char *what, const char *name) {
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): bits are meant */
    if (memcmp(got, expected, LENGTH * MOST * sizeof *got) != 0)
        fail_msg("%s, %s: other bits", name, what);
}

static void test_same_bits(void **state) {
    static float got[LENGTH * MOST], expected[LENGTH * MOST];
    iso_pool *pool;
    assert_int_equal(iso_pool_create(&pool, 3), ISOBIT_OK);
    for (size_t i = 0; i < COUNT(names); i++)
        for (size_t s = 0; s < 2 * iso_isa_count(); s++) {
            const iso_context context = {.size = sizeof context,
                                         .isa = iso_isa_get(s / 2),
                                         .executor = s % 2 ? iso_pool_executor(pool) : NULL};
            if (iso_isa_missing(context.isa))
                continue;
            iso_model *model = load(names[i], "", 0, 0, &context);
            iso_model *wide = load(names[i], "", 1, 0, &context);
            iso_model *mapped = load(names[i], "", 0, 1, &context);
            iso_model *floats = load(names[i], "-f32", 0, 0, &context);
            for (size_t length = 1; length <= LENGTH; length += length < 10 ? 1 : 10)
                for (int stepwise = 0; stepwise < 2; stepwise++) {
                    logits(expected, floats, length, stepwise, &context);
                    logits(got, model, length, stepwise, &context);
                    same(got, expected, "in blocks", names[i]);
                    logits(got, wide, length, stepwise, &context);
                    same(got, expected, "widened", names[i]);
                    logits(got, mapped, length, stepwise, &context);
                    same(got, expected, "mapped", names[i]);
                }
            iso_model_free(model);
            iso_model_free(wide);
            iso_model_free(mapped);
            iso_model_free(floats);
        }
    iso_pool_destroy(pool);
    (void)state;
}

/* Blocks that are to be computed with int8 become what their floats become. */
static void test_int8(void **state) {
    static float got[LENGTH * MOST], expected[LENGTH * MOST], usual[LENGTH * MOST];
    const iso_load_options int8 = {.size = sizeof int8, .compute = ISOBIT_COMPUTE_INT8};
    for (size_t i = 0; i < COUNT(names); i++) {
        iso_model *model = load_with(names[i], "", &int8, NULL);
        iso_model *floats = load_with(names[i], "-f32", &int8, NULL);
        iso_model *plain = load(names[i], "", 0, 0, NULL);
        const iso_model_info *a = iso_model_get_info(model), *b = iso_model_get_info(floats);
        assert_true(2 * a->parameters_int8 > a->parameters);
        assert_int_equal(a->parameters_int8, b->parameters_int8);
        logits(got, model, LENGTH, 0, NULL);
        logits(expected, floats, LENGTH, 1, NULL);
        logits(usual, plain, LENGTH, 0, NULL);
        same(got, expected, "as int8", names[i]);
        assert_memory_not_equal(got, usual, sizeof got);
        iso_model_free(model);
        iso_model_free(floats);
        iso_model_free(plain);
    }
    (void)state;
}

/* What is said of the weights: the matrices of the three, without ffn_down, whose rows have 48. */
static void test_info(void **state) {
    static const size_t in_8[] = {15488, 0, 0}, in_4[] = {0, 12864, 0};
    for (size_t i = 0; i < COUNT(names); i++) {
        iso_model *model = load(names[i], "", 0, 0, NULL), *wide = load(names[i], "", 1, 0, NULL);
        iso_model *floats = load(names[i], "-f32", 0, 0, NULL);
        const iso_model_info *a = iso_model_get_info(model), *b = iso_model_get_info(wide);
        const iso_model_info *c = iso_model_get_info(floats);
        if (i < 2) {
            assert_int_equal(a->parameters_8, in_8[i]);
            assert_int_equal(a->parameters_4, in_4[i]);
        } else { /* of mixed types what is not stacked with another stays in blocks */
            assert_true(a->parameters_8 + a->parameters_4 > 0);
        }
        assert_int_equal(b->parameters_16 + b->parameters_8 + b->parameters_4, 0);
        assert_int_equal(a->parameters, c->parameters);
        assert_int_equal(b->parameters, c->parameters);
        assert_int_equal(b->weight_bytes, c->weight_bytes);
        assert_true(a->weight_bytes < b->weight_bytes);
        iso_model_free(model);
        iso_model_free(wide);
        iso_model_free(floats);
    }
    (void)state;
}

/* ---------------------------------------------------------------------------- what is refused */

static unsigned char *read_file(const char *name, size_t *bytes) {
    char path[400];
    (void)snprintf(path, sizeof path, GGUF "%s.gguf", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *bytes = (size_t)ftell(file);
    rewind(file);
    unsigned char *all = malloc(*bytes);
    assert_non_null(all);
    assert_int_equal(fread(all, 1, *bytes, file), *bytes);
    (void)fclose(file);
    return all;
}

/* The first and the last scale of every tensor, infinite and NaN; and a file that is cut off within
 * its last tensor. */
static void test_refused(void **state) {
    static const unsigned char bad[][2] = {{0, 0x7c}, {0, 0xfc}, {1, 0x7c}, {0, 0xfe}};
    files f;
    size_t bytes, count = 0;
    files_make(&f);
    for (size_t i = 0; i < COUNT(names); i++) {
        char name[80];
        model_gguf gguf;
        model_checkpoint checkpoint;
        iso_error error = {0};
        unsigned char *all = read_file(names[i], &bytes);
        (void)snprintf(name, sizeof name, "%s.gguf", names[i]);
        assert_int_equal(model_gguf_open(&gguf, &checkpoint, GGUF, name, (size_t)1 << 20, &error),
                         ISOBIT_OK);
        const model_tensor *last = &checkpoint.header.tensors[0];
        for (size_t t = 0; t < checkpoint.header.count; t++) {
            const model_tensor *tensor = &checkpoint.header.tensors[t];
            const size_t size = tensor->dtype == MODEL_Q8_0   ? 34
                                : tensor->dtype == MODEL_Q4_0 ? 18
                                                              : 0;
            last = tensor->end > last->end ? tensor : last;
            for (size_t end = 0; size && end < 2; end++, count++) {
                const uint64_t at =
                    checkpoint.data_start + (end ? tensor->end - size : tensor->begin);
                unsigned char kept[2];
                memcpy(kept, all + at, 2);
                memcpy(all + at, bad[count % COUNT(bad)], 2);
                files_write(&f, "model.gguf", all, bytes);
                refused(&f, ISOBIT_E_RANGE, ": the scale of block ");
                refused(&f, ISOBIT_E_RANGE, tensor->name);
                memcpy(all + at, kept, 2);
            }
        }
        char cut[200];
        (void)snprintf(cut, sizeof cut, "tensor \"%s\" ends at byte", last->name);
        files_write(&f, "model.gguf", all, (size_t)(checkpoint.data_start + last->end - 1));
        refused(&f, ISOBIT_E_TRUNCATED, cut);
        model_checkpoint_close(&checkpoint);
        free(all);
    }
    assert_true(count > 60);
    files_remove(&f);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_int8),
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests_name("gguf_q", tests, NULL, NULL);
}
