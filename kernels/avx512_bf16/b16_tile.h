/* SPDX-License-Identifier: MIT
 *
 * Products of BF16 on AVX-512, and the place where their words are explained. A group is B16_ROWS
 * rows; a chunk is VF_N columns j and VF_N columns 16 + j of a wide panel, whose weights are two
 * times B16_PARTS vectors; a product of such a vector and a group of A adds B16_STEP steps of k to
 * a vector of sums. Here a vector of sums has 16 columns of a row.
 *
 * Register budget of the largest tile: 24 sums + 2 of B + the broadcast of A, and 2 that B is made
 * of: 29 of 32. Two steps have 24 products for 2 loads and 4 other instructions for B and 12
 * broadcasts. With a latency of 6 (Zen 4), fewer rows take more panels at a time.
 */
#define B16_ROWS 1
#define B16_PARTS 1
#define B16_STEP 2
#define B16_MR 12 /* rows of a tile, at most */
#define B16_SUMS 24
#define B16_CHUNKS(m) ((m) == 1 ? 4 : (m) == 2 ? 3 : (m) <= 6 ? 2 : 1)
#define B16_EACH(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)

typedef __m512 b16t;        /* a vector of sums */
typedef __m512i b16w, b16a; /* of weights; of a group of A */

static inline b16t b16_zero(void) { return _mm512_setzero_ps(); }
static inline b16t b16_add(b16t a, b16t b) { return _mm512_add_ps(a, b); }
/* Weights of a chunk. b: the first of B16_STEP steps, from the chunk on; of these so many are
 * there, those beyond count as 0. A step has columns j and 16 + j side by side: of two steps the
 * lower halves of words are joined, and the upper ones. */
static inline void b16_weights(b16w *w, const uint16_t *b, const size_t steps) {
    __mmask32 upper = 0xaaaaaaaa;
    __asm__("" : "+Yk"(upper)); /* clang would move it there in every step */
    const __m512i x = _mm512_loadu_si512(b);
    const __m512i y = steps > 1 ? _mm512_loadu_si512(b + ISO_WIDE_PANEL) : _mm512_setzero_si512();
    w[0] = _mm512_mask_blend_epi16(upper, x, _mm512_slli_epi32(y, 16));
    w[1] = _mm512_mask_blend_epi16(upper, _mm512_srli_epi32(x, 16), y);
}
/* `second`: how far the second row of a group is from the first. */
static inline b16a b16_row(const uint16_t *a, size_t second) {
    int32_t two;
    (void)second;
    memcpy(&two, a, sizeof two);
    return _mm512_set1_epi32(two);
}
/* As gcc 12 knows the intrinsic, it copies sums to other registers and back. */
static inline b16t b16_dot(b16t t, b16w w, b16a a) {
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(t) : "v"(a), "v"(w));
    return t;
}
/* The sums of a group with VF_N columns, each row a vector. */
static inline void b16_floats(vf *rows, const b16t *t) { rows[0] = t[0]; }
/* ISO_B16_STEPS floats, of which so many are there. */
static inline void b16_round(uint16_t *to, const float *x, size_t n) {
    const __m512 low = n < 16 ? vf_load_n(x, n) : vf_load(x);
    const __m512 high = n <= 16 ? vf_set1(0) : n < 32 ? vf_load_n(x + 16, n - 16) : vf_load(x + 16);
    const __m512bh both = _mm512_cvtne2ps_pbh(high, low);
    memcpy(to, &both, sizeof both);
}
