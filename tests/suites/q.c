/* SPDX-License-Identifier: MIT
 *
 * Suites of weights of 4 and 8 bits in groups: gemm_q, whose bits are those of a chain of fmaf over
 * numbers times scales, and gemm_dequantise, whose results are one product each. And the same of
 * the types that came later, with groups of 16, with offsets and with scales of 8 bits:
 * gemm_q_more, gemm_dequantise_more.
 */
#include <math.h>
#include <string.h>

#include "kernels.h"
#include "oracle_kernels.h"
#include <isobit/check.h>
#include "suites/suites.h"

/* What isobit/ops.h says of the layout, in words of 32 bits; a type is that of kernels.h. */
enum { PANEL = 16, TYPES = 12, ALL_TYPES = 64 };

static size_t group_of(size_t type) {
    static const size_t groups[] = {32, 64, 128, 16};
    return groups[type / 4 % 4];
}
static size_t factors_of(size_t type) { return type & ISO_Q_OFFSETS ? 2 : 1; }
static size_t scale_words(size_t type) {
    return factors_of(type) * (type & ISO_Q_I8 ? 4 : type & ISO_Q_F32 ? 16 : 8);
}
static size_t group_words(size_t type) {
    return scale_words(type) + PANEL * group_of(type) * (type & ISO_Q_4 ? 4 : 8) / 32;
}
static size_t head_words(size_t type) { return type & ISO_Q_I8 ? 8 * factors_of(type) : 0; }
/* Steps of a block, which has groups and what is before them, and its words. */
size_t iso_q_block_of(size_t type) { return type & ISO_Q_I8 ? 256 : group_of(type); }
size_t iso_q_block_words(size_t type) {
    return head_words(type) + iso_q_block_of(type) / group_of(type) * group_words(type);
}

/* Types that exist and are not those of the first suites. */
static int is_more(size_t type) {
    const int old = type < TYPES, none = type & ISO_Q_I8 && type & ISO_Q_F32;
    return !old && !none;
}

/* ------------------------------------------------------------------------------------ numbers */

/* The largest F16 that is not above the magnitude: they rise with their bits. */
static uint16_t half_of(float x) {
    unsigned low = 0, high = 0x7bff;
    while (low < high) {
        const unsigned middle = (low + high + 1) / 2;
        if ((double)iso_half_value(middle, ISO_W16_F16) <= fabs((double)x))
            low = middle;
        else
            high = middle - 1;
    }
    return (uint16_t)((signbit(x) ? 0x8000 : 0) | low);
}

/* A scale: what the fill says, but finite, as callers have seen to. */
static float scale_fill(struct iso_check_operands *o, unsigned fill) {
    float x = fill == ISO_CHECK_FILL_BITS ? 0 : iso_check_fill_value(o, fill);
    if (fill == ISO_CHECK_FILL_BITS) {
        const uint32_t bits = (uint32_t)iso_check_random_next(&o->random);
        memcpy(&x, &bits, sizeof x);
    }
    return isfinite(x) ? x : 0;
}

/* `which`: 0 for scales, 1 for offsets; F16 at the beginning of a block, or of a group. */
static void set_half(uint32_t *at, size_t which, size_t column, float value) {
    const uint16_t half = half_of(value);
    memcpy((char *)at + 2 * (which * PANEL + column), &half, 2);
}
static float get_half(const uint32_t *at, size_t which, size_t column) {
    uint16_t half;
    memcpy(&half, (const char *)at + 2 * (which * PANEL + column), 2);
    return iso_half_value(half, ISO_W16_F16);
}

static void set_number(uint32_t *group, size_t step, size_t column, size_t type, int number) {
    uint32_t *numbers = group + scale_words(type);
    const signed char byte = (signed char)number;
    if (type & ISO_Q_4)
        numbers[step / 8 * PANEL + column] |= ((uint32_t)number & 15) << (28 - step % 8 * 4);
    else
        memcpy((char *)numbers + step * PANEL + column, &byte, 1);
}

static float factor(const uint32_t *block, const uint32_t *group, size_t which, size_t column,
                    size_t type) {
    float value;
    signed char byte;
    if (type & ISO_Q_I8) {
        memcpy(&byte, (const char *)group + which * PANEL + column, 1);
        return (float)byte * get_half(block, which, column);
    }
    if (!(type & ISO_Q_F32))
        return get_half(group, which, column);
    memcpy(&value, (const char *)group + 4 * (which * PANEL + column), 4);
    return value;
}

/* Column j, step p of panels `ld` words apart. */
struct iso_q_weight iso_q_weight(const uint32_t *b, size_t ld, size_t j, size_t p, size_t type) {
    const uint32_t *block = b + j / PANEL * ld + p / iso_q_block_of(type) * iso_q_block_words(type);
    const uint32_t *group =
        block + head_words(type) + p % iso_q_block_of(type) / group_of(type) * group_words(type);
    const uint32_t *numbers = group + scale_words(type);
    const size_t column = j % PANEL, step = p % group_of(type);
    struct iso_q_weight w = {.scale = factor(block, group, 0, column, type)};
    signed char byte;
    memcpy(&byte, (const char *)numbers + step * PANEL + column, 1);
    if (type & ISO_Q_4) {
        const int bits = (int)(numbers[step / 8 * PANEL + column] >> (28 - step % 8 * 4) & 15);
        byte = (signed char)(bits < 8 || type & ISO_Q_OFFSETS ? bits : bits - 16);
    }
    w.number = (float)byte;
    if (type & ISO_Q_OFFSETS)
        w.offset = factor(block, group, 1, column, type);
    return w;
}

/* As a float. */
static float weight(const uint32_t *b, size_t ld, size_t j, size_t p, size_t type) {
    const struct iso_q_weight w = iso_q_weight(b, ld, j, p, type);
    return type & ISO_Q_OFFSETS ? fmaf(w.number, w.scale, w.offset) : w.number * w.scale;
}

/* A scale or an offset of a group, and with int8 of its block where the group is the first. */
static void set_factor(struct iso_check_operands *o, uint32_t *block, uint32_t *group, size_t which,
                       size_t column, size_t type, unsigned fill) {
    const bool integer = fill == ISO_CHECK_FILL_INTEGER, small = type & ISO_Q_I8;
    float value = (float)(1 + which);
    if (!integer && (!small || group == block + head_words(type)))
        value = scale_fill(o, fill);
    if (small && group == block + head_words(type))
        set_half(block, which, column, value);
    if (small) {
        const signed char byte =
            (signed char)(integer ? 1 : (iso_check_random_next(&o->random) >> 40 & 255) - 128);
        memcpy((char *)group + which * PANEL + column, &byte, 1);
    } else if (type & ISO_Q_F32) {
        memcpy((char *)group + 4 * (which * PANEL + column), &value, 4);
    } else {
        set_half(group, which, column, value);
    }
}

/* [n/16][k/group], `ld` words between panels; what is beyond n is there, and anything. */
void iso_q_panels(struct iso_check_operands *o, size_t n, size_t k, size_t ld, size_t type,
                  unsigned fill) {
    const size_t panels = (n + PANEL - 1) / PANEL, group = group_of(type),
                 each = iso_q_block_of(type);
    const size_t words = k / each * iso_q_block_words(type);
    const bool integer = fill == ISO_CHECK_FILL_INTEGER;
    const int least4 = type & ISO_Q_OFFSETS ? 0 : -8;
    uint32_t *b = iso_check_in(o, "b", sizeof *b, panels, words, ld);
    for (size_t panel = 0; panel < panels; panel++)
        for (size_t g = 0; g < k / group; g++) {
            uint32_t *block = b + panel * ld + g * group / each * iso_q_block_words(type);
            uint32_t *at = block + head_words(type) + g * group % each / group * group_words(type);
            memset(at, 0, 4 * group_words(type));
            for (size_t j = 0; j < PANEL; j++) {
                for (size_t which = 0; which < factors_of(type); which++)
                    set_factor(o, block, at, which, j, type, fill);
                for (size_t step = 0; step < group; step++) {
                    const int r = (int)(iso_check_random_next(&o->random) >> 40 & 255);
                    set_number(at, step, j, type,
                               integer          ? r % 9 - (least4 ? 4 : 0)
                               : type & ISO_Q_4 ? r % 16 + least4
                                                : r - 128);
                }
            }
        }
}

/* ------------------------------------------------------------------------------------- gemm_q */

enum { Q_M, Q_N, Q_GROUPS, Q_ADD, Q_STEP, Q_TYPE, Q_AGAP, Q_BGAP, Q_CGAP };
enum { Q_C, Q_A, Q_B };

static size_t q_k(const struct iso_check_case *c) {
    return c->p[Q_GROUPS] * iso_q_block_of(c->p[Q_TYPE]);
}
static size_t q_ld(const struct iso_check_case *c) {
    return c->p[Q_GROUPS] * iso_q_block_words(c->p[Q_TYPE]) + c->p[Q_BGAP];
}

static void q_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t *p = c->p, k = q_k(c);
    if (p[Q_ADD])
        iso_check_inout_f32(o, "c", p[Q_M], p[Q_N], p[Q_N] + p[Q_CGAP], c->fill);
    else
        iso_check_out(o, "c", p[Q_M], p[Q_N], p[Q_N] + p[Q_CGAP]);
    iso_check_in_f32(o, "a", p[Q_M], k, k + p[Q_AGAP], c->fill);
    iso_q_panels(o, p[Q_N], k, q_ld(c), p[Q_TYPE], c->fill);
}

static void q_call(const void *table, const struct iso_check_case *c,
                   const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    const size_t *p = c->p, k = q_k(c), lda = k + p[Q_AGAP], ldc = p[Q_N] + p[Q_CGAP];
    const size_t step = p[Q_STEP] < t->q_mr ? p[Q_STEP] : t->q_mr;
    size_t i = 0;
    do {
        const size_t m = p[Q_M] - i < step ? p[Q_M] - i : step;
        t->gemm_q(ISO_CHECK_AT(float, o, Q_C) + i * ldc, ldc,
                  ISO_CHECK_AT(const float, o, Q_A) + i * lda, lda,
                  ISO_CHECK_AT(const uint32_t, o, Q_B), q_ld(c), m, p[Q_N], k, (int)p[Q_TYPE],
                  (p[Q_ADD] ? ISO_DIRECT_ADD : 0) | (p[Q_N] % 2 ? ISO_DIRECT_BEYOND_L2 : 0));
        i += m;
    } while (i < p[Q_M]);
}

static void q_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t *p = c->p, m = p[Q_M], n = p[Q_N], k = q_k(c);
    float *w = iso_check_operands_alloc(o, (k + 1) * sizeof *w);
    for (size_t j = 0; j < n; j++) {
        for (size_t step = 0; step < k; step++)
            w[step] = weight(ISO_CHECK_HOST(uint32_t, o, Q_B), q_ld(c), j, step, p[Q_TYPE]);
        iso_column_reference(o, c, Q_C, ISO_CHECK_HOST(float, o, Q_A), k + p[Q_AGAP], w, m, k, j,
                             p[Q_ADD] ? ISO_CHECK_HOST(float, o, Q_C) + j : NULL, n + p[Q_CGAP], n);
    }
}

static double q_flops(const void *table, const struct iso_check_case *c) {
    (void)table;
    return 2.0 * (double)c->p[Q_M] * (double)c->p[Q_N] * (double)q_k(c);
}

static double q_bytes(const struct iso_check_case *c) {
    const double m = (double)c->p[Q_M], n = (double)c->p[Q_N], k = (double)q_k(c);
    return 4.0 * m * (n + k) + n / 16 * 4.0 * (double)q_ld(c);
}

static unsigned flags_of(unsigned fill) {
    return iso_check_fill_is_finite(fill) ? ISO_CHECK_CASE_TRAPLESS : 0;
}

static size_t random_more(struct iso_check_random *r) {
    size_t type;
    do
        type = iso_check_random_below(r, ALL_TYPES);
    while (!is_more(type));
    return type;
}

static void q_random_of(struct iso_check_case *c, struct iso_check_random *r, int more) {
    size_t *p = c->p;
    p[Q_M] = iso_check_random_log(r, 15);
    p[Q_N] = iso_check_random_log(r, 300);
    p[Q_TYPE] = more ? random_more(r) : iso_check_random_below(r, TYPES);
    p[Q_GROUPS] = iso_check_random_log(r, ISO_K_BLOCK / iso_q_block_of(p[Q_TYPE]));
    while (p[Q_M] * p[Q_N] * q_k(c) > 1 << 17)
        p[Q_N] > 1 ? (p[Q_N] /= 2) : (p[Q_M] /= 2);
    p[Q_ADD] = iso_check_random_below(r, 2);
    p[Q_STEP] = 1 + iso_check_random_below(r, 8);
    p[Q_AGAP] = iso_check_random_gap(r);
    p[Q_BGAP] = iso_check_random_gap(r);
    p[Q_CGAP] = iso_check_random_gap(r);
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
    c->flags = flags_of(c->fill);
}

static void q_random(struct iso_check_case *c, struct iso_check_random *r) { q_random_of(c, r, 0); }
static void q_random_more(struct iso_check_case *c, struct iso_check_random *r) {
    q_random_of(c, r, 1);
}

/* Every height, type and tail of n. */
static void q_cases(struct iso_check_cases *l) {
    static const size_t ns[] = {1,  3,  4,  7,  8,  9,  15, 16, 17,  23,  24,  31,
                                32, 33, 47, 48, 49, 63, 64, 65, 100, 127, 128, 130};
    static const size_t gaps[] = {0, 1, 3, 13, 64};
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        for (size_t type = 0; type < 2; type++)
            iso_add(l, 1, 0, 0, 1, 512, 16, 0, 8, type, 0, 0, 0);
        return;
    }
    size_t t = 0;
    for (size_t groups = 0; groups < 4; groups++)
        for (size_t n = 0; n < iso_count(ns); n++)
            for (size_t m = 0; m <= 7; m++)
                for (size_t type = 0; type < 2; type++, t++) {
                    const size_t more = t / 2 % 6 / 2 * 4 + t % 4 / 2 * 2; /* groups and scales */
                    const bool golden = (groups == 1 && (m + n) % 2) || (m == 5 && n % 4 == 2);
                    iso_add(l, 21, t % 3 == 1 ? ISO_CHECK_FILL_INTEGER : ISO_CHECK_FILL_UNIFORM,
                            ISO_CHECK_CASE_TRAPLESS | (golden ? ISO_CHECK_CASE_GOLDEN : 0), m,
                            ns[n], groups, t / 2 % 2, 8, type + more, gaps[t / 2 % 5],
                            gaps[t / 5 % 5], gaps[t / 7 % 5]);
                }
    for (unsigned fill = 0; fill < ISO_CHECK_FILL_TOP_AT; fill++) /* kinds of numbers */
        for (size_t m = 1; m <= 6; m++)
            for (size_t type = 0; type < 4; type++)
                iso_add(l, 8, fill, flags_of(fill), m, 77, 2, m % 2, 8, type, 1, 2, 3);
    for (size_t type = 0; type < 4; type++) {
        for (size_t m = 1; m <= 6; m++) { /* all alignments; results that are subnormal */
            iso_add(l, 6, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_ALIGN, m, 43, 1, m % 2, 8, type, 1,
                    1, 1);
            iso_add(l, 1, ISO_CHECK_FILL_SMALL, ISO_CHECK_CASE_TRAPLESS, m, 49, 2, m % 2, 8, type,
                    1, 3, 1);
        }
        iso_add(l, 4, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, 6, 50, ISO_K_BLOCK / 32, 0,
                8, type, 0, 0, 0);
        for (size_t i = 0; i < ISO_STRIDES * ISO_STRIDES; i++) /* of a and c */
            iso_add(l, 12, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, 1 + i % 6, 35, 1, i % 2,
                    8, type, iso_stride_gap(i % ISO_STRIDES, 32), i % 4,
                    iso_stride_gap(i / ISO_STRIDES, 35));
    }
    for (size_t spot = 0; spot < 4 * 19 + 4 * 32; spot++) /* NaN and infinities in c and a */
        ISO_EACH_POINT_FILL(fill)
    iso_add_at(l, 30, fill, 0, spot, 4, 19, 1, 1, 8, spot % 2, 1, 1, 1);
}

const struct iso_check_suite iso_kernel_suite_gemm_q = {
    .name = "gemm_q",
    .params = "m n groups add step type agap bgap cgap",
    .cases = q_cases,
    .setup = q_setup,
    .call = q_call,
    .reference = q_reference,
    .flops = q_flops,
    .bytes = q_bytes,
    .random = q_random};

/* Of each type every height, tails, kinds of numbers, alignments. */
static void q_cases_more(struct iso_check_cases *l) {
    static const size_t ns[] = {1, 16, 23, 47, 64, 65, 130};
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        static const size_t types[] = {ISO_Q_4 | ISO_Q_OFFSETS | ISO_Q_I8, /* Q4_K */
                                       ISO_Q_16 | ISO_Q_I8};               /* Q6_K */
        for (size_t t = 0; t < iso_count(types); t++)
            iso_add(l, 1, 0, 0, 1, 512, 2, 0, 8, types[t], 0, 0, 0);
        return;
    }
    size_t t = 0;
    for (size_t type = 0; type < ALL_TYPES; type++) {
        if (!is_more(type))
            continue;
        const size_t most = iso_q_block_of(type) == 256 ? 1 : 3;
        for (size_t n = 0; n < iso_count(ns); n++)
            for (size_t m = 1; m <= 7; m++, t++)
                iso_add(l, 21, t % 5 == 1 ? ISO_CHECK_FILL_INTEGER : ISO_CHECK_FILL_UNIFORM,
                        ISO_CHECK_CASE_TRAPLESS | (t % 4 ? 0 : ISO_CHECK_CASE_GOLDEN), m, ns[n],
                        1 + t % most, t % 2, 8, type, t % 3, t % 4, t % 5);
        for (unsigned fill = 0; fill < ISO_CHECK_FILL_TOP_AT; fill++)
            iso_add(l, 8, fill, flags_of(fill), 1 + t++ % 6, 77, 1, fill % 2, 8, type, 1, 2, 3);
        iso_add(l, 6, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_ALIGN, 1 + t % 6, 43, 1, t % 2, 8,
                type, 1, 1, 1);
        iso_add(l, 4, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, 6, 50,
                ISO_K_BLOCK / iso_q_block_of(type), 0, 8, type, 0, 0, 0);
    }
}

const struct iso_check_suite iso_kernel_suite_gemm_q_more = {
    .name = "gemm_q_more",
    .params = "m n groups add step type agap bgap cgap",
    .cases = q_cases_more,
    .setup = q_setup,
    .call = q_call,
    .reference = q_reference,
    .flops = q_flops,
    .bytes = q_bytes,
    .random = q_random_more};

/* ---------------------------------------------------------------------------- gemm_dequantise */

/* all: every number with every scale of F16, 128 scales a case, from `all` - 1 times that on. */
enum { X_N, X_GROUPS, X_TYPE, X_BGAP, X_ALL };
enum { X_PANELS, X_B };

static size_t x_k(const struct iso_check_case *c) {
    return c->p[X_GROUPS] * iso_q_block_of(c->p[X_TYPE]);
}
static size_t x_ld(const struct iso_check_case *c) {
    return c->p[X_GROUPS] * iso_q_block_words(c->p[X_TYPE]) + c->p[X_BGAP];
}

/* Each column another scale; the numbers of 8 groups of 32 steps are all that there are. */
static void all_setup(uint32_t *b, const struct iso_check_case *c) {
    const size_t type = c->p[X_TYPE], groups = c->p[X_GROUPS];
    for (size_t panel = 0; panel < c->p[X_N] / PANEL; panel++)
        for (size_t g = 0; g < groups; g++)
            for (size_t j = 0; j < PANEL; j++) {
                uint32_t *at = b + panel * x_ld(c) + g * group_words(type);
                const size_t bits = (c->p[X_ALL] - 1) * c->p[X_N] + panel * PANEL + j;
                const uint16_t half = (uint16_t)((bits >> 10) % 31 << 10 | (bits & 1023));
                memcpy((char *)at + 2 * j, &half, 2);
                for (size_t s = 0; j == 0 && s < group_words(type) - scale_words(type); s++)
                    at[scale_words(type) + s] = 0;
                for (size_t s = 0; s < 32; s++)
                    set_number(at, s, j, type,
                               (int)((g * 32 + s) % (type & ISO_Q_4 ? 16 : 256)) -
                                   (type & ISO_Q_4 ? 8 : 128));
            }
}

static void x_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t *p = c->p, panel = x_k(c) * PANEL;
    iso_check_out(o, "panels", (p[X_N] + PANEL - 1) / PANEL, panel, panel);
    iso_q_panels(o, p[X_N], x_k(c), x_ld(c), p[X_TYPE], c->fill);
    if (p[X_ALL])
        all_setup(ISO_CHECK_HOST(uint32_t, o, X_B), c);
}

static void x_call(const void *table, const struct iso_check_case *c,
                   const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    t->gemm_dequantise(ISO_CHECK_AT(float, o, X_PANELS), ISO_CHECK_AT(const uint32_t, o, X_B),
                       x_ld(c), c->p[X_N], x_k(c), (int)c->p[X_TYPE]);
}

static void x_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t *p = c->p, k = x_k(c), panel = k * PANEL;
    float *exact = iso_check_exact(o, X_PANELS);
    for (size_t j = 0; j < (p[X_N] + PANEL - 1) / PANEL * PANEL; j++)
        for (size_t step = 0; step < k; step++)
            exact[j / PANEL * panel + step * PANEL + j % PANEL] =
                weight(ISO_CHECK_HOST(uint32_t, o, X_B), x_ld(c), j, step, p[X_TYPE]);
}

static double x_bytes(const struct iso_check_case *c) {
    return 4.0 * (double)c->p[X_N] * (double)(x_k(c) + x_ld(c) / PANEL);
}

static void x_random_of(struct iso_check_case *c, struct iso_check_random *r, int more) {
    size_t *p = c->p;
    p[X_N] = iso_check_random_log(r, 300), p[X_GROUPS] = iso_check_random_log(r, more ? 2 : 5);
    p[X_TYPE] = more ? random_more(r) : iso_check_random_below(r, TYPES);
    p[X_BGAP] = iso_check_random_gap(r);
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
    c->flags = flags_of(c->fill);
}
static void x_random(struct iso_check_case *c, struct iso_check_random *r) { x_random_of(c, r, 0); }
static void x_random_more(struct iso_check_case *c, struct iso_check_random *r) {
    x_random_of(c, r, 1);
}

static void x_cases(struct iso_check_cases *l) {
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        for (size_t type = 0; type < 2; type++)
            iso_add(l, 1, 0, 0, 96, 16, type, 0, 0);
        return;
    }
    for (size_t type = 0; type < TYPES; type++) {
        for (size_t n = 0; n <= 50; n++)
            for (size_t groups = 0; groups < 3; groups++)
                iso_add(l, 9, ISO_CHECK_FILL_UNIFORM,
                        ISO_CHECK_CASE_TRAPLESS | (n % 9 == 5 ? ISO_CHECK_CASE_GOLDEN : 0), n,
                        groups, type, (n + groups) % 3, 0);
        for (unsigned fill = 0; fill < ISO_CHECK_FILL_TOP_AT; fill++)
            iso_add(l, 2, fill, flags_of(fill), 50, 2, type, 1, 0);
        iso_add(l, 1, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_ALIGN, 43, 1, type, 1, 0);
    }
    for (size_t type = 0; type < 2; type++)
        for (size_t part = 1; part <= 31 * 1024 / 128; part++)
            iso_add(l, 10, 0, ISO_CHECK_CASE_ONCE, 128, type ? 1 : 8, type, 0, part);
}

const struct iso_check_suite iso_kernel_suite_gemm_dequantise = {.name = "gemm_dequantise",
                                                                 .params = "n groups type bgap all",
                                                                 .cases = x_cases,
                                                                 .setup = x_setup,
                                                                 .call = x_call,
                                                                 .reference = x_reference,
                                                                 .bytes = x_bytes,
                                                                 .random = x_random};

static void x_cases_more(struct iso_check_cases *l) {
    static const size_t ns[] = {0, 1, 5, 16, 17, 31, 50};
    size_t t = 0;
    for (size_t type = 0; type < ALL_TYPES && l->plan != ISO_CHECK_PLAN_BENCH; type++) {
        if (!is_more(type))
            continue;
        for (size_t n = 0; n < iso_count(ns); n++, t++)
            iso_add(l, 9, ISO_CHECK_FILL_UNIFORM,
                    ISO_CHECK_CASE_TRAPLESS | (t % 3 ? 0 : ISO_CHECK_CASE_GOLDEN), ns[n], 1 + t % 2,
                    type, t % 3, 0);
        for (unsigned fill = 0; fill < ISO_CHECK_FILL_TOP_AT; fill++)
            iso_add(l, 2, fill, flags_of(fill), 50, 2, type, 1, 0);
        iso_add(l, 1, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_ALIGN, 43, 1, type, 1, 0);
    }
}

const struct iso_check_suite iso_kernel_suite_gemm_dequantise_more = {
    .name = "gemm_dequantise_more",
    .params = "n groups type bgap all",
    .cases = x_cases_more,
    .setup = x_setup,
    .call = x_call,
    .reference = x_reference,
    .bytes = x_bytes,
    .random = x_random_more};
