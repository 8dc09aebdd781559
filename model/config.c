/* SPDX-License-Identifier: MIT
 *
 * config.json and generation_config.json. The reader is tolerant where files in the wild differ
 * (unknown keys are ignored, null counts as absent, whole numbers may be written 4.0, eos_token_id
 * may be a list) and strict about what it uses: ranges, divisibility, ids inside the vocabulary.
 * jansson parses; every number is taken as a double, which holds all whole numbers that we accept
 * and lets files pass that carry numbers beyond 64 bits in keys that nobody reads.
 */
#include "config.h"
#include "json.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define MAX_CONFIG_BYTES ((size_t)4 << 20)
#define MAX_LAYERS 512
#define MAX_SIZE ((size_t)1 << 31) /* of a dimension or a vocabulary */
#define MAX_POSITIONS ((size_t)1 << 20)
#define MAX_IDS 65536
#define MAX_HEAD_WIDTH 512

/* One file while it is read. */
typedef struct reader {
    const char *file;
    const json_t *root;
    model_arena *arena;
    iso_error *error;
} reader;

/* The value of a key; NULL when it is absent or null. */
static const json_t *get(const reader *r, const char *key) {
    const json_t *value = json_object_get(r->root, key);
    return value && !json_is_null(value) ? value : NULL;
}

static iso_status wrong(const reader *r, const char *key, const json_t *found,
                        const char *expected) {
    char text[80];
    return model_fail(r->error, ISOBIT_E_CONFIG, "%s: \"%s\" is %s; %s is expected", r->file, key,
                      model_json_describe(found, text, sizeof text), expected);
}

static iso_status read_size(const reader *r, const char *key, size_t *out, size_t least,
                            size_t most) {
    const json_t *value = get(r, key);
    char expected[80];
    if (!value || model_json_size(value, least, most, out))
        return ISOBIT_OK;
    (void)snprintf(expected, sizeof expected, "a whole number from %zu to %zu", least, most);
    return wrong(r, key, value, expected);
}

static iso_status read_flag(const reader *r, const char *key, int *out) {
    const json_t *value = get(r, key);
    if (!value)
        return ISOBIT_OK;
    if (!json_is_boolean(value))
        return wrong(r, key, value, "true or false");
    *out = json_is_true(value);
    return ISOBIT_OK;
}

/* A finite number of at least `least`, or above it. */
static iso_status read_real(const reader *r, const char *key, double *out, double least,
                            int above) {
    const json_t *value = get(r, key);
    if (!value)
        return ISOBIT_OK;
    double x = json_is_number(value) ? json_number_value(value) : NAN;
    /* It will be a float, which may be 0 where the number is not. */
    if (!isfinite(x) || x < least || (above && (float)x <= (float)least) || fabs(x) > 1e30)
        return wrong(r, key, value, above ? "a number above 0" : "a number in range");
    *out = x;
    return ISOBIT_OK;
}

static iso_status read_id(const reader *r, const char *key, uint32_t *out) {
    size_t value = 0;
    const json_t *found = get(r, key);
    iso_status status = read_size(r, key, &value, 0, MODEL_NO_ID - 1);
    if (found && !status)
        *out = (uint32_t)value;
    return status;
}

/* One id, or a list of ids. */
static iso_status read_ids(const reader *r, const char *key, model_ids *out) {
    const json_t *value = get(r, key), *list = json_is_array(value) ? value : NULL;
    if (!value)
        return ISOBIT_OK;
    size_t count = list ? json_array_size(list) : 1, id;
    if (count > MAX_IDS)
        return wrong(r, key, value, "a shorter list");
    uint32_t *ids = model_alloc(r->arena, count, sizeof *ids);
    if (!ids)
        return model_fail(r->error, ISOBIT_E_NOMEM, "out of memory");
    for (size_t i = 0; i < count; i++) {
        const json_t *item = list ? json_array_get(list, i) : value;
        if (!model_json_size(item, 0, MODEL_NO_ID - 1, &id))
            return wrong(r, key, item, "a token id or a list of token ids");
        ids[i] = (uint32_t)id;
    }
    *out = (model_ids){ids, count};
    return ISOBIT_OK;
}

/* A list of lists of ids, kept as length, ids, length, ids ... */
static iso_status read_bad_words(const reader *r, const char *key, model_ids *out) {
    const json_t *value = get(r, key);
    if (!value)
        return ISOBIT_OK;
    size_t total = 0, at = 0, words = json_array_size(value), id;
    if (!json_is_array(value))
        return wrong(r, key, value, "a list of lists of token ids");
    for (size_t i = 0; i < words; i++) {
        const json_t *word = json_array_get(value, i);
        if (!json_is_array(word) || json_array_size(word) == 0)
            return wrong(r, key, word, "a list of lists of token ids");
        total += 1 + json_array_size(word);
    }
    if (total > MAX_IDS)
        return wrong(r, key, value, "a shorter list");
    uint32_t *ids = model_alloc(r->arena, total, sizeof *ids);
    if (!ids)
        return model_fail(r->error, ISOBIT_E_NOMEM, "out of memory");
    for (size_t i = 0; i < words; i++) {
        const json_t *word = json_array_get(value, i);
        ids[at++] = (uint32_t)json_array_size(word);
        for (size_t j = 0; j < json_array_size(word); j++) {
            if (!model_json_size(json_array_get(word, j), 0, MODEL_NO_ID - 1, &id))
                return wrong(r, key, json_array_get(word, j), "a token id");
            ids[at++] = (uint32_t)id;
        }
    }
    *out = (model_ids){ids, total};
    return ISOBIT_OK;
}

static iso_status read_activation(const reader *r, model_config *c) {
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
    const json_t *value = get(r, key);
    if (value && !json_is_string(value))
        return wrong(r, key, value, "the name of a function");
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

static iso_status read_early_stopping(const reader *r, model_search *search) {
    const json_t *value = get(r, "early_stopping");
    if (!value)
        return ISOBIT_OK;
    if (json_is_boolean(value))
        search->early_stopping = json_is_true(value) ? ISOBIT_EARLY_TRUE : ISOBIT_EARLY_FALSE;
    else if (json_is_string(value) && strcmp(json_string_value(value), "never") == 0)
        search->early_stopping = ISOBIT_EARLY_NEVER;
    else
        return wrong(r, "early_stopping", value, "true, false or \"never\"");
    return ISOBIT_OK;
}

/* A part of 1. Files in the wild have odd ones where sampling is off, and nobody looks at them. */
static iso_status read_part(const reader *r, const char *key, float *out, int used, int zero) {
    const json_t *value = get(r, key);
    if (!value)
        return ISOBIT_OK;
    const double x = json_is_number(value) ? json_number_value(value) : NAN;
    if (!(fabs(x) <= 1e30) || (used && (x > 1 || !(zero ? x >= 0 : (float)x > 0))))
        return wrong(r, key, value,
                     zero ? "a number from 0 to 1" : "a number above 0 and at most 1");
    *out = (float)x;
    return ISOBIT_OK;
}

static iso_status read_sampling(const reader *r, model_search *s) {
    double temperature = 1;
    iso_status status = read_flag(r, "do_sample", &s->sample);
    const int used = s->sample;
    s->warp = (model_warp){.top_k = 50, .top_p = 1}; /* as in transformers, where a null is none */
    if (json_is_null(json_object_get(r->root, "top_k")))
        s->warp.top_k = 0;
    if (status || (status = read_real(r, "temperature", &temperature, used ? 0 : -1e30, used)) ||
        (status = read_size(r, "top_k", &s->warp.top_k, 0, MAX_SIZE)) ||
        (status = read_part(r, "top_p", &s->warp.top_p, used, 0)))
        return status;
    s->warp.temperature = (float)temperature;
    return read_part(r, "min_p", &s->warp.min_p, used, 1);
}

static iso_status read_search(const reader *r, model_search *s) {
    double length_penalty = 1, repetition_penalty = 1;
    iso_status status;
    if ((status = read_size(r, "num_beams", &s->beams, 1, 1024)) ||
        (status = read_size(r, "max_length", &s->max_length, 2, MAX_SIZE)) ||
        (status = read_size(r, "max_new_tokens", &s->max_new_tokens, 1, MAX_SIZE)) ||
        (status = read_size(r, "min_length", &s->min_length, 0, MAX_SIZE)) ||
        (status = read_size(r, "min_new_tokens", &s->min_new_tokens, 0, MAX_SIZE)) ||
        (status = read_size(r, "no_repeat_ngram_size", &s->no_repeat_ngram, 0, MAX_SIZE)) ||
        (status = read_real(r, "length_penalty", &length_penalty, -1e6, 0)) ||
        (status = read_real(r, "repetition_penalty", &repetition_penalty, 0, 1)) ||
        (status = read_early_stopping(r, s)) || (status = read_sampling(r, s)) ||
        (status = read_flag(r, "renormalize_logits", &s->renormalize)) ||
        (status = read_id(r, "forced_bos_token_id", &s->forced_bos)) ||
        (status = read_ids(r, "forced_eos_token_id", &s->forced_eos)))
        return status;
    s->length_penalty = (float)length_penalty;
    s->repetition_penalty = (float)repetition_penalty;
    return read_bad_words(r, "bad_words_ids", &s->bad_words);
}

/* Variants of a family that would compute something else are refused by name. */
static iso_status check_musts(const reader *r, const model_config *c) {
    for (const model_must *m = c->must; m < c->must + sizeof c->must / sizeof *c->must; m++) {
        const json_t *value = m->key ? get(r, m->key) : NULL;
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

static iso_status read_token_ids(const reader *r, model_config *c) {
    iso_status status;
    if ((status = read_id(r, "pad_token_id", &c->pad)) ||
        (status = read_id(r, "bos_token_id", &c->bos)) ||
        (status = read_id(r, "unk_token_id", &c->unk)) ||
        (status = read_id(r, "decoder_start_token_id", &c->start)))
        return status;
    return read_ids(r, "eos_token_id", &c->eos);
}

/* Heads that divide the width of the model, unless they have a width of their own. */
static iso_status check_heads(const reader *r, const model_config *c, const char *key, size_t H) {
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
static iso_status check_buckets(const reader *r, const model_config *c) {
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
static iso_status read_scaled_logits(const reader *r, model_config *c) {
    static const char *const key = "scale_decoder_outputs";
    const json_t *version = get(r, "transformers_version");
    const int since_5 = version && json_is_string(version) && json_string_value(version)[0] == '5';
    if (!c->scale_tied_logits || (!get(r, key) && !since_5))
        return ISOBIT_OK;
    c->head_if_stored = 1;
    c->tie_logits = 1;
    if (!get(r, key))
        c->scale_tied_logits = 0;
    return read_flag(r, key, &c->scale_tied_logits);
}

/* A list of numbers from 1e-6 on; *count is how many. */
static iso_status read_factors(const reader *r, const char *key, const double **out,
                               size_t *count) {
    const json_t *list = get(r, key);
    const size_t n = json_array_size(list);
    if (!list || !json_is_array(list) || n == 0 || n > MAX_HEAD_WIDTH)
        return wrong(r, key, list, "a list of numbers, one for each pair of elements");
    double *factors = model_alloc(r->arena, n, sizeof *factors);
    if (!factors)
        return model_fail(r->error, ISOBIT_E_NOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(list, i);
        factors[i] = json_is_number(item) ? json_number_value(item) : NAN;
        if (!(factors[i] >= 1e-6 && factors[i] <= 1e6))
            return wrong(r, key, item, "a list of numbers from 1e-6 to 1e6");
    }
    *out = factors;
    *count = n;
    return ISOBIT_OK;
}

/* Rates that turn slowly enough become slower, by a factor; the ramp between is that of the paper
 * (Peng et al. 2023, arXiv 2309.00071). */
static iso_status read_yarn(const reader *in, model_rope *rope) {
    double mscale = 0, all = 0;
    int whole = 1;
    iso_status status;
    if ((status = read_real(in, "beta_fast", &rope->high, 0, 0)) ||
        (status = read_real(in, "beta_slow", &rope->low, 0, 0)) ||
        (status = read_real(in, "mscale", &mscale, 0, 0)) ||
        (status = read_real(in, "mscale_all_dim", &all, 0, 0)) ||
        (status = read_flag(in, "truncate", &whole)))
        return status;
    rope->high = rope->high == 0 ? 32 : rope->high;
    rope->low = rope->low == 0 ? 1 : rope->low;
    rope->fraction = !whole;
    if (rope->scaling == 0 && rope->factor > 1) {
        const double more = 0.1 * log(rope->factor);
        rope->scaling = mscale > 0 && all > 0 ? (more * mscale + 1) / (more * all + 1) : more + 1;
    }
    return ISOBIT_OK;
}

/*
 * Factors for each rate (Ding et al. 2024, arXiv 2402.13753). Of a text longer than the original
 * positions all rates are others, those of its beginning too: a cache would not fit, so there are
 * no more positions than that, unless they are asked for from the start (model_config_lengthen).
 */
static iso_status read_long(const reader *in, model_config *c) {
    model_rope *rope = &c->rope;
    const double *longer;
    size_t count;
    iso_status status;
    if ((status = read_factors(in, "short_factor", &rope->slower, &rope->count)) ||
        (status = read_factors(in, "long_factor", &longer, &count)))
        return status;
    if (count != rope->count)
        return model_fail(in->error, ISOBIT_E_CONFIG,
                          "%s: \"short_factor\" has %zu numbers, \"long_factor\" %zu", in->file,
                          rope->count, count);
    rope->slower_longer = longer;
    rope->all = c->max_positions;
    if (rope->original < (double)c->max_positions)
        c->max_positions = (size_t)rope->original;
    if (rope->scaling == 0 && rope->factor > 1 && rope->original > 1)
        rope->scaling = sqrt(1 + log(rope->factor) / log(rope->original));
    return ISOBIT_OK;
}

/*
 * The numbers of "rope_scaling". The original positions may stand beside it. Where a factor and the
 * ratio of all positions to the original ones are not the same, the factor counts.
 */
static iso_status read_stretch(const reader *r, const reader *in, model_config *c) {
    model_rope *rope = &c->rope;
    const int old = rope->kind != MODEL_ROPE_YARN && rope->kind != MODEL_ROPE_LONG;
    const char *const original = "original_max_position_embeddings";
    size_t positions = (size_t)rope->original;
    iso_status status;
    if ((status = read_real(in, "factor", &rope->factor, 1, 0)) ||
        (status = read_size(in, original, &positions, 1, MAX_POSITIONS)) ||
        (status = read_size(r, original, &positions, 1, MAX_POSITIONS)))
        return status;
    rope->original = (double)(positions || old ? positions : c->max_positions);
    if (rope->factor == 0 && !old && rope->original < (double)c->max_positions)
        rope->factor = (double)c->max_positions / rope->original;
    if (!old && (status = read_real(in, "attention_factor", &rope->scaling, 0, 1)))
        return status;
    switch (rope->kind) {
    case MODEL_ROPE_YARN: return read_yarn(in, rope);
    case MODEL_ROPE_LONG: return read_long(in, c);
    case MODEL_ROPE_LLAMA3:
        status = read_real(in, "low_freq_factor", &rope->low, 0, 1);
        return status ? status : read_real(in, "high_freq_factor", &rope->high, 0, 1);
    case MODEL_ROPE_DYNAMIC:
    case MODEL_ROPE_LINEAR:
    case MODEL_ROPE_PLAIN: break;
    }
    return ISOBIT_OK;
}

/* Whether the numbers are there, and can be true together. */
static int is_stretch(const model_rope *rope) {
    switch (rope->kind) {
    case MODEL_ROPE_LLAMA3:
        return rope->factor > 0 && rope->low > 0 && rope->original > 0 && rope->high > rope->low;
    case MODEL_ROPE_YARN: return rope->factor > 0 && rope->high >= rope->low;
    case MODEL_ROPE_DYNAMIC:
    case MODEL_ROPE_LINEAR: return rope->factor > 0;
    case MODEL_ROPE_LONG:
    case MODEL_ROPE_PLAIN: break;
    }
    return 1;
}

static iso_status read_rotary_part(const reader *r, model_config *c) {
    const char *const key = c->keys->rotary_part;
    iso_status status = key ? read_real(r, key, &c->rotary_part, 0, 1) : ISOBIT_OK;
    return status || c->rotary_part <= 1 ? status
                                         : wrong(r, key, get(r, key), "a number of at most 1");
}

/*
 * "rope_theta", and "rope_scaling" of the types that are known. transformers 5 writes one object
 * with both instead, "rope_parameters".
 */
static iso_status read_rope(const reader *r, model_config *c) {
    static const struct {
        const char *name;
        model_rope_kind kind;
    } kinds[] = {
        {"default", MODEL_ROPE_PLAIN}, {"dynamic", MODEL_ROPE_DYNAMIC},
        {"linear", MODEL_ROPE_LINEAR}, {"llama3", MODEL_ROPE_LLAMA3},
        {"yarn", MODEL_ROPE_YARN},     {"longrope", MODEL_ROPE_LONG},
        {"su", MODEL_ROPE_LONG}, /* as it was called first */
    };
    const char *const key = get(r, "rope_parameters") ? "rope_parameters" : "rope_scaling";
    const json_t *scaling = get(r, key);
    reader in = {r->file, scaling, r->arena, r->error};
    iso_status status = read_real(r, c->keys->rope_theta, &c->rope_theta, 1, 1);
    if (!status)
        status = read_rotary_part(r, c);
    if (status || !scaling)
        return status;
    if (!json_is_object(scaling))
        return wrong(r, key, scaling, "an object");
    if ((status = read_real(&in, c->keys->rope_theta, &c->rope_theta, 1, 1)) ||
        (status = read_rotary_part(&in, c)))
        return status;
    const json_t *type = get(&in, "rope_type") ? get(&in, "rope_type") : get(&in, "type");
    const char *name = type && json_is_string(type) ? json_string_value(type) : "";
    model_quoted quoted;
    size_t i = 0;
    while (i < sizeof kinds / sizeof *kinds && strcmp(name, kinds[i].name) != 0)
        i++;
    if (i == sizeof kinds / sizeof *kinds)
        return model_fail(r->error, ISOBIT_E_UNSUPPORTED,
                          "%s: \"%s\" has the type %s; default, linear, dynamic, llama3, yarn and "
                          "longrope are supported",
                          r->file, key, model_quote(&quoted, name, strlen(name)));
    c->rope.kind = kinds[i].kind;
    if (c->rope.kind == MODEL_ROPE_YARN && get(&in, "short_factor"))
        c->rope.kind = MODEL_ROPE_LONG; /* Phi-3 had that name for it for a time */
    if (c->rope.kind == MODEL_ROPE_PLAIN)
        return ISOBIT_OK;
    status = read_stretch(r, &in, c);
    if (!status && !is_stretch(&c->rope))
        return model_fail(r->error, ISOBIT_E_CONFIG,
                          "%s: \"%s\" of the type %s lacks numbers, or they contradict each other",
                          r->file, key, name);
    return status;
}

iso_status model_config_lengthen(model_config *c, size_t positions, iso_error *error) {
    model_rope *rope = &c->rope;
    if (positions <= c->max_positions)
        return ISOBIT_OK;
    if (rope->kind == MODEL_ROPE_DYNAMIC && c->keys->window)
        return model_fail(error, ISOBIT_E_UNSUPPORTED,
                          "positions is %zu; with sliding windows and dynamic rotary embeddings "
                          "more than %zu are not supported",
                          positions, c->max_positions);
    const size_t most = rope->kind == MODEL_ROPE_LONG      ? rope->all
                        : rope->kind == MODEL_ROPE_DYNAMIC ? MAX_POSITIONS
                                                           : c->max_positions;
    if (positions > most)
        return model_fail(error, ISOBIT_E_LIMIT, "positions is %zu; the model has at most %zu",
                          positions, most);
    if (rope->kind == MODEL_ROPE_LONG)
        rope->slower = rope->slower_longer;
    else
        rope->reached = (double)positions / (double)c->max_positions;
    c->max_positions = positions;
    return ISOBIT_OK;
}

/* Factors for each pair of elements of a head that turn. */
static iso_status check_rope(const reader *r, const model_config *c) {
    const size_t pairs =
        model_rotary(c, c->head_width ? c->head_width : c->d / c->decoder_heads) / 2;
    return c->rope.kind != MODEL_ROPE_LONG || c->rope.count == pairs
               ? ISOBIT_OK
               : model_fail(r->error, ISOBIT_E_CONFIG,
                            "%s: \"short_factor\" has %zu numbers; %zu are expected, one for each "
                            "pair of elements of a head",
                            r->file, c->rope.count, pairs);
}

/* Which layers have a window, if the file says it of each. */
static iso_status read_layer_types(const reader *r, model_config *c) {
    static const char *const key = "layer_types";
    const json_t *list = get(r, key);
    if (!list)
        return ISOBIT_OK;
    if (!json_is_array(list) || json_array_size(list) != c->decoder_layers)
        return wrong(r, key, list, "a list with the type of each layer");
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

/* How many keys a query sees; where the key is null, all of them. */
static iso_status read_window(const reader *r, model_config *c) {
    const model_keys *keys = c->keys;
    int used = !keys->use_window;
    iso_status status = ISOBIT_OK;
    if (json_is_null(json_object_get(r->root, keys->window)))
        c->window = 0;
    if ((status = read_size(r, keys->window, &c->window, 1, MAX_SIZE)))
        return status;
    if (keys->use_window &&
        ((status = read_flag(r, keys->use_window, &used)) ||
         (status = read_size(r, keys->window_from, &c->window_from, 0, MAX_SIZE)) ||
         (status = read_layer_types(r, c))))
        return status;
    if (!used || c->window >= c->max_positions)
        c->window = 0;
    return ISOBIT_OK;
}

/* Of grouped queries several heads share keys and values. */
static iso_status check_key_heads(const reader *r, const model_config *c, size_t H) {
    return !c->key_heads || H % c->key_heads == 0
               ? ISOBIT_OK
               : model_fail(r->error, ISOBIT_E_CONFIG, "%s: \"%s\" %zu does not divide \"%s\" %zu",
                            r->file, c->keys->key_heads, c->key_heads, c->keys->decoder_heads, H);
}

/* Families of both may have folders of an encoder alone. */
static iso_status read_encoder_alone(const reader *r, model_config *c) {
    const char *const class = json_string_value(json_array_get(get(r, "architectures"), 0));
    int both = 1;
    if (!c->encoder_class)
        return ISOBIT_OK;
    iso_status status = read_flag(r, "is_encoder_decoder", &both);
    if (!status && (!both || (class && strcmp(class, c->encoder_class) == 0)))
        c->decoder_layers = c->decoder_heads = c->decoder_ffn = 0;
    return status;
}

/* Without a matrix between the two. */
static iso_status check_embedding_width(const reader *r, const model_config *c) {
    const char *const key = c->keys->embedding_width;
    size_t width = c->d;
    iso_status status = key ? read_size(r, key, &width, 1, MAX_SIZE) : ISOBIT_OK;
    return status || width == c->d
               ? status
               : model_fail(r->error, ISOBIT_E_UNSUPPORTED,
                            "%s: \"%s\" is %zu; only the value of \"%s\", %zu, is supported",
                            r->file, key, width, c->keys->d, c->d);
}

static iso_status read_architecture(const reader *r, model_config *c) {
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
        if (sizes[i].key && (status = read_size(r, sizes[i].key, sizes[i].value, 1, sizes[i].most)))
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
        (status = read_flag(r, "scale_embedding", &c->scale_embedding)) ||
        (status = read_flag(r, "share_encoder_decoder_embeddings", &c->share_embeddings)) ||
        (status = read_flag(r, "tie_word_embeddings", &c->tie_logits)))
        return status;
    if ((keys->attention_bias &&
         (status = read_flag(r, keys->attention_bias, &c->attention_bias))) ||
        (keys->ffn_bias && (status = read_flag(r, keys->ffn_bias, &c->ffn_bias))) ||
        (keys->window && (status = read_window(r, c))) ||
        (keys->rope_theta && (status = read_rope(r, c))) || (status = read_scaled_logits(r, c)))
        return status;
    if (keys->norm_eps && (status = read_real(r, keys->norm_eps, &c->norm_eps, 0, 1)))
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
    return check_rope(r, c);
}

static iso_status check_id(const reader *r, const char *key, uint32_t id, size_t V, int needed) {
    if (id == MODEL_NO_ID && needed)
        return model_fail(r->error, ISOBIT_E_MISSING, "%s has no key \"%s\"", r->file, key);
    if (id != MODEL_NO_ID && id >= V)
        return model_fail(r->error, ISOBIT_E_CONFIG,
                          "%s: \"%s\" is %u; the vocabulary has %zu tokens", r->file, key, id, V);
    return ISOBIT_OK;
}

/* Ids that are compared with or fed to the decoder lie in its vocabulary. */
static iso_status check_ids(const reader *r, model_config *c) {
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
static iso_status read_model(const reader *r, model_config *config, const model_config *row) {
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
    const reader r = {file, root, arena, error};
    iso_status status = read_model(&r, config, row);
    if (!status && !(status = read_search(&r, &config->search)))
        status = check_ids(&r, config);
    return status;
}

iso_status model_config_read(model_config *config, model_arena *arena, const char *directory,
                             iso_error *error) {
    reader r = {"config.json", NULL, arena, error},
           g = {"generation_config.json", NULL, arena, error};
    json_t *root = NULL, *generation = NULL;
    model_quoted quoted;
    iso_error ignored;
    iso_status status = model_json_load(&root, directory, r.file, MAX_CONFIG_BYTES, error);
    if (status)
        return status;
    r.root = root;
    const json_t *type = get(&r, "model_type");
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
    if ((status = read_model(&r, config, family)))
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
    if (!status && !(status = read_search(&g, &config->search)))
        status = check_ids(&g, config);
done:
    json_decref(generation);
    json_decref(root);
    return status;
}
