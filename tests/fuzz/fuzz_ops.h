/* SPDX-License-Identifier: MIT
 *
 * What the parts of fuzz_ops share: the input, and the operands that it asks for.
 */
#ifndef ISOBIT_TESTS_FUZZ_OPS_H
#define ISOBIT_TESTS_FUZZ_OPS_H

#include "fuzz.h"

#include <isobit/ops.h>

enum { MOST_IDS = 160 };

typedef struct plan {
    unsigned op, flags;
    size_t m, n, k, lda, ldb, ldc, ldr, positions;
    float *out[2], *a, *b, *c;
    size_t out_floats[2];
    int exact; /* what lies in the outputs are no floats */
    float scalars[2];
    iso_activation act;
    const float *bias, *residual;
    uint8_t mask[130 * 130];
    size_t lengths[MOST_IDS];
    uint32_t ids[MOST_IDS], rows[MOST_IDS];
    iso_attention_shape shape;
    iso_attention_options attention;
    iso_packed packed;
} plan;
extern plan p;

unsigned byte(void);
size_t dim(void);
size_t stride(size_t n); /* for rows of n: tight, padded, or too small */
uint32_t next(void);     /* random bits */

extern int too_large; /* operands that no region holds: the input is skipped */

/* So many rows of n, the last without its gap. A stride that is too small is refused unread. */
size_t extent(size_t rows, size_t n, size_t ld);
/* An operand of that many floats in region i, filled; memory for one of so many bytes. */
float *place(int i, size_t floats, unsigned fill);
void *place_bytes(int i, size_t bytes);
void output(int i, size_t floats);

/* Options of attention for p.shape, and its weights as the second output. */
void choose_attention(void);
void choose_ids(void); /* below p.k, or one too large; and as many rows */

/* fuzz_few_bits.c: the operations on 16, 8 and 4 bits. */
enum { FEW_BITS_OPS = 10 };
void few_bits_plan(unsigned op, unsigned fill);
iso_status few_bits_run(unsigned op, const iso_context *context);

#endif
