/* SPDX-License-Identifier: MIT
 *
 * Reads declarations: which arguments are integers, of which width, and which are floats.
 */
#include "arguments.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum kind { UNKNOWN, NARROW, WIDE, FLOAT };

static bool begins(const char *text, size_t length, const char *word) {
    size_t n = strlen(word);
    return length > n && !strncmp(text, word, n) && text[n] == ' ';
}

/* Of "const size_t n". A type shorter than int may hold anything above its own bits, or may not:
 * compilers differ, so it counts as wide. */
static enum kind kind_of(const char *text, size_t length) {
    static const struct {
        const char *word;
        enum kind kind;
    } types[] = {
        {"float", FLOAT},   {"double", FLOAT},        {"size_t", WIDE},        {"int64_t", WIDE},
        {"uint64_t", WIDE}, {"ptrdiff_t", WIDE},      {"intptr_t", WIDE},      {"uintptr_t", WIDE},
        {"long", WIDE},     {"unsigned long", WIDE},  {"bool", WIDE},          {"char", WIDE},
        {"int8_t", WIDE},   {"uint8_t", WIDE},        {"int16_t", WIDE},       {"uint16_t", WIDE},
        {"short", WIDE},    {"unsigned short", WIDE}, {"unsigned char", WIDE}, {"int32_t", NARROW},
        {"int", NARROW},    {"uint32_t", NARROW},     {"unsigned", NARROW},    {"enum", NARROW}};
    if (memchr(text, '*', length))
        return WIDE;
    if (begins(text, length, "const")) {
        text += strlen("const ");
        length -= strlen("const ");
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (begins(text, length, types[i].word))
            return types[i].kind;
    }
    return UNKNOWN;
}

const char *iso_check_arguments(struct iso_check_arguments *a, const char *text) {
    *a = (struct iso_check_arguments){0};
    size_t end = strlen(text);
    if (end < 2 || text[0] != '(' || text[end - 1] != ')' || strchr(text + 1, '('))
        return "is not of the form (TYPE NAME, ...)";
    if (!strcmp(text, "(void)"))
        return NULL;
    for (text++; *text;) {
        text += strspn(text, " \n");
        size_t length = strcspn(text, ",)");
        enum kind kind = kind_of(text, length);
        if (kind == UNKNOWN)
            return "has a type that is neither a pointer nor a number";
        if (kind == FLOAT) {
            a->floats++;
        } else {
            if (kind == NARROW && a->integers < 32)
                a->narrow |= UINT32_C(1) << a->integers;
            a->integers++;
        }
        text += length + 1;
    }
    if (a->integers > ISO_CHECK_INTEGERS || a->floats > ISO_CHECK_FLOATS)
        return "has too many arguments";
    return NULL;
}
