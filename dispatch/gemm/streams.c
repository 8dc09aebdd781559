/* SPDX-License-Identifier: MIT
 *
 * Few rows of A with a large row-major B: along the rows of B, several of them at a time, so that
 * memory is read in long runs, or as a single one. The sums of a chain wait in C meanwhile.
 */
#include "product.h"

static const struct iso_kernels *kernels_of(const struct iso_product *t) {
    return t->plan.half ? t->machine.kernels->half : t->machine.kernels;
}

/* Of tasks that take blocks of k: where the sums of a block wait, and with which ld. */
static float *sums_of_block(const struct iso_product *t, size_t block, size_t *ld) {
    const int in_c = block == 0 && !iso_needs_own_sums(t->e, t->c);
    *ld = in_c ? t->ldc : t->n;
    return in_c ? t->c : t->scratch + block * t->plan.block_floats;
}

void iso_product_streams_block(const struct iso_product *t, size_t block) {
    const struct iso_kernels *kernels = kernels_of(t);
    const size_t p = block * ISO_K_BLOCK, k = iso_min_size(t->k - p, ISO_K_BLOCK);
    const float *a = t->a + p * t->ap;
    size_t width = t->ap, ld;
    float *sums = sums_of_block(t, block, &ld);
    if (t->m > 1) {
        float *strip = t->scratch + block * t->plan.block_floats + t->m * t->n;
        kernels->gemm_pack(strip, a, t->ai, t->ap, t->m, k, t->m);
        a = strip, width = t->m;
    }
    kernels->gemm_strip(sums, ld, a, width, t->b + p * t->bs, t->bs, ISO_PANEL, t->m, t->n, k,
                        ISO_STRIP_ASSIGN | ISO_STRIP_BY_ROW);
}

/* In the order of iso_product_streams, whoever computed them. */
void iso_product_streams_sum(const struct iso_product *t) {
    size_t ld, ld_block;
    float *c = sums_of_block(t, 0, &ld);
    const struct iso_epilogue add = {.alpha = 1.0f, .residual = c, .ldr = ld};
    for (size_t block = 1; block * ISO_K_BLOCK < t->k; block++) {
        const float *sums = sums_of_block(t, block, &ld_block);
        kernels_of(t)->gemm_epilogue(c, ld, sums, ld_block, t->m, t->n, &add);
    }
    iso_finish(t, t->e, c, ld, 0, 0, t->m, t->n);
}

void iso_product_streams(const struct iso_product *t, size_t j0, size_t n, float *scratch) {
    const struct iso_kernels *kernels = kernels_of(t);
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
