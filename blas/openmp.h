/* SPDX-License-Identifier: MIT
 *
 * The OpenMP runtime of the program, if it has one.
 */
#ifndef ISOBIT_BLAS_OPENMP_H
#define ISOBIT_BLAS_OPENMP_H

#include <stddef.h>

struct openmp {
    int (*in_parallel)(void);
    int (*max_threads)(void);
    void (*parallel)(void (*body)(void *), void *arg, unsigned threads, unsigned flags);
};

/* The runtime that the program has loaded by now, also as a private library of a module of Python;
 * NULL where there is none. */
const struct openmp *iso_blas_find_openmp(void);

/* An executor's parallel_for; `user` is a struct openmp that has threads. */
void iso_blas_openmp_for(void *user, size_t n, void (*fn)(void *arg, size_t i), void *arg);

/* Not in the child of a fork, where the runtime's threads are not. */
int iso_blas_openmp_has_threads(const struct openmp *runtime);
void iso_blas_openmp_in_child(void);

#endif
