/* SPDX-License-Identifier: MIT
 *
 * The GEMM tile of NEON: 6 rows x 16 columns.
 *
 * Register budget of the largest tile: 24 accumulators + 4 of B + 2 of A (used by lane): 30 of 32.
 * Each step of k issues 24 FMAs for 4 loads of B and 2 of A. Few rows take more panels at a time.
 */
#define GEMM_MR 6
#define GEMM_GROUP(m) ((m) == 1 ? 4 : (m) == 2 ? 3 : (m) == 3 ? 2 : 1)
#define GEMM_VECTORS_BT(m) ((m) <= 3 ? 4 : 2)
#define GEMM_W16_MR 6
#define GEMM_PAIRS(m) ((m) == 1 ? 8 : (m) <= 3 ? 4 : 2)
#define GEMM_Q_MR 4
#define GEMM_VECTORS_Q(m) 4
#define GEMM_KINDS_Q 2
#define GEMM_DIRECT_MR 6
#define GEMM_ROWS_ALONG 2
#define GEMM_ROWS_IN_PLACE_BT 12
#define GEMM_SUMS 24

/* The FMA by lane needs a constant lane number; the rows are unrolled with constant i. */
static inline __attribute__((always_inline)) float32x4_t
fma_row(float32x4_t t, float32x4_t b, float32x4_t a0, float32x2_t a1, const size_t i) {
    switch (i) {
    case 0: return vfmaq_laneq_f32(t, b, a0, 0);
    case 1: return vfmaq_laneq_f32(t, b, a0, 1);
    case 2: return vfmaq_laneq_f32(t, b, a0, 2);
    case 3: return vfmaq_laneq_f32(t, b, a0, 3);
    case 4: return vfmaq_lane_f32(t, b, a1, 0);
    default: return vfmaq_lane_f32(t, b, a1, 1);
    }
}

/* m floats of A: nothing beyond them is read. */
static inline __attribute__((always_inline)) void load_rows(float32x4_t *a0, float32x2_t *a1,
                                                            const float *a, const size_t m) {
    *a1 = vdup_n_f32(0);
    if (m >= 4)
        *a0 = vld1q_f32(a);
    else if (m == 1)
        *a0 = vld1q_dup_f32(a);
    else
        *a0 = vcombine_f32(vld1_f32(a), m == 3 ? vld1_dup_f32(a + 2) : vdup_n_f32(0));
    if (m == 6)
        *a1 = vld1_f32(a + 4);
    else if (m == 5)
        *a1 = vld1_dup_f32(a + 4);
}

static inline __attribute__((always_inline)) void
gemm_tile(float *c, size_t ldc, const float *a, size_t as, const float *b, size_t bs, size_t bps,
          const size_t m, const size_t panels, size_t k, int mode) {
    float32x4_t t[24]; /* [m][panels][4] */
    ISO_UNROLLED (i, m)
        ISO_UNROLLED (j, panels)
            ISO_UNROLLED (h, 4)
                t[(i * panels + j) * 4 + h] = mode == ISO_STRIP_CONTINUE
                                                  ? vld1q_f32(c + i * ldc + j * 16 + h * 4)
                                                  : vdupq_n_f32(0);
    for (size_t p = 0; p < k; p++) {
        float32x4_t a0;
        float32x2_t a1;
        load_rows(&a0, &a1, a, m);
        ISO_UNROLLED (j, panels)
            ISO_UNROLLED (h, 4) {
                float32x4_t bv = vld1q_f32(b + j * bps + h * 4);
                ISO_UNROLLED (i, m)
                    t[(i * panels + j) * 4 + h] =
                        fma_row(t[(i * panels + j) * 4 + h], bv, a0, a1, i);
            }
        a += as, b += bs;
    }
    ISO_UNROLLED (i, m)
        ISO_UNROLLED (j, panels)
            ISO_UNROLLED (h, 4) {
                float *q = c + i * ldc + j * 16 + h * 4;
                if (mode == ISO_STRIP_ADD)
                    t[(i * panels + j) * 4 + h] =
                        vaddq_f32(vld1q_f32(q), t[(i * panels + j) * 4 + h]);
                vst1q_f32(q, t[(i * panels + j) * 4 + h]);
            }
}

/* Whole vectors first, then the last columns one by one: they are few. */
static inline __attribute__((always_inline)) void gemm_tile_n(float *c, size_t ldc, const float *a,
                                                              size_t as, const float *b, size_t bs,
                                                              const size_t m, size_t n, size_t k,
                                                              int mode) {
    for (size_t h = 0; h < n; h += 4) {
        const size_t w = n - h < 4 ? n - h : 4;
        float32x4_t t[GEMM_MR];
        ISO_UNROLLED (i, m)
            t[i] = mode == ISO_STRIP_CONTINUE ? vf_load_n(c + i * ldc + h, w) : vdupq_n_f32(0);
        const float *ap = a, *bp = b + h;
        for (size_t p = 0; p < k; p++) {
            float32x4_t a0, bv = w == 4 ? vld1q_f32(bp) : vf_load_n(bp, w);
            float32x2_t a1;
            load_rows(&a0, &a1, ap, m);
            ISO_UNROLLED (i, m)
                t[i] = fma_row(t[i], bv, a0, a1, i);
            ap += as, bp += bs;
        }
        ISO_UNROLLED (i, m) {
            float *q = c + i * ldc + h;
            if (mode == ISO_STRIP_ADD)
                t[i] = vaddq_f32(vf_load_n(q, w), t[i]);
            vf_store_n(q, t[i], w);
        }
    }
}
