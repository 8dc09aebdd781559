/* SPDX-License-Identifier: MIT
 *
 * The public operations: right values, the promise about the bits (any instruction set, number of
 * threads, order of tasks, batch, packing, alignment, stride, split of a sequence), argument
 * checks, and that a workspace of the size asked for is enough.
 *
 * Every operation runs under all "ways": each instruction set of the machine on the calling thread,
 * on pools of 1 to 16 threads, and on executors that run the tasks backwards or shuffled. All ways
 * have to give what the first one gave, bit for bit.
 */
#include "test_ops.h"

#include "select.h"

bool quick;
const char *only_isa;      /* NULL: all */
static size_t guard_slack; /* bytes between a block and its guard page */

/* --------------------------------------------------------------------------------- allocations */

atomic_bool counting;
atomic_size_t allocations;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t m);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t a, size_t n);
int __real_posix_memalign(void **p, size_t a, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t m);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t a, size_t n);
int __wrap_posix_memalign(void **p, size_t a, size_t n);

static void count_one(void) {
    if (atomic_load(&counting))
        atomic_fetch_add(&allocations, 1);
}
void *__wrap_malloc(size_t n) {
    count_one();
    return __real_malloc(n);
}
void *__wrap_calloc(size_t n, size_t m) {
    count_one();
    return __real_calloc(n, m);
}
void *__wrap_realloc(void *p, size_t n) {
    count_one();
    return __real_realloc(p, n);
}
void *__wrap_aligned_alloc(size_t a, size_t n) {
    count_one();
    return __real_aligned_alloc(a, n);
}
int __wrap_posix_memalign(void **p, size_t a, size_t n) {
    count_one();
    return __real_posix_memalign(p, a, n);
}

/* -------------------------------------------------------------------------------------- memory */

/* Blocks that end at a page nobody may touch, freed together at the end of a test. */
struct block {
    void *base;
    size_t total;
};
static struct block blocks[4096];
static size_t block_count;

void *guarded(size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), body;
    body = (bytes + guard_slack + page - 1) / page * page;
    assert_true(block_count < sizeof blocks / sizeof *blocks);
    char *base =
        mmap(NULL, body + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(base != MAP_FAILED);
    assert_int_equal(mprotect(base + body, page, PROT_NONE), 0);
    blocks[block_count++] = (struct block){base, body + page};
    return base + body - bytes - guard_slack;
}

float *floats(size_t n) { return guarded(n * sizeof(float)); }

int release(void **state) {
    (void)state;
    while (block_count) {
        block_count--;
        munmap(blocks[block_count].base, blocks[block_count].total);
    }
    return 0;
}

uint64_t random_state;
uint64_t random_next(void) {
    uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}
float random_float(void) { return (float)((int64_t)(random_next() >> 40) - 8388608) * 0x1p-23f; }

float *random_floats(size_t n) {
    float *x = floats(n);
    for (size_t i = 0; i < n; i++)
        x[i] = random_float();
    return x;
}

/* rows x cols with the gaps of ld NaN; the last row has none */
float *random_matrix(size_t rows, size_t cols, size_t ld) {
    size_t n = rows && cols ? (rows - 1) * ld + cols : 0;
    float *x = floats(n);
    for (size_t i = 0; i < n; i++)
        x[i] = i % ld < cols ? random_float() : NAN;
    return x;
}

float *canaries(size_t n) {
    float *x = floats(n);
    for (size_t i = 0; i < n; i++)
        x[i] = CANARY;
    return x;
}

bool all_canaries(const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (x[i] != CANARY)
            return false;
    }
    return true;
}

uint32_t bits(float x) {
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    return (b & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : b;
}

/* Whether two matrices agree in every bit; says where not. */
bool same_bits(const char *what, const float *x, size_t ldx, const float *y, size_t ldy,
               size_t rows, size_t cols) {
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < cols; j++) {
            float a = x[i * ldx + j], b = y[i * ldy + j];
            if (bits(a) != bits(b)) {
                print_error("%s: [%zu][%zu] is %a, should be %a\n", what, i, j, (double)a,
                            (double)b);
                return false;
            }
        }
    }
    return true;
}

bool gaps_kept(const float *x, size_t ld, size_t rows, size_t cols) {
    for (size_t i = 0; i + 1 < rows; i++) {
        if (!all_canaries(x + i * ld + cols, ld - cols))
            return false;
    }
    return true;
}

/* ---------------------------------------------------------------------------------------- ways */

static void run_backwards(void *user, size_t n, void (*fn)(void *arg, size_t i), void *arg) {
    (void)user;
    while (n--)
        fn(arg, n);
}

static void run_shuffled(void *user, size_t n, void (*fn)(void *arg, size_t i), void *arg) {
    (void)user;
    size_t step = n > 2 ? n / 2 + 1 : 1;
    for (;; step++) { /* a step prime to n visits every index once */
        size_t a = n, b = step;
        while (b) {
            size_t r = a % b;
            a = b;
            b = r;
        }
        if (a <= 1)
            break;
    }
    for (size_t i = 0, at = n / 3; i < n; i++, at = (at + step) % n)
        fn(arg, at);
}

static const iso_executor backwards = {run_backwards, NULL, 3};
static const iso_executor shuffled = {run_shuffled, NULL, 16};

struct way ways[MAX_WAYS];
size_t way_count, isa_ways; /* the first isa_ways are the sets on the calling thread */
enum { MOST_THREADS = 16 };
static iso_pool *pools[MOST_THREADS];

static void add_way(const iso_isa *isa, const char *threads, const iso_executor *executor) {
    struct way *w = &ways[way_count++];
    snprintf(w->name, sizeof w->name, "%s, %s", iso_isa_name(isa), threads);
    w->context = (iso_context){.size = sizeof(iso_context), .isa = isa, .executor = executor};
}

/* The set's own kernels of floats: those of a level are another set's. */
static bool has_floats(const iso_isa *isa) { return isa->s8 == isa->kernels; }

static bool is_one_of_few(size_t threads) {
    return threads == 2 || threads == 3 || threads == MOST_THREADS;
}

static int make_ways(void **state) {
    (void)state;
    const bool all = getenv("ISOBIT_LONG") != NULL;
    size_t pool_count = 0;
    /* What runs in which order is the same on every CPU, and slow on one that is emulated. Nine
     * numbers of threads, odd and even, below and above what machines of the tests have; all of
     * them with the best set, three with the others. */
    const int emulated = getenv("ISOBIT_EMULATED") != NULL;
    for (size_t n = 1; n <= MOST_THREADS; n++) {
        if (quick ? n != 3 && (emulated || !is_one_of_few(n))
                  : n == 6 || (n > 8 && n != 13 && n != MOST_THREADS))
            continue;
        if (iso_pool_create(&pools[pool_count], n) != ISOBIT_OK)
            return -1;
        pool_count++;
    }
    for (size_t i = 0; i < iso_isa_count(); i++) {
        if (only_isa ? strcmp(only_isa, iso_isa_name(iso_isa_get(i))) != 0
                     : !has_floats(iso_isa_get(i)))
            continue;
        if (!iso_isa_missing(iso_isa_get(i)))
            add_way(iso_isa_get(i), "no executor", NULL);
        else
            printf("SKIPPED: %s: %s\n", iso_isa_name(iso_isa_get(i)),
                   iso_isa_missing(iso_isa_get(i)));
    }
    isa_ways = way_count;
    for (size_t i = 0; i < isa_ways; i++) {
        const iso_isa *isa = ways[i].context.isa;
        if (!emulated)
            add_way(isa, "backwards", &backwards);
        add_way(isa, "shuffled", &shuffled);
        for (size_t p = 0; p < pool_count; p++) {
            char name[16];
            const iso_executor *e = iso_pool_executor(pools[p]);
            if (i && !all && !is_one_of_few(e->max_threads))
                continue;
            snprintf(name, sizeof name, "pool of %zu", e->max_threads);
            add_way(isa, name, e);
        }
    }
    return isa_ways ? 0 : -1;
}

static int drop_ways(void **state) {
    (void)state;
    for (size_t i = 0; i < MOST_THREADS; i++)
        iso_pool_destroy(pools[i]);
    return 0;
}

/* ----------------------------------------------------------------------------------- alignment */

/* All 64 alignments of every operand, each at the end of its page as far as that allows. */
static void alignment_changes_nothing(void **state) {
    (void)state;
    enum { M = 9, N = 39, K = 45 };
    float *a = random_floats(M * K), *b = random_floats(K * N), *first = floats(M * N);
    float *at_a = floats(M * K + 64), *at_b = floats(K * N + 64), *at_c = floats(M * N + 64);
    float *attended = floats(M * 8);
    assert_ok(iso_gemm_f32(first, N, a, K, b, N, M, N, K, NULL, NULL));
    iso_attention_shape s = {.B = 1,
                             .H = 1,
                             .Sq = M,
                             .Sk = K,
                             .dh = 8,
                             .q = {0, 0, 8},
                             .k = {0, 0, 8},
                             .v = {0, 0, 8},
                             .o = {0, 0, 8}};
    assert_ok(iso_attention_f32(attended, a, b, b + 100, &s, NULL, NULL));
    for (size_t offset = 0; offset < 64; offset++) {
        float *pa = at_a + offset, *pb = at_b + (offset * 7 + 3) % 64;
        float *pc = at_c + (offset * 5 + 1) % 64;
        memcpy(pa, a, M * K * sizeof *a);
        memcpy(pb, b, K * N * sizeof *b);
        for (size_t w = 0; w < isa_ways; w++) {
            assert_ok(iso_gemm_f32(pc, N, pa, K, pb, N, M, N, K, NULL, &ways[w].context));
            assert_same("gemm, aligned otherwise", pc, N, first, N, M, N);
            iso_packed p = {0};
            size_t bytes = 0;
            assert_ok(iso_pack_f32_bytes(&bytes, N, K));
            void *room = aligned_block(bytes);
            assert_ok(iso_pack_f32(&p, room, bytes, pb, N, N, K, 1, &ways[w].context));
            assert_ok(iso_linear_f32(pc, N, pa, K, &p, M, NULL, &ways[w].context));
            assert_same("linear, aligned otherwise", pc, N, first, N, M, N);
            assert_ok(iso_attention_f32(pc, pa, pb, pb + 100, &s, NULL, &ways[w].context));
            assert_same("attention, aligned otherwise", pc, 8, attended, 8, M, 8);
        }
    }
}

/* ----------------------------------------------------------------------------- the active set */

static void the_active_set_is_used(void **state) {
    (void)state;
    float *x = random_floats(COLS), *first = floats(COLS), *y = floats(COLS);
    assert_ok(iso_softmax_f32(first, COLS, x, COLS, 1, COLS, NULL, NULL));
    for (size_t w = 0; w < isa_ways; w++) {
        assert_ok(iso_set_isa(iso_isa_name(ways[w].context.isa)));
        assert_ptr_equal(iso_isa_active(), ways[w].context.isa);
        assert_ok(iso_softmax_f32(y, COLS, x, COLS, 1, COLS, NULL, NULL));
        assert_same("active set", y, COLS, first, COLS, 1, COLS);
    }
    assert_ok(iso_set_isa(NULL));
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) { /* [--quick] [--isa NAME] [a pattern: "gemm*"] */
        if (!strcmp(argv[i], "--quick"))
            quick = true;
        else if (!strcmp(argv[i], "--isa") && i + 1 < argc)
            only_isa = argv[++i];
        else
            cmocka_set_test_filter(argv[i]);
    }
    guard_slack = iso_check_masked_loads_fault() ? 64 : 0;
    random_state = 1;
    make_rows(NULL);
#define TEST(f) cmocka_unit_test_teardown(f, release)
    const struct CMUnitTest tests[] = {
        TEST(gemm_is_the_canonical_chain),
        TEST(gemm_is_the_same_every_way),
        TEST(gemm_reads_b_beyond_l2),
        TEST(gemm_packs_blocks_of_b),
        TEST(gemm_takes_few_rows_along),
        TEST(gemm_takes_bias_and_relu_along),
        TEST(gemm_transposes_rows_of_b_or_sums),
        TEST(gemm_rounds_once),
        TEST(gemm_keeps_special_values_in_place),
        TEST(gemm_leaves_unneeded_operands_alone),
        TEST(linear_equals_gemm),
        TEST(gemm_and_linear_do_not_see_the_batch),
        TEST(gemv_has_its_orders),
        TEST(rows_are_the_same_every_way),
        TEST(rows_do_not_see_the_batch),
        TEST(rows_beyond_l2_are_as_they_are_alone),
        TEST(rows_with_streaming_stores_are_as_they_are_alone),
        TEST(softmax_rows_do_not_meet),
        TEST(logsumexp_makes_the_log_softmax),
        TEST(eltwise_is_near_the_truth),
        TEST(axpby_is_as_written),
        TEST(gates_are_activations_times_factors),
        TEST(attention_is_right_and_the_same_every_way),
        TEST(attention_does_not_see_the_batch),
        TEST(attention_takes_views_of_one_buffer),
        TEST(attention_by_steps_equals_the_whole),
        TEST(attention_window_is_a_bias),
        TEST(attention_softcap_is_as_written),
        TEST(alignment_changes_nothing),
        TEST(embeddings_are_right_every_way),
        TEST(rope_rotates_pairs_every_way),
        TEST(rope_tables_are_right_every_way),
        TEST(the_active_set_is_used),
        TEST(gemm_refuses),
        TEST(pack_and_linear_refuse),
        TEST(softmax_refuses),
        TEST(norms_refuse),
        TEST(elementwise_refuses),
        TEST(attention_refuses),
        TEST(attention_workspace_refuses),
        TEST(key_panels_refuse),
        TEST(embeddings_refuse),
        TEST(nothing_to_do_is_success),
        TEST(scratch_of_all_threads_may_overflow),
        TEST(there_may_be_many_tasks),
        TEST(workspace_covers_a_residual_in_place),
        TEST(workspace_is_asked_for_whatever_the_epilogue),
        TEST(workspace_is_enough),
        TEST(gemv_takes_the_workspace_of_a_product),
        TEST(workspace_for_more_rows_is_enough),
        TEST(rows_never_allocate),
        TEST(context_members_are_checked),
    };
    return cmocka_run_group_tests(tests, make_ways, drop_ways) ? 1 : 0;
}
