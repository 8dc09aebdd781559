/* SPDX-License-Identifier: MIT
 *
 * Hashes and errors that are committed to files, and whether results are the same.
 */
#ifndef ISOBIT_CHECK_COMMITTED_H
#define ISOBIT_CHECK_COMMITTED_H

#include <stdbool.h>

#include "engine.h"

/* The name of a plan that has calibrated errors, or NULL. */
const char *iso_check_plan_name(enum iso_check_plan plan);

/* The name under which the hash of a suite is committed: "gemv", or if it is by_plan "exp/quick".
 */
enum { ISO_CHECK_GOLDEN_NAME = 48 };
void iso_check_golden_name(char text[ISO_CHECK_GOLDEN_NAME], const struct iso_check_suite *suite,
                           enum iso_check_plan plan);

/* NULL, or what is wrong with the hash of an operation. */
const char *iso_check_golden_compare(const struct iso_check_run *run, const char *name,
                                     uint64_t hash);
void iso_check_golden_append(const struct iso_check_run *run, const char *name, uint64_t hash);

/* False, and the reason, when a group is worse than it was. */
bool iso_check_errors_compare(char *text, size_t bytes, const struct iso_check_run *run,
                              const char *name, const struct iso_check_errors *e);
void iso_check_errors_append(const struct iso_check_run *run, const char *name,
                             const struct iso_check_tally *t);

#endif
