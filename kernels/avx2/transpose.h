/* SPDX-License-Identifier: MIT
 *
 * The transposition of 8 rows by 4 steps, in registers of 256 bits; AVX-512 packs with it too.
 */
#ifndef ISOBIT_TRANSPOSE_H
#define ISOBIT_TRANSPOSE_H

#include <immintrin.h>

/* out[j] lane i = row i at step j: rows 0 .. 3 are low, 4 .. 7 are high. Rows i and i + 4 make the
 * halves of a register: what is left to do stays inside of the halves. */
static inline __attribute__((always_inline)) void transpose_8x4(__m256 *out, const __m128 *low,
                                                                const __m128 *high) {
    __m256 r[4], t[4];
    ISO_UNROLLED (i, 4)
        r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(low[i]), high[i], 1);
    t[0] = _mm256_unpacklo_ps(r[0], r[1]), t[1] = _mm256_unpackhi_ps(r[0], r[1]);
    t[2] = _mm256_unpacklo_ps(r[2], r[3]), t[3] = _mm256_unpackhi_ps(r[2], r[3]);
    out[0] = _mm256_shuffle_ps(t[0], t[2], 0x44), out[1] = _mm256_shuffle_ps(t[0], t[2], 0xee);
    out[2] = _mm256_shuffle_ps(t[1], t[3], 0x44), out[3] = _mm256_shuffle_ps(t[1], t[3], 0xee);
}

#endif
