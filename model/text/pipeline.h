/* SPDX-License-Identifier: MIT
 *
 * The tokenizers of tokenizer.json: text -> added tokens cut out -> normal form -> words -> tokens
 * of each word -> special tokens around them. What a file asks for becomes pointers and flags here
 * (pipeline_json.c, pipeline_steps.c and pipeline_model.c, and pipeline_files.c for directories
 * without tokenizer.json); pipeline.c runs them and knows no family.
 */
#ifndef ISOBIT_MODEL_PIPELINE_H
#define ISOBIT_MODEL_PIPELINE_H

#include "spm_file.h"
#include "unicode.h"

/* --------------------------------------------------------------------------- added tokens */

/* Tokens that are found as they are written, before words are made: <s>, [MASK], <|user|>. */
typedef struct text_added {
    const char *token;
    size_t bytes;
    uint32_t id;
    int single_word, lstrip, rstrip; /* whole words only; takes the white space beside it along */
    int normalized;                  /* looked for after the normal form, not before */
} text_added;

typedef struct text_added_set {
    text_added *tokens; /* sorted, so that those with the same first byte are neighbours */
    size_t count;
    size_t first[257]; /* where the tokens with each first byte begin */
} text_added_set;

void text_added_sort(text_added_set *set);

/* Receives the parts of a text in order: `added` is NULL for text between added tokens. */
typedef iso_status text_part(void *to, const text_added *added, const char *text, size_t bytes);
iso_status text_added_split(const text_added_set *set, int normalized, const char *text,
                            size_t bytes, text_part *part, void *to);

/* ------------------------------------------------------------------------------ the steps */

/* One step of the normal form: appends to `out`. */
typedef struct text_step {
    void (*run)(const struct text_step *step, text_buffer *out, const char *text, size_t bytes);
    text_form form;                                          /* normal forms of Unicode */
    int clean, chinese_characters, strip_accents, lowercase; /* BERT's */
    text_charsmap charsmap;                                  /* SentencePiece's */
    const char *from, *to; /* replaces one by the other; `from` NULL: two spaces and more. Or `to`
                              goes before the text */
    int left, right;       /* takes white space off these ends */
} text_step;

void text_step_form(const text_step *step, text_buffer *out, const char *text, size_t bytes);
void text_step_lowercase(const text_step *step, text_buffer *out, const char *text, size_t bytes);
void text_step_strip_accents(const text_step *step, text_buffer *out, const char *text,
                             size_t bytes);
void text_step_bert(const text_step *step, text_buffer *out, const char *text, size_t bytes);
void text_step_charsmap(const text_step *step, text_buffer *out, const char *text, size_t bytes);
void text_step_replace(const text_step *step, text_buffer *out, const char *text, size_t bytes);
void text_step_prepend(const text_step *step, text_buffer *out, const char *text, size_t bytes);
void text_step_strip(const text_step *step, text_buffer *out, const char *text, size_t bytes);

/* The bytes of the next piece of a text that is not empty, at least 1; *word: 0 if it is dropped.
 */
typedef size_t text_splitter(const char *text, size_t bytes, int *word);
text_splitter text_split_gpt2, text_split_llama3, text_split_qwen2, text_split_bert,
    text_split_none;
/* The splitter of a regular expression that is known as it is written; or NULL. */
text_splitter *text_splitter_of(const char *pattern);

typedef struct text_merge {
    uint32_t left, right, rank, made;
} text_merge;

/* What makes tokens of a word. */
typedef struct text_model {
    iso_status (*encode)(const struct text_model *model, text_ids *out, const char *word,
                         size_t bytes);
    const text_vocabulary *vocabulary;
    const char *only_added; /* by id, 1: an added token that words are not made of */
    uint32_t unk;           /* or MODEL_NO_ID */
    /* BPE on bytes */
    uint32_t bytes[256]; /* the tokens of single bytes, or MODEL_NO_ID */
    text_merge *merges;  /* [merge_count] */
    size_t merge_count;
    text_index index;  /* of them; without it they are sorted by left, right */
    int ignore_merges; /* a word that is a token is that token */
    /* BPE on characters, and Unigram */
    int fuse_unk;        /* unknown characters in a row are one token */
    int byte_fallback;   /* an unknown character is the tokens of its bytes, if all are there: */
    uint32_t spelt[256]; /* <0x00> ... <0xFF>, or MODEL_NO_ID */
    /* WordPiece */
    const char *prefix; /* of pieces within a word */
    size_t longest_word;
    /* Unigram */
    const double *scores; /* by id */
    double unk_score;
} text_model;

iso_status text_bpe_encode(const text_model *model, text_ids *out, const char *word, size_t bytes);
iso_status text_wordpiece_encode(const text_model *model, text_ids *out, const char *word,
                                 size_t bytes);
/* BPE whose first tokens are characters, as SentencePiece has it. */
iso_status text_bpe_encode_characters(const text_model *model, text_ids *out, const char *word,
                                      size_t bytes);
iso_status text_unigram_encode(const text_model *model, text_ids *out, const char *word,
                               size_t bytes);
/* Byte fallback (spelt.c): looks for the tokens; whether they spell all of a text; puts them. */
void text_spelt_find(text_model *model);
int text_spells(const text_model *model, const char *text, size_t bytes);
void text_put_spelt(const text_model *model, text_ids *out, const char *text, size_t bytes);
/* The score of unknown characters, once the others are there, and the tokens in their order. */
void text_unigram_finish(text_model *model, text_vocabulary *vocabulary);
/* Once `merges` are there, in the order of their ranks. */
void text_bpe_finish(text_model *model, model_arena *arena);
/* The code point that stands for a byte in vocabularies of byte-level BPE, and back (-1: none). */
uint32_t text_byte_letter(unsigned char byte);
int text_letter_byte(uint32_t code);

/* Spaces as SentencePiece has them: U+2581 in tokens, before each word. */
#define TEXT_BAR "\xe2\x96\x81"
enum { TEXT_BAR_BYTES = 3 };
static inline int text_is_bar(const char *text, size_t bytes) {
    return bytes >= TEXT_BAR_BYTES && memcmp(text, TEXT_BAR, TEXT_BAR_BYTES) == 0;
}

typedef enum text_prepend {
    TEXT_PREPEND_NEVER,
    TEXT_PREPEND_FIRST,
    TEXT_PREPEND_ALWAYS
} text_prepend;

typedef struct text_metaspace {
    int used;             /* instead of a splitter */
    int words;            /* white space of all kinds separates words, and is dropped */
    text_prepend prepend; /* a bar to a part of the text: to none, the first one, each */
    int split;            /* before each bar */
    text_prepend decoder; /* not NEVER: the bars of the first token are dropped */
} text_metaspace;

enum { TEXT_MAX_STEPS = 8, TEXT_MAX_AROUND = 8 };

typedef struct text_pipeline {
    text_added_set added;
    text_step steps[TEXT_MAX_STEPS];
    size_t step_count;
    text_splitter *split;
    text_metaspace metaspace;
    int prefix_space; /* text that does not begin with a space gets one */
    text_model model;
    uint32_t before[TEXT_MAX_AROUND], after[TEXT_MAX_AROUND]; /* special tokens around */
    size_t before_count, after_count;
    void (*decode)(const struct text_pipeline *p, const text_vocabulary *v, text_buffer *out,
                   const uint32_t *ids, size_t count);
    size_t strip;     /* so many spaces at the beginning go, of those that the decoder makes */
    int cleanup;      /* of the spaces before punctuation, by the decoder */
    int cleanup_text; /* of the whole text, as tokenizer_config.json may ask */
} text_pipeline;

/* A part of the text, the first one or another. */
iso_status text_metaspace_put(const text_pipeline *p, text_ids *out, const char *text, size_t bytes,
                              int first);

/* Spaces before punctuation and English endings away, as the decoder or transformers does it. */
void text_tidy(text_buffer *text, int of_decoder);
/* Before that, of a text that still grows: takes off its end what more text may change. */
void text_hold(text_buffer *text);

void text_decode_bytes(const text_pipeline *p, const text_vocabulary *v, text_buffer *out,
                       const uint32_t *ids, size_t count);
void text_decode_wordpiece(const text_pipeline *p, const text_vocabulary *v, text_buffer *out,
                           const uint32_t *ids, size_t count);

void text_decode_metaspace(const text_pipeline *p, const text_vocabulary *v, text_buffer *out,
                           const uint32_t *ids, size_t count);
/* Spaces for bars, bytes for the tokens that spell them. */
void text_decode_spelt(const text_pipeline *p, const text_vocabulary *v, text_buffer *out,
                       const uint32_t *ids, size_t count);

/* ---------------------------------------------------------------------------- reading files */

/* tokenizer.json; *found says whether there is one. "added_tokens_decoder" of `config`, or NULL,
 * may change its added tokens. */
iso_status text_pipeline_json(iso_tokenizer *t, text_pipeline *p, const char *directory,
                              const json_t *config, int *found, iso_error *error);
/* Whether a family takes its file of SentencePiece although there is a tokenizer.json, and whether
 * "added_tokens_decoder" counts beside that. */
int text_family_rebuilds(const struct text_family *family, const char *directory,
                         const json_t *config);
int text_family_updates(const struct text_family *family);
/* A file of SentencePiece, as a family arranges it. */
iso_status text_pipeline_spm(iso_tokenizer *t, text_pipeline *p, const struct text_family *family,
                             const char *directory, const json_t *config, iso_error *error);
/* Pieces with scores from another place, `name` in messages, as the family of Llama arranges those
 * of BPE, that of T5 those of Unigram, with `extra` tokens behind them; pieces of no bytes are ids
 * without a token. `prefix`: a space goes before each part of a text.
 */
iso_status text_pipeline_pieces(iso_tokenizer *t, text_pipeline *p, const text_pieces *pieces,
                                int prefix, size_t extra, const char *name, iso_error *error);
/* Special tokens around a text that `config` tells, whatever tokenizer.json says. */
iso_status text_pipeline_around(iso_tokenizer *t, text_pipeline *p,
                                const struct text_family *family, const char *directory,
                                const json_t *config, iso_error *error);
/* The languages that the caller or `config` names: tokens around a source, the first one of a
 * target. */
iso_status text_pipeline_languages(iso_tokenizer *t, text_pipeline *p,
                                   const struct text_family *family, const json_t *config,
                                   iso_error *error);

/* The metadata of a GGUF file. */
iso_status text_pipeline_gguf(iso_tokenizer *t, text_pipeline *p, const char *directory,
                              const char *name, iso_error *error);

/* vocab.json and merges.txt, or vocab.txt. */
iso_status text_pipeline_files(iso_tokenizer *t, text_pipeline *p, const struct text_recipe *recipe,
                               const char *directory, const json_t *config, iso_error *error);

/* The words of BERT and their pieces, but for the unknown token. */
void text_pipeline_wordpiece(text_pipeline *p, int lowercase, int strip_accents, int chinese);

/* Reads the vocabulary; `added` [{"content", "id", ...}] are tokens besides. */
iso_status text_pipeline_vocabulary(iso_tokenizer *t, text_pipeline *p, const json_t *vocabulary,
                                    const json_t *added, const char *file, iso_error *error);
/* The added tokens, once the vocabulary is there: the first `own` of by_token are not only added,
 * or those of the object `vocabulary`, unless that is NULL. */
iso_status text_pipeline_added(iso_tokenizer *t, text_pipeline *p, size_t own,
                               const json_t *vocabulary, const json_t *added, const char *file,
                               iso_error *error);
/* The merges by their texts: one pair, whose rank is the number of those before it. */
iso_status text_pipeline_merge(text_pipeline *p, const char *left, size_t left_bytes,
                               const char *right, size_t right_bytes, const char *file,
                               iso_error *error);
/* Adds [{"id", "content", ...}], or {"id": {"content", ...}}, to a list of added tokens; those that
 * it has get new properties. CONFIG: ids that are none. */
iso_status text_added_update(json_t *list, const json_t *more, const char *file, iso_error *error);
/* Byte-level BPE on a vocabulary that has been read, with room for so many merges. */
iso_status text_pipeline_bpe(iso_tokenizer *t, text_pipeline *p, size_t merges, iso_error *error);

#endif
