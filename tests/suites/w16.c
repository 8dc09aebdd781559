/* SPDX-License-Identifier: MIT
 *
 * Suites of weights of 16 bits: gemm_w16, whose bits are those of a chain of fmaf over the widened
 * weights, and gemm_widen, whose results are exact.
 */
#include <math.h>

#include "kernels.h"
#include "oracle_kernels.h"
#include <isobit/check.h>
#include "suites/suites.h"

enum { WIDE = ISO_HALF_PANEL }; /* columns of a panel */

/* ------------------------------------------------------------------------- numbers of 16 bits */

/* By definition: sign, exponent and fraction. */
static float half_value(unsigned half, size_t type) {
    const int bits = type == ISO_W16_BF16 ? 7 : 10, ones = type == ISO_W16_BF16 ? 255 : 31;
    const int bias = ones / 2, exponent = (int)(half >> bits) & ones;
    const double fraction = (double)(half & ((1U << bits) - 1));
    double value = exponent == 0 ? ldexp(fraction, 1 - bias - bits)
                                 : ldexp(fraction + ldexp(1, bits), exponent - bias - bits);
    if (exponent == ones)
        value = fraction == 0 ? (double)INFINITY : (double)NAN;
    return (float)(half >> 15 ? -value : value);
}

/* All of them, once: inputs and references take many millions. */
float iso_half_value(unsigned half, size_t type) {
    static float values[2][1 << 16];
    static bool made[2];
    const int which = type == ISO_W16_BF16;
    if (!made[which]) {
        for (unsigned h = 0; h < 1 << 16; h++)
            values[which][h] = half_value(h, type);
        made[which] = true;
    }
    return values[which][half & 0xffff];
}

/* A number near the float; what is too large for F16 becomes its largest, so that plain inputs stay
 * finite. */
uint16_t iso_half_of(float x, size_t type) {
    const unsigned sign = signbit(x) ? 0x8000 : 0;
    if (isnan(x))
        return (uint16_t)(sign | (type == ISO_W16_BF16 ? 0x7fc1 : 0x7e01));
    if (isinf(x))
        return (uint16_t)(sign | (type == ISO_W16_BF16 ? 0x7f80 : 0x7c00));
    unsigned low = 0, high = type == ISO_W16_BF16 ? 0x7f7f : 0x7bff;
    while (low < high) { /* the largest that is not above it: they rise with their bits */
        const unsigned middle = (low + high + 1) / 2;
        if (iso_half_value(middle, type) <= fabsf(x))
            low = middle;
        else
            high = middle - 1;
    }
    return (uint16_t)(sign | low);
}

uint16_t iso_half_fill(struct iso_check_operands *o, unsigned fill, size_t type) {
    if (fill == ISO_CHECK_FILL_BITS)
        return (uint16_t)iso_check_random_next(&o->random);
    return iso_half_of(iso_check_fill_value(o, fill), type);
}

/* Column j of a step, as isobit/ops.h has it. */
size_t iso_half_place(size_t j, size_t type) {
    return type == ISO_W16_BF16 ? j % 16 * 2 + j / 16 : j;
}

void iso_half_panels(struct iso_check_operands *o, size_t n, size_t k, size_t ld, size_t type,
                     unsigned fill) {
    const size_t panels = (n + WIDE - 1) / WIDE;
    uint16_t *b = iso_check_in(o, "b", sizeof *b, panels, k * WIDE, ld);
    for (size_t panel = 0; panel < panels; panel++)
        for (size_t p = 0; p < k; p++)
            for (size_t j = 0; j < WIDE; j++)
                b[panel * ld + p * WIDE + iso_half_place(j, type)] =
                    panel * WIDE + j < n ? iso_half_fill(o, fill, type) : 0x3c00;
}

/* ----------------------------------------------------------------------------------- gemm_w16 */

enum { W_M, W_N, W_K, W_ADD, W_STEP, W_TYPE, W_AGAP, W_BGAP, W_CGAP };
enum { W_C, W_A, W_B };

static size_t panel_ld(const struct iso_check_case *c) { return c->p[W_K] * WIDE + c->p[W_BGAP]; }

static void w16_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t *p = c->p;
    if (p[W_ADD])
        iso_check_inout_f32(o, "c", p[W_M], p[W_N], p[W_N] + p[W_CGAP], c->fill);
    else
        iso_check_out(o, "c", p[W_M], p[W_N], p[W_N] + p[W_CGAP]);
    iso_check_in_f32(o, "a", p[W_M], p[W_K], p[W_K] + p[W_AGAP], c->fill);
    iso_half_panels(o, p[W_N], p[W_K], panel_ld(c), p[W_TYPE], c->fill);
}

static void w16_call(const void *table, const struct iso_check_case *c,
                     const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    const size_t *p = c->p, lda = p[W_K] + p[W_AGAP], ldc = p[W_N] + p[W_CGAP];
    const size_t step = p[W_STEP] < t->w16_mr ? p[W_STEP] : t->w16_mr;
    size_t i = 0;
    do {
        const size_t m = p[W_M] - i < step ? p[W_M] - i : step;
        t->gemm_w16(ISO_CHECK_AT(float, o, W_C) + i * ldc, ldc,
                    ISO_CHECK_AT(const float, o, W_A) + i * lda, lda,
                    ISO_CHECK_AT(const uint16_t, o, W_B), panel_ld(c), m, p[W_N], p[W_K],
                    (int)p[W_TYPE],
                    (p[W_ADD] ? ISO_DIRECT_ADD : 0) | (p[W_K] % 2 ? ISO_DIRECT_BEYOND_L2 : 0));
        i += m;
    } while (i < p[W_M]);
}

void iso_column_reference(struct iso_check_operands *o, const struct iso_check_case *c, unsigned at,
                          const float *a, size_t lda, const float *w, size_t m, size_t k, size_t j,
                          const float *old, size_t ldo, size_t n) {
    float *exact = iso_check_exact(o, at);
    const bool judge = !iso_check_fill_may_overflow(c->fill);
    double *expect = judge ? iso_check_expect(o, at) : NULL,
           *bound = judge ? iso_check_bound(o, at) : NULL;
    for (size_t i = 0; i < m; i++, a += lda) {
        const float before = old ? old[i * ldo] : 0, sum = iso_oracle_chain(0, a, 1, w, 1, k);
        const size_t e = i * n + j;
        double value, magnitude;
        exact[e] = old ? before + sum : sum;
        if (!judge)
            continue;
        iso_oracle_dot(&value, &magnitude, a, 1, w, 1, k);
        expect[e] = value + (double)before;
        bound[e] = iso_oracle_sum_bound(magnitude + fabs((double)before), (double)k + 1, (double)k);
        if (c->fill == ISO_CHECK_FILL_INTEGER)
            bound[e] = ORACLE_EQUAL;
    }
}

static void w16_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t *p = c->p, m = p[W_M], n = p[W_N], k = p[W_K];
    float *w = iso_check_operands_alloc(o, (k + 1) * sizeof *w);
    for (size_t j = 0; j < n; j++) {
        const uint16_t *b = ISO_CHECK_HOST(uint16_t, o, W_B) + j / WIDE * panel_ld(c) +
                            iso_half_place(j % WIDE, p[W_TYPE]);
        for (size_t step = 0; step < k; step++)
            w[step] = iso_half_value(b[step * WIDE], p[W_TYPE]);
        iso_column_reference(o, c, W_C, ISO_CHECK_HOST(float, o, W_A), k + p[W_AGAP], w, m, k, j,
                             p[W_ADD] ? ISO_CHECK_HOST(float, o, W_C) + j : NULL, n + p[W_CGAP], n);
    }
}

static double w16_flops(const void *table, const struct iso_check_case *c) {
    (void)table;
    return 2.0 * (double)c->p[W_M] * (double)c->p[W_N] * (double)c->p[W_K];
}

static double w16_bytes(const struct iso_check_case *c) {
    const double m = (double)c->p[W_M], n = (double)c->p[W_N], k = (double)c->p[W_K];
    return 4.0 * m * (n + k) + 2.0 * n * k;
}

static unsigned flags_of(unsigned fill) {
    return iso_check_fill_is_finite(fill) ? ISO_CHECK_CASE_TRAPLESS : 0;
}

static void w16_random(struct iso_check_case *c, struct iso_check_random *r) {
    size_t *p = c->p;
    p[W_M] = iso_check_random_log(r, 15);
    p[W_N] = iso_check_random_log(r, 300);
    p[W_K] = iso_check_random_log(r, ISO_K_BLOCK);
    while (p[W_M] * p[W_N] * p[W_K] > 1 << 17)
        p[iso_check_random_below(r, 2) ? W_N : W_K] /= 2;
    p[W_ADD] = iso_check_random_below(r, 2);
    p[W_STEP] = 1 + iso_check_random_below(r, 8);
    p[W_TYPE] = iso_check_random_below(r, 2);
    p[W_AGAP] = iso_check_random_gap(r);
    p[W_BGAP] = iso_check_random_gap(r);
    p[W_CGAP] = iso_check_random_gap(r);
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
    c->flags = flags_of(c->fill);
}

/* Every height, and every tail of n and of k. */
static void w16_cases(struct iso_check_cases *l) {
    static const size_t ns[] = {1,  3,  4,  7,  8,  9,  15, 16, 17,  23,  24,  31,  32,  33, 40,
                                47, 48, 49, 63, 64, 65, 95, 96, 100, 127, 128, 129, 160, 200};
    static const size_t ks[] = {17, 0, 1, 2, 3, 7, 16, 33, 65, 512};
    static const size_t gaps[] = {0, 1, 3, 13, 64};
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        for (size_t type = 0; type < 2; type++)
            iso_add(l, 1, 0, 0, 1, 512, 512, 0, 8, type, 0, 0, 0);
        return;
    }
    size_t t = 0;
    for (size_t k = 0; k < iso_count(ks); k++)
        for (size_t n = 0; n < iso_count(ns); n++)
            for (size_t m = 0; m <= 7; m++, t++) {
                const bool golden = (k == 0 && (m + n) % 2) || (m == 5 && n % 4 == 2);
                for (size_t type = 0; type < 2; type++)
                    iso_add(l, 25, t % 3 == 1 ? ISO_CHECK_FILL_INTEGER : ISO_CHECK_FILL_UNIFORM,
                            ISO_CHECK_CASE_TRAPLESS | (golden ? ISO_CHECK_CASE_GOLDEN : 0), m,
                            ns[n], ks[k], t % 2, 8, type, gaps[t / 2 % 5], gaps[t / 5 % 5],
                            gaps[t / 7 % 5]);
            }
    for (unsigned fill = 0; fill < ISO_CHECK_FILL_TOP_AT; fill++) /* kinds of numbers */
        for (size_t m = 1; m <= 6; m++)
            for (size_t type = 0; type < 2; type++)
                iso_add(l, 4, fill, flags_of(fill), m, 77, 33 + m, m % 2, 8, type, 1, 2, 3);
    for (size_t type = 0; type < 2; type++) {
        for (size_t m = 1; m <= 6; m++) { /* all alignments; results that are subnormal */
            iso_add(l, 3, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_ALIGN, m, 43, 9, m % 2, 8, type, 1,
                    1, 1);
            iso_add(l, 1, ISO_CHECK_FILL_SMALL, ISO_CHECK_CASE_TRAPLESS, m, 49, 33, m % 2, 8, type,
                    1, 3, 1);
        }
        for (size_t spot = 0; spot < 4 * 37 + 4 * 5 + 37 * 5; spot++) /* c, a and b */
            ISO_EACH_POINT_FILL(fill)
        iso_add_at(l, 60, fill, 0, spot, 4, 37, 5, 1, 8, type, 1, 1, 1);
        for (size_t i = 0; i < ISO_STRIDES * ISO_STRIDES; i++) /* of a and c */
            iso_add(l, 6, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, 1 + i % 6, 35, 9, i % 2,
                    8, type, iso_stride_gap(i % ISO_STRIDES, 9), i % 4,
                    iso_stride_gap(i / ISO_STRIDES, 35));
    }
}

const struct iso_check_suite iso_kernel_suite_gemm_w16 = {.name = "gemm_w16",
                                                          .params =
                                                              "m n k add step type agap bgap cgap",
                                                          .cases = w16_cases,
                                                          .setup = w16_setup,
                                                          .call = w16_call,
                                                          .reference = w16_reference,
                                                          .flops = w16_flops,
                                                          .bytes = w16_bytes,
                                                          .random = w16_random};

/* --------------------------------------------------------------------------------- gemm_widen */

/* all: 2^16 numbers in order, from `all` - 1 times k * 32 on; 0: those of the fill. */
enum { X_N, X_K, X_TYPE, X_BGAP, X_ALL };
enum { X_PANELS, X_B };

static size_t widen_ld(const struct iso_check_case *c) { return c->p[X_K] * WIDE + c->p[X_BGAP]; }

static void widen_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t *p = c->p, panel = p[X_K] * ISO_PANEL;
    iso_check_out(o, "panels", (p[X_N] + ISO_PANEL - 1) / ISO_PANEL, panel, panel);
    iso_half_panels(o, p[X_N], p[X_K], widen_ld(c), p[X_TYPE], c->fill);
    for (size_t i = 0; i < p[X_K] * WIDE && p[X_ALL]; i++)
        ISO_CHECK_HOST(uint16_t, o, X_B)[i] = (uint16_t)((p[X_ALL] - 1) * p[X_K] * WIDE + i);
}

static void widen_call(const void *table, const struct iso_check_case *c,
                       const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    t->gemm_widen(ISO_CHECK_AT(float, o, X_PANELS), ISO_CHECK_AT(const uint16_t, o, X_B),
                  widen_ld(c), c->p[X_N], c->p[X_K], (int)c->p[X_TYPE]);
}

static void widen_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t *p = c->p, panel = p[X_K] * ISO_PANEL;
    float *exact = iso_check_exact(o, X_PANELS);
    for (size_t j = 0; j < (p[X_N] + ISO_PANEL - 1) / ISO_PANEL * ISO_PANEL; j++)
        for (size_t step = 0; step < p[X_K]; step++)
            exact[j / ISO_PANEL * panel + step * ISO_PANEL + j % ISO_PANEL] = iso_half_value(
                ISO_CHECK_HOST(uint16_t, o, X_B)[j / WIDE * widen_ld(c) + step * WIDE +
                                                 iso_half_place(j % WIDE, p[X_TYPE])],
                p[X_TYPE]);
}

static double widen_bytes(const struct iso_check_case *c) {
    return 6.0 * (double)c->p[X_N] * (double)c->p[X_K];
}

static void widen_random(struct iso_check_case *c, struct iso_check_random *r) {
    size_t *p = c->p;
    p[X_N] = iso_check_random_log(r, 300), p[X_K] = iso_check_random_log(r, 200);
    p[X_TYPE] = iso_check_random_below(r, 2), p[X_BGAP] = iso_check_random_gap(r);
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
    c->flags = flags_of(c->fill);
}

static void widen_cases(struct iso_check_cases *l) {
    static const size_t ks[] = {0, 1, 2, 3, 17, 130};
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        for (size_t type = 0; type < 2; type++)
            iso_add(l, 1, 0, 0, 96, 512, type, 0, 0);
        return;
    }
    for (size_t type = 0; type < 2; type++) {
        for (size_t n = 0; n <= 100; n++)
            for (size_t k = 0; k < iso_count(ks); k++)
                iso_add(l, 9, ISO_CHECK_FILL_UNIFORM,
                        ISO_CHECK_CASE_TRAPLESS | (n % 9 == 5 ? ISO_CHECK_CASE_GOLDEN : 0), n,
                        ks[k], type, (n + k) % 3, 0);
        for (unsigned fill = 0; fill < ISO_CHECK_FILL_TOP_AT; fill++)
            iso_add(l, 1, fill, flags_of(fill), 50, 9, type, 1, 0);
        for (size_t part = 1; part <= 64; part++) /* every number that there is */
            iso_add(l, 1, 0, ISO_CHECK_CASE_ONCE, 32, 32, type, 0, part);
        iso_add(l, 1, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_ALIGN, 43, 5, type, 1, 0);
    }
}

const struct iso_check_suite iso_kernel_suite_gemm_widen = {.name = "gemm_widen",
                                                            .params = "n k type bgap all",
                                                            .cases = widen_cases,
                                                            .setup = widen_setup,
                                                            .call = widen_call,
                                                            .reference = widen_reference,
                                                            .bytes = widen_bytes,
                                                            .random = widen_random};
