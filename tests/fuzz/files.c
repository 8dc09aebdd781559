/* SPDX-License-Identifier: MIT
 *
 * See fuzz.h.
 */
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

_Noreturn void fuzz_broken(const char *file, int line, const char *condition) {
    (void)fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
    abort();
}

void fuzz_check_error(iso_status status, const iso_error *error) {
    FUZZ_CHECK(status != ISOBIT_OK && status != ISOBIT_E_INTERNAL);
    FUZZ_CHECK(error->status == status);
    FUZZ_CHECK(error->message[0] && memchr(error->message, 0, sizeof error->message));
    for (const char *m = error->message; *m; m++)
        FUZZ_CHECK(*m >= ' ' && *m <= '~');
}

int fuzz_equal(const void *a, const void *b, size_t bytes) { return memcmp(a, b, bytes) == 0; }

void *fuzz_copy(const void *data, size_t bytes) {
    void *copy = malloc(bytes ? bytes : 1);
    FUZZ_CHECK(copy);
    if (bytes)
        memcpy(copy, data, bytes);
    return copy;
}

size_t fuzz_split(const uint8_t *data, size_t bytes, const uint8_t **parts, size_t *sizes,
                  size_t most) {
    size_t count = 0;
    for (;;) {
        const uint8_t *end = bytes && count + 1 < most ? memchr(data, FUZZ_SPLIT, bytes) : NULL;
        parts[count] = data;
        sizes[count++] = end ? (size_t)(end - data) : bytes;
        if (!end)
            return count;
        bytes -= (size_t)(end - data) + 1;
        data = end + 1;
    }
}

/* ------------------------------------------------------------------------------------- files */

enum { FILES = 8, FIRST_FD = 1 << 20 };
static struct {
    const char *name;
    const uint8_t *data;
    size_t bytes;
} table[FILES];
static int open_files;
static struct {
    void *at;
    size_t bytes;
} maps[FILES];

void fuzz_no_files(void) {
    FUZZ_CHECK(open_files == 0); /* a descriptor that was not closed */
    for (int i = 0; i < FILES; i++)
        FUZZ_CHECK(!maps[i].at); /* a file that is mapped still */
    memset(table, 0, sizeof table);
}

void fuzz_file(const char *name, const void *data, size_t bytes) {
    int i = 0;
    while (table[i].name && strcmp(table[i].name, name) != 0)
        FUZZ_CHECK(++i < FILES);
    table[i].name = name;
    table[i].data = data;
    table[i].bytes = bytes;
}

static int ours(int fd) { return fd >= FIRST_FD && fd < FIRST_FD + FILES; }

static int open_ours(const char *path) {
    path += sizeof FUZZ_DIRECTORY; /* and the slash */
    for (int i = 0; i < FILES && table[i].name; i++)
        if (table[i].data && strcmp(table[i].name, path) == 0) {
            open_files++;
            return FIRST_FD + i;
        }
    errno = ENOENT;
    return -1;
}

static int stat_ours(int fd, struct stat *st) {
    memset(st, 0, sizeof *st);
    st->st_mode = S_IFREG | 0444;
    st->st_size = (off_t)table[fd - FIRST_FD].bytes;
    return 0;
}

static ssize_t read_ours(int fd, void *to, size_t bytes, off_t offset) {
    const size_t all = table[fd - FIRST_FD].bytes, from = (size_t)offset;
    FUZZ_CHECK(offset >= 0);
    if (from >= all)
        return 0;
    if (bytes > all - from)
        bytes = all - from;
    memcpy(to, table[fd - FIRST_FD].data + from, bytes);
    return (ssize_t)bytes;
}

/* The names that 64-bit file offsets give them, and the plain ones. */
#define WRAP(suffix)                                                                               \
    int __real_open##suffix(const char *path, int flags, ...);                                     \
    int __wrap_open##suffix(const char *path, int flags, ...);                                     \
    int __wrap_open##suffix(const char *path, int flags, ...) {                                    \
        int is_ours = strncmp(path, FUZZ_DIRECTORY "/", sizeof FUZZ_DIRECTORY) == 0;               \
        return is_ours ? open_ours(path) : __real_open##suffix(path, flags);                       \
    }                                                                                              \
    int __real_fstat##suffix(int fd, struct stat *st);                                             \
    int __wrap_fstat##suffix(int fd, struct stat *st);                                             \
    int __wrap_fstat##suffix(int fd, struct stat *st) {                                            \
        return ours(fd) ? stat_ours(fd, st) : __real_fstat##suffix(fd, st);                        \
    }                                                                                              \
    ssize_t __real_pread##suffix(int fd, void *to, size_t bytes, off_t offset);                    \
    ssize_t __wrap_pread##suffix(int fd, void *to, size_t bytes, off_t offset);                    \
    ssize_t __wrap_pread##suffix(int fd, void *to, size_t bytes, off_t offset) {                   \
        return ours(fd) ? read_ours(fd, to, bytes, offset)                                         \
                        : __real_pread##suffix(fd, to, bytes, offset);                             \
    }
WRAP()
WRAP(64)

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd) {
    if (!ours(fd))
        return __real_close(fd);
    open_files--;
    return 0;
}

/* None of them is a directory, and none is in one that can be read. */
DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
DIR *__wrap_opendir(const char *path) {
    if (strncmp(path, FUZZ_DIRECTORY, sizeof FUZZ_DIRECTORY - 1) != 0)
        return __real_opendir(path);
    errno = ENOENT;
    return NULL;
}

/* ------------------------------------------------------------------------------ mapped files */

/* Of exactly the file's size, so that a sanitizer sees what is read behind it. */
static void *map_ours(int fd, size_t bytes, off_t offset) {
    const size_t all = table[fd - FIRST_FD].bytes, alignment = 4096;
    int i = 0;
    FUZZ_CHECK(offset == 0 && bytes && bytes <= all);
    while (maps[i].at)
        FUZZ_CHECK(++i < FILES);
    FUZZ_CHECK(!posix_memalign(&maps[i].at, alignment, bytes));
    memcpy(maps[i].at, table[fd - FIRST_FD].data, bytes);
    maps[i].bytes = bytes;
    return maps[i].at;
}

static int find_map(const void *at) {
    int i = 0;
    while (i < FILES && (!at || maps[i].at != at))
        i++;
    return i;
}

#define WRAP_MAP(suffix)                                                                           \
    void *__real_mmap##suffix(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);  \
    void *__wrap_mmap##suffix(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);  \
    void *__wrap_mmap##suffix(void *at, size_t bytes, int prot, int flags, int fd, off_t offset) { \
        return ours(fd) ? map_ours(fd, bytes, offset)                                              \
                        : __real_mmap##suffix(at, bytes, prot, flags, fd, offset);                 \
    }
WRAP_MAP()
WRAP_MAP(64)

int __real_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes) {
    const int i = find_map(at);
    if (i == FILES)
        return __real_munmap(at, bytes);
    FUZZ_CHECK(bytes == maps[i].bytes);
    free(maps[i].at);
    maps[i].at = NULL;
    return 0;
}

int __real_madvise(void *at, size_t bytes, int advice);
int __wrap_madvise(void *at, size_t bytes, int advice);
int __wrap_madvise(void *at, size_t bytes, int advice) {
    return find_map(at) < FILES ? 0 : __real_madvise(at, bytes, advice);
}
