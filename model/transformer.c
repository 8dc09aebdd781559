/* SPDX-License-Identifier: MIT
 *
 * The encoder and the decoder. The decoder exists twice: over whole targets (scoring, logits of a
 * given target) or, without an encoder, parts of them, and one position at a time through caches of
 * keys and values (cache.c). All give the same bits, because every op gives a row the same bits
 * whatever rows are around it, and because keys and values that caches hold in 16 bits are rounded
 * over whole targets, too. The keys and values of a sentence are computed once, and its beams are
 * query rows of one attention call.
 */
#include "transformer.h"

#include <string.h>

iso_status model_check_ids(const uint32_t *ids, size_t length, size_t V, size_t limit,
                           const char *what, size_t sequence, iso_error *error) {
    if (length > limit)
        return model_fail(error, ISOBIT_E_LIMIT,
                          "%s %zu has %zu tokens; the model has %zu positions", what, sequence,
                          length, limit);
    for (size_t i = 0; i < length; i++)
        if (ids[i] >= V)
            return model_fail(error, ISOBIT_E_RANGE,
                              "%s %zu, position %zu: token id %u; the vocabulary has %zu tokens",
                              what, sequence, i, ids[i], V);
    return ISOBIT_OK;
}

iso_status model_needs(const model_stack *stack, const char *name, iso_error *error) {
    return stack->layers ? ISOBIT_OK
                         : model_fail(error, ISOBIT_E_UNSUPPORTED, "the model has no %s", name);
}

/* --------------------------------------------------------------------------------- encoder */

/* `p`, and then on into layer l, or after the last one out of the stack. */
static model_positionwise into(model_positionwise p, const model_stack *stack, size_t l) {
    if (l < stack->layers) {
        p.next = &stack->layer[l].self_qkv;
        p.next_norm = &stack->layer[l].self_norm;
        p.heads = stack->layer[l].q_norm ? &stack->layer[l] : NULL;
        p.rope = stack->layer[l].rope;
        p.rotate = p.rope ? stack : NULL;
    } else {
        p.last = &stack->final_norm;
    }
    return p;
}

/* What precedes the first attention of a stack: [rows] -> x [rows][d] -> q | k | v [rows][3d] */
static iso_status begin_stack(model_run *run, const model_stack *stack, const uint32_t *ids,
                              const uint32_t *positions, size_t rows) {
    const model_positionwise p = {.embed = stack, .ids = ids, .positions = positions};
    const model_positionwise all = into(p, stack, 0);
    return model_between(run, &all, rows);
}

/* What follows the last attention of layer l: its output, FFN, and q | k | v of the next layer. */
static iso_status end_layer(model_run *run, const model_stack *stack, size_t l,
                            const model_linear *out, const model_norm *norm,
                            const uint32_t *positions, size_t rows) {
    const model_layer *layer = &stack->layer[l];
    const model_positionwise p = {.positions = positions,
                                  .out = out,
                                  .out_norm = norm,
                                  .out_after = layer->self_after.gamma ? &layer->self_after : NULL,
                                  .feed_forward = layer};
    const model_positionwise all = into(p, stack, l + 1);
    return model_between(run, &all, rows);
}

/* What lies between the attentions of a decoder layer: -> x [rows][d] -> q [rows][d] */
static iso_status self_to_cross(model_run *run, const model_layer *layer, size_t rows) {
    const model_positionwise p = {.out = &layer->self_out,
                                  .out_norm = &layer->self_norm,
                                  .next = &layer->cross_q,
                                  .next_norm = &layer->cross_norm};
    return model_between(run, &p, rows);
}

static size_t longest(const model_span *spans, size_t count) {
    size_t most = 0;
    for (size_t i = 0; i < count; i++)
        most = spans[i].S > most ? spans[i].S : most;
    return most;
}

iso_status model_encode(model_run *run, const uint32_t *ids, const uint32_t *positions,
                        const model_span *spans, size_t count, size_t rows) {
    const model_stack *stack = &run->model->encoder;
    const size_t inner = stack->H * stack->dh;
    const float *qkv = run->wide;
    model_bias bias;
    iso_status status = model_run_linear_workspace(run, rows);
    if (!status)
        status = model_bias_make(&bias, run, stack, longest(spans, count), 0);
    model_show(run, ISOBIT_ATTENTION_ENCODER, run->shown ? run->shown->first : 0);
    if (!status)
        status = model_attend_workspace(run, stack, stack->H, 3 * inner, 3 * inner, spans, count, 0,
                                        &bias);
    if (!status)
        status = begin_stack(run, stack, ids, positions, rows);
    for (size_t l = 0; l < stack->layers && !status; l++) {
        const model_layer *layer = &stack->layer[l];
        model_bias_set(&bias, stack, layer);
        model_show(run, ISOBIT_ATTENTION_ENCODER, l);
        status =
            model_attend_spans(run, stack, stack->H, qkv, 3 * inner, qkv + inner, qkv + 2 * inner,
                               3 * inner, spans, count, 0, layer->window, &bias);
        if (!status)
            status = end_layer(run, stack, l, &layer->self_out, &layer->self_norm, positions, rows);
    }
    return status;
}

/* ------------------------------------------------------------------- decoder, whole targets */

/* Keys and values, [rows][ld], become what a cache would hold of them. */
static iso_status as_cached(model_run *run, float *kv, size_t ld, size_t rows, size_t n) {
    iso_w16 type;
    iso_status status = ISOBIT_OK;
    if (model_cache_type(run->model, &type))
        status = iso_round_w16(kv, ld, kv, ld, rows, n, type, &run->context);
    model_lap(run, ISOBIT_PROFILE_CACHE);
    return model_run_fail(run, status, "keys and values of 16 bits");
}

/* Attention to what the caches hold, in either form. */
static iso_status attend_bytes(size_t *bytes, const model_cache *c,
                               const iso_attention_shape *shape,
                               const iso_attention_options *options, const iso_context *context) {
    return c->w16 ? iso_attention_w16_workspace_bytes(bytes, shape, options, context)
                  : iso_attention_f32_workspace_bytes(bytes, shape, options, context);
}
static iso_status attend(model_run *run, const model_cache *c, float *o, const float *q,
                         const void *k, const void *v, const iso_attention_shape *shape,
                         const iso_attention_options *options) {
    return c->w16 ? iso_attention_w16(o, q, k, v, c->type, shape, options, &run->context)
                  : iso_attention_f32(o, q, k, v, shape, options, &run->context);
}

/* Attention of a part of a sequence to all that precedes it, in the cache. */
static iso_attention_shape part_shape(const model_cache *c, const model_run *run,
                                      const model_span *span) {
    const model_stack *stack = &run->model->decoder;
    const size_t dh = stack->dh, group = stack->H / stack->Hk, ldo = run->model->columns;
    return (iso_attention_shape){.B = stack->Hk,
                                 .H = group, /* the heads that share keys */
                                 .Sq = span->T,
                                 .Sk = span->S,
                                 .dh = dh,
                                 .q = {group * dh, dh, stack->qkv},
                                 .k = {c->panels_t, 0, 0},
                                 .v = {c->T * c->row, 0, c->row},
                                 .o = {group * dh, dh, ldo}};
}
static iso_attention_options part_options(const model_stack *stack, const model_span *span,
                                          size_t window) {
    return (iso_attention_options){.size = sizeof(iso_attention_options),
                                   .scale = stack->scale,
                                   .softcap = stack->softcap,
                                   .causal = 1,
                                   .past = span->S - span->T,
                                   .key_panels = 1,
                                   .window = window};
}

/* How many spans from the first one on are whole sequences. */
static size_t whole_spans(const model_span *spans, size_t count) {
    size_t n = 0;
    while (n < count && spans[n].S == spans[n].T)
        n++;
    return n;
}

static iso_status self_workspace(model_run *run, const model_decoder_batch *b,
                                 const model_cache *cache, const model_bias *bias) {
    const model_stack *stack = &run->model->decoder;
    const size_t ld = stack->qkv;
    iso_status status = ISOBIT_OK;
    for (size_t i = 0, n; i < b->count && !status; i += n ? n : 1) {
        if ((n = whole_spans(b->self + i, b->count - i))) {
            status = model_attend_workspace(run, stack, stack->Hk, ld, ld, b->self + i, n, 1, bias);
            continue;
        }
        const iso_attention_shape shape = part_shape(cache, run, &b->self[i]);
        const iso_attention_options options = part_options(stack, &b->self[i], 0);
        size_t bytes;
        status = attend_bytes(&bytes, cache, &shape, &options, &run->context);
        status =
            status ? model_run_fail(run, status, "workspace") : model_run_workspace(run, bytes);
    }
    return status;
}

/* Masked self-attention: position t sees 0 .. t. */
static iso_status attend_self(model_run *run, const model_decoder_batch *b,
                              const model_cache *cache, const size_t *places, size_t l,
                              const model_bias *bias) {
    const model_stack *stack = &run->model->decoder;
    const size_t dh = stack->dh, inner = stack->H * dh, ld = stack->qkv, Hk = stack->Hk;
    const size_t window = stack->layer[l].window;
    float *const qkv = run->wide;
    iso_status status = ISOBIT_OK;
    for (size_t i = 0, n; i < b->count && !status; i += n ? n : 1) {
        const model_span *span = &b->self[i];
        if ((n = whole_spans(span, b->count - i))) {
            status = model_attend_spans(run, stack, Hk, qkv, ld, qkv + inner, qkv + ld - Hk * dh,
                                        ld, span, n, 1, window, bias);
            continue;
        }
        const iso_attention_shape shape = part_shape(cache, run, span);
        const iso_attention_options options = part_options(stack, span, window);
        const size_t r = places[i] * cache->beams;
        status = attend(run, cache, run->h + span->first_q * run->model->columns,
                        qkv + span->first_q * ld, model_cache_self_k(cache, Hk, l, r, 0),
                        model_cache_self_v(cache, Hk, l, r, 0), &shape, &options);
        status = model_run_fail(run, status, "attention to a cache");
        model_count(run, span->T, span->S, 2 * inner);
        model_lap(run, ISOBIT_PROFILE_ATTENTION);
    }
    return status;
}

iso_status model_decode_whole(model_run *run, const model_decoder_batch *b,
                              struct model_cache *cache, const size_t *places) {
    const model_stack *stack = &run->model->decoder;
    const size_t d = run->model->config.d, inner = stack->H * stack->dh, ld = stack->qkv;
    float *const qkv = run->wide;
    const float *q = run->wide;
    model_bias bias;
    iso_status status = model_run_linear_workspace(run, b->rows);
    if (!status && b->cross)
        status = model_run_linear_workspace(run, b->memory_rows);
    if (!status)
        status = model_bias_make(&bias, run, stack, longest(b->self, b->count), 1);
    model_show(run, ISOBIT_ATTENTION_DECODER, run->shown ? run->shown->first : 0);
    if (!status)
        status = self_workspace(run, b, cache, &bias);
    model_show(run, ISOBIT_ATTENTION_CROSS, run->shown ? run->shown->first : 0);
    if (!status && b->cross)
        status = model_attend_workspace(run, stack, stack->H, inner, 2 * inner, b->cross, b->count,
                                        0, NULL);
    if (!status)
        status = begin_stack(run, stack, b->ids, b->positions, b->rows);
    for (size_t l = 0; l < stack->layers && !status; l++) {
        const model_layer *layer = &stack->layer[l];
        model_bias_set(&bias, stack, layer);
        status = as_cached(run, qkv + inner, ld, b->rows, ld - inner);
        if (cache && !status)
            status = model_cache_prompt(cache, places, run, b->self, b->count, l);
        model_show(run, ISOBIT_ATTENTION_DECODER, l);
        if (!status)
            status = attend_self(run, b, cache, places, l, &bias);
        if (!status && !b->cross) {
            status = end_layer(run, stack, l, &layer->self_out, &layer->self_norm, b->positions,
                               b->rows);
            continue;
        }
        model_show(run, ISOBIT_ATTENTION_CROSS, l);
        if (status || (status = self_to_cross(run, layer, b->rows)) ||
            /* attention over the encoder: q [rows][H dh], k | v [memory_rows][2 H dh] */
            (status = model_project(run, b->kv, 2 * inner, b->memory, d, &layer->cross_kv,
                                    b->memory_rows, ISOBIT_ACT_NONE, NULL)) ||
            (status = as_cached(run, b->kv, 2 * inner, b->memory_rows, 2 * inner)) ||
            (status = model_attend_spans(run, stack, stack->H, q, inner, b->kv, b->kv + inner,
                                         2 * inner, b->cross, b->count, 0, 0, NULL)))
            break;
        status =
            end_layer(run, stack, l, &layer->cross_out, &layer->cross_norm, b->positions, b->rows);
    }
    return status;
}

iso_status model_decode_part(model_cache *cache, model_run *run, uint32_t *ids, uint32_t *positions,
                             size_t first, size_t count) {
    const size_t place = 0;
    model_span span = {0, count, 0, first + count};
    const model_decoder_batch part = {
        .ids = ids + first, .positions = positions, .self = &span, .count = 1, .rows = count};
    for (size_t t = 0; t < count; t++)
        positions[t] = (uint32_t)(first + t + run->model->config.position_offset);
    return model_decode_whole(run, &part, cache, &place);
}

/* logits = x E^T + b: [rows][d] -> [rows][V], or cap tanh(x E^T + b); the last norm has divided x
 * by the cap. */
iso_status model_logits(model_run *run, float *logits, const float *x, size_t rows) {
    const model_linear *linear = &run->model->logits;
    const size_t V = linear->w.n;
    const float cap = (float)run->model->config.logits_cap;
    iso_status status = model_project(run, logits, V, x, run->model->config.d, linear, rows,
                                      cap > 0 ? ISOBIT_ACT_TANH : ISOBIT_ACT_NONE, NULL);
    if (status || !(cap > 0))
        return status;
    status = iso_axpby_f32(logits, V, logits, V, rows, V, cap, 0, &run->context);
    model_lap(run, ISOBIT_PROFILE_LOGITS);
    return model_run_fail(run, status, "cap of the logits");
}

/* ------------------------------------------------------------------- decoder, step by step */

/* The two attention calls of a step, for layer l; `past` keys precede the position. */
static iso_attention_shape self_shape(const model_cache *c, const model_run *run, size_t rows,
                                      size_t past) {
    const model_stack *stack = &run->model->decoder;
    const size_t Hk = stack->Hk, dh = stack->dh, group = stack->H / Hk;
    const size_t ldo = run->model->columns;
    return (iso_attention_shape){.B = rows,
                                 .H = Hk,
                                 .Sq = group, /* the heads that share keys */
                                 .Sk = past + 1,
                                 .dh = dh,
                                 .q = {stack->qkv, group * dh, dh},
                                 .k = {Hk * c->panels_t, c->panels_t, 0},
                                 .v = {Hk * c->T * c->row, c->T * c->row, c->row},
                                 .o = {ldo, group * dh, dh}};
}
static iso_attention_shape cross_shape(const model_cache *c, const model_run *run,
                                       size_t sentences) {
    const size_t H = run->model->decoder.H, dh = run->model->decoder.dh, inner = H * dh;
    const size_t ldo = run->model->columns;
    return (iso_attention_shape){.B = sentences,
                                 .H = H,
                                 .Sq = c->beams,
                                 .Sk = c->S,
                                 .dh = dh,
                                 .q = {c->beams * inner, dh, inner},
                                 .k = {H * c->panels_s, c->panels_s, 0},
                                 .v = {H * c->S * c->row, c->S * c->row, c->row},
                                 .o = {c->beams * ldo, dh, ldo}};
}
static iso_attention_options self_options(const model_cache *c, const model_stack *stack, size_t l,
                                          size_t past) {
    iso_attention_options o = {.size = sizeof(iso_attention_options),
                               .scale = stack->scale,
                               .softcap = stack->softcap,
                               .causal = stack->Hk == stack->H,
                               .past = past,
                               .key_panels = 1,
                               .window = stack->layer[l].window};
    if (!o.causal)
        o.past = 0;
    if (c->bias) {
        o.bias = c->bias + l % c->biases * stack->H * c->T + (c->T - 1 - past);
        o.bias_strides = (iso_strides){0, c->T, c->T};
    }
    return o;
}
static iso_attention_options cross_options(const model_cache *c, const model_stack *stack,
                                           float *weights) {
    const size_t head = c->beams * c->S;
    return (iso_attention_options){.size = sizeof(iso_attention_options),
                                   .scale = stack->scale,
                                   .softcap = stack->softcap,
                                   .key_lengths = c->source_lengths,
                                   .weights = weights,
                                   .weights_strides = {stack->H * head, head, c->S},
                                   .key_panels = 1};
}

iso_status model_cache_workspace(const model_cache *c, model_run *run, float *weights) {
    const model_stack *stack = &run->model->decoder;
    iso_status status = ISOBIT_OK;
    /* Every number of sentences that may be left, with few and with all keys. */
    for (size_t i = 2; i < 2 * (c->sentences + 1) && !status; i++) {
        const size_t past = i & 1 ? c->T - 1 : 0, sentences = i / 2;
        iso_attention_shape self = self_shape(c, run, sentences * c->beams, past);
        iso_attention_shape cross = cross_shape(c, run, sentences);
        iso_attention_options self_o = self_options(c, stack, 0, past);
        iso_attention_options cross_o = cross_options(c, stack, weights);
        size_t bytes = 0;
        if (!(status = model_run_linear_workspace(run, sentences * c->beams)) &&
            !(status = attend_bytes(&bytes, c, &self, &self_o, &run->context)) &&
            !(status = model_run_workspace(run, bytes)) && c->S &&
            !(status = attend_bytes(&bytes, c, &cross, &cross_o, &run->context)))
            status = model_run_workspace(run, bytes);
    }
    return model_run_fail(run, status, "workspace");
}

/* Of rows of different lengths each has its own part of the bias: that of its distances. */
static void set_row_bias(const model_cache *cache, const model_stack *stack, size_t rows, size_t l,
                         iso_attention_options *o) {
    const size_t H = stack->H, T = cache->T;
    const float *bias = cache->bias + l % cache->biases * H * T;
    if (l < cache->biases)
        for (size_t i = 0; i < rows * H; i++) {
            const size_t keys = cache->key_lengths[i / H];
            memcpy(cache->row_bias + i * T, bias + (i % H + 1) * T - keys, keys * sizeof *bias);
        }
    o->bias = cache->row_bias;
    o->bias_strides = (iso_strides){H * T, T, T};
}

iso_status model_decode_step(model_cache *cache, model_run *run, const uint32_t *ids,
                             uint32_t *positions, size_t sentences, float *weights) {
    const model_stack *stack = &run->model->decoder;
    const size_t H = stack->H, dh = stack->dh, inner = H * dh;
    const size_t rows = sentences * cache->beams;
    const size_t weights_layer = cache->sentences * H * cache->beams * cache->S;
    float *qkv = run->wide, *q = run->wide;
    size_t most = 0; /* keys before the position */
    for (size_t b = 0; b < sentences; b++)
        most = cache->lengths[b] > most ? cache->lengths[b] : most;
    const iso_attention_shape self = self_shape(cache, run, rows, most);
    const iso_attention_shape cross = cross_shape(cache, run, sentences);
    const size_t *key_lengths = NULL;
    size_t keys = 0; /* of all rows */
    for (size_t r = 0; r < rows; r++) {
        const size_t past = cache->lengths[r / cache->beams];
        positions[r] = (uint32_t)(past + run->model->config.position_offset);
        keys += cache->key_lengths[r] = past + 1;
        if (past < most)
            key_lengths = cache->key_lengths;
    }
    iso_status status = begin_stack(run, stack, ids, positions, rows);
    for (size_t l = 0; l < stack->layers && !status; l++) {
        const model_layer *layer = &stack->layer[l];
        iso_attention_options self_o = self_options(cache, stack, l, most);
        self_o.key_lengths = key_lengths;
        if (key_lengths && cache->bias)
            set_row_bias(cache, stack, rows, l, &self_o);
        const iso_attention_options cross_o =
            cross_options(cache, stack, weights ? weights + l * weights_layer : NULL);
        /* Masked self-attention: the new keys and values join the caches. */
        status = model_cache_append(cache, run, l, rows);
        model_lap(run, ISOBIT_PROFILE_CACHE);
        if (!status)
            status = attend(run, cache, run->h, qkv, model_cache_self_k(cache, stack->Hk, l, 0, 0),
                            model_cache_self_v(cache, stack->Hk, l, 0, 0), &self, &self_o);
        model_count(run, 1, keys, 2 * inner);
        model_lap(run, ISOBIT_PROFILE_ATTENTION);
        if (status) {
            model_run_fail(run, status, "self-attention");
            break;
        }
        if (!cache->S) {
            status = end_layer(run, stack, l, &layer->self_out, &layer->self_norm, positions, rows);
            continue;
        }
        if ((status = self_to_cross(run, layer, rows)))
            break;
        /* Attention over the encoder: the beams of a sentence are its query rows. */
        status = attend(run, cache, run->h, q, model_cache_cross_k(cache, H, l, 0, 0),
                        model_cache_cross_v(cache, H, l, 0, 0), &cross, &cross_o);
        for (size_t b = 0; b < sentences; b++)
            model_count(run, cache->beams, cache->source_lengths[b], 2 * inner);
        model_lap(run, ISOBIT_PROFILE_ATTENTION);
        if (status) {
            model_run_fail(run, status, "attention over the encoder");
            break;
        }
        status = end_layer(run, stack, l, &layer->cross_out, &layer->cross_norm, positions, rows);
    }
    for (size_t b = 0; b < sentences && !status; b++)
        cache->lengths[b]++;
    return status;
}
