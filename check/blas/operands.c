/* SPDX-License-Identifier: MIT
 *
 * The operands of a case, and what the definition of the routine gives for them: in double, in
 * plain loops. The bounds hold for any order of the sums (docs/check-blas.md): n roundings on the
 * way to a result change each term by a factor within 1 +- gamma_n, gamma_n = n u / (1 - n u).
 */
#include "blas.h"

#include <math.h>
#include <string.h>

#include "../oracle.h"

/* ------------------------------------------------------------------------------------- shapes */

static bool row_major(const struct blas_case *c) {
    return c->api == BLAS_ROW || c->api == BLAS_DNNL;
}

static void matrix(struct blas_shape *s, const struct blas_case *c, const char *name, int rows,
                   int cols, bool output) {
    size_t r = (size_t)(row_major(c) ? rows : cols), n = (size_t)(row_major(c) ? cols : rows);
    s->v[s->count].name = name;
    s->v[s->count].output = output;
    s->v[s->count].rows = r;
    s->v[s->count].cols = n;
    s->v[s->count++].ld = (n ? n : 1) + (size_t)c->pad;
}

static void vector(struct blas_shape *s, const char *name, int n, int inc, bool output) {
    s->v[s->count].name = name;
    s->v[s->count].vector = true;
    s->v[s->count].output = output;
    s->v[s->count].rows = (size_t)n;
    s->v[s->count].cols = 1;
    s->v[s->count].inc = inc;
    s->v[s->count++].ld = (size_t)(inc < 0 ? -inc : inc);
}

void blas_shape(struct blas_shape *s, const struct blas_case *c) {
    bool ta = c->trans_a == 'T', tb = c->trans_b == 'T';
    memset(s, 0, sizeof *s);
    switch (c->routine) {
    case BLAS_GEMM:
        matrix(s, c, "A", ta ? c->k : c->m, ta ? c->m : c->k, false);
        matrix(s, c, "B", tb ? c->n : c->k, tb ? c->k : c->n, false);
        matrix(s, c, "C", c->m, c->n, true);
        break;
    case BLAS_GEMV:
        matrix(s, c, "A", c->m, c->n, false);
        vector(s, "x", ta ? c->m : c->n, c->incx, false);
        vector(s, "y", ta ? c->n : c->m, c->incy, true);
        break;
    case BLAS_GER:
        vector(s, "x", c->m, c->incx, false);
        vector(s, "y", c->n, c->incy, false);
        matrix(s, c, "A", c->m, c->n, true);
        break;
    case BLAS_SYRK:
        matrix(s, c, "A", ta ? c->k : c->n, ta ? c->n : c->k, false);
        matrix(s, c, "C", c->n, c->n, true);
        break;
    case BLAS_DOT:
    case BLAS_AXPY:
        vector(s, "x", c->n, c->incx, false);
        vector(s, "y", c->n, c->incy, c->routine == BLAS_AXPY);
        break;
    default: vector(s, "x", c->n, c->incx, c->routine == BLAS_SCAL);
    }
}

/* -------------------------------------------------------------------------------------- setup */

static float special(size_t i) { return i % 3 == 1 ? INFINITY : i % 3 == 2 ? -INFINITY : NAN; }

void blas_setup(struct iso_check_operands *o, const struct blas_case *c) {
    struct blas_shape s;
    blas_shape(&s, c);
    o->spot = c->spot;
    for (unsigned i = 0; i < s.count; i++) {
        size_t rows = s.v[i].rows, cols = s.v[i].cols, ld = s.v[i].ld;
        size_t drawn = o->drawn; /* what is filled twice counts once */
        float *host = s.v[i].output
                          ? iso_check_inout_f32(o, s.v[i].name, rows, cols, ld, ISO_CHECK_FILL_ONES)
                          : iso_check_in(o, s.v[i].name, sizeof(float), rows, cols, ld);
        o->equal = 3 * iso_check_fill_value(o, ISO_CHECK_FILL_UNIFORM);
        o->drawn = drawn;
        o->cols = s.v[i].vector ? rows : cols;
        for (size_t r = 0; r < rows; r++) {
            if (!s.v[i].vector || r == 0)
                o->filled = 0;
            for (size_t n = 0; n < cols; n++)
                host[r * ld + n] = iso_check_fill_value(o, c->fill);
        }
        o->cols = 0;
        bool nan = s.v[i].output ? c->family == BLAS_BETA0 : c->family == BLAS_ALPHA0;
        for (size_t r = 0; r < rows && nan; r++)
            for (size_t n = 0; n < cols; n++)
                host[r * ld + n] = special(r + n);
    }
    if (c->routine == BLAS_DOT || c->routine >= BLAS_NRM2)
        iso_check_out(o, "result", 1, 1, 1);
}

/* ---------------------------------------------------------------------------------- reference */

struct view { /* element (i, j) is at[i * si + j * sj] */
    const float *at;
    ptrdiff_t si, sj;
};

static double get(struct view v, size_t i, size_t j) {
    return (double)v.at[(ptrdiff_t)i * v.si + (ptrdiff_t)j * v.sj];
}

/* As seen by the formulas, transposed where the routine transposes it. */
static struct view view(const struct iso_check_operands *o, const struct blas_shape *s,
                        const struct blas_case *c, unsigned index, bool trans) {
    struct view v = {o->v[index].host, (ptrdiff_t)s->v[index].ld, 1};
    if (s->v[index].vector) {
        v.sj = 0;
        if (s->v[index].inc < 0 && s->v[index].rows) { /* element 0 lies last */
            v.at += (s->v[index].rows - 1) * s->v[index].ld;
            v.si = -v.si;
        }
    } else if (row_major(c) == trans) {
        v.si = 1, v.sj = (ptrdiff_t)s->v[index].ld;
    }
    return v;
}

/* alpha (sum of x_p y_p) + beta z: a term is rounded at most k + 2 times, whatever the order. */
static double update(double *bound, const struct blas_case *c, struct view x, size_t i,
                     struct view y, size_t j, size_t k, double z) {
    double alpha = (double)c->alpha, sum = 0, magnitude = 0;
    for (size_t p = 0; p < k && c->alpha != 0; p++) {
        double term = get(x, i, p) * get(y, p, j);
        sum += term;
        magnitude += fabs(term);
    }
    double old = c->beta != 0 ? (double)c->beta * z : 0;
    double value = (c->alpha != 0 ? alpha * sum : 0) + old;
    *bound = iso_oracle_sum_bound(fabs(alpha) * magnitude + fabs(old), (double)k + 2, (double)k);
    return value;
}

struct out {
    double *expect, *bound;
    struct view old; /* by stored row and column */
    size_t cols;
};

static struct out out(struct iso_check_operands *o, unsigned index) {
    return (struct out){iso_check_expect(o, index),
                        iso_check_bound(o, index),
                        {o->v[index].host, (ptrdiff_t)o->v[index].ld, 1},
                        o->v[index].cols};
}

/* Bound 0: the very bits that were there. */
static void unchanged(struct iso_check_operands *o, unsigned index) {
    struct out y = out(o, index);
    for (size_t e = 0; e < o->v[index].rows * y.cols; e++) {
        y.expect[e] = get(y.old, e / y.cols, e % y.cols);
        y.bound[e] = 0;
    }
}

static void reference_matrix(struct iso_check_operands *o, const struct blas_shape *s,
                             const struct blas_case *c) {
    unsigned last = s->count - 1;
    struct out y = out(o, last);
    bool swap = !row_major(c);
    struct view a = view(o, s, c, 0, c->trans_a == 'T');
    struct view b = c->routine == BLAS_SYRK ? (struct view){a.at, a.sj, a.si}
                                            : view(o, s, c, 1, c->trans_b == 'T');
    for (size_t r = 0; r < s->v[last].rows; r++) {
        for (size_t n = 0; n < y.cols; n++) {
            size_t i = swap ? n : r, j = swap ? r : n, e = r * y.cols + n;
            double old = get(y.old, r, n);
            if (c->routine == BLAS_SYRK && (c->uplo == 'L' ? j > i : i > j)) {
                y.expect[e] = old;
                y.bound[e] = 0;
            } else if (c->routine == BLAS_GER) {
                double term = (double)c->alpha * get(a, i, 0) * get(b, j, 0);
                y.expect[e] = c->alpha == 0 ? old : old + term;
                y.bound[e] = c->alpha == 0 ? 0 : iso_oracle_sum_bound(fabs(old) + fabs(term), 3, 1);
            } else {
                y.expect[e] = update(&y.bound[e], c, a, i, b, j, (size_t)c->k, old);
            }
        }
    }
}

static void reference_gemv(struct iso_check_operands *o, const struct blas_shape *s,
                           const struct blas_case *c) {
    struct out y = out(o, 2);
    struct view a = view(o, s, c, 0, c->trans_a == 'T'), x = view(o, s, c, 1, false);
    size_t n = s->v[2].rows;
    if (c->m == 0 || c->n == 0) { /* not even beta counts */
        unchanged(o, 2);
        return;
    }
    for (size_t r = 0; r < n; r++) {
        size_t i = c->incy < 0 ? n - 1 - r : r;
        y.expect[r] = update(&y.bound[r], c, a, i, x, 0, s->v[1].rows, get(y.old, r, 0));
    }
}

/* The first element that is larger in magnitude than all before it. */
static size_t first_largest(struct view x, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (fabs(get(x, i, 0)) > fabs(get(x, best, 0)))
            best = i;
    return best;
}

/*
 * A sum of n terms: n - 1 additions and one rounding of the term. The norm: with scaling at every
 * step 5 roundings each (a quotient that is squared, the product, the sum), halved by the square
 * root, and 4 at the end. It must not overflow or underflow on the way.
 */
static void reference_number(struct iso_check_operands *o, const struct blas_shape *s,
                             const struct blas_case *c) {
    struct out result = out(o, s->count);
    struct view x = view(o, s, c, 0, false), y = {0};
    size_t n = s->v[0].rows;
    double sum = 0, magnitude = 0;
    bool empty = n == 0 || (c->routine != BLAS_DOT && c->incx < 0);
    if (c->routine == BLAS_DOT)
        y = view(o, s, c, 1, false);
    for (size_t i = 0; i < n && !empty; i++) {
        double a = get(x, i, 0);
        double term = c->routine == BLAS_DOT    ? a * get(y, i, 0)
                      : c->routine == BLAS_NRM2 ? a * a
                                                : fabs(a);
        sum += term;
        magnitude += fabs(term);
    }
    double count = (double)n, *bound = result.bound;
    *bound = iso_oracle_sum_bound(magnitude, count, c->routine == BLAS_DOT ? count : -4);
    if (c->routine == BLAS_NRM2) {
        sum = sqrt(sum);
        *bound = iso_oracle_sum_bound(sum, 2.5 * count + 4, count);
    }
    if (c->routine == BLAS_AMAX) {
        sum = empty ? 0 : (double)(first_largest(x, n) + (c->api == BLAS_FORTRAN));
        *bound = 0.5; /* a whole number */
    }
    if (*bound < ORACLE_EQUAL)
        *bound = ORACLE_EQUAL;
    *result.expect = sum;
}

static void reference_vector(struct iso_check_operands *o, const struct blas_shape *s,
                             const struct blas_case *c) {
    unsigned last = s->count - 1;
    struct out y = out(o, last);
    struct view x = view(o, s, c, 0, false);
    size_t n = s->v[last].rows;
    if ((c->routine == BLAS_AXPY && c->alpha == 0) || (c->routine == BLAS_SCAL && c->incx < 0)) {
        unchanged(o, last);
        return;
    }
    for (size_t r = 0; r < n; r++) {
        bool scal = c->routine == BLAS_SCAL, back = (scal ? c->incx : c->incy) < 0;
        double term = (double)c->alpha * get(x, back ? n - 1 - r : r, 0);
        double old = scal ? 0 : get(y.old, r, 0);
        y.expect[r] = old + term;
        y.bound[r] = iso_oracle_sum_bound(fabs(old) + fabs(term), scal ? 1 : 2, 0);
    }
}

void blas_reference(struct iso_check_operands *o, const struct blas_case *c) {
    struct blas_shape s;
    blas_shape(&s, c);
    if (c->bad) {
        unchanged(o, s.count - 1);
        return;
    }
    switch (c->routine) {
    case BLAS_GEMM:
    case BLAS_GER:
    case BLAS_SYRK: reference_matrix(o, &s, c); break;
    case BLAS_GEMV: reference_gemv(o, &s, c); break;
    case BLAS_AXPY:
    case BLAS_SCAL: reference_vector(o, &s, c); break;
    default: reference_number(o, &s, c);
    }
}
