/* SPDX-License-Identifier: MIT
 *
 * A block of C, from strips of A and columns of B that stay in L2: blocks of k (512, part of the
 * canonical order) -> columns of B -> strips of rows (whose A stays in L1) -> tiles, in the
 * kernels. A partial sum over k waits in C itself, or where C is needed in the end, in scratch.
 */
#include "../packed_weights.h"
#include "../strips.h"

/* A block, and where its operands are for the block of k at hand. */
struct block {
    const struct iso_product *t;
    struct iso_gemm_strips strips;
    size_t i0, m, j0;
    float *sums; /* of all of it, or of one strip and part after the other */
    size_t ld;
    float *own_b, *strips_of_a; /* scratch */
    const float *a;
    size_t width, next; /* between steps of k, and between rows of A */
    int add;            /* the sums to what is there */
};

/* Columns j .. j+n of B, steps p .. p+k. */
struct part_of_b {
    size_t j, n, p, k;
};

/* k steps of packed panels, for so many tiles to prefetch. */
static struct iso_shares shares_of_panels(const float *b, size_t bps, size_t panels, size_t k,
                                          size_t tiles) {
    return bps == k * ISO_PANEL ? iso_shares_of(b, 1, 0, panels * bps, tiles)
                                : iso_shares_of(b, panels, bps, k * ISO_PANEL, tiles);
}

/* What so many tiles prefetch of it: packed panels, or what will be one, a line of each row. */
static struct iso_shares shares_of(const struct iso_product *t, const struct part_of_b *next,
                                   size_t tiles) {
    const size_t panels = (next->n + ISO_PANEL - 1) / ISO_PANEL;
    if (next->k == 0 || tiles == 0)
        return (struct iso_shares){.runs = 0};
    if (t->plan.way == ISO_GEMM_PACK)
        return iso_shares_of_rows(t->b + next->j + next->p * t->bs, panels, t->bs);
    if (!t->b)
        return iso_weights_shares(t, next->j, next->n, next->p, next->k, tiles);
    const float *b = t->b + next->j / ISO_PANEL * t->bps + next->p * ISO_PANEL;
    return shares_of_panels(b, t->bps, panels, next->k, tiles);
}

/* -------------------------------------------------------------------------------------- strips */

static float *sums_of(const struct block *w, const struct part_of_b *here, size_t i) {
    return w->t->plan.strip_sums ? w->sums : w->sums + i * w->ld + (here->j - w->j0);
}

/*
 * Rows i .. i+m of C, a strip, with the packed panels b of `here`; tiles prefetch the next part.
 * Sums take their biases along, and ReLU, where a later pass over C would cost a hundredth of the
 * product.
 */
static void linear_strip(const struct block *w, const struct part_of_b *here,
                         struct iso_shares *shares, const float *b, size_t bps, size_t i,
                         size_t m) {
    const struct iso_product *t = w->t;
    const struct iso_kernels *kernels = t->machine.kernels;
    const size_t k = here->k;
    const size_t tiles = m == kernels->direct_mr ? here->n / ISO_LINEAR_COLUMNS : 0;
    const size_t done = tiles * ISO_LINEAR_COLUMNS, left = here->n - done;
    const int last = here->p + k == t->k;
    const float *a = w->a + i * w->next;
    float *c = sums_of(w, here, i);
    struct iso_epilogue rest = *t->e;
    const float *bias = NULL;
    int relu = 0;
    if (last && rest.alpha == 1.0f && rest.beta == 0.0f) {
        bias = rest.bias, rest.bias = NULL;
        relu = rest.act == ISOBIT_ACT_RELU;
        rest.act = relu ? ISOBIT_ACT_NONE : rest.act;
    }
    if (tiles) {
        const int any = shares->runs > 0;
        const float *share[ISO_GEMM_COLUMN_BLOCK / ISO_LINEAR_COLUMNS];
        for (size_t tile = 0; tile < tiles && any; tile++)
            share[tile] = iso_next_share(shares);
        kernels->gemm_linear(c, w->ld, a, w->next, b, bps, done, k, w->add,
                             bias ? bias + here->j : NULL, relu, any ? share : NULL,
                             shares->floats * sizeof(float), shares->ld,
                             (int)TUNED(&t->machine, interleaved));
    }
    if (left)
        kernels->gemm_direct(c + done, w->ld, a, w->next, b + done / ISO_PANEL * bps, ISO_PANEL,
                             bps, m, left, k, w->add);
    if (last) {
        iso_finish(t, &rest, c, w->ld, w->i0 + i, here->j, m, done);
        iso_finish(t, t->e, c + done, w->ld, w->i0 + i, here->j + done, m, left);
    }
}

/* The same, any strip, with b as it lies. The first `packed` columns are packed on the way. */
static void strip(const struct block *w, const struct part_of_b *here, const float *b, size_t bs,
                  size_t bps, size_t packed, size_t i, size_t m) {
    const struct iso_product *t = w->t;
    const struct iso_kernels *kernels = t->machine.kernels;
    const size_t n = here->n, k = here->k;
    const float *a = w->a + i * w->next;
    float *c = sums_of(w, here, i);
    if (packed)
        kernels->gemm_packing(c, w->ld, a, w->next, t->b + here->j + here->p * t->bs, t->bs,
                              w->own_b, packed, k, w->strips.packing_mode | w->add);
    if (t->plan.a_in_place)
        kernels->gemm_direct(c + packed, w->ld, a, w->next, b + packed / ISO_PANEL * bps, bs, bps,
                             m, n - packed, k, w->strips.direct_mode | w->add);
    else if (t->plan.way == ISO_GEMM_TRANSPOSED_B)
        (w->strips.half ? kernels->half : kernels)
            ->gemm_strip_bt(c, w->ld, a, w->width, b, bps, m, n, k, w->strips.direct_mode | w->add);
    else
        kernels->gemm_strip(c, w->ld, a, w->width, b, bs, bps, m, n, k,
                            w->add ? ISO_STRIP_ADD : ISO_STRIP_ASSIGN);
    if (here->p + k == t->k)
        iso_finish(t, t->e, c, w->ld, w->i0 + i, here->j, m, n);
}

/* What a strip's sums go to: tiles that add would wait for it. */
static void prefetch_sums(const float *c, size_t ld, size_t m, size_t n) {
    for (size_t i = 0; i < m; i++, c += ld) {
        for (size_t j = 0; j < n; j += ISO_PANEL)
            __builtin_prefetch(c + j, 1, 3);
        __builtin_prefetch(c + n - 1, 1, 3);
    }
}

/* Rows of a group, which lie in w->strips_of_a, with all of the packed part of B, as many columns
 * at a time as a tile prefetches while those before are used. The next group begins with the first
 * ones again; without one those of `after` come next. */
static void group_of_rows(const struct block *w, const struct part_of_b *here,
                          const struct part_of_b *after, const float *b, size_t bps,
                          int last_group) {
    const struct iso_product *t = w->t;
    const size_t tiles = iso_gemm_full_strips(&w->strips, &t->plan, &t->machine, w->m);
    const struct part_of_b later = {after->j, iso_min_size(after->n, ISO_LINEAR_COLUMNS), after->p,
                                    after->k};
    for (size_t j = 0, columns; j < here->n; j += columns) {
        columns = iso_min_size(here->n - j, ISO_LINEAR_COLUMNS);
        const struct part_of_b some = {here->j + j, columns, here->p, here->k};
        const size_t left = here->n - j - columns, next = left ? j + columns : 0;
        const size_t width = iso_min_size(here->n - next, ISO_LINEAR_COLUMNS);
        struct iso_shares shares = {.runs = 0};
        if (left || !last_group)
            shares = shares_of_panels(b + next / ISO_PANEL * bps, bps,
                                      (width + ISO_PANEL - 1) / ISO_PANEL, here->k, tiles);
        else if (t->plan.way == ISO_GEMM_PANELS)
            shares = shares_of(t, &later, tiles);
        for (size_t i = 0, rows; i < w->m; i += rows) {
            rows = iso_gemm_strip_rows(&w->strips, &t->plan, &t->machine, w->m, w->m - i);
            prefetch_sums(sums_of(w, &some, i), w->ld, rows, columns);
            linear_strip(w, &some, &shares, b + j / ISO_PANEL * bps, bps, i, rows);
        }
    }
}

/*
 * All rows of a large product with one part of B, more than L2 holds: a group of rows stays there
 * instead, and B passes it from L3, panel after panel as the hardware prefetches, once for each
 * group. As copies rows of A share neither the sets of a cache nor a page each. The loops of
 * Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008, with A and B
 * exchanged.
 */
static void part_in_groups(const struct block *w, const struct part_of_b *here,
                           const struct part_of_b *after, const float *b, size_t bps) {
    struct block group = *w;
    group.a = w->strips_of_a, group.next = here->k;
    for (size_t i = 0; i < w->m; i += group.m) {
        group.i0 = w->i0 + i, group.m = iso_min_size(w->m - i, w->strips.group);
        group.sums = w->sums + i * w->ld;
        for (size_t r = 0; r < group.m; r++)
            memcpy(w->strips_of_a + r * here->k, w->a + (i + r) * w->next, here->k * sizeof *w->a);
        group_of_rows(&group, here, after, b, bps, i + group.m == w->m);
    }
}

#define SHORT_ROW 128 /* longer rows of a transposed B the hardware prefetches */

/* A part of a transposed B of short rows into panels: while one is packed, the rows of the next one
 * are on their way. */
static void pack_short_rows(const struct iso_kernels *kernels, float *panels, const float *b,
                            size_t ldb, size_t n, size_t k) {
    for (size_t j = 0; j < n; j += ISO_PANEL) {
        const float *row = b + j * ldb, *next = row + ISO_PANEL * ldb;
        const size_t rows = iso_min_size(n - j, ISO_PANEL);
        for (size_t i = 0; i < rows && j + rows + i < n; i++)
            for (size_t p = 0; p < k; p += ISO_LINE)
                __builtin_prefetch(next + i * ldb + p, 0, 2);
        kernels->gemm_pack(panels + j * k, row, ldb, 1, rows, k, ISO_PANEL);
    }
}

/* All rows of the block with one part of B; `after` is the part that comes next. */
static void part(const struct block *w, const struct part_of_b *here,
                 const struct part_of_b *after) {
    const struct iso_product *t = w->t;
    const struct iso_gemm_strips *s = &w->strips;
    const struct iso_kernels *kernels = t->machine.kernels;
    const int widens = t->plan.way == ISO_GEMM_WIDEN, packs = t->plan.way == ISO_GEMM_PACK;
    const size_t k = here->k, packed = s->packing ? here->n - here->n % ISO_LINEAR_COLUMNS : 0;
    const size_t bs = widens || packs ? ISO_PANEL : t->bs;
    const size_t bps = widens || packs ? k * ISO_PANEL : t->bps;
    const float *b = w->own_b;
    if (widens) {
        iso_weights_widen(t, w->own_b, here->j, here->n, here->p, k);
    } else if (packs) {
        const size_t bj = t->trans_b ? t->bps : 1, bp = t->trans_b ? 1 : t->bs;
        if (t->trans_b && k <= SHORT_ROW && t->machine.class == ISO_GEMM_SMALL_L1)
            pack_short_rows(kernels, w->own_b, t->b + here->j * bj + here->p, bj, here->n, k);
        else
            kernels->gemm_pack(w->own_b + packed * k, t->b + (here->j + packed) * bj + here->p * bp,
                               bj, bp, here->n - packed, k, ISO_PANEL);
    } else {
        b = t->b + (t->trans_b ? here->j : here->j / ISO_PANEL) * t->bps + here->p * t->bs;
    }
    if (s->group) {
        part_in_groups(w, here, after, b, bps);
        return;
    }
    const size_t tiles = s->prefetching * (here->n / ISO_LINEAR_COLUMNS);
    struct iso_shares shares = shares_of(t, after, tiles);
    for (size_t i = 0, rows; i < w->m; i += rows) {
        rows = iso_gemm_strip_rows(s, &t->plan, &t->machine, w->m, w->m - i);
        if (w->add && here->n <= ISO_GEMM_STRIP_COLUMNS) /* a strip by itself may have them all */
            prefetch_sums(sums_of(w, here, i), w->ld, rows, here->n);
        if (s->linear || (s->packing && i > 0))
            linear_strip(w, here, &shares, b, bps, i, rows);
        else
            strip(w, here, b, bs, bps, i == 0 ? packed : 0, i, rows);
    }
}

/* Steps p .. p+k of the block's rows of A: as they lie, or packed in strips. */
static void take_a(struct block *w, size_t p, size_t k) {
    const struct iso_product *t = w->t;
    w->a = t->a + w->i0 * t->ai + p * t->ap;
    w->width = w->strips.rows, w->next = k, w->add = p != 0 || t->plan.adds;
    if (t->plan.a_in_place) {
        w->next = t->ai;
    } else if (w->m == 1 || t->plan.strips_in_place) {
        w->width = t->ap, w->next = 1;
    } else {
        t->machine.kernels->gemm_pack(w->strips_of_a, w->a, t->ai, t->ap, w->m, k, w->width);
        w->a = w->strips_of_a;
    }
}

void iso_product_block(const struct iso_product *t, size_t i0, size_t m, size_t j0, size_t n,
                       float *scratch) {
    struct block w = {t, .i0 = i0, .m = m, .j0 = j0, .sums = t->c + i0 * t->ldc + j0, .ld = t->ldc};
    w.strips = iso_gemm_strips(&t->plan, &t->machine, m, n, t->n * t->k, t->trans_b);
    w.own_b = scratch, w.strips_of_a = scratch + t->plan.b_floats;
    if (iso_needs_own_sums(t->e, t->c)) {
        w.sums = w.strips_of_a + t->plan.a_floats;
        w.ld = t->plan.strip_sums ? iso_min_size(n, ISO_GEMM_STRIP_COLUMNS) : n;
    } else if ((n -= iso_product_narrow(t, i0, m, j0, n, w.own_b)) == 0) {
        return;
    }
    for (size_t p = 0; p < t->k; p += ISO_K_BLOCK) {
        const size_t k = iso_min_size(t->k - p, ISO_K_BLOCK);
        take_a(&w, p, k);
        for (size_t j = 0, columns; j < n; j += columns) {
            columns = iso_gemm_part_columns(&w.strips, n - j);
            const size_t left = n - j - columns;
            const struct part_of_b here = {j0 + j, columns, p, k};
            const struct part_of_b after = {
                left ? j0 + j + columns : j0, iso_gemm_part_columns(&w.strips, left ? left : n),
                left ? p : p + k, left ? k : iso_min_size(t->k - p - k, ISO_K_BLOCK)};
            part(&w, &here, &after);
        }
    }
}
