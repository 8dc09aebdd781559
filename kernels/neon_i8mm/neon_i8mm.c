/* SPDX-License-Identifier: MIT
 *
 * Advanced SIMD with products of matrices of int8: Neoverse V1, N2 and later.
 */
#if !defined(__ARM_FEATURE_MATMUL_INT8)
#error "compile with -march=armv8.2-a+i8mm"
#endif
#define ISO_ISA neon_i8mm

#include "kernels.h"

#include <string.h>

#include "neon/vec.h"

#include "s8_tile.h"

#include "level.h"
