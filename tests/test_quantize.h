/* SPDX-License-Identifier: MIT
 *
 * What the files of test_quantize share.
 */
#ifndef ISOBIT_TESTS_TEST_QUANTIZE_H
#define ISOBIT_TESTS_TEST_QUANTIZE_H

#include "model_files.h"

#include <isobit/model.h>

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* Kinds of calls, of which one can be made to fail: that number `failing`, from 1; 0: none. */
enum {
    CALL_MEMORY,
    CALL_READ,
    CALL_WRITE,
    CALL_SYNC,
    CALL_NAME,
    CALL_OPEN,
    CALL_CLOSE,
    CALL_LIST,
    CALL_KINDS
};
extern struct calls { size_t count, failing; } calls[CALL_KINDS];

/* A safetensors file, read by nothing of isobit. */
typedef struct stored {
    unsigned char *bytes; /* the whole file */
    size_t count;
    const unsigned char *data;
    json_t *header;
} stored;
stored stored_read(const char *folder);
void stored_free(stored *s);
typedef struct stored_tensor {
    const char *dtype;
    size_t rank, shape[4], count;
    const unsigned char *at;
    size_t bytes;
} stored_tensor;
/* False: there is none of that name. What is not of the form fails the test. */
bool stored_find(const stored *s, const char *name, stored_tensor *t);
/* Element i as a number, of any type. */
double stored_number(const stored_tensor *t, size_t i);

/* Two folders that do not exist until they are written. */
typedef struct place {
    files from;
    char out[100], partial[120];
} place;
void place_make(place *p);
void place_remove(place *p); /* with all that is there */
bool is_there(const char *path);
void remove_tree(const char *path);
void write_file(const char *folder, const char *name, const char *text);

/* The number that a float becomes, by the definition: p bits, no exponent below `least`. */
double rounded(double x, int p, int least);

/* Calls iso_model_quantize, and fails the test unless it ends so; `says` is in the message. */
void quantize(const place *p, const iso_quantize_options *options, const iso_context *context);
void refuses(const place *p, const iso_quantize_options *options, iso_status status,
             const char *says);

/* A folder written with that type as `out`, and loaded. */
iso_model *quantized(const char *folder, const place *p, size_t type);

/* A marian model of F32, and the sizes of its table and layers. */
enum { V = 53, D = 64, F = 96 };
void make_model(const place *p);
/* A GPT-2 with matrices of several pieces, some stored [in][out]. */
enum { GPT_V = 2000, GPT_D = 128, GPT_F = 9216 };
void make_gpt2(const place *p);
void make_gpt2_of(const place *p, size_t layers);
/* What a model computes of some ids, with these options. */
enum { SEEN = 4, MOST_LOGITS = SEEN * GPT_V };
/* Also step by step, where there are steps. */
void compute_with(float to[MOST_LOGITS], const char *folder, const iso_load_options *options,
                  int stepwise, const iso_context *context);
void compute(float to[MOST_LOGITS], const char *folder, const iso_load_options *options);
/* Calls `check` with each folder of tests/data/models. */
void each_model(void (*check)(const char *folder, const place *p));
/* The JSON at a path of keys, as in "a/b/0"; NULL: there is none. */
json_t *json_at(json_t *root, const char *path);
json_t *read_config(const char *folder);

/* refusals.c */
void test_taken_names(void **state);
void test_first_error(void **state);
void test_refusals(void **state);

/* integers.c */
void test_int8(void **state);
void test_int8_models(void **state);
void test_int8_turned(void **state);
void test_config(void **state);

/* groups.c; the first one: that folder `out` computes what its numbers compute as floats. */
void check_groups_loaded(const place *p, const char *config_from);
void test_groups_written(void **state);
void test_groups_loaded(void **state);
/* groups_files.c */
void test_groups_of_others(void **state);
void test_groups_table(void **state);
void test_groups_refused(void **state);
void test_groups_config(void **state);
void test_groups_faults(void **state);

/* files.c: folders that are there or not, calls that fail. */
void test_places(void **state);
void test_leftovers(void **state);
void test_copies(void **state);
void test_faults(void **state);
void test_cancel(void **state);
void test_changing_file(void **state);

#endif
