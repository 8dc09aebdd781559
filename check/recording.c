/* SPDX-License-Identifier: MIT
 *
 * See recording.h.
 */
#include "recording.h"

#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>

#include <isobit/isobit.h>

static int complain(const char *file, const char *what) {
    fprintf(stderr, "isobit: check: %s: %s\n", file, what);
    return 2;
}

/* --------------------------------------------------------------------------------- recording */

static void record_seen(void *user, const struct iso_observation *seen) {
    struct iso_recording *x = user;
    iso_recorder_observe(&x->recorder, seen);
}

/* "s390x", or with the name of the CPU where the library knows it: "x86_64, AMD EPYC 9R45". */
static void machine_text(char to[ISO_RECORD_TEXT]) {
    static const char key[] = "\"name\": \"";
    char json[4096] = "", text[ISO_RECORD_TEXT + 128];
    struct utsname system;
    if (uname(&system) != 0)
        snprintf(system.machine, sizeof system.machine, "unknown");
    const char *name = NULL;
    if (iso_info_json(json, sizeof json, NULL) == ISOBIT_OK)
        name = strstr(json, key);
    name = name ? name + sizeof key - 1 : "";
    int length = (int)strcspn(name, "\"");
    snprintf(text, sizeof text, "%s%s%.*s", system.machine, length ? ", " : "", length, name);
    iso_record_text(to, text);
}

static const char *compiler(void) {
#if defined(__clang__)
    return "clang " __clang_version__;
#elif defined(__GNUC__)
    return "gcc " __VERSION__;
#else
    return "";
#endif
}

static void describe(struct iso_record *r, const struct iso_run *run, const char *target) {
    char names[ISO_RECORD_TEXT] = "";
    size_t used = 0;
    for (size_t s = 0; s < run->set_count; s++) {
        if (!run->sets[s].missing && used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? " " : "",
                                     run->sets[s].name);
    }
    r->numerics = ISOBIT_NUMERICS_VERSION;
    r->plan = run->plan == ISO_PLAN_FULL;
    r->part = run->parts > 1 ? (uint32_t)run->part : 0;
    r->parts = run->parts > 1 ? (uint32_t)run->parts : 0;
    r->iters = run->iters;
    r->seed = run->iters ? run->seed : 0;
    iso_record_text(r->target, target);
    iso_record_text(r->version, iso_version());
    iso_record_text(r->variants, names);
    iso_record_text(r->compiler, compiler());
    machine_text(r->machine);
}

static int end_record(struct iso_recording *x) {
    char message[ISO_RECORD_MESSAGE];
    struct iso_record *r = &x->recorder.record;
    size_t cases = 0, wrong = 0;
    if (x->recorder.failed)
        return complain(x->record, "out of memory, or too many kernels; nothing was written");
    for (size_t i = 0; i < r->count; i++) {
        for (size_t j = 0; j < r->sections[i].count; j++)
            wrong += r->sections[i].cases[j].bound == ISO_RECORD_WRONG;
        cases += r->sections[i].count;
    }
    if (!iso_record_write(r, x->record, message))
        return complain(x->record, message);
    if (x->text)
        fprintf(x->text, "recorded %zu results in %s%s\n", cases, x->record,
                wrong ? ", those that are wrong too" : "");
    return wrong ? 1 : 0;
}

/* --------------------------------------------------------------------------------- comparing */

static void compare_seen(void *user, const struct iso_observation *seen) {
    struct iso_recording *x = user;
    if (!iso_comparison_observe(&x->comparison, seen))
        x->failed = true;
}

static void on_difference(struct iso_comparison *k, const struct iso_observation *seen,
                          const char *text, size_t nth) {
    const struct iso_recording *x = k->user;
    char replay[ISO_REPLAY_TEXT];
    FILE *out = x->text ? x->text : stderr;
    if (nth > x->max_fail)
        return;
    const struct iso_failure f = {seen->suite, seen->c, seen->set, "right", seen->offset, text};
    iso_replay_text(replay, sizeof replay, &f);
    fprintf(out, "%s %s %s: %s\n", k->verdict == ISO_ALLOWED ? "NOTE" : "DIFFERS",
            seen->suite->kernel, seen->set->name, text);
    fprintf(out, "  isobit check --compare %s --replay '%s'\n", x->compare, replay);
    fflush(out);
}

static int begin_compare(struct iso_recording *x, struct iso_run *run, const char *target) {
    char message[ISO_RECORD_MESSAGE];
    const struct iso_record *r = &x->file;
    if (!iso_record_read(&x->file, x->compare, message))
        return complain(x->compare, message);
    if (strcmp(r->target, target) != 0) {
        snprintf(message, sizeof message, "has the kernels of %.80s, and not of %.80s", r->target,
                 target);
        return complain(x->compare, message);
    }
    if (!iso_comparison_begin(&x->comparison, &x->file))
        return complain(x->compare, "out of memory");
    x->comparison.differs = on_difference;
    x->comparison.user = x;
    run->plan = r->plan ? ISO_PLAN_FULL : ISO_PLAN_QUICK;
    run->part = r->part;
    run->parts = r->parts;
    run->iters = (size_t)r->iters;
    run->seed = r->seed;
    for (size_t i = 1; i < r->count && !run->kernel; i++) {
        if (strcmp(r->sections[i].suite, r->sections[0].suite) != 0)
            return 0;
    }
    if (!run->kernel && r->count)
        run->kernel = r->sections[0].suite;
    return 0;
}

static const char *verdict(const struct iso_compared *all) {
    return all->count[ISO_WRONG]       ? "wrong"
           : all->count[ISO_DIFFERENT] ? "different within the bound"
           : all->count[ISO_ALLOWED]   ? "equal where that is promised, else within the bound"
                                       : "equal";
}

static int end_compare(const struct iso_recording *x) {
    const struct iso_record *r = &x->file;
    size_t unmet, results = 0;
    struct iso_compared all = iso_comparison_total(&x->comparison, &unmet);
    for (unsigned v = 0; v < ISO_ABSENT; v++)
        results += all.count[v];
    if (x->failed)
        return complain(x->compare, "out of memory while comparing");
    if (!results)
        return complain(x->compare, "none of its cases has run");
    if (x->text) {
        fprintf(x->text, "file: isobit %s, numerics %u, %s, %s, %s\n", r->version, r->numerics,
                r->machine, r->variants, r->compiler);
        if (r->numerics != ISOBIT_NUMERICS_VERSION)
            fprintf(x->text, "NOTE: here numerics are %d: other bits are meant to be\n",
                    ISOBIT_NUMERICS_VERSION);
        if (all.count[ISO_ABSENT] || unmet)
            fprintf(x->text, "NOTE: %zu results are not in the file, %zu of the file did not run\n",
                    all.count[ISO_ABSENT], unmet);
        fprintf(x->text,
                "compared %zu results: %zu equal, %zu different, %zu different where only the "
                "bound is promised, %zu wrong\n",
                results, all.count[ISO_EQUAL], all.count[ISO_DIFFERENT], all.count[ISO_ALLOWED],
                all.count[ISO_WRONG]);
        if (all.ulp || all.parts)
            fprintf(x->text,
                    "samples differ by up to %u ULP; where a bound is wide, by %.2f of it\n",
                    all.ulp, all.parts / 100.);
        fprintf(x->text, "machines: %s\n", verdict(&all));
    }
    return all.count[ISO_WRONG] || all.count[ISO_DIFFERENT] ? 1 : 0;
}

void iso_recording_json(const struct iso_recording *x, FILE *to) {
    size_t unmet;
    if (!x->compare) {
        fprintf(to, "null");
        return;
    }
    struct iso_compared all = iso_comparison_total(&x->comparison, &unmet);
    fprintf(to,
            "{\"equal\": %zu, \"different\": %zu, \"different_as_allowed\": %zu, \"wrong\": %zu, "
            "\"not_in_file\": %zu, \"did_not_run\": %zu, \"ulp\": %u, \"part_of_bound\": %.2f, "
            "\"verdict\": \"%s\"}",
            all.count[ISO_EQUAL], all.count[ISO_DIFFERENT], all.count[ISO_ALLOWED],
            all.count[ISO_WRONG], all.count[ISO_ABSENT], unmet, all.ulp, all.parts / 100.,
            verdict(&all));
}

/* ---------------------------------------------------------------------------------- both */

int iso_recording_begin(struct iso_recording *x, struct iso_run *run, const char *target) {
    char message[ISO_RECORD_MESSAGE];
    if (x->compare) {
        int code = begin_compare(x, run, target);
        run->observe = compare_seen;
        run->observer = x;
        return code;
    }
    if (x->record) {
        if (!iso_record_writable(x->record, message))
            return complain(x->record, message);
        describe(&x->recorder.record, run, target);
        run->observe = record_seen;
        run->observer = x;
    }
    return 0;
}

int iso_recording_end(struct iso_recording *x) {
    return x->compare ? end_compare(x) : x->record ? end_record(x) : 0;
}

void iso_recording_free(struct iso_recording *x) {
    if (x->comparison.index)
        iso_comparison_end(&x->comparison);
    iso_record_free(&x->file);
    iso_record_free(&x->recorder.record);
}
