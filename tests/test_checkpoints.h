/* SPDX-License-Identifier: MIT
 *
 * What the files of test_checkpoints share.
 */
#ifndef ISOBIT_TESTS_TEST_CHECKPOINTS_H
#define ISOBIT_TESTS_TEST_CHECKPOINTS_H

#include "bin_files.h"

#include <isobit/model.h>

#include "bin.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define BIN "pytorch_model.bin"
#define INDEX "model.safetensors.index.json"

/* Counted from 1: the allocation, or the call on a file, that fails; 0: none. */
struct fault {
    size_t count, failing;
};

typedef struct tensor {
    const char *name, *class, *key;
    uint64_t elements; /* of the storage */
    uint64_t offset;
    size_t rank;
    uint64_t shape[2], strides[2];
} tensor;

enum { SHARDS = 3 };

#define MAP(entries) "{\"weight_map\":{" entries "}}"

/* test_checkpoints.c */
extern struct fault memory, io;
void remove_all(const files *f);
void remove_file(const files *f, const char *name);
void copy_data(const files *f, const char *from, const char *name);
void put(blob *b, uint64_t value, size_t bytes);
void put_text(blob *b, const char *text);
void put_tensor(blob *b, const tensor *t);
const char *shard_name(int bin, size_t shard);
void write_shards(const files *f, const char *golden, int bin);
iso_status load(const files *f, iso_error *error);
void expect(iso_status status, const char *says, const files *f);

/* index.c */
void small_shards(const files *f, int twice);
void test_indices(void **state);
void test_index_limits(void **state);

/* pickles.c */
iso_status open_bin(model_checkpoint *c, const files *f, const blob *b, size_t limit,
                    iso_error *error);
void test_pickles(void **state);
void test_pickles_alone(void **state);
void test_no_memory(void **state);
void test_members(void **state);
void test_limits(void **state);
void test_long_pickles(void **state);
void test_other_files(void **state);
void test_mutations(void **state);

/* elements.c */
void test_elements(void **state);
void test_doubles(void **state);

/* loader.c */
void test_wrong_tensors(void **state);
void test_files_grow(void **state);
void test_faults(void **state);

#endif
