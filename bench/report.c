/* SPDX-License-Identifier: MIT
 *
 * What isobit_bench says: peaks, rows, rivals and the roofline.
 */
#include "rows.h"

#ifndef ISOBIT_BENCH_FLAGS
#define ISOBIT_BENCH_FLAGS ""
#endif

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* ---------------------------------------------------------------------------------- the peaks */

static void size_text(char *text, size_t bytes, size_t size) {
    if (size >= (size_t)1 << 20)
        snprintf(text, bytes, "%zu MiB", size >> 20);
    else
        snprintf(text, bytes, "%zu KiB", size >> 10);
}

/* Of the caches half, of the memory four times what the last cache holds. */
size_t footprints(size_t *sizes, const char **names) {
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

static bool any_has_bf16(void) {
    for (size_t i = 0; i < row_count; i++)
        if (rows[i].place.isa->s8->b16_peak)
            return true;
    return false;
}

/* What the roofline needs of them, by instruction set: on one thread. */
enum { MAX_ISAS = 8 };
struct isa_peaks {
    double fma, read[ROOFLINE_LEVELS];
};
static struct isa_peaks peaks[MAX_ISAS];

/* One line of the report, and one key for each set in the JSON. */
static void report_peak(enum bench_bound bound, size_t level, size_t bytes, const char *where,
                        size_t t) {
    static const char *const titles[] = {"FMA", "read", "copy", "int8", "bf16"};
    static const char *const units[] = {"GFLOP/s", "GB/s", "GB/s", "GOP/s", "GFLOP/s"};
    const unsigned shots = options.quick ? 3 : 9;
    char line[64], size[24] = "", key[128], text[64];
    if (!bench_is_compute(bound))
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
        if (bound == BENCH_BF16 && !isa->s8->b16_peak) {
            if (!options.gbench)
                printf("%10s", "-");
            continue;
        }
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

void report_peaks(void) {
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
        report_peak(BENCH_INT8, 0, 0, "", t);
        if (any_has_bf16())
            report_peak(BENCH_BF16, 0, 0, "", t);
        for (size_t i = 0; i < n; i++)
            report_peak(BENCH_READ, i, sizes[i], names[i], t);
        for (size_t i = 0; i < n; i++)
            report_peak(BENCH_COPY, i, sizes[i], names[i], t);
    }
}

/* --------------------------------------------------------------------------------- the report */

void report_context(void) {
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
    printf("isobit %s, numerics %d (linear_b16: native), %s, %s\n", iso_version(),
           ISOBIT_NUMERICS_VERSION, COMPILER, ISOBIT_BENCH_FLAGS);
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
    static const char *const bounds[] = {"FMA", "read", "copy", "int8", "bf16"};
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
    const char *level = bench_is_compute(bound) ? "" : levels[level_of(r)];
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

/* Rows of one case must have the same outputs, in native numerics those of one set. Returns how
 * many differ from the first one. */
unsigned compare_outputs(void) {
    unsigned differ = 0;
    for (size_t i = 1; i < row_count; i++) {
        size_t first = i;
        while (first > 0 && rows[first - 1].spec == rows[i].spec)
            first--;
        while (bench_is_native(rows[i].spec) && rows[first].place.isa != rows[i].place.isa)
            first++;
        if (rows[i].rounds && rows[first].rounds && rows[i].checksum != rows[first].checksum) {
            complain("the output of %s differs from that of %s", rows[i].name, rows[first].name);
            differ++;
        }
    }
    return differ;
}

void report_rows(unsigned rounds) {
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
bool write_roofline(void) {
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
