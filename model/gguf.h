/* SPDX-License-Identifier: MIT
 *
 * A GGUF file: metadata, that is values with names, and tensors. gguf.c reads both,
 * gguf_config.c makes a configuration of the metadata, text/gguf.c a tokenizer.
 */
#ifndef ISOBIT_MODEL_GGUF_H
#define ISOBIT_MODEL_GGUF_H

#include "checkpoint.h"
#include "config.h"
#include "json.h"

/* The most that may precede the tensors, where nobody says how much. */
#define GGUF_MAX_BYTES ((size_t)100000000)

/* The numbers are those of the file. */
typedef enum gguf_type {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_TYPES
} gguf_type;

/* A value, or the items of an array, as they lie in the file. */
typedef struct gguf_value {
    const char *key; /* not terminated */
    size_t key_bytes;
    gguf_type type; /* of an array: that of its items */
    int array;
    size_t count; /* of items; 1 without an array */
    const char *data;
    size_t bytes;
} gguf_value;

typedef struct model_gguf {
    const char *file;
    gguf_value *values; /* [count] sorted by key; they point into the arena of the checkpoint */
    size_t count;
    iso_error *error;
} model_gguf;

/* Where a GGUF file is: the path of one, or a directory that has one and no config.json. */
typedef struct gguf_place {
    const char *directory, *name; /* name NULL: there is none, but maybe a model of another form */
    model_arena arena;            /* of both; for the caller to free */
} gguf_place;
iso_status model_gguf_locate(gguf_place *place, const char *path, iso_error *error);

/*
 * Reads the metadata and the places of the tensors. Whatever comes back, the checkpoint is to be
 * closed; the metadata lives as long as it.
 */
iso_status model_gguf_open(model_gguf *gguf, model_checkpoint *checkpoint, const char *directory,
                           const char *name, size_t max_header_bytes, iso_error *error);

/* NULL: there is none of that key. */
const gguf_value *model_gguf_find(const model_gguf *gguf, const char *key);
/* The same for a value of one type, no array; an error when it is of another one. */
iso_status model_gguf_get(const model_gguf *gguf, const gguf_value **value, const char *key,
                          gguf_type type);
/* An array with items of that type. */
iso_status model_gguf_array(const model_gguf *gguf, const gguf_value **value, const char *key,
                            gguf_type type);
/* The string that begins at *at, which is moved behind it. */
const char *model_gguf_string(const char **at, size_t *bytes);
/* UTF-8 without a NUL character. */
int model_gguf_is_text(const char *text, size_t bytes);
/* Whether a value is this string. */
int model_gguf_is(const gguf_value *value, const char *text);
/* Number, flag or string as JSON, an array as an empty list; NULL: no memory, where it has JSON. */
json_t *model_gguf_json(const gguf_value *value);
int model_gguf_has_json(const gguf_value *value); /* 0: not finite, or no text */
/* Little-endian. */
uint64_t model_gguf_number(const char *at, size_t bytes);

/* The configuration of the model, and marks on tensors whose rows lie in another order. */
iso_status model_gguf_config(const model_gguf *gguf, model_checkpoint *checkpoint,
                             model_config *config, model_arena *arena);

#endif
