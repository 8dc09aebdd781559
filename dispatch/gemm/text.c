/* SPDX-License-Identifier: MIT
 *
 * A plan in words, for ISOBIT_VERBOSE=2, iso_explain_gemm_f32 and the golden plans of the tests.
 */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>

const char *iso_gemm_way_text(enum iso_gemm_way way) {
    switch (way) {
    case ISO_GEMM_PANELS: return "packed B";
    case ISO_GEMM_IN_PLACE: return "B in place";
    case ISO_GEMM_PREFETCH: return "B in place and prefetched";
    case ISO_GEMM_STREAMS: return "along rows of B";
    case ISO_GEMM_PACK: return "packs B by blocks";
    case ISO_GEMM_PACK_SHARED: return "packs B for all tasks";
    case ISO_GEMM_TRANSPOSED_B: return "transposed B in registers";
    case ISO_GEMM_TRANSPOSED_C: return "transposed product that packs A";
    }
    return "";
}

void iso_text_add(struct iso_text *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const size_t left = t->used < t->bytes ? t->bytes - t->used : 0;
    const int length = vsnprintf(left ? t->text + t->used : NULL, left, format, arguments);
    va_end(arguments);
    t->used += length > 0 ? (size_t)length : 0;
}

/* Heights of the strips of a block: "8 8 4", "12x8 4". */
static void add_strips(struct iso_text *t, const struct iso_gemm_strips *s,
                       const struct iso_gemm_plan *plan, const struct iso_gemm_machine *machine,
                       size_t m) {
    size_t height = 0, count = 0;
    for (size_t i = 0, rows; i < m; i += rows) {
        rows = i == 0 && s->packing ? plan->mr : iso_gemm_strip_rows(s, plan, machine, m, m - i);
        if (rows != height && count)
            iso_text_add(t, count > 1 ? " %zux%zu" : " %.0zu%zu", count > 1 ? count : 0, height);
        count = rows == height ? count + 1 : 1, height = rows;
    }
    iso_text_add(t, count > 1 ? " %zux%zu" : " %.0zu%zu", count > 1 ? count : 0, height);
}

static void add_block(struct iso_text *t, const struct iso_gemm_shape *shape,
                      const struct iso_gemm_plan *plan, const struct iso_gemm_machine *machine) {
    const size_t n = plan->shared ? iso_min_size(shape->n, plan->shared) : shape->n;
    const size_t m = iso_min_size(shape->m, plan->rows), columns = iso_min_size(n, plan->columns);
    const struct iso_gemm_strips s = iso_gemm_strips(plan, machine, m, columns, n * shape->k,
                                                     shape->trans_b && !plan->shared, 1);
    iso_text_add(t, "; strips of rows");
    add_strips(t, &s, plan, machine, m);
    if (s.columns < columns)
        iso_text_add(t, "; %zu columns of B at a time", s.columns);
    if (s.packing)
        iso_text_add(t, "; the first strip packs");
    if (s.prefetching)
        iso_text_add(t, "; %zu of them prefetch", s.prefetching);
    else if (s.prefetch)
        iso_text_add(t, "; prefetch between them");
}

void iso_gemm_plan_text(struct iso_text *t, const struct iso_gemm_shape *shape,
                        const struct iso_gemm_plan *plan, const struct iso_gemm_machine *machine) {
    const struct iso_kernels *kernels = machine->kernels;
    iso_text_add(t, "%s; tasks %zu", iso_gemm_way_text(plan->way), plan->tasks);
    if (plan->shared)
        iso_text_add(t, "; %zu columns packed at a time", plan->shared);
    if (plan->way == ISO_GEMM_TRANSPOSED_C)
        iso_text_add(t, "; blocks of %zu columns; %zu rows of A in lanes", plan->columns,
                     iso_gemm_rows_in_lanes(kernels, shape->m, shape->ldb));
    else if (plan->way == ISO_GEMM_STREAMS)
        iso_text_add(t, "; blocks of %zu columns; strips of %zu rows; %zu rows of B side by side",
                     plan->columns, plan->mr, plan->streams);
    else if (!plan->single)
        iso_text_add(t, "; blocks of %zu x %zu", plan->rows, plan->columns);
    if (plan->way != ISO_GEMM_TRANSPOSED_C && plan->way != ISO_GEMM_STREAMS)
        add_block(t, shape, plan, machine);
    if (!plan->a_in_place && plan->way != ISO_GEMM_TRANSPOSED_C)
        iso_text_add(t, "; A in strips");
}

void iso_gemm_why_text(struct iso_text *t, const struct iso_gemm_shape *s,
                       const struct iso_gemm_plan *plan, const struct iso_gemm_machine *machine) {
    static const char *const levels[] = {"L2", "L3", "memory"};
    const size_t most = iso_gemm_rows_in_place(s, machine);
    const char *plural = most == 1 ? "" : "s";
    iso_text_add(t, "; B of %zu KiB from %s", s->n * s->k * sizeof(float) / 1024,
                 levels[iso_gemm_level_of_b(s)]);
    switch (plan->way) {
    case ISO_GEMM_PANELS: break;
    case ISO_GEMM_IN_PLACE:
    case ISO_GEMM_PREFETCH:
    case ISO_GEMM_TRANSPOSED_B:
        if (s->m <= most)
            iso_text_add(t, "; packing it pays for more than %zu row%s of A", most, plural);
        else
            iso_text_add(t, "; it is too small for packing to pay");
        break;
    case ISO_GEMM_STREAMS: iso_text_add(t, "; few rows of A read it in long runs"); break;
    case ISO_GEMM_PACK:
        iso_text_add(t, "; packing it pays for more than %zu row%s of A", most, plural);
        break;
    case ISO_GEMM_PACK_SHARED:
        iso_text_add(t, s->trans_a || s->own_sums
                            ? "; a transposed A or an epilogue that reads C uses it more than once"
                            : "; each thread has few columns of its own");
        break;
    case ISO_GEMM_TRANSPOSED_C: iso_text_add(t, "; A and C are small beside it"); break;
    }
}
