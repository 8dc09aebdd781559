/* SPDX-License-Identifier: MIT
 *
 * tokenizer.json and the older files, damaged or beyond what isobit has: one sentence each that
 * names it. And what golden files do not show: characters that a vocabulary lacks, ids without a
 * token, bytes that are no text.
 */
#include "test_pipeline.h"

const char good_unigram[] = "{" UNIGRAM "," META "," META_END "}";
const char good_characters[] = "{" CHARS "}," META "," META_END "}";
const char good_bpe[] = "{" MODEL "," PRE "," DECODER "}";
const char good_wordpiece[] = "{" PIECES "," BERT "}";

iso_tokenizer *load(const files *f, const char *config, iso_status *status, iso_error *error) {
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

iso_tokenizer *good(const files *f, const char *json) { return good_as(f, CONFIG, json); }

void encodes_as(const files *f, const char *config, const char *json, const char *text,
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

void encodes(const files *f, const char *json, const char *text, const char *wanted) {
    encodes_as(f, CONFIG, json, text, wanted);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),         cmocka_unit_test(test_older_files),
        cmocka_unit_test(test_vocab_txt),       cmocka_unit_test(test_lacks),
        cmocka_unit_test(test_all_bytes),       cmocka_unit_test(test_tidy_text),
        cmocka_unit_test(test_special_names),   cmocka_unit_test(test_added_twice),
        cmocka_unit_test(test_forms_of_merges), cmocka_unit_test(test_steps),
        cmocka_unit_test(test_order_of_merges), cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_long_word),       cmocka_unit_test(test_unigram),
        cmocka_unit_test(test_metaspace),       cmocka_unit_test(test_partial_tidy),
        cmocka_unit_test(test_clusters),        cmocka_unit_test(test_spelt),
        cmocka_unit_test(test_spelt_text),      cmocka_unit_test(test_young_characters),
        cmocka_unit_test(test_spaces),          cmocka_unit_test(test_bert_controls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
