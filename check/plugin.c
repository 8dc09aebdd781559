/* SPDX-License-Identifier: MIT
 *
 * Loads a plug-in. Its constructors and iso_check_plugin run in a child first: what crashes, exits
 * or hangs there is reported and leaves us alone.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target.h"

enum { PATIENCE = 20, GOOD = 42, BAD };

static bool say(const char *file, const char *what) {
    fprintf(stderr, "isobit: check: %s: %s\n", file, what);
    return false;
}

static bool load(struct iso_check_whole *whole, const char *file) {
    char path[4096], text[300];
    int n = snprintf(path, sizeof path, "%s%s", strchr(file, '/') ? "" : "./", file);
    if (n < 0 || (size_t)n >= sizeof path)
        return say(file, "the name is too long");
    if (access(path, R_OK))
        return say(file, strerror(errno));
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) { /* begins with the path, most of the time */
        const char *why = dlerror();
        size_t length = strlen(path);
        if (!strncmp(why, path, length) && !strncmp(why + length, ": ", 2))
            why += length + 2;
        return say(file, why);
    }
    const struct iso_check_target *(*entry)(void);
    void *symbol = dlsym(library, "iso_check_plugin");
    if (!symbol)
        return say(file,
                   "it has no function iso_check_plugin (isobit/check.h), so it is no plug-in");
    memcpy(&entry, &symbol, sizeof entry);
    return iso_check_whole(whole, entry(), text, sizeof text) || say(file, text);
}

/* In a child, which has complained when it returns BAD. */
static _Noreturn void try_it(struct iso_check_whole *whole, const char *file) {
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    alarm(PATIENCE);
    _exit(load(whole, file) ? GOOD : BAD);
}

int iso_check_plugin_load(struct iso_check_whole *whole, const char *file) {
    char text[120];
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        try_it(whole, file);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (child < 0) {
        say(file, strerror(errno));
    } else if (WIFSIGNALED(status)) {
        if (WTERMSIG(status) == SIGALRM)
            snprintf(text, sizeof text, "it was not loaded within %d seconds", PATIENCE);
        else
            snprintf(text, sizeof text, "it crashes when it is loaded: %s",
                     strsignal(WTERMSIG(status)));
        say(file, text);
    } else if (WEXITSTATUS(status) == GOOD) {
        return load(whole, file) ? 0 : 2;
    } else if (WEXITSTATUS(status) != BAD) {
        snprintf(text, sizeof text, "it exits when it is loaded, with code %d",
                 WEXITSTATUS(status));
        say(file, text);
    }
    return 2;
}
