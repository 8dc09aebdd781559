/* SPDX-License-Identifier: MIT
 *
 * What the files of test_text_families share.
 */
#ifndef ISOBIT_TESTS_TEST_TEXT_FAMILIES_H
#define ISOBIT_TESTS_TEST_TEXT_FAMILIES_H

#include "model_files.h"
#include "spm_writer.h"

#include <isobit/model.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLASS(name, more) "{\"tokenizer_class\":\"" name "\"" more "}"
#define LLAMA(more) CLASS("LlamaTokenizer", more)
#define BAR "\xe2\x96\x81"
#define AB " " BAR "a b "
#define NLLB CLASS("NllbTokenizer", ",\"additional_special_tokens\":[\"eng_Latn\",\"x_y\"]")

/* Set if libsentencepiece is there. */
extern int with_sentencepiece;

/* text_families/pieces.c */
void test_pieces(void **state);
void test_marian_bytes(void **state);

/* text_families/targets.c */
void test_targets(void **state);

#endif
