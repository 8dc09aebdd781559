/* SPDX-License-Identifier: MIT
 *
 * Weights of 4 bits times rows of int8 on AVX2: pairs of products, 15 * 127 each at most, are added
 * in 16 bits, where those of 32 steps have room. scalar/q4_tile.h documents what each word means.
 */
#define Q4_MR 4
#define Q4_EACH(X) X(1) X(2) X(3) X(4)
#define Q4_PANELS 1
#define Q4_VECTORS(m) ((m) <= 2 ? 2 : 1)

typedef __m256i q4w, q4a;

static inline void q4_numbers(q4w *low, q4w *high, const uint32_t *b, uint32_t flip) {
    const __m256i mask = _mm256_set1_epi8(15);
    const __m256i w = _mm256_xor_si256(vw_load(b), _mm256_set1_epi32((int32_t)flip));
    *low = _mm256_and_si256(w, mask);
    *high = _mm256_and_si256(_mm256_srli_epi32(w, 4), mask);
}
static inline q4a q4_row(const int8_t *a) {
    int32_t four;
    memcpy(&four, a, sizeof four);
    return _mm256_set1_epi32(four);
}
#ifndef Q4_DOT /* who defines it has dot products */
typedef __m256i q4t;
static inline q4t q4_begin(int32_t start) {
    (void)start;
    return _mm256_setzero_si256();
}
static inline q4t q4_dot(q4t t, q4w w, q4a a) {
    return _mm256_add_epi16(t, _mm256_maddubs_epi16(w, a));
}
static inline vf q4_floats(q4t t, int32_t start) {
    return _mm256_cvtepi32_ps(
        _mm256_add_epi32(_mm256_madd_epi16(t, _mm256_set1_epi16(1)), _mm256_set1_epi32(start)));
}
#endif
