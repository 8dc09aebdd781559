/* SPDX-License-Identifier: MIT
 *
 * What the files of test_gguf share.
 */
#ifndef ISOBIT_TESTS_TEST_GGUF_H
#define ISOBIT_TESTS_TEST_GGUF_H

#include "gguf_files.h"

#include <isobit/model.h>

#include "gguf.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define DATA ISOBIT_TEST_DATA
#define NAME "model.gguf"
enum { MOST = 64 }; /* numbers of a row, tokens of a text */

/* Counted from 1: the allocation, or the read, that fails; 0: none. */
struct fault {
    size_t count, failing;
};

/* test_gguf.c */
extern struct fault memory, io;
extern const char *growing; /* a file that is longer after the next read */
extern int no_directory;    /* errno of the next directory that is opened; 0: it is opened */
void remove_all(const files *f);
iso_model *load(const char *path);
iso_status load_from(const char *path, int text, iso_error *error);

/* gguf/models.c */
void test_same_bits(void **state);
void test_llama3(void **state);
void test_t5(void **state);
void test_config(void **state);
void test_gemma3(void **state);
void test_sentences(void **state);
void test_text(void **state);

/* gguf/pieces.c */
#define K(name) "tokenizer.ggml." name
#define U81 "\xe2\x96\x81"
/* A vocabulary of pieces with one thing changed, and what "ab" becomes, or another text. */
typedef struct piece_row {
    const char *name;
    iso_status status;
    const char *says; /* or the text */
    const char *skip;
    void (*add)(gguf_maker *m);
    size_t id, count;  /* the token that is changed; so many tokens, or (0) all */
    const char *token; /* NULL: no token is changed */
    uint32_t type, score;
    size_t length;
    uint32_t ids[12];
} piece_row;
/* Nothing is changed. */
void make_good_pieces(gguf_maker *m);
void check_row(const piece_row *row, const char *path, iso_status status, const iso_error *error,
               const iso_tokenizer *t);
void no_prefix(gguf_maker *m);
void unk_text(gguf_maker *m);
void test_pieces(void **state);
void test_equal_scores(void **state);
void test_many_pairs(void **state);

/* gguf/words.c */
void test_words(void **state);

/* gguf/broken.c */
void test_rows(void **state);
void test_mutations(void **state);
void test_cut_entries(void **state);
void test_long_metadata(void **state);

/* gguf/places.c */
void test_places(void **state);

/* gguf/faults.c */
void test_faults(void **state);

#endif
