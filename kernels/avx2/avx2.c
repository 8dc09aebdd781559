/* SPDX-License-Identifier: MIT
 *
 * AVX2 with FMA: Haswell, Zen and later.
 */
#if !defined(__AVX2__) || !defined(__FMA__)
#error "compile with -mavx2 -mfma"
#endif
#define ISO_ISA avx2

#include "kernels.h"

#include <string.h>

#include "vec.h"

#include "gemm_tile.h"

#include "instantiate.h"
