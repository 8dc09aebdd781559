/* SPDX-License-Identifier: MIT
 *
 * Files, read whole or in parts, and mapped.
 */
#ifndef ISOBIT_MODEL_FILES_H
#define ISOBIT_MODEL_FILES_H

#include "base.h"

typedef struct model_file {
    int fd;
    uint64_t bytes;
    const char *name; /* the plain name, for messages */
} model_file;

/* Opens directory/name for reading; regular files only. ISOBIT_E_MISSING when it is not there. */
iso_status model_file_open(model_file *file, const char *directory, const char *name,
                           iso_error *error);
/* All of `bytes` bytes at `offset`, or an error. */
iso_status model_file_read(const model_file *file, void *to, uint64_t offset, size_t bytes,
                           iso_error *error);
/* Says ISOBIT_E_IO if the file no longer has the size that it was opened with. */
iso_status model_file_unchanged(const model_file *file, iso_error *error);
void model_file_close(model_file *file);

/* A whole file in memory, to be read only. All zero is none. */
typedef struct model_map {
    void *at;
    size_t bytes;
} model_map;
/* Maps the file, where that works; it may be closed then. `executor`: or NULL. */
void model_file_map(model_map *map, const model_file *file, const iso_executor *executor);
void model_file_unmap(model_map *map);

/* The whole of a small text file, NUL-terminated, in the arena. */
iso_status model_file_text(char **text, size_t *bytes, model_arena *arena, const char *directory,
                           const char *name, size_t limit, iso_error *error);

#endif
