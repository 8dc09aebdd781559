/* SPDX-License-Identifier: MIT
 *
 * Products of int8 on AVX2: widened to 16 bits, whose products are added in pairs as 32 bits, so
 * that nothing saturates. scalar/s8_tile.h documents what each word means. A vector of sums has two
 * for each of 4 columns.
 *
 * Register budget of the largest tile: 12 sums + 2 of B + the broadcast of A, which the second of
 * its products replaces: 15 of 16, with the first product 16.
 */
#define S8_ROWS 1
#define S8_PARTS 2
#define S8_STEP 4
#define S8_FLIP 0
#define S8_TALL 6
#define S8_WIDE 1
#define S8_SUMS 12
#define S8_EACH(X) X(6, 1, 1) X(4, 1, 1) X(2, 2, 1) X(1, 2, 1)

typedef __m256i s8t, s8w, s8a;

static inline s8t s8_zero(void) { return _mm256_setzero_si256(); }
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
/* Rows of A become 16 bits first, S8_PIECE steps at a time: gemm_s8_widened.h. */
#define S8_WIDENS 1
#define S8_PIECE 512
static inline void s8_widen(int16_t *to, const int8_t *a, size_t n) {
    for (; n >= 16; n -= 16, a += 16, to += 16) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)a);
        _mm256_storeu_si256((__m256i *)(void *)to, _mm256_cvtepi8_epi16(bytes));
    }
    if (n >= 8)
        _mm_storeu_si128((__m128i *)(void *)to,
                         _mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)(const void *)a)));
}
static inline s8a s8_wide_row(const int16_t *a) {
    int64_t four;
    memcpy(&four, a, sizeof four);
    return _mm256_set1_epi64x(four);
}
/* Both products go first: in turns with additions they would wait for their pipes on Zen 4. As gcc
 * 12 knows an addition, it copies sums to other registers and back, and spills one. */
static inline void s8_dots(s8t *t, const s8w *w, s8a a) {
    __asm__("vpaddd %2, %0, %0\n\tvpaddd %3, %1, %1"
            : "+&x"(t[0]), "+x"(t[1])
            : "x"(_mm256_madd_epi16(w[0], a)), "x"(_mm256_madd_epi16(w[1], a)));
}
/* The sums of VF_N columns, as integers in a vector of floats; two such added; and as floats. */
static inline vf s8_across(const s8t *t) {
    const __m256i sums = _mm256_hadd_epi32(t[0], t[1]); /* columns 0 1 4 5 2 3 6 7 */
    return _mm256_castsi256_ps(_mm256_permute4x64_epi64(sums, 0xd8));
}
static inline vf s8_sum(vf a, vf b) {
    return _mm256_castsi256_ps(s8_add(_mm256_castps_si256(a), _mm256_castps_si256(b)));
}
static inline vf s8_float(vf sums) { return _mm256_cvtepi32_ps(_mm256_castps_si256(sums)); }
typedef __m256i s8m;
#define S8_NONE _mm256_setzero_si256()
static inline s8m s8_most(s8m m, vf x) {
    const __m256i bits = _mm256_castps_si256(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), x));
    return _mm256_max_epi32(m, bits);
}
static inline uint32_t s8_most_of(s8m m) {
    __m128i q = _mm_max_epi32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
    q = _mm_max_epi32(q, _mm_shuffle_epi32(q, 0x4e));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epi32(q, _mm_shuffle_epi32(q, 0xb1)));
}
#define S8_FOUR 4
static inline void s8_store(int8_t *q, const vf *x, int flip) {
    /* packing goes within halves: the fours of bytes are 0 2 4 6 1 3 5 7 */
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i low = _mm256_packs_epi32(_mm256_cvtps_epi32(x[0]), _mm256_cvtps_epi32(x[1]));
    const __m256i high = _mm256_packs_epi32(_mm256_cvtps_epi32(x[2]), _mm256_cvtps_epi32(x[3]));
    const __m256i b = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
    _mm256_storeu_si256((__m256i *)(void *)q, _mm256_xor_si256(b, _mm256_set1_epi8((char)flip)));
}
