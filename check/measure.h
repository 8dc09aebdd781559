/* SPDX-License-Identifier: MIT
 *
 * What the outputs of a call are reduced to when they are recorded: a hash, the largest errors, and
 * the errors of a few outputs, the samples, in steps. A step is one ULP of the true value, or a
 * hundredth of the bound where that is larger, so that every error within its bound fits a byte.
 * Where a step is an ULP, two errors of the same output differ by as many ULP as the outputs do.
 */
#ifndef ISOBIT_CHECK_MEASURE_H
#define ISOBIT_CHECK_MEASURE_H

#include <isobit/check.h>

#include "record.h"

enum { ISO_RECORD_STEPS = 100 }; /* in a bound */

/* Which case it is, the same on every machine and for every version of the plan that has it. */
uint32_t iso_record_key(const struct iso_check_case *c);

/* The hash of the outputs' bits, each NaN as 0x7fc00000: XXH3 in blocks of 256 words. */
uint64_t iso_record_hash(const struct iso_check_operands *o);

/* What the outputs hold: hash, largest errors, samples. `samples` gets as many as m->count. */
void iso_record_measure(struct iso_record_case *m, int8_t samples[ISO_RECORD_SAMPLES],
                        const struct iso_check_operands *o);

/* How many samples of the same case differ, and by how many steps of each kind. */
struct iso_record_difference {
    unsigned samples, ulp, parts;
};
struct iso_record_difference iso_record_differences(const struct iso_check_operands *o,
                                                    const int8_t *here, const int8_t *there,
                                                    unsigned count);

#endif
