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
    const int info = gemm_info(trans_a, trans_b, m, n, k, lda, ldb, ldc);
    if (info) {
        iso_blas_bad(caller, info, caller->row_major ? gemm_exchanged(info) : info);
        return;
    }
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

/* ------------------------------------------------------------------------------------ vectors */

#define SIZE(n) ((size_t)((n) > 0 ? (n) : 0))

static void looked_at(double begin, const char *routine, blas_int n, blas_int incx, blas_int incy) {
    if (begin > 0)
        iso_blas_end(begin, routine, NULL, "n%zu:incx%td:incy%td", SIZE(n), (ptrdiff_t)incx,
                     (ptrdiff_t)incy);
}

float cblas_sdot(blas_int n, const float *x, blas_int incx, const float *y, blas_int incy) {
    const double begin = iso_blas_begin();
    const float sum = n <= 0
                          ? 0
                          : iso_blas_dot((size_t)n, const_vector_of(x, (size_t)n, (ptrdiff_t)incx),
                                         const_vector_of(y, (size_t)n, (ptrdiff_t)incy));
    looked_at(begin, "sdot", n, incx, incy);
    return sum;
}

void cblas_saxpy(blas_int n, float alpha, const float *x, blas_int incx, float *y, blas_int incy) {
    const double begin = iso_blas_begin();
    if (n > 0 && alpha != 0)
        iso_blas_axpby((size_t)n, alpha, const_vector_of(x, (size_t)n, (ptrdiff_t)incx), 1,
                       vector_of(y, (size_t)n, (ptrdiff_t)incy));
    looked_at(begin, "saxpy", n, incx, incy);
}

void cblas_sscal(blas_int n, float alpha, float *x, blas_int incx) {
    const double begin = iso_blas_begin();
    if (n > 0 && incx > 0 && alpha != 1)
        iso_blas_axpby((size_t)n, alpha, (struct const_vector){x, (ptrdiff_t)incx}, 0,
                       (struct vector){x, (ptrdiff_t)incx});
    looked_at(begin, "sscal", n, incx, 0);
}

float cblas_snrm2(blas_int n, const float *x, blas_int incx) {
    const double begin = iso_blas_begin();
    const float norm =
        n <= 0 ? 0 : iso_blas_nrm2((size_t)n, const_vector_of(x, (size_t)n, (ptrdiff_t)incx));
    looked_at(begin, "snrm2", n, incx, 0);
    return norm;
}

float cblas_sasum(blas_int n, const float *x, blas_int incx) {
    const double begin = iso_blas_begin();
    const float sum = n <= 0 || incx <= 0
                          ? 0
                          : iso_blas_asum((size_t)n, (struct const_vector){x, (ptrdiff_t)incx});
    looked_at(begin, "sasum", n, incx, 0);
    return sum;
}

size_t cblas_isamax(blas_int n, const float *x, blas_int incx) {
    const double begin = iso_blas_begin();
    const size_t at = n <= 0 || incx <= 0
                          ? 0
                          : iso_blas_iamax((size_t)n, (struct const_vector){x, (ptrdiff_t)incx});
    looked_at(begin, "isamax", n, incx, 0);
    return at;
}

void cblas_scopy(blas_int n, const float *x, blas_int incx, float *y, blas_int incy) {
    const double begin = iso_blas_begin();
    if (n > 0)
        iso_blas_copy((size_t)n, const_vector_of(x, (size_t)n, (ptrdiff_t)incx),
                      vector_of(y, (size_t)n, (ptrdiff_t)incy));
    looked_at(begin, "scopy", n, incx, incy);
}

void cblas_sswap(blas_int n, float *x, blas_int incx, float *y, blas_int incy) {
    const double begin = iso_blas_begin();
    if (n > 0)
        iso_blas_swap((size_t)n, vector_of(x, (size_t)n, (ptrdiff_t)incx),
                      vector_of(y, (size_t)n, (ptrdiff_t)incy));
    looked_at(begin, "sswap", n, incx, incy);
}

ISOBIT_API float BLAS_F77(sdot)(const blas_int *n, const float *x, const blas_int *incx,
                                const float *y, const blas_int *incy);
float BLAS_F77(sdot)(const blas_int *n, const float *x, const blas_int *incx, const float *y,
                     const blas_int *incy) {
    return cblas_sdot(*n, x, *incx, y, *incy);
}

ISOBIT_API void BLAS_F77(saxpy)(const blas_int *n, const float *alpha, const float *x,
                                const blas_int *incx, float *y, const blas_int *incy);
void BLAS_F77(saxpy)(const blas_int *n, const float *alpha, const float *x, const blas_int *incx,
                     float *y, const blas_int *incy) {
    cblas_saxpy(*n, *alpha, x, *incx, y, *incy);
}

ISOBIT_API void BLAS_F77(sscal)(const blas_int *n, const float *alpha, float *x,
                                const blas_int *incx);
void BLAS_F77(sscal)(const blas_int *n, const float *alpha, float *x, const blas_int *incx) {
    cblas_sscal(*n, *alpha, x, *incx);
}

ISOBIT_API float BLAS_F77(snrm2)(const blas_int *n, const float *x, const blas_int *incx);
float BLAS_F77(snrm2)(const blas_int *n, const float *x, const blas_int *incx) {
    return cblas_snrm2(*n, x, *incx);
}

ISOBIT_API float BLAS_F77(sasum)(const blas_int *n, const float *x, const blas_int *incx);
float BLAS_F77(sasum)(const blas_int *n, const float *x, const blas_int *incx) {
    return cblas_sasum(*n, x, *incx);
}

/* From 1; 0 where there is no element. */
ISOBIT_API blas_int BLAS_F77(isamax)(const blas_int *n, const float *x, const blas_int *incx);
blas_int BLAS_F77(isamax)(const blas_int *n, const float *x, const blas_int *incx) {
    return *n <= 0 || *incx <= 0 ? 0 : (blas_int)cblas_isamax(*n, x, *incx) + 1;
}

ISOBIT_API void BLAS_F77(scopy)(const blas_int *n, const float *x, const blas_int *incx, float *y,
                                const blas_int *incy);
void BLAS_F77(scopy)(const blas_int *n, const float *x, const blas_int *incx, float *y,
                     const blas_int *incy) {
    cblas_scopy(*n, x, *incx, y, *incy);
}

ISOBIT_API void BLAS_F77(sswap)(const blas_int *n, float *x, const blas_int *incx, float *y,
                                const blas_int *incy);
void BLAS_F77(sswap)(const blas_int *n, float *x, const blas_int *incx, float *y,
                     const blas_int *incy) {
    cblas_sswap(*n, x, *incx, y, *incy);
}

/* ------------------------------------------------------------------------------------ batches */

struct batch_arrays {
    int row_major;
    const CBLAS_TRANSPOSE *trans_a, *trans_b;
    const blas_int *m, *n, *k, *lda, *ldb, *ldc, *sizes;
    const float *alpha, *beta;
    const float **a, **b;
    float **c;
    blas_int groups;
};

static struct product row_or_column(int row_major, int ta, int tb, blas_int m, blas_int n,
                                    blas_int k, float alpha, const float *a, blas_int lda,
                                    const float *b, blas_int ldb, float beta, float *c,
                                    blas_int ldc) {
    return row_major ? product_of(tb, ta, n, m, k, alpha, b, ldb, a, lda, beta, c, ldc)
                     : product_of(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

static void make_grouped(struct product *p, size_t i, void *arg) {
    const struct batch_arrays *t = arg;
    size_t g = 0, first = 0;
    while (i - first >= (size_t)t->sizes[g])
        first += (size_t)t->sizes[g++];
    *p = row_or_column(t->row_major, trans_of_enum((int)t->trans_a[g]),
                       trans_of_enum((int)t->trans_b[g]), t->m[g], t->n[g], t->k[g], t->alpha[g],
                       t->a[i], t->lda[g], t->b[i], t->ldb[g], t->beta[g], t->c[i], t->ldc[g]);
}

/* The parameter of a C routine whose list begins layout, trans_a, trans_b, m, n, k; `lds` are the
 * places of lda, ldb and ldc. 0: all are good. */
static int c_info(int row_major, int ta, int tb, blas_int m, blas_int n, blas_int k, blas_int lda,
                  blas_int ldb, blas_int ldc, const int lds[3]) {
    int info = row_major ? gemm_exchanged(gemm_info(tb, ta, n, m, k, ldb, lda, ldc))
                         : gemm_info(ta, tb, m, n, k, lda, ldb, ldc);
    switch (info) {
    case 8: return lds[0];
    case 10: return lds[1];
    case 13: return lds[2];
    default: return info ? info + 1 : 0;
    }
}

void cblas_sgemm_batch(CBLAS_LAYOUT layout, const CBLAS_TRANSPOSE *trans_a,
                       const CBLAS_TRANSPOSE *trans_b, const blas_int *m, const blas_int *n,
                       const blas_int *k, const float *alpha, const float **a, const blas_int *lda,
                       const float **b, const blas_int *ldb, const float *beta, float **c,
                       const blas_int *ldc, blas_int group_count, const blas_int *group_size) {
    static const int lds[3] = {9, 11, 14};
    struct batch_arrays t = {layout == CblasRowMajor,
                             trans_a,
                             trans_b,
                             m,
                             n,
                             k,
                             lda,
                             ldb,
                             ldc,
                             group_size,
                             alpha,
                             beta,
                             a,
                             b,
                             c,
                             group_count};
    int info = !is_layout((int)layout) ? 1 : group_count < 0 ? 15 : 0;
    size_t count = 0;
    double work = 0;
    for (blas_int g = 0; !info && g < group_count; g++) {
        info = c_info(t.row_major, trans_of_enum((int)trans_a[g]), trans_of_enum((int)trans_b[g]),
                      m[g], n[g], k[g], lda[g], ldb[g], ldc[g], lds);
        if (!info && group_size[g] < 0)
            info = 16;
        count += SIZE(group_size[g]);
        work += (double)m[g] * (double)n[g] * (double)k[g] * (double)group_size[g];
    }
    if (info)
        bad_c(FULL_NAME("cblas_sgemm_batch"), info, "illegal value");
    else
        iso_blas_batch(count, work, make_grouped, &t);
}

struct strided {
    struct product first;
    ptrdiff_t a, b, c;
};

static void make_strided(struct product *p, size_t i, void *arg) {
    const struct strided *t = arg;
    *p = t->first;
    p->a = p->a ? p->a + (ptrdiff_t)i * t->a : NULL;
    p->b = p->b ? p->b + (ptrdiff_t)i * t->b : NULL;
    p->c += (ptrdiff_t)i * t->c;
}

void cblas_sgemm_batch_strided(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE trans_a,
                               CBLAS_TRANSPOSE trans_b, blas_int m, blas_int n, blas_int k,
                               float alpha, const float *a, blas_int lda, blas_int stride_a,
                               const float *b, blas_int ldb, blas_int stride_b, float beta,
                               float *c, blas_int ldc, blas_int stride_c, blas_int batch_size) {
    static const int lds[3] = {9, 12, 16};
    const int row_major = layout == CblasRowMajor;
    const int ta = trans_of_enum((int)trans_a), tb = trans_of_enum((int)trans_b);
    int info = !is_layout((int)layout) ? 1 : 0;
    if (!info)
        info = c_info(row_major, ta, tb, m, n, k, lda, ldb, ldc, lds);
    if (!info && batch_size < 0)
        info = 18;
    if (info) {
        bad_c(FULL_NAME("cblas_sgemm_batch_strided"), info, "illegal value");
        return;
    }
    /* The row-major product has A and B as they are, the column-major one exchanged. */
    struct strided t = {
        row_or_column(row_major, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc),
        (ptrdiff_t)(row_major ? stride_a : stride_b), (ptrdiff_t)(row_major ? stride_b : stride_a),
        (ptrdiff_t)stride_c};
    iso_blas_batch((size_t)batch_size, (double)m * (double)n * (double)k * (double)batch_size,
                   make_strided, &t);
}

/* ----------------------------------------------------------------------------- packed operands */

size_t cblas_sgemm_pack_get_size(int identifier, blas_int m, blas_int n, blas_int k) {
    const int is_a = identifier == IsobitCblasAMatrix;
    const size_t bytes = iso_blas_pack_bytes(SIZE(is_a ? m : n), SIZE(k));
    const int info = !is_a && identifier != IsobitCblasBMatrix ? 1
                     : m < 0                                   ? 2
                     : n < 0                                   ? 3
                     : k < 0 || !bytes                         ? 4
                                                               : 0;
    if (info)
        bad_c(FULL_NAME("cblas_sgemm_pack_get_size"), info, "illegal value");
    return info ? 0 : bytes;
}

void cblas_sgemm_pack(CBLAS_LAYOUT layout, int identifier, CBLAS_TRANSPOSE trans, blas_int m,
                      blas_int n, blas_int k, float alpha, const float *src, blas_int ld,
                      float *dest) {
    const int is_a = identifier == IsobitCblasAMatrix, row_major = layout == CblasRowMajor;
    const int t = trans_of_enum((int)trans);
    const blas_int rows = is_a ? m : k, columns = is_a ? k : n; /* of op(src) */
    int info = !is_layout((int)layout)                     ? 1
               : !is_a && identifier != IsobitCblasBMatrix ? 2
               : t < 0                                     ? 3
               : m < 0                                     ? 4
               : n < 0                                     ? 5
               : k < 0                                     ? 6
                                                           : 0;
    if (!info && ld < at_least_1((t != 0) == row_major ? rows : columns))
        info = 9;
    if (!info && !dest)
        info = 10;
    if (info) {
        bad_c(FULL_NAME("cblas_sgemm_pack"), info, "illegal value");
        return;
    }
    /* A of a row-major call, B of a column-major one stand on the left of the row-major product. */
    const int left = is_a == row_major;
    /* Whether src lies as [k][ld]: op(A) has k along its columns, op(B) along its rows. */
    const int k_major = is_a ? (t != 0) == row_major : (t == 0) == row_major;
    iso_blas_pack(dest, left, src, (size_t)ld, (size_t)(is_a ? m : n), (size_t)k, k_major, alpha);
}

void cblas_sgemm_compute(CBLAS_LAYOUT layout, int trans_a, int trans_b, blas_int m, blas_int n,
                         blas_int k, const float *a, blas_int lda, const float *b, blas_int ldb,
                         float beta, float *c, blas_int ldc) {
    static const int lds[3] = {8, 10, 13};
    const int row_major = layout == CblasRowMajor;
    const int packed_a = trans_a == IsobitCblasPacked, packed_b = trans_b == IsobitCblasPacked;
    const int ta = packed_a ? 0 : trans_of_enum(trans_a),
              tb = packed_b ? 0 : trans_of_enum(trans_b);
    if (packed_a)
        lda = row_major ? at_least_1(k) : at_least_1(m);
    if (packed_b)
        ldb = row_major ? at_least_1(n) : at_least_1(k);
    int info = !is_layout((int)layout) ? 1 : c_info(row_major, ta, tb, m, n, k, lda, ldb, ldc, lds);
    if (!info && packed_a && !iso_blas_is_packed(a, row_major, (size_t)m, (size_t)k))
        info = 7;
    if (!info && packed_b && !iso_blas_is_packed(b, !row_major, (size_t)n, (size_t)k))
        info = 9;
    if (info) {
        bad_c(FULL_NAME("cblas_sgemm_compute"), info, "illegal value");
        return;
    }
    const struct product p =
        row_or_column(row_major, ta, tb, m, n, k, 1, a, lda, b, ldb, beta, c, ldc);
    iso_blas_compute(&p, row_major ? packed_a : packed_b, row_major ? packed_b : packed_a);
}
