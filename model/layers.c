/* SPDX-License-Identifier: MIT
 *
 * The pieces of a Transformer layer, in the paper's words, each a few calls of <isobit/ops.h> on
 * rows x d. Sequences of a batch lie one after the other without padding: products and norms see
 * rows only, and attention is called once for each run of sequences of equal lengths. So nothing a
 * sequence travels with can reach its result, and no arithmetic is spent on padding.
 */
#include "layers.h"
#include "int8.h"

#include "blocks.h"

#include <math.h>
#include <string.h>

static iso_status normalize(model_run *run, float *y, size_t ldy, const float *x, size_t ldx,
                            size_t rows, const model_norm *norm) {
    const model_config *c = &run->model->config;
    const size_t d = c->d;
    iso_norm_options options = {.size = sizeof options,
                                .gamma = norm->gamma,
                                .beta = norm->beta,
                                .eps = (float)c->norm_eps};
    iso_status status = c->rms_norm
                            ? iso_rmsnorm_f32(y, ldy, x, ldx, rows, d, &options, &run->context)
                            : iso_layernorm_f32(y, ldy, x, ldx, rows, d, &options, &run->context);
    model_lap(run, ISOBIT_PROFILE_NORM);
    return model_run_fail(run, status, "normalisation");
}

iso_status model_normalize(model_run *run, float *y, size_t ldy, const float *x, size_t rows,
                           const model_norm *norm) {
    return normalize(run, y, ldy, x, run->model->config.d, rows, norm);
}

/* Rows `ids` of a packed matrix, in run->h. */
static const float *gather(const model_run *run, const iso_packed *w, const uint32_t *ids,
                           size_t rows) {
    for (size_t i = 0; i < rows; i++) {
        const float *row = w->data + (size_t)(ids[i] / 16) * w->k * 16 + ids[i] % 16;
        for (size_t j = 0; j < w->k; j++)
            run->h[i * w->k + j] = row[j * 16];
    }
    return run->h;
}

static const uint16_t *gather16(const model_run *run, const iso_packed_w16 *w, const uint32_t *ids,
                                size_t rows) {
    uint16_t *to = (uint16_t *)(void *)run->h;
    for (size_t i = 0; i < rows; i++) {
        const size_t column = ids[i] % 32;
        const size_t place = w->type == ISOBIT_BF16 ? column % 16 * 2 + column / 16 : column;
        const uint16_t *row = w->data + (size_t)(ids[i] / 32) * w->k * 32 + place;
        for (size_t j = 0; j < w->k; j++)
            to[i * w->k + j] = row[j * 32];
    }
    return to;
}

/* Of groups the floats that they stand for. */
static const float *gather_q(const model_run *run, const iso_packed_q *w, const uint32_t *ids,
                             size_t rows) {
    for (size_t i = 0; i < rows; i++)
        model_packed_q_row(run->h + i * w->k, w, ids[i]);
    return run->h;
}

static const float *gather_s8(const model_run *run, const iso_packed_s8 *w, const uint32_t *ids,
                              size_t rows) {
    for (size_t i = 0; i < rows; i++)
        model_int8_row(run->h + i * w->k, w, ids[i]);
    return run->h;
}

/* x = E[id] sqrt(d) + P[position], rows x d. A tied E is gathered from the packed logits. */
static iso_status embed(model_run *run, const model_stack *stack, float *x, const uint32_t *ids,
                        const uint32_t *positions, size_t rows) {
    const model_config *c = &run->model->config;
    const model_table *t = &stack->embedding;
    const float *table = t->rows;
    const uint16_t *table16 = t->rows16;
    const iso_w16 type = table16 ? t->type : t->packed16.type;
    const size_t d = c->d, position_count = c->max_positions + c->position_offset;
    size_t V = stack->V;
    float scale = c->scale_embedding ? (float)sqrt((double)d) : 1.0f;
    if (!table && !table16 && !t->blocks) {
        if (t->packed16.data)
            table16 = gather16(run, &t->packed16, ids, rows);
        else if (t->packed_q.data)
            table = gather_q(run, &t->packed_q, ids, rows);
        else if (t->packed_s8.data)
            table = gather_s8(run, &t->packed_s8, ids, rows);
        else
            table = gather(run, &t->packed, ids, rows);
        ids = run->iota;
        V = rows;
    }
    iso_status status =
        t->blocks ? iso_embed_q(x, d, ids, rows, t->blocks, &t->format, V, d, scale,
                                stack->positions, positions, position_count, &run->context)
        : table16 ? iso_embed_w16(x, d, ids, rows, table16, type, V, d, scale, stack->positions,
                                  positions, position_count, &run->context)
                  : iso_embed_f32(x, d, ids, rows, table, V, d, scale, stack->positions, positions,
                                  position_count, &run->context);
    model_lap(run, ISOBIT_PROFILE_EMBEDDING);
    if (!status && stack->embedding_norm.gamma)
        return model_normalize(run, x, d, x, rows, &stack->embedding_norm);
    return model_run_fail(run, status, "embedding");
}

/* What model_project does, for a matrix in a mapped file. How much workspace a product takes
 * depends on its rows, and not evenly, so it is left to the product. */
static iso_status project_plain(model_run *run, float *y, size_t ldy, const float *x, size_t ldx,
                                const model_linear *linear, size_t rows,
                                const iso_linear_options *o) {
    const size_t n = linear->w.n, k = linear->w.k;
    const iso_gemm_options options = {.size = sizeof options,
                                      .trans_b = !linear->turned,
                                      .alpha = 1,
                                      .bias = o->bias,
                                      .act = o->act,
                                      .residual = o->residual,
                                      .ldr = o->ldr};
    iso_context context = run->context;
    context.workspace = NULL;
    context.workspace_bytes = 0;
    return iso_gemm_f32(y, ldy, x, ldx, linear->plain, linear->turned ? n : k, rows, n, k, &options,
                        &context);
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
    iso_status status;
    if (linear->plain)
        status = project_plain(run, y, ldy, x, ldx, linear, rows, &options);
    else if (model_meets_int8(run->model, linear))
        status = iso_linear_q_s8(y, ldy, x, ldx, &linear->q, rows, &options, &run->context);
    else if (linear->q.data)
        status = iso_linear_q(y, ldy, x, ldx, &linear->q, rows, &options, &run->context);
    else if (linear->s8.data)
        status = iso_linear_s8(y, ldy, x, ldx, &linear->s8, rows, &options, &run->context);
    else if (linear->w16.data)
        status = iso_linear_w16(y, ldy, x, ldx, &linear->w16, rows, &options, &run->context);
    else
        status = iso_linear_f32(y, ldy, x, ldx, &linear->w, rows, &options, &run->context);
    model_count(run, rows, linear->w.n, linear->w.k);
    model_lap(run, linear == &run->model->logits ? ISOBIT_PROFILE_LOGITS : ISOBIT_PROFILE_LINEAR);
    return model_run_fail(run, status, "linear layer");
}

/* The input of a sub-layer: x itself, or with pre-norm its norm, in run->h. */
static iso_status sublayer_begin(model_run *run, const float **in, size_t *ld,
                                 const model_norm *norm, size_t rows) {
    *in = run->x;
    *ld = run->model->config.d;
    if (!run->model->config.pre_norm)
        return ISOBIT_OK;
    *in = run->h;
    *ld = run->model->columns;
    return model_normalize(run, run->h, *ld, run->x, rows, norm);
}

/* x = norm(out(y)) + x, in `room`, rows of ld. */
static iso_status add_norm(model_run *run, const float *y, size_t ldy, const model_linear *out,
                           const model_norm *norm, float *room, size_t ld, size_t rows) {
    const size_t d = run->model->config.d;
    const iso_eltwise_options add = {.size = sizeof add, .residual = run->x, .ldr = d};
    iso_status status = model_project(run, room, ld, y, ldy, out, rows, ISOBIT_ACT_NONE, NULL);
    if (!status)
        status = normalize(run, room, ld, room, ld, rows, norm);
    if (!status) {
        status = iso_eltwise_f32(run->x, d, room, ld, rows, d, &add, &run->context);
        model_lap(run, ISOBIT_PROFILE_NORM);
        status = model_run_fail(run, status, "residual");
    }
    return status;
}

/* x = out(y) + x, then with post-norm its norm. `after`, unless it is NULL: see add_norm. */
static iso_status sublayer_end(model_run *run, const float *y, size_t ldy, const model_linear *out,
                               const model_norm *norm, const model_norm *after, float *room,
                               size_t ld, size_t rows) {
    const size_t d = run->model->config.d;
    if (after)
        return add_norm(run, y, ldy, out, after, room, ld, rows);
    iso_status status = model_project(run, run->x, d, y, ldy, out, rows, ISOBIT_ACT_NONE, run->x);
    if (!status && !run->model->config.pre_norm)
        status = model_normalize(run, run->x, d, run->x, rows, norm);
    return status;
}

/* FFN(x) = act(x W1 + b1) W2 + b2, or gated (act(x W1 + b1) (x V + c)) W2 + b2 */
static iso_status feed_forward(model_run *run, const model_layer *layer, size_t rows) {
    const model_config *c = &run->model->config;
    const size_t f = layer->fc2.w.k, ldh = layer->fc1.w.n;
    float *const hidden = run->hidden;
    const float *in;
    size_t ld;
    iso_status status = sublayer_begin(run, &in, &ld, &layer->ffn_norm, rows);
    if (!status) /* [rows][d] -> [rows][f], or gated [rows][2 f] */
        status = model_project(run, hidden, ldh, in, ld, &layer->fc1, rows,
                               c->gated ? ISOBIT_ACT_NONE : c->activation, NULL);
    if (!status && c->gated) { /* [rows][2 f] -> [rows][f] */
        status = iso_gate_f32(hidden, ldh, hidden, ldh, hidden + f, ldh, rows, f, c->activation,
                              &run->context);
        model_lap(run, ISOBIT_PROFILE_LINEAR);
        status = model_run_fail(run, status, "gate");
    }
    if (!status) /* [rows][f] -> [rows][d] */
        status = sublayer_end(run, hidden, ldh, &layer->fc2, &layer->ffn_norm,
                              layer->ffn_after.gamma ? &layer->ffn_after : NULL, run->h,
                              run->model->columns, rows);
    return status;
}

/* Heads of queries, then heads of keys, each normalized on its own. */
static iso_status normalize_heads(model_run *run, const model_layer *layer, size_t rows) {
    const model_stack *stack = &run->model->decoder;
    const size_t dh = stack->dh, ld = stack->qkv, all = stack->H + stack->Hk;
    iso_norm_options options = {.size = sizeof options, .eps = (float)run->model->config.norm_eps};
    iso_status status = ISOBIT_OK;
    for (size_t h = 0; h < all && !status; h++) {
        float *x = run->wide + h * dh;
        options.gamma = h < stack->H ? layer->q_norm : layer->k_norm;
        status = iso_rmsnorm_f32(x, ld, x, ld, rows, dh, &options, &run->context);
    }
    model_lap(run, ISOBIT_PROFILE_NORM);
    return model_run_fail(run, status, "normalisation of heads");
}

/* Queries and keys turn by their positions. */
static iso_status rotate(model_run *run, const model_stack *stack, const float *table,
                         const uint32_t *positions, size_t rows) {
    iso_status status =
        iso_rope_f32(run->wide, stack->qkv, run->wide, stack->qkv, rows, stack->H + stack->Hk,
                     stack->dh, stack->rotary, ISOBIT_ROPE_HALF, table, stack->rotary, positions,
                     run->model->config.max_positions, &run->context);
    model_lap(run, ISOBIT_PROFILE_EMBEDDING);
    return model_run_fail(run, status, "rotary embedding");
}

iso_status model_positionwise_rows(model_run *run, const model_positionwise *p, size_t rows) {
    const size_t d = run->model->config.d;
    const float *in;
    size_t ld;
    iso_status status = ISOBIT_OK;
    if (p->embed) /* [rows] -> [rows][d] */
        status = embed(run, p->embed, run->x, p->ids, p->positions, rows);
    if (!status && p->out)
        status = sublayer_end(run, run->h, run->model->columns, p->out, p->out_norm, p->out_after,
                              run->hidden, d, rows);
    if (!status && p->feed_forward)
        status = feed_forward(run, p->feed_forward, rows);
    if (!status && p->next && !(status = sublayer_begin(run, &in, &ld, p->next_norm, rows)))
        status = model_project(run, run->wide, p->next->w.n, in, ld, p->next, rows, ISOBIT_ACT_NONE,
                               NULL);
    if (!status && p->next && p->heads)
        status = normalize_heads(run, p->heads, rows);
    if (!status && p->next && p->rotate)
        status = rotate(run, p->rotate, p->rope, p->positions, rows);
    if (!status && p->last && p->last->gamma)
        status = model_normalize(run, run->x, d, run->x, rows, p->last);
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

/* One call of attention: `n` sequences from span on. */
typedef struct piece {
    iso_attention_shape shape;
    iso_attention_options options;
} piece;

static piece make_piece(const model_run *run, const model_stack *stack, size_t Hk,
                        const model_span *span, size_t n, size_t ldq, size_t ldk, int causal,
                        size_t window, const model_bias *bias) {
    const size_t ldo = run->model->columns, dh = stack->dh;
    piece p = {.shape = {.B = n,
                         .H = stack->H,
                         .Sq = span->T,
                         .Sk = span->S,
                         .dh = dh,
                         .q = {span->T * ldq, dh, ldq},
                         .k = {span->S * ldk, dh, ldk},
                         .v = {span->S * ldk, dh, ldk},
                         .o = {span->T * ldo, dh, ldo}},
               .options = {.size = sizeof(iso_attention_options),
                           .scale = stack->scale,
                           .softcap = stack->softcap,
                           .causal = causal,
                           .window = window}};
    if (bias && bias->values) {
        p.options.bias = bias->values + bias->zero;
        p.options.bias_strides = (iso_strides){0, bias->ld, ISOBIT_BY_DISTANCE};
    }
    if (Hk != stack->H) { /* one sequence: a group of heads shares keys, and is a batch item */
        const size_t group = stack->H / Hk;
        p.shape.B = Hk;
        p.shape.H = group;
        p.shape.q.batch = p.shape.o.batch = group * dh;
        p.shape.k.batch = p.shape.v.batch = dh;
        p.shape.k.head = p.shape.v.head = 0;
        p.options.bias_strides.batch = group * p.options.bias_strides.head;
    }
    if (run->weights) { /* there is one sequence */
        const size_t head = span->T * span->S;
        p.options.weights = run->weights;
        p.options.weights_strides = (iso_strides){p.shape.H * head, head, span->S};
    }
    return p;
}

iso_status model_attend_workspace(model_run *run, const model_stack *stack, size_t Hk, size_t ldq,
                                  size_t ldk, const model_span *spans, size_t count, int causal,
                                  const model_bias *bias) {
    iso_status status = ISOBIT_OK;
    for (size_t i = 0, n; i < count && !status; i += n) {
        n = Hk == stack->H ? run_of_spans(spans + i, count - i) : 1;
        const piece p = make_piece(run, stack, Hk, &spans[i], n, ldq, ldk, causal, 0, bias);
        size_t bytes;
        status = iso_attention_f32_workspace_bytes(&bytes, &p.shape, &p.options, &run->context);
        if (!status)
            status = model_run_workspace(run, bytes);
    }
    return model_run_fail(run, status, "workspace");
}

/* To run->h; q rows of ldq; k and v rows of ldk, head after head. */
iso_status model_attend_spans(model_run *run, const model_stack *stack, size_t Hk, const float *q,
                              size_t ldq, const float *k, const float *v, size_t ldk,
                              const model_span *spans, size_t count, int causal, size_t window,
                              const model_bias *bias) {
    const size_t ldo = run->model->columns;
    iso_status status = ISOBIT_OK;
    for (size_t i = 0, n; i < count && !status; i += n) {
        n = Hk == stack->H ? run_of_spans(spans + i, count - i) : 1;
        const piece p = make_piece(run, stack, Hk, &spans[i], n, ldq, ldk, causal, window, bias);
        const size_t at_q = spans[i].first_q, at_k = spans[i].first_k;
        status = iso_attention_f32(run->h + at_q * ldo, q + at_q * ldq, k + at_k * ldk,
                                   v + at_k * ldk, &p.shape, &p.options, &run->context);
        model_count(run, n * spans[i].T, spans[i].S, 2 * stack->H * stack->dh);
    }
    model_lap(run, ISOBIT_PROFILE_ATTENTION);
    return model_run_fail(run, status, "attention");
}
