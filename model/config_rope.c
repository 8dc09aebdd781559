/* SPDX-License-Identifier: MIT
 *
 * Rotary embeddings in config.json, and how they are stretched to more positions.
 */
#include "config_reader.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* A list of numbers from 1e-6 on; *count is how many. */
static iso_status read_factors(const model_reader *r, const char *key, const double **out,
                               size_t *count) {
    const json_t *list = model_read_key(r, key);
    const size_t n = json_array_size(list);
    if (!list || !json_is_array(list) || n == 0 || n > MAX_HEAD_WIDTH)
        return model_read_wrong(r, key, list, "a list of numbers, one for each pair of elements");
    double *factors = model_alloc(r->arena, n, sizeof *factors);
    if (!factors)
        return model_fail(r->error, ISOBIT_E_NOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(list, i);
        factors[i] = json_is_number(item) ? json_number_value(item) : NAN;
        if (!(factors[i] >= 1e-6 && factors[i] <= 1e6))
            return model_read_wrong(r, key, item, "a list of numbers from 1e-6 to 1e6");
    }
    *out = factors;
    *count = n;
    return ISOBIT_OK;
}

/* Rates that turn slowly enough become slower, by a factor; the ramp between is that of the paper
 * (Peng et al. 2023, arXiv 2309.00071). */
static iso_status read_yarn(const model_reader *in, model_rope *rope) {
    double mscale = 0, all = 0;
    int whole = 1;
    iso_status status;
    if ((status = model_read_real(in, "beta_fast", &rope->high, 0, 0)) ||
        (status = model_read_real(in, "beta_slow", &rope->low, 0, 0)) ||
        (status = model_read_real(in, "mscale", &mscale, 0, 0)) ||
        (status = model_read_real(in, "mscale_all_dim", &all, 0, 0)) ||
        (status = model_read_flag(in, "truncate", &whole)))
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
static iso_status read_long(const model_reader *in, model_config *c) {
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
static iso_status read_stretch(const model_reader *r, const model_reader *in, model_config *c) {
    model_rope *rope = &c->rope;
    const int old = rope->kind != MODEL_ROPE_YARN && rope->kind != MODEL_ROPE_LONG;
    const char *const original = "original_max_position_embeddings";
    size_t positions = (size_t)rope->original;
    iso_status status;
    if ((status = model_read_real(in, "factor", &rope->factor, 1, 0)) ||
        (status = model_read_size(in, original, &positions, 1, MAX_POSITIONS)) ||
        (status = model_read_size(r, original, &positions, 1, MAX_POSITIONS)))
        return status;
    rope->original = (double)(positions || old ? positions : c->max_positions);
    if (rope->factor == 0 && !old && rope->original < (double)c->max_positions)
        rope->factor = (double)c->max_positions / rope->original;
    if (!old && (status = model_read_real(in, "attention_factor", &rope->scaling, 0, 1)))
        return status;
    switch (rope->kind) {
    case MODEL_ROPE_YARN: return read_yarn(in, rope);
    case MODEL_ROPE_LONG: return read_long(in, c);
    case MODEL_ROPE_LLAMA3:
        status = model_read_real(in, "low_freq_factor", &rope->low, 0, 1);
        return status ? status : model_read_real(in, "high_freq_factor", &rope->high, 0, 1);
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

static iso_status read_rotary_part(const model_reader *r, model_config *c) {
    const char *const key = c->keys->rotary_part;
    iso_status status = key ? model_read_real(r, key, &c->rotary_part, 0, 1) : ISOBIT_OK;
    return status || c->rotary_part <= 1
               ? status
               : model_read_wrong(r, key, model_read_key(r, key), "a number of at most 1");
}

/* Layers with a window have a base of their own, and no scaling. transformers 5 writes an object
 * for each type of layer: then *all becomes that of the layers without a window. */
static iso_status read_local(const model_reader *r, model_config *c, const char *key,
                             const json_t **all) {
    const json_t *full = json_object_get(*all, "full_attention"),
                 *local = json_object_get(*all, "sliding_attention");
    model_reader in = {r->file, local, r->arena, r->error};
    iso_status status = model_read_real(r, c->keys->local_theta, &c->local_theta, 1, 1);
    if (status || strcmp(key, "rope_parameters") != 0)
        return status;
    if (!json_is_object(*all) || !json_is_object(full) || (local && !json_is_object(local)))
        return model_read_wrong(r, key, *all, "an object with one for each type of layer");
    *all = full;
    if ((status = model_read_real(&in, c->keys->rope_theta, &c->local_theta, 1, 1)))
        return status;
    const json_t *type = model_read_key(&in, "rope_type");
    char text[80];
    return !type || (json_is_string(type) && strcmp(json_string_value(type), "default") == 0)
               ? ISOBIT_OK
               : model_fail(r->error, ISOBIT_E_UNSUPPORTED,
                            "%s: \"%s\" of sliding_attention has the type %s; only default is "
                            "supported",
                            r->file, key, model_json_describe(type, text, sizeof text));
}

iso_status model_read_rope(const model_reader *r, model_config *c) {
    static const struct {
        const char *name;
        model_rope_kind kind;
    } kinds[] = {
        {"default", MODEL_ROPE_PLAIN}, {"dynamic", MODEL_ROPE_DYNAMIC},
        {"linear", MODEL_ROPE_LINEAR}, {"llama3", MODEL_ROPE_LLAMA3},
        {"yarn", MODEL_ROPE_YARN},     {"longrope", MODEL_ROPE_LONG},
        {"su", MODEL_ROPE_LONG}, /* as it was called first */
    };
    const char *const key =
        model_read_key(r, "rope_parameters") ? "rope_parameters" : "rope_scaling";
    const json_t *scaling = model_read_key(r, key);
    iso_status status = model_read_real(r, c->keys->rope_theta, &c->rope_theta, 1, 1);
    if (!status && c->keys->local_theta)
        status = read_local(r, c, key, &scaling);
    model_reader in = {r->file, scaling, r->arena, r->error};
    if (!status)
        status = read_rotary_part(r, c);
    if (status || !scaling)
        return status;
    if (!json_is_object(scaling))
        return model_read_wrong(r, key, scaling, "an object");
    if ((status = model_read_real(&in, c->keys->rope_theta, &c->rope_theta, 1, 1)) ||
        (status = read_rotary_part(&in, c)))
        return status;
    const json_t *type = model_read_key(&in, "rope_type") ? model_read_key(&in, "rope_type")
                                                          : model_read_key(&in, "type");
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
    if (c->rope.kind == MODEL_ROPE_YARN && model_read_key(&in, "short_factor"))
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

iso_status model_check_rope(const model_reader *r, const model_config *c) {
    const size_t pairs =
        model_rotary(c, c->head_width ? c->head_width : c->d / c->decoder_heads) / 2;
    return c->rope.kind != MODEL_ROPE_LONG || c->rope.count == pairs
               ? ISOBIT_OK
               : model_fail(r->error, ISOBIT_E_CONFIG,
                            "%s: \"short_factor\" has %zu numbers; %zu are expected, one for each "
                            "pair of elements of a head",
                            r->file, c->rope.count, pairs);
}
