/* SPDX-License-Identifier: MIT
 *
 * The weights of a model, and where they come from.
 */
#ifndef ISOBIT_MODEL_WEIGHTS_H
#define ISOBIT_MODEL_WEIGHTS_H

#include "checkpoint.h"
#include "config.h"

typedef struct model_norm {
    const float *gamma, *beta; /* [d]; gamma NULL: this norm does not exist */
} model_norm;

typedef struct model_linear {
    iso_packed w;       /* n 0: there is none */
    iso_packed_w16 w16; /* instead of w.data, where its own data is not NULL */
    iso_packed_q q;     /* or so, in groups */
    iso_packed_s8 s8;   /* or so, to be multiplied as int8 */
    const float *plain; /* or so: [n][k], or turned: [k][n] */
    int turned;
    const float *bias; /* may be NULL */
} model_linear;

/* An embedding table: row-major, or, to keep one copy of a tied matrix, the packed logits. */
typedef struct model_table {
    const float *rows; /* [V][d], or NULL */
    iso_packed packed;
    const uint16_t *rows16; /* either of them in 16 bits */
    iso_w16 type;
    iso_packed_w16 packed16;
    const void *blocks; /* or in blocks of GGUF, [V][d / 32] */
    iso_q_format format;
    iso_packed_q packed_q;
    iso_packed_s8 packed_s8;
} model_table;

typedef struct model_layer {
    model_linear self_qkv; /* d -> q | k | v */
    model_linear self_out;
    model_norm self_norm, self_after;
    const float *q_norm, *k_norm;              /* [dh] of each head, or NULL */
    const float *rope;                         /* [max_positions][rotary], or NULL */
    model_linear cross_q, cross_kv, cross_out; /* decoder only */
    model_norm cross_norm;
    model_linear fc1, fc2;
    model_norm ffn_norm, ffn_after;
    const float *relative; /* [buckets of the model][H] the bias of self-attention, or NULL */
    size_t window;         /* how many keys a query of self-attention sees, its own too; 0: all */
} model_layer;

typedef struct model_stack {
    size_t layers, H, dh, f, V; /* 0 layers: there is no such stack */
    size_t Hk;                  /* heads of keys and values of self-attention: each for H / Hk */
    size_t qkv;                 /* width of q | k | v: (H + 2 Hk) dh */
    size_t rotary;              /* how many elements of a head turn */
    float scale, softcap;       /* of the scores of attention; 0: no soft cap */
    model_layer *layer;
    const uint32_t *first_distance; /* [buckets] of each bucket of one direction, or NULL */
    size_t buckets;
    model_table embedding;
    const float *positions; /* [max_positions][d] */
    model_norm embedding_norm, final_norm;
} model_stack;

/* Of a vector of a sentence, behind its pooling. */
typedef struct model_dense {
    model_linear linear;
    iso_activation act;
} model_dense;

struct iso_model {
    model_config config;
    model_stack encoder, decoder;
    size_t columns; /* of a row between two ops: the model's width, or that of all heads */
    size_t hidden;  /* of a row within the feed-forward layer */
    model_linear logits;
    model_linear head_dense, pooler; /* of an encoder alone; may be absent */
    model_norm head_norm;
    model_dense *dense; /* [config.sentence.dense_count], or NULL */
    iso_model_info info;
    char weight_types[200]; /* of the info */
    model_map *maps;        /* [map_count], files in which weights are used, or NULL */
    size_t map_count;
    iso_profile *profile; /* of the caller, or NULL */
    iso_cache cache;      /* what keys and values of decoding are rounded to */
    model_arena arena;
};

/* What a tensor is taken as; one may be several of them. */
enum {
    MODEL_USE_VECTOR = 1, /* floats, whatever the file has */
    MODEL_USE_MATRIX = 2,
    MODEL_USE_TURNED = 4, /* a matrix that is stored [in][out] */
    MODEL_USE_LOGITS = 8, /* a matrix, maybe a table as well */
    MODEL_USE_TABLE = 16
};

/* Where weights come from while a model is loaded. */
typedef struct model_source {
    const model_checkpoint *checkpoint;
    const char *prefix; /* that names may lack in the file */
    model_arena *arena;
    const iso_context *context;
    iso_error *error;
    int load; /* 0: only names, element types and shapes are checked, and parameters counted */
    int reject_nonfinite;
    int widen;           /* weights of 16 bits, or fewer, become f32 */
    iso_compute compute; /* what matrices are multiplied as */
    model_map *maps;     /* of each shard, where files are to be used as they lie; or NULL */
    size_t parameters, parameters16; /* of which so many stay in 16 bits, */
    size_t parameters8, parameters4; /* or in 8 and 4, with scales, */
    size_t parameters_s8;            /* of those in 8 as int8 */
    size_t parameters_q;             /* and of all in matrices of groups */
    size_t of_type[MODEL_UNKNOWN];   /* and so many the file has as each type */
    size_t bytes;                    /* that the weights will take */
    model_arena scratch;
    struct model_take *takes; /* [take_count] to be read; there is room for take_limit */
    size_t take_count, take_limit;
    size_t chunk_floats;        /* of a thread that reads: */
    float *chunk;               /* [chunk_floats] */
    unsigned char *raw;         /* [2 chunk_floats] bytes as the file has them */
    unsigned char *uses;        /* of each tensor of the checkpoint, MODEL_USE_...; or NULL */
    const model_linear *logits; /* where uses is not NULL, the model's */
} model_source;

#define MODEL_MAX_NAME 192

/* A number of F16, exactly. */
float model_from_f16(uint16_t half);

/* While nothing is loaded yet: n x k elements of so many bytes will be needed. */
iso_status model_source_plan(model_source *source, size_t n, size_t k, size_t element);

/* The first of `count` names that the file has, also without their prefix; or NULL. */
const model_tensor *model_source_find(const model_source *source, const char *const *names,
                                      size_t count);

/*
 * Weights by name: their memory, which model_source_finish fills. A name of several parts, 3 at
 * most, means tensors of the same shape stacked: packed [parts n][k], vectors [parts n]. `in_out`:
 * one tensor of the shape [k, n]. `leading_one`: the shape in the file is [1, n].
 */
iso_status model_take_packed(model_source *source, model_linear *out, const char *const *names,
                             size_t parts, size_t n, size_t k, int in_out);
/* q [n][k], and k and v of other_n rows: packed [n + 2 other_n][k], and as a vector. */
iso_status model_take_grouped(model_source *source, model_linear *out, const char *const *names,
                              size_t n, size_t other_n, size_t k);
iso_status model_take_grouped_vector(model_source *source, const float **out,
                                     const char *const *names, size_t n, size_t other_n);
iso_status model_take_vector(model_source *source, const float **out, const char *const *names,
                             size_t parts, size_t n, int leading_one);
iso_status model_take_rows(model_source *source, const float **out, const char *name, size_t n,
                           size_t k);
/* An embedding table of its own. */
iso_status model_take_table(model_source *source, model_table *out, const char *name, size_t n,
                            size_t k);

/* Reads all that was taken since the last time, with the threads of the context. The error is the
 * one that a single thread would have met first. */
iso_status model_source_finish(model_source *source);

iso_status model_take_all(iso_model *model, model_source *source); /* take.c */

/* dense.c: the weights of the Dense modules, from folders in `directory`. With source->uses they
 * are checked only. */
iso_status model_dense_take(iso_model *model, model_source *source, const char *directory,
                            size_t max_header_bytes);

/* load.c: the weights in the first form that a directory has. */
iso_status model_weights_open(model_checkpoint *checkpoint, const char *directory,
                              size_t max_header_bytes, iso_error *error);

/* load.c: opens the files of a folder that is no GGUF, checks all that loading would check before
 * the first weight, and notes in source->uses what each tensor is for. All of it is the caller's to
 * close, whatever comes back. */
iso_status model_check(iso_model *model, model_checkpoint *checkpoint, model_source *source,
                       const char *directory, iso_error *error);

#endif
