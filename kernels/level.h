/* SPDX-License-Identifier: MIT
 *
 * Included once by each <level>/<level>.c, after vec.h of its set and its own s8_tile.h: products
 * of int8, and the table that is the only symbol of the translation unit. A level that makes other
 * use of the template has included it, and says what goes into the table.
 */
#ifndef LEVEL_GEMM_S8
#include "templates/lanes.h"

#include "templates/gemm_s8.h"
#define LEVEL_TILES 0
#define LEVEL_GEMM_S8 gemm_s8
#define LEVEL_S8_PEAK s8_peak
#define LEVEL_S8_PEAK_OPS S8_PEAK_OPS
#endif

const struct iso_kernels ISO_PASTE(iso_kernels_, ISO_ISA) = {
    .name = ISO_TEXT(ISO_ISA),
    .isa = ISO_PASTE(ISO_ISA_, ISO_ISA),
    .tiles = LEVEL_TILES,
    .s8_flip = S8_FLIP,
    .s8_peak_ops = LEVEL_S8_PEAK_OPS,
    .gemm_s8 = LEVEL_GEMM_S8,
    .s8_peak = LEVEL_S8_PEAK,
};
