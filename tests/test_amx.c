/* SPDX-License-Identifier: MIT
 *
 * The products of int8 in AMX's tiles on CPUs that have none: the very kernel, with tiles in plain
 * C that refuse what the CPU refuses. It needs AVX-512 with VNNI, for what is not a tile. Where
 * there is AMX, test_kernels and test_s8 run the kernel as it is.
 */
#include "few_bits.h"

#include "amx_tiles.h"
#include "kernels.h"

extern const struct iso_kernels iso_kernels_amx_emulated; /* amx_kernel.c */

static struct {
    int configured;
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

void amx_tiles_release(void) { memset(&tiles, 0, sizeof tiles); }

void amx_tiles_load(size_t t, const void *from, size_t stride) {
    assert_true(tiles.configured && tiles.shape.rows[t]);
    memset(tiles.data[t], 0, sizeof tiles.data[t]);
    for (size_t i = 0; i < tiles.shape.rows[t]; i++)
        memcpy(tiles.data[t][i], (const char *)from + i * stride, tiles.shape.bytes[t]);
}

void amx_tiles_store(size_t t, void *to, size_t stride) {
    assert_true(tiles.configured && tiles.shape.rows[t]);
    for (size_t i = 0; i < tiles.shape.rows[t]; i++)
        memcpy((char *)to + i * stride, tiles.data[t][i], tiles.shape.bytes[t]);
}

void amx_tiles_dot(size_t c, size_t a, size_t b) {
    const struct amx_config *s = &tiles.shape;
    assert_true(tiles.configured && s->rows[c] && s->rows[a] && s->rows[b]);
    assert_true(c != a && a != b && b != c);
    assert_int_equal(s->rows[c], s->rows[a]);
    assert_int_equal(s->bytes[c], s->bytes[b]);
    assert_int_equal(s->bytes[a] % 4, 0);
    assert_int_equal(s->bytes[a] / 4, s->rows[b]);
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

static void the_peak_multiplies(void **unused) {
    (void)unused;
    for (size_t rounds = 0; rounds < 3; rounds++)
        iso_kernels_amx_emulated.s8_peak(rounds);
    assert_false(tiles.configured);
    assert_true(iso_kernels_amx_emulated.s8_peak_ops == 4 * 2 * 16 * 16 * 64);
}

int main(void) {
    const iso_isa *vnni;
    if (iso_isa_find(&vnni, "avx512_vnni")) {
        puts("test_amx: SKIPPED: its other half is AVX-512 with VNNI, which this CPU lacks");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_are_exact),
                                       cmocka_unit_test(the_peak_multiplies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
