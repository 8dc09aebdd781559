/* SPDX-License-Identifier: MIT
 *
 * Products of int8 on Advanced SIMD with those of matrices: a vector of sums has 2 rows and 2
 * columns, and 8 steps at a time are added to it. scalar/s8_tile.h documents what each word means.
 *
 * Register budget of the largest tile: 16 sums + 4 of B + 1 of A, and what makes them.
 */
#define S8_ROWS 2
#define S8_PARTS 2
#define S8_STEP 8
#define S8_FLIP 0
#define S8_TALL 4
#define S8_WIDE 1
#define S8_SUMS 16
#define S8_EACH(X) X(4, 2, 1) X(2, 2, 1) X(1, 2, 1)
#define S8_WIDENS 0

typedef int32x4_t s8t;
typedef int8x16_t s8w, s8a;

static inline s8t s8_zero(void) { return vdupq_n_s32(0); }
static inline s8t s8_start(const int32_t *p) { return vld1q_s32(p); }
static inline s8t s8_add(s8t a, s8t b) { return vaddq_s32(a, b); }
/* Fours of steps of 4 columns, and those that follow them: each column's go side by side. */
static inline void s8_weights(s8w *w, const int8_t *b) {
    const int32x4_t first = vreinterpretq_s32_s8(vld1q_s8(b));
    const int32x4_t second = vreinterpretq_s32_s8(vld1q_s8(b + 4 * ISO_PANEL));
    w[0] = vreinterpretq_s8_s32(vzip1q_s32(first, second));
    w[1] = vreinterpretq_s8_s32(vzip2q_s32(first, second));
}
static inline s8a s8_row(const int8_t *a, size_t second) {
    return vcombine_s8(vld1_s8(a), vld1_s8(a + second));
}
static inline s8t s8_dot(s8t t, s8w w, s8a a) { return vmmlaq_s32(t, a, w); }
static inline void s8_floats(vf *rows, const s8t *t) {
    rows[0] = vcvtq_f32_s32(vcombine_s32(vget_low_s32(t[0]), vget_low_s32(t[1])));
    rows[1] = vcvtq_f32_s32(vcombine_s32(vget_high_s32(t[0]), vget_high_s32(t[1])));
}
