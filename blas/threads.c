/* SPDX-License-Identifier: MIT
 *
 * One pool for the process, made at the first large call, where the program has no OpenMP; and how
 * many threads there are.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT, secure_getenv */
#endif
#include "core.h"
#include "openmp.h"

#include <isobit/cblas.h>

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the making of a pool; never waited
                                                            for by a call */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic(iso_pool *) pool;
static atomic_int asked;                /* by openblas_set_num_threads; 0: the default */
static int from_environment, otherwise; /* how many of ISOBIT_NUM_THREADS, and without that */

/* ----------------------------------------------------------------------- the default number */

/* A positive number, else 0. Of a list, as OMP_NUM_THREADS may be, the first. */
static int read_count(const char *name) {
    const char *text = secure_getenv(name);
    char *end = NULL;
    const long count = text ? strtol(text, &end, 10) : 0;
    return end && end != text && (*end == '\0' || *end == ',') && count > 0 && count < INT_MAX
               ? (int)count
               : 0;
}

/* The child has no workers; a pool that was inherited is left as it is. */
static void in_child(void) {
    atomic_store(&pool, NULL);
    pthread_mutex_init(&lock, NULL);
    iso_blas_openmp_in_child();
}

/* Before any fork: threads of OpenMP, too, would not be there, and a region would wait for them. */
static __attribute__((constructor)) void at_fork(void) { pthread_atfork(NULL, NULL, in_child); }

static void begin(void) {
    const char *wanted = secure_getenv("ISOBIT_NUM_THREADS");
    from_environment = read_count("ISOBIT_NUM_THREADS");
    if (wanted && *wanted && !from_environment)
        fprintf(stderr, "isobit: ISOBIT_NUM_THREADS=%s is no number of threads\n", wanted);
    otherwise = read_count("OMP_NUM_THREADS");
    if (!otherwise) {
        const size_t usable = iso_usable_threads();
        otherwise = usable < INT_MAX ? (int)usable : INT_MAX;
    }
}

/* ------------------------------------------------------------------------------- a context */

static int default_threads(void) {
    if (from_environment)
        return from_environment;
    const struct openmp *runtime = iso_blas_find_openmp();
    const int most = runtime ? runtime->max_threads() : 0;
    return most > 0 && most < otherwise ? most : otherwise;
}

static int wanted_threads(void) {
    pthread_once(&once, begin);
    const int explicit = atomic_load_explicit(&asked, memory_order_relaxed);
    return explicit ? explicit : default_threads();
}

/* A pool of so many threads or more, or the one that there is, or NULL. One that has become too
 * small is left to those who use it; its threads sleep. */
static iso_pool *pool_of(int threads) {
    iso_pool *there = atomic_load_explicit(&pool, memory_order_acquire);
    if (there && iso_pool_executor(there)->max_threads >= (size_t)threads)
        return there;
    if (pthread_mutex_trylock(&lock) != 0)
        return there;
    static int largest; /* that was asked for: the system may have had fewer to give */
    iso_pool *made = NULL;
    there = atomic_load(&pool);
    if ((!there || threads > largest) && iso_pool_create(&made, (size_t)threads) == ISOBIT_OK) {
        largest = threads;
        atomic_store_explicit(&pool, made, memory_order_release);
        there = made;
    }
    pthread_mutex_unlock(&lock);
    return there;
}

const iso_context *iso_blas_context(struct call *call, double work) {
    if (work < BLAS_SMALL_WORK)
        return NULL;
    const int threads = wanted_threads();
    if (threads <= 1)
        return NULL;
    const struct openmp *runtime = iso_blas_find_openmp();
    if (runtime && runtime->in_parallel())
        return NULL;
    if (runtime && runtime->max_threads() == threads && iso_blas_openmp_has_threads(runtime)) {
        call->executor =
            (iso_executor){iso_blas_openmp_for, (void *)(uintptr_t)runtime, (size_t)threads};
    } else {
        const iso_executor *executor = iso_pool_executor(pool_of(threads));
        if (!executor || executor->max_threads <= 1)
            return NULL;
        call->executor = *executor;
        if (call->executor.max_threads > (size_t)threads)
            call->executor.max_threads = (size_t)threads;
    }
    call->context = (iso_context){.size = sizeof call->context, .executor = &call->executor};
    return &call->context;
}

int iso_blas_again(iso_status status) {
    if (status != ISOBIT_E_ISA || iso_isa_active())
        return 0;
    const char *wanted = getenv("ISOBIT_ISA");
    for (size_t i = 0; i < iso_isa_count(); i++) {
        const iso_isa *isa = iso_isa_get(i);
        if (iso_isa_missing(isa))
            continue;
        fprintf(stderr, "isobit: ISOBIT_ISA=%s cannot run here (%s can); going on with %s\n",
                wanted ? wanted : "", iso_isa_names(), iso_isa_name(isa));
        return iso_set_isa(iso_isa_name(isa)) == ISOBIT_OK;
    }
    return 0;
}

/* ------------------------------------------------------------------------ names of OpenBLAS */

/* That of a library after this one. */
static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

void openblas_set_num_threads(int threads) {
    void (*beneath)(int);
    void *found = next("openblas_set_num_threads");
    atomic_store(&asked, threads < 1 ? 0 : threads > 4096 ? 4096 : threads);
    memcpy(&beneath, &found, sizeof beneath);
    if (beneath)
        beneath(threads);
}

int openblas_get_num_threads(void) { return wanted_threads(); }

int openblas_get_parallel(void) { return 1; }

/* OpenBLAS has no const here; nobody writes to it. */
char *openblas_get_corename(void) {
    const iso_isa *isa = iso_isa_active();
    return (char *)(isa ? iso_isa_name(isa) : "none");
}

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
char *openblas_get_config(void) {
    static char text[] =
        "isobit " TEXT(ISOBIT_VERSION_MAJOR) "." TEXT(ISOBIT_VERSION_MINOR) "." TEXT(
            ISOBIT_VERSION_PATCH) ", numerics " TEXT(ISOBIT_NUMERICS_VERSION) ", single precision";
    return text;
}
