/* SPDX-License-Identifier: MIT
 *
 * The parts of a forward pass, each a piece of the paper: rows x d.
 */
#ifndef ISOBIT_MODEL_LAYERS_H
#define ISOBIT_MODEL_LAYERS_H

#include "run.h"

/* Attention over sequences that lie one after the other: queries and keys of one of them. */
typedef struct model_span {
    size_t first_q, T, first_k, S;
} model_span;

/* The bias of self-attention by distance, as ISOBIT_BY_DISTANCE says it: key j of query i at
 * zero + j - i of its head. */
typedef struct model_bias {
    float *values;          /* [H][ld]; NULL: there is no bias */
    size_t ld, zero, after; /* the last: keys that follow a query, at most */
    const float *of;        /* the table of the layer that `values` is of */
} model_bias;

/* layers.c: each a piece of the paper, rows x d. */
iso_status model_project(model_run *run, float *y, size_t ldy, const float *x, size_t ldx,
                         const model_linear *linear, size_t rows, iso_activation act,
                         const float *residual);

/*
 * What rows go through between one attention and the next, in this order; what is absent is left
 * out. No row needs another one here.
 */
typedef struct model_positionwise {
    const model_stack *embed; /* the stack whose embeddings of `ids` at `positions` are x */
    const uint32_t *ids, *positions;
    const model_layer *heads;  /* the layer whose norms of queries and keys `next` needs */
    const model_stack *rotate; /* the stack whose heads `next` gives, to be turned by this table: */
    const float *rope;
    const model_linear *out; /* of the attention that run->h holds, with its norm */
    const model_norm *out_norm;
    const model_norm *out_after; /* of what it gives, or NULL */
    const model_layer *feed_forward;
    const model_linear *next; /* into the next attention, with its norm: to run->wide */
    const model_norm *next_norm;
    const model_norm *last; /* the norm at the end of a stack */
} model_positionwise;

/* y = norm of x; y rows of ldy. */
iso_status model_normalize(model_run *run, float *y, size_t ldy, const float *x, size_t rows,
                           const model_norm *norm);
iso_status model_between(model_run *run, const model_positionwise *p, size_t rows); /* between.c */
/* The same without dealing out rows: an op after the other. */
iso_status model_positionwise_rows(model_run *run, const model_positionwise *p, size_t rows);
/* Hk: heads of k and v; window: of each query, 0 for none. The bias may be NULL, or have no values.
 */
iso_status model_attend_spans(model_run *run, const model_stack *stack, size_t Hk, const float *q,
                              size_t ldq, const float *k, const float *v, size_t ldk,
                              const model_span *spans, size_t count, int causal, size_t window,
                              const model_bias *bias);
iso_status model_attend_workspace(model_run *run, const model_stack *stack, size_t Hk, size_t ldq,
                                  size_t ldk, const model_span *spans, size_t count, int causal,
                                  const model_bias *bias);

/* dense.c: what the Dense modules make of `rows` vectors: y [rows][their width]. */
iso_status model_dense_apply(model_run *run, float *y, const float *x, size_t rows);

/* relative.c: how many distances from 0 on share the first bucket, how many the next one, and so
 * on, of n for one direction: first[b] is the first distance of bucket b, or of a later one. */
void model_first_distances(uint32_t *first, size_t n, size_t max_distance);
/* Memory for spans of up to `longest` positions, if the stack has such a bias. */
iso_status model_bias_make(model_bias *bias, model_run *run, const model_stack *stack,
                           size_t longest, int causal);
/* From now on that of a layer; at no cost if it is that already. */
void model_bias_set(model_bias *bias, const model_stack *stack, const model_layer *layer);
/* Up to T keys that precede a query, and its own: [H][T], the last one that of distance 0. */
void model_bias_before(float *values, const model_stack *stack, const model_layer *layer, size_t T);

#endif
