/* SPDX-License-Identifier: MIT
 *
 * Vocabularies and merges that are read without a tree of JSON: the same as with one, whatever is
 * changed in them; and the tables by which tokens and merges are found, with good hashes and bad.
 */
#include "files.h"
#include "scanned.h"
#include "text/pipeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define VOCAB "\"vocab\":{\"a\":0,\"b\":1 , \"ab\" :12,\"\\u00c3\":3}"
#define MODEL(vocab, merges) "{\"model\":{\"type\":\"BPE\"," vocab ",\"merges\":" merges "}}"
#define TOKENS(vocab) "{\"model\":{\"vocab\":" vocab "}}"

static const char strings[] =
    "{\"version\":\"1.0\",\"added_tokens\":[{\"id\":5,\"content\":\"<\\\"[s>\"}],\"x\":[{},[]],\n"
    "  \"model\" : {\"merges\": [\"a b\", \"a  b c\" ],\"unk_token\":null,\r\n\t" VOCAB
    ",\"y\":-1.5e3},\"z\":true}";
static const char pairs[] = MODEL(VOCAB, "[[\"a\",\"b\"] , [\"\",\"\\\\ \"],[ \"a\" ,\"c\"]]");
static const char scores[] =
    "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",0],[\"a\",-1.5],"
    "[\"\xe2\x96\x81\", -12.345678901234567 ],[\"\\ud83d\\ude00\",1e-3],[\"e\",-0.0]]}}";

/* ------------------------------------------------------------------------------------ reading */

static void test_accepted(void **state) {
    static const char *const texts[] = {
        strings,
        pairs,
        scores,
        TOKENS("{}"),
        TOKENS("[]"),
        MODEL("\"vocab\":{}", "[]"),
        TOKENS("{\"\":0}"),
        TOKENS("{\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\\uD83D\\uDE00\":999999999}"),
        TOKENS("{\"\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"
               "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\":7}"),
        TOKENS("[[\"a\",1E+2],[\"b\",0.1],[\"c\",-0],[\"d\",5e-324],[\"e\",1.7976931348623157e308],"
               "[\"f\",0.30000000000000004],[\"g\",9007199254740993]]"),
        "{\"model\":{\"vocab\":{\"model\":1,\"vocab\":2}},\"vocab\":{\"x\":[1]},\"merges\":[\"ab\"]"
        "}",
        "{\"vocab\":{\"a\":0},\"model\":{\"vocab\":{\"b\":1}}}",
        "{\"a\":{\"model\":{\"vocab\":{\"x\":1}}},\"model\":{\"vocab\":{\"y\":2}}}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (scanned_compare(texts[i], strlen(texts[i])) != 1)
            fail_msg("%s", texts[i]);
}

/* A copy without its NUL, flush against a page that nobody may touch. */
static const char *at_the_end(const char *text) {
    enum { PAGE = 1 << 16, ROOM = 1 << 16 }; /* of any machine */
    static char *room;
    const size_t bytes = strlen(text);
    if (!room) {
        room = mmap(NULL, ROOM + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(room != MAP_FAILED);
        assert_int_equal(mprotect(room + ROOM, PAGE, PROT_NONE), 0);
    }
    assert_true(bytes <= ROOM);
    return memcpy(room + ROOM - bytes, text, bytes);
}

#define SIXTY "012345678901234567890123456789012345678901234567890123456789"

static void test_left_alone(void **state) {
    static const char *const texts[] = {
        "",
        "{}",
        "[]",
        "{\"model\":{}}",
        "{\"model\":[\"vocab\",{}]}",
        "{\"model\":{\"vocab\":0}}",
        "{\"model\":{\"model\":{\"vocab\":{\"a\":0}}}}",
        "{\"mod\\u0065l\":{\"vocab\":{\"a\":0}}}",
        TOKENS("{\"a\":0,\"a\":1}"),
        TOKENS("[[\"a\",0],[\"a\",1]]"),
        TOKENS("{\"a\":0"),
        TOKENS("{\"a\":0,}"),
        TOKENS("{,\"a\":0}"),
        TOKENS("{\"a\" 0}"),
        TOKENS("{\"a\":0 \"b\":1}"),
        TOKENS("{a:0}"),
        TOKENS("{\"a\":00}"),
        TOKENS("{\"a\":01}"),
        TOKENS("{\"a\":-1}"),
        TOKENS("{\"a\":1.0}"),
        TOKENS("{\"a\":1e1}"),
        TOKENS("{\"a\":1234567890}"),
        TOKENS("{\"a\":}"),
        TOKENS("{\"a\":null}"),
        TOKENS("{\"a\":\"1\"}"),
        TOKENS("{\"a\":1a}"),
        TOKENS("{\"\\u0000\":1}"),
        TOKENS("{\"\\ud800\":1}"),
        TOKENS("{\"\\ud800\\u0041\":1}"),
        TOKENS("{\"\\ud800x\\udc00\":1}"),
        TOKENS("{\"\\udc00\":1}"),
        TOKENS("{\"\\u12g4\":1}"),
        TOKENS("{\"\\u12"),
        TOKENS("{\"\\x41\":1}"),
        TOKENS("{\"\\"),
        TOKENS("{\"\t\":1}"),
        TOKENS("{\"\x80\":1}"),
        TOKENS("{\"\xc0\x80\":1}"),
        TOKENS("{\"\xe0\x80\x80\":1}"),
        TOKENS("{\"\xed\xa0\x80\":1}"),
        TOKENS("{\"\xf4\x90\x80\x80\":1}"),
        TOKENS("{\"\xe2\x96\":1}"),
        TOKENS("[[\"a\"]]"),
        TOKENS("[[\"a\",1,2]]"),
        TOKENS("[[1,\"a\"]]"),
        TOKENS("[\"a\",1]"),
        TOKENS("[[\"a\",.5]]"),
        TOKENS("[[\"a\",5.]]"),
        TOKENS("[[\"a\",1e]]"),
        TOKENS("[[\"a\",+1]]"),
        TOKENS("[[\"a\",--1]]"),
        TOKENS("[[\"a\",-]]"),
        TOKENS("[[\"a\",01]]"),
        TOKENS("[[\"a\",1e999]]"),
        TOKENS("[[\"a\",0." SIXTY SIXTY "]]"),
        "{\"model\":{},\"a\":{\"k\\\"m\":0,\"vocab\":{\"t\":0}}}",
        "{\"model\":{\"vocab\":{\"\\u12",
        "{\"x\":,\"model\":{\"vocab\":{}}}",
        "{\"x\":}",
        "{\"x\" 1,\"model\":{\"vocab\":{}}}",
        "{\"model\":{\"vocab\":{}},\"x",
        "{\"model\":{\"vocab\":{}},\"x\\",
        "{\"",
        TOKENS("[[\"a\",nan]]"),
        TOKENS("[[\"a\",0x1]]"),
        TOKENS("[[\"a\",1],]"),
        MODEL(VOCAB, "[\"ab\"]"),
        MODEL(VOCAB, "[\"\"]"),
        MODEL(VOCAB, "[[\"a\"]]"),
        MODEL(VOCAB, "[[\"a\",\"b\",\"c\"]]"),
        MODEL(VOCAB, "[[\"a\",1]]"),
        MODEL(VOCAB, "[1]"),
        MODEL(VOCAB, "[\"a b\",]"),
        MODEL(VOCAB, "[\"a b\" \"a b\"]"),
        MODEL(VOCAB, "[\"a b\"") "]}",
        MODEL(VOCAB, "[],\"merges\":[]"),
        MODEL(VOCAB, "[]," VOCAB),
        "{\"model\":{" VOCAB "},\"model\":{" VOCAB "}}",
        "{\"x\":[1,\"model\":{" VOCAB "}}",
        "{\"x\":[1,]," TOKENS("{}") "}",
        TOKENS("{}") "x",
        TOKENS("{}") "}",
        "\"" TOKENS("{}"),
        "{\"x\":{\"model\":{" VOCAB "}]}",
        "{\"x\":tru,\"model\":{" VOCAB "}}",
        "{\"x\":\"\xff\",\"model\":{" VOCAB "}}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (scanned_compare(at_the_end(texts[i]), strlen(texts[i])) != 0)
            fail_msg("%s", texts[i]);
    assert_int_equal(scanned_compare(TOKENS("{\"a\0b\":1}"), sizeof TOKENS("{\"a\0b\":1}") - 1), 0);
}

static int compare_copy(const char *text, size_t bytes) {
    char *copy = malloc(bytes + 1); /* so that the sanitizers see its end */
    assert_non_null(copy);
    memcpy(copy, text, bytes);
    const int result = scanned_compare(copy, bytes);
    if (result < 0)
        fail_msg("%.*s", (int)bytes, copy);
    free(copy);
    return result;
}

/* Each byte replaced, taken out, and others put before it. */
static void test_changed(void **state) {
    static const char bytes[] = "\"\\{}[],:0-. aeu\x01\xc3\xa9\xff\n";
    static const char *const texts[] = {strings, pairs, scores};
    char changed[1024];
    size_t accepted = 0, all = 0;
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        const size_t n = strlen(texts[k]);
        assert_true(n + 1 < sizeof changed);
        for (size_t i = 0; i < n; i++) {
            (void)compare_copy(texts[k], i);
            memcpy(changed, texts[k], i);
            memcpy(changed + i, texts[k] + i + 1, n - i - 1);
            (void)compare_copy(changed, n - 1);
            for (size_t b = 0; b < sizeof bytes; b++) { /* the NUL too */
                changed[i] = bytes[b];
                memcpy(changed + i + 1, texts[k] + i + 1, n - i - 1);
                accepted += (size_t)compare_copy(changed, n);
                memcpy(changed + i + 1, texts[k] + i, n - i);
                accepted += (size_t)compare_copy(changed, n + 1);
                all += 2;
            }
        }
    }
    assert_true(accepted > all / 20 && accepted < all / 2);
}

/* The files that transformers wrote are read so, all of them. */
static void test_files(void **state) {
    static const char *const names[] = {"gpt2",       "llama3",       "qwen2",
                                        "bert",       "prefix-space", "sequence",
                                        "llama-json", "nllb-json",    "mbart50-json"};
    char path[512];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        model_arena arena = {0};
        char *text;
        size_t bytes;
        (void)snprintf(path, sizeof path, "%s/text/%s", ISOBIT_TEST_DATA, names[i]);
        assert_int_equal(
            model_file_text(&text, &bytes, &arena, path, "tokenizer.json", 1 << 20, NULL), 0);
        if (scanned_compare(text, bytes) != 1)
            fail_msg("%s", names[i]);
        model_arena_free(&arena);
    }
}

static int begin(const text_scanned *s) {
    model_arena arena = {0};
    text_vocabulary v = {0};
    const int begun = text_scanned_begin(s, &v, &arena, 0);
    model_arena_free(&arena);
    return begun;
}

static void test_lines(void **state) {
    static const char lines[] = "a\nb \r\n\n\xc3\xa9\rx\n##c";
    static const char *const tokens[] = {"a", "b ", "", "\xc3\xa9\rx", "##c"};
    static const struct {
        const char *text;
        size_t bytes;
        int scanned;
    } texts[] = {{"a\nb\n", 4, 2}, {"", 0, 0},         {"\n", 1, 1},        {"\n\n", 2, -2},
                 {"a\na", 3, -2},  {"a\0b\nc", 5, -1}, {"a\xff\nc", 4, -1}, {"a\n\xc3", 3, -1}};
    text_scanned s;
    (void)state;
    assert_true(text_scan_lines(&s, lines, sizeof lines - 1));
    assert_int_equal(s.count, 5);
    assert_true(begin(&s));
    const char *text = s.text;
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(text, tokens[i]);
        assert_int_equal(s.tokens[i].bytes, strlen(tokens[i]));
        assert_int_equal(s.tokens[i].id, i);
        text += strlen(text) + 1;
    }
    text_scanned_free(&s);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) { /* -1: not scanned, -2: twice */
        const int scanned = text_scan_lines(&s, texts[i].text, texts[i].bytes);
        assert_int_equal(scanned, texts[i].scanned != -1);
        if (!scanned)
            continue;
        assert_int_equal(begin(&s), texts[i].scanned != -2);
        assert_true(texts[i].scanned < 0 || s.count == (size_t)texts[i].scanned);
        text_scanned_free(&s);
    }
}

static void test_vocabulary(void **state) {
    static const char vocabulary[] = " {\"a\": 0, \"\\u0120b\" :7}\n";
    static const char *const texts[] = {
        "",        "[]", "\"a\":0}", "{\"a\":0}x", "{\"a\":0}{}", "{\"a\":0,}", "{\"a\":\"0\"}",
        "{\"a\":0"};
    text_scanned s;
    json_error_t error;
    (void)state;
    json_t *object = json_loads(vocabulary, 0, &error);
    assert_true(text_scan_vocabulary(&s, vocabulary, sizeof vocabulary - 1));
    assert_int_equal(s.count, 2);
    assert_true(begin(&s) && scanned_ids(&s, object));
    text_scanned_free(&s);
    json_decref(object);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_false(text_scan_vocabulary(&s, texts[i], strlen(texts[i])));
}

/* ------------------------------------------------------------------------------------- finding */

enum { ITEMS = 300, SLOTS = 1024 }; /* a table of so many items has so many slots */

/* Tokens whose first place is one of a few. */
static void test_tokens(void **state) {
    static char tokens[ITEMS][24];
    (void)state;
    for (int bad = 0; bad < 2; bad++) {
        model_arena arena = {0};
        text_vocabulary v = {0};
        json_t *object = json_object();
        size_t n = 0;
        for (unsigned i = 0; n < ITEMS; i++) {
            (void)snprintf(tokens[n], sizeof tokens[n], i % 2 ? "t%u" : "a longer token %u", i);
            if (!bad || (text_token_hash(tokens[n], strlen(tokens[n])) & (SLOTS - 1)) < 4) {
                assert_int_equal(json_object_set_new(object, tokens[n], json_real((double)n)), 0);
                n++;
            }
        }
        assert_int_equal(text_vocabulary_read(&v, &arena, object, "", 0, NULL), 0);
        assert_int_equal(v.index.slots == NULL, bad);
        if (!bad)
            assert_int_equal(v.index.mask, SLOTS - 1);
        for (uint32_t i = 0; i < ITEMS; i++) {
            assert_int_equal(text_vocabulary_find(&v, tokens[i], strlen(tokens[i])), i);
            assert_int_equal(text_vocabulary_find(&v, tokens[i], strlen(tokens[i]) - 1) < ITEMS,
                             json_object_getn(object, tokens[i], strlen(tokens[i]) - 1) != NULL);
        }
        assert_int_equal(text_vocabulary_find(&v, "", 0), MODEL_NO_ID);
        text_vocabulary_sort(&v);
        for (uint32_t i = 0; i < ITEMS; i++) {
            assert_int_equal(text_vocabulary_find(&v, tokens[i], strlen(tokens[i])), i);
            assert_true(!i || strcmp(v.by_token[i - 1].token, v.by_token[i].token) < 0);
        }
        json_decref(object);
        model_arena_free(&arena);
    }
}

/* Tokens that are added to what was scanned: where the table has no place for one, the file is read
 * as a whole. */
static void test_added(void **state) {
    char token[24];
    (void)state;
    for (int bad = 0; bad < 2; bad++) {
        static const char vocabulary[] = "{\"a\":0}";
        model_arena arena = {0};
        text_vocabulary v = {0};
        text_scanned s;
        json_t *added = json_array();
        for (unsigned i = 0; json_array_size(added) < ITEMS; i++) {
            (void)snprintf(token, sizeof token, "t%u", i);
            if (!bad || (text_token_hash(token, strlen(token)) & (SLOTS - 1)) < 4)
                assert_int_equal(
                    json_array_append_new(added, json_pack("{s:s, s:i}", "content", token, "id",
                                                           (int)json_array_size(added) + 1)),
                    0);
        }
        assert_true(text_scan_vocabulary(&s, vocabulary, sizeof vocabulary - 1));
        assert_true(text_scanned_begin(&s, &v, &arena, ITEMS));
        assert_int_equal(v.index.mask, SLOTS - 1);
        assert_int_equal(text_scanned_finish(&v, &arena, added), !bad);
        for (size_t i = 0; !bad && i < ITEMS; i++) {
            const char *name =
                json_string_value(json_object_get(json_array_get(added, i), "content"));
            assert_int_equal(text_vocabulary_find(&v, name, strlen(name)), i + 1);
        }
        text_scanned_free(&s);
        json_decref(added);
        model_arena_free(&arena);
    }
}

/* The same of merges, which are found by two ids: here those of single bytes. Of two merges of a
 * pair the last one counts. */
static void test_merges(void **state) {
    (void)state;
    for (int bad = 0; bad < 2; bad++) {
        static text_merge merges[ITEMS];
        static uint32_t made[256][256];
        static text_model model;
        model_arena arena = {0};
        memset(made, 0, sizeof made);
        model = (text_model){.merges = merges, .unk = MODEL_NO_ID};
        for (unsigned i = 0; i < 256; i++)
            model.bytes[i] = i;
        for (uint32_t i = 0; i < 65536 && model.merge_count < ITEMS; i++) {
            const uint32_t left = i * 91 % 256, right = i / 256;
            if (bad && (text_mix((uint64_t)left << 32 | right) & (SLOTS - 1)) >= 4)
                continue;
            for (int twice = 0; twice < 2 && model.merge_count < ITEMS; twice += 1 + (i % 3 > 0)) {
                const uint32_t rank = (uint32_t)model.merge_count++;
                merges[rank] = (text_merge){left, right, rank, 1000 + rank};
                made[left][right] = 1000 + rank;
            }
        }
        assert_int_equal(model.merge_count, ITEMS);
        text_bpe_finish(&model, &arena);
        assert_int_equal(model.index.slots == NULL, bad);
        for (unsigned i = 0; i < 65536; i++) {
            const char word[2] = {(char)(i / 256), (char)(i % 256)};
            const uint32_t whole = made[i / 256][i % 256];
            uint32_t ids[2];
            text_ids out = {.ids = ids, .id_room = 2};
            assert_int_equal(text_bpe_encode(&model, &out, word, 2), 0);
            assert_int_equal(out.id_count, whole ? 1 : 2);
            assert_int_equal(ids[0], whole ? whole : i / 256);
        }
        model_arena_free(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted), cmocka_unit_test(test_left_alone),
        cmocka_unit_test(test_changed),  cmocka_unit_test(test_files),
        cmocka_unit_test(test_lines),    cmocka_unit_test(test_vocabulary),
        cmocka_unit_test(test_tokens),   cmocka_unit_test(test_merges),
        cmocka_unit_test(test_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
