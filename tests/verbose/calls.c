/* SPDX-License-Identifier: MIT
 *
 * One line for each call, its time and its reasons.
 */
#include "test_verbose.h"

iso_context scalar(void) {
    iso_context context = {.size = sizeof(context)};
    if (iso_isa_find(&context.isa, "scalar")) {
        _exit(9);
    }
    return context;
}

_Alignas(64) float out[ROOM], other[ROOM], in[ROOM];

#define STRIDES(s)                                                                                 \
    { (size_t)16 * (s), 4, s }
static const iso_attention_shape heads = {.B = 1,
                                          .H = 2,
                                          .Sq = 3,
                                          .Sk = 5,
                                          .dh = 4,
                                          .q = STRIDES(8),
                                          .k = STRIDES(9),
                                          .v = STRIDES(10),
                                          .o = STRIDES(11)};

static const char all_masks[] = "attention_f32,scalar,B1H2Sq3Sk5dh4:ldq8:ldk9:ldv10:ldo11:causal"
                                ":past2:window4:softcap:key_lengths:bias:weights:key_panels,thr1";

/* Each operation plain, then with all its options. NULL: no more. */
static const char *const each_line[] = {
    "gemm_f32,scalar,m2n3k4:nn:lda4:ldb5:ldc6,thr1",
    "gemm_f32,scalar,m2n3k4:tt:lda4:ldb5:ldc6:alpha:beta:bias:gelu_erf:residual,thr1",
    "pack_f32,scalar,n3k4:n:ldw5,thr1",
    "pack_f32,scalar,n3k4:t:ldw5,thr1",
    "linear_f32,scalar,m2n3k4:ldx5:ldy6,thr1",
    "linear_f32,scalar,m2n3k4:ldx5:ldy6:bias:silu:residual,thr1",
    "pack_w16,scalar,n3k4:n:ldw5:f16,thr1",
    "pack_w16,scalar,n3k4:t:ldw5:bf16,thr1",
    "linear_w16,scalar,m2n3k4:ldx5:ldy6,thr1",
    "linear_w16,scalar,m2n3k4:ldx5:ldy6:bias:silu:residual,thr1",
    "pack_q,scalar,n3k32:ldw2:q8g32:f16,thr1",
    "pack_q,scalar,n3k64:ldw1:q4g64:f32,thr1",
    "linear_q,scalar,m1n3k64:ldx65:ldy6,thr1",
    "linear_q_s8,scalar,m1n3k64:ldx65:ldy6,thr1",
    "linear_q_s8,scalar,m1n3k64:ldx65:ldy6:bias:silu:residual,thr1",
    "quantize_s8,scalar,rows2n3:ldx4:ldq5,thr1",
    "pack_s8,scalar,n3k4:n:ldw5,thr1",
    "pack_s8,scalar,n3k4:t:ldw5,thr1",
    "linear_s8,scalar,m2n3k4:ldx5:ldy6,thr1",
    "linear_s8,scalar,m2n3k4:ldx5:ldy6:bias:silu:residual,thr1",
    "gemv_f32,scalar,n3k4:ldw5,thr1",
    "gemm_f32,scalar,m1n3k4:nn:lda4:ldb5:ldc3,thr1",
    "softmax_f32,scalar,rows2n3:ldx4:ldy5,thr1",
    "softmax_f32,scalar,rows2n3:ldx4:ldy5:log:safe:lengths:mask,thr1",
    "logsumexp_f32,scalar,rows2n3:ldx4,thr1",
    "layernorm_f32,scalar,rows2n3:ldx4:ldy5,thr1",
    "layernorm_f32,scalar,rows2n3:ldx4:ldy5:gamma:beta:residual:sum,thr1",
    "rmsnorm_f32,scalar,rows2n3:ldx4:ldy5,thr1",
    "rmsnorm_f32,scalar,rows2n3:ldx4:ldy5:gamma:residual,thr1",
    "eltwise_f32,scalar,rows2n3:ldx4:ldy5,thr1",
    "eltwise_f32,scalar,rows2n3:ldx4:ldy5:bias:tanh:residual,thr1",
    "axpby_f32,scalar,rows2n3:ldx4:ldy5,thr1",
    "axpby_f32,scalar,rows2n3:ldx4:ldy5:alpha:beta,thr1",
    "gate_f32,scalar,rows2n3:lda4:ldb5:ldy6,thr1",
    "gate_f32,scalar,rows2n3:lda4:ldb5:ldy6:silu,thr1",
    "attention_f32,scalar,B1H2Sq3Sk5dh4:ldq8:ldk9:ldv10:ldo11,thr1",
    all_masks,
    "key_panels_append,scalar,first1count2dh3:ldk4,thr1",
    "attention_w16,scalar,B1H1Sq3Sk5dh4:ldq8:ldk0:ldv32:ldo11,thr1",
    "keys_w16_append,scalar,first1count2dh3:ldk4:f16,thr1",
    "values_w16_append,scalar,first1count2dh3:ldv4:bf16,thr1",
    "round_w16,scalar,rows2n3:ldx4:ldy5:bf16,thr1",
    "embed_f32,scalar,count2d3:vocabulary4:ldy5,thr1",
    "embed_f32,scalar,count2d3:vocabulary4:ldy5:positions:position_rows,thr1",
    "embed_w16,scalar,count2d3:vocabulary4:ldy5,thr1",
    "embed_w16,scalar,count2d3:vocabulary4:ldy5:positions:position_rows,thr1",
    "embed_q,scalar,count2d32:vocabulary4:ldy33:q8g32:f16,thr1",
    "embed_q,scalar,count2d32:vocabulary4:ldy33:q4g32:f16:positions:position_rows,thr1",
    "positions_f32,scalar,first7count2d3:ldy4:interleaved,thr1",
    "positions_f32,scalar,first7count2d3:ldy4:half_d,thr1",
    "positions_f32,scalar,first7count2d4:ldy4:half_hm1,thr1",
    "rope_f32,scalar,rows2H1dh4rotary2:positions2:ldx4:ldy5:half,thr1",
    "rope_f32,scalar,rows2H1dh4rotary4:positions3:ldx5:ldy4:interleaved:position_rows,thr1",
    "rope_table_f32,scalar,first7count2rotary4:ld5,thr1",
    "rope_table_f32,scalar,first7count2rotary4:ld5:scaling,thr1",
    NULL,
};

static int each_call(void) {
    const iso_context x = scalar();
    const iso_gemm_options g = {.size = sizeof(g),
                                .trans_a = 1,
                                .trans_b = 1,
                                .alpha = 2,
                                .beta = 1,
                                .bias = in,
                                .act = ISOBIT_ACT_GELU_ERF,
                                .residual = other,
                                .ldr = 6};
    const iso_linear_options l = {
        .size = sizeof(l), .bias = in, .act = ISOBIT_ACT_SILU, .residual = other, .ldr = 6};
    const size_t lengths[] = {3, 1}, keys[] = {4};
    const uint8_t mask[6] = {1, 1, 1, 1};
    const iso_softmax_options s = {
        .size = sizeof(s), .log = 1, .safe = 1, .lengths = lengths, .mask = mask, .ldm = 3};
    const iso_norm_options plain = {.size = sizeof(plain)};
    const iso_norm_options n = {.size = sizeof(n),
                                .gamma = in,
                                .beta = in,
                                .eps = 1,
                                .residual = in,
                                .ldr = 5,
                                .sum = other,
                                .lds = 5};
    const iso_norm_options r = {.size = sizeof(r), .gamma = in, .eps = 1, .residual = in, .ldr = 5};
    const iso_eltwise_options e = {
        .size = sizeof(e), .bias = in, .act = ISOBIT_ACT_TANH, .residual = in, .ldr = 5};
    const iso_attention_options a = {.size = sizeof(a),
                                     .scale = 1,
                                     .causal = 1,
                                     .past = 2,
                                     .key_lengths = keys,
                                     .bias = in,
                                     .bias_strides = {0, 0, 5},
                                     .weights = other,
                                     .weights_strides = {30, 15, 5},
                                     .key_panels = 1,
                                     .window = 4,
                                     .softcap = 50};
    const uint32_t ids[] = {3, 0}, rows[] = {1, 2};
    static const uint16_t halves[20];
    static const iso_q_format q8_0 = {8, 32, ISOBIT_SCALE_F16}, q4_0 = {4, 32, ISOBIT_SCALE_F16},
                              q4_64 = {4, 64, ISOBIT_SCALE_F32};
    static const unsigned char zeros[6 * 36];
    static uint32_t room[1024] __attribute__((aligned(64)));
    static float large[66];
    iso_packed_w16 p16;
    iso_packed_q pq;
    iso_packed_s8 p8;
    static int8_t q[10];
    iso_packed p;
    int bad = 0;
    bad |= iso_gemm_f32(out, 6, in, 4, in, 5, 2, 3, 4, NULL, &x) != 0;
    bad |= iso_gemm_f32(out, 6, in, 4, in, 5, 2, 3, 4, &g, &x) != 0;
    bad |= iso_pack_f32(&p, out, sizeof(out), in, 5, 3, 4, 0, &x) != 0;
    bad |= iso_pack_f32(&p, out, sizeof(out), in, 5, 3, 4, 1, &x) != 0;
    bad |= iso_linear_f32(other, 6, in, 5, &p, 2, NULL, &x) != 0;
    bad |= iso_linear_f32(other, 6, in, 5, &p, 2, &l, &x) != 0;
    bad |= iso_pack_w16(&p16, out, sizeof(out), halves, 5, 3, 4, 0, ISOBIT_F16, &x) != 0;
    bad |= iso_pack_w16(&p16, out, sizeof(out), halves, 5, 3, 4, 1, ISOBIT_BF16, &x) != 0;
    bad |= iso_linear_w16(other, 6, in, 5, &p16, 2, NULL, &x) != 0;
    bad |= iso_linear_w16(other, 6, in, 5, &p16, 2, &l, &x) != 0;
    bad |= iso_pack_q(&pq, room, sizeof room, zeros, 2, 3, 32, &q8_0, &x) != 0;
    bad |= iso_pack_q(&pq, room, sizeof room, zeros, 1, 3, 64, &q4_64, &x) != 0;
    bad |= iso_linear_q(other, 6, in, 65, &pq, 1, NULL, &x) != 0;
    bad |= iso_linear_q_s8(other, 6, in, 65, &pq, 1, NULL, &x) != 0;
    bad |= iso_linear_q_s8(other, 6, in, 65, &pq, 1, &l, &x) != 0;
    bad |= iso_quantize_s8(q, 5, other, in, 4, 2, 3, &x) != 0;
    bad |= iso_pack_s8(&p8, out, sizeof(out), in, 5, 3, 4, 0, &x) != 0;
    bad |= iso_pack_s8(&p8, out, sizeof(out), in, 5, 3, 4, 1, &x) != 0;
    bad |= iso_linear_s8(other, 6, in, 5, &p8, 2, NULL, &x) != 0;
    bad |= iso_linear_s8(other, 6, in, 5, &p8, 2, &l, &x) != 0;
    bad |= iso_gemv_f32(out, in, 5, in, 3, 4, 0, &x) != 0;
    bad |= iso_gemv_f32(out, in, 5, in, 3, 4, 1, &x) != 0;
    bad |= iso_softmax_f32(out, 5, in, 4, 2, 3, NULL, &x) != 0;
    bad |= iso_softmax_f32(out, 5, in, 4, 2, 3, &s, &x) != 0;
    bad |= iso_logsumexp_f32(out, other, in, 4, 2, 3, &x) != 0;
    bad |= iso_layernorm_f32(out, 5, in, 4, 2, 3, &plain, &x) != 0;
    bad |= iso_layernorm_f32(out, 5, in, 4, 2, 3, &n, &x) != 0;
    bad |= iso_rmsnorm_f32(out, 5, in, 4, 2, 3, &plain, &x) != 0;
    bad |= iso_rmsnorm_f32(out, 5, in, 4, 2, 3, &r, &x) != 0;
    bad |= iso_eltwise_f32(out, 5, in, 4, 2, 3, NULL, &x) != 0;
    bad |= iso_eltwise_f32(out, 5, in, 4, 2, 3, &e, &x) != 0;
    bad |= iso_axpby_f32(out, 5, in, 4, 2, 3, 1, 0, &x) != 0;
    bad |= iso_axpby_f32(out, 5, in, 4, 2, 3, 2, 1, &x) != 0;
    bad |= iso_gate_f32(out, 6, in, 4, in, 5, 2, 3, ISOBIT_ACT_NONE, &x) != 0;
    bad |= iso_gate_f32(out, 6, in, 4, in, 5, 2, 3, ISOBIT_ACT_SILU, &x) != 0;
    bad |= iso_attention_f32(out, in, in, in, &heads, NULL, &x) != 0;
    bad |= iso_attention_f32(out, in, in, in, &heads, &a, &x) != 0;
    bad |= iso_key_panels_append(out, 1, in, 4, 2, 3, &x) != 0;
    static uint16_t keys16[160];
    const iso_attention_shape one = {1, 1, 3, 5, 4, {0, 0, 8}, {0, 0, 0}, {0, 0, 32}, {0, 0, 11}};
    bad |= iso_attention_w16(out, in, keys16, keys16, ISOBIT_F16, &one, NULL, &x) != 0;
    bad |= iso_keys_w16_append(keys16, 1, in, 4, 2, 3, ISOBIT_F16, &x) != 0;
    bad |= iso_values_w16_append(keys16, 1, in, 4, 2, 3, ISOBIT_BF16, &x) != 0;
    bad |= iso_round_w16(out, 5, in, 4, 2, 3, ISOBIT_BF16, &x) != 0;
    bad |= iso_embed_f32(out, 5, ids, 2, in, 4, 3, 1, NULL, NULL, 0, &x) != 0;
    bad |= iso_embed_f32(out, 5, ids, 2, in, 4, 3, 1, in, rows, 3, &x) != 0;
    bad |= iso_embed_w16(out, 5, ids, 2, halves, ISOBIT_F16, 4, 3, 1, NULL, NULL, 0, &x) != 0;
    bad |= iso_embed_w16(out, 5, ids, 2, halves, ISOBIT_BF16, 4, 3, 1, in, rows, 3, &x) != 0;
    bad |= iso_embed_q(large, 33, ids, 2, zeros, &q8_0, 4, 32, 1, NULL, NULL, 0, &x) != 0;
    bad |= iso_embed_q(large, 33, ids, 2, zeros, &q4_0, 4, 32, 1, in, rows, 3, &x) != 0;
    bad |= iso_positions_f32(out, 4, 7, 2, 3, ISOBIT_POS_INTERLEAVED, &x) != 0;
    bad |= iso_positions_f32(out, 4, 7, 2, 3, ISOBIT_POS_HALF_D, &x) != 0;
    bad |= iso_positions_f32(out, 4, 7, 2, 4, ISOBIT_POS_HALF_HM1, &x) != 0;
    bad |= iso_rope_f32(out, 5, in, 4, 2, 1, 4, 2, ISOBIT_ROPE_HALF, in, 2, NULL, 2, &x) != 0;
    bad |=
        iso_rope_f32(out, 4, in, 5, 2, 1, 4, 4, ISOBIT_ROPE_INTERLEAVED, in, 4, rows, 3, &x) != 0;
    bad |= iso_rope_table_f32(out, 5, 7, 2, in, 4, 1, &x) != 0;
    bad |= iso_rope_table_f32(out, 5, 7, 2, in, 4, 0.5f, &x) != 0;
    return bad;
}

void each_call_has_its_line(void **state) {
    (void)state;
    char *text = run("1", NULL, each_call), *rest = text;
    is_header(next_line(&rest));
    for (size_t i = 0; each_line[i]; ++i) {
        is_call(next_line(&rest), each_line[i], NULL);
    }
    assert_null(next_line(&rest));
    free(text);
}

/* Operations that are added must be told, too: the header against the list above. */
void no_operation_is_left_out(void **state) {
    (void)state;
    char *text = read_path(ISOBIT_SOURCE_DIR "/include/isobit/ops.h");
    size_t operations = 0;
    for (const char *at = text; (at = strstr(at, "ISOBIT_API iso_status iso_"));) {
        at += strlen("ISOBIT_API iso_status iso_");
        const size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_");
        if (length > 6 && begins(at + length - 6, "_bytes")) {
            continue; /* only a size is computed */
        }
        bool found = false;
        for (size_t i = 0; each_line[i]; ++i) {
            found |= strncmp(each_line[i], at, length) == 0 && each_line[i][length] == ',';
        }
        if (!found) {
            fail_msg("%.*s", (int)length, at);
        }
        ++operations;
    }
    assert_true(operations >= 14);
    free(text);
}

static int every_call(void) {
    static _Alignas(64) float results[EVERY_OP_COUNT * EVERY_OP_FLOATS];
    every_op_init();
    return !every_op_all(results, NULL);
}

void off_is_silent(void **state) {
    (void)state;
    static const char *const values[] = {NULL, "", "0"};
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); ++i) {
        char *text = run(values[i], path, every_call);
        assert_string_equal(text, "");
        assert_int_equal(access(path, F_OK), -1);
        free(text);
    }
}

void wrong_values_are_told(void **state) {
    (void)state;
    static const char *const values[] = {"3", "-1", "yes", "1 ", "01", "2x", "a,\"b\n"};
    static const char *const said[] = {"3", "-1", "yes", "1 ", "01", "2x", "\"a,\"\"b?\""};
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); ++i) {
        char expected[200], *text = run(values[i], path, every_call);
        snprintf(expected, sizeof(expected),
                 "iso_verbose,1,error,ISOBIT_VERBOSE is none of 0 1 2 and counts as 0,%s\n",
                 said[i]);
        assert_string_equal(text, expected);
        assert_int_equal(access(path, F_OK), -1);
        free(text);
    }
}

static void slowly(void *user, size_t n, void (*fn)(void *arg, size_t i), void *arg) {
    (void)user;
    const struct timespec nap = {.tv_nsec = 30000000};
    nanosleep(&nap, NULL);
    for (size_t i = 0; i < n; ++i) {
        fn(arg, i);
    }
}

static int slow_call(void) {
    const iso_executor executor = {slowly, NULL, 3};
    iso_context x = scalar();
    x.executor = &executor;
    iso_packed p;
    return iso_pack_f32(&p, out, sizeof(out), in, 5, 3, 4, 0, &x) != ISOBIT_OK;
}

void the_time_is_that_of_the_call(void **state) {
    (void)state;
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    char *text = run("1", NULL, slow_call), *rest = text;
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double most =
        (double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) * 1e-6;
    is_header(next_line(&rest));
    const char *line = next_line(&rest), call[] = "pack_f32,scalar,n3k4:n:ldw5,thr3";
    is_call(line, call, NULL);
    const double ms = strtod(strrchr(line, ',') + 1, NULL);
    if (!(ms >= 30 && ms <= most)) {
        fail_msg("%g ms is not between 30 and %g", ms, most);
    }
    assert_null(next_line(&rest));
    free(text);
}

/* ------------------------------------------------------------------------------------- reasons */

enum { BIG = 1100 * 2048 };
static const char *isa_name;
static float *big[3];

static iso_status product(size_t m, size_t n, size_t k, int trans_a, int trans_b, float beta,
                          const iso_context *x) {
    const iso_gemm_options o = {
        .size = sizeof(o), .trans_a = trans_a, .trans_b = trans_b, .alpha = 1, .beta = beta};
    return iso_gemm_f32(big[0], n, big[1], trans_a ? m : k, big[2], trans_b ? k : n, m, n, k, &o,
                        x);
}

static iso_status attend(size_t queries, size_t keys, int panels, const iso_context *x) {
    const iso_attention_shape s = {
        1, 2, queries, keys, 64, {0, 64, 128}, {0, 64 * keys, 64}, {0, 64, 128}, {0, 64, 128}};
    const iso_attention_options o = {.size = sizeof(o), .scale = 1, .key_panels = panels};
    return iso_attention_f32(big[0], big[1], big[2], big[2], &s, &o, x);
}

/* What is chosen on all machines and instruction sets alike. */
static int some_ways(void) {
    iso_context x = {.size = sizeof(x)};
    for (size_t i = 0; i < 3; ++i) {
        big[i] = aligned_alloc(64, BIG * sizeof(float));
        if (!big[i]) {
            return 8;
        }
        memset(big[i], 0, BIG * sizeof(float));
    }
    iso_pool *pool = NULL;
    iso_packed p;
    iso_packed_s8 p8;
    int bad = iso_isa_find(&x.isa, isa_name) != 0;
    bad |= iso_pool_create(&pool, 2) != 0;
    bad |= product(16, 16, 16, 0, 0, 0, &x) != 0;
    bad |= product(0, 16, 16, 0, 0, 0, &x) != 0;
    bad |= product(16, 16, 0, 0, 0, 0, &x) != 0;
    bad |= product(2, 200, 100, 0, 0, 0, &x) != 0;
    bad |= product(1, 1100, 2048, 0, 0, 0, &x) != 0;
    bad |= product(130, 700, 400, 0, 0, 0, &x) != 0;
    bad |= product(130, 700, 400, 1, 0, 0, &x) != 0;
    bad |= product(1, 200, 100, 0, 1, 0, &x) != 0;
    bad |= product(32, 512, 512, 0, 1, 0, &x) != 0;
    bad |= product(300, 100, 300, 0, 1, 0, &x) != 0;
    x.executor = iso_pool_executor(pool);
    bad |= product(130, 700, 400, 0, 0, 0, &x) != 0;
    bad |= product(4, 200, 30, 0, 0, 0, &x) != 0;
    bad |= iso_pack_f32(&p, big[2], BIG * sizeof(float), big[1], 300, 200, 300, 0, &x) != 0;
    bad |= iso_linear_f32(big[0], 200, big[1], 300, &p, 100, NULL, &x) != 0;
    bad |= iso_linear_f32(big[0], 200, big[1], 300, &p, 1, NULL, &x) != 0;
    bad |= iso_linear_f32(big[0], 200, big[1], 300, &p, 0, NULL, &x) != 0;
    bad |= iso_pack_s8(&p8, big[2], BIG * sizeof(float), big[1], 9000, 16, 9000, 0, &x) != 0;
    bad |= iso_linear_s8(big[0], 16, big[1], 9000, &p8, 2, NULL, &x) != 0;
    bad |= iso_linear_s8(big[0], 16, big[1], 9000, &p8, 63, NULL, &x) != 0;
    bad |= iso_linear_s8(big[0], 16, big[1], 9000, &p8, 64, NULL, &x) != 0;
    bad |= iso_linear_s8(big[0], 16, big[1], 9000, &p8, 100, NULL, &x) != 0;
    bad |= iso_pack_s8(&p8, big[2], BIG * sizeof(float), big[1], 2000, 50, 2000, 0, &x) != 0;
    bad |= iso_linear_s8(big[0], 50, big[1], 2000, &p8, 50, NULL, &x) != 0;
    bad |= iso_linear_s8(big[0], 50, big[1], 2000, &p8, 401, NULL, &x) != 0;
    bad |= iso_linear_s8(big[0], 50, big[1], 2000, &p8, 0, NULL, &x) != 0;
    const iso_packed_q pq = {.data = memset(big[2], 0, 4096 * 20),
                             .n = 20,
                             .k = 4096,
                             .format = {4, 32, ISOBIT_SCALE_F16}};
    bad |= iso_linear_q_s8(big[0], 20, big[1], 4096, &pq, 2, NULL, &x) != 0;
    bad |= iso_linear_q_s8(big[0], 20, big[1], 4096, &pq, 70, NULL, &x) != 0;
    bad |= iso_linear_q_s8(big[0], 20, big[1], 4096, &pq, 0, NULL, &x) != 0;
    bad |= iso_gemv_f32(big[0], big[1], 1000, big[2], 1000, 1000, 0, &x) != 0;
    bad |= iso_gemv_f32(big[0], big[1], 10, big[2], 10, 10, 0, &x) != 0;
    bad |= iso_gemv_f32(big[0], big[1], 0, big[2], 10, 0, 0, &x) != 0;
    bad |= attend(250, 100, 0, &x) != 0;
    bad |= attend(600, 600, 0, &x) != 0;
    bad |= attend(1, 100, 0, &x) != 0;
    bad |= attend(1, 100, 1, &x) != 0;
    bad |= attend(0, 100, 1, &x) != 0;
    iso_pool_destroy(pool);
    return bad;
}

void ways_are_told(void **state) {
    (void)state;
    static const char *const expected[][2] = {
        {"gemm_f32,%s,m16n16k16:nn:lda16:ldb16:ldc16,thr1", "tiny"},
        {"gemm_f32,%s,m0n16k16:nn:lda16:ldb16:ldc16,thr1", "no product"},
        {"gemm_f32,%s,m16n16k0:nn:lda0:ldb16:ldc16,thr1", "no product"},
        {"gemm_f32,%s,m2n200k100:nn:lda100:ldb200:ldc200,thr1", "B in place; tasks 1; ..."},
        {"gemm_f32,%s,m1n1100k2048:nn:lda2048:ldb1100:ldc1100,thr1",
         "along rows of B; tasks 1; ..."},
        {"gemm_f32,%s,m130n700k400:nn:lda400:ldb700:ldc700,thr1",
         "packs B by blocks; tasks 1; ..."},
        {"gemm_f32,%s,m130n700k400:tn:lda130:ldb700:ldc700,thr1",
         "packs B by blocks; tasks 1; ..."},
        {"gemm_f32,%s,m1n200k100:nt:lda100:ldb100:ldc200,thr1",
         "transposed B in registers; tasks 1; ..."},
        {"gemm_f32,%s,m32n512k512:nt:lda512:ldb512:ldc512,thr1",
         "transposed product that packs A; tasks 1; ..."},
        {"gemm_f32,%s,m300n100k300:nt:lda300:ldb300:ldc100,thr1",
         "packs B by blocks; tasks 1; ..."},
        {"gemm_f32,%s,m130n700k400:nn:lda400:ldb700:ldc700,thr2",
         "packs B by blocks; tasks 2; ..."},
        {"gemm_f32,%s,m4n200k30:nn:lda30:ldb200:ldc200,thr2", "B in place; tasks 1; ..."},
        {"pack_f32,%s,n200k300:n:ldw300,thr2", "-"},
        {"linear_f32,%s,m100n200k300:ldx300:ldy200,thr2", "packed B; tasks 2; ..."},
        {"linear_f32,%s,m1n200k300:ldx300:ldy200,thr2", "packed B; tasks 1; ..."},
        {"linear_f32,%s,m0n200k300:ldx300:ldy200,thr2", "no product"},
        {"pack_s8,%s,n16k9000:n:ldw9000,thr2", "-"},
        {"linear_s8,%s,m2n16k9000:ldx9000:ldy16,thr2", "int8; tasks 1 by rows; blocks of 2 rows"},
        {"linear_s8,%s,m63n16k9000:ldx9000:ldy16,thr2",
         "int8; tasks 1 by columns; blocks of 63 rows"},
        {"linear_s8,%s,m64n16k9000:ldx9000:ldy16,thr2", "int8; tasks 2 by rows; blocks of 32 rows"},
        {"linear_s8,%s,m100n16k9000:ldx9000:ldy16,thr2",
         "int8; tasks 2 by rows; blocks of 32 rows"},
        {"pack_s8,%s,n50k2000:n:ldw2000,thr2", "-"},
        {"linear_s8,%s,m50n50k2000:ldx2000:ldy50,thr2",
         "int8; tasks 2 by columns; blocks of 50 rows"},
        {"linear_s8,%s,m401n50k2000:ldx2000:ldy50,thr2",
         "int8; tasks 2 by rows; blocks of 128 rows"},
        {"linear_s8,%s,m0n50k2000:ldx2000:ldy50,thr2", "no product"},
        {"linear_q_s8,%s,m2n20k4096:ldx4096:ldy20,thr2",
         "4 bits times int8; tasks 1; blocks of 2 rows"},
        {"linear_q_s8,%s,m70n20k4096:ldx4096:ldy20,thr2",
         "4 bits times int8; tasks 2; blocks of 32 rows"},
        {"linear_q_s8,%s,m0n20k4096:ldx4096:ldy20,thr2", "no product"},
        {"gemv_f32,%s,n1000k1000:ldw1000,thr2", "dot products of rows; tasks 2"},
        {"gemv_f32,%s,n10k10:ldw10,thr2", "dot products of rows; tasks 1"},
        {"gemv_f32,%s,n10k0:ldw0,thr2", "no product"},
        {"attention_f32,%s,B1H2Sq250Sk100dh64:ldq128:ldk64:ldv128:ldo128,thr2",
         "packs keys; tasks 2; by heads; ..."},
        {"attention_f32,%s,B1H2Sq600Sk600dh64:ldq128:ldk64:ldv128:ldo128,thr2",
         "packs keys and values; tasks 2; by heads; ..."},
        {"attention_f32,%s,B1H2Sq1Sk100dh64:ldq128:ldk64:ldv128:ldo128,thr2",
         "one query with keys in place; tasks 1; by heads; blocks of 1 queries; keys of one query "
         "are "
         "read once"},
        {"attention_f32,%s,B1H2Sq1Sk100dh64:ldq128:ldk64:ldv128:ldo128:key_panels,thr2",
         "keys in panels; tasks 1; by heads; ..."},
        {"attention_f32,%s,B1H2Sq0Sk100dh64:ldq128:ldk64:ldv128:ldo128:key_panels,thr2",
         "nothing to do"},
    };
    for (size_t isa = 0; isa < iso_isa_count(); ++isa) {
        if (iso_isa_missing(iso_isa_get(isa))) {
            continue;
        }
        isa_name = iso_isa_name(iso_isa_get(isa));
        char *text = run("2", NULL, some_ways), *rest = text;
        is_header(next_line(&rest));
        for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); ++i) {
            char call[200];
            const char *hole = strchr(expected[i][0], '%');
            snprintf(call, sizeof(call), "%.*s%s%s", (int)(hole - expected[i][0]), expected[i][0],
                     isa_name, hole + 2);
            is_call(next_line(&rest), call, expected[i][1]);
        }
        assert_null(next_line(&rest));
        free(text);
    }
}
