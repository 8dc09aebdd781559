/* SPDX-License-Identifier: MIT
 *
 * What the machine can do at best, at this moment: fused multiply-adds from registers, products of
 * int8 and of BF16 likewise, and reading and copying so many bytes again and again. Benchmarks
 * measure these beside each case, since the clock and the neighbours on a shared machine change
 * from one second to the next.
 */
#ifndef ISOBIT_PEAKS_H
#define ISOBIT_PEAKS_H

#include "select.h"

#include <stddef.h>

enum bench_bound { BENCH_FMA = 0, BENCH_READ, BENCH_COPY, BENCH_INT8, BENCH_BF16 };

/* Whether it is arithmetic, not memory. */
static inline int bench_is_compute(enum bench_bound bound) {
    return bound == BENCH_FMA || bound == BENCH_INT8 || bound == BENCH_BF16;
}

/* Where to measure: the kernels of an instruction set, on one thread (executor NULL) or on all. */
struct bench_place {
    const iso_isa *isa;
    const iso_executor *executor;
    size_t threads;
};

double bench_now(void); /* seconds, from an arbitrary start */

/*
 * One measurement that takes about `seconds`: operations or bytes per second. `bytes` is the
 * footprint: what is read, or half of what is read and half of what is written. A copy counts its
 * bytes twice, as it reads and writes them. from and to hold at least `bytes` (to: half of it).
 * Memory is read and copied in another pattern each time: take the best of several. 0 where the set
 * has no products of BF16.
 */
double bench_peak(const struct bench_place *place, enum bench_bound bound, const void *from,
                  void *to, size_t bytes, double seconds);

/* The largest of `shots` measurements. */
double bench_best_peak(const struct bench_place *place, enum bench_bound bound, const void *from,
                       void *to, size_t bytes, double seconds, unsigned shots);

#endif
