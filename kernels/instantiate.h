/* SPDX-License-Identifier: MIT
 *
 * Included once by each <isa>/<isa>.c, after vec.h and gemm_tile.h: the algorithms, and the table
 * that is the only symbol of the translation unit.
 */
#include "templates/tile.h"
#include "templates/math.h"
#include "templates/lanes.h"
#include "templates/eltwise.h"
#include "templates/rope.h"
#include "templates/gemm_along.h"
#include "templates/gemm_strip.h"
#include "templates/gemm.h"
#include "templates/gemm_direct.h"
#include "templates/gemm_linear.h"
#include "templates/gemm_bt.h"
#include "templates/wide_panels.h"
#include "templates/gemm_w16.h"
#include "templates/q_factors.h"
#include "templates/gemm_q.h"
#include "templates/quantize_s8.h"
#include "templates/gemm_s8.h"
#include "templates/quantize_blocks.h"
#include "templates/gemm_q_s8.h"
#include "templates/gemv.h"
#include "templates/softmax.h"
#include "templates/norm.h"
#include "templates/attention.h"
#include "templates/attention_w16.h"

const struct iso_kernels ISO_PASTE(iso_kernels_, ISO_ISA) = {
    .name = ISO_TEXT(ISO_ISA),
    .isa = ISO_PASTE(ISO_ISA_, ISO_ISA),
    .mr = GEMM_MR,
    .direct_mr = GEMM_DIRECT_MR,
    .direct_tall = GEMM_DIRECT_TALL,
    .next_rows = GEMM_NEXT_ROWS,
    .w16_mr = GEMM_W16_MR,
    .q_mr = GEMM_Q_MR,
    .s8_flip = S8_FLIP,
    .rows_in_place_bt = GEMM_ROWS_IN_PLACE_BT,
    .aliased = GEMM_ALIASED,
    .pairs_across = GEMM_LINES_BT,
    .vector_floats = VF_N,
    .half = GEMM_HALF,
    .fma_peak_flops = 2 * VF_N * VF_FMA_CHAINS,
    .s8_peak_ops = S8_PEAK_OPS,
#define KERNEL(type, kernel, args) .kernel = kernel,
#define NATIVE(type, kernel, args)
#include "kernels.def"
#undef KERNEL
};
