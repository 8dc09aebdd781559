/* SPDX-License-Identifier: MIT */
#include "packed_weights.h"

#include "strips.h"

size_t iso_weights_panel(const struct iso_weights *w) {
    return w->q     ? w->k / iso_q_block(w->type) * iso_q_words(w->type)
           : w->w16 ? w->k * ISO_WIDE_PANEL
                    : w->k * ISO_PANEL;
}

enum iso_gemm_way iso_weights_way(const struct iso_gemm_shape *s,
                                  const struct iso_gemm_machine *machine) {
    const size_t in_registers = s->w16      ? TUNED(machine, rows_w16)
                                : s->q == 4 ? TUNED(machine, rows_q4)
                                            : TUNED(machine, rows_q8);
    return s->b16                ? ISO_GEMM_B16
           : s->m > in_registers ? ISO_GEMM_WIDEN
           : s->w16              ? ISO_GEMM_W16
                                 : ISO_GEMM_Q;
}

/* Column j, step p. */
static const uint16_t *wide_panels(const struct iso_product *t, size_t j, size_t p) {
    return (const uint16_t *)t->w->data + j / ISO_WIDE_PANEL * t->bps + p * ISO_WIDE_PANEL;
}
static const uint32_t *group_panels(const struct iso_product *t, size_t j, size_t p) {
    const int type = t->w->type;
    return (const uint32_t *)t->w->data + j / ISO_PANEL * t->bps +
           p / iso_q_block(type) * iso_q_words(type);
}

void iso_weights_widen(const struct iso_product *t, float *panels, size_t j, size_t n, size_t p,
                       size_t k) {
    const struct iso_kernels *kernels = t->machine.kernels;
    if (t->w->q)
        kernels->gemm_dequantise(panels, group_panels(t, j, p), t->bps, n, k, t->w->type);
    else
        kernels->gemm_widen(panels, wide_panels(t, j, p), t->bps, n, k, t->w->type);
}

struct iso_shares iso_weights_shares(const struct iso_product *t, size_t j, size_t n, size_t p,
                                     size_t k, size_t shares) {
    const int type = t->w->type, w16 = t->w->w16;
    const size_t width = w16 ? ISO_WIDE_PANEL : ISO_PANEL, panels = (n + width - 1) / width;
    const size_t floats = w16 ? k * ISO_PANEL : k / iso_q_block(type) * iso_q_words(type);
    const void *from = w16 ? (const void *)wide_panels(t, j, p) : group_panels(t, j, p);
    return k == t->k ? iso_shares_of(from, 1, 0, panels * floats, shares)
                     : iso_shares_of(from, panels, w16 ? t->bps / 2 : t->bps, floats, shares);
}

/* m rows of A and C, a strip, with columns j .. j+n of B, steps p .. p+k. */
static void strip(const struct iso_product *t, float *c, size_t ldc, const float *a, size_t m,
                  size_t j, size_t n, size_t p, size_t k, int mode) {
    const struct iso_kernels *kernels = t->machine.kernels;
    if (t->plan.way == ISO_GEMM_B16)
        t->w->native->gemm_b16(c, ldc, (const uint16_t *)(const void *)a, iso_b16_ld(t->k),
                               wide_panels(t, j, p), t->bps, m, n, k, mode);
    else if (t->plan.way == ISO_GEMM_W16)
        kernels->gemm_w16(c, ldc, a, t->ai, wide_panels(t, j, p), t->bps, m, n, k, t->w->type,
                          mode);
    else
        kernels->gemm_q(c, ldc, a, t->ai, group_panels(t, j, p), t->bps, m, n, k, t->w->type, mode);
}

void iso_product_weights(const struct iso_product *t, size_t i0, size_t m, size_t j0, size_t n,
                         float *scratch) {
    const struct iso_gemm_strips s = iso_gemm_strips(&t->plan, &t->machine, m, n, t->n * t->k, 0);
    const int native = t->plan.way == ISO_GEMM_B16, strip_sums = t->plan.strip_sums;
    float *sums = t->c + i0 * t->ldc + j0;
    size_t ld = t->ldc;
    if (iso_needs_own_sums(t->e, t->c)) {
        sums = scratch + t->plan.a_floats;
        ld = strip_sums ? iso_min_size(n, ISO_GEMM_STRIP_COLUMNS) : n;
    }
    for (size_t p = 0; p < t->k; p += ISO_K_BLOCK) {
        const size_t k = iso_min_size(t->k - p, ISO_K_BLOCK);
        const float *a = t->a + i0 * t->ai + p;
        if (native) { /* all rows are one strip */
            t->w->native->round_b16((uint16_t *)(void *)scratch, iso_b16_ld(t->k), a, t->ai, m, k);
            a = scratch;
        }
        for (size_t j = 0, columns; j < n; j += columns) {
            columns = iso_min_size(n - j, s.columns);
            for (size_t i = 0, rows; i < m; i += rows) {
                float *c = strip_sums ? sums : sums + i * ld + j;
                rows = iso_min_size(m - i, s.rows);
                strip(t, c, ld, a + i * t->ai, rows, j0 + j, columns, p, k,
                      (p ? ISO_DIRECT_ADD : 0) | (i ? 0 : s.direct_mode));
                if (p + k == t->k)
                    iso_finish(t, t->e, c, ld, i0 + i, j0 + j, rows, columns);
            }
        }
    }
}
