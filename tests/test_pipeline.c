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
#define DECODER "\"decoder\":{\"type\":\"ByteLevel\"}"
#define PIECES                                                                                     \
    "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"a\":1,\"##b\":2}}"
#define BERT                                                                                       \
    "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"decoder\":{\"type\":\"WordPiece\"}"

static const char good_bpe[] = "{" MODEL "," PRE "," DECODER "}";
static const char good_wordpiece[] = "{" PIECES "," BERT "}";

static iso_tokenizer *load(const files *f, const char *config, iso_status *status,
                           iso_error *error) {
    iso_tokenizer *t = NULL;
    files_text(f, "tokenizer_config.json", config);
    *status = iso_tokenizer_load(&t, f->directory, error);
    return t;
}

static iso_tokenizer *good(const files *f, const char *json) {
    iso_error error = {0};
    iso_status status;
    files_text(f, "tokenizer.json", json);
    iso_tokenizer *t = load(f, CONFIG, &status, &error);
    if (status)
        fail_msg("%s: %s", json, error.message);
    return t;
}

static void test_refused(void **state) {
    static const struct {
        const char *json, *says;
        iso_status status;
    } rows[] = {
        {"", "tokenizer.json", ISOBIT_E_JSON},
        {"[]", "tokenizer.json", ISOBIT_E_JSON},
        {"{}", "the model \"\"", ISOBIT_E_UNSUPPORTED},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0.5]]}," PRE "}", "\"Unigram\"",
         ISOBIT_E_UNSUPPORTED},
        {"{\"model\":{\"type\":\"WordLevel\"," VOCAB "}," PRE "," DECODER "}", "\"WordLevel\"",
         ISOBIT_E_UNSUPPORTED},
        {"{" MODEL "," DECODER "}", "without the pre_tokenizer ByteLevel the model \"BPE\"",
         ISOBIT_E_UNSUPPORTED},
        {"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Digits\"}," DECODER "}", "\"Digits\"",
         ISOBIT_E_UNSUPPORTED},
        {"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"x+\"},"
         "\"behavior\":\"Isolated\"}," DECODER "}",
         "\"x+\"", ISOBIT_E_UNSUPPORTED},
        {"{" MODEL ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[" BYTES "," BYTES
         "]}," DECODER "}",
         "before \"ByteLevel\"", ISOBIT_E_UNSUPPORTED},
        {"{" MODEL "," PRE "}", "the decoder \"\"", ISOBIT_E_UNSUPPORTED},
        {"{" MODEL "," PRE ",\"decoder\":{\"type\":\"Fuse\"}}", "the decoder \"Fuse\"",
         ISOBIT_E_UNSUPPORTED},
        {"{" MODEL "," PRE "," DECODER ",\"normalizer\":{\"type\":\"Prepend\"}}", "\"Prepend\"",
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
        {"{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"a\",\"max_input_chars_per_word\":-1,"
         "\"vocab\":{\"a\":0}}," BERT "}",
         "max_input_chars_per_word", ISOBIT_E_CONFIG},
        {"{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"a\",\"vocab\":{\"a\":0}}," PRE
         "," DECODER "}",
         "with the pre_tokenizer ByteLevel the model \"WordPiece\"", ISOBIT_E_UNSUPPORTED},
        {"{" PIECES ",\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"decoder\":{\"type\":"
         "\"WordPiece\",\"prefix\":\"@@\"}}",
         "\"@@\"", ISOBIT_E_UNSUPPORTED},
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
    iso_tokenizer_free(good(&f, good_bpe));
    iso_tokenizer_free(good(&f, good_wordpiece));
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

/* A word of a million bytes takes no time to speak of: a quadratic way would take hours. */
static void test_long_word(void **state) {
    enum { BYTES_OF_WORD = 1 << 20 };
    static char text[BYTES_OF_WORD];
    static uint32_t ids[BYTES_OF_WORD];
    (void)state;
    files f;
    iso_error error = {0};
    size_t count, length, sequences;
    files_make(&f);
    iso_tokenizer *t = good(&f, good_bpe);
    for (size_t i = 0; i < BYTES_OF_WORD; i++)
        text[i] = "ab"[i % 2];
    assert_int_equal(iso_tokenizer_encode(t, text, BYTES_OF_WORD, ids, BYTES_OF_WORD, &count,
                                          &length, 1, &sequences, &error),
                     ISOBIT_OK);
    assert_int_equal(count, BYTES_OF_WORD / 2);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(ids[i], 2);
    iso_tokenizer_free(t);
    files_remove(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),         cmocka_unit_test(test_older_files),
        cmocka_unit_test(test_vocab_txt),       cmocka_unit_test(test_lacks),
        cmocka_unit_test(test_order_of_merges), cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_long_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
