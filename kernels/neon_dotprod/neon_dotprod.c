/* SPDX-License-Identifier: MIT
 *
 * Advanced SIMD with dot products: Cortex-A76, Neoverse N1 and later.
 */
#if !defined(__ARM_FEATURE_DOTPROD)
#error "compile with -march=armv8.2-a+dotprod"
#endif
#define ISO_ISA neon_dotprod

#include "kernels.h"

#include <string.h>

#include "neon/vec.h"

#include "q4_tile.h"
#include "s8_tile.h"

#include "level.h"
