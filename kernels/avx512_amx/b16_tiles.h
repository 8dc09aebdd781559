/* SPDX-License-Identifier: MIT
 *
 * Products of BF16 in tiles (shapes.h): a tile of B is 32 steps of half a wide panel. Pairs of
 * steps have to lie side by side, so each wide panel is paired, 32 steps at a time, into memory
 * that stays in L1, one such part ahead. Tall is one wide panel, flat are two.
 *
 * One row takes the same way as many, as the instructions add up in an order of their own, and what
 * a row gets must not depend on the others.
 */
enum { AMX_B16_STEPS = AMX_BYTES / 2, AMX_WIDE_BYTES = 2 * AMX_TILE_BYTES };
_Static_assert(ISO_B16_STEPS == (int)AMX_B16_STEPS, "rows of A are filled up to whole tiles");

struct b16_product {
    float *c;
    size_t ldc;
    const uint16_t *a;
    size_t lda;
    const uint16_t *b;
    size_t bps, n, k;
    int add;
};

/* Up to 32 steps of a wide panel: 16 rows of pairs, of its columns 0 to 15, then of the others. */
ISO_INLINE void amx_pair(char *to, const uint16_t *b, size_t steps) {
    if (steps >= AMX_B16_STEPS) {
        ISO_UNROLLED (i, AMX_ROWS) {
            b16w w[2];
            b16_weights(w, b + 2 * i * ISO_WIDE_PANEL, 2);
            _mm512_store_si512(to + i * AMX_BYTES, w[0]);
            _mm512_store_si512(to + AMX_TILE_BYTES + i * AMX_BYTES, w[1]);
        }
        return;
    }
    for (size_t i = 0; i < AMX_ROWS; i++, b += 2 * ISO_WIDE_PANEL) {
        b16w w[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
        if (steps > 2 * i + 1)
            b16_weights(w, b, 2);
        else if (steps > 2 * i)
            b16_weights(w, b, 1);
        _mm512_store_si512(to + i * AMX_BYTES, w[0]);
        _mm512_store_si512(to + AMX_TILE_BYTES + i * AMX_BYTES, w[1]);
    }
}

/* `rows` rows, which the tiles are configured for, and some wide panels. */
ISO_INLINE void amx_b16_tile(const struct b16_product *t, size_t row, size_t column, size_t rows,
                             const size_t tall, const size_t panels) {
    static const float zeros[ISO_PANEL];
    _Alignas(64) char space[2 * AMX_WIDE_BYTES]; /* paired parts, then sums */
    char *part = space, *next = space + AMX_WIDE_BYTES;
    const uint16_t *a = t->a + row * t->lda, *b = t->b + column / ISO_WIDE_PANEL * t->bps;
    ISO_UNROLLED (e, 4)
        if (tall || e < 2 * panels)
            amx_load(e, zeros, 0);
    if (t->k > 0)
        amx_pair(part, b, t->k);
    for (size_t k = t->k; k > 0; a += AMX_B16_STEPS) {
        const size_t left = k < AMX_B16_STEPS ? 0 : k - AMX_B16_STEPS;
        ISO_UNROLLED (q, panels) {
            if (q + 1 < panels)
                amx_pair(next, b + (q + 1) * t->bps, k);
            else if (left > 0)
                amx_pair(next, b + AMX_B16_STEPS * ISO_WIDE_PANEL, left);
            if (q == 0)
                ISO_UNROLLED (i, 1 + tall)
                    amx_load(4 + i, a + i * AMX_ROWS * t->lda, t->lda * sizeof *a);
            ISO_UNROLLED (h, 2) {
                const size_t at = tall ? 6 + h : 5 + (2 * q + h) % 3;
                amx_load(at, part + h * AMX_TILE_BYTES, AMX_BYTES);
                ISO_UNROLLED (i, 1 + tall)
                    amx_dot(AMX_B16, 2 * (i + q) + h, 4 + i, at);
            }
            char *const done = part;
            part = next, next = done;
        }
        k = left, b += AMX_B16_STEPS * ISO_WIDE_PANEL;
    }
    const size_t ld = panels * ISO_WIDE_PANEL;
    float *sums = (float *)(void *)space;
    ISO_UNROLLED (e, 4)
        if (tall || e < 2 * panels)
            amx_store(e, sums + (tall ? e / 2 * AMX_ROWS * ld + e % 2 * ISO_PANEL : e * ISO_PANEL),
                      ld * sizeof *sums);
    for (size_t i = 0; i < rows; i++, sums += ld) {
        float *c = t->c + (row + i) * t->ldc + column;
        for (size_t j = 0, n = t->n - column; j < ld && j < n; j += ISO_PANEL) {
            const vm there = n - j < ISO_PANEL ? vm_first(n - j) : (vm)-1;
            vf sum = vf_load(sums + j);
            if (t->add)
                sum = vf_add(_mm512_maskz_loadu_ps(there, c + j), sum);
            _mm512_mask_storeu_ps(c + j, there, sum);
        }
    }
}

#define AMX_TILE(name, tall, panels)                                                               \
    static ISO_ONE_COPY void amx_b16_##name(const struct b16_product *t, size_t row,               \
                                            size_t column, size_t rows) {                          \
        amx_b16_tile(t, row, column, rows, tall, panels);                                          \
    }
AMX_TILE(tall, 1, 1)
AMX_TILE(flat_two, 0, 2)
AMX_TILE(flat_one, 0, 1)
#undef AMX_TILE

static void amx_gemm_b16(float *c, size_t ldc, const uint16_t *a, size_t lda, const uint16_t *b,
                         size_t bps, size_t m, size_t n, size_t k, int mode) {
    ISO_REQUIRE(m <= 1 || (lda >= iso_b16_padded(k) && ldc >= n));
    const struct b16_product t = {c, ldc, a, lda, b, bps, n, k, mode & ISO_DIRECT_ADD};
    for (size_t i = 0, end; i < m; i = end) {
        const size_t rows = m - i < AMX_TALL ? m - i : AMX_TALL, tall = rows > AMX_ROWS;
        const size_t width = (tall ? 1 : 2) * ISO_WIDE_PANEL;
        end = i + (m - i) / rows * rows;
        amx_configure(rows);
        for (size_t j = 0; j < n; j += width)
            for (size_t row = i; row < end; row += rows)
                (tall                     ? amx_b16_tall
                 : n - j > ISO_WIDE_PANEL ? amx_b16_flat_two
                                          : amx_b16_flat_one)(&t, row, j, rows);
    }
    if (m > 0)
        TILE_RELEASE();
}

#define AMX_B16_PEAK_FLOPS AMX_PEAK_OPS(AMX_B16_STEPS)
static float amx_b16_peak(size_t rounds) {
    volatile uint16_t one = 0x3f80;
    _Alignas(64) uint16_t a[AMX_TILE_BYTES / 2], b[AMX_TILE_BYTES / 2];
    _Alignas(64) float sums[AMX_ROWS * ISO_PANEL];
    for (size_t i = 0; i < AMX_TILE_BYTES / 2; i++) /* no sum grows */
        a[i] = one, b[i] = (uint16_t)(one | (i % 2 ? 0x8000 : 0));
    amx_peak(AMX_B16, sums, a, b, rounds);
    return sums[0];
}
