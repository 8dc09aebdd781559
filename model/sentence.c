/* SPDX-License-Identifier: MIT
 *
 * Encoders alone: one vector for each sentence, and which tokens would fit where. What
 * sentence-transformers wrote beside config.json says how its vectors are made.
 */
#include "items.h"
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_BYTES ((size_t)1 << 20)
#define POOLING_FILE "1_Pooling/config.json"

/* ----------------------------------------------------------------------------- configuration */

/* The last part of a type like "sentence_transformers.models.Pooling". */
static const char *module_name(const json_t *module) {
    const char *type = json_string_value(json_object_get(module, "type"));
    const char *dot = type ? strrchr(type, '.') : NULL;
    return dot ? dot + 1 : type ? type : "";
}

/* "1_Pooling/config.json": exactly one way must be true. */
static iso_status read_pooling(model_sentence *s, const char *directory, iso_error *error) {
    static const struct {
        const char *key;
        iso_pooling pooling;
    } known[] = {
        {"pooling_mode_mean_tokens", ISOBIT_POOLING_MEAN},
        {"pooling_mode_cls_token", ISOBIT_POOLING_CLS},
        {"pooling_mode_max_tokens", ISOBIT_POOLING_MAX},
        {"pooling_mode_mean_sqrt_len_tokens", ISOBIT_POOLING_DEFAULT},
        {"pooling_mode_weightedmean_tokens", ISOBIT_POOLING_DEFAULT},
        {"pooling_mode_lasttoken", ISOBIT_POOLING_DEFAULT},
    };
    json_t *root;
    size_t ways = 0;
    iso_status status = model_json_load(&root, directory, POOLING_FILE, MAX_BYTES, error);
    if (status)
        return status;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (json_is_true(json_object_get(root, known[i].key))) {
            s->pooling = known[i].pooling;
            if (ways++ || !s->pooling)
                (void)snprintf(s->refused, sizeof s->refused, "%s", known[i].key);
        }
    s->drops_prompt = json_is_false(json_object_get(root, "include_prompt"));
    json_decref(root);
    if (!ways)
        return model_fail(error, ISOBIT_E_CONFIG, "%s: no way of pooling is true", POOLING_FILE);
    return ISOBIT_OK;
}

/* Modules in their order: a Transformer, a Pooling, perhaps a Normalize. */
static iso_status read_modules(model_sentence *s, const json_t *modules, const char *directory,
                               iso_error *error) {
    iso_status status = ISOBIT_OK;
    s->normalize = -1;
    for (size_t i = 0; i < json_array_size(modules) && !status; i++) {
        const json_t *module = json_array_get(modules, i);
        const char *name = module_name(module);
        const char *path = json_string_value(json_object_get(module, "path"));
        if (i == 0 && strcmp(name, "Transformer") == 0 && path && !path[0])
            continue;
        if (i == 1 && strcmp(name, "Pooling") == 0 && path && strcmp(path, "1_Pooling") == 0) {
            status = read_pooling(s, directory, error);
        } else if (i == 2 && strcmp(name, "Normalize") == 0) {
            s->normalize = 1;
        } else {
            model_quoted quoted;
            (void)snprintf(s->refused, sizeof s->refused, "module %zu, %.40s", i,
                           model_quote(&quoted, name, strlen(name)));
            return ISOBIT_OK;
        }
    }
    return status;
}

/* An object of a file that may be missing: *root is NULL then. */
static iso_status optional(json_t **root, const char *directory, const char *name,
                           iso_error *error) {
    *root = NULL;
    const iso_status status = model_json_load(root, directory, name, MAX_BYTES, error);
    return status == ISOBIT_E_MISSING ? ISOBIT_OK : status;
}

static iso_status read_max_length(model_sentence *s, const json_t *root, const char *file,
                                  const char *key, iso_error *error) {
    const json_t *length = json_object_get(root, key);
    const size_t most = (size_t)1 << 31;
    /* Tokenizers without a limit write 1e30. */
    if (!length || json_is_null(length) || json_number_value(length) > (double)most)
        return ISOBIT_OK;
    if (!model_json_size(length, 1, most, &s->max_length))
        return model_fail(error, ISOBIT_E_CONFIG, "%s: \"%s\" must be a whole number of at least 1",
                          file, key);
    return ISOBIT_OK;
}

/* "sentence_bert_config.json"; what it does not limit, the tokenizer may. */
static iso_status read_texts(model_sentence *s, const char *directory, iso_error *error) {
    static const char *const file = "sentence_bert_config.json", *const other =
                                                                     "tokenizer_config.json";
    json_t *root;
    iso_status status = optional(&root, directory, file, error);
    const json_t *lower = json_object_get(root, "do_lower_case");
    if (!status)
        status = read_max_length(s, root, file, "max_seq_length", error);
    if (!status && lower && !json_is_boolean(lower) && !json_is_null(lower))
        status =
            model_fail(error, ISOBIT_E_CONFIG, "%s: \"do_lower_case\" must be true or false", file);
    s->lower = json_is_true(lower);
    json_decref(root);
    if (status || s->max_length != SIZE_MAX)
        return status;
    status = optional(&root, directory, other, error);
    if (!status)
        status = read_max_length(s, root, other, "model_max_length", error);
    json_decref(root);
    return status;
}

/* "config_sentence_transformers.json": the prompt that texts get if none is asked for. */
static iso_status read_prompt(model_sentence *s, model_arena *arena, const char *directory,
                              iso_error *error) {
    static const char *const file = "config_sentence_transformers.json";
    json_t *root;
    iso_status status = optional(&root, directory, file, error);
    const json_t *name = json_object_get(root, "default_prompt_name");
    if (!status && name && !json_is_null(name)) {
        const char *key = json_string_value(name);
        const json_t *prompt = json_object_get(json_object_get(root, "prompts"), key ? key : "");
        char found[80], *copy = NULL;
        if (!key || !json_is_string(prompt))
            status = model_fail(error, ISOBIT_E_CONFIG,
                                "%s: \"default_prompt_name\" is %s, which is none of the prompts",
                                file, model_json_describe(name, found, sizeof found));
        else if (!(copy = model_alloc(arena, json_string_length(prompt) + 1, 1)))
            status = model_fail(error, ISOBIT_E_NOMEM, "out of memory for the prompt");
        else
            s->prompt = strcpy(copy, json_string_value(prompt));
    }
    json_decref(root);
    return status;
}

iso_status model_sentence_read(model_config *config, model_arena *arena, const char *directory,
                               iso_error *error) {
    model_sentence *s = &config->sentence;
    json_t *root;
    iso_error own = {0};
    *s = (model_sentence){.pooling = ISOBIT_POOLING_MEAN, .normalize = 1, .max_length = SIZE_MAX};
    if (config->decoder_layers)
        return ISOBIT_OK;
    iso_status status = model_json_load_list(&root, directory, "modules.json", MAX_BYTES, &own);
    if (!status) {
        status = read_modules(s, root, directory, &own);
        json_decref(root);
    } else if (status == ISOBIT_E_MISSING) {
        status = ISOBIT_OK;
    }
    if (!status)
        status = read_texts(s, directory, &own);
    if (!status)
        status = read_prompt(s, arena, directory, &own);
    if (status && error)
        *error = own;
    return status;
}

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
    const size_t d = model->config.d;
    size_t longest = 1, at = 0;
    for (size_t i = 0; i < count; i++)
        longest = lengths[i] > longest ? lengths[i] : longest;
    model_run run;
    iso_status status = model_run_begin(&run, NULL, model, context, 1, error);
    if (status)
        return status;
    float *ones = model_alloc(&run.arena, longest, sizeof *ones);
    float *gamma = model_alloc(&run.arena, d, sizeof *gamma);
    if (!ones || !gamma)
        status = model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    else
        status = model_run_linear_workspace(&run, 1);
    for (size_t i = 0; i < longest && !status; i++)
        ones[i] = 1;
    for (size_t i = 0; i < count && !status; at += lengths[i++])
        status = pool(&run, y + i * d, x + at * d, lengths[i], options->pooling, ones);
    if (!status && options->normalize == 1 && count)
        status = model_run_fail(&run, to_unit_length(y, count, d, gamma, &run.context),
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
