/* SPDX-License-Identifier: MIT
 *
 * Vocabularies, and the tokens that are added to them, of any file.
 */
#include "pipeline_json.h"

#include <stdlib.h>

/* -------------------------------------------------------------------------------- vocabulary */

iso_status text_pipeline_added(iso_tokenizer *t, text_pipeline *p, size_t own,
                               const json_t *vocabulary, const json_t *added, const char *where,
                               iso_error *error) {
    text_vocabulary *v = &t->vocabulary[TEXT_SOURCE];
    const size_t count = json_array_size(added);
    p->added.tokens = model_alloc(&t->arena, count, sizeof *p->added.tokens);
    char *only_added = model_alloc(&t->arena, v->count, 1);
    if (!p->added.tokens || !only_added)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory for %s", where);
    memset(only_added, 0, v->count);
    for (size_t i = own; i < v->tokens; i++)
        only_added[v->by_token[i].id] = 1;
    p->model.only_added = only_added;
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_array_get(added, i);
        const char *token = text_string_or(one, "content", "");
        const uint32_t id = text_vocabulary_find(v, token, strlen(token));
        if (id == MODEL_NO_ID || !token[0])
            return model_fail(error, ISOBIT_E_CONFIG, "%s: added token %zu is not as expected",
                              where, i);
        const int special = text_json_true(one, "special");
        v->special[id] |= (char)special;
        if (vocabulary)
            only_added[id] = !json_object_get(vocabulary, token);
        p->added.tokens[p->added.count++] =
            (text_added){v->by_id[id].token,
                         v->by_id[id].bytes,
                         id,
                         text_json_true(one, "single_word"),
                         text_json_true(one, "lstrip"),
                         text_json_true(one, "rstrip"),
                         text_json_flag(one, "normalized", !special)};
    }
    return ISOBIT_OK;
}

iso_status text_pipeline_vocabulary(iso_tokenizer *t, text_pipeline *p, const json_t *vocabulary,
                                    const json_t *added, const char *where, iso_error *error) {
    size_t id;
    json_t *all = json_object(), *one;
    int failed = !all || json_object_update(all, (json_t *)(uintptr_t)vocabulary) != 0;
    for (size_t i = 0; !failed && (one = json_array_get(added, i)); i++) {
        const char *token = text_string_or(one, "content", "");
        const json_t *value = json_object_get(one, "id"), *old = json_object_get(all, token);
        if (!value)
            continue;
        if (!model_json_size(value, 0, MODEL_NO_ID - 1, &id) ||
            (old && json_number_value(old) != json_number_value(value))) {
            json_decref(all);
            return model_fail(error, ISOBIT_E_CONFIG, "%s: added token %zu contradicts the others",
                              where, i);
        }
        failed = json_object_set(all, token, (json_t *)(uintptr_t)value) != 0;
    }
    iso_status status =
        failed ? model_fail(error, ISOBIT_E_NOMEM, "out of memory for %s", where)
               : text_vocabulary_read(&t->vocabulary[TEXT_SOURCE], &t->arena, all, where, 1, error);
    json_decref(all);
    const size_t own = t->vocabulary[TEXT_SOURCE].tokens;
    return status ? status : text_pipeline_added(t, p, own, vocabulary, added, where, error);
}

/* -------------------------------------------------------------- properties of added tokens */

/* A list of them knows where each is by its text, and that only while it is updated. CONFIG: the
 * key is no number. */
static iso_status update_one(json_t *list, json_t *places, const json_t *one, const char *key) {
    static const char *const names[] = {"single_word", "lstrip", "rstrip", "normalized", "special"};
    const char *token = text_string_or(one, "content", "");
    const json_t *place = json_object_get(places, token);
    int failed = 0;
    if (!json_is_object(one) || !token[0])
        return ISOBIT_OK;
    if (place) {
        json_t *old = json_array_get(list, (size_t)json_integer_value(place));
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            json_t *value = json_object_get(one, names[i]);
            failed |= value && json_object_set(old, names[i], value);
        }
        return failed ? ISOBIT_E_NOMEM : ISOBIT_OK;
    }
    char *end = NULL;
    const long long id = key ? strtoll(key, &end, 10) : 0;
    if (key && (*end || end == key))
        return ISOBIT_E_CONFIG;
    json_t *copy = model_json_copy(one);
    failed =
        !copy || json_array_append_new(list, copy) ||
        (key && json_object_set_new(copy, "id", json_integer(id))) ||
        json_object_set_new(places, token, json_integer((json_int_t)json_array_size(list) - 1));
    return failed ? ISOBIT_E_NOMEM : ISOBIT_OK;
}

iso_status text_added_update(json_t *list, const json_t *more, const char *where,
                             iso_error *error) {
    json_t *places, *one;
    const char *key;
    size_t i;
    if (!more) /* as mostly; then the places are of no use */
        return ISOBIT_OK;
    places = json_object();
    iso_status status = list && places ? ISOBIT_OK : ISOBIT_E_NOMEM;
    json_array_foreach(list, i, one) {
        if (!status && json_object_set_new(places, text_string_or(one, "content", ""),
                                           json_integer((json_int_t)i)))
            status = ISOBIT_E_NOMEM;
    }
    json_array_foreach((json_t *)(uintptr_t)more, i, one) {
        status = status ? status : update_one(list, places, one, NULL);
    }
    json_object_foreach((json_t *)(uintptr_t)more, key, one) {
        status = status ? status : update_one(list, places, one, key);
    }
    json_decref(places);
    return !status                    ? ISOBIT_OK
           : status == ISOBIT_E_NOMEM ? model_fail(error, status, "out of memory for %s", where)
                                      : model_fail(error, status,
                                                   "tokenizer_config.json: added_tokens_decoder "
                                                   "is not as expected");
}
