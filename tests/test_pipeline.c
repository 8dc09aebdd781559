/* SPDX-License-Identifier: MIT
 *
 * tokenizer.json and the older files, damaged or beyond what isobit has: one sentence each that
 * names it. And what golden files do not show: characters that a vocabulary lacks, ids without a
 * token, bytes that are no text.
 */
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
#define WORD_OF(most)                                                                              \
    "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"a\",\"max_input_chars_per_word\":" #most   \
    ",\"vocab\":{\"a\":0}}," BERT "}"
/* A split before bytes that may be split, too. */
#define TWICE(prefix)                                                                              \
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"BertPreTokenizer\"}," \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":" prefix "}]}"
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
#define STEP(step) "{" UNIGRAM "," META "," META_END ",\"normalizer\":{" step "}}"

static const char good_unigram[] = "{" UNIGRAM "," META "," META_END "}";
static const char good_characters[] = "{" CHARS "}," META "," META_END "}";
static const char good_bpe[] = "{" MODEL "," PRE "," DECODER "}";
static const char good_wordpiece[] = "{" PIECES "," BERT "}";

static iso_tokenizer *load(const files *f, const char *config, iso_status *status,
                           iso_error *error) {
    iso_tokenizer *t = NULL;
    files_text(f, "tokenizer_config.json", config);
    *status = iso_tokenizer_load(&t, f->directory, error);
    return t;
}

static iso_tokenizer *good_as(const files *f, const char *config, const char *json) {
    iso_error error = {0};
    iso_status status;
    files_text(f, "tokenizer.json", json);
    iso_tokenizer *t = load(f, config, &status, &error);
    if (status)
        fail_msg("%s: %s", json, error.message);
    return t;
}

static iso_tokenizer *good(const files *f, const char *json) { return good_as(f, CONFIG, json); }

static void test_refused(void **state) {
    static const struct {
        const char *json, *says;
        iso_status status;
    } rows[] = {
        {"", "tokenizer.json", ISOBIT_E_JSON},
        {"[]", "tokenizer.json", ISOBIT_E_JSON},
        {"{}", "the model \"\"", ISOBIT_E_UNSUPPORTED},
        {"{\"model\":{\"type\":\"WordLevel\"," VOCAB "}," PRE "," DECODER "}", "\"WordLevel\"",
         ISOBIT_E_UNSUPPORTED},
        {"{" MODEL "," DECODER "}", "the decoder \"ByteLevel\"", ISOBIT_E_UNSUPPORTED},
        {"{" MODEL "," BERT "}", "without the pre_tokenizer ByteLevel the model \"BPE\"",
         ISOBIT_E_UNSUPPORTED},
        /* Bytes for characters. */
        {SPELT("", "", REPLACE_BAR), "the decoder \"Sequence\"", ISOBIT_E_UNSUPPORTED},
        {SPELT("", "", FALLBACK), "the decoder \"ByteFallback\"", ISOBIT_E_UNSUPPORTED},
        {SPELT("", "", REPLACE_BAR "," FALLBACK "," STRIP(1, 0, " ")), "the decoder \"Strip\"",
         ISOBIT_E_UNSUPPORTED},
        {SPELT("", "", REPLACE_BAR "," FALLBACK "," FUSE "," STRIP(1, 1, " ")),
         "decoder Strip than at the beginning", ISOBIT_E_UNSUPPORTED},
        {SPELT("", "", REPLACE_BAR "," FALLBACK "," FUSE "," STRIP(1, 0, "_")),
         "decoder Strip than at the beginning", ISOBIT_E_UNSUPPORTED},
        {SPELT("", "", REPLACE_BAR "," FALLBACK "," FUSE "," STRIP(-1, 0, " ")),
         "the decoder Strip", ISOBIT_E_CONFIG},
        {SPELT("", "", REPLACE_BAR "," FALLBACK "," FUSE "," STRIP(1, 0, " ") "," FUSE),
         "the decoder \"Fuse\"", ISOBIT_E_UNSUPPORTED},
        {SPELT("", "",
               "{\"type\":\"Replace\",\"pattern\":{\"String\":\"_\"},"
               "\"content\":\" \"}," FALLBACK),
         "decoder Replace", ISOBIT_E_UNSUPPORTED},
        {SPELT("", "", REPLACE_BAR "," FALLBACK "," FUSE "," STRIP(1025, 0, " ")),
         "the decoder Strip is", ISOBIT_E_CONFIG},
        {SPELT("", "", REPLACE_BAR "," FALLBACK "," FUSE "," STRIP(1, 1025, " ")),
         "the decoder Strip is", ISOBIT_E_CONFIG},
        {SPELT("", "", REPLACE_BAR "," FALLBACK "," FUSE "," STRIP(1, 1024, " ")),
         "decoder Strip than at the beginning", ISOBIT_E_UNSUPPORTED},
        {SPELT("", ",\"normalizer\":{\"type\":\"Prepend\"}", ALL_OF_IT), "the normalizer Prepend",
         ISOBIT_E_CONFIG},
        {SPELT("", ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\" \"}}",
               ALL_OF_IT),
         "the pre_tokenizer Split", ISOBIT_E_UNSUPPORTED}, /* the spaces are still there */
        {SPELT(",\"unk_token\":\"zz\"", "", ALL_OF_IT), "the unknown token of BPE",
         ISOBIT_E_MISSING},
        {"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Digits\"}," DECODER "}", "\"Digits\"",
         ISOBIT_E_UNSUPPORTED},
        {"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"x+\"},"
         "\"behavior\":\"Isolated\"}," DECODER "}",
         "\"x+\"", ISOBIT_E_UNSUPPORTED},
        {"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[" BYTES "," BYTES
         "]}," DECODER "}",
         "before \"ByteLevel\"", ISOBIT_E_UNSUPPORTED},
        {"{" MODEL "," TWICE("true,\"use_regex\":false") "," DECODER "}",
         "add_prefix_space after a split in \"ByteLevel\"", ISOBIT_E_UNSUPPORTED},
        {"{" MODEL "," TWICE("false,\"use_regex\":true") "," DECODER "}",
         "splits twice, with \"ByteLevel\"", ISOBIT_E_UNSUPPORTED},
        {"{" MODEL "," PRE "}", "the decoder \"\"", ISOBIT_E_UNSUPPORTED},
        {"{" MODEL "," PRE ",\"decoder\":{\"type\":\"Fuse\"}}", "the decoder \"Fuse\"",
         ISOBIT_E_UNSUPPORTED},
        {"{" MODEL "," PRE "," DECODER ",\"normalizer\":{\"type\":\"Nmt\"}}", "\"Nmt\"",
         ISOBIT_E_UNSUPPORTED},
        {"{" MODEL "," PRE "," DECODER ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":["
         "{\"type\":\"NFC\"},{\"type\":\"Nmt\"}]}}",
         "\"Nmt\"", ISOBIT_E_UNSUPPORTED},
        {"{" MODEL "," PRE "," DECODER ",\"post_processor\":{\"type\":\"Odd\"}}", "\"Odd\"",
         ISOBIT_E_UNSUPPORTED},
        {"{" MODEL "," PRE "," DECODER ",\"post_processor\":{\"type\":\"TemplateProcessing\","
         "\"single\":[{\"SpecialToken\":{\"id\":\"zz\"}},{\"Sequence\":{\"id\":\"A\"}}]}}",
         "post_processor", ISOBIT_E_CONFIG},
        {"{" MODEL "," PRE "," DECODER ",\"post_processor\":{\"type\":\"TemplateProcessing\","
         "\"single\":[{\"SpecialToken\":{\"id\":\"a\"}}]}}",
         "post_processor", ISOBIT_E_CONFIG},
        {"{" MODEL "," PRE "," DECODER ",\"post_processor\":{\"type\":\"RobertaProcessing\"}}",
         "post_processor", ISOBIT_E_CONFIG},
        {"{" MODEL "," PRE "," DECODER ",\"post_processor\":{\"type\":\"BertProcessing\","
         "\"cls\":[\"zz\",7],\"sep\":[\"a\",0]}}",
         "post_processor", ISOBIT_E_CONFIG},
        {"{\"model\":{\"type\":\"BPE\"," VOCAB ",\"merges\":[\"ab\"]}," PRE "," DECODER "}",
         "a merge", ISOBIT_E_CONFIG},
        {"{\"model\":{\"type\":\"BPE\"," VOCAB ",\"merges\":[7]}," PRE "," DECODER "}", "a merge",
         ISOBIT_E_CONFIG},
        {"{\"model\":{\"type\":\"BPE\"," VOCAB ",\"merges\":[[\"a\"]]}," PRE "," DECODER "}",
         "a merge", ISOBIT_E_CONFIG},
        {"{\"model\":{\"type\":\"BPE\"," VOCAB ",\"merges\":[\"a b\",\"b a\"]}," PRE "," DECODER
         "}",
         "merge 1 has parts", ISOBIT_E_CONFIG},
        {"{\"model\":{\"type\":\"BPE\"," VOCAB "," MERGES ",\"dropout\":0.1}," PRE "," DECODER "}",
         "\"dropout\"", ISOBIT_E_UNSUPPORTED},
        {"{\"model\":{\"type\":\"BPE\"," VOCAB "," MERGES ",\"end_of_word_suffix\":\"</w>\"}," PRE
         "," DECODER "}",
         "\"end_of_word_suffix\"", ISOBIT_E_UNSUPPORTED},
        {"{\"model\":{\"type\":\"BPE\"," VOCAB "," MERGES ",\"byte_fallback\":true}," PRE
         "," DECODER "}",
         "byte_fallback", ISOBIT_E_UNSUPPORTED},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0}," MERGES "}," PRE "," DECODER
         "}",
         "id 0 of another", ISOBIT_E_DUPLICATE},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":99999999}," MERGES "}," PRE "," DECODER "}",
         "\"a\"", ISOBIT_E_CONFIG},
        {"{" MODEL "," PRE "," DECODER ",\"added_tokens\":[{\"content\":\"a\",\"id\":1}]}",
         "added token 0", ISOBIT_E_CONFIG},
        {"{" MODEL "," PRE "," DECODER ",\"added_tokens\":[{\"content\":\"zz\"}]}", "added token 0",
         ISOBIT_E_CONFIG},
        {"{" MODEL "," PRE "," DECODER ",\"added_tokens\":[{\"content\":\"\",\"id\":7}]}",
         "added token 0", ISOBIT_E_CONFIG},
        {"{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"!\",\"vocab\":{\"a\":0}}," BERT "}",
         "unknown token", ISOBIT_E_MISSING},
        {WORD_OF(0), "max_input_chars_per_word", ISOBIT_E_CONFIG},
        {WORD_OF(-1), "max_input_chars_per_word", ISOBIT_E_CONFIG},
        {"{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"a\",\"vocab\":{\"a\":0}}," PRE
         "," DECODER "}",
         "with the pre_tokenizer ByteLevel the model \"WordPiece\"", ISOBIT_E_UNSUPPORTED},
        {"{" PIECES ",\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"decoder\":{\"type\":"
         "\"WordPiece\",\"prefix\":\"@@\"}}",
         "\"@@\"", ISOBIT_E_UNSUPPORTED},
        /* Unigram and Metaspace. */
        {"{\"model\":{\"type\":\"Unigram\"," SCORES "}," META "," META_END "}", "unk_id",
         ISOBIT_E_CONFIG},
        {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":4," SCORES "}," META "," META_END "}",
         "unk_id", ISOBIT_E_CONFIG},
        {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":null," SCORES "}," META "," META_END "}",
         "unk_id", ISOBIT_E_CONFIG},
        {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[]}," META "," META_END "}",
         "unk_id", ISOBIT_E_CONFIG},
        {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\",\"x\"]]}," META
         "," META_END "}",
         "a score of the vocabulary", ISOBIT_E_CONFIG},
        {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\"]]}," META "," META_END
         "}",
         "a score of the vocabulary", ISOBIT_E_CONFIG},
        {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[1,2]]}," META "," META_END "}",
         "the vocabulary", ISOBIT_E_CONFIG},
        {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\",2],[\"a\",3]]}," META
         "," META_END "}",
         "the vocabulary", ISOBIT_E_CONFIG},
        {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":{\"a\":1}}," META "," META_END
         "}",
         "", ISOBIT_E_CONFIG},
        {"{" UNIGRAM "," PRE "," DECODER "}",
         "with the pre_tokenizer ByteLevel the model \"Unigram\"", ISOBIT_E_UNSUPPORTED},
        {"{" PIECES "," META "," META_END "}",
         "with the pre_tokenizer Metaspace the model \"WordPiece\"", ISOBIT_E_UNSUPPORTED},
        {"{" UNIGRAM "," META "," DECODER "}", "the decoder \"ByteLevel\"", ISOBIT_E_UNSUPPORTED},
        {"{" UNIGRAM ",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\"}," META_END
         "}",
         "the replacement \"_\"", ISOBIT_E_UNSUPPORTED},
        {"{" UNIGRAM "," META ",\"decoder\":{\"type\":\"Metaspace\"}}", "the replacement \"\"",
         ISOBIT_E_UNSUPPORTED},
        {"{" UNIGRAM ",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":"
         "\"\xe2\x96\x81\",\"prepend_scheme\":\"odd\"}," META_END "}",
         "the prepend_scheme \"odd\"", ISOBIT_E_UNSUPPORTED},
        {"{" UNIGRAM ",\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"}," META_END "}",
         "without Metaspace", ISOBIT_E_UNSUPPORTED},
        {"{" UNIGRAM ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
         "\"WhitespaceSplit\"},{\"type\":\"Digits\"}]}," META_END "}",
         "\"Digits\"", ISOBIT_E_UNSUPPORTED},
        {"{" UNIGRAM ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
         "\"WhitespaceSplit\"},{\"type\":\"WhitespaceSplit\"}]}," META_END "}",
         "a second pre_tokenizer", ISOBIT_E_UNSUPPORTED},
        {STEP("\"type\":\"Precompiled\""), "precompiled_charsmap", ISOBIT_E_CONFIG},
        {STEP("\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAA\""), "precompiled_charsmap",
         ISOBIT_E_CONFIG},
        {STEP("\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AA*=\""), "precompiled_charsmap",
         ISOBIT_E_CONFIG},
        {STEP("\"type\":\"Precompiled\",\"precompiled_charsmap\":\"A=A=\""), "precompiled_charsmap",
         ISOBIT_E_CONFIG},
        {STEP("\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAAAAAAA\""),
         "tokenizer.json: the table of normal forms has a wrong size", ISOBIT_E_CONFIG},
        {STEP("\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AQ==\""),
         "tokenizer.json: the table of normal forms has a wrong size", ISOBIT_E_CONFIG},
        {STEP("\"type\":\"Replace\""), "the normalizer Replace", ISOBIT_E_CONFIG},
        {STEP("\"type\":\"Replace\",\"content\":\"x\""), "the normalizer Replace", ISOBIT_E_CONFIG},
        {STEP("\"type\":\"Replace\",\"content\":\"x\",\"pattern\":{\"String\":\"\"}"),
         "the normalizer Replace", ISOBIT_E_CONFIG},
        {STEP("\"type\":\"Replace\",\"content\":\"x\",\"pattern\":{\"Regex\":\"y+\"}"),
         "the pattern \"y+\"", ISOBIT_E_UNSUPPORTED},
    };
    (void)state;
    files f;
    iso_error error = {0};
    iso_status status;
    files_make(&f);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        files_text(&f, "tokenizer.json", rows[i].json);
        iso_tokenizer *t = load(&f, CONFIG, &status, &error);
        if (status != rows[i].status || t || !strstr(error.message, rows[i].says))
            fail_msg("%s: %d \"%s\"", rows[i].json, (int)status, error.message);
    }
    iso_tokenizer_free(
        good(&f, SPELT("", "", REPLACE_BAR "," FALLBACK "," FUSE "," STRIP(0, 0, " "))));
    iso_tokenizer_free(
        good(&f, SPELT("", "", REPLACE_BAR "," FALLBACK "," FUSE "," STRIP(1024, 0, " "))));
    iso_tokenizer_free(good(&f, WORD_OF(1)));
    iso_tokenizer_free(good(&f, good_bpe));
    iso_tokenizer_free(good(&f, good_wordpiece));
    iso_tokenizer_free(good(&f, good_unigram));
    iso_tokenizer_free(good(&f, good_characters));
    files_remove(&f);
}

/* Ids, as letters from 'a' on. */
static void encodes_as(const files *f, const char *config, const char *json, const char *text,
                       const char *wanted) {
    uint32_t ids[64];
    char got[65];
    size_t count, length, sequences;
    iso_tokenizer *t = good_as(f, config, json);
    assert_int_equal(
        iso_tokenizer_encode(t, text, strlen(text), ids, 64, &count, &length, 1, &sequences, NULL),
        ISOBIT_OK);
    for (size_t i = 0; i < count; i++)
        got[i] = (char)('a' + ids[i]);
    got[count] = 0;
    if (strcmp(got, wanted) != 0)
        fail_msg("%s, \"%s\": %s instead of %s", json, text, got, wanted);
    iso_tokenizer_free(t);
}

static void encodes(const files *f, const char *json, const char *text, const char *wanted) {
    encodes_as(f, CONFIG, json, text, wanted);
}

#define WAYS(scores)                                                                               \
    "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",0]," scores "]}," META        \
    "," META_END "}"
#define NFC "\"type\":\"NFC\""
#define SPLIT(more, step)                                                                          \
    "{" UNIGRAM ",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\"" more \
    "}," META_END ",\"normalizer\":{" step "}}"
#define REPLACE(pattern, content)                                                                  \
    "\"type\":\"Replace\",\"content\":\"" content "\",\"pattern\":{" pattern "}"

/*
 * What tokenizers gives (0.21.4, the same files) where sums are equal, where scores are positive,
 * and with the unknown: what real vocabularies hardly show.
 */
static void test_unigram(void **state) {
    (void)state;
    files f;
    files_make(&f);
    encodes(&f, good_unigram, "ab", "dbc");
    encodes(&f, good_unigram, "xay", "daba"); /* the unknown one by one, with a between */
    encodes(&f, good_unigram, "xyz", "da");   /* and in a row */
    encodes(&f, good_unigram, "a b", "dbdc");
    encodes(&f, good_unigram, " a", "db"); /* a space is there already */
    /* aa twice, or a and aaa: the sum found first stays. */
    encodes(&f, WAYS("[\"\xe2\x96\x81\",0],[\"a\",-4],[\"aa\",-1],[\"aaa\",2]"), "aaaa", "bce");
    encodes(&f, WAYS("[\"\xe2\x96\x81\",0],[\"a\",-1],[\"aa\",-2]"), "aaa", "bcd");
    encodes(&f, WAYS("[\"\xe2\x96\x81\",0],[\"a\",-2],[\"aa\",-2]"), "aaa", "bcd");
    /* An unknown character costs 10 more than any token. */
    encodes(&f, WAYS("[\"\xe2\x96\x81\",0],[\"a\",5],[\"ab\",-3]"), "ab", "bd");
    /* Nothing is less than the least score, which is that of the unknown token, too. */
    encodes(&f, WAYS("[\"\xe2\x96\x81\",99],[\"ab\",60]"), "ab", "bc");
    /* Unknown characters may score better than a token; together they are that token. */
    encodes(
        &f,
        "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",100],[\"\xe2\x96\x81\","
        "100],[\"ab\",100]]}," META "," META_END "}",
        "ab", "bc");
    /* A token that is added only is none that words are made of. */
    encodes(&f,
            "{" UNIGRAM "," META "," META_END
            ",\"added_tokens\":[{\"content\":\"ab\",\"id\":9,\"single_word\":true}]}",
            "xab ab", "dabcdj");
    files_remove(&f);
}

#define ADDED_B ",\"added_tokens\":[{\"content\":\"b\",\"id\":2,\"normalized\":false}]"
#define ONE_WORD(scheme)                                                                           \
    SPELT("",                                                                                      \
          ",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"" BAR                      \
          "\",\"prepend_scheme\":\"" scheme "\",\"split\":false}" ADDED_B,                         \
          ALL_OF_IT)
#define BARS REPLACE("\"String\":\" \"", BAR)
#define E_ACUTE "\xc3\xa9"
#define BYTE_SCORES(fallback)                                                                      \
    "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0" fallback ",\"vocab\":[[\"?\",0],[\"a\",-1],"   \
    "[\"b\",-2],[\"<0xC3>\",-3],[\"<0xA9>\",-3],[\"<0xA8>\",-3]]}"                                 \
    ",\"decoder\":{\"type\":\"Sequence\",\"decoders\":[" ALL_OF_IT "]}}"

/* What tokenizers gives (0.21.4, the same files): characters that bytes spell, all of them or not.
 */
static void test_spelt(void **state) {
    static const struct {
        const char *json, *ids[8]; /* of the texts */
    } rows[] = {
        {SPELT("", "", ALL_OF_IT), {"bghc", "gh", "", "ghb", "db", "ld", "dbbb", "dd"}},
        /* The unknown token waits, and comes after the bytes. */
        {SPELT(",\"unk_token\":\"?\"", "", ALL_OF_IT),
         {"bghc", "ghaa", "aaa", "aghaab", "db", "ld", "adbabaab", "dd"}},
        {SPELT(",\"unk_token\":\"?\",\"fuse_unk\":true", "", ALL_OF_IT),
         {"bghc", "gha", "a", "ghab", "db", "ld", "adbabab", "dd"}},
        {SPELT(",\"ignore_merges\":true", "", ALL_OF_IT),
         {"bghc", "gh", "", "ghb", "m", "ld", "dbbb", "dd"}},
        {SPELT_OR("false", ",\"unk_token\":\"?\"", "", ALL_OF_IT),
         {"bac", "aaa", "aaa", "aaaab", "db", "ad", "adbabaab", "dd"}},
        /* As the files of Llama and of Gemma have it. */
        {SPELT("",
               ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\","
               "\"prepend\":\"" BAR "\"},{" BARS "}]}",
               ALL_OF_IT),
         {"fghc", "egh", "e", "eghb", "edb", "eld", "eedbfef", "edd"}},
        {ONE_WORD("first"), {"fghc", "egh", "e", "eghb", "fcb", "elbc", "fcbfef", "fcbc"}},
        {ONE_WORD("always"), {"fghc", "egh", "e", "eghb", "fcf", "elbc", "fcffef", "fcfc"}},
        {SPELT("",
               ",\"normalizer\":{" BARS "},\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{"
               "\"String\":\" \"},\"behavior\":\"MergedWithPrevious\",\"invert\":false}",
               ALL_OF_IT),
         {"bghc", "gh", "", "ghb", "db", "ld", "edbfef", "dd"}},
    };
    static const char *const texts[] = {"a" E_ACUTE "b",   "x" E_ACUTE "y", "xyz",
                                        "xy" E_ACUTE "za", "aba",           "dab",
                                        " aba a  a",       "abab"};
    (void)state;
    files f;
    files_make(&f);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t k = 0; k < 8; k++)
            encodes(&f, rows[i].json, texts[k], rows[i].ids[k]);
    encodes(&f, BYTE_SCORES(",\"byte_fallback\":true"), "a" E_ACUTE "b", "bdec");
    encodes(&f, BYTE_SCORES(",\"byte_fallback\":true"), E_ACUTE E_ACUTE, "dede");
    encodes(&f, BYTE_SCORES(",\"byte_fallback\":true"), E_ACUTE "x", "a"); /* together */
    encodes(&f, BYTE_SCORES(",\"byte_fallback\":true"), "\xc3\xa8" E_ACUTE "b<0xC3>", "dfdecd");
    encodes(&f, BYTE_SCORES(""), "a" E_ACUTE "b", "bac");
    files_remove(&f);
}

static void test_metaspace(void **state) {
    (void)state;
    files f;
    files_make(&f);
    encodes(&f, SPLIT("", NFC), "a", "db");
    encodes(&f, SPLIT(",\"prepend_scheme\":\"never\"", NFC), "a b", "bdc");
    encodes(&f, SPLIT(",\"add_prefix_space\":false", NFC), "a b", "bdc");
    encodes(&f, SPLIT(",\"add_prefix_space\":true,\"split\":false", NFC), "a  b", "dbddc");
    encodes(&f, SPLIT("", REPLACE("\"Regex\":\" {2,}\"", "b")), "a  a a   a", "dbcbdbcb");
    encodes(&f, SPLIT("", REPLACE("\"String\":\"xy\"", "b")), "axyxxy", "dbcac");
    encodes(&f, SPLIT("", "\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":false"),
            "\xe2\x80\x83 a ", "dbd");
    encodes(&f, SPLIT("", "\"type\":\"Strip\",\"strip_left\":false,\"strip_right\":true"),
            " a\xe2\x80\x83 ", "db");
    encodes(&f, SPLIT("", "\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true"), " \n ",
            "");
    encodes(&f, SPLIT("", "\"type\":\"Precompiled\",\"precompiled_charsmap\":\"\""), "a", "db");
    encodes(&f, SPLIT("", "\"type\":\"Precompiled\",\"precompiled_charsmap\":null"), "a", "db");
    /* The first part only, which is not what follows a token. */
    encodes(&f,
            "{" UNIGRAM ",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":"
            "\"\xe2\x96\x81\",\"prepend_scheme\":\"first\"}," META_END
            ",\"added_tokens\":[{\"content\":\"<x>\",\"id\":9,\"special\":true}]}",
            "a<x>a", "dbjb");
    encodes(&f,
            "{" UNIGRAM ",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":"
            "\"\xe2\x96\x81\",\"prepend_scheme\":\"first\"}," META_END
            ",\"added_tokens\":[{\"content\":\"<x>\",\"id\":9,\"special\":true}]}",
            "<x>a", "jb");
    encodes(&f,
            "{" UNIGRAM ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
            "\"WhitespaceSplit\"},{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\","
            "\"prepend_scheme\":\"first\"}]}," META_END
            ",\"added_tokens\":[{\"content\":\"<x>\",\"id\":9,\"special\":true}]}",
            "a b<x>a", "dbcjb");
    /* White space of all kinds separates words. */
    encodes(
        &f,
        "{" UNIGRAM ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
        "\"WhitespaceSplit\"},{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\"}]}," META_END
        "}",
        "\n a\t\xe2\x80\x83 b ", "dbdc");
    encodes(&f, good_characters, "ab a", "bcba"); /* the bar is unknown: b */
    files_remove(&f);
}

static void test_older_files(void **state) {
    static const struct {
        const char *config, *vocabulary, *merges, *says;
        iso_status status;
    } rows[] = {
        {"{\"tokenizer_class\":\"GPT2Tokenizer\"}", "{\"a\":0,\"b\":1,\"ab\":2}",
         "#version: 0.2\na b\n", NULL, ISOBIT_OK},
        {"{\"tokenizer_class\":\"GPT2TokenizerFast\"}", "{\"a\":0,\"b\":1,\"ab\":2}", "a b", NULL,
         ISOBIT_OK},
        {"{\"tokenizer_class\":\"GPT2Tokenizer\"}", "{\"a\":0,\"b\":1,\"ab\":2}", "ab\n",
         "merges.txt: a line is no pair", ISOBIT_E_CONFIG},
        {"{\"tokenizer_class\":\"GPT2Tokenizer\"}", "{\"a\":0,\"b\":1}", "a b\n",
         "merges.txt: merge 0 has parts", ISOBIT_E_CONFIG},
        {"{\"tokenizer_class\":\"GPT2Tokenizer\"}", "{\"a\":0}", NULL, "merges.txt",
         ISOBIT_E_MISSING},
        {"{\"tokenizer_class\":\"GPT2Tokenizer\"}", NULL, "", "vocab.json", ISOBIT_E_MISSING},
        {"{\"tokenizer_class\":\"RobertaTokenizer\"}", "{\"a\":0}", "", "\"<s>\" (cls_token)",
         ISOBIT_E_MISSING},
        {"{\"tokenizer_class\":\"BertTokenizer\"}", NULL, NULL, "vocab.txt", ISOBIT_E_MISSING},
        {"{\"tokenizer_class\":\"PreTrainedTokenizerFast\"}", "{}", "", "tokenizer.json",
         ISOBIT_E_MISSING},
        {"{\"tokenizer_class\":\"GPT2Tokenizer\",\"added_tokens_decoder\":{\"0\":\"x\"}}",
         "{\"a\":0,\"b\":1,\"ab\":2}", "a b", NULL, ISOBIT_OK},
        {"{\"tokenizer_class\":\"Qwen2Tokenizer\",\"added_tokens_decoder\":{\"x\":{\"content\":"
         "\"<e>\"},\"y\":{\"content\":\"<f>\"}}}",
         "{\"a\":1}", "", "of another", ISOBIT_E_DUPLICATE},
    };
    static const char *const names[] = {"vocab.json", "merges.txt"};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        files f;
        iso_error error = {0};
        iso_status status;
        files_make(&f);
        const char *const texts[] = {rows[i].vocabulary, rows[i].merges};
        for (int k = 0; k < 2; k++)
            if (texts[k])
                files_text(&f, names[k], texts[k]);
        iso_tokenizer *t = load(&f, rows[i].config, &status, &error);
        if (status != rows[i].status || !status != (t != NULL) ||
            (rows[i].says && !strstr(error.message, rows[i].says)))
            fail_msg("%s: %d \"%s\"", rows[i].config, (int)status, error.message);
        iso_tokenizer_free(t);
        files_remove(&f);
    }
}

static void test_vocab_txt(void **state) {
    static const char config[] = "{\"tokenizer_class\":\"BertTokenizer\"}";
    static const struct {
        const char *text, *says;
        size_t bytes;
        iso_status status;
    } rows[] = {
        {"[UNK]\n[CLS]\r\n[SEP]\na\n##b", NULL, 0, ISOBIT_OK},
        {"[CLS]\n[SEP]\na\n", "unknown token", 0, ISOBIT_E_MISSING},
        {"[UNK]\n[SEP]\na\n", "\"[CLS]\" (cls_token)", 0, ISOBIT_E_MISSING},
        {"[UNK]\n[CLS]\na\n", "\"[SEP]\" (sep_token)", 0, ISOBIT_E_MISSING},
        {"[UNK]\n[CLS]\n[SEP]\n\xff\n", "not valid UTF-8", 0, ISOBIT_E_UTF8},
        {"[UNK]\n[CLS]\n[SEP]\n\0a\n", "not valid UTF-8", 21, ISOBIT_E_UTF8},
        {"", "unknown token", 0, ISOBIT_E_MISSING},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        files f;
        iso_error error = {0};
        iso_status status;
        uint32_t ids[8];
        size_t count, length, sequences;
        files_make(&f);
        files_write(&f, "vocab.txt", rows[i].text,
                    rows[i].bytes ? rows[i].bytes : strlen(rows[i].text));
        iso_tokenizer *t = load(&f, config, &status, &error);
        if (status != rows[i].status || (rows[i].says && !strstr(error.message, rows[i].says)))
            fail_msg("row %zu: %d \"%s\"", i, (int)status, error.message);
        if (t) {
            static const uint32_t want[] = {1, 3, 4, 0, 2};
            assert_int_equal(
                iso_tokenizer_encode(t, "AB c", 4, ids, 8, &count, &length, 1, &sequences, &error),
                ISOBIT_OK);
            assert_int_equal(count, 5);
            assert_memory_equal(ids, want, sizeof want);
        }
        iso_tokenizer_free(t);
        files_remove(&f);
    }
}

static void lacks(const iso_tokenizer *t, const char *text, size_t unknown, size_t dropped) {
    size_t u = 99, d = 99;
    iso_error error = {0};
    assert_int_equal(iso_tokenizer_lacks(t, text, strlen(text), &u, &d, &error), ISOBIT_OK);
    assert_int_equal(u, unknown);
    assert_int_equal(d, dropped);
}

#define WITH_DECODER(tokens)                                                                       \
    "{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"added_tokens_decoder\":{" tokens "}}"
#define ADDED_BA(more)                                                                             \
    "{" MODEL "," PRE "," DECODER ",\"added_tokens\":[{\"content\":\"ba\",\"id\":5" more "}]}"

/* As texts and as pairs; in a file that is read as a whole, too, for the list that tokens would be
 * added to is not there. */
static void test_forms_of_merges(void **state) {
    (void)state;
    files f;
    files_make(&f);
    encodes(&f, good_bpe, "aba", "ca");
    encodes(&f,
            "{\"model\":{\"type\":\"BPE\"," VOCAB ",\"merges\":[[\"a\",\"b\"]]}," PRE "," DECODER
            "}",
            "aba", "ca");
    encodes(&f,
            "{" MODEL "," PRE "," DECODER ",\"post_processor\":{\"type\":\"BertProcessing\","
            "\"cls\":[\"b\",1],\"sep\":[\"a\",0]}}",
            "ab", "bca");
    encodes_as(&f, WITH_DECODER(""),
               "{\"model\":{\"type\":\"BPE\"," VOCAB ",\"merges\":[[\"a\",\"b\"]]}," PRE "," DECODER
               "}",
               "aba", "ca");
    /* A word that is a token is one, though no merge makes it. */
    encodes(&f,
            "{\"model\":{\"type\":\"BPE\",\"ignore_merges\":true," VOCAB ",\"merges\":[]}," PRE
            "," DECODER "}",
            "ab", "c");
    encodes(&f,
            "{\"model\":{\"type\":\"BPE\",\"ignore_merges\":false," VOCAB ",\"merges\":[]}," PRE
            "," DECODER "}",
            "ab", "ab");
    /* What tokenizer_config.json says of a token that was added counts. */
    encodes(&f, ADDED_BA(""), "aba", "af");
    encodes_as(&f, WITH_DECODER("\"5\":{\"content\":\"ba\",\"single_word\":true}"), ADDED_BA(""),
               "aba", "ca");
    encodes_as(&f, WITH_DECODER("\"5\":{\"content\":\"ba\",\"special\":true}"),
               ADDED_BA(",\"single_word\":true"), "aba", "ca");
    files_remove(&f);
}

/* There is room for eight steps. */
static void test_steps(void **state) {
    char json[1024];
    (void)state;
    files f;
    iso_error error = {0};
    iso_status status;
    files_make(&f);
    for (int steps = 8; steps < 10; steps++) {
        size_t at = (size_t)snprintf(json, sizeof json,
                                     "{%s,%s,%s,\"normalizer\":{\"type\":"
                                     "\"Sequence\",\"normalizers\":[",
                                     MODEL, PRE, DECODER);
        for (int i = 0; i < steps; i++)
            at += (size_t)snprintf(json + at, sizeof json - at, "%s{\"type\":\"NF%s\"}",
                                   i ? "," : "", i ? "C" : "D");
        (void)snprintf(json + at, sizeof json - at, "]}}");
        files_text(&f, "tokenizer.json", json);
        iso_tokenizer *t = load(&f, CONFIG, &status, &error);
        assert_int_equal(status, steps == 8 ? ISOBIT_OK : ISOBIT_E_UNSUPPORTED);
        assert_true(!status || strstr(error.message, "of so many steps as \"NFC\""));
        iso_tokenizer_free(t);
    }
    files_remove(&f);
}

static void test_lacks(void **state) {
    (void)state;
    files f;
    iso_error error = {0};
    size_t count, length, sequences;
    uint32_t ids[8];
    files_make(&f);
    iso_tokenizer *t = good(&f, good_bpe);
    lacks(t, "ab\xc3\xa9", 0, 0);
    lacks(t, "abc \xe4\xb8\xad", 0, 3);
    /* All is left out: no sequence. */
    assert_int_equal(
        iso_tokenizer_encode(t, "xyz", 3, ids, 8, &count, &length, 1, &sequences, &error),
        ISOBIT_OK);
    assert_int_equal(count + sequences, 0);
    iso_tokenizer_free(t);
    t = good(&f, good_wordpiece);
    lacks(t, "ab a", 0, 0);
    lacks(t, "abc \xe4\xb8\xad", 4, 0);
    iso_tokenizer_free(t);
    t = good(&f, SPELT("", "", ALL_OF_IT)); /* bytes spell some characters */
    lacks(t, "ab" E_ACUTE "d", 0, 0);
    lacks(t, "ab" E_ACUTE "xy z", 0, 4);
    iso_tokenizer_free(t);
    t = good(&f, SPELT(",\"unk_token\":\"?\",\"fuse_unk\":true", "", ALL_OF_IT));
    lacks(t, "ab" E_ACUTE "xyz", 3, 0);
    iso_tokenizer_free(t);
    t = good(&f, BYTE_SCORES(",\"byte_fallback\":true"));
    lacks(t, "ab" E_ACUTE "bx", 1, 0);
    iso_tokenizer_free(t);
    files_remove(&f);
}

static void decodes(const iso_tokenizer *t, const uint32_t *ids, size_t count, const char *whole,
                    const char *partial) {
    char text[64];
    assert_int_equal(iso_tokenizer_decode(t, ids, count, text, sizeof text, NULL), ISOBIT_OK);
    assert_string_equal(text, whole);
    assert_int_equal(iso_tokenizer_decode_partial(t, ids, count, text, sizeof text, NULL),
                     ISOBIT_OK);
    assert_string_equal(text, partial);
}

static void test_bytes(void **state) {
    static const uint32_t whole[] = {0, 3, 4}, wrong[] = {4, 0}, twice[] = {3, 3, 4};
    (void)state;
    files f;
    files_make(&f);
    iso_tokenizer *t = good(&f, good_bpe);
    decodes(t, whole, 3, "a\xc3\xa9", "a\xc3\xa9");
    decodes(t, whole, 2, "a\xef\xbf\xbd", "a");
    decodes(t, wrong, 2,
            "\xef\xbf\xbd"
            "a",
            "\xef\xbf\xbd"
            "a");
    decodes(t, twice, 3, "\xef\xbf\xbd\xc3\xa9", "\xef\xbf\xbd\xc3\xa9");
    decodes(t, whole, 0, "", "");
    iso_tokenizer_free(t);
    /* Ids 5 and 6 have no token; 7 is added. */
    t = good(&f, "{" MODEL "," PRE "," DECODER
                 ",\"added_tokens\":[{\"content\":\"<x>\",\"id\":7,\"special\":true}]}");
    static const uint32_t holes[] = {0, 5, 6, 7, 1};
    decodes(t, holes, 5, "ab", "ab");
    assert_string_equal(iso_tokenizer_token(t, 7), "<x>");
    assert_null(iso_tokenizer_token(t, 8));
    iso_tokenizer_free(t);
    /* A token that is not made of letters for bytes alone is text. */
    t = good(&f,
             "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"a\\u4e2d\":1},\"merges\":[]}," PRE
             "," DECODER "}");
    static const uint32_t text[] = {0, 1};
    decodes(t, text, 2, "aa\xe4\xb8\xad", "aa\xe4\xb8\xad");
    iso_tokenizer_free(t);
    files_remove(&f);
}

/*
 * Bytes in a row that are no text are U+FFFD each, the good ones among them, too (tokenizers
 * 0.21.4); so they are not shown before the row ends.
 */
static void test_spelt_text(void **state) {
#define WRONG "\xef\xbf\xbd"
    static const struct {
        size_t count;
        uint32_t ids[5];
        const char *whole, *partial;
    } rows[] = {
        {2, {6, 7}, E_ACUTE, ""},
        {1, {6}, WRONG, ""},
        {3, {6, 7, 6}, WRONG WRONG WRONG, ""},
        {2, {6, 1}, WRONG "a", WRONG "a"},
        {3, {6, 7, 1}, E_ACUTE "a", E_ACUTE "a"},
        {4, {7, 4, 6, 7}, WRONG " " E_ACUTE, WRONG " "},
        {1, {8}, "\n", ""},
        {1, {9}, "<0x0g>", "<0x0g>"},
        {1, {10}, WRONG, ""},
        {2, {4, 1}, "a", "a"},
        {2, {5, 5}, "a a", "a a"},
        {3, {4, 4, 1}, " a", " a"},
        {5, {8, 6, 7, 1, 6}, "\n" E_ACUTE "a" WRONG, "\n" E_ACUTE "a"},
        {3, {4, 6, 7}, E_ACUTE, ""},
        {0, {0}, "", ""},
    };
    (void)state;
    files f;
    files_make(&f);
    iso_tokenizer *t = good(&f, SPELT("", "", ALL_OF_IT));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        decodes(t, rows[i].ids, rows[i].count, rows[i].whole, rows[i].partial);
    iso_tokenizer_free(t);
    /* A special token is not shown, and ends no row. */
    t = good(&f, SPELT("", ",\"added_tokens\":[{\"content\":\"<s>\",\"id\":13,\"special\":true}]",
                       REPLACE_BAR "," FALLBACK));
    static const uint32_t around[] = {4, 6, 13, 7};
    decodes(t, around, 4, " " E_ACUTE, " ");
    iso_tokenizer_free(t);
    files_remove(&f);
}

/*
 * Pairs that one of the two has left since: after b c, the old pair a b must not stand for a bc,
 * whose turn comes after bc d.
 */
static void test_order_of_merges(void **state) {
    static const uint32_t want[] = {0, 6};
    (void)state;
    files f;
    iso_error error = {0};
    size_t count, length, sequences;
    uint32_t ids[8];
    files_make(&f);
    iso_tokenizer *t = good(
        &f,
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"d\":3,\"bc\":4,\"ab\":5,"
        "\"bcd\":6,\"abc\":7},\"merges\":[\"b c\",\"a b\",\"bc d\",\"a bc\"]}," PRE "," DECODER
        "}");
    assert_int_equal(
        iso_tokenizer_encode(t, "abcd", 4, ids, 8, &count, &length, 1, &sequences, &error),
        ISOBIT_OK);
    assert_int_equal(count, 2);
    assert_memory_equal(ids, want, sizeof want);
    iso_tokenizer_free(t);
    files_remove(&f);
}

/*
 * A word of a million bytes takes no time to speak of: a quadratic way would take hours. Without
 * words all of a text is one, spaces and bytes for characters among it.
 */
static void test_long_word(void **state) {
    static const struct {
        const char *json, *unit;
        uint32_t period, ids[4]; /* of so many bytes, of which there are so many tokens */
        size_t tokens;
    } rows[] = {
        {good_bpe, "ab", 2, {2}, 1},
        {SPELT("", ",\"normalizer\":{" BARS "}", ALL_OF_IT), "ab" E_ACUTE " ", 5, {3, 6, 7, 4}, 4},
        {SPELT("", ",\"normalizer\":{" BARS "}", ALL_OF_IT), "ab a", 4, {3, 5}, 2},
    };
    enum { BYTES_OF_WORD = (1 << 20) / 20 * 20 };
    static char text[BYTES_OF_WORD];
    static uint32_t ids[BYTES_OF_WORD];
    (void)state;
    files f;
    iso_error error = {0};
    size_t count, length, sequences;
    files_make(&f);
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        iso_tokenizer *t = good(&f, rows[row].json);
        for (size_t i = 0; i < BYTES_OF_WORD; i++)
            text[i] = rows[row].unit[i % rows[row].period];
        assert_int_equal(iso_tokenizer_encode(t, text, BYTES_OF_WORD, ids, BYTES_OF_WORD, &count,
                                              &length, 1, &sequences, &error),
                         ISOBIT_OK);
        assert_int_equal(count, BYTES_OF_WORD / rows[row].period * rows[row].tokens);
        for (size_t i = 0; i < count; i++)
            if (ids[i] != rows[row].ids[i % rows[row].tokens])
                fail_msg("row %zu, token %zu: %u", row, i, ids[i]);
        iso_tokenizer_free(t);
    }
    files_remove(&f);
}

/* A table of normal forms whose only key is "A", for "a": length, double array, string. */
static void charsmap_json(char *json, size_t bytes) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static unsigned char map[4 + 4 * 256 + 2 + 2]; /* and to a multiple of 3 */
    const size_t used = 4 + 4 * 256 + 2;
    const uint32_t from = 'A' | ('A' ^ 200u) << 10 | 1 << 8, to = 0x80000000;
    size_t at = (size_t)snprintf(json, bytes,
                                 "{" UNIGRAM "," META "," META_END
                                 ",\"normalizer\":{\"type\":\"Precompiled\","
                                 "\"precompiled_charsmap\":\"");
    map[1] = 4;
    for (int i = 0; i < 4; i++) {
        map[4 + 4 * 'A' + i] = (unsigned char)(from >> 8 * i);
        map[4 + 4 * 200 + i] = (unsigned char)(to >> 8 * i);
    }
    map[used - 2] = 'a';
    for (size_t i = 0; i < used; i += 3) {
        const uint32_t three = (uint32_t)map[i] << 16 | (uint32_t)map[i + 1] << 8 | map[i + 2];
        for (size_t k = 0; k < 4; k++)
            json[at++] = i + k > used ? '=' : digits[three >> (18 - 6 * k) & 63];
    }
    (void)snprintf(json + at, bytes - at, "\"}}");
}

/*
 * A mark belongs to the letter before it, and goes with it where the table has a form of the
 * letter; six bytes are no longer looked up together. So does tokenizers.
 */
static void test_clusters(void **state) {
    static char json[2048];
    (void)state;
    files f;
    files_make(&f);
    charsmap_json(json, sizeof json);
    encodes(&f, json, "AbA", "dbcb");
    encodes(&f, json,
            "A\xcc\x81"
            "b",
            "dbc");
    encodes(&f, json,
            "A\xe0\xa2\x97"
            "b",
            "dbc"); /* U+0897, a mark of Unicode 16 */
    encodes(&f, json,
            "A\xcc\x81\xcc\x81\xcc\x81"
            "b",
            "dbac");
    encodes(&f, json,
            "a\xcc\x81"
            "b",
            "dbac");
    files_remove(&f);
}

#define FORM(form, token)                                                                          \
    "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",0],[\"" BAR "\",0],[\"" token \
    "\",-1]]}," META "," META_END ",\"normalizer\":{\"type\":\"" form "\"}}"

/* tokenizers' normal forms are those of Unicode 9: younger characters stay, and nothing passes. */
static void test_young_characters(void **state) {
    (void)state;
    files f;
    files_make(&f);
    encodes(&f, FORM("NFKC", "C"), "C\xea\x9f\xb2", "bca"); /* U+A7F2 is a C since Unicode 14 */
    encodes(&f, FORM("NFKC", "C"), "C\xef\xbc\xa3", "bcc"); /* U+FF23 always was */
    /* U+1AC1 goes below a letter since Unicode 14; U+0316 always did, and lets the accent pass. */
    encodes(&f, FORM("NFC", E_ACUTE), "e\xe1\xab\x81\xcc\x81", "ba");
    encodes(&f, FORM("NFC", E_ACUTE), "e\xcc\x96\xcc\x81", "bca");
    files_remove(&f);
}

/* clean_up_tokenization_spaces takes spaces away: nothing that was shown may go. */
static void test_partial_tidy(void **state) {
    static const char json[] =
        "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"\xe2\x96\x81\",0],[\"'\",0],"
        "[\"n\",0],[\"t\",0],[\".\",0],[\"v\",0],[\"e\",0],[\"abcd\",0]]}," META
        ",\"decoder\":{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\",\"prepend_scheme\":"
        "\"never\"}}";
    enum { LENGTH = 9 };
    (void)state;
    files f;
    iso_error error = {0};
    iso_status status;
    uint32_t random = 1;
    size_t shown = 0;
    files_make(&f);
    files_text(&f, "tokenizer.json", json);
    iso_tokenizer *t = load(&f,
                            "{\"tokenizer_class\":\"PreTrainedTokenizerFast\","
                            "\"clean_up_tokenization_spaces\":true}",
                            &status, &error);
    assert_int_equal(status, ISOBIT_OK);
    for (uint32_t n = 0; n < 20000; n++) {
        uint32_t ids[LENGTH];
        char whole[64], part[64], before[64] = "";
        for (size_t i = 0; i < LENGTH; i++) {
            random = random * 1664525 + 1013904223;
            /* Most of them the space and the apostrophe, or the letters after them. */
            ids[i] = n < 10000                ? random >> 29
                     : (random >> 24) % 8 < 5 ? (random >> 20) % 2
                                              : 5 + i % 2;
        }
        assert_int_equal(iso_tokenizer_decode(t, ids, LENGTH, whole, sizeof whole, NULL),
                         ISOBIT_OK);
        for (size_t k = 0; k <= LENGTH; k++) {
            assert_int_equal(iso_tokenizer_decode_partial(t, ids, k, part, sizeof part, NULL),
                             ISOBIT_OK);
            if (strncmp(part, whole, strlen(part)) != 0 ||
                strncmp(before, part, strlen(before)) != 0)
                fail_msg("\"%s\", then \"%s\", at last \"%s\"", before, part, whole);
            (void)strcpy(before, part);
        }
        shown += strlen(part);
    }
    assert_true(shown > 20000);
    const uint32_t words[] = {7, 0, 5, 0, 7, 0};
    decodes(t, words, 6, "abcd v abcd ", "abcd v abcd");
    decodes(t, words, 5, "abcd v abcd", "abcd v abcd");
    decodes(t, words, 3, "abcd v", "abcd");
    iso_tokenizer_free(t);
    files_remove(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),         cmocka_unit_test(test_older_files),
        cmocka_unit_test(test_vocab_txt),       cmocka_unit_test(test_lacks),
        cmocka_unit_test(test_forms_of_merges), cmocka_unit_test(test_steps),
        cmocka_unit_test(test_order_of_merges), cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_long_word),       cmocka_unit_test(test_unigram),
        cmocka_unit_test(test_metaspace),       cmocka_unit_test(test_partial_tidy),
        cmocka_unit_test(test_clusters),        cmocka_unit_test(test_spelt),
        cmocka_unit_test(test_spelt_text),      cmocka_unit_test(test_young_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
