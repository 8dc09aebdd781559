/* SPDX-License-Identifier: MIT
 *
 * See test_text_families.c: targets of a translation.
 */
#include "../test_text_families.h"

/* Targets against the labels of transformers; of a text that is nothing there is no sequence. */
void test_targets(void **state) {
    json_t *rows = json_load_file(ISOBIT_TEST_DATA "/text/targets.json", 0, NULL), *row;
    size_t i, compared = 0, lacking = 0;
    assert_non_null(rows);
    json_array_foreach(rows, i, row) {
        const char *name = json_string_value(json_object_get(row, "tokenizer")),
                   *text = json_string_value(json_object_get(row, "text"));
        const iso_tokenizer_options options = {
            .size = sizeof options,
            .source_language = json_string_value(json_object_get(row, "from")),
            .target_language = json_string_value(json_object_get(row, "to"))};
        char path[512];
        iso_tokenizer *t = NULL;
        iso_error e = {0};
        uint32_t ids[256];
        size_t count, length, sequences, given;
        (void)snprintf(path, sizeof path, "%s/text/%s", ISOBIT_TEST_DATA, name);
        if (!with_sentencepiece && (strcmp(name, "marian") == 0 || strcmp(name, "m2m_100") == 0))
            continue;
        if (iso_tokenizer_load_with(&t, path, &options, &e))
            fail_msg("%s: %s", name, e.message);
        assert_int_equal(iso_tokenizer_encode_target(t, text, strlen(text), ids, 256, &count,
                                                     &length, 1, &sequences, &given, &e),
                         ISOBIT_OK);
        const json_t *wanted = json_object_get(row, "ids");
        if (sequences != 1 || length != count || count != json_array_size(wanted))
            fail_msg("%s, row %zu: %zu ids, not %zu", name, i, count, json_array_size(wanted));
        for (size_t k = 0; k < count; k++)
            if (ids[k] != json_integer_value(json_array_get(wanted, k)))
                fail_msg("%s, row %zu: id %zu is %u", name, i, k, ids[k]);
        assert_int_equal(given, json_integer_value(json_object_get(row, "given")));
        compared++;
        assert_int_equal(iso_tokenizer_encode_target(t, text, strlen(text), ids, 1, &count, &length,
                                                     1, &sequences, &given, &e),
                         ISOBIT_E_WORKSPACE);
        assert_int_equal(count, json_array_size(wanted));
        assert_int_equal(
            iso_tokenizer_encode_target(t, "", 0, NULL, 0, &count, NULL, 0, &sequences, &given, &e),
            ISOBIT_OK);
        assert_int_equal(count + sequences, 0);
        assert_int_equal(iso_tokenizer_encode_target(t, "a\xff", 2, ids, 256, &count, &length, 1,
                                                     &sequences, &given, &e),
                         ISOBIT_E_UTF8);
        assert_int_equal(iso_tokenizer_encode_target(t, "a", 1, ids, 256, &count, &length, 1,
                                                     &sequences, NULL, &e),
                         ISOBIT_E_NULL);
        size_t unknown = 9, dropped = 9, of_source[2] = {0};
        assert_int_equal(iso_tokenizer_target_lacks(t, "a\xff", 2, &unknown, &dropped, &e),
                         ISOBIT_E_UTF8);
        assert_int_equal(iso_tokenizer_target_lacks(t, "a", 1, NULL, &dropped, &e), ISOBIT_E_NULL);
        assert_int_equal(iso_tokenizer_target_lacks(t, "", 0, &unknown, &dropped, &e), ISOBIT_OK);
        assert_int_equal(unknown + dropped, 0);
        /* Marian has a vocabulary for targets; that of the others is the one for sources. */
        static const char odd[] = "a\xe2\x98\x83\xe2\x98\x83 b";
        assert_int_equal(iso_tokenizer_target_lacks(t, odd, sizeof odd - 1, &unknown, &dropped, &e),
                         ISOBIT_OK);
        assert_int_equal(
            iso_tokenizer_lacks(t, odd, sizeof odd - 1, &of_source[0], &of_source[1], &e),
            ISOBIT_OK);
        assert_int_equal(unknown, of_source[0]);
        assert_int_equal(dropped, of_source[1]);
        lacking += unknown + dropped;
        iso_tokenizer_free(t);
    }
    json_decref(rows);
    assert_true(compared > 60 && lacking > 0);
    /* A language of sources alone is none of a target. */
    iso_tokenizer *t = NULL;
    uint32_t ids[16];
    size_t count, length, sequences, given;
    assert_int_equal(iso_tokenizer_load(&t, ISOBIT_TEST_DATA "/text/nllb", NULL), ISOBIT_OK);
    assert_int_equal(iso_tokenizer_encode_target(t, "ab", 2, ids, 16, &count, &length, 1,
                                                 &sequences, &given, NULL),
                     ISOBIT_OK);
    assert_int_equal(given, 0);
    assert_string_equal(iso_tokenizer_token(t, ids[0]), BAR "a");
    iso_tokenizer_free(t);
    (void)state;
}
