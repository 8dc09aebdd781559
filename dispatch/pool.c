/* SPDX-License-Identifier: MIT
 *
 * The ready-made executor: threads that sleep until there is a job, and take its items one by one.
 *  - A thread that cannot be started makes the pool smaller. (pthreadpool, which did this work
 *    before, waits forever for a thread that it could not start.)
 *  - Workers sleep on a condition variable. Before that they look out for the next job for 20
 *    microseconds: waking a sleeping thread takes 6 to 50, which is longer than many a job. If the
 *    last job came within 100, they do so for 100: a program that computes something of its own
 *    between products wakes nobody, and one that has done with them is left alone. The caller
 *    waits for those that joined in the same way. Workers that come too late are not waited for.
 *  - fork: the child has no workers. A generation counter that pthread_atfork steps (no lock is
 *    taken) tells a pool that it was inherited; it then runs serially and touches no lock.
 *  - Calls from several threads, or from within a task: the first one has the pool, the others
 *    run serially on their own thread instead of waiting.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_sigmask */
#endif
#include <isobit/isobit.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

/* No machine has use for more; it keeps the arrays of a mistaken call small. */
enum { MAX_THREADS = 4096 };

enum { LOOKOUT_NS = 20000, LONG_LOOKOUT_NS = 100000, WAKING_NS = 50000 };

struct job {
    void (*fn)(void *arg, size_t i);
    void *arg;
    size_t n;
    atomic_size_t next;    /* the first item that nobody has taken */
    atomic_size_t helpers; /* workers that joined in and have not left; changed under the lock */
};

struct iso_pool {
    iso_executor executor;
    unsigned generation;
    pthread_mutex_t owner; /* held by the call that has the pool; never waited for */
    pthread_mutex_t lock;  /* of what follows */
    pthread_cond_t work;   /* there is a job, or the pool ends */
    pthread_cond_t idle;   /* the last helper has left */
    struct job *job;       /* NULL: nothing to join */
    atomic_uint posted;    /* how many jobs there were, and the end; changed under the lock */
    bool ends;
    size_t workers;
    pthread_t threads[];
};

/* How often this process is a child of the one that loaded the library. */
static atomic_uint generation;
static pthread_once_t atfork_once = PTHREAD_ONCE_INIT;

static void in_child(void) { atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed); }

static void register_atfork(void) { pthread_atfork(NULL, NULL, in_child); }

static bool inherited(const struct iso_pool *pool) {
    return pool->generation != atomic_load_explicit(&generation, memory_order_relaxed);
}

/* ------------------------------------------------------------------------------------ a region */

/* The lock orders what items wrote; the counter only deals them out. */
static void take_items(struct job *job) {
    size_t i;
    while ((i = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < job->n) {
        job->fn(job->arg, i);
    }
}

static inline void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* The time is looked at now and then only: in a virtual machine that may be a system call. */
#define LOOK_OUT_UNTIL(condition, end)                                                             \
    while (!(condition) && now_ns() < (end))                                                       \
        for (int pauses = 0; pauses < 32 && !(condition); ++pauses)                                \
    pause_briefly()

static void *worker_main(void *arg) {
    struct iso_pool *pool = arg;
    long long lookout = LOOKOUT_NS;
    pthread_mutex_lock(&pool->lock);
    while (!pool->ends) {
        struct job *job = pool->job;
        if (!job) {
            const unsigned seen = atomic_load_explicit(&pool->posted, memory_order_relaxed);
            pthread_mutex_unlock(&pool->lock);
            const long long begin = now_ns();
            LOOK_OUT_UNTIL(atomic_load_explicit(&pool->posted, memory_order_relaxed) != seen,
                           begin + lookout);
            pthread_mutex_lock(&pool->lock);
            if (atomic_load_explicit(&pool->posted, memory_order_relaxed) == seen) {
                pthread_cond_wait(&pool->work, &pool->lock);
            }
            lookout = now_ns() - begin < LONG_LOOKOUT_NS + WAKING_NS ? LONG_LOOKOUT_NS : LOOKOUT_NS;
            continue;
        }
        atomic_fetch_add_explicit(&job->helpers, 1, memory_order_relaxed);
        pthread_mutex_unlock(&pool->lock);
        take_items(job);
        pthread_mutex_lock(&pool->lock);
        if (pool->job == job) {
            pool->job = NULL; /* all items are taken: who comes now need not join */
        }
        if (atomic_fetch_sub_explicit(&job->helpers, 1, memory_order_release) == 1) {
            pthread_cond_signal(&pool->idle);
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static void run_on_workers(struct iso_pool *pool, size_t n, void (*fn)(void *, size_t), void *arg) {
    struct job job = {fn, arg, n, 0, 0};
    int cancel;
    /* Helpers use the job, which lies on our stack: a cancelled thread ends after the region. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&pool->lock);
    pool->job = &job;
    atomic_fetch_add_explicit(&pool->posted, 1, memory_order_relaxed);
    if (n - 1 < pool->workers) {
        for (size_t i = 1; i < n; ++i) {
            pthread_cond_signal(&pool->work);
        }
    } else {
        pthread_cond_broadcast(&pool->work);
    }
    pthread_mutex_unlock(&pool->lock);
    take_items(&job);
    pthread_mutex_lock(&pool->lock);
    pool->job = NULL; /* from here on nobody joins */
    if (atomic_load_explicit(&job.helpers, memory_order_relaxed) > 0) {
        pthread_mutex_unlock(&pool->lock);
        const long long end = now_ns() + LOOKOUT_NS;
        LOOK_OUT_UNTIL(atomic_load_explicit(&job.helpers, memory_order_relaxed) == 0, end);
        pthread_mutex_lock(&pool->lock);
        while (atomic_load_explicit(&job.helpers, memory_order_relaxed) > 0) {
            pthread_cond_wait(&pool->idle, &pool->lock);
        }
    }
    pthread_mutex_unlock(&pool->lock);
    pthread_setcancelstate(cancel, NULL);
}

static void parallel_for(void *user, size_t n, void (*fn)(void *arg, size_t i), void *arg) {
    struct iso_pool *pool = user;
    const bool alone = n <= 1 || pool->workers == 0 || inherited(pool);
    /* Taken also means: we are inside one of its tasks. */
    if (!alone && pthread_mutex_trylock(&pool->owner) == 0) {
        run_on_workers(pool, n, fn, arg);
        pthread_mutex_unlock(&pool->owner);
        return;
    }
    for (size_t i = 0; i < n; ++i) {
        fn(arg, i);
    }
}

/* ------------------------------------------------------------------------------- begin and end */

/* Starts up to `wanted` workers with all signals blocked but those that a thread raises itself (and
 * the profiler's): the application's handlers run on the application's threads. */
static void start_workers(struct iso_pool *pool, size_t wanted) {
    static const int open[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); ++i) {
        sigdelset(&blocked, open[i]);
    }
    const bool masked = pthread_sigmask(SIG_SETMASK, &blocked, &before) == 0;
    while (pool->workers < wanted &&
           pthread_create(&pool->threads[pool->workers], NULL, worker_main, pool) == 0) {
        ++pool->workers;
    }
    if (masked) {
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
}

iso_status iso_pool_create(iso_pool **pool, size_t threads) {
    if (!pool) {
        return ISOBIT_E_NULL;
    }
    if (threads > MAX_THREADS) {
        return ISOBIT_E_LIMIT;
    }
    threads = threads ? threads : iso_usable_threads();
    struct iso_pool *made = calloc(1, sizeof(*made) + (threads - 1) * sizeof(made->threads[0]));
    if (!made) {
        return ISOBIT_E_NOMEM;
    }
    pthread_once(&atfork_once, register_atfork);
    made->generation = atomic_load_explicit(&generation, memory_order_relaxed);
    pthread_mutex_init(&made->owner, NULL);
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->work, NULL);
    pthread_cond_init(&made->idle, NULL);
    /* Fewer workers, because the system has none to give: a slower pool, not an error. */
    start_workers(made, threads - 1);
    made->executor.parallel_for = parallel_for;
    made->executor.user = made;
    made->executor.max_threads = made->workers + 1;
    *pool = made;
    return ISOBIT_OK;
}

void iso_pool_destroy(iso_pool *pool) {
    if (!pool) {
        return;
    }
    /* In a forked child there is no worker to wait for, and locks are as the fork found them. */
    if (!inherited(pool)) {
        pthread_mutex_lock(&pool->lock);
        pool->ends = true;
        atomic_fetch_add_explicit(&pool->posted, 1, memory_order_relaxed);
        pthread_cond_broadcast(&pool->work);
        pthread_mutex_unlock(&pool->lock);
        for (size_t i = 0; i < pool->workers; ++i) {
            pthread_join(pool->threads[i], NULL);
        }
        pthread_cond_destroy(&pool->idle);
        pthread_cond_destroy(&pool->work);
        pthread_mutex_destroy(&pool->lock);
        pthread_mutex_destroy(&pool->owner);
    }
    free(pool);
}

const iso_executor *iso_pool_executor(const iso_pool *pool) {
    return pool ? &pool->executor : NULL;
}
