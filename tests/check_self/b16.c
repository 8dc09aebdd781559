/* SPDX-License-Identifier: MIT
 *
 * Broken kernels of native numerics. No set has them, so the right ones are plain C, too.
 */
#include "check_self.h"

void b16_truncates(uint16_t *to, size_t ldt, const float *x, size_t ldx, size_t rows, size_t n) {
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < iso_b16_padded(n); j++) {
            uint32_t bits = 0;
            if (j < n)
                memcpy(&bits, x + i * ldx + j, sizeof bits);
            to[i * ldt + j] =
                (uint16_t)(bits >> 16 | ((bits & 0x7fffffff) > 0x7f800000 ? 0x40 : 0));
        }
}

/* Sums of `steps` of the k steps. */
static void multiply(float *c, size_t ldc, const uint16_t *a, size_t lda, const uint16_t *b,
                     size_t bps, size_t m, size_t n, size_t steps, int mode) {
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            const uint16_t *w =
                b + j / ISO_WIDE_PANEL * bps + iso_w16_place(j % ISO_WIDE_PANEL, ISO_W16_BF16);
            float sum = mode & ISO_DIRECT_ADD ? c[i * ldc + j] : 0;
            for (size_t p = 0; p < steps; p++)
                sum += iso_bf16_value(a[i * lda + p]) * iso_bf16_value(w[p * ISO_WIDE_PANEL]);
            c[i * ldc + j] = sum;
        }
}

/* An odd one. */
void b16_forgets_last_step(float *c, size_t ldc, const uint16_t *a, size_t lda, const uint16_t *b,
                           size_t bps, size_t m, size_t n, size_t k, int mode) {
    multiply(c, ldc, a, lda, b, bps, m, n, k - k % 2, mode);
}

/* To fill a pair: the row of A is 0 there, but B need not be there. */
void b16_reads_next_step(float *c, size_t ldc, const uint16_t *a, size_t lda, const uint16_t *b,
                         size_t bps, size_t m, size_t n, size_t k, int mode) {
    multiply(c, ldc, a, lda, b, bps, m, n, k, mode);
    if (n > 0 && k % 2)
        sink = b[(n - 1) / ISO_WIDE_PANEL * bps + k * ISO_WIDE_PANEL];
}
