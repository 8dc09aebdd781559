/* SPDX-License-Identifier: MIT
 *
 * How products of integers cut their work: parts of y that epilogues find in cache, blocks of rows
 * whose integers stay in L2, and one thread where others would come too late. A product and an
 * epilogue that note their parts stand in for the kernels, and an executor that counts.
 */
#include "few_bits.h"

#include "gemm/plan.h"
#include "parts.h"

#include <float.h>

/* ---------------------------------------------------------------------------------- parts of y */

enum { M = 150, N = 300, LD = 340, ROW = 3, COLUMN = 32, MOST = M + ROW };

static struct {
    float y[MOST * LD], residual[MOST * LD];
    unsigned char products[MOST * LD], epilogues[MOST * LD];
    const float *to; /* the part before: where its sums went, */
    size_t ld, row, column, m, n;
    size_t calls, tallest, widest;
    int apart, has_residual;
} seen;

static void product(const void *arg, float *c, size_t ldc, size_t row, size_t m, size_t column,
                    size_t n) {
    float *y = seen.y + (ROW + row) * LD + column;
    assert_ptr_equal(arg, &seen);
    if (seen.apart) /* y is read until the epilogue has written it */
        assert_true(c + m * ldc <= seen.y || c >= seen.y + MOST * LD);
    else
        assert_true(c == y && ldc == LD);
    assert_true(m > 0 && n > 0 && ldc >= n && row + m <= M && column + n <= COLUMN + N);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++)
            seen.products[(ROW + row + i) * LD + column + j]++, c[i * ldc + j] = 1;
    seen.to = c, seen.ld = ldc, seen.row = row, seen.column = column, seen.m = m, seen.n = n;
    seen.tallest = m > seen.tallest ? m : seen.tallest;
    seen.widest = n > seen.widest ? n : seen.widest;
    seen.calls++;
}

/* Follows at once, while the part is in cache. */
static void epilogue(float *c, size_t ldc, const float *t, size_t ldt, size_t m, size_t n,
                     const struct iso_epilogue *e) {
    const size_t at = (ROW + seen.row) * LD + seen.column;
    assert_true(c == seen.y + at && ldc == LD && t == seen.to && ldt == seen.ld);
    assert_true(m == seen.m && n == seen.n && !e->bias);
    assert_ptr_equal(e->residual, !seen.has_residual ? NULL
                                  : seen.apart       ? seen.y + at
                                                     : seen.residual + at);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++)
            seen.epilogues[at + i * LD + j]++;
}

static void parts_of_y(void **unused) {
    (void)unused;
    struct iso_kernels kernels = iso_kernels_scalar;
    kernels.gemm_epilogue = epilogue;
    enum { PLAIN, ACT, RESIDUAL, Y_ITSELF, Y_AND_ACT, KINDS };
    /* 24 KiB of y, or 6 of the stack; without an epilogue there is nothing to find in cache. */
    static const size_t tall[KINDS] = {M, 64, 64, 32, 32}, wide[KINDS] = {N, 96, 96, 48, 48};
    for (int kind = PLAIN; kind < KINDS; kind++) {
        const int act = kind == ACT || kind == Y_AND_ACT, apart = kind >= Y_ITSELF;
        memset(&seen, 0, sizeof seen);
        seen.apart = apart, seen.has_residual = kind >= RESIDUAL;
        const struct iso_parts t = {.kernels = &kernels,
                                    .y = seen.y,
                                    .ldy = LD,
                                    .e = {.alpha = 1,
                                          .act = act ? ISOBIT_ACT_RELU : ISOBIT_ACT_NONE,
                                          .residual = apart              ? seen.y
                                                      : kind == RESIDUAL ? seen.residual
                                                                         : NULL,
                                          .ldr = LD},
                                    .product = product,
                                    .arg = &seen};
        iso_parts_run(&t, ROW, M, COLUMN, N);
        for (size_t i = 0; i < (size_t)MOST * LD; i++) {
            const int inside =
                i / LD >= ROW && i / LD < ROW + M && i % LD >= COLUMN && i % LD < COLUMN + N;
            assert_int_equal(seen.products[i], inside);
            assert_int_equal(seen.epilogues[i], inside && kind != PLAIN);
        }
        assert_int_equal(seen.tallest, tall[kind]);
        assert_int_equal(seen.widest, wide[kind]);
        assert_int_equal(seen.calls, ((M - 1) / tall[kind] + 1) * ((N - 1) / wide[kind] + 1));
    }
}

/* --------------------------------------------------------------------------------------- tasks */

static struct { size_t calls, tasks[64]; } shared;

static void one_by_one(void *user, size_t n, void (*fn)(void *arg, size_t i), void *arg) {
    assert_ptr_equal(user, &shared);
    assert_true(shared.calls < COUNT(shared.tasks));
    shared.tasks[shared.calls++] = n;
    for (size_t i = 0; i < n; i++)
        fn(arg, i);
}

/* Rows become integers, then all threads multiply; block by block of rows. */
static void check_tasks(size_t m, size_t n, size_t k, size_t threads) {
    static const iso_q_format format = {4, 32, ISOBIT_SCALE_F16};
    const iso_executor executor = {
        .parallel_for = one_by_one, .user = &shared, .max_threads = threads};
    const iso_context context = {.size = sizeof context, .executor = &executor};
    size_t bytes, room;
    iso_packed_q w = {.n = n, .k = k, .format = format};
    assert_ok(iso_pack_q_bytes(&bytes, n, k, &format));
    void *data = aligned_alloc(64, bytes);
    float *x = calloc(m * k, sizeof *x), *y = calloc(m * n, sizeof *y);
    assert_true(data && x && y);
    memset(data, 0, bytes);
    w.data = data;
    assert_ok(iso_linear_q_s8_workspace_bytes(&room, &w, m, &context));
    shared.calls = 0;
    assert_ok(iso_linear_q_s8(y, n, x, k, &w, m, NULL, &context));
    /* What stays in L2: 256 KiB of integers, a line for 32 of them, or 32 rows. */
    const size_t blocks = k / 32, fit = (1 << 18) / 64 / blocks;
    const size_t rows = m < 32 ? m : fit < 32 ? 32 : fit < m ? fit : m;
    assert_true(room >= rows * blocks * 64 && room <= rows * blocks * 64 + 64);
    size_t call = 0;
    for (size_t i = 0; i < m && m * n * k >= ISO_GEMM_SMALL_WORK; i += rows) {
        const size_t now = m - i < rows ? m - i : rows;
        const size_t tasks = now * k < ISO_SMALL_QUANTIZE ? 1 : now < threads ? now : threads;
        if (tasks > 1)
            assert_int_equal(shared.tasks[call++], tasks);
        assert_int_equal(shared.tasks[call++], threads);
    }
    assert_int_equal(shared.calls, call);
    free(data), free(x), free(y);
}

static void tasks_of_blocks(void **unused) {
    (void)unused;
    check_tasks(4, 64, 2048, 3); /* 2^19 products, and fewer */
    check_tasks(4, 63, 2048, 3);
    check_tasks(16, 40, 2048, 4); /* 2^15 elements of x, and fewer */
    check_tasks(15, 40, 2048, 4);
    check_tasks(3, 40, 16384, 8); /* fewer rows than threads */
    check_tasks(1, 64, 32768, 4);
    check_tasks(33, 20, 8192, 2); /* blocks of 64 rows, of 32, and fewer in the last */
    check_tasks(140, 20, 2048, 2);
    check_tasks(70, 20, 4096, 2);
    check_tasks(70, 20, 4096 + 32, 3);
}

/* More of them than there are lists of blocks: some share one. */
static void many_tasks(void **unused) {
    (void)unused;
    enum { ROWS = 300, COLUMNS = 200, STEPS = 64, THREADS = 100 };
    const iso_executor executor = {
        .parallel_for = one_by_one, .user = &shared, .max_threads = THREADS};
    const iso_context context = {.size = sizeof context, .executor = &executor};
    float *a = random_floats(ROWS * STEPS), *b = random_floats(STEPS * COLUMNS);
    float *alone = floats(ROWS * COLUMNS), *c = floats(ROWS * COLUMNS);
    assert_ok(iso_gemm_f32(alone, COLUMNS, a, STEPS, b, COLUMNS, ROWS, COLUMNS, STEPS, NULL, NULL));
    shared.calls = 0;
    assert_ok(iso_gemm_f32(c, COLUMNS, a, STEPS, b, COLUMNS, ROWS, COLUMNS, STEPS, NULL, &context));
    assert_true(same(c, COLUMNS, alone, COLUMNS, ROWS, COLUMNS));
    assert_int_equal(shared.tasks[0], THREADS);
    release();
}

/* The largest float is a number like others: with weights of 0 it gives 0, where infinity gives
 * NaN. */
static void largest_numbers(void **unused) {
    (void)unused;
    enum { OUT = 16, IN = 64 };
    static const iso_q_format format = {4, 32, ISOBIT_SCALE_F16};
    static uint32_t zeros[IN / 32 * 80] __attribute__((aligned(64)));
    const iso_packed_q w = {.data = zeros, .n = OUT, .k = IN, .format = format};
    for (size_t i = 0; i < iso_isa_count(); i++) {
        const iso_context context = {.size = sizeof context, .isa = iso_isa_get(i)};
        float x[IN] = {1}, y[OUT];
        if (iso_isa_missing(context.isa))
            continue;
        x[40] = FLT_MAX;
        assert_ok(iso_linear_q_s8(y, OUT, x, IN, &w, 1, NULL, &context));
        assert_true(y[0] == 0 && y[OUT - 1] == 0);
        x[40] = INFINITY;
        assert_ok(iso_linear_q_s8(y, OUT, x, IN, &w, 1, NULL, &context));
        assert_true(isnan(y[0]) && isnan(y[OUT - 1]));
    }
}

static void options_of_a_layer(void **unused) {
    (void)unused;
    static const float numbers[2] = {1, 2};
    const iso_linear_options o = {.size = sizeof o,
                                  .bias = numbers,
                                  .act = ISOBIT_ACT_SILU,
                                  .residual = numbers + 1,
                                  .ldr = 7};
    const iso_linear_options unknown = {.size = 3};
    struct iso_parts t;
    const float *bias = numbers;
    memset(&t, 1, sizeof t);
    assert_ok(iso_parts_options(&t, &bias, NULL));
    assert_true(!bias && t.e.alpha == 1 && t.e.beta == 0 && !t.e.bias && !t.e.residual);
    assert_int_equal(t.e.act, ISO_UNARY_NONE);
    assert_ok(iso_parts_options(&t, &bias, &o));
    assert_true(bias == numbers && t.e.residual == numbers + 1 && t.e.ldr == 7 && !t.e.bias);
    assert_int_equal(t.e.act, ISOBIT_ACT_SILU);
    REFUSED(SIZE, iso_parts_options(&t, &bias, &unknown));
    assert_null(bias);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_of_y), cmocka_unit_test(many_tasks),
                                       cmocka_unit_test(largest_numbers),
                                       cmocka_unit_test(options_of_a_layer),
                                       cmocka_unit_test(tasks_of_blocks)};
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
