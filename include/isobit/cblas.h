/* SPDX-License-Identifier: MIT
 *
 * libisobit_blas: the single-precision BLAS routines that a neural network calls, on the kernels of
 * isobit. A partial BLAS: what is not declared here (double precision, complex numbers, triangular
 * solves, LAPACK) is left to the BLAS that is linked, or found, after this library.
 *
 * Semantics are those of the reference BLAS: column-major Fortran routines (sgemm_ and so on, with
 * hidden string lengths that may be left out), CBLAS with a layout argument. Sizes are int; with
 * ISOBIT_ILP64 defined before this header they are int64_t, and the names end in _64 (Fortran:
 * sgemm_64_). The same library has both, cblas_sgemm64_ as a third name, and the names that wheels
 * of NumPy and SciPy call (scipy_sgemm_, scipy_cblas_sgemm64_), which are not declared here.
 *  - beta = 0: the output is not read. alpha = 0: A, B and x are not read (but sscal reads x). A
 *    negative increment walks a vector from its end.
 *  - A bad argument: nothing is computed, and xerbla_ (Fortran) or cblas_xerbla is called if the
 *    program or another library has one; else a line on stderr says which parameter was wrong. This
 *    library never ends the program.
 *  - Memory that cannot be had, or an output that overlaps an input, make a call slower, not wrong.
 *  - Threads: any number may call at once. How many a large call uses: openblas_set_num_threads,
 *    else ISOBIT_NUM_THREADS, else OMP_NUM_THREADS, else as many as the affinity mask and the
 * cgroup quota allow. Where none of the first two is given and the program has loaded an OpenMP
 * runtime, omp_get_max_threads() is a limit, too. Which ones: those of that runtime, if it has as
 * many; else those of one pool for the process, made at the first such call. Inside an OpenMP
 * parallel region, and while another thread has them, a call runs on its own thread. After fork()
 * the child makes a pool of its own.
 *
 * The bits: those of docs/numerics.md, the same for any instruction set and number of threads, from
 * Fortran and from C, row-major or column-major, packed or not, in a batch or alone.
 */
#ifndef ISOBIT_CBLAS_H
#define ISOBIT_CBLAS_H

#include <isobit/isobit.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef ISOBIT_ILP64
typedef int64_t iso_blas_int;
#define cblas_sgemm cblas_sgemm_64
#define cblas_sgemv cblas_sgemv_64
#define cblas_sger cblas_sger_64
#define cblas_ssyrk cblas_ssyrk_64
#define cblas_sdot cblas_sdot_64
#define cblas_saxpy cblas_saxpy_64
#define cblas_sscal cblas_sscal_64
#define cblas_snrm2 cblas_snrm2_64
#define cblas_sasum cblas_sasum_64
#define cblas_isamax cblas_isamax_64
#define cblas_scopy cblas_scopy_64
#define cblas_sswap cblas_sswap_64
#define cblas_sgemm_batch cblas_sgemm_batch_64
#define cblas_sgemm_batch_strided cblas_sgemm_batch_strided_64
#define cblas_sgemm_pack_get_size cblas_sgemm_pack_get_size_64
#define cblas_sgemm_pack cblas_sgemm_pack_64
#define cblas_sgemm_compute cblas_sgemm_compute_64
#else
typedef int iso_blas_int;
#endif

/* Another cblas.h that came before has these. */
#ifndef CBLAS_H
#define CBLAS_H
typedef enum CBLAS_LAYOUT { CblasRowMajor = 101, CblasColMajor = 102 } CBLAS_LAYOUT;
typedef CBLAS_LAYOUT CBLAS_ORDER;
typedef enum CBLAS_TRANSPOSE {
    CblasNoTrans = 111,
    CblasTrans = 112,
    CblasConjTrans = 113
} CBLAS_TRANSPOSE;
typedef enum CBLAS_UPLO { CblasUpper = 121, CblasLower = 122 } CBLAS_UPLO;

/* C = alpha op(A) op(B) + beta C; op(A) is m x k, op(B) k x n. */
ISOBIT_API void cblas_sgemm(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE trans_a, CBLAS_TRANSPOSE trans_b,
                            iso_blas_int m, iso_blas_int n, iso_blas_int k, float alpha,
                            const float *a, iso_blas_int lda, const float *b, iso_blas_int ldb,
                            float beta, float *c, iso_blas_int ldc);
/* y = alpha op(A) x + beta y; A (not op(A)) is m x n. */
ISOBIT_API void cblas_sgemv(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE trans, iso_blas_int m,
                            iso_blas_int n, float alpha, const float *a, iso_blas_int lda,
                            const float *x, iso_blas_int incx, float beta, float *y,
                            iso_blas_int incy);
/* A = A + alpha x y^T; A is m x n. */
ISOBIT_API void cblas_sger(CBLAS_LAYOUT layout, iso_blas_int m, iso_blas_int n, float alpha,
                           const float *x, iso_blas_int incx, const float *y, iso_blas_int incy,
                           float *a, iso_blas_int lda);
/* C = alpha A A^T + beta C, or with trans alpha A^T A + beta C; one triangle of C, n x n. */
ISOBIT_API void cblas_ssyrk(CBLAS_LAYOUT layout, CBLAS_UPLO uplo, CBLAS_TRANSPOSE trans,
                            iso_blas_int n, iso_blas_int k, float alpha, const float *a,
                            iso_blas_int lda, float beta, float *c, iso_blas_int ldc);
ISOBIT_API float cblas_sdot(iso_blas_int n, const float *x, iso_blas_int incx, const float *y,
                            iso_blas_int incy);
ISOBIT_API void cblas_saxpy(iso_blas_int n, float alpha, const float *x, iso_blas_int incx,
                            float *y, iso_blas_int incy);
ISOBIT_API void cblas_sscal(iso_blas_int n, float alpha, float *x, iso_blas_int incx);
ISOBIT_API float cblas_snrm2(iso_blas_int n, const float *x, iso_blas_int incx);
ISOBIT_API float cblas_sasum(iso_blas_int n, const float *x, iso_blas_int incx);
/* The index, from 0, of the first element of largest |x|; 0 where there is none. */
ISOBIT_API size_t cblas_isamax(iso_blas_int n, const float *x, iso_blas_int incx);
ISOBIT_API void cblas_scopy(iso_blas_int n, const float *x, iso_blas_int incx, float *y,
                            iso_blas_int incy);
ISOBIT_API void cblas_sswap(iso_blas_int n, float *x, iso_blas_int incx, float *y,
                            iso_blas_int incy);
#endif

/* ---------------------------------------------------------------------- extensions, as in MKL */

/* For cblas_sgemm_compute, in place of a transposition; and which operand is packed. */
enum { IsobitCblasPacked = 151, IsobitCblasAMatrix = 161, IsobitCblasBMatrix = 162 };

/*
 * Groups of products of the same form: group g has group_size[g] products with trans_a[g], m[g],
 * ... ldc[g]; a, b and c hold the pointers of all products, one group after the other. The outputs
 * must not overlap each other. A bad argument anywhere: no product is computed.
 */
ISOBIT_API void cblas_sgemm_batch(CBLAS_LAYOUT layout, const CBLAS_TRANSPOSE *trans_a,
                                  const CBLAS_TRANSPOSE *trans_b, const iso_blas_int *m,
                                  const iso_blas_int *n, const iso_blas_int *k, const float *alpha,
                                  const float **a, const iso_blas_int *lda, const float **b,
                                  const iso_blas_int *ldb, const float *beta, float **c,
                                  const iso_blas_int *ldc, iso_blas_int group_count,
                                  const iso_blas_int *group_size);

/* batch_size products; the operands of the next one lie stride_a, stride_b, stride_c floats on. */
ISOBIT_API void cblas_sgemm_batch_strided(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE trans_a,
                                          CBLAS_TRANSPOSE trans_b, iso_blas_int m, iso_blas_int n,
                                          iso_blas_int k, float alpha, const float *a,
                                          iso_blas_int lda, iso_blas_int stride_a, const float *b,
                                          iso_blas_int ldb, iso_blas_int stride_b, float beta,
                                          float *c, iso_blas_int ldc, iso_blas_int stride_c,
                                          iso_blas_int batch_size);

/*
 * An operand that is used many times is packed once. get_size: the bytes that `dest` needs (0 for
 * arguments that are refused); no alignment is asked for. pack: A (m x k) or B (k x n), as
 * `identifier` says, times alpha. compute: C = op(A) op(B) + beta C, where IsobitCblasPacked in
 * place of trans_a or trans_b says that a or b is what pack wrote for the same layout and sizes
 * (its ld is not looked at). The bits are those of cblas_sgemm with the same alpha.
 */
ISOBIT_API size_t cblas_sgemm_pack_get_size(int identifier, iso_blas_int m, iso_blas_int n,
                                            iso_blas_int k);
ISOBIT_API void cblas_sgemm_pack(CBLAS_LAYOUT layout, int identifier, CBLAS_TRANSPOSE trans,
                                 iso_blas_int m, iso_blas_int n, iso_blas_int k, float alpha,
                                 const float *src, iso_blas_int ld, float *dest);
ISOBIT_API void cblas_sgemm_compute(CBLAS_LAYOUT layout, int trans_a, int trans_b, iso_blas_int m,
                                    iso_blas_int n, iso_blas_int k, const float *a,
                                    iso_blas_int lda, const float *b, iso_blas_int ldb, float beta,
                                    float *c, iso_blas_int ldc);

/* ----------------------------------------------------------------- names that OpenBLAS has, too */

/*
 * threads < 1 returns to the default. The same call goes to an OpenBLAS that was loaded after this
 * library. config is "isobit 0.1.0, ...", corename the instruction set that calls use. Both are
 * static, and not to be written to.
 */
ISOBIT_API void openblas_set_num_threads(int threads);
ISOBIT_API int openblas_get_num_threads(void);
ISOBIT_API int openblas_get_parallel(void); /* 1: threads of its own, not OpenMP's */
ISOBIT_API char *openblas_get_config(void);
ISOBIT_API char *openblas_get_corename(void);

#ifdef __cplusplus
}
#endif

#endif
