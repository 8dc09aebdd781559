/* SPDX-License-Identifier: MIT
 *
 * The suites of struct iso_check_operations, in the order of its members.
 */
#ifndef ISOBIT_CHECK_OPERATIONS_H
#define ISOBIT_CHECK_OPERATIONS_H

#include <isobit/check.h>

enum { ISO_CHECK_OPERATION_COUNT = 12 };
extern const struct iso_check_suite *const iso_check_operation_suites[];
extern const struct iso_check_function iso_check_operation_functions[];

extern const struct iso_check_suite iso_check_softmax, iso_check_logsumexp, iso_check_layernorm,
    iso_check_rmsnorm, iso_check_attention;

/* Where sums overflow there is no simple truth. */
#define ISO_CHECK_OVERFLOWING                                                                      \
    (ISO_CHECK_FILL_BIT(ISO_CHECK_FILL_HUGE) | ISO_CHECK_FILL_BIT(ISO_CHECK_FILL_BITS) |           \
     ISO_CHECK_FILL_BIT(ISO_CHECK_FILL_EXPONENTS))

#endif
