/* SPDX-License-Identifier: MIT
 *
 * Products of int8. A cell is S8_ROWS rows by VF_N columns of sums, in S8_PARTS vectors; a group is
 * the rows of a cell. s8_tile.h says what tiles there are: S8_EACH(X) lists X(groups, cells of a
 * panel side by side, chains), most groups first, the last with one. Integer sums are exact, so a
 * sum may be several chains. Rows that fill the first of these tiles take S8_WIDE panels at a time.
 *
 * Panels go outside and rows inside: the panels at hand stay in L1 for all rows. Where rows of A
 * become 16 bits first (S8_WIDENS), all this is in gemm_s8_widened.h.
 */
#define S8_CELLS (ISO_PANEL / VF_N) /* of a panel */
#if VF_N == 1
#define S8_HIDE(a) ISO_OPAQUE(a)
#else
#define S8_HIDE(a) ISO_LOADED(a)
#endif

struct s8_product {
    float *c;
    size_t ldc;
    const int8_t *a;
    size_t lda;
    const float *row_scales;
    const int8_t *b;
    size_t bps;
    const float *scales;
    const int32_t *start;
    const float *bias;
    size_t n, k;
    size_t ahead; /* from a panel to the one that the first rows prefetch meanwhile, or 0 */
};

/* Whether the first rows of a product prefetch the next panels into L2. With VNNI, up to four rows
 * wait for memory alone, which gives two streams beside each other less than one; but where panels
 * are long, the hardware begins anew too often. */
static inline int s8_prefetches(size_t m, size_t k) {
    return VF_N > 1 && (S8_WIDENS ? m > 1 : m > 4 || (m == 4 && k >= 1024));
}

/* Group i of A, as DIRECT_A of gemm_direct.h. */
#define S8_A(i) (four[(i) / 4] + ((i) % 4 == 3 ? three : (i) % 4 * stride))

/* A sum with its scales, and the bias: where there is none -0, which changes nothing. */
ISO_INLINE vf s8_result(vf sum, vf scale, vf row_scale, vf bias) {
    return vf_add(vf_mul(vf_mul(sum, scale), row_scale), bias);
}

#if S8_WIDENS
#include "gemm_s8_widened.h"
#else
ISO_INLINE void s8_dots(s8t *t, const s8w *w, s8a a) {
    ISO_UNROLLED (e, S8_PARTS)
        t[e] = s8_dot(t[e], w[e], a);
}
#define S8_COLUMNS (S8_WIDE * ISO_PANEL)

/* Of a tile of sums [rows][S8_COLUMNS], `columns` columns of which are there: with scales
 * and bias, to C. */
static ISO_ONE_COPY void s8_finish(const struct s8_product *t, size_t row, size_t column,
                                   size_t rows, size_t columns, const float *sums) {
    const size_t left = t->n - column, n = left < columns ? left : columns;
    float *c = t->c + row * t->ldc + column;
    for (size_t i = 0; i < rows; i++, c += t->ldc, sums += S8_COLUMNS) {
        const vf row_scale = vf_set1(t->row_scales[row + i]);
        for (size_t j = 0; j < n; j += VF_N) {
            const size_t w = n - j < VF_N ? n - j : VF_N;
            const vf bias = t->bias ? load_w(t->bias + column + j, w) : vf_set1(-0.0f);
            const vf scale = vf_load(t->scales + column + j);
            store_w(c + j, s8_result(vf_load(sums + j), scale, row_scale, bias), w);
        }
    }
}

#if S8_WIDE > 1
/* The same for the sums of the widest tile, in registers. */
ISO_INLINE void s8_wide_result(const struct s8_product *t, size_t row, size_t column,
                               const s8t *sums) {
    enum { CELLS = S8_WIDE * S8_CELLS };
    float *c = t->c + row * t->ldc + column;
    const float *row_scales = t->row_scales + row;
    vf scales[CELLS], bias[CELLS];
    ISO_UNROLLED (q, CELLS)
        scales[q] = vf_load(t->scales + column + q * VF_N);
    ISO_UNROLLED (q, CELLS)
        bias[q] = t->bias ? vf_load(t->bias + column + q * VF_N) : vf_set1(-0.0f);
    ISO_UNROLLED (i, S8_TALL) {
        const vf row_scale = vf_set1(row_scales[i]);
        ISO_UNROLLED (q, CELLS) {
            vf v;
            s8_floats(&v, sums + i * CELLS + q);
            vf_store(c + q * VF_N, s8_result(v, scales[q], row_scale, bias[q]));
        }
        ISO_NEXT_ROW(c, t->ldc, i, S8_TALL);
    }
}
#endif

/* `rows` rows from `row` on, which are `groups` groups, or one row where a group has two; columns
 * from `column` on. */
ISO_INLINE void s8_tile(const struct s8_product *t, size_t row, size_t column, const size_t rows,
                        const size_t groups, const size_t cells, const size_t chains) {
    enum { STEP_BYTES = S8_STEP * ISO_PANEL };
    const size_t lda = t->lda, stride = S8_ROWS * lda;
    size_t three = 3 * stride, bps = t->bps;
    const int8_t *four[(S8_TALL + 3) / 4];
    const int8_t *b = t->b + column / ISO_PANEL * bps + column % ISO_PANEL * 4;
    const size_t panels = cells > S8_CELLS ? S8_WIDE : 1;
    const size_t ahead = row == 0 ? panels * t->ahead : 0;
    s8t sums[S8_SUMS];
#define S8_SUM(u, i, q) (sums + (((u)*groups + (i)) * cells + (q)) * S8_PARTS)
    ISO_OPAQUE(three);
    ISO_UNROLLED (i, (groups + 3) / 4)
        four[i] = t->a + (row + 4 * i * S8_ROWS) * lda;
    ISO_UNROLLED (e, chains * groups * cells * S8_PARTS)
        sums[e] = s8_zero();
    if (S8_FLIP)
        ISO_UNROLLED (i, groups)
            ISO_UNROLLED (q, cells)
                *S8_SUM(0, i, q) = s8_start(t->start + column + q * VF_N);
    size_t left = t->k / S8_STEP;
/* A step, into chain u. */
#define S8_STEP_OF(u)                                                                              \
    do {                                                                                           \
        s8w w[S8_PARTS * S8_CELLS * S8_WIDE];                                                      \
        if (ahead)                                                                                 \
            ISO_UNROLLED (e, panels)                                                               \
                ISO_UNROLLED (line, STEP_BYTES / 64)                                               \
                    __builtin_prefetch(b + e * bps + ahead + (u)*STEP_BYTES + line * 64, 0, 2);    \
        ISO_UNROLLED (q, cells)                                                                    \
            s8_weights(w + q * S8_PARTS,                                                           \
                       b + q / S8_CELLS * bps + q % S8_CELLS * VF_N * 4 + (u)*STEP_BYTES);         \
        ISO_UNROLLED (i, groups) {                                                                 \
            const s8a a = s8_row(S8_A(i) + (u)*S8_STEP, rows < S8_ROWS ? 0 : lda);                 \
            ISO_UNROLLED (e, cells * S8_PARTS)                                                     \
                S8_SUM(u, i, 0)[e] = s8_dot(S8_SUM(u, i, 0)[e], w[e], a);                          \
        }                                                                                          \
    } while (0)
    for (; left >= chains; left -= chains) {
        ISO_UNROLLED (u, chains)
            S8_STEP_OF(u);
        b += chains * STEP_BYTES;
        ISO_UNROLLED (i, (groups + 3) / 4)
            four[i] += chains * S8_STEP;
    }
    if (chains > 1)
        for (; left > 0; left--) {
            S8_STEP_OF(0);
            b += STEP_BYTES;
            ISO_UNROLLED (i, (groups + 3) / 4)
                four[i] += S8_STEP;
        }
#undef S8_STEP_OF
    ISO_UNROLLED (u, chains - 1)
        ISO_UNROLLED (e, groups * cells * S8_PARTS)
            sums[e] = s8_add(sums[e], S8_SUM(u + 1, 0, 0)[e]);
#if S8_WIDE > 1
    if (cells > S8_CELLS) {
        s8_wide_result(t, row, column, sums);
        return;
    }
#endif
    float floats[S8_TALL * S8_ROWS * S8_COLUMNS];
    ISO_UNROLLED (i, groups)
        ISO_UNROLLED (q, cells) {
            vf v[S8_ROWS];
            s8_floats(v, S8_SUM(0, i, q));
            ISO_UNROLLED (r, S8_ROWS)
                vf_store(floats + (i * S8_ROWS + r) * S8_COLUMNS + q * VF_N, v[r]);
        }
    s8_finish(t, row, column, rows, cells * VF_N, floats);
#undef S8_SUM
}

#define S8_TILE(GROUPS, CELLS, CHAINS)                                                             \
    static ISO_ONE_COPY void s8_tile_##GROUPS(const struct s8_product *t, size_t row,              \
                                              size_t column, size_t rows) {                        \
        s8_tile(t, row, column, rows, GROUPS, CELLS, CHAINS);                                      \
    }
S8_EACH(S8_TILE)
#undef S8_TILE
#if S8_WIDE > 1
static ISO_ONE_COPY void s8_tile_wide(const struct s8_product *t, size_t row, size_t column) {
    s8_tile(t, row, column, S8_TALL * S8_ROWS, S8_TALL, S8_WIDE * S8_CELLS, 1);
}
#endif

/* Rows i to m with one panel. */
static ISO_ONE_COPY void s8_panels(const struct s8_product *t, size_t i, size_t m, size_t column) {
    const size_t end = t->n - column < ISO_PANEL ? t->n : column + ISO_PANEL;
#define S8_ROWS_OF(GROUPS, CELLS, CHAINS)                                                          \
    for (; m - i >= (GROUPS)*S8_ROWS; i += (GROUPS)*S8_ROWS)                                       \
        for (size_t j = column; j < end; j += CELLS * VF_N)                                        \
            s8_tile_##GROUPS(t, i, j, (GROUPS)*S8_ROWS);
    S8_EACH(S8_ROWS_OF)
#undef S8_ROWS_OF
#define S8_ONE(GROUPS, CELLS, CHAINS)                                                              \
    if (GROUPS == 1 && i < m) /* one row, where a group has two */                                 \
        for (size_t j = column; j < end; j += CELLS * VF_N)                                        \
            s8_tile_##GROUPS(t, i, j, 1);
    S8_EACH(S8_ONE)
#undef S8_ONE
}
#endif /* S8_WIDENS */

#ifndef S8_NO_ENTRY /* who defines it has gemm_s8 and s8_peak of its own */
static void gemm_s8(float *c, size_t ldc, const int8_t *a, size_t lda, const float *row_scales,
                    const int8_t *b, size_t bps, const float *scales, const int32_t *start,
                    const float *bias, size_t m, size_t n, size_t k) {
    ISO_REQUIRE(k % ISO_S8_STEPS == 0 && k <= ISO_S8_MOST + 1 &&
                (m <= 1 || (lda >= k && ldc >= n)));
    const size_t ahead = s8_prefetches(m, k) ? bps : 0;
    const struct s8_product t = {c,      ldc,   a,    lda, row_scales, b,    bps,
                                 scales, start, bias, n,   k,          ahead};
#if S8_WIDENS
    s8_multiply(&t, m);
#else
    size_t j = 0;
#if S8_WIDE > 1
    const size_t tall = m / (S8_TALL * S8_ROWS) * (S8_TALL * S8_ROWS);
    for (; tall > 0 && n - j >= S8_WIDE * ISO_PANEL; j += S8_WIDE * ISO_PANEL) {
        for (size_t i = 0; i < tall; i += S8_TALL * S8_ROWS)
            s8_tile_wide(&t, i, j);
        for (size_t p = j; p < j + S8_WIDE * ISO_PANEL; p += ISO_PANEL)
            s8_panels(&t, tall, m, p);
    }
#endif
    for (; j < n; j += ISO_PANEL)
        s8_panels(&t, 0, m, j);
#endif
}

/* Independent chains of products in registers. Compilers may not know that the rows of A stay as
 * they are: else they take what is computed from them alone out of the loop. */
#define S8_PEAK_CHAINS (S8_WIDENS ? 8 : S8_SUMS < 12 ? S8_SUMS : 12)
#define S8_PEAK_OPS (2 * S8_ROWS * VF_N * S8_STEP / S8_PARTS * S8_PEAK_CHAINS)
static int s8_peak(size_t rounds) {
    volatile int8_t small = 1;
    int8_t rows[2 * S8_STEP], panel[S8_STEP * ISO_PANEL];
    s8t t[S8_PEAK_CHAINS];
    s8w w[S8_PARTS];
    memset(rows, small, sizeof rows);
    for (size_t i = 0; i < sizeof panel; i++) /* no sum grows */
        panel[i] = (int8_t)(i % 2 ? -small : small);
    s8_weights(w, panel);
    s8a a = s8_row(rows, S8_STEP);
    ISO_UNROLLED (i, S8_PEAK_CHAINS)
        t[i] = s8_zero();
    for (size_t r = 0; r < rounds; r++)
        ISO_UNROLLED (i, S8_PEAK_CHAINS / S8_PARTS) {
            S8_HIDE(a);
            s8_dots(t + i * S8_PARTS, w, a);
        }
    ISO_UNROLLED (i, S8_PEAK_CHAINS - 1)
        t[0] = s8_add(t[0], t[i + 1]);
    int sum;
    memcpy(&sum, &t[0], sizeof sum);
    return sum;
}
#endif
