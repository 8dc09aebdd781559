/* SPDX-License-Identifier: MIT
 *
 * See test_pipeline.c: merges and tokens that are added; characters that a vocabulary lacks.
 */
#include "../test_pipeline.h"

#define WITH_DECODER(tokens)                                                                       \
    "{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"added_tokens_decoder\":{" tokens "}}"
#define ADDED_BA(more)                                                                             \
    "{" MODEL "," PRE "," DECODER ",\"added_tokens\":[{\"content\":\"ba\",\"id\":5" more "}]}"
#define APOSTROPHES                                                                                \
    "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"s\":1,\"b\":2,\"sb\":3,\"'\":4},"           \
    "\"merges\":[\"s b\"]}," PRE "," DECODER "}"

/* As texts and as pairs; in a file that is read as a whole, too, for the list that tokens would be
 * added to is not there. */
void test_forms_of_merges(void **state) {
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
    /* What follows an apostrophe may be a word of its own, and what follows a letter is not. */
    encodes(&f, APOSTROPHES, "asb", "ad");
    encodes(&f, APOSTROPHES, "'sb", "ebc");
    encodes(&f, APOSTROPHES, "'", "e");
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

/*
 * Pairs that one of the two has left since: after b c, the old pair a b must not stand for a bc,
 * whose turn comes after bc d.
 */
void test_order_of_merges(void **state) {
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
void test_long_word(void **state) {
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

static void lacks(const iso_tokenizer *t, const char *text, size_t unknown, size_t dropped) {
    size_t u = 99, d = 99;
    iso_error error = {0};
    assert_int_equal(iso_tokenizer_lacks(t, text, strlen(text), &u, &d, &error), ISOBIT_OK);
    assert_int_equal(u, unknown);
    assert_int_equal(d, dropped);
}

void test_lacks(void **state) {
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

/* Properties of a token that stands twice in the configuration are all of them. */
void test_added_twice(void **state) {
    (void)state;
    static const char once[] = WITH_DECODER("\"5\":{\"content\":\"<x>\"}");
    static const char twice[] = WITH_DECODER(
        "\"5\":{\"content\":\"<x>\"},\"6\":{\"content\":\"<x>\",\"single_word\":true}");
    files f;
    files_make(&f);
    encodes_as(&f, once, good_bpe, "b<x>a <x>", "bfaf");
    encodes_as(&f, twice, good_bpe, "b<x>a <x>", "baf");
    files_remove(&f);
}

/* The special tokens of GPT-2's class, each of another name, are found in a text as wholes. */
void test_special_names(void **state) {
    (void)state;
    static const char *const names[] = {"bos_token", "eos_token", "unk_token"};
    files f;
    files_make(&f);
    files_text(&f, "vocab.json", "{\"a\":0,\"<\":1,\"x\":2,\">\":3,\"<x>\":4,\"<|endoftext|>\":5}");
    files_text(&f, "merges.txt", "#version: 0.2\n");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        static const uint32_t want[] = {0, 4, 0};
        char config[120];
        uint32_t ids[8];
        size_t count, length, sequences;
        iso_error error = {0};
        iso_status status;
        snprintf(config, sizeof config, "{\"tokenizer_class\":\"GPT2Tokenizer\",\"%s\":\"<x>\"}",
                 names[i]);
        iso_tokenizer *t = load(&f, config, &status, &error);
        assert_int_equal(status, ISOBIT_OK);
        assert_int_equal(
            iso_tokenizer_encode(t, "a<x>a", 5, ids, 8, &count, &length, 1, &sequences, &error),
            ISOBIT_OK);
        assert_int_equal(count, 3);
        assert_memory_equal(ids, want, sizeof want);
        iso_tokenizer_free(t);
    }
    files_remove(&f);
}

/* Where each byte is a token nothing falls back to others, and no token is unknown. */
void test_all_bytes(void **state) {
    (void)state;
    files f;
    static char json[8192];
    char text[256];
    uint32_t ids[256];
    size_t count, length, sequences;
    files_make(&f);
    for (int lacking = 0; lacking < 2; lacking++)
        for (int option = 0; option < 3; option++) {
            static const char *const options[] = {"", ",\"byte_fallback\":true",
                                                  ",\"fuse_unk\":true"};
            size_t used = (size_t)snprintf(
                json, sizeof json, "{\"model\":{\"type\":\"BPE\"%s,\"merges\":[],\"vocab\":{",
                options[option]);
            /* As GPT-2 has them: bytes that no text shows have characters from 256 on. */
            for (int byte = 0, other = 256; byte < 256 - lacking; byte++) {
                const int shown = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
                used += (size_t)snprintf(json + used, sizeof json - used, "%s\"\\u%04x\":%d",
                                         byte ? "," : "", (unsigned)(shown ? byte : other++), byte);
            }
            snprintf(json + used, sizeof json - used, "}}," PRE "," DECODER "}");
            iso_error error = {0};
            iso_status status;
            files_text(&f, "tokenizer.json", json);
            iso_tokenizer *t = load(&f, CONFIG, &status, &error);
            if (lacking && option) {
                assert_int_equal(status, ISOBIT_E_UNSUPPORTED);
                assert_non_null(strstr(error.message, "byte_fallback or fuse_unk"));
                continue;
            }
            assert_int_equal(status, ISOBIT_OK);
            /* all code points below 128, and some whose bytes are all others that UTF-8 has */
            for (size_t i = 0; i < 127; i++)
                text[i] = (char)(i + 1);
            strcpy(text + 127, "\xc3\xa9\xdf\xbf\xe4\xb8\xad\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf");
            assert_int_equal(iso_tokenizer_encode(t, text, strlen(text), ids, 256, &count, &length,
                                                  1, &sequences, &error),
                             ISOBIT_OK);
            assert_int_equal(count, strlen(text));
            for (size_t i = 0; i < count; i++)
                assert_int_equal(ids[i], (unsigned char)text[i]);
            iso_tokenizer_free(t);
        }
    files_remove(&f);
}
