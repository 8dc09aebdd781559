/* SPDX-License-Identifier: MIT
 *
 * Model directories made by a test: a temporary directory, text files, and safetensors files whose
 * every part can be chosen, so that a test can break one rule at a time.
 */
#ifndef ISOBIT_TESTS_MODEL_FILES_H
#define ISOBIT_TESTS_MODEL_FILES_H

#include <stddef.h>
#include <stdint.h>

typedef struct files {
    char directory[64];
} files;

void files_make(files *f);

void files_path(const files *f, const char *name, char *path, size_t bytes);

void files_write(const files *f, const char *name, const void *data, size_t bytes);

void files_text(const files *f, const char *name, const char *text);

void files_remove(const files *f);

/* A safetensors file in memory: header text and data. */
typedef struct blob {
    unsigned char *bytes;
    size_t count, room;
} blob;

void blob_add(blob *b, const void *data, size_t bytes);

void blob_free(blob *b);

/* length, header, then `data_bytes` zeros. */
blob blob_file(const char *header, size_t header_bytes, size_t data_bytes);

/* A model under construction: F32 tensors of pseudo-random numbers. */
typedef struct builder {
    blob header, data;
    uint64_t state;
    const char *skip;  /* a tensor to leave out */
    const char *dtype; /* another dtype string for the tensor `odd` */
    const char *odd;
    int int8; /* matrices are int8, with scales */
} builder;

/* One tensor, [n] or [n][k] if k is not 0, of numbers around `centre`. */
void builder_tensor(builder *b, const char *name, size_t n, size_t k, float centre, float spread);

/* One tensor of given elements, as they are in a file; the shape as text, like "3,4". */
void builder_given(builder *b, const char *name, const char *dtype, const char *shape,
                   const void *elements, size_t bytes);

/* All tensors of a model with one layer on each side; `bias`: final_logits_bias. */
void builder_model(builder *b, size_t V, size_t d, size_t f, int bias);

/* Closes the header and writes model.safetensors; the builder is then empty. */
void builder_write(builder *b, const files *f);

/* config.json for builder_model; `more` is text like ",\"key\":1". */
void files_config(const files *f, const char *type, size_t V, size_t d, size_t H, size_t ffn,
                  const char *more);

#endif
