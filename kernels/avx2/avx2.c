/* SPDX-License-Identifier: MIT
 *
 * AVX2 with FMA and F16C: Haswell, Zen and later.
 */
#if !defined(__AVX2__) || !defined(__FMA__) || !defined(__F16C__)
#error "compile with -mavx2 -mfma -mf16c"
#endif
#define ISO_ISA avx2

#include "kernels.h"

#include <string.h>

#include "vec.h"

#include "gemm_tile.h"
#include "q4_tile.h"
#include "s8_tile.h"

#include "instantiate.h"
