/* SPDX-License-Identifier: MIT
 *
 * A literal beam search for small vocabularies, and ties.
 */
#include "test_model.h"

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

void test_literal_beam_search(void **state) {
    static const iso_early_stopping early[] = {ISOBIT_EARLY_FALSE, ISOBIT_EARLY_TRUE,
                                               ISOBIT_EARLY_NEVER};
    static const float penalties[] = {1, 0, 0.6f, 2, -1};
    size_t compared = 0, stopped_early = 0;
    const uint64_t seeds = model_step() == 1 ? 6 : 2;
    for (uint64_t seed = 0; seed <= seeds; seed++)
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
    assert_true(compared > (seeds == 6 ? 1000 : 400));
    assert_true(stopped_early > 100 && stopped_early < compared - 100);
    (void)state;
}

/* All tokens are almost alike: sums that differ by one ULP decide, in every block of the scan. */
void test_near_ties(void **state) {
    const size_t V = MOST_VOCABULARY, length = 5;
    for (uint64_t seed = 1; seed <= 18; seed += model_step() == 1 ? 1 : 3) {
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
