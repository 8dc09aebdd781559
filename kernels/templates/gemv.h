/* SPDX-License-Identifier: MIT
 *
 * y = W x: each y[j] is a dot product over the 32 virtual lanes with FMA, then their tree.
 */

/* Rows that are read at a time, so that their chains hide the latency of the FMA. */
#define GEMV_ROWS (VF_REGS / LANE_REGS >= 16 ? 4 : VF_REGS / LANE_REGS >= 4 ? 3 : 1)

/* A W of more comes from beyond L2, and is read as several streams. */
#define GEMV_L2_FLOATS (LANE_REGS == 2 ? 1048576 : 524288)

/* Whether loads across two lines are worth avoiding: each second one of vectors half as wide is
 * none. */
#ifdef VF_LOAD_BEFORE
#define GEMV_HEAD(w, ldw, k) ((k) >= 4 * ISO_LANES ? floats_before_line(w, ldw) : 0)
#else
#define GEMV_HEAD(w, ldw, k) 0
#define vf_load_before(p, n) vf_set1(0)
#endif

/* Whether one row after the other is faster: it is prefetched best, and cores run far enough ahead
 * to hide the latency of a row's few chains in the next ones. Not from L1, nor with short rows. */
static inline int gemv_row_by_row(size_t n, size_t k) {
    return (LANE_REGS == 2 && k >= 128 && n * k > 16384) ||
           (LANE_REGS == 4 && n * k > GEMV_L2_FLOATS);
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

#if GEMV_ROWS > 1
/* A dot product: not inlined, so that a short one does not set up the registers of many rows. */
static ISO_ONE_COPY void gemv_one(float *y, const float *w, const float *x, size_t k) {
    const size_t head = GEMV_HEAD(w, 0, k);
    if (head > 0)
        gemv_dots(y, 1, w, 0, x, k, 1, head);
    else
        gemv_dots(y, 1, w, 0, x, k, 1, 0);
}
#endif

static ISO_ONE_COPY void gemv_many(float *y, const float *w, size_t ldw, const float *x, size_t n,
                                   size_t k, int interleaved) {
    const int row_by_row = !interleaved && gemv_row_by_row(n, k);
    const size_t head = GEMV_HEAD(w, ldw, k);
    if (head > 0)
        gemv_rows_from(y, w, ldw, x, n, k, row_by_row, head);
    else
        gemv_rows_from(y, w, ldw, x, n, k, row_by_row, 0);
}

static void gemv(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                 int interleaved) {
#if GEMV_ROWS > 1
    if (n == 1) {
        gemv_one(y, w, x, k);
        return;
    }
#endif
    gemv_many(y, w, ldw, x, n, k, interleaved);
}
