/* SPDX-License-Identifier: MIT
 *
 * Suites of usual operations on rows: softmax, log-sum-exp, norms and attention.
 */
#include "operations.h"

#include <math.h>

#include "oracle.h"

enum { ANY_ORDER = 1 }; /* lanes and key blocks of the oracle */

/* ------------------------------------------------------------------------------------- softmax */

enum { X_ROWS, X_N, X_YGAP, X_XGAP };

static void rows_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t rows = c->p[X_ROWS], n = c->p[X_N];
    iso_check_out(o, "y", rows, n, n + c->p[X_YGAP]);
    iso_check_in_f32(o, "x", rows, n, n + c->p[X_XGAP], c->fill);
}

static const float *row(const struct iso_check_operands *o, unsigned index, size_t i) {
    return (const float *)o->v[index].host + i * o->v[index].ld;
}

static void softmax_call(const void *table, const struct iso_check_case *c,
                         const struct iso_check_operands *o) {
    const struct iso_check_operations *t = table;
    t->softmax(o->v[0].at, o->v[0].ld, o->v[1].at, o->v[1].ld, c->p[X_ROWS], c->p[X_N]);
}

static void softmax_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t n = c->p[X_N];
    double *expect = iso_check_expect(o, 0), *bound = iso_check_bound(o, 0);
    for (size_t i = 0; i < c->p[X_ROWS]; i++)
        iso_oracle_softmax(expect + i * n, bound + i * n, row(o, 1, i), n, n, NULL, 0, 0,
                           ANY_ORDER);
}

const struct iso_check_suite iso_check_softmax = {.name = "softmax",
                                                  .params = "rows n ygap xgap",
                                                  .setup = rows_setup,
                                                  .call = softmax_call,
                                                  .reference = softmax_reference,
                                                  .most = {9, 4100}};

/* ----------------------------------------------------------------------------------- logsumexp */

enum { L_ROWS, L_N, L_XGAP };

static void logsumexp_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    iso_check_out(o, "y", 1, c->p[L_ROWS], c->p[L_ROWS]);
    iso_check_in_f32(o, "x", c->p[L_ROWS], c->p[L_N], c->p[L_N] + c->p[L_XGAP], c->fill);
}

static void logsumexp_call(const void *table, const struct iso_check_case *c,
                           const struct iso_check_operands *o) {
    const struct iso_check_operations *t = table;
    t->logsumexp(o->v[0].at, o->v[1].at, o->v[1].ld, c->p[L_ROWS], c->p[L_N]);
}

/* A sum of n, off by D + n + 1 units relative and so its logarithm as much absolute; the logarithm
 * has 1 ULP, and the last addition rounds. */
static double log_sum(double *bound, const float *x, size_t n) {
    double max = -INFINITY, sum = 0, weighted = 0;
    for (size_t j = 0; j < n; j++) {
        if (isnan(x[j]))
            max = NAN;
        if (!isnan(max) && (double)x[j] > max)
            max = (double)x[j];
    }
    *bound = ORACLE_EQUAL;
    if (!isfinite(max) || n == 1)
        return max;
    for (size_t j = 0; j < n; j++) {
        double d = (double)x[j] - max;
        sum += exp(d);
        weighted += d > -1000 ? exp(d) * -d : 0;
    }
    double l = log(sum), y = max + l;
    *bound = ORACLE_U * (weighted / sum + (double)n + 2 + 2 * l + fabs(y)) + 2 * ORACLE_TINY;
    return y;
}

static void logsumexp_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    double *expect = iso_check_expect(o, 0), *bound = iso_check_bound(o, 0);
    for (size_t i = 0; i < c->p[L_ROWS]; i++)
        expect[i] = log_sum(&bound[i], row(o, 1, i), c->p[L_N]);
}

const struct iso_check_suite iso_check_logsumexp = {.name = "logsumexp",
                                                    .params = "rows n xgap",
                                                    .setup = logsumexp_setup,
                                                    .call = logsumexp_call,
                                                    .reference = logsumexp_reference,
                                                    .least = {0, 1},
                                                    .most = {9, 4100}};

/* --------------------------------------------------------------------------------------- norms */

static const float norm_eps = 1e-5f;

static void norm_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    rows_setup(o, c);
    iso_check_in_f32(o, "gamma", 1, c->p[X_N], c->p[X_N], ISO_CHECK_FILL_UNIFORM);
}

static void layernorm_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    norm_setup(o, c);
    iso_check_in_f32(o, "beta", 1, c->p[X_N], c->p[X_N], ISO_CHECK_FILL_UNIFORM);
}

static void layernorm_call(const void *table, const struct iso_check_case *c,
                           const struct iso_check_operands *o) {
    const struct iso_check_operations *t = table;
    t->layernorm(o->v[0].at, o->v[0].ld, o->v[1].at, o->v[1].ld, c->p[X_ROWS], c->p[X_N],
                 o->v[2].at, o->v[3].at, norm_eps);
}

static void rmsnorm_call(const void *table, const struct iso_check_case *c,
                         const struct iso_check_operands *o) {
    const struct iso_check_operations *t = table;
    t->rmsnorm(o->v[0].at, o->v[0].ld, o->v[1].at, o->v[1].ld, c->p[X_ROWS], c->p[X_N], o->v[2].at,
               norm_eps);
}

static void layernorm_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t n = c->p[X_N];
    double *expect = iso_check_expect(o, 0), *bound = iso_check_bound(o, 0);
    for (size_t i = 0; i < c->p[X_ROWS]; i++)
        iso_oracle_layernorm(expect + i * n, bound + i * n, row(o, 1, i), n, o->v[2].host,
                             o->v[3].host, norm_eps, ANY_ORDER);
}

static void rmsnorm_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t n = c->p[X_N];
    double *expect = iso_check_expect(o, 0), *bound = iso_check_bound(o, 0);
    for (size_t i = 0; i < c->p[X_ROWS]; i++)
        iso_oracle_rmsnorm(expect + i * n, bound + i * n, row(o, 1, i), n, o->v[2].host, norm_eps,
                           ANY_ORDER);
}

const struct iso_check_suite iso_check_layernorm = {.name = "layernorm",
                                                    .params = "rows n ygap xgap",
                                                    .setup = layernorm_setup,
                                                    .call = layernorm_call,
                                                    .reference = layernorm_reference,
                                                    .least = {0, 1},
                                                    .most = {9, 4100},
                                                    .without = ISO_CHECK_OVERFLOWING};

const struct iso_check_suite iso_check_rmsnorm = {.name = "rmsnorm",
                                                  .params = "rows n ygap xgap",
                                                  .setup = norm_setup,
                                                  .call = rmsnorm_call,
                                                  .reference = rmsnorm_reference,
                                                  .least = {0, 1},
                                                  .most = {9, 4100},
                                                  .without = ISO_CHECK_OVERFLOWING};

/* ----------------------------------------------------------------------------------- attention */

/* past: keys more than queries. */
enum { A_QUERIES, A_PAST, A_DH, A_CAUSAL, A_OGAP, A_QGAP, A_KGAP, A_VGAP };

static void attention_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t nq = c->p[A_QUERIES], nk = nq + c->p[A_PAST], dh = c->p[A_DH];
    iso_check_out(o, "o", nq, dh, dh + c->p[A_OGAP]);
    iso_check_in_f32(o, "q", nq, dh, dh + c->p[A_QGAP], c->fill);
    iso_check_in_f32(o, "k", nk, dh, dh + c->p[A_KGAP], c->fill);
    iso_check_in_f32(o, "v", nk, dh, dh + c->p[A_VGAP], c->fill);
}

static float attention_scale(const struct iso_check_case *c) {
    return (float)(1 / sqrt((double)c->p[A_DH]));
}

static void attention_call(const void *table, const struct iso_check_case *c,
                           const struct iso_check_operands *o) {
    const struct iso_check_operations *t = table;
    t->attention(o->v[0].at, o->v[0].ld, o->v[1].at, o->v[1].ld, o->v[2].at, o->v[2].ld, o->v[3].at,
                 o->v[3].ld, c->p[A_QUERIES], c->p[A_QUERIES] + c->p[A_PAST], c->p[A_DH],
                 attention_scale(c), (int)c->p[A_CAUSAL]);
}

static void attention_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t nq = c->p[A_QUERIES], dh = c->p[A_DH];
    double *expect = iso_check_expect(o, 0), *bound = iso_check_bound(o, 0);
    for (size_t i = 0; i < nq; i++) {
        struct iso_oracle_attention a = {.q = row(o, 1, i),
                                         .k = row(o, 2, 0),
                                         .ksj = o->v[2].ld,
                                         .ksc = 1,
                                         .v = row(o, 3, 0),
                                         .ldv = o->v[3].ld,
                                         .nk = c->p[A_PAST] + (c->p[A_CAUSAL] ? i + 1 : nq),
                                         .dh = dh,
                                         .scale = (double)attention_scale(c),
                                         .lanes = ANY_ORDER,
                                         .key_block = ANY_ORDER};
        iso_oracle_attention(expect + i * dh, bound + i * dh, NULL, NULL, &a);
    }
}

static double attention_flops(const void *table, const struct iso_check_case *c) {
    (void)table;
    double nq = (double)c->p[A_QUERIES], nk = nq + (double)c->p[A_PAST];
    return 4 * (double)c->p[A_DH] * (c->p[A_CAUSAL] ? nq * (nk - (nq - 1) / 2) : nq * nk);
}

/* A score of -Inf leaves open what becomes of its value. */
const struct iso_check_suite iso_check_attention = {
    .name = "attention",
    .params = "queries past dh causal ogap qgap kgap vgap",
    .setup = attention_setup,
    .call = attention_call,
    .reference = attention_reference,
    .flops = attention_flops,
    .least = {0, 0, 1, 0},
    .most = {90, 300, 130, 1},
    .without = ISO_CHECK_OVERFLOWING | ISO_CHECK_FILL_BIT(ISO_CHECK_FILL_SPECIAL) |
               ISO_CHECK_FILL_BIT(ISO_CHECK_FILL_MINUS_INF) |
               ISO_CHECK_FILL_BIT(ISO_CHECK_FILL_ALL_MINUS_INF) |
               ISO_CHECK_FILL_BIT(ISO_CHECK_FILL_ALONE_AT) |
               ISO_CHECK_FILL_BIT(ISO_CHECK_FILL_INF_AT) |
               ISO_CHECK_FILL_BIT(ISO_CHECK_FILL_MINUS_INF_AT)};
