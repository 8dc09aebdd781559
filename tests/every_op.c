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

/* The same in fewer bits. Of N rows are Q numbers in blocks, floats or F16 as scales. */
enum { Q = 64, Q8_BYTES = N * Q / 64 * 66, Q4_BYTES = N * Q / 32 * 20 };
static const iso_q_format q8 = {8, 64, ISOBIT_SCALE_F16}, q4 = {4, 32, ISOBIT_SCALE_F32};
static uint16_t weights16[N * K], keys16[HEADS * 3 * 32 * DH], values16[HEADS * KEYS * DH];
static unsigned char blocks8[Q8_BYTES], blocks4[Q4_BYTES];
static _Alignas(64) char packed16[N * K * 2], packed_q8[Q8_BYTES], packed_q4[Q4_BYTES],
    packed_s8[N * ((K + 7) / 8 * 8 + 8)];
static iso_packed_w16 w16;
static iso_packed_q w_q8, w_q4;
static iso_packed_s8 s8;
static bool packs; /* every_op_all tells */

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
    for (size_t i = 0; i < (size_t)N * K; ++i) {
        weights16[i] = (uint16_t)(0x3c00 + i * 37 % 0x300); /* 1 to 1.75 as F16, small as BF16 */
    }
    for (size_t i = 0; i < sizeof(blocks8); ++i) {
        blocks8[i] = i % 66 == 1 ? 0x2c : (unsigned char)(i * 59); /* scales of 1/16 to 1/8 */
    }
    for (size_t i = 0; i < sizeof(blocks4); ++i) {
        blocks4[i] = (unsigned char)(i * 83);
    }
    for (size_t i = 0; i < sizeof(blocks4); i += 20) {
        memcpy(blocks4 + i, &input[i], sizeof(float));
    }
    packs =
        !iso_pack_f32(&packed, packed_weights, sizeof(packed_weights), weights, K, N, K, 0, NULL) &&
        !iso_pack_w16(&w16, packed16, sizeof(packed16), weights16, K, N, K, 0, ISOBIT_BF16, NULL) &&
        !iso_pack_q(&w_q8, packed_q8, sizeof(packed_q8), blocks8, Q / 64, N, Q, &q8, NULL) &&
        !iso_pack_q(&w_q4, packed_q4, sizeof(packed_q4), blocks4, Q / 32, N, Q, &q4, NULL) &&
        !iso_pack_s8(&s8, packed_s8, sizeof(packed_s8), weights, K, N, K, 0, NULL);
    for (size_t h = 0; h < HEADS && packs; ++h) {
        packs = !iso_keys_w16_append(keys16 + h * 3 * 32 * DH, 0, input + h * DH, HEADS * DH, KEYS,
                                     DH, ISOBIT_F16, NULL) &&
                !iso_values_w16_append(values16 + h * KEYS * DH, 0, input + 4096 + h * DH,
                                       HEADS * DH, KEYS, DH, ISOBIT_F16, NULL);
    }
}

static const char *const names[EVERY_OP_COUNT] = {"gemm",
                                                  "gemm, transposed",
                                                  "pack",
                                                  "linear",
                                                  "gemv",
                                                  "softmax",
                                                  "layernorm",
                                                  "rms",
                                                  "eltwise",
                                                  "attention",
                                                  "one query",
                                                  "embed",
                                                  "positions",
                                                  "key panels",
                                                  "log-sum-exp",
                                                  "axpby",
                                                  "gate",
                                                  "rope",
                                                  "rope table",
                                                  "pack, 16 bits",
                                                  "linear, 16 bits",
                                                  "pack, 8 bits",
                                                  "linear, 8 bits",
                                                  "pack, 4 bits",
                                                  "linear, 4 bits",
                                                  "pack, int8",
                                                  "linear, int8",
                                                  "quantize",
                                                  "embed, 16 bits",
                                                  "embed, 8 bits",
                                                  "attention, 16 bits",
                                                  "caches, 16 bits",
                                                  "round",
                                                  "linear, 4 bits and int8",
                                                  "linear, 8 bits and int8"};

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

static iso_status attention16(float *out, const iso_context *x) {
    const iso_attention_shape shape = {.B = 1,
                                       .H = HEADS,
                                       .Sq = 3,
                                       .Sk = KEYS,
                                       .dh = DH,
                                       .q = {0, DH, (size_t)HEADS * DH},
                                       .k = {0, (size_t)3 * 32 * DH, 0},
                                       .v = {0, (size_t)KEYS * DH, DH},
                                       .o = {0, DH, (size_t)HEADS * DH}};
    return iso_attention_w16(out, input, keys16, values16, ISOBIT_F16, &shape, NULL, x);
}

/* Keys, and values behind them. */
static iso_status caches16(float *out, const iso_context *x) {
    uint16_t *k = (uint16_t *)(void *)out;
    uint16_t *v = k + iso_keys_w16_elements(KEYS + 3, DH);
    const iso_status status = iso_keys_w16_append(k, 3, input, K, KEYS, DH, ISOBIT_BF16, x);
    return status ? status : iso_values_w16_append(v, 3, input, K, KEYS, DH, ISOBIT_F16, x);
}

/* Numbers, and scales before them. */
static iso_status quantize(float *out, const iso_context *x) {
    return iso_quantize_s8((int8_t *)(void *)(out + M), K, out, input, K, M, K, x);
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
    iso_packed_w16 p16;
    iso_packed_q pq;
    iso_packed_s8 p8;
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
    case 19:
        return iso_pack_w16(&p16, out, sizeof(packed16), weights16, K, N, K, 0, ISOBIT_BF16, x);
    case 20: return iso_linear_w16(out, N, input, K, &w16, M, &l, x);
    case 21: return iso_pack_q(&pq, out, sizeof(packed_q8), blocks8, Q / 64, N, Q, &q8, x);
    case 22: return iso_linear_q(out, N, input, K, &w_q8, M, &l, x);
    case 23: return iso_pack_q(&pq, out, sizeof(packed_q4), blocks4, Q / 32, N, Q, &q4, x);
    case 24: return iso_linear_q(out, N, input, K, &w_q4, M, &l, x);
    case 25: return iso_pack_s8(&p8, out, sizeof(packed_s8), weights, K, N, K, 0, x);
    case 26: return iso_linear_s8(out, N, input, K, &s8, M, &l, x);
    case 27: return quantize(out, x);
    case 28: return iso_embed_w16(out, N, ids, M, weights16, ISOBIT_F16, K, N, 2, NULL, NULL, 0, x);
    case 29: return iso_embed_q(out, N, ids, M, blocks8, &q8, K, Q, 2, NULL, NULL, 0, x);
    case 30: return attention16(out, x);
    case 31: return caches16(out, x);
    case 32: return iso_round_w16(out, N, residual, N, M, N, ISOBIT_BF16, x);
    case 33: return iso_linear_q_s8(out, N, input, K, &w_q4, M, &l, x);
    case 34: return iso_linear_q_s8(out, N, input, K, &w_q8, M, &l, x);
    default: return ISOBIT_E_RANGE;
    }
}

bool every_op_all(float *out, const iso_context *context) {
    bool good = packs;
    for (size_t op = 0; op < EVERY_OP_COUNT; ++op) {
        good = every_op(out + op * EVERY_OP_FLOATS, op, context) == ISOBIT_OK && good;
    }
    return good;
}
