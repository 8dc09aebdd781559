/* SPDX-License-Identifier: MIT
 *
 * The calls of model.h that run a model over given sequences: the output of the encoder, logits of
 * a target, log-probabilities of targets. Sequences are sorted by length and cut into groups, and
 * results go back to where the caller's order wants them.
 */
#include "items.h"

#include <stdlib.h>
#include <string.h>

#define GROUP_TOKENS 2048
#define LOGITS_FLOATS ((size_t)1 << 22) /* of logits that are alive at a time, at least one row */

static int by_length(const void *a, const void *b) {
    const model_item *x = a, *y = b;
    if (x->S != y->S)
        return x->S > y->S ? -1 : 1;
    if (x->T != y->T)
        return x->T > y->T ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

iso_status model_items(model_item **items, model_arena *arena, const iso_model *model,
                       const uint32_t *sources, const size_t *source_lengths,
                       const uint32_t *targets, const size_t *target_lengths, size_t count,
                       iso_error *error) {
    const model_config *c = &model->config;
    if (count && (!source_lengths || !sources))
        return model_fail(error, ISOBIT_E_NULL, "sources and their lengths must not be NULL");
    model_item *all = model_alloc(arena, count, sizeof *all);
    if (!all)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    size_t source_at = 0, target_at = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t S = source_lengths[i], T = target_lengths ? target_lengths[i] : 0;
        iso_status status;
        if (S == 0)
            return model_fail(error, ISOBIT_E_DIM,
                              "source %zu has no tokens; an empty sentence is its end token", i);
        if ((status = model_check_ids(sources + source_at, S, c->source_vocabulary,
                                      c->max_positions, "source", i, error)))
            return status;
        if (T && !targets)
            return model_fail(error, ISOBIT_E_NULL, "targets must not be NULL");
        if (T && (status = model_check_ids(targets + target_at, T, c->target_vocabulary,
                                           c->max_positions, "target", i, error)))
            return status;
        all[i] = (model_item){S, T, source_at, target_at, i};
        source_at += S;
        target_at += T;
    }
    qsort(all, count, sizeof *all, by_length);
    *items = all;
    return ISOBIT_OK;
}

iso_status model_batch_sources(model_batch *batch, model_arena *arena, const iso_model *model,
                               const model_item *items, size_t count, const uint32_t *sources,
                               iso_error *error) {
    const size_t offset = model->config.position_offset;
    size_t rows = 0;
    for (size_t i = 0; i < count; i++)
        rows += items[i].S;
    *batch = (model_batch){.ids = model_alloc(arena, rows, sizeof(uint32_t)),
                           .positions = model_alloc(arena, rows, sizeof(uint32_t)),
                           .spans = model_alloc(arena, count, sizeof(model_span)),
                           .count = count,
                           .rows = rows};
    if (!batch->ids || !batch->positions || !batch->spans)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    for (size_t i = 0, at = 0; i < count; at += items[i++].S) {
        batch->spans[i] = (model_span){at, items[i].S, at, items[i].S};
        memcpy(batch->ids + at, sources + items[i].first_source, items[i].S * sizeof(uint32_t));
        for (size_t t = 0; t < items[i].S; t++)
            batch->positions[at + t] = (uint32_t)(t + offset);
    }
    return ISOBIT_OK;
}

iso_status model_log_softmax(model_run *run, float *x, size_t rows, size_t V) {
    iso_softmax_options options = {.size = sizeof options, .log = 1, .safe = 1};
    return model_run_fail(run, iso_softmax_f32(x, V, x, V, rows, V, &options, &run->context),
                          "log-softmax");
}

/* The output of the encoder for `batch`, in run->x. */
static iso_status encode_batch(model_run *run, const model_batch *batch) {
    return model_encode(run, batch->ids, batch->positions, batch->spans, batch->count, batch->rows);
}

/* Some items of a batch, encoded; each goes to its place in y. */
static iso_status encode_group(float *y, const iso_model *model, const model_item *items,
                               size_t count, const uint32_t *sources, const iso_context *context,
                               iso_error *error) {
    const size_t d = model->config.d;
    size_t rows = 0;
    for (size_t i = 0; i < count; i++)
        rows += items[i].S;
    model_run run;
    model_batch batch;
    iso_status status = model_run_begin(&run, NULL, model, context, rows, error);
    if (status)
        return status;
    status = model_batch_sources(&batch, &run.arena, model, items, count, sources, error);
    if (!status)
        status = encode_batch(&run, &batch);
    for (size_t i = 0; i < count && !status; i++)
        memcpy(y + items[i].first_source * d, run.x + batch.spans[i].first_q * d,
               items[i].S * d * sizeof *y);
    return model_run_end(&run, status);
}

iso_status iso_encode_batch_f32(float *y, const iso_model *model, const uint32_t *sources,
                                const size_t *lengths, size_t count, const iso_context *context,
                                iso_error *error) {
    if (!model || (count && !y))
        return model_fail(error, ISOBIT_E_NULL, "output and model must not be NULL");
    model_arena arena = {0};
    model_item *items = NULL;
    iso_status status = model_needs(&model->encoder, "encoder", error);
    if (!status)
        status = model_items(&items, &arena, model, sources, lengths, NULL, NULL, count, error);
    for (size_t i = 0, n; i < count && !status; i += n) {
        size_t tokens = items[i].S;
        for (n = 1; i + n < count && tokens + items[i + n].S <= GROUP_TOKENS; n++)
            tokens += items[i + n].S;
        status = encode_group(y, model, items + i, n, sources, context, error);
    }
    model_arena_free(&arena);
    return status;
}

iso_status iso_encode_f32(float *y, const iso_model *model, const uint32_t *source, size_t length,
                          const iso_context *context, iso_error *error) {
    return iso_encode_batch_f32(y, model, source, &length, 1, context, error);
}

/*
 * Runs the decoder over the whole targets of a group, whose first token is the start token if
 * `shifted`, and is in the target otherwise; the result is in run->x, [rows][d]. Without an encoder
 * the tokens of a source come before those of its target, all but the last one if `shifted`.
 */
static iso_status decode_group(model_run *run, const model_item *items, size_t count,
                               const model_batch *source, const uint32_t *sources,
                               const uint32_t *targets, int shifted) {
    const model_config *c = &run->model->config;
    const model_stack *stack = &run->model->decoder;
    const size_t d = c->d, inner = stack->H * stack->dh;
    const int both = c->encoder_layers != 0;
    model_decoder_batch b = {.count = count};
    float *memory = NULL;
    for (size_t i = 0; i < count; i++)
        b.rows += items[i].T + (both ? 0 : items[i].S - (size_t)shifted);
    b.ids = model_alloc(&run->arena, b.rows, sizeof *b.ids);
    b.positions = model_alloc(&run->arena, b.rows, sizeof *b.positions);
    b.self = model_alloc(&run->arena, count, sizeof *b.self);
    if (both) {
        b.memory_rows = source->rows;
        b.memory = memory = model_alloc3(&run->arena, source->rows, d, 1, sizeof *memory);
        b.kv = model_alloc3(&run->arena, source->rows, 2 * inner, 1, sizeof *b.kv);
        b.cross = model_alloc(&run->arena, count, sizeof *b.cross);
    }
    if (!b.ids || !b.positions || !b.self || (both && (!memory || !b.kv || !b.cross)))
        return model_fail(run->error, ISOBIT_E_NOMEM, "out of memory");
    if (both)
        memcpy(memory, run->x, source->rows * d * sizeof *memory);
    for (size_t i = 0, at = 0; i < count; at += b.self[i++].T) {
        const model_item *item = &items[i];
        const uint32_t *target = targets + item->first_target;
        const size_t S = both ? 0 : item->S;
        const size_t T = S + item->T - (both ? 0 : (size_t)shifted);
        b.self[i] = (model_span){at, T, at, T};
        if (both)
            b.cross[i] = (model_span){at, T, source->spans[i].first_k, source->spans[i].S};
        for (size_t t = 0; t < T; t++) {
            b.ids[at + t] = t < S               ? sources[item->first_source + t]
                            : !both || !shifted ? target[t - S]
                            : t                 ? target[t - 1]
                                                : c->start;
            b.positions[at + t] = (uint32_t)(t + c->position_offset);
        }
    }
    return model_decode_whole(run, &b, NULL, NULL);
}

static iso_status logits_stepwise(model_run *run, float *logits, const uint32_t *target,
                                  size_t length, const model_batch *source) {
    const size_t V = run->model->config.target_vocabulary;
    model_cache cache;
    uint32_t position;
    iso_status status = model_cache_make(&cache, run, 1, 1, length, source->rows);
    if (!status && source->rows)
        status = model_cache_sources(&cache, run, 0, source->spans, 1, source->rows);
    if (!status)
        status = model_cache_workspace(&cache, run, NULL);
    for (size_t t = 0; t < length && !status; t++) {
        status = model_decode_step(&cache, run, target + t, &position, 1, NULL);
        if (!status)
            status = model_logits(run, logits + t * V, run->x, 1);
    }
    return status;
}

/* What a long text of a decoder alone needs to go through it in parts. */
typedef struct long_text {
    model_cache cache;
    uint32_t *ids, *positions; /* [tokens]; [MODEL_PROMPT_ROWS] */
} long_text;

static iso_status make_long(long_text *text, model_run *run, size_t tokens) {
    text->ids = model_alloc(&run->arena, tokens, sizeof *text->ids);
    text->positions = model_alloc(&run->arena, MODEL_PROMPT_ROWS, sizeof *text->positions);
    return text->ids && text->positions ? model_cache_make(&text->cache, run, 1, 1, tokens, 0)
                                        : model_fail(run->error, ISOBIT_E_NOMEM, "out of memory");
}

static size_t part_of(size_t tokens) {
    return tokens < MODEL_PROMPT_ROWS ? tokens : MODEL_PROMPT_ROWS;
}

static iso_status logits_in_parts(model_run *run, float *logits, const uint32_t *target,
                                  size_t length) {
    const size_t V = run->model->config.target_vocabulary;
    long_text text;
    iso_status status = make_long(&text, run, length);
    if (!status)
        memcpy(text.ids, target, length * sizeof *target);
    for (size_t at = 0, n; at < length && !status; at += n) {
        n = part_of(length - at);
        status = model_decode_part(&text.cache, run, text.ids, text.positions, at, n);
        if (!status)
            status = model_logits(run, logits + at * V, run->x, n);
    }
    return status;
}

iso_status iso_logits_f32(float *logits, const iso_model *model, const uint32_t *source,
                          size_t source_length, const uint32_t *target, size_t target_length,
                          int stepwise, const iso_context *context, iso_error *error) {
    if (!model || (target_length && (!logits || !target)))
        return model_fail(error, ISOBIT_E_NULL, "logits, model and target must not be NULL");
    const int both = model->encoder.layers != 0;
    if (both == !source)
        return both ? model_fail(error, ISOBIT_E_NULL, "source must not be NULL")
                    : model_fail(error, ISOBIT_E_UNSUPPORTED,
                                 "the model has no encoder: source must be NULL");
    model_arena arena = {0};
    model_item one = {.T = target_length}, *item = &one;
    model_batch batch = {0};
    model_run run;
    iso_status status = model_needs(&model->decoder, "decoder", error);
    if (!status && both)
        status = model_items(&item, &arena, model, source, &source_length, target, &target_length,
                             1, error);
    else if (!status)
        status = model_check_ids(target, target_length, model->config.target_vocabulary,
                                 model->config.max_positions, "target", 0, error);
    if (!status && both)
        status = model_batch_sources(&batch, &arena, model, item, 1, source, error);
    const size_t most = both ? target_length : part_of(target_length);
    const size_t rows = batch.rows > most ? batch.rows : most;
    if (!status && target_length &&
        !(status = model_run_begin(&run, NULL, model, context, rows, error))) {
        if (both)
            status = encode_batch(&run, &batch);
        if (!status && stepwise)
            status = logits_stepwise(&run, logits, target, target_length, &batch);
        else if (!status && target_length > rows)
            status = logits_in_parts(&run, logits, target, target_length);
        else if (!status && !(status = decode_group(&run, item, 1, &batch, source, target, 0)))
            status = model_logits(&run, logits, run.x, target_length);
        model_run_end(&run, status);
    }
    model_arena_free(&arena);
    return status;
}

/* Of x [sum of S + T - 1][d] only the rows that predict tokens of targets stay: [sum of T][d]. */
static void drop_prompts(model_run *run, const model_item *items, size_t count) {
    const size_t d = run->model->config.d;
    size_t to = 0, from = 0;
    for (size_t i = 0; i < count; i++) {
        from += items[i].S - 1;
        memmove(run->x + to * d, run->x + from * d, items[i].T * d * sizeof *run->x);
        from += items[i].T;
        to += items[i].T;
    }
}

/* Of logits that are alive at a time. */
typedef struct logits_block {
    float *values;
    size_t rows;
} logits_block;

static iso_status make_block(logits_block *block, model_run *run, size_t rows) {
    const size_t V = run->model->config.target_vocabulary, most = LOGITS_FLOATS / V;
    block->rows = most > rows ? rows : most ? most : 1;
    block->values = model_alloc3(&run->arena, block->rows, V, 1, sizeof *block->values);
    return block->values ? ISOBIT_OK : model_fail(run->error, ISOBIT_E_NOMEM, "out of memory");
}

/* The log-probabilities of the tokens of targets that rows of x predict, from token *t of **item
 * on. */
static iso_status score_rows(float *log_probs, model_run *run, const logits_block *logits,
                             const float *x, size_t rows, const model_item **item, size_t *t,
                             const uint32_t *targets) {
    const size_t V = run->model->config.target_vocabulary, d = run->model->config.d;
    iso_status status = ISOBIT_OK;
    for (size_t row = 0; row < rows;) {
        const size_t n = rows - row < logits->rows ? rows - row : logits->rows;
        if ((status = model_run_linear_workspace(run, n)) ||
            (status = model_logits(run, logits->values, x + row * d, n)) ||
            (status = model_log_softmax(run, logits->values, n, V)))
            break;
        for (size_t r = 0; r < n; r++, row++, ++*t) {
            for (; *t == (*item)->T; *t = 0) /* on to the next item with tokens */
                ++*item;
            const size_t at = (*item)->first_target + *t;
            log_probs[at] = logits->values[r * V + targets[at]];
        }
    }
    return status;
}

/* The log-probabilities of one target, which with its source is too long to go through at once. */
static iso_status score_long(float *log_probs, const iso_model *model, const model_item *item,
                             const uint32_t *sources, const uint32_t *targets,
                             const iso_context *context, iso_error *error) {
    const size_t S = item->S, rows = S + item->T - 1, d = model->config.d;
    model_run run;
    logits_block logits;
    long_text text;
    iso_status status = model_run_begin(&run, NULL, model, context, part_of(rows), error);
    if (status)
        return status;
    status = make_long(&text, &run, rows);
    if (!status)
        status = make_block(&logits, &run, part_of(item->T));
    if (!status) {
        memcpy(text.ids, sources + item->first_source, S * sizeof *text.ids);
        memcpy(text.ids + S, targets + item->first_target, (item->T - 1) * sizeof *text.ids);
    }
    for (size_t at = 0, t = 0, n; at < rows && !status; at += n) {
        n = part_of(rows - at);
        status = model_decode_part(&text.cache, &run, text.ids, text.positions, at, n);
        const size_t before = S - 1 < at ? 0 : S - 1 - at; /* rows that predict the source */
        if (!status && before < n)
            status = score_rows(log_probs, &run, &logits, run.x + before * d, n - before, &item, &t,
                                targets);
    }
    return model_run_end(&run, status);
}

/* The log-probabilities of one group of targets. */
static iso_status score_group(float *log_probs, const iso_model *model, const model_item *items,
                              size_t count, const uint32_t *sources, const uint32_t *targets,
                              const iso_context *context, iso_error *error) {
    const int both = model->encoder.layers != 0;
    size_t rows = 0, target_rows = 0, t = 0;
    for (size_t i = 0; i < count; i++) {
        rows += items[i].S;
        target_rows += items[i].T;
    }
    model_run run;
    logits_block logits;
    model_batch batch = {0};
    iso_status status = model_run_begin(&run, NULL, model, context,
                                        !both                ? rows + target_rows
                                        : rows > target_rows ? rows
                                                             : target_rows,
                                        error);
    if (status)
        return status;
    status = make_block(&logits, &run, target_rows);
    if (!status && both)
        status = model_batch_sources(&batch, &run.arena, model, items, count, sources, error);
    if (!status && both)
        status = encode_batch(&run, &batch);
    if (!status)
        status = decode_group(&run, items, count, &batch, sources, targets, 1);
    if (!status && !both)
        drop_prompts(&run, items, count);
    if (!status)
        status = score_rows(log_probs, &run, &logits, run.x, target_rows, &items, &t, targets);
    return model_run_end(&run, status);
}

iso_status iso_score_f32(float *log_probs, const iso_model *model, const uint32_t *sources,
                         const size_t *source_lengths, const uint32_t *targets,
                         const size_t *target_lengths, size_t count, const iso_context *context,
                         iso_error *error) {
    if (!model || (count && !target_lengths))
        return model_fail(error, ISOBIT_E_NULL, "model and target lengths must not be NULL");
    model_arena arena = {0};
    model_item *items = NULL;
    size_t total = 0, used = 0;
    iso_status status = model_needs(&model->decoder, "decoder", error);
    if (!status)
        status = model_items(&items, &arena, model, sources, source_lengths, targets,
                             target_lengths, count, error);
    for (size_t i = 0; i < count && !status && !model->encoder.layers; i++)
        if (items[i].T && items[i].S + items[i].T - 1 > model->config.max_positions)
            status =
                model_fail(error, ISOBIT_E_LIMIT,
                           "source and target %zu have %zu tokens; the model has %zu positions",
                           items[i].index, items[i].S + items[i].T, model->config.max_positions);
    for (size_t i = 0; i < count && !status; i++)
        total += target_lengths[i];
    if (!status && total && !log_probs)
        status = model_fail(error, ISOBIT_E_NULL, "log_probs must not be NULL");
    for (size_t i = 0; i < count && !status; i++) /* those without a target have no result */
        if (items[i].T)
            items[used++] = items[i];
    const int both = model->encoder.layers != 0;
    const size_t most = both ? GROUP_TOKENS : MODEL_PROMPT_ROWS;
    for (size_t i = 0, n; i < used && !status; i += n) {
        size_t tokens = items[i].S + items[i].T;
        for (n = 1; i + n < used && tokens + items[i + n].S + items[i + n].T <= most; n++)
            tokens += items[i + n].S + items[i + n].T;
        if (!both && tokens - n > most)
            status = score_long(log_probs, model, items + i, sources, targets, context, error);
        else
            status = score_group(log_probs, model, items + i, n, sources, targets, context, error);
    }
    model_arena_free(&arena);
    return status;
}

/* ----------------------------------------------------------------------------- looking at it */

/* The ids of the sequences that the kind of attention needs, and nothing else. */
static iso_status check_shown(const iso_model *model, iso_attention_kind kind,
                              const uint32_t *source, size_t source_length, const uint32_t *target,
                              size_t target_length, iso_error *error) {
    const model_config *c = &model->config;
    const int by_encoder = model->encoder.layers != 0,
              by_decoder = kind != ISOBIT_ATTENTION_ENCODER;
    iso_status status = ISOBIT_OK;
    if ((unsigned)kind > ISOBIT_ATTENTION_CROSS)
        return model_fail(error, ISOBIT_E_OPTION, "attention of kind %d is not known", (int)kind);
    if (kind != ISOBIT_ATTENTION_DECODER)
        status = model_needs(&model->encoder, "encoder", error);
    if (!status && by_decoder)
        status = model_needs(&model->decoder, "decoder", error);
    if (status)
        return status;
    if ((!source && source_length) || (!target && target_length))
        return model_fail(error, ISOBIT_E_NULL, "source and target must not be NULL");
    if (!by_encoder && source_length)
        return model_fail(error, ISOBIT_E_UNSUPPORTED,
                          "the model has no encoder: there is no source");
    if (!by_decoder && target_length)
        return model_fail(error, ISOBIT_E_DIM, "attention of the encoder has no target");
    if ((by_encoder && !source_length) || (by_decoder && !target_length))
        return model_fail(error, ISOBIT_E_DIM, "the %s has no tokens",
                          by_encoder && !source_length ? "source" : "target");
    status = model_check_ids(source, source_length, c->source_vocabulary, c->max_positions,
                             "source", 0, error);
    return status ? status
                  : model_check_ids(target, target_length, c->target_vocabulary, c->max_positions,
                                    "target", 0, error);
}

/* The sizes of what is shown, in `shown`. */
static iso_status size_shown(model_shown *shown, const iso_model *model, size_t source,
                             size_t target, iso_error *error) {
    const model_stack *stack =
        shown->kind == ISOBIT_ATTENTION_ENCODER ? &model->encoder : &model->decoder;
    const size_t T = shown->kind == ISOBIT_ATTENTION_ENCODER ? source : target;
    const size_t S = shown->kind == ISOBIT_ATTENTION_DECODER ? target : source;
    size_t all;
    if (shown->first > stack->layers || shown->layers > stack->layers - shown->first)
        return model_fail(error, ISOBIT_E_RANGE, "layers %zu to %zu of %zu", shown->first,
                          shown->first + shown->layers, stack->layers);
    if (__builtin_mul_overflow(T, S, &shown->floats) ||
        __builtin_mul_overflow(shown->floats, stack->H, &shown->floats) ||
        __builtin_mul_overflow(shown->floats, shown->layers * sizeof(float), &all) ||
        all > PTRDIFF_MAX)
        return model_fail(error, ISOBIT_E_OVERFLOW, "the sequences are too long to show attention");
    if (all) /* keys that are out of sight for a whole block of queries are not written */
        memset(shown->weights, 0, all);
    return ISOBIT_OK;
}

iso_status iso_attention_weights_f32(float *weights, const iso_model *model,
                                     iso_attention_kind kind, size_t first_layer,
                                     size_t layer_count, const uint32_t *source,
                                     size_t source_length, const uint32_t *target,
                                     size_t target_length, const iso_context *context,
                                     iso_error *error) {
    if (!model || !weights)
        return model_fail(error, ISOBIT_E_NULL, "weights and model must not be NULL");
    model_shown shown = {
        .kind = kind, .first = first_layer, .layers = layer_count, .weights = weights};
    const model_item item = {.S = source_length, .T = target_length};
    model_arena arena = {0};
    model_batch batch = {0};
    model_run run;
    iso_status status =
        check_shown(model, kind, source, source_length, target, target_length, error);
    if (!status)
        status = model_check_context(context, error);
    if (!status)
        status = size_shown(&shown, model, source_length, target_length, error);
    if (!status && source_length)
        status = model_batch_sources(&batch, &arena, model, &item, 1, source, error);
    const size_t rows = source_length > target_length ? source_length : target_length;
    if (!status && !(status = model_run_begin(&run, NULL, model, context, rows, error))) {
        run.shown = &shown;
        if (source_length)
            status = encode_batch(&run, &batch);
        if (!status && kind != ISOBIT_ATTENTION_ENCODER)
            status = decode_group(&run, &item, 1, &batch, source, target, 0);
        status = model_run_end(&run, status);
    }
    model_arena_free(&arena);
    return status;
}
