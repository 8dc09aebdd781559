/* SPDX-License-Identifier: MIT
 *
 * The GEMM tile in plain C: 4 rows, worked off 4 columns at a time so that the 16 sums stay in
 * registers.
 */
#define GEMM_MR 4
#define GEMM_GROUP(m) 1
#define GEMM_VECTORS(m) 4
#define GEMM_VECTORS_BT(m) 2
#define GEMM_W16_MR 4
#define GEMM_PAIRS(m) ((m) <= 2 ? 2 : 1)
#define GEMM_Q_MR 4
#define GEMM_VECTORS_Q(m) ((m) <= 2 ? 4 : 2)
#define GEMM_KINDS_Q 0
#define GEMM_DIRECT_MR 4
#define GEMM_ROWS_ALONG 0
#define GEMM_ROWS_IN_PLACE_BT 16
#define GEMM_SUMS 16

static inline __attribute__((always_inline)) void tile_columns(float *c, size_t ldc, const float *a,
                                                               size_t as, const float *b, size_t bs,
                                                               const size_t m, const size_t n,
                                                               size_t k, int mode) {
    float t[GEMM_MR][4];
    ISO_UNROLLED (i, m)
        ISO_UNROLLED (j, n)
            t[i][j] = mode == ISO_STRIP_CONTINUE ? c[i * ldc + j] : 0;
    for (size_t p = 0; p < k; p++, a += as, b += bs) {
        ISO_UNROLLED (i, m)
            ISO_UNROLLED (j, n)
                t[i][j] = fma_exact(a[i], b[j], t[i][j]);
    }
    ISO_UNROLLED (i, m)
        ISO_UNROLLED (j, n)
            c[i * ldc + j] = mode == ISO_STRIP_ADD ? c[i * ldc + j] + t[i][j] : t[i][j];
}

static inline __attribute__((always_inline)) void gemm_tile_n(float *c, size_t ldc, const float *a,
                                                              size_t as, const float *b, size_t bs,
                                                              const size_t m, size_t n, size_t k,
                                                              int mode) {
    size_t j = 0;
    for (; j + 4 <= n; j += 4)
        tile_columns(c + j, ldc, a, as, b + j, bs, m, 4, k, mode);
    for (; j < n; j++)
        tile_columns(c + j, ldc, a, as, b + j, bs, m, 1, k, mode);
}

static inline __attribute__((always_inline)) void
gemm_tile(float *c, size_t ldc, const float *a, size_t as, const float *b, size_t bs, size_t bps,
          const size_t m, const size_t panels, size_t k, int mode) {
    (void)bps, (void)panels;
    gemm_tile_n(c, ldc, a, as, b, bs, m, ISO_PANEL, k, mode);
}
