/* SPDX-License-Identifier: MIT
 *
 * isobit check: its options.
 */
#include "command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "abi.h"
#include "common.h"
#include "recording.h"
#include "replay.h"
#include "report.h"

static int complain(const char *what, const char *value) {
    fprintf(stderr, "isobit: check: %s%s%s; see isobit check --help\n", what, value ? " " : "",
            value ? value : "");
    return 2;
}

static int help(const char *command) {
    printf("usage: %s [OPTION...]\n\n", command);
    puts("every kernel on every instruction set of this machine, against the oracle and the\n"
         "committed hashes; exit code 1 when one of them is not as promised\n\n"
         "options:\n"
         "  --plugin FILE.so       instead of these, the kernels of a plug-in (isobit/check.h)\n"
         "  --blas LIB             instead of these, a BLAS; see isobit check --blas --help\n"
         "  --isa NAME             one instruction set only\n"
         "  --op NAME              one kernel only (also --kernel)\n"
         "  --quick, --exhaustive  fewer cases of the fixed plan; all 2^32 inputs of functions\n"
         "  --once                 each case in one place instead of three or more\n"
         "  --iters N              after the fixed plan, N random cases\n"
         "  --time-box SECONDS     random cases until so many seconds have passed\n"
         "  --seed N               of the random cases (default: from the clock)\n"
         "  --replay 'LINE'        the case that a failure has printed\n"
         "  --digest               only the hash of each kernel, the same everywhere\n"
         "  --json                 one JSON object instead of the table\n"
         "  --junit FILE           the results as a JUnit file, too\n"
         "  --markdown FILE        the results as a table of Markdown, too\n"
         "  --part K/N             every Nth case of the plan, from the Kth: for N processes\n"
         "  --where NAME=N         with --op: only cases with this parameter, as function=2\n"
         "  --errors               a row for each group of cases: rms, quantile, bias, ULP\n"
         "  --list                 the cases of the plan\n"
         "  --coverage             how many cases each kernel has with each kind of input\n"
         "  --case N               with --op: one case, by its number in --list\n"
         "  --max-fail N           reports for a kernel on an instruction set (default: 5)\n"
         "  --record FILE          writes what each case gave, for another machine\n"
         "  --compare FILE         the same cases here: equal, different within the bound, or\n"
         "                         wrong; takes plan, part and random cases from the file\n"
         "  --timing               seconds of each row\n"
         "  --golden FILE          committed hashes to compare with\n"
         "  --update-golden FILE   write them instead\n"
         "  --errors-file FILE     calibrated errors to compare with\n"
         "  --update-errors FILE   write them instead\n"
         "  --self-test            kernels that are broken on purpose: is each one found?\n"
         "  --help                 this text");
    return 0;
}

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
        return complain("cannot replay", wrong);
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

/* "2/3" */
static bool choose_part(struct iso_check_run *run, const char *text) {
    char *end = NULL;
    unsigned long k = strtoul(text, &end, 10), n = *end == '/' ? strtoul(end + 1, &end, 10) : 0;
    if (text[0] < '0' || text[0] > '9' || *end || k < 1 || k > n)
        return false;
    run->part = k - 1;
    run->parts = n;
    return true;
}

/* "function=2"; run->name is known. */
static bool choose_where(struct iso_check_run *run, const char *text) {
    const struct iso_check_suite *suite =
        run->name ? iso_check_suite_named(run->target, run->name) : NULL;
    const char *sign = strrchr(text, '=');
    uint64_t n = 0;
    int index = suite && sign ? iso_check_parameter(suite, text, (size_t)(sign - text)) : -1;
    if (index < 0 || !iso_check_number(&n, sign + 1))
        return false;
    run->where = true;
    run->where_index = (size_t)index;
    run->where_value = (size_t)n;
    return true;
}

static int choose_variant(struct iso_check_run *run, const char *isa) {
    static struct iso_check_variant chosen;
    for (size_t i = 0; i < run->variant_count; i++) {
        if (!strcmp(isa, run->variants[i].name)) {
            chosen = run->variants[i];
            run->variants = &chosen;
            run->variant_count = 1;
            return 0;
        }
    }
    return complain("there is no instruction set", isa);
}

/* What is asked for beside what struct iso_check_run holds. */
struct choices {
    const char *variant, *line, *where, *junit, *markdown;
    FILE *junit_file, *markdown_file;
    bool list, coverage, self_test, json, digest, seeded, planned;
    struct iso_recording recording;
};

/* Options without a value; false when there is no such one. */
static bool choose_switch(struct choices *c, struct iso_check_run *run, struct iso_check_report *k,
                          const char *option) {
    if (!strcmp(option, "--quick"))
        run->plan = ISO_CHECK_PLAN_QUICK, c->planned = true;
    else if (!strcmp(option, "--exhaustive"))
        run->plan = ISO_CHECK_PLAN_EXHAUSTIVE, c->planned = true;
    else if (!strcmp(option, "--once"))
        run->once = true;
    else if (!strcmp(option, "--timing"))
        run->timing = k->timing = true;
    else if (!strcmp(option, "--list"))
        c->list = true;
    else if (!strcmp(option, "--coverage"))
        c->coverage = true;
    else if (!strcmp(option, "--errors"))
        k->errors = true;
    else if (!strcmp(option, "--self-test"))
        c->self_test = true;
    else if (!strcmp(option, "--json"))
        c->json = true;
    else if (!strcmp(option, "--digest"))
        c->digest = true;
    else
        return false;
    return true;
}

/* Options with a number. */
static bool choose_number(struct choices *c, struct iso_check_run *run, struct iso_check_report *k,
                          const char *option, const char *value) {
    uint64_t n = 0;
    if (!iso_check_number(&n, value))
        return false;
    if (!strcmp(option, "--case"))
        run->only_case = value;
    else if (!strcmp(option, "--seed"))
        run->seed = n, c->seeded = true;
    else if (!strcmp(option, "--iters") && n)
        run->iters = (size_t)n;
    else if (!strcmp(option, "--time-box") && n)
        run->time_box = (double)n;
    else if (!strcmp(option, "--max-fail"))
        k->max_fail = (unsigned)n;
    else
        return false;
    return true;
}

/* Options with a text. */
static bool choose_text(struct choices *c, struct iso_check_run *run, const char *option,
                        const char *value) {
    if (!strcmp(option, "--kernel") || !strcmp(option, "--op"))
        run->name = value;
    else if (!strcmp(option, "--isa"))
        c->variant = value;
    else if (!strcmp(option, "--replay"))
        c->line = value;
    else if (!strcmp(option, "--golden"))
        run->golden.file = value;
    else if (!strcmp(option, "--update-golden"))
        run->update = value;
    else if (!strcmp(option, "--errors-file"))
        run->errors.file = value;
    else if (!strcmp(option, "--update-errors"))
        run->update_errors = value;
    else if (!strcmp(option, "--junit"))
        c->junit = value;
    else if (!strcmp(option, "--markdown"))
        c->markdown = value;
    else if (!strcmp(option, "--where"))
        c->where = value;
    else if (!strcmp(option, "--record"))
        c->recording.record = value;
    else if (!strcmp(option, "--compare"))
        c->recording.compare = value;
    else
        return !strcmp(option, "--part") && choose_part(run, value);
    return true;
}

/* What cannot be recorded, as it would be another the next time, and what the file decides. */
static int recording_misused(const struct choices *c, const struct iso_check_run *run) {
    const struct iso_recording *x = &c->recording;
    bool other = c->list || c->coverage || c->self_test || run->time_box > 0;
    if (x->record && x->compare)
        return complain("--record and --compare exclude each other", NULL);
    if (x->record && (other || c->line || run->only_case || run->where || run->update_errors ||
                      run->plan == ISO_CHECK_PLAN_EXHAUSTIVE))
        return complain("--record goes with --quick, --op, --isa, --part, --iters and --seed only",
                        NULL);
    if (x->compare && (other || c->planned || c->seeded || run->iters || run->parts))
        return complain("--compare takes plan, --part, --iters and --seed from the file", NULL);
    return 0;
}

static bool readable(const char *file) {
    FILE *f = file ? fopen(file, "r") : NULL;
    if (f)
        fclose(f);
    else if (file)
        fprintf(stderr, "isobit: check: %s: %s\n", file, strerror(errno));
    return f || !file;
}

/* 0, or the exit code after a complaint. */
static int choose(struct choices *c, struct iso_check_run *run, struct iso_check_report *k,
                  int argc, char **argv) {
    const char *exhaustive = getenv("ISOBIT_EXHAUSTIVE");
    if (exhaustive && *exhaustive && strcmp(exhaustive, "0") != 0)
        run->plan = ISO_CHECK_PLAN_EXHAUSTIVE;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (choose_switch(c, run, k, argv[i]))
            continue;
        if (!value ||
            (!choose_number(c, run, k, argv[i], value) && !choose_text(c, run, argv[i], value)))
            return complain("unknown option, or without its value:", argv[i]);
        i++;
    }
    if (run->name && !iso_check_suite_named(run->target, run->name))
        return complain("there is no kernel", run->name);
    if (run->only_case && !run->name)
        return complain("--case needs --op", NULL);
    if (c->where && !choose_where(run, c->where))
        return complain("--where needs --op, a parameter of its cases (see --list) and a number:",
                        c->where);
    if (recording_misused(c, run) || !readable(run->golden.file) || !readable(run->errors.file))
        return 2;
    return c->variant ? choose_variant(run, c->variant) : 0;
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
                  const struct choices *c, bool random) {
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
                    const struct choices *c) {
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

static struct choices *chosen;

/* A kernel has ended the process: what is known so far is said and compared. */
static int ended(struct iso_check_run *run) {
    int code = finish(run->user, run, chosen, false);
    int compared = iso_recording_end(&chosen->recording);
    return compared > code ? compared : code;
}

static int check(struct iso_check_run *run, struct iso_check_report *k, struct choices *c) {
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
    c->recording.some = c->line || run->only_case || run->where;
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

static int act(struct iso_check_run *run, struct iso_check_report *k, struct choices *c,
               const struct iso_check_own *own) {
    if (c->list || c->coverage) {
        (c->list ? list_cases : print_coverage)(run);
        return 0;
    }
    if (c->self_test)
        return own && own->self_test ? own->self_test(run)
                                     : complain("--self-test is for isobit's kernels", NULL);
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
    struct choices c = {0};
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
    int code = choose(&c, &run, k, argc, argv);
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
            return help(command);
    }
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--plugin") != 0)
            argv[rest++] = argv[i];
        else if (plugin || i + 1 == argc)
            return complain("--plugin needs one file", NULL);
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
