/* SPDX-License-Identifier: MIT
 *
 * A file that appears at once or not at all: it is written under another name beside it, which
 * takes its place when it is complete. What is no regular file (a pipe, a terminal) has no such
 * place and is written as it is.
 */
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * A program that is told to stop (Ctrl-C) removes what is not complete. There is one such file at a
 * time; a handler can know of it from here only.
 */
static const char *volatile incomplete;

static void remove_incomplete(int number) {
    const char *path = incomplete;
    if (path != NULL)
        unlink(path);
    signal(number, SIG_DFL);
    raise(number);
}

static void watch_signals(const char *path) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    const struct sigaction action = {.sa_handler = remove_incomplete};
    struct sigaction old;
    incomplete = path;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL) /* nohup stays */
            sigaction(numbers[i], &action, NULL);
}

static void target_free(struct target *t) {
    incomplete = NULL;
    free(t->path);
    free(t->temporary);
    *t = (struct target){0};
}

/* A file beside t->path that will take its place; `old` is what stands there, or NULL. */
static FILE *open_temporary(struct target *t, const struct stat *old) {
    /* A file that must not be written stays; its directory alone would allow to replace it. */
    if (old != NULL && access(t->path, W_OK) != 0)
        return NULL;
    if (asprintf(&t->temporary, "%s.XXXXXX", t->path) < 0) {
        t->temporary = NULL;
        return NULL;
    }
    /* The caller frees both names; the analyzer loses sight of them here. */
    int fd = mkstemp(t->temporary); /* NOLINT(clang-analyzer-unix.Malloc) */
    if (fd < 0)
        return NULL;
    watch_signals(t->temporary);
    const mode_t mask = umask(0);
    umask(mask);
    FILE *file = NULL;
    if (fchmod(fd, old != NULL ? old->st_mode & 07777 : 0666 & ~mask) == 0)
        file = fdopen(fd, "w");
    if (file == NULL) {
        int code = errno;
        close(fd);
        unlink(t->temporary);
        errno = code;
    }
    return file;
}

bool target_open(struct target *t, const char *path) {
    struct stat st;
    const bool exists = stat(path, &st) == 0;
    *t = (struct target){0};
    if (exists && !S_ISREG(st.st_mode)) {
        t->file = fopen(path, "w");
        return t->file != NULL;
    }
    t->path = exists ? realpath(path, NULL) : strdup(path);
    if (t->path != NULL)
        t->file = open_temporary(t, exists ? &st : NULL);
    if (t->file == NULL) {
        int code = errno;
        target_free(t);
        errno = code;
        return false;
    }
    return true;
}

void target_discard(struct target *t) {
    if (t->file != NULL)
        fclose(t->file);
    if (t->temporary != NULL)
        unlink(t->temporary);
    target_free(t);
}

bool target_close(struct target *t) {
    errno = 0;
    bool good = ferror(t->file) == 0 && fflush(t->file) == 0 &&
                (t->temporary == NULL || fsync(fileno(t->file)) == 0);
    int code = errno;
    if (fclose(t->file) != 0 && good) {
        good = false;
        code = errno;
    }
    t->file = NULL;
    if (good && t->temporary != NULL && rename(t->temporary, t->path) != 0) {
        good = false;
        code = errno;
    }
    if (good)
        target_free(t);
    else
        target_discard(t);
    errno = code;
    return good;
}
