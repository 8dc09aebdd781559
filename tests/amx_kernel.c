/* SPDX-License-Identifier: MIT
 *
 * The kernels of avx512_amx, as test_amx.c wants them; compiled with the flags of avx512_bf16.
 */
#include "amx_tiles.h"
#include "kernels.h"

#define ISO_ISA amx_emulated
#define ISO_ISA_amx_emulated ISO_ISA_avx512_amx
extern const struct iso_kernels iso_kernels_amx_emulated;

#include "avx512_amx/avx512_amx.c"
