/* SPDX-License-Identifier: MIT
 *
 * What a product prefetches of B is what it reads next, all of it, once, and nothing else. Kernels
 * that note what they would read and prefetch stand in for a set's own, so that nothing is computed
 * and every set and kind of core is looked at.
 */
#include "few_bits.h"

#include "packed_weights.h"
#include "strips.h"

#include <stdbool.h>

enum { LINE = 64, MOST_PARTS = 200 };

static const struct iso_kernels *const sets[] = {
#define ISA(name, ...) &iso_kernels_##name,
#define LEVEL(...) /* has the ways of its set */
#include "isas.def"
#undef ISA
};

/* A block's parts of B, from 1 on, are found out when it runs for the first time; when it runs
 * again, what is prefetched during each of them is compared with the next one. */
static struct {
    const struct iso_product *t;
    struct iso_gemm_strips strips;
    const char *b;
    size_t lines;         /* of B, and of what follows it */
    uint16_t *part;       /* that reads a line first, or 0 */
    unsigned char *ahead; /* how often the part at hand has prefetched it */
    size_t columns[MOST_PARTS], steps[MOST_PARTS];
    bool begins_rows[MOST_PARTS]; /* of a row-major B: its first columns */
    size_t now, last;             /* parts */
    bool again;
    size_t row;                        /* of the strip before */
    size_t column;                     /* the first one */
    size_t tiles, shares, share_lines; /* of the part at hand */
    size_t found;                      /* shares, or strips that tell their kernel to prefetch */
    bool unaligned;
} block;

static size_t line_of(const void *at) {
    const size_t line = (size_t)((const char *)at - block.b) / LINE;
    assert_true((const char *)at >= block.b && line < block.lines);
    return line;
}

static bool is_b(const void *at) {
    return (const char *)at >= block.b && (const char *)at < block.b + block.lines * LINE;
}

/* Lines that follow each other; those between are no run. */
static size_t runs_of(size_t part, size_t *longest) {
    size_t runs = 0, length = 0;
    *longest = 0;
    for (size_t i = 0; i < block.lines; i++) {
        length = block.part[i] == part ? length + 1 : 0;
        runs += length == 1;
        *longest = length > *longest ? length : *longest;
    }
    return runs;
}

/* All is there that the next part reads, if there are tiles for it, and nothing else. */
static void check_part(void) {
    const bool packs = block.t->plan.way == ISO_GEMM_PACK;
    const size_t next = block.now + 1;
    if (block.strips.prefetching == 0 || next > block.last) {
        assert_int_equal(block.shares, 0);
        return;
    }
    size_t lines, runs = runs_of(next, &lines), missing = 0, again = 0, beyond = 0;
    if (packs)
        runs = (block.columns[next] + ISO_PANEL - 1) / ISO_PANEL, lines = block.steps[next];
    assert_true(block.shares <= block.tiles);
    block.found += block.shares;
    for (size_t i = 0; i < block.lines; i++) {
        const bool wanted = block.part[i] == next;
        missing += wanted && !block.ahead[i];
        again += wanted && block.ahead[i] > 1;
        if (wanted || !block.ahead[i])
            continue;
        beyond++; /* the rest of a share, or steps that the next block of k has not */
        if (packs)
            assert_true(block.steps[next] < block.steps[block.now] ||
                        (block.part[i] && block.part[i] < next));
        else
            assert_true(i > 0 && block.ahead[i - 1]);
    }
    assert_int_equal(again, 0);
    if (block.tiles < runs) {
        assert_int_equal(block.shares, block.tiles);
        return;
    }
    /* What another part has read of a line is not asked again, but the first of a row has none. */
    if (packs && block.unaligned && block.begins_rows[next])
        assert_true(missing <= block.steps[next]);
    else
        assert_int_equal(missing, 0);
    assert_true(runs > 0);
    if (!packs && runs > 0) {
        const size_t each = block.tiles / runs;
        assert_true(block.share_lines <= (lines + each - 1) / each);
        assert_true(beyond < runs * block.share_lines);
    }
}

static void begin_part(size_t columns, size_t steps) {
    if (block.again && block.now)
        check_part();
    block.now++;
    assert_true(block.now < MOST_PARTS);
    if (!block.again)
        block.columns[block.now] = columns, block.steps[block.now] = steps;
    block.tiles = block.shares = block.share_lines = 0;
    memset(block.ahead, 0, block.lines);
}

static void reads(const void *from, size_t bytes) {
    for (size_t i = line_of(from), last = line_of((const char *)from + bytes - 1); i <= last; i++)
        if (!block.part[i])
            block.part[i] = (uint16_t)block.now;
}

static void reads_panels(const float *b, size_t bps, size_t n, size_t k) {
    for (size_t j = 0; j < n && is_b(b); j += ISO_PANEL)
        reads(b + j / ISO_PANEL * bps, k * ISO_PANEL * sizeof *b);
}

/* The first strip of some panels begins a part; it may be several tiles side by side. */
static void maybe_begin(const float *c, const float *b, size_t n, size_t k) {
    if (!is_b(b))
        return;
    const size_t row = (size_t)(c - block.t->c) / block.t->ldc;
    if (row == 0 && block.row != 0)
        begin_part(n, k);
    block.row = row;
}

/* ------------------------------------------------------------------------------------- kernels */

static void linear(float *c, size_t ldc, const float *a, size_t lda, const float *b, size_t bps,
                   size_t n, size_t k, int add, const float *bias, int relu,
                   const float *const *prefetch, size_t prefetch_bytes, size_t prefetch_ld,
                   int interleaved) {
    (void)ldc, (void)a, (void)lda, (void)add, (void)bias, (void)relu;
    assert_true(n > 0 && n % ISO_LINEAR_COLUMNS == 0 && k > 0); /* as kernels.h has it */
    maybe_begin(c, b, n, k);
    assert_int_equal(interleaved, TUNED(&block.t->machine, interleaved));
    reads_panels(b, bps, n, k);
    assert_true(!prefetch || prefetch[0]);
    for (size_t tile = 0; tile < n / ISO_LINEAR_COLUMNS; tile++) {
        const float *at = prefetch ? prefetch[tile] : NULL;
        block.tiles++;
        if (!at)
            continue;
        const size_t lines = prefetch_ld ? k : prefetch_bytes / LINE;
        assert_true(lines > 0 && (prefetch_ld || prefetch_bytes % LINE == 0));
        for (size_t i = 0; i < lines; i++)
            block.ahead[line_of(prefetch_ld ? at + i * prefetch_ld : at + i * ISO_PANEL)]++;
        block.shares++, block.share_lines = lines;
    }
}

static void direct(float *c, size_t ldc, const float *a, size_t lda, const float *b, size_t bs,
                   size_t bps, size_t m, size_t n, size_t k, int mode) {
    (void)ldc, (void)a, (void)lda, (void)m, (void)mode;
    assert_int_equal(bs, ISO_PANEL);
    maybe_begin(c, b, n, k);
    reads_panels(b, bps, n, k);
}

static void widen(float *panels, const uint16_t *b, size_t bps, size_t n, size_t k, int type) {
    (void)panels, (void)type;
    begin_part(n, k);
    for (size_t j = 0; j < n; j += ISO_WIDE_PANEL)
        reads(b + j / ISO_WIDE_PANEL * bps, k * ISO_WIDE_PANEL * sizeof *b);
}

static void dequantise(float *panels, const uint32_t *b, size_t bps, size_t n, size_t k, int type) {
    (void)panels;
    begin_part(n, k);
    for (size_t j = 0; j < n; j += ISO_PANEL)
        reads(b + j / ISO_PANEL * bps, k / iso_q_block(type) * iso_q_words(type) * sizeof *b);
}

/* The columns that the first strip does not pack; it follows. */
static void pack(float *dst, const float *src, size_t si, size_t sp, size_t n, size_t k,
                 size_t width) {
    (void)dst, (void)width;
    assert_int_equal(si, 1);
    begin_part(n, k);
    block.begins_rows[block.now] = false;
    for (size_t p = 0; p < k && n; p++)
        reads(src + p * sp, n * sizeof *src);
}

static void packing(float *c, size_t ldc, const float *a, size_t lda, const float *b, size_t ldb,
                    float *panels, size_t n, size_t k, int mode) {
    (void)c, (void)ldc, (void)a, (void)lda, (void)panels;
    assert_int_equal(mode & ISO_DIRECT_BEYOND_L2, block.strips.packing_mode);
    if (!block.again)
        block.columns[block.now] += n;
    block.begins_rows[block.now] =
        (size_t)((const char *)b - block.b) / sizeof *b % ldb == block.column;
    for (size_t p = 0; p < k; p++)
        reads(b + p * ldb, n * sizeof *b);
}

/* Weights that come from beyond L2 do so for the first strip of a block alone. */
static void check_mode(const float *c, int mode) {
    const bool first = (size_t)(c - block.t->c) < block.t->ldc;
    assert_int_equal(mode & ISO_DIRECT_BEYOND_L2, first ? block.strips.direct_mode : 0);
    block.found += first && block.strips.direct_mode;
}

static void w16(float *c, size_t ldc, const float *a, size_t lda, const uint16_t *b, size_t bps,
                size_t m, size_t n, size_t k, int type, int mode) {
    (void)ldc, (void)a, (void)lda, (void)b, (void)bps, (void)m, (void)n, (void)k, (void)type;
    check_mode(c, mode);
}

static void q(float *c, size_t ldc, const float *a, size_t lda, const uint32_t *b, size_t bps,
              size_t m, size_t n, size_t k, int type, int mode) {
    (void)ldc, (void)a, (void)lda, (void)b, (void)bps, (void)m, (void)n, (void)k, (void)type;
    check_mode(c, mode);
}

/* A last panel of few columns, which goes as a strip over rows of A; no block prefetches it. */
static void strip_bt(float *c, size_t ldc, const float *a, size_t as, const float *b, size_t ldb,
                     size_t m, size_t n, size_t k, int mode) {
    (void)c, (void)ldc, (void)a, (void)as, (void)b, (void)ldb, (void)m, (void)n, (void)k;
    (void)mode;
}

/* Those of a set that note what they would do. A set that this CPU lacks has no other to call. */
static struct iso_kernels noting_kernels(const struct iso_kernels *set) {
    struct iso_kernels k = *set;
#define KERNEL(type, name, args) k.name = NULL;
#include "kernels.def"
#undef KERNEL
    k.gemm_linear = linear, k.gemm_direct = direct, k.gemm_strip_bt = strip_bt;
    k.gemm_widen = widen, k.gemm_dequantise = dequantise;
    k.gemm_pack = pack, k.gemm_packing = packing;
    k.gemm_w16 = w16, k.gemm_q = q;
    return k;
}

/* -------------------------------------------------------------------------------------- blocks */

struct kind {
    enum iso_gemm_way way;
    int w16, q, type;
    size_t m, n, k, ldb;
};

/* Block by block of columns, as tasks do. Returns how many parts were prefetched, or how many
 * strips told their kernel to do so. */
static void check_product(const struct kind *s, const struct iso_gemm_machine *machine,
                          size_t threads) {
    const struct iso_epilogue e = {.alpha = 1};
    const bool packs = s->way == ISO_GEMM_PACK;
    struct iso_weights w = {NULL, s->n, s->k, s->w16, s->q, s->type, NULL};
    const size_t panel = iso_weights_panel(&w);
    const size_t size = s->w16 ? sizeof(uint16_t) : sizeof(float);
    /* Another block of rows, or two panels more: what may be prefetched for nothing. */
    const size_t bytes =
        size * (packs ? (s->k + ISO_K_BLOCK) * s->ldb : (s->n / ISO_PANEL + 2) * panel);
    const struct iso_gemm_shape shape = {.m = s->m,
                                         .n = s->n,
                                         .k = s->k,
                                         .ldb = s->ldb,
                                         .threads = threads,
                                         .panels = !packs,
                                         .w16 = s->w16,
                                         .q = s->q};
    const struct iso_gemm_plan plan = iso_gemm_plan(&shape, machine);
    if (plan.way != s->way)
        return;
    char *b = aligned_alloc(LINE, iso_round_up(bytes, LINE));
    float *c = malloc(s->m * s->n * sizeof *c), *a = malloc(s->m * s->k * sizeof *a);
    float *scratch = malloc((plan.task_floats + 1) * sizeof *scratch);
    w.data = b;
    const struct iso_product t = {.machine = *machine,
                                  .plan = plan,
                                  .m = s->m,
                                  .n = s->n,
                                  .k = s->k,
                                  .c = c,
                                  .ldc = s->n,
                                  .a = a,
                                  .ai = s->k,
                                  .ap = 1,
                                  .b = s->q || s->w16 ? NULL : (const float *)(const void *)b,
                                  .bs = packs ? s->ldb : ISO_PANEL,
                                  .bps = packs ? ISO_PANEL : panel,
                                  .w = &w,
                                  .e = &e};
    const size_t m = iso_min_size(s->m, plan.rows);
    block.t = &t, block.b = b, block.lines = bytes / LINE, block.unaligned = s->ldb % ISO_PANEL;
    block.part = malloc(block.lines * sizeof *block.part), block.ahead = malloc(block.lines);
    assert_true(a && b && c && scratch && block.part && block.ahead);
    for (size_t j = 0; j < s->n; j += plan.columns) {
        const size_t n = iso_min_size(s->n - j, plan.columns);
        block.strips = iso_gemm_strips(&plan, machine, m, n, s->n * s->k, 0);
        memset(block.part, 0, block.lines * sizeof *block.part);
        for (int again = 0; again < 2; again++) {
            block.now = 0, block.row = SIZE_MAX, block.column = j, block.again = again;
            iso_product_by_way(&t, 0, m, j, n, scratch, 0);
            block.last = block.now;
        }
        if (block.now)
            check_part();
    }
    free(a), free(b), free(c), free(scratch), free(block.part), free(block.ahead);
}

/* `tune` changes what decides on plans, for all kinds of cores. */
static void check_kinds_tuned(const struct kind *kinds, size_t count,
                              void tune(struct iso_gemm_tuning *t, size_t class)) {
    block.found = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t x = 0; x < COUNT(sets) * ISO_GEMM_CLASSES; x++) {
            const struct iso_kernels noting = noting_kernels(sets[x / ISO_GEMM_CLASSES]);
            struct iso_gemm_machine machine =
                iso_gemm_machine_of(&noting, (enum iso_gemm_class)(x % ISO_GEMM_CLASSES));
            struct iso_gemm_tuning tuning = *machine.tuning;
            tune(&tuning, machine.class);
            machine.tuning = &tuning;
            check_product(&kinds[i], &machine, 1);
            check_product(&kinds[i], &machine, 3);
        }
    assert_true(block.found > 0);
}

static void as_they_are(struct iso_gemm_tuning *t, size_t class) { (void)t, (void)class; }
static void check_kinds(const struct kind *kinds, size_t count) {
    check_kinds_tuned(kinds, count, as_they_are);
}

/* One group of rows, whose parts are the columns of a tile. */
static void in_a_group(struct iso_gemm_tuning *t, size_t class) {
    t->large[class] = 50, t->group_rows[class] = 64;
}
static void a_group_of_rows(void **unused) {
    (void)unused;
    static const struct kind kinds[] = {{ISO_GEMM_PANELS, 0, 0, 0, 60, 1000, 300, 0},
                                        {ISO_GEMM_PANELS, 0, 0, 0, 31, 970, 512, 0},
                                        {ISO_GEMM_PANELS, 0, 0, 0, 13, 3000, 100, 0}};
    check_kinds_tuned(kinds, COUNT(kinds), in_a_group);
}

static void packed_weights(void **unused) {
    (void)unused;
    static const struct kind kinds[] = {
        {ISO_GEMM_PANELS, 0, 0, 0, 100, 1000, 600, 0},
        {ISO_GEMM_PANELS, 0, 0, 0, 33, 480, 1100, 0},
        {ISO_GEMM_PANELS, 0, 0, 0, 24, 1000, 300, 0},
        {ISO_GEMM_PANELS, 0, 0, 0, 24, 401, 400, 0}, /* a panel of one */
        {ISO_GEMM_PANELS, 0, 0, 0, 17, 720, 1024, 0},
        {ISO_GEMM_PANELS, 0, 0, 0, 128, 300, 512, 0},
        {ISO_GEMM_PANELS, 0, 0, 0, 128, 1168, 325, 0}};
    check_kinds(kinds, COUNT(kinds));
}

static void rows_that_are_packed(void **unused) {
    (void)unused;
    static const struct kind kinds[] = {{ISO_GEMM_PACK, 0, 0, 0, 100, 1000, 600, 1024},
                                        {ISO_GEMM_PACK, 0, 0, 0, 100, 1008, 1100, 1009},
                                        {ISO_GEMM_PACK, 0, 0, 0, 40, 1120, 512, 1120},
                                        {ISO_GEMM_PACK, 0, 0, 0, 100, 4000, 600, 4000}};
    check_kinds(kinds, COUNT(kinds));
}

static void weights_of_16_bits(void **unused) {
    (void)unused;
    static const struct kind kinds[] = {{ISO_GEMM_WIDEN, 1, 0, 0, 100, 1000, 600, 0},
                                        {ISO_GEMM_WIDEN, 1, 0, 0, 40, 480, 500, 0},
                                        {ISO_GEMM_WIDEN, 1, 0, 0, 100, 993, 600, 0}};
    static const struct kind in_registers[] = {{ISO_GEMM_W16, 1, 0, 0, 20, 1000, 600, 0},
                                               {ISO_GEMM_W16, 1, 0, 0, 4, 1000, 600, 0}};
    check_kinds(kinds, COUNT(kinds));
    check_kinds(in_registers, COUNT(in_registers));
}

static void weights_in_groups(void **unused) {
    (void)unused;
    static const struct kind kinds[] = {
        {ISO_GEMM_WIDEN, 0, 8, 0, 100, 1000, 768, 0},
        {ISO_GEMM_WIDEN, 0, 8, 0, 100, 977, 768, 0},
        {ISO_GEMM_WIDEN, 0, 4, ISO_Q_4, 40, 480, 512, 0},
        {ISO_GEMM_WIDEN, 0, 4, ISO_Q_4 | ISO_Q_I8 | ISO_Q_OFFSETS, 100, 1000, 768, 0}};
    static const struct kind in_registers[] = {{ISO_GEMM_Q, 0, 4, ISO_Q_4, 4, 1000, 640, 0}};
    check_kinds(kinds, COUNT(kinds));
    check_kinds(in_registers, COUNT(in_registers));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_weights), cmocka_unit_test(a_group_of_rows),
        cmocka_unit_test(rows_that_are_packed), cmocka_unit_test(weights_of_16_bits),
        cmocka_unit_test(weights_in_groups)};
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
