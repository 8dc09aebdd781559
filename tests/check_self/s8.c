/* SPDX-License-Identifier: MIT
 *
 * Broken kernels of int8.
 */
#include "check_self.h"

void quantize_truncates(int8_t *q, size_t ldq, float *scales, const float *x, size_t ldx,
                        size_t rows, size_t n, size_t padded, int flip) {
    good->quantize_s8(q, ldq, scales, x, ldx, rows, n, padded, flip);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < n && scales[i] > 0; j++)
            q[i * ldq + j] = (int8_t)((int8_t)(x[i * ldx + j] * (0.9999f / scales[i])) ^ flip);
}

/* Of a row that is not finite. */
void quantize_keeps_scale(int8_t *q, size_t ldq, float *scales, const float *x, size_t ldx,
                          size_t rows, size_t n, size_t padded, int flip) {
    good->quantize_s8(q, ldq, scales, x, ldx, rows, n, padded, flip);
    for (size_t i = 0; i < rows; i++)
        scales[i] = isnan(scales[i]) ? 1 : scales[i];
}

void quantize_leaves_rest(int8_t *q, size_t ldq, float *scales, const float *x, size_t ldx,
                          size_t rows, size_t n, size_t padded, int flip) {
    (void)padded;
    good->quantize_s8(q, ldq, scales, x, ldx, rows, n, (n + 3) / 4 * 4, flip);
}

/* As sums of two products saturate in 16 bits, where one of the factors has no sign. */
void s8_saturates(float *c, size_t ldc, const int8_t *a, size_t lda, const float *row_scales,
                  const int8_t *b, size_t bps, const float *scales, const int32_t *start,
                  const float *bias, size_t m, size_t n, size_t k) {
    good->gemm_s8(c, ldc, a, lda, row_scales, b, bps, scales, start, bias, m, n, k);
    for (size_t i = 0; i < m && !good->s8_flip && n; i++) {
        int64_t sum = 0;
        for (size_t p = 0; p < k; p += 2) {
            const int8_t *w = b + p / 4 * 64 + p % 4, *x = a + i * lda + p;
            const int two = (x[0] + 128) * w[0] + (x[1] + 128) * w[1];
            sum += (two > 32767 ? 32767 : two < -32768 ? -32768 : two) - 128 * (w[0] + w[1]);
        }
        c[i * ldc] = (float)sum * scales[0] * row_scales[i] + (bias ? bias[0] : 0);
    }
}

void s8_multiplies_scales(float *c, size_t ldc, const int8_t *a, size_t lda,
                          const float *row_scales, const int8_t *b, size_t bps, const float *scales,
                          const int32_t *start, const float *bias, size_t m, size_t n, size_t k) {
    const float one = 1;
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            float both[16] = {0};
            both[j % 16] = scales[j] * row_scales[i];
            float row[16];
            const size_t w = n - j / 16 * 16 < 16 ? n - j / 16 * 16 : 16;
            good->gemm_s8(row, 16, a + i * lda, lda, &one, b + j / 16 * bps, bps, both,
                          start + j / 16 * 16, NULL, 1, w, k);
            c[i * ldc + j] = bias ? row[j % 16] + bias[j] : row[j % 16];
        }
}

void s8_reads_past_bias(float *c, size_t ldc, const int8_t *a, size_t lda, const float *row_scales,
                        const int8_t *b, size_t bps, const float *scales, const int32_t *start,
                        const float *bias, size_t m, size_t n, size_t k) {
    good->gemm_s8(c, ldc, a, lda, row_scales, b, bps, scales, start, bias, m, n, k);
    if (bias && n)
        sink = bias[n];
}

/* Where a step of a row of blocks lies. */
static size_t place_of(size_t step) {
    return step / 8 * 8 + (step % 2 ? 0 : 4) + (7 - step % 8) / 2;
}

/* Integers in the order of their steps, which is not that of the weights. */
void blocks_in_order(struct iso_s8_block *to, size_t ldt, const float *x, size_t ldx, size_t rows,
                     size_t n) {
    good->quantize_blocks(to, ldt, x, ldx, rows, n);
    for (size_t i = 0; i < rows; i++)
        for (size_t b = 0; b < iso_s8_blocks(n); b++) {
            struct iso_s8_block *block = to + i * ldt + b;
            const struct iso_s8_block old = *block;
            for (size_t s = 0; s < ISO_S8_BLOCK; s++)
                block->q[s] = old.q[place_of(s)];
        }
}

/* The last block, where the row does not fill it. */
void blocks_of_whole_rows(struct iso_s8_block *to, size_t ldt, const float *x, size_t ldx,
                          size_t rows, size_t n) {
    good->quantize_blocks(to, ldt, x, ldx, rows, n / ISO_S8_BLOCK * ISO_S8_BLOCK);
}

/* One rounding fewer: the scales of weights and rows are not multiplied beforehand. */
void q_s8_scales_twice(float *c, size_t ldc, const struct iso_s8_block *a, size_t lda,
                       const uint32_t *b, size_t bps, const float *bias, size_t m, size_t n,
                       size_t k, int type, int mode) {
    good->gemm_q_s8(c, ldc, a, lda, b, bps, bias, m, n, k, type, mode);
    if (m && n && k && !(type & ISO_Q_OFFSETS) && !bias && iso_q_group(type) == ISO_S8_BLOCK &&
        k == ISO_S8_BLOCK) {
        struct iso_s8_block one = a[0];
        float sum;
        one.scale = 1;
        good->gemm_q_s8(&sum, 1, &one, 1, b, bps, NULL, 1, 1, k, type, mode);
        c[0] = sum * a[0].scale;
    }
}

void q_s8_forgets_offsets(float *c, size_t ldc, const struct iso_s8_block *a, size_t lda,
                          const uint32_t *b, size_t bps, const float *bias, size_t m, size_t n,
                          size_t k, int type, int mode) {
    good->gemm_q_s8(c, ldc, a, lda, b, bps, bias, m, n, k, type, mode);
    for (size_t i = 0; i < m && n && type & ISO_Q_OFFSETS && k; i++) {
        struct iso_s8_block row[80];
        if (iso_s8_blocks(k) > sizeof row / sizeof *row)
            return;
        memcpy(row, a + i * lda, iso_s8_blocks(k) * sizeof *row);
        memset(row[0].scaled, 0, sizeof row[0].scaled);
        good->gemm_q_s8(c + i * ldc, ldc, row, lda, b, bps, bias, 1, n, k, type, mode);
    }
}

void q_s8_writes_whole_panels(float *c, size_t ldc, const struct iso_s8_block *a, size_t lda,
                              const uint32_t *b, size_t bps, const float *bias, size_t m, size_t n,
                              size_t k, int type, int mode) {
    good->gemm_q_s8(c, ldc, a, lda, b, bps, bias, m, n, k, type, mode);
    if (m && n % 16)
        c[(m - 1) * ldc + n] = 0;
}

/* A block of 32 numbers of 8 bits with a scale of F16, and no bias. */
static int q_s8_plain(const float *bias, size_t m, size_t n, size_t k, int type) {
    return m && n && k == ISO_S8_BLOCK && type == 0 && !bias;
}
/* Number `step` of the first column. */
static int q_s8_number(const uint32_t *b, size_t step) {
    return ((const int8_t *)(b + iso_q_scale_words(0)))[step * ISO_PANEL];
}
/* The first element once more, with a sum that is off by so much. */
static void q_s8_off_by(float *c, const struct iso_s8_block *a, const uint32_t *b, int64_t sum,
                        int64_t off) {
    uint16_t scale;
    memcpy(&scale, b, sizeof scale);
    if (off)
        c[0] = (float)(sum + off) * (iso_f16_value(scale) * a->scale);
}

/* As pairs of products saturate in 16 bits, where weights are 128 more than they mean. */
void q_s8_saturates(float *c, size_t ldc, const struct iso_s8_block *a, size_t lda,
                    const uint32_t *b, size_t bps, const float *bias, size_t m, size_t n, size_t k,
                    int type, int mode) {
    good->gemm_q_s8(c, ldc, a, lda, b, bps, bias, m, n, k, type, mode);
    int64_t sum = 0, off = 0;
    for (size_t s = 0; q_s8_plain(bias, m, n, k, type) && s < k; s += 2) {
        const int x[] = {a->q[place_of(s)], a->q[place_of(s + 1)]};
        const int w[] = {q_s8_number(b, s), q_s8_number(b, s + 1)};
        const int two = (w[0] + 128) * x[0] + (w[1] + 128) * x[1];
        sum += w[0] * x[0] + w[1] * x[1];
        off += two > 32767 ? 32767 - two : two < -32768 ? -32768 - two : 0;
    }
    q_s8_off_by(c, a, b, sum, off);
}

/* As a sign is taken from weights, of which -128 has no opposite. */
void q_s8_misses_least(float *c, size_t ldc, const struct iso_s8_block *a, size_t lda,
                       const uint32_t *b, size_t bps, const float *bias, size_t m, size_t n,
                       size_t k, int type, int mode) {
    good->gemm_q_s8(c, ldc, a, lda, b, bps, bias, m, n, k, type, mode);
    int64_t sum = 0, off = 0;
    for (size_t s = 0; q_s8_plain(bias, m, n, k, type) && s < k; s++) {
        const int x = a->q[place_of(s)], w = q_s8_number(b, s);
        sum += w * x;
        off += w == -128 ? x : 0; /* as if it were -127 */
    }
    q_s8_off_by(c, a, b, sum, off);
}
