/* SPDX-License-Identifier: MIT
 *
 * config.json and generation_config.json. The reader is tolerant where files in the wild differ
 * (unknown keys are ignored, null counts as absent, whole numbers may be written 4.0, eos_token_id
 * may be a list) and strict about what it uses: ranges, divisibility, ids inside the vocabulary.
 * jansson parses; every number is taken as a double, which holds all whole numbers that we accept
 * and lets files pass that carry numbers beyond 64 bits in keys that nobody reads.
 */
#include "config_reader.h"

#include <stddef.h>
#include <string.h>

#define MAX_CONFIG_BYTES ((size_t)4 << 20)
#define MAX_LAYERS 512

static iso_status read_activation(const model_reader *r, model_config *c) {
    static const struct {
        const char *name;
        iso_activation act;
    } known[] = {
        {"relu", ISOBIT_ACT_RELU},           {"silu", ISOBIT_ACT_SILU},
        {"swish", ISOBIT_ACT_SILU},          {"gelu", ISOBIT_ACT_GELU_ERF},
        {"gelu_new", ISOBIT_ACT_GELU_TANH},  {"gelu_pytorch_tanh", ISOBIT_ACT_GELU_TANH},
        {"gelu_fast", ISOBIT_ACT_GELU_TANH}, {"tanh", ISOBIT_ACT_TANH},
    };
    const char *gated = c->keys->gated_activation, *key = gated ? gated : c->keys->activation;
    const json_t *value = model_read_key(r, key);
    if (value && !json_is_string(value))
        return model_read_wrong(r, key, value, "the name of a function");
    const char *whole = value ? json_string_value(value) : c->activation_name, *name = whole;
    if (gated && strncmp(name, "gated-", 6) == 0) {
        c->gated = 1;
        /* An old name, as those who made the checkpoints use it. */
        name = strcmp(name, "gated-gelu") == 0 ? "gelu_new" : name + 6;
    }
    if (c->gelu_is_tanh && strcmp(name, "gelu") == 0)
        name = "gelu_pytorch_tanh";
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i].name) == 0) {
            c->activation_name = known[i].name;
            c->activation = known[i].act;
            return ISOBIT_OK;
        }
    model_quoted quoted;
    return model_fail(r->error, ISOBIT_E_UNSUPPORTED,
                      "%s: %s %s is not known; relu, silu, swish, gelu, gelu_new, "
                      "gelu_pytorch_tanh, gelu_fast and tanh are%s",
                      r->file, key, model_quote(&quoted, whole, strlen(whole)),
                      gated ? ", with or without \"gated-\" before the name" : "");
}

/* Variants of a family that would compute something else are refused by name. */
static iso_status check_musts(const model_reader *r, const model_config *c) {
    for (const model_must *m = c->must; m < c->must + sizeof c->must / sizeof *c->must; m++) {
        const json_t *value = m->key ? model_read_key(r, m->key) : NULL;
        if (!value)
            continue;
        const char *found = json_is_boolean(value)  ? json_is_true(value) ? "true" : "false"
                            : json_is_string(value) ? json_string_value(value)
                                                    : "";
        char text[80];
        if (strcmp(found, m->value) != 0)
            return model_fail(r->error, ISOBIT_E_UNSUPPORTED,
                              "%s: \"%s\" is %s; only %s is supported", r->file, m->key,
                              model_json_describe(value, text, sizeof text), m->value);
    }
    return ISOBIT_OK;
}

static iso_status read_token_ids(const model_reader *r, model_config *c) {
    iso_status status;
    if ((status = model_read_id(r, "pad_token_id", &c->pad)) ||
        (status = model_read_id(r, "bos_token_id", &c->bos)) ||
        (status = model_read_id(r, "unk_token_id", &c->unk)) ||
        (status = model_read_id(r, "decoder_start_token_id", &c->start)))
        return status;
    return model_read_ids(r, "eos_token_id", &c->eos);
}

/* Heads that divide the width of the model, unless they have a width of their own. */
static iso_status check_heads(const model_reader *r, const model_config *c, const char *key,
                              size_t H) {
    if (c->head_width)
        return ISOBIT_OK;
    if (c->d % H)
        return model_fail(r->error, ISOBIT_E_CONFIG,
                          "%s: \"%s\" %zu is not a multiple of \"%s\" %zu", r->file, c->keys->d,
                          c->d, key, H);
    if (c->d / H > MAX_HEAD_WIDTH)
        return model_fail(r->error, ISOBIT_E_LIMIT,
                          "%s: heads of width %zu; at most %d are supported", r->file, c->d / H,
                          MAX_HEAD_WIDTH);
    return ISOBIT_OK;
}

/* The first half of a direction's buckets have one distance each; the others share what is left up
 * to the largest distance, by its logarithm. */
static iso_status check_buckets(const model_reader *r, const model_config *c) {
    if (c->buckets && (c->buckets % 2 || c->buckets < 4))
        return model_fail(r->error, ISOBIT_E_CONFIG,
                          "%s: \"%s\" is %zu; an even number from 4 on is expected", r->file,
                          c->keys->buckets, c->buckets);
    if (c->buckets && c->max_distance <= c->buckets / 2)
        return model_fail(r->error, ISOBIT_E_CONFIG,
                          "%s: \"%s\" is %zu; more than %zu is expected with %zu buckets", r->file,
                          c->keys->max_distance, c->max_distance, c->buckets / 2, c->buckets);
    return ISOBIT_OK;
}

/*
 * Configurations of T5 that transformers 5 writes say tie_word_embeddings: true of every model.
 * Whether logits are scaled is a key of its own (mT5's never are), and a head that is not tied is
 * one that the file has.
 */
static iso_status read_scaled_logits(const model_reader *r, model_config *c) {
    static const char *const key = "scale_decoder_outputs";
    const json_t *version = model_read_key(r, "transformers_version");
    const int since_5 = version && json_is_string(version) && json_string_value(version)[0] == '5';
    if (!c->scale_tied_logits || (!model_read_key(r, key) && !since_5))
        return ISOBIT_OK;
    c->head_if_stored = 1;
    c->tie_logits = 1;
    if (!model_read_key(r, key))
        c->scale_tied_logits = 0;
    return model_read_flag(r, key, &c->scale_tied_logits);
}

/* Which layers have a window, if the file says it of each. */
static iso_status read_layer_types(const model_reader *r, model_config *c) {
    static const char *const key = "layer_types";
    const json_t *list = model_read_key(r, key);
    if (!list)
        return ISOBIT_OK;
    if (!json_is_array(list) || json_array_size(list) != c->decoder_layers)
        return model_read_wrong(r, key, list, "a list with the type of each layer");
    char *layers = model_alloc(r->arena, c->decoder_layers, 1);
    if (!layers)
        return model_fail(r->error, ISOBIT_E_NOMEM, "out of memory");
    for (size_t i = 0; i < c->decoder_layers; i++) {
        const json_t *item = json_array_get(list, i);
        const char *type = json_is_string(item) ? json_string_value(item) : "";
        char text[80];
        layers[i] = strcmp(type, "sliding_attention") == 0;
        if (!layers[i] && strcmp(type, "full_attention") != 0)
            return model_fail(r->error, ISOBIT_E_UNSUPPORTED,
                              "%s: \"%s\" has %s; full_attention and sliding_attention are "
                              "supported",
                              r->file, key, model_json_describe(item, text, sizeof text));
    }
    c->window_layers = layers;
    return ISOBIT_OK;
}

/* Layers with a window, and every so many one without. */
static iso_status read_pattern(const model_reader *r, model_config *c) {
    const char *const key = c->keys->window_pattern;
    iso_status status = key ? model_read_size(r, key, &c->window_pattern, 1, MAX_SIZE) : ISOBIT_OK;
    if (!status)
        status = read_layer_types(r, c);
    if (!status && !c->window_layers) {
        char *layers = model_alloc(r->arena, c->decoder_layers, 1);
        if (!layers)
            return model_fail(r->error, ISOBIT_E_NOMEM, "out of memory");
        for (size_t i = 0; i < c->decoder_layers; i++)
            layers[i] = (i + 1) % c->window_pattern != 0;
        c->window_layers = layers;
    }
    if (!status && !c->window && memchr(c->window_layers, 1, c->decoder_layers))
        status = model_read_wrong(r, c->keys->window, json_object_get(r->root, c->keys->window),
                                  "a number, since some layers have a window,");
    return status;
}

/* How many keys a query sees; where the key is null, all of them. */
static iso_status read_window(const model_reader *r, model_config *c) {
    const model_keys *keys = c->keys;
    int used = !keys->use_window;
    iso_status status = ISOBIT_OK;
    if (json_is_null(json_object_get(r->root, keys->window)))
        c->window = 0;
    if ((status = model_read_size(r, keys->window, &c->window, 1, MAX_SIZE)))
        return status;
    if (c->window_pattern && (status = read_pattern(r, c)))
        return status;
    if (keys->use_window &&
        ((status = model_read_flag(r, keys->use_window, &used)) ||
         (status = model_read_size(r, keys->window_from, &c->window_from, 0, MAX_SIZE)) ||
         (status = read_layer_types(r, c))))
        return status;
    if (!used || c->window >= c->max_positions)
        c->window = 0;
    return ISOBIT_OK;
}

/* A soft cap; where the key is null there is none. */
static iso_status read_cap(const model_reader *r, const char *key, double *cap) {
    if (!key)
        return ISOBIT_OK;
    if (json_is_null(json_object_get(r->root, key)))
        *cap = 0;
    return model_read_real(r, key, cap, 0, 1);
}

/* Of grouped queries several heads share keys and values. */
static iso_status check_key_heads(const model_reader *r, const model_config *c, size_t H) {
    return !c->key_heads || H % c->key_heads == 0
               ? ISOBIT_OK
               : model_fail(r->error, ISOBIT_E_CONFIG, "%s: \"%s\" %zu does not divide \"%s\" %zu",
                            r->file, c->keys->key_heads, c->key_heads, c->keys->decoder_heads, H);
}

void model_config_encoder_alone(model_config *c) {
    c->decoder_layers = c->decoder_heads = c->decoder_ffn = 0;
}

/* Families of both may have folders of an encoder alone. */
static iso_status read_encoder_alone(const model_reader *r, model_config *c) {
    const char *const class =
        json_string_value(json_array_get(model_read_key(r, "architectures"), 0));
    int both = 1;
    if (!c->encoder_class)
        return ISOBIT_OK;
    iso_status status = model_read_flag(r, "is_encoder_decoder", &both);
    if (!status && (!both || (class && strcmp(class, c->encoder_class) == 0)))
        model_config_encoder_alone(c);
    return status;
}

/* Without a matrix between the two. */
static iso_status check_embedding_width(const model_reader *r, const model_config *c) {
    const char *const key = c->keys->embedding_width;
    size_t width = c->d;
    iso_status status = key ? model_read_size(r, key, &width, 1, MAX_SIZE) : ISOBIT_OK;
    return status || width == c->d
               ? status
               : model_fail(r->error, ISOBIT_E_UNSUPPORTED,
                            "%s: \"%s\" is %zu; only the value of \"%s\", %zu, is supported",
                            r->file, key, width, c->keys->d, c->d);
}

static iso_status read_architecture(const model_reader *r, model_config *c) {
    const model_keys *keys = c->keys;
    const struct {
        const char *key;
        size_t *value, most;
    } sizes[] = {
        {keys->d, &c->d, (size_t)1 << 20},
        {keys->encoder_layers, &c->encoder_layers, MAX_LAYERS},
        {keys->decoder_layers, &c->decoder_layers, MAX_LAYERS},
        {keys->encoder_heads, &c->encoder_heads, (size_t)1 << 16},
        {keys->decoder_heads, &c->decoder_heads, (size_t)1 << 16},
        {keys->encoder_ffn, &c->encoder_ffn, (size_t)1 << 24},
        {keys->decoder_ffn, &c->decoder_ffn, (size_t)1 << 24},
        {keys->source_vocabulary, &c->source_vocabulary, MAX_SIZE},
        {keys->target_vocabulary, &c->target_vocabulary, MAX_SIZE},
        {keys->max_positions, &c->max_positions, MAX_POSITIONS},
        {keys->types, &c->types, MAX_SIZE},
        {keys->head_width, &c->head_width, MAX_HEAD_WIDTH},
        {keys->buckets, &c->buckets, (size_t)1 << 16},
        {keys->max_distance, &c->max_distance, MAX_POSITIONS},
        {keys->key_heads, &c->key_heads, (size_t)1 << 16},
    };
    iso_status status;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].key &&
            (status = model_read_size(r, sizes[i].key, sizes[i].value, 1, sizes[i].most)))
            return status;
    if (keys->decoder_layers && !c->decoder_layers)
        c->decoder_layers = c->encoder_layers;
    if ((status = read_encoder_alone(r, c)))
        return status;
    if (!c->source_vocabulary)
        return model_fail(r->error, ISOBIT_E_MISSING, "%s has no key \"%s\"", r->file,
                          keys->source_vocabulary);
    if ((status = check_embedding_width(r, c)) || (status = check_buckets(r, c)) ||
        (status = read_activation(r, c)) ||
        (status = model_read_flag(r, "scale_embedding", &c->scale_embedding)) ||
        (status = model_read_flag(r, "share_encoder_decoder_embeddings", &c->share_embeddings)) ||
        (status = model_read_flag(r, "tie_word_embeddings", &c->tie_logits)))
        return status;
    if ((keys->attention_bias &&
         (status = model_read_flag(r, keys->attention_bias, &c->attention_bias))) ||
        (keys->ffn_bias && (status = model_read_flag(r, keys->ffn_bias, &c->ffn_bias))) ||
        (keys->window && (status = read_window(r, c))) ||
        (keys->rope_theta && (status = model_read_rope(r, c))) ||
        (keys->query_scalar &&
         (status = model_read_real(r, keys->query_scalar, &c->query_scalar, 0, 1))) ||
        (status = read_cap(r, keys->attention_cap, &c->attention_cap)) ||
        (status = read_cap(r, keys->logits_cap, &c->logits_cap)) ||
        (status = read_scaled_logits(r, c)))
        return status;
    if (keys->norm_eps && (status = model_read_real(r, keys->norm_eps, &c->norm_eps, 0, 1)))
        return status;
    if (c->decoder_layers && !c->decoder_ffn && c->d <= ((size_t)1 << 20))
        c->decoder_ffn = 4 * c->d; /* GPT-2 where n_inner is absent */
    if (c->positions_count_offset) {
        if (c->max_positions <= c->position_offset)
            return model_fail(r->error, ISOBIT_E_CONFIG,
                              "%s: \"%s\" is %zu; more than %zu is expected", r->file,
                              keys->max_positions, c->max_positions, c->position_offset);
        c->max_positions -= c->position_offset;
    }
    if (c->share_embeddings || !c->target_vocabulary) {
        if (c->target_vocabulary && c->target_vocabulary != c->source_vocabulary)
            return model_fail(r->error, ISOBIT_E_CONFIG,
                              "%s: \"%s\" is %zu, but embeddings are shared and \"%s\" is %zu",
                              r->file, keys->target_vocabulary, c->target_vocabulary,
                              keys->source_vocabulary, c->source_vocabulary);
        c->target_vocabulary = c->source_vocabulary;
    }
    if (c->encoder_layers && (status = check_heads(r, c, keys->encoder_heads, c->encoder_heads)))
        return status;
    if (!c->decoder_layers)
        return ISOBIT_OK;
    if ((status = check_key_heads(r, c, c->decoder_heads)) ||
        (status = check_heads(r, c, keys->decoder_heads, c->decoder_heads)))
        return status;
    return model_check_rope(r, c);
}

static iso_status check_id(const model_reader *r, const char *key, uint32_t id, size_t V,
                           int needed) {
    if (id == MODEL_NO_ID && needed)
        return model_fail(r->error, ISOBIT_E_MISSING, "%s has no key \"%s\"", r->file, key);
    if (id != MODEL_NO_ID && id >= V)
        return model_fail(r->error, ISOBIT_E_CONFIG,
                          "%s: \"%s\" is %u; the vocabulary has %zu tokens", r->file, key, id, V);
    return ISOBIT_OK;
}

/* Ids that are compared with or fed to the decoder lie in its vocabulary. */
static iso_status check_ids(const model_reader *r, model_config *c) {
    const size_t V = c->target_vocabulary;
    const size_t either = V > c->source_vocabulary ? V : c->source_vocabulary;
    const model_search *s = &c->search;
    iso_status status;
    const int both = c->encoder_layers && c->decoder_layers;
    if (c->start == MODEL_NO_ID && both)
        c->start = c->bos;
    if ((status = check_id(r, "decoder_start_token_id", c->start, V, both)) ||
        (status = check_id(r, "pad_token_id", c->pad, either, 0)) ||
        (status = check_id(r, "bos_token_id", c->bos, either, 0)) ||
        (status = check_id(r, "unk_token_id", c->unk, either, 0)) ||
        (status = check_id(r, "forced_bos_token_id", s->forced_bos, V, 0)))
        return status;
    for (size_t i = 0; i < c->eos.count && !status; i++)
        status = check_id(r, "eos_token_id", c->eos.ids[i], V, 0);
    for (size_t i = 0; i < s->forced_eos.count && !status; i++)
        status = check_id(r, "forced_eos_token_id", s->forced_eos.ids[i], V, 0);
    for (size_t i = 0; i < s->bad_words.count && !status;) {
        size_t n = s->bad_words.ids[i++];
        for (; n && !status; n--)
            status = check_id(r, "bad_words_ids", s->bad_words.ids[i++], V, 0);
    }
    return status;
}

/* What one file of JSON says of a model, but for how it generates. */
static iso_status read_model(const model_reader *r, model_config *config, const model_config *row) {
    iso_status status;
    *config = *row;
    config->search = (model_search){.beams = 1,
                                    .length_penalty = 1,
                                    .repetition_penalty = 1,
                                    .early_stopping = ISOBIT_EARLY_FALSE,
                                    .forced_bos = MODEL_NO_ID};
    if ((status = check_musts(r, config)) || (status = read_architecture(r, config)))
        return status;
    return read_token_ids(r, config);
}

iso_status model_config_from(model_config *config, model_arena *arena, const model_config *row,
                             const char *file, const struct json_t *root, iso_error *error) {
    const model_reader r = {file, root, arena, error};
    iso_status status = read_model(&r, config, row);
    if (!status && !(status = model_read_search(&r, &config->search)))
        status = check_ids(&r, config);
    return status;
}

/* Of a model of several parts the one that is meant, with the ids of tokens that stand beside it.
 */
static iso_status take_part(model_reader *r, const model_config *family, json_t **part) {
    static const char *const beside[] = {"bos_token_id", "eos_token_id", "pad_token_id",
                                         "tie_word_embeddings"};
    const json_t *found = model_read_key(r, family->part);
    if (!json_is_object(found))
        return model_read_wrong(r, family->part, found, "an object");
    json_t *copy = *part = model_json_copy(found);
    int failed = !copy;
    for (size_t i = 0; i < sizeof beside / sizeof *beside && !failed; i++) {
        json_t *value = json_object_get(r->root, beside[i]);
        if (value && !json_is_null(value))
            failed = json_object_set(copy, beside[i], value) != 0;
    }
    if (failed)
        return model_fail(r->error, ISOBIT_E_NOMEM, "out of memory");
    r->root = copy;
    const json_t *type = model_read_key(r, "model_type");
    if (type &&
        (!json_is_string(type) || strcmp(json_string_value(type), family->part_type) != 0)) {
        char text[80];
        return model_fail(r->error, ISOBIT_E_UNSUPPORTED,
                          "%s: \"model_type\" of \"%s\" is %s; only %s is supported", r->file,
                          family->part, model_json_describe(type, text, sizeof text),
                          family->part_type);
    }
    return ISOBIT_OK;
}

iso_status model_config_read(model_config *config, model_arena *arena, const char *directory,
                             iso_error *error) {
    model_reader r = {"config.json", NULL, arena, error},
                 g = {"generation_config.json", NULL, arena, error};
    json_t *root = NULL, *generation = NULL, *part = NULL;
    model_quoted quoted;
    iso_error ignored;
    iso_status status = model_json_load(&root, directory, r.file, MAX_CONFIG_BYTES, error);
    if (status)
        return status;
    r.root = root;
    const json_t *type = model_read_key(&r, "model_type");
    const char *name = json_is_string(type) ? json_string_value(type) : NULL;
    const model_config *family = name ? model_family_find(name) : NULL;
    if (!name) {
        status = model_fail(error, ISOBIT_E_MISSING, "config.json has no string \"model_type\"");
    } else if (!family) {
        status =
            model_fail(error, ISOBIT_E_UNSUPPORTED, "config.json: model_type %s is not one of %s",
                       model_quote(&quoted, name, strlen(name)), model_family_names());
    }
    if (status)
        goto done;
    /* That of the whole folder, also where a part of it is the model. */
    if ((status = model_read_quantization(&r)) ||
        (family->part && (status = take_part(&r, family, &part))) ||
        (status = read_model(&r, config, family)))
        goto done;
    status = model_json_load(&generation, directory, g.file, MAX_CONFIG_BYTES, &ignored);
    if (status == ISOBIT_OK) {
        /* It replaces the generation keys of config.json, all of them, as in transformers. */
        g.root = generation;
        status = read_token_ids(&g, config);
    } else if (status == ISOBIT_E_MISSING) {
        g = r;
        status = ISOBIT_OK;
        if (config->forces_eos && !json_object_get(root, "forced_eos_token_id"))
            config->search.forced_eos = config->eos;
    } else if (error) {
        *error = ignored;
    }
    if (!status && !(status = model_read_search(&g, &config->search)))
        status = check_ids(&g, config);
done:
    json_decref(generation);
    json_decref(part);
    json_decref(root);
    return status;
}
