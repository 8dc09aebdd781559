/* SPDX-License-Identifier: MIT
 *
 * Kernels that fail with strides, places and small numbers.
 */
#include "check_self.h"

void gemv_dislikes_pages(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                         int interleaved) {
    after_gemv(y, w, ldw, x, n, k, interleaved);
    if (n && ldw % 1024 == 0 && ldw > k && ldw > n)
        y[n - 1] = -y[n - 1] + 1;
}

void strip_dislikes_primes(float *c, size_t ldc, const float *a, size_t as, const float *b,
                           size_t bs, size_t bps, size_t m, size_t n, size_t k, int mode) {
    good->gemm_strip(c, ldc, a, as, b, bs, bps, m, n, k, mode);
    bool prime = ldc > n + 3 && ldc < 1000;
    for (size_t d = 2; d < ldc && prime; d++)
        prime = ldc % d != 0;
    if (prime && m > 1)
        c[ldc] += 1;
}

void softmax_mask_as_wide_as_x(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                               size_t n, const size_t *lengths, const uint8_t *mask, size_t ldm,
                               int flags) {
    good->softmax(y, ldy, x, ldx, rows, n, lengths, mask, ldm > ldx ? ldx : ldm, flags);
}

void softmax_misses_late_nan(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                             size_t n, const size_t *lengths, const uint8_t *mask, size_t ldm,
                             int flags) {
    good->softmax(y, ldy, x, ldx, rows, n, lengths, mask, ldm, flags);
    for (size_t i = 0; i < rows && !lengths && !mask && y != x; i++) {
        size_t first = 0; /* of the row's NaNs: beyond the first vectors it counts for nothing */
        while (first < n && !isnan(x[i * ldx + first]))
            first++;
        if (first >= 32 && first < n)
            good->softmax(y + i * ldy, ldy, x + i * ldx, ldx, 1, n, &first, NULL, 0, flags);
    }
}

void softmax_flushes_subnormals(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                size_t n, const size_t *lengths, const uint8_t *mask, size_t ldm,
                                int flags) {
    good->softmax(y, ldy, x, ldx, rows, n, lengths, mask, ldm, flags);
    for (size_t i = 0; i < rows && !(flags & ISO_SOFTMAX_LOG); i++) {
        for (size_t j = 0; j < n; j++)
            y[i * ldy + j] = y[i * ldy + j] < 0x1p-126f ? 0 : y[i * ldy + j];
    }
}

void epilogue_residual_as_wide_as_c(float *c, size_t ldc, const float *t, size_t ldt, size_t m,
                                    size_t n, const struct iso_epilogue *e) {
    struct iso_epilogue other = *e;
    other.ldr = e->residual && ldc < e->ldr ? ldc : e->ldr;
    good->gemm_epilogue(c, ldc, t, ldt, m, n, &other);
}

void gate_turns_the_other(float *y, size_t ldy, const float *a, size_t lda, const float *b,
                          size_t ldb, size_t rows, size_t n, int act, int far) {
    good->gate(y, ldy, b, ldb, a, lda, rows, n, act, far);
}

void gate_factor_as_wide_as_a(float *y, size_t ldy, const float *a, size_t lda, const float *b,
                              size_t ldb, size_t rows, size_t n, int act, int far) {
    good->gate(y, ldy, a, lda, b, lda < ldb ? lda : ldb, rows, n, act, far);
}

void gate_three_units_off(float *y, size_t ldy, const float *a, size_t lda, const float *b,
                          size_t ldb, size_t rows, size_t n, int act, int far) {
    good->gate(y, ldy, a, lda, b, ldb, rows, n, act, far);
    for (size_t i = 0; i < rows && act == ISOBIT_ACT_SILU; i++) {
        for (size_t j = 0; j < n; j++)
            y[i * ldy + j] *= 1 + 0x1.8p-22f;
    }
}

void layernorm_residual_as_wide_as_x(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                     size_t n, const struct iso_norm *o) {
    struct iso_norm other = *o;
    other.ldr = o->residual && ldx < o->ldr ? ldx : o->ldr;
    good->layernorm(y, ldy, x, ldx, rows, n, &other);
}

void attention_bias_without_gap(const struct iso_attention *t) {
    struct iso_attention other = *t;
    other.ldb = (ptrdiff_t)t->nk;
    good->attention(&other);
}

void attention_bias_of_first_query(const struct iso_attention *t) {
    struct iso_attention other = *t;
    other.ldb = t->ldb == -1 ? 0 : t->ldb;
    good->attention(&other);
}

void attention_wants_first_key(const struct iso_attention *t) {
    good->attention(t); /* as if the running maximum began with the first key, -Inf or not */
    if (t->bias && t->nq && t->nk > ISO_KEY_BLOCK && isinf(t->bias[0]) &&
        isinf(t->bias[ISO_KEY_BLOCK - 1]) && isinf(t->bias[ISO_KEY_BLOCK / 2]))
        t->o[0] = NAN;
}

void embed_rounds_twice(float *y, size_t ldy, const uint32_t *ids, size_t count, const float *table,
                        size_t d, float scale, const float *positions, const uint32_t *rows,
                        int past) {
    (void)past;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < d; j++) {
            float product = scale * table[ids[i] * d + j];
            y[i * ldy + j] =
                positions ? product + positions[(rows ? rows[i] : i) * d + j] : product;
        }
    }
}
