/* SPDX-License-Identifier: MIT
 *
 * What becomes of each tensor of a model that is written with fewer bits, and the header of its
 * file. All is decided by names, shapes and what the loader takes a tensor as, before a number is
 * read, so that the places in the file are known.
 */
#include "quantize.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

#define MOST_OF_INT8 131071 /* steps of a product whose sums have 32 bits */

static const char *const dtypes[] = {
    [MADE_F16] = "F16", [MADE_BF16] = "BF16", [MADE_INT8] = "I8", [MADE_GROUPS] = "I32"};

static int is_kept(const char *name, const iso_quantize_options *options) {
    for (size_t i = 0; i < options->keep_count; i++)
        if (strstr(name, options->keep[i]))
            return 1;
    return 0;
}

/* What a tensor becomes that was taken so. */
static void choose(model_new_tensor *item, unsigned use, const iso_quantize_options *options) {
    static const model_made wanted[] = {[ISOBIT_QUANTIZE_BF16] = MADE_BF16,
                                        [ISOBIT_QUANTIZE_F16] = MADE_F16,
                                        [ISOBIT_QUANTIZE_INT8] = MADE_INT8,
                                        [ISOBIT_QUANTIZE_INT4] = MADE_GROUPS};
    const model_tensor *t = item->tensor;
    const model_made made = wanted[options->type];
    item->made = MADE_COPY;
    if (!use) {
        item->note = "not used";
        return;
    }
    if (!(use & (MODEL_USE_MATRIX | MODEL_USE_TABLE)))
        return;
    item->logits = (use & MODEL_USE_LOGITS) != 0;
    const int integers = made == MADE_INT8 || made == MADE_GROUPS;
    item->turned = integers && (use & MODEL_USE_TURNED);
    item->bits = item->logits ? 8 : 4;
    item->rows = (size_t)t->shape[item->turned ? 1 : 0];
    item->width = (size_t)t->shape[item->turned ? 0 : 1];
    if (is_kept(t->name, options))
        item->note = "kept";
    else if (integers && (use & MODEL_USE_TABLE))
        item->note = "not multiplied";
    else if (made == MADE_INT8 && item->width > MOST_OF_INT8)
        item->note = "rows too long for int8";
    else if (made == MADE_GROUPS && item->width % options->group != 0)
        item->note = "rows are no whole groups";
    else if (strcmp(t->dtype_name, dtypes[made]) != 0)
        item->made = made; /* it is not that already */
}

static model_new_part *add_part(model_new_tensor *item, const char *name, const char *dtype,
                                size_t element, const uint64_t *shape, size_t rank) {
    model_new_part *part = &item->parts[item->part_count++];
    *part = (model_new_part){.name = name, .dtype = dtype, .element = element, .rank = rank};
    part->bytes = element;
    for (size_t i = 0; i < rank; i++) { /* the loader has seen that such products do not overflow */
        part->shape[i] = shape[i];
        part->bytes *= shape[i];
    }
    return part;
}

/* A tensor as it is. Views of a .bin file have one of the types that have names there. */
static void add_copy(model_new_tensor *item) {
    static const struct {
        const char *name;
        size_t bytes;
    } known[] = {{"F64", 8}, {"I64", 8},  {"F32", 4}, {"I32", 4},
                 {"F16", 2}, {"BF16", 2}, {"I16", 2}};
    const model_tensor *t = item->tensor;
    size_t element = 1;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, t->dtype_name) == 0)
            element = known[i].bytes;
    model_new_part *part = add_part(item, t->name, t->dtype_name, element, t->shape, t->rank);
    if (!t->strides)
        part->bytes = t->end - t->begin;
}

/* Two names for one tensor of a .bin file, as those who save tied weights have them. */
static int is_same(const model_tensor *a, const model_tensor *b) {
    return a->shard == b->shard && a->begin == b->begin && a->end == b->end && a->begin != a->end &&
           a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

/* The name of what belongs to a tensor; NULL: no memory. */
static const char *name_of(model_arena *arena, const model_tensor *t, const char *end) {
    const size_t bytes = strlen(end) + 1;
    char *name = model_alloc(arena, t->name_bytes + bytes, 1);
    if (name) {
        memcpy(name, t->name, t->name_bytes);
        memcpy(name + t->name_bytes, end, bytes);
    }
    return name;
}

/* Numbers, scales, and the shape, [out][in]. */
static iso_status add_groups(model_new_tensor *item, model_arena *arena, size_t group,
                             iso_error *error) {
    const char *names[] = {"_packed", "_scale", "_shape"};
    const uint64_t packed[] = {item->rows, item->width / 32 * item->bits},
                   scales[] = {item->rows, item->width / group}, shape[] = {2};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!(names[i] = name_of(arena, item->tensor, names[i])))
            return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    add_part(item, names[0], "I32", 4, packed, 2);
    add_part(item, names[1], "F16", 2, scales, 2);
    add_part(item, names[2], "I64", 8, shape, 1);
    return ISOBIT_OK;
}

static iso_status plan_item(model_new_file *plan, model_arena *arena, const model_source *source,
                            size_t i, const iso_quantize_options *options) {
    const model_tensor *t = &source->checkpoint->header.tensors[i];
    model_new_tensor *item = &plan->items[i];
    *item = (model_new_tensor){.tensor = t};
    choose(item, source->uses[i], options);
    for (size_t k = 0; k < plan->table_count && !source->uses[i]; k++)
        if (is_same(t, plan->tables[k])) {
            item->note = "left out: a second name";
            return ISOBIT_OK;
        }
    if (item->made == MADE_COPY) {
        add_copy(item);
        return ISOBIT_OK;
    }
    if (item->made == MADE_GROUPS)
        return add_groups(item, arena, options->group, source->error);
    add_part(item, t->name, dtypes[item->made], item->made == MADE_INT8 ? 1 : 2, t->shape, t->rank);
    if (item->made == MADE_INT8) {
        const uint64_t scales[] = {item->rows, 1};
        const char *name = name_of(arena, t, "_scale");
        if (!name)
            return model_fail(source->error, ISOBIT_E_NOMEM, "out of memory");
        add_part(item, name, "F32", 4, scales, 2);
    }
    return ISOBIT_OK;
}

/* No two tensors of one name: X.weight_scale may have been there, of no use. */
static iso_status check_names(const model_new_file *plan, const model_source *source) {
    model_quoted name;
    for (size_t i = 0; i < plan->count; i++)
        for (size_t k = 0; k < plan->items[i].part_count; k++) {
            const char *part = plan->items[i].parts[k].name;
            if (part != plan->items[i].tensor->name &&
                model_checkpoint_find(source->checkpoint, part))
                return model_fail(
                    source->error, ISOBIT_E_DUPLICATE,
                    "tensor %s is there already, and no scales: is the folder quantised?",
                    model_quote(&name, part, strlen(part)));
        }
    return ISOBIT_OK;
}

/* ------------------------------------------------------------------------------ the header */

/* Large elements first, so that all of them lie at multiples of their size. */
static void place_parts(model_new_file *plan) {
    uint64_t at = 0;
    for (size_t element = 8; element; element /= 2)
        for (size_t i = 0; i < plan->count; i++)
            for (size_t k = 0; k < plan->items[i].part_count; k++)
                if (plan->items[i].parts[k].element == element) {
                    plan->items[i].parts[k].at = at;
                    at += plan->items[i].parts[k].bytes;
                }
}

static json_t *describe(const model_new_part *part) {
    json_t *shape = json_array();
    for (size_t i = 0; i < part->rank; i++)
        json_array_append_new(shape, json_integer((json_int_t)part->shape[i]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", part->dtype, "shape", shape, "data_offsets",
                     (json_int_t)part->at, (json_int_t)part->at + (json_int_t)part->bytes);
}

/* The length, the JSON, and spaces up to a multiple of 64 bytes. */
static iso_status write_header(model_new_file *plan, model_arena *arena, iso_error *error) {
    json_t *root = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    int good = root != NULL;
    for (size_t i = 0; i < plan->count; i++)
        for (size_t k = 0; k < plan->items[i].part_count; k++) {
            const model_new_part *part = &plan->items[i].parts[k];
            good = good && json_object_set_new(root, part->name, describe(part)) == 0;
        }
    char *text = good ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    const size_t bytes = text ? strlen(text) : 0, all = (8 + bytes + 63) / 64 * 64;
    plan->header = text ? model_alloc(arena, all, 1) : NULL;
    if (plan->header) {
        memset(plan->header, ' ', all);
        for (size_t i = 0; i < 8; i++)
            plan->header[i] = (char)((uint64_t)(all - 8) >> 8 * i);
        memcpy(plan->header + 8, text, bytes);
        plan->header_bytes = all;
    }
    free(text);
    return plan->header ? ISOBIT_OK : model_fail(error, ISOBIT_E_NOMEM, "out of memory");
}

iso_status model_new_file_plan(model_new_file *plan, model_arena *arena, const model_source *source,
                               const iso_quantize_options *options) {
    *plan = (model_new_file){.count = source->checkpoint->header.count};
    plan->items = model_alloc(arena, plan->count, sizeof *plan->items);
    if (!plan->items)
        return model_fail(source->error, ISOBIT_E_NOMEM, "out of memory");
    for (size_t i = 0; i < plan->count && plan->table_count < MODEL_MOST_TABLES; i++)
        if (source->uses[i] & (MODEL_USE_LOGITS | MODEL_USE_TABLE))
            plan->tables[plan->table_count++] = &source->checkpoint->header.tensors[i];
    iso_status status = ISOBIT_OK;
    for (size_t i = 0; i < plan->count && !status; i++)
        status = plan_item(plan, arena, source, i, options);
    if (!status)
        status = check_names(plan, source);
    if (status)
        return status;
    place_parts(plan);
    return write_header(plan, arena, source->error);
}
