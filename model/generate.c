/* SPDX-License-Identifier: MIT
 *
 * iso_generate: the sources of a call, the longest first, run in groups.
 */
#include "search.h"

#define GROUP_ROWS 256                /* sentences x beams */
#define CACHE_BYTES ((size_t)1 << 30) /* reserved; what is not reached is never touched */
#define LOGITS_FLOATS ((size_t)1 << 24)

/* Capacities of the caches for a source, the longest, of S tokens. */
static void cache_sizes(const model_plan *p, size_t source, size_t *T, size_t *S) {
    const int prompt = !p->model->encoder.layers;
    const size_t positions = p->model->config.max_positions;
    *T = p->max_new + (prompt ? source - 1 : 0);
    *T = prompt && *T > positions ? positions : *T;
    *S = prompt ? 0 : source;
}

static iso_status run_steps(model_group *g) {
    iso_status status = ISOBIT_OK;
    while (g->active_count && !status) {
        status = model_group_step(g);
        /* From the last to the first, so that who moves into a gap has been looked at. */
        for (size_t a = g->active_count; a-- && !status;) {
            const model_sequence *s = g->active[a];
            if (s->cancelled_by)
                return model_fail(g->run.error, ISOBIT_E_CANCELLED,
                                  "%s has ended the call at token %zu of source %zu",
                                  s->cancelled_by, s->cancelled_at, s->index);
            if (s->finished)
                model_group_leave(g, a);
        }
    }
    return status;
}

/* `count` sources, the longest first; their memory is left in `memory` for the next ones. */
static iso_status run_group(const model_plan *p, const model_item *items, size_t count,
                            const uint32_t *sources, iso_hypothesis *best, model_arena *results,
                            model_arena memory[2], const iso_context *context, iso_error *error) {
    model_group g;
    model_group_size size = {.count = count,
                             .beams = p->search.beams,
                             .attention = p->attention,
                             .samples = p->search.sample};
    cache_sizes(p, items[0].S, &size.T, &size.S);
    iso_status status = model_group_make(&g, memory, p->model, &size, context, error);
    model_sequence **all = NULL;
    g.together = 1;
    if (!status && !(all = model_alloc(&g.run.arena, count, sizeof *all)))
        status = model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    size_t joined;
    for (size_t i = 0; i < count && !status; i++) {
        all[i] = model_sequence_make(p, sources + items[i].first_source, items[i].S, &g.run.arena);
        if (!all[i])
            status = model_fail(error, ISOBIT_E_NOMEM, "out of memory");
        else
            all[i]->index = all[i]->number = items[i].index;
    }
    if (!status)
        status = model_group_join(&g, all, count, SIZE_MAX, &joined);
    if (!status)
        status = run_steps(&g);
    for (size_t i = 0; i < count && !status; i++)
        for (size_t h = 0; h < p->hypotheses && !status; h++)
            if ((status = model_sequence_result(&best[items[i].index * p->hypotheses + h], all[i],
                                                h, results)))
                model_fail(error, status, "out of memory for the result");
    model_group_end(&g, memory);
    return status;
}

/* How many sources, from the longest on, go into the next group. */
static size_t group_size(const model_plan *p, const model_item *items, size_t count) {
    const size_t beams = p->search.beams, V = p->model->config.target_vocabulary;
    size_t T, S;
    cache_sizes(p, items[0].S, &T, &S);
    size_t bytes = model_cache_bytes(p->model, beams, T, S);
    size_t attention = p->attention ? model_attention_floats(p, items[0].S) : 0;
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

iso_status iso_generate(iso_generation **result, const iso_model *model, const uint32_t *sources,
                        const size_t *source_lengths, size_t count,
                        const iso_generate_options *options, const iso_context *context,
                        iso_error *error) {
    if (!result || !model)
        return model_fail(error, ISOBIT_E_NULL, "result and model must not be NULL");
    model_plan p;
    model_arena arena = {0}, results = {0}, memory[2] = {{0}, {0}}; /* the last: of groups */
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
    model_generation *made = NULL;
    iso_hypothesis *best = NULL;
    if (!status) {
        made = model_alloc(&results, 1, sizeof *made);
        best = model_alloc3(&results, count, p.hypotheses, 1, sizeof *best);
        if (!made || !best)
            status = model_fail(error, ISOBIT_E_NOMEM, "out of memory for the result");
    }
    for (size_t i = 0, n; i < count && !status; i += n) {
        n = group_size(&p, items + i, count - i);
        status = run_group(&p, items + i, n, sources, best, &results, memory, context, error);
    }
    model_arena_free(&memory[0]);
    model_arena_free(&memory[1]);
    model_arena_free(&arena);
    if (status) {
        model_arena_free(&results);
        return status;
    }
    *made = (model_generation){{count * p.hypotheses, p.hypotheses, best}, results};
    *result = &made->public;
    return ISOBIT_OK;
}

void iso_generation_free(iso_generation *result) {
    if (!result)
        return;
    model_arena arena =
        ((model_generation *)(void *)result)->arena; /* which holds the result itself */
    model_arena_free(&arena);
}
