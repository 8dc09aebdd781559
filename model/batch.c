/* SPDX-License-Identifier: MIT
 *
 * Continuous batches: sequences wait in a list, run in a group, and lie in another list when they
 * are finished. Each has an arena of its own, from which it came and with which it goes.
 */
#include "search.h"

#include <string.h>

#define DEFAULT_SEQUENCES 32
#define DEFAULT_LENGTH 512
#define DEFAULT_TOKENS 2048           /* of sources, which are not cut */
#define CACHE_BYTES ((size_t)1 << 30) /* for the caches, unless the options say otherwise */
#define MAX_ROWS 1024

typedef struct member {
    struct member *next;
    model_sequence *sequence;
    model_plan plan;
    model_arena arena;
} member;

/* First in, first out. */
typedef struct queue {
    member *first, **end;
} queue;

struct iso_batch {
    iso_model model; /* the caller's, but without its profile, which may come and go */
    model_group group;
    iso_executor executor; /* the caller's struct need not live on */
    iso_error error;       /* that the group writes to */
    size_t T, S, tokens, attention;
    size_t next_number;
    queue waiting, finished;
    member **running;         /* [count], as in the group */
    model_sequence **joining; /* [count] */
    model_arena arena;
    iso_status broken;
};

static void put(queue *q, member *m) {
    m->next = NULL;
    *q->end = m;
    q->end = &m->next;
}

static member *take(queue *q, member **at) {
    member *m = *at;
    *at = m->next;
    if (!*at)
        q->end = at;
    return m;
}

static void drop(member *m) {
    model_arena arena = m->arena; /* which holds m itself */
    model_arena_free(&arena);
}

static void clear(queue *q) {
    while (q->first)
        drop(take(q, &q->first));
}

/* ------------------------------------------------------------------------------------- create */

/* The longest that there may be, within the positions of the model. */
static size_t at_most(size_t wanted, size_t positions) {
    const size_t most = wanted ? wanted : DEFAULT_LENGTH;
    return most < positions ? most : positions;
}

/* How much fits: as many sequences as are asked for, or as the memory holds. */
static iso_status plan_batch(iso_batch *b, model_group_size *size, const iso_model *model,
                             const iso_batch_options *o, iso_error *error) {
    const size_t positions = model->config.max_positions;
    const int both = model->encoder.layers != 0;
    *size = (model_group_size){.count = o->max_sequences,
                               .beams = o->rows ? o->rows : 1,
                               .attention = o->attention != 0,
                               .samples = 1};
    if (size->beams > MAX_ROWS)
        return model_fail(error, ISOBIT_E_LIMIT, "%zu rows of a sequence; at most %d are possible",
                          size->beams, MAX_ROWS);
    if (o->attention && !both)
        return model_fail(error, ISOBIT_E_UNSUPPORTED,
                          "the model has no encoder, hence no attention over one");
    b->S = size->S = both ? at_most(o->max_source, positions) : 0;
    if (o->max_length == 1)
        return model_fail(error, ISOBIT_E_OPTION,
                          "max_length is 1, and counts the start token, or the prompt: nothing can "
                          "be generated");
    b->T = size->T = at_most(o->max_length ? o->max_length - 1 : 0, positions);
    b->tokens = o->step_tokens ? o->step_tokens : both ? DEFAULT_TOKENS : MODEL_PROMPT_ROWS;
    b->attention = o->attention != 0;
    const size_t bytes = model_cache_bytes(model, size->beams, size->T, size->S);
    const size_t limit = o->max_cache_bytes ? o->max_cache_bytes : CACHE_BYTES;
    if (!bytes)
        return model_fail(error, ISOBIT_E_OVERFLOW,
                          "caches of %zu rows, %zu target and %zu source positions", size->beams,
                          size->T, size->S);
    if (!size->count) {
        size->count = DEFAULT_SEQUENCES < limit / bytes ? DEFAULT_SEQUENCES : limit / bytes;
        size->count = size->count || o->max_cache_bytes ? size->count : 1;
    }
    if (!size->count || (o->max_cache_bytes && size->count > limit / bytes))
        return model_fail(error, ISOBIT_E_LIMIT,
                          "a sequence takes %zu bytes of caches, and max_cache_bytes is %zu, for "
                          "%zu sequences",
                          bytes, limit, o->max_sequences ? o->max_sequences : 1);
    return ISOBIT_OK;
}

iso_status iso_batch_create(iso_batch **batch, const iso_model *model,
                            const iso_batch_options *options, const iso_context *context,
                            iso_error *error) {
    static const iso_batch_options none = {.size = sizeof none};
    iso_batch_options own;
    const iso_batch_options *o = options ? options : &none;
    if (!batch || !model)
        return model_fail(error, ISOBIT_E_NULL, "batch and model must not be NULL");
    if (!(o = MODEL_OPTIONS(o, own, attention)))
        return model_fail(error, ISOBIT_E_SIZE, "the options have an unknown size");
    iso_status status = model_needs(&model->decoder, "decoder", error);
    if (!status)
        status = model_check_context(context, error);
    if (status)
        return status;
    model_arena arena = {0};
    model_group_size size;
    iso_batch *b = model_alloc(&arena, 1, sizeof *b);
    if (!b)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    memset(b, 0, sizeof *b);
    b->model = *model;
    b->model.profile = NULL;
    b->waiting.end = &b->waiting.first;
    b->finished.end = &b->finished.first;
    status = plan_batch(b, &size, model, o, error);
    if (!status) {
        iso_context kept = {.size = sizeof kept};
        if (context) {
            kept.isa = context->isa;
            kept.executor = context->executor;
        }
        if (kept.executor) {
            b->executor = *kept.executor;
            kept.executor = &b->executor;
        }
        status = model_group_make(&b->group, NULL, &b->model, &size, &kept, error);
        b->group.run.error = &b->error;
        if (!status) {
            b->running = model_alloc(&arena, size.count, sizeof *b->running);
            b->joining = model_alloc(&arena, size.count, sizeof *b->joining);
            if (!b->running || !b->joining)
                status = model_fail(error, ISOBIT_E_NOMEM, "out of memory");
        }
        if (status)
            model_group_end(&b->group, NULL);
    }
    if (status) {
        model_arena_free(&arena);
        return status;
    }
    b->arena = arena;
    *batch = b;
    return ISOBIT_OK;
}

void iso_batch_free(iso_batch *b) {
    if (!b)
        return;
    for (size_t a = 0; a < b->group.active_count; a++)
        drop(b->running[a]);
    clear(&b->waiting);
    clear(&b->finished);
    model_group_end(&b->group, NULL);
    model_arena arena = b->arena; /* which holds the batch itself */
    model_arena_free(&arena);
}

/* ---------------------------------------------------------------------------------------- add */

/* Whether the batch was made for such a sequence. */
static iso_status check_fit(const iso_batch *b, const model_plan *p, size_t S, iso_error *error) {
    const int both = b->S != 0;
    const size_t most = model_plan_most(p, S), T = most + (both ? 0 : S - 1);
    if (p->search.beams != b->group.beams)
        return model_fail(error, ISOBIT_E_OPTION,
                          "%zu %s; the batch was made for %zu rows of each sequence",
                          p->search.beams, p->search.sample ? "samples" : "beams", b->group.beams);
    if (p->attention && !b->attention)
        return model_fail(error, ISOBIT_E_OPTION,
                          "attention is asked for; the batch was made without");
    if (both && S > b->S)
        return model_fail(error, ISOBIT_E_LIMIT,
                          "a source of %zu tokens; the batch was made for up to %zu (max_source)",
                          S, b->S);
    if (T > b->T)
        return model_fail(error, ISOBIT_E_LIMIT,
                          "up to %zu tokens with the %s; the batch was made for up to %zu "
                          "(max_length)",
                          T + 1, both ? "start token" : "prompt", b->T + 1);
    return ISOBIT_OK;
}

/* Copies, in the member's own memory, of what the caller may change. */
static iso_status make_member(member **made, const model_plan *plan, const uint32_t *source,
                              size_t S, iso_error *error) {
    model_arena arena = {0};
    member *m = model_alloc(&arena, 1, sizeof *m);
    uint32_t *ids = model_alloc(&arena, S, sizeof *ids);
    uint32_t *stop = model_alloc(&arena, plan->stop.count, sizeof *stop);
    if (m && ids && stop) {
        *m = (member){.plan = *plan};
        memcpy(ids, source, S * sizeof *ids);
        if (plan->stop.count)
            memcpy(stop, plan->stop.ids, plan->stop.count * sizeof *stop);
        m->plan.stop.ids = stop;
        m->sequence = model_sequence_make(&m->plan, ids, S, &arena);
    }
    if (!m || !ids || !stop || !m->sequence) {
        model_arena_free(&arena);
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    }
    m->arena = arena;
    *made = m;
    return ISOBIT_OK;
}

iso_status iso_batch_add(iso_batch *b, size_t *number, const uint32_t *source, size_t length,
                         const iso_generate_options *options, iso_error *error) {
    if (!b || !source)
        return model_fail(error, ISOBIT_E_NULL, "batch and source must not be NULL");
    const iso_model *model = b->group.model;
    model_plan plan;
    model_arena arena = {0};
    model_item *item;
    member *m = NULL;
    iso_status status = model_plan_make(&plan, model, options, error);
    if (!status)
        status = model_items(&item, &arena, model, source, &length, NULL, NULL, 1, error);
    if (!status)
        status = model_plan_prompts(&plan, item, 1, error);
    model_arena_free(&arena);
    if (!status)
        status = check_fit(b, &plan, length, error);
    if (!status)
        status = make_member(&m, &plan, source, length, error);
    if (status)
        return status;
    m->sequence->index = b->next_number++;
    if (number)
        *number = m->sequence->index;
    put(&b->waiting, m);
    return ISOBIT_OK;
}

/* ---------------------------------------------------------------------------------------- step */

/* Those who wait, as many as there is room for, with so many tokens at a time. A prompt that is
 * longer is read in several steps, and nobody overtakes it. */
static iso_status join(iso_batch *b) {
    model_group *g = &b->group;
    const size_t room = g->count - g->active_count, old = g->active_count;
    size_t count = 0, tokens = b->tokens, joined = 0;
    for (member *m = b->waiting.first; m && count < room && tokens; m = m->next) {
        const size_t left = m->sequence->S - m->sequence->read;
        if (b->S && count && left > tokens)
            break;
        tokens -= left < tokens ? left : tokens;
        b->joining[count++] = m->sequence;
    }
    const iso_status status =
        count ? model_group_join(g, b->joining, count, b->tokens, &joined) : ISOBIT_OK;
    for (size_t i = 0; i < joined && !status; i++)
        b->running[old + i] = take(&b->waiting, &b->waiting.first);
    return status;
}

/* The member at a place goes, to the finished ones or for good. */
static void leave(iso_batch *b, size_t a) {
    member *m = b->running[a];
    model_group_leave(&b->group, a);
    b->running[a] = b->running[b->group.active_count];
    if (m->sequence->cancelled_by)
        drop(m);
    else
        put(&b->finished, m);
}

static size_t left(const iso_batch *b) {
    size_t count = b->group.active_count;
    for (const member *m = b->waiting.first; m; m = m->next)
        count++;
    return count;
}

iso_status iso_batch_step(iso_batch *b, size_t *unfinished, iso_error *error) {
    if (!b)
        return model_fail(error, ISOBIT_E_NULL, "batch must not be NULL");
    iso_status status = b->broken;
    if (!status) {
        status = join(b);
        if (!status && b->group.active_count)
            status = b->broken = model_group_step(&b->group);
        /* Each keeps the order in which it joined as long as nobody before it leaves. */
        for (size_t a = b->group.active_count; a-- && !status;)
            if (b->running[a]->sequence->finished || b->running[a]->sequence->cancelled_by)
                leave(b, a);
    }
    if (status)
        return model_fail(error, status, "%s", b->error.message);
    if (unfinished)
        *unfinished = left(b);
    return ISOBIT_OK;
}

/* ----------------------------------------------------------------------------- what comes of it */

iso_status iso_batch_take(iso_batch *b, iso_generation **result, size_t *number, iso_error *error) {
    if (!b || !result)
        return model_fail(error, ISOBIT_E_NULL, "batch and result must not be NULL");
    *result = NULL;
    member *m = b->finished.first;
    if (!m)
        return ISOBIT_OK;
    const size_t hypotheses = m->plan.hypotheses;
    model_arena results = {0};
    model_generation *made = model_alloc(&results, 1, sizeof *made);
    iso_hypothesis *best = model_alloc(&results, hypotheses, sizeof *best);
    iso_status status = made && best ? ISOBIT_OK : ISOBIT_E_NOMEM;
    for (size_t i = 0; i < hypotheses && !status; i++)
        status = model_sequence_result(&best[i], m->sequence, i, &results);
    if (status) {
        model_arena_free(&results);
        return model_fail(error, status, "out of memory for the result");
    }
    *made = (model_generation){{hypotheses, hypotheses, best}, results};
    *result = &made->public;
    if (number)
        *number = m->sequence->index;
    drop(take(&b->finished, &b->finished.first));
    return ISOBIT_OK;
}

static int cancel_in(queue *q, size_t number) {
    for (member **at = &q->first; *at; at = &(*at)->next)
        if ((*at)->sequence->index == number) {
            drop(take(q, at));
            return 1;
        }
    return 0;
}

iso_status iso_batch_cancel(iso_batch *b, size_t number, iso_error *error) {
    if (!b)
        return model_fail(error, ISOBIT_E_NULL, "batch must not be NULL");
    for (size_t a = 0; a < b->group.active_count; a++)
        if (b->running[a]->sequence->index == number) {
            b->running[a]->sequence->cancelled_by = "iso_batch_cancel";
            leave(b, a);
            return ISOBIT_OK;
        }
    if (b->group.part && b->waiting.first->sequence->index == number)
        b->group.part = 0;
    if (cancel_in(&b->waiting, number) || cancel_in(&b->finished, number))
        return ISOBIT_OK;
    return model_fail(error, ISOBIT_E_RANGE, "the batch has no sequence %zu", number);
}
