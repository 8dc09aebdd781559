/* SPDX-License-Identifier: MIT
 *
 * What the files of test_blas share.
 */
#ifndef ISOBIT_TESTS_TEST_BLAS_H
#define ISOBIT_TESTS_TEST_BLAS_H

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

#define expect_report(name, info)                                                                  \
    do {                                                                                           \
        assert_int_equal(reports, 1);                                                              \
        assert_string_equal(reported_name, name);                                                  \
        assert_int_equal(reported, info);                                                          \
        reports = 0;                                                                               \
    } while (0)

struct gemm {
    int m, n, k, lda, ldb, ldc;
    bool ta, tb;
    float alpha, beta;
};

/* test_blas.c */
extern bool quick;
extern int reported, reports;
extern char reported_name[32];
extern bool no_memory;
extern _Atomic size_t allocations;
extern uint32_t state;
void fill(float *x, size_t n);
float *numbers(size_t n);
float *copy_of(const float *x, size_t n);
void same(const float *x, const float *y, size_t n);
size_t sets(const char *names[8]);
double bound(size_t n, double magnitude);
void close_to(float got, double want, double most);

/* products.c */
double element(const struct gemm *g, const float *a, const float *b, const float *c, int i, int j,
               double *magnitude);
CBLAS_TRANSPOSE flag(bool trans);
void row_gemm(const struct gemm *g, const float *a, const float *b, float *c);
void test_gemm(void **unused);
void test_gemm_zeros(void **unused);
size_t span(int n, int inc);
float *at(float *x, int n, int inc, int i);
void test_gemv(void **unused);

/* vectors.c */
void test_ger(void **unused);
void test_syrk(void **unused);
void test_vectors(void **unused);
void test_vectors_special(void **unused);

/* errors.c */
void test_errors(void **unused);
void test_errors_extensions(void **unused);
void test_errors_alone(void **unused);
void test_no_memory_and_alias(void **unused);
void test_scratch_stays(void **unused);
void test_scratch_of_many_threads_goes(void **unused);

/* threads.c */
void test_batch(void **unused);
extern float *wide_a, *wide_b;
void test_threads(void **unused);
void test_many_callers(void **unused);
void test_fork(void **unused);
void test_openmp(void **unused);

#endif
