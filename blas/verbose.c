/* SPDX-License-Identifier: MIT
 *
 * Lines about calls of the BLAS, in the form and at the place of those of the operations.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* clock_gettime */
#endif
#include "core.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

double iso_blas_begin(void) { return iso_verbose() ? now() : 0; }

void iso_blas_end(double begin, const char *routine, const iso_context *context, const char *shape,
                  ...) {
    const double end = now();
    char text[256];
    va_list arguments;
    va_start(arguments, shape);
    vsnprintf(text, sizeof text, shape, arguments);
    va_end(arguments);
    iso_verbose_call(routine, context, text, NULL, ISOBIT_OK, end - begin);
}
