/* SPDX-License-Identifier: MIT
 *
 * What generation keeps of sentences that run: search.c chooses their next tokens, decode.c steps
 * and moves them, generate.c and batch.c say which ones run.
 */
#ifndef ISOBIT_MODEL_SEARCH_H
#define ISOBIT_MODEL_SEARCH_H

#include "decode.h"
#include "sample.h"

#define MODEL_NEVER_CHOSEN (-1e9f) /* how transformers marks what must not be chosen */

/* Sequences of one kind for one sentence: `beams` rows of ld = past + 1 + max_new. */
typedef struct model_rows {
    uint32_t *tokens; /* [..][ld], the prompt, or the start token, first */
    float *log_probs; /* [..][ld]: of tokens[past + t + 1] at t */
    uint16_t *path;   /* [..][ld]: the slot in which step t was computed */
} model_rows;

typedef struct model_sequence {
    const model_plan *plan;
    const uint32_t *source;
    size_t S;       /* tokens of the source, or the prompt */
    size_t index;   /* as the caller counts */
    size_t number;  /* as random numbers count */
    size_t past;    /* tokens before the one that the first step reads */
    size_t read;    /* tokens of a prompt that are in the caches */
    size_t max_new; /* of this sentence */
    size_t ld;
    size_t length_now; /* the token that the next step chooses: 1, 2 ... */
    model_rows live, done;
    float *sums;      /* [beams] by rank */
    size_t *slot;     /* [beams] by rank */
    float *scores;    /* [beams] of done, best first */
    size_t *place;    /* [beams] the row of each in `done` */
    size_t *length;   /* [beams] tokens of each, 0: none yet */
    float *attention; /* [steps][layers][H][beams][S], or NULL */
    int improvable;
    int finished;
    const char *cancelled_by; /* a function of the caller, or NULL */
    size_t cancelled_at;      /* the token */
} model_sequence;

/* A candidate to continue a beam. */
typedef struct model_candidate {
    float value, log_prob;
    size_t slot;
    uint32_t token;
    int hit;
} model_candidate;

/* Sentences that run together, with equally many rows each: one position of all is a step. */
typedef struct model_group {
    const iso_model *model;
    model_run run;
    model_cache cache;
    size_t beams;            /* rows of each sentence: beams, or samples */
    size_t count;            /* sentences at most */
    model_sequence **active; /* [count]: who is at each place of the caches */
    size_t active_count;
    int part;                      /* behind the active ones a prompt is that was read in part */
    int have_read;                 /* the next step begins with run.x: prompts were just read */
    int together;                  /* 1: who cancels one cancels all, and hears no more */
    uint32_t *ids, *positions;     /* [rows] */
    float *logits;                 /* [rows][V] */
    float *weights;                /* the step's cross-attention, or NULL */
    size_t K;                      /* candidates of a sentence */
    size_t tasks;                  /* of the search, at most */
    struct model_scratch *scratch; /* [tasks] */
    model_arena reading;           /* memory of sources that were read, for the next ones */
} model_group;

/* What the search of one sentence at a time needs; a task has its own. */
typedef struct model_scratch {
    model_group *g;
    iso_context context; /* one thread */
    iso_status status;
    float *row;              /* [V] log-probabilities of one beam, where they must be written */
    model_candidate *best;   /* [K] */
    model_candidate *onward; /* [beams] the next live beams */
    model_candidate *next;   /* [beams] */
    float *merged;           /* [beams] */
    size_t *order;           /* [beams] */
    char *taken;             /* [beams] */
    model_candidates kept;
} model_scratch;

/* From the logits of a step to the next token of each sentence; who is finished is marked. */
iso_status model_search_step(model_group *g);

/* ----------------------------------------------------------------------------- decode.c */

/* What a group is made for. */
typedef struct model_group_size {
    size_t count, beams;
    size_t T, S;   /* positions of the caches: of targets with their prompts, of sources (or 0) */
    int attention; /* whether some want cross-attention */
    int samples;   /* whether some are sampled */
} model_group_size;

/* `memory`: of a group that has ended, or NULL. model_group_end is called in any case. */
iso_status model_group_make(model_group *g, model_arena memory[2], const iso_model *model,
                            const model_group_size *size, const iso_context *context,
                            iso_error *error);
/* The memory is left in `memory`, if that is not NULL. */
void model_group_end(model_group *g, model_arena memory[2]);

/* A sentence about to start; its source must live as long, unless it is copied. NULL: no memory. */
model_sequence *model_sequence_make(const model_plan *plan, const uint32_t *source, size_t S,
                                    model_arena *arena);
/*
 * Reads the sources of `count` sentences, for which there is room, or so many tokens of prompts.
 * *joined of them, the first ones, take part in the next step, which comes before others join or
 * somebody leaves. The one after them may have been read in part: it is the first one of the next
 * call, unless g->part becomes 0. On an error nothing has changed.
 */
iso_status model_group_join(model_group *g, model_sequence *const *sentences, size_t count,
                            size_t tokens, size_t *joined);
/* One position of all sentences, of which some are then finished, or cancelled. */
iso_status model_group_step(model_group *g);
/* The sentence at a place goes; the last one takes its place. */
void model_group_leave(model_group *g, size_t place);

/* Hypothesis i of a finished sentence, in memory of the arena; ISOBIT_E_NOMEM without a message. */
iso_status model_sequence_result(iso_hypothesis *out, const model_sequence *s, size_t i,
                                 model_arena *arena);
/* Elements of the cross-attention that a sentence keeps; SIZE_MAX if too many. */
size_t model_attention_floats(const model_plan *p, size_t S);

/* The result of a call with the memory that it owns. */
typedef struct model_generation {
    iso_generation public;
    model_arena arena;
} model_generation;

#endif
