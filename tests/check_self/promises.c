/* SPDX-License-Identifier: MIT
 *
 * Kernels that break a promise.
 */
#include "check_self.h"

void (*iso_spoil_target)(void);

const struct iso_kernels *good; /* the table that the broken ones call */
unsigned calls;

void after_gemv(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                int interleaved) {
    good->gemv(y, w, ldw, x, n, k, interleaved);
}

volatile float sink;

void gemv_reads_right(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                      int interleaved) {
    sink = x[k];
    after_gemv(y, w, ldw, x, n, k, interleaved);
}

void gemv_reads_left(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                     int interleaved) {
    sink = x[-1];
    after_gemv(y, w, ldw, x, n, k, interleaved);
}

void gemv_writes_right(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                       int interleaved) {
    after_gemv(y, w, ldw, x, n, k, interleaved);
    y[n] = 0;
}

void gemv_writes_right_of_page(float *y, const float *w, size_t ldw, const float *x, size_t n,
                               size_t k, int interleaved) {
    after_gemv(y, w, ldw, x, n, k, interleaved);
    if (n && (uintptr_t)y % 4096 == 0)
        y[n + 3] = 0;
}

void gemv_writes_left_in_page(float *y, const float *w, size_t ldw, const float *x, size_t n,
                              size_t k, int interleaved) {
    after_gemv(y, w, ldw, x, n, k, interleaved);
    if ((uintptr_t)y % 4096 != 0)
        y[-1] = 0;
}

void gemv_writes_input(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                       int interleaved) {
    after_gemv(y, w, ldw, x, n, k, interleaved);
    if (n && k)
        memcpy((void *)(uintptr_t)w, y, sizeof *y);
}

void gemv_changes_errno(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                        int interleaved) {
    after_gemv(y, w, ldw, x, n, k, interleaved);
    errno = ERANGE;
}

void gemv_changes_rounding(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                           int interleaved) {
    after_gemv(y, w, ldw, x, n, k, interleaved);
    fesetround(FE_UPWARD);
}

void gemv_never_returns(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                        int interleaved) {
    after_gemv(y, w, ldw, x, n, k, interleaved);
    for (;;)
        sink = 0;
}

void gemv_illegal(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                  int interleaved) {
    after_gemv(y, w, ldw, x, n, k, interleaved);
    raise(SIGILL);
}

void gemv_wants_alignment(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                          int interleaved) {
    if ((uintptr_t)x % 16)
        raise(SIGBUS);
    after_gemv(y, w, ldw, x, n, k, interleaved);
}

void gemv_divides_by_zero(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                          int interleaved) {
    after_gemv(y, w, ldw, x, n, k, interleaved);
    volatile float zero = 0;
    sink = 1 / zero;
}

void gemv_forgets_last(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                       int interleaved) {
    after_gemv(y, w, ldw, x, n ? n - 1 : 0, k, interleaved);
}

void gemv_sums_plainly(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                       int interleaved) {
    (void)interleaved;
    for (size_t j = 0; j < n; j++) {
        y[j] = 0;
        for (size_t p = 0; p < k; p++)
            y[j] += x[p] * (w[j * ldw + p]);
    }
}

void strip_slightly_off(float *c, size_t ldc, const float *a, size_t as, const float *b, size_t bs,
                        size_t bps, size_t m, size_t n, size_t k, int mode) {
    good->gemm_strip(c, ldc, a, as, b, bs, bps, m, n, k, mode);
    if (k > 256 && m && n)
        c[0] *= 1 + 0x1p-12f;
}

void strip_skips_tail(float *c, size_t ldc, const float *a, size_t as, const float *b, size_t bs,
                      size_t bps, size_t m, size_t n, size_t k, int mode) {
    good->gemm_strip(c, ldc, a, as, b, bs, bps, m, n % 16 == 15 ? n - 1 : n, k, mode);
}

void strip_writes_gap(float *c, size_t ldc, const float *a, size_t as, const float *b, size_t bs,
                      size_t bps, size_t m, size_t n, size_t k, int mode) {
    good->gemm_strip(c, ldc, a, as, b, bs, bps, m, n, k, mode);
    if (m > 1 && ldc > n)
        c[n] = 0;
}

void epilogue_reads_c(float *c, size_t ldc, const float *t, size_t ldt, size_t m, size_t n,
                      const struct iso_epilogue *e) {
    float old = m && n ? c[0] : 0;
    good->gemm_epilogue(c, ldc, t, ldt, m, n, e);
    if (m && n && e->beta == 0)
        c[0] += 0 * old;
}

void softmax_swallows_nan(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                          const size_t *lengths, const uint8_t *mask, size_t ldm, int flags) {
    good->softmax(y, ldy, x, ldx, rows, n, lengths, mask, ldm, flags);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < n; j++)
            y[i * ldy + j] = isnan(y[i * ldy + j]) ? 0 : y[i * ldy + j];
    }
}

void softmax_uses_padding(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                          const size_t *lengths, const uint8_t *mask, size_t ldm, int flags) {
    float padding = rows > 1 && ldx > n ? x[n] : 0;
    good->softmax(y, ldy, x, ldx, rows, n, lengths, mask, ldm, flags);
    if (rows && n)
        y[0] += padding;
}

void softmax_ignores_mask(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                          const size_t *lengths, const uint8_t *mask, size_t ldm, int flags) {
    (void)mask;
    good->softmax(y, ldy, x, ldx, rows, n, lengths, NULL, ldm, flags);
}

void layernorm_two_ulp(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                       const struct iso_norm *o) {
    good->layernorm(y, ldy, x, ldx, rows, n, o);
    for (int i = 0; i < 2 && rows == 2 && n == 53 && o->sum && o->residual; i++)
        y[n / 2] = nextafterf(y[n / 2], INFINITY);
}

void rmsnorm_differs_by_call(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                             size_t n, const struct iso_norm *o) {
    good->rmsnorm(y, ldy, x, ldx, rows, n, o);
    if (rows && n && calls++ % 3 == 2)
        y[0] = nextafterf(y[0], INFINITY);
}

void attention_sees_too_much(const struct iso_attention *t) {
    struct iso_attention wide = *t;
    wide.see++;
    good->attention(&wide);
}

void attention_forgets_scale(const struct iso_attention *t) {
    struct iso_attention other = *t;
    other.scale *= 1 + 0x1p-12f;
    good->attention(&other);
}

void unary_loses_sign(float *y, const float *x, size_t n, int function) {
    good->unary(y, x, n, function);
    for (size_t i = 0; i < n && function == ISOBIT_ACT_SILU; i++)
        y[i] += 0.0f;
}

void unary_three_ulp(float *y, const float *x, size_t n, int function) {
    good->unary(y, x, n, function);
    for (size_t i = 0; i < n && function == ISO_UNARY_EXP; i++) {
        if (y[i] > 3 && y[i] < 4)
            y[i] += 0x3p-22f;
    }
}

void pack_leaves_rest(float *dst, const float *src, size_t si, size_t sp, size_t n, size_t k,
                      size_t width) {
    good->gemm_pack(dst, src, si, sp, n, k, width);
    if (n % width && k)
        dst[(n + width - 1) / width * width * k - 1] = 1;
}

void panels_touch_others(float *panels, size_t first, const float *k, size_t ldk, size_t count,
                         size_t dh) {
    good->key_panels(panels, first, k, ldk, count, dh);
    if (first % ISO_PANEL && count)
        panels[first / ISO_PANEL * ISO_PANEL * dh + (first - 1) % ISO_PANEL] = 0;
}
