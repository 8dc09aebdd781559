/* SPDX-License-Identifier: MIT
 *
 * Weights of 16 bits: packing, and embeddings. Their products are in linear.c.
 */
#include "embed_rows.h"
#include "verbose.h"

#include <isobit/ops.h>

_Static_assert((int)ISO_W16_F16 == (int)ISOBIT_F16 && (int)ISO_W16_BF16 == (int)ISOBIT_BF16,
               "kernels number the types alike");

/* ------------------------------------------------------------------------------------- packing */

#define PACK_STEPS 32 /* at a time: of each row a line, and their part of a panel stays in L1 */

struct packing {
    uint16_t *packed;
    const uint16_t *w; /* element (j, p) at w[j * wj + p * wp] */
    size_t wj, wp, n, k, tasks;
    int type;
};

static void pack_panel(const struct packing *t, size_t panel) {
    uint16_t *to = t->packed + panel * t->k * ISO_WIDE_PANEL;
    const uint16_t *from = t->w + panel * ISO_WIDE_PANEL * t->wj;
    const size_t left = t->n - panel * ISO_WIDE_PANEL;
    const size_t n = left < ISO_WIDE_PANEL ? left : ISO_WIDE_PANEL;
    if (n < ISO_WIDE_PANEL)
        memset(to, 0, t->k * ISO_WIDE_PANEL * sizeof *to);
    for (size_t p = 0; p < t->k; p += PACK_STEPS) {
        const size_t steps = t->k - p < PACK_STEPS ? t->k - p : PACK_STEPS;
        for (size_t j = 0; j < n; j++) {
            uint16_t *column = to + p * ISO_WIDE_PANEL + iso_w16_place(j, t->type);
            for (size_t i = 0; i < steps; i++)
                column[i * ISO_WIDE_PANEL] = from[j * t->wj + (p + i) * t->wp];
        }
    }
}

static void pack_some(void *arg, size_t task) {
    const struct packing *t = arg;
    const size_t panels = (t->n + ISO_WIDE_PANEL - 1) / ISO_WIDE_PANEL;
    for (size_t i = panels * task / t->tasks; i < panels * (task + 1) / t->tasks; i++)
        pack_panel(t, i);
}

iso_status iso_pack_w16_bytes(size_t *bytes, size_t n, size_t k) {
    size_t elements;
    if (!bytes)
        return ISOBIT_E_NULL;
    if (n > SIZE_MAX - ISO_WIDE_PANEL ||
        iso_mul_overflows(&elements, iso_round_up(n, ISO_WIDE_PANEL), k))
        return ISOBIT_E_OVERFLOW;
    *bytes = elements * sizeof(uint16_t);
    return ISOBIT_OK;
}

static iso_status pack_call(iso_packed_w16 *p, void *packed, size_t packed_bytes, const uint16_t *w,
                            size_t ldw, size_t n, size_t k, int trans_w, iso_w16 type,
                            const iso_context *context) {
    const size_t rows = trans_w ? k : n, columns = trans_w ? n : k;
    const struct iso_kernels *kernels;
    size_t bytes;
    if (!p)
        return ISOBIT_E_NULL;
    if (!iso_is_w16(type))
        return ISOBIT_E_OPTION;
    iso_status status = iso_pack_w16_bytes(&bytes, n, k);
    if (!status)
        status = iso_check_matrix(w, rows, columns, ldw);
    if (status)
        return status;
    if ((status = iso_check_packed(&kernels, packed, packed_bytes, bytes, w,
                                   iso_extent(rows, columns, ldw, sizeof *w), context)))
        return status;
    if (bytes) {
        struct packing t = {
            packed,   w, trans_w ? 1 : ldw, trans_w ? ldw : 1, n, k, iso_context_threads(context),
            (int)type};
        iso_parallel(context, t.tasks, pack_some, &t);
    }
    *p = (iso_packed_w16){packed, n, k, type};
    return ISOBIT_OK;
}

iso_status iso_pack_w16(iso_packed_w16 *p, void *packed, size_t packed_bytes, const uint16_t *w,
                        size_t ldw, size_t n, size_t k, int trans_w, iso_w16 type,
                        const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    const iso_status status =
        pack_call(p, packed, packed_bytes, w, ldw, n, k, trans_w, type, context);
    if (begin)
        iso_verbose_end(begin, iso_verbose_clock(), "pack_w16", context, status, NULL,
                        "n%zuk%zu:%c:ldw%zu%s", n, k, trans_w ? 't' : 'n', ldw,
                        type == ISOBIT_BF16 ? ":bf16" : ":f16");
    return status;
}

/* ---------------------------------------------------------------------------------- embeddings */

static void widen(float *to, const void *row, size_t first, size_t n, int type) {
    const uint16_t *from = (const uint16_t *)row + first;
    for (size_t i = 0; i < n; i++)
        to[i] = iso_w16_value(from[i], type);
}

iso_status iso_embed_w16(float *y, size_t ldy, const uint32_t *ids, size_t count,
                         const uint16_t *table, iso_w16 type, size_t vocabulary, size_t d,
                         float scale, const float *positions, const uint32_t *position_rows,
                         size_t position_count, const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    const struct iso_embedding t = {.y = y,
                                    .ldy = ldy,
                                    .ids = ids,
                                    .count = count,
                                    .table = table,
                                    .row_bytes = d * sizeof *table,
                                    .d = d,
                                    .floats = widen,
                                    .type = (int)type,
                                    .scale = scale,
                                    .positions = positions,
                                    .position_rows = position_rows};
    const iso_status status = !iso_is_w16(type)
                                  ? ISOBIT_E_OPTION
                                  : iso_embed_rows(&t, vocabulary, position_count, context);
    if (begin)
        iso_verbose_end(begin, iso_verbose_clock(), "embed_w16", context, status, NULL,
                        "count%zud%zu:vocabulary%zu:ldy%zu%s%s", count, d, vocabulary, ldy,
                        positions ? ":positions" : "", position_rows ? ":position_rows" : "");
    return status;
}
