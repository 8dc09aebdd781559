/* SPDX-License-Identifier: MIT
 *
 * The forward pass: encoders, whole decoders, and decoding step by step.
 */
#ifndef ISOBIT_MODEL_TRANSFORMER_H
#define ISOBIT_MODEL_TRANSFORMER_H

#include "layers.h"

struct model_cache;

/* transformer.c: run->x holds the result. */
iso_status model_encode(model_run *run, const uint32_t *ids, const uint32_t *positions,
                        const model_span *spans, size_t count, size_t rows);
/*
 * Whole sequences of a decoder, [rows] in all, sequence i at self[i]. Or, with a cache and without
 * an encoder, T tokens of it that follow others, S - T of them, whose keys and values the cache
 * has.
 */
typedef struct model_decoder_batch {
    uint32_t *ids, *positions;
    model_span *self;
    size_t count, rows;
    /* What an encoder made, or cross is NULL: */
    model_span *cross;
    const float *memory; /* [memory_rows][d] */
    size_t memory_rows;
    float *kv; /* [memory_rows][2 H dh] scratch */
} model_decoder_batch;

/* `cache`, if not NULL, receives the keys and values of sequence i for the first beam of sentence
 * places[i], behind those that it has. */
iso_status model_decode_whole(model_run *run, const model_decoder_batch *batch,
                              struct model_cache *cache, const size_t *places);
iso_status model_logits(model_run *run, float *logits, const float *x, size_t rows);
/* Whether the model has the stack that a call needs; an error that says so if not. */
iso_status model_needs(const model_stack *stack, const char *name, iso_error *error);

/*
 * The keys and values of decoding: sentences x beams, one target position at a time, each sentence
 * at its own. Without an encoder there are none of a source; a prompt takes the first positions of
 * a sentence instead. What lies beyond the lengths is never read.
 */
typedef struct model_cache {
    size_t sentences, beams, T, S; /* capacities; S 0: no encoder */
    size_t *source_lengths;        /* [sentences] */
    size_t *lengths;               /* [sentences] positions that there are */
    size_t *key_lengths;           /* [sentences x beams] of a step */
    int w16;                       /* elements have 16 bits, of this type: */
    iso_w16 type;
    size_t element;                   /* bytes */
    unsigned char *self_k, *self_v;   /* [layers][sentences x beams][H] panels | [T][row] */
    unsigned char *cross_k, *cross_v; /* [layers][sentences][H] panels | [S][row] */
    size_t panels_t, panels_s, row;   /* elements of one head's panels; of a row of values */
    float *bias;                      /* [biases][H][T], the last one of distance 0; or NULL */
    size_t biases;                    /* 1: the same one for all layers */
    float *row_bias;                  /* [sentences x beams][H][T] of a step, or NULL */
} model_cache;

/* cache.c. Whether the caches of a model have 16 bits, and which. */
int model_cache_type(const iso_model *model, iso_w16 *type);
/* Bytes that one sentence takes in a cache; 0 on overflow. */
size_t model_cache_bytes(const iso_model *model, size_t beams, size_t T, size_t S);
iso_status model_cache_make(model_cache *cache, model_run *run, size_t sentences, size_t beams,
                            size_t T, size_t S);
/* Computes the keys and values of the encoder output run->x, that at spans[i] for sentence
 * first + i. */
iso_status model_cache_sources(model_cache *cache, model_run *run, size_t first,
                               const model_span *spans, size_t count, size_t rows);
/* The keys and values of prompts, or parts of them, in run->wide, join the caches of layer l: that
 * at spans[i] the first beam of sentence places[i]. */
iso_status model_cache_prompt(const model_cache *cache, const size_t *places, model_run *run,
                              const model_span *spans, size_t count, size_t l);
/* Those of a step, in run->wide, join them. */
iso_status model_cache_append(const model_cache *cache, const model_run *run, size_t l,
                              size_t rows);
/* One head: of row r in layer l (self), or of sentence b in layer l (cross). */
void *model_cache_self_k(const model_cache *c, size_t H, size_t l, size_t r, size_t h);
void *model_cache_self_v(const model_cache *c, size_t H, size_t l, size_t r, size_t h);
void *model_cache_cross_k(const model_cache *c, size_t H, size_t l, size_t b, size_t h);
void *model_cache_cross_v(const model_cache *c, size_t H, size_t l, size_t b, size_t h);
/* Rows of the self-attention caches; of a sentence all that there is. */
void model_cache_copy_beam(model_cache *cache, const iso_model *model, size_t to, size_t from);
void model_cache_copy_sentence(model_cache *cache, const iso_model *model, size_t to, size_t from);
/*
 * Prompts, and other texts of a decoder alone, go through it so many rows at a time: enough for all
 * threads to take rows on their own (run.c), while what they need is a small part of the weights
 * and a step that waits for it is not long in coming.
 */
#define MODEL_PROMPT_ROWS 512
/* transformer.c. Tokens [first, first + count) of a text, behind those that are in the cache of one
 * sentence: run->x holds the result. positions: [count] scratch. */
iso_status model_decode_part(model_cache *cache, model_run *run, uint32_t *ids, uint32_t *positions,
                             size_t first, size_t count);
/* Workspace for every step. */
iso_status model_cache_workspace(const model_cache *cache, model_run *run, float *weights);
/*
 * One step for sentences x beams rows, each at the position where its sentence is; the lengths grow
 * by it. weights, where not NULL, receives the cross-attention [layers][sentences][H][beams][S of
 * the cache].
 */
iso_status model_decode_step(model_cache *cache, model_run *run, const uint32_t *ids,
                             uint32_t *positions, size_t sentences, float *weights);

/* Checks ids and lengths; `what` is "source" or "target". */
iso_status model_check_ids(const uint32_t *ids, size_t length, size_t V, size_t limit,
                           const char *what, size_t sequence, iso_error *error);

#endif
