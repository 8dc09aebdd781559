/* SPDX-License-Identifier: MIT
 *
 * More kernels that break a promise.
 */
#include "check_self.h"

void gemv_reads_right_of_tail(float *y, const float *w, size_t ldw, const float *x, size_t n,
                              size_t k, int interleaved) {
    after_gemv(y, w, ldw, x, n, k, interleaved);
    if (k % 8 == 1 && k > 8)
        sink = x[k];
}

void gemv_depends_on_address(float *y, const float *w, size_t ldw, const float *x, size_t n,
                             size_t k, int interleaved) {
    after_gemv(y, w, ldw, x, n, k, interleaved);
    if (n && k > 100 && (uintptr_t)x % 64 == 4)
        y[0] = nextafterf(y[0], INFINITY);
}

void gemv_remembers_calls(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                          int interleaved) {
    static float last;
    after_gemv(y, w, ldw, x, n, k, interleaved);
    if (n) {
        y[n - 1] += last * 0x1p-30f;
        last = y[n - 1];
    }
}

void gemv_computes_padding(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                           int interleaved) {
    after_gemv(y, w, ldw, x, n, k, interleaved);
    volatile float lane = INFINITY; /* what lies in a lane that takes no part */
    if (k % 8)
        sink = lane - lane;
}

void strip_loses_minus_zero(float *c, size_t ldc, const float *a, size_t as, const float *b,
                            size_t bs, size_t bps, size_t m, size_t n, size_t k, int mode) {
    good->gemm_strip(c, ldc, a, as, b, bs, bps, m, n, k, mode);
    for (size_t i = 0; i < m; i++) { /* the negative zero of an underflow becomes positive */
        for (size_t j = 0; j < n; j++)
            c[i * ldc + j] = c[i * ldc + j] == 0 ? 0.0f : c[i * ldc + j];
    }
}

void gemv_flushes_subnormals(float *y, const float *w, size_t ldw, const float *x, size_t n,
                             size_t k, int interleaved) {
    after_gemv(y, w, ldw, x, n, k, interleaved);
    for (size_t i = 0; i < n; i++)
        y[i] = fabsf(y[i]) < 0x1p-126f ? 0.0f : y[i];
}

void strip_off_for_large_k(float *c, size_t ldc, const float *a, size_t as, const float *b,
                           size_t bs, size_t bps, size_t m, size_t n, size_t k, int mode) {
    good->gemm_strip(c, ldc, a, as, b, bs, bps, m, n, k, mode);
    if (k > 500 && m && n)
        c[(m - 1) * ldc + n - 1] *= 1 + 0x1p-20f;
}

void strip_wrong_ld(float *c, size_t ldc, const float *a, size_t as, const float *b, size_t bs,
                    size_t bps, size_t m, size_t n, size_t k, int mode) {
    good->gemm_strip(c, n, a, as, b, bs, bps, m, n, k, mode);
    (void)ldc;
}

void strip_splits_k(float *c, size_t ldc, const float *a, size_t as, const float *b, size_t bs,
                    size_t bps, size_t m, size_t n, size_t k, int mode) {
    size_t half = k / 2;
    good->gemm_strip(c, ldc, a, as, b, bs, bps, m, n, half, mode);
    good->gemm_strip(c, ldc, a + half * as, as, b + half * bs, bs, bps, m, n, k - half,
                     ISO_STRIP_ADD);
}

void epilogue_adds_bias_late(float *c, size_t ldc, const float *t, size_t ldt, size_t m, size_t n,
                             const struct iso_epilogue *e) {
    struct iso_epilogue other = *e;
    other.bias = NULL;
    good->gemm_epilogue(c, ldc, t, ldt, m, n, &other);
    for (size_t i = 0; i < m && e->bias; i++) {
        for (size_t j = 0; j < n; j++)
            c[i * ldc + j] += e->bias[j];
    }
}

void softmax_without_maximum(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                             size_t n, const size_t *lengths, const uint8_t *mask, size_t ldm,
                             int flags) {
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

void layernorm_one_pass(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                        const struct iso_norm *o) {
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

void rmsnorm_mixes_rows(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                        const struct iso_norm *o) {
    good->rmsnorm(y, ldy, x, ldx, rows, n, o);
    for (size_t i = 1; i < rows && n; i++)
        y[i * ldy] += 0x1p-20f * y[(i - 1) * ldy];
}

void attention_trusts_scratch(const struct iso_attention *t) {
    float before = t->scratch[0];
    good->attention(t);
    if (t->nq)
        t->o[0] += 0 * before;
}

void attention_multiplies_mask(const struct iso_attention *t) {
    good->attention(t);
    for (size_t j = 0; t->bias && t->nq && j < t->nk; j++)
        t->o[0] += 0 * t->v[j * t->ldv]; /* 0 times NaN is NaN */
}

void attention_forgets_hidden_weights(const struct iso_attention *t) {
    struct iso_attention other = *t;
    other.nk_weights = t->nk;
    good->attention(&other);
}

void unary_aliases_badly(float *y, const float *x, size_t n, int function) {
    if (n)
        y[0] = 1;
    good->unary(y, x, n, function);
}

void embed_takes_next_row(float *y, size_t ldy, const uint32_t *ids, size_t count,
                          const float *table, size_t d, float scale, const float *positions,
                          const uint32_t *rows, int past) {
    good->embed(y, ldy, ids, count, table + d, d, scale, positions, rows, past);
}

void positions_in_float(float *y, size_t ldy, size_t first, size_t count, size_t d, int layout) {
    good->positions(y, ldy, first, count, d, layout);
    for (size_t i = 0; i < count && d; i++) {
        if (fabsf(y[i * ldy]) > 0.5f)
            y[i * ldy] = sinf((float)(first + i) * 1.0000001f);
    }
}

void rope_takes_other_pairs(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                            const struct iso_rope *o) {
    struct iso_rope other = *o;
    other.halves = !o->halves; /* the other pairs */
    good->rope(y, ldy, x, ldx, rows, &other);
}

void rope_forgets_rest(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
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

void rope_fuses(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                const struct iso_rope *o) {
    const size_t half = o->rotary / 2;
    good->rope(y, ldy, x, ldx, rows, o);
    for (size_t i = 0; i < rows && o->halves && y != x && o->heads && half; i++) {
        const float *c = o->table + (o->position_rows ? o->position_rows[i] : i) * o->ld;
        y[i * ldy] = fmaf(x[i * ldx], c[0], -(x[i * ldx + half] * c[half]));
    }
}

void rope_table_in_float(float *table, size_t ld, size_t first, size_t count, const float *inv_freq,
                         size_t rotary, float scaling) {
    good->rope_table(table, ld, first, count, inv_freq, rotary, scaling);
    const int error = errno;
    for (size_t i = 0; i < count && rotary; i++)
        table[i * ld] = scaling * cosf((float)(first + i) * inv_freq[0]);
    errno = error;
}
