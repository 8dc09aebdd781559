/* SPDX-License-Identifier: MIT
 *
 * Calls of kernels through a trampoline that sees whether a kernel keeps the calling convention:
 * registers that belong to the caller, flags, floating-point control, upper vector halves, tiles,
 * the words above its arguments, and how much stack it uses.
 *
 * The trampoline stands in the table of kernels: a suite calls t->gemv as always, and gets there
 * through assembly (abi_x86_64.S, abi_aarch64.S) that knows nothing of gemv but how many words of
 * arguments lie on the stack.
 */
#ifndef ISOBIT_CHECK_ABI_H
#define ISOBIT_CHECK_ABI_H

#include <stdbool.h>
#include <stddef.h>

#include <isobit/check.h>

/* Finds out what can be checked on this machine, once, and reads the arguments of the functions of
 * this target; calls of another one need it again. Needs no signal handler. */
void iso_check_abi_init(const struct iso_check_target *target);
/* From now on calls stay on the stack of the caller, and may use what there is. */
void iso_check_abi_callers_stack(void);
/* What cannot be checked here: "" when there is nothing. */
const char *iso_check_abi_missing(void);

/* checked, target->table_bytes, becomes the table whose functions go through the trampoline to
 * those of `table`. */
void iso_check_abi_wrap(void *checked, const struct iso_check_target *target, const void *table);

/* Before the calls of one case: new random values, nothing found yet. */
void iso_check_abi_begin(void);
/* After them: NULL, or what the first bad call did; *stack is the most that one of them used (0
 * when it is not measured). */
const char *iso_check_abi_end(size_t *stack);

#if defined(__x86_64__)
/* Whether dirty ymm and zmm, and tiles of AMX in use, can be found out here. */
bool iso_check_abi_sees_upper(bool zmm);
bool iso_check_abi_sees_tiles(void);
#endif

#endif
