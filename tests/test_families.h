/* SPDX-License-Identifier: MIT
 *
 * What the files of test_families share.
 */
#ifndef ISOBIT_TESTS_TEST_FAMILIES_H
#define ISOBIT_TESTS_TEST_FAMILIES_H

#include "model_files.h"

#include <isobit/model.h>

#include <endian.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>
#include <jansson.h>

typedef struct family {
    const char *name;
    const char *optional[3]; /* parts of names that the family can do without */
} family;

enum { MOST = 64, MOST_V = 64 };

typedef struct changed_config {
    const char *folder, *key, *value;
    iso_status status;
    const char *part; /* of the sentence */
} changed_config;

/* test_families.c */
void ok(iso_status status, const iso_error *error);
blob read_file(const char *directory, const char *name);
iso_status load_folder(const char *name, const char *config, const blob *weights, iso_error *error);
iso_status load_with(const char *name, const blob *weights, iso_error *error);
json_t *read_header(const blob *weights);
blob with_header(const blob *weights, const json_t *header);
iso_model *load(const char *name);
json_t *load_cases(const char *name);
size_t read_ids(const json_t *list, uint32_t *ids);
void check_close(const json_t *list, const float *values, size_t count, const char *name,
                 const char *what);
void check_vector(const iso_model *model, const uint32_t *ids, size_t length, iso_pooling pooling,
                  int normalize, const json_t *want, const char *name, const char *what);

/* defaults.c */
void test_defaults(void **state);
void test_limits(void **state);

/* encoders.c */
void test_encoders(void **state);
void test_untied_head(void **state);
void test_vectors_alone_or_together(void **state);
void expect(iso_status want, const char *part, iso_status status, const iso_error *error);
void test_encoder_arguments(void **state);
void test_sentence_files(void **state);

/* dense.c */
void test_dense_golden(void **state);
void test_dense_layers(void **state);
void test_dense_files(void **state);
void test_dense_weights(void **state);

/* decoders.c */
void test_decoders(void **state);
void test_decoder_scores(void **state);
void test_prompts(void **state);
void test_samples_of_prompts(void **state);
void test_decoder_arguments(void **state);

/* gemma.c */
void test_gemma3_config(void **state);
void test_gemma3_words(void **state);
void test_gemma2_words(void **state);
void test_gemma3_wide_window(void **state);
void test_gemma3_names(void **state);

/* t5.c */
void test_first_distances(void **state);
void check_configs(const changed_config *cases, size_t count);
void test_t5_config(void **state);
void test_t5_names(void **state);
iso_status try_longer(iso_model **model, const char *name, const char *changes, size_t positions,
                      iso_error *error);
iso_model *load_as(const char *name, const char *changes);
void test_t5_encoders(void **state);
void test_t5_without_decoder(void **state);
void test_t5_info(void **state);

/* phi3.c */
void test_phi3_gemma_opt_config(void **state);
void test_phi3_gemma_words(void **state);
void test_longer_texts(void **state);
void test_longer_arguments(void **state);

/* llama.c */
void test_llama_config(void **state);
void test_rope_numbers(void **state);
void test_new_keys(void **state);
void test_window(void **state);
void test_long_windows(void **state);

#endif
