/* SPDX-License-Identifier: MIT
 *
 * Batches and threads.
 */
#include "test_blas.h"

void test_batch(void **unused) {
    (void)unused;
    enum { COUNT = 9, D = 48 };
    const size_t n = (size_t)D * D;
    float *a = numbers(COUNT * n), *b = numbers(COUNT * n), *c = numbers(COUNT * n);
    float *want = copy_of(c, COUNT * n), *got = copy_of(c, COUNT * n);
    for (int i = 0; i < COUNT; i++)
        cblas_sgemm(CblasColMajor, i < 4 ? CblasTrans : CblasNoTrans, CblasNoTrans, D,
                    i < 4 ? D : 20, i < 4 ? 30 : D, i < 4 ? 1 : 0.5f, a + (size_t)i * n, D,
                    b + (size_t)i * n, D, i < 4 ? 0 : 2, want + (size_t)i * n, D);
    const CBLAS_TRANSPOSE ta[3] = {CblasTrans, CblasTrans, CblasNoTrans};
    const CBLAS_TRANSPOSE tb[3] = {CblasNoTrans, CblasNoTrans, CblasNoTrans};
    const int m[3] = {D, D, D}, cols[3] = {D, D, 20}, k[3] = {30, 30, D}, ld[3] = {D, D, D};
    const int sizes[3] = {4, 0, 5}; /* one group is empty */
    const float alpha[3] = {1, 9, 0.5f}, beta[3] = {0, 9, 2}, *as[COUNT], *bs[COUNT];
    float *cs[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        as[i] = a + i * n, bs[i] = b + i * n, cs[i] = got + i * n;
    for (int threads = 1; threads <= 4; threads++) {
        openblas_set_num_threads(threads);
        memcpy(got, c, COUNT * n * sizeof *c);
        cblas_sgemm_batch(CblasColMajor, ta, tb, m, cols, k, alpha, as, ld, bs, ld, beta, cs, ld, 3,
                          sizes);
        same(got, want, COUNT * n);
    }
    openblas_set_num_threads(0);
    memcpy(got, c, COUNT * n * sizeof *c);
    cblas_sgemm_batch_strided(CblasRowMajor, CblasNoTrans, CblasTrans, 20, 30, D, 1, a, D, (int)n,
                              b, D, 0, 1, got, D, (int)n, COUNT);
    memcpy(want, c, COUNT * n * sizeof *c);
    for (size_t i = 0; i < COUNT; i++)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, 20, 30, D, 1, a + i * n, D, b, D, 1,
                    want + i * n, D);
    same(got, want, COUNT * n);
    memcpy(got, c, COUNT * n * sizeof *c);
    cblas_sgemm_batch_strided(CblasColMajor, CblasNoTrans, CblasTrans, 20, 30, D, 1, a, D, 0, b, D,
                              (int)n, 1, got, D, (int)n, COUNT);
    memcpy(want, c, COUNT * n * sizeof *c);
    for (size_t i = 0; i < COUNT; i++)
        cblas_sgemm(CblasColMajor, CblasNoTrans, CblasTrans, 20, 30, D, 1, a, D, b + i * n, D, 1,
                    want + i * n, D);
    same(got, want, COUNT * n);
    /* A and B begin at the same place, and step differently. */
    for (int row = 0; row < 2; row++) {
        const CBLAS_LAYOUT layout = row ? CblasRowMajor : CblasColMajor;
        memcpy(got, c, COUNT * n * sizeof *c);
        memcpy(want, c, COUNT * n * sizeof *c);
        cblas_sgemm_batch_strided(layout, CblasNoTrans, CblasTrans, 20, 30, D, 1, a, D, (int)n, a,
                                  D, 0, 1, got, D, (int)n, COUNT);
        for (size_t i = 0; i < COUNT; i++)
            cblas_sgemm(layout, CblasNoTrans, CblasTrans, 20, 30, D, 1, a + i * n, D, a, D, 1,
                        want + i * n, D);
        same(got, want, COUNT * n);
    }
    free(a), free(b), free(c), free(want), free(got);
    assert_int_equal(reports, 0);
}

/* ------------------------------------------------------------------------------------ threads */

static size_t threads_now(void) {
    size_t n = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (const struct dirent *e; (e = readdir(tasks));)
        n += e->d_name[0] != '.';
    closedir(tasks);
    return n;
}

/* A product, a product of matrix and vector, and a triangle that are worth several threads. */
enum { WORTH = 192, OUTPUTS = WORTH * WORTH * 2 + WORTH * 4 };
float *wide_a, *wide_b;
static void wide(float *out) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, WORTH, WORTH, WORTH, 0.5f, wide_a, WORTH,
                wide_b, WORTH, 0, out, WORTH);
    memset(out + WORTH * WORTH, 0, WORTH * WORTH * sizeof *out);
    cblas_ssyrk(CblasRowMajor, CblasLower, CblasTrans, WORTH, WORTH, 1, wide_a, WORTH, 0,
                out + WORTH * WORTH, WORTH);
    float *rest = out + 2 * WORTH * WORTH;
    cblas_sgemv(CblasRowMajor, CblasTrans, 4 * WORTH, WORTH, 1, wide_a, WORTH, wide_b, 2, 0, rest,
                1);
    cblas_sgemv(CblasRowMajor, CblasNoTrans, WORTH, 4 * WORTH, 2, wide_a, 4 * WORTH, wide_b, 1, 0,
                rest + WORTH, 1);
    cblas_sger(CblasRowMajor, WORTH, WORTH, 0.25f, wide_a, 1, wide_b, 1, out, WORTH);
    memset(rest + 2 * WORTH, 0, 2 * WORTH * sizeof *out);
}

static float serial[OUTPUTS];
static bool is_serial(const void *out) {
    const void *want = serial;
    return memcmp(out, want, sizeof serial) == 0;
}
static void begin_wide(void) {
    if (wide_a)
        return;
    state = 77;
    wide_a = numbers(4 * WORTH * WORTH), wide_b = numbers(4 * WORTH * WORTH);
    openblas_set_num_threads(1);
    wide(serial);
    openblas_set_num_threads(0);
}
static void wide_is_the_same(void) {
    float *out = numbers(OUTPUTS);
    wide(out);
    same(out, serial, OUTPUTS);
    free(out);
}

void test_threads(void **unused) {
    (void)unused;
    begin_wide();
    const size_t before = threads_now();
    openblas_set_num_threads(1);
    assert_int_equal(openblas_get_num_threads(), 1);
    wide_is_the_same();
    assert_int_equal(threads_now(), before);
    static const int counts[] = {3, 2, 5, 8};
    for (int i = 0; i < 4; i++) {
        openblas_set_num_threads(counts[i]);
        assert_int_equal(openblas_get_num_threads(), counts[i]);
        wide_is_the_same();
        assert_true(threads_now() >= before + (size_t)counts[i] - 1);
    }
    openblas_set_num_threads(-1);
    assert_true(openblas_get_num_threads() >= 1);
    assert_int_equal(openblas_get_parallel(), 1);
    assert_non_null(strstr(openblas_get_config(), "isobit"));
    assert_string_equal(openblas_get_corename(), iso_isa_name(iso_isa_active()));
}

static void *call_wide(void *unused) {
    float *out = malloc(OUTPUTS * sizeof *out);
    for (int i = 0; out && i < (quick && !SANITIZED ? 1 : 3); i++)
        wide(out);
    const bool good = out && is_serial(out);
    free(out);
    (void)unused;
    return good ? serial : NULL;
}

void test_many_callers(void **unused) {
    (void)unused;
    pthread_t threads[6];
    const int callers = quick && !SANITIZED ? 3 : 6; /* 46 s under qemu */
    begin_wide();
    openblas_set_num_threads(4);
    for (int i = 0; i < callers; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_wide, NULL), 0);
    for (int i = 0; i < callers; i++) {
        void *good = NULL;
        pthread_join(threads[i], &good);
        assert_non_null(good);
    }
    openblas_set_num_threads(0);
}

/* qemu and the thread sanitizer cannot start a thread in a child of a process that has threads. */
static void skip_emulated(void) {
    if (getenv("ISOBIT_EMULATED"))
        skip();
}

/* After a fork the child has a pool of its own. */
void test_fork(void **unused) {
    (void)unused;
    skip_emulated();
    begin_wide();
    openblas_set_num_threads(4);
    wide_is_the_same();
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        float *out = malloc(OUTPUTS * sizeof *out);
        const size_t before = threads_now();
        wide(out);
        _exit(!is_serial(out) ? 1 : threads_now() == before ? 2 : 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    wide_is_the_same();
    openblas_set_num_threads(0);
}

/* Inside of a parallel region of OpenMP a call stays on its thread; outside, the runtime's number
 * of threads is a limit, unless the program has said another one to us. In a child, since what was
 * loaded stays. */
static void openmp_in_child(void) {
#ifdef ISOBIT_FAKE_OPENMP
    void (*fake)(int, int);
    alarm(60);
    openblas_set_num_threads(0);
    const int all = openblas_get_num_threads();
    void *runtime = dlopen(ISOBIT_FAKE_OPENMP, RTLD_NOW | RTLD_LOCAL);
    *(void **)&fake = runtime ? dlsym(runtime, "fake_openmp") : NULL;
    if (!fake)
        _exit(10);
    fake(0, 1);
    if (openblas_get_num_threads() != 1)
        _exit(11);
    fake(0, 1000);
    if (openblas_get_num_threads() != all)
        _exit(12);
    fake(1, 1);
    openblas_set_num_threads(6);
    if (openblas_get_num_threads() != 6)
        _exit(13);
    const size_t before = threads_now();
    float *out = malloc(OUTPUTS * sizeof *out);
    wide(out);
    if (!is_serial(out))
        _exit(14);
    if (threads_now() != before)
        _exit(15); /* a pool was made */
    fake(0, 1);
    wide(out);
    _exit(!is_serial(out) ? 16 : threads_now() == before ? 17 : 0);
#endif
}

void test_openmp(void **unused) {
    (void)unused;
#ifdef ISOBIT_FAKE_OPENMP
    skip_emulated();
    begin_wide();
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        openmp_in_child();
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
#else
    openmp_in_child();
    skip();
#endif
}
