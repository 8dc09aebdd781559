/* SPDX-License-Identifier: MIT
 *
 * Sampling: one token drawn from a row of logits. docs/numerics.md has the algorithm. Nothing here
 * knows where the row comes from, what the search is, or which random number is the next: who draws
 * says which one it is.
 */
#ifndef ISOBIT_MODEL_SAMPLE_H
#define ISOBIT_MODEL_SAMPLE_H

#include "config.h"

/* Philox 4x32-10: the four numbers of a key and a counter. */
typedef struct model_random {
    uint32_t word[4];
} model_random;
model_random model_philox(model_random counter, const uint32_t key[2]);

/* ISOBIT_E_OPTION where a number is none or out of range. */
iso_status model_warp_check(const model_warp *warp, iso_error *error);

/* Memory for rows of V logits; each task has its own. */
#define MODEL_DIGITS 2048
typedef struct model_candidates {
    size_t count;
    uint32_t *ids;  /* [V] ascending */
    float *values;  /* [V] logits / temperature; what is kept has no NaN and no infinity */
    float *weights; /* [V] their probabilities */
    uint64_t *sums; /* [MODEL_DIGITS] */
} model_candidates;

int model_candidates_make(model_candidates *k, model_arena *arena, size_t V);

/*
 * What may be drawn of row [V], with its probabilities, which need not sum to 1. None where nothing
 * is above -Inf, or where something is +Inf after the division: then there is no distribution.
 */
iso_status model_warp_row(model_candidates *k, const model_warp *warp, const float *row, size_t V,
                          const iso_context *context);

/* The candidate, of at least one, on which 64 random bits fall. */
uint32_t model_draw(const model_candidates *k, uint64_t bits);

#endif
