/* SPDX-License-Identifier: MIT
 *
 * A matrix product that runs, shared by the ways (block.c, streams.c, transposed_c.c, narrow.c) and
 * by the entry points (../gemm.c, ../linear.c).
 */
#ifndef ISOBIT_GEMM_PRODUCT_H
#define ISOBIT_GEMM_PRODUCT_H

#include "plan.h"

#include <stdatomic.h>

#define ISO_LOCAL_SCRATCH 1024 /* floats that are taken from the stack */

struct iso_product {
    struct iso_gemm_machine machine;
    struct iso_gemm_plan plan;
    size_t m, n, k;
    float *c;
    size_t ldc;
    const float *a; /* element (i, p) at a[i * ai + p * ap] */
    size_t ai, ap;
    const float *b; /* column j at b[j/16 * bps + j%16], next p bs further; [n][bps] if trans_b */
    size_t bs, bps;
    int trans_b;
    const struct iso_weights *w; /* instead of b, if they have fewer bits: ../packed_weights.h */
    const struct iso_epilogue *e;
    float *scratch; /* of all tasks */
    size_t owners;  /* block i belongs to owner i % owners, who has taken so many of its own: */
    atomic_size_t *taken;
};

/* Whether the epilogue reads what lies where the sums would: then they wait in scratch. */
static inline int iso_needs_own_sums(const struct iso_epilogue *e, const float *c) {
    return e->beta != 0.0f || (e->residual && e->residual == c);
}

/* Rows i .. i+m, columns j .. j+n of C from their sums. */
void iso_finish(const struct iso_product *t, const struct iso_epilogue *e, const float *sums,
                size_t ld, size_t i, size_t j, size_t m, size_t n);

/* C = epilogue of zeros: alpha or k is 0, so A and B are not read. */
void iso_finish_zeros(const struct iso_product *t);

/* Rows i .. i+m, columns j .. j+n of C, for all k; `packed`: A is there from the block before. */
void iso_product_by_way(const struct iso_product *t, size_t i, size_t m, size_t j, size_t n,
                        float *scratch, int packed);
void iso_product_block(const struct iso_product *t, size_t i, size_t m, size_t j, size_t n,
                       float *scratch);
/* All rows. */
void iso_product_streams(const struct iso_product *t, size_t j, size_t n, float *scratch);
/* All rows and columns: the sums of a block of k; those of all blocks together. */
void iso_product_streams_block(const struct iso_product *t, size_t block);
void iso_product_streams_sum(const struct iso_product *t);
void iso_product_transposed_c(const struct iso_product *t, size_t j, size_t n, float *scratch,
                              int packed);
/* The last of these columns, where iso_gemm_is_narrow says so, with n floats of scratch for each of
 * a block of k. Returns how many. */
size_t iso_product_narrow(const struct iso_product *t, size_t i, size_t m, size_t j, size_t n,
                          float *scratch);

/* Runs the plan, in the caller's workspace or in memory of its own. */
iso_status iso_product_run(const iso_context *context, struct iso_product *t);
/* Refuses a workspace that is smaller than iso_gemm_promise says, also where less would do. */
iso_status iso_check_workspace(const iso_context *context, const struct iso_gemm_shape *shape,
                               const struct iso_gemm_machine *machine, int sums);

#endif
