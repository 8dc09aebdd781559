/* SPDX-License-Identifier: MIT
 *
 * Advanced SIMD with products of matrices of int8 and of BF16: Neoverse V1, N2, Apple M2 and later.
 */
#if !defined(__ARM_FEATURE_MATMUL_INT8) || !defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#error "compile with -march=armv8.2-a+i8mm+bf16"
#endif
#define ISO_ISA neon_bf16

#include "kernels.h"

#include <string.h>

#include "neon/vec.h"

#include "b16_tile.h"
#include "neon_i8mm/s8_tile.h"

#include "level.h"
