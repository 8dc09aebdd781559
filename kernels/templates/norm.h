/* SPDX-License-Identifier: MIT
 *
 * Layer norm and RMS norm of rows, with the residual added on the way.
 *
 * Layer norm takes two passes, and the mean is taken of the differences to the first element: a
 * constant row then gives exactly beta, and a large common offset costs no accuracy.
 *   t_i = x_i + residual_i;  mean = t_0 + sum(t_i - t_0) / n;  d_i = t_i - mean;
 *   r = 1 / sqrt(sum(d_i^2 by fma) / n + eps);  y_i = (d_i r) gamma_i + beta_i (fma with both)
 *
 * A row is a chain: a sum, its tree, a division, the next sum. So two rows go side by side, or four
 * short ones, where their lanes fill no more than half of the registers and the rows stay in the L1
 * cache; they also share the loads of gamma and beta. The order of operations of a row does not
 * change by that. Differences are sums with what was negated before: an addition takes what it
 * loads as an operand.
 */
#define NORM_ROWS (LANE_REGS <= VF_REGS / 16 ? 4 : LANE_REGS <= VF_REGS / 4 ? 2 : 1)
#define NORM_N 2048
#define NORM_N_OF_4 512
/* With a residual each row has three streams, or four where the sum is written too, and the
 * hardware prefetches few. So from so many floats on long rows go one by one: those of layer norm,
 * whose chains need other work to overlap with, and AVX2's of three if they come from memory. So do
 * rows with non-temporal stores: fewer lines are written at a time. */
#define NORM_ONE_FLOATS (NORM_ROWS < 4 ? (size_t)1 << 18 : (size_t)1 << 13)
#define NORM_ONE_MEMORY ((size_t)1 << 21)
#define NORM_ONE_N 256
/* Stores to a part of a line that is in no cache stall what follows. So y from beyond L2 is
 * prefetched while x is read; and rows of so many elements go one by one. */
#define NORM_PARTS (VF_N * sizeof(float) < 64)
#define NORM_PARTS_N 1024

#define EACH_ROW ISO_UNROLLED (q, k)

/* A group of k rows. t: where x + residual goes if there is a residual, else x. */
struct norm_group {
    float *y, *t;
    const float *x, *residual;
    size_t ldy, ldt, ldx, ldr;
    const float *next_x, *next_residual; /* to prefetch; the same again where no rows follow */
    int beyond_l2;                       /* whether y is prefetched, see NORM_PARTS */
};

/* Prefetches elements i .. i+15 of k rows. The variance prefetches the next rows of x, the output
 * those of a residual, since both at a time are too many. RMS norm has no other place for x than
 * the output. */
ISO_INLINE void norm_prefetch(const float *row, size_t ld, size_t i, const size_t k) {
    if (i % 16 == 0) {
        row += i;
        EACH_ROW {
            __builtin_prefetch(row, 0, 3);
            ISO_NEXT_ROW(row, ld, q, k);
        }
    }
}

/* Elements i .. i+w-1 of each row: ((t - mean) r) gamma + beta. */
ISO_INLINE void norm_output_step(const struct norm_group *g, const vf *minus_mean, const vf *r,
                                 const float *gamma, const float *beta, size_t i, size_t w,
                                 const int centred, const int affine, const int stream,
                                 const size_t k) {
    vf scale = vf_set1(0), shift = vf_set1(0);
    if (affine & 1)
        scale = load_w(gamma + i, w);
    if (affine & 2)
        shift = load_w(beta + i, w);
    /* All loads before the stores: the stride of rows is often a multiple of 4 KiB, where loads
     * wait for stores (4K aliasing). */
    vf d[NORM_ROWS];
    EACH_ROW d[q] = load_w(g->t + q * g->ldt + i, w);
    EACH_ROW {
        if (centred)
            d[q] = vf_add(d[q], minus_mean[q]);
        d[q] = vf_mul(d[q], r[q]);
        if (affine == 3)
            d[q] = vf_fma(d[q], scale, shift);
        else if (affine == 1)
            d[q] = vf_mul(d[q], scale);
        else if (affine == 2)
            d[q] = vf_add(d[q], shift);
    }
    EACH_ROW stream_w(g->y + q * g->ldy + i, d[q], w, stream);
}

ISO_INLINE void norm_output(const struct norm_group *g, const vf *minus_mean, const vf *r,
                            const float *gamma, const float *beta, size_t n, const int centred,
                            const int affine, const int stream, const size_t k) {
    size_t i = 0;
    for (; i + VF_N <= n; i += VF_N) {
        if (!centred)
            norm_prefetch(g->next_x, g->ldx, i, k);
        if (g->residual)
            norm_prefetch(g->next_residual, g->ldr, i, k);
        norm_output_step(g, minus_mean, r, gamma, beta, i, VF_N, centred, affine, stream, k);
    }
    if (i < n)
        norm_output_step(g, minus_mean, r, gamma, beta, i, n - i, centred, affine, 0, k);
}

/* The first sum over the lanes: of t - first, or of t^2; with a residual t is made on the way. */
ISO_INLINE void norm_first_sum(vf (*acc)[LANE_REGS], const struct norm_group *g,
                               const vf *minus_first, size_t n, const int centred, const int added,
                               const size_t k) {
#define FIRST_STEP(l, i, w)                                                                        \
    do {                                                                                           \
        vf v[NORM_ROWS];                                                                           \
        EACH_ROW v[q] = load_w(g->x + q * g->ldx + (i), w);                                        \
        if (added) {                                                                               \
            EACH_ROW v[q] = vf_add(v[q], load_w(g->residual + q * g->ldr + (i), w));               \
            EACH_ROW store_w(g->t + q * g->ldt + (i), v[q], w);                                    \
        }                                                                                          \
        if (centred)                                                                               \
            EACH_ROW acc[q][l] = vf_add(acc[q][l], keep_w(vf_add(v[q], minus_first[q]), w));       \
        else                                                                                       \
            EACH_ROW acc[q][l] = vf_fma(v[q], v[q], acc[q][l]);                                    \
        if (g->beyond_l2)                                                                          \
            norm_prefetch(g->y, g->ldy, i, k);                                                     \
    } while (0)
    EACH_ROW ISO_UNROLLED (l, LANE_REGS) acc[q][l] = vf_set1(0);
    LANES_EACH_COMPACT(n, FIRST_STEP);
#undef FIRST_STEP
}

ISO_INLINE void norm_rows(const struct norm_group *rows, size_t n, const struct iso_norm *o,
                          const int centred, int stream, const size_t k) {
    const struct norm_group local = *rows, *g = &local;
    vf acc[NORM_ROWS][LANE_REGS], minus_first[NORM_ROWS], minus_mean[NORM_ROWS], r[NORM_ROWS];
    if (g->residual) {
        EACH_ROW minus_first[q] = vf_set1(-(g->x[q * g->ldx] + g->residual[q * g->ldr]));
        norm_first_sum(acc, g, minus_first, n, centred, 1, k);
    } else {
        EACH_ROW minus_first[q] = vf_set1(-g->x[q * g->ldx]);
        norm_first_sum(acc, g, minus_first, n, centred, 0, k);
    }
    if (centred) {
        EACH_ROW minus_mean[q] = vf_set1(-(g->t[q * g->ldt] + lanes_tree(acc[q]) / (float)n));
        vf d[NORM_ROWS];
        EACH_ROW ISO_UNROLLED (l, LANE_REGS) acc[q][l] = vf_set1(0);
#define VARIANCE_STEP(l, i, w)                                                                     \
    do {                                                                                           \
        EACH_ROW d[q] = load_w(g->t + q * g->ldt + (i), w);                                        \
        EACH_ROW d[q] = keep_w(vf_add(d[q], minus_mean[q]), w);                                    \
        EACH_ROW acc[q][l] = vf_fma(d[q], d[q], acc[q][l]);                                        \
        norm_prefetch(g->next_x, g->ldx, i, k);                                                    \
    } while (0)
        LANES_EACH_COMPACT(n, VARIANCE_STEP);
#undef VARIANCE_STEP
    }
    EACH_ROW r[q] = vf_set1(1.0f / __builtin_sqrtf(lanes_tree(acc[q]) / (float)n + o->eps));
    const float *beta = centred ? o->beta : NULL;
    if (stream && beta)
        norm_output(g, minus_mean, r, o->gamma, beta, n, centred, 3, VF_STREAMS, k);
    else if (stream)
        norm_output(g, minus_mean, r, o->gamma, NULL, n, centred, 1, VF_STREAMS, k);
    else if (o->gamma && beta)
        norm_output(g, minus_mean, r, o->gamma, beta, n, centred, 3, 0, k);
    else if (o->gamma)
        norm_output(g, minus_mean, r, o->gamma, NULL, n, centred, 1, 0, k);
    else if (centred && beta)
        norm_output(g, minus_mean, r, NULL, beta, n, centred, 2, 0, k);
    else
        norm_output(g, minus_mean, r, NULL, NULL, n, centred, 0, 0, k);
}

ISO_INLINE void norm(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                     const struct iso_norm *o, const int centred) {
    const size_t many = centred || (!o->sum && NORM_ROWS < 4) ? NORM_ONE_MEMORY : NORM_ONE_FLOATS;
    const int single = o->residual && (o->sum || !centred) && n >= NORM_ONE_N && rows >= many / n;
    const int beyond_l2 = NORM_PARTS && o->beyond_l2 && n <= NORM_N;
    /* x + residual has to wait somewhere, and without gamma there is no such loop. */
    const int stream = VF_STREAMS && o->stream && o->gamma && lies_in_vectors(y, ldy) &&
                       (o->sum || !o->residual || n <= ISO_STREAM_FLOATS);
    const size_t together =
        single || stream || (beyond_l2 && n >= NORM_PARTS_N) || n > NORM_N || NORM_ROWS < 2 ? 1
        : n <= NORM_N_OF_4 ? NORM_ROWS
                           : 2;
    for (size_t row = 0; row < rows;) {
        size_t k = together;
        while (k > rows - row)
            k /= 2;
        struct norm_group g = {.y = y + row * ldy, .ldy = ldy, .x = x + row * ldx, .ldx = ldx};
        const size_t next = rows - row >= 2 * k ? k : 0;
        g.next_x = g.x + next * ldx;
        g.beyond_l2 = beyond_l2 && y != x && y != o->residual;
        g.t = o->sum ? o->sum + row * o->lds : stream ? o->stream : g.y;
        g.ldt = o->sum ? o->lds : stream ? n : ldy;
        if (o->residual) {
            g.residual = o->residual + row * o->ldr, g.ldr = o->ldr;
            g.next_residual = g.residual + next * g.ldr;
        } else {
            for (size_t q = 0; q < k && o->sum && o->sum != x; q++) /* a copy is wanted */
                memmove(g.t + q * g.ldt, g.x + q * ldx, n * sizeof(float));
            g.t = (float *)(uintptr_t)g.x, g.ldt = ldx; /* is only read */
        }
        if (NORM_ROWS >= 4 && k == 4)
            norm_rows(&g, n, o, centred, 0, NORM_ROWS >= 4 ? 4 : 1);
        else if (NORM_ROWS >= 2 && k == 2)
            norm_rows(&g, n, o, centred, 0, NORM_ROWS >= 2 ? 2 : 1);
        else
            norm_rows(&g, n, o, centred, stream, 1);
        row += k;
    }
    if (stream)
        vf_streamed();
}

static void layernorm(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                      const struct iso_norm *o) {
    norm(y, ldy, x, ldx, rows, n, o, 1);
}

static void rmsnorm(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                    const struct iso_norm *o) {
    norm(y, ldy, x, ldx, rows, n, o, 0);
}
