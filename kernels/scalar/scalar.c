/* SPDX-License-Identifier: MIT
 *
 * The baseline: no vector flags.
 */
#define ISO_ISA scalar

#include "kernels.h"

#include <string.h>

#include "vec.h"

#include "gemm_tile.h"
#include "q4_tile.h"
#include "s8_tile.h"

#include "instantiate.h"
