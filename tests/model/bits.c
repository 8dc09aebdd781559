/* SPDX-License-Identifier: MIT
 *
 * The same bits in any batch, step by step, on threads and instruction sets.
 */
#include "test_model.h"

void same_hypothesis(const iso_hypothesis *a, const iso_hypothesis *b, size_t attention) {
    assert_int_equal(a->length, b->length);
    assert_memory_equal(a->ids, b->ids, a->length * sizeof *a->ids);
    assert_memory_equal(&a->score, &b->score, sizeof a->score);
    assert_memory_equal(a->log_probs, b->log_probs, a->length * sizeof *a->log_probs);
    if (attention && a->length)
        assert_memory_equal(a->attention, b->attention, attention * a->length * sizeof(float));
}

void make_corpus(corpus *c, size_t V) {
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

void test_batch_and_permutation(void **state) {
    static corpus c;
    iso_error error = {0};
    for (size_t m = 0; m < golden_count; m += model_step()) {
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
            const size_t budgets[] = {0, 1, 20, 100000}, step = model_step() > 1 ? 2 : 1;
            for (size_t b = 0; b < 4; b += step) {
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

void test_cached_is_recomputed(void **state) {
    for (size_t m = 0; m < golden_count; m += model_step()) {
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

void test_long_distances(void **state) {
    static const char *const names[] = {"t5", "flan-t5-bf16", "mt5-f16", "umt5"};
    static distant y, z;
    static float steps[FAR_T * FAR_MOST];
    iso_pool *pool;
    assert_int_equal(iso_pool_create(&pool, 3), ISOBIT_OK);
    /* Where it is slow, the first and the last: they differ in what is the same on any CPU. */
    const size_t step = model_step() > 1 ? 3 : 1;
    for (size_t m = 0; m < sizeof names / sizeof *names; m += step) {
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
void test_scores_agree(void **state) {
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
    for (size_t m = 0; m < golden_count; m += model_step()) {
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

void test_threads(void **state) {
    iso_pool *pool;
    assert_int_equal(iso_pool_create(&pool, 3), ISOBIT_OK);
    iso_context context = {.size = sizeof context, .executor = iso_pool_executor(pool)};
    same_under(&context);
    iso_pool_destroy(pool);
    (void)state;
}

void test_instruction_sets(void **state) {
    for (size_t i = 0; i < iso_isa_count(); i++) {
        iso_context context = {.size = sizeof context, .isa = iso_isa_get(i)};
        if (!iso_isa_missing(context.isa))
            same_under(&context);
    }
    (void)state;
}
