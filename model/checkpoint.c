/* SPDX-License-Identifier: MIT
 *
 * What checkpoints of all forms have in common, and those of several files: an index (JSON) says
 * which file, a shard, has which tensor. The names of shards come from the index, which is
 * untrusted: only plain names of files in the same directory are opened. What the index says must
 * be so, and no tensor may be in two shards, since which one counts would be anyone's guess.
 */
#include "checkpoint.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

#define MAX_INDEX_BYTES ((size_t)16 << 20)
#define MAX_SHARDS 512 /* they are open at the same time, and a process has often 1024 at most */
#define MAX_SHARD_NAME 255

int model_tensor_order(const void *a, const void *b) {
    return strcmp(((const model_tensor *)a)->name, ((const model_tensor *)b)->name);
}

const char *model_tensor_extent(const model_tensor *tensor, unsigned bits, uint64_t *total_bits) {
    uint64_t elements = 1;
    int zero = 0;
    for (size_t i = 0; i < tensor->rank; i++) {
        zero |= tensor->shape[i] == 0;
        if (tensor->shape[i] && __builtin_mul_overflow(elements, tensor->shape[i], &elements))
            return "the product of the shape overflows";
    }
    if (__builtin_mul_overflow(elements, (uint64_t)bits, total_bits))
        return "the size in bytes overflows";
    if (zero)
        *total_bits = 0;
    return NULL;
}

void model_checkpoint_close(model_checkpoint *checkpoint) {
    for (size_t i = 0; i < checkpoint->shard_count; i++) { /* shards have none themselves */
        model_file_close(&checkpoint->shards[i].file);
        model_arena_free(&checkpoint->shards[i].arena);
    }
    checkpoint->shard_count = 0;
    model_file_close(&checkpoint->file);
    model_arena_free(&checkpoint->arena);
}

const model_tensor *model_checkpoint_find(const model_checkpoint *checkpoint, const char *name) {
    model_tensor key = {.name = name};
    const model_header *h = &checkpoint->header;
    return h->count ? bsearch(&key, h->tensors, h->count, sizeof key, model_tensor_order) : NULL;
}

/* A name in two parts, which is compared as if it were one. */
typedef struct two_parts {
    const char *name, *end;
    size_t name_bytes;
} two_parts;

static int two_parts_order(const void *a, const void *b) {
    const two_parts *key = a;
    const model_tensor *t = b;
    const int order = strncmp(key->name, t->name, key->name_bytes);
    return order ? order : strcmp(key->end, t->name + key->name_bytes);
}

const model_tensor *model_checkpoint_find_beside(const model_checkpoint *checkpoint,
                                                 const model_tensor *tensor, const char *end) {
    const two_parts key = {tensor->name, end, tensor->name_bytes};
    const model_header *h = &checkpoint->header;
    return h->count ? bsearch(&key, h->tensors, h->count, sizeof *h->tensors, two_parts_order)
                    : NULL;
}

void model_tensor_turn(model_turned *to, const model_tensor *matrix) {
    to->t = *matrix;
    to->t.shape[0] = matrix->shape[1];
    to->t.shape[1] = matrix->shape[0];
    to->strides[0] = matrix->strides ? matrix->strides[1] : 1;
    to->strides[1] = matrix->strides ? matrix->strides[0] : matrix->shape[1];
    to->t.strides = to->strides;
}

/* Bytes of rows that lie in pairs, see checkpoint.h: what is asked for, row by row. */
static iso_status read_paired(const model_file *file, uint64_t start, const model_tensor *tensor,
                              char *to, uint64_t offset, size_t bytes, iso_error *error) {
    const uint64_t row_bytes = (tensor->end - tensor->begin) / tensor->shape[0];
    const uint64_t rows = tensor->paired;
    iso_status status = ISOBIT_OK;
    while (bytes && !status) {
        const uint64_t row = offset / row_bytes, within = offset % row_bytes, at = row % rows;
        const uint64_t stored = row - at + 2 * (at % (rows / 2)) + at / (rows / 2);
        const size_t n = bytes < row_bytes - within ? bytes : (size_t)(row_bytes - within);
        status = model_file_read(file, to, start + stored * row_bytes + within, n, error);
        to += n;
        offset += n;
        bytes -= n;
    }
    return status;
}

iso_status model_checkpoint_read(const model_checkpoint *checkpoint, const model_tensor *tensor,
                                 void *to, uint64_t offset, size_t bytes, iso_error *error) {
    const model_checkpoint *one =
        checkpoint->shards ? &checkpoint->shards[tensor->shard] : checkpoint;
    const uint64_t start = one->data_start + tensor->begin;
    return tensor->paired ? read_paired(&one->file, start, tensor, to, offset, bytes, error)
                          : model_file_read(&one->file, to, start + offset, bytes, error);
}

iso_status model_checkpoint_unchanged(const model_checkpoint *checkpoint, iso_error *error) {
    if (!checkpoint->shards)
        return model_file_unchanged(&checkpoint->file, error);
    iso_status status = ISOBIT_OK;
    for (size_t i = 0; i < checkpoint->shard_count && !status; i++)
        status = model_file_unchanged(&checkpoint->shards[i].file, error);
    return status;
}

/* ----------------------------------------------------------------------------------- shards */

/* What the index says of one tensor; both names belong to its JSON. */
typedef struct place {
    const char *tensor, *shard;
} place;

static int by_shard(const void *a, const void *b) {
    const place *x = a, *y = b;
    int order = strcmp(x->shard, y->shard);
    return order ? order : strcmp(x->tensor, y->tensor);
}

/* What is wrong with the name of a shard, or NULL. */
static const char *wrong_name(const char *name) {
    if (!name[0])
        return "it is empty";
    if (strlen(name) > MAX_SHARD_NAME)
        return "it has more than 255 bytes";
    if (strchr(name, '/') || strchr(name, '\\'))
        return "a shard lies in the directory of the model";
    if (strstr(name, "..") || strcmp(name, ".") == 0)
        return "it leads to another directory";
    for (; *name; name++)
        if (*name < ' ' || *name > '~')
            return "only printable ASCII characters are expected";
    return NULL;
}

/* The weight_map of the index as a list, sorted by shard, in the arena. */
static iso_status read_map(place **places, size_t *count, model_arena *arena, const json_t *root,
                           const char *index, iso_error *error) {
    json_t *map = json_object_get(root, "weight_map"), *value;
    const char *key, *wrong;
    char found[100];
    model_quoted tensor, shard;
    if (!map)
        return model_fail(error, ISOBIT_E_MISSING, "%s has no weight_map", index);
    if (!json_is_object(map))
        return model_fail(error, ISOBIT_E_JSON, "%s: weight_map is %s; an object is expected",
                          index, model_json_describe(map, found, sizeof found));
    *count = 0;
    if (!json_object_size(map))
        return model_fail(error, ISOBIT_E_MISSING, "%s: weight_map names no tensor", index);
    if (!(*places = model_alloc(arena, json_object_size(map), sizeof **places)))
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory for %s", index);
    json_object_foreach(map, key, value) {
        model_quote(&tensor, key, strlen(key));
        if (!json_is_string(value))
            return model_fail(error, ISOBIT_E_JSON,
                              "%s: the shard of tensor %s is %s; a string is expected", index,
                              tensor.text, model_json_describe(value, found, sizeof found));
        if ((wrong = wrong_name(json_string_value(value))))
            return model_fail(
                error, ISOBIT_E_CONFIG,
                "%s: the shard of tensor %s has the name %s, which is refused: %s", index,
                tensor.text,
                model_quote(&shard, json_string_value(value), json_string_length(value)), wrong);
        (*places)[(*count)++] = (place){key, json_string_value(value)};
    }
    qsort(*places, *count, sizeof **places, by_shard);
    return ISOBIT_OK;
}

/* Opens shard number `shard`, and takes from it what `places` say. */
static iso_status take_shard(model_checkpoint *checkpoint, size_t shard, const char *directory,
                             const place *places, size_t count, size_t max_header_bytes,
                             model_checkpoint_opener *open_shard, iso_error *error) {
    model_checkpoint *one = &checkpoint->shards[shard];
    model_header *all = &checkpoint->header;
    model_quoted quoted;
    const size_t bytes = strlen(places->shard) + 1;
    char *name = model_alloc(&checkpoint->arena, bytes, 1);
    if (!name)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    memcpy(name, places->shard, bytes);
    iso_status status = open_shard(one, directory, name, max_header_bytes, error);
    for (size_t i = 0; i < count && !status; i++) {
        const model_tensor *t = model_checkpoint_find(one, places[i].tensor);
        if (!t)
            return model_fail(error, ISOBIT_E_MISSING, "%s: tensor %s should be in %s and is not",
                              checkpoint->file.name,
                              model_quote(&quoted, places[i].tensor, strlen(places[i].tensor)),
                              name);
        all->tensors[all->count] = *t;
        all->tensors[all->count++].shard = shard;
    }
    return status;
}

/* A tensor that the index places in one shard must be in no other. */
static iso_status check_twice(const model_checkpoint *checkpoint, iso_error *error) {
    model_quoted quoted;
    for (size_t i = 0; i < checkpoint->shard_count; i++) {
        const model_checkpoint *one = &checkpoint->shards[i];
        for (size_t k = 0; k < one->header.count; k++) {
            const model_tensor *own = &one->header.tensors[k],
                               *t = model_checkpoint_find(checkpoint, own->name);
            if (t && t->shard != i)
                return model_fail(error, ISOBIT_E_DUPLICATE, "tensor %s is in %s and in %s",
                                  model_quote(&quoted, own->name, own->name_bytes),
                                  checkpoint->shards[t->shard].file.name, one->file.name);
        }
    }
    return ISOBIT_OK;
}

iso_status model_checkpoint_open_shards(model_checkpoint *checkpoint, const char *directory,
                                        const char *name, size_t max_header_bytes,
                                        model_checkpoint_opener *open_shard, iso_error *error) {
    *checkpoint = (model_checkpoint){.file = {.fd = -1, .name = name}};
    json_t *root = NULL;
    model_arena scratch = {0};
    place *places = NULL;
    size_t count = 0, shards = 0;
    iso_status status = model_json_load(&root, directory, name, MAX_INDEX_BYTES, error);
    if (status)
        return status;
    status = read_map(&places, &count, &scratch, root, name, error);
    for (size_t i = 0; i < count && !status; i++)
        shards += i == 0 || strcmp(places[i - 1].shard, places[i].shard) != 0;
    if (!status && shards > MAX_SHARDS)
        status = model_fail(error, ISOBIT_E_LIMIT, "%s names %zu shards; the limit is %d", name,
                            shards, MAX_SHARDS);
    if (!status) {
        checkpoint->shards = model_alloc(&checkpoint->arena, shards, sizeof *checkpoint->shards);
        checkpoint->header.tensors =
            model_alloc(&checkpoint->arena, count, sizeof *checkpoint->header.tensors);
        if (!checkpoint->shards || !checkpoint->header.tensors)
            status = model_fail(error, ISOBIT_E_NOMEM, "out of memory for %s", name);
    }
    for (size_t first = 0, end; first < count && !status; first = end) {
        for (end = first + 1; end < count && !strcmp(places[first].shard, places[end].shard);)
            end++;
        const size_t shard = checkpoint->shard_count++;
        checkpoint->shards[shard] = (model_checkpoint){.file.fd = -1};
        status = take_shard(checkpoint, shard, directory, places + first, end - first,
                            max_header_bytes, open_shard, error);
    }
    model_arena_free(&scratch);
    json_decref(root);
    if (status)
        return status;
    qsort(checkpoint->header.tensors, checkpoint->header.count, sizeof *checkpoint->header.tensors,
          model_tensor_order);
    return check_twice(checkpoint, error);
}

const char *model_quote_dtype(model_quoted *out, const model_tensor *t) {
    return t->dtype == MODEL_UNKNOWN ? model_quote(out, t->dtype_name, strlen(t->dtype_name))
                                     : t->dtype_name;
}
