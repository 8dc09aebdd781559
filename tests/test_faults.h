/* SPDX-License-Identifier: MIT
 *
 * What the files of test_faults share.
 */
#ifndef ISOBIT_TESTS_TEST_FAULTS_H
#define ISOBIT_TESTS_TEST_FAULTS_H

#include <isobit/model.h>

#include "model/weights.h"
#include "model_files.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

struct memory_faults {
    size_t allocations, failing; /* the failing one counts from 1; 0: none */
    size_t all_from;             /* from this one on all fail; 0: none */
};

struct io_faults {
    size_t calls, failing; /* as above: open, fstat, pread */
    int code;              /* errno of the failing one */
    int interrupt;         /* every second call is interrupted first */
    size_t shortest;       /* no read gives more bytes; 0: no limit */
    off_t more;            /* fstat claims so many bytes more */
    const char *cut_path;  /* is cut to cut_bytes at the read number cut_at */
    off_t cut_bytes;
    size_t reads, cut_at;
    int no_maps; /* no file can be mapped */
    size_t maps; /* that are there now */
};

enum { V = 11, D = 8, FFN = 12 };

/* What a model says: equal models give equal bits. */
typedef struct answer {
    float logits[3 * V], scores[4];
    uint32_t ids[64];
    size_t count;
} answer;

/* test_faults.c */
extern struct memory_faults memory;
extern struct io_faults io;
extern int mapping;
void no_faults(void);
void good_files(const files *f);
iso_status ask_generate(answer *a, const iso_model *model, const iso_context *context,
                        iso_error *error);
iso_status ask_score(answer *a, const iso_model *model, iso_error *error);
void ask(answer *a, const iso_model *model);
iso_status load(iso_model **model, const files *f, iso_error *error);
void same(const answer *expected, const files *f);

/* allocations.c */
/* Each allocation fails once while the weights are taken: how many there are, and one more. */
size_t each_take_fails(iso_model *model, model_source *source);
void test_no_memory(void **state);
void test_json_without_memory(void **state);
void test_config_without_memory(void **state);
void test_lists_without_memory(void **state);
void test_no_memory_for_weights(void **state);
void test_no_memory_for_a_weight(void **state);
void test_weights_too_large(void **state);

/* dense.c */
void test_dense_faults(void **state);

/* models.c */
void test_models_fail(void **state);
void test_no_memory_for_a_weight_of_models(void **state);

/* files.c */
void test_system_calls_fail(void **state);
void test_short_reads(void **state);
void test_files_change(void **state);
void test_no_regular_files(void **state);
void test_beyond_4_gib(void **state);
void test_mapped(void **state);

#endif
