/* SPDX-License-Identifier: MIT
 *
 * The operations of a Transformer on f32 tensors. isobit.h states the rules that hold for all of
 * them (row-major, strides in elements, zero sizes, status codes, the bits).
 *
 * An output that is too large for the caches is written fastest where it lies at a multiple of 64
 * bytes, and its rows at multiples of 16 elements.
 *
 * Letters: m n k sizes of a matrix product; B batch, H heads, S sequence length, dh width of a
 * head, d model width.
 */
#ifndef ISOBIT_OPS_H
#define ISOBIT_OPS_H

#include <isobit/isobit.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element-wise functions. The formulas are exact mathematics; docs/numerics.md gives the bounds. */
typedef enum iso_activation {
    ISOBIT_ACT_NONE = 0,
    ISOBIT_ACT_RELU,      /* x < 0 ? 0 : x; so NaN stays NaN and -0 stays -0 */
    ISOBIT_ACT_SILU,      /* x / (1 + exp(-x)), also called swish; -Inf gives -0 */
    ISOBIT_ACT_GELU_ERF,  /* 0.5 x (1 + erf(x / sqrt 2)); -Inf gives -0 */
    ISOBIT_ACT_GELU_TANH, /* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); -Inf gives -0 */
    ISOBIT_ACT_TANH
} iso_activation;

/* ------------------------------------------------------------------------------------- gemm */

/*
 * y = act(alpha op(A) op(B) + beta C + bias) + residual, written to C.
 *   op(A) is m x k: A is [m][lda >= k], or with trans_a [k][lda >= m].
 *   op(B) is k x n: B is [k][ldb >= n], or with trans_b [n][ldb >= k].
 *   C is [m][ldc >= n]; it is read only when beta is not 0. bias is [n], residual [m][ldr >= n].
 * When alpha is 0, or k is 0, A and B are not read and may be NULL. C must not overlap A or B;
 * residual may be C itself (same pointer and stride), else it must not overlap C.
 */
typedef struct iso_gemm_options {
    size_t size; /* sizeof(iso_gemm_options) */
    int trans_a, trans_b;
    float alpha, beta; /* NULL options mean alpha 1, beta 0; in a struct of your own set alpha */
    const float *bias;
    iso_activation act;
    const float *residual;
    size_t ldr;
} iso_gemm_options;

ISOBIT_API iso_status iso_gemm_f32(float *c, size_t ldc, const float *a, size_t lda, const float *b,
                                   size_t ldb, size_t m, size_t n, size_t k,
                                   const iso_gemm_options *options, const iso_context *context);

/* Bytes of workspace with which iso_gemm_f32 allocates nothing. */
ISOBIT_API iso_status iso_gemm_f32_workspace_bytes(size_t *bytes, size_t m, size_t n, size_t k,
                                                   const iso_gemm_options *options,
                                                   const iso_context *context);

/* --------------------------------------------------------------------------- packed weights */

/*
 * Weights that are used many times are packed once into memory that the caller owns. The layout
 * is the same for all instruction sets, so a packed matrix may be used with any of them.
 * W is [n][ldw >= k] as in y = x W^T (trans_w = 0, torch.nn.Linear), or [k][ldw >= n] as in y = x W
 * (trans_w = 1). `packed` must be aligned to 64 bytes; it must outlive the uses of *p, which is a
 * small descriptor that may be copied.
 */
typedef struct iso_packed {
    const float *data; /* [ceil(n/16)][k][16], columns beyond n are zero */
    size_t n, k;
} iso_packed;

ISOBIT_API iso_status iso_pack_f32_bytes(size_t *bytes, size_t n, size_t k);
ISOBIT_API iso_status iso_pack_f32(iso_packed *p, void *packed, size_t packed_bytes, const float *w,
                                   size_t ldw, size_t n, size_t k, int trans_w,
                                   const iso_context *context);

/*
 * y = act(x W^T + bias) + residual: x [m][ldx >= k], y [m][ldy >= n], bias [n], residual
 * [m][ldr >= n] (may be y itself). The same bits as iso_gemm_f32 with alpha 1 and beta 0, and
 * each row the same bits whatever m is.
 */
typedef struct iso_linear_options {
    size_t size; /* sizeof(iso_linear_options) */
    const float *bias;
    iso_activation act;
    const float *residual;
    size_t ldr;
} iso_linear_options;

ISOBIT_API iso_status iso_linear_f32(float *y, size_t ldy, const float *x, size_t ldx,
                                     const iso_packed *w, size_t m,
                                     const iso_linear_options *options, const iso_context *context);
ISOBIT_API iso_status iso_linear_f32_workspace_bytes(size_t *bytes, const iso_packed *w, size_t m,
                                                     const iso_context *context);

/*
 * The same with weights of 16 bits, as checkpoints store them: F16 (IEEE binary16) or BF16 (the
 * upper half of a float). They take half the memory and stay so; kernels widen them, which is
 * exact, and all arithmetic is f32. So results have the bits that iso_linear_f32 gives with the
 * widened weights; those of BF16 have others in native numerics (iso_set_numerics), for which
 * nothing is packed anew. W is [n][ldw >= k], or with trans_w [k][ldw >= n], in numbers of 16 bits
 * in the machine's byte order. `packed` must be aligned to 64 bytes, must not overlap the memory
 * from W's first element to its last, and must outlive the uses of *p. The layout is the same for
 * all instruction sets:
 *   BF16  columns j and 16 + j of each 32 lie side by side, at 2j and 2j + 1;  F16  in order.
 * ISOBIT_E_OPTION: a type that does not exist.
 */
typedef enum iso_w16 { ISOBIT_F16 = 0, ISOBIT_BF16 } iso_w16;

typedef struct iso_packed_w16 {
    const uint16_t *data; /* [ceil(n/32)][k][32], columns beyond n are zero */
    size_t n, k;
    iso_w16 type;
} iso_packed_w16;

ISOBIT_API iso_status iso_pack_w16_bytes(size_t *bytes, size_t n, size_t k);
ISOBIT_API iso_status iso_pack_w16(iso_packed_w16 *p, void *packed, size_t packed_bytes,
                                   const uint16_t *w, size_t ldw, size_t n, size_t k, int trans_w,
                                   iso_w16 type, const iso_context *context);
ISOBIT_API iso_status iso_linear_w16(float *y, size_t ldy, const float *x, size_t ldx,
                                     const iso_packed_w16 *w, size_t m,
                                     const iso_linear_options *options, const iso_context *context);
ISOBIT_API iso_status iso_linear_w16_workspace_bytes(size_t *bytes, const iso_packed_w16 *w,
                                                     size_t m, const iso_context *context);

/*
 * The same with weights of 8 or 4 bits in groups along k: `group` weights of a row share a scale,
 * and with ..._OFFSET an offset. In f32, each rounded once, a weight is
 *   number scale,  or  fma(number, scale, offset).
 * A scale and an offset are an F16 or a float; or, with I8, an int8_t times an F16 that 256 weights
 * share. (Where there are F16, products are exact.) Weights stay so in memory; kernels make floats
 * of them, and all arithmetic is f32. So results have the bits that iso_linear_f32 gives with those
 * floats. W is n rows of blocks, of a group each, or with I8 of 256 weights; they are `ldw` >= k /
 * (these) blocks apart, and k a multiple of them. A block is, without a gap, its scale and offset,
 * in the machine's byte order; with I8 the int8_t of the scales of its groups and of the offsets;
 * and the numbers, group by group,
 *   8 bits  as int8_t;
 *   4 bits  bytes, number i + 8 in the lower half of byte i for the first half of the group, and in
 *           the upper half of byte i - group / 2 for the others; with an offset number i, 0 to 15.
 * So {8, 32, ISOBIT_SCALE_F16} are GGUF's blocks Q8_0, {4, 32, ISOBIT_SCALE_F16} are Q4_0, and
 * {4, 32, ISOBIT_SCALE_F16_OFFSET} Q4_1. What {4, 32, ISOBIT_SCALE_I8_OFFSET} holds is Q4_K, and
 * {8, 16, ISOBIT_SCALE_I8} Q6_K.
 * Scales may be 0 or negative; one that is not finite is refused. `packed` is that of iso_pack_w16,
 * with this layout for all instruction sets:
 *   [ceil(n/16)][k/group], each 16 scales, 16 offsets, then the numbers of a group, columns beyond
 *           n zero; with I8 there are, before each 256 / group groups, the F16 of 16 scales and 16
 *           offsets
 *   8 bits  [group][16] bytes;  4 bits  [group/8][16] words of 32 bits, the first of 8 numbers,
 *           in two's complement, in the uppermost bits.
 * ISOBIT_E_OPTION: bits, group (16, 32, 64 or 128) or scale do not exist.  ISOBIT_E_DIM: k is not
 * whole blocks.  ISOBIT_E_RANGE: a scale or an offset is not finite.
 */
typedef enum iso_q_scale {
    ISOBIT_SCALE_F16 = 0,
    ISOBIT_SCALE_F32,
    ISOBIT_SCALE_I8,
    ISOBIT_SCALE_F16_OFFSET,
    ISOBIT_SCALE_F32_OFFSET,
    ISOBIT_SCALE_I8_OFFSET
} iso_q_scale;

typedef struct iso_q_format {
    unsigned bits, group;
    iso_q_scale scale;
} iso_q_format;

typedef struct iso_packed_q {
    const uint32_t *data;
    size_t n, k;
    iso_q_format format;
} iso_packed_q;

ISOBIT_API iso_status iso_pack_q_bytes(size_t *bytes, size_t n, size_t k,
                                       const iso_q_format *format);
ISOBIT_API iso_status iso_pack_q(iso_packed_q *p, void *packed, size_t packed_bytes, const void *w,
                                 size_t ldw, size_t n, size_t k, const iso_q_format *format,
                                 const iso_context *context);
ISOBIT_API iso_status iso_linear_q(float *y, size_t ldy, const float *x, size_t ldx,
                                   const iso_packed_q *w, size_t m,
                                   const iso_linear_options *options, const iso_context *context);
ISOBIT_API iso_status iso_linear_q_workspace_bytes(size_t *bytes, const iso_packed_q *w, size_t m,
                                                   const iso_context *context);

/*
 * Products of int8: weights and activations are rounded to integers, so results differ from those
 * of f32 by about a hundredth, but they are the same bits with every instruction set, number of
 * threads and m. A row of floats, of x or a column of W^T, becomes integers from -127 to 127 and a
 * scale. In f32, each operation rounded:
 *   scale = most / 127, most the largest magnitude of the row
 *   q = x (127 / most), rounded to the nearest integer, of two that are as near to the even one
 *   most below 2^-119:               scale 0, all q are 0
 *   a NaN or an infinity in the row: scale NaN, all q are 0
 * The integers' sums of products are exact. From there on in f32:
 *   y = act((sum w_scale) x_scale + bias) + residual
 * so a row of x that is not finite gives a row of NaN, and a row of W a column.
 *
 * iso_quantize_s8: x [rows][ldx >= n], q [rows][ldq >= n], scales [rows].
 * iso_pack_s8: W is [n][ldw >= k], or with trans_w [k][ldw >= n]. `packed` must be aligned to 64
 * bytes, must not overlap W, and must outlive the uses of *p. The layout is the same for all
 * instruction sets. k is at most 131071 (ISOBIT_E_LIMIT), so that no sum exceeds 32 bits.
 * iso_linear_s8 is iso_linear_f32 otherwise; without a workspace it allocates memory for the rows
 * of x as integers.
 */
typedef struct iso_packed_s8 {
    const int8_t *data;  /* [ceil(n/16)][ceil(k/8) 2][16][4]: steps 4i to 4i + 3 of a column side by
                          * side; what is beyond n or k is zero. Those that iso_pack_s8 did not
                          * make may be -128, too: the sums are exact. */
    const float *scales; /* those of the columns, 16 ceil(n/16) */
    const int32_t *start; /* -128 times the sums of the columns, as many */
    size_t n, k;
} iso_packed_s8;

ISOBIT_API iso_status iso_quantize_s8(int8_t *q, size_t ldq, float *scales, const float *x,
                                      size_t ldx, size_t rows, size_t n,
                                      const iso_context *context);
ISOBIT_API iso_status iso_pack_s8_bytes(size_t *bytes, size_t n, size_t k);
ISOBIT_API iso_status iso_pack_s8(iso_packed_s8 *p, void *packed, size_t packed_bytes,
                                  const float *w, size_t ldw, size_t n, size_t k, int trans_w,
                                  const iso_context *context);
ISOBIT_API iso_status iso_linear_s8(float *y, size_t ldy, const float *x, size_t ldx,
                                    const iso_packed_s8 *w, size_t m,
                                    const iso_linear_options *options, const iso_context *context);
ISOBIT_API iso_status iso_linear_s8_workspace_bytes(size_t *bytes, const iso_packed_s8 *w, size_t m,
                                                    const iso_context *context);

/*
 * Weights of 4 or 8 bits, packed by iso_pack_q, times rows of x that are rounded to int8, in blocks
 * of 32: what programs for such models mostly do. Faster than iso_linear_q, most of all with few
 * rows; with many rows weights of 8 bits gain only where CPUs have products of integers (VNNI, dot
 * products). Results differ by about a hundredth: less than by the rounding of weights to 4 bits.
 * Each block of a row, the last of which may be 16 long, becomes integers and a scale as a row of
 * iso_quantize_s8 does. From +0 on, for each block in order (with groups of 16: for each half of
 * one), in f32, each operation rounded:
 *   y = fma((sum of products of integers, exact), w_scale x_scale, y)
 *   y = fma(w_offset, (sum of the row's integers) x_scale, y)             if there are offsets
 * and in the end y = act(y + bias) + residual. The bits are the same with every instruction set,
 * number of threads and m. A NaN or an infinity in a row of x gives a row of NaN.
 * iso_linear_q otherwise; without a workspace it allocates memory for the integers.
 */
ISOBIT_API iso_status iso_linear_q_s8(float *y, size_t ldy, const float *x, size_t ldx,
                                      const iso_packed_q *w, size_t m,
                                      const iso_linear_options *options,
                                      const iso_context *context);
ISOBIT_API iso_status iso_linear_q_s8_workspace_bytes(size_t *bytes, const iso_packed_q *w,
                                                      size_t m, const iso_context *context);

/*
 * y = W x for an unpacked matrix: y [n], x [k], W [n][ldw >= k]. Each y[j] is a dot product in an
 * order of its own (docs/numerics.md), so its bits differ from those of iso_gemm_f32. y must not
 * overlap x or W. With trans_w W is [k][ldw >= n], and the call is iso_gemm_f32 with x as one row:
 * the same bits, and the same workspace.
 */
ISOBIT_API iso_status iso_gemv_f32(float *y, const float *w, size_t ldw, const float *x, size_t n,
                                   size_t k, int trans_w, const iso_context *context);

/* ------------------------------------------------------------------------------------- rows */

/*
 * Softmax of each row: y = exp(x - max) / sum, or with `log` y = x - max - log(sum).
 * x [rows][ldx >= n], y [rows][ldy >= n]; y may be x itself. lengths [rows], each at most n: only
 * the first lengths[i] elements of row i take part; the others are written as 0 (log: -Inf). mask
 * [rows][ldm >= n]: an element whose byte is 0 does not take part, likewise. Elements that do not
 * take part are never used in arithmetic: NaN there has no effect. -Inf gives weight 0. A row of
 * which no element takes part is all 0 (log: -Inf). A row that takes part with -Inf only is NaN
 * (IEEE), or with `safe` all 0 (log: -Inf). A NaN or +Inf that takes part makes the elements of its
 * row that take part NaN.
 */
typedef struct iso_softmax_options {
    size_t size; /* sizeof(iso_softmax_options) */
    int log;
    int safe;
    const size_t *lengths;
    const uint8_t *mask;
    size_t ldm;
} iso_softmax_options;

ISOBIT_API iso_status iso_softmax_f32(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                      size_t n, const iso_softmax_options *options,
                                      const iso_context *context);

/*
 * The two numbers of each row with which a log-softmax needs no row of its own: max[i], the largest
 * element of row i, with a zero as -0, and log_sum[i] = log(sum of exp(x - max)). x
 * [rows][ldx >= n], max [rows], log_sum [rows], which must not overlap x or each other. In float,
 * each step rounded,
 *   (x - max[i]) - log_sum[i]
 * has the bits that iso_softmax_f32 gives with `log` and `safe`, and never falls where x rises.
 * max + log_sum is the log-sum-exp of the row.
 *   -Inf only: max is -FLT_MAX and log_sum 0, so that the formula gives -Inf.
 *   NaN or +Inf in the row: log_sum is NaN, and max the largest element that is not NaN, -Inf
 *   where there is none.
 */
ISOBIT_API iso_status iso_logsumexp_f32(float *max, float *log_sum, const float *x, size_t ldx,
                                        size_t rows, size_t n, const iso_context *context);

/*
 * Layer normalisation of each row of t = x + residual (residual may be NULL):
 *   y = gamma (t - mean(t)) / sqrt(var(t) + eps) + beta, var divided by n; gamma and beta [n],
 * NULL for 1 and 0. RMS normalisation: y = gamma t / sqrt(mean(t^2) + eps).
 * x [rows][ldx >= n], residual [rows][ldr >= n], y [rows][ldy >= n]; y may be x or residual itself.
 * sum [rows][lds >= n], where given, receives t (it may be x or residual itself). eps must be
 * finite and >= 0.
 */
typedef struct iso_norm_options {
    size_t size;               /* sizeof(iso_norm_options) */
    const float *gamma, *beta; /* beta is not used by the RMS norm */
    float eps;
    const float *residual;
    size_t ldr;
    float *sum;
    size_t lds;
} iso_norm_options;

ISOBIT_API iso_status iso_layernorm_f32(float *y, size_t ldy, const float *x, size_t ldx,
                                        size_t rows, size_t n, const iso_norm_options *options,
                                        const iso_context *context);
ISOBIT_API iso_status iso_rmsnorm_f32(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                      size_t n, const iso_norm_options *options,
                                      const iso_context *context);

/* y = act(x + bias) + residual over rows x n; bias [n] and residual may be NULL; y may be x. */
typedef struct iso_eltwise_options {
    size_t size; /* sizeof(iso_eltwise_options) */
    const float *bias;
    iso_activation act;
    const float *residual;
    size_t ldr;
} iso_eltwise_options;

ISOBIT_API iso_status iso_eltwise_f32(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                      size_t n, const iso_eltwise_options *options,
                                      const iso_context *context);

/*
 * y = alpha x + beta y over rows x n, alpha x rounded first: x [rows][ldx >= n], y [rows][ldy >=
 * n], which may be x itself. y is read only when beta is not 0; x always, so that 0 times NaN is
 * NaN.
 */
ISOBIT_API iso_status iso_axpby_f32(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                    size_t n, float alpha, float beta, const iso_context *context);

/*
 * y = act(a) b over rows x n, the gate of GEGLU, SwiGLU and their like: act(a) rounded, with the
 * bits of iso_eltwise_f32, and the product rounded. a [rows][lda >= n], b [rows][ldb >= n], y
 * [rows][ldy >= n], which may be a or b itself. a and b may be parts of the rows of one product:
 * with the gate first b = a + n and lda = ldb = 2 n.
 */
ISOBIT_API iso_status iso_gate_f32(float *y, size_t ldy, const float *a, size_t lda, const float *b,
                                   size_t ldb, size_t rows, size_t n, iso_activation act,
                                   const iso_context *context);

/* -------------------------------------------------------------------------------- attention */

/*
 * o = softmax(scale q k^T + bias) v for each batch item and head, by blocks with an online
 * softmax: memory O(S dh), never S x S. With a soft cap o = softmax(softcap tanh(scale q k^T /
 * softcap) + bias) v.
 *   q, o: element (b, h, i, c) lies at b*batch + h*head + i*seq + c of its strides; the same for v
 *   and k with key index j, unless key_panels is set.
 * Tensors may be views of anything as long as dh is contiguous; o must not overlap the inputs.
 * dh is at most 512.
 */
typedef struct iso_strides {
    size_t batch, head, seq;
} iso_strides;

/*
 * As bias_strides.seq: the bias depends on j - i alone, as if rows were -1 elements apart. That of
 * query i and key j lies at b*batch + h*head + j - i. So a head has Sq - 1 + Sk elements, Sq - 1 of
 * which come before its first query and key. All of them may be read, seen or not.
 */
#define ISOBIT_BY_DISTANCE ((size_t)-1)

typedef struct iso_attention_shape {
    size_t B, H;   /* batch, heads */
    size_t Sq, Sk; /* queries; keys (before key_lengths) */
    size_t dh;
    iso_strides q, k, v, o;
} iso_attention_shape;

typedef struct iso_attention_options {
    size_t size; /* sizeof(iso_attention_options) */
    float scale; /* must be set: 1/sqrt(dh) as a rule. NULL options: 1/sqrt(dh) rounded to float */
    int causal;  /* query i sees keys 0 .. past + i */
    size_t past; /* how many keys precede the first query (cached decoding) */
    const size_t *key_lengths; /* [B], each <= Sk: keys beyond are never read; NULL: all Sk */
    const float *bias;         /* added to the scaled scores; key contiguous. -Inf removes a key */
    iso_strides bias_strides;  /* 0 to broadcast over batch or head; ISOBIT_BY_DISTANCE */
    float *weights;            /* NULL, or receives softmax(...), key contiguous, 0 where masked */
    iso_strides weights_strides;
    /*
     * Keys already in panels as iso_key_panels_append writes them: k.seq is not used, and k.batch
     * and k.head step from one head's panels to the next one's.
     */
    int key_panels;
    size_t window; /* 0, or each query sees only the last `window` of the keys it would see */
    float softcap; /* 0: none; else above 0 and finite (ISOBIT_E_OPTION) */
} iso_attention_options;

ISOBIT_API iso_status iso_attention_f32(float *o, const float *q, const float *k, const float *v,
                                        const iso_attention_shape *shape,
                                        const iso_attention_options *options,
                                        const iso_context *context);
ISOBIT_API iso_status iso_attention_f32_workspace_bytes(size_t *bytes,
                                                        const iso_attention_shape *shape,
                                                        const iso_attention_options *options,
                                                        const iso_context *context);

/*
 * The layout for key caches: panels of 16 keys, each [dh][16], so that a step of decoding reads
 * them at full bandwidth. One head with room for `capacity` keys takes iso_key_panels_floats; the
 * first n keys are the first iso_key_panels_floats(n, dh) of these floats. Append writes `count`
 * keys (row-major, ldk >= dh) to positions first, first+1, ...
 */
ISOBIT_API size_t iso_key_panels_floats(size_t capacity, size_t dh); /* 0 on overflow */
ISOBIT_API iso_status iso_key_panels_append(float *panels, size_t first, const float *k, size_t ldk,
                                            size_t count, size_t dh, const iso_context *context);

/*
 * The same with keys and values of 16 bits, as caches may hold them: half the memory, for which
 * decoding at long contexts waits. They are widened in registers, exactly,
 * so results have the bits that iso_attention_f32 gives for the widened keys and values. Meant for
 * few queries; any number works. Strides of k and v count 16-bit elements:
 *   k: panels of 32 keys, each [dh][32], as iso_keys_w16_append writes them; k.seq is not used, nor
 *      is key_panels. Keys j and 16 + j of BF16 lie side by side, at 2j and 2j + 1, those of F16 in
 *      order. The last panel is read as a whole, whatever is there.
 *   v: rows of dh rounded up to 32 elements, each 32 of which have the order of the keys of a
 *      panel, as iso_values_w16_append writes them. v.seq is at least that width.
 * o and weights must not lie between the first and the last element of k or of v.
 */
ISOBIT_API iso_status iso_attention_w16(float *o, const float *q, const uint16_t *k,
                                        const uint16_t *v, iso_w16 type,
                                        const iso_attention_shape *shape,
                                        const iso_attention_options *options,
                                        const iso_context *context);
ISOBIT_API iso_status iso_attention_w16_workspace_bytes(size_t *bytes,
                                                        const iso_attention_shape *shape,
                                                        const iso_attention_options *options,
                                                        const iso_context *context);

/*
 * Keys and values for it, rounded to the nearest number of the type, of two equally near ones to
 * the even one: what is too large for it becomes an infinity (F16: from 65520 on), subnormal
 * numbers are kept, a NaN stays one. Append writes `count` rows of floats (ldk, ldv >= dh) to
 * positions first, first+1, ... of one head; other keys keep their bits, columns of values beyond
 * dh become 0. `elements` is how many 16-bit elements a head takes, with room for `capacity` keys;
 * 0 on overflow.
 */
ISOBIT_API size_t iso_keys_w16_elements(size_t capacity, size_t dh);
ISOBIT_API size_t iso_values_w16_elements(size_t capacity, size_t dh);
ISOBIT_API iso_status iso_keys_w16_append(uint16_t *panels, size_t first, const float *k,
                                          size_t ldk, size_t count, size_t dh, iso_w16 type,
                                          const iso_context *context);
ISOBIT_API iso_status iso_values_w16_append(uint16_t *values, size_t first, const float *v,
                                            size_t ldv, size_t count, size_t dh, iso_w16 type,
                                            const iso_context *context);

/* y = x rounded in the same way, still as floats, over rows x n: x [rows][ldx >= n], y
 * [rows][ldy >= n], which may be x itself. */
ISOBIT_API iso_status iso_round_w16(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                    size_t n, iso_w16 type, const iso_context *context);

/* ------------------------------------------------------------------------------- embeddings */

/*
 * y[i] = scale * table[ids[i]] + positions[rows[i]]: y [count][ldy >= d], table [vocabulary][d],
 * positions [..][d] or NULL; position_rows [count], or NULL for 0, 1, 2 ... Every id must be below
 * `vocabulary` and every position row below `position_count` (ISOBIT_E_RANGE, nothing written).
 */
ISOBIT_API iso_status iso_embed_f32(float *y, size_t ldy, const uint32_t *ids, size_t count,
                                    const float *table, size_t vocabulary, size_t d, float scale,
                                    const float *positions, const uint32_t *position_rows,
                                    size_t position_count, const iso_context *context);

/* The same with a table of 16-bit numbers, which are widened exactly, and the same bits. y must not
 * overlap the table. */
ISOBIT_API iso_status iso_embed_w16(float *y, size_t ldy, const uint32_t *ids, size_t count,
                                    const uint16_t *table, iso_w16 type, size_t vocabulary,
                                    size_t d, float scale, const float *positions,
                                    const uint32_t *position_rows, size_t position_count,
                                    const iso_context *context);

/* And with a table of blocks, vocabulary rows of them, see iso_pack_q. */
ISOBIT_API iso_status iso_embed_q(float *y, size_t ldy, const uint32_t *ids, size_t count,
                                  const void *table, const iso_q_format *format, size_t vocabulary,
                                  size_t d, float scale, const float *positions,
                                  const uint32_t *position_rows, size_t position_count,
                                  const iso_context *context);

/*
 * Sinusoidal position tables, computed in double and rounded once. t = first + row:
 *   INTERLEAVED  y[2i] = sin(t / 10000^(2i/d)),  y[2i+1] = cos(the same)   (Vaswani et al. 2017)
 *   HALF_D       y[i] = sin(t / 10000^(2i/d)),   y[h+i] = cos(the same), h = ceil(d/2) (HF Marian)
 *   HALF_HM1     y[i] = sin(t f), y[h+i] = cos(t f), f = 10000^(-i/(h-1)), h = d/2 (tensor2tensor)
 * An odd d: the sines have one more column (HALF_HM1: the last column is 0). positions below 2^20.
 */
typedef enum iso_position_layout {
    ISOBIT_POS_INTERLEAVED = 0,
    ISOBIT_POS_HALF_D,
    ISOBIT_POS_HALF_HM1
} iso_position_layout;

ISOBIT_API iso_status iso_positions_f32(float *y, size_t ldy, size_t first, size_t count, size_t d,
                                        iso_position_layout layout, const iso_context *context);

/*
 * Rotary position embedding (Su et al. 2021) of rows of heads: element c of a head at
 * x[row*ldx + head*dh + c], ldx >= heads*dh; y likewise, and it may be x itself. Queries and keys
 * that lie side by side are heads of one call. Of each head the first `rotary` elements turn in
 * pairs, the others are copied; `rotary` is even and at most dh, and dh at most 512
 * (ISOBIT_E_DIM). A pair (a, b) becomes
 *   (a cos - b sin, b cos + a sin), each product and each sum rounded.
 *   HALF         pairs are elements i and i + rotary/2 (Llama and GPT-NeoX as in Hugging Face's)
 *   INTERLEAVED  pairs are elements 2i and 2i + 1      (the first Llama, GPT-J)
 * table [position_count][ld >= rotary] is that of iso_rope_table_f32; row t turns by row
 * position_rows[t] of it, or by row t where that is NULL. Every one must be below `position_count`
 * (ISOBIT_E_RANGE, nothing written).
 */
typedef enum iso_rope_layout { ISOBIT_ROPE_HALF = 0, ISOBIT_ROPE_INTERLEAVED } iso_rope_layout;

ISOBIT_API iso_status iso_rope_f32(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                                   size_t heads, size_t dh, size_t rotary, iso_rope_layout layout,
                                   const float *table, size_t ld, const uint32_t *position_rows,
                                   size_t position_count, const iso_context *context);

/*
 * Its table, for either layout: row r is of position t = first + r,
 *   table[i] = scaling cos(t inv_freq[i]),  table[rotary/2 + i] = scaling sin(t inv_freq[i])
 * for i below rotary/2. table [count][ld >= rotary], inv_freq [rotary/2], as a rule
 * base^(-2i/rotary). The angle is the exact product, whatever the position, and the result within
 * 0.50001 ULP of the formula: the nearest float, but where two are nearly as near. scaling is
 * finite: 1, or what a model calls attention scaling. `rotary` is even (ISOBIT_E_DIM), first +
 * count at most 2^29 (ISOBIT_E_LIMIT).
 */
ISOBIT_API iso_status iso_rope_table_f32(float *table, size_t ld, size_t first, size_t count,
                                         const float *inv_freq, size_t rotary, float scaling,
                                         const iso_context *context);

#ifdef __cplusplus
}
#endif

#endif
