/* SPDX-License-Identifier: MIT
 *
 * Weights of 4 bits times rows of int8 in plain C, and the place where their words are explained:
 * sums of VF_N columns, which 32 steps cannot overflow. At most Q4_MR rows are a tile, with
 * Q4_PANELS panels, or, if that is 1 or they are not there, Q4_VECTORS(rows) vectors of a panel.
 */
#define Q4_MR 1
#define Q4_EACH(X) X(1)
#define Q4_PANELS 1
#define Q4_VECTORS(m) 4

typedef int32_t q4t;       /* sums of a vector of columns */
typedef uint32_t q4w;      /* four numbers without a sign of each column, a byte each */
typedef const int8_t *q4a; /* four integers of a row */

/* `start` belongs to the sums: one of these two takes it. */
static inline q4t q4_begin(int32_t start) { return start; }
/* Eight numbers of each column: those in the lower halves of bytes, and those in the upper ones,
 * each of them exclusive-ored with a half byte of flip. */
static inline void q4_numbers(q4w *low, q4w *high, const uint32_t *b, uint32_t flip) {
    *low = (*b ^ flip) & 0x0f0f0f0f;
    *high = (*b ^ flip) >> 4 & 0x0f0f0f0f;
}
static inline q4a q4_row(const int8_t *a) { return a; }
static inline q4t q4_dot(q4t t, q4w w, q4a a) {
    return t + (int32_t)(w & 255) * a[0] + (int32_t)(w >> 8 & 255) * a[1] +
           (int32_t)(w >> 16 & 255) * a[2] + (int32_t)(w >> 24) * a[3];
}
static inline vf q4_floats(q4t t, int32_t start) {
    (void)start;
    return (float)t;
}
