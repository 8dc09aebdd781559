/* SPDX-License-Identifier: MIT
 *
 * What a loop on a pool promises.
 */
#include "test_threads.h"

void test_each_index_once(void **state) {
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

void test_arguments(void **state) {
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

void test_threads_take_part(void **state) {
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

struct nested_call {
    unsigned *counts;
    pthread_t caller;
    bool stayed;
};

void inner(void *arg, size_t i) {
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

void test_nested_is_serial(void **state) {
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

void test_concurrent_callers(void **state) {
    (void)state;
    iso_pool *pool = NULL;
    assert_int_equal(iso_pool_create(&pool, 3), ISOBIT_OK);
    run_callers(call_often, executor_of(pool), CALLERS);
    assert_true(each_once(executor_of(pool), 100));
    iso_pool_destroy(pool);
    run_callers(own_pool, NULL, 12);
}

void test_create_destroy(void **state) {
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

void test_signals(void **state) {
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
