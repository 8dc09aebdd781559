/* SPDX-License-Identifier: MIT
 *
 * isobit_ab: times two builds of the library in turns, in one process, on the same memory. It only
 * measures: what its numbers mean is for tools/perf to say, which starts it many times.
 *
 * A benchmark has many blocks of four short timings, A B B A or B A A B, so that what disturbs the
 * machine meets both alike or a few blocks only.
 */
#include "cases.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FAILED = 1, USAGE = 2, NO_ISA = 77 };

struct row {
    char name[96];
    const struct bench_case *spec;
    const iso_isa *isa; /* of the linked library; the others have theirs */
    size_t threads;
    double inject; /* percent */
    bool chosen;
};

struct side {
    const char *name, *path;
    void *handle;
    struct bench_library library;
    iso_pool *pool;
    struct bench_job job;
    uint64_t hash;
};

static struct options {
    bool list;
    const char *isa, *count, *benches;
    uint64_t seed;
    size_t offset, blocks;
    double slot, seconds; /* of a timing, and of all blocks of a benchmark */
    bool shuffle;
    const char **names, **inject;
    size_t name_count, inject_count;
} options = {.seed = 1, .blocks = 200, .slot = 0.0001, .seconds = 0.04, .shuffle = true};

static struct side sides[2] = {{.name = "a"}, {.name = "b"}};
static struct row *rows;
static size_t row_count;
static size_t errors; /* lines of them */

__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("isobit_ab: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

/* ------------------------------------------------------------------------------------- output */

/* A byte beyond ASCII stands for the character of the same number, whatever encoding it is of. */
static void put_string(const char *text) {
    putchar('"');
    for (const unsigned char *p = (const unsigned char *)(text ? text : ""); *p; p++)
        if (*p == '"' || *p == '\\')
            printf("\\%c", *p);
        else if (*p < 0x20 || *p >= 0x7f)
            printf("\\u%04x", *p);
        else
            putchar(*p);
    putchar('"');
}

static void put_key(const char *key, const char *text) {
    printf(",\"%s\":", key);
    put_string(text);
}

/* Who reads the lines may be gone, or the disk full: then nothing that follows is of use. */
static void flush_output(void) {
    if (fflush(stdout) || ferror(stdout)) {
        complain("cannot write the results: %s", strerror(errno));
        exit(FAILED);
    }
}

static void end_line(void) {
    putchar('\n');
    flush_output();
}

static void put_error(const struct row *row, const struct side *side, const char *why) {
    printf("{\"type\":\"error\"");
    put_key("bench", row->name);
    put_key("which", side->name);
    put_key("why", why);
    putchar('}');
    end_line();
    errors++;
}

/* ------------------------------------------------------------------------------------ signals */

/* What runs now, and which library: for the last words of a process that ends by a signal. */
static char running[128];
static const char *volatile running_side;

static const struct {
    int number;
    const char *what;
} fatal[] = {
    {SIGSEGV, " crashed: SIGSEGV\n"}, {SIGBUS, " crashed: SIGBUS\n"},
    {SIGILL, " crashed: SIGILL\n"},   {SIGFPE, " crashed: SIGFPE\n"},
    {SIGABRT, " crashed: SIGABRT\n"}, {SIGTERM, " was ended from outside\n"},
};

static void write_text(const char *text) {
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written; /* there is nobody else to tell */
}

/* The process ends by the signal, as if there were no handler. */
static void on_fatal(int number) {
    if (running_side) {
        write_text("isobit_ab: ");
        write_text(running);
        write_text(", library ");
        write_text(running_side);
        for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
            if (fatal[i].number == number)
                write_text(fatal[i].what);
    }
    raise(number); /* the action is the default one again */
}

static void catch_signals(void) {
    struct sigaction action = {.sa_handler = on_fatal, .sa_flags = (int)SA_RESETHAND | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        sigaction(fatal[i].number, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* end_line() sees it */
}

/* --------------------------------------------------------------------------------- the clocks */

static int64_t clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Not slewed by NTP. */
static int64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC_RAW); }

/*
 * Workers of a pool look out for more work for a moment before they sleep. The other library's
 * timings do not begin before they do: until no other thread of this process uses a CPU.
 */
#define SETTLING 2e-4 /* seconds, mostly */
static void settle(void) {
    int64_t before = -1;
    for (int i = 0; i < 200; i++) {
        const int64_t others =
            clock_ns(CLOCK_PROCESS_CPUTIME_ID) - clock_ns(CLOCK_THREAD_CPUTIME_ID);
        /* The clocks are read one after the other: what lies between counts as others' time. */
        if (before >= 0 && others - before < 10000)
            return;
        before = others;
        for (const int64_t start = now_ns(); now_ns() - start < 100000;)
            ;
    }
}

static uint64_t random_bits(void) { /* splitmix64 */
    static uint64_t state;
    static bool seeded;
    if (!seeded)
        state = options.seed, seeded = true;
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* --------------------------------------------------------------------------------- the canary */

/* Work that is always the same, in nanoseconds: whether the machine is as it was. */
static void canary(double *multiply_add, double *copy) {
    enum { BYTES = 4 << 20, ROUNDS = 3 };
    static char *from, *to;
    if (!from) {
        from = malloc(BYTES), to = malloc(BYTES);
        if (!from || !to) {
            complain("not enough memory");
            exit(FAILED);
        }
        memset(from, 1, BYTES);
        memset(to, 2, BYTES);
    }
    *multiply_add = *copy = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        double x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
        int64_t start = now_ns();
        for (int i = 0; i < 10000; i++)
            for (int j = 0; j < 8; j++)
                x[j] = x[j] * 0.999 + 0.001;
        *multiply_add = fmin(*multiply_add, (double)(now_ns() - start));
        __asm__ volatile("" : : "r"(x) : "memory");
        start = now_ns();
        memcpy(to, from, BYTES);
        __asm__ volatile("" : : "r"(to) : "memory");
        *copy = fmin(*copy, (double)(now_ns() - start));
    }
}

/* ---------------------------------------------------------------------------------- measuring */

struct timing {
    double wall, cpu;
}; /* nanoseconds of one call */

static iso_status time_calls(const struct side *side, size_t calls, double inject,
                             struct timing *timing) {
    iso_status failed = ISOBIT_OK;
    running_side = side->name;
    const int64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID), start = now_ns();
    for (size_t i = 0; i < calls; i++) {
        const iso_status status = bench_call(&side->job);
        failed = status ? status : failed;
    }
    int64_t end = now_ns();
    if (inject > 0) {
        const int64_t until = end + (int64_t)((double)(end - start) * inject / 100);
        while (end < until)
            end = now_ns();
    }
    timing->wall = (double)(end - start) / (double)calls;
    timing->cpu = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu) / (double)calls;
    return failed;
}

/* How many calls take at least a slot. */
static iso_status calls_of(const struct side *side, size_t *calls) {
    for (*calls = 1;;) {
        struct timing t;
        iso_status status = time_calls(side, *calls, 0, &t);
        const double times = options.slot * 1e9 / (t.wall * (double)*calls);
        if (status || times <= 1)
            return status;
        /* The first calls are slow; then they are few, and this comes nearer in steps. */
        *calls = (size_t)((double)*calls * fmin(times * 1.1, 16)) + 1;
    }
}

/*
 * As many calls for one library as for the other, so that what a batch costs beside them is the
 * same: what the faster one needs to fill a slot. One that is very much faster gets shorter
 * timings, or those of the other would take forever.
 */
static iso_status common_calls(const struct side **who, size_t *calls) {
    enum { MOST_TIMES = 8 };
    size_t each[2];
    for (size_t i = 0; i < 2; i++) {
        *who = &sides[i];
        iso_status status = calls_of(*who, &each[i]);
        if (status)
            return status;
    }
    const size_t fewer = each[0] < each[1] ? each[0] : each[1], more = each[0] + each[1] - fewer;
    *calls = more < MOST_TIMES * fewer ? more : MOST_TIMES * fewer;
    return ISOBIT_OK;
}

static iso_status time_slot(const struct side *side, const struct row *row, size_t calls,
                            struct timing *timing) {
    const double inject = side == &sides[1] ? row->inject : 0;
    running_side = side->name;
    /* Code and packed weights of the other one are in the caches, and its workers awake. */
    iso_status status = bench_call(&side->job);
    if (!status)
        status = time_calls(side, calls, inject, timing);
    if (row->threads > 1)
        settle();
    return status;
}

struct block {
    bool b_first;
    struct timing slots[2][2]; /* by side, in the order of time */
};

static const struct iso_executor *executor_of(const struct side *side, const struct row *row) {
    return row->threads > 1 ? side->library.pool_executor(side->pool) : NULL;
}

/* Why a side cannot run the row, or NULL: then it has been called once, and hashed. */
static const char *prepare(struct side *side, const struct row *row) {
    static char why[160];
    const struct bench_library *library = &side->library;
    const iso_executor *executor = executor_of(side, row);
    struct bench_place place = {.executor = executor, .threads = row->threads};
    const char *lacking = bench_lacking(library, row->spec);
    snprintf(running, sizeof running, "%s", row->name);
    running_side = side->name;
    if (lacking) {
        snprintf(why, sizeof why, "the library has no function %s", lacking);
        return why;
    }
    if (library->isa_find(&place.isa, iso_isa_name(row->isa))) {
        snprintf(why, sizeof why, "no instruction set '%s' here; there is: %s",
                 iso_isa_name(row->isa), library->isa_names());
        return why;
    }
    if (executor && executor->max_threads != row->threads) {
        snprintf(why, sizeof why, "its pool has %zu threads", executor->max_threads);
        return why;
    }
    iso_status status = bench_prepare(&side->job, library, row->spec, &place);
    if (!status) {
        bench_spoil(&side->job);
        status = bench_call(&side->job);
    }
    side->hash = status ? 0 : XXH3_64bits(side->job.out, side->job.out_floats * sizeof(float));
    return status ? library->strerror(status) : NULL;
}

/* Both sides; a benchmark that one of them cannot run is left out. */
static bool prepare_both(const struct row *row) {
    bool good = true;
    for (size_t i = 0; i < 2; i++) {
        const char *why = prepare(&sides[i], row);
        if (why)
            put_error(row, &sides[i], why);
        good &= !why;
    }
    running_side = NULL;
    /* The workspace may have grown for b. */
    sides[0].job.context.workspace = sides[1].job.context.workspace;
    sides[0].job.context.workspace_bytes = sides[1].job.context.workspace_bytes;
    return good;
}

static void put_times(size_t side, const struct block *blocks, size_t count) {
    double cpu = 0;
    printf(",\"%s\":[", sides[side].name);
    for (size_t i = 0; i < count; i++) {
        const struct timing *t = blocks[i].slots[side];
        printf("%s%.5g,%.5g", i ? "," : "", t[0].wall, t[1].wall);
        cpu += t[0].cpu + t[1].cpu;
    }
    printf("],\"cpu_%s\":%.5g", sides[side].name, cpu / 2 / (double)count);
}

static void put_bench(const struct row *row, size_t calls, const struct block *blocks, size_t count,
                      const double *canaries) {
    printf("{\"type\":\"bench\"");
    put_key("bench", row->name);
    printf(",\"calls\":%zu,\"order\":\"", calls);
    for (size_t i = 0; i < count; i++)
        fputs(blocks[i].b_first ? "BAAB" : "ABBA", stdout);
    putchar('"');
    put_times(0, blocks, count);
    put_times(1, blocks, count);
    printf(",\"hash_a\":\"%016llx\",\"hash_b\":\"%016llx\",\"canary\":[%.0f,%.0f]",
           (unsigned long long)sides[0].hash, (unsigned long long)sides[1].hash, canaries[0],
           canaries[1]);
    printf(",\"work\":{\"flops\":%.0f,\"bytes\":%.0f}}", sides[0].job.flops, sides[0].job.bytes);
    end_line();
}

/* How many blocks take so long as is wanted; of long calls only a few. */
static iso_status blocks_for(const struct side **who, const struct row *row, size_t calls,
                             size_t *count) {
    enum { LEAST = 5 };
    double block = row->threads > 1 ? 4 * SETTLING : 0;
    for (size_t i = 0; i < 2; i++) {
        struct timing t;
        *who = &sides[i];
        iso_status status = time_calls(*who, calls, 0, &t);
        if (status)
            return status;
        block += 2e-9 * t.wall * (double)(calls + 1);
    }
    const double wanted = options.seconds / block;
    *count = wanted >= (double)options.blocks ? options.blocks
             : wanted <= LEAST                ? LEAST
                                              : (size_t)wanted;
    *count = *count < options.blocks ? *count : options.blocks;
    return ISOBIT_OK;
}

/* Whether there is a line of results. */
static bool measure(const struct row *row, struct block *blocks) {
    const struct side *side;
    double canaries[2];
    size_t calls = 1, count = 0;
    if (!prepare_both(row))
        return false;
    canary(&canaries[0], &canaries[1]);
    iso_status status = common_calls(&side, &calls);
    if (!status)
        status = blocks_for(&side, row, calls, &count);
    if (row->threads > 1)
        settle();
    for (size_t i = 0; i < count && !status; i++) {
        struct block *b = &blocks[i];
        b->b_first = random_bits() & 1;
        for (size_t j = 0; j < 4 && !status; j++) {
            const size_t which = (j == 1 || j == 2) != b->b_first; /* A B B A, or the other way */
            side = &sides[which];
            status = time_slot(side, row, calls, &b->slots[which][j / 2]);
        }
    }
    running_side = NULL;
    if (status)
        put_error(row, side, side->library.strerror(status));
    else
        put_bench(row, calls, blocks, count, canaries);
    return !status;
}

/* ------------------------------------------------------------------------------------ counting */

/*
 * The function whose instructions callgrind counts: it is found by this name, so there must be no
 * variant of it for its one caller, who goes by a pointer.
 */
void isobit_ab_counted(const struct bench_job *job, iso_status *status);
__attribute__((noinline)) void isobit_ab_counted(const struct bench_job *job, iso_status *status) {
    *status = bench_call(job);
}
static void (*volatile counted)(const struct bench_job *job,
                                iso_status *status) = isobit_ab_counted;

static int count(const struct row *row) {
    struct side *side = &sides[0];
    iso_status status = ISOBIT_OK;
    const char *why = prepare(side, row); /* the first call */
    if (!why && !(status = bench_call(&side->job)))
        counted(&side->job, &status);
    if (why || status) {
        put_error(row, side, why ? why : side->library.strerror(status));
        return FAILED;
    }
    printf("{\"type\":\"count\",\"v\":1");
    put_key("bench", row->name);
    put_key("version", side->library.version());
    printf(",\"hash_a\":\"%016llx\"}", (unsigned long long)side->hash);
    end_line();
    return 0;
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

static int list(void) {
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

static bool number(const char *text, double least, double most, double *value) {
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    return *text && !*end && *value >= least && *value <= most;
}

/* [NAME=]PERCENT; without a name for all. */
static bool inject(const char *text) {
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
