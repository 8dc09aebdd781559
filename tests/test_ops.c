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
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <isobit/ops.h>

#include "guard.h"
#include "kernels.h"
#include "oracle_kernels.h"

static bool quick;
static const char *only_isa; /* NULL: all */
static size_t guard_slack;   /* bytes between a block and its guard page */

/* --------------------------------------------------------------------------------- allocations */

static atomic_bool counting;
static atomic_size_t allocations;

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

static void *guarded(size_t bytes) {
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

static float *floats(size_t n) { return guarded(n * sizeof(float)); }

static int release(void **state) {
    (void)state;
    while (block_count) {
        block_count--;
        munmap(blocks[block_count].base, blocks[block_count].total);
    }
    return 0;
}

static uint64_t random_state;
static uint64_t random_next(void) {
    uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}
static float random_float(void) {
    return (float)((int64_t)(random_next() >> 40) - 8388608) * 0x1p-23f;
}

static float *random_floats(size_t n) {
    float *x = floats(n);
    for (size_t i = 0; i < n; i++)
        x[i] = random_float();
    return x;
}

/* rows x cols with the gaps of ld NaN; the last row has none */
static float *random_matrix(size_t rows, size_t cols, size_t ld) {
    size_t n = rows && cols ? (rows - 1) * ld + cols : 0;
    float *x = floats(n);
    for (size_t i = 0; i < n; i++)
        x[i] = i % ld < cols ? random_float() : NAN;
    return x;
}

#define CANARY (-12345.675f)

static float *canaries(size_t n) {
    float *x = floats(n);
    for (size_t i = 0; i < n; i++)
        x[i] = CANARY;
    return x;
}

static bool all_canaries(const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (x[i] != CANARY)
            return false;
    }
    return true;
}

static uint32_t bits(float x) {
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    return (b & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : b;
}

/* Whether two matrices agree in every bit; says where not. */
static bool same_bits(const char *what, const float *x, size_t ldx, const float *y, size_t ldy,
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

static bool gaps_kept(const float *x, size_t ld, size_t rows, size_t cols) {
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

struct way {
    char name[48];
    iso_context context;
};
enum { MAX_WAYS = 64 };
static struct way ways[MAX_WAYS];
static size_t way_count, isa_ways; /* the first isa_ways are the sets on the calling thread */
enum { MOST_THREADS = 16 };
static iso_pool *pools[MOST_THREADS];

static void add_way(const iso_isa *isa, const char *threads, const iso_executor *executor) {
    struct way *w = &ways[way_count++];
    snprintf(w->name, sizeof w->name, "%s, %s", iso_isa_name(isa), threads);
    w->context = (iso_context){.size = sizeof(iso_context), .isa = isa, .executor = executor};
}

static int make_ways(void **state) {
    (void)state;
    size_t pool_count = 0;
    /* What runs in which order is the same on every CPU, and slow on one that is emulated. Nine
     * numbers of threads, odd and even, below and above what machines of the tests have. */
    const int emulated = getenv("ISOBIT_EMULATED") != NULL;
    for (size_t n = 1; n <= MOST_THREADS; n++) {
        if (quick ? n != 3 && (emulated || (n != 2 && n != MOST_THREADS))
                  : n == 6 || (n > 8 && n != 13 && n != MOST_THREADS))
            continue;
        if (iso_pool_create(&pools[pool_count], n) != ISOBIT_OK)
            return -1;
        pool_count++;
    }
    for (size_t i = 0; i < iso_isa_count(); i++) {
        if (only_isa && strcmp(only_isa, iso_isa_name(iso_isa_get(i))) != 0)
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

#define assert_ok(call) assert_int_equal((call), ISOBIT_OK)
#define assert_same(...) assert_true(same_bits(__VA_ARGS__))

/* ---------------------------------------------------------------------------------------- gemm */

struct gemm_case {
    size_t m, n, k;
    int trans_a, trans_b;
    float alpha, beta;
    int bias, act, residual; /* residual 2: C itself */
    size_t gap;
};

/* What should come out, element by element, into the dense y. */
static void gemm_expect(float *y, const struct gemm_case *g, const float *c, size_t ldc,
                        const float *a, size_t lda, const float *b, size_t ldb, const float *bias,
                        const float *residual, size_t ldr) {
    for (size_t i = 0; i < g->m; i++) {
        for (size_t j = 0; j < g->n; j++) {
            struct iso_oracle_epilogue e = {.alpha = (double)g->alpha,
                                            .beta = (double)g->beta,
                                            .c = c ? &c[i * ldc + j] : NULL,
                                            .bias = bias ? &bias[j] : NULL,
                                            .act = g->act,
                                            .residual = residual ? &residual[i * ldr + j] : NULL};
            float t =
                g->alpha == 0 || !g->k
                    ? 0
                    : iso_oracle_gemm_chain(g->trans_a ? a + i : a + i * lda, g->trans_a ? lda : 1,
                                            g->trans_b ? b + j * ldb : b + j, g->trans_b ? 1 : ldb,
                                            g->k, ISO_K_BLOCK);
            y[i * g->n + j] = iso_oracle_epilogue_exact(t, &e);
        }
    }
}

static void check_gemm(const struct gemm_case *g, size_t first_way, size_t last_way) {
    size_t lda = (g->trans_a ? g->m : g->k) + g->gap, ldb = (g->trans_b ? g->k : g->n) + g->gap;
    size_t ldc = g->n + g->gap, ldr = g->n + 2 * g->gap,
           extent = g->m ? (g->m - 1) * ldc + g->n : 0;
    float *a = g->trans_a ? random_matrix(g->k, g->m, lda) : random_matrix(g->m, g->k, lda);
    float *b = g->trans_b ? random_matrix(g->n, g->k, ldb) : random_matrix(g->k, g->n, ldb);
    float *bias = g->bias ? random_floats(g->n) : NULL;
    float *own = g->residual == 1 ? random_matrix(g->m, g->n, ldr) : NULL;
    float *c0 = canaries(extent), *c = floats(extent), *expect = floats(g->m * g->n);
    bool reads_c = g->beta != 0 || g->residual == 2;
    for (size_t i = 0; i < g->m && reads_c; i++) {
        for (size_t j = 0; j < g->n; j++)
            c0[i * ldc + j] = random_float();
    }
    for (size_t i = 0; i < g->m && !reads_c; i++) {
        for (size_t j = 0; j < g->n; j++)
            c0[i * ldc + j] = NAN;
    }
    const float *residual = g->residual == 2 ? c0 : own;
    if (g->residual == 2)
        ldr = ldc;
    bool exact = g->act <= ISOBIT_ACT_RELU;
    if (exact)
        gemm_expect(expect, g, c0, ldc, a, lda, b, ldb, bias, residual, ldr);
    for (size_t w = first_way; w < last_way; w++) {
        memcpy(c, c0, extent * sizeof *c);
        iso_gemm_options options = {.size = sizeof options,
                                    .trans_a = g->trans_a,
                                    .trans_b = g->trans_b,
                                    .alpha = g->alpha,
                                    .beta = g->beta,
                                    .bias = bias,
                                    .act = (iso_activation)g->act,
                                    .residual = g->residual == 2 ? c : own,
                                    .ldr = ldr};
        const bool plain = !g->trans_a && !g->trans_b && g->alpha == 1 && g->beta == 0 &&
                           !g->bias && !g->act && !g->residual;
        assert_ok(iso_gemm_f32(c, ldc, a, lda, b, ldb, g->m, g->n, g->k,
                               plain && w % 2 ? NULL : &options, &ways[w].context));
        char what[200];
        snprintf(what, sizeof what,
                 "gemm m %zu n %zu k %zu trans %d%d alpha %g beta %g bias %d act %d res %d gap %zu "
                 "(%s)",
                 g->m, g->n, g->k, g->trans_a, g->trans_b, (double)g->alpha, (double)g->beta,
                 g->bias, g->act, g->residual, g->gap, ways[w].name);
        if (!exact && w == first_way) {
            for (size_t i = 0; i < g->m; i++)
                memcpy(expect + i * g->n, c + i * ldc, g->n * sizeof *c);
        }
        assert_same(what, c, ldc, expect, g->n, g->m, g->n);
        assert_true(gaps_kept(c, ldc, g->m, g->n));
    }
    release(NULL);
}

static void gemm_is_the_canonical_chain(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 2, 3, 5, 7, 13, 14, 15, 16, 17, 29, 31, 33, 47, 64, 65, 100};
    static const size_t ks[] = {1,   2,   3,   8,   16,  17,   63,   64,  65,
                                255, 511, 512, 513, 700, 1023, 1024, 1025};
    static const float scalars[] = {1, 0, -1, 0.5f, 2};
    size_t count = sizeof sizes / sizeof *sizes, k_count = sizeof ks / sizeof *ks, t = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            for (size_t p = 0; p < (quick ? 1 : 6); p++, t++) {
                struct gemm_case g = {.m = sizes[i],
                                      .n = sizes[j],
                                      .k = ks[(t * 5 + p) % k_count],
                                      .trans_a = t & 1,
                                      .trans_b = t >> 1 & 1,
                                      .alpha = t % 4 ? 1 : scalars[t / 4 % 5],
                                      .beta = t % 5 ? 0 : scalars[t / 5 % 5],
                                      .bias = t / 3 % 2,
                                      .act = t % 7 == 3 ? (int)(t / 7 % 6) : t % 3 == 1,
                                      .residual = (int)(t / 11 % 3),
                                      .gap = t / 2 % 4};
                if (quick && (t % 8 || g.k > 513))
                    continue;
                check_gemm(&g, 0, isa_ways);
            }
        }
    }
    /* tiny and plain, which has a way of its own */
    for (size_t m = 1; m <= 66; m += m < 34 ? 1 : 15)
        for (size_t n = 1; n <= 66; n += quick ? 13 : m % 3 + 1) {
            struct gemm_case g = {.m = m, .n = n, .k = 1 + (m * 7 + n) % 66, .alpha = 1};
            g.gap = n % 3, g.trans_a = (m + n) % 5 == 0, g.trans_b = (m + n) % 7 == 0;
            check_gemm(&g, 0, isa_ways);
        }
    /* one of each alpha and beta with each transposition, and sizes that are 0 */
    for (int trans = 0; trans < 4; trans++) {
        for (size_t i = 0; i < 25; i++) {
            struct gemm_case g = {.m = 9,
                                  .n = 21,
                                  .k = 37,
                                  .trans_a = trans & 1,
                                  .trans_b = trans >> 1,
                                  .alpha = scalars[i % 5],
                                  .beta = scalars[i / 5],
                                  .bias = (int)i & 1,
                                  .gap = 1};
            check_gemm(&g, 0, isa_ways);
        }
        struct gemm_case g = {.m = 9,
                              .n = 21,
                              .k = 0,
                              .trans_a = trans & 1,
                              .trans_b = trans >> 1,
                              .alpha = 1,
                              .beta = 0.5f,
                              .bias = 1,
                              .gap = 1};
        check_gemm(&g, 0, isa_ways);
    }
}

static void gemm_is_the_same_every_way(void **state) {
    (void)state;
    static const size_t shapes[][3] = {{1, 300, 700},  {130, 70, 65}, {300, 7, 513}, {65, 530, 33},
                                       {257, 129, 64}, {2, 1000, 40}, {16, 512, 512}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int trans = 0; trans < 4; trans++) {
            if (quick && (trans != (int)i % 4 || shapes[i][2] > 600))
                continue;
            struct gemm_case g = {.m = shapes[i][0],
                                  .n = shapes[i][1],
                                  .k = shapes[i][2],
                                  .trans_a = trans & 1,
                                  .trans_b = trans >> 1,
                                  .alpha = 1,
                                  .bias = 1,
                                  .act = trans == 1 ? ISOBIT_ACT_GELU_TANH : 0,
                                  .residual = trans == 2,
                                  .gap = (size_t)trans};
            check_gemm(&g, 0, way_count);
        }
    }
}

/* Few rows and a B that no cache holds: it is read along its rows. */
static void gemm_reads_b_beyond_l2(void **state) {
    (void)state;
    static const struct gemm_case cases[] = {
        {.m = 1, .n = 4101, .k = 513, .alpha = 1},
        {.m = 7, .n = 4103, .k = 1025, .alpha = 1, .bias = 1, .gap = 3},
        {.m = 8, .n = 9000, .k = 235, .trans_a = 1, .alpha = 2, .act = ISOBIT_ACT_RELU, .gap = 1},
        {.m = 5, .n = 70001, .k = 31, .alpha = 1, .residual = 1},
        {.m = 2, .n = 2055, .k = 1030, .alpha = 1, .beta = 0.5f},
        {.m = 3, .n = 40000, .k = 53, .alpha = -1, .residual = 2},
        {.m = 15, .n = 2060, .k = 1030, .alpha = 1, .act = ISOBIT_ACT_RELU},
        {.m = 16, .n = 4099, .k = 514, .trans_a = 1, .alpha = 1, .bias = 1},
        {.m = 31, .n = 4110, .k = 512, .alpha = 1, .gap = 2},
        {.m = 32, .n = 5000, .k = 420, .trans_a = 1, .alpha = 1},
        {.m = 6, .n = 8200, .k = 650, .alpha = 1, .bias = 1}, /* from memory */
        {.m = 9, .n = 9221, .k = 570, .trans_a = 1, .alpha = 1, .residual = 1, .gap = 1},
        {.m = 16, .n = 1024, .k = 520, .alpha = 1, .bias = 1}, /* 4 KiB between rows */
        {.m = 6, .n = 1536, .k = 260, .trans_a = 1, .alpha = 1},
        {.m = 24, .n = 1024, .k = 261, .alpha = 1, .act = ISOBIT_ACT_RELU},
    };
    for (size_t i = 0; i < (quick ? 1 : sizeof cases / sizeof *cases); i++)
        check_gemm(&cases[i], 0, quick ? isa_ways : way_count);
}

/* Up to 128 rows and a transposed B: its rows are transposed in registers, a block of it is packed,
 * or the transposed product is computed, and the rows that are left separately. */
static void gemm_transposes_rows_of_b_or_sums(void **state) {
    (void)state;
    static const size_t rows[] = {11, 12, 13, 14, 15, 16,  17, 21, 25, 26,
                                  27, 31, 32, 33, 48, 100, 6,  7,  8,  9};
    static const size_t columns[] = {49, 150, 17, 300, 97}, ks[] = {400, 512, 513, 130, 1030, 70};
    size_t t = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t j = 0; j < (quick ? 1 : 5); j++, t++) {
            struct gemm_case g = {.m = rows[i],
                                  .n = columns[(i + j) % 5],
                                  .k = ks[t % (quick ? 4 : 6)],
                                  .trans_a = t % 3 == 0,
                                  .trans_b = 1,
                                  .alpha = t % 5 == 1 ? 2 : 1,
                                  .beta = t % 7 == 2 ? -1 : 0,
                                  .bias = t % 4 == 3,
                                  .act = t % 4 == 1,
                                  .residual = (int)(t / 2 % 3),
                                  .gap = t % 2 * 3};
            check_gemm(&g, 0, t % 6 || quick ? isa_ways : way_count);
        }
    static const struct gemm_case cases[] = {
        {.m = 24, .n = 500, .k = 512, .trans_b = 1, .alpha = 1, .bias = 1},
        {.m = 29, .n = 700, .k = 1025, .trans_b = 1, .alpha = 1, .residual = 1, .gap = 1},
        {.m = 19, .n = 600, .k = 300, .trans_b = 1, .alpha = 1, .residual = 2},
        {.m = 128, .n = 260, .k = 1024, .trans_b = 1, .alpha = 1},
        {.m = 125, .n = 129, .k = 520, .trans_a = 1, .trans_b = 1, .alpha = 1, .beta = 0.5f},
        {.m = 16, .n = 500, .k = 1024, .trans_b = 1, .alpha = 1, .bias = 1},
        {.m = 6, .n = 200, .k = 1020, .trans_b = 1, .alpha = 1, .residual = 1, .gap = 4},
        /* 4 KiB between rows: two vectors of rows of A, of which one is hardly there */
        {.m = 9, .n = 150, .k = 1024, .trans_b = 1, .alpha = 1, .bias = 1},
        {.m = 28, .n = 100, .k = 1000, .trans_b = 1, .alpha = 2, .residual = 1, .gap = 24},
        {.m = 3, .n = 97, .k = 1008, .trans_b = 1, .alpha = 1, .beta = 0.5f, .gap = 16},
        /* in memory */
        {.m = 17, .n = 4200, .k = 513, .trans_b = 1, .alpha = 1},
        {.m = 1, .n = 5201, .k = 1024, .trans_b = 1, .alpha = 1, .bias = 1},
        {.m = 5, .n = 5201, .k = 1010, .trans_b = 1, .alpha = 1, .residual = 1, .gap = 14},
    };
    for (size_t i = 0; i < (quick ? 1 : sizeof cases / sizeof *cases); i++)
        check_gemm(&cases[i], 0, quick ? isa_ways : way_count);
}

/* A plain B that does not stay where it lies, for up to 128 rows, or on one thread: too many rows
 * for that, or rows of B that alias in the caches. */
static void gemm_packs_blocks_of_b(void **state) {
    (void)state;
    static const struct gemm_case cases[] = {
        {.m = 31, .n = 520, .k = 530, .alpha = 1},
        {.m = 25, .n = 1024, .k = 600, .alpha = 1, .bias = 1, .act = ISOBIT_ACT_RELU},
        {.m = 61, .n = 2048, .k = 130, .alpha = 2, .beta = 0.5f},
        {.m = 128, .n = 1024, .k = 300, .trans_a = 1, .alpha = 1, .residual = 1},
        {.m = 100, .n = 1019, .k = 515, .alpha = -1, .residual = 2, .gap = 5},
        {.m = 40, .n = 3070, .k = 514, .alpha = 1, .gap = 2},
        {.m = 300, .n = 291, .k = 530, .trans_b = 1, .alpha = 1, .bias = 1},
        {.m = 131, .n = 1027, .k = 520, .alpha = 2, .residual = 1, .gap = 5},
    };
    static const struct gemm_case large[] = {
        /* few rows do; the last ones come from memory */
        {.m = 12, .n = 4103, .k = 1025, .alpha = 1, .bias = 1, .act = ISOBIT_ACT_RELU},
        {.m = 17, .n = 2050, .k = 2050, .alpha = 1, .beta = 0.5f},
        {.m = 40, .n = 8200, .k = 520, .trans_a = 1, .alpha = 1, .residual = 2},
        {.m = 21, .n = 8192, .k = 520, .alpha = 2, .residual = 1, .gap = 1024},
        {.m = 9, .n = 10241, .k = 513, .alpha = 1, .residual = 1, .gap = 3},
        {.m = 8, .n = 5130, .k = 1024, .alpha = 1},
        {.m = 11, .n = 10500, .k = 512, .trans_a = 1, .alpha = 1},
        {.m = 5, .n = 10250, .k = 513, .alpha = 1, .bias = 1, .gap = 3},
        {.m = 8, .n = 4096, .k = 520, .alpha = 1, .residual = 2},
        {.m = 7, .n = 4103, .k = 514, .alpha = 1, .act = ISOBIT_ACT_RELU},
        {.m = 10, .n = 4096, .k = 520, .alpha = 2, .beta = 0.5f},
    };
    for (size_t i = 0; i < (quick ? 2 : sizeof cases / sizeof *cases); i++)
        check_gemm(&cases[i], 0, quick ? isa_ways : way_count);
    for (size_t i = 0; i < (quick ? 0 : sizeof large / sizeof *large); i++) {
        check_gemm(&large[i], 0, isa_ways);
        check_gemm(&large[i], isa_ways + 3, isa_ways + 5); /* two threads and three, best set */
    }
}

/* Few rows and a plain B that stays where it lies, though its rows alias in the caches,
 * or with a second block of k, whose sums are added to many columns at a time. */
static void gemm_takes_few_rows_along(void **state) {
    (void)state;
    static const struct gemm_case cases[] = {
        {.m = 5, .n = 1024, .k = 75, .alpha = 1, .bias = 1},
        {.m = 1, .n = 1100, .k = 530, .alpha = 1, .residual = 1},
        {.m = 23, .n = 1020, .k = 40, .alpha = 1, .gap = 4, .act = ISOBIT_ACT_RELU},
        {.m = 3, .n = 2047, .k = 520, .alpha = 2, .gap = 1},
        {.m = 4, .n = 1150, .k = 514, .alpha = 1},
        {.m = 2, .n = 1100, .k = 1030, .alpha = 1, .beta = 0.5f},
        {.m = 24, .n = 1024, .k = 600, .alpha = 1, .residual = 2},
    };
    for (size_t i = 0; i < (quick ? 3 : sizeof cases / sizeof *cases); i++)
        check_gemm(&cases[i], 0, quick ? isa_ways : way_count);
}

/* More rows, and a B that is packed whole: full tiles take bias and ReLU along, if these come after
 * the sums at once, the columns beside them do not. */
static void gemm_takes_bias_and_relu_along(void **state) {
    (void)state;
    static const struct gemm_case cases[] = {
        {.m = 136, .n = 300, .k = 514, .alpha = 1, .bias = 1, .act = ISOBIT_ACT_RELU},
        {.m = 136, .n = 300, .k = 514, .alpha = 2, .bias = 1, .act = ISOBIT_ACT_RELU, .gap = 1},
        {.m = 136, .n = 300, .k = 514, .alpha = 1, .beta = -1, .bias = 1, .act = ISOBIT_ACT_RELU},
        {.m = 144, .n = 288, .k = 500, .alpha = 1, .act = ISOBIT_ACT_RELU},
        {.m = 131, .n = 490, .k = 300, .alpha = 1, .bias = 1, .residual = 1, .gap = 3},
        {.m = 250, .n = 150, .k = 1025, .alpha = 1, .bias = 1, .act = 1, .residual = 2},
        {.m = 144, .n = 480, .k = 300, .alpha = 1, .bias = 1, .act = ISOBIT_ACT_SILU},
    };
    /* One set alone is emulated, and runs natively elsewhere. */
    const size_t few = only_isa ? 1 : 3;
    for (size_t i = 0; i < (quick ? few : sizeof cases / sizeof *cases); i++)
        check_gemm(&cases[i], 0, quick ? isa_ways : way_count);
}

/*
 * Sums that lie next to the middle of two floats, and that double rounds to just that middle, or,
 * where floats are subnormal, to two steps of double beyond it.
 */
static void gemm_rounds_once(void **state) {
    (void)state;
    static const struct {
        float sum, a, b;
    } cases[] = {{0x1.000002p0f, 0x1.0002p0f, 0x1.fffcp-25f},
                 {0x1p-127f, 0x1.000f8ep-75f, 0x1.ffe0e6p-76f}};
    for (size_t i = 0; i < iso_isa_count(); i++)
        for (size_t k = 0; k < 4; k++) {
            const iso_context context = {.size = sizeof context, .isa = iso_isa_get(i)};
            const float sum = cases[k / 2].sum, near = k % 2 ? cases[k / 2].a : -cases[k / 2].a;
            const float a[] = {0x1p64f * sum, near}, b[] = {0x1p-64f, cases[k / 2].b};
            const float expected = fmaf(near, b[1], sum);
            float c = 0;
            if (iso_isa_missing(context.isa))
                continue;
            assert_ok(iso_gemm_f32(&c, 1, a, 2, b, 1, 1, 1, 2, NULL, &context));
            assert_memory_equal(&c, &expected, sizeof c);
        }
}

/* A NaN or Inf reaches its own row and column only. */
static void gemm_keeps_special_values_in_place(void **state) {
    (void)state;
    enum { M = 20, N = 37, K = 19 };
    float *a = random_floats(M * K), *b = random_floats(K * N), *c = floats(M * N);
    float *expect = floats(M * N);
    a[5 * K + 3] = NAN;
    a[17 * K + 18] = INFINITY;
    b[7 * N + 11] = -INFINITY;
    b[0 * N + 36] = NAN;
    struct gemm_case g = {.m = M, .n = N, .k = K, .alpha = 1};
    gemm_expect(expect, &g, NULL, 0, a, K, b, N, NULL, NULL, 0);
    assert_true(isnan(expect[5 * N]) && isnan(expect[36]) && isfinite(expect[0]));
    for (size_t w = 0; w < isa_ways; w++) {
        assert_ok(iso_gemm_f32(c, N, a, K, b, N, M, N, K, NULL, &ways[w].context));
        assert_same(ways[w].name, c, N, expect, N, M, N);
    }
}

static void gemm_leaves_unneeded_operands_alone(void **state) {
    (void)state;
    float *c = floats(12), *bias = random_floats(4);
    for (size_t w = 0; w < isa_ways; w++) {
        const iso_context *x = &ways[w].context;
        iso_gemm_options options = {.size = sizeof options, .alpha = 0, .beta = 2};
        for (size_t i = 0; i < 12; i++)
            c[i] = (float)i;
        assert_ok(iso_gemm_f32(c, 4, NULL, 0, NULL, 0, 3, 4, 7, &options, x)); /* alpha 0 */
        for (size_t i = 0; i < 12; i++)
            assert_true(c[i] == 2 * (float)i);
        options = (iso_gemm_options){.size = sizeof options, .alpha = 1, .bias = bias};
        for (size_t i = 0; i < 12; i++)
            c[i] = NAN;
        assert_ok(iso_gemm_f32(c, 4, NULL, 0, NULL, 0, 3, 4, 0, &options, x)); /* k 0 */
        for (size_t i = 0; i < 12; i++)
            assert_true(c[i] == bias[i % 4]);
        options.bias = NULL;
        assert_ok(iso_gemm_f32(c, 4, NULL, 0, NULL, 0, 3, 4, 0, &options, x));
        for (size_t i = 0; i < 12; i++)
            assert_int_equal(bits(c[i]), 0);
        assert_ok(iso_gemm_f32(NULL, 4, NULL, 0, NULL, 0, 0, 4, 5, NULL, x)); /* no output */
        assert_ok(iso_gemm_f32(NULL, 0, NULL, 5, NULL, 0, 3, 0, 5, NULL, x));
    }
}

/* -------------------------------------------------------------------------------------- linear */

static void *aligned_block(size_t bytes) {
    char *p = guarded(bytes + 64);
    return p + (64 - (uintptr_t)p % 64) % 64;
}

static iso_packed pack(const float *w, size_t ldw, size_t n, size_t k, int trans,
                       const iso_context *context) {
    iso_packed p = {0};
    size_t bytes = 0;
    assert_ok(iso_pack_f32_bytes(&bytes, n, k));
    assert_ok(iso_pack_f32(&p, aligned_block(bytes), bytes, w, ldw, n, k, trans, context));
    return p;
}

static void linear_equals_gemm(void **state) {
    (void)state;
    static const size_t shapes[][3] = {{1, 1, 1},     {1, 16, 8},     {3, 17, 33},
                                       {14, 48, 64},  {29, 65, 70},   {65, 130, 31},
                                       {8, 300, 513}, {33, 64, 1025}, {5, 7, 0}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        size_t m = shapes[i][0], n = shapes[i][1], k = shapes[i][2];
        for (int trans = 0; trans < 2; trans++) {
            size_t ldw = (trans ? n : k) + 3, ldx = k + 1, ldy = n + 2;
            float *w = trans ? random_matrix(k, n, ldw) : random_matrix(n, k, ldw);
            float *x = random_matrix(m, k, ldx), *bias = random_floats(n);
            float *r = random_matrix(m, n, n + 1), *expect = floats(m * n);
            iso_gemm_options g = {.size = sizeof g,
                                  .trans_b = !trans,
                                  .alpha = 1,
                                  .bias = bias,
                                  .act = ISOBIT_ACT_GELU_ERF,
                                  .residual = r,
                                  .ldr = n + 1};
            assert_ok(iso_gemm_f32(expect, n, x, ldx, w, ldw, m, n, k, &g, &ways[0].context));
            iso_packed packed[8];
            for (size_t s = 0; s < isa_ways; s++) {
                packed[s] = pack(w, ldw, n, k, trans, &ways[s].context);
                size_t total = (n + 15) / 16 * 16 * k; /* the layout of isobit/ops.h */
                for (size_t e = 0; e < total; e++) {
                    size_t j = e / (16 * k) * 16 + e % 16, p = e / 16 % k;
                    float want = j < n ? (trans ? w[p * ldw + j] : w[j * ldw + p]) : 0;
                    assert_int_equal(bits(packed[s].data[e]), bits(want));
                }
            }
            for (size_t v = 0; v < way_count; v++) {
                float *y = canaries((m - 1) * ldy + n);
                iso_linear_options o = {.size = sizeof o,
                                        .bias = bias,
                                        .act = ISOBIT_ACT_GELU_ERF,
                                        .residual = r,
                                        .ldr = n + 1};
                /* packed by one set, used by another */
                assert_ok(iso_linear_f32(y, ldy, x, ldx, &packed[(v + 1) % isa_ways], m, &o,
                                         &ways[v].context));
                assert_same(ways[v].name, y, ldy, expect, n, m, n);
                assert_true(gaps_kept(y, ldy, m, n));
                if (v < isa_ways) { /* residual is y itself */
                    for (size_t row = 0; row < m; row++)
                        memcpy(y + row * ldy, r + row * (n + 1), n * sizeof *y);
                    o.residual = y;
                    o.ldr = ldy;
                    assert_ok(iso_linear_f32(y, ldy, x, ldx, &packed[v], m, &o, &ways[v].context));
                    assert_same("y is the residual", y, ldy, expect, n, m, n);
                }
            }
            release(NULL);
        }
    }
}

static void gemm_and_linear_do_not_see_the_batch(void **state) {
    (void)state;
    enum { M = 130, N = 83, K = 530 };
    size_t k = quick ? 70 : K, last = quick ? 20 : M;
    float *x = random_floats(M * k), *w = random_floats(N * k), *bias = random_floats(N);
    float *whole = floats(M * N), *y = floats(M * N);
    for (size_t s = 0; s < isa_ways; s++) {
        const iso_context *context = &ways[s].context;
        iso_packed p = pack(w, k, N, k, 0, context);
        iso_linear_options o = {.size = sizeof o, .bias = bias, .act = ISOBIT_ACT_SILU};
        iso_gemm_options g = {
            .size = sizeof g, .trans_b = 1, .alpha = 1, .bias = bias, .act = ISOBIT_ACT_SILU};
        assert_ok(iso_linear_f32(whole, N, x, k, &p, M, &o, context));
        for (size_t m = 1; m <= last; m++) { /* the first m rows; and row m - 1 alone */
            assert_ok(iso_linear_f32(y, N, x, k, &p, m, &o, context));
            assert_same("linear, batch", y, N, whole, N, m, N);
            assert_ok(iso_gemm_f32(y, N, x, k, w, k, m, N, k, &g, context));
            assert_same("gemm, batch", y, N, whole, N, m, N);
            assert_ok(iso_linear_f32(y, N, x + (m - 1) * k, k, &p, 1, &o, context));
            assert_same("linear, alone", y, N, whole + (m - 1) * N, N, 1, N);
            assert_ok(iso_gemm_f32(y, N, x + (m - 1) * k, k, w, k, 1, N, k, &g, context));
            assert_same("gemm, alone", y, N, whole + (m - 1) * N, N, 1, N);
        }
        for (size_t n = 1; n <= N; n += 3) { /* the first n columns */
            g.bias = bias;
            assert_ok(iso_gemm_f32(y, n, x, k, w, k, 9, n, k, &g, context));
            assert_same("gemm, columns", y, n, whole, N, 9, n);
        }
    }
}

/* --------------------------------------------------------------------------------------- gemv */

static void gemv_is_its_own_order(void **state) {
    (void)state;
    static const size_t shapes[][2] = {{1, 1},    {5, 31},    {16, 32},   {33, 65},
                                       {300, 77}, {70, 1000}, {800, 330}, {8500, 500}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        size_t n = shapes[i][0], k = shapes[i][1];
        for (int trans = 0; trans < 2; trans++) {
            size_t ldw = (trans ? n : k) + 2;
            float *w = trans ? random_matrix(k, n, ldw) : random_matrix(n, k, ldw);
            float *x = random_floats(k), *expect = floats(n), *y = floats(n);
            for (size_t j = 0; j < n; j++)
                expect[j] = iso_oracle_lanes(trans ? w + j : w + j * ldw, trans ? ldw : 1, x, 1, k);
            for (size_t v = 0; v < way_count; v++) {
                assert_ok(iso_gemv_f32(y, w, ldw, x, n, k, trans, &ways[v].context));
                assert_same(ways[v].name, y, n, expect, n, 1, n);
            }
            release(NULL);
        }
    }
    float y[2] = {CANARY, CANARY};
    assert_ok(iso_gemv_f32(y, NULL, 0, NULL, 2, 0, 0, NULL)); /* an empty sum */
    assert_true(y[0] == 0 && y[1] == 0);
    assert_ok(iso_gemv_f32(NULL, NULL, 5, NULL, 0, 5, 0, NULL));
}

/* ---------------------------------------------------------------------------------------- rows */

enum { ROWS = 130, COLS = 77 };

struct row_op {
    const char *name;
    iso_status (*call)(float *y, size_t ldy, const float *x, size_t ldx, size_t first, size_t rows,
                       const iso_context *context);
};
static float row_gamma[COLS], row_beta[COLS], row_residual[ROWS * COLS], row_sum[ROWS * COLS];
static size_t row_lengths[ROWS];
static uint8_t row_mask[ROWS * COLS];

static iso_status row_softmax(float *y, size_t ldy, const float *x, size_t ldx, size_t first,
                              size_t rows, const iso_context *context) {
    (void)first;
    return iso_softmax_f32(y, ldy, x, ldx, rows, COLS, NULL, context);
}
static iso_status row_softmax_masked(float *y, size_t ldy, const float *x, size_t ldx, size_t first,
                                     size_t rows, const iso_context *context) {
    iso_softmax_options o = {.size = sizeof o,
                             .lengths = row_lengths + first,
                             .mask = row_mask + first * COLS,
                             .ldm = COLS};
    return iso_softmax_f32(y, ldy, x, ldx, rows, COLS, &o, context);
}
static iso_status row_log_softmax(float *y, size_t ldy, const float *x, size_t ldx, size_t first,
                                  size_t rows, const iso_context *context) {
    iso_softmax_options o = {.size = sizeof o, .log = 1, .lengths = row_lengths + first};
    return iso_softmax_f32(y, ldy, x, ldx, rows, COLS, &o, context);
}
static iso_status row_layernorm(float *y, size_t ldy, const float *x, size_t ldx, size_t first,
                                size_t rows, const iso_context *context) {
    iso_norm_options o = {.size = sizeof o,
                          .gamma = row_gamma,
                          .beta = row_beta,
                          .eps = 1e-5f,
                          .residual = row_residual + first * COLS,
                          .ldr = COLS,
                          .sum = row_sum + first * COLS,
                          .lds = COLS};
    return iso_layernorm_f32(y, ldy, x, ldx, rows, COLS, &o, context);
}
static iso_status row_rmsnorm(float *y, size_t ldy, const float *x, size_t ldx, size_t first,
                              size_t rows, const iso_context *context) {
    (void)first;
    iso_norm_options o = {.size = sizeof o, .gamma = row_gamma, .eps = 1e-6f};
    return iso_rmsnorm_f32(y, ldy, x, ldx, rows, COLS, &o, context);
}
static iso_status row_eltwise(float *y, size_t ldy, const float *x, size_t ldx, size_t first,
                              size_t rows, const iso_context *context) {
    iso_eltwise_options o = {.size = sizeof o,
                             .bias = row_beta,
                             .act = ISOBIT_ACT_GELU_ERF,
                             .residual = row_residual + first * COLS,
                             .ldr = COLS};
    return iso_eltwise_f32(y, ldy, x, ldx, rows, COLS, &o, context);
}
static const struct row_op row_ops[] = {
    {"softmax", row_softmax},         {"masked softmax", row_softmax_masked},
    {"log-softmax", row_log_softmax}, {"layernorm", row_layernorm},
    {"rmsnorm", row_rmsnorm},         {"eltwise", row_eltwise}};
enum { ROW_OPS = sizeof row_ops / sizeof *row_ops };

static int make_rows(void **state) {
    (void)state;
    random_state = 4711;
    for (size_t j = 0; j < COLS; j++)
        row_gamma[j] = random_float(), row_beta[j] = random_float();
    for (size_t i = 0; i < ROWS * COLS; i++) {
        row_residual[i] = random_float();
        row_mask[i] = random_next() >> 62 != 0;
    }
    for (size_t i = 0; i < ROWS; i++)
        row_lengths[i] = random_next() >> 32 & 1 ? COLS : i % (COLS + 1);
    return 0;
}

static void rows_are_the_same_every_way(void **state) {
    (void)state;
    for (size_t op = 0; op < ROW_OPS; op++) {
        float *x = random_matrix(ROWS, COLS, COLS + 1), *expect = floats(ROWS * COLS);
        assert_ok(row_ops[op].call(expect, COLS, x, COLS + 1, 0, ROWS, &ways[0].context));
        for (size_t w = 0; w < way_count; w++) {
            float *y = canaries((ROWS - 1) * (COLS + 3) + COLS);
            assert_ok(row_ops[op].call(y, COLS + 3, x, COLS + 1, 0, ROWS, &ways[w].context));
            assert_same(row_ops[op].name, y, COLS + 3, expect, COLS, ROWS, COLS);
            assert_true(gaps_kept(y, COLS + 3, ROWS, COLS));
            /* in place */
            for (size_t i = 0; i < ROWS; i++)
                memcpy(y + i * (COLS + 3), x + i * (COLS + 1), COLS * sizeof *y);
            assert_ok(row_ops[op].call(y, COLS + 3, y, COLS + 3, 0, ROWS, &ways[w].context));
            assert_same(row_ops[op].name, y, COLS + 3, expect, COLS, ROWS, COLS);
        }
        release(NULL);
    }
}

static void rows_do_not_see_the_batch(void **state) {
    (void)state;
    for (size_t op = 0; op < ROW_OPS; op++) {
        float *x = random_floats(ROWS * COLS), *whole = floats(ROWS * COLS);
        float *y = floats(ROWS * COLS);
        for (size_t w = 0; w < isa_ways; w++) {
            const iso_context *context = &ways[w].context;
            assert_ok(row_ops[op].call(whole, COLS, x, COLS, 0, ROWS, context));
            for (size_t m = 1; m <= ROWS; m++) {
                assert_ok(row_ops[op].call(y, COLS, x, COLS, 0, m, context));
                assert_same(row_ops[op].name, y, COLS, whole, COLS, m, COLS);
                assert_ok(row_ops[op].call(y, COLS, x + (m - 1) * COLS, COLS, m - 1, 1, context));
                assert_same(row_ops[op].name, y, COLS, whole + (m - 1) * COLS, COLS, 1, COLS);
            }
        }
        release(NULL);
    }
}

/* More than a core's L2 holds: what comes from beyond it takes other code paths. */
static void rows_beyond_l2_are_as_they_are_alone(void **state) {
    (void)state;
    enum { MANY = 140, N = 1030 };
    for (size_t gap = 0; gap < 2; gap++) {
        const size_t ld = N + gap;
        float *x = random_matrix(MANY, N, ld), *residual = random_matrix(MANY, N, ld);
        float *bias = random_floats(N), *expect = floats(MANY * ld), *y = floats(MANY * ld);
        for (int op = 0; op < 6; op++) {
            for (size_t call = 0; call < MANY + way_count; call++) { /* row by row, then at once */
                const size_t w = call < MANY ? 0 : call - MANY, rows = call < MANY ? 1 : MANY;
                const size_t first = call < MANY ? call * ld : 0;
                float *to = call < MANY ? expect + first : y;
                for (size_t i = 0; i < MANY * ld && call >= MANY; i++)
                    y[i] = CANARY;
                iso_eltwise_options e = {.size = sizeof e,
                                         .act = op == 2 ? ISOBIT_ACT_GELU_TANH : ISOBIT_ACT_SILU,
                                         .bias = op == 1 ? bias : NULL,
                                         .residual = op < 2 ? residual + first : NULL,
                                         .ldr = ld};
                iso_norm_options o = {.size = sizeof o,
                                      .gamma = bias,
                                      .residual = op == 4 ? residual + first : NULL,
                                      .ldr = ld};
                const iso_context *context = &ways[w].context;
                assert_ok(op < 3 ? iso_eltwise_f32(to, ld, x + first, ld, rows, N, &e, context)
                          : op == 5
                              ? iso_rmsnorm_f32(to, ld, x + first, ld, rows, N, &o, context)
                              : iso_layernorm_f32(to, ld, x + first, ld, rows, N, &o, context));
                if (call >= MANY) {
                    assert_same("rows beyond L2", y, ld, expect, ld, MANY, N);
                    assert_true(gaps_kept(y, ld, MANY, N));
                }
            }
        }
        release(NULL);
    }
}

/* An output of more than half of an L3 of 32 MiB is written with non-temporal stores, but for
 * whatever begins in the middle of a line on its own. */
static void rows_with_streaming_stores_are_as_they_are_alone(void **state) {
    (void)state;
    enum { MANY = 4099, N = 1024, TABLE = 50 };
    for (size_t at = 0; at < (quick ? 1 : 2); at++) {
        float *x = random_floats(MANY * N), *residual = random_floats(MANY * N);
        float *bias = random_floats(N), *table = random_floats(TABLE * N);
        float *expect = floats(MANY * N), *y = canaries(MANY * N + 32);
        float *to = (float *)(((uintptr_t)y + 63) / 64 * 64) + at;
        uint32_t *ids = guarded(MANY * sizeof *ids);
        for (size_t i = 0; i < MANY; i++)
            ids[i] = (uint32_t)(random_next() % TABLE);
        for (int op = 0; op < 6; op++) {
            const size_t last = MANY + (quick ? isa_ways : way_count);
            for (size_t call = 0; call < last; call++) { /* row by row, then at once */
                const bool alone = call < MANY;
                if (call >= MANY + isa_ways && call % 7)
                    continue; /* one way of many with threads */
                const size_t row = alone ? call : 0, rows = alone ? 1 : MANY;
                float *out = alone ? expect + row * N : to;
                const float *in = x + row * N, *more = residual + row * N;
                for (size_t i = 0; i < MANY * N && !alone; i++)
                    to[i] = CANARY;
                const iso_eltwise_options e = {.size = sizeof e,
                                               .act = ISOBIT_ACT_RELU,
                                               .bias = op == 1 ? bias : NULL,
                                               .residual = op == 1 ? more : NULL,
                                               .ldr = N};
                const iso_norm_options o = {.size = sizeof o,
                                            .gamma = bias,
                                            .eps = 1e-5f,
                                            .residual = op == 3 ? more : NULL,
                                            .ldr = N};
                const iso_context *context = &ways[alone ? 0 : call - MANY].context;
                assert_ok(op < 2    ? iso_eltwise_f32(out, N, in, N, rows, N, &e, context)
                          : op < 4  ? iso_layernorm_f32(out, N, in, N, rows, N, &o, context)
                          : op == 4 ? iso_rmsnorm_f32(out, N, in, N, rows, N, &o, context)
                                    : iso_embed_f32(out, N, ids + row, rows, table, TABLE, N, 3.0f,
                                                    NULL, NULL, 0, context));
                if (!alone)
                    assert_same("rows with streaming stores", to, N, expect, N, MANY, N);
            }
            for (size_t i = 0; i < MANY * N + 32; i++)
                assert_true((y + i >= to && y + i < to + MANY * N) || y[i] == CANARY);
        }
        release(NULL);
    }
}

/* Some rows go together: each is as it is alone, also beside rows that are not finite. */
static void softmax_rows_do_not_meet(void **state) {
    (void)state;
    static const size_t widths[] = {31, 64, 80, 301, 1030, 2050};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        const size_t n = widths[i], ld = n + i % 2;
        float *x = random_matrix(ROWS, n, ld), *y = floats(ROWS * n), *one = floats(n);
        for (size_t j = 0; j < n; j++)
            x[2 * ld + j] = x[5 * ld + j] = x[9 * ld + j] = -INFINITY;
        x[9 * ld + n / 2] = NAN;
        x[10 * ld + n - 1] = INFINITY;
        x[11 * ld] = -INFINITY;
        for (size_t w = 0; w < (quick ? isa_ways : way_count); w++) {
            for (int safe = 0; safe < 2; safe++) {
                iso_softmax_options o = {.size = sizeof o, .safe = safe};
                assert_ok(iso_softmax_f32(y, n, x, ld, ROWS, n, &o, &ways[w].context));
                for (size_t row = 0; row < ROWS; row++) {
                    assert_ok(iso_softmax_f32(one, n, x + row * ld, ld, 1, n, &o, NULL));
                    assert_same("softmax", y + row * n, n, one, n, 1, n);
                }
                for (size_t j = 0; j < n; j++) {
                    assert_true(safe ? y[2 * n + j] == 0 && y[5 * n + j] == 0
                                     : isnan(y[2 * n + j]) && isnan(y[5 * n + j]));
                    assert_true(isnan(y[9 * n + j]) && isnan(y[10 * n + j]));
                }
                assert_true(y[11 * n] == 0 && y[11 * n + 1] > 0);
            }
        }
    }
}

/* The two numbers of a row make its log-softmax, whatever is in it, on threads, row by row. */
static void logsumexp_makes_the_log_softmax(void **state) {
    (void)state;
    enum { N = 301, LD = N + 2 }; /* enough for several threads */
    float *x = random_matrix(ROWS, N, LD), *expect = floats(ROWS * N), *y = floats(ROWS * N);
    for (size_t j = 0; j < N; j++) {
        x[5 * LD + j] = x[7 * LD + j] = -INFINITY;
        x[13 * LD + j] = j % 2 ? 0.0f : -0.0f;
        x[14 * LD + j] = j ? -INFINITY : -0.0f;
        x[15 * LD + j] *= 1e5f;
    }
    x[7 * LD + 99] = x[8 * LD + 300] = NAN;
    x[9 * LD + 4] = x[10 * LD + 4] = INFINITY;
    x[10 * LD] = NAN;
    x[11 * LD + 17] = -INFINITY;
    iso_softmax_options o = {.size = sizeof o, .log = 1, .safe = 1};
    assert_ok(iso_softmax_f32(expect, N, x, LD, ROWS, N, &o, &ways[0].context));
    for (size_t w = 0; w < way_count; w++) {
        const iso_context *context = &ways[w].context;
        float *max = canaries(ROWS), *log_sum = canaries(ROWS), one[2];
        assert_ok(iso_logsumexp_f32(max, log_sum, x, LD, ROWS, N, context));
        for (size_t i = 0; i < ROWS; i++)
            for (size_t j = 0; j < N; j++)
                y[i * N + j] = (x[i * LD + j] - max[i]) - log_sum[i];
        assert_same("log-sum-exp", y, N, expect, N, ROWS, N);
        for (size_t i = 0; i < ROWS; i++) {
            assert_ok(iso_logsumexp_f32(&one[0], &one[1], x + i * LD, N, 1, N, context));
            assert_same("max of one row", &one[0], 1, max + i, 1, 1, 1);
            assert_same("log-sum of one row", &one[1], 1, log_sum + i, 1, 1, 1);
        }
        /* what ops.h says of the rows that are not finite */
        assert_true(max[5] == -FLT_MAX && log_sum[5] == 0);
        assert_true(max[7] == -INFINITY && isnan(log_sum[7]));
        assert_true(max[8] <= 1 && isnan(log_sum[8]));
        assert_true(max[9] == INFINITY && isnan(log_sum[9]));
        assert_true(max[10] == INFINITY && isnan(log_sum[10]));
        assert_true(isfinite(max[11]) && isfinite(log_sum[11]));
        assert_true(max[13] == 0 && signbit(max[13]) && max[14] == 0 && signbit(max[14]));
    }
}

static void eltwise_is_near_the_truth(void **state) {
    (void)state;
    float *x = random_floats(6 * COLS), *y = floats(6 * COLS);
    for (int act = ISOBIT_ACT_NONE; act <= ISOBIT_ACT_TANH; act++) {
        for (int form = 0; form < 4; form++) {
            iso_eltwise_options o = {.size = sizeof o,
                                     .act = (iso_activation)act,
                                     .bias = form & 1 ? row_beta : NULL,
                                     .residual = form & 2 ? row_residual : NULL,
                                     .ldr = COLS};
            for (size_t w = 0; w < isa_ways; w++) {
                assert_ok(iso_eltwise_f32(y, COLS, x, COLS, 6, COLS, &o, &ways[w].context));
                for (size_t i = 0; i < 6 * COLS; i++) {
                    struct iso_oracle_epilogue e = {.alpha = 1,
                                                    .act = act,
                                                    .bias = form & 1 ? &row_beta[i % COLS] : NULL,
                                                    .residual = form & 2 ? &row_residual[i] : NULL};
                    double bound, want = iso_oracle_epilogue(&bound, (double)x[i], 0, &e);
                    assert_true(fabs((double)y[i] - want) <= bound);
                }
            }
        }
    }
}

/* By the written order, bit by bit; y = x, y not read where beta is 0, and sizes that go past the
 * caches or to several threads. */
static void axpby_is_as_written(void **state) {
    (void)state;
    static const float alphas[] = {1, -0.7f, 0}, betas[] = {0, 1, 1.3f};
    static const size_t sizes[][2] = {{1, 1}, {3, 33}, {7, 64}, {260, 130}};
    for (size_t s = 0; s < 4; s++)
        for (int f = 0; f < 18; f++) {
            const size_t rows = sizes[s][0], n = sizes[s][1], ld = n + (size_t)(f & 1);
            const float alpha = alphas[f / 2 % 3], beta = betas[f / 6];
            float *x = random_floats(rows * ld), *y0 = random_floats(rows * ld);
            float *y = floats(rows * ld), *expect = floats(rows * ld);
            for (size_t i = 0; i < rows * ld; i++) {
                const float t = alpha == 1 ? x[i] : alpha * x[i];
                expect[i] = beta == 0 ? t : fmaf(beta, y0[i], t);
            }
            for (size_t w = 0; w < way_count; w++) {
                for (size_t i = 0; i < rows * ld; i++)
                    y[i] = i % ld >= n ? CANARY : beta == 0 ? NAN : y0[i];
                assert_ok(iso_axpby_f32(y, ld, x, ld, rows, n, alpha, beta, &ways[w].context));
                assert_same("axpby", y, ld, expect, ld, rows, n);
                assert_true(gaps_kept(y, ld, rows, n));
                if (beta == 0) { /* in place */
                    memcpy(y, x, rows * ld * sizeof *y);
                    assert_ok(iso_axpby_f32(y, ld, y, ld, rows, n, alpha, 0, &ways[w].context));
                    assert_same("axpby in place", y, ld, expect, ld, rows, n);
                }
            }
            release(NULL);
        }
    float nan = NAN, out = 1;
    assert_ok(iso_axpby_f32(&out, 1, &nan, 1, 1, 1, 0, 0, NULL)); /* x is read */
    assert_true(isnan(out));
}

/* The bits of iso_eltwise_f32 and then one multiplication: apart, in place, from the halves of one
 * matrix, on several threads and with rows that do not stay in L2. */
static void gates_are_activations_times_factors(void **state) {
    (void)state;
    static const size_t sizes[][2] = {{1, 1}, {3, 33}, {7, 64}, {5, 301}, {40, 830}, {130, 1030}};
    const size_t most = quick ? 5 : 6;
    for (size_t s = 0; s < most; s++)
        for (int act = ISOBIT_ACT_NONE; act <= ISOBIT_ACT_TANH; act++) {
            const size_t rows = sizes[s][0], n = sizes[s][1], ld = 2 * n + (size_t)(act & 1);
            const iso_eltwise_options o = {.size = sizeof o, .act = (iso_activation)act};
            if (s >= 4 && act != ISOBIT_ACT_SILU)
                continue;
            float *both = random_matrix(rows, 2 * n, ld), *expect = floats(rows * n);
            float *a = floats(rows * n), *b = floats(rows * n), *y = floats(rows * ld);
            for (size_t i = 0; i < rows; i++)
                for (size_t j = 0; j < n; j++) {
                    both[i * ld + j] *= 8;
                    a[i * n + j] = both[i * ld + j], b[i * n + j] = both[i * ld + n + j];
                }
            assert_ok(iso_eltwise_f32(expect, n, a, n, rows, n, &o, &ways[0].context));
            for (size_t i = 0; i < rows * n; i++)
                expect[i] *= b[i];
            for (size_t w = 0; w < way_count; w++) {
                const iso_context *x = &ways[w].context;
                const iso_activation f = (iso_activation)act;
                assert_ok(iso_gate_f32(y, n, both, ld, both + n, ld, rows, n, f, x));
                assert_same("gate of halves", y, n, expect, n, rows, n);
                if (s >= 4) /* many elements: in one way */
                    continue;
                for (size_t i = 0; i < rows * ld; i++)
                    y[i] = CANARY;
                assert_ok(iso_gate_f32(y, ld, a, n, b, n, rows, n, f, x));
                assert_same("gate", y, ld, expect, n, rows, n);
                assert_true(gaps_kept(y, ld, rows, n));
                memcpy(y, a, rows * n * sizeof *y);
                assert_ok(iso_gate_f32(y, n, y, n, both + n, ld, rows, n, f, x));
                assert_same("gate in place of a", y, n, expect, n, rows, n);
                memcpy(y, b, rows * n * sizeof *y);
                assert_ok(iso_gate_f32(y, n, both, ld, y, n, rows, n, f, x));
                assert_same("gate in place of b", y, n, expect, n, rows, n);
                memcpy(y, both, ((rows - 1) * ld + 2 * n) * sizeof *y);
                assert_ok(iso_gate_f32(y, ld, y, ld, y + n, ld, rows, n, f, x));
                assert_same("gate in the first half", y, ld, expect, n, rows, n);
                assert_same("the second half", y + n, ld, b, n, rows, n);
            }
            release(NULL);
        }
}

/* ----------------------------------------------------------------------------------- attention */

struct attention_case {
    size_t B, H, Sq, Sk, dh;
    int causal;
    size_t past;
    int lengths, bias, weights; /* bias 2: broadcast over heads, 3: over all, 4: by distance */
    size_t window;
};

struct attention_data {
    iso_attention_shape shape;
    iso_attention_options options;
    float *q, *k, *v, *o, *weights;
    size_t *lengths;
    size_t o_floats, w_floats;
};

static void attention_make(struct attention_data *d, const struct attention_case *c) {
    *d = (struct attention_data){0};
    /* [B][S][H][dh] as projections leave them, with a gap */
    size_t row = c->H * c->dh + 2;
    d->shape = (iso_attention_shape){.B = c->B, .H = c->H, .Sq = c->Sq, .Sk = c->Sk, .dh = c->dh};
    d->shape.q = d->shape.o = (iso_strides){c->Sq * row, c->dh, row};
    d->shape.k = d->shape.v = (iso_strides){c->Sk * row, c->dh, row};
    d->o_floats = c->B * c->Sq * row - 2;
    d->q = random_floats(d->o_floats);
    d->k = random_floats(c->B * c->Sk * row - (c->Sk ? 2 : 0));
    d->v = random_floats(c->B * c->Sk * row - (c->Sk ? 2 : 0));
    d->o = canaries(d->o_floats);
    d->options = (iso_attention_options){.size = sizeof d->options,
                                         .scale = 0.25f,
                                         .causal = c->causal,
                                         .past = c->past,
                                         .window = c->window};
    if (c->lengths) {
        d->lengths = guarded(c->B * sizeof *d->lengths);
        for (size_t b = 0; b < c->B; b++)
            d->lengths[b] = b ? (size_t)(random_next() >> 33) % (c->Sk + 1) : c->Sk - c->Sk / 3;
        for (size_t b = 0; b < c->B; b++) { /* never read beyond, so it may be NaN */
            for (size_t j = d->lengths[b]; j < c->Sk; j++) {
                size_t last = j + 1 == c->Sk && b + 1 == c->B ? row - 2 : row;
                for (size_t e = 0; e < last; e++)
                    d->k[(b * c->Sk + j) * row + e] = d->v[(b * c->Sk + j) * row + e] = NAN;
            }
        }
        d->options.key_lengths = d->lengths;
    }
    if (c->bias == 4) {
        const size_t n = c->Sq - 1 + c->Sk;
        d->options.bias = random_floats(c->B * c->H * n) + (c->Sq - 1);
        d->options.bias_strides = (iso_strides){c->H * n, n, ISOBIT_BY_DISTANCE};
    } else if (c->bias) {
        d->options.bias = random_floats(c->B * c->H * c->Sq * c->Sk);
        d->options.bias_strides = (iso_strides){c->bias == 3 ? 0 : c->H * c->Sq * c->Sk,
                                                c->bias >= 2 ? 0 : c->Sq * c->Sk, c->Sk};
    }
    if (c->weights) {
        d->w_floats = c->B * c->H * c->Sq * c->Sk;
        d->weights = canaries(d->w_floats);
        d->options.weights = d->weights;
        d->options.weights_strides = (iso_strides){c->H * c->Sq * c->Sk, c->Sq * c->Sk, c->Sk};
    }
}

static iso_status attention_call(const struct attention_data *d, const iso_context *context) {
    return iso_attention_f32(d->o, d->q, d->k, d->v, &d->shape, &d->options, context);
}

static size_t attention_seen(const struct attention_data *d, size_t b, size_t i) {
    size_t n = d->lengths ? d->lengths[b] : d->shape.Sk;
    size_t limit = d->options.causal ? d->options.past + i + 1 : n;
    return limit < n ? limit : n;
}

static void attention_judge(const struct attention_data *d) {
    const iso_attention_shape *s = &d->shape;
    double *expect = calloc(2 * s->dh + 2 * s->Sk + 1, sizeof *expect);
    double *bound = expect + s->dh, *w = bound + s->dh, *wb = w + s->Sk;
    for (size_t b = 0; b < s->B; b++) {
        for (size_t h = 0; h < s->H; h++) {
            for (size_t i = 0; i < s->Sq; i++) {
                const iso_strides *bs = &d->options.bias_strides;
                const size_t seen = attention_seen(d, b, i), window = d->options.window;
                const size_t from = window && seen > window ? seen - window : 0;
                const float *bias = d->options.bias;
                if (bias)
                    bias += (ptrdiff_t)(b * bs->batch + h * bs->head + from) +
                            (ptrdiff_t)i * (ptrdiff_t)bs->seq;
                struct iso_oracle_attention t = {
                    .q = d->q + b * s->q.batch + h * s->q.head + i * s->q.seq,
                    .k = d->k + b * s->k.batch + h * s->k.head + from * s->k.seq,
                    .ksj = s->k.seq,
                    .ksc = 1,
                    .v = d->v + b * s->v.batch + h * s->v.head + from * s->v.seq,
                    .ldv = s->v.seq,
                    .nk = seen - from,
                    .dh = s->dh,
                    .scale = (double)d->options.scale,
                    .bias = bias,
                    .lanes = ISO_LANES,
                    .key_block = ISO_KEY_BLOCK};
                iso_oracle_attention(expect, bound, w, wb, &t);
                const float *o = d->o + b * s->o.batch + h * s->o.head + i * s->o.seq;
                for (size_t c = 0; c < s->dh; c++) {
                    if (!(fabs((double)o[c] - expect[c]) <= bound[c]))
                        fail_msg("attention o[%zu][%zu][%zu][%zu] is %a, should be %a", b, h, i, c,
                                 (double)o[c], expect[c]);
                }
                const iso_strides *ws = &d->options.weights_strides;
                for (size_t j = 0; d->weights && j < s->Sk; j++) {
                    double got = (double)d->weights[b * ws->batch + h * ws->head + i * ws->seq + j];
                    if (from <= j && j < seen ? !(fabs(got - w[j - from]) <= wb[j - from])
                                              : got != 0)
                        fail_msg("attention weight [%zu][%zu][%zu][%zu] is %a", b, h, i, j, got);
                }
            }
        }
    }
    free(expect);
}

static const struct attention_case attention_cases[] = {
    {1, 1, 1, 1, 8, 0, 0, 0, 0, 1, 0},       {2, 3, 5, 7, 16, 0, 0, 0, 0, 1, 0},
    {2, 2, 63, 64, 32, 1, 0, 0, 0, 0, 0},    {1, 2, 64, 65, 64, 1, 1, 0, 1, 1, 0},
    {1, 2, 65, 127, 48, 1, 62, 0, 2, 0, 0},  {3, 2, 129, 129, 16, 1, 0, 1, 0, 1, 0},
    {3, 2, 20, 130, 80, 0, 0, 1, 3, 1, 0},   {2, 1, 1, 200, 64, 1, 199, 0, 0, 1, 0},
    {4, 1, 3, 66, 128, 1, 63, 1, 0, 0, 0},   {1, 1, 130, 1, 1, 0, 0, 0, 0, 0, 0},
    {1, 3, 66, 70, 96, 1, 2, 0, 3, 0, 0},    {1, 1, 3, 5, 512, 0, 0, 0, 0, 0, 0},
    {2, 1, 4, 0, 8, 0, 0, 0, 0, 0, 0},       {2, 2, 17, 65, 17, 1, 100, 1, 1, 1, 0},
    {2, 3, 514, 530, 20, 1, 9, 1, 0, 0, 0},  {1, 2, 520, 257, 512, 1, 3, 0, 0, 0, 0},
    {2, 3, 1, 150, 20, 0, 0, 1, 1, 1, 0},    {3, 4, 1, 77, 64, 1, 40, 0, 0, 0, 0},
    {1, 40, 1, 20, 4, 0, 0, 0, 1, 1, 0},     {2, 5, 1, 830, 64, 0, 0, 0, 3, 1, 0},
    {4, 8, 1, 70, 64, 1, 69, 1, 0, 0, 0},    {4, 8, 3, 70, 64, 0, 0, 1, 1, 1, 0},
    {2, 2, 150, 150, 16, 1, 0, 0, 0, 0, 37}, {1, 2, 130, 200, 20, 1, 70, 0, 0, 1, 64},
    {3, 2, 5, 200, 8, 0, 0, 1, 0, 1, 20},    {2, 3, 1, 300, 20, 1, 299, 0, 1, 1, 65},
    {2, 4, 1, 300, 20, 0, 0, 1, 0, 0, 100},  {1, 2, 514, 600, 16, 1, 86, 0, 0, 0, 200},
    {1, 2, 40, 90, 16, 1, 50, 0, 2, 1, 1},   {2, 3, 65, 130, 16, 0, 0, 1, 4, 0, 0},
    {2, 2, 70, 70, 24, 1, 0, 0, 4, 0, 0},    {2, 3, 66, 129, 16, 1, 63, 1, 1, 0, 0},
    {1, 3, 3, 77, 20, 1, 74, 0, 4, 1, 0},    {2, 5, 1, 90, 16, 1, 89, 0, 4, 1, 0},
    {1, 1, 300, 280, 300, 1, 9, 0, 4, 0, 0}, {2, 3, 65, 130, 16, 1, 65, 1, 4, 0, 40},
    {1, 2, 70, 150, 24, 1, 80, 0, 1, 0, 33}};
enum { ATTENTION_CASES = sizeof attention_cases / sizeof *attention_cases };

/* The keys of d as panels, one head after the other. */
static float *make_panels(struct attention_data *d, const iso_context *context) {
    const iso_attention_shape *s = &d->shape;
    size_t per_head = iso_key_panels_floats(s->Sk, s->dh);
    float *panels = floats(s->B * s->H * per_head);
    for (size_t i = 0; i < s->B * s->H * per_head; i++)
        panels[i] = NAN;
    for (size_t b = 0; b < s->B; b++) {
        for (size_t h = 0; h < s->H; h++)
            assert_ok(iso_key_panels_append(panels + (b * s->H + h) * per_head, 0,
                                            d->k + b * s->k.batch + h * s->k.head, s->k.seq, s->Sk,
                                            s->dh, context));
    }
    d->k = panels;
    d->shape.k = (iso_strides){s->H * per_head, per_head, 0};
    d->options.key_panels = 1;
    return panels;
}

static void attention_is_right_and_the_same_every_way(void **state) {
    (void)state;
    for (size_t i = 0; i < ATTENTION_CASES; i++) {
        const struct attention_case *c = &attention_cases[i];
        if (quick && c->Sq * c->Sk * c->dh > 150000)
            continue;
        struct attention_data d;
        attention_make(&d, c);
        for (size_t e = 0; e < d.o_floats; e++)
            d.o[e] = CANARY;
        assert_ok(attention_call(&d, &ways[0].context));
        attention_judge(&d);
        float *first = floats(d.o_floats), *first_w = floats(d.w_floats);
        memcpy(first, d.o, d.o_floats * sizeof *first); /* the gaps are canaries */
        if (d.w_floats)
            memcpy(first_w, d.weights, d.w_floats * sizeof *first_w);
        for (int panels = 0; panels < 2; panels++) {
            if (panels)
                make_panels(&d, &ways[0].context);
            for (size_t w = 0; w < way_count; w++) {
                for (size_t e = 0; e < d.o_floats; e++)
                    d.o[e] = CANARY;
                for (size_t e = 0; e < d.w_floats; e++)
                    d.weights[e] = CANARY;
                assert_ok(attention_call(&d, &ways[w].context));
                char what[96];
                snprintf(what, sizeof what, "attention case %zu, panels %d (%s)", i, panels,
                         ways[w].name);
                assert_same(what, d.o, d.o_floats, first, d.o_floats, 1, d.o_floats);
                if (d.w_floats)
                    assert_same(what, d.weights, d.w_floats, first_w, d.w_floats, 1, d.w_floats);
            }
        }
        release(NULL);
    }
}

/* Each query alone, and each prefix of the queries, gives the rows of the whole. */
static void attention_does_not_see_the_batch(void **state) {
    (void)state;
    enum { S = 130, DH = 24 };
    size_t step = quick ? 13 : 1;
    float *q = random_floats(S * DH), *k = random_floats(S * DH), *v = random_floats(S * DH);
    float *whole = floats(S * DH), *o = floats(S * DH);
    for (int causal = 0; causal < 2; causal++) {
        for (size_t w = 0; w < isa_ways; w++) {
            iso_attention_shape s = {.B = 1,
                                     .H = 1,
                                     .Sq = S,
                                     .Sk = S,
                                     .dh = DH,
                                     .q = {0, 0, DH},
                                     .k = {0, 0, DH},
                                     .v = {0, 0, DH},
                                     .o = {0, 0, DH}};
            iso_attention_options p = {.size = sizeof p, .scale = 0.2f, .causal = causal};
            assert_ok(iso_attention_f32(whole, q, k, v, &s, &p, &ways[w].context));
            for (size_t n = 1; n <= S; n += step) {
                s.Sq = n;
                p.past = 0;
                assert_ok(iso_attention_f32(o, q, k, v, &s, &p, &ways[w].context));
                assert_same("first queries", o, DH, whole, DH, n, DH);
                s.Sq = 1;
                p.past = n - 1;
                assert_ok(iso_attention_f32(o, q + (n - 1) * DH, k, v, &s, &p, &ways[w].context));
                assert_same("one query", o, DH, whole + (n - 1) * DH, DH, 1, DH);
            }
        }
    }
}

/* Queries, keys, values and the result side by side in the rows of one buffer, as one projection
 * leaves them: extents meet, but no elements. */
static void attention_takes_views_of_one_buffer(void **state) {
    (void)state;
    enum { B = 2, S = 70, H = 3, DH = 20, PART = H * DH, ROW = 4 * PART, ALL = B * S * ROW };
    const iso_strides strides = {S * ROW, DH, ROW};
    const iso_attention_shape s = {.B = B,
                                   .H = H,
                                   .Sq = S,
                                   .Sk = S,
                                   .dh = DH,
                                   .q = strides,
                                   .k = strides,
                                   .v = strides,
                                   .o = strides};
    float *x = random_floats(ALL), *apart = floats(ALL), *expect = floats(ALL);
    memcpy(apart, x, ALL * sizeof *x);
    memcpy(expect, x, ALL * sizeof *x);
    float *q = x, *k = x + PART, *v = x + 2 * PART, *o = x + 3 * PART;
    for (size_t w = 0; w < way_count; w++) {
        const iso_context *context = &ways[w].context;
        assert_ok(iso_attention_f32(expect + 3 * PART, apart, apart + PART, apart + 2 * PART, &s,
                                    NULL, context));
        assert_ok(iso_attention_f32(o, q, k, v, &s, NULL, context));
        assert_same("views", x, ALL, expect, ALL, 1, ALL);
        /* One element too far to the left: the last value of each row. */
        assert_int_equal(iso_attention_f32(o - 1, q, k, v, &s, NULL, context), ISOBIT_E_ALIAS);
        assert_same("views, refused", x, ALL, expect, ALL, 1, ALL);
    }
}

/*
 * Decoding with a cache: keys are appended as they come, in pieces of `piece` tokens, and each
 * piece attends to what is there. The whole sequence at once gives the same bits.
 */
static void attention_by_steps_equals_the_whole(void **state) {
    (void)state;
    enum { S = 140, DH = 32 };
    static const size_t pieces[] = {1, 2, 3, 7, 16, 63, 64, 65, 100, 140};
    float *q = random_floats(S * DH), *k = random_floats(S * DH), *v = random_floats(S * DH);
    float *whole = floats(S * DH), *o = floats(S * DH);
    size_t room = iso_key_panels_floats(S, DH);
    assert_int_equal(room, (S + 15) / 16 * 16 * DH);
    iso_attention_options p = {.size = sizeof p, .scale = 0.2f, .causal = 1};
    iso_attention_shape s = {.B = 1,
                             .H = 1,
                             .Sq = S,
                             .Sk = S,
                             .dh = DH,
                             .q = {0, 0, DH},
                             .k = {0, 0, DH},
                             .v = {0, 0, DH},
                             .o = {0, 0, DH}};
    assert_ok(iso_attention_f32(whole, q, k, v, &s, &p, &ways[0].context));
    p.key_panels = 1;
    for (size_t w = 0; w < isa_ways; w++) {
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces + 3; i++) {
            if (quick && i % 4 != 1)
                continue;
            float *panels = floats(room);
            for (size_t e = 0; e < room; e++)
                panels[e] = NAN;
            for (size_t at = 0, n; at < S; at += n) {
                n = i < 10 ? pieces[i] : 1 + (size_t)(random_next() >> 33) % 40;
                n = n < S - at ? n : S - at;
                assert_ok(
                    iso_key_panels_append(panels, at, k + at * DH, DH, n, DH, &ways[w].context));
                s.Sq = n;
                s.Sk = at + n;
                p.past = at;
                assert_ok(iso_attention_f32(o + at * DH, q + at * DH, panels, v, &s, &p,
                                            &ways[w].context));
            }
            assert_same("by steps", o, DH, whole, DH, S, DH);
        }
    }
}

/* A window has the bits of a bias of -Inf for what it hides, also by steps: each piece sees the
 * last `window` keys of those before it and its own. */
static void attention_window_is_a_bias(void **state) {
    (void)state;
    enum { S = 300, DH = 24 };
    static const size_t windows[] = {1, 7, 16, 63, 64, 65, 100, 128, 250, 299, 300, 1000};
    static const size_t pieces[] = {1, 5, 16, 64, 100, 300};
    float *q = random_floats(S * DH), *k = random_floats(S * DH), *v = random_floats(S * DH);
    float *whole = floats(S * DH), *o = floats(S * DH), *bias = floats(S * S);
    const size_t room = iso_key_panels_floats(S, DH);
    float *panels = floats(room);
    memset(panels, 0, room * sizeof *panels);
    assert_ok(iso_key_panels_append(panels, 0, k, DH, S, DH, NULL));
    const iso_strides strides = {0, 0, DH};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        const size_t window = windows[i];
        if (quick && i % 4 != 1)
            continue;
        for (size_t r = 0; r < S; r++)
            for (size_t j = 0; j < S; j++)
                bias[r * S + j] = j + window <= r ? -INFINITY : 0;
        iso_attention_options p = {
            .size = sizeof p, .scale = 0.2f, .causal = 1, .bias = bias, .bias_strides = {0, 0, S}};
        iso_attention_shape s = {1, 1, S, S, DH, strides, strides, strides, strides};
        assert_ok(iso_attention_f32(whole, q, k, v, &s, &p, &ways[0].context));
        p = (iso_attention_options){
            .size = sizeof p, .scale = 0.2f, .causal = 1, .window = window, .key_panels = 1};
        for (size_t w = 0; w < isa_ways; w++) {
            for (size_t n = 0; n < sizeof pieces / sizeof *pieces; n++) {
                for (size_t at = 0; at < S; at += s.Sq) {
                    s.Sq = pieces[n] < S - at ? pieces[n] : S - at;
                    s.Sk = at + s.Sq;
                    p.past = at;
                    assert_ok(iso_attention_f32(o + at * DH, q + at * DH, panels, v, &s, &p,
                                                &ways[w].context));
                }
                assert_same("window", o, DH, whole, DH, S, DH);
            }
        }
    }
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

/* ---------------------------------------------------------------------------------- embeddings */

static void embeddings_are_right_every_way(void **state) {
    (void)state;
    enum { COUNT = 70, D = 50, V = 30, P = 90 };
    float *table = random_floats(V * D), *positions = random_floats(P * D);
    float *first = floats(COUNT * D), *y = floats(COUNT * D);
    uint32_t *ids = guarded(COUNT * sizeof *ids), *rows = guarded(COUNT * sizeof *rows);
    for (size_t i = 0; i < COUNT; i++) {
        ids[i] = (uint32_t)(random_next() >> 33) % V;
        rows[i] = (uint32_t)(random_next() >> 33) % P;
    }
    for (int form = 0; form < 3; form++) {
        const float *p = form ? positions : NULL;
        const uint32_t *r = form == 2 ? rows : NULL;
        for (size_t w = 0; w < way_count; w++) {
            const iso_context *context = &ways[w].context;
            float *to = w ? y : first;
            assert_ok(iso_embed_f32(to, D, ids, COUNT, table, V, D, 7.5f, p, r, P, context));
            assert_same(ways[w].name, to, D, first, D, COUNT, D);
        }
        for (size_t i = 0; i < COUNT; i++) {
            for (size_t j = 0; j < D; j++) {
                double want = 7.5 * (double)table[ids[i] * D + j];
                if (form)
                    want += (double)positions[(form == 2 ? rows[i] : i) * D + j];
                assert_true(fabs((double)first[i * D + j] - want) < 2e-6);
            }
        }
    }
    for (int layout = 0; layout < 3; layout++) {
        for (size_t w = 0; w < way_count; w++) {
            float *to = w ? y : first;
            assert_ok(iso_positions_f32(to, D, 17, COUNT, D, (iso_position_layout)layout,
                                        &ways[w].context));
            assert_same(ways[w].name, to, D, first, D, COUNT, D);
        }
        /* any part of the table by itself */
        assert_ok(iso_positions_f32(y, D, 40, 9, D, (iso_position_layout)layout, NULL));
        assert_same("positions from 40", y, D, first + 23 * D, D, 9, D);
        for (size_t i = 0; i < COUNT; i++) {
            for (size_t j = 0; j < D; j++) {
                double bound, want = iso_oracle_position(&bound, 17 + i, j, D, layout);
                assert_true(fabs((double)first[i * D + j] - want) <= bound);
            }
        }
    }
}

/* The definition, written once more: x cos + rotate_half(x) sin, from the table that is tested
 * beside it. In place, heads of queries and keys side by side, on several threads. */
static void rope_rotates_pairs_every_way(void **state) {
    (void)state;
    enum { P = 90 };
    static const struct {
        size_t rows, heads, dh, rotary;
    } shapes[] = {{1, 1, 2, 2},   {3, 2, 64, 64}, {70, 4, 128, 128}, {5, 3, 80, 32},
                  {9, 1, 50, 44}, {2, 3, 7, 0},   {2, 1, 512, 510}};
    float *inv_freq = random_floats(256), *table = floats(P * 513);
    uint32_t *rows_of = guarded(P * sizeof *rows_of);
    for (size_t i = 0; i < 256; i++)
        inv_freq[i] = fabsf(inv_freq[i]);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int form = 0; form < 4; form++) {
            const size_t rows = shapes[s].rows, dh = shapes[s].dh, rotary = shapes[s].rotary;
            const size_t heads = shapes[s].heads, n = heads * dh, ld = n + 3, lt = rotary + 1;
            const iso_rope_layout layout = form & 1 ? ISOBIT_ROPE_INTERLEAVED : ISOBIT_ROPE_HALF;
            float *x = random_matrix(rows, n, ld), *y = floats(rows * ld), *e = floats(rows * ld);
            assert_ok(iso_rope_table_f32(table, lt, 30, P, inv_freq, rotary, 1, NULL));
            for (size_t i = 0; i < rows; i++) {
                rows_of[i] = (uint32_t)(random_next() >> 33) % P;
                const float *c = table + (form & 2 ? rows_of[i] : i) * lt, *t = c + rotary / 2;
                for (size_t j = 0; j < n; j++) {
                    const size_t k = j % dh, step = form & 1 ? 1 : rotary / 2;
                    const size_t pair = form & 1 ? k / 2 : k % (step ? step : 1);
                    const bool second = form & 1 ? k % 2 : k >= step;
                    const float *own = x + i * ld + j;
                    if (k >= rotary) {
                        e[i * ld + j] = *own;
                        continue;
                    }
                    const float straight = *own * c[pair];
                    const float across = (second ? own[-(ptrdiff_t)step] : -own[step]) * t[pair];
                    e[i * ld + j] = straight + across;
                }
            }
            const uint32_t *given = form & 2 ? rows_of : NULL;
            for (size_t w = 0; w < way_count; w++) {
                for (size_t i = 0; i < rows * ld; i++)
                    y[i] = CANARY;
                assert_ok(iso_rope_f32(y, ld, x, ld, rows, heads, dh, rotary, layout, table, lt,
                                       given, P, &ways[w].context));
                assert_same("rope", y, ld, e, ld, rows, n);
                assert_true(gaps_kept(y, ld, rows, n));
                memcpy(y, x, ((rows - 1) * ld + n) * sizeof *y);
                assert_ok(iso_rope_f32(y, ld, y, ld, rows, heads, dh, rotary, layout, table, lt,
                                       given, P, &ways[w].context));
                assert_same("rope in place", y, ld, e, ld, rows, n);
            }
        }
}

static void rope_tables_are_right_every_way(void **state) {
    (void)state;
    enum { COUNT = 300, ROTARY = 128, LD = ROTARY + 2 };
    float *inv_freq = random_floats(ROTARY / 2), *first = canaries(COUNT * LD);
    float *y = canaries(COUNT * LD);
    for (size_t i = 0; i < ROTARY / 2; i++)
        inv_freq[i] = powf(500000, -(float)i / (ROTARY / 2));
    static const size_t firsts[] = {0, 131072 - COUNT, (1 << 20) - 5, (1 << 29) - COUNT};
    for (size_t f = 0; f < 4; f++) {
        const float scaling = f % 2 ? 1.25f : 1;
        for (size_t w = 0; w < (quick && f ? isa_ways : way_count); w++) {
            float *to = w ? y : first;
            assert_ok(iso_rope_table_f32(to, LD, firsts[f], COUNT, inv_freq, ROTARY, scaling,
                                         &ways[w].context));
            assert_same(ways[w].name, to, LD, first, LD, COUNT, ROTARY);
            assert_true(gaps_kept(to, LD, COUNT, ROTARY));
        }
        /* any part of the table by itself */
        assert_ok(iso_rope_table_f32(y, LD, firsts[f] + 23, 9, inv_freq, ROTARY, scaling, NULL));
        assert_same("table from 23 on", y, LD, first + 23 * LD, LD, 9, ROTARY);
        for (size_t i = 0; i < COUNT; i++)
            for (size_t j = 0; j < ROTARY; j++) {
                double bound,
                    want = iso_oracle_rope_table(&bound, firsts[f] + i, inv_freq[j % (ROTARY / 2)],
                                                 j >= ROTARY / 2, scaling);
                assert_true(fabs((double)first[i * LD + j] - want) <= bound);
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

/* ------------------------------------------------------------------------------ argument checks */

/* Sizes that are wrong in one respect each. Outputs must stay as they were. */
enum { EM = 5, EN = 7, EK = 6, EX = 4096 };
static float ea[EX], eb[EX], ec[EX], er[EX];
static char epacked[16384] __attribute__((aligned(64)));

#define refuses(status, call)                                                                      \
    do {                                                                                           \
        for (size_t i_ = 0; i_ < EX; i_++)                                                         \
            ec[i_] = CANARY;                                                                       \
        assert_int_equal((call), (status));                                                        \
        assert_true(all_canaries(ec, EX));                                                         \
    } while (0)

static void fill_error_operands(void) {
    for (size_t i = 0; i < EX; i++)
        ea[i] = eb[i] = er[i] = random_float();
}

static const size_t huge = SIZE_MAX / 8;

static void gemm_refuses(void **state) {
    (void)state;
    fill_error_operands();
    iso_gemm_options o = {.size = sizeof o, .alpha = 1};
    iso_context x = {.size = sizeof x};
    const iso_gemm_options *options = NULL;
#define GEMM(c, ldc, a, lda, b, ldb, m, n, k)                                                      \
    iso_gemm_f32(c, ldc, a, lda, b, ldb, m, n, k, options, &x)
    for (int i = 0; i < 2; i++, options = &o) {
        assert_ok(GEMM(ec, EN, ea, EK, eb, EN, EM, EN, EK));
        refuses(ISOBIT_E_NULL, GEMM(NULL, EN, ea, EK, eb, EN, EM, EN, EK));
        refuses(ISOBIT_E_NULL, GEMM(ec, EN, NULL, EK, eb, EN, EM, EN, EK));
        refuses(ISOBIT_E_NULL, GEMM(ec, EN, ea, EK, NULL, EN, EM, EN, EK));
        refuses(ISOBIT_E_LD, GEMM(ec, EN - 1, ea, EK, eb, EN, EM, EN, EK));
        refuses(ISOBIT_E_LD, GEMM(ec, EN, ea, EK - 1, eb, EN, EM, EN, EK));
        refuses(ISOBIT_E_LD, GEMM(ec, EN, ea, EK, eb, EN - 1, EM, EN, EK));
        refuses(ISOBIT_E_OVERFLOW, GEMM(ec, EN, ea, EK, eb, EN, huge, EN, EK));
        refuses(ISOBIT_E_OVERFLOW, GEMM(ec, huge, ea, EK, eb, EN, EM, EN, EK));
        refuses(ISOBIT_E_OVERFLOW, GEMM(ec, EN, ea, SIZE_MAX / 2, eb, EN, EM, EN, EK));
        refuses(ISOBIT_E_OVERFLOW, GEMM(ec, EN, ea, EK, eb, SIZE_MAX / 4, EM, EN, EK));
        refuses(ISOBIT_E_ALIAS, GEMM(ec, EN, ec, EK, eb, EN, EM, EN, EK));
        refuses(ISOBIT_E_ALIAS, GEMM(ec, EN, ea, EK, ec, EN, EM, EN, EK));
        refuses(ISOBIT_E_ALIAS, GEMM(ec, EN, ec + EM * EN - 1, EK, eb, EN, EM, EN, EK));
        refuses(ISOBIT_E_ALIAS, GEMM(ec + EM * EK - 1, EN, ec, EK, eb, EN, EM, EN, EK));
        refuses(ISOBIT_E_ALIAS, GEMM(ec, EN, ea, EK, ec + EM * EN - 1, EN, EM, EN, EK));
        refuses(ISOBIT_E_ALIAS, GEMM(ec + EK * EN - 1, EN, ea, EK, ec, EN, EM, EN, EK));
        assert_ok(GEMM(ec + EM * EK, EN, ec, EK, eb, EN, EM, EN, EK)); /* neighbours are fine */
    }
    o.trans_a = 1;
    refuses(ISOBIT_E_LD, GEMM(ec, EN, ea, EM - 1, eb, EN, EM, EN, EK));
    o.trans_a = 0, o.trans_b = 1;
    refuses(ISOBIT_E_LD, GEMM(ec, EN, ea, EK, eb, EK - 1, EM, EN, EK));
    refuses(ISOBIT_E_ALIAS, GEMM(ec + 9 * EN + EK - 10, EN, ea, EK, ec, 9, EM, EN, EK));
    assert_ok(GEMM(ec + 9 * EN + EK - 9, EN, ea, EK, ec, 9, EM, EN, EK));
#if SIZE_MAX > UINT32_MAX
    /* The operands fit into memory, but not the packed columns of B with what tasks need. */
    static float rc[129 * 129];
    const size_t k = ((size_t)1 << 61) / 136, r = 129;
    o.trans_a = 1; /* else one thread packs a block at a time */
    for (size_t w = 0; w < isa_ways; w++) {
        x.isa = ways[w].context.isa;
        refuses(ISOBIT_E_OVERFLOW, GEMM(rc, r, rc + r * r, r, rc + r * r, k, r, r, k));
    }
    o.trans_a = 0;
    x.isa = NULL;
#endif
    o.trans_b = 0;
    o.residual = er;
    o.ldr = EN - 1;
    refuses(ISOBIT_E_LD, GEMM(ec, EN, ea, EK, eb, EN, EM, EN, EK));
    o.residual = ec + 1;
    o.ldr = EN;
    refuses(ISOBIT_E_ALIAS, GEMM(ec, EN, ea, EK, eb, EN, EM, EN, EK));
    o.residual = ec;
    o.ldr = EN + 1;
    refuses(ISOBIT_E_ALIAS, GEMM(ec, EN, ea, EK, eb, EN, EM, EN, EK));
    o.residual = NULL;
    o.act = (iso_activation)77;
    refuses(ISOBIT_E_OPTION, GEMM(ec, EN, ea, EK, eb, EN, EM, EN, EK));
    o.act = (iso_activation)-1;
    refuses(ISOBIT_E_OPTION, GEMM(ec, EN, ea, EK, eb, EN, EM, EN, EK));
    o.act = ISOBIT_ACT_NONE;
    o.size = 3;
    refuses(ISOBIT_E_SIZE, GEMM(ec, EN, ea, EK, eb, EN, EM, EN, EK));
    o.size = 0;
    refuses(ISOBIT_E_SIZE, GEMM(ec, EN, ea, EK, eb, EN, EM, EN, EK));
    o.size = sizeof o;
    x.size = 1;
    refuses(ISOBIT_E_SIZE, GEMM(ec, EN, ea, EK, eb, EN, EM, EN, EK));
    x.size = sizeof x;
    size_t bytes = 77;
    refuses(ISOBIT_E_NULL, iso_gemm_f32_workspace_bytes(NULL, EM, EN, EK, &o, &x));
    o.size = 5;
    refuses(ISOBIT_E_SIZE, iso_gemm_f32_workspace_bytes(&bytes, EM, EN, EK, &o, &x));
    o.size = sizeof o;
    refuses(ISOBIT_E_OVERFLOW, iso_gemm_f32_workspace_bytes(
                                   &bytes, 129, 1024, SIZE_MAX / 1024 + ((size_t)1 << 20), &o, &x));
    /* A, B or C would have more floats than memory has bytes; 2^k * 2^k wraps to 0 */
    const size_t half = (size_t)1 << (sizeof(size_t) * 4);
    o.trans_b = 0;
    for (o.trans_a = 0; o.trans_a < 2; o.trans_a++) {
        refuses(ISOBIT_E_OVERFLOW, iso_gemm_f32_workspace_bytes(&bytes, 1, half, half, &o, &x));
        refuses(ISOBIT_E_OVERFLOW, iso_gemm_f32_workspace_bytes(&bytes, half, 1, half, &o, &x));
        refuses(ISOBIT_E_OVERFLOW, iso_gemm_f32_workspace_bytes(&bytes, half, half, 1, &o, &x));
    }
    o.trans_a = 0;
    assert_int_equal(bytes, 77);
    assert_ok(iso_gemm_f32_workspace_bytes(&bytes, 0, half, half, &o, &x));
    o.alpha = 0; /* A and B are not read */
    assert_ok(iso_gemm_f32_workspace_bytes(&bytes, 2, half, half, &o, &x));
#undef GEMM
}

static void pack_and_linear_refuse(void **state) {
    (void)state;
    fill_error_operands();
    iso_packed p = {0}, untouched;
    size_t bytes = 0, need;
    assert_ok(iso_pack_f32_bytes(&bytes, EN, EK));
    assert_true(bytes >= 16 * EK * sizeof(float) && bytes <= sizeof epacked);
    need = bytes;
    refuses(ISOBIT_E_NULL, iso_pack_f32_bytes(NULL, EN, EK));
    refuses(ISOBIT_E_OVERFLOW, iso_pack_f32_bytes(&bytes, SIZE_MAX, 2));
    refuses(ISOBIT_E_OVERFLOW, iso_pack_f32_bytes(&bytes, SIZE_MAX / 2, SIZE_MAX / 2));
    refuses(ISOBIT_E_OVERFLOW, iso_pack_f32_bytes(&bytes, 1, SIZE_MAX / 16));
    assert_int_equal(bytes, need);
    memset(&p, 0x5a, sizeof p);
    untouched = p;
#define PACK(d, room, w, ldw, n, k, t) iso_pack_f32(&p, d, room, w, ldw, n, k, t, NULL)
    refuses(ISOBIT_E_NULL, iso_pack_f32(NULL, epacked, bytes, ea, EK, EN, EK, 0, NULL));
    refuses(ISOBIT_E_NULL, PACK(NULL, bytes, ea, EK, EN, EK, 0));
    refuses(ISOBIT_E_NULL, PACK(epacked, bytes, NULL, EK, EN, EK, 0));
    refuses(ISOBIT_E_ALIGN, PACK(epacked + 4, bytes, ea, EK, EN, EK, 0));
    refuses(ISOBIT_E_WORKSPACE, PACK(epacked, bytes - 1, ea, EK, EN, EK, 0));
    const float *inside = (const float *)(const void *)epacked;
    refuses(ISOBIT_E_ALIAS, PACK(epacked, bytes, inside, EK, EN, EK, 0));
    refuses(ISOBIT_E_ALIAS, PACK(epacked, bytes, inside + 16 * EK - 1, EK, EN, EK, 0));
    refuses(ISOBIT_E_ALIAS, PACK(epacked, bytes, inside + 16 * EK - 1, EN, EN, EK, 1));
    refuses(ISOBIT_E_LD, PACK(epacked, bytes, ea, EK - 1, EN, EK, 0));
    refuses(ISOBIT_E_LD, PACK(epacked, bytes, ea, EN - 1, EN, EK, 1));
    refuses(ISOBIT_E_OVERFLOW, PACK(epacked, bytes, ea, huge, EN, EK, 0));
    assert_memory_equal(&p, &untouched, sizeof p);
#undef PACK
    assert_ok(iso_pack_f32(&p, epacked, bytes, ea, EK, EN, EK, 0, NULL));
    iso_linear_options o = {.size = sizeof o};
#define LINEAR(y, ldy, x, ldx, w, m) iso_linear_f32(y, ldy, x, ldx, w, m, &o, NULL)
    assert_ok(LINEAR(ec, EN, eb, EK, &p, EM));
    refuses(ISOBIT_E_NULL, LINEAR(NULL, EN, eb, EK, &p, EM));
    refuses(ISOBIT_E_NULL, LINEAR(ec, EN, NULL, EK, &p, EM));
    refuses(ISOBIT_E_NULL, LINEAR(ec, EN, eb, EK, NULL, EM));
    iso_packed empty = {NULL, EN, EK};
    refuses(ISOBIT_E_NULL, LINEAR(ec, EN, eb, EK, &empty, EM));
    refuses(ISOBIT_E_LD, LINEAR(ec, EN - 1, eb, EK, &p, EM));
    refuses(ISOBIT_E_LD, LINEAR(ec, EN, eb, EK - 1, &p, EM));
    refuses(ISOBIT_E_OVERFLOW, LINEAR(ec, huge, eb, EK, &p, EM));
    refuses(ISOBIT_E_OVERFLOW, LINEAR(ec, EN, eb, EK, &p, huge));
    refuses(ISOBIT_E_ALIAS, LINEAR(ec, EN, ec + 2, EK, &p, EM));
    o.residual = er;
    o.ldr = EN - 1;
    refuses(ISOBIT_E_LD, LINEAR(ec, EN, eb, EK, &p, EM));
    o.residual = ec + 1;
    o.ldr = EN;
    refuses(ISOBIT_E_ALIAS, LINEAR(ec, EN, eb, EK, &p, EM));
    o.residual = NULL;
    o.act = (iso_activation)6;
    refuses(ISOBIT_E_OPTION, LINEAR(ec, EN, eb, EK, &p, EM));
    o.act = ISOBIT_ACT_NONE;
    o.size = 1;
    refuses(ISOBIT_E_SIZE, LINEAR(ec, EN, eb, EK, &p, EM));
#undef LINEAR
    refuses(ISOBIT_E_NULL, iso_linear_f32_workspace_bytes(NULL, &p, EM, NULL));
    refuses(ISOBIT_E_NULL, iso_linear_f32_workspace_bytes(&bytes, NULL, EM, NULL));
#define GEMV(y, w, ldw, x, t) iso_gemv_f32(y, w, ldw, x, EN, EK, t, NULL)
    refuses(ISOBIT_E_NULL, GEMV(NULL, ea, EK, eb, 0));
    refuses(ISOBIT_E_NULL, GEMV(ec, NULL, EK, eb, 0));
    refuses(ISOBIT_E_NULL, GEMV(ec, ea, EK, NULL, 0));
    refuses(ISOBIT_E_LD, GEMV(ec, ea, EK - 1, eb, 0));
    refuses(ISOBIT_E_LD, GEMV(ec, ea, EN - 1, eb, 1));
    refuses(ISOBIT_E_OVERFLOW, GEMV(ec, ea, SIZE_MAX / 8, eb, 0));
    refuses(ISOBIT_E_ALIAS, GEMV(ec, ea, EK, ec + 1, 0));
    refuses(ISOBIT_E_ALIAS, GEMV(ec + 3, ec, EK, eb, 0));
#undef GEMV
}

static void rows_refuse(void **state) {
    (void)state;
    fill_error_operands();
    iso_softmax_options s = {.size = sizeof s};
    size_t lengths[EM] = {1, 2, EN, EN + 1, 0};
    uint8_t mask[EM * EN] = {0};
#define SOFTMAX(y, ldy, x, ldx, rows) iso_softmax_f32(y, ldy, x, ldx, rows, EN, &s, NULL)
    assert_ok(SOFTMAX(ec, EN, ea, EN, EM));
    refuses(ISOBIT_E_NULL, SOFTMAX(NULL, EN, ea, EN, EM));
    refuses(ISOBIT_E_NULL, SOFTMAX(ec, EN, NULL, EN, EM));
    refuses(ISOBIT_E_LD, SOFTMAX(ec, EN - 1, ea, EN, EM));
    refuses(ISOBIT_E_LD, SOFTMAX(ec, EN, ea, EN - 1, EM));
    refuses(ISOBIT_E_OVERFLOW, SOFTMAX(ec, EN, ea, huge, EM));
    refuses(ISOBIT_E_OVERFLOW, SOFTMAX(ec, EN, ea, EN, huge));
    refuses(ISOBIT_E_ALIAS, SOFTMAX(ec, EN, ec + 1, EN, EM));
    refuses(ISOBIT_E_ALIAS, SOFTMAX(ec, EN, ec, EN + 1, EM));
    s.lengths = lengths;
    refuses(ISOBIT_E_DIM, SOFTMAX(ec, EN, ea, EN, EM));
    s.lengths = NULL;
    s.mask = mask;
    s.ldm = EN - 1;
    refuses(ISOBIT_E_LD, SOFTMAX(ec, EN, ea, EN, EM));
    s.mask = NULL;
    s.size = 2;
    refuses(ISOBIT_E_SIZE, SOFTMAX(ec, EN, ea, EN, EM));
#undef SOFTMAX
#define LOGSUMEXP(max, log_sum, x, ldx, rows)                                                      \
    iso_logsumexp_f32(max, log_sum, x, ldx, rows, EN, NULL)
    float *end = ec + (EM - 1) * EN + EN; /* of rows in ec; ea, eb and er are not touched */
    assert_ok(LOGSUMEXP(ec, ec + EM, ea, EN, EM));
    assert_true(ec[2 * EM - 1] != CANARY && ec[2 * EM] == CANARY);
    refuses(ISOBIT_E_NULL, LOGSUMEXP(NULL, ec, ea, EN, EM));
    refuses(ISOBIT_E_NULL, LOGSUMEXP(ec, NULL, ea, EN, EM));
    refuses(ISOBIT_E_NULL, LOGSUMEXP(ec, ec + EM, NULL, EN, EM));
    refuses(ISOBIT_E_LD, LOGSUMEXP(ec, ec + EM, ea, EN - 1, EM));
    refuses(ISOBIT_E_OVERFLOW, LOGSUMEXP(ec, ec + EM, ea, huge, EM));
    refuses(ISOBIT_E_OVERFLOW, LOGSUMEXP(ec, ec + EM, ea, EN, huge));
    refuses(ISOBIT_E_ALIAS, LOGSUMEXP(ec, ec, ea, EN, EM));
    refuses(ISOBIT_E_ALIAS, LOGSUMEXP(ec, ec + EM - 1, ea, EN, EM));
    refuses(ISOBIT_E_ALIAS, LOGSUMEXP(ec + EM - 1, ec, ea, EN, EM));
    refuses(ISOBIT_E_ALIAS, LOGSUMEXP(end - 1, end + EM, ec, EN, EM));
    refuses(ISOBIT_E_ALIAS, LOGSUMEXP(end + EM, end - 1, ec, EN, EM));
    assert_ok(LOGSUMEXP(end, end + EM, ec, EN, EM));
#undef LOGSUMEXP
    typedef iso_status norm(float *, size_t, const float *, size_t, size_t, size_t,
                            const iso_norm_options *, const iso_context *);
    static norm *const norms[] = {iso_layernorm_f32, iso_rmsnorm_f32};
    for (size_t i = 0; i < 2; i++) {
        iso_norm_options o = {.size = sizeof o, .eps = 1e-5f};
#define NORM(y, ldy, x, ldx, rows) norms[i](y, ldy, x, ldx, rows, EN, &o, NULL)
        assert_ok(NORM(ec, EN, ea, EN, EM));
        refuses(ISOBIT_E_NULL, NORM(NULL, EN, ea, EN, EM));
        refuses(ISOBIT_E_NULL, NORM(ec, EN, NULL, EN, EM));
        refuses(ISOBIT_E_LD, NORM(ec, EN - 1, ea, EN, EM));
        refuses(ISOBIT_E_LD, NORM(ec, EN, ea, EN - 1, EM));
        refuses(ISOBIT_E_OVERFLOW, NORM(ec, EN, ea, huge, EM));
        refuses(ISOBIT_E_ALIAS, NORM(ec, EN, ec + 1, EN, EM));
        o.residual = er, o.ldr = EN - 1;
        refuses(ISOBIT_E_LD, NORM(ec, EN, ea, EN, EM));
        o.residual = ec + 3, o.ldr = EN;
        refuses(ISOBIT_E_ALIAS, NORM(ec, EN, ea, EN, EM));
        o.residual = NULL;
        o.sum = ec + 512, o.lds = EN - 1;
        refuses(ISOBIT_E_LD, NORM(ec, EN, ea, EN, EM));
        o.sum = ec + 1, o.lds = EN;
        refuses(ISOBIT_E_ALIAS, NORM(ec, EN, ea, EN, EM));
        o.sum = ec; /* sum and y would be the same memory */
        refuses(ISOBIT_E_ALIAS, NORM(ec, EN, ea, EN, EM));
        o.sum = NULL;
        o.eps = -1e-5f;
        refuses(ISOBIT_E_OPTION, NORM(ec, EN, ea, EN, EM));
        o.eps = NAN;
        refuses(ISOBIT_E_OPTION, NORM(ec, EN, ea, EN, EM));
        o.eps = INFINITY;
        refuses(ISOBIT_E_OPTION, NORM(ec, EN, ea, EN, EM));
        o.eps = 0, o.size = 9;
        refuses(ISOBIT_E_SIZE, NORM(ec, EN, ea, EN, EM));
#undef NORM
    }
    iso_eltwise_options e = {.size = sizeof e};
#define ELTWISE(y, ldy, x, ldx) iso_eltwise_f32(y, ldy, x, ldx, EM, EN, &e, NULL)
    assert_ok(ELTWISE(ec, EN, ea, EN));
    refuses(ISOBIT_E_NULL, ELTWISE(NULL, EN, ea, EN));
    refuses(ISOBIT_E_NULL, ELTWISE(ec, EN, NULL, EN));
    refuses(ISOBIT_E_LD, ELTWISE(ec, EN - 1, ea, EN));
    refuses(ISOBIT_E_LD, ELTWISE(ec, EN, ea, EN - 1));
    refuses(ISOBIT_E_OVERFLOW, ELTWISE(ec, huge, ea, EN));
    refuses(ISOBIT_E_ALIAS, ELTWISE(ec, EN, ec + 1, EN));
    e.residual = er, e.ldr = EN - 1;
    refuses(ISOBIT_E_LD, ELTWISE(ec, EN, ea, EN));
    e.residual = NULL;
    e.act = (iso_activation)6;
    refuses(ISOBIT_E_OPTION, ELTWISE(ec, EN, ea, EN));
    e.act = ISOBIT_ACT_NONE, e.size = sizeof e + 8;
    refuses(ISOBIT_E_SIZE, ELTWISE(ec, EN, ea, EN));
#undef ELTWISE
    assert_ok(iso_axpby_f32(ec, EN, ea, EN, EM, EN, 1, 1, NULL));
    refuses(ISOBIT_E_NULL, iso_axpby_f32(NULL, EN, ea, EN, EM, EN, 1, 1, NULL));
    refuses(ISOBIT_E_NULL, iso_axpby_f32(ec, EN, NULL, EN, EM, EN, 1, 1, NULL));
    refuses(ISOBIT_E_LD, iso_axpby_f32(ec, EN - 1, ea, EN, EM, EN, 1, 1, NULL));
    refuses(ISOBIT_E_LD, iso_axpby_f32(ec, EN, ea, EN - 1, EM, EN, 1, 1, NULL));
    refuses(ISOBIT_E_OVERFLOW, iso_axpby_f32(ec, huge, ea, EN, EM, EN, 1, 1, NULL));
    refuses(ISOBIT_E_ALIAS, iso_axpby_f32(ec, EN, ec + 1, EN, EM, EN, 1, 1, NULL));
#define GATE(y, ldy, a, lda, b, ldb, act)                                                          \
    iso_gate_f32(y, ldy, a, lda, b, ldb, EM, EN, (iso_activation)(act), NULL)
    assert_ok(GATE(ec, EN, ea, EN, eb, EN, ISOBIT_ACT_TANH));
    refuses(ISOBIT_E_NULL, GATE(NULL, EN, ea, EN, eb, EN, 0));
    refuses(ISOBIT_E_NULL, GATE(ec, EN, NULL, EN, eb, EN, 0));
    refuses(ISOBIT_E_NULL, GATE(ec, EN, ea, EN, NULL, EN, 0));
    refuses(ISOBIT_E_LD, GATE(ec, EN - 1, ea, EN, eb, EN, 0));
    refuses(ISOBIT_E_LD, GATE(ec, EN, ea, EN - 1, eb, EN, 0));
    refuses(ISOBIT_E_LD, GATE(ec, EN, ea, EN, eb, EN - 1, 0));
    refuses(ISOBIT_E_OVERFLOW, GATE(ec, huge, ea, EN, eb, EN, 0));
    refuses(ISOBIT_E_OVERFLOW, GATE(ec, EN, ea, huge, eb, EN, 0));
    refuses(ISOBIT_E_OVERFLOW, GATE(ec, EN, ea, EN, eb, huge, 0));
    refuses(ISOBIT_E_ALIAS, GATE(ec, EN, ec + 1, EN, eb, EN, 0));
    refuses(ISOBIT_E_ALIAS, GATE(ec, EN, ea, EN, ec + 1, EN, 0));
    refuses(ISOBIT_E_ALIAS, GATE(ec, EN, ec, EN + 1, eb, EN, 0)); /* another stride */
    refuses(ISOBIT_E_ALIAS, GATE(ec, EN, ea, EN, ec, EN + 1, 0));
    refuses(ISOBIT_E_OPTION, GATE(ec, EN, ea, EN, eb, EN, ISOBIT_ACT_TANH + 1));
    refuses(ISOBIT_E_OPTION, GATE(ec, EN, ea, EN, eb, EN, -1));
#undef GATE
}

/* An executor for calls that are refused, or only asked what they need. */
static void never_called(void *user, size_t n, void (*fn)(void *arg, size_t i), void *arg) {
    (void)user, (void)n, (void)fn, (void)arg;
    fail_msg("tasks of a call that had to be refused");
}

static void attention_refuses(void **state) {
    (void)state;
    fill_error_operands();
    const iso_attention_shape good = {.B = 2,
                                      .H = 2,
                                      .Sq = 3,
                                      .Sk = 4,
                                      .dh = 5,
                                      .q = {30, 5, 10},
                                      .k = {40, 5, 10},
                                      .v = {40, 5, 10},
                                      .o = {30, 5, 10}};
    iso_attention_shape s = good;
    iso_attention_options p = {.size = sizeof p, .scale = 1};
    size_t lengths[2] = {4, 5}, bytes = 77;
#define ATTENTION(o, q, k, v) iso_attention_f32(o, q, k, v, &s, &p, NULL)
    assert_ok(ATTENTION(ec, ea, eb, er));
    refuses(ISOBIT_E_NULL, ATTENTION(NULL, ea, eb, er));
    refuses(ISOBIT_E_NULL, ATTENTION(ec, NULL, eb, er));
    refuses(ISOBIT_E_NULL, ATTENTION(ec, ea, NULL, er));
    refuses(ISOBIT_E_NULL, ATTENTION(ec, ea, eb, NULL));
    refuses(ISOBIT_E_NULL, iso_attention_f32(ec, ea, eb, er, NULL, &p, NULL));
    refuses(ISOBIT_E_ALIAS, ATTENTION(ec, ec, eb, er));
    refuses(ISOBIT_E_ALIAS, ATTENTION(ec, ea, ec + 5, er));
    refuses(ISOBIT_E_ALIAS, ATTENTION(ec, ea, eb, ec + 59));
    s.q.seq = 4;
    refuses(ISOBIT_E_LD, ATTENTION(ec, ea, eb, er));
    s = good, s.k.seq = 4;
    refuses(ISOBIT_E_LD, ATTENTION(ec, ea, eb, er));
    s = good, s.v.seq = 4;
    refuses(ISOBIT_E_LD, ATTENTION(ec, ea, eb, er));
    s = good, s.o.seq = 4;
    refuses(ISOBIT_E_LD, ATTENTION(ec, ea, eb, er));
    s = good, s.q.batch = huge;
    refuses(ISOBIT_E_OVERFLOW, ATTENTION(ec, ea, eb, er));
    s = good, s.v.head = SIZE_MAX;
    refuses(ISOBIT_E_OVERFLOW, ATTENTION(ec, ea, eb, er));
    s = good, s.Sq = huge;
    refuses(ISOBIT_E_OVERFLOW, ATTENTION(ec, ea, eb, er));
    s = good, s.dh = 513;
    refuses(ISOBIT_E_DIM, ATTENTION(ec, ea, eb, er));
    s = good, p.key_lengths = lengths;
    refuses(ISOBIT_E_RANGE, ATTENTION(ec, ea, eb, er));
    p.key_lengths = NULL, p.causal = 1, p.past = SIZE_MAX;
    refuses(ISOBIT_E_OVERFLOW, ATTENTION(ec, ea, eb, er));
    p.causal = 0, p.past = 0;
    p.bias = er, p.bias_strides = (iso_strides){0, 0, 3};
    refuses(ISOBIT_E_LD, ATTENTION(ec, ea, eb, er));
    /* By distance: two heads of 6 elements, two of which lie before the first one. */
    p.bias_strides = (iso_strides){0, 6, ISOBIT_BY_DISTANCE};
    p.bias = ec + 2;
    assert_ok(ATTENTION(ec + 12, ea, eb, er));
    p.bias = ec + 3;
    refuses(ISOBIT_E_ALIAS, ATTENTION(ec + 12, ea, eb, er));
    p.bias = ec + 62;
    assert_ok(ATTENTION(ec, ea, eb, er));
    p.bias = ec + 61;
    refuses(ISOBIT_E_ALIAS, ATTENTION(ec, ea, eb, er));
    p.bias = er + 2, p.bias_strides.batch = SIZE_MAX;
    refuses(ISOBIT_E_OVERFLOW, ATTENTION(ec, ea, eb, er));
    p.bias = NULL;
    p.weights = ec + 1000, p.weights_strides = (iso_strides){24, 12, 3};
    refuses(ISOBIT_E_LD, ATTENTION(ec, ea, eb, er));
    p.weights = ec + 10, p.weights_strides = (iso_strides){24, 12, 4};
    refuses(ISOBIT_E_ALIAS, ATTENTION(ec, ea, eb, er));
    p.weights = NULL, p.size = 8;
    refuses(ISOBIT_E_SIZE, ATTENTION(ec, ea, eb, er));
    refuses(ISOBIT_E_SIZE, iso_attention_f32_workspace_bytes(&bytes, &s, &p, NULL));
    assert_int_equal(bytes, 77);
    p.size = sizeof p;
    refuses(ISOBIT_E_NULL, iso_attention_f32_workspace_bytes(NULL, &s, &p, NULL));
    refuses(ISOBIT_E_NULL, iso_attention_f32_workspace_bytes(&bytes, NULL, &p, NULL));
    s = good, s.B = SIZE_MAX / 2;
    refuses(ISOBIT_E_OVERFLOW, iso_attention_f32_workspace_bytes(&bytes, &s, &p, NULL));
    s = good, s.Sq = SIZE_MAX / 2;
    refuses(ISOBIT_E_OVERFLOW, iso_attention_f32_workspace_bytes(&bytes, &s, &p, NULL));
    assert_int_equal(bytes, 77);
    /* One thread takes the scratch of one task, however many heads there are. */
    size_t one = 0, many = 0;
    s = good, s.B = s.H = 1, p.key_panels = 1;
    assert_ok(iso_attention_f32_workspace_bytes(&one, &s, &p, NULL));
    s.B = 5, s.H = 7, s.Sq = 1000;
    assert_ok(iso_attention_f32_workspace_bytes(&many, &s, &p, NULL));
    assert_true(one > 0 && many == one);
    p.key_panels = 0;
    /* Two tasks take that of two heads, also when the heads do not come out even but are many. */
    const iso_executor two = {never_called, NULL, 2};
    const iso_context pair = {.size = sizeof pair, .executor = &two};
    size_t alone = 0;
    s.B = 1, s.H = 8, s.Sk = 100;
    assert_ok(iso_attention_f32_workspace_bytes(&alone, &s, &p, NULL));
    assert_ok(iso_attention_f32_workspace_bytes(&one, &s, &p, &pair));
    s.H = 9;
    assert_ok(iso_attention_f32_workspace_bytes(&many, &s, &p, &pair));
    assert_true(one > alone && many == one);
    /* A copy of the values that is too large. */
    s = good, s.Sq = 512, s.Sk = SIZE_MAX / 4, p.key_panels = 1, bytes = 77;
    refuses(ISOBIT_E_OVERFLOW, iso_attention_f32_workspace_bytes(&bytes, &s, &p, NULL));
    s.Sk = SIZE_MAX / 8 + 1, s.dh = 8; /* with no bits of its size left */
    refuses(ISOBIT_E_OVERFLOW, iso_attention_f32_workspace_bytes(&bytes, &s, &p, NULL));
    p.key_panels = 0;
#if SIZE_MAX > UINT32_MAX
    /* The panels of one head would fit, those of 16 tasks are 2^64 floats. */
    const iso_executor sixteen = {never_called, NULL, 16};
    const iso_context tasks = {.size = sizeof tasks, .executor = &sixteen};
    s = (iso_attention_shape){.B = 1,
                              .H = 16,
                              .Sq = 2,
                              .Sk = (size_t)1 << 56,
                              .dh = 16,
                              .q = {0, 16, 256},
                              .k = {0, 0, 16},
                              .v = {0, 0, 16},
                              .o = {0, 16, 256}};
    refuses(ISOBIT_E_OVERFLOW, iso_attention_f32_workspace_bytes(&bytes, &s, &p, &tasks));
    refuses(ISOBIT_E_OVERFLOW, iso_attention_f32(ec, ea, ec + 512, ec + 512, &s, &p, &tasks));
#endif
    assert_int_equal(bytes, 77);
#undef ATTENTION
    assert_int_equal(iso_key_panels_floats(SIZE_MAX, 2), 0);
    assert_int_equal(iso_key_panels_floats(SIZE_MAX / 64, 512), 0);
    assert_int_equal(iso_key_panels_floats(1, 3), 48);
    assert_int_equal(iso_key_panels_floats(16, 3), 48);
    assert_int_equal(iso_key_panels_floats(17, 3), 96);
#define APPEND(p, first, k, ldk) iso_key_panels_append(p, first, k, ldk, 3, 5, NULL)
    refuses(ISOBIT_E_NULL, APPEND(NULL, 0, ea, 5));
    refuses(ISOBIT_E_NULL, APPEND(ec, 0, NULL, 5));
    refuses(ISOBIT_E_LD, APPEND(ec, 0, ea, 4));
    refuses(ISOBIT_E_OVERFLOW, APPEND(ec, SIZE_MAX - 1, ea, 5));
    refuses(ISOBIT_E_OVERFLOW, APPEND(ec, 0, ea, huge));
    refuses(ISOBIT_E_ALIAS, APPEND(ec, 0, ec + 7, 5));
#undef APPEND
    /* nothing to do */
    iso_attention_shape none = good;
    none.Sq = 0;
    assert_ok(iso_attention_f32(NULL, NULL, eb, er, &none, NULL, NULL));
    none = good, none.B = 0;
    assert_ok(iso_attention_f32(NULL, NULL, NULL, NULL, &none, NULL, NULL));
}

static void embeddings_refuse(void **state) {
    (void)state;
    fill_error_operands();
    uint32_t ids[4] = {0, 9, 3, 1}, rows[4] = {3, 0, 7, 1};
#define EMBED(y, ldy, i, t, vocabulary, p, r, room)                                                \
    iso_embed_f32(y, ldy, i, 4, t, vocabulary, 6, 1.5f, p, r, room, NULL)
    assert_ok(EMBED(ec, 6, ids, ea, 10, eb, rows, 8));
    refuses(ISOBIT_E_NULL, EMBED(NULL, 6, ids, ea, 10, eb, rows, 8));
    refuses(ISOBIT_E_NULL, EMBED(ec, 6, NULL, ea, 10, eb, rows, 8));
    refuses(ISOBIT_E_NULL, EMBED(ec, 6, ids, NULL, 10, eb, rows, 8));
    refuses(ISOBIT_E_LD, EMBED(ec, 5, ids, ea, 10, eb, rows, 8));
    refuses(ISOBIT_E_RANGE, EMBED(ec, 6, ids, ea, 9, eb, rows, 8));
    ids[0] = 10; /* the first one counts too */
    refuses(ISOBIT_E_RANGE, EMBED(ec, 6, ids, ea, 10, eb, rows, 8));
    ids[0] = 0;
    refuses(ISOBIT_E_RANGE, EMBED(ec, 6, ids, ea, 10, eb, rows, 7));
    refuses(ISOBIT_E_RANGE, EMBED(ec, 6, ids, ea, 10, eb, NULL, 3));
    refuses(ISOBIT_E_OVERFLOW, EMBED(ec, huge, ids, ea, 10, eb, rows, 8));
    refuses(ISOBIT_E_OVERFLOW, EMBED(ec, 6, ids, ea, huge, eb, rows, 8));
    refuses(ISOBIT_E_ALIAS, EMBED(ec, 6, ids, ec + 2, 10, eb, rows, 8));
#undef EMBED
#define POSITIONS(y, ldy, first, layout) iso_positions_f32(y, ldy, first, 4, 6, layout, NULL)
    assert_ok(POSITIONS(ec, 6, (1 << 20) - 4, ISOBIT_POS_INTERLEAVED));
    refuses(ISOBIT_E_NULL, POSITIONS(NULL, 6, 0, ISOBIT_POS_INTERLEAVED));
    refuses(ISOBIT_E_LD, POSITIONS(ec, 5, 0, ISOBIT_POS_INTERLEAVED));
    refuses(ISOBIT_E_LIMIT, POSITIONS(ec, 6, (1 << 20) - 3, ISOBIT_POS_INTERLEAVED));
    refuses(ISOBIT_E_LIMIT, POSITIONS(ec, 6, SIZE_MAX - 1, ISOBIT_POS_INTERLEAVED));
    refuses(ISOBIT_E_OPTION, POSITIONS(ec, 6, 0, (iso_position_layout)3));
    refuses(ISOBIT_E_OVERFLOW, POSITIONS(ec, huge, 0, ISOBIT_POS_INTERLEAVED));
#undef POSITIONS
    struct {
        size_t ldy, ldx, rows, heads, dh, rotary, ld, count;
        int layout;
    } s, good = {24, 24, 4, 3, 8, 6, 6, 8, ISOBIT_ROPE_HALF};
    uint32_t at[4] = {3, 0, 7, 1};
#define ROPE(y, x, table, given)                                                                   \
    iso_rope_f32(y, s.ldy, x, s.ldx, s.rows, s.heads, s.dh, s.rotary, (iso_rope_layout)s.layout,   \
                 table, s.ld, given, s.count, NULL)
#define REFUSES(code, member, value)                                                               \
    do {                                                                                           \
        s = good, s.member = (value);                                                              \
        refuses(code, ROPE(ec, ea, eb, at));                                                       \
    } while (0)
    s = good;
    assert_ok(ROPE(ec, ea, eb, at));
    refuses(ISOBIT_E_NULL, ROPE(NULL, ea, eb, at));
    refuses(ISOBIT_E_NULL, ROPE(ec, NULL, eb, at));
    refuses(ISOBIT_E_NULL, ROPE(ec, ea, NULL, at));
    refuses(ISOBIT_E_ALIAS, ROPE(ec, ec + 1, eb, at));
    refuses(ISOBIT_E_ALIAS, ROPE(ec, ea, ec + 90, at));
    REFUSES(ISOBIT_E_LD, ldy, 23);
    REFUSES(ISOBIT_E_LD, ldx, 23);
    REFUSES(ISOBIT_E_LD, ld, 5);
    REFUSES(ISOBIT_E_DIM, rotary, 5);
    REFUSES(ISOBIT_E_DIM, rotary, 10);
    REFUSES(ISOBIT_E_DIM, dh, 4);
    REFUSES(ISOBIT_E_DIM, dh, 514);
    REFUSES(ISOBIT_E_OPTION, layout, 2);
    REFUSES(ISOBIT_E_OPTION, layout, -1);
    REFUSES(ISOBIT_E_OVERFLOW, heads, SIZE_MAX / 8);
    REFUSES(ISOBIT_E_OVERFLOW, ldy, huge);
    REFUSES(ISOBIT_E_OVERFLOW, ldx, huge);
    REFUSES(ISOBIT_E_OVERFLOW, ld, huge);
    REFUSES(ISOBIT_E_RANGE, count, 7);
    REFUSES(ISOBIT_E_RANGE, count, 0);
    s = good, s.count = 3;
    refuses(ISOBIT_E_RANGE, ROPE(ec, ea, eb, NULL));
    s = good, at[0] = 8; /* the first one counts too */
    refuses(ISOBIT_E_RANGE, ROPE(ec, ea, eb, at));
    s.ldy = 25;
    refuses(ISOBIT_E_ALIAS, ROPE(ec, ec, eb, NULL)); /* another stride */
#undef REFUSES
#undef ROPE
#define TABLE(y, ld, first, of, rotary, scaling)                                                   \
    iso_rope_table_f32(y, ld, first, 4, of, rotary, scaling, NULL)
    assert_ok(TABLE(ec, 6, (1 << 29) - 4, ea, 6, 1));
    refuses(ISOBIT_E_NULL, TABLE(NULL, 6, 0, ea, 6, 1));
    refuses(ISOBIT_E_NULL, TABLE(ec, 6, 0, NULL, 6, 1));
    refuses(ISOBIT_E_LD, TABLE(ec, 5, 0, ea, 6, 1));
    refuses(ISOBIT_E_DIM, TABLE(ec, 6, 0, ea, 5, 1));
    refuses(ISOBIT_E_LIMIT, TABLE(ec, 6, (1 << 29) - 3, ea, 6, 1));
    refuses(ISOBIT_E_LIMIT, TABLE(ec, 6, SIZE_MAX - 1, ea, 6, 1));
    refuses(ISOBIT_E_OPTION, TABLE(ec, 6, 0, ea, 6, NAN));
    refuses(ISOBIT_E_OPTION, TABLE(ec, 6, 0, ea, 6, -INFINITY));
    refuses(ISOBIT_E_OVERFLOW, TABLE(ec, huge, 0, ea, 6, 1));
    refuses(ISOBIT_E_ALIAS, TABLE(ec, 6, 0, ec + 1, 6, 1));
#undef TABLE
}

/* Zero sizes are success for everything, with NULL operands. */
static void nothing_to_do_is_success(void **state) {
    (void)state;
    iso_packed p = {0};
    assert_ok(iso_softmax_f32(NULL, 0, NULL, 0, 0, 5, NULL, NULL));
    assert_ok(iso_softmax_f32(NULL, 0, NULL, 0, 5, 0, NULL, NULL));
    assert_ok(iso_logsumexp_f32(NULL, NULL, NULL, 0, 0, 5, NULL));
    assert_ok(iso_logsumexp_f32(NULL, NULL, NULL, 0, SIZE_MAX, 0, NULL));
    assert_ok(iso_layernorm_f32(NULL, 0, NULL, 0, 0, 5, NULL, NULL));
    assert_ok(iso_layernorm_f32(NULL, 0, NULL, 0, 5, 0, NULL, NULL));
    assert_ok(iso_rmsnorm_f32(NULL, 0, NULL, 0, 5, 0, NULL, NULL));
    assert_ok(iso_eltwise_f32(NULL, 0, NULL, 0, 0, 5, NULL, NULL));
    assert_ok(iso_gate_f32(NULL, 0, NULL, 0, NULL, 0, 0, 5, ISOBIT_ACT_SILU, NULL));
    assert_ok(iso_gate_f32(NULL, 0, NULL, 0, NULL, 0, 5, 0, ISOBIT_ACT_NONE, NULL));
    assert_ok(iso_key_panels_append(NULL, 3, NULL, 4, 0, 4, NULL));
    assert_ok(iso_embed_f32(NULL, 0, NULL, 0, NULL, 5, 4, 1, NULL, NULL, 0, NULL));
    assert_ok(iso_positions_f32(NULL, 0, 0, 0, 4, ISOBIT_POS_HALF_D, NULL));
    assert_ok(iso_positions_f32(NULL, 0, 0, 4, 0, ISOBIT_POS_HALF_D, NULL));
    for (size_t none = 0; none < 3; none++) /* rows, heads, elements */
        assert_ok(iso_rope_f32(NULL, 0, NULL, 0, none != 0, none != 1, none == 2 ? 0 : 8, 0,
                               ISOBIT_ROPE_HALF, NULL, 0, NULL, 0, NULL));
    assert_ok(iso_rope_table_f32(NULL, 0, 0, 0, NULL, 4, 1, NULL));
    assert_ok(iso_rope_table_f32(NULL, 0, 0, 4, NULL, 0, 1, NULL));
    size_t bytes = 99;
    assert_ok(iso_pack_f32_bytes(&bytes, 0, 0));
    assert_ok(iso_pack_f32(&p, NULL, 0, NULL, 0, 0, 5, 0, NULL));
    assert_ok(iso_linear_f32(NULL, 0, NULL, 5, &p, 3, NULL, NULL));
}

/* ----------------------------------------------------------------------------------- workspace */

/* A context whose workspace has exactly so many bytes, at an odd address, before a guard page. */
static iso_context with_workspace(const iso_context *base, size_t bytes) {
    iso_context x = *base;
    x.workspace = guarded(bytes);
    x.workspace_bytes = bytes;
    return x;
}

static size_t allocations_of(iso_status *status, iso_status (*call)(void *, const iso_context *),
                             void *arg, const iso_context *x) {
    atomic_store(&allocations, 0);
    atomic_store(&counting, true);
    *status = call(arg, x);
    atomic_store(&counting, false);
    return atomic_load(&allocations);
}

struct gemm_args {
    float *c, *a, *b;
    size_t m, n, k;
    iso_gemm_options o;
    iso_packed packed;
};

static iso_status call_gemm(void *arg, const iso_context *x) {
    struct gemm_args *g = arg;
    return iso_gemm_f32(g->c, g->n, g->a, g->o.trans_a ? g->m : g->k, g->b,
                        g->o.trans_b ? g->k : g->n, g->m, g->n, g->k, &g->o, x);
}

static iso_status call_linear(void *arg, const iso_context *x) {
    struct gemm_args *g = arg;
    return iso_linear_f32(g->c, g->n, g->a, g->k, &g->packed, g->m, NULL, x);
}

static iso_status call_attention(void *arg, const iso_context *x) { return attention_call(arg, x); }

static void check_workspace(iso_status (*call)(void *, const iso_context *), void *arg,
                            size_t bytes, const iso_context *base, float *out, size_t n,
                            const float *expect) {
    iso_status status;
    for (size_t odd = 0; odd < 3; odd++) { /* any alignment: the size has to allow for it */
        iso_context x = with_workspace(base, bytes + odd);
        x.workspace_bytes = bytes;
        for (size_t i = 0; i < n; i++)
            out[i] = CANARY;
        size_t count = allocations_of(&status, call, arg, &x);
        assert_int_equal(status, ISOBIT_OK);
        assert_int_equal(count, 0);
        assert_same("with workspace", out, n, expect, n, 1, n);
    }
    if (bytes) {
        iso_context x = with_workspace(base, bytes - 1);
        for (size_t i = 0; i < n; i++)
            out[i] = CANARY;
        size_t count = allocations_of(&status, call, arg, &x);
        assert_int_equal(status, ISOBIT_E_WORKSPACE);
        assert_int_equal(count, 0);
        assert_true(all_canaries(out, n));
    }
}

struct gemv_args {
    float *y, *w, *x;
    size_t n, k;
};

static iso_status call_gemv(void *arg, const iso_context *x) {
    struct gemv_args *g = arg;
    return iso_gemv_f32(g->y, g->w, g->n, g->x, g->n, g->k, 1, x);
}

/* gemv asks for no workspace: a large matrix is read faster with one, or with memory of its own,
 * but it takes what it gets, and then allocates nothing. */
static void gemv_takes_any_workspace(void **state) {
    (void)state;
    static const size_t shapes[][2] = {{330, 520}, {4200, 1024}};
    for (size_t i = 0; i < (quick ? 1 : 2); i++) {
        const size_t n = shapes[i][0], k = shapes[i][1];
        const size_t each = 5 * sizeof(float) * (n < 4096 ? (n + 15) / 16 * 16 : 4096);
        struct gemv_args g = {floats(n), random_floats(n * k), random_floats(k), n, k};
        float *expect = floats(n);
        for (size_t j = 0; j < n; j++)
            expect[j] = iso_oracle_lanes(g.w + j, n, g.x, 1, k);
        const size_t sizes[] = {1, each - 1, each + 256, each * 3 + 256};
        for (size_t w = 0; w < way_count; w++)
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
                const iso_context x = with_workspace(&ways[w].context, sizes[s]);
                iso_status status;
                memset(g.y, 0, n * sizeof(float));
                assert_int_equal(allocations_of(&status, call_gemv, &g, &x), 0);
                assert_int_equal(status, ISOBIT_OK);
                assert_same(ways[w].name, g.y, n, expect, n, 1, n);
            }
        release(NULL);
    }
}

/* Few rows of a product may take another way than many, and one that needs scratch. */
static void workspace_for_more_rows_is_enough(void **state) {
    (void)state;
    static const size_t shapes[][3] = {
        {16, 2100, 1030}, {32, 4200, 512}, {32, 8200, 512}, {32, 300, 520}, {12, 1024, 257}};
    for (size_t i = quick ? 3 : 0; i < 5; i++) {
        const size_t rows = shapes[i][0], n = shapes[i][1], k = shapes[i][2];
        const iso_gemm_options o = {.size = sizeof o, .trans_b = i == 3, .alpha = 1};
        const size_t ldb = o.trans_b ? k : n;
        float *a = random_floats(rows * k), *b = random_floats(n * k);
        float *c = floats(rows * n), *expect = floats(rows * n);
        /* the large one takes its time: the best set alone, on all numbers of threads */
        const size_t count = n > 8000 ? isa_ways + way_count / isa_ways - 1
                             : quick  ? isa_ways
                                      : way_count;
        assert_ok(iso_gemm_f32(expect, n, a, k, b, ldb, rows, n, k, &o, NULL));
        for (size_t w = 0; w < count; w++)
            for (size_t m = rows + 1; m <= 200; m += 199 - rows) {
                size_t bytes = 0;
                assert_ok(iso_gemm_f32_workspace_bytes(&bytes, m, n, k, &o, &ways[w].context));
                for (size_t few = 1; few <= rows; few += rows / 2 - 1) {
                    const iso_context x = with_workspace(&ways[w].context, bytes);
                    assert_ok(iso_gemm_f32(c, n, a, k, b, ldb, few, n, k, &o, &x));
                    assert_same("a workspace for more rows", c, n, expect, n, few, n);
                }
            }
    }
    release(NULL);
}

static void run_in_turn(void *user, size_t n, void (*fn)(void *arg, size_t i), void *arg) {
    (void)user;
    for (size_t i = 0; i < n; i++)
        fn(arg, i);
}

/* Scratch for each thread of an executor that claims more than there can be. */
static void scratch_of_all_threads_may_overflow(void **state) {
    (void)state;
    enum { N = 200 };
    const iso_executor e = {run_in_turn, NULL, SIZE_MAX};
    iso_context x = {.size = sizeof x, .executor = &e};
    float *a = random_floats(N * N), *b = random_floats(N * N), *c = floats(N * N);
    const iso_packed w = pack(b, N, N, N, 0, NULL);
    const iso_linear_options l = {.size = sizeof l, .residual = c, .ldr = N};
    const iso_gemm_options g = {.size = sizeof g, .trans_a = 1, .alpha = 1};
    size_t bytes = 7;
    for (size_t i = 0; i < N * N; i++)
        c[i] = CANARY;
    assert_int_equal(iso_linear_f32_workspace_bytes(&bytes, &w, N, &x), ISOBIT_E_OVERFLOW);
    assert_int_equal(iso_gemm_f32_workspace_bytes(&bytes, N, N, N, &g, &x), ISOBIT_E_OVERFLOW);
    assert_int_equal(bytes, 7);
    for (int workspace = 0; workspace < 2; workspace++) {
        assert_int_equal(iso_linear_f32(c, N, a, N, &w, N, &l, &x), ISOBIT_E_OVERFLOW);
        assert_int_equal(iso_gemm_f32(c, N, a, N, b, N, N, N, N, &g, &x), ISOBIT_E_OVERFLOW);
        x.workspace = a, x.workspace_bytes = N * sizeof *a;
    }
    assert_true(all_canaries(c, N * N));
}

/* More rows than a block has, and a residual that is the output: more sums wait than for a C that
 * is written only, and what was promised before C was known covers it. */
static void workspace_covers_a_residual_in_place(void **state) {
    (void)state;
    enum { M = 140, K = 550 };
    const size_t n = quick ? 130 : 520;
    float *a = random_floats((size_t)M * K), *b = random_floats(n * K);
    float *c = floats(M * n), *expect = floats(M * n);
    float *before = random_floats(M * n);
    for (int trans_b = 0; trans_b < 2; trans_b++) {
        const size_t ldb = trans_b ? K : n;
        const iso_gemm_options o = {
            .size = sizeof o, .trans_b = trans_b, .alpha = 1, .residual = c, .ldr = n};
        memcpy(c, before, sizeof(float) * M * n);
        assert_ok(iso_gemm_f32(c, n, a, K, b, ldb, M, n, K, &o, NULL));
        memcpy(expect, c, sizeof(float) * M * n);
        for (size_t w = 0; w < (quick ? isa_ways : way_count); w++) {
            size_t bytes = SIZE_MAX;
            assert_ok(iso_gemm_f32_workspace_bytes(&bytes, M, n, K, &o, &ways[w].context));
            iso_context x = with_workspace(&ways[w].context, bytes);
            memcpy(c, before, sizeof(float) * M * n);
            assert_ok(iso_gemm_f32(c, n, a, K, b, ldb, M, n, K, &o, &x));
            assert_same(ways[w].name, c, n, expect, n, M, n);
        }
    }
}

static void workspace_is_enough(void **state) {
    (void)state;
    static const size_t shapes[][3] = {
        {1, 40, 30},      {9, 17, 33},    {65, 130, 70}, {30, 600, 5}, {200, 33, 513},
        {130, 300, 1030}, {28, 150, 520}, {10, 20, 32},  {64, 16, 64}, {64, 64, 16}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (quick && shapes[i][2] > 500)
            continue;
        for (int trans = 0; trans < 4; trans++) {
            struct gemm_args g = {.m = shapes[i][0], .n = shapes[i][1], .k = shapes[i][2]};
            g.a = random_floats(g.m * g.k), g.b = random_floats(g.k * g.n);
            g.c = floats(g.m * g.n);
            g.o = (iso_gemm_options){
                .size = sizeof g.o, .trans_a = trans & 1, .trans_b = trans >> 1, .alpha = 1};
            float *expect = floats(g.m * g.n);
            assert_ok(call_gemm(&g, NULL));
            memcpy(expect, g.c, g.m * g.n * sizeof *expect);
            for (size_t w = 0; w < (quick ? isa_ways : way_count); w++) {
                size_t bytes = SIZE_MAX;
                assert_ok(
                    iso_gemm_f32_workspace_bytes(&bytes, g.m, g.n, g.k, &g.o, &ways[w].context));
                check_workspace(call_gemm, &g, bytes, &ways[w].context, g.c, g.m * g.n, expect);
            }
            if (trans == 2) { /* x W^T, packed */
                g.packed = pack(g.b, g.k, g.n, g.k, 0, NULL);
                for (size_t w = 0; w < (quick ? isa_ways : way_count); w++) {
                    size_t bytes = SIZE_MAX;
                    assert_ok(
                        iso_linear_f32_workspace_bytes(&bytes, &g.packed, g.m, &ways[w].context));
                    check_workspace(call_linear, &g, bytes, &ways[w].context, g.c, g.m * g.n,
                                    expect);
                }
            }
            release(NULL);
        }
    }
    for (size_t i = 0; i < ATTENTION_CASES; i++) {
        const struct attention_case *c = &attention_cases[i];
        if (c->Sq * c->Sk * c->dh > (quick ? 100000 : 1000000))
            continue;
        for (int panels = 0; panels < 2; panels++) {
            struct attention_data d;
            attention_make(&d, c);
            if (panels)
                make_panels(&d, NULL);
            assert_ok(attention_call(&d, NULL));
            float *expect = floats(d.o_floats);
            memcpy(expect, d.o, d.o_floats * sizeof *expect);
            for (size_t w = 0; w < way_count; w++) {
                size_t bytes = SIZE_MAX;
                assert_ok(iso_attention_f32_workspace_bytes(&bytes, &d.shape, &d.options,
                                                            &ways[w].context));
                check_workspace(call_attention, &d, bytes, &ways[w].context, d.o, d.o_floats,
                                expect);
            }
            release(NULL);
        }
    }
}

/* The calls that have no workspace never allocate. */
static iso_status call_rows(void *arg, const iso_context *x) {
    float **p = arg;
    for (size_t op = 0; op < ROW_OPS; op++) {
        iso_status status = row_ops[op].call(p[0], COLS, p[1], COLS, 0, ROWS, x);
        if (status != ISOBIT_OK)
            return status;
    }
    iso_status status = iso_gemv_f32(p[0], p[1], 100, p[1] + 90 * 100, 90, 100, 0, x);
    if (status == ISOBIT_OK)
        status = iso_logsumexp_f32(p[0], p[0] + ROWS, p[1], COLS, ROWS, COLS, x);
    if (status == ISOBIT_OK)
        status = iso_gate_f32(p[0], COLS, p[1], COLS, p[1], COLS, ROWS, COLS, ISOBIT_ACT_SILU, x);
    if (status == ISOBIT_OK)
        status = iso_rope_table_f32(p[0], 64, 3, ROWS, p[1], 64, 1, x);
    if (status == ISOBIT_OK)
        status = iso_rope_f32(p[0], 64, p[1], 64, ROWS, 1, 64, 64, ISOBIT_ROPE_INTERLEAVED, p[1],
                              64, NULL, ROWS, x);
    return status != ISOBIT_OK ? status
                               : iso_positions_f32(p[0], 64, 3, 50, 64, ISOBIT_POS_HALF_D, x);
}

static void rows_never_allocate(void **state) {
    (void)state;
    float *p[2] = {floats(ROWS * COLS), random_floats(ROWS * COLS)};
    for (size_t w = 0; w < way_count; w++) {
        iso_status status;
        size_t count = allocations_of(&status, call_rows, p, &ways[w].context);
        assert_int_equal(status, ISOBIT_OK);
        assert_int_equal(count, 0);
    }
}

/* -------------------------------------------------------------------------------------- options */

/* An options struct of a future version: larger, zero beyond what we know. */
static void context_members_are_checked(void **state) {
    (void)state;
    float x[4] = {1, 2, 3, 4}, y[4] = {0};
    iso_executor none = {NULL, NULL, 1};
    iso_context c = {.size = sizeof c, .executor = &none};
    assert_int_equal(iso_softmax_f32(y, 4, x, 4, 1, 4, NULL, &c), ISOBIT_E_NULL);
    assert_true(y[0] == 0);
    c = (iso_context){.size = sizeof c};
    assert_ok(iso_softmax_f32(y, 4, x, 4, 1, 4, NULL, &c));
    for (size_t i = 0; i < iso_isa_count(); i++) { /* a set that this machine lacks */
        if (!iso_isa_missing(iso_isa_get(i)))
            continue;
        c.isa = iso_isa_get(i);
        assert_int_equal(iso_softmax_f32(y, 4, x, 4, 1, 4, NULL, &c), ISOBIT_E_ISA);
    }
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
        TEST(gemv_is_its_own_order),
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
        TEST(alignment_changes_nothing),
        TEST(embeddings_are_right_every_way),
        TEST(rope_rotates_pairs_every_way),
        TEST(rope_tables_are_right_every_way),
        TEST(the_active_set_is_used),
        TEST(gemm_refuses),
        TEST(pack_and_linear_refuse),
        TEST(rows_refuse),
        TEST(attention_refuses),
        TEST(embeddings_refuse),
        TEST(nothing_to_do_is_success),
        TEST(scratch_of_all_threads_may_overflow),
        TEST(workspace_covers_a_residual_in_place),
        TEST(workspace_is_enough),
        TEST(gemv_takes_any_workspace),
        TEST(workspace_for_more_rows_is_enough),
        TEST(rows_never_allocate),
        TEST(context_members_are_checked),
    };
    return cmocka_run_group_tests(tests, make_ways, drop_ways) ? 1 : 0;
}
