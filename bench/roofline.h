/* SPDX-License-Identifier: MIT
 *
 * The roofline plot: operations per second against operations per byte, under what this machine
 * can do at best. One panel for each instruction set.
 */
#ifndef ISOBIT_BENCH_ROOFLINE_H
#define ISOBIT_BENCH_ROOFLINE_H

#include <stddef.h>
#include <stdio.h>

enum { ROOFLINE_LEVELS = 5 };

struct roofline_point {
    const char *operation, *shape;
    size_t level;     /* of the memory that holds the operands */
    double intensity; /* operations per byte */
    double speed;     /* operations per second */
};

struct roofline_panel {
    const char *title;
    double fma; /* operations per second */
    const char *level_names[ROOFLINE_LEVELS];
    double bandwidths[ROOFLINE_LEVELS]; /* bytes per second, of as many as have a name */
    const struct roofline_point *points;
    size_t count;
};

/* 0 when it could not be written. */
int roofline_write(FILE *file, const char *title, const struct roofline_panel *panels,
                   size_t count);

#endif
