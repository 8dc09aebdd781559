/* SPDX-License-Identifier: MIT
 *
 * The suite of gemv. Its bits are predicted, as those of the products in gemm.c.
 */
#include <isobit/ops.h>

#include "kernels.h"
#include "oracle_kernels.h"
#include <isobit/check.h>
#include "suites/suites.h"

enum { V_N, V_K, V_INTERLEAVED, V_GAP };
enum { V_Y, V_W, V_X };
static const size_t gaps[] = {0, 1, 3, 13, 64};

static void gemv_cases(struct iso_check_cases *l) {
    static const size_t ks[] = {0,  1,  2,  3,  7,  8,   15,  16,  17,  31,  32,
                                33, 63, 64, 65, 95, 127, 128, 129, 257, 512, 1000};
    static const size_t ns[] = {0,  1,  2,  3,  4,  5,  7,  8,  9,   15,
                                16, 17, 31, 32, 33, 47, 63, 65, 129, 130};
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        iso_add(l, 1, 0, 0, 512, 512, 0, 0);
        iso_add(l, 1, 0, 0, 2048, 512, 0, 0);
        return;
    }
    for (size_t some = 0; some < 2; some++) { /* rows at a time */
        for (size_t n = 0; n < iso_count(ns); n++) {
            for (size_t k = 0; k < iso_count(ks); k++)
                iso_add(l, 10, (n + k) % 3 ? ISO_CHECK_FILL_UNIFORM : ISO_CHECK_FILL_INTEGER,
                        ISO_CHECK_CASE_TRAPLESS | ((n + k) % 6 == 1 ? ISO_CHECK_CASE_GOLDEN : 0),
                        ns[n], ks[k], some, gaps[(n + k) % 5]);
        }
        for (unsigned fill = 0; fill < ISO_CHECK_FILL_COUNT; fill++)
            iso_add(l, 1, fill, ISO_CHECK_CASE_GOLDEN, 19, 75, some, 1);
        iso_add(l, 1, 0, ISO_CHECK_CASE_ALIGN, 19, 70, some, 1);
        for (size_t k = 1; k < 130; k++)
            iso_add(l, 10, 0, ISO_CHECK_CASE_TRAPLESS, 5, k, some, 0);
        iso_add(l, 1, ISO_CHECK_FILL_SMALL, ISO_CHECK_CASE_TRAPLESS, 19, 75, some, 1);
        static const size_t long_k[] = {4, 5, 9, 255, 256, 511, 513, 1023, 1024, 1025, 2049};
        for (size_t i = 0; i < iso_count(long_k); i++) {
            for (size_t n = 1; n < 40; n += 7)
                iso_add(l, 12, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, n, long_k[i], some,
                        i % 2);
        }
        static const size_t sizes[][2] = {{64, 64}, {512, 512}, {768, 768}, {3072, 64}, {64, 4096}};
        for (size_t i = 0; i < iso_count(sizes); i++)
            iso_add(l, 9, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_TRAPLESS, sizes[i][0], sizes[i][1],
                    some, 0);
        /* Matrices that L2 does not hold are read in another order. */
        static const size_t large[][2] = {{770, 344}, {1027, 257}, {1024, 512}, {2100, 133},
                                          {64, 520},  {4100, 257}, {4165, 249}, {97, 700}};
        for (size_t i = 0; i < iso_count(large); i++)
            iso_add(l, 10, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_TRAPLESS, large[i][0], large[i][1],
                    some, gaps[i % 5]);
        for (size_t n = 1; n <= 65; n++)
            iso_add(l, 12, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, n, 37, some, n % 2);
        ISO_EACH_NEW_FILL(fill) {
            for (size_t k = 33; k < 200; k += 66)
                iso_add(l, 6, fill, 0, 19, k, some, 1);
        }
        for (size_t spot = 0; spot < 5 * 37 + 37; spot++) { /* w, then x */
            ISO_EACH_POINT_FILL(fill)
            iso_add_at(l, 60, fill, 0, spot, 5, 37, some, 1);
        }
        for (size_t i = 0; i < 3 * ISO_STRIDES; i++) {
            size_t n = 7 + i, k = 40 + i;
            iso_add(l, 4, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, n, k, some,
                    iso_stride_gap(i % ISO_STRIDES, k));
        }
    }
    static const size_t interleaved[][2] = {
        {3, 40}, {130, 128}, {129, 257}, {37, 500}, {1027, 1025}};
    for (size_t i = 0; i < iso_count(interleaved); i++)
        iso_add(l, 1, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_TRAPLESS, interleaved[i][0],
                interleaved[i][1], 1, i % 2);
    /* Strides of whole vectors: rows that begin anywhere are read from their first vector on. */
    static const size_t strides[][3] = {{6, 129, 15}, {7, 200, 8}, {5, 333, 3},  {9, 496, 0},
                                        {6, 500, 12}, {3, 159, 1}, {4, 1008, 0}, {1, 513, 15}};
    for (size_t i = 0; i < iso_count(strides); i++)
        iso_add(l, 2, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_TRAPLESS, strides[i][0], strides[i][1],
                1, strides[i][2]);
    /* Beyond what is read as one stream. */
    iso_add(l, 1, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_TRAPLESS, 2051, 2050, 0, 1);
}

static void gemv_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t n = c->p[V_N], k = c->p[V_K], ld = k + c->p[V_GAP];
    iso_check_out(o, "y", 1, n, n);
    iso_check_in_f32(o, "w", n, k, ld, c->fill);
    float *x = iso_check_in_f32(o, "x", 1, k, k, c->fill);
    if (c->fill == ISO_CHECK_FILL_OPPOSITE) { /* each product but the first takes one away */
        float *w = ISO_CHECK_HOST(float, o, V_W);
        for (size_t p = 1; p < k; p += 2) {
            x[p] = -x[p - 1] * (1 + 0x1p-20f);
            for (size_t j = 0; j < n; j++)
                w[j * ld + p] = w[j * ld + p - 1];
        }
    }
}

static void gemv_call(const void *table, const struct iso_check_case *c,
                      const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    t->gemv(ISO_CHECK_AT(float, o, V_Y), ISO_CHECK_AT(const float, o, V_W), o->v[V_W].ld,
            ISO_CHECK_AT(const float, o, V_X), c->p[V_N], c->p[V_K], (int)c->p[V_INTERLEAVED]);
}

static void gemv_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t n = c->p[V_N], k = c->p[V_K], ld = o->v[V_W].ld;
    const bool judge = !iso_check_fill_may_overflow(c->fill);
    double *expect = judge ? iso_check_expect(o, V_Y) : NULL,
           *bound = judge ? iso_check_bound(o, V_Y) : NULL;
    float *exact = iso_check_exact(o, V_Y);
    for (size_t j = 0; j < n; j++) {
        const float *w = ISO_CHECK_HOST(float, o, V_W) + j * ld;
        const float *x = ISO_CHECK_HOST(float, o, V_X);
        exact[j] = iso_oracle_lanes(w, 1, x, 1, k);
        if (!judge)
            continue;
        double magnitude, depth = (double)((k + ISO_LANES - 1) / ISO_LANES) + 5;
        iso_oracle_dot(&expect[j], &magnitude, w, 1, x, 1, k);
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
    c->p[V_INTERLEAVED] = iso_check_random_below(r, 2);
    c->p[V_GAP] = iso_check_random_gap(r);
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
    if (c->fill == ISO_CHECK_FILL_UNIFORM || c->fill == ISO_CHECK_FILL_NORMAL ||
        c->fill == ISO_CHECK_FILL_INTEGER)
        c->flags = ISO_CHECK_CASE_TRAPLESS;
}

const struct iso_check_suite iso_kernel_suite_gemv = {.name = "gemv",
                                                      .params = "n k interleaved gap",
                                                      .cases = gemv_cases,
                                                      .setup = gemv_setup,
                                                      .call = gemv_call,
                                                      .reference = gemv_reference,
                                                      .flops = gemv_flops,
                                                      .bytes = gemv_bytes,
                                                      .random = gemv_random};
