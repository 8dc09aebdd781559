/* SPDX-License-Identifier: MIT
 *
 * Products of int8 on Advanced SIMD without dot products: products of 16 bits, which are added to
 * sums of 32 in pairs. scalar/s8_tile.h documents what each word means. A vector of sums has two
 * for each of 2 columns.
 */
#define S8_ROWS 1
#define S8_PARTS 2
#define S8_STEP 4
#define S8_FLIP 0
#define S8_TALL 4
#define S8_WIDE 1
#define S8_SUMS 16
#define S8_EACH(X) X(4, 2, 1) X(2, 2, 1) X(1, 2, 1)
#define S8_WIDENS 0

typedef int32x4_t s8t;
typedef int8x8_t s8w, s8a;

static inline s8t s8_zero(void) { return vdupq_n_s32(0); }
static inline s8t s8_start(const int32_t *p) { return vld1q_s32(p); }
static inline s8t s8_add(s8t a, s8t b) { return vaddq_s32(a, b); }
static inline void s8_weights(s8w *w, const int8_t *b) {
    const int8x16_t v = vld1q_s8(b);
    w[0] = vget_low_s8(v), w[1] = vget_high_s8(v);
}
static inline s8a s8_row(const int8_t *a, size_t second) {
    int32_t four;
    (void)second;
    memcpy(&four, a, sizeof four);
    return vreinterpret_s8_s32(vdup_n_s32(four));
}
static inline s8t s8_dot(s8t t, s8w w, s8a a) { return vpadalq_s16(t, vmull_s8(w, a)); }
static inline void s8_floats(vf *rows, const s8t *t) {
    rows[0] = vcvtq_f32_s32(vpaddq_s32(t[0], t[1]));
}
typedef int32x4_t s8m;
#define S8_NONE vdupq_n_s32(0)
static inline s8m s8_most(s8m m, vf x) { return vmaxq_s32(m, vreinterpretq_s32_f32(vabsq_f32(x))); }
static inline uint32_t s8_most_of(s8m m) { return (uint32_t)vmaxvq_s32(m); }
#define S8_FOUR 4
static inline void s8_store(int8_t *q, const vf *x, int flip) {
    int16x4_t half[4];
    ISO_UNROLLED (e, 4)
        half[e] = vmovn_s32(vcvtnq_s32_f32(x[e]));
    const int8x16_t b = vcombine_s8(vmovn_s16(vcombine_s16(half[0], half[1])),
                                    vmovn_s16(vcombine_s16(half[2], half[3])));
    vst1q_s8(q, veorq_s8(b, vdupq_n_s8((int8_t)flip)));
}
