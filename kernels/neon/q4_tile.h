/* SPDX-License-Identifier: MIT
 *
 * Weights of 4 bits times rows of int8 on Advanced SIMD: sums of products, 15 * 127 each at most,
 * have room in 16 bits, one for each of the four steps of a word's half, 32 steps' worth.
 * scalar/q4_tile.h documents what each word means.
 */
#define Q4_MR 4
#define Q4_EACH(X) X(1) X(2) X(3) X(4)
#define Q4_PANELS 1
#define Q4_VECTORS(m) ((m) == 1 ? 4 : 2)

typedef int8x16_t q4w, q4a;
static inline void q4_numbers(q4w *low, q4w *high, const uint32_t *b, uint32_t flip) {
    const uint8x16_t w = vreinterpretq_u8_u32(veorq_u32(vld1q_u32(b), vdupq_n_u32(flip)));
    *low = vreinterpretq_s8_u8(vandq_u8(w, vdupq_n_u8(15)));
    *high = vreinterpretq_s8_u8(vshrq_n_u8(w, 4));
}
static inline q4a q4_row(const int8_t *a) {
    int32_t four;
    memcpy(&four, a, sizeof four);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
}
#ifndef Q4_DOT /* who defines it has dot products */
typedef struct q4t {
    int16x8_t half[2];
} q4t;
static inline q4t q4_begin(int32_t start) {
    const q4t t = {{vdupq_n_s16(0), vdupq_n_s16(0)}};
    (void)start;
    return t;
}
static inline q4t q4_dot(q4t t, q4w w, q4a a) {
    t.half[0] = vmlal_s8(t.half[0], vget_low_s8(w), vget_low_s8(a));
    t.half[1] = vmlal_high_s8(t.half[1], w, a);
    return t;
}
static inline vf q4_floats(q4t t, int32_t start) {
    const int32x4_t sums = vpaddq_s32(vpaddlq_s16(t.half[0]), vpaddlq_s16(t.half[1]));
    return vcvtq_f32_s32(vaddq_s32(sums, vdupq_n_s32(start)));
}
#endif
