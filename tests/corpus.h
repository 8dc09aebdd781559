/* SPDX-License-Identifier: MIT
 *
 * Malformed model files, each with the code and the words that it must give. test_corpus.c runs
 * them through the loaders; fuzz/seeds.c writes them out as seeds.
 */
#ifndef ISOBIT_TESTS_CORPUS_H
#define ISOBIT_TESTS_CORPUS_H

#include "model_files.h"

#include <isobit/isobit.h>

/* The model that the rows damage: "marian", one layer on each side. */
enum { CORPUS_V = 7, CORPUS_D = 8, CORPUS_FFN = 12 };

/* The header of a safetensors file followed by data_bytes zeros. */
typedef struct corpus_header {
    const char *name;
    iso_status status;
    const char *says;
    size_t data_bytes;
    const char *text;
    blob (*build)(void); /* instead of text */
} corpus_header;
extern const corpus_header corpus_headers[];
extern const size_t corpus_header_count;

/* A whole safetensors file. */
typedef struct corpus_file {
    const char *name;
    iso_status status;
    const char *says;
    size_t bytes;
    unsigned char start[24]; /* the first of `bytes` bytes, zeros following */
} corpus_file;
extern const corpus_file corpus_files[];
extern const size_t corpus_file_count;

/* A valid safetensors file that config.json contradicts. */
typedef struct corpus_tensors {
    const char *name;
    iso_status status;
    const char *says;
    size_t v, d, f;    /* sizes of the file; 0: as config.json says */
    const char *skip;  /* a tensor to leave out */
    const char *odd;   /* a tensor of the element type `dtype` (its bytes are those of F32) */
    const char *dtype; /* */
    const char *extra; /* one more tensor */
    size_t n, k;       /* its shape */
} corpus_tensors;
extern const corpus_tensors corpus_tensor_files[];
extern const size_t corpus_tensor_file_count;

/* One key of config.json with another value (NULL: left out); or without a key the whole text. */
typedef struct corpus_config {
    const char *name;
    iso_status status;
    const char *says;
    const char *key, *value;
} corpus_config;
extern const corpus_config corpus_configs[];
extern const size_t corpus_config_count;
/* config.json of such a row, or the good one (row NULL); free the result. */
char *corpus_config_text(const corpus_config *row);

/* The whole of generation_config.json. */
typedef struct corpus_text {
    const char *name;
    iso_status status;
    const char *says;
    const char *text, *vocabulary; /* of a tokenizer: its configuration (NULL: the good one) */
} corpus_text;
extern const corpus_text corpus_generation_configs[];
extern const size_t corpus_generation_config_count;
extern const corpus_text corpus_tokenizers[];
extern const size_t corpus_tokenizer_count;
extern const char corpus_good_tokenizer[], corpus_good_vocabulary[];

/* The good model: config.json, model.safetensors. */
void corpus_good_model(const files *f);

#endif
