/* SPDX-License-Identifier: MIT
 *
 * Matrix products: argument checks, packing, cache blocks and tasks around gemm_strip.
 *
 * The loops, from outside: blocks of rows (what fits in L2 beside B) -> blocks of k (512, part of
 * the canonical order) -> blocks of columns (B's part stays in L2) -> strips of mr rows (A's part
 * stays in L1) -> tiles. A partial sum over k waits in C itself, or with beta in scratch, since C
 * is needed in the end. Work is cut by rows and columns of C only, never by k.
 */
#include "check.h"
#include "verbose.h"

#include <isobit/ops.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define ROW_BLOCK 128    /* rows of A packed at a time, at most */
#define COLUMN_BLOCK 144 /* columns of B that stay in L2, 288 KiB, while the next ones come */
#define WIDE_BLOCK 192   /* the same, for tiles of any width; what is beside them is slow */
#define CACHED_FLOATS ((size_t)1 << 17) /* a B of so many is in L2 anyway */
#define OWN_ROWS 1024     /* of A, at most, that use a block of B which is packed for them */
#define OWN_COLUMNS 128   /* for each thread: fewer are shared by all */
#define ACROSS_COLUMNS 48 /* of C that are computed as rows at a time */
#define B_BLOCK 1024      /* columns of a plain B packed at a time */
/* Rows of a transposed B that lie a multiple of so many floats apart share few places in L1: so
 * many of them are read side by side. */
#define ALIASED 1024
#define ALIASED_ROWS 8
/* Columns that go through all blocks of k: what prefetchers read beyond a block is the next one. */
#define COLUMNS_BT 256
#define NARROWEST 8        /* see is_narrow */
#define NARROW_FLOATS 1024 /* of A, below which a product is tiny */
#define MOST_OWNERS 64
/* A row-major B that is read in place by few rows, and does not fit in cache: tiles would go down
 * its columns, a few lines of each of its rows at a time, at a third of what memory gives. */
#define FAR_ROWS 32
#define FAR_ROWS_LONG 16 /* with a second block of k */
#define FAR_FLOATS ((size_t)1 << 21)
#define FAR_RUN 2048   /* columns: shorter rows are read in place, all of a strip's at once */
#define APART_RUN 1024 /* columns, see is_apart */
#define MEMORY_FLOATS ((size_t)5 << 20) /* see is_in_memory */
#define FAR_STEPS 8 /* rows of B read side by side, as many as prefetchers follow */
/* The same with more than four rows of A, and where rows of B share few places in L1. */
#define FAR_STEPS_MORE 16
#define FAR_STEPS_ALIASED 32
/* With more than four rows, whose sums stay in L2, or a second block of k, whose sums wait beside
 * C. */
#define FAR_COLUMNS 4096
#define LOCAL_SCRATCH 1024           /* floats that are taken from the stack */
#define SMALL_WORK ((size_t)1 << 19) /* multiply-adds below which a product stays on one thread */

struct job {
    const struct iso_kernels *kernels;
    float *c;
    size_t ldc;
    const float *a; /* element (i, p) at a[i * ai + p * ap] */
    size_t ai, ap;
    const float *b; /* panels: column j at b[j/16 * bps + j%16], next p bs further */
    size_t bs, bps;
    int a_direct; /* A is read where it lies, row-major */
    int b_turned; /* B lies as [n][bps], and is turned in registers, or one of the next two: */
    int own_b;    /* a task packs the columns of B that it needs, a block at a time */
    int across;   /* see across_block */
    int far;      /* see FAR_ROWS */
    int called;   /* see rows_called */
    size_t m, n, k;
    const struct iso_epilogue *e;
    size_t row_block, column_chunk; /* of a task */
    size_t tasks;
    size_t owners; /* block i belongs to owner i % owners, who has taken so many of its own: */
    atomic_size_t *taken;
    float *scratch;
    size_t scratch_stride;
    /* packing of a plain B: so many columns at a time, 0 when it is read in place */
    size_t columns;
    float *packed;
    const float *b_source;
    size_t b_j, b_p;
};

static size_t min_size(size_t a, size_t b) { return a < b ? a : b; }

static int epilogue_is_empty(const struct iso_epilogue *e) {
    return e->alpha == 1.0f && e->beta == 0.0f && !e->bias && !e->act && !e->residual;
}

/* Whether the epilogue reads something that lies where the sums would: then they wait in scratch.
 */
static int needs_own_sums(const struct job *t) {
    return t->e->beta != 0.0f || (t->e->residual && t->e->residual == t->c);
}

/* Most rows of gemm_direct with n columns. */
static size_t direct_rows(const struct iso_kernels *kernels, size_t n) {
    return n <= kernels->vector_floats ? kernels->direct_tall : kernels->direct_mr;
}

static void finish_as(const struct job *t, const struct iso_epilogue *as, const float *sums,
                      size_t ld, size_t i, size_t j, size_t m, size_t n) {
    float *c = t->c + i * t->ldc + j;
    if (n == 0 || (sums == c && epilogue_is_empty(as)))
        return;
    struct iso_epilogue e = *as;
    if (e.bias)
        e.bias += j;
    if (e.residual)
        e.residual += i * e.ldr + j;
    t->kernels->gemm_epilogue(c, t->ldc, sums, ld, m, n, &e);
}

static void finish(const struct job *t, const float *sums, size_t ld, size_t i, size_t j, size_t m,
                   size_t n) {
    finish_as(t, t->e, sums, ld, i, j, m, n);
}

/* Whether L3 is slow, and that makes a difference to the set. */
static int l3_is_slow(const struct iso_kernels *kernels) {
    return kernels->rows_slow && iso_l3_is_slow();
}

/* Whether B comes from memory, and not from L3. */
static int is_in_memory(size_t n, size_t k) { return n > MEMORY_FLOATS / k; }

/* Of a strip. */
static size_t most_rows(const struct job *t) {
    const struct iso_kernels *kernels = t->kernels;
    size_t most = t->a_direct && !t->far ? kernels->direct_mr : kernels->mr;
    if (t->b_turned || t->own_b || t->bs == ISO_PANEL || !(t->a_direct || t->far))
        return most;
    if (t->bs % kernels->aliased == 0 && t->n > kernels->floats_in_place / t->k)
        most = min_size(most, kernels->aliased_mr);
    if (t->far && is_in_memory(t->n, t->k))
        most = min_size(most, kernels->far_mr);
    return most;
}

/* How rows are cut into strips of mr or fewer. */
struct cut {
    size_t rows, mr;
    int far; /* they read packed panels that come from afar, and L1 waits for few lines at a time */
    int wide; /* a panel is one vector */
};

/* Rows of the first strip where so many are left. Full ones can call what comes next, those of a
 * few rows are slow: 9 rows are 5 + 4, but 12 are 8 + 4. Where B is far a single full strip cannot
 * call as fast as it reads, so 12 are 6 + 6. But with half as wide vectors one or two rows have
 * the more panels side by side: there 8 are 6 + 2. */
static size_t strip_rows(const struct cut *cut, size_t left) {
    const size_t mr = cut->mr;
    if (left <= mr)
        return left;
    if (cut->far && cut->rows < 2 * mr)
        return cut->wide ? (left + 1) / 2 : mr;
    if (cut->far && !cut->wide && left - mr >= 2)
        return mr;
    return left >= 2 * mr || left - mr >= mr / 2 ? mr : (left + 1) / 2;
}

/* Whether n columns are so few that vectors along them would be half empty, or more, and the rows
 * many enough for vectors along those. Beside other columns they share a tile with a full vector,
 * which is faster unless they are fewer, and the product is not tiny. */
static int is_narrow(const struct iso_kernels *kernels, size_t m, size_t n, size_t k, int beside) {
    return n > 0 && n <= (beside ? NARROWEST / 2 : NARROWEST) && 2 * n <= kernels->vector_floats &&
           m >= kernels->vector_floats && (!beside || m >= NARROW_FLOATS / k);
}

/*
 * Such columns, computed as rows of the transposed product: the same sums in the same order. A is a
 * transposed B then, or one that is not; B a strip, unless its columns lie as rows.
 */
static void narrow_columns(const struct job *t, size_t i0, size_t m, size_t j0, size_t n,
                           float *scratch) {
    const int a_turned = t->ap != 1;
    const float *b = t->b + (t->b_turned ? j0 * t->bps : j0 / ISO_PANEL * t->bps + j0 % ISO_PANEL);
    float sums[NARROWEST * 64];
    for (size_t i = i0; i < i0 + m; i += 64) {
        const size_t rows = min_size(i0 + m - i, 64);
        for (size_t p = 0; p < t->k; p += ISO_K_BLOCK) {
            const size_t k = min_size(t->k - p, ISO_K_BLOCK);
            const float *a = t->a + i * t->ai + p * t->ap, *strip = b + p * t->bs;
            size_t width = t->bs;
            if (t->b_turned && !a_turned) {
                if (i == i0 || t->k > ISO_K_BLOCK) /* else it is there from before */
                    t->kernels->gemm_pack(scratch, strip, t->bps, 1, n, k, n);
                strip = scratch, width = n;
            }
            if (!a_turned)
                t->kernels->gemm_strip_bt(sums, 64, strip, width, a, t->ai, n, rows, k, p != 0);
            else if (t->b_turned)
                t->kernels->gemm_direct(sums, 64, strip, t->bps, a, t->ap, ISO_PANEL, n, rows, k,
                                        p != 0);
            else
                t->kernels->gemm_strip(sums, 64, strip, width, a, t->ap, ISO_PANEL, n, rows, k,
                                       p ? ISO_STRIP_ADD : ISO_STRIP_ASSIGN);
        }
        for (size_t r = 0; r < rows; r++)
            for (size_t j = 0; j < n; j++)
                t->c[(i + r) * t->ldc + j0 + j] = sums[j * 64 + r];
    }
    finish(t, t->c + i0 * t->ldc + j0, t->ldc, i0, j0, m, n);
}

/* A block of B: columns j .. j+n, steps p .. p+k. */
struct part_of_b {
    size_t j, n, p, k;
};

/* Calls one of `parts` parts of a block of B into L2. Each line is one step of a panel. */
static void prefetch_part(const struct job *t, const struct part_of_b *next, size_t part,
                          size_t parts) {
    const size_t panels = (next->n + ISO_PANEL - 1) / ISO_PANEL, k = next->k, lines = panels * k;
    const size_t first = lines * part / parts, end = lines * (part + 1) / parts;
    size_t panel = first / k, step = first % k;
    const float *b = t->b + next->j / ISO_PANEL * t->bps + next->p * t->bs;
    for (size_t i = first; i < end; i++) {
        __builtin_prefetch(b + panel * t->bps + step * t->bs, 0, 2);
        if (++step == k)
            step = 0, panel++;
    }
}

/* A block of B in parts that gemm_linear calls one after the other: of all packed panels where they
 * follow each other, or each in one panel; or what will be a panel, a line of each row. */
struct calls {
    const float *from; /* the next run of lines */
    size_t runs, next; /* so many are left, so many floats apart */
    size_t each, done; /* parts of a run, and how many of its parts have been called */
    size_t floats, ld; /* of a part; between lines, if they do not follow each other */
};

static struct calls calls_of(const struct job *t, const struct part_of_b *next, size_t parts) {
    const size_t panels = (next->n + ISO_PANEL - 1) / ISO_PANEL;
    const int follow = next->k == t->k;
    struct calls c = {.each = 1};
    if (next->k == 0 || parts == 0)
        return c;
    if (t->own_b) {
        c.from = t->b + next->j + next->p * t->bs;
        c.runs = panels, c.next = ISO_PANEL, c.ld = t->bs;
        return c;
    }
    c.from = t->b + next->j / ISO_PANEL * t->bps + next->p * ISO_PANEL;
    c.runs = follow ? 1 : panels, c.next = t->bps;
    const size_t lines = follow ? panels * next->k : next->k;
    const size_t most = parts > c.runs ? parts / c.runs : 1, some = (lines + most - 1) / most;
    c.each = (lines + some - 1) / some;
    c.floats = some * ISO_PANEL;
    return c;
}

static const float *next_part(struct calls *c) {
    if (c->runs == 0)
        return NULL;
    const float *part = c->from + c->done * c->floats;
    if (++c->done == c->each)
        c->done = 0, c->from += c->next, c->runs--;
    return part;
}

/*
 * Rows i .. i+m of C, a strip, with the packed panels of `here`. Prefetches in a burst would wait
 * for each other, and the product for them; a tile, that takes some thousand cycles, has time for
 * some lines of the next block. Sums take their biases along, and ReLU, where a later pass over C
 * would cost a hundredth of the product.
 */
static void linear_strip(const struct job *t, const struct part_of_b *here, struct calls *calls,
                         float *c, size_t ld, const float *a, size_t lda, const float *b,
                         size_t bps, size_t i, size_t m) {
    const size_t k = here->k;
    const size_t tiles = m == t->kernels->direct_mr ? here->n / ISO_LINEAR_COLUMNS : 0;
    const size_t done = tiles * ISO_LINEAR_COLUMNS, left = here->n - done;
    const int last = here->p + k == t->k;
    struct iso_epilogue rest = *t->e;
    const float *bias = NULL;
    int relu = 0;
    if (last && rest.alpha == 1.0f && rest.beta == 0.0f) {
        bias = rest.bias, rest.bias = NULL;
        relu = rest.act == ISOBIT_ACT_RELU;
        if (relu)
            rest.act = ISOBIT_ACT_NONE;
    }
    if (tiles) {
        const int any = calls->runs > 0;
        const float *call[WIDE_BLOCK / ISO_LINEAR_COLUMNS];
        for (size_t tile = 0; tile < tiles && any; tile++)
            call[tile] = next_part(calls);
        t->kernels->gemm_linear(c, ld, a, lda, b, bps, done, k, here->p != 0,
                                bias ? bias + here->j : NULL, relu, any ? call : NULL,
                                calls->floats * sizeof(float), calls->ld, l3_is_slow(t->kernels));
    }
    if (left)
        t->kernels->gemm_direct(c + done, ld, a, lda, b + done / ISO_PANEL * bps, ISO_PANEL, bps, m,
                                left, k, here->p != 0);
    if (last) {
        finish_as(t, &rest, c, ld, i, here->j, m, done);
        finish(t, c + done, ld, i, here->j + done, m, left);
    }
}

/* Scratch for the columns of B that a task packs at a time. */
static size_t own_floats(size_t n, size_t k) {
    return iso_round_up(min_size(n, COLUMN_BLOCK), ISO_PANEL) * min_size(k, ISO_K_BLOCK);
}

/* Columns of a block of B, `most` or fewer, where so many are left. `whole`: the last blocks leave
 * none behind that are too small to call as much as a whole one is. */
static size_t block_columns(size_t left, size_t most, int whole) {
    if (!whole || left >= 2 * most)
        return min_size(left, most);
    return left < most + ISO_LINEAR_COLUMNS ? left : 2 * ISO_LINEAR_COLUMNS;
}

/* Rows i0 .. i0+m, columns j0 .. j0+n, for all k. */
static void block(const struct job *t, size_t i0, size_t m, size_t j0, size_t n, float *scratch) {
    const size_t mr = most_rows(t);
    /* Strips of even height: 16 rows as 8 + 8, not 14 + 2; where they read packed panels that lie
     * far away, as many full ones as can be. */
    const size_t strips = (m + mr - 1) / mr, rows = (m + strips - 1) / strips;
    /* Reading B from afar takes no time when it is called in advance. */
    const int large = strips > 1 && !t->b_turned && t->n * t->k > CACHED_FLOATS;
    const int panels = large && t->a_direct && !t->own_b && t->bs == ISO_PANEL;
    /* A full strip packs a plain B as it goes. */
    const int packing = t->own_b && !t->b_turned && t->a_direct && m >= mr;
    /* Where L1 waits for few lines at a time, those that come from afar go to L2. */
    const int far = t->n * t->k >= ISO_L2_FLOATS && iso_l1_has_few_ways() ? ISO_DIRECT_FAR : 0;
    const int direct = t->bs == ISO_PANEL || t->called ? far : 0;
    const struct cut cut = {m, mr, panels && far && t->n * t->k > ISO_L2_FLOATS,
                            t->kernels->vector_floats == ISO_PANEL};
    size_t full = 0;
    while (m - full * mr >= mr && strip_rows(&cut, m - full * mr) == mr)
        full++;
    const int linear = panels && full > 0;
    /* What the rows before have left in cache is near enough without being called. */
    const int known = i0 > 0 && t->n * t->k <= ISO_L2_FLOATS;
    size_t most = n; /* A single strip reads B once. */
    if (t->own_b || (linear && rows == mr))
        most = COLUMN_BLOCK;
    else if (strips > 1)
        most = WIDE_BLOCK;
    const int whole = linear && most == COLUMN_BLOCK;
    float *sums = t->c + i0 * t->ldc + j0, *own = scratch;
    size_t ld = t->ldc;
    if (t->own_b)
        scratch += own_floats(n, t->k);
    if (needs_own_sums(t)) {
        sums = scratch + (t->a_direct ? 0 : iso_round_up(m, mr) * min_size(t->k, ISO_K_BLOCK));
        ld = n;
    } else {
        const size_t last = t->b_turned && !t->own_b ? n : n & (t->kernels->vector_floats - 1);
        if (is_narrow(t->kernels, m, last, t->k, last < n)) {
            n -= last;
            narrow_columns(t, i0, m, j0 + n, last, t->own_b ? own : scratch);
            if (n == 0)
                return;
        }
    }

    for (size_t p0 = 0; p0 < t->k; p0 += ISO_K_BLOCK) {
        const size_t k = min_size(t->k - p0, ISO_K_BLOCK);
        const int last = p0 + k == t->k, mode = p0 ? ISO_STRIP_ADD : ISO_STRIP_ASSIGN;
        const float *a = t->a + i0 * t->ai + p0 * t->ap;
        size_t width = rows, next = k; /* between steps of k, and between rows of A */
        if (t->a_direct) {
            next = t->ai;
        } else if (m == 1 || (t->ai == 1 && m <= mr)) { /* lies as a strip does already */
            width = t->ap;
        } else {
            t->kernels->gemm_pack(scratch, a, t->ai, t->ap, m, k, width);
            a = scratch;
        }
        const size_t bs = t->own_b ? ISO_PANEL : t->bs, bps = t->own_b ? k * ISO_PANEL : t->bps;
        for (size_t j = 0, columns; j < n; j += columns) {
            columns = block_columns(n - j, most, whole);
            const float *b =
                t->b + (t->b_turned ? j0 + j : (j0 + j) / ISO_PANEL) * t->bps + p0 * t->bs;
            const float *plain = NULL;
            size_t along = 0; /* columns of it that the first strip packs as it goes */
            if (t->own_b && t->b_turned) {
                t->kernels->gemm_pack(own, b, t->bps, 1, columns, k, ISO_PANEL);
                b = own;
            } else if (t->own_b) {
                plain = t->b + j0 + j + p0 * t->bs;
                if (packing)
                    along = columns - columns % ISO_LINEAR_COLUMNS;
                t->kernels->gemm_pack(own + along * k, plain + along, 1, t->bs, columns - along, k,
                                      ISO_PANEL);
                b = own;
            }
            const int more = j + columns < n;
            const struct part_of_b after = {more ? j0 + j + columns : j0,
                                            block_columns(more ? n - j - columns : n, most, whole),
                                            more ? p0 : p0 + k,
                                            more ? k : min_size(t->k - p0 - k, ISO_K_BLOCK)};
            size_t callers = linear && !known ? full : 0; /* strips with time for that */
            if (packing && full > 0)
                callers = full - 1;
            const size_t parts = callers * (columns / ISO_LINEAR_COLUMNS);
            struct calls calls = calls_of(t, &after, parts);
            for (size_t i = 0, strip = 0, here; i < m; i += here, strip++) {
                here = linear || packing ? strip_rows(&cut, m - i) : min_size(m - i, rows);
                if (i == 0 && packing)
                    here = mr;
                float *c = sums + i * ld + j;
                if (linear || (packing && i > 0)) {
                    const struct part_of_b now = {j0 + j, columns, p0, k};
                    linear_strip(t, &now, &calls, c, ld, a + i * next, next, b, bps, i0 + i, here);
                    continue;
                }
                const size_t done = i == 0 ? along : 0;
                if (done)
                    t->kernels->gemm_packing(c, ld, a, next, plain, t->bs, own, done, k,
                                             far | (p0 != 0));
                if (t->a_direct)
                    t->kernels->gemm_direct(c + done, ld, a + i * next, next,
                                            b + done / ISO_PANEL * bps, bs, bps, here,
                                            columns - done, k, direct | (p0 != 0));
                else if (t->b_turned && !t->own_b)
                    t->kernels->gemm_strip_bt(c, ld, a + i * next, width, b, t->bps, here, columns,
                                              k, p0 != 0);
                else
                    t->kernels->gemm_strip(c, ld, a + i * next, width, b, bs, bps, here, columns, k,
                                           mode);
                if (last)
                    finish(t, c, ld, i0 + i, j0 + j, here, columns);
                if (large && after.k > 0 && parts == 0)
                    prefetch_part(t, &after, strip, strips);
            }
        }
    }
}

static int is_far(size_t n, size_t k) { return k > 0 && n >= FAR_FLOATS / k; }

static size_t far_rows(size_t k) { return k > ISO_K_BLOCK ? FAR_ROWS_LONG : FAR_ROWS; }

/* Rows of B at a time: from L3, and with many rows of A, more, so that sums pass through C less
 * often, but not as many where two of them pass, that of this block of k and the others'. Nor where
 * an L3 is fast as long as neighbours leave it alone: down many rows, a few lines of each, tiles
 * would take three times as long when they do not. */
static size_t far_steps(const struct job *t) {
    const size_t blocks = t->k > ISO_K_BLOCK ? 2 : 1, most = t->kernels->far_steps / blocks;
    if (t->m == 1)
        return ISO_K_BLOCK;
    if (t->m <= 4 || is_in_memory(t->n, t->k))
        return FAR_STEPS;
    if (l3_is_slow(t->kernels))
        return most;
    return min_size(most, blocks == 1 && t->bs % t->kernels->aliased == 0 ? FAR_STEPS_ALIASED
                                                                          : FAR_STEPS_MORE);
}

/* Where L3 is slow tiles wait even for a B that is no further away, if its rows lie so far apart
 * that nothing fetches ahead, and share few places in L1 and L2. `aliased`: that they may. */
static int is_apart(const struct iso_kernels *kernels, size_t n, size_t k, int aliased) {
    return aliased && kernels->rows_apart && iso_l3_is_slow() && n >= APART_RUN &&
           n < FAR_COLUMNS && n > ISO_L2_FLOATS / k;
}

/* Floats of scratch for A, packed in strips, of 4 rows at least: they may have a row more than
 * there is to each of them. One row lies as a strip does. */
static size_t far_strip(size_t m, size_t k) {
    return m > 1 ? far_rows(k) * 5 / 4 * min_size(k, ISO_K_BLOCK) : 0;
}

/* All m rows, columns j0 .. j0+n: along the rows of B, FAR_STEPS of them at a time. */
static void far_block(const struct job *t, size_t j0, size_t n, float *scratch) {
    const size_t mr = most_rows(t), strips = (t->m + mr - 1) / mr;
    const size_t rows = (t->m + strips - 1) / strips;
    float *c = t->c + j0;
    float *beside = t->k > ISO_K_BLOCK ? scratch + far_strip(t->m, t->k) : NULL;
    for (size_t p0 = 0; p0 < t->k; p0 += ISO_K_BLOCK) {
        const size_t k = min_size(t->k - p0, ISO_K_BLOCK), ld = p0 ? n : t->ldc;
        const float *a = t->a + p0 * t->ap;
        float *sums = p0 ? beside : c;
        size_t width = t->ap;
        if (t->m > 1) {
            t->kernels->gemm_pack(scratch, a, t->ai, t->ap, t->m, k, rows);
            a = scratch, width = rows;
        }
        const size_t steps = far_steps(t);
        for (size_t p = 0; p < k; p += steps)
            for (size_t i = 0; i < t->m; i += rows)
                t->kernels->gemm_strip(sums + i * ld, ld, a + i * k + p * width, width,
                                       t->b + (p0 + p) * t->bs + j0, t->bs, ISO_PANEL,
                                       min_size(t->m - i, rows), n, min_size(k - p, steps),
                                       p ? ISO_STRIP_CONTINUE : ISO_STRIP_ASSIGN);
        if (p0) {
            const struct iso_epilogue add = {.alpha = 1.0f, .residual = c, .ldr = t->ldc};
            t->kernels->gemm_epilogue(c, t->ldc, sums, ld, t->m, n, &add);
        }
    }
    finish(t, c, t->ldc, 0, j0, t->m, n);
}

/* So many of m rows go across: whole vectors of them, and a last one if it is full enough, or makes
 * two where the others would have to read rows of B that share few places in L1. */
static size_t rows_across(const struct iso_kernels *kernels, size_t m, size_t ldb) {
    const size_t rest = m % kernels->vector_floats;
    if (kernels->pairs_across && m / kernels->vector_floats % 2 && ldb % ALIASED == 0)
        return m;
    return 8 * rest >= 5 * kernels->vector_floats ? m : m - rest;
}

/* Whether that pays for a product with a transposed B: packing A, and turning and copying C, costs
 * less than packing B. */
static int goes_across(const struct job *t, size_t ldb) {
    return t->m > t->kernels->rows_in_place_bt && rows_across(t->kernels, t->m, ldb) &&
           t->n > ISO_PANEL && t->m * (t->k + 2 * t->n) < t->n * t->k &&
           !(t->k > ISO_K_BLOCK && needs_own_sums(t));
}

/* Floats of scratch: panels of those rows, a strip of the others, and a block of sums, twice. */
static size_t across_floats(const struct iso_kernels *kernels, size_t m, size_t k) {
    const size_t most = iso_round_up(m, ISO_PANEL);
    return (most + kernels->vector_floats) * min_size(k, ISO_K_BLOCK) + 2 * ACROSS_COLUMNS * most;
}

/*
 * Columns j0 .. j0+n of the product with a transposed B, as the transposed product: the rows of A
 * are in the lanes, and B is read where it lies, like the A of gemm_direct. So what is packed is A,
 * and what is turned are the sums. `packed`: A is there from the block before.
 */
static void across_block(const struct job *t, size_t j0, size_t n, float *scratch, int packed) {
    const size_t most = rows_across(t->kernels, t->m, t->bps), rest = t->m - most;
    const size_t wide = iso_round_up(most, t->kernels->vector_floats);
    const size_t rows = direct_rows(t->kernels, wide);
    const size_t mr = t->bps % ALIASED ? rows : min_size(rows, ALIASED_ROWS);
    const int mode = is_far(t->n, t->k) ? ISO_DIRECT_NEXT : 0;
    float *strip = scratch + iso_round_up(most, ISO_PANEL) * min_size(t->k, ISO_K_BLOCK);
    float *sums = strip + rest * min_size(t->k, ISO_K_BLOCK),
          *turned = sums + ACROSS_COLUMNS * wide;
    for (size_t p0 = 0; p0 < t->k; p0 += ISO_K_BLOCK) {
        const size_t k = min_size(t->k - p0, ISO_K_BLOCK);
        const float *a = t->a + p0 * t->ap;
        if (!packed || t->k > ISO_K_BLOCK) {
            t->kernels->gemm_pack(scratch, a, t->ai, t->ap, most, k, ISO_PANEL);
            if (rest)
                t->kernels->gemm_pack(strip, a + most * t->ai, t->ai, t->ap, rest, k, rest);
        }
        for (size_t j = j0; j < j0 + n; j += ACROSS_COLUMNS) {
            const size_t columns = min_size(j0 + n - j, ACROSS_COLUMNS);
            const float *b = t->b + j * t->bps + p0;
            float *c = t->c + j;
            for (size_t i = 0; i < columns; i += mr)
                t->kernels->gemm_direct(sums + i * wide, wide, b + i * t->bps, t->bps, scratch,
                                        ISO_PANEL, k * ISO_PANEL, min_size(columns - i, mr), wide,
                                        k, mode);
            t->kernels->gemm_pack(turned, sums, wide, 1, columns, wide, columns);
            if (t->k <= ISO_K_BLOCK) {
                finish(t, turned, columns, 0, j, most, columns);
            } else {
                const struct iso_epilogue add = {
                    .alpha = 1.0f, .residual = p0 ? c : NULL, .ldr = t->ldc};
                t->kernels->gemm_epilogue(c, t->ldc, turned, columns, most, columns, &add);
            }
            if (rest) {
                const size_t ld = t->k <= ISO_K_BLOCK ? columns : t->ldc;
                float *few = t->k <= ISO_K_BLOCK ? sums : c + most * t->ldc;
                t->kernels->gemm_strip_bt(few, ld, strip, rest, b, t->bps, rest, columns, k,
                                          p0 != 0);
                if (few == sums)
                    finish(t, sums, columns, most, j, rest, columns);
            }
        }
    }
    if (t->k > ISO_K_BLOCK)
        finish(t, t->c + j0, t->ldc, 0, j0, t->m, n);
}

/*
 * A task has its own blocks, mostly the same columns, so that this part of B stays in its cache.
 * When it has done them it takes what the others have not begun: a thread that comes late, or
 * never, holds nobody up.
 */
static void run_blocks(void *arg, size_t task) {
    struct job *t = arg;
    const size_t chunks = (t->n + t->column_chunk - 1) / t->column_chunk;
    const size_t blocks = (t->m + t->row_block - 1) / t->row_block * chunks;
    float *scratch = t->scratch ? t->scratch + task * t->scratch_stride : NULL;
    int packed = 0;
    for (size_t d = 0; d < t->owners; d++) {
        const size_t owner = (task + d) % t->owners;
        for (;;) {
            size_t at = atomic_fetch_add_explicit(&t->taken[owner], 1, memory_order_relaxed);
            at = at * t->owners + owner;
            if (at >= blocks)
                break;
            const size_t i = at / chunks * t->row_block, j = at % chunks * t->column_chunk;
            if (t->across) {
                across_block(t, j, min_size(t->n - j, t->column_chunk), scratch, packed);
                packed = 1;
                continue;
            }
            if (t->far) {
                far_block(t, j, min_size(t->n - j, t->column_chunk), scratch);
                continue;
            }
            block(t, i, min_size(t->m - i, t->row_block), j, min_size(t->n - j, t->column_chunk),
                  scratch);
        }
    }
}

static void run_all(const iso_context *context, struct job *t) {
    atomic_size_t taken[MOST_OWNERS];
    t->owners = min_size(t->tasks, MOST_OWNERS);
    for (size_t i = 0; i < t->owners; i++)
        atomic_init(&taken[i], 0);
    t->taken = taken;
    iso_parallel(context, t->tasks, run_blocks, t);
}

/* A product that needs no scratch and is too small for threads, at once. */
static int run_small(const struct job *t) {
    if (!t->a_direct || t->own_b || t->m > ROW_BLOCK || needs_own_sums(t) ||
        (double)t->m * (double)t->n * (double)t->k >= SMALL_WORK)
        return 0;
    block(t, 0, t->m, 0, t->n, NULL);
    return 1;
}

static void pack_columns(void *arg, size_t task) {
    const struct job *t = arg;
    const size_t panels = (t->n + ISO_PANEL - 1) / ISO_PANEL;
    const size_t first = panels * task / t->tasks, end = panels * (task + 1) / t->tasks;
    if (first < end)
        t->kernels->gemm_pack(t->packed + first * ISO_PANEL * t->k,
                              t->b_source + first * ISO_PANEL * t->b_j, t->b_j, t->b_p,
                              min_size(t->n, end * ISO_PANEL) - first * ISO_PANEL, t->k, ISO_PANEL);
}

/* Columns of a plain B that a task packs and uses up at a time, so that all have as many. A vector
 * beside the tiles takes longer than its share. */
static size_t own_columns(size_t n, size_t tasks) {
    size_t best = ISO_LINEAR_COLUMNS, least = SIZE_MAX;
    for (size_t columns = best; columns <= 2 * COLUMN_BLOCK; columns += ISO_PANEL) {
        const size_t chunks = (n + columns - 1) / columns, each = (chunks + tasks - 1) / tasks;
        const size_t beside = columns % ISO_LINEAR_COLUMNS;
        const size_t time = each * (columns + (beside == ISO_PANEL ? 4 : beside ? 1 : 0));
        if (time <= least)
            best = columns, least = time;
    }
    return best;
}

/* How a product of m x n x k is cut for `threads`; sets the members of the job that say so. `sums`:
 * there is to be scratch for sums. */
static void plan(struct job *t, size_t threads, int sums) {
    const size_t mr = t->kernels->mr;
    size_t work;
    if (threads > 1 &&
        (__builtin_mul_overflow(t->m, t->n, &work) || __builtin_mul_overflow(work, t->k, &work)))
        work = SIZE_MAX;
    t->tasks = threads > 1 && work >= SMALL_WORK ? threads : 1;

    const size_t most = t->own_b ? OWN_ROWS : ROW_BLOCK, row_blocks = (t->m + most - 1) / most;
    t->row_block = iso_round_up((t->m + row_blocks - 1) / row_blocks,
                                t->a_direct ? t->kernels->direct_mr : mr);
    t->column_chunk = t->n;
    if (t->far)
        t->column_chunk = t->m > 4 || t->k > ISO_K_BLOCK ? min_size(t->n, FAR_COLUMNS) : t->n;
    else if (needs_own_sums(t) && !t->across)
        t->column_chunk = COLUMN_BLOCK;
    else if (t->a_direct && t->k > ISO_K_BLOCK) /* the sums of all blocks of k stay in L2 */
        t->column_chunk = min_size(t->n, ISO_L2_FLOATS / 2 / min_size(t->m, ROW_BLOCK));
    else if (t->b_turned && !t->own_b && !t->across && t->k > ISO_K_BLOCK &&
             t->bps % ALIASED == 0 && is_in_memory(t->n, t->k) && (t->m == 1 || t->m > 4))
        t->column_chunk = t->m == 1 ? ISO_PANEL : COLUMNS_BT;
    if (t->tasks > 1 && t->own_b) {
        t->column_chunk = min_size(own_columns(t->n, t->tasks), t->column_chunk);
    } else if (t->tasks > 1 && row_blocks < 4 * t->tasks) {
        const size_t parts = t->far ? 2 : 4; /* of a task; far, wide ones are read faster */
        const size_t chunks = (parts * t->tasks + row_blocks - 1) / row_blocks;
        size_t chunk = iso_round_up((t->n + chunks - 1) / chunks, 4 * ISO_PANEL);
        t->column_chunk = min_size(chunk, t->column_chunk);
    }
    t->column_chunk = iso_round_up(t->column_chunk, ISO_PANEL);
    /* A packed block of A, and sums; a bound that never falls when m, n or k grow. */
    const size_t rows = iso_round_up(min_size(t->m, ROW_BLOCK), mr);
    t->scratch_stride = rows * ((t->a_direct ? 0 : min_size(t->k, ISO_K_BLOCK)) +
                                (sums ? min_size(t->n, COLUMN_BLOCK) : 0));
    if (t->own_b)
        t->scratch_stride += own_floats(t->n, t->k);
    if (t->across)
        t->scratch_stride = across_floats(t->kernels, t->m, t->k);
    if (t->far)
        t->scratch_stride =
            far_strip(t->m, t->k) + (t->k > ISO_K_BLOCK ? t->m * min_size(t->n, FAR_COLUMNS) : 0);
    t->scratch_stride = iso_round_up(t->scratch_stride, ISO_LINE);
}

/* C = epilogue of zeros: alpha or k is 0, so A and B are not read. */
static void finish_zeros(const struct job *t) {
    static const float zeros[COLUMN_BLOCK];
    for (size_t j = 0; j < t->n; j += COLUMN_BLOCK)
        finish(t, zeros, 0, 0, j, t->m, min_size(t->n - j, COLUMN_BLOCK));
}

_Static_assert((int)ISO_UNARY_RELU == (int)ISOBIT_ACT_RELU &&
                   (int)ISO_UNARY_GELU_ERF == (int)ISOBIT_ACT_GELU_ERF &&
                   (int)ISO_UNARY_TANH == (int)ISOBIT_ACT_TANH,
               "kernels number activations alike");

static iso_status check_epilogue(float *c, size_t ldc, size_t m, size_t n,
                                 const struct iso_epilogue *e) {
    if (e->act < ISOBIT_ACT_NONE || e->act > ISOBIT_ACT_TANH)
        return ISOBIT_E_OPTION;
    iso_status status = iso_check_matrix(c, m, n, ldc);
    if (!status && e->residual)
        status = iso_check_matrix(e->residual, m, n, e->ldr);
    if (!status && iso_overlap_partly(c, m, n, ldc, e->residual, e->ldr))
        status = ISOBIT_E_ALIAS;
    if (!status && iso_overlap(c, m, n, ldc, e->bias, 1, n, n))
        status = ISOBIT_E_ALIAS;
    return status;
}

/* ------------------------------------------------------------------------------------- gemm */

static iso_status gemm_options(struct iso_epilogue *e, int *trans_a, int *trans_b,
                               const iso_gemm_options *o) {
    *e = (struct iso_epilogue){.alpha = 1.0f};
    *trans_a = *trans_b = 0;
    if (!o)
        return ISOBIT_OK;
    iso_gemm_options own;
    if (!(o = ISO_OPTIONS(o, own, ldr)))
        return ISOBIT_E_SIZE;
    *e = (struct iso_epilogue){o->alpha, o->beta, o->bias, (int)o->act, o->residual, o->ldr, 0, 0};
    *trans_a = o->trans_a != 0, *trans_b = o->trans_b != 0;
    return ISOBIT_OK;
}

/* Where L1 waits for few lines at a time, and vectors are as wide as a line: so many rows or fewer,
 * but more than four, read a far B in place, and call its rows into L2. With one strip B is read
 * once, and its sums stay in registers. */
static unsigned rows_called(const struct iso_kernels *kernels, size_t n, size_t k, int aliased) {
    if (kernels->vector_floats < ISO_PANEL || !iso_l1_has_few_ways() || !is_far(n, k))
        return 0;
    return kernels->direct_mr - !(aliased || is_in_memory(n, k));
}

/* Most rows of A for which a plain B is read where it lies: packing takes less time for each of
 * them the larger B is, and the more of its rows share few sets of the caches. */
static size_t rows_in_place(const struct iso_kernels *kernels, size_t n, size_t k, int aliased) {
    if (aliased && kernels->rows_crowded && iso_l1_has_few_ways())
        return kernels->rows_crowded;
    const unsigned called = rows_called(kernels, n, k, aliased);
    if (is_in_memory(n, k))
        return called ? called : kernels->rows_memory;
    if (called && aliased)
        return called;
    if (l3_is_slow(kernels)) /* packing pays from four full strips on, or earlier */
        return aliased || is_far(n, k) ? kernels->rows_slow : 4 * kernels->direct_mr - 1;
    if (is_far(n, k)) /* cores with little L1 have slower ways from L3, too */
        return iso_l1_has_few_ways() && kernels->rows_slow ? kernels->rows_slow
                                                           : kernels->rows_large;
    return aliased ? kernels->rows_aliased : kernels->rows_in_place;
}

/* Whether A and B are read where they lie. With columns for each thread none shares what it packs,
 * so a block of B is used up while it is in cache. */
static void choose(struct job *t, int trans_a, int trans_b, size_t ldb, size_t threads) {
    const struct iso_kernels *kernels = t->kernels;
    const int own = t->m <= ROW_BLOCK || (!trans_a && !needs_own_sums(t) &&
                                          (threads == 1 || t->n / threads >= OWN_COLUMNS));
    int in_place;
    if (trans_b) {
        in_place = t->b_turned = own;
        t->across = t->m <= ROW_BLOCK && goes_across(t, ldb);
        t->own_b = in_place && !t->across && t->m > kernels->rows_in_place_bt;
    } else {
        const int aliased = ldb % kernels->aliased == 0;
        in_place = t->m <= rows_in_place(kernels, t->n, t->k, aliased) ||
                   t->n * t->k <= kernels->floats_in_place;
        const int apart =
            t->m > 4 && t->m <= kernels->rows_apart && is_apart(kernels, t->n, t->k, aliased);
        t->far = t->m <= far_rows(t->k) && !needs_own_sums(t) &&
                 (apart ||
                  ((in_place || trans_a) && is_far(t->n, t->k) && (t->m == 1 || t->n >= FAR_RUN)));
        t->called =
            in_place && !trans_a && t->m > 4 && t->m <= rows_called(kernels, t->n, t->k, aliased);
        t->far &= !t->called;
        t->own_b = !in_place && !t->far && own;
        in_place |= t->far | t->own_b;
    }
    t->a_direct = !trans_a && (!t->b_turned || t->own_b);
    t->columns = in_place ? 0 : iso_round_up(min_size(t->n, B_BLOCK), ISO_PANEL);
}

/* Scratch of a product: that of the tasks, then the packed columns of B. */
static iso_status gemm_scratch(size_t *floats, struct job *t, size_t threads, int sums) {
    size_t all_n = t->n, b;
    if (t->columns)
        t->n = min_size(t->n, t->columns);
    plan(t, threads, sums);
    t->n = all_n;
    if (iso_mul_overflows(&b, t->columns, t->k) ||
        iso_mul_overflows(floats, t->scratch_stride, t->tasks) ||
        __builtin_add_overflow(*floats, b, floats))
        return ISOBIT_E_OVERFLOW;
    return ISOBIT_OK;
}

/* *floats becomes the scratch of this product too, if that is more. */
static iso_status promise_also(size_t *floats, struct job t, size_t threads, int sums) {
    size_t these;
    const iso_status status = gemm_scratch(&these, &t, threads, sums);
    if (!status && these > *floats)
        *floats = these;
    return status;
}

/* The scratch that callers are told to bring, before C and ldb are known: room for A, B and sums,
 * or for few rows with the same B, since who asks for many may call with fewer. */
static iso_status gemm_promise(size_t *floats, struct job t, int trans_a, int trans_b,
                               size_t threads) {
    const int sums = t.e->beta != 0.0f || t.e->residual;
    struct job few = t;
    iso_status status = ISOBIT_OK;
    size_t extent;
    if (iso_mul_overflows(&extent, t.m, t.n) || iso_mul_overflows(&extent, t.m, t.k) ||
        iso_mul_overflows(&extent, t.n, t.k))
        return ISOBIT_E_OVERFLOW; /* matrices that nobody has */
    /* As if every thread shared what is packed, which takes the most. */
    choose(&t, trans_a, trans_b, 0, SIZE_MAX);
    *floats = 0;
    t.far = t.across = t.own_b = 0;
    t.a_direct = !trans_a && !t.b_turned;
    if (!t.b_turned && (!t.a_direct || t.columns || sums))
        status = promise_also(floats, t, threads, sums);
    few.columns = 0, few.b_turned = trans_b, few.far = few.across = 0;
    few.m = min_size(t.m, ROW_BLOCK), few.own_b = 1, few.a_direct = !trans_a;
    if (!status && (trans_b || (t.m > rows_in_place(t.kernels, t.n, t.k, 1) &&
                                t.n > t.kernels->floats_in_place / t.k)))
        status = promise_also(floats, few, threads, sums);
    few.own_b = 0;
    if (trans_b) {
        few.a_direct = 0, few.across = 1;
        if (!status)
            status = promise_also(floats, few, threads, sums);
        few.across = 0, few.m = min_size(t.m, t.kernels->rows_in_place_bt);
        if (!status)
            status = promise_also(floats, few, threads, sums);
    } else if (is_far(t.n, t.k) || is_apart(t.kernels, t.n, t.k, 1)) {
        few.m = far_rows(t.k), few.far = 1;
        if (!status)
            status = promise_also(floats, few, threads, 0);
    }
    return status;
}

/* Refuses a workspace that is smaller than promised, also where less would do. */
static iso_status check_workspace(const iso_context *context, size_t floats) {
    return context && context->workspace && context->workspace_bytes < iso_scratch_bytes(floats)
               ? ISOBIT_E_WORKSPACE
               : ISOBIT_OK;
}

iso_status iso_gemm_f32_workspace_bytes(size_t *bytes, size_t m, size_t n, size_t k,
                                        const iso_gemm_options *options,
                                        const iso_context *context) {
    struct iso_epilogue e;
    struct job t = {.m = m, .n = n, .k = k, .e = &e};
    int trans_a, trans_b;
    size_t floats = 0;
    if (!bytes)
        return ISOBIT_E_NULL;
    iso_status status = gemm_options(&e, &trans_a, &trans_b, options);
    if (!status)
        status = iso_context_kernels(&t.kernels, context);
    if (!status && m && n && k && e.alpha != 0.0f)
        status = gemm_promise(&floats, t, trans_a, trans_b, iso_context_threads(context));
    if (!status)
        *bytes = iso_scratch_bytes(floats);
    return status;
}

#define TINY_WORKSPACE 65536 /* bytes: more than is promised for any tiny product */
#define TINY 64 /* rows, columns and products, where each instruction around the kernel counts */

/* Where a matrix ends. */
static uintptr_t end_of(const float *p, size_t rows, size_t columns, size_t ld) {
    return (uintptr_t)(p + (rows - 1) * ld + columns);
}

static int is_plain(const iso_gemm_options *o) {
    return !o || (o->size == sizeof *o && o->alpha == 1.0f && o->beta == 0.0f &&
                  !(o->trans_a | (int)o->act) && !o->bias && !o->residual);
}

static void tiny_product(const struct iso_kernels *kernels, float *c, size_t ldc, const float *a,
                         size_t lda, const float *b, size_t bs, size_t bps, size_t m, size_t n,
                         size_t k) {
    const size_t mr = direct_rows(kernels, n);
    for (size_t i = 0; i < m;) { /* even heights at the end, 20 rows as 8 + 6 + 6: all is in L1 */
        const size_t left = m - i;
        const size_t rows = left <= mr ? left : left < 2 * mr ? (left + 1) / 2 : mr;
        kernels->gemm_direct(c + i * ldc, ldc, a + i * lda, lda, b, bs, bps, rows, n, k, 0);
        i += rows;
    }
}

/* With a transposed B, whose panels fit the stack: apart, so that others do not set it up. */
static __attribute__((noinline)) void tiny_product_bt(const struct iso_kernels *kernels, float *c,
                                                      size_t ldc, const float *a, size_t lda,
                                                      const float *b, size_t ldb, size_t m,
                                                      size_t n, size_t k) {
    float panels[LOCAL_SCRATCH] __attribute__((aligned(64)));
    kernels->gemm_pack(panels, b, ldb, 1, n, k, ISO_PANEL);
    tiny_product(kernels, c, ldc, a, lda, panels, ISO_PANEL, k * ISO_PANEL, m, n, k);
}

/* Whether the caller's workspace may be smaller than a tiny product's promise. */
static int maybe_refused(const iso_context *context) {
    return context && context->workspace && context->workspace_bytes < TINY_WORKSPACE;
}

/* A plain product of tiny matrices, if nothing about it is unusual; else 0, and nothing is done. In
 * line, although there are two callers: one of them does not count. */
static inline __attribute__((always_inline)) int run_tiny(float *c, size_t ldc, const float *a,
                                                          size_t lda, const float *b, size_t ldb,
                                                          size_t m, size_t n, size_t k, int trans_b,
                                                          const iso_context *context) {
    const struct iso_kernels *kernels;
    const size_t b_rows = trans_b ? n : k, b_columns = trans_b ? k : n;
    if (m - 1 >= TINY || n - 1 >= TINY || k - 1 >= TINY || (lda | ldb | ldc) >> 24 || lda < k ||
        ldb < b_columns || ldc < n || !a || !b || !c)
        return 0;
    const uintptr_t c_end = end_of(c, m, n, ldc);
    if ((end_of(a, m, k, lda) > (uintptr_t)c && (uintptr_t)a < c_end) ||
        (end_of(b, b_rows, b_columns, ldb) > (uintptr_t)c && (uintptr_t)b < c_end) ||
        iso_context_kernels(&kernels, context) ||
        (trans_b ? iso_round_up(n, ISO_PANEL) * k > LOCAL_SCRATCH || maybe_refused(context)
                 : n * k > kernels->floats_in_place))
        return 0;
    const size_t last = n & (kernels->vector_floats - 1);
    if (is_narrow(kernels, m, last, k, last < n))
        return 0;
    if (trans_b)
        tiny_product_bt(kernels, c, ldc, a, lda, b, ldb, m, n, k);
    else
        tiny_product(kernels, c, ldc, a, lda, b, ldb, ISO_PANEL, m, n, k);
    return 1;
}

/* Apart from iso_gemm_f32, so that tiny products do not set up its stack. */
static __attribute__((noinline)) iso_status
run_gemm(float *c, size_t ldc, const float *a, size_t lda, const float *b, size_t ldb, size_t m,
         size_t n, size_t k, const iso_gemm_options *options, const iso_context *context) {
    struct iso_epilogue e;
    int trans_a, trans_b;
    iso_status status = gemm_options(&e, &trans_a, &trans_b, options);
    if (!status)
        status = check_epilogue(c, ldc, m, n, &e);
    if (status)
        return status;
    struct job t = {.c = c, .ldc = ldc, .m = m, .n = n, .k = k, .e = &e};
    status = iso_context_kernels(&t.kernels, context);
    if (status || m == 0 || n == 0)
        return status;
    if (k == 0 || e.alpha == 0.0f) {
        e.alpha = 1.0f;
        finish_zeros(&t);
        return ISOBIT_OK;
    }
    const size_t a_rows = trans_a ? k : m, a_columns = trans_a ? m : k;
    const size_t b_rows = trans_b ? n : k, b_columns = trans_b ? k : n;
    if ((status = iso_check_matrix(a, a_rows, a_columns, lda)) ||
        (status = iso_check_matrix(b, b_rows, b_columns, ldb)))
        return status;
    if (iso_overlap(c, m, n, ldc, a, a_rows, a_columns, lda) ||
        iso_overlap(c, m, n, ldc, b, b_rows, b_columns, ldb))
        return ISOBIT_E_ALIAS;

    choose(&t, trans_a, trans_b, ldb, iso_context_threads(context));
    t.a = a, t.ai = trans_a ? 1 : lda, t.ap = trans_a ? lda : 1;
    t.b = b, t.bs = trans_b ? 1 : ldb, t.bps = trans_b ? ldb : ISO_PANEL;
    size_t floats;
    if (context && context->workspace &&
        ((status = gemm_promise(&floats, t, trans_a, trans_b, iso_context_threads(context))) ||
         (status = check_workspace(context, floats))))
        return status;
    if (!t.columns && run_small(&t))
        return ISOBIT_OK;

    float local[LOCAL_SCRATCH] __attribute__((aligned(64))), *scratch = local;
    void *owned = NULL;
    status = gemm_scratch(&floats, &t, iso_context_threads(context), needs_own_sums(&t));
    if (!status && (floats > LOCAL_SCRATCH || (context && context->workspace)))
        status = iso_scratch(&scratch, &owned, context, floats);
    if (status)
        return status;
    t.scratch = scratch;
    t.b_j = trans_b ? ldb : 1, t.b_p = trans_b ? 1 : ldb;
    const size_t columns = t.columns;
    if (!columns)
        run_all(context, &t);
    for (size_t j = 0; columns && j < n; j += columns) {
        struct job part = t;
        struct iso_epilogue pe = e;
        part.packed = scratch + t.tasks * t.scratch_stride;
        part.b_source = b + j * t.b_j;
        part.n = min_size(n - j, columns);
        iso_parallel(context, part.tasks, pack_columns, &part);
        part.b = part.packed, part.bs = ISO_PANEL, part.bps = k * ISO_PANEL;
        part.c = c + j;
        pe.bias = e.bias ? e.bias + j : NULL;
        pe.residual = e.residual ? e.residual + j : NULL;
        part.e = &pe;
        run_all(context, &part);
    }
    free(owned);
    return ISOBIT_OK;
}

/* The way of a product and its tasks, in words: what choose and plan make of the call. */
static void say_way(char *text, size_t bytes, float *c, size_t ldc, size_t ldb, size_t m, size_t n,
                    size_t k, const iso_gemm_options *options, const iso_context *context) {
    struct iso_epilogue e;
    int trans_a, trans_b;
    struct job t = {.c = c, .ldc = ldc, .m = m, .n = n, .k = k, .e = &e};
    const size_t threads = iso_context_threads(context);
    size_t floats;
    if (gemm_options(&e, &trans_a, &trans_b, options) || iso_context_kernels(&t.kernels, context))
        return;
    if (m == 0 || n == 0 || k == 0 || e.alpha == 0.0f) {
        snprintf(text, bytes, "no product");
        return;
    }
    choose(&t, trans_a, trans_b, ldb, threads);
    if (gemm_scratch(&floats, &t, threads, needs_own_sums(&t)))
        return;
    const char *way = "B in place";
    if (t.columns)
        way = "packs B for all tasks";
    else if (t.own_b)
        way = "packs B by blocks";
    else if (t.across)
        way = "transposed product that packs A";
    else if (t.b_turned)
        way = "transposed B in registers";
    else if (t.far)
        way = "along rows of B";
    else if (t.called)
        way = "B in place and prefetched";
    snprintf(text, bytes, "%s; tasks %zu", way, t.tasks);
}

/* iso_gemm_f32 with a line about it. */
static __attribute__((cold, noinline)) iso_status
gemm_with_line(float *c, size_t ldc, const float *a, size_t lda, const float *b, size_t ldb,
               size_t m, size_t n, size_t k, const iso_gemm_options *options,
               const iso_context *context) {
    static const iso_gemm_options none = {.alpha = 1.0f};
    iso_gemm_options own;
    const iso_gemm_options *o = ISO_OPTIONS_OR(options, own, ldr, &none);
    const uint64_t begin = iso_verbose_clock();
    const int tiny = is_plain(options) && run_tiny(c, ldc, a, lda, b, ldb, m, n, k,
                                                   options && options->trans_b, context);
    const iso_status status =
        tiny ? ISOBIT_OK : run_gemm(c, ldc, a, lda, b, ldb, m, n, k, options, context);
    if (!begin)
        return status;
    const uint64_t end = iso_verbose_clock();
    char way[80] = "tiny";
    if (!tiny && !status)
        say_way(way, sizeof way, c, ldc, ldb, m, n, k, options, context);
    iso_verbose_end(begin, end, "gemm_f32", context, status, way,
                    "m%zun%zuk%zu:%c%c:lda%zu:ldb%zu:ldc%zu%s%s%s%s%s", m, n, k,
                    o->trans_a ? 't' : 'n', o->trans_b ? 't' : 'n', lda, ldb, ldc,
                    o->alpha != 1.0f ? ":alpha" : "", o->beta != 0.0f ? ":beta" : "",
                    o->bias ? ":bias" : "", iso_verbose_act((int)o->act),
                    o->residual ? ":residual" : "");
    return status;
}

iso_status iso_gemm_f32(float *c, size_t ldc, const float *a, size_t lda, const float *b,
                        size_t ldb, size_t m, size_t n, size_t k, const iso_gemm_options *options,
                        const iso_context *context) {
    if (!iso_verbose_is_off())
        return gemm_with_line(c, ldc, a, lda, b, ldb, m, n, k, options, context);
    if (is_plain(options) &&
        run_tiny(c, ldc, a, lda, b, ldb, m, n, k, options && options->trans_b, context))
        return ISOBIT_OK;
    return run_gemm(c, ldc, a, lda, b, ldb, m, n, k, options, context);
}

/* --------------------------------------------------------------------------- packed weights */

iso_status iso_pack_f32_bytes(size_t *bytes, size_t n, size_t k) {
    size_t floats;
    if (!bytes)
        return ISOBIT_E_NULL;
    if (n > SIZE_MAX - ISO_PANEL || iso_mul_overflows(&floats, iso_round_up(n, ISO_PANEL), k))
        return ISOBIT_E_OVERFLOW;
    *bytes = floats * sizeof(float);
    return ISOBIT_OK;
}

static iso_status pack_call(iso_packed *p, void *packed, size_t packed_bytes, const float *w,
                            size_t ldw, size_t n, size_t k, int trans_w,
                            const iso_context *context) {
    size_t bytes;
    if (!p)
        return ISOBIT_E_NULL;
    iso_status status = iso_pack_f32_bytes(&bytes, n, k);
    if (!status)
        status = iso_check_matrix(w, trans_w ? k : n, trans_w ? n : k, ldw);
    if (status)
        return status;
    if (bytes && !packed)
        return ISOBIT_E_NULL;
    if ((uintptr_t)packed % 64)
        return ISOBIT_E_ALIGN;
    if (packed_bytes < bytes)
        return ISOBIT_E_WORKSPACE;
    if (bytes && iso_overlap(packed, 1, bytes / sizeof(float), bytes / sizeof(float), w,
                             trans_w ? k : n, trans_w ? n : k, ldw))
        return ISOBIT_E_ALIAS;
    struct job t = {.n = n, .k = k, .packed = packed, .b_source = w};
    status = iso_context_kernels(&t.kernels, context);
    if (status)
        return status;
    if (n && k) {
        t.b_j = trans_w ? 1 : ldw, t.b_p = trans_w ? ldw : 1;
        t.tasks = iso_context_threads(context);
        iso_parallel(context, t.tasks, pack_columns, &t);
    }
    *p = (iso_packed){packed, n, k};
    return ISOBIT_OK;
}

iso_status iso_pack_f32(iso_packed *p, void *packed, size_t packed_bytes, const float *w,
                        size_t ldw, size_t n, size_t k, int trans_w, const iso_context *context) {
    const uint64_t begin = iso_verbose_begin();
    const iso_status status = pack_call(p, packed, packed_bytes, w, ldw, n, k, trans_w, context);
    if (begin)
        iso_verbose_end(begin, iso_verbose_clock(), "pack_f32", context, status, NULL,
                        "n%zuk%zu:%c:ldw%zu", n, k, trans_w ? 't' : 'n', ldw);
    return status;
}

iso_status iso_linear_f32_workspace_bytes(size_t *bytes, const iso_packed *w, size_t m,
                                          const iso_context *context) {
    static const struct iso_epilogue e = {.alpha = 1.0f};
    if (!bytes || !w)
        return ISOBIT_E_NULL;
    struct job t = {.m = m, .n = w->n, .k = w->k, .e = &e, .a_direct = 1};
    size_t floats = 0;
    iso_status status = iso_context_kernels(&t.kernels, context);
    if (!status && m && w->n && w->k) {
        plan(&t, iso_context_threads(context), 1);
        if (iso_mul_overflows(&floats, t.scratch_stride, t.tasks))
            return ISOBIT_E_OVERFLOW;
    }
    if (!status)
        *bytes = iso_scratch_bytes(floats);
    return status;
}

/* *t becomes the job, as far as it gets. */
static iso_status linear_call(struct job *t, float *y, size_t ldy, const float *x, size_t ldx,
                              const iso_packed *w, size_t m, const iso_linear_options *options,
                              const iso_context *context) {
    struct iso_epilogue e = {.alpha = 1.0f};
    iso_linear_options own;
    if (!w)
        return ISOBIT_E_NULL;
    if (options) {
        if (!(options = ISO_OPTIONS(options, own, ldr)))
            return ISOBIT_E_SIZE;
        e.bias = options->bias, e.act = (int)options->act;
        e.residual = options->residual, e.ldr = options->ldr;
    }
    const size_t n = w->n, k = w->k;
    *t = (struct job){.c = y, .ldc = ldy, .m = m, .n = n, .k = k, .e = &e, .a_direct = 1};
    iso_status status = check_epilogue(y, ldy, m, n, &e);
    if (!status)
        status = iso_context_kernels(&t->kernels, context);
    if (status || m == 0 || n == 0)
        return status;
    if ((status = iso_check_matrix(x, m, k, ldx)) || (status = iso_check_matrix(w->data, k, n, n)))
        return status;
    if (iso_overlap(y, m, n, ldy, x, m, k, ldx))
        return ISOBIT_E_ALIAS;
    if (k == 0) {
        finish_zeros(t);
        return ISOBIT_OK;
    }
    t->a = x, t->ai = ldx, t->ap = 1;
    t->b = w->data, t->bs = ISO_PANEL, t->bps = k * ISO_PANEL;
    size_t floats;
    void *owned;
    if (context && context->workspace) {
        plan(t, iso_context_threads(context), 1);
        if (iso_mul_overflows(&floats, t->scratch_stride, t->tasks))
            return ISOBIT_E_OVERFLOW;
        if ((status = check_workspace(context, floats)))
            return status;
    }
    if (run_small(t))
        return ISOBIT_OK;
    plan(t, iso_context_threads(context), needs_own_sums(t));
    if (iso_mul_overflows(&floats, t->scratch_stride, t->tasks))
        return ISOBIT_E_OVERFLOW;
    status = iso_scratch(&t->scratch, &owned, context, floats);
    if (status)
        return status;
    run_all(context, t);
    free(owned);
    return ISOBIT_OK;
}

iso_status iso_linear_f32(float *y, size_t ldy, const float *x, size_t ldx, const iso_packed *w,
                          size_t m, const iso_linear_options *options, const iso_context *context) {
    struct job t;
    t.tasks = 0;
    const uint64_t begin = iso_verbose_begin();
    const iso_status status = linear_call(&t, y, ldy, x, ldx, w, m, options, context);
    if (begin) {
        static const iso_linear_options none;
        iso_linear_options own;
        const iso_linear_options *o = ISO_OPTIONS_OR(options, own, ldr, &none);
        const uint64_t end = iso_verbose_clock();
        char way[80] = "no product";
        if (w && w->n && w->k && m) /* small ones set no tasks */
            snprintf(way, sizeof way, "packed B; tasks %zu", t.tasks ? t.tasks : 1);
        iso_verbose_end(begin, end, "linear_f32", context, status, way,
                        "m%zun%zuk%zu:ldx%zu:ldy%zu%s%s%s", m, w ? w->n : 0, w ? w->k : 0, ldx, ldy,
                        o->bias ? ":bias" : "", iso_verbose_act((int)o->act),
                        o->residual ? ":residual" : "");
    }
    return status;
}

/* ------------------------------------------------------------------------------------- gemv */

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

static void run_gemv(void *arg, size_t task) {
    const struct gemv_job *t = arg;
    const size_t panels = (t->n + ISO_PANEL - 1) / ISO_PANEL;
    size_t j = panels * task / t->tasks * ISO_PANEL;
    const size_t end = min_size(t->n, panels * (task + 1) / t->tasks * ISO_PANEL);
    if (j < end)
        t->kernels->gemv(t->y + j, t->w + (t->layout == ISO_GEMV_COLUMNS ? j : j * t->ldw), t->ldw,
                         t->x, end - j, t->k, t->layout,
                         t->levels ? t->levels + task * t->levels_floats : NULL);
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
    t->layout = trans_w                  ? ISO_GEMV_COLUMNS
                : l3_is_slow(t->kernels) ? ISO_GEMV_ABREAST
                                         : ISO_GEMV_ROWS;
    t->tasks = n * k / n == k && n * k < SMALL_WORK / 4 ? 1 : iso_context_threads(context);
    void *owned = NULL;
    if (trans_w && iso_gemv_runs(n, k)) { /* where there is no memory for it levels is NULL */
        t->levels_floats = iso_round_up(ISO_GEMV_FLOATS(n), ISO_LINE);
        (void)iso_scratch(&t->levels, &owned, context, t->tasks * t->levels_floats);
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
                     t.layout == ISO_GEMV_ROWS      ? "dot products of rows"
                     : t.layout == ISO_GEMV_ABREAST ? "dot products of several rows at a time"
                     : t.has_levels                 ? "adds up rows with scratch"
                                                    : "adds up rows",
                     t.tasks);
        iso_verbose_end(begin, end, "gemv_f32", context, status, way, "n%zuk%zu:%c:ldw%zu", n, k,
                        trans_w ? 't' : 'n', ldw);
    }
    return status;
}
