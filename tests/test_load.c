/* SPDX-License-Identifier: MIT
 *
 * Loading the shared libraries, first use, unloading: nothing of the process changes but what was
 * asked for. This program is not linked to the libraries; it gets their paths as arguments.
 *
 * What a library could change is written down as text, before and after.
 */
#include <isobit/ops.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { LIBRARIES = 2, RELOADS = 100, PATIENCE_MS = 20000 };
static const char *paths[LIBRARIES];
static int path_count;
extern char **environ;

/* The first thing that was wrong; said only where it can be seen. */
static char report[1000];

static void wrong(const char *what, const char *from, const char *to) {
    if (!report[0]) {
        snprintf(report, sizeof(report), "%s%s%.400s%s%.400s", what, from ? "\n  " : "",
                 from ? from : "", to ? "\nbecame\n  " : "", to ? to : "");
    }
}

static void expect(bool good, const char *what) {
    if (!good) {
        wrong(what, NULL, NULL);
    }
}

static void no_report(void) {
    char text[sizeof(report)];
    memcpy(text, report, sizeof(text));
    report[0] = '\0';
    if (text[0]) {
        fail_msg("%s", text);
    }
}

/* ------------------------------------------------------------------------- the process as text */

static unsigned long float_control(void) {
#if defined(__x86_64__)
    return __builtin_ia32_stmxcsr() & ~0x3fu; /* without the flags that arithmetic leaves */
#elif defined(__aarch64__)
    unsigned long control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
#else
    return 0;
#endif
}

static unsigned x87_control(void) {
#if defined(__x86_64__)
    unsigned short control;
    __asm__ volatile("fnstcw %0" : "=m"(control));
    return control;
#else
    return 0;
#endif
}

static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static void list_numbers(FILE *to, const char *name, const char *directory) {
    int numbers[256], count = 0;
    DIR *d = opendir(directory);
    expect(d != NULL, directory);
    for (struct dirent *e; d && (e = readdir(d)) && count < 256;) {
        const int number = atoi(e->d_name);
        if (e->d_name[0] != '.' && !(strstr(directory, "/fd") && number == dirfd(d))) {
            numbers[count++] = number;
        }
    }
    if (d) {
        closedir(d);
    }
    qsort(numbers, (size_t)count, sizeof(*numbers), by_number);
    fprintf(to, "%s:", name);
    for (int i = 0; i < count; ++i) {
        fprintf(to, " %d", numbers[i]);
    }
    fprintf(to, "\n");
}

static void print_signals(FILE *to, const char *name, const sigset_t *set) {
    fprintf(to, "%s:", name);
    for (int s = 1; s <= SIGRTMAX; ++s) {
        if (sigismember(set, s) == 1) {
            fprintf(to, " %d", s);
        }
    }
    fprintf(to, "\n");
}

/* What /proc says of the threads beside the first, of the mask of files, of privileges. */
static void print_status(FILE *to) {
    static const char *const wanted[] = {
        "Umask",       "Threads", "SigBlk", "SigIgn", "NoNewPrivs", "Seccomp", "Cpus_allowed_list",
        "THP_enabled", "CapEff",  "Uid",    "Gid"};
    char line[512];
    FILE *status = fopen("/proc/self/status", "re");
    expect(status != NULL, "no /proc/self/status");
    while (status && fgets(line, sizeof(line), status)) {
        for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); ++i) {
            const size_t n = strlen(wanted[i]);
            if (strncmp(line, wanted[i], n) == 0 && line[n] == ':') {
                fputs(line, to);
            }
        }
    }
    if (status) {
        fclose(status);
    }
}

static char *snapshot(void) {
    char *text = NULL, directory[4096];
    size_t bytes;
    const unsigned long mxcsr = float_control();
    const unsigned x87 = x87_control();
    FILE *to = open_memstream(&text, &bytes);
    if (!to) {
        abort();
    }
    fprintf(to, "MXCSR or FPCR: %lx, x87: %x\n", mxcsr, x87);
    fprintf(to, "rounding: %d, traps: %d\n", fegetround(), fegetexcept());
    for (int s = 1; s <= SIGRTMAX; ++s) {
        struct sigaction action;
        if (sigaction(s, NULL, &action) == 0) {
            fprintf(to, "signal %d: %p %x ", s, *(void **)(void *)&action.sa_handler,
                    (unsigned)action.sa_flags);
            print_signals(to, "mask", &action.sa_mask);
        }
    }
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    print_signals(to, "blocked", &mask);
    stack_t stack;
    expect(sigaltstack(NULL, &stack) == 0, "sigaltstack");
    fprintf(to, "signal stack: %p %x %zu\n", stack.ss_sp, (unsigned)stack.ss_flags, stack.ss_size);
    fprintf(to, "locale: %s\n", setlocale(LC_ALL, NULL));
    fprintf(to, "environment at %p:\n", (void *)environ);
    for (char **e = environ; *e; ++e) {
        fprintf(to, "  %p %s\n", (void *)*e, *e);
    }
    for (int r = 0; r < (int)RLIM_NLIMITS; ++r) {
        struct rlimit limit = {0};
        getrlimit((__rlimit_resource_t)r, &limit);
        fprintf(to, "limit %d: %llu %llu\n", r, (unsigned long long)limit.rlim_cur,
                (unsigned long long)limit.rlim_max);
    }
    for (int t = ITIMER_REAL; t <= ITIMER_PROF; ++t) {
        struct itimerval timer = {0};
        getitimer((__itimer_which_t)t, &timer);
        fprintf(to, "timer %d: %s\n", t, timerisset(&timer.it_value) ? "runs" : "off");
    }
    fprintf(to, "directory: %s\n", getcwd(directory, sizeof(directory)));
    fprintf(to, "nice: %d, scheduler: %d, dumpable: %d\n", getpriority(PRIO_PROCESS, 0),
            sched_getscheduler(0), prctl(PR_GET_DUMPABLE));
    list_numbers(to, "files", "/proc/self/fd");
    list_numbers(to, "threads", "/proc/self/task");
    print_status(to);
    fclose(to);
    return text;
}

/* Compares with the text from before, which it frees; line by line, for the report. */
static void unchanged(char *before, const char *when) {
    char *after = snapshot();
    char *save_a = NULL, *save_b = NULL;
    char *a = strtok_r(before, "\n", &save_a), *b = strtok_r(after, "\n", &save_b);
    while (a && b && strcmp(a, b) == 0) {
        a = strtok_r(NULL, "\n", &save_a);
        b = strtok_r(NULL, "\n", &save_b);
    }
    if (a || b) {
        wrong(when, a ? a : "(nothing)", b ? b : "(nothing)");
    }
    free(before);
    free(after);
}

/* ------------------------------------------------------------------------------- the libraries */

struct api {
    void *handle;
    __typeof__(iso_isa_active) *isa_active;
    __typeof__(iso_info_json) *info_json;
    __typeof__(iso_gemm_f32) *gemm;
    __typeof__(iso_pool_create) *pool_create;
    __typeof__(iso_pool_destroy) *pool_destroy;
    __typeof__(iso_pool_executor) *pool_executor;
};

static void symbol(struct api *api, void *to, const char *name) {
    void *address = api->handle ? dlsym(api->handle, name) : NULL;
    if (!address) {
        wrong(dlerror(), NULL, NULL);
        api->handle = NULL;
    }
    memcpy(to, &address, sizeof(address));
}

/* Its handle is NULL when that failed, and there is a report. */
static struct api load(int library) {
    struct api api = {.handle = dlopen(paths[library], RTLD_NOW | RTLD_LOCAL)};
    symbol(&api, &api.isa_active, "iso_isa_active");
    symbol(&api, &api.info_json, "iso_info_json");
    symbol(&api, &api.gemm, "iso_gemm_f32");
    symbol(&api, &api.pool_create, "iso_pool_create");
    symbol(&api, &api.pool_destroy, "iso_pool_destroy");
    symbol(&api, &api.pool_executor, "iso_pool_executor");
    return api;
}

enum { M = 67, N = 83, K = 41 };

/* A product of small integers: exact, whatever the rounding mode. */
static bool multiplies(const struct api *api, const iso_executor *executor) {
    static float a[M * K], b[K * N];
    static float c[M * N];
    const iso_context context = {.size = sizeof(context), .executor = executor};
    for (int i = 0; i < M * K; ++i) {
        a[i] = (float)(i % 7 - 3);
    }
    for (int i = 0; i < K * N; ++i) {
        b[i] = (float)(i % 5 - 2);
    }
    if (api->gemm(c, N, a, K, b, N, M, N, K, NULL, &context) != ISOBIT_OK) {
        return false;
    }
    for (int i = 0; i < M; ++i) {
        for (int j = 0; j < N; ++j) {
            int sum = 0;
            for (int k = 0; k < K; ++k) {
                sum += ((i * K + k) % 7 - 3) * ((k * N + j) % 5 - 2);
            }
            if (c[i * N + j] != (float)sum) {
                return false;
            }
        }
    }
    return true;
}

static size_t live_threads(void) {
    size_t count = 0;
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d && (e = readdir(d));) {
        count += e->d_name[0] != '.';
    }
    if (d) {
        closedir(d);
    }
    return count;
}

/* A thread that was joined may still be listed for an instant. */
static bool threads_become(size_t count) {
    for (int i = 0; i < PATIENCE_MS && live_threads() != count; ++i) {
        usleep(1000);
    }
    return live_threads() == count;
}

/* Runs the body in a child, which exits as programs do; its exit status, or minus the signal. */
static int in_child(void (*body)(const struct api *), const struct api *api) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* cmocka's until here */
        signal(SIGBUS, SIG_DFL);
        body(api);
        exit(99);
    }
    for (int i = 0; child > 0 && i < PATIENCE_MS; ++i) {
        int status = 0;
        if (waitpid(child, &status, WNOHANG) == child) {
            return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
        }
        usleep(1000);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return -SIGKILL;
}

/* ----------------------------------------------------------------------------------- the tests */

static void handler(int number) { (void)number; }

static void leaves(const struct api *api) {
    (void)api;
    exit(0);
}

/* One library through its life. What it prints would be seen: output goes to a file meanwhile. */
static void test_library(int library) {
    static char info[8192];
    iso_pool *pool = NULL;
    char *before = snapshot();
    expect(!dlopen(paths[library], RTLD_NOW | RTLD_NOLOAD), "the library is loaded already");
    fflush(NULL);
    const int quiet = memfd_create("output", MFD_CLOEXEC), out = dup(1), err = dup(2);
    expect(dup2(quiet, 1) == 1 && dup2(quiet, 2) == 2, "output could not be redirected");

    char *text = snapshot();
    const struct api api = load(library);
    unchanged(text, "loading");
    text = snapshot();
    if (api.handle) {
        expect(api.isa_active() && multiplies(&api, NULL) &&
                   api.info_json(info, sizeof(info), NULL) == ISOBIT_OK,
               "the library does not work");
    }
    unchanged(text, "first use");

    /* Threads come with a pool and go with it. */
    const size_t threads = live_threads();
    text = snapshot();
    if (api.handle) {
        expect(api.pool_create(&pool, 3) == ISOBIT_OK, "no pool");
        expect(live_threads() == threads + 2, "a pool of three did not start two threads");
        expect(multiplies(&api, api.pool_executor(pool)), "the pool does not work");
        api.pool_destroy(pool);
        expect(threads_become(threads), "threads stayed");
    }
    unchanged(text, "a pool");
    if (api.handle) {
        expect(dlclose(api.handle) == 0, "dlclose");
    }

    fflush(NULL);
    expect(lseek(quiet, 0, SEEK_END) == 0, "something was printed");
    expect(dup2(out, 1) == 1 && dup2(err, 2) == 2, "output could not be restored");
    close(quiet);
    close(out);
    close(err);
    unchanged(before, "the whole");
    /* Its handlers of fork are gone as well, or still there: not in between. */
    expect(in_child(leaves, NULL) == 0, "a child after dlclose does not exit");
}

static int chosen;

static _Noreturn void end_child(void) {
    if (report[0]) {
        fprintf(stderr, "%s: %s\n", paths[chosen], report);
    }
    exit(report[0] ? 1 : 0);
}

static void usual(const struct api *api) {
    (void)api;
    test_library(chosen);
    end_child();
}

/* Nothing is set back to the usual either. */
static void unusual(const struct api *api) {
    (void)api;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGALRM);
    static char stack[64 << 10];
    const stack_t alternative = {.ss_sp = stack, .ss_size = sizeof(stack)};
    const struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaltstack(&alternative, NULL);
    sigaction(SIGUSR1, &action, NULL);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    expect(setlocale(LC_ALL, "C.UTF-8") != NULL, "no locale C.UTF-8");
    setenv("LC_NUMERIC", "de_DE", 1);
    fesetround(FE_UPWARD);
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040); /* flush to zero, both ways */
#endif
    test_library(chosen);
    end_child();
}

/* In children, since a library is loaded for the first time only once. */
static void test_libraries(void **state) {
    (void)state;
    for (chosen = 0; chosen < path_count; ++chosen) {
        assert_int_equal(in_child(usual, NULL), 0);
        assert_int_equal(in_child(unusual, NULL), 0);
    }
}

static void test_many_times(void **state) {
    (void)state;
    char *before = snapshot();
    const size_t threads = live_threads();
    for (int i = 0; i < RELOADS; ++i) {
        const struct api api = load(i % path_count);
        no_report();
        iso_pool *pool = NULL;
        assert_int_equal(api.pool_create(&pool, 2), ISOBIT_OK);
        assert_true(multiplies(&api, api.pool_executor(pool)));
        api.pool_destroy(pool);
        assert_int_equal(dlclose(api.handle), 0);
    }
    assert_true(threads_become(threads));
    unchanged(before, "a hundred times");
    no_report();
}

/* As a plugin does: loaded and used by a thread that ends before the others go on. */
static void *load_and_use(void *arg) {
    struct api *api = arg;
    *api = load(0);
    return api->handle && multiplies(api, NULL) ? arg : NULL;
}

static void test_another_thread(void **state) {
    (void)state;
    struct api api;
    pthread_t thread;
    void *good = NULL;
    assert_int_equal(pthread_create(&thread, NULL, load_and_use, &api), 0);
    pthread_join(thread, &good);
    assert_non_null(good);
    assert_true(multiplies(&api, NULL));
    assert_int_equal(dlclose(api.handle), 0);
}

static void exits_with_pool(const struct api *api) {
    iso_pool *pool = NULL;
    if (api->pool_create(&pool, 3) != ISOBIT_OK || !multiplies(api, api->pool_executor(pool))) {
        exit(1);
    }
    exit(0);
}

/*
 * Unloaded although a pool lives: its sleeping threads must not wake up where there is no code any
 * more. A signal that they do not block wakes them.
 */
static void closes_with_pool(const struct api *api) {
    iso_pool *pool = NULL;
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGPROF, &action, NULL);
    if (api->pool_create(&pool, 3) != ISOBIT_OK || !multiplies(api, api->pool_executor(pool)) ||
        dlclose(api->handle) != 0) {
        exit(1);
    }
    for (int round = 0; round < 5; ++round) {
        DIR *d = opendir("/proc/self/task");
        for (struct dirent *e; d && (e = readdir(d));) {
            const long thread = atol(e->d_name);
            if (thread > 0) {
                syscall(SYS_tgkill, (long)getpid(), thread, (long)SIGPROF);
            }
        }
        if (d) {
            closedir(d);
        }
        usleep(10000);
    }
    exit(0);
}

static void test_pool_is_left(void **state) {
    (void)state;
    struct api api = load(0);
    no_report();
    assert_int_equal(in_child(exits_with_pool, &api), 0);
    assert_int_equal(in_child(closes_with_pool, &api), 0);
    assert_int_equal(dlclose(api.handle), 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_libraries),
        cmocka_unit_test(test_another_thread),
        cmocka_unit_test(test_pool_is_left),
        cmocka_unit_test(test_many_times),
    };
    for (int i = 1; i < argc && path_count < LIBRARIES; ++i) {
        paths[path_count++] = argv[i];
    }
    if (path_count == 0) {
        fprintf(stderr, "usage: test_load LIBRARY...\n");
        return 2;
    }
    return cmocka_run_group_tests_name("load", tests, NULL, NULL);
}
