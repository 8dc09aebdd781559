/* SPDX-License-Identifier: MIT
 *
 * Texts that end a sequence: against the stopping criteria of transformers
 * (tests/data/text/stop.json, made by tools/make_stops.py), and against the definition, which
 * decodes each beginning of a sequence and looks for each text in all of it.
 *
 *   test_stop NAME...    directories below tests/data/text
 */
#include <isobit/model.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_IDS = 400, TEXT = 8192, MOST_NAMES = 40 };

static const char *names[MOST_NAMES + 1]; /* NULL at the end */
static uint64_t random_state = 11;

static uint32_t below(uint32_t n) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return n ? (uint32_t)(random_state >> 33) % n : 0;
}

static iso_tokenizer *load(const char *name) {
    char path[512];
    iso_error error = {0};
    iso_tokenizer *t = NULL;
    (void)snprintf(path, sizeof path, "%s/text/%s", ISOBIT_TEST_DATA, name);
    if (iso_tokenizer_load(&t, path, &error))
        fail_msg("%s: %s", path, error.message);
    return t;
}

static iso_stop *stop_of(const iso_tokenizer *t, const char *const *texts, size_t count) {
    iso_stop *stop = NULL;
    iso_error error = {0};
    if (iso_stop_create(&stop, t, texts, count, &error))
        fail_msg("%s", error.message);
    return stop;
}

/* The first beginning of a sequence that is the last for `stop`; 0: there is none. */
static size_t end_of(iso_stop *stop, const uint32_t *ids, size_t count) {
    for (size_t n = 1; n <= count; n++) {
        const iso_sequence sequence = {.ids = ids, .length = n};
        const int last = iso_stop_is_last(stop, &sequence);
        assert_true(last == 0 || last == 1);
        if (last)
            return n;
    }
    return 0;
}

static void decode(const iso_tokenizer *t, const uint32_t *ids, size_t count, char text[TEXT]) {
    assert_int_equal(iso_tokenizer_decode(t, ids, count, text, TEXT, NULL), ISOBIT_OK);
}

static size_t literal_end(const iso_tokenizer *t, const char *const *texts, size_t count,
                          const uint32_t *ids, size_t length) {
    static char text[TEXT];
    for (size_t n = 1; n <= length; n++) {
        decode(t, ids, n, text);
        for (size_t i = 0; i < count; i++)
            if (strstr(text, texts[i]))
                return n;
    }
    return 0;
}

/* -------------------------------------------------------------------------------- transformers */

static void test_transformers(void **state) {
    char path[512];
    json_t *row;
    size_t i, compared = 0, none = 0;
    (void)snprintf(path, sizeof path, "%s/text/stop.json", ISOBIT_TEST_DATA);
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    json_array_foreach(root, i, row) {
        const char *name = json_string_value(json_object_get(row, "tokenizer")), *texts[8];
        const json_t *stops = json_object_get(row, "stops"), *list = json_object_get(row, "ids");
        const size_t count = json_array_size(stops), length = json_array_size(list);
        uint32_t ids[MOST_IDS];
        assert_true(count <= 8 && length <= MOST_IDS);
        size_t k = 0;
        while (names[k] && strcmp(names[k], name) != 0)
            k++;
        if (!names[k]) /* one that this build does not have */
            continue;
        for (k = 0; k < count; k++)
            texts[k] = json_string_value(json_array_get(stops, k));
        for (k = 0; k < length; k++)
            ids[k] = (uint32_t)json_integer_value(json_array_get(list, k));
        iso_tokenizer *t = load(name);
        iso_stop *stop = stop_of(t, texts, count);
        const size_t end = end_of(stop, ids, length);
        const size_t wanted = (size_t)json_integer_value(json_object_get(row, "end"));
        if (end != wanted)
            fail_msg("%s, row %zu: %zu tokens, not %zu", name, i, end, wanted);
        none += !wanted;
        compared++;
        iso_stop_free(stop);
        iso_tokenizer_free(t);
    }
    json_decref(root);
    print_message("%zu sequences, %zu of them without an end\n", compared, none);
    assert_true(compared > 60 && none > 8 && none < compared / 2);
    (void)state;
}

/* ---------------------------------------------------------------------------------- definition */

/* A piece of a text, of whole characters. */
static void piece(char *out, const char *text, size_t most) {
    const size_t bytes = strlen(text);
    size_t at = bytes ? below((uint32_t)bytes) : 0, n = 0;
    while (at && (text[at] & 0xc0) == 0x80)
        at--;
    while (n < most && text[at + n]) {
        do
            n++;
        while ((text[at + n] & 0xc0) == 0x80);
    }
    memcpy(out, text + at, n);
    out[n] = 0;
}

/* Where the first of the texts begins in the first n bytes; n: nowhere. */
static size_t literal_find(const char *const *texts, size_t count, const char *text, size_t n) {
    for (size_t at = 0; at < n; at++)
        for (size_t i = 0; i < count; i++)
            if (at + strlen(texts[i]) <= n && strncmp(text + at, texts[i], strlen(texts[i])) == 0)
                return at;
    return n;
}

/* What is shown of a text that grows to its end is never taken back. */
static void check_shown(const iso_stop *stop, const char *const *texts, size_t count,
                        const char *text) {
    const size_t bytes = strlen(text);
    size_t before, shown = 0;
    for (size_t n = 0; n <= bytes; n++) {
        const size_t found = literal_find(texts, count, text, n);
        assert_int_equal(iso_stop_find(stop, text, n, 0, &before), ISOBIT_OK);
        assert_int_equal(before, found);
        assert_true(before >= shown);
        assert_int_equal(iso_stop_find(stop, text, n, 1, &before), ISOBIT_OK);
        assert_true(before >= shown && before <= found);
        shown = before;
        if (found < n) { /* there it ends */
            assert_int_equal(before, found);
            return;
        }
        /* What is held back could become one of the texts, and nothing longer could. */
        for (size_t at = 0; at <= before; at++) {
            int begun = at == n;
            for (size_t i = 0; i < count; i++)
                begun |= n - at < strlen(texts[i]) && strncmp(text + at, texts[i], n - at) == 0;
            assert_int_equal(begun, at == before);
        }
    }
}

static void test_definition(void **state) {
    static char text[TEXT], pieces[3][64];
    size_t ended = 0, compared = 0;
    for (size_t k = 0; names[k]; k++) {
        iso_tokenizer *t = load(names[k]);
        uint32_t ids[MOST_IDS], vocabulary = 0;
        while (iso_tokenizer_token(t, vocabulary))
            vocabulary++;
        for (size_t round = 0; round < 24; round++) {
            /* Long runs of tokens without text, and of few tokens, among all of them. */
            const size_t length = 20 + below(round % 8 ? 30 : 90);
            const uint32_t range = round % 3 == 0 ? vocabulary : 4 + below(vocabulary - 4);
            for (size_t i = 0; i < length; i++)
                ids[i] = round % 5 == 4 && i / 20 % 2 ? 1 : below(range);
            decode(t, ids, length, text);
            const char *texts[3] = {pieces[0], pieces[1], pieces[2]};
            const size_t count = 1 + below(3);
            for (size_t i = 0; i < count; i++)
                piece(pieces[i], text, 1 + below(i ? 30 : 12));
            if (!pieces[0][0] || !pieces[1][0] || !pieces[2][0])
                continue;
            iso_stop *stop = stop_of(t, texts, count);
            const size_t wanted = literal_end(t, texts, count, ids, length);
            const size_t end = end_of(stop, ids, length);
            if (end != wanted)
                fail_msg("%s, round %zu, \"%s\": %zu of %zu tokens, not %zu", names[k], round,
                         texts[0], end, length, wanted);
            check_shown(stop, texts, count, text);
            ended += wanted > 0;
            compared++;
            iso_stop_free(stop);
        }
        iso_tokenizer_free(t);
    }
    print_message("%zu sequences, %zu of them end\n", compared, ended);
    assert_true(compared > 100 && ended > compared / 2);
    (void)state;
}

/* The first of the last tokens is no beginning: without its "##" it is text, and with it none. */
static void test_window(void **state) {
    const char *stops[] = {"##"};
    iso_tokenizer *t = load("bert");
    iso_stop *stop = stop_of(t, stops, 1);
    uint32_t ids[60], id = 0;
    size_t count = 0;
    for (const char *token; count < 60 && (token = iso_tokenizer_token(t, id)); id++)
        if (strncmp(token, "##", 2) == 0 || (count == 0 && strcmp(token, "a") == 0))
            ids[count++] = id;
    assert_true(count > 20 && strcmp(iso_tokenizer_token(t, ids[0]), "a") == 0);
    assert_int_equal(literal_end(t, stops, 1, ids, count), 0);
    assert_int_equal(end_of(stop, ids, count), 0);
    assert_int_equal(end_of(stop, ids + 1, count - 1), 1);
    iso_stop_free(stop);
    iso_tokenizer_free(t);
    (void)state;
}

/* -------------------------------------------------------------------------------------- errors */

static void test_errors(void **state) {
    iso_tokenizer *t = load("gpt2");
    iso_error error = {0};
    iso_stop *stop = NULL;
    size_t before;
    const char *empty[] = {"a", ""}, *null[] = {NULL}, *broken[] = {"a", "b\xff"}, *good[] = {"a"};
    assert_int_equal(iso_stop_create(&stop, t, empty, 2, &error), ISOBIT_E_OPTION);
    assert_string_equal(error.message, "stop text 1 is empty");
    assert_int_equal(iso_stop_create(&stop, t, null, 1, &error), ISOBIT_E_NULL);
    assert_string_equal(error.message, "stop text 0 is NULL");
    assert_int_equal(iso_stop_create(&stop, t, broken, 2, &error), ISOBIT_E_UTF8);
    assert_string_equal(error.message, "stop text 1 is not valid UTF-8 at byte 1");
    assert_int_equal(iso_stop_create(NULL, t, good, 1, &error), ISOBIT_E_NULL);
    assert_int_equal(iso_stop_create(&stop, NULL, good, 1, NULL), ISOBIT_E_NULL);
    assert_int_equal(iso_stop_create(&stop, t, NULL, 1, &error), ISOBIT_E_NULL);
    assert_null(stop);
    iso_stop_free(NULL);
    /* None at all end nothing. */
    stop = stop_of(t, NULL, 0);
    const uint32_t ids[] = {5, 6, 7};
    assert_int_equal(end_of(stop, ids, 3), 0);
    assert_int_equal(iso_stop_find(stop, "abc", 3, 1, &before), ISOBIT_OK);
    assert_int_equal(before, 3);
    assert_int_equal(iso_stop_find(NULL, "abc", 3, 1, &before), ISOBIT_E_NULL);
    assert_int_equal(iso_stop_find(stop, NULL, 3, 1, &before), ISOBIT_E_NULL);
    assert_int_equal(iso_stop_find(stop, "abc", 3, 1, NULL), ISOBIT_E_NULL);
    const iso_sequence nothing = {.length = 0};
    assert_int_equal(iso_stop_is_last(stop, &nothing), 0);
    assert_int_equal(iso_stop_is_last(NULL, &nothing), -1);
    assert_int_equal(iso_stop_is_last(stop, NULL), -1);
    iso_stop_free(stop);
    iso_tokenizer_free(t);
    (void)state;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transformers),
        cmocka_unit_test(test_definition),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_errors),
    };
    if (argc < 2 || argc > MOST_NAMES)
        return 2;
    for (int i = 1; i < argc; i++)
        names[i - 1] = argv[i];
    return cmocka_run_group_tests_name("stop", tests, NULL, NULL);
}
