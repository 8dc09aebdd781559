/* SPDX-License-Identifier: MIT
 *
 * "quantization_config" in config.json, as compressed-tensors writes it: which kinds of int8 are
 * read. Which tensors are int8 the file of the weights says itself.
 */
#include "config_reader.h"

#include <stdio.h>
#include <string.h>

/* What an object must say: a text, or without one a number, or a truth value. */
typedef struct wanted {
    const char *key, *text;
    int number, flag; /* the latter: the number is a truth value */
    int optional;
} wanted;

static int is_wanted(const json_t *found, const wanted *w) {
    return w->text   ? json_is_string(found) && strcmp(json_string_value(found), w->text) == 0
           : w->flag ? json_is_boolean(found) && json_is_true(found) == w->number
                     : json_number_value(found) == w->number;
}

static iso_status refuse(const model_reader *r, const char *where, const char *key,
                         const json_t *found, const char *expected) {
    char text[100];
    return model_fail(r->error, ISOBIT_E_UNSUPPORTED,
                      "%s: \"quantization_config\", \"%s\" of %s is %s; only %s is supported",
                      r->file, key, where,
                      found ? model_json_describe(found, text, sizeof text) : "absent", expected);
}

static json_t *present(const json_t *object, const char *key) {
    json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

static iso_status check_all(const model_reader *r, const char *where, const json_t *object,
                            const wanted *all, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const json_t *found = present(object, all[i].key);
        char number[16];
        if (found ? is_wanted(found, &all[i]) : all[i].optional)
            continue;
        (void)snprintf(number, sizeof number, "%d", all[i].number);
        return refuse(r, where, all[i].key, found,
                      all[i].text   ? all[i].text
                      : all[i].flag ? all[i].number ? "true" : "false"
                                    : number);
    }
    return ISOBIT_OK;
}

/* Numbers of 8 bits, with what decides where a scale holds. */
static iso_status check_numbers(const model_reader *r, const char *where, const json_t *object,
                                const char *strategy, int dynamic) {
    const wanted all[] = {{"num_bits", NULL, 8, 0, 0},
                          {"type", "int", 0, 0, 0},
                          {"symmetric", NULL, 1, 1, 0},
                          {"strategy", strategy, 0, 0, 0},
                          {"dynamic", NULL, dynamic, 1, !dynamic}};
    if (!json_is_object(object))
        return refuse(r, "a group", where, object, "an object");
    return check_all(r, where, object, all, sizeof all / sizeof *all);
}

static iso_status check_group(const model_reader *r, const json_t *group) {
    static const wanted format = {"format", "int-quantized", 0, 0, 1};
    const json_t *inputs = present(group, "input_activations"),
                 *outputs = present(group, "output_activations");
    iso_status status = check_all(r, "a group", group, &format, 1);
    if (!status)
        status = check_numbers(r, "weights", present(group, "weights"), "channel", 0);
    if (!status && inputs)
        status = check_numbers(r, "input_activations", inputs, "token", 1);
    return status || !outputs ? status
                              : refuse(r, "a group", "output_activations", outputs, "null");
}

iso_status model_read_quantization(const model_reader *r) {
    static const wanted method = {"quant_method", "compressed-tensors", 0, 0, 0},
                        format = {"format", "int-quantized", 0, 0, 0};
    static const char whole[] = "the model";
    const json_t *q = model_read_key(r, "quantization_config");
    if (!q)
        return ISOBIT_OK;
    if (!json_is_object(q))
        return model_read_wrong(r, "quantization_config", q, "an object");
    json_t *groups = present(q, "config_groups");
    const json_t *cache = present(q, "kv_cache_scheme"), *turned = present(q, "transform_config"),
                 *sparse = present(q, "sparsity_config");
    iso_status status = check_all(r, whole, q, &method, 1);
    if (!status)
        status = check_all(r, whole, q, &format, 1);
    if (!status && cache)
        status = refuse(r, whole, "kv_cache_scheme", cache, "null");
    if (!status && json_object_size(turned))
        status = refuse(r, whole, "transform_config", turned, "an empty one");
    if (!status && json_object_size(sparse)) {
        static const wanted dense = {"format", "dense", 0, 0, 0};
        status = check_all(r, "sparsity_config", sparse, &dense, 1);
    }
    if (!status && !json_object_size(groups))
        status = refuse(r, whole, "config_groups", groups, "an object with groups");
    for (void *i = json_object_iter(groups); i && !status; i = json_object_iter_next(groups, i))
        status = check_group(r, json_object_iter_value(i));
    return status;
}
