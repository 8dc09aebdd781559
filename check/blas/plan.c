/* SPDX-License-Identifier: MIT
 *
 * The cases: for each routine, in each way to call it, those of each family. The same ones
 * everywhere; a quick plan takes some of them.
 */
#include "blas.h"

#include <stdio.h>
#include <stdlib.h>

#include "../common.h"

struct plan_state {
    struct blas_plan *plan;
    bool quick;
    unsigned turn; /* goes through transpositions, factors and fills */
};

static void add(struct plan_state *s, struct blas_case c) {
    struct blas_plan *p = s->plan;
    if (p->count == p->room) {
        p->room = p->room ? 2 * p->room : 1024;
        p->v = realloc(p->v, p->room * sizeof *p->v);
        if (!p->v)
            iso_check_die("memory");
    }
    c.seed = (p->count + 1) * 2654435761u % 1000003;
    c.offset = (unsigned)(p->count * 7 + 1) % 64;
    p->v[p->count++] = c;
}

/* ------------------------------------------------------------------------------------- sizes */

struct size {
    int m, n, k;
};

static const struct size few[] = {{1, 1, 1}, {3, 4, 5}, {5, 7, 2}, {17, 33, 9}, {40, 24, 65}};
static const struct size empty[] = {{0, 3, 2}, {3, 0, 2}, {3, 2, 0}};
static const struct size bits[] = {{5, 7, 9}, {16, 16, 16}, {33, 48, 65}, {64, 40, 300}};
static const struct size large[] = {{96, 128, 160}, {64, 200, 1000}, {256, 320, 256}};
static const int edges[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 23, 31, 32, 33};
static const int long_ones[] = {63, 64, 65, 100, 127, 128, 129, 255, 257, 1000, 2049};
#define COUNT(list) (sizeof(list) / sizeof *(list))

static bool on_vectors(enum blas_routine routine) { return routine >= BLAS_DOT; }

/* Its sizes: m and n of a matrix, n of a vector, and the k of a product. */
static struct blas_case sized(struct blas_case c, struct size size) {
    c.m = size.m;
    c.n = size.n;
    c.k = size.k;
    if (c.routine == BLAS_SYRK) /* n and k */
        c.n = size.m, c.k = size.n;
    if (on_vectors(c.routine))
        c.n = size.m * size.n;
    return c;
}

/* One of the transpositions, triangles and factors; each combination has its turn. */
static struct blas_case turned(struct plan_state *s, struct blas_case c) {
    static const float alphas[] = {1, -1, 0.7f, 1, 2.5f}, betas[] = {0, 1, -0.3f, 0.5f};
    unsigned t = s->turn++;
    c.trans_a = t & 1 ? 'T' : 'N';
    c.trans_b = t & 2 ? 'T' : 'N';
    c.uplo = t / 2 & 1 ? 'L' : 'U';
    c.alpha = alphas[t / 2 % 5];
    c.beta = betas[t / 4 % 4];
    c.pad = (int)(t * 5 / 3 % 4);
    return c;
}

static void add_sizes(struct plan_state *s, struct blas_case c, const struct size *sizes,
                      size_t count) {
    unsigned turns = on_vectors(c.routine)                             ? 1
                     : c.routine == BLAS_GEMV || c.routine == BLAS_GER ? 2
                                                                       : 4;
    for (size_t i = 0; i < count; i++)
        for (unsigned t = 0; t < turns; t++)
            add(s, turned(s, sized(c, sizes[i])));
}

/* ----------------------------------------------------------------------------------- families */

static const unsigned fills[] = {
    ISO_CHECK_FILL_UNIFORM, ISO_CHECK_FILL_INTEGER,  ISO_CHECK_FILL_NORMAL, ISO_CHECK_FILL_WIDE,
    ISO_CHECK_FILL_CANCEL,  ISO_CHECK_FILL_OPPOSITE, ISO_CHECK_FILL_RISING, ISO_CHECK_FILL_POWERS};

static void add_plain(struct plan_state *s, struct blas_case c) {
    static const int depths[] = {1, 2, 5, 8, 17, 33, 64};
    c.family = BLAS_PLAIN;
    for (size_t i = 0; i < COUNT(edges); i++) {
        for (size_t j = 0; j < COUNT(edges); j++) {
            struct size size = {edges[i], edges[j], depths[(i + 3 * j) % COUNT(depths)]};
            if ((s->quick && (i * 7 + j) % 9 && i + j > 3) || (on_vectors(c.routine) && j))
                continue;
            c.fill = fills[(i * 3 + j) % COUNT(fills)];
            add(s, turned(s, sized(c, size)));
        }
    }
    for (size_t i = 0; i < COUNT(long_ones); i++) {
        int l = long_ones[i], other = edges[i % 7];
        c.fill = fills[i % COUNT(fills)];
        if (s->quick && i % 3)
            continue;
        add(s, turned(s, sized(c, (struct size){l, on_vectors(c.routine) ? 1 : other, 9})));
        if (on_vectors(c.routine))
            continue;
        add(s, turned(s, sized(c, (struct size){other, l, 7})));
        if (c.routine == BLAS_GEMM)
            add(s, turned(s, sized(c, (struct size){other, edges[i % 5], l})));
    }
    c.fill = ISO_CHECK_FILL_UNIFORM;
    add_sizes(s, c, empty, COUNT(empty));
    if (s->quick)
        return;
    add_sizes(s, c, bits, COUNT(bits));
    for (size_t i = 0; i < COUNT(fills); i++) {
        c.fill = fills[i];
        add_sizes(s, c, few, COUNT(few));
    }
}

static void add_range(struct plan_state *s, struct blas_case c) {
    bool product = c.routine <= BLAS_DOT && c.routine != BLAS_GER;
    c.family = BLAS_RANGE;
    c.alpha = c.beta = 1;
    for (size_t i = 0; i < COUNT(few); i++) {
        c.fill = product || c.routine == BLAS_GER ? ISO_CHECK_FILL_SMALL : ISO_CHECK_FILL_TINY;
        c.trans_a = i & 1 ? 'T' : 'N';
        add(s, sized(c, few[i]));
        if (c.routine == BLAS_NRM2) {
            c.fill = ISO_CHECK_FILL_HUGE;
            add(s, sized(c, few[i]));
            c.fill = ISO_CHECK_FILL_EXPONENTS;
            add(s, sized(c, few[i]));
        }
    }
}

static void add_factors(struct plan_state *s, struct blas_case c) {
    for (size_t i = 0; i < COUNT(few) + COUNT(empty); i++) {
        struct size size = i < COUNT(few) ? few[i] : empty[i - COUNT(few)];
        for (unsigned t = 0; t < 8; t++) {
            struct blas_case b = turned(s, sized(c, size));
            if (blas_applies(c.routine, BLAS_ZERO_BETA)) {
                b.family = BLAS_BETA0;
                b.beta = 0;
                b.alpha = t & 1 ? 0.7f : t & 2 ? 0 : 1;
                if (i < COUNT(few) || c.routine != BLAS_GEMV) /* y is not touched there */
                    add(s, b);
            }
            if (blas_applies(c.routine, BLAS_ZERO_ALPHA) && i < COUNT(few)) {
                b.family = BLAS_ALPHA0;
                b.alpha = 0;
                b.beta = t & 1 ? 1 : t & 2 ? 0 : 0.5f;
                add(s, b);
            }
        }
    }
}

static void add_special(struct plan_state *s, struct blas_case c) {
    static const unsigned kinds[] = {ISO_CHECK_FILL_NAN_AT, ISO_CHECK_FILL_INF_AT,
                                     ISO_CHECK_FILL_MINUS_INF_AT};
    static const struct size sizes[] = {{1, 1, 1}, {2, 2, 2}, {3, 4, 5}, {17, 9, 8}, {6, 35, 20}};
    c.family = BLAS_NAN;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct blas_case b = sized(c, sizes[i]);
        size_t most =
            on_vectors(c.routine) ? 2 * (size_t)b.n : (size_t)(b.m * b.n + b.m * b.k + b.n * b.k);
        for (size_t spot = 0; spot < most; spot += s->quick ? 1 + most / 9 : 1 + most / 24) {
            struct blas_case t = turned(s, b);
            t.fill = kinds[s->turn % 3];
            t.spot = spot;
            t.beta = t.beta == 0 ? 1 : t.beta;
            add(s, t);
        }
        struct blas_case t = turned(s, b); /* zeros beside NaN; sger and ssyrk may leave them out */
        t.fill = ISO_CHECK_FILL_SPECIAL;
        if (c.routine != BLAS_GER && c.routine != BLAS_SYRK)
            add(s, t);
        t.fill = ISO_CHECK_FILL_MINUS_INF; /* several infinities */
        add(s, t);
        if (c.routine == BLAS_SCAL) {
            t.fill = kinds[i % 3];
            t.spot = i;
            t.alpha = 0;
            add(s, t);
        }
    }
}

static void add_strides(struct plan_state *s, struct blas_case c) {
    static const int steps[][2] = {{1, -1}, {-1, 1}, {-1, -1}, {2, 1},
                                   {1, 3},  {-2, 3}, {3, -2},  {7, 5}};
    static const struct size sizes[] = {{1, 1, 1}, {2, 3, 1}, {5, 4, 1}, {17, 33, 1}, {70, 21, 1}};
    if (!blas_applies(c.routine, BLAS_INCREMENTS))
        return;
    c.family = BLAS_STRIDE;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        for (size_t j = 0; j < 2 * COUNT(steps); j++) {
            struct blas_case t = turned(s, sized(c, sizes[i]));
            t.trans_a = j & 1 ? 'T' : 'N';
            t.incx = steps[j / 2][0];
            t.incy = steps[j / 2][1];
            if (c.routine == BLAS_NRM2 && t.incx < 0) /* versions of the reference differ */
                continue;
            if (c.routine != BLAS_GEMV && j & 1)
                continue;
            add(s, t);
        }
    }
}

static void add_bad(struct plan_state *s, struct blas_case c) {
    c.family = BLAS_BAD;
    c.beta = 0.5f;
    for (const int *p = blas_bad_positions(c.routine, c.api); *p; p++) {
        c.bad = *p;
        for (unsigned t = 0; t < 2; t++) {
            c.trans_a = t & 1 ? 'T' : 'N';
            c.trans_b = t & 1 ? 'N' : 'T';
            add(s, sized(c, (struct size){4, 5, 3}));
        }
    }
}

static void add_bits(struct plan_state *s, struct blas_case c, const struct blas_library *library) {
    c.family = BLAS_BITS;
    add_sizes(s, c, bits, COUNT(bits));
    if (c.api != (blas_has(library, c.routine, BLAS_FORTRAN)  ? BLAS_FORTRAN
                  : blas_has(library, c.routine, BLAS_COLUMN) ? BLAS_COLUMN
                                                              : BLAS_DNNL))
        return;
    c.family = BLAS_LARGE;
    for (size_t i = 0; i < COUNT(large) - s->quick; i++) {
        struct size size = large[i];
        if (c.routine == BLAS_GEMV || c.routine == BLAS_GER)
            size = (struct size){3 * size.m, 3 * size.n, 1};
        c.alpha = c.beta = 1;
        c.trans_a = i & 1 ? 'T' : 'N';
        c.trans_b = i & 1 ? 'N' : 'T';
        add(s, sized(c, size));
    }
}

void blas_plan(struct blas_plan *plan, const struct blas_library *library, enum blas_routine only,
               bool quick, bool with_bits) {
    struct plan_state s = {.plan = plan, .quick = quick};
    *plan = (struct blas_plan){0};
    for (unsigned r = 0; r < BLAS_ROUTINES; r++) {
        for (unsigned a = 0; a < BLAS_APIS; a++) {
            struct blas_case c = {.routine = r,
                                  .api = a,
                                  .trans_a = 'N',
                                  .trans_b = 'N',
                                  .uplo = 'U',
                                  .incx = 1,
                                  .incy = 1,
                                  .alpha = 1};
            if (!blas_has(library, r, a) || (only != BLAS_ROUTINES && only != r))
                continue;
            s.turn = 0;
            add_plain(&s, c);
            add_range(&s, c);
            add_factors(&s, c);
            add_special(&s, c);
            add_strides(&s, c);
            add_bad(&s, c);
            if (with_bits)
                add_bits(&s, c, library);
        }
    }
}

double blas_size(const struct blas_case *c) {
    struct blas_shape s;
    double size = c->pad + 0.01 * c->offset;
    blas_shape(&s, c);
    for (unsigned i = 0; i < s.count; i++)
        size += (double)(s.v[i].rows * s.v[i].cols) * (double)(s.v[i].inc < 0 ? 2 : 1);
    return size;
}
