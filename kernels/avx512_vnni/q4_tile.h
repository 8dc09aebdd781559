/* SPDX-License-Identifier: MIT
 *
 * Weights of 4 bits times rows of int8 on AVX-512 with VNNI: sums of 32 bits. The rest is that of
 * AVX-512.
 */
#define Q4_DOT
#include "avx512/q4_tile.h"

typedef __m512i q4t;
static inline q4t q4_begin(int32_t start) { return _mm512_set1_epi32(start); }
static inline q4t q4_dot(q4t t, q4w w, q4a a) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(t) : "v"(w), "v"(a));
    return t;
}
static inline vf q4_floats(q4t t, int32_t start) {
    (void)start;
    return _mm512_cvtepi32_ps(t);
}
