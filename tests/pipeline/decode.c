/* SPDX-License-Identifier: MIT
 *
 * See test_pipeline.c: text from ids, whole and in parts.
 */
#include "../test_pipeline.h"

static void decodes(const iso_tokenizer *t, const uint32_t *ids, size_t count, const char *whole,
                    const char *partial) {
    char text[64];
    assert_int_equal(iso_tokenizer_decode(t, ids, count, text, sizeof text, NULL), ISOBIT_OK);
    assert_string_equal(text, whole);
    assert_int_equal(iso_tokenizer_decode_partial(t, ids, count, text, sizeof text, NULL),
                     ISOBIT_OK);
    assert_string_equal(text, partial);
}

void test_bytes(void **state) {
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

/* transformers tidies all that tokenizers does, but " do not". */
void test_tidy_text(void **state) {
    (void)state;
    static const char config[] =
        "{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"clean_up_tokenization_spaces\":true}";
    static const uint32_t ids[] = {0, 1, 2, 3, 4};
    files f;
    iso_error error = {0};
    iso_status status;
    files_make(&f);
    files_text(&f, "tokenizer.json",
               "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"\\u0120do\":1,\"\\u0120not\":2,"
               "\"\\u0120n't\":3,\"\\u0120.\":4},\"merges\":[]}," PRE "," DECODER "}");
    iso_tokenizer *t = load(&f, config, &status, &error);
    assert_int_equal(status, ISOBIT_OK);
    decodes(t, ids, 5, "a do notn't.", "a do notn't");
    iso_tokenizer_free(t);
    files_remove(&f);
}

/*
 * Bytes in a row that are no text are U+FFFD each, the good ones among them, too (tokenizers
 * 0.21.4); so they are not shown before the row ends.
 */
void test_spelt_text(void **state) {
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

/* clean_up_tokenization_spaces takes spaces away: nothing that was shown may go. */
void test_partial_tidy(void **state) {
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
