/* SPDX-License-Identifier: MIT
 *
 * Suites of the matrix products: gemm_strip, gemm_pack and gemm_epilogue. The
 * order of operations of the products is so simple that their bits are predicted with fmaf: beside
 * the bound there is nothing left to chance.
 */
#include <math.h>
#include <string.h>

#include <isobit/ops.h>

#include "kernels.h"
#include "oracle_kernels.h"
#include <isobit/check.h>
#include "suites/suites.h"

/* ---------------------------------------------------------------------------------- gemm_strip */

/*
 * m rows in strips of at most `step`; a is [k][m + agap], except as = 1 when m is 1 and agap 99.
 * layout 0: packed panels; 1: row-major, ldb = n + bgap; 2: panels with gaps between rows and
 * panels.
 */
enum { STRIP_SUMS = ISO_STRIP_ADD | ISO_STRIP_CONTINUE }; /* what becomes of C */
enum { S_M, S_N, S_K, S_MODE, S_STEP, S_AGAP, S_LAYOUT, S_BGAP, S_CGAP };
enum { S_C, S_A, S_B };

static const size_t strip_n[] = {1, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 0, 7};
static const size_t strip_k[] = {17, 0,  1,  2,  3,   7,   8,   15,  16,  31, 32,
                                 33, 63, 64, 65, 127, 255, 256, 257, 511, 512};
static const size_t gaps[] = {0, 1, 3, 13, 64};

static void strip_cases(struct iso_check_cases *l) {
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        static const size_t n[] = {64, 512};
        for (size_t i = 0; i < 2; i++) {
            for (size_t m = 1; m <= 14; m += 13) {
                iso_add(l, 1, ISO_CHECK_FILL_UNIFORM, 0, m, n[i], 512, 0, m, 0, 0);
                iso_add(l, 1, ISO_CHECK_FILL_UNIFORM, 0, m, n[i], 512, 0, m, 0, 1);
            }
        }
        return;
    }
    size_t t = 0;
    for (size_t k = 0; k < iso_count(strip_k); k++) {
        for (size_t n = 0; n < iso_count(strip_n); n++) {
            for (size_t m = 0; m <= 29; m++, t++) {
                for (size_t mode = 0; mode < 3; mode++) {
                    bool golden = mode == t % 3 && (k == 0 || (m == 7 && n % 4 == 2));
                    iso_add(l, 75,
                            (t + mode) % 3 == 1 ? ISO_CHECK_FILL_INTEGER : ISO_CHECK_FILL_UNIFORM,
                            ISO_CHECK_CASE_TRAPLESS | (golden ? ISO_CHECK_CASE_GOLDEN : 0), m,
                            strip_n[n], strip_k[k], mode, t % 2 ? 99 : 1 + t % 6, gaps[(t / 2) % 5],
                            (t / 3 + mode) % 3, gaps[(t / 5) % 5], gaps[(t / 7) % 5]);
                }
            }
        }
    }
    /* every kind of number in all modes and layouts */
    for (unsigned fill = 0; fill < ISO_CHECK_FILL_COUNT; fill++) {
        for (size_t mode = 0; mode < 3; mode++) {
            for (size_t layout = 0; layout < 3; layout++) {
                unsigned flags = iso_check_fill_is_finite(fill) ? ISO_CHECK_CASE_TRAPLESS : 0;
                iso_add(l, 4, fill, flags | ISO_CHECK_CASE_GOLDEN, 9, 49, 33, mode, 99, 1, layout,
                        3, 1);
                iso_add(l, 4, fill, flags, 16, 37, 130, mode, 99, 0, layout, 0, 0);
            }
        }
    }
    for (size_t m = 1; m <= 14; m += 13) { /* all alignments; a row of k as it lies in memory */
        for (size_t layout = 0; layout < 3; layout++)
            iso_add(l, 3, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_ALIGN, m, 35, 19, 0, 99, 99,
                    layout, 1, 1);
    }
    for (size_t n = 1; n <= 130; n++) {
        iso_add(l, 5, ISO_CHECK_FILL_UNIFORM, 0, 1, n, 67, n % 3, 1, 99, n % 2, 0, 0);
        iso_add(l, 5, ISO_CHECK_FILL_INTEGER, 0, 13, n, 21, n % 3, 99, 0, n % 2, 0, 0);
    }
    static const size_t few_k[] = {1, 5, 17};
    for (size_t n = 1; n <= 65; n++) { /* up to two tiles and one, both ways; strip_n has more k */
        for (size_t m = 1; m <= 29; m++) {
            for (size_t k = 0; k < iso_count(few_k); k++, t++)
                iso_add(l, 150, t % 5 ? ISO_CHECK_FILL_UNIFORM : ISO_CHECK_FILL_INTEGER,
                        ISO_CHECK_CASE_TRAPLESS, m, n, few_k[k], t % 3, 99, 0, (n + k) % 3, t % 2,
                        t % 4);
        }
    }
    static const size_t more_k[] = {4, 5, 9, 13, 29, 61, 129, 300, 509, 510};
    for (size_t k = 0; k < iso_count(more_k); k++) {
        for (size_t i = 0; i < 12; i++)
            iso_add(l, 20, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, i % 4 * 5 + 1,
                    17 + i * 8, more_k[k], i % 3, 99, i % 2, i / 3 % 3, 1, 0);
    }
    for (size_t i = 0; i < ISO_STRIDES * ISO_STRIDES * ISO_STRIDES; i++) { /* of a, b and c */
        size_t a = i % ISO_STRIDES, b = i / ISO_STRIDES % ISO_STRIDES;
        size_t d = i / ISO_STRIDES / ISO_STRIDES, m = 2 + i % 15, n = 18 + i % 31;
        iso_add(l, 20, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, m, n, 9, i % 3, 99,
                iso_stride_gap(a, m), 1, iso_stride_gap(b, n), iso_stride_gap(d, n));
    }
    ISO_EACH_NEW_FILL(fill) {
        for (size_t i = 0; i < 9; i++)
            iso_add(l, 9, fill, iso_check_fill_is_finite(fill) ? ISO_CHECK_CASE_TRAPLESS : 0, 3 + i,
                    37, 50 + i, i % 3, 99, i % 2, i / 3, 1, 1);
    }
    for (size_t spot = 0; spot < 5 * 19 + 7 * 5 + 7 * 19; spot++) { /* c, a and b */
        ISO_EACH_POINT_FILL(fill)
        iso_add_at(l, 60, fill, 0, spot, 5, 19, 7, 1 + spot % 2, 99, 1, spot % 3, 1, 1);
    }
    static const size_t along_k[] = {5, 7, 8, 9, 24, 31};
    for (size_t k = 0; k < iso_count(along_k); k++) /* few rows along a wide B */
        for (size_t m = 1; m <= 5; m++)
            for (size_t mode = 0; mode < 3; mode++, t++)
                iso_add(l, 10, t % 4 ? ISO_CHECK_FILL_UNIFORM : ISO_CHECK_FILL_INTEGER,
                        ISO_CHECK_CASE_TRAPLESS, m, 9000 / along_k[k] + t % 17, along_k[k], mode,
                        99, gaps[t % 5], 1, gaps[t / 2 % 5], gaps[t / 3 % 5]);
    /* B in one run: tiles, vectors, and a part of one; all alignments */
    for (size_t n = 1; n <= 300; n += n % 3 + 1)
        for (size_t k = 0; k < iso_count(along_k); k++, t++)
            iso_add(l, 40, t % 4 ? ISO_CHECK_FILL_UNIFORM : ISO_CHECK_FILL_INTEGER,
                    ISO_CHECK_CASE_TRAPLESS | (n % 50 == 3 ? ISO_CHECK_CASE_ALIGN : 0), 1 + t % 4,
                    n, along_k[k],
                    ISO_STRIP_BY_ROW | (t % 3 ? ISO_STRIP_CONTINUE : ISO_STRIP_ASSIGN), 99, t % 3,
                    1, gaps[t % 5], gaps[t / 2 % 5]);
    /* of one row, the first 8, 16 or 24 vectors of sums may stay in registers */
    static const size_t run_n[] = {128, 129, 250, 256, 263, 384, 385, 401, 512, 530, 641, 1003};
    for (size_t n = 0; n < iso_count(run_n); n++)
        for (size_t mode = 0; mode < 2; mode++, t++) /* 512: all alignments, as rows begin alike */
            iso_add(l, 6, t % 4 ? ISO_CHECK_FILL_UNIFORM : ISO_CHECK_FILL_INTEGER,
                    ISO_CHECK_CASE_TRAPLESS | (run_n[n] == 512 ? ISO_CHECK_CASE_ALIGN : 0), 1,
                    run_n[n], along_k[t % iso_count(along_k)],
                    ISO_STRIP_BY_ROW | (mode ? ISO_STRIP_CONTINUE : ISO_STRIP_ASSIGN), 99, t % 3, 1,
                    run_n[n] == 512 ? 0 : gaps[t % 5], gaps[t / 2 % 5]);
    for (unsigned fill = 0; fill < ISO_CHECK_FILL_COUNT; fill++)
        for (size_t i = 0; i < 8; i++)
            iso_add(l, 4, fill, iso_check_fill_is_finite(fill) ? ISO_CHECK_CASE_TRAPLESS : 0,
                    1 + i / 2, 150, 33,
                    ISO_STRIP_BY_ROW | (i % 2 ? ISO_STRIP_CONTINUE : ISO_STRIP_ASSIGN), 99, 0, 1, 0,
                    1);
    for (size_t mode = 0; mode < 3; mode++) /* results that are subnormal */
        iso_add(l, 1, ISO_CHECK_FILL_SMALL, ISO_CHECK_CASE_TRAPLESS, 9, 49, 33, mode, 99, 1, mode,
                3, 1);
}

struct strip {
    size_t m, n, k, as, bs, bps, ldc, step;
};

static struct strip strip_of(const struct iso_check_case *c) {
    const size_t *p = c->p;
    struct strip s = {.m = p[S_M], .n = p[S_N], .k = p[S_K], .step = p[S_STEP]};
    s.as = p[S_AGAP] == 99 ? s.m : s.m + p[S_AGAP];
    s.ldc = s.n + p[S_CGAP];
    switch (p[S_LAYOUT]) {
    case 0: s.bs = ISO_PANEL, s.bps = s.k * ISO_PANEL; break;
    case 1: s.bs = s.n + p[S_BGAP], s.bps = ISO_PANEL; break;
    default: s.bs = ISO_PANEL + 3, s.bps = s.k * s.bs + 5; break;
    }
    return s;
}

static size_t strip_b(const struct strip *s, size_t p, size_t j) {
    return j / ISO_PANEL * s->bps + p * s->bs + j % ISO_PANEL;
}

static void strip_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    struct strip s = strip_of(c);
    if ((c->p[S_MODE] & STRIP_SUMS) == ISO_STRIP_ASSIGN)
        iso_check_out(o, "c", s.m, s.n, s.ldc);
    else
        iso_check_inout_f32(o, "c", s.m, s.n, s.ldc, c->fill);
    iso_check_in_f32(o, "a", s.k, s.m, s.as, c->fill);
    size_t extent = 0;
    for (size_t j = 0; j < s.n && s.k; j++) {
        size_t end = strip_b(&s, s.k - 1, j) + 1;
        extent = end > extent ? end : extent;
    }
    float *b = iso_check_in(o, "b", sizeof *b, 1, extent, extent);
    for (size_t p = 0; p < s.k; p++) {
        for (size_t j = 0; j < s.n; j++)
            b[strip_b(&s, p, j)] = iso_check_fill_value(o, c->fill);
    }
    if (c->fill == ISO_CHECK_FILL_OPPOSITE) { /* each product but the first takes one away */
        float *a = ISO_CHECK_HOST(float, o, S_A);
        for (size_t p = 1; p < s.k; p += 2) {
            for (size_t i = 0; i < s.m; i++)
                a[p * s.as + i] = -a[(p - 1) * s.as + i] * (1 + 0x1p-20f);
            for (size_t j = 0; j < s.n; j++)
                b[strip_b(&s, p, j)] = b[strip_b(&s, p - 1, j)];
        }
    }
}

static void strip_call(const void *table, const struct iso_check_case *c,
                       const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    struct strip s = strip_of(c);
    size_t step = s.step < t->mr ? s.step : t->mr, i = 0;
    do {
        size_t m = s.m - i < step ? s.m - i : step;
        t->gemm_strip(
            ISO_CHECK_AT(float, o, S_C) + i * s.ldc, s.ldc, ISO_CHECK_AT(const float, o, S_A) + i,
            s.as, ISO_CHECK_AT(const float, o, S_B), s.bs, s.bps, m, s.n, s.k, (int)c->p[S_MODE]);
        i += m;
    } while (i < s.m);
}

static void strip_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    struct strip s = strip_of(c);
    const float *a = ISO_CHECK_HOST(float, o, S_A), *b = ISO_CHECK_HOST(float, o, S_B);
    const float *c0 = ISO_CHECK_HOST(float, o, S_C);
    float *exact = iso_check_exact(o, S_C);
    /* where partial sums may overflow in f32 there is no simple truth, only the order */
    bool judge = !iso_check_fill_may_overflow(c->fill);
    double *expect = judge ? iso_check_expect(o, S_C) : NULL,
           *bound = judge ? iso_check_bound(o, S_C) : NULL;
    bool quality = c->fill == ISO_CHECK_FILL_UNIFORM && s.k;
    const size_t mode = c->p[S_MODE] & STRIP_SUMS;
    for (size_t i = 0; i < s.m; i++) {
        for (size_t j = 0; j < s.n; j++) {
            const float *bj = b + j / ISO_PANEL * s.bps + j % ISO_PANEL;
            size_t e = i * s.n + j;
            float old = mode == ISO_STRIP_ASSIGN ? 0 : c0[i * s.ldc + j];
            if (mode == ISO_STRIP_CONTINUE)
                exact[e] = iso_oracle_chain(old, a + i, s.as, bj, s.bs, s.k);
            else
                exact[e] = iso_oracle_chain(0, a + i, s.as, bj, s.bs, s.k);
            if (mode == ISO_STRIP_ADD)
                exact[e] = old + exact[e];
            if (!judge)
                continue;
            double value, magnitude;
            iso_oracle_dot(&value, &magnitude, a + i, s.as, bj, s.bs, s.k);
            expect[e] = value + (double)old;
            magnitude += fabs((double)old);
            bound[e] = iso_oracle_sum_bound(magnitude, (double)s.k + 1, (double)s.k);
            double tight = iso_oracle_quality_bound(magnitude, (double)s.k + 1);
            if (quality && tight < bound[e])
                bound[e] = tight;
            if (c->fill == ISO_CHECK_FILL_INTEGER)
                bound[e] = ORACLE_EQUAL;
        }
    }
}

static double strip_flops(const void *table, const struct iso_check_case *c) {
    (void)table;
    return 2.0 * (double)c->p[S_M] * (double)c->p[S_N] * (double)c->p[S_K];
}

static double strip_bytes(const struct iso_check_case *c) {
    return 4.0 * ((double)c->p[S_M] * (double)c->p[S_N] +
                  (double)c->p[S_K] * (double)(c->p[S_M] + c->p[S_N]));
}

static void strip_random(struct iso_check_case *c, struct iso_check_random *r) {
    size_t *p = c->p;
    p[S_M] = iso_check_random_log(r, 29);
    p[S_N] = iso_check_random_log(r, 300);
    p[S_K] = iso_check_random_log(r, ISO_K_BLOCK);
    while (p[S_M] * p[S_N] * p[S_K] > 1 << 17)
        p[iso_check_random_below(r, 2) ? S_N : S_K] /= 2;
    p[S_MODE] = iso_check_random_below(r, 3);
    p[S_STEP] = iso_check_random_below(r, 2) ? 99 : 1 + iso_check_random_below(r, 14);
    p[S_AGAP] = iso_check_random_below(r, 4) ? iso_check_random_gap(r) : 99;
    p[S_LAYOUT] = iso_check_random_below(r, 3);
    p[S_BGAP] = iso_check_random_gap(r);
    p[S_CGAP] = iso_check_random_gap(r);
    if (p[S_M] <= 4 && p[S_LAYOUT] == 1 && p[S_MODE] != ISO_STRIP_ADD)
        p[S_MODE] |= iso_check_random_below(r, 2) ? ISO_STRIP_BY_ROW : 0;
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
    c->flags = iso_check_fill_is_finite(c->fill) ? ISO_CHECK_CASE_TRAPLESS : 0;
}

const struct iso_check_suite iso_kernel_suite_gemm_strip = {
    .name = "gemm_strip",
    .params = "m n k mode step agap layout bgap cgap",
    .cases = strip_cases,
    .setup = strip_setup,
    .call = strip_call,
    .reference = strip_reference,
    .flops = strip_flops,
    .bytes = strip_bytes,
    .random = strip_random};

/* ----------------------------------------------------------------------------------- gemm_pack */

enum { P_N, P_K, P_WIDTH, P_TRANS, P_GAP };
enum { P_DST, P_SRC };

static void pack_cases(struct iso_check_cases *l) {
    static const size_t widths[] = {16, 1, 4, 6, 8, 12, 14, 32, 48};
    static const size_t ks[] = {1, 0, 2, 3, 4, 5, 7, 8, 15, 16, 17, 33, 64, 70};
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        for (size_t trans = 0; trans < 2; trans++) {
            iso_add(l, 1, 0, 0, 512, 512, 16, trans, 0);
            iso_add(l, 1, 0, 0, 512, 512, 14, trans, 0);
        }
        return;
    }
    for (size_t w = 0; w < iso_count(widths); w++) {
        for (size_t trans = 0; trans < 2; trans++) {
            for (size_t k = 0; k < iso_count(ks); k++) {
                for (size_t n = 0; n <= 35; n++) {
                    unsigned flags = n == 17 || n == 32 ? ISO_CHECK_CASE_GOLDEN : 0;
                    iso_add(l, 15, n % 5 == 4 ? ISO_CHECK_FILL_BITS : ISO_CHECK_FILL_UNIFORM, flags,
                            n, ks[k], widths[w], trans, gaps[(n + k) % 5]);
                }
            }
        }
    }
    for (size_t trans = 0; trans < 2; trans++) {
        iso_add(l, 1, 0, ISO_CHECK_CASE_ALIGN, 19, 21, 16, trans, 1);
        iso_add(l, 1, 0, ISO_CHECK_CASE_ALIGN, 9, 18, 6, trans, 1);
        iso_add(l, 1, 0, 0, 200, 513, 16, trans, 3);
        iso_add(l, 1, 0, 0, 200, 513, 14, trans, 3);
        for (size_t kind = 0; kind < ISO_STRIDES; kind++) {
            for (size_t n = 15; n <= 66; n += 17)
                iso_add(l, 6, 0, 0, n, n / 2, 16, trans, iso_stride_gap(kind, trans ? n : n / 2));
        }
        ISO_EACH_NEW_FILL(fill)
        iso_add(l, 6, fill, 0, 33, 21, 16, trans, 1);
    }
}

static size_t pack_extent(const struct iso_check_case *c) {
    size_t width = c->p[P_WIDTH];
    return (c->p[P_N] + width - 1) / width * width * c->p[P_K];
}

static void pack_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t n = c->p[P_N], k = c->p[P_K];
    iso_check_out(o, "dst", 1, pack_extent(c), pack_extent(c));
    if (c->p[P_TRANS])
        iso_check_in_f32(o, "src", k, n, n + c->p[P_GAP], c->fill);
    else
        iso_check_in_f32(o, "src", n, k, k + c->p[P_GAP], c->fill);
}

static void pack_call(const void *table, const struct iso_check_case *c,
                      const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    size_t ld = o->v[P_SRC].ld;
    bool trans = c->p[P_TRANS];
    t->gemm_pack(ISO_CHECK_AT(float, o, P_DST), ISO_CHECK_AT(const float, o, P_SRC), trans ? 1 : ld,
                 trans ? ld : 1, c->p[P_N], c->p[P_K], c->p[P_WIDTH]);
}

static void pack_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t n = c->p[P_N], k = c->p[P_K], width = c->p[P_WIDTH], ld = o->v[P_SRC].ld;
    float *exact = iso_check_exact(o, P_DST);
    memset(exact, 0, pack_extent(c) * sizeof *exact);
    for (size_t j = 0; j < n; j++) {
        for (size_t p = 0; p < k; p++)
            exact[j / width * k * width + p * width + j % width] =
                ISO_CHECK_HOST(float, o, P_SRC)[c->p[P_TRANS] ? p * ld + j : j * ld + p];
    }
}

static double pack_bytes(const struct iso_check_case *c) {
    return 8.0 * (double)c->p[P_N] * (double)c->p[P_K];
}

static void pack_random(struct iso_check_case *c, struct iso_check_random *r) {
    c->p[P_N] = iso_check_random_log(r, 150);
    c->p[P_K] = iso_check_random_log(r, 200);
    c->p[P_WIDTH] = iso_check_random_below(r, 2) ? 16 * (1 + iso_check_random_below(r, 4))
                                                 : 1 + iso_check_random_below(r, 15);
    c->p[P_TRANS] = iso_check_random_below(r, 2);
    c->p[P_GAP] = iso_check_random_gap(r);
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
}

const struct iso_check_suite iso_kernel_suite_gemm_pack = {.name = "gemm_pack",
                                                           .params = "n k width trans gap",
                                                           .cases = pack_cases,
                                                           .setup = pack_setup,
                                                           .call = pack_call,
                                                           .reference = pack_reference,
                                                           .bytes = pack_bytes,
                                                           .random = pack_random};

/* ------------------------------------------------------------------------------- gemm_epilogue */

/* alpha, beta: index into `scales`; residual 1: of its own, 2: c itself; same: t is c */
/* gap: behind rows, half of it behind those of t; tgap and rgap: more, of t and residual */
enum { E_M, E_N, E_ALPHA, E_BETA, E_BIAS, E_ACT, E_RESIDUAL, E_SAME, E_GAP, E_TGAP, E_RGAP };
enum { E_C, E_T, E_BIAS_AT, E_RESIDUAL_AT };
static const float scales[] = {0, 1, -1, 0.5f, 2, 0.3f};

static void epilogue_cases(struct iso_check_cases *l) {
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        for (size_t act = 0; act < ISO_ACTIVATIONS; act++)
            iso_add(l, 1, 0, 0, 14, 512, 1, 0, 1, act, 1, 1, 0);
        return;
    }
    size_t t = 0; /* every seventh is in the hash, so this loop has no later activation */
    for (size_t alpha = 0; alpha < 6; alpha++) {
        for (size_t beta = 0; beta < 6; beta++) {
            for (size_t act = 0; act <= ISOBIT_ACT_TANH; act++) {
                for (size_t residual = 0; residual < 3; residual++) {
                    for (size_t variant = 0; variant < 4; variant++, t++) {
                        unsigned flags = t % 7 == 0 ? ISO_CHECK_CASE_GOLDEN : 0;
                        iso_add(l, 12, t % 3 ? ISO_CHECK_FILL_UNIFORM : ISO_CHECK_FILL_NORMAL,
                                flags | ISO_CHECK_CASE_TRAPLESS, t % 5, 1 + t * 5 % 50, alpha, beta,
                                variant % 2, act, residual, variant / 2, gaps[t % 5]);
                    }
                }
            }
        }
    }
    for (size_t n = 0; n <= 130; n++)
        iso_add(l, 10, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_TRAPLESS, 2, n, n % 6, n % 5, n % 2,
                n % 6, n % 3, n / 3 % 2, 1);
    for (unsigned fill = 0; fill < ISO_CHECK_FILL_COUNT; fill++) {
        for (size_t beta = 0; beta < 3; beta++)
            iso_add(l, 2, fill, 0, 3, 45, beta ? 3 : 1, beta, 1, beta % 2, beta, beta % 2, 1);
    }
    for (size_t act = 0; act < ISO_ACTIVATIONS; act++) {
        iso_add(l, 2, ISO_CHECK_FILL_SPECIAL, 0, 3, 45, 1, 0, 0, act, 0, 1, 0);
        iso_add(l, 2, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_ALIGN, 2, 35, 3, 3, 1, act, 1, 0, 1);
        for (size_t n = 1; n <= 769; n = 3 * n + 1)
            iso_add(l, 6, ISO_CHECK_FILL_NORMAL, 0, 2, n, 1, 0, 1, act, 1, 0, 0);
    }
    ISO_EACH_NEW_FILL(fill) {
        for (size_t i = 0; i < 6; i++)
            iso_add(l, 9, fill, 0, 3, 45, i % 2 ? 3 : 1, i % 3, i / 2 % 2, i % 2, i % 3, i / 3, 1);
    }
    for (size_t spot = 0; spot < 4 * 21 + 21; spot++) { /* c, t, bias and residual; one row each */
        ISO_EACH_POINT_FILL(fill)
        iso_add_at(l, 60, fill, 0, spot, 1, 21, 5, 3, 1, spot % 2, 1, 0, 1);
    }
    for (size_t i = 0; i < 4 * ISO_STRIDES; i++) { /* of c, t and residual, mixed */
        size_t n = 29 + i;
        iso_add(l, 5, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, 4, n, 5, i % 2 ? 5 : 0, 1,
                i % 6, 1, 0, iso_stride_gap(i % ISO_STRIDES, n),
                iso_stride_gap(i / 2 % ISO_STRIDES, n), iso_stride_gap(i / 3 % ISO_STRIDES, n));
    }
    /* Non-temporal stores: rows that begin anywhere in a line, and end before the next one. */
    for (size_t act = 0; act < ISO_ACTIVATIONS; act++) {
        for (size_t gap = 0; gap < 4; gap++)
            iso_add(l, 40, ISO_CHECK_FILL_NORMAL, 0, 6, 160, 1, 0, gap / 2, act, gap / 2, 0,
                    5 * gap);
        iso_add(l, 40, ISO_CHECK_FILL_NORMAL, 0, 5, 5, 1, 0, 1, act, 1, 0, 2);
        /* wider than what is done at a time */
        iso_add(l, 60, ISO_CHECK_FILL_NORMAL, 0, 1, 1100, 1, 5, 1, act, act % 2, 0, 3);
    }
}

static void epilogue_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t m = c->p[E_M], n = c->p[E_N], gap = c->p[E_GAP];
    bool reads = scales[c->p[E_BETA]] != 0 || c->p[E_SAME] || c->p[E_RESIDUAL] == 2;
    if (reads)
        iso_check_inout_f32(o, "c", m, n, n + gap, c->fill);
    else
        iso_check_out(o, "c", m, n, n + gap);
    if (c->p[E_SAME])
        iso_check_absent(o, "t");
    else
        iso_check_in_f32(o, "t", m, n, n + gap / 2 + c->p[E_TGAP], c->fill);
    if (c->p[E_BIAS])
        iso_check_in_f32(o, "bias", 1, n, n, c->fill);
    else
        iso_check_absent(o, "bias");
    if (c->p[E_RESIDUAL] == 1)
        iso_check_in_f32(o, "residual", m, n, n + gap + c->p[E_RGAP], c->fill);
    else
        iso_check_absent(o, "residual");
}

static void epilogue_call(const void *table, const struct iso_check_case *c,
                          const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    bool same = c->p[E_SAME], own = c->p[E_RESIDUAL] == 2;
    const struct iso_check_operand *v = o->v;
    struct iso_epilogue e = {.alpha = scales[c->p[E_ALPHA]],
                             .beta = scales[c->p[E_BETA]],
                             .bias = v[E_BIAS_AT].at,
                             .act = (int)c->p[E_ACT],
                             .residual = own ? v[E_C].at : v[E_RESIDUAL_AT].at,
                             .ldr = own ? v[E_C].ld : v[E_RESIDUAL_AT].ld,
                             .beyond_l2 = (c->p[E_M] + c->p[E_N]) % 2,
                             .stream = !same && !own && (c->p[E_M] + c->p[E_N]) / 2 % 2};
    t->gemm_epilogue(v[E_C].at, v[E_C].ld, same ? v[E_C].at : v[E_T].at,
                     same ? v[E_C].ld : v[E_T].ld, c->p[E_M], c->p[E_N], &e);
}

static void epilogue_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t m = c->p[E_M], n = c->p[E_N];
    bool simple = c->p[E_ACT] <= ISOBIT_ACT_RELU;
    bool judge = !iso_check_fill_may_overflow(c->fill);
    double *expect = judge ? iso_check_expect(o, E_C) : NULL,
           *bound = judge ? iso_check_bound(o, E_C) : NULL;
    float *exact = simple ? iso_check_exact(o, E_C) : NULL;
    const float *old = ISO_CHECK_HOST(float, o, E_C),
                *residual = ISO_CHECK_HOST(float, o, E_RESIDUAL_AT);
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            const float *own = old + i * o->v[E_C].ld + j;
            struct iso_oracle_epilogue e = {
                .alpha = (double)scales[c->p[E_ALPHA]],
                .beta = (double)scales[c->p[E_BETA]],
                .c = own,
                .bias = c->p[E_BIAS] ? ISO_CHECK_HOST(float, o, E_BIAS_AT) + j : NULL,
                .act = (int)c->p[E_ACT],
            };
            if (c->p[E_RESIDUAL])
                e.residual =
                    c->p[E_RESIDUAL] == 2 ? own : residual + i * o->v[E_RESIDUAL_AT].ld + j;
            float t = c->p[E_SAME] ? *own : ISO_CHECK_HOST(float, o, E_T)[i * o->v[E_T].ld + j];
            if (exact)
                exact[i * n + j] = iso_oracle_epilogue_exact(t, &e);
            if (judge)
                expect[i * n + j] = iso_oracle_epilogue(&bound[i * n + j], (double)t, 0, &e);
        }
    }
}

static double epilogue_bytes(const struct iso_check_case *c) {
    return 4.0 * (double)c->p[E_M] * (double)c->p[E_N] * (double)(2 + (c->p[E_RESIDUAL] == 1));
}

static const char *epilogue_group(const struct iso_check_case *c) {
    return iso_act_name(c->p[E_ACT]);
}

static void epilogue_random(struct iso_check_case *c, struct iso_check_random *r) {
    static const unsigned fills[] = {ISO_CHECK_FILL_UNIFORM, ISO_CHECK_FILL_UNIFORM,
                                     ISO_CHECK_FILL_NORMAL,  ISO_CHECK_FILL_INTEGER,
                                     ISO_CHECK_FILL_CANCEL,  ISO_CHECK_FILL_ZERO,
                                     ISO_CHECK_FILL_EQUAL,   ISO_CHECK_FILL_SCORES};
    c->p[E_M] = iso_check_random_log(r, 20);
    c->p[E_N] = iso_check_random_log(r, 400);
    c->p[E_ALPHA] = iso_check_random_below(r, iso_count(scales));
    c->p[E_BETA] = iso_check_random_below(r, iso_count(scales));
    c->p[E_BIAS] = iso_check_random_below(r, 2);
    c->p[E_ACT] = iso_check_random_below(r, ISO_ACTIVATIONS);
    c->p[E_RESIDUAL] = iso_check_random_below(r, 3);
    c->p[E_SAME] = iso_check_random_below(r, 2);
    c->p[E_GAP] = iso_check_random_gap(r);
    c->p[E_TGAP] = iso_check_random_gap(r);
    c->p[E_RGAP] = iso_check_random_gap(r);
    c->fill = fills[iso_check_random_below(r, iso_count(fills))];
    /* far from zero some activations overflow on the way to a finite result */
    bool simple = c->p[E_ACT] <= ISOBIT_ACT_RELU;
    c->flags = simple || c->fill == ISO_CHECK_FILL_UNIFORM ? ISO_CHECK_CASE_TRAPLESS : 0;
}

const struct iso_check_suite iso_kernel_suite_gemm_epilogue = {
    .name = "gemm_epilogue",
    .params = "m n alpha# beta# bias act residual t=c gap "
              "tgap rgap",
    .cases = epilogue_cases,
    .setup = epilogue_setup,
    .call = epilogue_call,
    .reference = epilogue_reference,
    .group = epilogue_group,
    .bytes = epilogue_bytes,
    .random = epilogue_random};
