/* SPDX-License-Identifier: MIT
 *
 * Suite of unary: activations, exp and erf. Short cases look at edges and alignment; sweeps walk
 * through all 2^32 bit patterns in steps (4099 in the full plan, 1 in the exhaustive one).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <isobit/ops.h>

#include "kernels.h"
#include "oracle_kernels.h"
#include <isobit/check.h>
#include "suites/suites.h"

/*
 * step 0: filled by `fill`, or with first = HARD by the points below; else x[i] has the bits
 * (first + i * step).
 */
enum { U_FUNCTION, U_N, U_INPLACE, U_FIRST, U_STEP };
enum { U_Y, U_X };

static const int functions[] = {ISO_UNARY_NONE,
#define ACTIVATION(NAME, ...) ISO_UNARY_##NAME,
#include "activations.def"
#undef ACTIVATION
                                ISO_UNARY_EXP, ISO_UNARY_ERF};

/* Where exhaustive runs found the largest errors of some function, in units of its bound. */
enum { HARD = 1 };
static const float hard_points[] = {
    0x1.18d9fcp-126f, 0x1.ff73f8p-127f, 0x1.a855aap-125f, 0x1.61fbfep-124f, /* erf */
    -0x1.7c16d4p+2f,  0x1.46a6bep+0f,   -0x1.643678p+6f,                    /* SiLU */
    0x1.366b66p+0f,   -0x1.036494p-8f,  -0x1.4150cp+3f,                     /* GELU with tanh */
    0x1.29602ap+0f,   -0x1.f6d87ap-1f,  -0x1.458decp+3f,                    /* GELU with erf */
    -0x1.4e7e16p-2f,  0x1.25871cp+0f,   -0x1.6p+2f,                         /* and its ranges */
    0x1.fda8fep-1f,   0x1.005158p+0f,   0x1.fffffep-1f,                     /* erf, tanh */
    -0x1.2p+5f,       0x1p+2f,          0x1.4p+3f,                          /* where they end */
    0x1.154248p+3f,   0x1.4cec68p+2f,   -0x1.aaf86cp+4f,                    /* tanh, exp */
    0x1.45c41ep+6f,   -0x1.45c51p+6f};

static void unary_cases(struct iso_check_cases *l) {
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        for (size_t f = 1; f < iso_count(functions); f++)
            iso_add(l, 1, ISO_CHECK_FILL_NORMAL, 0, (size_t)functions[f], 4096);
        return;
    }
    for (size_t f = 0; f < iso_count(functions); f++) {
        size_t function = (size_t)functions[f];
        const unsigned hashed = iso_act_hashed(function);
        for (size_t n = 0; n <= 130; n++)
            iso_add(l, 30, n % 2 ? ISO_CHECK_FILL_NORMAL : ISO_CHECK_FILL_UNIFORM,
                    ISO_CHECK_CASE_TRAPLESS | (n % 50 == 45 ? hashed : 0), function, n, n % 3 == 2,
                    0, 0);
        for (unsigned fill = 0; fill < ISO_CHECK_FILL_COUNT; fill++)
            iso_add(l, 1, fill, hashed, function, 177, 0, 0, 0);
        iso_add(l, 2, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_ALIGN, function, 39, 0, 0, 0);
        iso_add(l, 1, 0, 0, function, iso_count(hard_points), 0, HARD, 0);
        ISO_EACH_NEW_FILL(fill) {
            iso_add(l, 3, fill, 0, function, 177, 0, 0, 0);
            iso_add(l, 3, fill, 0, function, 64, 1, 0, 0);
        }
        for (size_t spot = 0; spot < 70; spot++) { /* NaN and infinities in each lane */
            ISO_EACH_POINT_FILL(fill)
            iso_add_at(l, 40, fill, 0, spot, function, 70, spot % 2, 0, 0);
        }
        /* the steps are odd, so all low bits occur */
        const size_t golden_step = 262147;
        iso_add(l, 1, 0, hashed | ISO_CHECK_CASE_ONCE, function, 16384, 0, 0, golden_step);
        if (l->plan == ISO_CHECK_PLAN_QUICK)
            continue;
        size_t step = l->plan == ISO_CHECK_PLAN_EXHAUSTIVE ? 1 : 4099;
        for (uint64_t first = 0; first < UINT64_C(1) << 32; first += (uint64_t)step << 16)
            iso_add(l, 1, 0, ISO_CHECK_CASE_ONCE, function, 1 << 16, 0, (size_t)first, step);
    }
    for (size_t f = 0; f < iso_count(functions); f++) /* dense where results go subnormal or Inf */
        for (size_t i = 0; i < 2 && l->plan != ISO_CHECK_PLAN_QUICK; i++)
            iso_add(l, 1, 0, ISO_CHECK_CASE_ONCE, (size_t)functions[f], 1 << 17, 0,
                    i ? 0xc2ce0000 - (1 << 17) : 0x42b00000, 4);
}

static void unary_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t n = c->p[U_N], step = c->p[U_STEP];
    float *x;
    if (c->p[U_INPLACE]) {
        x = iso_check_inout_f32(o, "y", 1, n, n, c->fill);
        iso_check_absent(o, "x");
    } else {
        iso_check_out(o, "y", 1, n, n);
        x = step ? iso_check_in(o, "x", sizeof *x, 1, n, n)
                 : iso_check_in_f32(o, "x", 1, n, n, c->fill);
    }
    if (!step && c->p[U_FIRST] == HARD)
        memcpy(x, hard_points, sizeof hard_points);
    for (size_t i = 0; i < n && step; i++) {
        uint32_t bits = (uint32_t)(c->p[U_FIRST] + i * step);
        if ((bits | 0x80400000) == ISO_CHECK_CANARY_BITS) /* the result could look like none */
            bits++;
        memcpy(&x[i], &bits, sizeof bits);
    }
}

static void unary_call(const void *table, const struct iso_check_case *c,
                       const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    t->unary(ISO_CHECK_AT(float, o, U_Y), ISO_CHECK_AT(const float, o, c->p[U_INPLACE] ? U_Y : U_X),
             c->p[U_N], (int)c->p[U_FUNCTION]);
}

static void unary_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    const float *x = o->v[c->p[U_INPLACE] ? U_Y : U_X].host;
    double *expect = iso_check_expect(o, U_Y), *bound = iso_check_bound(o, U_Y);
    int function = (int)c->p[U_FUNCTION];
    for (size_t i = 0; i < c->p[U_N]; i++) {
        expect[i] = iso_oracle_function((double)x[i], function);
        bound[i] = iso_oracle_function_bound((double)x[i], function);
    }
    if (function == ISOBIT_ACT_NONE) /* bits, the sign of zero included */
        memcpy(iso_check_exact(o, U_Y), x, c->p[U_N] * sizeof *x);
}

/* -0 comes from -Inf and -0 where the table of special values says so. */
static const char *unary_check(const struct iso_check_operands *o, const struct iso_check_case *c) {
    if (c->p[U_INPLACE])
        return NULL;
    const float *x = ISO_CHECK_AT(const float, o, U_X), *y = ISO_CHECK_AT(const float, o, U_Y);
    int f = (int)c->p[U_FUNCTION];
    bool odd = f == ISOBIT_ACT_SILU || f == ISOBIT_ACT_GELU_ERF || f == ISOBIT_ACT_GELU_TANH;
    for (size_t i = 0; i < c->p[U_N]; i++) {
        if (odd && isinf(x[i]) && x[i] < 0 && !(y[i] == 0 && signbit(y[i])))
            return "-Inf does not give -0";
        if ((odd || f == ISOBIT_ACT_TANH || f == ISO_UNARY_ERF) && x[i] == 0 && signbit(x[i]) &&
            !(y[i] == 0 && signbit(y[i])))
            return "-0 does not give -0";
    }
    return NULL;
}

static double unary_flops(const void *table, const struct iso_check_case *c) {
    (void)table;
    return (double)c->p[U_N]; /* elements */
}

static double unary_bytes(const struct iso_check_case *c) { return 8.0 * (double)c->p[U_N]; }

/* Most floats are so small or so large that a function does nothing with them: sweeps apart. */
static const char *unary_group(const struct iso_check_case *c) {
    bool sweep = c->p[U_STEP] != 0;
    switch (c->p[U_FUNCTION]) {
#define ACTIVATION(NAME, name, text, ...)                                                          \
    case ISO_UNARY_##NAME:                                                                         \
        return ISO_UNARY_##NAME == ISO_UNARY_RELU ? "exact" : sweep ? text : text "-near";
#include "activations.def"
#undef ACTIVATION
    case ISO_UNARY_EXP: return sweep ? "exp" : "exp-near";
    case ISO_UNARY_ERF: return sweep ? "erf" : "erf-near";
    default: return "exact";
    }
}

static void unary_random(struct iso_check_case *c, struct iso_check_random *r) {
    c->p[U_FUNCTION] = (size_t)functions[iso_check_random_below(r, iso_count(functions))];
    c->p[U_N] = iso_check_random_log(r, 3000);
    c->p[U_INPLACE] = iso_check_random_below(r, 2);
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
    if (iso_check_random_below(r, 2)) { /* a piece of a sweep */
        c->p[U_FIRST] = (size_t)(iso_check_random_next(r) >> 32);
        c->p[U_STEP] = 1 + iso_check_random_log(r, 1 << 20);
    } else if (c->fill == ISO_CHECK_FILL_UNIFORM || c->fill == ISO_CHECK_FILL_NORMAL) {
        c->flags = ISO_CHECK_CASE_TRAPLESS;
    }
}

const struct iso_check_suite iso_kernel_suite_unary = {.name = "unary",
                                                       .params = "function n inplace first step",
                                                       .cases = unary_cases,
                                                       .setup = unary_setup,
                                                       .call = unary_call,
                                                       .reference = unary_reference,
                                                       .check = unary_check,
                                                       .group = unary_group,
                                                       .flops = unary_flops,
                                                       .bytes = unary_bytes,
                                                       .random = unary_random};
