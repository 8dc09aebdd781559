/* SPDX-License-Identifier: MIT
 *
 * Weights of 4 and 8 bits times rows of int8 on Advanced SIMD: sums of products of 4 bits, 15 * 127
 * each at most, have room in 16 bits, one for each of the four steps of a word's half, 32 steps'
 * worth. Of 8 bits two products have, 128 * 127 each at most. scalar/q4_tile.h documents what each
 * word means.
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

#define Q8_WORDS 1
#define Q8_DIRECT 1
#define Q8_EACH(X) X(1)

typedef int8x16_t q8w;
/* Four bytes of each of 16 columns. */
ISO_INLINE void q8_fours(q8w *to, uint8x16_t a, uint8x16_t b, uint8x16_t c, uint8x16_t d) {
    const uint8x16x2_t ab = vzipq_u8(a, b), cd = vzipq_u8(c, d);
    ISO_UNROLLED (i, 2) {
        const uint16x8x2_t all =
            vzipq_u16(vreinterpretq_u16_u8(ab.val[i]), vreinterpretq_u16_u8(cd.val[i]));
        to[2 * i] = vreinterpretq_s8_u16(all.val[0]);
        to[2 * i + 1] = vreinterpretq_s8_u16(all.val[1]);
    }
}
ISO_INLINE void q8_numbers(q8w *low, q8w *high, const uint32_t *b) {
    uint8x16_t step[ISO_Q_STEPS];
    ISO_UNROLLED (i, ISO_Q_STEPS)
        step[i] = vreinterpretq_u8_u32(vld1q_u32(b + 4 * i));
    q8_fours(low, step[7], step[5], step[3], step[1]);
    q8_fours(high, step[6], step[4], step[2], step[0]);
}
static inline void q8_store(uint32_t *words, q8w w) { vst1q_u32(words, vreinterpretq_u32_s8(w)); }
static inline q8w q8_load(const uint32_t *words) { return vreinterpretq_s8_u32(vld1q_u32(words)); }
#ifndef Q4_DOT
typedef struct q8t {
    int32x4_t half[2];
} q8t;
static inline q8t q8_begin(int32_t start) {
    const q8t t = {{vdupq_n_s32(0), vdupq_n_s32(0)}};
    (void)start;
    return t;
}
static inline q8t q8_dot(q8t t, q8w low, q8w high, q4a of_low, q4a of_high) {
    const int16x8_t first = vmull_s8(vget_low_s8(low), vget_low_s8(of_low));
    const int16x8_t second = vmull_high_s8(low, of_low);
    t.half[0] = vpadalq_s16(t.half[0], vmlal_s8(first, vget_low_s8(high), vget_low_s8(of_high)));
    t.half[1] = vpadalq_s16(t.half[1], vmlal_high_s8(second, high, of_high));
    return t;
}
static inline vf q8_floats(q8t t) { return vcvtq_f32_s32(vpaddq_s32(t.half[0], t.half[1])); }
#endif
