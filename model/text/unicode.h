/* SPDX-License-Identifier: MIT
 *
 * What tokenizers must know about Unicode, from utf8proc, and a buffer for text that grows.
 */
#ifndef ISOBIT_MODEL_UNICODE_H
#define ISOBIT_MODEL_UNICODE_H

#include "text.h"

int text_is_letter(uint32_t code);      /* category L */
int text_is_number(uint32_t code);      /* N */
int text_is_punctuation(uint32_t code); /* P */
int text_is_accent(uint32_t code);      /* Mn */
int text_is_mark(uint32_t code);        /* M */
int text_is_other(uint32_t code);       /* C, but for code points that are not assigned */
size_t text_grapheme(const char *text, size_t bytes); /* the bytes of the first cluster */
int text_is_word(uint32_t code);                      /* what regular expressions call \w */

/* The same as tokenizers see it in StripAccents, and in BERT's steps (old_unicode.c). */
int text_is_old_mark(uint32_t code);
int text_is_bert_accent(uint32_t code);
int text_is_bert_punctuation(uint32_t code);
int text_is_bert_control(uint32_t code);

/* Characters younger than tokenizers' normal forms, which leave them as they are. */
int text_is_unformed(uint32_t code);

/* Marks of Unicode 16, which tokenizers knows and utf8proc 2.8 does not. */
int text_is_new_mark(uint32_t code);

typedef struct text_buffer {
    char *text;
    size_t count, room;
    int failed;  /* no memory: what came later is lost */
    int partial; /* as in text_chars */
} text_buffer;

void text_buffer_put(text_buffer *b, const char *text, size_t bytes);
void text_buffer_code(text_buffer *b, uint32_t code); /* as UTF-8 */
void text_buffer_free(text_buffer *b);

typedef enum text_form { TEXT_NFC, TEXT_NFD, TEXT_NFKC, TEXT_NFKD } text_form;

/* Appends a normal form of valid UTF-8. */
void text_normalize(text_buffer *out, const char *text, size_t bytes, text_form form);
/* Appends the lower case of a code point, which may be two. */
void text_put_lower(text_buffer *out, uint32_t code);

#endif
