/* SPDX-License-Identifier: MIT
 *
 * The suite of attention. Whatever a query does not see may be anything: the unused part of the
 * last panel of keys is NaN in all cases, and `poison` puts NaN and infinities into keys and values
 * that only some of the queries see.
 */
#include <math.h>
#include <string.h>

#include <isobit/ops.h>

#include "kernels.h"
#include "oracle_kernels.h"
#include <isobit/check.h>
#include "suites/suites.h"

/*
 * see: 0 is not causal. bias 0: NULL, 1: finite, 2: with -Inf here and there, 3: some rows all
 * -Inf; -Inf for the whole 4: first, 5: last, 6: middle block of keys, 7: all keys but one. 8: with
 * NaN and +Inf in some rows. bias + DISTANCE: it depends on the distance alone. poison 1: NaN in
 * the last value, 2: in the last key, 3: +-Inf in a value in the middle, 4: NaN in values and keys
 * where the bias has its -Inf for all queries. fill is that of q and k. gap: behind all rows, twice
 * that behind those of q and weights; the others: more. poison + ROWS: keys are rows, and queries
 * those of heads that share them; they see the same. poison + 2 ROWS: keys are rows.
 * see + WINDOW w: and each query sees only the last w of those keys. weights + CAP i: with soft cap
 * i.
 */
enum {
    A_NQ,
    A_NK,
    A_DH,
    A_SEE,
    A_BIAS,
    A_WEIGHTS,
    A_GAP,
    A_POISON,
    A_QGAP,
    A_VGAP,
    A_BGAP,
    A_WGAP
};
enum { ROWS = 8, DISTANCE = 16, WINDOW = 4096, CAP = 2 };
enum { A_O, A_Q, A_KEYS, A_V, A_BIAS_AT, A_WEIGHTS_AT, A_SCRATCH, A_ROWS_AT };

static void add_attention(struct iso_check_cases *l, unsigned thin, unsigned flags, unsigned fill,
                          size_t nq, size_t nk, size_t dh, size_t see, size_t bias, size_t weights,
                          size_t gap, size_t poison) {
    iso_add(l, thin, fill, flags, nq, nk, dh, see, bias, weights, gap, poison);
}

/* A bias of queries in the lanes: each edge of its tiles, whole blocks of keys and parts. */
static void bias_cases(struct iso_check_cases *l) {
    static const size_t biases[] = {1, 2, DISTANCE + 1, 3, DISTANCE + 2, 8, DISTANCE + 8};
    static const size_t nks[] = {1, 3, 8, 17, 63, 64, 65, 73, 128, 130};
    size_t t = 0;
    for (size_t nq = 5; nq <= 132; nq += nq < 34 ? 1 : 7) {
        for (size_t i = 0; i < iso_count(biases); i++, t++) {
            const size_t nk = nks[t % iso_count(nks)], see = t % 3 == 0   ? 0
                                                             : t % 3 == 1 ? 1 + t % 9
                                                             : nk > nq    ? nk - nq + 1
                                                                          : 1;
            const int plain = biases[i] % DISTANCE < 3;
            iso_add(l, 12, ISO_CHECK_FILL_UNIFORM, plain ? ISO_CHECK_CASE_TRAPLESS : 0, nq, nk,
                    3 + t % 17, see, biases[i], 0, t % 3,
                    (nq > ISO_QUERIES_FEW && t % 2 ? 2 * ROWS : 0) +
                        (plain ? 0 : t / 2 % (biases[i] < DISTANCE ? 5 : 4)),
                    t % 4, t % 5, t % 6, 0);
        }
    }
    for (size_t nq = 1; nq <= 34; nq += 3) /* keys in the lanes, too, and weights */
        add_attention(l, 4, ISO_CHECK_CASE_TRAPLESS, ISO_CHECK_FILL_UNIFORM, nq, 70, 16, nq % 2,
                      DISTANCE + 1 + nq % 4 / 2, nq < 17, 1, 0);
}

static const size_t dhs[] = {64, 1, 8, 16, 32, 48, 80, 96, 128, 3, 17};
static const size_t nks[] = {1, 2, 63, 64, 65, 127, 128, 129, 0, 7, 16, 33, 200};
static const size_t nqs[] = {1, 2, 3, 15, 16, 17, 31, 33, 63, 64};

/* Queries and keys, widths of heads, what a query sees. */
static void shape_cases(struct iso_check_cases *l) {
    size_t t = 0;
    for (size_t d = 0; d < iso_count(dhs); d++) {
        for (size_t j = 0; j < iso_count(nks); j++) {
            for (size_t i = 0; i < iso_count(nqs); i++, t++) {
                size_t nq = nqs[i], nk = nks[j];
                /* not causal; causal from the first key on; a cache before the first query */
                size_t see = t % 3 == 0 ? 0 : t % 3 == 1 ? 1 : nk > nq ? nk - nq + 1 : 1 + t % 5;
                bool golden = t % 19 == 0 && dhs[d] <= 64;
                add_attention(l, 40, ISO_CHECK_CASE_TRAPLESS | (golden ? ISO_CHECK_CASE_GOLDEN : 0),
                              t % 4 == 3 ? ISO_CHECK_FILL_NORMAL : ISO_CHECK_FILL_UNIFORM, nq, nk,
                              dhs[d], see, t / 3 % 5 == 4 ? 1 : 0, t / 7 % 3 == 2, t % 4, 0);
            }
        }
    }
    for (size_t nq = 1; nq <= 64; nq++) /* each number of queries, each number of keys */
        add_attention(l, 8, ISO_CHECK_CASE_TRAPLESS, ISO_CHECK_FILL_UNIFORM, nq, 70, 16, nq % 2,
                      nq % 3, 1, 0, 0);
    for (size_t nk = 0; nk <= 140; nk++) {
        add_attention(l, 15, ISO_CHECK_CASE_TRAPLESS, ISO_CHECK_FILL_UNIFORM, 1, nk, 8, 0, nk % 3,
                      1, 0, 0);
        add_attention(l, 15, ISO_CHECK_CASE_TRAPLESS, ISO_CHECK_FILL_UNIFORM, 18, nk, 8, 1, nk % 2,
                      0, 1, 0);
    }
    for (size_t dh = 1; dh <= 130; dh += dh < 40 ? 1 : 9) {
        add_attention(l, 12, ISO_CHECK_CASE_TRAPLESS, ISO_CHECK_FILL_UNIFORM, 1, 66, dh, 0, 0, 0, 1,
                      0);
        add_attention(l, 12, ISO_CHECK_CASE_TRAPLESS, ISO_CHECK_FILL_UNIFORM, 17, 66, dh, 50, 0, 0,
                      1, 0);
    }
}

/* What is masked, and values of all kinds. */
static void value_cases(struct iso_check_cases *l) {
    for (size_t poison = 0; poison <= 4; poison++) {
        for (size_t bias = 0; bias <= 3; bias++) {
            for (size_t see = 0; see < 2; see++) {
                for (size_t nq = 1; nq <= 34; nq += 11) {
                    unsigned golden = nq == 12 ? ISO_CHECK_CASE_GOLDEN : 0;
                    add_attention(l, 6, golden, ISO_CHECK_FILL_UNIFORM, nq, 66, 16, see * 40, bias,
                                  1, 1, poison);
                    add_attention(l, 6, 0, ISO_CHECK_FILL_UNIFORM, nq, 20, 8, see, bias, see, 0,
                                  poison);
                    add_attention(l, 6, 0, ISO_CHECK_FILL_UNIFORM, nq, 130, 32, see * 90, bias, 0,
                                  0, poison);
                }
            }
        }
    }
    static const unsigned fills[] = {ISO_CHECK_FILL_ZERO,    ISO_CHECK_FILL_TINY,
                                     ISO_CHECK_FILL_EQUAL,   ISO_CHECK_FILL_RISING,
                                     ISO_CHECK_FILL_FALLING, ISO_CHECK_FILL_INTEGER};
    for (size_t f = 0; f < iso_count(fills); f++) {
        for (size_t nq = 1; nq < 40; nq += 19) {
            add_attention(l, 3, f % 2 ? 0 : ISO_CHECK_CASE_GOLDEN, fills[f], nq, 130, 24, 0, f % 2,
                          1, 0, 0);
            add_attention(l, 3, 0, fills[f], nq, 60, 24, 30, f % 2, 0, 0, 0);
        }
    }
    for (size_t bias = 4; bias <= 7; bias++) { /* blocks that nobody sees, whatever they hold */
        for (size_t j = 0; j < iso_count(nks); j++) {
            for (size_t i = 0; i < 24; i++)
                add_attention(l, 60, 0, ISO_CHECK_FILL_UNIFORM,
                              i % 3 == 0   ? 1
                              : i % 3 == 1 ? 5
                                           : 34,
                              nks[j], i % 2 ? 16 : 5, i / 3 % 2 ? nks[j] / 2 + 1 : 0, bias,
                              i / 6 % 2, i % 2, i >= 12 ? 4 : 0);
        }
    }
    static const unsigned more[] = {
        ISO_CHECK_FILL_WIDE,        ISO_CHECK_FILL_CANCEL,     ISO_CHECK_FILL_OFFSET,
        ISO_CHECK_FILL_SCORES,      ISO_CHECK_FILL_SPECIAL,    ISO_CHECK_FILL_SMALL,
        ISO_CHECK_FILL_ONES,        ISO_CHECK_FILL_ALTERNATE,  ISO_CHECK_FILL_POWERS,
        ISO_CHECK_FILL_SPIKE_FIRST, ISO_CHECK_FILL_SPIKE_LAST, ISO_CHECK_FILL_PLATEAU,
        ISO_CHECK_FILL_OPPOSITE,    ISO_CHECK_FILL_EDGE,       ISO_CHECK_FILL_LADDER,
        ISO_CHECK_FILL_STEEP,       ISO_CHECK_FILL_MINUS_ZERO};
    for (size_t f = 0; f < iso_count(more); f++) {
        for (size_t nq = 1; nq < 40; nq += 19) {
            for (size_t bias = 0; bias < 2; bias++) {
                add_attention(l, 9, 0, more[f], nq, 130, 24, 0, bias, 1, 0, 0);
                add_attention(l, 9, 0, more[f], nq, 60, 24, 30, bias, 0, 0, 0);
            }
        }
    }
    for (size_t spot = 0; spot < 15 + 1 + 2 * 5 * 66; spot++) { /* q, keys and values */
        ISO_EACH_POINT_FILL(fill)
        iso_add_at(l, 60, fill, 0, spot, 3, 66, 5, spot % 2 ? 40 : 0, 0, spot % 3 == 0, 1, 0);
    }
}

/* Strides, and sizes as models have them. */
static void large_cases(struct iso_check_cases *l) {
    for (size_t i = 0; i < 5 * ISO_STRIDES; i++) { /* of o, q, v, bias and weights, mixed */
        size_t dh = 13 + i, nk = 60 + i;
        iso_add(l, 5, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, i % 2 ? 1 : 18, nk, dh,
                i % 3 ? 0 : 20, 1, 1, iso_stride_gap(i % ISO_STRIDES, dh), 0,
                iso_stride_gap(i / 2 % ISO_STRIDES, dh), iso_stride_gap(i / 3 % ISO_STRIDES, dh),
                iso_stride_gap(i / 4 % ISO_STRIDES, nk), iso_stride_gap(i / 5 % ISO_STRIDES, nk));
    }
    for (size_t nk = 256; nk <= 1024; nk *= 2) { /* heads of 64, as models have them */
        add_attention(l, 20, ISO_CHECK_CASE_TRAPLESS, ISO_CHECK_FILL_NORMAL, 1, nk, 64, 0, 0, 1, 0,
                      0);
        add_attention(l, 20, ISO_CHECK_CASE_TRAPLESS, ISO_CHECK_FILL_NORMAL, 17, nk, 64, nk - 16, 0,
                      1, 0, 0);
    }
    add_attention(l, 3, ISO_CHECK_CASE_ALIGN, ISO_CHECK_FILL_UNIFORM, 1, 67, 20, 0, 1, 1, 1, 0);
    add_attention(l, 3, ISO_CHECK_CASE_ALIGN, ISO_CHECK_FILL_UNIFORM, 5, 67, 20, 61, 0, 1, 1, 0);
    add_attention(l, 1, 0, ISO_CHECK_FILL_UNIFORM, 0, 67, 20, 0, 0, 0, 0, 0);
    add_attention(l, 20, ISO_CHECK_CASE_TRAPLESS, ISO_CHECK_FILL_UNIFORM, 64, 1030, 64, 967, 0, 0,
                  0, 0);
    add_attention(l, 1, ISO_CHECK_CASE_TRAPLESS, ISO_CHECK_FILL_UNIFORM, 1, 1030, 64, 0, 0, 0, 0,
                  0);
    add_attention(l, 20, ISO_CHECK_CASE_TRAPLESS, ISO_CHECK_FILL_UNIFORM, 33, 129, 512, 97, 0, 1, 0,
                  0);
}

/* Keys that are rows. */
static void row_cases(struct iso_check_cases *l) {
    for (size_t i = 0; i < iso_count(nks); i++)
        for (size_t d = 0; d < iso_count(dhs); d++) /* keys that are rows, poisoned or not */
            iso_add(l, 6, ISO_CHECK_FILL_UNIFORM, (i + d) % 2 ? ISO_CHECK_CASE_TRAPLESS : 0, 1,
                    nks[i], dhs[d], d % 3 ? 0 : nks[i] / 2 + 1, i % 4 == 1, d % 4 == 2, i % 3,
                    ROWS + ((i + d) % 2 ? 0 : 1 + d % 3), 0, d % 5, i % 5, 0);
    iso_add(l, 1, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_CASE_TRAPLESS, 1, 1100, 64, 0, 0, 0, 2, ROWS, 0,
            300, 200, 0); /* many, strided */
    for (size_t heads = 2; heads <= ISO_HEADS; heads++)
        for (size_t i = 0; i < 3; i++)
            iso_add(l, 10, ISO_CHECK_FILL_UNIFORM, i ? 0 : ISO_CHECK_CASE_TRAPLESS, heads,
                    nks[(heads + i) % iso_count(nks)],
                    i == 1 ? 16 : dhs[heads * 7 % iso_count(dhs)] % (ISO_HEADS_FLOATS / heads) + 1,
                    0, (heads + i) % 4, heads % 3 == i, i, ROWS + (i ? heads % 5 : 0), heads % 4, i,
                    heads % 5, i * 2);
    for (size_t nq = ISO_QUERIES_FEW + 1; nq <= 70; nq += nq < 20 ? 1 : 5)
        for (size_t i = 0; i < 3; i++)
            iso_add(l, 10, ISO_CHECK_FILL_UNIFORM, i ? 0 : ISO_CHECK_CASE_TRAPLESS, nq,
                    nks[(nq + i) % iso_count(nks)], dhs[nq * 5 % iso_count(dhs)],
                    i == 2 ? nq / 2 : i, 0, 0, i, 2 * ROWS + (i ? nq % 4 : 0), nq % 4, i, nq % 5,
                    0);
}

/* Several blocks of queries. */
static void block_cases(struct iso_check_cases *l) {
    static const size_t runs[] = {65, 127, 128, 129, 200, 256}; /* several blocks of queries */
    for (size_t i = 0; i < iso_count(runs); i++) {
        for (size_t see = 0; see <= 140; see += see < 2 ? 1 : 69) {
            add_attention(l, 20, ISO_CHECK_CASE_TRAPLESS, ISO_CHECK_FILL_UNIFORM, runs[i], 200, 16,
                          see, 0, 0, i % 3, 0);
            add_attention(l, 20, 0, ISO_CHECK_FILL_UNIFORM, runs[i], 130, 5, see, 0, 0, 1,
                          1 + i % 4);
        }
    }
}

/* Queries that see the last keys only. */
static void window_cases(struct iso_check_cases *l) {
    static const size_t windows[] = {1, 2, 15, 16, 63, 64, 65, 100, 128, 200, 500};
    static const size_t many[] = {1, 2, 5, 16, 33, 64, 65, 129, 256};
    for (size_t w = 0; w < iso_count(windows); w++) {
        for (size_t i = 0; i < iso_count(many); i++) {
            const size_t nk = i % 2 ? 260 : 330, poison = (w + i) % 5;
            for (size_t causal = 0; causal < 2; causal++) {
                const size_t see = WINDOW * windows[w] + (causal ? 1 + nk - many[i] : 0);
                add_attention(l, 24, 0, ISO_CHECK_FILL_UNIFORM, many[i], nk, 16, see, 0, 0, i % 3,
                              poison);
                if (many[i] <= 64)
                    add_attention(l, 24, 0, ISO_CHECK_FILL_UNIFORM, many[i], nk, 5, see, w % 8, 1,
                                  1, poison);
                if (many[i] == 1 || (many[i] <= 16 && !causal))
                    iso_add(l, 12, ISO_CHECK_FILL_UNIFORM, 0, many[i], nk, 8, see, w % 4, i % 2, 0,
                            ROWS + poison);
                if (many[i] > ISO_QUERIES_FEW)
                    iso_add(l, 12, ISO_CHECK_FILL_UNIFORM, 0, many[i], nk, 8,
                            see - (many[i] < 100 ? causal * 100 : 0), 0, 0, 0, 2 * ROWS + poison);
            }
        }
    }
}

/* Scores with a soft cap: each way, each edge of it. */
static void cap_cases(struct iso_check_cases *l) {
    static const unsigned fills[] = {ISO_CHECK_FILL_NORMAL, ISO_CHECK_FILL_ZERO,
                                     ISO_CHECK_FILL_EQUAL,  ISO_CHECK_FILL_RISING,
                                     ISO_CHECK_FILL_TINY,   ISO_CHECK_FILL_INTEGER};
    static const size_t biases[] = {0, 1, 2, 0, 3, DISTANCE + 1, 8};
    size_t t = 0;
    for (size_t nq = 1; nq <= 140; nq += nq < 34 ? 1 : 15)
        for (size_t i = 0; i < iso_count(nks); i++, t++) {
            const size_t nk = nks[i], cap = CAP * (1 + t % 3), bias = biases[t % 7];
            const size_t see = t % 3 == 0 ? 0 : t % 3 == 1 ? 1 + t % 9 : nk > nq ? nk - nq + 1 : 1;
            add_attention(l, 12, bias < 3 ? ISO_CHECK_CASE_TRAPLESS : 0, ISO_CHECK_FILL_UNIFORM, nq,
                          nk, 3 + t % 30, see + (t % 5 == 4 ? WINDOW * (1 + nk / 2) : 0), bias,
                          cap + (nq < 70 && t % 4 == 1), t % 3, 0);
            add_attention(l, 24, 0, ISO_CHECK_FILL_UNIFORM, nq, nk, 16, see, bias % 4, cap, 0,
                          t % 5 + (nq > ISO_QUERIES_FEW && t % 2 ? 2 * ROWS : 0));
        }
    for (size_t heads = 1; heads <= ISO_HEADS; heads++)
        iso_add(l, 6, ISO_CHECK_FILL_UNIFORM, 0, heads, nks[heads % iso_count(nks)], heads % 13 + 1,
                0, heads % 4, CAP + heads % 3, heads % 2, ROWS + heads % 5);
    for (size_t f = 0; f < iso_count(fills); f++)
        for (size_t nq = 1; nq < 40; nq += 19)
            add_attention(l, 6, 0, fills[f], nq, 130, 24, 0, f % 2, CAP * (1 + f % 3), 0, 0);
    for (size_t spot = 0; spot < 15 + 1 + 2 * 5 * 66; spot += 5) /* q, keys and values */
        ISO_EACH_POINT_FILL(fill)
    iso_add_at(l, 60, fill, 0, spot, 3, 66, 5, spot % 2 ? 40 : 0, 0, CAP + spot % 2, 1, 0);
}

static void attention_cases(struct iso_check_cases *l) {
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        add_attention(l, 1, 0, ISO_CHECK_FILL_NORMAL, 64, 128, 64, 0, 0, 0, 0, 0);
        add_attention(l, 1, 0, ISO_CHECK_FILL_NORMAL, 64, 512, 64, 0, 0, 0, 0, 0);
        add_attention(l, 1, 0, ISO_CHECK_FILL_NORMAL, 64, 512, 64, 449, 0, 0, 0, 0);
        add_attention(l, 1, 0, ISO_CHECK_FILL_NORMAL, 1, 512, 64, 0, 0, 0, 0, 0);
        add_attention(l, 1, 0, ISO_CHECK_FILL_NORMAL, 1, 128, 64, 0, 0, 0, 0, 0);
        return;
    }
    shape_cases(l);
    value_cases(l);
    large_cases(l);
    row_cases(l);
    block_cases(l);
    bias_cases(l);
    window_cases(l);
    cap_cases(l);
}

static float attention_cap(const struct iso_check_case *c) {
    static const float caps[] = {0, 1.5f, 50, 0.3f};
    return caps[c->p[A_WEIGHTS] / CAP];
}

static float attention_scale(const struct iso_check_case *c) {
    /* near 1/sqrt(dh), by exact means */
    static const float scales[] = {1, 0.75f, 0.5f, 0.375f, 0.25f, 0.1875f, 0.125f, 0.09375f};
    size_t i = 0;
    for (size_t d = c->p[A_DH]; d > 1; d = d * 9 / 16)
        i++;
    return c->fill == ISO_CHECK_FILL_RISING || c->fill == ISO_CHECK_FILL_FALLING
               ? 0x1p-7f
               : scales[i < 7 ? i : 7];
}

static size_t key_at(size_t j, size_t c, size_t dh) {
    return j / ISO_PANEL * dh * ISO_PANEL + c * ISO_PANEL + j % ISO_PANEL;
}

static bool by_distance(const struct iso_check_case *c) { return c->p[A_BIAS] >= DISTANCE; }

/* Does the bias take this key from all queries? */
static bool key_removed(const struct iso_check_case *c, size_t j) {
    size_t nk = c->p[A_NK], block = j / ISO_KEY_BLOCK, last = (nk - 1) / ISO_KEY_BLOCK;
    if (by_distance(c))
        return false;
    switch (c->p[A_BIAS]) {
    case 0:
    case 1:
    case 8: return false;
    case 4: return block == 0;
    case 5: return block == last;
    case 6: return block == last / 2;
    case 7: return j != nk * 2 / 3;
    default: return j % 7 == 3;
    }
}

static void attention_setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t nq = c->p[A_NQ], nk = c->p[A_NK], dh = c->p[A_DH], gap = c->p[A_GAP];
    size_t panels = (nk + ISO_PANEL - 1) / ISO_PANEL * ISO_PANEL * dh;
    iso_check_out(o, "o", nq, dh, dh + gap);
    iso_check_in_f32(o, "q", nq, dh, dh + 2 * gap + c->p[A_QGAP], c->fill);
    float *k = iso_check_in(o, "keys", sizeof *k, 1, panels, panels);
    float key_scale = iso_check_fill_value(o, c->fill) < 0 ? -1.0f : 1.0f;
    for (size_t j = 0; j < nk; j++) {
        for (size_t e = 0; e < dh; e++) {
            float x = iso_check_fill_value(
                o, c->fill == ISO_CHECK_FILL_NORMAL ? ISO_CHECK_FILL_UNIFORM : c->fill);
            if (c->fill == ISO_CHECK_FILL_RISING || c->fill == ISO_CHECK_FILL_FALLING)
                x = e ? 0 : key_scale * 0.5f * (float)j; /* every key moves the maximum, or none */
            k[key_at(j, e, dh)] = x;
        }
    }
    bool same = c->fill == ISO_CHECK_FILL_ZERO || iso_check_fill_has_spot(c->fill);
    size_t ldv = dh + gap + c->p[A_VGAP];
    float *v = iso_check_in_f32(o, "v", nk, dh, ldv, same ? c->fill : ISO_CHECK_FILL_UNIFORM);
    if (by_distance(c)) {
        const size_t n = nq + nk - (nq > 0);
        float *bias = iso_check_in_f32(o, "bias", 1, n, n, ISO_CHECK_FILL_UNIFORM);
        for (size_t i = 0; i < n && c->p[A_BIAS] == DISTANCE + 2; i++)
            if (iso_check_random_below(&o->random, 4) == 0)
                bias[i] = -INFINITY;
        if (c->p[A_BIAS] == DISTANCE + 8 && n)
            bias[n / 3] = NAN, bias[n - 1] = INFINITY, bias[n / 2] = -INFINITY;
    } else if (c->p[A_BIAS]) {
        size_t ld = nk + gap + c->p[A_BGAP];
        float *bias = iso_check_in_f32(o, "bias", nq, nk, ld, ISO_CHECK_FILL_UNIFORM);
        for (size_t i = 0; i < nq && nk && c->p[A_BIAS] == 8; i += 3)
            bias[i * ld + i % nk] = i % 2 ? INFINITY : NAN;
        for (size_t i = 0; i < nq && c->p[A_BIAS] >= 2; i++) {
            for (size_t j = 0; j < nk; j++) {
                if (key_removed(c, j) || (c->p[A_BIAS] == 3 && i % 3 == 1) ||
                    (c->p[A_BIAS] <= 3 && iso_check_random_below(&o->random, 5) == 0))
                    bias[i * ld + j] = -INFINITY;
            }
        }
    } else {
        iso_check_absent(o, "bias");
    }
    if (c->p[A_WEIGHTS] % CAP)
        /* more columns than keys */
        iso_check_out(o, "weights", nq, nk + gap % 16, nk + 2 * gap + c->p[A_WGAP]);
    else
        iso_check_absent(o, "weights");
    iso_check_scratch(o, "scratch", ISO_ATTENTION_SCRATCH(nq, dh));
    for (size_t j = 0; j < nk; j++) {
        for (size_t e = 0; e < dh; e++) {
            float *value = &v[j * ldv + e], *key = &k[key_at(j, e, dh)];
            if (c->p[A_POISON] % ROWS == 1 && j + 1 == nk && e % 2 == 0)
                *value = NAN;
            if (c->p[A_POISON] % ROWS == 2 && j + 1 == nk)
                *key = NAN;
            if (c->p[A_POISON] % ROWS == 3 && j == nk / 2 && e == dh / 2)
                *value = j % 2 ? INFINITY : -INFINITY;
            if (c->p[A_POISON] % ROWS == 4 && key_removed(c, j))
                *value = NAN, *key = e % 2 ? INFINITY : NAN;
        }
    }
    if (c->p[A_POISON] >= ROWS) {
        const size_t ld = dh + gap + c->p[A_BGAP];
        float *rows = iso_check_in_f32(o, "rows", nk, dh, ld, ISO_CHECK_FILL_ZERO);
        k = ISO_CHECK_HOST(float, o, A_KEYS);
        for (size_t j = 0; j < nk; j++)
            for (size_t e = 0; e < dh; e++)
                rows[j * ld + e] = k[key_at(j, e, dh)];
    }
}

static void attention_call(const void *table, const struct iso_check_case *c,
                           const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    const struct iso_check_operand *v = o->v;
    struct iso_attention a = {.o = v[A_O].at,
                              .ldo = v[A_O].ld,
                              .q = v[A_Q].at,
                              .ldq = v[A_Q].ld,
                              .key_panels = v[A_KEYS].at,
                              .v = v[A_V].at,
                              .ldv = v[A_V].ld,
                              .nq = c->p[A_NQ],
                              .nk = c->p[A_NK],
                              .dh = c->p[A_DH],
                              .causal = c->p[A_SEE] % WINDOW != 0,
                              .see = c->p[A_SEE] % WINDOW,
                              .window = c->p[A_SEE] / WINDOW,
                              .scale = attention_scale(c),
                              .softcap = attention_cap(c),
                              .bias = v[A_BIAS_AT].at,
                              .ldb = (ptrdiff_t)v[A_BIAS_AT].ld,
                              .weights = v[A_WEIGHTS_AT].at,
                              .ldw = v[A_WEIGHTS_AT].ld,
                              .nk_weights = v[A_WEIGHTS_AT].cols,
                              .scratch = v[A_SCRATCH].at};
    if (a.softcap != 0)
        a.scale /= a.softcap;
    if (by_distance(c))
        a.bias += a.nq - (a.nq > 0), a.ldb = -1;
    if (c->p[A_POISON] >= ROWS)
        a.key_panels = NULL, a.k = v[A_ROWS_AT].at, a.ldk = v[A_ROWS_AT].ld;
    if (c->p[A_POISON] / ROWS == 1)
        a.nq = 1, a.heads = c->p[A_NQ], a.q_head = a.ldq, a.o_head = a.ldo,
        a.bias_head = v[A_BIAS_AT].ld, a.weights_head = a.ldw;
    t->attention(&a);
}

static void attention_reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    size_t nq = c->p[A_NQ], nk = c->p[A_NK], dh = c->p[A_DH];
    const size_t see = c->p[A_SEE] % WINDOW, window = c->p[A_SEE] / WINDOW;
    double *expect = iso_check_expect(o, A_O), *bound = iso_check_bound(o, A_O), *w = NULL,
           *wb = NULL;
    size_t columns = o->v[A_WEIGHTS_AT].cols;
    if (c->p[A_WEIGHTS] % CAP) {
        w = iso_check_expect(o, A_WEIGHTS_AT);
        wb = iso_check_bound(o, A_WEIGHTS_AT);
        for (size_t i = 0; i < nq * columns; i++)
            w[i] = 0, wb[i] = ORACLE_EQUAL;
    }
    /* row-major keys: the panels are slow to walk */
    float *keys = iso_check_operands_alloc(o, nk * dh * sizeof *keys);
    for (size_t j = 0; j < nk; j++) {
        for (size_t e = 0; e < dh; e++)
            keys[j * dh + e] = ISO_CHECK_HOST(float, o, A_KEYS)[key_at(j, e, dh)];
    }
    float *row = iso_check_operands_alloc(o, (nk + 1) * sizeof *row);
    for (size_t i = 0; i < nq; i++) {
        const float *bias = ISO_CHECK_HOST(float, o, A_BIAS_AT);
        const size_t seen = see && see + i < nk ? see + i : nk;
        if (c->p[A_BIAS])
            bias += by_distance(c) ? nq - 1 - i : i * o->v[A_BIAS_AT].ld;
        else
            bias = NULL;
        for (size_t j = 0; window && j < seen; j++) /* what is not seen has a bias of -Inf */
            row[j] = j + window < seen ? -INFINITY : bias ? bias[j] : 0;
        struct iso_oracle_attention a = {.q = ISO_CHECK_HOST(float, o, A_Q) + i * o->v[A_Q].ld,
                                         .k = keys,
                                         .ksj = dh,
                                         .ksc = 1,
                                         .v = ISO_CHECK_HOST(float, o, A_V),
                                         .ldv = o->v[A_V].ld,
                                         .nk = seen,
                                         .dh = dh,
                                         .scale = (double)attention_scale(c),
                                         .softcap = (double)attention_cap(c),
                                         .bias = window ? row : bias,
                                         .lanes = ISO_LANES,
                                         .key_block = ISO_KEY_BLOCK};
        iso_oracle_attention(expect + i * dh, bound + i * dh, w ? w + i * columns : NULL,
                             wb ? wb + i * columns : NULL, &a);
        for (size_t j = 0; w && window && j + window < seen; j++)
            w[i * columns + j] = 0, wb[i * columns + j] = ORACLE_EQUAL;
    }
}

static double attention_flops(const void *table, const struct iso_check_case *c) {
    const struct iso_kernels *t = table;
    double pairs = 0;
    (void)t;
    for (size_t i = 0; i < c->p[A_NQ]; i++) {
        const size_t see = c->p[A_SEE] % WINDOW;
        size_t seen = see ? see + i : c->p[A_NK];
        pairs += (double)(seen < c->p[A_NK] ? seen : c->p[A_NK]);
    }
    return 4 * pairs * (double)c->p[A_DH];
}

static double attention_bytes(const struct iso_check_case *c) {
    return 8.0 * (double)(c->p[A_NQ] + c->p[A_NK]) * (double)c->p[A_DH];
}

static const char *attention_group(const struct iso_check_case *c) {
    return c->p[A_WEIGHTS] >= CAP  ? "softcap"
           : c->p[A_SEE] >= WINDOW ? "window"
           : c->p[A_WEIGHTS]       ? "weights"
                                   : iso_check_fill_class(c->fill);
}

static void attention_random(struct iso_check_case *c, struct iso_check_random *r) {
    static const unsigned fills[] = {
        ISO_CHECK_FILL_UNIFORM, ISO_CHECK_FILL_UNIFORM, ISO_CHECK_FILL_NORMAL,
        ISO_CHECK_FILL_NORMAL,  ISO_CHECK_FILL_ZERO,    ISO_CHECK_FILL_TINY,
        ISO_CHECK_FILL_EQUAL,   ISO_CHECK_FILL_RISING,  ISO_CHECK_FILL_FALLING,
        ISO_CHECK_FILL_INTEGER, ISO_CHECK_FILL_NAN_AT,  ISO_CHECK_FILL_INF_AT,
        ISO_CHECK_FILL_LADDER,  ISO_CHECK_FILL_CANCEL};
    c->p[A_NQ] = iso_check_random_log(r, ISO_QUERY_BLOCKS * ISO_QUERY_BLOCK);
    c->p[A_NK] = iso_check_random_log(r, 400);
    c->p[A_DH] = 1 + iso_check_random_log(r, 140);
    while (c->p[A_NQ] * c->p[A_NK] * c->p[A_DH] > 1 << 16)
        c->p[iso_check_random_below(r, 2) ? A_NQ : A_NK] /= 2;
    c->p[A_SEE] = iso_check_random_below(r, 2) ? 1 + iso_check_random_below(r, c->p[A_NK] + 3) : 0;
    c->p[A_BIAS] = iso_check_random_below(r, 9);
    if (iso_check_random_below(r, 3) == 0)
        c->p[A_BIAS] = DISTANCE + 1 + iso_check_random_below(r, 2);
    c->p[A_WEIGHTS] = iso_check_random_below(r, 2);
    c->p[A_GAP] = iso_check_random_gap(r);
    c->p[A_QGAP] = iso_check_random_gap(r);
    c->p[A_VGAP] = iso_check_random_gap(r);
    c->p[A_BGAP] = iso_check_random_gap(r);
    c->p[A_WGAP] = iso_check_random_gap(r);
    c->p[A_POISON] = iso_check_random_below(r, 2) ? 0 : iso_check_random_below(r, 5);
    c->fill = c->p[A_POISON] ? ISO_CHECK_FILL_UNIFORM
                             : fills[iso_check_random_below(r, iso_count(fills))];
    bool plain = c->fill == ISO_CHECK_FILL_UNIFORM || c->fill == ISO_CHECK_FILL_NORMAL;
    c->flags =
        plain && !c->p[A_POISON] && c->p[A_BIAS] % DISTANCE < 3 ? ISO_CHECK_CASE_TRAPLESS : 0;
    const size_t heads = c->p[A_NQ];
    if (iso_check_random_below(r, 4) == 0)
        c->p[A_SEE] += WINDOW * (1 + iso_check_random_log(r, c->p[A_NK] + 1));
    const bool rows = heads == 1 || (heads > 1 && heads <= ISO_HEADS && c->p[A_SEE] % WINDOW == 0 &&
                                     heads * c->p[A_DH] <= ISO_HEADS_FLOATS);
    if (rows && (heads == 1 || !by_distance(c)) && iso_check_random_below(r, 2))
        c->p[A_POISON] += ROWS;
    else if (heads > ISO_QUERIES_FEW && !c->p[A_WEIGHTS])
        c->p[A_POISON] += 2 * ROWS * iso_check_random_below(r, 2);
    if (iso_check_random_below(r, 4) == 0)
        c->p[A_WEIGHTS] += CAP * (1 + iso_check_random_below(r, 3));
}

const struct iso_check_suite iso_kernel_suite_attention = {
    .name = "attention",
    .params = "nq nk dh see bias weights gap poison "
              "qgap vgap bgap wgap",
    .cases = attention_cases,
    .setup = attention_setup,
    .call = attention_call,
    .reference = attention_reference,
    .group = attention_group,
    .flops = attention_flops,
    .bytes = attention_bytes,
    .random = attention_random};
