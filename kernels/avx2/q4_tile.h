/* SPDX-License-Identifier: MIT
 *
 * Weights of 4 and 8 bits times rows of int8 on AVX2: pairs of products are added in 16 bits, where
 * those of 32 steps of 4 bits have room, 15 * 127 each at most. Of 8 bits the weight's sign goes to
 * the integer of the row, and a pair is 2 * 128 * 127 at most, so that nothing saturates.
 * scalar/q4_tile.h documents what each word means.
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
#define Q8_FLIP 0 /* what bytes of words are exclusive-ored with */
#endif

#define Q8_WORDS 1
#define Q8_DIRECT 2
#define Q8_EACH(X) X(1) X(2)

typedef __m256i q8t, q8w;

/* Two steps are in each vector, so the even ones go to the lower half, the odd ones to the upper
 * one; halves of 8 columns then meet. */
ISO_INLINE void q8_numbers(q8w *low, q8w *high, const uint32_t *b) {
    __m256i pair[4], four[4];
    ISO_UNROLLED (i, 4)
        pair[i] = _mm256_xor_si256(vw_load(b + 8 * i), _mm256_set1_epi8((char)Q8_FLIP));
    const __m256i late[] = {_mm256_unpacklo_epi8(pair[3], pair[2]),
                            _mm256_unpackhi_epi8(pair[3], pair[2])};
    const __m256i early[] = {_mm256_unpacklo_epi8(pair[1], pair[0]),
                             _mm256_unpackhi_epi8(pair[1], pair[0])};
    ISO_UNROLLED (i, 2) {
        four[2 * i] = _mm256_unpacklo_epi16(late[i], early[i]);
        four[2 * i + 1] = _mm256_unpackhi_epi16(late[i], early[i]);
    }
    ISO_UNROLLED (i, 2) {
        low[i] = _mm256_permute2x128_si256(four[2 * i], four[2 * i + 1], 0x31);
        high[i] = _mm256_permute2x128_si256(four[2 * i], four[2 * i + 1], 0x20);
    }
}
static inline void q8_store(uint32_t *words, q8w w) {
    _mm256_storeu_si256((__m256i *)(void *)words, w);
}
static inline q8w q8_load(const uint32_t *words) { return vw_load(words); }
#ifndef Q4_DOT
static inline q8t q8_begin(int32_t start) {
    (void)start;
    return _mm256_setzero_si256();
}
/* As gcc 12 knows the addition, it adds products up first, and spills sums. */
static inline q8t q8_dot_one(q8t t, q8w w, q4a a) {
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w));
    __asm__("vpaddd %1, %0, %0" : "+x"(t) : "x"(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1))));
    return t;
}
static inline q8t q8_dot(q8t t, q8w low, q8w high, q4a of_low, q4a of_high) {
    return q8_dot_one(q8_dot_one(t, low, of_low), high, of_high);
}
static inline vf q8_floats(q8t t) { return _mm256_cvtepi32_ps(t); }
#endif
