/* SPDX-License-Identifier: MIT
 *
 * Few columns of C, computed as rows of the transposed product: the same sums in the same order. A
 * is a transposed B then, or one that is not; B a strip, unless its columns lie as rows.
 */
#include "product.h"

#define ROWS 64 /* of A at a time */

/* sums [n][ROWS] = the chain of one block of k over `rows` rows of A. */
static void chain(const struct iso_product *t, float *sums, const float *a, const float *b,
                  size_t bs, size_t n, size_t rows, size_t k, int add) {
    const struct iso_kernels *kernels = t->machine.kernels;
    if (t->ap == 1)
        kernels->gemm_strip_bt(sums, ROWS, b, bs, a, t->ai, n, rows, k, add);
    else if (t->trans_b)
        kernels->gemm_direct(sums, ROWS, b, t->bps, a, t->ap, ISO_PANEL, n, rows, k, add);
    else
        kernels->gemm_strip(sums, ROWS, b, bs, a, t->ap, ISO_PANEL, n, rows, k,
                            add ? ISO_STRIP_ADD : ISO_STRIP_ASSIGN);
}

size_t iso_product_narrow(const struct iso_product *t, size_t i0, size_t m, size_t j, size_t all,
                          float *scratch) {
    const struct iso_kernels *kernels = t->machine.kernels;
    const size_t n =
        t->plan.way == ISO_GEMM_TRANSPOSED_B ? all : all & (kernels->vector_floats - 1);
    if (!t->b || !iso_gemm_is_narrow(kernels, m, n, t->k, n < all))
        return 0;
    const size_t j0 = j + all - n;
    const int packs = t->trans_b && t->ap == 1; /* columns of B into a strip */
    const float *b = t->b + (t->trans_b ? j0 * t->bps : j0 / ISO_PANEL * t->bps + j0 % ISO_PANEL);
    float sums[ISO_GEMM_NARROWEST * ROWS];
    for (size_t i = i0; i < i0 + m; i += ROWS) {
        const size_t rows = iso_min_size(i0 + m - i, ROWS);
        for (size_t p = 0; p < t->k; p += ISO_K_BLOCK) {
            const size_t k = iso_min_size(t->k - p, ISO_K_BLOCK);
            const float *strip = b + p * t->bs;
            if (packs && (i == i0 || t->k > ISO_K_BLOCK)) /* else it is there from before */
                kernels->gemm_pack(scratch, strip, t->bps, 1, n, k, n);
            chain(t, sums, t->a + i * t->ai + p * t->ap, packs ? scratch : strip, packs ? n : t->bs,
                  n, rows, k, p != 0);
        }
        for (size_t r = 0; r < rows; r++)
            for (size_t l = 0; l < n; l++) {
                float *c = t->c + (i + r) * t->ldc + j0 + l;
                *c = t->plan.adds ? *c + sums[l * ROWS + r] : sums[l * ROWS + r];
            }
    }
    iso_finish(t, t->e, t->c + i0 * t->ldc + j0, t->ldc, i0, j0, m, n);
    return n;
}
