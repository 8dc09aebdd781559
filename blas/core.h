/* SPDX-License-Identifier: MIT
 *
 * The routines behind the Fortran and C names, for row-major matrices and sizes of any type:
 * arguments have been checked, quick returns are theirs. A column-major matrix is the transpose of
 * a row-major one, so each interface only exchanges operands.
 */
#ifndef ISOBIT_BLAS_CORE_H
#define ISOBIT_BLAS_CORE_H

#include <isobit/ops.h>

#include <stddef.h>

/* One strided vector: element i lies at p[i * inc]; inc may be negative or 0. */
struct vector {
    float *p;
    ptrdiff_t inc;
};
struct const_vector {
    const float *p;
    ptrdiff_t inc;
};

/* A negative increment walks from the end of the memory that x is the beginning of. */
static inline struct vector vector_of(float *x, size_t n, ptrdiff_t inc) {
    return (struct vector){x && n && inc < 0 ? x - (ptrdiff_t)(n - 1) * inc : x, inc};
}
static inline struct const_vector const_vector_of(const float *x, size_t n, ptrdiff_t inc) {
    return (struct const_vector){x && n && inc < 0 ? x - (ptrdiff_t)(n - 1) * inc : x, inc};
}

/* ---------------------------------------------------------------------------------- level 3 */

/* C [m][ldc] = alpha op(A) op(B) + beta C; A is [m][lda], or with trans_a [k][lda]; so is B. */
struct product {
    size_t m, n, k;
    int trans_a, trans_b;
    float alpha, beta;
    const float *a, *b;
    float *c;
    size_t lda, ldb, ldc;
};
void iso_blas_gemm(const struct product *p);
/* The same as a part of something larger. */
void iso_blas_gemm_within(const struct product *p, const iso_context *context);

/*
 * The product by its definition, one element after the other, with no memory of its own: what is
 * left where nothing faster can be had. A(i, p) = a[i * ai + p * ap], B(p, j) = b[j / 16 * bs +
 * j % 16 * bj + p * bp]. lower: only j <= i, upper: only j >= i. skip: steps where A is 0 are left
 * out, whatever B is.
 */
struct plain {
    size_t ai, ap, bs, bj, bp;
    int lower, upper, skip;
};
void iso_blas_plain(const struct product *p, const struct plain *l);
/* Its sums: of k products, in the order of a product. skip: without those where a is 0. */
float iso_blas_sum(size_t k, struct const_vector a, struct const_vector b, int skip);

/* One triangle of C [n][ldc] = alpha A A^T + beta C, A [n][lda]; or with trans A^T A, A [k][lda].
 */
void iso_blas_syrk(int upper, int trans, size_t n, size_t k, float alpha, const float *a,
                   size_t lda, float beta, float *c, size_t ldc);

/* What cblas_sgemm_pack writes, see pack.c. `left`: the first operand of the row-major product. */
size_t iso_blas_pack_bytes(size_t rows, size_t k);
void iso_blas_pack(void *dest, int left, const float *src, size_t ld, size_t rows, size_t k,
                   int k_major, float alpha);
/* Whether `packed` is such an operand with so many rows (columns, on the right) and steps. */
int iso_blas_is_packed(const void *packed, int left, size_t rows, size_t k);
/* A or B may be packed: then the operand's pointer is what iso_blas_pack wrote. */
void iso_blas_compute(const struct product *p, int packed_a, int packed_b);

/* C = A [m][lda] times panels of iso_pack_f32, with alpha 1 and beta 0 or 1; B is not looked at. */
iso_status iso_blas_linear(const struct product *p, const float *panels,
                           const iso_context *context);

/* Products first .. first+count of a batch are independent of each other. */
void iso_blas_batch(size_t count, double work, void (*make)(struct product *p, size_t i, void *arg),
                    void *arg);

/* ---------------------------------------------------------------------------------- level 2 */

/* y = alpha W x + beta y: W [n][ldw], or with trans [k][ldw], a row of a product. */
void iso_blas_gemv(int trans, size_t n, size_t k, float alpha, const float *w, size_t ldw,
                   struct const_vector x, float beta, struct vector y);

/* Row r of A [rows][lda], n floats, = A + (alpha y[r]) x, if y[r] is not 0. */
void iso_blas_ger(size_t rows, size_t n, float alpha, struct const_vector x, struct const_vector y,
                  float *a, size_t lda);

/* ---------------------------------------------------------------------------------- level 1 */

float iso_blas_dot(size_t n, struct const_vector x, struct const_vector y);
/* y = alpha x + beta y, alpha x first; beta = 0: y is not read. */
void iso_blas_axpby(size_t n, float alpha, struct const_vector x, float beta, struct vector y);
float iso_blas_nrm2(size_t n, struct const_vector x);
float iso_blas_asum(size_t n, struct const_vector x);
size_t iso_blas_iamax(size_t n, struct const_vector x); /* n > 0 */
void iso_blas_copy(size_t n, struct const_vector x, struct vector y);
void iso_blas_swap(size_t n, struct vector x, struct vector y);

/* ---------------------------------------------------------------------------------- threads */

/* Room for what a call's context points at. */
struct call {
    iso_context context;
    iso_executor executor;
};

/*
 * The context of a call with so many multiplications (or elements, where memory is the limit): NULL
 * for the calling thread alone.
 */
const iso_context *iso_blas_context(struct call *call, double work);

/* With less work calls stay on their thread, and make no pool: what the operations think, too. */
#define BLAS_SMALL_WORK 524288.0
/* Rows, columns and steps of a product, at most, where each instruction around the kernel counts.
 */
#define BLAS_TINY 64

/* Memory that stays between calls, as the workspace of one. */
struct borrowed {
    iso_context context;
    struct iso_blas_slot *slot; /* NULL: none */
};
/* context, or with so much memory b->context. *b, at first {0}, is given back, whatever comes. */
const iso_context *iso_blas_borrow(struct borrowed *b, size_t bytes, const iso_context *context);
void iso_blas_give_back(struct borrowed *b);

/*
 * What a status means for the caller of a BLAS, which has no place for it. 1: try again. So it is
 * once, after a line on stderr, when ISOBIT_ISA names no set that can run: the bits would have been
 * the same.
 */
int iso_blas_again(iso_status status);

/* ------------------------------------------------------------------------- what happens */

/*
 * A line about a call for who looks (ISOBIT_VERBOSE), beside those of the operations that it is
 * made of: the time when it began, 0 when nobody looks; then its shape, as printf takes it.
 */
double iso_blas_begin(void);
#define BLAS_FACTORS "%s%s" /* the end of a shape: which of them there are */
#define BLAS_FACTORS_OF(alpha, beta) (alpha) != 1 ? ":alpha" : "", (beta) != 0 ? ":beta" : ""
void iso_blas_end(double begin, const char *routine, const iso_context *context, const char *shape,
                  ...) __attribute__((cold, format(printf, 4, 5)));

/* ----------------------------------------------------------------------------------- errors */

/* Who called: what a bad argument is reported as depends on it. */
struct caller {
    const char *name; /* "SGEMM " for Fortran, six characters */
    int ilp64, from_c, row_major;
};

/*
 * Parameter `info`, counted as in Fortran, is wrong. From C it is one more, for the layout; in a
 * row-major call operands have been exchanged, and `exchanged` is the parameter that the caller
 * knows it as.
 */
void iso_blas_bad(const struct caller *caller, int info, int exchanged);

/* Parameter `info` of a C routine that has no Fortran counterpart, or a layout or an enumeration.
 */
void iso_blas_bad_c(const char *name, int ilp64, int info, const char *what);

#endif
