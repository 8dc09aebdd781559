/* SPDX-License-Identifier: MIT
 *
 * See cases.h. The shapes are those of Transformers of the paper's size (d 512, f 2048, 8 heads of
 * 64, 32000 words), of decoding (1 to 16 rows), and some that fit no block.
 */
#include "operations.h"

/* ------------------------------------------------------------------------------------ the list */

/*
 * Operations per element of what is no product, for the roofline: additions, multiplications and
 * comparisons of the kernels, a division as one. exp takes 20 of them.
 */
#define EXP 20
#define OP(name, prepare, call, form, cost, needs)                                                 \
    static const struct bench_op name = {#name, prepare, call, BENCH_FORM_##form, cost, needs, NULL}
#define FUSED_OP(name, prepare, call, separately, cost, needs)                                     \
    static const struct bench_op name = {#name, prepare, call,      BENCH_FORM_OTHER,              \
                                         cost,  needs,   separately}
#define NEEDS_GEMM (BENCH_BIT(gemm_f32) | BENCH_BIT(gemm_f32_workspace_bytes))
#define NEEDS_LINEAR                                                                               \
    (BENCH_BIT(pack_f32_bytes) | BENCH_BIT(pack_f32) | BENCH_BIT(linear_f32) |                     \
     BENCH_BIT(linear_f32_workspace_bytes))
#define NEEDS_FEW_BITS(type)                                                                       \
    (BENCH_BIT(pack_##type##_bytes) | BENCH_BIT(pack_##type) | BENCH_BIT(linear_##type) |          \
     BENCH_BIT(linear_##type##_workspace_bytes))
#define NEEDS_ATTENTION (BENCH_BIT(attention_f32) | BENCH_BIT(attention_f32_workspace_bytes))
#define NEEDS_PANELS (BENCH_BIT(key_panels_floats) | BENCH_BIT(key_panels_append))

OP(linear, prepare_linear, call_linear, LINEAR, 0, NEEDS_LINEAR);
OP(gemm, prepare_gemm, call_gemm, GEMM, 0, NEEDS_GEMM);
OP(gemm_bt, prepare_gemm_bt, call_gemm_bt, GEMM_BT, 0, NEEDS_GEMM);
OP(gemv, prepare_gemv, call_gemv, GEMV, 0, BENCH_BIT(gemv_f32));
OP(gemv_t, prepare_gemv, call_gemv_t, GEMV_T, 0, BENCH_BIT(gemv_f32));
OP(softmax, prepare_rows, call_softmax, SOFTMAX, EXP + 4, BENCH_BIT(softmax_f32));
OP(layernorm, prepare_rows, call_layernorm, LAYERNORM, 8, BENCH_BIT(layernorm_f32));
OP(rmsnorm, prepare_rows, call_rmsnorm, OTHER, 4, BENCH_BIT(rmsnorm_f32));
OP(attention, prepare_attention, call_attention, ATTENTION, 0, NEEDS_ATTENTION);
OP(attention_causal, prepare_causal, call_causal, OTHER, 0, NEEDS_ATTENTION);
OP(attention_window, prepare_window, call_window, OTHER, 0, NEEDS_ATTENTION);
OP(attention_bias, prepare_bias, call_bias, OTHER, 0, NEEDS_ATTENTION);
OP(attention_t5, prepare_distance, call_distance, OTHER, 0, NEEDS_ATTENTION);
OP(attention_decode, prepare_decode, call_decode, OTHER, 0, NEEDS_ATTENTION | NEEDS_PANELS);
OP(decode_row_major, prepare_row_major, call_attention, OTHER, 0, NEEDS_ATTENTION);
OP(gelu_erf, prepare_rows, call_gelu_erf, GELU_ERF, 30, BENCH_BIT(eltwise_f32));
OP(gelu_tanh, prepare_rows, call_gelu_tanh, GELU_TANH, EXP + 8, BENCH_BIT(eltwise_f32));
OP(silu, prepare_rows, call_silu, SILU, EXP + 3, BENCH_BIT(eltwise_f32));
OP(relu, prepare_rows, call_relu, RELU, 1, BENCH_BIT(eltwise_f32));
OP(swiglu, prepare_gate, call_swiglu, OTHER, EXP + 4, BENCH_BIT(gate_f32));
OP(geglu, prepare_gate, call_geglu, OTHER, 31, BENCH_BIT(gate_f32));
OP(embed, prepare_embed, call_embed, OTHER, 2, BENCH_BIT(embed_f32));
OP(rope_half, prepare_rope, call_rope_half, OTHER, 3, BENCH_BIT(rope_f32));
OP(rope_interleaved, prepare_rope, call_rope_pairs, OTHER, 3, BENCH_BIT(rope_f32));
OP(rope_table, prepare_rope_table, call_rope_table, OTHER, 60, BENCH_BIT(rope_table_f32));
OP(linear_bf16, prepare_bf16, call_w16, OTHER, 0, NEEDS_FEW_BITS(w16));
OP(linear_b16, prepare_b16, call_b16, OTHER, 0, NEEDS_FEW_BITS(w16) | BENCH_BIT(set_numerics));
OP(linear_q8, prepare_q8, call_q, OTHER, 0, NEEDS_FEW_BITS(q));
OP(linear_q4, prepare_q4, call_q, OTHER, 0, NEEDS_FEW_BITS(q));
#define NEEDS_Q_S8                                                                                 \
    (NEEDS_FEW_BITS(q) | BENCH_BIT(linear_q_s8) | BENCH_BIT(linear_q_s8_workspace_bytes))
OP(linear_q8_s8, prepare_q8_s8, call_q_s8, OTHER, 0, NEEDS_Q_S8);
OP(linear_q4_s8, prepare_q4_s8, call_q_s8, OTHER, 0, NEEDS_Q_S8);
OP(linear_s8, prepare_s8, call_s8, OTHER, 0, NEEDS_FEW_BITS(s8));
FUSED_OP(linear_bias_gelu, prepare_linear_bias, call_linear_gelu, linear_then_gelu, 0,
         NEEDS_LINEAR);
FUSED_OP(linear_bias_relu, prepare_linear_bias, call_linear_relu, linear_then_relu, 0,
         NEEDS_LINEAR);
FUSED_OP(bias_gelu, prepare_rows, call_bias_gelu, bias_then_gelu, EXP + 9, BENCH_BIT(eltwise_f32));
FUSED_OP(add_layernorm, prepare_residual, call_add_layernorm, add_then_layernorm, 9,
         BENCH_BIT(layernorm_f32));
FUSED_OP(add_rmsnorm, prepare_residual, call_add_rmsnorm, add_then_rmsnorm, 5,
         BENCH_BIT(rmsnorm_f32));

/* 5e9 elements for each 265e9 operations: what a good softmax reaches beside such a peak. */
#define SOFTMAX_FLOOR (5.0 / 265)

/*
 * A product of one row waits for its weights, from 2 to 4 rows on for the FMA units: each float of
 * the weights takes 2 operations per row, and L2 gives as many floats per second as these units do
 * 4 to 6 operations. From memory 4 rows wait as well.
 */
const struct bench_case bench_cases[] = {
    {&linear, 512, 512, 512, BENCH_FMA, BENCH_THREADS, BENCH_FLOOR_X86, 90},
    {&linear, 512, 2048, 512, BENCH_FMA, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&linear, 512, 512, 2048, BENCH_FMA, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&linear, 128, 2048, 512, BENCH_FMA, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&linear, 2048, 2048, 2048, BENCH_FMA, BENCH_THREADS | BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&linear, 128, VOCABULARY, 512, BENCH_FMA, BENCH_THREADS | BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&linear, 64, 512, 512, BENCH_FMA, BENCH_SCALAR, BENCH_NO_FLOOR, 0},
    {&linear, 16, 512, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&linear, 4, 512, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&linear, 1, 512, 512, BENCH_READ, BENCH_SCALAR, BENCH_NO_FLOOR, 0},
    {&linear, 1, VOCABULARY, 512, BENCH_READ, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&linear, 63, 65, 67, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&linear_bf16, 512, 512, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&linear_bf16, 16, 512, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&linear_bf16, 1, 512, 512, BENCH_READ, BENCH_SCALAR, BENCH_NO_FLOOR, 0},
    {&linear_bf16, 1, VOCABULARY, 512, BENCH_READ, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&linear_b16, 512, 512, 512, BENCH_BF16, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&linear_b16, 128, 2048, 512, BENCH_BF16, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&linear_b16, 16, 512, 512, BENCH_BF16, 0, BENCH_NO_FLOOR, 0},
    {&linear_b16, 1, 512, 512, BENCH_READ, 0, BENCH_NO_FLOOR, 0},
    {&linear_b16, 1, VOCABULARY, 512, BENCH_READ, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&linear_q8, 512, 512, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&linear_q8, 16, 512, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&linear_q8, 1, 512, 512, BENCH_READ, BENCH_SCALAR, BENCH_NO_FLOOR, 0},
    {&linear_q8, 1, VOCABULARY, 512, BENCH_READ, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&linear_q4, 512, 512, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&linear_q4, 16, 512, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&linear_q4, 1, 512, 512, BENCH_READ, BENCH_SCALAR, BENCH_NO_FLOOR, 0},
    {&linear_q4, 1, VOCABULARY, 512, BENCH_READ, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&linear_q8_s8, 512, 512, 512, BENCH_INT8, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&linear_q8_s8, 16, 512, 512, BENCH_INT8, BENCH_SCALAR, BENCH_NO_FLOOR, 0},
    {&linear_q8_s8, 1, 512, 512, BENCH_READ, 0, BENCH_NO_FLOOR, 0},
    {&linear_q8_s8, 1, VOCABULARY, 512, BENCH_READ, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&linear_q4_s8, 512, 512, 512, BENCH_INT8, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&linear_q4_s8, 16, 512, 512, BENCH_INT8, BENCH_SCALAR, BENCH_NO_FLOOR, 0},
    {&linear_q4_s8, 1, 512, 512, BENCH_READ, 0, BENCH_NO_FLOOR, 0},
    {&linear_q4_s8, 1, VOCABULARY, 512, BENCH_READ, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&linear_s8, 512, 512, 512, BENCH_INT8, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&linear_s8, 128, 2048, 512, BENCH_INT8, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&linear_s8, 512, 512, 2048, BENCH_INT8, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&linear_s8, 16, 512, 512, BENCH_INT8, BENCH_SCALAR, BENCH_NO_FLOOR, 0},
    {&linear_s8, 4, 512, 512, BENCH_INT8, 0, BENCH_NO_FLOOR, 0},
    {&linear_s8, 1, 512, 512, BENCH_READ, 0, BENCH_NO_FLOOR, 0},
    {&linear_s8, 1, VOCABULARY, 512, BENCH_READ, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&gemm, 512, 512, 512, BENCH_FMA, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&gemm, 64, 512, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemm, 16, 512, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemm, 4, 512, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemm, 1, 512, 512, BENCH_READ, 0, BENCH_NO_FLOOR, 0},
    {&gemm, 4, VOCABULARY, 512, BENCH_READ, 0, BENCH_NO_FLOOR, 0},
    {&gemm, 1, VOCABULARY, 512, BENCH_READ, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&gemm, 64, 64, 64, BENCH_FMA, BENCH_SCALAR, BENCH_NO_FLOOR, 0},
    {&gemm, 32, 32, 32, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemm, 16, 16, 16, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemm, 63, 65, 67, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemm_bt, 512, 512, 512, BENCH_FMA, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&gemm_bt, 64, 512, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemm_bt, 16, 512, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemm_bt, 4, 512, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemm_bt, 1, 512, 512, BENCH_READ, 0, BENCH_NO_FLOOR, 0},
    {&gemm_bt, 64, 64, 64, BENCH_FMA, BENCH_SCALAR, BENCH_NO_FLOOR, 0},
    {&gemm_bt, 32, 32, 32, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemm_bt, 16, 16, 16, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemm_bt, 63, 65, 67, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&gemv, 1, 512, 512, BENCH_READ, BENCH_SCALAR, BENCH_NO_FLOOR, 0},
    {&gemv_t, 1, 512, 512, BENCH_READ, 0, BENCH_NO_FLOOR, 0},
    {&gemv, 1, VOCABULARY, 512, BENCH_READ, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&gemv_t, 1, VOCABULARY, 512, BENCH_READ, 0, BENCH_NO_FLOOR, 0},
    {&softmax, 512, 512, 0, BENCH_COPY, BENCH_RATE | BENCH_SCALAR, BENCH_FLOOR_RATE, SOFTMAX_FLOOR},
    {&softmax, 512, 1024, 0, BENCH_COPY, BENCH_RATE | BENCH_THREADS, BENCH_FLOOR_RATE,
     SOFTMAX_FLOOR},
    {&softmax, 128, VOCABULARY, 0, BENCH_COPY, BENCH_RATE | BENCH_THREADS | BENCH_HEAVY,
     BENCH_NO_FLOOR, 0},
    {&layernorm, 128, 512, 0, BENCH_COPY, BENCH_SCALAR, BENCH_NO_FLOOR, 0},
    {&layernorm, 512, 1024, 0, BENCH_COPY, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&rmsnorm, 128, 512, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&layernorm, 16384, 1024, 0, BENCH_COPY, BENCH_THREADS | BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&rmsnorm, 512, 1024, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&rmsnorm, 16384, 1024, 0, BENCH_COPY, BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&attention, 512, 512, 32, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&attention, 512, 512, 48, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&attention, 128, 128, 64, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&attention, 512, 512, 64, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&attention, 512, 512, 80, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&attention, 512, 512, 96, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&attention, 512, 512, 128, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&attention, 1024, 1024, 64, BENCH_FMA, BENCH_THREADS, BENCH_FLOOR_VECTOR, 50},
    {&attention, 4096, 4096, 64, BENCH_FMA, BENCH_THREADS | BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&attention_causal, 128, 128, 64, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&attention_causal, 512, 512, 64, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&attention_causal, 1024, 1024, 64, BENCH_FMA, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&attention_causal, 4096, 4096, 64, BENCH_FMA, BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&attention_window, 1024, 1024, 64, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&attention_window, 4096, 4096, 64, BENCH_FMA, BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&attention_bias, 128, 128, 64, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&attention_bias, 1024, 1024, 64, BENCH_FMA, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&attention_t5, 128, 128, 64, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&attention_t5, 1024, 1024, 64, BENCH_FMA, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&attention_decode, 1, 512, 64, BENCH_READ, 0, BENCH_NO_FLOOR, 0},
    {&attention_decode, 1, 4096, 64, BENCH_READ, BENCH_THREADS, BENCH_NO_FLOOR, 0},
    {&attention_decode, 1, 16384, 64, BENCH_READ, BENCH_THREADS | BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&decode_row_major, 1, 512, 64, BENCH_READ, 0, BENCH_NO_FLOOR, 0},
    {&decode_row_major, 1, 4096, 64, BENCH_READ, 0, BENCH_NO_FLOOR, 0},
    {&gelu_erf, 128, 512, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&gelu_erf, 4096, 4096, 0, BENCH_COPY, BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&gelu_tanh, 128, 512, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&gelu_tanh, 4096, 4096, 0, BENCH_COPY, BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&silu, 128, 512, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&silu, 4096, 4096, 0, BENCH_COPY, BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&relu, 128, 512, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&relu, 4096, 4096, 0, BENCH_COPY, BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&swiglu, 128, 512, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&swiglu, 4096, 4096, 0, BENCH_COPY, BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&geglu, 128, 512, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&embed, 512, 512, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&rope_half, 128, 1024, 64, BENCH_COPY, BENCH_SCALAR, BENCH_NO_FLOOR, 0},
    {&rope_half, 128, 4096, 128, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&rope_interleaved, 128, 1024, 64, BENCH_COPY, BENCH_SCALAR, BENCH_NO_FLOOR, 0},
    {&rope_table, 512, 128, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&linear_bias_gelu, 128, 2048, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&linear_bias_gelu, 1, 2048, 512, BENCH_READ, 0, BENCH_NO_FLOOR, 0},
    {&linear_bias_relu, 128, 2048, 512, BENCH_FMA, 0, BENCH_NO_FLOOR, 0},
    {&linear_bias_relu, 1, 2048, 512, BENCH_READ, 0, BENCH_NO_FLOOR, 0},
    {&bias_gelu, 512, 2048, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&add_layernorm, 128, 512, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&add_layernorm, 512, 1024, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&add_layernorm, 8192, 1024, 0, BENCH_COPY, BENCH_HEAVY, BENCH_NO_FLOOR, 0},
    {&add_rmsnorm, 128, 512, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
    {&add_rmsnorm, 512, 1024, 0, BENCH_COPY, 0, BENCH_NO_FLOOR, 0},
};
const size_t bench_case_count = sizeof bench_cases / sizeof *bench_cases;

const char *bench_op_name(const struct bench_case *spec) { return spec->op->name; }
enum bench_form bench_form_of(const struct bench_case *spec) { return spec->op->form; }

int bench_is_product(const struct bench_case *spec) {
    return spec->op == &linear || spec->op == &gemm || spec->op == &gemm_bt;
}

int bench_is_fused(const struct bench_case *spec) { return spec->op->separately != NULL; }

iso_status bench_call_separately(const struct bench_job *job, float *out) {
    return job->spec->op->separately(job, out);
}

void bench_shape(char *text, size_t bytes, const struct bench_case *spec) {
    const struct bench_op *op = spec->op;
    if (op == &attention || op == &attention_causal || op == &attention_window ||
        op == &attention_bias || op == &attention_t5)
        snprintf(text, bytes, "B1H%dS%zud%zu", HEADS, spec->m, spec->k);
    else if (op == &attention_decode || op == &decode_row_major)
        snprintf(text, bytes, "B1H%dK%zud%zu", HEADS, spec->n, spec->k);
    else if (op == &gemv || op == &gemv_t)
        snprintf(text, bytes, "%zux%zu", spec->n, spec->k);
    else if (spec->k)
        snprintf(text, bytes, "%zux%zux%zu", spec->m, spec->n, spec->k);
    else
        snprintf(text, bytes, "%zux%zu", spec->m, spec->n);
}

const char *bench_lacking(const struct bench_library *library, const struct bench_case *spec) {
    return bench_operation_name(library->lacks & spec->op->needs);
}

int bench_is_native(const struct bench_case *spec) { return spec->op == &linear_b16; }

/* Whether the set has the kernel: levels have those of int8 and of BF16 alone, and the int8 of
 * those named after BF16 is that of the level below. */
static int has_kernel(const struct bench_case *spec, const char *isa) {
    const int level = strchr(isa, '_') != NULL, bf16 = strstr(isa, "_bf16") != NULL;
    return bench_is_native(spec)
               ? bf16 || strstr(isa, "_amx")
               : !level || ((spec->op == &linear_s8 || spec->op == &linear_q8_s8 ||
                             spec->op == &linear_q4_s8) &&
                            !bf16);
}

int bench_has_row(const struct bench_case *spec, const char *isa, int all_threads) {
    return has_kernel(spec, isa) && (spec->flags & BENCH_SCALAR || strcmp(isa, "scalar") != 0) &&
           (spec->flags & BENCH_THREADS || !all_threads);
}

void bench_name(char *text, size_t bytes, const struct bench_case *spec, const char *isa,
                size_t threads) {
    char shape[32];
    bench_shape(shape, sizeof shape, spec);
    snprintf(text, bytes, "%s/%s/%s/t%zu", bench_op_name(spec), shape, isa, threads);
}

iso_status bench_prepare(struct bench_job *job, const struct bench_library *library,
                         const struct bench_case *spec, const struct bench_place *place) {
    *job = (struct bench_job){
        .spec = spec,
        .library = library,
        .context = {.size = sizeof(iso_context), .isa = place->isa, .executor = place->executor},
        .out = memory.out,
    };
    memory.used = 0;
    iso_status status = spec->op->prepare(job);
    if (!status && (!job->a || job->out_floats > memory.out_floats))
        status = ISOBIT_E_NOMEM;
    job->operations = job->flops > 0 ? job->flops : job->elements * spec->op->cost;
    return status;
}

iso_status bench_call(const struct bench_job *job) { return job->spec->op->call(job); }

void bench_spoil(const struct bench_job *job) {
    memset(job->out, 0xff, job->out_floats * sizeof(float));
}

double bench_checksum(const struct bench_job *job) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < job->out_floats; i++) {
        uint32_t bits;
        memcpy(&bits, job->out + i, sizeof bits);
        h = (h ^ bits) * UINT64_C(0x100000001b3);
        h ^= h >> 29;
    }
    return (double)(h >> 12);
}
