/* SPDX-License-Identifier: MIT
 *
 * Products of int8 on Advanced SIMD with dot products. A vector of sums has 4 columns.
 * scalar/s8_tile.h documents what each word means.
 *
 * Register budget of the largest tile: 24 sums + 4 of B + the broadcast of A: 29 of 32.
 */
#define S8_ROWS 1
#define S8_PARTS 1
#define S8_STEP 4
#define S8_FLIP 0
#define S8_TALL 6
#define S8_WIDE 1
#define S8_SUMS 24
#define S8_EACH(X) X(6, 4, 1) X(4, 4, 1) X(2, 4, 1) X(1, 4, 2)
#define S8_WIDENS 0

typedef int32x4_t s8t;
typedef int8x16_t s8w, s8a;

static inline s8t s8_zero(void) { return vdupq_n_s32(0); }
static inline s8t s8_start(const int32_t *p) { return vld1q_s32(p); }
static inline s8t s8_add(s8t a, s8t b) { return vaddq_s32(a, b); }
static inline void s8_weights(s8w *w, const int8_t *b) { *w = vld1q_s8(b); }
static inline s8a s8_row(const int8_t *a, size_t second) {
    int32_t four;
    (void)second;
    memcpy(&four, a, sizeof four);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
}
static inline s8t s8_dot(s8t t, s8w w, s8a a) { return vdotq_s32(t, w, a); }
static inline void s8_floats(vf *rows, const s8t *t) { rows[0] = vcvtq_f32_s32(t[0]); }
