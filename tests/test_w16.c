/* SPDX-License-Identifier: MIT
 *
 * Weights of 16 bits: packing, products and embeddings have the bits of the f32 functions on the
 * widened weights, with every set, number of threads and way; nothing outside of the operands is
 * touched; what is refused.
 */
#include "few_bits.h"

#include "packed_weights.h"

/* ------------------------------------------------------------------------------------- numbers */

static float value_of(uint16_t half, iso_w16 type) {
    const int bits = type == ISOBIT_BF16 ? 7 : 10, ones = type == ISOBIT_BF16 ? 255 : 31;
    const int exponent = half >> bits & ones;
    const double fraction = half & ((1 << bits) - 1), bias = ones / 2 + bits;
    double value =
        ldexp(exponent ? fraction + (1 << bits) : fraction, (exponent ? exponent : 1) - (int)bias);
    if (exponent == ones)
        value = fraction != 0 ? (double)NAN : (double)INFINITY;
    return (float)(half >> 15 ? -value : value);
}

/* Below 2 in magnitude, subnormal numbers of F16 among them; now and then what is not finite. */
static uint16_t random_half(iso_w16 type, int special) {
    if (special && draw() % 50 == 0)
        return (uint16_t)(type == ISOBIT_BF16 ? 0x7f80 : 0x7c00) | (uint16_t)(draw() % 3);
    if (type == ISOBIT_BF16)
        return (uint16_t)(0x3c00 + draw() % 0x400) | (uint16_t)(draw() % 2 << 15);
    return (uint16_t)(draw() % 0x4000) | (uint16_t)(draw() % 2 << 15);
}

/* A matrix as it is stored, and the same widened; and both packed. */
struct matrix {
    size_t n, k, ld;
    int trans;
    uint16_t *halves;
    float *wide;
    iso_packed_w16 packed;
    iso_packed packed_wide;
};

static struct matrix make(size_t n, size_t k, int trans, iso_w16 type, int special) {
    struct matrix m = {.n = n, .k = k, .ld = (trans ? n : k) + 3, .trans = trans};
    const size_t rows = trans ? k : n, columns = trans ? n : k;
    const size_t extent = rows && columns ? (rows - 1) * m.ld + columns : 0;
    size_t bytes, bytes_wide;
    m.halves = guarded(extent * sizeof *m.halves);
    m.wide = floats(extent);
    for (size_t i = 0; i < extent; i++) { /* gaps are NaN */
        m.halves[i] = i % m.ld < columns ? random_half(type, special) : 0x7fff;
        m.wide[i] = value_of(m.halves[i], type);
    }
    assert_ok(iso_pack_w16_bytes(&bytes, n, k));
    assert_ok(iso_pack_f32_bytes(&bytes_wide, n, k));
    assert_true(bytes == (n + 31) / 32 * 32 * k * 2);
    uint16_t *to = guarded(bytes); /* multiples of 64 bytes */
    memset(to, 0xa5, bytes);
    assert_ok(iso_pack_w16(&m.packed, to, bytes, m.halves, m.ld, n, k, trans, type, NULL));
    assert_ok(iso_pack_f32(&m.packed_wide, guarded(bytes_wide), bytes_wide, m.wide, m.ld, n, k,
                           trans, NULL));
    return m;
}

/* --------------------------------------------------------------------------------------- tests */

/* Column j of a step lies where isobit/ops.h says; beyond n there are zeros. */
static void layout_is_as_written(void **unused) {
    (void)unused;
    static const size_t shapes[][2] = {{1, 1}, {16, 3}, {31, 33}, {32, 5}, {33, 64}, {100, 70}};
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (int of = 0; of < 4; of++) {
            const size_t n = shapes[i][0], k = shapes[i][1];
            const iso_w16 type = (iso_w16)(of % 2);
            const struct matrix m = make(n, k, of / 2, type, 1);
            for (size_t w = 0; w < way_count; w++) {
                size_t bytes;
                iso_packed_w16 p;
                assert_ok(iso_pack_w16_bytes(&bytes, n, k));
                uint16_t *to = guarded(bytes);
                memset(to, 0xa5, bytes);
                assert_ok(
                    iso_pack_w16(&p, to, bytes, m.halves, m.ld, n, k, m.trans, type, &ways[w]));
                for (size_t j = 0; j < (n + 31) / 32 * 32; j++)
                    for (size_t s = 0; s < k; s++) {
                        const size_t at = type == ISOBIT_BF16 ? j % 16 * 2 + j % 32 / 16 : j % 32;
                        const uint16_t want =
                            j >= n ? 0 : m.halves[m.trans ? s * m.ld + j : j * m.ld + s];
                        assert_int_equal(p.data[j / 32 * k * 32 + s * 32 + at], want);
                    }
            }
            release();
        }
}

static iso_status linear(float *y, size_t ldy, const float *x, size_t ldx, const void *packed,
                         size_t m, const iso_linear_options *options, const iso_context *context) {
    return iso_linear_w16(y, ldy, x, ldx, packed, m, options, context);
}
static iso_status workspace_bytes(size_t *bytes, const void *packed, size_t m,
                                  const iso_context *context) {
    return iso_linear_w16_workspace_bytes(bytes, packed, m, context);
}

static void products_have_the_bits_of_f32(void **unused) {
    (void)unused;
    static const size_t shapes[][3] = {
        {1, 1, 1},     {1, 16, 8},     {3, 17, 33},   {2, 40, 5},    {6, 130, 64},
        {7, 64, 40},   {13, 65, 70},   {25, 200, 31}, {8, 300, 513}, {33, 164, 1025},
        {130, 97, 20}, {40, 600, 520}, {5, 7, 0},     {4, 1200, 600}};
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (int of = 0; of < 8; of++) {
            const size_t m = shapes[i][0], n = shapes[i][1], k = shapes[i][2];
            if (getenv("ISOBIT_EMULATED") && m * n * k > 2000000 && of > 1)
                continue;
            const struct matrix w = make(n, k, of / 4, (iso_w16)(of % 2), of / 2 % 2);
            const struct few_linear few = {&w.packed, linear, workspace_bytes};
            has_the_bits_of_f32(&few, &w.packed_wide, m,
                                of % 3 ? ISOBIT_ACT_RELU : ISOBIT_ACT_GELU_ERF);
            release();
        }
}

/* Whatever the core, as other kinds of cores would compute it: in registers and in blocks. */
static void all_ways_have_the_same_bits(void **unused) {
    (void)unused;
    static const size_t rows[] = {1, 5, 24, 25, 33, 100};
    enum { N = 230, K = 600 };
    for (int type = 0; type < 2; type++) {
        const struct matrix w = make(N, K, 0, (iso_w16)type, 0);
        float *x = random_floats((size_t)100 * K), *bias = random_floats(N);
        float *expect = floats((size_t)100 * N), *y = floats((size_t)100 * N);
        const iso_linear_options o = {.size = sizeof o, .bias = bias, .act = ISOBIT_ACT_RELU};
        assert_ok(iso_linear_f32(expect, N, x, K, &w.packed_wide, 100, &o, NULL));
        for (size_t v = 0; v < way_count; v++)
            for (size_t i = 0; i < COUNT(rows) * ISO_GEMM_CLASSES; i++) {
                if (getenv("ISOBIT_EMULATED") && (v / set_count + i / 3) % 2) /* every other way */
                    continue;
                const struct iso_kernels *kernels;
                const struct iso_epilogue e = {
                    .alpha = 1, .bias = bias, .act = (int)ISOBIT_ACT_RELU};
                assert_ok(iso_context_kernels(&kernels, &ways[v]));
                const struct iso_weights few = {w.packed.data, N, K, 1, 0, type, NULL};
                struct iso_product t = {
                    .machine = iso_gemm_machine_of(kernels, (enum iso_gemm_class)(i % 3)),
                    .m = rows[i / 3],
                    .n = N,
                    .k = K,
                    .c = y,
                    .ldc = N,
                    .a = x,
                    .ai = K,
                    .ap = 1,
                    .bs = ISO_PANEL,
                    .bps = iso_weights_panel(&few),
                    .w = &few,
                    .e = &e};
                const struct iso_gemm_shape s = {.m = t.m,
                                                 .n = N,
                                                 .k = K,
                                                 .threads = iso_context_threads(&ways[v]),
                                                 .panels = 1,
                                                 .w16 = 1};
                t.plan = iso_gemm_plan(&s, &t.machine);
                memset(y, 0, sizeof(float) * t.m * N);
                assert_ok(iso_product_run(&ways[v], &t));
                assert_true(same(y, N, expect, N, t.m, N));
            }
        release();
    }
}

static iso_status embed(float *y, size_t ldy, const uint32_t *ids, size_t count,
                        const struct few_table *table, size_t vocabulary, size_t d, float scale,
                        const float *positions, const uint32_t *position_rows,
                        size_t position_count, const iso_context *context) {
    return iso_embed_w16(y, ldy, ids, count, table->table, table->type, vocabulary, d, scale,
                         positions, position_rows, position_count, context);
}

static void embeddings_have_the_bits_of_f32(void **unused) {
    (void)unused;
    static const size_t widths[] = {1, 7, 64, 513, 2100};
    for (size_t i = 0; i < COUNT(widths); i++)
        for (int of = 0; of < 8; of++) {
            const size_t count = FEW_VOCABULARY * widths[i];
            const iso_w16 type = (iso_w16)(of % 2);
            uint16_t *table = guarded(count * sizeof *table);
            float *wide = floats(count);
            for (size_t e = 0; e < count; e++)
                table[e] = random_half(type, of & 4), wide[e] = value_of(table[e], type);
            embeds_as_f32(&(struct few_table){.table = table, .embed = embed, .type = type}, wide,
                          widths[i], of & 2);
            release();
        }
}

static void wrong_arguments_are_refused(void **unused) {
    (void)unused;
    enum { M = 3, N = 40, K = 5 };
    static uint16_t w[N * K], room[64 * K + 32] __attribute__((aligned(64)));
    static float x[M * K], y[M * N];
    const uint32_t ids[2] = {0, 7};
    iso_packed_w16 p = {.n = 77};
    size_t bytes = 5;
    REFUSED(NULL, iso_pack_w16_bytes(NULL, N, K));
    REFUSED(OVERFLOW, iso_pack_w16_bytes(&bytes, SIZE_MAX, 2));
    REFUSED(OVERFLOW, iso_pack_w16_bytes(&bytes, SIZE_MAX / 2, SIZE_MAX / 2));
    assert_int_equal(bytes, 5);
    assert_ok(iso_pack_w16_bytes(&bytes, N, K));
    assert_int_equal(bytes, 64 * K * 2);
#define PACK(p, to, bytes, w, ldw, trans, type)                                                    \
    iso_pack_w16(p, to, bytes, w, ldw, N, K, trans, type, NULL)
    REFUSED(NULL, PACK(NULL, room, bytes, w, K, 0, ISOBIT_F16));
    REFUSED(NULL, PACK(&p, NULL, bytes, w, K, 0, ISOBIT_F16));
    REFUSED(NULL, PACK(&p, room, bytes, NULL, K, 0, ISOBIT_F16));
    REFUSED(ALIGN, PACK(&p, room + 1, bytes, w, K, 0, ISOBIT_F16));
    REFUSED(WORKSPACE, PACK(&p, room, bytes - 1, w, K, 0, ISOBIT_F16));
    REFUSED(LD, PACK(&p, room, bytes, w, K - 1, 0, ISOBIT_F16));
    REFUSED(LD, PACK(&p, room, bytes, w, N - 1, 1, ISOBIT_F16));
    REFUSED(OPTION, PACK(&p, room, bytes, w, K, 0, (iso_w16)2));
    REFUSED(ALIAS, PACK(&p, room, bytes, room + 64 * K - 1, K, 0, ISOBIT_BF16));
    assert_int_equal(p.n, 77);
    assert_ok(PACK(&p, room, bytes, w, K, 0, ISOBIT_BF16));
    assert_true(p.n == N && p.k == K && p.type == ISOBIT_BF16 && p.data == room);
#undef PACK
#define LINEAR(y, ldy, x, ldx, w) iso_linear_w16(y, ldy, x, ldx, w, M, NULL, NULL)
    assert_ok(LINEAR(y, N, x, K, &p));
    WRONG_OPERANDS_ARE_REFUSED(LINEAR, y, N, x, K, &p);
    iso_packed_w16 wrong = p;
    wrong.data = NULL;
    REFUSED(NULL, LINEAR(y, N, x, K, &wrong));
    wrong.data = room, wrong.type = (iso_w16)2;
    REFUSED(OPTION, LINEAR(y, N, x, K, &wrong));
    REFUSED(OPTION, iso_linear_w16_workspace_bytes(&bytes, &wrong, M, NULL));
    REFUSED(NULL, iso_linear_w16_workspace_bytes(NULL, &p, M, NULL));
    REFUSED(NULL, iso_linear_w16_workspace_bytes(&bytes, NULL, M, NULL));
#undef LINEAR
#define EMBED(y, ldy, ids, table, type, vocabulary)                                                \
    iso_embed_w16(y, ldy, ids, 2, table, type, vocabulary, K, 1, NULL, NULL, 0, NULL)
    assert_ok(EMBED(y, K, ids, w, ISOBIT_F16, 8));
    REFUSED(NULL, EMBED(NULL, K, ids, w, ISOBIT_F16, 8));
    REFUSED(NULL, EMBED(y, K, NULL, w, ISOBIT_F16, 8));
    REFUSED(NULL, EMBED(y, K, ids, NULL, ISOBIT_F16, 8));
    REFUSED(LD, EMBED(y, K - 1, ids, w, ISOBIT_F16, 8));
    REFUSED(RANGE, EMBED(y, K, ids, w, ISOBIT_F16, 7));
    REFUSED(OPTION, EMBED(y, K, ids, w, (iso_w16)2, 8));
    REFUSED(ALIAS, EMBED(y, K, ids, (const uint16_t *)(const void *)(y + 2), ISOBIT_F16, 8));
#undef EMBED
    iso_packed_w16 none = {0};
    assert_ok(iso_pack_w16(&none, NULL, 0, NULL, 0, 0, 5, 0, ISOBIT_F16, NULL));
    assert_ok(iso_linear_w16(NULL, 0, NULL, 5, &none, 3, NULL, NULL));
    assert_ok(iso_embed_w16(NULL, 5, NULL, 0, NULL, ISOBIT_F16, 0, 5, 1, NULL, NULL, 0, NULL));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_is_as_written),
        cmocka_unit_test(products_have_the_bits_of_f32),
        cmocka_unit_test(all_ways_have_the_same_bits),
        cmocka_unit_test(embeddings_have_the_bits_of_f32),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, make_ways, drop_ways);
}
