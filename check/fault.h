/* SPDX-License-Identifier: MIT
 *
 * Calls that may fault. The caller does
 *
 *     if (sigsetjmp(iso_check_fault_return, 0)) { ... iso_check_fault_text(...) ... }
 *     iso_check_fault_armed = 1;
 *     the call
 *     iso_check_fault_armed = 0;
 */
#ifndef ISOBIT_CHECK_FAULT_H
#define ISOBIT_CHECK_FAULT_H

#include <setjmp.h>
#include <signal.h>
#include <stddef.h>

#include <isobit/check.h>

extern sigjmp_buf iso_check_fault_return;
extern volatile sig_atomic_t iso_check_fault_armed;

/* Catches SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGALRM from now on. */
void iso_check_fault_init(void);
/* What the last one was. */
void iso_check_fault_text(char *text, size_t bytes, const struct iso_check_operands *o);

#endif
