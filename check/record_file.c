/* SPDX-License-Identifier: MIT
 *
 * Recorded runs from and to files: read whole into memory of our own, from regular files only (a
 * pipe would block); written beside the file and then moved to its place.
 */
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool bad(char message[ISO_RECORD_MESSAGE], const char *what, int code) {
    snprintf(message, ISO_RECORD_MESSAGE, "%s%s%s", what, code ? ": " : "",
             code ? strerror(code) : "");
    return false;
}

/* ----------------------------------------------------------------------------------- reading */

/* All of a regular file, at most ISO_RECORD_MOST_BYTES. */
static bool read_whole(int fd, unsigned char **bytes, size_t *size,
                       char message[ISO_RECORD_MESSAGE]) {
    struct stat st;
    if (fstat(fd, &st) != 0)
        return bad(message, "cannot be read", errno);
    if (!S_ISREG(st.st_mode))
        return bad(message, "not a regular file", 0);
    if (st.st_size < 0 || st.st_size > ISO_RECORD_MOST_BYTES)
        return bad(message, "too large for a file of isobit check --record", 0);
    *size = (size_t)st.st_size;
    *bytes = malloc(*size ? *size : 1);
    if (!*bytes)
        return bad(message, "out of memory", 0);
    for (size_t done = 0; done < *size;) {
        ssize_t got = pread(fd, *bytes + done, *size - done, (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return bad(message, got ? "cannot be read" : "it shrank while it was read",
                       got ? errno : 0);
        done += (size_t)got;
    }
    return true;
}

bool iso_record_read(struct iso_record *r, const char *path, char message[ISO_RECORD_MESSAGE]) {
    *r = (struct iso_record){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return bad(message, "cannot be opened", errno);
    unsigned char *bytes = NULL;
    size_t size = 0;
    bool good = read_whole(fd, &bytes, &size, message);
    close(fd);
    good = good && iso_record_unpack(r, bytes, size, message);
    free(bytes);
    return good;
}

/* ----------------------------------------------------------------------------------- writing */

/* 0, or errno. */
static int write_whole(int fd, const unsigned char *bytes, size_t size) {
    while (size) {
        ssize_t done = write(fd, bytes, size);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno;
        bytes += done;
        size -= (size_t)done;
    }
    return 0;
}

/* Closes the descriptor; 0, or the error that came first. */
static int close_with(int fd, int code) { return close(fd) != 0 && !code ? errno : code; }

/* Into a file beside `path`, which then takes its place; `old` is what stands there, or NULL.
 * bytes NULL: only tries, and changes nothing. */
static int replace(const char *path, const struct stat *old, const unsigned char *bytes,
                   size_t size) {
    size_t n = strlen(path) + sizeof ".XXXXXX";
    char *beside = malloc(n);
    if (!beside)
        return ENOMEM;
    snprintf(beside, n, "%s.XXXXXX", path);
    int fd = mkstemp(beside), code = fd < 0 ? errno : 0;
    if (!code) {
        const mode_t mask = umask(0);
        umask(mask);
        if (fchmod(fd, old ? old->st_mode & 07777 : 0666 & ~mask) != 0)
            code = errno;
        if (!code)
            code = write_whole(fd, bytes, size);
        if (!code && fsync(fd) != 0)
            code = errno;
        code = close_with(fd, code);
        if (!code && bytes && rename(beside, path) != 0)
            code = errno;
        if (code || !bytes)
            unlink(beside);
    }
    free(beside);
    return code;
}

static int write_file(const char *path, const unsigned char *bytes, size_t size) {
    struct stat st;
    if (stat(path, &st) != 0)
        return errno == ENOENT ? replace(path, NULL, bytes, size) : errno;
    if (!S_ISREG(st.st_mode)) {
        int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        return fd < 0 ? errno : close_with(fd, write_whole(fd, bytes, size));
    }
    /* A file that must not be written stays; its directory alone would allow to replace it. */
    if (access(path, W_OK) != 0)
        return errno;
    char *real = realpath(path, NULL); /* where a link leads to */
    int code = real ? replace(real, &st, bytes, size) : errno;
    free(real);
    return code;
}

bool iso_record_writable(const char *path, char message[ISO_RECORD_MESSAGE]) {
    int code = write_file(path, NULL, 0);
    return !code || bad(message, "cannot be written", code);
}

bool iso_record_write(const struct iso_record *r, const char *path,
                      char message[ISO_RECORD_MESSAGE]) {
    unsigned char *bytes;
    size_t size;
    if (!iso_record_pack(r, &bytes, &size))
        return bad(message, "out of memory, or too many cases for one file", 0);
    int code = write_file(path, bytes, size);
    free(bytes);
    return !code || bad(message, "cannot be written", code);
}
