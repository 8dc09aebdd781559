/* SPDX-License-Identifier: MIT
 *
 * Sentences that run together. Each is at a position of its own: they join a group and leave it
 * between any two steps, and none of them can tell, since every op gives a row the same bits
 * whatever rows are around it. One that leaves gives its place in the caches to the last one, so
 * that rows stay dense. Nothing is allocated in a step, but where sources are read.
 *
 * Without an encoder a source is a prompt, with which the history of its sentence begins. Prompts
 * that begin a group are read whole, and the first step chooses from what their last tokens gave:
 * weights are read once, not twice. A prompt that joins others is read but for its last token,
 * which its first step reads, as the others read theirs. Prompts are read in pieces, so that memory
 * does not grow with them and others can go on between two pieces.
 */
#include "search.h"

#include <string.h>

/* Sentences below so many logits are searched by one thread. */
#define SMALL_SEARCH ((size_t)1 << 16)

/* ---------------------------------------------------------------------------------- sentences */

static int make_rows(model_rows *r, model_arena *arena, size_t beams, size_t ld) {
    r->tokens = model_alloc3(arena, beams, ld, 1, sizeof *r->tokens);
    r->log_probs = model_alloc3(arena, beams, ld, 1, sizeof *r->log_probs);
    r->path = model_alloc3(arena, beams, ld, 1, sizeof *r->path);
    return r->tokens && r->log_probs && r->path;
}

size_t model_attention_floats(const model_plan *p, size_t S) {
    size_t n = p->max_new;
    const size_t factors[] = {p->model->decoder.layers, p->model->decoder.H, p->search.beams, S};
    for (int i = 0; i < 4; i++)
        if (__builtin_mul_overflow(n, factors[i], &n) || n > PTRDIFF_MAX / sizeof(float))
            return SIZE_MAX;
    return n;
}

model_sequence *model_sequence_make(const model_plan *p, const uint32_t *source, size_t S,
                                    model_arena *arena) {
    const int prompt = !p->model->encoder.layers;
    const size_t beams = p->search.beams, past = prompt ? S - 1 : 0;
    const size_t max_new = model_plan_most(p, S), ld = past + 1 + max_new;
    model_sequence *s = model_alloc(arena, 1, sizeof *s);
    if (!s)
        return NULL;
    *s = (model_sequence){.plan = p,
                          .source = source,
                          .S = S,
                          .past = past,
                          .max_new = max_new,
                          .ld = ld,
                          .length_now = 1,
                          .sums = model_alloc(arena, beams, sizeof *s->sums),
                          .slot = model_alloc(arena, beams, sizeof *s->slot),
                          .scores = model_alloc(arena, beams, sizeof *s->scores),
                          .place = model_alloc(arena, beams, sizeof *s->place),
                          .length = model_alloc(arena, beams, sizeof *s->length),
                          .improvable = 1};
    if (!s->sums || !s->slot || !s->scores || !s->place || !s->length ||
        !make_rows(&s->live, arena, beams, ld) ||
        (beams > 1 && !p->search.sample && !make_rows(&s->done, arena, beams, ld)))
        return NULL;
    if (p->attention &&
        !(s->attention = model_alloc(arena, model_attention_floats(p, S), sizeof(float))))
        return NULL;
    for (size_t i = 0; i < beams; i++) {
        s->sums[i] = i && !p->search.sample ? MODEL_NEVER_CHOSEN : 0;
        s->slot[i] = s->place[i] = i;
        s->scores[i] = MODEL_NEVER_CHOSEN;
        s->length[i] = 0;
        s->live.tokens[i * ld] = p->model->config.start;
        if (prompt)
            memcpy(s->live.tokens + i * ld, source, S * sizeof *source);
    }
    return s;
}

iso_status model_sequence_result(iso_hypothesis *out, const model_sequence *s, size_t i,
                                 model_arena *arena) {
    const model_plan *p = s->plan;
    const size_t S = s->S, beams = p->search.beams, T = s->length[i];
    const size_t at = s->place[i] * s->ld;
    const size_t heads = p->model->decoder.layers * p->model->decoder.H;
    uint32_t *ids = model_alloc(arena, T, sizeof *ids);
    float *log_probs = model_alloc(arena, T, sizeof *log_probs), *attention = NULL;
    if (!ids || !log_probs ||
        (p->attention && !(attention = model_alloc3(arena, heads, T, S, sizeof *attention))))
        return ISOBIT_E_NOMEM;
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

/* ------------------------------------------------------------------------------------- groups */

static int make_scratch(model_group *g, int samples) {
    const iso_executor *executor = g->run.context.executor;
    const size_t beams = g->beams, V = g->model->config.target_vocabulary;
    model_arena *arena = &g->run.arena;
    g->tasks = executor && executor->parallel_for && g->count * beams * V >= SMALL_SEARCH
                   ? executor->max_threads
                   : 1;
    g->tasks = g->tasks < g->count ? g->tasks : g->count;
    g->scratch = model_alloc(arena, g->tasks, sizeof *g->scratch);
    for (size_t i = 0; i < g->tasks && g->scratch; i++) {
        model_scratch *t = &g->scratch[i];
        *t = (model_scratch){.g = g,
                             .context = {.size = sizeof t->context, .isa = g->run.context.isa},
                             .row = model_alloc(arena, V, sizeof *t->row),
                             .best = model_alloc(arena, g->K, sizeof *t->best),
                             .onward = model_alloc(arena, beams, sizeof *t->onward),
                             .next = model_alloc(arena, beams, sizeof *t->next),
                             .merged = model_alloc(arena, beams, sizeof *t->merged),
                             .order = model_alloc(arena, beams, sizeof *t->order),
                             .taken = model_alloc(arena, beams, sizeof *t->taken)};
        if (!t->row || !t->best || !t->onward || !t->next || !t->merged || !t->order || !t->taken ||
            (samples && !model_candidates_make(&t->kept, arena, V)))
            return 0;
    }
    return g->scratch != NULL;
}

iso_status model_group_make(model_group *g, model_arena memory[2], const iso_model *model,
                            const model_group_size *size, const iso_context *context,
                            iso_error *error) {
    const size_t V = model->config.target_vocabulary;
    size_t all;
    *g = (model_group){.model = model, .beams = size->beams, .count = size->count};
    if (__builtin_mul_overflow(size->count, size->beams, &all))
        return model_fail(error, ISOBIT_E_OVERFLOW, "%zu sequences of %zu rows", size->count,
                          size->beams);
    const iso_status begun =
        model_run_begin(&g->run, memory ? &memory[0] : NULL, model, context, all, error);
    if (begun)
        return begun;
    if (memory) {
        g->reading = memory[1];
        memory[1] = (model_arena){0};
    }
    model_arena *arena = &g->run.arena;
    g->K = (model->config.eos.count ? 1 + model->config.eos.count : 2) * size->beams;
    g->active = model_alloc(arena, g->count, sizeof *g->active);
    g->ids = model_alloc(arena, all, sizeof *g->ids);
    g->positions = model_alloc(arena, all, sizeof *g->positions);
    g->logits = model_alloc3(arena, all, V, 1, sizeof *g->logits);
    int ok = g->active && g->ids && g->positions && g->logits && make_scratch(g, size->samples);
    if (ok && size->attention) {
        g->weights = model_alloc3(arena, model->decoder.layers * model->decoder.H, all, size->S,
                                  sizeof *g->weights);
        ok = g->weights != NULL;
    }
    if (!ok)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    const iso_status status =
        model_cache_make(&g->cache, &g->run, g->count, g->beams, size->T, size->S);
    return status ? status : model_cache_workspace(&g->cache, &g->run, g->weights);
}

void model_group_end(model_group *g, model_arena memory[2]) {
    if (memory) {
        model_arena_recycle(&g->run.arena);
        model_arena_recycle(&g->reading);
        memory[0] = g->run.arena;
        memory[1] = g->reading;
        g->run.arena = g->reading = (model_arena){0};
    }
    model_arena_free(&g->reading);
    model_run_end(&g->run, ISOBIT_OK);
}

/* ------------------------------------------------------------------------------------ joining */

/* Sources, or prompts or parts of them, one after the other; places: of those that have any. */
typedef struct reading {
    model_batch batch;
    size_t *places;
} reading;

/* Whether who joins is a prompt, with no others there. */
static int begins_with_prompts(const model_group *g) { return !g->cache.S && !g->active_count; }

/* How many tokens are left to read before a sentence can join. */
static size_t tokens_left(const model_sequence *s, int whole) {
    const size_t all = whole ? s->S : s->past;
    return all - (s->read < all ? s->read : all);
}

/*
 * Of the sentences from `first` on so many as are read next, in *count, and how many tokens. Of
 * prompts that is a piece of MODEL_PROMPT_ROWS: those that go in, or a part of one that is longer
 * or has more than `tokens`.
 */
static size_t next_piece(const model_group *g, model_sequence *const *sentences, size_t first,
                         size_t all, int whole, size_t tokens, size_t *count) {
    const size_t room = tokens < MODEL_PROMPT_ROWS ? tokens : MODEL_PROMPT_ROWS;
    size_t rows = 0, i = first;
    for (; i < all; i++) {
        const size_t left = tokens_left(sentences[i], whole);
        if (!g->cache.S && left > room - rows)
            break;
        rows += left;
    }
    if (rows == 0 && i < all) { /* a part */
        rows = room;
        i++;
    }
    *count = i - first;
    return rows;
}

/* Tokens of sentences from `first` on, `rows` in all. */
static iso_status lay_out(reading *r, model_run *run, const model_group *g,
                          model_sequence *const *sentences, size_t first, size_t count, size_t rows,
                          int whole) {
    model_batch *b = &r->batch;
    *r = (reading){.batch = {.ids = model_alloc(&run->arena, rows, sizeof *b->ids),
                             .positions = model_alloc(&run->arena, rows, sizeof *b->positions),
                             .spans = model_alloc(&run->arena, count, sizeof *b->spans),
                             .rows = rows},
                   .places = model_alloc(&run->arena, count, sizeof *r->places)};
    if (!b->ids || !b->positions || !b->spans || !r->places)
        return model_fail(run->error, ISOBIT_E_NOMEM, "out of memory");
    for (size_t i = first, at = 0; i < first + count; i++) {
        const model_sequence *s = sentences[i];
        const size_t left = tokens_left(s, whole), n = left < rows - at ? left : rows - at;
        if (!n)
            continue;
        memcpy(b->ids + at, s->source + s->read, n * sizeof *b->ids);
        for (size_t t = 0; t < n; t++)
            b->positions[at + t] = (uint32_t)(s->read + t + g->model->config.position_offset);
        b->spans[b->count] = (model_span){at, n, at, s->read + n};
        r->places[b->count++] = g->active_count + i;
        at += n;
    }
    return ISOBIT_OK;
}

/* A source becomes keys and values of the caches for attention over the encoder; a prompt becomes
 * those of self-attention, of its first beam. */
static iso_status read_all(model_group *g, model_run *run, const reading *r) {
    const model_batch *b = &r->batch;
    if (!g->cache.S) {
        const model_decoder_batch prompts = {.ids = b->ids,
                                             .positions = b->positions,
                                             .self = b->spans,
                                             .count = b->count,
                                             .rows = b->rows};
        return model_decode_whole(run, &prompts, &g->cache, r->places);
    }
    const iso_status status = model_encode(run, b->ids, b->positions, b->spans, b->count, b->rows);
    return status
               ? status
               : model_cache_sources(&g->cache, run, g->active_count, b->spans, b->count, b->rows);
}

/* The rows of last tokens, one for each beam, are where the first step begins. A part of a prompt
 * is followed by another one, whose row takes the place of its. */
static void keep_last_rows(model_group *g, const model_run *run, const reading *r) {
    const size_t d = g->model->config.d;
    for (size_t i = 0; i < r->batch.count * g->beams; i++) {
        const model_span *span = &r->batch.spans[i / g->beams];
        const size_t row = r->places[i / g->beams] * g->beams + i % g->beams;
        memcpy(g->run.x + row * d, run->x + (span->first_q + span->T - 1) * d, d * sizeof *run->x);
    }
}

/* Reads `rows` tokens of sentences from `first` on. */
static iso_status read_piece(model_group *g, model_sequence *const *sentences, size_t first,
                             size_t count, size_t rows, int whole) {
    const iso_context context = {
        .size = sizeof context, .isa = g->run.context.isa, .executor = g->run.context.executor};
    model_run run;
    reading r;
    iso_status status = model_run_begin(&run, &g->reading, g->model, &context, rows, g->run.error);
    if (status)
        return status;
    status = lay_out(&r, &run, g, sentences, first, count, rows, whole);
    if (!status)
        status = read_all(g, &run, &r);
    if (!status && whole && !g->cache.S)
        keep_last_rows(g, &run, &r);
    for (size_t i = 0; i < count && !status; i++) {
        model_sequence *s = sentences[first + i];
        const size_t left = tokens_left(s, whole), n = left < rows ? left : rows;
        s->read += n;
        rows -= n;
    }
    model_arena_recycle(&run.arena);
    g->reading = run.arena;
    run.arena = (model_arena){0};
    status = model_run_end(&run, status);
    g->run.lap = run.lap; /* the time until now has been counted */
    return status;
}

iso_status model_group_join(model_group *g, model_sequence *const *sentences, size_t count,
                            size_t tokens, size_t *joined) {
    const size_t beams = g->beams, begun = count ? sentences[0]->read : 0;
    const int prompts = begins_with_prompts(g), whole = prompts || g->cache.S;
    iso_status status = ISOBIT_OK;
    size_t done = 0;
    for (size_t n, rows; done < count && !status; tokens -= g->cache.S ? 0 : rows) {
        if (!(rows = next_piece(g, sentences, done, count, whole, tokens, &n)) && !tokens)
            break;
        if (rows)
            status = read_piece(g, sentences, done, n, rows, whole);
        while (done < count && !status && !tokens_left(sentences[done], whole))
            done++;
    }
    if (status) {
        for (size_t i = 0; i < count; i++)
            sentences[i]->read = i ? 0 : begun;
        return status;
    }
    for (size_t i = 0; i < done; i++) {
        const size_t a = g->active_count++;
        g->active[a] = sentences[i];
        g->cache.lengths[a] = sentences[i]->past + (size_t)prompts;
        for (size_t beam = 1; beam < beams && g->cache.lengths[a]; beam++)
            model_cache_copy_beam(&g->cache, g->model, a * beams + beam, a * beams);
        g->cache.lengths[a] = sentences[i]->past;
    }
    g->have_read = prompts && done;
    g->part = done < count && sentences[done]->read;
    if (g->part)
        g->cache.lengths[g->active_count] = sentences[done]->read;
    *joined = done;
    model_lap(&g->run, ISOBIT_PROFILE_CACHE);
    return ISOBIT_OK;
}

/* ------------------------------------------------------------------------------------- a step */

/* Keeps the cross-attention of this step. */
static void keep_attention(model_group *g, size_t a) {
    model_sequence *s = g->active[a];
    const size_t L = g->model->decoder.layers, H = g->model->decoder.H;
    const size_t beams = g->beams, S = s->S;
    float *to = s->attention + (s->length_now - 1) * L * H * beams * S;
    for (size_t l = 0; l < L; l++)
        for (size_t i = 0; i < H * beams; i++, to += S) {
            const size_t from = (l * g->cache.sentences + a) * H * beams + i;
            memcpy(to, g->weights + from * g->cache.S, S * sizeof *to);
        }
}

/* Tells the caller of tokens [from, to) of sequence i, which lies in a row of r. */
static void tell(model_sequence *s, size_t i, const model_rows *r, size_t row, size_t from,
                 size_t to) {
    const model_plan *p = s->plan;
    const size_t at = row * s->ld;
    for (size_t t = from; t < to && !s->cancelled_by; t++) {
        const iso_token token = {.source = s->index,
                                 .hypothesis = i,
                                 .position = t,
                                 .id = r->tokens[at + s->past + t + 1],
                                 .log_prob = r->log_probs[at + t],
                                 .last = t + 1 == s->length[i]};
        if (p->on_token(p->user, &token)) {
            s->cancelled_by = "on_token";
            s->cancelled_at = t;
        }
    }
}

/* After a step: its tokens, or what a beam search has finished in it. */
static void tell_step(model_sequence *s, size_t c) {
    const model_plan *p = s->plan;
    const int grows = p->search.sample || p->search.beams == 1;
    const size_t count = grows ? p->search.beams : s->finished ? p->hypotheses : 0;
    for (size_t i = 0; i < count; i++) {
        if (!grows)
            tell(s, i, &s->done, s->place[i], 0, s->length[i]);
        else if (!s->length[i] || s->length[i] == c)
            tell(s, i, &s->live, i, c - 1, c);
    }
}

static double weight_bytes(const model_linear *w) {
    const double elements = (double)w->w.n * (double)w->w.k;
    size_t packed = 0;
    if (w->q.data && iso_pack_q_bytes(&packed, 16, w->q.k, &w->q.format) == ISOBIT_OK)
        return (double)packed / 16 * (double)w->q.n; /* with all scales, without padding */
    if (w->s8.data)
        return elements;
    return elements * (double)(w->w16.data ? sizeof *w->w16.data : sizeof(float));
}

/*
 * What a profile tells of a step. It multiplies with all weights of the decoder but those for the
 * keys and values of the sources.
 */
static void profile_step(const iso_model *model, double start, double flops) {
    iso_profile *profile = model->profile;
    const double seconds = model_now() - start;
    double bytes = weight_bytes(&model->logits);
    for (size_t l = 0; l < model->decoder.layers; l++) {
        const model_layer *layer = &model->decoder.layer[l];
        const model_linear *all[] = {&layer->self_qkv,  &layer->self_out, &layer->cross_q,
                                     &layer->cross_out, &layer->fc1,      &layer->fc2};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            bytes += weight_bytes(all[i]);
    }
    if (!profile->steps++ || seconds < profile->fastest_step)
        profile->fastest_step = seconds;
    profile->step_seconds += seconds;
    profile->step_flops += profile->flops - flops;
    profile->step_weight_bytes += bytes;
}

iso_status model_group_step(model_group *g) {
    const iso_model *model = g->model;
    const size_t beams = g->beams, all = g->active_count * beams;
    const double start = model->profile ? model_now() : 0;
    const double flops = model->profile ? model->profile->flops : 0;
    const int have_read = g->have_read;
    int cancelled = 0;
    for (size_t r = 0; r < all; r++) {
        const model_sequence *s = g->active[r / beams];
        g->ids[r] = s->live.tokens[(r % beams) * s->ld + s->past + s->length_now - 1];
    }
    iso_status status = ISOBIT_OK;
    g->have_read = 0;
    if (!have_read)
        status = model_decode_step(&g->cache, &g->run, g->ids, g->positions, g->active_count,
                                   g->weights);
    for (size_t a = 0; a < g->active_count && have_read; a++)
        g->cache.lengths[a]++;
    if (!status)
        status = model_logits(&g->run, g->logits, g->run.x, all);
    for (size_t a = 0; a < g->active_count && !status; a++)
        if (g->active[a]->attention)
            keep_attention(g, a);
    if (!status)
        status = model_search_step(g);
    model_lap(&g->run, ISOBIT_PROFILE_SEARCH);
    for (size_t a = 0; a < g->active_count && !status; a++) {
        model_sequence *s = g->active[a];
        cancelled |= s->cancelled_by != NULL;
        if (s->plan->on_token && !s->cancelled_by && !(g->together && cancelled))
            tell_step(s, s->length_now);
        cancelled |= s->cancelled_by != NULL;
        s->length_now++;
    }
    model_lap(&g->run, ISOBIT_PROFILE_OTHER);
    if (model->profile && !have_read)
        profile_step(model, start, flops);
    return status;
}

void model_group_leave(model_group *g, size_t place) {
    const size_t last = --g->active_count;
    if (place != last) {
        model_cache_copy_sentence(&g->cache, g->model, place, last);
        g->active[place] = g->active[last];
    }
    if (g->part) { /* it stays the next one */
        model_cache_copy_beam(&g->cache, g->model, last * g->beams, (last + 1) * g->beams);
        g->cache.lengths[last] = g->cache.lengths[last + 1];
    }
    model_lap(&g->run, ISOBIT_PROFILE_CACHE);
}
