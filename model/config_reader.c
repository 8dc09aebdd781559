/* SPDX-License-Identifier: MIT
 *
 * See config_reader.h.
 */
#include "config_reader.h"

#include <math.h>
#include <stdio.h>

#define MAX_IDS 65536

const json_t *model_read_key(const model_reader *r, const char *key) {
    const json_t *value = json_object_get(r->root, key);
    return value && !json_is_null(value) ? value : NULL;
}

iso_status model_read_wrong(const model_reader *r, const char *key, const json_t *found,
                            const char *expected) {
    char text[80];
    return model_fail(r->error, ISOBIT_E_CONFIG, "%s: \"%s\" is %s; %s is expected", r->file, key,
                      model_json_describe(found, text, sizeof text), expected);
}

iso_status model_read_size(const model_reader *r, const char *key, size_t *out, size_t least,
                           size_t most) {
    const json_t *value = model_read_key(r, key);
    char expected[80];
    if (!value || model_json_size(value, least, most, out))
        return ISOBIT_OK;
    (void)snprintf(expected, sizeof expected, "a whole number from %zu to %zu", least, most);
    return model_read_wrong(r, key, value, expected);
}

iso_status model_read_flag(const model_reader *r, const char *key, int *out) {
    const json_t *value = model_read_key(r, key);
    if (!value)
        return ISOBIT_OK;
    if (!json_is_boolean(value))
        return model_read_wrong(r, key, value, "true or false");
    *out = json_is_true(value);
    return ISOBIT_OK;
}

iso_status model_read_real(const model_reader *r, const char *key, double *out, double least,
                           int above) {
    const json_t *value = model_read_key(r, key);
    if (!value)
        return ISOBIT_OK;
    double x = json_is_number(value) ? json_number_value(value) : NAN;
    /* It will be a float, which may be 0 where the number is not. */
    if (!isfinite(x) || x < least || (above && (float)x <= (float)least) || fabs(x) > 1e30)
        return model_read_wrong(r, key, value, above ? "a number above 0" : "a number in range");
    *out = x;
    return ISOBIT_OK;
}

iso_status model_read_id(const model_reader *r, const char *key, uint32_t *out) {
    size_t value = 0;
    const json_t *found = model_read_key(r, key);
    iso_status status = model_read_size(r, key, &value, 0, MODEL_NO_ID - 1);
    if (found && !status)
        *out = (uint32_t)value;
    return status;
}

iso_status model_read_ids(const model_reader *r, const char *key, model_ids *out) {
    const json_t *value = model_read_key(r, key), *list = json_is_array(value) ? value : NULL;
    if (!value)
        return ISOBIT_OK;
    size_t count = list ? json_array_size(list) : 1, id;
    if (count > MAX_IDS)
        return model_read_wrong(r, key, value, "a shorter list");
    uint32_t *ids = model_alloc(r->arena, count, sizeof *ids);
    if (!ids)
        return model_fail(r->error, ISOBIT_E_NOMEM, "out of memory");
    for (size_t i = 0; i < count; i++) {
        const json_t *item = list ? json_array_get(list, i) : value;
        if (!model_json_size(item, 0, MODEL_NO_ID - 1, &id))
            return model_read_wrong(r, key, item, "a token id or a list of token ids");
        ids[i] = (uint32_t)id;
    }
    *out = (model_ids){ids, count};
    return ISOBIT_OK;
}

iso_status model_read_id_lists(const model_reader *r, const char *key, model_ids *out) {
    const json_t *value = model_read_key(r, key);
    if (!value)
        return ISOBIT_OK;
    size_t total = 0, at = 0, words = json_array_size(value), id;
    if (!json_is_array(value))
        return model_read_wrong(r, key, value, "a list of lists of token ids");
    for (size_t i = 0; i < words; i++) {
        const json_t *word = json_array_get(value, i);
        if (!json_is_array(word) || json_array_size(word) == 0)
            return model_read_wrong(r, key, word, "a list of lists of token ids");
        total += 1 + json_array_size(word);
    }
    if (total > MAX_IDS)
        return model_read_wrong(r, key, value, "a shorter list");
    uint32_t *ids = model_alloc(r->arena, total, sizeof *ids);
    if (!ids)
        return model_fail(r->error, ISOBIT_E_NOMEM, "out of memory");
    for (size_t i = 0; i < words; i++) {
        const json_t *word = json_array_get(value, i);
        ids[at++] = (uint32_t)json_array_size(word);
        for (size_t j = 0; j < json_array_size(word); j++) {
            if (!model_json_size(json_array_get(word, j), 0, MODEL_NO_ID - 1, &id))
                return model_read_wrong(r, key, json_array_get(word, j), "a token id");
            ids[at++] = (uint32_t)id;
        }
    }
    *out = (model_ids){ids, total};
    return ISOBIT_OK;
}
