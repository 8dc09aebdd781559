/* SPDX-License-Identifier: MIT
 *
 * Fork.
 */
#include "test_threads.h"

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

void test_fork(void **state) {
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

void test_fork_during_use(void **state) {
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
