/* SPDX-License-Identifier: MIT
 *
 * Workspace and options of a context.
 */
#include "sanitized.h"
#include "test_ops.h"

/* A context whose workspace has exactly so many bytes, at an odd address, before a guard page. */
static iso_context with_workspace(const iso_context *base, size_t bytes) {
    iso_context x = *base;
    x.workspace = guarded(bytes);
    x.workspace_bytes = bytes;
    return x;
}

static size_t allocations_of(iso_status *status, iso_status (*call)(void *, const iso_context *),
                             void *arg, const iso_context *x) {
    atomic_store(&allocations, 0);
    atomic_store(&counting, true);
    *status = call(arg, x);
    atomic_store(&counting, false);
    return atomic_load(&allocations);
}

struct gemm_args {
    float *c, *a, *b;
    size_t m, n, k;
    iso_gemm_options o;
    iso_packed packed;
};

static iso_status call_gemm(void *arg, const iso_context *x) {
    struct gemm_args *g = arg;
    return iso_gemm_f32(g->c, g->n, g->a, g->o.trans_a ? g->m : g->k, g->b,
                        g->o.trans_b ? g->k : g->n, g->m, g->n, g->k, &g->o, x);
}

static iso_status call_linear(void *arg, const iso_context *x) {
    struct gemm_args *g = arg;
    return iso_linear_f32(g->c, g->n, g->a, g->k, &g->packed, g->m, NULL, x);
}

static iso_status call_attention(void *arg, const iso_context *x) { return attention_call(arg, x); }

static void check_workspace(iso_status (*call)(void *, const iso_context *), void *arg,
                            size_t bytes, const iso_context *base, float *out, size_t n,
                            const float *expect) {
    iso_status status;
    for (size_t odd = 0; odd < 3; odd++) { /* any alignment: the size has to allow for it */
        iso_context x = with_workspace(base, bytes + odd);
        x.workspace_bytes = bytes;
        for (size_t i = 0; i < n; i++)
            out[i] = CANARY;
        size_t count = allocations_of(&status, call, arg, &x);
        assert_int_equal(status, ISOBIT_OK);
        assert_int_equal(count, 0);
        assert_same("with workspace", out, n, expect, n, 1, n);
    }
    if (bytes) {
        iso_context x = with_workspace(base, bytes - 1);
        for (size_t i = 0; i < n; i++)
            out[i] = CANARY;
        size_t count = allocations_of(&status, call, arg, &x);
        assert_int_equal(status, ISOBIT_E_WORKSPACE);
        assert_int_equal(count, 0);
        assert_true(all_canaries(out, n));
    }
}

struct gemv_args {
    float *y, *w, *x;
    size_t n, k;
};

static iso_status call_gemv(void *arg, const iso_context *x) {
    struct gemv_args *g = arg;
    return iso_gemv_f32(g->y, g->w, g->n, g->x, g->n, g->k, 1, x);
}

/* With a W [k][n] gemv is a product with one row, whose workspace it takes. */
void gemv_takes_the_workspace_of_a_product(void **state) {
    (void)state;
    static const size_t shapes[][2] = {{330, 520}, {520, 2049}, {4200, 1024}};
    for (size_t i = 0; i < (quick ? 2 : 3); i++) {
        const size_t n = shapes[i][0], k = shapes[i][1];
        struct gemv_args g = {floats(n), random_floats(n * k), random_floats(k), n, k};
        float *expect = floats(n);
        for (size_t j = 0; j < n; j++)
            expect[j] = iso_oracle_gemm_chain(g.w + j, n, g.x, 1, k, ISO_K_BLOCK);
        for (size_t w = 0; w < way_count; w++) {
            size_t bytes;
            assert_ok(iso_gemm_f32_workspace_bytes(&bytes, 1, n, k, NULL, &ways[w].context));
            check_workspace(call_gemv, &g, bytes, &ways[w].context, g.y, n, expect);
        }
        release(NULL);
    }
}

/* Few rows of a product may take another way than many, and one that needs scratch. */
void workspace_for_more_rows_is_enough(void **state) {
    (void)state;
    static const size_t shapes[][3] = {
        {16, 2100, 1030}, {32, 4200, 512}, {32, 8200, 512}, {32, 300, 520}, {12, 1024, 257}};
    for (size_t i = quick ? 3 : 0; i < 5; i++) {
        const size_t rows = shapes[i][0], n = shapes[i][1], k = shapes[i][2];
        const iso_gemm_options o = {.size = sizeof o, .trans_b = i == 3, .alpha = 1};
        const size_t ldb = o.trans_b ? k : n;
        float *a = random_floats(rows * k), *b = random_floats(n * k);
        float *c = floats(rows * n), *expect = floats(rows * n);
        /* the large one takes its time: the best set alone, on all numbers of threads */
        const size_t count = n > 8000 ? isa_ways + way_count / isa_ways - 1
                             : quick  ? isa_ways
                                      : way_count;
        assert_ok(iso_gemm_f32(expect, n, a, k, b, ldb, rows, n, k, &o, NULL));
        for (size_t w = 0; w < count; w++)
            for (size_t m = rows + 1; m <= 200; m += 199 - rows) {
                size_t bytes = 0;
                assert_ok(iso_gemm_f32_workspace_bytes(&bytes, m, n, k, &o, &ways[w].context));
                for (size_t few = 1; few <= rows; few += rows / 2 - 1) {
                    const iso_context x = with_workspace(&ways[w].context, bytes);
                    assert_ok(iso_gemm_f32(c, n, a, k, b, ldb, few, n, k, &o, &x));
                    assert_same("a workspace for more rows", c, n, expect, n, few, n);
                }
            }
    }
    release(NULL);
}

static void fail_to_run(void *user, size_t n, void (*fn)(void *arg, size_t i), void *arg) {
    (void)user, (void)n, (void)fn, (void)arg;
    fail();
}

/* Scratch for each thread of an executor that claims more than there can be: also where a multiple
 * of 16 floats wraps to 0, and where size_t counts as many but no memory has them. */
void scratch_of_all_threads_may_overflow(void **state) {
    (void)state;
    enum { N = 200 };
    iso_executor e = {fail_to_run, NULL, SIZE_MAX};
    iso_context x = {.size = sizeof x, .executor = &e};
    float *a = random_floats(N * N), *b = random_floats(N * N), *c = floats(N * N);
    const iso_packed w = pack(b, N, N, N, 0, NULL);
    const iso_linear_options l = {.size = sizeof l, .residual = c, .ldr = N};
    const iso_gemm_options g = {.size = sizeof g, .alpha = 1, .beta = 0.5F};
    size_t bytes = 7;
    for (size_t i = 0; i < N * N; i++)
        c[i] = CANARY;
    assert_int_equal(iso_linear_f32_workspace_bytes(&bytes, &w, N, &x), ISOBIT_E_OVERFLOW);
    assert_int_equal(iso_gemm_f32_workspace_bytes(&bytes, N, N, N, &g, &x), ISOBIT_E_OVERFLOW);
    assert_int_equal(bytes, 7);
    for (int workspace = 0; workspace < 2; workspace++) {
        assert_int_equal(iso_linear_f32(c, N, a, N, &w, N, &l, &x), ISOBIT_E_OVERFLOW);
        assert_int_equal(iso_gemm_f32(c, N, a, N, b, N, N, N, N, &g, &x), ISOBIT_E_OVERFLOW);
        x.workspace = a, x.workspace_bytes = N * sizeof *a;
    }
    iso_status status = ISOBIT_E_OVERFLOW;
    x.workspace = NULL, e.max_threads = SIZE_MAX / 16 + 1;
    assert_int_equal(iso_gemm_f32(c, N, a, N, b, N, N, N, N, &g, &x), status);
    while ((SIZE_MAX >> 31) >> 31 && !SANITIZED && status == ISOBIT_E_OVERFLOW) {
        e.max_threads /= 2;
        status = iso_gemm_f32(c, N, a, N, b, N, N, N, N, &g, &x);
        assert_true(status == ISOBIT_E_OVERFLOW || status == ISOBIT_E_NOMEM);
    }
    assert_true(all_canaries(c, N * N));
}

static void run_in_turn(void *user, size_t n, void (*fn)(void *arg, size_t i), void *arg) {
    (void)user;
    for (size_t i = 0; i < n; i++)
        fn(arg, i);
}

/* More tasks than have blocks of their own: one after the other they do all of them. */
void there_may_be_many_tasks(void **state) {
    (void)state;
    enum { N = 128 };
    const float *a = random_floats(N * N), *b = random_floats(N * N);
    float *c = floats(N * N), *expect = floats(N * N);
    assert_ok(iso_gemm_f32(expect, N, a, N, b, N, N, N, N, NULL, NULL));
    for (size_t threads = 63; threads < 67; threads++) {
        const iso_executor e = {run_in_turn, NULL, threads};
        const iso_context x = {.size = sizeof x, .executor = &e};
        memset(c, 0, N * N * sizeof *c);
        assert_ok(iso_gemm_f32(c, N, a, N, b, N, N, N, N, NULL, &x));
        assert_same("many tasks", c, N, expect, N, N, N);
    }
}

/* More rows than a block has, and a residual that is the output: more sums wait than for a C that
 * is written only, and what was promised before C was known covers it. */
void workspace_covers_a_residual_in_place(void **state) {
    (void)state;
    enum { M = 140, K = 550 };
    const size_t n = quick ? 130 : 520;
    float *a = random_floats((size_t)M * K), *b = random_floats(n * K);
    float *c = floats(M * n), *expect = floats(M * n);
    float *before = random_floats(M * n);
    for (int trans_b = 0; trans_b < 2; trans_b++) {
        const size_t ldb = trans_b ? K : n;
        const iso_gemm_options o = {
            .size = sizeof o, .trans_b = trans_b, .alpha = 1, .residual = c, .ldr = n};
        memcpy(c, before, sizeof(float) * M * n);
        assert_ok(iso_gemm_f32(c, n, a, K, b, ldb, M, n, K, &o, NULL));
        memcpy(expect, c, sizeof(float) * M * n);
        for (size_t w = 0; w < (quick ? isa_ways : way_count); w++) {
            size_t bytes = SIZE_MAX;
            assert_ok(iso_gemm_f32_workspace_bytes(&bytes, M, n, K, &o, &ways[w].context));
            iso_context x = with_workspace(&ways[w].context, bytes);
            memcpy(c, before, sizeof(float) * M * n);
            assert_ok(iso_gemm_f32(c, n, a, K, b, ldb, M, n, K, &o, &x));
            assert_same(ways[w].name, c, n, expect, n, M, n);
        }
    }
}

void workspace_is_asked_for_whatever_the_epilogue(void **state) {
    (void)state;
    static const size_t shapes[][3] = {{16, 16, 16}, {20, 192, 16}, {100, 64, 64}, {130, 90, 513}};
    enum { BETA, HALF, RESIDUAL, KINDS };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t w = 0; w < isa_ways; w++)
            for (int kind = BETA; kind < KINDS; kind++) {
                struct gemm_args g = {.m = shapes[i][0], .n = shapes[i][1], .k = shapes[i][2]};
                g.a = random_floats(g.m * g.k), g.b = random_floats(g.k * g.n);
                g.c = random_floats(g.m * g.n);
                g.o = (iso_gemm_options){.size = sizeof g.o,
                                         .alpha = 1,
                                         .beta = kind == BETA   ? 1
                                                 : kind == HALF ? 0.5F
                                                                : 0,
                                         .residual =
                                             kind == RESIDUAL ? random_floats(g.m * g.n) : NULL,
                                         .ldr = g.n};
                float *before = floats(g.m * g.n), *expect = floats(g.m * g.n);
                memcpy(before, g.c, g.m * g.n * sizeof *before);
                assert_ok(call_gemm(&g, NULL));
                memcpy(expect, g.c, g.m * g.n * sizeof *expect);
                memcpy(g.c, before, g.m * g.n * sizeof *before);
                size_t bytes = 0;
                assert_ok(
                    iso_gemm_f32_workspace_bytes(&bytes, g.m, g.n, g.k, &g.o, &ways[w].context));
                assert_true(bytes > 0);
                const iso_context less = with_workspace(&ways[w].context, bytes - 1);
                assert_int_equal(call_gemm(&g, &less), ISOBIT_E_WORKSPACE);
                assert_memory_equal(g.c, before, g.m * g.n * sizeof *before);
                const iso_context enough = with_workspace(&ways[w].context, bytes);
                assert_ok(call_gemm(&g, &enough));
                assert_memory_equal(g.c, expect, g.m * g.n * sizeof *expect);
                release(NULL);
            }
}

void workspace_is_enough(void **state) {
    (void)state;
    static const size_t shapes[][3] = {
        {1, 40, 30},    {9, 17, 33},  {65, 130, 70}, {30, 600, 5}, {200, 33, 513}, {130, 300, 1030},
        {28, 150, 520}, {10, 20, 32}, {64, 16, 64},  {64, 64, 16}, {127, 16, 500}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (quick && shapes[i][2] > 500)
            continue;
        for (int trans = 0; trans < 4; trans++) {
            struct gemm_args g = {.m = shapes[i][0], .n = shapes[i][1], .k = shapes[i][2]};
            g.a = random_floats(g.m * g.k), g.b = random_floats(g.k * g.n);
            g.c = floats(g.m * g.n);
            g.o = (iso_gemm_options){
                .size = sizeof g.o, .trans_a = trans & 1, .trans_b = trans >> 1, .alpha = 1};
            float *expect = floats(g.m * g.n);
            assert_ok(call_gemm(&g, NULL));
            memcpy(expect, g.c, g.m * g.n * sizeof *expect);
            for (size_t w = 0; w < (quick ? isa_ways : way_count); w++) {
                size_t bytes = SIZE_MAX;
                assert_ok(
                    iso_gemm_f32_workspace_bytes(&bytes, g.m, g.n, g.k, &g.o, &ways[w].context));
                check_workspace(call_gemm, &g, bytes, &ways[w].context, g.c, g.m * g.n, expect);
            }
            if (trans == 2) { /* x W^T, packed */
                g.packed = pack(g.b, g.k, g.n, g.k, 0, NULL);
                for (size_t w = 0; w < (quick ? isa_ways : way_count); w++) {
                    size_t bytes = SIZE_MAX;
                    assert_ok(
                        iso_linear_f32_workspace_bytes(&bytes, &g.packed, g.m, &ways[w].context));
                    check_workspace(call_linear, &g, bytes, &ways[w].context, g.c, g.m * g.n,
                                    expect);
                }
            }
            release(NULL);
        }
    }
    for (size_t i = 0; i < attention_case_count; i++) {
        const struct attention_case *c = &attention_cases[i];
        if (c->Sq * c->Sk * c->dh > (quick ? 100000 : 1000000))
            continue;
        for (int panels = 0; panels < 2; panels++) {
            struct attention_data d;
            attention_make(&d, c);
            if (panels)
                make_panels(&d, NULL);
            assert_ok(attention_call(&d, NULL));
            float *expect = floats(d.o_floats);
            memcpy(expect, d.o, d.o_floats * sizeof *expect);
            for (size_t w = 0; w < way_count; w++) {
                size_t bytes = SIZE_MAX;
                assert_ok(iso_attention_f32_workspace_bytes(&bytes, &d.shape, &d.options,
                                                            &ways[w].context));
                check_workspace(call_attention, &d, bytes, &ways[w].context, d.o, d.o_floats,
                                expect);
            }
            release(NULL);
        }
    }
}

/* The calls that have no workspace never allocate. */
static iso_status call_rows(void *arg, const iso_context *x) {
    float **p = arg;
    for (size_t op = 0; op < row_op_count; op++) {
        iso_status status = row_ops[op].call(p[0], COLS, p[1], COLS, 0, ROWS, x);
        if (status != ISOBIT_OK)
            return status;
    }
    iso_status status = iso_gemv_f32(p[0], p[1], 100, p[1] + 90 * 100, 90, 100, 0, x);
    if (status == ISOBIT_OK)
        status = iso_logsumexp_f32(p[0], p[0] + ROWS, p[1], COLS, ROWS, COLS, x);
    if (status == ISOBIT_OK)
        status = iso_gate_f32(p[0], COLS, p[1], COLS, p[1], COLS, ROWS, COLS, ISOBIT_ACT_SILU, x);
    if (status == ISOBIT_OK)
        status = iso_rope_table_f32(p[0], 64, 3, ROWS, p[1], 64, 1, x);
    if (status == ISOBIT_OK)
        status = iso_rope_f32(p[0], 64, p[1], 64, ROWS, 1, 64, 64, ISOBIT_ROPE_INTERLEAVED, p[1],
                              64, NULL, ROWS, x);
    return status != ISOBIT_OK ? status
                               : iso_positions_f32(p[0], 64, 3, 50, 64, ISOBIT_POS_HALF_D, x);
}

void rows_never_allocate(void **state) {
    (void)state;
    float *p[2] = {floats(ROWS * COLS), random_floats(ROWS * COLS)};
    for (size_t w = 0; w < way_count; w++) {
        iso_status status;
        size_t count = allocations_of(&status, call_rows, p, &ways[w].context);
        assert_int_equal(status, ISOBIT_OK);
        assert_int_equal(count, 0);
    }
}

/* -------------------------------------------------------------------------------------- options */

/* An options struct of a future version: larger, zero beyond what we know. */
void context_members_are_checked(void **state) {
    (void)state;
    float x[4] = {1, 2, 3, 4}, y[4] = {0};
    iso_executor none = {NULL, NULL, 1};
    iso_context c = {.size = sizeof c, .executor = &none};
    assert_int_equal(iso_softmax_f32(y, 4, x, 4, 1, 4, NULL, &c), ISOBIT_E_NULL);
    assert_true(y[0] == 0);
    c = (iso_context){.size = sizeof c};
    assert_ok(iso_softmax_f32(y, 4, x, 4, 1, 4, NULL, &c));
    for (size_t i = 0; i < iso_isa_count(); i++) { /* a set that this machine lacks */
        if (!iso_isa_missing(iso_isa_get(i)))
            continue;
        c.isa = iso_isa_get(i);
        assert_int_equal(iso_softmax_f32(y, 4, x, 4, 1, 4, NULL, &c), ISOBIT_E_ISA);
    }
}
