/* SPDX-License-Identifier: MIT
 *
 * The families of models: for each a row of flags and default values, and the names of its
 * tensors. A new family is a new row; only if it has a block that no other has does layers.c
 * change. What a row leaves 0 is off, or must be given by config.json.
 */
#include "internal.h"

#include <stdio.h>
#include <string.h>

/* Of a table of positions that is not in the file: 256 MiB. */
#define MAX_COMPUTED ((size_t)1 << 26)

/* What BART and those that came from its code share. */
#define FROM_BART                                                                                  \
    .d = 1024, .encoder_layers = 12, .decoder_layers = 12, .encoder_heads = 16,                    \
    .decoder_heads = 16, .encoder_ffn = 4096, .decoder_ffn = 4096, .max_positions = 1024,          \
    .norm_eps = 1e-5, .norm_bias = 1, .attention_bias = 1, .ffn_bias = 1, .share_embeddings = 1,   \
    .tie_logits = 1, .unk = MODEL_NO_ID

/* Ids of fairseq's dictionaries: <s> 0, <pad> 1, </s> 2. */
#define FAIRSEQ_IDS .pad = 1, .bos = 0, .eos = {(const uint32_t[]){2}, 1}

static const model_config families[] = {
    /* "Attention Is All You Need": post-norm, ReLU, interleaved sinusoids, one embedding matrix. */
    {.family = "isobit-transformer",
     .d = 512,
     .encoder_layers = 6,
     .decoder_layers = 6,
     .encoder_heads = 8,
     .decoder_heads = 8,
     .encoder_ffn = 2048,
     .decoder_ffn = 2048,
     .max_positions = 512,
     .activation_name = "relu",
     .eps_key = "layer_norm_epsilon",
     .norm_eps = 1e-6,
     .norm_bias = 1,
     .attention_bias = 1,
     .ffn_bias = 1,
     .position = MODEL_POS_SINUSOIDS,
     .position_layout = ISOBIT_POS_INTERLEAVED,
     .scale_embedding = 1,
     .share_embeddings = 1,
     .tie_logits = 1,
     .pad = MODEL_NO_ID,
     .bos = MODEL_NO_ID,
     .start = MODEL_NO_ID,
     .unk = MODEL_NO_ID},
    /* OPUS-MT as transformers runs it; its class defaults. */
    {.family = "marian",
     FROM_BART,
     .activation_name = "gelu",
     .source_vocabulary = 58101,
     .logits_bias = MODEL_ALWAYS,
     .position = MODEL_POS_SINUSOIDS,
     .position_layout = ISOBIT_POS_HALF_D,
     .stored_positions = 1,
     .pad = 58100,
     .bos = MODEL_NO_ID,
     .start = 58100,
     .eos = {(const uint32_t[]){0}, 1},
     .forces_eos = 1},
    /* Lewis et al. 2019, arXiv 1910.13461: learned positions from row 2 on, a norm on the sum. */
    {.family = "bart",
     FROM_BART,
     .activation_name = "gelu",
     FAIRSEQ_IDS,
     .source_vocabulary = 50265,
     .embedding_norm = 1,
     .logits_bias = MODEL_IF_STORED,
     .position = MODEL_POS_LEARNED,
     .position_offset = 2,
     .start = 2,
     .forces_eos = 1},
    /* Liu et al. 2020, arXiv 2001.08210: BART with pre-norm and a norm at the end. */
    {.family = "mbart",
     FROM_BART,
     .activation_name = "gelu",
     FAIRSEQ_IDS,
     .source_vocabulary = 50265,
     .pre_norm = 1,
     .embedding_norm = 1,
     .final_norm = 1,
     .logits_bias = MODEL_IF_STORED,
     .position = MODEL_POS_LEARNED,
     .position_offset = 2,
     .start = MODEL_NO_ID,
     .forces_eos = 1},
    /* Zhang et al. 2019, arXiv 1912.08777. */
    {.family = "pegasus",
     FROM_BART,
     .activation_name = "gelu",
     .source_vocabulary = 50265,
     .pre_norm = 1,
     .final_norm = 1,
     .logits_bias = MODEL_IF_STORED,
     .position = MODEL_POS_SINUSOIDS,
     .position_layout = ISOBIT_POS_HALF_D,
     .stored_positions = 1,
     .pad = 0,
     .bos = MODEL_NO_ID,
     .start = 0,
     .eos = {(const uint32_t[]){1}, 1},
     .forces_eos = 1},
    /* M2M100 (Fan et al. 2020, arXiv 2010.11125) and NLLB-200 (arXiv 2207.04672): positions are
     * counted from pad + 1 = 2 and always computed; the forced target language is generation's. */
    {.family = "m2m_100",
     FROM_BART,
     FAIRSEQ_IDS,
     .source_vocabulary = 128112,
     .activation_name = "relu",
     .scale_embedding = 1,
     .pre_norm = 1,
     .final_norm = 1,
     .position = MODEL_POS_SINUSOIDS,
     .position_layout = ISOBIT_POS_HALF_HM1,
     .position_offset = 2,
     .start = 2},
};

const model_config *model_family_find(const char *model_type) {
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strcmp(model_type, families[i].family) == 0)
            return &families[i];
    return NULL;
}

const char *model_family_names(void) {
    return "isobit-transformer, marian, bart, mbart, pegasus, m2m_100";
}

/* ------------------------------------------------------------------------ names of tensors */

/* Up to three names of one layer, "model.encoder.layers.0." + each. */
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
                              const char *const *tails, size_t parts, size_t n, size_t k,
                              int bias) {
    layer_names names;
    iso_status status = model_take_packed(
        source, &linear->w, join(&names, prefix, parts, tails, ".weight"), parts, n, k);
    if (!status && bias)
        status = model_take_vector(source, &linear->bias,
                                   join(&names, prefix, parts, tails, ".bias"), parts, n, 0);
    return status;
}

static iso_status take_norm(model_source *source, const model_config *c, model_norm *norm,
                            const char *prefix, const char *tail) {
    layer_names names;
    iso_status status = model_take_vector(source, &norm->gamma,
                                          join(&names, prefix, 1, &tail, ".weight"), 1, c->d, 0);
    if (!status && c->norm_bias && !c->rms_norm)
        status = model_take_vector(source, &norm->beta, join(&names, prefix, 1, &tail, ".bias"), 1,
                                   c->d, 0);
    return status;
}

/* ---------------------------------------------------------------------------------- layers */

static iso_status take_layer(model_source *source, const model_config *c, model_layer *layer,
                             const char *prefix, size_t f, int decoder) {
    static const char *const self[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                                       "self_attn.out_proj"};
    static const char *const cross[] = {"encoder_attn.q_proj", "encoder_attn.k_proj",
                                        "encoder_attn.v_proj", "encoder_attn.out_proj"};
    static const char *const fc1 = "fc1", *const fc2 = "fc2";
    const size_t d = c->d;
    const int bias = c->attention_bias;
    iso_status status;
    if ((status = take_linear(source, &layer->self_qkv, prefix, self, 3, d, d, bias)) ||
        (status = take_linear(source, &layer->self_out, prefix, self + 3, 1, d, d, bias)) ||
        (status = take_norm(source, c, &layer->self_norm, prefix, "self_attn_layer_norm")))
        return status;
    if (decoder &&
        ((status = take_linear(source, &layer->cross_q, prefix, cross, 1, d, d, bias)) ||
         (status = take_linear(source, &layer->cross_kv, prefix, cross + 1, 2, d, d, bias)) ||
         (status = take_linear(source, &layer->cross_out, prefix, cross + 3, 1, d, d, bias)) ||
         (status = take_norm(source, c, &layer->cross_norm, prefix, "encoder_attn_layer_norm"))))
        return status;
    if ((status = take_linear(source, &layer->fc1, prefix, &fc1, 1, f, d, c->ffn_bias)) ||
        (status = take_linear(source, &layer->fc2, prefix, &fc2, 1, d, f, c->ffn_bias)))
        return status;
    return take_norm(source, c, &layer->ffn_norm, prefix, "final_layer_norm");
}

static iso_status take_stack(model_source *source, const model_config *c, model_stack *stack,
                             const char *prefix, int decoder) {
    char at[64];
    iso_status status = ISOBIT_OK;
    for (size_t i = 0; i < stack->layers && !status; i++) {
        (void)snprintf(at, sizeof at, "%slayers.%zu.", prefix, i);
        status = take_layer(source, c, &stack->layer[i], at, stack->f, decoder);
    }
    if (!status && c->embedding_norm)
        status = take_norm(source, c, &stack->embedding_norm, prefix, "layernorm_embedding");
    if (!status && c->final_norm)
        status = take_norm(source, c, &stack->final_norm, prefix, "layer_norm");
    return status;
}

/* The position table: from the file where the family allows it and it is there, else computed. */
static iso_status take_positions(model_source *source, const model_config *c, model_stack *stack,
                                 const char *prefix, const float *computed) {
    layer_names names;
    static const char *const tail = "embed_positions";
    const char *const *name = join(&names, prefix, 1, &tail, ".weight");
    size_t counted = source->parameters, rows = c->max_positions + c->position_offset;
    iso_status status = ISOBIT_OK;
    if (c->position == MODEL_POS_NONE)
        return status;
    if (c->position == MODEL_POS_LEARNED)
        return model_take_rows(source, &stack->positions, name[0], rows, c->d);
    if (c->stored_positions && model_source_find(source, name, 1)) {
        status = model_take_rows(source, &stack->positions, name[0], rows, c->d);
        source->parameters = counted; /* a copy of a formula as a rule, not a parameter */
        return status;
    }
    if (computed && source->load)
        stack->positions = computed;
    if (computed)
        return status;
    /* A few bytes of configuration must not ask for gigabytes. */
    if (rows > MAX_COMPUTED / c->d)
        return model_fail(source->error, ISOBIT_E_LIMIT,
                          "a computed table of %zu positions of %zu elements; at most %zu elements "
                          "are supported",
                          rows, c->d, MAX_COMPUTED);
    if (!source->load)
        return model_source_plan(source, rows, c->d);
    float *table = model_alloc3(source->arena, rows, c->d, 1, sizeof(float));
    if (!table)
        return model_fail(source->error, ISOBIT_E_NOMEM,
                          "out of memory for a table of %zu positions", rows);
    stack->positions = table;
    status = iso_positions_f32(table, c->d, 0, rows, c->d, c->position_layout, source->context);
    return status ? model_fail(source->error, status, "position table: %s", iso_strerror(status))
                  : status;
}

/*
 * Embeddings and the matrix of the logits, in the ways that they are tied. A tied matrix is held
 * once, packed; the embedding gathers its rows from there.
 */
static iso_status take_embeddings(model_source *source, iso_model *model) {
    static const char *const shared[] = {"model.shared.weight", "model.encoder.embed_tokens.weight",
                                         "model.decoder.embed_tokens.weight", "lm_head.weight"};
    static const char *const source_names[] = {"model.encoder.embed_tokens.weight"};
    static const char *const target_names[] = {"model.decoder.embed_tokens.weight",
                                               "lm_head.weight"};
    static const char *const head = "lm_head.weight";
    static const char *const bias = "final_logits_bias";
    const model_config *c = &model->config;
    const size_t Vs = c->source_vocabulary, Vt = c->target_vocabulary;
    const int own_head = !c->tie_logits && model_source_find(source, &head, 1);
    /* With an lm_head of its own that name cannot stand for the embedding. */
    const char *const *table = c->share_embeddings ? shared : target_names;
    const size_t names = (c->share_embeddings ? (size_t)4 : 2) - (own_head ? 1 : 0);
    const model_tensor *t = model_source_find(source, table, names);
    const char *name = t ? t->name : table[0];
    iso_status status;
    if (own_head) {
        status = model_take_rows(source, &model->decoder.embedding.rows, name, Vt, c->d);
        if (!status)
            status = model_take_packed(source, &model->logits.w, &head, 1, Vt, c->d);
    } else {
        status = model_take_packed(source, &model->logits.w, &name, 1, Vt, c->d);
        model->decoder.embedding.packed = model->logits.w;
    }
    if (status)
        return status;
    if (c->share_embeddings)
        model->encoder.embedding = model->decoder.embedding;
    else if ((status = model_take_rows(source, &model->encoder.embedding.rows, source_names[0], Vs,
                                       c->d)))
        return status;
    if (c->logits_bias == MODEL_ALWAYS ||
        (c->logits_bias == MODEL_IF_STORED && model_source_find(source, &bias, 1)))
        return model_take_vector(source, &model->logits.bias, &bias, 1, Vt, 1);
    return ISOBIT_OK;
}

iso_status model_take_all(iso_model *model, model_source *source) {
    const model_config *c = &model->config;
    model_stack *encoder = &model->encoder, *decoder = &model->decoder;
    iso_status status;
    if ((status = take_embeddings(source, model)) ||
        (status = take_stack(source, c, encoder, "model.encoder.", 0)) ||
        (status = take_stack(source, c, decoder, "model.decoder.", 1)) ||
        (status = take_positions(source, c, encoder, "model.encoder.", NULL)))
        return status;
    return take_positions(source, c, decoder, "model.decoder.",
                          c->position == MODEL_POS_SINUSOIDS ? encoder->positions : NULL);
}
