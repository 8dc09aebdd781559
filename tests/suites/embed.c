/* SPDX-License-Identifier: MIT
 *
 * Suites of embed and positions.
 */
#include <isobit/ops.h>

#include "kernels.h"
#include "oracle_kernels.h"
#include <isobit/check.h>
#include "suites/suites.h"

#include <math.h>

/* --------------------------------------------------------------------------------------- embed */

/* positions 0: none, 1: rows 0, 1, 2 ..., 2: rows of its own; scale: index */
enum { B_COUNT, B_D, B_SCALE, B_POSITIONS, B_GAP };
enum { B_Y, B_IDS, B_TABLE, B_POSITIONS_AT, B_ROWS };
static const float embed_scales[] = {1, 22.627417f, 0.3f, 2, -1};
enum { VOCABULARY = 37, POSITIONS = 23 };

static void embed_cases(struct iso_check_cases *l) {
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        iso_add(l, 1, 0, 0, 32, 512, 1, 1, 0);
        return;
    }
    size_t t = 0;
    for (size_t d = 0; d <= 130; d++) {
        for (size_t positions = 0; positions < 3; positions++, t++)
            iso_add(l, 10, t % 11 == 3 ? ISO_CHECK_FILL_WIDE : ISO_CHECK_FILL_UNIFORM,
                    ISO_CHECK_CASE_TRAPLESS | (t % 13 ? 0 : ISO_CHECK_CASE_GOLDEN), t % 7, d,
                    t / 3 % 5, positions, t % 4);
    }
    for (unsigned fill = 0; fill < ISO_CHECK_FILL_COUNT; fill++)
        iso_add(l, 1, fill, ISO_CHECK_CASE_GOLDEN, 9, 50, fill % 5, fill % 3, 1);
    iso_add(l, 1, 0, ISO_CHECK_CASE_TRAPLESS, 20, 1000, 1, 2, 1);
    iso_add(l, 1, 0, ISO_CHECK_CASE_ALIGN, 3, 35, 1, 2, 1);
    ISO_EACH_NEW_FILL(fill) {
        for (size_t positions = 0; positions < 3; positions++)
            iso_add(l, 4, fill, 0, 9, 50, fill % 5, positions, 1);
    }
    ISO_EACH_POINT_FILL(fill) { /* in the table, then in the positions */
        for (size_t spot = 0; spot < (size_t)(VOCABULARY + POSITIONS) * 9; spot += 4)
            iso_add_at(l, 40, fill, 0, spot, 30, 9, 1, 2, 0);
    }
    static const size_t widths[] = {64, 512, 768, 1024, 2048, 4096};
    for (size_t d = 0; d < iso_count(widths); d++)
        iso_add(l, 3, 0, ISO_CHECK_CASE_TRAPLESS, 5, widths[d], 1, d % 3, d % 2);
    for (size_t kind = 0; kind < ISO_STRIDES; kind++) {
        for (size_t d = 15; d <= 66; d += 17)
            iso_add(l, 4, 0, ISO_CHECK_CASE_TRAPLESS, 6, d, 1, kind % 3, iso_stride_gap(kind, d));
    }
    for (size_t positions = 0; positions < 3; positions++) /* whole lines, non-temporal stores */
        iso_add(l, 3, 0, ISO_CHECK_CASE_TRAPLESS, 3, 90 + positions, 1, positions, 6 - positions);
}

static void embed_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t count = c->p[B_COUNT], d = c->p[B_D];
    size_t rows = c->p[B_POSITIONS] == 1 ? count : POSITIONS;
    iso_check_out(o, "y", count, d, d + c->p[B_GAP]);
    uint32_t *ids = iso_check_in(o, "ids", sizeof *ids, 1, count, count);
    for (size_t i = 0; i < count; i++)
        ids[i] = i ? (uint32_t)iso_check_random_below(&o->random, VOCABULARY) : VOCABULARY - 1;
    iso_check_in_f32(o, "table", VOCABULARY, d, d, c->fill);
    if (c->p[B_POSITIONS])
        iso_check_in_f32(o, "positions", rows, d, d, c->fill);
    else
        iso_check_absent(o, "positions");
    if (c->p[B_POSITIONS] == 2) {
        uint32_t *at = iso_check_in(o, "rows", sizeof *at, 1, count, count);
        for (size_t i = 0; i < count; i++)
            at[i] = i ? (uint32_t)iso_check_random_below(&o->random, POSITIONS) : POSITIONS - 1;
    } else {
        iso_check_absent(o, "rows");
    }
}

static void embed_call(const void *table, const struct iso_check_case *c,
                       const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    t->embed(ISO_CHECK_AT(float, o, B_Y), o->v[B_Y].ld, ISO_CHECK_AT(const uint32_t, o, B_IDS),
             c->p[B_COUNT], ISO_CHECK_AT(const float, o, B_TABLE), c->p[B_D],
             embed_scales[c->p[B_SCALE]], ISO_CHECK_AT(const float, o, B_POSITIONS_AT),
             ISO_CHECK_AT(const uint32_t, o, B_ROWS), c->p[B_COUNT] % 2);
}

static void embed_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t d = c->p[B_D];
    if (iso_check_fill_may_overflow(c->fill))
        return;
    double *expect = iso_check_expect(o, B_Y), *bound = iso_check_bound(o, B_Y);
    double scale = (double)embed_scales[c->p[B_SCALE]];
    for (size_t i = 0; i < c->p[B_COUNT]; i++) {
        const float *x =
            ISO_CHECK_HOST(float, o, B_TABLE) + ISO_CHECK_HOST(uint32_t, o, B_IDS)[i] * d;
        size_t row = c->p[B_POSITIONS] == 2 ? ISO_CHECK_HOST(uint32_t, o, B_ROWS)[i] : i;
        for (size_t j = 0; j < d; j++) {
            double t = scale * (double)x[j], y = t;
            if (c->p[B_POSITIONS])
                y += (double)ISO_CHECK_HOST(float, o, B_POSITIONS_AT)[row * d + j];
            expect[i * d + j] = y;
            /* one rounding; the sum in double has one too */
            bound[i * d + j] =
                ORACLE_U * (fabs(y) + 0x1p-28 * fabs(t)) * (1 + 0x1p-20) + ORACLE_TINY;
            if (!c->p[B_POSITIONS] && c->p[B_SCALE] != 1 && c->p[B_SCALE] != 2)
                bound[i * d + j] = ORACLE_EQUAL;
        }
    }
}

static double embed_bytes(const struct iso_check_case *c) {
    return 4.0 * (double)c->p[B_COUNT] * (double)c->p[B_D] * (c->p[B_POSITIONS] ? 3 : 2);
}

static void embed_random(struct iso_check_case *c, struct iso_check_random *r) {
    c->p[B_COUNT] = iso_check_random_log(r, 40);
    c->p[B_D] = iso_check_random_log(r, 700);
    c->p[B_SCALE] = iso_check_random_below(r, iso_count(embed_scales));
    c->p[B_POSITIONS] = iso_check_random_below(r, 3);
    c->p[B_GAP] = iso_check_random_gap(r);
    c->fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
    if (c->fill == ISO_CHECK_FILL_UNIFORM || c->fill == ISO_CHECK_FILL_WIDE)
        c->flags = ISO_CHECK_CASE_TRAPLESS;
}

const struct iso_check_suite iso_kernel_suite_embed = {.name = "embed",
                                                       .params = "count d scale# positions gap",
                                                       .cases = embed_cases,
                                                       .setup = embed_setup,
                                                       .call = embed_call,
                                                       .reference = embed_reference,
                                                       .bytes = embed_bytes,
                                                       .random = embed_random};

/* ----------------------------------------------------------------------------------- positions */

enum { T_FIRST, T_COUNT, T_D, T_LAYOUT, T_GAP };

static void positions_cases(struct iso_check_cases *l) {
    static const size_t firsts[] = {0, 1, 100, 1000, 4090, 65530, (1 << 20) - 8};
    static const size_t ds[] = {0,  1,  2,  3,  4,  5,  7,  8,   15,  16,  17,
                                31, 32, 33, 63, 64, 65, 99, 128, 129, 130, 512};
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        iso_add(l, 1, 0, 0, 0, 64, 512, 0, 0);
        return;
    }
    for (size_t layout = 0; layout < 3; layout++) {
        for (size_t d = 0; d < iso_count(ds); d++) {
            for (size_t f = 0; f < iso_count(firsts); f++)
                iso_add(l, 8, 0, (d + f) % 6 ? 0 : ISO_CHECK_CASE_GOLDEN, firsts[f],
                        1 + (d + f) % 7, ds[d], layout, d % 3);
        }
        iso_add(l, 1, 0, ISO_CHECK_CASE_ALIGN, 5, 3, 21, layout, 1);
        for (size_t kind = 0; kind < ISO_STRIDES; kind++)
            iso_add(l, 3, 0, 0, 7, 5, 19 + kind, layout, iso_stride_gap(kind, 19 + kind));
        iso_add(l, 1, 0, 0, 5, 0, 21, layout, 1);
        if (l->plan != ISO_CHECK_PLAN_QUICK) {
            iso_add(l, 1, 0, ISO_CHECK_CASE_ONCE, 0, 4097, 64, layout, 0);
            iso_add(l, 1, 0, ISO_CHECK_CASE_ONCE, 0, 513, 512, layout, 0);
        }
    }
}

static void positions_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    iso_check_out(o, "y", c->p[T_COUNT], c->p[T_D], c->p[T_D] + c->p[T_GAP]);
}

static void positions_call(const void *table, const struct iso_check_case *c,
                           const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    t->positions(ISO_CHECK_AT(float, o, 0), o->v[0].ld, c->p[T_FIRST], c->p[T_COUNT], c->p[T_D],
                 (int)c->p[T_LAYOUT]);
}

static void positions_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t d = c->p[T_D];
    double *expect = iso_check_expect(o, 0), *bound = iso_check_bound(o, 0);
    for (size_t i = 0; i < c->p[T_COUNT]; i++) {
        for (size_t j = 0; j < d; j++)
            expect[i * d + j] = iso_oracle_position(&bound[i * d + j], c->p[T_FIRST] + i, j, d,
                                                    (int)c->p[T_LAYOUT]);
    }
}

static double positions_bytes(const struct iso_check_case *c) {
    return 4.0 * (double)c->p[T_COUNT] * (double)c->p[T_D];
}

static void positions_random(struct iso_check_case *c, struct iso_check_random *r) {
    c->p[T_FIRST] = iso_check_random_log(r, (1 << 20) - 16);
    c->p[T_COUNT] = iso_check_random_log(r, 8);
    c->p[T_D] = iso_check_random_log(r, 600);
    c->p[T_LAYOUT] = iso_check_random_below(r, 3);
    c->p[T_GAP] = iso_check_random_gap(r);
}

const struct iso_check_suite iso_kernel_suite_positions = {.name = "positions",
                                                           .params = "first count d layout gap",
                                                           .cases = positions_cases,
                                                           .setup = positions_setup,
                                                           .call = positions_call,
                                                           .reference = positions_reference,
                                                           .bytes = positions_bytes,
                                                           .random = positions_random};
