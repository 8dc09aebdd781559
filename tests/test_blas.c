/* SPDX-License-Identifier: MIT
 *
 * libisobit_blas by its public names: against definitions in double, written down here once more;
 * bits that depend neither on the instruction set, the threads, the layout, the language nor on
 * packing; bad arguments; memory that is not there; what the reference does with NaN and
 * infinities.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <isobit/cblas.h>
#include <isobit/ops.h>
#include <xxhash.h>

#include "sanitized.h"

#define GOLDEN ISOBIT_TEST_DATA "/golden_blas.txt"

static bool quick;

/* ------------------------------------------------------------------- Fortran names, both sizes */

#define FORTRAN(INT, SUFFIX)                                                                       \
    void sgemm##SUFFIX(const char *, const char *, const INT *, const INT *, const INT *,          \
                       const float *, const float *, const INT *, const float *, const INT *,      \
                       const float *, float *, const INT *, size_t, size_t);                       \
    void sgemv##SUFFIX(const char *, const INT *, const INT *, const float *, const float *,       \
                       const INT *, const float *, const INT *, const float *, float *,            \
                       const INT *, size_t);                                                       \
    void sger##SUFFIX(const INT *, const INT *, const float *, const float *, const INT *,         \
                      const float *, const INT *, float *, const INT *);                           \
    void ssyrk##SUFFIX(const char *, const char *, const INT *, const INT *, const float *,        \
                       const float *, const INT *, const float *, float *, const INT *, size_t,    \
                       size_t);                                                                    \
    float sdot##SUFFIX(const INT *, const float *, const INT *, const float *, const INT *);       \
    void saxpy##SUFFIX(const INT *, const float *, const float *, const INT *, float *,            \
                       const INT *);                                                               \
    void sscal##SUFFIX(const INT *, const float *, float *, const INT *);                          \
    float snrm2##SUFFIX(const INT *, const float *, const INT *);                                  \
    float sasum##SUFFIX(const INT *, const float *, const INT *);                                  \
    INT isamax##SUFFIX(const INT *, const float *, const INT *);                                   \
    void scopy##SUFFIX(const INT *, const float *, const INT *, float *, const INT *);             \
    void sswap##SUFFIX(const INT *, float *, const INT *, float *, const INT *)
FORTRAN(int, _);
#if PTRDIFF_MAX > INT32_MAX
FORTRAN(int64_t, _64_);
void cblas_sgemm_64(CBLAS_LAYOUT, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, int64_t, int64_t, int64_t,
                    float, const float *, int64_t, const float *, int64_t, float, float *, int64_t);
void cblas_sgemm64_(CBLAS_LAYOUT, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, int64_t, int64_t, int64_t,
                    float, const float *, int64_t, const float *, int64_t, float, float *, int64_t);
#endif

/* ------------------------------------------------------------------------- what is reported */

static int reported, reports;
static char reported_name[32];
int RowMajorStrg; /* as the reference has it, for cblas_xerbla to look at */

void xerbla_(const char *name, const int *info, size_t length);
void xerbla_(const char *name, const int *info, size_t length) {
    assert_int_equal(length, 6);
    snprintf(reported_name, sizeof reported_name, "%.6s", name);
    reported = *info, reports++;
}
void cblas_xerbla(int info, const char *routine, const char *form, ...);
void cblas_xerbla(int info, const char *routine, const char *form, ...) {
    (void)form;
    snprintf(reported_name, sizeof reported_name, "%s%s", routine, RowMajorStrg ? " (row)" : "");
    reported = info, reports++;
}

#define expect_report(name, info)                                                                  \
    do {                                                                                           \
        assert_int_equal(reports, 1);                                                              \
        assert_string_equal(reported_name, name);                                                  \
        assert_int_equal(reported, info);                                                          \
        reports = 0;                                                                               \
    } while (0)

/* ---------------------------------------------------------------------------- memory that fails */

static bool no_memory;
void *__real_malloc(size_t n);
void *__real_aligned_alloc(size_t a, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_aligned_alloc(size_t a, size_t n);
void *__wrap_malloc(size_t n) { return no_memory ? NULL : __real_malloc(n); }
void *__wrap_aligned_alloc(size_t a, size_t n) {
    return no_memory ? NULL : __real_aligned_alloc(a, n);
}

/* --------------------------------------------------------------------------------- operands */

static uint32_t state = 1;
static float number(void) {
    state = state * 1664525 + 1013904223;
    return (float)((int32_t)(state >> 8) - (1 << 23)) * 0x1p-22f;
}
static void fill(float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        x[i] = number();
}
static float *numbers(size_t n) {
    float *x = malloc((n ? n : 1) * sizeof *x);
    assert_non_null(x);
    fill(x, n);
    return x;
}
static float *copy_of(const float *x, size_t n) {
    float *y = malloc(n * sizeof *y);
    assert_non_null(y);
    memcpy(y, x, n * sizeof *y);
    return y;
}
static void same(const float *x, const float *y, size_t n) {
    assert_memory_equal(x, y, n * sizeof *x);
}

/* Each instruction set of the machine, one after the other; the last one is the best again. */
static size_t sets(const char *names[8]) {
    size_t n = 0;
    for (size_t i = 0; i < iso_isa_count(); i++)
        if (!iso_isa_missing(iso_isa_get(i)))
            names[n++] = iso_isa_name(iso_isa_get(i));
    return n;
}

/* Of a sum of n products: its largest error in float, with some roundings at the end. */
static double bound(size_t n, double magnitude) {
    return ((double)n + 8) * 0x1p-24 * magnitude + (double)(n + 8) * 0x1p-149;
}

static void close_to(float got, double want, double most) {
    if (!(fabs((double)got - want) <= most))
        fail_msg("%a instead of %a, more than %g away", (double)got, want, most);
}

/* --------------------------------------------------------------------------------------- sgemm */

struct gemm {
    int m, n, k, lda, ldb, ldc;
    bool ta, tb;
    float alpha, beta;
};

/* Row-major, in double; *magnitude is the sum of absolute values. */
static double element(const struct gemm *g, const float *a, const float *b, const float *c, int i,
                      int j, double *magnitude) {
    double sum = 0, all = 0;
    for (int p = 0; p < g->k; p++) {
        const double x = (double)(g->ta ? a[p * g->lda + i] : a[i * g->lda + p]) *
                         (double)(g->tb ? b[j * g->ldb + p] : b[p * g->ldb + j]);
        sum += x, all += fabs(x);
    }
    const double old = g->beta != 0 ? (double)g->beta * (double)c[i * g->ldc + j] : 0;
    *magnitude = fabs((double)g->alpha) * all + fabs(old);
    return (double)g->alpha * sum + old;
}

static CBLAS_TRANSPOSE flag(bool trans) { return trans ? CblasTrans : CblasNoTrans; }

static void row_gemm(const struct gemm *g, const float *a, const float *b, float *c) {
    cblas_sgemm(CblasRowMajor, flag(g->ta), flag(g->tb), g->m, g->n, g->k, g->alpha, a, g->lda, b,
                g->ldb, g->beta, c, g->ldc);
}

/* The same product as a column-major caller would ask for it. */
static void column_gemm(const struct gemm *g, const float *a, const float *b, float *c) {
    cblas_sgemm(CblasColMajor, flag(g->tb), flag(g->ta), g->n, g->m, g->k, g->alpha, b, g->ldb, a,
                g->lda, g->beta, c, g->ldc);
}
static void fortran_gemm(const struct gemm *g, const float *a, const float *b, float *c) {
    sgemm_(g->tb ? "t" : "N", g->ta ? "C" : "n", &g->n, &g->m, &g->k, &g->alpha, b, &g->ldb, a,
           &g->lda, &g->beta, c, &g->ldc, 1, 1);
}
#if PTRDIFF_MAX > INT32_MAX
static void ilp64_gemm(const struct gemm *g, const float *a, const float *b, float *c) {
    const int64_t n = g->n, m = g->m, k = g->k, lda = g->lda, ldb = g->ldb, ldc = g->ldc;
    sgemm_64_(g->tb ? "T" : "N", g->ta ? "T" : "N", &n, &m, &k, &g->alpha, b, &ldb, a, &lda,
              &g->beta, c, &ldc, 1, 1);
}
static void ilp64_c_gemm(const struct gemm *g, const float *a, const float *b, float *c) {
    (g->m % 2 ? cblas_sgemm_64 : cblas_sgemm64_)(CblasRowMajor, flag(g->ta), flag(g->tb), g->m,
                                                 g->n, g->k, g->alpha, a, g->lda, b, g->ldb,
                                                 g->beta, c, g->ldc);
}
#endif
static void batched_gemm(const struct gemm *g, const float *a, const float *b, float *c) {
    cblas_sgemm_batch_strided(CblasRowMajor, flag(g->ta), flag(g->tb), g->m, g->n, g->k, g->alpha,
                              a, g->lda, 0, b, g->ldb, 0, g->beta, c, g->ldc, 0, 1);
}

/* Operands packed, one or both, in a row-major or a column-major call. */
static void packed_gemm(const struct gemm *g, const float *a, const float *b, float *c, bool pack_a,
                        bool pack_b, bool column) {
    const CBLAS_LAYOUT layout = column ? CblasColMajor : CblasRowMajor;
    const int m = column ? g->n : g->m, n = column ? g->m : g->n;
    const float *first = column ? b : a, *second = column ? a : b;
    const int ld1 = column ? g->ldb : g->lda, ld2 = column ? g->lda : g->ldb;
    const bool t1 = column ? g->tb : g->ta, t2 = column ? g->ta : g->tb;
    const bool p1 = column ? pack_b : pack_a, p2 = column ? pack_a : pack_b;
    char *block1 = NULL, *block2 = NULL;
    float alpha = g->alpha; /* goes with one of them */
    if (p1) {
        const size_t bytes = cblas_sgemm_pack_get_size(IsobitCblasAMatrix, m, n, g->k);
        assert_true(bytes > 0);
        block1 = malloc(bytes + 4);
        assert_non_null(block1);
        cblas_sgemm_pack(layout, IsobitCblasAMatrix, flag(t1), m, n, g->k, alpha, first, ld1,
                         (float *)(void *)(block1 + 4));
        alpha = 1;
    }
    if (p2) {
        const size_t bytes = cblas_sgemm_pack_get_size(IsobitCblasBMatrix, m, n, g->k);
        assert_true(bytes > 0);
        block2 = malloc(bytes + 1); /* the analyzer does not know assert_true */
        assert_non_null(block2);
        cblas_sgemm_pack(layout, IsobitCblasBMatrix, flag(t2), m, n, g->k, alpha, second, ld2,
                         (float *)(void *)block2);
    }
    cblas_sgemm_compute(layout, p1 ? IsobitCblasPacked : (int)flag(t1),
                        p2 ? IsobitCblasPacked : (int)flag(t2), m, n, g->k,
                        p1 ? (float *)(void *)(block1 + 4) : first, p1 ? 0 : ld1,
                        p2 ? (float *)(void *)block2 : second, p2 ? 0 : ld2, g->beta, c, g->ldc);
    free(block1);
    free(block2);
}

static void check_gemm(struct gemm g) {
    const size_t na = (size_t)(g.ta ? g.k : g.m) * (size_t)g.lda;
    const size_t nb = (size_t)(g.tb ? g.n : g.k) * (size_t)g.ldb;
    const size_t nc = (size_t)g.m * (size_t)g.ldc;
    float *a = numbers(na), *b = numbers(nb), *c = numbers(nc), *first = NULL;
    const char *names[8];
    const size_t count = sets(names);
    for (int i = 0; g.beta == 0 && i < g.m; i++)
        for (int j = 0; j < g.n; j++)
            c[i * g.ldc + j] = NAN;
    for (size_t set = count; set-- > 0;) {
        assert_int_equal(iso_set_isa(names[set]), ISOBIT_OK);
        float *got = copy_of(c, nc);
        row_gemm(&g, a, b, got);
        for (int i = 0; i < g.m && !first; i++)
            for (int j = 0; j < g.ldc; j++) {
                double magnitude;
                if (j >= g.n) {
                    same(got + i * g.ldc + j, c + i * g.ldc + j, 1); /* beside the matrix */
                    continue;
                }
                const double want = element(&g, a, b, c, i, j, &magnitude);
                close_to(got[i * g.ldc + j], want, bound((size_t)g.k, magnitude));
            }
        if (first)
            same(got, first, nc);
        else
            first = copy_of(got, nc);
        static void (*const ways[])(const struct gemm *, const float *, const float *, float *) = {
            column_gemm,
            fortran_gemm,
            batched_gemm,
#if PTRDIFF_MAX > INT32_MAX
            ilp64_gemm,
            ilp64_c_gemm
#endif
        };
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            memcpy(got, c, nc * sizeof *c);
            ways[w](&g, a, b, got);
            same(got, first, nc);
        }
        for (int p = 1; p < 8; p++) {
            if ((p & 3) == 0)
                continue;
            memcpy(got, c, nc * sizeof *c);
            packed_gemm(&g, a, b, got, p & 1, (p & 2) != 0, (p & 4) != 0);
            same(got, first, nc);
        }
        free(got);
    }
    free(first), free(a), free(b), free(c);
}

static void test_gemm(void **unused) {
    (void)unused;
    static const int sizes[][3] = {{1, 1, 1},    {3, 1, 7},    {1, 5, 600}, {2, 17, 3},
                                   {16, 16, 16}, {7, 33, 20},  {64, 48, 9}, {65, 1, 70},
                                   {130, 20, 5}, {33, 70, 530}};
    static const float alphas[] = {1, -1, 0.7f}, betas[] = {0, 1, -0.3f};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes - (quick ? 3 : 0); s++)
        for (int t = 0; t < 4; t++)
            for (int f = quick ? t : 0; f < 9; f += quick ? 4 : s % 2 ? 2 : 1) {
                struct gemm g = {.m = sizes[s][0],
                                 .n = sizes[s][1],
                                 .k = sizes[s][2],
                                 .ta = t & 1,
                                 .tb = t >> 1,
                                 .alpha = alphas[f % 3],
                                 .beta = betas[f / 3]};
                const int pad = f % 4;
                g.lda = (g.ta ? g.m : g.k) + pad;
                g.ldb = (g.tb ? g.k : g.n) + 2 * pad;
                g.ldc = g.n + pad;
                check_gemm(g);
            }
    assert_int_equal(reports, 0);
}

/* Quick returns, factors of 0, and what must not be read. */
static void test_gemm_zeros(void **unused) {
    (void)unused;
    float c[6] = {1, 2, NAN, 4, 5, 6};
    const float c0[6] = {1, 2, NAN, 4, 5, 6};
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 0, 3, 2, 1, NULL, 2, NULL, 3, 0, c, 3);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 0, 2, 1, NULL, 2, NULL, 1, 0, c, 3);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 3, 0, 1, NULL, 1, NULL, 3, 1, c, 3);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 3, 2, 0, NULL, 2, NULL, 3, 1, c, 3);
    same(c, c0, 6);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 3, 2, 0, NULL, 2, NULL, 3, 2, c, 3);
    assert_true(c[0] == 2 && c[5] == 12 && isnan(c[2]));
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 3, 0, 1, NULL, 1, NULL, 3, 0.5f, c,
                3);
    assert_true(c[0] == 1 && c[5] == 6 && isnan(c[2]));
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 3, 2, 0, NULL, 2, NULL, 3, 0, c, 3);
    for (int i = 0; i < 6; i++)
        assert_true(c[i] == 0);
    /* IEEE: 0 times infinity is NaN, in the element where it happens and nowhere else. */
    const float a[4] = {0, 1, 2, 3}, b[6] = {INFINITY, 1, 1, 1, NAN, 1};
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 3, 2, 1, a, 2, b, 3, 0, c, 3);
    assert_true(isnan(c[0]) && isnan(c[1]) && c[2] == 1 && isinf(c[3]) && isnan(c[4]) && c[5] == 5);
    assert_int_equal(reports, 0);
}

/* --------------------------------------------------------------------------------------- sgemv */

static size_t span(int n, int inc) { return (size_t)(n - 1) * (size_t)abs(inc) + 1; }
static float *at(float *x, int n, int inc, int i) {
    return x + (inc < 0 ? (ptrdiff_t)(i - n + 1) * inc : (ptrdiff_t)i * inc);
}

static void check_gemv(int m, int n, bool trans, int incx, int incy, float alpha, float beta) {
    const int lda = n + 3, rows = trans ? n : m, steps = trans ? m : n;
    float *a = numbers((size_t)m * (size_t)lda), *x = numbers(span(steps, incx));
    float *y = numbers(span(rows, incy)), *first = NULL;
    const char *names[8];
    if (beta == 0)
        for (int i = 0; i < rows; i++)
            *at(y, rows, incy, i) = NAN;
    for (size_t set = sets(names); set-- > 0;) {
        assert_int_equal(iso_set_isa(names[set]), ISOBIT_OK);
        float *got = copy_of(y, span(rows, incy));
        cblas_sgemv(CblasRowMajor, flag(trans), m, n, alpha, a, lda, x, incx, beta, got, incy);
        for (int i = 0; i < rows && !first; i++) {
            double sum = 0, all = 0;
            for (int p = 0; p < steps; p++) {
                const double t = (double)(trans ? a[p * lda + i] : a[i * lda + p]) *
                                 (double)*at(x, steps, incx, p);
                sum += t, all += fabs(t);
            }
            const double old = beta != 0 ? (double)beta * (double)*at(y, rows, incy, i) : 0;
            close_to(*at(got, rows, incy, i), (double)alpha * sum + old,
                     bound((size_t)steps, fabs((double)alpha) * all + fabs(old)));
            /* A row of the matrix is a dot product. */
            if (alpha == 1 && beta == 0 && !trans) {
                const float dot = cblas_sdot(steps, a + i * lda, 1, x, incx);
                same(&dot, at(got, rows, incy, i), 1);
            }
        }
        for (size_t i = 0; i < span(rows, incy) && !first; i++)
            if (i % (size_t)abs(incy))
                same(got + i, y + i, 1);
        if (first)
            same(got, first, span(rows, incy));
        else
            first = copy_of(got, span(rows, incy));
        memcpy(got, y, span(rows, incy) * sizeof *y);
        sgemv_(trans ? "n" : "T", &n, &m, &alpha, a, &lda, x, &incx, &beta, got, &incy, 1);
        same(got, first, span(rows, incy));
#if PTRDIFF_MAX > INT32_MAX
        const int64_t m64 = m, n64 = n, lda64 = lda, incx64 = incx, incy64 = incy;
        memcpy(got, y, span(rows, incy) * sizeof *y);
        sgemv_64_(trans ? "N" : "c", &n64, &m64, &alpha, a, &lda64, x, &incx64, &beta, got, &incy64,
                  1);
        same(got, first, span(rows, incy));
#endif
        no_memory = true; /* no copies of strided vectors, no sums beside y */
        memcpy(got, y, span(rows, incy) * sizeof *y);
        cblas_sgemv(CblasRowMajor, flag(trans), m, n, alpha, a, lda, x, incx, beta, got, incy);
        no_memory = false;
        same(got, first, span(rows, incy));
        free(got);
    }
    free(first), free(a), free(x), free(y);
}

static void test_gemv(void **unused) {
    (void)unused;
    static const int incs[] = {1, -1, 2, -3};
    for (int i = 0; i < 16; i += quick ? 5 : 1)
        for (int t = 0; t < 2; t++) {
            check_gemv(1, 1, t, incs[i / 4], incs[i % 4], 1, 0);
            check_gemv(5, 70, t, incs[i / 4], incs[i % 4], 1, 0);
            check_gemv(33, 9, t, incs[i / 4], incs[i % 4], 0.7f, -1.5f);
            check_gemv(17, 40, t, incs[i / 4], incs[i % 4], -1, 1);
        }
    for (int t = 0; t < 2 && !quick; t++) { /* more than fits on the stack */
        check_gemv(1500, 700, t, 2, -1, 0.5f, 2);
        check_gemv(700, 1500, t, -1, 1, 1, 0);
    }
    float y[2] = {3, NAN};
    cblas_sgemv(CblasRowMajor, CblasNoTrans, 2, 0, 1, NULL, 1, NULL, 1, 0, y, 1);
    assert_true(y[0] == 3); /* as the reference: no columns, nothing is done */
    cblas_sgemv(CblasRowMajor, CblasNoTrans, 2, 3, 0, NULL, 3, NULL, 1, 2, y, 1);
    assert_true(y[0] == 6 && isnan(y[1]));
    cblas_sgemv(CblasRowMajor, CblasNoTrans, 2, 3, 0, NULL, 3, NULL, 1, 0, y, 1);
    assert_true(y[0] == 0 && y[1] == 0);
    assert_int_equal(reports, 0);
}

/* ------------------------------------------------------------------------------------ sger, ssyrk
 */

static void test_ger(void **unused) {
    (void)unused;
    static const int incs[] = {1, -1, 2, -3}, sizes[][2] = {{1, 1}, {5, 40}, {33, 3}, {700, 900}};
    for (size_t s = 0; s < 4U - quick; s++)
        for (int i = 0; i < 16; i++) {
            const int m = sizes[s][0], n = sizes[s][1], incx = incs[i / 4], incy = incs[i % 4];
            const int lda = n + 2;
            const size_t na = (size_t)m * (size_t)lda;
            const float alpha = i % 2 ? 1 : -0.6f;
            float *a = numbers(na), *x = numbers(span(m, incx)), *y = numbers(span(n, incy));
            float *first = NULL;
            const char *names[8];
            *at(x, m, incx, m / 2) = 0;
            for (size_t set = sets(names); set-- > 0;) {
                assert_int_equal(iso_set_isa(names[set]), ISOBIT_OK);
                float *got = copy_of(a, na);
                cblas_sger(CblasRowMajor, m, n, alpha, x, incx, y, incy, got, lda);
                for (int r = 0; r < m && !first; r++)
                    for (int j = 0; j < lda; j++) {
                        const double t = j < n ? (double)alpha * (double)*at(x, m, incx, r) *
                                                     (double)*at(y, n, incy, j)
                                               : 0;
                        const double old = (double)a[r * lda + j];
                        close_to(got[r * lda + j], old + t,
                                 j < n ? 0x1p-22 * (fabs(t) + fabs(old)) : 0);
                    }
                if (first)
                    same(got, first, na);
                else
                    first = copy_of(got, na);
                memcpy(got, a, na * sizeof *a);
                sger_(&n, &m, &alpha, y, &incy, x, &incx, got, &lda);
                same(got, first, na);
                free(got);
            }
            free(first), free(a), free(x), free(y);
        }
    /* The reference leaves out a column (here a row) whose factor is 0, whatever is in the other
     * vector. */
    float a[4] = {1, 2, 3, 4};
    const float x[2] = {0, 1}, y[2] = {INFINITY, NAN};
    cblas_sger(CblasRowMajor, 2, 2, 1, x, 1, y, 1, a, 2);
    assert_true(a[0] == 1 && a[1] == 2 && isinf(a[2]) && isnan(a[3]));
    cblas_sger(CblasRowMajor, 2, 2, 0, NULL, 1, NULL, 1, a, 2);
    assert_true(a[0] == 1);
    assert_int_equal(reports, 0);
}

static void check_syrk(int n, int k, bool upper, bool trans, float alpha, float beta) {
    const int lda = (trans ? n : k) + 1, ldc = n + 2;
    const size_t na = (size_t)(trans ? k : n) * (size_t)lda, nc = (size_t)n * (size_t)ldc;
    float *a = numbers(na), *c = numbers(nc), *full = copy_of(c, nc), *first = NULL;
    const struct gemm g = {n, n, k, lda, lda, ldc, trans, !trans, alpha, beta};
    const char *names[8];
    for (size_t set = sets(names); set-- > 0;) {
        assert_int_equal(iso_set_isa(names[set]), ISOBIT_OK);
        float *got = copy_of(c, nc);
        cblas_ssyrk(CblasRowMajor, upper ? CblasUpper : CblasLower, flag(trans), n, k, alpha, a,
                    lda, beta, got, ldc);
        if (!first) {
            row_gemm(&g, a, a, full);
            for (int i = 0; i < n; i++)
                for (int j = 0; j < ldc; j++) {
                    const bool inside = j < n && (upper ? j >= i : j <= i);
                    double magnitude;
                    /* The elements of sgemm, bit by bit; the other triangle as it was. */
                    same(got + i * ldc + j, (inside ? full : c) + i * ldc + j, 1);
                    if (inside && i % 7 == 0) {
                        const double want = element(&g, a, a, c, i, j, &magnitude);
                        close_to(got[i * ldc + j], want, bound((size_t)k, magnitude));
                    }
                }
            first = copy_of(got, nc);
        } else {
            same(got, first, nc);
        }
        memcpy(got, c, nc * sizeof *c);
        ssyrk_(upper ? "L" : "u", trans ? "N" : "T", &n, &k, &alpha, a, &lda, &beta, got, &ldc, 1,
               1);
        same(got, first, nc);
        no_memory = true;
        memcpy(got, c, nc * sizeof *c);
        cblas_ssyrk(CblasRowMajor, upper ? CblasUpper : CblasLower, flag(trans), n, k, alpha, a,
                    lda, beta, got, ldc);
        no_memory = false;
        same(got, first, nc);
        free(got);
    }
    free(first), free(full), free(a), free(c);
}

static void test_syrk(void **unused) {
    (void)unused;
    static const int sizes[][2] = {{1, 1}, {5, 40}, {33, 7}, {129, 20}, {200, 70}, {300, 3}};
    for (size_t s = 0; s < 6U - 2U * quick; s++)
        for (int i = 0; i < 4; i++) {
            check_syrk(sizes[s][0], sizes[s][1], i & 1, i & 2, 1, 0);
            check_syrk(sizes[s][0], sizes[s][1], i & 1, i & 2, 0.7f, -1.5f);
        }
    /* alpha = 0 and k = 0: C is scaled, A is not read. */
    float c[4] = {1, 2, 3, 4};
    cblas_ssyrk(CblasRowMajor, CblasLower, CblasNoTrans, 2, 5, 0, NULL, 5, 2, c, 2);
    assert_true(c[0] == 2 && c[1] == 2 && c[2] == 6 && c[3] == 8);
    cblas_ssyrk(CblasRowMajor, CblasUpper, CblasNoTrans, 2, 0, 1, NULL, 1, 0, c, 2);
    assert_true(c[0] == 0 && c[1] == 0 && c[2] == 6 && c[3] == 0);
    /* In the reference's layout "N", steps whose factor is 0 are left out: infinities beside them
     * give no NaN. In the other one they do. */
    const float a[4] = {0, INFINITY, 1, 2}; /* A is 2 x 2: rows {0, Inf} and {1, 2} */
    const int two = 2;
    const float one = 1, zero = 0;
    float u[4] = {7, 7, 7, 7};
    ssyrk_("U", "N", &two, &two, &one, a, &two, &zero, u, &two, 1, 1);
    /* Column-major: A = [0 1; Inf 2]; C(1,1) = 0*0 + 1*1, C(1,2) = Inf*0 + 2*1, C(2,2) = Inf. The
     * factor of C(1,2) is A(2,1) = Inf, which is not left out: NaN. */
    assert_true(u[0] == 1 && u[1] == 7 && isnan(u[2]) && isinf(u[3]));
    float l[4] = {7, 7, 7, 7};
    ssyrk_("L", "N", &two, &two, &one, a, &two, &zero, l, &two, 1, 1);
    /* C(2,1): the factor is A(1,1) = 0, left out, then A(1,2) A(2,2) = 2. */
    assert_true(l[0] == 1 && l[1] == 2 && l[2] == 7 && isinf(l[3]));
    float t[4] = {7, 7, 7, 7};
    ssyrk_("L", "T", &two, &two, &one, a, &two, &zero, t, &two, 1, 1);
    assert_true(isinf(t[0]) && isinf(t[1]) && t[3] == 5);
    assert_int_equal(reports, 0);
}

/* ------------------------------------------------------------------------------------- level 1 */

static void test_vectors(void **unused) {
    (void)unused;
    static const int incs[] = {1, -1, 2, -3, 0}, sizes[] = {1, 2, 31, 32, 33, 600, 2500};
    const char *names[8];
    const size_t count = sets(names);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int i = 0; i < 25; i += quick && s > 4 ? 3 : 1) {
            const int n = sizes[s], incx = incs[i / 5], incy = incs[i % 5];
            float *x = numbers(span(n, incx)), *y = numbers(span(n, incy)), dots[8];
            const size_t ny = span(n, incy);
            double dot = 0, all = 0, squares = 0, absolute = 0;
            for (int j = 0; j < n; j++) {
                const double u = (double)*at(x, n, incx, j), v = (double)*at(y, n, incy, j);
                dot += u * v, all += fabs(u * v), squares += u * u, absolute += fabs(u);
            }
            for (size_t set = 0; set < count; set++) {
                assert_int_equal(iso_set_isa(names[set]), ISOBIT_OK);
                dots[set] = cblas_sdot(n, x, incx, y, incy);
                same(&dots[set], &dots[0], 1);
                const float f = sdot_(&n, x, &incx, y, &incy);
                same(&f, &dots[0], 1);
                no_memory = true;
                const float without = cblas_sdot(n, x, incx, y, incy);
                no_memory = false;
                same(&without, &dots[0], 1);
            }
            close_to(dots[0], dot, bound((size_t)n / 32 + 6, all));
            const float norm = cblas_snrm2(n, x, incx), f_norm = snrm2_(&n, x, &incx);
            close_to(norm, sqrt(squares), 0x1p-23 * sqrt(squares));
            same(&norm, &f_norm, 1);
            const float sum = cblas_sasum(n, x, incx), f_sum = sasum_(&n, x, &incx);
            close_to(sum, incx > 0 ? absolute : 0, bound((size_t)n / 32 + 6, absolute));
            same(&sum, &f_sum, 1);
            /* saxpy and the others, element by element; with increment 0 one after the other. */
            float *got = copy_of(y, ny), *want = copy_of(y, ny), *first = copy_of(y, ny);
            for (int j = 0; j < n; j++) {
                volatile float t = 0.3f * *at(x, n, incx, j);
                *at(want, n, incy, j) += t;
            }
            for (size_t set = 0; set < count; set++) {
                assert_int_equal(iso_set_isa(names[set]), ISOBIT_OK);
                memcpy(got, y, ny * sizeof *y);
                cblas_saxpy(n, 0.3f, x, incx, got, incy);
                same(got, want, ny);
                const float factor = 0.3f;
                memcpy(got, y, ny * sizeof *y);
                saxpy_(&n, &factor, x, &incx, got, &incy);
                same(got, want, ny);
                if (incy > 0) {
                    memcpy(got, y, ny * sizeof *y);
                    cblas_sscal(n, 0.7f, got, incy);
                    for (size_t j = 0; j < ny; j++)
                        first[j] = j % (size_t)incy ? y[j] : 0.7f * y[j];
                    same(got, first, ny);
                }
            }
            memcpy(got, y, ny * sizeof *y);
            cblas_scopy(n, x, incx, got, incy);
            memcpy(want, y, ny * sizeof *y);
            for (int j = 0; j < n; j++)
                *at(want, n, incy, j) = *at(x, n, incx, j);
            same(got, want, ny);
            if (incx && incy) {
                float *other = copy_of(x, span(n, incx));
                memcpy(got, y, ny * sizeof *y);
                cblas_sswap(n, other, incx, got, incy);
                same(got, want, ny);
                sswap_(&n, other, &incx, got, &incy);
                same(got, y, ny);
                same(other, x, span(n, incx));
                free(other);
            }
            free(got), free(want), free(first), free(x), free(y);
        }
    /* Nothing to do. */
    float one = 1;
    cblas_saxpy(0, 2, NULL, 1, NULL, 1), cblas_sscal(-1, 2, NULL, 1);
    cblas_scopy(0, NULL, 1, NULL, 1), cblas_sswap(0, NULL, 1, NULL, 1);
    assert_true(cblas_sdot(0, NULL, 1, NULL, 1) == 0 && cblas_snrm2(-3, NULL, 1) == 0);
    assert_true(cblas_sasum(0, NULL, 1) == 0 && cblas_isamax(0, NULL, 1) == 0);
    cblas_sscal(1, 2, &one, -1); /* as the reference: no negative increment */
    assert_true(one == 1);
}

static int amax(int n, const float *x, int inc) { return isamax_(&n, x, &inc); }

/* As the reference does with them. */
static void test_vectors_special(void **unused) {
    (void)unused;
    const float inf = INFINITY;
    float x[4] = {NAN, 5, inf, 7}, y[4] = {1, 2, 3, 4};
    const float many[5] = {1, NAN, -3, 3, NAN}, infinities[4] = {1, -inf, inf, NAN},
                none[2] = {-0.0f, 0};
    assert_int_equal(amax(4, x, 1), 1); /* nothing is larger than a NaN at the beginning */
    assert_int_equal(amax(5, many, 1), 3);
    assert_int_equal(cblas_isamax(5, many, 1), 2);
    assert_int_equal(amax(4, infinities, 1), 2);
    assert_int_equal(amax(2, none, 1), 1);
    assert_int_equal(amax(2, many, 2), 2); /* 1 and -3 */
    assert_int_equal(amax(2, many, -2), 0);
    float *large = numbers(3000);
    large[2000] = -100, large[2900] = 100;
    assert_int_equal(amax(3000, large, 1), 2001);
    assert_int_equal(amax(1000, large + 2, 3), 667); /* 2 + 3 * 666 = 2000 */
    free(large);

    cblas_saxpy(4, 0, x, 1, y, 1); /* alpha = 0: x is not looked at */
    assert_true(y[0] == 1 && y[2] == 3);
    cblas_saxpy(4, 1, x, 1, y, 1);
    assert_true(isnan(y[0]) && y[1] == 7 && isinf(y[2]));
    float z[4] = {NAN, 5, inf, -2};
    cblas_sscal(4, 0, z, 1); /* 0 times NaN or infinity is NaN */
    float apart[5] = {inf, 1, -inf, 2, NAN};
    cblas_sscal(3, 2, apart, 2);
    assert_true(apart[0] == inf && apart[1] == 1 && apart[2] == -inf && isnan(apart[4]));
    assert_true(isnan(z[0]) && z[1] == 0 && isnan(z[2]) && z[3] == 0 && signbit(z[3]));

    const float huge[4] = {FLT_MAX, 0, FLT_MAX, -FLT_MAX}, tiny[2] = {3e-45f, 4e-45f};
    const float with_inf[3] = {1, -inf, 2};
    assert_true(isinf(cblas_snrm2(4, huge, 1)) && isinf(cblas_sasum(4, huge, 1)));
    close_to(cblas_snrm2(1, huge, 1), (double)FLT_MAX, 0);
    const float half[4] = {FLT_MAX / 2, FLT_MAX / 2, FLT_MAX / 2, 0};
    close_to(cblas_snrm2(4, half, 1), sqrt(3) / 2 * (double)FLT_MAX, 0x1p-23 * (double)FLT_MAX);
    close_to(cblas_snrm2(2, tiny, 1), hypot((double)tiny[0], (double)tiny[1]), 0x1p-150);
    assert_true(isinf(cblas_snrm2(3, with_inf, 1)) && isinf(cblas_sasum(3, with_inf, 1)));
    assert_true(isnan(cblas_snrm2(4, x, 1)) && isnan(cblas_sasum(4, x, 1)));
}

/* ------------------------------------------------------------------------------------- errors */

/* Every parameter that can be wrong, by its number in Fortran and in C, row-major and column-major;
 * nothing is computed. */
static void test_errors(void **unused) {
    (void)unused;
    float x[64], c[64], c0[64];
    fill(x, 64), fill(c, 64), memcpy(c0, c, sizeof c);
    const float one = 1;
    const int info_of[] = {1, 2, 3, 4, 5, 8, 10, 13};
    for (int bad = 0; bad < 8; bad++) {
        const char *ta = bad == 0 ? "x" : "N", *tb = bad == 1 ? "/" : "N";
        const int m = bad == 2 ? -1 : 4, n = bad == 3 ? -1 : 3, k = bad == 4 ? -1 : 2;
        const int lda = bad == 5 ? 3 : 4, ldb = bad == 6 ? 1 : 2, ldc = bad == 7 ? 3 : 4;
        sgemm_(ta, tb, &m, &n, &k, &one, x, &lda, x, &ldb, &one, c, &ldc, 1, 1);
        expect_report("SGEMM ", info_of[bad]);
        if (bad > 1) {
            cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, x, lda, x, ldb, 1, c,
                        ldc);
            expect_report("cblas_sgemm", info_of[bad] + 1);
            /* A and B have been exchanged, which cblas_xerbla knows from RowMajorStrg. */
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, m, k, 1, x, ldb, x, lda, 1, c,
                        ldc);
            expect_report("cblas_sgemm (row)", info_of[bad] + 1);
        }
    }
    cblas_sgemm((CBLAS_LAYOUT)0, CblasNoTrans, CblasNoTrans, 4, 3, 2, 1, x, 4, x, 2, 1, c, 4);
    expect_report("cblas_sgemm", 1);
    cblas_sgemm(CblasRowMajor, (CBLAS_TRANSPOSE)0, CblasNoTrans, 4, 3, 2, 1, x, 4, x, 4, 1, c, 4);
    expect_report("cblas_sgemm", 2);
    cblas_sgemm(CblasColMajor, CblasTrans, (CBLAS_TRANSPOSE)'T', 4, 3, 2, 1, x, 4, x, 4, 1, c, 4);
    expect_report("cblas_sgemm", 3);

    const int gemv_info[] = {1, 2, 3, 6, 8, 11};
    for (int bad = 0; bad < 6; bad++) {
        const int m = bad == 1 ? -1 : 4, n = bad == 2 ? -1 : 3, lda = bad == 3 ? 3 : 4;
        const int incx = bad == 4 ? 0 : 1, incy = bad == 5 ? 0 : 1;
        sgemv_(bad ? "T" : "X", &m, &n, &one, x, &lda, x, &incx, &one, c, &incy, 1);
        expect_report("SGEMV ", gemv_info[bad]);
        if (bad) {
            cblas_sgemv(CblasColMajor, CblasConjTrans, m, n, 1, x, lda, x, incx, 1, c, incy);
            expect_report("cblas_sgemv", gemv_info[bad] + 1);
            cblas_sgemv(CblasRowMajor, CblasConjTrans, n, m, 1, x, lda, x, incx, 1, c, incy);
            expect_report("cblas_sgemv (row)", gemv_info[bad] + 1);
        }
    }
    cblas_sgemv((CBLAS_LAYOUT)103, CblasTrans, 4, 3, 1, x, 4, x, 1, 1, c, 1);
    expect_report("cblas_sgemv", 1);
    cblas_sgemv(CblasRowMajor, (CBLAS_TRANSPOSE)114, 4, 3, 1, x, 4, x, 1, 1, c, 1);
    expect_report("cblas_sgemv", 2);

    const int ger_info[] = {1, 2, 5, 7, 9};
    for (int bad = 0; bad < 5; bad++) {
        const int m = bad == 0 ? -1 : 4, n = bad == 1 ? -1 : 3, lda = bad == 4 ? 3 : 4;
        const int incx = bad == 2 ? 0 : 1, incy = bad == 3 ? 0 : 1;
        sger_(&m, &n, &one, x, &incx, x, &incy, c, &lda);
        expect_report("SGER  ", ger_info[bad]);
        cblas_sger(CblasColMajor, m, n, 1, x, incx, x, incy, c, lda);
        expect_report("cblas_sger", ger_info[bad] + 1);
        cblas_sger(CblasRowMajor, n, m, 1, x, incy, x, incx, c, lda);
        expect_report("cblas_sger (row)", ger_info[bad] + 1);
    }
    cblas_sger((CBLAS_LAYOUT)0, 4, 3, 1, x, 1, x, 1, c, 4);
    expect_report("cblas_sger", 1);

    const int syrk_info[] = {1, 2, 3, 4, 7, 10};
    for (int bad = 0; bad < 6; bad++) {
        const int n = bad == 2 ? -1 : 4, k = bad == 3 ? -1 : 3;
        const int lda = bad == 4 ? 3 : 4, ldc = bad == 5 ? 3 : 4;
        ssyrk_(bad == 0 ? "X" : "U", bad == 1 ? "X" : "N", &n, &k, &one, x, &lda, &one, c, &ldc, 1,
               1);
        expect_report("SSYRK ", syrk_info[bad]);
        if (bad > 1) {
            cblas_ssyrk(CblasColMajor, CblasUpper, CblasNoTrans, n, k, 1, x, lda, 1, c, ldc);
            expect_report("cblas_ssyrk", syrk_info[bad] + 1);
            cblas_ssyrk(CblasRowMajor, CblasUpper, CblasTrans, n, k, 1, x, lda, 1, c, ldc);
            expect_report("cblas_ssyrk (row)", syrk_info[bad] + 1);
        }
    }
    cblas_ssyrk((CBLAS_LAYOUT)0, CblasUpper, CblasNoTrans, 4, 3, 1, x, 4, 1, c, 4);
    expect_report("cblas_ssyrk", 1);
    cblas_ssyrk(CblasRowMajor, (CBLAS_UPLO)0, CblasNoTrans, 4, 3, 1, x, 4, 1, c, 4);
    expect_report("cblas_ssyrk", 2);
    cblas_ssyrk(CblasRowMajor, CblasLower, (CBLAS_TRANSPOSE)0, 4, 3, 1, x, 4, 1, c, 4);
    expect_report("cblas_ssyrk", 3);
    same(c, c0, 64);
}

static void test_errors_extensions(void **unused) {
    (void)unused;
    float x[64], c[64], c0[64];
    fill(x, 64), fill(c, 64), memcpy(c0, c, sizeof c);
    /* Positions in the list of cblas_sgemm_batch_strided. */
    const int strided_info[] = {1, 2, 3, 4, 5, 6, 9, 12, 16, 18};
    for (int row = 0; row < 2; row++)
        for (int bad = 0; bad < 10; bad++) {
            const int m = bad == 3 ? -1 : 4, n = bad == 4 ? -1 : 3, k = bad == 5 ? -1 : 2;
            const int lda = bad == 6 ? (row ? 1 : 3) : 4, ldb = bad == 7 ? (row ? 2 : 1) : 4;
            const int ldc = bad == 8 ? (row ? 2 : 3) : 4;
            cblas_sgemm_batch_strided(bad == 0 ? (CBLAS_LAYOUT)7
                                      : row    ? CblasRowMajor
                                               : CblasColMajor,
                                      bad == 1 ? (CBLAS_TRANSPOSE)7 : CblasNoTrans,
                                      bad == 2 ? (CBLAS_TRANSPOSE)7 : CblasNoTrans, m, n, k, 1, x,
                                      lda, 0, x, ldb, 0, 1, c, ldc, 16, bad == 9 ? -1 : 2);
            expect_report("cblas_sgemm_batch_strided", strided_info[bad]);
        }
    /* A bad second group: the first one is not computed either. */
    const CBLAS_TRANSPOSE no[2] = {CblasNoTrans, CblasNoTrans};
    const int sizes[2] = {2, 2}, wrong[2] = {2, -2}, ones[2] = {1, 1}, minus[2] = {1, -1};
    const float factors[2] = {1, 1}, *a[2] = {x, x};
    float *outs[2] = {c, c + 16};
    cblas_sgemm_batch(CblasRowMajor, no, no, wrong, sizes, sizes, factors, a, sizes, a, sizes,
                      factors, outs, sizes, 2, ones);
    expect_report("cblas_sgemm_batch", 4);
    cblas_sgemm_batch(CblasRowMajor, no, no, sizes, sizes, sizes, factors, a, sizes, a, ones,
                      factors, outs, sizes, 2, ones);
    expect_report("cblas_sgemm_batch", 11);
    cblas_sgemm_batch(CblasRowMajor, no, no, sizes, sizes, sizes, factors, a, sizes, a, sizes,
                      factors, outs, sizes, -1, ones);
    expect_report("cblas_sgemm_batch", 15);
    cblas_sgemm_batch(CblasRowMajor, no, no, sizes, sizes, sizes, factors, a, sizes, a, sizes,
                      factors, outs, sizes, 2, minus);
    expect_report("cblas_sgemm_batch", 16);

    assert_int_equal(cblas_sgemm_pack_get_size(7, 2, 2, 2), 0);
    expect_report("cblas_sgemm_pack_get_size", 1);
    assert_int_equal(cblas_sgemm_pack_get_size(IsobitCblasAMatrix, -2, 2, 2), 0);
    expect_report("cblas_sgemm_pack_get_size", 2);
    float block[256];
    cblas_sgemm_pack(CblasRowMajor, 7, CblasNoTrans, 2, 2, 2, 1, x, 2, block);
    expect_report("cblas_sgemm_pack", 2);
    cblas_sgemm_pack(CblasRowMajor, IsobitCblasBMatrix, CblasNoTrans, 2, 3, 4, 1, x, 2, block);
    expect_report("cblas_sgemm_pack", 9);
    cblas_sgemm_pack(CblasRowMajor, IsobitCblasBMatrix, CblasNoTrans, 2, 3, 4, 1, x, 3, NULL);
    expect_report("cblas_sgemm_pack", 10);
    assert_true(cblas_sgemm_pack_get_size(IsobitCblasBMatrix, 2, 3, 4) <= sizeof block);
    cblas_sgemm_pack(CblasRowMajor, IsobitCblasBMatrix, CblasNoTrans, 2, 3, 4, 1, x, 3, block);
    assert_int_equal(reports, 0);
    /* It is B of another size, A in place of B, and no packed matrix at all. */
    cblas_sgemm_compute(CblasRowMajor, CblasNoTrans, IsobitCblasPacked, 2, 4, 4, x, 4, block, 4, 0,
                        c, 4);
    expect_report("cblas_sgemm_compute", 9);
    cblas_sgemm_compute(CblasRowMajor, IsobitCblasPacked, CblasNoTrans, 3, 2, 4, block, 4, x, 2, 0,
                        c, 2);
    expect_report("cblas_sgemm_compute", 7);
    cblas_sgemm_compute(CblasRowMajor, CblasNoTrans, IsobitCblasPacked, 2, 3, 4, x, 4, c, 3, 0, c,
                        3);
    expect_report("cblas_sgemm_compute", 9);
    cblas_sgemm_compute(CblasRowMajor, CblasNoTrans, IsobitCblasPacked, 2, 3, 4, x, 3, block, 3, 0,
                        c, 3);
    expect_report("cblas_sgemm_compute", 8);
    same(c, c0, 64);
}

/* The shared library in a process where nobody has xerbla_: a line on stderr, and the call returns.
 * (The program's own symbols are not seen by what it loads.) */
static void test_errors_alone(void **unused) {
    (void)unused;
#ifdef ISOBIT_BLAS_SHARED
    void (*gemm)(CBLAS_LAYOUT, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, int, int, int, float,
                 const float *, int, const float *, int, float, float *, int);
    void (*fortran)(const char *, const char *, const int *, const int *, const int *,
                    const float *, const float *, const int *, const float *, const int *,
                    const float *, float *, const int *, size_t, size_t);
    void *library = dlopen(ISOBIT_BLAS_SHARED, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    *(void **)&gemm = dlsym(library, "cblas_sgemm");
    *(void **)&fortran = dlsym(library, "sgemm_");
    assert_non_null(gemm);
    assert_non_null(fortran);
    char text[512] = "";
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const int old = dup(2);
    dup2(ends[1], 2);
    float c[4] = {1, 2, 3, 4};
    const int two = 2, one = 1;
    const float x = 1;
    gemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 2, 2, 1, c, 1, c, 2, 0, c, 2);
    fortran("N", "N", &two, &two, &two, &x, c, &two, c, &one, &x, c, &two, 1, 1);
    dup2(old, 2);
    close(old), close(ends[1]);
    const ssize_t n = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    assert_true(n > 0);
    assert_string_equal(text, "isobit: parameter 9 to cblas_sgemm had an illegal value\n"
                              "isobit: parameter 10 to SGEMM had an illegal value\n");
    assert_true(c[0] == 1 && c[3] == 4);
    dlclose(library);
#else
    skip();
#endif
}

/* -------------------------------------------------------------------------- what may go wrong */

static void test_no_memory_and_alias(void **unused) {
    (void)unused;
    for (int f = 0; f < 4; f++) {
        const struct gemm g = {70, 90,    80,     90,           90,
                               90, f & 1, f >> 1, f ? 0.7f : 1, f > 1 ? 0.5f : 0};
        float *a = numbers(90 * 90), *b = numbers(90 * 90), *c = numbers(90 * 90);
        float *want = copy_of(c, 90 * 90), *got = copy_of(c, 90 * 90);
        row_gemm(&g, a, b, want);
        for (int i = 0; g.beta == 0 && i < g.m * g.ldc; i++)
            got[i] = i % g.ldc < g.n ? NAN : got[i]; /* C is not read */
        no_memory = true;
        row_gemm(&g, a, b, got);
        no_memory = false;
        same(got, want, 90 * 90);
        /* Packed, and then no memory for the sums. */
        const size_t bytes = cblas_sgemm_pack_get_size(IsobitCblasBMatrix, g.m, g.n, g.k);
        float *block = malloc(bytes);
        assert_non_null(block);
        memcpy(got, c, 90 * 90 * sizeof *c);
        no_memory = true;
        cblas_sgemm_pack(CblasRowMajor, IsobitCblasBMatrix, flag(g.tb), g.m, g.n, g.k, g.alpha, b,
                         g.ldb, block);
        cblas_sgemm_compute(CblasRowMajor, (int)flag(g.ta), IsobitCblasPacked, g.m, g.n, g.k, a,
                            g.lda, block, 0, g.beta, got, g.ldc);
        no_memory = false;
        same(got, want, 90 * 90);
        free(block);
        /* C is B: as if B had been read before. */
        struct gemm h = g;
        h.m = h.n = h.k = 60;
        memcpy(want, b, 90 * 90 * sizeof *b);
        row_gemm(&h, a, b, want);
        memcpy(got, b, 90 * 90 * sizeof *b);
        row_gemm(&h, a, got, got);
        same(got, want, 90 * 90);
        free(a), free(b), free(c), free(want), free(got);
    }
    /* Rows of different strides that lie between each other do not overlap. */
    float *all = numbers(4000), *apart = copy_of(all, 4000);
    float c[8];
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 4, 2, 3, 1, all, 100, all + 10, 40, 0, c,
                2);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 4, 2, 3, 1, apart, 100, apart + 10, 40,
                0, apart + 23, 60);
    for (int i = 0; i < 8; i++)
        same(apart + 23 + i / 2 * 60 + i % 2, c + i, 1);
    /* A vector that is a column of the matrix that it is multiplied with, in place of another. */
    const size_t n = 40;
    float *y = numbers(n), *w = numbers(n * n), *z = copy_of(w, n * n);
    cblas_sgemv(CblasRowMajor, CblasNoTrans, 40, 39, 1, w, 40, w, 40, 0, y, 1);
    cblas_sgemv(CblasRowMajor, CblasNoTrans, 40, 39, 1, z, 40, z, 40, 0, z + 39, 40);
    for (size_t i = 0; i < n; i++)
        same(z + i * n + 39, y + i, 1);
    free(all), free(apart), free(y), free(w), free(z);
    assert_int_equal(reports, 0);
}

/* ------------------------------------------------------------------------------------ batches */

static void test_batch(void **unused) {
    (void)unused;
    enum { COUNT = 9, D = 48 };
    const size_t n = (size_t)D * D;
    float *a = numbers(COUNT * n), *b = numbers(COUNT * n), *c = numbers(COUNT * n);
    float *want = copy_of(c, COUNT * n), *got = copy_of(c, COUNT * n);
    for (int i = 0; i < COUNT; i++)
        cblas_sgemm(CblasColMajor, i < 4 ? CblasTrans : CblasNoTrans, CblasNoTrans, D,
                    i < 4 ? D : 20, i < 4 ? 30 : D, i < 4 ? 1 : 0.5f, a + (size_t)i * n, D,
                    b + (size_t)i * n, D, i < 4 ? 0 : 2, want + (size_t)i * n, D);
    const CBLAS_TRANSPOSE ta[3] = {CblasTrans, CblasTrans, CblasNoTrans};
    const CBLAS_TRANSPOSE tb[3] = {CblasNoTrans, CblasNoTrans, CblasNoTrans};
    const int m[3] = {D, D, D}, cols[3] = {D, D, 20}, k[3] = {30, 30, D}, ld[3] = {D, D, D};
    const int sizes[3] = {4, 0, 5}; /* one group is empty */
    const float alpha[3] = {1, 9, 0.5f}, beta[3] = {0, 9, 2}, *as[COUNT], *bs[COUNT];
    float *cs[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        as[i] = a + i * n, bs[i] = b + i * n, cs[i] = got + i * n;
    for (int threads = 1; threads <= 4; threads++) {
        openblas_set_num_threads(threads);
        memcpy(got, c, COUNT * n * sizeof *c);
        cblas_sgemm_batch(CblasColMajor, ta, tb, m, cols, k, alpha, as, ld, bs, ld, beta, cs, ld, 3,
                          sizes);
        same(got, want, COUNT * n);
    }
    openblas_set_num_threads(0);
    memcpy(got, c, COUNT * n * sizeof *c);
    cblas_sgemm_batch_strided(CblasRowMajor, CblasNoTrans, CblasTrans, 20, 30, D, 1, a, D, (int)n,
                              b, D, 0, 1, got, D, (int)n, COUNT);
    memcpy(want, c, COUNT * n * sizeof *c);
    for (size_t i = 0; i < COUNT; i++)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, 20, 30, D, 1, a + i * n, D, b, D, 1,
                    want + i * n, D);
    same(got, want, COUNT * n);
    memcpy(got, c, COUNT * n * sizeof *c);
    cblas_sgemm_batch_strided(CblasColMajor, CblasNoTrans, CblasTrans, 20, 30, D, 1, a, D, 0, b, D,
                              (int)n, 1, got, D, (int)n, COUNT);
    memcpy(want, c, COUNT * n * sizeof *c);
    for (size_t i = 0; i < COUNT; i++)
        cblas_sgemm(CblasColMajor, CblasNoTrans, CblasTrans, 20, 30, D, 1, a, D, b + i * n, D, 1,
                    want + i * n, D);
    same(got, want, COUNT * n);
    /* A and B begin at the same place, and step differently. */
    for (int row = 0; row < 2; row++) {
        const CBLAS_LAYOUT layout = row ? CblasRowMajor : CblasColMajor;
        memcpy(got, c, COUNT * n * sizeof *c);
        memcpy(want, c, COUNT * n * sizeof *c);
        cblas_sgemm_batch_strided(layout, CblasNoTrans, CblasTrans, 20, 30, D, 1, a, D, (int)n, a,
                                  D, 0, 1, got, D, (int)n, COUNT);
        for (size_t i = 0; i < COUNT; i++)
            cblas_sgemm(layout, CblasNoTrans, CblasTrans, 20, 30, D, 1, a + i * n, D, a, D, 1,
                        want + i * n, D);
        same(got, want, COUNT * n);
    }
    free(a), free(b), free(c), free(want), free(got);
    assert_int_equal(reports, 0);
}

/* ------------------------------------------------------------------------------------ threads */

static size_t threads_now(void) {
    size_t n = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (const struct dirent *e; (e = readdir(tasks));)
        n += e->d_name[0] != '.';
    closedir(tasks);
    return n;
}

/* A product, a product of matrix and vector, and a triangle that are worth several threads. */
enum { WORTH = 192, OUTPUTS = WORTH * WORTH * 2 + WORTH * 4 };
static float *wide_a, *wide_b;
static void wide(float *out) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, WORTH, WORTH, WORTH, 0.5f, wide_a, WORTH,
                wide_b, WORTH, 0, out, WORTH);
    memset(out + WORTH * WORTH, 0, WORTH * WORTH * sizeof *out);
    cblas_ssyrk(CblasRowMajor, CblasLower, CblasTrans, WORTH, WORTH, 1, wide_a, WORTH, 0,
                out + WORTH * WORTH, WORTH);
    float *rest = out + 2 * WORTH * WORTH;
    cblas_sgemv(CblasRowMajor, CblasTrans, 4 * WORTH, WORTH, 1, wide_a, WORTH, wide_b, 2, 0, rest,
                1);
    cblas_sgemv(CblasRowMajor, CblasNoTrans, WORTH, 4 * WORTH, 2, wide_a, 4 * WORTH, wide_b, 1, 0,
                rest + WORTH, 1);
    cblas_sger(CblasRowMajor, WORTH, WORTH, 0.25f, wide_a, 1, wide_b, 1, out, WORTH);
    memset(rest + 2 * WORTH, 0, 2 * WORTH * sizeof *out);
}

static float serial[OUTPUTS];
static bool is_serial(const void *out) {
    const void *want = serial;
    return memcmp(out, want, sizeof serial) == 0;
}
static void begin_wide(void) {
    if (wide_a)
        return;
    state = 77;
    wide_a = numbers(4 * WORTH * WORTH), wide_b = numbers(4 * WORTH * WORTH);
    openblas_set_num_threads(1);
    wide(serial);
    openblas_set_num_threads(0);
}
static void wide_is_the_same(void) {
    float *out = numbers(OUTPUTS);
    wide(out);
    same(out, serial, OUTPUTS);
    free(out);
}

static void test_threads(void **unused) {
    (void)unused;
    begin_wide();
    const size_t before = threads_now();
    openblas_set_num_threads(1);
    assert_int_equal(openblas_get_num_threads(), 1);
    wide_is_the_same();
    assert_int_equal(threads_now(), before);
    static const int counts[] = {3, 2, 5, 8};
    for (int i = 0; i < 4; i++) {
        openblas_set_num_threads(counts[i]);
        assert_int_equal(openblas_get_num_threads(), counts[i]);
        wide_is_the_same();
        assert_true(threads_now() >= before + (size_t)counts[i] - 1);
    }
    openblas_set_num_threads(-1);
    assert_true(openblas_get_num_threads() >= 1);
    assert_int_equal(openblas_get_parallel(), 1);
    assert_non_null(strstr(openblas_get_config(), "isobit"));
    assert_string_equal(openblas_get_corename(), iso_isa_name(iso_isa_active()));
}

static void *call_wide(void *unused) {
    float *out = malloc(OUTPUTS * sizeof *out);
    for (int i = 0; out && i < (quick && !SANITIZED ? 1 : 3); i++)
        wide(out);
    const bool good = out && is_serial(out);
    free(out);
    (void)unused;
    return good ? serial : NULL;
}

static void test_many_callers(void **unused) {
    (void)unused;
    pthread_t threads[6];
    const int callers = quick && !SANITIZED ? 3 : 6; /* 46 s under qemu */
    begin_wide();
    openblas_set_num_threads(4);
    for (int i = 0; i < callers; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_wide, NULL), 0);
    for (int i = 0; i < callers; i++) {
        void *good = NULL;
        pthread_join(threads[i], &good);
        assert_non_null(good);
    }
    openblas_set_num_threads(0);
}

/* qemu and the thread sanitizer cannot start a thread in a child of a process that has threads. */
static void skip_emulated(void) {
    if (getenv("ISOBIT_EMULATED"))
        skip();
}

/* After a fork the child has a pool of its own. */
static void test_fork(void **unused) {
    (void)unused;
    skip_emulated();
    begin_wide();
    openblas_set_num_threads(4);
    wide_is_the_same();
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        float *out = malloc(OUTPUTS * sizeof *out);
        const size_t before = threads_now();
        wide(out);
        _exit(!is_serial(out) ? 1 : threads_now() == before ? 2 : 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    wide_is_the_same();
    openblas_set_num_threads(0);
}

/* Inside of a parallel region of OpenMP a call stays on its thread; outside, the runtime's number
 * of threads is a limit, unless the program has said another one to us. In a child, since what was
 * loaded stays. */
static void openmp_in_child(void) {
#ifdef ISOBIT_FAKE_OPENMP
    void (*fake)(int, int);
    alarm(60);
    openblas_set_num_threads(0);
    const int all = openblas_get_num_threads();
    void *runtime = dlopen(ISOBIT_FAKE_OPENMP, RTLD_NOW | RTLD_LOCAL);
    *(void **)&fake = runtime ? dlsym(runtime, "fake_openmp") : NULL;
    if (!fake)
        _exit(10);
    fake(0, 1);
    if (openblas_get_num_threads() != 1)
        _exit(11);
    fake(0, 1000);
    if (openblas_get_num_threads() != all)
        _exit(12);
    fake(1, 1);
    openblas_set_num_threads(6);
    if (openblas_get_num_threads() != 6)
        _exit(13);
    const size_t before = threads_now();
    float *out = malloc(OUTPUTS * sizeof *out);
    wide(out);
    if (!is_serial(out))
        _exit(14);
    if (threads_now() != before)
        _exit(15); /* a pool was made */
    fake(0, 1);
    wide(out);
    _exit(!is_serial(out) ? 16 : threads_now() == before ? 17 : 0);
#endif
}

static void test_openmp(void **unused) {
    (void)unused;
#ifdef ISOBIT_FAKE_OPENMP
    skip_emulated();
    begin_wide();
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        openmp_in_child();
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
#else
    openmp_in_child();
    skip();
#endif
}

/* ------------------------------------------------------------------------- environment, sets */

/* In a program of its own: `test_blas --environment WHAT`. */
static int environment(const char *what) {
    if (strcmp(what, "threads") == 0) {
        printf("%d\n", openblas_get_num_threads());
        return 0;
    }
    /* ISOBIT_ISA names nothing: a line on stderr, once, and right results. */
    float c[4], y[2];
    const float a[4] = {1, 2, 3, 4};
    for (int i = 0; i < 2; i++)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 2, 2, 1, a, 2, a, 2, 0, c, 2);
    cblas_sgemv(CblasRowMajor, CblasNoTrans, 2, 2, 1, a, 2, a, 1, 0, y, 1);
    return c[0] == 7 && c[3] == 22 && y[1] == 11 ? 0 : 1;
}

/* ------------------------------------------------------------------------------ golden hashes */

static XXH3_state_t *hash;
static void hash_floats(const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, x + i, sizeof u);
        const unsigned char bytes[4] = {(unsigned char)u, (unsigned char)(u >> 8),
                                        (unsigned char)(u >> 16), (unsigned char)(u >> 24)};
        XXH3_64bits_update(hash, bytes, sizeof bytes);
    }
}

static const struct {
    const char *name;
    int routine;
} hashed[] = {{"sgemm", 0}, {"sgemv", 1}, {"sger", 2},  {"ssyrk", 3}, {"sdot", 4},
              {"saxpy", 5}, {"sscal", 6}, {"snrm2", 7}, {"sasum", 8}};

static uint64_t digest(int routine) {
    static const int sizes[][3] = {
        {5, 7, 9}, {33, 20, 65}, {1, 40, 600}, {70, 1, 30}, {40, 90, 520}};
    XXH3_64bits_reset(hash);
    state = 4711;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int f = 0; f < 4; f++) {
            const int m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
            const float alpha = f & 1 ? 0.7f : 1, beta = f & 2 ? -1.3f : 0;
            float *a = numbers((size_t)m * (size_t)k), *b = numbers((size_t)k * (size_t)n);
            float *c = numbers((size_t)(m > n ? m : n) * (size_t)(m > n ? m : n)), one;
            switch (routine) {
            case 0:
                cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, alpha, a, k, b, n,
                            beta, c, n);
                hash_floats(c, (size_t)m * (size_t)n);
                break;
            case 1:
                cblas_sgemv(CblasRowMajor, CblasNoTrans, m, k, alpha, a, k, b, n, beta, c, 1);
                hash_floats(c, (size_t)m);
                cblas_sgemv(CblasRowMajor, CblasTrans, m, k, alpha, a, k, c, -1, 0, b, 1);
                hash_floats(b, (size_t)(k < k * n ? k : k * n));
                break;
            case 2:
                cblas_sger(CblasColMajor, m, n, alpha, a, 1, b, -1, c, m);
                hash_floats(c, (size_t)m * (size_t)n);
                break;
            case 3:
                cblas_ssyrk(CblasColMajor, f & 1 ? CblasLower : CblasUpper, CblasNoTrans, m, k,
                            alpha, a, m, beta, c, m);
                hash_floats(c, (size_t)m * (size_t)m);
                break;
            case 4:
                one = cblas_sdot(k, a, 1, b, f & 1 ? n : 1);
                hash_floats(&one, 1);
                break;
            case 5:
                cblas_saxpy(k, 0.3f + alpha, a, 1, b, f & 1 ? n : 1);
                hash_floats(b, (size_t)k * (size_t)n);
                break;
            case 6:
                cblas_sscal(k, 0.3f + alpha, b, f & 1 ? n : 1);
                hash_floats(b, (size_t)k * (size_t)n);
                break;
            case 7:
                one = cblas_snrm2(k, b, f & 1 ? n : 1);
                hash_floats(&one, 1);
                break;
            default: one = cblas_sasum(k, b, f & 1 ? n : 1); hash_floats(&one, 1);
            }
            free(a), free(b), free(c);
        }
    return XXH3_64bits_digest(hash);
}

static void test_golden(void **unused) {
    (void)unused;
    const char *names[8];
    char line[128], want[64];
    unsigned found = 0;
    FILE *file = fopen(GOLDEN, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        char name[32];
        unsigned long long value;
        if (line[0] == '#')
            continue;
        assert_int_equal(sscanf(line, "%31s %llx", name, &value), 2);
        for (size_t r = 0; r < sizeof hashed / sizeof *hashed; r++)
            if (strcmp(hashed[r].name, name) == 0) {
                found |= 1U << r;
                snprintf(want, sizeof want, "%s %016llx", name, value);
                for (size_t set = sets(names); set-- > 0;) {
                    char got[64];
                    assert_int_equal(iso_set_isa(names[set]), ISOBIT_OK);
                    snprintf(got, sizeof got, "%s %016llx", name,
                             (unsigned long long)digest(hashed[r].routine));
                    assert_string_equal(got, want);
                }
            }
    }
    fclose(file);
    assert_int_equal(found, (1U << sizeof hashed / sizeof *hashed) - 1);
}

static int update_golden(void) {
    FILE *file = fopen(GOLDEN, "w");
    if (!file)
        return 1;
    fprintf(file,
            "# numerics %d: hash (XXH3) of each routine of libisobit_blas, by tests/test_blas.c\n",
            ISOBIT_NUMERICS_VERSION);
    for (size_t r = 0; r < sizeof hashed / sizeof *hashed; r++)
        fprintf(file, "%s %016llx\n", hashed[r].name,
                (unsigned long long)digest(hashed[r].routine));
    return fclose(file) ? 1 : 0;
}

int main(int argc, char **argv) {
    hash = XXH3_createState();
    for (int i = 1; i < argc; i++) {
        quick |= strcmp(argv[i], "--quick") == 0;
        if (strcmp(argv[i], "--environment") == 0 && i + 1 < argc)
            return environment(argv[i + 1]);
        if (strcmp(argv[i], "--update-golden") == 0)
            return update_golden();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_gemm_zeros),
        cmocka_unit_test(test_gemv),
        cmocka_unit_test(test_ger),
        cmocka_unit_test(test_syrk),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_vectors_special),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_errors_extensions),
        cmocka_unit_test(test_errors_alone),
        cmocka_unit_test(test_no_memory_and_alias),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_many_callers),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_openmp),
        cmocka_unit_test(test_golden),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(wide_a), free(wide_b);
    XXH3_freeState(hash);
    return failed;
}
