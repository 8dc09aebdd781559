/* SPDX-License-Identifier: MIT
 *
 * What the public entry points share: checks of arguments, the workspace, and the cutting of rows
 * into tasks.
 */
#ifndef ISOBIT_CHECK_H
#define ISOBIT_CHECK_H

#include "select.h"

#include <isobit/ops.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Floats between two tasks' scratch areas are a multiple of this: one cache line. */
#define ISO_LINE 16

static inline size_t iso_round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }
static inline size_t iso_min_size(size_t a, size_t b) { return a < b ? a : b; }

/*
 * The options to read: those of the caller, or, where its header was older and its struct shorter,
 * a copy in `own`, a struct of the same type, in which all that the caller does not know is 0, the
 * default. NULL when no version has a struct of that size: `last` is the last member that the first
 * version had. Without a member since then a comparison of two sizes is left of all this.
 */
#define ISO_OPTIONS(options, own, last)                                                            \
    ((options)->size == sizeof(own)                                                                \
         ? (options)                                                                               \
         : iso_older_options(&(own), sizeof(own), ISO_SIZE_UP_TO(__typeof__(own), last), options,  \
                             (options)->size))

/* For what only tells of a call: `none` where there are no options, or none of a known size. */
#define ISO_OPTIONS_OR(options, own, last, none)                                                   \
    ((options) ? ISO_OPTIONS(options, own, last) ?: (none) : (none))

static inline void *iso_older_options(void *own, size_t bytes, size_t first, const void *options,
                                      size_t size) {
    if (size < first || size >= bytes)
        return NULL;
    memset(own, 0, bytes);
    return memcpy(own, options, size);
}

/* The bytes of `count` floats, or 0 when that does not fit (or is more than half of memory). */
static inline int iso_mul_overflows(size_t *product, size_t a, size_t b) {
    return __builtin_mul_overflow(a, b, product) || *product > PTRDIFF_MAX / sizeof(float);
}

/* A matrix [rows][ld >= columns] of floats: NULL, stride and extent. Empty ones may be NULL. */
static inline iso_status iso_check_matrix(const void *p, size_t rows, size_t columns, size_t ld) {
    size_t extent;
    if (rows == 0 || columns == 0)
        return ISOBIT_OK;
    if (ld < columns)
        return ISOBIT_E_LD;
    if (iso_mul_overflows(&extent, rows, ld))
        return ISOBIT_E_OVERFLOW;
    return p ? ISOBIT_OK : ISOBIT_E_NULL;
}

/*
 * Whether two matrices share an element. Column ranges of one wider matrix (same stride) do not
 * overlap although their address ranges do.
 */
static inline int iso_overlap(const float *a, size_t rows_a, size_t columns_a, size_t ld_a,
                              const float *b, size_t rows_b, size_t columns_b, size_t ld_b) {
    if (!a || !b || !rows_a || !columns_a || !rows_b || !columns_b)
        return 0;
    uintptr_t a0 = (uintptr_t)a, a1 = a0 + ((rows_a - 1) * ld_a + columns_a) * sizeof(float);
    uintptr_t b0 = (uintptr_t)b, b1 = b0 + ((rows_b - 1) * ld_b + columns_b) * sizeof(float);
    if (a1 <= b0 || b1 <= a0)
        return 0;
    if (ld_a != ld_b || (rows_a == 1 && rows_b == 1))
        return 1;
    const uintptr_t row = ld_a * sizeof(float);
    uintptr_t shift = a0 <= b0 ? (b0 - a0) % row : (a0 - b0) % row;
    uintptr_t first = (a0 <= b0 ? columns_a : columns_b) * sizeof(float);
    uintptr_t second = (a0 <= b0 ? columns_b : columns_a) * sizeof(float);
    return shift < first || shift + second > row;
}

/* The same, where being the same matrix (same pointer and stride) is allowed. */
static inline int iso_overlap_partly(const float *a, size_t rows, size_t columns, size_t ld_a,
                                     const float *b, size_t ld_b) {
    return !(a == b && (ld_a == ld_b || rows == 1)) &&
           iso_overlap(a, rows, columns, ld_a, b, rows, columns, ld_b);
}

/* Whether two runs of bytes meet. */
static inline int iso_bytes_overlap(const void *a, size_t bytes_a, const void *b, size_t bytes_b) {
    return bytes_a && bytes_b && (uintptr_t)a < (uintptr_t)b + bytes_b &&
           (uintptr_t)b < (uintptr_t)a + bytes_a;
}

/* What is done with the sums of a product, which become c. */
iso_status iso_check_epilogue(float *c, size_t ldc, size_t m, size_t n,
                              const struct iso_epilogue *e);

/* What weights are packed into: room for `bytes`, which the caller says there is; w, of `w_bytes`,
 * lies elsewhere. The kernels of the context, though packing may need none: the same rules. */
static inline iso_status iso_check_packed(const struct iso_kernels **kernels, const void *packed,
                                          size_t room, size_t bytes, const void *w, size_t w_bytes,
                                          const iso_context *context) {
    if (bytes && !packed)
        return ISOBIT_E_NULL;
    if ((uintptr_t)packed % 64)
        return ISOBIT_E_ALIGN;
    if (room < bytes)
        return ISOBIT_E_WORKSPACE;
    if (iso_bytes_overlap(packed, bytes, w, w_bytes))
        return ISOBIT_E_ALIAS;
    return iso_context_kernels(kernels, context);
}

static inline int iso_is_w16(iso_w16 type) { return type == ISOBIT_F16 || type == ISOBIT_BF16; }

/* Bytes from the first element to behind the last one of a matrix of elements of `size`. */
static inline size_t iso_extent(size_t rows, size_t columns, size_t ld, size_t size) {
    return rows && columns ? ((rows - 1) * ld + columns) * size : 0;
}

/*
 * Scratch of `floats`: the caller's workspace, aligned to a line, or memory of our own, which
 * iso_scratch_free gives back. iso_scratch_bytes is what a caller must bring.
 */
static inline size_t iso_scratch_bytes(size_t floats) {
    return floats ? floats * sizeof(float) + ISO_LINE * sizeof(float) : 0;
}

static inline iso_status iso_scratch(float **scratch, void **owned, const iso_context *context,
                                     size_t floats) {
    *scratch = NULL, *owned = NULL;
    if (floats == 0)
        return ISOBIT_OK;
    if (floats > (PTRDIFF_MAX - 64) / sizeof(float))
        return ISOBIT_E_OVERFLOW;
    if (context && context->workspace) {
        if (context->workspace_bytes < iso_scratch_bytes(floats))
            return ISOBIT_E_WORKSPACE;
        *scratch = (float *)iso_round_up((uintptr_t)context->workspace, ISO_LINE * sizeof(float));
        return ISOBIT_OK;
    }
    *owned = aligned_alloc(64, iso_round_up(floats * sizeof(float), 64));
    *scratch = *owned;
    return *owned ? ISOBIT_OK : ISOBIT_E_NOMEM;
}

#endif
