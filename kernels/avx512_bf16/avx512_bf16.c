/* SPDX-License-Identifier: MIT
 *
 * AVX-512 with VNNI and products of BF16: Cooper Lake, Sapphire Rapids, Zen 4 and later.
 */
#if !defined(__AVX512VNNI__) || !defined(__AVX512BF16__)
#error "compile with -mavx512vnni -mavx512bf16"
#endif
#define ISO_ISA avx512_bf16

#include "kernels.h"

#include <string.h>

#include "avx512/vec.h"

#include "avx512_vnni/s8_tile.h"
#include "b16_tile.h"

#include "level.h"
