/* SPDX-License-Identifier: MIT
 *
 * The lines of isobit_ab, and signals.
 */
#include "ab.h"

/* A byte beyond ASCII stands for the character of the same number, whatever encoding it is of. */
void put_string(const char *text) {
    putchar('"');
    for (const unsigned char *p = (const unsigned char *)(text ? text : ""); *p; p++)
        if (*p == '"' || *p == '\\')
            printf("\\%c", *p);
        else if (*p < 0x20 || *p >= 0x7f)
            printf("\\u%04x", *p);
        else
            putchar(*p);
    putchar('"');
}

void put_key(const char *key, const char *text) {
    printf(",\"%s\":", key);
    put_string(text);
}

/* Who reads the lines may be gone, or the disk full: then nothing that follows is of use. */
void flush_output(void) {
    if (fflush(stdout) || ferror(stdout)) {
        complain("cannot write the results: %s", strerror(errno));
        exit(FAILED);
    }
}

void end_line(void) {
    putchar('\n');
    flush_output();
}

void put_error(const struct row *row, const struct side *side, const char *why) {
    printf("{\"type\":\"error\"");
    put_key("bench", row->name);
    put_key("which", side->name);
    put_key("why", why);
    putchar('}');
    end_line();
    errors++;
}

/* ------------------------------------------------------------------------------------ signals */

/* What runs now, and which library: for the last words of a process that ends by a signal. */
char running[128];
const char *volatile running_side;

static const struct {
    int number;
    const char *what;
} fatal[] = {
    {SIGSEGV, " crashed: SIGSEGV\n"}, {SIGBUS, " crashed: SIGBUS\n"},
    {SIGILL, " crashed: SIGILL\n"},   {SIGFPE, " crashed: SIGFPE\n"},
    {SIGABRT, " crashed: SIGABRT\n"}, {SIGTERM, " was ended from outside\n"},
};

static void write_text(const char *text) {
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written; /* there is nobody else to tell */
}

/* The process ends by the signal, as if there were no handler. */
static void on_fatal(int number) {
    if (running_side) {
        write_text("isobit_ab: ");
        write_text(running);
        write_text(", library ");
        write_text(running_side);
        for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
            if (fatal[i].number == number)
                write_text(fatal[i].what);
    }
    raise(number); /* the action is the default one again */
}

void catch_signals(void) {
    struct sigaction action = {.sa_handler = on_fatal, .sa_flags = (int)SA_RESETHAND | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        sigaction(fatal[i].number, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* end_line() sees it */
}
