/* SPDX-License-Identifier: MIT
 *
 * The vector vocabulary on AVX2 with FMA: 8 floats a register. scalar/vec.h documents what each
 * word means. Tails are masked loads and stores.
 */
#ifndef ISOBIT_VEC_H
#define ISOBIT_VEC_H

#include <immintrin.h>
#include <sleef.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "avx2/transpose.h"

typedef __m256 vf;
typedef __m256 vm;
#define VF_N 8
#define VF_REGS 16
#define VF_FMA_CHAINS 12
#define VF_TOGETHER 2

static inline __m256i vi_first(size_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline vm vm_first(size_t n) { return _mm256_castsi256_ps(vi_first(n)); }

static inline vf vf_set1(float x) { return _mm256_set1_ps(x); }
static inline vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void vf_store(float *p, vf v) { _mm256_storeu_ps(p, v); }
static inline vf vf_load_n(const float *p, size_t n) { return _mm256_maskload_ps(p, vi_first(n)); }
/* Whole halves and quarters instead of a masked store, which takes some 20 cycles on AMD's cores.
 */
static inline void vf_store_n(float *p, vf v, size_t n) {
    __m128 h = _mm256_castps256_ps128(v);
    if (n >= 8) {
        _mm256_storeu_ps(p, v);
        return;
    }
    if (n >= 4) {
        _mm_storeu_ps(p, h);
        h = _mm256_extractf128_ps(v, 1), p += 4, n -= 4;
    }
    if (n >= 2) {
        _mm_storel_pi((__m64 *)(void *)p, h);
        h = _mm_movehl_ps(h, h), p += 2, n -= 2;
    }
    if (n)
        _mm_store_ss(p, h);
}
static inline vf vf_load_f16(const uint16_t *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
static inline void vf_load_bf16(vf *pair, const uint16_t *p) {
    __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)p);
    ISO_LOADED(v);
    pair[0] = _mm256_castsi256_ps(_mm256_slli_epi32(v, 16));
    pair[1] = _mm256_castsi256_ps(_mm256_and_si256(v, _mm256_set1_epi32((int)0xffff0000U)));
}
static inline vf vf_load_s8(const int8_t *p) {
    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}
/* Two shifts, since the constants of AVX-512's way would push sums out of their registers. */
typedef __m256i vw;
static inline vw vw_load(const uint32_t *p) {
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
static inline vf vw_number4(vw w, const int step, const int sign) {
    const __m256i x = _mm256_slli_epi32(w, 4 * step);
    return _mm256_cvtepi32_ps(sign ? _mm256_srai_epi32(x, 28) : _mm256_srli_epi32(x, 28));
}
static inline vw vw_next4(vw w) { return _mm256_slli_epi32(w, 4); }
#define VF_STREAMS 1
static inline void vf_stream(float *p, vf v) { _mm256_stream_ps(p, v); }
static inline void vf_streamed(void) { _mm_sfence(); }
static inline vf vf_keep(vf v, size_t n) { return _mm256_and_ps(v, vm_first(n)); }
static inline vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
static inline vf vf_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
static inline vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
static inline vf vf_div(vf a, vf b) { return _mm256_div_ps(a, b); }
#if defined(__FMA__) /* else a set that uses these words has words of its own for it */
static inline vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
static inline float fma_one(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#endif
static inline vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }
static inline vf vf_min(vf a, vf b) { return _mm256_min_ps(a, b); }
static inline vf vf_minus_abs(vf x) { return _mm256_or_ps(x, _mm256_set1_ps(-0.0f)); }
static inline vf vf_with_sign(vf x, vf s) {
    const vf sign = _mm256_set1_ps(-0.0f);
    return _mm256_or_ps(_mm256_andnot_ps(sign, x), _mm256_and_ps(sign, s));
}
static inline vm vf_lt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
static inline vm vf_eq(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
static inline vf vf_select(vm m, vf a, vf b) { return _mm256_blendv_ps(b, a, m); }
static inline int vm_any(vm m) { return _mm256_movemask_ps(m) != 0; }
static inline int vm_all(vm m) { return _mm256_movemask_ps(m) == 0xff; }
static inline vm vm_or(vm a, vm b) { return _mm256_or_ps(a, b); }
static inline vf vf_log(vf x) { return Sleef_cinz_logf8_u10avx(x); }

static inline vf vf_ldexp(vf x, vf n) {
    __m256i i = _mm256_cvtps_epi32(n), h = _mm256_srai_epi32(i, 1), bias = _mm256_set1_epi32(127);
    __m256i a = _mm256_slli_epi32(_mm256_add_epi32(h, bias), 23);
    __m256i b = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(i, h), bias), 23);
    x = _mm256_mul_ps(x, _mm256_castsi256_ps(a));
    return _mm256_mul_ps(x, _mm256_castsi256_ps(b));
}

static inline vf vf_ldexp_normal(vf x, vf n, vf t) {
    (void)n;
    __m256i i = _mm256_slli_epi32(_mm256_castps_si256(t), 23);
    return _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_add_epi32(i, _mm256_set1_epi32(127 << 23))));
}

static inline vf vf_ldexp_down(vf x, vf n, vf t) {
    (void)n;
    __m256i i = _mm256_slli_epi32(_mm256_castps_si256(t), 23);
    i = _mm256_add_epi32(i, _mm256_set1_epi32((127 + 64) << 23));
    x = _mm256_mul_ps(x, _mm256_castsi256_ps(i));
    return _mm256_mul_ps(x, _mm256_set1_ps(0x1p-64f));
}

static inline vm vm_bytes(const uint8_t *p, size_t n) {
    uint64_t raw = 0;
    memcpy(&raw, p, n < 8 ? n : 8);
    __m256i b = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)raw));
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(b, _mm256_setzero_si256()));
}

static inline float vf_tree(vf v) {
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_shuffle_ps(q, q, 1)));
}

static inline float vf_hmax(vf v) {
    __m128 q = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    q = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(q, _mm_shuffle_ps(q, q, 1)));
}

static inline void vf_swap_pairs(vf *v) {
    v[0] = _mm256_permute_ps(v[0], 0xb1), v[1] = _mm256_permute_ps(v[1], 0xb1);
}

static inline void store_transposed_8x4(float *dst, size_t dst_stride, size_t n, const __m128 *low,
                                        const __m128 *high) {
    __m256 r[4];
    transpose_8x4(r, low, high);
    ISO_UNROLLED (i, 4)
        vf_store_n(dst + i * dst_stride, r[i], n);
}

static ISO_ONE_COPY __attribute__((unused)) void
vf_transpose(float *dst, size_t dst_stride, const float *src, size_t stride, size_t n) {
    __m128 low[4], high[4];
    if (n >= 8) {
        const float *half = src + 4 * stride;
        ISO_OPAQUE(half);
        ISO_UNROLLED (p, 2) {
            ISO_UNROLLED (i, 4) {
                low[i] = _mm_loadu_ps(src + i * stride + 4 * p);
                high[i] = _mm_loadu_ps(half + i * stride + 4 * p);
            }
            store_transposed_8x4(dst, dst_stride, 8, low, high);
            dst += 4 * dst_stride;
            ISO_OPAQUE(dst);
        }
        return;
    }
    for (size_t p = 0; p < 8; p += 4) {
        ISO_UNROLLED (i, 4) {
            low[i] = _mm_loadu_ps(src + (i < n ? i : n - 1) * stride + p);
            high[i] = _mm_loadu_ps(src + (i + 4 < n ? i + 4 : n - 1) * stride + p);
        }
        store_transposed_8x4(dst + p * dst_stride, dst_stride, n, low, high);
    }
}

#define VF_TRANSPOSED 4
static inline void vf_load_transposed(vf *out, const float *src, size_t stride) {
    __m128 low[4], high[4];
    const float *half = src + 4 * stride;
    ISO_OPAQUE(half);
    ISO_UNROLLED (i, 4)
        low[i] = _mm_loadu_ps(src + i * stride), high[i] = _mm_loadu_ps(half + i * stride);
    transpose_8x4(out, low, high);
}

#endif
