/* SPDX-License-Identifier: MIT
 *
 * GGUF's blocks. Read, they are what their definition says, and what the package gguf makes of them
 * (tests/data/blocks.txt). Models of each type have the bits of the same weights in F32, with every
 * set and several threads. What is wrong with a file is said with the name of the tensor.
 */
#include "blocks.h"
#include "elements.h"

#include "gguf/blocks.h"
#include "gguf/refused.h"
#include "gguf_files.h"
#include "sanitized.h"

#include <isobit/model.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const struct {
    const char *name;
    model_dtype dtype;
} types[] = {{"Q4_0", MODEL_Q4_0}, {"Q4_1", MODEL_Q4_1},     {"Q5_0", MODEL_Q5_0},
             {"Q5_1", MODEL_Q5_1}, {"Q8_0", MODEL_Q8_0},     {"IQ4_NL", MODEL_IQ4_NL},
             {"Q2_K", MODEL_Q2_K}, {"IQ4_XS", MODEL_IQ4_XS}, {"Q3_K", MODEL_Q3_K},
             {"Q4_K", MODEL_Q4_K}, {"Q5_K", MODEL_Q5_K},     {"Q6_K", MODEL_Q6_K}};

static const model_block_type *type_of(const char *name) {
    for (size_t i = 0; i < COUNT(types); i++)
        if (strcmp(types[i].name, name) == 0)
            return model_block_type_of(types[i].dtype);
    fail_msg("no type %s", name);
    return NULL;
}

/* ------------------------------------------------------------------------------------- blocks */

static void same_floats(const float *got, const float *expected, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): bits are meant, of zeros too */
        if (memcmp(&got[i], &expected[i], sizeof *got) != 0)
            fail_msg("%s: element %zu is %a, not %a", name, i, (double)got[i], (double)expected[i]);
}

static void blocks_are_as_defined(void **unused) {
    (void)unused;
    unsigned char bytes[256];
    float weights[256], got[256];
    uint64_t state = 7;
    model_block block;
    assert_int_equal(COUNT(types), block_kind_count);
    for (size_t t = 0; t < block_kind_count; t++) {
        const block_kind *kind = &block_kinds[t];
        const model_block_type *type = type_of(kind->name);
        assert_string_equal(type->name, kind->name);
        assert_int_equal(type->bytes, kind->bytes);
        assert_int_equal(model_block_elements(type), kind->elements);
        for (int i = 0; i < 400; i++) {
            block_make(bytes, weights, kind, i % 2, &state);
            assert_true(model_block_read(&block, type, bytes));
            model_block_floats(got, &block, type);
            same_floats(got, weights, kind->elements, kind->name);
        }
    }
}

/* Blocks of random bytes, and what dequantize of the package gguf makes of them. */
static void blocks_are_as_elsewhere(void **unused) {
    (void)unused;
    unsigned char bytes[256];
    char name[16];
    float expected[256], got[256];
    unsigned value;
    size_t lines = 0;
    FILE *file = fopen(ISOBIT_TEST_DATA "/blocks.txt", "r");
    assert_non_null(file);
    for (; fscanf(file, "%15s", name) == 1; lines++) {
        const model_block_type *type = type_of(name);
        model_block block;
        for (size_t i = 0; i < type->bytes; i++) {
            assert_int_equal(fscanf(file, " %2x", &value), 1);
            bytes[i] = (unsigned char)value;
        }
        for (size_t i = 0; i < model_block_elements(type); i++) {
            assert_int_equal(fscanf(file, " %8x", &value), 1);
            memcpy(&expected[i], &value, sizeof value);
        }
        assert_true(model_block_read(&block, type, bytes));
        model_block_floats(got, &block, type);
        same_floats(got, expected, model_block_elements(type), name);
    }
    (void)fclose(file);
    assert_int_equal(lines, 2 * COUNT(types));
}

/* A block, as a model may hold it, of its own form and of that of stacked matrices, as the row of
 * an embedding table and as a packed row: the same bits, of zeros too. */
static void blocks_are_held_exactly(void **unused) {
    (void)unused;
    static const uint32_t first;
    unsigned char bytes[256];
    char held[512];
    float weights[256], got[256];
    uint32_t *packed = aligned_alloc(64, 16384);
    uint64_t state = 5;
    assert_non_null(packed);
    for (size_t t = 0; t < COUNT(types); t++) {
        const block_kind *kind = block_kind_find(types[t].name);
        const model_block_type *type = model_block_type_of(types[t].dtype);
        const model_tensor tensor = {.dtype = types[t].dtype};
        const size_t n = kind->elements;
        for (int i = 0; i < 200; i++) {
            const model_form form = i % 4 < 2  ? model_own_form(&tensor)
                                    : n == 256 ? FORM_K
                                               : FORM_Q5_1;
            const iso_q_format *f = &model_q_formats[form];
            model_block block;
            iso_packed_q row;
            size_t needed;
            block_make(bytes, weights, kind, i % 2, &state);
            assert_true(model_block_read(&block, type, bytes));
            assert_int_equal(model_q_block(f), n);
            assert_true(model_q_block_bytes(f) <= sizeof held);
            model_block_write(held, &block, type, f);
            assert_int_equal(iso_embed_q(got, n, &first, 1, held, f, 1, n, 1, NULL, NULL, 0, NULL),
                             ISOBIT_OK);
            same_floats(got, weights, n, kind->name);
            assert_int_equal(iso_pack_q_bytes(&needed, 1, n, f), ISOBIT_OK);
            assert_true(needed <= 16384);
            assert_int_equal(iso_pack_q(&row, packed, needed, held, 1, 1, n, f, NULL), ISOBIT_OK);
            model_packed_q_row(got, &row, 0);
            same_floats(got, weights, n, kind->name);
        }
    }
    free(packed);
}

/* ------------------------------------------------------------------------------------- models */

enum { D = 256, FFN = 512, WORDS = 40, LENGTH = 9 };

/* A Llama whose matrices have these types by turns; `wide`: the same weights in F32. */
typedef struct blocks_maker {
    gguf_maker m;
    const block_kind *const *kinds;
    size_t kind_count, turn;
    int wide;
    uint64_t state;
} blocks_maker;

static void matrix(blocks_maker *b, const char *name, size_t n, size_t k) {
    const block_kind *kind = b->kinds[b->turn++ % b->kind_count];
    const uint64_t sizes[] = {k, n};
    unsigned char bytes[256];
    float weights[256];
    gguf_tensor(&b->m, name, b->wide ? 0 : kind->type, 2, sizes, 0);
    for (size_t done = 0; done < n * k; done += kind->elements) {
        block_make(bytes, weights, kind, BLOCK_PLAIN, &b->state);
        if (!b->wide)
            blob_add(&b->m.data, bytes, kind->bytes);
        for (size_t e = 0; b->wide && e < kind->elements; e++) {
            uint32_t bits;
            memcpy(&bits, &weights[e], sizeof bits);
            gguf_put(&b->m.data, bits, 4);
        }
    }
}

/* tied: the logits' matrix is that of the embedding. */
static void write_model(const files *f, const block_kind *const *kinds, size_t count, int tied,
                        int wide) {
    blocks_maker b = {.kinds = kinds, .kind_count = count, .wide = wide, .state = 3};
    gguf_maker *m = &b.m;
    m->version = 3;
    m->alignment = 32;
    gguf_text(m, "general.architecture", "llama");
    gguf_u32(m, "llama.block_count", 1);
    gguf_u32(m, "llama.context_length", 16);
    gguf_u32(m, "llama.embedding_length", D);
    gguf_u32(m, "llama.feed_forward_length", FFN);
    gguf_u32(m, "llama.attention.head_count", 4);
    gguf_u32(m, "llama.attention.head_count_kv", 2);
    gguf_number(m, "llama.attention.layer_norm_rms_epsilon", 6, 0x3f800000, 4);
    gguf_text(m, "tokenizer.ggml.model", "none");
    gguf_u32(m, "llama.vocab_size", WORDS);
    matrix(&b, "token_embd.weight", WORDS, D);
    gguf_f32(m, "blk.0.attn_norm.weight", D, 0);
    matrix(&b, "blk.0.attn_q.weight", D, D);
    matrix(&b, "blk.0.attn_k.weight", D / 2, D);
    matrix(&b, "blk.0.attn_v.weight", D / 2, D);
    matrix(&b, "blk.0.attn_output.weight", D, D);
    gguf_f32(m, "blk.0.ffn_norm.weight", D, 0);
    matrix(&b, "blk.0.ffn_gate.weight", FFN, D);
    matrix(&b, "blk.0.ffn_up.weight", FFN, D);
    matrix(&b, "blk.0.ffn_down.weight", D, FFN);
    gguf_f32(m, "output_norm.weight", D, 0);
    if (!tied)
        matrix(&b, "output.weight", WORDS, D);
    blob all = gguf_finish(m);
    files_write(f, "model.gguf", all.bytes, all.count);
    blob_free(&all);
}

static void logits_with(float *to, const files *f, const iso_load_options *options, size_t length,
                        int stepwise, const iso_context *context) {
    static const uint32_t ids[LENGTH] = {7, 11, 5, 2, 39, 0, 23, 8, 1};
    iso_error error = {0};
    iso_model *model = NULL;
    if (iso_model_load(&model, f->directory, options, context, &error) ||
        iso_logits_f32(to, model, NULL, 0, ids, length, stepwise, context, &error))
        fail_msg("%s", error.message);
    iso_model_free(model);
}
static void logits(float *to, const files *f, size_t length, size_t widen, int stepwise,
                   const iso_context *context) {
    const iso_load_options options = {.size = sizeof options, .widen = widen};
    logits_with(to, f, &options, length, stepwise, context);
}

static void same_logits(const float *got, const float *expected, size_t length, const char *name) {
    for (size_t i = 0; i < length * WORDS; i++)
        /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): bits are meant */
        if (memcmp(&got[i], &expected[i], sizeof *got) != 0 &&
            !(got[i] != got[i] && expected[i] != expected[i]))
            fail_msg("%s: logit %zu is %a, not %a", name, i, (double)got[i], (double)expected[i]);
}

static int is_slow(void) { return SANITIZED || getenv("ISOBIT_EMULATED"); }

/* Files of one type, and of types as they are mixed, where stacked matrices differ. */
static void models_have_the_bits_of_f32(void **unused) {
    (void)unused;
    static const char *const mixed[][4] = {{"Q4_K", "Q4_K", "Q4_K", "Q6_K"},
                                           {"Q5_K", "Q5_K", "Q6_K", "Q5_K"},
                                           {"Q2_K", "Q3_K", "Q2_K", "Q3_K"},
                                           {"Q4_0", "Q4_1", "Q5_1", "Q8_0"},
                                           {"Q5_0", "Q8_0", "IQ4_NL", "Q6_K"}};
    static float got[LENGTH * WORDS], expected[LENGTH * WORDS];
    const size_t files_count = block_kind_count + COUNT(mixed);
    const int some = is_slow() && !getenv("ISOBIT_LONG");
    iso_pool *pool;
    files f, wide;
    files_make(&f);
    files_make(&wide);
    assert_int_equal(iso_pool_create(&pool, 3), ISOBIT_OK);
    for (size_t i = 0; i < 2 * files_count; i++) {
        const block_kind *kinds[4];
        const size_t which = i / 2, of = which < block_kind_count ? 0 : which - block_kind_count;
        for (size_t k = 0; k < 4; k++)
            kinds[k] =
                which < block_kind_count ? &block_kinds[which] : block_kind_find(mixed[of][k]);
        write_model(&f, kinds, 4, i % 2, 0);
        write_model(&wide, kinds, 4, i % 2, 1);
        for (size_t s = 0; s < iso_isa_count(); s++) {
            const iso_context context = {.size = sizeof context,
                                         .isa = iso_isa_get(s),
                                         .executor = s % 2 ? iso_pool_executor(pool) : NULL};
            if (iso_isa_missing(context.isa) || (some && (s + i) % 4))
                continue;
            for (size_t length = 1; length <= LENGTH; length += 4) {
                logits(expected, &wide, length, 0, 0, &context);
                for (size_t e = 0; e < length * WORDS; e++)
                    assert_true(expected[e] - expected[e] == 0);
                for (int w = 0; w < 4; w += some ? 3 : 1) {
                    logits(got, &f, length, (size_t)w / 2, w % 2, &context);
                    same_logits(got, expected, length, kinds[0]->name);
                }
            }
        }
    }
    iso_pool_destroy(pool);
    files_remove(&f);
    files_remove(&wide);
}

/* Rows of int8, with matrices of each type: near f32, the same bits with every set, several
 * threads, at once and step by step; and all matrices are computed so. */
static void rows_of_int8_are_near(void **unused) {
    (void)unused;
    static float got[LENGTH * WORDS], expected[LENGTH * WORDS], usual[LENGTH * WORDS];
    const iso_load_options rows = {.size = sizeof rows, .compute = ISOBIT_COMPUTE_INT4};
    const int some = is_slow() && !getenv("ISOBIT_LONG");
    iso_error error = {0};
    iso_model *model;
    iso_pool *pool;
    files f;
    files_make(&f);
    assert_int_equal(iso_pool_create(&pool, 3), ISOBIT_OK);
    for (size_t i = 0; i <= block_kind_count; i++) {
        const block_kind *mixed[] = {block_kind_find("Q4_K"), block_kind_find("Q6_K")};
        const block_kind *one = &block_kinds[i % block_kind_count];
        double far = 0, most = 0;
        write_model(&f, i < block_kind_count ? &one : mixed, i < block_kind_count ? 1 : 2, i % 2,
                    0);
        logits(usual, &f, LENGTH, 0, 0, NULL);
        logits_with(expected, &f, &rows, LENGTH, 0, NULL);
        for (size_t e = 0; e < COUNT(usual); e++) {
            const double moved = fabs((double)expected[e] - (double)usual[e]);
            far = moved > far ? moved : far;
            most = fabs((double)usual[e]) > most ? fabs((double)usual[e]) : most;
        }
        assert_true(far > 0 && far < 0.1 * most);
        for (size_t s = 0; s < 2 * iso_isa_count(); s++) {
            const iso_context context = {.size = sizeof context,
                                         .isa = iso_isa_get(s / 2),
                                         .executor = s % 2 ? iso_pool_executor(pool) : NULL};
            if (iso_isa_missing(context.isa) || (some && (s + i) % 4))
                continue;
            logits_with(got, &f, &rows, LENGTH, (int)(s / 2 % 2), &context);
            same_logits(got, expected, LENGTH, one->name);
        }
        assert_int_equal(iso_model_load(&model, f.directory, &rows, NULL, &error), ISOBIT_OK);
        const iso_model_info *info = iso_model_get_info(model);
        assert_true(info->parameters_int4 > 0 && info->parameters_int8 == 0);
        assert_int_equal(info->parameters_int4 + (i % 2 ? 0 : (size_t)WORDS * D),
                         info->parameters_4 + info->parameters_8); /* but a table of its own */
        iso_model_free(model);
    }
    iso_pool_destroy(pool);
    files_remove(&f);
}

static const iso_model_info *info_of(iso_model **model, const files *f, size_t widen) {
    const iso_load_options options = {.size = sizeof options, .widen = widen};
    iso_error error = {0};
    if (iso_model_load(model, f->directory, &options, NULL, &error))
        fail_msg("%s", error.message);
    return iso_model_get_info(*model);
}

/* What a step reads of the weights. */
static double step_bytes(iso_model *model) {
    const iso_generate_options options = {
        .size = sizeof options, .beams = 1, .max_new_tokens = 4, .min_length = 7};
    const uint32_t prompt[] = {3, 1, 2};
    const size_t length = 3;
    iso_profile p = {.size = sizeof p};
    iso_error error = {0};
    iso_generation *g = NULL;
    assert_int_equal(iso_model_set_profile(model, &p), ISOBIT_OK);
    if (iso_generate(&g, model, prompt, &length, 1, &options, NULL, &error))
        fail_msg("%s", error.message);
    iso_generation_free(g);
    assert_true(p.steps > 0);
    return p.step_weight_bytes / (double)p.steps;
}

/* Matrices take the bits that their numbers and scales need, stacked ones of different types too,
 * and a step reads as much. */
static void models_stay_small(void **unused) {
    (void)unused;
    static const struct {
        const char *name;
        unsigned bits;      /* of numbers */
        double bits_in_all; /* of a weight */
    } types_held[] = {{"Q4_0", 4, 4.5},      {"Q4_1", 4, 5},     {"Q5_0", 8, 8.5},
                      {"Q5_1", 8, 9},        {"Q8_0", 8, 8.5},   {"IQ4_NL", 8, 8.5},
                      {"IQ4_XS", 8, 8.3125}, {"Q2_K", 4, 5.125}, {"Q3_K", 4, 4.5625},
                      {"Q4_K", 4, 4.625},    {"Q5_K", 8, 8.625}, {"Q6_K", 8, 8.5625}};
    const size_t matrices = (size_t)2 * WORDS * D + (size_t)3 * D * D + (size_t)3 * FFN * D;
    iso_model *model, *wide;
    char says[100];
    files f;
    files_make(&f);
    for (size_t i = 0; i < COUNT(types_held); i++) {
        const block_kind *kind = block_kind_find(types_held[i].name);
        write_model(&f, &kind, 1, 0, 0);
        const iso_model_info *a = info_of(&model, &f, 0), *b = info_of(&wide, &f, 1);
        assert_int_equal(a->parameters_8, types_held[i].bits == 8 ? matrices : 0);
        assert_int_equal(a->parameters_4, types_held[i].bits == 4 ? matrices : 0);
        assert_int_equal(b->parameters_8 + b->parameters_4, 0);
        const double less = (double)b->weight_bytes - (double)a->weight_bytes;
        const double expected = (double)matrices * (32 - types_held[i].bits_in_all) / 8;
        assert_true(less > expected - 64 * 16 && less < expected + 4.0 * 16 * D);
        (void)snprintf(says, sizeof says, "%s %zu, F32 %d", kind->name, matrices, 3 * D);
        assert_string_equal(a->weight_types, says);
        assert_string_equal(b->weight_types, says);
        const double read = (double)(matrices - (size_t)WORDS * D) / 8; /* but for the embedding */
        assert_true(step_bytes(wide) == 32 * read);
        assert_true(step_bytes(model) == types_held[i].bits_in_all * read);
        iso_model_free(model);
        iso_model_free(wide);
    }
    const block_kind *mixed[2][4] = {{block_kind_find("Q4_K"), block_kind_find("Q4_K"),
                                      block_kind_find("Q4_K"), block_kind_find("Q6_K")},
                                     {block_kind_find("Q4_0"), block_kind_find("Q5_0"),
                                      block_kind_find("Q8_0"), block_kind_find("Q5_1")}};
    for (size_t i = 0; i < 2; i++) {
        write_model(&f, mixed[i], 4, 0, 0);
        const iso_model_info *a = info_of(&model, &f, 0);
        assert_int_equal(a->parameters_8 + a->parameters_4, matrices);
        assert_int_equal(a->parameters, matrices + 3 * D);
        iso_model_free(model);
    }
    files_remove(&f);
}

/* ---------------------------------------------------------------------------- what is refused */

/* A scale, or an offset, that is infinite or NaN, of the first block of a file and of the last;
 * rows that are no whole blocks; a file that ends too early. */
static void wrong_files_are_refused(void **unused) {
    (void)unused;
    static const unsigned char bad[][2] = {{0, 0x7c}, {0, 0xfc}, {1, 0x7c}, {0, 0xfe}};
    static const char *const names[] = {"\"token_embd.weight\"", "\"output.weight\""};
    char says[200];
    files f;
    files_make(&f);
    for (size_t t = 0; t < block_kind_count; t++) {
        const block_kind *kind = &block_kinds[t];
        char path[200];
        write_model(&f, &kind, 1, 0, 0);
        files_path(&f, "model.gguf", path, sizeof path);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        assert_int_equal(fseek(file, 0, SEEK_END), 0);
        const size_t bytes = (size_t)ftell(file), last = WORDS * D / kind->elements - 1;
        rewind(file);
        unsigned char *all = malloc(bytes);
        assert_non_null(all);
        assert_int_equal(fread(all, 1, bytes, file), bytes);
        (void)fclose(file);
        for (size_t i = 0; i < 4; i++) {
            const size_t at = i % 2 && kind->has_offset ? kind->offset_at : kind->scale_at;
            const size_t block = i / 2 ? last : 3;
            unsigned char *scale = all + bytes - (last + 1 - block) * kind->bytes + at, kept[2];
            memcpy(kept, scale, 2);
            memcpy(scale, bad[i], 2);
            files_write(&f, "model.gguf", all, bytes);
            (void)snprintf(says, sizeof says, "tensor %s: the scale%s of block %zu is not finite",
                           names[1], kind->has_offset ? " or the minimum" : "", block);
            refused(&f, ISOBIT_E_RANGE, says);
            memcpy(scale, kept, 2);
        }
        files_write(&f, "model.gguf", all, bytes - 1);
        (void)snprintf(says, sizeof says, "tensor %s ends at byte", names[1]);
        refused(&f, ISOBIT_E_TRUNCATED, says);
        free(all);

        gguf_maker m = {0};
        gguf_good(&m);
        gguf_tensor(&m, "x", kind->type, 2, (const uint64_t[]){kind->elements / 2, 2}, kind->bytes);
        blob odd = gguf_finish(&m);
        files_write(&f, "model.gguf", odd.bytes, odd.count);
        (void)snprintf(says, sizeof says,
                       "tensor \"x\" has rows that are no whole blocks of %zu elements",
                       kind->elements);
        refused(&f, ISOBIT_E_SHAPE, says);
        blob_free(&odd);
    }
    files_remove(&f);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_as_defined),   cmocka_unit_test(blocks_are_as_elsewhere),
        cmocka_unit_test(blocks_are_held_exactly), cmocka_unit_test(models_have_the_bits_of_f32),
        cmocka_unit_test(rows_of_int8_are_near),   cmocka_unit_test(models_stay_small),
        cmocka_unit_test(wrong_files_are_refused),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("blocks", tests, NULL, NULL);
}
