/* SPDX-License-Identifier: MIT
 *
 * What the files of test_model share.
 */
#ifndef ISOBIT_TESTS_TEST_MODEL_H
#define ISOBIT_TESTS_TEST_MODEL_H

#include "model_files.h"

#include <isobit/model.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#define LOGITS_ERROR 2e-5
/* Sources of many lengths, some of them equal. */
#define SENTENCES 23
typedef struct corpus {
    uint32_t ids[SENTENCES * 32];
    size_t lengths[SENTENCES], first[SENTENCES], total;
} corpus;

#define G2P ISOBIT_SOURCE_DIR "/models/g2p-en"

/* An executor that runs its tasks one after the other, the last one first. */
typedef struct backwards {
    iso_executor executor;
    iso_context context;
    size_t regions;
} backwards;

/* test_model.c */
extern const char *const golden[];
extern const size_t golden_count;
void ok(iso_status status, const iso_error *error);
iso_model *load(const char *directory);
iso_model *load_int8(const char *name); /* int8.c: a golden model computed with int8 */
iso_model *load_golden(const char *name, json_t **cases);
size_t read_ids(const json_t *list, uint32_t *ids, size_t room);
void check_close(const json_t *list, const float *values, size_t count, double tolerance,
                 const char *what);
int has_encoder(const iso_model *model);
void logits_of(float *logits, const iso_model *model, const uint32_t *source, size_t S,
               const uint32_t *target, size_t T, int stepwise);
size_t model_step(void);

/* bits.c */
void same_hypothesis(const iso_hypothesis *a, const iso_hypothesis *b, size_t attention);
void make_corpus(corpus *c, size_t V);
void test_batch_and_permutation(void **state);
void test_cached_is_recomputed(void **state);
void test_long_distances(void **state);
void test_scores_agree(void **state);
void test_threads(void **state);
void test_instruction_sets(void **state);

/* search.c */
void test_literal_beam_search(void **state);
void test_near_ties(void **state);

/* arguments.c */
void test_arguments(void **state);
void test_lengths(void **state);
void test_nothing_is_finite(void **state);

/* wide.c */
void test_wide_vocabulary(void **state);
void test_wide_on_threads(void **state);
void test_encode_batch(void **state);
const iso_context *make_backwards(backwards *b, size_t threads);
void test_widened(void **state);
void test_rows_among_threads(void **state);

/* cache.c */
void test_cached_in_16_bits(void **state);
void test_beams_in_16_bits(void **state);
void test_cache_option(void **state);

/* int8.c */
void test_int8_bits(void **state);
void test_int8_layers(void **state);

/* native.c */
void test_native_numerics(void **state);
void test_compute_option(void **state);

/* costs.c */
void test_profile(void **state);
void test_steps_allocate_nothing(void **state);
void test_out_of_memory(void **state);

/* How far a is from b, or from zeros, at most. */
double farthest(const float *a, const float *b, size_t n);

#endif
