/* SPDX-License-Identifier: MIT
 *
 * Products of int8 on AVX-512 without VNNI, as on AVX2: widened to 16 bits. scalar/s8_tile.h
 * documents what each word means. A vector of sums has two for each of 8 columns.
 *
 * Register budget of the largest tile: 24 sums + 2 of B + the broadcast of A + a product: 28 of 32.
 */
#define S8_ROWS 1
#define S8_PARTS 2
#define S8_STEP 4
#define S8_FLIP 0
#define S8_TALL 12
#define S8_WIDE 1
#define S8_SUMS 24
#define S8_EACH(X) X(12, 1, 1) X(8, 1, 1) X(4, 1, 1) X(2, 1, 1) X(1, 1, 1)

typedef __m512i s8t, s8w, s8a;

static inline s8t s8_zero(void) { return _mm512_setzero_si512(); }
static inline s8t s8_add(s8t a, s8t b) { return _mm512_add_epi32(a, b); }
static inline void s8_weights(s8w *w, const int8_t *b) {
    const __m256i *p = (const __m256i *)(const void *)b;
    w[0] = _mm512_cvtepi8_epi16(_mm256_loadu_si256(p));
    w[1] = _mm512_cvtepi8_epi16(_mm256_loadu_si256(p + 1));
}
static inline s8a s8_row(const int8_t *a, size_t second) {
    int32_t four;
    (void)second;
    memcpy(&four, a, sizeof four);
    return _mm512_cvtepi8_epi16(_mm256_set1_epi32(four));
}
/* Rows of A become 16 bits first, S8_PIECE steps at a time: gemm_s8_widened.h. */
#define S8_WIDENS 1
#define S8_PIECE 256
static inline void s8_widen(int16_t *to, const int8_t *a, size_t n) {
    for (; n >= 32; n -= 32, a += 32, to += 32) {
        const __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)a);
        _mm512_storeu_si512(to, _mm512_cvtepi8_epi16(bytes));
    }
    for (; n >= 8; n -= 8, a += 8, to += 8)
        _mm_storeu_si128((__m128i *)(void *)to,
                         _mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)(const void *)a)));
}
static inline s8a s8_wide_row(const int16_t *a) {
    int64_t four;
    memcpy(&four, a, sizeof four);
    return _mm512_set1_epi64(four);
}
/* Both products go first: in turns with additions they would wait for their pipes on Zen 4. As gcc
 * 12 knows an addition, it keeps some sums on the stack. */
static inline void s8_dots(s8t *t, const s8w *w, s8a a) {
    __asm__("vpaddd %2, %0, %0\n\tvpaddd %3, %1, %1"
            : "+&v"(t[0]), "+v"(t[1])
            : "v"(_mm512_madd_epi16(w[0], a)), "v"(_mm512_madd_epi16(w[1], a)));
}
/* The sums of VF_N columns, as integers in a vector of floats; two such added; and as floats. */
static inline vf s8_across(const s8t *t) {
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
    return _mm512_castsi512_ps(s8_add(_mm512_permutex2var_epi32(t[0], even, t[1]),
                                      _mm512_permutex2var_epi32(t[0], odd, t[1])));
}
static inline vf s8_sum(vf a, vf b) {
    return _mm512_castsi512_ps(s8_add(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}
static inline vf s8_float(vf sums) { return _mm512_cvtepi32_ps(_mm512_castps_si512(sums)); }
typedef __m512i s8m;
#define S8_NONE _mm512_setzero_si512()
static inline s8m s8_most(s8m m, vf x) {
    return _mm512_max_epi32(
        m, _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff)));
}
static inline uint32_t s8_most_of(s8m m) { return (uint32_t)_mm512_reduce_max_epi32(m); }
#define S8_FOUR 4
static inline void s8_store(int8_t *q, const vf *x, int flip) {
    /* packing goes within quarters: the fours of bytes are 0 4 8 12 1 5 9 13 ... */
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i low = _mm512_packs_epi32(_mm512_cvtps_epi32(x[0]), _mm512_cvtps_epi32(x[1]));
    const __m512i high = _mm512_packs_epi32(_mm512_cvtps_epi32(x[2]), _mm512_cvtps_epi32(x[3]));
    const __m512i b = _mm512_permutexvar_epi32(order, _mm512_packs_epi16(low, high));
    _mm512_storeu_si512(q, _mm512_xor_si512(b, _mm512_set1_epi8((char)flip)));
}
