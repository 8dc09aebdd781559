/* SPDX-License-Identifier: MIT
 *
 * What the files of test_record share.
 */
#ifndef ISOBIT_TESTS_TEST_RECORD_H
#define ISOBIT_TESTS_TEST_RECORD_H

#include "compare.h"
#include "measure.h"
#include "record_corpus.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST = 600 };

/* Operands with one output of rows x cols. */
struct output {
    struct iso_check_operands o;
    float at[MOST];
    double expect[MOST], bound[MOST];
};

/* measure.c */
void output(struct output *x, size_t rows, size_t cols, size_t ld, double bound);
void test_hash(void **state);
void test_measure(void **state);
void test_samples(void **state);

/* compare.c */
extern const struct iso_check_variant variants[];
void test_recorder(void **state);
void expect(const struct iso_comparison *k, size_t equal, size_t different, size_t allowed,
            size_t wrong, size_t absent, size_t unmet);
void test_comparison(void **state);
void test_other_variants(void **state);

#endif
