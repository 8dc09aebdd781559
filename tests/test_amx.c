/* SPDX-License-Identifier: MIT
 *
 * Products in AMX's tiles on CPUs that have none: the very kernels, with tiles in plain C that
 * refuse what the CPU refuses. They need AVX-512 with VNNI and BF16, for what is not a tile. Where
 * there is AMX, test_kernels, test_s8 and test_b16 run the kernels as they are.
 */
#include "few_bits.h"

#include "amx_tiles.h"
#include "kernels.h"

extern const struct iso_kernels iso_kernels_amx_emulated; /* amx_kernel.c */

static struct {
    int configured;
    uint8_t loaded[AMX_TILES]; /* since then */
    size_t products;
    struct amx_config shape;
    uint8_t data[AMX_TILES][AMX_ROWS][AMX_BYTES];
} tiles;

void amx_tiles_configure(const struct amx_config *shape) {
    assert_int_equal(shape->palette, 1);
    assert_int_equal(shape->start_row, 0);
    for (size_t t = 0; t < 16; t++) {
        assert_true(shape->bytes[t] <= (t < AMX_TILES ? AMX_BYTES : 0));
        assert_true(shape->rows[t] <= (t < AMX_TILES ? AMX_ROWS : 0));
        assert_int_equal(shape->bytes[t] == 0, shape->rows[t] == 0);
    }
    memset(&tiles, 0, sizeof tiles);
    tiles.shape = *shape, tiles.configured = 1;
}

static size_t products_before; /* the last release */
void amx_tiles_release(void) {
    products_before = tiles.products;
    memset(&tiles, 0, sizeof tiles);
}

void amx_tiles_load(size_t t, const void *from, size_t stride) {
    assert_true(tiles.configured && tiles.shape.rows[t]);
    memset(tiles.data[t], 0, sizeof tiles.data[t]);
    tiles.loaded[t] = 1;
    for (size_t i = 0; i < tiles.shape.rows[t]; i++)
        memcpy(tiles.data[t][i], (const char *)from + i * stride, tiles.shape.bytes[t]);
}

void amx_tiles_store(size_t t, void *to, size_t stride) {
    assert_true(tiles.configured && tiles.shape.rows[t]);
    for (size_t i = 0; i < tiles.shape.rows[t]; i++)
        memcpy((char *)to + i * stride, tiles.data[t][i], tiles.shape.bytes[t]);
}

/* Of a product: rows of a and c, pairs or fours of rows of b. */
static const struct amx_config *check_shapes(size_t c, size_t a, size_t b) {
    const struct amx_config *s = &tiles.shape;
    tiles.products++;
    assert_true(tiles.loaded[a] && tiles.loaded[b]);
    assert_true(tiles.configured && s->rows[c] && s->rows[a] && s->rows[b]);
    assert_true(c != a && a != b && b != c);
    assert_int_equal(s->rows[c], s->rows[a]);
    assert_int_equal(s->bytes[c], s->bytes[b]);
    assert_int_equal(s->bytes[a] % 4, 0);
    assert_int_equal(s->bytes[a] / 4, s->rows[b]);
    return s;
}

void amx_tiles_dot_u8_s8(size_t c, size_t a, size_t b) {
    const struct amx_config *s = check_shapes(c, a, b);
    for (size_t i = 0; i < s->rows[c]; i++)
        for (size_t j = 0; j < s->bytes[c] / 4U; j++) {
            uint32_t sum;
            memcpy(&sum, tiles.data[c][i] + 4 * j, sizeof sum);
            for (size_t p = 0; p < s->bytes[a]; p++)
                sum +=
                    (uint32_t)(tiles.data[a][i][p] * (int8_t)tiles.data[b][p / 4][4 * j + p % 4]);
            memcpy(tiles.data[c][i] + 4 * j, &sum, sizeof sum);
        }
}

static float widen(const uint8_t *half) {
    uint16_t bits;
    memcpy(&bits, half, sizeof bits);
    return iso_w16_value(bits, ISO_W16_BF16);
}

/* Sums of the first of each pair, and of the second, that are then added. */
void amx_tiles_dot_b16(size_t c, size_t a, size_t b) {
    const struct amx_config *s = check_shapes(c, a, b);
    for (size_t i = 0; i < s->rows[c]; i++)
        for (size_t j = 0; j < s->bytes[c] / 4U; j++) {
            float sum, first = 0, second = 0;
            memcpy(&sum, tiles.data[c][i] + 4 * j, sizeof sum);
            for (size_t p = 0; p < s->bytes[a] / 4U; p++) {
                const uint8_t *x = tiles.data[a][i] + 4 * p, *y = tiles.data[b][p] + 4 * j;
                first = fmaf(widen(x), widen(y), first);
                second = fmaf(widen(x + 2), widen(y + 2), second);
            }
            sum += first + second;
            memcpy(tiles.data[c][i] + 4 * j, &sum, sizeof sum);
        }
}

/* ------------------------------------------------------------------------------------ products */

struct operands {
    size_t m, n, k, lda, ldc, bps;
    int8_t *a, *b;
    float *row_scales, *scales, *bias, *c;
    int32_t *start;
};

static float times(float a, float b) { return (float)((double)a * (double)b); }

static int8_t any(int ends) {
    return ends ? (int8_t)(draw() % 2 ? 127 : -128) : (int8_t)((int)(draw() % 256) - 128);
}

/* Rows and panels end where memory does; the gaps are there to be kept. */
static struct operands make(size_t m, size_t n, size_t k, size_t gap, int with_bias, int ends) {
    const size_t panels = (n + ISO_PANEL - 1) / ISO_PANEL;
    struct operands o = {.m = m, .n = n, .k = k, .lda = k + 8 * gap, .ldc = n + gap};
    o.bps = k * ISO_PANEL + 64 * gap;
    o.a = guarded((m - 1) * o.lda + k), o.b = guarded((panels - 1) * o.bps + k * ISO_PANEL);
    o.row_scales = random_floats(m), o.scales = random_floats(panels * ISO_PANEL);
    o.bias = with_bias ? random_floats(n) : NULL;
    o.start = guarded(panels * ISO_PANEL * sizeof *o.start);
    o.c = floats((m - 1) * o.ldc + n);
    for (size_t i = 0; i < (m - 1) * o.lda + k; i++)
        o.a[i] = any(ends);
    for (size_t i = 0; i < (panels - 1) * o.bps + k * ISO_PANEL; i++)
        o.b[i] = any(ends);
    for (size_t i = 0; i < (m - 1) * o.ldc + n; i++)
        o.c[i] = 123;
    for (size_t j = 0; j < panels * ISO_PANEL; j++) {
        int32_t sum = 0;
        for (size_t p = 0; p < k; p++)
            sum += o.b[j / 16 * o.bps + p / 4 * 64 + j % 16 * 4 + p % 4];
        o.start[j] = -128 * sum;
    }
    return o;
}

static void check(const struct operands *o) {
    iso_kernels_amx_emulated.gemm_s8(o->c, o->ldc, o->a, o->lda, o->row_scales, o->b, o->bps,
                                     o->scales, o->start, o->bias, o->m, o->n, o->k);
    assert_false(tiles.configured);
    for (size_t i = 0; i < o->m; i++)
        for (size_t j = 0; j < o->ldc && i * o->ldc + j < (o->m - 1) * o->ldc + o->n; j++) {
            float want = 123;
            if (j < o->n) {
                int64_t sum = 0;
                for (size_t p = 0; p < o->k; p++)
                    sum += (int64_t)(int8_t)(o->a[i * o->lda + p] ^ 0x80) *
                           o->b[j / 16 * o->bps + p / 4 * 64 + j % 16 * 4 + p % 4];
                want = times(times((float)sum, o->scales[j]), o->row_scales[i]);
                want = o->bias ? (float)((double)want + (double)o->bias[j]) : want;
            }
            assert_memory_equal(&o->c[i * o->ldc + j], &want, sizeof want);
        }
}

static void products_are_exact(void **unused) {
    (void)unused;
    static const size_t columns[] = {1, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 80, 100, 128, 130};
    static const size_t depths[] = {0, 8, 56, 64, 72, 120, 128, 192, 200};
    for (size_t m = 1; m <= 100; m += m < 36 ? 1 : 7)
        for (size_t i = 0; i < COUNT(columns); i++) {
            const size_t k = depths[(m + i) % COUNT(depths)];
            const struct operands o = make(m, columns[i], k, (m + i) % 3, (int)(i % 2), m % 4 == 0);
            check(&o);
            release();
        }
    const struct operands large = make(70, 40, 1000, 1, 1, 0);
    check(&large);
    release();
}

/* Small integers, whose sums are exact in any order. B ends with its last step, of which nothing
 * beyond is read; rows of A are filled up with 0. */
static uint16_t small(void) {
    const float value = (float)((int)(draw() % 17) - 8);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static void products_of_bf16(size_t m, size_t n, size_t k, size_t gap, int add) {
    const size_t panels = (n + ISO_WIDE_PANEL - 1) / ISO_WIDE_PANEL, padded = iso_b16_padded(k);
    const size_t lda = padded + 2 * gap, ldc = n + gap, bps = k * ISO_WIDE_PANEL + 32 * gap;
    const size_t b_elements = (panels - 1) * bps + k * ISO_WIDE_PANEL;
    uint16_t *a = halves((m - 1) * lda + padded), *b = halves(b_elements);
    float *c = floats((m - 1) * ldc + n);
    for (size_t i = 0; i < (m - 1) * lda + padded; i++)
        a[i] = i % lda < k ? small() : i % lda < padded ? 0 : 0x7fc0;
    for (size_t i = 0; i < b_elements; i++)
        b[i] = i % bps < k * ISO_WIDE_PANEL ? small() : 0x7fc0;
    for (size_t i = 0; i < (m - 1) * ldc + n; i++)
        c[i] = 1000;
    iso_kernels_amx_emulated.gemm_b16(c, ldc, a, lda, b, bps, m, n, k, add ? ISO_DIRECT_ADD : 0);
    assert_false(tiles.configured);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < ldc && i * ldc + j < (m - 1) * ldc + n; j++) {
            float want = j < n && !add ? 0 : 1000;
            for (size_t p = 0; p < k && j < n; p++) {
                const uint16_t w = b[j / ISO_WIDE_PANEL * bps + p * ISO_WIDE_PANEL +
                                     iso_w16_place(j % ISO_WIDE_PANEL, ISO_W16_BF16)];
                want +=
                    iso_w16_value(a[i * lda + p], ISO_W16_BF16) * iso_w16_value(w, ISO_W16_BF16);
            }
            assert_true(c[i * ldc + j] == want);
        }
    release();
}

static void products_of_bf16_have_their_sums(void **unused) {
    (void)unused;
    static const size_t columns[] = {1, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 96, 100, 130};
    static const size_t depths[] = {1, 2, 3, 31, 32, 33, 64, 95, 100};
    for (size_t m = 1; m <= 100; m += m < 36 ? 1 : 7)
        for (size_t i = 0; i < COUNT(columns); i++)
            products_of_bf16(m, columns[i], depths[(m + i) % COUNT(depths)], (m + i) % 3,
                             (int)(m + i) % 2);
    products_of_bf16(5, 40, 0, 0, 0);
}

static void peaks_multiply(void **unused) {
    (void)unused;
    for (size_t rounds = 0; rounds < 3; rounds++) {
        assert_int_equal(iso_kernels_amx_emulated.s8_peak(rounds), 0);
        assert_int_equal(products_before, 4 * rounds);
        assert_true(iso_kernels_amx_emulated.b16_peak(rounds) == 0);
        assert_int_equal(products_before, 4 * rounds);
    }
    assert_false(tiles.configured);
    assert_true(iso_kernels_amx_emulated.s8_peak_ops == 4 * 2 * 16 * 16 * 64);
    assert_true(iso_kernels_amx_emulated.b16_peak_flops == 4 * 2 * 16 * 16 * 32);
}

int main(void) {
    const iso_isa *vectors;
    if (iso_isa_find(&vectors, "avx512_bf16")) {
        puts("test_amx: SKIPPED: its other half is AVX-512 with VNNI and BF16, which this CPU "
             "lacks");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_are_exact),
                                       cmocka_unit_test(products_of_bf16_have_their_sums),
                                       cmocka_unit_test(peaks_multiply)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
