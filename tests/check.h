/* SPDX-License-Identifier: MIT
 *
 * The harness of the kernels as a command: `isobit check`, and the program test_kernels. Returns
 * an exit code: 0 all is as promised, 1 something is not, 2 wrong usage.
 */
#ifndef ISOBIT_TESTS_CHECK_H
#define ISOBIT_TESTS_CHECK_H

int isobit_check(int argc, char **argv);

struct iso_run;
/* Runs kernels that are broken on purpose, and looks whether each of them is found. */
int iso_self_test(const struct iso_run *base);

#endif
