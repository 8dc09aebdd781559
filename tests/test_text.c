/* SPDX-License-Identifier: MIT
 *
 * Tokenizers against what transformers says (tests/data/text/NAME/expected.json): texts to ids, ids
 * to text. And directories of Marian that are damaged, one thing at a time: one clear sentence
 * each.
 *
 *   test_text NAME...         directories below tests/data/text
 *   test_text gguf NAME...    the same tokens from tests/data/gguf/tokens-NAME.gguf
 */
#include "model_files.h"

#include <isobit/model.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *name; /* of the directory */
static int from_gguf;

static void data_path(char *path, size_t bytes, const char *file) {
    (void)snprintf(path, bytes, "%s/text/%s%s%s", ISOBIT_TEST_DATA, name, file[0] ? "/" : "", file);
}

static json_t *expected(void) {
    char path[512];
    json_error_t where;
    data_path(path, sizeof path, "expected.json");
    json_t *root = json_load_file(path, JSON_ALLOW_NUL, &where);
    if (!root)
        fail_msg("%s: %s", path, where.text);
    return root;
}

/* From and to the languages of expected.json, if it has any. */
static iso_tokenizer *load(void) {
    char path[512];
    iso_error error = {0};
    iso_tokenizer *t = NULL;
    json_t *root = expected();
    const iso_tokenizer_options options = {
        .size = sizeof options,
        .source_language = json_string_value(json_object_get(root, "from")),
        .target_language = json_string_value(json_object_get(root, "to"))};
    data_path(path, sizeof path, "");
    if (from_gguf)
        (void)snprintf(path, sizeof path, "%s/gguf/tokens-%s.gguf", ISOBIT_TEST_DATA, name);
    if (iso_tokenizer_load_with(&t, path, &options, &error))
        fail_msg("%s: %s", path, error.message);
    json_decref(root);
    return t;
}

static uint32_t *ids_of(const json_t *list, size_t *count) {
    *count = json_array_size(list);
    uint32_t *ids = malloc(*count * sizeof *ids + 1);
    assert_non_null(ids);
    for (size_t i = 0; i < *count; i++)
        ids[i] = (uint32_t)json_integer_value(json_array_get(list, i));
    return ids;
}

static void test_encode(void **state) {
    (void)state;
    iso_tokenizer *t = load();
    json_t *root = expected(), *one;
    size_t i, wanted, count, sequences, length, unknown, dropped;
    uint32_t ids[1024];
    iso_error error = {0};
    assert_true(json_array_size(json_object_get(root, "encode")) >= 20);
    json_array_foreach(json_object_get(root, "encode"), i, one) {
        const json_t *text = json_object_get(one, "text");
        const char *s = json_string_value(text);
        const size_t bytes = json_string_length(text);
        uint32_t *want = ids_of(json_object_get(one, "ids"), &wanted);
        assert_int_equal(
            iso_tokenizer_encode(t, s, bytes, ids, 1024, &count, &length, 1, &sequences, &error),
            ISOBIT_OK);
        assert_int_equal(sequences, 1);
        assert_int_equal(length, count);
        if (count != wanted || memcmp(ids, want, count * sizeof *ids) != 0)
            fail_msg("text %zu, \"%s\": %zu ids, not %zu, or others", i, s, count, wanted);
        /* With less room: nothing beyond it is written, the counts are the same. */
        uint32_t small[4] = {7, 7, 7, 7};
        iso_status status =
            iso_tokenizer_encode(t, s, bytes, small, 2, &count, &length, 1, &sequences, &error);
        assert_int_equal(status, wanted > 2 ? ISOBIT_E_WORKSPACE : ISOBIT_OK);
        assert_int_equal(count, wanted);
        assert_int_equal(small[2], 7);
        assert_int_equal(iso_tokenizer_lacks(t, s, bytes, &unknown, &dropped, &error), ISOBIT_OK);
        const json_t *unk = json_object_get(root, "unk");
        if (json_is_integer(unk)) {
            int has = 0;
            for (size_t k = 0; k < wanted; k++)
                has |= want[k] == (uint32_t)json_integer_value(unk);
            /* The text may have the token itself. */
            assert_true(has >= (unknown > 0));
            assert_true(unknown > 0 || !has || strstr(s, "[UNK]") || strstr(s, "<unk>"));
        }
        if (json_object_get(one, "unknown"))
            assert_int_equal(unknown, json_integer_value(json_object_get(one, "unknown")));
        if (json_object_get(one, "dropped"))
            assert_int_equal(dropped, json_integer_value(json_object_get(one, "dropped")));
        free(want);
    }
    json_decref(root);
    iso_tokenizer_free(t);
}

typedef iso_status decoder(const iso_tokenizer *, const uint32_t *, size_t, char *, size_t,
                           size_t *);

static void decode_one(const iso_tokenizer *t, decoder *decode, const uint32_t *ids, size_t count,
                       const json_t *text) {
    const size_t bytes = json_string_length(text);
    char out[4096];
    size_t needed = 0;
    assert_true(bytes + 1 < sizeof out);
    assert_int_equal(decode(t, ids, count, out, sizeof out, &needed), ISOBIT_OK);
    if (needed != bytes + 1 || memcmp(out, json_string_value(text), needed) != 0)
        fail_msg("\"%s\" instead of \"%s\"", out, json_string_value(text));
    memset(out, 'x', sizeof out);
    assert_int_equal(decode(t, ids, count, out, bytes, &needed), ISOBIT_E_WORKSPACE);
    assert_int_equal(needed, bytes + 1);
    assert_int_equal(out[bytes], 'x');
}

static void test_decode(void **state) {
    (void)state;
    iso_tokenizer *t = load();
    json_t *root = expected(), *one;
    size_t i, count;
    assert_true(json_array_size(json_object_get(root, "decode")) >= 10);
    json_array_foreach(json_object_get(root, "decode"), i, one) {
        uint32_t *ids = ids_of(json_object_get(one, "ids"), &count);
        decode_one(t, iso_tokenizer_decode, ids, count, json_object_get(one, "text"));
        if (json_object_get(one, "source"))
            decode_one(t, iso_tokenizer_decode_source, ids, count, json_object_get(one, "source"));
        free(ids);
    }
    json_decref(root);
    iso_tokenizer_free(t);
}

/* Token by token: valid UTF-8, of which nothing is taken back. */
static void test_partial(void **state) {
    (void)state;
    iso_tokenizer *t = load();
    json_t *root = expected(), *one;
    size_t i, count, needed, before = 0;
    json_array_foreach(json_object_get(root, "decode"), i, one) {
        uint32_t *ids = ids_of(json_object_get(one, "ids"), &count);
        const json_t *text = json_object_get(one, "text");
        char out[4096];
        before = 0;
        for (size_t k = 0; k <= count; k++) {
            assert_int_equal(iso_tokenizer_decode_partial(t, ids, k, out, sizeof out, &needed),
                             ISOBIT_OK);
            assert_true(needed - 1 >= before && needed - 1 <= json_string_length(text));
            assert_memory_equal(out, json_string_value(text), needed - 1);
            json_t *valid = json_stringn(out, needed - 1); /* checks UTF-8 */
            assert_non_null(valid);
            json_decref(valid);
            before = needed - 1;
        }
        free(ids);
    }
    json_decref(root);
    iso_tokenizer_free(t);
}

static void test_arguments(void **state) {
    (void)state;
    iso_tokenizer *t = load();
    size_t count, sequences;
    iso_error error = {0};
    assert_int_equal(iso_tokenizer_encode(t, "", 0, NULL, 0, &count, NULL, 0, &sequences, &error),
                     ISOBIT_OK);
    assert_int_equal(sequences, 0);
    assert_int_equal(
        iso_tokenizer_encode(t, "a\xff", 2, NULL, 0, &count, NULL, 0, &sequences, &error),
        ISOBIT_E_UTF8);
    assert_int_equal(iso_tokenizer_lacks(t, "a\xff", 2, &count, &sequences, &error), ISOBIT_E_UTF8);
    assert_int_equal(iso_tokenizer_lacks(t, "a", 1, NULL, &sequences, &error), ISOBIT_E_NULL);
    assert_int_equal(iso_tokenizer_fits(t, NULL, &error), ISOBIT_E_NULL);
    const uint32_t zero = 0;
    char room[8];
    uint32_t one[1];
    size_t length;
    assert_int_equal(
        iso_tokenizer_encode(NULL, "a", 1, one, 1, &count, &length, 1, &sequences, &error),
        ISOBIT_E_NULL);
    assert_int_equal(
        iso_tokenizer_encode(t, NULL, 1, one, 1, &count, &length, 1, &sequences, &error),
        ISOBIT_E_NULL);
    assert_int_equal(
        iso_tokenizer_encode(t, "a", 1, NULL, 1, &count, &length, 1, &sequences, &error),
        ISOBIT_E_NULL);
    assert_int_equal(iso_tokenizer_encode(t, "a", 1, one, 1, NULL, &length, 1, &sequences, &error),
                     ISOBIT_E_NULL);
    assert_int_equal(iso_tokenizer_encode(t, "a", 1, one, 1, &count, NULL, 1, &sequences, &error),
                     ISOBIT_E_NULL);
    assert_int_equal(iso_tokenizer_encode(t, "a", 1, one, 1, &count, &length, 1, NULL, &error),
                     ISOBIT_E_NULL);
    assert_int_equal(iso_tokenizer_decode(NULL, &zero, 1, room, 8, NULL), ISOBIT_E_NULL);
    assert_int_equal(iso_tokenizer_decode(t, NULL, 1, room, 8, NULL), ISOBIT_E_NULL);
    assert_int_equal(iso_tokenizer_decode(t, &zero, 1, NULL, 8, NULL), ISOBIT_E_NULL);
    /* Ids that are no tokens: a model may have more of them. */
    const uint32_t beyond[] = {UINT32_MAX, 1000000};
    const iso_status status = strcmp(name, "marian") ? ISOBIT_OK : ISOBIT_E_RANGE;
    char nothing[2] = "x";
    assert_int_equal(iso_tokenizer_decode(t, beyond, 2, nothing, 2, &count), status);
    if (!status)
        assert_string_equal(nothing, "");
    assert_int_equal(iso_tokenizer_decode_source(t, beyond + 1, 1, nothing, 2, NULL), status);
    json_t *root = expected();
    uint32_t first = 7;
    const json_t *forced = json_object_get(root, "forced_bos");
    assert_int_equal(iso_tokenizer_forced_bos(t, &first), ISOBIT_OK);
    assert_int_equal(first, forced ? (uint32_t)json_integer_value(forced) : UINT32_MAX);
    assert_int_equal(iso_tokenizer_forced_bos(t, NULL), ISOBIT_E_NULL);
    assert_int_equal(iso_tokenizer_forced_bos(NULL, &first), ISOBIT_E_NULL);
    json_decref(root);
    assert_null(iso_tokenizer_token(t, beyond[1]));
    assert_null(iso_tokenizer_source_token(t, beyond[1]));
    assert_non_null(iso_tokenizer_token(t, 0));
    assert_string_equal(iso_tokenizer_source_token(t, 1), iso_tokenizer_token(t, 1));
    iso_tokenizer_free(t);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encode),
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_partial),
        cmocka_unit_test(test_arguments),
    };
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        name = argv[i];
        if (strcmp(name, "gguf") == 0)
            from_gguf = 1;
        else
            failed += cmocka_run_group_tests_name(name, tests, NULL, NULL);
    }
    return failed != 0;
}
