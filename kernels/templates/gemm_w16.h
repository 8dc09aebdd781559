/* SPDX-License-Identifier: MIT
 *
 * Weights of 16 bits, F16 or BF16, in wide panels (kernels.h). gemm_w16 widens them in registers,
 * gemm_widen makes panels of floats of them. Widening is exact, so sums have the bits that they
 * have with those floats.
 *
 * A pair of vectors has columns j and 16 + j of a wide panel. Of BF16 these lie side by side, so
 * one load, a shift and a mask widen both, without a shuffle. gemm_tile.h says how many pairs a
 * tile of m rows takes: GEMM_PAIRS(m), a part of a panel or some panels; at most GEMM_W16_MR rows.
 *
 * Attention (attention_w16.h) has them with any stride bs between two steps, which a wide panel has
 * one of ISO_WIDE_PANEL.
 */
#if GEMM_W16_MR == 4
#define W16_EACH(X) X(1) X(2) X(3) X(4)
#else
#define W16_EACH(X) X(1) X(2) X(3) X(4) X(5) X(6)
#endif
#define W16_PREFETCHING 3 /* rows from which a B from beyond L2 is prefetched */

/* Pair `chunk` of a step of a wide panel. */
ISO_INLINE void w16_load(vf *pair, const uint16_t *step, size_t chunk, const int type) {
    if (type == ISO_W16_BF16) {
        vf_load_bf16(pair, step + 2 * chunk * VF_N);
    } else {
        pair[0] = vf_load_f16(step + chunk * VF_N);
        pair[1] = vf_load_f16(step + ISO_PANEL + chunk * VF_N);
    }
}

/* Sums of m rows and `pairs` pairs, the first of which is `chunk` of its panel. B is prefetched so
 * many elements ahead, if there are rows enough: fewer are as fast as memory. */
ISO_INLINE void w16_tile(float *c, size_t ldc, const float *a, size_t lda, const uint16_t *b,
                         size_t bs, size_t bps, size_t chunk, const size_t m, const size_t pairs,
                         size_t k, int add, const int type, size_t distance) {
    const size_t vectors = 2 * pairs, panels = (pairs + W16_CHUNKS - 1) / W16_CHUNKS;
#if defined(GEMM_F16_ROWS)
    if (type == ISO_W16_F16 && m <= GEMM_F16_ROWS) {
        gemm_f16_tile(c, ldc, a, lda, b, bs, bps, m, panels, k, add);
        return;
    }
#endif
    vf t[GEMM_SUMS];
    const float *four[GEMM_DIRECT_TALL / 4 + 1], *end = a + k;
    size_t two = 2 * bps, three = 3 * lda;
    ISO_OPAQUE(two);
    ISO_OPAQUE(three);
    ISO_UNROLLED (i, m * vectors)
        t[i] = vf_set1(0);
    ISO_UNROLLED (i, (m + 3) / 4)
        four[i] = a + 4 * i * lda;
#define W16_PAIR(v, q) w16_load(v, b + DIRECT_PANEL(q / W16_CHUNKS), chunk + q % W16_CHUNKS, type)
    while (four[0] != end) {
        if (m >= W16_PREFETCHING)
            ISO_UNROLLED (j, panels)
                __builtin_prefetch(b + DIRECT_PANEL(j) + distance, 0, 2);
        if (m <= 3 && m < vectors) { /* those of A stay in registers, so B is loaded once */
            vf av[GEMM_DIRECT_TALL];
            ISO_UNROLLED (i, m)
                av[i] = vf_set1(DIRECT_A(i));
            ISO_UNROLLED (q, pairs) {
                vf bv[2];
                W16_PAIR(bv, q);
                ISO_UNROLLED (h, 2)
                    ISO_UNROLLED (i, m)
                        t[i * vectors + 2 * q + h] =
                            vf_fma(av[i], bv[h], t[i * vectors + 2 * q + h]);
            }
        } else {
            vf bv[GEMM_SUMS];
            ISO_UNROLLED (q, pairs)
                W16_PAIR(bv + 2 * q, q);
            direct_step(t, four, lda, three, bv, m, vectors);
        }
        direct_next(four, m, t[m * vectors - 1]);
        ISO_AFTER(t[m * vectors - 1], b);
        b += bs;
    }
#undef W16_PAIR
    ISO_UNROLLED (i, m) {
        ISO_UNROLLED (v, vectors) {
            float *q = c + v / 2 / W16_CHUNKS * ISO_WIDE_PANEL + v % 2 * ISO_PANEL +
                       (chunk + v / 2 % W16_CHUNKS) * VF_N;
            const vf sum = t[i * vectors + v];
            vf_store(q, add ? vf_add(vf_load(q), sum) : sum);
        }
        ISO_NEXT_ROW(c, ldc, i, m);
    }
}

ISO_INLINE void w16_rows(float *c, size_t ldc, const float *a, size_t lda, const uint16_t *b,
                         size_t bs, size_t bps, const size_t m, size_t n, size_t k, int mode,
                         const int type) {
    const int wide = GEMM_PAIRS(m) > W16_CHUNKS;
    const size_t panels = wide ? GEMM_PAIRS(m) / W16_CHUNKS : 1;
    const size_t pairs = GEMM_PAIRS(m) < W16_CHUNKS ? GEMM_PAIRS(m) : W16_CHUNKS;
    const size_t ahead = mode & ISO_DIRECT_BEYOND_L2 ? PREFETCH_LINES * ISO_WIDE_PANEL : 0;
    const int add = mode & ISO_DIRECT_ADD;
    if (wide)
        for (; n >= panels * ISO_WIDE_PANEL; n -= panels * ISO_WIDE_PANEL) {
            w16_tile(c, ldc, a, lda, b, bs, bps, 0, m, panels * W16_CHUNKS, k, add, type,
                     ahead / panels);
            c += panels * ISO_WIDE_PANEL, b += panels * bps;
        }
    if (wide && panels > 2 && n >= 2 * ISO_WIDE_PANEL) { /* a block of keys, a head of 64 */
        w16_tile(c, ldc, a, lda, b, bs, bps, 0, m, 2 * W16_CHUNKS, k, add, type, ahead / 2);
        n -= 2 * ISO_WIDE_PANEL, c += 2 * ISO_WIDE_PANEL, b += 2 * bps;
    }
    while (n > 0) {
        float sums[GEMM_W16_MR * ISO_WIDE_PANEL];
        const int part = n < ISO_WIDE_PANEL;
        for (size_t chunk = 0; chunk < W16_CHUNKS; chunk += pairs)
            w16_tile(part ? sums : c, part ? ISO_WIDE_PANEL : ldc, a, lda, b, bs, bps, chunk, m,
                     pairs, k, part ? 0 : add, type, ahead);
        if (part) {
            panel_part(c, ldc, sums, ISO_WIDE_PANEL, m, n, add);
            break;
        }
        n -= ISO_WIDE_PANEL, c += ISO_WIDE_PANEL, b += bps;
    }
}

/* clang-format off */
#define W16_ROWS(M)                                                                                \
    static ISO_ONE_COPY void f16_rows_##M(float *c, size_t ldc, const float *a, size_t lda,        \
                                          const uint16_t *b, size_t bs, size_t bps, size_t n,      \
                                          size_t k, int mode) {                                    \
        w16_rows(c, ldc, a, lda, b, bs, bps, M, n, k, mode, ISO_W16_F16);                          \
    }                                                                                              \
    static ISO_ONE_COPY void bf16_rows_##M(float *c, size_t ldc, const float *a, size_t lda,       \
                                           const uint16_t *b, size_t bs, size_t bps, size_t n,     \
                                           size_t k, int mode) {                                   \
        w16_rows(c, ldc, a, lda, b, bs, bps, M, n, k, mode, ISO_W16_BF16);                         \
    }
W16_EACH(W16_ROWS)
#define F16_CASE(M) case M: f16_rows_##M(c, ldc, a, lda, b, bs, bps, n, k, mode); break;
#define BF16_CASE(M) case M: bf16_rows_##M(c, ldc, a, lda, b, bs, bps, n, k, mode); break;
/* clang-format on */

static void w16_strip(float *c, size_t ldc, const float *a, size_t lda, const uint16_t *b,
                      size_t bs, size_t bps, size_t m, size_t n, size_t k, int type, int mode) {
    ISO_REQUIRE(m <= GEMM_W16_MR && (m <= 1 || ldc >= n));
    if (type == ISO_W16_BF16)
        switch (m) {
            W16_EACH(BF16_CASE)
        default: break;
        }
    else
        switch (m) {
            W16_EACH(F16_CASE)
        default: break;
        }
}

static void gemm_w16(float *c, size_t ldc, const float *a, size_t lda, const uint16_t *b,
                     size_t bps, size_t m, size_t n, size_t k, int type, int mode) {
    w16_strip(c, ldc, a, lda, b, ISO_WIDE_PANEL, bps, m, n, k, type, mode);
}

/* k steps of a wide panel into one panel of floats or two. */
ISO_INLINE void widen_panel(float *panels, const uint16_t *b, size_t bs, size_t k, const int both,
                            const int type) {
    float *second = panels + k * ISO_PANEL;
    for (size_t p = 0; p < k; p++, b += bs, panels += ISO_PANEL, second += ISO_PANEL)
        for (size_t chunk = 0; chunk < W16_CHUNKS; chunk++) {
            vf pair[2];
            w16_load(pair, b, chunk, type);
            vf_store(panels + chunk * VF_N, pair[0]);
            if (both)
                vf_store(second + chunk * VF_N, pair[1]);
        }
}

static ISO_ONE_COPY void w16_widen(float *panels, const uint16_t *b, size_t bs, size_t bps,
                                   size_t n, size_t k, int type) {
    for (; n > ISO_PANEL; n -= n < ISO_WIDE_PANEL ? n : ISO_WIDE_PANEL) {
        if (type == ISO_W16_BF16)
            widen_panel(panels, b, bs, k, 1, ISO_W16_BF16);
        else
            widen_panel(panels, b, bs, k, 1, ISO_W16_F16);
        panels += k * ISO_WIDE_PANEL, b += bps;
    }
    if (n > 0 && type == ISO_W16_BF16)
        widen_panel(panels, b, bs, k, 0, ISO_W16_BF16);
    else if (n > 0)
        widen_panel(panels, b, bs, k, 0, ISO_W16_F16);
}

static void gemm_widen(float *panels, const uint16_t *b, size_t bps, size_t n, size_t k, int type) {
    w16_widen(panels, b, ISO_WIDE_PANEL, bps, n, k, type);
}
