/* SPDX-License-Identifier: MIT
 *
 * isobit's own kernels as a target of the harness (isobit/check.h), and the command that checks
 * them.
 */
#ifndef ISOBIT_TESTS_KERNEL_TARGET_H
#define ISOBIT_TESTS_KERNEL_TARGET_H

#include <isobit/check.h>

/* The instruction sets of isas.def are its variants, the kernels of kernels.def its functions and
 * suites, in this order. */
const struct iso_check_target *iso_kernel_target(void);

struct iso_check_run;
/* Runs kernels that are broken on purpose, and looks whether each of them is found. */
int iso_kernel_self_test(const struct iso_check_run *base);

int isobit_check(int argc, char **argv);

#endif
