/* SPDX-License-Identifier: MIT
 *
 * sger, ssyrk and level 1.
 */
#include "test_blas.h"

void test_ger(void **unused) {
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

void test_syrk(void **unused) {
    (void)unused;
    static const int sizes[][2] = {{1, 1},    {5, 40},   {33, 7}, {129, 20},
                                   {50, 600}, {200, 70}, {300, 3}};
    for (size_t s = 0; s < 7U - 2U * quick; s++)
        for (int i = 0; i < 4; i++) {
            check_syrk(sizes[s][0], sizes[s][1], i & 1, i & 2, 1, 0);
            check_syrk(sizes[s][0], sizes[s][1], i & 1, i & 2, 1, 1);
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

void test_vectors(void **unused) {
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
void test_vectors_special(void **unused) {
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
