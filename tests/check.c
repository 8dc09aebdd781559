/* SPDX-License-Identifier: MIT
 *
 * isobit check: options, the table of results, JSON, hashes, and the line that replays a failure.
 * The work is done in runner.c.
 */
#include "check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#include <isobit/isobit.h>

#include "abi.h"
#include "runner.h"
#include "recording.h"

enum { MOST_SETS = 16, MOST_ROWS = 1024, MOST_FAILURES = 200 };

struct row {
    const struct iso_suite *suite;
    const struct iso_set *set;
    struct iso_tally tally;
    bool random;
};

struct failure {
    char kernel[32], set[32], reason[512], replay[ISO_REPLAY_TEXT];
};

struct check {
    FILE *text; /* of people; NULL: none */
    bool json, digest, timing, errors, planned;
    unsigned max_fail;
    struct row *rows;
    size_t row_count, random_header;
    struct failure *failures;
    size_t failure_count;
    uint64_t seed;
    struct iso_recording recording;
};

static int complain(const char *what, const char *value) {
    fprintf(stderr, "isobit: check: %s%s%s; see isobit check --help\n", what, value ? " " : "",
            value ? value : "");
    return 2;
}

static int help(void) {
    puts("usage: isobit check [OPTION...]\n\n"
         "every kernel on every instruction set of this machine, against the oracle and the\n"
         "committed hashes; exit code 1 when one of them is not as promised\n\n"
         "options:\n"
         "  --isa NAME             one instruction set only\n"
         "  --op NAME              one kernel only (also --kernel)\n"
         "  --quick, --exhaustive  fewer cases of the fixed plan; all 2^32 inputs of functions\n"
         "  --iters N              after the fixed plan, N random cases\n"
         "  --time-box SECONDS     random cases until so many seconds have passed\n"
         "  --seed N               of the random cases (default: from the clock)\n"
         "  --replay 'LINE'        the case that a failure has printed\n"
         "  --digest               only the hash of each kernel, the same everywhere\n"
         "  --json                 one JSON object instead of the table\n"
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

/* ---------------------------------------------------------------------------------- the replay */

void iso_replay_text(char *line, size_t bytes, const struct iso_failure *f) {
    char parameters[400];
    iso_case_text(parameters, sizeof parameters, f->suite, f->c);
    snprintf(line, bytes, "%s isa=%s at=%s %s kind=%u seed=0x%" PRIx64 " offset=%zu",
             f->suite->kernel, f->set->name, f->place, parameters, f->c->flags, f->c->seed,
             f->offset);
}

static bool number(uint64_t *value, const char *text) {
    char *end = NULL;
    errno = 0;
    *value = strtoull(text, &end, 0);
    return text[0] >= '0' && text[0] <= '9' && !*end && !errno;
}

/* The place of a parameter in suite->params, or -1. */
static int parameter(const struct iso_suite *suite, const char *name, size_t length) {
    const char *p = suite->params;
    for (int i = 0; *p; i++) {
        size_t n = strcspn(p, " ");
        if (n == length && !strncmp(p, name, n))
            return i;
        p += n + strspn(p + n, " ");
    }
    return -1;
}

static const char *replay_parse(const char *line, const struct iso_suite **suite,
                                struct iso_case *c, size_t *offset) {
    static char token[128];
    *suite = NULL;
    *c = (struct iso_case){0};
    *offset = 0;
    for (line += strspn(line, " "); *line;) {
        size_t length = strcspn(line, " ");
        if (length >= sizeof token)
            return "a word that is too long";
        memcpy(token, line, length);
        token[length] = 0;
        line += length + strspn(line + length, " ");
        if (!*suite) {
            *suite = iso_suite_named(token);
            if (!*suite)
                return token;
            continue;
        }
        char *sign = strrchr(token, '='); /* names may hold a '=' */
        if (!sign)
            return token;
        const char *value = sign + 1;
        size_t name = (size_t)(sign - token);
        int index = parameter(*suite, token, name);
        uint64_t n = 0;
        bool good = number(&n, value);
        if (index >= 0 && good) {
            c->p[index] = (size_t)n;
        } else if (!strncmp(token, "fill", name)) {
            while (c->fill < ISO_FILL_ALL && strcmp(iso_fill_name(c->fill), value) != 0)
                c->fill++;
            if (c->fill == ISO_FILL_ALL)
                return token;
        } else if (!strncmp(token, "spot", name) && good) {
            c->spot = (size_t)n;
        } else if (!strncmp(token, "kind", name) && good) {
            c->flags = (unsigned)n;
        } else if (!strncmp(token, "seed", name) && good) {
            c->seed = n;
        } else if (!strncmp(token, "offset", name) && good && n < 64) {
            *offset = (size_t)n;
        } else if (strncmp(token, "isa", name) != 0 && strncmp(token, "at", name) != 0) {
            return token;
        }
    }
    return *suite ? NULL : "an empty line";
}

/* ------------------------------------------------------------------------------------ the table */

static const char *result(const struct iso_tally *t) { return t->failures ? "FAIL" : "PASS"; }

static void print_row(const struct check *k, const struct row *r) {
    const struct iso_tally *t = &r->tally;
    char hash[32] = "-", ulp[32] = "-", stack[32] = "-";
    if (t->hashed)
        snprintf(hash, sizeof hash, "%016" PRIx64, t->bits);
    if (t->ulp > 0)
        snprintf(ulp, sizeof ulp, "%.3f", t->ulp);
    if (t->stack)
        snprintf(stack, sizeof stack, "%zu", t->stack);
    fprintf(k->text, "%-14s %-7s %7zu %8zu %9.4f %8s %6s  %-16s  %s", r->suite->kernel,
            r->set->name, t->cases, t->calls, t->worst, ulp, stack, hash, result(t));
    if (t->failures)
        fprintf(k->text, " (%zu)", t->failures);
    if (k->timing)
        fprintf(k->text, "  %.2f s", t->seconds);
    fprintf(k->text, "\n");
}

/* Errors in units of the bound; bias is the mean, positive where results are too far from zero. */
static void print_errors(const struct check *k, const struct row *r) {
    for (size_t i = 0; i < r->tally.group_count; i++) {
        const struct iso_errors *e = &r->tally.groups[i];
        if (e->elements)
            fprintf(k->text,
                    "  %-14s %10zu elements: rms %.4f, 99.9 %% %.3f, bias %+.4f, worst %.4f, "
                    "ULP %.4f\n",
                    e->name, e->elements, e->rms, e->q999, e->bias, e->worst, e->ulp);
    }
}

static void print_header(const struct check *k) {
    fprintf(k->text, "%-14s %-7s %7s %8s %9s %8s %6s  %-16s  %s\n", "kernel", "isa", "cases",
            "calls", "err/bound", "err ULP", "stack", "hash of the bits", "result");
}

static void on_row(struct iso_run *run, const struct iso_suite *suite, const struct iso_set *set,
                   const struct iso_tally *t, bool random) {
    struct check *k = run->user;
    if (k->row_count == MOST_ROWS)
        return;
    struct row *r = &k->rows[k->row_count++];
    *r = (struct row){suite, set, *t, random};
    if (!k->text)
        return;
    if (set->missing) {
        if (!random)
            fprintf(k->text, "%-14s %-7s SKIPPED: %s\n", suite->kernel, set->name, set->missing);
        return;
    }
    if (random && !k->random_header++)
        fprintf(k->text, "random cases, --seed %" PRIu64 ":\n", k->seed);
    print_row(k, r);
    if (k->errors)
        print_errors(k, r);
    fflush(k->text);
}

static void on_failure(struct iso_run *run, const struct iso_failure *f, size_t count) {
    struct check *k = run->user;
    if (count > k->max_fail)
        return;
    struct failure text = {.replay = ""};
    snprintf(text.kernel, sizeof text.kernel, "%s", f->suite->kernel);
    snprintf(text.set, sizeof text.set, "%s", f->set->name);
    snprintf(text.reason, sizeof text.reason, "%s", f->reason);
    if (f->c)
        iso_replay_text(text.replay, sizeof text.replay, f);
    if (k->failure_count < MOST_FAILURES)
        k->failures[k->failure_count++] = text;
    FILE *out = k->text ? k->text : stderr;
    fprintf(out, "FAIL %s %s: %s\n", text.kernel, text.set, text.reason);
    if (f->c)
        fprintf(out, "  isobit check --replay '%s'\n", text.replay);
    else
        fprintf(out, "  isobit check --op %s --isa %s\n", text.kernel, text.set);
    fflush(out);
}

/* ---------------------------------------------------------------------------- hashes and JSON */

/* The hash of a kernel when all sets that ran agree; *missing when there is none. */
static bool kernel_hash(const struct check *k, const struct iso_suite *suite, bool random,
                        uint64_t *hash, bool *missing) {
    *missing = true;
    for (size_t i = 0; i < k->row_count; i++) {
        const struct row *r = &k->rows[i];
        if (r->suite != suite || r->random != random || r->set->missing || !r->tally.hashed)
            continue;
        if (!*missing && *hash != r->tally.bits)
            return false;
        *hash = r->tally.bits;
        *missing = false;
    }
    return true;
}

/* The hash of all hashes; false, and the name of a kernel, when sets disagree. */
static bool whole_hash(const struct check *k, bool random, uint64_t *all, const char **differs) {
    XXH3_state_t *state = XXH3_createState();
    bool same = true;
    XXH3_64bits_reset(state);
    for (size_t i = 0; i < iso_suite_count; i++) {
        uint64_t hash = 0;
        bool missing;
        if (!kernel_hash(k, iso_suites[i], random, &hash, &missing)) {
            *differs = iso_suites[i]->kernel;
            same = false;
        } else if (!missing) {
            char line[64];
            int n = snprintf(line, sizeof line, "%s %016" PRIx64 "\n", iso_suites[i]->kernel, hash);
            XXH3_64bits_update(state, line, (size_t)n);
        }
    }
    *all = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return same;
}

static int print_digest(const struct check *k, const struct iso_run *run, bool random) {
    uint64_t all = 0;
    const char *differs = NULL;
    int code = 0;
    printf("isobit %s, numerics %d", iso_version(), ISOBIT_NUMERICS_VERSION);
    if (random)
        printf(", random cases of seed %" PRIu64, k->seed);
    printf("\n");
    for (size_t i = 0; i < iso_suite_count; i++) {
        uint64_t hash = 0;
        bool missing;
        if (!kernel_hash(k, iso_suites[i], random, &hash, &missing))
            printf("%-14s differs\n", iso_suites[i]->kernel);
        else if (!missing)
            printf("%-14s %016" PRIx64 "\n", iso_suites[i]->kernel, hash);
    }
    if (whole_hash(k, random, &all, &differs)) {
        printf("%-14s %016" PRIx64 "  on", "all", all);
        for (size_t s = 0; s < run->set_count; s++)
            printf("%s%s", run->sets[s].missing ? "" : " ",
                   run->sets[s].missing ? "" : run->sets[s].name);
        printf("\n");
    } else {
        printf("%-14s differs\n", "all");
        code = 1;
    }
    return code;
}

static void print_string(const char *text) {
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        if ((unsigned char)*text >= ' ')
            putchar(*text);
    }
    putchar('"');
}

static void print_json(const struct check *k, const struct iso_run *run) {
    uint64_t all = 0;
    const char *differs = NULL;
    printf("{\"version\": \"%s\", \"numerics\": %d, \"seed\": %" PRIu64 ", \"seconds\": %.2f,\n",
           iso_version(), ISOBIT_NUMERICS_VERSION, k->seed, iso_run_seconds(run));
    printf(" \"not_checked\": ");
    print_string(iso_abi_missing());
    printf(",\n \"digest\": ");
    if (whole_hash(k, false, &all, &differs))
        printf("\"%016" PRIx64 "\"", all);
    else
        printf("null");
    printf(",\n \"results\": [");
    for (size_t i = 0; i < k->row_count; i++) {
        const struct row *r = &k->rows[i];
        const struct iso_tally *t = &r->tally;
        printf("%s\n  {\"kernel\": \"%s\", \"isa\": \"%s\", \"plan\": \"%s\", ", i ? "," : "",
               r->suite->kernel, r->set->name, r->random ? "random" : "fixed");
        if (r->set->missing) {
            printf("\"result\": \"SKIPPED\", \"why\": ");
            print_string(r->set->missing);
            printf("}");
            continue;
        }
        printf("\"cases\": %zu, \"calls\": %zu, \"error_of_bound\": %.6g, \"error_ulp\": %.6g, "
               "\"stack_bytes\": %zu, \"hash\": ",
               t->cases, t->calls, t->worst, t->ulp, t->stack);
        if (t->hashed)
            printf("\"%016" PRIx64 "\"", t->bits);
        else
            printf("null");
        printf(", \"groups\": [");
        for (size_t j = 0, n = 0; j < t->group_count; j++) {
            const struct iso_errors *e = &t->groups[j];
            if (e->elements)
                printf("%s{\"name\": \"%s\", \"elements\": %zu, \"rms\": %.6g, \"q999\": %.6g, "
                       "\"bias\": %.6g, \"worst\": %.6g, \"ulp\": %.6g}",
                       n++ ? ", " : "", e->name, e->elements, e->rms, e->q999, e->bias, e->worst,
                       e->ulp);
        }
        printf("], \"failures\": %zu, \"result\": \"%s\"}", t->failures, result(t));
    }
    printf("\n ],\n \"failures\": [");
    for (size_t i = 0; i < k->failure_count; i++) {
        const struct failure *f = &k->failures[i];
        printf("%s\n  {\"kernel\": \"%s\", \"isa\": \"%s\", \"reason\": ", i ? "," : "", f->kernel,
               f->set);
        print_string(f->reason);
        printf(", \"replay\": ");
        print_string(f->replay);
        printf("}");
    }
    printf("\n ],\n \"compared\": ");
    iso_recording_json(&k->recording, stdout);
    printf(",\n \"result\": \"%s\"}\n", run->failures ? "FAIL" : "PASS");
}

/* ----------------------------------------------------------------------------------- the command
 */

static void list_cases(const struct iso_run *run) {
    for (size_t i = 0; i < iso_suite_count; i++) {
        struct iso_cases list;
        if (run->kernel && strcmp(run->kernel, iso_suites[i]->kernel) != 0)
            continue;
        iso_suite_cases(iso_suites[i], &list, run->plan);
        for (size_t j = 0; j < list.count; j++) {
            char text[400];
            iso_case_text(text, sizeof text, iso_suites[i], &list.v[j]);
            printf("%s %zu: %s%s\n", iso_suites[i]->kernel, j, text,
                   list.v[j].flags & ISO_CASE_GOLDEN ? " (golden)" : "");
        }
        free(list.v);
    }
}

/* Cases by kernel and fill, and how many run at all 64 alignments. */
static void print_coverage(const struct iso_run *run) {
    static size_t counts[ISO_FILL_ALL + 2][64];
    size_t suites = iso_suite_count < 64 ? iso_suite_count : 64;
    for (size_t i = 0; i < suites; i++) {
        struct iso_cases list;
        iso_suite_cases(iso_suites[i], &list, run->plan);
        for (size_t j = 0; j < list.count; j++) {
            counts[list.v[j].fill][i]++;
            counts[ISO_FILL_ALL][i] += (list.v[j].flags & ISO_CASE_ALIGN) != 0;
            counts[ISO_FILL_ALL + 1][i]++;
        }
        free(list.v);
    }
    printf("%-13s", "");
    for (size_t i = 0; i < suites; i++)
        printf(" %8.8s", iso_suites[i]->kernel);
    for (unsigned f = 0; f < ISO_FILL_ALL + 2; f++) {
        printf("\n%-13s", f < ISO_FILL_ALL    ? iso_fill_name(f)
                          : f == ISO_FILL_ALL ? "64 places"
                                              : "all");
        for (size_t i = 0; i < suites; i++)
            printf(" %8zu", counts[f][i]);
    }
    printf("\n");
}

static int replay(struct iso_run *run, const char *line) {
    const struct iso_suite *suite;
    struct iso_case c;
    size_t offset;
    static struct iso_tally tallies[MOST_SETS];
    const char *wrong = replay_parse(line, &suite, &c, &offset);
    if (wrong)
        return complain("cannot replay", wrong);
    for (size_t s = 0; s < run->set_count; s++)
        iso_tally_begin(&tallies[s]);
    iso_run_case(run, suite, &c, offset, tallies);
    for (size_t s = 0; s < run->set_count; s++) {
        iso_tally_end(&tallies[s]);
        run->row(run, suite, &run->sets[s], &tallies[s], false);
    }
    return run->failures ? 1 : 0;
}

static int begin_file(const char *file, const char *header) {
    FILE *f = fopen(file, "w");
    if (!f) {
        perror(file);
        return 2;
    }
    fputs(header, f);
    return fclose(f) ? 2 : 0;
}

/* "2/3" */
static bool choose_part(struct iso_run *run, const char *text) {
    char *end = NULL;
    unsigned long k = strtoul(text, &end, 10), n = *end == '/' ? strtoul(end + 1, &end, 10) : 0;
    if (text[0] < '0' || text[0] > '9' || *end || k < 1 || k > n)
        return false;
    run->part = k - 1;
    run->parts = n;
    return true;
}

/* "function=2"; run->kernel is known. */
static bool choose_where(struct iso_run *run, const char *text) {
    const struct iso_suite *suite = run->kernel ? iso_suite_named(run->kernel) : NULL;
    const char *sign = strrchr(text, '=');
    uint64_t n = 0;
    int index = suite && sign ? parameter(suite, text, (size_t)(sign - text)) : -1;
    if (index < 0 || !number(&n, sign + 1))
        return false;
    run->where = true;
    run->where_index = (size_t)index;
    run->where_value = (size_t)n;
    return true;
}

static int choose_set(struct iso_run *run, const char *isa) {
    static struct iso_set chosen;
    for (size_t i = 0; i < run->set_count; i++) {
        if (!strcmp(isa, run->sets[i].name)) {
            chosen = run->sets[i];
            run->sets = &chosen;
            run->set_count = 1;
            return 0;
        }
    }
    return complain("there is no instruction set", isa);
}

static int finish(struct check *k, struct iso_run *run, bool random) {
    int code = run->failures ? 1 : 0;
    const char *differs = NULL;
    uint64_t all = 0;
    if (k->json) {
        print_json(k, run);
        return code;
    }
    if (k->digest) {
        code |= print_digest(k, run, false);
        return random ? code | print_digest(k, run, true) : code;
    }
    size_t calls = 0, cases = 0;
    for (size_t i = 0; i < k->row_count; i++) {
        calls += k->rows[i].tally.calls;
        cases += k->rows[i].tally.cases;
    }
    double seconds = iso_run_seconds(run);
    if (whole_hash(k, false, &all, &differs) && !run->kernel && !run->update && !run->parts)
        printf("numerics %d, hash of all kernels %016" PRIx64 "\n", ISOBIT_NUMERICS_VERSION, all);
    printf("%zu cases, %zu calls, %.1f s, %.0f calls/s: %zu failures\n", cases, calls, seconds,
           (double)calls / seconds, run->failures);
    return code;
}

static int end(struct check *k, int code) {
    int compared = iso_recording_end(&k->recording);
    iso_recording_free(&k->recording);
    return compared > code ? compared : code;
}

/* What cannot be recorded, as it would be another the next time, and what the file decides. */
static int recording_misused(const struct check *k, const struct iso_run *run, const char *line) {
    const struct iso_recording *x = &k->recording;
    bool some = line || run->only_case || run->where;
    if (x->record && x->compare)
        return complain("--record and --compare exclude each other", NULL);
    if (x->record && (some || run->time_box > 0 || run->plan == ISO_PLAN_EXHAUSTIVE))
        return complain("--record takes a plan, --op, --isa, --part, --iters; no other choice of "
                        "cases",
                        NULL);
    if (x->compare && (k->planned || run->time_box > 0 || run->iters || run->parts))
        return complain("--compare takes plan, --part, --iters and --seed from its file", NULL);
    return 0;
}

int isobit_check(int argc, char **argv) {
    static struct failure failures[MOST_FAILURES];
    static struct row rows[MOST_ROWS];
    struct iso_run run;
    struct check k = {.text = stdout, .max_fail = 5, .rows = rows, .failures = failures};
    bool list = false, coverage = false, self = false, seeded = false, planned = false;
    const char *isa = NULL, *line = NULL, *where = NULL;
    for (int i = 1; i < argc; i++) { /* before anything happens */
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return help();
    }
    iso_run_init(&run);
    run.golden = ISOBIT_TEST_DATA "/golden.txt";
    run.errors = ISOBIT_TEST_DATA "/errors.txt";
    run.row = on_row;
    run.failed = on_failure;
    run.user = &k;
    const char *exhaustive = getenv("ISOBIT_EXHAUSTIVE");
    if (exhaustive && *exhaustive && strcmp(exhaustive, "0") != 0)
        run.plan = ISO_PLAN_EXHAUSTIVE;
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        uint64_t n = 0;
        bool counted = value && number(&n, value);
        if (!strcmp(option, "--quick"))
            run.plan = ISO_PLAN_QUICK, planned = true;
        else if (!strcmp(option, "--exhaustive"))
            run.plan = ISO_PLAN_EXHAUSTIVE, planned = true;
        else if (!strcmp(option, "--timing"))
            run.timing = k.timing = true;
        else if (!strcmp(option, "--list"))
            list = true;
        else if (!strcmp(option, "--coverage"))
            coverage = true;
        else if (!strcmp(option, "--errors"))
            k.errors = true;
        else if (!strcmp(option, "--self-test"))
            self = true;
        else if (!strcmp(option, "--json"))
            k.json = true;
        else if (!strcmp(option, "--digest"))
            k.digest = true;
        else if ((!strcmp(option, "--kernel") || !strcmp(option, "--op")) && value)
            run.kernel = argv[++i];
        else if (!strcmp(option, "--case") && counted)
            run.only_case = argv[++i];
        else if (!strcmp(option, "--isa") && value)
            isa = argv[++i];
        else if (!strcmp(option, "--seed") && counted)
            run.seed = n, seeded = true, i++;
        else if (!strcmp(option, "--iters") && counted && n)
            run.iters = (size_t)n, i++;
        else if (!strcmp(option, "--time-box") && counted && n)
            run.time_box = (double)n, i++;
        else if (!strcmp(option, "--max-fail") && counted)
            k.max_fail = (unsigned)n, i++;
        else if (!strcmp(option, "--replay") && value)
            line = argv[++i];
        else if (!strcmp(option, "--golden") && value)
            run.golden = argv[++i];
        else if (!strcmp(option, "--update-golden") && value)
            run.update = argv[++i];
        else if (!strcmp(option, "--errors-file") && value)
            run.errors = argv[++i];
        else if (!strcmp(option, "--update-errors") && value)
            run.update_errors = argv[++i];
        else if (!strcmp(option, "--record") && value)
            k.recording.record = argv[++i];
        else if (!strcmp(option, "--compare") && value)
            k.recording.compare = argv[++i];
        else if (!strcmp(option, "--where") && value)
            where = argv[++i];
        else if (!strcmp(option, "--part") && value && choose_part(&run, value))
            i++;
        else
            return complain("unknown option, or without its value:", option);
    }
    if (run.kernel && !iso_suite_named(run.kernel))
        return complain("there is no kernel", run.kernel);
    if (run.set_count > MOST_SETS || (run.only_case && !run.kernel))
        return complain("--case needs --op", NULL);
    if (where && !choose_where(&run, where))
        return complain("--where needs --op, a parameter of its cases (see --list) and a number:",
                        where);
    if (isa && choose_set(&run, isa))
        return 2;
    if (list) {
        list_cases(&run);
        return 0;
    }
    if (coverage) {
        print_coverage(&run);
        return 0;
    }
    if (self)
        return iso_self_test(&run);
    k.planned = planned || seeded;
    if (recording_misused(&k, &run, line))
        return 2;
    if (!seeded) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        run.seed = ((uint64_t)t.tv_sec * 1000000007 + (uint64_t)t.tv_nsec) % 1000000000;
    }
    if (k.digest || k.json)
        k.text = NULL;
    if (run.plan == ISO_PLAN_EXHAUSTIVE) /* the errors of each function are what it is for */
        k.errors = true;
    if (k.digest && !planned) /* all golden cases are in each plan */
        run.plan = ISO_PLAN_QUICK;
    k.recording.text = k.json ? NULL : k.text ? k.text : stderr;
    k.recording.max_fail = k.max_fail;
    if (iso_recording_begin(&k.recording, &run, "isobit"))
        return 2;
    k.seed = run.seed;
    if (run.update) {
        int code = begin_file(run.update, "# kernel, ISOBIT_NUMERICS_VERSION, XXH3 of its results "
                                          "(test_kernels --update-golden)\n");
        if (code)
            return code;
        run.golden = NULL;
    }
    if (run.update_errors) { /* those of both plans */
        int code = begin_file(run.update_errors,
                              "# kernel, plan, group, elements, and their errors in units of the "
                              "bound: rms, 99.9 % quantile, mean\n"
                              "# (test_kernels --update-errors; what they are for: "
                              "struct iso_errors in tests/runner.h)\n");
        if (code)
            return code;
        run.errors = NULL;
    }
    FILE *notes = k.text ? k.text : stderr;
    if (iso_guards_are_shy())
        fprintf(notes, "NOTE: masked loads of this (emulated) machine touch all lanes: guard "
                       "pages on the right are used for scalar only\n");
    if (*iso_abi_missing())
        fprintf(notes, "NOTE: not checked on this machine: %s\n", iso_abi_missing());
    if (k.text)
        print_header(&k);
    if (line)
        return end(&k, replay(&run, line));
    if (run.update_errors) {
        run.plan = ISO_PLAN_QUICK;
        iso_run_all(&run);
        run.plan = ISO_PLAN_FULL;
    }
    iso_run_all(&run);
    bool random = (run.iters || run.time_box > 0) && !run.only_case && !run.where;
    if (random)
        iso_run_random(&run);
    return end(&k, finish(&k, &run, random));
}
