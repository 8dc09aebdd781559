/* SPDX-License-Identifier: MIT
 *
 * Products of int8 on AVX2: widened to 16 bits, whose products are added in pairs as 32 bits, so
 * that nothing saturates. scalar/s8_tile.h documents what each word means. A vector of sums has two
 * for each of 4 columns.
 */
#define S8_ROWS 1
#define S8_PARTS 2
#define S8_STEP 4
#define S8_FLIP 0
#define S8_TALL 4
#define S8_WIDE 1
#define S8_SUMS 8
#define S8_EACH(X) X(4, 1, 1) X(2, 1, 1) X(1, 1, 1)

typedef __m256i s8t, s8w, s8a;

static inline s8t s8_zero(void) { return _mm256_setzero_si256(); }
static inline s8t s8_start(const int32_t *p) {
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
static inline s8t s8_add(s8t a, s8t b) { return _mm256_add_epi32(a, b); }
static inline void s8_weights(s8w *w, const int8_t *b) {
    const __m128i *p = (const __m128i *)(const void *)b;
    w[0] = _mm256_cvtepi8_epi16(_mm_loadu_si128(p));
    w[1] = _mm256_cvtepi8_epi16(_mm_loadu_si128(p + 1));
}
static inline s8a s8_row(const int8_t *a, size_t second) {
    int32_t four;
    (void)second;
    memcpy(&four, a, sizeof four);
    return _mm256_cvtepi8_epi16(_mm_set1_epi32(four));
}
static inline s8t s8_dot(s8t t, s8w w, s8a a) {
    return _mm256_add_epi32(t, _mm256_madd_epi16(w, a));
}
static inline void s8_floats(vf *rows, const s8t *t) {
    const __m256i sums = _mm256_hadd_epi32(t[0], t[1]); /* columns 0 1 4 5 2 3 6 7 */
    rows[0] = _mm256_cvtepi32_ps(_mm256_permute4x64_epi64(sums, 0xd8));
}
static inline void s8_store(int8_t *q, vf x, int flip) {
    const __m256i i = _mm256_cvtps_epi32(x);
    __m128i b = _mm_packs_epi32(_mm256_castsi256_si128(i), _mm256_extracti128_si256(i, 1));
    b = _mm_xor_si128(_mm_packs_epi16(b, b), _mm_set1_epi8((char)flip));
    _mm_storel_epi64((__m128i *)(void *)q, b);
}
