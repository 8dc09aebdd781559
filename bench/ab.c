/* SPDX-License-Identifier: MIT
 *
 * isobit_ab: times two builds of the library in turns, in one process, on the same memory. It only
 * measures: what its numbers mean is for tools/perf to say, which starts it many times.
 *
 * A benchmark has many blocks of four short timings, A B B A or B A A B, so that what disturbs the
 * machine meets both alike or a few blocks only.
 */
#include "ab.h"

struct options options = {
    .seed = 1, .blocks = 200, .slot = 0.0001, .seconds = 0.04, .shuffle = true};
struct side sides[2] = {{.name = "a"}, {.name = "b"}};
static struct row *rows;
static size_t row_count;
size_t errors; /* lines of them */

__attribute__((format(printf, 1, 2))) void complain(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("isobit_ab: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

/* ----------------------------------------------------------------------------------- the rows */

static bool add_rows(void) {
    const size_t threads = iso_usable_threads(), isas = iso_isa_count();
    rows = calloc(bench_case_count * isas * 2, sizeof *rows);
    for (size_t i = 0; rows && i < bench_case_count; i++)
        for (size_t j = 0; j < isas; j++)
            for (int all = 0; all <= (threads > 1); all++) {
                const iso_isa *isa = iso_isa_get(j);
                struct row *r = &rows[row_count];
                if (!bench_has_row(&bench_cases[i], iso_isa_name(isa), all))
                    continue;
                *r =
                    (struct row){.spec = &bench_cases[i], .isa = isa, .threads = all ? threads : 1};
                bench_name(r->name, sizeof r->name, r->spec, iso_isa_name(isa), r->threads);
                row_count++;
            }
    return rows;
}

static struct row *find_row(const char *name) {
    for (size_t i = 0; i < row_count; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    complain("there is no benchmark '%s'; --list prints the names", name);
    return NULL;
}

int list(void) {
    bool any = false;
    for (size_t i = 0; i < row_count; i++) {
        const char *isa = iso_isa_name(rows[i].isa);
        if (iso_isa_missing(rows[i].isa) || (options.isa && strcmp(options.isa, isa) != 0))
            continue;
        fputs(rows[i].name, stdout);
        end_line();
        any = true;
    }
    if (!any)
        complain("no instruction set '%s' here; there is: %s", options.isa, iso_isa_names());
    return any ? 0 : NO_ISA;
}

static bool choose(const char *name) {
    struct row *r = find_row(name);
    if (r && r->chosen)
        complain("'%s' is given twice", name);
    if (!r || r->chosen)
        return false;
    return r->chosen = true;
}

/* One name a line; empty lines are left out. */
static bool choose_from_file(const char *path) {
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t bytes = 0;
    bool good = f;
    while (good && getline(&line, &bytes, f) > 0) {
        line[strcspn(line, "\r\n")] = '\0';
        good = !*line || choose(line);
    }
    if (!f || ferror(f)) {
        complain("cannot read '%s': %s", path, strerror(errno));
        good = false;
    }
    free(line);
    if (f)
        fclose(f);
    return good;
}

bool number(const char *text, double least, double most, double *value) {
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    return *text && !*end && *value >= least && *value <= most;
}

/* [NAME=]PERCENT; without a name for all. */
bool inject(const char *text) {
    const char *equals = strrchr(text, '=');
    double percent;
    if (!number(equals ? equals + 1 : text, 0, 1000, &percent)) {
        complain("--inject wants [NAME=]PERCENT, at most 1000, not '%s'", text);
        return false;
    }
    char *name = equals ? strndup(text, (size_t)(equals - text)) : NULL;
    struct row *r = name ? find_row(name) : NULL;
    free(name);
    if (r && !r->chosen) {
        complain("--inject %s: this benchmark does not run", text);
        return false;
    }
    for (size_t i = 0; i < row_count; i++)
        if (!equals || r == &rows[i])
            rows[i].inject = percent;
    return !equals || r;
}

/* Those that were chosen, in the order in which they run. NULL: the reason was printed. */
static struct row **chosen_rows(size_t *count) {
    struct row **order = calloc(row_count + 1, sizeof(struct row *));
    bool good = order;
    for (size_t i = 0; good && i < options.name_count; i++)
        good = choose(options.names[i]);
    if (good && options.benches)
        good = choose_from_file(options.benches);
    for (size_t i = 0; good && i < options.inject_count; i++)
        good = inject(options.inject[i]);
    *count = 0;
    for (size_t i = 0; good && i < row_count; i++)
        if (rows[i].chosen)
            order[(*count)++] = &rows[i];
    if (good && !*count)
        complain("no benchmark is named; see --help");
    if (!good || !*count) {
        free(order);
        return NULL;
    }
    for (size_t i = *count; options.shuffle && i > 1; i--) {
        const size_t j = random_bits() % i;
        struct row *r = order[j];
        order[j] = order[i - 1], order[i - 1] = r;
    }
    return order;
}

/* -------------------------------------------------------------------------------- the libraries */

static bool open_libraries(size_t count) {
    struct stat files[2] = {{0}, {0}};
    char why[4500];
    for (size_t i = 0; i < count; i++)
        if (stat(sides[i].path, &files[i])) {
            complain("cannot open '%s': %s", sides[i].path, strerror(errno));
            return false;
        }
    /* Of one file both get a copy, so that both are equally near. */
    const bool same =
        count == 2 && files[0].st_dev == files[1].st_dev && files[0].st_ino == files[1].st_ino;
    for (size_t i = 0; i < count; i++) {
        struct side *s = &sides[i];
        s->handle = same ? bench_library_load_copy(&s->library, s->path, why, sizeof why)
                         : bench_library_load(&s->library, s->path, why, sizeof why);
        if (!s->handle) {
            complain("%s", why);
            return false;
        }
    }
#define COMPARE(name)                                                                              \
    if (sides[0].library.name && sides[0].library.name == sides[1].library.name) {                 \
        complain("'%s' and '%s' are one and the same in memory: iso_" #name, sides[0].path,        \
                 sides[1].path);                                                                   \
        return false;                                                                              \
    }
    BENCH_FUNCTIONS(COMPARE)
#undef COMPARE
    return true;
}

static bool start_pools(struct row **order, size_t count) {
    size_t threads = 1;
    for (size_t i = 0; i < count; i++)
        threads = order[i]->threads > threads ? order[i]->threads : threads;
    for (size_t i = 0; i < 2 && threads > 1; i++)
        if (sides[i].library.pool_create(&sides[i].pool, threads)) {
            complain("'%s' cannot start its threads", sides[i].path);
            return false;
        }
    return true;
}

static void close_libraries(void) {
    for (size_t i = 0; i < 2; i++) {
        if (sides[i].pool)
            sides[i].library.pool_destroy(sides[i].pool);
        if (sides[i].handle)
            dlclose(sides[i].handle);
    }
}

static bool both_have(const char *isa) {
    bool has = true;
    for (size_t i = 0; i < 2; i++) {
        const iso_isa *found;
        has &= !sides[i].handle || !sides[i].library.isa_find(&found, isa);
    }
    return has;
}

/* Whether any of the benchmarks can run. */
static bool any_isa(struct row **order, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (both_have(iso_isa_name(order[i]->isa)))
            return true;
    complain("no instruction set of these benchmarks here; there is: %s",
             sides[0].library.isa_names());
    return false;
}

static void put_process(void) {
    const char *comma = "";
    printf("{\"type\":\"process\",\"v\":1,\"seed\":%llu,\"offset\":%zu",
           (unsigned long long)options.seed, options.offset);
    for (size_t i = 0; i < 2; i++) {
        printf(",\"%s\":{\"path\":", sides[i].name);
        put_string(sides[i].path);
        put_key("version", sides[i].library.version());
        putchar('}');
    }
    printf(",\"isas\":[");
    for (size_t i = 0; i < iso_isa_count(); i++)
        if (both_have(iso_isa_name(iso_isa_get(i)))) {
            printf("%s", comma);
            put_string(iso_isa_name(iso_isa_get(i)));
            comma = ",";
        }
    printf("]");
    put_key("cpu", iso_machine()->cpu.name);
    printf(",\"threads\":%zu}", iso_usable_threads());
    end_line();
}

static int compare(struct row **order, size_t count) {
    struct block *blocks = calloc(options.blocks, sizeof *blocks);
    size_t measured = 0;
    if (!blocks || !start_pools(order, count)) {
        free(blocks);
        return FAILED;
    }
    put_process();
    for (size_t i = 0; i < count; i++)
        measured += measure(order[i], blocks);
    printf("{\"type\":\"end\",\"benches\":%zu}", measured);
    end_line();
    free(blocks);
    return errors ? FAILED : 0;
}

static int run(void) {
    size_t count_of;
    if (options.count)
        options.names = &options.count, options.name_count = 1;
    struct row **order = chosen_rows(&count_of);
    int code = USAGE;
    if (order && options.count && order[0]->threads > 1)
        complain("--count is for one thread");
    else if (order && open_libraries(options.count ? 1 : 2))
        code = any_isa(order, count_of) ? 0 : NO_ISA;
    if (!code && !bench_memory_init(0, options.offset)) {
        complain("not enough memory");
        code = FAILED;
    }
    if (!code)
        code = options.count ? count(order[0]) : compare(order, count_of);
    bench_memory_free();
    close_libraries();
    free(order);
    return code;
}

/* ------------------------------------------------------------------------------- command line */

static const char usage[] =
    "usage: isobit_ab --a LIB --b LIB --bench NAME... [OPTION]...\n"
    "       isobit_ab --count NAME --a LIB\n"
    "       isobit_ab --list [--isa NAME]\n"
    "\n"
    "Times two builds of libisobit.so in turns, in one process, on the same memory, and prints\n"
    "what it measured as lines of JSON.\n"
    "\n"
    "  --bench NAME...  these benchmarks\n"
    "  --benches FILE   those that the file names, one a line\n"
    "  --seed N         for the order of benchmarks and slots (default 1)\n"
    "  --offset BYTES   moves the operands against each other: a multiple of 64 below 4096\n"
    "  --blocks N       blocks of timings A B B A or B A A B, at most (default 200)\n"
    "  --slot SECONDS   the shortest timing (default 0.0001)\n"
    "  --seconds SECONDS   all blocks of a benchmark take about so long (default 0.04); there "
    "are\n"
    "                   at least five, if --blocks allows\n"
    "  --order ORDER    random (default), or given: as --list has them\n"
    "  --inject [NAME=]PERCENT   makes B slower by so much, in one benchmark or in all\n"
    "  --count NAME     calls it three times, the last time within isobit_ab_counted(), for\n"
    "                   callgrind --toggle-collect\n"
    "  --list           only prints the names, of one instruction set with --isa\n"
    "  --help           this text\n"
    "\n"
    "Exit status: 0; 1 when a benchmark failed, or the results could not be written; 2 for wrong\n"
    "usage and for libraries that cannot be loaded; 77 when the machine has no instruction set of\n"
    "those that were asked for.\n";

enum {
    OPT_A = 256,
    OPT_B,
    OPT_BENCH,
    OPT_BENCHES,
    OPT_SEED,
    OPT_OFFSET,
    OPT_BLOCKS,
    OPT_SLOT,
    OPT_SECONDS,
    OPT_ORDER,
    OPT_INJECT,
    OPT_COUNT,
    OPT_LIST,
    OPT_ISA,
    OPT_HELP
};

static const struct option longs[] = {
    {"a", required_argument, NULL, OPT_A},
    {"b", required_argument, NULL, OPT_B},
    {"bench", required_argument, NULL, OPT_BENCH},
    {"benches", required_argument, NULL, OPT_BENCHES},
    {"seed", required_argument, NULL, OPT_SEED},
    {"offset", required_argument, NULL, OPT_OFFSET},
    {"blocks", required_argument, NULL, OPT_BLOCKS},
    {"slot", required_argument, NULL, OPT_SLOT},
    {"seconds", required_argument, NULL, OPT_SECONDS},
    {"order", required_argument, NULL, OPT_ORDER},
    {"inject", required_argument, NULL, OPT_INJECT},
    {"count", required_argument, NULL, OPT_COUNT},
    {"list", no_argument, NULL, OPT_LIST},
    {"isa", required_argument, NULL, OPT_ISA},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static bool whole(const char *option, unsigned long long least, unsigned long long most,
                  unsigned long long *value) {
    char *end;
    errno = 0;
    *value = strtoull(optarg, &end, 10);
    if (*optarg >= '0' && *optarg <= '9' && !*end && !errno && *value >= least && *value <= most)
        return true;
    complain("%s wants a number from %llu to %llu, not '%s'", option, least, most, optarg);
    return false;
}

/* 0: go on. 1: done. 2: wrong usage. */
static int parse(int argc, char **argv) {
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":", longs, NULL)) != -1;) {
        unsigned long long n = 0;
        bool good = true;
        switch (c) {
        case OPT_A: sides[0].path = optarg; break;
        case OPT_B: sides[1].path = optarg; break;
        case OPT_BENCH: options.names[options.name_count++] = optarg; break;
        case OPT_BENCHES: options.benches = optarg; break;
        case OPT_INJECT: options.inject[options.inject_count++] = optarg; break;
        case OPT_COUNT: options.count = optarg; break;
        case OPT_LIST: options.list = true; break;
        case OPT_ISA: options.isa = optarg; break;
        case OPT_SEED:
            good = whole("--seed", 0, UINT64_MAX, &n);
            options.seed = n;
            break;
        case OPT_BLOCKS:
            good = whole("--blocks", 1, 1000, &n);
            options.blocks = (size_t)n;
            break;
        case OPT_OFFSET:
            good = whole("--offset", 0, 4032, &n);
            options.offset = (size_t)n;
            if (good && n % 64) {
                complain("--offset wants a multiple of 64, not '%s'", optarg);
                good = false;
            }
            break;
        case OPT_SLOT:
            if (!(good = number(optarg, 1e-6, 10, &options.slot)))
                complain("--slot wants seconds, from 1e-6 to 10, not '%s'", optarg);
            break;
        case OPT_SECONDS:
            if (!(good = number(optarg, 0, 1000, &options.seconds)))
                complain("--seconds wants seconds, at most 1000, not '%s'", optarg);
            break;
        case OPT_ORDER:
            options.shuffle = strcmp(optarg, "random") == 0;
            if (!(good = options.shuffle || strcmp(optarg, "given") == 0))
                complain("--order wants random or given, not '%s'", optarg);
            break;
        case OPT_HELP:
            fputs(usage, stdout);
            flush_output();
            return 1;
        case ':': complain("%s wants a value; see --help", argv[optind - 1]); return USAGE;
        default:
            complain("there is no option '%s', or it takes no value; see --help", argv[optind - 1]);
            return USAGE;
        }
        if (!good)
            return USAGE;
    }
    if (optind < argc && !options.name_count) {
        complain("unexpected argument '%s'; see --help", argv[optind]);
        return USAGE;
    }
    while (optind < argc) /* --bench NAME... */
        options.names[options.name_count++] = argv[optind++];
    const bool compares = !options.list && !options.count;
    const char *wrong = NULL;
    if (!options.list && !sides[0].path)
        wrong = "--a LIB is missing";
    else if (compares && !sides[1].path)
        wrong = "--b LIB is missing";
    else if (options.list && options.count)
        wrong = "either --list or --count";
    else if (!compares &&
             (sides[1].path || options.name_count || options.benches || options.inject_count))
        wrong = "--b, --bench, --benches and --inject do not go with --list and --count";
    else if (options.isa && !options.list)
        wrong = "--isa goes with --list";
    if (wrong) {
        complain("%s; see --help", wrong);
        return USAGE;
    }
    return 0;
}

int main(int argc, char **argv) {
    const char **arguments = calloc((size_t)argc * 2, sizeof *arguments);
    int code = FAILED;
    if (getenv("ISOBIT_NUMERICS")) {
        complain("ISOBIT_NUMERICS does not count here: linear_b16 is native, all else fixed");
        unsetenv("ISOBIT_NUMERICS");
    }
    options.names = arguments, options.inject = arguments ? arguments + argc : NULL;
    catch_signals();
    if (!arguments || !add_rows()) {
        complain("not enough memory");
    } else {
        code = parse(argc, argv);
        if (code == 1)
            code = 0;
        else if (!code)
            code = options.list ? list() : run();
    }
    free(rows);
    free(arguments);
    return code;
}
