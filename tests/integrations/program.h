/* SPDX-License-Identifier: MIT
 *
 * What the small programs of this folder have in common. Each of them has functions with the names
 * and arguments of another program, written plainly with sums in double, and calls them as that
 * program does. In the test its object's functions are weak, and a shim's take their place.
 */
#ifndef ISOBIT_TESTS_INTEGRATIONS_PROGRAM_H
#define ISOBIT_TESTS_INTEGRATIONS_PROGRAM_H

#include <dirent.h>
#include <isobit/isobit.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ULP (1.0 / (1 << 24)) /* the relative error of one rounding */

static unsigned own_calls; /* of the program's own functions: there must be none */
static unsigned failures;
static uint64_t hash;
static const char *set_name = "?";

static uint64_t random_state;
static uint32_t random_bits(void) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 40); /* 24 of them */
}

static void *memory(size_t n, size_t element) {
    void *p = calloc(n ? n : 1, element);
    if (!p) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    return p;
}

/* n numbers in [-size, size) */
static float *numbers(size_t n, double size) {
    float *x = memory(n, sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(((double)random_bits() / (1 << 23) - 1) * size);
    return x;
}

static void fail(const char *what, int i, double got, double expect, double bound) {
    if (failures++ < 10)
        printf("%s: %s[%d] is %.9g, not %.9g +- %.3g\n", set_name, what, i, got, expect, bound);
}

/* One result against its true value; a NaN is a failure. */
static void close_to(const char *what, int i, float got, double expect, double bound) {
    if (!(fabs((double)got - expect) <= bound))
        fail(what, i, (double)got, expect, bound);
}

static void add_to_hash(const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        hash = (hash ^ bits) * UINT64_C(0x100000001b3);
        hash ^= hash >> 29;
    }
}

static int threads_now(void) {
    int n = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks && (entry = readdir(tasks));)
        n += entry->d_name[0] != '.';
    if (tasks)
        closedir(tasks);
    return n;
}

/*
 * Runs the program on each instruction set of the machine, or with any argument once on that which
 * the library takes by itself. Prints a hash of all results, and the number of threads.
 */
static int run_on_sets(int argc, void (*program)(void)) {
    uint64_t first = 0;
    unsigned runs = 0;
    for (size_t i = 0; i < iso_isa_count(); i++) {
        const iso_isa *isa = iso_isa_get(i);
        set_name = iso_isa_name(isa);
        if (argc > 1 && i > 0)
            break;
        if (argc <= 1 && (iso_isa_missing(isa) || iso_set_isa(set_name) != ISOBIT_OK))
            continue;
        hash = 1;
        random_state = 3;
        program();
        if (runs++ == 0)
            first = hash;
        if (hash != first) {
            printf("%s: other bits\n", set_name);
            failures++;
        }
    }
    if (own_calls || !runs) {
        printf("%u calls of the program's own functions in %u runs\n", own_calls, runs);
        failures++;
    }
    printf("hash %016llx\nthreads %d\n", (unsigned long long)first, threads_now());
    return failures > 0;
}

#endif
