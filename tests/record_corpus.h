/* SPDX-License-Identifier: MIT
 *
 * Recorded runs (check/record.h) put together byte by byte, as the format is written down: a good
 * one, and bad ones with the words that each must give. test_record.c reads them, fuzz/seeds.c
 * writes them out as seeds.
 */
#ifndef ISOBIT_TESTS_RECORD_CORPUS_H
#define ISOBIT_TESTS_RECORD_CORPUS_H

#include "model_files.h"

/* The good file with a few bytes replaced. */
typedef struct record_row {
    const char *name, *says;
    size_t at; /* where, */
    const char *with;
    size_t bytes; /* by what */
    long more;    /* bytes appended (zeros), or cut off */
    int sealed;   /* size and checksum are made to fit */
} record_row;
extern const record_row record_rows[];
extern const size_t record_row_count;

/* The good file, and that of a row. */
blob record_good(void);
blob record_spoilt(const record_row *row);
/* Makes size and checksum fit, where there is room for them. */
void record_seal(unsigned char *bytes, size_t size);

#endif
