/* SPDX-License-Identifier: MIT
 *
 * iso_gemv_f32: a matrix with one vector, in an order of its own.
 */
#include "gemm/plan.h"

#include "check.h"
#include "verbose.h"

#include <stdio.h>
#include <string.h>

struct gemv_job {
    const struct iso_kernels *kernels;
    float *y;
    const float *w, *x;
    size_t ldw, n, k, tasks;
    int layout;
    float *levels; /* of each task, or NULL */
    int has_levels;
    size_t levels_floats;
};

/* Whether a W [k][n] is read in the order of its rows. */
static int goes_in_order(size_t n, size_t k) {
    return k >= ISO_GEMM_ORDERED_ROWS && n >= ISO_PANEL && n <= ISO_GEMM_ORDERED_COLUMNS &&
           n >= ISO_GEMM_ORDERED_FLOATS / k;
}

static void run_gemv(void *arg, size_t task) {
    const struct gemv_job *t = arg;
    const int by_columns = t->layout == ISO_GEMV_COLUMNS || t->layout == ISO_GEMV_IN_ORDER;
    const size_t panels = (t->n + ISO_PANEL - 1) / ISO_PANEL;
    size_t j = panels * task / t->tasks * ISO_PANEL;
    const size_t end = iso_min_size(t->n, panels * (task + 1) / t->tasks * ISO_PANEL);
    if (j < end)
        t->kernels->gemv(t->y + j, t->w + (by_columns ? j : j * t->ldw), t->ldw, t->x, end - j,
                         t->k, t->layout, t->levels ? t->levels + task * t->levels_floats : NULL);
}

/* *t becomes the job, as far as it gets. */
static iso_status gemv_call(struct gemv_job *t, float *y, const float *w, size_t ldw,
                            const float *x, size_t n, size_t k, int trans_w,
                            const iso_context *context) {
    *t = (struct gemv_job){.y = y, .w = w, .x = x, .ldw = ldw, .n = n, .k = k};
    const size_t rows = trans_w ? k : n, columns = trans_w ? n : k;
    iso_status status = iso_check_matrix(y, 1, n, n);
    if (!status)
        status = iso_check_matrix(w, rows, columns, ldw);
    if (!status && n)
        status = iso_check_matrix(x, 1, k, k);
    if (!status)
        status = iso_context_kernels(&t->kernels, context);
    if (status || n == 0)
        return status;
    if (iso_overlap(y, 1, n, n, x, 1, k, k) || iso_overlap(y, 1, n, n, w, rows, columns, ldw))
        return ISOBIT_E_ALIAS;
    if (k == 0) { /* w and x may be NULL */
        memset(y, 0, n * sizeof *y);
        return ISOBIT_OK;
    }
    if (n == 1 && !trans_w) { /* a dot product: a short one takes less time than a plan */
        t->tasks = 1, t->layout = ISO_GEMV_ROWS;
        t->kernels->gemv(y, w, ldw, x, 1, k, t->layout, NULL);
        return ISOBIT_OK;
    }
    const struct iso_gemm_machine machine = iso_gemm_this_machine(t->kernels);
    t->layout = trans_w                        ? ISO_GEMV_COLUMNS
                : TUNED(&machine, interleaved) ? ISO_GEMV_INTERLEAVED
                                               : ISO_GEMV_ROWS;
    t->tasks = n * k / n == k && n * k < ISO_GEMM_SMALL_WORK / 4 ? 1 : iso_context_threads(context);
    void *owned = NULL;
    if (trans_w && iso_gemv_runs(n, k)) { /* where there is no memory for it levels is NULL */
        const int in_order = goes_in_order(n, k);
        t->levels_floats = in_order ? ISO_LANES * ISO_GEMV_LANE(n) : ISO_GEMV_FLOATS(n);
        t->levels_floats = iso_round_up(t->levels_floats, ISO_LINE);
        (void)iso_scratch(&t->levels, &owned, context, t->tasks * t->levels_floats);
        if (in_order && t->levels)
            t->layout = ISO_GEMV_IN_ORDER;
    }
    t->has_levels = t->levels != NULL;
    iso_parallel(context, t->tasks, run_gemv, t);
    free(owned);
    return ISOBIT_OK;
}

iso_status iso_gemv_f32(float *y, const float *w, size_t ldw, const float *x, size_t n, size_t k,
                        int trans_w, const iso_context *context) {
    struct gemv_job t;
    const uint64_t begin = iso_verbose_begin();
    const iso_status status = gemv_call(&t, y, w, ldw, x, n, k, trans_w, context);
    if (begin) {
        const uint64_t end = iso_verbose_clock();
        char way[80] = "no product";
        if (t.tasks)
            snprintf(way, sizeof way, "%s; tasks %zu",
                     t.layout == ISO_GEMV_ROWS          ? "dot products of rows"
                     : t.layout == ISO_GEMV_INTERLEAVED ? "dot products of several rows at a time"
                     : t.layout == ISO_GEMV_IN_ORDER    ? "adds up rows in their order with scratch"
                     : t.has_levels                     ? "adds up rows with scratch"
                                                        : "adds up rows",
                     t.tasks);
        iso_verbose_end(begin, end, "gemv_f32", context, status, way, "n%zuk%zu:%c:ldw%zu", n, k,
                        trans_w ? 't' : 'n', ldw);
    }
    return status;
}
