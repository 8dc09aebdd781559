/* SPDX-License-Identifier: MIT
 *
 * Numbers of 16 bits from floats, rounded to nearest even: keys and values that join caches, and
 * matrices that are rounded but stay floats.
 */
#include "check.h"
#include "verbose.h"

#include <isobit/ops.h>

#define SMALL_ROUNDING ((size_t)1 << 15) /* elements below which a call stays on one thread */

static const char *name_of(iso_w16 type) { return type == ISOBIT_BF16 ? ":bf16" : ":f16"; }

/* ------------------------------------------------------------------------------------- rounding */

struct rounding {
    float *y;
    size_t ldy;
    const float *x;
    size_t ldx, rows, n, tasks;
    int type;
};

static void round_some(void *arg, size_t task) {
    const struct rounding *t = arg;
    for (size_t i = t->rows * task / t->tasks; i < t->rows * (task + 1) / t->tasks; i++) {
        float *y = t->y + i * t->ldy;
        const float *x = t->x + i * t->ldx;
        for (size_t j = 0; j < t->n; j++)
            y[j] = iso_w16_value(iso_w16_bits(x[j], t->type), t->type);
    }
}

static iso_status round_call(struct rounding *t, iso_w16 type, const iso_context *context) {
    const struct iso_kernels *kernels;
    if (!iso_is_w16(type))
        return ISOBIT_E_OPTION;
    iso_status status = iso_check_matrix(t->x, t->rows, t->n, t->ldx);
    if (!status)
        status = iso_check_matrix(t->y, t->rows, t->n, t->ldy);
    if (!status && iso_overlap_partly(t->y, t->rows, t->n, t->ldy, t->x, t->ldx))
        status = ISOBIT_E_ALIAS;
    if (!status)
        status = iso_context_kernels(&kernels, context); /* no kernel, but the same rules */
    if (status || !t->rows || !t->n)
        return status;
    t->type = (int)type;
    t->tasks = t->rows * t->n < SMALL_ROUNDING ? 1 : iso_context_threads(context);
    iso_parallel(context, t->tasks, round_some, t);
    return ISOBIT_OK;
}

iso_status iso_round_w16(float *y, size_t ldy, const float *x, size_t ldx, size_t rows, size_t n,
                         iso_w16 type, const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    struct rounding t = {.y = y, .ldy = ldy, .x = x, .ldx = ldx, .rows = rows, .n = n};
    const iso_status status = round_call(&t, type, context);
    if (begin)
        iso_verbose_end(begin, iso_verbose_clock(), "round_w16", context, status, NULL,
                        "rows%zun%zu:ldx%zu:ldy%zu%s", rows, n, ldx, ldy, name_of(type));
    return status;
}

/* --------------------------------------------------------------------------------------- caches */

/* `count` rows, each made of `row` elements, a multiple of a wide panel. */
static size_t elements(size_t count, size_t row) {
    size_t all;
    return iso_mul_overflows(&all, count, row) ? 0 : all;
}

size_t iso_keys_w16_elements(size_t capacity, size_t dh) {
    return capacity > SIZE_MAX - ISO_WIDE_PANEL
               ? 0
               : elements(iso_round_up(capacity, ISO_WIDE_PANEL), dh);
}

size_t iso_values_w16_elements(size_t capacity, size_t dh) {
    return dh > SIZE_MAX - ISO_WIDE_PANEL ? 0
                                          : elements(capacity, iso_round_up(dh, ISO_WIDE_PANEL));
}

/* What both have in common: where `most` elements are written or kept, at `to`. */
static iso_status check_append(const uint16_t *to, size_t most, const float *x, size_t ldx,
                               size_t count, size_t dh, iso_w16 type, const iso_context *context) {
    const struct iso_kernels *kernels;
    if (!iso_is_w16(type))
        return ISOBIT_E_OPTION;
    iso_status status = iso_check_matrix(x, count, dh, ldx);
    if (!status && count && dh) {
        if (!most)
            status = ISOBIT_E_OVERFLOW;
        else if (!to)
            status = ISOBIT_E_NULL;
        else if (iso_bytes_overlap(to, most * sizeof *to, x, iso_extent(count, dh, ldx, sizeof *x)))
            status = ISOBIT_E_ALIAS;
    }
    return status ? status : iso_context_kernels(&kernels, context);
}

static iso_status keys_call(uint16_t *panels, size_t first, const float *k, size_t ldk,
                            size_t count, size_t dh, iso_w16 type, const iso_context *context) {
    const size_t most = first > SIZE_MAX - count ? 0 : iso_keys_w16_elements(first + count, dh);
    const iso_status status = check_append(panels, most, k, ldk, count, dh, type, context);
    if (status || !dh)
        return status;
    for (size_t j = first; j < first + count; j++, k += ldk) {
        uint16_t *to = panels + j / ISO_WIDE_PANEL * dh * ISO_WIDE_PANEL +
                       iso_w16_place(j % ISO_WIDE_PANEL, (int)type);
        for (size_t e = 0; e < dh; e++)
            to[e * ISO_WIDE_PANEL] = iso_w16_bits(k[e], (int)type);
    }
    return ISOBIT_OK;
}

iso_status iso_keys_w16_append(uint16_t *panels, size_t first, const float *k, size_t ldk,
                               size_t count, size_t dh, iso_w16 type, const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    const iso_status status = keys_call(panels, first, k, ldk, count, dh, type, context);
    if (begin)
        iso_verbose_end(begin, iso_verbose_clock(), "keys_w16_append", context, status, NULL,
                        "first%zucount%zudh%zu:ldk%zu%s", first, count, dh, ldk, name_of(type));
    return status;
}

static iso_status values_call(uint16_t *values, size_t first, const float *v, size_t ldv,
                              size_t count, size_t dh, iso_w16 type, const iso_context *context) {
    const size_t most = first > SIZE_MAX - count ? 0 : iso_values_w16_elements(first + count, dh);
    const iso_status status = check_append(values, most, v, ldv, count, dh, type, context);
    if (status || !count || !dh)
        return status;
    const size_t row = iso_round_up(dh, ISO_WIDE_PANEL);
    for (uint16_t *to = values + first * row, *end = to + count * row; to < end; v += ldv)
        for (size_t e = 0; e < row; e += ISO_WIDE_PANEL, to += ISO_WIDE_PANEL)
            for (size_t j = 0; j < ISO_WIDE_PANEL; j++)
                to[iso_w16_place(j, (int)type)] =
                    e + j < dh ? iso_w16_bits(v[e + j], (int)type) : 0;
    return ISOBIT_OK;
}

iso_status iso_values_w16_append(uint16_t *values, size_t first, const float *v, size_t ldv,
                                 size_t count, size_t dh, iso_w16 type,
                                 const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    const iso_status status = values_call(values, first, v, ldv, count, dh, type, context);
    if (begin)
        iso_verbose_end(begin, iso_verbose_clock(), "values_w16_append", context, status, NULL,
                        "first%zucount%zudh%zu:ldv%zu%s", first, count, dh, ldv, name_of(type));
    return status;
}
