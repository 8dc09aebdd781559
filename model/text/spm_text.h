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

/*
 * The text of ids, special ones left out, without what surrounds it, as Python's strip() takes it
 * off. `bars`: those that are left, of pieces that the file does not know, become spaces.
 */
iso_status text_spm_decode_ids(const text_spm *spm, const text_vocabulary *v, text_chars *out,
                               const uint32_t *ids, size_t count, int bars);

#endif
