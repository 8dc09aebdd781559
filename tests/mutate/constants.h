/* SPDX-License-Identifier: MIT
 *
 * What constants_kernels.c gives to constants_probe.c.
 */
#ifndef ISOBIT_MUTATE_CONSTANTS_H
#define ISOBIT_MUTATE_CONSTANTS_H

#define PROBE_TABLE iso_probe_table
#define PROBE_TABLE_NAME "iso_probe_table"
#define PROBE_CONSTANTS_NAME "iso_probe_constants"
/* A function of `unary` beside those of kernels.h: exp for x <= 0. */
enum { PROBE_EXP_NEG = 1000 };

#endif
