/* SPDX-License-Identifier: MIT
 *
 * The arguments of a function, read from the text of its declaration.
 */
#ifndef ISOBIT_CHECK_ARGUMENTS_H
#define ISOBIT_CHECK_ARGUMENTS_H

#include <stdint.h>

enum { ISO_CHECK_INTEGERS = 22, ISO_CHECK_FLOATS = 8 }; /* at most */

struct iso_check_arguments {
    unsigned integers, floats; /* pointers are among the integers */
    uint32_t narrow;           /* a bit for each integer of 32 bits: its upper half is undefined */
};

/* "(float *y, size_t n, int mode)". NULL, or why functions of this kind cannot be called. */
const char *iso_check_arguments(struct iso_check_arguments *a, const char *text);

#endif
