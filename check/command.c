/* SPDX-License-Identifier: MIT
 *
 * isobit check: what its options (options.h) ask for.
 */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "abi.h"
#include "common.h"
#include "options.h"
#include "recording.h"
#include "replay.h"
#include "report.h"

static void list_cases(const struct iso_check_run *run) {
    for (size_t i = 0; i < run->target->suite_count; i++) {
        struct iso_check_cases list;
        if (run->name && strcmp(run->name, run->target->suites[i]->name) != 0)
            continue;
        iso_check_suite_cases(run->target->suites[i], &list, run->plan);
        for (size_t j = 0; j < list.count; j++) {
            char text[400];
            iso_check_case_text(text, sizeof text, run->target->suites[i], &list.v[j]);
            printf("%s %zu: %s%s\n", run->target->suites[i]->name, j, text,
                   list.v[j].flags & ISO_CHECK_CASE_GOLDEN ? " (golden)" : "");
        }
        free(list.v);
    }
}

/* Cases by kernel and fill, and how many run at all 64 alignments. */
static void print_coverage(const struct iso_check_run *run) {
    static size_t counts[ISO_CHECK_FILL_ALL + 2][64];
    size_t suites = run->target->suite_count < 64 ? run->target->suite_count : 64;
    for (size_t i = 0; i < suites; i++) {
        struct iso_check_cases list;
        iso_check_suite_cases(run->target->suites[i], &list, run->plan);
        for (size_t j = 0; j < list.count; j++) {
            counts[list.v[j].fill][i]++;
            counts[ISO_CHECK_FILL_ALL][i] += (list.v[j].flags & ISO_CHECK_CASE_ALIGN) != 0;
            counts[ISO_CHECK_FILL_ALL + 1][i]++;
        }
        free(list.v);
    }
    printf("%-13s", "");
    for (size_t i = 0; i < suites; i++)
        printf(" %8.8s", run->target->suites[i]->name);
    for (unsigned f = 0; f < ISO_CHECK_FILL_ALL + 2; f++) {
        printf("\n%-13s", f < ISO_CHECK_FILL_ALL    ? iso_check_fill_name(f)
                          : f == ISO_CHECK_FILL_ALL ? "64 places"
                                                    : "all");
        for (size_t i = 0; i < suites; i++)
            printf(" %8zu", counts[f][i]);
    }
    printf("\n");
}

static int replay(struct iso_check_run *run, const char *line) {
    const struct iso_check_suite *suite;
    struct iso_check_case c;
    size_t offset;
    static struct iso_check_tally tallies[ISO_CHECK_MOST_VARIANTS];
    const char *wrong = iso_check_replay_parse(line, run->target, &suite, &c, &offset);
    if (wrong)
        return iso_check_complain("cannot replay", wrong);
    for (size_t s = 0; s < run->variant_count; s++)
        iso_check_tally_begin(&tallies[s]);
    iso_check_run_case(run, suite, &c, offset, tallies);
    for (size_t s = 0; s < run->variant_count; s++) {
        iso_check_tally_end(&tallies[s]);
        run->row(run, suite, &run->variants[s], &tallies[s], false);
    }
    return run->failures ? 1 : 0;
}

static int begin_file(const char *file, const char *header) {
    FILE *f = fopen(file, "w");
    if (!f) {
        fprintf(stderr, "isobit: check: %s: %s\n", file, strerror(errno));
        return 2;
    }
    fputs(header, f);
    return fclose(f) ? 2 : 0;
}

static int begin_files(struct iso_check_run *run) {
    if (run->update) {
        int code = begin_file(run->update, "# kernel, ISOBIT_NUMERICS_VERSION, XXH3 of its results "
                                           "(test_kernels --update-golden)\n");
        if (code)
            return code;
        run->golden = (struct iso_check_committed){0};
    }
    if (run->update_errors) { /* those of both plans */
        int code = begin_file(run->update_errors,
                              "# kernel, plan, group, elements, and their errors in units of the "
                              "bound: rms, 99.9 % quantile, mean\n"
                              "# (test_kernels --update-errors; what they are for: "
                              "struct iso_check_errors in check/engine.h)\n");
        if (code)
            return code;
        run->errors = (struct iso_check_committed){0};
    }
    return 0;
}

static void notes(FILE *f) {
    if (iso_check_guards_are_shy())
        fprintf(f, "NOTE: masked loads of this (emulated) machine touch all lanes: guard "
                   "pages on the right are used for scalar only\n");
    if (*iso_check_abi_missing())
        fprintf(f, "NOTE: not checked on this machine: %s\n", iso_check_abi_missing());
}

/* Before the run, so that a file that cannot be written costs no time. */
static bool open_file(FILE **f, const char *file) {
    *f = file ? fopen(file, "w") : NULL;
    if (file && !*f)
        fprintf(stderr, "isobit: check: %s: %s\n", file, strerror(errno));
    return !file || *f;
}

static bool close_file(FILE *f, const char *file) {
    if (!f)
        return true;
    bool good = !ferror(f);
    good = !fclose(f) && good;
    if (!good)
        fprintf(stderr, "isobit: check: %s: cannot write\n", file);
    return good;
}

static int finish(const struct iso_check_report *k, const struct iso_check_run *run,
                  const struct iso_check_choices *c, bool random) {
    int code = run->failures ? 1 : 0;
    if (c->json) {
        iso_check_report_json(stdout, k, run);
    } else if (c->digest) {
        code |= iso_check_report_digest(k, run, false);
        if (random)
            code |= iso_check_report_digest(k, run, true);
    } else if (!c->line) {
        iso_check_report_end(k, run);
    }
    if (c->junit_file)
        iso_check_report_junit(c->junit_file, k, run);
    if (c->markdown_file)
        iso_check_report_markdown(c->markdown_file, k, run);
    bool written = close_file(c->junit_file, c->junit);
    return close_file(c->markdown_file, c->markdown) && written ? code : 2;
}

static int run_plan(struct iso_check_run *run, const struct iso_check_report *k,
                    const struct iso_check_choices *c) {
    if (run->update_errors) {
        run->plan = ISO_CHECK_PLAN_QUICK;
        iso_check_run_all(run);
        run->plan = ISO_CHECK_PLAN_FULL;
    }
    iso_check_run_all(run);
    bool random = (run->iters || run->time_box > 0) && !run->only_case && !run->where;
    if (random)
        iso_check_run_random(run);
    return finish(k, run, c, random);
}

static uint64_t seed_of_the_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return ((uint64_t)t.tv_sec * 1000000007 + (uint64_t)t.tv_nsec) % 1000000000;
}

static struct iso_check_choices *chosen;

/* A kernel has ended the process: what is known so far is said and compared. */
static int ended(struct iso_check_run *run) {
    int code = finish(run->user, run, chosen, false);
    int compared = iso_recording_end(&chosen->recording);
    return compared > code ? compared : code;
}

static int check(struct iso_check_run *run, struct iso_check_report *k,
                 struct iso_check_choices *c) {
    run->seed = c->seeded ? run->seed : seed_of_the_clock();
    if (c->digest || c->json)
        k->text = NULL;
    if (run->plan == ISO_CHECK_PLAN_EXHAUSTIVE) /* the errors of each function are what it is for */
        k->errors = true;
    if (c->digest && !c->planned) /* all golden cases are in each plan */
        run->plan = ISO_CHECK_PLAN_QUICK;
    if (c->junit)
        run->timing = true;
    c->recording.text = c->json ? NULL : k->text ? k->text : stderr;
    c->recording.command = k->command;
    c->recording.some = c->line || run->only_case || run->where || run->parts;
    c->recording.max_fail = k->max_fail;
    if (iso_recording_begin(&c->recording, run))
        return 2;
    k->seed = run->seed;
    k->recording = &c->recording;
    chosen = c;
    run->ended = ended;
    notes(k->text ? k->text : stderr);
    if (k->text)
        iso_check_report_header(k);
    int code = c->line ? replay(run, c->line) : run_plan(run, k, c);
    if (c->line && code != 2)
        code = finish(k, run, c, false);
    int compared = iso_recording_end(&c->recording);
    return compared > code ? compared : code;
}

/* The command that a replay line begins with. Names that a shell reads otherwise are quoted. */
static char *plugin_command(const char *command, const char *file) {
    size_t length = strlen(command) + 4 * strlen(file) + 20;
    char *text = malloc(length), *to = text;
    if (!text)
        iso_check_die("memory");
    to += sprintf(to, "%s --plugin ", command);
    bool plain = !file[strspn(file, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                    "_-+.,/:@")];
    if (!plain)
        *to++ = '\'';
    for (; *file; file++) {
        if (*file == '\'')
            to += sprintf(to, "'\\'");
        *to++ = *file;
    }
    if (!plain)
        *to++ = '\'';
    *to = 0;
    return text;
}

static int act(struct iso_check_run *run, struct iso_check_report *k, struct iso_check_choices *c,
               const struct iso_check_own *own) {
    if (c->list || c->coverage) {
        (c->list ? list_cases : print_coverage)(run);
        return 0;
    }
    if (c->self_test)
        return own && own->self_test
                   ? own->self_test(run)
                   : iso_check_complain("--self-test is for isobit's kernels", NULL);
    int code = begin_files(run);
    if (code)
        return code;
    if (!open_file(&c->junit_file, c->junit) || !open_file(&c->markdown_file, c->markdown))
        return 2;
    return check(run, k, c);
}

/* The options for a target that can be used. */
static int check_target(const struct iso_check_target *target, const struct iso_check_own *own,
                        const char *command, int argc, char **argv) {
    struct iso_check_run run;
    struct iso_check_choices c = {0};
    struct iso_check_report *k = calloc(1, sizeof *k);
    if (!k)
        iso_check_die("memory");
    iso_check_run_init(&run, target);
    k->text = stdout;
    k->command = command;
    k->max_fail = 5;
    iso_check_report_begin(k, &run);
    if (own) {
        run.golden.text = own->golden;
        run.errors.text = own->errors;
        run.numerics = own->numerics;
    }
    int code = iso_check_choose(&c, &run, k, argc, argv);
    if (!code)
        code = act(&run, k, &c, own);
    free(k);
    return code;
}

int iso_check_command(const struct iso_check_target *target, const struct iso_check_own *own,
                      int argc, char **argv) {
    const char *command = own ? own->command : argv[0], *plugin = NULL;
    char text[300];
    int rest = 1;
    for (int i = 1; i < argc; i++) { /* before anything happens */
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return iso_check_help(command);
    }
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--plugin") != 0)
            argv[rest++] = argv[i];
        else if (plugin || i + 1 == argc)
            return iso_check_complain("--plugin needs one file", NULL);
        else
            plugin = argv[++i];
    }
    if (!plugin && own)
        return check_target(target, own, command, rest, argv);
    struct iso_check_whole *whole = malloc(sizeof *whole);
    if (!whole)
        iso_check_die("memory");
    int code = 2;
    if (plugin) {
        char *replay_command = plugin_command(command, plugin);
        code = iso_check_plugin_load(whole, plugin);
        if (!code)
            code = check_target(&whole->target, NULL, replay_command, rest, argv);
        free(replay_command);
    } else if (iso_check_whole(whole, target, text, sizeof text)) {
        code = check_target(&whole->target, NULL, command, rest, argv);
    } else {
        fprintf(stderr, "isobit: check: %s\n", text);
    }
    free(whole);
    return code;
}

int iso_check_main(const struct iso_check_target *target, int argc, char **argv) {
    return iso_check_command(target, NULL, argc, argv);
}
