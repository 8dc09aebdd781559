/* SPDX-License-Identifier: MIT
 *
 * Lines about calls, for people who look at what happens (see ISOBIT_VERBOSE in isobit.h). An
 * operation does
 *     const uint64_t begin = iso_verbose_begin();
 *     const iso_status status = ...;
 *     if (begin)
 *         iso_verbose_end(begin, iso_verbose_clock(), "softmax_f32", context, status, reason,
 *                         "rows%zu...", rows ...);
 * which costs the load of one variable and a branch as long as nobody looks.
 */
#ifndef ISOBIT_VERBOSE_H
#define ISOBIT_VERBOSE_H

#include <isobit/ops.h>

#include <stdatomic.h>
#include <stdint.h>

/* 0: off. 1, 2: the levels. -1: the environment has not been read yet. */
extern atomic_int iso_verbose_state;

/* The time, or 0 when off. May read the environment, once. */
uint64_t iso_verbose_clock(void) __attribute__((cold));

static inline int iso_verbose_is_off(void) {
    const int off = atomic_load_explicit(&iso_verbose_state, memory_order_relaxed) == 0;
    return __builtin_expect(off, 1) != 0;
}

static inline uint64_t iso_verbose_begin(void) {
    return iso_verbose_is_off() ? 0 : iso_verbose_clock();
}

/* The line of a call that took from `begin` to `end`. `reason` may be NULL; level 1 leaves it out.
 * What follows is the shape, as printf takes it. */
void iso_verbose_end(uint64_t begin, uint64_t end, const char *operation,
                     const iso_context *context, iso_status status, const char *reason,
                     const char *shape, ...) __attribute__((cold, format(printf, 7, 8)));

/* ":relu" and its like, "" for none. */
const char *iso_verbose_act(int act) __attribute__((cold));

#endif
