/* SPDX-License-Identifier: MIT
 *
 * The table of results and the digest.
 */
#include "report.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#include "committed.h"
#include "replay.h"

#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)
const char iso_check_version[] =
    TEXT(ISOBIT_VERSION_MAJOR) "." TEXT(ISOBIT_VERSION_MINOR) "." TEXT(ISOBIT_VERSION_PATCH);

const char *iso_check_row_result(const struct iso_check_row *row) {
    return row->missing ? "SKIPPED" : row->tally.failures ? "FAIL" : "PASS";
}

static void print_row(const struct iso_check_report *k, const struct iso_check_row *r) {
    const struct iso_check_tally *t = &r->tally;
    char hash[32] = "-", ulp[32] = "-", stack[32] = "-";
    if (t->hashed)
        snprintf(hash, sizeof hash, "%016" PRIx64, t->bits);
    if (t->ulp > 0)
        snprintf(ulp, sizeof ulp, "%.3f", t->ulp);
    if (t->stack)
        snprintf(stack, sizeof stack, "%zu", t->stack);
    fprintf(k->text, "%-14s %-7s %7zu %8zu %9.4f %8s %6s  %-16s  %s", r->suite->name,
            r->variant->name, t->cases, t->calls, t->worst, ulp, stack, hash,
            iso_check_row_result(r));
    if (t->failures)
        fprintf(k->text, " (%zu)", t->failures);
    if (k->timing)
        fprintf(k->text, "  %.2f s", t->seconds);
    if (k->timing && t->flops > 0 && t->call_seconds > 0)
        fprintf(k->text, ", %.2f GFLOP/s", t->flops / t->call_seconds * 1e-9);
    fprintf(k->text, "\n");
}

/* Errors in units of the bound; bias is the mean, positive where results are too far from zero. */
static void print_errors(const struct iso_check_report *k, const struct iso_check_row *r) {
    for (size_t i = 0; i < r->tally.group_count; i++) {
        const struct iso_check_errors *e = &r->tally.groups[i];
        if (e->elements)
            fprintf(k->text,
                    "  %-14s %10zu elements: rms %.4f, 99.9 %% %.3f, bias %+.4f, worst %.4f, "
                    "ULP %.4f\n",
                    e->name, e->elements, e->rms, e->q999, e->bias, e->worst, e->ulp);
    }
}

void iso_check_report_header(const struct iso_check_report *k) {
    fprintf(k->text, "%-14s %-7s %7s %8s %9s %8s %6s  %-16s  %s\n", "kernel", "isa", "cases",
            "calls", "err/bound", "err ULP", "stack", "hash of the bits", "result");
}

static void on_row(struct iso_check_run *run, const struct iso_check_suite *suite,
                   const struct iso_check_variant *variant, const struct iso_check_tally *t,
                   bool random) {
    struct iso_check_report *k = run->user;
    if (k->row_count == ISO_CHECK_MOST_ROWS)
        return;
    struct iso_check_row *r = &k->rows[k->row_count++];
    *r = (struct iso_check_row){suite, variant, iso_check_missing(run->target, suite, variant), *t,
                                random};
    if (!k->text)
        return;
    if (r->missing) {
        if (!random)
            fprintf(k->text, "%-14s %-7s SKIPPED: %s\n", suite->name, variant->name, r->missing);
        return;
    }
    if (random && !k->random_header++)
        fprintf(k->text, "random cases, --seed %" PRIu64 ":\n", k->seed);
    print_row(k, r);
    if (k->errors)
        print_errors(k, r);
    fflush(k->text);
}

static void on_failure(struct iso_check_run *run, const struct iso_check_failure *f, size_t count) {
    struct iso_check_report *k = run->user;
    if (count > k->max_fail)
        return;
    struct iso_check_finding text = {.replay = ""};
    snprintf(text.name, sizeof text.name, "%s", f->suite->name);
    snprintf(text.variant, sizeof text.variant, "%s", f->variant->name);
    snprintf(text.reason, sizeof text.reason, "%s", f->reason);
    if (f->c)
        iso_check_replay_text(text.replay, sizeof text.replay, f);
    if (k->finding_count < ISO_CHECK_MOST_FAILURES)
        k->findings[k->finding_count++] = text;
    FILE *out = k->text ? k->text : stderr;
    fprintf(out, "FAIL %s %s: %s\n", text.name, text.variant, text.reason);
    if (f->c)
        fprintf(out, "  %s --replay '%s'\n", k->command, text.replay);
    else
        fprintf(out, "  %s --op %s --isa %s\n", k->command, text.name, text.variant);
    fflush(out);
}

/* ---------------------------------------------------------------------------- hashes and JSON */

bool iso_check_report_hash(const struct iso_check_report *k, const struct iso_check_suite *suite,
                           bool random, uint64_t *hash, bool *missing) {
    *missing = true;
    for (size_t i = 0; i < k->row_count; i++) {
        const struct iso_check_row *r = &k->rows[i];
        if (r->suite != suite || r->random != random || r->missing || !r->tally.hashed)
            continue;
        if (!*missing && *hash != r->tally.bits)
            return false;
        *hash = r->tally.bits;
        *missing = false;
    }
    return true;
}

bool iso_check_report_whole(const struct iso_check_report *k, const struct iso_check_run *run,
                            bool random, uint64_t *all) {
    XXH3_state_t *state = XXH3_createState();
    bool same = true;
    XXH3_64bits_reset(state);
    for (size_t i = 0; i < run->target->suite_count; i++) {
        uint64_t hash = 0;
        bool missing;
        if (!iso_check_report_hash(k, run->target->suites[i], random, &hash, &missing)) {
            same = false;
        } else if (!missing && !run->target->suites[i]->by_plan) {
            char line[64];
            int n = snprintf(line, sizeof line, "%s %016" PRIx64 "\n", run->target->suites[i]->name,
                             hash);
            XXH3_64bits_update(state, line, (size_t)n);
        }
    }
    *all = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return same;
}

int iso_check_report_digest(const struct iso_check_report *k, const struct iso_check_run *run,
                            bool random) {
    uint64_t all = 0;
    int code = 0;
    if (run->numerics)
        printf("isobit %s, numerics %d", iso_check_version, run->numerics);
    else
        printf("%s, isobit %s", run->target->name, iso_check_version);
    if (random)
        printf(", random cases of seed %" PRIu64, k->seed);
    printf("\n");
    for (size_t i = 0; i < run->target->suite_count; i++) {
        uint64_t hash = 0;
        bool missing;
        char name[ISO_CHECK_GOLDEN_NAME];
        iso_check_golden_name(name, run->target->suites[i], run->plan);
        if (!iso_check_report_hash(k, run->target->suites[i], random, &hash, &missing))
            printf("%-14s differs\n", name);
        else if (!missing)
            printf("%-14s %016" PRIx64 "\n", name, hash);
    }
    if (iso_check_report_whole(k, run, random, &all)) {
        printf("%-14s %016" PRIx64 "  on", "all", all);
        for (size_t s = 0; s < run->variant_count; s++)
            printf("%s%s", run->variants[s].missing ? "" : " ",
                   run->variants[s].missing ? "" : run->variants[s].name);
        printf("\n");
    } else {
        printf("%-14s differs\n", "all");
        code = 1;
    }
    return code;
}

void iso_check_report_begin(struct iso_check_report *r, struct iso_check_run *run) {
    run->user = r;
    run->row = on_row;
    run->failed = on_failure;
}

void iso_check_report_end(const struct iso_check_report *r, const struct iso_check_run *run) {
    size_t calls = 0, cases = 0;
    uint64_t all = 0;
    for (size_t i = 0; i < r->row_count; i++) {
        calls += r->rows[i].tally.calls;
        cases += r->rows[i].tally.cases;
    }
    double seconds = iso_check_run_seconds(run);
    if (run->numerics && iso_check_report_whole(r, run, false, &all) && !run->name &&
        !run->update && !run->parts)
        printf("numerics %d, hash of all kernels %016" PRIx64 "\n", run->numerics, all);
    printf("%zu cases, %zu calls, %.1f s, %.0f calls/s: %zu failures\n", cases, calls, seconds,
           (double)calls / seconds, run->failures);
}
