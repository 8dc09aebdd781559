/* SPDX-License-Identifier: MIT
 *
 * GGUF files made value by value, so that each rule can be broken alone, and the rows of those that
 * break one: test_gguf.c runs them, fuzz/seeds.c writes them out. The code is in gguf/maker.c, the
 * rows are in gguf/rows_file.c and gguf/rows_model.c.
 */
#ifndef ISOBIT_TESTS_GGUF_FILES_H
#define ISOBIT_TESTS_GGUF_FILES_H

#include "model_files.h"

#include <isobit/isobit.h>

/* A file under construction. */
typedef struct gguf_maker {
    blob values, tensors, data;
    uint64_t value_count, tensor_count;
    uint32_t version;
    uint64_t alignment; /* of tensors; the key is not written */
    const char *skip;   /* a key, or a tensor, to leave out */
    uint64_t places[8]; /* of the offsets of the first tensors, in `tensors` */
} gguf_maker;

void gguf_put(blob *b, uint64_t value, size_t bytes);
void gguf_string(blob *b, const char *text, size_t bytes);
/* A value of that type, of so many bytes. */
void gguf_number(gguf_maker *m, const char *key, uint32_t type, uint64_t value, size_t bytes);
void gguf_u32(gguf_maker *m, const char *key, uint32_t value);
void gguf_text(gguf_maker *m, const char *key, const char *value);
/* An array of strings, NULL at the end. */
void gguf_texts(gguf_maker *m, const char *key, const char *const *values);
/* An array of numbers of 4 bytes each. */
void gguf_numbers(gguf_maker *m, const char *key, uint32_t type, const uint32_t *values,
                  size_t count);
void gguf_i32s(gguf_maker *m, const char *key, const uint32_t *values, size_t count);
/* Its data: `bytes` bytes that are small floats. Sizes: that of a row first. */
void gguf_tensor(gguf_maker *m, const char *name, uint32_t type, uint32_t rank,
                 const uint64_t *sizes, size_t bytes);
/* Of F32: n rows of k elements, or (n 0) a vector. */
void gguf_f32(gguf_maker *m, const char *name, uint64_t k, uint64_t n);
/* A Llama of one layer with a tokenizer. */
void gguf_good(gguf_maker *m);
/* The file; the maker is empty then. */
blob gguf_finish(gguf_maker *m);

/* A file that is refused, or (ISOBIT_OK) is not. */
typedef struct gguf_row {
    const char *name;
    iso_status status;
    const char *says;
    int text;                   /* what the tokenizer says of it, not the model */
    const char *skip;           /* left out of the good file */
    void (*add)(gguf_maker *m); /* and this added; or NULL */
    size_t at, bytes;           /* then changed in the whole file */
    unsigned char to[8];
} gguf_row;
/* NULL behind the last. */
const gguf_row *gguf_row_at(size_t i);
blob gguf_spoilt(const gguf_row *row);

#endif
