/* SPDX-License-Identifier: MIT
 *
 * A part of interface.h: batches of products, and packed operands.
 */
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
