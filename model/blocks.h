/* SPDX-License-Identifier: MIT
 *
 * GGUF's blocks of quantised elements. Those of all types are read into one form: whole numbers in
 * groups, each group with a whole factor of the scale of the block, and one of its offset.
 */
#ifndef ISOBIT_MODEL_BLOCKS_H
#define ISOBIT_MODEL_BLOCKS_H

#include "checkpoint.h"

#include <isobit/ops.h>

#define MODEL_BLOCK_MOST 256 /* elements */
#define MODEL_GROUP_LEAST 16

/*
 * Element i, of group g, is, in float, numbers[i] (scale scales[g]) + offset offsets[g]. Scale and
 * offset are F16 and the others have few bits, so that all products are exact. The sum is rounded
 * once, and so has the same bits however it is computed.
 */
typedef struct model_block {
    uint16_t scale, offset; /* F16 */
    int8_t scales[MODEL_BLOCK_MOST / MODEL_GROUP_LEAST],
        offsets[MODEL_BLOCK_MOST / MODEL_GROUP_LEAST];
    int8_t numbers[MODEL_BLOCK_MOST];
} model_block;

typedef struct model_block_type {
    const char *name;
    unsigned char elements_8, bytes, group; /* elements of a block / 8; of a group */
    unsigned char scale_at, offset_at;      /* bytes of the block where they are, */
    unsigned char has_offset, minus;        /* if there is one; it is subtracted */
    void (*read)(model_block *to, const unsigned char *block);
} model_block_type;

/* Of any type that is read. */
const char *model_dtype_name(model_dtype dtype);

/* NULL: elements of that type are not in blocks. */
const model_block_type *model_block_type_of(model_dtype dtype);

static inline size_t model_block_elements(const model_block_type *t) { return 8 * t->elements_8; }

/* From the bytes of a block; 0: its scale or offset is not finite. */
int model_block_read(model_block *to, const model_block_type *type, const unsigned char *block);

/* All elements of a block that was read. */
void model_block_floats(float *to, const model_block *block, const model_block_type *type);

/* The same as a block of iso_pack_q, in the byte order of this machine. The format has offsets, and
 * groups at least as small, where the type has. */
void model_block_write(char *to, const model_block *block, const model_block_type *type,
                       const iso_q_format *format);

/* Weights of a block of a format, and its bytes. */
size_t model_q_block(const iso_q_format *format);
size_t model_q_block_bytes(const iso_q_format *format);

/* A row of packed weights as floats. */
void model_packed_q_row(float *to, const iso_packed_q *w, size_t row);

#endif
