/* SPDX-License-Identifier: MIT
 *
 * Products of int8 in tiles (shapes.h). A tile of sums has the columns of a panel; one of B is 64
 * steps of a panel as they lie in memory, one of A the same steps of 16 rows. A is flipped, as for
 * VNNI. The steps beyond the last 64 are copied into tiles of zeros.
 */
enum { AMX_FLAT_PANELS = 4 };
#define AMX_FEW 3 /* rows; fewer go through VNNI */

/* 64 steps of k. */
ISO_INLINE void amx_step(const struct s8_product *t, const int8_t *a, const int8_t *b,
                         const size_t tall, const size_t panels) {
    ISO_UNROLLED (q, panels) {
        const size_t at = tall ? 6 + q : 5 + q % 3;
        amx_load(at, b + q * t->bps, AMX_BYTES);
        ISO_UNROLLED (i, 1 + tall) {
            if (q == 0)
                amx_load(4 + i, a + i * AMX_ROWS * t->lda, t->lda);
            amx_dot(AMX_S8, 2 * i + q, 4 + i, at);
        }
    }
}

/* A tile whose rows, fewer than 16 perhaps, have but so many bytes. */
ISO_INLINE void amx_load_part(const size_t tile, const int8_t *from, size_t stride, size_t rows,
                              size_t bytes, int8_t *space) {
    const __mmask64 there = (__mmask64)-1 >> (AMX_BYTES - bytes);
    for (size_t i = 0; i < rows; i++)
        _mm512_store_si512(space + i * AMX_BYTES,
                           _mm512_maskz_loadu_epi8(there, from + i * stride));
    for (size_t i = rows; i < AMX_ROWS; i++)
        _mm512_store_si512(space + i * AMX_BYTES, _mm512_setzero_si512());
    amx_load(tile, space, AMX_BYTES);
}

/* The last steps, fewer than 64. */
ISO_INLINE void amx_last_step(const struct s8_product *t, const int8_t *a, const int8_t *b,
                              size_t rows, size_t steps, const size_t tall, const size_t panels,
                              int8_t *space) {
    ISO_UNROLLED (i, 1 + tall)
        amx_load_part(4 + i, a + i * AMX_ROWS * t->lda, t->lda,
                      i                 ? rows - AMX_ROWS
                      : rows < AMX_ROWS ? rows
                                        : AMX_ROWS,
                      steps, space);
    ISO_UNROLLED (q, panels) {
        const size_t at = tall ? 6 + q : 5 + q % 3;
        amx_load_part(at, b + q * t->bps, AMX_BYTES, steps / 4, AMX_BYTES, space);
        ISO_UNROLLED (i, 1 + tall)
            amx_dot(AMX_S8, 2 * i + q, 4 + i, at);
    }
}

/* Sums to C, with scales and bias. */
ISO_INLINE void amx_finish(const struct s8_product *t, size_t row, size_t column, size_t rows,
                           const size_t panels, const int32_t *sums) {
    const size_t left = t->n - column;
    const float *row_scales = t->row_scales + row;
    float *c = t->c + row * t->ldc + column;
    vm there[AMX_FLAT_PANELS];
    vf scales[AMX_FLAT_PANELS], bias[AMX_FLAT_PANELS];
    ISO_UNROLLED (q, panels) {
        const size_t j = q * ISO_PANEL;
        there[q] = left >= j + ISO_PANEL ? (vm)-1 : vm_first(left > j ? left - j : 0);
        scales[q] = _mm512_maskz_loadu_ps(there[q], t->scales + column + j);
        bias[q] = t->bias ? _mm512_maskz_loadu_ps(there[q], t->bias + column + j)
                          : vf_set1(-0.0f); /* which changes nothing */
    }
    for (size_t i = 0; i < rows; i++, c += t->ldc, sums += panels * ISO_PANEL) {
        const vf row_scale = vf_set1(row_scales[i]);
        ISO_UNROLLED (q, panels) {
            const vf v = _mm512_cvtepi32_ps(_mm512_load_si512(sums + q * ISO_PANEL));
            _mm512_mask_storeu_ps(c + q * ISO_PANEL, there[q],
                                  vf_add(vf_mul(vf_mul(v, scales[q]), row_scale), bias[q]));
        }
    }
}

/* `rows` rows, which the tiles are configured for, and some panels. */
ISO_INLINE void amx_tile(const struct s8_product *t, size_t row, size_t column, size_t rows,
                         const size_t tall, const size_t panels) {
    _Alignas(64) int32_t sums[4 * AMX_ROWS * ISO_PANEL];
    const size_t ld = panels * ISO_PANEL;
    const int8_t *a = t->a + row * t->lda, *b = t->b + column / ISO_PANEL * t->bps;
    ISO_UNROLLED (i, 1 + tall)
        ISO_UNROLLED (q, panels)
            amx_load(2 * i + q, t->start + column + q * ISO_PANEL, 0);
    size_t left = t->k;
    for (; left >= AMX_BYTES; left -= AMX_BYTES, a += AMX_BYTES, b += AMX_BYTES * ISO_PANEL)
        amx_step(t, a, b, tall, panels);
    if (left > 0)
        amx_last_step(t, a, b, rows, left, tall, panels, (int8_t *)sums);
    ISO_UNROLLED (i, 1 + tall)
        ISO_UNROLLED (q, panels)
            amx_store(2 * i + q, sums + i * AMX_ROWS * ld + q * ISO_PANEL, ld * sizeof *sums);
    amx_finish(t, row, column, rows, panels, sums);
}

/* Rows i to m in groups of `rows`, columns j to end by so many panels. */
#define AMX_PART(name, tall, panels)                                                               \
    static ISO_ONE_COPY void amx_##name(const struct s8_product *t, size_t i, size_t m,            \
                                        size_t rows, size_t j, size_t end) {                       \
        for (; j < end; j += panels * ISO_PANEL)                                                   \
            for (size_t row = i; row < m; row += rows)                                             \
                amx_tile(t, row, j, rows, tall, panels);                                           \
    }
AMX_PART(tall_two, 1, 2)
AMX_PART(tall_one, 1, 1)
AMX_PART(flat_four, 0, AMX_FLAT_PANELS)
AMX_PART(flat_one, 0, 1)
#undef AMX_PART

static void amx_rows(const struct s8_product *t, size_t i, size_t m, size_t rows) {
    const int tall = rows > AMX_ROWS;
    const size_t panels = (t->n + ISO_PANEL - 1) / ISO_PANEL;
    const size_t many = panels / (tall ? 2 : AMX_FLAT_PANELS) * (tall ? 2 : AMX_FLAT_PANELS);
    amx_configure(rows);
    (tall ? amx_tall_two : amx_flat_four)(t, i, m, rows, 0, many * ISO_PANEL);
    (tall ? amx_tall_one : amx_flat_one)(t, i, m, rows, many * ISO_PANEL, panels * ISO_PANEL);
    TILE_RELEASE();
}

static void amx_gemm_s8(float *c, size_t ldc, const int8_t *a, size_t lda, const float *row_scales,
                        const int8_t *b, size_t bps, const float *scales, const int32_t *start,
                        const float *bias, size_t m, size_t n, size_t k) {
    ISO_REQUIRE(k % ISO_S8_STEPS == 0 && k <= ISO_S8_MOST + 1 &&
                (m <= 1 || (lda >= k && ldc >= n)));
    const struct s8_product t = {c, ldc, a, lda, row_scales, b, bps, scales, start, bias, n, k, 0};
    const size_t tall = m / AMX_TALL * AMX_TALL, rest = m - tall;
    if (tall > 0)
        amx_rows(&t, 0, tall, AMX_TALL);
    if (rest >= AMX_FEW)
        amx_rows(&t, tall, m, rest);
    else if (rest > 0)
        for (size_t j = 0; j < n; j += ISO_PANEL)
            s8_panels(&t, tall, m, j);
}

#define AMX_S8_PEAK_OPS AMX_PEAK_OPS(AMX_BYTES)
static int amx_s8_peak(size_t rounds) {
    volatile int8_t one = 1;
    _Alignas(64) int8_t a[AMX_TILE_BYTES], b[AMX_TILE_BYTES];
    _Alignas(64) int32_t sums[AMX_ROWS * ISO_PANEL];
    for (size_t i = 0; i < AMX_TILE_BYTES; i++) /* no sum grows */
        a[i] = one, b[i] = (int8_t)(i % 2 ? -one : one);
    amx_peak(AMX_S8, sums, a, b, rounds);
    return sums[0];
}
