/* SPDX-License-Identifier: MIT
 *
 * Kernels are pure functions: each case of the quick plan runs in a child that may not make any
 * system call (seccomp) and whose calls of the allocator are counted, with all operands flush
 * against a page that nobody may touch. The public operations do, too, on one thread and with the
 * caller's workspace. Then the kernels under other rounding modes and with subnormal numbers
 * flushed: bits are not promised there (docs/numerics.md), but nothing may crash, hang or write
 * elsewhere, and the mode stays as the caller has set it.
 */
#include "every_op.h"
#include "guard.h"
#include "engine.h"
#include "kernel_target.h"
#include "kernels.h"

#include <errno.h>
#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <linux/seccomp.h>

#include "sanitized.h"

/* ------------------------------------------------------------------------------ the allocator */

/*
 * The program's own allocator is glibc's with a counter, for all libraries of the process. Not
 * with sanitizers: they bring theirs.
 */
static atomic_size_t allocator_calls;

#if !SANITIZED
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

void *malloc(size_t bytes) {
    atomic_fetch_add(&allocator_calls, 1);
    return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes) {
    atomic_fetch_add(&allocator_calls, 1);
    return __libc_calloc(count, bytes);
}
void *realloc(void *old, size_t bytes) {
    atomic_fetch_add(&allocator_calls, 1);
    return __libc_realloc(old, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
    atomic_fetch_add(&allocator_calls, 1);
    return __libc_memalign(alignment, bytes);
}
int posix_memalign(void **memory, size_t alignment, size_t bytes) {
    atomic_fetch_add(&allocator_calls, 1);
    void *made = __libc_memalign(alignment, bytes);
    if (made) {
        *memory = made;
    }
    return made ? 0 : ENOMEM;
}
void free(void *memory) {
    atomic_fetch_add(&allocator_calls, memory != NULL);
    __libc_free(memory);
}
#endif

/* ------------------------------------------------------------------------------- the operands */

enum { SLOT_BYTES = 32 << 20, FENCE = 64, PATIENCE = 300, FENCE_BYTE = 0xb7 };

static char *slots[ISO_CHECK_OPERANDS]; /* the end of each is a page that faults */
static struct iso_check_operands operands;
static size_t slack; /* on emulators whose masked loads touch all lanes */

static void *map(size_t bytes, int flags) {
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

/* Everything that a case needs, so that it can be made without a system call. */
static int make_slots(void **state) {
    (void)state;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < ISO_CHECK_OPERANDS; ++i) {
        slots[i] = map(SLOT_BYTES + page, MAP_PRIVATE);
        assert_int_equal(mprotect(slots[i] + SLOT_BYTES, page, PROT_NONE), 0);
    }
    operands.pool_bytes = (size_t)256 << 20;
    operands.pool = map(operands.pool_bytes, MAP_PRIVATE);
    slack = iso_check_masked_loads_fault() ? 64 : 0;
    every_op_init();
    return 0;
}

static char *begin_of(size_t i) {
    const struct iso_check_operand *v = &operands.v[i];
    return slots[i] + SLOT_BYTES - v->bytes - (slack * v->element);
}

static void place(void) {
    for (size_t i = 0; i < operands.count; ++i) {
        struct iso_check_operand *v = &operands.v[i];
        char *at = begin_of(i);
        memset(at - FENCE, FENCE_BYTE, FENCE);
        memcpy(at, v->host, v->bytes);
        v->at = v->absent ? NULL : at;
    }
}

static bool fences_stand(void) {
    for (size_t i = 0; i < operands.count; ++i) {
        for (const char *p = begin_of(i) - FENCE; p < begin_of(i); ++p) {
            if ((unsigned char)*p != FENCE_BYTE) {
                return false;
            }
        }
    }
    return true;
}

/* ------------------------------------------------------------------------------- floating point */

struct mode {
    const char *name;
    int rounding; /* of fenv.h */
    bool flush_results, flush_operands;
};

#if defined(__x86_64__)
enum { STICKY = 0x3f, FLUSH_OPERANDS = 1 << 6, FLUSH_RESULTS = 1 << 15 };
static unsigned long get_control(void) { return __builtin_ia32_stmxcsr() & ~(unsigned)STICKY; }
static void flush(const struct mode *m) {
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | (m->flush_results ? FLUSH_RESULTS : 0) |
                           (m->flush_operands ? FLUSH_OPERANDS : 0));
}
#elif defined(__aarch64__)
static unsigned long get_control(void) {
    unsigned long control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
}
/* One bit for both. */
static void flush(const struct mode *m) {
    if (m->flush_results || m->flush_operands) {
        __asm__ volatile("msr fpcr, %0" ::"r"(get_control() | 1ul << 24));
    }
}
#else
static unsigned long get_control(void) { return (unsigned long)fegetround(); }
static void flush(const struct mode *m) { (void)m; }
#endif

static const struct mode modes[] = {
    {"to nearest", FE_TONEAREST, false, false}, /* must be the first */
    {"results flushed", FE_TONEAREST, true, false},
    {"operands flushed", FE_TONEAREST, false, true},
    {"both flushed", FE_TONEAREST, true, true},
    {"upward", FE_UPWARD, false, false},
    {"downward", FE_DOWNWARD, false, false},
    {"toward zero", FE_TOWARDZERO, false, false},
    {"upward, both flushed", FE_UPWARD, true, true},
};

/* ---------------------------------------------------------------------------------- the child */

/* What the child is at, for the parent to see when the child is no more. */
struct progress {
    size_t step, calls;
    bool inside; /* of the call */
    char wrong[100];
};
static struct progress *progress;

/* One child: a kernel on one set, or the public operations, in one mode. */
struct job {
    const struct iso_check_suite *suite; /* NULL: the public operations */
    const struct iso_check_cases *cases;
    const struct iso_check_variant *set;
    const struct iso_kernels *table;
    const struct mode *mode;
    bool filter; /* no system calls */
    float *out, *expect;
    iso_context context;
};

static void complain(const char *what) {
    if (!progress->wrong[0]) {
        /* no snprintf under the filter */
        strncpy(progress->wrong, what, sizeof(progress->wrong) - 1);
    }
}

/* --quick, or under an emulator, or valgrind: one case in sixteen, in each mode another one. All of
 * them to nearest otherwise, and each in one or two of the other modes; ISOBIT_LONG: in all. */
static bool quick, all;
static bool slow(void) { return getenv("ISOBIT_EMULATED") != NULL; }
static size_t stride(const struct job *j) {
    if (!j->suite) {
        return 1;
    }
    return slow() || quick ? 16 : j->mode == modes || all ? 1 : 4;
}
static size_t first(const struct job *j) { return (size_t)(j->mode - modes) % stride(j); }

static size_t steps_of(const struct job *j) { return j->suite ? j->cases->count : EVERY_OP_COUNT; }

static size_t calls_of(const struct job *j) {
    const size_t steps = steps_of(j), from = first(j);
    return steps > from ? (steps - from - 1) / stride(j) + 1 : 0;
}

static void step(const struct job *j, size_t i) {
    fenv_t usual;
    float *out = j->suite ? NULL : j->out + i * EVERY_OP_FLOATS;
    iso_status status = ISOBIT_OK;
    if (j->suite) {
        iso_check_operands_begin(&operands, j->cases->v[i].seed);
        j->suite->setup(&operands, &j->cases->v[i]);
        place();
    }
    fegetenv(&usual);
    fesetround(j->mode->rounding);
    flush(j->mode);
    const unsigned long control = get_control();
    const size_t before = atomic_load(&allocator_calls);
    progress->inside = true;
    if (j->suite) {
        j->suite->call(j->table, &j->cases->v[i], &operands);
    } else {
        status = every_op(out, i, &j->context);
    }
    progress->inside = false;
    const size_t after = atomic_load(&allocator_calls);
    const unsigned long control_after = get_control();
    fesetenv(&usual);
    if (after != before) {
        complain("called the allocator");
    } else if (control_after != control) {
        complain("changed the floating-point mode");
    } else if (j->suite && !fences_stand()) {
        complain("wrote before the begin of an operand");
    } else if (status) {
        complain(iso_strerror(status));
    } else if (!j->suite && j->mode == modes &&
               memcmp((const char *)out, (const char *)(j->expect + i * EVERY_OP_FLOATS),
                      EVERY_OP_FLOATS * sizeof(*out)) != 0) {
        complain("gave other bits");
    }
    ++progress->calls;
}

/* Neither exit nor its relatives: they are more than the one system call that is allowed. */
static _Noreturn void leave(int code) {
    for (;;) {
        syscall(SYS_exit, code);
    }
}

enum { GOOD, WRONG = 40, NO_FILTER };

static _Noreturn void child(const struct job *j) {
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS}; /* cmocka's until here */
    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); ++i) {
        signal(fatal[i], SIG_DFL);
    }
    alarm(PATIENCE);
    if (j->filter && prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) {
        leave(NO_FILTER);
    }
    const size_t by = stride(j), steps = steps_of(j);
    for (size_t i = first(j); i < steps && !progress->wrong[0]; i += by) {
        progress->step = i;
        step(j, i);
    }
    leave(progress->wrong[0] ? WRONG : GOOD);
}

/* Runs the job in a child and judges it: "" when all was good, else what was not. */
static const char *judge(const struct job *j) {
    static char text[700];
    char where[400] = "";
    int status = 0;
    *progress = (struct progress){0};
    fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        child(j);
    }
    while (waitpid(pid, &status, 0) < 0) {
        assert_int_equal(errno, EINTR);
    }
    const char *what = progress->wrong;
    if (WIFEXITED(status) && WEXITSTATUS(status) == GOOD) {
        assert_int_equal(progress->calls, calls_of(j));
        return "";
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_FILTER) {
        return "there is no filter for system calls";
    }
    if (WIFSIGNALED(status)) {
        const int s = WTERMSIG(status);
        what = !progress->inside ? "died in the test itself"
               : s == SIGKILL    ? "made a system call"
               : s == SIGALRM    ? "did not return in time"
               : s == SIGSEGV    ? "touched memory that is not its own"
                                 : strsignal(s);
    }
    if (j->suite) {
        iso_check_case_text(where, sizeof(where), j->suite, &j->cases->v[progress->step]);
    } else {
        snprintf(where, sizeof(where), "%s", every_op_name(progress->step));
    }
    snprintf(text, sizeof(text), "%s: %s (%s, %s)", j->set->name, what, where, j->mode->name);
    return text;
}

/* ---------------------------------------------------------------------------------- the tests */

/* Whether the kernel can filter system calls here; qemu's user mode has none of it. */
static bool filter_works(void) {
    if (SANITIZED || slow()) {
        return false; /* their runtime makes system calls of its own */
    }
    const pid_t pid = fork();
    if (pid == 0) {
        leave(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0 ? GOOD : NO_FILTER);
    }
    int status = 0;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == GOOD;
}

static size_t filtered(void) {
    static int works = -1;
    if (works < 0) {
        works = filter_works();
        if (!works) {
            print_message("          SKIPPED: system calls are not looked at here (%s)\n",
                          SANITIZED ? "the sanitizer makes its own" : "no seccomp");
        }
        if (SANITIZED) {
            print_message("          SKIPPED: allocations are not counted here (the sanitizer "
                          "has its own allocator)\n");
        }
    }
    return (size_t)works;
}

/* All kernels on all sets in the given modes; returns how many calls were made. */
static size_t run_kernels(const struct mode *mode, size_t mode_count, bool filter) {
    const struct iso_check_target *target = iso_kernel_target();
    const struct iso_check_variant *sets = target->variants;
    const size_t set_count = target->variant_count;
    size_t calls = 0, bad = 0;
    for (size_t k = 0; k < target->suite_count; ++k) {
        struct iso_check_cases cases;
        iso_check_suite_cases(target->suites[k], &cases, ISO_CHECK_PLAN_QUICK);
        for (size_t s = 0; s < set_count; ++s) {
            const char *missing = iso_check_missing(target, target->suites[k], &sets[s]);
            for (size_t m = 0; m < mode_count && !missing; ++m) {
                const struct job j = {.suite = target->suites[k],
                                      .cases = &cases,
                                      .set = &sets[s],
                                      .table = sets[s].table,
                                      .mode = &mode[m],
                                      .filter = filter};
                const char *wrong = judge(&j);
                if (*wrong) {
                    print_error("%s, %s\n", target->suites[k]->name, wrong);
                    ++bad;
                }
                calls += progress->calls;
            }
        }
        free(cases.v);
    }
    assert_int_equal(bad, 0);
    return calls;
}

static void test_kernels(void **state) {
    (void)state;
    const size_t calls = run_kernels(modes, 1, filtered());
    print_message("          (%zu calls%s)\n", calls, filtered() ? " without a system call" : "");
    assert_true(calls > 400); /* where the scalar set is the only one */
}

static void test_kernels_in_other_modes(void **state) {
    (void)state;
    if (slow()) {
        skip();
    }
    const size_t count = sizeof(modes) / sizeof(modes[0]) - 1;
    const size_t calls = run_kernels(modes + 1, count, false);
    print_message("          (%zu calls)\n", calls);
}

static float *map_results(void) {
    return map((size_t)EVERY_OP_COUNT * EVERY_OP_FLOATS * sizeof(float), MAP_SHARED);
}

static void test_operations(void **state) {
    (void)state;
    const struct iso_check_target *target = iso_kernel_target();
    const struct iso_check_variant *sets = target->variants;
    const size_t set_count = target->variant_count;
    float *expect = map_results(), *out = map_results();
    void *workspace = map(EVERY_OP_WORKSPACE, MAP_PRIVATE);
    assert_true(every_op_all(expect, NULL));
    for (size_t s = 0; s < set_count; ++s) {
        for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]) && !sets[s].missing; ++m) {
            struct job j = {.set = &sets[s],
                            .mode = &modes[m],
                            .filter = filtered(),
                            .out = out,
                            .expect = expect,
                            .context = {.size = sizeof(j.context),
                                        .workspace = workspace,
                                        .workspace_bytes = EVERY_OP_WORKSPACE}};
            assert_int_equal(iso_isa_find(&j.context.isa, sets[s].name), ISOBIT_OK);
            const char *wrong = judge(&j);
            if (*wrong) {
                fail_msg("%s", wrong);
            }
        }
    }
}

/* ----------------------------------------------------------------------- that the test can fail */

static void *volatile hole;

static void allocates(float *y, const float *x, size_t n, int function) {
    (void)y, (void)x, (void)n, (void)function;
    hole = malloc(1);
    free(hole);
}

static void calls_the_system(float *y, const float *x, size_t n, int function) {
    (void)y, (void)x, (void)n, (void)function;
    syscall(SYS_getpid);
}

static void changes_the_mode(float *y, const float *x, size_t n, int function) {
    (void)y, (void)x, (void)n, (void)function;
    fesetround(FE_UPWARD);
}

static void writes_before(float *y, const float *x, size_t n, int function) {
    (void)x, (void)n, (void)function;
    ((volatile float *)y)[-1] = 1;
}

static void reads_past(float *y, const float *x, size_t n, int function) {
    (void)y, (void)function;
    hole = (void *)(uintptr_t)((const volatile char *)(x + n))[slack * sizeof(*x)];
}

static void test_that_it_can_fail(void **state) {
    (void)state;
    static const struct {
        void (*unary)(float *y, const float *x, size_t n, int function);
        const char *report;
        bool filter, sanitized; /* what it needs; whether sanitizers let it pass */
    } broken[] = {
        {allocates, "called the allocator", false, false},
        {calls_the_system, "made a system call", true, false},
        {changes_the_mode, "changed the floating-point mode", false, true},
        {writes_before, "wrote before the begin", false, true},
        {reads_past, "touched memory that is not its own", false, false},
    };
    const struct iso_check_target *target = iso_kernel_target();
    const struct iso_check_variant *sets = target->variants;
    const struct iso_check_variant *scalar = NULL;
    for (size_t s = target->variant_count; s-- > 0;) {
        scalar = strcmp(sets[s].name, "scalar") == 0 ? &sets[s] : scalar;
    }
    assert_non_null(scalar);
    struct iso_check_cases cases;
    const struct iso_check_suite *suite = iso_check_suite_named(target, "unary");
    iso_check_suite_cases(suite, &cases, ISO_CHECK_PLAN_QUICK);
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); ++i) {
        if ((SANITIZED && !broken[i].sanitized) || (broken[i].filter && !filtered())) {
            continue;
        }
        struct iso_kernels table = *(const struct iso_kernels *)scalar->table;
        table.unary = broken[i].unary;
        const struct job j = {.suite = suite,
                              .cases = &cases,
                              .set = scalar,
                              .table = &table,
                              .mode = modes,
                              .filter = broken[i].filter};
        const char *wrong = judge(&j);
        if (!strstr(wrong, broken[i].report)) {
            fail_msg("reported: '%s' instead of '%s'", wrong, broken[i].report);
        }
    }
    free(cases.v);
}

int main(int argc, char **argv) {
    all = getenv("ISOBIT_LONG") != NULL;
    quick = argc > 1 && strcmp(argv[1], "--quick") == 0 && !all;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_that_it_can_fail),
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_kernels_in_other_modes),
    };
    progress =
        mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED) {
        return 1;
    }
    return cmocka_run_group_tests_name("pure", tests, make_slots, NULL);
}
