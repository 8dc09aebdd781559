/* SPDX-License-Identifier: MIT
 *
 * The options --record and --compare of the command: what is asked before the run, what watches
 * it, what is said afterwards.
 */
#ifndef ISOBIT_CHECK_RECORDING_H
#define ISOBIT_CHECK_RECORDING_H

#include <stdio.h>

#include "compare.h"

struct iso_recording {
    const char *record, *compare; /* the files, or NULL */
    const char *command;          /* "isobit check": what replay lines begin with */
    FILE *text;                   /* where people are told; NULL: nowhere */
    bool some;                    /* only some cases of the plan are to run */
    unsigned max_fail;            /* differences shown for a suite on a variant */
    struct iso_recorder recorder;
    struct iso_record file; /* that is compared with */
    struct iso_comparison comparison;
    uint32_t numerics;
    bool failed;
};

/*
 * Makes the run be watched. --compare takes plan, part and random cases from the file, and the
 * kernel where the file has a single one. 0; or 2 after a line on stderr: the file cannot be used.
 */
int iso_recording_begin(struct iso_recording *x, struct iso_check_run *run);

/*
 * Writes the file, or says how the runs compare. 0; 1 where bits differ that were promised to be
 * equal, or anything was wrong in either run; 2 after a line on stderr: the file could not be
 * written, or none of its cases ran. Frees what x holds.
 */
int iso_recording_end(struct iso_recording *x);

/* The comparison as a JSON object, before it ends; "null" without one. */
void iso_recording_json(const struct iso_recording *x, FILE *to);

#endif
