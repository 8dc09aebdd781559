/* SPDX-License-Identifier: MIT
 *
 * Many sentences and many tokens.
 */
#include "test_model.h"

/* A model whose vocabulary is wide enough for all that the search does with wide ones. */
#define WIDE 3000
static iso_model *load_wide(void) {
    files f;
    files_make(&f);
    files_config(&f, "isobit-transformer", WIDE, 32, 2, 48,
                 ",\"eos_token_id\":2,\"decoder_start_token_id\":1");
    builder b = {.state = 11};
    builder_model(&b, WIDE, 32, 48, 0);
    builder_write(&b, &f);
    iso_model *model = load(f.directory);
    files_remove(&f);
    return model;
}

/* One step of a search finds the largest log-probabilities, found here by sorting. */
void test_wide_vocabulary(void **state) {
    enum { BEAMS = 40 };
    static float row[WIDE];
    iso_error error = {0};
    iso_model *model = load_wide();
    for (uint32_t i = 0; i < 20; i++) {
        const uint32_t source[] = {i * 97 + 3, i * 31 + 9, 2}, start = 1;
        const size_t S = 3, most = i % 2 ? BEAMS : 1;
        iso_generation *g;
        iso_softmax_options log = {.size = sizeof log, .log = 1};
        iso_generate_options o = {
            .size = sizeof o, .beams = most, .hypotheses = most, .max_new_tokens = 1};
        ok(iso_generate(&g, model, source, &S, 1, &o, NULL, &error), &error);
        ok(iso_logits_f32(row, model, source, S, &start, 1, 0, NULL, &error), &error);
        assert_int_equal(iso_softmax_f32(row, WIDE, row, WIDE, 1, WIDE, &log, NULL), ISOBIT_OK);
        for (size_t h = 0; h < most; h++) {
            size_t best = 0;
            for (size_t v = 1; v < WIDE; v++)
                if (row[v] > row[best])
                    best = v;
            assert_int_equal(g->best[h].length, 1);
            assert_int_equal(g->best[h].ids[0], best);
            assert_memory_equal(&g->best[h].log_probs[0], &row[best], sizeof(float));
            row[best] = -INFINITY;
        }
        iso_generation_free(g);
    }
    iso_model_free(model);
    (void)state;
}

/* A pool searches sentences side by side; alone and together, the same. */
void test_wide_on_threads(void **state) {
    static corpus c;
    iso_error error = {0};
    iso_pool *pool;
    iso_model *model = load_wide();
    make_corpus(&c, WIDE);
    assert_int_equal(iso_pool_create(&pool, 3), ISOBIT_OK);
    iso_context context = {.size = sizeof context, .executor = iso_pool_executor(pool)};
    for (size_t beams = 1; beams <= 4; beams += 3) {
        iso_generate_options o = {.size = sizeof o, .beams = beams, .hypotheses = beams};
        iso_generation *a, *b;
        ok(iso_generate(&a, model, c.ids, c.lengths, SENTENCES, &o, NULL, &error), &error);
        ok(iso_generate(&b, model, c.ids, c.lengths, SENTENCES, &o, &context, &error), &error);
        for (size_t i = 0; i < SENTENCES * beams; i++)
            same_hypothesis(&a->best[i], &b->best[i], 0);
        iso_generation_free(a);
        iso_generation_free(b);
    }
    iso_pool_destroy(pool);
    iso_model_free(model);
    (void)state;
}

/* So many sequences that they take several groups: each as when it is alone. */
void test_encode_batch(void **state) {
    enum { TIMES = 40 };
    static corpus c;
    static uint32_t ids[TIMES * SENTENCES * 32];
    static size_t lengths[TIMES * SENTENCES];
    iso_error error = {0};
    iso_model *model = load_golden(golden[3], NULL);
    const size_t d = iso_model_get_info(model)->d;
    make_corpus(&c, iso_model_get_info(model)->source_vocabulary);
    for (size_t i = 0; i < TIMES; i++) {
        memcpy(ids + i * c.total, c.ids, c.total * sizeof *ids);
        memcpy(lengths + i * SENTENCES, c.lengths, sizeof c.lengths);
    }
    assert_true(TIMES * c.total > 4096);
    float *all = malloc(TIMES * c.total * d * sizeof *all), *one = malloc(32 * d * sizeof *one);
    assert_true(all && one);
    ok(iso_encode_batch_f32(all, model, ids, lengths, TIMES * SENTENCES, NULL, &error), &error);
    for (size_t i = 0; i < SENTENCES; i++) {
        ok(iso_encode_f32(one, model, c.ids + c.first[i], c.lengths[i], NULL, &error), &error);
        for (size_t t = 0; t < TIMES; t++)
            assert_memory_equal(all + (t * c.total + c.first[i]) * d, one,
                                c.lengths[i] * d * sizeof *one);
    }
    ok(iso_encode_batch_f32(NULL, model, NULL, NULL, 0, NULL, &error), &error);
    assert_int_equal(iso_encode_batch_f32(NULL, model, ids, lengths, 1, NULL, &error),
                     ISOBIT_E_NULL);
    free(all);
    free(one);
    iso_model_free(model);
    (void)state;
}

static void run_backwards(void *user, size_t n, void (*fn)(void *arg, size_t i), void *arg) {
    backwards *b = user;
    b->regions++;
    while (n--)
        fn(arg, n);
}

const iso_context *make_backwards(backwards *b, size_t threads) {
    *b = (backwards){.executor = {run_backwards, b, threads},
                     .context = {.size = sizeof b->context, .executor = &b->executor}};
    return &b->context;
}

/* What a model computes from a corpus, taken three times where that is quick. */
typedef struct results {
    float *encoded, *scores;
    iso_generation *beams;
    double flops;
} results;

enum { THRICE = 3 };

static void compute(results *r, iso_model *model, const corpus *c, const iso_context *context,
                    int by_kind) {
    static uint32_t ids[THRICE * SENTENCES * 32];
    static size_t lengths[THRICE * SENTENCES], targets[THRICE * SENTENCES];
    const size_t d = iso_model_get_info(model)->d;
    const int both = has_encoder(model);
    iso_generate_options o = {
        .size = sizeof o, .beams = 6, .hypotheses = 6, .max_new_tokens = 7, .attention = both};
    iso_profile p = {.size = sizeof p, .by_kind = by_kind};
    iso_error error = {0};
    for (size_t i = 0; i < THRICE; i++) {
        memcpy(ids + i * c->total, c->ids, c->total * sizeof *ids);
        memcpy(lengths + i * SENTENCES, c->lengths, sizeof c->lengths);
    }
    for (size_t i = 0; i < THRICE * SENTENCES; i++) /* a prompt and its target share positions */
        targets[i] = both || lengths[i] < 13 ? lengths[i] : 13;
    r->encoded = calloc(THRICE * c->total, d * sizeof(float));
    r->scores = calloc(THRICE * c->total, sizeof(float));
    assert_true(r->encoded && r->scores);
    assert_int_equal(iso_model_set_profile(model, &p), ISOBIT_OK);
    if (both)
        ok(iso_encode_batch_f32(r->encoded, model, ids, lengths, THRICE * SENTENCES, context,
                                &error),
           &error);
    ok(iso_score_f32(r->scores, model, ids, lengths, ids, targets, THRICE * SENTENCES, context,
                     &error),
       &error);
    ok(iso_generate(&r->beams, model, c->ids, c->lengths, SENTENCES, &o, context, &error), &error);
    assert_int_equal(iso_model_set_profile(model, NULL), ISOBIT_OK);
    r->flops = p.flops;
}

static void free_results(results *r) {
    free(r->encoded);
    free(r->scores);
    iso_generation_free(r->beams);
}

/* Weights that stay in 16 bits give the bits of those that were widened when they were loaded. */
void test_widened(void **state) {
    (void)state;
    static corpus c;
    size_t half = 0;
    for (size_t m = 0; m < golden_count; m += model_step()) {
        char path[600];
        iso_error error = {0};
        const iso_load_options options = {.size = sizeof options, .widen = 1};
        iso_model *model = load_golden(golden[m], NULL), *wide;
        (void)snprintf(path, sizeof path, "%s/models/%s", ISOBIT_TEST_DATA, golden[m]);
        ok(iso_model_load(&wide, path, &options, NULL, &error), &error);
        const iso_model_info *info = iso_model_get_info(model), *other = iso_model_get_info(wide);
        const int in_16 = strstr(golden[m], "f16") != NULL;
        results expected, r;
        half += in_16 ? 1 : 0;
        assert_int_equal(info->parameters, other->parameters);
        assert_int_equal(other->parameters_16, 0);
        assert_true(in_16 ? info->parameters_16 > info->parameters / 2 : !info->parameters_16);
        /* panels of 32 columns, not 16, may have more that is not used in models so small */
        assert_true(in_16 ? info->weight_bytes < other->weight_bytes
                          : info->weight_bytes == other->weight_bytes);
        make_corpus(&c, info->source_vocabulary < info->target_vocabulary
                            ? info->source_vocabulary
                            : info->target_vocabulary);
        for (size_t i = 0; i < iso_isa_count(); i++) {
            const iso_context context = {.size = sizeof context, .isa = iso_isa_get(i)};
            if (iso_isa_missing(context.isa))
                continue;
            compute(&expected, wide, &c, &context, 0);
            compute(&r, model, &c, &context, 0);
            assert_memory_equal(r.encoded, expected.encoded,
                                THRICE * c.total * info->d * sizeof(float));
            assert_memory_equal(r.scores, expected.scores, THRICE * c.total * sizeof(float));
            for (size_t h = 0; h < r.beams->count; h++)
                same_hypothesis(&r.beams->best[h], &expected.beams->best[h], 0);
            free_results(&expected);
            free_results(&r);
        }
        iso_model_free(model);
        iso_model_free(wide);
    }
    assert_true(half >= (model_step() == 1 ? 2 : 1));
}

/*
 * Enough rows for all threads: between attentions each thread takes its own rows through all ops.
 * The same bits, and as many multiply-adds, for any number of threads; and not with more than
 * one parallel region for all these ops.
 */
void test_rows_among_threads(void **state) {
    static corpus c;
    const size_t step = getenv("ISOBIT_EMULATED") ? 5 : 1; /* each number of threads once */
    for (size_t m = 0; m < 2 * golden_count; m += 2 * model_step() - 1) {
        iso_model *model =
            m < golden_count ? load_golden(golden[m], NULL) : load_int8(golden[m - golden_count]);
        const iso_model_info *info = iso_model_get_info(model);
        const size_t most = info->source_vocabulary < info->target_vocabulary
                                ? info->source_vocabulary
                                : info->target_vocabulary;
        results expected, r;
        make_corpus(&c, most);
        compute(&expected, model, &c, NULL, 0);
        for (size_t i = 0; i < 16; i += step) {
            const size_t threads = 1 + i / 2 % 4;
            iso_pool *pool = NULL;
            backwards b;
            const iso_context *context = make_backwards(&b, threads);
            iso_context pooled = {.size = sizeof pooled};
            if (i < 8) {
                assert_int_equal(iso_pool_create(&pool, threads), ISOBIT_OK);
                pooled.executor = iso_pool_executor(pool);
                context = &pooled;
            }
            compute(&r, model, &c, context, i % 2);
            assert_memory_equal(r.encoded, expected.encoded,
                                THRICE * c.total * info->d * sizeof(float));
            assert_memory_equal(r.scores, expected.scores, THRICE * c.total * sizeof(float));
            for (size_t h = 0; h < r.beams->count; h++)
                same_hypothesis(&r.beams->best[h], &expected.beams->best[h],
                                has_encoder(model)
                                    ? info->decoder_layers * info->decoder_heads * c.lengths[h / 6]
                                    : 0);
            assert_true(r.flops == expected.flops);
            free_results(&r);
            iso_pool_destroy(pool);
        }
        free_results(&expected);
        if (!has_encoder(model)) {
            iso_model_free(model);
            continue;
        }

        /* These models are small: no op deals out anything on its own. */
        backwards few, enough;
        float *y = malloc(c.total * info->d * sizeof *y);
        iso_error error = {0};
        assert_non_null(y);
        ok(iso_encode_f32(y, model, c.ids, 12, make_backwards(&few, 2), &error), &error);
        assert_int_equal(few.regions, 0);
        /* Memory is for the rows, however many threads there might be. */
        ok(iso_encode_f32(y, model, c.ids, 12, make_backwards(&few, 1000000000), &error), &error);
        assert_int_equal(few.regions, 0);
        ok(iso_encode_batch_f32(y, model, c.ids, c.lengths, SENTENCES, make_backwards(&enough, 2),
                                &error),
           &error);
        assert_int_equal(enough.regions, info->encoder_layers + 1);
        free(y);
        iso_model_free(model);
    }
    (void)state;
}
