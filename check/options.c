/* SPDX-License-Identifier: MIT
 *
 * isobit check: reads its options.
 */
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "replay.h"

int iso_check_complain(const char *what, const char *value) {
    fprintf(stderr, "isobit: check: %s%s%s; see isobit check --help\n", what, value ? " " : "",
            value ? value : "");
    return 2;
}

int iso_check_help(const char *command) {
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
         "                         wrong; takes plan and random cases from the file, and the part\n"
         "                         unless --part is given\n"
         "  --timing               seconds of each row\n"
         "  --golden FILE          committed hashes to compare with\n"
         "  --update-golden FILE   write them instead\n"
         "  --errors-file FILE     calibrated errors to compare with\n"
         "  --update-errors FILE   write them instead\n"
         "  --self-test            kernels that are broken on purpose: is each one found?\n"
         "  --help                 this text");
    return 0;
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
    return iso_check_complain("there is no instruction set", isa);
}

/* Options without a value; false when there is no such one. */
static bool choose_switch(struct iso_check_choices *c, struct iso_check_run *run,
                          struct iso_check_report *k, const char *option) {
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
static bool choose_number(struct iso_check_choices *c, struct iso_check_run *run,
                          struct iso_check_report *k, const char *option, const char *value) {
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
static bool choose_text(struct iso_check_choices *c, struct iso_check_run *run, const char *option,
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
static int recording_misused(const struct iso_check_choices *c, const struct iso_check_run *run) {
    const struct iso_recording *x = &c->recording;
    bool other = c->list || c->coverage || c->self_test || run->time_box > 0;
    if (x->record && x->compare)
        return iso_check_complain("--record and --compare exclude each other", NULL);
    if (x->record && (other || c->line || run->only_case || run->where || run->update_errors ||
                      run->plan == ISO_CHECK_PLAN_EXHAUSTIVE))
        return iso_check_complain(
            "--record goes with --quick, --op, --isa, --part, --iters and --seed only", NULL);
    if (x->compare && (other || c->planned || c->seeded || run->iters))
        return iso_check_complain("--compare takes plan, --iters and --seed from the file", NULL);
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

int iso_check_choose(struct iso_check_choices *c, struct iso_check_run *run,
                     struct iso_check_report *k, int argc, char **argv) {
    const char *exhaustive = getenv("ISOBIT_EXHAUSTIVE");
    if (exhaustive && *exhaustive && strcmp(exhaustive, "0") != 0)
        run->plan = ISO_CHECK_PLAN_EXHAUSTIVE;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (choose_switch(c, run, k, argv[i]))
            continue;
        if (!value ||
            (!choose_number(c, run, k, argv[i], value) && !choose_text(c, run, argv[i], value)))
            return iso_check_complain("unknown option, or without its value:", argv[i]);
        i++;
    }
    if (run->name && !iso_check_suite_named(run->target, run->name))
        return iso_check_complain("there is no kernel", run->name);
    if (run->only_case && !run->name)
        return iso_check_complain("--case needs --op", NULL);
    if (c->where && !choose_where(run, c->where))
        return iso_check_complain(
            "--where needs --op, a parameter of its cases (see --list) and a number:", c->where);
    if (recording_misused(c, run) || !readable(run->golden.file) || !readable(run->errors.file))
        return 2;
    return c->variant ? choose_variant(run, c->variant) : 0;
}
