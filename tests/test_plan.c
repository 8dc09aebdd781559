/* SPDX-License-Identifier: MIT
 *
 * Plans of matrix products: tests/data/plans has those of some shapes on three kinds of machines,
 * so that a change of a plan shows, also on machines that are not at hand. And what must
 * hold of every plan: its blocks cover the product, and its scratch is what callers are told.
 *
 * test_plan DIRECTORY compares; test_plan --write DIRECTORY writes the files anew, those of the
 * sets that are compiled in.
 */
#include "gemm/text.h"

#include "check.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const classes[ISO_GEMM_CLASSES] = {"server", "small-l1", "other"};
enum { MACHINES = ISO_GEMM_CLASSES };

static const struct iso_kernels *const sets[] = {
#define ISA(name, ...) &iso_kernels_##name,
#define LEVEL(...) /* has the plans of its set */
#include "isas.def"
#undef ISA
};

/* What models do: projections, feed-forward layers, logits; prompts and steps; odd shapes. */
struct layout {
    const char *name;
    int trans_a, trans_b, panels, own_sums, w16, q, b16;
};
static const struct layout layouts[] = {
    {"linear", 0, 0, 1, 0, 0, 0, 0},  {"nn", 0, 0, 0, 0, 0, 0, 0},
    {"nt", 0, 1, 0, 0, 0, 0, 0},      {"tn", 1, 0, 0, 0, 0, 0, 0},
    {"nn beta", 0, 0, 0, 1, 0, 0, 0}, {"nt beta", 0, 1, 0, 1, 0, 0, 0},
    {"w16", 0, 0, 1, 0, 1, 0, 0},     {"q8", 0, 0, 1, 0, 0, 8, 0},
    {"q4", 0, 0, 1, 0, 0, 4, 0},      {"b16", 0, 0, 1, 0, 1, 0, 1}};
static const size_t rows[] = {1, 2, 5, 8, 12, 16, 24, 100, 512};
static const size_t matrices[][2] = {{64, 64},    {512, 512},   {1000, 300},   {2048, 512},
                                     {512, 2048}, {4096, 4096}, {11008, 4096}, {37000, 512}};

#define COUNT(a) (sizeof(a) / sizeof *(a))

static struct iso_gemm_shape shape_of(size_t m, const size_t *matrix, const struct layout *layout,
                                      size_t threads) {
    return (struct iso_gemm_shape){.m = m,
                                   .n = matrix[0],
                                   .k = matrix[1],
                                   .ldb = layout->trans_b ? matrix[1] : matrix[0],
                                   .threads = threads,
                                   .trans_a = layout->trans_a,
                                   .trans_b = layout->trans_b,
                                   .panels = layout->panels,
                                   .own_sums = layout->own_sums,
                                   .w16 = layout->w16,
                                   .b16 = layout->b16,
                                   .q = layout->q};
}

/* The lines of a product; machines with the same plan share one. */
static void write_product(FILE *file, const struct iso_kernels *set,
                          const struct iso_gemm_shape *shape, const char *layout) {
    char texts[MACHINES][400];
    for (size_t i = 0; i < MACHINES; i++) {
        const struct iso_gemm_machine machine = iso_gemm_machine_of(set, (enum iso_gemm_class)i);
        const struct iso_gemm_plan plan = iso_gemm_plan(shape, &machine);
        struct iso_text text = {texts[i], sizeof texts[i], 0};
        iso_gemm_plan_text(&text, shape, &plan, &machine);
    }
    for (size_t i = 0; i < MACHINES; i++) {
        char names[100] = "";
        size_t same = 0;
        bool first = true;
        for (size_t j = 0; j < MACHINES; j++) {
            if (strcmp(texts[i], texts[j]) != 0)
                continue;
            first = first && j >= i;
            same++;
            strcat(strcat(names, " "), classes[j]);
        }
        if (first)
            fprintf(file, "%zux%zux%zu %s, %zu thread%s%s%s: %s\n", shape->m, shape->n, shape->k,
                    layout, shape->threads, shape->threads == 1 ? "" : "s",
                    same == MACHINES ? "" : ",", same == MACHINES ? "" : names, texts[i]);
    }
}

static void write_all(FILE *file, const struct iso_kernels *set) {
    for (size_t x = 0; x < COUNT(matrices); x++)
        for (size_t i = 0; i < COUNT(rows); i++)
            for (size_t l = 0; l < COUNT(layouts); l++) {
                /* Half of the rarer ones, in turns, and with one thread or four. */
                if ((x + i + l) % 2 && layouts[l].own_sums | layouts[l].trans_a)
                    continue;
                const struct iso_gemm_shape shape =
                    shape_of(rows[i], matrices[x], &layouts[l], (x + i) % 3 ? 1 : 4);
                write_product(file, set, &shape, layouts[l].name);
            }
}

static FILE *open_file(const char *directory, const struct iso_kernels *set, const char *mode) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.txt", directory, set->name);
    FILE *file = fopen(path, mode);
    if (!file)
        perror(path);
    return file;
}

static int compare(const char *directory, const struct iso_kernels *set) {
    FILE *file = open_file(directory, set, "r"), *now = tmpfile();
    if (!file || !now)
        return 1;
    write_all(now, set);
    rewind(now);
    char expected[600], line[600];
    size_t lines = 0, different = 0;
    while (fgets(line, sizeof line, now)) {
        const bool found = fgets(expected, sizeof expected, file);
        lines++;
        if ((!found || strcmp(expected, line) != 0) && different++ < 10)
            printf("plan: %s: expected %s      found    %s", set->name,
                   found ? expected : "the end\n", line);
    }
    while (fgets(expected, sizeof expected, file))
        different++;
    fclose(file), fclose(now);
    printf("plan: %s: %zu lines, %zu differ\n", set->name, lines, different);
    return different != 0 || lines < 300;
}

/* ----------------------------------------------------------------------------- of every plan */

static uint64_t state = 1;
static size_t below(size_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state >> 33) % n;
}
static size_t size_below(size_t most) { return 1 + below((size_t)1 << (1 + below(17))) % most; }

static int failures;
static void require(bool holds, const char *what, const struct iso_gemm_shape *s,
                    const struct iso_gemm_machine *machine) {
    if (holds || ++failures > 20)
        return;
    printf("plan: %s %zux%zux%zu ldb %zu threads %zu%s%s%s%s on %s: %s\n", machine->kernels->name,
           s->m, s->n, s->k, s->ldb, s->threads, s->trans_a ? " trans_a" : "",
           s->trans_b ? " trans_b" : "",
           s->b16      ? " b16"
           : s->w16    ? " w16"
           : s->q      ? " q"
           : s->panels ? " panels"
                       : "",
           s->own_sums ? " own_sums" : "", classes[machine->class], what);
}

static void check_strips(const struct iso_gemm_shape *s, const struct iso_gemm_plan *p,
                         const struct iso_gemm_machine *machine) {
    const struct iso_kernels *kernels = machine->kernels;
    const size_t n = iso_min_size(p->columns, p->shared ? iso_min_size(s->n, p->shared) : s->n);
    for (size_t m = 1; m <= iso_min_size(s->m, p->rows); m = m < 40 ? m + 1 : m * 2) {
        const struct iso_gemm_strips strips =
            iso_gemm_strips(p, machine, m, n, s->n * s->k, s->trans_b && !p->shared);
        size_t most = p->a_in_place ? kernels->direct_mr : kernels->mr;
        if (p->way == ISO_GEMM_W16)
            most = kernels->w16_mr;
        if (p->way == ISO_GEMM_B16) /* a block is one */
            most = p->rows;
        if (p->way == ISO_GEMM_Q)
            most = kernels->q_mr;
        if (p->way == ISO_GEMM_TRANSPOSED_B)
            most = iso_min_size(most, kernels->rows_in_place_bt);
        for (size_t i = 0, rows_now, left = m; left; i += rows_now, left = m - i) {
            rows_now = iso_gemm_strip_rows(&strips, p, machine, m, left);
            require(rows_now > 0 && rows_now <= left && rows_now <= most, "rows of a strip", s,
                    machine);
        }
        for (size_t left = n, columns; left; left -= columns) {
            columns = iso_gemm_part_columns(&strips, left);
            const size_t unit = s->w16 ? ISO_WIDE_PANEL : ISO_PANEL;
            require(columns > 0 && columns <= left && (columns == left || columns % unit == 0),
                    "columns of a part", s, machine);
            /* Floats for what a task packs, and pointers for the tiles of a strip. */
            require(p->way != ISO_GEMM_PACK || columns <= ISO_GEMM_COLUMN_BLOCK, "own columns", s,
                    machine);
            require(p->way != ISO_GEMM_WIDEN || columns <= ISO_GEMM_PART_COLUMNS, "wide columns", s,
                    machine);
            require(!strips.linear || columns < ISO_GEMM_COLUMN_BLOCK + ISO_LINEAR_COLUMNS,
                    "columns of a linear part", s, machine);
        }
    }
}

static void check_plans(void) {
    int looked_at = 0;
    for (int i = 0; i < 200000; i++) {
        const struct iso_gemm_machine machine =
            iso_gemm_machine_of(sets[below(COUNT(sets))], (enum iso_gemm_class)below(MACHINES));
        struct iso_gemm_shape s = {.m = size_below(5000),
                                   .n = size_below(70000),
                                   .k = size_below(9000),
                                   .threads = 1 + below(16),
                                   .panels = below(4) == 0,
                                   .own_sums = below(4) == 0};
        s.trans_a = !s.panels && below(3) == 0, s.trans_b = !s.panels && below(2);
        s.w16 = s.panels && below(2);
        s.b16 = s.w16 && below(2);
        s.q = s.panels && !s.w16 ? (int)below(3) * 4 : 0;
        s.ldb = s.trans_b ? s.k : s.n;
        s.ldb = below(2) ? s.ldb : iso_round_up(s.ldb, 1024);
        size_t floats = 0, promised = 0, fewer = 0;
        /* B or C that 32 bits cannot address: operations refuse it, there is no plan to look at. */
        if (iso_mul_overflows(&floats, s.ldb, s.trans_b ? s.n : s.k) ||
            iso_mul_overflows(&floats, s.m, s.n))
            continue;
        looked_at++;
        const struct iso_gemm_plan p = iso_gemm_plan(&s, &machine);
        require(p.columns > 0 && p.rows > 0 && p.tasks > 0, "blocks", &s, &machine);
        require(!s.w16 || p.single || p.columns % ISO_WIDE_PANEL == 0, "wide panels", &s, &machine);
        require(p.tasks == 1 || p.tasks == s.threads, "tasks", &s, &machine);
        require(!p.shared == (p.way != ISO_GEMM_PACK_SHARED), "shared columns", &s, &machine);
        require(!(p.a_in_place && s.trans_a), "a transposed A is never in place", &s, &machine);
        require(!p.single || p.task_floats == 0, "a single block has no scratch", &s, &machine);
        require(!s.own_sums || p.way == ISO_GEMM_TRANSPOSED_C ||
                    p.task_floats >= iso_min_size(s.m, p.rows) * iso_min_size(s.n, p.columns),
                "room for the sums of a block", &s, &machine);
        struct iso_gemm_shape asked = s;
        asked.ldb = 0, asked.own_sums = 0;
        if (iso_gemm_plan_floats(&floats, &p, s.k) ||
            iso_gemm_promise(&promised, &asked, &machine, s.own_sums))
            require(false, "status", &s, &machine);
        require(floats <= promised, "no more scratch than promised", &s, &machine);
        asked.m = 1 + below(s.m);
        (void)iso_gemm_promise(&fewer, &asked, &machine, s.own_sums);
        require(fewer <= promised, "fewer rows need no more", &s, &machine);
        if (i % 8 == 0 && p.way != ISO_GEMM_STREAMS && p.way != ISO_GEMM_TRANSPOSED_C)
            check_strips(&s, &p, &machine);
    }
    printf("plan: %d plans, %d failures\n", looked_at, failures);
    if (looked_at < 199000)
        failures++, puts("plan: too few");
}

int main(int argc, char **argv) {
    const bool writes = argc == 3 && strcmp(argv[1], "--write") == 0;
    if (argc != 2 && !writes) {
        fprintf(stderr, "usage: test_plan [--write] DIRECTORY\n");
        return 2;
    }
    int bad = 0;
    for (size_t i = 0; i < COUNT(sets); i++) {
        if (!writes) {
            bad |= compare(argv[1], sets[i]);
            continue;
        }
        FILE *file = open_file(argv[2], sets[i], "w");
        if (!file)
            return 1;
        write_all(file, sets[i]);
        bad |= fclose(file) != 0;
    }
    if (!writes)
        check_plans();
    return bad || failures;
}
