/* SPDX-License-Identifier: MIT
 *
 * Few rows of A with a large row-major B: along the rows of B, several of them at a time, so that
 * memory is read in long runs, or with one row of A as a single one. The sums of a chain wait in C
 * meanwhile.
 */
#include "product.h"

/* Where the sums of a block of k wait, of tasks that take these. */
static float *sums_of_block(const struct iso_product *t, size_t block) {
    const int in_c = block == 0 && !iso_needs_own_sums(t->e, t->c);
    return in_c ? t->c : t->scratch + block * iso_round_up(t->n, ISO_PANEL);
}

void iso_product_streams_block(const struct iso_product *t, size_t block) {
    const size_t p = block * ISO_K_BLOCK;
    t->machine.kernels->gemm_strip(
        sums_of_block(t, block), t->n, t->a + p * t->ap, t->ap, t->b + p * t->bs, t->bs, ISO_PANEL,
        1, t->n, iso_min_size(t->k - p, ISO_K_BLOCK), ISO_STRIP_ASSIGN | ISO_STRIP_BY_ROW);
}

/* In the order of iso_product_streams, whoever computed them. */
void iso_product_streams_sum(const struct iso_product *t) {
    float *c = sums_of_block(t, 0);
    const struct iso_epilogue add = {.alpha = 1.0f, .residual = c, .ldr = t->n};
    for (size_t block = 1; block * ISO_K_BLOCK < t->k; block++)
        t->machine.kernels->gemm_epilogue(c, t->n, sums_of_block(t, block), t->n, 1, t->n, &add);
    iso_finish(t, t->e, c, t->n, 0, 0, 1, t->n);
}

void iso_product_streams(const struct iso_product *t, size_t j0, size_t n, float *scratch) {
    const struct iso_kernels *kernels = t->machine.kernels;
    const size_t mr = t->plan.mr, strips = (t->m + mr - 1) / mr;
    const size_t rows = (t->m + strips - 1) / strips;
    const int by_row = t->plan.streams == 1 ? ISO_STRIP_BY_ROW : 0;
    const size_t streams = by_row ? ISO_K_BLOCK : t->plan.streams;
    const int own = iso_needs_own_sums(t->e, t->c); /* of one row */
    float *waiting = scratch + t->plan.a_floats;    /* sums */
    float *c = own ? waiting : t->c + j0, *later_sums = own ? waiting + n : waiting;
    const size_t ldc = own ? n : t->ldc;
    for (size_t p0 = 0; p0 < t->k; p0 += ISO_K_BLOCK) {
        const size_t k = iso_min_size(t->k - p0, ISO_K_BLOCK), ld = p0 ? n : ldc;
        const float *a = t->a + p0 * t->ap;
        float *sums = p0 ? later_sums : c;
        size_t width = t->ap;
        if (t->m > 1) {
            kernels->gemm_pack(scratch, a, t->ai, t->ap, t->m, k, rows);
            a = scratch, width = rows;
        }
        for (size_t p = 0; p < k; p += streams)
            for (size_t i = 0; i < t->m; i += rows)
                kernels->gemm_strip(sums + i * ld, ld, a + i * k + p * width, width,
                                    t->b + (p0 + p) * t->bs + j0, t->bs, ISO_PANEL,
                                    iso_min_size(t->m - i, rows), n, iso_min_size(k - p, streams),
                                    (p ? ISO_STRIP_CONTINUE : ISO_STRIP_ASSIGN) | by_row);
        if (p0) {
            const struct iso_epilogue add = {.alpha = 1.0f, .residual = c, .ldr = ldc};
            kernels->gemm_epilogue(c, ldc, sums, ld, t->m, n, &add);
        }
    }
    iso_finish(t, t->e, c, ldc, 0, j0, t->m, n);
}
