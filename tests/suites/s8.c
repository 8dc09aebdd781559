/* SPDX-License-Identifier: MIT
 *
 * Suites of int8: quantize_s8 and gemm_s8, whose bits are those of the formulas in
 * docs/numerics.md. Sums of integers are those of int64.
 */
#include <math.h>
#include <string.h>

#include "kernels.h"
#include "oracle_kernels.h"
#include <isobit/check.h>
#include "suites/suites.h"

/* One operation of floats: in double, and rounded. A product is exact there, a sum or a quotient
 * has digits enough for the second rounding to be that of the exact one. */
static float times(float a, float b) { return (float)((double)a * (double)b); }
static float plus(float a, float b) { return (float)((double)a + (double)b); }

static unsigned flags_of(unsigned fill) {
    return iso_check_fill_is_finite(fill) ? ISO_CHECK_CASE_TRAPLESS : 0;
}

/* -------------------------------------------------------------------------------- quantize_s8 */

/* pad: fours of bytes behind those that hold the row. halves: the products lie between two
 * integers, where their last bit decides. The bytes are scratch, and the output has a float for
 * each, as outputs are floats. */
enum { Q_ROWS, Q_N, Q_PAD, Q_FLIP, Q_HALVES, Q_QGAP, Q_XGAP };
enum { Q_Q, Q_SCALES, Q_X, Q_BYTES };
enum { GAP = 0x55, GAP_CHANGED = 1000 };

static size_t padded_of(const struct iso_check_case *c) {
    return 4 * ((c->p[Q_N] + 3) / 4 + c->p[Q_PAD]);
}
static size_t ldq_of(const struct iso_check_case *c) { return padded_of(c) + 4 * c->p[Q_QGAP]; }
static int flip_of(const struct iso_check_case *c) { return c->p[Q_FLIP] ? 0x80 : 0; }
static size_t bytes_of(const struct iso_check_case *c) {
    return c->p[Q_ROWS] ? (c->p[Q_ROWS] - 1) * ldq_of(c) + padded_of(c) : 0;
}

static void quantize_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t *p = c->p;
    iso_check_out(o, "q", p[Q_ROWS], padded_of(c), padded_of(c));
    iso_check_out(o, "scales", 1, p[Q_ROWS], p[Q_ROWS]);
    float *x = iso_check_in_f32(o, "x", p[Q_ROWS], p[Q_N], p[Q_N] + p[Q_XGAP], c->fill);
    for (size_t i = 0; i < p[Q_ROWS] && p[Q_HALVES]; i++, x += p[Q_N] + p[Q_XGAP])
        for (size_t j = 0; j < p[Q_N]; j++)
            x[j] = j ? (float)((iso_check_random_next(&o->random) >> 20) % 253) - 125.5f : 127;
    iso_check_scratch(o, "bytes", bytes_of(c) / sizeof(float));
}

static void quantize_call(const void *table, const struct iso_check_case *c,
                          const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    const size_t *p = c->p, padded = padded_of(c), ldq = ldq_of(c), bytes = bytes_of(c);
    int8_t *q = ISO_CHECK_AT(int8_t, o, Q_BYTES);
    float *out = ISO_CHECK_AT(float, o, Q_Q);
    memset(q, GAP, bytes);
    t->quantize_s8(q, ldq, ISO_CHECK_AT(float, o, Q_SCALES), ISO_CHECK_AT(const float, o, Q_X),
                   p[Q_N] + p[Q_XGAP], p[Q_ROWS], p[Q_N], padded, flip_of(c));
    for (size_t i = 0; i < p[Q_ROWS]; i++)
        for (size_t j = 0; j < ldq && i * ldq + j < bytes; j++) {
            const float value = q[i * ldq + j];
            if (j < padded)
                memcpy(out + i * padded + j, &value, sizeof value);
            else if (q[i * ldq + j] != GAP)
                out[i * padded] = GAP_CHANGED;
        }
}

void iso_quantized(int8_t *q, float *scale, const float *x, size_t n, size_t padded, int flip) {
    double most = 0;
    bool finite = true;
    for (size_t j = 0; j < n; j++) {
        finite = finite && isfinite(x[j]);
        most = fabs((double)x[j]) > most ? fabs((double)x[j]) : most;
    }
    const bool some = finite && most >= ldexp(1, -119);
    const float inverse = some ? (float)(127 / most) : 0;
    *scale = !finite ? NAN : some ? (float)(most / 127) : 0;
    for (size_t j = 0; j < padded; j++) {
        const double value = some && j < n ? rint((double)times(x[j], inverse)) : 0;
        q[j] = (int8_t)((int)value ^ flip);
    }
}

static void quantize_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t *p = c->p, padded = padded_of(c);
    float *exact = iso_check_exact(o, Q_Q), *scales = iso_check_exact(o, Q_SCALES);
    int8_t *bytes = iso_check_operands_alloc(o, padded + 1);
    for (size_t i = 0; i < p[Q_ROWS]; i++) {
        iso_quantized(bytes, &scales[i], ISO_CHECK_HOST(float, o, Q_X) + i * (p[Q_N] + p[Q_XGAP]),
                      p[Q_N], padded, flip_of(c));
        for (size_t j = 0; j < padded; j++)
            exact[i * padded + j] = bytes[j];
    }
}

/* How far q is from x. */
static const char *quantize_check(const struct iso_check_operands *o,
                                  const struct iso_check_case *c) {
    const size_t *p = c->p, padded = padded_of(c);
    for (size_t i = 0; i < p[Q_ROWS]; i++) {
        const float *q = ISO_CHECK_AT(const float, o, Q_Q) + i * padded;
        const float *x = ISO_CHECK_HOST(float, o, Q_X) + i * (p[Q_N] + p[Q_XGAP]);
        const double scale = (double)ISO_CHECK_AT(const float, o, Q_SCALES)[i];
        for (size_t j = 0; j < p[Q_N] && scale > 0; j++) {
            const int value = (int8_t)((int)q[j] ^ flip_of(c));
            if (value == -128)
                return "-128";
            if (fabs((double)x[j] - scale * value) > 0.50003 * scale)
                return "not the nearest integer";
        }
    }
    return NULL;
}

static double quantize_bytes(const struct iso_check_case *c) {
    return 5.0 * (double)c->p[Q_ROWS] * (double)c->p[Q_N];
}

static void quantize_random(struct iso_check_case *c, struct iso_check_random *r) {
    size_t *p = c->p;
    p[Q_ROWS] = iso_check_random_log(r, 20), p[Q_N] = iso_check_random_log(r, 600);
    p[Q_PAD] = iso_check_random_below(r, 3), p[Q_FLIP] = iso_check_random_below(r, 2);
    p[Q_HALVES] = iso_check_random_below(r, 4) == 0;
    p[Q_QGAP] = iso_check_random_gap(r), p[Q_XGAP] = iso_check_random_gap(r);
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
    c->flags = flags_of(c->fill);
}

static void quantize_cases(struct iso_check_cases *l) {
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        iso_add(l, 1, 0, 0, 64, 512, 0, 0, 0, 0, 0);
        return;
    }
    for (size_t n = 0; n <= 140; n++)
        iso_add(l, 9, ISO_CHECK_FILL_UNIFORM,
                ISO_CHECK_CASE_TRAPLESS | (n % 16 == 7 ? ISO_CHECK_CASE_GOLDEN : 0), n % 5, n,
                n / 2 % 3, n % 2, n % 8 == 7, n % 3, n % 4);
    for (unsigned fill = 0; fill < ISO_CHECK_FILL_TOP_AT; fill++)
        for (size_t n = 1; n < 90; n += 11)
            iso_add(l, 9, fill, flags_of(fill) | (n == 67 && fill % 2 ? ISO_CHECK_CASE_GOLDEN : 0),
                    3, n, 1, n % 2, 0, 1, 2);
    for (size_t spot = 0; spot < 2 * 70; spot++)
        ISO_EACH_POINT_FILL(fill)
    iso_add_at(l, 40, fill, 0, spot, 2, 70, 1, spot % 2, 0, 0, 1);
    iso_add(l, 1, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_ALIGN, 3, 43, 1, 0, 0, 1, 1);
    for (size_t i = 0; i < ISO_STRIDES; i++)
        iso_add(l, 2, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, 3, 35, 0, 1, 0, i % 3,
                iso_stride_gap(i, 35));
}

const struct iso_check_suite iso_kernel_suite_quantize_s8 = {.name = "quantize_s8",
                                                             .params =
                                                                 "rows n pad flip halves qgap xgap",
                                                             .cases = quantize_cases,
                                                             .setup = quantize_setup,
                                                             .call = quantize_call,
                                                             .reference = quantize_reference,
                                                             .check = quantize_check,
                                                             .bytes = quantize_bytes,
                                                             .random = quantize_random};

/* ------------------------------------------------------------------------------------ gemm_s8 */

/* eights: of steps. integers: which kind; the fill is that of scales and bias. */
enum { S_M, S_N, S_EIGHTS, S_BIAS, S_INTEGERS, S_AGAP, S_BGAP, S_CGAP };
enum { S_C, S_A, S_U, S_ROWS, S_B, S_SCALES, S_START, S_OF_BIAS };
enum { RANDOM, ENDS, ZEROS, LARGEST, SMALLEST, INTEGERS };

static size_t k_of(const struct iso_check_case *c) { return 8 * c->p[S_EIGHTS]; }
static size_t padded_n(const struct iso_check_case *c) {
    return (c->p[S_N] + ISO_PANEL - 1) / ISO_PANEL * ISO_PANEL;
}
static size_t panel_ld(const struct iso_check_case *c) {
    return k_of(c) * ISO_PANEL + c->p[S_BGAP];
}

static int8_t integer(struct iso_check_operands *o, size_t kind, int of_b) {
    const uint64_t random = iso_check_random_next(&o->random) >> 20;
    switch (kind) {
    case ENDS: return random % 2 ? 127 : -127;
    case ZEROS: return (int8_t)(random % 9 ? 0 : random % 7);
    case LARGEST: return 127;
    case SMALLEST: return of_b ? -127 : 127;
    default: return (int8_t)((int)(random % 255) - 127);
    }
}

/* Step p of column j of B. */
static int8_t *b_at(const struct iso_check_operands *o, const struct iso_check_case *c, size_t p,
                    size_t j) {
    return ISO_CHECK_HOST(int8_t, o, S_B) + j / 16 * panel_ld(c) + p / 4 * 64 + j % 16 * 4 + p % 4;
}

static void s8_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t *p = c->p, k = k_of(c), lda = k + p[S_AGAP], n = padded_n(c);
    iso_check_out(o, "c", p[S_M], p[S_N], p[S_N] + p[S_CGAP]);
    int8_t *a = iso_check_in(o, "a", 1, p[S_M], k, lda);
    int8_t *u = iso_check_in(o, "u", 1, p[S_M], k, lda); /* the same, flipped */
    iso_check_in_f32(o, "row scales", 1, p[S_M], p[S_M], c->fill);
    iso_check_in(o, "b", 1, n / ISO_PANEL, k * ISO_PANEL, panel_ld(c));
    iso_check_in_f32(o, "scales", 1, n, n, c->fill);
    int32_t *start = iso_check_in(o, "start", 4, 1, n, n);
    if (p[S_BIAS])
        iso_check_in_f32(o, "bias", 1, p[S_N], p[S_N], c->fill);
    else
        iso_check_absent(o, "bias");
    for (size_t i = 0; i < p[S_M]; i++)
        for (size_t s = 0; s < k; s++) {
            a[i * lda + s] = integer(o, p[S_INTEGERS], 0);
            u[i * lda + s] = (int8_t)(a[i * lda + s] ^ 0x80);
        }
    for (size_t j = 0; j < n; j++) {
        int32_t sum = 0;
        for (size_t s = 0; s < k; s++)
            sum += *b_at(o, c, s, j) = integer(o, p[S_INTEGERS], 1);
        start[j] = -128 * sum;
    }
}

static void s8_call(const void *table, const struct iso_check_case *c,
                    const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    const size_t *p = c->p;
    t->gemm_s8(ISO_CHECK_AT(float, o, S_C), p[S_N] + p[S_CGAP],
               t->s8_flip ? ISO_CHECK_AT(const int8_t, o, S_U) : ISO_CHECK_AT(const int8_t, o, S_A),
               k_of(c) + p[S_AGAP], ISO_CHECK_AT(const float, o, S_ROWS),
               ISO_CHECK_AT(const int8_t, o, S_B), panel_ld(c),
               ISO_CHECK_AT(const float, o, S_SCALES), ISO_CHECK_AT(const int32_t, o, S_START),
               p[S_BIAS] ? ISO_CHECK_AT(const float, o, S_OF_BIAS) : NULL, p[S_M], p[S_N], k_of(c));
}

static void s8_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t *p = c->p, k = k_of(c), lda = k + p[S_AGAP];
    const float *row_scales = ISO_CHECK_HOST(float, o, S_ROWS);
    const float *scales = ISO_CHECK_HOST(float, o, S_SCALES);
    const float *bias = p[S_BIAS] ? ISO_CHECK_HOST(float, o, S_OF_BIAS) : NULL;
    float *exact = iso_check_exact(o, S_C);
    const bool judge = !iso_check_fill_may_overflow(c->fill);
    double *expect = judge ? iso_check_expect(o, S_C) : NULL,
           *bound = judge ? iso_check_bound(o, S_C) : NULL;
    for (size_t i = 0; i < p[S_M]; i++)
        for (size_t j = 0; j < p[S_N]; j++) {
            int64_t sum = 0;
            for (size_t s = 0; s < k; s++)
                sum += (int64_t)*b_at(o, c, s, j) * ISO_CHECK_HOST(int8_t, o, S_A)[i * lda + s];
            const float y = times(times((float)sum, scales[j]), row_scales[i]);
            const size_t e = i * p[S_N] + j;
            exact[e] = bias ? plus(y, bias[j]) : y;
            if (!judge)
                continue;
            const double product = (double)sum * (double)scales[j] * (double)row_scales[i];
            const double added = bias ? (double)bias[j] : 0;
            expect[e] = product + added;
            bound[e] = ldexp(3.001 * fabs(product) + fabs(product + added), -24) +
                       ldexp(1 + fabs((double)row_scales[i]), -149);
        }
}

static double s8_flops(const void *table, const struct iso_check_case *c) {
    (void)table;
    return 2.0 * (double)c->p[S_M] * (double)c->p[S_N] * (double)k_of(c);
}

static double s8_bytes(const struct iso_check_case *c) {
    const double m = (double)c->p[S_M], n = (double)c->p[S_N], k = (double)k_of(c);
    return m * (k + 4 * n) + n * k;
}

static void s8_random(struct iso_check_case *c, struct iso_check_random *r) {
    size_t *p = c->p;
    p[S_M] = iso_check_random_log(r, 40);
    p[S_N] = iso_check_random_log(r, 300);
    p[S_EIGHTS] = iso_check_random_log(r, 80);
    while (p[S_M] * p[S_N] * p[S_EIGHTS] > 1 << 15)
        p[iso_check_random_below(r, 2) ? S_N : S_EIGHTS] /= 2;
    p[S_BIAS] = iso_check_random_below(r, 2);
    p[S_INTEGERS] = iso_check_random_below(r, INTEGERS);
    p[S_AGAP] = iso_check_random_gap(r);
    p[S_BGAP] = iso_check_random_gap(r);
    p[S_CGAP] = iso_check_random_gap(r);
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
    c->flags = flags_of(c->fill);
}

/* Every height of a tile with what may be left over, and every tail of n and of k. */
static void s8_cases(struct iso_check_cases *l) {
    static const size_t ns[] = {1,  2,  3,  4,  5,  7,  8,  9,  12, 15, 16, 17,  20,  24,
                                31, 32, 33, 40, 47, 48, 49, 63, 64, 95, 96, 100, 144, 150};
    static const size_t eights[] = {0, 1, 2, 3, 4, 5, 9, 64};
    static const size_t gaps[] = {0, 1, 3, 13, 64};
    static const size_t most[][2] = {{1, 16}, {2, 3}, {9, 48}};
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        iso_add(l, 1, 0, 0, 1, 512, 64, 0, 0, 0, 0, 0);
        iso_add(l, 1, 0, 0, 16, 512, 64, 0, 0, 0, 0, 0);
        iso_add(l, 1, 0, 0, 512, 512, 64, 0, 0, 0, 0, 0);
        return;
    }
    size_t t = 0;
    for (size_t n = 0; n < iso_count(ns); n++)
        for (size_t m = 0; m <= 17; m++, t++)
            for (size_t i = 0; i < 2; i++)
                iso_add(l, 40, ISO_CHECK_FILL_UNIFORM,
                        ISO_CHECK_CASE_TRAPLESS | (t % 16 == 1 && !i ? ISO_CHECK_CASE_GOLDEN : 0),
                        m, ns[n], eights[(t * 2 + i) % iso_count(eights)], t % 2, t % INTEGERS,
                        gaps[t / 2 % 5], gaps[t / 5 % 5], gaps[t / 7 % 5]);
    for (size_t i = 0; i < iso_count(most); i++) /* sums are near the ends of 32 bits */
        for (size_t integers = ENDS; integers < INTEGERS; integers++)
            iso_add(l, 4, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS | ISO_CHECK_CASE_ONCE,
                    most[i][0], most[i][1], (ISO_S8_MOST + 1) / 8, i % 2, integers, 0, 0, 0);
    for (unsigned fill = 0; fill < ISO_CHECK_FILL_TOP_AT; fill++) /* kinds of numbers */
        for (size_t m = 1; m <= 9; m += 2)
            iso_add(l, 9, fill, flags_of(fill), m, 50 + m, 5, m / 2 % 2, m % INTEGERS, 1, 2, 3);
    for (size_t m = 1; m <= 9; m++) { /* all alignments; results that are subnormal */
        iso_add(l, 3, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_ALIGN, m, 51, 3, m % 2, 0, 1, 1, 1);
        iso_add(l, 1, ISO_CHECK_FILL_SMALL, ISO_CHECK_CASE_TRAPLESS, m, 49, 3, m % 2, 0, 1, 3, 1);
    }
    for (size_t spot = 0; spot < 4 + 48 + 37; spot++) /* scales and bias */
        ISO_EACH_POINT_FILL(fill)
    iso_add_at(l, 30, fill, 0, spot, 4, 37, 2, 1, 0, 1, 1, 1);
    for (size_t i = 0; i < ISO_STRIDES * ISO_STRIDES; i++) /* of a and c */
        iso_add(l, 6, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, 1 + i % 9, 50, 2, i % 2, 0,
                iso_stride_gap(i % ISO_STRIDES, 16), i % 4, iso_stride_gap(i / ISO_STRIDES, 50));
}

const struct iso_check_suite iso_kernel_suite_gemm_s8 = {
    .name = "gemm_s8",
    .params = "m n eights bias integers agap bgap cgap",
    .cases = s8_cases,
    .setup = s8_setup,
    .call = s8_call,
    .reference = s8_reference,
    .flops = s8_flops,
    .bytes = s8_bytes,
    .random = s8_random};
