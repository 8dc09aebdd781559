/* SPDX-License-Identifier: MIT
 *
 * The lists of cases, and how a case is written down.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

void iso_check_cases_add(struct iso_check_cases *list, struct iso_check_case c, unsigned thin) {
    if (list->plan == ISO_CHECK_PLAN_QUICK && !(c.flags & ISO_CHECK_CASE_GOLDEN) && thin > 1) {
        uint64_t h =
            (list->count + 1) * ISO_CHECK_SPREAD; /* a fixed choice that keeps no pattern */
        h = (h ^ c.fill ^ (uint64_t)c.spot << 8) * ISO_CHECK_SPREAD;
        for (int i = 0; i < ISO_CHECK_CASE_PARAMS; i++)
            h = (h ^ c.p[i]) * ISO_CHECK_SPREAD;
        if ((h >> 33) % thin)
            return;
    }
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 256;
        list->v = realloc(list->v, list->room * sizeof *list->v);
        if (!list->v)
            iso_check_die("memory");
    }
    if (!c.seed) { /* from the parameters, so that the order of the cases does not matter */
        c.seed = c.fill + 1;
        for (int i = 0; i < ISO_CHECK_CASE_PARAMS; i++)
            c.seed = (c.seed ^ c.p[i]) * ISO_CHECK_SPREAD;
        if (c.spot)
            c.seed = (c.seed ^ c.spot) * ISO_CHECK_SPREAD;
    }
    list->v[list->count++] = c;
}

void iso_check_suite_cases(const struct iso_check_suite *suite, struct iso_check_cases *list,
                           enum iso_check_plan plan) {
    *list = (struct iso_check_cases){.plan = plan};
    suite->cases(list);
}

void iso_check_case_text(char *text, size_t bytes, const struct iso_check_suite *suite,
                         const struct iso_check_case *c) {
    size_t used = 0;
    const char *name = suite->params;
    for (unsigned i = 0; *name && i < ISO_CHECK_CASE_PARAMS && used < bytes; i++) {
        size_t length = strcspn(name, " ");
        used +=
            (size_t)snprintf(text + used, bytes - used, "%.*s=%zu ", (int)length, name, c->p[i]);
        name += length + strspn(name + length, " ");
    }
    if (used < bytes)
        used +=
            (size_t)snprintf(text + used, bytes - used, "fill=%s", iso_check_fill_name(c->fill));
    if (used < bytes && c->spot)
        snprintf(text + used, bytes - used, " spot=%zu", c->spot);
}
