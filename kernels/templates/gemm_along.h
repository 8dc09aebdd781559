/* SPDX-License-Identifier: MIT
 *
 * Few rows times a row-major B, along the rows of B: several of them at a time, each in runs of a
 * few lines, while the sums pass through C. Tiles that go down the columns of B leave each of its
 * rows after as many lines as they have registers, which the hardware does not prefetch. Here each
 * row has its own load instructions, by which prefetchers tell rows from each other.
 */
#define ALONG_ROWS 4      /* of C, at most */
#define ALONG_FLOATS 8192 /* of a B that does not stay in L1 */
#define ALONG_L3_STEPS 8  /* rows of B at a time: as many streams as the hardware prefetches */
/* Whether there are 16 of a B in L2, though rows 4 KiB apart alias in an L1 of 8 ways. */
#define ALONG_16_STEPS (VF_REGS >= 32)
#define ALONG_SUMS 768 /* that are added to C wait on the stack, below attention's own */

/* Vectors of a tile: a power of two, as most widths are multiples of it. Long runs of one row suit
 * L2, shorter ones of all rows the memory: with 16 registers a line (Zen 3, 2048x512 to 32000x512
 * from memory: 0.67 to 0.92 of the time of 4 lines). */
#define ALONG_VECTORS(m, in_l2)                                                                    \
    ((m) == 1 && (in_l2) && VF_REGS >= 32    ? 16                                                  \
     : (m) == 1 && !(in_l2) && VF_REGS == 16 ? 2                                                   \
     : GEMM_VECTORS(m) >= 8                  ? 8                                                   \
     : GEMM_VECTORS(m) >= 4                  ? 4                                                   \
                                             : 2)

#define along_load(p, j) (!masked || (j) + 1 < vectors ? vf_load(p) : vf_load_n(p, last))
#define along_store(p, v, j)                                                                       \
    (!masked || (j) + 1 < vectors ? vf_store(p, v) : vf_store_n(p, v, last))

/* m rows, columns of `vectors` vectors, the last of which holds `last` where it is masked. */
static inline __attribute__((always_inline)) void
along_tile(float *c, size_t ldc, const float *a, size_t ai, size_t ap, const float *b, size_t bs,
           const size_t m, const size_t vectors, const int masked, size_t last, const size_t steps,
           int first) {
    vf t[GEMM_SUMS];
    const float *from = c;
    ISO_UNROLLED (i, m) {
        ISO_UNROLLED (j, vectors)
            t[i * vectors + j] = vf_set1(0);
        if (!first)
            ISO_UNROLLED (j, vectors)
                t[i * vectors + j] = along_load(from + j * VF_N, j);
        ISO_NEXT_ROW(from, ldc, i, m);
    }
    ISO_UNROLLED (p, steps) {
        vf av[ALONG_ROWS];
        ISO_UNROLLED (i, m)
            av[i] = vf_set1(a[i * ai]);
        ISO_UNROLLED (j, vectors) {
            vf bv = along_load(b + j * VF_N, j);
            if (m > 1)
                ISO_LOADED(bv);
            ISO_UNROLLED (i, m)
                t[i * vectors + j] = vf_fma(av[i], bv, t[i * vectors + j]);
        }
        ISO_NEXT_ROW(a, ap, p, steps);
        ISO_NEXT_ROW(b, bs, p, steps);
    }
    ISO_UNROLLED (i, m) {
        ISO_UNROLLED (j, vectors)
            along_store(c + j * VF_N, t[i * vectors + j], j);
        ISO_NEXT_ROW(c, ldc, i, m);
    }
}

static inline __attribute__((always_inline)) void
along_steps(float *c, size_t ldc, const float *a, size_t ai, size_t ap, const float *b, size_t bs,
            const size_t m, size_t n, const size_t steps, int first, const int in_l2) {
    const size_t vectors = ALONG_VECTORS(m, in_l2);
    /* Up to where B's vectors lie in one line each: those across two take twice as long. */
    const size_t head = m == 1 ? floats_before_line(b, bs) : 0;
    size_t j = 0;
#define ALONG_TILE(V, masked, last)                                                                \
    along_tile(c + j, ldc, a, ai, ap, b + j, bs, m, V, masked, last, steps, first)
    if (head > 0 && head < n) {
        ALONG_TILE(1, 1, head);
        j = head;
    }
    for (; n - j >= vectors * VF_N; j += vectors * VF_N)
        ALONG_TILE(vectors, 0, VF_N);
    for (; vectors == 16 && n - j >= 8 * VF_N; j += 8 * VF_N)
        ALONG_TILE(8, 0, VF_N);
        /* What is left of one row in few tiles: a vector by itself leaves each row of B after a
         * line, and where rows are 4 KiB apart they drive each other out of L1. */
#define ALONG_LAST(V)                                                                              \
    if (m == 1 && steps >= 8 && n - j > ((V)-1) * VF_N) {                                          \
        const size_t width = n - j < (V)*VF_N ? n - j : (V)*VF_N;                                  \
        ALONG_TILE(V, 1, width - ((V)-1) * VF_N);                                                  \
        j += width;                                                                                \
    }
    ALONG_LAST(8)
    ALONG_LAST(4)
    ALONG_LAST(2)
    for (; j < n; j += VF_N)
        ALONG_TILE(1, 1, n - j < VF_N ? n - j : VF_N);
#undef ALONG_LAST
#undef ALONG_TILE
}

/* C = the chain over p of fma(a[i*ai + p*ap], b[p*bs + j], .), from +0, or with `more` from C.
 * in_l2: B is in L2. */
static inline __attribute__((always_inline)) void along_rows(float *c, size_t ldc, const float *a,
                                                             size_t ai, size_t ap, const float *b,
                                                             size_t bs, const size_t m, size_t n,
                                                             size_t k, int more, int in_l2) {
    size_t p = 0;
#define ALONG_STEPS(S)                                                                             \
    for (; k - p >= (S); p += (S))                                                                 \
        along_steps(c, ldc, a + p * ap, ai, ap, b + p * bs, bs, m, n, S, !more && p == 0, in_l2);
    if (m <= 2 && in_l2 && ALONG_16_STEPS)
        ALONG_STEPS(16)
    ALONG_STEPS(8)
    if (m == 1)
        ALONG_STEPS(4)
    ALONG_STEPS(1)
#undef ALONG_STEPS
}

/* clang-format off */
#define ALONG(M)                                                                                   \
    static ISO_ONE_COPY void gemm_along_##M(float *c, size_t ldc, const float *a, size_t ai,       \
                                            size_t ap, const float *b, size_t bs, size_t n,        \
                                            size_t k, int more, int in_l2) {                       \
        if (ALONG_VECTORS(M, 1) == ALONG_VECTORS(M, 0))                                            \
            along_rows(c, ldc, a, ai, ap, b, bs, M, n, k, more, in_l2);                            \
        else if (in_l2)                                                                            \
            along_rows(c, ldc, a, ai, ap, b, bs, M, n, k, more, 1);                                \
        else                                                                                       \
            along_rows(c, ldc, a, ai, ap, b, bs, M, n, k, more, 0);                                \
    }
ALONG(1) ALONG(2) ALONG(3) ALONG(4)
#define ALONG_CASE(M) case M: gemm_along_##M(c, ldc, a, ai, ap, b, bs, n, k, more, in_l2); break;
static void along_some(float *c, size_t ldc, const float *a, size_t ai, size_t ap, const float *b,
                       size_t bs, size_t m, size_t n, size_t k, int more) {
    /* Of a larger B callers ask for few steps at a time. */
    const int in_l2 = n <= ISO_L2_FLOATS / k && !(VF_REGS == 16 && k <= ALONG_L3_STEPS);
    switch (m) {
        ALONG_CASE(1) ALONG_CASE(2) ALONG_CASE(3) ALONG_CASE(4)
    default: break;
    }
}
/* clang-format on */

#if GEMM_BY_ROW
/* A row of B after the other. All of B lies in one run, which is read as such: the hardware
 * prefetches it best, and few instructions for each line let the core run ahead. */
#define BY_ROW_VECTORS 8
#if GEMM_BY_ROW == 1
/* One row of A. Some of its sums stay in registers: those of the `head` columns up to where B's
 * vectors lie in one line each, and the next `kept` vectors. Where all do, vectors across two lines
 * take no longer. */
static inline __attribute__((always_inline)) void by_row_kept(float *c, const float *a, size_t ap,
                                                              const float *b, size_t bs, size_t n,
                                                              size_t k, size_t head,
                                                              const size_t kept) {
    vf first = vf_load_n(c, head), t[24];
    float *from = c + head;
    b += head, n -= head;
    ISO_UNROLLED (v, kept)
        t[v] = vf_load(from + v * VF_N);
    for (size_t p = 0; p < k; p++, a += ap, b += bs) {
        const vf av = vf_set1(*a);
        first = vf_fma(av, vf_load_n(b - head, head), first);
        ISO_UNROLLED (v, kept)
            t[v] = vf_fma(av, vf_load(b + v * VF_N), t[v]);
        size_t j = kept * VF_N;
        for (; n - j >= BY_ROW_VECTORS * VF_N; j += BY_ROW_VECTORS * VF_N) {
            float *q = from + j;
            ISO_UNROLLED (v, BY_ROW_VECTORS)
                vf_store(q + v * VF_N,
                         vf_fma(av, vf_load(b + j + v * VF_N), vf_load(q + v * VF_N)));
        }
        for (; j < n; j += VF_N) {
            const size_t width = n - j < VF_N ? n - j : VF_N;
            store_w(from + j, vf_fma(av, load_w(b + j, width), load_w(from + j, width)), width);
        }
    }
    vf_store_n(c, first, head);
    ISO_UNROLLED (v, kept)
        vf_store(from + v * VF_N, t[v]);
}
#define BY_ROW_KEPT(KEPT)                                                                          \
    static ISO_ONE_COPY void by_row_##KEPT(float *c, const float *a, size_t ap, const float *b,    \
                                           size_t bs, size_t n, size_t k, size_t head) {           \
        by_row_kept(c, a, ap, b, bs, n, k, head, KEPT);                                            \
    }
BY_ROW_KEPT(8)
BY_ROW_KEPT(16)
BY_ROW_KEPT(24)
static void by_rows(float *c, size_t ldc, const float *a, size_t ap, const float *b, size_t bs,
                    size_t m, size_t n, size_t k) {
    (void)ldc, (void)m;
    if (n >= 25 * VF_N)
        by_row_24(c, a, ap, b, bs, n, k, floats_before_line(b, bs));
    else
        (n >= 24 * VF_N   ? by_row_24
         : n >= 16 * VF_N ? by_row_16
                          : by_row_8)(c, a, ap, b, bs, n, k, 0);
}
#else
static inline __attribute__((always_inline)) void by_row(float *c, size_t ldc, const float *a,
                                                         size_t ap, const float *b, size_t bs,
                                                         const size_t m, size_t n, size_t k) {
    for (size_t p = 0; p < k; p++, a += ap, b += bs) {
        vf av[ALONG_ROWS];
        size_t j = 0;
        ISO_UNROLLED (i, m)
            av[i] = vf_set1(a[i]);
        for (; n - j >= BY_ROW_VECTORS * VF_N; j += BY_ROW_VECTORS * VF_N) {
            vf bv[BY_ROW_VECTORS];
            float *q = c + j;
            ISO_UNROLLED (v, BY_ROW_VECTORS) {
                bv[v] = vf_load(b + j + v * VF_N);
                ISO_LOADED(bv[v]);
            }
            ISO_UNROLLED (i, m) {
                ISO_UNROLLED (v, BY_ROW_VECTORS)
                    vf_store(q + v * VF_N, vf_fma(av[i], bv[v], vf_load(q + v * VF_N)));
                ISO_NEXT_ROW(q, ldc, i, m);
            }
        }
        for (; j < n; j += VF_N) {
            const size_t width = n - j < VF_N ? n - j : VF_N;
            const vf bv = load_w(b + j, width);
            ISO_UNROLLED (i, m) {
                float *q = c + i * ldc + j;
                store_w(q, vf_fma(av[i], bv, load_w(q, width)), width);
            }
        }
    }
}
static void by_rows(float *c, size_t ldc, const float *a, size_t ap, const float *b, size_t bs,
                    size_t m, size_t n, size_t k) {
    switch (m) {
    case 1: by_row(c, ldc, a, ap, b, bs, 1, n, k); break;
    case 2: by_row(c, ldc, a, ap, b, bs, 2, n, k); break;
    case 3: by_row(c, ldc, a, ap, b, bs, 3, n, k); break;
    case 4: by_row(c, ldc, a, ap, b, bs, 4, n, k); break;
    default: break;
    }
}
#endif

/* Whether there is a loop for that. */
static inline int goes_by_row(size_t m, size_t n) {
    return m - 1 < GEMM_BY_ROW && (GEMM_BY_ROW > 1 || n >= BY_ROW_VECTORS * VF_N);
}
static ISO_ONE_COPY void gemm_by_row(float *c, size_t ldc, const float *a, size_t ap,
                                     const float *b, size_t bs, size_t m, size_t n, size_t k,
                                     int more) {
    for (size_t i = 0; i < m && !more; i++)
        memset(c + i * ldc, 0, n * sizeof *c);
    by_rows(c, ldc, a, ap, b, bs, m, n, k);
}
#endif

/* The same with the modes of gemm_strip. */
static void gemm_along(float *c, size_t ldc, const float *a, size_t ai, size_t ap, const float *b,
                       size_t bs, size_t m, size_t n, size_t k, int mode) {
    if (mode != ISO_STRIP_ADD) {
        along_some(c, ldc, a, ai, ap, b, bs, m, n, k, mode == ISO_STRIP_CONTINUE);
        return;
    }
    float sums[ALONG_SUMS];
    const size_t most = m == 1 ? ALONG_SUMS : m == 2 ? ALONG_SUMS / 2 : ALONG_SUMS / 4;
    for (size_t j = 0; j < n; j += most) {
        const size_t columns = n - j < most ? n - j : most;
        along_some(sums, most, a, ai, ap, b + j, bs, m, columns, k, 0);
        for (size_t i = 0; i < m; i++)
            for (size_t l = 0; l < columns; l += VF_N) {
                const size_t w = columns - l < VF_N ? columns - l : VF_N;
                float *q = c + i * ldc + j + l;
                store_w(q, vf_add(load_w(q, w), load_w(sums + i * most + l, w)), w);
            }
    }
}

/* Whether a product goes that way. More than GEMM_ROWS_ALONG rows are faster in tiles, unless B
 * comes from memory and its callers ask for so few steps at a time. */
static inline int goes_along(size_t m, size_t n, size_t k, size_t bs, size_t bps) {
    return GEMM_ROWS_ALONG > 0 && m <= (k <= ALONG_L3_STEPS ? ALONG_ROWS : GEMM_ROWS_ALONG) &&
           bps == ISO_PANEL && bs > ISO_PANEL && n >= 8 * ISO_PANEL && n > ALONG_FLOATS / k;
}
