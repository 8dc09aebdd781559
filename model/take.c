/* SPDX-License-Identifier: MIT
 *
 * Takes the weights of a model from its files: each tensor by its name in the family, and what is
 * computed from config.json.
 */
#include "layers.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Of a table of positions that is not in the file: 256 MiB. */
#define MAX_COMPUTED ((size_t)1 << 26)

/* ------------------------------------------------------------------------ names of tensors */

/* Up to three names: prefix and each of the tails. */
typedef struct layer_names {
    char text[3][MODEL_MAX_NAME];
    const char *name[3];
} layer_names;

static const char *const *join(layer_names *names, const char *prefix, size_t parts,
                               const char *const *tails, const char *end) {
    for (size_t i = 0; i < parts; i++) {
        (void)snprintf(names->text[i], MODEL_MAX_NAME, "%s%s%s", prefix, tails[i], end);
        names->name[i] = names->text[i];
    }
    return names->name;
}

/* Linear layers of n outputs each, side by side: y = x [W1; W2; ...]^T + [b1; b2; ...]. */
static iso_status take_linear(model_source *source, model_linear *linear, const char *prefix,
                              const char *const *tails, size_t parts, size_t n, size_t k, int bias,
                              int in_out) {
    layer_names names;
    iso_status status = model_take_packed(
        source, linear, join(&names, prefix, parts, tails, ".weight"), parts, n, k, in_out);
    if (!status && bias)
        status = model_take_vector(source, &linear->bias,
                                   join(&names, prefix, parts, tails, ".bias"), parts, n, 0);
    return status;
}

/* Files of old call them gamma and beta. */
static iso_status take_norm(model_source *source, const model_config *c, model_norm *norm,
                            const char *prefix, const char *tail) {
    layer_names names;
    const int old = model_source_find(source, join(&names, prefix, 1, &tail, ".gamma"), 1) ||
                    model_source_find(source, join(&names, prefix, 1, &tail, ".beta"), 1);
    iso_status status =
        model_take_vector(source, &norm->gamma,
                          join(&names, prefix, 1, &tail, old ? ".gamma" : ".weight"), 1, c->d, 0);
    if (!status && c->norm_bias && !c->rms_norm)
        status =
            model_take_vector(source, &norm->beta,
                              join(&names, prefix, 1, &tail, old ? ".beta" : ".bias"), 1, c->d, 0);
    return status;
}

/* ---------------------------------------------------------------------------------- layers */

/* Queries, keys and values side by side. */
static iso_status take_qkv(model_source *source, const model_config *c, const model_stack *stack,
                           model_linear *qkv, const model_stack_names *names, const char *prefix) {
    const size_t n = stack->H * stack->dh, other_n = stack->Hk * stack->dh;
    layer_names joined;
    if (!names->self[1])
        return take_linear(source, qkv, prefix, names->self, 1, stack->qkv, c->d, c->attention_bias,
                           c->linear_in_out);
    iso_status status = model_take_grouped(
        source, qkv, join(&joined, prefix, 3, names->self, ".weight"), n, other_n, c->d);
    if (!status && c->attention_bias)
        status = model_take_grouped_vector(
            source, &qkv->bias, join(&joined, prefix, 3, names->self, ".bias"), n, other_n);
    return status;
}

static iso_status take_layer(model_source *source, const model_config *c, const model_stack *stack,
                             model_layer *layer, const model_stack_names *names,
                             const char *prefix) {
    const size_t d = c->d, inner = stack->H * stack->dh, f = stack->f;
    const int bias = c->attention_bias, in_out = c->linear_in_out;
    iso_status status;
    if ((status = take_qkv(source, c, stack, &layer->self_qkv, names, prefix)) ||
        (status = take_linear(source, &layer->self_out, prefix, names->self + 3, 1, d, inner,
                              bias && !c->no_output_bias, in_out)) ||
        (status = take_norm(source, c, &layer->self_norm, prefix, names->self_norm)))
        return status;
    layer_names joined;
    if (c->norms_after &&
        ((status = take_norm(source, c, &layer->self_after, prefix, names->self_after)) ||
         (status = take_norm(source, c, &layer->ffn_after, prefix, names->ffn_after))))
        return status;
    if (c->head_norm &&
        ((status = model_take_vector(source, &layer->q_norm,
                                     join(&joined, prefix, 1, names->head_norm, ".weight"), 1,
                                     stack->dh, 0)) ||
         (status = model_take_vector(source, &layer->k_norm,
                                     join(&joined, prefix, 1, names->head_norm + 1, ".weight"), 1,
                                     stack->dh, 0))))
        return status;
    if (names->cross_norm &&
        ((status = take_linear(source, &layer->cross_q, prefix, names->cross, 1, inner, d, bias,
                               in_out)) ||
         (status = take_linear(source, &layer->cross_kv, prefix, names->cross + 1, 2, inner, d,
                               bias, in_out)) ||
         (status = take_linear(source, &layer->cross_out, prefix, names->cross + 3, 1, d, inner,
                               bias, in_out)) ||
         (status = take_norm(source, c, &layer->cross_norm, prefix, names->cross_norm))))
        return status;
    const size_t factors = c->gated ? 2 : 1, parts = c->gated && names->gate[1] ? 2 : 1;
    if ((status = take_linear(source, &layer->fc1, prefix, c->gated ? names->gate : &names->fc1,
                              parts, factors / parts * f, d, c->ffn_bias, in_out)) ||
        (status =
             take_linear(source, &layer->fc2, prefix, &names->fc2, 1, d, f, c->ffn_bias, in_out)))
        return status;
    return take_norm(source, c, &layer->ffn_norm, prefix, names->ffn_norm);
}

static iso_status take_stack(model_source *source, const model_config *c, model_stack *stack,
                             const model_stack_names *names) {
    char at[64];
    iso_status status = ISOBIT_OK;
    for (size_t i = 0; i < stack->layers && !status; i++) {
        (void)snprintf(at, sizeof at, "%s%zu.", names->layers, i);
        if (c->window_layers ? c->window_layers[i] : i >= c->window_from)
            stack->layer[i].window = c->window;
        status = take_layer(source, c, stack, &stack->layer[i], names, at);
    }
    if (!status && stack->layers && c->embedding_norm)
        status = take_norm(source, c, &stack->embedding_norm, "", names->embedding_norm);
    if (!status && stack->layers && c->final_norm)
        status = take_norm(source, c, &stack->final_norm, "", names->final_norm);
    return status;
}

/* The bias of distances, of which one direction has so many buckets. */
static iso_status take_relative(model_source *source, const model_config *c, model_stack *stack,
                                const model_stack_names *names, size_t buckets) {
    char name[MODEL_MAX_NAME];
    iso_status status = ISOBIT_OK;
    if (!c->buckets || !stack->layers)
        return ISOBIT_OK;
    if (source->load) {
        uint32_t *first = model_alloc(source->arena, buckets, sizeof *first);
        if (!first)
            return model_fail(source->error, ISOBIT_E_NOMEM, "out of memory");
        model_first_distances(first, buckets, c->max_distance);
        stack->first_distance = first;
        stack->buckets = buckets;
    } else {
        status = model_source_plan(source, buckets, 1, sizeof(float));
    }
    for (size_t i = 0; i < stack->layers && !status; i++) {
        model_layer *layer = &stack->layer[i];
        (void)snprintf(name, sizeof name, "%s%zu.%s.weight", names->layers, i, names->relative);
        if (i == 0 || c->relative_in_each)
            status = model_take_rows(source, &layer->relative, name, c->buckets, stack->H);
        else
            layer->relative = stack->layer[0].relative;
    }
    return status;
}

/* A position table that is computed. */
static iso_status compute_positions(model_source *source, const model_config *c, model_stack *stack,
                                    size_t rows) {
    /* A few bytes of configuration must not ask for gigabytes. */
    if (rows > MAX_COMPUTED / c->d)
        return model_fail(source->error, ISOBIT_E_LIMIT,
                          "a computed table of %zu positions of %zu elements; at most %zu elements "
                          "are supported",
                          rows, c->d, MAX_COMPUTED);
    if (!source->load)
        return model_source_plan(source, rows, c->d, sizeof(float));
    float *table = model_alloc3(source->arena, rows, c->d, 1, sizeof(float));
    if (!table)
        return model_fail(source->error, ISOBIT_E_NOMEM,
                          "out of memory for a table of %zu positions", rows);
    stack->positions = table;
    iso_status status =
        iso_positions_f32(table, c->d, 0, rows, c->d, c->position_layout, source->context);
    return status ? model_fail(source->error, status, "position table: %s", iso_strerror(status))
                  : status;
}

/* Tensors that are taken between these two are scratch, and no part of the plan. They are there
 * behind the second one. */
typedef struct scratch {
    model_arena *arena;
    size_t bytes;
} scratch;

static void scratch_begin(scratch *kept, model_source *source) {
    *kept = (scratch){source->arena, source->bytes};
    source->arena = &source->scratch;
}

static iso_status scratch_end(const scratch *kept, model_source *source, iso_status status) {
    if (!status && source->load)
        status = model_source_finish(source);
    source->arena = kept->arena;
    source->bytes = kept->bytes;
    return status;
}

/*
 * Where there are types of tokens, all of them have type 0 here, as those of a single text do. Its
 * row joins those of the positions.
 */
static iso_status add_type(model_source *source, const model_config *c, model_stack *stack,
                           const model_stack_names *names, size_t rows) {
    layer_names joined;
    const char *const *name = join(&joined, "", 1, &names->types, ".weight");
    const float *types;
    scratch kept;
    scratch_begin(&kept, source);
    iso_status status =
        scratch_end(&kept, source, model_take_rows(source, &types, name[0], c->types, c->d));
    if (status || !source->load)
        return status;
    float *table;
    memcpy(&table, &stack->positions, sizeof table); /* it is ours, and not yet read by anybody */
    const iso_eltwise_options options = {.size = sizeof options, .bias = types};
    status = iso_eltwise_f32(table, c->d, table, c->d, rows, c->d, &options, source->context);
    return status ? model_fail(source->error, status, "token types: %s", iso_strerror(status))
                  : status;
}

/* The position table: from the file where the family allows it and it is there, else computed. */
static iso_status take_positions(model_source *source, const model_config *c, model_stack *stack,
                                 const model_stack_names *names, const float *computed) {
    layer_names joined;
    size_t counted = source->parameters, rows = c->max_positions + c->position_offset;
    if (c->position == MODEL_POS_NONE || !stack->layers)
        return ISOBIT_OK;
    const char *const *name = join(&joined, "", 1, &names->positions, ".weight");
    if (c->position == MODEL_POS_LEARNED) {
        iso_status status = model_take_rows(source, &stack->positions, name[0], rows, c->d);
        return status || !names->types || !c->types ? status
                                                    : add_type(source, c, stack, names, rows);
    }
    if (c->stored_positions && model_source_find(source, name, 1)) {
        iso_status status = model_take_rows(source, &stack->positions, name[0], rows, c->d);
        source->parameters = counted; /* a copy of a formula as a rule, not a parameter */
        return status;
    }
    if (!computed)
        return compute_positions(source, c, stack, rows);
    if (source->load)
        stack->positions = computed;
    return ISOBIT_OK;
}

/* The head of a masked language model: logits = E norm(act(W x + b)) + c. */
static iso_status take_masked_head(model_source *source, iso_model *model) {
    const model_config *c = &model->config;
    const model_names *names = c->names;
    iso_status status =
        take_linear(source, &model->head_dense, "", &names->head_dense, 1, c->d, c->d, 1, 0);
    return status ? status : take_norm(source, c, &model->head_norm, "", names->head_norm);
}

/* The table that has the rows of these weights. */
static model_table tied_table(const model_linear *w) {
    return (model_table){
        .rows = w->plain, .packed = w->w, .packed16 = w->w16, .packed_q = w->q, .packed_s8 = w->s8};
}

/* Embedding, and what an encoder alone may have on top. */
static iso_status take_encoder_ends(model_source *source, iso_model *model) {
    const model_config *c = &model->config;
    const model_names *names = c->names;
    const size_t V = c->source_vocabulary;
    const int tied = c->tie_logits || !model_source_find(source, &names->head, 1);
    layer_names joined;
    iso_status status = ISOBIT_OK;
    if (names->pooler &&
        model_source_find(source, join(&joined, "", 1, &names->pooler, ".weight"), 1))
        status = take_linear(source, &model->pooler, "", &names->pooler, 1, c->d, c->d, 1, 0);
    if (status)
        return status;
    if (!names->head_dense ||
        !model_source_find(source, join(&joined, "", 1, &names->head_dense, ".weight"), 1)) {
        const char *const tables[] = {names->shared, names->source};
        const model_tensor *t = model_source_find(source, tables, names->source ? 2 : 1);
        return model_take_table(source, &model->encoder.embedding, t ? t->name : names->shared, V,
                                c->d);
    }
    status = model_take_packed(source, &model->logits, tied ? &names->shared : &names->head, 1, V,
                               c->d, 0);
    if (!status && tied)
        model->encoder.embedding = tied_table(&model->logits);
    else if (!status)
        status = model_take_table(source, &model->encoder.embedding, names->shared, V, c->d);
    if (!status)
        status = model_take_vector(source, &model->logits.bias, &names->head_bias, 1, V, 0);
    return status ? status : take_masked_head(source, model);
}

/*
 * Embeddings and the matrix of the logits, in the ways that they are tied. A tied matrix is held
 * once, packed; the embedding gathers its rows from there.
 */
static iso_status take_embeddings(model_source *source, iso_model *model) {
    const model_config *c = &model->config;
    const model_names *names = c->names;
    const char *const shared[] = {names->shared, names->source, names->target, names->head};
    const char *const own[] = {names->target, names->head};
    const size_t Vs = c->source_vocabulary, Vt = c->target_vocabulary;
    const int own_head = c->head_if_stored
                             ? model_source_find(source, &names->head, 1) != NULL
                             : !c->tie_logits && (c->scale_tied_logits ||
                                                  model_source_find(source, &names->head, 1));
    /* With an lm_head of its own that name cannot stand for the embedding. */
    const char *const *table = c->share_embeddings ? shared : own;
    const size_t count = (c->share_embeddings ? (size_t)4 : 2) - (own_head ? 1 : 0);
    const model_tensor *t = model_source_find(source, table, count);
    const char *name = t ? t->name : table[0];
    iso_status status;
    if (own_head) {
        status = model_take_table(source, &model->decoder.embedding, name, Vt, c->d);
        if (!status)
            status = model_take_packed(source, &model->logits, &names->head, 1, Vt, c->d, 0);
    } else {
        status = model_take_packed(source, &model->logits, &name, 1, Vt, c->d, 0);
        model->decoder.embedding = tied_table(&model->logits);
    }
    if (status)
        return status;
    if (c->share_embeddings)
        model->encoder.embedding = model->decoder.embedding;
    else if ((status =
                  model_take_table(source, &model->encoder.embedding, names->source, Vs, c->d)))
        return status;
    if (c->logits_bias == MODEL_ALWAYS ||
        (c->logits_bias == MODEL_IF_STORED && model_source_find(source, &names->head_bias, 1)))
        return model_take_vector(source, &model->logits.bias, &names->head_bias, 1, Vt, 1);
    return ISOBIT_OK;
}

/* Tied logits times 1 / sqrt(d), or logits that are divided by their soft cap: the weights of the
 * norm before them take the factor in. */
static iso_status scale_logits(model_source *source, const model_config *c,
                               const model_stack *stack) {
    double factor = c->scale_tied_logits && c->tie_logits ? 1 / sqrt((double)c->d) : 1;
    if (c->logits_cap > 0)
        factor /= c->logits_cap;
    if (!source->load || !stack->layers || factor == 1)
        return ISOBIT_OK;
    float *gamma;
    memcpy(&gamma, &stack->final_norm.gamma, sizeof gamma); /* ours, not yet read by anybody */
    iso_status status = model_source_finish(source);
    if (status)
        return status;
    status = iso_axpby_f32(gamma, c->d, gamma, c->d, 1, c->d, (float)factor, 0, source->context);
    return status
               ? model_fail(source->error, status, "scale of the logits: %s", iso_strerror(status))
               : status;
}

/* The weights of a norm, if it exists, plus 1. */
static void add_one(const float *weights, size_t n) {
    float *gamma;
    memcpy(&gamma, &weights, sizeof gamma); /* ours, not yet read by anybody */
    for (size_t j = 0; gamma && j < n; j++)
        gamma[j] += 1;
}

/* Norms whose weights are stored less 1, as a file's decay of weights wants it. */
static iso_status complete_norms(model_source *source, const model_config *c, model_stack *stack) {
    if (!source->load || !c->norm_less_one)
        return ISOBIT_OK;
    const iso_status status = model_source_finish(source);
    if (status)
        return status;
    for (size_t i = 0; i < stack->layers; i++) {
        const model_layer *layer = &stack->layer[i];
        add_one(layer->self_norm.gamma, c->d);
        add_one(layer->self_after.gamma, c->d);
        add_one(layer->ffn_norm.gamma, c->d);
        add_one(layer->ffn_after.gamma, c->d);
        add_one(layer->q_norm, stack->dh);
        add_one(layer->k_norm, stack->dh);
    }
    add_one(stack->final_norm.gamma, c->d);
    return ISOBIT_OK;
}

static const double two_pi = 2 * 3.14159265358979323846;

/* The rate that turns so many times within the original positions, counted from the fastest. */
static double rate_of_turns(const model_config *c, size_t rotary, double turns) {
    return (double)rotary * log(c->rope.original / (turns * two_pi)) / (2 * log(c->rope_theta));
}

/* How much of its rate pair i of "yarn" keeps: 1 all, 0 it is divided by the factor. */
static double yarn_keeps(const model_config *c, size_t rotary, size_t i) {
    const model_rope *r = &c->rope;
    double first = rate_of_turns(c, rotary, r->high), last = rate_of_turns(c, rotary, r->low);
    if (!r->fraction) {
        first = floor(first);
        last = ceil(last);
    }
    first = first > 0 ? first : 0;
    last = last < (double)(rotary - 1) ? last : (double)(rotary - 1);
    if (first == last)
        last += 0.001;
    const double ramp = ((double)i - first) / (last - first);
    return ramp < 0 ? 1 : ramp > 1 ? 0 : 1 - ramp;
}

/* Longer texts have a larger base where it is dynamic ("dynamic NTK", as transformers has it). */
static double rope_base(const model_config *c, size_t rotary) {
    const model_rope *r = &c->rope;
    const double width = (double)rotary;
    if (r->kind != MODEL_ROPE_DYNAMIC || r->reached == 0 || rotary == 2) /* that has rate 1 */
        return c->rope_theta;
    return c->rope_theta * pow(r->factor * r->reached - (r->factor - 1), width / (width - 2));
}

/* Slow rates become slower: by the factor, and of "llama3" only those whose wave is longer than
 * original / low positions, fast ones stay, and between the two there is a ramp. */
static float stretched(const model_config *c, size_t rotary, size_t i) {
    const model_rope *r = &c->rope;
    const double exact = pow(rope_base(c, rotary), -2.0 * (double)i / (double)rotary);
    const float rate = (float)exact;
    const double wave = two_pi / (double)rate;
    switch (r->kind) {
    case MODEL_ROPE_DYNAMIC:
    case MODEL_ROPE_PLAIN: return rate;
    case MODEL_ROPE_LINEAR: return (float)((double)rate / r->factor);
    case MODEL_ROPE_YARN: {
        const double keeps = yarn_keeps(c, rotary, i);
        return (float)(exact / r->factor * (1 - keeps) + exact * keeps);
    }
    case MODEL_ROPE_LONG: return (float)(exact / r->slower[i]);
    case MODEL_ROPE_LLAMA3: break;
    }
    if (wave > r->original / r->low)
        return (float)((double)rate / r->factor);
    if (wave < r->original / r->high)
        return rate;
    const double smooth = (r->original / wave - r->low) / (r->high - r->low);
    return (float)((1 - smooth) * (double)rate / r->factor + smooth * (double)rate);
}

/* Rates, [dh / 2], that a file may want divided: how GGUF has the scaling of Llama 3. */
static iso_status divide_rates(model_source *source, const model_stack_names *names, float *rates,
                               size_t count) {
    const float *divisors;
    scratch kept;
    if (!names->rope_divisors || !model_source_find(source, &names->rope_divisors, 1))
        return ISOBIT_OK;
    const size_t parameters = source->parameters;
    scratch_begin(&kept, source);
    iso_status status = scratch_end(
        &kept, source, model_take_vector(source, &divisors, &names->rope_divisors, 1, count, 0));
    source->parameters = parameters; /* they are none */
    for (size_t i = 0; source->load && !status && i < count; i++) {
        if (!(divisors[i] > 0 && divisors[i] <= FLT_MAX))
            return model_fail(source->error, ISOBIT_E_RANGE,
                              "tensor \"%s\": element %zu is not above 0 and finite",
                              names->rope_divisors, i);
        rates[i] = (float)((double)rates[i] / (double)divisors[i]);
    }
    return status;
}

/* The angles of rotary embeddings for each position, [positions][rotary]: cosines, sines. */
static iso_status make_table(model_source *source, const model_config *c, model_stack *stack,
                             const model_stack_names *names, const float **made) {
    const size_t dh = model_rotary(c, stack->dh), rows = c->max_positions;
    if (dh % 2 || !dh)
        return dh == stack->dh
                   ? model_fail(source->error, ISOBIT_E_CONFIG,
                                "heads of width %zu; rotary embeddings need an even one", dh)
                   : model_fail(source->error, ISOBIT_E_CONFIG,
                                "\"%s\" lets %zu elements of a head turn; an even number from 2 "
                                "on is expected",
                                c->keys->rotary_part, dh);
    if (rows > MAX_COMPUTED / dh)
        return model_fail(
            source->error, ISOBIT_E_LIMIT,
            "rotary embeddings of %zu positions of %zu elements; at most %zu elements "
            "are supported",
            rows, dh, MAX_COMPUTED);
    if (!source->load) {
        const iso_status status = divide_rates(source, names, NULL, dh / 2);
        return status ? status : model_source_plan(source, rows, dh, sizeof(float));
    }
    float *table = model_alloc3(source->arena, rows, dh, 1, sizeof(float));
    float *rates = model_alloc(&source->scratch, dh / 2, sizeof *rates);
    if (!table || !rates)
        return model_fail(source->error, ISOBIT_E_NOMEM,
                          "out of memory for rotary embeddings of %zu positions", rows);
    for (size_t i = 0; i < dh / 2; i++)
        rates[i] = stretched(c, dh, i);
    *made = table;
    stack->rotary = dh;
    iso_status status = divide_rates(source, names, rates, dh / 2);
    if (status)
        return status;
    const float scaling = c->rope.scaling == 0 ? 1 : (float)c->rope.scaling;
    status = iso_rope_table_f32(table, dh, 0, rows, rates, dh, scaling, source->context);
    return status ? model_fail(source->error, status, "rotary embeddings: %s", iso_strerror(status))
                  : status;
}

/* One table for all layers, or one more for those with a window. */
static iso_status make_rope(model_source *source, const model_config *c, model_stack *stack,
                            const model_stack_names *names) {
    static const model_stack_names none;
    const float *table = NULL, *local = NULL;
    iso_status status = ISOBIT_OK;
    if (c->rope_theta == 0 || !stack->layers)
        return ISOBIT_OK;
    if (c->local_theta > 0 && c->window_layers) {
        model_config plain = *c;
        plain.rope_theta = c->local_theta;
        plain.rope = (model_rope){.kind = MODEL_ROPE_PLAIN};
        status = make_table(source, &plain, stack, &none, &local);
    }
    if (!status)
        status = make_table(source, c, stack, names, &table);
    for (size_t i = 0; i < stack->layers && !status; i++)
        stack->layer[i].rope = local && c->window_layers[i] ? local : table;
    return status;
}

iso_status model_take_all(iso_model *model, model_source *source) {
    const model_config *c = &model->config;
    const model_names *names = c->names;
    model_stack *encoder = &model->encoder, *decoder = &model->decoder;
    iso_status status;
    if ((status =
             decoder->layers ? take_embeddings(source, model) : take_encoder_ends(source, model)) ||
        (status = take_stack(source, c, encoder, &names->encoder)) ||
        (status = take_stack(source, c, decoder, &names->decoder)) ||
        (status = take_relative(source, c, encoder, &names->encoder, c->buckets / 2)) ||
        (status = take_relative(source, c, decoder, &names->decoder, c->buckets)) ||
        (status = complete_norms(source, c, decoder)) ||
        (status = scale_logits(source, c, decoder)) ||
        (status = take_positions(source, c, encoder, &names->encoder, NULL)) ||
        (status = make_rope(source, c, decoder, &names->decoder)))
        return status;
    return take_positions(source, c, decoder, &names->decoder,
                          c->position == MODEL_POS_SINUSOIDS ? encoder->positions : NULL);
}
