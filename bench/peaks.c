/* SPDX-License-Identifier: MIT
 *
 * See peaks.h. Reading is written with GCC's vector types, compiled for each instruction set by a
 * function attribute: a loop for the baseline CPU could not keep up with the caches. Copying is
 * libc's memcpy, which is what everyone would use.
 */
#include "peaks.h"

#include <string.h>
#include <time.h>

double bench_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ------------------------------------------------------------------------------------ reading */

/* Bytes are read in blocks of so many; the remainder of a footprint is left out. */
#define READ_BLOCK 512

/* 8 sums, so that the loads are what limits it. */
#define READ_FUNCTION(name, width, attributes)                                                     \
    __attribute__((noinline attributes)) static uint64_t name(const char *p, size_t bytes) {       \
        typedef uint64_t v __attribute__((vector_size(width), may_alias));                         \
        v t0 = {0}, t1 = {0}, t2 = {0}, t3 = {0}, t4 = {0}, t5 = {0}, t6 = {0}, t7 = {0};          \
        for (const char *end = p + bytes; p < end; p += 8 * (width)) {                             \
            const v *q = (const v *)p;                                                             \
            t0 ^= q[0], t1 ^= q[1], t2 ^= q[2], t3 ^= q[3];                                        \
            t4 ^= q[4], t5 ^= q[5], t6 ^= q[6], t7 ^= q[7];                                        \
        }                                                                                          \
        t0 ^= t1 ^ t2 ^ t3 ^ t4 ^ t5 ^ t6 ^ t7;                                                    \
        return t0[0];                                                                              \
    }
#define AND(attribute) , attribute
#define NOTHING

READ_FUNCTION(read_plain, 16, NOTHING)
#if defined(__x86_64__)
READ_FUNCTION(read_avx2, 32, AND(target("avx2")))
READ_FUNCTION(read_avx512, 64, AND(target("avx512f")))
#endif

static uint64_t read_bytes(const iso_isa *isa, const char *p, size_t bytes) {
#if defined(__x86_64__)
    if (isa->kernels->vector_floats == 16)
        return read_avx512(p, bytes);
    if (isa->kernels->vector_floats == 8)
        return read_avx2(p, bytes);
#endif
    (void)isa;
    return read_plain(p, bytes);
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
    } else {
        for (size_t r = 0; r < s->rounds; r++) {
            if (s->bound == BENCH_READ)
                sum += read_bytes(s->place->isa, s->from + at, s->part);
            else
                memcpy(s->to + at, s->from + at, s->part);
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
    struct shot s = {.place = place, .bound = bound, .from = from, .to = to, .rounds = 1};
    const size_t tasks = place->threads < MAX_TASKS ? place->threads : MAX_TASKS;
    double work; /* of one round */
    if (bound == BENCH_FMA) {
        work = (double)place->isa->kernels->fma_peak_flops * (double)tasks;
        s.rounds = 256;
    } else {
        s.part = bytes / (bound == BENCH_COPY ? 2 : 1) / tasks / READ_BLOCK * READ_BLOCK;
        s.part = s.part ? s.part : READ_BLOCK;
        work = (double)(s.part * tasks) * (bound == BENCH_COPY ? 2 : 1);
    }
    /* The first time also warms the caches up; then as many rounds as fill the time. */
    double t = time_of(&s, tasks);
    while (t < seconds / 8) {
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
