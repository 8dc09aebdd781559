/* SPDX-License-Identifier: MIT
 *
 * Proof that the harness can fail: kernels that are broken on purpose, one defect each, and what
 * its report has to say about them. A kernel is replaced in a copy of a good table; the first
 * report about the copy is compared with the text.
 */
#include "kernel_target.h"

#include <errno.h>
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <isobit/ops.h>

#include "abi.h"
#include "engine.h"
#include "kernels.h"
#include "spoil.h"

/* ------------------------------------------------------------------------------- broken kernels */

void (*iso_spoil_target)(void);

static const struct iso_kernels *good; /* the table that the broken ones call */
static unsigned calls;

static void after_gemv(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                       int layout, float *levels) {
    good->gemv(y, w, ldw, x, n, k, layout, levels);
}

static volatile float sink;

static void gemv_reads_right(float *y, const float *w, size_t ldw, const float *x, size_t n,
                             size_t k, int layout, float *levels) {
    sink = x[k];
    after_gemv(y, w, ldw, x, n, k, layout, levels);
}

static void gemv_reads_left(float *y, const float *w, size_t ldw, const float *x, size_t n,
                            size_t k, int layout, float *levels) {
    sink = x[-1];
    after_gemv(y, w, ldw, x, n, k, layout, levels);
}

static void gemv_writes_right(float *y, const float *w, size_t ldw, const float *x, size_t n,
                              size_t k, int layout, float *levels) {
    after_gemv(y, w, ldw, x, n, k, layout, levels);
    y[n] = 0;
}

static void gemv_writes_right_of_page(float *y, const float *w, size_t ldw, const float *x,
                                      size_t n, size_t k, int layout, float *levels) {
    after_gemv(y, w, ldw, x, n, k, layout, levels);
    if (n && (uintptr_t)y % 4096 == 0)
        y[n + 3] = 0;
}

static void gemv_writes_left_in_page(float *y, const float *w, size_t ldw, const float *x, size_t n,
                                     size_t k, int layout, float *levels) {
    after_gemv(y, w, ldw, x, n, k, layout, levels);
    if ((uintptr_t)y % 4096 != 0)
        y[-1] = 0;
}

static void gemv_writes_input(float *y, const float *w, size_t ldw, const float *x, size_t n,
                              size_t k, int layout, float *levels) {
    after_gemv(y, w, ldw, x, n, k, layout, levels);
    if (n && k)
        memcpy((void *)(uintptr_t)w, y, sizeof *y);
}

static void gemv_changes_errno(float *y, const float *w, size_t ldw, const float *x, size_t n,
                               size_t k, int layout, float *levels) {
    after_gemv(y, w, ldw, x, n, k, layout, levels);
    errno = ERANGE;
}

static void gemv_changes_rounding(float *y, const float *w, size_t ldw, const float *x, size_t n,
                                  size_t k, int layout, float *levels) {
    after_gemv(y, w, ldw, x, n, k, layout, levels);
    fesetround(FE_UPWARD);
}

static void gemv_never_returns(float *y, const float *w, size_t ldw, const float *x, size_t n,
                               size_t k, int layout, float *levels) {
    after_gemv(y, w, ldw, x, n, k, layout, levels);
    for (;;)
        sink = 0;
}

static void gemv_illegal(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                         int layout, float *levels) {
    after_gemv(y, w, ldw, x, n, k, layout, levels);
    raise(SIGILL);
}

static void gemv_wants_alignment(float *y, const float *w, size_t ldw, const float *x, size_t n,
                                 size_t k, int layout, float *levels) {
    if ((uintptr_t)x % 16)
        raise(SIGBUS);
    after_gemv(y, w, ldw, x, n, k, layout, levels);
}

static void gemv_divides_by_zero(float *y, const float *w, size_t ldw, const float *x, size_t n,
                                 size_t k, int layout, float *levels) {
    after_gemv(y, w, ldw, x, n, k, layout, levels);
    volatile float zero = 0;
    sink = 1 / zero;
}

static void gemv_forgets_last(float *y, const float *w, size_t ldw, const float *x, size_t n,
                              size_t k, int layout, float *levels) {
    after_gemv(y, w, ldw, x, n ? n - 1 : 0, k, layout, levels);
}

static void gemv_sums_plainly(float *y, const float *w, size_t ldw, const float *x, size_t n,
                              size_t k, int layout, float *levels) {
    (void)levels;
    for (size_t j = 0; j < n; j++) {
        y[j] = 0;
        for (size_t p = 0; p < k; p++)
            y[j] += x[p] * (layout == ISO_GEMV_COLUMNS ? w[p * ldw + j] : w[j * ldw + p]);
    }
}

static void strip_slightly_off(float *c, size_t ldc, const float *a, size_t as, const float *b,
                               size_t bs, size_t bps, size_t m, size_t n, size_t k, int mode) {
    good->gemm_strip(c, ldc, a, as, b, bs, bps, m, n, k, mode);
    if (k > 256 && m && n)
        c[0] *= 1 + 0x1p-12f;
}

static void strip_skips_tail(float *c, size_t ldc, const float *a, size_t as, const float *b,
                             size_t bs, size_t bps, size_t m, size_t n, size_t k, int mode) {
    good->gemm_strip(c, ldc, a, as, b, bs, bps, m, n % 16 == 15 ? n - 1 : n, k, mode);
}

static void strip_writes_gap(float *c, size_t ldc, const float *a, size_t as, const float *b,
                             size_t bs, size_t bps, size_t m, size_t n, size_t k, int mode) {
    good->gemm_strip(c, ldc, a, as, b, bs, bps, m, n, k, mode);
    if (m > 1 && ldc > n)
        c[n] = 0;
}

static void epilogue_reads_c(float *c, size_t ldc, const float *t, size_t ldt, size_t m, size_t n,
                             const struct iso_epilogue *e) {
    float old = m && n ? c[0] : 0;
    good->gemm_epilogue(c, ldc, t, ldt, m, n, e);
    if (m && n && e->beta == 0)
        c[0] += 0 * old;
}

static void softmax_swallows_nan(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                 size_t n, const size_t *lengths, const uint8_t *mask, size_t ldm,
                                 int flags) {
    good->softmax(y, ldy, x, ldx, rows, n, lengths, mask, ldm, flags);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < n; j++)
            y[i * ldy + j] = isnan(y[i * ldy + j]) ? 0 : y[i * ldy + j];
    }
}

static void softmax_uses_padding(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                 size_t n, const size_t *lengths, const uint8_t *mask, size_t ldm,
                                 int flags) {
    float padding = rows > 1 && ldx > n ? x[n] : 0;
    good->softmax(y, ldy, x, ldx, rows, n, lengths, mask, ldm, flags);
    if (rows && n)
        y[0] += padding;
}

static void softmax_ignores_mask(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                 size_t n, const size_t *lengths, const uint8_t *mask, size_t ldm,
                                 int flags) {
    (void)mask;
    good->softmax(y, ldy, x, ldx, rows, n, lengths, NULL, ldm, flags);
}

static void layernorm_two_ulp(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                              size_t n, const struct iso_norm *o) {
    good->layernorm(y, ldy, x, ldx, rows, n, o);
    for (int i = 0; i < 2 && rows == 2 && n == 53 && o->sum && o->residual; i++)
        y[n / 2] = nextafterf(y[n / 2], INFINITY);
}

static void rmsnorm_differs_by_call(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                    size_t n, const struct iso_norm *o) {
    good->rmsnorm(y, ldy, x, ldx, rows, n, o);
    if (rows && n && calls++ % 3 == 2)
        y[0] = nextafterf(y[0], INFINITY);
}

static void attention_sees_too_much(const struct iso_attention *t) {
    struct iso_attention wide = *t;
    wide.see++;
    good->attention(&wide);
}

static void attention_forgets_scale(const struct iso_attention *t) {
    struct iso_attention other = *t;
    other.scale *= 1 + 0x1p-12f;
    good->attention(&other);
}

static void unary_loses_sign(float *y, const float *x, size_t n, int function) {
    good->unary(y, x, n, function);
    for (size_t i = 0; i < n && function == ISOBIT_ACT_SILU; i++)
        y[i] += 0.0f;
}

static void unary_three_ulp(float *y, const float *x, size_t n, int function) {
    good->unary(y, x, n, function);
    for (size_t i = 0; i < n && function == ISO_UNARY_EXP; i++) {
        if (y[i] > 3 && y[i] < 4)
            y[i] += 0x3p-22f;
    }
}

static void pack_leaves_rest(float *dst, const float *src, size_t si, size_t sp, size_t n, size_t k,
                             size_t width) {
    good->gemm_pack(dst, src, si, sp, n, k, width);
    if (n % width && k)
        dst[(n + width - 1) / width * width * k - 1] = 1;
}

static void panels_touch_others(float *panels, size_t first, const float *k, size_t ldk,
                                size_t count, size_t dh) {
    good->key_panels(panels, first, k, ldk, count, dh);
    if (first % ISO_PANEL && count)
        panels[first / ISO_PANEL * ISO_PANEL * dh + (first - 1) % ISO_PANEL] = 0;
}

/* ------------------------------------------------------------------ more that breaks a promise */

static void gemv_reads_right_of_tail(float *y, const float *w, size_t ldw, const float *x, size_t n,
                                     size_t k, int layout, float *levels) {
    after_gemv(y, w, ldw, x, n, k, layout, levels);
    if (k % 8 == 1 && k > 8)
        sink = x[k];
}

static void gemv_depends_on_address(float *y, const float *w, size_t ldw, const float *x, size_t n,
                                    size_t k, int layout, float *levels) {
    after_gemv(y, w, ldw, x, n, k, layout, levels);
    if (n && k > 100 && (uintptr_t)x % 64 == 4)
        y[0] = nextafterf(y[0], INFINITY);
}

static void gemv_remembers_calls(float *y, const float *w, size_t ldw, const float *x, size_t n,
                                 size_t k, int layout, float *levels) {
    static float last;
    after_gemv(y, w, ldw, x, n, k, layout, levels);
    if (n) {
        y[n - 1] += last * 0x1p-30f;
        last = y[n - 1];
    }
}

static void gemv_computes_padding(float *y, const float *w, size_t ldw, const float *x, size_t n,
                                  size_t k, int layout, float *levels) {
    after_gemv(y, w, ldw, x, n, k, layout, levels);
    volatile float lane = INFINITY; /* what lies in a lane that takes no part */
    if (k % 8)
        sink = lane - lane;
}

static void strip_loses_minus_zero(float *c, size_t ldc, const float *a, size_t as, const float *b,
                                   size_t bs, size_t bps, size_t m, size_t n, size_t k, int mode) {
    good->gemm_strip(c, ldc, a, as, b, bs, bps, m, n, k, mode);
    for (size_t i = 0; i < m; i++) { /* the negative zero of an underflow becomes positive */
        for (size_t j = 0; j < n; j++)
            c[i * ldc + j] = c[i * ldc + j] == 0 ? 0.0f : c[i * ldc + j];
    }
}

static void gemv_flushes_subnormals(float *y, const float *w, size_t ldw, const float *x, size_t n,
                                    size_t k, int layout, float *levels) {
    after_gemv(y, w, ldw, x, n, k, layout, levels);
    for (size_t i = 0; i < n; i++)
        y[i] = fabsf(y[i]) < 0x1p-126f ? 0.0f : y[i];
}

static void strip_off_for_large_k(float *c, size_t ldc, const float *a, size_t as, const float *b,
                                  size_t bs, size_t bps, size_t m, size_t n, size_t k, int mode) {
    good->gemm_strip(c, ldc, a, as, b, bs, bps, m, n, k, mode);
    if (k > 500 && m && n)
        c[(m - 1) * ldc + n - 1] *= 1 + 0x1p-20f;
}

static void strip_wrong_ld(float *c, size_t ldc, const float *a, size_t as, const float *b,
                           size_t bs, size_t bps, size_t m, size_t n, size_t k, int mode) {
    good->gemm_strip(c, n, a, as, b, bs, bps, m, n, k, mode);
    (void)ldc;
}

static void strip_splits_k(float *c, size_t ldc, const float *a, size_t as, const float *b,
                           size_t bs, size_t bps, size_t m, size_t n, size_t k, int mode) {
    size_t half = k / 2;
    good->gemm_strip(c, ldc, a, as, b, bs, bps, m, n, half, mode);
    good->gemm_strip(c, ldc, a + half * as, as, b + half * bs, bs, bps, m, n, k - half,
                     ISO_STRIP_ADD);
}

static void epilogue_adds_bias_late(float *c, size_t ldc, const float *t, size_t ldt, size_t m,
                                    size_t n, const struct iso_epilogue *e) {
    struct iso_epilogue other = *e;
    other.bias = NULL;
    good->gemm_epilogue(c, ldc, t, ldt, m, n, &other);
    for (size_t i = 0; i < m && e->bias; i++) {
        for (size_t j = 0; j < n; j++)
            c[i * ldc + j] += e->bias[j];
    }
}

static void softmax_without_maximum(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                    size_t n, const size_t *lengths, const uint8_t *mask,
                                    size_t ldm, int flags) {
    if (lengths || mask || flags || y == x || n == 0) {
        good->softmax(y, ldy, x, ldx, rows, n, lengths, mask, ldm, flags);
        return;
    }
    for (size_t i = 0; i < rows; i++) {
        float sum = 0;
        for (size_t j = 0; j < n; j++)
            sum += y[i * ldy + j] = expf(x[i * ldx + j]);
        for (size_t j = 0; j < n; j++)
            y[i * ldy + j] /= sum;
    }
}

static void layernorm_one_pass(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                               size_t n, const struct iso_norm *o) {
    good->layernorm(y, ldy, x, ldx, rows, n, o);
    if (o->sum || o->residual || y == x)
        return;
    for (size_t i = 0; i < rows; i++) { /* E[x^2] - E[x]^2 */
        float sum = 0, squares = 0;
        for (size_t j = 0; j < n; j++) {
            sum += x[i * ldx + j];
            squares += x[i * ldx + j] * x[i * ldx + j];
        }
        float mean = sum / (float)n, variance = squares / (float)n - mean * mean;
        float scale = 1 / sqrtf(fmaxf(variance, 0) + o->eps);
        for (size_t j = 0; j < n; j++)
            y[i * ldy + j] = (x[i * ldx + j] - mean) * scale * (o->gamma ? o->gamma[j] : 1) +
                             (o->beta ? o->beta[j] : 0);
    }
}

static void rmsnorm_mixes_rows(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                               size_t n, const struct iso_norm *o) {
    good->rmsnorm(y, ldy, x, ldx, rows, n, o);
    for (size_t i = 1; i < rows && n; i++)
        y[i * ldy] += 0x1p-20f * y[(i - 1) * ldy];
}

static void attention_trusts_scratch(const struct iso_attention *t) {
    float before = t->scratch[0];
    good->attention(t);
    if (t->nq)
        t->o[0] += 0 * before;
}

static void attention_multiplies_mask(const struct iso_attention *t) {
    good->attention(t);
    for (size_t j = 0; t->bias && t->nq && j < t->nk; j++)
        t->o[0] += 0 * t->v[j * t->ldv]; /* 0 times NaN is NaN */
}

static void attention_forgets_hidden_weights(const struct iso_attention *t) {
    struct iso_attention other = *t;
    other.nk_weights = t->nk;
    good->attention(&other);
}

static void unary_aliases_badly(float *y, const float *x, size_t n, int function) {
    if (n)
        y[0] = 1;
    good->unary(y, x, n, function);
}

static void embed_takes_next_row(float *y, size_t ldy, const uint32_t *ids, size_t count,
                                 const float *table, size_t d, float scale, const float *positions,
                                 const uint32_t *rows, int past) {
    good->embed(y, ldy, ids, count, table + d, d, scale, positions, rows, past);
}

static void positions_in_float(float *y, size_t ldy, size_t first, size_t count, size_t d,
                               int layout) {
    good->positions(y, ldy, first, count, d, layout);
    for (size_t i = 0; i < count && d; i++) {
        if (fabsf(y[i * ldy]) > 0.5f)
            y[i * ldy] = sinf((float)(first + i) * 1.0000001f);
    }
}

static void rope_takes_other_pairs(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                   const struct iso_rope *o) {
    struct iso_rope other = *o;
    other.halves = !o->halves; /* the other pairs */
    good->rope(y, ldy, x, ldx, rows, &other);
}

static void rope_forgets_rest(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                              const struct iso_rope *o) {
    struct iso_rope one = *o;
    one.heads = 1, one.dh = o->rotary;
    for (size_t i = 0; i < rows; i++) {
        one.table = o->table + (o->position_rows ? o->position_rows[i] : i) * o->ld;
        one.position_rows = NULL;
        for (size_t h = 0; h < o->heads; h++)
            good->rope(y + i * ldy + h * o->dh, ldy, x + i * ldx + h * o->dh, ldx, 1, &one);
    }
}

static void rope_fuses(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                       const struct iso_rope *o) {
    const size_t half = o->rotary / 2;
    good->rope(y, ldy, x, ldx, rows, o);
    for (size_t i = 0; i < rows && o->halves && y != x && o->heads && half; i++) {
        const float *c = o->table + (o->position_rows ? o->position_rows[i] : i) * o->ld;
        y[i * ldy] = fmaf(x[i * ldx], c[0], -(x[i * ldx + half] * c[half]));
    }
}

static void rope_table_in_float(float *table, size_t ld, size_t first, size_t count,
                                const float *inv_freq, size_t rotary, float scaling) {
    good->rope_table(table, ld, first, count, inv_freq, rotary, scaling);
    const int error = errno;
    for (size_t i = 0; i < count && rotary; i++)
        table[i * ld] = scaling * cosf((float)(first + i) * inv_freq[0]);
    errno = error;
}

/* -------------------------------------------------------------- strides, places and small numbers
 */

static void gemv_dislikes_pages(float *y, const float *w, size_t ldw, const float *x, size_t n,
                                size_t k, int layout, float *levels) {
    after_gemv(y, w, ldw, x, n, k, layout, levels);
    if (n && ldw % 1024 == 0 && ldw > k && ldw > n)
        y[n - 1] = -y[n - 1] + 1;
}

static void strip_dislikes_primes(float *c, size_t ldc, const float *a, size_t as, const float *b,
                                  size_t bs, size_t bps, size_t m, size_t n, size_t k, int mode) {
    good->gemm_strip(c, ldc, a, as, b, bs, bps, m, n, k, mode);
    bool prime = ldc > n + 3 && ldc < 1000;
    for (size_t d = 2; d < ldc && prime; d++)
        prime = ldc % d != 0;
    if (prime && m > 1)
        c[ldc] += 1;
}

static void softmax_mask_as_wide_as_x(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                      size_t n, const size_t *lengths, const uint8_t *mask,
                                      size_t ldm, int flags) {
    good->softmax(y, ldy, x, ldx, rows, n, lengths, mask, ldm > ldx ? ldx : ldm, flags);
}

static void softmax_misses_late_nan(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                    size_t n, const size_t *lengths, const uint8_t *mask,
                                    size_t ldm, int flags) {
    good->softmax(y, ldy, x, ldx, rows, n, lengths, mask, ldm, flags);
    for (size_t i = 0; i < rows && !lengths && !mask && y != x; i++) {
        size_t first = 0; /* of the row's NaNs: beyond the first vectors it counts for nothing */
        while (first < n && !isnan(x[i * ldx + first]))
            first++;
        if (first >= 32 && first < n)
            good->softmax(y + i * ldy, ldy, x + i * ldx, ldx, 1, n, &first, NULL, 0, flags);
    }
}

static void softmax_flushes_subnormals(float *y, size_t ldy, const float *x, size_t ldx,
                                       size_t rows, size_t n, const size_t *lengths,
                                       const uint8_t *mask, size_t ldm, int flags) {
    good->softmax(y, ldy, x, ldx, rows, n, lengths, mask, ldm, flags);
    for (size_t i = 0; i < rows && !(flags & ISO_SOFTMAX_LOG); i++) {
        for (size_t j = 0; j < n; j++)
            y[i * ldy + j] = y[i * ldy + j] < 0x1p-126f ? 0 : y[i * ldy + j];
    }
}

static void epilogue_residual_as_wide_as_c(float *c, size_t ldc, const float *t, size_t ldt,
                                           size_t m, size_t n, const struct iso_epilogue *e) {
    struct iso_epilogue other = *e;
    other.ldr = e->residual && ldc < e->ldr ? ldc : e->ldr;
    good->gemm_epilogue(c, ldc, t, ldt, m, n, &other);
}

static void gate_turns_the_other(float *y, size_t ldy, const float *a, size_t lda, const float *b,
                                 size_t ldb, size_t rows, size_t n, int act, int far) {
    good->gate(y, ldy, b, ldb, a, lda, rows, n, act, far);
}

static void gate_factor_as_wide_as_a(float *y, size_t ldy, const float *a, size_t lda,
                                     const float *b, size_t ldb, size_t rows, size_t n, int act,
                                     int far) {
    good->gate(y, ldy, a, lda, b, lda < ldb ? lda : ldb, rows, n, act, far);
}

static void gate_three_units_off(float *y, size_t ldy, const float *a, size_t lda, const float *b,
                                 size_t ldb, size_t rows, size_t n, int act, int far) {
    good->gate(y, ldy, a, lda, b, ldb, rows, n, act, far);
    for (size_t i = 0; i < rows && act == ISOBIT_ACT_SILU; i++) {
        for (size_t j = 0; j < n; j++)
            y[i * ldy + j] *= 1 + 0x1.8p-22f;
    }
}

static void layernorm_residual_as_wide_as_x(float *y, size_t ldy, const float *x, size_t ldx,
                                            size_t rows, size_t n, const struct iso_norm *o) {
    struct iso_norm other = *o;
    other.ldr = o->residual && ldx < o->ldr ? ldx : o->ldr;
    good->layernorm(y, ldy, x, ldx, rows, n, &other);
}

static void attention_bias_without_gap(const struct iso_attention *t) {
    struct iso_attention other = *t;
    other.ldb = (ptrdiff_t)t->nk;
    good->attention(&other);
}

static void attention_bias_of_first_query(const struct iso_attention *t) {
    struct iso_attention other = *t;
    other.ldb = t->ldb == -1 ? 0 : t->ldb;
    good->attention(&other);
}

static void attention_wants_first_key(const struct iso_attention *t) {
    good->attention(t); /* as if the running maximum began with the first key, -Inf or not */
    if (t->bias && t->nq && t->nk > ISO_KEY_BLOCK && isinf(t->bias[0]) &&
        isinf(t->bias[ISO_KEY_BLOCK - 1]) && isinf(t->bias[ISO_KEY_BLOCK / 2]))
        t->o[0] = NAN;
}

static void embed_rounds_twice(float *y, size_t ldy, const uint32_t *ids, size_t count,
                               const float *table, size_t d, float scale, const float *positions,
                               const uint32_t *rows, int past) {
    (void)past;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < d; j++) {
            float product = scale * table[ids[i] * d + j];
            y[i * ldy + j] =
                positions ? product + positions[(rows ? rows[i] : i) * d + j] : product;
        }
    }
}

/* ------------------------------------ within every bound, and worse: only the gate on errors sees
 */

static void unary_truncates(float *y, const float *x, size_t n, int function) {
    int error = errno;
    good->unary(y, x, n, function);
    for (size_t i = 0; i < n && function == ISO_UNARY_EXP && y != x; i++) {
        double exact = exp((double)x[i]);
        if ((double)y[i] > exact && y[i] <= 0x1.fffffep127f)
            y[i] = nextafterf(y[i], 0);
    }
    errno = error; /* libm may have set it */
}

static void unary_sloppy_tail(float *y, const float *x, size_t n, int function) {
    good->unary(y, x, n, function);
    for (size_t i = 0; i < n && function == ISOBIT_ACT_GELU_ERF && y != x; i++) {
        if (x[i] < -1 && x[i] > -5) {
            double exact = 0.5 * (double)x[i] * erfc((double)-x[i] * 0.70710678118654752440);
            y[i] = (float)(exact + (i % 2 ? 0x1.6p-24 : -0x1.6p-24) * (double)x[i]);
        }
    }
}

static void softmax_sloppy_reciprocal(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                      size_t n, const size_t *lengths, const uint8_t *mask,
                                      size_t ldm, int flags) {
    good->softmax(y, ldy, x, ldx, rows, n, lengths, mask, ldm, flags);
    for (size_t i = 0; i < rows && !(flags & ISO_SOFTMAX_LOG); i++) {
        for (size_t j = 0; j < n; j++)
            y[i * ldy + j] *= y[i * ldy + j] < 0.75f ? 1 + 0x1p-22f : 1;
    }
}

static void softmax_sloppy_log(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                               size_t n, const size_t *lengths, const uint8_t *mask, size_t ldm,
                               int flags) {
    good->softmax(y, ldy, x, ldx, rows, n, lengths, mask, ldm, flags);
    for (size_t i = 0; i < rows && flags & ISO_SOFTMAX_LOG; i++) {
        for (size_t j = 0; j < n; j++)
            y[i * ldy + j] -= y[i * ldy + j] < 0 ? 0x1p-22f : 0;
    }
}

static void logsumexp_plain_zero(float *max, float *log_sum, const float *x, size_t ldx,
                                 size_t rows, size_t n) {
    good->logsumexp(max, log_sum, x, ldx, rows, n);
    for (size_t i = 0; i < rows; i++)
        max[i] = max[i] == 0 ? 0 : max[i];
}

static void logsumexp_swallows_nan(float *max, float *log_sum, const float *x, size_t ldx,
                                   size_t rows, size_t n) {
    good->logsumexp(max, log_sum, x, ldx, rows, n);
    for (size_t i = 0; i < rows; i++)
        log_sum[i] = isnan(log_sum[i]) ? 0 : log_sum[i];
}

static void logsumexp_empty_maximum(float *max, float *log_sum, const float *x, size_t ldx,
                                    size_t rows, size_t n) {
    good->logsumexp(max, log_sum, x, ldx, rows, n);
    for (size_t i = 0; i < rows; i++)
        max[i] = max[i] == -FLT_MAX ? -INFINITY : max[i];
}

static void logsumexp_off_by_one_ulp(float *max, float *log_sum, const float *x, size_t ldx,
                                     size_t rows, size_t n) {
    good->logsumexp(max, log_sum, x, ldx, rows, n);
    for (size_t i = 0; i < rows && n > 300; i++)
        log_sum[i] = nextafterf(log_sum[i], INFINITY);
}

static void layernorm_estimates_root(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
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

static void rmsnorm_estimates_root(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                   size_t n, const struct iso_norm *o) {
    good->rmsnorm(y, ldy, x, ldx, rows, n, o);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < n && y != x && y != o->residual; j++)
            y[i * ldy + j] *= 1 - 0x1p-23f;
    }
}

static void attention_sloppy_reciprocal(const struct iso_attention *t) {
    good->attention(t);
    for (size_t i = 0; i < t->nq && t->nk > 8 && !t->bias && !t->window; i++) {
        for (size_t c = 0; c < t->dh && (!t->causal || t->see + i > 8); c++)
            t->o[i * t->ldo + c] *= 1 + 0x1p-21f;
    }
}

static void epilogue_sloppy_tanh(float *c, size_t ldc, const float *t, size_t ldt, size_t m,
                                 size_t n, const struct iso_epilogue *e) {
    good->gemm_epilogue(c, ldc, t, ldt, m, n, e);
    bool steps = e->bias && e->beta != 0 && e->alpha != 1 && !e->residual;
    for (size_t i = 0; i < m && e->act == ISOBIT_ACT_TANH && steps; i++) {
        for (size_t j = 0; j < n; j++)
            c[i * ldc + j] = nextafterf(c[i * ldc + j], 0);
    }
}

/* What the first report has to say when the named kernel is replaced. */
#define BROKEN(kernel, function, text)                                                             \
    { #kernel, #function, text, {.kernel = function }, false }
/* No result is beyond its bound: compared with the calibrated errors, and with nothing else. */
#define SLOPPY(kernel, function, text)                                                             \
    { #kernel, #function, text, {.kernel = function }, true }
#define SPOILT(name, text) BROKEN(unary, iso_spoil_##name, text)
struct broken {
    const char *kernel, *name, *text;
    struct iso_kernels with; /* one pointer set */
    bool sloppy;
};
static const struct broken broken_kernels[] = {
    BROKEN(gemv, gemv_reads_right, "past the right end of x"),
    BROKEN(gemv, gemv_reads_left, "past the left end of x"),
    BROKEN(gemv, gemv_writes_right, "past the right end of y"),
    BROKEN(gemv, gemv_writes_right_of_page, "wrote past the end of y"),
    BROKEN(gemv, gemv_writes_left_in_page, "wrote before the begin of y"),
    BROKEN(gemv, gemv_writes_input, "wrote to the input w"),
    BROKEN(gemv, gemv_changes_errno, "changed errno"),
    BROKEN(gemv, gemv_changes_rounding, "changed the floating-point control register"),
    BROKEN(gemv, gemv_never_returns, "did not return in time"),
    BROKEN(gemv, gemv_illegal, "illegal instruction"),
    BROKEN(gemv, gemv_wants_alignment, "bus error"),
    BROKEN(gemv, gemv_divides_by_zero, "raised DIVBYZERO"),
    BROKEN(gemv, gemv_forgets_last, "did not write y"),
    BROKEN(gemv, gemv_sums_plainly, ", to the bit"),
    BROKEN(gemm_strip, strip_slightly_off, "times the bound"),
    BROKEN(gemm_strip, strip_skips_tail, "c["),
    BROKEN(gemm_strip, strip_writes_gap, "wrote to the gap of c"),
    BROKEN(gemm_epilogue, epilogue_reads_c, "c[0][0]"),
    BROKEN(softmax, softmax_swallows_nan, "should be nan"),
    BROKEN(softmax, softmax_uses_padding, "nan, should be"),
    BROKEN(softmax, softmax_ignores_mask, "should be"),
    BROKEN(logsumexp, logsumexp_plain_zero, "should be -0x0p+0, to the bit"),
    BROKEN(logsumexp, logsumexp_swallows_nan, "should be nan"),
    BROKEN(logsumexp, logsumexp_empty_maximum, "max[0]["),
    BROKEN(logsumexp, logsumexp_off_by_one_ulp, "is not the log-softmax"),
    BROKEN(layernorm, layernorm_two_ulp, "bits of y"),
    BROKEN(rmsnorm, rmsnorm_differs_by_call, "bits of "),
    BROKEN(attention, attention_sees_too_much, "o["),
    BROKEN(attention, attention_forgets_scale, "times the bound"),
    BROKEN(unary, unary_loses_sign, "bits of y"),
    BROKEN(unary, unary_three_ulp, "times the bound"),
    BROKEN(gemm_pack, pack_leaves_rest, ", to the bit"),
    BROKEN(key_panels, panels_touch_others, ", to the bit"),
    BROKEN(gemv, gemv_reads_right_of_tail, "past the right end of x"),
    BROKEN(gemv, gemv_depends_on_address, "y[0]"),
    BROKEN(gemv, gemv_remembers_calls, "y["),
    BROKEN(gemv, gemv_computes_padding, "raised INVALID"),
    BROKEN(gemm_strip, strip_loses_minus_zero, "should be -0x0p+0, to the bit"),
    BROKEN(gemv, gemv_flushes_subnormals, "y[0][0] is 0x0p+0, should be"),
    BROKEN(gemm_strip, strip_off_for_large_k, "c["),
    BROKEN(gemm_strip, strip_wrong_ld, "c"),
    BROKEN(gemm_strip, strip_splits_k, ", to the bit"),
    BROKEN(gemm_epilogue, epilogue_adds_bias_late, "c["),
    BROKEN(softmax, softmax_without_maximum, "y["),
    BROKEN(layernorm, layernorm_one_pass, "y["),
    BROKEN(rmsnorm, rmsnorm_mixes_rows, "[1][0]"),
    BROKEN(attention, attention_trusts_scratch, "nan, should be"),
    BROKEN(attention, attention_multiplies_mask, "nan, should be"),
    BROKEN(attention, attention_forgets_hidden_weights, "did not write weights"),
    BROKEN(unary, unary_aliases_badly, "[0]"),
    BROKEN(embed, embed_takes_next_row, "past the right end of table"),
    BROKEN(positions, positions_in_float, "times the bound"),
    BROKEN(rope, rope_takes_other_pairs, "times the bound"),
    BROKEN(rope, rope_forgets_rest, "did not write y"),
    BROKEN(rope, rope_fuses, ", to the bit"),
    BROKEN(rope_table, rope_table_in_float, "times the bound"),
    BROKEN(gemv, gemv_dislikes_pages, "y["),
    BROKEN(gemm_strip, strip_dislikes_primes, "c[1][0]"),
    BROKEN(softmax, softmax_mask_as_wide_as_x, ""),
    BROKEN(softmax, softmax_misses_late_nan, "should be nan"),
    BROKEN(softmax, softmax_flushes_subnormals, "is 0x0p+0, should be"),
    BROKEN(gemm_epilogue, epilogue_residual_as_wide_as_c, "c[1][0]"),
    BROKEN(layernorm, layernorm_residual_as_wide_as_x, "[1][0]"),
    BROKEN(gate, gate_turns_the_other, "times the bound"),
    BROKEN(gate, gate_factor_as_wide_as_a, "y[1][0]"),
    BROKEN(gate, gate_three_units_off, "times the bound"),
    BROKEN(attention, attention_bias_without_gap, "o["),
    BROKEN(attention, attention_bias_of_first_query, "o["),
    BROKEN(attention, attention_wants_first_key, "o[0][0] is nan, should be"),
    BROKEN(embed, embed_rounds_twice, "times the bound"),
    SLOPPY(unary, unary_truncates, "of the group exp"),
    SLOPPY(unary, unary_sloppy_tail, "of the group gelu-erf"),
    SLOPPY(softmax, softmax_sloppy_reciprocal, "of the group plain"),
    SLOPPY(softmax, softmax_sloppy_log, "of the group log"),
    SLOPPY(layernorm, layernorm_estimates_root, "of the group "),
    SLOPPY(rmsnorm, rmsnorm_estimates_root, "of the group "),
    SLOPPY(attention, attention_sloppy_reciprocal, "of the group plain"),
    SLOPPY(gemm_epilogue, epilogue_sloppy_tanh, "of the group tanh"),
/* the calling convention; abi_*.S */
#if defined(__x86_64__) || defined(__aarch64__)
    SPOILT(illegal, "illegal instruction"),
    SPOILT(canary, "wrote to the stack of its caller"),
    SPOILT(stack, "bytes of stack, more than"),
    SPOILT(int_width, "did not write y"),
#endif
#if defined(__x86_64__)
    SPOILT(rbx, "did not preserve register rbx"),
    SPOILT(rbp, "did not preserve register rbp"),
    SPOILT(r12, "did not preserve register r12"),
    SPOILT(r13, "did not preserve register r13"),
    SPOILT(r14, "did not preserve register r14"),
    SPOILT(r15, "did not preserve register r15"),
    SPOILT(direction, "left the direction flag set"),
    SPOILT(mxcsr, "changed the floating-point control register"),
    SPOILT(x87_control, "changed the x87 control word"),
    SPOILT(x87_stack, "left x87 or MMX registers in use"),
    SPOILT(ymm, "left upper halves of ymm registers in use"),
    SPOILT(zmm, "left upper halves of "),
    SPOILT(aligned, "general protection fault"),
#elif defined(__aarch64__)
    SPOILT(x19, "did not preserve register x19"),
    SPOILT(x28, "did not preserve register x28"),
    SPOILT(x29, "did not preserve register x29"),
    SPOILT(d8, "did not preserve register d8"),
    SPOILT(d15, "did not preserve register d15"),
    SPOILT(fpcr, "changed the floating-point control register"),
#endif
};

/* Why a defect cannot be found here, or NULL. */
static const char *not_here(const struct broken *b) {
    (void)b;
#if defined(__x86_64__)
    if (b->with.unary == iso_spoil_ymm && !iso_check_abi_sees_upper(false))
        return "the machine does not tell dirty ymm registers";
    if (b->with.unary == iso_spoil_zmm && !iso_check_abi_sees_upper(true))
        return "the machine does not tell dirty zmm registers";
#endif
#if defined(__x86_64__) || defined(__aarch64__)
    if (b->with.unary == iso_spoil_stack && strstr(iso_check_abi_missing(), "stack"))
        return "the use of the stack is not measured under a sanitizer";
#endif
    return NULL;
}

static void breaks(struct iso_kernels *table, const struct iso_kernels *with) {
#define KERNEL(type, name, args)                                                                   \
    if (with->name)                                                                                \
        table->name = with->name;
#include "kernels.def"
#undef KERNEL
}

static bool found(const char *name, const struct iso_check_run *run, const char *text) {
    bool ok = run->failures > 0 && strstr(run->first_failure, text);
    printf("%-32s %s: %s\n", name, ok ? "found " : "MISSED",
           run->failures ? run->first_failure : "nothing was reported");
    fflush(stdout);
    return ok;
}

/* Does the full plan of a kernel hold what testing asks for? */
static bool plan_is_wide(const struct iso_check_suite *suite) {
    static const char *const without_fills[] = {"fma_peak", "positions"};
    bool seen[ISO_CHECK_FILL_ALL] = {false}, plain = false;
    size_t kinds = 0, aligned = 0;
    struct iso_check_cases list;
    for (size_t i = 0; i < sizeof without_fills / sizeof *without_fills; i++)
        plain |= !strcmp(suite->name, without_fills[i]);
    iso_check_suite_cases(suite, &list, ISO_CHECK_PLAN_FULL);
    for (size_t i = 0; i < list.count; i++) {
        kinds += !seen[list.v[i].fill];
        seen[list.v[i].fill] = true;
        aligned += (list.v[i].flags & ISO_CHECK_CASE_ALIGN) != 0;
    }
    free(list.v);
    /* pack and key_panels copy; a copy knows no difficult numbers */
    size_t least = plain                                                                     ? 1
                   : !strcmp(suite->name, "gemm_pack") || !strcmp(suite->name, "key_panels") ? 12
                                                                                             : 24;
    bool ok = kinds >= least && (aligned || !strcmp(suite->name, "fma_peak"));
    if (!ok)
        printf("%-32s THIN  : %zu kinds of inputs, at least %zu wanted; %zu cases at all 64 "
               "alignments\n",
               suite->name, kinds, least, aligned);
    return ok;
}

int iso_kernel_self_test(const struct iso_check_run *base) {
    size_t missed = 0, skipped = 0, count = sizeof broken_kernels / sizeof *broken_kernels;
    for (size_t i = 0; i < base->variant_count && !good; i++)
        good = base->variants[i].missing ? NULL : base->variants[i].table;
    for (size_t i = 0; i < count; i++) {
        const struct broken *b = &broken_kernels[i];
        const char *why = not_here(b);
        if (why) {
            printf("%-32s SKIPPED: %s\n", b->name, why);
            skipped++;
            continue;
        }
        iso_spoil_target = (void (*)(void))good->unary;
        struct iso_kernels table = *good;
        breaks(&table, &b->with);
        struct iso_check_variant variants[2] = {{"good", good, NULL}, {"broken", &table, NULL}};
        struct iso_check_run run = *base;
        run.plan = ISO_CHECK_PLAN_QUICK;
        run.variants = variants + b->sloppy; /* alone: bits that differ are found by comparing */
        run.variant_count = 2 - b->sloppy;
        run.update = NULL;
        run.golden = (struct iso_check_committed){0};
        run.errors = b->sloppy ? base->errors : run.golden;
        run.update_errors = NULL;
        run.row = NULL;
        run.failed = NULL;
        run.stop = true;
        run.case_seconds = 2;
        calls = 0;
        iso_check_run_suite(&run, iso_check_suite_named(base->target, b->kernel));
        missed += !found(b->name, &run, b->text);
    }
    /* the committed files: a number that is another, and a file without the line */
#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)
#define NUMERICS TEXT(ISOBIT_NUMERICS_VERSION)
    static const struct {
        const char *name, *line, *text;
        bool errors;
    } files[] = {
        {"tampered golden hash", "embed " NUMERICS " 0123456789abcdef",
         "the bits are not those committed", false},
        {"missing golden hash", "other " NUMERICS " 0123456789abcdef", "no committed hash", false},
        {"tampered rms", "embed quick plain 9 0.1 1 0", "rms error of the group plain", true},
        {"tampered quantile", "embed quick plain 9 1 0.1 0", "quantile of the errors of the", true},
        {"missing errors", "embed full plain 9 1 1 0", "no calibrated errors of the group", true}};
    size_t file_count = sizeof files / sizeof *files;
    for (size_t i = 0; i < file_count; i++) {
        char file[] = "/tmp/isobit-self-test-XXXXXX";
        int fd = mkstemp(file);
        if (fd < 0)
            return 2;
        dprintf(fd, "%s\n", files[i].line);
        close(fd);
        struct iso_check_run run = *base;
        run.plan = ISO_CHECK_PLAN_QUICK;
        if (files[i].errors)
            run.errors.file = file;
        else
            run.golden.file = file;
        run.update = run.update_errors = NULL;
        run.row = NULL;
        run.failed = NULL;
        iso_check_run_suite(&run, iso_check_suite_named(base->target, "embed"));
        unlink(file);
        missed += !found(files[i].name, &run, files[i].text);
    }
    /* the plan: every kernel at all alignments, and with enough kinds of inputs */
    size_t thin = 0;
    for (size_t i = 0; i < base->target->suite_count; i++)
        thin += !base->target->suites[i]->by_plan && !plan_is_wide(base->target->suites[i]);
    count += file_count;
    printf("self-test: %zu of %zu defects found, %zu skipped\n", count - missed - skipped, count,
           skipped);
    return missed || thin ? 1 : 0;
}
