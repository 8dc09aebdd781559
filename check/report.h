/* SPDX-License-Identifier: MIT
 *
 * What a run has found, gathered for the table, the digest and the files.
 */
#ifndef ISOBIT_CHECK_REPORT_H
#define ISOBIT_CHECK_REPORT_H

#include <stdio.h>

#include "engine.h"
#include "target.h"

enum { ISO_CHECK_MOST_ROWS = 1024, ISO_CHECK_MOST_FAILURES = 200, ISO_CHECK_LINE = 900 };

struct iso_check_row { /* a suite on a variant */
    const struct iso_check_suite *suite;
    const struct iso_check_variant *variant;
    const char *missing; /* why it did not run, or NULL */
    struct iso_check_tally tally;
    bool random;
};

struct iso_check_finding {
    char name[32], variant[32], reason[512], replay[ISO_CHECK_LINE];
};

struct iso_check_report {
    FILE *text;          /* for people; NULL: none */
    const char *command; /* that runs this target: "isobit check" */
    bool timing, errors;
    unsigned max_fail;
    uint64_t seed;
    const struct iso_recording *recording; /* the comparison for JSON, or NULL */
    size_t row_count, random_header, finding_count;
    struct iso_check_row rows[ISO_CHECK_MOST_ROWS];
    struct iso_check_finding findings[ISO_CHECK_MOST_FAILURES];
};

/* run->user becomes the report, which gathers and prints what the run finds. */
void iso_check_report_begin(struct iso_check_report *r, struct iso_check_run *run);
void iso_check_report_header(const struct iso_check_report *r);
/* The last lines of the table. */
void iso_check_report_end(const struct iso_check_report *r, const struct iso_check_run *run);

/* The hash of a suite when all variants that ran agree; *missing when there is none. */
bool iso_check_report_hash(const struct iso_check_report *r, const struct iso_check_suite *suite,
                           bool random, uint64_t *hash, bool *missing);
/* The hash of all hashes; false when variants disagree. */
bool iso_check_report_whole(const struct iso_check_report *r, const struct iso_check_run *run,
                            bool random, uint64_t *all);
/* Exit code 1 when variants disagree. */
int iso_check_report_digest(const struct iso_check_report *r, const struct iso_check_run *run,
                            bool random);
void iso_check_report_json(FILE *f, const struct iso_check_report *r,
                           const struct iso_check_run *run);

void iso_check_report_junit(FILE *f, const struct iso_check_report *r,
                            const struct iso_check_run *run);
void iso_check_report_markdown(FILE *f, const struct iso_check_report *r,
                               const struct iso_check_run *run);

/* "0.1.0" */
extern const char iso_check_version[];
const char *iso_check_row_result(const struct iso_check_row *row);

#endif
