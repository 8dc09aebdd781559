/* SPDX-License-Identifier: MIT
 *
 * The operations of isobit/check.h straight from their definitions, in float and with libm: what
 * somebody may bring. The harness must find nothing in them.
 */
#include "operations.h"

#include <math.h>
#include <string.h>

static float dot(const float *a, const float *b, size_t sb, size_t k) {
    float sum = 0;
    for (size_t p = 0; p < k; p++)
        sum += a[p] * b[p * sb];
    return sum;
}

static void gemm(float *c, size_t ldc, const float *a, size_t lda, const float *b, size_t ldb,
                 size_t m, size_t n, size_t k) {
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++)
            c[i * ldc + j] = dot(a + i * lda, b + j, ldb, k);
    }
}

static void gemv(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k) {
    for (size_t j = 0; j < n; j++)
        y[j] = dot(w + j * ldw, x, 1, k);
}

static float largest(const float *x, size_t n) {
    float max = -INFINITY;
    for (size_t j = 0; j < n; j++)
        max = x[j] > max ? x[j] : max;
    return max;
}

static void softmax(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n) {
    for (size_t i = 0; i < rows; i++, y += ldy, x += ldx) {
        float max = largest(x, n), sum = 0;
        for (size_t j = 0; j < n; j++)
            sum += y[j] = expf(x[j] - max);
        for (size_t j = 0; j < n; j++)
            y[j] /= sum;
    }
}

static void logsumexp(float *y, const float *x, size_t ldx, size_t rows, size_t n) {
    for (size_t i = 0; i < rows; i++, x += ldx) {
        float max = largest(x, n), sum = 0, poison = 0;
        for (size_t j = 0; j < n; j++)
            poison += isnan(x[j]) ? x[j] : 0;
        for (size_t j = 0; j < n && isfinite(max); j++)
            sum += expf(x[j] - max);
        y[i] = isnan(poison) ? poison : isfinite(max) ? max + logf(sum) : max;
    }
}

static void layernorm(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                      const float *gamma, const float *beta, float eps) {
    for (size_t i = 0; i < rows; i++, y += ldy, x += ldx) {
        float mean = 0, variance = 0;
        for (size_t j = 0; j < n; j++)
            mean += x[j];
        mean /= (float)n;
        for (size_t j = 0; j < n; j++)
            variance += (x[j] - mean) * (x[j] - mean);
        float r = 1 / sqrtf(variance / (float)n + eps);
        for (size_t j = 0; j < n; j++)
            y[j] = (x[j] - mean) * r * gamma[j] + beta[j];
    }
}

static void rmsnorm(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                    const float *gamma, float eps) {
    for (size_t i = 0; i < rows; i++, y += ldy, x += ldx) {
        float r = 1 / sqrtf(dot(x, x, 1, n) / (float)n + eps);
        for (size_t j = 0; j < n; j++)
            y[j] = x[j] * r * gamma[j];
    }
}

static void attention(float *o, size_t ldo, const float *q, size_t ldq, const float *k, size_t ldk,
                      const float *v, size_t ldv, size_t nq, size_t nk, size_t dh, float scale,
                      int causal) {
    float s[1024];
    for (size_t i = 0; i < nq; i++) {
        size_t seen = causal ? nk - nq + i + 1 : nk;
        for (size_t j = 0; j < seen; j++)
            s[j] = scale * dot(q + i * ldq, k + j * ldk, 1, dh);
        softmax(s, seen, s, seen, 1, seen);
        for (size_t c = 0; c < dh; c++)
            o[i * ldo + c] = dot(s, v + c, ldv, seen);
    }
}

#define ELEMENTWISE(name, expression)                                                              \
    static void name(float *y, const float *x, size_t n) {                                         \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = x[i] == -INFINITY ? -0.0f : (expression);                                       \
    }
ELEMENTWISE(gelu, 0.5f * x[i] * (1 + erff(x[i] * 0x1.6a09e6p-1f)))
ELEMENTWISE(gelu_tanh,
            0.5f * x[i] * (1 + tanhf(0x1.988454p-1f * (x[i] + 0.044715f * x[i] * x[i] * x[i]))))
ELEMENTWISE(silu, x[i] / (1 + expf(-x[i])))
ELEMENTWISE(relu, x[i] < 0 ? 0 : x[i])

static void embed(float *y, size_t ldy, const uint32_t *ids, size_t count, const float *table,
                  size_t ldt, size_t d) {
    for (size_t i = 0; i < count; i++)
        memcpy(y + i * ldy, table + ids[i] * ldt, d * sizeof *y);
}

const struct iso_check_operations plain_operations = {.gemm = gemm,
                                                      .gemv = gemv,
                                                      .softmax = softmax,
                                                      .logsumexp = logsumexp,
                                                      .layernorm = layernorm,
                                                      .rmsnorm = rmsnorm,
                                                      .attention = attention,
                                                      .gelu = gelu,
                                                      .gelu_tanh = gelu_tanh,
                                                      .silu = silu,
                                                      .relu = relu,
                                                      .embed = embed};
