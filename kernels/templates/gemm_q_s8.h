/* SPDX-License-Identifier: MIT
 *
 * Weights of 4 or 8 bits in groups times rows of int8 in blocks (kernels.h): integers within a
 * block, then one fma of floats, and one more for offsets. q4_tile.h says how sets multiply four
 * numbers by four of a row. Those of 4 bits have no sign there: where they have one, they are 8
 * more than they mean, for which sums make up.
 *
 * A word of 4 bits, unpacked once, meets all rows of a tile. Numbers of 8 bits lie step by step, as
 * products with floats want them, while here four steps of a column have to lie side by side: they
 * are transposed in registers; or, where that takes as long as products and there are many rows,
 * some steps of a panel become words on the stack first. Panels go outside and rows inside.
 */
/* Lines ahead into L2: of panels one after the other, which the hardware prefetches by itself, and
 * of two at a time, of which it brings too few. So few rows take one panel at a time from beyond
 * L2, though two have fewer instructions. */
#define Q4_LINES 16
#define Q4_LINES_OF_TWO 64
#define Q4_ONE_PANEL(kind) ((kind) == QS_4 ? 2 : 1)
#define Q4_STEPS 1024 /* of panels that stay in L1 for more rows than a tile has; whole blocks */

#define Q4_MOST (Q4_PANELS * Q_CHUNKS) /* vectors of a tile's columns */
enum { QS_4, QS_8, QS_WORDS };         /* 4 bits; 8 as they lie; 8 as words */

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

/* Sums of a part of a block, as floats, join those of the tile. */
ISO_INLINE void qs_join(vf *t, const vf *sums, const vf *s, const vf *o,
                        const struct iso_s8_block *a, size_t lda, size_t which, const size_t m,
                        const size_t vectors, int offsets) {
    ISO_UNROLLED (i, m) {
        const vf scale = vf_set1(a[i * lda].scale);
        ISO_UNROLLED (q, vectors) {
            vf *sum = &t[i * vectors + q];
            *sum = vf_fma(sums[i * vectors + q], vf_mul(s[q], scale), *sum);
        }
    }
    if (offsets)
        ISO_UNROLLED (i, m) {
            const vf scaled = vf_set1(a[i * lda].scaled[which]);
            ISO_UNROLLED (q, vectors)
                t[i * vectors + q] = vf_fma(o[q], scaled, t[i * vectors + q]);
        }
}

/* A part of a block from step `first` on, of `words` words, an even number, whose sum is number
 * `which`: all of it, or where groups are 16, a half. */
ISO_INLINE void q4_part(vf *floats, const struct iso_s8_block *a, size_t lda, size_t first,
                        size_t which, const struct qs_columns *at, const size_t m,
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
    ISO_UNROLLED (e, m * vectors)
        floats[e] = q4_floats(sums[e], offsets ? 0 : a[e / vectors * lda].start[which]);
}

/* Words of 8 steps, of 8 bits. */
ISO_INLINE void q8_words(q8w *low, q8w *high, const uint32_t *b, const struct qs_columns *at,
                         const size_t vectors, const int kind) {
#if Q8_WORDS
    if (kind == QS_WORDS) {
        ISO_UNROLLED (q, vectors) {
            const uint32_t *from = QS_PANEL(b, q) + QS_CHUNK(q) * VF_N;
            low[q] = q8_load(from), high[q] = q8_load(from + ISO_PANEL);
        }
        return;
    }
#endif
    (void)kind;
    ISO_UNROLLED (panel, vectors / Q_CHUNKS)
        q8_numbers(low + panel * Q_CHUNKS, high + panel * Q_CHUNKS, b + panel * at->bps);
}

/* The same of 8 bits, which have 2 words for each of `words`. */
ISO_INLINE void q8_part(vf *floats, const struct iso_s8_block *a, size_t lda, size_t first,
                        size_t which, const struct qs_columns *at, const size_t m,
                        const size_t vectors, size_t words, const int kind) {
    const uint32_t *b = at->b;
    q8t sums[Q4_MR * Q4_MOST];
    ISO_UNROLLED (e, m * vectors)
        sums[e] = q8_begin(a[e / vectors * lda].start[which]);
    ISO_NOT_UNROLLED
    for (const uint32_t *end = b + words * 2 * ISO_PANEL; b != end; first += 2 * ISO_Q_STEPS) {
        ISO_UNROLLED (w, 2) {
            q8w low[Q4_MOST], high[Q4_MOST];
            q8_words(low, high, b, at, vectors, kind);
            ISO_UNROLLED (i, m) {
                const int8_t *row = a[i * lda].q + first + w * ISO_Q_STEPS;
                const q4a of_low = q4_row(row), of_high = q4_row(row + 4);
                ISO_UNROLLED (q, vectors) {
                    q8t *sum = &sums[i * vectors + q];
                    *sum = q8_dot(*sum, low[q], high[q], of_low, of_high);
                }
            }
            b += 2 * ISO_PANEL;
        }
    }
    ISO_UNROLLED (e, m * vectors)
        floats[e] = q8_floats(sums[e]);
}

/* m rows and `vectors` vectors of columns, of which n are there. add: to what C has. */
ISO_INLINE void qs_tile(float *c, size_t ldc, const struct iso_s8_block *a, size_t lda,
                        struct qs_columns at[1], const float *bias, const size_t m,
                        const size_t vectors, size_t n, size_t k, const int kind, int type, int add,
                        size_t ahead) {
    enum { HALF = ISO_S8_BLOCK / 2 };
    const size_t group = iso_q_group(type), part = group == HALF ? HALF : ISO_S8_BLOCK;
    const size_t panels = (vectors + Q_CHUNKS - 1) / Q_CHUNKS;
    const int offsets = type & ISO_Q_OFFSETS, integers = kind == QS_WORDS ? 0 : type & ISO_Q_I8;
    const size_t each = kind == QS_4 ? 1 : 2; /* words of 8 steps */
    vf t[Q4_MR * Q4_MOST], floats[Q4_MR * Q4_MOST], s[Q4_MOST], o[Q4_MOST];
    float kept[2 * Q4_MOST * VF_N]; /* s and o, where they have no registers beside products */
    const int crowded = kind == QS_4 && m * vectors >= 8;
    vf of_s[Q4_MOST] = {0}, of_o[Q4_MOST] = {0}; /* F16 of a block, where there are some */
    ISO_UNROLLED (i, m)
        ISO_UNROLLED (q, vectors)
            t[i * vectors + q] =
                add ? load_w(c + i * ldc + (at->chunk + q) * VF_N, QS_WIDTH(q)) : vf_set1(0);
    for (size_t p = 0; p < k; p += group) {
        if (integers && p % ISO_Q_BLOCK == 0) {
            ISO_UNROLLED (q, vectors) {
                const uint16_t *f16 = (const uint16_t *)(const void *)QS_PANEL(at->b, q);
                of_s[q] = vf_load_f16(f16 + QS_CHUNK(q) * VF_N);
                of_o[q] = offsets ? vf_load_f16(f16 + ISO_PANEL + QS_CHUNK(q) * VF_N) : of_s[q];
            }
            at->b += iso_q_head_words(type);
        }
        if (integers)
            ISO_UNROLLED (q, vectors) {
                const int8_t *s8 = (const int8_t *)(const void *)QS_PANEL(at->b, q);
                s[q] = vf_mul(vf_load_s8(s8 + QS_CHUNK(q) * VF_N), of_s[q]);
                o[q] = vf_mul(vf_load_s8(s8 + (offsets ? ISO_PANEL : 0) + QS_CHUNK(q) * VF_N),
                              of_o[q]);
            }
        else
            ISO_UNROLLED (q, vectors) {
                const uint32_t *b = QS_PANEL(at->b, q);
                const int floats_or_f16 = kind == QS_WORDS ? ISO_Q_F32 : type;
                s[q] = q_factor(b, b, 0, QS_CHUNK(q), floats_or_f16);
                o[q] = offsets ? q_factor(b, b, 1, QS_CHUNK(q), floats_or_f16) : vf_set1(0);
            }
        at->b += iso_q_scale_words(type);
        if (crowded)
            ISO_UNROLLED (q, vectors) {
                vf_store(kept + 2 * q * VF_N, s[q]);
                vf_store(kept + (2 * q + 1) * VF_N, o[q]);
            }
        const size_t half = part == HALF ? p / HALF % 2 : 2;
        for (size_t left = group; left > 0; left -= part) {
            const size_t first = half == 1 ? HALF : 0, words = part / ISO_Q_STEPS;
            if (kind != QS_WORDS)
                ISO_UNROLLED (panel, panels) {
                    const uint32_t *next = at->b + panel * at->bps + ahead;
                    ISO_OPAQUE(next);
                    ISO_UNROLLED (i, ISO_S8_BLOCK / ISO_Q_STEPS * each + 1)
                        __builtin_prefetch(next + i * Q_LINE, 0, 2);
                }
            if (kind == QS_4)
                q4_part(floats, a, lda, first, half, at, m, vectors, words, offsets);
            else
                q8_part(floats, a, lda, first, half, at, m, vectors, words, kind);
            if (crowded) {
                const float *from = kept;
                ISO_OPAQUE(from);
                ISO_UNROLLED (q, vectors)
                    s[q] = vf_load(from + 2 * q * VF_N), o[q] = vf_load(from + (2 * q + 1) * VF_N);
            }
            qs_join(t, floats, s, o, a, lda, half, m, vectors, offsets);
            at->b += words * each * ISO_PANEL, a += half > 0;
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
#define QS_ROWS_OF(NAME, M, VECTORS, CHUNKS, KIND)                                                 \
    static ISO_ONE_COPY void NAME##_##M(float *c, size_t ldc, const struct iso_s8_block *a,        \
                                        size_t lda, const struct qs_columns *at,                   \
                                        const float *bias, size_t n, size_t k, int type, int add,  \
                                        size_t ahead) {                                            \
        for (size_t chunk = 0; chunk < CHUNKS && chunk * VF_N < n; chunk += VECTORS) {             \
            struct qs_columns own = *at;                                                           \
            own.chunk = chunk;                                                                     \
            qs_tile(c, ldc, a, lda, &own, bias, M, VECTORS, n, k, KIND, type, add, ahead);         \
        }                                                                                          \
    }
#define QS_CALL(NAME, M)                                                                           \
    NAME##_##M(c + i * ldc, ldc, a + i * lda, lda, at, bias, n, k, type, add, i == 0 ? ahead : 0)
#define QS_CASE(NAME, M) case M: QS_CALL(NAME, M); break;
#define QS_NARROW(NAME, M, KIND) QS_ROWS_OF(NAME, M, Q4_VECTORS(M), Q_CHUNKS, KIND)
#if Q4_PANELS > 1
#define QS_ROWS(NAME, M, KIND) QS_ROWS_OF(NAME, M, Q4_MOST, Q4_MOST, KIND)
QS_NARROW(qs_4_narrow, 1, QS_4) /* of one panel: the last one, or all for few rows */
QS_NARROW(qs_4_narrow, 2, QS_4)
QS_NARROW(qs_8_narrow, 1, QS_8)
#else
#define QS_ROWS(NAME, M, KIND) QS_NARROW(NAME, M, KIND)
#endif
#define QS_4_ROWS(M) QS_ROWS(qs_4, M, QS_4)
#define QS_4_CASE(M) QS_CASE(qs_4, M)
#define QS_8_ROWS(M) QS_ROWS(qs_8, M, QS_8)
#define QS_8_CASE(M) QS_CASE(qs_8, M)
#define QS_WORDS_ROWS(M) QS_ROWS(qs_words, M, QS_WORDS)
#define QS_WORDS_CASE(M) QS_CASE(qs_words, M)
Q4_EACH(QS_4_ROWS)
Q8_EACH(QS_8_ROWS)
#if Q8_WORDS
Q4_EACH(QS_WORDS_ROWS)
#endif
/* clang-format on */

/* All rows with one panel, or Q4_PANELS of them. */
static void qs_panels(float *c, size_t ldc, const struct iso_s8_block *a, size_t lda,
                      const struct qs_columns *at, const float *bias, size_t m, size_t n, size_t k,
                      int kind, int type, int add, size_t ahead) {
#if Q4_PANELS > 1
    if (n <= ISO_PANEL) {
        size_t i = 0;
        for (; kind == QS_4 && i + 2 <= m; i += 2)
            QS_CALL(qs_4_narrow, 2);
        for (; i < m; i++)
            kind == QS_4 ? QS_CALL(qs_4_narrow, 1) : QS_CALL(qs_8_narrow, 1);
        return;
    }
#endif
    for (size_t i = 0, rows; i < m; i += rows) {
        rows = m - i < Q4_MR ? m - i : Q4_MR;
        if (kind == QS_4)
            switch (rows) {
                Q4_EACH(QS_4_CASE)
            default: break;
            }
#if Q8_WORDS
        else if (kind == QS_WORDS)
            switch (rows) {
                Q4_EACH(QS_WORDS_CASE)
            default: break;
            }
#endif
        else
            switch (rows) {
                Q8_EACH(QS_8_CASE)
            default: break;
            }
    }
}

#if Q8_WORDS
/* At most ISO_Q_BLOCK steps of a panel of 8 bits, from the beginning of a block on, as words: with
 * scales and offsets that are floats, for each 32 steps, or where groups are 16, for these. */
_Static_assert(Q4_PANELS == 1, "words are those of a panel");
enum { Q8_MOST_WORDS = ISO_Q_BLOCK / 16 * (2 + 16 / 4) * ISO_PANEL };
ISO_INLINE int q8_words_type(int type) {
    return (iso_q_group(type) == 16 ? ISO_Q_16 : 0) | ISO_Q_F32 | (type & ISO_Q_OFFSETS);
}
static ISO_ONE_COPY void q8_unpack(uint32_t *to, const uint32_t *b, size_t k, int type,
                                   size_t ahead) {
    const size_t group = iso_q_group(type), part = iso_q_group(q8_words_type(type));
    const uint32_t *head = b;
    for (size_t p = 0; p < k; p += group) {
        b += p == 0 ? iso_q_head_words(type) : 0;
        const uint32_t *factors = b;
        if (!(type & ISO_Q_I8))
            head = b;
        b += iso_q_scale_words(type);
        for (size_t left = group; left > 0; left -= part) {
            for (size_t which = 0; which < (type & ISO_Q_OFFSETS ? 2 : 1); which++) {
                ISO_NOT_UNROLLED
                for (size_t q = 0; q < Q_CHUNKS; q++)
                    vf_store((float *)to + q * VF_N, q_factor(head, factors, which, q, type));
                to += ISO_PANEL;
            }
            ISO_NOT_UNROLLED
            for (size_t step = 0; step < part; step += ISO_Q_STEPS) {
                q8w low[Q_CHUNKS], high[Q_CHUNKS];
                ISO_UNROLLED (i, 2)
                    __builtin_prefetch(b + ahead + i * Q_LINE, 0, 2);
                q8_numbers(low, high, b);
                ISO_UNROLLED (q, Q_CHUNKS)
                    q8_store(to + q * VF_N, low[q]);
                ISO_UNROLLED (q, Q_CHUNKS)
                    q8_store(to + ISO_PANEL + q * VF_N, high[q]);
                b += 2 * ISO_PANEL, to += 2 * ISO_PANEL;
            }
        }
    }
}

/* More rows than Q8_DIRECT. */
static ISO_ONE_COPY void q8_by_words(float *c, size_t ldc, const struct iso_s8_block *a, size_t lda,
                                     const uint32_t *b, size_t bps, const float *bias, size_t m,
                                     size_t n, size_t k, int type, size_t ahead) {
    uint32_t words[Q8_MOST_WORDS];
    const struct qs_columns at = {.b = words};
    for (size_t width; n > 0; n -= width, c += width, b += bps) {
        const uint32_t *from = b;
        size_t p = 0, steps;
        width = n < ISO_PANEL ? n : ISO_PANEL;
        do {
            steps = k - p < ISO_Q_BLOCK ? k - p : ISO_Q_BLOCK;
            q8_unpack(words, from, steps, type, ahead);
            qs_panels(c, ldc, a + p / ISO_S8_BLOCK, lda, &at, p + steps < k ? NULL : bias, m, width,
                      steps, QS_WORDS, q8_words_type(type), p > 0, 0);
            from += steps / iso_q_block(type) * iso_q_words(type);
        } while ((p += steps) < k);
        bias = bias ? bias + width : NULL;
    }
}
#endif

static void gemm_q_s8(float *c, size_t ldc, const struct iso_s8_block *a, size_t lda,
                      const uint32_t *b, size_t bps, const float *bias, size_t m, size_t n,
                      size_t k, int type, int mode) {
    const size_t ahead = mode & ISO_DIRECT_BEYOND_L2 ? Q_LINE : 0; /* times lines */
    const int kind = type & ISO_Q_4 ? QS_4 : QS_8;
    const size_t at_once = m <= Q4_MR ? k : kind == QS_4 ? Q4_STEPS : Q4_STEPS / 2;
    ISO_REQUIRE(k % iso_q_block(type) == 0 && (m <= 1 || (lda >= iso_s8_blocks(k) && ldc >= n)));
#if Q8_WORDS
    if (kind == QS_8 && m > Q8_DIRECT) {
        q8_by_words(c, ldc, a, lda, b, bps, bias, m, n, k, type, ahead * Q4_LINES);
        return;
    }
#endif
    for (size_t width, panels; n > 0; n -= width, c += width, b += panels * bps) {
        size_t p = 0, steps;
        panels = n < Q4_PANELS * ISO_PANEL || (ahead && m <= Q4_ONE_PANEL(kind)) ? 1 : Q4_PANELS;
        width = n < ISO_PANEL ? n : panels * ISO_PANEL;
        do {
            const struct qs_columns at = {.b = b + p / iso_q_block(type) * iso_q_words(type),
                                          .bps = bps};
            steps = k - p < at_once ? k - p : at_once;
            qs_panels(c, ldc, a + p / ISO_S8_BLOCK, lda, &at, p + steps < k ? NULL : bias, m, width,
                      steps, kind, type, p > 0, ahead * (panels > 1 ? Q4_LINES_OF_TWO : Q4_LINES));
        } while ((p += steps) < k);
        bias = bias ? bias + width : NULL;
    }
}
