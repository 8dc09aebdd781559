/* SPDX-License-Identifier: MIT
 *
 * The model layer against PyTorch (tests/data/models, made by tools/make_golden.py), against
 * itself (any batch, any number of threads, any instruction set, cached or not: the same bits),
 * and the beam search against a literal one that recomputes everything from scratch.
 */
#include "model_files.h"

#include <isobit/model.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#define LOGITS_ERROR 2e-5
#define ATTENTION_ERROR 1e-5

static const char *const golden[] = {"marian-swish",
                                     "marian-relu-f16",
                                     "marian-gelu-bf16",
                                     "paper",
                                     "paper-untied-f16",
                                     "paper-alias-bf16",
                                     "bart",
                                     "mbart-f16",
                                     "pegasus-bf16",
                                     "m2m-100",
                                     "gpt2",
                                     "gpt2-untied-f16",
                                     "t5",
                                     "flan-t5-bf16",
                                     "mt5-f16",
                                     "umt5",
                                     "llama",
                                     "llama3-bf16",
                                     "qwen2-f16",
                                     "mistral",
                                     "llama-yarn",
                                     "llama-longrope",
                                     "mistral-window",
                                     "qwen2-window",
                                     "qwen3-bf16",
                                     "phi3-bf16",
                                     "phi3-longrope",
                                     "gemma-bf16",
                                     "opt-f16"};

static void ok(iso_status status, const iso_error *error) {
    if (status)
        fail_msg("status %d: %s", (int)status, error->message);
}

static iso_model *load(const char *directory) {
    iso_model *model = NULL;
    iso_error error = {0};
    ok(iso_model_load(&model, directory, NULL, NULL, &error), &error);
    return model;
}

static iso_model *load_golden(const char *name, json_t **cases) {
    char path[600];
    (void)snprintf(path, sizeof path, "%s/models/%s", ISOBIT_TEST_DATA, name);
    iso_model *model = load(path);
    if (cases) {
        (void)snprintf(path, sizeof path, "%s/models/%s/expected.json", ISOBIT_TEST_DATA, name);
        *cases = json_load_file(path, 0, NULL);
        assert_non_null(*cases);
    }
    return model;
}

static size_t read_ids(const json_t *list, uint32_t *ids, size_t room) {
    assert_true(json_array_size(list) <= room);
    for (size_t i = 0; i < json_array_size(list); i++)
        ids[i] = (uint32_t)json_integer_value(json_array_get(list, i));
    return json_array_size(list);
}

/* The largest difference between nested lists and an array. */
static double largest_error(const json_t *list, const float **values) {
    double most = 0;
    if (!json_is_array(list))
        return fabs(json_number_value(list) - (double)*(*values)++);
    for (size_t i = 0; i < json_array_size(list); i++) {
        double error = largest_error(json_array_get(list, i), values);
        most = !(error <= most) ? error : most; /* a NaN stays */
    }
    return most;
}

static void check_close(const json_t *list, const float *values, size_t count, double tolerance,
                        const char *what) {
    const float *at = values;
    double error = largest_error(list, &at);
    assert_int_equal(at - values, count);
    if (!(error <= tolerance))
        fail_msg("%s: error %g, at most %g is allowed", what, error, tolerance);
}

static iso_generate_options settings(const json_t *s, size_t beams) {
    iso_generate_options o = {.size = sizeof o, .beams = beams, .attention = 1};
    const json_t *value;
    if ((value = json_object_get(s, "num_beams")))
        o.hypotheses = o.beams = (size_t)json_integer_value(value);
    if ((value = json_object_get(s, "length_penalty"))) {
        o.has_length_penalty = 1;
        o.length_penalty = (float)json_number_value(value);
    }
    if ((value = json_object_get(s, "early_stopping")))
        o.early_stopping = json_is_string(value) ? ISOBIT_EARLY_NEVER
                           : json_is_true(value) ? ISOBIT_EARLY_TRUE
                                                 : ISOBIT_EARLY_FALSE;
    if ((value = json_object_get(s, "no_repeat_ngram_size")))
        o.no_repeat_ngram = (size_t)json_integer_value(value);
    if ((value = json_object_get(s, "repetition_penalty")))
        o.repetition_penalty = (float)json_number_value(value);
    if ((value = json_object_get(s, "min_length")))
        o.min_length = (size_t)json_integer_value(value);
    return o;
}

static void check_ids(const iso_hypothesis *h, const json_t *expected, const char *what) {
    uint32_t ids[64];
    size_t n = read_ids(expected, ids, 64);
    int same = n == h->length && memcmp(ids, h->ids, n * sizeof *ids) == 0;
    for (size_t i = 0; !same && i < h->length; i++)
        print_error("  token %zu: %u, expected %d\n", i, h->ids[i], i < n ? (int)ids[i] : -1);
    if (!same)
        fail_msg("%s: other tokens", what);
}

/* A decoder alone has no source but a prompt, and no attention over an encoder. */
static int has_encoder(const iso_model *model) {
    return iso_model_get_info(model)->encoder_layers != 0;
}

static void logits_of(float *logits, const iso_model *model, const uint32_t *source, size_t S,
                      const uint32_t *target, size_t T, int stepwise) {
    iso_error error = {0};
    const int both = has_encoder(model);
    ok(iso_logits_f32(logits, model, both ? source : NULL, both ? S : 0, target, T, stepwise, NULL,
                      &error),
       &error);
}

/* Emulated, and in the thread sanitizer, most tests take every third model. */
static size_t model_step(void) {
#if defined(__SANITIZE_THREAD__)
    return 3;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
    return 3;
#endif
#endif
    return getenv("ISOBIT_EMULATED") ? 3 : 1;
}

static void test_golden(void **state) {
    for (size_t m = 0; m < sizeof golden / sizeof *golden; m++) {
        json_t *cases, *c;
        iso_model *model = load_golden(golden[m], &cases);
        const iso_model_info *info = iso_model_get_info(model);
        const size_t V = info->target_vocabulary, d = info->d;
        const size_t heads = info->decoder_layers * info->decoder_heads;
        iso_error error = {0};
        size_t i;
        json_array_foreach(cases, i, c) {
            uint32_t source[64], target[64];
            size_t S = read_ids(json_object_get(c, "source"), source, 64);
            const int both = has_encoder(model);
            size_t T = read_ids(json_object_get(c, both ? "target" : "source"), target, 64);
            float *encoded = malloc(S * d * sizeof(float)), *logits = malloc(T * V * sizeof(float));
            if (both) {
                ok(iso_encode_f32(encoded, model, source, S, NULL, &error), &error);
                check_close(json_object_get(c, "encoder"), encoded, S * d, LOGITS_ERROR, golden[m]);
            }
            logits_of(logits, model, source, S, target, T, 0);
            check_close(json_object_get(c, "logits"), logits, T * V, LOGITS_ERROR, golden[m]);
            free(encoded);
            free(logits);

            json_t *run;
            size_t j;
            iso_generation *g;
            json_array_foreach(json_object_get(c, "greedy"), j, run) {
                iso_generate_options o = settings(json_object_get(run, "settings"), 1);
                o.attention = both;
                ok(iso_generate(&g, model, source, &S, 1, &o, NULL, &error), &error);
                check_ids(&g->best[0], json_object_get(run, "ids"), golden[m]);
                if (json_is_array(json_object_get(run, "attention")))
                    check_close(json_object_get(run, "attention"), g->best[0].attention,
                                heads * g->best[0].length * S, ATTENTION_ERROR, golden[m]);
                iso_generation_free(g);
            }
            json_array_foreach(json_object_get(c, "beams"), j, run) {
                iso_generate_options o = settings(json_object_get(run, "settings"), 1);
                char what[100];
                o.attention = both;
                (void)snprintf(what, sizeof what, "%s, source %zu, beams %zu", golden[m], i, j);
                ok(iso_generate(&g, model, source, &S, 1, &o, NULL, &error), &error);
                assert_int_equal(g->count, o.beams);
                for (size_t h = 0; h < o.beams; h++) {
                    double score =
                        json_number_value(json_array_get(json_object_get(run, "scores"), h));
                    check_ids(&g->best[h], json_array_get(json_object_get(run, "ids"), h), what);
                    if (!(fabs(score - (double)g->best[h].score) <= 1e-4 * (1 + fabs(score))))
                        fail_msg("%s: score %g, expected %g", what, (double)g->best[h].score,
                                 score);
                }
                const json_t *attention = json_object_get(run, "attention");
                for (size_t k = 0; k < 2 && json_is_array(json_array_get(attention, k)); k++) {
                    const iso_hypothesis *h = &g->best[k ? o.beams - 1 : 0];
                    check_close(json_array_get(attention, k), h->attention, heads * h->length * S,
                                ATTENTION_ERROR, what);
                }
                iso_generation_free(g);
            }
        }
        json_decref(cases);
        iso_model_free(model);
    }
    (void)state;
}

/* ------------------------------------------------------------------------------- same bits */

static void same_hypothesis(const iso_hypothesis *a, const iso_hypothesis *b, size_t attention) {
    assert_int_equal(a->length, b->length);
    assert_memory_equal(a->ids, b->ids, a->length * sizeof *a->ids);
    assert_memory_equal(&a->score, &b->score, sizeof a->score);
    assert_memory_equal(a->log_probs, b->log_probs, a->length * sizeof *a->log_probs);
    if (attention && a->length)
        assert_memory_equal(a->attention, b->attention, attention * a->length * sizeof(float));
}

/* Sources of many lengths, some of them equal. */
#define SENTENCES 23
typedef struct corpus {
    uint32_t ids[SENTENCES * 32];
    size_t lengths[SENTENCES], first[SENTENCES], total;
} corpus;

static void make_corpus(corpus *c, size_t V) {
    uint32_t x = 12345;
    c->total = 0;
    for (size_t i = 0; i < SENTENCES; i++) {
        c->lengths[i] = 1 + (i * 7) % 12 + (i == 5 ? 15 : 0);
        c->first[i] = c->total;
        for (size_t t = 0; t < c->lengths[i]; t++) {
            x = x * 1664525u + 1013904223u;
            c->ids[c->total++] = (x >> 8) % (uint32_t)V;
        }
    }
}

static void test_batch_and_permutation(void **state) {
    static corpus c;
    iso_error error = {0};
    for (size_t m = 0; m < sizeof golden / sizeof *golden; m += model_step()) {
        iso_model *model = load_golden(golden[m], NULL);
        const iso_model_info *info = iso_model_get_info(model);
        const size_t heads = has_encoder(model) ? info->decoder_layers * info->decoder_heads : 0;
        make_corpus(&c, info->source_vocabulary);
        for (size_t beams = 1; beams <= 4; beams += 3) {
            iso_generate_options o = {.size = sizeof o,
                                      .beams = beams,
                                      .hypotheses = beams,
                                      .attention = has_encoder(model)};
            iso_generation *alone[SENTENCES], *g;
            for (size_t i = 0; i < SENTENCES; i++)
                ok(iso_generate(&alone[i], model, c.ids + c.first[i], &c.lengths[i], 1, &o, NULL,
                                &error),
                   &error);
            const size_t budgets[] = {0, 1, 20, 100000};
            for (size_t b = 0; b < 4; b++) {
                o.batch_tokens = budgets[b];
                ok(iso_generate(&g, model, c.ids, c.lengths, SENTENCES, &o, NULL, &error), &error);
                assert_int_equal(g->count, SENTENCES * beams);
                for (size_t i = 0; i < SENTENCES * beams; i++)
                    same_hypothesis(&g->best[i], &alone[i / beams]->best[i % beams],
                                    heads * c.lengths[i / beams]);
                iso_generation_free(g);
            }
            /* In reverse order. */
            uint32_t ids[SENTENCES * 32];
            size_t lengths[SENTENCES], at = 0;
            for (size_t i = 0; i < SENTENCES; i++) {
                size_t from = SENTENCES - 1 - i;
                lengths[i] = c.lengths[from];
                memcpy(ids + at, c.ids + c.first[from], lengths[i] * sizeof *ids);
                at += lengths[i];
            }
            ok(iso_generate(&g, model, ids, lengths, SENTENCES, &o, NULL, &error), &error);
            for (size_t i = 0; i < SENTENCES * beams; i++)
                same_hypothesis(&g->best[i], &alone[SENTENCES - 1 - i / beams]->best[i % beams], 0);
            iso_generation_free(g);
            for (size_t i = 0; i < SENTENCES; i++)
                iso_generation_free(alone[i]);
        }
        iso_model_free(model);
    }
    (void)state;
}

static void test_cached_is_recomputed(void **state) {
    for (size_t m = 0; m < sizeof golden / sizeof *golden; m += model_step()) {
        iso_model *model = load_golden(golden[m], NULL);
        const iso_model_info *info = iso_model_get_info(model);
        const size_t V = info->target_vocabulary;
        uint32_t source[30], target[40];
        for (uint32_t i = 0; i < 40; i++) {
            source[i % 30] = (i * 11 + 3) % (uint32_t)info->source_vocabulary;
            target[i] =
                i || !has_encoder(model) ? (i * 17 + 5) % (uint32_t)V : info->decoder_start_id;
        }
        float *whole = malloc(40 * V * sizeof(float)), *steps = malloc(40 * V * sizeof(float));
        for (size_t S = 1; S <= 30; S += 29) {
            logits_of(whole, model, source, S, target, 40, 0);
            logits_of(steps, model, source, S, target, 40, 1);
            assert_memory_equal(whole, steps, 40 * V * sizeof(float));
            /* A prefix gives the same rows. */
            logits_of(steps, model, source, S, target, 7, 0);
            assert_memory_equal(whole, steps, 7 * V * sizeof(float));
        }
        free(whole);
        free(steps);
        iso_model_free(model);
    }
    (void)state;
}

/* ------------------------------------------------------------------------- a bias of distances */

enum { FAR_S = 530, FAR_T = 520, FAR_MOST = 50 };

/* What is computed of a source and a target that are longer than the distances that buckets tell
 * apart, and than the queries of a call of attention: alone, and as the last two of a batch. */
typedef struct distant {
    float encoded[FAR_S * FAR_MOST], logits[FAR_T * FAR_MOST], scores[FAR_T + FAR_T / 2];
} distant;

static void compute_distant(distant *y, const iso_model *model, const uint32_t *source,
                            const uint32_t *target, const iso_context *context) {
    static uint32_t sources[1 + FAR_S + FAR_S / 2], targets[1 + FAR_T + FAR_T / 2];
    static float encoded[(1 + FAR_S + FAR_S / 2) * FAR_MOST], scores[1 + FAR_T + FAR_T / 2];
    static const size_t S[] = {1, FAR_S / 2, FAR_S}, T[] = {1, FAR_T / 2, FAR_T};
    const size_t d = iso_model_get_info(model)->d;
    iso_error error = {0};
    ok(iso_encode_f32(y->encoded, model, source, FAR_S, context, &error), &error);
    ok(iso_logits_f32(y->logits, model, source, FAR_S, target, FAR_T, 0, context, &error), &error);
    for (size_t i = 0, s = 0, t = 0; i < 3; s += S[i], t += T[i++]) {
        memcpy(sources + s, source, S[i] * sizeof *source);
        memcpy(targets + t, target, T[i] * sizeof *target);
    }
    ok(iso_encode_batch_f32(encoded, model, sources, S, 3, context, &error), &error);
    assert_memory_equal(encoded + (1 + FAR_S / 2) * d, y->encoded, FAR_S * d * sizeof *encoded);
    ok(iso_score_f32(scores, model, sources, S, targets, T, 3, context, &error), &error);
    memcpy(y->scores, scores + 1, sizeof y->scores);
}

static void check_rows(const json_t *c, const char *rows, const char *values, const float *y,
                       size_t n, const char *what) {
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(c, rows), i, row)
        check_close(json_array_get(json_object_get(c, values), i),
                    y + json_integer_value(row) * (json_int_t)n, n, LOGITS_ERROR, what);
    assert_true(i >= 11);
}

static void test_long_distances(void **state) {
    static const char *const names[] = {"t5", "flan-t5-bf16", "mt5-f16", "umt5"};
    static distant y, z;
    static float steps[FAR_T * FAR_MOST];
    iso_pool *pool;
    assert_int_equal(iso_pool_create(&pool, 3), ISOBIT_OK);
    for (size_t m = 0; m < sizeof names / sizeof *names; m++) {
        char path[600];
        uint32_t source[FAR_S], target[FAR_T];
        iso_error error = {0};
        iso_model *model = load_golden(names[m], NULL);
        const iso_model_info *info = iso_model_get_info(model);
        const size_t V = info->target_vocabulary, d = info->d;
        (void)snprintf(path, sizeof path, "%s/models/%s/long.json", ISOBIT_TEST_DATA, names[m]);
        json_t *c = json_load_file(path, 0, NULL);
        assert_non_null(c);
        assert_true(d <= FAR_MOST && V <= FAR_MOST);
        assert_int_equal(read_ids(json_object_get(c, "source"), source, FAR_S), FAR_S);
        assert_int_equal(read_ids(json_object_get(c, "target"), target, FAR_T), FAR_T);
        memset(&y, 0, sizeof y);
        memset(&z, 0, sizeof z);
        compute_distant(&y, model, source, target, NULL);
        check_rows(c, "source_rows", "encoder", y.encoded, d, names[m]);
        check_rows(c, "target_rows", "logits", y.logits, V, names[m]);
        ok(iso_logits_f32(steps, model, source, FAR_S, target, FAR_T, 1, NULL, &error), &error);
        assert_memory_equal(steps, y.logits, FAR_T * V * sizeof *steps);
        /* Instruction sets with one of the models, threads with another: each takes its time. */
        const size_t contexts = getenv("ISOBIT_EMULATED") ? 0 : m == 1 ? iso_isa_count() : m == 3;
        for (size_t i = 0; i < contexts; i++) {
            iso_context context = {.size = sizeof context};
            if (m == 3)
                context.executor = iso_pool_executor(pool);
            else if (iso_isa_missing(context.isa = iso_isa_get(i)))
                continue;
            compute_distant(&z, model, source, target, &context);
            assert_memory_equal(&y, &z, sizeof y);
        }
        json_decref(c);
        iso_model_free(model);
    }
    iso_pool_destroy(pool);
    (void)state;
}

/* What the search says of its tokens is what scoring them says. No processor is on here. */
static void test_scores_agree(void **state) {
    static corpus c;
    iso_error error = {0};
    const char *const plain[] = {golden[3], golden[4], golden[5], "gpt2"};
    for (size_t m = 0; m < 4; m++) {
        iso_model *model = load_golden(plain[m], NULL);
        make_corpus(&c, iso_model_get_info(model)->source_vocabulary);
        for (size_t beams = 1; beams <= 4; beams += 3) {
            iso_generate_options o = {.size = sizeof o, .beams = beams};
            iso_generation *g;
            static uint32_t targets[SENTENCES * 64];
            static float scores[SENTENCES * 64];
            size_t lengths[SENTENCES], at = 0;
            float sum;
            ok(iso_generate(&g, model, c.ids, c.lengths, SENTENCES, &o, NULL, &error), &error);
            for (size_t i = 0; i < SENTENCES; i++) {
                lengths[i] = g->best[i].length;
                memcpy(targets + at, g->best[i].ids, lengths[i] * sizeof *targets);
                at += lengths[i];
            }
            ok(iso_score_f32(scores, model, c.ids, c.lengths, targets, lengths, SENTENCES, NULL,
                             &error),
               &error);
            for (size_t i = 0, t = 0; i < SENTENCES; t += lengths[i++]) {
                assert_memory_equal(scores + t, g->best[i].log_probs, lengths[i] * sizeof *scores);
                sum = 0;
                for (size_t j = 0; j < lengths[i]; j++)
                    sum += scores[t + j];
                if (beams > 1)
                    sum /= (float)lengths[i];
                assert_memory_equal(&sum, &g->best[i].score, sizeof sum);
            }
            /* One target alone, and one without any token among others. */
            float alone[64];
            ok(iso_score_f32(alone, model, c.ids + c.first[4], &c.lengths[4], targets, &lengths[0],
                             1, NULL, &error),
               &error);
            size_t two[2] = {0, lengths[0]};
            float pair[64];
            ok(iso_score_f32(pair, model, c.ids + c.first[3], &c.lengths[3], targets, two, 2, NULL,
                             &error),
               &error);
            assert_memory_equal(alone, pair, lengths[0] * sizeof *pair);
            iso_generation_free(g);
        }
        iso_model_free(model);
    }
    (void)state;
}

/* Everything under another context gives the bits of the default one. */
static void same_under(const iso_context *context) {
    static corpus c;
    iso_error error = {0};
    for (size_t m = 0; m < sizeof golden / sizeof *golden; m += model_step()) {
        char path[600];
        iso_model *model = load_golden(golden[m], NULL), *other = NULL;
        (void)snprintf(path, sizeof path, "%s/models/%s", ISOBIT_TEST_DATA, golden[m]);
        ok(iso_model_load(&other, path, NULL, context, &error), &error);
        make_corpus(&c, iso_model_get_info(model)->source_vocabulary);
        for (size_t beams = 1; beams <= 4; beams += 3) {
            const int both = has_encoder(model);
            iso_generate_options o = {.size = sizeof o, .beams = beams, .attention = both};
            iso_generation *a, *b;
            ok(iso_generate(&a, model, c.ids, c.lengths, SENTENCES, &o, NULL, &error), &error);
            ok(iso_generate(&b, other, c.ids, c.lengths, SENTENCES, &o, context, &error), &error);
            for (size_t i = 0; i < SENTENCES; i++)
                same_hypothesis(&a->best[i], &b->best[i],
                                both ? iso_model_get_info(model)->decoder_layers * c.lengths[i]
                                     : 0);
            iso_generation_free(a);
            iso_generation_free(b);
        }
        const size_t d = iso_model_get_info(model)->d;
        float *x = calloc(c.lengths[5], d * sizeof *x), *y = calloc(c.lengths[5], d * sizeof *y);
        if (has_encoder(model)) {
            ok(iso_encode_f32(x, model, c.ids + c.first[5], c.lengths[5], NULL, &error), &error);
            ok(iso_encode_f32(y, other, c.ids + c.first[5], c.lengths[5], context, &error), &error);
        }
        assert_memory_equal(x, y, c.lengths[5] * d * sizeof *x);
        free(x);
        free(y);
        iso_model_free(model);
        iso_model_free(other);
    }
}

static void test_threads(void **state) {
    iso_pool *pool;
    assert_int_equal(iso_pool_create(&pool, 3), ISOBIT_OK);
    iso_context context = {.size = sizeof context, .executor = iso_pool_executor(pool)};
    same_under(&context);
    iso_pool_destroy(pool);
    (void)state;
}

static void test_instruction_sets(void **state) {
    for (size_t i = 0; i < iso_isa_count(); i++) {
        iso_context context = {.size = sizeof context, .isa = iso_isa_get(i)};
        if (!iso_isa_missing(context.isa))
            same_under(&context);
    }
    (void)state;
}

/* --------------------------------------------- a literal beam search (for small vocabularies) */

#define MOST_BEAMS 8
#define MOST_TOKENS 8
#define MOST_VOCABULARY 150

typedef struct beam {
    uint32_t ids[MOST_TOKENS + 1]; /* the start token first */
    size_t length;
    float score;
    int flag;
} beam;

/* Sorted by score, best first; equal ones stay in their order. */
static void sort_beams(beam *b, size_t count) {
    for (size_t i = 1; i < count; i++)
        for (size_t j = i; j && b[j].score > b[j - 1].score; j--) {
            beam swap = b[j];
            b[j] = b[j - 1];
            b[j - 1] = swap;
        }
}

/* log softmax of the logits after the whole sequence, computed from the beginning. */
static void literal_log_probs(float *row, const iso_model *model, const uint32_t *source, size_t S,
                              const beam *b, size_t V) {
    static float logits[(MOST_TOKENS + 1) * MOST_VOCABULARY];
    iso_error error = {0};
    iso_softmax_options log = {.size = sizeof log, .log = 1, .safe = 1};
    ok(iso_logits_f32(logits, model, source, S, b->ids, b->length, 0, NULL, &error), &error);
    memcpy(row, logits + (b->length - 1) * V, V * sizeof *row);
    assert_int_equal(iso_softmax_f32(row, V, row, V, 1, V, &log, NULL), ISOBIT_OK);
}

static void literal_search(beam *done, const iso_model *model, const uint32_t *source, size_t S,
                           size_t b, size_t max_length, double lp, iso_early_stopping early) {
    const iso_model_info *info = iso_model_get_info(model);
    const size_t V = info->target_vocabulary;
    const uint32_t eos = info->eos_ids[0];
    static beam live[MOST_BEAMS], cand[MOST_BEAMS * MOST_VOCABULARY], merged[3 * MOST_BEAMS];
    static beam onward[MOST_BEAMS * MOST_VOCABULARY];
    int improvable = 1;
    for (size_t i = 0; i < b; i++) {
        live[i] = (beam){.ids = {info->decoder_start_id}, .length = 1, .score = i ? -1e9f : 0};
        done[i] = (beam){.score = -1e9f};
    }
    for (size_t c = 1;; c++) {
        size_t count = 0, K = 2 * b, hits = 0;
        for (size_t i = 0; i < b; i++) {
            float row[MOST_VOCABULARY];
            literal_log_probs(row, model, source, S, &live[i], V);
            for (size_t v = 0; v < V; v++) {
                beam next = live[i];
                next.ids[next.length++] = (uint32_t)v;
                next.score = row[v] + live[i].score;
                cand[count++] = next;
            }
        }
        sort_beams(cand, count);
        count = count < K ? count : K;
        int all_done = 1;
        for (size_t i = 0; i < b; i++)
            all_done &= done[i].flag;
        memcpy(merged, done, b * sizeof *merged);
        for (size_t k = 0; k < count; k++) {
            int hit = cand[k].ids[c] == eos || c + 1 >= max_length;
            hits += (size_t)hit;
            onward[k] = cand[k];
            if (hit)
                onward[k].score += -1e9f;
            beam *m = &merged[b + k];
            *m = cand[k];
            m->score = cand[k].score / (float)pow((double)c, lp);
            m->flag = hit && k < b;
            if (all_done && early == ISOBIT_EARLY_TRUE)
                m->score += -1e9f;
            if (!improvable)
                m->score += -1e9f;
            if (!m->flag)
                m->score += -1e9f;
        }
        sort_beams(onward, count);
        memcpy(live, onward, b * sizeof *live);
        sort_beams(merged, b + count);
        memcpy(done, merged, b * sizeof *done);
        double longest = early == ISOBIT_EARLY_NEVER && lp > 0 ? (double)max_length - 1 : (double)c;
        float hope = live[0].score / (float)pow(longest, lp), worst = done[0].score;
        int better = 0;
        all_done = 1;
        for (size_t i = 0; i < b; i++) {
            worst = done[i].score < worst ? done[i].score : worst;
            all_done &= done[i].flag;
        }
        for (size_t i = 0; i < b; i++)
            better |= hope > (done[i].flag ? worst : -1e9f);
        improvable &= better;
        if (!improvable || (all_done && early == ISOBIT_EARLY_TRUE) || hits == count)
            break;
    }
}

static void test_literal_beam_search(void **state) {
    static const iso_early_stopping early[] = {ISOBIT_EARLY_FALSE, ISOBIT_EARLY_TRUE,
                                               ISOBIT_EARLY_NEVER};
    static const float penalties[] = {1, 0, 0.6f, 2, -1};
    size_t compared = 0, stopped_early = 0;
    for (uint64_t seed = 0; seed <= 6; seed++)
        for (size_t V = 3; V <= 6; V += 3) {
            files f;
            files_make(&f);
            files_config(&f, "isobit-transformer", V, 8, 2, 12,
                         ",\"eos_token_id\":2,\"decoder_start_token_id\":1");
            /* Seed 0: all embeddings are the same, so that all tokens tie at every step. */
            builder b = {.state = seed, .skip = seed ? NULL : "model.shared.weight"};
            builder_model(&b, V, 8, 12, 0);
            b.skip = NULL;
            if (seed == 0)
                builder_tensor(&b, "model.shared.weight", V, 8, 0.3f, 0);
            builder_write(&b, &f);
            iso_model *model = load(f.directory);
            const uint32_t source[] = {0, 1, 2};
            if (seed == 0) { /* greedy: the lowest of equal tokens */
                const size_t S = 3;
                iso_generation *g;
                iso_error error = {0};
                iso_generate_options o = {.size = sizeof o, .beams = 1, .max_length = 6};
                ok(iso_generate(&g, model, source, &S, 1, &o, NULL, &error), &error);
                assert_int_equal(g->best[0].length, 5);
                for (size_t t = 0; t < 5; t++)
                    assert_int_equal(g->best[0].ids[t], 0);
                iso_generation_free(g);
            }
            for (size_t beams = 2; beams <= 7; beams++)
                for (size_t e = 0; e < 3; e++)
                    for (size_t p = 0; p < 5; p++)
                        for (size_t length = 2; length <= 7; length += 5) {
                            const size_t S = 1 + (beams + p) % 3;
                            beam expected[MOST_BEAMS];
                            iso_generation *g;
                            iso_error error = {0};
                            iso_generate_options o = {.size = sizeof o,
                                                      .beams = beams,
                                                      .hypotheses = beams,
                                                      .max_length = length,
                                                      .has_length_penalty = 1,
                                                      .length_penalty = penalties[p],
                                                      .early_stopping = early[e]};
                            literal_search(expected, model, source, S, beams, length,
                                           (double)penalties[p], early[e]);
                            ok(iso_generate(&g, model, source, &S, 1, &o, NULL, &error), &error);
                            for (size_t h = 0; h < beams; h++) {
                                const beam *x = &expected[h];
                                const iso_hypothesis *y = &g->best[h];
                                if (!x->flag) { /* never finished: what it holds says nothing */
                                    assert_int_equal(y->length, 0);
                                    continue;
                                }
                                assert_int_equal(x->length - 1, y->length);
                                assert_memory_equal(x->ids + 1, y->ids, y->length * 4);
                                assert_memory_equal(&x->score, &y->score, sizeof(float));
                                compared++;
                                stopped_early += y->length + 1 < length;
                            }
                            iso_generation_free(g);
                        }
            iso_model_free(model);
            files_remove(&f);
        }
    assert_true(compared > 1000);
    assert_true(stopped_early > 100 && stopped_early < compared - 100);
    (void)state;
}

/* All tokens are almost alike: sums that differ by one ULP decide, in every block of the scan. */
static void test_near_ties(void **state) {
    const size_t V = MOST_VOCABULARY, length = 5;
    for (uint64_t seed = 1; seed <= 18; seed++) {
        files f;
        files_make(&f);
        files_config(&f, "isobit-transformer", V, 8, 2, 12,
                     ",\"eos_token_id\":2,\"decoder_start_token_id\":1");
        builder b = {.state = seed, .skip = "model.shared.weight"};
        builder_model(&b, V, 8, 12, 0);
        b.skip = NULL;
        builder_tensor(&b, "model.shared.weight", V, 8, 0.3f, 2e-7f * (float)(1 + seed % 6));
        builder_write(&b, &f);
        iso_model *model = load(f.directory);
        for (size_t beams = 2 + (size_t)(seed % 3); beams <= MOST_BEAMS; beams += 3) {
            const uint32_t source[] = {0, 1, 2};
            const size_t S = 3;
            beam expected[MOST_BEAMS];
            iso_generation *g;
            iso_error error = {0};
            iso_generate_options o = {.size = sizeof o,
                                      .beams = beams,
                                      .hypotheses = beams,
                                      .max_length = length,
                                      .has_length_penalty = 1,
                                      .length_penalty = 1};
            literal_search(expected, model, source, S, beams, length, 1, ISOBIT_EARLY_FALSE);
            ok(iso_generate(&g, model, source, &S, 1, &o, NULL, &error), &error);
            for (size_t h = 0; h < beams; h++) {
                assert_true(expected[h].flag);
                assert_int_equal(expected[h].length - 1, g->best[h].length);
                assert_memory_equal(expected[h].ids + 1, g->best[h].ids, g->best[h].length * 4);
                assert_memory_equal(&expected[h].score, &g->best[h].score, sizeof(float));
            }
            iso_generation_free(g);
        }
        iso_model_free(model);
        files_remove(&f);
    }
    (void)state;
}

/* ----------------------------------------------------------------------------------- traps */

static void test_arguments(void **state) {
    iso_model *model = load_golden("paper", NULL);
    iso_generation *g = NULL;
    iso_error error = {0};
    uint32_t ids[64] = {4, 5, 2};
    static float out[64 * 50];
    size_t S = 0;
    /* An empty source, an id beyond the vocabulary, more tokens than positions. */
    assert_int_equal(iso_generate(&g, model, ids, &S, 1, NULL, NULL, &error), ISOBIT_E_DIM);
    assert_int_equal(iso_encode_f32(out, model, ids, 0, NULL, &error), ISOBIT_E_DIM);
    ids[1] = 50;
    S = 3;
    assert_int_equal(iso_generate(&g, model, ids, &S, 1, NULL, NULL, &error), ISOBIT_E_RANGE);
    assert_non_null(strstr(error.message, "position 1"));
    assert_non_null(strstr(error.message, "50"));
    ids[1] = 5;
    S = 41;
    assert_int_equal(iso_generate(&g, model, ids, &S, 1, NULL, NULL, &error), ISOBIT_E_LIMIT);
    assert_int_equal(iso_logits_f32(out, model, ids, 3, ids, 41, 0, NULL, &error), ISOBIT_E_LIMIT);
    assert_int_equal(iso_logits_f32(out, model, ids, 3, ids, 0, 0, NULL, &error), ISOBIT_OK);
    assert_null(g);
    S = 3;
    const struct {
        iso_generate_options o;
        iso_status status;
    } bad[] = {
        {{.size = 8}, ISOBIT_E_SIZE},
        {{.beams = 2, .hypotheses = 3}, ISOBIT_E_OPTION},
        {{.beams = 100000}, ISOBIT_E_LIMIT},
        {{.max_length = 1}, ISOBIT_E_OPTION},
        {{.max_length = 42}, ISOBIT_E_LIMIT},
        {{.max_new_tokens = SIZE_MAX}, ISOBIT_E_LIMIT},
        {{.has_length_penalty = 1, .length_penalty = NAN}, ISOBIT_E_OPTION},
        {{.repetition_penalty = -1}, ISOBIT_E_OPTION},
        {{.early_stopping = (iso_early_stopping)9}, ISOBIT_E_OPTION},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        iso_generate_options o = bad[i].o;
        o.size = o.size ? o.size : sizeof o;
        assert_int_equal(iso_generate(&g, model, ids, &S, 1, &o, NULL, &error), bad[i].status);
    }
    assert_null(g);
    iso_context context = {.size = 3};
    assert_int_equal(iso_generate(&g, model, ids, &S, 1, NULL, &context, &error), ISOBIT_E_SIZE);
    assert_int_equal(iso_generate(&g, NULL, ids, &S, 1, NULL, NULL, &error), ISOBIT_E_NULL);
    /* No sources: an empty result. */
    ok(iso_generate(&g, model, NULL, NULL, 0, NULL, NULL, &error), &error);
    assert_int_equal(g->count, 0);
    iso_generation_free(g);
    iso_generation_free(NULL);
    iso_model_free(model);
    iso_model_free(NULL);
    (void)state;
}

static void test_lengths(void **state) {
    iso_model *model = load_golden("paper", NULL);
    const iso_model_info *info = iso_model_get_info(model);
    const uint32_t source[] = {9, 22, 31, 2};
    const size_t S = 4;
    iso_error error = {0};
    iso_generation *g;
    /* max_new_tokens wins over max_length and does not count the start token; no forced end. */
    iso_generate_options o = {
        .size = sizeof o, .beams = 1, .max_length = 9, .max_new_tokens = 3, .min_length = 30};
    ok(iso_generate(&g, model, source, &S, 1, &o, NULL, &error), &error);
    assert_int_equal(g->best[0].length, 3);
    iso_generation_free(g);
    o.max_new_tokens = 0;
    ok(iso_generate(&g, model, source, &S, 1, &o, NULL, &error), &error);
    assert_int_equal(g->best[0].length, 8);
    assert_true(g->best[0].ids[7] != info->eos_ids[0]);
    iso_generation_free(g);
    /* As many positions as there are: the last token needs none. */
    o.max_length = info->max_positions + 1;
    o.min_length = 100;
    ok(iso_generate(&g, model, source, &S, 1, &o, NULL, &error), &error);
    assert_int_equal(g->best[0].length, info->max_positions);
    iso_generation_free(g);
    /* More beams than tokens in the vocabulary. */
    o = (iso_generate_options){.size = sizeof o, .beams = 60, .hypotheses = 60, .max_length = 4};
    ok(iso_generate(&g, model, source, &S, 1, &o, NULL, &error), &error);
    assert_int_equal(g->count, 60);
    iso_generation_free(g);
    iso_model_free(model);
    (void)state;
}

/* Every token forbidden, and weights of NaN and Inf: any result, but no crash. */
static void test_nothing_is_finite(void **state) {
    static const char *const more[] = {
        ",\"eos_token_id\":2,\"decoder_start_token_id\":1,\"forced_eos_token_id\":null,"
        "\"pad_token_id\":0,\"bad_words_ids\":[[0],[1],[2],[3],[4]]",
        ",\"eos_token_id\":2,\"decoder_start_token_id\":1,\"pad_token_id\":0"};
    const float values[] = {0, NAN, INFINITY};
    for (size_t i = 0; i < 6; i++) {
        files f;
        files_make(&f);
        files_config(&f, "marian", 5, 8, 2, 12, more[i / 3]);
        builder b = {.state = i + 1};
        builder_model(&b, 5, 8, 12, 0);
        builder_tensor(&b, "final_logits_bias", 1, 5, values[i % 3], 0.5f);
        builder_write(&b, &f);
        iso_model *model = load(f.directory);
        for (size_t beams = 1; beams <= 4; beams++) {
            iso_generate_options o = {.size = sizeof o,
                                      .beams = beams,
                                      .hypotheses = beams,
                                      .attention = 1,
                                      .max_length = 9};
            const uint32_t source[] = {3, 4, 0};
            const size_t lengths[] = {2, 1};
            iso_error error = {0};
            iso_generation *g;
            ok(iso_generate(&g, model, source, lengths, 2, &o, NULL, &error), &error);
            for (size_t h = 0; h < g->count; h++)
                for (size_t t = 0; t < g->best[h].length; t++)
                    assert_true(g->best[h].ids[t] < 5);
            iso_generation_free(g);
        }
        iso_model_free(model);
        files_remove(&f);
    }
    (void)state;
}

/* ------------------------------------------------------------------------- the shipped model */

#define G2P ISOBIT_SOURCE_DIR "/models/g2p-en"

static void test_g2p(void **state) {
    if (access(G2P "/model.safetensors", R_OK) != 0)
        skip();
    iso_model *model = load(G2P);
    const iso_model_info *info = iso_model_get_info(model);
    iso_tokenizer *t;
    iso_error error = {0};
    assert_string_equal(info->family, "isobit-transformer");
    assert_int_equal(info->eos_count, 1);
    assert_true(info->weight_bytes >= info->parameters * 4);
    ok(iso_tokenizer_load(&t, G2P, &error), &error);
    static const char text[] = "\xc2\xbfna\xc3\x8fve? \xe2\x80\x9c"
                               "Don\xe2\x80\x99t\xe2\x80\x9d "
                               "co-operate... !? a#b";
    uint32_t ids[100];
    size_t lengths[10], id_count, sequences;
    ok(iso_tokenizer_encode(t, text, strlen(text), ids, 100, &id_count, lengths, 10, &sequences,
                            &error),
       &error);
    assert_int_equal(sequences, 5); /* naïve, don't, co, operate, a#b */
    static const size_t expected[] = {6, 6, 3, 8, 4};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(lengths[i], expected[i]);
    char back[100];
    size_t needed;
    assert_int_equal(iso_tokenizer_decode(t, ids, lengths[0], back, sizeof back, &needed), 0);
    assert_string_equal(back, "na\xc3\xafve");
    assert_int_equal(needed, 7);
    assert_int_equal(iso_tokenizer_decode(t, ids + 6, lengths[1], back, sizeof back, NULL), 0);
    assert_string_equal(back, "don't");
    assert_int_equal(ids[6 + 6 + 3 + 8 + 1], info->unk_id); /* the # of a#b */
    assert_int_equal(iso_tokenizer_decode(t, ids, lengths[0], back, 5, &needed),
                     ISOBIT_E_WORKSPACE);
    assert_string_equal(back, "na\xc3\xaf");
    assert_string_equal(iso_tokenizer_token(t, info->eos_ids[0]), "</s>");
    assert_null(iso_tokenizer_token(t, 100000));
    assert_int_equal(iso_tokenizer_encode(t, text, strlen(text), ids, 3, &id_count, lengths, 1,
                                          &sequences, &error),
                     ISOBIT_E_WORKSPACE);
    assert_int_equal(sequences, 5);
    assert_int_equal(
        iso_tokenizer_encode(t, "a\xff", 2, ids, 9, &id_count, lengths, 9, &sequences, &error),
        ISOBIT_E_UTF8);
    ok(iso_tokenizer_encode(t, " ... ", 5, NULL, 0, &id_count, NULL, 0, &sequences, &error),
       &error);
    assert_int_equal(sequences, 0);

    iso_generation *g;
    ok(iso_tokenizer_encode(t, text, strlen(text), ids, 100, &id_count, lengths, 10, &sequences,
                            &error),
       &error);
    ok(iso_generate(&g, model, ids, lengths, sequences, NULL, NULL, &error), &error);
    for (size_t i = 0; i < g->count; i++) {
        assert_true(g->best[i].length >= 2);
        assert_int_equal(g->best[i].ids[g->best[i].length - 1], info->eos_ids[0]);
    }
    iso_generation_free(g);
    iso_tokenizer_free(t);
    iso_model_free(model);
    (void)state;
}

/* ----------------------------------------------------------------- many sentences, many tokens */

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
static void test_wide_vocabulary(void **state) {
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
static void test_wide_on_threads(void **state) {
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
static void test_encode_batch(void **state) {
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

/* An executor that runs its tasks one after the other, the last one first. */
typedef struct backwards {
    iso_executor executor;
    iso_context context;
    size_t regions;
} backwards;

static void run_backwards(void *user, size_t n, void (*fn)(void *arg, size_t i), void *arg) {
    backwards *b = user;
    b->regions++;
    while (n--)
        fn(arg, n);
}

static const iso_context *make_backwards(backwards *b, size_t threads) {
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

/*
 * Enough rows for all threads: between attentions each thread takes its own rows through all ops.
 * The same bits, and as many multiply-adds, for any number of threads; and not with more than
 * one parallel region for all these ops.
 */
static void test_rows_among_threads(void **state) {
    static corpus c;
    const size_t step = getenv("ISOBIT_EMULATED") ? 5 : 1; /* each number of threads once */
    for (size_t m = 0; m < sizeof golden / sizeof *golden; m += model_step()) {
        iso_model *model = load_golden(golden[m], NULL);
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

/* ---------------------------------------------------------------------------------- profile */

/* Multiply-adds of one row through a layer's products, times two. */
static double row_flops(size_t d, size_t f, size_t squares) {
    return 2.0 * ((double)squares * (double)d * (double)d + 2.0 * (double)d * (double)f);
}

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void test_profile(void **state) {
    enum { S = 5, T = 7 };
    const uint32_t source[S] = {3, 4, 5, 6, 2};
    const size_t length = S;
    iso_error error = {0};
    iso_model *model = load_golden(golden[3], NULL);
    const iso_model_info *i = iso_model_get_info(model);
    const double d = (double)i->d, layers = (double)i->decoder_layers;
    iso_profile p = {.size = sizeof p, .by_kind = 1}, wrong = {.size = 1};
    static float x[S * 256], y[S * 256];
    assert_true(i->d <= 256);
    assert_int_equal(iso_model_set_profile(NULL, &p), ISOBIT_E_NULL);
    assert_int_equal(iso_model_set_profile(model, &wrong), ISOBIT_E_SIZE);
    ok(iso_encode_f32(x, model, source, S, NULL, &error), &error);
    assert_int_equal(iso_model_set_profile(model, &p), ISOBIT_OK);
    ok(iso_encode_f32(y, model, source, S, NULL, &error), &error);
    assert_memory_equal(x, y, S * i->d * sizeof *x);
    /* q, k, v, out and the feed-forward layer; S x S scores, and as much for the values. */
    double expected =
        (double)i->encoder_layers * (S * row_flops(i->d, i->encoder_ffn, 4) + 2.0 * S * S * 2 * d);
    assert_true(p.flops == expected);
    assert_true(
        p.kind_seconds[ISOBIT_PROFILE_LINEAR] > 0 && p.kind_seconds[ISOBIT_PROFILE_ATTENTION] > 0 &&
        p.kind_seconds[ISOBIT_PROFILE_NORM] > 0 && p.kind_seconds[ISOBIT_PROFILE_EMBEDDING] > 0);
    assert_true(p.kind_seconds[ISOBIT_PROFILE_LOGITS] == 0 && p.steps == 0);

    /* T steps: q, k, v, out, q, out. */
    iso_generate_options o = {
        .size = sizeof o, .beams = 1, .max_new_tokens = T, .min_length = T + 1};
    iso_generation *g;
    p = (iso_profile){.size = sizeof p, .by_kind = 1};
    const double start = seconds_now();
    ok(iso_generate(&g, model, source, &length, 1, &o, NULL, &error), &error);
    const double seconds = seconds_now() - start;
    assert_int_equal(g->best[0].length, T);
    iso_generation_free(g);
    assert_int_equal(p.steps, T);
    const double logits = d * (double)i->target_vocabulary;
    const double rows = layers * row_flops(i->d, i->decoder_ffn, 6) + 2 * logits;
    /* Self-attention over 1 ... T positions, and over the source. */
    assert_true(p.step_flops ==
                T * rows + layers * 2 * 2 * d * (T * (T + 1) / 2) + T * layers * 2 * 2 * d * S);
    assert_true(p.step_weight_bytes == T * rows * 2); /* 4 bytes for each multiply-add */
    assert_true(p.fastest_step > 0 && p.fastest_step * T <= p.step_seconds);
    double sum = 0;
    for (int k = 0; k < ISOBIT_PROFILE_KINDS; k++)
        sum += p.kind_seconds[k];
    assert_true(sum >= p.step_seconds * 0.999 && sum <= seconds * 1.001);
    assert_true(p.kind_seconds[ISOBIT_PROFILE_LOGITS] > 0 &&
                p.kind_seconds[ISOBIT_PROFILE_SEARCH] > 0);

    const iso_profile before = p;
    assert_int_equal(iso_model_set_profile(model, NULL), ISOBIT_OK);
    ok(iso_encode_f32(y, model, source, S, NULL, &error), &error);
    assert_memory_equal(&before, &p, sizeof p);
    iso_model_free(model);
    (void)state;
}

/* ------------------------------------------------------------------------------ allocations */

/* The linker sends every allocation of the libraries through here (model.cmake, --wrap). */
static size_t allocations, failing_one; /* the latter counts from 1; 0: none */

static int fails(void) { return ++allocations == failing_one; }

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);

void *__wrap_malloc(size_t bytes) { return fails() ? NULL : __real_malloc(bytes); }
void *__wrap_calloc(size_t count, size_t bytes) {
    return fails() ? NULL : __real_calloc(count, bytes);
}
void *__wrap_realloc(void *old, size_t bytes) {
    return fails() ? NULL : __real_realloc(old, bytes);
}
void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    return fails() ? NULL : __real_aligned_alloc(alignment, bytes);
}

/* However many steps a search takes, it allocates as often. */
static void test_steps_allocate_nothing(void **state) {
    for (size_t m = 0; m < sizeof golden / sizeof *golden; m += model_step()) {
        iso_model *model = load_golden(golden[m], NULL);
        const uint32_t sources[] = {9, 22, 31, 2, 5, 6, 7};
        const size_t lengths[] = {4, 2, 1};
        for (size_t j = 0; j < 4; j++) {
            const size_t beams = j == 1 ? 4 : j == 2 ? 32 : 1; /* 32: rows for each thread */
            size_t counts[2], tokens[2];
            for (size_t i = 0; i < 2; i++) {
                backwards three;
                iso_generate_options o = {.size = sizeof o,
                                          .beams = beams,
                                          .max_length = 30,
                                          .min_length = i ? 30 : 1,
                                          .early_stopping = ISOBIT_EARLY_TRUE,
                                          .attention = has_encoder(model),
                                          .sampling = j == 3 ? ISOBIT_SAMPLING_ON
                                                             : ISOBIT_SAMPLING_DEFAULT};
                iso_generation *g;
                iso_error error = {0};
                allocations = 0;
                ok(iso_generate(&g, model, sources, lengths, 3, &o,
                                j != 2 ? NULL : make_backwards(&three, 3), &error),
                   &error);
                counts[i] = allocations;
                tokens[i] = 0;
                for (size_t h = 0; h < g->count; h++)
                    tokens[i] += g->best[h].length;
                iso_generation_free(g);
            }
            assert_int_equal(counts[0], counts[1]);
            assert_true(counts[0] > 0 && tokens[0] <= tokens[1]);
        }
        iso_model_free(model);
    }
    (void)state;
}

/* Each allocation fails once: ISOBIT_E_NOMEM, and nothing is lost (see the leak checker). */
static size_t fail_each_allocation(const char *name) {
    char path[600];
    (void)snprintf(path, sizeof path, "%s/models/%s", ISOBIT_TEST_DATA, name);
    const uint32_t sources[] = {9, 22, 31, 2, 5, 6, 7}, targets[] = {5, 6, 2, 7};
    const size_t lengths[] = {4, 2, 1}, target_lengths[] = {2, 1, 1};
    static corpus c;
    backwards two; /* threads, with rows enough for both */
    const iso_context *context = make_backwards(&two, 2);
    size_t failures = 0;
    make_corpus(&c, 20);
    for (int call = 0; call < 7; call++) {
        iso_model *model = call ? load(path) : NULL;
        iso_status status = ISOBIT_E_NOMEM;
        for (size_t k = 1; status; k++) {
            iso_error error = {0};
            iso_generation *g = NULL;
            iso_tokenizer *t = NULL;
            float scores[SENTENCES * 32], y[400];
            iso_generate_options o = {.size = sizeof o, .beams = 2, .attention = 1};
            if (call == 6)
                o = (iso_generate_options){
                    .size = sizeof o, .sampling = ISOBIT_SAMPLING_ON, .hypotheses = 2};
            allocations = 0;
            failing_one = k;
            if (call == 0)
                status = iso_model_load(&model, path, NULL, NULL, &error);
            else if (call == 1 || call == 6)
                status = iso_generate(&g, model, sources, lengths, 3, &o, NULL, &error);
            else if (call == 2)
                status = iso_score_f32(scores, model, sources, lengths, targets, target_lengths, 3,
                                       NULL, &error);
            else if (call == 3)
                status = iso_logits_f32(y, model, sources, 4, targets, 2, 1, NULL, &error);
            else if (call == 4)
                status = iso_tokenizer_load(&t, G2P, &error);
            else
                status = iso_score_f32(scores, model, c.ids, c.lengths, c.ids, c.lengths, SENTENCES,
                                       context, &error);
            failing_one = 0;
            iso_generation_free(g);
            iso_tokenizer_free(t);
            if (status)
                assert_int_equal(status, ISOBIT_E_NOMEM);
            failures += status != ISOBIT_OK;
            assert_true(k < 10000);
        }
        iso_model_free(model);
    }
    return failures;
}

static void test_out_of_memory(void **state) {
    assert_true(fail_each_allocation(golden[2]) > 100);
    assert_true(fail_each_allocation("umt5") > 100); /* a bias of each layer */
    (void)state;
}

/* ---------------------------------------------------------------------------------- memory */

#include "sanitized.h"

/* The largest resident size so far, in bytes; an exec starts it afresh. */
static double resident(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024;
}

/* Runs in a process of its own: loads, generates, and compares with 1.3 x weights + caches. */
static int measure_memory(const char *directory) {
    double before = resident();
    iso_model *model;
    iso_generation *g;
    iso_error error = {0};
    if (iso_model_load(&model, directory, NULL, NULL, &error)) {
        print_error("%s\n", error.message);
        return 1;
    }
    const iso_model_info *info = iso_model_get_info(model);
    double weights = (double)info->parameters * 4, after_load = resident() - before;
    const uint32_t source[] = {5, 6, 7, 8, 2};
    const size_t S = 5, T = 16;
    iso_generate_options o = {.size = sizeof o, .beams = 4, .max_length = T};
    if (iso_generate(&g, model, source, &S, 1, &o, NULL, &error)) {
        print_error("%s\n", error.message);
        return 1;
    }
    double after = resident() - before;
    /* Panels of 64 keys, values, and pages that are touched in part. */
    double caches = 4.0 * (double)(info->d * 64 * 2 * 2 * 4) + (1 << 20);
    print_message("weights %.1f MB, after loading %.1f MB, after generating %.1f MB\n",
                  weights / 1e6, after_load / 1e6, after / 1e6);
    iso_generation_free(g);
    iso_model_free(model);
    return after_load > 1.3 * weights || after > 1.3 * weights + caches;
}

static void test_memory(void **state) {
#if SANITIZED
    skip();
#else
    if (getenv("ISOBIT_EMULATED")) /* the size would be that of the emulator */
        skip();
    const size_t V = 40000, d = 128;
    files f;
    files_make(&f);
    files_config(&f, "marian", V, d, 4, 128,
                 ",\"eos_token_id\":2,\"decoder_start_token_id\":1,\"pad_token_id\":0,"
                 "\"max_position_embeddings\":64");
    builder b = {.state = 7};
    builder_model(&b, V, d, 128, 1);
    builder_write(&b, &f);
    int result = -1;
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test_model", "--measure-memory", f.directory, (char *)NULL);
        _exit(127);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &result, 0), child);
    files_remove(&f);
    assert_int_equal(result, 0);
#endif
    (void)state;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--measure-memory") == 0)
        return measure_memory(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_batch_and_permutation),
        cmocka_unit_test(test_cached_is_recomputed),
        cmocka_unit_test(test_long_distances),
        cmocka_unit_test(test_scores_agree),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_instruction_sets),
        cmocka_unit_test(test_literal_beam_search),
        cmocka_unit_test(test_near_ties),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_nothing_is_finite),
        cmocka_unit_test(test_g2p),
        cmocka_unit_test(test_wide_vocabulary),
        cmocka_unit_test(test_wide_on_threads),
        cmocka_unit_test(test_encode_batch),
        cmocka_unit_test(test_rows_among_threads),
        cmocka_unit_test(test_profile),
        cmocka_unit_test(test_steps_allocate_nothing),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
