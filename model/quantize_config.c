/* SPDX-License-Identifier: MIT
 *
 * config.json of a model that is written with fewer bits: the text as it was, and behind its last
 * key what compressed-tensors says of such files, so that others know them, too.
 */
#include "quantize.h"
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CONFIG_BYTES ((size_t)4 << 20)

static const char config_name[] = "config.json", key[] = "quantization_config";

/* The module of a matrix; NULL: it has no such name. */
static json_t *module_of(const char *name) {
    static const char end[] = ".weight";
    const size_t bytes = strlen(name), n = sizeof end - 1;
    return bytes > n && strcmp(name + bytes - n, end) == 0 ? json_stringn(name, bytes - n) : NULL;
}

static json_t *numbers(int bits, const char *strategy, size_t group, int dynamic) {
    return json_pack("{s:i, s:s, s:b, s:s, s:o, s:b}", "num_bits", bits, "type", "int", "symmetric",
                     1, "strategy", strategy, "group_size",
                     group ? json_integer((json_int_t)group) : json_null(), "dynamic", dynamic);
}

/* A group of modules, which are tables or not. */
static json_t *modules(json_t *targets, int tables, const iso_quantize_options *options) {
    const int int8 = options->type == ISOBIT_QUANTIZE_INT8;
    json_t *weights =
        int8 ? numbers(8, "channel", 0, 0) : numbers(tables ? 8 : 4, "group", options->group, 0);
    return json_pack("{s:o, s:o, s:o, s:n}", "targets", targets, "weights", weights,
                     "input_activations", int8 && !tables ? numbers(8, "token", 0, 1) : json_null(),
                     "output_activations");
}

/* Linear layers are quantised, but for those that are listed. A table that is the logits, too, is
 * one module of another kind; in groups the logits have more bits than the others. */
static json_t *describe(const model_new_file *plan, const char *head,
                        const iso_quantize_options *options) {
    json_t *ignored = json_array(), *tables = json_array(), *groups = json_object();
    int has_head = 0;
    for (size_t i = 0; i < plan->count; i++) {
        const model_new_tensor *item = &plan->items[i];
        json_t *module = item->tensor->rank == 2 ? module_of(item->tensor->name) : NULL;
        const int is_head = head && strcmp(item->tensor->name, head) == 0;
        has_head |= is_head;
        if (!module)
            continue;
        if (item->made == MADE_COPY)
            json_array_append_new(ignored, module);
        else if (item->logits && (!is_head || options->type == ISOBIT_QUANTIZE_INT4))
            json_array_append_new(tables, module);
        else
            json_decref(module);
    }
    json_t *module = head && !has_head ? module_of(head) : NULL;
    if (module)
        json_array_append_new(ignored, module);
    json_object_set_new(groups, "group_0", modules(json_pack("[s]", "Linear"), 0, options));
    if (json_array_size(tables) > 0)
        json_object_set_new(groups, "group_1", modules(json_incref(tables), 1, options));
    json_decref(tables);
    return json_pack("{s:s, s:s, s:s, s:o, s:o}", "quant_method", "compressed-tensors", "format",
                     options->type == ISOBIT_QUANTIZE_INT8 ? "int-quantized" : "pack-quantized",
                     "quantization_status", "compressed", "config_groups", groups, "ignore",
                     ignored);
}

/* The text with one key more. */
static iso_status add_key(char **text, size_t *bytes, model_arena *arena, const json_t *value,
                          iso_error *error) {
    size_t end = *bytes;
    while (end > 0 && (*text)[end - 1] != '}') /* it is an object, so there is one */
        end--;
    size_t last = end ? end - 1 : 0;
    while (last > 0 && strchr(" \t\r\n", (*text)[last - 1]))
        last--;
    char *dumped = value ? json_dumps(value, JSON_INDENT(2)) : NULL;
    const size_t room = last + (dumped ? strlen(dumped) : 0) + sizeof key + 16;
    char *made = dumped ? model_alloc(arena, room, 1) : NULL;
    if (made) {
        memcpy(made, *text, last);
        const int n = snprintf(made + last, room - last, ",\n\"%s\": %s\n}\n", key, dumped);
        *bytes = last + (size_t)n;
        *text = made;
    }
    free(dumped);
    return made ? ISOBIT_OK : model_fail(error, ISOBIT_E_NOMEM, "out of memory");
}

iso_status model_new_config(char **text, size_t *bytes, model_arena *arena, const char *directory,
                            const model_new_file *plan, const iso_quantize_options *options,
                            const char *head, iso_error *error) {
    json_t *root = NULL;
    iso_status status =
        model_file_text(text, bytes, arena, directory, config_name, MAX_CONFIG_BYTES, error);
    if (!status)
        status = model_json_parse(&root, *text, *bytes, config_name, error);
    if (!status && json_object_get(root, key))
        status = model_fail(error, ISOBIT_E_UNSUPPORTED,
                            "%s has \"%s\": the model is quantised already", config_name, key);
    json_decref(root);
    if (status || options->type < ISOBIT_QUANTIZE_INT8)
        return status;
    json_t *value = describe(plan, head, options);
    status = add_key(text, bytes, arena, value, error);
    json_decref(value);
    return status;
}
