/* SPDX-License-Identifier: MIT
 *
 * Shorthand for the lists of cases.
 */
#ifndef ISOBIT_TESTS_SUITES_H
#define ISOBIT_TESTS_SUITES_H

#include "kernels.h"
#include <isobit/check.h>

#define iso_count(array) (sizeof(array) / sizeof *(array))

/* iso_add(list, thin, fill, flags, parameters ...) */
#define iso_add(list, thin, kind, flag_bits, ...)                                                  \
    iso_check_cases_add(                                                                           \
        list, (struct iso_check_case){.p = {__VA_ARGS__}, .fill = (kind), .flags = (flag_bits)},   \
        thin)
/* The same with iso_check_case.spot. */
#define iso_add_at(list, thin, kind, flag_bits, where, ...)                                        \
    iso_check_cases_add(                                                                           \
        list,                                                                                      \
        (struct iso_check_case){                                                                   \
            .p = {__VA_ARGS__}, .fill = (kind), .flags = (flag_bits), .spot = (where)},            \
        thin)

/* The fills that no golden case has: those without a spot, and one element that is not finite. */
#define ISO_EACH_NEW_FILL(fill)                                                                    \
    for (unsigned fill = ISO_CHECK_FILL_COUNT; fill < ISO_CHECK_FILL_TOP_AT; fill++)
#define ISO_EACH_POINT_FILL(fill)                                                                  \
    for (unsigned fill = ISO_CHECK_FILL_NAN_AT; fill <= ISO_CHECK_FILL_MINUS_INF_AT; fill++)

/* Strides that are special, by number: what a row of `cols` elements has behind it. */
enum { ISO_STRIDES = 6 };
static inline size_t iso_stride_gap(size_t kind, size_t cols) {
    size_t prime = cols + 1;
    switch (kind) {
    case 0: return 0;
    case 1: return 1;
    case 2: return 3;
    case 3: /* the next prime */
        for (size_t d = 2; d < prime; d++) {
            if (prime % d == 0)
                prime++, d = 1;
        }
        return prime - cols;
    case 4: return 1024 - cols % 1024;  /* pages: all rows fall on the same cache lines */
    default: return 1040 - cols % 1024; /* and one line beside */
    }
}

/* The flag of a case with this function in unary, gemm_epilogue and gate, whose hashes hold the
 * functions that numerics 2 began with. Each has a hash of its own too (golden.def). */
static inline unsigned iso_act_hashed(size_t function) {
    return function <= ISO_UNARY_TANH || function >= ISO_UNARY_EXP ? ISO_CHECK_CASE_GOLDEN : 0;
}

/* Column j of a product of m rows with weights that are floats to the oracle, w [k]: bits and bound
 * of operand `at`, [m][n]; on top of `old`, its column before, unless that is NULL (w16.c). */
void iso_column_reference(struct iso_check_operands *o, const struct iso_check_case *c, unsigned at,
                          const float *a, size_t lda, const float *w, size_t m, size_t k, size_t j,
                          const float *old, size_t ldo, size_t n);

/* Numbers of 16 bits, by definition (w16.c): the value of one; one near a float, or any bits where
 * the fill asks for them; and where column j of a step of 32 lies, as isobit/ops.h has it. */
enum { ISO_HALF_PANEL = 32 };
float iso_half_value(unsigned half, size_t type);
uint16_t iso_half_of(float x, size_t type);
uint16_t iso_half_fill(struct iso_check_operands *o, unsigned fill, size_t type);
size_t iso_half_place(size_t j, size_t type);
/* The operand b: [n/32][k][32], `ld` between panels; what is beyond n is there, and anything. */
void iso_half_panels(struct iso_check_operands *o, size_t n, size_t k, size_t ld, size_t type,
                     unsigned fill);

/* Weights in groups, as isobit/ops.h lays them out (q.c), of a type of kernels.h: steps of a block,
 * and words of a block of a panel; the operand b, `ld` words between panels, where what is beyond n
 * is there, and anything; and column j, step p of it. */
struct iso_q_weight {
    float number, scale, offset;
};
size_t iso_q_block_of(size_t type);
size_t iso_q_block_words(size_t type);
void iso_q_panels(struct iso_check_operands *o, size_t n, size_t k, size_t ld, size_t type,
                  unsigned fill);
struct iso_q_weight iso_q_weight(const uint32_t *b, size_t ld, size_t j, size_t p, size_t type);

/* A row of floats to int8, by definition (s8.c): padded integers, exclusive-ored with flip. */
void iso_quantized(int8_t *q, float *scale, const float *x, size_t n, size_t padded, int flip);

/* Of iso_activation. */
static inline const char *iso_act_name(size_t act) {
    static const char *const names[] = {
        "none",
#define ACTIVATION(NAME, name, text, ...) text,
#include "activations.def"
#undef ACTIVATION
    };
    return act < iso_count(names) ? names[act] : "?";
}

#endif
