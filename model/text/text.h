/* SPDX-License-Identifier: MIT
 *
 * What the files of model/text share. A tokenizer is a kind (a struct of functions), one or two
 * vocabularies and what the kind keeps besides. The public functions in tokenizer.c check arguments
 * and capacities; a kind sees valid UTF-8, may write as much as it likes, and never asks for room.
 */
#ifndef ISOBIT_MODEL_TEXT_H
#define ISOBIT_MODEL_TEXT_H

#include "config.h"
#include "index.h"
#include "json.h"

#define TEXT_MAX_VOCABULARY_BYTES ((size_t)64 << 20)
#define TEXT_MAX_CONFIG_BYTES ((size_t)4 << 20)

/* ------------------------------------------------------------------------------- vocabulary */

typedef struct text_entry {
    const char *token;
    size_t bytes;
    uint32_t id;
    uint64_t start; /* the first 8 bytes as a number, zeros behind a shorter token */
} text_entry;

enum { TEXT_MAX_SPECIALS = 8 };

/* Tokens by id and ids by token. Ids are 0 .. count - 1. */
typedef struct text_vocabulary {
    text_entry *by_id;    /* [count] */
    char *special;        /* [count]: 1 for tokens that are no text */
    text_entry *by_token; /* [tokens], sorted or not */
    text_index index;     /* of by_token; without it that is sorted */
    size_t count, tokens;
    uint32_t specials[TEXT_MAX_SPECIALS]; /* the first of the special ones */
    size_t special_count;
} text_vocabulary;

/*
 * From an object of tokens with their ids; `file` names it in messages. `sparse`: some ids may have
 * no token; they are special and empty.
 */
iso_status text_vocabulary_read(text_vocabulary *v, model_arena *arena, const json_t *object,
                                const char *file, int sparse, iso_error *error);
/*
 * The same, token by token: room for so many (0: no memory), then each (0: it is there already, or
 * has no place in the table), whose text stays where it is, then the ids 0 .. count - 1.
 */
int text_vocabulary_begin(text_vocabulary *v, model_arena *arena, size_t room);
int text_vocabulary_put(text_vocabulary *v, const char *token, size_t bytes, uint32_t id);
iso_status text_vocabulary_number(text_vocabulary *v, model_arena *arena, size_t count,
                                  const char *file, iso_error *error);
/* The largest id in a vocabulary of so many tokens that may have holes. */
#define TEXT_MAX_ID(tokens) (4 * (size_t)(tokens) + 65536)
/* Sorts by_token; there is no table any more. */
void text_vocabulary_sort(text_vocabulary *v);
uint64_t text_token_hash(const char *token, size_t bytes);
/* MODEL_NO_ID when there is no such token. */
uint32_t text_vocabulary_find(const text_vocabulary *v, const char *token, size_t bytes);
/*
 * The id of the special token that `config` names with `key`, a string or an object with it in
 * "content", else `name`. When the vocabulary lacks it: an error if *id is MODEL_NO_ID, else
 * nothing happens.
 */
iso_status text_find_special(text_vocabulary *v, const json_t *config, const char *key,
                             const char *name, const char *file, uint32_t *id, iso_error *error);
/* A JSON file that may be missing: *root is NULL then, without an error. */
iso_status text_json_optional(json_t **root, const char *directory, const char *name, size_t limit,
                              iso_error *error);
/* The string of a key, as above. */
const char *text_string_or(const json_t *root, const char *key, const char *otherwise);

int text_is_space(uint32_t code); /* white space of Unicode */

/* ---------------------------------------------------------------------------------- writers */

/* Sequences of ids: what has been written, and what would be with more room. */
typedef struct text_ids {
    uint32_t *ids;
    size_t *lengths;
    size_t id_room, sequence_room, id_count, sequence_count;
    size_t unknown, dropped; /* characters that became the unknown token, or no token */
} text_ids;

void text_put_id(text_ids *out, uint32_t id);
/* Ends a sequence that began when id_count was `before`. */
void text_end_sequence(text_ids *out, size_t before);

/* Text of which whole pieces are written while there is room. */
typedef struct text_chars {
    char *text;
    size_t room, used, needed; /* without the NUL */
    int cut;
    int partial; /* more ids are to come: no U+FFFD for a character that they may complete */
} text_chars;

void text_put_chars(text_chars *out, const char *text, size_t bytes);

/* ------------------------------------------------------------------------------------ kinds */

enum { TEXT_SOURCE, TEXT_TARGET };

/* A class of tokenizers as tokenizer_config.json or, where that names none, config.json tells it.
 */
typedef struct text_class {
    const char *name;       /* tokenizer_class, without "Fast" at its end */
    const char *model_type; /* or NULL */
    const struct text_kind *kind;
    const struct text_recipe *recipe; /* what its older files do not say, or NULL */
    const struct text_family *family; /* the same of files of SentencePiece, and of languages */
} text_class;

typedef struct text_kind {
    /* `config`: tokenizer_config.json, an empty object where there is none. */
    iso_status (*load)(iso_tokenizer *t, const text_class *of, const char *directory,
                       const json_t *config, iso_error *error);
    iso_status (*encode)(const iso_tokenizer *t, text_ids *out, const char *text, size_t bytes,
                         iso_error *error);
    iso_status (*decode)(const iso_tokenizer *t, text_chars *out, const uint32_t *ids, size_t count,
                         int side);
    void (*free)(iso_tokenizer *t); /* what is not in the arena; NULL: nothing */
    int surplus;                    /* a model may have more ids than tokens: no text */
    /* As encode, of a target; NULL: as a source, with other ids around it (target.c). */
    iso_status (*encode_target)(const iso_tokenizer *t, text_ids *out, const char *text,
                                size_t bytes, iso_error *error);
} text_kind;

iso_status text_check_utf8(const char *text, size_t bytes, iso_error *error);
/* The counts of what was put; ISOBIT_E_WORKSPACE if there was no room for it. */
iso_status text_ids_count(const text_ids *ids, size_t *id_count, size_t *sequence_count,
                          iso_error *error);

extern const text_kind text_characters, text_marian, text_m2m, text_pipeline_kind;
extern const struct text_recipe text_gpt2, text_roberta, text_qwen2, text_bert;
extern const struct text_family text_nllb, text_mbart, text_mbart50, text_t5, text_pegasus,
    text_llama, text_gemma;

/* A tokenizer from a GGUF file. */
iso_status text_gguf_load(iso_tokenizer *t, const char *directory, const char *name,
                          iso_error *error);

/* ------------------------------------------------------------------------------- languages */

/* In the order of their ids, NULL at the end. */
extern const char *const text_nllb_languages[],
    *const text_mbart_languages[], *const text_m2m_languages[], *const text_wmt21_languages[];

/* Some of the languages that a tokenizer has, for a message. */
enum { TEXT_LANGUAGES_NAMED = 6 };
typedef struct text_languages {
    char text[TEXT_LANGUAGES_NAMED * 16];
    size_t used, count;
} text_languages;
void text_languages_add(text_languages *known, const char *name, size_t bytes);
/* `name`: quoted. */
iso_status text_languages_fail(const text_languages *known, const char *name, iso_error *error);
/* An error if the caller names languages where there are none. */
iso_status text_languages_none(const iso_tokenizer *t, iso_error *error);

struct iso_tokenizer {
    const text_kind *kind;
    text_vocabulary vocabulary[2]; /* of sources and of targets; often the same */
    uint32_t eos, unk;
    uint32_t forced_bos;                           /* MODEL_NO_ID: none */
    void *state;                                   /* of the kind */
    const char *source_language, *target_language; /* of the caller, or NULL; while loading */
    model_arena arena;
};

#endif
