/* SPDX-License-Identifier: MIT
 *
 * Softmax, norms and elementwise operations.
 */
#include "test_ops.h"

static float row_gamma[COLS], row_beta[COLS], row_residual[ROWS * COLS], row_sum[ROWS * COLS];
static size_t row_lengths[ROWS];
static uint8_t row_mask[ROWS * COLS];

static iso_status row_softmax(float *y, size_t ldy, const float *x, size_t ldx, size_t first,
                              size_t rows, const iso_context *context) {
    (void)first;
    return iso_softmax_f32(y, ldy, x, ldx, rows, COLS, NULL, context);
}
static iso_status row_softmax_masked(float *y, size_t ldy, const float *x, size_t ldx, size_t first,
                                     size_t rows, const iso_context *context) {
    iso_softmax_options o = {.size = sizeof o,
                             .lengths = row_lengths + first,
                             .mask = row_mask + first * COLS,
                             .ldm = COLS};
    return iso_softmax_f32(y, ldy, x, ldx, rows, COLS, &o, context);
}
static iso_status row_log_softmax(float *y, size_t ldy, const float *x, size_t ldx, size_t first,
                                  size_t rows, const iso_context *context) {
    iso_softmax_options o = {.size = sizeof o, .log = 1, .lengths = row_lengths + first};
    return iso_softmax_f32(y, ldy, x, ldx, rows, COLS, &o, context);
}
static iso_status row_layernorm(float *y, size_t ldy, const float *x, size_t ldx, size_t first,
                                size_t rows, const iso_context *context) {
    iso_norm_options o = {.size = sizeof o,
                          .gamma = row_gamma,
                          .beta = row_beta,
                          .eps = 1e-5f,
                          .residual = row_residual + first * COLS,
                          .ldr = COLS,
                          .sum = row_sum + first * COLS,
                          .lds = COLS};
    return iso_layernorm_f32(y, ldy, x, ldx, rows, COLS, &o, context);
}
static iso_status row_rmsnorm(float *y, size_t ldy, const float *x, size_t ldx, size_t first,
                              size_t rows, const iso_context *context) {
    (void)first;
    iso_norm_options o = {.size = sizeof o, .gamma = row_gamma, .eps = 1e-6f};
    return iso_rmsnorm_f32(y, ldy, x, ldx, rows, COLS, &o, context);
}
static iso_status row_eltwise(float *y, size_t ldy, const float *x, size_t ldx, size_t first,
                              size_t rows, const iso_context *context) {
    iso_eltwise_options o = {.size = sizeof o,
                             .bias = row_beta,
                             .act = ISOBIT_ACT_GELU_ERF,
                             .residual = row_residual + first * COLS,
                             .ldr = COLS};
    return iso_eltwise_f32(y, ldy, x, ldx, rows, COLS, &o, context);
}
const struct row_op row_ops[] = {
    {"softmax", row_softmax},         {"masked softmax", row_softmax_masked},
    {"log-softmax", row_log_softmax}, {"layernorm", row_layernorm},
    {"rmsnorm", row_rmsnorm},         {"eltwise", row_eltwise}};
const size_t row_op_count = sizeof row_ops / sizeof *row_ops;

int make_rows(void **state) {
    (void)state;
    random_state = 4711;
    for (size_t j = 0; j < COLS; j++)
        row_gamma[j] = random_float(), row_beta[j] = random_float();
    for (size_t i = 0; i < ROWS * COLS; i++) {
        row_residual[i] = random_float();
        row_mask[i] = random_next() >> 62 != 0;
    }
    for (size_t i = 0; i < ROWS; i++)
        row_lengths[i] = random_next() >> 32 & 1 ? COLS : i % (COLS + 1);
    return 0;
}

void rows_are_the_same_every_way(void **state) {
    (void)state;
    for (size_t op = 0; op < row_op_count; op++) {
        float *x = random_matrix(ROWS, COLS, COLS + 1), *expect = floats(ROWS * COLS);
        assert_ok(row_ops[op].call(expect, COLS, x, COLS + 1, 0, ROWS, &ways[0].context));
        for (size_t w = 0; w < way_count; w++) {
            float *y = canaries((ROWS - 1) * (COLS + 3) + COLS);
            assert_ok(row_ops[op].call(y, COLS + 3, x, COLS + 1, 0, ROWS, &ways[w].context));
            assert_same(row_ops[op].name, y, COLS + 3, expect, COLS, ROWS, COLS);
            assert_true(gaps_kept(y, COLS + 3, ROWS, COLS));
            /* in place */
            for (size_t i = 0; i < ROWS; i++)
                memcpy(y + i * (COLS + 3), x + i * (COLS + 1), COLS * sizeof *y);
            assert_ok(row_ops[op].call(y, COLS + 3, y, COLS + 3, 0, ROWS, &ways[w].context));
            assert_same(row_ops[op].name, y, COLS + 3, expect, COLS, ROWS, COLS);
        }
        release(NULL);
    }
}

void rows_do_not_see_the_batch(void **state) {
    (void)state;
    for (size_t op = 0; op < row_op_count; op++) {
        float *x = random_floats(ROWS * COLS), *whole = floats(ROWS * COLS);
        float *y = floats(ROWS * COLS);
        for (size_t w = 0; w < isa_ways; w++) {
            const iso_context *context = &ways[w].context;
            assert_ok(row_ops[op].call(whole, COLS, x, COLS, 0, ROWS, context));
            for (size_t m = 1; m <= ROWS; m++) {
                assert_ok(row_ops[op].call(y, COLS, x, COLS, 0, m, context));
                assert_same(row_ops[op].name, y, COLS, whole, COLS, m, COLS);
                assert_ok(row_ops[op].call(y, COLS, x + (m - 1) * COLS, COLS, m - 1, 1, context));
                assert_same(row_ops[op].name, y, COLS, whole + (m - 1) * COLS, COLS, 1, COLS);
            }
        }
        release(NULL);
    }
}

/* More than a core's L2 holds: what comes from beyond it takes other code paths. */
void rows_beyond_l2_are_as_they_are_alone(void **state) {
    (void)state;
    enum { MANY = 140, N = 1030 };
    for (size_t gap = 0; gap < 2; gap++) {
        const size_t ld = N + gap;
        float *x = random_matrix(MANY, N, ld), *residual = random_matrix(MANY, N, ld);
        float *bias = random_floats(N), *expect = floats(MANY * ld), *y = floats(MANY * ld);
        for (int op = 0; op < 6; op++) {
            for (size_t call = 0; call < MANY + way_count; call++) { /* row by row, then at once */
                const size_t w = call < MANY ? 0 : call - MANY, rows = call < MANY ? 1 : MANY;
                const size_t first = call < MANY ? call * ld : 0;
                float *to = call < MANY ? expect + first : y;
                for (size_t i = 0; i < MANY * ld && call >= MANY; i++)
                    y[i] = CANARY;
                iso_eltwise_options e = {.size = sizeof e,
                                         .act = op == 2 ? ISOBIT_ACT_GELU_TANH : ISOBIT_ACT_SILU,
                                         .bias = op == 1 ? bias : NULL,
                                         .residual = op < 2 ? residual + first : NULL,
                                         .ldr = ld};
                iso_norm_options o = {.size = sizeof o,
                                      .gamma = bias,
                                      .residual = op == 4 ? residual + first : NULL,
                                      .ldr = ld};
                const iso_context *context = &ways[w].context;
                assert_ok(op < 3 ? iso_eltwise_f32(to, ld, x + first, ld, rows, N, &e, context)
                          : op == 5
                              ? iso_rmsnorm_f32(to, ld, x + first, ld, rows, N, &o, context)
                              : iso_layernorm_f32(to, ld, x + first, ld, rows, N, &o, context));
                if (call >= MANY) {
                    assert_same("rows beyond L2", y, ld, expect, ld, MANY, N);
                    assert_true(gaps_kept(y, ld, MANY, N));
                }
            }
        }
        release(NULL);
    }
}

/* An output of more than half of an L3 of 32 MiB is written with non-temporal stores, but for
 * whatever begins in the middle of a line on its own. */
void rows_with_streaming_stores_are_as_they_are_alone(void **state) {
    (void)state;
    enum { MANY = 4099, N = 1024, TABLE = 50 };
    for (size_t at = 0; at < (quick ? 1 : 2); at++) {
        float *x = random_floats(MANY * N), *residual = random_floats(MANY * N);
        float *bias = random_floats(N), *table = random_floats(TABLE * N);
        float *expect = floats(MANY * N), *y = canaries(MANY * N + 32);
        float *to = (float *)(((uintptr_t)y + 63) / 64 * 64) + at;
        uint32_t *ids = guarded(MANY * sizeof *ids);
        for (size_t i = 0; i < MANY; i++)
            ids[i] = (uint32_t)(random_next() % TABLE);
        for (int op = 0; op < 6; op++) {
            const size_t last = MANY + (quick ? isa_ways : way_count);
            for (size_t call = 0; call < last; call++) { /* row by row, then at once */
                const bool alone = call < MANY;
                if (call >= MANY + isa_ways && call % 7)
                    continue; /* one way of many with threads */
                const size_t row = alone ? call : 0, rows = alone ? 1 : MANY;
                float *out = alone ? expect + row * N : to;
                const float *in = x + row * N, *more = residual + row * N;
                for (size_t i = 0; i < MANY * N && !alone; i++)
                    to[i] = CANARY;
                const iso_eltwise_options e = {.size = sizeof e,
                                               .act = ISOBIT_ACT_RELU,
                                               .bias = op == 1 ? bias : NULL,
                                               .residual = op == 1 ? more : NULL,
                                               .ldr = N};
                const iso_norm_options o = {.size = sizeof o,
                                            .gamma = bias,
                                            .eps = 1e-5f,
                                            .residual = op == 3 ? more : NULL,
                                            .ldr = N};
                const iso_context *context = &ways[alone ? 0 : call - MANY].context;
                assert_ok(op < 2    ? iso_eltwise_f32(out, N, in, N, rows, N, &e, context)
                          : op < 4  ? iso_layernorm_f32(out, N, in, N, rows, N, &o, context)
                          : op == 4 ? iso_rmsnorm_f32(out, N, in, N, rows, N, &o, context)
                                    : iso_embed_f32(out, N, ids + row, rows, table, TABLE, N, 3.0f,
                                                    NULL, NULL, 0, context));
                if (!alone)
                    assert_same("rows with streaming stores", to, N, expect, N, MANY, N);
            }
            for (size_t i = 0; i < MANY * N + 32; i++)
                assert_true((y + i >= to && y + i < to + MANY * N) || y[i] == CANARY);
        }
        release(NULL);
    }
}

/* Some rows go together: each is as it is alone, also beside rows that are not finite. */
void softmax_rows_do_not_meet(void **state) {
    (void)state;
    static const size_t widths[] = {31, 64, 80, 301, 1030, 2050};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        const size_t n = widths[i], ld = n + i % 2;
        float *x = random_matrix(ROWS, n, ld), *y = floats(ROWS * n), *one = floats(n);
        for (size_t j = 0; j < n; j++)
            x[2 * ld + j] = x[5 * ld + j] = x[9 * ld + j] = -INFINITY;
        x[9 * ld + n / 2] = NAN;
        x[10 * ld + n - 1] = INFINITY;
        x[11 * ld] = -INFINITY;
        for (size_t w = 0; w < (quick ? isa_ways : way_count); w++) {
            for (int safe = 0; safe < 2; safe++) {
                iso_softmax_options o = {.size = sizeof o, .safe = safe};
                assert_ok(iso_softmax_f32(y, n, x, ld, ROWS, n, &o, &ways[w].context));
                for (size_t row = 0; row < ROWS; row++) {
                    assert_ok(iso_softmax_f32(one, n, x + row * ld, ld, 1, n, &o, NULL));
                    assert_same("softmax", y + row * n, n, one, n, 1, n);
                }
                for (size_t j = 0; j < n; j++) {
                    assert_true(safe ? y[2 * n + j] == 0 && y[5 * n + j] == 0
                                     : isnan(y[2 * n + j]) && isnan(y[5 * n + j]));
                    assert_true(isnan(y[9 * n + j]) && isnan(y[10 * n + j]));
                }
                assert_true(y[11 * n] == 0 && y[11 * n + 1] > 0);
            }
        }
    }
}

/* The two numbers of a row make its log-softmax, whatever is in it, on threads, row by row. */
void logsumexp_makes_the_log_softmax(void **state) {
    (void)state;
    enum { N = 301, LD = N + 2 }; /* enough for several threads */
    float *x = random_matrix(ROWS, N, LD), *expect = floats(ROWS * N), *y = floats(ROWS * N);
    for (size_t j = 0; j < N; j++) {
        x[5 * LD + j] = x[7 * LD + j] = -INFINITY;
        x[13 * LD + j] = j % 2 ? 0.0f : -0.0f;
        x[14 * LD + j] = j ? -INFINITY : -0.0f;
        x[15 * LD + j] *= 1e5f;
    }
    x[7 * LD + 99] = x[8 * LD + 300] = NAN;
    x[9 * LD + 4] = x[10 * LD + 4] = INFINITY;
    x[10 * LD] = NAN;
    x[11 * LD + 17] = -INFINITY;
    iso_softmax_options o = {.size = sizeof o, .log = 1, .safe = 1};
    assert_ok(iso_softmax_f32(expect, N, x, LD, ROWS, N, &o, &ways[0].context));
    for (size_t w = 0; w < way_count; w++) {
        const iso_context *context = &ways[w].context;
        float *max = canaries(ROWS), *log_sum = canaries(ROWS), one[2];
        assert_ok(iso_logsumexp_f32(max, log_sum, x, LD, ROWS, N, context));
        for (size_t i = 0; i < ROWS; i++)
            for (size_t j = 0; j < N; j++)
                y[i * N + j] = (x[i * LD + j] - max[i]) - log_sum[i];
        assert_same("log-sum-exp", y, N, expect, N, ROWS, N);
        for (size_t i = 0; i < ROWS; i++) {
            assert_ok(iso_logsumexp_f32(&one[0], &one[1], x + i * LD, N, 1, N, context));
            assert_same("max of one row", &one[0], 1, max + i, 1, 1, 1);
            assert_same("log-sum of one row", &one[1], 1, log_sum + i, 1, 1, 1);
        }
        /* what ops.h says of the rows that are not finite */
        assert_true(max[5] == -FLT_MAX && log_sum[5] == 0);
        assert_true(max[7] == -INFINITY && isnan(log_sum[7]));
        assert_true(max[8] <= 1 && isnan(log_sum[8]));
        assert_true(max[9] == INFINITY && isnan(log_sum[9]));
        assert_true(max[10] == INFINITY && isnan(log_sum[10]));
        assert_true(isfinite(max[11]) && isfinite(log_sum[11]));
        assert_true(max[13] == 0 && signbit(max[13]) && max[14] == 0 && signbit(max[14]));
    }
}

void eltwise_is_near_the_truth(void **state) {
    (void)state;
    float *x = random_floats(6 * COLS), *y = floats(6 * COLS);
    for (int act = ISOBIT_ACT_NONE; act < ISO_ACTIVATIONS; act++) {
        for (int form = 0; form < 4; form++) {
            iso_eltwise_options o = {.size = sizeof o,
                                     .act = (iso_activation)act,
                                     .bias = form & 1 ? row_beta : NULL,
                                     .residual = form & 2 ? row_residual : NULL,
                                     .ldr = COLS};
            for (size_t w = 0; w < isa_ways; w++) {
                assert_ok(iso_eltwise_f32(y, COLS, x, COLS, 6, COLS, &o, &ways[w].context));
                for (size_t i = 0; i < 6 * COLS; i++) {
                    struct iso_oracle_epilogue e = {.alpha = 1,
                                                    .act = act,
                                                    .bias = form & 1 ? &row_beta[i % COLS] : NULL,
                                                    .residual = form & 2 ? &row_residual[i] : NULL};
                    double bound, want = iso_oracle_epilogue(&bound, (double)x[i], 0, &e);
                    assert_true(fabs((double)y[i] - want) <= bound);
                }
            }
        }
    }
}

/* By the written order, bit by bit; y = x, y not read where beta is 0, and sizes that go past the
 * caches or to several threads. */
void axpby_is_as_written(void **state) {
    (void)state;
    static const float alphas[] = {1, -0.7f, 0}, betas[] = {0, 1, 1.3f};
    static const size_t sizes[][2] = {{1, 1}, {3, 33}, {7, 64}, {260, 130}};
    for (size_t s = 0; s < 4; s++)
        for (int f = 0; f < 18; f++) {
            const size_t rows = sizes[s][0], n = sizes[s][1], ld = n + (size_t)(f & 1);
            const float alpha = alphas[f / 2 % 3], beta = betas[f / 6];
            float *x = random_floats(rows * ld), *y0 = random_floats(rows * ld);
            float *y = floats(rows * ld), *expect = floats(rows * ld);
            for (size_t i = 0; i < rows * ld; i++) {
                const float t = alpha == 1 ? x[i] : alpha * x[i];
                expect[i] = beta == 0 ? t : fmaf(beta, y0[i], t);
            }
            for (size_t w = 0; w < way_count; w++) {
                for (size_t i = 0; i < rows * ld; i++)
                    y[i] = i % ld >= n ? CANARY : beta == 0 ? NAN : y0[i];
                assert_ok(iso_axpby_f32(y, ld, x, ld, rows, n, alpha, beta, &ways[w].context));
                assert_same("axpby", y, ld, expect, ld, rows, n);
                assert_true(gaps_kept(y, ld, rows, n));
                if (beta == 0) { /* in place */
                    memcpy(y, x, rows * ld * sizeof *y);
                    assert_ok(iso_axpby_f32(y, ld, y, ld, rows, n, alpha, 0, &ways[w].context));
                    assert_same("axpby in place", y, ld, expect, ld, rows, n);
                }
            }
            release(NULL);
        }
    float nan = NAN, out = 1;
    assert_ok(iso_axpby_f32(&out, 1, &nan, 1, 1, 1, 0, 0, NULL)); /* x is read */
    assert_true(isnan(out));
}

/* The bits of iso_eltwise_f32 and then one multiplication: apart, in place, from the halves of one
 * matrix, on several threads and with rows that do not stay in L2. */
void gates_are_activations_times_factors(void **state) {
    (void)state;
    static const size_t sizes[][2] = {{1, 1}, {3, 33}, {7, 64}, {5, 301}, {40, 830}, {130, 1030}};
    const size_t most = quick ? 5 : 6;
    for (size_t s = 0; s < most; s++)
        for (int act = ISOBIT_ACT_NONE; act < ISO_ACTIVATIONS; act++) {
            const size_t rows = sizes[s][0], n = sizes[s][1], ld = 2 * n + (size_t)(act & 1);
            const iso_eltwise_options o = {.size = sizeof o, .act = (iso_activation)act};
            if (s >= 4 && act != ISOBIT_ACT_SILU)
                continue;
            float *both = random_matrix(rows, 2 * n, ld), *expect = floats(rows * n);
            float *a = floats(rows * n), *b = floats(rows * n), *y = floats(rows * ld);
            for (size_t i = 0; i < rows; i++)
                for (size_t j = 0; j < n; j++) {
                    both[i * ld + j] *= 8;
                    a[i * n + j] = both[i * ld + j], b[i * n + j] = both[i * ld + n + j];
                }
            assert_ok(iso_eltwise_f32(expect, n, a, n, rows, n, &o, &ways[0].context));
            for (size_t i = 0; i < rows * n; i++)
                expect[i] *= b[i];
            for (size_t w = 0; w < way_count; w++) {
                const iso_context *x = &ways[w].context;
                const iso_activation f = (iso_activation)act;
                assert_ok(iso_gate_f32(y, n, both, ld, both + n, ld, rows, n, f, x));
                assert_same("gate of halves", y, n, expect, n, rows, n);
                if (s >= 4) /* many elements: in one way */
                    continue;
                for (size_t i = 0; i < rows * ld; i++)
                    y[i] = CANARY;
                assert_ok(iso_gate_f32(y, ld, a, n, b, n, rows, n, f, x));
                assert_same("gate", y, ld, expect, n, rows, n);
                assert_true(gaps_kept(y, ld, rows, n));
                memcpy(y, a, rows * n * sizeof *y);
                assert_ok(iso_gate_f32(y, n, y, n, both + n, ld, rows, n, f, x));
                assert_same("gate in place of a", y, n, expect, n, rows, n);
                memcpy(y, b, rows * n * sizeof *y);
                assert_ok(iso_gate_f32(y, n, both, ld, y, n, rows, n, f, x));
                assert_same("gate in place of b", y, n, expect, n, rows, n);
                memcpy(y, both, ((rows - 1) * ld + 2 * n) * sizeof *y);
                assert_ok(iso_gate_f32(y, ld, y, ld, y + n, ld, rows, n, f, x));
                assert_same("gate in the first half", y, ld, expect, n, rows, n);
                assert_same("the second half", y + n, ld, b, n, rows, n);
            }
            release(NULL);
        }
}
