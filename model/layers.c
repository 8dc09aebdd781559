/* SPDX-License-Identifier: MIT
 *
 * The pieces of a Transformer layer, in the paper's words, each a few calls of <isobit/ops.h> on
 * rows x d. Sequences of a batch lie one after the other without padding: products and norms see
 * rows only, and attention is called once for each run of sequences of equal lengths. So nothing a
 * sequence travels with can reach its result, and no arithmetic is spent on padding.
 */
#include "internal.h"

#include <math.h>
#include <string.h>

iso_status model_run_fail(model_run *run, iso_status status, const char *where) {
    return status ? model_fail(run->error, status, "%s: %s", where, iso_strerror(status)) : status;
}

iso_status model_check_context(const iso_context *context, iso_error *error) {
    if (context && context->size != sizeof *context)
        return model_fail(error, ISOBIT_E_SIZE, "the context has an unknown size");
    return ISOBIT_OK;
}

iso_status model_run_begin(model_run *run, model_arena *memory, const iso_model *model,
                           const iso_context *context, size_t rows, iso_error *error) {
    const size_t d = model->config.d;
    size_t width = 3 * d;
    *run = (model_run){.model = model, .context.size = sizeof run->context, .error = error};
    if (model->profile)
        run->lap = model_now();
    if (memory) {
        run->arena = *memory;
        *memory = (model_arena){0};
    }
    iso_status status = model_check_context(context, error);
    if (status)
        return model_run_end(run, status);
    if (context) {
        run->context.isa = context->isa;
        run->context.executor = context->executor;
    }
    width = model->encoder.f > width ? model->encoder.f : width;
    width = model->decoder.f > width ? model->decoder.f : width;
    run->rows = rows;
    run->x = model_alloc3(&run->arena, rows, d, 1, sizeof *run->x);
    run->h = model_alloc3(&run->arena, rows, d, 1, sizeof *run->h);
    run->wide = model_alloc3(&run->arena, rows, width, 1, sizeof *run->wide);
    run->iota = model_alloc(&run->arena, rows, sizeof *run->iota);
    if (!run->x || !run->h || !run->wide || !run->iota)
        return model_run_end(run, model_fail(error, ISOBIT_E_NOMEM, "out of memory"));
    for (size_t i = 0; i < rows; i++)
        run->iota[i] = (uint32_t)i;
    return ISOBIT_OK;
}

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

iso_status model_run_linear_workspace(model_run *run, size_t rows) {
    const model_layer *e = run->model->encoder.layer, *d = run->model->decoder.layer;
    const model_linear *all[] = {&e->self_qkv,  &e->self_out, &e->fc1,     &e->fc2,
                                 &d->self_qkv,  &d->self_out, &d->cross_q, &d->cross_kv,
                                 &d->cross_out, &d->fc1,      &d->fc2,     &run->model->logits};
    iso_status status = ISOBIT_OK;
    for (size_t i = 0; i < sizeof all / sizeof *all && !status; i++) {
        size_t bytes;
        status = iso_linear_f32_workspace_bytes(&bytes, &all[i]->w, rows, &run->context);
        if (!status)
            status = model_run_workspace(run, bytes);
    }
    return model_run_fail(run, status, "workspace");
}

iso_status model_run_end(model_run *run, iso_status status) {
    model_arena_free(&run->arena);
    model_lap(run, ISOBIT_PROFILE_OTHER);
    return status;
}

/* x = E[id] sqrt(d) + P[position], rows x d. A tied E is gathered from the packed logits. */
iso_status model_embed(model_run *run, const model_stack *stack, float *x, const uint32_t *ids,
                       const uint32_t *positions, size_t rows) {
    const model_config *c = &run->model->config;
    const float *table = stack->embedding.rows;
    const size_t d = c->d;
    size_t V = stack->V;
    float scale = c->scale_embedding ? (float)sqrt((double)d) : 1.0f;
    if (!table) {
        const float *panels = stack->embedding.packed.data;
        for (size_t i = 0; i < rows; i++) {
            const float *row = panels + (size_t)(ids[i] / 16) * d * 16 + ids[i] % 16;
            for (size_t j = 0; j < d; j++)
                run->h[i * d + j] = row[j * 16];
        }
        table = run->h;
        ids = run->iota;
        V = rows;
    }
    iso_status status =
        iso_embed_f32(x, d, ids, rows, table, V, d, scale, stack->positions, positions,
                      c->max_positions + c->position_offset, &run->context);
    model_lap(run, ISOBIT_PROFILE_EMBEDDING);
    if (!status && stack->embedding_norm.gamma)
        return model_normalize(run, x, x, rows, &stack->embedding_norm);
    return model_run_fail(run, status, "embedding");
}

/* y = act(x W^T + b) + residual */
iso_status model_project(model_run *run, float *y, size_t ldy, const float *x, size_t ldx,
                         const model_linear *linear, size_t rows, iso_activation act,
                         const float *residual) {
    iso_linear_options options = {.size = sizeof options,
                                  .bias = linear->bias,
                                  .act = act,
                                  .residual = residual,
                                  .ldr = residual ? linear->w.n : 0};
    iso_status status = iso_linear_f32(y, ldy, x, ldx, &linear->w, rows, &options, &run->context);
    model_count(run, rows, linear->w.n, linear->w.k);
    model_lap(run, linear == &run->model->logits ? ISOBIT_PROFILE_LOGITS : ISOBIT_PROFILE_LINEAR);
    return model_run_fail(run, status, "linear layer");
}

iso_status model_normalize(model_run *run, float *y, const float *x, size_t rows,
                           const model_norm *norm) {
    const model_config *c = &run->model->config;
    const size_t d = c->d;
    iso_norm_options options = {.size = sizeof options,
                                .gamma = norm->gamma,
                                .beta = norm->beta,
                                .eps = (float)c->norm_eps};
    iso_status status = c->rms_norm
                            ? iso_rmsnorm_f32(y, d, x, d, rows, d, &options, &run->context)
                            : iso_layernorm_f32(y, d, x, d, rows, d, &options, &run->context);
    model_lap(run, ISOBIT_PROFILE_NORM);
    return model_run_fail(run, status, "normalisation");
}

iso_status model_sublayer_begin(model_run *run, const float **in, const model_norm *norm,
                                size_t rows) {
    *in = run->x;
    if (!run->model->config.pre_norm)
        return ISOBIT_OK;
    *in = run->h;
    return model_normalize(run, run->h, run->x, rows, norm);
}

iso_status model_sublayer_end(model_run *run, const float *y, size_t ldy, const model_linear *out,
                              const model_norm *norm, size_t rows) {
    const size_t d = run->model->config.d;
    iso_status status = model_project(run, run->x, d, y, ldy, out, rows, ISOBIT_ACT_NONE, run->x);
    if (!status && !run->model->config.pre_norm)
        status = model_normalize(run, run->x, run->x, rows, norm);
    return status;
}

/* FFN(x) = act(x W1 + b1) W2 + b2 */
iso_status model_feed_forward(model_run *run, const model_layer *layer, size_t rows) {
    const model_config *c = &run->model->config;
    const size_t f = layer->fc1.w.n;
    const float *in;
    iso_status status = model_sublayer_begin(run, &in, &layer->ffn_norm, rows);
    if (!status) /* [rows][d] -> [rows][f] */
        status = model_project(run, run->wide, f, in, c->d, &layer->fc1, rows, c->activation, NULL);
    if (!status) /* [rows][f] -> [rows][d] */
        status = model_sublayer_end(run, run->wide, f, &layer->fc2, &layer->ffn_norm, rows);
    return status;
}

/* How many spans from the first one on can share a call: equal lengths, one after the other. */
static size_t run_of_spans(const model_span *spans, size_t count) {
    size_t n = 1;
    while (n < count && spans[n].T == spans[0].T && spans[n].S == spans[0].S &&
           spans[n].first_q == spans[0].first_q + n * spans[0].T &&
           spans[n].first_k == spans[0].first_k + n * spans[0].S)
        n++;
    return n;
}

static iso_attention_shape span_shape(const model_run *run, const model_span *span, size_t B,
                                      size_t H, size_t ldq, size_t ldk) {
    const size_t d = run->model->config.d, dh = d / H;
    return (iso_attention_shape){.B = B,
                                 .H = H,
                                 .Sq = span->T,
                                 .Sk = span->S,
                                 .dh = dh,
                                 .q = {span->T * ldq, dh, ldq},
                                 .k = {span->S * ldk, dh, ldk},
                                 .v = {span->S * ldk, dh, ldk},
                                 .o = {span->T * d, dh, d}};
}

static iso_attention_options span_options(const model_run *run, size_t H, int causal) {
    const size_t dh = run->model->config.d / H;
    return (iso_attention_options){.size = sizeof(iso_attention_options),
                                   .scale = (float)(1.0 / sqrt((double)dh)),
                                   .causal = causal};
}

iso_status model_attend_workspace(model_run *run, size_t H, size_t ldq, size_t ldk,
                                  const model_span *spans, size_t count, int causal) {
    iso_attention_options options = span_options(run, H, causal);
    iso_status status = ISOBIT_OK;
    for (size_t i = 0, n; i < count && !status; i += n) {
        n = run_of_spans(spans + i, count - i);
        iso_attention_shape shape = span_shape(run, &spans[i], n, H, ldq, ldk);
        size_t bytes;
        status = iso_attention_f32_workspace_bytes(&bytes, &shape, &options, &run->context);
        if (!status)
            status = model_run_workspace(run, bytes);
    }
    return model_run_fail(run, status, "workspace");
}

/* o [rows][d]; q rows of ldq; k and v rows of ldk, head after head. */
iso_status model_attend_spans(model_run *run, float *o, const float *q, size_t ldq, const float *k,
                              const float *v, size_t ldk, size_t H, const model_span *spans,
                              size_t count, int causal) {
    const size_t d = run->model->config.d;
    iso_attention_options options = span_options(run, H, causal);
    iso_status status = ISOBIT_OK;
    for (size_t i = 0, n; i < count && !status; i += n) {
        n = run_of_spans(spans + i, count - i);
        iso_attention_shape shape = span_shape(run, &spans[i], n, H, ldq, ldk);
        const size_t at_q = spans[i].first_q, at_k = spans[i].first_k;
        status = iso_attention_f32(o + at_q * d, q + at_q * ldq, k + at_k * ldk, v + at_k * ldk,
                                   &shape, &options, &run->context);
        model_count(run, n * spans[i].T, spans[i].S, 2 * d);
    }
    model_lap(run, ISOBIT_PROFILE_ATTENTION);
    return model_run_fail(run, status, "attention");
}
