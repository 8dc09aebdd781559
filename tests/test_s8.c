/* SPDX-License-Identifier: MIT
 *
 * Products of int8: rows of floats to integers, packing and products have the bits of the formulas
 * in isobit/ops.h, computed here with sums of int64, with every set, number of threads and batch;
 * nothing outside of the operands is touched; what is refused.
 */
#include "few_bits.h"

#include <float.h>

/* ------------------------------------------------------------------------------ the definition */

/* One operation of floats: in double, then rounded. */
static float times(float a, float b) { return (float)((double)a * (double)b); }
static float plus(float a, float b) { return (float)((double)a + (double)b); }

/* A row, whose elements are `step` apart. */
static float integers(int8_t *q, const float *x, size_t n, size_t step) {
    double most = 0;
    int finite = 1;
    for (size_t j = 0; j < n; j++) {
        finite = finite && isfinite(x[j * step]);
        most = fmax(most, fabs((double)x[j * step]));
    }
    const int some = finite && most >= ldexp(1, -119);
    for (size_t j = 0; j < n; j++)
        q[j] = some ? (int8_t)rint((double)times(x[j * step], (float)(127 / most))) : 0;
    return !finite ? NAN : some ? (float)(most / 127) : 0;
}

/* Weights, their integers [n][k] and scales by definition, and packed. */
struct matrix {
    size_t n, k, ld, bytes;
    int trans;
    float *w, *scales;
    int8_t *q;
    iso_packed_s8 packed;
};

static void pack(iso_packed_s8 *p, const struct matrix *m, const iso_context *way) {
    int8_t *to = guarded(m->bytes + (64 - m->bytes % 64) % 64);
    memset(to, 0xa5, m->bytes);
    assert_ok(iso_pack_s8(p, to, m->bytes, m->w, m->ld, m->n, m->k, m->trans, way));
}

static struct matrix make(size_t n, size_t k, int trans, int special) {
    struct matrix m = {.n = n, .k = k, .ld = (trans ? n : k) + 3, .trans = trans};
    const size_t rows = trans ? k : n, columns = trans ? n : k;
    const size_t extent = rows && columns ? (rows - 1) * m.ld + columns : 0;
    m.w = random_floats(extent), m.scales = floats(n), m.q = guarded(n * k);
    for (size_t i = 0; i < extent; i++) { /* gaps are NaN */
        if (i % m.ld >= columns)
            m.w[i] = NAN;
        else if (special && draw() % (20 * k) == 0)
            m.w[i] = draw() % 2 ? INFINITY : NAN;
    }
    for (size_t j = 0; j < n; j++)
        m.scales[j] = integers(m.q + j * k, m.w + j * (trans ? 1 : m.ld), k, trans ? m.ld : 1);
    assert_ok(iso_pack_s8_bytes(&m.bytes, n, k));
    assert_true(m.bytes == (n + 15) / 16 * 16 * ((k + 7) / 8 * 8 + 8));
    pack(&m.packed, &m, NULL);
    return m;
}

/* Without activation and residual. */
static void product(float *y, const float *x, size_t ldx, const struct matrix *w, size_t m,
                    const float *bias) {
    int8_t *q = malloc(w->k + 1);
    assert_non_null(q);
    for (size_t i = 0; i < m; i++) {
        const float scale = integers(q, x + i * ldx, w->k, 1);
        for (size_t j = 0; j < w->n; j++) {
            int64_t sum = 0;
            for (size_t p = 0; p < w->k; p++)
                sum += (int64_t)q[p] * w->q[j * w->k + p];
            const float v = times(times((float)sum, w->scales[j]), scale);
            y[i * w->n + j] = bias ? plus(v, bias[j]) : v;
        }
    }
    free(q);
}

/* --------------------------------------------------------------------------------------- tests */

static void layout_is_as_written(void **unused) {
    (void)unused;
    static const size_t shapes[][2] = {{1, 1}, {16, 3}, {15, 9}, {17, 8}, {33, 64}, {100, 70}};
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (int of = 0; of < 4; of++) {
            const size_t n = shapes[i][0], k = shapes[i][1], padded = (k + 7) / 8 * 8;
            const struct matrix m = make(n, k, of / 2, of % 2);
            for (size_t v = 0; v < way_count; v++) {
                iso_packed_s8 p;
                pack(&p, &m, &ways[v]);
                assert_true(p.n == n && p.k == k);
                for (size_t j = 0; j < (n + 15) / 16 * 16; j++) {
                    int32_t sum = 0;
                    for (size_t s = 0; s < padded; s++) {
                        const int want = j < n && s < k ? m.q[j * k + s] : 0;
                        sum += want;
                        assert_int_equal(
                            p.data[j / 16 * 16 * padded + s / 4 * 64 + j % 16 * 4 + s % 4], want);
                    }
                    const float scale = j < n ? m.scales[j] : 0;
                    assert_true(same(&p.scales[j], 1, &scale, 1, 1, 1));
                    assert_int_equal(p.start[j], -128 * sum);
                }
                release_one();
            }
            release();
        }
}

static void rows_become_integers(void **unused) {
    (void)unused;
    static const size_t shapes[][2] = {{1, 1}, {3, 15}, {2, 16}, {5, 33}, {7, 100}, {130, 301}};
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (size_t v = 0; v < way_count; v++) {
            const size_t rows = shapes[i][0], n = shapes[i][1], ldq = n + 3, ldx = n + 1;
            float *x = random_floats((rows - 1) * ldx + n), *scales = floats(rows);
            int8_t *q = guarded((rows - 1) * ldq + n + slack), want[301];
            if (rows > 2) {
                x[2 * ldx + n / 2] = INFINITY;
                for (size_t j = 0; j < n; j++)
                    x[ldx + j] = 0;
            }
            memset(q, 99, (rows - 1) * ldq + n);
            assert_ok(iso_quantize_s8(q, ldq, scales, x, ldx, rows, n, &ways[v]));
            for (size_t r = 0; r < rows; r++) {
                const float scale = integers(want, x + r * ldx, n, 1);
                assert_true(same(&scales[r], 1, &scale, 1, 1, 1));
                assert_memory_equal(q + r * ldq, want, n);
                for (size_t g = n; g < ldq && r + 1 < rows; g++) /* gaps are kept */
                    assert_int_equal(q[r * ldq + g], 99);
            }
            release();
        }
}

/* The largest float, the smallest that counts and the one below it, ties, zeros of either sign. */
static void edges_of_rows(void **unused) {
    (void)unused;
    static const struct {
        float x[4], scale;
        int8_t q[4];
    } rows[] = {
        {{FLT_MAX, -FLT_MAX, FLT_MAX / 2, 1}, FLT_MAX / 127, {127, -127, 64, 0}},
        {{0x1p-119f, -0x1p-119f, 0, 0x1p-126f}, 0x1p-119f / 127, {127, -127, 0, 1}},
        {{0x1.fffffep-120f, 0x1p-130f, 0, 0}, 0, {0, 0, 0, 0}},
        {{127, 0.5f, 1.5f, -2.5f}, 1, {127, 0, 2, -2}},
        {{0, -0.0f, 0, -0.0f}, 0, {0, 0, 0, 0}},
        {{1, NAN, 2, 3}, NAN, {0, 0, 0, 0}},
        {{1, 2, 3, -INFINITY}, NAN, {0, 0, 0, 0}},
    };
    for (size_t v = 0; v < way_count; v++)
        for (size_t i = 0; i < COUNT(rows); i++) {
            int8_t q[4];
            float scale;
            assert_ok(iso_quantize_s8(q, 4, &scale, rows[i].x, 4, 1, 4, &ways[v]));
            assert_true(same(&scale, 1, &rows[i].scale, 1, 1, 1));
            assert_memory_equal(q, rows[i].q, 4);
        }
}

static void products_have_the_written_bits(void **unused) {
    (void)unused;
    static const size_t shapes[][3] = {
        {1, 1, 1},     {1, 16, 8},     {3, 17, 33},   {2, 40, 5},    {6, 130, 64},
        {7, 64, 40},   {13, 65, 70},   {25, 200, 31}, {8, 300, 513}, {33, 164, 1025},
        {130, 97, 20}, {40, 600, 520}, {5, 7, 0},     {70, 49, 9000}};
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (int of = 0; of < 4; of++) {
            const size_t m = shapes[i][0], n = shapes[i][1], k = shapes[i][2], ldy = n + 2;
            if (getenv("ISOBIT_EMULATED") && m * n * k > 2000000 && of > 0)
                continue;
            const struct matrix w = make(n, k, of / 2, of % 2);
            float *x = random_floats(m * (k + 1)), *bias = random_floats(n);
            float *r = random_floats(m * n), *expect = floats(m * n), *y = floats(m * ldy);
            if (m > 5 && k)
                x[3 * (k + 1)] = of % 2 ? NAN : 1e30f;
            iso_linear_options o = {.size = sizeof o, .bias = bias};
            product(expect, x, k + 1, &w, m, bias);
            for (size_t v = 0; v < way_count; v++) { /* no pass follows the sums */
                for (size_t e = 0; e < m * ldy; e++)
                    y[e] = 123;
                assert_ok(iso_linear_s8(y, ldy, x, k + 1, &w.packed, m, &o, &ways[v]));
                assert_true(same(y, ldy, expect, n, m, n));
                for (size_t e = 0; e < m; e++) /* gaps are kept */
                    assert_true(y[e * ldy + n] == 123 && y[e * ldy + n + 1] == 123);
            }
            o.act = of % 3 ? ISOBIT_ACT_RELU : ISOBIT_ACT_GELU_ERF;
            const iso_eltwise_options follow = {
                .size = sizeof follow, .act = o.act, .residual = r, .ldr = n};
            assert_ok(iso_eltwise_f32(expect, n, expect, n, m, n, &follow, &ways[0]));
            for (size_t v = 0; v < way_count; v++) {
                o.residual = r, o.ldr = n;
                assert_ok(iso_linear_s8(y, ldy, x, k + 1, &w.packed, m, &o, &ways[v]));
                assert_true(same(y, ldy, expect, n, m, n));
                for (size_t row = 0; row < m; row++) /* y itself, as the residual */
                    memcpy(y + row * ldy, r + row * n, n * sizeof *y);
                o.residual = y, o.ldr = ldy;
                assert_ok(iso_linear_s8(y, ldy, x, k + 1, &w.packed, m, &o, &ways[v]));
                assert_true(same(y, ldy, expect, n, m, n));
                /* the last row alone, in a workspace of the size that is asked for */
                iso_context in = ways[v];
                size_t bytes;
                assert_ok(iso_linear_s8_workspace_bytes(&bytes, &w.packed, m, &in));
                in.workspace = guarded(bytes + 1), in.workspace_bytes = bytes;
                o.residual = r + (m - 1) * n, o.ldr = n;
                assert_ok(iso_linear_s8(y, ldy, x + (m - 1) * (k + 1), k + 1, &w.packed, 1, &o,
                                        &ways[v]));
                assert_true(same(y, ldy, expect + (m - 1) * n, n, 1, n));
                o.residual = r;
                assert_ok(iso_linear_s8(y, ldy, x, k + 1, &w.packed, m, &o, &in));
                assert_true(same(y, ldy, expect, n, m, n));
                in.workspace_bytes = bytes - 1;
                assert_int_equal(iso_linear_s8(y, ldy, x, k + 1, &w.packed, m, &o, &in),
                                 ISOBIT_E_WORKSPACE);
                release_one(); /* the workspace */
            }
            release();
        }
}

/* Sums at the end of what 32 bits hold. */
static void the_longest_rows_are_exact(void **unused) {
    (void)unused;
    enum { K = 131071, N = 3 };
    struct matrix w = make(N, K, 0, 0);
    float *x = floats(2 * (size_t)K), y[2 * N], expect[2 * N];
    for (size_t p = 0; p < K; p++) { /* all the same; all but one are; signs in turn */
        w.w[p] = 2, w.w[w.ld + p] = -2, w.w[2 * w.ld + p] = p % 2 ? 2 : -2;
        x[p] = 1, x[K + p] = p == 70000 ? 0.25f : -1;
    }
    w.w[w.ld + 9] = 1;
    for (size_t j = 0; j < N; j++)
        w.scales[j] = integers(w.q + j * K, w.w + j * w.ld, K, 1);
    pack(&w.packed, &w, NULL);
    product(expect, x, K, &w, 2, NULL);
    for (size_t v = 0; v < way_count; v++) {
        assert_ok(iso_linear_s8(y, N, x, K, &w.packed, 2, NULL, &ways[v]));
        assert_true(same(y, N, expect, N, 2, N));
    }
    release();
}

/* Weights that iso_pack_s8 did not make may be -128: all of a column, or some. */
static void the_least_integer_is_exact(void **unused) {
    (void)unused;
    static const size_t shapes[][3] = {{1, 16, 8}, {2, 3, 131071}, {9, 33, 500}, {40, 48, 600}};
    for (size_t i = 0; i < COUNT(shapes); i++) {
        const size_t m = shapes[i][0], n = shapes[i][1], k = shapes[i][2], ld = (k + 7) / 8 * 8;
        struct matrix w = make(n, k, 0, 0);
        float *x = random_floats(m * k), *expect = floats(m * n), *y = floats(m * n);
        int8_t *data;
        int32_t *start;
        memcpy(&data, &w.packed.data, sizeof data); /* it is ours */
        memcpy(&start, &w.packed.start, sizeof start);
        for (size_t p = 0; p < 2 * k && p < m * k; p++)
            x[p] = p < k ? -1 : 1;
        for (size_t j = 0; j < n; j++) {
            start[j] = 0;
            for (size_t p = 0; p < k; p++) {
                const int8_t q = (int8_t)(j < 2 && draw() % 50 ? -128 : (int)(draw() % 256) - 128);
                w.q[j * k + p] = j == 0 ? -128 : q;
                data[j / 16 * 16 * ld + p / 4 * 64 + j % 16 * 4 + p % 4] = w.q[j * k + p];
                start[j] -= 128 * w.q[j * k + p];
            }
        }
        product(expect, x, k, &w, m, NULL);
        for (size_t v = 0; v < way_count; v++) {
            assert_ok(iso_linear_s8(y, n, x, k, &w.packed, m, NULL, &ways[v]));
            assert_true(same(y, n, expect, n, m, n));
        }
        release();
    }
}

static void wrong_arguments_are_refused(void **unused) {
    (void)unused;
    enum { M = 3, N = 40, K = 5, BYTES = 48 * (8 + 8) };
    static int8_t room[BYTES + 64] __attribute__((aligned(64))), q[M * K];
    static float w[N * K], x[M * K], y[M * N], scales[M];
    iso_packed_s8 p = {.n = 77};
    size_t bytes = 5;
    REFUSED(NULL, iso_pack_s8_bytes(NULL, N, K));
    REFUSED(OVERFLOW, iso_pack_s8_bytes(&bytes, SIZE_MAX, 2));
    REFUSED(OVERFLOW, iso_pack_s8_bytes(&bytes, SIZE_MAX / 8, 131071));
    REFUSED(LIMIT, iso_pack_s8_bytes(&bytes, N, 131072));
    assert_int_equal(bytes, 5);
    assert_ok(iso_pack_s8_bytes(&bytes, N, 131071));
    assert_ok(iso_pack_s8_bytes(&bytes, N, K));
    assert_int_equal(bytes, BYTES);
#define PACK(p, to, bytes, w, ldw, trans) iso_pack_s8(p, to, bytes, w, ldw, N, K, trans, NULL)
    REFUSED(NULL, PACK(NULL, room, bytes, w, K, 0));
    REFUSED(NULL, PACK(&p, NULL, bytes, w, K, 0));
    REFUSED(NULL, PACK(&p, room, bytes, NULL, K, 0));
    REFUSED(ALIGN, PACK(&p, room + 1, bytes, w, K, 0));
    REFUSED(WORKSPACE, PACK(&p, room, bytes - 1, w, K, 0));
    REFUSED(LD, PACK(&p, room, bytes, w, K - 1, 0));
    REFUSED(LD, PACK(&p, room, bytes, w, N - 1, 1));
    REFUSED(LIMIT, iso_pack_s8(&p, room, bytes, w, 131072, N, 131072, 0, NULL));
    REFUSED(ALIAS, PACK(&p, room, bytes, (const float *)(const void *)(room + BYTES - 4), K, 0));
    assert_int_equal(p.n, 77);
    assert_ok(PACK(&p, room, bytes, w, K, 0));
    assert_true(p.n == N && p.k == K && p.data == room);
#undef PACK
#define LINEAR(y, ldy, x, ldx, w) iso_linear_s8(y, ldy, x, ldx, w, M, NULL, NULL)
    assert_ok(LINEAR(y, N, x, K, &p));
    WRONG_OPERANDS_ARE_REFUSED(LINEAR, y, N, x, K, &p);
    iso_packed_s8 wrong = p;
    wrong.start = NULL;
    REFUSED(NULL, LINEAR(y, N, x, K, &wrong));
    wrong = p, wrong.scales = NULL;
    REFUSED(NULL, LINEAR(y, N, x, K, &wrong));
    wrong = p, wrong.data = NULL;
    REFUSED(NULL, LINEAR(y, N, x, K, &wrong));
    REFUSED(NULL, iso_linear_s8_workspace_bytes(&bytes, &wrong, M, NULL));
    wrong = p, wrong.k = 131072;
    REFUSED(LIMIT, LINEAR(y, N, x, 131072, &wrong));
    REFUSED(LIMIT, iso_linear_s8_workspace_bytes(&bytes, &wrong, M, NULL));
    REFUSED(NULL, iso_linear_s8_workspace_bytes(NULL, &p, M, NULL));
    REFUSED(NULL, iso_linear_s8_workspace_bytes(&bytes, NULL, M, NULL));
    REFUSED(OVERFLOW, iso_linear_s8_workspace_bytes(&bytes, &p, SIZE_MAX / 9, NULL));
    /* Integers of more rows than there is memory for, where x and y lie between each other. */
    static int8_t thin_room[16 * (8 + 8)] __attribute__((aligned(64)));
    iso_packed_s8 thin;
    assert_ok(iso_pack_s8(&thin, thin_room, sizeof thin_room, w, 1, 1, 1, 0, NULL));
    REFUSED(OVERFLOW, iso_linear_s8(y, 2, y + 1, 2, &thin, SIZE_MAX / 64, NULL, NULL));
    iso_linear_options o = {.size = 3};
    REFUSED(SIZE, iso_linear_s8(y, N, x, K, &p, M, &o, NULL));
    o = (iso_linear_options){.size = sizeof o, .act = (iso_activation)99};
    REFUSED(OPTION, iso_linear_s8(y, N, x, K, &p, M, &o, NULL));
    o = (iso_linear_options){.size = sizeof o, .residual = x, .ldr = N - 1};
    REFUSED(LD, iso_linear_s8(y, N, x, K, &p, M, &o, NULL));
    o = (iso_linear_options){.size = sizeof o, .bias = y + 1};
    REFUSED(ALIAS, iso_linear_s8(y, N, x, K, &p, M, &o, NULL));
#undef LINEAR
#define ROWS(q, ldq, scales, x, ldx) iso_quantize_s8(q, ldq, scales, x, ldx, M, K, NULL)
    assert_ok(ROWS(q, K, scales, x, K));
    REFUSED(NULL, ROWS(NULL, K, scales, x, K));
    REFUSED(NULL, ROWS(q, K, NULL, x, K));
    REFUSED(NULL, ROWS(q, K, scales, NULL, K));
    REFUSED(LD, ROWS(q, K - 1, scales, x, K));
    REFUSED(LD, ROWS(q, K, scales, x, K - 1));
    REFUSED(ALIAS, ROWS((int8_t *)(x + 1), K, scales, x, K));
    REFUSED(ALIAS, ROWS(q, K, x + M * K - 1, x, K));
    REFUSED(ALIAS, ROWS((int8_t *)scales, K, scales, x, K));
#undef ROWS
    /* Rows of no elements lie anywhere. */
    iso_packed_s8 short_rows;
    assert_ok(iso_pack_s8(&short_rows, room, sizeof room, NULL, 0, N, 0, 0, NULL));
    y[M * N - 1] = 1;
    assert_ok(iso_linear_s8(y, N, NULL, 5, &short_rows, M, NULL, NULL));
    assert_true(y[0] == 0 && y[M * N - 1] == 0);
    iso_packed_s8 none = {0};
    assert_ok(iso_pack_s8(&none, NULL, 0, NULL, 0, 0, 5, 0, NULL));
    assert_ok(iso_linear_s8(NULL, 0, NULL, 5, &none, 3, NULL, NULL));
    assert_ok(iso_quantize_s8(NULL, 5, NULL, NULL, 5, 0, 5, NULL));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_is_as_written),
        cmocka_unit_test(rows_become_integers),
        cmocka_unit_test(edges_of_rows),
        cmocka_unit_test(products_have_the_written_bits),
        cmocka_unit_test(the_longest_rows_are_exact),
        cmocka_unit_test(the_least_integer_is_exact),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, make_ways_with_levels, drop_ways);
}
