/* SPDX-License-Identifier: MIT
 *
 * The elements of tensors as a model holds them.
 */
#ifndef ISOBIT_MODEL_ELEMENTS_H
#define ISOBIT_MODEL_ELEMENTS_H

#include "weights.h"

#define MODEL_BLOCK 32 /* elements of a block of FORM_Q8 and FORM_Q4 */

/* What elements become: floats, or what the file has, numbers of 16 bits, integers or
 * blocks. */
typedef enum model_form { FORM_F32, FORM_16, FORM_S8, FORM_Q8, FORM_Q4 } model_form;

static inline int model_form_is_blocks(model_form f) { return f == FORM_Q8 || f == FORM_Q4; }

/* Of the forms that are blocks. */
extern const iso_q_format model_q_formats[];

/* What a file has elements of that type as, where a model may hold them so. */
model_form model_own_form(model_dtype dtype);

/* Bytes of so many elements; blocks are whole. */
size_t model_form_bytes(model_form f, size_t elements);

/* Elements [first, first + count) of a tensor in that form; of a matrix whole rows. With the
 * source's `raw`. */
iso_status model_read_elements(const model_source *source, const model_tensor *t, model_form f,
                               char *to, size_t first, size_t count);

/* Elements of F32, F16 or BF16 as a file has them become floats. */
void model_convert_elements(const model_tensor *t, float *to, const unsigned char *raw,
                            size_t count);

/* An error for an infinity or NaN among them, if the source rejects such. */
iso_status model_check_finite(const model_source *source, const model_tensor *t, model_form f,
                              const void *at, size_t first, size_t count);

#endif
