/* SPDX-License-Identifier: MIT
 *
 * Suites of weights of 4 bits times rows of int8 in blocks: quantize_blocks and gemm_q_s8, whose
 * bits are those of the formulas in docs/numerics.md. Sums of integers are those of int64. And of
 * weights of 8 bits, which came later: gemm_q_s8_more.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels.h"
#include "oracle_kernels.h"
#include <isobit/check.h>
#include "suites/suites.h"

enum { BLOCK = 32, HALF = 16, PANEL = 16 };

static unsigned flags_of(unsigned fill) {
    return iso_check_fill_is_finite(fill) ? ISO_CHECK_CASE_TRAPLESS : 0;
}
static size_t blocks_of(size_t n) { return (n + BLOCK - 1) / BLOCK; }

/* Where a step of a block lies: the order that kernels.h writes down. */
static size_t place_of(size_t step) {
    static const size_t at[] = {7, 3, 6, 2, 5, 1, 4, 0}; /* of 7 5 3 1 6 4 2 0 */
    return step / 8 * 8 + at[step % 8];
}

/* ---------------------------------------------------------------------------- quantize_blocks */

/* The output has a float for each number of a block. */
enum { B_ROWS, B_N, B_HALVES, B_TGAP, B_XGAP };
enum { B_OUT, B_X, B_BLOCKS };
enum { NUMBERS = BLOCK + 8 };

static size_t ldt_of(const struct iso_check_case *c) { return blocks_of(c->p[B_N]) + c->p[B_TGAP]; }

static void blocks_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t *p = c->p, columns = blocks_of(p[B_N]) * NUMBERS;
    iso_check_out(o, "numbers", p[B_ROWS], columns, columns);
    float *x = iso_check_in_f32(o, "x", p[B_ROWS], p[B_N], p[B_N] + p[B_XGAP], c->fill);
    for (size_t i = 0; i < p[B_ROWS] && p[B_HALVES]; i++, x += p[B_N] + p[B_XGAP])
        for (size_t j = 0; j < p[B_N]; j++) /* between two integers */
            x[j] = j % BLOCK ? (float)((iso_check_random_next(&o->random) >> 20) % 253) - 125.5f
                   : p[B_HALVES] == 1 ? 127
                                      : FLT_MAX;
    const size_t blocks = p[B_ROWS] ? (p[B_ROWS] - 1) * ldt_of(c) + blocks_of(p[B_N]) : 0;
    iso_check_scratch(o, "blocks", blocks * sizeof(struct iso_s8_block) / sizeof(float));
}

static void numbers_of(float *to, const struct iso_s8_block *b) {
    for (size_t j = 0; j < BLOCK; j++)
        to[j] = b->q[place_of(j)];
    for (size_t i = 0; i < 3; i++)
        to[BLOCK + i] = (float)b->start[i], to[BLOCK + 3 + i] = b->scaled[i];
    to[BLOCK + 6] = b->scale, to[BLOCK + 7] = (float)b->unused;
}

static void blocks_call(const void *table, const struct iso_check_case *c,
                        const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    const size_t *p = c->p, blocks = blocks_of(p[B_N]), ldt = ldt_of(c);
    struct iso_s8_block *b = ISO_CHECK_AT(struct iso_s8_block, o, B_BLOCKS);
    float *out = ISO_CHECK_AT(float, o, B_OUT);
    for (size_t i = 0; i + 1 < p[B_ROWS]; i++)
        memset(b + i * ldt, 0x55, ldt * sizeof *b);
    t->quantize_blocks(b, ldt, ISO_CHECK_AT(const float, o, B_X), p[B_N] + p[B_XGAP], p[B_ROWS],
                       p[B_N]);
    for (size_t i = 0; i < p[B_ROWS]; i++)
        for (size_t j = 0; j < ldt && (i + 1 < p[B_ROWS] || j < blocks); j++) {
            struct iso_s8_block one;
            memcpy(&one, b + i * ldt + j, sizeof one);
            if (j < blocks)
                numbers_of(out + (i * blocks + j) * NUMBERS, &one);
            else if (one.unused != 0x55555555) /* a gap was written to */
                out[i * blocks * NUMBERS] = 1000;
        }
}

static void blocks_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t *p = c->p, blocks = blocks_of(p[B_N]);
    float *exact = iso_check_exact(o, B_OUT);
    for (size_t i = 0; i < p[B_ROWS]; i++)
        for (size_t b = 0; b < blocks; b++, exact += NUMBERS) {
            const size_t n = p[B_N] - b * BLOCK < BLOCK ? p[B_N] - b * BLOCK : BLOCK;
            int8_t q[BLOCK];
            float scale, sums[3] = {0, 0, 0};
            iso_quantized(q, &scale,
                          ISO_CHECK_HOST(float, o, B_X) + i * (p[B_N] + p[B_XGAP]) + b * BLOCK, n,
                          BLOCK, 0);
            for (size_t j = 0; j < BLOCK; j++) {
                exact[j] = q[j];
                sums[j / HALF] += q[j];
            }
            sums[2] = sums[0] + sums[1];
            for (size_t e = 0; e < 3; e++) {
                exact[BLOCK + e] = (float)(-8 * (int)sums[e]);
                exact[BLOCK + 3 + e] = (float)((double)sums[e] * (double)scale);
            }
            exact[BLOCK + 6] = scale, exact[BLOCK + 7] = 0;
        }
}

static double blocks_bytes(const struct iso_check_case *c) {
    return 6.0 * (double)c->p[B_ROWS] * (double)c->p[B_N];
}

static void blocks_random(struct iso_check_case *c, struct iso_check_random *r) {
    size_t *p = c->p;
    p[B_ROWS] = iso_check_random_log(r, 10), p[B_N] = iso_check_random_log(r, 600);
    p[B_HALVES] = iso_check_random_below(r, 4) == 0;
    p[B_TGAP] = iso_check_random_below(r, 3), p[B_XGAP] = iso_check_random_gap(r);
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
    c->flags = flags_of(c->fill);
}

static void blocks_cases(struct iso_check_cases *l) {
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        iso_add(l, 1, 0, 0, 64, 512, 0, 0, 0);
        return;
    }
    for (size_t n = 0; n <= 100; n++)
        iso_add(l, 9, ISO_CHECK_FILL_UNIFORM,
                ISO_CHECK_CASE_TRAPLESS | (n % 16 == 7 ? ISO_CHECK_CASE_GOLDEN : 0),
                n && n % BLOCK == 0 ? 3 : n % 4, n, n % 8 == 7, n % 3, n % 4);
    for (unsigned fill = 0; fill < ISO_CHECK_FILL_TOP_AT; fill++)
        for (size_t n = 1; n < 90; n += 11)
            iso_add(l, 9, fill, flags_of(fill) | (n == 67 && fill % 2 ? ISO_CHECK_CASE_GOLDEN : 0),
                    3, n, 0, 1, 2);
    for (size_t spot = 0; spot < 2 * 48; spot++)
        ISO_EACH_POINT_FILL(fill)
    iso_add_at(l, 40, fill, 0, spot, 2, 48, 0, 0, 1);
    iso_add(l, 1, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_ALIGN, 3, 43, 2, 1, 1);
    for (size_t i = 0; i < ISO_STRIDES; i++)
        iso_add(l, 2, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, 3, 35, 0, i % 3,
                iso_stride_gap(i, 35));
}

const struct iso_check_suite iso_kernel_suite_quantize_blocks = {.name = "quantize_blocks",
                                                                 .params =
                                                                     "rows n halves tgap xgap",
                                                                 .cases = blocks_cases,
                                                                 .setup = blocks_setup,
                                                                 .call = blocks_call,
                                                                 .reference = blocks_reference,
                                                                 .bytes = blocks_bytes,
                                                                 .random = blocks_random};

/* ---------------------------------------------------------------------------------- gemm_q_s8 */

/* integers: which kind; the fill is that of scales, scaled sums and the bias. */
enum { P_M, P_N, P_BLOCKS, P_BIAS, P_INTEGERS, P_TYPE, P_AGAP, P_BGAP, P_CGAP };
/* factors: scales and scaled sums, on their way into a. */
enum { P_C, P_FACTORS, P_A, P_B, P_OF_BIAS };
enum { RANDOM, ENDS, LARGEST, SMALLEST, INTEGERS };

static size_t k_of(const struct iso_check_case *c) {
    return c->p[P_BLOCKS] * iso_q_block_of(c->p[P_TYPE]);
}
static size_t lda_of(const struct iso_check_case *c) { return blocks_of(k_of(c)) + c->p[P_AGAP]; }
static size_t ldb_of(const struct iso_check_case *c) {
    return c->p[P_BLOCKS] * iso_q_block_words(c->p[P_TYPE]) + c->p[P_BGAP];
}

static int8_t integer(struct iso_check_operands *o, size_t kind) {
    const uint64_t random = iso_check_random_next(&o->random) >> 20;
    switch (kind) {
    case ENDS: return random % 2 ? 127 : -127;
    case LARGEST: return 127;
    case SMALLEST: return -127;
    default: return (int8_t)((int)(random % 255) - 127);
    }
}

static void p_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t *p = c->p, k = k_of(c), lda = lda_of(c);
    iso_check_out(o, "c", p[P_M], p[P_N], p[P_N] + p[P_CGAP]);
    const size_t numbers = 4 * blocks_of(k);
    const float *factors = iso_check_in_f32(o, "factors", p[P_M], numbers, numbers, c->fill);
    struct iso_s8_block *a = iso_check_in(o, "a", sizeof *a, p[P_M], blocks_of(k), lda);
    for (size_t i = 0; i < p[P_M]; i++)
        for (size_t b = 0; b < blocks_of(k); b++, factors += 4) {
            struct iso_s8_block one = {.scale = factors[3]};
            for (size_t j = 0; j < BLOCK && b * BLOCK + j < k; j++) {
                const int8_t q = integer(o, p[P_INTEGERS]);
                one.q[place_of(j)] = q;
                one.start[j / HALF] -= 8 * q;
            }
            one.start[2] = one.start[0] + one.start[1];
            memcpy(one.scaled, factors, sizeof one.scaled);
            memcpy(a + i * lda + b, &one, sizeof one);
        }
    iso_q_panels(o, p[P_N], k, ldb_of(c), p[P_TYPE], c->fill);
    if (p[P_BIAS])
        iso_check_in_f32(o, "bias", 1, p[P_N], p[P_N], c->fill);
    else
        iso_check_absent(o, "bias");
}

static void p_call(const void *table, const struct iso_check_case *c,
                   const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    const size_t *p = c->p;
    t->gemm_q_s8(ISO_CHECK_AT(float, o, P_C), p[P_N] + p[P_CGAP],
                 ISO_CHECK_AT(const struct iso_s8_block, o, P_A), lda_of(c),
                 ISO_CHECK_AT(const uint32_t, o, P_B), ldb_of(c),
                 p[P_BIAS] ? ISO_CHECK_AT(const float, o, P_OF_BIAS) : NULL, p[P_M], p[P_N],
                 k_of(c), (int)p[P_TYPE], p[P_N] % 2 ? ISO_DIRECT_BEYOND_L2 : 0);
}

/* A part of a block, from step `first` on, of row i and column j. */
struct part {
    int64_t sum;
    float scale, scaled; /* of the row */
    struct iso_q_weight w;
};
static struct part part_of(const struct iso_check_operands *o, const struct iso_check_case *c,
                           size_t i, size_t j, size_t first, size_t steps) {
    struct iso_s8_block a;
    struct part t = {0};
    memcpy(&a, ISO_CHECK_HOST(struct iso_s8_block, o, P_A) + i * lda_of(c) + first / BLOCK,
           sizeof a);
    for (size_t s = first; s < first + steps; s++) {
        t.w = iso_q_weight(ISO_CHECK_HOST(uint32_t, o, P_B), ldb_of(c), j, s, c->p[P_TYPE]);
        t.sum += (int64_t)t.w.number * a.q[place_of(s % BLOCK)];
    }
    t.scale = a.scale;
    t.scaled = a.scaled[steps == BLOCK ? 2 : first / HALF % 2];
    return t;
}

static void p_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t *p = c->p, k = k_of(c), type = p[P_TYPE];
    const size_t steps = (type & ISO_Q_16) == ISO_Q_16 ? HALF : BLOCK;
    const float *bias = p[P_BIAS] ? ISO_CHECK_HOST(float, o, P_OF_BIAS) : NULL;
    const bool judge = !iso_check_fill_may_overflow(c->fill);
    float *exact = iso_check_exact(o, P_C);
    double *expect = judge ? iso_check_expect(o, P_C) : NULL,
           *bound = judge ? iso_check_bound(o, P_C) : NULL;
    for (size_t i = 0; i < p[P_M]; i++)
        for (size_t j = 0; j < p[P_N]; j++) {
            const size_t e = i * p[P_N] + j;
            double sum = 0, all = 0;
            float chain = 0;
            for (size_t first = 0; first < k; first += steps) {
                const struct part t = part_of(o, c, i, j, first, steps);
                const double scale = (double)t.w.scale * (double)t.scale;
                const double offset =
                    type & ISO_Q_OFFSETS ? (double)t.w.offset * (double)t.scaled : 0;
                chain = fmaf((float)t.sum, (float)scale, chain);
                if (type & ISO_Q_OFFSETS)
                    chain = fmaf(t.w.offset, t.scaled, chain);
                sum += (double)t.sum * scale + offset;
                all += fabs((double)t.sum * scale) + fabs(offset);
            }
            const double added = bias ? (double)bias[j] : 0;
            exact[e] = bias ? (float)((double)chain + added) : chain;
            if (!judge)
                continue;
            expect[e] = sum + added;
            const double roundings = 2.0 * (double)(k / steps) + 3;
            bound[e] = ldexp(roundings * (all + fabs(added)), -24) + ldexp(roundings, -134);
        }
}

static double p_flops(const void *table, const struct iso_check_case *c) {
    (void)table;
    return 2.0 * (double)c->p[P_M] * (double)c->p[P_N] * (double)k_of(c);
}

static double p_bytes(const struct iso_check_case *c) {
    const double m = (double)c->p[P_M], n = (double)c->p[P_N];
    return m * (2 * (double)k_of(c) + 4 * n) + n / 16 * 4.0 * (double)ldb_of(c);
}

/* Those of 4 bits, or (more) of 8, that exist. */
static int exists(size_t type, int more) {
    return (type & ISO_Q_4) == (more ? 0 : ISO_Q_4) && !(type & ISO_Q_I8 && type & ISO_Q_F32);
}
enum { ALL_TYPES = 64 };

static void p_random_of(struct iso_check_case *c, struct iso_check_random *r, int more) {
    size_t *p = c->p;
    p[P_M] = iso_check_random_log(r, 20);
    p[P_N] = iso_check_random_log(r, 200);
    do
        p[P_TYPE] = iso_check_random_below(r, ALL_TYPES);
    while (!exists(p[P_TYPE], more));
    p[P_BLOCKS] = iso_check_random_log(r, 768 / iso_q_block_of(p[P_TYPE]));
    while (p[P_M] * p[P_N] * k_of(c) > 1 << 17)
        p[P_N] > 1 ? (p[P_N] /= 2) : (p[P_M] /= 2);
    p[P_BIAS] = iso_check_random_below(r, 2);
    p[P_INTEGERS] = iso_check_random_below(r, INTEGERS);
    p[P_AGAP] = iso_check_random_below(r, 3);
    p[P_BGAP] = iso_check_random_gap(r);
    p[P_CGAP] = iso_check_random_gap(r);
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
    c->flags = flags_of(c->fill);
}

static void p_random(struct iso_check_case *c, struct iso_check_random *r) { p_random_of(c, r, 0); }
static void p_random_more(struct iso_check_case *c, struct iso_check_random *r) {
    p_random_of(c, r, 1);
}

/* Of each type every height of a tile, tails of n, and kinds of numbers. */
static void p_cases(struct iso_check_cases *l) {
    static const size_t ns[] = {1, 2, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 48, 65};
    static const size_t gaps[] = {0, 1, 3, 13, 64};
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        iso_add(l, 1, 0, 0, 1, 512, 16, 0, 0, ISO_Q_4, 0, 0, 0);
        iso_add(l, 1, 0, 0, 12, 512, 16, 0, 0, ISO_Q_4, 0, 0, 0);
        iso_add(l, 1, 0, 0, 1, 512, 2, 0, 0, ISO_Q_4 | ISO_Q_OFFSETS | ISO_Q_I8, 0, 0, 0);
        return;
    }
    size_t t = 0;
    for (size_t n = 0; n < iso_count(ns); n++)
        for (size_t m = 0; m <= 13; m++, t++)
            iso_add(l, 30, ISO_CHECK_FILL_UNIFORM,
                    ISO_CHECK_CASE_TRAPLESS | (t % 8 == 1 ? ISO_CHECK_CASE_GOLDEN : 0), m, ns[n],
                    t % 4, t % 2, t % INTEGERS, ISO_Q_4 | (t % 3 ? 0 : ISO_Q_OFFSETS), t % 3,
                    gaps[t / 2 % 5], gaps[t / 7 % 5]);
    for (size_t type = 0; type < ALL_TYPES; type++) {
        if (!exists(type, 0))
            continue;
        const size_t most = iso_q_block_of(type) == 256 ? 2 : 5;
        for (size_t m = 1; m <= 7; m++, t++)
            iso_add(l, 8, t % 5 == 1 ? ISO_CHECK_FILL_INTEGER : ISO_CHECK_FILL_UNIFORM,
                    ISO_CHECK_CASE_TRAPLESS | (t % 4 ? 0 : ISO_CHECK_CASE_GOLDEN), m,
                    ns[t % iso_count(ns)], 1 + t % most, t % 2, t / 2 % INTEGERS, type, t % 3,
                    t % 4, t % 5);
        for (unsigned fill = 0; fill < ISO_CHECK_FILL_TOP_AT; fill++)
            iso_add(l, 4, fill, flags_of(fill), 1 + t++ % 7, 37, 1, fill % 2, fill % INTEGERS, type,
                    1, 2, 3);
        iso_add(l, 4, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_ALIGN, 1 + t % 7, 23, 1, t % 2, 0,
                type, 1, 1, 1);
        iso_add(l, 1, ISO_CHECK_FILL_SMALL, ISO_CHECK_CASE_TRAPLESS, 1 + t % 7, 21, 1, t % 2, 0,
                type, 1, 3, 1);
    }
    static const size_t types[] = {ISO_Q_4, ISO_Q_4 | ISO_Q_128 | ISO_Q_OFFSETS,
                                   ISO_Q_4 | ISO_Q_I8 | ISO_Q_OFFSETS, ISO_Q_4 | ISO_Q_16};
    for (size_t i = 0; i < iso_count(types); i++) /* in several parts of k */
        for (size_t m = 4; m <= 10; m += 3)
            iso_add(l, 1, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, m, 33 + m,
                    2304 / iso_q_block_of(types[i]), m % 2, m % INTEGERS, types[i], 1, 4, 1);
    for (size_t spot = 0; spot < 19; spot++) /* NaN and infinities in the bias */
        ISO_EACH_POINT_FILL(fill)
    iso_add_at(l, 10, fill, 0, spot, 4, 19, 1, 1, 0, ISO_Q_4, 1, 1, 1);
    for (size_t i = 0; i < ISO_STRIDES; i++)
        iso_add(l, 6, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, 1 + i, 35, 2, i % 2, 0,
                ISO_Q_4, i % 3, 4 * (i % 2), iso_stride_gap(i, 35));
}

const struct iso_check_suite iso_kernel_suite_gemm_q_s8 = {
    .name = "gemm_q_s8",
    .params = "m n blocks bias integers type agap bgap cgap",
    .cases = p_cases,
    .setup = p_setup,
    .call = p_call,
    .reference = p_reference,
    .flops = p_flops,
    .bytes = p_bytes,
    .random = p_random};

/* The same of 8 bits, whose tiles are taller, and parts of k shorter. */
static void p_cases_more(struct iso_check_cases *l) {
    static const size_t ns[] = {1, 4, 7, 8, 9, 15, 16, 17, 31, 33, 50};
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        iso_add(l, 1, 0, 0, 1, 512, 16, 0, 0, 0, 0, 0, 0);
        iso_add(l, 1, 0, 0, 16, 512, 16, 0, 0, 0, 0, 0, 0);
        iso_add(l, 1, 0, 0, 1, 512, 2, 0, 0, ISO_Q_16 | ISO_Q_I8, 0, 0, 0);
        return;
    }
    size_t t = 0;
    for (size_t n = 0; n < iso_count(ns); n++)
        for (size_t m = 0; m <= 18; m++, t++)
            iso_add(l, 30, ISO_CHECK_FILL_UNIFORM,
                    ISO_CHECK_CASE_TRAPLESS | (t % 8 == 1 ? ISO_CHECK_CASE_GOLDEN : 0), m, ns[n],
                    t % 4, t % 2, t % INTEGERS, t % 3 ? 0 : ISO_Q_OFFSETS, t % 3, t / 2 % 5 * 3,
                    t / 7 % 5);
    for (size_t type = 0; type < ALL_TYPES; type++) {
        if (!exists(type, 1))
            continue;
        const size_t block = iso_q_block_of(type), most = block == 256 ? 2 : 5;
        for (size_t m = 1; m <= 9; m++, t++)
            iso_add(l, 10, t % 5 == 1 ? ISO_CHECK_FILL_INTEGER : ISO_CHECK_FILL_UNIFORM,
                    ISO_CHECK_CASE_TRAPLESS | (t % 4 ? 0 : ISO_CHECK_CASE_GOLDEN), m,
                    ns[t % iso_count(ns)], 1 + t % most, t % 2, t / 2 % INTEGERS, type, t % 3,
                    t % 4, t % 5);
        for (unsigned fill = 0; fill < ISO_CHECK_FILL_TOP_AT; fill++)
            iso_add(l, 4, fill, flags_of(fill), 1 + t++ % 9, 37, 1, fill % 2, fill % INTEGERS, type,
                    1, 2, 3);
        iso_add(l, 4, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_ALIGN, 1 + t % 9, 23, 1, t % 2, 0,
                type, 1, 1, 1);
        iso_add(l, 1, ISO_CHECK_FILL_SMALL, ISO_CHECK_CASE_TRAPLESS, 1 + t % 9, 21, 1, t % 2, 0,
                type, 1, 3, 1);
        for (size_t blocks = 256 / block; blocks <= 256 / block + 1; blocks++, t++) /* parts of k */
            iso_add(l, 2, ISO_CHECK_FILL_UNIFORM,
                    ISO_CHECK_CASE_TRAPLESS | (t % 2 ? ISO_CHECK_CASE_GOLDEN : 0), 3 + t % 7, 18,
                    blocks, t % 2, t / 2 % INTEGERS, type, 1, 4, 1);
    }
    for (size_t spot = 0; spot < 19; spot++) /* NaN and infinities in the bias */
        ISO_EACH_POINT_FILL(fill)
    iso_add_at(l, 10, fill, 0, spot, 4, 19, 1, 1, 0, 0, 1, 1, 1);
    for (size_t i = 0; i < ISO_STRIDES; i++)
        iso_add(l, 6, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, 1 + i, 35, 2, i % 2, 0, 0,
                i % 3, 4 * (i % 2), iso_stride_gap(i, 35));
}

const struct iso_check_suite iso_kernel_suite_gemm_q_s8_more = {
    .name = "gemm_q_s8_more",
    .params = "m n blocks bias integers type agap bgap cgap",
    .cases = p_cases_more,
    .setup = p_setup,
    .call = p_call,
    .reference = p_reference,
    .flops = p_flops,
    .bytes = p_bytes,
    .random = p_random_more};
