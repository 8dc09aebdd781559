/* SPDX-License-Identifier: MIT
 *
 * Products of int8 where both factors become 16 bits. Rows of A do so once for S8_COLUMNS columns,
 * not for each tile, and a piece at a time: S8_PIECE steps of S8_TALL rows, or more of fewer rows.
 * Their stride is a constant, so that a tile needs one pointer for all of them. A tile has VF_N
 * columns; its sums wait in memory between pieces.
 */
_Static_assert(S8_ROWS == 1 && S8_SUMS == S8_TALL * S8_PARTS, "each group is a row");

#define S8_STRIDE(ROWS) (S8_TALL / (ROWS)*S8_PIECE)

/* Adds `steps` times S8_STEP steps to sums [groups][S8_COLUMNS]. */
ISO_INLINE void s8_tile(float *sums, const int16_t *a, const int8_t *b, size_t steps,
                        const size_t groups) {
    s8t t[S8_SUMS];
    ISO_UNROLLED (e, groups * S8_PARTS)
        t[e] = s8_zero();
    for (; steps > 0; steps--, a += S8_STEP, b += S8_STEP * ISO_PANEL) {
        s8w w[S8_PARTS];
        s8_weights(w, b);
        ISO_UNROLLED (i, groups) {
            const s8a row = s8_wide_row(a + i * S8_STRIDE(groups));
            ISO_UNROLLED (e, S8_PARTS)
                t[i * S8_PARTS + e] = s8_dot(t[i * S8_PARTS + e], w[e], row);
        }
    }
    ISO_UNROLLED (i, groups)
        s8_keep(sums + i * S8_COLUMNS, t + i * S8_PARTS);
}

#define S8_TILE(GROUPS, CELLS, CHAINS)                                                             \
    static ISO_ONE_COPY void s8_tile_##GROUPS(float *sums, const int16_t *a, const int8_t *b,      \
                                              size_t steps) {                                      \
        s8_tile(sums, a, b, steps, GROUPS);                                                        \
    }
S8_EACH(S8_TILE)
#undef S8_TILE

/* `rows` rows from `row` on with the block of columns from `column` on. */
ISO_INLINE void s8_block(const struct s8_product *t, size_t row, size_t column, const size_t rows,
                         void (*tile)(float *, const int16_t *, const int8_t *, size_t)) {
    const size_t most = S8_STRIDE(rows), left = t->n - column;
    const size_t columns = left < S8_COLUMNS ? left : S8_COLUMNS;
    const int8_t *a = t->a + row * t->lda, *b = t->b + column / ISO_PANEL * t->bps;
    int16_t wide[S8_TALL * S8_PIECE];
    float sums[S8_TALL * S8_COLUMNS];
    memset(sums, 0, rows * S8_COLUMNS * sizeof *sums);
    for (size_t p = 0, some; p < t->k; p += some) {
        some = t->k - p < most ? t->k - p : most;
        ISO_UNROLLED (i, rows)
            s8_widen(wide + i * most, a + i * t->lda + p, some);
        for (size_t j = 0; j < columns; j += VF_N)
            tile(sums + j, wide, b + j / ISO_PANEL * t->bps + p * ISO_PANEL + j % ISO_PANEL * 4,
                 some / S8_STEP);
    }
    ISO_UNROLLED (i, rows)
        for (size_t j = 0; j < columns; j += VF_N)
            s8_float(sums + i * S8_COLUMNS + j);
    s8_finish(t, row, column, rows, columns, sums);
}

/* Rows i to m with one block. */
static ISO_ONE_COPY void s8_panels(const struct s8_product *t, size_t i, size_t m, size_t column) {
#define S8_ROWS_OF(GROUPS, CELLS, CHAINS)                                                          \
    for (; m - i >= (GROUPS); i += (GROUPS))                                                       \
        s8_block(t, i, column, GROUPS, s8_tile_##GROUPS);
    S8_EACH(S8_ROWS_OF)
#undef S8_ROWS_OF
}
