/* SPDX-License-Identifier: MIT
 *
 * Each way of a product (gemm/plan.h) with small matrices, which no plan of a machine would take
 * there: all give the bits of the canonical chain (docs/numerics.md), with each set and number of
 * threads. Where sums wait elsewhere, and what follows them, is part of it.
 */
#include "few_bits.h"

#include "gemm/product.h"
#include "select.h"

static int seen[ISO_GEMM_WIDEN + 1], seen_groups;

/* Sums of 512 steps at a time; then bias and residual, unless they are NULL. */
static void expect(float *c, const struct iso_product *t, const float *residual) {
    for (size_t i = 0; i < t->m; i++)
        for (size_t j = 0; j < t->n; j++) {
            float sum = 0;
            for (size_t p0 = 0; p0 < t->k; p0 += 512) {
                float chain = 0;
                for (size_t p = p0; p < t->k && p < p0 + 512; p++)
                    chain = fmaf(t->a[i * t->ai + p * t->ap],
                                 t->trans_b ? t->b[j * t->bps + p] : t->b[p * t->bs + j], chain);
                sum = p0 ? sum + chain : chain;
            }
            if (t->e->bias)
                sum += t->e->bias[j];
            c[i * t->n + j] = residual ? sum + residual[i * t->n + j] : sum;
        }
}

struct shape {
    size_t m, n, k, gap; /* between rows of B */
    int trans_a, trans_b, panels;
};

/* `tune` changes what decides on ways, for all kinds of cores. */
static void check(const struct shape *s, void tune(struct iso_gemm_tuning *t, size_t class)) {
    const size_t ldb = (s->trans_b ? s->k : s->n) + s->gap, ldc = s->n + 3;
    float *a = random_floats(s->m * s->k);
    float *b = random_floats(((s->trans_b ? s->n : s->k) - 1) * ldb + (s->trans_b ? s->k : s->n));
    float *bias = random_floats(s->n), *residual = random_floats(s->m * s->n);
    float *panels = floats(iso_round_up(s->n, ISO_PANEL) * s->k);
    float *c = floats(s->m * ldc), *expected = floats(s->m * s->n);
    enum { PLAIN, APART, IN_C, ADDED, KINDS }; /* where the residual is; ADDED: in C, as beta 1 */
    for (int kind = PLAIN; kind < KINDS; kind++)
        for (size_t v = 0; v < way_count; v++) {
            const int there = kind == IN_C || kind == ADDED;
            struct iso_epilogue e = {.alpha = 1, .bias = kind && kind != ADDED ? bias : NULL};
            const struct iso_kernels *kernels;
            assert_ok(iso_context_kernels(&kernels, &ways[v]));
            struct iso_product t = {.machine =
                                        iso_gemm_machine_of(kernels, (enum iso_gemm_class)(v % 3)),
                                    .m = s->m,
                                    .n = s->n,
                                    .k = s->k,
                                    .c = c,
                                    .ldc = ldc,
                                    .a = a,
                                    .ai = s->trans_a ? 1 : s->k,
                                    .ap = s->trans_a ? s->m : 1,
                                    .b = b,
                                    .bs = s->trans_b ? 1 : ldb,
                                    .bps = s->trans_b ? ldb : ISO_PANEL,
                                    .trans_b = s->trans_b,
                                    .e = &e};
            struct iso_gemm_tuning tuning = *t.machine.tuning;
            tune(&tuning, t.machine.class);
            t.machine.tuning = &tuning;
            const struct iso_gemm_shape shape = {.m = s->m,
                                                 .n = s->n,
                                                 .k = s->k,
                                                 /* unknown: a transposed A is packed */
                                                 .lda = kind == APART ? 0 : s->m,
                                                 .ldb = ldb,
                                                 .threads = iso_context_threads(&ways[v]),
                                                 .trans_a = s->trans_a,
                                                 .trans_b = s->trans_b,
                                                 .panels = s->panels,
                                                 .own_sums = there,
                                                 .adds = kind == ADDED};
            t.plan = iso_gemm_plan(&shape, &t.machine);
            seen[t.plan.way]++, seen_groups += t.plan.group > 0;
            if (v == 0)
                expect(expected, &t, kind ? residual : NULL);
            if (s->panels) {
                kernels->gemm_pack(panels, b, 1, ldb, s->n, s->k, ISO_PANEL);
                t.b = panels, t.bs = ISO_PANEL, t.bps = ISO_PANEL * s->k;
            }
            for (size_t i = 0; i < s->m * ldc; i++)
                c[i] = 123;
            for (size_t i = 0; i < s->m; i++)
                if (there)
                    memcpy(c + i * ldc, residual + i * s->n, s->n * sizeof *c);
            e.residual = kind == PLAIN || kind == ADDED ? NULL : there ? c : residual;
            e.ldr = there ? ldc : s->n;
            e.beta = kind == ADDED && !t.plan.adds;
            assert_int_equal(t.plan.adds, kind == ADDED && s->k <= ISO_K_BLOCK &&
                                              t.plan.way != ISO_GEMM_STREAMS &&
                                              t.plan.way != ISO_GEMM_TRANSPOSED_C);
            assert_ok(iso_product_run(&ways[v], &t));
            assert_true(same(c, ldc, expected, s->n, s->m, s->n));
            for (size_t i = 0; i < s->m; i++) /* gaps are kept */
                assert_true(c[i * ldc + s->n] == 123 && c[i * ldc + s->n + 2] == 123);
        }
    release();
}

static void check_all(const struct shape *shapes, size_t count,
                      void tune(struct iso_gemm_tuning *t, size_t class), enum iso_gemm_way way) {
    int wide = 0; /* sets whose strips have rows enough to be prefetched for */
    memset(seen, 0, sizeof seen), seen_groups = 0;
    for (size_t i = 0; i < set_count; i++)
        wide |= ways[i].isa->kernels->direct_mr > 5;
    for (size_t i = 0; i < count; i++)
        check(&shapes[i], tune);
    assert_true(seen[way] > 0 || (way == ISO_GEMM_PREFETCH && !wide));
}

/* ---------------------------------------------------------------------------------------- ways */

static void any_rows_in_place(struct iso_gemm_tuning *t, size_t class) {
    t->rows_near[class] = t->rows_near_aliased[class] = t->rows_l3[class] = 1000;
    t->rows_memory[class] = t->rows_aliased[class] = 1000;
}
static void from_afar(struct iso_gemm_tuning *t, size_t class) {
    any_rows_in_place(t, class);
    t->near_floats[class] = 0, t->stream_run[class] = 1, t->stream_rows_long[class] = 32;
    t->prefetched[class] = 0;
}
static void prefetched(struct iso_gemm_tuning *t, size_t class) {
    from_afar(t, class);
    t->prefetched[class] = 1;
}
static void never_in_place(struct iso_gemm_tuning *t, size_t class) {
    t->rows_near[class] = t->rows_near_aliased[class] = t->rows_l3[class] = 0;
    t->rows_memory[class] = t->rows_aliased[class] = t->floats_in_place[class] = 0;
}

/* Whatever the cores, few rows of a B from beyond L2 have vectors half as wide. */
static void halved(struct iso_gemm_tuning *t, size_t class) {
    never_in_place(t, class);
    t->half_rows[class] = ISO_GEMM_FEW_ROWS;
}

static void b_in_place(void **unused) {
    (void)unused;
    static const struct shape shapes[] = {
        {3, 70, 600, 2, 0, 0, 0}, {140, 50, 300, 0, 0, 0, 0}, {20, 33, 513, 1, 1, 0, 0}};
    check_all(shapes, COUNT(shapes), any_rows_in_place, ISO_GEMM_IN_PLACE);
}

static void b_in_place_and_prefetched(void **unused) {
    (void)unused;
    static const struct shape shapes[] = {{5, 130, 300, 0, 0, 0, 0}, {6, 90, 700, 5, 0, 0, 0}};
    check_all(shapes, COUNT(shapes), prefetched, ISO_GEMM_PREFETCH);
}

static void along_rows_of_b(void **unused) {
    (void)unused;
    static const struct shape shapes[] = {{1, 250, 1100, 0, 0, 0, 0}, {1, 900, 300, 2, 0, 0, 0},
                                          {5, 150, 300, 3, 0, 0, 0},  {16, 100, 1100, 0, 0, 0, 0},
                                          {29, 70, 520, 1, 1, 0, 0},  {32, 300, 64, 0, 0, 0, 0}};
    check_all(shapes, COUNT(shapes), from_afar, ISO_GEMM_STREAMS);
}

static void packed_blocks_of_b(void **unused) {
    (void)unused;
    static const struct shape shapes[] = {{30, 250, 600, 2, 0, 0, 0},  {9, 500, 64, 0, 1, 0, 0},
                                          {100, 100, 100, 1, 0, 1, 0}, {5, 100, 600, 0, 0, 0, 0},
                                          {7, 100, 600, 0, 0, 0, 0},   {9, 100, 600, 0, 0, 0, 0},
                                          {150, 40, 520, 0, 1, 0, 0},  {200, 1050, 10, 1, 1, 0, 0},
                                          {130, 60, 130, 0, 1, 1, 0},  {130, 1050, 30, 0, 1, 1, 0}};
    check_all(shapes, COUNT(shapes), never_in_place, ISO_GEMM_PACK);
}

/* Groups of 18 rows: three strips, two, or one and a part of one. */
static void in_groups(struct iso_gemm_tuning *t, size_t class) {
    never_in_place(t, class);
    t->large[class] = 40, t->group_rows[class] = 18;
}

static void groups_of_rows_of_a(void **unused) {
    (void)unused;
    static const struct shape packs[] = {{53, 250, 600, 2, 0, 0, 0},
                                         {40, 47, 1100, 0, 0, 0, 0},
                                         {130, 100, 500, 1, 0, 1, 0},
                                         {41, 1100, 90, 0, 0, 0, 0}};
    static const struct shape packed[] = {{53, 250, 600, 2, 0, 0, 1}, {10, 1100, 90, 0, 0, 0, 1}};
    check_all(packs, COUNT(packs), in_groups, ISO_GEMM_PACK);
    assert_true(seen_groups > 0);
    check_all(packed, COUNT(packed), in_groups, ISO_GEMM_PANELS);
    assert_true(seen_groups > 0);
}

static void b_transposed(void **unused) {
    (void)unused;
    static const struct shape in_registers[] = {
        {1, 600, 500, 0, 0, 1, 0}, {4, 600, 700, 1, 0, 1, 0}, {5, 70, 90, 0, 1, 1, 0}};
    static const struct shape turned[] = {
        {24, 200, 100, 0, 0, 1, 0}, {40, 300, 1100, 4, 0, 1, 0}, {61, 250, 300, 0, 1, 1, 0}};
    check_all(in_registers, COUNT(in_registers), never_in_place, ISO_GEMM_TRANSPOSED_B);
    check_all(in_registers, COUNT(in_registers), halved, ISO_GEMM_TRANSPOSED_B);
    check_all(turned, COUNT(turned), never_in_place, ISO_GEMM_TRANSPOSED_C);
}

/* All columns have what follows the sums, which are 0. */
static void without_a_product(void **unused) {
    (void)unused;
    enum { M = 3, N = 500 };
    float *a = random_floats(M), *b = random_floats(N), *bias = random_floats(N);
    float *residual = random_floats(M * N), *c = floats(M * N), *expected = floats(M * N);
    for (size_t i = 0; i < M * N; i++)
        expected[i] = bias[i % N] + residual[i];
    for (size_t v = 0; v < 2 * way_count; v++) {
        const iso_gemm_options o = {
            .size = sizeof o, .alpha = v % 2 ? 0 : 1, .bias = bias, .residual = residual, .ldr = N};
        for (size_t i = 0; i < M * N; i++)
            c[i] = 123;
        assert_ok(iso_gemm_f32(c, N, a, 1, b, N, M, N, v % 2, &o, &ways[v / 2]));
        assert_true(same(c, N, expected, N, M, N));
    }
    release();
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b_in_place),          cmocka_unit_test(b_in_place_and_prefetched),
        cmocka_unit_test(along_rows_of_b),     cmocka_unit_test(packed_blocks_of_b),
        cmocka_unit_test(groups_of_rows_of_a), cmocka_unit_test(b_transposed),
        cmocka_unit_test(without_a_product)};
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, make_ways, drop_ways);
}
