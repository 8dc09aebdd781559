/* SPDX-License-Identifier: MIT
 *
 * Clocks, the canary, timings in turns, and counting.
 */
#include "ab.h"

static int64_t clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Not slewed by NTP. */
static int64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC_RAW); }

/*
 * Workers of a pool look out for more work for a moment before they sleep. The other library's
 * timings do not begin before they do: until no other thread of this process uses a CPU.
 */
#define SETTLING 2e-4 /* seconds, mostly */
static void settle(void) {
    int64_t before = -1;
    for (int i = 0; i < 200; i++) {
        const int64_t others =
            clock_ns(CLOCK_PROCESS_CPUTIME_ID) - clock_ns(CLOCK_THREAD_CPUTIME_ID);
        /* The clocks are read one after the other: what lies between counts as others' time. */
        if (before >= 0 && others - before < 10000)
            return;
        before = others;
        for (const int64_t start = now_ns(); now_ns() - start < 100000;)
            ;
    }
}

uint64_t random_bits(void) { /* splitmix64 */
    static uint64_t state;
    static bool seeded;
    if (!seeded)
        state = options.seed, seeded = true;
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* --------------------------------------------------------------------------------- the canary */

/* Work that is always the same, in nanoseconds: whether the machine is as it was. */
static void canary(double *multiply_add, double *copy) {
    enum { BYTES = 4 << 20, ROUNDS = 3 };
    static char *from, *to;
    if (!from) {
        from = malloc(BYTES), to = malloc(BYTES);
        if (!from || !to) {
            complain("not enough memory");
            exit(FAILED);
        }
        memset(from, 1, BYTES);
        memset(to, 2, BYTES);
    }
    *multiply_add = *copy = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        double x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
        int64_t start = now_ns();
        for (int i = 0; i < 10000; i++)
            for (int j = 0; j < 8; j++)
                x[j] = x[j] * 0.999 + 0.001;
        *multiply_add = fmin(*multiply_add, (double)(now_ns() - start));
        __asm__ volatile("" : : "r"(x) : "memory");
        start = now_ns();
        memcpy(to, from, BYTES);
        __asm__ volatile("" : : "r"(to) : "memory");
        *copy = fmin(*copy, (double)(now_ns() - start));
    }
}

/* ---------------------------------------------------------------------------------- measuring */

static iso_status time_calls(const struct side *side, size_t calls, double inject,
                             struct timing *timing) {
    iso_status failed = ISOBIT_OK;
    running_side = side->name;
    const int64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID), start = now_ns();
    for (size_t i = 0; i < calls; i++) {
        const iso_status status = bench_call(&side->job);
        failed = status ? status : failed;
    }
    int64_t end = now_ns();
    if (inject > 0) {
        const int64_t until = end + (int64_t)((double)(end - start) * inject / 100);
        while (end < until)
            end = now_ns();
    }
    timing->wall = (double)(end - start) / (double)calls;
    timing->cpu = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu) / (double)calls;
    return failed;
}

/* How many calls take at least a slot. */
static iso_status calls_of(const struct side *side, size_t *calls) {
    for (*calls = 1;;) {
        struct timing t;
        iso_status status = time_calls(side, *calls, 0, &t);
        const double times = options.slot * 1e9 / (t.wall * (double)*calls);
        if (status || times <= 1)
            return status;
        /* The first calls are slow; then they are few, and this comes nearer in steps. */
        *calls = (size_t)((double)*calls * fmin(times * 1.1, 16)) + 1;
    }
}

/*
 * As many calls for one library as for the other, so that what a batch costs beside them is the
 * same: what the faster one needs to fill a slot. One that is very much faster gets shorter
 * timings, or those of the other would take forever.
 */
static iso_status common_calls(const struct side **who, size_t *calls) {
    enum { MOST_TIMES = 8 };
    size_t each[2];
    for (size_t i = 0; i < 2; i++) {
        *who = &sides[i];
        iso_status status = calls_of(*who, &each[i]);
        if (status)
            return status;
    }
    const size_t fewer = each[0] < each[1] ? each[0] : each[1], more = each[0] + each[1] - fewer;
    *calls = more < MOST_TIMES * fewer ? more : MOST_TIMES * fewer;
    return ISOBIT_OK;
}

static iso_status time_slot(const struct side *side, const struct row *row, size_t calls,
                            struct timing *timing) {
    const double inject = side == &sides[1] ? row->inject : 0;
    running_side = side->name;
    /* Code and packed weights of the other one are in the caches, and its workers awake. */
    iso_status status = bench_call(&side->job);
    if (!status)
        status = time_calls(side, calls, inject, timing);
    if (row->threads > 1)
        settle();
    return status;
}

static const struct iso_executor *executor_of(const struct side *side, const struct row *row) {
    return row->threads > 1 ? side->library.pool_executor(side->pool) : NULL;
}

/* Why a side cannot run the row, or NULL: then it has been called once, and hashed. */
static const char *prepare(struct side *side, const struct row *row) {
    static char why[160];
    const struct bench_library *library = &side->library;
    const iso_executor *executor = executor_of(side, row);
    struct bench_place place = {.executor = executor, .threads = row->threads};
    const char *lacking = bench_lacking(library, row->spec);
    snprintf(running, sizeof running, "%s", row->name);
    running_side = side->name;
    if (lacking) {
        snprintf(why, sizeof why, "the library has no function %s", lacking);
        return why;
    }
    if (library->isa_find(&place.isa, iso_isa_name(row->isa))) {
        snprintf(why, sizeof why, "no instruction set '%s' here; there is: %s",
                 iso_isa_name(row->isa), library->isa_names());
        return why;
    }
    if (executor && executor->max_threads != row->threads) {
        snprintf(why, sizeof why, "its pool has %zu threads", executor->max_threads);
        return why;
    }
    iso_status status = bench_prepare(&side->job, library, row->spec, &place);
    if (!status) {
        bench_spoil(&side->job);
        status = bench_call(&side->job);
    }
    side->hash = status ? 0 : XXH3_64bits(side->job.out, side->job.out_floats * sizeof(float));
    return status ? library->strerror(status) : NULL;
}

/* Both sides; a benchmark that one of them cannot run is left out. */
static bool prepare_both(const struct row *row) {
    bool good = true;
    for (size_t i = 0; i < 2; i++) {
        const char *why = prepare(&sides[i], row);
        if (why)
            put_error(row, &sides[i], why);
        good &= !why;
    }
    running_side = NULL;
    /* The workspace may have grown for b. */
    sides[0].job.context.workspace = sides[1].job.context.workspace;
    sides[0].job.context.workspace_bytes = sides[1].job.context.workspace_bytes;
    return good;
}

static void put_times(size_t side, const struct block *blocks, size_t count) {
    double cpu = 0;
    printf(",\"%s\":[", sides[side].name);
    for (size_t i = 0; i < count; i++) {
        const struct timing *t = blocks[i].slots[side];
        printf("%s%.5g,%.5g", i ? "," : "", t[0].wall, t[1].wall);
        cpu += t[0].cpu + t[1].cpu;
    }
    printf("],\"cpu_%s\":%.5g", sides[side].name, cpu / 2 / (double)count);
}

static void put_bench(const struct row *row, size_t calls, const struct block *blocks, size_t count,
                      const double *canaries) {
    printf("{\"type\":\"bench\"");
    put_key("bench", row->name);
    printf(",\"calls\":%zu,\"order\":\"", calls);
    for (size_t i = 0; i < count; i++)
        fputs(blocks[i].b_first ? "BAAB" : "ABBA", stdout);
    putchar('"');
    put_times(0, blocks, count);
    put_times(1, blocks, count);
    printf(",\"hash_a\":\"%016llx\",\"hash_b\":\"%016llx\",\"canary\":[%.0f,%.0f]",
           (unsigned long long)sides[0].hash, (unsigned long long)sides[1].hash, canaries[0],
           canaries[1]);
    printf(",\"work\":{\"flops\":%.0f,\"bytes\":%.0f}}", sides[0].job.flops, sides[0].job.bytes);
    end_line();
}

/* How many blocks take so long as is wanted; of long calls only a few. */
static iso_status blocks_for(const struct side **who, const struct row *row, size_t calls,
                             size_t *count) {
    enum { LEAST = 5 };
    double block = row->threads > 1 ? 4 * SETTLING : 0;
    for (size_t i = 0; i < 2; i++) {
        struct timing t;
        *who = &sides[i];
        iso_status status = time_calls(*who, calls, 0, &t);
        if (status)
            return status;
        block += 2e-9 * t.wall * (double)(calls + 1);
    }
    const double wanted = options.seconds / block;
    *count = wanted >= (double)options.blocks ? options.blocks
             : wanted <= LEAST                ? LEAST
                                              : (size_t)wanted;
    *count = *count < options.blocks ? *count : options.blocks;
    return ISOBIT_OK;
}

/* Whether there is a line of results. */
bool measure(const struct row *row, struct block *blocks) {
    const struct side *side;
    double canaries[2];
    size_t calls = 1, count = 0;
    if (!prepare_both(row))
        return false;
    canary(&canaries[0], &canaries[1]);
    iso_status status = common_calls(&side, &calls);
    if (!status)
        status = blocks_for(&side, row, calls, &count);
    if (row->threads > 1)
        settle();
    for (size_t i = 0; i < count && !status; i++) {
        struct block *b = &blocks[i];
        b->b_first = random_bits() & 1;
        for (size_t j = 0; j < 4 && !status; j++) {
            const size_t which = (j == 1 || j == 2) != b->b_first; /* A B B A, or the other way */
            side = &sides[which];
            status = time_slot(side, row, calls, &b->slots[which][j / 2]);
        }
    }
    running_side = NULL;
    if (status)
        put_error(row, side, side->library.strerror(status));
    else
        put_bench(row, calls, blocks, count, canaries);
    return !status;
}

/* ------------------------------------------------------------------------------------ counting */

/*
 * The function whose instructions callgrind counts: it is found by this name, so there must be no
 * variant of it for its one caller, who goes by a pointer.
 */
void isobit_ab_counted(const struct bench_job *job, iso_status *status);

__attribute__((noinline)) void isobit_ab_counted(const struct bench_job *job, iso_status *status) {
    *status = bench_call(job);
}
void (*volatile counted)(const struct bench_job *job, iso_status *status) = isobit_ab_counted;

int count(const struct row *row) {
    struct side *side = &sides[0];
    iso_status status = ISOBIT_OK;
    const char *why = prepare(side, row); /* the first call */
    if (!why && !(status = bench_call(&side->job)))
        counted(&side->job, &status);
    if (why || status) {
        put_error(row, side, why ? why : side->library.strerror(status));
        return FAILED;
    }
    printf("{\"type\":\"count\",\"v\":1");
    put_key("bench", row->name);
    put_key("version", side->library.version());
    printf(",\"hash_a\":\"%016llx\"}", (unsigned long long)side->hash);
    end_line();
    return 0;
}
