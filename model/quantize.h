/* SPDX-License-Identifier: MIT
 *
 * Models with fewer bits: what the numbers become, and what is written of it.
 */
#ifndef ISOBIT_MODEL_QUANTIZE_H
#define ISOBIT_MODEL_QUANTIZE_H

#include "weights.h"

/* How elements are written. */
typedef enum model_made { MADE_COPY, MADE_F16, MADE_BF16, MADE_INT8, MADE_GROUPS } model_made;

/* Of some numbers, and of what is used instead. */
typedef struct model_errors {
    double largest, errors, squares; /* the largest error, sums of squares */
} model_errors;

/*
 * quantize_numbers.c: floats, finite, become numbers of 16 bits, little-endian. Adds to *errors.
 * ISOBIT_E_RANGE, and the first one in *bad, if the type has no room for one.
 */
iso_status model_make_16(unsigned char *to, const float *x, size_t count, model_made made,
                         model_errors *errors, size_t *bad, const iso_context *context);

/*
 * Rows of k floats, finite, become integers and a scale each, those of iso_quantize_s8; scales
 * little-endian.
 */
iso_status model_make_int8(int8_t *numbers, float *scales, const float *x, size_t rows, size_t k,
                           model_errors *errors, const iso_context *context);

/*
 * Rows of k floats, finite, become numbers of 4 or 8 bits, the first one of a byte in its lower
 * half, each 8 or 128 more than it means, and F16 scales above 0 of each `group` of them,
 * little-endian. The scale is the one of some with the least squared error. ISOBIT_E_RANGE, and the
 * first element in *bad, for a group whose scale F16 has not.
 */
iso_status model_make_groups(unsigned char *numbers, unsigned char *scales, const float *x,
                             size_t rows, size_t k, unsigned bits, size_t group,
                             model_errors *errors, size_t *bad);

/* What is written of a tensor: itself, or numbers and what belongs to them. */
typedef struct model_new_part {
    const char *name, *dtype;
    uint64_t shape[MODEL_MAX_RANK];
    size_t rank, element; /* bytes */
    uint64_t bytes, at;   /* from the start of the data */
} model_new_part;

#define MODEL_MOST_PARTS 3
#define MODEL_MOST_TABLES 3 /* of source and target, and the logits */

typedef struct model_new_tensor {
    const model_tensor *tensor;
    model_made made;
    const char *note;
    size_t rows, width; /* of the matrix that is converted: [out][in], unless it is only rounded */
    int logits;         /* it gives the logits, and may be a table as well */
    int turned;         /* it is stored [in][out], and so are its integers of int8 */
    unsigned bits;      /* of MADE_GROUPS */
    model_new_part parts[MODEL_MOST_PARTS];
    size_t part_count; /* 0: it is left out */
} model_new_tensor;

/* quantize_plan.c: what becomes of each tensor of the checkpoint, in its order, and the header of
 * the file, which ends where data begins. All of it in the arena. */
typedef struct model_new_file {
    model_new_tensor *items; /* [count] */
    size_t count;
    const model_tensor *tables[MODEL_MOST_TABLES];
    size_t table_count;
    char *header; /* [header_bytes] with its length in front */
    size_t header_bytes;
} model_new_file;

iso_status model_new_file_plan(model_new_file *plan, model_arena *arena, const model_source *source,
                               const iso_quantize_options *options);

/* quantize_config.c: config.json of a folder that is read and not quantised yet, and that of the
 * one that is written, in the arena. */
iso_status model_new_config(char **text, size_t *bytes, model_arena *arena, const char *directory,
                            const model_new_file *plan, const iso_quantize_options *options,
                            const char *head, iso_error *error);

#endif
