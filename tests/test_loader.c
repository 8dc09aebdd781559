/* SPDX-License-Identifier: MIT
 *
 * Model files are untrusted. Each rule of the readers is broken here at least once, with the code
 * that it must give; small files are cut at every byte and have every bit of their header flipped,
 * which must never do more than fail. Meant to run under the sanitizers as well.
 */
#include "test_loader.h"

iso_status load(const files *f, const iso_load_options *options, iso_error *error) {
    iso_model *model = NULL;
    *error = (iso_error){0};
    iso_status status = iso_model_load(&model, f->directory, options, NULL, error);
    if (status) {
        assert_null(model); /* untouched */
        assert_int_equal(error->status, status);
        assert_true(error->message[0] != 0 && !strchr(error->message, '\n'));
    }
    iso_model_free(model);
    return status;
}

void good_model(const files *f) {
    builder b = {.state = 1};
    files_config(f, "marian", V, D, 2, FFN, IDS);
    builder_model(&b, V, D, FFN, 1);
    builder_write(&b, f);
}

static void test_arguments(void **state) {
    files f;
    iso_error error = {0};
    iso_model *model = NULL;
    files_make(&f);
    good_model(&f);
    assert_int_equal(iso_model_load(NULL, f.directory, NULL, NULL, &error), ISOBIT_E_NULL);
    assert_int_equal(iso_model_load(&model, NULL, NULL, NULL, &error), ISOBIT_E_NULL);
    iso_context context = {.size = 1};
    assert_int_equal(iso_model_load(&model, f.directory, NULL, &context, &error), ISOBIT_E_SIZE);
    /* A set that is none of the library's: found out by the first op. */
    context = (iso_context){.size = sizeof context, .isa = (const iso_isa *)(const void *)&error};
    assert_int_equal(iso_model_load(&model, f.directory, NULL, &context, &error), ISOBIT_E_ISA);
    assert_non_null(strstr(error.message, iso_strerror(ISOBIT_E_ISA)));
    assert_null(model);
    uint32_t code;
    assert_int_equal(model_utf8("a", 0, &code), 0);
    /* Too long, a surrogate, beyond the last one; and their neighbours, which are right. */
    assert_int_equal(model_utf8("\xe0\x9f\xbf", 3, &code), 0);
    assert_int_equal(model_utf8("\xe0\xa0\x80", 3, &code), 3);
    assert_int_equal(model_utf8("\xf0\x8f\xbf\xbf", 4, &code), 0);
    assert_int_equal(model_utf8("\xf0\x90\x80\x80", 4, &code), 4);
    assert_int_equal(model_utf8("\xed\xa0\x80", 3, &code), 0);
    assert_int_equal(model_utf8("\xed\x9f\xbf", 3, &code), 3);
    assert_int_equal(model_utf8("\xf4\x90\x80\x80", 4, &code), 0);
    assert_int_equal(model_utf8("\xf4\x8f\xbf\xbf", 4, &code), 4);
    assert_int_equal(code, 0x10ffff);
    files_remove(&f);
    (void)state;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header_rules),
        cmocka_unit_test(test_header_strings),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_header_limits),
        cmocka_unit_test(test_header_mutations),
        cmocka_unit_test(test_file_length),
        cmocka_unit_test(test_file_mutations),
        cmocka_unit_test(test_not_a_file),
        cmocka_unit_test(test_file_grows),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_nonfinite),
        cmocka_unit_test(test_conversions),
        cmocka_unit_test(test_int8_matrices),
        cmocka_unit_test(test_int8_models),
        cmocka_unit_test(test_int8_refused),
        cmocka_unit_test(test_int8_zero_scale),
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_tokenizer),
        cmocka_unit_test(test_impossible_sizes),
        cmocka_unit_test(test_unshared_embeddings),
        cmocka_unit_test(test_positions_are_shared),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_most_positions),
        cmocka_unit_test(test_most_rotary),
        cmocka_unit_test(test_largest_texts),
        cmocka_unit_test(test_letters),
        cmocka_unit_test(test_tokenizer_arguments),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("loader", tests, NULL, NULL);
}
