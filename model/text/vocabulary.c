/* SPDX-License-Identifier: MIT
 *
 * Vocabularies: tokens and ids both ways. Sorted arrays rather than hashes: no file can make them
 * slow.
 */
#include "text.h"

#include <stdlib.h>
#include <string.h>

static int compare(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
    const int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);
    return order ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

/* Numbers whose order is that of the tokens, but for those that begin alike. */
static uint64_t start_of(const char *token, size_t bytes) {
    uint64_t start = 0;
    for (size_t i = 0; i < 8; i++)
        start = start << 8 | (i < bytes ? (unsigned char)token[i] : 0);
    return start;
}

static int by_token(const void *a, const void *b) {
    const text_entry *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return compare(x->token, x->bytes, y->token, y->bytes);
}

uint32_t text_vocabulary_find(const text_vocabulary *v, const char *token, size_t bytes) {
    const text_entry key = {token, bytes, 0, start_of(token, bytes)};
    size_t low = 0, high = v->tokens;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const text_entry *entry = &v->by_token[middle];
        const int order = by_token(&key, entry);
        if (order == 0)
            return entry->id;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return MODEL_NO_ID;
}

/* The number of ids: those of the tokens and, if there may be holes, all below the largest one. */
static size_t count_ids(const json_t *object, int sparse) {
    const char *name;
    json_t *value;
    const size_t tokens = json_object_size(object);
    size_t count = tokens, id;
    if (sparse)
        json_object_foreach((json_t *)(uintptr_t)object, name, value) {
            (void)name;
            if (model_json_size(value, 0, 4 * tokens + 65536, &id) && id >= count)
                count = id + 1;
        }
    return count;
}

static iso_status make_room(text_vocabulary *v, model_arena *arena, const json_t *object,
                            char **pool, iso_error *error) {
    const char *name;
    json_t *value;
    size_t bytes = 1;
    json_object_foreach((json_t *)(uintptr_t)object, name, value) { bytes += strlen(name) + 1; }
    v->by_id = model_alloc(arena, v->count, sizeof *v->by_id);
    v->by_token = model_alloc(arena, json_object_size(object), sizeof *v->by_token);
    v->special = model_alloc(arena, v->count, 1);
    *pool = model_alloc(arena, bytes, 1);
    if (!v->by_id || !v->by_token || !v->special || !*pool)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory for the vocabulary");
    for (size_t i = 0; i < v->count; i++)
        v->by_id[i] = (text_entry){.id = (uint32_t)i};
    memset(v->special, 0, v->count);
    return ISOBIT_OK;
}

iso_status text_vocabulary_read(text_vocabulary *v, model_arena *arena, const json_t *object,
                                const char *file, int sparse, iso_error *error) {
    const char *name;
    json_t *value;
    char *pool;
    model_quoted quoted;
    v->count = count_ids(object, sparse);
    iso_status status = make_room(v, arena, object, &pool, error);
    if (status)
        return status;
    v->tokens = 0;
    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        const size_t bytes = strlen(name);
        size_t id;
        model_quote(&quoted, name, bytes);
        if (v->count == 0 || v->count > MODEL_NO_ID ||
            !model_json_size(value, 0, v->count - 1, &id))
            return model_fail(error, ISOBIT_E_CONFIG,
                              "%s: the id of %s is not a whole number below %zu, the number "
                              "of tokens",
                              file, quoted.text, v->count);
        if (v->by_id[id].token)
            return model_fail(error, ISOBIT_E_DUPLICATE, "%s: %s has the id %zu of another", file,
                              quoted.text, id);
        v->by_id[id] =
            (text_entry){memcpy(pool, name, bytes + 1), bytes, (uint32_t)id, start_of(name, bytes)};
        v->by_token[v->tokens++] = v->by_id[id];
        pool += bytes + 1;
    }
    if (v->tokens)
        qsort(v->by_token, v->tokens, sizeof *v->by_token, by_token);
    for (size_t i = 0; i < v->count; i++)
        if (!v->by_id[i].token) {
            v->by_id[i].token = "";
            v->special[i] = 1;
        }
    return ISOBIT_OK;
}

iso_status text_json_optional(json_t **root, const char *directory, const char *name, size_t limit,
                              iso_error *error) {
    iso_error own = {0};
    *root = NULL;
    const iso_status status = model_json_load(root, directory, name, limit, &own);
    if (status == ISOBIT_E_MISSING)
        return ISOBIT_OK;
    if (status && error)
        *error = own;
    return status;
}

const char *text_string_or(const json_t *root, const char *key, const char *otherwise) {
    const json_t *value = json_object_get(root, key);
    if (json_is_object(value))
        value = json_object_get(value, "content");
    return json_is_string(value) ? json_string_value(value) : otherwise;
}

iso_status text_find_special(text_vocabulary *v, const json_t *config, const char *key,
                             const char *name, const char *file, uint32_t *id, iso_error *error) {
    model_quoted quoted;
    name = text_string_or(config, key, name);
    const uint32_t found = text_vocabulary_find(v, name, strlen(name));
    if (found != MODEL_NO_ID) {
        if (!v->special[found] && v->special_count < TEXT_MAX_SPECIALS)
            v->specials[v->special_count++] = found;
        v->special[found] = 1;
        *id = found;
    } else if (*id == MODEL_NO_ID) {
        return model_fail(error, ISOBIT_E_MISSING, "%s has no token %s (%s)", file,
                          model_quote(&quoted, name, strlen(name)), key);
    }
    return ISOBIT_OK;
}
