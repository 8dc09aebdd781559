/* SPDX-License-Identifier: MIT
 *
 * Attention.
 */
#include "test_ops.h"

void attention_make(struct attention_data *d, const struct attention_case *c) {
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
                                         .window = c->window,
                                         .softcap = c->softcap};
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

iso_status attention_call(const struct attention_data *d, const iso_context *context) {
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
                    .softcap = (double)d->options.softcap,
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

const struct attention_case attention_cases[] = {
    {1, 1, 1, 1, 8, 0, 0, 0, 0, 1, 0, 0},       {2, 3, 5, 7, 16, 0, 0, 0, 0, 1, 0, 0},
    {2, 2, 63, 64, 32, 1, 0, 0, 0, 0, 0, 0},    {1, 2, 64, 65, 64, 1, 1, 0, 1, 1, 0, 0},
    {1, 2, 65, 127, 48, 1, 62, 0, 2, 0, 0, 0},  {3, 2, 129, 129, 16, 1, 0, 1, 0, 1, 0, 0},
    {3, 2, 20, 130, 80, 0, 0, 1, 3, 1, 0, 0},   {2, 1, 1, 200, 64, 1, 199, 0, 0, 1, 0, 0},
    {4, 1, 3, 66, 128, 1, 63, 1, 0, 0, 0, 0},   {1, 1, 130, 1, 1, 0, 0, 0, 0, 0, 0, 0},
    {1, 3, 66, 70, 96, 1, 2, 0, 3, 0, 0, 0},    {1, 1, 3, 5, 512, 0, 0, 0, 0, 0, 0, 0},
    {2, 1, 4, 0, 8, 0, 0, 0, 0, 0, 0, 0},       {2, 2, 17, 65, 17, 1, 100, 1, 1, 1, 0, 0},
    {2, 3, 514, 530, 20, 1, 9, 1, 0, 0, 0, 0},  {1, 2, 520, 257, 512, 1, 3, 0, 0, 0, 0, 0},
    {2, 3, 1, 150, 20, 0, 0, 1, 1, 1, 0, 0},    {3, 4, 1, 77, 64, 1, 40, 0, 0, 0, 0, 0},
    {1, 40, 1, 20, 4, 0, 0, 0, 1, 1, 0, 0},     {2, 5, 1, 830, 64, 0, 0, 0, 3, 1, 0, 0},
    {4, 8, 1, 70, 64, 1, 69, 1, 0, 0, 0, 0},    {4, 8, 3, 70, 64, 0, 0, 1, 1, 1, 0, 0},
    {2, 2, 150, 150, 16, 1, 0, 0, 0, 0, 37, 0}, {1, 2, 130, 200, 20, 1, 70, 0, 0, 1, 64, 0},
    {3, 2, 5, 200, 8, 0, 0, 1, 0, 1, 20, 0},    {2, 3, 1, 300, 20, 1, 299, 0, 1, 1, 65, 0},
    {2, 4, 1, 300, 20, 0, 0, 1, 0, 0, 100, 0},  {1, 2, 514, 600, 16, 1, 86, 0, 0, 0, 200, 0},
    {1, 2, 40, 90, 16, 1, 50, 0, 2, 1, 1, 0},   {2, 3, 65, 130, 16, 0, 0, 1, 4, 0, 0, 0},
    {2, 2, 70, 70, 24, 1, 0, 0, 4, 0, 0, 0},    {2, 3, 66, 129, 16, 1, 63, 1, 1, 0, 0, 0},
    {1, 3, 3, 77, 20, 1, 74, 0, 4, 1, 0, 0},    {2, 5, 1, 90, 16, 1, 89, 0, 4, 1, 0, 0},
    {1, 1, 300, 280, 300, 1, 9, 0, 4, 0, 0, 0}, {2, 3, 65, 130, 16, 1, 65, 1, 4, 0, 40, 0},
    {1, 2, 70, 150, 24, 1, 80, 0, 1, 0, 33, 0}, {2, 2, 70, 130, 24, 1, 60, 0, 1, 1, 0, 1.5f},
    {2, 3, 1, 150, 20, 0, 0, 1, 0, 0, 0, 50},   {1, 2, 514, 600, 16, 1, 86, 0, 0, 0, 200, 0.7f},
    {2, 4, 3, 70, 64, 0, 0, 1, 4, 1, 0, 2},     {2, 5, 1, 90, 16, 1, 89, 0, 4, 1, 40, 30},
    {1, 3, 66, 70, 96, 1, 2, 0, 3, 0, 0, 0.2f}};
const size_t attention_case_count = sizeof attention_cases / sizeof *attention_cases;

/* The keys of d as panels, one head after the other. */
float *make_panels(struct attention_data *d, const iso_context *context) {
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

void attention_is_right_and_the_same_every_way(void **state) {
    (void)state;
    for (size_t i = 0; i < attention_case_count; i++) {
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
void attention_does_not_see_the_batch(void **state) {
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
void attention_takes_views_of_one_buffer(void **state) {
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
void attention_by_steps_equals_the_whole(void **state) {
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
void attention_window_is_a_bias(void **state) {
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

/* A soft cap has the bits of the written steps: one query and key whose value is the score. */
void attention_softcap_is_as_written(void **state) {
    (void)state;
    enum { N = 200 };
    float *q = random_floats(N), *score = floats(N), *o = floats(N), *weights = floats(2 * N);
    const float one[2] = {1, 0}, v[2] = {1, 0}, cap = 3.3f, scale = 7;
    const iso_attention_shape s = {N, 1, 1, 2, 1, {1, 1, 1}, {0, 0, 1}, {0, 0, 1}, {1, 1, 1}};
    iso_attention_options p = {.size = sizeof p, .scale = scale, .softcap = cap};
    /* score = cap tanh((scale / cap) q), from the public operations */
    const iso_eltwise_options tanhs = {.size = sizeof tanhs, .act = ISOBIT_ACT_TANH};
    assert_ok(iso_axpby_f32(score, N, q, N, 1, N, scale / cap, 0, NULL));
    assert_ok(iso_eltwise_f32(score, N, score, N, 1, N, &tanhs, NULL));
    assert_ok(iso_axpby_f32(score, N, score, N, 1, N, cap, 0, NULL));
    p.weights = weights, p.weights_strides = (iso_strides){2, 2, 2};
    for (size_t w = 0; w < isa_ways; w++) {
        assert_ok(iso_attention_f32(o, q, one, v, &s, &p, &ways[w].context));
        const iso_attention_options plain = {.size = sizeof plain, .scale = 1};
        float *expect = floats(N);
        assert_ok(iso_attention_f32(expect, score, one, v, &s, &plain, &ways[w].context));
        assert_same("softcap", o, N, expect, N, 1, N);
    }
}
