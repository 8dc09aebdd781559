/* SPDX-License-Identifier: MIT
 *
 * Weights of 4 and 8 bits times rows of int8 on Advanced SIMD with dot products: sums of 32 bits.
 * The rest is that of Advanced SIMD.
 */
#define Q4_DOT
#include "neon/q4_tile.h"

typedef int32x4_t q4t;
static inline q4t q4_begin(int32_t start) { return vdupq_n_s32(start); }
static inline q4t q4_dot(q4t t, q4w w, q4a a) { return vdotq_s32(t, w, a); }
static inline vf q4_floats(q4t t, int32_t start) {
    (void)start;
    return vcvtq_f32_s32(t);
}

typedef int32x4_t q8t;
static inline q8t q8_begin(int32_t start) {
    (void)start;
    return vdupq_n_s32(0);
}
static inline q8t q8_dot(q8t t, q8w low, q8w high, q4a of_low, q4a of_high) {
    return vdotq_s32(vdotq_s32(t, low, of_low), high, of_high);
}
static inline vf q8_floats(q8t t) { return vcvtq_f32_s32(t); }
