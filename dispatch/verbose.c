/* SPDX-License-Identifier: MIT
 *
 * ISOBIT_VERBOSE: one line of CSV for each call of an operation. The line is put together on the
 * stack and leaves by one write(), so that those of several threads and processes do not mix; no
 * memory is allocated, no lock is taken, errno stays. The environment is read once, at the first
 * call. snprintf is for integers and text only: the locale may have a comma in its numbers.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include "verbose.h"
#include "select.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

atomic_int iso_verbose_state = -1;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_int output = STDERR_FILENO;
static struct stat file; /* what ISOBIT_VERBOSE_FILE names, once it is open */

/* ------------------------------------------------------------------------------------- lines */

#define FIELD 500 /* characters: longer ones are cut */
#define LINE 4000 /* more than all fields together, and what pipes take at once */

struct line {
    size_t used;
    char text[LINE + 1]; /* and the end of the line */
};

static void put(struct line *l, char c) {
    if (l->used < LINE)
        l->text[l->used++] = c;
}

static void put_text(struct line *l, const char *s) {
    while (*s)
        put(l, *s++);
}

/* The next field: quoted as in RFC 4180 where it holds a comma or a quote. A line stays a line. */
static void put_field(struct line *l, const char *s) {
    const int quoted = s[strcspn(s, ",\"")] != '\0';
    put(l, ',');
    if (quoted)
        put(l, '"');
    for (const size_t end = l->used + FIELD; *s && l->used < end; s++) {
        if (*s == '"')
            put(l, '"');
        put(l, (unsigned char)*s < ' ' || *s == 0x7f ? '?' : *s);
    }
    if (quoted)
        put(l, '"');
}

static void begin_line(struct line *l, const char *kind) {
    l->used = 0;
    put_text(l, "iso_verbose,1");
    put_field(l, kind);
}

static void write_all(int to, const char *text, size_t bytes) {
    while (bytes > 0) {
        const ssize_t n = write(to, text, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* nobody to tell */
        text += n, bytes -= (size_t)n;
    }
}

/* Programs that close all files, as those do that go into the background, may open others with the
 * number of ours: those must not get our lines. */
static int still_ours(int to) {
    struct stat now;
    return fstat(to, &now) == 0 && now.st_dev == file.st_dev && now.st_ino == file.st_ino;
}

static void end_line(struct line *l) {
    int to = atomic_load_explicit(&output, memory_order_acquire);
    if (to != STDERR_FILENO && !still_ours(to)) {
        if (atomic_exchange_explicit(&output, STDERR_FILENO, memory_order_relaxed) == to) {
            struct line notice;
            begin_line(&notice, "error");
            put_field(&notice, "the program closed the file of ISOBIT_VERBOSE_FILE");
            end_line(&notice);
        }
        to = STDERR_FILENO;
    }
    l->text[l->used++] = '\n';
    write_all(to, l->text, l->used);
}

/* --------------------------------------------------------------------------------- beginning */

/* Opens what ISOBIT_VERBOSE_FILE names. */
static void open_file(void) {
    const char *path = secure_getenv("ISOBIT_VERBOSE_FILE");
    if (!path || !*path)
        return;
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
    if (fd >= 0 && fstat(fd, &file) == 0) {
        atomic_store_explicit(&output, fd, memory_order_release);
        return;
    }
    struct line l;
    begin_line(&l, "error");
    put_field(&l, "cannot open the file of ISOBIT_VERBOSE_FILE; the lines go to stderr");
    put_field(&l, path);
    end_line(&l);
}

static void say_who(void) {
    struct line l;
    begin_line(&l, "info");
    put_text(&l, ",isobit ");
    put_text(&l, iso_version());
    char numerics[48];
    const char *in_force = iso_numerics(NULL);
    snprintf(numerics, sizeof numerics, "numerics %s", in_force ? in_force : "not known");
    put_field(&l, numerics);
    put_field(&l, iso_machine()->cpu.name);
    put(&l, ',');
    for (const char *s = iso_isa_names(); *s; s++)
        if (*s != ',') /* "avx512 avx2 scalar" is one field */
            put(&l, *s);
    end_line(&l);
}

static void begin_once(void) {
    const char *value = secure_getenv("ISOBIT_VERBOSE");
    int level = 0;
    if (value && (value[0] == '1' || value[0] == '2') && value[1] == '\0') {
        level = value[0] - '0';
        open_file();
        say_who();
    } else if (value && *value && strcmp(value, "0") != 0) {
        struct line l;
        begin_line(&l, "error");
        put_field(&l, "ISOBIT_VERBOSE is none of 0 1 2 and counts as 0");
        put_field(&l, value);
        end_line(&l);
    }
    atomic_store_explicit(&iso_verbose_state, level, memory_order_release);
}

int iso_verbose(void) {
    const int state = atomic_load_explicit(&iso_verbose_state, memory_order_acquire);
    if (state >= 0)
        return state;
    const int error = errno;
    pthread_once(&once, begin_once);
    errno = error;
    return atomic_load_explicit(&iso_verbose_state, memory_order_acquire);
}

uint64_t iso_verbose_clock(void) {
    struct timespec now;
    if (!iso_verbose() || clock_gettime(CLOCK_MONOTONIC, &now) != 0)
        return 0;
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ------------------------------------------------------------------------------------- calls */

/* The instruction set and the threads of a call, if its context is one that calls accept. */
static void put_context(struct line *l, const iso_context *context, const char *shape) {
    const struct iso_kernels *kernels;
    char threads[32];
    if (iso_context_kernels(&kernels, context) != ISOBIT_OK) {
        put_field(l, "-");
        put_field(l, shape);
        put_field(l, "thr-");
        return;
    }
    put_field(l, iso_isa_name(context && context->isa ? context->isa : iso_isa_active()));
    put_field(l, shape);
    snprintf(threads, sizeof threads, "thr%zu", iso_context_threads(context));
    put_field(l, threads);
}

static void say(const char *operation, const iso_context *context, const char *shape,
                const char *reason, iso_status status, uint64_t nanoseconds) {
    struct line l;
    begin_line(&l, "exec");
    put_field(&l, operation ? operation : "-");
    put_context(&l, context, shape ? shape : "-");
    if (status == ISOBIT_OK) {
        char time[48];
        snprintf(time, sizeof time, "%llu.%06llums", (unsigned long long)(nanoseconds / 1000000),
                 (unsigned long long)(nanoseconds % 1000000));
        put_field(&l, time);
    } else {
        put_field(&l, "error");
        put_field(&l, iso_strerror(status));
    }
    if (iso_verbose() > 1)
        put_field(&l, status != ISOBIT_OK ? "refused" : reason ? reason : "-");
    end_line(&l);
}

void iso_verbose_call(const char *operation, const iso_context *context, const char *shape,
                      const char *reason, iso_status status, double ms) {
    if (!iso_verbose())
        return;
    const int error = errno;
    const double most = 1e12; /* 30 years; NaN and less than nothing count as 0 */
    say(operation, context, shape, reason, status,
        ms > 0 ? (uint64_t)((ms < most ? ms : most) * 1e6) : 0);
    errno = error;
}

void iso_verbose_end(uint64_t begin, uint64_t end, const char *operation,
                     const iso_context *context, iso_status status, const char *reason,
                     const char *shape, ...) {
    const int error = errno;
    char text[400];
    va_list arguments;
    va_start(arguments, shape);
    vsnprintf(text, sizeof text, shape, arguments);
    va_end(arguments);
    say(operation, context, text, reason, status, end > begin ? end - begin : 0);
    errno = error;
}

const char *iso_verbose_act(int act) {
    static const char *const names[] = {
        "",
#define ACTIVATION(NAME, name, ...) ":" #name,
#include "activations.def"
#undef ACTIVATION
    };
    return act >= 0 && (size_t)act < sizeof names / sizeof *names ? names[act] : ":act?";
}
