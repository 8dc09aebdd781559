/* SPDX-License-Identifier: MIT
 *
 * Suites of the products that pack nothing: gemm_direct, with A row-major and B in panels or
 * row-major, gemm_linear, and gemm_strip_bt, with a strip of A and the rows of B along k; and of
 * gemm_packing, which packs as it goes. As for gemm_strip, the bits are predicted with fmaf.
 */
#include <math.h>

#include <isobit/ops.h>

#include "kernels.h"
#include "oracle_kernels.h"
#include <isobit/check.h>
#include "suites/suites.h"

/*
 * m rows, at most `step` at a time; `agap` lies between the rows of A (the columns of the strip),
 * `bgap` between those of B. layout, of gemm_direct only: 0 packed panels; 1 row-major; 2 panels
 * with gaps.
 */
enum { D_M, D_N, D_K, D_ADD, D_STEP, D_AGAP, D_LAYOUT, D_BGAP, D_CGAP };
enum { D_C, D_A, D_B };

struct direct {
    size_t m, n, k, ai, ap; /* A(i, p) at i*ai + p*ap */
    size_t bj, bs, bps;     /* B(p, j) at j/16*bps + j%16*bj + p*bs */
    size_t ldc, step;
    bool add;
};

static struct direct direct_of(const struct iso_check_case *c, bool transposed) {
    const size_t *p = c->p;
    struct direct d = {.m = p[D_M], .n = p[D_N], .k = p[D_K], .add = p[D_ADD] != 0};
    d.step = p[D_STEP], d.ldc = d.n + p[D_CGAP];
    if (transposed) {
        d.ai = 1, d.ap = d.m + p[D_AGAP];
        d.bj = d.k + p[D_BGAP], d.bs = 1, d.bps = ISO_PANEL * d.bj;
        return d;
    }
    d.ai = d.k + p[D_AGAP], d.ap = 1, d.bj = 1;
    switch (p[D_LAYOUT]) {
    case 0: d.bs = ISO_PANEL, d.bps = d.k * ISO_PANEL; break;
    case 1: d.bs = d.n + p[D_BGAP], d.bps = ISO_PANEL; break;
    default: d.bs = ISO_PANEL + 3, d.bps = d.k * d.bs + 5; break;
    }
    return d;
}

static size_t direct_b(const struct direct *d, size_t p, size_t j) {
    return j / ISO_PANEL * d->bps + j % ISO_PANEL * d->bj + p * d->bs;
}

static void sums_setup(struct iso_check_operands *o, const struct direct *d, unsigned fill) {
    if (d->add)
        iso_check_inout_f32(o, "c", d->m, d->n, d->ldc, fill);
    else
        iso_check_out(o, "c", d->m, d->n, d->ldc);
}

static void direct_setup(struct iso_check_operands *o, const struct iso_check_case *c,
                         bool transposed) {
    struct direct d = direct_of(c, transposed);
    sums_setup(o, &d, c->fill);
    if (transposed) {
        iso_check_in_f32(o, "a", d.k, d.m, d.ap, c->fill);
        iso_check_in_f32(o, "b", d.n, d.k, d.bj, c->fill);
        return;
    }
    iso_check_in_f32(o, "a", d.m, d.k, d.ai, c->fill);
    size_t extent = 0;
    for (size_t j = 0; j < d.n && d.k; j++) {
        size_t end = direct_b(&d, d.k - 1, j) + 1;
        extent = end > extent ? end : extent;
    }
    float *b = iso_check_in(o, "b", sizeof *b, 1, extent, extent);
    for (size_t p = 0; p < d.k; p++)
        for (size_t j = 0; j < d.n; j++)
            b[direct_b(&d, p, j)] = iso_check_fill_value(o, c->fill);
}

static void products_reference(struct iso_check_operands *o, const struct direct *of,
                               unsigned fill) {
    const struct direct d = *of;
    const float *a = ISO_CHECK_HOST(float, o, D_A), *b = ISO_CHECK_HOST(float, o, D_B);
    const float *c0 = ISO_CHECK_HOST(float, o, D_C);
    float *exact = iso_check_exact(o, D_C);
    /* where partial sums may overflow in f32 there is no simple truth, only the order */
    bool judge = !iso_check_fill_may_overflow(fill);
    double *expect = judge ? iso_check_expect(o, D_C) : NULL,
           *bound = judge ? iso_check_bound(o, D_C) : NULL;
    for (size_t i = 0; i < d.m; i++) {
        for (size_t j = 0; j < d.n; j++) {
            size_t e = i * d.n + j;
            const float *bj = b + direct_b(&d, 0, j), *ai = a + i * d.ai;
            float old = d.add ? c0[i * d.ldc + j] : 0;
            float sum = iso_oracle_chain(0, ai, d.ap, bj, d.bs, d.k);
            exact[e] = d.add ? old + sum : sum;
            if (!judge)
                continue;
            double value, magnitude;
            iso_oracle_dot(&value, &magnitude, ai, d.ap, bj, d.bs, d.k);
            expect[e] = value + (double)old;
            bound[e] =
                iso_oracle_sum_bound(magnitude + fabs((double)old), (double)d.k + 1, (double)d.k);
            if (fill == ISO_CHECK_FILL_INTEGER)
                bound[e] = ORACLE_EQUAL;
        }
    }
}

static void direct_reference(struct iso_check_operands *o, const struct iso_check_case *c,
                             bool transposed) {
    const struct direct d = direct_of(c, transposed);
    products_reference(o, &d, c->fill);
}

static double direct_flops(const void *table, const struct iso_check_case *c) {
    (void)table;
    return 2.0 * (double)c->p[D_M] * (double)c->p[D_N] * (double)c->p[D_K];
}

static double direct_bytes(const struct iso_check_case *c) {
    return 4.0 * ((double)c->p[D_M] * (double)c->p[D_N] +
                  (double)c->p[D_K] * (double)(c->p[D_M] + c->p[D_N]));
}

static void direct_random(struct iso_check_case *c, struct iso_check_random *r) {
    size_t *p = c->p;
    p[D_M] = iso_check_random_log(r, 29);
    p[D_N] = iso_check_random_log(r, 300);
    p[D_K] = iso_check_random_log(r, ISO_K_BLOCK);
    while (p[D_M] * p[D_N] * p[D_K] > 1 << 17)
        p[iso_check_random_below(r, 2) ? D_N : D_K] /= 2;
    p[D_ADD] = iso_check_random_below(r, 2);
    p[D_STEP] = iso_check_random_below(r, 2) ? 99 : 1 + iso_check_random_below(r, 14);
    p[D_AGAP] = iso_check_random_gap(r);
    p[D_LAYOUT] = iso_check_random_below(r, 3);
    p[D_BGAP] = iso_check_random_gap(r);
    p[D_CGAP] = iso_check_random_gap(r);
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
    c->flags = iso_check_fill_is_finite(c->fill) ? ISO_CHECK_CASE_TRAPLESS : 0;
}

/* Every height and every tail of n and of k; the layouts in turn. */
static void direct_cases(struct iso_check_cases *l) {
    static const size_t ns[] = {1,  2,  3,  4,  5,  7,  8,  9,  12,  15,  16,
                                17, 19, 23, 24, 31, 32, 33, 39, 40,  47,  48,
                                49, 63, 64, 65, 79, 80, 95, 97, 127, 129, 0};
    static const size_t ks[] = {17, 0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 31, 64, 67, 512};
    static const size_t gaps[] = {0, 1, 3, 13, 64};
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        iso_add(l, 1, 0, 0, 8, 512, 512, 0, 99, 0, 0, 0, 0);
        iso_add(l, 1, 0, 0, 8, 512, 512, 0, 99, 0, 1, 0, 0);
        return;
    }
    size_t t = 0;
    for (size_t k = 0; k < iso_count(ks); k++) {
        for (size_t n = 0; n < iso_count(ns); n++) {
            for (size_t m = 0; m <= 14; m++, t++) {
                bool golden = k == 0 || (m == 7 && n % 4 == 2);
                iso_add(l, 25, t % 3 == 1 ? ISO_CHECK_FILL_INTEGER : ISO_CHECK_FILL_UNIFORM,
                        ISO_CHECK_CASE_TRAPLESS | (golden ? ISO_CHECK_CASE_GOLDEN : 0), m, ns[n],
                        ks[k], t % 2, (t / 2) % 2 ? 99 : 1 + t % 6, gaps[(t / 2) % 5], (t / 3) % 3,
                        gaps[(t / 5) % 5], gaps[(t / 7) % 5]);
            }
        }
    }
    for (unsigned fill = 0; fill < ISO_CHECK_FILL_COUNT;
         fill++) { /* kinds of numbers, all layouts */
        for (size_t layout = 0; layout < 6; layout++) {
            unsigned flags = iso_check_fill_is_finite(fill) ? ISO_CHECK_CASE_TRAPLESS : 0;
            iso_add(l, 4, fill, flags, 9, 49, 33, layout / 3, 99, 1, layout % 3, 3, 1);
            iso_add(l, 4, fill, flags, 16, 37, 130, layout / 3, 99, 0, layout % 3, 0, 0);
        }
    }
    for (size_t layout = 0; layout < 3; layout++) { /* all alignments */
        iso_add(l, 3, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_ALIGN, 8, 35, 19, 0, 99, 1, layout, 1,
                1);
        iso_add(l, 3, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_ALIGN, 1, 35, 19, 1, 99, 1, layout, 1,
                1);
    }
    for (size_t n = 1; n <= 130; n++) {
        iso_add(l, 5, ISO_CHECK_FILL_UNIFORM, 0, 1, n, 67, n % 2, 1, 2, n % 3, 0, 0);
        iso_add(l, 5, ISO_CHECK_FILL_INTEGER, 0, 13, n, 21, n % 2, 99, 0, n % 3, 0, 0);
    }
    /* strides of a multiple of a page, or a prime number of floats */
    for (size_t layout = 0; layout < 2; layout++) {
        iso_add(l, 2, ISO_CHECK_FILL_UNIFORM, 0, 8, 35, 24, layout, 99, 1000, 1, 989, 989);
        iso_add(l, 2, ISO_CHECK_FILL_UNIFORM, 0, 8, 35, 24, layout, 99, 1013, 1, 1013, 1013);
    }
    ISO_EACH_NEW_FILL(fill) {
        for (size_t layout = 0; layout < 6; layout++)
            iso_add(l, 6, fill, iso_check_fill_is_finite(fill) ? ISO_CHECK_CASE_TRAPLESS : 0,
                    3 + layout, 37, 50, layout / 3, 99, 1, layout % 3, 1, 1);
    }
    for (size_t spot = 0; spot < 5 * 19 + 7 * 5 + 7 * 19; spot++) { /* c, a and b */
        ISO_EACH_POINT_FILL(fill)
        iso_add_at(l, 60, fill, 0, spot, 5, 19, 7, 1, 99, 1, spot % 3, 1, 1);
    }
    for (size_t i = 0; i < 4 * ISO_STRIDES; i++) { /* of a, b and c, mixed; for both kernels */
        size_t m = 2 + i % 7, n = 18 + i, x = i % 2 ? 9 : m, y = i % 2 ? 9 : n;
        iso_add(l, 6, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, m, n, 9, i % 2, 99,
                iso_stride_gap(i % ISO_STRIDES, x), 1, iso_stride_gap(i / 2 % ISO_STRIDES, y),
                iso_stride_gap(i / 3 % ISO_STRIDES, n));
    }
    for (size_t layout = 0; layout < 3; layout++) /* results that are subnormal */
        iso_add(l, 1, ISO_CHECK_FILL_SMALL, ISO_CHECK_CASE_TRAPLESS, 9, 49, 33, layout % 2, 99, 1,
                layout, 3, 1);
    static const size_t wide[] = {128, 137, 300, 513, 1100, 2100};
    for (size_t i = 0; i < iso_count(wide); i++) /* few rows along a wide B; sums that are added */
        for (size_t m = 1; m <= 5; m++)
            for (size_t add = 0; add < 2; add++, t++)
                iso_add(l, 6, t % 3 ? ISO_CHECK_FILL_UNIFORM : ISO_CHECK_FILL_INTEGER,
                        ISO_CHECK_CASE_TRAPLESS, m, wide[i], 9000 / wide[i] + 1 + t % 16, add, 99,
                        gaps[t % 5], 1, gaps[t / 2 % 5], gaps[t / 3 % 5]);
    for (size_t m = 6; m <= 17; m++) /* many rows of few columns; long rows are prefetched */
        for (size_t i = 0; i < 9; i++)
            iso_add(l, 9, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, m,
                    4 + i % 3 * 4 + i % 3 / 2 * 4, i / 3 * 64 + m % 5, i % 2, 99, gaps[i % 5],
                    i % 3, gaps[m % 5], gaps[i / 2]);
    /* Beyond L2, in panels; an odd k says that it comes from there. */
    for (size_t m = 3; m <= 8; m++)
        for (size_t k = 511; k <= 512; k++)
            iso_add(l, 9, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, m, 531, k, m / 2 % 2, 99,
                    1, 0, 1, 1);
    /* A transposed B in memory. */
    iso_add(l, 1, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, 3, 6300, 501, 0, 99, 0, 0, 1, 0);
    /* Its rows alias in L1: whole lines of them, and not, full tiles and more. */
    for (size_t m = 1; m <= 6; m++)
        for (size_t i = 0; i < 9; i++, t++)
            iso_add(l, 20, t % 3 ? ISO_CHECK_FILL_UNIFORM : ISO_CHECK_FILL_INTEGER,
                    ISO_CHECK_CASE_TRAPLESS, m, i % 3 * 15 + 17, i * 16 + (i == 8), m % 2, 99, 0, 1,
                    1024 * (1 + i % 2) - i * 16 - (i == 8), 1);
    iso_add(l, 20, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, 4, 3100, 32, 0, 99, 0, 1, 992,
            0);
}

/* -------------------------------------------------------------------------------- gemm_direct */

static void rows_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    direct_setup(o, c, false);
}

static void rows_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    direct_reference(o, c, false);
}

static void rows_call(const void *table, const struct iso_check_case *c,
                      const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    struct direct d = direct_of(c, false);
    const size_t most = d.n <= t->vector_floats ? t->direct_tall : t->direct_mr;
    size_t step = d.step < most ? d.step : most, i = 0;
    do {
        size_t m = d.m - i < step ? d.m - i : step;
        t->gemm_direct(ISO_CHECK_AT(float, o, D_C) + i * d.ldc, d.ldc,
                       ISO_CHECK_AT(const float, o, D_A) + i * d.ai, d.ai,
                       ISO_CHECK_AT(const float, o, D_B), d.bs, d.bps, m, d.n, d.k,
                       d.add | (d.k % 2 ? ISO_DIRECT_BEYOND_L2 : 0) |
                           (d.k % 3 ? ISO_DIRECT_NEXT : 0));
        i += m;
    } while (i < d.m);
}

const struct iso_check_suite iso_kernel_suite_gemm_direct = {
    .name = "gemm_direct",
    .params = "m n k add step agap layout bgap cgap",
    .cases = direct_cases,
    .setup = rows_setup,
    .call = rows_call,
    .reference = rows_reference,
    .flops = direct_flops,
    .bytes = direct_bytes,
    .random = direct_random};

/* -------------------------------------------------------------------------------- gemm_linear */

/* 24 * rows24 rows, a multiple of every set's, and 48 * n48 columns. call, by each 48 columns but
 * the second: 0 nothing; 1 a line; 2 a line for each step, or with `add` of each second panel. With
 * a bias in runs side by side. */
enum { L_ROWS24, L_N48, L_K, L_ADD, L_BIAS, L_RELU, L_AGAP, L_BGAP, L_CGAP, L_CALL };
enum { L_BIAS_AT = D_B + 1 };

static struct direct linear_of(const struct iso_check_case *c) {
    const size_t *p = c->p;
    struct direct d = {.m = 24 * p[L_ROWS24], .n = ISO_LINEAR_COLUMNS * p[L_N48], .k = p[L_K]};
    d.ai = d.k + p[L_AGAP], d.ap = 1;
    d.bs = ISO_PANEL, d.bps = d.k * ISO_PANEL + p[L_BGAP];
    d.ldc = d.n + p[L_CGAP], d.add = p[L_ADD] != 0;
    return d;
}

static void linear_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    struct direct d = linear_of(c);
    sums_setup(o, &d, c->fill);
    iso_check_in_f32(o, "a", d.m, d.k, d.ai, c->fill);
    iso_check_in_f32(o, "b", d.n / ISO_PANEL, d.k * ISO_PANEL, d.bps, c->fill);
    if (c->p[L_BIAS])
        iso_check_in_f32(o, "bias", 1, d.n, d.n, c->fill);
    else
        iso_check_absent(o, "bias");
}

static void linear_call(const void *table, const struct iso_check_case *c,
                        const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    struct direct d = linear_of(c);
    const float *b = ISO_CHECK_AT(const float, o, D_B);
    const size_t lines = c->p[L_CALL] == 2 ? d.k : 1;
    const float *call[10];
    for (size_t i = 0; i < c->p[L_N48]; i++)
        call[i] = i == 1 ? NULL : b + i * (ISO_LINEAR_COLUMNS / ISO_PANEL) * d.bps;
    for (size_t i = 0; i < d.m; i += t->direct_mr)
        t->gemm_linear(ISO_CHECK_AT(float, o, D_C) + i * d.ldc, d.ldc,
                       ISO_CHECK_AT(const float, o, D_A) + i * d.ai, d.ai, b, d.bps, d.n, d.k,
                       d.add, o->v[L_BIAS_AT].at, c->p[L_RELU] != 0, c->p[L_CALL] ? call : NULL,
                       lines * ISO_PANEL * sizeof *b, d.add && lines > 1 ? 2 * d.bps : 0,
                       c->p[L_BIAS] != 0);
}

static void linear_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    struct direct d = linear_of(c);
    const float *c0 = ISO_CHECK_HOST(float, o, D_C), *bias = ISO_CHECK_HOST(float, o, L_BIAS_AT);
    float *exact = iso_check_exact(o, D_C);
    bool judge = !iso_check_fill_may_overflow(c->fill);
    double *expect = judge ? iso_check_expect(o, D_C) : NULL,
           *bound = judge ? iso_check_bound(o, D_C) : NULL;
    for (size_t i = 0; i < d.m; i++) {
        for (size_t j = 0; j < d.n; j++) {
            const size_t e = i * d.n + j;
            const float *ai = ISO_CHECK_HOST(float, o, D_A) + i * d.ai;
            const float *bj = ISO_CHECK_HOST(float, o, D_B) + j / ISO_PANEL * d.bps + j % ISO_PANEL;
            const struct iso_oracle_epilogue as = {.alpha = 1,
                                                   .bias = c->p[L_BIAS] ? bias + j : NULL,
                                                   .act = c->p[L_RELU] ? ISOBIT_ACT_RELU
                                                                       : ISOBIT_ACT_NONE};
            const float old = d.add ? c0[i * d.ldc + j] : 0;
            const float sum = iso_oracle_chain(0, ai, 1, bj, d.bs, d.k);
            exact[e] = iso_oracle_epilogue_exact(d.add ? old + sum : sum, &as);
            if (!judge)
                continue;
            double value, magnitude;
            iso_oracle_dot(&value, &magnitude, ai, 1, bj, d.bs, d.k);
            const double near =
                iso_oracle_sum_bound(magnitude + fabs((double)old), (double)d.k + 1, (double)d.k);
            expect[e] = iso_oracle_epilogue(&bound[e], value + (double)old, near, &as);
        }
    }
}

static double linear_flops(const void *table, const struct iso_check_case *c) {
    (void)table;
    struct direct d = linear_of(c);
    return 2.0 * (double)d.m * (double)d.n * (double)d.k;
}

static double linear_bytes(const struct iso_check_case *c) {
    struct direct d = linear_of(c);
    return 4.0 * ((double)d.m * (double)d.n + (double)d.k * (double)(d.m + d.n));
}

static void linear_random(struct iso_check_case *c, struct iso_check_random *r) {
    size_t *p = c->p;
    p[L_ROWS24] = 1 + iso_check_random_below(r, 2), p[L_N48] = 1 + iso_check_random_below(r, 3);
    p[L_K] = 1 + iso_check_random_log(r, 40);
    p[L_ADD] = iso_check_random_below(r, 2);
    p[L_BIAS] = iso_check_random_below(r, 2), p[L_RELU] = iso_check_random_below(r, 2);
    p[L_AGAP] = iso_check_random_gap(r), p[L_BGAP] = iso_check_random_gap(r),
    p[L_CGAP] = iso_check_random_gap(r);
    p[L_CALL] = iso_check_random_below(r, 3);
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
    c->flags = iso_check_fill_is_finite(c->fill) ? ISO_CHECK_CASE_TRAPLESS : 0;
}

static void linear_cases(struct iso_check_cases *l) {
    static const size_t ks[] = {1, 2, 3, 5, 8, 15, 16, 17, 33, 64, 130, 512};
    static const size_t gaps[] = {0, 1, 3, 13, 64};
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        iso_add(l, 1, 0, 0, 1, 10, 512, 0, 0, 0, 0, 0, 0, 0);
        iso_add(l, 1, 0, 0, 1, 10, 512, 0, 1, 1, 0, 0, 0, 2);
        return;
    }
    for (size_t k = 0; k < iso_count(ks); k++)
        for (size_t i = 0; i < 24; i++) /* each combination of add, bias, ReLU and call */
            iso_add(l, 6, i % 5 == 4 ? ISO_CHECK_FILL_INTEGER : ISO_CHECK_FILL_UNIFORM,
                    ISO_CHECK_CASE_TRAPLESS | (k % 4 == 0 ? ISO_CHECK_CASE_GOLDEN : 0), 1 + k % 2,
                    ks[k] > 100 ? 1 : 1 + (i + k) % 3, ks[k], i % 2, i / 2 % 2, i / 4 % 2,
                    gaps[(i + k) % 5], gaps[(i / 2 + k) % 5], gaps[(i / 3 + k) % 5], i / 8);
    for (unsigned fill = 0; fill < ISO_CHECK_FILL_TOP_AT; fill++) /* kinds of numbers */
        for (size_t i = 0; i < 8; i++)
            iso_add(l, 4, fill, iso_check_fill_is_finite(fill) ? ISO_CHECK_CASE_TRAPLESS : 0, 1, 1,
                    9 + i, i % 2, i / 2 % 2, i / 4 % 2, 1, 0, 1, 2);
    for (size_t spot = 0; spot < 48 * 9; spot += 7) /* c, a, b and bias */
        ISO_EACH_POINT_FILL(fill)
    iso_add_at(l, 30, fill, 0, spot, 1, 1, 9, spot % 2, 1, spot / 2 % 2, 1, 1, 1, 0);
    for (size_t i = 0; i < 4; i++) /* all alignments */
        iso_add(l, 2, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_ALIGN, 1, 1, 5, i % 2, 1, i / 2, 1, 1,
                1, 0);
    for (size_t i = 0; i < ISO_STRIDES * ISO_STRIDES; i++) /* of a and c */
        iso_add(l, 6, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, 1, 1, 9, i % 2, 1,
                i % 3 == 1, iso_stride_gap(i % ISO_STRIDES, 9), i % 4,
                iso_stride_gap(i / ISO_STRIDES, ISO_LINEAR_COLUMNS), 1);
    for (size_t i = 0; i < 4; i++) /* results that are subnormal */
        iso_add(l, 1, ISO_CHECK_FILL_SMALL, ISO_CHECK_CASE_TRAPLESS, 1, 1, 33, i % 2, 1, i / 2, 1,
                3, 1, 1);
}

const struct iso_check_suite iso_kernel_suite_gemm_linear = {
    .name = "gemm_linear",
    .params = "rows24 n48 k add bias relu agap bgap cgap call",
    .cases = linear_cases,
    .setup = linear_setup,
    .call = linear_call,
    .reference = linear_reference,
    .flops = linear_flops,
    .bytes = linear_bytes,
    .random = linear_random};

/* ------------------------------------------------------------------------------- gemm_packing */

/* 24 * rows24 rows, of which each set's full strips pack B once more; 48 * n48 columns. */
enum { K_ROWS24, K_N48, K_K, K_ADD, K_AGAP, K_BGAP, K_CGAP };
enum { K_PANELS = D_B + 1 };

static struct direct packing_of(const struct iso_check_case *c) {
    const size_t *p = c->p;
    struct direct d = {.m = 24 * p[K_ROWS24], .n = ISO_LINEAR_COLUMNS * p[K_N48], .k = p[K_K]};
    d.ai = d.k + p[K_AGAP], d.ap = 1;
    d.bj = 1, d.bs = d.n + p[K_BGAP], d.bps = ISO_PANEL;
    d.ldc = d.n + p[K_CGAP], d.add = p[K_ADD] != 0;
    return d;
}

static void packing_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    struct direct d = packing_of(c);
    sums_setup(o, &d, c->fill);
    iso_check_in_f32(o, "a", d.m, d.k, d.ai, c->fill);
    iso_check_in_f32(o, "b", d.k, d.n, d.bs, c->fill);
    iso_check_out(o, "panels", d.n / ISO_PANEL, d.k * ISO_PANEL, d.k * ISO_PANEL);
}

static void packing_call(const void *table, const struct iso_check_case *c,
                         const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    struct direct d = packing_of(c);
    for (size_t i = 0; i < d.m; i += t->direct_mr)
        t->gemm_packing(ISO_CHECK_AT(float, o, D_C) + i * d.ldc, d.ldc,
                        ISO_CHECK_AT(const float, o, D_A) + i * d.ai, d.ai,
                        ISO_CHECK_AT(const float, o, D_B), d.bs, ISO_CHECK_AT(float, o, K_PANELS),
                        d.n, d.k, d.add | (d.k % 2 ? ISO_DIRECT_BEYOND_L2 : 0));
}

static void packing_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    const struct direct d = packing_of(c);
    float *panels = iso_check_exact(o, K_PANELS);
    products_reference(o, &d, c->fill);
    for (size_t j = 0; j < d.n; j++)
        for (size_t p = 0; p < d.k; p++)
            panels[(j / ISO_PANEL * d.k + p) * ISO_PANEL + j % ISO_PANEL] =
                ISO_CHECK_HOST(float, o, D_B)[p * d.bs + j];
}

static double packing_flops(const void *table, const struct iso_check_case *c) {
    (void)table;
    struct direct d = packing_of(c);
    return 2.0 * (double)d.m * (double)d.n * (double)d.k;
}

static double packing_bytes(const struct iso_check_case *c) {
    struct direct d = packing_of(c);
    return 4.0 * ((double)d.m * (double)d.n + (double)d.k * (double)(d.m + 2 * d.n));
}

static void packing_random(struct iso_check_case *c, struct iso_check_random *r) {
    size_t *p = c->p;
    p[K_ROWS24] = 1 + iso_check_random_below(r, 2), p[K_N48] = 1 + iso_check_random_below(r, 3);
    p[K_K] = 1 + iso_check_random_log(r, 40);
    p[K_ADD] = iso_check_random_below(r, 2);
    p[K_AGAP] = iso_check_random_gap(r), p[K_BGAP] = iso_check_random_gap(r),
    p[K_CGAP] = iso_check_random_gap(r);
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
    c->flags = iso_check_fill_is_finite(c->fill) ? ISO_CHECK_CASE_TRAPLESS : 0;
}

/* Rows of B are prefetched 48 ahead: k below, at and above that. */
static void packing_cases(struct iso_check_cases *l) {
    static const size_t ks[] = {1, 2, 3, 5, 8, 16, 17, 33, 47, 48, 49, 50, 64, 97, 130, 512};
    static const size_t gaps[] = {0, 1, 3, 13, 64};
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        iso_add(l, 1, 0, 0, 1, 10, 512, 0, 0, 0, 0);
        return;
    }
    for (size_t k = 0; k < iso_count(ks); k++)
        for (size_t i = 0; i < 10; i++)
            iso_add(l, 6, i % 5 == 4 ? ISO_CHECK_FILL_INTEGER : ISO_CHECK_FILL_UNIFORM,
                    ISO_CHECK_CASE_TRAPLESS | (k % 4 == 0 ? ISO_CHECK_CASE_GOLDEN : 0), 1 + k % 2,
                    ks[k] > 100 ? 1 : 1 + (i + k) % 3, ks[k], i % 2, gaps[(i + k) % 5],
                    gaps[(i / 2 + k) % 5], gaps[(i / 3 + k) % 5]);
    for (unsigned fill = 0; fill < ISO_CHECK_FILL_TOP_AT; fill++) /* kinds of numbers */
        for (size_t i = 0; i < 4; i++)
            iso_add(l, 4, fill, iso_check_fill_is_finite(fill) ? ISO_CHECK_CASE_TRAPLESS : 0, 1, 1,
                    9 + i, i % 2, 1, 0, 1);
    for (size_t spot = 0; spot < 48 * 9; spot += 7) /* c, a and b */
        ISO_EACH_POINT_FILL(fill)
    iso_add_at(l, 30, fill, 0, spot, 1, 1, 9, spot % 2, 1, 1, 1);
    for (size_t i = 0; i < 2; i++) /* all alignments */
        iso_add(l, 2, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_ALIGN, 1, 1, 5, i, 1, 1, 1);
    for (size_t i = 0; i < ISO_STRIDES * ISO_STRIDES; i++) /* of a, b and c */
        iso_add(l, 6, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, 1, 1, 9, i % 2,
                iso_stride_gap(i % ISO_STRIDES, 9),
                iso_stride_gap((i + i / ISO_STRIDES) % ISO_STRIDES, ISO_LINEAR_COLUMNS),
                iso_stride_gap(i / ISO_STRIDES, ISO_LINEAR_COLUMNS));
    for (size_t i = 0; i < 2; i++) /* results that are subnormal */
        iso_add(l, 1, ISO_CHECK_FILL_SMALL, ISO_CHECK_CASE_TRAPLESS, 1, 1, 33, i, 1, 3, 1);
}

const struct iso_check_suite iso_kernel_suite_gemm_packing = {.name = "gemm_packing",
                                                              .params =
                                                                  "rows24 n48 k add agap bgap cgap",
                                                              .cases = packing_cases,
                                                              .setup = packing_setup,
                                                              .call = packing_call,
                                                              .reference = packing_reference,
                                                              .flops = packing_flops,
                                                              .bytes = packing_bytes,
                                                              .random = packing_random};

/* ------------------------------------------------------------------------------ gemm_strip_bt */

static void strip_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    direct_setup(o, c, true);
}

static void strip_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    direct_reference(o, c, true);
}

static void strip_call(const void *table, const struct iso_check_case *c,
                       const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    struct direct d = direct_of(c, true);
    const size_t most = t->mr < t->rows_in_place_bt ? t->mr : t->rows_in_place_bt;
    size_t step = d.step < most ? d.step : most, i = 0;
    do {
        size_t m = d.m - i < step ? d.m - i : step;
        t->gemm_strip_bt(
            ISO_CHECK_AT(float, o, D_C) + i * d.ldc, d.ldc, ISO_CHECK_AT(const float, o, D_A) + i,
            d.ap, ISO_CHECK_AT(const float, o, D_B), d.bj, m, d.n, d.k,
            (d.add ? ISO_DIRECT_ADD : 0) | (d.k % 3 == 1 ? ISO_DIRECT_NEXT : 0) |
                (d.k % 3 == 2 ? ISO_DIRECT_AHEAD : 0) | (d.k / 3 % 2 ? ISO_DIRECT_WHOLE : 0));
        i += m;
    } while (i < d.m);
}

const struct iso_check_suite iso_kernel_suite_gemm_strip_bt = {
    .name = "gemm_strip_bt",
    .params = "m n k add step agap layout bgap cgap",
    .cases = direct_cases,
    .setup = strip_setup,
    .call = strip_call,
    .reference = strip_reference,
    .flops = direct_flops,
    .bytes = direct_bytes,
    .random = direct_random};
