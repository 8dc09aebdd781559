/* SPDX-License-Identifier: MIT
 *
 * The suite of gemv. Its bits are predicted, as those of the products in gemm.c.
 */
#include <isobit/ops.h>

#include "kernels.h"
#include "oracle_kernels.h"
#include <isobit/check.h>
#include "suites/suites.h"

enum { V_N, V_K, V_LAYOUT, V_GAP, V_LEVELS };
enum { V_Y, V_W, V_X, V_SCRATCH };
static const size_t gaps[] = {0, 1, 3, 13, 64};

static void gemv_cases(struct iso_check_cases *l) {
    static const size_t ks[] = {0,  1,  2,  3,  7,  8,   15,  16,  17,  31,  32,
                                33, 63, 64, 65, 95, 127, 128, 129, 257, 512, 1000};
    static const size_t ns[] = {0,  1,  2,  3,  4,  5,  7,  8,  9,   15,
                                16, 17, 31, 32, 33, 47, 63, 65, 129, 130};
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        for (size_t trans = 0; trans < 2; trans++) {
            iso_add(l, 1, 0, 0, 512, 512, trans, 0);
            iso_add(l, 1, 0, 0, 2048, 512, trans, 0);
        }
        return;
    }
    for (size_t trans = 0; trans < 2; trans++) {
        for (size_t n = 0; n < iso_count(ns); n++) {
            for (size_t k = 0; k < iso_count(ks); k++)
                iso_add(l, 10, (n + k) % 3 ? ISO_CHECK_FILL_UNIFORM : ISO_CHECK_FILL_INTEGER,
                        ISO_CHECK_CASE_TRAPLESS | ((n + k) % 6 == 1 ? ISO_CHECK_CASE_GOLDEN : 0),
                        ns[n], ks[k], trans, gaps[(n + k) % 5]);
        }
        for (unsigned fill = 0; fill < ISO_CHECK_FILL_COUNT; fill++)
            iso_add(l, 1, fill, ISO_CHECK_CASE_GOLDEN, 19, 75, trans, 1);
        iso_add(l, 1, 0, ISO_CHECK_CASE_ALIGN, 19, 70, trans, 1);
        for (size_t k = 1; k < 130; k++)
            iso_add(l, 10, 0, ISO_CHECK_CASE_TRAPLESS, 5, k, trans, 0);
        iso_add(l, 1, ISO_CHECK_FILL_SMALL, ISO_CHECK_CASE_TRAPLESS, 19, 75, trans, 1);
        static const size_t long_k[] = {4, 5, 9, 255, 256, 511, 513, 1023, 1024, 1025, 2049};
        for (size_t i = 0; i < iso_count(long_k); i++) {
            for (size_t n = 1; n < 40; n += 7)
                iso_add(l, 12, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, n, long_k[i], trans,
                        i % 2);
        }
        static const size_t sizes[][2] = {{64, 64}, {512, 512}, {768, 768}, {3072, 64}, {64, 4096}};
        for (size_t i = 0; i < iso_count(sizes); i++)
            iso_add(l, 9, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_TRAPLESS, sizes[i][0], sizes[i][1],
                    trans, 0);
        /* Matrices that L2 does not hold are read in another order. */
        static const size_t large[][2] = {{770, 344}, {1027, 257}, {1024, 512}, {2100, 133},
                                          {64, 520},  {4100, 257}, {4165, 249}, {97, 700}};
        for (size_t i = 0; i < 2 * iso_count(large); i++)
            iso_add(l, 10, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_TRAPLESS, large[i / 2][0],
                    large[i / 2][1], trans, gaps[i / 2 % 5], i % 2);
        for (size_t n = 1; n <= 65; n++)
            iso_add(l, 12, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, n, 37, trans, n % 2);
        ISO_EACH_NEW_FILL(fill) {
            for (size_t k = 33; k < 200; k += 66)
                iso_add(l, 6, fill, 0, 19, k, trans, 1);
        }
        for (size_t spot = 0; spot < 5 * 37 + 37; spot++) { /* w, then x */
            ISO_EACH_POINT_FILL(fill)
            iso_add_at(l, 60, fill, 0, spot, 5, 37, trans, 1);
        }
        for (size_t i = 0; i < 3 * ISO_STRIDES; i++) {
            size_t n = 7 + i, k = 40 + i;
            iso_add(l, 4, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, n, k, trans,
                    iso_stride_gap(i % ISO_STRIDES, trans ? n : k));
        }
    }
    static const size_t interleaved[][2] = {
        {3, 40}, {130, 128}, {129, 257}, {37, 500}, {1027, 1025}};
    for (size_t i = 0; i < iso_count(interleaved); i++)
        iso_add(l, 1, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_TRAPLESS, interleaved[i][0],
                interleaved[i][1], ISO_GEMV_INTERLEAVED, i % 2);
    /* Strides of whole vectors: rows that begin anywhere are read from their first vector on. */
    static const size_t strides[][3] = {{6, 129, 15}, {7, 200, 8}, {5, 333, 3},  {9, 496, 0},
                                        {6, 500, 12}, {3, 159, 1}, {4, 1008, 0}, {1, 513, 15}};
    for (size_t i = 0; i < iso_count(strides); i++)
        iso_add(l, 2, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_TRAPLESS, strides[i][0], strides[i][1],
                ISO_GEMV_INTERLEAVED, strides[i][2]);
    /* Beyond what is read as one stream, and beyond a run of columns. */
    iso_add(l, 1, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_TRAPLESS, 2051, 2050, ISO_GEMV_ROWS, 1);
    iso_add(l, 1, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_TRAPLESS, 16501, 263, ISO_GEMV_COLUMNS, 3,
            1);
    /* Groups of rows that are full, begun and missing. */
    static const size_t ordered[][2] = {{1, 32},    {15, 63},   {16, 257},  {17, 256}, {33, 255},
                                        {129, 287}, {130, 289}, {300, 512}, {5, 800},  {257, 1027}};
    for (size_t i = 0; i < iso_count(ordered); i++)
        iso_add(l, 1, i % 2 ? ISO_CHECK_FILL_NORMAL : ISO_CHECK_FILL_INTEGER,
                ISO_CHECK_CASE_TRAPLESS, ordered[i][0], ordered[i][1], ISO_GEMV_IN_ORDER,
                gaps[i % 5]);
}

/* W is [k][n]. */
static bool turned(const struct iso_check_case *c) {
    return c->p[V_LAYOUT] == ISO_GEMV_COLUMNS || c->p[V_LAYOUT] == ISO_GEMV_IN_ORDER;
}

static void gemv_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    bool trans = turned(c);
    size_t n = c->p[V_N], k = c->p[V_K], rows = trans ? k : n, cols = trans ? n : k;
    iso_check_out(o, "y", 1, n, n);
    iso_check_in_f32(o, "w", rows, cols, cols + c->p[V_GAP], c->fill);
    float *x = iso_check_in_f32(o, "x", 1, k, k, c->fill);
    if (c->fill == ISO_CHECK_FILL_OPPOSITE) { /* each product but the first takes one away */
        size_t ld = cols + c->p[V_GAP], sp = trans ? ld : 1, sj = trans ? 1 : ld;
        float *w = ISO_CHECK_HOST(float, o, V_W);
        for (size_t p = 1; p < k; p += 2) {
            x[p] = -x[p - 1] * (1 + 0x1p-20f);
            for (size_t j = 0; j < n; j++)
                w[j * sj + p * sp] = w[j * sj + (p - 1) * sp];
        }
    }
    iso_check_scratch(o, "levels",
                      c->p[V_LAYOUT] == ISO_GEMV_IN_ORDER ? ISO_LANES * ISO_GEMV_LANE(n)
                      : c->p[V_LEVELS]                    ? ISO_GEMV_FLOATS(n)
                                                          : 0);
}

static void gemv_call(const void *table, const struct iso_check_case *c,
                      const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    t->gemv(ISO_CHECK_AT(float, o, V_Y), ISO_CHECK_AT(const float, o, V_W), o->v[V_W].ld,
            ISO_CHECK_AT(const float, o, V_X), c->p[V_N], c->p[V_K], (int)c->p[V_LAYOUT],
            c->p[V_LEVELS] || c->p[V_LAYOUT] == ISO_GEMV_IN_ORDER
                ? ISO_CHECK_AT(float, o, V_SCRATCH)
                : NULL);
}

static void gemv_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t n = c->p[V_N], k = c->p[V_K], ld = o->v[V_W].ld;
    bool trans = turned(c), judge = !iso_check_fill_may_overflow(c->fill);
    double *expect = judge ? iso_check_expect(o, V_Y) : NULL,
           *bound = judge ? iso_check_bound(o, V_Y) : NULL;
    float *exact = iso_check_exact(o, V_Y);
    for (size_t j = 0; j < n; j++) {
        const float *w = ISO_CHECK_HOST(float, o, V_W) + (trans ? j : j * ld);
        const float *x = ISO_CHECK_HOST(float, o, V_X);
        exact[j] = iso_oracle_lanes(w, trans ? ld : 1, x, 1, k);
        if (!judge)
            continue;
        double magnitude, depth = (double)((k + ISO_LANES - 1) / ISO_LANES) + 5;
        iso_oracle_dot(&expect[j], &magnitude, w, trans ? ld : 1, x, 1, k);
        bound[j] = iso_oracle_sum_bound(magnitude, depth, (double)k);
        if (c->fill == ISO_CHECK_FILL_INTEGER)
            bound[j] = ORACLE_EQUAL;
    }
}

static double gemv_flops(const void *table, const struct iso_check_case *c) {
    (void)table;
    return 2.0 * (double)c->p[V_N] * (double)c->p[V_K];
}

static double gemv_bytes(const struct iso_check_case *c) {
    return 4.0 * ((double)c->p[V_N] * (double)c->p[V_K] + (double)(c->p[V_N] + c->p[V_K]));
}

static void gemv_random(struct iso_check_case *c, struct iso_check_random *r) {
    c->p[V_N] = iso_check_random_log(r, 400);
    c->p[V_K] = iso_check_random_log(r, 2000);
    while (c->p[V_N] * c->p[V_K] > 1 << 16)
        c->p[iso_check_random_below(r, 2) ? V_N : V_K] /= 2;
    c->p[V_LAYOUT] = iso_check_random_below(r, 2);
    c->p[V_GAP] = iso_check_random_gap(r);
    c->p[V_LEVELS] = iso_check_random_below(r, 2);
    if (c->p[V_LAYOUT] == ISO_GEMV_ROWS && c->p[V_LEVELS])
        c->p[V_LAYOUT] = ISO_GEMV_INTERLEAVED;
    if (turned(c) && c->p[V_K] >= ISO_LANES && iso_check_random_below(r, 3) == 0)
        c->p[V_LAYOUT] = ISO_GEMV_IN_ORDER;
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
    if (c->fill == ISO_CHECK_FILL_UNIFORM || c->fill == ISO_CHECK_FILL_NORMAL ||
        c->fill == ISO_CHECK_FILL_INTEGER)
        c->flags = ISO_CHECK_CASE_TRAPLESS;
}

const struct iso_check_suite iso_kernel_suite_gemv = {.name = "gemv",
                                                      .params = "n k layout gap levels",
                                                      .cases = gemv_cases,
                                                      .setup = gemv_setup,
                                                      .call = gemv_call,
                                                      .reference = gemv_reference,
                                                      .flops = gemv_flops,
                                                      .bytes = gemv_bytes,
                                                      .random = gemv_random};
