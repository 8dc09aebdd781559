/* SPDX-License-Identifier: MIT
 *
 * AVX-512 F, BW, DQ, VL: Skylake-X, Zen 4 and later.
 */
#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512DQ__) ||                   \
    !defined(__AVX512VL__)
#error "compile with -mavx512f -mavx512bw -mavx512dq -mavx512vl"
#endif
#define ISO_ISA avx512

#include "kernels.h"

#include <string.h>

#include "vec.h"

#include "gemm_tile.h"
#include "q4_tile.h"
#include "s8_tile.h"

#include "instantiate.h"
