/* SPDX-License-Identifier: MIT
 *
 * Included once by each <isa>/<isa>.c, after vec.h and gemm_tile.h: the algorithms, and the table
 * that is the only symbol of the translation unit.
 */
#include "templates/math.h"
#include "templates/lanes.h"
#include "templates/eltwise.h"
#include "templates/rope.h"
#include "templates/gemm_along.h"
#include "templates/gemm_strip.h"
#include "templates/gemm.h"
#include "templates/gemm_direct.h"
#include "templates/gemv.h"
#include "templates/softmax.h"
#include "templates/norm.h"
#include "templates/attention.h"

#define ISO_PASTE_(a, b) a##b
#define ISO_PASTE(a, b) ISO_PASTE_(a, b)
#define ISO_TEXT_(a) #a
#define ISO_TEXT(a) ISO_TEXT_(a)

const struct iso_kernels ISO_PASTE(iso_kernels_, ISO_ISA) = {
    .name = ISO_TEXT(ISO_ISA),
    .mr = GEMM_MR,
    .direct_mr = GEMM_DIRECT_MR,
    .direct_tall = GEMM_DIRECT_TALL,
    .rows_in_place = GEMM_ROWS_IN_PLACE,
    .rows_in_place_bt = GEMM_ROWS_IN_PLACE_BT,
    .floats_in_place = GEMM_FLOATS_IN_PLACE,
    .aliased = GEMM_ALIASED,
    .rows_aliased = GEMM_ROWS_ALIASED,
    .rows_crowded = GEMM_ROWS_CROWDED,
    .rows_large = GEMM_ROWS_LARGE,
    .rows_memory = GEMM_ROWS_MEMORY,
    .rows_slow = GEMM_ROWS_SLOW,
    .rows_apart = GEMM_ROWS_APART,
    .aliased_mr = GEMM_ALIASED_MR,
    .far_mr = GEMM_FAR_MR,
    .far_steps = GEMM_FAR_STEPS,
    .pairs_across = GEMM_LINES_BT,
    .vector_floats = VF_N,
    .fma_peak_flops = 2 * VF_N * VF_FMA_CHAINS,
#define KERNEL(type, kernel, args) .kernel = kernel,
#include "kernels.def"
#undef KERNEL
};
