/* SPDX-License-Identifier: MIT
 *
 * gemm, linear and gemv.
 */
#include "test_ops.h"

struct gemm_case {
    size_t m, n, k;
    int trans_a, trans_b;
    float alpha, beta;
    int bias, act, residual; /* residual 2: C itself */
    size_t gap;
};

/* What should come out, element by element, into the dense y. */
static void gemm_expect(float *y, const struct gemm_case *g, const float *c, size_t ldc,
                        const float *a, size_t lda, const float *b, size_t ldb, const float *bias,
                        const float *residual, size_t ldr) {
    for (size_t i = 0; i < g->m; i++) {
        for (size_t j = 0; j < g->n; j++) {
            struct iso_oracle_epilogue e = {.alpha = (double)g->alpha,
                                            .beta = (double)g->beta,
                                            .c = c ? &c[i * ldc + j] : NULL,
                                            .bias = bias ? &bias[j] : NULL,
                                            .act = g->act,
                                            .residual = residual ? &residual[i * ldr + j] : NULL};
            float t =
                g->alpha == 0 || !g->k
                    ? 0
                    : iso_oracle_gemm_chain(g->trans_a ? a + i : a + i * lda, g->trans_a ? lda : 1,
                                            g->trans_b ? b + j * ldb : b + j, g->trans_b ? 1 : ldb,
                                            g->k, ISO_K_BLOCK);
            y[i * g->n + j] = iso_oracle_epilogue_exact(t, &e);
        }
    }
}

static void check_gemm(const struct gemm_case *g, size_t first_way, size_t last_way) {
    size_t lda = (g->trans_a ? g->m : g->k) + g->gap, ldb = (g->trans_b ? g->k : g->n) + g->gap;
    size_t ldc = g->n + g->gap, ldr = g->n + 2 * g->gap,
           extent = g->m ? (g->m - 1) * ldc + g->n : 0;
    float *a = g->trans_a ? random_matrix(g->k, g->m, lda) : random_matrix(g->m, g->k, lda);
    float *b = g->trans_b ? random_matrix(g->n, g->k, ldb) : random_matrix(g->k, g->n, ldb);
    float *bias = g->bias ? random_floats(g->n) : NULL;
    float *own = g->residual == 1 ? random_matrix(g->m, g->n, ldr) : NULL;
    float *c0 = canaries(extent), *c = floats(extent), *expect = floats(g->m * g->n);
    bool reads_c = g->beta != 0 || g->residual == 2;
    for (size_t i = 0; i < g->m && reads_c; i++) {
        for (size_t j = 0; j < g->n; j++)
            c0[i * ldc + j] = random_float();
    }
    for (size_t i = 0; i < g->m && !reads_c; i++) {
        for (size_t j = 0; j < g->n; j++)
            c0[i * ldc + j] = NAN;
    }
    const float *residual = g->residual == 2 ? c0 : own;
    if (g->residual == 2)
        ldr = ldc;
    bool exact = g->act <= ISOBIT_ACT_RELU;
    if (exact)
        gemm_expect(expect, g, c0, ldc, a, lda, b, ldb, bias, residual, ldr);
    for (size_t w = first_way; w < last_way; w++) {
        memcpy(c, c0, extent * sizeof *c);
        iso_gemm_options options = {.size = sizeof options,
                                    .trans_a = g->trans_a,
                                    .trans_b = g->trans_b,
                                    .alpha = g->alpha,
                                    .beta = g->beta,
                                    .bias = bias,
                                    .act = (iso_activation)g->act,
                                    .residual = g->residual == 2 ? c : own,
                                    .ldr = ldr};
        const bool plain = !g->trans_a && !g->trans_b && g->alpha == 1 && g->beta == 0 &&
                           !g->bias && !g->act && !g->residual;
        assert_ok(iso_gemm_f32(c, ldc, a, lda, b, ldb, g->m, g->n, g->k,
                               plain && w % 2 ? NULL : &options, &ways[w].context));
        char what[200];
        snprintf(what, sizeof what,
                 "gemm m %zu n %zu k %zu trans %d%d alpha %g beta %g bias %d act %d res %d gap %zu "
                 "(%s)",
                 g->m, g->n, g->k, g->trans_a, g->trans_b, (double)g->alpha, (double)g->beta,
                 g->bias, g->act, g->residual, g->gap, ways[w].name);
        if (!exact && w == first_way) {
            for (size_t i = 0; i < g->m; i++)
                memcpy(expect + i * g->n, c + i * ldc, g->n * sizeof *c);
        }
        assert_same(what, c, ldc, expect, g->n, g->m, g->n);
        assert_true(gaps_kept(c, ldc, g->m, g->n));
    }
    release(NULL);
}

void gemm_is_the_canonical_chain(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 2, 3, 5, 7, 13, 14, 15, 16, 17, 29, 31, 33, 47, 64, 65, 100};
    static const size_t ks[] = {1,   2,   3,   8,   16,  17,   63,   64,  65,
                                255, 511, 512, 513, 700, 1023, 1024, 1025};
    static const float scalars[] = {1, 0, -1, 0.5f, 2};
    size_t count = sizeof sizes / sizeof *sizes, k_count = sizeof ks / sizeof *ks, t = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            for (size_t p = 0; p < (quick ? 1 : 6); p++, t++) {
                struct gemm_case g = {.m = sizes[i],
                                      .n = sizes[j],
                                      .k = ks[(t * 5 + p) % k_count],
                                      .trans_a = t & 1,
                                      .trans_b = t >> 1 & 1,
                                      .alpha = t % 4 ? 1 : scalars[t / 4 % 5],
                                      .beta = t % 5 ? 0 : scalars[t / 5 % 5],
                                      .bias = t / 3 % 2,
                                      .act = t % 7 == 3 ? (int)(t / 7 % 6) : t % 3 == 1,
                                      .residual = (int)(t / 11 % 3),
                                      .gap = t / 2 % 4};
                if (quick && (t % 8 || g.k > 513))
                    continue;
                check_gemm(&g, 0, isa_ways);
            }
        }
    }
    /* tiny and plain, which has a way of its own */
    for (size_t m = 1; m <= 66; m += m < 34 ? 1 : 15)
        for (size_t n = 1; n <= 66; n += quick ? 13 : m % 3 + 1) {
            struct gemm_case g = {.m = m, .n = n, .k = 1 + (m * 7 + n) % 66, .alpha = 1};
            g.gap = n % 3, g.trans_a = (m + n) % 5 == 0, g.trans_b = (m + n) % 7 == 0;
            check_gemm(&g, 0, isa_ways);
        }
    /* one of each alpha and beta with each transposition, and sizes that are 0 */
    for (int trans = 0; trans < 4; trans++) {
        for (size_t i = 0; i < 25; i++) {
            struct gemm_case g = {.m = 9,
                                  .n = 21,
                                  .k = 37,
                                  .trans_a = trans & 1,
                                  .trans_b = trans >> 1,
                                  .alpha = scalars[i % 5],
                                  .beta = scalars[i / 5],
                                  .bias = (int)i & 1,
                                  .gap = 1};
            check_gemm(&g, 0, isa_ways);
        }
        struct gemm_case g = {.m = 9,
                              .n = 21,
                              .k = 0,
                              .trans_a = trans & 1,
                              .trans_b = trans >> 1,
                              .alpha = 1,
                              .beta = 0.5f,
                              .bias = 1,
                              .gap = 1};
        check_gemm(&g, 0, isa_ways);
    }
}

void gemm_is_the_same_every_way(void **state) {
    (void)state;
    static const size_t shapes[][3] = {{1, 300, 700},  {130, 70, 65}, {300, 7, 513}, {65, 530, 33},
                                       {257, 129, 64}, {2, 1000, 40}, {16, 512, 512}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int trans = 0; trans < 4; trans++) {
            if (quick && (trans != (int)i % 4 || shapes[i][2] > 600))
                continue;
            struct gemm_case g = {.m = shapes[i][0],
                                  .n = shapes[i][1],
                                  .k = shapes[i][2],
                                  .trans_a = trans & 1,
                                  .trans_b = trans >> 1,
                                  .alpha = 1,
                                  .bias = 1,
                                  .act = trans == 1 ? ISOBIT_ACT_GELU_TANH : 0,
                                  .residual = trans == 2,
                                  .gap = (size_t)trans};
            check_gemm(&g, 0, way_count);
        }
    }
}

/* Few rows and a B that no cache holds: it is read along its rows. */
void gemm_reads_b_beyond_l2(void **state) {
    (void)state;
    static const struct gemm_case cases[] = {
        {.m = 1, .n = 4101, .k = 513, .alpha = 1},
        {.m = 7, .n = 4103, .k = 1025, .alpha = 1, .bias = 1, .gap = 3},
        {.m = 8, .n = 9000, .k = 235, .trans_a = 1, .alpha = 2, .act = ISOBIT_ACT_RELU, .gap = 1},
        {.m = 5, .n = 70001, .k = 31, .alpha = 1, .residual = 1},
        {.m = 2, .n = 2055, .k = 1030, .alpha = 1, .beta = 0.5f},
        {.m = 3, .n = 40000, .k = 53, .alpha = -1, .residual = 2},
        {.m = 15, .n = 2060, .k = 1030, .alpha = 1, .act = ISOBIT_ACT_RELU},
        {.m = 16, .n = 4099, .k = 514, .trans_a = 1, .alpha = 1, .bias = 1},
        {.m = 31, .n = 4110, .k = 512, .alpha = 1, .gap = 2},
        {.m = 32, .n = 5000, .k = 420, .trans_a = 1, .alpha = 1},
        {.m = 6, .n = 8200, .k = 650, .alpha = 1, .bias = 1}, /* from memory */
        {.m = 9, .n = 9221, .k = 570, .trans_a = 1, .alpha = 1, .residual = 1, .gap = 1},
        {.m = 16, .n = 1024, .k = 520, .alpha = 1, .bias = 1}, /* 4 KiB between rows */
        {.m = 6, .n = 1536, .k = 260, .trans_a = 1, .alpha = 1},
        {.m = 24, .n = 1024, .k = 261, .alpha = 1, .act = ISOBIT_ACT_RELU},
    };
    for (size_t i = 0; i < (quick ? 1 : sizeof cases / sizeof *cases); i++)
        check_gemm(&cases[i], 0, quick ? isa_ways : way_count);
}

/* Up to 128 rows and a transposed B: its rows are transposed in registers, a block of it is packed,
 * or the transposed product is computed, and the rows that are left separately. */
void gemm_transposes_rows_of_b_or_sums(void **state) {
    (void)state;
    static const size_t rows[] = {11, 12, 13, 14, 15, 16,  17, 21, 25, 26,
                                  27, 31, 32, 33, 48, 100, 6,  7,  8,  9};
    static const size_t columns[] = {49, 150, 17, 300, 97}, ks[] = {400, 512, 513, 130, 1030, 70};
    size_t t = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t j = 0; j < (quick ? 1 : 5); j++, t++) {
            struct gemm_case g = {.m = rows[i],
                                  .n = columns[(i + j) % 5],
                                  .k = ks[t % (quick ? 4 : 6)],
                                  .trans_a = t % 3 == 0,
                                  .trans_b = 1,
                                  .alpha = t % 5 == 1 ? 2 : 1,
                                  .beta = t % 7 == 2 ? -1 : 0,
                                  .bias = t % 4 == 3,
                                  .act = t % 4 == 1,
                                  .residual = (int)(t / 2 % 3),
                                  .gap = t % 2 * 3};
            check_gemm(&g, 0, t % 6 || quick ? isa_ways : way_count);
        }
    static const struct gemm_case cases[] = {
        {.m = 24, .n = 500, .k = 512, .trans_b = 1, .alpha = 1, .bias = 1},
        {.m = 29, .n = 700, .k = 1025, .trans_b = 1, .alpha = 1, .residual = 1, .gap = 1},
        {.m = 19, .n = 600, .k = 300, .trans_b = 1, .alpha = 1, .residual = 2},
        {.m = 128, .n = 260, .k = 1024, .trans_b = 1, .alpha = 1},
        {.m = 125, .n = 129, .k = 520, .trans_a = 1, .trans_b = 1, .alpha = 1, .beta = 0.5f},
        {.m = 16, .n = 500, .k = 1024, .trans_b = 1, .alpha = 1, .bias = 1},
        {.m = 6, .n = 200, .k = 1020, .trans_b = 1, .alpha = 1, .residual = 1, .gap = 4},
        /* 4 KiB between rows: two vectors of rows of A, of which one is hardly there */
        {.m = 9, .n = 150, .k = 1024, .trans_b = 1, .alpha = 1, .bias = 1},
        {.m = 28, .n = 100, .k = 1000, .trans_b = 1, .alpha = 2, .residual = 1, .gap = 24},
        {.m = 3, .n = 97, .k = 1008, .trans_b = 1, .alpha = 1, .beta = 0.5f, .gap = 16},
        /* in memory */
        {.m = 17, .n = 4200, .k = 513, .trans_b = 1, .alpha = 1},
        {.m = 1, .n = 5201, .k = 1024, .trans_b = 1, .alpha = 1, .bias = 1},
        {.m = 5, .n = 5201, .k = 1010, .trans_b = 1, .alpha = 1, .residual = 1, .gap = 14},
    };
    for (size_t i = 0; i < (quick ? 1 : sizeof cases / sizeof *cases); i++)
        check_gemm(&cases[i], 0, quick ? isa_ways : way_count);
}

/* A plain B that does not stay where it lies, for up to 128 rows, or on one thread: too many rows
 * for that, or rows of B that alias in the caches. */
void gemm_packs_blocks_of_b(void **state) {
    (void)state;
    static const struct gemm_case cases[] = {
        {.m = 31, .n = 520, .k = 530, .alpha = 1},
        {.m = 25, .n = 1024, .k = 600, .alpha = 1, .bias = 1, .act = ISOBIT_ACT_RELU},
        {.m = 61, .n = 2048, .k = 130, .alpha = 2, .beta = 0.5f},
        {.m = 128, .n = 1024, .k = 300, .trans_a = 1, .alpha = 1, .residual = 1},
        {.m = 100, .n = 1019, .k = 515, .alpha = -1, .residual = 2, .gap = 5},
        {.m = 40, .n = 3070, .k = 514, .alpha = 1, .gap = 2},
        {.m = 300, .n = 291, .k = 530, .trans_b = 1, .alpha = 1, .bias = 1},
        {.m = 131, .n = 1027, .k = 520, .alpha = 2, .residual = 1, .gap = 5},
    };
    static const struct gemm_case large[] = {
        /* few rows do; the last ones come from memory */
        {.m = 12, .n = 4103, .k = 1025, .alpha = 1, .bias = 1, .act = ISOBIT_ACT_RELU},
        {.m = 17, .n = 2050, .k = 2050, .alpha = 1, .beta = 0.5f},
        {.m = 40, .n = 8200, .k = 520, .trans_a = 1, .alpha = 1, .residual = 2},
        {.m = 21, .n = 8192, .k = 520, .alpha = 2, .residual = 1, .gap = 1024},
        {.m = 9, .n = 10241, .k = 513, .alpha = 1, .residual = 1, .gap = 3},
        {.m = 8, .n = 5130, .k = 1024, .alpha = 1},
        {.m = 11, .n = 10500, .k = 512, .trans_a = 1, .alpha = 1},
        {.m = 5, .n = 10250, .k = 513, .alpha = 1, .bias = 1, .gap = 3},
        {.m = 8, .n = 4096, .k = 520, .alpha = 1, .residual = 2},
        {.m = 7, .n = 4103, .k = 514, .alpha = 1, .act = ISOBIT_ACT_RELU},
        {.m = 10, .n = 4096, .k = 520, .alpha = 2, .beta = 0.5f},
    };
    for (size_t i = 0; i < (quick ? 2 : sizeof cases / sizeof *cases); i++)
        check_gemm(&cases[i], 0, quick ? isa_ways : way_count);
    for (size_t i = 0; i < (quick ? 0 : sizeof large / sizeof *large); i++) {
        check_gemm(&large[i], 0, isa_ways);
        check_gemm(&large[i], isa_ways + 3, isa_ways + 5); /* two threads and three, best set */
    }
}

/* Few rows and a plain B that stays where it lies, though its rows alias in the caches,
 * or with a second block of k, whose sums are added to many columns at a time. */
void gemm_takes_few_rows_along(void **state) {
    (void)state;
    static const struct gemm_case cases[] = {
        {.m = 5, .n = 1024, .k = 75, .alpha = 1, .bias = 1},
        {.m = 1, .n = 1100, .k = 530, .alpha = 1, .residual = 1},
        {.m = 23, .n = 1020, .k = 40, .alpha = 1, .gap = 4, .act = ISOBIT_ACT_RELU},
        {.m = 3, .n = 2047, .k = 520, .alpha = 2, .gap = 1},
        {.m = 4, .n = 1150, .k = 514, .alpha = 1},
        {.m = 2, .n = 1100, .k = 1030, .alpha = 1, .beta = 0.5f},
        {.m = 24, .n = 1024, .k = 600, .alpha = 1, .residual = 2},
    };
    for (size_t i = 0; i < (quick ? 3 : sizeof cases / sizeof *cases); i++)
        check_gemm(&cases[i], 0, quick ? isa_ways : way_count);
}

/* More rows, and a B that is packed whole: full tiles take bias and ReLU along, if these come after
 * the sums at once, the columns beside them do not. */
void gemm_takes_bias_and_relu_along(void **state) {
    (void)state;
    static const struct gemm_case cases[] = {
        {.m = 136, .n = 300, .k = 514, .alpha = 1, .bias = 1, .act = ISOBIT_ACT_RELU},
        {.m = 136, .n = 300, .k = 514, .alpha = 2, .bias = 1, .act = ISOBIT_ACT_RELU, .gap = 1},
        {.m = 136, .n = 300, .k = 514, .alpha = 1, .beta = -1, .bias = 1, .act = ISOBIT_ACT_RELU},
        {.m = 144, .n = 288, .k = 500, .alpha = 1, .act = ISOBIT_ACT_RELU},
        {.m = 131, .n = 490, .k = 300, .alpha = 1, .bias = 1, .residual = 1, .gap = 3},
        {.m = 250, .n = 150, .k = 1025, .alpha = 1, .bias = 1, .act = 1, .residual = 2},
        {.m = 144, .n = 480, .k = 300, .alpha = 1, .bias = 1, .act = ISOBIT_ACT_SILU},
    };
    /* One set alone is emulated, and runs natively elsewhere. */
    const size_t few = only_isa ? 1 : 3;
    for (size_t i = 0; i < (quick ? few : sizeof cases / sizeof *cases); i++)
        check_gemm(&cases[i], 0, quick ? isa_ways : way_count);
}

/*
 * Sums that lie next to the middle of two floats, and that double rounds to just that middle, or,
 * where floats are subnormal, to two steps of double beyond it.
 */
void gemm_rounds_once(void **state) {
    (void)state;
    static const struct {
        float sum, a, b;
    } cases[] = {{0x1.000002p0f, 0x1.0002p0f, 0x1.fffcp-25f},
                 {0x1p-127f, 0x1.000f8ep-75f, 0x1.ffe0e6p-76f}};
    for (size_t i = 0; i < iso_isa_count(); i++)
        for (size_t k = 0; k < 4; k++) {
            const iso_context context = {.size = sizeof context, .isa = iso_isa_get(i)};
            const float sum = cases[k / 2].sum, near = k % 2 ? cases[k / 2].a : -cases[k / 2].a;
            const float a[] = {0x1p64f * sum, near}, b[] = {0x1p-64f, cases[k / 2].b};
            const float expected = fmaf(near, b[1], sum);
            float c = 0;
            if (iso_isa_missing(context.isa))
                continue;
            assert_ok(iso_gemm_f32(&c, 1, a, 2, b, 1, 1, 1, 2, NULL, &context));
            assert_memory_equal(&c, &expected, sizeof c);
        }
}

/* A NaN or Inf reaches its own row and column only. */
void gemm_keeps_special_values_in_place(void **state) {
    (void)state;
    enum { M = 20, N = 37, K = 19 };
    float *a = random_floats(M * K), *b = random_floats(K * N), *c = floats(M * N);
    float *expect = floats(M * N);
    a[5 * K + 3] = NAN;
    a[17 * K + 18] = INFINITY;
    b[7 * N + 11] = -INFINITY;
    b[0 * N + 36] = NAN;
    struct gemm_case g = {.m = M, .n = N, .k = K, .alpha = 1};
    gemm_expect(expect, &g, NULL, 0, a, K, b, N, NULL, NULL, 0);
    assert_true(isnan(expect[5 * N]) && isnan(expect[36]) && isfinite(expect[0]));
    for (size_t w = 0; w < isa_ways; w++) {
        assert_ok(iso_gemm_f32(c, N, a, K, b, N, M, N, K, NULL, &ways[w].context));
        assert_same(ways[w].name, c, N, expect, N, M, N);
    }
}

void gemm_leaves_unneeded_operands_alone(void **state) {
    (void)state;
    float *c = floats(12), *bias = random_floats(4);
    for (size_t w = 0; w < isa_ways; w++) {
        const iso_context *x = &ways[w].context;
        iso_gemm_options options = {.size = sizeof options, .alpha = 0, .beta = 2};
        for (size_t i = 0; i < 12; i++)
            c[i] = (float)i;
        assert_ok(iso_gemm_f32(c, 4, NULL, 0, NULL, 0, 3, 4, 7, &options, x)); /* alpha 0 */
        for (size_t i = 0; i < 12; i++)
            assert_true(c[i] == 2 * (float)i);
        options = (iso_gemm_options){.size = sizeof options, .alpha = 1, .bias = bias};
        for (size_t i = 0; i < 12; i++)
            c[i] = NAN;
        assert_ok(iso_gemm_f32(c, 4, NULL, 0, NULL, 0, 3, 4, 0, &options, x)); /* k 0 */
        for (size_t i = 0; i < 12; i++)
            assert_true(c[i] == bias[i % 4]);
        options.bias = NULL;
        assert_ok(iso_gemm_f32(c, 4, NULL, 0, NULL, 0, 3, 4, 0, &options, x));
        for (size_t i = 0; i < 12; i++)
            assert_int_equal(bits(c[i]), 0);
        assert_ok(iso_gemm_f32(NULL, 4, NULL, 0, NULL, 0, 0, 4, 5, NULL, x)); /* no output */
        assert_ok(iso_gemm_f32(NULL, 0, NULL, 5, NULL, 0, 3, 0, 5, NULL, x));
    }
}

/* -------------------------------------------------------------------------------------- linear */

void *aligned_block(size_t bytes) {
    char *p = guarded(bytes + 64);
    return p + (64 - (uintptr_t)p % 64) % 64;
}

iso_packed pack(const float *w, size_t ldw, size_t n, size_t k, int trans,
                const iso_context *context) {
    iso_packed p = {0};
    size_t bytes = 0;
    assert_ok(iso_pack_f32_bytes(&bytes, n, k));
    assert_ok(iso_pack_f32(&p, aligned_block(bytes), bytes, w, ldw, n, k, trans, context));
    return p;
}

void linear_equals_gemm(void **state) {
    (void)state;
    static const size_t shapes[][3] = {{1, 1, 1},     {1, 16, 8},     {3, 17, 33},
                                       {14, 48, 64},  {29, 65, 70},   {65, 130, 31},
                                       {8, 300, 513}, {33, 64, 1025}, {5, 7, 0}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        size_t m = shapes[i][0], n = shapes[i][1], k = shapes[i][2];
        for (int trans = 0; trans < 2; trans++) {
            size_t ldw = (trans ? n : k) + 3, ldx = k + 1, ldy = n + 2;
            float *w = trans ? random_matrix(k, n, ldw) : random_matrix(n, k, ldw);
            float *x = random_matrix(m, k, ldx), *bias = random_floats(n);
            float *r = random_matrix(m, n, n + 1), *expect = floats(m * n);
            iso_gemm_options g = {.size = sizeof g,
                                  .trans_b = !trans,
                                  .alpha = 1,
                                  .bias = bias,
                                  .act = ISOBIT_ACT_GELU_ERF,
                                  .residual = r,
                                  .ldr = n + 1};
            assert_ok(iso_gemm_f32(expect, n, x, ldx, w, ldw, m, n, k, &g, &ways[0].context));
            iso_packed packed[8];
            for (size_t s = 0; s < isa_ways; s++) {
                packed[s] = pack(w, ldw, n, k, trans, &ways[s].context);
                size_t total = (n + 15) / 16 * 16 * k; /* the layout of isobit/ops.h */
                for (size_t e = 0; e < total; e++) {
                    size_t j = e / (16 * k) * 16 + e % 16, p = e / 16 % k;
                    float want = j < n ? (trans ? w[p * ldw + j] : w[j * ldw + p]) : 0;
                    assert_int_equal(bits(packed[s].data[e]), bits(want));
                }
            }
            for (size_t v = 0; v < way_count; v++) {
                float *y = canaries((m - 1) * ldy + n);
                iso_linear_options o = {.size = sizeof o,
                                        .bias = bias,
                                        .act = ISOBIT_ACT_GELU_ERF,
                                        .residual = r,
                                        .ldr = n + 1};
                /* packed by one set, used by another */
                assert_ok(iso_linear_f32(y, ldy, x, ldx, &packed[(v + 1) % isa_ways], m, &o,
                                         &ways[v].context));
                assert_same(ways[v].name, y, ldy, expect, n, m, n);
                assert_true(gaps_kept(y, ldy, m, n));
                if (v < isa_ways) { /* residual is y itself */
                    for (size_t row = 0; row < m; row++)
                        memcpy(y + row * ldy, r + row * (n + 1), n * sizeof *y);
                    o.residual = y;
                    o.ldr = ldy;
                    assert_ok(iso_linear_f32(y, ldy, x, ldx, &packed[v], m, &o, &ways[v].context));
                    assert_same("y is the residual", y, ldy, expect, n, m, n);
                }
            }
            release(NULL);
        }
    }
}

void gemm_and_linear_do_not_see_the_batch(void **state) {
    (void)state;
    enum { M = 130, N = 83, K = 530 };
    size_t k = quick ? 70 : K, last = quick ? 20 : M;
    float *x = random_floats(M * k), *w = random_floats(N * k), *bias = random_floats(N);
    float *whole = floats(M * N), *y = floats(M * N);
    for (size_t s = 0; s < isa_ways; s++) {
        const iso_context *context = &ways[s].context;
        iso_packed p = pack(w, k, N, k, 0, context);
        iso_linear_options o = {.size = sizeof o, .bias = bias, .act = ISOBIT_ACT_SILU};
        iso_gemm_options g = {
            .size = sizeof g, .trans_b = 1, .alpha = 1, .bias = bias, .act = ISOBIT_ACT_SILU};
        assert_ok(iso_linear_f32(whole, N, x, k, &p, M, &o, context));
        for (size_t m = 1; m <= last; m++) { /* the first m rows; and row m - 1 alone */
            assert_ok(iso_linear_f32(y, N, x, k, &p, m, &o, context));
            assert_same("linear, batch", y, N, whole, N, m, N);
            assert_ok(iso_gemm_f32(y, N, x, k, w, k, m, N, k, &g, context));
            assert_same("gemm, batch", y, N, whole, N, m, N);
            assert_ok(iso_linear_f32(y, N, x + (m - 1) * k, k, &p, 1, &o, context));
            assert_same("linear, alone", y, N, whole + (m - 1) * N, N, 1, N);
            assert_ok(iso_gemm_f32(y, N, x + (m - 1) * k, k, w, k, 1, N, k, &g, context));
            assert_same("gemm, alone", y, N, whole + (m - 1) * N, N, 1, N);
        }
        for (size_t n = 1; n <= N; n += 3) { /* the first n columns */
            g.bias = bias;
            assert_ok(iso_gemm_f32(y, n, x, k, w, k, 9, n, k, &g, context));
            assert_same("gemm, columns", y, n, whole, N, 9, n);
        }
    }
}

/* --------------------------------------------------------------------------------------- gemv */

/* Dot products of rows; with a W [k][n] a product with one row. */
void gemv_has_its_orders(void **state) {
    (void)state;
    static const size_t shapes[][2] = {{1, 1},     {1, 300},    {1, 70000}, {5, 31},
                                       {16, 32},   {33, 65},    {300, 77},  {70, 1000},
                                       {800, 330}, {8500, 500}, {520, 2049}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        size_t n = shapes[i][0], k = shapes[i][1];
        for (int trans = 0; trans < 2; trans++) {
            size_t ldw = (trans ? n : k) + 2;
            float *w = trans ? random_matrix(k, n, ldw) : random_matrix(n, k, ldw);
            float *x = random_floats(k), *expect = floats(n), *y = floats(n);
            for (size_t j = 0; j < n; j++)
                expect[j] = trans ? iso_oracle_gemm_chain(w + j, ldw, x, 1, k, ISO_K_BLOCK)
                                  : iso_oracle_lanes(w + j * ldw, 1, x, 1, k);
            for (size_t v = 0; v < way_count; v++) {
                assert_ok(iso_gemv_f32(y, w, ldw, x, n, k, trans, &ways[v].context));
                assert_same(ways[v].name, y, n, expect, n, 1, n);
            }
            release(NULL);
        }
    }
    for (int trans = 0; trans < 2; trans++) {
        float y[2] = {CANARY, CANARY};
        assert_ok(iso_gemv_f32(y, NULL, 2, NULL, 2, 0, trans, NULL)); /* an empty sum */
        assert_true(y[0] == 0 && y[1] == 0);
        assert_ok(iso_gemv_f32(NULL, NULL, 5, NULL, 0, 5, trans, NULL));
    }
}
