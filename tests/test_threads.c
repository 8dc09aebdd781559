/* SPDX-License-Identifier: MIT
 *
 * The ready-made pool and the count of threads: every index once, nested and concurrent calls,
 * fork before, during and after use, too few threads to be had, affinity, cgroups, and no CPU
 * time while idle. Children that hang are ended: that is a failure, not a wait.
 *
 * Counters are plain integers on purpose: what a task wrote must be visible to the caller, and
 * the thread sanitizer checks that.
 */
#include "threads.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <isobit/isobit.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TSAN 1
#endif
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define OTHER_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define TSAN 1
#elif defined(__SANITIZE_ADDRESS__)
#define OTHER_SANITIZER 1
#endif
#ifndef TSAN
#define TSAN 0
#endif
#ifndef OTHER_SANITIZER
#define OTHER_SANITIZER 0
#endif

enum { PATIENCE_MS = 60000, SKIPPED = 77 };

static const iso_executor *executor_of(const iso_pool *pool) {
    const iso_executor *executor = iso_pool_executor(pool);
    assert_non_null(executor);
    assert_non_null(executor->parallel_for);
    assert_true(executor->max_threads >= 1);
    return executor;
}

static void run(const iso_executor *executor, size_t n, void (*fn)(void *, size_t), void *arg) {
    executor->parallel_for(executor->user, n, fn, arg);
}

static void count(void *arg, size_t i) { ++((unsigned *)arg)[i]; }

/* Runs n tasks and tells whether each index came once. No cmocka: children use it too. */
static bool each_once(const iso_executor *executor, size_t n) {
    unsigned *counts = calloc(n + 1, sizeof(*counts));
    bool good = counts != NULL;
    if (good) {
        run(executor, n, count, counts);
    }
    for (size_t i = 0; good && i <= n; ++i) {
        good = counts[i] == (i < n);
    }
    free(counts);
    return good;
}

/*
 * Whether the child of a process with several threads may start threads of its own. Linux lets
 * it; TSan refuses, and qemu's user mode fails an assertion (ISOBIT_EMULATED is set by
 * dispatch.cmake where the tests run under it).
 */
static bool child_may_start_threads(void) { return !TSAN && !getenv("ISOBIT_EMULATED"); }

/*
 * The exit status of a child; -1 when it did not exit by itself, or not in time. Not by alarm():
 * a pool that is being created has signals blocked.
 */
static int await(pid_t child) {
    for (int i = 0; child > 0 && i < PATIENCE_MS; ++i) {
        int status = 0;
        const pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child) {
            return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        }
        if (ended < 0 && errno != EINTR) {
            return -1;
        }
        usleep(1000);
    }
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    return -1;
}

static int in_child(int (*body)(void *), void *arg) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        _exit(body(arg));
    }
    return await(child);
}

static size_t live_threads(void) {
    size_t threads = 0;
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, "Threads:", 8) == 0) {
            threads = strtoul(line + 8, NULL, 10);
        }
    }
    if (file) {
        fclose(file);
    }
    return threads;
}

/* Threads that have been joined are counted until the system has taken them down, which takes a
 * while on a busy machine: their number once it has not changed for 50 ms. */
static size_t settled_threads(void) {
    size_t threads = live_threads();
    for (int still = 0; still < 50; ++still) {
        usleep(1000);
        const size_t now = live_threads();
        if (now != threads) {
            threads = now;
            still = 0;
        }
    }
    return threads;
}

/* ------------------------------------------------------------------------- limits on threads */

/*
 * The test program's own pthread_create: it fails like a system at its limit once `most` of the
 * threads made through it are alive, or in one call only. Sanitizers have their own, so not there.
 */
#define WRAPPED (!TSAN && !OTHER_SANITIZER)
#if WRAPPED
static atomic_int most = -1, alive;
/* Only call number `failing` fails, counted from 1. */
static atomic_int failing, created;

struct begin {
    void *(*start)(void *);
    void *arg;
};

static void *begin_thread(void *arg) {
    const struct begin begin = *(struct begin *)arg;
    free(arg);
    void *result = begin.start(begin.arg);
    atomic_fetch_sub(&alive, 1);
    return result;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *arg) {
    typedef int create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    static _Atomic(create *) original;
    create *make = atomic_load(&original);
    if (!make) {
        void *symbol = dlsym(RTLD_NEXT, "pthread_create");
        memcpy(&make, &symbol, sizeof(make));
        atomic_store(&original, make);
    }
    const int limit = atomic_load(&most);
    if (atomic_fetch_add(&created, 1) + 1 == atomic_load(&failing)) {
        return EAGAIN;
    }
    if (atomic_fetch_add(&alive, 1) >= limit && limit >= 0) {
        atomic_fetch_sub(&alive, 1);
        return EAGAIN;
    }
    struct begin *begin = malloc(sizeof(*begin));
    if (!begin) {
        return EAGAIN;
    }
    *begin = (struct begin){start, arg};
    const int error = make(thread, attributes, begin_thread, begin);
    if (error) {
        atomic_fetch_sub(&alive, 1);
        free(begin);
    }
    return error;
}

static int limited_child(void *arg) {
    atomic_store(&alive, 0);
    atomic_store(&most, *(int *)arg);
    for (int round = 0; round < 5; ++round) {
        iso_pool *pool = NULL;
        if (iso_pool_create(&pool, 8) != ISOBIT_OK) {
            return 1;
        }
        const size_t expected = (size_t) * (int *)arg + 1;
        if (iso_pool_executor(pool)->max_threads != (expected < 8 ? expected : 8)) {
            return 2;
        }
        if (!each_once(iso_pool_executor(pool), 1000)) {
            return 3;
        }
        iso_pool_destroy(pool);
    }
    return 0;
}

/* Any one thread that cannot be had makes the pool smaller, and nothing else. */
static int one_fails_child(void *arg) {
    (void)arg;
    const size_t before = settled_threads(); /* an emulator may have one of its own */
    for (int k = 1; k < 100; ++k) {
        iso_pool *pool = NULL;
        atomic_store(&created, 0);
        atomic_store(&failing, k);
        if (iso_pool_create(&pool, 8) != ISOBIT_OK) {
            return 1;
        }
        atomic_store(&failing, 0);
        const int calls = atomic_load(&created);
        const size_t threads = iso_pool_executor(pool)->max_threads;
        if (threads > 8 || (k > calls && threads != 8) || (k <= calls && threads == 8)) {
            return 2;
        }
        if (!each_once(iso_pool_executor(pool), 1000)) {
            return 3;
        }
        iso_pool_destroy(pool);
        for (int i = 0; i < 1000 && live_threads() != before; ++i) {
            usleep(1000);
        }
        if (live_threads() != before) {
            return 4;
        }
        if (k > calls) {
            return calls >= 7 ? 0 : 5;
        }
    }
    return 6;
}
#endif

static void test_limited_threads(void **state) {
    (void)state;
#if WRAPPED
    for (int limit = 0; limit <= 9; ++limit) {
        assert_int_equal(in_child(limited_child, &limit), 0);
    }
    assert_int_equal(in_child(one_fails_child, NULL), 0);
#else
    skip();
#endif
}

/* The same with the kernel's own limit, as another user because it spares root. */
static int rlimit_child(void *arg) {
    (void)arg;
    if (geteuid() == 0 && (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))) {
        return SKIPPED;
    }
    /* Other processes of the user count too: look for a limit that leaves room for a few. */
    struct rlimit processes;
    if (getrlimit(RLIMIT_NPROC, &processes) != 0) {
        return SKIPPED;
    }
    for (rlim_t limit = 2; limit < 4096; limit += 2) {
        processes.rlim_cur = limit;
        if (setrlimit(RLIMIT_NPROC, &processes) != 0) {
            return SKIPPED;
        }
        iso_pool *pool = NULL;
        if (iso_pool_create(&pool, 16) != ISOBIT_OK) {
            return 1;
        }
        const size_t threads = iso_pool_executor(pool)->max_threads;
        if (!each_once(iso_pool_executor(pool), 1000)) {
            return 2;
        }
        iso_pool_destroy(pool);
        if (threads == 16) {
            return limit == 2 ? SKIPPED : 0; /* no such limit here, or all of them were passed */
        }
    }
    return 0;
}

static void test_rlimit(void **state) {
    (void)state;
    const int result = TSAN ? SKIPPED : in_child(rlimit_child, NULL);
    if (result == SKIPPED) {
        print_message("          (RLIMIT_NPROC does not bind here)\n");
        skip();
    }
    assert_int_equal(result, 0);
}

/* --------------------------------------------------------------------------------- semantics */

static void test_each_index_once(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 3, 5, 7, 16, 63, 64, 1000, 10007};
    static const size_t threads[] = {1, 2, 3, 4, 8, 17};
    for (size_t t = 0; t < sizeof(threads) / sizeof(threads[0]); ++t) {
        iso_pool *pool = NULL;
        assert_int_equal(iso_pool_create(&pool, threads[t]), ISOBIT_OK);
        const iso_executor *executor = executor_of(pool);
        assert_int_equal(executor->max_threads, threads[t]);
        assert_ptr_equal(iso_pool_executor(pool), executor);
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); ++s) {
            for (int round = 0; round < 10; ++round) {
                assert_true(each_once(executor, sizes[s]));
            }
        }
        iso_pool_destroy(pool);
    }
}

static void test_arguments(void **state) {
    (void)state;
    iso_pool *pool = NULL;
    assert_int_equal(iso_pool_create(NULL, 1), ISOBIT_E_NULL);
    assert_int_equal(iso_pool_create(&pool, (size_t)-1), ISOBIT_E_LIMIT);
    assert_null(pool);
    assert_null(iso_pool_executor(NULL));
    iso_pool_destroy(NULL);
    assert_int_equal(iso_pool_create(&pool, 0), ISOBIT_OK);
    assert_int_equal(executor_of(pool)->max_threads, iso_usable_threads());
    iso_pool_destroy(pool);
}

/* Which threads took part. */
struct seen {
    pthread_mutex_t lock;
    pthread_t threads[64];
    size_t count;
    atomic_size_t inside;
    size_t wanted;
};

static void meet(void *arg, size_t i) {
    struct seen *seen = arg;
    (void)i;
    pthread_mutex_lock(&seen->lock);
    size_t k = 0;
    while (k < seen->count && !pthread_equal(seen->threads[k], pthread_self())) {
        ++k;
    }
    seen->threads[k] = pthread_self();
    seen->count = k == seen->count ? k + 1 : seen->count;
    pthread_mutex_unlock(&seen->lock);
    /* Waits for the others, so that no thread can take two. */
    atomic_fetch_add(&seen->inside, 1);
    while (atomic_load(&seen->inside) < seen->wanted) {
        sched_yield();
    }
}

static void test_threads_take_part(void **state) {
    (void)state;
    const size_t before = settled_threads();
    iso_pool *pool = NULL;
    assert_int_equal(iso_pool_create(&pool, 4), ISOBIT_OK);
    assert_int_equal(live_threads(), before + 3);
    static struct seen seen = {.lock = PTHREAD_MUTEX_INITIALIZER, .wanted = 4};
    run(executor_of(pool), 4, meet, &seen);
    assert_int_equal(seen.count, 4);
    iso_pool_destroy(pool);
    for (int i = 0; i < 1000 && live_threads() != before; ++i) {
        usleep(1000);
    }
    assert_int_equal(live_threads(), before);
}

struct nest {
    const iso_executor *executor;
    unsigned inner[8][16];
    bool stayed[8];
};

struct nested_call {
    unsigned *counts;
    pthread_t caller;
    bool stayed;
};

static void inner(void *arg, size_t i) {
    struct nested_call *call = arg;
    ++call->counts[i];
    call->stayed = call->stayed && pthread_equal(call->caller, pthread_self());
}

static void outer(void *arg, size_t i) {
    struct nest *nest = arg;
    struct nested_call call = {nest->inner[i], pthread_self(), true};
    run(nest->executor, 16, inner, &call);
    nest->stayed[i] = call.stayed;
}

static void test_nested_is_serial(void **state) {
    (void)state;
    iso_pool *pool = NULL;
    assert_int_equal(iso_pool_create(&pool, 4), ISOBIT_OK);
    for (int round = 0; round < 50; ++round) {
        struct nest nest = {.executor = executor_of(pool)};
        run(nest.executor, 8, outer, &nest);
        for (int i = 0; i < 8; ++i) {
            assert_true(nest.stayed[i]);
            for (int k = 0; k < 16; ++k) {
                assert_int_equal(nest.inner[i][k], 1);
            }
        }
    }
    iso_pool_destroy(pool);
}

enum { CALLERS = 96, ROUNDS = 16 };

struct caller {
    const iso_executor *executor;
    pthread_t thread;
    bool good;
};

static void *call_often(void *arg) {
    struct caller *caller = arg;
    caller->good = true;
    for (size_t round = 0; round < ROUNDS; ++round) {
        caller->good = each_once(caller->executor, 1 + round * 7) && caller->good;
    }
    return NULL;
}

static void *own_pool(void *arg) {
    struct caller *caller = arg;
    iso_pool *pool = NULL;
    if (iso_pool_create(&pool, 2) == ISOBIT_OK) {
        caller->executor = iso_pool_executor(pool);
        call_often(arg);
        iso_pool_destroy(pool);
    }
    return NULL;
}

static void run_callers(void *(*body)(void *), const iso_executor *executor, size_t callers) {
    static struct caller all[CALLERS];
    memset(all, 0, sizeof(all));
    for (size_t i = 0; i < callers; ++i) {
        all[i].executor = executor;
        assert_int_equal(pthread_create(&all[i].thread, NULL, body, &all[i]), 0);
    }
    for (size_t i = 0; i < callers; ++i) {
        pthread_join(all[i].thread, NULL);
        assert_true(all[i].good);
    }
}

static void test_concurrent_callers(void **state) {
    (void)state;
    iso_pool *pool = NULL;
    assert_int_equal(iso_pool_create(&pool, 3), ISOBIT_OK);
    run_callers(call_often, executor_of(pool), CALLERS);
    assert_true(each_once(executor_of(pool), 100));
    iso_pool_destroy(pool);
    run_callers(own_pool, NULL, 12);
}

static void test_create_destroy(void **state) {
    (void)state;
    for (int round = 0; round < 100; ++round) {
        iso_pool *pool = NULL;
        assert_int_equal(iso_pool_create(&pool, 1 + (size_t)round % 4), ISOBIT_OK);
        if (round % 3 != 0) {
            assert_true(each_once(executor_of(pool), 50));
        }
        iso_pool_destroy(pool);
    }
}

static void look_at_signals(void *arg, size_t i) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    /* bit 0: an application's signal is blocked; bit 1: a fault's signal is blocked */
    ((int *)arg)[i] = sigismember(&mask, SIGUSR1) | sigismember(&mask, SIGSEGV) << 1;
    usleep(2000);
}

static void test_signals(void **state) {
    (void)state;
    sigset_t before, after;
    iso_pool *pool = NULL;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(iso_pool_create(&pool, 4), ISOBIT_OK);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int s = 1; s < 32; ++s) {
        assert_int_equal(sigismember(&before, s), sigismember(&after, s));
    }
    /* Index 0 is the caller's; of the others at least one runs on a worker. */
    int masks[64] = {0}, blocked = 0;
    run(executor_of(pool), 64, look_at_signals, masks);
    for (int i = 0; i < 64; ++i) {
        assert_int_equal(masks[i] & 2, 0);
        blocked += masks[i] & 1;
    }
    assert_true(blocked > 0 && blocked < 64);
    iso_pool_destroy(pool);
}

/* -------------------------------------------------------------------------------------- fork */

static int child_uses_pool(void *arg) {
    iso_pool *pool = arg;
    for (int i = 0; i < 10; ++i) {
        if (!each_once(iso_pool_executor(pool), 100)) {
            return 1;
        }
    }
    for (int i = 0; child_may_start_threads() && i < 3; ++i) {
        iso_pool *mine = NULL;
        if (iso_pool_create(&mine, 3) != ISOBIT_OK || iso_pool_executor(mine)->max_threads != 3 ||
            !each_once(iso_pool_executor(mine), 100)) {
            return 2;
        }
        iso_pool_destroy(mine);
    }
    iso_pool_destroy(pool);
    return 0;
}

static int child_of_child(void *arg) {
    iso_pool *mine = NULL;
    if (iso_pool_create(&mine, 2) != ISOBIT_OK || !each_once(iso_pool_executor(mine), 10)) {
        return 1;
    }
    /* The grandchild has inherited twice. */
    if (in_child(child_uses_pool, mine) != 0 || in_child(child_uses_pool, arg) != 0) {
        return 2;
    }
    if (!each_once(iso_pool_executor(mine), 10)) {
        return 3;
    }
    iso_pool_destroy(mine);
    return child_uses_pool(arg);
}

static void test_fork(void **state) {
    (void)state;
    iso_pool *pool = NULL;
    assert_int_equal(iso_pool_create(&pool, 3), ISOBIT_OK);
    assert_int_equal(in_child(child_uses_pool, pool), 0);
    assert_true(each_once(executor_of(pool), 100));
    assert_int_equal(in_child(child_uses_pool, pool), 0);
    if (child_may_start_threads()) {
        assert_int_equal(in_child(child_of_child, pool), 0);
    }
    assert_true(each_once(executor_of(pool), 100));
    iso_pool_destroy(pool);
}

static void fork_in_task(void *arg, size_t i) {
    struct nest *nest = arg;
    const pid_t child = fork();
    if (child == 0) {
        _exit(each_once(nest->executor, 50) ? 0 : 1);
    }
    nest->stayed[i] = await(child) == 0;
}

static atomic_bool stop;

static void *keep_busy(void *arg) {
    while (!atomic_load(&stop)) {
        if (!each_once(arg, 200)) {
            return arg;
        }
    }
    return NULL;
}

/*
 * For the address sanitizer beside threads that allocate: gcc 12's does not take the locks of its
 * allocator for a fork, so a child may find one locked for ever, and with it each of its calls that
 * allocates, starts or ends a thread. (Shown by a program that has nothing of this library: threads
 * that call malloc and free, and a child that starts threads. They spin in Quarantine::Drain or
 * wait in SizeClassAllocator64::GetFromAllocator. The C library does take its locks.)
 */
static int child_allocates_nothing(void *arg) {
    static unsigned counts[100];
    for (unsigned round = 1; round <= 10; ++round) {
        run(iso_pool_executor(arg), 100, count, counts);
        for (size_t i = 0; i < 100; ++i) {
            if (counts[i] != round) {
                return 1;
            }
        }
    }
    return 0;
}

static void test_fork_during_use(void **state) {
    (void)state;
    enum { FORKS = TSAN || OTHER_SANITIZER ? 5 : 15 };
    iso_pool *pool = NULL;
    assert_int_equal(iso_pool_create(&pool, 3), ISOBIT_OK);

    /* From inside a task. */
    struct nest nest = {.executor = executor_of(pool)};
    run(nest.executor, 8, fork_in_task, &nest);
    for (int i = 0; i < 8; ++i) {
        assert_true(nest.stayed[i]);
    }

    /* While other threads have the pool. */
    pthread_t threads[3];
    atomic_store(&stop, false);
    for (size_t i = 0; i < 3; ++i) {
        assert_int_equal(pthread_create(&threads[i], NULL, keep_busy, (void *)nest.executor), 0);
    }
    int bad = 0;
    for (int i = 0; i < FORKS; ++i) {
        bad += in_child(OTHER_SANITIZER ? child_allocates_nothing : child_uses_pool, pool) != 0;
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < 3; ++i) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    assert_int_equal(bad, 0);
    assert_true(each_once(executor_of(pool), 100));
    iso_pool_destroy(pool);
}

/* ---------------------------------------------------------------------- what the pool costs */

static double cpu_seconds(void) {
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static void test_idle_costs_nothing(void **state) {
    (void)state;
    /* Five workers that spin their million pauses take 100 ms and more; sleepers nearly none. */
    const double most_seconds = 0.03;
    iso_pool *pool = NULL;
    assert_int_equal(iso_pool_create(&pool, 6), ISOBIT_OK);
    for (int round = 0; round < 2; ++round) {
        usleep(20000);
        const double before = cpu_seconds();
        usleep(300000);
        const double used = cpu_seconds() - before;
        print_message("          (%.1f ms of CPU time in 300 ms)\n", 1e3 * used);
        assert_true(used < most_seconds);
        assert_true(each_once(executor_of(pool), 1000));
    }
    iso_pool_destroy(pool);
}

static void see_affinity(void *arg, size_t i) { ((size_t *)arg)[i] = iso_affinity_threads(); }

static int one_cpu_child(void *arg) {
    (void)arg;
    cpu_set_t set, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof(set), &set) != 0) {
        return SKIPPED;
    }
    size_t cpu = 0;
    while (cpu < CPU_SETSIZE && !CPU_ISSET(cpu, &set)) {
        ++cpu;
    }
    CPU_SET(cpu, &one);
    if (iso_affinity_threads() != (size_t)CPU_COUNT(&set)) {
        return 1;
    }
    if (sched_setaffinity(0, sizeof(one), &one) != 0) {
        return SKIPPED;
    }
    if (iso_affinity_threads() != 1 || iso_usable_threads() != 1) {
        return 2;
    }
    iso_pool *pool = NULL;
    if (iso_pool_create(&pool, 0) != ISOBIT_OK || iso_pool_executor(pool)->max_threads != 1) {
        return 3;
    }
    iso_pool_destroy(pool);
    /* Asked for more: they work, within the mask. */
    size_t cpus[64] = {0};
    if (iso_pool_create(&pool, 4) != ISOBIT_OK || iso_pool_executor(pool)->max_threads != 4) {
        return 4;
    }
    run(iso_pool_executor(pool), 64, see_affinity, cpus);
    for (int i = 0; i < 64; ++i) {
        if (cpus[i] != 1) {
            return 5;
        }
    }
    iso_pool_destroy(pool);
    return 0;
}

static void test_affinity(void **state) {
    (void)state;
    const int result = in_child(one_cpu_child, NULL);
    if (result == SKIPPED) {
        skip();
    }
    assert_int_equal(result, 0);
}

/* ----------------------------------------------------------------------------------- cgroups */

static char top[64];

static void put_file(const char *path, const char *text) {
    char full[512];
    snprintf(full, sizeof(full), "%s%s", top, path);
    for (char *slash = full + strlen(top) + 1; (slash = strchr(slash, '/')) != NULL; ++slash) {
        *slash = '\0';
        mkdir(full, 0755);
        *slash = '/';
    }
    FILE *file = fopen(full, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

#define MOUNT_V2 "30 20 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define MOUNT_V1                                                                                   \
    "29 20 0:25 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"                            \
    "31 20 0:27 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"                            \
    "30 20 0:26 / /sys/fs/cgroup/cpu,cpuacct rw shared:4 - cgroup cgroup rw,cpu,cpuacct\n"

static void test_cgroup_quota(void **state) {
    (void)state;
    snprintf(top, sizeof(top), "/tmp/isobit-cgroup-XXXXXX");
    assert_non_null(mkdtemp(top));
    assert_int_equal(iso_cgroup_millicpus(top), 0); /* no /proc at all */

    put_file("/proc/self/mountinfo", "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n" MOUNT_V2);
    put_file("/proc/self/cgroup", "0::/user.slice/app\n");
    assert_int_equal(iso_cgroup_millicpus(top), 0); /* no file: the root group has none */
    put_file("/sys/fs/cgroup/user.slice/app/cpu.max", "max 100000\n");
    assert_int_equal(iso_cgroup_millicpus(top), 0);
    put_file("/sys/fs/cgroup/user.slice/app/cpu.max", "250000 100000\n");
    assert_int_equal(iso_cgroup_millicpus(top), 2500);
    put_file("/sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n"); /* the parent is tighter */
    assert_int_equal(iso_cgroup_millicpus(top), 1500);
    put_file("/sys/fs/cgroup/user.slice/app/cpu.max", "5000 50000\n");
    assert_int_equal(iso_cgroup_millicpus(top), 100);
    put_file("/sys/fs/cgroup/user.slice/app/cpu.max", "1 1000000\n"); /* never 0: that is none */
    assert_int_equal(iso_cgroup_millicpus(top), 1);
    static const char *const odd[] = {"",
                                      "\n",
                                      "max",
                                      "100000",
                                      "100000 0",
                                      "-5 100000",
                                      "x y",
                                      "1099511627777 1099511627777", /* beyond what is believed */
                                      "99999999999999999999 100000"};
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); ++i) {
        put_file("/sys/fs/cgroup/user.slice/app/cpu.max", odd[i]);
        assert_int_equal(iso_cgroup_millicpus(top), 1500);
    }
    /* A container: its own group is the root of the mount. */
    put_file("/proc/self/cgroup", "0::/\n");
    put_file("/sys/fs/cgroup/cpu.max", "300000 100000\n");
    assert_int_equal(iso_cgroup_millicpus(top), 3000);
    put_file("/proc/self/cgroup", "0::/docker/abc\n");
    put_file("/proc/self/mountinfo",
             "30 20 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
    assert_int_equal(iso_cgroup_millicpus(top), 3000);
    /* Lines that are cut or odd do no harm. */
    put_file("/proc/self/mountinfo", "30 20\n - cgroup2\n - cgroup2 x y\n\n" MOUNT_V2);
    put_file("/proc/self/cgroup", "junk\n:\n0:\n0::/\n");
    assert_int_equal(iso_cgroup_millicpus(top), 3000);

    /* Version 1. */
    put_file("/proc/self/mountinfo", MOUNT_V1);
    put_file("/proc/self/cgroup", "5:memory:/other\n4:cpuset:/\n3:cpu,cpuacct:/app\n0::/\n");
    put_file("/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", "400000\n");
    assert_int_equal(iso_cgroup_millicpus(top), 0); /* without a period */
    put_file("/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", "-1\n");
    put_file("/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_period_us", "100000\n");
    assert_int_equal(iso_cgroup_millicpus(top), 0);
    put_file("/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", "400000\n");
    assert_int_equal(iso_cgroup_millicpus(top), 4000);
    /* Both: the tighter one. */
    put_file("/proc/self/mountinfo", MOUNT_V2 MOUNT_V1);
    assert_int_equal(iso_cgroup_millicpus(top), 3000);

    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", top);
    assert_int_equal(system(command), 0);
}

static void test_usable_threads(void **state) {
    (void)state;
    const size_t usable = iso_usable_threads();
    assert_true(usable >= 1 && usable <= iso_affinity_threads());
    /* Asking starts no thread. */
    const size_t before = settled_threads();
    char text[4096];
    assert_int_equal(iso_info_json(text, sizeof(text), NULL), ISOBIT_OK);
    assert_int_equal(live_threads(), before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usable_threads),
        cmocka_unit_test(test_limited_threads),
        cmocka_unit_test(test_rlimit),
        cmocka_unit_test(test_affinity),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_each_index_once),
        cmocka_unit_test(test_threads_take_part),
        cmocka_unit_test(test_nested_is_serial),
        cmocka_unit_test(test_concurrent_callers),
        cmocka_unit_test(test_create_destroy),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_fork_during_use),
        cmocka_unit_test(test_idle_costs_nothing),
        cmocka_unit_test(test_cgroup_quota),
    };
    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
