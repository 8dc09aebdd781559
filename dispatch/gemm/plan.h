/* SPDX-License-Identifier: MIT
 *
 * The plan of a matrix product: a pure function of its shape, the kernels and the caches. Nothing
 * in it changes a result; all plans of a product give the same bits (docs/numerics.md).
 */
#ifndef ISOBIT_GEMM_PLAN_H
#define ISOBIT_GEMM_PLAN_H

#include "../check.h"
#include "../tuning.h"

#include <isobit/ops.h>

struct iso_gemm_shape {
    size_t m, n, k; /* all > 0 */
    size_t lda, ldb;
    size_t threads;
    int trans_a, trans_b;
    int panels;   /* B is packed already, see iso_pack_f32 */
    int w16;      /* and its elements have 16 bits, see iso_pack_w16 */
    int b16;      /* these are BF16, and so is A when it is multiplied: native numerics */
    int q;        /* or 4 or 8, so many, in groups, see iso_pack_q */
    int own_sums; /* sums cannot wait in C, which the epilogue reads */
    int adds;     /* and that only to add them: alpha and beta are 1, there is nothing else */
};

enum iso_gemm_way {
    ISO_GEMM_PANELS,       /* B in packed panels */
    ISO_GEMM_IN_PLACE,     /* a row-major B, read where it lies */
    ISO_GEMM_PREFETCH,     /* the same, prefetched into L2 */
    ISO_GEMM_STREAMS,      /* the same, along its rows, several of them at a time */
    ISO_GEMM_PACK,         /* each task packs the blocks of B that it needs */
    ISO_GEMM_TRANSPOSED_B, /* a transposed B, read where it lies and transposed in registers */
    ISO_GEMM_TRANSPOSED_C, /* a transposed B: C' = B A', which packs A and transposes C */
    ISO_GEMM_W16,          /* B in panels of 16-bit elements, widened in registers */
    ISO_GEMM_B16,          /* the same B, and a block of A at a time that is rounded to BF16 */
    ISO_GEMM_Q,            /* B in panels of groups, dequantised in registers */
    ISO_GEMM_WIDEN         /* B in panels of either kind: each task makes floats of blocks of it */
};

struct iso_gemm_plan {
    enum iso_gemm_way way;
    int a_in_place;       /* a row-major A, read where it lies */
    int strips_in_place;  /* a transposed A, likewise: its rows are the steps of strips */
    int strip_sums;       /* own sums wait for the end of their strip only: k is one block */
    int adds;             /* tiles add the sums to C, and that is all of the epilogue */
    size_t rows, columns; /* of a block, the unit of work of a task */
    size_t tasks;
    size_t task_floats, b_floats, a_floats; /* scratch of each task: for all, packed B, packed A */
    int next;            /* of a transposed B: ISO_DIRECT_NEXT or _AHEAD, _WHOLE */
    size_t group;        /* rows of A that are copied into L2, where B passes them; 0: none */
    size_t mr;           /* rows of a strip, at most */
    size_t streams;      /* STREAMS: rows of B at a time; 1: all of them in one run */
    int half;            /* STREAMS: with vectors half as wide */
    int by_k;            /* in one run: tasks take blocks of k, */
    size_t block_floats; /* with so much scratch for each: sums, a strip of A */
};

struct iso_gemm_plan iso_gemm_plan(const struct iso_gemm_shape *shape,
                                   const struct iso_gemm_machine *machine);

/*
 * The scratch that callers are told to bring, before C and ldb are known: enough for every plan of
 * this product, and of one with fewer rows and the same B. `sums`: there may be own sums.
 */
iso_status iso_gemm_promise(size_t *floats, const struct iso_gemm_shape *shape,
                            const struct iso_gemm_machine *machine, int sums);

/* Whether it is one block without scratch. */
static inline int iso_gemm_is_single(const struct iso_gemm_plan *plan, size_t m, size_t n) {
    return plan->tasks == 1 && plan->task_floats == 0 && m <= plan->rows && n <= plan->columns;
}

/* What a text about a plan says: where B comes from, and most rows of A that read it in place. */
enum iso_gemm_level { ISO_GEMM_NEAR, ISO_GEMM_L3, ISO_GEMM_MEMORY };
enum iso_gemm_level iso_gemm_level_of_b(const struct iso_gemm_shape *shape,
                                        const struct iso_gemm_machine *machine);
size_t iso_gemm_rows_in_place(const struct iso_gemm_shape *shape,
                              const struct iso_gemm_machine *machine);

/* TRANSPOSED_C: of m rows so many go into lanes. */
size_t iso_gemm_rows_in_lanes(const struct iso_kernels *kernels, size_t m, size_t ldb);

#endif
