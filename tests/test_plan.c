/* SPDX-License-Identifier: MIT
 *
 * Plans of matrix products: tests/data/plans has those of some shapes on three kinds of machines,
 * and a hash of many more, so that a change of a plan shows, also on machines that are not at hand.
 * And what must hold of every plan: its blocks cover the product, and its scratch is what callers
 * are told.
 *
 * test_plan DIRECTORY compares; test_plan --write DIRECTORY writes the files anew, those of the
 * sets that are compiled in.
 */
#include "plan_text.h"

#include "check.h"
#include "strips.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

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
                                   .lda = layout->trans_a ? m : matrix[1],
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

/* ------------------------------------------------------------------------------ of many plans */

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

static uint64_t state = 1;
static size_t below(size_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state >> 33) % n;
}
static size_t size_below(size_t most) { return 1 + below((size_t)1 << (1 + below(17))) % most; }

/* Around what plans compare with: of B, so many floats; of m and n, few or round. */
static struct iso_gemm_shape shape_at_an_edge(void) {
    static const size_t floats[] = {1 << 15, 1 << 17, 1 << 18, 1 << 19, 1 << 21, 5 << 20};
    static const size_t edges[] = {4,   8,   16,  32,  48,   64,   96,  128,
                                   144, 192, 256, 512, 1024, 2048, 4096};
    const size_t edge = edges[below(COUNT(edges))] + below(3) - 1;
    struct iso_gemm_shape s = {.m = below(3) ? size_below(300) : edge,
                               .k = below(3) ? size_below(2000) : 512 + below(3) - 1,
                               .threads = below(2) ? 1 : 1 + below(16),
                               .own_sums = below(4) == 0};
    s.n = floats[below(COUNT(floats))] / s.k + below(3);
    s.n = below(2)   ? s.n + (s.n == 0)
          : below(2) ? edges[below(COUNT(edges))] + below(3) - 1
                     : 1 + below(9000);
    s.n = iso_min_size(s.n, ((size_t)1 << 28) / s.m); /* as machines of 32 bits have it */
    const int b = (int)below(8);                      /* row-major, or transposed, or packed */
    s.trans_a = b < 6 && below(4) == 0, s.trans_b = b < 6 && b >= 4;
    s.panels = b >= 6;
    s.w16 = b == 6 && below(3) > 0, s.b16 = s.w16 && below(2);
    s.q = b == 7 && below(3) ? 4 << below(2) : 0;
    s.adds = s.own_sums && !s.panels && below(2);
    s.lda = s.trans_a ? s.m : s.k, s.ldb = s.trans_b ? s.k : s.n;
    s.lda = below(2) ? s.lda : iso_round_up(s.lda, 1024);
    s.ldb = below(2) ? s.ldb : iso_round_up(s.ldb, 1024);
    return s;
}

/* A plan in all that it decides, what a text says of it and what it leaves out. */
static void say_all(struct iso_text *t, const struct iso_gemm_shape *s,
                    const struct iso_gemm_machine *machine) {
    const struct iso_gemm_plan p = iso_gemm_plan(s, machine);
    iso_gemm_say(t->text, t->bytes, s, machine);
    t->used = strlen(t->text);
    size_t promised[2] = {SIZE_MAX, SIZE_MAX};
    struct iso_gemm_shape asked = *s;
    asked.lda = asked.ldb = 0, asked.own_sums = 0;
    for (int sums = 0; sums < 2; sums++)
        require(!iso_gemm_promise(&promised[sums], &asked, machine, sums), "status", s, machine);
    t->used +=
        (size_t)snprintf(t->text + t->used, t->bytes - t->used, "; %zu floats, %zu %zu promised",
                         p.task_floats, promised[0], promised[1]);
    if (p.way == ISO_GEMM_STREAMS || p.way == ISO_GEMM_TRANSPOSED_C)
        return;
    const size_t n = iso_min_size(p.columns, s->n);
    const struct iso_gemm_strips strips =
        iso_gemm_strips(&p, machine, iso_min_size(s->m, p.rows), n, s->n * s->k, s->trans_b);
    t->used += (size_t)snprintf(t->text + t->used, t->bytes - t->used, "; %zu %d %d %d",
                                strips.prefetching, strips.linear, strips.direct_mode,
                                strips.packing ? strips.packing_mode : 0);
    for (size_t left = n, parts = 0; left && parts < 4; parts++) {
        const size_t columns = iso_gemm_part_columns(&strips, left);
        t->used += (size_t)snprintf(t->text + t->used, t->bytes - t->used, " %zu", columns);
        left -= columns;
    }
}

/* A hash of many plans, which changes with any of them. */
static void write_hash(FILE *file, const struct iso_kernels *set) {
    enum { PLANS = 60000 };
    const uint64_t before = state;
    uint64_t hash = 0;
    state = 11;
    for (int i = 0; i < PLANS; i++) {
        char text[1000];
        const struct iso_gemm_machine machine =
            iso_gemm_machine_of(set, (enum iso_gemm_class)below(MACHINES));
        const struct iso_gemm_shape s = shape_at_an_edge();
        struct iso_text t = {text, sizeof text, 0};
        say_all(&t, &s, &machine);
        require(t.used < sizeof text, "a text too long", &s, &machine);
        hash = XXH3_64bits_withSeed(text, strlen(text), hash);
    }
    state = before;
    fprintf(file, "%d other plans: %016llx\n", PLANS, (unsigned long long)hash);
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
    write_hash(file, set);
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

static void check_strips(const struct iso_gemm_shape *s, const struct iso_gemm_plan *p,
                         const struct iso_gemm_machine *machine) {
    const struct iso_kernels *kernels = machine->kernels;
    const size_t n = iso_min_size(p->columns, s->n);
    const size_t all = iso_min_size(s->m, p->rows);
    for (size_t m = 1; m <= all; m = m < 40 || m == all ? m + 1 : iso_min_size(m * 2, all)) {
        const struct iso_gemm_strips strips =
            iso_gemm_strips(p, machine, m, n, s->n * s->k, s->trans_b);
        require(strips.group <= p->group && (strips.group > 0) == (p->group > 0) &&
                    p->group * iso_min_size(s->k, ISO_K_BLOCK) <= p->a_floats,
                "rows of a group", s, machine);
        require(!p->group || (p->a_in_place && !s->own_sums), "what a group is", s, machine);
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
            require(p->way != ISO_GEMM_B16 || rows_now == m, "a block of BF16 is one strip", s,
                    machine);
        }
        for (size_t left = n, columns; left; left -= columns) {
            columns = iso_gemm_part_columns(&strips, left);
            const size_t unit = s->w16 ? ISO_WIDE_PANEL : ISO_PANEL;
            require(columns > 0 && columns <= left && (columns == left || columns % unit == 0),
                    "columns of a part", s, machine);
            /* Floats for what a task packs, and pointers for the tiles of a strip. */
            require(p->way != ISO_GEMM_PACK ||
                        columns <= (p->group ? ISO_GEMM_GROUP_COLUMNS : ISO_GEMM_COLUMN_BLOCK),
                    "own columns", s, machine);
            require(p->way != ISO_GEMM_WIDEN || columns <= ISO_GEMM_PART_COLUMNS, "wide columns", s,
                    machine);
            require(strips.group || !(strips.linear || p->strip_sums) ||
                        columns < ISO_GEMM_STRIP_COLUMNS,
                    "columns of a linear part, or one whose sums wait", s, machine);
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
        s.adds = s.own_sums && !s.panels && below(2);
        s.lda = s.trans_a ? s.m : s.k, s.ldb = s.trans_b ? s.k : s.n;
        s.lda = below(2) ? s.lda : iso_round_up(s.lda, 1024);
        s.ldb = below(2) ? s.ldb : iso_round_up(s.ldb, 1024);
        size_t floats = 0, promised = 0, fewer = 0;
        /* B or C that 32 bits cannot address: operations refuse it, there is no plan to look at. */
        if (iso_mul_overflows(&floats, s.ldb, s.trans_b ? s.n : s.k) ||
            iso_mul_overflows(&floats, s.m, s.n))
            continue;
        looked_at++;
        const struct iso_gemm_plan p = iso_gemm_plan(&s, &machine);
        require(p.columns > 0 && p.rows > 0 && p.tasks > 0, "blocks", &s, &machine);
        require(!s.w16 || p.columns % ISO_WIDE_PANEL == 0, "wide panels", &s, &machine);
        require(p.tasks == 1 || p.tasks == s.threads, "tasks", &s, &machine);
        require(!(p.a_in_place && s.trans_a) && !(p.strips_in_place && !s.trans_a),
                "rows or columns of A in place", &s, &machine);
        const size_t rows_of_sums = p.strip_sums ? p.mr : p.rows;
        const size_t columns_of_sums = p.strip_sums ? ISO_GEMM_STRIP_COLUMNS : p.columns;
        require(p.strip_sums == (s.own_sums && !p.adds && s.k <= ISO_K_BLOCK && !s.b16 &&
                                 p.way != ISO_GEMM_TRANSPOSED_C),
                "sums that wait for a strip", &s, &machine);
        require(!p.adds == (!s.adds || s.k > ISO_K_BLOCK || p.way == ISO_GEMM_TRANSPOSED_C ||
                            p.way == ISO_GEMM_STREAMS),
                "tiles add to C", &s, &machine);
        require(!s.own_sums || p.adds || p.way == ISO_GEMM_TRANSPOSED_C ||
                    p.task_floats >=
                        iso_min_size(s.m, rows_of_sums) *
                            iso_min_size(s.n, iso_min_size(columns_of_sums, p.columns)),
                "room for the sums", &s, &machine);
        require((p.way != ISO_GEMM_STREAMS && p.way != ISO_GEMM_TRANSPOSED_C) || p.rows == s.m,
                "all rows, where the way runs them", &s, &machine);
        require(p.b_floats % ISO_LINE == 0 && p.b_floats + p.a_floats <= p.task_floats,
                "room for what is packed", &s, &machine);
        struct iso_gemm_shape asked = s;
        asked.lda = asked.ldb = 0, asked.own_sums = 0;
        if (iso_mul_overflows(&floats, p.task_floats, p.tasks) ||
            iso_gemm_promise(&promised, &asked, &machine, s.own_sums))
            require(false, "status", &s, &machine);
        require(floats <= promised, "no more scratch than promised", &s, &machine);
        asked.ldb = s.ldb; /* which is not known yet when callers ask */
        (void)iso_gemm_promise(&fewer, &asked, &machine, s.own_sums);
        require(fewer == promised, "the same with any ldb", &s, &machine);
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

/* Sizes that size_t does not hold, of matrices that nobody has or of work to be done; and what
 * neither the tables of our machines nor random shapes tell apart. */
static void check_edges(void) {
    enum { BITS = 8 * sizeof(size_t) };
    const size_t root = (size_t)1 << BITS / 2, cube = (size_t)1 << (BITS / 3 + 1);
    for (size_t i = 0; i < COUNT(sets) * MACHINES; i++) {
        const struct iso_gemm_machine machine =
            iso_gemm_machine_of(sets[i / MACHINES], (enum iso_gemm_class)(i % MACHINES));
        size_t floats = 0, more = 0;
        for (size_t x = 0; x < 6; x++) { /* C, A or B, and B transposed or not */
            const struct iso_gemm_shape s = {.m = x / 2 == 2 ? 1 : root / 2,
                                             .n = x / 2 == 1 ? 1 : root / 2,
                                             .k = x / 2 == 0 ? 1 : root / 2,
                                             .threads = 1,
                                             .trans_b = (int)x % 2};
            require(iso_gemm_promise(&floats, &s, &machine, 0) == ISOBIT_E_OVERFLOW,
                    "a matrix beyond memory", &s, &machine);
        }
        struct iso_gemm_shape s = {.m = cube, .n = cube, .k = cube, .ldb = cube, .threads = 4};
        require(iso_gemm_plan(&s, &machine).tasks == 4, "much work is for all", &s, &machine);
        struct iso_gemm_shape all = {.m = 1000, .n = 1000, .k = 1000, .threads = SIZE_MAX / 8};
        require(iso_gemm_promise(&floats, &all, &machine, 1) == ISOBIT_E_OVERFLOW,
                "scratch of all threads beyond memory", &all, &machine);
        /* Exactly what L2 has, and what few rows read in place. */
        const struct iso_gemm_shape l2 = {
            .m = 1, .n = 256, .k = 1024, .ldb = 1024, .threads = 1, .trans_b = 1};
        require(iso_gemm_plan(&l2, &machine).columns == 256, "all columns of L2", &l2, &machine);
        const struct iso_gemm_shape few = {
            .m = 2, .n = 16513, .k = 127, .ldb = 16513, .threads = 1};
        require(iso_gemm_plan(&few, &machine).way == ISO_GEMM_IN_PLACE, "few floats in place", &few,
                &machine);
        const struct iso_gemm_shape aliased = {
            .m = 8, .n = 1024, .k = 256, .ldb = 1024, .threads = 1};
        require(iso_gemm_plan(&aliased, &machine).way != ISO_GEMM_STREAMS, "no streams of L2",
                &aliased, &machine);
        s.panels = 1;
        require(iso_gemm_plan(&s, &machine).tasks == 4, "much work is for all", &s, &machine);
        s.w16 = 1;
        require(!iso_gemm_promise(&floats, &s, &machine, 0), "a promise", &s, &machine);
        struct iso_gemm_tuning other = *machine.tuning; /* in none of ours these two differ */
        const struct iso_gemm_machine tuned = {machine.kernels, &other, machine.class};
        struct iso_gemm_shape q = {.m = 3, .n = 64, .k = 64, .ldb = 64, .threads = 1, .panels = 1};
        other.rows_q4[machine.class] = 3, other.rows_q8[machine.class] = 2;
        for (q.q = 4; q.q <= 8; q.q += 4)
            require(iso_gemm_plan(&q, &tuned).way == (q.q == 4 ? ISO_GEMM_Q : ISO_GEMM_WIDEN),
                    "rows of 4 and 8 bits", &q, &tuned);
        /* A and twice C, of as many floats as B, and of fewer. */
        struct iso_gemm_shape c = {.m = 64, .n = 128, .k = 256, .threads = 1, .trans_b = 1};
        for (; c.k <= 257; c.k++) {
            c.ldb = c.k;
            require((iso_gemm_plan(&c, &machine).way == ISO_GEMM_TRANSPOSED_C) == (c.k > 256),
                    "a transposed C", &c, &machine);
        }
        char cut[301]; /* in its first piece, and behind that */
        for (size_t bytes = 30; bytes <= 60; bytes += 30) {
            memset(cut, 'x', sizeof cut - 1), cut[sizeof cut - 1] = 0;
            iso_gemm_say(cut, bytes, &c, &machine);
            require(strlen(cut) == bytes - 1 && strspn(cut + bytes, "x") >= 200, "a cut text", &c,
                    &machine);
        }
        s.m = s.n = root;
        require(!iso_gemm_promise(&more, &s, &machine, 0) && more >= floats, "more need no less",
                &s, &machine);
    }
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
        check_plans(), check_edges();
    return bad || failures;
}
