/* SPDX-License-Identifier: MIT
 *
 * What our drivers of other programs have in common. A driver includes the program's source, whose
 * path is the macro PROGRAM, and uses its functions.
 */
#ifndef ISOBIT_INTEGRATIONS_DRIVER_H
#define ISOBIT_INTEGRATIONS_DRIVER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double driver_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* FNV-1a of the bits of floats; begins with DRIVER_HASH. */
#define DRIVER_HASH UINT64_C(0xcbf29ce484222325)
static inline uint64_t driver_hash(uint64_t hash, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        for (int shift = 0; shift < 32; shift += 8)
            hash = (hash ^ (bits >> shift & 255)) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* splitmix64 */
static inline uint64_t driver_random(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline void driver_write(const char *path, const float *x, size_t n) {
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(x, sizeof *x, n, file) != n || fclose(file) != 0) {
        fprintf(stderr, "driver: cannot write %s\n", path);
        exit(EXIT_FAILURE);
    }
}

#endif
