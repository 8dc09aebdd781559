/* SPDX-License-Identifier: MIT
 *
 * How a model generates: the keys of generation_config.json, or of config.json where that is
 * absent.
 */
#include "config_reader.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static iso_status read_early_stopping(const model_reader *r, model_search *search) {
    const json_t *value = model_read_key(r, "early_stopping");
    if (!value)
        return ISOBIT_OK;
    if (json_is_boolean(value))
        search->early_stopping = json_is_true(value) ? ISOBIT_EARLY_TRUE : ISOBIT_EARLY_FALSE;
    else if (json_is_string(value) && strcmp(json_string_value(value), "never") == 0)
        search->early_stopping = ISOBIT_EARLY_NEVER;
    else
        return model_read_wrong(r, "early_stopping", value, "true, false or \"never\"");
    return ISOBIT_OK;
}

/* A part of 1. Files in the wild have odd ones where sampling is off, and nobody looks at them. */
static iso_status read_part(const model_reader *r, const char *key, float *out, int used,
                            int zero) {
    const json_t *value = model_read_key(r, key);
    if (!value)
        return ISOBIT_OK;
    const double x = json_is_number(value) ? json_number_value(value) : NAN;
    if (!(fabs(x) <= 1e30) || (used && (x > 1 || !(zero ? x >= 0 : (float)x > 0))))
        return model_read_wrong(r, key, value,
                                zero ? "a number from 0 to 1" : "a number above 0 and at most 1");
    *out = (float)x;
    return ISOBIT_OK;
}

static iso_status read_sampling(const model_reader *r, model_search *s) {
    double temperature = 1;
    iso_status status = model_read_flag(r, "do_sample", &s->sample);
    const int used = s->sample;
    s->warp = (model_warp){.top_k = 50, .top_p = 1}; /* as in transformers, where a null is none */
    if (json_is_null(json_object_get(r->root, "top_k")))
        s->warp.top_k = 0;
    if (status ||
        (status = model_read_real(r, "temperature", &temperature, used ? 0 : -1e30, used)) ||
        (status = model_read_size(r, "top_k", &s->warp.top_k, 0, MAX_SIZE)) ||
        (status = read_part(r, "top_p", &s->warp.top_p, used, 0)))
        return status;
    s->warp.temperature = (float)temperature;
    return read_part(r, "min_p", &s->warp.min_p, used, 1);
}

iso_status model_read_search(const model_reader *r, model_search *s) {
    double length_penalty = 1, repetition_penalty = 1;
    iso_status status;
    if ((status = model_read_size(r, "num_beams", &s->beams, 1, 1024)) ||
        (status = model_read_size(r, "max_length", &s->max_length, 2, MAX_SIZE)) ||
        (status = model_read_size(r, "max_new_tokens", &s->max_new_tokens, 1, MAX_SIZE)) ||
        (status = model_read_size(r, "min_length", &s->min_length, 0, MAX_SIZE)) ||
        (status = model_read_size(r, "min_new_tokens", &s->min_new_tokens, 0, MAX_SIZE)) ||
        (status = model_read_size(r, "no_repeat_ngram_size", &s->no_repeat_ngram, 0, MAX_SIZE)) ||
        (status = model_read_real(r, "length_penalty", &length_penalty, -1e6, 0)) ||
        (status = model_read_real(r, "repetition_penalty", &repetition_penalty, 0, 1)) ||
        (status = read_early_stopping(r, s)) || (status = read_sampling(r, s)) ||
        (status = model_read_flag(r, "renormalize_logits", &s->renormalize)) ||
        (status = model_read_id(r, "forced_bos_token_id", &s->forced_bos)) ||
        (status = model_read_ids(r, "forced_eos_token_id", &s->forced_eos)))
        return status;
    s->length_penalty = (float)length_penalty;
    s->repetition_penalty = (float)repetition_penalty;
    return model_read_id_lists(r, "bad_words_ids", &s->bad_words);
}
