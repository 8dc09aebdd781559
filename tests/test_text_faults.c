/* SPDX-License-Identifier: MIT
 *
 * Tokenizers without memory: each allocation of the library fails once, while a tokenizer is
 * loaded, cuts a text and joins it again; then those of jansson, too, but for its parser. A call
 * says ISOBIT_E_NOMEM or gives what it always gives, and gives all memory back. (What SentencePiece
 * allocates is its own.)
 *
 *   test_text_faults NAME...    directories below tests/data/text
 */
#include "model_files.h"
#include "spm_writer.h"

#include <isobit/model.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>
#include <utf8proc.h>

static size_t allocations, failing; /* 0: none */
static long kept;                   /* pieces of memory that nobody has given back */
static int parsing;

static int fails(void) { return !parsing && ++allocations == failing; }

static void *keep(void *got) {
    kept += got != NULL;
    return got;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size) { return fails() ? NULL : keep(__real_malloc(size)); }

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size) {
    void *got = fails() ? NULL : __real_realloc(old, size);
    return old ? got : keep(got);
}

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    return fails() ? NULL : keep(__real_aligned_alloc(alignment, size));
}

void __real_free(void *old);
void __wrap_free(void *old);
void __wrap_free(void *old) {
    kept -= old != NULL;
    __real_free(old);
}

/* Gives the library memory that it gives back. */
utf8proc_ssize_t __real_utf8proc_map(const utf8proc_uint8_t *text, utf8proc_ssize_t size,
                                     utf8proc_uint8_t **made, utf8proc_option_t options);
utf8proc_ssize_t __wrap_utf8proc_map(const utf8proc_uint8_t *text, utf8proc_ssize_t size,
                                     utf8proc_uint8_t **made, utf8proc_option_t options);
utf8proc_ssize_t __wrap_utf8proc_map(const utf8proc_uint8_t *text, utf8proc_ssize_t size,
                                     utf8proc_uint8_t **made, utf8proc_option_t options) {
    const utf8proc_ssize_t count = __real_utf8proc_map(text, size, made, options);
    (void)keep(*made);
    return count;
}

/* The parser of jansson 2.14 loses a character of a long string where its buffer cannot grow. */
json_t *__real_json_loadb(const char *text, size_t size, size_t flags, json_error_t *where);
json_t *__wrap_json_loadb(const char *text, size_t size, size_t flags, json_error_t *where);
json_t *__wrap_json_loadb(const char *text, size_t size, size_t flags, json_error_t *where) {
    parsing = 1;
    json_t *value = __real_json_loadb(text, size, flags, where);
    parsing = 0;
    return value;
}

static const char *name; /* of what is loaded */
static char path[512];

/* Words of all kinds, one of them long, so that nothing stays in the few places of the stack. */
static const char text[] =
    "The qu\xc3\xa9 "
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa "
    "\xe4\xb8\xad\xe4\xb8\xad <s></s>[SEP] it's 12[LOUD]<new>";

typedef struct answer {
    uint32_t ids[256];
    char joined[1024];
    size_t count, sequences, lengths[4], needed, unknown, dropped;
    iso_status beyond; /* with an id that is no token */
} answer;

static iso_error error; /* of the last call */

static iso_status ask(answer *a) {
    iso_tokenizer *t = NULL;
    error = (iso_error){0};
    kept = 0;
    memset(a, 0, sizeof *a);
    iso_status status = iso_tokenizer_load(&t, path, &error);
    assert_true(!status == (t != NULL));
    if (!status)
        status = iso_tokenizer_encode(t, text, sizeof text - 1, a->ids, 256, &a->count, a->lengths,
                                      4, &a->sequences, &error);
    assert_int_equal(error.status, status);
    if (!status)
        status = iso_tokenizer_lacks(t, text, sizeof text - 1, &a->unknown, &a->dropped, &error);
    if (!status)
        status = iso_tokenizer_decode(t, a->ids, a->count, a->joined, sizeof a->joined, &a->needed);
    if (!status) {
        assert_true(a->count < sizeof a->ids / sizeof *a->ids);
        a->ids[a->count] = UINT32_MAX;
        a->beyond =
            iso_tokenizer_decode(t, a->ids, a->count + 1, a->joined, sizeof a->joined, &a->needed);
        status = a->beyond == ISOBIT_E_NOMEM ? a->beyond : ISOBIT_OK;
    }
    iso_tokenizer_free(t);
    if (kept)
        fail_msg("%s, allocation %zu fails: %ld pieces of memory stay", name, failing, kept);
    return status;
}

/* How many allocations of all fail the call. */
static size_t fail_each(size_t *all) {
    static answer good, got;
    size_t failures = 0;
    failing = 0;
    allocations = 0;
    assert_int_equal(ask(&good), ISOBIT_OK);
    assert_true(good.count > 10 && good.sequences == 1);
    *all = allocations;
    for (size_t k = 1; k <= *all; k++) {
        allocations = 0;
        failing = k;
        const iso_status status = ask(&got);
        failing = 0;
        if (status && status != ISOBIT_E_NOMEM)
            fail_msg("%s, allocation %zu of %zu: %d (%s)", name, k, *all, (int)status,
                     error.message);
        failures += status != ISOBIT_OK;
        if (!status)
            assert_memory_equal(&got, &good, sizeof got);
    }
    print_message("%s: %zu of %zu allocations fail the call\n", name, failures, *all);
    assert_int_equal(ask(&got), ISOBIT_OK);
    assert_memory_equal(&got, &good, sizeof got);
    return failures;
}

static void test_no_memory(void **state) {
    size_t all;
    const size_t failures = fail_each(&all);
    /* What goes faster with memory goes without, too. */
    assert_true(failures > 10 && 2 * failures >= all);
    (void)state;
}

static void test_no_memory_for_json(void **state) {
    json_malloc_t before;
    json_free_t before_free;
    size_t all;
    json_get_alloc_funcs(&before, &before_free);
    json_set_alloc_funcs(__wrap_malloc, __wrap_free);
    assert_true(fail_each(&all) > 10);
    json_set_alloc_funcs(before, before_free);
    (void)state;
}

/* Tokens that tokenizer_config.json adds to pieces, and a piece of users. */
static void test_added(void **state) {
    static bytes pieces, trainer;
    files f;
    pieces.count = trainer.count = 0;
    piece(&pieces, "<unk>", 5, 0, TEXT_PIECE_UNKNOWN);
    piece(&pieces, "<s>", 3, 0, TEXT_PIECE_CONTROL);
    piece(&pieces, "</s>", 4, 0, TEXT_PIECE_CONTROL);
    piece(&pieces, "\xe2\x96\x81", 3, minus_one, TEXT_PIECE_NORMAL);
    piece(&pieces, "a", 1, minus_one, TEXT_PIECE_NORMAL);
    piece(&pieces, "aa", 2, minus_one, TEXT_PIECE_NORMAL);
    piece(&pieces, "[LOUD]", 6, 0, TEXT_PIECE_USER_DEFINED);
    number_field(&trainer, 3, TEXT_SPM_BPE);
    field(&pieces, 2, trainer.data, trainer.count);
    files_make(&f);
    files_write(&f, "tokenizer.model", pieces.data, pieces.count);
    files_text(&f, "tokenizer_config.json",
               "{\"tokenizer_class\":\"LlamaTokenizer\",\"pad_token\":{\"content\":\"[SEP]\"},"
               "\"additional_special_tokens\":[\"<new>\"]}");
    name = "added";
    (void)snprintf(path, sizeof path, "%s", f.directory);
    test_no_memory_for_json(state);
    files_remove(&f);
}

/* A merge of long tokens, an added token that gets a property, steps that have texts; `id`: of "a",
 * which decides whether the file is read as a whole. */
static void try_long_tokens(void **state, const char *id) {
    char json[2048], a[67], b[67];
    files f;
    memset(a, 'a', sizeof a);
    memset(b, 'a', sizeof b);
    a[66] = b[65] = 0;
    (void)snprintf(
        json, sizeof json,
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":%s,\"%s\":1,\"%s\":2,\"%s%s\":3,"
        "\"[LOUD]\":4},\"merges\":[[\"%s\",\"%s\"]]},\"added_tokens\":[{\"content\":\"[LOUD]\","
        "\"single_word\":true,"
        "\"id\":4},{\"content\":\"The\",\"id\":5,\"normalized\":true}],\"normalizer\":{\"type\":"
        "\"Sequence\",\"normalizers\":[{\"type\":\"Replace\","
        "\"pattern\":{\"String\":\"it\"},\"content\":\"aa\"},{\"type\":\"Prepend\",\"prepend\":"
        "\"a\"}]},\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
        "\"decoder\":{\"type\":\"ByteLevel\"}}",
        id, a, b, a, b, a, b);
    files_make(&f);
    files_text(&f, "tokenizer.json", json);
    files_text(&f, "tokenizer_config.json",
               "{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"added_tokens_decoder\":{\"4\":"
               "{\"content\":\"[LOUD]\",\"special\":true}}}");
    name = "long tokens";
    (void)snprintf(path, sizeof path, "%s", f.directory);
    test_no_memory_for_json(state);
    files_remove(&f);
}

/* A folder with these files; merges may be NULL. */
static void try_folder(void **state, const char *title, const char *config, const char *vocabulary,
                       const char *merges) {
    files f;
    files_make(&f);
    files_text(&f, "tokenizer_config.json", config);
    files_text(&f, "vocab.json", vocabulary);
    if (merges)
        files_text(&f, "merges.txt", merges);
    name = title;
    (void)snprintf(path, sizeof path, "%s", f.directory);
    test_no_memory_for_json(state);
    files_remove(&f);
}

static void test_characters(void **state) {
    try_folder(state, "characters", "{\"tokenizer_class\":\"isobit-characters\"}",
               "{\"</s>\":0,\"<unk>\":1,\"a\":2,\"b\":3,\" \":4}", NULL);
}

/* An id with a point: the vocabulary is read as a whole. */
static void test_whole_vocabulary(void **state) {
    try_folder(state, "whole vocabulary", "{\"tokenizer_class\":\"GPT2Tokenizer\"}",
               "{\"<|endoftext|>\":0,\"a\":1.0,\"aa\":2}", "a a\n");
}

static void test_long_tokens(void **state) { try_long_tokens(state, "0"); }
static void test_whole_file(void **state) { try_long_tokens(state, "0.0"); }

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_memory),
                                       cmocka_unit_test(test_no_memory_for_json)};
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        name = argv[i];
        (void)snprintf(path, sizeof path, "%s/text/%s", ISOBIT_TEST_DATA, name);
        failed += cmocka_run_group_tests_name(name, tests, NULL, NULL);
    }
    const struct CMUnitTest made[] = {
        cmocka_unit_test(test_added), cmocka_unit_test(test_long_tokens),
        cmocka_unit_test(test_whole_file), cmocka_unit_test(test_characters),
        cmocka_unit_test(test_whole_vocabulary)};
    failed += cmocka_run_group_tests_name("made", made, NULL, NULL);
    return failed != 0;
}
