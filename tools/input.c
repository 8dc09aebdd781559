/* SPDX-License-Identifier: MIT
 *
 * Lines, from arguments, a file or standard input, through one buffer. read(2) rather than stdio,
 * because a program in a pipe must be able to ask whether a whole line is there already.
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 16, MAX_LINE_BYTES = 1 << 24 };

static bool reserve(struct input *input, size_t bytes) {
    if (input->capacity - input->end >= bytes)
        return true;
    if (input->begin > 0) {
        memmove(input->buffer, input->buffer + input->begin, input->end - input->begin);
        input->end -= input->begin;
        input->begin = 0;
    }
    if (input->capacity - input->end >= bytes)
        return true;
    size_t capacity = 2 * input->capacity + bytes;
    char *buffer = realloc(input->buffer, capacity);
    if (buffer == NULL)
        return false;
    input->buffer = buffer;
    input->capacity = capacity;
    return true;
}

static int from_arguments(struct input *input, const struct options *options) {
    input->fd = -1;
    input->at_end = true;
    for (int i = 0; i < options->count; i++) {
        size_t bytes = strlen(options->arguments[i]);
        if (!reserve(input, bytes + 1))
            return fail("out of memory for the arguments");
        memcpy(input->buffer + input->end, options->arguments[i], bytes);
        input->buffer[input->end + bytes] = '\n';
        input->end += bytes + 1;
    }
    input->total = (double)input->end;
    return 0;
}

static void learn_size(struct input *input) {
    struct stat status;
    if (fstat(input->fd, &status) == 0 && S_ISREG(status.st_mode))
        input->total = (double)status.st_size;
}

int input_open(struct input *input, const struct options *options) {
    *input = (struct input){.fd = STDIN_FILENO};
    if (options->count > 0)
        return from_arguments(input, options);
    if (options->input != NULL)
        return input_open_file(input, options->input);
    if (isatty(STDIN_FILENO))
        fputs("isobit: reading lines from the terminal; Ctrl-D ends\n", stderr);
    learn_size(input);
    return 0;
}

int input_open_file(struct input *input, const char *path) {
    *input = (struct input){.fd = open(path, O_RDONLY | O_CLOEXEC)};
    if (input->fd < 0)
        return fail("cannot open %s: %s", path, strerror(errno));
    learn_size(input);
    return 0;
}

void input_close(struct input *input) {
    free(input->buffer);
    if (input->fd > STDIN_FILENO)
        close(input->fd);
    *input = (struct input){.fd = -1};
}

static const char *find_newline(const struct input *input, size_t from) {
    if (from == input->end)
        return NULL;
    return memchr(input->buffer + from, '\n', input->end - from);
}

bool input_ready(const struct input *input) {
    return find_newline(input, input->begin) != NULL ||
           (input->at_end && input->begin < input->end);
}

/* Reads a piece; false on errors. */
static bool read_more(struct input *input) {
    if (input->end - input->begin > MAX_LINE_BYTES) {
        fail("line %llu: longer than %d bytes", input->lines + 1, MAX_LINE_BYTES);
        return false;
    }
    if (!reserve(input, READ_BYTES)) {
        fail("line %llu: out of memory", input->lines + 1);
        return false;
    }
    ssize_t got;
    do
        got = read(input->fd, input->buffer + input->end, READ_BYTES);
    while (got < 0 && errno == EINTR);
    if (got < 0) {
        fail("cannot read the input: %s", strerror(errno));
        return false;
    }
    input->end += (size_t)got;
    input->at_end = got == 0;
    return true;
}

int input_next(struct input *input, struct line *line) {
    size_t looked = input->begin;
    const char *newline;
    while ((newline = find_newline(input, looked)) == NULL && !input->at_end) {
        size_t seen = input->end - input->begin;
        if (!read_more(input))
            return -1;
        looked = input->begin + seen;
    }
    if (newline == NULL && input->begin == input->end)
        return 0;
    size_t stop = newline != NULL ? (size_t)(newline - input->buffer) : input->end;
    size_t next = newline != NULL ? stop + 1 : stop;
    line->text = input->buffer + input->begin;
    line->bytes = stop - input->begin;
    line->number = ++input->lines;
    if (line->bytes > 0 && line->text[line->bytes - 1] == '\r')
        line->bytes--;
    input->done += (double)(next - input->begin);
    input->begin = next;
    return 1;
}
