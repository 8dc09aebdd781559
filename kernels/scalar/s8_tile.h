/* SPDX-License-Identifier: MIT
 *
 * Products of int8 in plain C, and the place where their words are explained: sums of S8_ROWS rows
 * of A with VF_N columns, in S8_PARTS vectors, S8_STEP steps of k at a time. Bytes are in the order
 * of their addresses, so the byte order of the machine does not matter.
 */
#define S8_ROWS 1
#define S8_PARTS 1
#define S8_STEP 4
#define S8_FLIP 0  /* s8_flip of the table */
#define S8_TALL 2  /* most groups of a tile */
#define S8_WIDE 1  /* panels that such a tile takes, 1 if it is no other one */
#define S8_SUMS 16 /* vectors of sums, at most */
#define S8_EACH(X) X(2, 4, 1) X(1, 4, 1)
#define S8_WIDENS 0 /* whether rows of A become 16 bits first; avx2/s8_tile.h has the words */

typedef int32_t s8t;       /* a vector of sums */
typedef const int8_t *s8w; /* weights: S8_STEP steps of some columns */
typedef const int8_t *s8a; /* S8_STEP steps of the rows of a group */

static inline s8t s8_zero(void) { return 0; }
static inline s8t s8_start(const int32_t *p) { return *p; }
static inline s8t s8_add(s8t a, s8t b) { return a + b; }
/* Those of VF_N columns, into S8_PARTS vectors; b is a step of a panel, from the first of these
 * columns on. */
static inline void s8_weights(s8w *w, const int8_t *b) { *w = b; }
/* `second`: how far the second row of a group is from the first. */
static inline s8a s8_row(const int8_t *a, size_t second) {
    (void)second;
    return a;
}
static inline s8t s8_dot(s8t t, s8w w, s8a a) {
    return t + w[0] * a[0] + w[1] * a[1] + w[2] * a[2] + w[3] * a[3];
}
/* The sums of a cell as floats, each row a vector. */
static inline void s8_floats(vf *rows, const s8t *t) { rows[0] = (float)t[0]; }
/* The largest magnitudes of lanes, as the bits of floats without their sign, whose order is that of
 * the numbers: an infinity is above all of them, and NaN above it. s8_most_of: of all lanes. */
typedef uint32_t s8m;
static inline s8m s8_most(s8m m, vf x) {
    const uint32_t bits = bits_of(x) & 0x7fffffff;
    return bits > m ? bits : m;
}
static inline uint32_t s8_most_of(s8m m) { return m; }
#define S8_NONE 0
/* S8_FOUR vectors of floats, at most 127.4 in magnitude, to the nearest integers, of those that are
 * as near the even ones, each exclusive-ored with `flip`. */
#define S8_FOUR 1
static inline void s8_store(int8_t *q, const vf *x, int flip) {
    *q = (int8_t)(iso_s8_nearest(*x) ^ flip);
}
