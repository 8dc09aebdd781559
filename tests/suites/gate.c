/* SPDX-License-Identifier: MIT
 *
 * Suite of gate: y = act(a) b.
 */
#include <math.h>

#include <isobit/ops.h>

#include "kernels.h"
#include "oracle_kernels.h"
#include <isobit/check.h>
#include "suites/suites.h"

/* steps: a goes through -16 .. 16 in even steps and b holds powers of two, so that each bit of
 * act(a) shows in the result. */
enum { G_ACT, G_N, G_ROWS, G_FORM, G_GAP, G_STEPS };
enum { G_Y, G_A, G_B };
/* HALVES: a and b are the halves of each row of one matrix. */
enum { G_APART, G_IN_A, G_IN_B, G_HALVES, G_HALVES_IN_A, G_FORMS };

enum { ACTS = ISO_ACTIVATIONS };

static void gate_cases(struct iso_check_cases *l) {
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        for (size_t act = 0; act < ACTS; act++)
            iso_add(l, 1, ISO_CHECK_FILL_NORMAL, 0, act, 2048, 2, G_HALVES);
        return;
    }
    for (size_t act = 0; act < ACTS; act++) {
        const unsigned hashed = iso_act_hashed(act);
        for (size_t n = 0; n <= 130; n++)
            iso_add(l, 20, n % 2 ? ISO_CHECK_FILL_NORMAL : ISO_CHECK_FILL_UNIFORM,
                    ISO_CHECK_CASE_TRAPLESS | (n % 50 == 45 ? hashed : 0), act, n, (n + act) % 4,
                    (n + act) % G_FORMS, n % 3);
        for (unsigned fill = 0; fill < ISO_CHECK_FILL_COUNT; fill++)
            iso_add(l, 1, fill, hashed, act, 77, 2, (fill + act) % G_FORMS, 1);
        iso_add(l, 2, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_ALIGN, act, 39, 2, act % G_FORMS, 1);
        ISO_EACH_NEW_FILL(fill) {
            for (size_t form = 0; form < G_FORMS; form++)
                iso_add(l, 12, fill, 0, act, 64 + form, 2, form, 0);
        }
        ISO_EACH_POINT_FILL(fill) { /* in a, then in b */
            for (size_t spot = 0; spot < 2 * 70; spot += 3)
                iso_add_at(l, 40, fill, 0, spot, act, 70, 1, spot % G_FORMS, 0);
        }
        for (size_t kind = 0; kind < ISO_STRIDES; kind++)
            iso_add(l, 6, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_TRAPLESS, act, 19 + kind, 5,
                    (kind + act) % G_FORMS, iso_stride_gap(kind, 19 + kind));
        iso_add(l, 2, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_TRAPLESS, act, 1100, 3, G_HALVES, 0);
        iso_add(l, 1, ISO_CHECK_FILL_NORMAL, hashed | ISO_CHECK_CASE_ONCE, act, 8191, 1, G_APART, 0,
                1);
    }
}

static size_t cols_of(const struct iso_check_case *c) {
    return c->p[G_N] * (c->p[G_FORM] >= G_HALVES ? 2 : 1);
}

/* The operands as pointers and strides: where they lie (at), or their host copies. */
struct gate_operands {
    const float *a, *b;
    size_t lda, ldb;
};
static struct gate_operands gate_operands(const struct iso_check_operands *o,
                                          const struct iso_check_case *c, bool host) {
    static const unsigned a_in[] = {G_A, G_Y, G_A, G_A, G_Y}, b_in[] = {G_B, G_B, G_Y, G_A, G_Y};
    const struct iso_check_operand *a = &o->v[a_in[c->p[G_FORM]]], *b = &o->v[b_in[c->p[G_FORM]]];
    return (struct gate_operands){.a = host ? a->host : a->at,
                                  .b = (const float *)(host ? b->host : b->at) +
                                       (a == b ? c->p[G_N] : 0),
                                  .lda = a->ld,
                                  .ldb = b->ld};
}

static void gate_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t n = c->p[G_N], rows = c->p[G_ROWS], form = c->p[G_FORM], gap = c->p[G_GAP];
    const size_t cols = cols_of(c);
    float *y = NULL, *a = NULL, *b = NULL;
    if (form == G_APART || form == G_HALVES)
        iso_check_out(o, "y", rows, n, n + gap);
    else
        y = iso_check_inout_f32(o, "y", rows, form == G_IN_B ? n : cols, cols + gap, c->fill);
    if (form == G_IN_A || form == G_HALVES_IN_A) {
        iso_check_absent(o, "a");
        a = y;
    } else {
        a = iso_check_in_f32(o, "a", rows, cols, cols + gap, c->fill);
    }
    if (form == G_APART || form == G_IN_A) {
        b = iso_check_in_f32(o, "b", rows, n, n + 2 * gap, c->fill);
    } else {
        iso_check_absent(o, "b");
        b = form == G_IN_B ? y : a + n;
    }
    const struct gate_operands p = gate_operands(o, c, true);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < n; j++) {
            float *x = &a[i * p.lda + j], *factor = &b[i * p.ldb + j];
            if (c->p[G_STEPS]) {
                *x = ((float)j - 4095.0f) * 0x1p-8f;
                *factor = iso_check_fill_value(o, ISO_CHECK_FILL_POWERS);
            }
            /* An infinity times what may be rounded to 0, or not: there is no simple truth. */
            if (isinf(*factor) && isfinite(*x) && *x < -5)
                *factor = 1;
        }
    }
}

static void gate_call(const void *table, const struct iso_check_case *c,
                      const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    const struct gate_operands p = gate_operands(o, c, false);
    t->gate(ISO_CHECK_AT(float, o, G_Y), o->v[G_Y].ld, p.a, p.lda, p.b, p.ldb, c->p[G_ROWS],
            c->p[G_N], (int)c->p[G_ACT], c->p[G_ROWS] % 2);
}

static void gate_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t n = c->p[G_N], cols = o->v[G_Y].cols;
    const int act = (int)c->p[G_ACT];
    const struct gate_operands p = gate_operands(o, c, true);
    double *expect = iso_check_expect(o, G_Y), *bound = iso_check_bound(o, G_Y);
    float *exact = act <= ISOBIT_ACT_RELU ? iso_check_exact(o, G_Y) : NULL;
    for (size_t i = 0; i < c->p[G_ROWS]; i++) {
        for (size_t j = 0; j < cols; j++) {
            const size_t e = i * cols + j;
            if (j >= n) { /* b, which stays */
                const float b = p.b[i * p.ldb + j - n];
                expect[e] = (double)b;
                bound[e] = ORACLE_EQUAL;
                if (exact)
                    exact[e] = b;
                continue;
            }
            const float a = p.a[i * p.lda + j], b = p.b[i * p.ldb + j];
            expect[e] = iso_oracle_gate(&bound[e], (double)a, (double)b, act);
            if (exact) /* the double holds the whole product */
                exact[e] = (float)expect[e];
        }
    }
}

static const char *gate_group(const struct iso_check_case *c) { return iso_act_name(c->p[G_ACT]); }

static double gate_flops(const void *table, const struct iso_check_case *c) {
    (void)table;
    return (double)c->p[G_N] * (double)c->p[G_ROWS]; /* elements */
}

static double gate_bytes(const struct iso_check_case *c) { return 12.0 * gate_flops(NULL, c); }

static void gate_random(struct iso_check_case *c, struct iso_check_random *r) {
    c->p[G_ACT] = iso_check_random_below(r, ACTS);
    c->p[G_N] = iso_check_random_log(r, 1500);
    c->p[G_ROWS] = iso_check_random_log(r, 6);
    c->p[G_FORM] = iso_check_random_below(r, G_FORMS);
    c->p[G_GAP] = iso_check_random_gap(r);
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
    if (c->fill == ISO_CHECK_FILL_UNIFORM || c->fill == ISO_CHECK_FILL_NORMAL)
        c->flags = ISO_CHECK_CASE_TRAPLESS;
}

const struct iso_check_suite iso_kernel_suite_gate = {.name = "gate",
                                                      .params = "act n rows form gap steps",
                                                      .cases = gate_cases,
                                                      .setup = gate_setup,
                                                      .call = gate_call,
                                                      .reference = gate_reference,
                                                      .group = gate_group,
                                                      .flops = gate_flops,
                                                      .bytes = gate_bytes,
                                                      .random = gate_random};
