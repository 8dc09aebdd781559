/* SPDX-License-Identifier: MIT
 *
 * What is said on stderr: errors, wrong usage, warnings. Everything else rests on it.
 */
#include "cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool is_fancy_terminal(FILE *stream) {
    const char *term = getenv("TERM");
    return isatty(fileno(stream)) && term != NULL && term[0] != '\0' && strcmp(term, "dumb") != 0;
}

static void report(const char *format, va_list arguments) {
    fputs("isobit: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

int fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    report(format, arguments);
    va_end(arguments);
    return 1;
}

int usage(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    report(format, arguments);
    va_end(arguments);
    return 2;
}

void warn(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (is_fancy_terminal(stderr))
        fputs("\r\033[K", stderr);
    report(format, arguments);
    va_end(arguments);
}

int fail_error(const iso_error *error, iso_status status) {
    return fail("%s", error->message[0] != '\0' ? error->message : iso_strerror(status));
}
