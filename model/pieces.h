/* SPDX-License-Identifier: MIT
 *
 * Weights that are taken, and read in pieces by all threads (model_source_finish).
 */
#ifndef ISOBIT_MODEL_PIECES_H
#define ISOBIT_MODEL_PIECES_H

#include "weights.h"

#include "elements.h"

#define MODEL_MAX_PARTS 3

/* What is to be read. In the file it is `rows` of `width` elements, from one tensor or several. */
typedef struct model_take {
    enum { TAKE_WHOLE, TAKE_ROWS, TAKE_PACKED, TAKE_TURNED, TAKE_MAPPED } kind;
    const model_tensor *tensors[MODEL_MAX_PARTS];
    size_t first_rows, other_rows; /* of tensors[0], of each of the others */
    size_t rows, width;
    void *to;    /* TAKE_MAPPED: nothing is written there */
    size_t step; /* rows of a piece */
    size_t end;  /* the pieces of this take and all before it */
    model_form form;
    float *scales; /* [rows] of those that the file has in int8, or NULL */
} model_take;

/* Of 16 bits, what they are. */
iso_w16 model_take_type(const model_tensor *t);

/* Of rows of k elements, packed. */
iso_status model_packed_bytes(size_t *bytes, model_form f, size_t rows, size_t k);

/* Buffers of a thread will have room for 16 rows of k elements; one more take is to come. */
iso_status model_take_plan(model_source *source, size_t k);

/* Notes what model_source_finish will read, or look at. There is room for all that was planned. */
iso_status model_take_note(model_source *source, model_take take);

#endif
