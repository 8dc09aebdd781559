/* SPDX-License-Identifier: MIT
 *
 * Generation: greedy search, sampling, and beam search as transformers defines it since 4.50. All
 * sentences of a group are at the same position; one that is finished gives its place in the caches
 * to the last one, so that rows stay dense. Each sentence is decided by its own numbers only: it
 * stops where it would stop alone. Sums are f32 and equal values go to the lowest index, row by row
 * of the live beams, best beam first.
 *
 * Live beams have a rank (best first) and a slot (the row of the caches where they live). A beam
 * whose parent goes on stays in its slot; only further children of a parent are copied, into the
 * slots of beams that ended. Nothing is allocated between the first step and the last.
 *
 * Without an encoder a source is a prompt, with which the history of its sentence begins. It is
 * read at once, and what its last token gives is what the first step chooses from.
 *
 * The samples of a sentence are beams that never meet. One that has ended keeps its row, which is
 * computed on and not looked at, until the last one ends.
 */
#include "decode.h"
#include "sample.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define GROUP_ROWS 256                /* sentences x beams */
#define CACHE_BYTES ((size_t)1 << 30) /* reserved; what is not reached is never touched */
#define LOGITS_FLOATS ((size_t)1 << 24)
#define NEVER (-1e9f) /* how transformers marks what must not be chosen */

/* Sequences of one kind for one sentence: `beams` rows of ld = past + 1 + max_new. */
typedef struct rows {
    uint32_t *tokens; /* [..][ld], the prompt, or the start token, first */
    float *log_probs; /* [..][ld]: of tokens[past + t + 1] at t */
    uint16_t *path;   /* [..][ld]: the slot in which step t was computed */
} rows;

typedef struct sentence {
    const model_item *item;
    size_t past;    /* tokens before the one that the first step reads */
    size_t max_new; /* of this sentence */
    size_t ld;
    rows live, done;
    float *sums;      /* [beams] by rank */
    size_t *slot;     /* [beams] by rank */
    float *scores;    /* [beams] of done, best first */
    size_t *place;    /* [beams] the row of each in `done` */
    size_t *length;   /* [beams] tokens of each, 0: none yet */
    float *attention; /* [steps][layers][H][beams][S], or NULL */
    size_t steps;
    int improvable;
} sentence;

/* A candidate to continue a beam. */
typedef struct candidate {
    float value, log_prob;
    size_t slot;
    uint32_t token;
    int hit;
} candidate;

typedef struct group {
    const model_plan *plan;
    model_run run;
    model_cache cache;
    sentence *sentences; /* [count] */
    size_t count;
    sentence **active; /* [count]: who is at each place of the caches */
    size_t active_count;
    uint32_t *ids, *positions; /* [rows] */
    float *logits;             /* [rows][V] */
    float *weights;            /* the step's cross-attention, or NULL */
    size_t K;                  /* candidates of a sentence */
    size_t tasks;              /* of the search, at most */
    struct scratch *scratch;   /* [tasks] */
    int *finished;             /* [count] */
    size_t length;             /* of the live beams */
} group;

/* What the search of one sentence at a time needs; a task has its own. */
typedef struct scratch {
    group *g;
    iso_context context; /* one thread */
    iso_status status;
    float *row;        /* [V] log-probabilities of one beam, where they must be written */
    candidate *best;   /* [K] */
    candidate *onward; /* [beams] the next live beams */
    candidate *next;   /* [beams] */
    float *merged;     /* [beams] */
    size_t *order;     /* [beams] */
    char *taken;       /* [beams] */
    model_candidates kept;
} scratch;

/* ------------------------------------------------------------------------------ greedy search */

/* y = log softmax(x) of one row. */
static void log_softmax(scratch *t, float *y, const float *x) {
    const size_t V = t->g->plan->model->config.target_vocabulary;
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

static lse log_sum_exp(scratch *t, const float *x) {
    const size_t V = t->g->plan->model->config.target_vocabulary;
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

static model_history history(const sentence *s, size_t slot) {
    return (model_history){s->live.tokens + slot * s->ld, s->past, s->max_new};
}

/* Whether token c ends the sequence in a slot, where it is left: nothing lies behind the others. */
static int ends(scratch *t, sentence *s, size_t slot, size_t c, uint32_t token) {
    const model_plan *p = t->g->plan;
    const model_history before = history(s, slot);
    uint32_t *generated = s->live.tokens + slot * s->ld + s->past + 1;
    generated[c - 1] = token;
    if (model_ends(p, &before, c, token))
        return 1;
    if (!p->is_last || t->status)
        return 0;
    const iso_sequence sequence = {s->item->index, generated, c};
    const int last = p->is_last(p->is_last_user, &sequence);
    if (last < 0)
        t->status = ISOBIT_E_CANCELLED;
    return last > 0;
}

/* Beam i of a sentence goes on with a token; returns 1 when it ends there. */
static int go_on(scratch *t, sentence *s, size_t i, size_t c, uint32_t token, float value) {
    const size_t at = i * s->ld;
    const int end = ends(t, s, i, c, token);
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
static int greedy_sentence(scratch *t, size_t place, size_t c) {
    const group *g = t->g;
    const model_plan *p = g->plan;
    const size_t V = p->model->config.target_vocabulary;
    sentence *s = g->active[place];
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
    return go_on(t, s, 0, c, token, log_prob(l, row[token]));
}

/* ----------------------------------------------------------------------------------- sampling */

/* A token of the row, where it has a distribution; else that of greedy search. */
static uint32_t draw(scratch *t, const float *row, size_t source, size_t sample, size_t position) {
    const model_plan *p = t->g->plan;
    const size_t V = p->model->config.target_vocabulary;
    const uint64_t number = (uint64_t)p->first_source + source;
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
static int sample_sentence(scratch *t, size_t place, size_t c) {
    const group *g = t->g;
    const model_plan *p = g->plan;
    const size_t V = p->model->config.target_vocabulary, samples = p->search.beams;
    sentence *s = g->active[place];
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
        const uint32_t token = draw(t, row, s->item->index, i, c - 1);
        finished &= go_on(t, s, i, c, token, log_prob(l, row[token]));
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
static const float *beam_row(scratch *t, lse *l, const sentence *s, size_t place, size_t slot,
                             size_t c) {
    const model_plan *p = t->g->plan;
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
static size_t best_candidates(scratch *t, size_t place, size_t c) {
    const group *g = t->g;
    const model_plan *p = g->plan;
    const size_t V = p->model->config.target_vocabulary, beams = p->search.beams, K = g->K;
    sentence *s = g->active[place];
    candidate *best = t->best;
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
                best[at] = (candidate){value, log_prob(l, row[v]), slot, (uint32_t)v, 0};
            }
        }
    }
    for (size_t k = 0; k < count; k++)
        best[k].hit = ends(t, s, best[k].slot, c, best[k].token);
    return count;
}

/* A finished beam: the row of its parent and one more token, kept in row `place` of done. */
static void keep(sentence *s, size_t place, const candidate *k, size_t c) {
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
static void update_done(scratch *t, sentence *s, size_t count, size_t c, int all_done) {
    const model_plan *p = t->g->plan;
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
            t->next[i] = (candidate){.slot = s->place[t->order[i]],
                                     .token = (uint32_t)s->length[t->order[i]]};
            continue;
        }
        while (t->taken[free_row])
            free_row++;
        t->taken[free_row] = 1;
        keep(s, free_row, &t->best[t->order[i] - beams], c);
        t->next[i] = (candidate){.slot = free_row, .token = (uint32_t)c};
    }
    for (size_t i = 0; i < beams; i++) {
        s->scores[i] = t->merged[i];
        s->place[i] = t->next[i].slot;
        s->length[i] = t->next[i].token;
    }
}

/* The next live beams take their slots; caches and histories follow. */
static void move_beams(scratch *t, size_t place, size_t c) {
    group *g = t->g;
    const model_plan *p = g->plan;
    sentence *s = g->active[place];
    const size_t beams = p->search.beams, ld = s->ld, tokens = s->past + c;
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
        model_cache_copy_beam(&g->cache, p->model, place * beams + to, place * beams + from, c);
    }
    for (size_t i = 0; i < beams; i++) {
        const size_t at = s->slot[i] * ld;
        s->sums[i] = t->next[i].value;
        s->live.tokens[at + tokens] = t->next[i].token;
        s->live.log_probs[at + c - 1] = t->next[i].log_prob;
        s->live.path[at + c - 1] = (uint16_t)t->next[i].slot;
    }
}

static int all_finished(const group *g, const sentence *s) {
    for (size_t i = 0; i < g->plan->search.beams; i++)
        if (!s->length[i])
            return 0;
    return 1;
}

/* One sentence, its current length c; returns 1 when it is finished. */
static int beam_sentence(scratch *t, size_t place, size_t c) {
    group *g = t->g;
    const model_plan *p = g->plan;
    const size_t beams = p->search.beams;
    const double lp = (double)p->search.length_penalty;
    sentence *s = g->active[place];
    const size_t count = best_candidates(t, place, c);
    size_t hits = 0;

    /* The beams that go on: those that ended are pushed behind all others. */
    size_t chosen = 0;
    for (size_t k = 0; k < count; k++) {
        candidate live = t->best[k];
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
    update_done(t, s, count, c, all_finished(g, s));

    const size_t longest =
        p->search.early_stopping == ISOBIT_EARLY_NEVER && lp > 0 ? s->max_new : c;
    const float hope = t->onward[0].value / (float)pow((double)longest, lp);
    const int all_done = all_finished(g, s);
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
    group *g = arg;
    scratch *t = &g->scratch[task];
    const model_search *search = &g->plan->search;
    for (size_t a = task; a < g->active_count; a += g->tasks)
        g->finished[a] = search->sample       ? sample_sentence(t, a, g->length)
                         : search->beams == 1 ? greedy_sentence(t, a, g->length)
                                              : beam_sentence(t, a, g->length);
}

static iso_status search_step(group *g, size_t c) {
    const iso_executor *executor = g->run.context.executor;
    iso_status status = ISOBIT_OK;
    g->length = c;
    if (g->tasks > 1)
        executor->parallel_for(executor->user, g->tasks, search_task, g);
    else
        search_task(g, 0);
    for (size_t i = 0; i < g->tasks && !status; i++)
        status = g->scratch[i].status;
    if (status == ISOBIT_E_CANCELLED)
        return model_fail(g->run.error, status, "is_last has ended the call at token %zu", c - 1);
    return model_run_fail(&g->run, status, "log-softmax");
}

/* ------------------------------------------------------------------------------------- groups */

static int make_rows(rows *r, model_arena *arena, size_t beams, size_t ld) {
    r->tokens = model_alloc3(arena, beams, ld, 1, sizeof *r->tokens);
    r->log_probs = model_alloc3(arena, beams, ld, 1, sizeof *r->log_probs);
    r->path = model_alloc3(arena, beams, ld, 1, sizeof *r->path);
    return r->tokens && r->log_probs && r->path;
}

static size_t attention_floats(const model_plan *p, size_t S) {
    size_t n = p->max_new;
    const size_t factors[] = {p->model->decoder.layers, p->model->decoder.H, p->search.beams, S};
    for (int i = 0; i < 4; i++)
        if (__builtin_mul_overflow(n, factors[i], &n) || n > PTRDIFF_MAX / sizeof(float))
            return SIZE_MAX;
    return n;
}

static int make_sentence(const model_plan *p, sentence *s, const model_item *item,
                         const uint32_t *sources, model_arena *arena) {
    const int prompt = !p->model->encoder.layers;
    const size_t beams = p->search.beams, past = prompt ? item->S - 1 : 0;
    const size_t max_new = model_plan_most(p, item->S), ld = past + 1 + max_new;
    *s = (sentence){.item = item,
                    .past = past,
                    .max_new = max_new,
                    .ld = ld,
                    .sums = model_alloc(arena, beams, sizeof *s->sums),
                    .slot = model_alloc(arena, beams, sizeof *s->slot),
                    .scores = model_alloc(arena, beams, sizeof *s->scores),
                    .place = model_alloc(arena, beams, sizeof *s->place),
                    .length = model_alloc(arena, beams, sizeof *s->length),
                    .improvable = 1};
    if (!s->sums || !s->slot || !s->scores || !s->place || !s->length ||
        !make_rows(&s->live, arena, beams, ld) ||
        (beams > 1 && !p->search.sample && !make_rows(&s->done, arena, beams, ld)))
        return 0;
    if (p->attention &&
        !(s->attention = model_alloc(arena, attention_floats(p, item->S), sizeof(float))))
        return 0;
    for (size_t i = 0; i < beams; i++) {
        s->sums[i] = i && !p->search.sample ? NEVER : 0;
        s->slot[i] = s->place[i] = i;
        s->scores[i] = NEVER;
        s->length[i] = 0;
        s->live.tokens[i * ld] = p->model->config.start;
        if (prompt)
            memcpy(s->live.tokens + i * ld, sources + item->first_source,
                   item->S * sizeof *sources);
    }
    return 1;
}

/* Keeps the cross-attention of this step. */
static void keep_attention(group *g, size_t a) {
    sentence *s = g->active[a];
    const size_t L = g->plan->model->decoder.layers, H = g->plan->model->decoder.H;
    const size_t beams = g->plan->search.beams, S = s->item->S;
    float *to = s->attention + s->steps * L * H * beams * S;
    for (size_t l = 0; l < L; l++)
        for (size_t i = 0; i < H * beams; i++, to += S) {
            const size_t from = (l * g->cache.sentences + a) * H * beams + i;
            memcpy(to, g->weights + from * g->cache.S, S * sizeof *to);
        }
}

/* Tells the caller of tokens [from, to) of sequence i, which lies in a row of r. */
static iso_status tell(const group *g, const sentence *s, size_t i, const rows *r, size_t row,
                       size_t from, size_t to) {
    const model_plan *p = g->plan;
    const size_t at = row * s->ld;
    for (size_t t = from; t < to; t++) {
        const iso_token token = {.source = s->item->index,
                                 .hypothesis = i,
                                 .position = t,
                                 .id = r->tokens[at + s->past + t + 1],
                                 .log_prob = r->log_probs[at + t],
                                 .last = t + 1 == s->length[i]};
        if (p->on_token(p->user, &token))
            return model_fail(g->run.error, ISOBIT_E_CANCELLED,
                              "on_token has ended the call at token %zu of source %zu", t,
                              s->item->index);
    }
    return ISOBIT_OK;
}

/* After a step: its tokens, or what a beam search has finished in it. */
static iso_status tell_step(const group *g, size_t c) {
    const model_plan *p = g->plan;
    const int grows = p->search.sample || p->search.beams == 1;
    iso_status status = ISOBIT_OK;
    for (size_t a = 0; a < g->active_count; a++) {
        const sentence *s = g->active[a];
        const size_t count = grows ? p->search.beams : g->finished[a] ? p->hypotheses : 0;
        for (size_t i = 0; i < count && !status; i++) {
            if (!grows)
                status = tell(g, s, i, &s->done, s->place[i], 0, s->length[i]);
            else if (!s->length[i] || s->length[i] == c)
                status = tell(g, s, i, &s->live, i, c - 1, c);
        }
    }
    return status;
}

/*
 * What a profile tells of a step. It multiplies with all weights of the decoder but those for the
 * keys and values of the sources.
 */
static void profile_step(const iso_model *model, double start, double flops) {
    iso_profile *profile = model->profile;
    const double seconds = model_now() - start;
    double floats = (double)model->logits.w.n * (double)model->logits.w.k;
    for (size_t l = 0; l < model->decoder.layers; l++) {
        const model_layer *layer = &model->decoder.layer[l];
        const model_linear *all[] = {&layer->self_qkv,  &layer->self_out, &layer->cross_q,
                                     &layer->cross_out, &layer->fc1,      &layer->fc2};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            floats += (double)all[i]->w.n * (double)all[i]->w.k;
    }
    if (!profile->steps++ || seconds < profile->fastest_step)
        profile->fastest_step = seconds;
    profile->step_seconds += seconds;
    profile->step_flops += profile->flops - flops;
    profile->step_weight_bytes += floats * sizeof(float);
}

static iso_status run_steps(group *g) {
    const model_plan *p = g->plan;
    const iso_model *model = p->model;
    const size_t beams = p->search.beams;
    iso_status status = ISOBIT_OK;
    for (size_t c = 1; g->active_count && !status; c++) {
        const size_t all = g->active_count * beams;
        const int reads = c > 1 || g->cache.S; /* else the prompts have been read */
        const double start = model->profile ? model_now() : 0;
        const double flops = model->profile ? model->profile->flops : 0;
        for (size_t r = 0; r < all; r++) {
            const sentence *s = g->active[r / beams];
            g->ids[r] = s->live.tokens[(r % beams) * s->ld + s->past + c - 1];
        }
        if ((reads && (status = model_decode_step(&g->cache, &g->run, g->ids, g->positions,
                                                  g->active_count, c - 1, g->weights))) ||
            (status = model_logits(&g->run, g->logits, g->run.x, all)))
            break;
        for (size_t a = 0; a < g->active_count; a++) {
            if (g->weights)
                keep_attention(g, a);
            g->active[a]->steps++;
        }
        status = search_step(g, c);
        model_lap(&g->run, ISOBIT_PROFILE_SEARCH);
        if (p->on_token && !status) {
            status = tell_step(g, c);
            model_lap(&g->run, ISOBIT_PROFILE_OTHER);
        }
        /* From the last to the first, so that who moves into a gap has been looked at. */
        for (size_t a = g->active_count; a-- && !status;) {
            if (!g->finished[a])
                continue;
            const size_t last = --g->active_count;
            if (a != last) {
                model_cache_copy_sentence(&g->cache, model, a, last, c);
                g->active[a] = g->active[last];
            }
        }
        model_lap(&g->run, ISOBIT_PROFILE_CACHE);
        if (model->profile && reads)
            profile_step(model, start, flops);
    }
    return status;
}

/* One finished beam becomes a hypothesis of the result. */
static iso_status give_hypothesis(iso_hypothesis *out, const group *g, const sentence *s, size_t i,
                                  model_arena *arena) {
    const model_plan *p = g->plan;
    const size_t L = p->model->decoder.layers, H = p->model->decoder.H, S = s->item->S;
    const size_t beams = p->search.beams, T = s->length[i];
    const size_t at = s->place[i] * s->ld;
    uint32_t *ids = model_alloc(arena, T, sizeof *ids);
    float *log_probs = model_alloc(arena, T, sizeof *log_probs), *attention = NULL;
    size_t heads = L * H;
    if (!ids || !log_probs ||
        (p->attention && !(attention = model_alloc3(arena, heads, T, S, sizeof *attention))))
        return model_fail(g->run.error, ISOBIT_E_NOMEM, "out of memory for the result");
    memcpy(ids, s->done.tokens + at + s->past + 1, T * sizeof *ids);
    memcpy(log_probs, s->done.log_probs + at, T * sizeof *log_probs);
    for (size_t head = 0; attention && head < heads; head++)
        for (size_t t = 0; t < T; t++) {
            const size_t from = (t * heads + head) * beams + s->done.path[at + t];
            memcpy(attention + (head * T + t) * S, s->attention + from * S, S * sizeof *attention);
        }
    *out = (iso_hypothesis){ids, T, s->scores[i], log_probs, attention};
    return ISOBIT_OK;
}

/* Sentences below so many logits are searched by one thread. */
#define SMALL_SEARCH ((size_t)1 << 16)

static int make_scratch(group *g, size_t all) {
    const model_plan *p = g->plan;
    const iso_executor *executor = g->run.context.executor;
    const size_t beams = p->search.beams, V = p->model->config.target_vocabulary;
    model_arena *arena = &g->run.arena;
    g->tasks =
        executor && executor->parallel_for && all * V >= SMALL_SEARCH ? executor->max_threads : 1;
    g->tasks = g->tasks < g->count ? g->tasks : g->count;
    g->scratch = model_alloc(arena, g->tasks, sizeof *g->scratch);
    for (size_t i = 0; i < g->tasks && g->scratch; i++) {
        scratch *t = &g->scratch[i];
        *t = (scratch){.g = g,
                       .context = {.size = sizeof t->context, .isa = g->run.context.isa},
                       .row = model_alloc(arena, V, sizeof *t->row),
                       .best = model_alloc(arena, g->K, sizeof *t->best),
                       .onward = model_alloc(arena, beams, sizeof *t->onward),
                       .next = model_alloc(arena, beams, sizeof *t->next),
                       .merged = model_alloc(arena, beams, sizeof *t->merged),
                       .order = model_alloc(arena, beams, sizeof *t->order),
                       .taken = model_alloc(arena, beams, sizeof *t->taken)};
        if (!t->row || !t->best || !t->onward || !t->next || !t->merged || !t->order || !t->taken ||
            (p->search.sample && !model_candidates_make(&t->kept, arena, V)))
            return 0;
    }
    return g->scratch != NULL;
}

static iso_status make_group(group *g, const model_item *items, size_t count,
                             const uint32_t *sources) {
    const model_plan *p = g->plan;
    const iso_model *model = p->model;
    const size_t beams = p->search.beams, all = count * beams, V = model->config.target_vocabulary;
    model_arena *arena = &g->run.arena;
    g->count = g->active_count = count;
    g->K = (model->config.eos.count ? 1 + model->config.eos.count : 2) * beams;
    g->sentences = model_alloc(arena, count, sizeof *g->sentences);
    g->active = model_alloc(arena, count, sizeof *g->active);
    g->ids = model_alloc(arena, all, sizeof *g->ids);
    g->positions = model_alloc(arena, all, sizeof *g->positions);
    g->finished = model_alloc(arena, count, sizeof *g->finished);
    g->logits = model_alloc3(arena, all, V, 1, sizeof *g->logits);
    int ok = g->sentences && g->active && g->ids && g->positions && g->finished && g->logits &&
             make_scratch(g, all);
    if (ok && p->attention) {
        g->weights = model_alloc3(arena, model->decoder.layers * model->decoder.H, all, items[0].S,
                                  sizeof *g->weights);
        ok = g->weights != NULL;
    }
    for (size_t i = 0; i < count && ok; i++) {
        ok = make_sentence(p, &g->sentences[i], &items[i], sources, arena);
        g->active[i] = &g->sentences[i];
    }
    return ok ? ISOBIT_OK : model_fail(g->run.error, ISOBIT_E_NOMEM, "out of memory");
}

/* The sources become keys and values of the caches: encoded, for attention over the encoder. */
static iso_status read_sources(group *g, const model_batch *batch) {
    iso_status status = model_encode(&g->run, batch->ids, batch->positions, batch->spans,
                                     batch->count, batch->rows);
    return status
               ? status
               : model_cache_sources(&g->cache, &g->run, batch->spans, batch->count, batch->rows);
}

/* Without an encoder: the prompts, for self-attention. Their last rows, one for each beam, are what
 * the first step begins with. */
static iso_status read_prompts(group *g, const model_batch *batch) {
    const size_t beams = g->plan->search.beams, d = g->plan->model->config.d;
    const model_decoder_batch prompts = {.ids = batch->ids,
                                         .positions = batch->positions,
                                         .self = batch->spans,
                                         .count = batch->count,
                                         .rows = batch->rows};
    iso_status status = model_decode_whole(&g->run, &prompts, &g->cache);
    for (size_t b = 0; b < batch->count; b++)
        g->cache.prompts[b] = batch->spans[b].T - 1;
    for (size_t r = 0; r < batch->count * beams && !status; r++) {
        const model_span *span = &batch->spans[r / beams];
        memcpy(g->run.h + r * d, g->run.x + (span->first_q + span->T - 1) * d,
               d * sizeof *g->run.h);
        if (r % beams)
            model_cache_copy_beam(&g->cache, g->plan->model, r, r / beams * beams, 1);
    }
    if (!status)
        memcpy(g->run.x, g->run.h, batch->count * beams * d * sizeof *g->run.x);
    model_lap(&g->run, ISOBIT_PROFILE_CACHE);
    return status;
}

/* Capacities of the caches for a source, the longest, of S tokens. */
static void cache_sizes(const model_plan *p, size_t source, size_t *T, size_t *S) {
    const int prompt = !p->model->encoder.layers;
    const size_t positions = p->model->config.max_positions;
    *T = p->max_new + (prompt ? source - 1 : 0);
    *T = prompt && *T > positions ? positions : *T;
    *S = prompt ? 0 : source;
}

/* `count` sources, the longest first; their memory is left in `memory` for the next ones. */
static iso_status run_group(const model_plan *p, const model_item *items, size_t count,
                            const uint32_t *sources, iso_hypothesis *best, model_arena *results,
                            model_arena *memory, const iso_context *context, iso_error *error) {
    group g = {.plan = p};
    size_t tokens = 0;
    for (size_t i = 0; i < count; i++)
        tokens += items[i].S;
    const size_t all = count * p->search.beams;
    size_t T, S;
    cache_sizes(p, items[0].S, &T, &S);
    model_batch batch;
    iso_status status =
        model_run_begin(&g.run, memory, p->model, context, tokens > all ? tokens : all, error);
    if (status)
        return status;
    status = model_batch_sources(&batch, &g.run.arena, p->model, items, count, sources, error);
    if (!status)
        status = make_group(&g, items, count, sources);
    if (!status)
        status = model_cache_make(&g.cache, &g.run, count, p->search.beams, T, S);
    if (!status)
        status = S ? read_sources(&g, &batch) : read_prompts(&g, &batch);
    if (!status)
        status = model_cache_workspace(&g.cache, &g.run, g.weights);
    if (!status)
        status = run_steps(&g);
    for (size_t i = 0; i < count && !status; i++)
        for (size_t h = 0; h < p->hypotheses && !status; h++)
            status = give_hypothesis(&best[items[i].index * p->hypotheses + h], &g, &g.sentences[i],
                                     h, results);
    model_arena_recycle(&g.run.arena);
    *memory = g.run.arena;
    g.run.arena = (model_arena){0};
    return model_run_end(&g.run, status);
}

/* How many sources, from the longest on, go into the next group. */
static size_t group_size(const model_plan *p, const model_item *items, size_t count) {
    const size_t beams = p->search.beams, V = p->model->config.target_vocabulary;
    size_t T, S;
    cache_sizes(p, items[0].S, &T, &S);
    size_t bytes = model_cache_bytes(p->model, beams, T, S);
    size_t attention = p->attention ? attention_floats(p, items[0].S) : 0;
    if (!bytes || attention > CACHE_BYTES / sizeof(float))
        return 1; /* alone, and if even that is too much it fails there */
    bytes += attention * sizeof(float);
    size_t most = GROUP_ROWS / beams, tokens = items[0].S, n = 1;
    most = most < CACHE_BYTES / bytes ? most : CACHE_BYTES / bytes;
    most = most < LOGITS_FLOATS / V / beams ? most : LOGITS_FLOATS / V / beams;
    while (n < count && n < most && tokens + items[n].S <= p->tokens)
        tokens += items[n++].S;
    return n;
}

/* ---------------------------------------------------------------------------------- the call */

/* The result with the memory that it owns. */
typedef struct generation {
    iso_generation public;
    model_arena arena;
} generation;

iso_status iso_generate(iso_generation **result, const iso_model *model, const uint32_t *sources,
                        const size_t *source_lengths, size_t count,
                        const iso_generate_options *options, const iso_context *context,
                        iso_error *error) {
    if (!result || !model)
        return model_fail(error, ISOBIT_E_NULL, "result and model must not be NULL");
    model_plan p;
    model_arena arena = {0}, results = {0}, memory = {0}; /* the last one: of groups */
    model_item *items;
    iso_status status = model_needs(&model->decoder, "decoder", error);
    if (!status)
        status = model_plan_make(&p, model, options, error);
    if (!status)
        status = model_check_context(context, error);
    if (!status)
        status =
            model_items(&items, &arena, model, sources, source_lengths, NULL, NULL, count, error);
    if (!status)
        status = model_plan_prompts(&p, items, count, error);
    generation *made = NULL;
    iso_hypothesis *best = NULL;
    if (!status) {
        made = model_alloc(&results, 1, sizeof *made);
        best = model_alloc3(&results, count, p.hypotheses, 1, sizeof *best);
        if (!made || !best)
            status = model_fail(error, ISOBIT_E_NOMEM, "out of memory for the result");
    }
    for (size_t i = 0, n; i < count && !status; i += n) {
        n = group_size(&p, items + i, count - i);
        status = run_group(&p, items + i, n, sources, best, &results, &memory, context, error);
    }
    model_arena_free(&memory);
    model_arena_free(&arena);
    if (status) {
        model_arena_free(&results);
        return status;
    }
    *made = (generation){{count * p.hypotheses, p.hypotheses, best}, results};
    *result = &made->public;
    return ISOBIT_OK;
}

void iso_generation_free(iso_generation *result) {
    if (!result)
        return;
    model_arena arena = ((generation *)(void *)result)->arena; /* which holds the result itself */
    model_arena_free(&arena);
}
