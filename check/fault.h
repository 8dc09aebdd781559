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

/*
 * Catches SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGALRM and SIGABRT from now on, of this thread. `last`
 * is called when there is no way back: after a fault outside of a call or in another thread, or
 * exit in a call. It may end the program; else the signal does.
 */
void iso_check_fault_init(void (*last)(const char *reason));
/* What the last one was. */
void iso_check_fault_text(char *text, size_t bytes, const struct iso_check_operands *o);

#endif
