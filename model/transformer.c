/* SPDX-License-Identifier: MIT
 *
 * The encoder and the decoder. The decoder exists twice: over whole targets (scoring, logits of a
 * given target), and one position at a time through caches of keys and values. Both give the same
 * bits, because every op gives a row the same bits whatever rows are around it. Caches hold keys
 * in panels (see iso_key_panels_append), values row-major, each head's for itself; the keys and
 * values of a sentence are computed once, and its beams are query rows of one attention call.
 */
#include "transformer.h"

#include <stdatomic.h>
#include <string.h>

#define SMALL_APPEND ((size_t)1 << 11) /* so many floats of keys join the caches on one thread */

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
        p.rotate = stack->rope ? stack : NULL;
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
    const model_positionwise p = {
        .positions = positions, .out = out, .out_norm = norm, .feed_forward = &stack->layer[l]};
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

static void keep_prompt(const model_cache *cache, const size_t *places, model_run *run,
                        const model_span *spans, size_t count, size_t l, iso_status *status);

iso_status model_decode_whole(model_run *run, const model_decoder_batch *b,
                              struct model_cache *cache, const size_t *places) {
    const model_stack *stack = &run->model->decoder;
    const size_t d = run->model->config.d, inner = stack->H * stack->dh, ld = stack->qkv;
    const float *qkv = run->wide, *q = run->wide;
    model_bias bias;
    iso_status status = model_run_linear_workspace(run, b->rows);
    if (!status && b->cross)
        status = model_run_linear_workspace(run, b->memory_rows);
    if (!status)
        status = model_bias_make(&bias, run, stack, longest(b->self, b->count), 1);
    model_show(run, ISOBIT_ATTENTION_DECODER, run->shown ? run->shown->first : 0);
    if (!status)
        status = model_attend_workspace(run, stack, stack->Hk, ld, ld, b->self, b->count, 1, &bias);
    model_show(run, ISOBIT_ATTENTION_CROSS, run->shown ? run->shown->first : 0);
    if (!status && b->cross)
        status = model_attend_workspace(run, stack, stack->H, inner, 2 * inner, b->cross, b->count,
                                        0, NULL);
    if (!status)
        status = begin_stack(run, stack, b->ids, b->positions, b->rows);
    for (size_t l = 0; l < stack->layers && !status; l++) {
        const model_layer *layer = &stack->layer[l];
        model_bias_set(&bias, stack, layer);
        if (cache)
            keep_prompt(cache, places, run, b->self, b->count, l, &status);
        model_show(run, ISOBIT_ATTENTION_DECODER, l);
        /* masked self-attention: position t sees 0 .. t */
        if (!status)
            status = model_attend_spans(run, stack, stack->Hk, qkv, ld, qkv + inner,
                                        qkv + ld - stack->Hk * stack->dh, ld, b->self, b->count, 1,
                                        layer->window, &bias);
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
            (status = model_attend_spans(run, stack, stack->H, q, inner, b->kv, b->kv + inner,
                                         2 * inner, b->cross, b->count, 0, 0, NULL)))
            break;
        status =
            end_layer(run, stack, l, &layer->cross_out, &layer->cross_norm, b->positions, b->rows);
    }
    return status;
}

/* logits = x E^T + b: [rows][d] -> [rows][V] */
iso_status model_logits(model_run *run, float *logits, const float *x, size_t rows) {
    const model_linear *linear = &run->model->logits;
    return model_project(run, logits, linear->w.n, x, run->model->config.d, linear, rows,
                         ISOBIT_ACT_NONE, NULL);
}

/* ------------------------------------------------------------------- decoder, step by step */

static int cache_floats(const iso_model *model, size_t beams, size_t T, size_t S, size_t *self_k,
                        size_t *self_v, size_t *cross_k, size_t *cross_v) {
    const size_t H = model->decoder.H, dh = model->decoder.dh, inner = H * dh;
    const size_t Hk = model->decoder.Hk;
    size_t heads, panels_t = iso_key_panels_floats(T, dh), panels_s = iso_key_panels_floats(S, dh);
    return panels_t && (panels_s || !S) && !__builtin_mul_overflow(beams, Hk, &heads) &&
           !__builtin_mul_overflow(heads, panels_t, self_k) &&
           !__builtin_mul_overflow(T, Hk * dh, self_v) &&
           !__builtin_mul_overflow(beams, *self_v, self_v) &&
           !__builtin_mul_overflow(H, panels_s, cross_k) &&
           !__builtin_mul_overflow(S, inner, cross_v);
}

size_t model_cache_bytes(const iso_model *model, size_t beams, size_t T, size_t S) {
    size_t part[4], total = 0;
    if (!cache_floats(model, beams, T, S, &part[0], &part[1], &part[2], &part[3]))
        return 0;
    for (int i = 0; i < 4; i++)
        if (__builtin_add_overflow(total, part[i], &total))
            return 0;
    if (__builtin_mul_overflow(total, model->decoder.layers, &total) ||
        __builtin_mul_overflow(total, sizeof(float), &total))
        return 0;
    return total;
}

/* The bias of self-attention of all steps, and room for that of rows of different lengths. */
static iso_status make_cache_bias(model_cache *cache, model_run *run) {
    const model_stack *stack = &run->model->decoder;
    if (!stack->layer[0].relative)
        return ISOBIT_OK;
    cache->biases = run->model->config.relative_in_each ? stack->layers : 1;
    cache->bias = model_alloc3(&run->arena, cache->biases, stack->H, cache->T, sizeof(float));
    if (!cache->bias)
        return model_fail(run->error, ISOBIT_E_NOMEM, "out of memory for a bias of distances");
    for (size_t i = 0; i < cache->biases; i++)
        model_bias_before(cache->bias + i * stack->H * cache->T, stack, &stack->layer[i], cache->T);
    cache->row_bias = model_alloc3(&run->arena, cache->sentences * cache->beams, stack->H, cache->T,
                                   sizeof(float));
    if (!cache->row_bias)
        return model_fail(run->error, ISOBIT_E_NOMEM, "out of memory for a bias of distances");
    return ISOBIT_OK;
}

iso_status model_cache_make(model_cache *cache, model_run *run, size_t sentences, size_t beams,
                            size_t T, size_t S) {
    const iso_model *model = run->model;
    const size_t dh = model->decoder.dh, layers = model->decoder.layers;
    size_t self_k, self_v, cross_k, cross_v;
    *cache = (model_cache){.sentences = sentences, .beams = beams, .T = T, .S = S};
    if (!cache_floats(model, beams, T, S, &self_k, &self_v, &cross_k, &cross_v))
        return model_fail(run->error, ISOBIT_E_OVERFLOW,
                          "caches of %zu beams, %zu target and %zu source positions", beams, T, S);
    cache->panels_t = iso_key_panels_floats(T, dh);
    cache->panels_s = iso_key_panels_floats(S, dh);
    cache->source_lengths = model_alloc3(&run->arena, sentences, 2 + beams, 1, sizeof(size_t));
    if (!cache->source_lengths)
        return model_fail(run->error, ISOBIT_E_NOMEM, "out of memory");
    cache->lengths = cache->source_lengths + sentences;
    cache->key_lengths = cache->lengths + sentences;
    memset(cache->source_lengths, 0, 2 * sentences * sizeof(size_t));
    /* Few positions fill their panels; of many, a search may need only the first. */
    void *(*alloc)(model_arena *, size_t, size_t, size_t, size_t) =
        T <= 64 ? model_alloc3 : model_alloc_sparse;
    cache->self_k = alloc(&run->arena, layers, sentences, self_k, sizeof(float));
    cache->self_v = alloc(&run->arena, layers, sentences, self_v, sizeof(float));
    if (S) {
        cache->cross_k = model_alloc3(&run->arena, layers, sentences, cross_k, sizeof(float));
        cache->cross_v = model_alloc3(&run->arena, layers, sentences, cross_v, sizeof(float));
    }
    if (!cache->self_k || !cache->self_v || (S && (!cache->cross_k || !cache->cross_v)))
        return model_fail(run->error, ISOBIT_E_NOMEM,
                          "out of memory for caches of keys and values");
    return make_cache_bias(cache, run);
}

/* One head of a cache: of row r in layer l (self), or of sentence b in layer l (cross). */
static float *self_k(const model_cache *c, size_t H, size_t l, size_t r, size_t h) {
    return c->self_k + ((l * c->sentences * c->beams + r) * H + h) * c->panels_t;
}
static float *self_v(const model_cache *c, size_t H, size_t l, size_t r, size_t h, size_t dh) {
    return c->self_v + ((l * c->sentences * c->beams + r) * H + h) * c->T * dh;
}
static float *cross_k(const model_cache *c, size_t H, size_t l, size_t b, size_t h) {
    return c->cross_k + ((l * c->sentences + b) * H + h) * c->panels_s;
}
static float *cross_v(const model_cache *c, size_t H, size_t l, size_t b, size_t h, size_t dh) {
    return c->cross_v + ((l * c->sentences + b) * H + h) * c->S * dh;
}

iso_status model_cache_sources(model_cache *cache, model_run *run, size_t first,
                               const model_span *spans, size_t count, size_t rows) {
    const model_stack *stack = &run->model->decoder;
    const size_t d = run->model->config.d, H = stack->H, dh = stack->dh, inner = H * dh;
    float *kv = run->wide; /* [rows][2 H dh] */
    iso_status status = ISOBIT_OK;
    for (size_t b = 0; b < count; b++)
        cache->source_lengths[first + b] = spans[b].S;
    for (size_t l = 0; l < stack->layers && !status; l++) {
        status = model_project(run, kv, 2 * inner, run->x, d, &stack->layer[l].cross_kv, rows,
                               ISOBIT_ACT_NONE, NULL);
        for (size_t i = 0; i < count * H && !status; i++) {
            const size_t b = i / H, h = i % H, S = spans[b].S;
            const float *from = kv + spans[b].first_k * 2 * inner + h * dh;
            float *v = cross_v(cache, H, l, first + b, h, dh);
            status = iso_key_panels_append(cross_k(cache, H, l, first + b, h), 0, from, 2 * inner,
                                           S, dh, &run->context);
            for (size_t s = 0; s < S; s++)
                memcpy(v + s * dh, from + inner + s * 2 * inner, dh * sizeof(float));
        }
        model_lap(run, ISOBIT_PROFILE_CACHE);
    }
    return model_run_fail(run, status, "keys and values of the source");
}

/* The keys and values of whole prompts, in run->wide, begin the caches of layer l. */
static void keep_prompt(const model_cache *cache, const size_t *places, model_run *run,
                        const model_span *spans, size_t count, size_t l, iso_status *status) {
    const model_stack *stack = &run->model->decoder;
    const size_t Hk = stack->Hk, dh = stack->dh, inner = stack->H * dh, ld = stack->qkv;
    for (size_t i = 0; i < count * Hk && !*status; i++) {
        const size_t b = i / Hk, h = i % Hk, r = places[b] * cache->beams;
        const size_t T = spans[b].T;
        const float *k = run->wide + spans[b].first_q * ld + inner + h * dh;
        float *v = self_v(cache, Hk, l, r, h, dh);
        *status = model_run_fail(
            run, iso_key_panels_append(self_k(cache, Hk, l, r, h), 0, k, ld, T, dh, &run->context),
            "keys of a prompt");
        for (size_t t = 0; t < T; t++)
            memcpy(v + t * dh, k + Hk * dh + t * ld, dh * sizeof(float));
    }
    model_lap(run, ISOBIT_PROFILE_CACHE);
}

void model_cache_copy_beam(model_cache *cache, const iso_model *model, size_t to, size_t from) {
    const size_t H = model->decoder.Hk, dh = model->decoder.dh;
    const size_t length = cache->lengths[from / cache->beams];
    const size_t panels = iso_key_panels_floats(length, dh) * sizeof(float);
    for (size_t l = 0; l < model->decoder.layers; l++)
        for (size_t h = 0; h < H; h++) {
            memcpy(self_k(cache, H, l, to, h), self_k(cache, H, l, from, h), panels);
            memcpy(self_v(cache, H, l, to, h, dh), self_v(cache, H, l, from, h, dh),
                   length * dh * sizeof(float));
        }
}

void model_cache_copy_sentence(model_cache *cache, const iso_model *model, size_t to, size_t from) {
    const size_t H = model->decoder.H, dh = model->decoder.dh, S = cache->source_lengths[from];
    const size_t panels = iso_key_panels_floats(S, dh) * sizeof(float);
    for (size_t beam = 0; beam < cache->beams; beam++)
        model_cache_copy_beam(cache, model, to * cache->beams + beam, from * cache->beams + beam);
    cache->lengths[to] = cache->lengths[from];
    if (!cache->S)
        return;
    for (size_t l = 0; l < model->decoder.layers; l++)
        for (size_t h = 0; h < H; h++) {
            memcpy(cross_k(cache, H, l, to, h), cross_k(cache, H, l, from, h), panels);
            memcpy(cross_v(cache, H, l, to, h, dh), cross_v(cache, H, l, from, h, dh),
                   S * dh * sizeof(float));
        }
    cache->source_lengths[to] = S;
}

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
                                 .v = {Hk * c->T * dh, c->T * dh, dh},
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
                                 .v = {H * c->S * dh, c->S * dh, dh},
                                 .o = {c->beams * ldo, dh, ldo}};
}
static iso_attention_options self_options(const model_cache *c, const model_stack *stack, size_t l,
                                          size_t past) {
    iso_attention_options o = {.size = sizeof(iso_attention_options),
                               .scale = stack->scale,
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
            !(status = iso_attention_f32_workspace_bytes(&bytes, &self, &self_o, &run->context)) &&
            !(status = model_run_workspace(run, bytes)) && c->S &&
            !(status = iso_attention_f32_workspace_bytes(&bytes, &cross, &cross_o, &run->context)))
            status = model_run_workspace(run, bytes);
    }
    return model_run_fail(run, status, "workspace");
}

/* The keys and values of a step, in run->wide, join the caches of layer l. */
struct append {
    const model_cache *cache;
    const model_run *run;
    size_t l, rows, tasks;
    atomic_int status;
};

static void append_rows(void *arg, size_t task) {
    struct append *t = arg;
    const model_stack *stack = &t->run->model->decoder;
    const size_t H = stack->Hk, dh = stack->dh, ld = stack->qkv;
    const iso_context context = {.size = sizeof context, .isa = t->run->context.isa};
    const size_t end = t->rows * (task + 1) / t->tasks;
    for (size_t r = t->rows * task / t->tasks; r < end; r++) {
        const size_t past = t->cache->lengths[r / t->cache->beams];
        for (size_t h = 0; h < H; h++) {
            const float *k = t->run->wide + r * ld + stack->H * dh + h * dh;
            const iso_status status = iso_key_panels_append(self_k(t->cache, H, t->l, r, h), past,
                                                            k, ld, 1, dh, &context);
            if (status)
                atomic_store_explicit(&t->status, (int)status, memory_order_relaxed);
            memcpy(self_v(t->cache, H, t->l, r, h, dh) + past * dh, k + H * dh, dh * sizeof(float));
        }
    }
}

static iso_status append(const model_cache *cache, const model_run *run, size_t l, size_t rows) {
    const iso_executor *executor = run->context.executor;
    struct append t = {cache, run, l, rows, 1, 0};
    if (rows > 1 && run->threads > 1 && rows * run->model->config.d >= SMALL_APPEND) {
        t.tasks = run->threads < rows ? run->threads : rows;
        executor->parallel_for(executor->user, t.tasks, append_rows, &t);
    } else {
        append_rows(&t, 0);
    }
    return (iso_status)atomic_load_explicit(&t.status, memory_order_relaxed);
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
        status = append(cache, run, l, rows);
        model_lap(run, ISOBIT_PROFILE_CACHE);
        if (!status)
            status = iso_attention_f32(run->h, qkv, self_k(cache, stack->Hk, l, 0, 0),
                                       self_v(cache, stack->Hk, l, 0, 0, dh), &self, &self_o,
                                       &run->context);
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
        status = iso_attention_f32(run->h, q, cross_k(cache, H, l, 0, 0),
                                   cross_v(cache, H, l, 0, 0, dh), &cross, &cross_o, &run->context);
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
