/* SPDX-License-Identifier: MIT
 *
 * gemm_strip_bt: few rows with a transposed B, whose rows are transposed in registers. Columns are
 * vectors, as in gemm_direct.h, GEMM_VECTORS_BT(m) at a time.
 */

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

#define SHORT_BT 128 /* one row of A has done with steps that are fewer before memory answers */

/* Steps p to k. Where all vectors are there and VF_TRANSPOSED steps as well, the last ones are
 * transposed with some that were there already. ahead: of B as many lines are prefetched into L2 as
 * are transposed, so many steps ahead, at most k, in the rows that follow where these end; or 0. */
static inline __attribute__((always_inline)) void
direct_rest_bt(vf *t, float *rows, const float *a, size_t as, const float *b, size_t ldb,
               const size_t m, const size_t vectors, const int there, size_t last, size_t p,
               size_t k, size_t ahead) {
    /* A few at a time, where a step takes long enough, or there are few. */
    const int short_row = m == 1 && k <= SHORT_BT, spread = ahead && (m > 1 || short_row);
    const size_t rows_ahead = (short_row ? 2u : 1u) * VF_N * vectors;
    a += p * as;
    while (p + VF_TRANSPOSED <= k) {
        const size_t end = ahead && k - p > LINE_STEPS_BT ? p + LINE_STEPS_BT : k;
        const float *next = p + ahead < k ? b + p + ahead : b + rows_ahead * ldb + (p + ahead - k);
        if (ahead && !spread)
            prefetch_rows_bt(next, ldb, VF_N * vectors);
        for (; p + VF_TRANSPOSED <= end; p += VF_TRANSPOSED) {
            for (size_t l = 0; l < VF_N * vectors * VF_TRANSPOSED / LINE_STEPS_BT && spread; l++)
                __builtin_prefetch(next, 0, 2), next += ldb;
            a = direct_steps_bt(t, rows, a, as, b + p, ldb, m, vectors, there, last, 1, 0,
                                VF_TRANSPOSED);
        }
    }
    if (p < k)
        direct_steps_bt(t, rows, a, as, b + k - VF_TRANSPOSED, ldb, m, vectors, there, last, 0,
                        VF_TRANSPOSED - k % VF_TRANSPOSED, VF_TRANSPOSED);
}

#define STEPS_AHEAD_BT 64 /* from memory; 32 and 128 are slower */

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

#if GEMM_LINES_BT
/*
 * Where a transposition takes a part of a line, lines of aliased rows are evicted before the next
 * one. So they are copied first, a line of each row. n: whole tiles; k: whole lines.
 */
static inline __attribute__((always_inline)) void lines_bt(float *c, size_t ldc, const float *a,
                                                           size_t as, const float *b, size_t ldb,
                                                           const size_t m, size_t n, size_t k,
                                                           int mode) {
    const size_t vectors = GEMM_VECTORS_BT(m), columns = vectors * VF_N;
    float lines[GEMM_VECTORS_BT(1) * VF_N * LINE_STEPS_BT];
    for (size_t j = 0; j < n; j += columns, b += columns * ldb) {
        const float *strip = a;
        vf t[GEMM_SUMS];
        ISO_UNROLLED (i, m * vectors)
            t[i] = vf_set1(0);
        for (size_t p = 0; p < k; p += LINE_STEPS_BT) {
            const float *from = b + p;
            if (mode & ISO_DIRECT_NEXT)
                prefetch_rows_bt(from + columns * ldb, ldb, columns);
            for (size_t l = 0; l < columns; l++, from += ldb)
                ISO_UNROLLED (i, LINE_STEPS_BT / VF_N)
                    vf_store(lines + l * LINE_STEPS_BT + i * VF_N, vf_load(from + i * VF_N));
            ISO_NOT_UNROLLED
            for (size_t s = 0; s < LINE_STEPS_BT; s += VF_TRANSPOSED)
                strip = direct_steps_bt(t, NULL, strip, as, lines + s, LINE_STEPS_BT, m, vectors, 1,
                                        VF_N, 1, 0, VF_TRANSPOSED);
        }
        direct_store(c + j, ldc, t, m, vectors, VF_N, mode & ISO_DIRECT_ADD);
    }
}
#endif

static inline __attribute__((always_inline)) void
direct_rows_bt(float *c, size_t ldc, const float *a, size_t as, const float *b, size_t ldb,
               const size_t m, size_t n, size_t k, int mode) {
    const size_t vectors = GEMM_VECTORS_BT(m), columns = vectors * VF_N;
    const int add = mode & ISO_DIRECT_ADD;
    const size_t some = k < STEPS_AHEAD_BT ? k : STEPS_AHEAD_BT;
    const size_t ahead = mode & ISO_DIRECT_NEXT ? k : mode & ISO_DIRECT_AHEAD ? some : 0;
    vf t[GEMM_SUMS];
    if (n < VF_N) {
        direct_sums_bt(t, a, as, b, ldb, m, 1, 0, n, k, 0);
        direct_store(c, ldc, t, m, 1, n, add);
        return;
    }
#if GEMM_HALVES_BT > 0
    if (m <= GEMM_HALVES_BT && !(mode & ISO_DIRECT_WHOLE) && k >= HALVES_STEPS && n >= 4 * VF_N &&
        n <= (m == 1 ? HALVES_FLOATS_ROW : HALVES_FLOATS) / k) {
        const size_t done = direct_halves_bt(c, ldc, a, as, b, ldb, m, n, k, add);
        c += done, b += done * ldb, n -= done;
    }
#endif
    if (vectors > 1)
        for (; n >= columns; n -= columns, c += columns, b += columns * ldb) {
            direct_sums_bt(t, a, as, b, ldb, m, vectors, 1, VF_N, k, ahead);
            direct_store(c, ldc, t, m, vectors, VF_N, add);
        }
    while (n > 0) {
        /* The last VF_N columns: those that were there already are not stored. */
        const size_t back = n < VF_N ? VF_N - n : 0;
        direct_sums_bt(t, a, as, b - back * ldb, ldb, m, 1, 1, VF_N, k, ahead);
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
/* More rows of a transposed product go other ways. */
#if GEMM_ROWS_IN_PLACE_BT >= GEMM_MR
#define BT_EACH GEMM_EACH
#elif GEMM_ROWS_IN_PLACE_BT == 5
#define BT_EACH(X) X(1) X(2) X(3) X(4) X(5)
#elif GEMM_ROWS_IN_PLACE_BT == 12
#define BT_EACH(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#endif
#define DIRECT_ROWS_BT(M)                                                                          \
    static ISO_ONE_COPY void direct_rows_bt_##M(float *c, size_t ldc, const float *a, size_t as,   \
                                                const float *b, size_t ldb, size_t n, size_t k,    \
                                                int mode) {                                         \
        direct_rows_bt(c, ldc, a, as, b, ldb, M, n, k, mode);                                       \
    }
#define LINES_BT(M)                                                                                \
    static ISO_ONE_COPY void lines_bt_##M(float *c, size_t ldc, const float *a, size_t as,         \
                                          const float *b, size_t ldb, size_t n, size_t k,          \
                                          int mode) {                                               \
        lines_bt(c, ldc, a, as, b, ldb, M, n, k, mode);                                             \
    }
#define LINES_CASE(M) case M: lines_bt_##M(c, ldc, a, as, b, ldb, done, k, mode); break;
#define DIRECT_CASE_BT(M) case M: direct_rows_bt_##M(c, ldc, a, as, b, ldb, n, k, mode); break;
BT_EACH(DIRECT_ROWS_BT)
#if GEMM_LINES_BT
BT_EACH(LINES_BT)
#endif
/* clang-format on */

static void gemm_strip_bt(float *c, size_t ldc, const float *a, size_t as, const float *b,
                          size_t ldb, size_t m, size_t n, size_t k, int mode) {
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
