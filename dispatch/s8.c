/* SPDX-License-Identifier: MIT
 *
 * Products of int8: rows of floats to integers, packing, and the product.
 *
 * With rows enough for each thread, each takes some through both steps, a block at a time that
 * stays in L2 as integers. Fewer rows become integers first, then the columns are shared out.
 */
#include "check.h"
#include "parts.h"
#include "tuning.h"
#include "verbose.h"

#include <isobit/ops.h>

#include <stdio.h>

enum {
    BLOCK_BYTES = 1 << 18, /* of integers that a task has at a time */
    FEW_ROWS = 32          /* of each thread, below which columns are shared out */
};

static size_t padded_k(size_t k) { return iso_round_up(k, ISO_S8_STEPS); }
static size_t padded_n(size_t n) { return iso_round_up(n, ISO_PANEL); }

/* ---------------------------------------------------------------------------------- quantizing */

struct quantizing {
    const struct iso_kernels *kernels;
    int8_t *q;
    size_t ldq;
    float *scales;
    const float *x;
    size_t ldx, rows, n, padded, tasks;
    int flip;
};

static void quantize_some(void *arg, size_t task) {
    const struct quantizing *t = arg;
    const size_t i = t->rows * task / t->tasks, end = t->rows * (task + 1) / t->tasks;
    t->kernels->quantize_s8(t->q + i * t->ldq, t->ldq, t->scales + i, t->x + i * t->ldx, t->ldx,
                            end - i, t->n, t->padded, t->flip);
}

static void quantize(const iso_context *context, struct quantizing *t) {
    const size_t threads = iso_context_threads(context);
    t->tasks = t->rows * t->n < ISO_SMALL_QUANTIZE ? 1 : threads < t->rows ? threads : t->rows;
    iso_parallel(context, t->tasks, quantize_some, t);
}

static iso_status quantize_call(struct quantizing *t, const iso_context *context) {
    const size_t rows = t->rows, n = t->n;
    iso_status status = iso_check_matrix(t->q, rows, n, t->ldq);
    if (!status)
        status = iso_check_matrix(t->x, rows, n, t->ldx);
    if (!status && rows && !t->scales)
        status = ISOBIT_E_NULL;
    if (!status && rows) {
        const size_t x = iso_extent(rows, n, t->ldx, sizeof *t->x);
        const size_t q = iso_extent(rows, n, t->ldq, 1), scales = rows * sizeof *t->scales;
        if (iso_bytes_overlap(t->q, q, t->x, x) || iso_bytes_overlap(t->scales, scales, t->x, x) ||
            iso_bytes_overlap(t->q, q, t->scales, scales))
            status = ISOBIT_E_ALIAS;
    }
    if (!status)
        status = iso_context_kernels(&t->kernels, context);
    if (!status && rows)
        quantize(context, t);
    return status;
}

iso_status iso_quantize_s8(int8_t *q, size_t ldq, float *scales, const float *x, size_t ldx,
                           size_t rows, size_t n, const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    struct quantizing t = {.q = q,
                           .ldq = ldq,
                           .scales = scales,
                           .x = x,
                           .ldx = ldx,
                           .rows = rows,
                           .n = n,
                           .padded = n};
    const iso_status status = quantize_call(&t, context);
    if (begin)
        iso_verbose_end(begin, iso_verbose_clock(), "quantize_s8", context, status, NULL,
                        "rows%zun%zu:ldx%zu:ldq%zu", rows, n, ldx, ldq);
    return status;
}

/* ------------------------------------------------------------------------------------- packing */

struct packing {
    int8_t *data;
    float *scales;
    int32_t *start;
    const float *w; /* element (j, p) at w[j * wj + p * wp] */
    size_t wj, wp, n, k, tasks;
};

static void pack_column(const struct packing *t, size_t j, int8_t *to) {
    const float *w = t->k ? t->w + j * t->wj : NULL;
    float most = 0, zeros = 0;
    for (size_t p = 0; p < t->k; p++) {
        const float x = w[p * t->wp] < 0 ? -w[p * t->wp] : w[p * t->wp];
        most = x > most ? x : most;
        zeros += x * 0; /* NaN, if x is not finite */
    }
    const float inverse = iso_s8_inverse(&t->scales[j], most, zeros == 0);
    int32_t sum = 0;
    for (size_t p = 0; p < t->k && inverse > 0; p++) {
        const int8_t q = iso_s8_nearest(w[p * t->wp] * inverse);
        to[p / 4 * 4 * ISO_PANEL + p % 4] = q;
        sum += q;
    }
    t->start[j] = -128 * sum;
}

static void pack_some(void *arg, size_t task) {
    const struct packing *t = arg;
    const size_t panels = padded_n(t->n) / ISO_PANEL, bytes = padded_k(t->k) * ISO_PANEL;
    for (size_t i = panels * task / t->tasks; i < panels * (task + 1) / t->tasks; i++) {
        int8_t *to = t->data + i * bytes;
        memset(to, 0, bytes);
        for (size_t j = 0; j < ISO_PANEL; j++)
            if (i * ISO_PANEL + j < t->n)
                pack_column(t, i * ISO_PANEL + j, to + 4 * j);
            else
                t->scales[i * ISO_PANEL + j] = 0, t->start[i * ISO_PANEL + j] = 0;
    }
}

iso_status iso_pack_s8_bytes(size_t *bytes, size_t n, size_t k) {
    size_t all;
    if (!bytes)
        return ISOBIT_E_NULL;
    if (k > ISO_S8_MOST)
        return ISOBIT_E_LIMIT;
    if (n > SIZE_MAX - ISO_PANEL ||
        iso_mul_overflows(&all, padded_n(n), padded_k(k) + sizeof(float) + sizeof(int32_t)))
        return ISOBIT_E_OVERFLOW;
    *bytes = all;
    return ISOBIT_OK;
}

static iso_status pack_call(iso_packed_s8 *p, void *packed, size_t packed_bytes, const float *w,
                            size_t ldw, size_t n, size_t k, int trans_w,
                            const iso_context *context) {
    const size_t rows = trans_w ? k : n, columns = trans_w ? n : k;
    const struct iso_kernels *kernels;
    size_t bytes;
    if (!p)
        return ISOBIT_E_NULL;
    iso_status status = iso_pack_s8_bytes(&bytes, n, k);
    if (!status)
        status = iso_check_matrix(w, rows, columns, ldw);
    if (status)
        return status;
    if ((status = iso_check_packed(&kernels, packed, packed_bytes, bytes, w,
                                   iso_extent(rows, columns, ldw, sizeof *w), context)))
        return status;
    int8_t *data = packed;
    float *scales = bytes ? (float *)(void *)(data + padded_n(n) * padded_k(k)) : NULL;
    int32_t *start = bytes ? (int32_t *)(void *)(scales + padded_n(n)) : NULL;
    if (bytes) {
        const size_t threads = iso_context_threads(context), panels = padded_n(n) / ISO_PANEL;
        struct packing t = {data,
                            scales,
                            start,
                            w,
                            trans_w ? 1 : ldw,
                            trans_w ? ldw : 1,
                            n,
                            k,
                            threads < panels ? threads : panels};
        iso_parallel(context, t.tasks, pack_some, &t);
    }
    *p = (iso_packed_s8){data, scales, start, n, k};
    return ISOBIT_OK;
}

iso_status iso_pack_s8(iso_packed_s8 *p, void *packed, size_t packed_bytes, const float *w,
                       size_t ldw, size_t n, size_t k, int trans_w, const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    const iso_status status = pack_call(p, packed, packed_bytes, w, ldw, n, k, trans_w, context);
    if (begin)
        iso_verbose_end(begin, iso_verbose_clock(), "pack_s8", context, status, NULL,
                        "n%zuk%zu:%c:ldw%zu", n, k, trans_w ? 't' : 'n', ldw);
    return status;
}

/* ---------------------------------------------------------------------------------- the product */

struct product {
    const struct iso_kernels *s8;
    struct iso_parts parts; /* y */
    const float *x;
    size_t ldx;
    const iso_packed_s8 *w;
    size_t m;
    const float *bias;
    size_t threads, by_rows, block, task_floats;
    float *scratch;
};

/* How it is done: block rows at a time become integers, for each task that has rows of its own, or
 * for all. Integers and scales take task_floats for each of these. */
static void plan(struct product *t) {
    const size_t k = padded_k(t->w->k), whole = BLOCK_BYTES / (k + 1) / ISO_LINE * ISO_LINE;
    const size_t panels = padded_n(t->w->n) / ISO_PANEL;
    size_t work;
    if (!iso_mul_overflows(&work, t->m * k, t->w->n) && work < ISO_GEMM_SMALL_WORK)
        t->threads = 1; /* others would come too late */
    t->by_rows = t->threads == 1 || t->m / t->threads >= FEW_ROWS;
    t->block = t->m;
    if (t->by_rows) {
        const size_t most = whole < FEW_ROWS ? FEW_ROWS : whole, each = (t->m - 1) / t->threads + 1;
        t->block = each < most ? each : most;
    } else if (t->threads > panels) {
        t->threads = panels;
    }
    t->task_floats =
        iso_round_up(t->block * (k / sizeof(float)), ISO_LINE) + iso_round_up(t->block, ISO_LINE);
}

/* Where the scales of a block's rows are. */
static float *scales_of(const struct product *t, int8_t *q) {
    return (float *)(void *)q + t->task_floats - iso_round_up(t->block, ISO_LINE);
}

static size_t scratch_floats(const struct product *t) {
    return t->task_floats * (t->by_rows ? t->threads : 1);
}

/* Rows of integers, and their scales. */
struct integers {
    const struct product *t;
    const int8_t *q;
    const float *scales;
};

static void multiply_part(const void *arg, float *c, size_t ldc, size_t row, size_t m,
                          size_t column, size_t n) {
    const struct integers *from = arg;
    const struct product *t = from->t;
    const iso_packed_s8 *w = t->w;
    const size_t k = padded_k(w->k), bps = k * ISO_PANEL;
    t->s8->gemm_s8(c, ldc, from->q + row * k, k, from->scales + row,
                   w->data + column / ISO_PANEL * bps, bps, w->scales + column, w->start + column,
                   t->bias ? t->bias + column : NULL, m, n, k);
}

/* Rows `row` to row + m, of which q and scales are the integers, and some columns. */
static void multiply(const struct product *t, const int8_t *q, const float *scales, size_t row,
                     size_t m, size_t column, size_t n) {
    const struct integers from = {t, q, scales};
    struct iso_parts parts = t->parts;
    parts.product = multiply_part, parts.arg = &from;
    iso_parts_run(&parts, row, m, column, n);
}

static void task_of_rows(void *arg, size_t task) {
    const struct product *t = arg;
    const size_t begin = t->m * task / t->threads, end = t->m * (task + 1) / t->threads;
    const size_t k = padded_k(t->w->k);
    int8_t *q = (int8_t *)(t->scratch + task * t->task_floats);
    float *scales = scales_of(t, q);
    for (size_t i = begin; i < end; i += t->block) {
        const size_t m = end - i < t->block ? end - i : t->block;
        t->parts.kernels->quantize_s8(q, k, scales, t->x + i * t->ldx, t->ldx, m, t->w->k, k,
                                      t->s8->s8_flip);
        multiply(t, q, scales, i, m, 0, t->w->n);
    }
}

static void task_of_columns(void *arg, size_t task) {
    const struct product *t = arg;
    const size_t panels = padded_n(t->w->n) / ISO_PANEL;
    const size_t begin = panels * task / t->threads * ISO_PANEL;
    size_t end = panels * (task + 1) / t->threads * ISO_PANEL;
    int8_t *q = (int8_t *)t->scratch;
    end = end < t->w->n ? end : t->w->n;
    if (begin < end)
        multiply(t, q, scales_of(t, q), 0, t->m, begin, end - begin);
}

static iso_status run(const iso_context *context, struct product *t) {
    void *owned;
    const iso_status status = iso_scratch(&t->scratch, &owned, context, scratch_floats(t));
    if (status)
        return status;
    if (t->by_rows) {
        iso_parallel(context, t->threads, task_of_rows, t);
    } else {
        const size_t k = padded_k(t->w->k);
        int8_t *q = (int8_t *)t->scratch;
        struct quantizing rows = {.kernels = t->parts.kernels,
                                  .q = q,
                                  .ldq = k,
                                  .scales = scales_of(t, q),
                                  .x = t->x,
                                  .ldx = t->ldx,
                                  .rows = t->m,
                                  .n = t->w->k,
                                  .padded = k,
                                  .flip = t->s8->s8_flip};
        quantize(context, &rows);
        iso_parallel(context, t->threads, task_of_columns, t);
    }
    free(owned);
    return ISOBIT_OK;
}

static iso_status check_weights(const iso_packed_s8 *w) {
    if (w->k > ISO_S8_MOST)
        return ISOBIT_E_LIMIT;
    return w->n && (!w->data || !w->scales || !w->start) ? ISOBIT_E_NULL : ISOBIT_OK;
}

static iso_status linear_call(struct product *t, const iso_linear_options *options,
                              const iso_context *context) {
    const iso_packed_s8 *w = t->w;
    const size_t m = t->m;
    size_t most;
    iso_status status = w ? iso_parts_options(&t->parts, &t->bias, options) : ISOBIT_E_NULL;
    if (status)
        return status;
    const struct iso_isa *isa;
    struct iso_epilogue all = t->parts.e;
    all.bias = t->bias;
    if ((status = iso_check_epilogue(t->parts.y, t->parts.ldy, m, w->n, &all)) ||
        (status = iso_context_isa(&isa, context)) || m == 0 || w->n == 0)
        return status;
    if ((status = check_weights(w)) || (status = iso_check_matrix(t->x, m, w->k, t->ldx)))
        return status;
    if (iso_overlap(t->parts.y, m, w->n, t->parts.ldy, t->x, m, w->k, t->ldx))
        return ISOBIT_E_ALIAS;
    if (w->k == 0) /* rows without elements lie anywhere */
        t->x = w->scales, t->ldx = 0;
    t->parts.kernels = isa->kernels, t->s8 = iso_isa_s8(isa);
    t->threads = iso_context_threads(context);
    if (iso_mul_overflows(&most, m, padded_k(w->k) + ISO_LINE))
        return ISOBIT_E_OVERFLOW;
    plan(t);
    return run(context, t);
}

iso_status iso_linear_s8(float *y, size_t ldy, const float *x, size_t ldx, const iso_packed_s8 *w,
                         size_t m, const iso_linear_options *options, const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    struct product t = {.parts = {.y = y, .ldy = ldy}, .x = x, .ldx = ldx, .w = w, .m = m};
    const iso_status status = linear_call(&t, options, context);
    if (begin) {
        char way[100] = "no product";
        if (!status && t.s8)
            snprintf(way, sizeof way, "int8; tasks %zu by %s; blocks of %zu rows", t.threads,
                     t.by_rows ? "rows" : "columns", t.block);
        const struct iso_parts_call call = {"linear_s8",  way, m,   w ? w->n : 0,
                                            w ? w->k : 0, ldx, ldy, options};
        iso_parts_tell(begin, &call, context, status);
    }
    return status;
}

iso_status iso_linear_s8_workspace_bytes(size_t *bytes, const iso_packed_s8 *w, size_t m,
                                         const iso_context *context) {
    struct product t = {.w = w, .m = m};
    size_t floats = 0, most;
    if (!bytes || !w)
        return ISOBIT_E_NULL;
    iso_status status = iso_context_kernels(&t.parts.kernels, context);
    if (!status && m && w->n) {
        if ((status = check_weights(w)))
            return status;
        if (iso_mul_overflows(&most, m, padded_k(w->k) + ISO_LINE))
            return ISOBIT_E_OVERFLOW;
        t.threads = iso_context_threads(context);
        plan(&t);
        floats = scratch_floats(&t);
    }
    if (!status)
        *bytes = iso_scratch_bytes(floats);
    return status;
}
