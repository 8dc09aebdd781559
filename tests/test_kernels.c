/* SPDX-License-Identifier: MIT
 *
 * The kernel tests as a program of its own, for builds without the command line and for emulators:
 * the same as `isobit check` (check.h).
 */
#include "check.h"

int main(int argc, char **argv) { return isobit_check(argc, argv); }
