/* SPDX-License-Identifier: MIT
 *
 * The operations among processes, signals and limits: forks from several threads beside threads
 * that compute, exec, exit in the midst of a region, signals during kernels, small stacks, far more
 * threads than CPUs. Everywhere the bits of every operation are those of a quiet process.
 *
 * Some of it happens in this program run anew, with one argument: what it should do.
 */
#include "every_op.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sanitized.h"

enum {
    FORKERS = 4,
    CALLERS = 96,
    ROUNDS = 16,
    PATIENCE_MS = 60000,
    FLOATS = EVERY_OP_COUNT * EVERY_OP_FLOATS,
    EXITED = 7
};

static _Alignas(64) float expected[FLOATS];
static const char *self;

/* Under an emulator or valgrind: exec leaves it behind, and all is slow. */
static bool emulated(void) { return getenv("ISOBIT_EMULATED") != NULL; }

static size_t forks_of_each(void) { return SANITIZED || emulated() ? 5 : 250; }

/* Results and workspace of one caller: what runs after a fork must not need the allocator, whose
 * locks sanitizers leave as they were. */
struct room {
    _Alignas(64) float out[EVERY_OP_FLOATS];
    _Alignas(64) char workspace[EVERY_OP_WORKSPACE];
};

static struct room *make_room(void) {
    struct room *room = aligned_alloc(64, sizeof(*room));
    assert_non_null(room);
    return room;
}

/* Whether one operation gives the bits of a quiet process. */
static bool same_bits(struct room *room, size_t op, const iso_executor *executor) {
    const iso_context context = {.size = sizeof(context),
                                 .executor = executor,
                                 .workspace = room->workspace,
                                 .workspace_bytes = sizeof(room->workspace)};
    return every_op(room->out, op, &context) == ISOBIT_OK &&
           memcmp((const char *)room->out, (const char *)(expected + op * EVERY_OP_FLOATS),
                  sizeof(room->out)) == 0;
}

static bool all_same_bits(struct room *room, const iso_executor *executor) {
    for (size_t op = 0; op < EVERY_OP_COUNT; ++op) {
        if (!same_bits(room, op, executor)) {
            return false;
        }
    }
    return true;
}

/* The exit status of a child, or minus the signal; it is ended when it takes too long. */
static int await(pid_t child) {
    for (int i = 0; child > 0 && i < PATIENCE_MS; ++i) {
        int status = 0;
        const pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child) {
            return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
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
    return -SIGKILL;
}

/* Runs this program anew with that argument. */
static int run_self(const char *what, void (*before)(void)) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        if (before) {
            before();
        }
        execl(self, self, what, (char *)NULL);
        _exit(126);
    }
    return await(child);
}

static iso_pool *make_pool(size_t threads) {
    iso_pool *pool = NULL;
    assert_int_equal(iso_pool_create(&pool, threads), ISOBIT_OK);
    return pool;
}

/* ---------------------------------------------------------------------------------------- fork */

static atomic_bool stop;

struct worker {
    pthread_t thread;
    const iso_executor *executor;
    struct room *room;
    size_t number, bad, done;
};

static void *compute(void *arg) {
    struct worker *w = arg;
    while (!atomic_load(&stop)) {
        w->bad += !same_bits(w->room, w->done % EVERY_OP_COUNT, w->executor);
        ++w->done;
    }
    return NULL;
}

static void *fork_often(void *arg) {
    struct worker *w = arg;
    for (size_t i = 0; i < forks_of_each(); ++i) {
        const size_t op = (i + w->number * 3) % EVERY_OP_COUNT;
        const pid_t child = fork();
        if (child == 0) {
            const bool good = same_bits(w->room, op, w->executor) && same_bits(w->room, op, NULL);
            _exit(good ? 0 : 1);
        }
        const int result = await(child);
        w->bad += result != 0;
        ++w->done;
    }
    return NULL;
}

/* Four threads fork at once, while two others have the pool. */
static void test_forks(void **state) {
    (void)state;
    iso_pool *pool = make_pool(3);
    struct worker workers[FORKERS + 2];
    memset(workers, 0, sizeof(workers));
    atomic_store(&stop, false);
    for (size_t i = FORKERS + 2; i-- > 0;) {
        workers[i].number = i;
        workers[i].executor = iso_pool_executor(pool);
        workers[i].room = make_room();
        assert_int_equal(pthread_create(&workers[i].thread, NULL,
                                        i < FORKERS ? fork_often : compute, &workers[i]),
                         0);
    }
    size_t bad = 0, forks = 0;
    for (size_t i = 0; i < FORKERS + 2; ++i) {
        atomic_store(&stop, i >= FORKERS);
        pthread_join(workers[i].thread, NULL);
        bad += workers[i].bad;
        forks += i < FORKERS ? workers[i].done : 0;
        assert_true(workers[i].done > 0);
        free(workers[i].room);
    }
    print_message("          (%zu forks beside %zu + %zu operations)\n", forks,
                  workers[FORKERS].done, workers[FORKERS + 1].done);
    assert_int_equal(bad, 0);
    iso_pool_destroy(pool);
}

/* ---------------------------------------------------------------------------------- exec, exit */

static iso_pool *doomed;

static void exit_in_task(void *arg, size_t i) {
    (void)arg;
    if (i == 5) {
        exit(EXITED);
    }
    usleep(1000);
}

static void *endless(void *arg) {
    struct room *room = arg;
    while (all_same_bits(room, iso_pool_executor(doomed))) {
    }
    abort();
}

/* What this program does when it is run anew. */
static int act(const char *what) {
    struct room *room = aligned_alloc(64, sizeof(*room));
    if (!room || iso_pool_create(&doomed, strcmp(what, "small stack") == 0 ? 4 : 3) != ISOBIT_OK ||
        !all_same_bits(room, iso_pool_executor(doomed))) {
        return 1;
    }
    if (strcmp(what, "exit in a task") == 0) {
        const iso_executor *executor = iso_pool_executor(doomed);
        executor->parallel_for(executor->user, 100, exit_in_task, NULL);
        return 2;
    }
    if (strcmp(what, "exit beside a region") == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, endless, room) != 0) {
            return 3;
        }
        usleep(20000);
        exit(EXITED);
    }
    iso_pool_destroy(doomed);
    free(room);
    return 0;
}

static void test_exec_and_exit(void **state) {
    (void)state;
    if (emulated()) {
        skip();
    }
    iso_pool *pool = make_pool(3);
    struct worker w = {.executor = iso_pool_executor(pool), .room = make_room()};
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&w.thread, NULL, compute, &w), 0);
    int results[3][10];
    for (size_t i = 0; i < 10; ++i) {
        results[0][i] = run_self("exec", NULL);
        results[1][i] = run_self("exit in a task", NULL);
        results[2][i] = run_self("exit beside a region", NULL);
    }
    atomic_store(&stop, true);
    pthread_join(w.thread, NULL);
    assert_int_equal(w.bad, 0);
    for (size_t i = 0; i < 10; ++i) {
        assert_int_equal(results[0][i], 0);
        assert_int_equal(results[1][i], EXITED);
        assert_int_equal(results[2][i], EXITED);
    }
    free(w.room);
    iso_pool_destroy(pool);
}

/* -------------------------------------------------------------------------------------- limits */

static void small_stack(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_STACK, &limit);
    limit.rlim_cur = 64 << 10;
    setrlimit(RLIMIT_STACK, &limit); /* also of threads, unless they ask for another size */
}

static void test_small_stack(void **state) {
    (void)state;
    if (SANITIZED || emulated()) {
        skip(); /* their own stack frames are larger */
    }
    assert_int_equal(run_self("small stack", small_stack), 0);
}

static void test_more_threads_than_cpus(void **state) {
    (void)state;
    iso_pool *pool = make_pool(64);
    struct room *room = make_room();
    assert_int_equal(iso_pool_executor(pool)->max_threads, 64);
    for (int round = 0; round < (SANITIZED || emulated() ? 2 : 50); ++round) {
        assert_true(all_same_bits(room, iso_pool_executor(pool)));
    }
    free(room);
    iso_pool_destroy(pool);
}

static void *call_often(void *arg) {
    struct worker *w = arg;
    for (size_t round = 0; round < ROUNDS; ++round) {
        w->bad += !same_bits(w->room, (w->number + round) % EVERY_OP_COUNT, w->executor);
        ++w->done;
    }
    return NULL;
}

static void test_concurrent_callers(void **state) {
    (void)state;
    static struct worker callers[CALLERS];
    iso_pool *pool = make_pool(3);
    memset(callers, 0, sizeof(callers));
    for (size_t i = 0; i < CALLERS; ++i) {
        callers[i].number = i;
        callers[i].executor = iso_pool_executor(pool);
        callers[i].room = make_room();
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
    }
    size_t bad = 0;
    for (size_t i = 0; i < CALLERS; ++i) {
        pthread_join(callers[i].thread, NULL);
        bad += callers[i].bad + (callers[i].done != ROUNDS);
        free(callers[i].room);
    }
    assert_int_equal(bad, 0);
    iso_pool_destroy(pool);
}

/* ------------------------------------------------------------------------------------- signals */

static atomic_int signals_seen, on_own_stack;
static char signal_stack[64 << 10];

/* Uses every vector register that memset and arithmetic can get hold of, and much stack. */
static void disturb(int number) {
    char scratch[4096];
    volatile float sum = 0;
    (void)number;
    memset(scratch, atomic_load(&signals_seen) & 0xff, sizeof(scratch));
    for (int i = 0; i < 64; ++i) {
        sum = sum * 1.5f + (float)scratch[i * 61];
    }
    const char *at = scratch;
    if (at >= signal_stack && at < signal_stack + sizeof(signal_stack)) {
        atomic_store(&on_own_stack, 1);
    }
    atomic_fetch_add(&signals_seen, 1);
}

/* Two clocks: one interrupts the caller, on a stack of its own, the other one any thread that
 * computes, workers included. */
static void test_signals(void **state) {
    (void)state;
    iso_pool *pool = make_pool(3);
    struct room *room = make_room();
    const stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof(signal_stack)};
    stack_t old_stack;
    struct sigaction old[2], action = {.sa_handler = disturb, .sa_flags = SA_ONSTACK | SA_RESTART};
    const struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    sigfillset(&action.sa_mask);
    assert_int_equal(sigaltstack(&stack, &old_stack), 0);
    assert_int_equal(sigaction(SIGALRM, &action, &old[0]), 0);
    assert_int_equal(sigaction(SIGPROF, &action, &old[1]), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    assert_int_equal(setitimer(ITIMER_PROF, &often, NULL), 0);
    size_t bad = 0, rounds = 0;
    const int wanted = SANITIZED || emulated() ? 50 : 1000;
    for (; rounds < 10000 && (rounds < 20 || atomic_load(&signals_seen) < wanted); ++rounds) {
        bad += !all_same_bits(room, rounds % 2 ? iso_pool_executor(pool) : NULL);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    setitimer(ITIMER_PROF, &never, NULL);
    sigaction(SIGALRM, &old[0], NULL);
    sigaction(SIGPROF, &old[1], NULL);
    sigaltstack(&old_stack, NULL);
    print_message("          (%d signals in %zu rounds)\n", atomic_load(&signals_seen), rounds);
    assert_int_equal(bad, 0);
    assert_true(atomic_load(&signals_seen) >= wanted);
    assert_true(SANITIZED || atomic_load(&on_own_stack)); /* TSan calls handlers later, elsewhere */
    free(room);
    iso_pool_destroy(pool);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forks),
        cmocka_unit_test(test_exec_and_exit),
        cmocka_unit_test(test_small_stack),
        cmocka_unit_test(test_more_threads_than_cpus),
        cmocka_unit_test(test_concurrent_callers),
        cmocka_unit_test(test_signals),
    };
    self = argv[0];
    every_op_init();
    if (!every_op_all(expected, NULL)) {
        fprintf(stderr, "the operations do not work\n");
        return 2;
    }
    return argc > 1 ? act(argv[1]) : cmocka_run_group_tests_name("process", tests, NULL, NULL);
}
