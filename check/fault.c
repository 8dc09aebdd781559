/* SPDX-License-Identifier: MIT
 *
 * Calls that may fault: signals become the text of what the call did.
 */
#include "fault.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"

sigjmp_buf iso_check_fault_return;
volatile sig_atomic_t iso_check_fault_armed;
static volatile sig_atomic_t fault_signal;
static char *volatile fault_address;
static volatile sig_atomic_t fault_general; /* x86 does not say where */

static void (*last_words)(const char *reason);
static pthread_t caller;

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)context;
    if (!iso_check_fault_armed || !pthread_equal(pthread_self(), caller)) {
        char text[120];
        snprintf(text, sizeof text, "%s: %s",
                 iso_check_fault_armed ? "a thread of its own died"
                                       : "its suite died outside of the call",
                 strsignal(number));
        signal(number, SIG_DFL);
        last_words(text);
        raise(number);
        return;
    }
    fault_signal = number;
    fault_address = info->si_addr;
    fault_general = number == SIGSEGV && info->si_code == SI_KERNEL;
    siglongjmp(iso_check_fault_return, 1);
}

static void at_exit(void) {
    if (iso_check_fault_armed)
        last_words("called exit");
}

void iso_check_fault_init(void (*last)(const char *reason)) {
    if (!last_words)
        atexit(at_exit);
    last_words = last;
    caller = pthread_self();
    static char stack[64 << 10];
    stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternative, NULL);
    struct sigaction action = {.sa_sigaction = on_fault,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGALRM, SIGABRT};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

void iso_check_fault_text(char *text, size_t bytes, const struct iso_check_operands *o) {
    if (fault_signal == SIGALRM) {
        snprintf(text, bytes, "did not return in time");
        return;
    }
    if (fault_signal == SIGABRT) {
        snprintf(text, bytes, "aborted");
        return;
    }
    if (fault_signal == SIGILL || fault_signal == SIGFPE) {
        snprintf(text, bytes, "%s", fault_signal == SIGILL ? "illegal instruction" : "SIGFPE");
        return;
    }
    if (fault_general) {
        snprintf(text, bytes, "general protection fault: an aligned access that is not?");
        return;
    }
    if (iso_check_arena_fault(text, bytes, o, fault_address))
        return;
    snprintf(text, bytes, "%s at address %p", fault_signal == SIGBUS ? "bus error" : "fault",
             (void *)fault_address);
}
