/* SPDX-License-Identifier: MIT
 *
 * The parts of a file that torch.save has written: a ZIP archive whose members are stored as they
 * are, and pickles that say how its bytes are tensors. bin.c puts them together.
 */
#ifndef ISOBIT_MODEL_BIN_H
#define ISOBIT_MODEL_BIN_H

#include "checkpoint.h"

/* ------------------------------------------------------------------------------ zip.c */

typedef struct zip_member {
    const char *name;
    size_t name_bytes;
    uint64_t header, bytes; /* where its own header is; its size */
    unsigned flags, method;
} zip_member;

typedef struct zip_archive {
    const model_file *file;
    zip_member *members; /* sorted by name, each name once */
    size_t count;
    uint64_t end;       /* of all members: there the directory begins */
    const char *folder; /* with its slash: what model_zip_find looks into; NULL: at the top */
    size_t folder_bytes;
} zip_archive;

/* Reads the directory, which may have max_bytes bytes, into the arena. */
iso_status model_zip_open(zip_archive *zip, model_arena *arena, const model_file *file,
                          size_t max_bytes, iso_error *error);
/* The member folder + path + key. */
const zip_member *model_zip_find(const zip_archive *zip, const char *path, const char *key,
                                 size_t key_bytes);
/* Where the bytes of a member begin in the file; compressed ones are refused. */
iso_status model_zip_locate(const zip_archive *zip, const zip_member *member, uint64_t *at,
                            iso_error *error);

/* --------------------------------------------------------------------------- pickle.c */

/* A list, or a dictionary as keys and values in turn: in pieces, as they were put in. */
typedef struct pickle_piece pickle_piece;
typedef struct pickle_list {
    pickle_piece *first, *last;
} pickle_list;

/* The bytes of tensors, in the words of the pickle; bin.c says where they are in the file. */
typedef struct pickle_storage {
    const char *key;
    size_t key_bytes;
    const char *dtype_name;
    model_dtype dtype;
    unsigned element_bytes;
    uint64_t elements;
    uint64_t at; /* in the file */
} pickle_storage;

struct pickle_value;
typedef struct pickle_tensor {
    pickle_storage *storage;
    uint64_t offset;                            /* elements of the storage before the first one */
    size_t rank;                                /* at most MODEL_MAX_RANK */
    const struct pickle_value *shape, *strides; /* [rank], numbers of at least 0 */
} pickle_tensor;

typedef enum pickle_kind {
    PICKLE_NOTHING, /* not a value */
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_NUMBER,
    PICKLE_FLOAT, /* its value is of no use here */
    PICKLE_STRING,
    PICKLE_TUPLE,
    PICKLE_LIST,
    PICKLE_DICT,
    PICKLE_GLOBAL, /* one of the few that are known */
    PICKLE_STORAGE,
    PICKLE_TENSOR
} pickle_kind;

typedef struct pickle_value {
    pickle_kind kind;
    uint32_t count; /* bytes of a string, items of a tuple */
    union {
        int64_t number; /* also of a bool, and which one of the globals */
        char *text;     /* in the pickle, not terminated */
        const struct pickle_value *items;
        pickle_list *list;
        pickle_storage *storage;
        pickle_tensor *tensor;
    } as;
} pickle_value;

struct pickle_piece {
    pickle_piece *next;
    const pickle_value *items;
    size_t count;
};

typedef struct model_pickle {
    pickle_value top;          /* what it is about */
    size_t bytes;              /* of the text, its end included */
    pickle_storage **storages; /* [storage_count] each one that was asked for, in that order */
    size_t storage_count;
} model_pickle;

/*
 * Reads the pickle at the beginning of `text`, of file `name`. Nothing that it asks for is done:
 * values become the ones above, all else is refused. ISOBIT_E_TRUNCATED when the text ends too
 * early. Values point into the text; they and all else are in the arena.
 */
iso_status model_pickle_read(model_pickle *p, model_arena *arena, const char *name, char *text,
                             size_t bytes, iso_error *error);
/* The value of a key that is a string, or NULL. */
const pickle_value *model_pickle_find(const pickle_value *dict, const char *key);

#endif
