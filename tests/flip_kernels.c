/* SPDX-License-Identifier: MIT
 *
 * The kernels of the scalar set with each arithmetic operation a site of flip.h. Those of the
 * vocabulary are wrapped here; for those in plain C golden.cmake makes copies of the sources in
 * which they are, and this file is compiled with these copies.
 */
#define ISO_ISA flip
#define ISO_ISA_flip ISO_ISA_scalar /* plans are those of this set */

#include "kernels.h"

#include <string.h>

#include "scalar/vec.h"

#include "flip.h"

/* A macro is not expanded again within itself: the functions of vec.h are called. */
#define vf_add(a, b) FLIP(vf_add(a, b), "add")
#define vf_sub(a, b) FLIP(vf_sub(a, b), "sub")
#define vf_mul(a, b) FLIP(vf_mul(a, b), "mul")
#define vf_div(a, b) FLIP(vf_div(a, b), "div")
#define vf_fma(a, b, c) FLIP(vf_fma(a, b, c), "fma")
#define fma_one(a, b, c) FLIP(fma_one(a, b, c), "fma")
#define fma_exact(a, b, c) FLIP(fma_exact(a, b, c), "fma")
#define vf_log(x) FLIP(vf_log(x), "log")
#define vf_ldexp(x, n) FLIP(vf_ldexp(x, n), "ldexp")
#define vf_ldexp_normal(x, n, t) FLIP(vf_ldexp_normal(x, n, t), "ldexp")
#define vf_ldexp_down(x, n, t) FLIP(vf_ldexp_down(x, n, t), "ldexp")

#include "scalar/gemm_tile.h"
#include "scalar/q4_tile.h"
#include "scalar/s8_tile.h"

#include "instantiate.h"
