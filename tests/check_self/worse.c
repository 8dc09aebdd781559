/* SPDX-License-Identifier: MIT
 *
 * Kernels within every bound, and worse than ours: only the gate on errors sees them.
 */
#include "check_self.h"

void unary_truncates(float *y, const float *x, size_t n, int function) {
    int error = errno;
    good->unary(y, x, n, function);
    for (size_t i = 0; i < n && function == ISO_UNARY_EXP && y != x; i++) {
        double exact = exp((double)x[i]);
        if ((double)y[i] > exact && y[i] <= 0x1.fffffep127f)
            y[i] = nextafterf(y[i], 0);
    }
    errno = error; /* libm may have set it */
}

void unary_sloppy_tail(float *y, const float *x, size_t n, int function) {
    good->unary(y, x, n, function);
    for (size_t i = 0; i < n && function == ISOBIT_ACT_GELU_ERF && y != x; i++) {
        if (x[i] < -1 && x[i] > -5) {
            double exact = 0.5 * (double)x[i] * erfc((double)-x[i] * 0.70710678118654752440);
            y[i] = (float)(exact + (i % 2 ? 0x1.6p-24 : -0x1.6p-24) * (double)x[i]);
        }
    }
}

void softmax_sloppy_reciprocal(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                               size_t n, const size_t *lengths, const uint8_t *mask, size_t ldm,
                               int flags) {
    good->softmax(y, ldy, x, ldx, rows, n, lengths, mask, ldm, flags);
    for (size_t i = 0; i < rows && !(flags & ISO_SOFTMAX_LOG); i++) {
        for (size_t j = 0; j < n; j++)
            y[i * ldy + j] *= y[i * ldy + j] < 0.75f ? 1 + 0x1p-22f : 1;
    }
}

void softmax_sloppy_log(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                        const size_t *lengths, const uint8_t *mask, size_t ldm, int flags) {
    good->softmax(y, ldy, x, ldx, rows, n, lengths, mask, ldm, flags);
    for (size_t i = 0; i < rows && flags & ISO_SOFTMAX_LOG; i++) {
        for (size_t j = 0; j < n; j++)
            y[i * ldy + j] -= y[i * ldy + j] < 0 ? 0x1p-22f : 0;
    }
}

void logsumexp_plain_zero(float *max, float *log_sum, const float *x, size_t ldx, size_t rows,
                          size_t n) {
    good->logsumexp(max, log_sum, x, ldx, rows, n);
    for (size_t i = 0; i < rows; i++)
        max[i] = max[i] == 0 ? 0 : max[i];
}

void logsumexp_swallows_nan(float *max, float *log_sum, const float *x, size_t ldx, size_t rows,
                            size_t n) {
    good->logsumexp(max, log_sum, x, ldx, rows, n);
    for (size_t i = 0; i < rows; i++)
        log_sum[i] = isnan(log_sum[i]) ? 0 : log_sum[i];
}

void logsumexp_empty_maximum(float *max, float *log_sum, const float *x, size_t ldx, size_t rows,
                             size_t n) {
    good->logsumexp(max, log_sum, x, ldx, rows, n);
    for (size_t i = 0; i < rows; i++)
        max[i] = max[i] == -FLT_MAX ? -INFINITY : max[i];
}

void logsumexp_off_by_one_ulp(float *max, float *log_sum, const float *x, size_t ldx, size_t rows,
                              size_t n) {
    good->logsumexp(max, log_sum, x, ldx, rows, n);
    for (size_t i = 0; i < rows && n > 300; i++)
        log_sum[i] = nextafterf(log_sum[i], INFINITY);
}

void layernorm_estimates_root(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                              size_t n, const struct iso_norm *o) {
    struct iso_norm bare = *o;
    bare.gamma = bare.beta = NULL;
    good->layernorm(y, ldy, x, ldx, rows, n, &bare);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < n; j++)
            y[i * ldy + j] = y[i * ldy + j] * (1 - 0x1p-22f) * (o->gamma ? o->gamma[j] : 1) +
                             (o->beta ? o->beta[j] : 0);
    }
}

void rmsnorm_estimates_root(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                            const struct iso_norm *o) {
    good->rmsnorm(y, ldy, x, ldx, rows, n, o);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < n && y != x && y != o->residual; j++)
            y[i * ldy + j] *= 1 - 0x1p-23f;
    }
}

void attention_sloppy_reciprocal(const struct iso_attention *t) {
    good->attention(t);
    for (size_t i = 0; i < t->nq && t->nk > 8 && !t->bias && !t->window; i++) {
        for (size_t c = 0; c < t->dh && (!t->causal || t->see + i > 8); c++)
            t->o[i * t->ldo + c] *= 1 + 0x1p-21f;
    }
}

void epilogue_sloppy_tanh(float *c, size_t ldc, const float *t, size_t ldt, size_t m, size_t n,
                          const struct iso_epilogue *e) {
    good->gemm_epilogue(c, ldc, t, ldt, m, n, e);
    bool steps = e->bias && e->beta != 0 && e->alpha != 1 && !e->residual;
    for (size_t i = 0; i < m && e->act == ISOBIT_ACT_TANH && steps; i++) {
        for (size_t j = 0; j < n; j++)
            c[i * ldc + j] = nextafterf(c[i * ldc + j], 0);
    }
}
