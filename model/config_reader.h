/* SPDX-License-Identifier: MIT
 *
 * Keys of config.json and generation_config.json: config.c reads what a model is, config_rope.c its
 * rotary embeddings, config_quantized.c its int8, config_search.c how it generates.
 */
#ifndef ISOBIT_MODEL_CONFIG_READER_H
#define ISOBIT_MODEL_CONFIG_READER_H

#include "config.h"
#include "json.h"

#define MAX_SIZE ((size_t)1 << 31) /* of a dimension or a vocabulary */
#define MAX_POSITIONS ((size_t)1 << 20)
#define MAX_HEAD_WIDTH 512

/* One file while it is read. */
typedef struct model_reader {
    const char *file;
    const json_t *root;
    model_arena *arena;
    iso_error *error;
} model_reader;

/* The value of a key; NULL when it is absent or null. */
const json_t *model_read_key(const model_reader *r, const char *key);
iso_status model_read_wrong(const model_reader *r, const char *key, const json_t *found,
                            const char *expected);
iso_status model_read_size(const model_reader *r, const char *key, size_t *out, size_t least,
                           size_t most);
iso_status model_read_flag(const model_reader *r, const char *key, int *out);
/* A finite number of at least `least`, or above it. */
iso_status model_read_real(const model_reader *r, const char *key, double *out, double least,
                           int above);
iso_status model_read_id(const model_reader *r, const char *key, uint32_t *out);
/* One id, or a list of ids. */
iso_status model_read_ids(const model_reader *r, const char *key, model_ids *out);
/* A list of lists of ids, kept as length, ids, length, ids ... */
iso_status model_read_id_lists(const model_reader *r, const char *key, model_ids *out);

/* config_rope.c */
/*
 * "rope_theta", and "rope_scaling" of the types that are known. transformers 5 writes one object
 * with both instead, "rope_parameters".
 */
iso_status model_read_rope(const model_reader *r, model_config *c);
/* Factors for each pair of elements of a head that turn. */
iso_status model_check_rope(const model_reader *r, const model_config *c);

/* config_quantized.c: "quantization_config", which must say what is supported. */
iso_status model_read_quantization(const model_reader *r);

/* config_search.c */
iso_status model_read_search(const model_reader *r, model_search *s);

#endif
