/* SPDX-License-Identifier: MIT
 *
 * Included once by each <level>/<level>.c, after vec.h of its set and its own s8_tile.h: products
 * of int8, and the table that is the only symbol of the translation unit.
 */
#include "templates/lanes.h"
#include "templates/gemm_s8.h"

const struct iso_kernels ISO_PASTE(iso_kernels_, ISO_ISA) = {
    .name = ISO_TEXT(ISO_ISA),
    .isa = ISO_PASTE(ISO_ISA_, ISO_ISA),
    .s8_flip = S8_FLIP,
    .s8_peak_ops = S8_PEAK_OPS,
    .gemm_s8 = gemm_s8,
    .s8_peak = s8_peak,
};
