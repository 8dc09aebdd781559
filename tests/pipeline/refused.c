/* SPDX-License-Identifier: MIT
 *
 * See test_pipeline.c: what is damaged, or beyond what isobit has.
 */
#include "../test_pipeline.h"

#define WORD_OF(most)                                                                              \
    "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"a\",\"max_input_chars_per_word\":" #most   \
    ",\"vocab\":{\"a\":0}}," BERT "}"
/* A split before bytes that may be split, too. */
#define TWICE(prefix)                                                                              \
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"BertPreTokenizer\"}," \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":" prefix "}]}"
#define STEP(step) "{" UNIGRAM "," META "," META_END ",\"normalizer\":{" step "}}"

static const struct {
    const char *json, *says;
    iso_status status;
} refusals[] = {
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
    {SPELT("", "", REPLACE_BAR "," FALLBACK "," FUSE "," STRIP(-1, 0, " ")), "the decoder Strip",
     ISOBIT_E_CONFIG},
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
    {SPELT("", ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\" \"}}", ALL_OF_IT),
     "the pre_tokenizer Split", ISOBIT_E_UNSUPPORTED}, /* the spaces are still there */
    {SPELT(",\"unk_token\":\"zz\"", "", ALL_OF_IT), "the unknown token of BPE", ISOBIT_E_MISSING},
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
    {"{\"model\":{\"type\":\"BPE\"," VOCAB ",\"merges\":[\"ab\"]}," PRE "," DECODER "}", "a merge",
     ISOBIT_E_CONFIG},
    {"{\"model\":{\"type\":\"BPE\"," VOCAB ",\"merges\":[7]}," PRE "," DECODER "}", "a merge",
     ISOBIT_E_CONFIG},
    {"{\"model\":{\"type\":\"BPE\"," VOCAB ",\"merges\":[[\"a\"]]}," PRE "," DECODER "}", "a merge",
     ISOBIT_E_CONFIG},
    {"{\"model\":{\"type\":\"BPE\"," VOCAB ",\"merges\":[\"a b\",\"b a\"]}," PRE "," DECODER "}",
     "merge 1 has parts", ISOBIT_E_CONFIG},
    {"{\"model\":{\"type\":\"BPE\"," VOCAB "," MERGES ",\"dropout\":0.1}," PRE "," DECODER "}",
     "\"dropout\"", ISOBIT_E_UNSUPPORTED},
    {"{\"model\":{\"type\":\"BPE\"," VOCAB "," MERGES ",\"end_of_word_suffix\":\"</w>\"}," PRE
     "," DECODER "}",
     "\"end_of_word_suffix\"", ISOBIT_E_UNSUPPORTED},
    {"{\"model\":{\"type\":\"BPE\"," VOCAB "," MERGES ",\"byte_fallback\":true}," PRE "," DECODER
     "}",
     "byte_fallback", ISOBIT_E_UNSUPPORTED},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0}," MERGES "}," PRE "," DECODER "}",
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
    {"{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"a\",\"vocab\":{\"a\":0}}," PRE "," DECODER
     "}",
     "with the pre_tokenizer ByteLevel the model \"WordPiece\"", ISOBIT_E_UNSUPPORTED},
    {"{" PIECES ",\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"decoder\":{\"type\":"
     "\"WordPiece\",\"prefix\":\"@@\"}}",
     "\"@@\"", ISOBIT_E_UNSUPPORTED},
    /* Unigram and Metaspace. */
    {"{\"model\":{\"type\":\"Unigram\"," SCORES "}," META "," META_END "}", "unk_id",
     ISOBIT_E_CONFIG},
    {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":4," SCORES "}," META "," META_END "}", "unk_id",
     ISOBIT_E_CONFIG},
    {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":null," SCORES "}," META "," META_END "}",
     "unk_id", ISOBIT_E_CONFIG},
    {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[]}," META "," META_END "}", "unk_id",
     ISOBIT_E_CONFIG},
    {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\",\"x\"]]}," META "," META_END
     "}",
     "a score of the vocabulary", ISOBIT_E_CONFIG},
    {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\"]]}," META "," META_END "}",
     "a score of the vocabulary", ISOBIT_E_CONFIG},
    {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[1,2]]}," META "," META_END "}",
     "the vocabulary", ISOBIT_E_CONFIG},
    {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\",2],[\"a\",3]]}," META
     "," META_END "}",
     "the vocabulary", ISOBIT_E_CONFIG},
    {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":{\"a\":1}}," META "," META_END "}",
     "", ISOBIT_E_CONFIG},
    {"{" UNIGRAM "," PRE "," DECODER "}", "with the pre_tokenizer ByteLevel the model \"Unigram\"",
     ISOBIT_E_UNSUPPORTED},
    {"{" PIECES "," META "," META_END "}",
     "with the pre_tokenizer Metaspace the model \"WordPiece\"", ISOBIT_E_UNSUPPORTED},
    {"{" UNIGRAM "," META "," DECODER "}", "the decoder \"ByteLevel\"", ISOBIT_E_UNSUPPORTED},
    {"{" UNIGRAM ",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\"}," META_END "}",
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

void test_refused(void **state) {
    (void)state;
    files f;
    iso_error error = {0};
    iso_status status;
    files_make(&f);
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        files_text(&f, "tokenizer.json", refusals[i].json);
        iso_tokenizer *t = load(&f, CONFIG, &status, &error);
        if (status != refusals[i].status || t || !strstr(error.message, refusals[i].says))
            fail_msg("%s: %d \"%s\"", refusals[i].json, (int)status, error.message);
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

void test_older_files(void **state) {
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

void test_vocab_txt(void **state) {
    static const char config[] = "{\"tokenizer_class\":\"BertTokenizer\"}";
    static const struct {
        const char *text, *says;
        size_t bytes;
        iso_status status;
        uint32_t ids[5];
    } rows[] = {
        {"[UNK]\n[CLS]\r\n[SEP]\na\n##b", NULL, 0, ISOBIT_OK, {1, 3, 4, 0, 2}},
        /* The last of two that are the same, as transformers has it. */
        {"[UNK]\n[CLS]\r\n[SEP]\n##b\na\n##b", NULL, 0, ISOBIT_OK, {1, 4, 5, 0, 2}},
        {"[CLS]\n[SEP]\na\n", "unknown token", 0, ISOBIT_E_MISSING, {0}},
        {"[UNK]\n[SEP]\na\n", "\"[CLS]\" (cls_token)", 0, ISOBIT_E_MISSING, {0}},
        {"[UNK]\n[CLS]\na\n", "\"[SEP]\" (sep_token)", 0, ISOBIT_E_MISSING, {0}},
        {"[UNK]\n[CLS]\n[SEP]\n\xff\n", "not valid UTF-8", 0, ISOBIT_E_UTF8, {0}},
        {"[UNK]\n[CLS]\n[SEP]\n\0a\n", "not valid UTF-8", 21, ISOBIT_E_UTF8, {0}},
        {"", "unknown token", 0, ISOBIT_E_MISSING, {0}},
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
            assert_int_equal(
                iso_tokenizer_encode(t, "AB c", 4, ids, 8, &count, &length, 1, &sequences, &error),
                ISOBIT_OK);
            assert_int_equal(count, 5);
            assert_memory_equal(ids, rows[i].ids, sizeof rows[i].ids);
        }
        iso_tokenizer_free(t);
        files_remove(&f);
    }
}

/* There is room for eight steps. */
void test_steps(void **state) {
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
