/* SPDX-License-Identifier: MIT
 *
 * Stops, and tokens that are told.
 */
#include "test_sample.h"

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

void test_is_last(void **state) {
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

void test_stop(void **state) {
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

void test_on_token(void **state) {
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
