/* SPDX-License-Identifier: MIT */
#include "every_op.h"

#include <stdint.h>
#include <string.h>

enum { M = 130, N = 96, K = 70, HEADS = 2, KEYS = 75, DH = 32, QUERIES = 65, INPUTS = 16384 };

/* Read-only after every_op_init. */
static float input[INPUTS], weights[N * K], residual[M * N];
static _Alignas(64) float packed_weights[(N + 15) / 16 * 16 * K];
static iso_packed packed;
static uint32_t ids[M];

void every_op_init(void) {
    uint32_t state = 1;
    float *const arrays[] = {input, weights, residual};
    static const size_t counts[] = {INPUTS, (size_t)N * K, (size_t)M * N};
    for (size_t a = 0; a < 3; ++a) {
        for (size_t i = 0; i < counts[a]; ++i) {
            state = state * 1664525 + 1013904223;
            arrays[a][i] = (float)((int32_t)(state >> 8) - (1 << 23)) * 0x1p-22f;
        }
    }
    for (size_t i = 0; i < M; ++i) {
        ids[i] = (uint32_t)(i * 31 % K);
    }
    if (iso_pack_f32(&packed, packed_weights, sizeof(packed_weights), weights, K, N, K, 0, NULL)) {
        packed.data = NULL; /* every_op_all tells */
    }
}

static const char *const names[EVERY_OP_COUNT] = {"gemm",        "gemm, transposed",
                                                  "pack",        "linear",
                                                  "gemv",        "softmax",
                                                  "layernorm",   "rms",
                                                  "eltwise",     "attention",
                                                  "one query",   "embed",
                                                  "positions",   "key panels",
                                                  "log-sum-exp", "axpby",
                                                  "gate",        "rope",
                                                  "rope table"};

const char *every_op_name(size_t op) { return op < EVERY_OP_COUNT ? names[op] : "?"; }

static iso_status attention(float *out, size_t queries, const iso_context *x) {
    const iso_attention_shape shape = {
        .B = 1,
        .H = HEADS,
        .Sq = queries,
        .Sk = KEYS,
        .dh = DH,
        .q = {0, DH, (size_t)HEADS * DH},
        .k = {0, DH, (size_t)HEADS * DH},
        .v = {0, DH, (size_t)HEADS * DH},
        .o = {0, DH, (size_t)HEADS * DH},
    };
    const iso_attention_options o = {
        .size = sizeof(o), .scale = 0.125f, .causal = 1, .past = KEYS - queries};
    const float *k = input + (size_t)QUERIES * HEADS * DH;
    return iso_attention_f32(out, input, k, k + (size_t)KEYS * HEADS * DH, &shape, &o, x);
}

iso_status every_op(float *out, size_t op, const iso_context *x) {
    _Static_assert((QUERIES + 2 * KEYS) * HEADS * DH <= INPUTS && M * K <= INPUTS, "inputs");
    _Static_assert(sizeof(packed_weights) <= EVERY_OP_FLOATS * sizeof(float), "outputs");
    memset(out, 0, EVERY_OP_FLOATS * sizeof(*out));
    const iso_gemm_options g = {.size = sizeof(g),
                                .trans_a = 1,
                                .trans_b = 1,
                                .alpha = 0.5f,
                                .bias = input,
                                .act = ISOBIT_ACT_GELU_ERF,
                                .residual = residual,
                                .ldr = N};
    const iso_linear_options l = {.size = sizeof(l), .bias = input, .act = ISOBIT_ACT_SILU};
    const iso_softmax_options s = {.size = sizeof(s), .log = 1};
    const iso_norm_options n = {
        .size = sizeof(n), .gamma = input, .eps = 1e-5f, .residual = residual, .ldr = N};
    const iso_eltwise_options e = {.size = sizeof(e), .bias = input, .act = ISOBIT_ACT_GELU_TANH};
    iso_packed p;
    switch (op) {
    case 0: return iso_gemm_f32(out, N, input, K, weights, N, M, N, K, NULL, x);
    case 1: return iso_gemm_f32(out, N, input, M, weights, K, M, N, K, &g, x);
    case 2: return iso_pack_f32(&p, out, sizeof(packed_weights), weights, K, N, K, 0, x);
    case 3: return iso_linear_f32(out, N, input, K, &packed, M, &l, x);
    case 4: return iso_gemv_f32(out, weights, K, input, N, K, 0, x);
    case 5: return iso_softmax_f32(out, N, residual, N, M, N, &s, x);
    case 6: return iso_layernorm_f32(out, N, residual, N, M, N, &n, x);
    case 7: return iso_rmsnorm_f32(out, N, residual, N, M, N, &n, x);
    case 8: return iso_eltwise_f32(out, N, residual, N, M, N, &e, x);
    case 9: return attention(out, QUERIES, x);
    case 10: return attention(out, 1, x);
    case 11: return iso_embed_f32(out, N, ids, M, weights, K, N, 2.0f, NULL, NULL, 0, x);
    case 12: return iso_positions_f32(out, N, 7, M, N, ISOBIT_POS_HALF_D, x);
    case 13: return iso_key_panels_append(out, 3, input, K, KEYS, DH, x);
    case 14: return iso_logsumexp_f32(out, out + M, residual, N, M, N, x);
    case 15: return iso_axpby_f32(out, N, residual, N, M, N, -0.7f, 0, x);
    case 16:
        return iso_gate_f32(out, N / 2, residual, N, residual + N / 2, N, M, N / 2, ISOBIT_ACT_SILU,
                            x);
    case 17:
        return iso_rope_f32(out, N, residual, N, M, N / DH, DH, DH - 6, ISOBIT_ROPE_INTERLEAVED,
                            weights, DH, ids, K, x);
    case 18: return iso_rope_table_f32(out, N, 1000, M, input, N, 1, x);
    default: return ISOBIT_E_RANGE;
    }
}

bool every_op_all(float *out, const iso_context *context) {
    bool good = packed.data != NULL;
    for (size_t op = 0; op < EVERY_OP_COUNT; ++op) {
        good = every_op(out + op * EVERY_OP_FLOATS, op, context) == ISOBIT_OK && good;
    }
    return good;
}
