/* SPDX-License-Identifier: MIT
 *
 * Keys and values of 16 bits: rounding by definition, around every number that there is; layouts as
 * isobit/ops.h has them; attention has the bits of iso_attention_f32 on the widened keys and
 * values, with every set and number of threads, step by step as at once; what is refused.
 */
#include "few_bits.h"

static uint32_t bits_of(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

/* ------------------------------------------------------------------------------------- numbers */

static int infinity_of(iso_w16 type) { return type == ISOBIT_BF16 ? 0x7f80 : 0x7c00; }

/* A number by definition; what an infinity would be if it were one. */
static double value_of(int half, iso_w16 type) {
    const int bits = type == ISOBIT_BF16 ? 7 : 10, bias = type == ISOBIT_BF16 ? 127 : 15;
    const int exponent = half >> bits, fraction = half & ((1 << bits) - 1);
    return ldexp(exponent ? fraction + (1 << bits) : fraction,
                 (exponent ? exponent : 1) - bias - bits);
}

static float float_of(int half, iso_w16 type) {
    return half == infinity_of(type) ? INFINITY : (float)value_of(half, type);
}

/* What one number becomes: as a float, as a key, and as a value. */
static void becomes(float x, int half, iso_w16 type) {
    for (int sign = 0; sign < 2; sign++) {
        const float from = sign ? -x : x, wanted = float_of(half, type);
        const uint16_t bits = (uint16_t)(half | sign << 15);
        uint16_t key[32], value[32];
        float y;
        assert_ok(iso_round_w16(&y, 1, &from, 1, 1, 1, type, NULL));
        if (bits_of(y) != bits_of(sign ? -wanted : wanted))
            fail_msg("type %d: %a becomes %a, not %a", (int)type, (double)from, (double)y,
                     (double)wanted);
        assert_ok(iso_keys_w16_append(key, 0, &from, 1, 1, 1, type, NULL));
        assert_ok(iso_values_w16_append(value, 0, &from, 1, 1, 1, type, NULL));
        assert_int_equal(key[0], bits);
        assert_int_equal(value[0], bits);
    }
}

/* Every number, what is half-way to the next one, and the floats beside that. */
static void rounding_is_to_the_nearest(void **unused) {
    (void)unused;
    for (int t = 0; t < 2; t++) {
        const iso_w16 type = (iso_w16)t;
        for (int half = 0; half < infinity_of(type); half++) {
            const double here = value_of(half, type), next = value_of(half + 1, type);
            const float middle = (float)(here / 2 + next / 2);
            becomes((float)here, half, type);
            becomes(middle, half % 2 ? half + 1 : half, type);
            becomes(nextafterf(middle, 0), half, type);
            becomes(nextafterf(middle, INFINITY), half + 1, type);
        }
        becomes(INFINITY, infinity_of(type), type);
        becomes(0x1.fffffep127f, infinity_of(type), type);
        becomes(0x1p-149f, 0, type);
        for (uint32_t payload = 1; payload < 0x800000; payload += 4099) { /* NaNs stay, quiet */
            const uint32_t from = 0x7f800000 | payload | (payload & 64) << 25;
            const unsigned upper =
                type == ISOBIT_BF16 ? payload >> 16 | 0x40 : payload >> 13 | 0x200;
            float x, y;
            uint16_t key[32];
            memcpy(&x, &from, sizeof x);
            assert_ok(iso_round_w16(&y, 1, &x, 1, 1, 1, type, NULL));
            assert_true(isnan(y) && (bits_of(y) & 0x400000));
            assert_ok(iso_keys_w16_append(key, 0, &x, 1, 1, 1, type, NULL));
            assert_int_equal(key[0], (unsigned)infinity_of(type) | upper | (from >> 31) << 15);
        }
    }
}

/* --------------------------------------------------------------------------------------- layout */

static size_t place(size_t j, iso_w16 type) {
    return type == ISOBIT_BF16 ? j % 16 * 2 + j % 32 / 16 : j % 32;
}
static size_t row_of(size_t dh) { return (dh + 31) / 32 * 32; }
static size_t key_at(size_t j, size_t e, size_t dh, iso_w16 type) {
    return j / 32 * dh * 32 + e * 32 + place(j, type);
}
static size_t value_at(size_t j, size_t e, size_t dh, iso_w16 type) {
    return j * row_of(dh) + e / 32 * 32 + place(e, type);
}

static float widened(uint16_t half, iso_w16 type) {
    const int rest = half & 0x7fff;
    const float x = rest > infinity_of(type) ? NAN : float_of(rest, type);
    return half >> 15 ? -x : x;
}

static void layouts_are_as_written(void **unused) {
    (void)unused;
    static const size_t dhs[] = {1, 16, 31, 32, 33, 64, 80, 128};
    static const size_t pieces[][2] = {{0, 5}, {5, 1}, {6, 30}, {36, 40}, {3, 2}, {76, 0}};
    enum { CAPACITY = 76 };
    for (size_t d = 0; d < COUNT(dhs); d++)
        for (int t = 0; t < 2; t++) {
            const iso_w16 type = (iso_w16)t;
            const size_t dh = dhs[d], nk = iso_keys_w16_elements(CAPACITY, dh);
            const size_t nv = iso_values_w16_elements(CAPACITY, dh);
            assert_int_equal(nk, 96 * dh);
            assert_int_equal(nv, CAPACITY * row_of(dh));
            uint16_t *k = halves(nk), *v = halves(nv), *want_k = halves(nk), *want_v = halves(nv);
            for (size_t i = 0; i < nk; i++)
                k[i] = want_k[i] = (uint16_t)draw();
            for (size_t i = 0; i < nv; i++)
                v[i] = want_v[i] = (uint16_t)draw();
            for (size_t p = 0; p < COUNT(pieces); p++) {
                const size_t first = pieces[p][0], n = pieces[p][1], ld = dh + 3;
                float *x = random_floats(n * ld), *y = random_floats(n * ld);
                assert_ok(iso_keys_w16_append(k, first, x, ld, n, dh, type, NULL));
                assert_ok(iso_values_w16_append(v, first, y, ld, n, dh, type, NULL));
                for (size_t j = 0; j < n; j++)
                    for (size_t e = 0; e < row_of(dh); e++) {
                        uint16_t *value = &want_v[value_at(first + j, e, dh, type)];
                        *value = 0; /* beyond dh */
                        if (e >= dh)
                            continue;
                        /* which bits a number has the test of rounding knows */
                        uint16_t one[32];
                        assert_ok(iso_keys_w16_append(one, 0, x + j * ld + e, 1, 1, 1, type, NULL));
                        want_k[key_at(first + j, e, dh, type)] = one[0];
                        assert_ok(iso_keys_w16_append(one, 0, y + j * ld + e, 1, 1, 1, type, NULL));
                        *value = one[0];
                    }
                assert_memory_equal(k, want_k, nk * sizeof *k);
                assert_memory_equal(v, want_v, nv * sizeof *v);
            }
            release();
        }
}

/* ------------------------------------------------------------------------------------ attention */

/* Keys and values of B x H heads with room for `room` keys, and the same widened, row-major. */
struct heads {
    size_t k_head, v_head; /* elements of a head */
    uint16_t *k, *v;
    float *wide_k, *wide_v; /* [B][H][Sk][dh] */
};

static struct heads make_heads(size_t count, size_t Sk, size_t room, size_t dh, iso_w16 type,
                               int special) {
    struct heads x = {.k_head = iso_keys_w16_elements(room, dh),
                      .v_head = iso_values_w16_elements(room, dh) + 32};
    x.k = halves(count * x.k_head), x.v = halves(count * x.v_head);
    memset(x.k, 0x7f, count * x.k_head * sizeof *x.k); /* NaN */
    memset(x.v, 0x7f, count * x.v_head * sizeof *x.v);
    x.wide_k = random_floats(count * Sk * dh), x.wide_v = random_floats(count * Sk * dh);
    for (size_t i = 0; i < count * Sk * dh && special; i += 1 + draw() % (8 * dh)) {
        static const float all[] = {NAN, INFINITY, -INFINITY, 7e4f, 1e-7f, -0.0f};
        (draw() % 2 ? x.wide_k : x.wide_v)[i] = all[draw() % COUNT(all)];
    }
    for (size_t h = 0; h < count; h++) {
        float *k = x.wide_k + h * Sk * dh, *v = x.wide_v + h * Sk * dh;
        uint16_t *to_k = x.k + h * x.k_head, *to_v = x.v + h * x.v_head;
        assert_ok(iso_keys_w16_append(to_k, 0, k, dh, Sk, dh, type, NULL));
        assert_ok(iso_values_w16_append(to_v, 0, v, dh, Sk, dh, type, NULL));
        for (size_t j = 0; j < Sk; j++)
            for (size_t e = 0; e < dh; e++) {
                k[j * dh + e] = widened(to_k[key_at(j, e, dh, type)], type);
                v[j * dh + e] = widened(to_v[value_at(j, e, dh, type)], type);
            }
    }
    return x;
}

static void attention_has_the_bits_of_f32(void **unused) {
    (void)unused;
    static const size_t shapes[][5] = {/* B, H, Sq, Sk, dh */
                                       {1, 8, 1, 300, 64}, {2, 3, 1, 65, 32},  {3, 2, 4, 31, 80},
                                       {1, 2, 7, 200, 48}, {5, 2, 1, 1, 8},    {2, 2, 2, 129, 128},
                                       {1, 1, 70, 90, 33}, {1, 2, 130, 64, 5}, {32, 4, 1, 33, 64},
                                       {1, 2, 6, 1100, 64}};
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (unsigned of = 0; of < 16; of++) {
            const size_t B = shapes[i][0], H = shapes[i][1], Sq = shapes[i][2], Sk = shapes[i][3];
            const size_t dh = shapes[i][4], room = Sk + 40, ldo = H * dh + 2;
            const iso_w16 type = (iso_w16)(of % 2);
            if (slack && B * H * Sq * Sk * dh > 300000 && of > 3)
                continue;
            const struct heads x = make_heads(B * H, Sk, room, dh, type, of & 2);
            float *q = random_floats(B * Sq * H * dh), *bias = random_floats(H * Sq * Sk);
            float *expect = floats(B * Sq * ldo), *o = floats(B * Sq * ldo);
            float *weights = floats(B * H * Sq * Sk), *w16 = floats(B * H * Sq * Sk);
            size_t lengths[40];
            for (size_t b = 0; b < B; b++)
                lengths[b] = Sk - draw() % (Sk < 3 ? 1 : Sk / 3);
            iso_attention_shape s = {.B = B,
                                     .H = H,
                                     .Sq = Sq,
                                     .Sk = Sk,
                                     .dh = dh,
                                     .q = {Sq * H * dh, dh, H * dh},
                                     .k = {H * Sk * dh, Sk * dh, dh},
                                     .v = {H * Sk * dh, Sk * dh, dh},
                                     .o = {Sq * ldo, dh, ldo}};
            iso_attention_options p = {
                .size = sizeof p, .scale = 0.3f, .softcap = of % 5 == 2 ? 1.7f : 0};
            if (of & 4)
                p.causal = 1, p.past = Sk > Sq ? Sk - Sq : 0, p.window = of % 3 ? 0 : Sk / 2 + 1;
            else
                p.key_lengths = lengths;
            if (of & 8) {
                p.bias = bias, p.bias_strides = (iso_strides){0, Sq * Sk, Sk};
                p.weights = weights, p.weights_strides = (iso_strides){H * Sq * Sk, Sq * Sk, Sk};
            }
            assert_ok(iso_attention_f32(expect, q, x.wide_k, x.wide_v, &s, &p, &ways[0]));
            s.k = (iso_strides){H * x.k_head, x.k_head, 0};
            s.v = (iso_strides){H * x.v_head, x.v_head, row_of(dh)};
            if (p.weights)
                p.weights = w16;
            for (size_t w = 0; w < way_count; w++) {
                iso_context in = ways[w];
                size_t bytes;
                for (size_t e = 0; e < B * Sq * ldo; e++)
                    o[e] = 123;
                assert_ok(iso_attention_w16(o, q, x.k, x.v, type, &s, &p, &in));
                assert_true(same(o, ldo, expect, ldo, B * Sq, H * dh));
                for (size_t e = 0; e < B * Sq; e++) /* gaps are kept */
                    assert_true(o[e * ldo + H * dh] == 123 && o[e * ldo + H * dh + 1] == 123);
                if (p.weights)
                    assert_true(same(w16, Sk, weights, Sk, B * H * Sq, Sk));
                assert_ok(iso_attention_w16_workspace_bytes(&bytes, &s, &p, &in));
                in.workspace = guarded(bytes + slack), in.workspace_bytes = bytes;
                memset(o, 0, B * Sq * ldo * sizeof *o);
                assert_ok(iso_attention_w16(o, q, x.k, x.v, type, &s, &p, &in));
                assert_true(same(o, ldo, expect, ldo, B * Sq, H * dh));
                in.workspace_bytes = bytes - 1;
                assert_int_equal(iso_attention_w16(o, q, x.k, x.v, type, &s, &p, &in),
                                 ISOBIT_E_WORKSPACE);
                release_one(); /* the workspace */
            }
            release();
        }
}

/* A cache that grows key by key gives what f32 attention gives at once for rounded keys and values,
 * in rows of a projection. */
static void steps_are_as_at_once(void **unused) {
    (void)unused;
    enum { S = 140, H = 3, DH = 40, LD = 3 * H * DH };
    for (int t = 0; t < 2; t++)
        for (size_t w = 0; w < way_count; w++) {
            const iso_w16 type = (iso_w16)t;
            float *qkv = random_floats(S * LD), *at_once = floats(S * H * DH);
            float *o = floats(S * H * DH), *rounded = floats(S * LD);
            const size_t kh = iso_keys_w16_elements(S, DH), vh = iso_values_w16_elements(S, DH);
            uint16_t *k = halves(H * kh), *v = halves(H * vh);
            iso_attention_shape s = {
                1, H, S, S, DH, {0, DH, LD}, {0, DH, LD}, {0, DH, LD}, {0, DH, H * DH}};
            iso_attention_options p = {.size = sizeof p, .scale = 0.2f, .causal = 1};
            memcpy(rounded, qkv, S * LD * sizeof *qkv);
            assert_ok(iso_round_w16(rounded + H * DH, LD, rounded + H * DH, LD, S, 2 * H * DH, type,
                                    &ways[w]));
            assert_ok(iso_attention_f32(at_once, rounded, rounded + H * DH, rounded + 2 * H * DH,
                                        &s, &p, &ways[w]));
            s.Sq = 1, s.k = (iso_strides){0, kh, 0}, s.v = (iso_strides){0, vh, row_of(DH)};
            for (size_t at = 0; at < S; at++) {
                const float *row = qkv + at * LD;
                for (size_t h = 0; h < H; h++) {
                    assert_ok(iso_keys_w16_append(k + h * kh, at, row + (H + h) * DH, LD, 1, DH,
                                                  type, &ways[w]));
                    assert_ok(iso_values_w16_append(v + h * vh, at, row + (2 * H + h) * DH, LD, 1,
                                                    DH, type, &ways[w]));
                }
                s.Sk = at + 1, p.past = at;
                assert_ok(iso_attention_w16(o + at * H * DH, row, k, v, type, &s, &p, &ways[w]));
            }
            assert_true(same(o, H * DH, at_once, H * DH, S, H * DH));
            /* rounding is not nothing, and rows that lie apart are rounded as well */
            assert_memory_not_equal(rounded, qkv, S * LD * sizeof *qkv);
            for (size_t i = 0; i < S; i++)
                assert_memory_equal(rounded + i * LD, qkv + i * LD, H * DH * sizeof *qkv);
            release();
        }
}

/* Rounding by all threads is rounding by one. */
static void threads_round_alike(void **unused) {
    (void)unused;
    enum { ROWS = 301, N = 200 };
    for (int t = 0; t < 2; t++) {
        float *x = random_floats(ROWS * N), *expect = floats(ROWS * N), *y = floats(ROWS * (N + 5));
        assert_ok(iso_round_w16(expect, N, x, N, ROWS, N, (iso_w16)t, NULL));
        for (size_t w = 0; w < way_count; w++) {
            for (size_t i = 0; i < ROWS * (N + 5); i++)
                y[i] = 123;
            assert_ok(iso_round_w16(y, N + 5, x, N, ROWS, N, (iso_w16)t, &ways[w]));
            assert_true(same(y, N + 5, expect, N, ROWS, N));
            for (size_t i = 0; i < ROWS; i++)
                assert_true(y[i * (N + 5) + N] == 123 && y[i * (N + 5) + N + 4] == 123);
        }
        release();
    }
}

static void wrong_arguments_are_refused(void **unused) {
    (void)unused;
    enum { SK = 40, DH = 5, SQ = 2 };
    static uint16_t k[64 * DH], v[SK * 32];
    static float q[SQ * DH], o[SQ * DH], weights[SQ * SK], x[SK * DH];
    iso_attention_shape s = {1, 1, SQ, SK, DH, {0, 0, DH}, {0, 0, 0}, {0, 0, 32}, {0, 0, DH}};
    iso_attention_options p = {.size = sizeof p, .scale = 1, .weights_strides = {0, 0, SK}};
    const iso_attention_shape good = s;
    size_t bytes = 5;
#define ATTEND(o, q, k, v, type) iso_attention_w16(o, q, k, v, type, &s, &p, NULL)
    assert_ok(ATTEND(o, q, k, v, ISOBIT_F16));
    REFUSED(NULL, ATTEND(NULL, q, k, v, ISOBIT_F16));
    REFUSED(NULL, ATTEND(o, NULL, k, v, ISOBIT_F16));
    REFUSED(NULL, ATTEND(o, q, NULL, v, ISOBIT_F16));
    REFUSED(NULL, ATTEND(o, q, k, NULL, ISOBIT_F16));
    REFUSED(NULL, iso_attention_w16(o, q, k, v, ISOBIT_F16, NULL, &p, NULL));
    REFUSED(OPTION, ATTEND(o, q, k, v, (iso_w16)2));
    REFUSED(ALIAS, ATTEND((float *)(void *)(v + SK * 32 - 2), q, k, v, ISOBIT_F16));
    REFUSED(ALIAS, ATTEND((float *)(void *)(k + 64 * DH - 2), q, k, v, ISOBIT_F16));
    p.weights = (float *)(void *)v;
    REFUSED(ALIAS, ATTEND(o, q, k, v, ISOBIT_F16));
    p.weights = weights;
    assert_ok(ATTEND(o, q, k, v, ISOBIT_F16));
    s.v.seq = 31;
    REFUSED(LD, ATTEND(o, q, k, v, ISOBIT_BF16));
    s = good, s.dh = 513;
    REFUSED(DIM, ATTEND(o, q, k, v, ISOBIT_BF16));
    s = good, s.H = 2, s.k.head = SIZE_MAX / 2;
    REFUSED(OVERFLOW, ATTEND(o, q, k, v, ISOBIT_BF16));
    s = good, p.size = 3;
    REFUSED(SIZE, ATTEND(o, q, k, v, ISOBIT_BF16));
    REFUSED(SIZE, iso_attention_w16_workspace_bytes(&bytes, &s, &p, NULL));
    REFUSED(NULL, iso_attention_w16_workspace_bytes(NULL, &s, NULL, NULL));
    REFUSED(NULL, iso_attention_w16_workspace_bytes(&bytes, NULL, NULL, NULL));
#undef ATTEND
    s = good, s.Sk = 0; /* nothing to see */
    o[0] = 5;
    assert_ok(iso_attention_w16(o, q, NULL, NULL, ISOBIT_F16, &s, NULL, NULL));
    assert_true(o[0] == 0);
#define KEYS(k, first, x, ld, n, dh, type) iso_keys_w16_append(k, first, x, ld, n, dh, type, NULL)
#define VALUES(v, first, x, ld, n, dh, type)                                                       \
    iso_values_w16_append(v, first, x, ld, n, dh, type, NULL)
    assert_ok(KEYS(k, SK - 2, x, DH, 2, DH, ISOBIT_F16));
    assert_ok(VALUES(v, SK - 2, x, DH, 2, DH, ISOBIT_F16));
#define BOTH(why, to, first, x, ld, n, dh, type)                                                   \
    do {                                                                                           \
        assert_int_equal(KEYS(to, first, x, ld, n, dh, type), why);                                \
        assert_int_equal(VALUES(to, first, x, ld, n, dh, type), why);                              \
    } while (0)
    BOTH(ISOBIT_E_NULL, NULL, 0, x, DH, 2, DH, ISOBIT_F16);
    BOTH(ISOBIT_E_NULL, k, 0, NULL, DH, 2, DH, ISOBIT_F16);
    BOTH(ISOBIT_E_LD, k, 0, x, DH - 1, 2, DH, ISOBIT_F16);
    BOTH(ISOBIT_E_OPTION, k, 0, x, DH, 2, DH, (iso_w16)-1);
    BOTH(ISOBIT_E_OVERFLOW, k, SIZE_MAX, x, DH, 2, DH, ISOBIT_F16);
    BOTH(ISOBIT_E_OVERFLOW, k, SIZE_MAX / 8, x, DH, 2, DH, ISOBIT_F16);
    BOTH(ISOBIT_E_ALIAS, (uint16_t *)(void *)(x + 9), 0, x, DH, 2, DH, ISOBIT_F16);
    assert_ok(KEYS(NULL, 7, NULL, 0, 0, DH, ISOBIT_F16));
    assert_ok(VALUES(NULL, 7, NULL, 0, 0, DH, ISOBIT_F16));
    assert_ok(KEYS(NULL, 7, NULL, 0, 3, 0, ISOBIT_F16));
    assert_ok(VALUES(NULL, 7, NULL, 0, 3, 0, ISOBIT_F16));
    assert_int_equal(iso_keys_w16_elements(SIZE_MAX, 1), 0);
    assert_int_equal(iso_keys_w16_elements(SIZE_MAX / 4, 8), 0);
    assert_int_equal(iso_values_w16_elements(SIZE_MAX / 4, 8), 0);
    assert_int_equal(iso_values_w16_elements(1, SIZE_MAX), 0);
#define ROUND(y, ldy, x, ldx, type) iso_round_w16(y, ldy, x, ldx, 2, DH, type, NULL)
    assert_ok(ROUND(x, DH, x, DH, ISOBIT_BF16));
    REFUSED(NULL, ROUND(NULL, DH, x, DH, ISOBIT_BF16));
    REFUSED(NULL, ROUND(x, DH, NULL, DH, ISOBIT_BF16));
    REFUSED(LD, ROUND(o, DH - 1, x, DH, ISOBIT_BF16));
    REFUSED(LD, ROUND(o, DH, x, DH - 1, ISOBIT_BF16));
    REFUSED(ALIAS, ROUND(x, DH, x + 1, DH, ISOBIT_BF16));
    REFUSED(OPTION, ROUND(o, DH, x, DH, (iso_w16)2));
    assert_ok(iso_round_w16(NULL, 3, NULL, 3, 0, 3, ISOBIT_F16, NULL));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounding_is_to_the_nearest),
        cmocka_unit_test(layouts_are_as_written),
        cmocka_unit_test(attention_has_the_bits_of_f32),
        cmocka_unit_test(steps_are_as_at_once),
        cmocka_unit_test(threads_round_alike),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, make_ways, drop_ways);
}
