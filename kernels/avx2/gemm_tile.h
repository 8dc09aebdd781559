/* SPDX-License-Identifier: MIT
 *
 * The GEMM tile of AVX2: 6 rows x 16 columns.
 *
 * Register budget of the largest tile: 12 accumulators + 2 of B + 1 or 2 broadcasts of A: 16 of 16.
 * Each step of k issues 12 FMAs for 2 loads and 6 broadcasts. Few rows take more panels at a time,
 * so that at least 8 chains hide the latency of the FMA.
 */
#define GEMM_MR 6
#define GEMM_GROUP(m) ((m) == 1 ? 5 : (m) == 2 ? 3 : (m) == 3 ? 2 : 1)
#define GEMM_VECTORS_BT(m) 2
#define GEMM_W16_MR 6
#define GEMM_PAIRS(m) ((m) == 1 ? 6 : (m) == 2 ? 2 : 1)
#define GEMM_Q_MR 4
#define GEMM_VECTORS_Q(m) ((m) == 1 ? 4 : 2)
#define GEMM_KINDS_Q 2
#define GEMM_LINES_BT 1
#define GEMM_DIRECT_MR 6
#define GEMM_DIRECT_TALL 12
#define GEMM_ALIASED 512
#define GEMM_NEXT_AHEAD 256
#define GEMM_BY_ROW 4
#define GEMM_NEXT_ROWS 8
#define GEMM_ROWS_ALONG 4
#define GEMM_ROWS_IN_PLACE_BT 5
#define GEMM_SUMS 12

static inline __attribute__((always_inline)) void
gemm_tile(float *c, size_t ldc, const float *a, size_t as, const float *b, size_t bs, size_t bps,
          const size_t m, const size_t panels, size_t k, int mode) {
    __m256 t[12]; /* [m][panels][2] */
    const float *from = c;
    ISO_UNROLLED (i, m) {
        ISO_UNROLLED (j, panels)
            ISO_UNROLLED (h, 2)
                t[(i * panels + j) * 2 + h] = mode == ISO_STRIP_CONTINUE
                                                  ? _mm256_loadu_ps(from + j * 16 + h * 8)
                                                  : _mm256_setzero_ps();
        ISO_NEXT_ROW(from, ldc, i, m);
    }
    for (size_t left = k; left > 0; left--) {
        ISO_UNROLLED (j, panels) {
            __m256 b0 = _mm256_loadu_ps(b + j * bps), b1 = _mm256_loadu_ps(b + j * bps + 8);
            ISO_UNROLLED (i, m) {
                __m256 av = _mm256_broadcast_ss(a + i);
                t[(i * panels + j) * 2] = vf_fma(av, b0, t[(i * panels + j) * 2]);
                t[(i * panels + j) * 2 + 1] = vf_fma(av, b1, t[(i * panels + j) * 2 + 1]);
            }
        }
        ISO_AFTER(t[2 * m * panels - 1], a);
        ISO_AFTER(t[2 * m * panels - 1], b);
        ISO_AFTER(t[2 * m * panels - 1], left);
        a += as, b += bs;
    }
    ISO_UNROLLED (i, m) {
        ISO_UNROLLED (j, panels)
            ISO_UNROLLED (h, 2) {
                float *q = c + j * 16 + h * 8;
                if (mode == ISO_STRIP_ADD)
                    t[(i * panels + j) * 2 + h] =
                        _mm256_add_ps(_mm256_loadu_ps(q), t[(i * panels + j) * 2 + h]);
                _mm256_storeu_ps(q, t[(i * panels + j) * 2 + h]);
            }
        ISO_NEXT_ROW(c, ldc, i, m);
    }
}

static inline __attribute__((always_inline)) void gemm_tile_n(float *c, size_t ldc, const float *a,
                                                              size_t as, const float *b, size_t bs,
                                                              const size_t m, size_t n, size_t k,
                                                              int mode) {
    __m256 t[GEMM_MR][2];
    const __m256i m0 = vi_first(n < 8 ? n : 8), m1 = vi_first(n < 8 ? 0 : n - 8);
    ISO_UNROLLED (i, m) {
        int load = mode == ISO_STRIP_CONTINUE;
        t[i][0] = load ? _mm256_maskload_ps(c + i * ldc, m0) : _mm256_setzero_ps();
        t[i][1] = load ? _mm256_maskload_ps(c + i * ldc + 8, m1) : _mm256_setzero_ps();
    }
    for (size_t p = 0; p < k; p++) {
        __m256 b0 = _mm256_maskload_ps(b, m0), b1 = _mm256_maskload_ps(b + 8, m1);
        ISO_UNROLLED (i, m) {
            __m256 av = _mm256_broadcast_ss(a + i);
            t[i][0] = vf_fma(av, b0, t[i][0]);
            t[i][1] = vf_fma(av, b1, t[i][1]);
        }
        a += as, b += bs;
    }
    ISO_UNROLLED (i, m) {
        float *q = c + i * ldc;
        if (mode == ISO_STRIP_ADD) {
            t[i][0] = _mm256_add_ps(_mm256_maskload_ps(q, m0), t[i][0]);
            t[i][1] = _mm256_add_ps(_mm256_maskload_ps(q + 8, m1), t[i][1]);
        }
        vf_store_n(q, t[i][0], n < 8 ? n : 8);
        if (n > 8)
            vf_store_n(q + 8, t[i][1], n - 8);
    }
}
