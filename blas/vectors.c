/* SPDX-License-Identifier: MIT
 *
 * Level 1 and 2. What is contiguous goes to the kernels; what is strided is copied, or done one
 * element after the other with the same operations. sasum, snrm2 and isamax have no kernel: their
 * loops over 32 lanes are compiled once, for the plainest CPU, and are bound by memory all the
 * same.
 */
#include "core.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LANES 32
#define LOCAL 512 /* floats on the stack */
#define ROW 4096  /* floats of a long vector that a task takes */

/* ------------------------------------------------------------------------------------ strides */

static void gather(float *dst, struct const_vector x, size_t first, size_t n) {
    const float *p = x.p + (ptrdiff_t)first * x.inc;
    for (size_t i = 0; i < n; i++)
        dst[i] = p[(ptrdiff_t)i * x.inc];
}

/* x without gaps: x itself, or a copy in `local` or in *owned; NULL if there is no memory. */
static const float *contiguous(struct const_vector x, size_t n, float *local, float **owned) {
    *owned = NULL;
    if (x.inc == 1)
        return x.p;
    float *copy = local;
    if (n > LOCAL)
        copy = *owned = n <= SIZE_MAX / sizeof(float) ? malloc(n * sizeof(float)) : NULL;
    if (copy)
        gather(copy, x, 0, n);
    return copy;
}

/* ------------------------------------------------------------------------------------ level 1 */

/* y_i = fma(beta, y_i, alpha x_i), each product left out where its factor says so. */
static void axpby_strided(size_t n, float alpha, struct const_vector x, float beta,
                          struct vector y) {
    for (size_t i = 0; i < n; i++) {
        float *out = y.p + (ptrdiff_t)i * y.inc;
        const float in = x.p[(ptrdiff_t)i * x.inc], t = alpha == 1 ? in : alpha * in;
        *out = beta == 0 ? t : beta == 1 ? *out + t : fmaf(beta, *out, t);
    }
}

static iso_status try_axpby(size_t n, float alpha, const float *x, float beta, float *y) {
    struct call call;
    const iso_context *context = iso_blas_context(&call, (double)n);
    const size_t rows = context ? n / ROW : 0, done = rows * ROW;
    iso_status status = ISOBIT_OK;
    if (rows)
        status = iso_axpby_f32(y, ROW, x, ROW, rows, ROW, alpha, beta, context);
    if (!status && done < n)
        status =
            iso_axpby_f32(y + done, n - done, x + done, n - done, 1, n - done, alpha, beta, NULL);
    return status;
}

void iso_blas_axpby(size_t n, float alpha, struct const_vector x, float beta, struct vector y) {
    if (x.inc == 1 && y.inc == 1) {
        iso_status status = try_axpby(n, alpha, x.p, beta, y.p);
        if (iso_blas_again(status))
            status = try_axpby(n, alpha, x.p, beta, y.p);
        if (!status)
            return;
    }
    axpby_strided(n, alpha, x, beta, y);
}

void iso_blas_copy(size_t n, struct const_vector x, struct vector y) {
    if (x.inc == 1 && y.inc == 1)
        memmove(y.p, x.p, n * sizeof(float));
    else
        for (size_t i = 0; i < n; i++)
            memcpy(y.p + (ptrdiff_t)i * y.inc, x.p + (ptrdiff_t)i * x.inc, sizeof(float));
}

void iso_blas_swap(size_t n, struct vector x, struct vector y) {
    if (x.inc == 1 && y.inc == 1) {
        for (size_t i = 0; i < n; i++) {
            const float t = x.p[i];
            x.p[i] = y.p[i], y.p[i] = t;
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        float *a = x.p + (ptrdiff_t)i * x.inc, *b = y.p + (ptrdiff_t)i * y.inc;
        const float t = *a;
        *a = *b, *b = t;
    }
}

/* t[j] = t[j] + t[j + h] for h = 16 ... 1, as docs/numerics.md has it. */
static float tree(float *t) {
    for (size_t h = LANES / 2; h; h /= 2)
        for (size_t j = 0; j < h; j++)
            t[j] = t[j] + t[j + h];
    return t[0];
}

/* The dot product where there is no memory for copies of strided vectors. */
static float dot_strided(size_t n, struct const_vector x, struct const_vector y) {
    float t[LANES] = {0};
    for (size_t i = 0; i < n; i++)
        t[i % LANES] = fmaf(x.p[(ptrdiff_t)i * x.inc], y.p[(ptrdiff_t)i * y.inc], t[i % LANES]);
    return tree(t);
}

/* A row of a matrix times a vector. */
static iso_status dot(size_t n, const float *x, const float *y, float *sum) {
    iso_status status = iso_gemv_f32(sum, x, n, y, 1, n, 0, NULL);
    if (status && iso_blas_again(status))
        status = iso_gemv_f32(sum, x, n, y, 1, n, 0, NULL);
    return status;
}

/* Of vectors that are not contiguous, copied: not inlined, so that others set up no room. */
static __attribute__((noinline)) iso_status dot_of_copies(size_t n, struct const_vector x,
                                                          struct const_vector y, float *sum) {
    float local_x[LOCAL], local_y[LOCAL], *owned_x, *owned_y;
    const float *a = contiguous(x, n, local_x, &owned_x);
    const float *b = contiguous(y, n, local_y, &owned_y);
    const iso_status status = a && b ? dot(n, a, b, sum) : ISOBIT_E_NOMEM;
    free(owned_x);
    free(owned_y);
    return status;
}

float iso_blas_dot(size_t n, struct const_vector x, struct const_vector y) {
    float sum = 0;
    const iso_status status =
        x.inc == 1 && y.inc == 1 ? dot(n, x.p, y.p, &sum) : dot_of_copies(n, x, y, &sum);
    return status ? dot_strided(n, x, y) : sum;
}

float iso_blas_asum(size_t n, struct const_vector x) {
    float t[LANES] = {0}, copy[LOCAL];
    for (size_t first = 0; first < n; first += LOCAL) {
        const size_t count = n - first < LOCAL ? n - first : LOCAL;
        const float *p = x.p + first;
        if (x.inc != 1)
            gather(copy, x, first, count), p = copy;
        size_t i = 0;
        for (; i + LANES <= count; i += LANES)
            for (size_t l = 0; l < LANES; l++)
                t[l] += fabsf(p[i + l]);
        for (size_t l = 0; i + l < count; l++)
            t[l] += fabsf(p[i + l]);
    }
    return tree(t);
}

/* Squares of floats are exact in double, whose range no sum of them leaves. */
float iso_blas_nrm2(size_t n, struct const_vector x) {
    double t[LANES] = {0};
    float copy[LOCAL];
    for (size_t first = 0; first < n; first += LOCAL) {
        const size_t count = n - first < LOCAL ? n - first : LOCAL;
        const float *p = x.p + first;
        if (x.inc != 1)
            gather(copy, x, first, count), p = copy;
        size_t i = 0;
        for (; i + LANES <= count; i += LANES)
            for (size_t l = 0; l < LANES; l++)
                t[l] += (double)p[i + l] * (double)p[i + l];
        for (size_t l = 0; i + l < count; l++)
            t[l] += (double)p[i + l] * (double)p[i + l];
    }
    for (size_t h = LANES / 2; h; h /= 2)
        for (size_t j = 0; j < h; j++)
            t[j] = t[j] + t[j + h];
    return (float)sqrt(t[0]);
}

/* The first element that is larger than all before it: so a NaN at the beginning is never passed,
 * and others never count. As integers |x| are in the order of floats, NaN above infinity. */
size_t iso_blas_iamax(size_t n, struct const_vector x) {
    int32_t copy[LOCAL], largest;
    size_t at = 0;
    memcpy(&largest, x.p, sizeof largest);
    largest &= 0x7fffffff;
    if (largest > 0x7f800000)
        return 0;
    for (size_t first = 0; first < n; first += LOCAL) {
        const size_t count = n - first < LOCAL ? n - first : LOCAL;
        if (x.inc == 1) {
            memcpy(copy, x.p + first, count * sizeof(float));
        } else {
            for (size_t i = 0; i < count; i++)
                memcpy(copy + i, x.p + (ptrdiff_t)(first + i) * x.inc, sizeof(float));
        }
        int32_t most = 0;
        for (size_t i = 0; i < count; i++) {
            const int32_t bits = copy[i] & 0x7fffffff, number = bits > 0x7f800000 ? 0 : bits;
            copy[i] = number;
            most = number > most ? number : most;
        }
        if (most <= largest)
            continue;
        largest = most;
        for (size_t i = 0; i < count; i++)
            if (copy[i] == most) {
                at = first + i;
                break;
            }
    }
    return at;
}

/* ------------------------------------------------------------------------------------ level 2 */

static iso_status try_gemv(float *y, int trans, size_t n, size_t k, const float *w, size_t ldw,
                           const float *x, const iso_context *context) {
    iso_status status = iso_gemv_f32(y, w, ldw, x, n, k, trans, context);
    if (iso_blas_again(status))
        status = iso_gemv_f32(y, w, ldw, x, n, k, trans, context);
    return status;
}

/* Outputs first .. first+n by their definition. */
static void gemv_plain(struct vector y, int trans, size_t n, size_t k, float alpha, const float *w,
                       size_t ldw, struct const_vector x, float beta) {
    for (size_t j = 0; j < n; j++) {
        const struct const_vector of_w = {trans ? w + j : w + j * ldw, trans ? (ptrdiff_t)ldw : 1};
        const float sum = trans ? iso_blas_sum(k, x, of_w, 0) : dot_strided(k, of_w, x);
        axpby_strided(1, alpha, (struct const_vector){&sum, 1}, beta,
                      (struct vector){y.p + (ptrdiff_t)j * y.inc, 1});
    }
}

static void gemv(int trans, size_t n, size_t k, float alpha, const float *w, size_t ldw,
                 struct const_vector x, float beta, struct vector y, const iso_context *context) {
    float local_x[LOCAL], local_y[LOCAL], *owned_x, *owned_y = NULL;
    if (alpha == 0) { /* neither W nor x is read */
        const float zero = 0;
        axpby_strided(n, 1, (struct const_vector){&zero, 0}, beta, y);
        return;
    }
    const float *in = contiguous(x, k, local_x, &owned_x);
    if (in && y.inc == 1 && alpha == 1 && beta == 0 &&
        !try_gemv(y.p, trans, n, k, w, ldw, in, context)) {
        free(owned_x);
        return;
    }
    float *sums = local_y;
    size_t most = LOCAL; /* at a time, where there is no memory for all */
    if (n > LOCAL) {
        owned_y = malloc(n * sizeof(float));
        if (owned_y)
            sums = owned_y, most = n;
    }
    for (size_t j = 0; j < n; j += most) {
        const size_t some = n - j < most ? n - j : most;
        const float *part = w + (trans ? j : j * ldw);
        const struct vector out = {y.p + (ptrdiff_t)j * y.inc, y.inc};
        if (in && !try_gemv(sums, trans, some, k, part, ldw, in, context))
            iso_blas_axpby(some, alpha, (struct const_vector){sums, 1}, beta, out);
        else
            gemv_plain(out, trans, some, k, alpha, part, ldw, x, beta);
    }
    free(owned_x);
    free(owned_y);
}

void iso_blas_gemv(int trans, size_t n, size_t k, float alpha, const float *w, size_t ldw,
                   struct const_vector x, float beta, struct vector y) {
    struct call call;
    const double begin = iso_blas_begin();
    /* A quarter of the multiplications of a product take as long: each float of W is used once. */
    const iso_context *context = iso_blas_context(&call, 4.0 * (double)n * (double)k);
    gemv(trans, n, k, alpha, w, ldw, x, beta, y, context);
    if (begin > 0)
        iso_blas_end(begin, "sgemv", context, "n%zuk%zu:%c:lda%zu:incx%td:incy%td" BLAS_FACTORS, n,
                     k, trans ? 't' : 'n', ldw, x.inc, y.inc, BLAS_FACTORS_OF(alpha, beta));
}

struct ger {
    float *a;
    size_t lda, rows, n, each;
    float alpha;
    struct const_vector x, y;
};

static void ger_rows(void *arg, size_t task) {
    const struct ger *t = arg;
    const size_t end = (task + 1) * t->each < t->rows ? (task + 1) * t->each : t->rows;
    for (size_t r = task * t->each; r < end; r++) {
        const float factor = t->y.p[(ptrdiff_t)r * t->y.inc];
        const struct vector row = {t->a + r * t->lda, 1};
        if (factor == 0)
            continue;
        if (t->x.inc != 1 || iso_axpby_f32(row.p, t->n, t->x.p, t->n, 1, t->n, t->alpha * factor, 1,
                                           NULL) != ISOBIT_OK)
            axpby_strided(t->n, t->alpha * factor, t->x, 1, row);
    }
}

void iso_blas_ger(size_t rows, size_t n, float alpha, struct const_vector x, struct const_vector y,
                  float *a, size_t lda) {
    float local[LOCAL], *owned;
    struct call call;
    struct ger t = {a, lda, rows, n, rows, alpha, x, y};
    const double begin = iso_blas_begin();
    const float *copy = contiguous(x, n, local, &owned);
    if (copy)
        t.x = (struct const_vector){copy, 1};
    const iso_context *context = iso_blas_context(&call, (double)rows * (double)n);
    if (context && rows >= call.executor.max_threads) {
        const size_t tasks = call.executor.max_threads;
        t.each = (rows + tasks - 1) / tasks;
        call.executor.parallel_for(call.executor.user, tasks, ger_rows, &t);
    } else {
        ger_rows(&t, 0);
    }
    free(owned);
    if (begin > 0)
        iso_blas_end(begin, "sger", context, "m%zun%zu:lda%zu:incx%td:incy%td", rows, n, lda, y.inc,
                     x.inc);
}
