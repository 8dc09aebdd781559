/* SPDX-License-Identifier: MIT
 *
 * softmax for AVX2 and FMA, eight elements at a time.
 */
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "softmax.h"

static __m256 power_of_two(__m256i k) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(k, _mm256_set1_epi32(127)), 23));
}

static __m256 exp_below_zero(__m256 x) {
    x = _mm256_max_ps(_mm256_set1_ps(EXP_LEAST), x); /* NaN stays */
    const __m256 shift = _mm256_set1_ps(EXP_SHIFT);
    const __m256 shifted = _mm256_fmadd_ps(x, _mm256_set1_ps(EXP_LOG2E), shift);
    const __m256 k = _mm256_sub_ps(shifted, shift);
    __m256 r = _mm256_fnmadd_ps(k, _mm256_set1_ps(EXP_LN2_HIGH), x);
    r = _mm256_fnmadd_ps(k, _mm256_set1_ps(EXP_LN2_LOW), r);
    __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(EXP_C7), r, _mm256_set1_ps(EXP_C6));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C5));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C4));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C2));
    p = _mm256_add_ps(_mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r), _mm256_set1_ps(1));
    const __m256i n = _mm256_sub_epi32(_mm256_castps_si256(shifted), _mm256_set1_epi32(0x4b400000));
    const __m256i half = _mm256_srai_epi32(n, 1);
    p = _mm256_mul_ps(p, power_of_two(half));
    return _mm256_mul_ps(p, power_of_two(_mm256_sub_epi32(n, half)));
}

/* Elements that are not there become -Inf, and so 0 in the sum. */
static __m256 load(const float *x, size_t count) {
    float some[8] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY,
                     -INFINITY, -INFINITY, -INFINITY, -INFINITY};
    if (count >= 8)
        return _mm256_loadu_ps(x);
    memcpy(some, x, count * sizeof *x);
    return _mm256_loadu_ps(some);
}

static void store(float *y, __m256 v, size_t count) {
    float some[8];
    _mm256_storeu_ps(some, v);
    memcpy(y, some, (count < 8 ? count : 8) * sizeof *y);
}

/* Adds up as softmax_scalar does. */
static float sum_of_lanes(__m256 v) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}

static float max_of(const float *x, size_t n) {
    __m256 m = _mm256_set1_ps(-INFINITY);
    for (size_t j = 0; j < n; j += 8)
        m = _mm256_max_ps(load(x + j, n - j), m);
    float lanes[8], max = -INFINITY;
    _mm256_storeu_ps(lanes, m);
    for (int j = 0; j < 8; j++)
        max = lanes[j] > max ? lanes[j] : max;
    return max;
}

void softmax_avx2(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n) {
    for (size_t i = 0; i < rows; i++, y += ldy, x += ldx) {
        const __m256 max = _mm256_set1_ps(max_of(x, n));
        __m256 sum = _mm256_setzero_ps();
        for (size_t j = 0; j < n; j += 8) {
            __m256 e = exp_below_zero(_mm256_sub_ps(load(x + j, n - j), max));
            store(y + j, e, n - j);
#if defined(SOFTMAX_IS_WRONG)
            if (n - j == 7)
                e = _mm256_blend_ps(e, _mm256_setzero_ps(), 1 << 6);
#endif
            sum = _mm256_add_ps(sum, e);
        }
        sum = _mm256_set1_ps(sum_of_lanes(sum));
        for (size_t j = 0; j < n; j += 8)
            store(y + j, _mm256_div_ps(load(y + j, n - j), sum), n - j);
    }
}
