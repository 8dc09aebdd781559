/* SPDX-License-Identifier: MIT
 *
 * Weights of 4 bits in groups times rows of int8 in blocks (kernels.h): integers within a block,
 * then one fma of floats, and one more for offsets. q4_tile.h says how sets multiply four numbers
 * without a sign by four of a row. Numbers with a sign become so by 8 more than they are, for which
 * sums make up.
 *
 * A word of weights, unpacked once, meets all rows of a tile. Panels go outside and rows inside.
 */
#define Q4_LINES 16   /* ahead into L2, of a panel */
#define Q4_STEPS 1024 /* of panels that stay in L1 for more rows than a tile has; whole blocks */

#define Q4_MOST (Q4_PANELS * Q_CHUNKS) /* vectors of a tile's columns */

/* Where the columns of a tile are: from vector `chunk` of a panel on, or in whole panels. */
struct qs_columns {
    const uint32_t *b; /* of the first panel, from the step at hand on */
    size_t bps, chunk;
};
#define QS_PANEL(from, q) ((from) + (q) / Q_CHUNKS * at->bps)
#define QS_CHUNK(q) (at->chunk + (q) % Q_CHUNKS)
/* Of so many columns that a vector has some are there, or none. */
#define QS_LEFT(q) (n - (at->chunk + (q)) * VF_N)
#define QS_WIDTH(q) (n <= (at->chunk + (q)) * VF_N ? 0 : QS_LEFT(q) < VF_N ? QS_LEFT(q) : VF_N)

/* A part of a block from step `first` on, of `words` words, an even number, whose sum is number
 * `which`: all of it, or where groups are 16, a half. */
ISO_INLINE void qs_part(vf *t, const vf *s, const vf *o, const struct iso_s8_block *a, size_t lda,
                        size_t first, size_t which, const struct qs_columns *at, const size_t m,
                        const size_t vectors, size_t words, int offsets) {
    const uint32_t flip = offsets ? 0 : 0x88888888U, *b = at->b;
    q4t sums[Q4_MR * Q4_MOST];
    ISO_UNROLLED (e, m * vectors)
        sums[e] = q4_begin(offsets ? 0 : a[e / vectors * lda].start[which]);
    ISO_NOT_UNROLLED
    for (const uint32_t *end = b + words * ISO_PANEL; b != end; first += 2 * ISO_Q_STEPS) {
        ISO_UNROLLED (w, 2) {
            q4w low[Q4_MOST], high[Q4_MOST];
            ISO_UNROLLED (q, vectors)
                q4_numbers(&low[q], &high[q], QS_PANEL(b, q) + QS_CHUNK(q) * VF_N, flip);
            ISO_UNROLLED (i, m) {
                const int8_t *row = a[i * lda].q + first + w * ISO_Q_STEPS;
                const q4a of_low = q4_row(row), of_high = q4_row(row + 4);
                ISO_UNROLLED (q, vectors) {
                    q4t *sum = &sums[i * vectors + q];
                    *sum = q4_dot(q4_dot(*sum, low[q], of_low), high[q], of_high);
                }
            }
            b += ISO_PANEL;
        }
    }
    ISO_UNROLLED (i, m) {
        const int32_t start = offsets ? 0 : a[i * lda].start[which];
        const vf scale = vf_set1(a[i * lda].scale);
        ISO_UNROLLED (q, vectors) {
            vf *sum = &t[i * vectors + q];
            *sum = vf_fma(q4_floats(sums[i * vectors + q], start), vf_mul(s[q], scale), *sum);
        }
    }
    if (offsets)
        ISO_UNROLLED (i, m) {
            const vf scaled = vf_set1(a[i * lda].scaled[which]);
            ISO_UNROLLED (q, vectors)
                t[i * vectors + q] = vf_fma(o[q], scaled, t[i * vectors + q]);
        }
}

/* m rows and `vectors` vectors of columns, of which n are there. add: to what C has. */
ISO_INLINE void qs_tile(float *c, size_t ldc, const struct iso_s8_block *a, size_t lda,
                        struct qs_columns at[1], const float *bias, const size_t m,
                        const size_t vectors, size_t n, size_t k, int type, int add, size_t ahead) {
    enum { HALF = ISO_S8_BLOCK / 2 };
    const size_t group = iso_q_group(type), part = group == HALF ? HALF : ISO_S8_BLOCK;
    const size_t panels = (vectors + Q_CHUNKS - 1) / Q_CHUNKS;
    const int offsets = type & ISO_Q_OFFSETS;
    vf t[Q4_MR * Q4_MOST], s[Q4_MOST], o[Q4_MOST];
    vf of_s[Q4_MOST] = {0}, of_o[Q4_MOST] = {0}; /* F16 of a block, where there are some */
    ISO_UNROLLED (i, m)
        ISO_UNROLLED (q, vectors)
            t[i * vectors + q] =
                add ? load_w(c + i * ldc + (at->chunk + q) * VF_N, QS_WIDTH(q)) : vf_set1(0);
    for (size_t p = 0; p < k; p += group) {
        if (type & ISO_Q_I8 && p % ISO_Q_BLOCK == 0) {
            ISO_UNROLLED (q, vectors) {
                const uint16_t *f16 = (const uint16_t *)(const void *)QS_PANEL(at->b, q);
                of_s[q] = vf_load_f16(f16 + QS_CHUNK(q) * VF_N);
                of_o[q] = offsets ? vf_load_f16(f16 + ISO_PANEL + QS_CHUNK(q) * VF_N) : of_s[q];
            }
            at->b += iso_q_head_words(type);
        }
        if (type & ISO_Q_I8)
            ISO_UNROLLED (q, vectors) {
                const int8_t *s8 = (const int8_t *)(const void *)QS_PANEL(at->b, q);
                s[q] = vf_mul(vf_load_s8(s8 + QS_CHUNK(q) * VF_N), of_s[q]);
                o[q] = vf_mul(vf_load_s8(s8 + (offsets ? ISO_PANEL : 0) + QS_CHUNK(q) * VF_N),
                              of_o[q]);
            }
        else
            ISO_UNROLLED (q, vectors) {
                const uint32_t *b = QS_PANEL(at->b, q);
                s[q] = q_factor(b, b, 0, QS_CHUNK(q), type);
                o[q] = offsets ? q_factor(b, b, 1, QS_CHUNK(q), type) : vf_set1(0);
            }
        at->b += iso_q_scale_words(type);
        const size_t half = part == HALF ? p / HALF % 2 : 2;
        for (size_t left = group; left > 0; left -= part) {
            ISO_UNROLLED (panel, panels) {
                const uint32_t *next = at->b + panel * at->bps + ahead;
                ISO_OPAQUE(next);
                ISO_UNROLLED (i, ISO_S8_BLOCK / ISO_Q_STEPS + 1)
                    __builtin_prefetch(next + i * Q_LINE, 0, 2);
            }
            qs_part(t, s, o, a, lda, half == 1 ? HALF : 0, half, at, m, vectors, part / ISO_Q_STEPS,
                    offsets);
            at->b += part / ISO_Q_STEPS * ISO_PANEL, a += half > 0;
        }
    }
    ISO_UNROLLED (i, m) {
        ISO_UNROLLED (q, vectors) {
            const size_t column = (at->chunk + q) * VF_N;
            const vf sum = t[i * vectors + q];
            store_w(c + column, bias ? vf_add(sum, load_w(bias + column, QS_WIDTH(q))) : sum,
                    QS_WIDTH(q));
        }
        ISO_NEXT_ROW(c, ldc, i, m);
    }
}

/* Rows of a tile with one panel or a part of it, or with more of them. */
/* clang-format off */
#define QS_ROWS_OF(NAME, M, VECTORS, CHUNKS)                                                       \
    static ISO_ONE_COPY void NAME##_##M(float *c, size_t ldc, const struct iso_s8_block *a,        \
                                        size_t lda, const uint32_t *b, size_t bps,                 \
                                        const float *bias, size_t n, size_t k, int type,           \
                                        int add, size_t ahead) {                                   \
        for (size_t chunk = 0; chunk < CHUNKS && chunk * VF_N < n; chunk += VECTORS) {             \
            struct qs_columns at = {.b = b, .bps = bps, .chunk = chunk};                           \
            qs_tile(c, ldc, a, lda, &at, bias, M, VECTORS, n, k, type, add, ahead);                \
        }                                                                                          \
    }
#define QS_CALL(NAME, M)                                                                           \
    NAME##_##M(c + i * ldc, ldc, a + i * lda, lda, b, bps, bias, n, k, type, add, i == 0 ? ahead : 0)
#define QS_ROWS(M) QS_ROWS_OF(qs_rows, M, Q4_VECTORS(M), Q_CHUNKS)
#define QS_CASE(M) case M: QS_CALL(qs_rows, M); break;
#define QS_WIDE_ROWS(M) QS_ROWS_OF(qs_wide_rows, M, Q4_MOST, Q4_MOST)
#define QS_WIDE_CASE(M) case M: QS_CALL(qs_wide_rows, M); break;
/* clang-format on */
#if Q4_PANELS > 1
QS_ROWS(1) /* of the last panel, where it is alone */
Q4_EACH(QS_WIDE_ROWS)
#else
Q4_EACH(QS_ROWS)
#endif

/* All rows with one panel, or Q4_PANELS of them. */
static void qs_panels(float *c, size_t ldc, const struct iso_s8_block *a, size_t lda,
                      const uint32_t *b, size_t bps, const float *bias, size_t m, size_t n,
                      size_t k, int type, int add, size_t ahead) {
#if Q4_PANELS > 1
    if (n <= ISO_PANEL) {
        for (size_t i = 0; i < m; i++)
            QS_CALL(qs_rows, 1);
        return;
    }
#endif
    for (size_t i = 0, rows; i < m; i += rows) {
        rows = m - i < Q4_MR ? m - i : Q4_MR;
        switch (rows) {
#if Q4_PANELS > 1
            Q4_EACH(QS_WIDE_CASE)
#else
            Q4_EACH(QS_CASE)
#endif
        default: break;
        }
    }
}

static void gemm_q_s8(float *c, size_t ldc, const struct iso_s8_block *a, size_t lda,
                      const uint32_t *b, size_t bps, const float *bias, size_t m, size_t n,
                      size_t k, int type, int mode) {
    const size_t ahead = mode & ISO_DIRECT_BEYOND_L2 ? Q4_LINES * Q_LINE : 0;
    const size_t most = m > Q4_MR && k > Q4_STEPS ? Q4_STEPS : k;
    ISO_REQUIRE(type & ISO_Q_4 && k % iso_q_block(type) == 0 &&
                (m <= 1 || (lda >= iso_s8_blocks(k) && ldc >= n)));
    for (size_t width, panels; n > 0; n -= width, c += width, b += panels * bps) {
        size_t p = 0, steps;
        panels = n < Q4_PANELS * ISO_PANEL ? 1 : Q4_PANELS;
        width = n < ISO_PANEL ? n : panels * ISO_PANEL;
        do {
            steps = k - p < most ? k - p : most;
            qs_panels(c, ldc, a + p / ISO_S8_BLOCK, lda,
                      b + p / iso_q_block(type) * iso_q_words(type), bps,
                      p + steps < k ? NULL : bias, m, width, steps, type, p > 0, ahead);
        } while ((p += steps) < k);
        bias = bias ? bias + width : NULL;
    }
}
