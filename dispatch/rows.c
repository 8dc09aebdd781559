/* SPDX-License-Identifier: MIT
 *
 * Softmax, norms, element-wise functions and gates, embeddings, positions and rotary ones: argument
 * checks, and rows cut evenly among tasks.
 */
#include "embed_rows.h"
#include "verbose.h"

#include <isobit/ops.h>

#include <math.h>

#define L3_BYTES ((size_t)32 << 20)  /* where it is not known */
#define SMALL_ROWS ((size_t)1 << 15) /* elements below which a call stays on one thread */

/* Everything that a task of one of these functions needs; each uses its part. */
struct job {
    const struct iso_kernels *kernels;
    void (*run)(const struct job *t, size_t row, size_t rows);
    float *y, *log_sum;
    const float *x, *b;
    size_t ldy, ldx, ldb, rows, n, tasks;
    const iso_softmax_options *softmax;
    const struct iso_norm *norm;
    const struct iso_epilogue *epilogue;
    const struct iso_rope *rope;
    const uint32_t *ids, *position_rows;
    const float *positions;
    float scale;
    size_t first;
    int kind;
};

static void run_rows(void *arg, size_t task) {
    const struct job *t = arg;
    const size_t row =
        t->rows / t->tasks * task + (task < t->rows % t->tasks ? task : t->rows % t->tasks);
    const size_t rows = t->rows / t->tasks + (task < t->rows % t->tasks);
    if (rows)
        t->run(t, row, rows);
}

static iso_status run(struct job *t, const iso_context *context) {
    iso_status status = iso_context_kernels(&t->kernels, context);
    if (status || t->rows == 0 || t->n == 0)
        return status;
    t->tasks = t->rows * t->n < SMALL_ROWS ? 1 : iso_context_threads(context);
    if (t->tasks > t->rows)
        t->tasks = t->rows;
    iso_parallel(context, t->tasks, run_rows, t);
    return ISOBIT_OK;
}

/* Whether x and y do not stay in L2, and what is behind it is slow. */
static int is_beyond_l2(size_t rows, size_t n) {
    return iso_l3_is_slow() && rows > ISO_L2_FLOATS / 2 / n;
}

/*
 * Whether y is written with non-temporal stores: lines that are written whole need not be read
 * before. Who reads y next still finds a part of it in an L3 that is more than twice as large. What
 * lies in the caches already, since it is read, too, stays there.
 */
static int streams_y(const struct job *t, const float *residual) {
    const size_t l3 = iso_machine()->cpu.l3 ? iso_machine()->cpu.l3 : L3_BYTES;
    return !iso_l3_is_slow() && t->y != t->x && t->y != residual &&
           t->rows > l3 / 2 / sizeof(float) / t->n;
}

/* y and x of rows x n; y may be x itself. */
static iso_status check_rows(const struct job *t) {
    iso_status status = iso_check_matrix(t->y, t->rows, t->n, t->ldy);
    if (!status)
        status = iso_check_matrix(t->x, t->rows, t->n, t->ldx);
    if (!status && iso_overlap_partly(t->y, t->rows, t->n, t->ldy, t->x, t->ldx))
        status = ISOBIT_E_ALIAS;
    return status;
}

/* ---------------------------------------------------------------------------------- softmax */

static void softmax_rows(const struct job *t, size_t row, size_t rows) {
    static const iso_softmax_options none;
    const iso_softmax_options *o = t->softmax ? t->softmax : &none;
    t->kernels->softmax(t->y + row * t->ldy, t->ldy, t->x + row * t->ldx, t->ldx, rows, t->n,
                        o->lengths ? o->lengths + row : NULL,
                        o->mask ? o->mask + row * o->ldm : NULL, o->ldm,
                        (o->log ? ISO_SOFTMAX_LOG : 0) | (o->safe ? ISO_SOFTMAX_SAFE : 0));
}

static iso_status softmax_call(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                               size_t n, const iso_softmax_options *options,
                               const iso_context *context) {
    struct job t = {
        .run = softmax_rows, .y = y, .ldy = ldy, .x = x, .ldx = ldx, .rows = rows, .n = n};
    iso_softmax_options own;
    if (options && !(options = ISO_OPTIONS(options, own, ldm)))
        return ISOBIT_E_SIZE;
    t.softmax = options;
    iso_status status = check_rows(&t);
    if (!status && options && options->mask)
        status = iso_check_matrix(options->mask, rows, n, options->ldm);
    for (size_t i = 0; !status && options && options->lengths && i < rows; i++)
        if (options->lengths[i] > n)
            status = ISOBIT_E_DIM;
    return status ? status : run(&t, context);
}

iso_status iso_softmax_f32(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                           const iso_softmax_options *options, const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    const iso_status status = softmax_call(y, ldy, x, ldx, rows, n, options, context);
    if (begin) {
        static const iso_softmax_options none;
        iso_softmax_options own;
        const iso_softmax_options *o = ISO_OPTIONS_OR(options, own, ldm, &none);
        iso_verbose_end(begin, iso_verbose_clock(), "softmax_f32", context, status, NULL,
                        "rows%zun%zu:ldx%zu:ldy%zu%s%s%s%s", rows, n, ldx, ldy,
                        o->log ? ":log" : "", o->safe ? ":safe" : "", o->lengths ? ":lengths" : "",
                        o->mask ? ":mask" : "");
    }
    return status;
}

static void logsumexp_rows(const struct job *t, size_t row, size_t rows) {
    t->kernels->logsumexp(t->y + row, t->log_sum + row, t->x + row * t->ldx, t->ldx, rows, t->n);
}

static iso_status logsumexp_call(float *max, float *log_sum, const float *x, size_t ldx,
                                 size_t rows, size_t n, const iso_context *context) {
    struct job t = {.run = logsumexp_rows,
                    .y = max,
                    .log_sum = log_sum,
                    .x = x,
                    .ldx = ldx,
                    .rows = rows,
                    .n = n};
    iso_status status = iso_check_matrix(x, rows, n, ldx);
    if (status || rows == 0 || n == 0)
        return status;
    if (!max || !log_sum)
        return ISOBIT_E_NULL;
    if (iso_overlap(max, 1, rows, rows, log_sum, 1, rows, rows) ||
        iso_overlap(max, 1, rows, rows, x, rows, n, ldx) ||
        iso_overlap(log_sum, 1, rows, rows, x, rows, n, ldx))
        return ISOBIT_E_ALIAS;
    return run(&t, context);
}

iso_status iso_logsumexp_f32(float *max, float *log_sum, const float *x, size_t ldx, size_t rows,
                             size_t n, const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    const iso_status status = logsumexp_call(max, log_sum, x, ldx, rows, n, context);
    if (begin)
        iso_verbose_end(begin, iso_verbose_clock(), "logsumexp_f32", context, status, NULL,
                        "rows%zun%zu:ldx%zu", rows, n, ldx);
    return status;
}

/* ------------------------------------------------------------------------------------ norms */

static void norm_rows(const struct job *t, size_t row, size_t rows) {
    struct iso_norm o = *t->norm;
    float scratch[ISO_STREAM_FLOATS];
    if (o.residual)
        o.residual += row * o.ldr;
    if (o.sum)
        o.sum += row * o.lds;
    o.beyond_l2 = is_beyond_l2(rows, t->n);
    o.stream = streams_y(t, t->norm->residual) ? scratch : NULL;
    (t->kind ? t->kernels->rmsnorm : t->kernels->layernorm)(
        t->y + row * t->ldy, t->ldy, t->x + row * t->ldx, t->ldx, rows, t->n, &o);
}

static iso_status norm(struct job *t, const iso_norm_options *options, const iso_context *context) {
    struct iso_norm o = {.eps = 0};
    iso_norm_options own;
    if (options) {
        if (!(options = ISO_OPTIONS(options, own, lds)))
            return ISOBIT_E_SIZE;
        if (!(options->eps >= 0) || !isfinite(options->eps))
            return ISOBIT_E_OPTION;
        o = (struct iso_norm){.gamma = options->gamma,
                              .beta = options->beta,
                              .eps = options->eps,
                              .residual = options->residual,
                              .ldr = options->ldr,
                              .sum = options->sum,
                              .lds = options->lds};
    }
    iso_status status = check_rows(t);
    if (!status && o.residual)
        status = iso_check_matrix(o.residual, t->rows, t->n, o.ldr);
    if (!status && o.sum)
        status = iso_check_matrix(o.sum, t->rows, t->n, o.lds);
    if (!status && (iso_overlap_partly(t->y, t->rows, t->n, t->ldy, o.residual, o.ldr) ||
                    iso_overlap_partly(o.sum, t->rows, t->n, o.lds, t->x, t->ldx) ||
                    iso_overlap_partly(o.sum, t->rows, t->n, o.lds, o.residual, o.ldr) ||
                    iso_overlap(o.sum, t->rows, t->n, o.lds, t->y, t->rows, t->n, t->ldy) ||
                    iso_overlap(t->y, t->rows, t->n, t->ldy, o.gamma, 1, t->n, t->n) ||
                    iso_overlap(t->y, t->rows, t->n, t->ldy, o.beta, 1, t->n, t->n)))
        status = ISOBIT_E_ALIAS;
    t->norm = &o, t->run = norm_rows;
    return status ? status : run(t, context);
}

/* Either norm, which differ in `kind`. */
static iso_status norm_call(int kind, float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                            size_t n, const iso_norm_options *options, const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    struct job t = {.y = y, .ldy = ldy, .x = x, .ldx = ldx, .rows = rows, .n = n, .kind = kind};
    const iso_status status = norm(&t, options, context);
    if (begin) {
        static const iso_norm_options none;
        iso_norm_options own;
        const iso_norm_options *o = ISO_OPTIONS_OR(options, own, lds, &none);
        iso_verbose_end(begin, iso_verbose_clock(), kind ? "rmsnorm_f32" : "layernorm_f32", context,
                        status, NULL, "rows%zun%zu:ldx%zu:ldy%zu%s%s%s%s", rows, n, ldx, ldy,
                        o->gamma ? ":gamma" : "", o->beta ? ":beta" : "",
                        o->residual ? ":residual" : "", o->sum ? ":sum" : "");
    }
    return status;
}

iso_status iso_layernorm_f32(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                             size_t n, const iso_norm_options *options,
                             const iso_context *context) {
    return norm_call(0, y, ldy, x, ldx, rows, n, options, context);
}

iso_status iso_rmsnorm_f32(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                           const iso_norm_options *options, const iso_context *context) {
    return norm_call(1, y, ldy, x, ldx, rows, n, options, context);
}

/* ------------------------------------------------------------------------------ element-wise */

static void eltwise_rows(const struct job *t, size_t row, size_t rows) {
    struct iso_epilogue e = *t->epilogue;
    float *y = t->y + row * t->ldy;
    const float *x = t->x + row * t->ldx;
    size_t n = t->n;
    e.beyond_l2 = is_beyond_l2(rows, n);
    e.stream = e.beta == 0.0f && streams_y(t, e.residual);
    if (e.residual)
        e.residual += row * e.ldr;
    if (t->ldx == n && t->ldy == n && !e.bias && (!e.residual || e.ldr == n))
        n *= rows, rows = 1; /* one long row */
    t->kernels->gemm_epilogue(y, t->ldy, x, t->ldx, rows, n, &e);
}

static iso_status eltwise_call(float *y, size_t ldy, const float *x, size_t ldx, size_t rows,
                               size_t n, const iso_eltwise_options *options,
                               const iso_context *context) {
    struct iso_epilogue e = {.alpha = 1.0f};
    struct job t = {.run = eltwise_rows,
                    .y = y,
                    .ldy = ldy,
                    .x = x,
                    .ldx = ldx,
                    .rows = rows,
                    .n = n,
                    .epilogue = &e};
    iso_eltwise_options own;
    if (options) {
        if (!(options = ISO_OPTIONS(options, own, ldr)))
            return ISOBIT_E_SIZE;
        if ((unsigned)options->act >= ISO_ACTIVATIONS)
            return ISOBIT_E_OPTION;
        e.bias = options->bias, e.act = (int)options->act;
        e.residual = options->residual, e.ldr = options->ldr;
    }
    iso_status status = check_rows(&t);
    if (!status && e.residual)
        status = iso_check_matrix(e.residual, rows, n, e.ldr);
    if (!status && (iso_overlap_partly(y, rows, n, ldy, e.residual, e.ldr) ||
                    iso_overlap(y, rows, n, ldy, e.bias, 1, n, n)))
        status = ISOBIT_E_ALIAS;
    return status ? status : run(&t, context);
}

iso_status iso_eltwise_f32(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                           const iso_eltwise_options *options, const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    const iso_status status = eltwise_call(y, ldy, x, ldx, rows, n, options, context);
    if (begin) {
        static const iso_eltwise_options none;
        iso_eltwise_options own;
        const iso_eltwise_options *o = ISO_OPTIONS_OR(options, own, ldr, &none);
        iso_verbose_end(begin, iso_verbose_clock(), "eltwise_f32", context, status, NULL,
                        "rows%zun%zu:ldx%zu:ldy%zu%s%s%s", rows, n, ldx, ldy,
                        o->bias ? ":bias" : "", iso_verbose_act((int)o->act),
                        o->residual ? ":residual" : "");
    }
    return status;
}

iso_status iso_axpby_f32(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                         float alpha, float beta, const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    struct iso_epilogue e = {.alpha = alpha, .beta = beta};
    struct job t = {.run = eltwise_rows,
                    .y = y,
                    .ldy = ldy,
                    .x = x,
                    .ldx = ldx,
                    .rows = rows,
                    .n = n,
                    .epilogue = &e};
    iso_status status = check_rows(&t);
    if (!status)
        status = run(&t, context);
    if (begin)
        iso_verbose_end(begin, iso_verbose_clock(), "axpby_f32", context, status, NULL,
                        "rows%zun%zu:ldx%zu:ldy%zu%s%s", rows, n, ldx, ldy,
                        alpha != 1.0f ? ":alpha" : "", beta != 0.0f ? ":beta" : "");
    return status;
}

static void gate_rows(const struct job *t, size_t row, size_t rows) {
    size_t n = t->n;
    const int beyond_l2 = is_beyond_l2(rows, n);
    float *y = t->y + row * t->ldy;
    const float *a = t->x + row * t->ldx, *b = t->b + row * t->ldb;
    if (t->ldx == n && t->ldb == n && t->ldy == n)
        n *= rows, rows = 1; /* one long row */
    t->kernels->gate(y, t->ldy, a, t->ldx, b, t->ldb, rows, n, t->kind, beyond_l2);
}

static iso_status gate_call(float *y, size_t ldy, const float *a, size_t lda, const float *b,
                            size_t ldb, size_t rows, size_t n, iso_activation act,
                            const iso_context *context) {
    struct job t = {.run = gate_rows,
                    .y = y,
                    .ldy = ldy,
                    .x = a,
                    .ldx = lda,
                    .b = b,
                    .ldb = ldb,
                    .rows = rows,
                    .n = n,
                    .kind = (int)act};
    if ((unsigned)act >= ISO_ACTIVATIONS)
        return ISOBIT_E_OPTION;
    iso_status status = check_rows(&t);
    if (!status)
        status = iso_check_matrix(b, rows, n, ldb);
    if (!status && iso_overlap_partly(y, rows, n, ldy, b, ldb))
        status = ISOBIT_E_ALIAS;
    return status ? status : run(&t, context);
}

iso_status iso_gate_f32(float *y, size_t ldy, const float *a, size_t lda, const float *b,
                        size_t ldb, size_t rows, size_t n, iso_activation act,
                        const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    const iso_status status = gate_call(y, ldy, a, lda, b, ldb, rows, n, act, context);
    if (begin)
        iso_verbose_end(begin, iso_verbose_clock(), "gate_f32", context, status, NULL,
                        "rows%zun%zu:lda%zu:ldb%zu:ldy%zu%s", rows, n, lda, ldb, ldy,
                        iso_verbose_act((int)act));
    return status;
}

/* ------------------------------------------------------------------- embeddings and positions */

static void embed_rows(const struct job *t, size_t row, size_t rows) {
    const float *positions = t->positions;
    if (positions && !t->position_rows)
        positions += row * t->n;
    t->kernels->embed(t->y + row * t->ldy, t->ldy, t->ids + row, rows, t->x, t->n, t->scale,
                      positions, t->position_rows ? t->position_rows + row : NULL,
                      streams_y(t, NULL));
}

static iso_status embed_call(float *y, size_t ldy, const uint32_t *ids, size_t count,
                             const float *table, size_t vocabulary, size_t d, float scale,
                             const float *positions, const uint32_t *position_rows,
                             size_t position_count, const iso_context *context) {
    struct job t = {.run = embed_rows,
                    .y = y,
                    .ldy = ldy,
                    .x = table,
                    .ids = ids,
                    .rows = count,
                    .n = d,
                    .scale = scale,
                    .positions = positions,
                    .position_rows = position_rows};
    iso_status status = iso_check_matrix(y, count, d, ldy);
    if (status || count == 0 || d == 0)
        return status;
    if (!ids || !table)
        return ISOBIT_E_NULL;
    if ((status = iso_check_matrix(table, vocabulary, d, d)))
        return status;
    if ((status = iso_check_ids(ids, count, vocabulary, positions, position_rows, position_count)))
        return status;
    if (iso_overlap(y, count, d, ldy, table, vocabulary, d, d) ||
        (positions && iso_overlap(y, count, d, ldy, positions, position_count, d, d)))
        return ISOBIT_E_ALIAS;
    return run(&t, context);
}

iso_status iso_embed_f32(float *y, size_t ldy, const uint32_t *ids, size_t count,
                         const float *table, size_t vocabulary, size_t d, float scale,
                         const float *positions, const uint32_t *position_rows,
                         size_t position_count, const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    const iso_status status = embed_call(y, ldy, ids, count, table, vocabulary, d, scale, positions,
                                         position_rows, position_count, context);
    if (begin)
        iso_verbose_end(begin, iso_verbose_clock(), "embed_f32", context, status, NULL,
                        "count%zud%zu:vocabulary%zu:ldy%zu%s%s", count, d, vocabulary, ldy,
                        positions ? ":positions" : "", position_rows ? ":position_rows" : "");
    return status;
}

static void position_rows(const struct job *t, size_t row, size_t rows) {
    t->kernels->positions(t->y + row * t->ldy, t->ldy, t->first + row, rows, t->n, t->kind);
}

static iso_status positions_call(float *y, size_t ldy, size_t first, size_t count, size_t d,
                                 iso_position_layout layout, const iso_context *context) {
    struct job t = {.run = position_rows,
                    .y = y,
                    .ldy = ldy,
                    .rows = count,
                    .n = d,
                    .first = first,
                    .kind = (int)layout};
    const size_t limit = (size_t)1 << 20;
    if (layout < ISOBIT_POS_INTERLEAVED || layout > ISOBIT_POS_HALF_HM1)
        return ISOBIT_E_OPTION;
    if (first > limit || count > limit - first)
        return ISOBIT_E_LIMIT;
    iso_status status = iso_check_matrix(y, count, d, ldy);
    return status ? status : run(&t, context);
}

iso_status iso_positions_f32(float *y, size_t ldy, size_t first, size_t count, size_t d,
                             iso_position_layout layout, const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    const iso_status status = positions_call(y, ldy, first, count, d, layout, context);
    if (begin)
        iso_verbose_end(begin, iso_verbose_clock(), "positions_f32", context, status, NULL,
                        "first%zucount%zud%zu:ldy%zu:%s", first, count, d, ldy,
                        layout == ISOBIT_POS_INTERLEAVED ? "interleaved"
                        : layout == ISOBIT_POS_HALF_D    ? "half_d"
                        : layout == ISOBIT_POS_HALF_HM1  ? "half_hm1"
                                                         : "layout?");
    return status;
}

/* ----------------------------------------------------------------------------------- rotary */

static void rope_rows(const struct job *t, size_t row, size_t rows) {
    struct iso_rope o = *t->rope;
    if (o.position_rows)
        o.position_rows += row;
    else
        o.table += row * o.ld;
    t->kernels->rope(t->y + row * t->ldy, t->ldy, t->x + row * t->ldx, t->ldx, rows, &o);
}

static iso_status rope_call(struct job *t, struct iso_rope *o, iso_rope_layout layout,
                            size_t position_count, const iso_context *context) {
    if (layout != ISOBIT_ROPE_HALF && layout != ISOBIT_ROPE_INTERLEAVED)
        return ISOBIT_E_OPTION;
    if (o->rotary % 2 || o->rotary > o->dh || o->dh > ISO_ROPE_MOST)
        return ISOBIT_E_DIM;
    if (iso_mul_overflows(&t->n, o->heads, o->dh))
        return ISOBIT_E_OVERFLOW;
    iso_status status = check_rows(t);
    if (status || t->rows == 0 || t->n == 0)
        return status;
    if ((status = iso_check_matrix(o->table, position_count, o->rotary, o->ld)))
        return status;
    if (!o->position_rows && t->rows > position_count)
        return ISOBIT_E_RANGE;
    for (size_t i = 0; o->position_rows && i < t->rows; i++)
        if (o->position_rows[i] >= position_count)
            return ISOBIT_E_RANGE;
    if (iso_overlap(t->y, t->rows, t->n, t->ldy, o->table, position_count, o->rotary, o->ld))
        return ISOBIT_E_ALIAS;
    o->halves = layout == ISOBIT_ROPE_HALF;
    t->rope = o, t->run = rope_rows;
    return run(t, context);
}

iso_status iso_rope_f32(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t heads,
                        size_t dh, size_t rotary, iso_rope_layout layout, const float *table,
                        size_t ld, const uint32_t *position_rows, size_t position_count,
                        const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    struct iso_rope o = {.heads = heads,
                         .dh = dh,
                         .rotary = rotary,
                         .table = table,
                         .ld = ld,
                         .position_rows = position_rows};
    struct job t = {.y = y, .ldy = ldy, .x = x, .ldx = ldx, .rows = rows};
    const iso_status status = rope_call(&t, &o, layout, position_count, context);
    if (begin)
        iso_verbose_end(begin, iso_verbose_clock(), "rope_f32", context, status, NULL,
                        "rows%zuH%zudh%zurotary%zu:positions%zu:ldx%zu:ldy%zu:%s%s", rows, heads,
                        dh, rotary, position_count, ldx, ldy,
                        layout == ISOBIT_ROPE_HALF          ? "half"
                        : layout == ISOBIT_ROPE_INTERLEAVED ? "interleaved"
                                                            : "layout?",
                        position_rows ? ":position_rows" : "");
    return status;
}

static void rope_table_rows(const struct job *t, size_t row, size_t rows) {
    t->kernels->rope_table(t->y + row * t->ldy, t->ldy, t->first + row, rows, t->x, t->n, t->scale);
}

static iso_status rope_table_call(float *table, size_t ld, size_t first, size_t count,
                                  const float *inv_freq, size_t rotary, float scaling,
                                  const iso_context *context) {
    struct job t = {.run = rope_table_rows,
                    .y = table,
                    .ldy = ld,
                    .x = inv_freq,
                    .rows = count,
                    .n = rotary,
                    .first = first,
                    .scale = scaling};
    if (!isfinite(scaling))
        return ISOBIT_E_OPTION;
    if (rotary % 2)
        return ISOBIT_E_DIM;
    if (first > ISO_ROPE_POSITIONS || count > ISO_ROPE_POSITIONS - first)
        return ISOBIT_E_LIMIT;
    iso_status status = iso_check_matrix(table, count, rotary, ld);
    if (!status && !inv_freq && count > 0 && rotary > 0)
        status = ISOBIT_E_NULL;
    if (!status && iso_overlap(table, count, rotary, ld, inv_freq, 1, rotary / 2, rotary))
        status = ISOBIT_E_ALIAS;
    return status ? status : run(&t, context);
}

iso_status iso_rope_table_f32(float *table, size_t ld, size_t first, size_t count,
                              const float *inv_freq, size_t rotary, float scaling,
                              const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    const iso_status status =
        rope_table_call(table, ld, first, count, inv_freq, rotary, scaling, context);
    if (begin)
        iso_verbose_end(begin, iso_verbose_clock(), "rope_table_f32", context, status, NULL,
                        "first%zucount%zurotary%zu:ld%zu%s", first, count, rotary, ld,
                        scaling != 1.0f ? ":scaling" : "");
    return status;
}
