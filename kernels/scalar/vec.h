/* SPDX-License-Identifier: MIT
 *
 * The vector vocabulary with one float a "register", in plain C; and the place where the words are
 * explained. The templates are written only in these words, so every instruction set computes
 * exactly what is written here, lane by lane.
 *
 * A target without fused multiply-add in its baseline (x86-64) gets an exact emulation instead of
 * libm's: that costs a few instructions more than a plain multiplication, libm's without the
 * instruction about a hundred.
 */
#ifndef ISOBIT_VEC_H
#define ISOBIT_VEC_H

#include <sleef.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef float vf; /* VF_N floats; VF_N is an expression, not for #if */
typedef int vm;   /* VF_N truth values */
#define VF_N 1
#define VF_REGS 16       /* registers that an algorithm may count on */
#define VF_FMA_CHAINS 12 /* independent chains that keep the FMA units busy */
#define VF_LANES_ROLLED  /* see LANES_EACH_COMPACT */
#define VF_TOGETHER 1    /* vectors that a function of math.h takes at a time, at most */

static inline uint32_t bits_of(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
static inline float float_of(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

#if defined(__FP_FAST_FMAF) || defined(__ARM_FEATURE_FMA)
static inline float fma_exact(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#else
/*
 * a*b + c with one rounding. The product of two floats is exact in double; s, their sum rounded to
 * double, rounds to the same float as the exact sum does, unless s lies exactly half-way between
 * two floats, or among the subnormal floats, whose half-way points are elsewhere. There the sum is
 * rounded to odd first: then the second rounding cannot go wrong (Boldo and Melquiond 2008).
 */
static __attribute__((noinline, cold)) float fma_to_odd(double p, double c) {
    double s = p + c, back = s - p;
    double e = (p - (s - back)) + (c - back); /* the exact error of the sum (Knuth) */
    uint64_t u;
    memcpy(&u, &s, sizeof u);
    /* e != 0 implies that s is finite and not 0. */
    if (e != 0 && (u & 1) == 0)
        u = (e > 0) == (s > 0) ? u + 1 : u - 1;
    memcpy(&s, &u, sizeof s);
    return (float)s;
}
static inline float fma_exact(float a, float b, float c) {
    double p = (double)a * (double)b, s = p + (double)c;
    uint64_t u;
    memcpy(&u, &s, sizeof u);
    uint32_t halfway = ((uint32_t)u & 0x1fffffff) == 0x10000000;
    uint32_t tiny = ((uint32_t)(u >> 32) & 0x7fffffff) - 1U < 0x38100000U - 1U; /* 0 is exact */
    return __builtin_expect((long)(halfway | tiny), 0) ? fma_to_odd(p, (double)c) : (float)s;
}
#endif

/* The first n lanes; n may exceed VF_N only where stated. */
static inline vm vm_first(size_t n) { return n > 0; }

static inline vf vf_set1(float x) { return x; }
static inline vf vf_load(const float *p) { return *p; }
static inline void vf_store(float *p, vf v) { *p = v; }
/* n lanes, 1 <= n < VF_N (or = VF_N): the others are +0, and memory beyond is not touched. */
static inline vf vf_load_n(const float *p, size_t n) { return n ? *p : 0; }
static inline void vf_store_n(float *p, vf v, size_t n) {
    if (n)
        *p = v;
}
/* VF_N numbers of F16 as floats, exactly; a NaN becomes quiet. And 2 VF_N of BF16: those at even
 * places, and those at odd places. */
static inline vf vf_load_f16(const uint16_t *p) { return iso_f16_value(*p); }
static inline void vf_load_bf16(vf *pair, const uint16_t *p) {
    pair[0] = iso_bf16_value(p[0]), pair[1] = iso_bf16_value(p[1]);
}
/* VF_N signed numbers of 8 bits as floats. And of VF_N words, each with eight of 4 bits, the first
 * in the uppermost, number `step` of each, which has a sign or not; and the words without their
 * first. */
static inline vf vf_load_s8(const int8_t *p) { return *p; }
typedef uint32_t vw;
static inline vw vw_load(const uint32_t *p) { return *p; }
static inline vf vw_number4(vw w, const int step, const int sign) {
    const int32_t bits = (int32_t)(w >> (28 - 4 * step) & 15), minus = sign ? 8 : 0;
    return (float)((bits ^ minus) - minus);
}
static inline vw vw_next4(vw w) { return w << 4; }
/* A non-temporal store, to a multiple of the vector's size, and after that no later store comes
 * before these. Where VF_STREAMS is 0 it is a store as any other. */
#define VF_STREAMS 0
static inline void vf_stream(float *p, vf v) { vf_store(p, v); }
static inline void vf_streamed(void) {}
/* Lanes n and up become +0. */
static inline vf vf_keep(vf v, size_t n) { return n ? v : 0; }
static inline vf vf_add(vf a, vf b) { return a + b; }
static inline vf vf_sub(vf a, vf b) { return a - b; }
static inline vf vf_mul(vf a, vf b) { return a * b; }
static inline vf vf_div(vf a, vf b) { return a / b; }
static inline vf vf_fma(vf a, vf b, vf c) { return fma_exact(a, b, c); }
/* The NaN rule: a > b ? a : b. So a NaN in either gives b, as do two zeros. */
static inline vf vf_max(vf a, vf b) { return a > b ? a : b; }
static inline vf vf_min(vf a, vf b) { return a < b ? a : b; }
/* -|x|; and x >= 0 with the sign of s. */
static inline vf vf_minus_abs(vf x) { return float_of(bits_of(x) | 0x80000000U); }
static inline vf vf_with_sign(vf x, vf s) {
    return float_of((bits_of(x) & 0x7fffffffU) | (bits_of(s) & 0x80000000U));
}
static inline vm vf_lt(vf a, vf b) { return a < b; } /* false for NaN */
static inline vm vf_eq(vf a, vf b) { return a == b; }
static inline vf vf_select(vm m, vf a, vf b) { return m ? a : b; }
static inline int vm_any(vm m) { return m; }
static inline int vm_all(vm m) { return m; }
static inline vm vm_or(vm a, vm b) { return a | b; }
/* SLEEF's function that uses no FMA and gives the same bits on every instruction set. */
static inline vf vf_log(vf x) { return Sleef_cinz_logf1_u10purec(x); }

/*
 * x * 2^n for integral n in [-252, 254] and x near 1, rounded once (the first factor is exact).
 * NaN in x gives NaN whatever n is.
 */
static inline vf vf_ldexp(vf x, vf n) {
    uint32_t i = bits_of(n + 0x1.8p23f) - bits_of(0x1.8p23f);
    uint32_t h = (i >> 1) | (i & 0x80000000U);
    return x * float_of((h + 127) << 23) * float_of((i - h + 127) << 23);
}

/*
 * The same in fewer steps, with t = n + 0x1.8p23f: the low bits of its representation are the
 * integer n. normal: for n in [-126, 127] and normal results. down: for n in [-190, 0], |x| in
 * [0.35, 256].
 */
static inline vf vf_ldexp_normal(vf x, vf n, vf t) {
    (void)n;
    return x * float_of((bits_of(t) << 23) + (127U << 23));
}
static inline vf vf_ldexp_down(vf x, vf n, vf t) {
    (void)n;
    return x * float_of((bits_of(t) << 23) + ((127U + 64U) << 23)) * 0x1p-64f;
}

/* True where the byte is not 0; lanes n and up are false. */
static inline vm vm_bytes(const uint8_t *p, size_t n) { return n && *p; }

/* Sum by halves: t[j] += t[j + h] for h = VF_N/2 ... 1; and the largest lane (no NaN). */
static inline float vf_tree(vf v) { return v; }
static inline float vf_hmax(vf v) { return v; }

/* dst[j*dst_stride + i] = src[i*stride + j] for i < n <= VF_N, j < VF_N. */
static inline void vf_transpose(float *dst, size_t dst_stride, const float *src, size_t stride,
                                size_t n) {
    (void)dst_stride, (void)stride, (void)n;
    *dst = *src;
}

/* Of two vectors that follow each other: elements 2i and 2i + 1 change places. */
static inline void vf_swap_pairs(vf *v) {
    const vf first = v[0];
    v[0] = v[1], v[1] = first;
}

/* out[j] lane i = src[i*stride + j] for i < VF_N, j < VF_TRANSPOSED, a multiple of 4. */
#define VF_TRANSPOSED 4
static inline void vf_load_transposed(vf *out, const float *src, size_t stride) {
    (void)stride;
    memcpy(out, src, 4 * sizeof *out);
}

/* One float: a*b + c, rounded once. */
static inline float fma_one(float a, float b, float c) { return fma_exact(a, b, c); }

#endif
