/* SPDX-License-Identifier: MIT
 *
 * The bits of each function of kernels/templates/math.h, over so many inputs that a coefficient
 * which is wrong in its last place shows: of the polynomials' leading ones that changes a result in
 * some 100,000. No oracle: eltwise.c and rows.c look at errors. Each plan has a hash of its own:
 *
 *   quick        2^16 inputs of each function: what emulators and sanitizers do in seconds
 *   full         2^22, as many of each sign, through all floats from 2^-27 to where the function
 *                stays what it is, in steps that are odd, so that all bits of the mantissa vary;
 *                2^18 through all 2^32 floats
 *   exhaustive   all 2^32; of exp in softmax and attention all that are below 0
 *
 * The suite `telling` has those few inputs that none of the others has, and that matter. The
 * activations are computed by gemm_epilogue and gate too, from the same lines: epilogue_acts and
 * gate_acts take these inputs and 2^18 (quick: 2^12) others there, with factors of 1.
 *
 * exp is hidden there, behind a sum and its inverse. The maximum of each row is 0, so x itself is
 * the argument. Where exp is small, the sum is a power of two and the result shows each bit of it.
 * In attention the queries and values are unit matrices: so the scores are the keys and the results
 * the weights.
 */
#include <string.h>

#include "kernels.h"
#include <isobit/check.h>
#include "suites/suites.h"

enum { F_UNARY, F_SOFTMAX, F_ATTENTION, F_LOG, F_EPILOGUE, F_GATE };

/* What is called, on how many inputs, of which the first has the bits `first`, the next one
 * first + step ...; step 0: `telling`. n: elements of a row of F_LOG. */
enum { P_KIND, P_CODE, P_COUNT, P_FIRST, P_STEP, P_N };
enum { Y, X, MAX, VALUES = MAX, FACTORS = MAX, QUERIES, SCRATCH };

#define SIGN UINT32_C(0x80000000)
enum {
    SMALL = 0x32000000,        /* 2^-27: below it each of the functions is constant or linear */
    ONE_CASE = 1 << 20,        /* inputs */
    ROW = 256,                 /* inputs of a row of softmax, beside its maximum */
    SIDE = 64,                 /* keys, queries and floats of a head, in attention */
    BLOCK = SIDE * SIDE - SIDE /* inputs of a block of keys: the first of them is 0 */
};

/* y = f(x), element by element; code is which. */
static bool is_function(size_t kind) {
    return kind == F_UNARY || kind == F_EPILOGUE || kind == F_GATE;
}

/* Where the functions end: the bits of the largest float that matters above and below 0. */
static void limits(uint32_t *above, uint32_t *below, size_t kind, size_t code) {
    *above = *below = 0x42d20000; /* 105: exp is 0 below it */
    if (kind == F_LOG)
        *below = 0x41900000; /* -18: 1 + exp(x) is 1 */
    else if (is_function(kind) && code == ISO_UNARY_EXP)
        *above = 0x42b20000; /* 89 */
    else if (is_function(kind) && code == ISO_UNARY_SILU)
        *above = 0x42800000; /* 64; below 0 as exp */
    else if (is_function(kind) && code == ISO_UNARY_GELU_ERF)
        *above = *below = 0x42100000; /* 36 */
    else if (is_function(kind) && code != ISO_UNARY_RELU)
        *above = *below = 0x41800000; /* 16 */
}

/* `count` inputs from `first` on, in cases of at most ONE_CASE. */
static void add_inputs(struct iso_check_cases *l, size_t kind, size_t code, uint64_t count,
                       uint32_t first, uint32_t step, size_t n) {
    for (uint64_t done = 0; done < count; done += ONE_CASE) {
        size_t here = count - done < ONE_CASE ? (size_t)(count - done) : ONE_CASE;
        iso_add(l, 1, 0, ISO_CHECK_CASE_GOLDEN | ISO_CHECK_CASE_ONCE, kind, code, here,
                (uint32_t)(first + done * step), step, n);
    }
}

/* `count` inputs from SMALL to `last`, of one sign. */
static void add_range(struct iso_check_cases *l, size_t kind, size_t code, uint32_t count,
                      uint32_t sign, uint32_t last, size_t n) {
    uint32_t step = ((last - SMALL) / count) | 1;
    add_inputs(l, kind, code, count, sign | SMALL, step, n);
}

/* Inputs that alone tell a function from one with a constant that is wrong in its last place, found
 * by comparing all 2^32 results (mutate/constants.py), or with an operation that is (flip.c). Their
 * absolute values: they are taken with both signs. */
static const uint32_t telling[] = {
    /* LOG2_E in exp and silu, in exp of x < 0 */
    0x3eb17219, 0x40a65af6, 0x4187db5a, 0x419e099d, 0x41db08d6, 0x41e09467, 0x4120cf65, 0x4136fda8,
    0x4187db5b, 0x419e099e,
    /* in GELU with tanh; a coefficient of erf above 1; the leading one of 2^x in GELU */
    0x40ac65e6, 0x40c1120b, 0x40ca28fe, 0x40e1f54c, 0x3f8006af, 0x3f80374f, 0x3f80b0cc, 0x3f80c090,
    0x3eb889ae, 0x3ebfe6d8, 0x3ec59c21, 0x3f719f9e,
    /* operations: of silu, of GELU with erf */
    0x42aa01e4, 0x42ab1d8a, 0x3d0f3df1, 0x3d379799, 0x3da6402e, 0x3eb14e5f, 0x3fe0f371, 0x3d7e4717,
    0x3d9432e1, 0x3ec2fc25, 0x3ef2b913, 0x3f4dc3d2, 0x3f5af6a8, 0x3f7dc949, 0x3fafbcf1, 0x3fdb76f4,
    0x400abb0a, 0x40220e2d, 0x3eaa6e82,
    /* of GELU with tanh, of tanh */
    0x3d18f64b, 0x3e2327a5, 0x3e2a6201, 0x3e60a44e, 0x3f82e41e, 0x3f869647, 0x3bd0e993, 0x3e3ad220,
    0x3ec4b7ad, 0x3ef0a0ec, 0x3f32c3c7, 0x3f801c43, 0x3f8f86e5, 0x3f9535c2, 0x3fd04262,
    /* of erf, of logsumexp */
    0x3f804895, 0x3f821938, 0x3df7a048, 0x3ee1f19d, 0x3ef4194c, 0x3f51d252, 0x3e14503e, 0x3eb17231,
    0x3e5e7ce0};

static void cases(struct iso_check_cases *l, size_t kind, size_t code) {
    static const size_t rows[] = {2, 3, 5, 9, 17, 33}; /* log of 1 .. 2, 2 .. 3, 4 .. 5 ... */
    const bool quick = l->plan == ISO_CHECK_PLAN_QUICK, both = kind == F_UNARY;
    uint32_t above, below;
    if (l->plan == ISO_CHECK_PLAN_BENCH)
        return;
    limits(&above, &below, kind, code);
    if (l->plan == ISO_CHECK_PLAN_EXHAUSTIVE) {
        if (kind != F_LOG)
            add_inputs(l, kind, code, both ? UINT64_C(1) << 32 : UINT64_C(0x7f800000),
                       both ? 0 : SIGN, 1, 0);
        return;
    }
    const uint32_t count = quick ? 1 << 16 : 1 << 22;
    for (size_t i = 0; i < iso_count(rows) && kind == F_LOG; i++)
        add_range(l, kind, code, i ? count >> 5 : count >> 2, SIGN, below, rows[i]);
    if (kind == F_LOG) {
        add_inputs(l, kind, code, iso_count(telling), SIGN, 0, rows[0]);
        return;
    }
    if (kind == F_SOFTMAX)
        add_inputs(l, kind, code, iso_count(telling), SIGN, 0, 0);
    if (both)
        add_range(l, kind, code, count / 2, 0, above, 0);
    add_range(l, kind, code, both ? count / 2 : count, SIGN, below, 0);
    if (!quick && both) /* through all floats */
        add_inputs(l, kind, code, 1 << 18, 0, (1 << 14) + 1, 0);
}

static void add_telling(struct iso_check_cases *l, size_t kind, int code) {
    for (size_t sign = 0; sign < 2; sign++)
        add_inputs(l, kind, (size_t)code, iso_count(telling), sign ? SIGN : 0, 0, 0);
}

static bool is_fixed(const struct iso_check_cases *l) {
    return l->plan == ISO_CHECK_PLAN_QUICK || l->plan == ISO_CHECK_PLAN_FULL;
}

static void telling_cases(struct iso_check_cases *l) {
    static const int codes[] = {ISO_UNARY_SILU, ISO_UNARY_GELU_ERF, ISO_UNARY_GELU_TANH,
                                ISO_UNARY_TANH, ISO_UNARY_EXP,      ISO_UNARY_ERF};
    for (size_t f = 0; f < iso_count(codes) && is_fixed(l); f++)
        add_telling(l, F_UNARY, codes[f]);
}

/* The activations in another kernel than unary; hashed, so later ones are not among them. */
static void acts_cases(struct iso_check_cases *l, size_t kind) {
    const uint32_t count = l->plan == ISO_CHECK_PLAN_QUICK ? 1 << 12 : 1 << 18;
    for (int act = ISO_UNARY_NONE; act <= ISO_UNARY_TANH && is_fixed(l); act++) {
        uint32_t above, below;
        limits(&above, &below, kind, (size_t)act);
        add_range(l, kind, (size_t)act, count / 2, 0, above, 0);
        add_range(l, kind, (size_t)act, count / 2, SIGN, below, 0);
        add_telling(l, kind, act);
    }
}
static void epilogue_cases(struct iso_check_cases *l) { acts_cases(l, F_EPILOGUE); }
static void gate_cases(struct iso_check_cases *l) { acts_cases(l, F_GATE); }

static uint32_t input(const struct iso_check_case *c, size_t i) {
    uint32_t bits = (uint32_t)c->p[P_FIRST] + (uint32_t)i * (uint32_t)c->p[P_STEP];
    if (i >= c->p[P_COUNT]) /* what is left of the last row */
        return 0;
    if (!c->p[P_STEP])
        return telling[i] | (uint32_t)c->p[P_FIRST];
    /* A result that looks like none (runner.h). */
    return (bits | 0x80400000) == ISO_CHECK_CANARY_BITS ? bits + 1 : bits;
}

static size_t key_at(size_t j, size_t e) {
    return j / ISO_PANEL * SIDE * ISO_PANEL + e * ISO_PANEL + j % ISO_PANEL;
}

/* Blocks of keys in panels; key 0 is 0, so that each query's largest score is. */
static void attention_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t blocks = (c->p[P_COUNT] + BLOCK - 1) / BLOCK;
    iso_check_out(o, "y", blocks * SIDE, SIDE, SIDE);
    uint32_t *keys = iso_check_in(o, "x", sizeof *keys, blocks, SIDE * SIDE, SIDE * SIDE);
    float *values = iso_check_in(o, "values", sizeof *values, SIDE, SIDE, SIDE);
    float *queries = iso_check_in(o, "queries", sizeof *queries, SIDE, SIDE, SIDE);
    iso_check_scratch(o, "scratch", ISO_ATTENTION_SCRATCH((size_t)SIDE, SIDE));
    for (size_t i = 0; i < SIDE * SIDE; i++)
        values[i] = queries[i] = i % (SIDE + 1) ? 0 : 1;
    for (size_t b = 0, i = 0; b < blocks; b++, keys += SIDE * SIDE)
        for (size_t j = 0; j < SIDE; j++)
            for (size_t e = 0; e < SIDE; e++)
                keys[key_at(j, e)] = j ? input(c, i++) : 0;
}

static void setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t kind = c->p[P_KIND], count = c->p[P_COUNT];
    if (kind == F_ATTENTION) {
        attention_setup(o, c);
        return;
    }
    const size_t n = kind == F_SOFTMAX ? ROW + 1 : kind == F_LOG ? c->p[P_N] : count;
    const size_t own = kind == F_SOFTMAX ? ROW : kind == F_LOG ? 1 : count; /* inputs of a row */
    const size_t rows = (count + own - 1) / own;
    iso_check_out(o, "y", rows, kind == F_LOG ? 1 : n, kind == F_LOG ? 1 : n);
    uint32_t *x = iso_check_in(o, "x", sizeof *x, rows, n, n);
    if (kind == F_LOG)
        iso_check_scratch(o, "max", rows);
    float *factors = kind == F_GATE ? iso_check_in(o, "factors", sizeof *factors, 1, n, n) : NULL;
    for (size_t j = 0; factors && j < n; j++)
        factors[j] = 1;
    for (size_t r = 0, i = 0; r < rows; r++, x += n) {
        for (size_t j = 0; j < n - own; j++)
            x[j] = 0;
        for (size_t j = n - own; j < n; j++)
            x[j] = input(c, i++);
    }
}

/* Each eighth block by few queries at a time: they go another way, with keys in the lanes. */
static void attention_call(const struct iso_kernels *t, const struct iso_check_operands *o) {
    struct iso_attention a = {.ldo = SIDE,
                              .ldq = SIDE,
                              .v = o->v[VALUES].at,
                              .ldv = SIDE,
                              .nk = SIDE,
                              .dh = SIDE,
                              .scale = 1,
                              .scratch = o->v[SCRATCH].at};
    for (size_t b = 0; b < o->v[X].rows; b++) {
        a.nq = b % 8 == 7 ? ISO_QUERIES_FEW / 2 : SIDE;
        a.key_panels = ISO_CHECK_AT(const float, o, X) + b * SIDE * SIDE;
        for (size_t q = 0; q < SIDE; q += a.nq) {
            a.o = ISO_CHECK_AT(float, o, Y) + (b * SIDE + q) * SIDE;
            a.q = ISO_CHECK_AT(const float, o, QUERIES) + q * SIDE;
            t->attention(&a);
        }
    }
}

static void call(const void *table, const struct iso_check_case *c,
                 const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    float *y = ISO_CHECK_AT(float, o, Y);
    const float *x = ISO_CHECK_AT(const float, o, X);
    const size_t rows = o->v[X].rows, n = o->v[X].cols;
    switch (c->p[P_KIND]) {
    case F_UNARY: t->unary(y, x, n, (int)c->p[P_CODE]); break;
    case F_SOFTMAX: t->softmax(y, n, x, n, rows, n, NULL, NULL, 0, 0); break;
    case F_ATTENTION: attention_call(t, o); break;
    case F_EPILOGUE:
        t->gemm_epilogue(y, n, x, n, 1, n,
                         &(struct iso_epilogue){.alpha = 1, .act = (int)c->p[P_CODE]});
        break;
    case F_GATE:
        t->gate(y, n, x, n, ISO_CHECK_AT(const float, o, FACTORS), n, 1, n, (int)c->p[P_CODE], 0);
        break;
    default: t->logsumexp(o->v[MAX].at, y, x, n, rows, n);
    }
}

static void reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    (void)o, (void)c;
}

#define SUITE(function, list)                                                                      \
    const struct iso_check_suite iso_kernel_suite_##function = {                                   \
        .name = #function,                                                                         \
        .params = "kind code count first step n",                                                  \
        .by_plan = true,                                                                           \
        .cases = list,                                                                             \
        .setup = setup,                                                                            \
        .call = call,                                                                              \
        .reference = reference};
#define FUNCTION(function, kind, code)                                                             \
    static void function##_cases(struct iso_check_cases *l) { cases(l, kind, code); }              \
    SUITE(function, function##_cases)
#define ACTIVATION(NAME, name, ...) FUNCTION(name, F_UNARY, ISO_UNARY_##NAME)
#include "activations.def"
#undef ACTIVATION
FUNCTION(exp, F_UNARY, ISO_UNARY_EXP)
FUNCTION(erf, F_UNARY, ISO_UNARY_ERF)
FUNCTION(softmax_exp, F_SOFTMAX, 0)
FUNCTION(attention_exp, F_ATTENTION, 0)
FUNCTION(logsumexp_log, F_LOG, 0)
SUITE(telling, telling_cases)
SUITE(epilogue_acts, epilogue_cases)
SUITE(gate_acts, gate_cases)
