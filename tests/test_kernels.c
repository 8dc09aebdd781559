/* SPDX-License-Identifier: MIT
 *
 * The kernel tests as a program of its own, for builds without the command line and for emulators:
 * the same as `isobit check` (kernel_target.h).
 */
#include "kernel_target.h"

int main(int argc, char **argv) { return isobit_check(argc, argv); }
