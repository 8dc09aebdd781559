/* SPDX-License-Identifier: MIT
 *
 * The committed hashes without the harness around them: the golden cases of a suite, each called
 * once on operands that simply lie in memory. For builds of the kernels that are wrong on purpose,
 * where only the hash is of interest.
 */
#ifndef ISOBIT_TESTS_PLAIN_H
#define ISOBIT_TESTS_PLAIN_H

#include <isobit/check.h>

#include "kernels.h"

/* The hash that the suite's golden cases of this plan give with the kernels of `table`. */
uint64_t plain_hash(const struct iso_check_suite *suite, enum iso_check_plan plan,
                    const struct iso_kernels *table);
/* The committed one; false when there is none. */
bool plain_committed(uint64_t *hash, const struct iso_check_suite *suite, enum iso_check_plan plan);

#endif
