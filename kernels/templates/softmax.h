/* SPDX-License-Identifier: MIT
 *
 * Softmax and log-softmax of rows. Order: m = max; e_i = exp(x_i - m); s = sum of e over the
 * virtual lanes; y_i = e_i * (1/s), or (x_i - m) - log(s). logsumexp gives m and log(s) only.
 *
 * The maximum passes over NaN, but exp(NaN - m) is NaN, so the sum and the row become NaN.
 * Elements that do not take part enter as -Inf and leave as 0 (log: -Inf).
 */

/* The elements i .. i+w-1 with those that do not take part as -Inf. */
static inline __attribute__((always_inline)) vf softmax_load(const float *x, const uint8_t *mask,
                                                             size_t i, size_t w) {
    vf v = load_w(x + i, w);
    if (mask)
        v = vf_select(vm_bytes(mask + i, w), v, vf_set1(-__builtin_inff()));
    else if (w < VF_N)
        v = vf_select(vm_first(w), v, vf_set1(-__builtin_inff()));
    return v;
}

/*
 * exp(x - m) of k vectors or, in the last call, of the first w lanes of one, with 0 for what does
 * not take part. Written to e and added to the lanes, unless these are NULL. `next`: a row that is
 * prefetched into L1 meanwhile, since sums wait for no cache but maxima do; or NULL.
 */
ISO_INLINE void softmax_exp_step(vf *t, size_t first, float *e, const float *x, const uint8_t *mask,
                                 const float *next, vf m, size_t i, size_t w, const size_t k) {
    vf v[VF_TOGETHER];
    if (next)
        EACH if ((i + j * VF_N) % 16 == 0) __builtin_prefetch(next + i + j * VF_N, 0, 3);
    EACH v[j] = vf_sub(softmax_load(x, mask, i + j * VF_N, w), m);
    vf_exps_neg(v, v, k);
    if (mask)
        EACH v[j] = vf_select(vm_bytes(mask + i + j * VF_N, w), v[j], vf_set1(0));
    if (e)
        EACH store_w(e + i + j * VF_N, v[j], w);
    if (t)
        EACH t[(first + j) % LANE_REGS] = vf_add(t[(first + j) % LANE_REGS], keep_w(v[j], w));
}

ISO_INLINE void softmax_exps(vf *t, float *e, const float *x, const uint8_t *mask,
                             const float *next, vf m, size_t n) {
    const size_t at_once = VF_TOGETHER * VF_N, block = at_once > ISO_LANES ? at_once : ISO_LANES;
    size_t i = 0;
    if (!t) { /* then it does not matter which lane is whose */
        for (; i + at_once <= n; i += at_once)
            softmax_exp_step(t, 0, e, x, mask, next, m, i, VF_N, VF_TOGETHER);
        for (; i < n; i += VF_N)
            softmax_exp_step(t, 0, e, x, mask, next, m, i, n - i < VF_N ? n - i : VF_N, 1);
        return;
    }
    for (; i + block <= n; i += block)
        ISO_UNROLLED (g, block / at_once)
            softmax_exp_step(t, g * VF_TOGETHER, e, x, mask, next, m, i + g * at_once, VF_N,
                             VF_TOGETHER);
#define EXP_STEP(r, p, w) softmax_exp_step(t, r, e, x, mask, next, m, i + (p), w, 1)
    LANES_EACH(n - i, EXP_STEP);
#undef EXP_STEP
}

/* exp(x - m), and their sums over the lanes. Where the lanes take more registers than the constants
 * of exp leave free, the sums are of pieces that were just written: to y, or to a buffer. */
enum { SOFTMAX_PIECE = 256 };
ISO_INLINE void softmax_sum(vf *t, float *y, const float *x, const uint8_t *mask, const float *next,
                            vf m, size_t n) {
    ISO_UNROLLED (r, LANE_REGS)
        t[r] = vf_set1(0);
    if (LANE_REGS <= 4) {
        softmax_exps(t, y, x, mask, next, m, n);
        return;
    }
    float buffer[SOFTMAX_PIECE];
    for (size_t i = 0; i < n; i += SOFTMAX_PIECE) {
        const size_t piece = n - i < SOFTMAX_PIECE ? n - i : SOFTMAX_PIECE;
        float *e = y ? y + i : buffer;
        softmax_exps(NULL, e, x + i, mask ? mask + i : NULL, next ? next + i : NULL, m, piece);
#define SUM_STEP(r, p, w) t[r] = vf_add(t[r], load_w(e + (p), w))
        LANES_EACH_COMPACT(piece, SUM_STEP);
#undef SUM_STEP
    }
}

/* The largest element that takes part; -Inf where there is none but NaN. */
ISO_INLINE float softmax_max(const float *x, const uint8_t *mask, size_t n) {
    vf t[LANE_REGS];
    ISO_UNROLLED (r, LANE_REGS)
        t[r] = vf_set1(-__builtin_inff());
#define MAX_STEP(r, i, w) t[r] = vf_max(softmax_load(x, mask, i, w), t[r])
    LANES_EACH_COMPACT(n, MAX_STEP);
#undef MAX_STEP
    vf top = t[0];
    ISO_UNROLL
    for (size_t r = 1; r < LANE_REGS; r++)
        top = vf_max(top, t[r]);
    return vf_hmax(top);
}

/* Whether all that take part are -Inf, where no element is larger: a NaN must still show. */
ISO_INLINE int softmax_is_empty(const float *x, const uint8_t *mask, size_t n) {
    int nan = 0;
    for (size_t i = 0; i < n; i += VF_N) {
        vf v = softmax_load(x, mask, i, n - i < VF_N ? n - i : VF_N);
        nan |= !vm_all(vf_eq(v, v));
    }
    return !nan;
}

/* log(s). A vector of it: SLEEF's scalar function computes on the garbage that a register holds
 * next to its argument, and may raise INVALID. */
ISO_INLINE vf softmax_log_sum(const float *x, const uint8_t *mask, const float *next, vf m,
                              size_t n) {
    vf t[LANE_REGS];
    softmax_sum(t, NULL, x, mask, next, m, n);
    return vf_log(vf_set1(lanes_tree(t)));
}

/* y = y inverse, or `absent` where the mask is 0. */
ISO_INLINE void softmax_scale(float *y, const uint8_t *mask, vf inverse, vf absent, size_t n) {
    size_t i = 0;
    for (; i + VF_N <= n; i += VF_N) {
        vf v = vf_mul(vf_load(y + i), inverse);
        if (mask)
            v = vf_select(vm_bytes(mask + i, VF_N), v, absent);
        vf_store(y + i, v);
    }
    if (i < n) {
        vf v = vf_mul(vf_load_n(y + i, n - i), inverse);
        if (mask)
            v = vf_select(vm_bytes(mask + i, n - i), v, absent);
        vf_store_n(y + i, v, n - i);
    }
}

static inline __attribute__((always_inline)) void
softmax_row(float *y, const float *x, const uint8_t *mask, const float *next, size_t n, int flags) {
    const vf absent = vf_set1(flags & ISO_SOFTMAX_LOG ? -__builtin_inff() : 0);
    const float largest = softmax_max(x, mask, n);
    const vf m = vf_set1(largest);
    /* All that take part are -Inf: IEEE gives NaN, `safe` asks for zeros. */
    if (largest == -__builtin_inff() && (flags & ISO_SOFTMAX_SAFE) &&
        softmax_is_empty(x, mask, n)) {
        for (size_t i = 0; i < n; i += VF_N)
            store_w(y + i, absent, n - i < VF_N ? n - i : VF_N);
        return;
    }

    if (flags & ISO_SOFTMAX_LOG) {
        const vf s = softmax_log_sum(x, mask, next, m, n);
        for (size_t i = 0; i < n; i += VF_N) {
            size_t w = n - i < VF_N ? n - i : VF_N;
            vf v = vf_sub(vf_sub(softmax_load(x, mask, i, w), m), s);
            if (mask)
                v = vf_select(vm_bytes(mask + i, w), v, absent);
            store_w(y + i, v, w);
        }
        return;
    }
    vf t[LANE_REGS];
    softmax_sum(t, y, x, mask, next, m, n);
    const vf inverse = vf_set1(1.0f / lanes_tree(t));
    softmax_scale(y, mask, inverse, absent, n);
}

/* Rows that go step by step together. What ends a sum or a maximum is one chain of a few dozen
 * cycles, during which the next row's can begin: the order of operations of a row does not change.
 * So many floats of x and y stay in L1. */
#define SOFTMAX_ROWS 4
#define SOFTMAX_FLOATS 4096
#define SOFTMAX_SHORT (4 * VF_N) /* from so many elements on it pays */

/* Some rows of which all elements take part; 0, and nothing done, if one of them wants more care.
 */
static int softmax_rows(float *y, size_t ldy, const float *x, size_t ldx, const float *next,
                        size_t rows, size_t n) {
    float m[SOFTMAX_ROWS], sum[SOFTMAX_ROWS];
    for (size_t i = 0; i < rows; i++)
        m[i] = softmax_max(x + i * ldx, NULL, n);
    for (size_t i = 0; i < rows; i++)
        if (m[i] == -__builtin_inff())
            return 0;
    for (size_t i = 0; i < rows; i++) {
        vf t[LANE_REGS];
        softmax_sum(t, y + i * ldy, x + i * ldx, NULL, next + i * ldx, vf_set1(m[i]), n);
        sum[i] = lanes_tree(t);
    }
    for (size_t i = 0; i < rows; i++)
        softmax_scale(y + i * ldy, NULL, vf_set1(1.0f / sum[i]), vf_set1(0), n);
    return 1;
}

static void softmax(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                    const size_t *lengths, const uint8_t *mask, size_t ldm, int flags) {
    const float absent = flags & ISO_SOFTMAX_LOG ? -__builtin_inff() : 0;
    const int plain =
        VF_N > 1 && !lengths && !mask && !(flags & ISO_SOFTMAX_LOG) && n >= SOFTMAX_SHORT;
    const size_t fit = plain ? SOFTMAX_FLOATS / n : 0;
    const size_t together = fit > SOFTMAX_ROWS ? SOFTMAX_ROWS : fit;
    for (size_t i = 0; i < rows; i++) {
        const size_t some = rows - i < together ? rows - i : together;
        const float *next = x + i * ldx;
        if (rows - i >= 2 * some)
            next += some * ldx;
        if (some > 1 && softmax_rows(y + i * ldy, ldy, x + i * ldx, ldx, next, some, n)) {
            i += some - 1;
            continue;
        }
        const size_t length = lengths ? lengths[i] : n;
        const uint8_t *row_mask = mask ? mask + i * ldm : NULL;
        size_t present = 0; /* a row of which no element takes part is all absent, not NaN */
        while (row_mask && present < length && !row_mask[present])
            present++;
        if (present == length) {
            for (size_t j = 0; j < length; j++)
                y[i * ldy + j] = absent;
        } else if (row_mask) {
            softmax_row(y + i * ldy, x + i * ldx, row_mask, NULL, length, flags);
        } else {
            softmax_row(y + i * ldy, x + i * ldx, NULL, x + (i + (i + 1 < rows)) * ldx, length,
                        flags);
        }
        for (size_t j = length; j < n; j++)
            y[i * ldy + j] = absent;
    }
}

static void logsumexp(float *max, float *log_sum, const float *x, size_t ldx, size_t rows,
                      size_t n) {
    for (size_t i = 0; i < rows; i++) {
        const float *row = x + i * ldx, *next = row + (i + 1 < rows ? ldx : 0);
        const float largest = softmax_max(row, NULL, n);
        if (largest == -__builtin_inff() && softmax_is_empty(row, NULL, n)) {
            max[i] = -__FLT_MAX__; /* so that (-Inf - max) - log_sum is -Inf and not NaN */
            log_sum[i] = 0;
            continue;
        }
        /* Which zero comes out among zeros of both signs, the width of the vectors decides. -0 does
         * for all: x - -0 is +0 for both, as x - x is for the only zero of a row. */
        max[i] = largest == 0 ? -0.0f : largest;
        vf_store_n(log_sum + i, softmax_log_sum(row, NULL, next, vf_set1(largest), n), 1);
    }
}
