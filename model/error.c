/* SPDX-License-Identifier: MIT
 *
 * Errors that a code alone cannot explain: one sentence each. What comes from a file is quoted by
 * model_quote first, so that no message can carry control characters, be of any length, or act as
 * a format. Only %s, %zu, %llu and %u are used: they do not depend on the locale.
 */
#include "base.h"

#include <stdarg.h>
#include <stdio.h>

iso_status model_fail(iso_error *error, iso_status status, const char *format, ...) {
    if (error) {
        va_list list;
        va_start(list, format);
        error->status = status;
        if (vsnprintf(error->message, sizeof error->message, format, list) < 0)
            error->message[0] = 0;
        va_end(list);
    }
    return status;
}

const char *model_quote(model_quoted *out, const char *text, size_t bytes) {
    static const char hex[] = "0123456789abcdef";
    char *to = out->text;
    const char *end = out->text + sizeof out->text - 9; /* room for \xNN"...NUL */
    *to++ = '"';
    size_t i = 0;
    for (; i < bytes && to < end; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
            *to++ = (char)c;
        } else {
            *to++ = '\\';
            *to++ = 'x';
            *to++ = hex[c >> 4];
            *to++ = hex[c & 15];
        }
    }
    *to++ = '"';
    for (int dots = 0; i < bytes && dots < 3; dots++)
        *to++ = '.';
    *to = 0;
    return out->text;
}
