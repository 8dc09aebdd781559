/* SPDX-License-Identifier: MIT
 *
 * Arguments that are refused, and calls that have nothing to do.
 */
#include "ops/refusals.h"

float ea[EX], eb[EX], ec[EX], er[EX];
static char epacked[16384] __attribute__((aligned(64)));

void fill_error_operands(void) {
    for (size_t i = 0; i < EX; i++)
        ea[i] = eb[i] = er[i] = random_float();
}

void gemm_refuses(void **state) {
    (void)state;
    fill_error_operands();
    iso_gemm_options o = {.size = sizeof o, .alpha = 1};
    iso_context x = {.size = sizeof x};
    const iso_gemm_options *options = NULL;
#define GEMM(c, ldc, a, lda, b, ldb, m, n, k)                                                      \
    iso_gemm_f32(c, ldc, a, lda, b, ldb, m, n, k, options, &x)
    for (int i = 0; i < 2; i++, options = &o) {
        assert_ok(GEMM(ec, EN, ea, EK, eb, EN, EM, EN, EK));
        refuses(ISOBIT_E_NULL, GEMM(NULL, EN, ea, EK, eb, EN, EM, EN, EK));
        refuses(ISOBIT_E_NULL, GEMM(ec, EN, NULL, EK, eb, EN, EM, EN, EK));
        refuses(ISOBIT_E_NULL, GEMM(ec, EN, ea, EK, NULL, EN, EM, EN, EK));
        refuses(ISOBIT_E_LD, GEMM(ec, EN - 1, ea, EK, eb, EN, EM, EN, EK));
        refuses(ISOBIT_E_LD, GEMM(ec, EN, ea, EK - 1, eb, EN, EM, EN, EK));
        refuses(ISOBIT_E_LD, GEMM(ec, EN, ea, EK, eb, EN - 1, EM, EN, EK));
        refuses(ISOBIT_E_OVERFLOW, GEMM(ec, EN, ea, EK, eb, EN, huge, EN, EK));
        refuses(ISOBIT_E_OVERFLOW, GEMM(ec, huge, ea, EK, eb, EN, EM, EN, EK));
        refuses(ISOBIT_E_OVERFLOW, GEMM(ec, EN, ea, SIZE_MAX / 2, eb, EN, EM, EN, EK));
        refuses(ISOBIT_E_OVERFLOW, GEMM(ec, EN, ea, EK, eb, SIZE_MAX / 4, EM, EN, EK));
        refuses(ISOBIT_E_ALIAS, GEMM(ec, EN, ec, EK, eb, EN, EM, EN, EK));
        refuses(ISOBIT_E_ALIAS, GEMM(ec, EN, ea, EK, ec, EN, EM, EN, EK));
        refuses(ISOBIT_E_ALIAS, GEMM(ec, EN, ec + EM * EN - 1, EK, eb, EN, EM, EN, EK));
        refuses(ISOBIT_E_ALIAS, GEMM(ec + EM * EK - 1, EN, ec, EK, eb, EN, EM, EN, EK));
        refuses(ISOBIT_E_ALIAS, GEMM(ec, EN, ea, EK, ec + EM * EN - 1, EN, EM, EN, EK));
        refuses(ISOBIT_E_ALIAS, GEMM(ec + EK * EN - 1, EN, ea, EK, ec, EN, EM, EN, EK));
        assert_ok(GEMM(ec + EM * EK, EN, ec, EK, eb, EN, EM, EN, EK)); /* neighbours are fine */
    }
    o.trans_a = 1;
    refuses(ISOBIT_E_LD, GEMM(ec, EN, ea, EM - 1, eb, EN, EM, EN, EK));
    o.trans_a = 0, o.trans_b = 1;
    refuses(ISOBIT_E_LD, GEMM(ec, EN, ea, EK, eb, EK - 1, EM, EN, EK));
    refuses(ISOBIT_E_ALIAS, GEMM(ec + 9 * EN + EK - 10, EN, ea, EK, ec, 9, EM, EN, EK));
    assert_ok(GEMM(ec + 9 * EN + EK - 9, EN, ea, EK, ec, 9, EM, EN, EK));
    o.trans_b = 0;
    o.residual = er;
    o.ldr = EN - 1;
    refuses(ISOBIT_E_LD, GEMM(ec, EN, ea, EK, eb, EN, EM, EN, EK));
    o.residual = ec + 1;
    o.ldr = EN;
    refuses(ISOBIT_E_ALIAS, GEMM(ec, EN, ea, EK, eb, EN, EM, EN, EK));
    o.residual = ec;
    o.ldr = EN + 1;
    refuses(ISOBIT_E_ALIAS, GEMM(ec, EN, ea, EK, eb, EN, EM, EN, EK));
    o.residual = NULL;
    o.bias = ec + EN - 1;
    refuses(ISOBIT_E_ALIAS, GEMM(ec, EN, ea, EK, eb, EN, EM, EN, EK));
    o.bias = NULL;
    o.act = (iso_activation)77;
    refuses(ISOBIT_E_OPTION, GEMM(ec, EN, ea, EK, eb, EN, EM, EN, EK));
    o.act = (iso_activation)-1;
    refuses(ISOBIT_E_OPTION, GEMM(ec, EN, ea, EK, eb, EN, EM, EN, EK));
    o.act = ISOBIT_ACT_NONE;
    o.size = 3;
    refuses(ISOBIT_E_SIZE, GEMM(ec, EN, ea, EK, eb, EN, EM, EN, EK));
    o.size = 0;
    refuses(ISOBIT_E_SIZE, GEMM(ec, EN, ea, EK, eb, EN, EM, EN, EK));
    o.size = sizeof o;
    x.size = 1;
    refuses(ISOBIT_E_SIZE, GEMM(ec, EN, ea, EK, eb, EN, EM, EN, EK));
    x.size = sizeof x;
    size_t bytes = 77;
    refuses(ISOBIT_E_NULL, iso_gemm_f32_workspace_bytes(NULL, EM, EN, EK, &o, &x));
    o.size = 5;
    refuses(ISOBIT_E_SIZE, iso_gemm_f32_workspace_bytes(&bytes, EM, EN, EK, &o, &x));
    o.size = sizeof o;
    refuses(ISOBIT_E_OVERFLOW, iso_gemm_f32_workspace_bytes(
                                   &bytes, 129, 1024, SIZE_MAX / 1024 + ((size_t)1 << 20), &o, &x));
    /* A, B or C would have more floats than memory has bytes; 2^k * 2^k wraps to 0 */
    const size_t half = (size_t)1 << (sizeof(size_t) * 4);
    o.trans_b = 0;
    for (o.trans_a = 0; o.trans_a < 2; o.trans_a++) {
        refuses(ISOBIT_E_OVERFLOW, iso_gemm_f32_workspace_bytes(&bytes, 1, half, half, &o, &x));
        refuses(ISOBIT_E_OVERFLOW, iso_gemm_f32_workspace_bytes(&bytes, half, 1, half, &o, &x));
        refuses(ISOBIT_E_OVERFLOW, iso_gemm_f32_workspace_bytes(&bytes, half, half, 1, &o, &x));
    }
    o.trans_a = 0;
    assert_int_equal(bytes, 77);
    assert_ok(iso_gemm_f32_workspace_bytes(&bytes, 0, half, half, &o, &x));
    o.alpha = 0; /* A and B are not read */
    assert_ok(iso_gemm_f32_workspace_bytes(&bytes, 2, half, half, &o, &x));
#undef GEMM
}

void pack_and_linear_refuse(void **state) {
    (void)state;
    fill_error_operands();
    iso_packed p = {0}, untouched;
    size_t bytes = 0, need;
    assert_ok(iso_pack_f32_bytes(&bytes, EN, EK));
    assert_true(bytes >= 16 * EK * sizeof(float) && bytes <= sizeof epacked);
    need = bytes;
    refuses(ISOBIT_E_NULL, iso_pack_f32_bytes(NULL, EN, EK));
    refuses(ISOBIT_E_OVERFLOW, iso_pack_f32_bytes(&bytes, SIZE_MAX, 2));
    refuses(ISOBIT_E_OVERFLOW, iso_pack_f32_bytes(&bytes, SIZE_MAX / 2, SIZE_MAX / 2));
    refuses(ISOBIT_E_OVERFLOW, iso_pack_f32_bytes(&bytes, 1, SIZE_MAX / 16));
    assert_int_equal(bytes, need);
    memset(&p, 0x5a, sizeof p);
    untouched = p;
#define PACK(d, room, w, ldw, n, k, t) iso_pack_f32(&p, d, room, w, ldw, n, k, t, NULL)
    refuses(ISOBIT_E_NULL, iso_pack_f32(NULL, epacked, bytes, ea, EK, EN, EK, 0, NULL));
    refuses(ISOBIT_E_NULL, PACK(NULL, bytes, ea, EK, EN, EK, 0));
    refuses(ISOBIT_E_NULL, PACK(epacked, bytes, NULL, EK, EN, EK, 0));
    refuses(ISOBIT_E_ALIGN, PACK(epacked + 4, bytes, ea, EK, EN, EK, 0));
    refuses(ISOBIT_E_WORKSPACE, PACK(epacked, bytes - 1, ea, EK, EN, EK, 0));
    const float *inside = (const float *)(const void *)epacked;
    refuses(ISOBIT_E_ALIAS, PACK(epacked, bytes, inside, EK, EN, EK, 0));
    refuses(ISOBIT_E_ALIAS, PACK(epacked, bytes, inside + 16 * EK - 1, EK, EN, EK, 0));
    refuses(ISOBIT_E_ALIAS, PACK(epacked, bytes, inside + 16 * EK - 1, EN, EN, EK, 1));
    refuses(ISOBIT_E_LD, PACK(epacked, bytes, ea, EK - 1, EN, EK, 0));
    refuses(ISOBIT_E_LD, PACK(epacked, bytes, ea, EN - 1, EN, EK, 1));
    refuses(ISOBIT_E_OVERFLOW, PACK(epacked, bytes, ea, huge, EN, EK, 0));
    assert_memory_equal(&p, &untouched, sizeof p);
#undef PACK
    assert_ok(iso_pack_f32(&p, epacked, bytes, ea, EK, EN, EK, 0, NULL));
    iso_linear_options o = {.size = sizeof o};
#define LINEAR(y, ldy, x, ldx, w, m) iso_linear_f32(y, ldy, x, ldx, w, m, &o, NULL)
    assert_ok(LINEAR(ec, EN, eb, EK, &p, EM));
    refuses(ISOBIT_E_NULL, LINEAR(NULL, EN, eb, EK, &p, EM));
    refuses(ISOBIT_E_NULL, LINEAR(ec, EN, NULL, EK, &p, EM));
    refuses(ISOBIT_E_NULL, LINEAR(ec, EN, eb, EK, NULL, EM));
    iso_packed empty = {NULL, EN, EK};
    refuses(ISOBIT_E_NULL, LINEAR(ec, EN, eb, EK, &empty, EM));
    refuses(ISOBIT_E_LD, LINEAR(ec, EN - 1, eb, EK, &p, EM));
    refuses(ISOBIT_E_LD, LINEAR(ec, EN, eb, EK - 1, &p, EM));
    refuses(ISOBIT_E_OVERFLOW, LINEAR(ec, huge, eb, EK, &p, EM));
    refuses(ISOBIT_E_OVERFLOW, LINEAR(ec, EN, eb, EK, &p, huge));
    refuses(ISOBIT_E_ALIAS, LINEAR(ec, EN, ec + 2, EK, &p, EM));
    o.residual = er;
    o.ldr = EN - 1;
    refuses(ISOBIT_E_LD, LINEAR(ec, EN, eb, EK, &p, EM));
    o.residual = ec + 1;
    o.ldr = EN;
    refuses(ISOBIT_E_ALIAS, LINEAR(ec, EN, eb, EK, &p, EM));
    o.residual = NULL;
    o.act = (iso_activation)ISO_ACTIVATIONS;
    refuses(ISOBIT_E_OPTION, LINEAR(ec, EN, eb, EK, &p, EM));
    o.act = ISOBIT_ACT_NONE;
    o.size = 1;
    refuses(ISOBIT_E_SIZE, LINEAR(ec, EN, eb, EK, &p, EM));
#undef LINEAR
    refuses(ISOBIT_E_NULL, iso_linear_f32_workspace_bytes(NULL, &p, EM, NULL));
    refuses(ISOBIT_E_NULL, iso_linear_f32_workspace_bytes(&bytes, NULL, EM, NULL));
#define GEMV(y, w, ldw, x, t) iso_gemv_f32(y, w, ldw, x, EN, EK, t, NULL)
    refuses(ISOBIT_E_NULL, GEMV(NULL, ea, EK, eb, 0));
    refuses(ISOBIT_E_NULL, GEMV(ec, NULL, EK, eb, 0));
    refuses(ISOBIT_E_NULL, GEMV(ec, ea, EK, NULL, 0));
    refuses(ISOBIT_E_LD, GEMV(ec, ea, EK - 1, eb, 0));
    refuses(ISOBIT_E_LD, GEMV(ec, ea, EN - 1, eb, 1));
    refuses(ISOBIT_E_OVERFLOW, GEMV(ec, ea, SIZE_MAX / 8, eb, 0));
    refuses(ISOBIT_E_ALIAS, GEMV(ec, ea, EK, ec + 1, 0));
    refuses(ISOBIT_E_ALIAS, GEMV(ec + 3, ec, EK, eb, 0));
#undef GEMV
#define DOT(y, w, ldw, x) iso_gemv_f32(y, w, ldw, x, 1, EK, 0, NULL)
    refuses(ISOBIT_E_NULL, DOT(NULL, ea, EK, eb));
    refuses(ISOBIT_E_NULL, DOT(ec, NULL, EK, eb));
    refuses(ISOBIT_E_NULL, DOT(ec, ea, EK, NULL));
    refuses(ISOBIT_E_LD, DOT(ec, ea, EK - 1, eb));
    refuses(ISOBIT_E_OVERFLOW, iso_gemv_f32(ec, ea, SIZE_MAX, eb, 1, SIZE_MAX, 0, NULL));
    for (size_t i = 0; i < EK; i++) { /* the sum would be a part of what is summed */
        refuses(ISOBIT_E_ALIAS, DOT(ec + i, ea, EK, ec));
        refuses(ISOBIT_E_ALIAS, DOT(ec + i, ec, EK, eb));
    }
#undef DOT
}

void softmax_refuses(void **state) {
    (void)state;
    fill_error_operands();
    iso_softmax_options s = {.size = sizeof s};
    size_t lengths[EM] = {1, 2, EN, EN + 1, 0};
    uint8_t mask[EM * EN] = {0};
#define SOFTMAX(y, ldy, x, ldx, rows) iso_softmax_f32(y, ldy, x, ldx, rows, EN, &s, NULL)
    assert_ok(SOFTMAX(ec, EN, ea, EN, EM));
    refuses(ISOBIT_E_NULL, SOFTMAX(NULL, EN, ea, EN, EM));
    refuses(ISOBIT_E_NULL, SOFTMAX(ec, EN, NULL, EN, EM));
    refuses(ISOBIT_E_LD, SOFTMAX(ec, EN - 1, ea, EN, EM));
    refuses(ISOBIT_E_LD, SOFTMAX(ec, EN, ea, EN - 1, EM));
    refuses(ISOBIT_E_OVERFLOW, SOFTMAX(ec, EN, ea, huge, EM));
    refuses(ISOBIT_E_OVERFLOW, SOFTMAX(ec, EN, ea, EN, huge));
    refuses(ISOBIT_E_ALIAS, SOFTMAX(ec, EN, ec + 1, EN, EM));
    refuses(ISOBIT_E_ALIAS, SOFTMAX(ec, EN, ec, EN + 1, EM));
    s.lengths = lengths;
    refuses(ISOBIT_E_DIM, SOFTMAX(ec, EN, ea, EN, EM));
    s.lengths = NULL;
    s.mask = mask;
    s.ldm = EN - 1;
    refuses(ISOBIT_E_LD, SOFTMAX(ec, EN, ea, EN, EM));
    s.mask = NULL;
    s.size = 2;
    refuses(ISOBIT_E_SIZE, SOFTMAX(ec, EN, ea, EN, EM));
#undef SOFTMAX
#define LOGSUMEXP(max, log_sum, x, ldx, rows)                                                      \
    iso_logsumexp_f32(max, log_sum, x, ldx, rows, EN, NULL)
    float *end = ec + (EM - 1) * EN + EN; /* of rows in ec; ea, eb and er are not touched */
    assert_ok(LOGSUMEXP(ec, ec + EM, ea, EN, EM));
    assert_true(ec[2 * EM - 1] != CANARY && ec[2 * EM] == CANARY);
    refuses(ISOBIT_E_NULL, LOGSUMEXP(NULL, ec, ea, EN, EM));
    refuses(ISOBIT_E_NULL, LOGSUMEXP(ec, NULL, ea, EN, EM));
    refuses(ISOBIT_E_NULL, LOGSUMEXP(ec, ec + EM, NULL, EN, EM));
    refuses(ISOBIT_E_LD, LOGSUMEXP(ec, ec + EM, ea, EN - 1, EM));
    refuses(ISOBIT_E_OVERFLOW, LOGSUMEXP(ec, ec + EM, ea, huge, EM));
    refuses(ISOBIT_E_OVERFLOW, LOGSUMEXP(ec, ec + EM, ea, EN, huge));
    refuses(ISOBIT_E_ALIAS, LOGSUMEXP(ec, ec, ea, EN, EM));
    refuses(ISOBIT_E_ALIAS, LOGSUMEXP(ec, ec + EM - 1, ea, EN, EM));
    refuses(ISOBIT_E_ALIAS, LOGSUMEXP(ec + EM - 1, ec, ea, EN, EM));
    refuses(ISOBIT_E_ALIAS, LOGSUMEXP(end - 1, end + EM, ec, EN, EM));
    refuses(ISOBIT_E_ALIAS, LOGSUMEXP(end + EM, end - 1, ec, EN, EM));
    assert_ok(LOGSUMEXP(end, end + EM, ec, EN, EM));
#undef LOGSUMEXP
}

void norms_refuse(void **state) {
    (void)state;
    fill_error_operands();
    typedef iso_status norm(float *, size_t, const float *, size_t, size_t, size_t,
                            const iso_norm_options *, const iso_context *);
    static norm *const norms[] = {iso_layernorm_f32, iso_rmsnorm_f32};
    for (size_t i = 0; i < 2; i++) {
        iso_norm_options o = {.size = sizeof o, .eps = 1e-5f};
#define NORM(y, ldy, x, ldx, rows) norms[i](y, ldy, x, ldx, rows, EN, &o, NULL)
        assert_ok(NORM(ec, EN, ea, EN, EM));
        refuses(ISOBIT_E_NULL, NORM(NULL, EN, ea, EN, EM));
        refuses(ISOBIT_E_NULL, NORM(ec, EN, NULL, EN, EM));
        refuses(ISOBIT_E_LD, NORM(ec, EN - 1, ea, EN, EM));
        refuses(ISOBIT_E_LD, NORM(ec, EN, ea, EN - 1, EM));
        refuses(ISOBIT_E_OVERFLOW, NORM(ec, EN, ea, huge, EM));
        refuses(ISOBIT_E_ALIAS, NORM(ec, EN, ec + 1, EN, EM));
        o.residual = er, o.ldr = EN - 1;
        refuses(ISOBIT_E_LD, NORM(ec, EN, ea, EN, EM));
        o.residual = ec + 3, o.ldr = EN;
        refuses(ISOBIT_E_ALIAS, NORM(ec, EN, ea, EN, EM));
        o.residual = NULL;
        o.sum = ec + 512, o.lds = EN - 1;
        refuses(ISOBIT_E_LD, NORM(ec, EN, ea, EN, EM));
        o.sum = ec + 1, o.lds = EN;
        refuses(ISOBIT_E_ALIAS, NORM(ec, EN, ea, EN, EM));
        o.sum = ec; /* sum and y would be the same memory */
        refuses(ISOBIT_E_ALIAS, NORM(ec, EN, ea, EN, EM));
        o.sum = NULL;
        o.eps = -1e-5f;
        refuses(ISOBIT_E_OPTION, NORM(ec, EN, ea, EN, EM));
        o.eps = NAN;
        refuses(ISOBIT_E_OPTION, NORM(ec, EN, ea, EN, EM));
        o.eps = INFINITY;
        refuses(ISOBIT_E_OPTION, NORM(ec, EN, ea, EN, EM));
        o.eps = 0, o.size = 9;
        refuses(ISOBIT_E_SIZE, NORM(ec, EN, ea, EN, EM));
#undef NORM
    }
}

void elementwise_refuses(void **state) {
    (void)state;
    fill_error_operands();
    iso_eltwise_options e = {.size = sizeof e};
#define ELTWISE(y, ldy, x, ldx) iso_eltwise_f32(y, ldy, x, ldx, EM, EN, &e, NULL)
    assert_ok(ELTWISE(ec, EN, ea, EN));
    refuses(ISOBIT_E_NULL, ELTWISE(NULL, EN, ea, EN));
    refuses(ISOBIT_E_NULL, ELTWISE(ec, EN, NULL, EN));
    refuses(ISOBIT_E_LD, ELTWISE(ec, EN - 1, ea, EN));
    refuses(ISOBIT_E_LD, ELTWISE(ec, EN, ea, EN - 1));
    refuses(ISOBIT_E_OVERFLOW, ELTWISE(ec, huge, ea, EN));
    refuses(ISOBIT_E_ALIAS, ELTWISE(ec, EN, ec + 1, EN));
    e.residual = er, e.ldr = EN - 1;
    refuses(ISOBIT_E_LD, ELTWISE(ec, EN, ea, EN));
    e.residual = NULL;
    e.act = (iso_activation)ISO_ACTIVATIONS;
    refuses(ISOBIT_E_OPTION, ELTWISE(ec, EN, ea, EN));
    e.act = ISOBIT_ACT_NONE, e.size = sizeof e + 8;
    refuses(ISOBIT_E_SIZE, ELTWISE(ec, EN, ea, EN));
#undef ELTWISE
    assert_ok(iso_axpby_f32(ec, EN, ea, EN, EM, EN, 1, 1, NULL));
    refuses(ISOBIT_E_NULL, iso_axpby_f32(NULL, EN, ea, EN, EM, EN, 1, 1, NULL));
    refuses(ISOBIT_E_NULL, iso_axpby_f32(ec, EN, NULL, EN, EM, EN, 1, 1, NULL));
    refuses(ISOBIT_E_LD, iso_axpby_f32(ec, EN - 1, ea, EN, EM, EN, 1, 1, NULL));
    refuses(ISOBIT_E_LD, iso_axpby_f32(ec, EN, ea, EN - 1, EM, EN, 1, 1, NULL));
    refuses(ISOBIT_E_OVERFLOW, iso_axpby_f32(ec, huge, ea, EN, EM, EN, 1, 1, NULL));
    refuses(ISOBIT_E_ALIAS, iso_axpby_f32(ec, EN, ec + 1, EN, EM, EN, 1, 1, NULL));
#define GATE(y, ldy, a, lda, b, ldb, act)                                                          \
    iso_gate_f32(y, ldy, a, lda, b, ldb, EM, EN, (iso_activation)(act), NULL)
    assert_ok(GATE(ec, EN, ea, EN, eb, EN, ISOBIT_ACT_TANH));
    refuses(ISOBIT_E_NULL, GATE(NULL, EN, ea, EN, eb, EN, 0));
    refuses(ISOBIT_E_NULL, GATE(ec, EN, NULL, EN, eb, EN, 0));
    refuses(ISOBIT_E_NULL, GATE(ec, EN, ea, EN, NULL, EN, 0));
    refuses(ISOBIT_E_LD, GATE(ec, EN - 1, ea, EN, eb, EN, 0));
    refuses(ISOBIT_E_LD, GATE(ec, EN, ea, EN - 1, eb, EN, 0));
    refuses(ISOBIT_E_LD, GATE(ec, EN, ea, EN, eb, EN - 1, 0));
    refuses(ISOBIT_E_OVERFLOW, GATE(ec, huge, ea, EN, eb, EN, 0));
    refuses(ISOBIT_E_OVERFLOW, GATE(ec, EN, ea, huge, eb, EN, 0));
    refuses(ISOBIT_E_OVERFLOW, GATE(ec, EN, ea, EN, eb, huge, 0));
    refuses(ISOBIT_E_ALIAS, GATE(ec, EN, ec + 1, EN, eb, EN, 0));
    refuses(ISOBIT_E_ALIAS, GATE(ec, EN, ea, EN, ec + 1, EN, 0));
    refuses(ISOBIT_E_ALIAS, GATE(ec, EN, ec, EN + 1, eb, EN, 0)); /* another stride */
    refuses(ISOBIT_E_ALIAS, GATE(ec, EN, ea, EN, ec, EN + 1, 0));
    refuses(ISOBIT_E_OPTION, GATE(ec, EN, ea, EN, eb, EN, ISO_ACTIVATIONS));
    refuses(ISOBIT_E_OPTION, GATE(ec, EN, ea, EN, eb, EN, -1));
#undef GATE
}

void embeddings_refuse(void **state) {
    (void)state;
    fill_error_operands();
    uint32_t ids[4] = {0, 9, 3, 1}, rows[4] = {3, 0, 7, 1};
#define EMBED(y, ldy, i, t, vocabulary, p, r, room)                                                \
    iso_embed_f32(y, ldy, i, 4, t, vocabulary, 6, 1.5f, p, r, room, NULL)
    assert_ok(EMBED(ec, 6, ids, ea, 10, eb, rows, 8));
    refuses(ISOBIT_E_NULL, EMBED(NULL, 6, ids, ea, 10, eb, rows, 8));
    refuses(ISOBIT_E_NULL, EMBED(ec, 6, NULL, ea, 10, eb, rows, 8));
    refuses(ISOBIT_E_NULL, EMBED(ec, 6, ids, NULL, 10, eb, rows, 8));
    refuses(ISOBIT_E_LD, EMBED(ec, 5, ids, ea, 10, eb, rows, 8));
    refuses(ISOBIT_E_RANGE, EMBED(ec, 6, ids, ea, 9, eb, rows, 8));
    ids[0] = 10; /* the first one counts too */
    refuses(ISOBIT_E_RANGE, EMBED(ec, 6, ids, ea, 10, eb, rows, 8));
    ids[0] = 0;
    refuses(ISOBIT_E_RANGE, EMBED(ec, 6, ids, ea, 10, eb, rows, 7));
    refuses(ISOBIT_E_RANGE, EMBED(ec, 6, ids, ea, 10, eb, NULL, 3));
    refuses(ISOBIT_E_OVERFLOW, EMBED(ec, huge, ids, ea, 10, eb, rows, 8));
    refuses(ISOBIT_E_OVERFLOW, EMBED(ec, 6, ids, ea, huge, eb, rows, 8));
    refuses(ISOBIT_E_ALIAS, EMBED(ec, 6, ids, ec + 2, 10, eb, rows, 8));
#undef EMBED
#define POSITIONS(y, ldy, first, layout) iso_positions_f32(y, ldy, first, 4, 6, layout, NULL)
    assert_ok(POSITIONS(ec, 6, (1 << 20) - 4, ISOBIT_POS_INTERLEAVED));
    refuses(ISOBIT_E_NULL, POSITIONS(NULL, 6, 0, ISOBIT_POS_INTERLEAVED));
    refuses(ISOBIT_E_LD, POSITIONS(ec, 5, 0, ISOBIT_POS_INTERLEAVED));
    refuses(ISOBIT_E_LIMIT, POSITIONS(ec, 6, (1 << 20) - 3, ISOBIT_POS_INTERLEAVED));
    refuses(ISOBIT_E_LIMIT, POSITIONS(ec, 6, SIZE_MAX - 1, ISOBIT_POS_INTERLEAVED));
    refuses(ISOBIT_E_OPTION, POSITIONS(ec, 6, 0, (iso_position_layout)3));
    refuses(ISOBIT_E_OVERFLOW, POSITIONS(ec, huge, 0, ISOBIT_POS_INTERLEAVED));
#undef POSITIONS
    struct {
        size_t ldy, ldx, rows, heads, dh, rotary, ld, count;
        int layout;
    } s, good = {24, 24, 4, 3, 8, 6, 6, 8, ISOBIT_ROPE_HALF};
    uint32_t at[4] = {3, 0, 7, 1};
#define ROPE(y, x, table, given)                                                                   \
    iso_rope_f32(y, s.ldy, x, s.ldx, s.rows, s.heads, s.dh, s.rotary, (iso_rope_layout)s.layout,   \
                 table, s.ld, given, s.count, NULL)
#define REFUSES(code, member, value)                                                               \
    do {                                                                                           \
        s = good, s.member = (value);                                                              \
        refuses(code, ROPE(ec, ea, eb, at));                                                       \
    } while (0)
    s = good;
    assert_ok(ROPE(ec, ea, eb, at));
    refuses(ISOBIT_E_NULL, ROPE(NULL, ea, eb, at));
    refuses(ISOBIT_E_NULL, ROPE(ec, NULL, eb, at));
    refuses(ISOBIT_E_NULL, ROPE(ec, ea, NULL, at));
    refuses(ISOBIT_E_ALIAS, ROPE(ec, ec + 1, eb, at));
    refuses(ISOBIT_E_ALIAS, ROPE(ec, ea, ec + 90, at));
    REFUSES(ISOBIT_E_LD, ldy, 23);
    REFUSES(ISOBIT_E_LD, ldx, 23);
    REFUSES(ISOBIT_E_LD, ld, 5);
    REFUSES(ISOBIT_E_DIM, rotary, 5);
    REFUSES(ISOBIT_E_DIM, rotary, 10);
    REFUSES(ISOBIT_E_DIM, dh, 4);
    REFUSES(ISOBIT_E_DIM, dh, 514);
    REFUSES(ISOBIT_E_OPTION, layout, 2);
    REFUSES(ISOBIT_E_OPTION, layout, -1);
    REFUSES(ISOBIT_E_OVERFLOW, heads, SIZE_MAX / 8);
    REFUSES(ISOBIT_E_OVERFLOW, ldy, huge);
    REFUSES(ISOBIT_E_OVERFLOW, ldx, huge);
    REFUSES(ISOBIT_E_OVERFLOW, ld, huge);
    REFUSES(ISOBIT_E_RANGE, count, 7);
    REFUSES(ISOBIT_E_RANGE, count, 0);
    s = good, s.count = 3;
    refuses(ISOBIT_E_RANGE, ROPE(ec, ea, eb, NULL));
    s = good, at[0] = 8; /* the first one counts too */
    refuses(ISOBIT_E_RANGE, ROPE(ec, ea, eb, at));
    s.ldy = 25;
    refuses(ISOBIT_E_ALIAS, ROPE(ec, ec, eb, NULL)); /* another stride */
#undef REFUSES
#undef ROPE
#define TABLE(y, ld, first, of, rotary, scaling)                                                   \
    iso_rope_table_f32(y, ld, first, 4, of, rotary, scaling, NULL)
    assert_ok(TABLE(ec, 6, (1 << 29) - 4, ea, 6, 1));
    refuses(ISOBIT_E_NULL, TABLE(NULL, 6, 0, ea, 6, 1));
    refuses(ISOBIT_E_NULL, TABLE(ec, 6, 0, NULL, 6, 1));
    refuses(ISOBIT_E_LD, TABLE(ec, 5, 0, ea, 6, 1));
    refuses(ISOBIT_E_DIM, TABLE(ec, 6, 0, ea, 5, 1));
    refuses(ISOBIT_E_LIMIT, TABLE(ec, 6, (1 << 29) - 3, ea, 6, 1));
    refuses(ISOBIT_E_LIMIT, TABLE(ec, 6, SIZE_MAX - 1, ea, 6, 1));
    refuses(ISOBIT_E_OPTION, TABLE(ec, 6, 0, ea, 6, NAN));
    refuses(ISOBIT_E_OPTION, TABLE(ec, 6, 0, ea, 6, -INFINITY));
    refuses(ISOBIT_E_OVERFLOW, TABLE(ec, huge, 0, ea, 6, 1));
    refuses(ISOBIT_E_ALIAS, TABLE(ec, 6, 0, ec + 1, 6, 1));
#undef TABLE
}

/* Zero sizes are success for everything, with NULL operands. */
void nothing_to_do_is_success(void **state) {
    (void)state;
    iso_packed p = {0};
    assert_ok(iso_softmax_f32(NULL, 0, NULL, 0, 0, 5, NULL, NULL));
    assert_ok(iso_softmax_f32(NULL, 0, NULL, 0, 5, 0, NULL, NULL));
    assert_ok(iso_logsumexp_f32(NULL, NULL, NULL, 0, 0, 5, NULL));
    assert_ok(iso_logsumexp_f32(NULL, NULL, NULL, 0, SIZE_MAX, 0, NULL));
    assert_ok(iso_layernorm_f32(NULL, 0, NULL, 0, 0, 5, NULL, NULL));
    assert_ok(iso_layernorm_f32(NULL, 0, NULL, 0, 5, 0, NULL, NULL));
    assert_ok(iso_rmsnorm_f32(NULL, 0, NULL, 0, 5, 0, NULL, NULL));
    assert_ok(iso_eltwise_f32(NULL, 0, NULL, 0, 0, 5, NULL, NULL));
    assert_ok(iso_gate_f32(NULL, 0, NULL, 0, NULL, 0, 0, 5, ISOBIT_ACT_SILU, NULL));
    assert_ok(iso_gate_f32(NULL, 0, NULL, 0, NULL, 0, 5, 0, ISOBIT_ACT_NONE, NULL));
    assert_ok(iso_key_panels_append(NULL, 3, NULL, 4, 0, 4, NULL));
    assert_ok(iso_embed_f32(NULL, 0, NULL, 0, NULL, 5, 4, 1, NULL, NULL, 0, NULL));
    assert_ok(iso_positions_f32(NULL, 0, 0, 0, 4, ISOBIT_POS_HALF_D, NULL));
    assert_ok(iso_positions_f32(NULL, 0, 0, 4, 0, ISOBIT_POS_HALF_D, NULL));
    for (size_t none = 0; none < 3; none++) /* rows, heads, elements */
        assert_ok(iso_rope_f32(NULL, 0, NULL, 0, none != 0, none != 1, none == 2 ? 0 : 8, 0,
                               ISOBIT_ROPE_HALF, NULL, 0, NULL, 0, NULL));
    assert_ok(iso_rope_table_f32(NULL, 0, 0, 0, NULL, 4, 1, NULL));
    assert_ok(iso_rope_table_f32(NULL, 0, 0, 4, NULL, 0, 1, NULL));
    size_t bytes = 99;
    assert_ok(iso_pack_f32_bytes(&bytes, 0, 0));
    assert_ok(iso_pack_f32(&p, NULL, 0, NULL, 0, 0, 5, 0, NULL));
    assert_ok(iso_linear_f32(NULL, 0, NULL, 5, &p, 3, NULL, NULL));
}
