/* SPDX-License-Identifier: MIT
 *
 * See recording.h.
 */
#include "recording.h"

#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "replay.h"
#include "report.h"

static int complain(const char *file, const char *what) {
    fprintf(stderr, "isobit: check: %s: %s\n", file, what);
    return 2;
}

/* --------------------------------------------------------------------------------- recording */

static void record_seen(void *user, const struct iso_check_observation *seen) {
    struct iso_recording *x = user;
    iso_recorder_observe(&x->recorder, seen);
}

/* The CPU's own name for itself, or "". Not /proc/cpuinfo: emulators show that of their host. */
static void cpu_name(char *to, size_t bytes) {
    to[0] = 0;
#if defined(__x86_64__) || defined(__i386__)
    unsigned r[12] = {0};
    if ((unsigned)__get_cpuid_max(0x80000000, NULL) >= 0x80000004) {
        for (unsigned i = 0; i < 3; i++)
            __get_cpuid(0x80000002 + i, &r[4 * i], &r[4 * i + 1], &r[4 * i + 2], &r[4 * i + 3]);
        char name[sizeof r + 1] = "";
        memcpy(name, r, sizeof r);
        snprintf(to, bytes, ", %s", name + strspn(name, " "));
    }
#elif defined(__aarch64__)
    if (getauxval(AT_HWCAP) & HWCAP_CPUID) {
        uint64_t midr; /* implementer, part and revision; Linux answers for the register */
        __asm__("mrs %0, midr_el1" : "=r"(midr));
        snprintf(to, bytes, ", MIDR 0x%08" PRIx64, midr);
    }
#else
    (void)bytes;
#endif
}

static void machine_text(char to[ISO_RECORD_TEXT]) {
    char name[80], text[ISO_RECORD_TEXT + 80];
    struct utsname system;
    if (uname(&system) != 0)
        snprintf(system.machine, sizeof system.machine, "unknown");
    cpu_name(name, sizeof name);
    snprintf(text, sizeof text, "%s%s", system.machine, name);
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

static void describe(struct iso_record *r, const struct iso_check_run *run) {
    char names[ISO_RECORD_TEXT] = "";
    size_t used = 0;
    for (size_t s = 0; s < run->variant_count; s++) {
        if (!run->variants[s].missing && used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? " " : "",
                                     run->variants[s].name);
    }
    r->numerics = (uint32_t)run->numerics;
    r->plan = run->plan == ISO_CHECK_PLAN_FULL;
    r->part = run->parts > 1 ? (uint32_t)run->part : 0;
    r->parts = run->parts > 1 ? (uint32_t)run->parts : 0;
    r->iters = run->iters;
    r->seed = run->iters ? run->seed : 0;
    iso_record_text(r->target, run->target->name);
    iso_record_text(r->version, iso_check_version);
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

static void compare_seen(void *user, const struct iso_check_observation *seen) {
    struct iso_recording *x = user;
    if (!iso_comparison_observe(&x->comparison, seen))
        x->failed = true;
}

static void on_difference(struct iso_comparison *k, const struct iso_check_observation *seen,
                          const char *text, size_t nth) {
    const struct iso_recording *x = k->user;
    char replay[ISO_CHECK_LINE];
    FILE *out = x->text ? x->text : stderr;
    if (nth > x->max_fail)
        return;
    const struct iso_check_failure f = {seen->suite, seen->c,      seen->variant,
                                        "right",     seen->offset, text};
    iso_check_replay_text(replay, sizeof replay, &f);
    fprintf(out, "%s %s %s: %s\n", k->verdict == ISO_ALLOWED ? "NOTE" : "DIFFERS",
            seen->suite->name, seen->variant->name, text);
    fprintf(out, "  %s --compare %s --replay '%s'\n", x->command, x->compare, replay);
    fflush(out);
}

/* The suite, if the file has a single one, else NULL. */
static const char *single_suite(const struct iso_record *r) {
    for (size_t i = 1; i < r->count; i++) {
        if (strcmp(r->sections[i].suite, r->sections[0].suite) != 0)
            return NULL;
    }
    return r->count ? r->sections[0].suite : NULL;
}

static int begin_compare(struct iso_recording *x, struct iso_check_run *run) {
    const char *target = run->target->name;
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
    x->numerics = (uint32_t)run->numerics;
    x->comparison.differs = on_difference;
    x->comparison.user = x;
    run->plan = r->plan ? ISO_CHECK_PLAN_FULL : ISO_CHECK_PLAN_QUICK;
    if (run->parts && r->parts)
        return complain(x->compare, "is of a part: --part has no meaning here");
    if (!run->parts) {
        run->part = r->part;
        run->parts = r->parts;
    }
    run->iters = (size_t)r->iters;
    run->seed = r->seed;
    if (!run->name)
        run->name = single_suite(r);
    x->comparison.only = run->name;
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
        fprintf(x->text, "file: isobit %s, %s, %s, %s\n", r->version, r->machine, r->variants,
                r->compiler);
        if (r->numerics != x->numerics)
            fprintf(x->text,
                    "NOTE: numerics are %" PRIu32 " in the file, here %" PRIu32 ": other bits are "
                    "meant to be\n",
                    r->numerics, x->numerics);
        if (all.count[ISO_ABSENT] || (unmet && !x->some))
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

int iso_recording_begin(struct iso_recording *x, struct iso_check_run *run) {
    char message[ISO_RECORD_MESSAGE];
    if (x->compare) {
        int code = begin_compare(x, run);
        if (code)
            iso_record_free(&x->file);
        run->observe = compare_seen;
        run->observer = x;
        return code;
    }
    if (x->record) {
        if (!iso_record_writable(x->record, message))
            return complain(x->record, message);
        describe(&x->recorder.record, run);
        run->observe = record_seen;
        run->observer = x;
    }
    return 0;
}

int iso_recording_end(struct iso_recording *x) {
    int code = x->compare ? end_compare(x) : x->record ? end_record(x) : 0;
    if (x->comparison.index)
        iso_comparison_end(&x->comparison);
    iso_record_free(&x->file);
    iso_record_free(&x->recorder.record);
    return code;
}
