/* SPDX-License-Identifier: MIT
 *
 * What the files of the harness share and no suite needs.
 */
#ifndef ISOBIT_CHECK_COMMON_H
#define ISOBIT_CHECK_COMMON_H

#include <stdint.h>
#include <string.h>

#include <isobit/check.h>

/* A signalling NaN, in the gaps of inputs: touching it in arithmetic gives NaN and raises the
 * invalid flag. */
#define GAP_BITS UINT32_C(0x7fa5a5a5)

/* Mixes bits. */
#define ISO_CHECK_SPREAD UINT64_C(0x9e3779b97f4a7c15)

/* "isobit: check: WHAT: why", exit code 2; errno says why, or 0. */
_Noreturn void iso_check_die(const char *what);

void iso_check_fill_words(void *to, size_t bytes, uint32_t word);
/* Frees what the operands of one case had beyond their pool. */
void iso_check_operands_free_overflow(struct iso_check_operands *o);

static inline float from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t to_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

#endif
