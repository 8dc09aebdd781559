/* SPDX-License-Identifier: MIT
 *
 * sgemm and sgemv.
 */
#include "test_blas.h"

/* Row-major, in double; *magnitude is the sum of absolute values. */
double element(const struct gemm *g, const float *a, const float *b, const float *c, int i, int j,
               double *magnitude) {
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

CBLAS_TRANSPOSE flag(bool trans) { return trans ? CblasTrans : CblasNoTrans; }

void row_gemm(const struct gemm *g, const float *a, const float *b, float *c) {
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

void test_gemm(void **unused) {
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
    for (int t = 0; t < 4; t++)
        for (int alpha = 0; alpha < 3; alpha++) /* tiny ones whose C is not read, with factors */
            check_gemm((struct gemm){.m = 9,
                                     .n = 9,
                                     .k = 9,
                                     .ta = t & 1,
                                     .tb = t >> 1,
                                     .alpha = (float)alpha,
                                     .lda = 9,
                                     .ldb = 10,
                                     .ldc = 11});
    assert_int_equal(reports, 0);
}

/* Quick returns, factors of 0, and what must not be read. */
void test_gemm_zeros(void **unused) {
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

size_t span(int n, int inc) { return (size_t)(n - 1) * (size_t)abs(inc) + 1; }
float *at(float *x, int n, int inc, int i) {
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
        if (trans && !first) { /* the whole a row of sgemm, whatever rows are beside it */
            float *x2 = numbers(2 * (size_t)steps), *y2 = numbers(2 * (size_t)rows);
            for (int p = 0; p < steps; p++)
                x2[steps + p] = *at(x, steps, incx, p);
            for (int i = 0; i < rows; i++)
                y2[rows + i] = *at(y, rows, incy, i);
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, rows, steps, alpha, x2, steps,
                        a, lda, beta, y2, rows);
            for (int i = 0; i < rows; i++)
                same(y2 + rows + i, at(got, rows, incy, i), 1);
            free(x2), free(y2);
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

void test_gemv(void **unused) {
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
