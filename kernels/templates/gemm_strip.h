/* SPDX-License-Identifier: MIT
 *
 * The driver of gemm_strip: cuts the columns into groups of panels that a tile can hold in
 * registers and calls the tile of the instruction set. gemm_tile.h defines, before this file,
 * besides what tile.h lists:
 *
 *   gemm_tile(m, panels, ...)   always inlined with constant m and panels: full panels
 *   gemm_tile_n(m, n, ...)      the same for one panel of which n < 16 columns exist
 */

/* As many panels as there are, P at a time. Four are 2 + 2, not 3 + 1: one has few chains. */
#define GEMM_PANELS(P)                                                                             \
    for (; n >= (P)*ISO_PANEL && ((P) != 3 || n / ISO_PANEL != 4); n -= (P)*ISO_PANEL) {           \
        gemm_tile(c, ldc, a, as, b, bs, bps, m, P, k, mode);                                       \
        c += (P)*ISO_PANEL, b += (P)*bps;                                                          \
    }

static inline __attribute__((always_inline)) void gemm_rows(float *c, size_t ldc, const float *a,
                                                            size_t as, const float *b, size_t bs,
                                                            size_t bps, const size_t m, size_t n,
                                                            size_t k, int mode) {
    const size_t group = GEMM_GROUP(m);
    if (group > 1)
        GEMM_PANELS(group);
    if (group > 4)
        GEMM_PANELS(4);
    if (group > 2)
        GEMM_PANELS(2);
    GEMM_PANELS(1);
    if (n > 0)
        gemm_tile_n(c, ldc, a, as, b, bs, m, n, k, mode);
}

/* clang-format off */
/* A function for each number of rows: in one function clang adds up the stack that each spills to. */
#define GEMM_ROWS(M)                                                                               \
    static ISO_ONE_COPY void gemm_rows_##M(float *c, size_t ldc, const float *a, size_t as,        \
                                           const float *b, size_t bs, size_t bps, size_t n,        \
                                           size_t k, int mode) {                                   \
        gemm_rows(c, ldc, a, as, b, bs, bps, M, n, k, mode);                                       \
    }
#define GEMM_CASE(M) case M: gemm_rows_##M(c, ldc, a, as, b, bs, bps, n, k, mode); break;

#if GEMM_MR == 4
#define GEMM_EACH(X) X(1) X(2) X(3) X(4)
#elif GEMM_MR == 6
#define GEMM_EACH(X) X(1) X(2) X(3) X(4) X(5) X(6)
#elif GEMM_MR == 14
#define GEMM_EACH(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#endif
GEMM_EACH(GEMM_ROWS)
/* clang-format on */

static void gemm_strip(float *c, size_t ldc, const float *a, size_t as, const float *b, size_t bs,
                       size_t bps, size_t m, size_t n, size_t k, int mode) {
    ISO_REQUIRE(m <= GEMM_MR && (m <= 1 || ldc >= n));
    if (mode & ISO_STRIP_BY_ROW) {
        mode &= ~ISO_STRIP_BY_ROW;
        ISO_REQUIRE(m <= ALONG_ROWS && bps == ISO_PANEL && mode != ISO_STRIP_ADD);
#if GEMM_BY_ROW
        if (goes_by_row(m, n)) {
            gemm_by_row(c, ldc, a, as, b, bs, m, n, k, mode == ISO_STRIP_CONTINUE);
            return;
        }
#endif
    }
    if (k > 0 && goes_along(m, n, k, bs, bps)) {
        gemm_along(c, ldc, a, 1, as, b, bs, m, n, k, mode);
        return;
    }
    switch (m) {
        GEMM_EACH(GEMM_CASE)
    default: break;
    }
}
