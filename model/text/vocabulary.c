/* SPDX-License-Identifier: MIT
 *
 * Vocabularies: tokens and ids both ways. Tokens are found by their hashes or, where a file has too
 * many with the same one, in their order.
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
    const unsigned char *s = (const unsigned char *)token;
    uint64_t start = 0;
    if (bytes >= 8)
        return (uint64_t)s[0] << 56 | (uint64_t)s[1] << 48 | (uint64_t)s[2] << 40 |
               (uint64_t)s[3] << 32 | (uint64_t)s[4] << 24 | (uint64_t)s[5] << 16 |
               (uint64_t)s[6] << 8 | (uint64_t)s[7];
    for (size_t i = 0; i < bytes; i++)
        start |= (uint64_t)s[i] << (56 - 8 * i);
    return start;
}

static int by_token(const void *a, const void *b) {
    const text_entry *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return compare(x->token, x->bytes, y->token, y->bytes);
}

uint64_t text_token_hash(const char *token, size_t bytes) {
    uint64_t hash = text_mix(start_of(token, bytes) ^ bytes);
    for (size_t i = 8; i < bytes; i += 8)
        hash = text_mix(hash ^ start_of(token + i, bytes - i));
    return hash;
}

/* ----------------------------------------------------------------------------------- finding */

/* The slot with the token, or the empty one for it; NULL: there is neither. */
static uint32_t *find_slot(const text_vocabulary *v, const char *token, size_t bytes) {
    const uint64_t hash = text_token_hash(token, bytes);
    const uint64_t start = start_of(token, bytes);
    for (size_t step = 0; step < TEXT_WINDOW; step++) {
        uint32_t *slot = text_index_slot(&v->index, hash, step);
        if (!*slot)
            return slot;
        const text_entry *entry = &v->by_token[*slot - 1];
        if (entry->start == start && entry->bytes == bytes &&
            memcmp(entry->token, token, bytes) == 0)
            return slot;
    }
    return NULL;
}

static const text_entry *find(const text_vocabulary *v, const char *token, size_t bytes) {
    if (v->index.slots) {
        const uint32_t *slot = find_slot(v, token, bytes);
        return slot && *slot ? &v->by_token[*slot - 1] : NULL;
    }
    const text_entry key = {token, bytes, 0, start_of(token, bytes)};
    return v->tokens ? bsearch(&key, v->by_token, v->tokens, sizeof key, by_token) : NULL;
}

uint32_t text_vocabulary_find(const text_vocabulary *v, const char *token, size_t bytes) {
    const text_entry *entry = find(v, token, bytes);
    return entry ? entry->id : MODEL_NO_ID;
}

/* ---------------------------------------------------------------------------------- building */

int text_vocabulary_begin(text_vocabulary *v, model_arena *arena, size_t room) {
    v->tokens = 0;
    v->by_token = model_alloc(arena, room, sizeof *v->by_token);
    text_index_begin(&v->index, arena, room);
    return v->by_token != NULL;
}

int text_vocabulary_put(text_vocabulary *v, const char *token, size_t bytes, uint32_t id) {
    uint32_t *slot = v->index.slots ? find_slot(v, token, bytes) : NULL;
    const int fresh = slot && !*slot;
    v->by_token[v->tokens++] = (text_entry){token, bytes, id, start_of(token, bytes)};
    if (fresh)
        *slot = (uint32_t)v->tokens;
    return fresh;
}

void text_vocabulary_sort(text_vocabulary *v) {
    v->index.slots = NULL;
    if (v->tokens)
        qsort(v->by_token, v->tokens, sizeof *v->by_token, by_token);
}

iso_status text_vocabulary_number(text_vocabulary *v, model_arena *arena, size_t count,
                                  const char *file, iso_error *error) {
    model_quoted quoted;
    v->count = count;
    v->by_id = model_alloc(arena, count, sizeof *v->by_id);
    v->special = model_alloc(arena, count, 1);
    if (!v->by_id || !v->special)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory for the vocabulary");
    for (size_t i = 0; i < count; i++)
        v->by_id[i] = (text_entry){.id = (uint32_t)i};
    memset(v->special, 0, count);
    for (size_t i = 0; i < v->tokens; i++) {
        const text_entry *entry = &v->by_token[i];
        if (entry->id >= count)
            return model_fail(error, ISOBIT_E_CONFIG,
                              "%s: the id of %s is not a whole number below %zu, the number "
                              "of tokens",
                              file, model_quote(&quoted, entry->token, entry->bytes), count);
        if (v->by_id[entry->id].token)
            return model_fail(error, ISOBIT_E_DUPLICATE, "%s: %s has the id %zu of another", file,
                              model_quote(&quoted, entry->token, entry->bytes), (size_t)entry->id);
        v->by_id[entry->id] = *entry;
    }
    for (size_t i = 0; i < count; i++)
        if (!v->by_id[i].token) {
            v->by_id[i].token = "";
            v->special[i] = 1;
        }
    return ISOBIT_OK;
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
            if (model_json_size(value, 0, TEXT_MAX_ID(tokens), &id) && id >= count)
                count = id + 1;
        }
    return count;
}

iso_status text_vocabulary_read(text_vocabulary *v, model_arena *arena, const json_t *object,
                                const char *file, int sparse, iso_error *error) {
    const char *name;
    json_t *value;
    size_t bytes = 1, id;
    int unique = 1;
    const size_t count = count_ids(object, sparse);
    json_object_foreach((json_t *)(uintptr_t)object, name, value) { bytes += strlen(name) + 1; }
    char *pool = model_alloc(arena, bytes, 1);
    if (!text_vocabulary_begin(v, arena, json_object_size(object)) || !pool)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory for the vocabulary");
    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        bytes = strlen(name);
        if (count > MODEL_NO_ID || !model_json_size(value, 0, count - 1, &id))
            id = MODEL_NO_ID;
        unique &= text_vocabulary_put(v, memcpy(pool, name, bytes + 1), bytes, (uint32_t)id);
        pool += bytes + 1;
    }
    if (!unique) /* in the table */
        text_vocabulary_sort(v);
    return text_vocabulary_number(v, arena, count, file, error);
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
