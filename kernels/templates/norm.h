/* SPDX-License-Identifier: MIT
 *
 * Layer norm and RMS norm of rows, with the residual added on the way.
 *
 * Layer norm takes two passes, and the mean is taken of the differences to the first element: a
 * constant row then gives exactly beta, and a large common offset costs no accuracy.
 *   t_i = x_i + residual_i;  mean = t_0 + sum(t_i - t_0) / n;  d_i = t_i - mean;
 *   r = 1 / sqrt(sum(d_i^2 by fma) / n + eps);  y_i = (d_i r) gamma_i + beta_i (fma with both)
 */

/* t = x + residual, written where it is wanted or, failing that, to y; returns where it stands. */
static const float *norm_input(float *y, const float *x, const float *residual, float *sum,
                               size_t n) {
    if (!residual && (!sum || sum == x))
        return x;
    float *t = sum ? sum : y;
    size_t i = 0;
    for (; i + VF_N <= n; i += VF_N) {
        vf v = vf_load(x + i);
        vf_store(t + i, residual ? vf_add(v, vf_load(residual + i)) : v);
    }
    if (i < n) {
        vf v = vf_load_n(x + i, n - i);
        vf_store_n(t + i, residual ? vf_add(v, vf_load_n(residual + i, n - i)) : v, n - i);
    }
    return t;
}

static inline __attribute__((always_inline)) void norm_output(float *y, const float *t, float mean,
                                                              float r, const float *gamma,
                                                              const float *beta, size_t n,
                                                              const int centred) {
    for (size_t i = 0; i < n; i += VF_N) {
        size_t w = n - i < VF_N ? n - i : VF_N;
        vf d = load_w(t + i, w);
        if (centred)
            d = vf_sub(d, vf_set1(mean));
        d = vf_mul(d, vf_set1(r));
        if (gamma && beta)
            d = vf_fma(d, load_w(gamma + i, w), load_w(beta + i, w));
        else if (gamma)
            d = vf_mul(d, load_w(gamma + i, w));
        else if (beta)
            d = vf_add(d, load_w(beta + i, w));
        store_w(y + i, d, w);
    }
}

static void layernorm(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                      const struct iso_norm *o) {
    for (size_t row = 0; row < rows; row++, y += ldy, x += ldx) {
        const float *t = norm_input(y, x, o->residual ? o->residual + row * o->ldr : NULL,
                                    o->sum ? o->sum + row * o->lds : NULL, n);
        vf acc[LANE_REGS];
        const vf first = vf_set1(t[0]);
        ISO_UNROLLED (r, LANE_REGS)
            acc[r] = vf_set1(0);
#define MEAN_STEP(r, i, w) acc[r] = vf_add(acc[r], keep_w(vf_sub(load_w(t + (i), w), first), w))
        LANES_EACH(n, MEAN_STEP);
#undef MEAN_STEP
        const float mean = t[0] + lanes_tree(acc) / (float)n;
        ISO_UNROLLED (r, LANE_REGS)
            acc[r] = vf_set1(0);
#define VARIANCE_STEP(r, i, w)                                                                     \
    do {                                                                                           \
        vf d_ = keep_w(vf_sub(load_w(t + (i), w), vf_set1(mean)), w);                              \
        acc[r] = vf_fma(d_, d_, acc[r]);                                                           \
    } while (0)
        LANES_EACH(n, VARIANCE_STEP);
#undef VARIANCE_STEP
        const float r = 1.0f / __builtin_sqrtf(lanes_tree(acc) / (float)n + o->eps);
        norm_output(y, t, mean, r, o->gamma, o->beta, n, 1);
    }
}

static void rmsnorm(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                    const struct iso_norm *o) {
    for (size_t row = 0; row < rows; row++, y += ldy, x += ldx) {
        const float *t = norm_input(y, x, o->residual ? o->residual + row * o->ldr : NULL,
                                    o->sum ? o->sum + row * o->lds : NULL, n);
        vf acc[LANE_REGS];
        ISO_UNROLLED (r, LANE_REGS)
            acc[r] = vf_set1(0);
#define SQUARE_STEP(r, i, w)                                                                       \
    do {                                                                                           \
        vf v_ = load_w(t + (i), w);                                                                \
        acc[r] = vf_fma(v_, v_, acc[r]);                                                           \
    } while (0)
        LANES_EACH(n, SQUARE_STEP);
#undef SQUARE_STEP
        const float r = 1.0f / __builtin_sqrtf(lanes_tree(acc) / (float)n + o->eps);
        norm_output(y, t, 0, r, o->gamma, NULL, n, 0);
    }
}
