/* SPDX-License-Identifier: MIT
 *
 * One step of the search against its definition: log-softmax written out, processors, every
 * candidate compared with every other one. Logits are of all kinds: near ties, equal ones, NaN and
 * infinities; the processors act one at a time and not at all.
 */
/* The step is static. First, since cmocka has a macro `skip`. */
#include "search.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MOST_V = 3000, BEAMS = 6, K_MOST = 2 * BEAMS, TARGET = 12, KINDS = 15, PROCESSORS = 10 };

static uint64_t random_state = 1;
static uint32_t random_below(uint32_t n) {
    uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((z ^ (z >> 31)) >> 32) % n;
}
static float uniform(void) { return (float)random_below(1 << 24) * 0x1p-24f; }

static float logit(size_t kind, size_t v) {
    switch (kind) {
    case 0: return 20 * uniform() - 10;
    case 1: return (float)random_below(8) / 4; /* many are equal */
    case 2: return 1 + 0x1p-23f * (float)random_below(6);
    case 3: return 1e6f + (float)random_below(16) / 4; /* log-probabilities are, after rounding */
    case 4: return (float)v * 1e-3f;                   /* each is the best so far */
    case 5: return (float)v * -1e-3f;
    case 6: return v == 7 ? 200 : -uniform() * 1e-3f;
    case 7: return random_below(2) ? 0.0f : -0.0f;
    case 8: return 3e38f * (2 * uniform() - 1);
    case 9: return 1e-38f * (uniform() - 0.5f);
    case 10: return random_below(50) ? 4 * uniform() : NAN;
    case 11: return random_below(50) ? 4 * uniform() : INFINITY;
    case 12: return random_below(3) ? -INFINITY : 4 * uniform();
    case 13: return -INFINITY;
    default: return NAN;
    }
}

/* A group of one sentence in the middle of its search. */
static struct {
    iso_model model;
    model_plan plan;
    model_group group;
    model_sequence sentence, *active;
    model_scratch scratch;
    model_candidate best[K_MOST];
    float logits[BEAMS * MOST_V], kept[BEAMS * MOST_V], row[MOST_V];
    float sums[BEAMS], scores[BEAMS], log_probs[BEAMS * (TARGET + 1)];
    size_t slots[BEAMS], lengths[BEAMS];
    uint32_t tokens[BEAMS * (TARGET + 1)];
    uint16_t path[BEAMS * (TARGET + 1)];
} at;

static uint32_t eos[] = {2}, words[] = {1, 3, 2, 0, 1};

static void make_processor(size_t processor, size_t c) {
    model_search *s = &at.plan.search;
    *s = (model_search){.repetition_penalty = 1, .forced_bos = MODEL_NO_ID};
    at.plan.max_new = TARGET;
    switch (processor) {
    case 1: s->repetition_penalty = 1.3f; break;
    case 2: s->no_repeat_ngram = 2; break;
    case 3: s->bad_words = (model_ids){.ids = words, .count = 5}; break;
    case 4: s->min_length = TARGET; break;
    case 5: s->min_new_tokens = TARGET; break;
    case 6: s->forced_bos = 1; break;
    case 7:
        s->forced_eos = (model_ids){.ids = eos, .count = 1};
        at.plan.max_new = c;
        break;
    case 8: s->renormalize = 1; break;
    case 9: s->repetition_penalty = 0.7f, s->renormalize = 1; break;
    default: break;
    }
}

static void make_step(size_t V, size_t processor, size_t kind, size_t c) {
    make_processor(processor, c);
    at.model.config.target_vocabulary = V;
    at.model.config.eos = (model_ids){.ids = eos, .count = 1};
    at.plan.model = &at.model;
    at.plan.search.beams = BEAMS;
    at.sentence = (model_sequence){.plan = &at.plan,
                                   .max_new = at.plan.max_new,
                                   .ld = at.plan.max_new + 1,
                                   .live = {at.tokens, at.log_probs, at.path},
                                   .sums = at.sums,
                                   .slot = at.slots,
                                   .scores = at.scores,
                                   .length = at.lengths};
    at.active = &at.sentence;
    at.group = (model_group){
        .beams = BEAMS, .model = &at.model, .active = &at.active, .logits = at.logits, .K = K_MOST};
    at.scratch = (model_scratch){
        .g = &at.group, .context = {.size = sizeof(iso_context)}, .row = at.row, .best = at.best};
    for (size_t b = 0; b < BEAMS; b++) {
        const size_t kinds = b % 2 ? random_below(KINDS) : kind; /* beams of different kinds */
        for (size_t v = 0; v < V; v++)
            at.logits[b * V + v] = logit(kinds, v);
        at.sums[b] = c == 1 ? (b ? NEVER : 0)
                            : (b ? at.sums[b - 1] : -3 * uniform()) - (b % 3 ? uniform() : 0);
        at.slots[b] = BEAMS - 1 - b;
    }
    if (c > 1 && random_below(20) == 0)
        at.sums[BEAMS - 1] = -INFINITY;
    for (size_t i = 0; i < sizeof at.tokens / sizeof *at.tokens; i++)
        at.tokens[i] = random_below(4);
    memcpy(at.kept, at.logits, BEAMS * V * sizeof *at.kept);
}

static void softmax_of(float *y, const float *x, size_t V) {
    const iso_softmax_options log = {.size = sizeof log, .log = 1, .safe = 1};
    assert_int_equal(iso_softmax_f32(y, V, x, V, 1, V, &log, NULL), ISOBIT_OK);
}

static int same(float a, float b) {
    uint32_t bits[2];
    memcpy(&bits[0], &a, sizeof a);
    memcpy(&bits[1], &b, sizeof b);
    return bits[0] == bits[1] || (isnan(a) && isnan(b));
}

static void one_beam_step(size_t V, size_t c) {
    static float log_probs[BEAMS * MOST_V], values[BEAMS * MOST_V];
    static char taken[BEAMS * MOST_V];
    const size_t all = BEAMS * V;
    for (size_t rank = 0; rank < BEAMS; rank++) { /* of the beams by rank */
        const size_t slot = at.slots[rank];
        float *row = log_probs + rank * V;
        softmax_of(row, at.kept + slot * V, V);
        const model_history before = history(&at.sentence, slot);
        model_process(&at.plan, row, &before, c);
        if (at.plan.search.renormalize)
            softmax_of(row, row, V);
        for (size_t v = 0; v < V; v++) {
            const float value = row[v] + at.sums[rank];
            values[rank * V + v] = isnan(value) ? -INFINITY : value;
        }
    }
    const size_t count = best_candidates(&at.scratch, 0, c);
    assert_int_equal(at.scratch.status, ISOBIT_OK);
    assert_int_equal(count, all < K_MOST ? all : K_MOST);
    memset(taken, 0, all);
    for (size_t k = 0; k < count; k++) {
        size_t first = all;
        for (size_t i = 0; i < all; i++)
            if (!taken[i] && (first == all || values[i] > values[first]))
                first = i;
        taken[first] = 1;
        const model_candidate *best = &at.best[k];
        assert_int_equal(best->slot, at.slots[first / V]);
        assert_int_equal(best->token, first % V);
        assert_true(same(best->value, values[first]));
        assert_true(same(best->log_prob, log_probs[first]));
        assert_int_equal(best->hit, c >= at.plan.max_new || best->token == eos[0]);
    }
}

static void one_greedy_step(size_t V, size_t c) {
    static float row[MOST_V];
    float *logits = at.kept;
    at.plan.search.beams = 1;
    memcpy(at.logits, at.kept, V * sizeof *at.logits);
    const model_history before = history(&at.sentence, 0);
    model_process(&at.plan, logits, &before, c);
    softmax_of(row, logits, V);
    const float *chosen = at.plan.search.renormalize ? row : logits;
    size_t best = 0;
    for (size_t v = 1; v < V; v++)
        if (chosen[v] > chosen[best] || (isnan(chosen[best]) && !isnan(chosen[v])))
            best = v;
    const float sum = at.sums[0];
    const int finished = greedy_sentence(&at.scratch, 0, c);
    assert_int_equal(at.scratch.status, ISOBIT_OK);
    assert_int_equal(at.tokens[c], best);
    assert_true(same(at.log_probs[c - 1], row[best]));
    assert_true(same(at.sums[0], sum + row[best]));
    assert_int_equal(finished, best == eos[0] || c >= at.plan.max_new);
}

static void test_steps(void **state) {
    (void)state;
    static const size_t sizes[] = {4, 37, 63, 64, 65, 128, 300, MOST_V};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t processor = 0; processor < PROCESSORS; processor++)
            for (size_t kind = 0; kind < KINDS; kind++)
                for (size_t c = 1; c <= (sizes[i] == MOST_V ? 2 : 6); c++) {
                    make_step(sizes[i], processor, kind, c);
                    one_beam_step(sizes[i], c);
                    one_greedy_step(sizes[i], c);
                }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
