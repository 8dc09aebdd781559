/* SPDX-License-Identifier: MIT
 *
 * How often a product goes over its operands: what must be packed is packed once, B is read once,
 * and C has no pass for an epilogue that has nothing to do. Kernels that count stand in for a set's
 * own, so that every set and kind of core is looked at; none of this changes a result.
 */
#include "few_bits.h"

#include "gemm/product.h"

static const struct iso_kernels *const sets[] = {
#define ISA(name, ...) &iso_kernels_##name,
#define LEVEL(...) /* has the ways of its set */
#include "isas.def"
#undef ISA
};

/* Elements, but for `tall`, most rows of a strip or of a transposed B at a time, and modes. */
static struct {
    const float *a, *b;
    size_t a_floats, b_floats;
    size_t packed_a, packed_b, read_b, again_b, finished, tall;
    size_t prefetched;      /* of what gemm_strip_bt reads: with prefetches of the next rows, */
    size_t ahead;           /* of what comes later in these, */
    size_t whole;           /* in rows that are read whole, */
    size_t halved;          /* and with vectors half as wide */
    int modes, none;        /* of gemm_direct: some of all calls, and what all of them lack */
    size_t longest;         /* rows of B that gemm_strip reads at a time, */
    size_t by_row;          /* and what it reads of B in one run */
    size_t columns, narrow; /* of packed weights, and those that are computed as rows */
} seen;

static int lies_in(const float *at, const float *from, size_t floats) {
    return from && at >= from && at < from + floats;
}

static void zero(float *c, size_t ldc, size_t m, size_t n) {
    for (size_t i = 0; i < m; i++)
        memset(c + i * ldc, 0, n * sizeof *c);
}

static void pack(float *dst, const float *src, size_t si, size_t sp, size_t n, size_t k,
                 size_t width) {
    (void)si, (void)sp;
    zero(dst, 0, 1, (n + width - 1) / width * width * k);
    assert_true(n > 0 && k > 0);
    if (lies_in(src, seen.a, seen.a_floats))
        seen.packed_a += n * k;
    else if (lies_in(src, seen.b, seen.b_floats))
        seen.packed_b += n * k;
}

static void direct(float *c, size_t ldc, const float *a, size_t lda, const float *b, size_t bs,
                   size_t bps, size_t m, size_t n, size_t k, int mode) {
    (void)lda, (void)bs, (void)bps;
    assert_true(m > 0 && n > 0 && k > 0);
    if (lies_in(a, seen.b, seen.b_floats)) { /* a transposed B */
        seen.read_b += m * k;
        seen.tall = m > seen.tall ? m : seen.tall;
    } else if (lies_in(b, seen.b, seen.b_floats)) {
        seen.again_b += n * k;
        seen.columns = n;
    }
    seen.modes |= mode, seen.none &= ~mode;
    zero(c, ldc, m, n);
}

static void strip_bt(float *c, size_t ldc, const float *a, size_t as, const float *b, size_t ldb,
                     size_t m, size_t n, size_t k, int mode) {
    (void)a, (void)as, (void)ldb;
    assert_true(m > 0 && n > 0 && k > 0);
    if (lies_in(b, seen.a, seen.a_floats)) /* columns of C as rows */
        seen.narrow = m;
    if (lies_in(b, seen.b, seen.b_floats))
        seen.again_b += n * k;
    seen.prefetched += mode & ISO_DIRECT_NEXT ? n * k : 0;
    seen.ahead += mode & ISO_DIRECT_AHEAD ? n * k : 0;
    seen.whole += mode & ISO_DIRECT_WHOLE ? n * k : 0;
    zero(c, ldc, m, n);
}

static void strip_bt_half(float *c, size_t ldc, const float *a, size_t as, const float *b,
                          size_t ldb, size_t m, size_t n, size_t k, int mode) {
    strip_bt(c, ldc, a, as, b, ldb, m, n, k, mode);
    seen.halved += n * k;
}

static void strip(float *c, size_t ldc, const float *a, size_t as, const float *b, size_t bs,
                  size_t bps, size_t m, size_t n, size_t k, int mode) {
    (void)a, (void)as, (void)bs, (void)bps;
    assert_true(m > 0 && n > 0 && k > 0);
    seen.tall = m > seen.tall ? m : seen.tall;
    if (lies_in(b, seen.b, seen.b_floats))
        seen.read_b += n * k;
    seen.longest = k > seen.longest ? k : seen.longest;
    seen.by_row += mode & ISO_STRIP_BY_ROW ? n * k : 0;
    zero(c, ldc, m, n);
}

static void strip_half(float *c, size_t ldc, const float *a, size_t as, const float *b, size_t bs,
                       size_t bps, size_t m, size_t n, size_t k, int mode) {
    strip(c, ldc, a, as, b, bs, bps, m, n, k, mode);
    seen.halved += n * k;
}

static void linear(float *c, size_t ldc, const float *a, size_t lda, const float *b, size_t bps,
                   size_t n, size_t k, int add, const float *bias, int relu,
                   const float *const *prefetch, size_t prefetch_bytes, size_t prefetch_ld,
                   int interleaved) {
    (void)c, (void)ldc, (void)a, (void)lda, (void)b, (void)bps, (void)n, (void)k, (void)add;
    (void)bias, (void)relu, (void)prefetch, (void)prefetch_bytes, (void)prefetch_ld;
    (void)interleaved;
}

static void epilogue(float *c, size_t ldc, const float *t, size_t ldt, size_t m, size_t n,
                     const struct iso_epilogue *e) {
    (void)c, (void)ldc, (void)t, (void)ldt, (void)e;
    assert_true(m > 0 && n > 0);
    seen.finished += m * n;
}

typedef void checking(const struct iso_gemm_shape *s, const struct iso_gemm_machine *machine,
                      const struct iso_gemm_plan *plan);

/* If these cores would compute s this way; its tasks run one after the other. */
static void run(const struct iso_gemm_shape *s, const struct iso_epilogue *e, size_t which,
                enum iso_gemm_way way, checking *check) {
    struct iso_kernels counting = *sets[which / ISO_GEMM_CLASSES];
    counting.gemm_pack = pack, counting.gemm_direct = direct, counting.gemm_strip_bt = strip_bt;
    counting.gemm_strip = strip, counting.gemm_epilogue = epilogue, counting.gemm_linear = linear;
    struct iso_kernels half = counting;
    half.gemm_strip_bt = strip_bt_half, half.gemm_strip = strip_half;
    counting.half = counting.half ? &half : NULL;
    const struct iso_gemm_machine machine =
        iso_gemm_machine_of(&counting, (enum iso_gemm_class)(which % ISO_GEMM_CLASSES));
    const struct iso_gemm_plan plan = iso_gemm_plan(s, &machine);
    if (plan.way != way)
        return;
    memset(&seen, 0, sizeof seen);
    seen.a_floats = s->trans_a ? s->k * s->lda : s->m * s->k;
    seen.b_floats = (s->trans_b ? s->n : s->k) * s->ldb;
    seen.none = -1;
    if (s->panels)
        seen.b_floats = iso_round_up(s->n, ISO_PANEL) * s->k;
    float *a = calloc(seen.a_floats, sizeof *a), *b = calloc(seen.b_floats, sizeof *b);
    float *c = calloc(s->m * s->n, sizeof *c);
    assert_true(a && b && c);
    seen.a = a, seen.b = b;
    struct iso_product t = {.machine = machine,
                            .plan = plan,
                            .m = s->m,
                            .n = s->n,
                            .k = s->k,
                            .c = c,
                            .ldc = s->n,
                            .a = a,
                            .ai = s->trans_a ? 1 : s->k,
                            .ap = s->trans_a ? s->lda : 1,
                            .b = b,
                            .bs = s->panels    ? ISO_PANEL
                                  : s->trans_b ? 1
                                               : s->ldb,
                            .bps = s->panels    ? ISO_PANEL * s->k
                                   : s->trans_b ? s->ldb
                                                : ISO_PANEL,
                            .trans_b = s->trans_b,
                            .e = e};
    assert_ok(iso_product_run(NULL, &t));
    check(s, &machine, &plan);
    free(a), free(b), free(c);
}

enum { WAYS = COUNT(sets) * ISO_GEMM_CLASSES };
static const struct iso_epilogue plain = {.alpha = 1}, twice = {.alpha = 2};
static size_t checked;

/* -------------------------------------------------------------------------------------- ways */

static void check_transposed(const struct iso_gemm_shape *s, const struct iso_gemm_machine *machine,
                             const struct iso_gemm_plan *plan) {
    const struct iso_kernels *kernels = machine->kernels;
    const size_t blocks = (s->n + plan->columns - 1) / plan->columns;
    const size_t lanes = iso_gemm_rows_in_lanes(kernels, s->m, s->ldb);
    const int aliased = s->ldb % ISO_GEMM_ALIASED_BT == 0, parts = s->k > ISO_K_BLOCK;
    const int next = s->n > TUNED(machine, next_floats_c) / s->k ? ISO_DIRECT_NEXT : 0;
    const size_t rows = lanes > kernels->vector_floats ? kernels->direct_mr
                        : next                         ? kernels->next_rows
                                                       : kernels->direct_tall;
    assert_int_equal(seen.packed_a, s->m * s->k * (parts ? blocks : 1));
    assert_int_equal(seen.packed_b, 0);
    assert_int_equal(seen.read_b, s->n * s->k);
    assert_int_equal(seen.again_b, lanes < s->m ? s->n * s->k : 0);
    assert_int_equal(seen.tall, aliased ? iso_min_size(rows, ISO_GEMM_ALIASED_ROWS_BT) : rows);
    assert_int_equal(seen.modes, next);
    assert_int_equal(~seen.none, next);
    /* Sums go to C as they are transposed; the others too, unless they wait there for more of k. */
    const size_t steps = (s->k + ISO_K_BLOCK - 1) / ISO_K_BLOCK;
    assert_int_equal(seen.finished, parts ? lanes * s->n * steps : s->m * s->n);
    checked++;
}

/* {m, n, k, ldb}, with one thread and with three. */
static void with_transposed_b(const size_t (*shapes)[4], size_t count, enum iso_gemm_way way,
                              checking *check) {
    checked = 0;
    for (size_t i = 0; i < count * WAYS * 2; i++) {
        const size_t *of = shapes[i / WAYS / 2];
        const struct iso_gemm_shape s = {.m = of[0],
                                         .n = of[1],
                                         .k = of[2],
                                         .ldb = of[3],
                                         .trans_b = 1,
                                         .threads = i / WAYS % 2 ? 3 : 1};
        run(&s, &plain, i % WAYS, way, check);
    }
}

static void a_transposed_product(void **unused) {
    (void)unused;
    static const size_t shapes[][4] = {
        {24, 1000, 400, 400}, {24, 960, 400, 400},    {32, 512, 512, 512},   {32, 4095, 512, 512},
        {40, 700, 512, 512},  {40, 700, 512, 1024},   {16, 3000, 300, 1024}, {48, 1520, 600, 600},
        {32, 5000, 512, 512}, {100, 900, 1100, 2048}, {8, 3008, 300, 300},   {8, 3008, 800, 800}};
    with_transposed_b(shapes, COUNT(shapes), ISO_GEMM_TRANSPOSED_C, check_transposed);
    assert_true(checked > 0);
}

static size_t ahead_in_rows; /* products whose rows of B prefetch what comes next in them */
static size_t next_in_l2;    /* and those behind them, though B may be in L2 */

/* Rows of a B from beyond L2, with some cores of any, prefetch those behind them, unless these are
 * another task's, or where that is faster what comes next in them. */
static void check_registers(const struct iso_gemm_shape *s, const struct iso_gemm_machine *machine,
                            const struct iso_gemm_plan *plan) {
    const int beyond_l2 = s->n * s->k > ISO_L2_FLOATS, goes_on = s->m > 1 || plan->tasks == 1;
    const int aliased = s->ldb % ISO_GEMM_ALIASED_BT == 0;
    const size_t l2_next = aliased ? 0 : TUNED(machine, l2_next_floats);
    const int near = s->n * s->k <= l2_next;
    const int in_rows = s->m > 1 && !aliased && !near && TUNED(machine, ahead_floats) > 0;
    const int far = s->n * s->k > TUNED(machine, next_floats);
    const int half = machine->kernels->half && s->m <= TUNED(machine, half_rows);
    const int next =
        goes_on && (near || (far && !in_rows && (!aliased || TUNED(machine, next_aliased))));
    const int ahead = in_rows && s->n * s->k > TUNED(machine, ahead_floats);
    assert_int_equal(seen.packed_b, 0);
    assert_int_equal(seen.again_b, s->n * s->k);
    assert_int_equal(seen.prefetched, next ? s->n * s->k : 0);
    assert_int_equal(seen.ahead, ahead ? s->n * s->k : 0);
    assert_int_equal(seen.whole, next && l2_next ? s->n * s->k : 0);
    ahead_in_rows += (size_t)ahead;
    next_in_l2 += (size_t)(next && near);
    assert_int_equal(seen.halved, half && beyond_l2 && goes_on ? s->n * s->k : 0);
    checked++;
}

static void a_transposed_b(void **unused) {
    (void)unused;
    static const size_t shapes[][4] = {
        {1, 3008, 300, 300}, {1, 3008, 700, 700}, {4, 3008, 700, 704}, {3, 3008, 300, 300},
        {1, 512, 512, 512},  {4, 400, 600, 600},  {2, 3008, 800, 800}, {4, 3008, 800, 1024}};
    with_transposed_b(shapes, COUNT(shapes), ISO_GEMM_TRANSPOSED_B, check_registers);
    assert_true(checked > WAYS);
#ifdef __x86_64__
    assert_true(ahead_in_rows > 0 && next_in_l2 > 0);
#endif
}

static size_t in_one_run, by_k, in_halves, near_runs;
static void check_streams(const struct iso_gemm_shape *s, const struct iso_gemm_machine *machine,
                          const struct iso_gemm_plan *plan) {
    const size_t blocks = plan->by_k ? 1 : (s->n + plan->columns - 1) / plan->columns;
    const size_t strips = (s->m + plan->mr - 1) / plan->mr;
    const size_t steps = (s->k + ISO_K_BLOCK - 1) / ISO_K_BLOCK;
    assert_int_equal(seen.packed_a, s->m > 1 ? s->m * s->k * blocks : 0);
    assert_int_equal(seen.packed_b, 0);
    assert_int_equal(seen.read_b, strips * s->n * s->k);
    assert_int_equal(seen.tall, (s->m + strips - 1) / strips);
    const size_t streams = plan->streams == 1 ? ISO_K_BLOCK : plan->streams;
    assert_int_equal(seen.longest, iso_min_size(streams, iso_min_size(s->k, ISO_K_BLOCK)));
    /* Few rows of A and a B whose rows follow each other: in one run, if sums stay in L1, and a
     * block of k for each task. */
    const size_t sums = TUNED(machine, by_row);
    const int by_row = s->m <= ISO_GEMM_FEW_ROWS && s->ldb == s->n &&
                       s->m * s->n <= (s->m > 1 ? sums / 3 * 2 : sums) && steps >= plan->tasks;
    assert_int_equal(seen.by_row, by_row ? s->n * s->k : 0);
    assert_int_equal(plan->by_k, by_row && plan->tasks > 1);
    /* One with a B of up to L2 keeps sums in registers, of which whole vectors have more. */
    const int near = s->n * s->k <= ISO_L2_FLOATS;
    assert_true(!near || (by_row && s->m == 1 && s->n <= TUNED(machine, near_run)));
    near_runs += (size_t)near;
    const int half = machine->kernels->half && s->m <= TUNED(machine, half_streams) && !near &&
                     (by_row || iso_gemm_level_of_b(s, machine) == ISO_GEMM_MEMORY);
    assert_int_equal(seen.halved, half ? strips * s->n * s->k : 0);
    in_halves += (size_t)(half && !by_row);
    by_k += (size_t)plan->by_k;
    in_one_run += (size_t)by_row;
    assert_int_equal(seen.finished, s->m * s->n * (steps - 1));
    checked++;
}

static void streams(void **unused) {
    (void)unused;
    static const size_t shapes[][3] = {
        {1, 5000, 600},  {1, 600, 500},   {1, 600, 1500},  {2, 700, 600},  {3, 500, 4500},
        {2, 9000, 300},  {1, 3000, 700},  {2, 1200, 600},  {4, 9000, 600}, {7, 9000, 512},
        {16, 9000, 400}, {15, 9000, 700}, {30, 9000, 512}, {1, 640, 100},  {1, 512, 512},
        {1, 1024, 256},  {1, 1040, 200},  {1, 120, 500},   {1, 130, 600}};
    checked = 0;
    for (size_t i = 0; i < COUNT(shapes) * WAYS * 2; i++) {
        const size_t *of = shapes[i / WAYS / 2];
        const struct iso_gemm_shape s = {
            .m = of[0], .n = of[1], .k = of[2], .ldb = of[1], .threads = i / WAYS % 2 ? 3 : 1};
        run(&s, &plain, i % WAYS, ISO_GEMM_STREAMS, check_streams);
    }
    assert_true(checked > 0);
#ifdef __x86_64__
    assert_true(in_one_run > by_k && by_k > 0 && in_halves > 0 && near_runs > 0);
#endif
}

/* --------------------------------------------------------------------------------- epilogues */

static size_t finished;
static void check_finished(const struct iso_gemm_shape *s, const struct iso_gemm_machine *machine,
                           const struct iso_gemm_plan *plan) {
    (void)s, (void)machine, (void)plan;
    assert_int_equal(seen.finished, finished);
    checked++;
}

/* None where there is nothing to do, once for each element of C else: ReLU and biases of full tiles
 * go with the sums. */
static void epilogues(void **unused) {
    (void)unused;
    static const float bias[480];
    enum { M = 128, N = 480, K = 700 };
    static const struct iso_epilogue with_bias = {.alpha = 1, .bias = bias};
    static const struct iso_epilogue with_act = {.alpha = 1, .act = ISOBIT_ACT_GELU_ERF};
    static const struct iso_epilogue with_relu = {.alpha = 1, .act = ISOBIT_ACT_RELU};
    const struct iso_gemm_shape packed = {.m = M, .n = N, .k = K, .threads = 1, .panels = 1};
    const struct iso_gemm_shape few = {.m = 3, .n = N, .k = 40, .threads = 1, .panels = 1};
    checked = 0;
    for (size_t i = 0; i < WAYS; i++) {
        const size_t one = sets[i / ISO_GEMM_CLASSES]->direct_mr;
        finished = 0;
        run(&packed, &plain, i, ISO_GEMM_PANELS, check_finished);
        run(&few, &plain, i, ISO_GEMM_PANELS, check_finished);
        finished = 3 * N;
        run(&few, &twice, i, ISO_GEMM_PANELS, check_finished);
        run(&few, &with_relu, i, ISO_GEMM_PANELS, check_finished);
        finished = M * N;
        run(&packed, &twice, i, ISO_GEMM_PANELS, check_finished);
        run(&packed, &with_act, i, ISO_GEMM_PANELS, check_finished);
        if (M % one)
            continue;
        finished = 0;
        run(&packed, &with_bias, i, ISO_GEMM_PANELS, check_finished);
        run(&packed, &with_relu, i, ISO_GEMM_PANELS, check_finished);
    }
    assert_true(checked > 0);
}

/* ------------------------------------------------------------------------------ few columns */

static void narrow_products(void **unused) {
    (void)unused;
    enum { M = 192, N = 6 }; /* three times 64; more than there may be next to others */
    static const size_t ks[] = {300, ISO_K_BLOCK, 1100};
    for (size_t i = 0; i < COUNT(sets) * COUNT(ks) * 2; i++) {
        struct iso_kernels counting = *sets[i / COUNT(ks) / 2];
        counting.gemm_pack = pack, counting.gemm_direct = direct, counting.gemm_strip_bt = strip_bt;
        counting.gemm_strip = strip, counting.gemm_epilogue = epilogue;
        counting.vector_floats = ISO_PANEL; /* beside which N is narrow */
        const size_t k = ks[i / 2 % COUNT(ks)], trans = i % 2;
        memset(&seen, 0, sizeof seen);
        seen.a_floats = M * k, seen.b_floats = ISO_PANEL * k;
        float *a = calloc(M * k, sizeof *a), *b = calloc(ISO_PANEL * k, sizeof *b);
        float *c = calloc(M * N, sizeof *c);
        static float scratch[N * ISO_K_BLOCK];
        seen.a = a, seen.b = b;
        const struct iso_product t = {.machine = iso_gemm_machine_of(&counting, ISO_GEMM_OTHER),
                                      .m = M,
                                      .n = N,
                                      .k = k,
                                      .c = c,
                                      .ldc = N,
                                      .a = a,
                                      .ai = k,
                                      .ap = 1,
                                      .b = b,
                                      .bs = trans ? 1 : ISO_PANEL,
                                      .bps = trans ? k : ISO_PANEL,
                                      .trans_b = (int)trans,
                                      .e = &plain};
        assert_true(a && b && c);
        assert_int_equal(iso_product_narrow(&t, 0, M, 0, N, scratch), N);
        /* columns of a transposed B become a strip: once, or for each 64 rows where there are
         * several for one k */
        assert_int_equal(seen.packed_b, trans ? N * k * (k > ISO_K_BLOCK ? (M + 63) / 64 : 1) : 0);
        assert_int_equal(seen.packed_a, 0);
        assert_int_equal(seen.finished, 0);
        free(a), free(b), free(c);
    }
}

/* A column-major A lies as a strip does, if one has all of its rows. */
static size_t packed;
static void check_packed(const struct iso_gemm_shape *s, const struct iso_gemm_machine *machine,
                         const struct iso_gemm_plan *plan) {
    (void)s, (void)machine, (void)plan;
    assert_int_equal(seen.packed_a, packed);
    checked++;
}

/* Strips read it where it lies, unless there are several and its rows alias: then vectors of a
 * line do so for few steps. */
static void a_transposed_a(void **unused) {
    (void)unused;
    checked = 0;
    for (size_t i = 0; i < WAYS; i++) {
        const struct iso_kernels *set = sets[i / ISO_GEMM_CLASSES];
        const size_t most = set->mr, aliased = set->aliased;
        const size_t few = set->vector_floats == ISO_PANEL ? 128 : 0;
        for (size_t m = most - 1; m <= most + 1; m++)
            for (size_t k = 127; k <= 129; k++)
                for (size_t lda = aliased - 1; lda <= aliased + 1; lda++) {
                    const struct iso_gemm_shape s = {
                        .m = m, .n = 64, .k = k, .lda = lda, .ldb = 64, .threads = 1, .trans_a = 1};
                    packed = m > most && lda == aliased && k > few ? m * k : 0;
                    run(&s, &plain, i, ISO_GEMM_IN_PLACE, check_packed);
                }
    }
    assert_true(checked > 0);
}

/* Beside other columns they are those that do not fill a vector, half of one at most, and four. */
static size_t edge;
static void check_edge(const struct iso_gemm_shape *s, const struct iso_gemm_machine *machine,
                       const struct iso_gemm_plan *plan) {
    (void)plan;
    const int narrow = edge > 0 && edge <= 4 && 2 * edge <= machine->kernels->vector_floats;
    assert_int_equal(seen.narrow, narrow ? edge : 0);
    assert_int_equal(seen.columns, narrow ? s->n - edge : s->n);
    checked++;
}

static void columns_at_the_edge(void **unused) {
    (void)unused;
    checked = 0;
    for (size_t i = 0; i < WAYS; i++) {
        const size_t vector = sets[i / ISO_GEMM_CLASSES]->vector_floats;
        for (edge = 0; edge < vector; edge++) {
            const struct iso_gemm_shape s = {
                .m = 64, .n = 3 * vector + edge, .k = 100, .threads = 1, .panels = 1};
            run(&s, &plain, i, ISO_GEMM_PANELS, check_edge);
        }
    }
    assert_true(checked > 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_transposed_product),
                                       cmocka_unit_test(a_transposed_b),
                                       cmocka_unit_test(streams),
                                       cmocka_unit_test(epilogues),
                                       cmocka_unit_test(narrow_products),
                                       cmocka_unit_test(a_transposed_a),
                                       cmocka_unit_test(columns_at_the_edge)};
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
