/* SPDX-License-Identifier: MIT
 *
 * What pattern_*.c have in common: a call as a program makes it, on each instruction set and with
 * one and two threads, against a product in double, and bit by bit against the first of them. */
#ifndef ISOBIT_TESTS_BLAS_PATTERN_H
#define ISOBIT_TESTS_BLAS_PATTERN_H

#include <isobit/isobit.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void openblas_set_num_threads(int threads);

static int failures;

#define FAIL(...)                                                                                  \
    do {                                                                                           \
        failures++;                                                                                \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fputc('\n', stderr);                                                                       \
    } while (0)

static void *must(void *memory) {
    if (memory == NULL) {
        fputs("no memory\n", stderr);
        exit(1);
    }
    return memory;
}

/* count numbers from -1 to 1. */
static float *random_floats(size_t count, unsigned seed) {
    float *values = must(malloc((count + 1) * sizeof *values));
    unsigned state = seed * 2654435761u + 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (float)(state >> 8) * 0x1p-23F - 1;
    }
    return values;
}

/* Element i, j of a matrix as it lies in memory: rows of so many elements apart, or columns. */
typedef struct {
    const float *data;
    size_t row, column;
} view;

static float at(view matrix, size_t i, size_t j) {
    return matrix.data[i * matrix.row + j * matrix.column];
}

/* Whether c = a b + before, a m x k and b k x n, before may have no data. What a sum of k products
 * in float can be off, in any order: k + 2 roundings of the sum of the magnitudes. */
static inline void check_product(const char *what, view c, view a, view b, view before, size_t m,
                                 size_t n, size_t k) {
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = before.data ? (double)at(before, i, j) : 0, magnitude = fabs(sum);
            for (size_t l = 0; l < k; l++) {
                const double product = (double)at(a, i, l) * (double)at(b, l, j);
                sum += product;
                magnitude += fabs(product);
            }
            const double off = fabs((double)at(c, i, j) - sum);
            if (!(off <= (double)(k + 2) * 0x1p-24 * magnitude)) {
                FAIL("%s: [%zu][%zu] is %a, not %a", what, i, j, (double)at(c, i, j), sum);
                return;
            }
        }
}

/* Runs call(argument, output) on each instruction set with one thread and with two; the output has
 * count elements, which begin as those of start. The first result goes to result. */
static inline void same_bits(const char *what, void (*call)(const void *, float *),
                             const void *argument, const float *start, float *result,
                             size_t count) {
    float *output = must(malloc((count + 1) * sizeof *output));
    int first = 1;
    for (size_t i = 0; i < iso_isa_count(); i++) {
        const iso_isa *isa = iso_isa_get(i);
        if (iso_isa_missing(isa) != NULL)
            continue;
        if (iso_set_isa(iso_isa_name(isa)) != ISOBIT_OK)
            FAIL("%s can't be chosen", iso_isa_name(isa));
        for (int threads = 1; threads <= 2; threads++) {
            openblas_set_num_threads(threads);
            memcpy(output, start, count * sizeof *output);
            call(argument, output);
            if (first)
                memcpy(result, output, count * sizeof *output);
            else if (memcmp(result, output, count * sizeof *output) != 0)
                FAIL("%s: other bits on %s with %d threads", what, iso_isa_name(isa), threads);
            first = 0;
        }
    }
    if (first)
        FAIL("%s: no instruction set", what);
    free(output);
}

static int end(const char *program) {
    if (failures == 0)
        printf("%s: passed\n", program);
    return failures != 0;
}

#endif
