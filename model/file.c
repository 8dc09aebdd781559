/* SPDX-License-Identifier: MIT
 *
 * Files are read with pread into memory that we own: a file that shrinks under us is an error, not
 * a signal. They are mapped only for who asks for it. Only regular files are opened (a FIFO would
 * block), and descriptors are not inherited.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* madvise */
#endif
#define _FILE_OFFSET_BITS 64
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

iso_status model_file_open(model_file *file, const char *directory, const char *name,
                           iso_error *error) {
    model_arena arena = {0};
    model_quoted in;
    size_t directory_bytes = strlen(directory), name_bytes = strlen(name);
    char *path = model_alloc(&arena, directory_bytes + name_bytes + 2, 1);
    if (!path)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    memcpy(path, directory, directory_bytes);
    path[directory_bytes] = '/';
    memcpy(path + directory_bytes + 1, name, name_bytes + 1);
    int fd;
    do
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    while (fd < 0 && errno == EINTR);
    int code = errno;
    model_arena_free(&arena);
    model_quote(&in, directory, directory_bytes);
    if (fd < 0 && (code == ENOENT || code == ENOTDIR))
        return model_fail(error, ISOBIT_E_MISSING, "there is no file %s in %s", name, in.text);
    if (fd < 0)
        return model_fail(error, ISOBIT_E_IO, "%s in %s cannot be opened (errno %d)", name, in.text,
                          code);
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < 0) {
        close(fd);
        return model_fail(error, ISOBIT_E_IO, "%s in %s is not a regular file", name, in.text);
    }
    *file = (model_file){fd, (uint64_t)st.st_size, name};
    return ISOBIT_OK;
}

iso_status model_file_read(const model_file *file, void *to, uint64_t offset, size_t bytes,
                           iso_error *error) {
    char *at = to;
    while (bytes) {
        size_t piece = bytes < ((size_t)1 << 30) ? bytes : (size_t)1 << 30;
        ssize_t got = pread(file->fd, at, piece, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return model_fail(error, ISOBIT_E_IO, "%s: reading %zu bytes at %llu failed (errno %d)",
                              file->name, bytes, (unsigned long long)offset, errno);
        if (got == 0)
            return model_fail(error, ISOBIT_E_TRUNCATED,
                              "%s: the file ends at byte %llu, where %zu more are expected",
                              file->name, (unsigned long long)offset, bytes);
        at += got;
        offset += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return ISOBIT_OK;
}

iso_status model_file_unchanged(const model_file *file, iso_error *error) {
    struct stat st;
    if (fstat(file->fd, &st) != 0 || st.st_size < 0 || (uint64_t)st.st_size != file->bytes)
        return model_fail(error, ISOBIT_E_IO, "%s: the file changed while it was read", file->name);
    return ISOBIT_OK;
}

#ifdef MADV_POPULATE_READ
#define PIECE ((size_t)16 << 20)

static void populate(void *arg, size_t i) {
    const model_map *map = arg;
    const size_t from = i * PIECE, left = map->bytes - from;
    (void)madvise((char *)map->at + from, left < PIECE ? left : PIECE, MADV_POPULATE_READ);
}
#endif

void model_file_map(model_map *map, const model_file *file, const iso_executor *executor) {
    *map = (model_map){NULL, 0};
    if (file->bytes == 0 || file->bytes > PTRDIFF_MAX)
        return;
    void *at = mmap(NULL, (size_t)file->bytes, PROT_READ, MAP_PRIVATE, file->fd, 0);
    if (at == MAP_FAILED)
        return;
    *map = (model_map){at, (size_t)file->bytes};
    /* All pages at once, where the kernel can; else one fault after the other. */
#ifdef MADV_POPULATE_READ
    const size_t pieces = (map->bytes - 1) / PIECE + 1;
    if (executor && executor->parallel_for && pieces > 1)
        executor->parallel_for(executor->user, pieces, populate, map);
    else
        for (size_t i = 0; i < pieces; i++)
            populate(map, i);
#else
    (void)executor;
#endif
}

void model_file_unmap(model_map *map) {
    if (map->at)
        (void)munmap(map->at, map->bytes);
    *map = (model_map){NULL, 0};
}

void model_file_close(model_file *file) {
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

iso_status model_file_text(char **text, size_t *bytes, model_arena *arena, const char *directory,
                           const char *name, size_t limit, iso_error *error) {
    model_file file;
    iso_status status = model_file_open(&file, directory, name, error);
    if (status)
        return status;
    if (file.bytes > limit) {
        status = model_fail(error, ISOBIT_E_LIMIT, "%s has %llu bytes; the limit is %zu", name,
                            (unsigned long long)file.bytes, limit);
    } else if (!(*text = model_alloc(arena, (size_t)file.bytes + 1, 1))) {
        status = model_fail(error, ISOBIT_E_NOMEM, "out of memory for %s", name);
    } else {
        *bytes = (size_t)file.bytes;
        (*text)[*bytes] = 0;
        status = model_file_read(&file, *text, 0, *bytes, error);
        if (!status)
            status = model_file_unchanged(&file, error);
    }
    model_file_close(&file);
    return status;
}

size_t model_utf8(const char *text, size_t bytes, uint32_t *code) {
    const unsigned char *s = (const unsigned char *)text;
    if (bytes == 0)
        return 0;
    if (s[0] < 0x80) {
        *code = s[0];
        return 1;
    }
    size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || bytes < n)
        return 0;
    uint32_t c = s[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3fu);
    }
    /* Overlong forms, surrogates, and beyond the last code point. */
    if ((n == 3 && c < 0x800) || (n == 4 && c < 0x10000) || (c >= 0xd800 && c < 0xe000) ||
        c > 0x10ffff)
        return 0;
    *code = c;
    return n;
}
