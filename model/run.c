/* SPDX-License-Identifier: MIT
 *
 * A call: its memory and the workspaces of its ops.
 */
#include "run.h"

#define TASK_ROWS 32 /* for each thread, else there are too few */
_Static_assert(TASK_ROWS <= MODEL_BLOCK_ROWS,
               "hidden activations for rows that are too few to deal out");

int model_run_one_by_one(const model_run *run, size_t rows) {
    return run->threads > 1 &&
           (rows / TASK_ROWS < run->threads || (run->profile && run->profile->by_kind));
}

iso_status model_run_fail(model_run *run, iso_status status, const char *where) {
    return status ? model_fail(run->error, status, "%s: %s", where, iso_strerror(status)) : status;
}

iso_status model_check_context(const iso_context *context, iso_error *error) {
    if (context && !MODEL_SIZE_IS_KNOWN(context, workspace_bytes))
        return model_fail(error, ISOBIT_E_SIZE, "the context has an unknown size");
    return ISOBIT_OK;
}

/* ----------------------------------------------------------------------------------- memory */

iso_status model_run_workspace(model_run *run, size_t bytes) {
    const size_t old = run->context.workspace_bytes;
    if (bytes <= old)
        return ISOBIT_OK;
    /* The smaller ones stay until the end of the call: grow so that they are few. */
    bytes = bytes < old + old / 2 ? old + old / 2 : bytes;
    run->context.workspace = model_alloc(&run->arena, bytes, 1);
    run->context.workspace_bytes = run->context.workspace ? bytes : 0;
    return run->context.workspace
               ? ISOBIT_OK
               : model_fail(run->error, ISOBIT_E_NOMEM, "out of memory for a workspace");
}

static iso_status linear_workspace(model_run *run, const model_linear *linear, size_t rows) {
    size_t bytes;
    iso_status status;
    if (linear->w16.data)
        status = iso_linear_w16_workspace_bytes(&bytes, &linear->w16, rows, &run->context);
    else if (model_meets_int8(run->model, linear))
        status = iso_linear_q_s8_workspace_bytes(&bytes, &linear->q, rows, &run->context);
    else if (linear->q.data)
        status = iso_linear_q_workspace_bytes(&bytes, &linear->q, rows, &run->context);
    else if (linear->s8.data)
        status = iso_linear_s8_workspace_bytes(&bytes, &linear->s8, rows, &run->context);
    else if (linear->w.data)
        status = iso_linear_f32_workspace_bytes(&bytes, &linear->w, rows, &run->context);
    else /* absent, or in a mapped file */
        return ISOBIT_OK;
    return status ? status : model_run_workspace(run, bytes);
}

/* All layers: their matrices may be of several types. */
static iso_status stack_workspace(model_run *run, const model_stack *stack, size_t rows) {
    iso_status status = ISOBIT_OK;
    for (size_t l = 0; l < stack->layers && !status; l++) {
        const model_layer *layer = &stack->layer[l];
        const model_linear *all[] = {&layer->self_qkv, &layer->self_out,  &layer->cross_q,
                                     &layer->cross_kv, &layer->cross_out, &layer->fc1,
                                     &layer->fc2};
        for (size_t i = 0; i < sizeof all / sizeof *all && !status; i++)
            status = linear_workspace(run, all[i], rows);
    }
    return status;
}

iso_status model_run_linear_workspace(model_run *run, size_t rows) {
    const iso_model *model = run->model;
    const model_linear *others[] = {&model->logits, &model->head_dense, &model->pooler};
    iso_status status = stack_workspace(run, &model->encoder, rows);
    if (!status)
        status = stack_workspace(run, &model->decoder, rows);
    for (size_t i = 0; i < sizeof others / sizeof *others && !status; i++)
        status = linear_workspace(run, others[i], rows);
    return model_run_fail(run, status, "workspace");
}

/* For `rows` rows, of which up to `together` go through the feed-forward layer at a time. */
static int make_buffers(model_run *run, size_t rows, size_t together) {
    const iso_model *model = run->model;
    const size_t d = model->config.d, columns = model->columns;
    const size_t hidden_columns = model->hidden;
    const size_t pieces = 5 * 64;
    size_t stream, hidden, bytes;
    /* One block: malloc gives smaller ones back to the system at the end of each call. */
    if (__builtin_mul_overflow(rows, (d + 4 * columns) * sizeof(float) + sizeof *run->iota,
                               &stream) ||
        __builtin_mul_overflow(together, hidden_columns * sizeof(float), &hidden) ||
        __builtin_add_overflow(stream, hidden + pieces, &bytes) || bytes < hidden ||
        !model_arena_reserve(&run->arena, bytes))
        return 0;
    run->x = model_alloc3(&run->arena, rows, d, 1, sizeof *run->x);
    run->h = model_alloc3(&run->arena, rows, columns, 1, sizeof *run->h);
    run->wide = model_alloc3(&run->arena, rows, columns, 3, sizeof *run->wide);
    run->iota = model_alloc(&run->arena, rows, sizeof *run->iota);
    run->hidden = model_alloc3(&run->arena, together, hidden_columns, 1, sizeof *run->hidden);
    if (!run->x || !run->h || !run->wide || !run->hidden || !run->iota)
        return 0;
    for (size_t i = 0; i < rows; i++)
        run->iota[i] = (uint32_t)i;
    return 1;
}

/* For each thread what it needs to take rows on its own, `block` at a time. */
static iso_status make_parts(model_run *run, size_t block) {
    const iso_model *model = run->model;
    iso_status status = ISOBIT_OK;
    run->parts = model_alloc(&run->arena, run->threads, sizeof *run->parts);
    if (!run->parts)
        return model_fail(run->error, ISOBIT_E_NOMEM, "out of memory");
    for (size_t i = 0; i < run->threads && !status; i++) {
        model_part *part = &run->parts[i];
        *part = (model_part){
            .run = {.model = model,
                    .context = {.size = sizeof part->run.context, .isa = run->context.isa},
                    .error = &part->error,
                    .arena = run->arena, /* lent */
                    .profile = run->profile ? &part->profile : NULL,
                    .hidden = run->hidden + i * block * model->hidden,
                    .iota = run->iota}};
        status = model_run_linear_workspace(&part->run, block);
        run->arena = part->run.arena;
        part->run.arena = (model_arena){0};
        if (status && run->error)
            *run->error = part->error;
    }
    return status;
}

iso_status model_run_begin(model_run *run, model_arena *memory, const iso_model *model,
                           const iso_context *context, size_t rows, iso_error *error) {
    *run = (model_run){.model = model,
                       .context.size = sizeof run->context,
                       .error = error,
                       .profile = model->profile,
                       .rows = rows,
                       .threads = 1};
    if (run->profile)
        run->lap = model_now();
    if (memory) {
        run->arena = *memory;
        *memory = (model_arena){0};
    }
    iso_status status = model_check_context(context, error);
    if (status)
        return model_run_end(run, status);
    if (context) {
        const iso_executor *executor = context->executor;
        run->context.isa = context->isa;
        run->context.executor = executor;
        if (executor && executor->parallel_for && executor->max_threads > 1)
            run->threads = executor->max_threads;
    }
    const int deal = run->threads > 1 && !model_run_one_by_one(run, rows);
    size_t block = 0, together = rows;
    if (deal) {
        block = (rows + run->threads - 1) / run->threads;
        block = block < MODEL_BLOCK_ROWS ? block : MODEL_BLOCK_ROWS;
        together = run->threads * block;
    } else if (run->threads == 1 && rows > MODEL_BLOCK_ROWS) {
        together = MODEL_BLOCK_ROWS;
    }
    if (!make_buffers(run, rows, together))
        status = model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    else if (deal)
        status = make_parts(run, block);
    return status ? model_run_end(run, status) : ISOBIT_OK;
}

iso_status model_run_end(model_run *run, iso_status status) {
    model_arena_free(&run->arena);
    model_lap(run, ISOBIT_PROFILE_OTHER);
    return status;
}
