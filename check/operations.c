/* SPDX-License-Identifier: MIT
 *
 * Suites of usual operations: products, functions of one number, rows of a table; and the list of
 * them all. Their bounds are those of any order of sums (isobit/check.h).
 */
#include "operations.h"

#include <math.h>
#include <string.h>

#include <isobit/ops.h>

#include "oracle.h"

/* ---------------------------------------------------------------------------------------- gemm */

enum { G_M, G_N, G_K, G_CGAP, G_AGAP, G_BGAP };

static void gemm_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t m = c->p[G_M], n = c->p[G_N], k = c->p[G_K];
    iso_check_out(o, "c", m, n, n + c->p[G_CGAP]);
    iso_check_in_f32(o, "a", m, k, k + c->p[G_AGAP], c->fill);
    iso_check_in_f32(o, "b", k, n, n + c->p[G_BGAP], c->fill);
}

static void gemm_call(const void *table, const struct iso_check_case *c,
                      const struct iso_check_operands *o) {
    const struct iso_check_operations *t = table;
    t->gemm(o->v[0].at, o->v[0].ld, o->v[1].at, o->v[1].ld, o->v[2].at, o->v[2].ld, c->p[G_M],
            c->p[G_N], c->p[G_K]);
}

/* Element e of output 0: a row of a times a column of b. */
static void product(struct iso_check_operands *o, size_t e, const float *a, const float *b,
                    size_t sb, size_t k) {
    double magnitude;
    iso_oracle_dot(&iso_check_expect(o, 0)[e], &magnitude, a, 1, b, sb, k);
    iso_check_bound(o, 0)[e] = iso_oracle_sum_bound(magnitude, (double)k, (double)k);
}

static void gemm_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    const float *a = ISO_CHECK_HOST(float, o, 1), *b = ISO_CHECK_HOST(float, o, 2);
    for (size_t i = 0; i < c->p[G_M]; i++) {
        for (size_t j = 0; j < c->p[G_N]; j++)
            product(o, i * c->p[G_N] + j, a + i * o->v[1].ld, b + j, o->v[2].ld, c->p[G_K]);
    }
}

static double gemm_flops(const void *table, const struct iso_check_case *c) {
    (void)table;
    return 2.0 * (double)c->p[G_M] * (double)c->p[G_N] * (double)c->p[G_K];
}

static const struct iso_check_suite gemm = {.name = "gemm",
                                            .params = "m n k cgap agap bgap",
                                            .setup = gemm_setup,
                                            .call = gemm_call,
                                            .reference = gemm_reference,
                                            .flops = gemm_flops,
                                            .most = {200, 300, 700},
                                            .without = ISO_CHECK_OVERFLOWING};

/* ---------------------------------------------------------------------------------------- gemv */

enum { V_N, V_K, V_WGAP };

static void gemv_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    iso_check_out(o, "y", 1, c->p[V_N], c->p[V_N]);
    iso_check_in_f32(o, "w", c->p[V_N], c->p[V_K], c->p[V_K] + c->p[V_WGAP], c->fill);
    iso_check_in_f32(o, "x", 1, c->p[V_K], c->p[V_K], c->fill);
}

static void gemv_call(const void *table, const struct iso_check_case *c,
                      const struct iso_check_operands *o) {
    const struct iso_check_operations *t = table;
    t->gemv(o->v[0].at, o->v[1].at, o->v[1].ld, o->v[2].at, c->p[V_N], c->p[V_K]);
}

static void gemv_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    for (size_t j = 0; j < c->p[V_N]; j++)
        product(o, j, ISO_CHECK_HOST(float, o, 1) + j * o->v[1].ld, ISO_CHECK_HOST(float, o, 2), 1,
                c->p[V_K]);
}

static double gemv_flops(const void *table, const struct iso_check_case *c) {
    (void)table;
    return 2.0 * (double)c->p[V_N] * (double)c->p[V_K];
}

static const struct iso_check_suite gemv = {.name = "gemv",
                                            .params = "n k wgap",
                                            .setup = gemv_setup,
                                            .call = gemv_call,
                                            .reference = gemv_reference,
                                            .flops = gemv_flops,
                                            .most = {600, 2100},
                                            .without = ISO_CHECK_OVERFLOWING};

/* ---------------------------------------------------------------------- functions of one number */

static void unary_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    iso_check_out(o, "y", 1, c->p[0], c->p[0]);
    iso_check_in_f32(o, "x", 1, c->p[0], c->p[0], c->fill);
}

/*
 * GELU as 0.5 x (1 + erf(.)), the sum off by a unit in the last place of 1 and a rounding, and so
 * with tanh. SiLU: two units for exp, and one each for the sum, the quotient and a product; where
 * exp(-x) overflows the result is 0.
 */
static double unary_bound(double x, double y, int function) {
    if (function == ISOBIT_ACT_RELU)
        return ORACLE_EQUAL;
    if (function == ISOBIT_ACT_SILU)
        return 6 * ORACLE_U * fabs(y) + 0x1p-120;
    return 4 * ORACLE_U * fabs(x) + 0x1p-126;
}

static void unary_reference(struct iso_check_operands *o, const struct iso_check_case *c,
                            int function) {
    const float *x = ISO_CHECK_HOST(float, o, 1);
    double *expect = iso_check_expect(o, 0), *bound = iso_check_bound(o, 0);
    for (size_t i = 0; i < c->p[0]; i++) {
        expect[i] = iso_oracle_function((double)x[i], function);
        bound[i] = unary_bound((double)x[i], expect[i], function);
    }
}

#define UNARY(function, number)                                                                    \
    static void function##_call(const void *table, const struct iso_check_case *c,                 \
                                const struct iso_check_operands *o) {                              \
        const struct iso_check_operations *t = table;                                              \
        t->function(o->v[0].at, o->v[1].at, c->p[0]);                                              \
    }                                                                                              \
    static void function##_reference(struct iso_check_operands *o,                                 \
                                     const struct iso_check_case *c) {                             \
        unary_reference(o, c, number);                                                             \
    }                                                                                              \
    static const struct iso_check_suite function = {.name = #function,                             \
                                                    .params = "n",                                 \
                                                    .setup = unary_setup,                          \
                                                    .call = function##_call,                       \
                                                    .reference = function##_reference,             \
                                                    .most = {5000}};
UNARY(gelu, ISOBIT_ACT_GELU_ERF)
UNARY(gelu_tanh, ISOBIT_ACT_GELU_TANH)
UNARY(silu, ISOBIT_ACT_SILU)
UNARY(relu, ISOBIT_ACT_RELU)

/* --------------------------------------------------------------------------------------- embed */

enum { B_COUNT, B_VOCABULARY, B_D, B_YGAP, B_TGAP };

static void embed_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t count = c->p[B_COUNT], d = c->p[B_D];
    iso_check_out(o, "y", count, d, d + c->p[B_YGAP]);
    uint32_t *ids = iso_check_in(o, "ids", sizeof *ids, 1, count, count);
    for (size_t i = 0; i < count; i++)
        ids[i] = (uint32_t)iso_check_random_below(&o->random, c->p[B_VOCABULARY]);
    iso_check_in_f32(o, "table", c->p[B_VOCABULARY], d, d + c->p[B_TGAP], c->fill);
}

static void embed_call(const void *table, const struct iso_check_case *c,
                       const struct iso_check_operands *o) {
    const struct iso_check_operations *t = table;
    t->embed(o->v[0].at, o->v[0].ld, o->v[1].at, c->p[B_COUNT], o->v[2].at, o->v[2].ld, c->p[B_D]);
}

static void embed_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    float *exact = iso_check_exact(o, 0);
    const uint32_t *ids = ISO_CHECK_HOST(uint32_t, o, 1);
    for (size_t i = 0; i < c->p[B_COUNT]; i++)
        memcpy(exact + i * c->p[B_D], ISO_CHECK_HOST(float, o, 2) + ids[i] * o->v[2].ld,
               c->p[B_D] * sizeof *exact);
}

static const struct iso_check_suite embed = {.name = "embed",
                                             .params = "count vocabulary d ygap tgap",
                                             .setup = embed_setup,
                                             .call = embed_call,
                                             .reference = embed_reference,
                                             .least = {0, 1, 0},
                                             .most = {70, 60, 1100}};

/* ---------------------------------------------------------------------------------------- list */

const struct iso_check_suite *const iso_check_operation_suites[] = {&gemm,
                                                                    &gemv,
                                                                    &iso_check_softmax,
                                                                    &iso_check_logsumexp,
                                                                    &iso_check_layernorm,
                                                                    &iso_check_rmsnorm,
                                                                    &iso_check_attention,
                                                                    &gelu,
                                                                    &gelu_tanh,
                                                                    &silu,
                                                                    &relu,
                                                                    &embed};

#define FUNCTION(name, arguments) ISO_CHECK_FUNCTION(struct iso_check_operations, name, arguments)
#define ELEMENTWISE "(float *y, const float *x, size_t n)"
#define ROWS "(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n"
const struct iso_check_function iso_check_operation_functions[] = {
    FUNCTION(gemm, "(float *c, size_t ldc, const float *a, size_t lda, const float *b, size_t ldb, "
                   "size_t m, size_t n, size_t k)"),
    FUNCTION(gemv, "(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k)"),
    FUNCTION(softmax, ROWS ")"),
    FUNCTION(logsumexp, "(float *y, const float *x, size_t ldx, size_t rows, size_t n)"),
    FUNCTION(layernorm, ROWS ", const float *gamma, const float *beta, float eps)"),
    FUNCTION(rmsnorm, ROWS ", const float *gamma, float eps)"),
    FUNCTION(attention, "(float *o, size_t ldo, const float *q, size_t ldq, const float *k, "
                        "size_t ldk, const float *v, size_t ldv, size_t nq, size_t nk, size_t dh, "
                        "float scale, int causal)"),
    FUNCTION(gelu, ELEMENTWISE),
    FUNCTION(gelu_tanh, ELEMENTWISE),
    FUNCTION(silu, ELEMENTWISE),
    FUNCTION(relu, ELEMENTWISE),
    FUNCTION(embed, "(float *y, size_t ldy, const uint32_t *ids, size_t count, const float *table, "
                    "size_t ldt, size_t d)")};

_Static_assert(sizeof iso_check_operation_suites / sizeof *iso_check_operation_suites ==
                   ISO_CHECK_OPERATION_COUNT,
               "suites");
_Static_assert(sizeof iso_check_operation_functions / sizeof *iso_check_operation_functions ==
                   ISO_CHECK_OPERATION_COUNT,
               "functions");
_Static_assert(sizeof(struct iso_check_operations) == ISO_CHECK_OPERATION_COUNT * sizeof(void *),
               "members");
