/* SPDX-License-Identifier: MIT
 *
 * A library that a suite must not pass with: matrix products with one wrong element, and no other
 * routine. The right ones come from the library beneath.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT */
#endif
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

typedef void fortran(const char *, const char *, const int *, const int *, const int *,
                     const float *, const float *, const int *, const float *, const int *,
                     const float *, float *, const int *, size_t, size_t);
typedef void c_language(int, int, int, int, int, int, float, const float *, int, const float *, int,
                        float, float *, int);
fortran sgemm_;
c_language cblas_sgemm;

static void spoil(int m, int n, float *c) {
    if (m > 0 && n > 0)
        *c += 0.001f + *c / 1024;
}

/* NumPy loads the library beneath where RTLD_NEXT does not see it. */
static void *beneath(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    return found ? found : dlsym(dlopen("libblas.so.3", RTLD_NOW), name);
}

void sgemm_(const char *trans_a, const char *trans_b, const int *m, const int *n, const int *k,
            const float *alpha, const float *a, const int *lda, const float *b, const int *ldb,
            const float *beta, float *c, const int *ldc, size_t length_a, size_t length_b) {
    void *found = beneath("sgemm_");
    fortran *right = NULL;
    memcpy(&right, &found, sizeof right);
    right(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, length_a, length_b);
    spoil(*m, *n, c);
}

void cblas_sgemm(int layout, int trans_a, int trans_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc) {
    void *found = beneath("cblas_sgemm");
    c_language *right = NULL;
    memcpy(&right, &found, sizeof right);
    right(layout, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    spoil(m, n, c);
}
