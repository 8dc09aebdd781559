/* SPDX-License-Identifier: MIT
 *
 * Included once by each <level>/<level>.c, after vec.h of its set, its own s8_tile.h, and, if it
 * has products of BF16, b16_tile.h, and of 4 bits, q4_tile.h: products of int8, those, and the
 * table that is the only symbol of the translation unit. A level that makes other use of the
 * templates has included them, and says what goes into the table.
 */
#ifndef LEVEL_GEMM_S8
#include "templates/lanes.h"

#include "templates/gemm_s8.h"
#define LEVEL_TILES 0
#define LEVEL_GEMM_S8 gemm_s8
#define LEVEL_S8_PEAK s8_peak
#define LEVEL_S8_PEAK_OPS S8_PEAK_OPS
#if defined(B16_MR)
#include "templates/wide_panels.h"

#include "templates/gemm_b16.h"
#include "templates/round_b16.h"
#define LEVEL_GEMM_B16 gemm_b16
#define LEVEL_B16_PEAK b16_peak
#define LEVEL_B16_PEAK_FLOPS B16_PEAK_FLOPS
#endif
#endif

#if defined(Q4_MR)
#include "templates/q_factors.h"
#include "templates/gemm_q_s8.h"
#define LEVEL_GEMM_Q_S8 gemm_q_s8
#else
#define LEVEL_GEMM_Q_S8 NULL
#endif

const struct iso_kernels ISO_PASTE(iso_kernels_, ISO_ISA) = {
    .name = ISO_TEXT(ISO_ISA),
    .isa = ISO_PASTE(ISO_ISA_, ISO_ISA),
    .tiles = LEVEL_TILES,
    .s8_flip = S8_FLIP,
    .s8_peak_ops = LEVEL_S8_PEAK_OPS,
    .gemm_s8 = LEVEL_GEMM_S8,
    .gemm_q_s8 = LEVEL_GEMM_Q_S8,
    .s8_peak = LEVEL_S8_PEAK,
#if defined(LEVEL_GEMM_B16)
    .b16_peak_flops = LEVEL_B16_PEAK_FLOPS,
    .round_b16 = round_b16,
    .gemm_b16 = LEVEL_GEMM_B16,
    .b16_peak = LEVEL_B16_PEAK,
#endif
};
