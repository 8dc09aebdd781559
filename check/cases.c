/* SPDX-License-Identifier: MIT
 *
 * The lists of cases, and how a case is written down.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "common.h"

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

/* ------------------------------------------------------------------ suites without a plan */

static bool is_gap(const char *name, size_t length) {
    return length >= 3 && !strncmp(name + length - 3, "gap", 3);
}

/* The parameters of a suite, by number: gaps, and the others. Returns how many. */
static unsigned parameters(const struct iso_check_suite *suite, bool *gap) {
    unsigned count = 0;
    for (const char *p = suite->params; *p && count < ISO_CHECK_CASE_PARAMS; count++) {
        size_t length = strcspn(p, " ");
        gap[count] = is_gap(p, length);
        p += length;
        p += strspn(p, " ");
    }
    return count;
}

/* All parameters, at most `cap` above the least. */
static void draw(struct iso_check_case *c, const struct iso_check_suite *suite, size_t cap,
                 struct iso_check_random *r) {
    bool gap[ISO_CHECK_CASE_PARAMS];
    unsigned count = parameters(suite, gap);
    for (unsigned i = 0; i < count; i++) {
        size_t range = suite->most[i] - suite->least[i];
        c->p[i] = gap[i] ? iso_check_random_gap(r)
                         : suite->least[i] + iso_check_random_log(r, range < cap ? range : cap);
    }
}

static bool allowed(const struct iso_check_suite *suite, unsigned fill) {
    return !(suite->without >> fill & 1);
}

static void set_fill(struct iso_check_case *c, unsigned fill) {
    c->fill = fill;
    if (!strcmp(iso_check_fill_class(fill), "plain"))
        c->flags |= ISO_CHECK_CASE_TRAPLESS;
}

/* Each parameter through its small values, and around larger ones. */
static void sweep(const struct iso_check_suite *suite, unsigned i, struct iso_check_cases *list,
                  struct iso_check_random *r) {
    static const unsigned fills[] = {ISO_CHECK_FILL_NORMAL, ISO_CHECK_FILL_UNIFORM,
                                     ISO_CHECK_FILL_INTEGER};
    size_t range = suite->most[i] - suite->least[i], step = 1;
    for (size_t v = 0, t = 0; v <= range; v += step, t++) {
        bool large = v > 70;
        struct iso_check_case c = {.flags = t % 9 == 8 ? ISO_CHECK_CASE_GOLDEN : 0};
        draw(&c, suite, large ? 10 : 40, r);
        c.p[i] = suite->least[i] + v;
        set_fill(&c, fills[t % 3]);
        iso_check_cases_add(list, c, large ? 2 : 4);
        step = large && t % 3 == 2 ? v / 7 : 1; /* three neighbours, then far ahead */
    }
}

static void usual_cases(const struct iso_check_suite *suite, struct iso_check_cases *list) {
    bool gap[ISO_CHECK_CASE_PARAMS];
    unsigned count = parameters(suite, gap);
    struct iso_check_random r = {count};
    for (const char *p = suite->name; *p; p++)
        r.state = (r.state ^ (unsigned char)*p) * ISO_CHECK_SPREAD;
    for (unsigned i = 0; i < count; i++) {
        if (!gap[i])
            sweep(suite, i, list, &r);
    }
    for (unsigned t = 0; t < 16 * ISO_CHECK_FILL_ALL; t++) {
        unsigned fill = t % ISO_CHECK_FILL_ALL;
        struct iso_check_case c = {.flags = t / ISO_CHECK_FILL_ALL ? 0 : ISO_CHECK_CASE_GOLDEN};
        draw(&c, suite, 70, &r);
        if (iso_check_fill_has_spot(fill))
            c.spot = iso_check_random_below(&r, 256);
        set_fill(&c, fill);
        if (allowed(suite, fill))
            iso_check_cases_add(list, c, 4);
    }
    for (unsigned t = 0; t < 2; t++) {
        struct iso_check_case c = {.flags = ISO_CHECK_CASE_ALIGN};
        for (unsigned i = 0; i < count; i++)
            c.p[i] = gap[i] ? t : suite->most[i] < 21 + 8 * t ? suite->most[i] : 21 + 8 * t;
        set_fill(&c, ISO_CHECK_FILL_NORMAL);
        iso_check_cases_add(list, c, 1);
    }
}

static void usual_random(const struct iso_check_suite *suite, struct iso_check_case *c,
                         struct iso_check_random *r) {
    draw(c, suite, SIZE_MAX, r);
    unsigned fill;
    do
        fill = (unsigned)iso_check_random_below(r, ISO_CHECK_FILL_ALL);
    while (!allowed(suite, fill));
    set_fill(c, fill);
}

bool iso_check_has_random(const struct iso_check_suite *suite) {
    return suite->random || !suite->cases;
}

void iso_check_random_case(const struct iso_check_suite *suite, struct iso_check_case *c,
                           struct iso_check_random *r) {
    if (suite->random)
        suite->random(c, r);
    else
        usual_random(suite, c, r);
}

void iso_check_suite_cases(const struct iso_check_suite *suite, struct iso_check_cases *list,
                           enum iso_check_plan plan) {
    *list = (struct iso_check_cases){.plan = plan};
    if (suite->cases)
        suite->cases(list);
    else if (plan != ISO_CHECK_PLAN_BENCH)
        usual_cases(suite, list);
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
