/* SPDX-License-Identifier: MIT
 *
 * AVX-512 with AMX: Sapphire Rapids and later. Rows that are too few for tiles go through VNNI.
 */
#if !defined(ISO_ISA) /* tests/test_amx.c has tiles of its own, and another name */
#if !defined(__AMX_INT8__) && !defined(__AMXINT8__) /* the name in clang 14 */
#error "compile with -mamx-tile -mamx-int8 -mamx-bf16"
#endif
#define ISO_ISA avx512_amx
#include "tiles.h"
#endif
#if !defined(__AVX512VNNI__) || !defined(__AVX512BF16__)
#error "compile with -mavx512vnni -mavx512bf16"
#endif

#include "kernels.h"

#include <string.h>

#include "avx512/vec.h"

#include "avx512_bf16/b16_tile.h"
#include "avx512_vnni/s8_tile.h"
#undef S8_WIDE
#define S8_WIDE 1 /* for few rows */
#define S8_NO_ENTRY

#include "templates/lanes.h"

#include "templates/gemm_s8.h"
#include "templates/round_b16.h"

#include "shapes.h"

#include "s8_tiles.h"

#include "b16_tiles.h"

#define LEVEL_TILES 1
#define LEVEL_GEMM_S8 amx_gemm_s8
#define LEVEL_S8_PEAK amx_s8_peak
#define LEVEL_S8_PEAK_OPS AMX_S8_PEAK_OPS
#define LEVEL_GEMM_B16 amx_gemm_b16
#define LEVEL_B16_PEAK amx_b16_peak
#define LEVEL_B16_PEAK_FLOPS AMX_B16_PEAK_FLOPS
#include "level.h"
