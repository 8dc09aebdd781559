/* SPDX-License-Identifier: MIT
 *
 * The harness as a command: `isobit check`, and the program test_kernels. Returns an exit code: 0
 * all is as promised, 1 something is not, 2 wrong usage.
 */
#ifndef ISOBIT_CHECK_COMMAND_H
#define ISOBIT_CHECK_COMMAND_H

#include "engine.h"

/* What isobit's kernels have and other targets do not. */
struct iso_check_own {
    const char *command;         /* "isobit check" */
    const char *golden, *errors; /* texts of committed files */
    int numerics;                /* their version */
    int (*self_test)(const struct iso_check_run *base);
};

/* own: NULL for other targets. target: NULL when there is only --plugin. */
int iso_check_command(const struct iso_check_target *target, const struct iso_check_own *own,
                      int argc, char **argv);

#endif
