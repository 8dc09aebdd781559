/* SPDX-License-Identifier: MIT
 *
 * Products of BF16 on Advanced SIMD, with those of matrices: a vector of sums has 2 rows and 2
 * columns, and 4 steps at a time are added to it. avx512_bf16/b16_tile.h documents what each word
 * means.
 *
 * Register budget of the largest tile: 16 sums + 4 of B + 1 of A, and 8 that B is made of. Four
 * steps have 16 products for 8 loads and 8 other instructions.
 */
#define B16_ROWS 2
#define B16_PARTS 2
#define B16_STEP 4
#define B16_MR 8
#define B16_SUMS 16
#define B16_CHUNKS(m) ((m) <= 2 ? 4 : (m) <= 4 ? 2 : 1)
#define B16_EACH(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)

typedef float32x4_t b16t;
typedef bfloat16x8_t b16w, b16a;

static inline b16t b16_zero(void) { return vdupq_n_f32(0); }
static inline b16t b16_add(b16t a, b16t b) { return vaddq_f32(a, b); }
/* Of steps 0 and 1, and 2 and 3, columns j, then columns 16 + j, become words; of these the first
 * and third go side by side, and so do all four steps of a column. */
static inline void b16_weights(b16w *w, const uint16_t *b, const size_t steps) {
    uint16x8_t step[B16_STEP];
    ISO_UNROLLED (i, B16_STEP)
        step[i] = i < steps ? vld1q_u16(b + i * ISO_WIDE_PANEL) : vdupq_n_u16(0);
    const uint32x4_t low0 = vreinterpretq_u32_u16(vtrn1q_u16(step[0], step[1]));
    const uint32x4_t low1 = vreinterpretq_u32_u16(vtrn1q_u16(step[2], step[3]));
    const uint32x4_t high0 = vreinterpretq_u32_u16(vtrn2q_u16(step[0], step[1]));
    const uint32x4_t high1 = vreinterpretq_u32_u16(vtrn2q_u16(step[2], step[3]));
    w[0] = vreinterpretq_bf16_u32(vzip1q_u32(low0, low1));
    w[1] = vreinterpretq_bf16_u32(vzip2q_u32(low0, low1));
    w[2] = vreinterpretq_bf16_u32(vzip1q_u32(high0, high1));
    w[3] = vreinterpretq_bf16_u32(vzip2q_u32(high0, high1));
}
static inline b16a b16_row(const uint16_t *a, size_t second) {
    return vreinterpretq_bf16_u16(vcombine_u16(vld1_u16(a), vld1_u16(a + second)));
}
static inline b16t b16_dot(b16t t, b16w w, b16a a) { return vbfmmlaq_f32(t, a, w); }
static inline void b16_floats(vf *rows, const b16t *t) {
    rows[0] = vcombine_f32(vget_low_f32(t[0]), vget_low_f32(t[1]));
    rows[1] = vcombine_f32(vget_high_f32(t[0]), vget_high_f32(t[1]));
}
static inline void b16_round(uint16_t *to, const float *x, size_t n) {
    ISO_UNROLLED (i, ISO_B16_STEPS / 8) {
        const size_t left = n > 8 * i ? n - 8 * i : 0;
        const vf low = left < 4 ? vf_load_n(x + 8 * i, left) : vf_load(x + 8 * i);
        const vf high = left <= 4  ? vf_set1(0)
                        : left < 8 ? vf_load_n(x + 8 * i + 4, left - 4)
                                   : vf_load(x + 8 * i + 4);
        const bfloat16x8_t both = vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(low), high);
        vst1q_u16(to + 8 * i, vreinterpretq_u16_bf16(both));
    }
}
