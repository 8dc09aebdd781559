/* SPDX-License-Identifier: MIT
 *
 * Embeddings, positions and rotary ones.
 */
#include "test_ops.h"

void embeddings_are_right_every_way(void **state) {
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
void rope_rotates_pairs_every_way(void **state) {
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

void rope_tables_are_right_every_way(void **state) {
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
