/* SPDX-License-Identifier: MIT
 *
 * What a set's gemm_tile.h says of its tiles, here with what holds where it says nothing. m is rows
 * of A, a constant wherever these are used. Figures: docs/measured/tried.md.
 *
 *   GEMM_MR                rows of the largest tile of gemm_strip, where A is [step][m]
 *   GEMM_GROUP(m)          panels of 16 columns that a tile of m rows has in registers
 *   GEMM_SUMS              registers that hold sums, at most, in any tile
 *   GEMM_DIRECT_MR         rows of gemm_direct, each of which takes a register for its address
 *   GEMM_VECTORS_BT(m)     vectors of columns of a transposed B at a time: rows in memory
 *   GEMM_ROWS_IN_PLACE_BT  rows, at most, that transpose it in registers
 *   GEMM_ROWS_ALONG        rows, at most, that go along the rows of B, outside of streams
 *   GEMM_W16_MR, _Q_MR     rows, at most, that widen 16 bits, or dequantise, in registers
 *   GEMM_PAIRS(m)          pairs of vectors of a tile of 16-bit elements (gemm_w16.h)
 *   GEMM_VECTORS_Q(m)      vectors of columns that a tile dequantises
 *   GEMM_KINDS_Q           kernels for groups with and without offsets (gemm_q.h)
 */

/* The same as GEMM_GROUP, in vectors of columns. */
#ifndef GEMM_VECTORS
#define GEMM_VECTORS(m) (ISO_PANEL / VF_N * GEMM_GROUP(m))
#endif

/* Rows of gemm_direct where all columns are one vector, which leaves registers for more sums. */
#ifndef GEMM_DIRECT_TALL
#define GEMM_DIRECT_TALL GEMM_DIRECT_MR
#endif

/* Rows of a row-major B alias, that is share few sets of the caches, where its ld is a multiple of
 * so many floats: 4 KiB, a way of L1. */
#ifndef GEMM_ALIASED
#define GEMM_ALIASED 1024
#endif

/* Steps ahead that gemm_direct prefetches rows of A, and then those that follow them; 0: it does
 * not. */
#ifndef GEMM_NEXT_AHEAD
#define GEMM_NEXT_AHEAD 0
#endif

/* Rows of gemm_direct that do so where all columns are one vector. */
#ifndef GEMM_NEXT_ROWS
#define GEMM_NEXT_ROWS GEMM_DIRECT_TALL
#endif

/* Rows of A, at most, for which gemm_strip has a loop for a B that is read in one run. Of one row
 * some sums are in registers, which 16 are too few for. */
#ifndef GEMM_BY_ROW
#define GEMM_BY_ROW 0
#endif

/* Whether lines of a transposed B whose rows alias are copied before they are transposed: where a
 * transposition takes a part of a line, they would be evicted before the next one. */
#ifndef GEMM_LINES_BT
#define GEMM_LINES_BT 0
#endif

/* Rows, at most, for which the first half of k for some columns of a transposed B is interleaved
 * with the second half for those before (gemm_bt.h). */
#ifndef GEMM_HALVES_BT
#define GEMM_HALVES_BT 0
#endif

/* Whether there is a gemm_linear that prefetches several runs of memory side by side. */
#ifndef GEMM_INTERLEAVED
#define GEMM_INTERLEAVED 0
#endif

/* Whether the 8 steps of a word of 4-bit numbers are a loop: less code, and fewer registers. */
#ifndef GEMM_ROLLED_Q
#define GEMM_ROLLED_Q 1
#endif

/* The kernels of the set with vectors half as wide, see half_rows in dispatch/tuning.def. */
#ifndef GEMM_HALF
#define GEMM_HALF NULL
#endif
