/* SPDX-License-Identifier: MIT
 *
 * The caches of keys and values of decoding: each head's for itself, keys in panels (see
 * iso_key_panels_append), values row-major; or both in 16 bits, as iso_attention_w16 reads them,
 * rounded when they join.
 */
#include "transformer.h"

#include <stdatomic.h>
#include <string.h>

#define SMALL_APPEND ((size_t)1 << 11) /* so many floats of keys join the caches on one thread */

int model_cache_type(const iso_model *model, iso_w16 *type) {
    *type = model->cache == ISOBIT_CACHE_BF16 ? ISOBIT_BF16 : ISOBIT_F16;
    return model->cache != ISOBIT_CACHE_F32;
}

/* Elements of the keys and of the values of one head: 0 on overflow. */
static size_t head_keys(int w16, size_t count, size_t dh) {
    return w16 ? iso_keys_w16_elements(count, dh) : iso_key_panels_floats(count, dh);
}
static size_t head_row(int w16, size_t dh) { return w16 ? iso_values_w16_elements(1, dh) : dh; }

/* Elements of one layer and sentence. */
static int cache_elements(const iso_model *model, size_t beams, size_t T, size_t S, size_t *self_k,
                          size_t *self_v, size_t *cross_k, size_t *cross_v) {
    iso_w16 type;
    const int w16 = model_cache_type(model, &type);
    const size_t H = model->decoder.H, Hk = model->decoder.Hk, dh = model->decoder.dh;
    const size_t row = head_row(w16, dh), panels_t = head_keys(w16, T, dh);
    const size_t panels_s = head_keys(w16, S, dh);
    size_t heads;
    return panels_t && (panels_s || !S) && !__builtin_mul_overflow(beams, Hk, &heads) &&
           !__builtin_mul_overflow(heads, panels_t, self_k) &&
           !__builtin_mul_overflow(T, Hk * row, self_v) &&
           !__builtin_mul_overflow(beams, *self_v, self_v) &&
           !__builtin_mul_overflow(H, panels_s, cross_k) &&
           !__builtin_mul_overflow(S, H * row, cross_v);
}

static size_t element_bytes(int w16) { return w16 ? sizeof(uint16_t) : sizeof(float); }

size_t model_cache_bytes(const iso_model *model, size_t beams, size_t T, size_t S) {
    size_t part[4], total = 0;
    iso_w16 type;
    if (!cache_elements(model, beams, T, S, &part[0], &part[1], &part[2], &part[3]))
        return 0;
    for (int i = 0; i < 4; i++)
        if (__builtin_add_overflow(total, part[i], &total))
            return 0;
    if (__builtin_mul_overflow(total, model->decoder.layers, &total) ||
        __builtin_mul_overflow(total, element_bytes(model_cache_type(model, &type)), &total))
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
    cache->w16 = model_cache_type(model, &cache->type);
    cache->element = element_bytes(cache->w16);
    cache->row = head_row(cache->w16, dh);
    if (!cache_elements(model, beams, T, S, &self_k, &self_v, &cross_k, &cross_v))
        return model_fail(run->error, ISOBIT_E_OVERFLOW,
                          "caches of %zu beams, %zu target and %zu source positions", beams, T, S);
    cache->panels_t = head_keys(cache->w16, T, dh);
    cache->panels_s = head_keys(cache->w16, S, dh);
    cache->source_lengths = model_alloc3(&run->arena, sentences, 2 + beams, 1, sizeof(size_t));
    if (!cache->source_lengths)
        return model_fail(run->error, ISOBIT_E_NOMEM, "out of memory");
    cache->lengths = cache->source_lengths + sentences;
    cache->key_lengths = cache->lengths + sentences;
    memset(cache->source_lengths, 0, 2 * sentences * sizeof(size_t));
    /* Few positions fill their panels; of many, a search may need only the first. */
    void *(*alloc)(model_arena *, size_t, size_t, size_t, size_t) =
        T <= 64 ? model_alloc3 : model_alloc_sparse;
    cache->self_k = alloc(&run->arena, layers, sentences, self_k, cache->element);
    cache->self_v = alloc(&run->arena, layers, sentences, self_v, cache->element);
    if (S) {
        cache->cross_k = model_alloc3(&run->arena, layers, sentences, cross_k, cache->element);
        cache->cross_v = model_alloc3(&run->arena, layers, sentences, cross_v, cache->element);
    }
    if (!cache->self_k || !cache->self_v || (S && (!cache->cross_k || !cache->cross_v)))
        return model_fail(run->error, ISOBIT_E_NOMEM,
                          "out of memory for caches of keys and values");
    return make_cache_bias(cache, run);
}

void *model_cache_self_k(const model_cache *c, size_t H, size_t l, size_t r, size_t h) {
    return c->self_k + ((l * c->sentences * c->beams + r) * H + h) * c->panels_t * c->element;
}
void *model_cache_self_v(const model_cache *c, size_t H, size_t l, size_t r, size_t h) {
    return c->self_v + ((l * c->sentences * c->beams + r) * H + h) * c->T * c->row * c->element;
}
void *model_cache_cross_k(const model_cache *c, size_t H, size_t l, size_t b, size_t h) {
    return c->cross_k + ((l * c->sentences + b) * H + h) * c->panels_s * c->element;
}
void *model_cache_cross_v(const model_cache *c, size_t H, size_t l, size_t b, size_t h) {
    return c->cross_v + ((l * c->sentences + b) * H + h) * c->S * c->row * c->element;
}

/* `count` keys and values of a head, rows of ld, join it from position `first` on. */
static iso_status append_head(const model_cache *c, void *to_k, void *to_v, size_t first,
                              const float *k, const float *v, size_t ld, size_t count, size_t dh,
                              const iso_context *context) {
    if (!c->w16) {
        float *to = (float *)to_v + first * dh;
        for (size_t t = 0; t < count; t++)
            memcpy(to + t * dh, v + t * ld, dh * sizeof *to);
        return iso_key_panels_append(to_k, first, k, ld, count, dh, context);
    }
    const iso_status status = iso_keys_w16_append(to_k, first, k, ld, count, dh, c->type, context);
    return status ? status : iso_values_w16_append(to_v, first, v, ld, count, dh, c->type, context);
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
            const size_t b = i / H, h = i % H;
            const float *from = kv + spans[b].first_k * 2 * inner + h * dh;
            status = append_head(cache, model_cache_cross_k(cache, H, l, first + b, h),
                                 model_cache_cross_v(cache, H, l, first + b, h), 0, from,
                                 from + inner, 2 * inner, spans[b].S, dh, &run->context);
        }
        model_lap(run, ISOBIT_PROFILE_CACHE);
    }
    return model_run_fail(run, status, "keys and values of the source");
}

iso_status model_cache_prompt(const model_cache *cache, const size_t *places, model_run *run,
                              const model_span *spans, size_t count, size_t l) {
    const model_stack *stack = &run->model->decoder;
    const size_t Hk = stack->Hk, dh = stack->dh, inner = stack->H * dh, ld = stack->qkv;
    iso_status status = ISOBIT_OK;
    for (size_t i = 0; i < count * Hk && !status; i++) {
        const size_t b = i / Hk, h = i % Hk, r = places[b] * cache->beams;
        const float *k = run->wide + spans[b].first_q * ld + inner + h * dh;
        status = append_head(cache, model_cache_self_k(cache, Hk, l, r, h),
                             model_cache_self_v(cache, Hk, l, r, h), spans[b].S - spans[b].T, k,
                             k + Hk * dh, ld, spans[b].T, dh, &run->context);
    }
    model_lap(run, ISOBIT_PROFILE_CACHE);
    return model_run_fail(run, status, "keys of a prompt");
}

void model_cache_copy_beam(model_cache *cache, const iso_model *model, size_t to, size_t from) {
    const size_t H = model->decoder.Hk, dh = model->decoder.dh;
    const size_t length = cache->lengths[from / cache->beams];
    const size_t keys = head_keys(cache->w16, length, dh) * cache->element;
    const size_t values = length * cache->row * cache->element;
    for (size_t l = 0; l < model->decoder.layers; l++)
        for (size_t h = 0; h < H; h++) {
            memcpy(model_cache_self_k(cache, H, l, to, h), model_cache_self_k(cache, H, l, from, h),
                   keys);
            memcpy(model_cache_self_v(cache, H, l, to, h), model_cache_self_v(cache, H, l, from, h),
                   values);
        }
}

void model_cache_copy_sentence(model_cache *cache, const iso_model *model, size_t to, size_t from) {
    const size_t H = model->decoder.H, dh = model->decoder.dh, S = cache->source_lengths[from];
    const size_t keys = head_keys(cache->w16, S, dh) * cache->element;
    const size_t values = S * cache->row * cache->element;
    for (size_t beam = 0; beam < cache->beams; beam++)
        model_cache_copy_beam(cache, model, to * cache->beams + beam, from * cache->beams + beam);
    cache->lengths[to] = cache->lengths[from];
    if (!cache->S)
        return;
    for (size_t l = 0; l < model->decoder.layers; l++)
        for (size_t h = 0; h < H; h++) {
            memcpy(model_cache_cross_k(cache, H, l, to, h),
                   model_cache_cross_k(cache, H, l, from, h), keys);
            memcpy(model_cache_cross_v(cache, H, l, to, h),
                   model_cache_cross_v(cache, H, l, from, h), values);
        }
    cache->source_lengths[to] = S;
}

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
            const iso_status status =
                append_head(t->cache, model_cache_self_k(t->cache, H, t->l, r, h),
                            model_cache_self_v(t->cache, H, t->l, r, h), past, k, k + H * dh, ld, 1,
                            dh, &context);
            if (status)
                atomic_store_explicit(&t->status, (int)status, memory_order_relaxed);
        }
    }
}

iso_status model_cache_append(const model_cache *cache, const model_run *run, size_t l,
                              size_t rows) {
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
