/* SPDX-License-Identifier: MIT
 *
 * The C half of the trampoline: prepares what the assembly hands to a kernel and judges what it
 * found afterwards.
 *
 * Kernels run on a stack of their own, whose unused part is painted before each call: the lowest
 * word that has lost its paint tells how much was used. Under sanitizers, whose frames are larger
 * and who know only the stacks of threads, kernels stay on the stack of the caller.
 */
#include "abi.h"

#include <errno.h>
#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "abi_layout.h"
#include "arguments.h"
#include "common.h"
#include "sanitized.h"

static char missing[200];
const char *iso_check_abi_missing(void) { return missing; }

#if !defined(__x86_64__) && !defined(__aarch64__)

/* No trampoline: the kernels are called as they are, and C tells what it can. */
static int rounding;

void iso_check_abi_init(const struct iso_check_target *target) {
    (void)target;
    snprintf(missing, sizeof missing, "the calling convention, the use of the stack");
}

void iso_check_abi_wrap(void *checked, const struct iso_check_target *target, const void *table) {
    memcpy(checked, table, target->table_bytes);
}

void iso_check_abi_callers_stack(void) {}

void iso_check_abi_begin(void) { rounding = fegetround(); }

const char *iso_check_abi_end(size_t *stack) {
    *stack = 0;
    if (fegetround() == rounding)
        return NULL;
    fesetround(rounding);
    return "changed the floating-point control register: rounding";
}

#else

enum { SAVED_WORDS = 21, STACK_BYTES = 8 << 20, PAINTED = 16 << 10 };

struct state {
    uint64_t stack_top, saved_sp, callee_sp, after_sp;
    uint64_t index;
    void (*target)(void);
    uint64_t canary, canary_at, garbage, features, flags, in_use;
    uint64_t result[2];
    uint64_t float_control;
    uint32_t x87[8];
    uint64_t fill[SAVED_WORDS], after[SAVED_WORDS];
};

struct entry {
    void (*target)(void);
    uint64_t words;                       /* of arguments on the stack */
    uint64_t high[8];                     /* to be set in arguments in registers */
    uint64_t high_stack[ABI_STACK_WORDS]; /* and on the stack */
};

_Static_assert(ISO_CHECK_INTEGERS <= ABI_STACK_WORDS + 6, "arguments");
_Static_assert(offsetof(struct state, canary_at) == ABI_CANARY_AT, "layout");
_Static_assert(offsetof(struct state, in_use) == ABI_IN_USE, "layout");
_Static_assert(offsetof(struct state, float_control) == ABI_FLOAT_CONTROL, "layout");
_Static_assert(offsetof(struct state, x87) == ABI_X87, "layout");
_Static_assert(offsetof(struct state, fill) == ABI_FILL, "layout");
_Static_assert(offsetof(struct state, after) == ABI_AFTER, "layout");
_Static_assert(offsetof(struct entry, high_stack) == ABI_ENTRY_HIGH_STACK, "layout");
_Static_assert(sizeof(struct entry) == ABI_ENTRY_BYTES, "layout");

/* The trampoline knows these two. */
extern struct state iso_check_abi_state;
extern struct entry iso_check_abi_entries[ABI_STUBS];
struct state iso_check_abi_state;
struct entry iso_check_abi_entries[ABI_STUBS];
extern const char iso_check_abi_stubs[];
enum { STUB_BYTES = 16 };

void iso_check_abi_verify(void);

#if defined(__x86_64__)
static const char *const saved_names[] = {"rbx", "rbp", "r12", "r13", "r14", "r15"};
enum { SAVED_COUNT = 6, ARGUMENT_REGISTERS = 6 };
#else
static const char *const saved_names[] = {"x19", "x20", "x21", "x22", "x23", "x24", "x25",
                                          "x26", "x27", "x28", "x29", "d8",  "d9",  "d10",
                                          "d11", "d12", "d13", "d14", "d15"};
enum { SAVED_COUNT = 19, ARGUMENT_REGISTERS = 8 };
#endif

static char problem[200];
static size_t most_stack, stack_limit;
static uint64_t seed = 0x5eed;
static uint32_t control_before;

/* ----------------------------------------------------------------------------------- arguments */

/* Where ints lie, and how many words are on the stack. Floats travel in registers of their own. */
static void read_arguments(struct entry *e, const char *text) {
    struct iso_check_arguments a;
    const char *wrong = iso_check_arguments(&a, text);
    if (wrong) {
        errno = 0;
        iso_check_die(wrong);
    }
    for (unsigned i = 0; i < a.integers; i++) {
        uint64_t high = a.narrow >> i & 1 ? UINT64_C(0xa5c3960f00000000) : 0;
        if (i < ARGUMENT_REGISTERS)
            e->high[i] = high;
        else
            e->high_stack[i - ARGUMENT_REGISTERS] = high;
    }
    e->words = a.integers > ARGUMENT_REGISTERS ? a.integers - ARGUMENT_REGISTERS : 0;
}

/* The entry of a function is its place in target->functions. */
void iso_check_abi_wrap(void *checked, const struct iso_check_target *target, const void *table) {
    memcpy(checked, table, target->table_bytes);
    for (size_t i = 0; i < target->function_count; i++) {
        char *at = (char *)checked + target->functions[i].offset;
        const char *stub = iso_check_abi_stubs + STUB_BYTES * i;
        memcpy(&iso_check_abi_entries[i].target, at, sizeof iso_check_abi_entries[i].target);
        if (iso_check_abi_entries[i].target)
            memcpy(at, &stub, sizeof stub);
    }
}

/* -------------------------------------------------------------------------------- this machine */

#if defined(__x86_64__)
static bool sees_ymm, sees_zmm, sees_tiles;
static sigjmp_buf no_such_instruction;

static void on_illegal(int number) {
    (void)number;
    siglongjmp(no_such_instruction, 1);
}

static uint32_t in_use(void) {
    uint32_t low, high;
    __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(1)); /* xgetbv */
    return low;
}

enum { YMM_IN_USE = 1 << 2, ZMM_IN_USE = 1 << 6, TILES_IN_USE = 3 << 17 };

/* Looks whether the processor tells dirty registers from clean ones: emulators do not. */
static void try_upper(void) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__builtin_cpu_supports("avx"))
        return;
    iso_check_abi_state.features |= ABI_HAS_AVX;
#if !defined(NDEBUG)
    snprintf(missing, sizeof missing, "upper vector halves (gcc cleans them from -O2 on)");
    return;
#endif
    if (!__get_cpuid_count(0xd, 1, &a, &b, &c, &d) || !(a & 4)) {
        snprintf(missing, sizeof missing, "upper vector halves (no XGETBV with ECX = 1)");
        return;
    }
    struct sigaction old, action = {.sa_handler = on_illegal};
    sigaction(SIGILL, &action, &old);
    volatile bool ymm = false, zmm = false;
    if (!sigsetjmp(no_such_instruction, 1)) {
        __asm__ volatile("vcmpps $15, %%ymm9, %%ymm9, %%ymm9" ::: "xmm9");
        ymm = in_use() & YMM_IN_USE;
        __asm__ volatile("vzeroupper" ::: "xmm9");
        ymm = ymm && !(in_use() & YMM_IN_USE);
        if (__builtin_cpu_supports("avx512f")) {
            __asm__ volatile("vpternlogd $255, %%zmm9, %%zmm9, %%zmm9" ::: "xmm9");
            zmm = in_use() & ZMM_IN_USE;
            __asm__ volatile("vzeroupper" ::: "xmm9");
            zmm = zmm && !(in_use() & ZMM_IN_USE);
        }
    }
    sigaction(SIGILL, &old, NULL);
    sees_ymm = ymm;
    sees_zmm = zmm;
    if (ymm)
        iso_check_abi_state.features |= ABI_HAS_IN_USE;
    if (!ymm || (!zmm && __builtin_cpu_supports("avx512f")))
        snprintf(missing, sizeof missing, "upper vector halves (XGETBV does not tell them%s)",
                 ymm ? " for ZMM" : "");
}

/* The same of AMX's tiles, if the operating system saves them. */
static void try_tiles(void) {
    uint32_t low, high;
    if (!(iso_check_abi_state.features & ABI_HAS_IN_USE))
        return;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    sees_tiles = (low & TILES_IN_USE) == TILES_IN_USE;
}

bool iso_check_abi_sees_tiles(void) { return sees_tiles; }
bool iso_check_abi_sees_upper(bool zmm) { return zmm ? sees_zmm : sees_ymm; }
#endif

static char *painted; /* lowest painted byte; the stack begins PAINTED above it */

static uint64_t paint_word(void) {
    return iso_check_abi_state.canary ^ UINT64_C(0x5555555555555555);
}

static void paint(char *from, char *to) {
    uint64_t word = paint_word();
    for (; from < to; from += sizeof word)
        memcpy(from, &word, sizeof word);
}

/* The lowest word that is not paint. */
static char *lowest_used(char *from, char *to) {
    uint64_t word = paint_word();
    for (; to - from >= 64; from += 64) {
        uint64_t v[8], differ = 0;
        memcpy(v, from, sizeof v);
        for (int i = 0; i < 8; i++)
            differ |= v[i] ^ word;
        if (differ)
            break;
    }
    for (; from < to && !memcmp(from, &word, sizeof word); from += sizeof word)
        continue;
    return from;
}

static void read_functions(const struct iso_check_target *target) {
    if (target->function_count > ABI_STUBS) {
        errno = 0;
        iso_check_die("too many functions in a table");
    }
    for (size_t i = 0; i < target->function_count; i++) {
        iso_check_abi_entries[i] = (struct entry){0};
        read_arguments(&iso_check_abi_entries[i], target->functions[i].arguments);
    }
}

void iso_check_abi_init(const struct iso_check_target *target) {
    stack_limit = target->stack_limit;
    read_functions(target);
    if (iso_check_abi_state.canary)
        return;
    iso_check_abi_state.canary = UINT64_C(0xc0dedbad5ca1ab1e);
#if defined(__x86_64__)
    try_upper();
    try_tiles();
#endif
    if (SANITIZED) {
        size_t used = strlen(missing);
        snprintf(missing + used, sizeof missing - used, "%sthe use of the stack (a sanitizer)",
                 used ? ", " : "");
        return;
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *stack = mmap(NULL, STACK_BYTES + page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, page, PROT_NONE)) {
        perror("test harness: stack");
        exit(2);
    }
    char *top = stack + STACK_BYTES;
    painted = top - PAINTED;
    iso_check_abi_state.stack_top = (uint64_t)(uintptr_t)top;
    paint(painted, top);
}

void iso_check_abi_callers_stack(void) {
    painted = NULL;
    iso_check_abi_state.stack_top = 0;
}

/* --------------------------------------------------------------------------------- judging calls
 */

static uint64_t next(void) {
    seed = seed * UINT64_C(0xd1342543de82ef95) + 0x2545f491;
    return seed ^ seed >> 29;
}

static uint32_t float_control(void) {
#if defined(__x86_64__)
    return __builtin_ia32_stmxcsr() & ~UINT32_C(0x3f);
#else
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return (uint32_t)fpcr;
#endif
}

static void set_float_control(uint32_t value) {
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(value);
#else
    uint64_t fpcr = value;
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
#endif
}

#if defined(__x86_64__)
static uint16_t x87_control(void) {
    uint16_t word;
    __asm__ volatile("fnstcw %0" : "=m"(word));
    return word;
}
static uint16_t x87_before;
#endif

void iso_check_abi_begin(void) {
    problem[0] = 0;
    most_stack = 0;
    for (unsigned i = 0; i < SAVED_COUNT; i++)
        iso_check_abi_state.fill[i] = next();
    iso_check_abi_state.garbage = next();
    iso_check_abi_state.in_use = 0;
    control_before = float_control();
#if defined(__x86_64__)
    x87_before = x87_control();
#endif
    if (painted) /* a call that did not return leaves its traces */
        paint(painted, (char *)(uintptr_t)iso_check_abi_state.stack_top);
}

#define COMPLAIN(...)                                                                              \
    do {                                                                                           \
        if (!problem[0])                                                                           \
            snprintf(problem, sizeof problem, __VA_ARGS__);                                        \
    } while (0)

/* Called by the trampoline after each call. It must not compute with floats. */
void iso_check_abi_verify(void) {
    struct state *s = &iso_check_abi_state;
    for (unsigned i = 0; i < SAVED_COUNT; i++) {
        if (s->after[i] != s->fill[i])
            COMPLAIN("did not preserve register %s", saved_names[i]);
    }
    if (s->after_sp != s->callee_sp)
        COMPLAIN("returned with another stack pointer");
    const char *canary = (const char *)(uintptr_t)s->canary_at;
    for (size_t i = 0; i < 8; i++) {
        if (memcmp(canary + 8 * i, &s->canary, 8) != 0)
            COMPLAIN("wrote to the stack of its caller");
    }
#if defined(__x86_64__)
    if (s->flags & 0x400)
        COMPLAIN("left the direction flag set");
    if (((uint32_t)s->float_control & ~UINT32_C(0x3f)) != control_before) {
        COMPLAIN("changed the floating-point control register");
        set_float_control(control_before);
    }
    if ((s->x87[2] & 0xffff) != 0xffff) {
        COMPLAIN("left x87 or MMX registers in use");
        __asm__ volatile("fninit");
    }
    if ((s->x87[0] & 0xffff) != x87_before) {
        COMPLAIN("changed the x87 control word");
        __asm__ volatile("fldcw %0" : : "m"(x87_before));
    }
    if (sees_ymm && s->in_use & YMM_IN_USE)
        COMPLAIN("left upper halves of ymm registers in use (no vzeroupper)");
    if (sees_zmm && s->in_use & ZMM_IN_USE)
        COMPLAIN("left upper halves of zmm registers in use (no vzeroupper)");
    if (sees_tiles && s->in_use & TILES_IN_USE) {
        COMPLAIN("left tiles in use (no tilerelease)");
        __asm__ volatile(".byte 0xc4, 0xe2, 0x78, 0x49, 0xc0"); /* tilerelease */
    }
#else
    if ((uint32_t)s->float_control != control_before) {
        COMPLAIN("changed the floating-point control register");
        set_float_control(control_before);
    }
#endif
    if (painted) {
        char *top = (char *)(uintptr_t)s->callee_sp, *low = lowest_used(painted, top);
        size_t used = (size_t)(top - low);
        if (used > most_stack)
            most_stack = used;
        if (stack_limit && used > stack_limit)
            COMPLAIN("used %s%zu bytes of stack, more than %zu", low == painted ? "at least " : "",
                     used, stack_limit);
        paint(low, top);
    }
}

const char *iso_check_abi_end(size_t *stack) {
    *stack = most_stack;
    return problem[0] ? problem : NULL;
}

#endif
