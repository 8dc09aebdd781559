/* SPDX-License-Identifier: MIT
 *
 * Weights of 4 bits times rows of int8 on AVX-512: as on AVX2, a panel in each vector.
 * scalar/q4_tile.h documents what each word means.
 */
#define Q4_MR 4
#define Q4_EACH(X) X(1) X(2) X(3) X(4)
#define Q4_PANELS 2
#define Q4_VECTORS(m) 1

typedef __m512i q4w, q4a;

static inline void q4_numbers(q4w *low, q4w *high, const uint32_t *b, uint32_t flip) {
    const __m512i mask = _mm512_set1_epi8(15), x = _mm512_set1_epi32((int32_t)flip);
    const __m512i w = vw_load(b);
    enum { XOR_AND = 0x28 }; /* of the first two, and the third */
    *low = _mm512_ternarylogic_epi32(w, x, mask, XOR_AND);
    *high = _mm512_ternarylogic_epi32(_mm512_srli_epi32(w, 4), x, mask, XOR_AND);
}
static inline q4a q4_row(const int8_t *a) {
    int32_t four;
    memcpy(&four, a, sizeof four);
    return _mm512_set1_epi32(four);
}
#ifndef Q4_DOT /* who defines it has dot products */
typedef __m512i q4t;
static inline q4t q4_begin(int32_t start) {
    (void)start;
    return _mm512_setzero_si512();
}
static inline q4t q4_dot(q4t t, q4w w, q4a a) {
    return _mm512_add_epi16(t, _mm512_maddubs_epi16(w, a));
}
static inline vf q4_floats(q4t t, int32_t start) {
    return _mm512_cvtepi32_ps(
        _mm512_add_epi32(_mm512_madd_epi16(t, _mm512_set1_epi16(1)), _mm512_set1_epi32(start)));
}
#endif
