/* SPDX-License-Identifier: MIT
 *
 * isobit check: the harness of the kernel tests, where the build has it (ISOBIT_TESTS). It lies in
 * tests/, sees the kernels themselves, and has options of its own.
 */
#include "cli.h"

#if defined(ISOBIT_HARNESS)
int isobit_check(int argc, char **argv);

int cmd_check(int argc, char **argv) { return isobit_check(argc, argv); }
#else
int cmd_check(int argc, char **argv) {
    (void)argc;
    (void)argv;
    return fail("check: this build has no harness; configure it with -DISOBIT_TESTS=ON");
}
#endif
