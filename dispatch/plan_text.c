/* SPDX-License-Identifier: MIT
 *
 * A plan in words, for ISOBIT_VERBOSE=2, `isobit explain` and the golden plans of the tests.
 */
#include "plan_text.h"

#include "strips.h"

#include <stdarg.h>
#include <stdio.h>

static const char *way_text(enum iso_gemm_way way, int q) {
    switch (way) {
    case ISO_GEMM_PANELS: return "packed B";
    case ISO_GEMM_IN_PLACE: return "B in place";
    case ISO_GEMM_PREFETCH: return "B in place and prefetched";
    case ISO_GEMM_STREAMS: return "along rows of B";
    case ISO_GEMM_PACK: return "packs B by blocks";
    case ISO_GEMM_TRANSPOSED_B: return "transposed B in registers";
    case ISO_GEMM_W16: return "packed 16-bit B in registers";
    case ISO_GEMM_B16: return "packed BF16 B and rounded A, native";
    case ISO_GEMM_Q: return q == 4 ? "packed 4-bit B in registers" : "packed 8-bit B in registers";
    case ISO_GEMM_WIDEN:
        return q == 4   ? "dequantises packed 4-bit B by blocks"
               : q == 8 ? "dequantises packed 8-bit B by blocks"
                        : "widens packed 16-bit B by blocks";
    case ISO_GEMM_TRANSPOSED_C: return "transposed product that packs A";
    }
    return "";
}

static __attribute__((format(printf, 2, 3))) void add(struct iso_text *t, const char *format, ...) {
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
        rows = iso_gemm_strip_rows(s, plan, machine, m, m - i);
        if (rows != height && count)
            add(t, count > 1 ? " %zux%zu" : " %.0zu%zu", count > 1 ? count : 0, height);
        count = rows == height ? count + 1 : 1, height = rows;
    }
    add(t, count > 1 ? " %zux%zu" : " %.0zu%zu", count > 1 ? count : 0, height);
}

static void add_block(struct iso_text *t, const struct iso_gemm_shape *shape,
                      const struct iso_gemm_plan *plan, const struct iso_gemm_machine *machine) {
    const size_t n = shape->n, columns = iso_min_size(n, plan->columns);
    const size_t m = iso_min_size(shape->m, plan->rows);
    const struct iso_gemm_strips s =
        iso_gemm_strips(plan, machine, m, columns, n * shape->k, shape->trans_b);
    if (plan->way != ISO_GEMM_B16) {
        add(t, "; strips of rows");
        add_strips(t, &s, plan, machine, m);
    }
    if (s.columns < columns)
        add(t, "; %zu columns of B at a time", s.columns);
    if (s.group)
        add(t, "; %zu rows of A at a time", s.group);
    if (s.half)
        add(t, "; in vectors half as wide");
    if (s.packing)
        add(t, "; the first strip packs");
    if (plan->adds)
        add(t, "; tiles add to C");
    if (s.prefetching)
        add(t, "; %zu of them prefetch", s.prefetching);
}

void iso_gemm_plan_text(struct iso_text *t, const struct iso_gemm_shape *shape,
                        const struct iso_gemm_plan *plan, const struct iso_gemm_machine *machine) {
    const struct iso_kernels *kernels = machine->kernels;
    add(t, "%s; tasks %zu", way_text(plan->way, shape->q), plan->tasks);
    if (plan->way == ISO_GEMM_TRANSPOSED_C)
        add(t, "; blocks of %zu columns; %zu rows of A in lanes%s", plan->columns,
            iso_gemm_rows_in_lanes(kernels, shape->m, shape->ldb),
            plan->next ? "; B is prefetched" : "");
    else if (plan->way == ISO_GEMM_STREAMS)
        add(t, "; blocks of %zu columns; strips of %zu rows; %zu row%s of B side by side%s%s",
            plan->columns, plan->mr, plan->streams, plan->streams == 1 ? "" : "s",
            plan->half ? "; in vectors half as wide" : "", plan->by_k ? "; blocks of k" : "");
    else if (!iso_gemm_is_single(plan, shape->m, shape->n))
        add(t, "; blocks of %zu x %zu", plan->rows, plan->columns);
    if (plan->way != ISO_GEMM_TRANSPOSED_C && plan->way != ISO_GEMM_STREAMS)
        add_block(t, shape, plan, machine);
    if (!plan->a_in_place && !plan->strips_in_place && plan->way != ISO_GEMM_TRANSPOSED_C &&
        plan->way != ISO_GEMM_B16)
        add(t, "; A in strips");
}

/* A near B that is not in L2 is told as what it is. */
static const char *place_of_b(const struct iso_gemm_shape *s,
                              const struct iso_gemm_machine *machine) {
    const enum iso_gemm_level level = iso_gemm_level_of_b(s, machine);
    return level == ISO_GEMM_MEMORY                                 ? "memory"
           : level == ISO_GEMM_NEAR && s->n <= ISO_L2_FLOATS / s->k ? "L2"
                                                                    : "L3";
}

static void add_why(struct iso_text *t, const struct iso_gemm_shape *s,
                    const struct iso_gemm_plan *plan, const struct iso_gemm_machine *machine) {
    const size_t most = iso_gemm_rows_in_place(s, machine);
    const char *plural = most == 1 ? "" : "s";
    add(t, "; B of %zu KiB from %s",
        s->n * s->k *
            (size_t)(s->q     ? s->q
                     : s->w16 ? 16
                              : 32) /
            8192,
        place_of_b(s, machine));
    switch (plan->way) {
    case ISO_GEMM_PANELS:
    case ISO_GEMM_W16:
    case ISO_GEMM_B16:
    case ISO_GEMM_Q:
    case ISO_GEMM_WIDEN: break;
    case ISO_GEMM_IN_PLACE:
    case ISO_GEMM_PREFETCH:
    case ISO_GEMM_TRANSPOSED_B:
        if (s->m <= most)
            add(t, "; packing it pays for more than %zu row%s of A", most, plural);
        else
            add(t, "; it is too small for packing to pay");
        break;
    case ISO_GEMM_STREAMS: add(t, "; few rows of A read it in long runs"); break;
    case ISO_GEMM_PACK:
        add(t, "; packing it pays for more than %zu row%s of A", most, plural);
        break;
    case ISO_GEMM_TRANSPOSED_C: add(t, "; A and C are small beside it"); break;
    }
}

void iso_gemm_say(char *text, size_t bytes, const struct iso_gemm_shape *shape,
                  const struct iso_gemm_machine *machine) {
    struct iso_text t = {text, bytes, 0};
    const struct iso_gemm_plan plan = iso_gemm_plan(shape, machine);
    iso_gemm_plan_text(&t, shape, &plan, machine);
    add_why(&t, shape, &plan, machine);
}
