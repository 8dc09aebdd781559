/* SPDX-License-Identifier: MIT
 *
 * What transformers calls logits processors and stopping criteria: rules of a sequence's own
 * tokens, which change scores before the choice, or end the sequence after it.
 */
#include "decode.h"

#include <math.h>

static int is_eos(const model_plan *p, uint32_t token) {
    const model_ids *eos = &p->model->config.eos;
    for (size_t i = 0; i < eos->count; i++)
        if (eos->ids[i] == token)
            return 1;
    return 0;
}

int model_ends(const model_plan *p, const model_history *before, size_t c, uint32_t token) {
    if (c >= before->max_new || is_eos(p, token))
        return 1;
    const uint32_t *history = before->tokens + before->past; /* without a prompt */
    for (size_t at = 0; at < p->stop.count; at += p->stop.ids[at] + 1) {
        const size_t n = p->stop.ids[at];
        const uint32_t *stop = p->stop.ids + at + 1;
        if (n <= c && stop[n - 1] == token &&
            memcmp(history + c - (n - 1), stop, (n - 1) * sizeof *stop) == 0)
            return 1;
    }
    return 0;
}

static void forbid_eos(const model_plan *p, float *row) {
    const model_ids *eos = &p->model->config.eos;
    for (size_t i = 0; i < eos->count; i++)
        row[eos->ids[i]] = -INFINITY;
}

static void forbid_all(const model_plan *p, float *row) {
    for (size_t v = 0; v < p->model->config.target_vocabulary; v++)
        row[v] = -INFINITY;
}

static void repetition_penalty(const model_plan *p, float *row, const uint32_t *history, size_t c) {
    const float penalty = p->search.repetition_penalty;
    for (size_t i = 0; i < c; i++) {
        size_t first = 0;
        while (history[first] != history[i])
            first++;
        if (first == i) /* each distinct id once */
            row[history[i]] =
                row[history[i]] < 0 ? row[history[i]] * penalty : row[history[i]] / penalty;
    }
}

static void no_repeat_ngram(size_t n, float *row, const uint32_t *history, size_t c) {
    const size_t prefix = n - 1;
    for (size_t i = 0; i + n <= c; i++)
        if (memcmp(history + i, history + c - prefix, prefix * sizeof *history) == 0)
            row[history[i + prefix]] = -INFINITY;
}

static void bad_words(const model_plan *p, float *row, const uint32_t *history, size_t c) {
    const model_ids *words = &p->search.bad_words;
    for (size_t at = 0; at < words->count; at += words->ids[at] + 1) {
        const size_t n = words->ids[at];
        const uint32_t *word = words->ids + at + 1, last = word[n - 1];
        if (n == 1 && is_eos(p, last))
            continue;
        if (n == 1 || (n <= c && memcmp(history + c - (n - 1), word, (n - 1) * sizeof *word) == 0))
            row[last] = -INFINITY;
    }
}

static int is_bos_forced(const model_plan *p, size_t c) {
    return c == 1 && p->search.forced_bos != MODEL_NO_ID;
}

static int is_eos_forced(const model_plan *p, const model_history *before, size_t step) {
    return step == before->max_new && p->search.forced_eos.count;
}

int model_forces(const model_plan *p, const model_history *before, size_t step) {
    return is_bos_forced(p, before->past + step) || is_eos_forced(p, before, step);
}

void model_process(const model_plan *p, float *row, const model_history *before, size_t step) {
    const model_search *s = &p->search;
    const uint32_t *history = before->tokens;
    const size_t c = before->past + step; /* tokens of it */
    if (s->repetition_penalty != 1)
        repetition_penalty(p, row, history, c);
    if (s->no_repeat_ngram && c + 1 >= s->no_repeat_ngram)
        no_repeat_ngram(s->no_repeat_ngram, row, history, c);
    bad_words(p, row, history, c);
    if (c < s->min_length)
        forbid_eos(p, row);
    if (step - 1 < s->min_new_tokens)
        forbid_eos(p, row);
    if (is_bos_forced(p, c)) {
        forbid_all(p, row);
        row[s->forced_bos] = 0;
    }
    if (is_eos_forced(p, before, step)) {
        forbid_all(p, row);
        for (size_t i = 0; i < s->forced_eos.count; i++)
            row[s->forced_eos.ids[i]] = 0;
    }
}
