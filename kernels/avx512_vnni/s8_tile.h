/* SPDX-License-Identifier: MIT
 *
 * Products of int8 on AVX-512 with VNNI, whose left factors have no sign: A is flipped. A vector of
 * sums has 16 columns. scalar/s8_tile.h documents what each word means.
 *
 * Register budget of the largest tile: 24 sums + 3 of B + the broadcast of A: 28 of 32. Each step
 * has 24 products for 3 loads of B and 8 broadcasts; with a latency of 4, few rows need more than
 * one chain.
 */
#define S8_ROWS 1
#define S8_PARTS 1
#define S8_STEP 4
#define S8_FLIP 0x80
#define S8_TALL 8
#define S8_WIDE 3
#define S8_SUMS 24
#define S8_EACH(X) X(8, 1, 1) X(4, 1, 2) X(2, 1, 4) X(1, 1, 4)
#define S8_WIDENS 0

typedef __m512i s8t, s8w, s8a;

static inline s8t s8_zero(void) { return _mm512_setzero_si512(); }
static inline s8t s8_start(const int32_t *p) { return _mm512_loadu_si512(p); }
static inline s8t s8_add(s8t a, s8t b) { return _mm512_add_epi32(a, b); }
static inline void s8_weights(s8w *w, const int8_t *b) { *w = _mm512_loadu_si512(b); }
static inline s8a s8_row(const int8_t *a, size_t second) {
    int32_t four;
    (void)second;
    memcpy(&four, a, sizeof four);
    return _mm512_set1_epi32(four);
}
/* As gcc 12 knows the intrinsic, it copies sums to other registers and back, and spills some. */
static inline s8t s8_dot(s8t t, s8w w, s8a a) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(t) : "v"(a), "v"(w));
    return t;
}
static inline void s8_floats(vf *rows, const s8t *t) { rows[0] = _mm512_cvtepi32_ps(t[0]); }
