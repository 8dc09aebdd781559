/* SPDX-License-Identifier: MIT
 *
 * AVX2 with AVX-VNNI: Alder Lake and later, where AVX-512 is not to be had.
 */
#if !defined(__AVXVNNI__)
#error "compile with -mavxvnni"
#endif
#define ISO_ISA avx2_vnni

#include "kernels.h"

#include <string.h>

#include "avx2/vec.h"

#include "q4_tile.h"
#include "s8_tile.h"

#include "level.h"
