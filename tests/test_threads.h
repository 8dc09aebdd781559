/* SPDX-License-Identifier: MIT
 *
 * What the files of test_threads share.
 */
#ifndef ISOBIT_TESTS_TEST_THREADS_H
#define ISOBIT_TESTS_TEST_THREADS_H

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

struct nest {
    const iso_executor *executor;
    unsigned inner[8][16];
    bool stayed[8];
};

/* test_threads.c */
const iso_executor *executor_of(const iso_pool *pool);
void run(const iso_executor *executor, size_t n, void (*fn)(void *, size_t), void *arg);
void count(void *arg, size_t i);
bool each_once(const iso_executor *executor, size_t n);
bool child_may_start_threads(void);
int await(pid_t child);
int in_child(int (*body)(void *), void *arg);
size_t live_threads(void);
size_t settled_threads(void);

/* semantics.c */
void test_each_index_once(void **state);
void test_arguments(void **state);
void test_threads_take_part(void **state);
void inner(void *arg, size_t i);
void test_nested_is_serial(void **state);
void test_concurrent_callers(void **state);
void test_create_destroy(void **state);
void test_signals(void **state);

/* fork.c */
void test_fork(void **state);
void test_fork_during_use(void **state);

/* costs.c */
void test_idle_costs_nothing(void **state);
void test_rare_jobs_cost_little(void **state);
void test_affinity(void **state);
void test_cgroup_quota(void **state);
void test_usable_threads(void **state);

#endif
