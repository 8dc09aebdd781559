/* SPDX-License-Identifier: MIT */
#ifndef ISOBIT_PARTS_H
#define ISOBIT_PARTS_H

#include "select.h"

#include <isobit/ops.h>

/* Elements below which one thread makes integers of them. */
enum { ISO_SMALL_QUANTIZE = 1 << 15 };

/* Products of integers (s8.c, q_s8.c): what they do once rows are integers. */
struct iso_parts {
    const struct iso_kernels *kernels;
    float *y;
    size_t ldy;
    struct iso_epilogue e; /* without the bias, which the product adds */
    /* The product: rows row .. row + m of the integers at hand, columns column .. column + n, with
     * the bias, to c. */
    void (*product)(const void *arg, float *c, size_t ldc, size_t row, size_t m, size_t column,
                    size_t n);
    const void *arg;
};

/* These rows and columns, that go to row y_row + row of y, a part at a time where there is an
 * epilogue, so that it finds them in cache. */
void iso_parts_run(const struct iso_parts *t, size_t y_row, size_t m, size_t column, size_t n);

/* The line of ISOBIT_VERBOSE about a linear layer whose call began at `begin`, and its way. */
struct iso_parts_call {
    const char *name, *way;
    size_t m, n, k, ldx, ldy;
    const iso_linear_options *options;
};
void iso_parts_tell(uint64_t begin, const struct iso_parts_call *call, const iso_context *context,
                    iso_status status);

/* Options of a linear layer; its bias is apart. */
iso_status iso_parts_options(struct iso_parts *t, const float **bias,
                             const iso_linear_options *options);

#endif
