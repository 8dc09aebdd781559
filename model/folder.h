/* SPDX-License-Identifier: MIT
 *
 * A folder that appears at once or not at all.
 */
#ifndef ISOBIT_MODEL_FOLDER_H
#define ISOBIT_MODEL_FOLDER_H

#include "files.h"

/* It is written as PATH.partial, which takes its name when it is complete. */
typedef struct model_folder {
    char *path, *partial; /* in the arena */
    int fd;               /* of the one that is written, locked; -1: there is none */
    model_arena arena;
} model_folder;

/*
 * Nothing but an empty folder may be at `path`. What a process that was killed has left at
 * PATH.partial is removed, if it is that, and nobody still writes there. Whatever comes back, the
 * folder is to be ended by model_folder_discard.
 */
iso_status model_folder_open(model_folder *folder, const char *path, iso_error *error);
/* A new file in it, in *fd, for the caller to close. */
iso_status model_folder_create(const model_folder *folder, const char *name, int *fd,
                               iso_error *error);
/* All of `bytes` bytes, at `offset`. `name` is for messages. */
iso_status model_folder_write(int fd, const char *name, const void *data, size_t bytes,
                              uint64_t offset, iso_error *error);
/* The file must be on the disk; closes it. */
iso_status model_folder_close(int fd, const char *name, iso_error *error);
/* Copies of the folder `from` the files that are wanted, and of the folders in it that are. */
typedef enum model_entry { ENTRY_FILE, ENTRY_FOLDER, ENTRY_INNER_FILE } model_entry;
iso_status model_folder_copy(const model_folder *folder, const char *from,
                             int (*wanted)(const char *name, model_entry entry), iso_error *error);
/* It is complete: all of it is brought onto the disk, and it gets its name. */
iso_status model_folder_finish(model_folder *folder, iso_error *error);
/* Removes what is not complete; after model_folder_finish nothing. */
void model_folder_discard(model_folder *folder);

#endif
