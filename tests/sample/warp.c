/* SPDX-License-Identifier: MIT
 *
 * Random numbers, and what is kept of a row of logits.
 */
#include "test_sample.h"

uint64_t random_state = 1;
uint32_t random_below(uint32_t n) {
    uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((z ^ (z >> 31)) >> 32) % n;
}
static float uniform(void) { return (float)random_below(1 << 24) * 0x1p-24f; }

/* The known answers that come with Random123 1.09, kat_vectors. */
void test_philox(void **state) {
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
size_t literal_warp(kept *k, const model_warp *w, const float *row, size_t n, double *unsure) {
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

void test_warp(void **state) {
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

void test_transformers(void **state) {
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
void test_draw(void **state) {
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
