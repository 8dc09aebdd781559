/* SPDX-License-Identifier: MIT
 *
 * Suite of attention_w16: keys in wide panels and rows of values, both of 16 bits. What no query
 * may use is NaN in all cases: the rest of the last panel of keys, and the columns of values beyond
 * dh.
 */
#include <math.h>

#include "kernels.h"
#include "oracle_kernels.h"
#include <isobit/check.h>
#include "suites/suites.h"

/*
 * see: 0 is not causal; + WINDOW w: each query sees only the last w keys. bias 0: NULL, 1: finite,
 * 2: with -Inf here and there, 3: some rows all -Inf, 4: with NaN and +Inf in some rows; +
 * DISTANCE: it depends on the distance alone. poison 1: NaN in the last value, 2: in the last key,
 * 3: +-Inf in a value in the middle, 4: NaN in the keys and values that the bias takes from all
 * queries. fill is that of q and k. gap: behind all rows, those of values in steps of 32. cap: 0,
 * or the number of a soft cap.
 */
enum { A_NQ, A_NK, A_DH, A_SEE, A_BIAS, A_WEIGHTS, A_GAP, A_POISON, A_TYPE, A_CAP };
enum { A_O, A_Q, A_KEYS, A_V, A_BIAS_AT, A_WEIGHTS_AT, A_SCRATCH };
enum { DISTANCE = 16, WINDOW = 4096, WIDE = ISO_HALF_PANEL };

static size_t key_at(size_t j, size_t e, const struct iso_check_case *c) {
    return j / WIDE * c->p[A_DH] * WIDE + e * WIDE + iso_half_place(j % WIDE, c->p[A_TYPE]);
}

static size_t value_at(size_t j, size_t e, size_t ld, const struct iso_check_case *c) {
    return j * ld + e / WIDE * WIDE + iso_half_place(e % WIDE, c->p[A_TYPE]);
}

static size_t columns_of(size_t dh) { return (dh + WIDE - 1) / WIDE * WIDE; }

static bool by_distance(const struct iso_check_case *c) { return c->p[A_BIAS] >= DISTANCE; }

static bool key_removed(const struct iso_check_case *c, size_t j) {
    return (c->p[A_BIAS] == 2 || c->p[A_BIAS] == 3) && j % 7 == 3;
}

static float scale_of(const struct iso_check_case *c) {
    return c->p[A_DH] > 40 ? 0.125f : c->p[A_DH] > 10 ? 0.25f : 0.625f;
}

static float cap_of(const struct iso_check_case *c) {
    static const float caps[] = {0, 1.5f, 50, 0.3f};
    return caps[c->p[A_CAP]];
}

static void setup_bias(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t nq = c->p[A_NQ], nk = c->p[A_NK], kind = c->p[A_BIAS] % DISTANCE;
    if (by_distance(c)) {
        const size_t n = nq + nk - (nq > 0);
        float *bias = iso_check_in_f32(o, "bias", 1, n, n, ISO_CHECK_FILL_UNIFORM);
        for (size_t i = 0; i < n && kind == 2; i++)
            if (iso_check_random_below(&o->random, 4) == 0)
                bias[i] = -INFINITY;
    } else if (kind) {
        const size_t ld = nk + c->p[A_GAP];
        float *bias = iso_check_in_f32(o, "bias", nq, nk, ld, ISO_CHECK_FILL_UNIFORM);
        for (size_t i = 0; i < nq; i++) {
            for (size_t j = 0; j < nk; j++)
                if (key_removed(c, j) || (kind == 3 && i % 3 == 1) ||
                    (kind == 2 && iso_check_random_below(&o->random, 5) == 0))
                    bias[i * ld + j] = -INFINITY;
            if (kind == 4 && nk && i % 3 == 0)
                bias[i * ld + i % nk] = i % 2 ? INFINITY : NAN;
        }
    } else {
        iso_check_absent(o, "bias");
    }
}

static void setup(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t nq = c->p[A_NQ], nk = c->p[A_NK], dh = c->p[A_DH], gap = c->p[A_GAP];
    const size_t type = c->p[A_TYPE], poison = c->p[A_POISON];
    const uint16_t nan = 0x7fff;
    iso_check_out(o, "o", nq, dh, dh + gap);
    iso_check_in_f32(o, "q", nq, dh, dh + 2 * gap, c->fill);
    const size_t floats = (nk + WIDE - 1) / WIDE * WIDE * dh, ldv = columns_of(dh) + gap * WIDE;
    uint16_t *k = iso_check_in(o, "keys", sizeof *k, 1, floats, floats);
    for (size_t i = 0; i < floats; i++)
        k[i] = nan;
    for (size_t j = 0; j < nk; j++)
        for (size_t e = 0; e < dh; e++) {
            uint16_t *to = &k[key_at(j, e, c)];
            *to = iso_half_fill(o, c->fill, type);
            if ((poison == 2 && j + 1 == nk) || (poison == 4 && key_removed(c, j)))
                *to = nan;
        }
    const bool same = c->fill == ISO_CHECK_FILL_ZERO || iso_check_fill_has_spot(c->fill);
    uint16_t *v = iso_check_in(o, "v", sizeof *v, nk, columns_of(dh), ldv);
    for (size_t j = 0; j < nk; j++)
        for (size_t e = 0; e < columns_of(dh); e++) {
            uint16_t *to = &v[value_at(j, e, ldv, c)];
            *to = nan;
            if (e >= dh)
                continue;
            *to = iso_half_fill(o, same ? c->fill : ISO_CHECK_FILL_UNIFORM, type);
            if ((poison == 1 && j + 1 == nk && e % 2 == 0) || (poison == 4 && key_removed(c, j)))
                *to = nan;
            if (poison == 3 && j == nk / 2 && e == dh / 2)
                *to = iso_half_of(j % 2 ? INFINITY : -INFINITY, type);
        }
    setup_bias(o, c);
    if (c->p[A_WEIGHTS]) /* more columns than keys */
        iso_check_out(o, "weights", nq, nk + gap % 16, nk + 2 * gap);
    else
        iso_check_absent(o, "weights");
    iso_check_scratch(o, "scratch", ISO_ATTENTION_SCRATCH(nq, dh));
}

static void call(const void *table, const struct iso_check_case *c,
                 const struct iso_check_operands *o) {
    const struct iso_kernels *t = table;
    const struct iso_check_operand *v = o->v;
    struct iso_attention a = {.o = v[A_O].at,
                              .ldo = v[A_O].ld,
                              .q = v[A_Q].at,
                              .ldq = v[A_Q].ld,
                              .k16 = v[A_KEYS].at,
                              .v16 = v[A_V].at,
                              .ldv = v[A_V].ld,
                              .type16 = (int)c->p[A_TYPE],
                              .nq = c->p[A_NQ],
                              .nk = c->p[A_NK],
                              .dh = c->p[A_DH],
                              .causal = c->p[A_SEE] % WINDOW != 0,
                              .see = c->p[A_SEE] % WINDOW,
                              .window = c->p[A_SEE] / WINDOW,
                              .scale = scale_of(c),
                              .softcap = cap_of(c),
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
    t->attention_w16(&a);
}

static void reference(struct iso_check_operands *o, const struct iso_check_case *c) {
    const size_t nq = c->p[A_NQ], nk = c->p[A_NK], dh = c->p[A_DH], type = c->p[A_TYPE];
    const size_t see = c->p[A_SEE] % WINDOW, window = c->p[A_SEE] / WINDOW;
    const size_t columns = o->v[A_WEIGHTS_AT].cols;
    double *expect = iso_check_expect(o, A_O), *bound = iso_check_bound(o, A_O), *w = NULL,
           *wb = NULL;
    if (c->p[A_WEIGHTS]) {
        w = iso_check_expect(o, A_WEIGHTS_AT);
        wb = iso_check_bound(o, A_WEIGHTS_AT);
        for (size_t i = 0; i < nq * columns; i++)
            w[i] = 0, wb[i] = ORACLE_EQUAL;
    }
    float *k = iso_check_operands_alloc(o, (nk * dh + 1) * sizeof *k);
    float *v = iso_check_operands_alloc(o, (nk * dh + 1) * sizeof *v);
    float *row = iso_check_operands_alloc(o, (nk + 1) * sizeof *row);
    for (size_t j = 0; j < nk; j++)
        for (size_t e = 0; e < dh; e++) {
            k[j * dh + e] =
                iso_half_value(ISO_CHECK_HOST(uint16_t, o, A_KEYS)[key_at(j, e, c)], type);
            v[j * dh + e] = iso_half_value(
                ISO_CHECK_HOST(uint16_t, o, A_V)[value_at(j, e, o->v[A_V].ld, c)], type);
        }
    for (size_t i = 0; i < nq; i++) {
        const float *bias = NULL;
        const size_t seen = see && see + i < nk ? see + i : nk;
        if (c->p[A_BIAS])
            bias = ISO_CHECK_HOST(float, o, A_BIAS_AT) +
                   (by_distance(c) ? nq - 1 - i : i * o->v[A_BIAS_AT].ld);
        for (size_t j = 0; window && j < seen; j++) /* what is not seen has a bias of -Inf */
            row[j] = j + window < seen ? -INFINITY : bias ? bias[j] : 0;
        struct iso_oracle_attention a = {.q = ISO_CHECK_HOST(float, o, A_Q) + i * o->v[A_Q].ld,
                                         .k = k,
                                         .ksj = dh,
                                         .ksc = 1,
                                         .v = v,
                                         .ldv = dh,
                                         .nk = seen,
                                         .dh = dh,
                                         .scale = (double)scale_of(c),
                                         .softcap = (double)cap_of(c),
                                         .bias = window ? row : bias,
                                         .lanes = ISO_LANES,
                                         .key_block = ISO_KEY_BLOCK};
        iso_oracle_attention(expect + i * dh, bound + i * dh, w ? w + i * columns : NULL,
                             wb ? wb + i * columns : NULL, &a);
        for (size_t j = 0; w && window && j + window < seen; j++)
            w[i * columns + j] = 0, wb[i * columns + j] = ORACLE_EQUAL;
    }
}

static const char *group(const struct iso_check_case *c) {
    return c->p[A_CAP]             ? "softcap"
           : c->p[A_SEE] >= WINDOW ? "window"
           : c->p[A_WEIGHTS]       ? "weights"
                                   : iso_check_fill_class(c->fill);
}

static double flops(const void *table, const struct iso_check_case *c) {
    (void)table;
    return 4.0 * (double)c->p[A_NQ] * (double)c->p[A_NK] * (double)c->p[A_DH];
}

static double bytes(const struct iso_check_case *c) {
    return (8.0 * (double)c->p[A_NQ] + 4.0 * (double)c->p[A_NK]) * (double)c->p[A_DH];
}

static unsigned trapless(unsigned fill) {
    return iso_check_fill_is_finite(fill) ? ISO_CHECK_CASE_TRAPLESS : 0;
}

static void add(struct iso_check_cases *l, unsigned thin, unsigned flags, unsigned fill, size_t nq,
                size_t nk, size_t dh, size_t see, size_t bias, size_t weights, size_t gap,
                size_t poison) {
    for (size_t type = 0; type < 2; type++)
        iso_add(l, thin, fill, flags, nq, nk, dh, see, bias, weights, gap, poison, type);
}

static void cases(struct iso_check_cases *l) {
    static const size_t dhs[] = {64, 1, 8, 16, 31, 32, 33, 48, 80, 96, 128, 3, 17};
    static const size_t nks[] = {1, 2, 31, 32, 33, 63, 64, 65, 96, 127, 128, 129, 0, 7, 200};
    static const size_t windows[] = {1, 2, 31, 63, 64, 65, 100, 128, 500};
    if (l->plan == ISO_CHECK_PLAN_BENCH) {
        add(l, 1, 0, ISO_CHECK_FILL_NORMAL, 1, 512, 64, 0, 0, 0, 0, 0);
        add(l, 1, 0, ISO_CHECK_FILL_NORMAL, 4, 512, 64, 0, 0, 0, 0, 0);
        return;
    }
    size_t t = 0;
    for (size_t d = 0; d < iso_count(dhs); d++)
        for (size_t j = 0; j < iso_count(nks); j++)
            for (size_t nq = 1; nq <= 9; nq++, t++) {
                const size_t nk = nks[j];
                const size_t see = t % 3 == 0   ? 0
                                   : t % 3 == 1 ? 1
                                   : nk > nq    ? nk - nq + 1
                                                : 1 + t % 5;
                const bool golden = t % 11 == 0 && dhs[d] <= 64;
                add(l, 40, ISO_CHECK_CASE_TRAPLESS | (golden ? ISO_CHECK_CASE_GOLDEN : 0),
                    t % 4 == 3 ? ISO_CHECK_FILL_NORMAL : ISO_CHECK_FILL_UNIFORM, nq, nk, dhs[d],
                    see, t / 3 % 5 == 4, t / 7 % 3 == 2, t % 3, 0);
            }
    for (size_t nk = 0; nk <= 140; nk++) /* each number of keys, each width of a head */
        add(l, 15, ISO_CHECK_CASE_TRAPLESS, ISO_CHECK_FILL_UNIFORM, 1 + nk % 3, nk, 8, 0, nk % 3, 1,
            0, 0);
    for (size_t dh = 1; dh <= 130; dh += dh < 70 ? 1 : 9)
        add(l, 12, ISO_CHECK_CASE_TRAPLESS, ISO_CHECK_FILL_UNIFORM, 1 + dh % 6, 66, dh, 0, 0, 0, 1,
            0);
    for (size_t nq = 0; nq <= ISO_QUERY_BLOCK; nq++)
        add(l, 12, ISO_CHECK_CASE_TRAPLESS, ISO_CHECK_FILL_UNIFORM, nq, 70, 16, nq % 2 ? 30 : 0,
            nq % 3, nq % 2, 0, 0);
    for (size_t poison = 0; poison <= 4; poison++)
        for (size_t bias = 0; bias <= 4; bias++)
            for (size_t see = 0; see < 2; see++)
                for (size_t nq = 1; nq <= 13; nq += 4) {
                    const unsigned golden = nq == 5 ? ISO_CHECK_CASE_GOLDEN : 0;
                    add(l, 6, golden, ISO_CHECK_FILL_UNIFORM, nq, 66, 16, see * 40, bias, 1, 1,
                        poison);
                    add(l, 6, 0, ISO_CHECK_FILL_UNIFORM, nq, 130, 40, see * 90, bias, 0, 0, poison);
                }
    for (unsigned fill = 0; fill < ISO_CHECK_FILL_TOP_AT; fill++)
        for (size_t nq = 1; nq <= 5; nq += 4)
            if (!iso_check_fill_may_overflow(fill) && fill != ISO_CHECK_FILL_EXPONENTS)
                add(l, 3, fill == ISO_CHECK_FILL_ONES ? trapless(fill) : 0, fill, nq, 130, 24, 0,
                    fill % 2, nq == 5, 0, 0);
    for (size_t spot = 0; spot < 15 + 2 * 5 * 66; spot++) /* q, keys and values */
        ISO_EACH_POINT_FILL(fill)
    for (size_t type = 0; type < 2; type++)
        iso_add_at(l, 60, fill, 0, spot, 3, 66, 5, spot % 2 ? 40 : 0, 0, spot % 3 == 0, 1, 0, type);
    for (size_t w = 0; w < iso_count(windows); w++)
        for (size_t nq = 1; nq <= 7; nq += 2)
            for (size_t causal = 0; causal < 2; causal++) {
                const size_t see = WINDOW * windows[w] + (causal ? 1 + 260 - nq : 0);
                add(l, 24, w % 3 == 1 ? ISO_CHECK_CASE_GOLDEN : 0, ISO_CHECK_FILL_UNIFORM, nq, 260,
                    16, see, w % 5, nq % 4 == 1, 1, (w + nq) % 5);
            }
    for (size_t nq = 1; nq <= 7; nq++)
        for (size_t kind = 1; kind <= 2; kind++)
            add(l, 4, ISO_CHECK_CASE_TRAPLESS, ISO_CHECK_FILL_UNIFORM, nq, 70, 16, nq % 2,
                DISTANCE + kind, nq % 3 == 0, 1, 0);
    for (size_t nk = 256; nk <= 1024; nk *= 2) /* heads of 64, as models have them */
        add(l, 20, ISO_CHECK_CASE_TRAPLESS, ISO_CHECK_FILL_NORMAL, nk / 256, nk, 64, 0, 0, 1, 0, 0);
    add(l, 20, ISO_CHECK_CASE_TRAPLESS, ISO_CHECK_FILL_UNIFORM, 7, 129, 512, 97, 0, 1, 0, 0);
    add(l, 3, ISO_CHECK_CASE_ALIGN, ISO_CHECK_FILL_UNIFORM, 1, 67, 20, 0, 1, 1, 1, 0);
    add(l, 3, ISO_CHECK_CASE_ALIGN, ISO_CHECK_FILL_UNIFORM, 5, 67, 20, 61, 0, 1, 1, 0);
    for (size_t nk = 0; nk <= 140; nk++)
        for (size_t type = 0; type < 2; type++)
            iso_add(l, 15, ISO_CHECK_FILL_UNIFORM, 0, 1 + nk % 17, nk, 3 + nk % 40,
                    (nk % 2 ? 1 + nk / 2 : 0) + (nk % 5 ? 0 : WINDOW * (1 + nk / 3)), nk % 4,
                    nk % 3 == 0, nk % 2, nk % 7 < 5 ? nk % 7 : 0, type, 1 + nk % 3);
}

static void random_case(struct iso_check_case *c, struct iso_check_random *r) {
    static const unsigned fills[] = {ISO_CHECK_FILL_UNIFORM, ISO_CHECK_FILL_NORMAL,
                                     ISO_CHECK_FILL_ZERO,    ISO_CHECK_FILL_EQUAL,
                                     ISO_CHECK_FILL_INTEGER, ISO_CHECK_FILL_NAN_AT,
                                     ISO_CHECK_FILL_INF_AT,  ISO_CHECK_FILL_LADDER};
    size_t *p = c->p;
    p[A_NQ] = iso_check_random_log(r, ISO_QUERY_BLOCK);
    p[A_NK] = iso_check_random_log(r, 400);
    p[A_DH] = 1 + iso_check_random_log(r, 140);
    while (p[A_NQ] * p[A_NK] * p[A_DH] > 1 << 16)
        p[iso_check_random_below(r, 2) ? A_NQ : A_NK] /= 2;
    p[A_SEE] = iso_check_random_below(r, 2) ? 1 + iso_check_random_below(r, p[A_NK] + 3) : 0;
    if (iso_check_random_below(r, 4) == 0)
        p[A_SEE] += WINDOW * (1 + iso_check_random_log(r, p[A_NK] + 1));
    p[A_BIAS] = iso_check_random_below(r, 5);
    if (iso_check_random_below(r, 3) == 0)
        p[A_BIAS] = DISTANCE + 1 + iso_check_random_below(r, 2);
    p[A_WEIGHTS] = iso_check_random_below(r, 2);
    p[A_GAP] = iso_check_random_gap(r);
    p[A_POISON] = iso_check_random_below(r, 2) ? 0 : iso_check_random_below(r, 5);
    p[A_TYPE] = iso_check_random_below(r, 2);
    p[A_CAP] = iso_check_random_below(r, 4) ? 0 : 1 + iso_check_random_below(r, 3);
    c->fill =
        p[A_POISON] ? ISO_CHECK_FILL_UNIFORM : fills[iso_check_random_below(r, iso_count(fills))];
    const bool plain = c->fill == ISO_CHECK_FILL_UNIFORM || c->fill == ISO_CHECK_FILL_NORMAL;
    c->flags = plain && !p[A_POISON] && p[A_BIAS] % DISTANCE < 3 ? ISO_CHECK_CASE_TRAPLESS : 0;
}

const struct iso_check_suite iso_kernel_suite_attention_w16 = {
    .name = "attention_w16",
    .params = "nq nk dh see bias weights gap poison type cap",
    .cases = cases,
    .setup = setup,
    .call = call,
    .reference = reference,
    .group = group,
    .flops = flops,
    .bytes = bytes,
    .random = random_case};
