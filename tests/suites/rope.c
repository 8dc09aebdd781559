/* SPDX-License-Identifier: MIT
 *
 * Suites of rope and rope_table.
 */
#include <isobit/ops.h>

#include "kernels.h"
#include "oracle_kernels.h"
#include <isobit/check.h>
#include "suites/suites.h"

#include <string.h>

/* ---------------------------------------------------------------------------------------- rope */

/* positions 0: rows 0, 1, 2 ..., 1: rows of its own */
enum { R_ROWS, R_HEADS, R_DH, R_ROTARY, R_HALVES, R_POSITIONS, R_INPLACE, R_GAP };
enum { R_Y, R_X, R_TABLE, R_ROWS_AT };
enum { POSITIONS = 11 };

static void rope_cases(struct iso_check_cases *l) {
    static const size_t widths[][2] = {{64, 64}, {128, 128}, {80, 32}, {96, 96}, {256, 64}};
    size_t t = 0;
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        for (size_t halves = 0; halves < 2; halves++)
            iso_add(l, 1, 0, 0, 4, 8, 64, 64, halves, 0, 1);
        return;
    }
    for (size_t dh = 0; dh <= 140; dh++) {
        for (size_t k = 0; k < 4; k++, t++) { /* all of it, all but some, a part */
            const size_t rotary = (k < 2 ? dh - (dh > 5 ? 3 * k : 0) : dh * k / 5) / 2 * 2;
            iso_add(l, 10, t % 11 == 3 ? ISO_CHECK_FILL_WIDE : ISO_CHECK_FILL_UNIFORM,
                    ISO_CHECK_CASE_TRAPLESS | (t % 17 ? 0 : ISO_CHECK_CASE_GOLDEN), 1 + t % 3,
                    1 + t / 2 % 3, dh, rotary, t / 2 % 2, t / 4 % 2, t / 3 % 2, t % 5);
        }
    }
    for (size_t w = 0; w < iso_count(widths); w++) {
        for (size_t k = 0; k < 4; k++)
            iso_add(l, 4, ISO_CHECK_FILL_NORMAL, ISO_CHECK_CASE_TRAPLESS, 3, 5, widths[w][0],
                    widths[w][1], k % 2, 1, k / 2, w);
    }
    for (size_t halves = 0; halves < 2; halves++) {
        for (unsigned fill = 0; fill < ISO_CHECK_FILL_COUNT; fill++)
            iso_add(l, 1, fill, ISO_CHECK_CASE_GOLDEN, 3, 2, 50, 44, halves, fill % 2, fill / 2 % 2,
                    1);
        ISO_EACH_NEW_FILL(fill) {
            for (size_t inplace = 0; inplace < 2; inplace++)
                iso_add(l, 4, fill, 0, 3, 2, 70, 66, halves, inplace, inplace, 0);
        }
        ISO_EACH_POINT_FILL(fill) { /* in x, then in the table */
            for (size_t spot = 0; spot < 2 * 2 * 38 + (size_t)POSITIONS * 36; spot += 7)
                iso_add_at(l, 20, fill, 0, spot, 2, 2, 38, 36, halves, 1, 0, 0);
        }
        iso_add(l, 1, 0, ISO_CHECK_CASE_ALIGN, 2, 2, 37, 34, halves, 1, 0, 1);
        iso_add(l, 1, 0, ISO_CHECK_CASE_ALIGN, 2, 2, 35, 34, halves, 0, 1, 1);
        for (size_t kind = 0; kind < ISO_STRIDES; kind++)
            iso_add(l, 3, 0, ISO_CHECK_CASE_TRAPLESS, 5, 3, 24, 24, halves, kind % 2, kind / 2 % 2,
                    iso_stride_gap(kind, 72));
        iso_add(l, 1, 0, ISO_CHECK_CASE_TRAPLESS, 2, 1, ISO_ROPE_MOST, ISO_ROPE_MOST, halves, 1, 0);
    }
}

static void rope_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t rows = c->p[R_ROWS], n = c->p[R_HEADS] * c->p[R_DH], gap = c->p[R_GAP];
    const size_t rotary = c->p[R_ROTARY], positions = c->p[R_POSITIONS] ? POSITIONS : rows;
    if (c->p[R_INPLACE]) {
        iso_check_inout_f32(o, "y", rows, n, n + gap, c->fill);
        iso_check_absent(o, "x");
    } else {
        iso_check_out(o, "y", rows, n, n + gap);
        iso_check_in_f32(o, "x", rows, n, n + 2 * gap, c->fill);
    }
    /* With a table of any numbers sums of products overflow. */
    iso_check_in_f32(o, "table", positions, rotary, rotary + gap,
                     iso_check_fill_may_overflow(c->fill) ? ISO_CHECK_FILL_UNIFORM : c->fill);
    if (c->p[R_POSITIONS]) {
        uint32_t *at = iso_check_in(o, "rows", sizeof *at, 1, rows, rows);
        for (size_t i = 0; i < rows; i++)
            at[i] = i ? (uint32_t)iso_check_random_below(&o->random, POSITIONS) : POSITIONS - 1;
    } else {
        iso_check_absent(o, "rows");
    }
}

static void rope_call(const void *table, const struct iso_check_case *c,
                      const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    const unsigned x = c->p[R_INPLACE] ? R_Y : R_X;
    const struct iso_rope r = {.heads = c->p[R_HEADS],
                               .dh = c->p[R_DH],
                               .rotary = c->p[R_ROTARY],
                               .halves = (int)c->p[R_HALVES],
                               .table = ISO_CHECK_AT(const float, o, R_TABLE),
                               .ld = o->v[R_TABLE].ld,
                               .position_rows = ISO_CHECK_AT(const uint32_t, o, R_ROWS_AT)};
    t->rope(ISO_CHECK_AT(float, o, R_Y), o->v[R_Y].ld, ISO_CHECK_AT(const float, o, x), o->v[x].ld,
            c->p[R_ROWS], &r);
}

static void rope_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t dh = c->p[R_DH], rotary = c->p[R_ROTARY], half = rotary / 2;
    const unsigned in = c->p[R_INPLACE] ? R_Y : R_X;
    double *expect = iso_check_expect(o, R_Y), *bound = iso_check_bound(o, R_Y);
    float *exact = iso_check_exact(o, R_Y);
    for (size_t i = 0; i < c->p[R_ROWS]; i++) {
        const size_t row = c->p[R_POSITIONS] ? ISO_CHECK_HOST(uint32_t, o, R_ROWS_AT)[i] : i;
        const float *table = ISO_CHECK_HOST(float, o, R_TABLE) + row * o->v[R_TABLE].ld;
        for (size_t e = 0; e < o->v[R_Y].cols; e++) {
            const float *head = ISO_CHECK_HOST(float, o, in) + i * o->v[in].ld + e / dh * dh;
            const size_t j = e % dh, at = i * o->v[R_Y].cols + e;
            if (j >= rotary) {
                expect[at] = (double)head[j], bound[at] = ORACLE_EQUAL, exact[at] = head[j];
                continue;
            }
            /* the pair, and which of it */
            const size_t pair = c->p[R_HALVES] ? j % half : j / 2;
            const size_t first = c->p[R_HALVES] ? pair : 2 * pair;
            const size_t other = c->p[R_HALVES] ? pair + half : 2 * pair + 1;
            expect[at] = iso_oracle_rope(&bound[at], &exact[at], head[first], head[other],
                                         table[pair], table[half + pair], j == other);
        }
    }
}

static double rope_bytes(const struct iso_check_case *c) {
    return 8.0 * (double)c->p[R_ROWS] * (double)c->p[R_HEADS] * (double)c->p[R_DH];
}

static void rope_random(struct iso_check_case *c, struct iso_check_random *r) {
    c->p[R_ROWS] = iso_check_random_log(r, POSITIONS);
    c->p[R_HEADS] = iso_check_random_log(r, 6);
    c->p[R_DH] = iso_check_random_log(r, 300);
    c->p[R_ROTARY] =
        iso_check_random_below(r, 2) ? c->p[R_DH] : iso_check_random_log(r, c->p[R_DH]);
    c->p[R_ROTARY] -= c->p[R_ROTARY] % 2;
    c->p[R_HALVES] = iso_check_random_below(r, 2);
    c->p[R_POSITIONS] = iso_check_random_below(r, 2);
    c->p[R_INPLACE] = iso_check_random_below(r, 2);
    c->p[R_GAP] = iso_check_random_gap(r);
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
    if (c->fill == ISO_CHECK_FILL_UNIFORM || c->fill == ISO_CHECK_FILL_WIDE)
        c->flags = ISO_CHECK_CASE_TRAPLESS;
}

const struct iso_check_suite iso_kernel_suite_rope = {
    .name = "rope",
    .params = "rows heads dh rotary halves positions inplace gap",
    .cases = rope_cases,
    .setup = rope_setup,
    .call = rope_call,
    .reference = rope_reference,
    .bytes = rope_bytes,
    .random = rope_random};

/* ---------------------------------------------------------------------------------- rope_table */

enum { T_FIRST, T_COUNT, T_ROTARY, T_SCALING, T_GAP };
enum { T_TABLE, T_INV_FREQ };
static const float scalings[] = {1, 1.0693147f, 0.1f, -3};

static void rope_table_cases(struct iso_check_cases *l) {
    static const size_t firsts[] = {0,     1,       100,           4090,
                                    65530, 1 << 20, (1 << 24) + 1, ISO_ROPE_POSITIONS - 7};
    size_t t = 0;
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        iso_add(l, 1, 0, 0, 0, 64, 64);
        return;
    }
    for (size_t rotary = 0; rotary <= 132; rotary += 2) {
        for (size_t f = 0; f < iso_count(firsts); f++, t++)
            iso_add(l, 10, t % 3 ? ISO_CHECK_FILL_UNIFORM : ISO_CHECK_FILL_WIDE,
                    (t % 3 ? ISO_CHECK_CASE_TRAPLESS : 0) | (t % 13 ? 0 : ISO_CHECK_CASE_GOLDEN),
                    firsts[f], t % 8, rotary, t / 2 % iso_count(scalings), t % 5);
    }
    for (unsigned fill = 0; fill < ISO_CHECK_FILL_COUNT; fill++)
        iso_add(l, 1, fill, ISO_CHECK_CASE_GOLDEN, (size_t)997 << fill, 3, 46, fill % 4, 1);
    ISO_EACH_NEW_FILL(fill)
    iso_add(l, 2, fill, 0, 12345, 3, 46, fill % 4, 1);
    ISO_EACH_POINT_FILL(fill) {
        for (size_t spot = 0; spot < 11; spot++)
            iso_add_at(l, 10, fill, 0, spot, spot, 2, 22, 0, 0);
    }
    iso_add(l, 1, 0, ISO_CHECK_CASE_ALIGN, 5, 3, 22, 1, 1);
    for (size_t kind = 0; kind < ISO_STRIDES; kind++)
        iso_add(l, 3, 0, 0, 7, 5, 20, 0, iso_stride_gap(kind, 20));
    if (l->plan != ISO_CHECK_PLAN_QUICK) {
        iso_add(l, 1, 0, ISO_CHECK_CASE_ONCE, 0, 4097, 64, 0, 0);
        iso_add(l, 1, ISO_CHECK_FILL_WIDE, ISO_CHECK_CASE_ONCE, ISO_ROPE_POSITIONS - 513, 513, 256,
                1, 0);
    }
}

static void rope_table_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t rotary = c->p[T_ROTARY];
    iso_check_out(o, "table", c->p[T_COUNT], rotary, rotary + c->p[T_GAP]);
    iso_check_in_f32(o, "inv_freq", 1, rotary / 2, rotary / 2, c->fill);
}

static void rope_table_call(const void *table, const struct iso_check_case *c,
                            const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    t->rope_table(ISO_CHECK_AT(float, o, T_TABLE), o->v[T_TABLE].ld, c->p[T_FIRST], c->p[T_COUNT],
                  ISO_CHECK_AT(const float, o, T_INV_FREQ), c->p[T_ROTARY],
                  scalings[c->p[T_SCALING]]);
}

static void rope_table_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t rotary = c->p[T_ROTARY], half = rotary / 2;
    const float *inv_freq = ISO_CHECK_HOST(float, o, T_INV_FREQ);
    double *expect = iso_check_expect(o, T_TABLE), *bound = iso_check_bound(o, T_TABLE);
    for (size_t i = 0; i < c->p[T_COUNT]; i++) {
        for (size_t j = 0; j < rotary; j++)
            expect[i * rotary + j] =
                iso_oracle_rope_table(&bound[i * rotary + j], c->p[T_FIRST] + i, inv_freq[j % half],
                                      j >= half, scalings[c->p[T_SCALING]]);
    }
}

static double rope_table_bytes(const struct iso_check_case *c) {
    return 4.0 * (double)c->p[T_COUNT] * (double)c->p[T_ROTARY];
}

static void rope_table_random(struct iso_check_case *c, struct iso_check_random *r) {
    c->p[T_COUNT] = iso_check_random_log(r, 8);
    c->p[T_FIRST] = iso_check_random_log(r, ISO_ROPE_POSITIONS - 8);
    c->p[T_ROTARY] = 2 * iso_check_random_log(r, 150);
    c->p[T_SCALING] = iso_check_random_below(r, iso_count(scalings));
    c->p[T_GAP] = iso_check_random_gap(r);
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
}

const struct iso_check_suite iso_kernel_suite_rope_table = {.name = "rope_table",
                                                            .params =
                                                                "first count rotary scaling# gap",
                                                            .cases = rope_table_cases,
                                                            .setup = rope_table_setup,
                                                            .call = rope_table_call,
                                                            .reference = rope_table_reference,
                                                            .bytes = rope_table_bytes,
                                                            .random = rope_table_random};
