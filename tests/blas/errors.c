/* SPDX-License-Identifier: MIT
 *
 * Errors, and what may go wrong.
 */
#include "test_blas.h"

/* Every parameter that can be wrong, by its number in Fortran and in C, row-major and column-major;
 * nothing is computed. */
void test_errors(void **unused) {
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

void test_errors_extensions(void **unused) {
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
void test_errors_alone(void **unused) {
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

void test_no_memory_and_alias(void **unused) {
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

/* C = A B^T + C / 2, whose sums need scratch of their own; how often it allocated. */
static size_t allocations_of(int m, int n, int k, const float *a, const float *b, const float *c,
                             float *got) {
    memcpy(got, c, (size_t)m * (size_t)n * sizeof *c);
    const size_t before = allocations;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1, a, k, b, k, 0.5f, got, n);
    return allocations - before;
}

/* What a large product needs beside its operands stays for the next one. */
void test_scratch_stays(void **unused) {
    (void)unused;
    enum { SMALL = 90, LARGE = 150, MOST = LARGE * LARGE };
    float *a = numbers(MOST), *b = numbers(MOST), *c = numbers(MOST);
    float *small = numbers(MOST), *large = numbers(MOST), *got = numbers(MOST);
    for (int threads = 1; threads <= 2; threads++) {
        openblas_set_num_threads(threads);
        (void)allocations_of(SMALL, SMALL, SMALL, a, b, c, small);
        assert_int_equal(allocations_of(SMALL, SMALL, SMALL, a, b, c, got), 0);
        same(got, small, SMALL * SMALL);
        (void)allocations_of(LARGE, LARGE, LARGE, a, b, c, large); /* more, once */
        assert_int_equal(allocations_of(LARGE, LARGE, LARGE, a, b, c, got), 0);
        same(got, large, MOST);
        assert_int_equal(allocations_of(SMALL, SMALL, SMALL, a, b, c, got), 0);
        same(got, small, SMALL * SMALL);
    }
    openblas_set_num_threads(0);
    free(a), free(b), free(c), free(small), free(large), free(got);
    if (quick)
        return;
    /* No memory for more than there is: as before, and afterwards too. */
    enum { WIDE = 600, LONG = 520 };
    a = numbers(WIDE * LONG), b = numbers(WIDE * LONG), c = numbers(WIDE * WIDE);
    got = numbers(WIDE * WIDE), large = numbers(WIDE * WIDE);
    no_memory = true;
    assert_true(allocations_of(WIDE, WIDE, LONG, a, b, c, got) > 0);
    no_memory = false;
    assert_true(allocations_of(WIDE, WIDE, LONG, a, b, c, large) > 0);
    same(got, large, WIDE * WIDE);
    assert_int_equal(allocations_of(WIDE, WIDE, LONG, a, b, c, got), 0);
    same(got, large, WIDE * WIDE);
    free(a), free(b), free(c), free(large), free(got);
}

/* More than is worth keeping: sums and columns of B of very many threads, which stay, so that this
 * test is the last. */
void test_scratch_of_many_threads_goes(void **unused) {
    (void)unused;
    if (quick)
        return;
    enum { ROWS = 1024, COLUMNS = 200, STEPS = 520, THREADS = 64 };
    float *a = numbers((size_t)ROWS * STEPS), *b = numbers((size_t)COLUMNS * STEPS);
    float *c = numbers((size_t)ROWS * COLUMNS), *got = numbers((size_t)ROWS * COLUMNS);
    openblas_set_num_threads(THREADS);
    for (int i = 0; i < 2; i++)
        assert_true(allocations_of(ROWS, COLUMNS, STEPS, a, b, c, got) > 0);
    openblas_set_num_threads(0);
    free(a), free(b), free(c), free(got);
}
