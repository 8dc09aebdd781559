/* SPDX-License-Identifier: MIT */
#include "strips.h"

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
    if (s->packing && left == m) /* the first one packs */
        return plan->mr;
    return s->linear || s->packing ? uneven_rows(s, machine, plan->mr, m, left)
                                   : iso_min_size(left, s->rows);
}

size_t iso_gemm_full_strips(const struct iso_gemm_strips *s, const struct iso_gemm_plan *plan,
                            const struct iso_gemm_machine *machine, size_t m) {
    const size_t mr = plan->mr;
    size_t full = 0;
    while (m - full * mr >= mr && uneven_rows(s, machine, mr, m, m - full * mr) == mr)
        full++;
    return full;
}

/* Of n rows or columns in as few parts as `most` allows, which are as large as each other. */
static size_t even_part(size_t n, size_t most, size_t unit) {
    const size_t parts = (n + most - 1) / most;
    return iso_min_size(iso_round_up((n + parts - 1) / parts, unit), most);
}

struct iso_gemm_strips iso_gemm_strips(const struct iso_gemm_plan *plan,
                                       const struct iso_gemm_machine *machine, size_t m, size_t n,
                                       size_t b_floats, int trans_b) {
    const size_t mr = plan->mr;
    const int panels = plan->way == ISO_GEMM_PANELS;
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
    s.full = iso_gemm_full_strips(&s, plan, machine, m);
    s.linear &= s.full > 0;
    if ((plan->way == ISO_GEMM_W16 || plan->way == ISO_GEMM_B16 || plan->way == ISO_GEMM_Q) &&
        b_floats > ISO_L2_FLOATS)
        s.direct_mode = ISO_DIRECT_BEYOND_L2;
    /* With one row and several tasks blocks are tiles, and what comes next is another task's. */
    if (plan->way == ISO_GEMM_TRANSPOSED_B && (m > 1 || plan->tasks == 1)) {
        s.direct_mode = plan->next;
        s.half =
            b_floats > ISO_L2_FLOATS && machine->kernels->half && m <= TUNED(machine, half_rows);
    }
    if (plan->way == ISO_GEMM_WIDEN)
        s.columns = ISO_GEMM_PART_COLUMNS;
    else if (plan->group)
        s.columns = even_part(n, ISO_GEMM_GROUP_COLUMNS, ISO_PANEL);
    else if (plan->way == ISO_GEMM_PACK || s.count > 1 || plan->strip_sums ||
             (plan->way == ISO_GEMM_B16 && m > ISO_GEMM_B16_ROWS))
        s.columns = ISO_GEMM_COLUMN_BLOCK;
    if (plan->group)
        s.group = even_part(m, plan->group, plan->mr), s.linear = 1, s.packing = 0;
    if (s.linear && b_floats > ISO_GEMM_CACHED_FLOATS)
        s.prefetching = s.full;
    else if (s.packing && s.full > 0)
        s.prefetching = s.full - 1;
    return s;
}

/* The last parts that gemm_linear has are long enough for its tiles to prefetch the next one. */
size_t iso_gemm_part_columns(const struct iso_gemm_strips *s, size_t left) {
    const size_t most = s->columns;
    if (!s->linear || s->group || most != ISO_GEMM_COLUMN_BLOCK || left >= 2 * most)
        return iso_min_size(left, most);
    return left < most + ISO_LINEAR_COLUMNS ? left : 2 * ISO_LINEAR_COLUMNS;
}
