/* SPDX-License-Identifier: MIT
 *
 * What a call gave: values against the oracle, bits against other runs, errors by groups.
 */
#ifndef ISOBIT_CHECK_RESULTS_H
#define ISOBIT_CHECK_RESULTS_H

#include <stdbool.h>
#include <xxhash.h>

#include "engine.h"

struct iso_check_first { /* what the first run of a case gave, to compare all others with */
    uint32_t *bits, *other;
    size_t room;
    const char *who;
    char where[24];
};

/* Each false, and the reason in text, when something is wrong. Errors enter the tally. */
bool iso_check_values(char *text, size_t bytes, const struct iso_check_suite *suite,
                      const struct iso_check_case *c, const struct iso_check_operands *o,
                      struct iso_check_tally *tally);
/* Gathers the outputs, NaN made canonical, adds them to the hash (unless it is NULL) and compares
 * with the first run of this case. */
bool iso_check_bits(char *text, size_t bytes, const struct iso_check_operands *o,
                    struct iso_check_first *first, const char *who, const char *where,
                    XXH3_state_t *hash);

/* The errors of the groups, of the cases so far. */
void iso_check_tally_errors(struct iso_check_tally *t);

#endif
