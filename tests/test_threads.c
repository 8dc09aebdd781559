/* SPDX-License-Identifier: MIT
 *
 * The ready-made pool and the count of threads: every index once, nested and concurrent calls,
 * fork before, during and after use, too few threads to be had, affinity, cgroups, and no CPU
 * time while idle. Children that hang are ended: that is a failure, not a wait.
 *
 * Counters are plain integers on purpose: what a task wrote must be visible to the caller, and
 * the thread sanitizer checks that.
 */
#include "test_threads.h"

const iso_executor *executor_of(const iso_pool *pool) {
    const iso_executor *executor = iso_pool_executor(pool);
    assert_non_null(executor);
    assert_non_null(executor->parallel_for);
    assert_true(executor->max_threads >= 1);
    return executor;
}

void run(const iso_executor *executor, size_t n, void (*fn)(void *, size_t), void *arg) {
    executor->parallel_for(executor->user, n, fn, arg);
}

void count(void *arg, size_t i) { ++((unsigned *)arg)[i]; }

/* Runs n tasks and tells whether each index came once. No cmocka: children use it too. */
bool each_once(const iso_executor *executor, size_t n) {
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
bool child_may_start_threads(void) { return !TSAN && !getenv("ISOBIT_EMULATED"); }

/*
 * The exit status of a child; -1 when it did not exit by itself, or not in time. Not by alarm():
 * a pool that is being created has signals blocked.
 */
int await(pid_t child) {
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

int in_child(int (*body)(void *), void *arg) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        _exit(body(arg));
    }
    return await(child);
}

size_t live_threads(void) {
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
size_t settled_threads(void) {
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
        cmocka_unit_test(test_rare_jobs_cost_little),
        cmocka_unit_test(test_cgroup_quota),
    };
    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
