/* SPDX-License-Identifier: MIT
 *
 * See test_pipeline.c: Unigram and Metaspace, bytes that spell characters, normal forms.
 */
#include "../test_pipeline.h"

#define NFC "\"type\":\"NFC\""
#define ADDED_B ",\"added_tokens\":[{\"content\":\"b\",\"id\":2,\"normalized\":false}]"
#define WAYS(scores)                                                                               \
    "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",0]," scores "]}," META        \
    "," META_END "}"
#define SPLIT(more, step)                                                                          \
    "{" UNIGRAM ",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\"" more \
    "}," META_END ",\"normalizer\":{" step "}}"
#define ONE_WORD(scheme)                                                                           \
    SPELT("",                                                                                      \
          ",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"" BAR                      \
          "\",\"prepend_scheme\":\"" scheme "\",\"split\":false}" ADDED_B,                         \
          ALL_OF_IT)

/*
 * What tokenizers gives (0.21.4, the same files) where sums are equal, where scores are positive,
 * and with the unknown: what real vocabularies hardly show.
 */
void test_unigram(void **state) {
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

/* What tokenizers gives (0.21.4, the same files): characters that bytes spell, all of them or not.
 */
void test_spelt(void **state) {
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
    /* The first token has a score, too; eight scores fill a line of memory. */
    encodes(
        &f,
        "{\"model\":{\"type\":\"Unigram\",\"unk_id\":1,\"vocab\":[[\"a\",-3],[\"?\",0],[\"b\",-1],"
        "[\"ab\",-3.5],[\"c\",-1],[\"bc\",-2.5],[\"d\",-1],[\"e\",-1]]},\"decoder\":{\"type\":"
        "\"Sequence\",\"decoders\":[" ALL_OF_IT "]}}",
        "abcax", "deab");
    files_remove(&f);
}

void test_metaspace(void **state) {
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
void test_clusters(void **state) {
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
void test_young_characters(void **state) {
    (void)state;
    files f;
    files_make(&f);
    encodes(&f, FORM("NFKC", "C"), "C\xea\x9f\xb2", "bca"); /* U+A7F2 is a C since Unicode 14 */
    encodes(&f, FORM("NFKC", "C"), "C\xef\xbc\xa3", "bcc"); /* U+FF23 always was */
    /* U+1AC1 goes below a letter since Unicode 14; U+0316 always did, and lets the accent pass. */
    encodes(&f, FORM("NFC", E_ACUTE), "e\xe1\xab\x81\xcc\x81", "ba");
    encodes(&f, FORM("NFC", E_ACUTE), "e\xcc\x96\xcc\x81", "bca");
    encodes(&f, FORM("Lowercase", "i\xcc\x87"), "\xc4\xb0", "bc"); /* U+0130 becomes two */
    files_remove(&f);
}

/* White space, all of it, is between words; what stands beside it in Unicode is a word, or none. */
void test_spaces(void **state) {
    static const struct {
        unsigned first, last;
    } spaces[] = {{9, 13},          {32, 32},         {0x85, 0x85},     {0xa0, 0xa0},
                  {0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f},
                  {0x205f, 0x205f}, {0x3000, 0x3000}};
    (void)state;
    files f;
    iso_error error = {0};
    files_make(&f);
    iso_tokenizer *t = good(&f, good_wordpiece);
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        for (unsigned code = spaces[i].first - 1; code <= spaces[i].last + 1; code++) {
            const int space = code >= spaces[i].first && code <= spaces[i].last;
            char text[6] = "a";
            size_t bytes = 1, count, length, sequences;
            uint32_t ids[8];
            if (code >= 0x800)
                text[bytes++] = (char)(0xe0 | code >> 12);
            if (code >= 0x80)
                text[bytes++] = (char)(code >= 0x800 ? 0x80 | (code >> 6 & 63) : 0xc0 | code >> 6);
            text[bytes++] = (char)(code >= 0x80 ? 0x80 | (code & 63) : code);
            text[bytes++] = 'a';
            assert_int_equal(iso_tokenizer_encode(t, text, bytes, ids, 8, &count, &length, 1,
                                                  &sequences, &error),
                             ISOBIT_OK);
            if ((count == 2 && ids[0] == 1 && ids[1] == 1) != space)
                fail_msg("U+%04X: %zu tokens, of which the first is %u", code, count, ids[0]);
        }
    iso_tokenizer_free(t);
    files_remove(&f);
}

/* What BERT's normalizer drops, and what it makes a space. */
void test_bert_controls(void **state) {
    static const char json[] =
        "{" PIECES "," BERT ",\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,"
        "\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":true}}";
    (void)state;
    files f;
    files_make(&f);
    encodes(&f, json,
            "a\xef\xbf\xbd"
            "b",
            "bc");
    encodes(&f, json,
            "a\x01"
            "b",
            "bc");
    encodes(&f, json,
            "a\xe2\x80\x8d"
            "b",
            "bc"); /* U+200D, one of the other characters */
    encodes(&f, json, "a\ta\na\ra", "bbbb");
    files_remove(&f);
}
