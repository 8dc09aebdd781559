/* SPDX-License-Identifier: MIT
 *
 * Files that results are compared with: the hashes of the bits, and the errors that our kernels had
 * when they were measured.
 */
#include "committed.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common.h"

/* ---------------------------------------------------------------------------- committed hashes */

static FILE *open_committed(const struct iso_check_committed *c) {
    if (c->file)
        return fopen(c->file, "r");
    return fmemopen((void *)(uintptr_t)c->text, strlen(c->text), "r");
}

/* The line "kernel version hash" of the file; false when there is none. */
static bool golden_find(const struct iso_check_committed *c, const char *kernel, int *version,
                        uint64_t *hash) {
    FILE *f = open_committed(c);
    if (!f)
        return false;
    char line[256], name[64];
    unsigned long long value;
    bool found = false;
    while (!found && fgets(line, sizeof line, f)) {
        found = sscanf(line, "%63s %d %llx", name, version, &value) == 3 && !strcmp(name, kernel);
        if (found)
            *hash = value;
    }
    fclose(f);
    return found;
}

void iso_check_golden_name(char text[ISO_CHECK_GOLDEN_NAME], const struct iso_check_suite *suite,
                           enum iso_check_plan plan) {
    const char *of = plan == ISO_CHECK_PLAN_QUICK  ? "/quick"
                     : plan == ISO_CHECK_PLAN_FULL ? ""
                                                   : "/exhaustive";
    snprintf(text, ISO_CHECK_GOLDEN_NAME, "%s%s", suite->name, suite->by_plan ? of : "");
}

const char *iso_check_golden_compare(const struct iso_check_run *run, const char *kernel,
                                     uint64_t hash) {
    int version = 0;
    uint64_t want = 0;
    if (!golden_find(&run->golden, kernel, &version, &want))
        return "no committed hash (--update-golden FILE writes them)";
    if (!run->numerics)
        return want == hash ? NULL : "the bits are not those committed";
    if (version != run->numerics)
        return want == hash ? NULL : "committed hash is of another ISOBIT_NUMERICS_VERSION";
    return want == hash ? NULL
                        : "the bits are not those committed: if that is meant, raise "
                          "ISOBIT_NUMERICS_VERSION and update the hashes";
}

void iso_check_golden_append(const struct iso_check_run *run, const char *kernel, uint64_t hash) {
    FILE *f = fopen(run->update, "a");
    if (!f)
        iso_check_die(run->update);
    fprintf(f, "%s %d %016llx\n", kernel, run->numerics, (unsigned long long)hash);
    if (fclose(f))
        iso_check_die(run->update);
}

/* ------------------------------------------------------------------------- calibrated errors */

/*
 * tests/data/errors.txt holds what our kernels had when they were measured. The plan is fixed and
 * so are the bits, so on another machine the numbers come out the same; the margins leave room for
 * new cases. A kernel beyond them is worse than ours was, though each of its results may be within
 * its bound.
 */
#define ERRORS_MARGIN 1.25
#define ERRORS_BIAS 0.15 /* of the rms */

const char *iso_check_plan_name(enum iso_check_plan plan) {
    return plan == ISO_CHECK_PLAN_QUICK ? "quick" : plan == ISO_CHECK_PLAN_FULL ? "full" : NULL;
}

/* The line "kernel plan group elements rms q999 bias" of the file. */
static bool errors_find(const struct iso_check_committed *c, const char *kernel, const char *plan,
                        const char *group, struct iso_check_errors *have) {
    FILE *f = open_committed(c);
    if (!f)
        return false;
    char line[256], names[3][64];
    bool found = false;
    while (!found && fgets(line, sizeof line, f)) {
        found = sscanf(line, "%63s %63s %63s %zu %lf %lf %lf", names[0], names[1], names[2],
                       &have->elements, &have->rms, &have->q999, &have->bias) == 7 &&
                !strcmp(names[0], kernel) && !strcmp(names[1], plan) && !strcmp(names[2], group);
    }
    fclose(f);
    return found;
}

bool iso_check_errors_compare(char *text, size_t bytes, const struct iso_check_run *run,
                              const char *kernel, const struct iso_check_errors *e) {
    struct iso_check_errors have;
    if (!errors_find(&run->errors, kernel, iso_check_plan_name(run->plan), e->name, &have)) {
        snprintf(text, bytes,
                 "no calibrated errors of the group %s (test_kernels --update-errors FILE writes "
                 "them)",
                 e->name);
        return false;
    }
    const char *what = "rms error";
    double is = e->rms, was = have.rms, most = ERRORS_MARGIN * have.rms + 1e-6;
    if (is <= most) {
        what = "99.9 % quantile of the errors";
        is = e->q999, was = have.q999, most = ERRORS_MARGIN * have.q999 + 2e-3;
    }
    if (is <= most) {
        what = "mean error, away from zero,";
        is = fabs(e->bias), was = fabs(have.bias), most = was + ERRORS_BIAS * have.rms + 1e-6;
    }
    if (is <= most)
        return true;
    snprintf(text, bytes,
             "%s of the group %s is %.4g of the bound over %zu results; our kernels had %.4g", what,
             e->name, is, e->elements, was);
    return false;
}

void iso_check_errors_append(const struct iso_check_run *run, const char *kernel,
                             const struct iso_check_tally *t) {
    FILE *f = fopen(run->update_errors, "a");
    if (!f)
        iso_check_die(run->update_errors);
    for (size_t i = 0; i < t->group_count; i++) {
        const struct iso_check_errors *e = &t->groups[i];
        if (e->elements)
            fprintf(f, "%s %s %s %zu %.5f %.3f %.5f\n", kernel, iso_check_plan_name(run->plan),
                    e->name, e->elements, e->rms, e->q999, e->bias);
    }
    if (fclose(f))
        iso_check_die(run->update_errors);
}
