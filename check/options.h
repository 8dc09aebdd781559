/* SPDX-License-Identifier: MIT
 *
 * The options of isobit check, as they stand on the command line.
 */
#ifndef ISOBIT_CHECK_OPTIONS_H
#define ISOBIT_CHECK_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "engine.h"
#include "recording.h"
#include "report.h"

/* What is asked for beside what struct iso_check_run holds. */
struct iso_check_choices {
    const char *variant, *line, *where, *junit, *markdown;
    FILE *junit_file, *markdown_file;
    bool list, coverage, self_test, json, digest, seeded, planned;
    struct iso_recording recording;
};

/* 0, or the exit code after a complaint. */
int iso_check_choose(struct iso_check_choices *c, struct iso_check_run *run,
                     struct iso_check_report *k, int argc, char **argv);
/* A line on stderr; returns the exit code 2. value: NULL, or what is wrong. */
int iso_check_complain(const char *what, const char *value);
int iso_check_help(const char *command);

#endif
