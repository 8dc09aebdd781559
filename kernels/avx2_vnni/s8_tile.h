/* SPDX-License-Identifier: MIT
 *
 * Products of int8 on AVX2 with AVX-VNNI, whose left factors have no sign: A is flipped. A vector
 * of sums has 8 columns. scalar/s8_tile.h documents what each word means.
 *
 * The intrinsic would do, but gcc 12 copies the sums of its like on AVX-512 around it.
 *
 * Register budget of the largest tile: 12 sums + 2 of B + the broadcast of A: 15 of 16.
 */
#define S8_ROWS 1
#define S8_PARTS 1
#define S8_STEP 4
#define S8_FLIP 0x80
#define S8_TALL 6
#define S8_WIDE 1
#define S8_SUMS 12
#define S8_EACH(X) X(6, 2, 1) X(4, 2, 1) X(2, 2, 2) X(1, 2, 4)
#define S8_WIDENS 0

typedef __m256i s8t, s8w, s8a;

static inline s8t s8_zero(void) { return _mm256_setzero_si256(); }
static inline s8t s8_start(const int32_t *p) {
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
static inline s8t s8_add(s8t a, s8t b) { return _mm256_add_epi32(a, b); }
static inline void s8_weights(s8w *w, const int8_t *b) {
    *w = _mm256_loadu_si256((const __m256i *)(const void *)b);
}
static inline s8a s8_row(const int8_t *a, size_t second) {
    int32_t four;
    (void)second;
    memcpy(&four, a, sizeof four);
    return _mm256_set1_epi32(four);
}
static inline s8t s8_dot(s8t t, s8w w, s8a a) {
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(t) : "x"(a), "x"(w));
    return t;
}
static inline void s8_floats(vf *rows, const s8t *t) { rows[0] = _mm256_cvtepi32_ps(t[0]); }
