/* SPDX-License-Identifier: MIT
 *
 * isobit_bench: times the operations on every instruction set of this machine, beside what the
 * machine can do at best. docs/performance.md tells how to read what it prints.
 *
 * Measurements are taken in turns: in a round of a row (a case, a set, a number of threads) it gets
 * a few short samples, each next to a measurement of its peak. Google Benchmark shuffles the rounds
 * of all rows and writes the JSON; the table is made of what the rows collected.
 */
#include "rows.h"

const char *const statistic =
    "value: best of all samples; % of peak: median over rounds of best sample / best peak of the "
    "same round";

struct options options;
struct row *rows;
size_t row_count;
iso_pool *pool;
size_t threads;               /* all that are usable */
unsigned long done, left_out; /* rounds */
double began;

__attribute__((format(printf, 1, 2))) void complain(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("isobit_bench: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

/* ----------------------------------------------------------------------------------- the rows */

bool is_scalar(const iso_isa *isa) { return strcmp(isa->name, "scalar") == 0; }

static void add_row(const struct bench_case *spec, const iso_isa *isa, bool all_threads, bool peers,
                    const regex_t *filter) {
    struct row *r = &rows[row_count];
    if (row_count == MAX_ROWS)
        return;
    memset(r, 0, sizeof *r);
    r->spec = spec;
    r->place = (struct bench_place){.isa = isa, .threads = 1};
    if (all_threads) {
        r->place.executor = iso_pool_executor(pool);
        r->place.threads = threads;
    }
    bench_shape(r->shape, sizeof r->shape, spec);
    r->peers = peers;
    bench_name(r->name, sizeof r->name, spec, isa->name, r->place.threads);
    if (!filter || regexec(filter, r->name, 0, NULL, 0) == 0)
        row_count++;
}

static void add_rows(const regex_t *filter) {
    const iso_isa *best = NULL; /* of those that are measured */
    for (size_t j = 0; j < iso_isa_count() && !best; j++)
        if (!iso_isa_missing(iso_isa_get(j)) && iso_isa_get(j)->s8 == iso_isa_get(j)->kernels &&
            (!options.isa || strcmp(iso_isa_get(j)->name, options.isa) == 0))
            best = iso_isa_get(j);
    for (size_t i = 0; i < bench_case_count; i++) {
        const struct bench_case *spec = &bench_cases[i];
        if (options.quick && spec->flags & BENCH_HEAVY)
            continue;
        for (size_t j = 0; j < iso_isa_count(); j++) {
            const iso_isa *isa = iso_isa_get(j);
            if (iso_isa_missing(isa) || (options.isa && strcmp(isa->name, options.isa) != 0))
                continue;
            if (bench_has_row(spec, isa->name, false))
                add_row(spec, isa, false, isa == best, filter);
            if (threads > 1 && bench_has_row(spec, isa->name, true))
                add_row(spec, isa, true, isa == best, filter);
        }
    }
}

/* ------------------------------------------------------------------------------- command line */

static const char usage[] =
    "usage: isobit_bench [OPTION]...\n"
    "\n"
    "Times the operations of isobit beside the measured peak of this machine, and beside other\n"
    "libraries where they are installed.\n"
    "\n"
    "  --filter REGEX   only rows whose name op/shape/isa/tN matches (extended, anywhere)\n"
    "  --isa NAME       only this instruction set\n"
    "  --quick          fewer and shorter measurements, no large cases\n"
    "  --rounds N       how often each row is measured (default 9, quick 5)\n"
    "  --seconds N      from then on leave out rounds of rows that have one (default 480)\n"
    "  --json FILE      also write all measurements, as Google Benchmark does\n"
    "  --svg FILE       also draw a roofline plot\n"
    "  --no-peers       not beside other libraries (OpenBLAS, BLIS, oneDNN, libxsmm)\n"
    "  --list           only print the names\n"
    "  --gbench ARG...  print as Google Benchmark does, and pass it all that follows\n"
    "  --help           this text\n"
    "\n"
    "Exit status: 0, also when a floor is missed; 1 when something failed or instruction sets\n"
    "gave different bits; 2 for wrong usage.\n";

enum {
    OPT_FILTER = 256,
    OPT_ISA,
    OPT_JSON,
    OPT_QUICK,
    OPT_ROUNDS,
    OPT_LIST,
    OPT_HELP,
    OPT_SVG,
    OPT_SECONDS,
    OPT_NO_PEERS
};

/* 0: go on. 1: done. 2: wrong usage. */
static int parse(int argc, char **argv) {
    static const struct option longs[] = {
        {"filter", required_argument, NULL, OPT_FILTER},
        {"isa", required_argument, NULL, OPT_ISA},
        {"json", required_argument, NULL, OPT_JSON},
        {"quick", no_argument, NULL, OPT_QUICK},
        {"rounds", required_argument, NULL, OPT_ROUNDS},
        {"list", no_argument, NULL, OPT_LIST},
        {"help", no_argument, NULL, OPT_HELP},
        {"svg", required_argument, NULL, OPT_SVG},
        {"no-peers", no_argument, NULL, OPT_NO_PEERS},
        {"seconds", required_argument, NULL, OPT_SECONDS},
        {NULL, 0, NULL, 0},
    };
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--gbench") != 0)
            continue;
        options.gbench = true;
        for (int j = i + 1; j < argc; j++) {
            if (options.gbench_count == MAX_GBENCH_ARGS - 8) {
                complain("too many arguments after --gbench");
                return 2;
            }
            options.gbench_args[options.gbench_count++] = argv[j];
        }
        argc = i;
    }
    opterr = 0;
    options.seconds = 480;
    for (int c; (c = getopt_long(argc, argv, ":", longs, NULL)) != -1;) {
        char *end;
        unsigned long n;
        switch (c) {
        case OPT_FILTER: options.filter = optarg; break;
        case OPT_ISA: options.isa = optarg; break;
        case OPT_JSON: options.json = optarg; break;
        case OPT_SVG: options.svg = optarg; break;
        case OPT_NO_PEERS: options.no_peers = true; break;
        case OPT_QUICK: options.quick = true; break;
        case OPT_LIST: options.list = true; break;
        case OPT_ROUNDS:
            n = strtoul(optarg, &end, 10);
            if (*end || end == optarg || n < 1 || n > MAX_ROUNDS) {
                complain("--rounds wants a number from 1 to %d, not '%s'", MAX_ROUNDS, optarg);
                return 2;
            }
            options.rounds = (unsigned)n;
            break;
        case OPT_SECONDS:
            n = strtoul(optarg, &end, 10);
            if (*end || end == optarg || n > 1000000) {
                complain("--seconds wants a number of seconds, not '%s'", optarg);
                return 2;
            }
            options.seconds = (double)n;
            break;
        case OPT_HELP: fputs(usage, stdout); return 1;
        case ':': complain("%s wants a value; see --help", argv[optind - 1]); return 2;
        default:
            complain("there is no option '%s', or it takes no value; see --help", argv[optind - 1]);
            return 2;
        }
    }
    if (optind < argc) {
        complain("unexpected argument '%s'; see --help", argv[optind]);
        return 2;
    }
    if (!options.rounds)
        options.rounds = options.quick ? 5 : 9;
    return 0;
}

static int select_rows(void) {
    const iso_isa *isa;
    regex_t filter;
    if (options.isa && iso_isa_find(&isa, options.isa)) {
        complain("no instruction set '%s' here; there is: %s", options.isa, iso_isa_names());
        return 2;
    }
    if (options.filter) {
        int code = regcomp(&filter, options.filter, REG_EXTENDED | REG_NOSUB);
        if (code) {
            char why[128];
            regerror(code, &filter, why, sizeof why);
            complain("--filter '%s': %s", options.filter, why);
            return 2;
        }
    }
    add_rows(options.filter ? &filter : NULL);
    if (options.filter)
        regfree(&filter);
    if (row_count == 0) {
        complain("no row matches; --list prints the names");
        return 2;
    }
    return 0;
}

/* Google Benchmark's flags: ours first, so that those after --gbench win. */
static int run_rows(const char *program) {
    char repetitions[64], *out = NULL;
    char *args[MAX_GBENCH_ARGS + 1];
    int n = 0;
    char name[256], interleaved[] = "--benchmark_enable_random_interleaving=true";
    char format[] = "--benchmark_out_format=json";
    snprintf(name, sizeof name, "%s", program);
    args[n++] = name;
    snprintf(repetitions, sizeof repetitions, "--benchmark_repetitions=%u", options.rounds);
    args[n++] = repetitions;
    args[n++] = interleaved;
    if (options.json) {
        size_t bytes = strlen(options.json) + 32;
        out = malloc(bytes);
        if (!out)
            return 1;
        snprintf(out, bytes, "--benchmark_out=%s", options.json);
        args[n++] = out;
        args[n++] = format;
    }
    for (int i = 0; i < options.gbench_count; i++)
        args[n++] = options.gbench_args[i];
    args[n] = NULL;
    for (size_t i = 0; i < row_count; i++)
        gbench_register(rows[i].name, measure, &rows[i],
                        options.gbench ? 0 : (int)rounds_of(&rows[i]));
    int code = gbench_run(n, args, options.gbench);
    free(out);
    return code;
}

static int bench(const char *program) {
    size_t sizes[8];
    const char *names[8];
    const size_t n = footprints(sizes, names);
    const double start = began = bench_now();
    if (!options.no_peers)
        bench_peers_open(options.isa && strcmp(options.isa, "avx2") == 0);
    if (!bench_memory_init(sizes[n - 1], 0)) {
        complain("not enough memory");
        return 1;
    }
    const char *const outputs[] = {options.json, options.svg};
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) { /* not to find out late */
        FILE *f = outputs[i] ? fopen(outputs[i], "w") : NULL;
        if (outputs[i] && !f) {
            complain("cannot write '%s'", outputs[i]);
            return 1;
        }
        if (f)
            fclose(f);
    }
    report_context();
    report_peaks();
    fflush(stdout);
    int code = run_rows(program);
    if (code)
        return code;
    for (size_t i = 0; i < row_count; i++)
        if (rows[i].status || rows[i].rivals_differ)
            code = 1;
    if (!options.gbench)
        report_rows(options.rounds);
    if (options.svg && !write_roofline())
        code = 1;
    if (!options.gbench) {
        for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
            if (outputs[i])
                printf("written: %s\n", outputs[i]);
        const int seconds = (int)(bench_now() - start);
        printf("all took %d min %d s\n", seconds / 60, seconds % 60);
    }
    if (compare_outputs())
        code = 1;
    else if (!options.gbench && !code)
        printf("outputs: the same bits on all instruction sets and numbers of threads (linear_b16: "
               "threads).\n");
    return code;
}

int main(int argc, char **argv) {
    if (getenv("ISOBIT_NUMERICS")) {
        complain("ISOBIT_NUMERICS does not count here: linear_b16 is native, all else fixed");
        unsetenv("ISOBIT_NUMERICS");
    }
    int code = parse(argc, argv);
    if (code)
        return code == 1 ? 0 : code;
    rows = calloc(MAX_ROWS, sizeof *rows);
    threads = iso_usable_threads();
    if (!rows || (threads > 1 && iso_pool_create(&pool, threads))) {
        complain("not enough memory, or no threads");
        free(rows);
        return 1;
    }
    if (pool) /* as many as could be had */
        threads = iso_pool_executor(pool)->max_threads;
    code = select_rows();
    if (!code && options.list) {
        for (size_t i = 0; i < row_count; i++)
            puts(rows[i].name);
    } else if (!code) {
        code = bench(argv[0]);
    }
    bench_memory_free();
    iso_pool_destroy(pool);
    free(rows);
    return code;
}
