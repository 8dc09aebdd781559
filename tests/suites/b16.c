/* SPDX-License-Identifier: MIT
 *
 * Suites of native numerics: round_b16 and gemm_b16, whose bits depend on the CPU, so that they are
 * held to a bound: the number nearest in BF16, and sums of products of BF16 in double. They have no
 * hash.
 */
#include <math.h>
#include <string.h>

#include "kernels.h"
#include "oracle_kernels.h"
#include <isobit/check.h>
#include "suites/suites.h"

enum { WIDE = ISO_HALF_PANEL };

static unsigned flags_of(unsigned fill) {
    return ISO_CHECK_CASE_NO_BITS | (iso_check_fill_is_finite(fill) ? ISO_CHECK_CASE_TRAPLESS : 0);
}

/* ---------------------------------------------------------------------------------- round_b16 */

/* all: numbers with each of the upper 16 bits in order, from `all` - 1 times rows * n on, and lower
 * ones about the middle between two numbers of BF16; 0: those of the fill. The elements of 16 bits
 * are scratch, and the output has a float for each, as outputs are floats. */
enum { R_ROWS, R_N, R_ALL, R_TGAP, R_XGAP };
enum { R_VALUES, R_X, R_TO };
enum { GAP = 0x4321 };

static size_t ldt_of(const struct iso_check_case *c) {
    return iso_b16_padded(c->p[R_N]) + 2 * c->p[R_TGAP];
}
static size_t halves_of(const struct iso_check_case *c) {
    return c->p[R_ROWS] ? (c->p[R_ROWS] - 1) * ldt_of(c) + iso_b16_padded(c->p[R_N]) : 0;
}

static void round_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    static const uint32_t lower[] = {0x8000, 0x7fff, 0x8001, 0};
    const size_t *p = c->p, padded = iso_b16_padded(p[R_N]);
    iso_check_out(o, "values", p[R_ROWS], padded, padded);
    float *x = iso_check_in_f32(o, "x", p[R_ROWS], p[R_N], p[R_N] + p[R_XGAP], c->fill);
    for (size_t i = 0; i < p[R_ROWS] && p[R_ALL]; i++, x += p[R_N] + p[R_XGAP])
        for (size_t j = 0; j < p[R_N]; j++) {
            const size_t number = ((p[R_ALL] - 1) / 4 * p[R_ROWS] + i) * p[R_N] + j;
            const uint32_t bits = (uint32_t)number << 16 | lower[p[R_ALL] % 4];
            memcpy(x + j, &bits, sizeof bits);
        }
    iso_check_scratch(o, "halves", halves_of(c) / 2);
}

static void round_call(const void *table, const struct iso_check_case *c,
                       const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    const size_t *p = c->p, padded = iso_b16_padded(p[R_N]), ldt = ldt_of(c), all = halves_of(c);
    uint16_t *to = ISO_CHECK_AT(uint16_t, o, R_TO);
    float *values = ISO_CHECK_AT(float, o, R_VALUES);
    for (size_t i = 0; i < all; i++)
        to[i] = GAP;
    t->round_b16(to, ldt, ISO_CHECK_AT(const float, o, R_X), p[R_N] + p[R_XGAP], p[R_ROWS], p[R_N]);
    for (size_t i = 0; i < p[R_ROWS]; i++)
        for (size_t j = 0; j < ldt && i * ldt + j < all; j++) {
            const uint16_t got = to[i * ldt + j];
            const float value = iso_half_value(got, ISO_W16_BF16), changed = INFINITY;
            if (j < padded)
                memcpy(values + i * padded + j, &value, sizeof value);
            else if (got != GAP)
                memcpy(values + i * padded, &changed, sizeof changed);
        }
}

/* In double: of numbers with 8 digits the nearest, of two the even one. */
static double nearest(float x) {
    int exponent;
    if (x == 0 || !isfinite(x))
        return (double)x;
    frexp((double)x, &exponent);
    const int last = exponent < -125 ? -133 : exponent - 8;
    const double value = ldexp(rint(ldexp((double)x, -last)), last);
    return fabs(value) < ldexp(1, 128) ? value : (double)INFINITY * value;
}

static void round_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t *p = c->p, padded = iso_b16_padded(p[R_N]);
    double *expect = iso_check_expect(o, R_VALUES), *bound = iso_check_bound(o, R_VALUES);
    for (size_t i = 0; i < p[R_ROWS]; i++)
        for (size_t j = 0; j < padded; j++) {
            const float x =
                j < p[R_N] ? ISO_CHECK_HOST(float, o, R_X)[i * (p[R_N] + p[R_XGAP]) + j] : 0;
            expect[i * padded + j] = nearest(x);
            bound[i * padded + j] =
                fabs((double)x) < ldexp(1, -126) ? ldexp(1, -126) : ORACLE_EQUAL;
        }
}

static double round_bytes(const struct iso_check_case *c) {
    return 6.0 * (double)c->p[R_ROWS] * (double)c->p[R_N];
}

static void round_random(struct iso_check_case *c, struct iso_check_random *r) {
    size_t *p = c->p;
    p[R_ROWS] = iso_check_random_log(r, 20), p[R_N] = iso_check_random_log(r, 600);
    p[R_TGAP] = iso_check_random_gap(r), p[R_XGAP] = iso_check_random_gap(r);
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
    c->flags = flags_of(c->fill);
}

static void round_cases(struct iso_check_cases *l) {
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        iso_add(l, 1, 0, 0, 64, 512, 0, 16, 0);
        return;
    }
    for (size_t n = 0; n <= 140; n++)
        iso_add(l, 9, ISO_CHECK_FILL_UNIFORM, flags_of(0), n % 5, n, 0, n % 3, n % 4);
    for (unsigned fill = 0; fill < ISO_CHECK_FILL_TOP_AT; fill++)
        for (size_t n = 1; n < 90; n += 11)
            iso_add(l, 9, fill, flags_of(fill), 3, n, 0, 1, 2);
    for (size_t all = 1; all <= 4 * 64; all++)
        iso_add(l, 9, 0, ISO_CHECK_CASE_NO_BITS | ISO_CHECK_CASE_ONCE, 32, 32, all, 0, 0);
    iso_add(l, 1, ISO_CHECK_FILL_UNIFORM, flags_of(0) | ISO_CHECK_CASE_ALIGN, 3, 43, 0, 1, 1);
    for (size_t i = 0; i < ISO_STRIDES; i++)
        iso_add(l, 2, ISO_CHECK_FILL_UNIFORM, flags_of(0), 3, 35, 0, i % 3, iso_stride_gap(i, 35));
}

const struct iso_check_suite iso_kernel_suite_round_b16 = {.name = "round_b16",
                                                           .params = "rows n all tgap xgap",
                                                           .cases = round_cases,
                                                           .setup = round_setup,
                                                           .call = round_call,
                                                           .reference = round_reference,
                                                           .bytes = round_bytes,
                                                           .random = round_random};

/* ----------------------------------------------------------------------------------- gemm_b16 */

enum { B_M, B_N, B_K, B_ADD, B_AGAP, B_BGAP, B_CGAP };
enum { B_C, B_A, B_B };

static size_t panel_ld(const struct iso_check_case *c) { return c->p[B_K] * WIDE + c->p[B_BGAP]; }
static size_t lda_of(const struct iso_check_case *c) {
    return iso_b16_padded(c->p[B_K]) + c->p[B_AGAP];
}

static void b16_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t *p = c->p, padded = iso_b16_padded(p[B_K]);
    if (p[B_ADD])
        iso_check_inout_f32(o, "c", p[B_M], p[B_N], p[B_N] + p[B_CGAP], c->fill);
    else
        iso_check_out(o, "c", p[B_M], p[B_N], p[B_N] + p[B_CGAP]);
    uint16_t *a = iso_check_in(o, "a", sizeof *a, p[B_M], padded, lda_of(c));
    for (size_t i = 0; i < p[B_M]; i++)
        for (size_t s = 0; s < padded; s++)
            a[i * lda_of(c) + s] = s < p[B_K] ? iso_half_fill(o, c->fill, ISO_W16_BF16) : 0;
    iso_half_panels(o, p[B_N], p[B_K], panel_ld(c), ISO_W16_BF16, c->fill);
}

static void b16_call(const void *table, const struct iso_check_case *c,
                     const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    const size_t *p = c->p;
    t->gemm_b16(ISO_CHECK_AT(float, o, B_C), p[B_N] + p[B_CGAP],
                ISO_CHECK_AT(const uint16_t, o, B_A), lda_of(c),
                ISO_CHECK_AT(const uint16_t, o, B_B), panel_ld(c), p[B_M], p[B_N], p[B_K],
                (p[B_ADD] ? ISO_DIRECT_ADD : 0) | (p[B_K] % 2 ? ISO_DIRECT_BEYOND_L2 : 0));
}

/* Subnormal numbers as zeros, whose products with infinities are NaN; what they would have added is
 * part of the bound, and so are sums that are subnormal on the way. */
static double term(double *magnitude, double *lost, float a, float b) {
    const double product = (double)a * (double)b;
    if ((a != 0 && fabsf(a) < 0x1p-126f) || (b != 0 && fabsf(b) < 0x1p-126f)) {
        const double zero = fabsf(a) < 0x1p-126f ? (double)b * 0 : (double)a * 0;
        *lost += isnan(zero) ? 0 : fabs(product);
        return zero;
    }
    *magnitude += fabs(product);
    return product;
}

static void b16_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t *p = c->p, k = p[B_K];
    if (iso_check_fill_may_overflow(c->fill))
        return;
    double *expect = iso_check_expect(o, B_C), *bound = iso_check_bound(o, B_C);
    for (size_t i = 0; i < p[B_M]; i++)
        for (size_t j = 0; j < p[B_N]; j++) {
            const uint16_t *a = ISO_CHECK_HOST(uint16_t, o, B_A) + i * lda_of(c);
            const uint16_t *b = ISO_CHECK_HOST(uint16_t, o, B_B) + j / WIDE * panel_ld(c) +
                                iso_half_place(j % WIDE, ISO_W16_BF16);
            const size_t e = i * p[B_N] + j;
            double sum = 0, magnitude = 0, lost = ldexp((double)(2 * k + 4), -126);
            if (p[B_ADD]) {
                sum = (double)ISO_CHECK_HOST(float, o, B_C)[i * (p[B_N] + p[B_CGAP]) + j];
                magnitude = fabs(sum);
            }
            for (size_t s = 0; s < k; s++)
                sum += term(&magnitude, &lost, iso_half_value(a[s], ISO_W16_BF16),
                            iso_half_value(b[s * WIDE], ISO_W16_BF16));
            expect[e] = sum;
            bound[e] = iso_oracle_sum_bound(magnitude, (double)k + 3, (double)k) + lost;
            if (c->fill == ISO_CHECK_FILL_INTEGER)
                bound[e] = ORACLE_EQUAL;
        }
}

static double b16_flops(const void *table, const struct iso_check_case *c) {
    (void)table;
    return 2.0 * (double)c->p[B_M] * (double)c->p[B_N] * (double)c->p[B_K];
}

static double b16_bytes(const struct iso_check_case *c) {
    const double m = (double)c->p[B_M], n = (double)c->p[B_N], k = (double)c->p[B_K];
    return m * (4.0 * n + 2.0 * k) + 2.0 * n * k;
}

static void b16_random(struct iso_check_case *c, struct iso_check_random *r) {
    size_t *p = c->p;
    p[B_M] = iso_check_random_log(r, 40);
    p[B_N] = iso_check_random_log(r, 300);
    p[B_K] = iso_check_random_log(r, ISO_K_BLOCK);
    while (p[B_M] * p[B_N] * p[B_K] > 1 << 17)
        p[iso_check_random_below(r, 2) ? B_N : B_K] /= 2;
    p[B_ADD] = iso_check_random_below(r, 2);
    p[B_AGAP] = iso_check_random_gap(r);
    p[B_BGAP] = iso_check_random_gap(r);
    p[B_CGAP] = iso_check_random_gap(r);
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
    c->flags = flags_of(c->fill);
}

/* Every height of a tile and more than one of them, and every tail of n and of k. */
static void b16_cases(struct iso_check_cases *l) {
    static const size_t ns[] = {1,  3,  4,  7,  8,  9,  15, 16, 17,  23,  24,  31,  32,  33, 40,
                                47, 48, 49, 63, 64, 65, 95, 96, 100, 127, 128, 129, 160, 200};
    static const size_t ks[] = {17, 0, 1, 2, 3, 7, 16, 33, 66, 512};
    static const size_t gaps[] = {0, 1, 3, 13, 64};
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        iso_add(l, 1, 0, 0, 1, 512, 512, 0, 0, 0, 0);
        iso_add(l, 1, 0, 0, 12, 512, 512, 0, 0, 0, 0);
        iso_add(l, 1, 0, 0, 128, 256, 512, 0, 0, 0, 0);
        return;
    }
    size_t t = 0;
    for (size_t k = 0; k < iso_count(ks); k++)
        for (size_t n = 0; n < iso_count(ns); n++)
            for (size_t m = 0; m <= 14; m++, t++)
                iso_add(l, 40, t % 3 == 1 ? ISO_CHECK_FILL_INTEGER : ISO_CHECK_FILL_UNIFORM,
                        flags_of(0), m == 14 ? 40 : m, ns[n], ks[k], t % 2, gaps[t / 2 % 5],
                        gaps[t / 5 % 5], gaps[t / 7 % 5]);
    for (unsigned fill = 0; fill < ISO_CHECK_FILL_TOP_AT; fill++) /* kinds of numbers */
        for (size_t m = 1; m <= 13; m++)
            iso_add(l, 6, fill, flags_of(fill), m, 77, 33 + m, m % 2, 1, 2, 3);
    for (size_t m = 1; m <= 13; m++) { /* all alignments; results that are subnormal */
        iso_add(l, 4, ISO_CHECK_FILL_UNIFORM, flags_of(0) | ISO_CHECK_CASE_ALIGN, m, 43, 9, m % 2,
                1, 1, 1);
        iso_add(l, 1, ISO_CHECK_FILL_SMALL, flags_of(0), m, 49, 33, m % 2, 1, 3, 1);
    }
    for (size_t spot = 0; spot < 4 * 37 + 4 * 5 + 37 * 5; spot++) /* c, a and b */
        ISO_EACH_POINT_FILL(fill)
    iso_add_at(l, 60, fill, ISO_CHECK_CASE_NO_BITS, spot, 4, 37, 5, 1, 1, 1, 1);
    for (size_t i = 0; i < ISO_STRIDES * ISO_STRIDES; i++) /* of a and c */
        iso_add(l, 6, ISO_CHECK_FILL_UNIFORM, flags_of(0), 1 + i % 13, 35, 9, i % 2,
                iso_stride_gap(i % ISO_STRIDES, 9), i % 4, iso_stride_gap(i / ISO_STRIDES, 35));
}

const struct iso_check_suite iso_kernel_suite_gemm_b16 = {.name = "gemm_b16",
                                                          .params = "m n k add agap bgap cgap",
                                                          .cases = b16_cases,
                                                          .setup = b16_setup,
                                                          .call = b16_call,
                                                          .reference = b16_reference,
                                                          .flops = b16_flops,
                                                          .bytes = b16_bytes,
                                                          .random = b16_random};
