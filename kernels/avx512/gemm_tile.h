/* SPDX-License-Identifier: MIT
 *
 * The GEMM tile of AVX-512: 14 rows x 32 columns.
 *
 * Register budget of the largest tile: 28 accumulators + 2 of B + the broadcast of A, which is a
 * memory operand of the FMA or one register: 31 of 32. Each step of k issues 28 FMAs for 2 loads
 * of B and 14 broadcasts. Few rows take more panels at a time, so that at least 8 chains hide the
 * latency of the FMA; but 4 with 7 rows would be 28 + 4 + 1 registers.
 */
#define GEMM_MR 14
#define GEMM_BY_ROW 1
#define GEMM_GROUP(m) ((m) <= 3 ? 8 : (m) == 4 ? 6 : (m) <= 6 ? 4 : (m) <= 9 ? 3 : 2)
#define GEMM_VECTORS_BT(m) 1
#define GEMM_W16_MR 6
#define GEMM_PAIRS(m) ((m) == 1 || (m) == 3 ? 4 : (m) == 4 ? 3 : 2)
#define GEMM_Q_MR 6
#define GEMM_VECTORS_Q(m) ((m) <= 3 ? 4 : 2)
#define GEMM_ROLLED_Q 0
#define GEMM_KINDS_Q 1
#define GEMM_HALVES_BT 4
#define GEMM_DIRECT_MR 8
#define GEMM_DIRECT_TALL 16
#define GEMM_NEXT_AHEAD 128
#define GEMM_NEXT_ROWS 8
#define GEMM_INTERLEAVED 1
#define GEMM_ROWS_ALONG 2
#define GEMM_ROWS_IN_PLACE_BT 12
#define GEMM_SUMS 28
#define GEMM_HALF &iso_kernels_avx2

static inline __attribute__((always_inline)) void
gemm_tile(float *c, size_t ldc, const float *a, size_t as, const float *b, size_t bs, size_t bps,
          const size_t m, const size_t panels, size_t k, int mode) {
    __m512 t[28]; /* [m][panels] */
    const float *from = c;
    ISO_UNROLLED (i, m) {
        ISO_UNROLLED (j, panels)
            t[i * panels + j] =
                mode == ISO_STRIP_CONTINUE ? _mm512_loadu_ps(from + j * 16) : _mm512_setzero_ps();
        ISO_NEXT_ROW(from, ldc, i, m);
    }
    for (size_t p = 0; p < k; p++) {
        if (m <= 3 && m < panels) { /* those of A stay in registers, so B is loaded once */
            __m512 av[GEMM_MR];
            ISO_UNROLLED (i, m)
                av[i] = _mm512_set1_ps(a[i]);
            ISO_UNROLLED (j, panels) {
                __m512 bv = _mm512_loadu_ps(b + j * bps);
                ISO_LOADED(bv);
                ISO_UNROLLED (i, m)
                    t[i * panels + j] = _mm512_fmadd_ps(av[i], bv, t[i * panels + j]);
            }
        } else {
            __m512 bv[8];
            if (m > 4) /* an A that is transposed and lies where it is: the next strip's columns */
                _mm_prefetch((const char *)(a + 2 * m - 1), _MM_HINT_T0);
            ISO_UNROLLED (j, panels)
                bv[j] = _mm512_loadu_ps(b + j * bps);
            ISO_UNROLLED (i, m) {
                __m512 av = _mm512_set1_ps(a[i]);
                ISO_UNROLLED (j, panels)
                    t[i * panels + j] = _mm512_fmadd_ps(av, bv[j], t[i * panels + j]);
            }
        }
        a += as, b += bs;
    }
    ISO_UNROLLED (i, m) {
        ISO_UNROLLED (j, panels) {
            if (mode == ISO_STRIP_ADD)
                t[i * panels + j] = _mm512_add_ps(_mm512_loadu_ps(c + j * 16), t[i * panels + j]);
            _mm512_storeu_ps(c + j * 16, t[i * panels + j]);
        }
        ISO_NEXT_ROW(c, ldc, i, m);
    }
}

static inline __attribute__((always_inline)) void gemm_tile_n(float *c, size_t ldc, const float *a,
                                                              size_t as, const float *b, size_t bs,
                                                              const size_t m, size_t n, size_t k,
                                                              int mode) {
    __m512 t[GEMM_MR];
    const __mmask16 mask = vm_first(n);
    ISO_UNROLLED (i, m)
        t[i] = mode == ISO_STRIP_CONTINUE ? _mm512_maskz_loadu_ps(mask, c + i * ldc)
                                          : _mm512_setzero_ps();
    for (size_t p = 0; p < k; p++) {
        __m512 bv = _mm512_maskz_loadu_ps(mask, b);
        ISO_UNROLLED (i, m)
            t[i] = _mm512_fmadd_ps(_mm512_set1_ps(a[i]), bv, t[i]);
        a += as, b += bs;
    }
    ISO_UNROLLED (i, m) {
        float *q = c + i * ldc;
        if (mode == ISO_STRIP_ADD)
            t[i] = _mm512_mask_add_ps(t[i], mask, _mm512_maskz_loadu_ps(mask, q), t[i]);
        _mm512_mask_storeu_ps(q, mask, t[i]);
    }
}

/* One row or two, and panels of F16: in vectors of 256 bits, which Zen 4 converts four times as
 * fast as those of 512, and multiplies as fast. */
#define GEMM_F16_ROWS 2
static inline __attribute__((always_inline)) void
gemm_f16_tile(float *c, size_t ldc, const float *a, size_t lda, const uint16_t *b, size_t bs,
              size_t bps, const size_t m, const size_t panels, size_t k, int add) {
    __m256 t[16]; /* [m][panels][4] */
    ISO_UNROLLED (i, m * panels * 4)
        t[i] = _mm256_setzero_ps();
    for (size_t p = 0; p < k; p++, b += bs) {
        __m256 av[GEMM_F16_ROWS];
        ISO_UNROLLED (i, m)
            av[i] = _mm256_set1_ps(a[i * lda + p]);
        ISO_UNROLLED (j, panels) {
            const uint16_t *at = b + j * bps;
            ISO_OPAQUE(at);
            ISO_UNROLLED (h, 4) {
                const __m256 bv =
                    _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(at + h * 8)));
                ISO_UNROLLED (i, m)
                    t[(i * panels + j) * 4 + h] =
                        _mm256_fmadd_ps(av[i], bv, t[(i * panels + j) * 4 + h]);
            }
        }
    }
    ISO_UNROLLED (i, m)
        ISO_UNROLLED (j, panels * 4) {
            float *q = c + i * ldc + j * 8;
            const __m256 sum = t[i * panels * 4 + j];
            _mm256_storeu_ps(q, add ? _mm256_add_ps(_mm256_loadu_ps(q), sum) : sum);
        }
}
