/* SPDX-License-Identifier: MIT
 *
 * What the files of test_loader share.
 */
#ifndef ISOBIT_TESTS_TEST_LOADER_H
#define ISOBIT_TESTS_TEST_LOADER_H

#include "model_files.h"

#include <isobit/model.h>

#include "weights.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Sizes of the good model, and ids that its configuration needs. */
#define V 7
#define D 8
#define FFN 12
#define IDS ",\"eos_token_id\":2,\"decoder_start_token_id\":1,\"pad_token_id\":0"

/* test_loader.c: a load that must fail cleanly, if it fails; a model that is as it should be. */
iso_status load(const files *f, const iso_load_options *options, iso_error *error);
void good_model(const files *f);

/* loader/header.c */
void test_header_rules(void **state);
void test_header_strings(void **state);
void test_types(void **state);
void test_header_limits(void **state);
void test_header_mutations(void **state);

/* loader/files.c */
void test_file_length(void **state);
void test_file_mutations(void **state);
void test_not_a_file(void **state);
void test_file_grows(void **state);
void test_largest_texts(void **state);

/* loader/tensors.c */
void test_tensors(void **state);
void test_impossible_sizes(void **state);
void test_unshared_embeddings(void **state);
void test_most_positions(void **state);
void test_most_rotary(void **state);
void test_positions_are_shared(void **state);
void test_nonfinite(void **state);
void test_conversions(void **state);

/* loader/int8.c */
void test_int8_matrices(void **state);
void test_int8_models(void **state);
void test_int8_refused(void **state);
void test_int8_zero_scale(void **state);

/* loader/config.c */
void test_config(void **state);

/* loader/characters.c */
void test_tokenizer(void **state);
void test_letters(void **state);
void test_tokenizer_arguments(void **state);

#endif
