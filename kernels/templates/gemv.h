/* SPDX-License-Identifier: MIT
 *
 * y = W x: each y[j] is a dot product over the 32 virtual lanes with FMA, then their tree; the
 * same bits for both layouts of W.
 */

/* Rows that are read at a time, so that their chains hide the latency of the FMA. */
#define GEMV_ROWS (VF_REGS / LANE_REGS >= 16 ? 4 : VF_REGS / LANE_REGS >= 4 ? 3 : 1)

/* A W of more comes from beyond L2, and is read as several streams. */
#define GEMV_L2_FLOATS (LANE_REGS == 2 ? 1048576 : 4194304)

/* Whether loads across two lines are worth avoiding: each second one of vectors half as wide is
 * none. */
#ifdef VF_LOAD_BEFORE
#define GEMV_HEAD(w, ldw, k)                                                                       \
    ((ldw) % VF_N == 0 && (k) >= 4 * ISO_LANES ? -((uintptr_t)(w) / sizeof *(w)) % VF_N : 0)
#else
#define GEMV_HEAD(w, ldw, k) 0
#define vf_load_before(p, n) vf_set1(0)
#endif

/* Whether one row after the other is faster: it is prefetched best, and cores run far enough ahead
 * to hide the latency of a row's few chains in the next ones. Not from L1, nor with short rows. */
static inline int gemv_row_by_row(size_t n, size_t k) {
    return (LANE_REGS == 2 && k >= 128 && n * k > 16384) || (LANE_REGS == 4 && n * k > 524288);
}

/*
 * Every `step`-th row. Rows may not begin at a vector, as NumPy's, and loads across two lines take
 * twice as long. Then the `head` elements up to the first vector of W come first, in the last
 * places of the last register, and a register holds lanes head, head + 1 ... from then on. A lane's
 * chain is the same. So is the tree: lanes that it adds are as far from each other as ever, and
 * addition commutes. All rows lie alike.
 */
ISO_INLINE void gemv_dots(float *y, size_t step, const float *w, size_t ldw, const float *x,
                          size_t k, const size_t rows, size_t head) {
    vf t[GEMV_ROWS * LANE_REGS];
    ISO_UNROLLED (r, rows * LANE_REGS)
        t[r] = vf_set1(0);
    if (head > 0) {
        w += head, x += head, k -= head;
        const vf first = vf_load_before(x, head);
        ISO_UNROLLED (j, rows)
            t[j * LANE_REGS + LANE_REGS - 1] =
                vf_fma(vf_load_before(w + j * (step * ldw), head), first, vf_set1(0));
    }
#define GEMV_STEP(r, i, wd)                                                                        \
    do {                                                                                           \
        const vf xv = load_w(x + (i), wd);                                                         \
        ISO_UNROLLED (j, rows)                                                                     \
            t[j * LANE_REGS + (r)] =                                                               \
                vf_fma(load_w(w + j * (step * ldw) + (i), wd), xv, t[j * LANE_REGS + (r)]);        \
    } while (0)
    LANES_EACH(k, GEMV_STEP);
#undef GEMV_STEP
    ISO_UNROLLED (j, rows)
        y[j * step] = lanes_tree(t + j * LANE_REGS);
}

static inline __attribute__((always_inline)) void gemv_rows_from(float *y, const float *w,
                                                                 size_t ldw, const float *x,
                                                                 size_t n, size_t k, int row_by_row,
                                                                 size_t head) {
    const size_t together = n - n % GEMV_ROWS;
    size_t j = 0;
    if (row_by_row && n * k > GEMV_L2_FLOATS) { /* long streams are prefetched best */
        const size_t step = together / GEMV_ROWS;
        for (; j < step; j++)
            gemv_dots(y + j, step, w + j * ldw, ldw, x, k, GEMV_ROWS, head);
        j = together;
    }
    for (; j < together && !row_by_row; j += GEMV_ROWS)
        gemv_dots(y + j, 1, w + j * ldw, ldw, x, k, GEMV_ROWS, head);
    for (; j < n; j++)
        gemv_dots(y + j, 1, w + j * ldw, ldw, x, k, 1, head);
}

static void gemv_rows(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                      int interleaved) {
    const int row_by_row = !interleaved && gemv_row_by_row(n, k);
    const size_t head = GEMV_HEAD(w, ldw, k);
    if (head > 0)
        gemv_rows_from(y, w, ldw, x, n, k, row_by_row, head);
    else
        gemv_rows_from(y, w, ldw, x, n, k, row_by_row, 0);
}

/*
 * W is [k][ldw]: a block of columns, some lanes of each at a time in registers. A pass goes through
 * all of k and reads whole runs of a row, 256 bytes; each row is read in one pass only. Lanes come
 * in the order of their tree, and wait for their neighbours on the stack, a row of sums for each
 * level of it: at most 3 KiB.
 */
#define GEMV_BLOCK 64
#define GEMV_VECTORS (GEMV_BLOCK / VF_N)
/* Lanes of a pass: half of the registers, where they are enough for one lane. */
#define GEMV_WIDE (VF_REGS * VF_N >= 128)
#define GEMV_AT_ONCE (GEMV_WIDE ? VF_REGS * VF_N / 128 : 1)
_Static_assert(GEMV_AT_ONCE == 1 || GEMV_AT_ONCE == 4, "gemv_join knows these");
#define GEMV_LEVELS 5                                                 /* of a tree of ISO_LANES */
#define GEMV_BLOCK_LEVELS (GEMV_LEVELS - (GEMV_AT_ONCE == 4 ? 2 : 0)) /* of one of passes */
_Static_assert(ISO_GEMV_FLOATS(1) == GEMV_LEVELS * ISO_PANEL, "a row of sums for each level");

#define GEMV_L1_FLOATS 16384 /* from which W does not stay in L1 */

/* The lane that comes as the i-th, and the level where its sum waits, once those of all levels
 * below are added. */
static inline size_t gemv_lane(size_t i, size_t *level) {
    size_t lane = 0;
    ISO_UNROLLED (bit, GEMV_LEVELS)
        lane |= (i >> bit & 1) << (GEMV_LEVELS - 1 - bit);
    *level = (size_t)__builtin_ctzll(~(unsigned long long)i);
    return lane;
}

static inline __attribute__((always_inline)) void gemv_step(vf *t, const float *row, float x) {
    const vf xv = vf_set1(x);
    ISO_UNROLLED (j, GEMV_VECTORS)
        t[j] = vf_fma(vf_load(row + j * VF_N), xv, t[j]);
}

/* Four lanes become one. */
static inline __attribute__((always_inline)) void gemv_join(vf *t) {
    if (GEMV_AT_ONCE == 4)
        ISO_UNROLLED (j, GEMV_VECTORS)
            t[j] = vf_add(vf_add(t[j], t[2 * GEMV_VECTORS + j]),
                          vf_add(t[GEMV_VECTORS + j], t[3 * GEMV_VECTORS + j]));
}

/* `adjacent`, a constant: the lanes of a pass are those of rows that follow each other, whose sums
 * are added last. Else those that the tree adds first: less work, but prefetched worse. */
static inline __attribute__((always_inline)) void
gemv_block(float *y, const float *w, size_t ldw, const float *x, size_t k, const int adjacent) {
    const size_t passes = ISO_LANES / GEMV_AT_ONCE, step = adjacent ? 1 : passes;
    const size_t sums = GEMV_AT_ONCE * GEMV_VECTORS, kept = adjacent ? sums : GEMV_VECTORS;
    float levels[GEMV_BLOCK_LEVELS][GEMV_AT_ONCE * GEMV_BLOCK];
    for (size_t i = 0; i < passes; i++) {
        vf t[GEMV_AT_ONCE * GEMV_VECTORS];
        size_t level, p = gemv_lane(i, &level);
        if (!adjacent)
            p /= GEMV_AT_ONCE;
        ISO_UNROLLED (r, sums)
            t[r] = vf_set1(0);
        for (; p + (GEMV_AT_ONCE - 1) * step < k; p += ISO_LANES) {
            const float *row = w + p * ldw;
            ISO_UNROLLED (r, GEMV_AT_ONCE) {
                gemv_step(t + r * GEMV_VECTORS, row, x[p + r * step]);
                row += step * ldw;
                ISO_OPAQUE(row);
            }
        }
        ISO_UNROLLED (r, GEMV_AT_ONCE)
            if (p + r * step < k)
                gemv_step(t + r * GEMV_VECTORS, w + (p + r * step) * ldw, x[p + r * step]);
        if (!adjacent)
            gemv_join(t);
        for (size_t from = 0; from < level; from++)
            ISO_UNROLLED (j, kept)
                t[j] = vf_add(vf_load(levels[from] + j * VF_N), t[j]);
        if (i + 1 < passes) {
            ISO_UNROLLED (j, kept)
                vf_store(levels[level] + j * VF_N, t[j]);
            continue;
        }
        if (adjacent)
            gemv_join(t);
        ISO_UNROLLED (j, GEMV_VECTORS)
            vf_store(y + j * VF_N, t[j]);
    }
}

/*
 * A W that does not stay in L1 is read in longer runs of some rows at a time, those of one lane, as
 * the sums of gemm_along, which wait as those of gemv_block do: a row of `run` sums for each level.
 */
#define GEMV_RUN 128 /* with levels on the stack, 2.5 KiB */

static void gemv_run(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                     float *levels, size_t run, int in_l2) {
    for (size_t i = 0; i < ISO_LANES; i++) {
        size_t level;
        const size_t lane = gemv_lane(i, &level);
        gemm_along_1(i + 1 < ISO_LANES ? levels + level * run : y, n, x + lane, 0, ISO_LANES,
                     w + lane * ldw, ISO_LANES * ldw, n, (k - lane + ISO_LANES - 1) / ISO_LANES, 0,
                     in_l2, (struct along_before){levels, run, level});
    }
}

/* Returns how many columns are done. */
static size_t gemv_runs(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                        float *levels) {
    float own[GEMV_LEVELS * GEMV_RUN];
    size_t j = 0;
    const size_t run = levels ? ISO_GEMV_FLOATS(n) / GEMV_LEVELS : GEMV_RUN;
    for (; n - j >= GEMV_BLOCK; j += n - j < run ? n - j : run)
        gemv_run(y + j, w + j, ldw, x, n - j < run ? n - j : run, k, levels ? levels : own, run,
                 n <= ISO_L2_FLOATS / k);
    return j;
}

/* The tree of all lanes, each a row of n sums. */
static void gemv_tree(float *y, float *lanes, size_t ld, size_t n) {
    for (size_t h = ISO_LANES / 2; h > 0; h /= 2)
        for (size_t l = 0; l < h; l++) {
            float *to = h == 1 ? y : lanes + l * ld;
            const float *a = lanes + l * ld, *b = lanes + (l + h) * ld;
            for (size_t j = 0; j < n; j += VF_N) {
                const size_t wd = n - j < VF_N ? n - j : VF_N;
                store_w(to + j, vf_add(load_w(a + j, wd), load_w(b + j, wd)), wd);
            }
        }
}

/*
 * A long W in the order of its rows, some of each lane at a time, while the sums of all lanes stay
 * in L2. Each of these streams goes on with the row that follows, and is prefetched as one.
 */
static void gemv_in_order(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                          float *lanes) {
    const size_t ld = ISO_GEMV_LANE(n), rows = ISO_LANES * ALONG_L3_STEPS;
    const struct along_before none = {lanes, 0, 0};
    ISO_REQUIRE(k >= ISO_LANES);
    for (size_t first = 0; first < k; first += rows) {
        const size_t end = k - first < rows ? k : first + rows;
        for (size_t p = first; p < end && p < first + ISO_LANES; p++)
            gemm_along_1(lanes + (p - first) * ld, ld, x + p, 0, ISO_LANES, w + p * ldw,
                         ISO_LANES * ldw, n, (end - p + ISO_LANES - 1) / ISO_LANES, first > 0, 0,
                         none);
    }
    gemv_tree(y, lanes, ld, n);
}

/* The last columns, up to 32: their lanes wait on the stack. */
#define GEMV_COLUMNS 32

static void gemv_columns(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k) {
    float lanes[ISO_LANES * GEMV_COLUMNS];
    memset(lanes, 0, sizeof lanes);
    for (size_t p = 0; p < k; p++) {
        float *lane = lanes + p % ISO_LANES * GEMV_COLUMNS;
        for (size_t j = 0; j < n; j += VF_N) {
            size_t wd = n - j < VF_N ? n - j : VF_N;
            vf t = vf_fma(load_w(w + p * ldw + j, wd), vf_set1(x[p]), vf_load(lane + j));
            vf_store(lane + j, t);
        }
    }
    gemv_tree(y, lanes, GEMV_COLUMNS, n);
}

static void gemv(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                 int layout, float *levels) {
    if (layout == ISO_GEMV_IN_ORDER) {
        gemv_in_order(y, w, ldw, x, n, k, levels);
        return;
    }
    if (layout != ISO_GEMV_COLUMNS) {
        gemv_rows(y, w, ldw, x, n, k, layout == ISO_GEMV_INTERLEAVED);
        return;
    }
    size_t j = 0;
    if (GEMV_WIDE && iso_gemv_runs(n, k))
        j = gemv_runs(y, w, ldw, x, n, k, levels);
    const int adjacent = GEMV_AT_ONCE > 1 && n * k > GEMV_L1_FLOATS;
    for (; GEMV_WIDE && n - j >= GEMV_BLOCK; j += GEMV_BLOCK)
        if (adjacent)
            gemv_block(y + j, w + j, ldw, x, k, 1);
        else
            gemv_block(y + j, w + j, ldw, x, k, 0);
    for (; j < n; j += GEMV_COLUMNS)
        gemv_columns(y + j, w + j, ldw, x, n - j < GEMV_COLUMNS ? n - j : GEMV_COLUMNS, k);
}
