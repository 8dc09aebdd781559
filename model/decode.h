/* SPDX-License-Identifier: MIT
 *
 * What the parts of generation share: decode.c steps, search.c searches, plan.c makes a plan of
 * options and configuration, processors.c changes scores and says where a sequence ends, sample.c
 * draws.
 */
#ifndef ISOBIT_MODEL_DECODE_H
#define ISOBIT_MODEL_DECODE_H

#include "items.h"

/* The options of a call, defaults filled in. */
typedef struct model_plan {
    const iso_model *model;
    model_search search;        /* beams: rows of a sentence, be they beams or samples */
    size_t hypotheses, max_new; /* tokens after the start token, or the prompt, at most */
    size_t max_total;           /* of a prompt and what follows; 0: no such limit */
    int lowers;                 /* what the positions of the model cannot serve */
    size_t tokens;              /* of sources in a group */
    int attention;
    uint32_t seed[2];
    size_t first_source;
    model_ids stop; /* for each: its length, then its ids */
    int (*on_token)(void *user, const iso_token *token);
    void *user;
    int (*is_last)(void *user, const iso_sequence *sequence);
    void *is_last_user;
} model_plan;

/* plan.c */
iso_status model_plan_make(model_plan *plan, const iso_model *model,
                           const iso_generate_options *options, iso_error *error);
/* Without an encoder: prompts must leave room for a token, and what may follow needs positions. */
iso_status model_plan_prompts(model_plan *plan, const struct model_item *items, size_t count,
                              iso_error *error);
/* How many tokens may follow a source of S tokens. */
size_t model_plan_most(const model_plan *plan, size_t S);

/* The tokens of a sequence: past + c of them after c - 1 steps, a start token, or a prompt, first.
 */
typedef struct model_history {
    const uint32_t *tokens;
    size_t past, max_new;
} model_history;

/*
 * processors.c. Step c = 1, 2 ... chooses token c.
 *
 * model_process changes the scores of the next token, in the order of transformers, but for
 * renormalizing. model_forces: it will leave one of few tokens, whatever their scores. model_ends:
 * the sequence ends with `token` next.
 */
void model_process(const model_plan *plan, float *row, const model_history *before, size_t step);
int model_forces(const model_plan *plan, const model_history *before, size_t step);
int model_ends(const model_plan *plan, const model_history *before, size_t step, uint32_t token);

#endif
