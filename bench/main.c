/* SPDX-License-Identifier: MIT
 *
 * isobit_bench: times the operations on every instruction set of this machine, beside what the
 * machine can do at best. docs/performance.md tells how to read what it prints.
 *
 * Measurements are taken in turns: in a round of a row (a case, a set, a number of threads) it gets
 * a few short samples, each next to a measurement of its peak. Google Benchmark shuffles the rounds
 * of all rows and writes the JSON; the table is made of what the rows collected.
 */
#include "cases.h"
#include "gbench_shim.h"
#include "peaks.h"
#include "peers.h"
#include "roofline.h"
#include "select.h"

#include <isobit/isobit.h>

#include <getopt.h>
#include <math.h>
#include <regex.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef ISOBIT_BENCH_FLAGS
#define ISOBIT_BENCH_FLAGS ""
#endif
#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* Rivals of a row: the peers, and its own operation in several steps. */
enum { MAX_ROUNDS = 999, MAX_ROWS = 1024, MAX_GBENCH_ARGS = 64, MAX_RIVALS = BENCH_MAX_PEERS + 1 };

static const char *const statistic =
    "value: best of all samples; % of peak: median over rounds of best sample / best peak of the "
    "same round";

struct row {
    char name[96], shape[32];
    const struct bench_case *spec;
    struct bench_place place;
    unsigned rounds;
    /* of each round: the ratio to the peak, and to the floor where that is not one of the peak */
    float ratio[MAX_ROUNDS], floor_ratio[MAX_ROUNDS];
    /* of each round and rival: how many times as fast as it; rivals by index, the steps last */
    float rival_ratio[MAX_RIVALS][MAX_ROUNDS];
    unsigned rival_rounds[MAX_RIVALS];
    double rival_value[MAX_RIVALS];
    bool peers, rivals_differ; /* compared with peers; some gave other results */
    double value, floor;       /* value in the row's unit; the floor likewise, where it is a rate */
    double operations, bytes;  /* of one call */
    double seconds;            /* the best */
    double checksum;
    iso_status status;
};

static struct options {
    const char *filter, *isa, *json, *svg;
    bool quick, list, gbench, no_peers;
    unsigned rounds;
    double seconds; /* after which rounds are left out */
    char *gbench_args[MAX_GBENCH_ARGS];
    int gbench_count;
} options;

static struct row *rows;
static size_t row_count;
static iso_pool *pool;
static size_t threads;               /* all that are usable */
static unsigned long done, left_out; /* rounds */
static double began;

__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("isobit_bench: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

/* ----------------------------------------------------------------------------------- the rows */

static bool is_scalar(const iso_isa *isa) { return strcmp(isa->name, "scalar") == 0; }

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
        if (!iso_isa_missing(iso_isa_get(j)) &&
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

/* In what a row is shown: 1e9 units per second. */
static const char *unit_of(const struct row *r) {
    if (r->spec->flags & BENCH_RATE)
        return "Gelem/s";
    return r->spec->bound == BENCH_FMA ? "GFLOP/s" : "GB/s";
}

static double work_of(const struct bench_job *job) {
    if (job->spec->flags & BENCH_RATE)
        return job->elements;
    return job->spec->bound == BENCH_FMA ? job->flops : job->bytes;
}

enum floor_kind { NO_FLOOR, FLOOR_OF_PEAK, FLOOR_RATE };

static enum floor_kind floor_of(const struct row *r) {
    const struct bench_case *spec = r->spec;
    const bool x86 = strncmp(r->place.isa->name, "avx", 3) == 0;
    if (r->place.threads > 1)
        return NO_FLOOR;
    if (is_scalar(r->place.isa))
        return spec->bound == BENCH_FMA && bench_is_product(spec) ? FLOOR_RATE : NO_FLOOR;
    switch (spec->floor) {
    case BENCH_FLOOR_X86: return x86 ? FLOOR_OF_PEAK : NO_FLOOR;
    case BENCH_FLOOR_VECTOR: return FLOOR_OF_PEAK;
    case BENCH_FLOOR_RATE: return strcmp(r->place.isa->name, "avx512") ? NO_FLOOR : FLOOR_RATE;
    default: return NO_FLOOR;
    }
}

/* ---------------------------------------------------------------------------------- measuring */

/* Of all samples on one thread: how long they took, and how much of it this thread had a CPU. */
static double wall_time, cpu_time;

static double thread_cpu_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The time of one call in a batch of so many. */
static double time_calls(const struct bench_job *job, size_t calls) {
    const double cpu = thread_cpu_time(), start = bench_now();
    for (size_t i = 0; i < calls; i++)
        bench_call(job);
    const double t = bench_now() - start;
    gbench_use(job->out);
    if (!job->context.executor)
        wall_time += t, cpu_time += thread_cpu_time() - cpu;
    return t / (double)calls;
}

/* How many calls make a sample. Whatever the caches need to be warm happens here. */
static size_t calls_for(const struct bench_job *job, double seconds, double *one) {
    size_t calls = 1;
    *one = time_calls(job, calls);
    while (*one * (double)calls < seconds / 4) {
        calls *= 4;
        *one = time_calls(job, calls);
    }
    double n = seconds / *one;
    return n > 1 ? (size_t)n : 1;
}

static double peak_of(const struct bench_job *job, const struct bench_place *place,
                      enum bench_bound bound, double seconds) {
    /* bench_output() is overwritten: after the checksum was taken, so nothing is lost. */
    return bench_peak(place, bound, bench_input(), bench_output(), (size_t)job->bytes, seconds);
}

/* Large cases take long and differ little from one round to the next: a third of the rounds. */
static unsigned rounds_of(const struct row *r) {
    return r->spec->flags & BENCH_HEAVY ? (options.rounds + 2) / 3 : options.rounds;
}

static void progress(void) {
    unsigned long all = 0;
    for (size_t i = 0; i < row_count; i++)
        all += rounds_of(&rows[i]);
    done++;
    if (!options.gbench && isatty(STDERR_FILENO)) {
        if (done < all)
            fprintf(stderr, "\r%3lu %% ", 100 * done / all);
        else
            fputs("\r      \r", stderr);
    }
}

/* --------------------------------------------------------------------------------- the rivals */

struct rival {
    size_t index;
    const struct bench_peer *peer; /* NULL: the operation in several steps */
    const void *state;
    size_t calls;
    double best;
};

static const char *rival_name(size_t index) {
    return index < bench_peer_count() ? bench_peer_get(index)->name : "separate";
}

static void call_rival(const struct rival *rival, const struct bench_job *job) {
    if (rival->peer)
        rival->peer->call(rival->state, job, bench_other_output());
    else
        bench_call_separately(job, bench_other_output());
}

static double time_rival(const struct rival *rival, const struct bench_job *job, size_t calls) {
    const double start = bench_now();
    for (size_t i = 0; i < calls; i++)
        call_rival(rival, job);
    const double t = bench_now() - start;
    gbench_use(bench_other_output());
    return t / (double)calls;
}

/*
 * Brings the operands back into the caches: of a rival, or of the library (NULL). Once is not
 * enough where L3 takes what leaves L2 only if it has been used some times (Intel's servers): who
 * has packed weights of his own would seem slower than those who share the plain ones.
 */
static void warm_up(const struct rival *rival, const struct bench_job *job, const struct row *r) {
    const int large = r->spec->bound != BENCH_FMA && job->bytes > 4 << 20;
    for (int i = 0; i < (large ? 8 : 1); i++)
        if (rival)
            call_rival(rival, job);
        else
            bench_call(job);
}

/*
 * Its threads go to sleep a moment after they have run out of work; until then they would take the
 * CPU from whoever is measured next.
 */
static void wait_for_rival(const struct rival *rival, const struct bench_job *job) {
    if (rival->peer && job->context.executor)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

/* Whether a rival computed the same as we, up to rounding. */
static bool agrees(const struct bench_job *job) {
    const float *x = job->out, *y = bench_other_output();
    double most = 0, difference = 0;
    for (size_t i = 0; i < job->out_floats; i++) {
        const double d = fabs((double)x[i] - (double)y[i]);
        if (!(d <= 1e30))
            return false;
        most = fmax(most, fabs((double)x[i]));
        difference = fmax(difference, d);
    }
    return difference <= 1e-3 * most;
}

static size_t find_rivals(struct rival *rivals, struct row *r, const struct bench_job *job,
                          double sample) {
    size_t n = 0;
    for (size_t i = 0; i <= bench_peer_count(); i++) {
        struct rival v = {.index = i, .peer = bench_peer_get(i)};
        if (v.peer ? !r->peers : !bench_is_fused(r->spec))
            continue;
        if (v.peer) {
            v.peer->set_threads(r->place.threads);
            v.state = v.peer->prepare(job, bench_other_output());
            if (!v.state)
                continue;
        }
        memset(bench_other_output(), 0xff, job->out_floats * sizeof(float));
        double one = time_rival(&v, job, 1);
        if (r->rounds == 0 && !agrees(job)) {
            complain("%s computes something else than %s", rival_name(i), r->name);
            r->rivals_differ = true;
        }
        for (v.calls = 1; one * (double)v.calls < sample / 4;)
            v.calls *= 4, one = time_rival(&v, job, v.calls);
        v.calls = sample > one ? (size_t)(sample / one) : 1;
        wait_for_rival(&v, job);
        rivals[n++] = v;
    }
    return n;
}

/* One round of a row. */
static void measure(gbench_state *state, void *user) {
    struct row *r = user;
    struct bench_job job;
    if (bench_now() - began > options.seconds && r->rounds > 0) { /* at least one, always */
        gbench_leave_out(state, r->seconds);
        left_out++;
        progress();
        return;
    }
    iso_status status = bench_prepare(&job, &bench_linked, r->spec, &r->place);
    double first = 0;
    if (!status) {
        bench_spoil(&job);
        first = bench_now();
        status = bench_call(&job);
        first = bench_now() - first;
    }
    if (status) {
        r->status = status;
        gbench_error(state, iso_strerror(status));
        progress();
        return;
    }
    if (r->rounds == 0)
        r->checksum = bench_checksum(&job);

    if (!gbench_begin(state))
        return;
    const double sample = options.quick ? 1e-3 : 2e-3;
    const double shot = r->place.threads > 1 ? 1e-3 : 0.3e-3;
    const enum floor_kind floor = floor_of(r);
    const bool floor_needs_fma = floor == FLOOR_RATE && !is_scalar(r->place.isa);
    double one = first, best = 0, peak = 0, fma = 0;
    struct rival rivals[MAX_RIVALS];
    const size_t rival_count = find_rivals(rivals, r, &job, sample);
    const size_t calls = first > 20e-3 ? 1 : calls_for(&job, sample, &one);
    const int samples = one > 100e-3 ? 1 : one > 20e-3 ? 2 : options.quick ? 3 : 5;
    for (int i = 0; i <= samples; i++) {
        double p = peak_of(&job, &r->place, r->spec->bound, shot);
        peak = p > peak ? p : peak;
        if (floor_needs_fma) {
            p = peak_of(&job, &r->place, BENCH_FMA, shot);
            fma = p > fma ? p : fma;
        }
        if (i == samples) /* the last sample has a peak on both sides, too */
            break;
        for (size_t j = 0; j <= rival_count; j++) { /* each is the first one in turn */
            const size_t who = (j + (size_t)i) % (rival_count + 1);
            if (who < rival_count) {
                struct rival *v = &rivals[who];
                if (v->peer)
                    v->peer->set_threads(r->place.threads);
                if (one < 20e-3)
                    warm_up(v, &job, r);
                double t = time_rival(v, &job, v->calls);
                v->best = i == 0 || t < v->best ? t : v->best;
                wait_for_rival(v, &job);
            } else {
                if (one < 20e-3)
                    warm_up(NULL, &job, r);
                double t = time_calls(&job, calls);
                best = i == 0 || t < best ? t : best;
            }
        }
    }
    gbench_resume(state);
    bench_call(&job);
    gbench_seconds(state, best);
    gbench_end(state);

    const double limited = r->spec->bound == BENCH_FMA ? job.flops : job.bytes;
    const double ratio = limited / best / peak, value = work_of(&job) / best * 1e-9;
    if (job.flops > 0)
        gbench_counter(state, "GFLOP/s", job.flops / best * 1e-9);
    gbench_counter(state, "GB/s", job.bytes / best * 1e-9);
    if (job.elements > 0)
        gbench_counter(state, "Gelem/s", job.elements / best * 1e-9);
    gbench_counter(state, r->spec->bound == BENCH_FMA ? "peak_GFLOP/s" : "peak_GB/s", peak * 1e-9);
    gbench_counter(state, "pct_peak", 100 * ratio);
    gbench_counter(state, "checksum", r->checksum);
    double floor_ratio = 0;
    if (floor == FLOOR_OF_PEAK) {
        floor_ratio = 100 * ratio / r->spec->floor_value;
    } else if (floor == FLOOR_RATE) {
        double rate = floor_needs_fma ? r->spec->floor_value * fma * 1e-9 : BENCH_SCALAR_FLOOR;
        r->floor = rate > r->floor ? rate : r->floor;
        floor_ratio = value / rate;
    }
    if (floor != NO_FLOOR)
        gbench_counter(state, "pct_floor", 100 * floor_ratio);

    for (size_t i = 0; i < rival_count; i++) {
        const struct rival *v = &rivals[i];
        char key[48];
        snprintf(key, sizeof key, "times_%s", rival_name(v->index));
        gbench_counter(state, key, v->best / best);
        if (r->rival_rounds[v->index] < MAX_ROUNDS)
            r->rival_ratio[v->index][r->rival_rounds[v->index]++] = (float)(v->best / best);
        const double rate = work_of(&job) / v->best * 1e-9;
        if (rate > r->rival_value[v->index])
            r->rival_value[v->index] = rate;
    }

    r->value = value > r->value ? value : r->value;
    r->operations = job.operations, r->bytes = job.bytes;
    r->seconds = r->rounds == 0 || best < r->seconds ? best : r->seconds;
    if (r->rounds < MAX_ROUNDS) {
        r->ratio[r->rounds] = (float)ratio;
        r->floor_ratio[r->rounds] = (float)floor_ratio;
        r->rounds++;
    }
    progress();
}

static int compare_floats(const void *a, const void *b) {
    float x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static double median(float *v, unsigned n) {
    if (n == 0)
        return 0;
    qsort(v, n, sizeof *v, compare_floats);
    return 0.5 * ((double)v[(n - 1) / 2] + (double)v[n / 2]);
}

/* ---------------------------------------------------------------------------------- the peaks */

static void size_text(char *text, size_t bytes, size_t size) {
    if (size >= (size_t)1 << 20)
        snprintf(text, bytes, "%zu MiB", size >> 20);
    else
        snprintf(text, bytes, "%zu KiB", size >> 10);
}

/* Of the caches half, of the memory four times what the last cache holds. */
static size_t footprints(size_t *sizes, const char **names) {
    const struct iso_cpu *cpu = &iso_machine()->cpu;
    const size_t mib = (size_t)1 << 20;
    size_t last = cpu->l3 ? cpu->l3 : cpu->l2, n = 0;
    if (cpu->l1d)
        names[n] = "L1", sizes[n++] = cpu->l1d / 2;
    if (cpu->l2)
        names[n] = "L2", sizes[n++] = cpu->l2 / 2;
    if (cpu->l3)
        names[n] = "L3", sizes[n++] = cpu->l3 / 2;
    size_t all = 4 * last < 64 * mib ? 64 * mib : 4 * last;
    all = all > 1024 * mib ? 1024 * mib : all;
    names[n] = all > last ? "memory" : "last cache", sizes[n++] = all;
    return n;
}

static bool isa_is_used(const iso_isa *isa) {
    for (size_t i = 0; i < row_count; i++)
        if (rows[i].place.isa == isa)
            return true;
    return false;
}

/* What the roofline needs of them, by instruction set: on one thread. */
enum { MAX_ISAS = 8 };
static struct { double fma, read[ROOFLINE_LEVELS]; } peaks[MAX_ISAS];

/* One line of the report, and one key for each set in the JSON. */
static void report_peak(enum bench_bound bound, size_t level, size_t bytes, const char *where,
                        size_t t) {
    static const char *const titles[] = {"FMA", "read", "copy"};
    static const char *const units[] = {"GFLOP/s", "GB/s", "GB/s"};
    const unsigned shots = options.quick ? 3 : 9;
    char line[64], size[24] = "", key[128], text[64];
    if (bound != BENCH_FMA)
        size_text(size, sizeof size, bytes);
    snprintf(line, sizeof line, "%s %s%s%s", titles[bound], where, *size ? ", " : "", size);
    if (!options.gbench)
        printf("  %-24s t%-2zu", line, t);
    for (size_t i = 0; i < iso_isa_count(); i++) {
        const iso_isa *isa = iso_isa_get(i);
        if (!isa_is_used(isa))
            continue;
        struct bench_place place = {.isa = isa, .threads = t};
        if (t > 1)
            place.executor = iso_pool_executor(pool);
        double peak = 1e-9 * bench_best_peak(&place, bound, bench_input(), bench_output(), bytes,
                                             1e-3, shots);
        if (t == 1 && i < MAX_ISAS && bound == BENCH_FMA)
            peaks[i].fma = 1e9 * peak;
        if (t == 1 && i < MAX_ISAS && bound == BENCH_READ)
            peaks[i].read[level] = 1e9 * peak;
        if (!options.gbench) {
            printf("%10.1f", peak);
            fflush(stdout);
        }
        snprintf(key, sizeof key, "isobit.peak.%s.%s%s%s/t%zu", isa->name, titles[bound],
                 *where ? "." : "", where, t);
        snprintf(text, sizeof text, "%.2f %s", peak, units[bound]);
        gbench_context(key, text);
    }
    if (!options.gbench)
        printf("  %s\n", units[bound]);
}

static void report_peaks(void) {
    size_t sizes[8];
    const char *names[8];
    const size_t n = footprints(sizes, names);
    if (!options.gbench) {
        printf("\n  %-27s", "peaks, best of several");
        for (size_t i = 0; i < iso_isa_count(); i++)
            if (isa_is_used(iso_isa_get(i)))
                printf("%10s", iso_isa_get(i)->name);
        printf("\n");
    }
    for (size_t t = 1; t <= threads; t += threads > 1 ? threads - 1 : 1) {
        report_peak(BENCH_FMA, 0, 0, "", t);
        for (size_t i = 0; i < n; i++)
            report_peak(BENCH_READ, i, sizes[i], names[i], t);
        for (size_t i = 0; i < n; i++)
            report_peak(BENCH_COPY, i, sizes[i], names[i], t);
    }
}

/* --------------------------------------------------------------------------------- the report */

static void report_context(void) {
    char text[512] = "", number[32];
    for (size_t i = 0; i < iso_isa_count(); i++) {
        const iso_isa *isa = iso_isa_get(i);
        if (isa_is_used(isa)) {
            size_t at = strlen(text);
            snprintf(text + at, sizeof text - at, "%s%s", at ? " " : "", isa->name);
        }
    }
    gbench_context("isobit.version", iso_version());
    snprintf(number, sizeof number, "%d", ISOBIT_NUMERICS_VERSION);
    gbench_context("isobit.numerics", number);
    gbench_context("isobit.compiler", COMPILER);
    gbench_context("isobit.flags", ISOBIT_BENCH_FLAGS);
    gbench_context("isobit.cpu", iso_machine()->cpu.name);
    gbench_context("isobit.isas", text);
    snprintf(number, sizeof number, "%zu", threads);
    gbench_context("isobit.threads", number);
    for (size_t i = 0; i < bench_peer_count(); i++) {
        char key[64];
        snprintf(key, sizeof key, "isobit.peer.%s", bench_peer_get(i)->name);
        gbench_context(key, bench_peer_get(i)->version);
    }
    gbench_context("isobit.statistic", "real_time: best sample of the repetition, per call; "
                                       "pct_peak: it against the best peak of the same repetition; "
                                       "cpu_time: calling thread, one call");
    if (options.gbench)
        return;
    printf("isobit %s, numerics %d, %s, %s\n", iso_version(), ISOBIT_NUMERICS_VERSION, COMPILER,
           ISOBIT_BENCH_FLAGS);
    printf("%s, %zu usable thread%s, instruction sets: %s\n", iso_machine()->cpu.name, threads,
           threads == 1 ? "" : "s", text);
    printf("peers: ");
    for (size_t i = 0; i < bench_peer_count(); i++)
        printf("%s%s", i ? "; " : "", bench_peer_get(i)->version);
    puts(bench_peer_count() ? "" : options.no_peers ? "not asked for" : "none is installed");
    double load;
    if (getloadavg(&load, 1) == 1 && load > 0.7)
        printf(
            "NOT ALONE: the load average is %.1f. Figures on several threads may mean nothing.\n",
            load);
}

/*
 * What holds all that a thread of the row touches: one of the names of footprints(). A vector more
 * than a cache has room for does not make it another one.
 */
static size_t level_of(const struct row *r) {
    const struct iso_cpu *cpu = &iso_machine()->cpu;
    const size_t caches[] = {cpu->l1d, cpu->l2, cpu->l3};
    const double own = r->bytes / (double)r->place.threads;
    size_t level = 0;
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++)
        if (caches[i]) {
            if ((i < 2 ? own : r->bytes) <= 1.1 * (double)caches[i])
                break;
            level++;
        }
    return level;
}

/* Whether a rival has a row at all. */
static bool rival_appears(size_t rival) {
    for (size_t i = 0; i < row_count; i++)
        if (rows[i].rival_rounds[rival])
            return true;
    return false;
}

static double times_rival(struct row *r, size_t rival) {
    return median(r->rival_ratio[rival], r->rival_rounds[rival]);
}

static void report_row(struct row *r, unsigned *met, unsigned *missed) {
    static const char *const bounds[] = {"FMA", "read", "copy"};
    const enum bench_bound bound = r->spec->bound;
    size_t sizes[8], blanks = 0; /* blanks: not printed yet, as nothing may follow them */
    const char *levels[8];
    footprints(sizes, levels);
    printf("%-17s%-15s %-7s t%-2zu", bench_op_name(r->spec), r->shape, r->place.isa->name,
           r->place.threads);
    if (r->status || r->rounds == 0) {
        printf("  %s\n", r->status ? iso_strerror(r->status) : "not measured");
        return;
    }
    const char *level = bound == BENCH_FMA ? "" : levels[level_of(r)];
    printf("%9.2f %-7s %5.1f %% %s%s%s", r->value, unit_of(r), 100 * median(r->ratio, r->rounds),
           bounds[bound], *level ? " " : "", level);
    blanks = 12 - strlen(bounds[bound]) - (*level ? 1 : 0) - strlen(level);
    for (size_t i = 0; i <= bench_peer_count(); i++)
        if (rival_appears(i)) {
            blanks += 9;
            if (r->rival_rounds[i]) {
                printf("%*.2f", (int)blanks, times_rival(r, i));
                blanks = 0;
            }
        }
    const enum floor_kind kind = floor_of(r);
    if (kind != NO_FLOOR) {
        const double ratio = median(r->floor_ratio, r->rounds);
        const bool good = ratio >= 1;
        *(good ? met : missed) += 1;
        printf("%*s", (int)blanks, "");
        if (kind == FLOOR_OF_PEAK)
            printf("  %5.1f %%       ", r->spec->floor_value);
        else
            printf("  %5.2f %-7s ", r->floor, unit_of(r));
        printf(" %s (%.0f %%)", good ? "MET" : "MISSED", 100 * ratio);
    }
    printf("\n");
}

/* What lies below is no more than the noise of a measurement. */
#define BEHIND 0.97

/* How isobit does against each of them, and where it is behind. */
static void report_rivals(void) {
    for (size_t i = 0; i < bench_peer_count(); i++) {
        unsigned n = 0, behind = 0;
        double sum = 0;
        for (size_t j = 0; j < row_count; j++)
            if (rows[j].rival_rounds[i]) {
                const double times = times_rival(&rows[j], i);
                sum += log(times), n++, behind += times < BEHIND;
            }
        if (n)
            printf("%s: isobit takes part in %u rows, is behind in %u; geometric mean %.2f times "
                   "as fast.\n",
                   rival_name(i), n, behind, exp(sum / n));
    }
    for (size_t j = 0; j < row_count; j++) {
        bool named = false;
        for (size_t i = 0; i <= bench_peer_count(); i++) {
            if (!rows[j].rival_rounds[i] || times_rival(&rows[j], i) >= BEHIND)
                continue;
            if (!named)
                printf("  behind: %-40s", rows[j].name);
            printf("  %s %.2f (%.2f %s)", rival_name(i), times_rival(&rows[j], i),
                   rows[j].rival_value[i], unit_of(&rows[j]));
            named = true;
        }
        if (named)
            printf("\n");
    }
}

/* Rows of one case must have the same outputs. Returns how many differ from the first one. */
static unsigned compare_outputs(void) {
    unsigned differ = 0;
    for (size_t i = 1; i < row_count; i++) {
        size_t first = i;
        while (first > 0 && rows[first - 1].spec == rows[i].spec)
            first--;
        if (rows[i].rounds && rows[first].rounds && rows[i].checksum != rows[first].checksum) {
            complain("the output of %s differs from that of %s", rows[i].name, rows[first].name);
            differ++;
        }
    }
    return differ;
}

static void report_rows(unsigned rounds) {
    unsigned met = 0, missed = 0;
    printf("\n%-17s%-15s %-7s %-3s%9s %-7s %-20s", "operation", "shape", "set", "thr", "value",
           "unit", " % of its peak");
    for (size_t i = 0; i <= bench_peer_count(); i++)
        if (rival_appears(i))
            printf("%9s", rival_name(i));
    printf("  floor\n");
    for (size_t i = 0; i < row_count; i++)
        report_row(&rows[i], &met, &missed);
    printf("\n%u rounds. %s.\n", rounds, statistic);
    if (left_out)
        printf("OUT OF TIME: %lu of %lu rounds were left out; see --seconds.\n", left_out, done);
    if (wall_time > 0 && cpu_time < 0.97 * wall_time)
        printf("NOT ALONE: on one thread this program had a CPU for %.0f %% of the time that it "
               "measured.\nThe figures are too low, most of all those of long calls.\n",
               100 * cpu_time / wall_time);
    if (met + missed)
        printf("floors: %u met, %u missed. In brackets: what was reached, in %% of the floor.\n",
               met, missed);
    report_rivals();
}

/* -------------------------------------------------------------------------------- the roofline */

/* One panel for each set, its rows on one thread. */
static bool write_roofline(void) {
    static struct roofline_panel panels[MAX_ISAS];
    static char titles[MAX_ISAS][128];
    struct roofline_point *points = calloc(row_count + 1, sizeof *points), *next = points;
    size_t sizes[8], count = 0;
    const char *names[8];
    const size_t levels = footprints(sizes, names);
    FILE *f = points ? fopen(options.svg, "w") : NULL;
    if (!f) {
        complain("cannot write '%s'", options.svg);
        free(points);
        return false;
    }
    for (size_t i = 0; i < iso_isa_count() && i < MAX_ISAS; i++) {
        struct roofline_panel *p = &panels[count];
        *p = (struct roofline_panel){.title = titles[count], .fma = peaks[i].fma, .points = next};
        for (size_t j = 0; j < row_count; j++) {
            const struct row *r = &rows[j];
            if (r->place.isa != iso_isa_get(i) || r->place.threads > 1 || !r->rounds ||
                r->operations <= 0)
                continue;
            *next++ = (struct roofline_point){.operation = bench_op_name(r->spec),
                                              .shape = r->shape,
                                              .level = level_of(r),
                                              .intensity = r->operations / r->bytes,
                                              .speed = r->operations / r->seconds};
            p->count++;
        }
        if (!p->count)
            continue;
        for (size_t j = 0; j < levels && j < ROOFLINE_LEVELS; j++)
            p->level_names[j] = names[j], p->bandwidths[j] = peaks[i].read[j];
        snprintf(titles[count], sizeof titles[count], "%s, one thread", iso_isa_get(i)->name);
        count++;
    }
    char title[160];
    snprintf(title, sizeof title, "isobit %s, %s on %s", iso_version(), COMPILER,
             iso_machine()->cpu.name);
    bool good = roofline_write(f, title, panels, count);
    if (fclose(f) || !good) {
        complain("cannot write '%s'", options.svg);
        good = false;
    }
    free(points);
    return good;
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
        printf("outputs: the same bits on all instruction sets and numbers of threads.\n");
    return code;
}

int main(int argc, char **argv) {
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
