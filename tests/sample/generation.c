/* SPDX-License-Identifier: MIT
 *
 * Generation by sampling.
 */
#include "test_sample.h"

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
void test_literal_sampling(void **state) {
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
void test_chance(void **state) {
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

void same_hypothesis(const iso_hypothesis *a, const iso_hypothesis *b) {
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
void test_same_bits(void **state) {
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
void test_greedy_is_the_limit(void **state) {
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
void test_nothing_is_finite(void **state) {
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
