/* SPDX-License-Identifier: MIT
 *
 * What the files of isobit_ab share.
 */
#ifndef ISOBIT_BENCH_AB_H
#define ISOBIT_BENCH_AB_H

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

struct options {
    bool list;
    const char *isa, *count, *benches;
    uint64_t seed;
    size_t offset, blocks;
    double slot, seconds; /* of a timing, and of all blocks of a benchmark */
    bool shuffle;
    const char **names, **inject;
    size_t name_count, inject_count;
};

struct timing {
    double wall, cpu;
}; /* nanoseconds of one call */

struct block {
    bool b_first;
    struct timing slots[2][2]; /* by side, in the order of time */
};

/* ab.c */
extern struct options options;
extern struct side sides[2];
extern size_t errors;
__attribute__((format(printf, 1, 2))) void complain(const char *format, ...);
int list(void);
bool number(const char *text, double least, double most, double *value);
bool inject(const char *text);

/* ab_output.c */
void put_string(const char *text);
void put_key(const char *key, const char *text);
void flush_output(void);
void end_line(void);
void put_error(const struct row *row, const struct side *side, const char *why);
extern char running[128];
extern const char *volatile running_side;
void catch_signals(void);

/* ab_measure.c */
uint64_t random_bits(void);
bool measure(const struct row *row, struct block *blocks);
extern void (*volatile counted)(const struct bench_job *job, iso_status *status);
int count(const struct row *row);

#endif
