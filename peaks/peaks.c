/* SPDX-License-Identifier: MIT
 *
 * See peaks.h. Reading is written with GCC's vector types, compiled for each instruction set by a
 * function attribute: a loop for the baseline CPU could not keep up with the caches. Copying is the
 * best of libc's memcpy, two plain loops, and on x86 one with non-temporal stores.
 */
#include "peaks.h"

#include <stdint.h>
#include <string.h>
#include <time.h>

double bench_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ------------------------------------------------------------------------- reading and copying */

/* Bytes are taken in blocks of so many; the remainder of a footprint is left out. */
#define BLOCK 512

/*
 * Memory and caches give the most to one access pattern here, to another there: one stream, or
 * several with a large stride, so that more than one prefetcher works. Each measurement takes the
 * next pattern, and who asks keeps the best.
 */
enum { READ_PATTERNS = 3, COPY_PATTERNS = 4 };

/* 8 sums, so that the loads are what limits it; `streams` of them begin in places of their own. */
#define READ_FUNCTION(name, width, streams, attributes)                                            \
    attributes static uint64_t name(const char *p, size_t bytes) {                                 \
        typedef uint64_t v __attribute__((vector_size(width), may_alias));                         \
        enum { EACH = 8 / (streams) };                                                             \
        const size_t stride = bytes / (streams);                                                   \
        v t[8] = {{0}};                                                                            \
        for (const char *end = p + stride; p < end; p += EACH * (width)) {                         \
            const char *q[8];                                                                      \
            ISO_UNROLLED (i, 8)                                                                    \
                q[i] = p + i / EACH * stride + i % EACH * (width);                                 \
            ISO_UNROLLED (i, 8)                                                                    \
                t[i] ^= *(const v *)q[i];                                                          \
        }                                                                                          \
        return (t[0] ^ t[1] ^ t[2] ^ t[3] ^ t[4] ^ t[5] ^ t[6] ^ t[7])[0];                         \
    }
#define COPY_FUNCTION(name, width, streams, attributes)                                            \
    attributes static void name(char *to, const char *p, size_t bytes) {                           \
        typedef uint64_t v __attribute__((vector_size(width), may_alias));                         \
        enum { EACH = 4 / (streams) };                                                             \
        const size_t stride = bytes / (streams);                                                   \
        for (size_t at = 0; at < stride; at += EACH * (width)) {                                   \
            v t[4];                                                                                \
            ISO_UNROLLED (i, 4)                                                                    \
                t[i] = *(const v *)(p + at + i / EACH * stride + i % EACH * (width));              \
            ISO_UNROLLED (i, 4)                                                                    \
                *(v *)(to + at + i / EACH * stride + i % EACH * (width)) = t[i];                   \
        }                                                                                          \
    }
#define FUNCTIONS(set, width, attributes)                                                          \
    READ_FUNCTION(read1_##set, width, 1, attributes)                                               \
    READ_FUNCTION(read4_##set, width, 4, attributes)                                               \
    READ_FUNCTION(read8_##set, width, 8, attributes)                                               \
    COPY_FUNCTION(copy1_##set, width, 1, attributes)                                               \
    COPY_FUNCTION(copy4_##set, width, 4, attributes)                                               \
    static const struct patterns set = {{read1_##set, read4_##set, read8_##set},                   \
                                        {copy_by_libc, copy1_##set, copy4_##set, copy_past}};

struct patterns {
    uint64_t (*read[READ_PATTERNS])(const char *p, size_t bytes);
    void (*copy[COPY_PATTERNS])(char *to, const char *from, size_t bytes);
};

static void copy_by_libc(char *to, const char *from, size_t bytes) { memcpy(to, from, bytes); }

/* Lines that are not read before they are written; operands lie at multiples of a line. */
static void copy_past(char *to, const char *from, size_t bytes) {
#if defined(__x86_64__)
    typedef float v __attribute__((vector_size(16), may_alias));
    for (size_t at = 0; at < bytes; at += 64) {
        v t[4];
        ISO_UNROLLED (i, 4)
            t[i] = ((const v *)(from + at))[i];
        ISO_UNROLLED (i, 4)
            __asm__("movntps %1, %0" : "=m"(((v *)(to + at))[i]) : "x"(t[i]));
    }
    __asm__ volatile("sfence" ::: "memory");
#else
    memcpy(to, from, bytes);
#endif
}

FUNCTIONS(plain, 16, __attribute__((noinline)))
#if defined(__x86_64__)
FUNCTIONS(avx2, 32, __attribute__((noinline, target("avx2"))))
FUNCTIONS(avx512, 64, __attribute__((noinline, target("avx512f"))))
#endif

static const struct patterns *patterns_of(const iso_isa *isa) {
#if defined(__x86_64__)
    if (isa->kernels->vector_floats == 16)
        return &avx512;
    if (isa->kernels->vector_floats == 8)
        return &avx2;
#endif
    (void)isa;
    return &plain;
}

/* -------------------------------------------------------------------------------------- tasks */

enum { MAX_TASKS = 1024 };

struct shot {
    const struct bench_place *place;
    enum bench_bound bound;
    const char *from;
    char *to;
    size_t bytes, part; /* of all tasks, of one */
    size_t rounds;
    unsigned pattern;
};

/* What the tasks computed goes here, so that no compiler can leave it out. */
static volatile uint64_t sink[MAX_TASKS];

static void task(void *arg, size_t i) {
    const struct shot *s = arg;
    const size_t at = i * s->part;
    uint64_t sum = 0;
    if (s->bound == BENCH_FMA) {
        float f = s->place->isa->kernels->fma_peak(s->rounds);
        memcpy(&sum, &f, sizeof f);
    } else if (s->bound == BENCH_INT8) {
        sum = (uint64_t)iso_isa_s8(s->place->isa)->s8_peak(s->rounds);
    } else if (s->bound == BENCH_BF16) {
        float f = iso_isa_s8(s->place->isa)->b16_peak(s->rounds);
        memcpy(&sum, &f, sizeof f);
    } else {
        const struct patterns *patterns = patterns_of(s->place->isa);
        for (size_t r = 0; r < s->rounds; r++) {
            if (s->bound == BENCH_READ)
                sum += patterns->read[s->pattern % READ_PATTERNS](s->from + at, s->part);
            else
                patterns->copy[s->pattern % COPY_PATTERNS](s->to + at, s->from + at, s->part);
            __asm__ volatile("" ::: "memory"); /* each round reads anew */
        }
    }
    sink[i] = sum;
}

static double time_of(struct shot *s, size_t tasks) {
    const iso_executor *executor = s->place->executor;
    double start = bench_now();
    if (executor)
        executor->parallel_for(executor->user, tasks, task, s);
    else
        task(s, 0);
    return bench_now() - start;
}

double bench_peak(const struct bench_place *place, enum bench_bound bound, const void *from,
                  void *to, size_t bytes, double seconds) {
    static unsigned turn;
    struct shot s = {.place = place, .bound = bound, .from = from, .to = to, .rounds = 1};
    const size_t tasks = place->threads < MAX_TASKS ? place->threads : MAX_TASKS;
    double work; /* of one round */
    if (bound == BENCH_BF16 && !place->isa->s8->b16_peak)
        return 0;
    if (bench_is_compute(bound)) {
        const unsigned each = bound == BENCH_FMA    ? place->isa->kernels->fma_peak_flops
                              : bound == BENCH_INT8 ? iso_isa_s8(place->isa)->s8_peak_ops
                                                    : iso_isa_s8(place->isa)->b16_peak_flops;
        work = (double)each * (double)tasks;
        s.rounds = 256;
    } else {
        s.pattern = turn++; /* of memory alone: who asks for FMAs in between meets them all, too */
        s.part = bytes / (bound == BENCH_COPY ? 2 : 1) / tasks / BLOCK * BLOCK;
        s.part = s.part ? s.part : BLOCK;
        work = (double)(s.part * tasks) * (bound == BENCH_COPY ? 2 : 1);
    }
    /* The first time also warms the caches up; then as many rounds as fill the time. */
    double t = time_of(&s, tasks);
    while (t < seconds / 8) {
        if (s.rounds > SIZE_MAX / 8) /* more rounds take no longer: nothing is measured */
            return 0;
        s.rounds *= t < seconds / 64 ? 8 : 2;
        t = time_of(&s, tasks);
    }
    double rounds = (double)s.rounds * seconds / t;
    s.rounds = rounds > 1 ? (size_t)rounds : 1;
    t = time_of(&s, tasks);
    return work * (double)s.rounds / t;
}

double bench_best_peak(const struct bench_place *place, enum bench_bound bound, const void *from,
                       void *to, size_t bytes, double seconds, unsigned shots) {
    double best = 0;
    for (unsigned i = 0; i < shots; i++) {
        double peak = bench_peak(place, bound, from, to, bytes, seconds);
        best = peak > best ? peak : best;
    }
    return best;
}
