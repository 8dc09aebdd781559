/* SPDX-License-Identifier: MIT
 *
 * A call: its memory, its context with a workspace for every op, and its time by kind of op.
 */
#ifndef ISOBIT_MODEL_RUN_H
#define ISOBIT_MODEL_RUN_H

#include "weights.h"

#define MODEL_BLOCK_ROWS 128 /* that go together through all ops between attentions, at most */

/* One call: its memory, its context with a workspace for every op, and row buffers. */
typedef struct model_run {
    const iso_model *model;
    iso_context context;
    iso_error *error;
    model_arena arena;
    iso_profile *profile; /* of the caller, or NULL */
    double lap;           /* when the last lap ended, if there is a profile */
    size_t rows;          /* of the buffers */
    float *x;             /* [rows][d] the stream */
    float *h;             /* [rows][columns of the model] */
    float *wide;          /* [rows][3 columns] */
    float *hidden;        /* [rows that go together][hidden of the model] */
    uint32_t *iota;       /* [rows] 0, 1, 2 ... */
    size_t threads;
    struct model_part *parts;        /* [threads], or NULL */
    const struct model_shown *shown; /* who wants to see attention, or NULL */
    float *weights;                  /* where the attention of the next call goes, or NULL */
} model_run;

/* What a thread works with that takes rows on its own: a run on some rows of another one. */
typedef struct model_part {
    model_run run;
    iso_error error;
    iso_profile profile; /* counts its multiply-adds */
    iso_status status;
} model_part;

/* Of one sequence the attention of some layers: [layers][H][T][S] of that kind. */
typedef struct model_shown {
    iso_attention_kind kind;
    size_t first, layers, floats; /* the last: of a layer */
    float *weights;
} model_shown;

/* Whether a matrix in groups multiplies rows of int8. */
static inline int model_meets_int8(const iso_model *model, const model_linear *linear) {
    return model->info.parameters_int4 && linear->q.data;
}

/* Layer l is next: its attention of that kind is shown, or not. */
static inline void model_show(model_run *run, iso_attention_kind kind, size_t l) {
    const model_shown *s = run->shown;
    run->weights = s && s->kind == kind && l >= s->first && l - s->first < s->layers
                       ? s->weights + (l - s->first) * s->floats
                       : NULL;
}

/* run.c. `memory`: an arena to go on with, which the run takes over; NULL for a new one. */
iso_status model_run_begin(model_run *run, model_arena *memory, const iso_model *model,
                           const iso_context *context, size_t rows, iso_error *error);
/* Gives the ops of this run at least so much workspace. */
iso_status model_run_workspace(model_run *run, size_t bytes);
/* Workspace for products of exactly `rows` rows; more rows may need less. */
iso_status model_run_linear_workspace(model_run *run, size_t rows);
iso_status model_run_end(model_run *run, iso_status status);
/* Whether each op has all threads. Who wants to know of each kind of op has them one by one. */
int model_run_one_by_one(const model_run *run, size_t rows);
/* An op has failed, where none should. */
iso_status model_run_fail(model_run *run, iso_status status, const char *where);

/* profile.c: without a profile, as usual, a test of a pointer. */
double model_now(void); /* seconds, from an arbitrary start */
void model_profile_lap(model_run *run, iso_profile_kind kind);

/* The time since the last lap was spent on `kind`. */
static inline void model_lap(model_run *run, iso_profile_kind kind) {
    if (run->profile && run->profile->by_kind)
        model_profile_lap(run, kind);
}

/* So many multiply-adds. */
static inline void model_count(const model_run *run, size_t m, size_t n, size_t k) {
    if (run->profile)
        run->profile->flops += 2.0 * (double)m * (double)n * (double)k;
}

iso_status model_check_context(const iso_context *context, iso_error *error);

#endif
