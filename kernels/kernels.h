/* SPDX-License-Identifier: MIT
 *
 * The contract between the kernels and those who call them (dispatch/, tests/, bench/).
 *
 * A kernel is a pure function of one thread: no allocation, no globals, no error codes. The caller
 * has checked the arguments; debug builds assert them again. Kernels read and write nothing
 * outside the operands named here and ask for no alignment.
 *
 * The order of operations of each kernel is part of its contract (docs/numerics.md): all
 * instruction sets give the same bits.
 */
#ifndef ISOBIT_KERNELS_H
#define ISOBIT_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Floats are computed as floats: not with the longer registers of the x87, nor in double, as gcc
 * does on s390x when it is asked for ISO C. 16 speaks of types shorter than float.
 */
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 16
#error "excess precision: compile with -msse2 -mfpmath=sse (x86) or -fexcess-precision=fast (s390x)"
#endif

/* Constants of the canonical order. Frozen: a change needs a new ISOBIT_NUMERICS_VERSION. */
#define ISO_K_BLOCK 512  /* gemm: chains of at most so many products, then one add */
#define ISO_LANES 32     /* virtual lanes of row reductions */
#define ISO_KEY_BLOCK 64 /* attention: keys between two updates of the running maximum */

/* Layout of packed matrices: panels of so many columns. The same for all instruction sets. */
#define ISO_PANEL 16

/* And of 16-bit matrices: [n/32][k][32], columns j and 16 + j of BF16 side by side, at 2j and 2j +
 * 1, those of F16 in order. */
#define ISO_WIDE_PANEL 32
enum { ISO_W16_F16, ISO_W16_BF16 };
/* Where column j of a wide panel is in a step. */
static inline size_t iso_w16_place(size_t j, int type) {
    return type == ISO_W16_BF16 ? j % ISO_PANEL * 2 + j / ISO_PANEL : j;
}

/*
 * And of weights of 4 or 8 bits in groups along k, each with a scale, and maybe an offset: panels
 * of 16 columns, [n/16][k/group], each the 16 scales, F16 or f32, and the offsets, then the numbers
 * of a group. Those of 8 bits lie step by step, [group][16]; of those of 4 bits each column has a
 * word for 8 steps, [group/8][16], the first of them in its uppermost bits. All are signed, in
 * two's complement, but those of 4 bits with offsets; and multiples of words.
 *
 * ISO_Q_I8: scales and offsets of groups are int8, and 256 steps are a block, which begins with 16
 * F16 that its scales, and 16 that its offsets are multiplied with.
 */
enum { /* bits of a type; or 8, F16, 32 */
       ISO_Q_4 = 1,
       ISO_Q_F32 = 2,
       ISO_Q_64 = 4,
       ISO_Q_128 = 8,
       ISO_Q_16 = ISO_Q_64 | ISO_Q_128,
       ISO_Q_OFFSETS = 16,
       ISO_Q_I8 = 32 /* not with ISO_Q_F32 */
};
#define ISO_Q_STEPS 8
#define ISO_Q_BLOCK 256
static inline size_t iso_q_group(int type) {
    const int code = type & ISO_Q_16;
    return code == ISO_Q_16 ? 16 : (size_t)32 << (code >> 2);
}
/* Steps after which all is as before: what a k must be a multiple of. */
static inline size_t iso_q_block(int type) {
    return type & ISO_Q_I8 ? ISO_Q_BLOCK : iso_q_group(type);
}
/* Words of a panel: before the groups of a block, of scales and offsets of a group, of a block. */
static inline size_t iso_q_head_words(int type) {
    return !(type & ISO_Q_I8) ? 0 : type & ISO_Q_OFFSETS ? 16 : 8;
}
static inline size_t iso_q_scale_words(int type) {
    const size_t words = type & ISO_Q_I8 ? 4 : type & ISO_Q_F32 ? 16 : 8;
    return type & ISO_Q_OFFSETS ? 2 * words : words;
}
static inline size_t iso_q_words(int type) {
    const size_t numbers = iso_q_group(type) * (type & ISO_Q_4 ? 2 : 4);
    return iso_q_head_words(type) +
           iso_q_block(type) / iso_q_group(type) * (iso_q_scale_words(type) + numbers);
}

/* And of int8: [n/16][k/4][16][4], four steps of a column side by side, k rounded up to a multiple
 * of ISO_S8_STEPS. The largest k: sums of 127 * 127 stay below 2^31, also after a step more. */
#define ISO_S8_STEPS 8
#define ISO_S8_MOST 131071

/* What a row of floats is multiplied with to become integers, and their scale. `most` is its
 * largest magnitude. 0: all integers are 0, as the row is not finite (the scale is NaN), or the
 * scale would not be a normal number (it is 0). */
static inline float iso_s8_inverse(float *scale, float most, int finite) {
    if (!finite || most < 0x1p-119f) {
        *scale = finite ? 0 : __builtin_nanf("");
        return 0;
    }
    *scale = most / 127;
    return 127 / most;
}
/* The nearest integer, of those that are as near the even one. */
static inline int8_t iso_s8_nearest(float x) {
    const union {
        float value;
        int32_t bits;
    } sum = {x + 0x1.8p23f};
    return (int8_t)(sum.bits - 0x4b400000);
}

/*
 * Rows of int8 that multiply weights in groups: blocks of 32 steps, a cache line each. Eight steps
 * lie in the order 7 5 3 1 6 4 2 0, since a word of weights of 4 bits, as a number, has the steps 7
 * 5 3 1 in the lower halves of its bytes and 6 4 2 0 in the upper ones, the lowest byte first.
 */
#define ISO_S8_BLOCK 32
struct iso_s8_block {
    int8_t q[ISO_S8_BLOCK]; /* what is beyond the row is 0 */
    int32_t start[3];       /* -8 times the sum of the first 16, of the others, of all */
    float scaled[3];        /* these sums times the scale */
    float scale;
    int32_t unused;
};
static inline size_t iso_s8_blocks(size_t k) { return (k + ISO_S8_BLOCK - 1) / ISO_S8_BLOCK; }

#define ISO_L2_FLOATS ((size_t)1 << 18) /* what is more does not stay in L2 */

/* Numbers of 16 bits as floats, exactly; a NaN of F16 becomes quiet. */
static inline float iso_bf16_value(uint16_t bits) {
    const union {
        uint32_t bits;
        float value;
    } f = {(uint32_t)bits << 16};
    return f.value;
}
static inline float iso_f16_value(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fff;
    union {
        uint32_t bits;
        float value;
    } f;
    if (rest < 0x400) { /* zero and subnormal numbers: multiples of 2^-24 */
        f.value = (float)rest * 0x1p-24f;
        f.bits |= sign;
        return f.value;
    }
    f.bits = sign | ((rest << 13) + (rest < 0x7c00 ? 112U << 23 : 224U << 23));
    if (rest > 0x7c00)
        f.bits |= 0x400000;
    return f.value;
}

/* And back, rounded to nearest even: what is too large becomes an infinity, subnormal numbers are
 * kept, and a NaN becomes quiet, with the upper bits of its payload. */
static inline uint16_t iso_bf16_bits(float x) {
    const union {
        float value;
        uint32_t bits;
    } f = {x};
    const uint32_t rounded = (f.bits + 0x7fff + (f.bits >> 16 & 1)) >> 16;
    return (uint16_t)((f.bits & 0x7fffffff) > 0x7f800000 ? f.bits >> 16 | 0x40 : rounded);
}
static inline uint16_t iso_f16_bits(float x) {
    union {
        float value;
        uint32_t bits;
    } f = {x};
    const uint32_t sign = f.bits >> 16 & 0x8000, rest = f.bits & 0x7fffffff;
    if (rest > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (rest >> 13 & 0x3ff));
    if (rest >= 0x477ff000) /* 65520, half-way between the largest and what would follow it */
        return (uint16_t)(sign | 0x7c00);
    if (rest >= 0x38800000)
        return (uint16_t)(sign | ((rest + 0xfff + (rest >> 13 & 1) - (112U << 23)) >> 13));
    f.bits = rest; /* below 2^-14 numbers are multiples of 2^-24, as are floats from 0.5 on */
    f.value += 0.5f;
    return (uint16_t)(sign | (f.bits - 0x3f000000));
}
static inline uint16_t iso_w16_bits(float x, int type) {
    return type == ISO_W16_BF16 ? iso_bf16_bits(x) : iso_f16_bits(x);
}
static inline float iso_w16_value(uint16_t bits, int type) {
    return type == ISO_W16_BF16 ? iso_bf16_value(bits) : iso_f16_value(bits);
}

/*
 * gemm_strip: the product of a strip of at most MR rows with any number of columns.
 *
 *     t[i][j] = chain over p = 0 .. k-1 of fma(a[p*as + i], b[j/16 * bps + p*bs + j%16], .)
 *
 *               p ->                          bps            C  +--- ldc ---
 *     a: k-major strip                   <---------->           |  t[0][0..n)
 *        +--+--+--+- as between       b: +----------+-----      |  ...
 *      i |  |  |  |   two p              | 16 wide  |  ...      |  t[m-1]
 *      | |  |  |  |                    p | panel 0  | panel 1
 *      v +--+--+--+                    | |  bs between
 *        m <= mr rows                  v |  two p
 *
 * mode ASSIGN: C = t, chain from +0.  ADD: C = C + t, chain from +0.  CONTINUE: C = the chain
 * begun with C. k <= ISO_K_BLOCK is the caller's affair. A row-major B is the case bps = 16,
 * bs = ldb. Columns beyond n are not read. BY_ROW, beside ASSIGN or CONTINUE, of up to 4 rows
 * and a row-major B: the rows of B follow each other, and may be read so, in one run.
 */
#define ISO_LINEAR_COLUMNS 48
enum { ISO_STRIP_ASSIGN = 0, ISO_STRIP_ADD = 1, ISO_STRIP_CONTINUE = 2, ISO_STRIP_BY_ROW = 4 };
enum {
    ISO_DIRECT_ADD = 1,
    ISO_DIRECT_BEYOND_L2 = 2,
    ISO_DIRECT_NEXT = 4,
    ISO_DIRECT_AHEAD = 8,
    ISO_DIRECT_WHOLE = 16
};

/*
 * gemm_direct: the same sums, from +0, with A as it lies, row-major: element (i, p) at a[i*lda +
 * p]. At most DIRECT_MR rows, which is fewer than MR: a row takes a register for its address;
 * DIRECT_TALL, if n is at most VECTOR_FLOATS. mode: with ADD C = C + t, else C = t; BEYOND_L2: B,
 * in panels, comes from beyond L2 and is prefetched into it first, as L1 has few misses at a time;
 * NEXT: the rows of A may come from beyond L2, and NEXT_ROWS or DIRECT_MR of them prefetch what
 * comes in them some steps later, then the rows that follow.
 *
 * gemm_linear: the same with DIRECT_MR rows, a multiple of ISO_LINEAR_COLUMNS columns, k > 0 and B
 * in packed panels, bs = 16. bias [n], unless it is NULL, is added to the result, which then goes
 * through ReLU if `relu` says so. prefetch: NULL, or for each ISO_LINEAR_COLUMNS columns the
 * address of what is prefetched into L2 meanwhile: prefetch_bytes bytes, fewer than 2^32, or,
 * unless prefetch_ld is 0, k lines with that stride in floats. interleaved: many bytes may be three
 * interleaved runs, which is faster where the hardware prefetches each of them within its page.
 *
 * gemm_packing: the same sums with DIRECT_MR rows, a multiple of ISO_LINEAR_COLUMNS columns, k > 0
 * and a row-major B, which goes into panels [n/16][k][16] on the way. mode: as that of gemm_direct,
 * but BEYOND_L2: B comes from memory.
 *
 * gemm_strip_bt: the same sums with A as a strip and a transposed B: b[j*ldb + p]. At most MR and
 * ROWS_IN_PLACE_BT rows. mode: ADD; NEXT: the rows of B come from beyond L2, and those that follow
 * them, also beyond the last one, are prefetched into it; AHEAD: likewise, but of each row what
 * comes some steps later. WHOLE: few rows of A do not read both halves of a row of B side by side,
 * which is faster from L2 only.
 */

/*
 * gemm_w16: the sums of gemm_direct, at most W16_MR rows, with B in wide panels of 16-bit
 * elements, each `bps` behind the one before, which are widened exactly in registers. All columns
 * of the last panel are read. mode: ADD, and BEYOND_L2, where B comes from there.
 *
 * gemm_widen: k steps of n columns of such a B into panels [n/16][k][16]. A NaN of BF16 keeps its
 * bits, one of F16 becomes quiet.
 */

/*
 * gemm_q, gemm_dequantise: the same with weights in groups, at most Q_MR rows, k a multiple of
 * their block, `bps` words between panels. A weight is its number times its scale, rounded to f32,
 * or with offsets fma(number, scale, offset).
 *
 * quantize_s8: rows of n floats become int8, x = scale * q about, scale = max |x| / 127; see
 * iso_quantize_s8. q [rows][ldq >= padded]: what is beyond n is 0. flip: 0, or 0x80, with which
 * each integer is exclusive-ored.
 *
 * gemm_s8: C = (float of sums times the column's scale) times the row's scale, + bias [n] unless it
 * is NULL. a [m][lda >= k], k a multiple of ISO_S8_STEPS, flipped by s8_flip of the table. b:
 * panels, each bps bytes behind the one before; scales and start have as many elements as panels
 * have columns. start: what sums begin with where A is flipped: -128 times the sum of the column of
 * B; it makes up for the 128 that each integer of A is too large. Sums are exact.
 */

/*
 * quantize_blocks: rows of n floats become blocks, [rows][ldt >= iso_s8_blocks(n)], each as a row
 * of quantize_s8. The float of a sum is multiplied by the scale, rounded.
 *
 * gemm_q_s8: weights of the layout of gemm_q, k a multiple of their block, times such rows, any
 * number of them. From +0 on, for each block of a row (or, with groups of 16, each half)
 * in order
 *     c = fma(float of the exact sum of products of integers, weights' scale times row's scale, c)
 *     c = fma(weights' offset, the row's scaled sum, c)        if there are offsets
 * and in the end + bias [n] unless it is NULL. mode: BEYOND_L2, as gemm_q.
 */

/*
 * Native numerics, of which levels alone have kernels: bits depend on the CPU, and on nothing else.
 *
 * round_b16: rows of n floats to BF16, to nearest even; NaN stays NaN, and a subnormal number may
 * become 0. to [rows][ldt >= iso_b16_padded(n)]: what is beyond n is 0.
 *
 * gemm_b16: C [m][n], or with ISO_DIRECT_ADD C + the sums of products of BF16 in f32, by whatever
 * instruction the CPU has, each sum in an order that k alone decides. a [m][lda >=
 * iso_b16_padded(k)], 0 beyond k; b: the wide panels of gemm_w16, BF16, as many elements apart as
 * bps says, of which no step beyond k is read. Any number of rows. Subnormal numbers may count as
 * 0. mode: also BEYOND_L2, as gemm_w16.
 */
#define ISO_B16_STEPS 32 /* a line, and what a tile of AMX has */
static inline size_t iso_b16_padded(size_t k) {
    return (k + ISO_B16_STEPS - 1) / ISO_B16_STEPS * ISO_B16_STEPS;
}
/* From a row of rounded A to the next: a line more than there is, so that rows do not alias. */
static inline size_t iso_b16_ld(size_t k) {
    return iso_b16_padded(k < ISO_K_BLOCK ? k : ISO_K_BLOCK) + ISO_B16_STEPS;
}

/*
 * gemm_pack: n vectors of k elements, element (j, p) at src[j*si + p*sp], into panels of `width`:
 * dst[j/width * k*width + p*width + j%width], vectors beyond n zero. width is 16 or a multiple of
 * it for B, mr for A.
 *
 * gemm_epilogue: c = act(alpha t + beta c + bias) + residual, row by row; t may be c. The steps
 * that have nothing to do (alpha 1, beta 0, NULL, NONE) are left out; beta c is one fma.
 */
struct iso_epilogue {
    float alpha, beta;
    const float *bias; /* [n] */
    int act;           /* iso_activation */
    const float *residual;
    size_t ldr;
    int beyond_l2; /* operands come from a slow L3, or from memory */
    int stream;    /* non-temporal stores to c, which is neither t nor the residual */
};

/* gemv: y[j] = dot(row j of W [n][ldw], x) over 32 lanes, then their tree. interleaved: several
 * rows at a time wherever they come from. */

/* softmax: see iso_softmax_f32. flags: */
enum { ISO_SOFTMAX_LOG = 1, ISO_SOFTMAX_SAFE = 2 };

/* logsumexp: see iso_logsumexp_f32; a row of n = 0 is like one of -Inf. */

/*
 * layernorm, rmsnorm: see iso_norm_options; pointers may be NULL as there. stream: NULL, or, for
 * non-temporal stores to y, ISO_STREAM_FLOATS floats of scratch for x + residual.
 */
#define ISO_STREAM_FLOATS 1984
struct iso_norm {
    const float *gamma, *beta;
    float eps;
    const float *residual;
    size_t ldr;
    float *sum;
    size_t lds;
    int beyond_l2; /* as that of iso_epilogue */
    float *stream;
};

/*
 * attention: one run of queries of one head.
 *   q [nq][ldq], o [nq][ldo]; v [nk][ldv]; keys in panels of 16, each [dh][16], or, where
 *   key_panels is NULL, k [nk][ldk]: then with more than ISO_QUERIES_FEW queries, and no weights.
 *   nq_after rows of q follow them, which are prefetched into L2 in the end.
 *   nk_after: with so few queries that keys are in the lanes, so many keys of k_after, panels, and
 *   as many values of v_after are prefetched into L2: those of the next head.
 *   Query i sees keys below min(nk, see + i) when causal (see >= 1), else below nk; with a window,
 *   unless it is 0, only the last `window` of them.
 *   softcap: 0, or scores are softcap * tanh(scale * (q, k)).
 *   bias [nq][ldb] and weights [nq][ldw] may be NULL; weights has nk_weights columns (>= nk),
 *   those that are not visible are written as 0. ldb -1: that of query i and key j is bias[j - i].
 *   scratch: ISO_ATTENTION_SCRATCH(nq, dh) floats. nq <= ISO_QUERY_BLOCKS * ISO_QUERY_BLOCK: as
 *   many blocks share the keys and values that come from beyond L2.
 *
 *   heads: 0, or instead of panels, one query of each of so many heads, with keys k [nk][ldk]. A
 *   head's operands lie q_head, k_head, ... behind those of the head before.
 *
 * attention_w16: the same with keys and values of 16 bits, of type16: k16 in wide panels, [dh][32],
 *   of which the last one is read as a whole; rows v16 [nk][ldv], each 32 elements of which lie as
 *   a step of a wide panel, and are read as a whole. k_after and v_after are such ones. nq is at
 *   most ISO_QUERY_BLOCK, there are no heads; k, v and key_panels are not used.
 */
#define ISO_HEADS 32                 /* at most */
#define ISO_HEADS_FLOATS ISO_K_BLOCK /* of their rows of values, at most */
#define ISO_QUERY_BLOCK 64
#define ISO_QUERY_BLOCKS 4
#define ISO_QUERIES_FEW 8
#define ISO_COLUMNS_SCRATCH(dh)                                                                    \
    ((size_t)ISO_QUERY_BLOCK * (ISO_KEY_BLOCK + 2) + ((dh) + ISO_PANEL - 1) / ISO_PANEL * ISO_PANEL)
#define ISO_COLUMNS_STATE(dh) ((size_t)2 * ISO_QUERY_BLOCK * ((dh) + 1))
#define ISO_ATTENTION_SCRATCH(nq, dh)                                                              \
    (ISO_COLUMNS_SCRATCH(dh) +                                                                     \
     ((nq) + ISO_QUERY_BLOCK - 1) / ISO_QUERY_BLOCK * ISO_COLUMNS_STATE(dh))
struct iso_attention {
    float *o;
    size_t ldo;
    const float *q;
    size_t ldq;
    const float *key_panels;
    const float *k;
    size_t ldk;
    const float *v;
    size_t ldv;
    size_t nq, nk, dh;
    size_t nq_after, nk_after;
    const float *k_after, *v_after;
    int causal;
    size_t see, window;
    float scale, softcap;
    const float *bias;
    ptrdiff_t ldb;
    float *weights;
    size_t ldw, nk_weights;
    float *scratch;
    size_t heads, q_head, k_head, v_head, o_head, bias_head, weights_head;
    const uint16_t *k16, *v16;
    int type16;
};

/* Whether keys and values are more than stays in L2. */
static inline int iso_keys_exceed_l2(size_t nk, size_t dh) { return nk > ISO_L2_FLOATS / dh / 2; }

/* key_panels: see iso_key_panels_append. embed: ids and rows are in range; stream is that of
 * iso_epilogue. */

/* unary: y = f(x); y may be x. The activations, as iso_activation numbers them, and two more. */
enum {
    ISO_UNARY_NONE,
#define ACTIVATION(NAME, ...) ISO_UNARY_##NAME,
#include "activations.def"
#undef ACTIVATION
    ISO_ACTIVATIONS, /* how many there are */
    ISO_UNARY_EXP = 100,
    ISO_UNARY_ERF
};

/*
 * gate: y = act(a) b, act one of the activations; y may be a or b. a and b may be parts of the rows
 * of one matrix. beyond_l2 is that of iso_epilogue.
 */

/* positions: layout is iso_position_layout. */

/*
 * rope: rows of `heads` heads of dh elements each, the first `rotary` of which, an even number, are
 * rotated; y may be x. halves: pairs are elements i and i + rotary/2 of a head, else neighbours.
 * Row t is rotated by row position_rows[t] of the table, or t where that is NULL: rotary/2 cosines,
 * then the sines, ld >= rotary. rope_table writes such rows for the positions first, first + 1 ...,
 * below ISO_ROPE_POSITIONS.
 */
#define ISO_ROPE_MOST 512 /* dh, at most */
#define ISO_ROPE_POSITIONS ((size_t)1 << 29)
struct iso_rope {
    size_t heads, dh, rotary;
    int halves;
    const float *table;
    size_t ld;
    const uint32_t *position_rows;
};

/* fma_peak: `rounds` rounds of fma_peak_flops operations each, from registers only. s8_peak,
 * b16_peak: of s8_peak_ops and b16_peak_flops, the products of gemm_s8 and gemm_b16 and their
 * additions. */

/*
 * Before a loop whose count is known when it is compiled: unrolled in full, its arrays in
 * registers. Not in debug and sanitizer builds, where that would take minutes to compile.
 */
#if defined(ISO_ROLLED)
#define ISO_UNROLL
#define ISO_ONE_COPY __attribute__((noinline))
#elif defined(__clang__)
#define ISO_UNROLL _Pragma("clang loop unroll(full)")
#define ISO_ONE_COPY __attribute__((noinline))
#else
#define ISO_UNROLL _Pragma("GCC unroll 32")
#define ISO_ONE_COPY                                                                               \
    __attribute__((noinline, noclone)) /* large: no copies for constant arguments */
#endif
/* Before a loop of few rounds whose code is long: it stays a loop. */
#if defined(__clang__)
#define ISO_NOT_UNROLLED _Pragma("clang loop unroll(disable)")
#else
#define ISO_NOT_UNROLLED _Pragma("GCC unroll 1")
#endif
#define ISO_UNROLLED(i, n)                                                                         \
    ISO_UNROLL                                                                                     \
    for (size_t i = 0; i < (n); i++)

/* What a pointer is computed from is hidden from here on: else compilers keep an offset for each
 * row of a matrix, more than there are registers, instead of adding a stride. */
#define ISO_OPAQUE(pointer) __asm__("" : "+r"(pointer))
/* A vector that is used some times is in a register from here on: else compilers load it as an
 * operand of each instruction that uses it, more loads than there are ports for.
 * ISO_AFTER: what is computed from the pointer follows what computes the vector. Additions to
 * addresses among FMAs cost Intel's cores up to a twentieth: they share ports, and which of them an
 * instruction gets depends on those around it. */
#if defined(__x86_64__) || defined(__i386__)
#define ISO_LOADED(v) __asm__("" : "+v"(v))
#define ISO_AFTER(v, pointer) __asm__("" : "+r"(pointer) : "v"(v))
#elif defined(__aarch64__)
#define ISO_LOADED(v) __asm__("" : "+w"(v))
#define ISO_AFTER(v, pointer) __asm__("" : "+r"(pointer) : "w"(v))
#else
#define ISO_LOADED(v) ((void)0)
#define ISO_AFTER(v, pointer)                                                                      \
    do {                                                                                           \
        (void)(v);                                                                                 \
        ISO_OPAQUE(pointer);                                                                       \
    } while (0)
#endif
/* A float that FMAs take from a lane, where they can: its broadcast from memory would be one more
 * vector instruction (`ld1r`). */
#if defined(__aarch64__)
#define ISO_LANE_OF_FMA(x) __asm__("" : "+w"(x))
#else
#define ISO_LANE_OF_FMA(x) ((void)0)
#endif
#define ISO_PASTE_(a, b) a##b
#define ISO_PASTE(a, b) ISO_PASTE_(a, b)
#define ISO_TEXT_(a) #a
#define ISO_TEXT(a) ISO_TEXT_(a)

#define ISO_INLINE static inline __attribute__((always_inline))
/* From row i of `rows` to the next. */
#define ISO_NEXT_ROW(row, ld, i, rows)                                                             \
    do                                                                                             \
        if ((i) + 1 < (rows)) {                                                                    \
            (row) += (ld);                                                                         \
            ISO_OPAQUE(row);                                                                       \
        }                                                                                          \
    while (0)

/* A precondition: checked in debug builds, where a broken one stops the program at once. */
#if defined(NDEBUG)
#define ISO_REQUIRE(condition) ((void)0)
#else
#define ISO_REQUIRE(condition) ((condition) ? (void)0 : __builtin_trap())
#endif

/* The sets that are compiled in, best first. */
enum {
#define ISA(name, ...) ISO_ISA_##name,
#include "isas.def"
#undef ISA
    ISO_ISA_COUNT
};

/* The table of a level has gemm_s8, s8_peak and what belongs to them, maybe gemm_q_s8, maybe the
 * kernels of native numerics, and no other kernel. */
struct iso_kernels {
    const char *name;          /* the folder of the set */
    unsigned isa;              /* ISO_ISA_<name> */
    unsigned mr, direct_mr;    /* most rows of a strip, and of gemm_direct, */
    unsigned direct_tall;      /* and of that where the columns are a vector or fewer */
    unsigned next_rows;        /* and with NEXT */
    unsigned w16_mr, q_mr;     /* of gemm_w16 and gemm_q */
    int s8_flip;               /* 0 or 0x80: A of gemm_s8 is exclusive-ored with it */
    int tiles;                 /* the kernel must have permitted the tiles of AMX: iso_isa_s8 */
    unsigned rows_in_place_bt; /* most rows of gemm_strip_bt */
    unsigned aliased;          /* rows of a [k][n] alias if ld is a multiple of so many floats */
    unsigned pairs_across;     /* of vectors of rows: see iso_gemm_rows_in_lanes */
    unsigned vector_floats;    /* width of a vector register, in floats */
    const struct iso_kernels *half; /* the set whose vectors are half as wide, or NULL */
    unsigned fma_peak_flops, s8_peak_ops, b16_peak_flops;
#define KERNEL(type, name, args) type(*name) args;
#include "kernels.def"
#undef KERNEL
};

/* One table for each set that is compiled in. */
#define ISA(name, ...) extern const struct iso_kernels iso_kernels_##name;
#include "isas.def"
#undef ISA

#endif
