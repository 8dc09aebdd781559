/* SPDX-License-Identifier: MIT
 *
 * Suites of layernorm and rmsnorm.
 */
#include <string.h>

#include <isobit/ops.h>

#include "kernels.h"
#include "oracle_kernels.h"
#include <isobit/check.h>
#include "suites/suites.h"

/*
 * y 0: of its own, 1: x, 2: residual. sum 0: NULL, 1: of its own, 2: x, 3: residual.
 * affine: bit 0 gamma, bit 1 beta. eps: index. gap: behind all rows, half of it behind those of
 * x; xgap, rgap and sgap: more behind those of x, residual and sum.
 */
enum { N_ROWS, N_N, N_AFFINE, N_RESIDUAL, N_Y, N_SUM, N_EPS, N_GAP, N_XGAP, N_RGAP, N_SGAP };
enum { N_Y_AT, N_X_AT, N_R_AT, N_SUM_AT, N_GAMMA, N_BETA };
static const float norm_eps[] = {1e-5f, 1e-6f, 1e-12f, 0};

static void norm_cases(struct iso_check_cases *l) {
    static const unsigned fills[] = {
        ISO_CHECK_FILL_UNIFORM, ISO_CHECK_FILL_NORMAL, ISO_CHECK_FILL_OFFSET, ISO_CHECK_FILL_EQUAL,
        ISO_CHECK_FILL_RISING,  ISO_CHECK_FILL_CANCEL, ISO_CHECK_FILL_WIDE,   ISO_CHECK_FILL_TINY};
    static const size_t large[] = {255, 256, 257, 511, 512, 513, 768, 1000, 1024, 1025, 2048};
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        iso_add(l, 1, ISO_CHECK_FILL_NORMAL, 0, 64, 512, 3, 0, 0, 0, 0, 0);
        iso_add(l, 1, ISO_CHECK_FILL_NORMAL, 0, 64, 512, 3, 1, 0, 1, 0, 0);
        iso_add(l, 1, ISO_CHECK_FILL_NORMAL, 0, 1, 512, 3, 0, 0, 0, 0, 0);
        iso_add(l, 1, ISO_CHECK_FILL_NORMAL, 0, 16, 4096, 3, 0, 0, 0, 0, 0);
        return;
    }
    size_t t = 0; /* n is at least 1: dispatch never asks for an empty mean */
    for (size_t n = 1; n <= 130; n++) {
        for (size_t variant = 0; variant < 12; variant++, t++) {
            size_t residual = variant % 2, y = variant % 3, sum = t / 3 % 4;
            if (!residual && y == 2)
                y = 0;
            if ((sum == 2 && y == 1) || (sum == 3 && (y == 2 || !residual)))
                sum = 1;
            iso_add(l, 30, fills[t % 8],
                    ISO_CHECK_CASE_TRAPLESS | (t % 31 ? 0 : ISO_CHECK_CASE_GOLDEN), 1 + t % 3, n,
                    t % 4, residual, y, sum, t % 3, t % 5);
        }
    }
    for (size_t n = 0; n < iso_count(large); n++) {
        for (size_t f = 0; f < 8; f++, t++)
            iso_add(l, 10, fills[f], ISO_CHECK_CASE_TRAPLESS | (n == 7 ? ISO_CHECK_CASE_GOLDEN : 0),
                    2, large[n], 3, f % 2, 0, f % 2, t % 3, 1);
    }
    for (size_t n = 1; n < 80; n += 13) {
        iso_add(l, 1, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, 2, n + 1, 3, 0, 0, 0, 3,
                0); /* eps 0 */
        iso_add(l, 1, ISO_CHECK_FILL_ZERO, ISO_CHECK_CASE_TRAPLESS, 2, n, 3, 0, 0, 0, 0, 0);
    }
    iso_add(l, 1, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_ALIGN, 2, 53, 3, 1, 0, 1, 0, 1);
    iso_add(l, 1, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_TRAPLESS, 0, 5, 3, 1, 0, 1, 0, 1);
    for (size_t n = 1; n < 300; n += 19) /* NaN and infinities: classes only */
        iso_add(l, 2, ISO_CHECK_FILL_SPECIAL, ISO_CHECK_CASE_GOLDEN, 6, n, 3, 0, 0, 0, 0, 1);
    ISO_EACH_NEW_FILL(fill) {
        for (size_t n = 1; n <= 513; n = 2 * n + 21 - n % 2)
            iso_add(l, 6, fill, 0, 2, n, n % 4, n / 2 % 2, n % 2, n % 3 == 1, 0, n % 2);
    }
    for (unsigned fill = 0; fill < ISO_CHECK_FILL_COUNT; fill++)
        iso_add(l, 4, fill, 0, 2, 75, 3, 0, 0, 0, 0, 1);
    for (size_t n = 1; n <= 67; n += 66) { /* one alone is its own mean; then each lane */
        for (size_t spot = 0; spot < 4 * n; spot++) {
            iso_add_at(l, 30, ISO_CHECK_FILL_TOP_AT, 0, spot, 1, n, 3, spot % 2, 0, 0, 0, 0);
            ISO_EACH_POINT_FILL(fill)
            iso_add_at(l, 60, fill, 0, spot, 2, n, 3, 1, spot % 3, spot % 2, 0, 1);
        }
    }
    for (size_t i = 0; i < 4 * ISO_STRIDES; i++) { /* of y, x, residual and sum, mixed */
        size_t a = i % ISO_STRIDES, b = i / 2 % ISO_STRIDES, d = i / 3 % ISO_STRIDES, n = 49 + i;
        iso_add(l, 4, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_TRAPLESS, 4, n, 3, 1, i % 3, 1, 0,
                iso_stride_gap(i * 7 / 2 % ISO_STRIDES, n), iso_stride_gap(a, n),
                iso_stride_gap(b, n), iso_stride_gap(d, n));
    }
    static const size_t widths[] = {64, 384, 512, 768, 1024, 2048, 4096};
    for (size_t i = 0; i < iso_count(widths); i++) {
        for (size_t f = 0; f < 8; f++)
            iso_add(l, 20, fills[f], ISO_CHECK_CASE_TRAPLESS, 1 + f % 2, widths[i], 3, f / 2 % 2, 0,
                    f / 4, 0, 0);
    }
    /* rows go in pairs: an odd one at the end, and rows too long for that */
    for (size_t n = 2047; n <= 2049; n++)
        iso_add(l, 3, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_TRAPLESS, 3, n, 3, n % 2, 0, n % 2, 0,
                3);
    for (size_t rows = 4; rows <= 9; rows++)
        for (size_t f = 0; f < 8; f++)
            iso_add(l, 5, fills[f], ISO_CHECK_CASE_TRAPLESS, rows, 20 * f + rows, f % 4, f / 2 % 2,
                    f / 4, f % 2, 0, f % 3);
}

/* Rows of whole lines, for non-temporal stores; the last ones are longer than the scratch. */
static void stream_cases(struct iso_check_cases *l) {
    static const size_t widths[] = {96, 512, 992, 1984, 2000};
    for (size_t i = 0; i < iso_count(widths) && l->plan != ISO_CHECK_PLAN_BENCH; i++)
        for (size_t rows = 2; rows <= 7; rows += rows == 3 ? 3 : 1)
            for (size_t kind = 0; kind < 3; kind++)
                iso_add(l, 20, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_TRAPLESS, rows, widths[i],
                        rows % 4, kind > 0, 0, kind == 2, 0, widths[i] % 64);
}

static void layernorm_cases(struct iso_check_cases *l) {
    norm_cases(l);
    stream_cases(l);
}

static void rms_cases(struct iso_check_cases *l) {
    norm_cases(l);
    if (l->plan != ISO_CHECK_PLAN_BENCH) { /* the sum of squares overflows: documented to give 0 */
        iso_add(l, 1, ISO_CHECK_FILL_HUGE, ISO_CHECK_CASE_GOLDEN, 2, 70, 3, 0, 0, 0, 0, 1);
        iso_add(l, 1, ISO_CHECK_FILL_HUGE, 0, 2, 513, 1, 0, 1, 0, 0, 1);
    }
    stream_cases(l);
}

static void norm_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t rows = c->p[N_ROWS], n = c->p[N_N], gap = c->p[N_GAP];
    if (c->p[N_Y])
        iso_check_absent(o, "y");
    else
        iso_check_out(o, "y", rows, n, n + gap);
    bool x_out = c->p[N_Y] == 1 || c->p[N_SUM] == 2, r_out = c->p[N_Y] == 2 || c->p[N_SUM] == 3;
    if (x_out)
        iso_check_inout_f32(o, "x", rows, n, n + gap / 2 + c->p[N_XGAP], c->fill);
    else
        iso_check_in_f32(o, "x", rows, n, n + gap / 2 + c->p[N_XGAP], c->fill);
    if (!c->p[N_RESIDUAL])
        iso_check_absent(o, "residual");
    else if (r_out)
        iso_check_inout_f32(o, "residual", rows, n, n + gap + c->p[N_RGAP], c->fill);
    else
        iso_check_in_f32(o, "residual", rows, n, n + gap + c->p[N_RGAP], c->fill);
    if (c->p[N_SUM] == 1)
        iso_check_out(o, "sum", rows, n, n + gap + c->p[N_SGAP]);
    else
        iso_check_absent(o, "sum");
    if (c->p[N_AFFINE] & 1)
        iso_check_in_f32(o, "gamma", 1, n, n, ISO_CHECK_FILL_UNIFORM);
    else
        iso_check_absent(o, "gamma");
    if (c->p[N_AFFINE] & 2)
        iso_check_in_f32(o, "beta", 1, n, n, ISO_CHECK_FILL_UNIFORM);
    else
        iso_check_absent(o, "beta");
}

static unsigned norm_y(const struct iso_check_case *c) {
    return c->p[N_Y] == 0 ? N_Y_AT : c->p[N_Y] == 1 ? N_X_AT : N_R_AT;
}

static unsigned norm_sum(const struct iso_check_case *c) {
    return c->p[N_SUM] == 1 ? N_SUM_AT : c->p[N_SUM] == 2 ? N_X_AT : N_R_AT;
}

/* scratch: ISO_STREAM_FLOATS floats. */
static struct iso_norm norm_of(const struct iso_check_case *c, const struct iso_check_operands *o,
                               float *scratch) {
    struct iso_norm v = {.gamma = o->v[N_GAMMA].at,
                         .beta = o->v[N_BETA].at,
                         .eps = norm_eps[c->p[N_EPS]],
                         .residual = o->v[N_R_AT].at,
                         .ldr = o->v[N_R_AT].ld,
                         .beyond_l2 = c->p[N_ROWS] % 2,
                         .stream = c->p[N_Y] == 0 && c->p[N_ROWS] / 2 % 2 ? scratch : NULL};
    if (c->p[N_SUM]) {
        v.sum = o->v[norm_sum(c)].at;
        v.lds = o->v[norm_sum(c)].ld;
    }
    return v;
}

static void layernorm_call(const void *table, const struct iso_check_case *c,
                           const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    float scratch[ISO_STREAM_FLOATS];
    struct iso_norm v = norm_of(c, o, scratch);
    t->layernorm(o->v[norm_y(c)].at, o->v[norm_y(c)].ld, o->v[N_X_AT].at, o->v[N_X_AT].ld,
                 c->p[N_ROWS], c->p[N_N], &v);
}

static void rmsnorm_call(const void *table, const struct iso_check_case *c,
                         const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    float scratch[ISO_STREAM_FLOATS];
    struct iso_norm v = norm_of(c, o, scratch);
    t->rmsnorm(o->v[norm_y(c)].at, o->v[norm_y(c)].ld, o->v[N_X_AT].at, o->v[N_X_AT].ld,
               c->p[N_ROWS], c->p[N_N], &v);
}

static void norm_reference(struct iso_check_operands *o, const struct iso_check_case *c, bool rms) {
    size_t rows = c->p[N_ROWS], n = c->p[N_N];
    const struct iso_check_operand *x = &o->v[N_X_AT], *r = &o->v[N_R_AT];
    float *t = iso_check_operands_alloc(o, rows * n * sizeof *t);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < n; j++) {
            t[i * n + j] = ((const float *)x->host)[i * x->ld + j];
            if (c->p[N_RESIDUAL])
                t[i * n + j] += ((const float *)r->host)[i * r->ld + j];
        }
    }
    const float *gamma = c->p[N_AFFINE] & 1 ? ISO_CHECK_HOST(float, o, N_GAMMA) : NULL;
    const float *beta = c->p[N_AFFINE] & 2 ? ISO_CHECK_HOST(float, o, N_BETA) : NULL;
    float eps = norm_eps[c->p[N_EPS]];
    unsigned y = norm_y(c);
    if (c->p[N_SUM])
        memcpy(iso_check_exact(o, norm_sum(c)), t, rows * n * sizeof *t);
    /* sums that overflow: RMS says what then, layer norm only that all sets agree */
    if (iso_check_fill_may_overflow(c->fill) && (!rms || c->fill != ISO_CHECK_FILL_HUGE))
        return;
    double *expect = iso_check_expect(o, y), *bound = iso_check_bound(o, y);
    for (size_t i = 0; i < rows; i++) {
        if (rms)
            iso_oracle_rmsnorm(expect + i * n, bound + i * n, t + i * n, n, gamma, eps, ISO_LANES);
        else
            iso_oracle_layernorm(expect + i * n, bound + i * n, t + i * n, n, gamma, beta, eps,
                                 ISO_LANES);
    }
}

static void layernorm_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    norm_reference(o, c, false);
}

static void rmsnorm_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    norm_reference(o, c, true);
}

static double norm_bytes(const struct iso_check_case *c) {
    return 4.0 * (double)c->p[N_ROWS] * (double)c->p[N_N] *
           (double)(2 + (c->p[N_RESIDUAL] != 0) + (c->p[N_SUM] != 0));
}

#define NORM_PARAMS "rows n affine residual y sum eps# gap xgap rgap sgap"

static void norm_random(struct iso_check_case *c, struct iso_check_random *r) {
    static const unsigned fills[] = {
        ISO_CHECK_FILL_UNIFORM,  ISO_CHECK_FILL_NORMAL,     ISO_CHECK_FILL_OFFSET,
        ISO_CHECK_FILL_EQUAL,    ISO_CHECK_FILL_RISING,     ISO_CHECK_FILL_CANCEL,
        ISO_CHECK_FILL_WIDE,     ISO_CHECK_FILL_TINY,       ISO_CHECK_FILL_PLATEAU,
        ISO_CHECK_FILL_OPPOSITE, ISO_CHECK_FILL_SPIKE_LAST, ISO_CHECK_FILL_POWERS};
    c->p[N_ROWS] = iso_check_random_log(r, 9);
    c->p[N_N] = 1 + iso_check_random_log(r, 2200);
    c->p[N_AFFINE] = iso_check_random_below(r, 4);
    c->p[N_RESIDUAL] = iso_check_random_below(r, 2);
    c->p[N_Y] = iso_check_random_below(r, c->p[N_RESIDUAL] ? 3 : 2);
    size_t sum = iso_check_random_below(r, c->p[N_RESIDUAL] ? 4 : 3);
    c->p[N_SUM] = sum == c->p[N_Y] + 1 && sum > 1 ? 1 : sum; /* not the same place twice */
    c->p[N_EPS] = iso_check_random_below(r, 3);
    c->p[N_GAP] = iso_check_random_gap(r);
    c->p[N_XGAP] = iso_check_random_gap(r);
    c->p[N_RGAP] = iso_check_random_gap(r);
    c->p[N_SGAP] = iso_check_random_gap(r);
    c->fill = fills[iso_check_random_below(r, iso_count(fills))];
    c->flags = ISO_CHECK_CASE_TRAPLESS;
}

const struct iso_check_suite iso_kernel_suite_layernorm = {.name = "layernorm",
                                                           .params = NORM_PARAMS,
                                                           .cases = layernorm_cases,
                                                           .setup = norm_setup,
                                                           .call = layernorm_call,
                                                           .reference = layernorm_reference,
                                                           .bytes = norm_bytes,
                                                           .random = norm_random};

const struct iso_check_suite iso_kernel_suite_rmsnorm = {.name = "rmsnorm",
                                                         .params = NORM_PARAMS,
                                                         .cases = rms_cases,
                                                         .setup = norm_setup,
                                                         .call = rmsnorm_call,
                                                         .reference = rmsnorm_reference,
                                                         .bytes = norm_bytes,
                                                         .random = norm_random};
