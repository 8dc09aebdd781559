/* SPDX-License-Identifier: MIT
 *
 * The oracle itself, against other formulas in long double: its own error has to be so small beside
 * the bounds that it decides nothing. Sums run over millions of results elsewhere; here a few
 * thousand points are enough, since double precision has no tails to forget.
 */
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h> /* cmocka wants them before itself */
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <isobit/ops.h>

#include "kernels.h"
#include "oracle_kernels.h"

/* How much of a bound the oracle may use up itself. */
#define SHARE 0x1p-20L

static uint64_t state = 1;

static uint32_t random_bits(void) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 32);
}

/* -1 .. 1 */
static float random_float(void) { return (float)(int32_t)random_bits() * 0x1p-31f; }

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void compare(const char *what, size_t i, double got, long double want, double bound) {
    long double error = fabsl((long double)got - want);
    /* results that must be equal to the bit have no bound to take a share of */
    long double most = bound > ORACLE_EQUAL ? SHARE * (long double)bound : 0x1p-50L * fabsl(want);
    if (isnan(want) ? !isnan(got) : isinf(want) ? (long double)got != want : !(error <= most))
        fail_msg("%s, %zu: %a instead of %La, an error of %Lg times the bound", what, i, got, want,
                 error / (long double)bound);
}

/* ----------------------------------------------------------------------------------- functions */

/* x times the logistic function of y, by formulas that the oracle does not use. */
static long double logistic_times(long double x, long double y) {
    if (y > 0)
        return x - x / (1 + expl(y));
    return x * (expl(y) / (1 + expl(y)));
}

static long double function_of(long double x, int function) {
    const long double root = sqrtl(2 / acosl(-1.0L));
    switch (function) {
    case ISOBIT_ACT_NONE: return x;
    case ISOBIT_ACT_RELU: return fmaxl(x, 0);
    case ISOBIT_ACT_SILU: return logistic_times(x, x);
    case ISOBIT_ACT_GELU_ERF:
        return x > 0 ? 0.5L * x * (1 + erfl(x / sqrtl(2))) : 0.5L * x * erfcl(-x / sqrtl(2));
    case ISOBIT_ACT_GELU_TANH:
        return x > 0 ? 0.5L * x * (1 + tanhl(root * (x + 0.044715L * x * x * x)))
                     : logistic_times(x, 2 * root * (x + 0.044715L * x * x * x));
    case ISOBIT_ACT_TANH: return tanhl(x);
    case ISO_UNARY_EXP: return expl(x);
    default: return erfl(x);
    }
}

static void functions(void **unused) {
    (void)unused;
    static const int all[] = {ISOBIT_ACT_NONE,     ISOBIT_ACT_RELU,      ISOBIT_ACT_SILU,
                              ISOBIT_ACT_GELU_ERF, ISOBIT_ACT_GELU_TANH, ISOBIT_ACT_TANH,
                              ISO_UNARY_EXP,       ISO_UNARY_ERF};
    static const char *const names[] = {"none",      "relu", "silu", "gelu-erf",
                                        "gelu-tanh", "tanh", "exp",  "erf"};
    for (size_t f = 0; f < sizeof all / sizeof *all; f++) {
        for (size_t i = 0; i < 30000; i++) {
            float x = float_of(random_bits());
            if (i % 3)
                x = random_float() * (i % 3 == 1 ? 4.0f : 110.0f);
            if (!isfinite(x))
                continue;
            double got = iso_oracle_function((double)x, all[f]);
            double bound = iso_oracle_function_bound((double)x, all[f]);
            long double want = function_of((long double)x, all[f]);
            if (fabsl(want) > 0x1.fffffep127L) /* infinite for a float; so is the bound's share */
                assert_true(fabs(got) > ORACLE_FLT_MAX);
            else
                compare(names[f], i, got, want, bound);
        }
    }
}

/* -------------------------------------------------------------------------------- sums of products
 */

/* act(a) b in long double; and whether act(a) rounded one way or the other stays within the bound.
 */
static void gates(void **unused) {
    (void)unused;
    for (size_t i = 0; i < 3000; i++) {
        const int act = (int)(i % (ISOBIT_ACT_TANH + 1));
        const double a = 20 * (double)random_float(), b = 3 * (double)random_float();
        double bound;
        const double got = iso_oracle_gate(&bound, a, b, act);
        const long double f = function_of(a, act), want = f * (long double)b;
        compare("gate", i, got, want, bound);
        const double error = act > ISOBIT_ACT_RELU ? iso_oracle_function_bound(a, act) : 0;
        for (int side = -1; side <= 1; side += 2) {
            const double rounded = (double)(float)(((double)f + side * error) * b);
            if (!(fabs(rounded - got) <= bound * (1 + 0x1p-20)))
                fail_msg("gate, %zu: %a is farther than %a from %a", i, rounded, bound, got);
        }
    }
}

static void products(void **unused) {
    (void)unused;
    enum { K = 2048 };
    static float a[K], b[K];
    for (size_t round = 0; round < 200; round++) {
        size_t k = round < 5 ? round : 1 + random_bits() % K;
        for (size_t p = 0; p < k; p++) { /* half of them cancel */
            a[p] = p % 2 && round % 2 ? -a[p - 1] : random_float();
            b[p] = p % 2 && round % 2 ? b[p - 1] + 0x1p-20f : random_float();
        }
        long double sum = 0, magnitude = 0;
        for (size_t p = k; p > 0; p--) { /* the other way round */
            sum += (long double)a[p - 1] * (long double)b[p - 1];
            magnitude += fabsl((long double)a[p - 1] * (long double)b[p - 1]);
        }
        double got, got_magnitude;
        iso_oracle_dot(&got, &got_magnitude, a, 1, b, 1, k);
        compare("dot", round, got, sum, iso_oracle_sum_bound(got_magnitude, 1, (double)k));
        compare("magnitude", round, got_magnitude, magnitude, got_magnitude * ORACLE_U);
        /* the canonical orders keep the bound that is claimed for them */
        assert_true(
            fabs((double)iso_oracle_gemm_chain(a, 1, b, 1, k, ISO_K_BLOCK) - got) <=
            iso_oracle_sum_bound(got_magnitude, iso_oracle_gemm_depth(k, ISO_K_BLOCK), (double)k));
        assert_true(fabs((double)iso_oracle_lanes(a, 1, b, 1, k) - got) <=
                    iso_oracle_sum_bound(got_magnitude, (double)((k + 31) / 32) + 5, (double)k));
    }
}

/* ---------------------------------------------------------------------------------------- rows */

enum { N = 600 };
static float row[N], gamma_row[N], beta_row[N];
static double value[N], bound_of[N];

/* A row of one of several kinds; returns how long it is. */
static size_t fill_row(size_t round) {
    size_t n = 1 + random_bits() % N;
    for (size_t i = 0; i < n; i++) {
        float x = random_float();
        row[i] = round % 5 == 0   ? x
                 : round % 5 == 1 ? 100 * x
                 : round % 5 == 2 ? 1e6f + x
                 : round % 5 == 3 ? (float)i * -0.375f
                                  : 1024 + 0x1p-10f * x;
        gamma_row[i] = random_float();
        beta_row[i] = random_float();
    }
    return n;
}

static void softmax_rows(void **unused) {
    (void)unused;
    for (size_t round = 0; round < 400; round++) {
        size_t n = fill_row(round);
        long double max = (long double)row[0], sum = 0;
        for (size_t i = 0; i < n; i++)
            max = fmaxl(max, (long double)row[i]);
        for (size_t i = 0; i < n; i++)
            sum += expl((long double)row[i] - max);
        for (int log_form = 0; log_form < 2; log_form++) {
            iso_oracle_softmax(value, bound_of, row, n, n, NULL, log_form, 0, ISO_LANES);
            for (size_t i = 0; i < n; i++) {
                long double d = (long double)row[i] - max;
                compare(log_form ? "log-softmax" : "softmax", i, value[i],
                        log_form ? d - logl(sum) : expl(d - logl(sum)), bound_of[i]);
            }
        }
    }
}

static void norm_rows(void **unused) {
    (void)unused;
    for (size_t round = 0; round < 400; round++) {
        size_t n = fill_row(round);
        const float eps = round % 2 ? 1e-5f : 1e-12f;
        long double sum = 0, squares = 0, spread = 0;
        for (size_t i = 0; i < n; i++) {
            sum += (long double)row[i];
            squares += (long double)row[i] * (long double)row[i];
        }
        long double mean = sum / (long double)n;
        for (size_t i = 0; i < n; i++)
            spread += ((long double)row[i] - mean) * ((long double)row[i] - mean);
        long double r = 1 / sqrtl(spread / (long double)n + (long double)eps);
        iso_oracle_layernorm(value, bound_of, row, n, gamma_row, beta_row, eps, ISO_LANES);
        for (size_t i = 0; i < n; i++) {
            long double y = (long double)gamma_row[i] * ((long double)row[i] - mean) * r;
            compare("layernorm", i, value[i], y + (long double)beta_row[i], bound_of[i]);
        }
        r = 1 / sqrtl(squares / (long double)n + (long double)eps);
        iso_oracle_rmsnorm(value, bound_of, row, n, gamma_row, eps, ISO_LANES);
        for (size_t i = 0; i < n; i++)
            compare("rmsnorm", i, value[i], (long double)gamma_row[i] * ((long double)row[i] * r),
                    bound_of[i]);
    }
}

/* ----------------------------------------------------------------------------------- attention */

static void attention_rows(void **unused) {
    (void)unused;
    enum { MOST = 200, WIDTH = 40 };
    static float q[WIDTH], k[MOST * WIDTH], v[MOST * WIDTH], bias[MOST];
    static double o[WIDTH], ob[WIDTH], w[MOST], wb[MOST];
    static long double p[MOST];
    for (size_t round = 0; round < 200; round++) {
        size_t nk = 1 + random_bits() % MOST, dh = 1 + random_bits() % WIDTH;
        for (size_t c = 0; c < dh; c++)
            q[c] = 4 * random_float();
        for (size_t i = 0; i < nk * dh; i++)
            k[i] = random_float(), v[i] = random_float();
        for (size_t j = 0; j < nk; j++)
            bias[j] = j && j % 5 == 3 ? -INFINITY : random_float();
        struct iso_oracle_attention a = {.q = q,
                                         .k = k,
                                         .ksj = dh,
                                         .ksc = 1,
                                         .v = v,
                                         .ldv = dh,
                                         .nk = nk,
                                         .dh = dh,
                                         .scale = 0.375,
                                         .softcap = round % 3 ? 0 : 2.5,
                                         .bias = round % 2 ? bias : NULL,
                                         .lanes = ISO_LANES,
                                         .key_block = ISO_KEY_BLOCK};
        iso_oracle_attention(o, ob, w, wb, &a);
        long double sum = 0;
        for (size_t j = 0; j < nk; j++) {
            long double s = 0;
            for (size_t c = 0; c < dh; c++)
                s += (long double)q[c] * (long double)k[j * dh + c];
            s *= 0.375L;
            if (a.softcap > 0) { /* by another formula */
                const long double e = expl(2 * s / 2.5L);
                s = 2.5L * (e - 1) / (e + 1);
            }
            p[j] = expl(s + (a.bias ? (long double)bias[j] : 0));
            sum += p[j];
        }
        for (size_t j = 0; j < nk; j++)
            compare("weights", j, w[j], p[j] / sum, wb[j]);
        for (size_t c = 0; c < dh; c++) {
            long double y = 0;
            for (size_t j = 0; j < nk; j++)
                y += p[j] / sum * (long double)v[j * dh + c];
            compare("attention", c, o[c], y, ob[c]);
        }
    }
}

/* ----------------------------------------------------------------------------------- positions */

/* cos and sin of t f from those of f, by repeated squaring: no large angle occurs. */
static void positions(void **unused) {
    (void)unused;
    static const size_t times[] = {0, 1, 2, 5, 100, 4095, 65537, (1 << 20) - 1};
    for (size_t d = 2; d <= 64; d += 2) {
        for (size_t c = 0; c < d; c++) {
            long double f = powl(10000.0L, -(long double)(c / 2 * 2) / (long double)d);
            for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
                long double x = 1, y = 0, bx = cosl(f), by = sinl(f);
                for (size_t t = times[i]; t; t /= 2) {
                    if (t % 2) {
                        long double turned = x * bx - y * by;
                        y = x * by + y * bx, x = turned;
                    }
                    long double twice = bx * bx - by * by;
                    by = 2 * bx * by, bx = twice;
                }
                double bound,
                    got = iso_oracle_position(&bound, times[i], c, d, ISOBIT_POS_INTERLEAVED);
                /* got is a double; the errors of the doubling grow with t, and a long double may be
                 * one too */
                long double error = fabsl((long double)got - (c % 2 ? x : y));
                if (!(error <= 0x1p-53L + 4 * LDBL_EPSILON * (long double)(times[i] + 1)))
                    fail_msg("position %zu, column %zu of %zu: off by %Lg", times[i], c, d, error);
            }
        }
    }
}

/* Turned pairs as complex numbers; entries of the table from those of small angles, doubled. */
static void rotary(void **unused) {
    (void)unused;
    for (size_t i = 0; i < 3000; i++) {
        const float a = random_float(), b = 3 * random_float(), c = random_float();
        const float s = random_float();
        long double turned[2] = {0, 0}; /* (a + ib)(c + is) */
        turned[0] = (long double)a * (long double)c - (long double)b * (long double)s;
        turned[1] = (long double)b * (long double)c + (long double)a * (long double)s;
        for (int second = 0; second < 2; second++) {
            float exact;
            double bound;
            const double got = iso_oracle_rope(&bound, &exact, a, b, c, s, second);
            compare("rope", i, got, turned[second], bound);
            assert_true(fabs((double)exact - got) <= bound);
        }
    }
    static const size_t times[] = {0, 1, 2, 5, 100, 4095, 65537, (1 << 20) - 1};
    for (size_t i = 0; i < 400; i++) {
        const float f = (float)pow(10000, -(double)(i / 8) / 50), scaling = i % 3 ? 1 : 1.0693147f;
        long double x = 1, y = 0, bx = cosl((long double)f), by = sinl((long double)f);
        for (size_t t = times[i % 8]; t; t /= 2) {
            if (t % 2) {
                const long double next = x * bx - y * by;
                y = x * by + y * bx, x = next;
            }
            const long double twice = bx * bx - by * by;
            by = 2 * bx * by, bx = twice;
        }
        for (int sine = 0; sine < 2; sine++) {
            double bound;
            const double got = iso_oracle_rope_table(&bound, times[i % 8], f, sine, scaling);
            const long double want = (long double)scaling * (sine ? y : x);
            assert_true(fabsl((long double)got - want) <=
                        0x1p-52L + 8 * LDBL_EPSILON * (long double)(times[i % 8] + 1));
            assert_true(bound >= 0.5 * iso_oracle_ulp(got) && bound < 0.51 * iso_oracle_ulp(got));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions), cmocka_unit_test(gates),
        cmocka_unit_test(products),  cmocka_unit_test(softmax_rows),
        cmocka_unit_test(norm_rows), cmocka_unit_test(attention_rows),
        cmocka_unit_test(positions), cmocka_unit_test(rotary),
    };
    return cmocka_run_group_tests_name("oracle", tests, NULL, NULL);
}
