/* SPDX-License-Identifier: MIT
 *
 * models/tiny-gpt2, from text to text: greedy continuations and their log-probabilities against
 * transformers (tests/data/tiny-gpt2.json, made by tools/train_gpt2.py --golden), and the bits of
 * drawn ones, which are committed: one hash for every instruction set, number of threads, batch
 * and machine.
 */
#include <isobit/model.h>

#include <endian.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>
#include <xxhash.h>

#define DIRECTORY ISOBIT_SOURCE_DIR "/models/tiny-gpt2"

enum { PROMPTS = 3, MAX_IDS = 200, SAMPLES = 2 };

/* Of the draws below: changes with the model, the numerics and the random numbers, else never. */
static const char committed[] = "fc9469c4bfb25ff7";

static iso_model *model;
static iso_tokenizer *tokenizer;

static void ok(iso_status status, const iso_error *error) {
    if (status)
        fail_msg("status %d: %s", (int)status, error->message);
}

static int open_all(void **state) {
    iso_error error = {0};
    ok(iso_model_load(&model, DIRECTORY, NULL, NULL, &error), &error);
    ok(iso_tokenizer_load(&tokenizer, DIRECTORY, &error), &error);
    ok(iso_tokenizer_fits(tokenizer, model, &error), &error);
    (void)state;
    return 0;
}

static int close_all(void **state) {
    iso_tokenizer_free(tokenizer);
    iso_model_free(model);
    (void)state;
    return 0;
}

static size_t encode(uint32_t *ids, const char *text) {
    size_t count, length, sequences;
    iso_error error = {0};
    ok(iso_tokenizer_encode(tokenizer, text, strlen(text), ids, MAX_IDS, &count, &length, 1,
                            &sequences, &error),
       &error);
    assert_int_equal(sequences, 1);
    assert_int_equal(length, count);
    return count;
}

static json_t *golden(void) {
    json_error_t error;
    json_t *cases = json_load_file(ISOBIT_TEST_DATA "/tiny-gpt2.json", 0, &error);
    if (!cases)
        fail_msg("tiny-gpt2.json: %s", error.text);
    assert_int_equal(json_array_size(cases), PROMPTS);
    return cases;
}

static void assert_ids(const json_t *expected, const uint32_t *ids, size_t count) {
    assert_int_equal(json_array_size(expected), count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(json_integer_value(json_array_get(expected, i)), ids[i]);
}

static void test_as_transformers(void **state) {
    json_t *cases = golden(), *c;
    size_t i;
    iso_error error = {0};
    assert_string_equal(iso_model_get_info(model)->family, "gpt2");
    assert_true(iso_model_get_info(model)->default_sampling);
    json_array_foreach(cases, i, c) {
        uint32_t ids[2 * MAX_IDS];
        const char *prompt = json_string_value(json_object_get(c, "prompt"));
        const size_t length = encode(ids, prompt);
        assert_ids(json_object_get(c, "prompt_ids"), ids, length);
        const iso_generate_options how = {.size = sizeof how, .sampling = ISOBIT_SAMPLING_OFF};
        iso_generation *g;
        ok(iso_generate(&g, model, ids, &length, 1, &how, NULL, &error), &error);
        const iso_hypothesis *best = g->best;
        assert_ids(json_object_get(c, "ids"), best->ids, best->length);
        const json_t *expected = json_object_get(c, "log_probs");
        for (size_t t = 0; t < best->length; t++) {
            double wanted = json_real_value(json_array_get(expected, t));
            assert_true(fabs((double)best->log_probs[t] - wanted) < 1e-4);
        }
        assert_true(length + best->length <= sizeof ids / sizeof *ids);
        memcpy(ids + length, best->ids, best->length * sizeof *ids);
        char text[1000];
        assert_int_equal(
            iso_tokenizer_decode(tokenizer, ids, length + best->length, text, sizeof text, NULL),
            0);
        assert_string_equal(text, json_string_value(json_object_get(c, "text")));
        iso_generation_free(g);
    }
    json_decref(cases);
    (void)state;
}

static void add_words(XXH3_state_t *hash, const void *from, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t word;
        memcpy(&word, (const char *)from + i * sizeof word, sizeof word);
        word = htole32(word);
        XXH3_64bits_update(hash, &word, sizeof word);
    }
}

/* Draws from all prompts, in one batch or one by one; the hash of what came. */
static void draw(char *text, size_t bytes, const iso_context *context, int alone) {
    uint32_t ids[PROMPTS * MAX_IDS];
    size_t lengths[PROMPTS], total = 0, i;
    json_t *cases = golden(), *c;
    iso_error error = {0};
    json_array_foreach(cases, i, c) {
        lengths[i] = encode(ids + total, json_string_value(json_object_get(c, "prompt")));
        total += lengths[i];
    }
    json_decref(cases);
    XXH3_state_t *hash = XXH3_createState();
    assert_non_null(hash);
    XXH3_64bits_reset(hash);
    const size_t step = alone ? 1 : PROMPTS;
    const uint32_t *source = ids;
    for (i = 0; i < PROMPTS; i += step) {
        const iso_generate_options how = {.size = sizeof how,
                                          .sampling = ISOBIT_SAMPLING_ON,
                                          .hypotheses = SAMPLES,
                                          .max_new_tokens = 12,
                                          .first_source = i,
                                          .seed = {1}};
        iso_generation *g;
        ok(iso_generate(&g, model, source, lengths + i, step, &how, context, &error), &error);
        assert_int_equal(g->count, step * SAMPLES);
        for (size_t j = 0; j < g->count; j++) {
            const uint32_t length = (uint32_t)g->best[j].length;
            assert_true(length > 0);
            add_words(hash, &length, 1);
            add_words(hash, g->best[j].ids, length);
            add_words(hash, g->best[j].log_probs, length);
        }
        iso_generation_free(g);
        source += lengths[i];
    }
    (void)snprintf(text, bytes, "%016llx", (unsigned long long)XXH3_64bits_digest(hash));
    XXH3_freeState(hash);
}

static void test_same_draws_everywhere(void **state) {
    size_t sets = 0;
    for (size_t i = 0; i < iso_isa_count(); i++) {
        if (iso_isa_missing(iso_isa_get(i)))
            continue;
        sets++;
        /* One by one on the calling thread, then all at once. */
        for (size_t threads = 1; threads <= 3; threads++) {
            iso_pool *pool = NULL;
            iso_context context = {.size = sizeof context, .isa = iso_isa_get(i)};
            if (threads > 1) {
                assert_int_equal(iso_pool_create(&pool, threads), 0);
                context.executor = iso_pool_executor(pool);
            }
            char hash[17];
            draw(hash, sizeof hash, &context, threads == 1);
            iso_pool_destroy(pool);
            if (strcmp(hash, committed) != 0)
                fail_msg("%s, %zu threads: %s", iso_isa_name(context.isa), threads, hash);
        }
    }
    assert_true(sets > 0);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_transformers),
        cmocka_unit_test(test_same_draws_everywhere),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
