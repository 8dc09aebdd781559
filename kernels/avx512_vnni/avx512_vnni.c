/* SPDX-License-Identifier: MIT
 *
 * AVX-512 with VNNI: Cascade Lake, Ice Lake, Zen 4 and later.
 */
#if !defined(__AVX512VNNI__)
#error "compile with -mavx512vnni"
#endif
#define ISO_ISA avx512_vnni

#include "kernels.h"

#include <string.h>

#include "avx512/vec.h"

#include "q4_tile.h"
#include "s8_tile.h"

#include "level.h"
