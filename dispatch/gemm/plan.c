/* SPDX-License-Identifier: MIT */
#include "plan.h"

#include "../check.h"

#define VALUES(...)                                                                                \
    { __VA_ARGS__ }
static const struct iso_gemm_tuning tunings[ISO_ISA_COUNT] = {
#define CONSTANT(...)
#if defined(__x86_64__)
#define TUNING(name, avx512, ...) .name = VALUES avx512,
    [ISO_ISA_avx512] =
        {
#include "tuning.def"
        },
#undef TUNING
#define TUNING(name, avx512, avx2, ...) .name = VALUES avx2,
    [ISO_ISA_avx2] =
        {
#include "tuning.def"
        },
#undef TUNING
#elif defined(__aarch64__)
#define TUNING(name, avx512, avx2, neon, ...) .name = {neon, neon, neon},
    [ISO_ISA_neon] =
        {
#include "tuning.def"
        },
#undef TUNING
#endif
#define TUNING(name, avx512, avx2, neon, scalar, ...) .name = {scalar, scalar, scalar},
    [ISO_ISA_scalar] =
        {
#include "tuning.def"
        },
#undef TUNING
#undef CONSTANT
};

struct iso_gemm_machine iso_gemm_machine_of(const struct iso_kernels *kernels,
                                            enum iso_gemm_class class) {
    return (struct iso_gemm_machine){kernels, &tunings[kernels->isa], class};
}

/* Cores with much L2 have, as a rule, a slow L3: servers of Intel read it at a third of what Zen 5
 * does. L1 caches of 32 KiB have 8 ways, larger ones 12, and few misses at a time. */
struct iso_gemm_machine iso_gemm_this_machine(const struct iso_kernels *kernels) {
    return iso_gemm_machine_of(kernels, iso_l3_is_slow()                 ? ISO_GEMM_SERVER
                                        : iso_l1_has_low_associativity() ? ISO_GEMM_SMALL_L1
                                                                         : ISO_GEMM_OTHER);
}

/* ------------------------------------------------------------------------ where B comes from */

static int is_far(const struct iso_gemm_machine *machine, size_t n, size_t k) {
    return n > TUNED(machine, near_floats) / k;
}
static int is_in_memory(size_t n, size_t k) { return n > ISO_GEMM_MEMORY_FLOATS / k; }

enum iso_gemm_level iso_gemm_level_of_b(const struct iso_gemm_shape *s,
                                        const struct iso_gemm_machine *machine) {
    return is_in_memory(s->n, s->k)      ? ISO_GEMM_MEMORY
           : is_far(machine, s->n, s->k) ? ISO_GEMM_L3
                                         : ISO_GEMM_NEAR;
}

/* Whether its rows map to few sets of the caches. */
static int is_aliased(const struct iso_gemm_shape *s, const struct iso_gemm_machine *machine) {
    return s->ldb % machine->kernels->aliased == 0;
}

static size_t rows_in_place(const struct iso_gemm_machine *machine, enum iso_gemm_level level,
                            int aliased) {
    if (level == ISO_GEMM_NEAR)
        return aliased ? TUNED(machine, rows_near_aliased) : TUNED(machine, rows_near);
    const size_t rows =
        level == ISO_GEMM_L3 ? TUNED(machine, rows_l3) : TUNED(machine, rows_memory);
    return aliased ? iso_min_size(rows, TUNED(machine, rows_aliased)) : rows;
}

size_t iso_gemm_rows_in_place(const struct iso_gemm_shape *s,
                              const struct iso_gemm_machine *machine) {
    return s->trans_b
               ? machine->kernels->rows_in_place_bt
               : rows_in_place(machine, iso_gemm_level_of_b(s, machine), is_aliased(s, machine));
}

/* ------------------------------------------------------------------------------------ the way */

/* Where L1 has few misses at a time, and vectors are as wide as a line: one strip of more than four
 * rows reads a B from beyond L2 in place, once, prefetches its rows into L2, and has its sums in
 * registers. */
static int is_prefetched(const struct iso_gemm_shape *s, const struct iso_gemm_machine *machine,
                         int aliased) {
    const size_t most = machine->kernels->direct_mr;
    return TUNED(machine, prefetched) && is_far(machine, s->n, s->k) && !s->trans_a &&
           s->m > ISO_GEMM_FEW_ROWS &&
           s->m <= (aliased || is_in_memory(s->n, s->k) ? most : most - 1);
}

static size_t stream_rows(const struct iso_gemm_machine *machine, size_t k) {
    return k > ISO_K_BLOCK ? TUNED(machine, stream_rows_long) : ISO_GEMM_STREAM_ROWS;
}

/* Tiles may wait even for a smaller B, if its rows alias in L1 and L2, with a stride that the
 * hardware does not prefetch: where L3 is slow, and vectors of 32 bytes on Zen 5. */
static int is_strided(const struct iso_gemm_machine *machine, size_t n, size_t k, int aliased) {
    return aliased && TUNED(machine, rows_strided) && n >= ISO_GEMM_STRIDED_RUN &&
           n < 4 * ISO_GEMM_STRIDED_RUN && n > ISO_L2_FLOATS / k;
}

/* Tiles would go down the columns of a B from beyond L2, a few lines of each of its rows at a time,
 * at a third of what memory gives. */
static int streams(const struct iso_gemm_shape *s, const struct iso_gemm_machine *machine,
                   int in_place, int aliased) {
    if (s->m > stream_rows(machine, s->k) || (s->own_sums && s->m > 1))
        return 0;
    if (s->m > ISO_GEMM_FEW_ROWS && s->m <= TUNED(machine, rows_strided) &&
        is_strided(machine, s->n, s->k, aliased))
        return 1;
    if (s->m == 1)
        return s->n > ISO_L2_FLOATS / s->k;
    return (in_place || s->trans_a) && is_far(machine, s->n, s->k) &&
           s->n >= TUNED(machine, stream_run) &&
           (s->m > ISO_GEMM_FEW_ROWS || s->n > ISO_GEMM_FEW_FLOATS / s->k);
}

static enum iso_gemm_way row_major_way(const struct iso_gemm_shape *s,
                                       const struct iso_gemm_machine *machine, int own) {
    const int aliased = is_aliased(s, machine);
    const int in_place = s->m <= iso_gemm_rows_in_place(s, machine) ||
                         s->n * s->k <= TUNED(machine, floats_in_place);
    if (in_place && is_prefetched(s, machine, aliased))
        return ISO_GEMM_PREFETCH;
    if (streams(s, machine, in_place, aliased))
        return ISO_GEMM_STREAMS;
    return in_place ? ISO_GEMM_IN_PLACE : own ? ISO_GEMM_PACK : ISO_GEMM_PACK_SHARED;
}

/* Whole vectors of rows, and a last one if it is full enough, or makes two where the others would
 * have to read rows of B that alias in L1. */
size_t iso_gemm_rows_in_lanes(const struct iso_kernels *kernels, size_t m, size_t ldb) {
    const size_t rest = m % kernels->vector_floats;
    if (kernels->pairs_across && m / kernels->vector_floats % 2 && ldb % ISO_GEMM_ALIASED_BT == 0)
        return m;
    return 8 * rest >= 5 * kernels->vector_floats ? m : m - rest;
}

/* Packing A, and transposing and copying C, costs less than packing B. */
static int transposes_c(const struct iso_gemm_shape *s, const struct iso_kernels *kernels) {
    return s->m > kernels->rows_in_place_bt && s->m <= ISO_GEMM_ROW_BLOCK &&
           iso_gemm_rows_in_lanes(kernels, s->m, s->ldb) && s->n > ISO_PANEL &&
           s->m * (s->k + 2 * s->n) < s->n * s->k && !(s->k > ISO_K_BLOCK && s->own_sums);
}

/* Rows, at most, that dequantise B in registers. */
static size_t rows_q(const struct iso_gemm_shape *s, const struct iso_gemm_machine *machine) {
    return s->q == 4 ? TUNED(machine, rows_q4) : TUNED(machine, rows_q8);
}

/* With columns for each thread none shares what it packs, so a block of B is used up while it is in
 * cache. */
static enum iso_gemm_way way_of(const struct iso_gemm_shape *s,
                                const struct iso_gemm_machine *machine) {
    const int own = s->m <= ISO_GEMM_ROW_BLOCK ||
                    (!s->trans_a && !(s->own_sums && s->k > ISO_K_BLOCK) &&
                     (s->threads == 1 || s->n / s->threads >= ISO_GEMM_OWN_COLUMNS));
    if (s->b16)
        return ISO_GEMM_B16;
    if (s->w16)
        return s->m <= TUNED(machine, rows_w16) ? ISO_GEMM_W16 : ISO_GEMM_WIDEN;
    if (s->q)
        return s->m <= rows_q(s, machine) ? ISO_GEMM_Q : ISO_GEMM_WIDEN;
    if (s->panels)
        return ISO_GEMM_PANELS;
    if (!s->trans_b)
        return row_major_way(s, machine, own);
    if (!own)
        return ISO_GEMM_PACK_SHARED;
    if (transposes_c(s, machine->kernels))
        return ISO_GEMM_TRANSPOSED_C;
    return s->m > machine->kernels->rows_in_place_bt ? ISO_GEMM_PACK : ISO_GEMM_TRANSPOSED_B;
}

static int reads_a_in_place(enum iso_gemm_way way, int trans_a) {
    return !trans_a && way != ISO_GEMM_TRANSPOSED_B && way != ISO_GEMM_TRANSPOSED_C &&
           way != ISO_GEMM_B16;
}

/* ------------------------------------------------------------------------- scratch and blocks */

static int has_own_b(enum iso_gemm_way way) {
    return way == ISO_GEMM_PACK || way == ISO_GEMM_WIDEN;
}

/* Whether own sums of so many steps are done with each strip. */
static int ends_with_strip(enum iso_gemm_way way, size_t k) {
    return k <= ISO_K_BLOCK && way != ISO_GEMM_B16 && way != ISO_GEMM_TRANSPOSED_C;
}

static size_t sums_floats(enum iso_gemm_way way, const struct iso_kernels *kernels, size_t rows,
                          size_t n, size_t k) {
    const size_t mr = kernels->mr > kernels->direct_mr ? kernels->mr : kernels->direct_mr;
    return ends_with_strip(way, k)
               ? iso_min_size(rows, mr) * iso_min_size(n, ISO_GEMM_STRIP_COLUMNS)
               : rows * iso_min_size(n, ISO_GEMM_COLUMN_BLOCK);
}

size_t iso_gemm_own_floats(enum iso_gemm_way way, size_t n, size_t k) {
    const size_t most = way == ISO_GEMM_WIDEN ? ISO_GEMM_PART_COLUMNS : ISO_GEMM_COLUMN_BLOCK;
    return has_own_b(way)
               ? iso_round_up(iso_min_size(n, most), ISO_PANEL) * iso_min_size(k, ISO_K_BLOCK)
               : 0;
}

size_t iso_gemm_stream_floats(size_t m, size_t k) {
    return m > 1 ? ISO_GEMM_STREAM_ROWS * 5 / 4 * iso_min_size(k, ISO_K_BLOCK) : 0;
}

/* Scratch of a task: a bound that never falls when m, n or k grow. */
static size_t task_floats(enum iso_gemm_way way, const struct iso_kernels *kernels, size_t m,
                          size_t n, size_t k, int a_in_place, int sums) {
    const size_t steps = iso_min_size(k, ISO_K_BLOCK);
    size_t floats;
    if (way == ISO_GEMM_TRANSPOSED_C) { /* panels and a strip of A, sums twice */
        const size_t most = iso_round_up(m, ISO_PANEL);
        floats = (most + kernels->vector_floats) * steps + 2 * ISO_GEMM_PART_COLUMNS * most;
    } else if (way == ISO_GEMM_STREAMS) { /* a strip of A, own sums, sums of a second block of k */
        floats = iso_gemm_stream_floats(m, k) +
                 (sums ? iso_min_size(n, ISO_GEMM_STREAM_FLOATS) : 0) +
                 (k > ISO_K_BLOCK ? iso_min_size(m * n, ISO_GEMM_STREAM_FLOATS) : 0);
    } else { /* a packed block of A, sums, a packed block of B */
        const size_t rows = iso_round_up(iso_min_size(m, ISO_GEMM_ROW_BLOCK), kernels->mr);
        const size_t of_a = way == ISO_GEMM_B16 ? iso_gemm_b16_ld(k) / 2 : a_in_place ? 0 : steps;
        floats = rows * of_a + (sums ? sums_floats(way, kernels, rows, n, k) : 0);
        floats += iso_gemm_own_floats(way, n, k);
    }
    return iso_round_up(floats, ISO_LINE);
}

/* Too small for threads. One row waits for B and takes as long as two. */
static int is_small(size_t m, size_t n, size_t k) {
    size_t work;
    return !__builtin_mul_overflow(m == 1 ? 2 : m, n, &work) &&
           !__builtin_mul_overflow(work, k, &work) && work < ISO_GEMM_SMALL_WORK;
}

static size_t tasks_of(size_t m, size_t n, size_t k, size_t threads) {
    return threads > 1 && !is_small(m, n, k) ? threads : 1;
}

/* PACK: columns that a task packs and uses up at a time, so that all have as many. A vector next to
 * the tiles takes longer than its share. */
static size_t own_columns(size_t n, size_t tasks) {
    size_t best = ISO_LINEAR_COLUMNS, least = SIZE_MAX;
    for (size_t columns = best; columns <= 2 * ISO_GEMM_COLUMN_BLOCK; columns += ISO_PANEL) {
        const size_t chunks = (n + columns - 1) / columns, each = (chunks + tasks - 1) / tasks;
        const size_t rest = columns % ISO_LINEAR_COLUMNS;
        const size_t time = each * (columns + (rest == ISO_PANEL ? 4 : rest ? 1 : 0));
        if (time <= least)
            best = columns, least = time;
    }
    return best;
}

/* Of columns: several for each task, so that one that is done may help another. But long runs of
 * B's rows are faster, and few rows wait for nothing else. */
static size_t parts_of(enum iso_gemm_way way, size_t m, size_t tasks) {
    const int along_rows = way == ISO_GEMM_STREAMS || way == ISO_GEMM_IN_PLACE;
    if (along_rows && m <= ISO_GEMM_FEW_ROWS)
        return tasks;
    /* B16: each block rounds A again */
    return way == ISO_GEMM_STREAMS || way == ISO_GEMM_B16 ? 2 * tasks : 4 * tasks;
}

static size_t stream_columns(size_t m, size_t n, size_t tasks) {
    const size_t parts = parts_of(ISO_GEMM_STREAMS, m, tasks);
    const size_t part = iso_round_up((n + parts - 1) / parts, (size_t)4 * ISO_PANEL);
    return iso_round_up(tasks > 1 ? iso_min_size(part, n) : n, ISO_PANEL);
}

/* Columns of a block for one thread, before they are cut for more. */
static size_t columns_of(const struct iso_gemm_plan *p, const struct iso_gemm_shape *s, size_t n) {
    const int long_k = s->k > ISO_K_BLOCK;
    if (p->way == ISO_GEMM_STREAMS)
        return iso_min_size(stream_columns(s->m, n, p->tasks),
                            ISO_GEMM_STREAM_FLOATS / s->m / ISO_PANEL * ISO_PANEL);
    if (s->own_sums && !p->strip_sums && p->way != ISO_GEMM_TRANSPOSED_C)
        return s->w16 || s->q ? ISO_GEMM_PART_COLUMNS : ISO_GEMM_COLUMN_BLOCK;
    /* All blocks of k for some columns at a time, of a B from beyond L2: what the hardware
     * prefetches beyond a block of k is the next one. */
    if (p->way == ISO_GEMM_TRANSPOSED_B && long_k && n > ISO_L2_FLOATS / s->k)
        return s->m == 1 ? ISO_PANEL : ISO_GEMM_K_COLUMNS_BT;
    return n;
}

static void set_blocks(struct iso_gemm_plan *p, const struct iso_gemm_shape *s,
                       const struct iso_kernels *kernels) {
    const size_t n = p->shared ? iso_min_size(s->n, p->shared) : s->n;
    const int waits = s->own_sums && !p->strip_sums;
    const size_t most = has_own_b(p->way) && !waits ? ISO_GEMM_OWN_ROWS : ISO_GEMM_ROW_BLOCK;
    const size_t unit = s->w16 ? ISO_WIDE_PANEL : ISO_PANEL;
    size_t row_blocks = (s->m + most - 1) / most;
    const size_t least = p->way == ISO_GEMM_WIDEN  ? ISO_GEMM_PART_COLUMNS
                         : p->way == ISO_GEMM_PACK ? ISO_LINEAR_COLUMNS
                                                   : (size_t)4 * ISO_PANEL;
    /* All tasks have a part, though they may pack, round or widen something again. */
    const size_t narrow = (n + least - 1) / least, parts = (p->tasks + narrow - 1) / narrow;
    row_blocks = row_blocks < parts ? parts : row_blocks;
    p->rows = iso_round_up((s->m + row_blocks - 1) / row_blocks,
                           p->a_in_place ? kernels->direct_mr : kernels->mr);
    p->columns = columns_of(p, s, n);
    if (p->tasks > 1 && p->way == ISO_GEMM_PACK) {
        p->columns = iso_min_size(own_columns(n, p->tasks), p->columns);
    } else if (p->tasks > 1 && p->way != ISO_GEMM_STREAMS && row_blocks < 4 * p->tasks) {
        const size_t chunks = (parts_of(p->way, s->m, p->tasks) + row_blocks - 1) / row_blocks;
        p->columns = iso_min_size(iso_round_up((n + chunks - 1) / chunks, least), p->columns);
    }
    p->columns = iso_round_up(p->columns, unit);
}

/* Rows of a strip, at most. */
static size_t strip_mr(const struct iso_gemm_plan *p, const struct iso_gemm_shape *s,
                       const struct iso_gemm_machine *machine) {
    const struct iso_kernels *kernels = machine->kernels;
    const int in_streams = p->way == ISO_GEMM_STREAMS;
    size_t most = p->a_in_place && !in_streams ? kernels->direct_mr : kernels->mr;
    if (p->way == ISO_GEMM_B16) /* a block: the kernel cuts it as it likes */
        return ISO_GEMM_ROW_BLOCK + kernels->mr;
    if (p->way == ISO_GEMM_W16 || p->way == ISO_GEMM_Q)
        return p->way == ISO_GEMM_Q ? kernels->q_mr : kernels->w16_mr;
    if (!in_streams &&
        !(p->a_in_place && (p->way == ISO_GEMM_IN_PLACE || p->way == ISO_GEMM_PREFETCH)))
        return most;
    if (is_aliased(s, machine) && s->n > TUNED(machine, floats_in_place) / s->k)
        most = iso_min_size(most, TUNED(machine, aliased_mr));
    if (in_streams && is_in_memory(s->n, s->k))
        most = iso_min_size(most, TUNED(machine, memory_mr));
    return most;
}

/* Rows of B side by side: from L3, and with many rows of A, more, so that sums pass through C less
 * often, but not as many where two of them pass, that of this block of k and the others'. Nor where
 * an L3 is fast as long as other cores do not use it: down many rows, a few lines of each, tiles
 * would take three times as long when they do not. */
static size_t streams_of(const struct iso_gemm_shape *s, const struct iso_gemm_machine *machine) {
    if (s->m == 1)
        return ISO_K_BLOCK;
    const size_t most = TUNED(machine, streams);
    if (s->m <= ISO_GEMM_FEW_ROWS || is_in_memory(s->n, s->k) || most <= ISO_GEMM_STREAMS_MEMORY)
        return ISO_GEMM_STREAMS_MEMORY;
    return s->k > ISO_K_BLOCK ? most / 2 : most;
}

/* On one thread, and nothing waits in scratch. */
static int is_single(const struct iso_gemm_plan *p, const struct iso_gemm_shape *s) {
    return (p->a_in_place || p->strips_in_place) && s->m <= ISO_GEMM_ROW_BLOCK && !s->own_sums &&
           !p->shared && !has_own_b(p->way) && p->way != ISO_GEMM_STREAMS &&
           is_small(s->m, s->n, s->k);
}

struct iso_gemm_plan iso_gemm_plan(const struct iso_gemm_shape *s,
                                   const struct iso_gemm_machine *machine) {
    struct iso_gemm_plan p = {.way = way_of(s, machine)};
    p.a_in_place = reads_a_in_place(p.way, s->trans_a);
    if (p.way == ISO_GEMM_PACK_SHARED)
        p.shared = iso_round_up(iso_min_size(s->n, ISO_GEMM_SHARED_COLUMNS), ISO_PANEL);
    p.mr = strip_mr(&p, s, machine);
    p.strips_in_place = s->trans_a && p.way != ISO_GEMM_TRANSPOSED_C && p.way != ISO_GEMM_STREAMS &&
                        iso_gemm_reads_strips(machine->kernels, s->m, s->k, s->lda, p.mr);
    p.strip_sums = s->own_sums && ends_with_strip(p.way, s->k);
    p.single = is_single(&p, s);
    if (p.single) {
        p.rows = s->m, p.columns = s->n, p.tasks = 1;
        return p;
    }
    if (p.way == ISO_GEMM_STREAMS)
        p.streams = streams_of(s, machine);
    const size_t n = p.shared ? iso_min_size(s->n, p.shared) : s->n;
    p.tasks = tasks_of(s->m, n, s->k, s->threads);
    set_blocks(&p, s, machine->kernels);
    p.task_floats =
        task_floats(p.way, machine->kernels, s->m, p.way == ISO_GEMM_STREAMS ? p.columns : n, s->k,
                    p.a_in_place || p.strips_in_place, s->own_sums);
    return p;
}

iso_status iso_gemm_plan_floats(size_t *floats, const struct iso_gemm_plan *p, size_t k) {
    size_t shared;
    return iso_mul_overflows(&shared, p->shared, k) ||
                   iso_mul_overflows(floats, p->task_floats, p->tasks) ||
                   __builtin_add_overflow(*floats, shared, floats)
               ? ISOBIT_E_OVERFLOW
               : ISOBIT_OK;
}

/* *floats becomes the scratch of this way too, with m rows, if that is more. */
static iso_status promise_also(size_t *floats, enum iso_gemm_way way, size_t m, size_t shared,
                               const struct iso_gemm_shape *s, const struct iso_kernels *kernels,
                               int sums) {
    const size_t n = shared ? iso_min_size(s->n, shared) : s->n;
    const int a_in_place = reads_a_in_place(way, s->trans_a);
    struct iso_gemm_plan p = {.shared = shared, .tasks = tasks_of(m, n, s->k, s->threads)};
    p.task_floats =
        task_floats(way, kernels, m, way == ISO_GEMM_STREAMS ? stream_columns(1, n, p.tasks) : n,
                    s->k, a_in_place, sums);
    size_t these;
    const iso_status status = iso_gemm_plan_floats(&these, &p, s->k);
    if (!status && these > *floats)
        *floats = these;
    return status;
}

iso_status iso_gemm_promise(size_t *floats, const struct iso_gemm_shape *shape,
                            const struct iso_gemm_machine *machine, int sums) {
    const struct iso_kernels *kernels = machine->kernels;
    const struct iso_gemm_shape *s = shape;
    const size_t few = iso_min_size(s->m, ISO_GEMM_ROW_BLOCK);
    size_t extent;
    iso_status status = ISOBIT_OK;
    *floats = 0;
    if (s->b16)
        return promise_also(floats, ISO_GEMM_B16, s->m, 0, s, kernels, sums);
    if (s->w16 || s->q) {
        const size_t rows = s->q ? rows_q(s, machine) : TUNED(machine, rows_w16);
        const size_t most = iso_min_size(s->m, rows);
        status = promise_also(floats, s->q ? ISO_GEMM_Q : ISO_GEMM_W16, most, 0, s, kernels, sums);
        return status || s->m == most
                   ? status
                   : promise_also(floats, ISO_GEMM_WIDEN, s->m, 0, s, kernels, sums);
    }
    if (s->panels)
        return promise_also(floats, ISO_GEMM_PANELS, s->m, 0, s, kernels, sums);
    if (iso_mul_overflows(&extent, s->m, s->n) || iso_mul_overflows(&extent, s->m, s->k) ||
        iso_mul_overflows(&extent, s->n, s->k))
        return ISOBIT_E_OVERFLOW; /* matrices that nobody has */
    /* As if every thread shared what is packed, which takes the most, and rows of B few sets. */
    struct iso_gemm_shape worst = *s;
    worst.threads = SIZE_MAX, worst.ldb = 0;
    const enum iso_gemm_way way = way_of(&worst, machine);
    const int packs = s->m > rows_in_place(machine, iso_gemm_level_of_b(s, machine), 1) &&
                      s->n > TUNED(machine, floats_in_place) / s->k;
    if (way == ISO_GEMM_PACK_SHARED)
        status = promise_also(floats, way, s->m,
                              iso_round_up(iso_min_size(s->n, ISO_GEMM_SHARED_COLUMNS), ISO_PANEL),
                              s, kernels, sums);
    else if (!s->trans_b && (s->trans_a || sums))
        status = promise_also(floats, ISO_GEMM_IN_PLACE, s->m, 0, s, kernels, sums);
    /* With own sums of one block of k more rows, too, have blocks of B of their own. */
    if (!status && (s->trans_b || packs))
        status = promise_also(floats, ISO_GEMM_PACK, sums && !s->trans_a ? s->m : few, 0, s,
                              kernels, sums);
    if (!status && s->trans_b)
        status = promise_also(floats, ISO_GEMM_TRANSPOSED_C, few, 0, s, kernels, sums);
    if (!status && s->trans_b)
        status = promise_also(floats, ISO_GEMM_TRANSPOSED_B,
                              iso_min_size(s->m, kernels->rows_in_place_bt), 0, s, kernels, sums);
    if (!s->trans_b && s->n > ISO_L2_FLOATS / s->k) {
        const int several = is_far(machine, s->n, s->k) || is_strided(machine, s->n, s->k, 1);
        const size_t rows = several ? iso_min_size(s->m, stream_rows(machine, s->k)) : 1;
        worst.threads = 1; /* fewer rows may be too little work for more */
        if (!status)
            status = promise_also(floats, ISO_GEMM_STREAMS, rows, 0, &worst, kernels, sums);
        if (!status)
            status = promise_also(floats, ISO_GEMM_STREAMS, rows, 0, s, kernels, sums);
    }
    return status;
}

/* --------------------------------------------------------------------------- strips of a block */

/* Full strips can prefetch what comes next, those of a few rows are slow: 9 rows are 5 + 4, but 12
 * are 8 + 4. Where B comes from beyond L2 a single full strip cannot prefetch as fast as it reads,
 * so 12 are 6 + 6. But with half as wide vectors one or two rows have the more panels side by side:
 * there 8 are 6 + 2. */
static size_t uneven_rows(const struct iso_gemm_strips *s, const struct iso_gemm_machine *machine,
                          size_t mr, size_t m, size_t left) {
    const int wide = machine->kernels->vector_floats == ISO_PANEL;
    if (left <= mr)
        return left;
    if (s->beyond_l2 && m < 2 * mr)
        return wide ? (left + 1) / 2 : mr;
    if (s->beyond_l2 && !wide && left - mr >= 2)
        return mr;
    return left >= 2 * mr || left - mr >= mr / 2 ? mr : (left + 1) / 2;
}

size_t iso_gemm_strip_rows(const struct iso_gemm_strips *s, const struct iso_gemm_plan *plan,
                           const struct iso_gemm_machine *machine, size_t m, size_t left) {
    return s->linear || s->packing ? uneven_rows(s, machine, plan->mr, m, left)
                                   : iso_min_size(left, s->rows);
}

struct iso_gemm_strips iso_gemm_strips(const struct iso_gemm_plan *plan,
                                       const struct iso_gemm_machine *machine, size_t m, size_t n,
                                       size_t b_floats, int trans_b) {
    const size_t mr = plan->mr;
    const int panels = plan->way == ISO_GEMM_PANELS || plan->way == ISO_GEMM_PACK_SHARED;
    struct iso_gemm_strips s = {.count = (m + mr - 1) / mr, .columns = n};
    s.rows = (m + s.count - 1) / s.count;
    s.packing = plan->way == ISO_GEMM_PACK && !trans_b && plan->a_in_place && m >= mr &&
                TUNED(machine, packs_in_strip);
    s.linear = s.count > 1 && b_floats > ISO_GEMM_CACHED_FLOATS && panels && plan->a_in_place;
    /* Where L1 has few misses at a time, lines from beyond L2 are prefetched into L2 first. */
    const int via_l2 = b_floats >= ISO_L2_FLOATS && machine->class == ISO_GEMM_SMALL_L1;
    s.packing_mode = via_l2 ? ISO_DIRECT_BEYOND_L2 : 0;
    s.direct_mode = panels || plan->way == ISO_GEMM_PREFETCH ? s.packing_mode : 0;
    s.beyond_l2 = s.linear && via_l2 && b_floats > ISO_L2_FLOATS;
    if (plan->way == ISO_GEMM_WIDEN) /* panels come from L2, the next part from anywhere */
        s.linear = 1;
    while (m - s.full * mr >= mr && uneven_rows(&s, machine, mr, m, m - s.full * mr) == mr)
        s.full++;
    s.linear &= s.full > 0;
    if ((plan->way == ISO_GEMM_W16 || plan->way == ISO_GEMM_B16 || plan->way == ISO_GEMM_Q) &&
        b_floats > ISO_L2_FLOATS)
        s.direct_mode = ISO_DIRECT_BEYOND_L2;
    /* With one row and several tasks blocks are tiles, and what comes next is another task's. */
    if (plan->way == ISO_GEMM_TRANSPOSED_B && b_floats > ISO_L2_FLOATS &&
        (m > 1 || plan->tasks == 1)) {
        s.direct_mode = ISO_DIRECT_NEXT;
        s.half = machine->kernels->half && m <= TUNED(machine, half_rows);
    }
    if (plan->way == ISO_GEMM_WIDEN)
        s.columns = ISO_GEMM_PART_COLUMNS;
    else if (plan->way == ISO_GEMM_B16)
        s.columns = m > ISO_GEMM_B16_ROWS ? ISO_GEMM_B16_COLUMNS : n;
    else if (plan->way == ISO_GEMM_PACK || s.count > 1 || plan->strip_sums)
        s.columns = ISO_GEMM_COLUMN_BLOCK;
    if (s.linear && b_floats > ISO_GEMM_CACHED_FLOATS)
        s.prefetching = s.full;
    else if (s.packing && s.full > 0)
        s.prefetching = s.full - 1;
    return s;
}

/* The last parts that gemm_linear has are long enough for its tiles to prefetch the next one. */
size_t iso_gemm_part_columns(const struct iso_gemm_strips *s, size_t left) {
    const size_t most = s->columns;
    if (!s->linear || most != ISO_GEMM_COLUMN_BLOCK || left >= 2 * most)
        return iso_min_size(left, most);
    return left < most + ISO_LINEAR_COLUMNS ? left : 2 * ISO_LINEAR_COLUMNS;
}
