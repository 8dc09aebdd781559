/* SPDX-License-Identifier: MIT
 *
 * Products that are too small, or have too few rows, for packing to pay: gemm_direct reads A and B
 * where they lie. Columns are vectors here, as many at a time as gemm_tile.h says: GEMM_VECTORS(m).
 */

/* Sums of m rows and `vectors` vectors, of which the last holds `last` columns, go to C. */
static inline __attribute__((always_inline)) void direct_store(float *c, size_t ldc, const vf *t,
                                                               const size_t m, const size_t vectors,
                                                               size_t last, int add) {
    ISO_UNROLLED (i, m) {
        ISO_UNROLLED (j, vectors) {
            float *q = c + j * VF_N;
            vf v = t[i * vectors + j];
            if (j + 1 == vectors && last < VF_N)
                vf_store_n(q, add ? vf_add(vf_load_n(q, last), v) : v, last);
            else
                vf_store(q, add ? vf_add(vf_load(q), v) : v);
        }
        ISO_NEXT_ROW(c, ldc, i, m);
    }
}

/* A B of more floats does not stay in L1, and is prefetched so many steps ahead: where it lies
 * row-major, or comes from memory, the hardware prefetches too late. With four rows or fewer the
 * prefetches take longer than what they save, unless B comes from beyond L2, in panels. */
#define L1_FLOATS 32768
#define PREFETCH_STEPS 32
#define PREFETCH_LINES 128 /* of all panels together, ahead into L2: memory has a long latency */
enum { PREFETCH_NONE, PREFETCH_L1, PREFETCH_L2 };
ISO_INLINE void direct_prefetch(const float *line, const int level) {
    if (level == PREFETCH_L2)
        __builtin_prefetch(line, 0, 2);
    else
        __builtin_prefetch(line, 0, 3);
}
/* The last of up to a line of floats: where a row does not begin at a line, its first ones lie in
 * the last line of the columns before, which is there already. */
#define LAST_OF_LINE(width) (((width) < ISO_PANEL ? (width) : ISO_PANEL) - 1)
/* Of a row-major B, whose ld is often a power of two. None where it is a multiple of GEMM_ALIASED:
 * the rows alias in an L1 of 8 or 12 ways. */
#define PREFETCH_STEPS_ROWS 10

/* Row i of A. Each four rows have an address, from which the same strides lead to them, so that few
 * registers do. three: 3 lda, ready: Intel's cores add addresses on the ports of the FMA, too. */
#define DIRECT_A(i) four[(i) / 4][(i) % 4 == 3 ? three : (i) % 4 * lda]

/* How far panel j of B is from the first one. two: 2 bps, ready. */
#define DIRECT_PANEL(j) ((j) / 2 * two + (j) % 2 * bps)

/* One step of k: `vectors` vectors of B with m rows of A. */
static inline __attribute__((always_inline)) void direct_step(vf *t, const float **four, size_t lda,
                                                              size_t three, const vf *bv,
                                                              const size_t m,
                                                              const size_t vectors) {
    ISO_UNROLLED (i, m) {
        float x = DIRECT_A(i);
        ISO_LANE_OF_FMA(x);
        const vf av = vf_set1(x);
        ISO_UNROLLED (j, vectors)
            t[i * vectors + j] = vf_fma(av, bv[j], t[i * vectors + j]);
    }
}

/* On to the next step, after that `last` product. */
static inline __attribute__((always_inline)) void direct_next(const float **four, const size_t m,
                                                              vf last) {
    ISO_UNROLLED (i, (m + 3) / 4) {
        ISO_AFTER(last, four[i]);
        four[i]++;
    }
}

/* B lies in panels as that of gemm_strip; the last vector has `last` columns: VF_N, or fewer.
 * `prefetch_a`: 13 to 16 rows of A are prefetched, since the hardware follows fewer; `prefetch_b`:
 * B, see PREFETCH_STEPS. *later: what is prefetched into L2 with each step, then `stride` bytes
 * further; NULL, a constant: nothing. `runs`, a constant: so many, each k steps behind the last. */
static inline __attribute__((always_inline)) void
direct_sums(vf *t, const float *a, size_t lda, const float *b, size_t bs, size_t bps,
            const size_t m, const size_t vectors, size_t last, size_t k, const int prefetch_a,
            const int prefetch_b, const char **later, size_t stride, const size_t runs) {
    ISO_UNROLLED (i, m * vectors)
        t[i] = vf_set1(0);
    const float *four[GEMM_DIRECT_TALL / 4 + 1], *ahead = a, *end = a + k;
    const size_t steps_l2 = PREFETCH_LINES * ISO_PANEL / (vectors * VF_N);
    const size_t steps = prefetch_b == PREFETCH_L2 ? steps_l2
                         : bs == ISO_PANEL         ? PREFETCH_STEPS
                                                   : PREFETCH_STEPS_ROWS;
    const size_t distance = steps * bs;
    size_t two = 2 * bps, three = 3 * lda;
    ISO_OPAQUE(two);
    ISO_OPAQUE(three);
    ISO_UNROLLED (i, (m + 3) / 4)
        four[i] = a + 4 * i * lda;
    for (size_t p = 0; four[0] != end; p++) {
        if (prefetch_a) { /* 16 steps are a line of each row */
            __builtin_prefetch(ahead + p + 32, 0, 3);
            ahead = p % 16 == 15 ? a : ahead + lda;
        }
#define DIRECT_B(j)                                                                                \
    (j + 1 == vectors && last < VF_N                                                               \
         ? vf_load_n(b + DIRECT_PANEL(j * VF_N / ISO_PANEL) + j * VF_N % ISO_PANEL, last)          \
         : vf_load(b + DIRECT_PANEL(j * VF_N / ISO_PANEL) + j * VF_N % ISO_PANEL))
#define DIRECT_PREFETCH()                                                                          \
    do {                                                                                           \
        if (prefetch_b)                                                                            \
            ISO_UNROLLED (j, (vectors * VF_N + ISO_PANEL - 1) / ISO_PANEL)                         \
                direct_prefetch(b + DIRECT_PANEL(j) + LAST_OF_LINE(vectors * VF_N) + distance,     \
                                prefetch_b);                                                       \
        if (later)                                                                                 \
            ISO_UNROLLED (r, runs)                                                                 \
                __builtin_prefetch(*later + r * (stride * k), 0, 2);                               \
    } while (0)
        if (m <= 3 && m < vectors) { /* those of A stay in registers, so B is loaded once */
            vf av[GEMM_DIRECT_TALL];
            DIRECT_PREFETCH();
            ISO_UNROLLED (i, m)
                av[i] = vf_set1(DIRECT_A(i));
            ISO_UNROLLED (j, vectors) {
                vf bv = DIRECT_B(j);
                ISO_LOADED(bv);
                ISO_UNROLLED (i, m)
                    t[i * vectors + j] = vf_fma(av[i], bv, t[i * vectors + j]);
            }
        } else {
            vf bv[GEMM_VECTORS(1) > GEMM_VECTORS(2) ? GEMM_VECTORS(1) : GEMM_VECTORS(2)];
            ISO_UNROLLED (j, vectors)
                bv[j] = DIRECT_B(j);
            ISO_AFTER(bv[vectors - 1], b);
            DIRECT_PREFETCH();
            direct_step(t, four, lda, three, bv, m, vectors);
        }
#undef DIRECT_B
#undef DIRECT_PREFETCH
        const vf done = t[m * vectors - 1];
        direct_next(four, m, done);
        ISO_AFTER(done, b);
        b += bs;
        if (later) {
            ISO_AFTER(done, *later);
            *later += stride;
        }
    }
    if (later)
        *later += (runs - 1) * (stride * k);
}

static inline __attribute__((always_inline)) void
direct_tile(float *c, size_t ldc, const float *a, size_t lda, const float *b, size_t bs, size_t bps,
            const size_t m, const size_t vectors, size_t last, size_t k, int add,
            const int prefetch_a, const int prefetch_b) {
    vf t[GEMM_SUMS];
    direct_sums(t, a, lda, b, bs, bps, m, vectors, last, k, prefetch_a, prefetch_b, NULL, 0, 1);
    direct_store(c, ldc, t, m, vectors, last, add);
}

/* From column j on, V vectors at a time: whole panels, or parts of one. As in gemm_strip.h, four
 * are 2 + 2. */
#define DIRECT_TILES(V)                                                                            \
    for (; n - j >= (V)*VF_N && ((V) != 3 || n - j != 4 * VF_N); j += (V)*VF_N)                    \
        direct_tile(c + j, ldc, a, lda, b + j / ISO_PANEL * bps + j % ISO_PANEL, bs, bps, m, V,    \
                    VF_N, k, add, 0, 0);

/* The last columns, in V vectors of which the last may be partly there. */
#define DIRECT_LAST(V)                                                                             \
    direct_tile(c + j, ldc, a, lda, b + j / ISO_PANEL * bps + j % ISO_PANEL, bs, bps, m, V,        \
                n - j - ((V)-1) * VF_N, k, add, 0, 0);

static inline __attribute__((always_inline)) void direct_rows(float *c, size_t ldc, const float *a,
                                                              size_t lda, const float *b, size_t bs,
                                                              size_t bps, const size_t m, size_t n,
                                                              size_t k, int add) {
    const size_t vectors = GEMM_VECTORS(m);
    size_t j = 0;
    /* One row is as fast as B comes, and the hardware prefetches four panels better than eight. */
    if (m > 1 || VF_N < ISO_PANEL || bps == ISO_PANEL || n * k <= L1_FLOATS)
        DIRECT_TILES(vectors)
    if (vectors > 4)
        DIRECT_TILES(4)
    /* A vector that is partly there shares a tile with full ones: by itself it has few chains. */
    if (vectors > 2 && n - j > 3 * VF_N)
        DIRECT_TILES(2)
    if (vectors > 2 && n - j > 2 * VF_N) {
        DIRECT_LAST(3)
        return;
    }
    if (vectors > 2)
        DIRECT_TILES(2)
    if (vectors > 1 && n - j > VF_N) {
        DIRECT_LAST(2)
        return;
    }
    if (vectors > 1)
        DIRECT_TILES(1)
    if (j < n)
        DIRECT_LAST(1)
}

#if GEMM_NEXT_AHEAD
_Static_assert(GEMM_NEXT_ROWS == LINE_FLOATS / 2,
               "all rows have a prefetch in the steps of a line");
static inline __attribute__((always_inline)) void ahead_step(vf *t, const float **four, size_t lda,
                                                             size_t three, const float **b,
                                                             size_t bs, size_t bps, const size_t m,
                                                             const size_t vectors) {
    vf bv[GEMM_VECTORS(1) > GEMM_VECTORS(2) ? GEMM_VECTORS(1) : GEMM_VECTORS(2)];
    ISO_UNROLLED (j, vectors)
        bv[j] = vf_load(*b + j * VF_N / ISO_PANEL * bps + j * VF_N % ISO_PANEL);
    direct_step(t, four, lda, three, bv, m, vectors);
    direct_next(four, m, t[m * vectors - 1]);
    ISO_AFTER(t[m * vectors - 1], *b);
    *b += bs;
}

/* Vectors of the tile that n columns begin with, if all of it is there. Four are 2 + 2. */
static inline size_t next_vectors(size_t most, size_t n) {
    if (most == 3 && n == 4 * VF_N)
        return 2;
    return n >= most * VF_N ? most : n % VF_N ? 0 : n / VF_N;
}

/* The same with a line of each row of A prefetched GEMM_NEXT_AHEAD steps ahead, one each second
 * step, in the rows that follow where these end. */
static inline __attribute__((always_inline)) void
ahead_tile(float *c, size_t ldc, const float *a, size_t lda, const float *b, size_t bs, size_t bps,
           const size_t m, const size_t vectors, size_t k, int add) {
    const size_t ahead = k < GEMM_NEXT_AHEAD ? k : GEMM_NEXT_AHEAD;
    const float *four[GEMM_DIRECT_TALL / 4 + 1];
    size_t three = 3 * lda;
    vf t[GEMM_SUMS];
    ISO_OPAQUE(three);
    ISO_UNROLLED (i, m * vectors)
        t[i] = vf_set1(0);
    ISO_UNROLLED (i, (m + 3) / 4)
        four[i] = a + 4 * i * lda;
    for (size_t left = k, steps; left > 0; left -= steps) {
        const float *line = left > ahead ? four[0] + ahead : four[0] + ahead - k + m * lda;
        steps = left < LINE_FLOATS ? left : LINE_FLOATS;
        for (size_t pairs = steps / 2; pairs > 0; pairs--) {
            __builtin_prefetch(line, 0, 3);
            line += lda;
            ISO_UNROLLED (two, 2)
                ahead_step(t, four, lda, three, &b, bs, bps, m, vectors);
        }
        if (steps % 2)
            ahead_step(t, four, lda, three, &b, bs, bps, m, vectors);
    }
    direct_store(c, ldc, t, m, vectors, VF_N, add);
}
#endif

/* clang-format off */
#if GEMM_DIRECT_MR == GEMM_MR
#define DIRECT_EACH GEMM_EACH
#elif GEMM_DIRECT_MR == 8
#define DIRECT_EACH(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#endif
#if GEMM_DIRECT_MR == 8
#define PREFETCH_EACH(X) X(3) X(4) X(5) X(6) X(7) X(8)
#define PREFETCH_FEWEST 3
#elif GEMM_DIRECT_MR == 6
#define PREFETCH_EACH(X) X(4) X(5) X(6)
#define PREFETCH_FEWEST 5
#else
#define PREFETCH_EACH(X)
#define PREFETCH_FEWEST 5
#endif
#if GEMM_DIRECT_TALL == GEMM_DIRECT_MR
#define TALL_EACH(X)
#define NEXT_EACH(X)
#elif GEMM_DIRECT_TALL == 16 && GEMM_DIRECT_MR == 8
#define TALL_EACH(X) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16)
#define NEXT_EACH(X) X(8, 1) X(8, 2) X(8, 3)
#elif GEMM_DIRECT_TALL == 12 && GEMM_DIRECT_MR == 6
#define TALL_EACH(X) X(7) X(8) X(9) X(10) X(11) X(12)
#define NEXT_EACH(X) X(8, 1) X(6, 2)
#endif
#define DIRECT_ROWS(M)                                                                             \
    static ISO_ONE_COPY void direct_rows_##M(float *c, size_t ldc, const float *a, size_t lda,     \
                                             const float *b, size_t bs, size_t bps, size_t n,      \
                                             size_t k, int add) {                                  \
        direct_rows(c, ldc, a, lda, b, bs, bps, M, n, k, add);                                     \
    }
#define DIRECT_ROWS_OF(M) direct_rows_##M
#define DIRECT_FULL_ROWS(M) DIRECT_ROWS_OF(M)
/* See L1_FLOATS: the widest tiles prefetch B, the columns that are left do not. Fewer rows have
 * more loads than the prefetches leave room for. l2: into L2, see PREFETCH_LINES. */
#define PREFETCH_TILES(M, level)                                                                   \
    for (; n - j >= GEMM_VECTORS(M) * VF_N; j += GEMM_VECTORS(M) * VF_N)                           \
        direct_tile(c + j, ldc, a, lda, b + j / ISO_PANEL * bps + j % ISO_PANEL, bs, bps, M,       \
                    GEMM_VECTORS(M), VF_N, k, add, 0, level);
#define PREFETCH_ROWS(M)                                                                           \
    static ISO_ONE_COPY void prefetch_rows_##M(float *c, size_t ldc, const float *a, size_t lda,   \
                                          const float *b, size_t bs, size_t bps, size_t n,         \
                                          size_t k, int add, int l2) {                             \
        size_t j = 0;                                                                              \
        if (M >= 4 && l2)                                                                          \
            PREFETCH_TILES(M, PREFETCH_L2)                                                         \
        PREFETCH_TILES(M, PREFETCH_L1)                                                             \
        if (j < n)                                                                                 \
            DIRECT_FULL_ROWS(M)                                                                    \
            (c + j, ldc, a, lda, b + j / ISO_PANEL * bps + j % ISO_PANEL, bs, bps, n - j, k, add); \
    }
/* More rows with the columns of one vector: else there were too few chains to hide the latency of
 * the FMA. */
#define TALL_ROWS(M)                                                                               \
    static ISO_ONE_COPY void direct_tall_##M(float *c, size_t ldc, const float *a, size_t lda,     \
                                             const float *b, size_t bs, size_t n, size_t k,        \
                                             int add) {                                            \
        if (n < VF_N)                                                                              \
            direct_tile(c, ldc, a, lda, b, bs, 0, M, 1, n, k, add, 0, 0);                          \
        else if (M > 12 && k > 64)                                                                 \
            direct_tile(c, ldc, a, lda, b, bs, 0, M, 1, VF_N, k, add, 1, 0);                       \
        else                                                                                       \
            direct_tile(c, ldc, a, lda, b, bs, 0, M, 1, VF_N, k, add, 0, 0);                       \
    }
/* The rows that follow these are prefetched with the first columns. NEXT_EACH: the tiles that tiny
 * products meet, and a transposed B which is read as A. */
#define NEXT_ROWS(M, vectors)                                                                      \
    static ISO_ONE_COPY void next_rows_##M##_##vectors(float *c, size_t ldc, const float *a,       \
                                                       size_t lda, const float *b, size_t bs,      \
                                                       size_t bps, size_t n, size_t k, int add) {  \
        const size_t j = vectors * VF_N;                                                           \
        ahead_tile(c, ldc, a, lda, b, bs, bps, M, vectors, k, add);                                 \
        if (j < n)                                                                                 \
            DIRECT_FULL_ROWS(GEMM_DIRECT_MR)                                                       \
            (c + j, ldc, a, lda, b + j / ISO_PANEL * bps, bs, bps, n - j, k, add);                 \
    }
#define NEXT_CASE(M, V)                                                                            \
    if (m == M && next_vectors(GEMM_VECTORS(M), n) == V) {                                         \
        next_rows_##M##_##V(c, ldc, a, lda, b, bs, bps, n, k, add);                                \
        return;                                                                                    \
    }
#define TALL_CASE(M) case M: direct_tall_##M(c, ldc, a, lda, b, bs, n, k, add); break;
#define PREFETCH_CASE(M) case M: prefetch_rows_##M(c, ldc, a, lda, b, bs, bps, n, k, add, l2); return;
#define DIRECT_CASE(M) case M: direct_rows_##M(c, ldc, a, lda, b, bs, bps, n, k, add); break;
DIRECT_EACH(DIRECT_ROWS)
PREFETCH_EACH(PREFETCH_ROWS)
TALL_EACH(TALL_ROWS)
NEXT_EACH(NEXT_ROWS)
/* clang-format on */

static void gemm_direct(float *c, size_t ldc, const float *a, size_t lda, const float *b, size_t bs,
                        size_t bps, size_t m, size_t n, size_t k, int mode) {
    const int add = mode & ISO_DIRECT_ADD, l2 = mode & ISO_DIRECT_BEYOND_L2;
    ISO_REQUIRE(m <= (n <= VF_N ? GEMM_DIRECT_TALL : GEMM_DIRECT_MR) && (m <= 1 || ldc >= n));
    if (k > 0 && goes_along(m, n, k, bs, bps)) {
        gemm_along(c, ldc, a, lda, 1, b, bs, m, n, k, add ? ISO_STRIP_ADD : ISO_STRIP_ASSIGN);
        return;
    }
    if (mode & ISO_DIRECT_NEXT) {
        NEXT_EACH(NEXT_CASE)
    }
    /* So many rows prefetch B. Fewer leave it to the hardware. */
    const size_t fewest = l2 ? 4 : bs == ISO_PANEL && n * k > ISO_L2_FLOATS ? PREFETCH_FEWEST : 5;
    if (k > PREFETCH_STEPS_ROWS && n * k > L1_FLOATS && m >= fewest &&
        (bs == ISO_PANEL || l2 || bs % GEMM_ALIASED))
        switch (m) {
            PREFETCH_EACH(PREFETCH_CASE)
        default: break;
        }
    switch (m) {
        DIRECT_EACH(DIRECT_CASE)
        TALL_EACH(TALL_CASE)
    default: break;
    }
}
