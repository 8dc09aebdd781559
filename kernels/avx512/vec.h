/* SPDX-License-Identifier: MIT
 *
 * The vector vocabulary on AVX-512 (F, BW, DQ, VL): 16 floats a register. scalar/vec.h documents
 * what each word means. Tails are masks.
 */
#ifndef ISOBIT_VEC_H
#define ISOBIT_VEC_H

#include <immintrin.h>
#include <sleef.h>
#include <stddef.h>
#include <stdint.h>

#include "avx2/transpose.h"

typedef __m512 vf;
typedef __mmask16 vm;
#define VF_N 16
#define VF_REGS 32
#define VF_FMA_CHAINS 16
#define VF_TOGETHER 4

static inline vm vm_first(size_t n) { return (vm)_cvtu32_mask16((1U << n) - 1U); }

static inline vf vf_set1(float x) { return _mm512_set1_ps(x); }
static inline vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void vf_store(float *p, vf v) { _mm512_storeu_ps(p, v); }
static inline vf vf_load_n(const float *p, size_t n) {
    return _mm512_maskz_loadu_ps(vm_first(n), p);
}
/* The n floats before p, in the last lanes; only this set has the word. */
#define VF_LOAD_BEFORE
static inline vf vf_load_before(const float *p, size_t n) {
    return _mm512_maskz_loadu_ps((vm)~vm_first(VF_N - n), p - VF_N);
}
static inline void vf_store_n(float *p, vf v, size_t n) {
    _mm512_mask_storeu_ps(p, vm_first(n), v);
}
/* By halves: of 512 bits Zen 4 converts one vector in two cycles, of 256 bits two in one. */
static inline vf vf_load_f16(const uint16_t *p) {
    const __m128i *half = (const __m128i *)(const void *)p;
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_cvtph_ps(_mm_loadu_si128(half))),
                              _mm256_cvtph_ps(_mm_loadu_si128(half + 1)), 1);
}
static inline void vf_load_bf16(vf *pair, const uint16_t *p) {
    __m512i v = _mm512_loadu_si512(p);
    ISO_LOADED(v);
    pair[0] = _mm512_castsi512_ps(_mm512_slli_epi32(v, 16));
    pair[1] = _mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32((int)0xffff0000U)));
}
static inline vf vf_load_s8(const int8_t *p) {
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
}
/* A permutation looks a number up in the 16 that there are, and needs but one register for that. */
typedef __m512i vw;
static inline vw vw_load(const uint32_t *p) { return _mm512_loadu_si512(p); }
static inline vf vw_number4(vw w, const int step, int sign) {
    const float minus = sign ? 16 : 0;
    const __m512 all =
        _mm512_sub_ps(_mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                      _mm512_maskz_mov_ps(0xff00, _mm512_set1_ps(minus)));
    return _mm512_permutexvar_ps(_mm512_srli_epi32(w, 28 - 4 * (unsigned)step), all);
}
static inline vw vw_next4(vw w) { return _mm512_slli_epi32(w, 4); }
#define VF_STREAMS 1
static inline void vf_stream(float *p, vf v) { _mm512_stream_ps(p, v); }
static inline void vf_streamed(void) { _mm_sfence(); }
static inline vf vf_keep(vf v, size_t n) { return _mm512_maskz_mov_ps(vm_first(n), v); }
static inline vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
static inline vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
static inline vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
static inline vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
static inline vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
static inline vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
static inline vf vf_minus_abs(vf x) { return _mm512_or_ps(x, _mm512_set1_ps(-0.0f)); }
static inline vf vf_with_sign(vf x, vf s) {
    /* Bit by bit: the sign's mask chooses s, else x. */
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(
        _mm512_castps_si512(x), _mm512_castps_si512(s), _mm512_set1_epi32((int)0x80000000U), 0xd8));
}
static inline vm vf_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
static inline vm vf_eq(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
static inline vf vf_select(vm m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); }
static inline int vm_any(vm m) { return m != 0; }
static inline int vm_all(vm m) { return m == 0xffff; }
static inline vm vm_or(vm a, vm b) { return (vm)(a | b); }
/*
 * scalef takes some 200 cycles on Intel's cores where a result is subnormal, or would be too small
 * even for that: so results that are 0 are masked, as that of each key that attention masks. These
 * words only this set has: true also for NaN; 0, or c, in lanes that are not in m.
 */
#define VF_SCALEF
static inline vm vf_not_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ); }
static inline vf vf_fma_in(vm m, vf a, vf b, vf c) { return _mm512_maskz_fmadd_ps(m, a, b, c); }
static inline vf vf_ldexp_in(vm m, vf x, vf n) { return _mm512_maskz_scalef_ps(m, x, n); }
static inline vf vf_fma_else(vm m, vf a, vf b, vf c) { return _mm512_mask3_fmadd_ps(a, b, c, m); }
static inline vf vf_ldexp_normal(vf x, vf n, vf t) {
    (void)t;
    return _mm512_scalef_ps(x, n);
}
static inline vf vf_ldexp_down(vf x, vf n, vf t) {
    (void)t;
    return vf_with_sign(vf_ldexp_in(vf_not_lt(n, vf_set1(-158.0f)), x, n), x);
}
static inline vf vf_ldexp(vf x, vf n) { return _mm512_scalef_ps(x, n); }
static inline vf vf_log(vf x) { return Sleef_cinz_logf16_u10avx512fnofma(x); }

static inline vm vm_bytes(const uint8_t *p, size_t n) {
    __m128i b = _mm_maskz_loadu_epi8(vm_first(n), p);
    return _mm_test_epi8_mask(b, b);
}

static inline float vf_tree(vf v) {
    __m256 h = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_shuffle_ps(q, q, 1)));
}

static inline float vf_hmax(vf v) {
    __m256 h = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(q, _mm_shuffle_ps(q, q, 1)));
}

static inline void vf_swap_pairs(vf *v) {
    v[0] = _mm512_permute_ps(v[0], 0xb1), v[1] = _mm512_permute_ps(v[1], 0xb1);
}

/* Halves of rows: row i and row i + 4 of each 8 make a register, so that after the quarters are
 * transposed in place only every second one has to move. */
#define VF_TRANSPOSED 8
static inline __attribute__((always_inline)) void transpose_in_place(vf *out, const __m512 *r) {
    __m512 t[8];
    ISO_UNROLLED (h, 2) {
        const __m512 a = r[4 * h], b = r[4 * h + 1], c = r[4 * h + 2], d = r[4 * h + 3];
        const __m512 ab = _mm512_unpacklo_ps(a, b), cd = _mm512_unpacklo_ps(c, d);
        const __m512 AB = _mm512_unpackhi_ps(a, b), CD = _mm512_unpackhi_ps(c, d);
        t[4 * h] = _mm512_shuffle_ps(ab, cd, 0x44), t[4 * h + 1] = _mm512_shuffle_ps(ab, cd, 0xee);
        t[4 * h + 2] = _mm512_shuffle_ps(AB, CD, 0x44);
        t[4 * h + 3] = _mm512_shuffle_ps(AB, CD, 0xee);
    }
    ISO_UNROLLED (i, 4) {
        out[i] = _mm512_shuffle_f32x4(t[i], t[4 + i], 0x88);
        out[4 + i] = _mm512_shuffle_f32x4(t[i], t[4 + i], 0xdd);
    }
}

static inline void vf_load_transposed(vf *out, const float *src, size_t stride) {
    __m512 r[8];
    ISO_UNROLLED (h, 2) {
        const float *low = src + 8 * h * stride, *high = low + 4 * stride;
        ISO_OPAQUE(low);
        ISO_OPAQUE(high);
        ISO_UNROLLED (i, 4)
            r[4 * h + i] =
                _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(low + i * stride)),
                                   _mm256_loadu_ps(high + i * stride), 1);
    }
    transpose_in_place(out, r);
}

/* Twice as many steps: the line of a row is loaded at once, as it may not stay in L1. */
#define VF_LINE 16
static inline void vf_load_transposed_line(vf *out, const float *src, size_t stride) {
    __m512 r[2][8];
    ISO_UNROLLED (h, 2) {
        const float *low = src + 8 * h * stride, *high = low + 4 * stride;
        ISO_OPAQUE(low);
        ISO_OPAQUE(high);
        ISO_UNROLLED (i, 4) {
            __m256 x[2];
            ISO_UNROLLED (s, 2) {
                x[s] = _mm256_loadu_ps(low + i * stride + 8 * s);
                ISO_LOADED(x[s]);
            }
            ISO_UNROLLED (s, 2) {
                r[s][4 * h + i] = _mm512_insertf32x8(_mm512_castps256_ps512(x[s]),
                                                     _mm256_loadu_ps(high + i * stride + 8 * s), 1);
                ISO_LOADED(r[s][4 * h + i]);
            }
        }
    }
    transpose_in_place(out, r[0]);
    transpose_in_place(out + 8, r[1]);
}

/* Eight rows at most, in registers of 256 bits. */
static inline void store_transposed_8x4(float *dst, size_t dst_stride, __mmask8 rows,
                                        const __m128 *low, const __m128 *high) {
    __m256 r[4];
    transpose_8x4(r, low, high);
    ISO_UNROLLED (i, 4)
        _mm256_mask_storeu_ps(dst + i * dst_stride, rows, r[i]);
}

static ISO_ONE_COPY __attribute__((unused)) void
vf_transpose(float *dst, size_t dst_stride, const float *src, size_t stride, size_t n) {
    if (n >= 16) {
        vf r[16];
        vf_load_transposed_line(r, src, stride);
        ISO_UNROLLED (i, 16)
            vf_store(dst + i * dst_stride, r[i]);
        return;
    }
    for (size_t h = 0; h < n; h += 8) {
        const __mmask8 rows = (__mmask8)vm_first(n - h);
        const float *row[8];
        for (size_t i = 0; i < 8; i++)
            row[i] = src + (h + i < n ? h + i : n - 1) * stride;
        for (size_t p = 0; p < 16; p += 4) {
            __m128 low[4], high[4];
            ISO_UNROLLED (i, 4)
                low[i] = _mm_loadu_ps(row[i] + p), high[i] = _mm_loadu_ps(row[i + 4] + p);
            store_transposed_8x4(dst + p * dst_stride + h, dst_stride, rows, low, high);
        }
    }
}

static inline float fma_one(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

#endif
