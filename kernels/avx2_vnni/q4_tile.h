/* SPDX-License-Identifier: MIT
 *
 * Weights of 4 bits times rows of int8 on AVX2 with VNNI: sums of 32 bits. The rest is that of
 * AVX2.
 */
#define Q4_DOT
#include "avx2/q4_tile.h"

typedef __m256i q4t;
static inline q4t q4_begin(int32_t start) { return _mm256_set1_epi32(start); }
static inline q4t q4_dot(q4t t, q4w w, q4a a) {
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(t) : "x"(w), "x"(a));
    return t;
}
static inline vf q4_floats(q4t t, int32_t start) {
    (void)start;
    return _mm256_cvtepi32_ps(t);
}
