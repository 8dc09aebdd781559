/* SPDX-License-Identifier: MIT
 *
 * A product with a transposed B as the transposed product, C' = B A': the rows of A are in the
 * lanes, and B is read where it lies, like the A of gemm_direct. So what is packed is A, and what
 * is transposed are the sums. Rows that do not fill a vector go through gemm_strip_bt.
 */
#include "product.h"

/* The scratch, for all blocks of k. */
struct lanes {
    size_t rows, rest, wide; /* in lanes, not in lanes, and lanes */
    size_t panel;            /* lanes of a panel: L1 has no room for gaps */
    float *panels;           /* of the rows in lanes */
    float *strip;            /* of the rest */
    float *sums;             /* [columns][wide] */
    float *transposed;       /* [wide][columns] */
};

/* Columns j .. j+n of one block of k. */
static void columns_of_c(const struct iso_product *t, const struct lanes *l, size_t j, size_t n,
                         size_t p0, size_t k) {
    const struct iso_kernels *kernels = t->machine.kernels;
    const size_t most = t->plan.next && l->wide <= kernels->vector_floats
                            ? kernels->next_rows
                            : iso_gemm_direct_rows(kernels, l->wide);
    const size_t mr =
        t->bps % ISO_GEMM_ALIASED_BT ? most : iso_min_size(most, ISO_GEMM_ALIASED_ROWS_BT);
    const int single = t->k <= ISO_K_BLOCK;
    const float *b = t->b + j * t->bps + p0;
    float *c = t->c + j;
    for (size_t i = 0; i < n; i += mr)
        kernels->gemm_direct(l->sums + i * l->wide, l->wide, b + i * t->bps, t->bps, l->panels,
                             l->panel, k * l->panel, iso_min_size(n - i, mr), l->wide, k,
                             t->plan.next);
    kernels->gemm_pack(l->transposed, l->sums, l->wide, 1, n, l->wide, n);
    if (single) {
        iso_finish(t, t->e, l->transposed, n, 0, j, l->rows, n);
    } else {
        const struct iso_epilogue add = {.alpha = 1.0f, .residual = p0 ? c : NULL, .ldr = t->ldc};
        kernels->gemm_epilogue(c, t->ldc, l->transposed, n, l->rows, n, &add);
    }
    if (l->rest) {
        float *sums = single ? l->sums : c + l->rows * t->ldc;
        kernels->gemm_strip_bt(sums, single ? n : t->ldc, l->strip, l->rest, b, t->bps, l->rest, n,
                               k, p0 != 0);
        if (single)
            iso_finish(t, t->e, sums, n, l->rows, j, l->rest, n);
    }
}

void iso_product_transposed_c(const struct iso_product *t, size_t j0, size_t n, float *scratch,
                              int packed) {
    const struct iso_kernels *kernels = t->machine.kernels;
    const size_t most = iso_min_size(t->k, ISO_K_BLOCK);
    struct lanes l = {.rows = iso_gemm_rows_in_lanes(kernels, t->m, t->bps), .panels = scratch};
    l.rest = t->m - l.rows;
    l.wide = iso_round_up(l.rows, kernels->vector_floats);
    l.panel = iso_min_size(l.wide, ISO_PANEL);
    l.strip = scratch + iso_round_up(l.rows, ISO_PANEL) * most;
    l.sums = l.strip + l.rest * most;
    l.transposed = l.sums + ISO_GEMM_PART_COLUMNS * l.wide;
    for (size_t p0 = 0; p0 < t->k; p0 += ISO_K_BLOCK) {
        const size_t k = iso_min_size(t->k - p0, ISO_K_BLOCK);
        const float *a = t->a + p0 * t->ap;
        if (!packed || t->k > ISO_K_BLOCK) {
            kernels->gemm_pack(l.panels, a, t->ai, t->ap, l.rows, k, l.panel);
            if (l.rest)
                kernels->gemm_pack(l.strip, a + l.rows * t->ai, t->ai, t->ap, l.rest, k, l.rest);
        }
        for (size_t j = j0; j < j0 + n; j += ISO_GEMM_PART_COLUMNS)
            columns_of_c(t, &l, j, iso_min_size(j0 + n - j, ISO_GEMM_PART_COLUMNS), p0, k);
    }
    if (t->k > ISO_K_BLOCK)
        iso_finish(t, t->e, t->c + j0, t->ldc, 0, j0, t->m, n);
}
