/* SPDX-License-Identifier: MIT
 *
 * What products with wide panels share (gemm_w16.h, gemm_b16.h).
 */
#define W16_CHUNKS (ISO_PANEL / VF_N) /* pairs of vectors of a wide panel */

/* The first n columns of the sums of a panel, which is not there as a whole. */
static ISO_ONE_COPY void panel_part(float *c, size_t ldc, const float *sums, size_t lds, size_t m,
                                    size_t n, int add) {
    for (size_t i = 0; i < m; i++, c += ldc, sums += lds)
        for (size_t j = 0; j < n; j += VF_N) {
            const size_t w = n - j < VF_N ? n - j : VF_N;
            const vf sum = load_w(sums + j, w);
            store_w(c + j, add ? vf_add(load_w(c + j, w), sum) : sum, w);
        }
}
