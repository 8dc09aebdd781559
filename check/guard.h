/* SPDX-License-Identifier: MIT
 *
 * What guard pages can be trusted with on this machine.
 */
#ifndef ISOBIT_CHECK_GUARD_H
#define ISOBIT_CHECK_GUARD_H

#include <stdbool.h>

/*
 * Some emulators (qemu 7.2) load a whole vector for a masked load, and so fault at a guard page
 * where a processor does not. True on such a machine: then only the scalar set can be put flush
 * against a guard on the right.
 */
bool iso_check_masked_loads_fault(void);

#endif
