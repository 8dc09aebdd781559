/* SPDX-License-Identifier: MIT
 *
 * Looks at each member of a target before anything relies on it, and adds the suites and functions
 * of struct iso_check_operations.
 */
#include "target.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "arguments.h"

/* Names go into tables and replay lines, which are split at spaces. */
static bool good_name(const char *name) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.";
    return name && *name && strlen(name) <= 31 && strspn(name, letters) == strlen(name);
}

#define WRONG(...)                                                                                 \
    do {                                                                                           \
        snprintf(text, bytes, __VA_ARGS__);                                                        \
        return false;                                                                              \
    } while (0)

static bool good_variants(const struct iso_check_target *t, char *text, size_t bytes) {
    if (!t->variants || t->variant_count < 1 || t->variant_count > ISO_CHECK_MOST_VARIANTS)
        WRONG("it has %zu variants instead of 1 to %d", t->variants ? t->variant_count : 0,
              ISO_CHECK_MOST_VARIANTS);
    for (size_t i = 0; i < t->variant_count; i++) {
        const struct iso_check_variant *v = &t->variants[i];
        if (!good_name(v->name))
            WRONG("variant %zu has no name of letters and digits", i);
        if (!v->table && !v->missing)
            WRONG("variant %s has no table", v->name);
        for (size_t j = 0; j < i; j++) {
            if (!strcmp(t->variants[j].name, v->name))
                WRONG("two variants are called %s", v->name);
        }
    }
    return true;
}

/* How many names params holds, or -1. */
static int parameter_count(const char *params) {
    int count = 0;
    for (const char *p = params; *p; count++) {
        size_t length = strcspn(p, " ");
        if (!length || memchr(p, '=', length) || length > 31)
            return -1;
        p += length;
        p += *p == ' ';
    }
    return count <= ISO_CHECK_CASE_PARAMS ? count : -1;
}

static bool good_suite(const struct iso_check_suite *s, size_t number, char *text, size_t bytes) {
    if (!s || !good_name(s->name))
        WRONG("suite %zu is NULL or has no name of letters and digits", number);
    const char *missing = !s->params      ? "params"
                          : !s->setup     ? "setup"
                          : !s->call      ? "call"
                          : !s->reference ? "reference"
                                          : NULL;
    if (missing)
        WRONG("suite %s: %s is NULL", s->name, missing);
    int count = parameter_count(s->params);
    if (count < 0)
        WRONG("suite %s: params is not a list of at most %d names", s->name, ISO_CHECK_CASE_PARAMS);
    for (int i = 0; i < count; i++) {
        if (s->least[i] > s->most[i])
            WRONG("suite %s: least is above most for parameter %d", s->name, i);
    }
    const uint64_t all = ISO_CHECK_FILL_BIT(ISO_CHECK_FILL_ALL) - 1;
    if ((s->without & all) == all)
        WRONG("suite %s: without leaves no kind of input", s->name);
    return true;
}

static bool good_suites(const struct iso_check_target *t, char *text, size_t bytes) {
    if (t->suite_count > ISO_CHECK_MOST_OWN || (t->suite_count && !t->suites))
        WRONG("its suites are NULL or more than %d", ISO_CHECK_MOST_OWN);
    for (size_t i = 0; i < t->suite_count; i++) {
        if (!good_suite(t->suites[i], i, text, bytes))
            return false;
        for (size_t j = 0; j < i; j++) {
            if (!strcmp(t->suites[j]->name, t->suites[i]->name))
                WRONG("two suites are called %s", t->suites[i]->name);
        }
    }
    return true;
}

static bool good_functions(const struct iso_check_target *t, size_t table_bytes, char *text,
                           size_t bytes) {
    if (t->function_count > ISO_CHECK_MOST_OWN || (t->function_count && !t->functions))
        WRONG("its functions are NULL or more than %d", ISO_CHECK_MOST_OWN);
    for (size_t i = 0; i < t->function_count; i++) {
        const struct iso_check_function *f = &t->functions[i];
        struct iso_check_arguments a;
        if (!good_name(f->name) || !f->arguments)
            WRONG("function %zu has no name or no arguments", i);
        const char *wrong = iso_check_arguments(&a, f->arguments);
        if (wrong)
            WRONG("function %s: its argument list %s", f->name, wrong);
        if (f->offset % sizeof(void *) || table_bytes < sizeof(void *) ||
            f->offset > table_bytes - sizeof(void *))
            WRONG("function %s: offset %zu is not inside a table of %zu bytes", f->name, f->offset,
                  table_bytes);
    }
    return true;
}

/* Suites of the operations that a variant has. */
static void add_operations(struct iso_check_whole *w) {
    struct iso_check_target *t = &w->target;
    for (size_t i = 0; i < ISO_CHECK_OPERATION_COUNT; i++) {
        w->functions[i] = iso_check_operation_functions[i];
        bool any = false;
        for (size_t v = 0; v < t->variant_count; v++) {
            void (*function)(void) = NULL;
            if (t->variants[v].table)
                memcpy(&function, (const char *)t->variants[v].table + w->functions[i].offset,
                       sizeof function);
            any |= function != NULL;
        }
        if (any)
            w->suites[t->suite_count++] = iso_check_operation_suites[i];
    }
    t->function_count = ISO_CHECK_OPERATION_COUNT;
}

bool iso_check_whole(struct iso_check_whole *w, const struct iso_check_target *given, char *text,
                     size_t bytes) {
    *w = (struct iso_check_whole){0};
    if (!given)
        WRONG("it has no target");
    if (given->version != ISO_CHECK_VERSION)
        WRONG("it is of version %u of isobit/check.h, this is version %d", given->version,
              ISO_CHECK_VERSION);
    if (given->size < offsetof(struct iso_check_target, promises))
        WRONG("the size of its target is %zu bytes", given->size);
    struct iso_check_target *t = &w->target;
    memcpy(t, given, given->size < sizeof *t ? given->size : sizeof *t);
    if (!good_name(t->name))
        WRONG("it has no name of letters and digits");
    size_t least = t->own_table ? sizeof(void *) : sizeof(struct iso_check_operations);
    if (!t->table_bytes)
        t->table_bytes = least;
    if (t->table_bytes < least)
        WRONG("its tables have %zu bytes, less than %zu", t->table_bytes, least);
    if (!(t->tolerance >= 0 && isfinite(t->tolerance)))
        WRONG("its tolerance is no number from 0 on");
    if (!good_variants(t, text, bytes) || !good_suites(t, text, bytes) ||
        !good_functions(t, t->table_bytes, text, bytes))
        return false;
    size_t suites = t->suite_count, functions = t->function_count;
    t->suite_count = t->function_count = 0;
    if (!t->own_table)
        add_operations(w);
    for (size_t i = 0; i < suites; i++)
        w->suites[t->suite_count++] = t->suites[i];
    for (size_t i = 0; i < functions; i++)
        w->functions[t->function_count++] = t->functions[i];
    t->suites = w->suites;
    t->functions = w->functions;
    if (!t->suite_count)
        WRONG("it has no operation");
    for (size_t i = 0; i < t->suite_count - suites; i++) {
        for (size_t j = t->suite_count - suites; j < t->suite_count; j++) {
            if (!strcmp(w->suites[i]->name, w->suites[j]->name))
                WRONG("its suite %s has the name of an operation that its variants have",
                      w->suites[i]->name);
        }
    }
    return true;
}
