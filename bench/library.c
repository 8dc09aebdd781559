/* SPDX-License-Identifier: MIT
 *
 * See library.h.
 */
#include "library.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

const struct bench_library bench_linked = {
#define MEMBER(name) .name = iso_##name,
    BENCH_FUNCTIONS(MEMBER)
#undef MEMBER
};

const char *bench_operation_name(uint64_t set) {
#define NAME(name)                                                                                 \
    if (set & BENCH_BIT(name))                                                                     \
        return "iso_" #name;
    BENCH_OPERATIONS(NAME)
#undef NAME
    return NULL;
}

/* `name` is what messages call the file. */
static void *load(struct bench_library *library, const char *file, const char *name, char *why,
                  size_t bytes) {
    void *handle = dlopen(file, RTLD_LOCAL | RTLD_NOW);
    if (!handle) {
        snprintf(why, bytes, "cannot load '%s': %s", name, dlerror());
        return NULL;
    }
    const char *missing = NULL;
    library->lacks = 0;
#define FIND(member, or_else)                                                                      \
    symbol = dlsym(handle, "iso_" #member);                                                        \
    memcpy(&library->member, &symbol, sizeof symbol);                                              \
    if (!symbol)                                                                                   \
        or_else;
#define FIND_BASIC(member) FIND(member, missing = missing ? missing : "iso_" #member)
#define FIND_OPERATION(member) FIND(member, library->lacks |= BENCH_BIT(member))
    void *symbol;
    BENCH_BASIC_FUNCTIONS(FIND_BASIC)
    BENCH_OPERATIONS(FIND_OPERATION)
#undef FIND_BASIC
#undef FIND_OPERATION
#undef FIND
    if (!missing)
        return handle;
    snprintf(why, bytes, "'%s' has no function %s", name, missing);
    dlclose(handle);
    return NULL;
}

/* dlopen looks in the system's folders for a name without a slash. */
void *bench_library_load(struct bench_library *library, const char *path, char *why, size_t bytes) {
    char *real = realpath(path, NULL);
    if (!real) {
        snprintf(why, bytes, "cannot open '%s': %s", path, strerror(errno));
        return NULL;
    }
    void *handle = load(library, real, path, why, bytes);
    free(real);
    return handle;
}

static int copy(int to, int from) {
    ssize_t n;
    do
        n = sendfile(to, from, NULL, 1 << 20);
    while (n > 0);
    return n == 0;
}

/* The name of the copy goes as soon as it is mapped: nothing is left behind. */
void *bench_library_load_copy(struct bench_library *library, const char *path, char *why,
                              size_t bytes) {
    const char *folder = getenv("TMPDIR");
    char file[4096];
    int n = snprintf(file, sizeof file, "%s/isobit_ab.XXXXXX", folder && *folder ? folder : "/tmp");
    const int from = open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0) {
        snprintf(why, bytes, "cannot open '%s': %s", path, strerror(errno));
        return NULL;
    }
    const int to = n < (int)sizeof file ? mkostemp(file, O_CLOEXEC) : -1;
    void *handle = NULL;
    if (to < 0 || !copy(to, from))
        snprintf(why, bytes, "cannot copy '%s' to '%s': %s", path, file, strerror(errno));
    else
        handle = load(library, file, path, why, bytes);
    if (to >= 0) {
        unlink(file);
        close(to);
    }
    close(from);
    return handle;
}
