/* SPDX-License-Identifier: MIT
 *
 * The strips of a block of a product: how many rows of A a kernel multiplies at a time, with which
 * columns of B, and which of them prefetch or pack.
 */
#ifndef ISOBIT_STRIPS_H
#define ISOBIT_STRIPS_H

#include "gemm/plan.h"

/* How a block of m rows and n columns is worked off, strip by strip. */
struct iso_gemm_strips {
    size_t count, rows;            /* of even height */
    size_t full;                   /* strips of `mr` rows, where they are not even */
    size_t columns;                /* of B that stay in L2 meanwhile */
    size_t prefetching;            /* strips whose tiles prefetch the part of B that comes next */
    size_t group;                  /* rows of A that are copied at a time, or 0 */
    int linear;                    /* gemm_linear runs the full strips */
    int packing;                   /* the first strip packs B as it goes */
    int beyond_l2;                 /* panels come from there, and L1 has few misses at a time */
    int half;                      /* with vectors half as wide */
    int direct_mode, packing_mode; /* ISO_DIRECT_... */
};
struct iso_gemm_strips iso_gemm_strips(const struct iso_gemm_plan *plan,
                                       const struct iso_gemm_machine *machine, size_t m, size_t n,
                                       size_t b_floats, int trans_b);

/* Rows of the next of these strips, where so many of the block's m rows are left. */
size_t iso_gemm_strip_rows(const struct iso_gemm_strips *s, const struct iso_gemm_plan *plan,
                           const struct iso_gemm_machine *machine, size_t m, size_t left);

/* How many of these strips are full, in m rows that are not packed by the first one. */
size_t iso_gemm_full_strips(const struct iso_gemm_strips *s, const struct iso_gemm_plan *plan,
                            const struct iso_gemm_machine *machine, size_t m);

/* Columns of the next part of these strips' B, where so many are left. */
size_t iso_gemm_part_columns(const struct iso_gemm_strips *s, size_t left);
/* At most, of a strip whose sums wait for its end. */
#define ISO_GEMM_STRIP_COLUMNS (ISO_GEMM_COLUMN_BLOCK + ISO_LINEAR_COLUMNS)

#endif
