/* SPDX-License-Identifier: MIT
 *
 * "quantization_config" in config.json, as compressed-tensors writes it: which kinds of
 * integers are read. Which tensors are such the file of the weights says itself.
 */
#include "config_reader.h"

#include <stdio.h>
#include <string.h>

static const char integers[] = "int-quantized", packed[] = "pack-quantized";

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

/* Numbers of 4 or 8 bits in groups along a row. */
static iso_status check_packed(const model_reader *r, const json_t *object) {
    static const wanted all[] = {{"type", "int", 0, 0, 0},
                                 {"symmetric", NULL, 1, 1, 0},
                                 {"strategy", "group", 0, 0, 0},
                                 {"dynamic", NULL, 0, 1, 1}};
    static const char where[] = "weights";
    if (!json_is_object(object))
        return refuse(r, "a group", where, object, "an object");
    const json_t *bits = present(object, "num_bits"), *group = present(object, "group_size"),
                 *order = present(object, "actorder");
    const double b = json_number_value(bits), g = json_number_value(group);
    const char *name = json_string_value(order);
    iso_status status = check_all(r, where, object, all, sizeof all / sizeof *all);
    if (!status && b != 4 && b != 8)
        status = refuse(r, where, "num_bits", bits, "4 or 8");
    if (!status && g != 32 && g != 64 && g != 128)
        status = refuse(r, where, "group_size", group, "32, 64 or 128");
    /* By weight they were chosen in another order, and lie in that of the columns. */
    if (!status && order && !json_is_false(order) &&
        (!name || (strcmp(name, "weight") != 0 && strcmp(name, "static") != 0)))
        status = refuse(r, where, "actorder", order, "null or weight");
    return status;
}

/* `whole`: the format of groups that have none of their own. */
static iso_status check_group(const model_reader *r, const json_t *group, const char *whole) {
    const json_t *inputs = present(group, "input_activations"),
                 *outputs = present(group, "output_activations"),
                 *weights = present(group, "weights"), *own = present(group, "format");
    const char *format = own ? json_string_value(own) : whole;
    iso_status status;
    if (format && strcmp(format, packed) == 0) {
        status = check_packed(r, weights);
        if (!status && inputs)
            status = refuse(r, "a group", "input_activations", inputs, "null");
    } else if (format && strcmp(format, integers) == 0) {
        status = check_numbers(r, "weights", weights, "channel", 0);
        if (!status && inputs)
            status = check_numbers(r, "input_activations", inputs, "token", 1);
    } else {
        return refuse(r, "a group", "format", own, "int-quantized or pack-quantized");
    }
    return status || !outputs ? status
                              : refuse(r, "a group", "output_activations", outputs, "null");
}

iso_status model_read_quantization(const model_reader *r) {
    static const wanted method = {"quant_method", "compressed-tensors", 0, 0, 0};
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
    const json_t *format = status ? NULL : present(q, "format");
    const char *name = json_string_value(format);
    if (!status && (!name || (strcmp(name, integers) != 0 && strcmp(name, packed) != 0 &&
                              strcmp(name, "mixed-precision") != 0)))
        status = refuse(r, whole, "format", format, "int-quantized or pack-quantized");
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
        status = check_group(r, json_object_iter_value(i), name);
    return status;
}
