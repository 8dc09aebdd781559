/* SPDX-License-Identifier: MIT
 *
 * Matrices of int8, row by row.
 */
#ifndef ISOBIT_MODEL_INT8_H
#define ISOBIT_MODEL_INT8_H

#include "elements.h"

/* The scales of the n outputs of a matrix of int8, or what is wrong with them. */
iso_status model_int8_find_scales(const model_source *source, const model_tensor *t, size_t n,
                                  const model_tensor **scales);
/* All of them, which must be finite and not negative. */
iso_status model_int8_read_scales(const model_source *source, const model_tensor *scales, float *to,
                                  size_t n);
/* Rows `first` ... of t, [count][row_bytes], integers or these as floats: where a scale is 0, they
 * must be, too. */
iso_status model_int8_check_rows(const model_source *source, const model_tensor *t,
                                 const float *scales, const void *rows, size_t first, size_t count,
                                 size_t row_bytes);
/* rows [count][width] times their scales */
void model_int8_scale_rows(float *rows, const float *scales, size_t count, size_t width);

/* An iso_packed_s8 while it is filled. */
typedef struct model_int8 {
    int8_t *data;
    float *scales;
    int32_t *start;
    size_t n, k;
} model_int8;

/* That in the memory of iso_pack_s8_bytes(n, k). */
model_int8 model_int8_in(void *memory, size_t n, size_t k);
/* Panels of rows [first, first + count), first a multiple of 16, without weights; behind the last
 * row its panel has scales of 0, too. */
void model_int8_clear(const model_int8 *w, size_t first, size_t count);
/* Integers of rows `first` ..., [count][k]; their scales are somebody else's affair. */
void model_int8_put(const model_int8 *w, const int8_t *rows, size_t first, size_t count);
/* Row j as floats: integer times scale. */
void model_int8_row(float *to, const iso_packed_s8 *w, size_t j);

#endif
