/* SPDX-License-Identifier: MIT
 *
 * Weights of 4 or 8 bits in groups times rows of int8 in blocks. Some rows at a time, whose
 * integers stay in L2, become integers; then the columns are shared out.
 */
#include "check.h"
#include "parts.h"
#include "q.h"
#include "tuning.h"
#include "verbose.h"

#include <isobit/ops.h>

#include <stdio.h>

enum {
    BLOCK_BYTES = 1 << 18, /* of integers at a time, and the least rows */
    LEAST_ROWS = 32,
    LINE_BYTES = 64
};
_Static_assert(sizeof(struct iso_s8_block) == LINE_BYTES, "a block is a line");

struct product {
    const struct iso_kernels *s8;
    struct iso_parts parts; /* y */
    const float *x;
    size_t ldx;
    const iso_packed_q *w;
    int type;
    size_t m;
    const float *bias;
    size_t threads, rows, blocks; /* so many rows at a time, of so many blocks */
    int mode;
    struct iso_s8_block *a;
    size_t begin, count; /* the rows at hand */
};

/* ISOBIT_E_OVERFLOW: no memory has so many blocks. */
static iso_status plan(struct product *t) {
    const size_t n = t->w->n, k = t->w->k;
    size_t work;
    t->blocks = iso_s8_blocks(k);
    const size_t most = t->blocks ? BLOCK_BYTES / LINE_BYTES / t->blocks : t->m;
    t->rows = iso_min_size(t->m, most > LEAST_ROWS ? most : LEAST_ROWS);
    const size_t each = t->type & ISO_Q_4 ? 8 : 4; /* in a word */
    t->mode = n > ISO_L2_FLOATS * each / (k ? k : 1) ? ISO_DIRECT_BEYOND_L2 : 0;
    if (!iso_mul_overflows(&work, t->m * k, n) && work < ISO_GEMM_SMALL_WORK)
        t->threads = 1; /* others would come too late */
    return iso_mul_overflows(&work, t->rows, t->blocks * sizeof *t->a) ? ISOBIT_E_OVERFLOW
                                                                       : ISOBIT_OK;
}

static size_t scratch_floats(const struct product *t) {
    return t->rows * t->blocks * (sizeof *t->a / sizeof(float));
}

static void quantize_some(void *arg, size_t task) {
    const struct product *t = arg;
    const size_t tasks = iso_min_size(t->threads, t->count);
    const size_t i = t->count * task / tasks, end = t->count * (task + 1) / tasks;
    t->parts.kernels->quantize_blocks(t->a + i * t->blocks, t->blocks,
                                      t->x + (t->begin + i) * t->ldx, t->ldx, end - i, t->w->k);
}

static void multiply_part(const void *arg, float *c, size_t ldc, size_t row, size_t m,
                          size_t column, size_t n) {
    const struct product *t = arg;
    const size_t bps = t->w->k / iso_q_block(t->type) * iso_q_words(t->type);
    t->s8->gemm_q_s8(c, ldc, t->a + row * t->blocks, t->blocks,
                     t->w->data + column / ISO_PANEL * bps, bps, t->bias ? t->bias + column : NULL,
                     m, n, t->w->k, t->type, t->mode);
}

static void multiply_some(void *arg, size_t task) {
    const struct product *t = arg;
    const size_t n = t->w->n, panels = (n + ISO_PANEL - 1) / ISO_PANEL;
    const size_t begin = panels * task / t->threads * ISO_PANEL;
    const size_t end = iso_min_size(n, panels * (task + 1) / t->threads * ISO_PANEL);
    if (begin < end)
        iso_parts_run(&t->parts, t->begin, t->count, begin, end - begin);
}

static iso_status run(const iso_context *context, struct product *t) {
    static struct iso_s8_block none;
    float *scratch;
    void *owned;
    const iso_status status = iso_scratch(&scratch, &owned, context, scratch_floats(t));
    if (status)
        return status;
    t->a = t->blocks ? (struct iso_s8_block *)(void *)scratch : &none;
    if (!t->blocks) /* rows without elements lie anywhere */
        t->x = &none.scale, t->ldx = 0;
    t->parts.product = multiply_part, t->parts.arg = t;
    for (t->begin = 0; t->begin < t->m; t->begin += t->count) {
        t->count = iso_min_size(t->m - t->begin, t->rows);
        const size_t tasks =
            t->count * t->w->k < ISO_SMALL_QUANTIZE ? 1 : iso_min_size(t->threads, t->count);
        if (tasks > 1)
            iso_parallel(context, tasks, quantize_some, t);
        else
            t->parts.kernels->quantize_blocks(t->a, t->blocks, t->x + t->begin * t->ldx, t->ldx,
                                              t->count, t->w->k);
        iso_parallel(context, t->threads, multiply_some, t);
    }
    free(owned);
    return ISOBIT_OK;
}

/* Levels that lack it have the next one's, whose features they have, too; the set itself is last.
 */
static const struct iso_kernels *product_of(const struct iso_isa *isa) {
    while (!isa->s8->gemm_q_s8)
        isa++;
    return isa->s8;
}

static iso_status check_weights(struct product *t) {
    const iso_packed_q *w = t->w;
    t->type = iso_q_type(&w->format);
    if (t->type < 0)
        return ISOBIT_E_OPTION;
    return w->k % iso_q_block(t->type) ? ISOBIT_E_DIM
           : w->n && w->k && !w->data  ? ISOBIT_E_NULL
                                       : ISOBIT_OK;
}

static iso_status linear_call(struct product *t, const iso_linear_options *options,
                              const iso_context *context) {
    const iso_packed_q *w = t->w;
    const size_t m = t->m;
    const struct iso_isa *isa;
    iso_status status = w ? iso_parts_options(&t->parts, &t->bias, options) : ISOBIT_E_NULL;
    if (status || (status = check_weights(t)))
        return status;
    struct iso_epilogue all = t->parts.e;
    all.bias = t->bias;
    if ((status = iso_check_epilogue(t->parts.y, t->parts.ldy, m, w->n, &all)) ||
        (status = iso_context_isa(&isa, context)) || m == 0 || w->n == 0)
        return status;
    if ((status = iso_check_matrix(t->x, m, w->k, t->ldx)))
        return status;
    if (iso_overlap(t->parts.y, m, w->n, t->parts.ldy, t->x, m, w->k, t->ldx))
        return ISOBIT_E_ALIAS;
    t->parts.kernels = isa->kernels, t->s8 = product_of(isa);
    t->threads = iso_context_threads(context);
    status = plan(t);
    return status ? status : run(context, t);
}

iso_status iso_linear_q_s8(float *y, size_t ldy, const float *x, size_t ldx, const iso_packed_q *w,
                           size_t m, const iso_linear_options *options,
                           const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    struct product t = {.parts = {.y = y, .ldy = ldy}, .x = x, .ldx = ldx, .w = w, .m = m};
    const iso_status status = linear_call(&t, options, context);
    if (begin) {
        char way[100] = "no product";
        if (!status && t.s8)
            snprintf(way, sizeof way, "%u bits times int8; tasks %zu; blocks of %zu rows",
                     w->format.bits, t.threads, t.rows);
        const struct iso_parts_call call = {"linear_q_s8", way, m,   w ? w->n : 0,
                                            w ? w->k : 0,  ldx, ldy, options};
        iso_parts_tell(begin, &call, context, status);
    }
    return status;
}

iso_status iso_linear_q_s8_workspace_bytes(size_t *bytes, const iso_packed_q *w, size_t m,
                                           const iso_context *context) {
    struct product t = {.w = w, .m = m};
    const struct iso_kernels *kernels;
    size_t floats = 0;
    if (!bytes || !w)
        return ISOBIT_E_NULL;
    iso_status status = check_weights(&t);
    if (!status)
        status = iso_context_kernels(&kernels, context);
    if (!status && m && w->n) {
        if ((status = plan(&t)))
            return status;
        floats = scratch_floats(&t);
    }
    if (!status)
        *bytes = iso_scratch_bytes(floats);
    return status;
}
