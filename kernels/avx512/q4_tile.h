/* SPDX-License-Identifier: MIT
 *
 * Weights of 4 and 8 bits times rows of int8 on AVX-512: as on AVX2, a panel in each vector.
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
#define Q8_FLIP 0 /* what bytes of words are exclusive-ored with */
#endif

#define Q8_WORDS 0
#define Q8_EACH(X) X(1) X(2) X(3) X(4)

typedef __m512i q8t, q8w;

/* Fours of columns of four steps meet in a quarter of a vector, where they are transposed. */
ISO_INLINE void q8_numbers(q8w *low, q8w *high, const uint32_t *b) {
    __m512i early = vw_load(b), late = vw_load(b + ISO_PANEL);
    const __m512i flip = _mm512_set1_epi8((char)Q8_FLIP);
    const __m512i across =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const __m512i even =
        _mm512_setr_epi32(24, 16, 8, 0, 25, 17, 9, 1, 26, 18, 10, 2, 27, 19, 11, 3);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(4));
    early = _mm512_xor_si512(early, flip), late = _mm512_xor_si512(late, flip);
    *low = _mm512_shuffle_epi8(_mm512_permutex2var_epi32(early, odd, late), across);
    *high = _mm512_shuffle_epi8(_mm512_permutex2var_epi32(early, even, late), across);
}
#ifndef Q4_DOT
static inline q8t q8_begin(int32_t start) {
    (void)start;
    return _mm512_setzero_si512();
}
static inline q8t q8_dot_one(q8t t, q8w w, q4a a) {
    const __m512i turned =
        _mm512_mask_sub_epi8(a, _mm512_movepi8_mask(w), _mm512_setzero_si512(), a);
    const __m512i pairs = _mm512_maddubs_epi16(_mm512_abs_epi8(w), turned);
    __asm__("vpaddd %1, %0, %0" : "+v"(t) : "v"(_mm512_madd_epi16(pairs, _mm512_set1_epi16(1))));
    return t;
}
static inline q8t q8_dot(q8t t, q8w low, q8w high, q4a of_low, q4a of_high) {
    return q8_dot_one(q8_dot_one(t, low, of_low), high, of_high);
}
static inline vf q8_floats(q8t t) { return _mm512_cvtepi32_ps(t); }
#endif
