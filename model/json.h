/* SPDX-License-Identifier: MIT
 *
 * JSON files of a model directory, other than the header of the weights: size and depth limited,
 * duplicate keys rejected, numbers as doubles.
 */
#ifndef ISOBIT_MODEL_JSON_H
#define ISOBIT_MODEL_JSON_H

#include <isobit/model.h>

#include <jansson.h>

/* The object in directory/name; the caller ends with json_decref. */
iso_status model_json_load(json_t **root, const char *directory, const char *name, size_t limit,
                           iso_error *error);

/* The same for a list. */
iso_status model_json_load_list(json_t **root, const char *directory, const char *name,
                                size_t limit, iso_error *error);

/* The object that a text is; `name` is for messages. */
iso_status model_json_parse(json_t **root, const char *text, size_t bytes, const char *name,
                            iso_error *error);

/* 1 and *out when the value is a whole number in [least, most]. */
int model_json_size(const json_t *value, size_t least, size_t most, size_t *out);

/* What a value is, in a few words, for messages. */
const char *model_json_describe(const json_t *value, char *text, size_t bytes);

/* An object with the same members; NULL: no memory. (jansson's own copy may lack some then.) */
json_t *model_json_copy(const json_t *object);

#endif
