/* SPDX-License-Identifier: MIT
 *
 * The operations of cases.c, and the memory that they work on.
 */
#ifndef ISOBIT_BENCH_OPERATIONS_H
#define ISOBIT_BENCH_OPERATIONS_H

#include "cases.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADS 8
#define VOCABULARY 32000

enum packed_kind {
    PACKED_F32,
    PACKED_KEYS, /* panels of all heads */
    PACKED_W16,
    PACKED_Q8,
    PACKED_Q4,
    PACKED_S8
};

struct packed {
    struct packed *next;
    const struct bench_library *library; /* each has a layout of its own */
    enum packed_kind kind;
    size_t n, k, bytes;
    void *block; /* NULL: shared with an older one */
    float *data;
    union bench_packed matrix; /* of a weight: what it was packed as */
};

struct bench_memory {
    void *blocks[3]; /* of in, out and other */
    float *in, *out, *other;
    size_t in_floats, out_floats;
    size_t used;           /* of in, by the case that is being prepared */
    size_t filled;         /* of in, with random numbers */
    uint64_t random_state; /* where they go on */
    size_t offset;
    void *workspace_block, *workspace;
    size_t workspace_bytes;
    struct packed *packed;
    uint32_t *ids;
};

struct bench_op {
    const char *name;
    iso_status (*prepare)(struct bench_job *job);
    iso_status (*call)(const struct bench_job *job);
    enum bench_form form;
    unsigned cost;  /* operations per element, where they are not counted in flops */
    uint64_t needs; /* functions of the library, but for those of `separately` alone */
    /* the same in several steps, or NULL */
    iso_status (*separately)(const struct bench_job *job, float *out);
};

/* memory.c */
extern struct bench_memory memory;
iso_status drop_packed(iso_status status);
const float *input(size_t floats);
iso_status need_workspace(struct bench_job *job, size_t bytes);
struct packed *find_packed(const struct bench_library *library, enum packed_kind kind, size_t n,
                           size_t k);
struct packed *add_packed(const struct bench_library *library, enum packed_kind kind, size_t n,
                          size_t k, size_t bytes);
void share_packed(struct packed *p);

/* operations.c */
iso_status prepare_linear(struct bench_job *job);
iso_status call_linear(const struct bench_job *job);
iso_status prepare_gemm(struct bench_job *job);
iso_status prepare_gemm_bt(struct bench_job *job);
iso_status call_gemm(const struct bench_job *job);
iso_status call_gemm_bt(const struct bench_job *job);
iso_status prepare_gemv(struct bench_job *job);
iso_status call_gemv(const struct bench_job *job);
iso_status call_gemv_t(const struct bench_job *job);
iso_status prepare_rows(struct bench_job *job);
iso_status call_softmax(const struct bench_job *job);
iso_status call_layernorm(const struct bench_job *job);
iso_status call_rmsnorm(const struct bench_job *job);
iso_status call_gelu_erf(const struct bench_job *job);
iso_status call_gelu_tanh(const struct bench_job *job);
iso_status call_silu(const struct bench_job *job);
iso_status call_relu(const struct bench_job *job);
iso_status prepare_gate(struct bench_job *job);
iso_status call_swiglu(const struct bench_job *job);
iso_status call_geglu(const struct bench_job *job);
iso_status call_bias_gelu(const struct bench_job *job);
iso_status bias_then_gelu(const struct bench_job *job, float *out);
iso_status prepare_residual(struct bench_job *job);
iso_status call_add_layernorm(const struct bench_job *job);
iso_status add_then_layernorm(const struct bench_job *job, float *out);
iso_status call_add_rmsnorm(const struct bench_job *job);
iso_status add_then_rmsnorm(const struct bench_job *job, float *out);
iso_status prepare_linear_bias(struct bench_job *job);
iso_status call_linear_gelu(const struct bench_job *job);
iso_status linear_then_gelu(const struct bench_job *job, float *out);
iso_status call_linear_relu(const struct bench_job *job);
iso_status linear_then_relu(const struct bench_job *job, float *out);
iso_status prepare_embed(struct bench_job *job);
iso_status call_embed(const struct bench_job *job);
iso_status prepare_rope(struct bench_job *job);
iso_status call_rope_half(const struct bench_job *job);
iso_status call_rope_pairs(const struct bench_job *job);
iso_status prepare_rope_table(struct bench_job *job);
iso_status call_rope_table(const struct bench_job *job);
iso_status prepare_attention(struct bench_job *job);
iso_status prepare_causal(struct bench_job *job);
iso_status call_attention(const struct bench_job *job);
iso_status call_causal(const struct bench_job *job);
iso_status prepare_window(struct bench_job *job);
iso_status call_window(const struct bench_job *job);
iso_status prepare_bias(struct bench_job *job);
iso_status prepare_distance(struct bench_job *job);
iso_status call_bias(const struct bench_job *job);
iso_status call_distance(const struct bench_job *job);
iso_status prepare_decode(struct bench_job *job);
iso_status call_decode(const struct bench_job *job);
iso_status prepare_row_major(struct bench_job *job);
void count_product(struct bench_job *job);

/* few_bits.c */
iso_status prepare_bf16(struct bench_job *job);
iso_status prepare_b16(struct bench_job *job);
iso_status prepare_q8(struct bench_job *job);
iso_status prepare_q4(struct bench_job *job);
iso_status prepare_q8_s8(struct bench_job *job);
iso_status prepare_q4_s8(struct bench_job *job);
iso_status prepare_s8(struct bench_job *job);
iso_status call_w16(const struct bench_job *job);
iso_status call_b16(const struct bench_job *job);
iso_status call_q(const struct bench_job *job);
iso_status call_q_s8(const struct bench_job *job);
iso_status call_s8(const struct bench_job *job);

#endif
