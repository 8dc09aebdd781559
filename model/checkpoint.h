/* SPDX-License-Identifier: MIT
 *
 * The reader of checkpoints: tensors by name in one file or in several.
 */
#ifndef ISOBIT_MODEL_CHECKPOINT_H
#define ISOBIT_MODEL_CHECKPOINT_H

#include "files.h"

typedef enum model_dtype {
    MODEL_F32,
    MODEL_F16,
    MODEL_BF16,
    MODEL_F64,
    MODEL_I8,   /* integers, whose scales another tensor has */
    MODEL_Q4_0, /* GGUF's blocks of elements of a row: blocks.h */
    MODEL_Q4_1,
    MODEL_Q5_0,
    MODEL_Q5_1,
    MODEL_Q8_0,
    MODEL_IQ4_NL,
    MODEL_IQ4_XS,
    MODEL_Q2_K,
    MODEL_Q3_K,
    MODEL_Q4_K,
    MODEL_Q5_K,
    MODEL_Q6_K,
    MODEL_GROUPS, /* numbers of 4 or 8 bits, whose scales another tensor has: groups.h */
    MODEL_OTHER,
    MODEL_UNKNOWN
} model_dtype;

#define MODEL_MAX_RANK 8

typedef struct model_tensor {
    const char *name; /* NUL-terminated; holds no other NUL */
    size_t name_bytes;
    model_dtype dtype;
    char dtype_name[12];
    size_t rank;
    uint64_t shape[MODEL_MAX_RANK];
    uint64_t begin, end;     /* bytes from the start of the data; all elements lie between */
    const uint64_t *strides; /* [rank], in elements; NULL: row-major, nothing between elements */
    size_t shard;            /* the one that has it, in a checkpoint of several files */
    /* Row 2 i + j of each so many rows is what is read as row j rows / 2 + i; 0: as they lie. */
    size_t paired;
    /* Of MODEL_GROUPS: so many numbers of so many bits of a row share a scale. */
    const struct model_tensor *scales;
    unsigned bits, group;
} model_tensor;

typedef struct model_header {
    model_tensor *tensors; /* sorted by name */
    size_t count;
} model_header;

/*
 * Reads the JSON header `text` (changed in place: names point into it) of a file whose data is
 * `data_bytes` long. Everything of *header is in the arena.
 */
iso_status model_header_parse(model_header *header, model_arena *arena, char *text, size_t bytes,
                              uint64_t data_bytes, iso_error *error);

/*
 * The weights of a model: one file, or an index and its shards, each a checkpoint of one file. The
 * file of an index has no descriptor, only its name.
 */
typedef struct model_checkpoint {
    model_file file;
    model_header header;
    uint64_t data_start;
    model_arena arena;
    struct model_checkpoint *shards; /* [shard_count], NULL: one file */
    size_t shard_count;
} model_checkpoint;

/* The type of its elements, for a message: one that is not known may be named by any bytes. */
const char *model_quote_dtype(model_quoted *out, const model_tensor *t);

/*
 * A file of safetensors, one of torch.save (bin.c), an index of each (checkpoint.c). Whatever comes
 * back, the checkpoint is to be closed. Headers, and what a .bin file has instead, are limited to
 * max_header_bytes.
 */
typedef iso_status model_checkpoint_opener(model_checkpoint *checkpoint, const char *directory,
                                           const char *name, size_t max_header_bytes,
                                           iso_error *error);
model_checkpoint_opener model_checkpoint_open, model_checkpoint_open_bin;
iso_status model_checkpoint_open_shards(model_checkpoint *checkpoint, const char *directory,
                                        const char *name, size_t max_header_bytes,
                                        model_checkpoint_opener *open_shard, iso_error *error);
void model_checkpoint_close(model_checkpoint *checkpoint);
const model_tensor *model_checkpoint_find(const model_checkpoint *checkpoint, const char *name);
/* The tensor whose name is that of `tensor` and `end`; or NULL. */
const model_tensor *model_checkpoint_find_beside(const model_checkpoint *checkpoint,
                                                 const model_tensor *tensor, const char *end);
/* Bytes [offset, offset + bytes) of a tensor. */
iso_status model_checkpoint_read(const model_checkpoint *checkpoint, const model_tensor *tensor,
                                 void *to, uint64_t offset, size_t bytes, iso_error *error);
/* model_file_unchanged of all its files. */
iso_status model_checkpoint_unchanged(const model_checkpoint *checkpoint, iso_error *error);

/* A matrix [k][n] as [n][k], which is the same with other strides. */
typedef struct model_turned {
    model_tensor t;
    uint64_t strides[2]; /* what t.strides points to: it is not to be copied */
} model_turned;
void model_tensor_turn(model_turned *to, const model_tensor *matrix);

/* Sorts by name (no other NUL than at the end). */
int model_tensor_order(const void *a, const void *b);
/*
 * The size of a shape with `bits` bits an element, in *total_bits; or what is wrong with it. A zero
 * does not hide that the other sizes are impossible.
 */
const char *model_tensor_extent(const model_tensor *tensor, unsigned bits, uint64_t *total_bits);

#endif
