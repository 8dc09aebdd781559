/* SPDX-License-Identifier: MIT
 *
 * A folder that appears at once or not at all. It is written beside its place, each file and the
 * folder are brought onto the disk, and one rename gives it its name. A file in it says that it is
 * not complete, so that the next run knows what it may remove; a lock says that somebody still
 * writes there.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES 4096

static const char marker[] = "isobit-incomplete";
static const char marker_text[] =
    "isobit was writing a model here, and did not finish. This folder may be removed.\n";

static iso_status failed(const char *what, const char *name, iso_error *error) {
    const int code = errno;
    model_quoted quoted;
    return model_fail(error, ISOBIT_E_IO, "%s cannot be %s (errno %d)",
                      model_quote(&quoted, name, strlen(name)), what, code);
}

/* The next entry but . and .. that is there, or NULL at the end, errno saying whether it is one. */
static const char *next(DIR *directory) {
    const struct dirent *entry;
    do {
        errno = 0;
        entry = readdir(directory);
    } while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
    return entry ? entry->d_name : NULL;
}

/* Its own descriptor reads the entries; NULL and errno. */
static DIR *open_list(int parent, const char *name) {
    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !directory)
        close(fd);
    return directory;
}

/* Removes what is in a folder, and the files of the folders in it; 0: something stayed. */
static int empty(int parent, const char *name, int depth) {
    DIR *directory = open_list(parent, name);
    int good = directory != NULL;
    for (const char *entry; good && (entry = next(directory));) {
        const int fd = dirfd(directory);
        if (unlinkat(fd, entry, 0) == 0)
            continue;
        good = depth == 0 && empty(fd, entry, 1) && unlinkat(fd, entry, AT_REMOVEDIR) == 0;
    }
    good = good && errno == 0;
    if (directory)
        (void)closedir(directory);
    return good;
}

static int is_empty(int fd) {
    DIR *directory = open_list(fd, ".");
    const int none = directory && !next(directory) && errno == 0;
    if (directory)
        (void)closedir(directory);
    return none;
}

/* What is at the place of the folder: nothing, or an empty folder. */
static iso_status check_place(const model_folder *folder, iso_error *error) {
    struct stat st;
    model_quoted quoted;
    if (lstat(folder->path, &st) != 0)
        return errno == ENOENT ? ISOBIT_OK : failed("written", folder->path, error);
    model_quote(&quoted, folder->path, strlen(folder->path));
    if (!S_ISDIR(st.st_mode))
        return model_fail(error, ISOBIT_E_IO, "%s exists, and is no folder", quoted.text);
    DIR *directory = open_list(AT_FDCWD, folder->path);
    if (!directory)
        return failed("read", folder->path, error);
    const int none = is_empty(dirfd(directory));
    (void)closedir(directory);
    return none ? ISOBIT_OK
                : model_fail(error, ISOBIT_E_IO, "%s exists, and is not empty", quoted.text);
}

/* The folder of an earlier run that was killed, which alone may be removed. */
static iso_status clean(const model_folder *folder, iso_error *error) {
    model_quoted quoted;
    model_quote(&quoted, folder->partial, strlen(folder->partial));
    if (flock(folder->fd, LOCK_EX | LOCK_NB) != 0)
        return model_fail(error, ISOBIT_E_IO, "%s is being written by another process",
                          quoted.text);
    if (is_empty(folder->fd))
        return ISOBIT_OK;
    if (faccessat(folder->fd, marker, F_OK, 0) != 0)
        return model_fail(
            error, ISOBIT_E_IO,
            "%s exists, and isobit has not left it: remove it, or choose another name",
            quoted.text);
    return empty(folder->fd, ".", 0) ? ISOBIT_OK : failed("emptied", folder->partial, error);
}

iso_status model_folder_open(model_folder *folder, const char *path, iso_error *error) {
    size_t bytes = strlen(path);
    *folder = (model_folder){.fd = -1};
    while (bytes > 1 && path[bytes - 1] == '/')
        bytes--;
    if (bytes == 0)
        return model_fail(error, ISOBIT_E_IO, "the name of the folder to write is empty");
    folder->path = model_alloc(&folder->arena, bytes + 1, 1);
    folder->partial = model_alloc(&folder->arena, bytes + sizeof ".partial", 1);
    if (!folder->path || !folder->partial)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    memcpy(folder->path, path, bytes);
    folder->path[bytes] = 0;
    memcpy(folder->partial, path, bytes);
    memcpy(folder->partial + bytes, ".partial", sizeof ".partial");
    iso_status status = check_place(folder, error);
    if (status)
        return status;
    if (mkdir(folder->partial, 0777) != 0 && errno != EEXIST)
        return failed("made", folder->partial, error);
    const int fd = open(folder->partial, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return failed("opened", folder->partial, error);
    folder->fd = fd;
    if ((status = clean(folder, error))) {
        close(folder->fd);
        folder->fd = -1; /* it is not ours */
        return status;
    }
    int file = -1;
    status = model_folder_create(folder, marker, &file, error);
    if (status)
        return status;
    status = model_folder_write(file, marker, marker_text, sizeof marker_text - 1, 0, error);
    if (!status)
        return model_folder_close(file, marker, error);
    (void)close(file);
    return status;
}

static iso_status create(int fd, const char *name, int *file, iso_error *error) {
    *file = openat(fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    return *file < 0 ? failed("created", name, error) : ISOBIT_OK;
}

iso_status model_folder_create(const model_folder *folder, const char *name, int *fd,
                               iso_error *error) {
    return create(folder->fd, name, fd, error);
}

iso_status model_folder_write(int fd, const char *name, const void *data, size_t bytes,
                              uint64_t offset, iso_error *error) {
    const char *from = data;
    while (bytes) {
        const size_t piece = bytes < ((size_t)1 << 30) ? bytes : (size_t)1 << 30;
        const ssize_t put = pwrite(fd, from, piece, (off_t)offset);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return failed("written", name, error);
        from += put;
        offset += (uint64_t)put;
        bytes -= (size_t)put;
    }
    return ISOBIT_OK;
}

iso_status model_folder_close(int fd, const char *name, iso_error *error) {
    iso_status status = fsync(fd) == 0 ? ISOBIT_OK : failed("written", name, error);
    if (close(fd) != 0 && !status)
        status = failed("written", name, error);
    return status;
}

/* A file of the folder `from` into the folder `to`. */
static iso_status copy_file(int to, int from, const char *name, iso_error *error) {
    char buffer[COPY_BYTES];
    const int in = openat(from, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (in < 0)
        return failed("read", name, error);
    int out = -1;
    iso_status status = create(to, name, &out, error);
    uint64_t done = 0;
    for (ssize_t got = 1; !status && got != 0;) {
        got = read(in, buffer, sizeof buffer);
        if (got < 0 && errno != EINTR)
            status = failed("read", name, error);
        if (got > 0) {
            status = model_folder_write(out, name, buffer, (size_t)got, done, error);
            done += (uint64_t)got;
        }
    }
    (void)close(in);
    if (!status)
        return model_folder_close(out, name, error);
    if (out >= 0)
        (void)close(out);
    return status;
}

static iso_status copy_list(int to, int parent, const char *from,
                            int (*wanted)(const char *name, model_entry entry), int depth,
                            iso_error *error) {
    iso_status status = ISOBIT_OK;
    DIR *directory = open_list(parent, from);
    if (!directory)
        return failed("read", from, error);
    for (const char *name; !status && (name = next(directory));) {
        const int fd = dirfd(directory);
        struct stat st;
        if (fstatat(fd, name, &st, 0) != 0) /* a link to nothing */
            continue;
        if (S_ISREG(st.st_mode) && wanted(name, depth ? ENTRY_INNER_FILE : ENTRY_FILE)) {
            status = copy_file(to, fd, name, error);
        } else if (S_ISDIR(st.st_mode) && depth == 0 && wanted(name, ENTRY_FOLDER)) {
            int inner = -1;
            if (mkdirat(to, name, 0777) != 0 ||
                (inner = openat(to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
                status = failed("made", name, error);
            if (!status)
                status = copy_list(inner, fd, name, wanted, 1, error);
            if (!status && fsync(inner) != 0)
                status = failed("written", name, error);
            if (inner >= 0)
                (void)close(inner);
        }
    }
    if (!status && errno != 0)
        status = failed("read", from, error);
    (void)closedir(directory);
    return status;
}

iso_status model_folder_copy(const model_folder *folder, const char *from,
                             int (*wanted)(const char *name, model_entry entry), iso_error *error) {
    return copy_list(folder->fd, AT_FDCWD, from, wanted, 0, error);
}

/* The folder in which the folder is. */
static int open_parent(const model_folder *folder) {
    char *slash = strrchr(folder->partial, '/');
    const char *parent = !slash ? "." : slash == folder->partial ? "/" : folder->partial;
    if (slash)
        *slash = 0;
    const int fd = open(parent[0] ? parent : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (slash)
        *slash = '/';
    return fd;
}

iso_status model_folder_finish(model_folder *folder, iso_error *error) {
    if (unlinkat(folder->fd, marker, 0) != 0 || fsync(folder->fd) != 0)
        return failed("completed", folder->partial, error);
    if (rename(folder->partial, folder->path) != 0)
        return failed("given its name", folder->partial, error);
    close(folder->fd);
    folder->fd = -1;
    const int parent = open_parent(folder);
    if (parent >= 0) { /* what cannot be opened cannot be brought onto the disk */
        (void)fsync(parent);
        close(parent);
    }
    return ISOBIT_OK;
}

void model_folder_discard(model_folder *folder) {
    if (folder->fd >= 0) {
        if (empty(folder->fd, ".", 0))
            (void)rmdir(folder->partial);
        close(folder->fd);
    }
    folder->fd = -1;
    model_arena_free(&folder->arena);
}
