/* SPDX-License-Identifier: MIT
 *
 * A directory with a file of SentencePiece while it becomes a pipeline: pipeline_spm.c has the
 * families and the order of things, pipeline_spm_tokens.c gives ids to the pieces,
 * pipeline_spm_added.c to the tokens besides, pipeline_spm_model.c makes BPE or Unigram of scores.
 */
#ifndef ISOBIT_MODEL_PIPELINE_SPM_H
#define ISOBIT_MODEL_PIPELINE_SPM_H

#include "pipeline.h"

typedef enum layout {
    FAIRSEQ, /* <s> <pad> </s> <unk>, the pieces but for the first three */
    T5,      /* the pieces, <extra_id_N> ... <extra_id_0> */
    PEGASUS, /* <pad> </s> and tokens for training, the pieces but for the first two */
    LLAMA    /* the pieces, the first three of which the configuration may name otherwise */
} layout;

typedef enum place { NOWHERE, BEFORE, AFTER } place; /* of the language of a source */

struct text_family {
    const char *file,
        *first; /* of SentencePiece; the language of a source that none is named for */
    layout layout;
    place place;
    const char *const *languages;
    size_t language_count; /* 0: up to the NULL at the end */
    int added_languages;   /* behind the vocabulary rather than in it */
    int has_bos;           /* <s> is special */
    const char *bos, *eos; /* around a text, if tokenizer_config.json says so, or NULL */
    const char *mask;      /* or NULL */
    int normalized_mask;   /* looked for in normal forms */
    int ignores_decoder;   /* "added_tokens_decoder" of tokenizer_config.json */
};

/* What was read, and what becomes of it. */
typedef struct text_spm_reader {
    iso_tokenizer *t;
    text_pipeline *p;
    const struct text_family *family;
    const char *directory;
    const json_t *config, *map; /* tokenizer_config.json, special_tokens_map.json or NULL */
    text_pieces pieces;
    json_t *ids, *added, *known; /* `known`: an object with the tokens of the list `added` */
    float *scores;               /* by id */
    size_t count, room;
    iso_error *error;
} text_spm_reader;

/* pipeline_spm.c */
iso_status text_spm_no_memory(const text_spm_reader *r);
/* A special token: as the files name it, else as transformers does. NULL: a file says none. */
const char *text_spm_special(const text_spm_reader *r, const char *key, const char *otherwise);
/* "additional_special_tokens", a list of strings or objects. */
const json_t *text_spm_additional(const text_spm_reader *r);
const char *text_spm_name_of(const json_t *one);

/* pipeline_spm_tokens.c: with `extra` tokens behind the pieces (T5), or `offset` before them. */
iso_status text_spm_put_tokens(text_spm_reader *r, size_t extra, size_t offset);

/* pipeline_spm_added.c */
/* Control pieces are special, those of users are not; both are found as they are written. 0: no
 * memory. */
int text_spm_add_pieces(text_spm_reader *r);
int text_spm_add_numbered(text_spm_reader *r, const char *format, size_t from, size_t to);
iso_status text_spm_add_tokens(text_spm_reader *r, size_t extra, size_t offset);

/* pipeline_spm_model.c */
iso_status text_spm_make_model(text_spm_reader *r, size_t offset);

#endif
