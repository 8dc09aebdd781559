/* SPDX-License-Identifier: MIT
 *
 * Native numerics: products with BF16 weights by the CPU's own instructions. Results lie within the
 * written bound of those of the rounded rows of x, and have the same bits in any batch, with any
 * threads, strides and workspace; sets without such instructions keep their bits. And the choice:
 * nobody has it unasked, and a wrong ISOBIT_NUMERICS is refused.
 *
 * test_b16 native has what needs a CPU with such instructions, and exits with 77 where there are
 * none.
 */
#include "few_bits.h"

#include <float.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_native(const iso_context *way) {
    return strncmp(iso_numerics(way->isa), "native (", 8) == 0;
}

/* ---------------------------------------------------------------------------- the definition */

/* The nearest number of 8 digits, of two the even one; a subnormal one is 0. */
static float rounded(float x) {
    int exponent;
    if (x == 0 || !isfinite(x))
        return x;
    frexp((double)x, &exponent);
    const double y = ldexp(rint(ldexp((double)x, 8 - exponent)), exponent - 8);
    return fabs(y) < 0x1p-126 ? 0 : (float)y;
}
static float widened(uint16_t half) {
    const uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Weights [n][k], packed. */
struct matrix {
    size_t n, k;
    uint16_t *w;
    iso_packed_w16 packed;
};

static struct matrix make(size_t n, size_t k) {
    struct matrix m = {.n = n, .k = k, .w = halves(n * k)};
    size_t bytes;
    for (size_t i = 0; i < n * k; i++) {
        const float x = rounded((float)(int32_t)(draw() % 20001 - 10000) * 1e-4f);
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        m.w[i] = (uint16_t)(bits >> 16);
    }
    assert_ok(iso_pack_w16_bytes(&bytes, n, k));
    void *to = guarded(bytes);
    assert_ok(iso_pack_w16(&m.packed, to, bytes, m.w, k, n, k, 0, ISOBIT_BF16, NULL));
    return m;
}

/* Is y what the header says it is, of m rows of x? */
static void check_bound(const float *y, size_t ldy, const float *x, size_t ldx,
                        const struct matrix *w, size_t m, const float *bias) {
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < w->n; j++) {
            double sum = bias ? (double)bias[j] : 0, magnitude = fabs(sum), exact = sum, all = 0;
            for (size_t p = 0; p < w->k; p++) {
                const double b = (double)widened(w->w[j * w->k + p]);
                const double a = (double)x[i * ldx + p], near = (double)rounded((float)a);
                sum += near * b, magnitude += fabs(near * b);
                exact += a * b, all += fabs(a * b);
            }
            const double got = (double)y[i * ldy + j];
            const double bound =
                ldexp((double)(w->k + 6) * magnitude, -24) + ldexp((double)(2 * w->k + 6), -126);
            if (!(fabs(got - sum) <= bound))
                fail_msg("[%zu][%zu] is %a, should be %a, %g times the bound", i, j, got, sum,
                         fabs(got - sum) / bound);
            assert_true(fabs(got - exact) <= bound + ldexp(all, -8));
        }
}

static const size_t shapes[][3] = {{1, 1, 1},      {1, 16, 8},      {2, 32, 33},   {3, 17, 34},
                                   {6, 130, 64},   {7, 64, 40},     {13, 65, 71},  {25, 200, 31},
                                   {8, 300, 513},  {33, 164, 1025}, {130, 97, 20}, {140, 600, 520},
                                   {300, 33, 700}, {12, 1000, 1536}};

static bool too_long(size_t i) {
    return getenv("ISOBIT_EMULATED") && shapes[i][0] * shapes[i][1] * shapes[i][2] > 1500000;
}

/* ------------------------------------------------------------------------------ native numerics */

static void results_are_within_the_bound(void **unused) {
    (void)unused;
    assert_ok(iso_set_numerics("native"));
    for (size_t i = 0; i < COUNT(shapes); i++) {
        if (too_long(i))
            continue;
        const size_t m = shapes[i][0], n = shapes[i][1], k = shapes[i][2];
        const struct matrix w = make(n, k);
        float *x = random_floats(m * (k + 1)), *bias = random_floats(n), *y = floats(m * n);
        const iso_linear_options o = {.size = sizeof o, .bias = bias};
        for (size_t v = 0; v < set_count; v++)
            if (is_native(&ways[v])) {
                assert_ok(iso_linear_w16(y, n, x, k + 1, &w.packed, m, NULL, &ways[v]));
                check_bound(y, n, x, k + 1, &w, m, NULL);
                assert_ok(iso_linear_w16(y, n, x, k + 1, &w.packed, m, &o, &ways[v]));
                check_bound(y, n, x, k + 1, &w, m, bias);
            }
        release();
    }
}

/* Each way, with gaps between rows, with the residual in y, in part, and in a workspace, which must
 * not be too small. */
static void bits_do_not_depend_on_the_batch(void **unused) {
    (void)unused;
    assert_ok(iso_set_numerics("native"));
    for (size_t i = 0; i < COUNT(shapes); i++) {
        if (too_long(i))
            continue;
        const size_t m = shapes[i][0], n = shapes[i][1], k = shapes[i][2], ldy = n + 2;
        const struct matrix w = make(n, k);
        float *x = random_floats(m * (k + 1)), *bias = random_floats(n);
        float *r = random_floats(m * n), *expect = floats(m * n), *y = floats(m * ldy);
        for (size_t s = 0; s < set_count; s++) {
            if (!is_native(&ways[s]))
                continue;
            iso_linear_options o = {.size = sizeof o, .bias = bias, .act = ISOBIT_ACT_RELU};
            for (size_t row = 0; row < m; row++) { /* row by row */
                o.residual = r + row * n, o.ldr = n;
                assert_ok(iso_linear_w16(expect + row * n, n, x + row * (k + 1), k + 1, &w.packed,
                                         1, &o, &ways[s]));
            }
            for (size_t v = s; v < way_count; v += set_count) { /* on 1, 2, 3, 16 threads */
                for (size_t e = 0; e < m * ldy; e++)
                    y[e] = 123;
                o.residual = r, o.ldr = n;
                assert_ok(iso_linear_w16(y, ldy, x, k + 1, &w.packed, m, &o, &ways[v]));
                assert_true(same(y, ldy, expect, n, m, n));
                for (size_t e = 0; e < m; e++)
                    assert_true(y[e * ldy + n] == 123 && y[e * ldy + n + 1] == 123);
                for (size_t row = 0; row < m; row++)
                    memcpy(y + row * ldy, r + row * n, n * sizeof *y);
                o.residual = y, o.ldr = ldy;
                assert_ok(iso_linear_w16(y, ldy, x, k + 1, &w.packed, m, &o, &ways[v]));
                assert_true(same(y, ldy, expect, n, m, n));
                iso_context in = ways[v];
                size_t bytes;
                assert_ok(iso_linear_w16_workspace_bytes(&bytes, &w.packed, m, &in));
                assert_true(bytes > 0);
                in.workspace = guarded(bytes + 1), in.workspace_bytes = bytes;
                const size_t part = m / 2;
                o.residual = r + part * n, o.ldr = n;
                assert_ok(iso_linear_w16(y, ldy, x + part * (k + 1), k + 1, &w.packed, m - part, &o,
                                         &in));
                assert_true(same(y, ldy, expect + part * n, n, m - part, n));
                o.residual = r;
                assert_ok(iso_linear_w16(y, ldy, x, k + 1, &w.packed, m, &o, &in));
                assert_true(same(y, ldy, expect, n, m, n));
                in.workspace_bytes = bytes - 1;
                REFUSED(WORKSPACE, iso_linear_w16(y, ldy, x, k + 1, &w.packed, m, &o, &in));
                release_one();
            }
        }
        release();
    }
}

/* All heights around those of the tiles, with rows of any other content. */
static void bits_do_not_depend_on_other_rows(void **unused) {
    (void)unused;
    enum { M = 150, N = 70, K = 45 };
    assert_ok(iso_set_numerics("native"));
    const struct matrix w = make(N, K);
    float *x = random_floats(M * K), *y = floats(M * N), *expect = floats(N);
    for (size_t s = 0; s < set_count; s++) {
        if (!is_native(&ways[s]))
            continue;
        assert_ok(iso_linear_w16(expect, N, x, K, &w.packed, 1, NULL, &ways[s]));
        for (size_t m = 1; m <= M; m++) {
            const size_t row = draw() % m;
            float *other = floats(m * K);
            for (size_t e = 0; e < m * K; e++)
                other[e] = e % 7 == 0 ? NAN : x[(e + m) % (M * K)];
            memcpy(other + row * K, x, K * sizeof *x);
            assert_ok(iso_linear_w16(y, N, other, K, &w.packed, m, NULL, &ways[s]));
            assert_true(same(y + row * N, N, expect, N, 1, N));
            release_one();
        }
    }
    release();
}

/* NaN and infinities of x and of the weights, in a row, a column; subnormal numbers count as 0. */
static void special_numbers_are_defined(void **unused) {
    (void)unused;
    enum { M = 5, N = 40, K = 37 };
    assert_ok(iso_set_numerics("native"));
    struct matrix w = make(N, K);
    size_t bytes;
    float *x = random_floats(M * K), *y = floats(M * N), *tiny = floats(K);
    x[K + 3] = NAN, x[2 * K + 36] = INFINITY, x[3 * K] = -0.0f;
    for (size_t p = 0; p < K; p++)
        tiny[p] = p % 2 ? 1e-40f : -3e-39f;
    w.w[7 * K + 2] = 0x7fc0, w.w[33 * K + 5] = 0xff80;
    assert_ok(iso_pack_w16_bytes(&bytes, N, K));
    iso_packed_w16 packed;
    assert_ok(iso_pack_w16(&packed, guarded(bytes), bytes, w.w, K, N, K, 0, ISOBIT_BF16, NULL));
    for (size_t s = 0; s < set_count; s++) {
        if (!is_native(&ways[s]))
            continue;
        assert_ok(iso_linear_w16(y, N, x, K, &packed, M, NULL, &ways[s]));
        for (size_t i = 0; i < M; i++)
            for (size_t j = 0; j < N; j++) {
                double sum = 0;
                for (size_t p = 0; p < K; p++)
                    sum += (double)rounded(x[i * K + p]) * (double)widened(w.w[j * K + p]);
                if (isnan(sum))
                    assert_true(isnan(y[i * N + j]));
                else if (isinf(sum))
                    assert_true((double)y[i * N + j] == sum);
                else
                    assert_true(fabs((double)y[i * N + j] - sum) < 1e-4);
            }
        assert_ok(iso_linear_w16(y, N, tiny, K, &packed, 1, NULL, &ways[s]));
        for (size_t j = 0; j < N; j++)
            assert_true(j == 7 || j == 33 ? isnan(y[j]) : fabsf(y[j]) <= K * 0x1p-126f);
    }
    release();
}

/* Of such weights alone: those of F16 and f32 keep their bits. */
static void nothing_else_changes(void **unused) {
    (void)unused;
    enum { M = 20, N = 70, K = 130 };
    const struct matrix w = make(N, K);
    size_t bytes, bytes16;
    float *wide = floats(N * K), *x = random_floats(M * K), *y = floats(M * N);
    float *expect = floats(M * N);
    iso_packed_w16 half;
    iso_packed whole;
    for (size_t i = 0; i < N * K; i++)
        wide[i] = widened(w.w[i]);
    assert_ok(iso_pack_f32_bytes(&bytes, N, K));
    assert_ok(iso_pack_w16_bytes(&bytes16, N, K));
    assert_ok(iso_pack_f32(&whole, guarded(bytes), bytes, wide, K, N, K, 0, NULL));
    assert_ok(iso_pack_w16(&half, guarded(bytes16), bytes16, w.w, K, N, K, 0, ISOBIT_F16, NULL));
    for (size_t v = 0; v < way_count; v++) {
        assert_ok(iso_set_numerics("fixed"));
        assert_ok(iso_linear_w16(expect, N, x, K, &half, M, NULL, &ways[v]));
        assert_ok(iso_set_numerics("native"));
        assert_ok(iso_linear_w16(y, N, x, K, &half, M, NULL, &ways[v]));
        assert_true(same(y, N, expect, N, M, N));
        assert_ok(iso_set_numerics("fixed"));
        assert_ok(iso_linear_f32(expect, N, x, K, &whole, M, NULL, &ways[v]));
        assert_ok(iso_linear_w16(y, N, x, K, &w.packed, M, NULL, &ways[v]));
        assert_true(same(y, N, expect, N, M, N)); /* the fixed bits */
        assert_ok(iso_set_numerics("native"));
        assert_ok(iso_linear_f32(y, N, x, K, &whole, M, NULL, &ways[v]));
        assert_true(same(y, N, expect, N, M, N));
        assert_ok(iso_linear_w16(y, N, x, K, &w.packed, M, NULL, &ways[v]));
        bool moved = false;
        for (size_t e = 0; e < (size_t)M * N; e++)
            moved |= y[e] != expect[e];
        assert_int_equal(moved, is_native(&ways[v])); /* without the instructions the fixed bits */
    }
    release();
}

/* ------------------------------------------------------------------------------------ the choice
 */

static void names_are_checked(void **unused) {
    (void)unused;
    static const char *const wrong[] = {"", "Native", "native ", "fix", "2", "fixed,native"};
    char version[16];
    (void)snprintf(version, sizeof version, "%d", ISOBIT_NUMERICS_VERSION);
    unsetenv("ISOBIT_NUMERICS");
    assert_ok(iso_set_numerics(NULL));
    for (size_t v = 0; v < set_count; v++)
        assert_string_equal(iso_numerics(ways[v].isa), version);
    assert_string_equal(iso_numerics(NULL), version);
    for (size_t i = 0; i < COUNT(wrong); i++)
        REFUSED(OPTION, iso_set_numerics(wrong[i]));
    assert_string_equal(iso_numerics(NULL), version);
    setenv("ISOBIT_NUMERICS", "native", 1); /* is read by iso_set_numerics(NULL) alone */
    assert_string_equal(iso_numerics(NULL), version);
    assert_ok(iso_set_numerics(NULL));
    for (size_t v = 0; v < set_count; v++) {
        const char *says = iso_numerics(ways[v].isa), *name = iso_isa_name(ways[v].isa);
        char native[64];
        (void)snprintf(native, sizeof native, "native (%s)", name);
        if (strstr(name, "_amx")) /* or the level below, where the system refuses tiles */
            assert_true(!strcmp(says, native) || !strcmp(says, "native (avx512_bf16)"));
        else
            assert_string_equal(says, strstr(name, "_bf16") ? native : version);
    }
    REFUSED(OPTION, iso_set_numerics("scalar")); /* leaves it */
    setenv("ISOBIT_NUMERICS", "nativ", 1);
    REFUSED(OPTION, iso_set_numerics(NULL));
    assert_non_null(iso_numerics(NULL));
    setenv("ISOBIT_NUMERICS", "", 1); /* counts as not set */
    assert_ok(iso_set_numerics(NULL));
    assert_string_equal(iso_numerics(NULL), version);
    unsetenv("ISOBIT_NUMERICS");
}

/* In a child, as the first use of the library. */
static int refuses(const char *env) {
    static const uint16_t w[3] = {0x3f80, 0x3f80, 0x3f80};
    static uint16_t room[3 * 32] __attribute__((aligned(64)));
    const float x[3] = {1, 2, 3};
    float y[1] = {5};
    iso_packed_w16 bf16, f16;
    size_t bytes = 7;
    setenv("ISOBIT_NUMERICS", env, 1);
    if (iso_pack_w16(&bf16, room, sizeof room, w, 3, 1, 3, 0, ISOBIT_BF16, NULL))
        return 1;
    f16 = bf16, f16.type = ISOBIT_F16;
    if (iso_linear_w16(y, 1, x, 3, &bf16, 1, NULL, NULL) != ISOBIT_E_OPTION || y[0] != 5)
        return 2;
    if (iso_linear_w16_workspace_bytes(&bytes, &bf16, 1, NULL) != ISOBIT_E_OPTION || bytes != 7)
        return 3;
    if (iso_numerics(NULL))
        return 4;
    if (iso_linear_w16(y, 1, x, 3, &f16, 1, NULL, NULL)) /* does not ask */
        return 5;
    if (iso_set_numerics(NULL) != ISOBIT_E_OPTION || iso_numerics(NULL))
        return 6;
    if (iso_set_numerics("fixed") || !iso_numerics(NULL) ||
        iso_linear_w16(y, 1, x, 3, &bf16, 1, NULL, NULL) || y[0] != 6)
        return 7;
    return 0;
}

static int in_child(const char *env) {
    const pid_t child = fork();
    if (child == 0)
        _exit(refuses(env));
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)
               ? WEXITSTATUS(status)
               : 255;
}
static int first_use[2];

static void a_wrong_variable_is_refused(void **unused) {
    (void)unused;
    assert_int_equal(first_use[0], 0);
    assert_int_equal(first_use[1], 0);
}

static int leave_fixed(void **unused) {
    iso_set_numerics("fixed");
    return drop_ways(unused);
}

int main(int argc, char **argv) {
    const struct CMUnitTest choice[] = {
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(a_wrong_variable_is_refused),
        cmocka_unit_test(nothing_else_changes),
    };
    const struct CMUnitTest native[] = {
        cmocka_unit_test(results_are_within_the_bound),
        cmocka_unit_test(bits_do_not_depend_on_the_batch),
        cmocka_unit_test(bits_do_not_depend_on_other_rows),
        cmocka_unit_test(special_numbers_are_defined),
    };
    if (argc < 2) {
        first_use[0] = in_child("nativ"), first_use[1] = in_child("NATIVE");
        return cmocka_run_group_tests(choice, make_ways_with_levels, leave_fixed);
    }
    bool any = false;
    (void)argv;
    iso_set_numerics("native");
    for (size_t i = 0; i < iso_isa_count(); i++)
        any |= !iso_isa_missing(iso_isa_get(i)) &&
               strncmp(iso_numerics(iso_isa_get(i)), "native (", 8) == 0;
    if (!any) {
        puts("SKIPPED: native numerics: this CPU has no products of BF16");
        return 77;
    }
    return cmocka_run_group_tests(native, make_ways_with_levels, leave_fixed);
}
