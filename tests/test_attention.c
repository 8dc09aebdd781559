/* SPDX-License-Identifier: MIT
 *
 * What heads attend to: against transformers' eager attention
 * (tests/data/models/NAME/attention.json, made by tools/make_attention.py) of families with and
 * without an encoder, with masks, relative bias, rotary embeddings and heads that share keys;
 * against what generation gives of cross-attention; and long targets against shorter ones.
 */
#include <isobit/model.h>

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_TOKENS = 700 };

static void ok(iso_status status, const iso_error *error) {
    if (status)
        fail_msg("status %d: %s", (int)status, error->message);
}

static iso_model *load(const char *name) {
    char path[512];
    iso_error error = {0};
    iso_model *model = NULL;
    (void)snprintf(path, sizeof path, "%s/models/%s", ISOBIT_TEST_DATA, name);
    ok(iso_model_load(&model, path, NULL, NULL, &error), &error);
    return model;
}

static size_t ids_of(uint32_t *ids, const json_t *list) {
    const size_t count = json_array_size(list);
    assert_true(count <= MOST_TOKENS);
    for (size_t i = 0; i < count; i++)
        ids[i] = (uint32_t)json_integer_value(json_array_get(list, i));
    return count;
}

typedef struct view {
    iso_attention_kind kind;
    const char *key;
    size_t layers, heads, T, S, floats;
} view;

static view view_of(const iso_model *model, iso_attention_kind kind, size_t source, size_t target) {
    static const char *const keys[] = {"encoder", "decoder", "cross"};
    const iso_model_info *info = iso_model_get_info(model);
    const int encoder = kind == ISOBIT_ATTENTION_ENCODER;
    view v = {.kind = kind,
              .key = keys[kind],
              .layers = encoder ? info->encoder_layers : info->decoder_layers,
              .heads = encoder ? info->encoder_heads : info->decoder_heads,
              .T = encoder ? source : target,
              .S = kind == ISOBIT_ATTENTION_DECODER ? target : source};
    v.floats = v.layers * v.heads * v.T * v.S;
    return v;
}

static float *floats_of(size_t count) {
    float *y = malloc(count * sizeof *y + 1);
    assert_non_null(y);
    for (size_t i = 0; i < count; i++)
        y[i] = NAN; /* all of it must be written */
    return y;
}

/* The weights of one kind, of all layers at once, and the same layer by layer, on every instruction
 * set, with threads. */
static float *weights_of(const iso_model *model, const view *v, const uint32_t *source, size_t S,
                         const uint32_t *target, size_t T) {
    iso_error error = {0};
    iso_pool *pool;
    float *all = floats_of(v->floats), *again = floats_of(v->floats);
    const size_t layer = v->layers ? v->floats / v->layers : 0;
    ok(iso_attention_weights_f32(all, model, v->kind, 0, v->layers, source, S, target, T, NULL,
                                 &error),
       &error);
    assert_int_equal(iso_pool_create(&pool, 3), ISOBIT_OK);
    for (size_t i = 0; i < iso_isa_count(); i++) {
        const iso_context context = {.size = sizeof context,
                                     .isa = iso_isa_get(i),
                                     .executor = i % 2 ? NULL : iso_pool_executor(pool)};
        if (iso_isa_missing(context.isa))
            continue;
        for (size_t l = 0; l < v->layers; l++)
            ok(iso_attention_weights_f32(again + l * layer, model, v->kind, l, 1, source, S, target,
                                         T, &context, &error),
               &error);
        assert_memory_equal(all, again, v->floats * sizeof *all);
    }
    iso_pool_destroy(pool);
    free(again);
    return all;
}

/* -------------------------------------------------------------------------------- transformers */

static void compare(const iso_model *model, const json_t *root, iso_attention_kind kind,
                    const char *name) {
    uint32_t source[MOST_TOKENS], target[MOST_TOKENS];
    size_t S = ids_of(source, json_object_get(root, "source"));
    size_t T = ids_of(target, json_object_get(root, "target"));
    if (!iso_model_get_info(model)->encoder_layers) { /* what there is is a target */
        memcpy(target, source, S * sizeof *target);
        T = S;
        S = 0;
    } else if (kind == ISOBIT_ATTENTION_ENCODER) {
        T = 0;
    }
    const view v = view_of(model, kind, S, T);
    const json_t *wanted = json_object_get(root, v.key);
    float *weights = weights_of(model, &v, source, S, target, T), *at = weights;
    /* Those of T5 and its kind have large scores, which are not divided by anything. */
    const double bound = strstr(name, "t5") ? 2e-5 : 2e-6;
    double worst = 0;
    assert_int_equal(json_array_size(wanted), v.layers);
    for (size_t l = 0; l < v.layers; l++)
        for (size_t h = 0; h < v.heads; h++)
            for (size_t t = 0; t < v.T; t++)
                for (size_t s = 0; s < v.S; s++, at++) {
                    const json_t *head = json_array_get(json_array_get(wanted, l), h);
                    const double x = json_number_value(json_array_get(json_array_get(head, t), s));
                    worst = fmax(worst, fabs(x - (double)*at));
                    if (!(fabs(x - (double)*at) <= bound))
                        fail_msg("%s, %s, layer %zu, head %zu, query %zu, key %zu: %.8g, not %.8g",
                                 name, v.key, l, h, t, s, (double)*at, x);
                    if (kind == ISOBIT_ATTENTION_DECODER && s > t)
                        assert_true(*at == 0 && !signbit(*at));
                }
    print_message("%-16s %-8s %.1g\n", name, v.key, worst);
    free(weights);
}

static void test_transformers(void **state) {
    static const char *const names[] = {
        "marian-swish", "bart",        "m2m-100",         "t5",   "umt5",  "flan-t5-bf16",
        "bert",         "roberta-f16", "distilbert-bf16", "gpt2", "llama", "qwen2-f16",
        "mistral",      "gemma2-bf16"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/models/%s/attention.json", ISOBIT_TEST_DATA,
                       names[i]);
        json_t *root = json_load_file(path, 0, NULL);
        assert_non_null(root);
        iso_model *model = load(names[i]);
        const iso_model_info *info = iso_model_get_info(model);
        if (info->encoder_layers)
            compare(model, root, ISOBIT_ATTENTION_ENCODER, names[i]);
        if (info->decoder_layers)
            compare(model, root, ISOBIT_ATTENTION_DECODER, names[i]);
        if (info->encoder_layers && info->decoder_layers)
            compare(model, root, ISOBIT_ATTENTION_CROSS, names[i]);
        iso_model_free(model);
        json_decref(root);
    }
    (void)state;
}

/* ---------------------------------------------------------------------------------- generation */

/* The steps of generation give the same cross-attention as the whole target. */
static void test_as_generated(void **state) {
    static const char *const names[] = {"bart", "t5", "marian-gelu-bf16"};
    static const uint32_t source[] = {7, 9, 21, 30, 31, 2};
    const size_t S = 6;
    for (size_t i = 0; i < 3; i++) {
        iso_model *model = load(names[i]);
        iso_error error = {0};
        iso_generation *g;
        const iso_generate_options o = {
            .size = sizeof o, .beams = 1, .max_length = 8, .attention = 1};
        ok(iso_generate(&g, model, source, &S, 1, &o, NULL, &error), &error);
        uint32_t target[16] = {iso_model_get_info(model)->decoder_start_id};
        const size_t T = g->best[0].length;
        memcpy(target + 1, g->best[0].ids, T * sizeof *target);
        const view v = view_of(model, ISOBIT_ATTENTION_CROSS, S, T);
        float *weights = weights_of(model, &v, source, S, target, T);
        assert_memory_equal(weights, g->best[0].attention, v.floats * sizeof *weights);
        free(weights);
        iso_generation_free(g);
        iso_model_free(model);
    }
    (void)state;
}

/* Relative bias comes in blocks of 512 queries: what precedes a query does not depend on the rest.
 */
static void test_long_target(void **state) {
    iso_model *model = load("t5");
    iso_error error = {0};
    uint32_t source[] = {7, 9, 21, 2}, target[MOST_TOKENS];
    const size_t S = 4, shorter = 530, T = 600;
    for (size_t i = 0; i < T; i++)
        target[i] = (uint32_t)(2 + i * 7 % 41);
    const view a = view_of(model, ISOBIT_ATTENTION_DECODER, S, shorter);
    const view b = view_of(model, ISOBIT_ATTENTION_DECODER, S, T);
    float *few = floats_of(a.floats), *many = floats_of(b.floats);
    ok(iso_attention_weights_f32(few, model, a.kind, 0, a.layers, source, S, target, shorter, NULL,
                                 &error),
       &error);
    ok(iso_attention_weights_f32(many, model, b.kind, 0, b.layers, source, S, target, T, NULL,
                                 &error),
       &error);
    for (size_t head = 0; head < a.layers * a.heads; head++)
        for (size_t t = 0; t < T; t++) {
            const float *row = many + (head * T + t) * T;
            double sum = 0;
            for (size_t s = 0; s < T; s++) {
                sum += (double)row[s];
                assert_true(s <= t ? row[s] >= 0 : row[s] == 0);
            }
            assert_true(fabs(sum - 1) < 1e-5);
            if (t < shorter)
                assert_memory_equal(row, few + (head * shorter + t) * shorter,
                                    shorter * sizeof *row);
        }
    free(few);
    free(many);
    iso_model_free(model);
    (void)state;
}

/* -------------------------------------------------------------------------------------- errors */

static void test_errors(void **state) {
    iso_model *bart = load("bart"), *bert = load("bert"), *gpt2 = load("gpt2");
    static const uint32_t ids[50] = {2, 5, 7}, beyond[] = {2, 50};
    static float y[4096];
    const struct {
        const iso_model *model;
        iso_attention_kind kind;
        size_t first, count;
        const uint32_t *source, *target;
        size_t S, T;
        iso_status status;
        const char *says;
    } cases[] = {
        {bert, ISOBIT_ATTENTION_DECODER, 0, 1, ids, ids, 2, 2, ISOBIT_E_UNSUPPORTED, "no decoder"},
        {bert, ISOBIT_ATTENTION_CROSS, 0, 1, ids, ids, 2, 2, ISOBIT_E_UNSUPPORTED, "no decoder"},
        {gpt2, ISOBIT_ATTENTION_ENCODER, 0, 1, ids, NULL, 2, 0, ISOBIT_E_UNSUPPORTED, "no encoder"},
        {gpt2, ISOBIT_ATTENTION_CROSS, 0, 1, ids, ids, 2, 2, ISOBIT_E_UNSUPPORTED, "no encoder"},
        {gpt2, ISOBIT_ATTENTION_DECODER, 0, 1, ids, ids, 2, 2, ISOBIT_E_UNSUPPORTED,
         "there is no source"},
        {bart, (iso_attention_kind)3, 0, 1, ids, ids, 2, 2, ISOBIT_E_OPTION, "kind 3"},
        {bart, (iso_attention_kind)-1, 0, 1, ids, ids, 2, 2, ISOBIT_E_OPTION, "kind -1"},
        {bart, ISOBIT_ATTENTION_ENCODER, 0, 3, ids, NULL, 2, 0, ISOBIT_E_RANGE,
         "layers 0 to 3 of 2"},
        {bart, ISOBIT_ATTENTION_ENCODER, 3, 0, ids, NULL, 2, 0, ISOBIT_E_RANGE, "layers 3 to 3"},
        {bart, ISOBIT_ATTENTION_DECODER, 1, SIZE_MAX, ids, ids, 2, 2, ISOBIT_E_RANGE, "of 2"},
        {bart, ISOBIT_ATTENTION_ENCODER, 0, 1, ids, ids, 2, 2, ISOBIT_E_DIM, "has no target"},
        {bart, ISOBIT_ATTENTION_ENCODER, 0, 1, ids, NULL, 0, 0, ISOBIT_E_DIM,
         "the source has no tokens"},
        {bart, ISOBIT_ATTENTION_CROSS, 0, 1, ids, ids, 2, 0, ISOBIT_E_DIM,
         "the target has no tokens"},
        {bart, ISOBIT_ATTENTION_CROSS, 0, 1, NULL, ids, 2, 2, ISOBIT_E_NULL, "must not be NULL"},
        {bart, ISOBIT_ATTENTION_CROSS, 0, 1, ids, NULL, 2, 2, ISOBIT_E_NULL, "must not be NULL"},
        {bart, ISOBIT_ATTENTION_CROSS, 0, 1, ids, beyond, 2, 2, ISOBIT_E_RANGE,
         "target 0, position 1: token id 50"},
        {bart, ISOBIT_ATTENTION_CROSS, 0, 1, beyond, ids, 2, 2, ISOBIT_E_RANGE, "source 0"},
        {bart, ISOBIT_ATTENTION_CROSS, 0, 1, ids, ids, 2, 41, ISOBIT_E_LIMIT, "41 tokens"},
        {bart, ISOBIT_ATTENTION_ENCODER, 0, 1, ids, NULL, 41, 0, ISOBIT_E_LIMIT, "41 tokens"},
        {bart, ISOBIT_ATTENTION_ENCODER, 2, 0, ids, NULL, 2, 0, ISOBIT_OK, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        iso_error e = {0};
        const iso_status status = iso_attention_weights_f32(
            y, cases[i].model, cases[i].kind, cases[i].first, cases[i].count, cases[i].source,
            cases[i].S, cases[i].target, cases[i].T, NULL, &e);
        if (status != cases[i].status || (status && !strstr(e.message, cases[i].says)))
            fail_msg("case %zu: %d \"%s\"", i, (int)status, e.message);
    }
    assert_int_equal(iso_attention_weights_f32(NULL, bart, ISOBIT_ATTENTION_ENCODER, 0, 1, ids, 2,
                                               NULL, 0, NULL, NULL),
                     ISOBIT_E_NULL);
    iso_model_free(bart);
    iso_model_free(bert);
    iso_model_free(gpt2);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transformers),
        cmocka_unit_test(test_as_generated),
        cmocka_unit_test(test_long_target),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests_name("attention", tests, NULL, NULL);
}
