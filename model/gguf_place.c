/* SPDX-License-Identifier: MIT
 *
 * Which file a path means: itself, or the only .gguf file in a directory that has no config.json.
 */
#define _POSIX_C_SOURCE 200809L
#include "gguf.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

static const char suffix[] = ".gguf";

static int has_suffix(const char *name, size_t bytes) {
    const size_t n = sizeof suffix - 1;
    return bytes > n && memcmp(name + bytes - n, suffix, n) == 0;
}

static char *copy(model_arena *arena, const char *text, size_t bytes) {
    char *to = model_alloc(arena, bytes + 1, 1);
    if (to) {
        memcpy(to, text, bytes);
        to[bytes] = 0;
    }
    return to;
}

/* The only file of that kind in a directory. */
static iso_status look_into(gguf_place *place, const char *path, iso_error *error) {
    model_quoted quoted;
    iso_status status = ISOBIT_OK;
    DIR *directory = opendir(path);
    if (!directory) /* what is wrong with it says who opens config.json there */
        return errno == ENOMEM ? model_fail(error, ISOBIT_E_NOMEM, "out of memory") : ISOBIT_OK;
    for (struct dirent *entry; !status && (entry = readdir(directory));) {
        const size_t bytes = strlen(entry->d_name);
        if (!has_suffix(entry->d_name, bytes))
            continue;
        if (place->name)
            status = model_fail(error, ISOBIT_E_CONFIG,
                                "there is more than one .gguf file in %s, and no config.json; give "
                                "the path of one of them",
                                model_quote(&quoted, path, strlen(path)));
        else if (!(place->name = copy(&place->arena, entry->d_name, bytes)))
            status = model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    }
    (void)closedir(directory);
    return status;
}

iso_status model_gguf_locate(gguf_place *place, const char *path, iso_error *error) {
    const size_t bytes = strlen(path);
    model_file file;
    iso_error why;
    *place = (gguf_place){.directory = path};
    if (has_suffix(path, bytes)) {
        const char *slash = strrchr(path, '/');
        DIR *directory = opendir(path);
        if (directory) { /* of a strange name */
            (void)closedir(directory);
        } else {
            place->name = slash ? slash + 1 : path;
            place->directory = !slash          ? "."
                               : slash == path ? "/"
                                               : copy(&place->arena, path, (size_t)(slash - path));
            return place->directory ? ISOBIT_OK
                                    : model_fail(error, ISOBIT_E_NOMEM, "out of memory");
        }
    }
    const iso_status status = model_file_open(&file, path, "config.json", &why);
    if (status == ISOBIT_E_MISSING)
        return look_into(place, path, error);
    if (status)
        return model_fail(error, status, "%s", why.message);
    model_file_close(&file);
    return ISOBIT_OK;
}
