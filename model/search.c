/* SPDX-License-Identifier: MIT
 *
 * From logits to tokens: greedy search, sampling, and beam search as transformers defines it since
 * 4.50. Each sentence is decided by its own numbers only: it stops where it would stop alone. Sums
 * are f32 and equal values go to the lowest index, row by row of the live beams, best beam first.
 *
 * Live beams have a rank (best first) and a slot (the row of the caches where they live). A beam
 * whose parent goes on stays in its slot; only further children of a parent are copied, into the
 * slots of beams that ended.
 *
 * The samples of a sentence are beams that never meet. One that has ended keeps its row, which is
 * computed on and not looked at, until the last one ends.
 */
#include "search.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define NEVER MODEL_NEVER_CHOSEN

/* ------------------------------------------------------------------------------ greedy search */

/* y = log softmax(x) of one row. */
static void log_softmax(model_scratch *t, float *y, const float *x) {
    const size_t V = t->g->model->config.target_vocabulary;
    iso_softmax_options options = {.size = sizeof options, .log = 1, .safe = 1};
    iso_status status = iso_softmax_f32(y, V, x, V, 1, V, &options, &t->context);
    t->status = t->status ? t->status : status;
}

/*
 * Log-probabilities without a row of them: that of the logit x is log_prob(l, x), with the bits of
 * log_softmax (iso_logsumexp_f32). `written` is for a row that holds them already.
 */
typedef struct lse {
    float max, log_sum;
} lse;
static const lse written = {0, 0};

static inline float log_prob(lse l, float x) { return (x - l.max) - l.log_sum; }

static lse log_sum_exp(model_scratch *t, const float *x) {
    const size_t V = t->g->model->config.target_vocabulary;
    lse l = written;
    iso_status status = iso_logsumexp_f32(&l.max, &l.log_sum, x, V, 1, V, &t->context);
    t->status = t->status ? t->status : status;
    return l;
}

#define SCAN 64 /* elements that are skipped at a time */

/* From `at` on to the first block with an element above the bound, or to less than a block. */
static size_t skip(const float *row, size_t at, size_t n, float bound) {
    for (; at + SCAN <= n; at += SCAN) {
        int above = 0;
        for (size_t i = 0; i < SCAN; i++)
            above |= row[at + i] > bound ? -1 : 0; /* as vectors compare: half the time of 1 */
        if (above)
            break;
    }
    return at;
}

/* The first of the largest elements; a NaN is below all others. */
static uint32_t largest(const float *row, size_t n) {
    size_t best = 0;
    for (size_t at = 0; at < n; at += SCAN) {
        if (!isnan(row[best]))
            at = skip(row, at, n, row[best]);
        const size_t end = n - at < SCAN ? n : at + SCAN;
        for (size_t v = at; v < end; v++)
            if (row[v] > row[best] || (isnan(row[best]) && !isnan(row[v])))
                best = v;
    }
    return (uint32_t)best;
}

static model_history history(const model_sequence *s, size_t slot) {
    return (model_history){s->live.tokens + slot * s->ld, s->past, s->max_new};
}

/* Whether token c ends the sequence in a slot, where it is left: nothing lies behind the others. */
static int ends(model_sequence *s, size_t slot, size_t c, uint32_t token) {
    const model_plan *p = s->plan;
    const model_history before = history(s, slot);
    uint32_t *generated = s->live.tokens + slot * s->ld + s->past + 1;
    generated[c - 1] = token;
    if (model_ends(p, &before, c, token))
        return 1;
    if (!p->is_last || s->cancelled_by)
        return 0;
    const iso_sequence sequence = {s->index, generated, c};
    const int last = p->is_last(p->is_last_user, &sequence);
    if (last < 0)
        s->cancelled_by = "is_last", s->cancelled_at = c - 1;
    return last > 0;
}

/* Beam i of a sentence goes on with a token; returns 1 when it ends there. */
static int go_on(model_sequence *s, size_t i, size_t c, uint32_t token, float value) {
    const size_t at = i * s->ld;
    const int end = ends(s, i, c, token);
    s->live.log_probs[at + c - 1] = value;
    s->live.path[at + c - 1] = (uint16_t)i;
    s->sums[i] += value;
    if (end) {
        s->done = s->live;
        s->scores[i] = s->sums[i];
        s->length[i] = c;
    }
    return end;
}

/* One sentence, its current length c; returns 1 when it is finished. */
static int greedy_sentence(model_scratch *t, size_t place, size_t c) {
    const model_group *g = t->g;
    const size_t V = g->model->config.target_vocabulary;
    model_sequence *s = g->active[place];
    const model_plan *p = s->plan;
    float *row = g->logits + place * V;
    const model_history before = history(s, 0);
    model_process(p, row, &before, c);
    lse l = written;
    if (p->search.renormalize) { /* then log-probabilities are compared, equal by rounding or not */
        log_softmax(t, t->row, row);
        row = t->row;
    } else {
        l = log_sum_exp(t, row);
    }
    const uint32_t token = largest(row, V);
    return go_on(s, 0, c, token, log_prob(l, row[token]));
}

/* ----------------------------------------------------------------------------------- sampling */

/* A token of the row, where it has a distribution; else that of greedy search. */
static uint32_t draw(model_scratch *t, const model_sequence *s, const float *row, size_t sample,
                     size_t position) {
    const model_plan *p = s->plan;
    const size_t V = p->model->config.target_vocabulary;
    const uint64_t number = (uint64_t)p->first_source + s->number;
    const model_random counter = {
        {(uint32_t)position, (uint32_t)sample, (uint32_t)number, (uint32_t)(number >> 32)}};
    iso_status status = model_warp_row(&t->kept, &p->search.warp, row, V, &t->context);
    t->status = t->status ? t->status : status;
    if (!t->kept.count)
        return largest(row, V);
    const model_random random = model_philox(counter, p->seed);
    return model_draw(&t->kept, (uint64_t)random.word[1] << 32 | random.word[0]);
}

/* All samples of a sentence. Renormalizing changes no distribution, and is left out. */
static int sample_sentence(model_scratch *t, size_t place, size_t c) {
    const model_group *g = t->g;
    model_sequence *s = g->active[place];
    const model_plan *p = s->plan;
    const size_t V = p->model->config.target_vocabulary, samples = p->search.beams;
    int finished = 1;
    for (size_t i = 0; i < samples; i++) {
        uint32_t *tokens = s->live.tokens + i * s->ld + s->past;
        float *row = g->logits + (place * samples + i) * V;
        if (s->length[i]) { /* it has ended; its row needs some token */
            tokens[c] = tokens[c - 1];
            continue;
        }
        const model_history before = history(s, i);
        model_process(p, row, &before, c);
        const lse l = log_sum_exp(t, row);
        const uint32_t token = draw(t, s, row, i, c - 1);
        finished &= go_on(s, i, c, token, log_prob(l, row[token]));
    }
    return finished;
}

/* -------------------------------------------------------------------------------- beam search */

/*
 * A number x so that the log-probability of nothing up to x is above `value` with `sum` added:
 * roundings keep the order. It may be a little too low: who is above it is looked at in full.
 */
static float no_gain(lse l, float value, float sum) {
    float x = value - sum + l.log_sum + l.max;
    float step = (fabsf(value) + fabsf(sum) + fabsf(l.log_sum) + fabsf(l.max)) * FLT_EPSILON;
    step += FLT_MIN;
    while (log_prob(l, x) + sum > value) {
        x -= step;
        step *= 2;
    }
    return x;
}

/* The log-probabilities of a live beam, processed: log_prob(*l, x) of each x of the row. */
static const float *beam_row(model_scratch *t, lse *l, const model_sequence *s, size_t place,
                             size_t slot, size_t c) {
    const model_plan *p = s->plan;
    const size_t V = p->model->config.target_vocabulary;
    float *row = t->g->logits + (place * p->search.beams + slot) * V;
    const model_history before = history(s, slot);
    *l = log_sum_exp(t, row);
    /* A logit of -Inf forbids as well as a log-probability does, but where all are NaN. The rest of
     * what processors do takes the log-probabilities themselves. */
    if (p->search.repetition_penalty != 1 || model_forces(p, &before, c) || p->search.renormalize ||
        isnan(l->log_sum)) {
        log_softmax(t, t->row, row);
        row = t->row;
        *l = written;
    }
    model_process(p, row, &before, c);
    if (p->search.renormalize)
        log_softmax(t, row, row);
    return row;
}

/* The K best continuations of the live beams, best first; returns how many there are. */
static size_t best_candidates(model_scratch *t, size_t place, size_t c) {
    const model_group *g = t->g;
    model_sequence *s = g->active[place];
    const model_plan *p = s->plan;
    const size_t V = p->model->config.target_vocabulary, beams = p->search.beams, K = g->K;
    model_candidate *best = t->best;
    size_t count = 0;
    for (size_t rank = 0; rank < beams; rank++) {
        const size_t slot = s->slot[rank];
        const float sum = s->sums[rank];
        if (count == K && !(sum > best[count - 1].value))
            continue; /* a log-probability is at most 0 */
        lse l;
        const float *row = beam_row(t, &l, s, place, slot, c);
        for (size_t from = 0; from < V; from += SCAN) {
            if (count == K)
                from = skip(row, from, V, no_gain(l, best[count - 1].value, sum));
            const size_t end = V - from < SCAN ? V : from + SCAN;
            for (size_t v = from; v < end; v++) {
                float value = log_prob(l, row[v]) + sum;
                if (count == K && !(value > best[count - 1].value))
                    continue;
                if (isnan(value))
                    value = -INFINITY;
                size_t at = count < K ? count++ : count - 1;
                for (; at && value > best[at - 1].value; at--)
                    best[at] = best[at - 1];
                best[at] = (model_candidate){value, log_prob(l, row[v]), slot, (uint32_t)v, 0};
            }
        }
    }
    for (size_t k = 0; k < count; k++)
        best[k].hit = ends(s, best[k].slot, c, best[k].token);
    return count;
}

/* A finished beam: the row of its parent and one more token, kept in row `place` of done. */
static void keep(model_sequence *s, size_t place, const model_candidate *k, size_t c) {
    const size_t to = place * s->ld, from = k->slot * s->ld, tokens = s->past + c;
    memcpy(s->done.tokens + to, s->live.tokens + from, tokens * sizeof *s->done.tokens);
    memcpy(s->done.log_probs + to, s->live.log_probs + from, (c - 1) * sizeof *s->done.log_probs);
    memcpy(s->done.path + to, s->live.path + from, (c - 1) * sizeof *s->done.path);
    s->done.tokens[to + tokens] = k->token;
    s->done.log_probs[to + c - 1] = k->log_prob;
    s->done.path[to + c - 1] = (uint16_t)k->slot;
}

/*
 * Merges the candidates that finish, if ranked among the first `beams`, into the best done so far.
 * An entry with length 0 is one that transformers would carry along at about -1e9, unfinished.
 */
static void update_done(model_scratch *t, model_sequence *s, size_t count, size_t c, int all_done) {
    const model_plan *p = s->plan;
    const size_t beams = p->search.beams;
    const float divisor = (float)pow((double)c, (double)p->search.length_penalty);
    const int closed = all_done && p->search.early_stopping == ISOBIT_EARLY_TRUE;
    size_t from_done = 0, from_new = 0;
    memset(t->taken, 0, beams);
    /* Both lists are merged by score, an older entry first among equals. Candidates come in the
     * order of their sums, which is that of their scores: all are divided by the same number. */
    for (size_t i = 0; i < beams; i++) {
        float score = 0;
        while (from_new < count && from_new < beams && !t->best[from_new].hit)
            from_new++;
        int is_new = from_new < count && from_new < beams && t->best[from_new].hit;
        if (is_new) {
            score = t->best[from_new].value / divisor;
            if (closed)
                score += NEVER;
            if (!s->improvable)
                score += NEVER;
            is_new = score > s->scores[from_done];
        }
        t->merged[i] = is_new ? score : s->scores[from_done];
        t->order[i] = is_new ? beams + from_new++ : from_done++;
        if (!is_new)
            t->taken[s->place[t->order[i]]] = 1; /* this row of done stays in use */
    }
    size_t free_row = 0;
    for (size_t i = 0; i < beams; i++) {
        if (t->order[i] < beams) {
            t->next[i] = (model_candidate){.slot = s->place[t->order[i]],
                                           .token = (uint32_t)s->length[t->order[i]]};
            continue;
        }
        while (t->taken[free_row])
            free_row++;
        t->taken[free_row] = 1;
        keep(s, free_row, &t->best[t->order[i] - beams], c);
        t->next[i] = (model_candidate){.slot = free_row, .token = (uint32_t)c};
    }
    for (size_t i = 0; i < beams; i++) {
        s->scores[i] = t->merged[i];
        s->place[i] = t->next[i].slot;
        s->length[i] = t->next[i].token;
    }
}

/* The next live beams take their slots; caches and histories follow. */
static void move_beams(model_scratch *t, size_t place, size_t c) {
    model_group *g = t->g;
    model_sequence *s = g->active[place];
    const size_t beams = g->beams, ld = s->ld, tokens = s->past + c;
    const size_t none = beams;
    memset(t->taken, 0, beams);
    for (size_t i = 0; i < beams; i++) { /* the first child of a parent stays where it is */
        const size_t parent = t->next[i].slot;
        s->slot[i] = t->taken[parent] ? none : parent;
        t->taken[parent] = 1;
    }
    for (size_t i = 0, to = 0; i < beams; i++) {
        if (s->slot[i] != none)
            continue;
        while (t->taken[to])
            to++;
        t->taken[to] = 1;
        s->slot[i] = to;
        const size_t from = t->next[i].slot;
        memcpy(s->live.tokens + to * ld, s->live.tokens + from * ld,
               tokens * sizeof *s->live.tokens);
        memcpy(s->live.log_probs + to * ld, s->live.log_probs + from * ld,
               (c - 1) * sizeof *s->live.log_probs);
        memcpy(s->live.path + to * ld, s->live.path + from * ld, (c - 1) * sizeof *s->live.path);
        model_cache_copy_beam(&g->cache, g->model, place * beams + to, place * beams + from);
    }
    for (size_t i = 0; i < beams; i++) {
        const size_t at = s->slot[i] * ld;
        s->sums[i] = t->next[i].value;
        s->live.tokens[at + tokens] = t->next[i].token;
        s->live.log_probs[at + c - 1] = t->next[i].log_prob;
        s->live.path[at + c - 1] = (uint16_t)t->next[i].slot;
    }
}

static int all_finished(const model_sequence *s) {
    for (size_t i = 0; i < s->plan->search.beams; i++)
        if (!s->length[i])
            return 0;
    return 1;
}

/* One sentence, its current length c; returns 1 when it is finished. */
static int beam_sentence(model_scratch *t, size_t place, size_t c) {
    model_sequence *s = t->g->active[place];
    const model_plan *p = s->plan;
    const size_t beams = p->search.beams;
    const double lp = (double)p->search.length_penalty;
    const size_t count = best_candidates(t, place, c);
    size_t hits = 0;

    /* The beams that go on: those that ended are pushed behind all others. */
    size_t chosen = 0;
    for (size_t k = 0; k < count; k++) {
        model_candidate live = t->best[k];
        hits += (size_t)live.hit;
        if (live.hit)
            live.value += NEVER;
        if (chosen == beams && !(live.value > t->onward[chosen - 1].value))
            continue;
        size_t at = chosen < beams ? chosen++ : chosen - 1;
        for (; at && live.value > t->onward[at - 1].value; at--)
            t->onward[at] = t->onward[at - 1];
        t->onward[at] = live;
    }
    update_done(t, s, count, c, all_finished(s));

    const size_t longest =
        p->search.early_stopping == ISOBIT_EARLY_NEVER && lp > 0 ? s->max_new : c;
    const float hope = t->onward[0].value / (float)pow((double)longest, lp);
    const int all_done = all_finished(s);
    float worst = s->scores[0];
    int better = 0;
    for (size_t i = 1; i < beams; i++)
        worst = s->scores[i] < worst ? s->scores[i] : worst;
    for (size_t i = 0; i < beams; i++)
        better |= hope > (s->length[i] ? worst : NEVER);
    s->improvable &= better;
    if (!s->improvable || hits == count ||
        (all_done && p->search.early_stopping == ISOBIT_EARLY_TRUE))
        return 1;
    memcpy(t->next, t->onward, beams * sizeof *t->next);
    move_beams(t, place, c);
    return 0;
}

/* ------------------------------------------------------------------------------------- a step */

/*
 * From the logits to the next tokens, a sentence at a time: log-sum-exp, processors, choice and
 * beams of one are done while its numbers lie in the cache. One parallel region for all of it.
 */
static void search_task(void *arg, size_t task) {
    model_group *g = arg;
    model_scratch *t = &g->scratch[task];
    for (size_t a = task; a < g->active_count; a += g->tasks) {
        model_sequence *s = g->active[a];
        const model_search *search = &s->plan->search;
        const size_t c = s->length_now;
        s->finished = search->sample       ? sample_sentence(t, a, c)
                      : search->beams == 1 ? greedy_sentence(t, a, c)
                                           : beam_sentence(t, a, c);
    }
}

iso_status model_search_step(model_group *g) {
    const iso_executor *executor = g->run.context.executor;
    iso_status status = ISOBIT_OK;
    if (g->tasks > 1 && g->active_count > 1)
        executor->parallel_for(executor->user, g->tasks, search_task, g);
    else
        for (size_t task = 0; task < g->tasks; task++)
            search_task(g, task);
    for (size_t i = 0; i < g->tasks && !status; i++)
        status = g->scratch[i].status;
    return model_run_fail(&g->run, status, "log-softmax");
}
