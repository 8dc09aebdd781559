/* SPDX-License-Identifier: MIT
 *
 * The large parts of files, vocabulary and merges, without a tree of all their values. What is
 * read is what jansson would read; of anything unusual (an escape of half a character, an id with a
 * fraction, a token that is there twice) the answer is 0, and jansson reads all of the file, so
 * that what is accepted and what errors say is one thing.
 */
#ifndef ISOBIT_MODEL_SCAN_H
#define ISOBIT_MODEL_SCAN_H

#include "text.h"

typedef struct text_scanned_token {
    uint32_t bytes, id;
    double score; /* of a list [[token, score], ...], where the id is the place */
} text_scanned_token;

typedef struct text_scanned_merge {
    uint32_t left, right; /* bytes */
} text_scanned_merge;

typedef struct text_scanned {
    const char *text; /* of the tokens, one after the other, each with a NUL */
    text_scanned_token *tokens;
    size_t count, text_bytes;
    int is_list;             /* of scores, not an object of ids */
    const char *merges_text; /* left and right part, and so on, without NUL */
    text_scanned_merge *merges;
    size_t merge_count;
    json_t *rest; /* the file with an empty vocabulary and no merges */
    model_arena arena;
} text_scanned;

/* tokenizer.json: "vocab" and "merges" of "model". 0: not so. Ends with text_scanned_free. */
int text_scan_tokenizer(text_scanned *s, const char *text, size_t bytes);
/* vocab.json: an object of ids; and vocab.txt: a token each line. There is no rest. */
int text_scan_vocabulary(text_scanned *s, const char *text, size_t bytes);
int text_scan_lines(text_scanned *s, const char *text, size_t bytes);
void text_scanned_free(text_scanned *s);

/*
 * A vocabulary of the tokens, with room for so many besides, and then with added tokens
 * [{"content", "id", ...}] in it. 0: the file is read as a whole.
 */
int text_scanned_begin(const text_scanned *s, text_vocabulary *v, model_arena *arena, size_t more);
int text_scanned_finish(text_vocabulary *v, model_arena *arena, const json_t *added);

#endif
