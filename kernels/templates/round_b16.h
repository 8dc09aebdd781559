/* SPDX-License-Identifier: MIT
 *
 * Rows of floats to BF16, for gemm_b16; what is beyond them, up to whole vectors, is 0.
 */
static void round_b16(uint16_t *to, size_t ldt, const float *x, size_t ldx, size_t rows, size_t n) {
    ISO_REQUIRE(rows <= 1 || (ldt >= iso_b16_padded(n) && ldx >= n));
    for (size_t i = 0; i < rows; i++, to += ldt, x += ldx)
        for (size_t j = 0; j < n; j += ISO_B16_STEPS)
            b16_round(to + j, x + j, n - j < ISO_B16_STEPS ? n - j : ISO_B16_STEPS);
}
