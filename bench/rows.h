/* SPDX-License-Identifier: MIT
 *
 * The rows of isobit_bench: what is measured, and what came of it.
 */
#ifndef ISOBIT_BENCH_ROWS_H
#define ISOBIT_BENCH_ROWS_H

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

/* Rivals of a row: the peers, and its own operation in several steps. */
enum { MAX_ROUNDS = 999, MAX_ROWS = 1024, MAX_GBENCH_ARGS = 64, MAX_RIVALS = BENCH_MAX_PEERS + 1 };

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

struct options {
    const char *filter, *isa, *json, *svg;
    bool quick, list, gbench, no_peers;
    unsigned rounds;
    double seconds; /* after which rounds are left out */
    char *gbench_args[MAX_GBENCH_ARGS];
    int gbench_count;
};

enum floor_kind { NO_FLOOR, FLOOR_OF_PEAK, FLOOR_RATE };

struct rival {
    size_t index;
    const struct bench_peer *peer; /* NULL: the operation in several steps */
    const void *state;
    size_t calls;
    double best;
};

/* main.c */
extern const char *const statistic;
extern struct options options;
extern struct row *rows;
extern size_t row_count;
extern iso_pool *pool;
extern size_t threads;
extern unsigned long done, left_out;
extern double began;
__attribute__((format(printf, 1, 2))) void complain(const char *format, ...);
bool is_scalar(const iso_isa *isa);

/* measure.c */
const char *unit_of(const struct row *r);
enum floor_kind floor_of(const struct row *r);
extern double wall_time, cpu_time;
unsigned rounds_of(const struct row *r);
const char *rival_name(size_t index);
void measure(gbench_state *state, void *user);
double median(float *v, unsigned n);

/* report.c */
size_t footprints(size_t *sizes, const char **names);
void report_peaks(void);
void report_context(void);
unsigned compare_outputs(void);
void report_rows(unsigned rounds);
bool write_roofline(void);

#endif
