/* SPDX-License-Identifier: MIT
 *
 * What the files of test_pipeline share.
 */
#ifndef ISOBIT_TESTS_TEST_PIPELINE_H
#define ISOBIT_TESTS_TEST_PIPELINE_H

#include "model_files.h"

#include <isobit/model.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define CONFIG "{\"tokenizer_class\":\"PreTrainedTokenizerFast\"}"
#define VOCAB "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"\\u00c3\":3,\"\\u00a9\":4}"
#define MERGES "\"merges\":[\"a b\"]"
#define MODEL "\"model\":{\"type\":\"BPE\"," VOCAB "," MERGES "}"
#define BYTES "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"
#define PRE "\"pre_tokenizer\":" BYTES
#define DECODER "\"decoder\":{\"type\":\"ByteLevel\"}"
#define PIECES                                                                                     \
    "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"a\":1,\"##b\":2}}"
#define BERT                                                                                       \
    "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"decoder\":{\"type\":\"WordPiece\"}"

#define BAR "\xe2\x96\x81"

/* Unigram, and BPE on characters. */
#define META "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\"}"
#define META_END "\"decoder\":{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\"}"
#define SCORES "\"vocab\":[[\"?\",0],[\"a\",-1.5],[\"b\",-2],[\"\xe2\x96\x81\",-1]]"
#define UNIGRAM "\"model\":{\"type\":\"Unigram\",\"unk_id\":0," SCORES "}"
#define CHARS "\"model\":{\"type\":\"BPE\",\"unk_token\":\"b\",\"fuse_unk\":true," VOCAB "," MERGES
/* BPE on characters without words, whose unknown ones are bytes. */
#define SPELT_VOCAB                                                                                \
    "\"vocab\":{\"?\":0,\"a\":1,\"b\":2,\"ab\":3,\"\xe2\x96\x81\":4,\"\xe2\x96\x81"                \
    "a\":5,"                                                                                       \
    "\"<0xC3>\":6,\"<0xA9>\":7,\"<0x+A>\":8,\"<0x0g>\":9,\"<0xf0>\":10,\"<0x64>\":11,\"aba\":12}"
#define SPELT_MERGES "\"merges\":[\"a b\",\"\xe2\x96\x81 a\"]"
#define SPELT_OR(fallback, model, more, decoders)                                                  \
    "{\"model\":{\"type\":\"BPE\",\"byte_fallback\":" fallback model "," SPELT_VOCAB               \
    "," SPELT_MERGES "}" more ",\"decoder\":{\"type\":\"Sequence\",\"decoders\":[" decoders "]}}"
#define SPELT(model, more, decoders) SPELT_OR("true", model, more, decoders)
#define REPLACE_BAR                                                                                \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xe2\x96\x81\"},\"content\":\" \"}"
#define FALLBACK "{\"type\":\"ByteFallback\"}"
#define FUSE "{\"type\":\"Fuse\"}"
#define STRIP(start, stop, content)                                                                \
    "{\"type\":\"Strip\",\"content\":\"" content "\",\"start\":" #start ",\"stop\":" #stop "}"
#define ALL_OF_IT REPLACE_BAR "," FALLBACK "," FUSE "," STRIP(1, 0, " ")

#define REPLACE(pattern, content)                                                                  \
    "\"type\":\"Replace\",\"content\":\"" content "\",\"pattern\":{" pattern "}"
#define BARS REPLACE("\"String\":\" \"", BAR)
#define E_ACUTE "\xc3\xa9"
#define BYTE_SCORES(fallback)                                                                      \
    "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0" fallback ",\"vocab\":[[\"?\",0],[\"a\",-1],"   \
    "[\"b\",-2],[\"<0xC3>\",-3],[\"<0xA9>\",-3],[\"<0xA8>\",-3]]}"                                 \
    ",\"decoder\":{\"type\":\"Sequence\",\"decoders\":[" ALL_OF_IT "]}}"

/* test_pipeline.c */
extern const char good_unigram[], good_characters[], good_bpe[], good_wordpiece[];
iso_tokenizer *load(const files *f, const char *config, iso_status *status, iso_error *error);
iso_tokenizer *good(const files *f, const char *json);
/* Ids, as letters from 'a' on. */
void encodes_as(const files *f, const char *config, const char *json, const char *text,
                const char *wanted);
void encodes(const files *f, const char *json, const char *text, const char *wanted);

/* pipeline/refused.c */
void test_refused(void **state);
void test_older_files(void **state);
void test_vocab_txt(void **state);
void test_steps(void **state);

/* pipeline/pieces.c */
void test_unigram(void **state);
void test_spelt(void **state);
void test_metaspace(void **state);
void test_clusters(void **state);
void test_young_characters(void **state);
void test_spaces(void **state);
void test_bert_controls(void **state);

/* pipeline/merges.c */
void test_forms_of_merges(void **state);
void test_order_of_merges(void **state);
void test_long_word(void **state);
void test_lacks(void **state);
void test_all_bytes(void **state);
void test_special_names(void **state);
void test_added_twice(void **state);

/* pipeline/decode.c */
void test_tidy_text(void **state);
void test_bytes(void **state);
void test_spelt_text(void **state);
void test_partial_tidy(void **state);

#endif
