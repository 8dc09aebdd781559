/* SPDX-License-Identifier: MIT
 *
 * Products of BF16 in native numerics, with the wide panels of gemm_w16, so that the same packed
 * weights serve both. b16_tile.h says what a tile is made of: B16_CHUNKS(m) chunks for m rows, a
 * part of a wide panel or some panels. Each sum is one chain along k, whatever the tile.
 *
 * Strips of rows go outside and columns inside: A stays in L1, B comes from L2.
 */
#define B16_PREFETCHING 3 /* rows from which a B from beyond L2 is prefetched */
#define B16_AHEAD 128     /* lines of all panels, into L2 */

/* Group i of A, as DIRECT_A of gemm_direct.h. */
#define B16_A(i) (four[(i) / 4] + ((i) % 4 == 3 ? three : (i) % 4 * stride))

/* Weights of chunk q, and group i of A. */
#define B16_CHUNK(w, q)                                                                            \
    do {                                                                                           \
        b16_weights(w, b + (q) / W16_CHUNKS * bps + (chunk + (q) % W16_CHUNKS) * 2 * VF_N, steps); \
        ISO_UNROLLED (e, vectors)                                                                  \
            ISO_LOADED((w)[e]);                                                                    \
    } while (0)
#define B16_GROUP(i) b16_row(B16_A(i), ((i) + 1) * B16_ROWS > m ? 0 : lda)

/* The products of `steps` steps, at most B16_STEP, with m rows. */
ISO_INLINE void b16_step(b16t *t, const uint16_t **four, size_t stride, size_t three, size_t lda,
                         const uint16_t *b, size_t bps, size_t chunk, const size_t m,
                         const size_t chunks, const size_t steps) {
    const size_t groups = (m + B16_ROWS - 1) / B16_ROWS, vectors = 2 * B16_PARTS;
    if (groups < chunks) { /* A stays in registers, so that only one chunk of B has to */
        b16a a[B16_MR];
        ISO_UNROLLED (i, groups)
            a[i] = B16_GROUP(i);
        ISO_UNROLLED (q, chunks) {
            b16w w[2 * B16_PARTS];
            B16_CHUNK(w, q);
            ISO_UNROLLED (i, groups)
                ISO_UNROLLED (e, vectors)
                    t[(i * chunks + q) * vectors + e] =
                        b16_dot(t[(i * chunks + q) * vectors + e], w[e], a[i]);
        }
    } else {
        b16w w[B16_SUMS];
        ISO_UNROLLED (q, chunks)
            B16_CHUNK(w + q * vectors, q);
        ISO_UNROLLED (i, groups) {
            const b16a a = B16_GROUP(i);
            ISO_UNROLLED (e, chunks * vectors)
                t[i * chunks * vectors + e] = b16_dot(t[i * chunks * vectors + e], w[e], a);
        }
    }
}

/* Sums of m rows and `chunks` chunks, the first of which is `chunk` of its panel. B is prefetched
 * so many elements ahead. */
ISO_INLINE void b16_tile(float *c, size_t ldc, const uint16_t *a, size_t lda, const uint16_t *b,
                         size_t bps, size_t chunk, const size_t m, const size_t chunks, size_t k,
                         int add, size_t distance) {
    const size_t groups = (m + B16_ROWS - 1) / B16_ROWS, vectors = 2 * B16_PARTS;
    const size_t panels = (chunks + W16_CHUNKS - 1) / W16_CHUNKS, stride = B16_ROWS * lda;
    const uint16_t *four[(B16_MR / B16_ROWS + 3) / 4];
    size_t three = 3 * stride;
    b16t t[B16_SUMS];
    ISO_OPAQUE(three);
    ISO_UNROLLED (i, (groups + 3) / 4)
        four[i] = a + 4 * i * stride;
    ISO_UNROLLED (e, groups * chunks * vectors)
        t[e] = b16_zero();
    for (; k >= B16_STEP; k -= B16_STEP) {
        if (m >= B16_PREFETCHING)
            ISO_UNROLLED (q, panels)
                ISO_UNROLLED (s, B16_STEP)
                    __builtin_prefetch(b + q * bps + s * ISO_WIDE_PANEL + distance, 0, 2);
        b16_step(t, four, stride, three, lda, b, bps, chunk, m, chunks, B16_STEP);
        ISO_UNROLLED (i, (groups + 3) / 4) {
            ISO_OPAQUE(four[i]);
            four[i] += B16_STEP;
        }
        b += B16_STEP * ISO_WIDE_PANEL;
    }
    ISO_UNROLLED (steps, B16_STEP)
        if (k == steps && steps > 0)
            b16_step(t, four, stride, three, lda, b, bps, chunk, m, chunks, steps);
    ISO_UNROLLED (i, m) {
        ISO_UNROLLED (q, 2 * chunks) {
            float *to = c + q / 2 / W16_CHUNKS * ISO_WIDE_PANEL + q % 2 * ISO_PANEL +
                        (chunk + q / 2 % W16_CHUNKS) * VF_N;
            vf rows[B16_ROWS];
            b16_floats(rows, t + (i / B16_ROWS * 2 * chunks + q) * B16_PARTS);
            const vf sum = rows[i % B16_ROWS];
            vf_store(to, add ? vf_add(vf_load(to), sum) : sum);
        }
        ISO_NEXT_ROW(c, ldc, i, m);
    }
}

ISO_INLINE void b16_rows(float *c, size_t ldc, const uint16_t *a, size_t lda, const uint16_t *b,
                         size_t bps, const size_t m, size_t n, size_t k, int mode) {
    const int wide = B16_CHUNKS(m) > W16_CHUNKS;
    const size_t panels = wide ? B16_CHUNKS(m) / W16_CHUNKS : 1;
    const size_t chunks = wide ? W16_CHUNKS : B16_CHUNKS(m);
    const size_t ahead = mode & ISO_DIRECT_BEYOND_L2 ? B16_AHEAD * ISO_WIDE_PANEL : 0;
    const int add = mode & ISO_DIRECT_ADD;
    if (wide)
        for (; n >= panels * ISO_WIDE_PANEL; n -= panels * ISO_WIDE_PANEL) {
            b16_tile(c, ldc, a, lda, b, bps, 0, m, panels * W16_CHUNKS, k, add, ahead / panels);
            c += panels * ISO_WIDE_PANEL, b += panels * bps;
        }
    while (n > 0) {
        float sums[B16_MR * ISO_WIDE_PANEL];
        const int part = n < ISO_WIDE_PANEL;
        for (size_t chunk = 0; chunk < W16_CHUNKS; chunk += chunks)
            b16_tile(part ? sums : c, part ? ISO_WIDE_PANEL : ldc, a, lda, b, bps, chunk, m, chunks,
                     k, part ? 0 : add, ahead);
        if (part) {
            panel_part(c, ldc, sums, ISO_WIDE_PANEL, m, n, add);
            break;
        }
        n -= ISO_WIDE_PANEL, c += ISO_WIDE_PANEL, b += bps;
    }
}

/* clang-format off */
#define B16_ROWS_OF(M)                                                                             \
    static ISO_ONE_COPY void b16_rows_##M(float *c, size_t ldc, const uint16_t *a, size_t lda,     \
                                          const uint16_t *b, size_t bps, size_t n, size_t k,       \
                                          int mode) {                                              \
        b16_rows(c, ldc, a, lda, b, bps, M, n, k, mode);                                           \
    }
B16_EACH(B16_ROWS_OF)
#undef B16_ROWS_OF
#define B16_CASE(M) case M: b16_rows_##M(c, ldc, a, lda, b, bps, n, k, mode); break;
/* clang-format on */

static void gemm_b16(float *c, size_t ldc, const uint16_t *a, size_t lda, const uint16_t *b,
                     size_t bps, size_t m, size_t n, size_t k, int mode) {
    ISO_REQUIRE(m <= 1 || (lda >= iso_b16_padded(k) && ldc >= n));
    const size_t strips = (m + B16_MR - 1) / B16_MR;
    for (size_t left = strips; left > 0; left--) { /* of even height */
        const size_t rows = (m + left - 1) / left;
        switch (rows) {
            B16_EACH(B16_CASE)
        default: break;
        }
        m -= rows, c += rows * ldc, a += rows * lda;
        mode &= ~ISO_DIRECT_BEYOND_L2; /* the first strip has brought it */
    }
}
#undef B16_CASE

/* Independent chains of products in registers, as s8_peak. */
#define B16_PEAK_CHAINS 16
#define B16_PEAK_FLOPS (2 * B16_ROWS * VF_N * B16_STEP / B16_PARTS * B16_PEAK_CHAINS)
static float b16_peak(size_t rounds) {
    volatile uint16_t one = 0x3f80;
    uint16_t rows[2 * ISO_B16_STEPS], panel[B16_STEP * ISO_WIDE_PANEL];
    b16t t[B16_PEAK_CHAINS];
    b16w w[2 * B16_PARTS];
    for (size_t i = 0; i < 2 * ISO_B16_STEPS; i++)
        rows[i] = one;
    for (size_t i = 0; i < B16_STEP * ISO_WIDE_PANEL; i++) /* no sum grows */
        panel[i] = (uint16_t)(one | (i / ISO_WIDE_PANEL % 2 ? 0x8000 : 0));
    b16_weights(w, panel, B16_STEP);
    b16a a = b16_row(rows, ISO_B16_STEPS);
    ISO_UNROLLED (i, B16_PEAK_CHAINS)
        t[i] = b16_zero();
    for (size_t r = 0; r < rounds; r++)
        ISO_UNROLLED (i, B16_PEAK_CHAINS) {
            ISO_LOADED(a);
            t[i] = b16_dot(t[i], w[0], a);
        }
    ISO_UNROLLED (i, B16_PEAK_CHAINS - 1)
        t[0] = b16_add(t[0], t[i + 1]);
    float sum;
    memcpy(&sum, &t[0], sizeof sum);
    return sum;
}
