/* SPDX-License-Identifier: MIT
 *
 * What tokenizers on libsentencepiece share, whose ids are those of vocab.json.
 */
#ifndef ISOBIT_MODEL_SPM_TEXT_H
#define ISOBIT_MODEL_SPM_TEXT_H

#include "pipeline.h"
#include "sentencepiece.h"

/* A file of SentencePiece, whose pieces the vocabulary must have, but for a few. */
iso_status text_spm_open(text_spm **spm, const char *directory, const char *name,
                         const text_vocabulary *v, const char *vocabulary_name, iso_error *error);

/* Code points, spaces of SentencePiece not among them. */
size_t text_count_characters(const char *text, size_t bytes);

/* Takes off what surrounds a text, as Python's strip() does; a text_spm_put. */
typedef struct text_stripped {
    text_chars *out;
    int bars; /* those that are left become spaces */
} text_stripped;
void text_put_stripped(void *to, const char *text, size_t bytes);

#endif
