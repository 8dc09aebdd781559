/* SPDX-License-Identifier: MIT
 *
 * The sequences of a call, in the order in which they are computed.
 */
#ifndef ISOBIT_MODEL_ITEMS_H
#define ISOBIT_MODEL_ITEMS_H

#include "transformer.h"

/* One sequence, or pair of sequences, of a call, sorted so that equal lengths are neighbours. */
typedef struct model_item {
    size_t S, T;                       /* lengths */
    size_t first_source, first_target; /* where they begin in the arrays of the call */
    size_t index;                      /* in the order of the call */
} model_item;

/*
 * Items for `count` sources and, if not NULL, targets: checked (`target_limit` for the latter),
 * longest first. The array is in the arena.
 */
iso_status model_items(model_item **items, model_arena *arena, const iso_model *model,
                       const uint32_t *sources, const size_t *source_lengths,
                       const uint32_t *targets, const size_t *target_lengths, size_t count,
                       iso_error *error);

/* The ids of some items, one after the other, ready for the encoder. */
typedef struct model_batch {
    uint32_t *ids, *positions; /* [rows] */
    model_span *spans;         /* [count] */
    size_t count, rows;
} model_batch;

iso_status model_batch_sources(model_batch *batch, model_arena *arena, const iso_model *model,
                               const model_item *items, size_t count, const uint32_t *sources,
                               iso_error *error);

/* x = log softmax(x), [rows][V] */
iso_status model_log_softmax(model_run *run, float *x, size_t rows, size_t V);

#endif
