/* SPDX-License-Identifier: MIT
 *
 * Weights of 4 and 8 bits times rows of int8 in plain C, and the place where their words are
 * explained: sums of VF_N columns, which 32 steps cannot overflow. At most Q4_MR rows are a tile,
 * with Q4_PANELS panels, or, if that is 1 or they are not there, Q4_VECTORS(rows) vectors of a
 * panel.
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

/* Of 8 bits: Q8_EACH lists the rows of tiles that take weights as they lie. With Q8_WORDS these are
 * for at most Q8_DIRECT rows in all, and more rows have weights as words. */
#define Q8_WORDS 1
#define Q8_DIRECT 0
#define Q8_EACH(X)

typedef int32_t q8t;  /* sums of a vector of columns */
typedef uint32_t q8w; /* four numbers of each column, a byte each */

/* The numbers of 8 steps of a panel as words of four steps of a column, in the order of a row: for
 * its first four integers those of all columns, a vector each, and for the others. */
ISO_INLINE void q8_numbers(q8w *low, q8w *high, const uint32_t *b) {
    const uint8_t *steps = (const uint8_t *)b;
    ISO_NOT_UNROLLED
    for (size_t j = 0; j < ISO_PANEL; j++) {
        low[j] = high[j] = 0;
        for (size_t step = 0; step < ISO_Q_STEPS; step += 2) {
            high[j] = high[j] << 8 | steps[step * ISO_PANEL + j];
            low[j] = low[j] << 8 | steps[(step + 1) * ISO_PANEL + j];
        }
    }
}
static inline void q8_store(uint32_t *words, q8w w) { *words = w; }
static inline q8w q8_load(const uint32_t *words) { return *words; }
static inline q8t q8_begin(int32_t start) {
    (void)start;
    return 0;
}
/* Eight products of each column. */
static inline q8t q8_dot(q8t t, q8w low, q8w high, q4a of_low, q4a of_high) {
    for (size_t i = 0; i < 4; i++, low >>= 8, high >>= 8)
        t += (int8_t)low * of_low[i] + (int8_t)high * of_high[i];
    return t;
}
static inline vf q8_floats(q8t t) { return (float)t; }
