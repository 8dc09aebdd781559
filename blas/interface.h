/* SPDX-License-Identifier: MIT
 *
 * The names that programs know, included once for each size of integers: checks in the order of the
 * reference, quick returns, and a column-major call as the row-major one of the transposed
 * matrices. Before: BLAS_F77(name) and BLAS_IS_64. Hidden lengths of CHARACTER arguments come last
 * in a Fortran call and may be left unread, as every calling convention of Linux has it.
 */
#include "core.h"

#include <isobit/cblas.h>

typedef iso_blas_int blas_int;

/* -------------------------------------------------------------------------------- enumerations */

/* 0 or 1, else -1. */
static int trans_of_char(char c) {
    switch (c) {
    case 'N':
    case 'n': return 0;
    case 'T':
    case 't':
    case 'C':
    case 'c': return 1;
    default: return -1;
    }
}

static int trans_of_enum(int t) {
    return t == CblasNoTrans ? 0 : t == CblasTrans || t == CblasConjTrans ? 1 : -1;
}

static int is_layout(int layout) { return layout == CblasRowMajor || layout == CblasColMajor; }

static blas_int at_least_1(blas_int n) { return n > 1 ? n : 1; }
#define SIZE(n) ((size_t)((n) > 0 ? (n) : 0))

#if BLAS_IS_64
#define FULL_NAME(name) name "_64"
#else
#define FULL_NAME(name) name
#endif
static void bad_c(const char *name, int info, const char *what) {
    iso_blas_bad_c(name, BLAS_IS_64, info, what);
}

/* -------------------------------------------------------------------------------------- sgemm */

/* In the order of Fortran: column-major. The number of the first bad parameter, else 0. */
static int gemm_info(int trans_a, int trans_b, blas_int m, blas_int n, blas_int k, blas_int lda,
                     blas_int ldb, blas_int ldc) {
    if (trans_a < 0)
        return 1;
    if (trans_b < 0)
        return 2;
    if (m < 0)
        return 3;
    if (n < 0)
        return 4;
    if (k < 0)
        return 5;
    if (lda < at_least_1(trans_a ? k : m))
        return 8;
    if (ldb < at_least_1(trans_b ? n : k))
        return 10;
    return ldc < at_least_1(m) ? 13 : 0;
}

/* What the caller of a row-major cblas_sgemm knows that parameter as. */
static int gemm_exchanged(int info) {
    switch (info) {
    case 1: return 2;
    case 2: return 1;
    case 3: return 4;
    case 4: return 3;
    case 8: return 10;
    case 10: return 8;
    default: return info;
    }
}

static struct product product_of(int trans_a, int trans_b, blas_int m, blas_int n, blas_int k,
                                 float alpha, const float *a, blas_int lda, const float *b,
                                 blas_int ldb, float beta, float *c, blas_int ldc) {
    return (struct product){.m = (size_t)n,
                            .n = (size_t)m,
                            .k = (size_t)k,
                            .trans_a = trans_b,
                            .trans_b = trans_a,
                            .alpha = alpha,
                            .beta = beta,
                            .a = b,
                            .b = a,
                            .c = c,
                            .lda = (size_t)ldb,
                            .ldb = (size_t)lda,
                            .ldc = (size_t)ldc};
}

/* Column-major. */
static void gemm(const struct caller *caller, int trans_a, int trans_b, blas_int m, blas_int n,
                 blas_int k, float alpha, const float *a, blas_int lda, const float *b,
                 blas_int ldb, float beta, float *c, blas_int ldc) {
#define PLAIN(a, b)                                                                                \
    { .size = sizeof(iso_gemm_options), .trans_a = a, .trans_b = b, .alpha = 1 }
    static const iso_gemm_options plain[2][2] = {
        [0][1] = PLAIN(0, 1), [1] = {PLAIN(1, 0), PLAIN(1, 1)}};
    const int info = gemm_info(trans_a, trans_b, m, n, k, lda, ldb, ldc);
    if (info) {
        iso_blas_bad(caller, info, caller->row_major ? gemm_exchanged(info) : info);
        return;
    }
    if (m <= BLAS_TINY && n <= BLAS_TINY && k <= BLAS_TINY && alpha == 1 && beta == 0 &&
        !iso_verbose() &&
        iso_gemm_f32(c, (size_t)ldc, b, (size_t)ldb, a, (size_t)lda, (size_t)n, (size_t)m,
                     (size_t)k, trans_a | trans_b ? &plain[trans_b][trans_a] : NULL,
                     NULL) == ISOBIT_OK)
        return;
    const struct product p =
        product_of(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    iso_blas_gemm(&p);
}

ISOBIT_API void BLAS_F77(sgemm)(const char *trans_a, const char *trans_b, const blas_int *m,
                                const blas_int *n, const blas_int *k, const float *alpha,
                                const float *a, const blas_int *lda, const float *b,
                                const blas_int *ldb, const float *beta, float *c,
                                const blas_int *ldc);
void BLAS_F77(sgemm)(const char *trans_a, const char *trans_b, const blas_int *m, const blas_int *n,
                     const blas_int *k, const float *alpha, const float *a, const blas_int *lda,
                     const float *b, const blas_int *ldb, const float *beta, float *c,
                     const blas_int *ldc) {
    static const struct caller caller = {"SGEMM ", BLAS_IS_64, 0, 0};
    gemm(&caller, trans_of_char(*trans_a), trans_of_char(*trans_b), *m, *n, *k, *alpha, a, *lda, b,
         *ldb, *beta, c, *ldc);
}

void cblas_sgemm(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE trans_a, CBLAS_TRANSPOSE trans_b, blas_int m,
                 blas_int n, blas_int k, float alpha, const float *a, blas_int lda, const float *b,
                 blas_int ldb, float beta, float *c, blas_int ldc) {
    static const struct caller column = {"SGEMM ", BLAS_IS_64, 1, 0};
    static const struct caller row = {"SGEMM ", BLAS_IS_64, 1, 1};
    const int ta = trans_of_enum((int)trans_a), tb = trans_of_enum((int)trans_b);
    if (!is_layout((int)layout))
        bad_c("cblas_sgemm", 1, "illegal layout");
    else if (ta < 0)
        bad_c("cblas_sgemm", 2, "illegal transposition of A");
    else if (tb < 0)
        bad_c("cblas_sgemm", 3, "illegal transposition of B");
    else if (layout == CblasColMajor)
        gemm(&column, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    else
        gemm(&row, tb, ta, n, m, k, alpha, b, ldb, a, lda, beta, c, ldc);
}

/* -------------------------------------------------------------------------------------- sgemv */

/* Column-major. */
static void gemv(const struct caller *caller, int trans, blas_int m, blas_int n, float alpha,
                 const float *a, blas_int lda, const float *x, blas_int incx, float beta, float *y,
                 blas_int incy) {
    const int info = trans < 0             ? 1
                     : m < 0               ? 2
                     : n < 0               ? 3
                     : lda < at_least_1(m) ? 6
                     : incx == 0           ? 8
                     : incy == 0           ? 11
                                           : 0;
    if (info) {
        const int sizes = info == 2 || info == 3;
        iso_blas_bad(caller, info, caller->row_major && sizes ? 5 - info : info);
        return;
    }
    if (m == 0 || n == 0 || (alpha == 0 && beta == 1))
        return;
    const size_t rows = (size_t)(trans ? n : m), steps = (size_t)(trans ? m : n);
    iso_blas_gemv(!trans, rows, steps, alpha, a, (size_t)lda,
                  const_vector_of(x, steps, (ptrdiff_t)incx), beta,
                  vector_of(y, rows, (ptrdiff_t)incy));
}

ISOBIT_API void BLAS_F77(sgemv)(const char *trans, const blas_int *m, const blas_int *n,
                                const float *alpha, const float *a, const blas_int *lda,
                                const float *x, const blas_int *incx, const float *beta, float *y,
                                const blas_int *incy);
void BLAS_F77(sgemv)(const char *trans, const blas_int *m, const blas_int *n, const float *alpha,
                     const float *a, const blas_int *lda, const float *x, const blas_int *incx,
                     const float *beta, float *y, const blas_int *incy) {
    static const struct caller caller = {"SGEMV ", BLAS_IS_64, 0, 0};
    gemv(&caller, trans_of_char(*trans), *m, *n, *alpha, a, *lda, x, *incx, *beta, y, *incy);
}

void cblas_sgemv(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE trans, blas_int m, blas_int n, float alpha,
                 const float *a, blas_int lda, const float *x, blas_int incx, float beta, float *y,
                 blas_int incy) {
    static const struct caller column = {"SGEMV ", BLAS_IS_64, 1, 0};
    static const struct caller row = {"SGEMV ", BLAS_IS_64, 1, 1};
    const int t = trans_of_enum((int)trans);
    if (!is_layout((int)layout))
        bad_c("cblas_sgemv", 1, "illegal layout");
    else if (t < 0)
        bad_c("cblas_sgemv", 2, "illegal transposition");
    else if (layout == CblasColMajor)
        gemv(&column, t, m, n, alpha, a, lda, x, incx, beta, y, incy);
    else
        gemv(&row, !t, n, m, alpha, a, lda, x, incx, beta, y, incy);
}

/* --------------------------------------------------------------------------------------- sger */

/* Column-major. */
static void ger(const struct caller *caller, blas_int m, blas_int n, float alpha, const float *x,
                blas_int incx, const float *y, blas_int incy, float *a, blas_int lda) {
    static const int row_major[10] = {0, 2, 1, 3, 4, 7, 6, 5, 8, 9};
    const int info = m < 0                 ? 1
                     : n < 0               ? 2
                     : incx == 0           ? 5
                     : incy == 0           ? 7
                     : lda < at_least_1(m) ? 9
                                           : 0;
    if (info) {
        iso_blas_bad(caller, info, caller->row_major ? row_major[info] : info);
        return;
    }
    if (m == 0 || n == 0 || alpha == 0)
        return;
    iso_blas_ger((size_t)n, (size_t)m, alpha, const_vector_of(x, (size_t)m, (ptrdiff_t)incx),
                 const_vector_of(y, (size_t)n, (ptrdiff_t)incy), a, (size_t)lda);
}

ISOBIT_API void BLAS_F77(sger)(const blas_int *m, const blas_int *n, const float *alpha,
                               const float *x, const blas_int *incx, const float *y,
                               const blas_int *incy, float *a, const blas_int *lda);
void BLAS_F77(sger)(const blas_int *m, const blas_int *n, const float *alpha, const float *x,
                    const blas_int *incx, const float *y, const blas_int *incy, float *a,
                    const blas_int *lda) {
    static const struct caller caller = {"SGER  ", BLAS_IS_64, 0, 0};
    ger(&caller, *m, *n, *alpha, x, *incx, y, *incy, a, *lda);
}

void cblas_sger(CBLAS_LAYOUT layout, blas_int m, blas_int n, float alpha, const float *x,
                blas_int incx, const float *y, blas_int incy, float *a, blas_int lda) {
    static const struct caller column = {"SGER  ", BLAS_IS_64, 1, 0};
    static const struct caller row = {"SGER  ", BLAS_IS_64, 1, 1};
    if (!is_layout((int)layout))
        bad_c("cblas_sger", 1, "illegal layout");
    else if (layout == CblasColMajor)
        ger(&column, m, n, alpha, x, incx, y, incy, a, lda);
    else
        ger(&row, n, m, alpha, y, incy, x, incx, a, lda);
}

/* -------------------------------------------------------------------------------------- ssyrk */

/* Column-major. */
static void syrk(const struct caller *caller, int upper, int trans, blas_int n, blas_int k,
                 float alpha, const float *a, blas_int lda, float beta, float *c, blas_int ldc) {
    const int info = upper < 0                         ? 1
                     : trans < 0                       ? 2
                     : n < 0                           ? 3
                     : k < 0                           ? 4
                     : lda < at_least_1(trans ? k : n) ? 7
                     : ldc < at_least_1(n)             ? 10
                                                       : 0;
    if (info) {
        iso_blas_bad(caller, info, info);
        return;
    }
    iso_blas_syrk(!upper, !trans, (size_t)n, (size_t)k, alpha, a, (size_t)lda, beta, c,
                  (size_t)ldc);
}

ISOBIT_API void BLAS_F77(ssyrk)(const char *uplo, const char *trans, const blas_int *n,
                                const blas_int *k, const float *alpha, const float *a,
                                const blas_int *lda, const float *beta, float *c,
                                const blas_int *ldc);
void BLAS_F77(ssyrk)(const char *uplo, const char *trans, const blas_int *n, const blas_int *k,
                     const float *alpha, const float *a, const blas_int *lda, const float *beta,
                     float *c, const blas_int *ldc) {
    static const struct caller caller = {"SSYRK ", BLAS_IS_64, 0, 0};
    const char u = *uplo;
    syrk(&caller,
         u == 'U' || u == 'u'   ? 1
         : u == 'L' || u == 'l' ? 0
                                : -1,
         trans_of_char(*trans), *n, *k, *alpha, a, *lda, *beta, c, *ldc);
}

void cblas_ssyrk(CBLAS_LAYOUT layout, CBLAS_UPLO uplo, CBLAS_TRANSPOSE trans, blas_int n,
                 blas_int k, float alpha, const float *a, blas_int lda, float beta, float *c,
                 blas_int ldc) {
    static const struct caller column = {"SSYRK ", BLAS_IS_64, 1, 0};
    static const struct caller row = {"SSYRK ", BLAS_IS_64, 1, 1};
    const int t = trans_of_enum((int)trans);
    if (!is_layout((int)layout))
        bad_c("cblas_ssyrk", 1, "illegal layout");
    else if (uplo != CblasUpper && uplo != CblasLower)
        bad_c("cblas_ssyrk", 2, "illegal triangle");
    else if (t < 0)
        bad_c("cblas_ssyrk", 3, "illegal transposition");
    else if (layout == CblasColMajor)
        syrk(&column, uplo == CblasUpper, t, n, k, alpha, a, lda, beta, c, ldc);
    else
        syrk(&row, uplo != CblasUpper, !t, n, k, alpha, a, lda, beta, c, ldc);
}

#include "interface_vectors.h"

#include "interface_batches.h"
