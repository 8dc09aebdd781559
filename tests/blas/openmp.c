/* SPDX-License-Identifier: MIT
 *
 * In a program with OpenMP, large calls are regions of its runtime, with the threads that are
 * there: the same bits, no further threads, none in a region of the program nor in the child of a
 * fork. Once with gcc's own runtime, once with one of ours (fake_openmp.c) that counts its regions.
 */
#include "pattern.h"

#include <isobit/cblas.h>

#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 192, TEAM = 3, CALLERS = 4, BATCH = 2 * TEAM + 1 };

static float *a, *b, *serial;

static void product(float *c) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, N, N, N, 1, a, N, b, N, 0, c, N);
}

static int equal(const void *x, const void *y) { return memcmp(x, y, N * N * sizeof(float)) == 0; }

static int is_right(void) {
    float *c = must(malloc(N * N * sizeof *c));
    product(c);
    const int same = equal(c, serial);
    free(c);
    return same;
}

/* Products that are items of one region. What is behind the last one stays. */
static int is_right_in_batches(void) {
    float *c = must(calloc((BATCH + 1) * N * N, sizeof *c));
    cblas_sgemm_batch_strided(CblasRowMajor, CblasNoTrans, CblasNoTrans, N, N, N, 1, a, N, 0, b, N,
                              0, 0, c, N, N * N, BATCH);
    int same = 1;
    for (int i = 0; i < BATCH; i++)
        same &= equal(c + i * N * N, serial);
    for (int i = BATCH * N * N; i < (BATCH + 1) * N * N; i++)
        same &= c[i] == 0;
    free(c);
    return same;
}
#define RIGHT(what)                                                                                \
    do {                                                                                           \
        if (!is_right())                                                                           \
            FAIL("%s: other bits", what);                                                          \
    } while (0)

static int threads_now(void) {
    int n = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *e; tasks && (e = readdir(tasks));)
        n += e->d_name[0] != '.';
    if (tasks)
        closedir(tasks);
    return n;
}

/* A child that is asked to compute with several threads: not those of OpenMP, which it lacks. */
static void child(void) {
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        const int before = threads_now();
        _exit(!is_right() ? 1 : threads_now() == before ? 2 : 0);
    }
    int status = -1;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        FAIL("the child of a fork ends with %d", status);
}

static void *call(void *arg) {
    (void)arg;
    int right = 1;
    for (int i = 0; i < 20; i++)
        right &= is_right();
    return right ? serial : NULL;
}
static void many_callers(void) {
    pthread_t callers[CALLERS];
    for (int i = 0; i < CALLERS; i++)
        if (pthread_create(&callers[i], NULL, call, NULL) != 0)
            exit(1);
    for (int i = 0; i < CALLERS; i++) {
        void *right = NULL;
        pthread_join(callers[i], &right);
        if (right == NULL)
            FAIL("with many callers: other bits");
    }
}

#ifdef ISOBIT_FAKE_OPENMP
#include <dlfcn.h>

static void openmp(void) {
    void (*set)(int, int);
    int (*regions)(void), (*most)(void);
    void *runtime = dlopen(ISOBIT_FAKE_OPENMP, RTLD_NOW | RTLD_LOCAL);
    if (runtime == NULL) {
        FAIL("%s", dlerror());
        return;
    }
    *(void **)&set = dlsym(runtime, "fake_openmp");
    *(void **)&regions = dlsym(runtime, "fake_openmp_regions");
    *(void **)&most = dlsym(runtime, "fake_openmp_most");
    int before = regions();
#define REGIONS(want, what)                                                                        \
    do {                                                                                           \
        if (regions() - before != (want))                                                          \
            FAIL("%s: %d regions, not %d", what, regions() - before, want);                        \
        before = regions();                                                                        \
    } while (0)
    const int threads = threads_now();
    set(0, TEAM);
    RIGHT("outside of regions");
    REGIONS(1, "outside of regions");
    if (!is_right_in_batches())
        FAIL("a batch: other bits");
    REGIONS(1, "a batch");
    set(1, TEAM);
    RIGHT("in a region");
    REGIONS(0, "in a region");
    if (threads_now() != threads)
        FAIL("a pool was made");
    set(0, TEAM);
    many_callers();
    if (regions() == before)
        FAIL("many callers: no region");
    if (most() > 1)
        FAIL("many callers: %d regions at a time", most());
    before = regions();
    child();
    set(0, TEAM + 1); /* a region of fewer threads would end one of the program's */
    RIGHT("another number of threads");
    REGIONS(0, "another number of threads");
    if (threads_now() == threads)
        FAIL("another number of threads: no pool");
}
#else
#include <omp.h>

static void openmp(void) {
    int right = 0, wrong = 0, team = 0;
    omp_set_num_threads(TEAM);
#pragma omp parallel
#pragma omp atomic
    team++;
    const int threads = threads_now();
    if (threads < team)
        FAIL("%d threads, a team of %d", threads, team);
    for (int i = 0; i < 20; i++)
        RIGHT("outside of regions");
    if (!is_right_in_batches())
        FAIL("a batch: other bits");
#pragma omp parallel reduction(+ : right, wrong)
    if (is_right())
        right++;
    else
        wrong++;
    if (right < 1 || wrong > 0)
        FAIL("in a region: %d are right and %d wrong", right, wrong);
    if (threads_now() != threads)
        FAIL("a pool was made: %d threads, %d before", threads_now(), threads);
    child();
    many_callers();
    RIGHT("after all that");
}
#endif

int main(void) {
    a = random_floats(N * N, 1), b = random_floats(N * N, 2);
    serial = must(malloc(N * N * sizeof *serial));
    openblas_set_num_threads(1);
    product(serial);
    openblas_set_num_threads(TEAM);
    openmp();
    free(a), free(b), free(serial);
    return end("openmp");
}
