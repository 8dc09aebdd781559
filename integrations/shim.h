/* SPDX-License-Identifier: MIT
 *
 * What the shims of programs have in common: threads, errors, and counts of calls. A shim is one
 * object; all of this is static in it.
 *
 * Threads: one pool for the process, made at the first call that is large enough for it. As many
 * threads as ISOBIT_NUM_THREADS says, else OMP_NUM_THREADS, else iso_usable_threads(). A shim that
 * is compiled with -fopenmp uses OpenMP's threads instead: a program that has parallel loops of its
 * own keeps those waiting actively, and a second pool would compete with them.
 *
 * ISOBIT_COUNT=1 prints, at exit, how often each function of the shim was called: a function that
 * the compiler put inline in the program is not called at all.
 */
#ifndef ISOBIT_INTEGRATIONS_SHIM_H
#define ISOBIT_INTEGRATIONS_SHIM_H

#include <isobit/ops.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

/* The functions that these programs replace return nothing, so an error ends the program. */
static void shim_die(const char *function, const char *why) {
    fprintf(stderr, "isobit: %s: %s\n", function, why);
    exit(EXIT_FAILURE);
}

static void shim_check(iso_status status, const char *function) {
    if (status != ISOBIT_OK)
        shim_die(function, status == ISOBIT_E_ISA ? "ISOBIT_ISA names no instruction set that runs"
                                                  : iso_strerror(status));
}

/* ---------------------------------------------------------------------------------- threads */

/* A number from the environment, 0 when there is none. OMP_NUM_THREADS may be a list: its first. */
static size_t shim_threads_from(const char *variable, int list) {
    const char *text = getenv(variable);
    if (!text || !*text)
        return 0;
    char *end = NULL;
    const unsigned long n = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || n == 0 || n > 65536 || !(*end == 0 || (list && *end == ',')))
        shim_die(variable, "is not a number of threads");
    return n;
}

static size_t shim_threads(void) {
    size_t threads = shim_threads_from("ISOBIT_NUM_THREADS", 0);
    if (!threads)
        threads = shim_threads_from("OMP_NUM_THREADS", 1);
    return threads ? threads : iso_usable_threads();
}

#ifdef _OPENMP
static void shim_openmp_for(void *user, size_t n, void (*fn)(void *arg, size_t i), void *arg) {
    const iso_executor *self = user;
#pragma omp parallel for schedule(dynamic, 1) num_threads((int)self->max_threads)
    for (size_t i = 0; i < n; i++)
        fn(arg, i);
}
#endif

static iso_context shim_parallel = {.size = sizeof shim_parallel};

static void shim_start(void) {
    const size_t threads = shim_threads();
    if (threads < 2)
        return;
#ifdef _OPENMP
    static iso_executor executor = {.parallel_for = shim_openmp_for};
    executor.user = &executor;
    executor.max_threads = threads;
    shim_parallel.executor = &executor;
#else
    static iso_pool *pool; /* lives as long as the process */
    shim_check(iso_pool_create(&pool, threads), "iso_pool_create");
    shim_parallel.executor = iso_pool_executor(pool);
#endif
}

/* The context for a call of so many multiplications, or elements times some ten. */
static const iso_context *shim_context(size_t work) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (work < (size_t)1 << 14)
        return NULL;
    pthread_once(&once, shim_start);
    return &shim_parallel;
}

/* ----------------------------------------------------------------------------------- counts */

/* A shim defines SHIM_NAME and SHIM_FUNCTIONS(X): X(name) for each function that it replaces. */
#define SHIM_NUMBER(name) shim_number_##name,
enum { SHIM_FUNCTIONS(SHIM_NUMBER) shim_functions };
#define SHIM_TEXT(name) #name,
static const char *const shim_names[] = {SHIM_FUNCTIONS(SHIM_TEXT)};
static atomic_ulong shim_counts[shim_functions];

#define SHIM_CALLED(name)                                                                          \
    atomic_fetch_add_explicit(&shim_counts[shim_number_##name], 1, memory_order_relaxed)

static void shim_report(void) {
    fprintf(stderr, "%s:", SHIM_NAME);
    for (int i = 0; i < shim_functions; i++)
        fprintf(stderr, " %s %lu", shim_names[i], atomic_load(&shim_counts[i]));
    fputc('\n', stderr);
}

__attribute__((constructor)) static void shim_loaded(void) {
    const char *count = getenv("ISOBIT_COUNT");
    if (count && strcmp(count, "1") == 0)
        atexit(shim_report);
}

#endif
