/* SPDX-License-Identifier: MIT
 *
 * Products of int8 where both factors become 16 bits. Rows of A do so once for many columns, not
 * for each tile, and a piece at a time: S8_PIECE steps of S8_TALL rows, or more of fewer rows.
 * Their stride is a constant, so that a tile needs one pointer for all of them. Between pieces the
 * sums of a tile wait in C, as integers.
 */
_Static_assert(S8_ROWS == 1, "each group is a row");

#define S8_STRIDE(ROWS) (S8_TALL / (ROWS)*S8_PIECE)
/* Bytes of B that all rows of A pass, one piece after the other, while they stay in L2. */
#define S8_BLOCK_BYTES ((size_t)1 << 17)

/* Steps p to p + steps of the rows that `wide` has, and the columns of a tile from `column` on. */
ISO_INLINE void s8_tile(const struct s8_product *t, const int16_t *wide, size_t row, size_t column,
                        size_t p, size_t steps, const size_t groups, const size_t cells) {
    const int8_t *b = t->b + column / ISO_PANEL * t->bps + column % ISO_PANEL * 4 + p * ISO_PANEL;
    const int8_t *end = b + steps * ISO_PANEL;
    const size_t ahead = row == 0 && column % ISO_PANEL == 0 ? t->ahead : 0;
    s8t sums[S8_SUMS];
    ISO_UNROLLED (e, groups * cells * S8_PARTS)
        sums[e] = s8_zero();
    for (; b != end; wide += S8_STEP, b += S8_STEP * ISO_PANEL) {
        s8w w[S8_SUMS];
        __builtin_prefetch(b + ahead, 0, 2);
        ISO_UNROLLED (q, cells)
            s8_weights(w + q * S8_PARTS, b + q * VF_N * 4);
        ISO_UNROLLED (i, groups) {
            const s8a a = s8_wide_row(wide + i * S8_STRIDE(groups));
            ISO_UNROLLED (q, cells)
                s8_dots(sums + (i * cells + q) * S8_PARTS, w + q * S8_PARTS, a);
        }
    }
    ISO_UNROLLED (q, cells) {
        const size_t first = column + q * VF_N, left = t->n > first ? t->n - first : 0;
        const size_t width = left < VF_N ? left : VF_N;
        float *c = t->c + row * t->ldc + first;
        vf v[S8_TALL];
        ISO_UNROLLED (i, groups)
            v[i] = s8_across(sums + (i * cells + q) * S8_PARTS);
        if (p > 0) {
            const float *from = c;
            ISO_UNROLLED (i, groups) {
                v[i] = s8_sum(v[i], load_w(from, width));
                ISO_NEXT_ROW(from, t->ldc, i, groups);
            }
        }
        if (p + steps == t->k) {
            const vf scales = vf_load(t->scales + first);
            const vf bias = t->bias ? load_w(t->bias + first, width) : vf_set1(-0.0f);
            ISO_UNROLLED (i, groups)
                v[i] = s8_result(s8_float(v[i]), scales, vf_set1(t->row_scales[row + i]), bias);
        }
        ISO_UNROLLED (i, groups) {
            store_w(c, v[i], width);
            ISO_NEXT_ROW(c, t->ldc, i, groups);
        }
    }
}

/* Rows of a tile, from `row` on, with the columns from `column` to `end`. */
#define S8_TILE(GROUPS, CELLS, CHAINS)                                                             \
    static ISO_ONE_COPY void s8_tiles_##GROUPS(const struct s8_product *t, const int16_t *wide,    \
                                               size_t row, size_t column, size_t end, size_t p,    \
                                               size_t steps) {                                     \
        for (; column < end; column += (CELLS)*VF_N)                                               \
            s8_tile(t, wide, row, column, p, steps, GROUPS, CELLS);                                \
    }
S8_EACH(S8_TILE)
#undef S8_TILE

typedef void s8_tiles(const struct s8_product *t, const int16_t *wide, size_t row, size_t column,
                      size_t end, size_t p, size_t steps);

/* `rows` rows from `row` on, for each `most` steps at a time, with the columns from `column` on. */
static ISO_ONE_COPY void s8_rows(const struct s8_product *t, size_t row, size_t rows, size_t most,
                                 size_t column, size_t end, s8_tiles *tiles) {
    int16_t wide[S8_TALL * S8_PIECE];
    size_t p = 0, steps;
    do {
        steps = t->k - p < most ? t->k - p : most;
        for (size_t i = 0; i < rows; i++)
            s8_widen(wide + i * most, t->a + (row + i) * t->lda + p, steps);
        tiles(t, wide, row, column, end, p, steps);
    } while ((p += steps) < t->k);
}

/* All rows with some columns at a time. */
static void s8_multiply(const struct s8_product *t, size_t m) {
    const size_t panels = S8_BLOCK_BYTES / (t->k + (t->k == 0)) / ISO_PANEL;
    const size_t columns = (panels > 1 ? panels : 1) * ISO_PANEL;
    for (size_t j = 0; j < t->n; j += columns) {
        const size_t end = t->n - j < columns ? t->n : j + columns;
        size_t i = 0;
#define S8_ROWS_OF(GROUPS, CELLS, CHAINS)                                                          \
    for (; m - i >= (GROUPS); i += (GROUPS))                                                       \
        s8_rows(t, i, GROUPS, S8_STRIDE(GROUPS), j, end, s8_tiles_##GROUPS);
        S8_EACH(S8_ROWS_OF)
#undef S8_ROWS_OF
    }
}
