/* SPDX-License-Identifier: MIT
 *
 * Advanced SIMD of aarch64, which every such CPU has.
 */
#if !defined(__aarch64__)
#error "NEON kernels are for aarch64"
#endif
#define ISO_ISA neon

#include "kernels.h"

#include <string.h>

#include "vec.h"

#include "gemm_tile.h"
#include "q4_tile.h"
#include "s8_tile.h"

#include "instantiate.h"
