/* SPDX-License-Identifier: MIT
 *
 * See test_loader.c: a tokenizer of characters, one by one.
 */
#include "../test_loader.h"

void test_tokenizer(void **state) {
    files f;
    iso_error error;
    iso_tokenizer *t = NULL;
    files_make(&f);
    static const struct {
        iso_status status;
        const char *config, *vocabulary;
    } bad[] = {
        {ISOBIT_E_UNSUPPORTED, "{\"tokenizer_class\":\"XLNetTokenizer\"}", "{}"},
        {ISOBIT_E_UNSUPPORTED, "{}", "{}"},
        {ISOBIT_E_JSON, "{", "{}"},
        {ISOBIT_E_MISSING, "{\"tokenizer_class\":\"isobit-characters\"}", "{}"},
        {ISOBIT_E_MISSING, "{\"tokenizer_class\":\"isobit-characters\"}", "{\"</s>\":0}"},
        {ISOBIT_E_CONFIG, "{\"tokenizer_class\":\"isobit-characters\"}",
         "{\"</s>\":0,\"<unk>\":4294967295}"},
        {ISOBIT_E_CONFIG, "{\"tokenizer_class\":\"isobit-characters\"}",
         "{\"</s>\":0,\"<unk>\":2}"},
        {ISOBIT_E_DUPLICATE, "{\"tokenizer_class\":\"isobit-characters\"}",
         "{\"</s>\":0,\"<unk>\":0}"},
        {ISOBIT_E_DUPLICATE, "{\"tokenizer_class\":\"isobit-characters\"}",
         "{\"</s>\":0,\"</s>\":1}"},
        {ISOBIT_OK, "{\"tokenizer_class\":\"isobit-characters\"}",
         "{\"<end>\":0,\"</s>\":1.0,\"<unk>\":2,\"\":3,\"a\":4,\" \":5,\"B\":6}"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        files_text(&f, "tokenizer_config.json", bad[i].config);
        files_text(&f, "vocab.json", bad[i].vocabulary);
        iso_status status = iso_tokenizer_load(&t, f.directory, &error);
        if (status != bad[i].status)
            fail_msg("%s %s: status %d (%s)", bad[i].config, bad[i].vocabulary, (int)status,
                     error.message);
    }
    /* Without split_words and lowercase a line is one sequence, as it is. */
    uint32_t ids[16];
    size_t lengths[4], count, sequences;
    assert_int_equal(
        iso_tokenizer_encode(t, "?aB ab?", 7, ids, 16, &count, lengths, 4, &sequences, &error),
        ISOBIT_OK);
    static const uint32_t expected[] = {4, 6, 5, 4, 1};
    assert_int_equal(sequences, 1);
    assert_int_equal(count, 5);
    assert_memory_equal(ids, expected, sizeof expected);
    iso_tokenizer_free(t);
    iso_tokenizer_free(NULL);
    files_remove(&f);
    (void)state;
}

static size_t put_code(char *to, uint32_t c) {
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xc0 | c >> 6);
        to[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    to[0] = (char)(0xe0 | c >> 12);
    to[1] = (char)(0x80 | (c >> 6 & 0x3f));
    to[2] = (char)(0x80 | (c & 0x3f));
    return 3;
}

/* </s> is 0, <unk> is 1, and the code points from '#' to U+0180 are themselves. */
static iso_tokenizer *letters_tokenizer(const files *f) {
    iso_error error;
    iso_tokenizer *t = NULL;
    blob b = {0};
    char entry[48];
    blob_add(&b, "{\"</s>\":0,\"<unk>\":1", 20);
    for (uint32_t c = 2; c <= 0x180; c++) {
        char code[4] = {0};
        (void)put_code(code, c);
        const int bytes = c < '#' || c == '\\'
                              ? snprintf(entry, sizeof entry, ",\"none %u\":%u", c, c)
                              : snprintf(entry, sizeof entry, ",\"%s\":%u", code, c);
        blob_add(&b, entry, (size_t)bytes);
    }
    blob_add(&b, "}", 1);
    files_write(f, "vocab.json", b.bytes, b.count);
    blob_free(&b);
    files_text(f, "tokenizer_config.json",
               "{\"tokenizer_class\":\"isobit-characters\",\"lowercase\":true,"
               "\"split_words\":true}");
    assert_int_equal(iso_tokenizer_load(&t, f->directory, &error), ISOBIT_OK);
    return t;
}

/* The tokens of "a", the code point, "b"; how many sequences they are. */
static size_t between(const iso_tokenizer *t, uint32_t c, uint32_t ids[8], size_t *count) {
    char text[8] = "a";
    size_t bytes = 1 + put_code(text + 1, c), lengths[3], sequences;
    iso_error error;
    text[bytes++] = 'b';
    assert_int_equal(
        iso_tokenizer_encode(t, text, bytes, ids, 8, count, lengths, 3, &sequences, &error),
        ISOBIT_OK);
    return sequences;
}

void test_letters(void **state) {
    static const uint32_t pairs[][2] = {
        {'@', '@'},     {'A', 'a'},     {'Z', 'z'},     {'[', '['},     {0xbf, 0xbf},
        {0xc0, 0xe0},   {0xd6, 0xf6},   {0xd7, 0xd7},   {0xd8, 0xf8},   {0xde, 0xfe},
        {0xdf, 0xdf},   {0xff, 0xff},   {0x100, 0x101}, {0x101, 0x101}, {0x12e, 0x12f},
        {0x12f, 0x12f}, {0x130, 'i'},   {0x131, 0x131}, {0x132, 0x133}, {0x136, 0x137},
        {0x137, 0x137}, {0x138, 0x138}, {0x139, 0x13a}, {0x13a, 0x13a}, {0x147, 0x148},
        {0x148, 0x148}, {0x149, 0x149}, {0x14a, 0x14b}, {0x14b, 0x14b}, {0x176, 0x177},
        {0x177, 0x177}, {0x178, 0xff},  {0x179, 0x17a}, {0x17d, 0x17e}, {0x17e, 0x17e},
        {0x17f, 0x17f}, {0x180, 0x180}, {0x2bc, '\''},  {0x2019, '\''}, {0x2018, 1},
        {0x2bb, 1},     {0x2bd, 1},     {0x201a, 1},
    };
    static const uint32_t apart[] = {
        ' ',    9,      10,     13,     0x85, 0xa0,   0x1680, 0x2000, 0x200a, 0x2028,
        0x2029, 0x202f, 0x205f, 0x3000, '-',  0x2010, 0x2012, 0x2015, 0x2212,
    };
    static const uint32_t together[] = {
        8,      14,     0x1f,   '!',    ',',    '.',    0x84,   0x86,   0x9f,
        0xa1,   0x167f, 0x1681, 0x1fff, 0x200b, 0x200f, 0x2016, 0x2027, 0x202a,
        0x202e, 0x2030, 0x205e, 0x2060, 0x2fff, 0x3001, 0x2211, 0x2213,
    };
    files f;
    uint32_t ids[8];
    size_t count;
    files_make(&f);
    iso_tokenizer *t = letters_tokenizer(&f);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_int_equal(between(t, pairs[i][0], ids, &count), 1);
        assert_int_equal(count, 4);
        assert_int_equal(ids[0], 'a');
        assert_int_equal(ids[1], pairs[i][1]);
        assert_int_equal(ids[2], 'b');
        assert_int_equal(ids[3], 0);
    }
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
        assert_int_equal(between(t, apart[i], ids, &count), 2);
    for (size_t i = 0; i < sizeof together / sizeof *together; i++)
        assert_int_equal(between(t, together[i], ids, &count), 1);
    iso_tokenizer_free(t);
    files_remove(&f);
    (void)state;
}

void test_tokenizer_arguments(void **state) {
    files f;
    uint32_t ids[16];
    size_t count, lengths[4], sequences, needed;
    char text[16];
    iso_error error;
    files_make(&f);
    iso_tokenizer *t = letters_tokenizer(&f), *none = NULL;
    assert_int_equal(iso_tokenizer_load(NULL, f.directory, &error), ISOBIT_E_NULL);
    assert_int_equal(iso_tokenizer_load(&none, NULL, &error), ISOBIT_E_NULL);
    assert_null(none);

#define ENCODE(t, text, bytes, ids, room, count, lengths, sequence_room, sequences)                \
    iso_tokenizer_encode(t, text, bytes, ids, room, count, lengths, sequence_room, sequences,      \
                         &error)
    assert_int_equal(ENCODE(NULL, "a", 1, ids, 9, &count, lengths, 4, &sequences), ISOBIT_E_NULL);
    assert_int_equal(ENCODE(t, NULL, 1, ids, 9, &count, lengths, 4, &sequences), ISOBIT_E_NULL);
    assert_int_equal(ENCODE(t, "a", 1, NULL, 9, &count, lengths, 4, &sequences), ISOBIT_E_NULL);
    assert_int_equal(ENCODE(t, "a", 1, ids, 9, NULL, lengths, 4, &sequences), ISOBIT_E_NULL);
    assert_int_equal(ENCODE(t, "a", 1, ids, 9, &count, NULL, 4, &sequences), ISOBIT_E_NULL);
    assert_int_equal(ENCODE(t, "a", 1, ids, 9, &count, lengths, 4, NULL), ISOBIT_E_NULL);
    assert_int_equal(ENCODE(t, NULL, 0, ids, 9, &count, lengths, 4, &sequences), ISOBIT_OK);
    assert_int_equal(count + sequences, 0);
    assert_int_equal(ENCODE(t, "a\xc3", 2, ids, 9, &count, lengths, 4, &sequences), ISOBIT_E_UTF8);
    /* "ab c" is 5 ids in 2 sequences: just enough room, then too little of each. */
    ids[5] = 77, lengths[2] = 77;
    assert_int_equal(ENCODE(t, "ab c", 4, ids, 5, &count, lengths, 2, &sequences), ISOBIT_OK);
    assert_true(count == 5 && sequences == 2 && lengths[0] == 3 && lengths[1] == 2);
    assert_int_equal(ENCODE(t, "ab c", 4, ids, 4, &count, lengths, 2, &sequences),
                     ISOBIT_E_WORKSPACE);
    assert_int_equal(ENCODE(t, "ab c", 4, ids, 5, &count, lengths, 1, &sequences),
                     ISOBIT_E_WORKSPACE);
    assert_true(count == 5 && sequences == 2 && ids[5] == 77 && lengths[2] == 77);
#undef ENCODE

    assert_int_equal(iso_tokenizer_decode(NULL, ids, 5, text, 16, &needed), ISOBIT_E_NULL);
    assert_int_equal(iso_tokenizer_decode(t, NULL, 5, text, 16, &needed), ISOBIT_E_NULL);
    assert_int_equal(iso_tokenizer_decode(t, ids, 5, NULL, 16, &needed), ISOBIT_E_NULL);
    /* </s> is left out. */
    memset(text, 'x', sizeof text);
    assert_int_equal(iso_tokenizer_decode(t, ids, 5, text, 4, &needed), ISOBIT_OK);
    assert_int_equal(needed, 4);
    assert_memory_equal(text, "abc\0x", 5);
    assert_int_equal(iso_tokenizer_decode(t, ids, 5, text, 3, &needed), ISOBIT_E_WORKSPACE);
    assert_string_equal(text, "ab");
    assert_int_equal(iso_tokenizer_decode(t, ids, 5, NULL, 0, &needed), ISOBIT_E_WORKSPACE);
    assert_int_equal(needed, 4);
    assert_int_equal(iso_tokenizer_decode(t, NULL, 0, text, 1, NULL), ISOBIT_OK);
    assert_int_equal(text[0], 0);
    ids[0] = 0x180, ids[1] = 0x181;
    assert_int_equal(iso_tokenizer_decode(t, ids, 1, text, 16, NULL), ISOBIT_OK);
    assert_string_equal(text, "\xc6\x80");
    assert_int_equal(iso_tokenizer_decode(t, ids, 2, text, 16, NULL), ISOBIT_E_RANGE);
    assert_string_equal(iso_tokenizer_token(t, 0x180), "\xc6\x80");
    assert_null(iso_tokenizer_token(t, 0x181));
    assert_null(iso_tokenizer_token(NULL, 0));
    iso_tokenizer_free(t);
    files_remove(&f);
    (void)state;
}
