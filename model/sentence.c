/* SPDX-License-Identifier: MIT
 *
 * Encoders alone: one vector for each sentence, and which tokens would fit where. How vectors are
 * made by default is what sentence-transformers wrote beside config.json (sentence_files.c).
 */
#include "items.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------------------------- vectors */

/* y [d] from the output x [length][d] of one sequence; `ones` [length]. */
static iso_status pool(model_run *run, float *y, const float *x, size_t length, iso_pooling how,
                       const float *ones) {
    const size_t d = run->model->config.d;
    const iso_gemm_options mean = {.size = sizeof mean, .alpha = 1.0f / (float)length};
    switch (how) {
    case ISOBIT_POOLING_MEAN:
        return model_run_fail(
            run, iso_gemm_f32(y, d, ones, length, x, d, 1, d, length, &mean, &run->context),
            "mean of a sentence");
    case ISOBIT_POOLING_MAX:
        memcpy(y, x, d * sizeof *y);
        for (size_t t = 1; t < length; t++)
            for (size_t j = 0; j < d; j++) /* a NaN stays */
                y[j] = x[t * d + j] > y[j] || x[t * d + j] != x[t * d + j] ? x[t * d + j] : y[j];
        return ISOBIT_OK;
    case ISOBIT_POOLING_POOLER:
        return model_project(run, y, d, x, d, &run->model->pooler, 1, ISOBIT_ACT_TANH, NULL);
    default: /* CLS */ memcpy(y, x, d * sizeof *y); return ISOBIT_OK;
    }
}

/* The options, with what the folder says in place of 0. */
static iso_status fill_options(iso_sentence_options *o, const iso_model *model, iso_error *error) {
    const model_sentence *s = &model->config.sentence;
    if (s->refused[0] && (!o->pooling || !o->normalize))
        return model_fail(
            error, ISOBIT_E_UNSUPPORTED,
            "sentence-transformers' %s is not supported; choose a pooling and whether "
            "to normalize",
            s->refused);
    o->pooling = o->pooling ? o->pooling : s->pooling;
    o->normalize = o->normalize ? o->normalize : s->normalize;
    if ((int)o->pooling < 0 || o->pooling > ISOBIT_POOLING_POOLER)
        return model_fail(error, ISOBIT_E_RANGE, "pooling %d is not known", (int)o->pooling);
    if (o->normalize != 1 && o->normalize != -1)
        return model_fail(error, ISOBIT_E_RANGE, "normalize is %d; 1, -1 or 0 is expected",
                          o->normalize);
    if (o->pooling == ISOBIT_POOLING_POOLER && !model->pooler.w.n)
        return model_fail(error, ISOBIT_E_UNSUPPORTED, "the model has no pooler");
    return ISOBIT_OK;
}

/* y = x / |x|, rows x d: y = (x / sqrt(mean(x^2) + eps)) / sqrt(d). A row of zeros stays. */
static iso_status to_unit_length(float *y, size_t rows, size_t d, float *gamma,
                                 const iso_context *context) {
    for (size_t j = 0; j < d; j++)
        gamma[j] = (float)(1 / sqrt((double)d));
    const iso_norm_options options = {.size = sizeof options, .gamma = gamma, .eps = 1e-30f};
    return iso_rmsnorm_f32(y, d, y, d, rows, d, &options, context);
}

/* One sequence after the other: each fills the machine, and none depends on the others. */
static iso_status embed_all(float *y, const iso_model *model, const float *x, const size_t *lengths,
                            size_t count, const iso_sentence_options *options,
                            const iso_context *context, iso_error *error) {
    const size_t d = model->config.d, own = model->info.sentence_d;
    size_t longest = 1, at = 0;
    for (size_t i = 0; i < count; i++)
        longest = lengths[i] > longest ? lengths[i] : longest;
    model_run run;
    iso_status status = model_run_begin(&run, NULL, model, context, 1, error);
    if (status)
        return status;
    float *ones = model_alloc(&run.arena, longest, sizeof *ones);
    float *gamma = model_alloc(&run.arena, own, sizeof *gamma);
    float *pooled = model->dense ? model_alloc3(&run.arena, count, d, 1, sizeof *pooled) : y;
    if (!ones || !gamma || (count && !pooled))
        status = model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    else
        status = model_run_linear_workspace(&run, 1);
    for (size_t i = 0; i < longest && !status; i++)
        ones[i] = 1;
    for (size_t i = 0; i < count && !status; at += lengths[i++])
        status = pool(&run, pooled + i * d, x + at * d, lengths[i], options->pooling, ones);
    if (!status && model->dense && count)
        status = model_dense_apply(&run, y, pooled, count);
    if (!status && options->normalize == 1 && count)
        status = model_run_fail(&run, to_unit_length(y, count, own, gamma, &run.context),
                                "length of a vector");
    return model_run_end(&run, status);
}

iso_status iso_sentence_embed_f32(float *y, const iso_model *model, const uint32_t *ids,
                                  const size_t *lengths, size_t count,
                                  const iso_sentence_options *options, const iso_context *context,
                                  iso_error *error) {
    if (!model || (count && (!y || !lengths)))
        return model_fail(error, ISOBIT_E_NULL, "output, model and lengths must not be NULL");
    iso_sentence_options own = {.size = sizeof own};
    if (options && !MODEL_OPTIONS(options, own, normalize))
        return model_fail(error, ISOBIT_E_SIZE, "the options have an unknown size");
    iso_status status = fill_options(&own, model, error);
    size_t rows = 0, bytes;
    for (size_t i = 0; i < count && !status; i++)
        if (__builtin_add_overflow(rows, lengths[i], &rows))
            status = model_fail(error, ISOBIT_E_OVERFLOW, "the sequences are too long together");
    model_arena arena = {0};
    float *x = NULL;
    if (!status && (__builtin_mul_overflow(rows, model->config.d, &bytes) ||
                    !(x = model_alloc(&arena, bytes ? bytes : 1, sizeof *x))))
        status = model_fail(error, ISOBIT_E_NOMEM, "out of memory for the output of the encoder");
    if (!status)
        status = iso_encode_batch_f32(x, model, ids, lengths, count, context, error);
    if (!status)
        status = embed_all(y, model, x, lengths, count, &own, context, error);
    model_arena_free(&arena);
    return status;
}

/* ---------------------------------------------------------------------- masked language models */

/* logits = E norm(act(W x + b)) + c of run->x, with run->h between. */
static iso_status masked_logits(model_run *run, float *logits, size_t rows) {
    const iso_model *model = run->model;
    const size_t d = model->config.d;
    iso_status status = model_project(run, run->h, d, run->x, d, &model->head_dense, rows,
                                      model->config.activation, NULL);
    if (!status)
        status = model_normalize(run, run->x, d, run->h, rows, &model->head_norm);
    return status ? status : model_logits(run, logits, run->x, rows);
}

/* Of run->x only the rows at some positions stay. */
static iso_status keep_rows(model_run *run, const size_t *positions, size_t count) {
    const size_t d = run->model->config.d;
    for (size_t i = 0; i < count; i++)
        memcpy(run->h + i * d, run->x + positions[i] * d, d * sizeof *run->x);
    if (count)
        memcpy(run->x, run->h, count * d * sizeof *run->x);
    return model_run_linear_workspace(run, count);
}

/* Logits at `count` positions of one sequence, or where that is NULL at all of them. */
static iso_status mask_logits(float *logits, const iso_model *model, const uint32_t *ids,
                              size_t length, const size_t *positions, size_t count,
                              const iso_context *context, iso_error *error) {
    if (!model->logits.w.n)
        return model_fail(error, ISOBIT_E_UNSUPPORTED,
                          "the model came without the head of a masked language model");
    for (size_t i = 0; i < count && positions; i++)
        if (positions[i] >= length)
            return model_fail(error, ISOBIT_E_RANGE, "position %zu of a sequence of %zu tokens",
                              positions[i], length);
    if (!count)
        return ISOBIT_OK;
    model_arena arena = {0};
    model_item *item = NULL;
    model_batch batch;
    model_run run;
    iso_status status = model_items(&item, &arena, model, ids, &length, NULL, NULL, 1, error);
    if (!status)
        status = model_batch_sources(&batch, &arena, model, item, 1, ids, error);
    if (!status && !(status = model_run_begin(&run, NULL, model, context,
                                              length > count ? length : count, error))) {
        status =
            model_encode(&run, batch.ids, batch.positions, batch.spans, batch.count, batch.rows);
        if (!status && positions)
            status = keep_rows(&run, positions, count);
        if (!status)
            status = masked_logits(&run, logits, count);
        status = model_run_end(&run, status);
    }
    model_arena_free(&arena);
    return status;
}

iso_status iso_token_logits_f32(float *logits, const iso_model *model, const uint32_t *ids,
                                size_t length, const iso_context *context, iso_error *error) {
    if (!model || (length && (!logits || !ids)))
        return model_fail(error, ISOBIT_E_NULL, "logits, model and ids must not be NULL");
    if (model->decoder.layers && model->encoder.layers)
        return model_fail(error, ISOBIT_E_UNSUPPORTED,
                          "the model has a decoder: its logits are those of a target");
    if (model->decoder.layers)
        return iso_logits_f32(logits, model, NULL, 0, ids, length, 0, context, error);
    return mask_logits(logits, model, ids, length, NULL, length, context, error);
}

iso_status iso_token_logits_at_f32(float *logits, const iso_model *model, const uint32_t *ids,
                                   size_t length, const size_t *positions, size_t count,
                                   const iso_context *context, iso_error *error) {
    if (!model || (length && !ids) || (count && (!logits || !positions)))
        return model_fail(error, ISOBIT_E_NULL,
                          "logits, model, ids and positions must not be NULL");
    if (model->decoder.layers)
        return model_fail(error, ISOBIT_E_UNSUPPORTED,
                          "the model has a decoder: no masks of a text are filled");
    return mask_logits(logits, model, ids, length, positions, count, context, error);
}
