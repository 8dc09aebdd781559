/* SPDX-License-Identifier: MIT
 *
 * The child processes in which a library is loaded and called. They leave results in shared memory;
 * a child that dies, hangs or is ended by the library leaves a case that was begun and not done:
 * that is a finding, and the next child goes on behind it.
 */
#include "blas.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../common.h"

static void *shared(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED)
        iso_check_die("shared memory");
    return p;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ------------------------------------------------------------------------------------ a child */

/* Cases one after the other, from `next`. */
struct batch {
    const struct blas_run *run;
    const struct blas_variant *variant; /* or NULL */
    const struct blas_case *cases;
    struct blas_result *results;
    size_t count, next;
    volatile size_t *progress; /* shared; grows with each step of a child */
    int printed;               /* what the library prints goes to this file */
};

static void quiet(int file) {
    int null = open("/dev/null", O_RDONLY);
    if (null >= 0)
        dup2(null, STDIN_FILENO);
    if (ftruncate(file, 0) == 0)
        lseek(file, 0, SEEK_SET);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
}

static void load(const struct batch *b, struct blas_table *table) {
    static struct blas_library library;
    quiet(b->printed);
    for (unsigned i = 0; b->variant && i < 2; i++)
        if (b->variant->environment[i][0])
            putenv((char *)(uintptr_t)b->variant->environment[i]);
    blas_load(b->run->file, table, &library);
    if (library.wrong[0])
        _exit(96);
}

_Noreturn static void child(const struct batch *b) {
    struct blas_table table;
    load(b, &table);
    if (b->variant && b->variant->threads)
        blas_set_threads(b->variant->threads);
    blas_child_begin(&table);
    for (size_t i = b->next; i < b->count; i++) {
        struct blas_result *r = &b->results[i];
        if (r->state)
            continue;
        ++*b->progress;
        r->state = 1;
        (b->cases[i].family == BLAS_BITS ? blas_check_bits : blas_check_case)(&table, &b->cases[i],
                                                                              r);
        r->state = 2;
    }
    _exit(0);
}

enum ending { ENDED_WELL, ENDED_BADLY, ENDED_LATE };

/* Waits as long as there is progress. */
static enum ending wait_for(pid_t pid, const struct batch *b, int *status) {
    size_t seen = *b->progress;
    double since = now();
    struct timespec pause = {0, 500000};
    while (waitpid(pid, status, WNOHANG) == 0) {
        if (*b->progress != seen)
            seen = *b->progress, since = now();
        if (now() - since > b->run->seconds) {
            kill(pid, SIGKILL);
            waitpid(pid, status, 0);
            return ENDED_LATE;
        }
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 10000000)
            pause.tv_nsec += 500000;
    }
    return WIFEXITED(*status) && WEXITSTATUS(*status) == 0 ? ENDED_WELL : ENDED_BADLY;
}

/* ", it printed: ..." with the first line that the library has printed. */
static void add_printed(char *text, size_t bytes, int file) {
    char space[100], *line = space;
    ssize_t n = pread(file, space, sizeof space - 1, 0);
    size_t used = strlen(text);
    if (n <= 0)
        return;
    space[n] = 0;
    line += strspn(line, "\n");
    for (char *p = line; *p; p++)
        if ((unsigned char)*p < ' ')
            *p = *p == '\n' ? 0 : ' ';
    snprintf(text + used, bytes - used, "; it printed: %s", line);
}

static void describe(char *text, size_t bytes, enum ending ending, int status,
                     const struct batch *b) {
    if (ending == ENDED_LATE)
        snprintf(text, bytes, "did not return within %u s", b->run->seconds);
    else if (WIFSIGNALED(status))
        snprintf(text, bytes, "ended the process by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(text, bytes, "ended the process with exit code %d", WEXITSTATUS(status));
    add_printed(text, bytes, b->printed);
}

static pid_t start(void) {
    fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        iso_check_die("fork");
    if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent))
        _exit(95);
    return pid;
}

/* Leaves out the cases that are like one that did not return: each costs a process, or the time. */
enum { MOST_DEATHS = 3 };
static void give_up(const struct batch *b, size_t at, bool late) {
    const struct blas_case *c = &b->cases[at];
    size_t deaths = 0;
    for (size_t i = 0; i <= at; i++) {
        const struct blas_case *d = &b->cases[i];
        deaths += b->results[i].state == 3 && d->routine == c->routine && d->api == c->api &&
                  d->family == c->family;
    }
    for (size_t i = at + 1; i < b->count && (late || deaths >= MOST_DEATHS); i++) {
        const struct blas_case *d = &b->cases[i];
        if (!b->results[i].state && d->routine == c->routine && d->api == c->api &&
            (late || d->family == c->family))
            b->results[i].state = 4;
    }
}

/* All of them; a result that says `wrong` ends it: the library cannot be loaded in this way. */
static void run_batch(struct batch *b, char *wrong, size_t bytes) {
    b->progress = shared(sizeof *b->progress);
    b->printed = memfd_create("printed", MFD_CLOEXEC);
    if (b->printed < 0)
        iso_check_die("memfd");
    for (wrong[0] = 0; b->next < b->count && !wrong[0];) {
        int status = 0;
        pid_t pid = start();
        if (pid == 0)
            child(b);
        enum ending ending = wait_for(pid, b, &status);
        size_t at = b->next;
        while (at < b->count && b->results[at].state != 1)
            at++;
        if (ending == ENDED_WELL && at == b->count)
            break;
        if (at == b->count) { /* before or between the cases */
            describe(wrong, bytes, ending, status, b);
            break;
        }
        struct blas_result *r = &b->results[at];
        char text[BLAS_TEXT];
        describe(text, sizeof text, ending, status, b);
        if (!r->count || WIFSIGNALED(status) || WEXITSTATUS(status) != 98) /* on_signal told it */
            blas_found(r, BLAS_RETURNS, "%s", text);
        for (unsigned i = 0; i < r->count; i++)
            r->looked |= 1u << r->v[i].property;
        r->looked |= 1u << BLAS_RETURNS;
        r->state = 3;
        give_up(b, at, ending == ENDED_LATE);
        b->next = at + 1;
    }
    close(b->printed);
    munmap((void *)(uintptr_t)b->progress, sizeof *b->progress);
}

/* --------------------------------------------------------------------------------- the parent */

bool blas_probe(struct blas_run *run, char *text, size_t bytes) {
    struct batch b = {.run = run};
    int status = 0;
    run->library = shared(sizeof *run->library);
    b.progress = shared(sizeof *b.progress);
    b.printed = memfd_create("printed", MFD_CLOEXEC);
    if (b.printed < 0)
        iso_check_die("memfd");
    pid_t pid = start();
    if (pid == 0) {
        static struct blas_table table;
        quiet(b.printed);
        blas_load(run->file, &table, run->library);
        _exit(0);
    }
    enum ending ending = wait_for(pid, &b, &status);
    if (ending != ENDED_WELL)
        describe(text, bytes, ending, status, &b);
    close(b.printed);
    munmap((void *)(uintptr_t)b.progress, sizeof *b.progress);
    return ending == ENDED_WELL;
}

/* The library was built without this CPU type, and says so by abort(): that is no finding. */
static bool is_refused(const struct batch *b) {
    struct batch trial = *b;
    int status = 0;
    trial.progress = shared(sizeof *trial.progress);
    trial.printed = memfd_create("printed", MFD_CLOEXEC);
    if (trial.printed < 0)
        iso_check_die("memfd");
    pid_t pid = start();
    if (pid == 0) {
        struct blas_table table;
        load(&trial, &table);
        blas_choose_type();
        _exit(0);
    }
    enum ending ending = wait_for(pid, &trial, &status);
    close(trial.printed);
    munmap((void *)(uintptr_t)trial.progress, sizeof *trial.progress);
    return ending == ENDED_BADLY && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

/* One finding, with the names of all variants that differ. */
static void add_differing(struct blas_result *to, enum blas_property property, const char *name) {
    blas_found(to, property, "other bits than %s with",
               property == BLAS_BITS_CPU ? "by default" : "with 1 thread");
    for (unsigned i = 0; i < to->count; i++) {
        char *text = to->v[i].text;
        size_t used = strlen(text);
        if (to->v[i].property == property)
            snprintf(text + used, sizeof to->v->text - used, "%s %s",
                     text[used - 1] == 'h' ? "" : ",", name);
    }
}

/* What a variant gave beside the base; its findings go to the result of the case, too. */
static void compare(struct blas_result *to, const struct blas_result *base,
                    const struct blas_result *r, const struct blas_variant *v) {
    enum blas_property property = v->environment[1][0] ? BLAS_BITS_CPU : BLAS_BITS_THREADS;
    for (unsigned i = 0; i < r->count; i++)
        blas_found(to, r->v[i].property, "%s: %.180s", v->name, r->v[i].text);
    to->looked |= r->looked;
    if (r->worst > to->worst)
        to->worst = r->worst;
    if (base->state != 2 || r->state != 2)
        return;
    to->looked |= 1u << property;
    if (base->hash != r->hash)
        add_differing(to, property, v->name);
}

static void run_large(struct blas_run *run, int most_threads) {
    static struct blas_variant variants[48];
    size_t count = 0, types = blas_variants(variants, 48, run->library, most_threads);
    struct blas_plan large = {.v = malloc((run->plan.count + 1) * sizeof *large.v)};
    size_t *place = malloc((run->plan.count + 1) * sizeof *place);
    if (!large.v || !place)
        iso_check_die("memory");
    for (size_t i = 0; i < run->plan.count; i++)
        if (run->plan.v[i].family == BLAS_LARGE)
            place[count] = i, large.v[count++] = run->plan.v[i];
    size_t bytes = (types * count + 1) * sizeof(struct blas_result);
    struct blas_result *all = shared(bytes);
    for (size_t t = 0; t < types && count; t++) {
        char wrong[BLAS_TEXT];
        struct batch b = {.run = run,
                          .variant = &variants[t],
                          .cases = large.v,
                          .count = count,
                          .results = all + t * count};
        if (run->library->kind == BLAS_KIND_BLIS && variants[t].environment[1][0] && is_refused(&b))
            continue;
        run_batch(&b, wrong, sizeof wrong);
        for (size_t i = 0; i < count; i++) {
            if (wrong[0] && !b.results[i].state)
                blas_found(&b.results[i], BLAS_RETURNS, "%s", wrong);
            compare(&run->results[place[i]], &all[i], &b.results[i], &variants[t]);
        }
    }
    munmap(all, bytes);
    free(large.v);
    free(place);
}

void blas_run_all(struct blas_run *run, int most_threads) {
    char wrong[BLAS_TEXT];
    run->results = shared((run->plan.count + 1) * sizeof *run->results);
    for (size_t i = 0; i < run->plan.count; i++)
        if (run->plan.v[i].family == BLAS_LARGE)
            run->results[i].state = 4; /* not in this pass */
    struct batch b = {
        .run = run, .cases = run->plan.v, .results = run->results, .count = run->plan.count};
    run_batch(&b, wrong, sizeof wrong);
    for (size_t i = 0; i < run->plan.count; i++)
        if (wrong[0] && !run->results[i].state)
            blas_found(&run->results[i], BLAS_RETURNS, "%s", wrong);
    run_large(run, most_threads);
}
