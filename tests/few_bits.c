/* SPDX-License-Identifier: MIT
 *
 * See few_bits.h.
 */
#include "few_bits.h"

#include "select.h"

#include <stdbool.h>

#include <sys/mman.h>
#include <unistd.h>

static struct {
    void *base;
    size_t total;
} blocks[64];
static size_t block_count;

void *guarded(size_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (bytes + page - 1) / page * page;
    assert_true(block_count < COUNT(blocks));
    char *base =
        mmap(NULL, body + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(base != MAP_FAILED);
    assert_int_equal(mprotect(base + body, page, PROT_NONE), 0);
    blocks[block_count].base = base, blocks[block_count++].total = body + page;
    return base + body - bytes;
}

void release_one(void) {
    block_count--;
    munmap(blocks[block_count].base, blocks[block_count].total);
}

void release(void) {
    while (block_count)
        release_one();
}

size_t slack;
float *floats(size_t n) { return guarded(n * sizeof(float) + slack); }
uint16_t *halves(size_t n) { return guarded(n * sizeof(uint16_t) + slack); }

static uint64_t state = 7;
uint32_t draw(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

float *random_floats(size_t n) {
    float *x = floats(n);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(int32_t)(draw() % 20001 - 10000) * 1.1e-4f;
    return x;
}

int same(const float *x, size_t ldx, const float *y, size_t ldy, size_t rows, size_t n) {
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < n; j++) {
            const float a = x[i * ldx + j], b = y[i * ldy + j];
            uint32_t bits_a, bits_b;
            memcpy(&bits_a, &a, sizeof a);
            memcpy(&bits_b, &b, sizeof b);
            if (bits_a != bits_b && !(isnan(a) && isnan(b))) {
                print_error("[%zu][%zu] is %a, should be %a\n", i, j, (double)a, (double)b);
                return 0;
            }
        }
    return 1;
}

static iso_pool *pools[3];
iso_context ways[32];
size_t way_count, set_count;

static int make(bool levels) {
    static const size_t threads[] = {3, 2, 16};
    const int emulated = getenv("ISOBIT_EMULATED") != NULL; /* then one number of threads */
    slack = emulated ? 64 : 0;
    for (size_t i = 0; i < iso_isa_count(); i++)
        if (!iso_isa_missing(iso_isa_get(i)) &&
            (levels || iso_isa_get(i)->s8 == iso_isa_get(i)->kernels))
            ways[way_count++] = (iso_context){.size = sizeof *ways, .isa = iso_isa_get(i)};
    set_count = way_count;
    for (size_t p = 0; p < (emulated ? 1 : COUNT(pools)); p++) {
        if (iso_pool_create(&pools[p], threads[p]))
            return -1;
        for (size_t i = 0; i < set_count; i++) {
            ways[way_count] = ways[i];
            ways[way_count++].executor = iso_pool_executor(pools[p]);
        }
    }
    return 0;
}

int make_ways(void **unused) {
    (void)unused;
    return make(false);
}

int make_ways_with_levels(void **unused) {
    (void)unused;
    return make(true);
}

int drop_ways(void **unused) {
    (void)unused;
    for (size_t p = 0; p < COUNT(pools); p++)
        iso_pool_destroy(pools[p]), pools[p] = NULL;
    way_count = set_count = 0;
    return 0;
}

static void linear_f32(float *y, size_t ldy, const float *x, size_t ldx, const void *wide, size_t m,
                       const iso_linear_options *options) {
    assert_ok(iso_linear_f32(y, ldy, x, ldx, wide, m, options, &ways[0]));
}

void has_the_bits_of_f32(const struct few_linear *few, const iso_packed *wide, size_t m,
                         iso_activation act) {
    has_the_bits(few, linear_f32, wide, wide->n, wide->k, m, act);
}

void has_the_bits(const struct few_linear *few, few_definition *definition, const void *arg,
                  size_t n, size_t k, size_t m, iso_activation act) {
    const size_t ldy = n + 2;
    float *x = random_floats(m * (k + 1)), *bias = random_floats(n);
    float *r = random_floats(m * n), *expect = floats(m * n), *y = floats(m * ldy);
    iso_linear_options o = {.size = sizeof o, .bias = bias, .residual = r, .ldr = n, .act = act};
    definition(expect, n, x, k + 1, arg, m, &o);
    for (size_t v = 0; v < way_count; v++) {
        for (size_t e = 0; e < m * ldy; e++)
            y[e] = 123;
        o.residual = r, o.ldr = n;
        assert_ok(few->linear(y, ldy, x, k + 1, few->packed, m, &o, &ways[v]));
        assert_true(same(y, ldy, expect, n, m, n));
        for (size_t e = 0; e < m; e++) /* gaps are kept */
            assert_true(y[e * ldy + n] == 123 && y[e * ldy + n + 1] == 123);
        for (size_t row = 0; row < m; row++) /* y itself, as the residual */
            memcpy(y + row * ldy, r + row * n, n * sizeof *y);
        o.residual = y, o.ldr = ldy;
        assert_ok(few->linear(y, ldy, x, k + 1, few->packed, m, &o, &ways[v]));
        assert_true(same(y, ldy, expect, n, m, n));
        /* the last row alone, in a workspace of the size that is asked for */
        iso_context in = ways[v];
        size_t bytes;
        assert_ok(few->workspace_bytes(&bytes, few->packed, m, &in));
        in.workspace = guarded(bytes + 1), in.workspace_bytes = bytes;
        o.residual = r + (m - 1) * n, o.ldr = n;
        assert_ok(few->linear(y, ldy, x + (m - 1) * (k + 1), k + 1, few->packed, 1, &o, &in));
        assert_true(same(y, ldy, expect + (m - 1) * n, n, 1, n));
        o.residual = r;
        assert_ok(few->linear(y, ldy, x, k + 1, few->packed, m, &o, &in));
        assert_true(same(y, ldy, expect, n, m, n));
        if (bytes > 0) {
            in.workspace_bytes = bytes - 1;
            REFUSED(WORKSPACE, few->linear(y, ldy, x, k + 1, few->packed, m, &o, &in));
        }
        release_one();
    }
}

void embeds_as_f32(const struct few_table *table, const float *wide, size_t d, int positions) {
    enum { ROWS = 21, P = 9 };
    const size_t ldy = d + 1;
    float *at = positions ? random_floats(P * d) : NULL;
    float *expect = floats(ROWS * d), *y = floats(ROWS * ldy);
    uint32_t ids[ROWS], rows[ROWS];
    for (size_t e = 0; e < ROWS; e++)
        ids[e] = draw() % FEW_VOCABULARY, rows[e] = draw() % P;
    assert_ok(
        iso_embed_f32(expect, d, ids, ROWS, wide, FEW_VOCABULARY, d, 1.7f, at, rows, P, &ways[0]));
    for (size_t v = 0; v < way_count; v++) {
        for (size_t e = 0; e < ROWS * ldy; e++)
            y[e] = 123;
        assert_ok(
            table->embed(y, ldy, ids, ROWS, table, FEW_VOCABULARY, d, 1.7f, at, rows, P, &ways[v]));
        assert_true(same(y, ldy, expect, d, ROWS, d));
        for (size_t e = 0; e < ROWS; e++)
            assert_true(y[e * ldy + d] == 123);
    }
}
