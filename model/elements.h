/* SPDX-License-Identifier: MIT
 *
 * The elements of tensors as a model holds them.
 */
#ifndef ISOBIT_MODEL_ELEMENTS_H
#define ISOBIT_MODEL_ELEMENTS_H

#include "weights.h"

/* What elements become: floats, or what the file has, numbers of 16 bits, integers, or blocks, by
 * the type of GGUF that they hold. FORM_Q4 and FORM_Q8 hold several, FORM_K all that have blocks of
 * 256. */
typedef enum model_form {
    FORM_F32,
    FORM_16,
    FORM_S8,
    FORM_Q8,
    FORM_Q4,
    FORM_Q4_1,
    FORM_Q5_1,
    FORM_Q2_K,
    FORM_Q3_K,
    FORM_Q4_K,
    FORM_Q5_K,
    FORM_Q6_K,
    FORM_IQ4_XS,
    FORM_K,
    FORM_GROUPS, /* blocks of 8 bits, of 32, 64 and 128 with scales of F16; then these: */
    FORM_GROUPS_LAST = FORM_GROUPS + 11
} model_form;
enum { FORM_GROUPS_4 = 3, FORM_GROUPS_F32 = 6 };

static inline int model_form_is_blocks(model_form f) { return f >= FORM_Q8; }

/* Of the forms that are blocks. */
extern const iso_q_format model_q_formats[];

/* What a model may hold elements of the tensor as; and those of several tensors together. */
model_form model_own_form(const model_tensor *t);
model_form model_common_form(const model_tensor *const *tensors, size_t count);

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
