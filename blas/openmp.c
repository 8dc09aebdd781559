/* SPDX-License-Identifier: MIT
 *
 * The OpenMP runtime of the program. Its threads wait for the next region in a loop, on the CPUs
 * that a pool of ours would compute on: so large calls run as a region of this runtime.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dl_iterate_phdr */
#endif
#include "openmp.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static atomic_flag searching = ATOMIC_FLAG_INIT, region = ATOMIC_FLAG_INIT; /* one thread each */
static _Atomic(const struct openmp *) openmp;
static _Atomic(unsigned long long) libraries; /* how many had been loaded when we last looked */
static atomic_int forked;

/* -------------------------------------------------------------------------------- its functions */

struct found {
    char name[512];
    unsigned long long libraries;
};

/* libgomp.so.1, or libgomp-a34b3233.so.1.0.0, as wheels have it. */
static int is_runtime(const char *base) {
    static const char *const names[] = {"libgomp", "libomp", "libiomp5"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t length = strlen(names[i]);
        if (strncmp(base, names[i], length) == 0 && (base[length] == '.' || base[length] == '-'))
            return 1;
    }
    return 0;
}

static int look(struct dl_phdr_info *info, size_t size, void *arg) {
    struct found *found = arg;
    (void)size;
    found->libraries = info->dlpi_adds;
    if (info->dlpi_adds == atomic_load_explicit(&libraries, memory_order_relaxed))
        return 1; /* nothing new */
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    const char *base = slash ? slash + 1 : info->dlpi_name;
    if (!base || !is_runtime(base) || strlen(info->dlpi_name) >= sizeof found->name)
        return 0;
    memcpy(found->name, info->dlpi_name, strlen(info->dlpi_name) + 1);
    return 1;
}

/* A walk through the list of libraries, and nothing else unless there is a new one. GOMP_parallel
 * is what gcc calls for a parallel region; the runtimes of LLVM and of Intel have it too. */
const struct openmp *iso_blas_find_openmp(void) {
    static struct openmp runtime;
    const struct openmp *known = atomic_load_explicit(&openmp, memory_order_acquire);
    if (known)
        return known;
    struct found found = {.name = ""};
    dl_iterate_phdr(look, &found);
    if (found.name[0]) {
        if (atomic_flag_test_and_set(&searching))
            return NULL;
        void *handle = dlopen(found.name, RTLD_LAZY | RTLD_NOLOAD);
        if (handle && !atomic_load(&openmp)) {
            void *in_parallel = dlsym(handle, "omp_in_parallel");
            void *max_threads = dlsym(handle, "omp_get_max_threads");
            void *parallel = dlsym(handle, "GOMP_parallel");
            if (in_parallel && max_threads) {
                memcpy(&runtime.in_parallel, &in_parallel, sizeof in_parallel);
                memcpy(&runtime.max_threads, &max_threads, sizeof max_threads);
                memcpy(&runtime.parallel, &parallel, sizeof parallel);
                atomic_store_explicit(&openmp, &runtime, memory_order_release);
            }
        }
        atomic_flag_clear(&searching);
    }
    atomic_store_explicit(&libraries, found.libraries, memory_order_relaxed);
    return atomic_load_explicit(&openmp, memory_order_acquire);
}

/* ------------------------------------------------------------------------------------- a region */

void iso_blas_openmp_in_child(void) { atomic_store(&forked, 1); }

int iso_blas_openmp_has_threads(const struct openmp *runtime) {
    return runtime->parallel && !atomic_load_explicit(&forked, memory_order_relaxed);
}

struct job {
    void (*fn)(void *arg, size_t i);
    void *arg;
    size_t n;
    atomic_size_t next; /* the first item that nobody has taken */
};

static void take_items(void *arg) {
    struct job *job = arg;
    size_t i;
    while ((i = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < job->n)
        job->fn(job->arg, i);
}

/* Each calling thread would have a team of its own, so as with a pool the first one has it. All of
 * the team even for fewer items: libgomp ends the threads that a smaller one leaves over. */
void iso_blas_openmp_for(void *user, size_t n, void (*fn)(void *arg, size_t i), void *arg) {
    const struct openmp *runtime = user;
    struct job job = {fn, arg, n, 0};
    if (n > 1 && !atomic_flag_test_and_set(&region)) {
        int cancel;
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* the job is on this stack */
        runtime->parallel(take_items, &job, 0, 0);
        pthread_setcancelstate(cancel, NULL);
        atomic_flag_clear(&region);
    } else {
        take_items(&job);
    }
}
