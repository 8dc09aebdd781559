/* SPDX-License-Identifier: MIT
 *
 * The ready-made executor, on pthreadpool. What pthreadpool does not promise is added here:
 *  - Failing to create a thread: pthreadpool ignores it and then waits forever for that thread.
 *    So we first try how many threads there can be.
 *  - Idle workers: they spin for up to a million pauses unless the last job said
 *    PTHREADPOOL_FLAG_YIELD_WORKERS; then they sleep on a futex at once. We always say it.
 *  - fork: the child has no workers. A generation counter that pthread_atfork steps (no lock is
 *    taken) tells a pool that it was inherited; it then runs serially.
 *  - Calls from several threads, or from within a task: the first one has the pool, the others
 *    run serially on their own thread instead of waiting.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall, pthread_sigmask */
#endif
#include <isobit/isobit.h>

#include <pthread.h>
#include <pthreadpool.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* No machine has use for more; it keeps the arrays of a mistaken call small. */
enum { MAX_THREADS = 4096 };

struct job {
    void (*fn)(void *arg, size_t i);
    void *arg;
    atomic_size_t done; /* calls of fn that are over */
};

struct iso_pool {
    iso_executor executor;
    pthreadpool_t workers; /* NULL: a pool of one thread */
    unsigned generation;
    atomic_bool busy;
    _Atomic(struct job *) job;
};

/* How often this process is a child of the one that loaded the library. */
static atomic_uint generation;
static pthread_once_t atfork_once = PTHREAD_ONCE_INIT;

static void in_child(void) { atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed); }

static void register_atfork(void) { pthread_atfork(NULL, NULL, in_child); }

/* ---------------------------------------------------------------------------------- creation */

struct probe {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool go;
};

struct probe_thread {
    struct probe *probe;
    pthread_t thread;
    pid_t tid;
};

static void *probe_main(void *arg) {
    struct probe_thread *self = arg;
    self->tid = (pid_t)syscall(SYS_gettid);
    pthread_mutex_lock(&self->probe->lock);
    while (!self->probe->go) {
        pthread_cond_wait(&self->probe->changed, &self->probe->lock);
    }
    pthread_mutex_unlock(&self->probe->lock);
    return NULL;
}

/*
 * How many of `wanted` threads can be had at the same time: starts them, counts, ends them. A
 * thread still counts against the limits of the user and the cgroup for an instant after it was
 * joined, so we wait until the kernel no longer knows it.
 */
static size_t possible_threads(size_t wanted) {
    struct probe probe = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    struct probe_thread *threads = calloc(wanted, sizeof(*threads));
    if (!threads) {
        return 0;
    }
    size_t count = 0;
    while (count < wanted) {
        threads[count].probe = &probe;
        if (pthread_create(&threads[count].thread, NULL, probe_main, &threads[count]) != 0) {
            break;
        }
        ++count;
    }
    pthread_mutex_lock(&probe.lock);
    probe.go = true;
    pthread_cond_broadcast(&probe.changed);
    pthread_mutex_unlock(&probe.lock);
    const long process = (long)getpid();
    for (size_t i = 0; i < count; ++i) {
        pthread_join(threads[i].thread, NULL);
        for (int spin = 0; spin < 10000; ++spin) {
            if (syscall(SYS_tgkill, process, (long)threads[i].tid, 0L) != 0) {
                break;
            }
            sched_yield();
        }
    }
    free(threads);
    return count;
}

static void run_item(void *arg, size_t i) {
    struct iso_pool *pool = arg;
    /*
     * pthreadpool orders these accesses already. The acquire here and the release below say the
     * same once more in our own code, where the thread sanitizer can see it.
     */
    struct job *job = atomic_load_explicit(&pool->job, memory_order_acquire);
    job->fn(job->arg, i);
    atomic_fetch_add_explicit(&job->done, 1, memory_order_release);
}

static void nothing(void *arg, size_t i) {
    (void)arg;
    (void)i;
}

static void run_on_workers(struct iso_pool *pool, size_t n, void (*fn)(void *, size_t), void *arg) {
    struct job job = {fn, arg, 0};
    atomic_store_explicit(&pool->job, &job, memory_order_release);
    pthreadpool_parallelize_1d(pool->workers, run_item, pool, n, PTHREADPOOL_FLAG_YIELD_WORKERS);
    while (atomic_load_explicit(&job.done, memory_order_acquire) != n) {
        /* Never: pthreadpool returns when all calls are over. */
    }
}

static bool inherited(const struct iso_pool *pool) {
    return pool->generation != atomic_load_explicit(&generation, memory_order_relaxed);
}

static void parallel_for(void *user, size_t n, void (*fn)(void *arg, size_t i), void *arg) {
    struct iso_pool *pool = user;
    const bool alone = n <= 1 || !pool->workers || inherited(pool);
    /* Taken also means: we are inside one of its tasks. */
    if (!alone && !atomic_exchange_explicit(&pool->busy, true, memory_order_acquire)) {
        run_on_workers(pool, n, fn, arg);
        atomic_store_explicit(&pool->busy, false, memory_order_release);
        return;
    }
    for (size_t i = 0; i < n; ++i) {
        fn(arg, i);
    }
}

/* Starts the workers with all signals blocked but those that a thread raises itself (and the
 * profiler's): the application's handlers run on the application's threads. */
static pthreadpool_t start_workers(size_t threads) {
    static const int open[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); ++i) {
        sigdelset(&blocked, open[i]);
    }
    const bool masked = pthread_sigmask(SIG_SETMASK, &blocked, &before) == 0;
    const size_t extra = possible_threads(threads - 1);
    pthreadpool_t workers = extra > 0 ? pthreadpool_create(extra + 1) : NULL;
    if (masked) {
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return workers;
}

iso_status iso_pool_create(iso_pool **pool, size_t threads) {
    if (!pool) {
        return ISOBIT_E_NULL;
    }
    if (threads > MAX_THREADS) {
        return ISOBIT_E_LIMIT;
    }
    threads = threads ? threads : iso_usable_threads();
    struct iso_pool *made = calloc(1, sizeof(*made));
    if (!made) {
        return ISOBIT_E_NOMEM;
    }
    pthread_once(&atfork_once, register_atfork);
    made->generation = atomic_load_explicit(&generation, memory_order_relaxed);
    atomic_init(&made->busy, false);
    atomic_init(&made->job, NULL);
    /* No workers, because the system has none to give: a slower pool, not an error. */
    made->workers = threads > 1 ? start_workers(threads) : NULL;
    made->executor.parallel_for = parallel_for;
    made->executor.user = made;
    made->executor.max_threads = made->workers ? pthreadpool_get_threads_count(made->workers) : 1;
    if (made->workers) {
        /* Before their first job workers spin; this one sends them to sleep. */
        run_on_workers(made, made->executor.max_threads, nothing, NULL);
    }
    *pool = made;
    return ISOBIT_OK;
}

void iso_pool_destroy(iso_pool *pool) {
    if (!pool) {
        return;
    }
    /* In a forked child there is no worker to wait for; pthreadpool's part is given up. */
    if (pool->workers && !inherited(pool)) {
        pthreadpool_destroy(pool->workers);
    }
    free(pool);
}

const iso_executor *iso_pool_executor(const iso_pool *pool) {
    return pool ? &pool->executor : NULL;
}
