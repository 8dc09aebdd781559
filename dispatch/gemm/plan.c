/* SPDX-License-Identifier: MIT */
#include "../packed_weights.h"
#include "../strips.h"

/* ------------------------------------------------------------------------ where B comes from */

enum iso_gemm_level iso_gemm_level_of_b(const struct iso_gemm_shape *s,
                                        const struct iso_gemm_machine *machine) {
    return s->n * s->k > ISO_GEMM_MEMORY_FLOATS        ? ISO_GEMM_MEMORY
           : s->n * s->k > TUNED(machine, near_floats) ? ISO_GEMM_L3
                                                       : ISO_GEMM_NEAR;
}

/* Whether its rows map to few sets of the caches. */
static int is_aliased(const struct iso_gemm_shape *s, const struct iso_gemm_machine *machine) {
    return s->ldb % machine->kernels->aliased == 0;
}

size_t iso_gemm_rows_in_place(const struct iso_gemm_shape *s,
                              const struct iso_gemm_machine *machine) {
    const enum iso_gemm_level level = iso_gemm_level_of_b(s, machine);
    const int aliased = is_aliased(s, machine);
    if (s->trans_b)
        return machine->kernels->rows_in_place_bt;
    if (level == ISO_GEMM_NEAR)
        return aliased ? TUNED(machine, rows_near_aliased) : TUNED(machine, rows_near);
    const size_t rows =
        level == ISO_GEMM_L3 ? TUNED(machine, rows_l3) : TUNED(machine, rows_memory);
    return aliased ? iso_min_size(rows, TUNED(machine, rows_aliased)) : rows;
}

/* Floats of B that any number of rows read in place. Tiny products do that by a path of their own
 * (../gemm.c), which takes it that plain ones need no workspace. */
static size_t floats_in_place(const struct iso_gemm_shape *s,
                              const struct iso_gemm_machine *machine) {
    const double work = (double)s->m * (double)(s->n * s->k); /* size_t may overflow */
    const int tiny = work < ISO_GEMM_TINY_WORK;
    return is_aliased(s, machine) && !tiny ? TUNED(machine, floats_aliased)
                                           : TUNED(machine, floats_in_place);
}

/* ------------------------------------------------------------------------------------ the way */

/* Fewer where there is too little work. One row waits for B and takes as long as two. */
static size_t tasks_of(size_t m, size_t n, size_t k, size_t threads) {
    const double work = (double)(m == 1 ? 2 : m) * (double)n * (double)k; /* size_t may overflow */
    return work < ISO_GEMM_SMALL_WORK ? 1 : threads;
}

/* Whether a B is a single run, for few rows of A whose sums stay in L1: its rows follow each other,
 * and each task has a block of k. With several rows less of L1 is left for B. */
static int in_one_run(const struct iso_gemm_shape *s, const struct iso_gemm_machine *machine) {
    const size_t sums = TUNED(machine, by_row), most = s->m == 1 ? sums : sums / 3 * 2;
    return s->m <= ISO_GEMM_FEW_ROWS && s->ldb == s->n && s->m * s->n <= most &&
           s->k > (tasks_of(s->m, s->n, s->k, s->threads) - 1) * ISO_K_BLOCK;
}

/* The same for one row and a B that may be in L2, or come from memory. */
static int in_near_run(const struct iso_gemm_shape *s, const struct iso_gemm_machine *machine) {
    return s->n >= ISO_GEMM_RUN_SUMS && s->n <= TUNED(machine, near_run) && s->k <= ISO_K_BLOCK &&
           s->n * s->k > ISO_GEMM_RUN_FLOATS && !s->own_sums && in_one_run(s, machine);
}

static enum iso_gemm_way row_major_way(const struct iso_gemm_shape *s,
                                       const struct iso_gemm_machine *machine) {
    const size_t m = s->m, n = s->n, b = n * s->k;
    const enum iso_gemm_level level = iso_gemm_level_of_b(s, machine);
    const int aliased = is_aliased(s, machine), few = m <= ISO_GEMM_FEW_ROWS;
    const int in_place =
        m <= iso_gemm_rows_in_place(s, machine) || b <= floats_in_place(s, machine);
    /* Where L1 has few misses at a time, and vectors are as wide as a line: one strip reads a B
     * from beyond L2 in place, once, prefetches its rows into L2, and has its sums in registers. */
    if (TUNED(machine, prefetched) && in_place && level != ISO_GEMM_NEAR && !s->trans_a && !few &&
        m <= machine->kernels->direct_mr - (size_t)(!aliased && level == ISO_GEMM_L3))
        return ISO_GEMM_PREFETCH;
    /* Tiles would go down the columns of a B from beyond L2, a few lines of each of its rows at a
     * time, at a third of what memory gives. They may wait even for a smaller B, if its rows alias
     * in L1 and L2, with a stride that the hardware does not prefetch: where L3 is slow, and
     * vectors of 32 bytes on Zen 5. */
    const int strided = aliased && !few && m <= TUNED(machine, rows_strided) &&
                        n >= ISO_GEMM_STRIDED_RUN && n < 4 * ISO_GEMM_STRIDED_RUN &&
                        b > ISO_L2_FLOATS;
    /* Few rows read more of B in place. But in one run two have half the time from memory, and 1.6
     * times that from L3; three and four would lose more there. */
    const int large = !few || b > ISO_GEMM_FEW_FLOATS || (m == 2 && in_one_run(s, machine));
    const int far = (in_place || s->trans_a) && level != ISO_GEMM_NEAR &&
                    n >= TUNED(machine, stream_run) && large;
    const size_t most =
        s->k > ISO_K_BLOCK ? TUNED(machine, stream_rows_long) : ISO_GEMM_STREAM_ROWS;
    if (m == 1 ? b > ISO_L2_FLOATS || in_near_run(s, machine)
               : m <= most && !s->own_sums && (strided || far))
        return ISO_GEMM_STREAMS;
    return in_place ? ISO_GEMM_IN_PLACE : ISO_GEMM_PACK;
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
    return s->m <= ISO_GEMM_ROW_BLOCK && iso_gemm_rows_in_lanes(kernels, s->m, s->ldb) &&
           s->n > ISO_PANEL && s->m * (s->k + 2 * s->n) < s->n * s->k &&
           !(s->k > ISO_K_BLOCK && s->own_sums);
}

static enum iso_gemm_way way_of(const struct iso_gemm_shape *s,
                                const struct iso_gemm_machine *machine) {
    if (s->panels)
        return s->w16 || s->q ? iso_weights_way(s, machine) : ISO_GEMM_PANELS;
    if (!s->trans_b)
        return row_major_way(s, machine);
    return s->m <= machine->kernels->rows_in_place_bt ? ISO_GEMM_TRANSPOSED_B
           : transposes_c(s, machine->kernels)        ? ISO_GEMM_TRANSPOSED_C
                                                      : ISO_GEMM_PACK;
}

static int reads_a_in_place(enum iso_gemm_way way, int trans_a) {
    return !trans_a && way != ISO_GEMM_TRANSPOSED_B && way != ISO_GEMM_TRANSPOSED_C &&
           way != ISO_GEMM_B16;
}

/* ------------------------------------------------------------------------- scratch and blocks */

static int has_own_b(enum iso_gemm_way way) {
    return way == ISO_GEMM_PACK || way == ISO_GEMM_WIDEN;
}

/* Rows of A that stay in L2 while B passes, if the product is large: see part_in_groups. For fewer
 * rows each task packs too much of B from L3 to L3. */
static size_t group_of(enum iso_gemm_way way, const struct iso_gemm_shape *s, size_t m,
                       const struct iso_gemm_machine *machine) {
    const size_t large = TUNED(machine, large);
    const size_t rows = way == ISO_GEMM_PACK     ? large * s->threads
                        : way == ISO_GEMM_PANELS ? large / 4
                                                 : SIZE_MAX;
    const int is_large = m >= rows && s->n >= large && s->k >= 2 * large;
    return is_large && !s->trans_a ? TUNED(machine, group_rows) : 0;
}

/* Of a block. What a task packs or widens, many rows use. */
static size_t most_rows(const struct iso_gemm_plan *p) {
    return !has_own_b(p->way) ? ISO_GEMM_ROW_BLOCK
           : p->group         ? ISO_GEMM_GROUP_ROWS
                              : ISO_GEMM_OWN_ROWS;
}

/* Whether own sums of so many steps are done with each strip. */
static int ends_with_strip(enum iso_gemm_way way, size_t k) {
    return k <= ISO_K_BLOCK && way != ISO_GEMM_B16 && way != ISO_GEMM_TRANSPOSED_C;
}

/* Bounds that never fall when m, n or k grow. */
static void set_scratch(struct iso_gemm_plan *p, const struct iso_kernels *kernels, size_t m,
                        size_t n, size_t k, int a_in_place, int sums) {
    const size_t steps = iso_min_size(k, ISO_K_BLOCK);
    size_t floats = 0;
    if (p->way == ISO_GEMM_TRANSPOSED_C) { /* panels and a strip of A; sums twice */
        const size_t most = iso_round_up(m, ISO_PANEL);
        p->a_floats = (most + kernels->vector_floats) * steps;
        floats = 2 * ISO_GEMM_PART_COLUMNS * most;
    } else if (p->way == ISO_GEMM_STREAMS) { /* own sums, and those of a second block of k */
        /* 4 rows at least in a strip may have one more than there is; one row lies as a strip. */
        p->a_floats = m > 1 ? ISO_GEMM_STREAM_ROWS * 5 / 4 * steps : 0;
        floats = (sums ? iso_min_size(n, ISO_GEMM_STREAM_FLOATS) : 0) +
                 (k > ISO_K_BLOCK ? iso_min_size(m * n, ISO_GEMM_STREAM_FLOATS) : 0);
    } else {
        const size_t rows = iso_round_up(iso_min_size(m, most_rows(p)), kernels->mr);
        const size_t mr = kernels->mr > kernels->direct_mr ? kernels->mr : kernels->direct_mr;
        const size_t columns = p->group                   ? ISO_GEMM_GROUP_COLUMNS
                               : p->way == ISO_GEMM_WIDEN ? ISO_GEMM_PART_COLUMNS
                                                          : ISO_GEMM_COLUMN_BLOCK;
        p->a_floats = p->way == ISO_GEMM_B16 ? rows * (iso_b16_ld(k) / 2)
                      : a_in_place           ? p->group * steps
                                             : rows * steps;
        if (has_own_b(p->way))
            p->b_floats = iso_round_up(iso_min_size(n, columns), ISO_PANEL) * steps;
        if (sums)
            floats = ends_with_strip(p->way, k)
                         ? iso_min_size(rows, mr) * iso_min_size(n, ISO_GEMM_STRIP_COLUMNS)
                         : rows * iso_min_size(n, ISO_GEMM_COLUMN_BLOCK);
    }
    p->task_floats = iso_round_up(p->b_floats + p->a_floats + floats, ISO_LINE);
}

/* Blocks of k that a task takes, at most. */
static size_t blocks_by_k(size_t k, size_t tasks) {
    const size_t blocks = (k + ISO_K_BLOCK - 1) / ISO_K_BLOCK;
    return (blocks + tasks - 1) / tasks;
}
/* Scratch of each: sums and a strip of A. One row lies as a strip. */
static size_t block_floats_by_k(size_t m, size_t sums) {
    return iso_round_up(sums + (m > 1 ? m * ISO_K_BLOCK : 0), ISO_LINE);
}

/* PACK: columns that a task packs and uses up at a time, so that all have as many. A vector next to
 * the tiles takes longer than its share, and so many as `a_again` are what it takes that A is
 * packed or copied again with each block. */
static size_t own_columns(size_t n, size_t row_blocks, size_t tasks, size_t most, size_t a_again) {
    size_t best = ISO_LINEAR_COLUMNS, least = SIZE_MAX;
    for (size_t columns = best; columns <= most; columns += ISO_PANEL) {
        const size_t blocks = (n + columns - 1) / columns * row_blocks;
        const size_t rest = columns % ISO_LINEAR_COLUMNS;
        const size_t more = (rest == ISO_PANEL ? 4u : rest ? 1u : 0u) + a_again;
        const size_t time = (blocks + tasks - 1) / tasks * (columns + more);
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

/* Columns of a block for one thread, before they are cut for more. */
static size_t columns_of(const struct iso_gemm_plan *p, const struct iso_gemm_shape *s) {
    if (p->way == ISO_GEMM_STREAMS) {
        const size_t parts = p->tasks > 1 ? parts_of(p->way, s->m, p->tasks) : 1;
        const size_t part = iso_round_up((s->n + parts - 1) / parts, (size_t)4 * ISO_PANEL);
        return iso_min_size(iso_round_up(iso_min_size(part, s->n), ISO_PANEL),
                            ISO_GEMM_STREAM_FLOATS / s->m / ISO_PANEL * ISO_PANEL);
    }
    if (s->own_sums && !ends_with_strip(p->way, s->k) && p->way != ISO_GEMM_TRANSPOSED_C)
        return s->w16 || s->q ? ISO_GEMM_PART_COLUMNS : ISO_GEMM_COLUMN_BLOCK;
    /* All blocks of k for some columns at a time, of a B from beyond L2: what the hardware
     * prefetches beyond a block of k is the next one. */
    if (p->way == ISO_GEMM_TRANSPOSED_B && s->k > ISO_K_BLOCK && s->n * s->k > ISO_L2_FLOATS)
        return s->m == 1 ? ISO_PANEL : ISO_GEMM_K_COLUMNS_BT;
    return s->n;
}

static void set_blocks(struct iso_gemm_plan *p, const struct iso_gemm_shape *s,
                       const struct iso_kernels *kernels) {
    size_t row_blocks = (s->m + most_rows(p) - 1) / most_rows(p);
    const size_t least = p->group                   ? ISO_GEMM_COLUMN_BLOCK
                         : p->way == ISO_GEMM_WIDEN ? ISO_GEMM_PART_COLUMNS
                         : p->way == ISO_GEMM_PACK  ? ISO_LINEAR_COLUMNS
                                                    : (size_t)4 * ISO_PANEL;
    /* All tasks have a part, though they may pack, round or widen something again. */
    const size_t narrow = (s->n + least - 1) / least, parts = (p->tasks + narrow - 1) / narrow;
    row_blocks = row_blocks < parts ? parts : row_blocks;
    p->rows = iso_round_up((s->m + row_blocks - 1) / row_blocks,
                           p->a_in_place ? kernels->direct_mr : kernels->mr);
    p->columns = columns_of(p, s);
    if (p->tasks > 1 && p->way == ISO_GEMM_PACK) {
        const size_t most = p->group ? ISO_GEMM_GROUP_COLUMNS : 2 * ISO_GEMM_COLUMN_BLOCK;
        const size_t a_again = p->group ? 20 : p->a_in_place || p->strips_in_place ? 0 : 8;
        p->columns =
            iso_min_size(own_columns(s->n, row_blocks, p->tasks, most, a_again), p->columns);
    } else if (p->tasks > 1 && p->way != ISO_GEMM_STREAMS && row_blocks < 4 * p->tasks) {
        const size_t chunks = (parts_of(p->way, s->m, p->tasks) + row_blocks - 1) / row_blocks;
        p->columns = iso_min_size(iso_round_up((s->n + chunks - 1) / chunks, least), p->columns);
    }
    p->columns = iso_round_up(p->columns, s->w16 ? ISO_WIDE_PANEL : ISO_PANEL);
    if (p->way == ISO_GEMM_STREAMS || p->way == ISO_GEMM_TRANSPOSED_C)
        p->rows = s->m; /* they run all of them */
}

/* Rows of a strip, at most. */
static size_t strip_mr(const struct iso_gemm_plan *p, const struct iso_gemm_shape *s,
                       const struct iso_gemm_machine *machine) {
    const struct iso_kernels *kernels = machine->kernels;
    const int in_streams = p->way == ISO_GEMM_STREAMS;
    const int b_in_place =
        p->a_in_place && (p->way == ISO_GEMM_IN_PLACE || p->way == ISO_GEMM_PREFETCH);
    size_t most = p->a_in_place && !in_streams ? kernels->direct_mr : kernels->mr;
    if (p->way == ISO_GEMM_B16) /* a block: the kernel cuts it as it likes */
        return ISO_GEMM_ROW_BLOCK + kernels->mr;
    if (p->way == ISO_GEMM_W16 || p->way == ISO_GEMM_Q)
        return p->way == ISO_GEMM_Q ? kernels->q_mr : kernels->w16_mr;
    if ((b_in_place || in_streams) && is_aliased(s, machine) &&
        s->n * s->k > TUNED(machine, floats_in_place))
        most = iso_min_size(most, TUNED(machine, aliased_mr));
    if (in_streams && iso_gemm_level_of_b(s, machine) == ISO_GEMM_MEMORY)
        most = iso_min_size(most, TUNED(machine, memory_mr));
    return most;
}

/* Rows of B side by side. One, where B is a single run. Else, with one row of A, those of a block
 * of k, for the kernel to choose from. Of many rows from L3 more, so that sums pass through C less
 * often, but not as many where two of them pass, that of this block of k and the others'. Nor where
 * an L3 is fast as long as other cores do not use it: down many rows, a few lines of each, tiles
 * would take three times as long when they do not. */
static size_t streams_of(const struct iso_gemm_shape *s, const struct iso_gemm_machine *machine) {
    const size_t most = TUNED(machine, streams);
    if (in_one_run(s, machine))
        return 1;
    if (s->m == 1)
        return ISO_K_BLOCK;
    if (s->m <= ISO_GEMM_FEW_ROWS || most <= ISO_GEMM_STREAMS_MEMORY ||
        iso_gemm_level_of_b(s, machine) == ISO_GEMM_MEMORY)
        return ISO_GEMM_STREAMS_MEMORY;
    return s->k > ISO_K_BLOCK ? most / 2 : most;
}

/* What of a transposed B is prefetched: rows that follow those at hand, or what comes in these. */
static int prefetches(enum iso_gemm_way way, const struct iso_gemm_shape *s,
                      const struct iso_gemm_machine *machine) {
    const int transposed_c = way == ISO_GEMM_TRANSPOSED_C,
              aliased = s->ldb % ISO_GEMM_ALIASED_BT == 0;
    const size_t ahead = TUNED(machine, ahead_floats);
    const size_t near = transposed_c ? TUNED(machine, next_floats_c) : TUNED(machine, next_floats);
    if (!s->trans_b)
        return 0;
    const int in_registers = way == ISO_GEMM_TRANSPOSED_B && !aliased;
    const size_t l2_next = in_registers ? TUNED(machine, l2_next_floats) : 0;
    const int next = ISO_DIRECT_NEXT | (l2_next ? ISO_DIRECT_WHOLE : 0);
    if (l2_next && s->n <= l2_next / s->k)
        return next;
    if (in_registers && s->m > 1 && ahead)
        return s->n > ahead / s->k ? ISO_DIRECT_AHEAD : 0;
    return s->n > near / s->k && (transposed_c || !aliased || TUNED(machine, next_aliased)) ? next
                                                                                            : 0;
}

struct iso_gemm_plan iso_gemm_plan(const struct iso_gemm_shape *s,
                                   const struct iso_gemm_machine *machine) {
    struct iso_gemm_plan p = {.way = way_of(s, machine)};
    p.adds = s->adds && ends_with_strip(p.way, s->k) && p.way != ISO_GEMM_STREAMS;
    const int own_sums = s->own_sums && !p.adds;
    p.a_in_place = reads_a_in_place(p.way, s->trans_a);
    p.mr = strip_mr(&p, s, machine);
    p.strips_in_place = s->trans_a && p.way != ISO_GEMM_TRANSPOSED_C && p.way != ISO_GEMM_STREAMS &&
                        (s->m <= p.mr || s->m * s->k <= TUNED(machine, strips_floats)) &&
                        iso_gemm_reads_strips(machine->kernels, s->m, s->k, s->lda, p.mr);
    p.strip_sums = own_sums && ends_with_strip(p.way, s->k);
    p.tasks = tasks_of(s->m, s->n, s->k, s->threads);
    if (p.way == ISO_GEMM_STREAMS)
        p.streams = streams_of(s, machine);
    /* One row with a B of up to L2 keeps sums in registers: of whole vectors more. */
    p.half = p.streams && machine->kernels->half && s->m <= TUNED(machine, half_streams) &&
             (s->m > 1 || s->n * s->k > ISO_L2_FLOATS) &&
             (p.streams == 1 || iso_gemm_level_of_b(s, machine) == ISO_GEMM_MEMORY);
    p.by_k = p.streams == 1 && p.tasks > 1;
    if (!own_sums)
        p.group = group_of(p.way, s, s->m, machine);
    p.next = prefetches(p.way, s, machine);
    set_blocks(&p, s, machine->kernels);
    set_scratch(&p, machine->kernels, s->m, p.way == ISO_GEMM_STREAMS ? p.columns : s->n, s->k,
                p.a_in_place || p.strips_in_place, own_sums);
    if (p.by_k) {
        p.block_floats = block_floats_by_k(s->m, s->m * s->n);
        p.task_floats = blocks_by_k(s->k, p.tasks) * p.block_floats;
        p.a_floats = 0;
    }
    return p;
}

iso_status iso_gemm_promise(size_t *floats, const struct iso_gemm_shape *shape,
                            const struct iso_gemm_machine *machine, int sums) {
    struct iso_gemm_shape s = *shape;
    size_t extent, b = 0;
    if (!s.panels && (iso_mul_overflows(&extent, s.m, s.n) ||
                      iso_mul_overflows(&extent, s.m, s.k) || iso_mul_overflows(&b, s.n, s.k)))
        return ISOBIT_E_OVERFLOW; /* matrices that nobody has */
    s.ldb = 0;                    /* as if its rows were aliased: fewer are read in place */
    /* Most rows with which it takes a way, or one that needs no less scratch; 0: it never does. */
    size_t rows[ISO_GEMM_WIDEN + 1] = {0};
    if (s.panels) /* widened B takes more than that of fewer rows in registers */
        rows[way_of(&s, machine)] = s.m;
    else if (s.m > iso_gemm_rows_in_place(&s, machine) &&
             (s.trans_b || b > floats_in_place(&s, machine)))
        rows[ISO_GEMM_PACK] = s.m;
    if (s.trans_b) {
        rows[ISO_GEMM_TRANSPOSED_B] = iso_min_size(s.m, machine->kernels->rows_in_place_bt);
        rows[ISO_GEMM_TRANSPOSED_C] = iso_min_size(s.m, ISO_GEMM_ROW_BLOCK);
    } else if (!s.panels) {
        rows[ISO_GEMM_IN_PLACE] = s.m;
        rows[ISO_GEMM_STREAMS] = b > ISO_L2_FLOATS ? iso_min_size(s.m, ISO_GEMM_STREAM_ROWS) : 0;
    }
    *floats = 0;
    for (enum iso_gemm_way way = 0; way <= ISO_GEMM_WIDEN; way++) {
        if (rows[way] == 0)
            continue;
        const size_t tasks = tasks_of(rows[way], s.n, s.k, s.threads);
        const size_t n = way == ISO_GEMM_STREAMS ? s.n / tasks + (size_t)4 * ISO_PANEL : s.n;
        struct iso_gemm_plan p = {.way = way};
        size_t these, most = 0;
        for (int groups = 0; groups < 2; groups++) { /* which have no own sums */
            p.group = groups ? group_of(way, &s, rows[way], machine) : 0;
            set_scratch(&p, machine->kernels, rows[way], n, s.k, reads_a_in_place(way, s.trans_a),
                        sums && !p.group);
            most = p.task_floats > most ? p.task_floats : most;
        }
        if (way == ISO_GEMM_STREAMS && tasks > 1 && TUNED(machine, by_row)) {
            const size_t few = iso_min_size(rows[way], ISO_GEMM_FEW_ROWS);
            const size_t by_row = iso_min_size(few * s.n, TUNED(machine, by_row));
            const size_t by_k = blocks_by_k(s.k, tasks) * block_floats_by_k(few, by_row);
            most = by_k > most ? by_k : most;
        }
        if (iso_mul_overflows(&these, tasks, most))
            return ISOBIT_E_OVERFLOW;
        *floats = these > *floats ? these : *floats;
    }
    return ISOBIT_OK;
}
