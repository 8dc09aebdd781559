/* SPDX-License-Identifier: MIT
 *
 * What the files of test_sample share.
 */
#ifndef ISOBIT_TESTS_TEST_SAMPLE_H
#define ISOBIT_TESTS_TEST_SAMPLE_H

#include "model_files.h"
#include "sample.h"

#include <isobit/model.h>

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

enum { V = 61, EOS = 2, MOST_V = 5000 };

typedef struct kept {
    size_t id;
    double value, p;
} kept;

/* test_sample.c */
void ok(iso_status status, const iso_error *error);
iso_model *make_model_with(uint32_t second_eos, const char *more);
iso_model *make_model(const char *more);
extern const uint32_t sources[];
extern const size_t lengths[];

/* warp.c */
extern uint64_t random_state;
uint32_t random_below(uint32_t n);
void test_philox(void **state);
size_t literal_warp(kept *k, const model_warp *w, const float *row, size_t n, double *unsure);
void test_warp(void **state);
void test_transformers(void **state);
void test_draw(void **state);

/* generation.c */
void test_literal_sampling(void **state);
void test_chance(void **state);
void same_hypothesis(const iso_hypothesis *a, const iso_hypothesis *b);
void test_same_bits(void **state);
void test_greedy_is_the_limit(void **state);
void test_nothing_is_finite(void **state);

/* stops.c */
void test_is_last(void **state);
void test_stop(void **state);
void test_on_token(void **state);

#endif
