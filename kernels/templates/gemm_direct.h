/* SPDX-License-Identifier: MIT
 *
 * Products that are too small, or have too few rows, for packing to pay: gemm_direct reads A and B
 * where they lie, gemm_strip_bt transposes the rows of a transposed B in registers. Columns are
 * vectors here, as many at a time as gemm_tile.h says: GEMM_VECTORS(m) and GEMM_VECTORS_BT(m).
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
 * `prefetch_a`: up to 16 rows of A are prefetched, since the hardware follows fewer: these, or into
 * L2 those that follow them; `prefetch_b`: B, see PREFETCH_STEPS. *later: what is prefetched into
 * L2 with each step, then `stride` bytes further; NULL, a constant: nothing. `runs`, a constant: so
 * many, each k steps behind the last. */
static inline __attribute__((always_inline)) void
direct_sums(vf *t, const float *a, size_t lda, const float *b, size_t bs, size_t bps,
            const size_t m, const size_t vectors, size_t last, size_t k, const int prefetch_a,
            const int prefetch_b, const char **later, size_t stride, const size_t runs) {
    ISO_UNROLLED (i, m * vectors)
        t[i] = vf_set1(0);
    const float *four[GEMM_DIRECT_TALL / 4 + 1],
        *ahead = prefetch_a == PREFETCH_L2 ? a + m * lda : a, *end = a + k;
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
        if (prefetch_a == PREFETCH_L1) { /* 16 steps are a line of each row */
            __builtin_prefetch(ahead + p + 32, 0, 3);
            ahead = p % 16 == 15 ? a : ahead + lda;
        } else if (prefetch_a == PREFETCH_L2) {
            __builtin_prefetch(ahead + p, 0, 2);
            ahead = p % 16 == 15 ? a + m * lda : ahead + lda;
        }
#define DIRECT_B(j)                                                                                \
    (j + 1 == vectors && last < VF_N                                                               \
         ? vf_load_n(b + DIRECT_PANEL(j * VF_N / ISO_PANEL) + j * VF_N % ISO_PANEL, last)          \
         : vf_load(b + DIRECT_PANEL(j * VF_N / ISO_PANEL) + j * VF_N % ISO_PANEL))
#define DIRECT_PREFETCH()                                                                          \
    do {                                                                                           \
        if (prefetch_b)                                                                            \
            ISO_UNROLLED (j, (vectors * VF_N + ISO_PANEL - 1) / ISO_PANEL)                         \
                direct_prefetch(b + DIRECT_PANEL(j) + distance, prefetch_b);                       \
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

/*
 * VF_TRANSPOSED steps of k with a transposed B, [n][ldb]; A is a strip. `whole`, a constant: all of
 * them, unrolled. Else those from `skip` to `steps`, in a loop: there are few, and much code
 * unrolled. `there`, a constant: all vectors have VF_N columns, and VF_TRANSPOSED numbers of k can
 * be read. Else there is one vector, of `last` columns, and `steps` numbers; `rows` is room for it,
 * zero where nothing comes.
 */
static inline __attribute__((always_inline)) const float *
direct_steps_bt(vf *t, float *rows, const float *a, size_t as, const float *b, size_t ldb,
                const size_t m, const size_t vectors, const int there, size_t last, const int whole,
                size_t skip, size_t steps) {
    vf bv[VF_TRANSPOSED * GEMM_VECTORS_BT(1)];
    for (size_t l = 0; l < last && !there; l++)
        memcpy(rows + l * VF_TRANSPOSED, b + l * ldb, steps * sizeof(float));
    ISO_UNROLLED (j, vectors)
        vf_load_transposed(bv + VF_TRANSPOSED * j, there ? b + j * VF_N * ldb : rows,
                           there ? ldb : VF_TRANSPOSED);
#define DIRECT_STEP(s)                                                                             \
    do {                                                                                           \
        ISO_UNROLLED (i, m) {                                                                      \
            vf av = vf_set1(a[i]);                                                                 \
            ISO_UNROLLED (j, vectors)                                                              \
                t[i * vectors + j] = vf_fma(av, bv[VF_TRANSPOSED * j + (s)], t[i * vectors + j]);  \
        }                                                                                          \
        a += as;                                                                                   \
        ISO_OPAQUE(a);                                                                             \
    } while (0)
    if (whole) {
        ISO_UNROLLED (s, VF_TRANSPOSED)
            DIRECT_STEP(s);
    } else {
        ISO_NOT_UNROLLED
        for (size_t s = skip; s < steps; s++)
            DIRECT_STEP(s);
    }
#undef DIRECT_STEP
    return a;
}

/* Not inlined: the loop around it would lose its registers. */
#define LINE_STEPS_BT ISO_PANEL /* a line of each row */
static ISO_ONE_COPY void prefetch_rows_bt(const float *b, size_t ldb, size_t rows) {
    prefetch_rows(b, ldb, rows, LINE_STEPS_BT);
    __asm__ volatile(""); /* else it has no effect, to compilers, and goes */
}

/* Steps p to k. Where all vectors are there and VF_TRANSPOSED steps as well, the last ones are
 * transposed with some that were there already. ahead: floats to the next rows of B, of which as
 * many lines are prefetched into L2 as are transposed, or 0. */
static inline __attribute__((always_inline)) void
direct_rest_bt(vf *t, float *rows, const float *a, size_t as, const float *b, size_t ldb,
               const size_t m, const size_t vectors, const int there, size_t last, size_t p,
               size_t k, size_t ahead) {
    a += p * as;
    while (p + VF_TRANSPOSED <= k) {
        const size_t end = ahead && k - p > LINE_STEPS_BT ? p + LINE_STEPS_BT : k;
        if (ahead)
            prefetch_rows_bt(b + ahead + p, ldb, VF_N * vectors);
        for (; p + VF_TRANSPOSED <= end; p += VF_TRANSPOSED)
            a = direct_steps_bt(t, rows, a, as, b + p, ldb, m, vectors, there, last, 1, 0,
                                VF_TRANSPOSED);
    }
    if (p < k)
        direct_steps_bt(t, rows, a, as, b + k - VF_TRANSPOSED, ldb, m, vectors, there, last, 0,
                        VF_TRANSPOSED - k % VF_TRANSPOSED, VF_TRANSPOSED);
}

/* From so many floats on B comes from memory, where a few lines of each of its rows are slow unless
 * they are prefetched. */
#define MEMORY_FLOATS_BT ((size_t)3 << 20)
static int is_in_memory_bt(size_t n, size_t ldb) { return n * ldb >= MEMORY_FLOATS_BT; }
/* Rows with a stride of a multiple of so many floats alias in L1. */
#define ALIASED_BT 1024

/* More rows of B at a time would alias in the cache: often ldb is a power of two. */
static inline __attribute__((always_inline)) void
direct_sums_bt(vf *t, const float *a, size_t as, const float *b, size_t ldb, const size_t m,
               const size_t vectors, const int there, size_t last, size_t k, size_t ahead) {
    float rows[VF_N * VF_TRANSPOSED];
    if (!there || k < VF_TRANSPOSED)
        memset(rows, 0, sizeof rows);
    ISO_UNROLLED (i, m * vectors)
        t[i] = vf_set1(0);
    if (k >= VF_TRANSPOSED) {
        direct_rest_bt(t, rows, a, as, b, ldb, m, vectors, there, last, 0, k, ahead);
        return;
    }
    ISO_UNROLLED (j, vectors) {
        vf one[GEMM_SUMS];
        ISO_UNROLLED (i, m)
            one[i] = t[i * vectors + j];
        direct_steps_bt(one, rows, a, as, b + j * VF_N * ldb, ldb, m, 1, 0, there ? VF_N : last, 0,
                        0, k);
        ISO_UNROLLED (i, m)
            t[i * vectors + j] = one[i];
    }
}

#if GEMM_HALVES_BT > 0
/* Of a B that stays in L2; from beyond L2 two streams in each row are too many. */
#define HALVES_FLOATS 262144
#define HALVES_FLOATS_ROW 2097152 /* with a single row of A */
#define HALVES_STEPS 128          /* from which that pays */

/* VF_LINE steps of k with VF_N rows of B, whose next lines are prefetched. */
static inline __attribute__((always_inline)) void
direct_line_bt(vf *t, const float *a, size_t as, const float *b, size_t ldb, const size_t m) {
    vf bv[VF_LINE];
    const float *next = b + VF_LINE;
    ISO_UNROLLED (i, VF_N / 4) {
        ISO_OPAQUE(next);
        ISO_UNROLLED (l, 4)
            __builtin_prefetch(next + l * ldb, 0, 3);
        next += 4 * ldb;
    }
    vf_load_transposed_line(bv, b, ldb);
    ISO_UNROLLED (s, VF_LINE) {
        ISO_UNROLLED (i, m)
            t[i] = vf_fma(vf_set1(a[i]), bv[s], t[i]);
        a += as;
        ISO_OPAQUE(a);
    }
}

/*
 * Few rows have too few chains to hide the latency of the FMA, and more rows of B at a time would
 * alias in L1. So the first half of k for VF_N columns is interleaved with the second half for
 * those before, which maps to other sets. The first and the last columns have nothing to interleave
 * with. Returns how many columns are done.
 */
static inline __attribute__((always_inline)) size_t
direct_halves_bt(float *c, size_t ldc, const float *a, size_t as, const float *b, size_t ldb,
                 const size_t m, size_t n, size_t k, int add) {
    const size_t half = k / 2 / VF_LINE * VF_LINE;
    vf t[GEMM_MR], before[GEMM_MR];
    ISO_UNROLLED (i, m)
        before[i] = vf_set1(0);
    for (size_t p = 0; p < half; p += VF_LINE)
        direct_line_bt(before, a + p * as, as, b + p, ldb, m);
    size_t j = 0;
    for (; n - j >= VF_N; j += VF_N) {
        const int more = n - j >= 2 * VF_N;
        const float *next = b + VF_N * ldb;
        ISO_UNROLLED (i, m)
            t[i] = vf_set1(0);
        for (size_t p = 0; p < half && more; p += VF_LINE) {
            direct_line_bt(t, a + p * as, as, next + p, ldb, m);
            direct_line_bt(before, a + (half + p) * as, as, b + half + p, ldb, m);
        }
        direct_rest_bt(before, NULL, a, as, b, ldb, m, 1, 1, VF_N, more ? 2 * half : half, k, 0);
        direct_store(c + j, ldc, before, m, 1, VF_N, add);
        ISO_UNROLLED (i, m)
            before[i] = t[i];
        b = next;
    }
    return j;
}
#endif

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

#if GEMM_LINES_BT
/*
 * Where a transposition takes a part of a line, lines of aliased rows are evicted before the next
 * one. So they are copied first, a line of each row. n: whole tiles; k: whole lines.
 */
static inline __attribute__((always_inline)) void lines_bt(float *c, size_t ldc, const float *a,
                                                           size_t as, const float *b, size_t ldb,
                                                           const size_t m, size_t n, size_t k,
                                                           int add) {
    const size_t vectors = GEMM_VECTORS_BT(m), columns = vectors * VF_N;
    const int in_memory = is_in_memory_bt(n, ldb);
    float lines[GEMM_VECTORS_BT(1) * VF_N * LINE_STEPS_BT];
    for (size_t j = 0; j < n; j += columns, b += columns * ldb) {
        const float *strip = a;
        vf t[GEMM_SUMS];
        ISO_UNROLLED (i, m * vectors)
            t[i] = vf_set1(0);
        for (size_t p = 0; p < k; p += LINE_STEPS_BT) {
            const float *from = b + p;
            if (in_memory)
                prefetch_rows_bt(from + columns * ldb, ldb, columns);
            for (size_t l = 0; l < columns; l++, from += ldb)
                ISO_UNROLLED (i, LINE_STEPS_BT / VF_N)
                    vf_store(lines + l * LINE_STEPS_BT + i * VF_N, vf_load(from + i * VF_N));
            ISO_NOT_UNROLLED
            for (size_t s = 0; s < LINE_STEPS_BT; s += VF_TRANSPOSED)
                strip = direct_steps_bt(t, NULL, strip, as, lines + s, LINE_STEPS_BT, m, vectors, 1,
                                        VF_N, 1, 0, VF_TRANSPOSED);
        }
        direct_store(c + j, ldc, t, m, vectors, VF_N, add);
    }
}
#endif

static inline __attribute__((always_inline)) void
direct_rows_bt(float *c, size_t ldc, const float *a, size_t as, const float *b, size_t ldb,
               const size_t m, size_t n, size_t k, int add) {
    const size_t vectors = GEMM_VECTORS_BT(m), columns = vectors * VF_N;
    const int in_memory = ldb % ALIASED_BT && is_in_memory_bt(n, ldb);
    vf t[GEMM_SUMS];
    if (n < VF_N) {
        direct_sums_bt(t, a, as, b, ldb, m, 1, 0, n, k, 0);
        direct_store(c, ldc, t, m, 1, n, add);
        return;
    }
#if GEMM_HALVES_BT > 0
    if (m <= GEMM_HALVES_BT && k >= HALVES_STEPS && n >= 4 * VF_N &&
        n <= (m == 1 ? HALVES_FLOATS_ROW : HALVES_FLOATS) / k) {
        const size_t done = direct_halves_bt(c, ldc, a, as, b, ldb, m, n, k, add);
        c += done, b += done * ldb, n -= done;
    }
#endif
    if (vectors > 1)
        for (; n >= columns; n -= columns, c += columns, b += columns * ldb) {
            direct_sums_bt(t, a, as, b, ldb, m, vectors, 1, VF_N, k, in_memory ? columns * ldb : 0);
            direct_store(c, ldc, t, m, vectors, VF_N, add);
        }
    while (n > 0) {
        /* The last VF_N columns: those that were there already are not stored. */
        const size_t back = n < VF_N ? VF_N - n : 0;
        direct_sums_bt(t, a, as, b - back * ldb, ldb, m, 1, 1, VF_N, k, in_memory ? VF_N * ldb : 0);
        if (!back) {
            direct_store(c, ldc, t, m, 1, VF_N, add);
            n -= VF_N, c += VF_N, b += VF_N * ldb;
            continue;
        }
        ISO_UNROLLED (i, m) {
            float row[VF_N];
            vf_store(row, t[i]);
            for (size_t j = 0; j < n; j++)
                c[i * ldc + j] = add ? c[i * ldc + j] + row[back + j] : row[back + j];
        }
        break;
    }
}

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
/* More rows of a transposed product go other ways. */
#if GEMM_ROWS_IN_PLACE_BT >= GEMM_MR
#define BT_EACH GEMM_EACH
#elif GEMM_ROWS_IN_PLACE_BT == 5
#define BT_EACH(X) X(1) X(2) X(3) X(4) X(5)
#elif GEMM_ROWS_IN_PLACE_BT == 12
#define BT_EACH(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#endif
#if GEMM_DIRECT_TALL == GEMM_DIRECT_MR
#define TALL_EACH(X)
#define NEXT_EACH(X)
#elif GEMM_DIRECT_TALL == 16 && GEMM_DIRECT_MR == 8
#define TALL_EACH(X) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16)
#define NEXT_EACH(X) X(16, 1) X(8, 1) X(8, 2) X(8, 3)
#elif GEMM_DIRECT_TALL == 12 && GEMM_DIRECT_MR == 6
#define TALL_EACH(X) X(7) X(8) X(9) X(10) X(11) X(12)
#define NEXT_EACH(X) X(12, 1) X(8, 1) X(6, 2)
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
#define DIRECT_ROWS_BT(M)                                                                          \
    static ISO_ONE_COPY void direct_rows_bt_##M(float *c, size_t ldc, const float *a, size_t as,   \
                                                const float *b, size_t ldb, size_t n, size_t k,    \
                                                int add) {                                         \
        direct_rows_bt(c, ldc, a, as, b, ldb, M, n, k, add);                                       \
    }
#define LINES_BT(M)                                                                                \
    static ISO_ONE_COPY void lines_bt_##M(float *c, size_t ldc, const float *a, size_t as,         \
                                          const float *b, size_t ldb, size_t n, size_t k,          \
                                          int add) {                                               \
        lines_bt(c, ldc, a, as, b, ldb, M, n, k, add);                                             \
    }
#define LINES_CASE(M) case M: lines_bt_##M(c, ldc, a, as, b, ldb, done, k, add); break;
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
/* The rows that follow these are prefetched with the first columns. NEXT_EACH: the tiles that a
 * transposed B which is read as A meets. */
#define NEXT_ROWS(M, vectors)                                                                      \
    static ISO_ONE_COPY void next_rows_##M##_##vectors(float *c, size_t ldc, const float *a,       \
                                                       size_t lda, const float *b, size_t bs,      \
                                                       size_t bps, size_t n, size_t k, int add) {  \
        const size_t j = vectors * VF_N;                                                           \
        direct_tile(c, ldc, a, lda, b, bs, bps, M, vectors, VF_N, k, add, PREFETCH_L2, 0);         \
        if (j < n)                                                                                 \
            DIRECT_FULL_ROWS(GEMM_DIRECT_MR)                                                       \
            (c + j, ldc, a, lda, b + j / ISO_PANEL * bps, bs, bps, n - j, k, add);                 \
    }
#define NEXT_CASE(M, V)                                                                            \
    if (m == M && (V == GEMM_VECTORS(M) ? n >= V * VF_N : n == V * VF_N)) {                        \
        next_rows_##M##_##V(c, ldc, a, lda, b, bs, bps, n, k, add);                                \
        return;                                                                                    \
    }
#define TALL_CASE(M) case M: direct_tall_##M(c, ldc, a, lda, b, bs, n, k, add); break;
#define PREFETCH_CASE(M) case M: prefetch_rows_##M(c, ldc, a, lda, b, bs, bps, n, k, add, l2); return;
#define DIRECT_CASE(M) case M: direct_rows_##M(c, ldc, a, lda, b, bs, bps, n, k, add); break;
#define DIRECT_CASE_BT(M) case M: direct_rows_bt_##M(c, ldc, a, as, b, ldb, n, k, add); break;
DIRECT_EACH(DIRECT_ROWS)
PREFETCH_EACH(PREFETCH_ROWS)
TALL_EACH(TALL_ROWS)
BT_EACH(DIRECT_ROWS_BT)
NEXT_EACH(NEXT_ROWS)
#if GEMM_LINES_BT
BT_EACH(LINES_BT)
#endif
/* clang-format on */

/* Sums with their biases, and ReLU after that, go to C. Without biases -0 is added, which changes
 * nothing. */
static inline __attribute__((always_inline)) void linear_store(float *c, size_t ldc, const vf *t,
                                                               const size_t m, const size_t vectors,
                                                               int add, const float *bias,
                                                               int relu) {
    const vf least = vf_set1(relu ? 0.0f : -__builtin_inff());
    vf b[GEMM_VECTORS(GEMM_DIRECT_MR)];
    ISO_UNROLLED (j, vectors)
        b[j] = bias ? vf_load(bias + j * VF_N) : vf_set1(-0.0f);
    ISO_UNROLLED (i, m) {
        ISO_UNROLLED (j, vectors) {
            float *q = c + j * VF_N;
            vf v = t[i * vectors + j];
            if (add)
                v = vf_add(vf_load(q), v);
            vf_store(q, vf_max(least, vf_add(v, b[j])));
        }
        ISO_NEXT_ROW(c, ldc, i, m);
    }
}

#define LINEAR_RUNS 3 /* of prefetches, interleaved; where these are rare, one is as fast */

static void gemm_linear(float *c, size_t ldc, const float *a, size_t lda, const float *b,
                        size_t bps, size_t n, size_t k, int add, const float *bias, int relu,
                        const float *const *prefetch, size_t prefetch_bytes, size_t prefetch_ld,
                        int interleaved) {
    const size_t m = GEMM_DIRECT_MR, vectors = GEMM_VECTORS(GEMM_DIRECT_MR), width = vectors * VF_N;
    _Static_assert(ISO_LINEAR_COLUMNS % (GEMM_VECTORS(GEMM_DIRECT_MR) * VF_N) == 0, "whole tiles");
    ISO_REQUIRE(n > 0 && n % ISO_LINEAR_COLUMNS == 0 && k > 0 && ldc >= n);
    const size_t stride =
        prefetch_ld ? prefetch_ld * sizeof *b
                    : (uint32_t)prefetch_bytes / (uint32_t)(ISO_LINEAR_COLUMNS / width * k);
    const int side_by_side = GEMM_INTERLEAVED && interleaved && !prefetch_ld && stride >= 32;
    const char *later = NULL;
    for (size_t j = 0; j < n; j += width) {
        const float *panel = b + j / ISO_PANEL * bps + j % ISO_PANEL;
        vf t[GEMM_SUMS];
        if (prefetch && j % ISO_LINEAR_COLUMNS == 0)
            later = (const char *)prefetch[j / ISO_LINEAR_COLUMNS];
        else if (prefetch_ld)
            later = NULL;
#define LINEAR_SUMS(later, stride, runs)                                                           \
    direct_sums(t, a, lda, panel, ISO_PANEL, bps, m, vectors, VF_N, k, 0, 1, later, stride, runs)
        if (later && side_by_side)
            LINEAR_SUMS(&later, stride / LINEAR_RUNS, LINEAR_RUNS);
        else if (later)
            LINEAR_SUMS(&later, stride, 1);
        else
            LINEAR_SUMS(NULL, 0, 1);
#undef LINEAR_SUMS
        if (bias || relu)
            linear_store(c + j, ldc, t, m, vectors, add, bias ? bias + j : NULL, relu);
        else
            direct_store(c + j, ldc, t, m, vectors, VF_N, add);
    }
}

/* Rows of B that are prefetched ahead: the hardware does not, and they are not read again. */
#define PACK_AHEAD 48
/* Whether tiles have several lines of a row: these go to L1, unless it has few misses at a time. */
#define PACK_WIDE (GEMM_VECTORS(GEMM_DIRECT_MR) * VF_N > ISO_PANEL)

ISO_INLINE void packing_tiles(float *c, size_t ldc, const float *a, size_t lda, const float *b,
                              size_t ldb, float *panels, size_t n, size_t k, int add,
                              const int level) {
    const size_t m = GEMM_DIRECT_MR, vectors = GEMM_VECTORS(GEMM_DIRECT_MR), width = vectors * VF_N;
    const size_t ahead_end = k > PACK_AHEAD ? k - PACK_AHEAD : 0;
    const size_t bps = k * ISO_PANEL;
    size_t two = 2 * bps, three = 3 * lda;
    ISO_OPAQUE(two);
    ISO_OPAQUE(three);
    ISO_REQUIRE(n > 0 && n % ISO_LINEAR_COLUMNS == 0 && k > 0 && ldc >= n);
    for (size_t j = 0; j < n; j += width) {
        const float *four[GEMM_DIRECT_TALL / 4 + 1], *from = b + j;
        const float *ahead = from + (k - ahead_end) * ldb;
        float *to = panels + j / ISO_PANEL * bps + j % ISO_PANEL;
        vf t[GEMM_SUMS];
        ISO_UNROLLED (i, m * vectors)
            t[i] = vf_set1(0);
        ISO_UNROLLED (i, (m + 3) / 4)
            four[i] = a + 4 * i * lda;
        for (const float *end = a + ahead_end;; end = a + k, ahead = b + j + width) {
            while (__builtin_expect(four[0] != end, 1)) {
                vf bv[GEMM_VECTORS(GEMM_DIRECT_MR)];
                ISO_UNROLLED (l, vectors) {
                    bv[l] = vf_load(from + l * VF_N);
                    vf_store(to + DIRECT_PANEL(l * VF_N / ISO_PANEL) + l * VF_N % ISO_PANEL, bv[l]);
                }
                ISO_AFTER(bv[vectors - 1], ahead);
                ISO_UNROLLED (l, (width + ISO_PANEL - 1) / ISO_PANEL)
                    direct_prefetch(ahead + l * ISO_PANEL, level);
                direct_step(t, four, lda, three, bv, m, vectors);
                const vf done = t[m * vectors - 1];
                direct_next(four, m, done);
                ISO_AFTER(done, from);
                ISO_AFTER(done, ahead);
                ISO_AFTER(done, to);
                from += ldb, ahead += ldb, to += ISO_PANEL;
            }
            if (end == a + k)
                break; /* else the next columns are prefetched */
        }
        direct_store(c + j, ldc, t, m, vectors, VF_N, add);
    }
}

/* Functions of their own: in one compilers would let both loops share what they have in common, and
 * jump there. */
#define PACKING(name, level)                                                                       \
    static ISO_ONE_COPY void name(float *c, size_t ldc, const float *a, size_t lda,                \
                                  const float *b, size_t ldb, float *panels, size_t n, size_t k,   \
                                  int add) {                                                       \
        packing_tiles(c, ldc, a, lda, b, ldb, panels, n, k, add, level);                           \
    }
PACKING(packing_l1, PREFETCH_L1)
PACKING(packing_l2, PREFETCH_L2)

static void gemm_packing(float *c, size_t ldc, const float *a, size_t lda, const float *b,
                         size_t ldb, float *panels, size_t n, size_t k, int mode) {
    const int add = mode & ISO_DIRECT_ADD;
    if (!PACK_WIDE || mode & ISO_DIRECT_BEYOND_L2)
        packing_l2(c, ldc, a, lda, b, ldb, panels, n, k, add);
    else
        packing_l1(c, ldc, a, lda, b, ldb, panels, n, k, add);
}

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

static void gemm_strip_bt(float *c, size_t ldc, const float *a, size_t as, const float *b,
                          size_t ldb, size_t m, size_t n, size_t k, int add) {
    ISO_REQUIRE(m <= GEMM_MR && m <= GEMM_ROWS_IN_PLACE_BT && (m <= 1 || ldc >= n));
#if GEMM_LINES_BT
    const size_t tile = GEMM_VECTORS_BT(m) * VF_N, done = n - n % tile;
    if (m > GEMM_HALVES_BT && ldb % ALIASED_BT == 0 && k % LINE_STEPS_BT == 0 && done > 0) {
        switch (m) {
            BT_EACH(LINES_CASE)
        default: break;
        }
        if (done == n)
            return;
        c += done, b += done * ldb, n -= done;
    }
#endif
    switch (m) {
        BT_EACH(DIRECT_CASE_BT)
    default: break;
    }
}
