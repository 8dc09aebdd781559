/* SPDX-License-Identifier: MIT
 *
 * Weights of 4 and 8 bits times rows of int8 on AVX2 with VNNI: sums of 32 bits. The rest is that
 * of AVX2.
 */
#define Q4_DOT
#define Q8_FLIP 0x80
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

/* Weights of 8 bits are 128 more than they mean, too: their sign is flipped. */
static inline q8t q8_begin(int32_t start) { return _mm256_slli_epi32(q4_begin(start), 4); }
static inline q8t q8_dot(q8t t, q8w low, q8w high, q4a of_low, q4a of_high) {
    return q4_dot(q4_dot(t, low, of_low), high, of_high);
}
static inline vf q8_floats(q8t t) { return q4_floats(t, 0); }
