/* SPDX-License-Identifier: MIT
 *
 * Suites of what measures the machine: fma_peak, s8_peak and b16_peak.
 */
#include <math.h>

#include "kernels.h"
#include <isobit/check.h>
#include "suites/suites.h"

static void peak_cases(struct iso_check_cases *l) {
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        iso_add(l, 1, 0, 0, 10000);
        return;
    }
    iso_add(l, 1, 0, ISO_CHECK_CASE_NO_BITS, 0);
    iso_add(l, 1, 0, ISO_CHECK_CASE_NO_BITS, 1);
    iso_add(l, 1, 0, ISO_CHECK_CASE_NO_BITS, 1000);
}

static void peak_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    (void)c;
    iso_check_out(o, "result", 1, 1, 1);
}

static void fma_peak_call(const void *table, const struct iso_check_case *c,
                          const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    *ISO_CHECK_AT(float, o, 0) = t->fma_peak(c->p[0]);
}

static void s8_peak_call(const void *table, const struct iso_check_case *c,
                         const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    *ISO_CHECK_AT(float, o, 0) = (float)t->s8_peak(c->p[0]);
}

static void b16_peak_call(const void *table, const struct iso_check_case *c,
                          const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    *ISO_CHECK_AT(float, o, 0) = t->b16_peak(c->p[0]);
}

static void peak_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    (void)c; /* what it returns only keeps the work alive; it must not slow down on NaN */
    iso_check_expect(o, 0)[0] = 0;
    iso_check_bound(o, 0)[0] = INFINITY;
}

static double fma_peak_flops(const void *table, const struct iso_check_case *c) {
    const struct iso_kernels *t = table;
    return (double)t->fma_peak_flops * (double)c->p[0];
}

static double s8_peak_ops(const void *table, const struct iso_check_case *c) {
    const struct iso_kernels *t = table;
    return (double)t->s8_peak_ops * (double)c->p[0];
}

static double b16_peak_flops(const void *table, const struct iso_check_case *c) {
    const struct iso_kernels *t = table;
    return (double)t->b16_peak_flops * (double)c->p[0];
}

const struct iso_check_suite iso_kernel_suite_fma_peak = {.name = "fma_peak",
                                                          .params = "rounds",
                                                          .cases = peak_cases,
                                                          .setup = peak_setup,
                                                          .call = fma_peak_call,
                                                          .reference = peak_reference,
                                                          .flops = fma_peak_flops};

const struct iso_check_suite iso_kernel_suite_s8_peak = {.name = "s8_peak",
                                                         .params = "rounds",
                                                         .cases = peak_cases,
                                                         .setup = peak_setup,
                                                         .call = s8_peak_call,
                                                         .reference = peak_reference,
                                                         .flops = s8_peak_ops};

const struct iso_check_suite iso_kernel_suite_b16_peak = {.name = "b16_peak",
                                                          .params = "rounds",
                                                          .cases = peak_cases,
                                                          .setup = peak_setup,
                                                          .call = b16_peak_call,
                                                          .reference = peak_reference,
                                                          .flops = b16_peak_flops};
