/* SPDX-License-Identifier: MIT
 *
 * tokenizer.json, read in three files: pipeline_json.c, and of the parts of such a file
 * pipeline_steps.c its normalizer and pre_tokenizer, pipeline_model.c its model.
 */
#ifndef ISOBIT_MODEL_PIPELINE_JSON_H
#define ISOBIT_MODEL_PIPELINE_JSON_H

#include "pipeline.h"
#include "scan.h"

/* pipeline_json.c */
iso_status text_json_refuse(iso_error *error, const char *part, const char *what);
iso_status text_json_damaged(iso_error *error, const char *part);
const char *text_json_type(const json_t *part);
int text_json_true(const json_t *part, const char *key);
/* A flag with a default. */
int text_json_flag(const json_t *part, const char *key, int otherwise);
/* The members of a Sequence, or the part itself: one after the other, NULL at the end. */
const json_t *text_json_member(const json_t *part, const char *list, size_t i);

/* pipeline_steps.c */
iso_status text_json_step(iso_tokenizer *t, text_pipeline *p, const json_t *part, iso_error *error);
/* A bar for a space, in old files and new ones. */
iso_status text_json_prepend(const json_t *part, text_prepend *prepend, iso_error *error);
/* Metaspace, maybe after WhitespaceSplit. */
iso_status text_json_metaspace(text_pipeline *p, const json_t *root, int *used, iso_error *error);
/* Either BERT's, or a regular expression that is known and ByteLevel, or none that matters. */
iso_status text_json_splitter(text_pipeline *p, const json_t *root, int *byte_level,
                              iso_error *error);

/* pipeline_model.c */
iso_status text_json_model(iso_tokenizer *t, text_pipeline *p, const json_t *model,
                           const text_scanned *scanned, int byte_level, iso_error *error);

#endif
