/* SPDX-License-Identifier: MIT
 *
 * A program of one's own that links with libisobit_check and checks an operation of one's own:
 * y = silu(g) * u, in plain C. It takes the options of `isobit check`.
 */
#include <isobit/check.h>

#include <math.h>

struct mine {
    void (*swiglu)(float *y, const float *g, const float *u, size_t n);
};

static void swiglu_plain(float *y, const float *g, const float *u, size_t n) {
    for (size_t i = 0; i < n; i++)
        y[i] = g[i] / (1 + expf(-g[i])) * u[i];
}

/* A case: what the operands are. The names of its numbers are in `params`. */
static void setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    iso_check_out(o, "y", 1, c->p[0], c->p[0]);
    iso_check_in_f32(o, "g", 1, c->p[0], c->p[0], c->fill);
    iso_check_in_f32(o, "u", 1, c->p[0], c->p[0], ISO_CHECK_FILL_UNIFORM);
}

/* The call. */
static void call(const void *table, const struct iso_check_case *c,
                 const struct iso_check_operands *o) {
    const struct mine *t = table;
    t->swiglu(ISO_CHECK_AT(float, o, 0), ISO_CHECK_AT(float, o, 1), ISO_CHECK_AT(float, o, 2),
              c->p[0]);
}

/* The oracle: the true value, and how far from it a result may lie. exp has two roundings, the sum,
 * the quotient and the product one each; where exp overflows, the result is 0. */
static void reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    const float *g = ISO_CHECK_HOST(float, o, 1), *u = ISO_CHECK_HOST(float, o, 2);
    double *expect = iso_check_expect(o, 0), *bound = iso_check_bound(o, 0);
    for (size_t i = 0; i < c->p[0]; i++) {
        expect[i] = (double)g[i] / (1 + exp(-(double)g[i])) * (double)u[i];
        bound[i] = 5 * 0x1p-24 * fabs(expect[i]) + 0x1p-120;
    }
}

int main(int argc, char **argv) {
    static const struct iso_check_suite swiglu = {
        .name = "swiglu",
        .params = "n",
        .setup = setup,
        .call = call,
        .reference = reference,
        .most = {3000},
        /* -Inf / Inf, and times 0: what it should be is not laid down */
        .without = ISO_CHECK_FILL_BIT(ISO_CHECK_FILL_SPECIAL) |
                   ISO_CHECK_FILL_BIT(ISO_CHECK_FILL_MINUS_INF) |
                   ISO_CHECK_FILL_BIT(ISO_CHECK_FILL_ALL_MINUS_INF) |
                   ISO_CHECK_FILL_BIT(ISO_CHECK_FILL_ALONE_AT) |
                   ISO_CHECK_FILL_BIT(ISO_CHECK_FILL_MINUS_INF_AT) |
                   ISO_CHECK_FILL_BIT(ISO_CHECK_FILL_BITS)};
    static const struct iso_check_suite *const suites[] = {&swiglu};
    static const struct iso_check_function functions[] = {ISO_CHECK_FUNCTION(
        struct mine, swiglu, "(float *y, const float *g, const float *u, size_t n)")};
    static const struct mine plain = {swiglu_plain};
    static const struct iso_check_variant variants[] = {{"plain", &plain, NULL}};
    static const struct iso_check_target target = {.size = sizeof target,
                                                   .version = ISO_CHECK_VERSION,
                                                   .name = "mine",
                                                   .variants = variants,
                                                   .variant_count = 1,
                                                   .promises = ISO_CHECK_SAME_BITS,
                                                   .suites = suites,
                                                   .suite_count = 1,
                                                   .functions = functions,
                                                   .function_count = 1,
                                                   .table_bytes = sizeof(struct mine),
                                                   .own_table = true};
    return iso_check_main(&target, argc, argv);
}
