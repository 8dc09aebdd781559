/* SPDX-License-Identifier: MIT
 *
 * isobit check: the harness for kernels, which has options of its own. A build with the tests
 * (ISOBIT_TESTS) has isobit's own kernels as its target; any other one plug-ins only.
 */
#include "cli.h"

#if defined(ISOBIT_HARNESS_KERNELS)
int isobit_check(int argc, char **argv);

int cmd_check(int argc, char **argv) { return isobit_check(argc, argv); }
#elif defined(ISOBIT_HARNESS)
#include <string.h>

#include <isobit/check.h>

int cmd_check(int argc, char **argv) {
    static char command[] = "isobit check";
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--plugin") || !strcmp(argv[i], "--help")) {
            argv[0] = command;
            return iso_check_main(NULL, argc, argv);
        }
    }
    return fail("check: this build has no kernels of its own to check (ISOBIT_TESTS); "
                "give it some with --plugin FILE.so");
}
#else
int cmd_check(int argc, char **argv) {
    (void)argc;
    (void)argv;
    return fail("check: this build has no harness; configure it with -DISOBIT_CHECK=ON");
}
#endif
