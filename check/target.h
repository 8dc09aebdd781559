/* SPDX-License-Identifier: MIT
 *
 * Targets that others hand out: whether they can be used, and what the library adds to them.
 */
#ifndef ISOBIT_CHECK_TARGET_H
#define ISOBIT_CHECK_TARGET_H

#include "operations.h"

enum {
    ISO_CHECK_MOST_VARIANTS = 16,
    ISO_CHECK_MOST_OWN = 48, /* suites, and functions */
    ISO_CHECK_MOST_ALL = ISO_CHECK_MOST_OWN + ISO_CHECK_OPERATION_COUNT
};

/* A target with the suites of the operations that its variants have. */
struct iso_check_whole {
    struct iso_check_target target;
    const struct iso_check_suite *suites[ISO_CHECK_MOST_ALL];
    struct iso_check_function functions[ISO_CHECK_MOST_ALL];
};

/* False, and what is wrong with it. NULL is a target that cannot be used. */
bool iso_check_whole(struct iso_check_whole *whole, const struct iso_check_target *given,
                     char *text, size_t bytes);

/* Loads a plug-in. 0, or exit code 2 after a line on stderr. */
int iso_check_plugin_load(struct iso_check_whole *whole, const char *file);

#endif
