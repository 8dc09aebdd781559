/* SPDX-License-Identifier: MIT
 *
 * Runs the suites: each case on each instruction set, flush against a guard page on the right,
 * then on the left, then at some other alignment. What a call gave is compared with the oracle,
 * with the predicted bits where there are some, with every other run of the same case, and at
 * last, as a hash, with the results that are committed in tests/data/golden.txt. Every call goes
 * through the trampoline of abi.h. What is printed is the affair of check.c.
 *
 * Inputs lie in pages that are mapped twice: the harness writes through one view, the kernel gets
 * the other one, which is read-only. So writing to an input faults at no cost per call.
 */
#include "runner.h"

#include <endian.h>
#include <errno.h>
#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include <isobit/isobit.h>

#include "abi.h"
#include "guard.h"
#include "oracle.h"

#define KERNEL(type, name, args) extern const struct iso_suite iso_suite_##name;
#include "kernels.def"
#undef KERNEL

const struct iso_suite *const iso_suites[] = {
#define KERNEL(type, name, args) &iso_suite_##name,
#include "kernels.def"
#undef KERNEL
};
const size_t iso_suite_count = sizeof iso_suites / sizeof *iso_suites;

static void die(const char *what) {
    fprintf(stderr, "test harness: %s: %s\n", what, strerror(errno));
    exit(2);
}

/* ------------------------------------------------------------------------------ random numbers */

uint64_t iso_random_next(struct iso_random *r) { /* splitmix64 */
    uint64_t z = (r->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

size_t iso_random_below(struct iso_random *r, size_t n) {
    return (size_t)((iso_random_next(r) >> 32) * (uint64_t)n >> 32);
}

size_t iso_random_log(struct iso_random *r, size_t max) {
    size_t digits = 0;
    while (max >> digits)
        digits++;
    size_t d = iso_random_below(r, digits + 1);
    size_t value = d ? ((size_t)1 << (d - 1)) + iso_random_below(r, (size_t)1 << (d - 1)) : 0;
    return value < max ? value : max;
}

size_t iso_random_gap(struct iso_random *r) {
    static const size_t usual[] = {0, 0, 0, 1, 1, 2, 3, 5, 13, 64};
    size_t i = iso_random_below(r, 14);
    return i < sizeof usual / sizeof *usual ? usual[i] : iso_random_log(r, i == 13 ? 1100 : 90);
}

static float from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t to_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float uniform(struct iso_random *r) {
    int64_t i = (int64_t)(iso_random_next(r) >> 40) - (1 << 23);
    return (float)i * 0x1p-23f;
}

static float with_exponent(struct iso_random *r, int low, int high) {
    uint64_t z = iso_random_next(r);
    int e = low + (int)(z >> 40) % (high - low + 1);
    return from_bits((uint32_t)(z & 1) << 31 | (uint32_t)(e + 127) << 23 |
                     ((uint32_t)(z >> 1) & 0x7fffff));
}

static const struct {
    const char *name, *kind;
} fills[ISO_FILL_ALL] = {
    [ISO_FILL_UNIFORM] = {"uniform", "plain"},
    [ISO_FILL_INTEGER] = {"integer", "plain"},
    [ISO_FILL_WIDE] = {"wide", "spread"},
    [ISO_FILL_NORMAL] = {"normal", "plain"},
    [ISO_FILL_TINY] = {"tiny", "spread"},
    [ISO_FILL_HUGE] = {"huge", "spread"},
    [ISO_FILL_CANCEL] = {"cancel", "cancel"},
    [ISO_FILL_EQUAL] = {"equal", "cancel"},
    [ISO_FILL_OFFSET] = {"offset", "cancel"},
    [ISO_FILL_RISING] = {"rising", "scores"},
    [ISO_FILL_FALLING] = {"falling", "scores"},
    [ISO_FILL_SCORES] = {"scores", "scores"},
    [ISO_FILL_ZERO] = {"zero", "special"},
    [ISO_FILL_SPECIAL] = {"special", "special"},
    [ISO_FILL_MINUS_INF] = {"minus-inf", "special"},
    [ISO_FILL_BITS] = {"bits", "spread"},
    [ISO_FILL_SMALL] = {"small", "spread"},
    [ISO_FILL_ONES] = {"ones", "plain"},
    [ISO_FILL_ALTERNATE] = {"alternate", "plain"},
    [ISO_FILL_EXPONENTS] = {"exponents", "spread"},
    [ISO_FILL_POWERS] = {"powers", "spread"},
    [ISO_FILL_OPPOSITE] = {"opposite", "cancel"},
    [ISO_FILL_SPIKE_FIRST] = {"spike-first", "cancel"},
    [ISO_FILL_SPIKE_LAST] = {"spike-last", "cancel"},
    [ISO_FILL_PLATEAU] = {"plateau", "cancel"},
    [ISO_FILL_EDGE] = {"edge", "scores"},
    [ISO_FILL_LADDER] = {"ladder", "scores"},
    [ISO_FILL_STEEP] = {"steep", "scores"},
    [ISO_FILL_MINUS_ZERO] = {"minus-zero", "special"},
    [ISO_FILL_ALL_MINUS_INF] = {"all-minus-inf", "special"},
    [ISO_FILL_TOP_AT] = {"top-at", "scores"},
    [ISO_FILL_ALONE_AT] = {"alone-at", "special"},
    [ISO_FILL_NAN_AT] = {"nan-at", "special"},
    [ISO_FILL_INF_AT] = {"inf-at", "special"},
    [ISO_FILL_MINUS_INF_AT] = {"minus-inf-at", "special"},
};

const char *iso_fill_name(unsigned fill) { return fill < ISO_FILL_ALL ? fills[fill].name : "?"; }
const char *iso_fill_class(unsigned fill) { return fill < ISO_FILL_ALL ? fills[fill].kind : "?"; }

bool iso_fill_may_overflow(unsigned fill) {
    return fill == ISO_FILL_HUGE || fill == ISO_FILL_BITS || fill == ISO_FILL_EXPONENTS;
}

bool iso_fill_is_finite(unsigned fill) {
    return !iso_fill_may_overflow(fill) && fill != ISO_FILL_SPECIAL && fill != ISO_FILL_MINUS_INF &&
           fill < ISO_FILL_ALL_MINUS_INF;
}

bool iso_fill_has_spot(unsigned fill) { return fill >= ISO_FILL_TOP_AT && fill < ISO_FILL_ALL; }

float iso_fill_value(struct iso_operands *o, unsigned fill) {
    struct iso_random *r = &o->random;
    size_t i = o->filled++, drawn = o->drawn++, row = o->cols ? o->cols : 64;
    switch (fill) {
    case ISO_FILL_INTEGER: return (float)((int)iso_random_below(r, 17) - 8);
    case ISO_FILL_WIDE: return with_exponent(r, -20, 20);
    case ISO_FILL_NORMAL: {
        int64_t sum = 0;
        for (int j = 0; j < 12; j++)
            sum += (int64_t)(iso_random_next(r) >> 44) - (1 << 19);
        return (float)sum * 0x1p-20f;
    }
    case ISO_FILL_TINY: {
        uint64_t z = iso_random_next(r);
        return from_bits((uint32_t)(z & 1) << 31 | (uint32_t)(z >> 32) % 0x01000000);
    }
    case ISO_FILL_SMALL: return with_exponent(r, -74, -67);
    case ISO_FILL_HUGE: return with_exponent(r, 100, 126);
    case ISO_FILL_CANCEL:
        if (i % 2 == 0)
            return o->last = uniform(r);
        return -o->last * (1 + 0x1p-20f);
    case ISO_FILL_EQUAL: return o->equal;
    case ISO_FILL_OFFSET: return 1e6f + uniform(r);
    case ISO_FILL_RISING: return (float)i * 0.375f - 40.0f;
    case ISO_FILL_FALLING: return 40.0f - (float)i * 0.375f;
    case ISO_FILL_SCORES: return (float)(int)iso_random_below(r, 120 * 64) * 0x1p-6f - 100.0f;
    case ISO_FILL_ZERO: return iso_random_next(r) & 1 ? 0.0f : -0.0f;
    case ISO_FILL_SPECIAL: {
        static const uint32_t values[] = {0x7fc00000, 0x7f800000, 0xff800000, 0x80000000};
        if (iso_random_below(r, 24) == 0)
            return from_bits(values[iso_random_below(r, 4)]);
        return uniform(r);
    }
    case ISO_FILL_MINUS_INF: return iso_random_below(r, 3) ? uniform(r) : from_bits(0xff800000);
    case ISO_FILL_BITS: {
        uint32_t bits = (uint32_t)(iso_random_next(r) >> 32);
        /* no signalling NaN: what becomes of them is not promised */
        return from_bits((bits & 0x7f800000) == 0x7f800000 ? bits | 0x00400000 : bits);
    }
    case ISO_FILL_ONES: return 1.0f;
    case ISO_FILL_ALTERNATE: return i % 2 ? -1.0f : 1.0f;
    case ISO_FILL_EXPONENTS: return with_exponent(r, -126, 127);
    case ISO_FILL_POWERS: {
        float x = with_exponent(r, -20, 20);
        return from_bits(to_bits(x) & 0xff800000);
    }
    case ISO_FILL_OPPOSITE:
        if (i % 2 == 0)
            return o->last = uniform(r);
        return -o->last + 0x1p-20f * uniform(r);
    case ISO_FILL_SPIKE_FIRST: return i ? uniform(r) : 0x1p20f;
    case ISO_FILL_SPIKE_LAST: return i + 1 == row ? 0x1p20f : uniform(r);
    case ISO_FILL_PLATEAU: return 1024.0f + 0x1p-10f * iso_fill_value(o, ISO_FILL_NORMAL);
    case ISO_FILL_EDGE: {
        static const float edges[] = {0x1.62e42ep+6f,  -0x1.5d589ep+6f, -0x1.9fe368p+6f,
                                      -0x1.9d1da0p+6f, -0x1.62e42ep+6f, 0.0f};
        float x = edges[iso_random_below(r, 6)];
        return from_bits(to_bits(x) + (x != 0 ? (uint32_t)iso_random_below(r, 9) - 4 : 0));
    }
    case ISO_FILL_LADDER: return -(float)(i % 105);
    case ISO_FILL_STEEP: return 90.0f * (float)i;
    case ISO_FILL_MINUS_ZERO: return -0.0f;
    case ISO_FILL_ALL_MINUS_INF: return from_bits(0xff800000);
    case ISO_FILL_TOP_AT: return uniform(r) + (i % row == o->spot % row ? 50.0f : 0.0f);
    case ISO_FILL_ALONE_AT: return i % row == o->spot % row ? uniform(r) : from_bits(0xff800000);
    case ISO_FILL_NAN_AT: return drawn == o->spot ? from_bits(0x7fc00000) : uniform(r);
    case ISO_FILL_INF_AT: return drawn == o->spot ? from_bits(0x7f800000) : uniform(r);
    case ISO_FILL_MINUS_INF_AT: return drawn == o->spot ? from_bits(0xff800000) : uniform(r);
    default: return uniform(r);
    }
}

void iso_fill(struct iso_operands *o, float *to, size_t rows, size_t cols, size_t ld,
              unsigned fill) {
    o->equal = uniform(&o->random) * 3;
    o->cols = cols;
    for (size_t r = 0; r < rows; r++) {
        o->filled = 0;
        for (size_t c = 0; c < cols; c++)
            to[r * ld + c] = iso_fill_value(o, fill);
    }
    o->cols = 0;
}

/* ------------------------------------------------------------------------------------ operands */

/* A signalling NaN: touching it in arithmetic gives NaN and raises the invalid flag. */
#define GAP_BITS UINT32_C(0x7fa5a5a5)
#define CANARY_BITS ISO_CANARY_BITS

void *iso_operands_alloc(struct iso_operands *o, size_t bytes) {
    bytes = (bytes + 63) / 64 * 64 + 64;
    if (o->pool_bytes - o->pool_used >= bytes) {
        void *p = o->pool + o->pool_used;
        o->pool_used += bytes;
        return p;
    }
    void *block = NULL;
    if (posix_memalign(&block, 64, bytes + 64))
        die("memory");
    memcpy(block, &o->overflow, sizeof o->overflow);
    o->overflow = block;
    return (char *)block + 64;
}

void iso_operands_begin(struct iso_operands *o, uint64_t seed) {
    if (!o->pool) {
        o->pool_bytes = (size_t)4 << 20;
        void *pool = NULL;
        if (posix_memalign(&pool, 64, o->pool_bytes))
            die("memory");
        o->pool = pool;
    }
    o->count = 0;
    o->pool_used = 0;
    o->random.state = seed * UINT64_C(0xd1342543de82ef95) + 1;
    o->filled = o->drawn = o->spot = o->cols = 0;
    o->last = 0;
}

static void free_overflow(struct iso_operands *o) {
    while (o->overflow) {
        void *next;
        memcpy(&next, o->overflow, sizeof next);
        free(o->overflow);
        o->overflow = next;
    }
}

void iso_operands_end(struct iso_operands *o) {
    free_overflow(o);
    free(o->pool);
    o->pool = NULL;
}

static void fill_words(void *to, size_t bytes, uint32_t word) {
    char *p = to;
    for (; bytes >= 4; bytes -= 4, p += 4)
        memcpy(p, &word, 4);
    memset(p, 0xa5, bytes);
}

static struct iso_operand *declare(struct iso_operands *o, const char *name, enum iso_role role,
                                   size_t element, size_t rows, size_t cols, size_t ld) {
    if (o->count == ISO_OPERANDS)
        die("too many operands");
    struct iso_operand *v = &o->v[o->count++];
    *v = (struct iso_operand){.name = name,
                              .role = role,
                              .element = element,
                              .rows = rows,
                              .cols = cols,
                              .ld = ld,
                              .bytes = rows && cols ? ((rows - 1) * ld + cols) * element : 0};
    v->host = iso_operands_alloc(o, v->bytes);
    fill_words(v->host, v->bytes, role == ISO_IN || role == ISO_SCRATCH ? GAP_BITS : CANARY_BITS);
    return v;
}

void *iso_in(struct iso_operands *o, const char *name, size_t element, size_t rows, size_t cols,
             size_t ld) {
    return declare(o, name, ISO_IN, element, rows, cols, ld)->host;
}

float *iso_in_f32(struct iso_operands *o, const char *name, size_t rows, size_t cols, size_t ld,
                  unsigned fill) {
    float *host = declare(o, name, ISO_IN, sizeof(float), rows, cols, ld)->host;
    iso_fill(o, host, rows, cols, ld, fill);
    return host;
}

void *iso_out(struct iso_operands *o, const char *name, size_t rows, size_t cols, size_t ld) {
    return declare(o, name, ISO_OUT, sizeof(float), rows, cols, ld)->host;
}

float *iso_inout_f32(struct iso_operands *o, const char *name, size_t rows, size_t cols, size_t ld,
                     unsigned fill) {
    float *host = declare(o, name, ISO_INOUT, sizeof(float), rows, cols, ld)->host;
    iso_fill(o, host, rows, cols, ld, fill);
    return host;
}

void iso_scratch(struct iso_operands *o, const char *name, size_t floats) {
    declare(o, name, ISO_SCRATCH, sizeof(float), 1, floats, floats);
}

void iso_absent(struct iso_operands *o, const char *name) {
    struct iso_operand *v = declare(o, name, ISO_IN, sizeof(float), 0, 0, 0);
    v->absent = true;
}

static void *result_array(struct iso_operands *o, unsigned index, void *have, size_t element) {
    const struct iso_operand *v = &o->v[index];
    return have ? have : iso_operands_alloc(o, v->rows * v->cols * element);
}

double *iso_expect(struct iso_operands *o, unsigned index) {
    return o->v[index].expect = result_array(o, index, o->v[index].expect, sizeof(double));
}

double *iso_bound(struct iso_operands *o, unsigned index) {
    return o->v[index].bound = result_array(o, index, o->v[index].bound, sizeof(double));
}

float *iso_exact(struct iso_operands *o, unsigned index) {
    return o->v[index].exact = result_array(o, index, o->v[index].exact, sizeof(float));
}

void iso_operands_plain(struct iso_operands *o) {
    for (unsigned i = 0; i < o->count; i++)
        o->v[i].at = o->v[i].absent ? NULL : o->v[i].host;
}

/* --------------------------------------------------------------------------------- guard arena */

enum { SLOT_BYTES = 32 << 20, FENCE = 64 };

struct slot {
    char *write, *read; /* the same pages; each view between two pages that nobody may touch */
};
static struct slot slots[ISO_OPERANDS];
static size_t page_bytes;

static char *map_view(int fd, int protection) {
    size_t total = SLOT_BYTES + 2 * page_bytes;
    char *base = mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        die("mmap");
    char *view = mmap(base + page_bytes, SLOT_BYTES, protection, MAP_SHARED | MAP_FIXED, fd, 0);
    if (view == MAP_FAILED)
        die("mmap");
    return view;
}

static void arena_init(void) {
    if (page_bytes)
        return;
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    for (unsigned i = 0; i < ISO_OPERANDS; i++) {
        int fd = memfd_create("operand", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, SLOT_BYTES))
            die("memfd");
        slots[i].write = map_view(fd, PROT_READ | PROT_WRITE);
        slots[i].read = map_view(fd, PROT_READ);
        close(fd);
    }
}

/* Where an operand lies: against the right guard, against the left one, or `offset` elements past
 * a page boundary. */
enum side { SIDE_RIGHT, SIDE_LEFT, SIDE_OFFSET };

static size_t slot_offset(const struct iso_operand *v, enum side side, size_t offset) {
    if (side == SIDE_RIGHT)
        return SLOT_BYTES - v->bytes;
    return side == SIDE_LEFT ? 0 : page_bytes + offset * v->element;
}

static void place(struct iso_operands *o, enum side side, size_t offset) {
    for (unsigned i = 0; i < o->count; i++) {
        struct iso_operand *v = &o->v[i];
        if (v->absent) {
            v->at = NULL;
            continue;
        }
        if (v->bytes + 2 * page_bytes > SLOT_BYTES)
            die("operand too large");
        /* operands differ in their alignment too */
        size_t start = slot_offset(v, side, (offset + 5 * i * (offset / 16)) % 64);
        size_t end = start + v->bytes;
        size_t before = start < FENCE ? start : FENCE;
        size_t after = SLOT_BYTES - end < FENCE ? SLOT_BYTES - end : FENCE;
        uint32_t word = v->role == ISO_IN ? GAP_BITS : CANARY_BITS;
        fill_words(slots[i].write + start - before, before, word);
        memcpy(slots[i].write + start, v->host, v->bytes);
        fill_words(slots[i].write + end, after, word);
        v->at = (v->role == ISO_IN ? slots[i].read : slots[i].write) + start;
    }
}

/* ------------------------------------------------------------------------- calls that may fault */

static sigjmp_buf fault_return;
static volatile sig_atomic_t fault_armed;
static volatile sig_atomic_t fault_signal;
static char *volatile fault_address;
static volatile sig_atomic_t fault_general; /* x86 does not say where */

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)context;
    if (!fault_armed) {
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    fault_signal = number;
    fault_address = info->si_addr;
    fault_general = number == SIGSEGV && info->si_code == SI_KERNEL;
    siglongjmp(fault_return, 1);
}

static void signals_init(void) {
    static char stack[64 << 10];
    stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternative, NULL);
    struct sigaction action = {.sa_sigaction = on_fault,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGALRM};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

static void fault_text(char *text, size_t bytes, const struct iso_operands *o) {
    if (fault_signal == SIGALRM) {
        snprintf(text, bytes, "did not return in time");
        return;
    }
    if (fault_signal == SIGILL || fault_signal == SIGFPE) {
        snprintf(text, bytes, "%s", fault_signal == SIGILL ? "illegal instruction" : "SIGFPE");
        return;
    }
    if (fault_general) {
        snprintf(text, bytes, "general protection fault: an aligned access that is not?");
        return;
    }
    for (unsigned i = 0; i < o->count; i++) {
        const struct iso_operand *v = &o->v[i];
        char *view = v->role == ISO_IN ? slots[i].read : slots[i].write;
        ptrdiff_t at = fault_address - view;
        if (at >= 0 && at < SLOT_BYTES) {
            snprintf(text, bytes, "wrote to the input %s, byte %td", v->name,
                     fault_address - (char *)v->at);
            return;
        }
        if (at >= -(ptrdiff_t)page_bytes && at < SLOT_BYTES + (ptrdiff_t)page_bytes) {
            snprintf(text, bytes, "touched memory past the %s end of %s (byte %td of %zu)",
                     at < 0 ? "left" : "right", v->name, v->at ? fault_address - (char *)v->at : 0,
                     v->bytes);
            return;
        }
    }
    snprintf(text, bytes, "%s at address %p", fault_signal == SIGBUS ? "bus error" : "fault",
             (void *)fault_address);
}

static bool shy_vectors; /* iso_masked_loads_fault, found by iso_run_init */

/* ------------------------------------------------------------------------------------- results */

struct first_result { /* what the first run of a case gave, to compare all others with */
    uint32_t *bits, *other;
    size_t room;
    const char *who;
    char where[24];
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint32_t canonical(uint32_t bits) {
    return (bits & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : bits;
}

/* Gaps and surroundings of the outputs; the inputs look after themselves. */
static bool check_canaries(char *text, size_t bytes, const struct iso_operands *o) {
    for (unsigned i = 0; i < o->count; i++) {
        const struct iso_operand *v = &o->v[i];
        if (v->role == ISO_IN || v->absent)
            continue;
        const char *at = v->at;
        size_t start = (size_t)(at - slots[i].write), end = start + v->bytes;
        size_t before = start < FENCE ? start : FENCE;
        size_t after = SLOT_BYTES - end < FENCE ? SLOT_BYTES - end : FENCE;
        uint32_t fence[FENCE / 4];
        fill_words(fence, sizeof fence, CANARY_BITS);
        if (memcmp(at - before, fence, before)) {
            snprintf(text, bytes, "wrote before the begin of %s", v->name);
            return false;
        }
        if (memcmp(at + v->bytes, fence, after)) {
            snprintf(text, bytes, "wrote past the end of %s", v->name);
            return false;
        }
        const uint32_t *words = (const uint32_t *)v->at;
        for (size_t r = 0; r + 1 < v->rows && v->bytes && v->role != ISO_SCRATCH; r++) {
            for (size_t c = v->cols; c < v->ld; c++) {
                if (words[r * v->ld + c] != CANARY_BITS) {
                    snprintf(text, bytes, "wrote to the gap of %s, row %zu column %zu", v->name, r,
                             c);
                    return false;
                }
            }
        }
    }
    return true;
}

/* One element against the true value; *ratio becomes the error in units of the bound. */
static bool close_enough(double *ratio, float got, double expect, double bound) {
    double value = (double)got;
    *ratio = 0;
    if (isnan(expect))
        return isnan(value);
    if (isinf(expect) || isinf(bound))
        return value == expect || (isinf(bound) && !isnan(value));
    if (isnan(value))
        return false;
    if (isinf(value)) /* only where rounding could have gone past the largest number */
        return fabs(expect) + bound >= ORACLE_FLT_MAX && (value > 0) == (expect > 0);
    double error = fabs(value - expect);
    if (error == 0)
        return true;
    if (fabs(expect) > ORACLE_FLT_MAX)
        error = fabs(value) + bound >= ORACLE_FLT_MAX ? 0 : error;
    *ratio = error / bound;
    return error <= bound;
}

/* oracle_ulp without its calls: it is wanted for every inexact result. */
static double ulp_of(double y) {
    uint64_t bits;
    memcpy(&bits, &y, sizeof bits);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    exponent = exponent < -126 ? -126 : exponent > 127 ? 127 : exponent;
    bits = (uint64_t)(exponent - 23 + 1023) << 52;
    memcpy(&y, &bits, sizeof y);
    return y;
}

/* Where the bound is beyond this many ULP, an error in ULP says nothing: terms cancel. */
#define MEANINGFUL_ULP 8

/* What becomes an iso_errors: sums, and how many errors lie in each thousandth of the bound. */
struct sums {
    double sum, squares;
    size_t steps[1001];
};

static void group_find(const struct iso_suite *suite, const struct iso_case *c, struct iso_tally *t,
                       struct iso_errors **errors, struct sums **sums) {
    const char *name = suite->group ? suite->group(c) : iso_fill_class(c->fill);
    size_t i = 0;
    while (i < t->group_count && strcmp(t->groups[i].name, name) != 0)
        i++;
    if (i == ISO_GROUPS) {
        errno = 0;
        die("too many groups");
    }
    if (i == t->group_count)
        t->groups[t->group_count++].name = name;
    *errors = &t->groups[i];
    *sums = (struct sums *)t->sums + i;
}

/* ratio: the error in units of the bound; away: is the result farther from zero than the truth? */
static void group_add(struct iso_errors *errors, struct sums *sums, double ratio, bool away) {
    errors->elements++;
    sums->sum += away ? ratio : -ratio;
    sums->squares += ratio * ratio;
    sums->steps[ratio < 1 ? (size_t)(ratio * 1000) : 1000]++;
    if (ratio > errors->worst)
        errors->worst = ratio;
}

static void group_end(struct iso_errors *errors, const struct sums *sums) {
    double n = (double)errors->elements;
    if (!errors->elements)
        return;
    errors->rms = sqrt(sums->squares / n);
    errors->bias = sums->sum / n;
    size_t step = 1000, above = sums->steps[1000]; /* the upper end of the step it lies in */
    while (step && (double)above <= n / 1000)
        above += sums->steps[--step];
    errors->q999 = fmin(errors->worst, (double)(step + 1) / 1000);
}

static bool check_values(char *text, size_t bytes, const struct iso_operands *o,
                         struct iso_tally *tally, struct iso_errors *errors, struct sums *sums) {
    for (unsigned i = 0; i < o->count; i++) {
        const struct iso_operand *v = &o->v[i];
        if ((v->role != ISO_OUT && v->role != ISO_INOUT) || v->absent)
            continue;
        const float *at = v->at;
        for (size_t r = 0; r < v->rows && v->bytes; r++) {
            for (size_t c = 0; c < v->cols; c++) {
                float got = at[r * v->ld + c];
                size_t e = r * v->cols + c;
                double ratio = 0;
                if (v->role == ISO_OUT && to_bits(got) == CANARY_BITS) {
                    snprintf(text, bytes, "did not write %s[%zu][%zu]", v->name, r, c);
                    return false;
                }
                if (v->expect && !close_enough(&ratio, got, v->expect[e], v->bound[e])) {
                    if (isfinite(v->expect[e]) && isfinite(got))
                        snprintf(text, bytes,
                                 "%s[%zu][%zu] is %a, should be %a: %.3g times the bound %.3g",
                                 v->name, r, c, (double)got, v->expect[e], ratio, v->bound[e]);
                    else
                        snprintf(text, bytes, "%s[%zu][%zu] is %g, should be %g", v->name, r, c,
                                 (double)got, v->expect[e]);
                    return false;
                }
                if (ratio > tally->worst)
                    tally->worst = ratio;
                if (v->expect && v->bound[e] > ORACLE_EQUAL && isfinite(v->expect[e]) &&
                    isfinite(v->bound[e]) && isfinite(got))
                    group_add(errors, sums, ratio, fabs((double)got) > fabs(v->expect[e]));
                if (ratio > 0 && isfinite(v->expect[e])) {
                    double ulp = ulp_of(v->expect[e]);
                    if (v->bound[e] <= MEANINGFUL_ULP * ulp &&
                        ratio * v->bound[e] > errors->ulp * ulp)
                        errors->ulp = ratio * v->bound[e] / ulp;
                }
                if (v->exact && canonical(to_bits(got)) != canonical(to_bits(v->exact[e]))) {
                    snprintf(text, bytes, "%s[%zu][%zu] is %a, but the canonical order gives %a",
                             v->name, r, c, (double)got, (double)v->exact[e]);
                    return false;
                }
            }
        }
    }
    return true;
}

/* Words enter the hash as little-endian bytes on every machine. */
static void add_words(XXH3_state_t *hash, uint32_t *words, size_t n) {
    for (size_t i = 0; i < n; i++)
        words[i] = htole32(words[i]);
    XXH3_64bits_update(hash, words, n * sizeof *words);
    for (size_t i = 0; i < n; i++)
        words[i] = le32toh(words[i]);
}

/*
 * Gathers the outputs, NaN made canonical, adds them to the hash and compares with the first run of
 * this case.
 */
static bool check_bits(char *text, size_t bytes, const struct iso_operands *o,
                       struct first_result *first, const char *who, const char *where,
                       XXH3_state_t *hash) {
    size_t total = 0, n = 0;
    for (unsigned i = 0; i < o->count; i++)
        total += o->v[i].rows * o->v[i].cols;
    if (first->room < total) {
        first->room = 2 * total;
        first->bits = realloc(first->bits, first->room * sizeof *first->bits);
        first->other = realloc(first->other, first->room * sizeof *first->other);
        if (!first->bits || !first->other)
            die("memory");
    }
    uint32_t *to = first->who ? first->other : first->bits;
    const char *differs = NULL;
    size_t row = 0, column = 0, place = 0;
    for (unsigned i = 0; i < o->count; i++) {
        const struct iso_operand *v = &o->v[i];
        if ((v->role != ISO_OUT && v->role != ISO_INOUT) || v->absent || !v->bytes)
            continue;
        const float *at = v->at;
        for (size_t r = 0; r < v->rows; r++) {
            for (size_t c = 0; c < v->cols; c++, n++) {
                to[n] = canonical(to_bits(at[r * v->ld + c]));
                if (first->who && !differs && to[n] != first->bits[n])
                    differs = v->name, row = r, column = c, place = n;
            }
        }
    }
    if (hash)
        add_words(hash, to, n);
    if (!first->who) {
        first->who = who;
        snprintf(first->where, sizeof first->where, "%s", where);
    }
    if (differs)
        snprintf(text, bytes, "bits of %s[%zu][%zu] are %08x, but %08x on %s %s", differs, row,
                 column, to[place], first->bits[place], first->who, first->where);
    return !differs;
}

/* ------------------------------------------------------------------------------------ the runs */

static const uint64_t spread = UINT64_C(0x9e3779b97f4a7c15);

void iso_cases_add(struct iso_cases *list, struct iso_case c, unsigned thin) {
    if (list->plan == ISO_PLAN_QUICK && !(c.flags & ISO_CASE_GOLDEN) && thin > 1) {
        uint64_t h = (list->count + 1) * spread; /* a fixed choice that keeps no pattern */
        h = (h ^ c.fill ^ (uint64_t)c.spot << 8) * spread;
        for (int i = 0; i < ISO_CASE_PARAMS; i++)
            h = (h ^ c.p[i]) * spread;
        if ((h >> 33) % thin)
            return;
    }
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 256;
        list->v = realloc(list->v, list->room * sizeof *list->v);
        if (!list->v)
            die("memory");
    }
    if (!c.seed) { /* from the parameters, so that the order of the cases does not matter */
        c.seed = c.fill + 1;
        for (int i = 0; i < ISO_CASE_PARAMS; i++)
            c.seed = (c.seed ^ c.p[i]) * spread;
        if (c.spot)
            c.seed = (c.seed ^ c.spot) * spread;
    }
    list->v[list->count++] = c;
}

void iso_suite_cases(const struct iso_suite *suite, struct iso_cases *list, enum iso_plan plan) {
    *list = (struct iso_cases){.plan = plan};
    suite->cases(list);
}

const struct iso_suite *iso_suite_named(const char *kernel) {
    for (size_t i = 0; i < iso_suite_count; i++) {
        if (!strcmp(iso_suites[i]->kernel, kernel))
            return iso_suites[i];
    }
    return NULL;
}

void iso_case_text(char *text, size_t bytes, const struct iso_suite *suite,
                   const struct iso_case *c) {
    size_t used = 0;
    const char *name = suite->params;
    for (unsigned i = 0; *name && i < ISO_CASE_PARAMS && used < bytes; i++) {
        size_t length = strcspn(name, " ");
        used +=
            (size_t)snprintf(text + used, bytes - used, "%.*s=%zu ", (int)length, name, c->p[i]);
        name += length + strspn(name + length, " ");
    }
    if (used < bytes)
        used += (size_t)snprintf(text + used, bytes - used, "fill=%s", iso_fill_name(c->fill));
    if (used < bytes && c->spot)
        snprintf(text + used, bytes - used, " spot=%zu", c->spot);
}

size_t iso_sets(const struct iso_set **result) {
    static struct iso_set sets[] = {
#define ISA(name, ...) {#name, &iso_kernels_##name, NULL},
#include "isas.def"
#undef ISA
    };
    size_t count = sizeof sets / sizeof *sets;
    for (size_t i = 0; i < count; i++) {
        sets[i].missing = "unknown to the library";
        for (size_t j = 0; j < iso_isa_count(); j++) {
            if (!strcmp(iso_isa_name(iso_isa_get(j)), sets[i].name))
                sets[i].missing = iso_isa_missing(iso_isa_get(j));
        }
    }
    *result = sets;
    return count;
}

void iso_run_init(struct iso_run *run) {
    *run = (struct iso_run){.plan = ISO_PLAN_FULL, .case_seconds = 120, .start = now()};
    run->set_count = iso_sets(&run->sets);
    arena_init();
    iso_abi_init();
    signals_init();
    shy_vectors = iso_masked_loads_fault();
}

bool iso_guards_are_shy(void) { return shy_vectors; }

double iso_run_seconds(const struct iso_run *run) { return now() - run->start; }

void iso_tally_begin(struct iso_tally *t) {
    *t = (struct iso_tally){.hash = XXH3_createState(),
                            .sums = calloc(ISO_GROUPS, sizeof(struct sums))};
    if (!t->hash || !t->sums)
        die("memory");
    XXH3_64bits_reset(t->hash);
}

/* Of the cases so far. */
static void tally_errors(struct iso_tally *t) {
    for (size_t i = 0; i < t->group_count; i++) {
        group_end(&t->groups[i], (const struct sums *)t->sums + i);
        t->ulp = fmax(t->ulp, t->groups[i].ulp);
    }
}

void iso_tally_end(struct iso_tally *t) {
    t->bits = XXH3_64bits_digest(t->hash);
    XXH3_freeState(t->hash);
    t->hash = NULL;
    tally_errors(t);
    free(t->sums);
    t->sums = NULL;
}

struct place_name {
    enum side side;
    size_t offset;
    char text[24];
};

/* One call and all that is checked about it. Returns false with the reason in text. */
static bool one_call(const struct iso_run *run, const struct iso_suite *suite,
                     const struct iso_case *c, const struct iso_set *set,
                     const struct iso_kernels *table, struct iso_operands *o,
                     struct first_result *first, const struct place_name *where,
                     struct iso_tally *tally, XXH3_state_t *hash, char *text, size_t bytes) {
    place(o, where->side, where->offset);
    tally->calls++;
    fault_signal = 0;
    if (sigsetjmp(fault_return, 0)) {
        fault_armed = 0;
        alarm(0);
        feclearexcept(FE_ALL_EXCEPT);
        fault_text(text, bytes, o);
        return false;
    }
    alarm(run->case_seconds);
    bool trapless = c->flags & ISO_CASE_TRAPLESS;
    if (trapless)
        feclearexcept(FE_ALL_EXCEPT);
    iso_abi_begin();
    errno = 12345;
    fault_armed = 1;
    suite->call(table, c, o);
    fault_armed = 0;
    int error = errno;
    int raised = trapless ? fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW) : 0;
    size_t stack = 0;
    const char *abi = iso_abi_end(&stack);
    if (stack > tally->stack)
        tally->stack = stack;
    /* first, so that a wrong value enters the hash like any other; other reports go before it */
    bool same = c->flags & ISO_CASE_NO_BITS ||
                check_bits(text, bytes, o, first, set->name, where->text, hash);
    if (abi) {
        snprintf(text, bytes, "%s", abi);
        return false;
    }
    if (error != 12345) {
        snprintf(text, bytes, "changed errno to %d", error);
        return false;
    }
    struct iso_errors *errors;
    struct sums *sums;
    group_find(suite, c, tally, &errors, &sums);
    if (!check_canaries(text, bytes, o) || !check_values(text, bytes, o, tally, errors, sums))
        return false;
    if (raised) {
        snprintf(text, bytes, "raised%s%s%s on harmless input",
                 raised & FE_INVALID ? " INVALID" : "", raised & FE_DIVBYZERO ? " DIVBYZERO" : "",
                 raised & FE_OVERFLOW ? " OVERFLOW" : "");
        return false;
    }
    const char *wrong = suite->check ? suite->check(o, c) : NULL;
    if (wrong)
        snprintf(text, bytes, "%s", wrong);
    return !wrong && same;
}

static void fail(struct iso_run *run, struct iso_tally *tally, const struct iso_failure *f) {
    if (!run->failures)
        snprintf(run->first_failure, sizeof run->first_failure, "%s", f->reason);
    run->failures++;
    tally->failures++;
    if (run->failed)
        run->failed(run, f, tally->failures);
}

struct engine { /* what is kept from case to case */
    struct iso_operands o;
    struct first_result first;
};

static void engine_end(struct engine *e) {
    iso_operands_end(&e->o);
    free(e->first.bits);
    free(e->first.other);
}

/* `offset` is the third place, 0 .. 63 elements past a page. all: golden or not, the results of
 * the first place enter the hash. */
static void run_case(struct iso_run *run, const struct iso_suite *suite, const struct iso_case *c,
                     size_t offset, bool all, struct engine *e, struct iso_tally *tallies) {
    struct iso_operands *o = &e->o;
    iso_operands_begin(o, c->seed);
    o->spot = c->spot;
    suite->setup(o, c);
    suite->reference(o, c);
    e->first.who = NULL;
    struct place_name where[66] = {{SIDE_RIGHT, 0, "right"}, {SIDE_LEFT, 0, "left"}};
    unsigned places = c->flags & ISO_CASE_ONCE ? 1 : 3;
    if (c->flags & ISO_CASE_ALIGN)
        places = 66;
    for (unsigned i = 2; i < places; i++) {
        where[i].side = SIDE_OFFSET;
        where[i].offset = places == 3 ? offset : i - 2;
        snprintf(where[i].text, sizeof where[i].text, "%zu", where[i].offset);
    }
    bool hashed = (all || c->flags & ISO_CASE_GOLDEN) && !(c->flags & ISO_CASE_NO_BITS);
    char text[400];
    bool first = true;
    for (size_t s = 0; s < run->set_count; s++) {
        if (run->sets[s].missing)
            continue;
        double start = run->timing ? now() : 0;
        struct iso_kernels checked;
        iso_abi_wrap(&checked, run->sets[s].table);
        tallies[s].cases++;
        tallies[s].hashed += hashed;
        bool shy = shy_vectors && strcmp(run->sets[s].name, "scalar") != 0;
        struct place_name right = where[0];
        if (shy)
            where[0] = (struct place_name){SIDE_OFFSET, 63, "63"};
        for (unsigned i = 0; i < places; i++) {
            XXH3_state_t *hash = hashed && i == 0 ? tallies[s].hash : NULL;
            bool good = one_call(run, suite, c, &run->sets[s], &checked, o, &e->first, &where[i],
                                 &tallies[s], hash, text, sizeof text);
            if (run->observe) {
                bool bits = !(c->flags & ISO_CASE_NO_BITS);
                run->observe(run->observer,
                             &(struct iso_observation){suite, c, &run->sets[s], o, i,
                                                       where[2].offset, first, bits, !good});
            }
            if (!good) {
                struct iso_failure f = {suite,           c,   &run->sets[s], where[i].text,
                                        where[2].offset, text};
                fail(run, &tallies[s], &f);
                break;
            }
        }
        where[0] = right;
        first = false;
        if (run->timing)
            tallies[s].seconds += now() - start;
    }
    alarm(0);
    free_overflow(o);
}

void iso_run_case(struct iso_run *run, const struct iso_suite *suite, const struct iso_case *c,
                  size_t offset, struct iso_tally *tallies) {
    struct engine e = {0};
    run_case(run, suite, c, offset, true, &e, tallies);
    engine_end(&e);
}

/* ---------------------------------------------------------------------------- committed hashes */

/* The line "kernel version hash" of the file; false when there is none. */
static bool golden_find(const char *file, const char *kernel, int *version, uint64_t *hash) {
    FILE *f = fopen(file, "r");
    if (!f)
        return false;
    char line[256], name[64];
    unsigned long long value;
    bool found = false;
    while (!found && fgets(line, sizeof line, f)) {
        found = sscanf(line, "%63s %d %llx", name, version, &value) == 3 && !strcmp(name, kernel);
        if (found)
            *hash = value;
    }
    fclose(f);
    return found;
}

static const char *golden_compare(const struct iso_run *run, const char *kernel, uint64_t hash) {
    int version = 0;
    uint64_t want = 0;
    if (!golden_find(run->golden, kernel, &version, &want))
        return "no committed hash (test_kernels --update-golden FILE writes them)";
    if (version != ISOBIT_NUMERICS_VERSION)
        return want == hash ? NULL : "committed hash is of another ISOBIT_NUMERICS_VERSION";
    return want == hash ? NULL
                        : "the bits are not those committed: if that is meant, raise "
                          "ISOBIT_NUMERICS_VERSION and update the hashes";
}

static void golden_append(const struct iso_run *run, const char *kernel, uint64_t hash) {
    FILE *f = fopen(run->update, "a");
    if (!f)
        die(run->update);
    fprintf(f, "%s %d %016llx\n", kernel, ISOBIT_NUMERICS_VERSION, (unsigned long long)hash);
    if (fclose(f))
        die(run->update);
}

/* ------------------------------------------------------------------------- calibrated errors */

/*
 * tests/data/errors.txt holds what our kernels had when they were measured. The plan is fixed and
 * so are the bits, so on another machine the numbers come out the same; the margins leave room for
 * new cases. A kernel beyond them is worse than ours was, though each of its results may be within
 * its bound.
 */
#define ERRORS_MARGIN 1.25
#define ERRORS_BIAS 0.15 /* of the rms */

static const char *plan_name(enum iso_plan plan) {
    return plan == ISO_PLAN_QUICK ? "quick" : plan == ISO_PLAN_FULL ? "full" : NULL;
}

/* The line "kernel plan group elements rms q999 bias" of the file. */
static bool errors_find(const char *file, const char *kernel, const char *plan, const char *group,
                        struct iso_errors *have) {
    FILE *f = fopen(file, "r");
    if (!f)
        return false;
    char line[256], names[3][64];
    bool found = false;
    while (!found && fgets(line, sizeof line, f)) {
        found = sscanf(line, "%63s %63s %63s %zu %lf %lf %lf", names[0], names[1], names[2],
                       &have->elements, &have->rms, &have->q999, &have->bias) == 7 &&
                !strcmp(names[0], kernel) && !strcmp(names[1], plan) && !strcmp(names[2], group);
    }
    fclose(f);
    return found;
}

static bool errors_compare(char *text, size_t bytes, const struct iso_run *run, const char *kernel,
                           const struct iso_errors *e) {
    struct iso_errors have;
    if (!errors_find(run->errors, kernel, plan_name(run->plan), e->name, &have)) {
        snprintf(text, bytes,
                 "no calibrated errors of the group %s (test_kernels --update-errors FILE writes "
                 "them)",
                 e->name);
        return false;
    }
    const char *what = "rms error";
    double is = e->rms, was = have.rms, most = ERRORS_MARGIN * have.rms + 1e-6;
    if (is <= most) {
        what = "99.9 % quantile of the errors";
        is = e->q999, was = have.q999, most = ERRORS_MARGIN * have.q999 + 2e-3;
    }
    if (is <= most) {
        what = "mean error, away from zero,";
        is = fabs(e->bias), was = fabs(have.bias), most = was + ERRORS_BIAS * have.rms + 1e-6;
    }
    if (is <= most)
        return true;
    snprintf(text, bytes,
             "%s of the group %s is %.4g of the bound over %zu results; our kernels had %.4g", what,
             e->name, is, e->elements, was);
    return false;
}

static void errors_append(const struct iso_run *run, const char *kernel, struct iso_tally *t) {
    FILE *f = fopen(run->update_errors, "a");
    if (!f)
        die(run->update_errors);
    for (size_t i = 0; i < t->group_count; i++) {
        const struct iso_errors *e = &t->groups[i];
        if (e->elements)
            fprintf(f, "%s %s %s %zu %.5f %.3f %.5f\n", kernel, plan_name(run->plan), e->name,
                    e->elements, e->rms, e->q999, e->bias);
    }
    if (fclose(f))
        die(run->update_errors);
}

static void check_errors(struct iso_run *run, const struct iso_suite *suite,
                         const struct iso_set *set, struct iso_tally *t) {
    tally_errors(t);
    for (size_t i = 0; i < t->group_count && run->errors; i++) {
        char text[400];
        if (t->groups[i].elements &&
            !errors_compare(text, sizeof text, run, suite->kernel, &t->groups[i])) {
            struct iso_failure f = {.suite = suite, .set = set, .reason = text};
            fail(run, t, &f);
        }
    }
}

/* Ends the tallies of a suite, and hands its rows over. */
static void rows(struct iso_run *run, const struct iso_suite *suite, struct iso_tally *tallies,
                 bool random) {
    for (size_t s = 0; s < run->set_count; s++) {
        iso_tally_end(&tallies[s]);
        if (run->row)
            run->row(run, suite, &run->sets[s], &tallies[s], random);
    }
}

void iso_run_suite(struct iso_run *run, const struct iso_suite *suite) {
    struct iso_cases list;
    struct iso_tally *tallies = calloc(run->set_count, sizeof *tallies);
    struct engine e = {0};
    if (!tallies)
        die("memory");
    iso_suite_cases(suite, &list, run->plan);
    for (size_t s = 0; s < run->set_count; s++)
        iso_tally_begin(&tallies[s]);
    size_t only = run->only_case ? (size_t)strtoull(run->only_case, NULL, 10) : 0;
    for (size_t i = 0; i < list.count && !(run->stop && run->failures); i++) {
        if ((!run->only_case || i == only) && (run->parts < 2 || i % run->parts == run->part) &&
            (!run->where || list.v[i].p[run->where_index] == run->where_value))
            run_case(run, suite, &list.v[i], (i * 7 + 1) % 64, false, &e, tallies);
    }
    bool updated = false, calibrated = false;
    bool whole = !run->only_case && run->parts < 2 && !run->where && !(run->stop && run->failures);
    for (size_t s = 0; s < run->set_count && whole; s++) {
        struct iso_tally *t = &tallies[s];
        if (run->sets[s].missing || !plan_name(run->plan))
            continue;
        check_errors(run, suite, &run->sets[s], t);
        if (run->update_errors && !calibrated)
            errors_append(run, suite->kernel, t);
        calibrated = true;
    }
    for (size_t s = 0; s < run->set_count && whole; s++) {
        struct iso_tally *t = &tallies[s];
        if (!t->hashed)
            continue;
        uint64_t hash = XXH3_64bits_digest(t->hash);
        const char *wrong = run->golden ? golden_compare(run, suite->kernel, hash) : NULL;
        if (wrong) {
            struct iso_failure f = {.suite = suite, .set = &run->sets[s], .reason = wrong};
            fail(run, t, &f);
        }
        if (run->update && !updated) {
            golden_append(run, suite->kernel, hash);
            updated = true;
        }
    }
    rows(run, suite, tallies, false);
    engine_end(&e);
    free(list.v);
    free(tallies);
}

void iso_run_all(struct iso_run *run) {
    for (size_t i = 0; i < iso_suite_count; i++) {
        if (!run->kernel || !strcmp(run->kernel, iso_suites[i]->kernel))
            iso_run_suite(run, iso_suites[i]);
    }
}

/* Whatever way a case is found, it depends on the seed and its number only. */
static struct iso_case random_case(const struct iso_suite *suite, uint64_t seed, size_t number,
                                   size_t *offset) {
    struct iso_random r = {(seed * spread ^ number) * spread};
    struct iso_case c = {0};
    iso_random_next(&r);
    suite->random(&c, &r);
    c.seed = iso_random_next(&r) | 1;
    if (iso_fill_has_spot(c.fill))
        c.spot = iso_random_below(&r, 256);
    *offset = iso_random_below(&r, 64);
    return c;
}

void iso_run_random(struct iso_run *run) {
    const struct iso_suite *suites[64];
    size_t count = 0, sets = run->set_count;
    for (size_t i = 0; i < iso_suite_count && count < 64; i++) {
        if (iso_suites[i]->random && (!run->kernel || !strcmp(run->kernel, iso_suites[i]->kernel)))
            suites[count++] = iso_suites[i];
    }
    if (!count)
        return;
    struct iso_tally *tallies = calloc(count * sets, sizeof *tallies);
    struct engine e = {0};
    if (!tallies)
        die("memory");
    for (size_t i = 0; i < count * sets; i++)
        iso_tally_begin(&tallies[i]);
    for (size_t i = 0; (run->iters == 0 || i < run->iters) && !(run->stop && run->failures); i++) {
        if (run->time_box > 0 && i % 16 == 0 && iso_run_seconds(run) >= run->time_box)
            break;
        size_t offset;
        struct iso_case c = random_case(suites[i % count], run->seed, i, &offset);
        run_case(run, suites[i % count], &c, offset, true, &e, &tallies[i % count * sets]);
    }
    for (size_t i = 0; i < count; i++)
        rows(run, suites[i], &tallies[i * sets], true);
    engine_end(&e);
    free(tallies);
}
