/* SPDX-License-Identifier: MIT
 *
 * Every operation that the harness knows, in the plainest C.
 */
#ifndef ISOBIT_TESTS_CHECK_OPERATIONS_H
#define ISOBIT_TESTS_CHECK_OPERATIONS_H

#include <isobit/check.h>

extern const struct iso_check_operations plain_operations;

#endif
