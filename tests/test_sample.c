/* SPDX-License-Identifier: MIT
 *
 * Generation beyond the searches: sampling against definitions in double precision that sort
 * everything, against the warpers of transformers (tests/data/sampling.json, made by
 * tools/make_sampling.py) and against chance; forced first tokens, sequences that end a target,
 * and the function that is called for each token.
 */
#include "model_files.h"
#include "sample.h"

#include <isobit/model.h>

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

enum { V = 61, EOS = 2, MOST_V = 5000 };

static void ok(iso_status status, const iso_error *error) {
    if (status)
        fail_msg("status %d: %s", (int)status, error->message);
}

/*
 * A small model of random weights; `more` is added to its configuration, and a second EOS where it
 * is not 0.
 */
static iso_model *make_model_with(uint32_t second_eos, const char *more) {
    files f;
    char text[600], eos[32] = "2";
    files_make(&f);
    if (second_eos)
        (void)snprintf(eos, sizeof eos, "[2,%u]", second_eos);
    (void)snprintf(text, sizeof text,
                   ",\"eos_token_id\":%s,\"decoder_start_token_id\":1,\"pad_token_id\":0,"
                   "\"forced_eos_token_id\":null,\"max_position_embeddings\":40%s",
                   eos, more);
    files_config(&f, "marian", V, 16, 2, 24, text);
    builder b = {.state = 5};
    builder_model(&b, V, 16, 24, 1);
    builder_write(&b, &f);
    iso_model *model = NULL;
    iso_error error = {0};
    iso_status status = iso_model_load(&model, f.directory, NULL, NULL, &error);
    files_remove(&f);
    ok(status, &error);
    return model;
}

static iso_model *make_model(const char *more) { return make_model_with(0, more); }

static const uint32_t sources[] = {7, 9, 2, 30, 31, 32, 33, 2, 5, 2};
static const size_t lengths[] = {3, 5, 2};

/* ------------------------------------------------------------------------------ forced tokens */

static void test_forced_bos(void **state) {
    iso_model *models[] = {make_model(""), make_model(",\"forced_bos_token_id\":11")};
    iso_error error = {0};
    for (size_t m = 0; m < 2; m++)
        for (size_t beams = 1; beams <= 3; beams += 2)
            for (uint32_t id = 0; id <= V; id += V - 1) { /* the last round: the default */
                iso_generate_options o = {.size = sizeof o,
                                          .beams = beams,
                                          .max_length = 6,
                                          .has_forced_bos = id < V - 1 || m == 0,
                                          .forced_bos = id ? id : 4};
                const uint32_t wanted = o.has_forced_bos ? o.forced_bos : 11;
                iso_generation *g;
                ok(iso_generate(&g, models[m], sources, lengths, 3, &o, NULL, &error), &error);
                for (size_t i = 0; i < 3; i++) {
                    assert_int_equal(g->best[i].ids[0], wanted);
                    assert_true(g->best[i].log_probs[0] == 0 || beams == 1);
                }
                iso_generation_free(g);
            }
    iso_generate_options o = {.size = sizeof o, .has_forced_bos = 1, .forced_bos = V};
    iso_generation *g = NULL;
    assert_int_equal(iso_generate(&g, models[0], sources, lengths, 3, &o, NULL, &error),
                     ISOBIT_E_RANGE);
    assert_string_equal(error.message, "forced_bos is 61; the vocabulary has 61 tokens");
    assert_null(g);
    /* Without the flag it is not looked at. */
    o.has_forced_bos = 0;
    ok(iso_generate(&g, models[0], sources, lengths, 3, &o, NULL, &error), &error);
    iso_generation_free(g);
    for (size_t m = 0; m < 2; m++)
        iso_model_free(models[m]);
    (void)state;
}

/* ----------------------------------------------------------------------------- random numbers */

static uint64_t random_state = 1;
static uint32_t random_below(uint32_t n) {
    uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((z ^ (z >> 31)) >> 32) % n;
}
static float uniform(void) { return (float)random_below(1 << 24) * 0x1p-24f; }

/* The known answers that come with Random123 1.09, kat_vectors. */
static void test_philox(void **state) {
    static const uint32_t known[][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d,
         0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
         0x94fdcceb, 0x5001e420, 0x24126ea1}};
    for (size_t i = 0; i < 3; i++) {
        model_random counter;
        memcpy(counter.word, known[i], sizeof counter.word);
        const model_random found = model_philox(counter, known[i] + 4);
        assert_memory_equal(found.word, known[i] + 6, sizeof found.word);
    }
    (void)state;
}

/* -------------------------------------------------------------------------- one row of logits */

typedef struct kept {
    size_t id;
    double value, p;
} kept;

static int by_rank(const void *a, const void *b) {
    const kept *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static void literal_softmax(kept *k, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += exp(k[i].value - k[0].value);
    for (size_t i = 0; i < n; i++)
        k[i].p = exp(k[i].value - k[0].value) / sum;
}

/*
 * What transformers keeps, best first; *unsure is set to how close the cut of top-p or min-p was to
 * falling elsewhere.
 */
static size_t literal_warp(kept *k, const model_warp *w, const float *row, size_t n,
                           double *unsure) {
    size_t count = 0;
    *unsure = 1;
    for (size_t v = 0; v < n; v++)
        if (row[v] > -INFINITY)
            k[count++] = (kept){v, (double)(row[v] / w->temperature), 0};
    qsort(k, count, sizeof *k, by_rank);
    if (w->top_k && w->top_k < count) {
        size_t last = w->top_k;
        while (last < count && k[last].value == k[w->top_k - 1].value)
            last++;
        count = last;
    }
    literal_softmax(k, count);
    if (w->top_p < 1) {
        double before = 0;
        size_t last = 0;
        for (; last < count; last++) {
            const double gap = fabs(before - (double)w->top_p);
            *unsure = gap < *unsure ? gap : *unsure;
            if (last && !(before < (double)w->top_p))
                break;
            before += k[last].p;
        }
        count = last;
        literal_softmax(k, count);
    }
    size_t last = 0;
    for (; last < count && (!last || k[last].p >= (double)w->min_p * k[0].p); last++)
        ;
    for (size_t i = 1; i < count && w->min_p > 0; i++) {
        const double gap = fabs(k[i].p / k[0].p - (double)w->min_p);
        if (k[i].value < k[0].value)
            *unsure = gap < *unsure ? gap : *unsure;
    }
    literal_softmax(k, last);
    return last;
}

/* The candidates are those wanted, with their probabilities once these sum to 1. */
static void same_candidates(const model_candidates *found, const kept *wanted, size_t count) {
    static double p[MOST_V];
    double sum = 0;
    assert_int_equal(found->count, count);
    for (size_t i = 0; i < MOST_V; i++)
        p[i] = -1;
    for (size_t i = 0; i < count; i++) {
        assert_true(i == 0 || found->ids[i] > found->ids[i - 1]);
        sum += (double)found->weights[i];
        p[found->ids[i]] = (double)found->weights[i];
    }
    for (size_t i = 0; i < count; i++)
        if (!(fabs(p[wanted[i].id] / sum - wanted[i].p) <= 1e-6))
            fail_msg("token %zu: probability %g, expected %g", wanted[i].id, p[wanted[i].id] / sum,
                     wanted[i].p);
}

static model_arena arena;
static model_candidates make_candidates(size_t n) {
    model_candidates k;
    assert_true(model_candidates_make(&k, &arena, n));
    return k;
}

static float logit(size_t kind, size_t v) {
    switch (kind) {
    case 0: return 20 * uniform() - 10;
    case 1: return (float)random_below(8) / 4; /* many are equal */
    case 2: return 1 + 0x1p-23f * (float)random_below(6);
    case 3: return 2 * uniform();
    case 4: return (float)v * 1e-3f;
    case 5: return v == 3 ? 40 : -uniform();
    case 6: return random_below(2) ? 0.0f : -0.0f;
    case 7: return random_below(3) ? -INFINITY : 4 * uniform();
    case 8: return random_below(9) ? NAN : 4 * uniform(); /* counts as -Inf */
    case 9: return -1e-38f * uniform();
    default: return uniform() < 0.01f ? 5 : uniform();
    }
}

static void test_warp(void **state) {
    static const size_t sizes[] = {1, 2, 3, 17, 64, 300, 2047, MOST_V};
    static kept wanted[MOST_V];
    static float row[MOST_V];
    const iso_context context = {.size = sizeof context};
    random_state = 1;
    model_candidates k = make_candidates(MOST_V);
    size_t unsure_ones = 0, cases = 0;
    for (size_t i = 0; i < 1200; i++) {
        const size_t n = sizes[random_below(i % 8 ? 6 : 8)], kind = i % 11;
        const model_warp w = {
            .temperature = random_below(2) ? 1 : 0.25f + 2 * uniform(),
            .top_k = random_below(2) ? 0 : 1 + random_below(random_below(2) ? 9 : (uint32_t)n + 9),
            .top_p = random_below(2) ? 1 : uniform() + 0x1p-24f,
            .min_p = random_below(2) ? 0 : uniform() * uniform()};
        double unsure;
        for (size_t v = 0; v < n; v++)
            row[v] = logit(kind, v);
        const size_t count = literal_warp(wanted, &w, row, n, &unsure);
        assert_int_equal(model_warp_row(&k, &w, row, n, &context), ISOBIT_OK);
        cases++;
        if (unsure < 1e-6) /* float and double may cut elsewhere */
            unsure_ones++;
        else
            same_candidates(&k, wanted, count);
    }
    assert_true(unsure_ones * 20 < cases);
    /* Limits: the smallest top_p keeps the best, min_p 1 what equals it; nothing to draw from. */
    const float equal[] = {1, 3, -1, 3}, nothing[] = {NAN, -INFINITY}, infinite[] = {1, INFINITY};
    model_warp w = {.temperature = 1, .top_p = FLT_TRUE_MIN};
    assert_int_equal(model_warp_row(&k, &w, equal, 4, &context), ISOBIT_OK);
    assert_true(k.count == 1 && k.ids[0] == 1);
    const float quarters[] = {-1, 2, 2, -INFINITY, 2, 2, -1};
    w = (model_warp){.temperature = 0x1p-6f, .top_p = 0.5f};
    assert_int_equal(model_warp_row(&k, &w, quarters, 7, &context), ISOBIT_OK);
    assert_true(k.count == 2 && k.ids[0] == 1 && k.ids[1] == 2); /* half is reached: no more */
    w.top_p = 0.5f + 0x1p-24f;
    assert_int_equal(model_warp_row(&k, &w, quarters, 7, &context), ISOBIT_OK);
    assert_true(k.count == 3 && k.ids[2] == 4);
    w = (model_warp){.temperature = 1, .top_p = 1, .min_p = 1};
    assert_int_equal(model_warp_row(&k, &w, equal, 4, &context), ISOBIT_OK);
    assert_true(k.count == 2 && k.ids[0] == 1 && k.ids[1] == 3);
    assert_int_equal(model_warp_row(&k, &w, nothing, 2, &context), ISOBIT_OK);
    assert_int_equal(k.count, 0);
    assert_int_equal(model_warp_row(&k, &w, infinite, 2, &context), ISOBIT_OK);
    assert_int_equal(k.count, 0);
    w.temperature = FLT_TRUE_MIN; /* the quotient overflows */
    assert_int_equal(model_warp_row(&k, &w, equal, 4, &context), ISOBIT_OK);
    assert_int_equal(k.count, 0);
    w = (model_warp){.temperature = FLT_MAX, .top_p = 1};
    assert_int_equal(model_warp_row(&k, &w, equal, 4, &context), ISOBIT_OK);
    assert_int_equal(k.count, 4);
    model_arena_free(&arena);
    (void)state;
}

static float setting(const json_t *s, const char *key, float otherwise) {
    const json_t *value = json_object_get(s, key);
    return value ? (float)json_number_value(value) : otherwise;
}

static void test_transformers(void **state) {
    json_t *root = json_load_file(ISOBIT_TEST_DATA "/sampling.json", 0, NULL), *line, *c;
    const iso_context context = {.size = sizeof context};
    model_candidates k = make_candidates(MOST_V);
    size_t i, j, cases = 0;
    assert_non_null(root);
    json_array_foreach(json_object_get(root, "rows"), i, line) {
        const json_t *logits = json_object_get(line, "logits");
        const size_t n = json_array_size(logits);
        float row[64];
        assert_true(n <= 64);
        for (size_t v = 0; v < n; v++) {
            const json_t *x = json_array_get(logits, v);
            row[v] = json_is_null(x) ? -INFINITY : (float)json_number_value(x);
        }
        json_array_foreach(json_object_get(line, "cases"), j, c) {
            const json_t *s = json_object_get(c, "settings"), *ids = json_object_get(c, "kept");
            const json_t *p = json_object_get(c, "probabilities");
            const model_warp w = {.temperature = setting(s, "temperature", 1),
                                  .top_k = (size_t)setting(s, "top_k", 0),
                                  .top_p = setting(s, "top_p", 1),
                                  .min_p = setting(s, "min_p", 0)};
            kept wanted[64];
            for (size_t v = 0; v < json_array_size(ids); v++)
                wanted[v] = (kept){.id = (size_t)json_integer_value(json_array_get(ids, v)),
                                   .p = json_number_value(json_array_get(p, v))};
            assert_int_equal(model_warp_row(&k, &w, row, n, &context), ISOBIT_OK);
            same_candidates(&k, wanted, json_array_size(ids));
            cases++;
        }
    }
    assert_int_equal(cases, 64);
    json_decref(root);
    model_arena_free(&arena);
    (void)state;
}

/* Every 64 bits fall on a token, and on each token as many as its weight says, to 2^-48. */
static void test_draw(void **state) {
    model_candidates k = make_candidates(3);
    k.count = 3;
    memcpy(k.ids, (const uint32_t[]){4, 5, 9}, 12);
    memcpy(k.weights, (const float[]){0.5f, 0, 0.25f}, 12);
    const uint64_t edge = UINT64_MAX / 3 * 2 + 1; /* 2/3 of all, rounded up */
    assert_int_equal(model_draw(&k, 0), 4);
    assert_int_equal(model_draw(&k, edge - 1), 4);
    assert_int_equal(model_draw(&k, edge), 9);
    assert_int_equal(model_draw(&k, UINT64_MAX), 9);
#ifdef __SIZEOF_INT128__
    for (size_t i = 0; i < 2000; i++) {
        uint64_t w[3];
        unsigned __int128 sum = 0;
        for (size_t v = 0; v < 3; v++) {
            k.weights[v] = (uniform() + 0x1p-24f) * 0x1p24f * (v == 1 ? 0x1p-40f : 0x1p-26f);
            w[v] = (uint64_t)((double)k.weights[v] * 0x1p48);
            sum += w[v];
        }
        /* The first number that falls behind w[0], and behind w[0] + w[1]. */
        const uint64_t first = (uint64_t)((((unsigned __int128)w[0] << 64) + sum - 1) / sum);
        const uint64_t second =
            (uint64_t)((((unsigned __int128)(w[0] + w[1]) << 64) + sum - 1) / sum);
        assert_int_equal(model_draw(&k, first - 1), 4);
        assert_int_equal(model_draw(&k, first), 5);
        assert_int_equal(model_draw(&k, second - 1), 5);
        assert_int_equal(model_draw(&k, second), 9);
    }
#endif
    model_arena_free(&arena);
    (void)state;
}

/* ------------------------------------------------------------------------------- generation */

/* Philox again, written with other words: word i of the block. */
static uint64_t literal_bits(const uint32_t seed[2], uint64_t source, size_t sample,
                             size_t position) {
    uint32_t x[4] = {(uint32_t)position, (uint32_t)sample, (uint32_t)source,
                     (uint32_t)(source >> 32)};
    for (uint32_t round = 0; round < 10; round++) {
        const uint32_t key[2] = {seed[0] + round * UINT32_C(0x9E3779B9),
                                 seed[1] + round * UINT32_C(0xBB67AE85)};
        const uint64_t even = UINT64_C(0xD2511F53) * x[0], odd = UINT64_C(0xCD9E8D57) * x[2];
        const uint32_t y[4] = {(uint32_t)(odd >> 32) ^ x[1] ^ key[0], (uint32_t)odd,
                               (uint32_t)(even >> 32) ^ x[3] ^ key[1], (uint32_t)even};
        memcpy(x, y, sizeof x);
    }
    return (uint64_t)x[1] << 32 | x[0];
}

/* The token is where its random number falls in the distribution, summed in double. */
static void literal_draw(const model_warp *w, const float *row, size_t n, uint64_t bits,
                         uint32_t token) {
    static kept k[MOST_V];
    static double p[MOST_V];
    const double at = (double)bits * 0x1p-64;
    double unsure, below = 0;
    const size_t count = literal_warp(k, w, row, n, &unsure);
    if (unsure < 1e-5)
        return;
    memset(p, 0, sizeof p);
    for (size_t i = 0; i < count; i++)
        p[k[i].id] = k[i].p;
    for (size_t v = 0; v < token; v++)
        below += p[v];
    if (!(p[token] > 0 && at > below - 1e-5 && at < below + p[token] + 1e-5))
        fail_msg("token %u from %g to %g, drawn with %g", token, below, below + p[token], at);
}

/* Every token of every sample, from logits that are computed again for its prefix. */
static void test_literal_sampling(void **state) {
    iso_model *model = make_model("");
    iso_error error = {0};
    static const model_warp warps[] = {{1, 0, 1, 0}, {0.6f, 0, 0.8f, 0}, {1.5f, 9, 0.95f, 0.05f}};
    const uint32_t seeds[][2] = {{0, 0}, {42, 0}, {42, 1}};
    for (size_t i = 0; i < 3; i++) {
        iso_generation *g;
        iso_generate_options o = {.size = sizeof o,
                                  .sampling = ISOBIT_SAMPLING_ON,
                                  .hypotheses = 5,
                                  .max_length = 12,
                                  .min_length = 7,
                                  .repetition_penalty = 1.2f,
                                  .temperature = warps[i].temperature,
                                  .top_k = warps[i].top_k ? warps[i].top_k : SIZE_MAX,
                                  .top_p = warps[i].top_p,
                                  .has_min_p = 1,
                                  .min_p = warps[i].min_p,
                                  .seed = {seeds[i][0], seeds[i][1]},
                                  .first_source = i == 2 ? SIZE_MAX - 1 : 0};
        ok(iso_generate(&g, model, sources, lengths, 3, &o, NULL, &error), &error);
        assert_int_equal(g->count, 15);
        const uint32_t *source = sources;
        for (size_t j = 0; j < g->count; j++) {
            const iso_hypothesis *h = &g->best[j];
            float logits[12 * V], sum = 0;
            uint32_t target[12] = {1};
            source += j && j % 5 == 0 ? lengths[j / 5 - 1] : 0;
            memcpy(target + 1, h->ids, h->length * sizeof *target);
            ok(iso_logits_f32(logits, model, source, lengths[j / 5], target, h->length, 0, NULL,
                              &error),
               &error);
            for (size_t t = 0; t < h->length; t++) {
                float *row = logits + t * V, log_probs[V];
                int seen[V] = {0};
                for (size_t c = 0; c <= t; c++)
                    seen[target[c]] = 1;
                for (size_t v = 0; v < V; v++)
                    row[v] = !seen[v] ? row[v] : row[v] < 0 ? row[v] * 1.2f : row[v] / 1.2f;
                if (t + 1 < 7)
                    row[EOS] = -INFINITY;
                literal_draw(&warps[i], row, V,
                             literal_bits(o.seed, (uint64_t)o.first_source + j / 5, j % 5, t),
                             h->ids[t]);
                const iso_softmax_options log = {.size = sizeof log, .log = 1, .safe = 1};
                assert_int_equal(iso_softmax_f32(log_probs, V, row, V, 1, V, &log, NULL),
                                 ISOBIT_OK);
                assert_memory_equal(&log_probs[h->ids[t]], &h->log_probs[t], sizeof(float));
                sum += h->log_probs[t];
                assert_true((h->ids[t] == EOS || t == 10) == (t + 1 == h->length));
            }
            assert_memory_equal(&sum, &h->score, sizeof sum);
        }
        iso_generation_free(g);
    }
    iso_model_free(model);
    (void)state;
}

/* The first tokens of many samples of many sources have the distribution of the model. */
static void test_chance(void **state) {
    enum { SAMPLES = 1000, SOURCES = 20, N = SAMPLES * SOURCES };
    iso_model *model = make_model("");
    iso_error error = {0};
    iso_generation *g;
    static uint32_t many[SOURCES * 3];
    size_t each[SOURCES], found[V] = {0}, bins = 0;
    float logits[V];
    const uint32_t start = 1;
    for (size_t i = 0; i < SOURCES; i++) {
        each[i] = 3;
        memcpy(many + 3 * i, sources, 3 * sizeof *many);
    }
    iso_generate_options o = {.size = sizeof o,
                              .sampling = ISOBIT_SAMPLING_ON,
                              .hypotheses = SAMPLES,
                              .max_new_tokens = 1,
                              .top_k = SIZE_MAX,
                              .seed = {7}};
    ok(iso_generate(&g, model, many, each, SOURCES, &o, NULL, &error), &error);
    for (size_t i = 0; i < N; i++)
        found[g->best[i].ids[0]]++;
    iso_generation_free(g);
    ok(iso_logits_f32(logits, model, sources, 3, &start, 1, 0, NULL, &error), &error);
    kept k[V];
    double unsure, rest_wanted = 0, rest_found = 0, chi2 = 0;
    const model_warp all = {1, 0, 1, 0};
    assert_int_equal(literal_warp(k, &all, logits, V, &unsure), V);
    for (size_t i = 0; i < V; i++) {
        const double wanted = k[i].p * N, seen = (double)found[k[i].id];
        if (wanted < 10) {
            rest_wanted += wanted;
            rest_found += seen;
            continue;
        }
        chi2 += (seen - wanted) * (seen - wanted) / wanted;
        bins++;
    }
    if (rest_wanted > 0) {
        chi2 += (rest_found - rest_wanted) * (rest_found - rest_wanted) / rest_wanted;
        bins++;
    }
    /* Wilson and Hilferty: the 99.99 % quantile of chi-square with bins - 1 degrees of freedom. */
    const double f = (double)bins - 1, root = 1 - 2 / (9 * f) + 3.719 * sqrt(2 / (9 * f));
    print_message("chi-square %.1f with %zu bins, at most %.1f\n", chi2, bins,
                  f * root * root * root);
    assert_true(bins > 20 && chi2 < f * root * root * root && chi2 > f / 4);
    iso_model_free(model);
    (void)state;
}

static void same_hypothesis(const iso_hypothesis *a, const iso_hypothesis *b) {
    assert_int_equal(a->length, b->length);
    assert_memory_equal(a->ids, b->ids, a->length * sizeof *a->ids);
    assert_memory_equal(a->log_probs, b->log_probs, a->length * sizeof *a->log_probs);
    assert_memory_equal(&a->score, &b->score, sizeof a->score);
}

static int same_ids(const iso_hypothesis *a, const iso_hypothesis *b) {
    return a->length == b->length && memcmp(a->ids, b->ids, a->length * sizeof *a->ids) == 0;
}

enum { WIDE = 1900, MANY = 9, EACH = 4 };

/* One seed, one text: sets, threads, groups, calls of one source each, fewer samples. */
static void test_same_bits(void **state) {
    files f;
    files_make(&f);
    files_config(&f, "isobit-transformer", WIDE, 32, 2, 48,
                 ",\"eos_token_id\":[2,7],\"decoder_start_token_id\":1");
    builder b = {.state = 11};
    builder_model(&b, WIDE, 32, 48, 0);
    builder_write(&b, &f);
    iso_error error = {0};
    random_state = 3;
    uint32_t ids[MANY * 8];
    size_t each[MANY], first[MANY], at = 0;
    for (size_t i = 0; i < MANY; i++) {
        each[i] = 1 + i * 5 % 7;
        first[i] = at;
        for (size_t t = 0; t < each[i]; t++)
            ids[at++] = random_below(WIDE);
    }
    iso_model *model = NULL;
    iso_generation *wanted, *g;
    ok(iso_model_load(&model, f.directory, NULL, NULL, &error), &error);
    iso_generate_options o = {.size = sizeof o,
                              .sampling = ISOBIT_SAMPLING_ON,
                              .hypotheses = EACH,
                              .max_new_tokens = 6,
                              .top_k = 500,
                              .top_p = 0.97f,
                              .temperature = 3,
                              .seed = {3, 5}};
    ok(iso_generate(&wanted, model, ids, each, MANY, &o, NULL, &error), &error);
    iso_pool *pool;
    assert_int_equal(iso_pool_create(&pool, 3), ISOBIT_OK);
    for (size_t i = 0; i <= iso_isa_count(); i++) { /* the last round: threads */
        iso_context context = {.size = sizeof context};
        if (i < iso_isa_count())
            context.isa = iso_isa_get(i);
        else
            context.executor = iso_pool_executor(pool);
        if (context.isa && iso_isa_missing(context.isa))
            continue;
        iso_model *other = NULL;
        ok(iso_model_load(&other, f.directory, NULL, &context, &error), &error);
        ok(iso_generate(&g, other, ids, each, MANY, &o, &context, &error), &error);
        for (size_t j = 0; j < MANY * EACH; j++)
            same_hypothesis(&g->best[j], &wanted->best[j]);
        iso_generation_free(g);
        iso_model_free(other);
    }
    iso_pool_destroy(pool);
    for (o.batch_tokens = 1; o.batch_tokens < 20; o.batch_tokens += 9) {
        ok(iso_generate(&g, model, ids, each, MANY, &o, NULL, &error), &error);
        for (size_t j = 0; j < MANY * EACH; j++)
            same_hypothesis(&g->best[j], &wanted->best[j]);
        iso_generation_free(g);
    }
    size_t others = 0;
    for (size_t i = 0; i < MANY; i++) {
        o.first_source = i;
        for (o.hypotheses = 1; o.hypotheses <= EACH; o.hypotheses += EACH - 1) {
            ok(iso_generate(&g, model, ids + first[i], &each[i], 1, &o, NULL, &error), &error);
            for (size_t j = 0; j < o.hypotheses; j++)
                same_hypothesis(&g->best[j], &wanted->best[i * EACH + j]);
            iso_generation_free(g);
        }
        const iso_hypothesis *two = &wanted->best[i * EACH];
        others += !same_ids(&two[0], &two[1]);
        o.hypotheses = 1;
        /* Another seed, in either half, is another text. */
        for (int half = 0; half < 2; half++) {
            o.seed[half] ^= 1;
            ok(iso_generate(&g, model, ids + first[i], &each[i], 1, &o, NULL, &error), &error);
            others += !same_ids(&g->best[0], &two[0]);
            iso_generation_free(g);
            o.seed[half] ^= 1;
        }
    }
    assert_true(others >= 3 * MANY - 2);
    iso_generation_free(wanted);
    iso_model_free(model);
    files_remove(&f);
    (void)state;
}

/* With one token left to choose from, sampling is greedy search; attention goes along. */
static void test_greedy_is_the_limit(void **state) {
    iso_model *model = make_model("");
    iso_error error = {0};
    iso_generate_options o = {.size = sizeof o, .beams = 1, .max_length = 15, .attention = 1};
    iso_generation *greedy, *g;
    ok(iso_generate(&greedy, model, sources, lengths, 3, &o, NULL, &error), &error);
    o.sampling = ISOBIT_SAMPLING_ON;
    o.hypotheses = 3;
    for (int i = 0; i < 4; i++) {
        o.top_k = i == 0 ? 1 : SIZE_MAX;
        o.top_p = i == 1 ? 1e-9f : 1;
        o.has_min_p = i == 2;
        o.min_p = 1;
        o.temperature = i == 3 ? FLT_TRUE_MIN : 1.5f;
        ok(iso_generate(&g, model, sources, lengths, 3, &o, NULL, &error), &error);
        for (size_t j = 0; j < 9; j++) {
            same_hypothesis(&g->best[j], &greedy->best[j / 3]);
            assert_memory_equal(g->best[j].attention, greedy->best[j / 3].attention,
                                2 * g->best[j].length * lengths[j / 3] * sizeof(float));
        }
        iso_generation_free(g);
    }
    iso_generation_free(greedy);

    /* The attention of a token depends on those before it: samples have it in common as long. */
    size_t equal = 0, others = 0;
    o = (iso_generate_options){.size = sizeof o,
                               .sampling = ISOBIT_SAMPLING_ON,
                               .hypotheses = 6,
                               .max_length = 9,
                               .attention = 1};
    ok(iso_generate(&g, model, sources, lengths, 1, &o, NULL, &error), &error);
    for (size_t i = 0; i < 6; i++)
        for (size_t j = 0; j < i; j++)
            for (size_t t = 0; t < g->best[i].length && t < g->best[j].length; t++) {
                const iso_hypothesis *a = &g->best[i], *b = &g->best[j];
                const int same = memcmp(a->ids, b->ids, t * sizeof *a->ids) == 0;
                const int looks =
                    memcmp(a->attention + t * lengths[0], b->attention + t * lengths[0],
                           lengths[0] * sizeof(float)) == 0;
                assert_int_equal(same, looks);
                *(same ? &equal : &others) += 1;
            }
    assert_true(equal >= 15 && others > 30);
    iso_generation_free(g);
    iso_model_free(model);
    (void)state;
}

/* NaN and infinities: some token of the vocabulary, and no crash. */
static void test_nothing_is_finite(void **state) {
    const float values[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        files f;
        files_make(&f);
        files_config(&f, "marian", 5, 8, 2, 12,
                     ",\"eos_token_id\":2,\"decoder_start_token_id\":1,\"pad_token_id\":0,"
                     "\"forced_eos_token_id\":null");
        builder b = {.state = i + 1};
        builder_model(&b, 5, 8, 12, 0);
        builder_tensor(&b, "final_logits_bias", 1, 5, values[i], 0.5f);
        builder_write(&b, &f);
        iso_model *model = NULL;
        iso_error error = {0};
        ok(iso_model_load(&model, f.directory, NULL, NULL, &error), &error);
        iso_generate_options o = {
            .size = sizeof o, .sampling = ISOBIT_SAMPLING_ON, .hypotheses = 3, .max_length = 9};
        const uint32_t source[] = {3, 4, 0};
        const size_t two[] = {2, 1};
        iso_generation *g;
        ok(iso_generate(&g, model, source, two, 2, &o, NULL, &error), &error);
        for (size_t h = 0; h < g->count; h++)
            for (size_t t = 0; t < g->best[h].length; t++)
                assert_int_equal(g->best[h].ids[t], 0); /* as greedy search has it */
        iso_generation_free(g);
        iso_model_free(model);
        files_remove(&f);
    }
    (void)state;
}

/* ----------------------------------------------------------------------- defaults and options */

static void test_defaults(void **state) {
    static const struct {
        const char *more;
        int sampling;
        float temperature;
        size_t top_k;
        float top_p, min_p;
    } good[] = {
        {"", 0, 1, 50, 1, 0},
        {",\"top_k\":null,\"temperature\":null,\"do_sample\":null", 0, 1, 0, 1, 0},
        {",\"do_sample\":true,\"temperature\":0.5,\"top_k\":0,\"top_p\":0.25,\"min_p\":0.125", 1,
         0.5f, 0, 0.25f, 0.125f},
        {",\"do_sample\":true,\"temperature\":2,\"top_k\":7.0,\"top_p\":1,\"min_p\":1", 1, 2, 7, 1,
         1},
        /* Where nobody samples, nobody minds. */
        {",\"temperature\":0.0,\"top_p\":0,\"min_p\":-1", 0, 0, 50, 0, -1},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        iso_model *model = make_model(good[i].more);
        const iso_model_info *info = iso_model_get_info(model);
        assert_int_equal(info->default_sampling, good[i].sampling);
        assert_true(info->default_temperature == good[i].temperature);
        assert_int_equal(info->default_top_k, good[i].top_k);
        assert_true(info->default_top_p == good[i].top_p);
        assert_true(info->default_min_p == good[i].min_p);
        iso_model_free(model);
    }
    static const struct {
        const char *more, *message;
    } bad[] = {
        {"\"do_sample\":1", "\"do_sample\" is 1; true or false is expected"},
        {"\"do_sample\":true,\"temperature\":0", "\"temperature\" is 0; a number above 0 is"},
        {"\"do_sample\":true,\"temperature\":1e-60", "a number above 0 is expected"},
        {"\"do_sample\":true,\"temperature\":-1", "\"temperature\" is -1; a number above 0"},
        {"\"temperature\":\"hot\"", "a number in range is expected"},
        {"\"top_k\":-1", "\"top_k\" is -1; a whole number from 0 to"},
        {"\"top_k\":2.5", "\"top_k\" is a number with a fraction"},
        {"\"top_k\":1e300", "a whole number from 0 to"},
        {"\"do_sample\":true,\"top_p\":0", "\"top_p\" is 0; a number above 0 and at most 1 is"},
        {"\"do_sample\":true,\"top_p\":1.5", "a number above 0 and at most 1 is expected"},
        {"\"top_p\":true", "\"top_p\" is true; a number above 0 and at most 1 is"},
        {"\"top_p\":1e300", "a number above 0 and at most 1 is expected"},
        {"\"do_sample\":true,\"min_p\":-0.1", "a number from 0 to 1 is expected"},
        {"\"do_sample\":true,\"min_p\":1.01", "a number from 0 to 1 is expected"},
        {"\"min_p\":[]", "a number from 0 to 1 is expected"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        files f;
        char text[300];
        iso_model *model = NULL;
        iso_error error = {0};
        files_make(&f);
        files_config(&f, "marian", V, 16, 2, 24,
                     ",\"eos_token_id\":2,\"decoder_start_token_id\":1,\"pad_token_id\":0");
        (void)snprintf(text, sizeof text, "{\"eos_token_id\":2,%s}", bad[i].more);
        files_text(&f, "generation_config.json", text);
        builder b = {.state = 5};
        builder_model(&b, V, 16, 24, 1);
        builder_write(&b, &f);
        assert_int_equal(iso_model_load(&model, f.directory, NULL, NULL, &error), ISOBIT_E_CONFIG);
        if (strncmp(error.message, "generation_config.json: ", 24) != 0 ||
            !strstr(error.message, bad[i].message))
            fail_msg("%s: %s", bad[i].more, error.message);
        files_remove(&f);
    }
    (void)state;
}

static void test_options(void **state) {
    iso_model *model = make_model("");
    iso_error error = {0};
    iso_generation *g = NULL;
    static const uint32_t stop[] = {2, 5, 6, 0}, beyond[] = {1, V}, behind[] = {1, 5, 3, 1, 2};
    const struct {
        iso_generate_options o;
        iso_status status;
        const char *message;
    } bad[] = {
        {{.temperature = -1}, ISOBIT_E_OPTION, "temperature is -1; a number above 0 is expected"},
        {{.temperature = NAN}, ISOBIT_E_OPTION, "temperature is nan; a number above 0"},
        {{.temperature = INFINITY}, ISOBIT_E_OPTION, "temperature is inf; a number above 0"},
        {{.top_p = -0.5f}, ISOBIT_E_OPTION, "top_p is -0.5; a number above 0 and at most 1"},
        {{.top_p = 1.5f}, ISOBIT_E_OPTION, "top_p is 1.5; a number above 0 and at most 1"},
        {{.top_p = NAN}, ISOBIT_E_OPTION, "top_p is nan; a number above 0 and at most 1"},
        {{.has_min_p = 1, .min_p = -0.25f}, ISOBIT_E_OPTION, "min_p is -0.25; a number from 0"},
        {{.has_min_p = 1, .min_p = 1.25f}, ISOBIT_E_OPTION, "min_p is 1.25; a number from 0 to 1"},
        {{.has_min_p = 1, .min_p = NAN}, ISOBIT_E_OPTION, "min_p is nan; a number from 0 to 1"},
        {{.beams = 2}, ISOBIT_E_OPTION, "sampling with 2 beams; "},
        {{.hypotheses = 1025}, ISOBIT_E_LIMIT, "1025 samples; at most 1024 are possible"},
        {{.sampling = (iso_sampling)3}, ISOBIT_E_OPTION, "sampling is 3, which has no meaning"},
        {{.stop_count = 1}, ISOBIT_E_NULL, "stop_ids is NULL, stop_count is 1"},
        {{.stop_ids = stop, .stop_count = 4}, ISOBIT_E_DIM, "stop_ids[3] is the length 0"},
        {{.stop_ids = stop, .stop_count = 2},
         ISOBIT_E_DIM,
         "stop_ids[0] is the length 2, and 1 numbers follow"},
        {{.stop_ids = behind, .stop_count = 5},
         ISOBIT_E_DIM,
         "stop_ids[2] is the length 3, and 2 numbers follow"},
        {{.stop_ids = beyond, .stop_count = 2},
         ISOBIT_E_RANGE,
         "stop_ids[1] is 61; the vocabulary has 61 tokens"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        iso_generate_options o = bad[i].o;
        o.size = sizeof o;
        o.sampling = o.sampling ? o.sampling : ISOBIT_SAMPLING_ON;
        assert_int_equal(iso_generate(&g, model, sources, lengths, 3, &o, NULL, &error),
                         bad[i].status);
        if (!strstr(error.message, bad[i].message))
            fail_msg("case %zu: %s", i, error.message);
        assert_null(g);
    }
    iso_model_free(model);

    /* A model that samples with beams, which is a method that we lack, until the caller decides. */
    model = make_model(",\"do_sample\":true,\"num_beams\":4,\"top_k\":1");
    iso_generate_options o = {.size = sizeof o, .max_length = 8};
    assert_int_equal(iso_generate(&g, model, sources, lengths, 3, NULL, NULL, &error),
                     ISOBIT_E_UNSUPPORTED);
    assert_non_null(strstr(error.message, "sampling with 4 beams, as the model's files ask for"));
    iso_generation *greedy, *beams;
    o.beams = 4;
    o.sampling = ISOBIT_SAMPLING_OFF;
    ok(iso_generate(&beams, model, sources, lengths, 3, &o, NULL, &error), &error);
    o.beams = 0;
    ok(iso_generate(&g, model, sources, lengths, 3, &o, NULL, &error), &error);
    for (size_t i = 0; i < 3; i++)
        same_hypothesis(&g->best[i], &beams->best[i]);
    iso_generation_free(g);
    o.beams = 1;
    ok(iso_generate(&greedy, model, sources, lengths, 3, &o, NULL, &error), &error);
    for (size_t i = 0; i < 2; i++) { /* its top_k of 1, by either way of asking for sampling */
        o.beams = i;
        o.sampling = i ? ISOBIT_SAMPLING_DEFAULT : ISOBIT_SAMPLING_ON;
        ok(iso_generate(&g, model, sources, lengths, 3, &o, NULL, &error), &error);
        for (size_t j = 0; j < 3; j++)
            same_hypothesis(&g->best[j], &greedy->best[j]);
        iso_generation_free(g);
    }
    iso_generation_free(greedy);
    iso_generation_free(beams);
    iso_model_free(model);
    (void)state;
}

/* ------------------------------------------------------------------------------------- stops */

/* Where the first of some sequences ends in a target: the length up to there. */
static size_t literal_stop(const iso_hypothesis *h, const uint32_t *stop, size_t count) {
    for (size_t end = 1; end <= h->length; end++)
        for (size_t at = 0; at < count; at += stop[at] + 1) {
            const size_t n = stop[at];
            size_t same = 0;
            while (n <= end && same < n && h->ids[end - n + same] == stop[at + 1 + same])
                same++;
            if (same == n)
                return end;
        }
    return h->length;
}

/* The same asked of a function, for each token. */
typedef struct asked {
    const uint32_t *stop;
    size_t count;
    iso_generation *whole; /* of which sequences are beginnings; NULL: not looked at */
    atomic_size_t calls;
    size_t fail_at; /* 0: never */
} asked;

static int is_last(void *user, const iso_sequence *s) {
    asked *a = user;
    const iso_hypothesis h = {.ids = s->ids, .length = s->length};
    const size_t call = 1 + atomic_fetch_add(&a->calls, 1);
    if (a->whole) {
        assert_true(s->source < 3 && s->length && s->length <= a->whole->best[s->source].length);
        assert_memory_equal(s->ids, a->whole->best[s->source].ids, s->length * sizeof *s->ids);
    }
    if (call == a->fail_at)
        return -1;
    for (size_t at = 0; at < a->count; at += a->stop[at] + 1)
        if (h.length >= a->stop[at] &&
            memcmp(h.ids + h.length - a->stop[at], a->stop + at + 1, a->stop[at] * 4) == 0)
            return 5;
    return 0;
}

static void test_is_last(void **state) {
    iso_model *model = make_model("");
    iso_error error = {0};
    iso_pool *pool;
    assert_int_equal(iso_pool_create(&pool, 2), ISOBIT_OK);
    size_t shorter = 0;
    for (size_t i = 0; i < 90; i++) {
        const size_t beams = i % 3 == 2 ? 4 : 1, hypotheses = i % 3 ? 3 : 1;
        const iso_context context = {.size = sizeof context,
                                     .executor = i % 2 ? iso_pool_executor(pool) : NULL};
        iso_generation *whole, *wanted, *g = NULL;
        iso_generate_options o = {.size = sizeof o,
                                  .beams = beams,
                                  .hypotheses = hypotheses,
                                  .max_length = 20,
                                  .min_length = 10,
                                  .sampling = i % 3 == 1 ? ISOBIT_SAMPLING_ON : ISOBIT_SAMPLING_OFF,
                                  .seed = {(uint32_t)i}};
        ok(iso_generate(&whole, model, sources, lengths, 3, &o, NULL, &error), &error);
        const uint32_t *ids = whole->best[i % whole->count].ids;
        const uint32_t stop[] = {1, ids[4], 2, ids[1], ids[2]};
        o.stop_ids = stop;
        o.stop_count = i % 7 ? 5 : 0;
        ok(iso_generate(&wanted, model, sources, lengths, 3, &o, NULL, &error), &error);
        asked a = {stop, o.stop_count, i % 3 ? NULL : whole, 0, 0};
        o.stop_ids = NULL;
        o.stop_count = 0;
        o.is_last = is_last;
        o.is_last_user = &a;
        ok(iso_generate(&g, model, sources, lengths, 3, &o, &context, &error), &error);
        for (size_t j = 0; j < g->count; j++) {
            same_hypothesis(&g->best[j], &wanted->best[j]);
            shorter += g->best[j].length < whole->best[j].length;
        }
        iso_generation_free(g);

        a = (asked){.fail_at = 1 + i % a.calls};
        g = NULL;
        assert_int_equal(iso_generate(&g, model, sources, lengths, 3, &o, &context, &error),
                         ISOBIT_E_CANCELLED);
        assert_non_null(strstr(error.message, "is_last has ended the call at token"));
        assert_null(g);
        iso_generation_free(wanted);
        iso_generation_free(whole);
    }
    assert_true(shorter > 60);
    iso_pool_destroy(pool);
    iso_model_free(model);
    (void)state;
}

static void test_stop(void **state) {
    iso_model *model = make_model("");
    iso_error error = {0};
    size_t shorter = 0;
    for (size_t i = 0; i < 60; i++) {
        iso_generation *whole, *g;
        iso_generate_options o = {.size = sizeof o,
                                  .beams = 1,
                                  .max_length = 30,
                                  .min_length = 10, /* holds back the EOS only */
                                  .sampling = i % 2 ? ISOBIT_SAMPLING_ON : ISOBIT_SAMPLING_OFF,
                                  .seed = {(uint32_t)i}};
        ok(iso_generate(&whole, model, sources, lengths, 3, &o, NULL, &error), &error);
        const iso_hypothesis *h = &whole->best[i % 3];
        const size_t at = i / 6, n = 1 + i % 4;
        if (at + n > h->length) {
            iso_generation_free(whole);
            continue;
        }
        /* What is there, between two that are not: the start token, and one that lacks its end. */
        uint32_t stop[16] = {2, 1, h->ids[0], (uint32_t)n};
        memcpy(stop + 4, h->ids + at, n * sizeof *stop);
        const uint32_t other[] = {2, h->ids[at], h->ids[at] == 9 ? 8 : 9};
        memcpy(stop + 4 + n, other, sizeof other);
        o.stop_ids = stop;
        o.stop_count = 4 + n + 3;
        ok(iso_generate(&g, model, sources, lengths, 3, &o, NULL, &error), &error);
        for (size_t j = 0; j < 3; j++) {
            const size_t length = literal_stop(&whole->best[j], stop, o.stop_count);
            assert_int_equal(g->best[j].length, length);
            assert_memory_equal(g->best[j].ids, whole->best[j].ids, length * sizeof(uint32_t));
            shorter += length < whole->best[j].length;
        }
        iso_generation_free(g);
        iso_generation_free(whole);
    }
    assert_true(shorter > 30);
    iso_model_free(model);

    /* Beams: a single token ends a sequence as an EOS would. */
    model = make_model("");
    size_t ended = 0;
    for (uint32_t id = 3; id < V; id++) {
        iso_model *two = make_model_with(id, "");
        const uint32_t stop[] = {1, id};
        iso_generate_options o = {.size = sizeof o,
                                  .beams = 4,
                                  .hypotheses = 4,
                                  .max_length = 12,
                                  .has_length_penalty = 1,
                                  .length_penalty = 0};
        iso_generation *wanted, *g;
        ok(iso_generate(&wanted, two, sources, lengths, 3, &o, NULL, &error), &error);
        o.stop_ids = stop;
        o.stop_count = 2;
        ok(iso_generate(&g, model, sources, lengths, 3, &o, NULL, &error), &error);
        asked a = {.stop = stop, .count = 2};
        o.stop_count = 0;
        o.is_last = is_last;
        o.is_last_user = &a;
        iso_generation *by_function;
        ok(iso_generate(&by_function, model, sources, lengths, 3, &o, NULL, &error), &error);
        for (size_t i = 0; i < 12; i++) {
            same_hypothesis(&g->best[i], &wanted->best[i]);
            same_hypothesis(&by_function->best[i], &wanted->best[i]);
            ended += g->best[i].length && g->best[i].ids[g->best[i].length - 1] == id;
        }
        iso_generation_free(wanted);
        iso_generation_free(g);
        iso_generation_free(by_function);
        iso_model_free(two);
    }
    print_message("%zu hypotheses end with the token\n", ended);
    assert_true(ended > 20);
    iso_model_free(model);
    (void)state;
}

/* ---------------------------------------------------------------------------------- on_token */

enum { MOST_TOKENS = 2000 };
typedef struct listener {
    iso_token seen[MOST_TOKENS];
    size_t count, cancel_at; /* 0: never */
} listener;

static int listen(void *user, const iso_token *token) {
    listener *l = user;
    assert_true(l->count < MOST_TOKENS);
    assert_true(!l->cancel_at || l->count < l->cancel_at);
    l->seen[l->count++] = *token;
    return l->count == l->cancel_at;
}

static void test_on_token(void **state) {
    static listener l;
    iso_model *model = make_model("");
    iso_error error = {0};
    iso_pool *pool;
    assert_int_equal(iso_pool_create(&pool, 2), ISOBIT_OK);
    for (size_t i = 0; i < 6; i++) { /* greedy, samples, beams; with threads */
        static const uint32_t stop[] = {1, 3, 1, 7, 1, 12, 1, 20, 1, 33, 1, 41, 1, 50, 1, 56};
        const iso_context context = {.size = sizeof context,
                                     .executor = i % 2 ? iso_pool_executor(pool) : NULL};
        iso_generate_options o = {.size = sizeof o,
                                  .beams = i / 2 == 2 ? 4 : 1,
                                  .hypotheses = i / 2 ? 3 : 1,
                                  .sampling = i / 2 == 1 ? ISOBIT_SAMPLING_ON : ISOBIT_SAMPLING_OFF,
                                  .max_length = 20,
                                  .stop_ids = stop, /* else samples end together */
                                  .stop_count = i / 2 == 1 ? 16 : 0,
                                  .on_token = listen,
                                  .user = &l};
        iso_generation *g;
        l = (listener){0};
        ok(iso_generate(&g, model, sources, lengths, 3, &o, &context, &error), &error);
        size_t next[9] = {0}, tokens = 0;
        for (size_t k = 0; k < l.count; k++) {
            const iso_token *t = &l.seen[k];
            assert_true(t->source < 3 && t->hypothesis < o.hypotheses);
            const size_t sequence = t->source * o.hypotheses + t->hypothesis;
            const iso_hypothesis *h = &g->best[sequence];
            assert_int_equal(t->position, next[sequence]++);
            assert_true(t->position < h->length);
            assert_int_equal(t->id, h->ids[t->position]);
            assert_memory_equal(&t->log_prob, &h->log_probs[t->position], sizeof t->log_prob);
            assert_int_equal(t->last, t->position + 1 == h->length);
            /* As soon as they are there: no sequence is ahead of another one that goes on. */
            for (size_t j = 0; j < g->count && i / 2 < 2; j++)
                assert_true(next[j] + 1 >= t->position + 1 || next[j] == g->best[j].length);
        }
        for (size_t j = 0; j < g->count; j++)
            tokens += g->best[j].length;
        assert_int_equal(l.count, tokens);
        assert_true(tokens > 20);
        iso_generation_free(g);

        const size_t ends[] = {1, 2, tokens / 2, tokens};
        for (size_t k = 0; k < 4; k++) {
            l = (listener){.cancel_at = ends[k]};
            g = NULL;
            assert_int_equal(iso_generate(&g, model, sources, lengths, 3, &o, &context, &error),
                             ISOBIT_E_CANCELLED);
            assert_int_equal(error.status, ISOBIT_E_CANCELLED);
            assert_non_null(strstr(error.message, "on_token has ended the call at token"));
            assert_null(g);
            assert_int_equal(l.count, ends[k]);
        }
    }
    iso_pool_destroy(pool);
    iso_model_free(model);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forced_bos),
        cmocka_unit_test(test_philox),
        cmocka_unit_test(test_warp),
        cmocka_unit_test(test_transformers),
        cmocka_unit_test(test_draw),
        cmocka_unit_test(test_literal_sampling),
        cmocka_unit_test(test_chance),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_greedy_is_the_limit),
        cmocka_unit_test(test_nothing_is_finite),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_is_last),
        cmocka_unit_test(test_on_token),
    };
    return cmocka_run_group_tests_name("sample", tests, NULL, NULL);
}
