/* SPDX-License-Identifier: MIT
 *
 * The use of jansson. Its parser recurses, so the depth of the text is measured before; its own
 * conversion of numbers does not depend on the locale.
 */
#include "files.h"
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 64

/* How deep brackets nest; text in strings does not count. */
static size_t depth_of(const char *text, size_t bytes) {
    size_t depth = 0, most = 0;
    for (size_t i = 0, quoted = 0; i < bytes; i++) {
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else if (!quoted && (text[i] == '{' || text[i] == '['))
            depth++;
        else if (!quoted && depth && (text[i] == '}' || text[i] == ']'))
            depth--;
        most = depth > most ? depth : most;
    }
    return most;
}

/* A value of that type: an object or an array. */
static iso_status parse(json_t **root, const char *text, size_t bytes, const char *name,
                        json_type type, iso_error *error) {
    json_error_t where = {0}; /* jansson fails without a word when it lacks memory */
    model_quoted quoted;
    if (depth_of(text, bytes) > MAX_DEPTH)
        return model_fail(error, ISOBIT_E_LIMIT, "%s is nested deeper than %d levels", name,
                          MAX_DEPTH);
    json_t *value =
        json_loadb(text, bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &where);
    if (!value) {
        enum json_error_code code = json_error_code(&where);
        const iso_status status = code == json_error_duplicate_key   ? ISOBIT_E_DUPLICATE
                                  : code == json_error_invalid_utf8  ? ISOBIT_E_UTF8
                                  : code == json_error_out_of_memory ? ISOBIT_E_NOMEM
                                  : !where.text[0]                   ? ISOBIT_E_NOMEM
                                                                     : ISOBIT_E_JSON;
        return model_fail(error, status, "%s, line %d: not valid JSON: %s", name, where.line,
                          model_quote(&quoted, where.text, strlen(where.text)));
    }
    if (json_typeof(value) != type) {
        json_decref(value);
        return model_fail(error, ISOBIT_E_JSON, "%s: %s is expected", name,
                          type == JSON_OBJECT ? "an object" : "a list");
    }
    *root = value;
    return ISOBIT_OK;
}

iso_status model_json_parse(json_t **root, const char *text, size_t bytes, const char *name,
                            iso_error *error) {
    return parse(root, text, bytes, name, JSON_OBJECT, error);
}

static iso_status load(json_t **root, const char *directory, const char *name, size_t limit,
                       json_type type, iso_error *error) {
    model_arena arena = {0};
    char *text;
    size_t bytes;
    iso_status status = model_file_text(&text, &bytes, &arena, directory, name, limit, error);
    if (!status)
        status = parse(root, text, bytes, name, type, error);
    model_arena_free(&arena);
    return status;
}

iso_status model_json_load(json_t **root, const char *directory, const char *name, size_t limit,
                           iso_error *error) {
    return load(root, directory, name, limit, JSON_OBJECT, error);
}

iso_status model_json_load_list(json_t **root, const char *directory, const char *name,
                                size_t limit, iso_error *error) {
    return load(root, directory, name, limit, JSON_ARRAY, error);
}

int model_json_size(const json_t *value, size_t least, size_t most, size_t *out) {
    if (!json_is_number(value))
        return 0;
    double x = json_number_value(value);
    if (!(x >= (double)least && x <= (double)most) || x != floor(x))
        return 0;
    *out = (size_t)x;
    return 1;
}

const char *model_json_describe(const json_t *value, char *text, size_t bytes) {
    double x = json_is_number(value) ? json_number_value(value) : 0;
    model_quoted quoted;
    if (json_is_string(value))
        (void)snprintf(text, bytes, "%s",
                       model_quote(&quoted, json_string_value(value), json_string_length(value)));
    else if (json_is_number(value) && x == floor(x) && fabs(x) < 1e18)
        (void)snprintf(text, bytes, "%lld", (long long)x);
    else
        (void)snprintf(text, bytes, "%s",
                       json_is_number(value)   ? "a number with a fraction, or a huge one"
                       : json_is_true(value)   ? "true"
                       : json_is_false(value)  ? "false"
                       : json_is_array(value)  ? "a list"
                       : json_is_object(value) ? "an object"
                                               : "null");
    return text;
}

json_t *model_json_copy(const json_t *object) {
    json_t *copy = json_copy((json_t *)(uintptr_t)object);
    if (copy && json_object_size(copy) == json_object_size(object))
        return copy;
    json_decref(copy);
    return NULL;
}
