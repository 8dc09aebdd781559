/* SPDX-License-Identifier: MIT
 *
 * iso_gemv_f32: dot products of rows, in an order of their own; and a W [k][n], which is a product
 * with one row.
 */
#include "gemm/plan.h"

#include "check.h"
#include "verbose.h"

#include <isobit/ops.h>

#include <stdio.h>
#include <string.h>

#define MOST_OF_DOT ((size_t)1 << 28) /* floats, whose bytes do not overflow */

struct gemv_job {
    const struct iso_kernels *kernels;
    float *y;
    const float *w, *x;
    size_t ldw, n, k, tasks;
    int interleaved;
};

static void run_gemv(void *arg, size_t task) {
    const struct gemv_job *t = arg;
    const size_t panels = (t->n + ISO_PANEL - 1) / ISO_PANEL;
    const size_t j = panels * task / t->tasks * ISO_PANEL;
    const size_t end = iso_min_size(t->n, panels * (task + 1) / t->tasks * ISO_PANEL);
    t->kernels->gemv(t->y + j, t->w + j * t->ldw, t->ldw, t->x, end - j, t->k, t->interleaved);
}

/* *t becomes the job, as far as it gets. */
static iso_status gemv_call(struct gemv_job *t, float *y, const float *w, size_t ldw,
                            const float *x, size_t n, size_t k, const iso_context *context) {
    *t = (struct gemv_job){.y = y, .w = w, .x = x, .ldw = ldw, .n = n, .k = k};
    iso_status status = iso_check_matrix(y, 1, n, n);
    if (!status)
        status = iso_check_matrix(w, n, k, ldw);
    if (!status && n)
        status = iso_check_matrix(x, 1, k, k);
    if (!status)
        status = iso_context_kernels(&t->kernels, context);
    if (status || n == 0)
        return status;
    if (iso_overlap(y, 1, n, n, x, 1, k, k) || iso_overlap(y, 1, n, n, w, n, k, ldw))
        return ISOBIT_E_ALIAS;
    if (k == 0) { /* w and x may be NULL */
        memset(y, 0, n * sizeof *y);
        return ISOBIT_OK;
    }
    t->tasks = 1;
    const struct iso_gemm_machine machine = iso_gemm_this_machine(t->kernels);
    t->interleaved = TUNED(&machine, interleaved) != 0;
    if (n * k / n != k || n * k >= ISO_GEMM_SMALL_WORK / 4)
        t->tasks = iso_context_threads(context);
    iso_parallel(context, t->tasks, run_gemv, t);
    return ISOBIT_OK;
}

/* A dot product, if nothing about it is unusual; else 0, and nothing is done. A short one takes
 * less time than checks of any shape and a look at the machine. */
static int try_dot(float *y, const float *w, size_t ldw, const float *x, size_t k) {
    const uintptr_t end = (uintptr_t)y + sizeof *y, bytes = k * sizeof *y + sizeof *y;
    if (k - 1 >= MOST_OF_DOT || ldw < k || !y || !w || !x || end - (uintptr_t)w < bytes ||
        end - (uintptr_t)x < bytes)
        return 0;
    const struct iso_kernels *kernels = iso_kernels_at_once();
    if (!kernels)
        return 0;
    kernels->gemv(y, w, ldw, x, 1, k, 0);
    return 1;
}

/* Not in iso_gemv_f32, so that a dot product does not set up its stack. */
static __attribute__((noinline)) iso_status run_any(float *y, const float *w, size_t ldw,
                                                    const float *x, size_t n, size_t k, int trans_w,
                                                    const iso_context *context) {
    if (trans_w)
        return iso_gemm_f32(y, n, x, k, w, ldw, 1, n, k, NULL, context);
    struct gemv_job t;
    const uint64_t begin = iso_verbose_begin();
    const iso_status status = gemv_call(&t, y, w, ldw, x, n, k, context);
    if (begin) {
        const uint64_t end = iso_verbose_clock();
        char way[80] = "no product";
        if (t.tasks)
            snprintf(way, sizeof way, "dot products of rows; tasks %zu", t.tasks);
        iso_verbose_end(begin, end, "gemv_f32", context, status, way, "n%zuk%zu:ldw%zu", n, k, ldw);
    }
    return status;
}

iso_status iso_gemv_f32(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                        int trans_w, const iso_context *context) {
    if (n == 1 && !trans_w && !context && iso_verbose_is_off() && try_dot(y, w, ldw, x, k))
        return ISOBIT_OK;
    return run_any(y, w, ldw, x, n, k, trans_w, context);
}
