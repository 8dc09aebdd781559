/* SPDX-License-Identifier: MIT
 *
 * Arguments, lengths, and values that are not finite.
 */
#include "test_model.h"

void test_arguments(void **state) {
    iso_model *model = load_golden("paper", NULL);
    iso_generation *g = NULL;
    iso_error error = {0};
    uint32_t ids[64] = {4, 5, 2};
    static float out[64 * 50];
    size_t S = 0;
    /* An empty source, an id beyond the vocabulary, more tokens than positions. */
    assert_int_equal(iso_generate(&g, model, ids, &S, 1, NULL, NULL, &error), ISOBIT_E_DIM);
    assert_int_equal(iso_encode_f32(out, model, ids, 0, NULL, &error), ISOBIT_E_DIM);
    ids[1] = 50;
    S = 3;
    assert_int_equal(iso_generate(&g, model, ids, &S, 1, NULL, NULL, &error), ISOBIT_E_RANGE);
    assert_non_null(strstr(error.message, "position 1"));
    assert_non_null(strstr(error.message, "50"));
    ids[1] = 5;
    S = 41;
    assert_int_equal(iso_generate(&g, model, ids, &S, 1, NULL, NULL, &error), ISOBIT_E_LIMIT);
    assert_int_equal(iso_logits_f32(out, model, ids, 3, ids, 41, 0, NULL, &error), ISOBIT_E_LIMIT);
    assert_int_equal(iso_logits_f32(out, model, ids, 3, ids, 0, 0, NULL, &error), ISOBIT_OK);
    assert_null(g);
    S = 3;
    const struct {
        iso_generate_options o;
        iso_status status;
    } bad[] = {
        {{.size = 8}, ISOBIT_E_SIZE},
        {{.beams = 2, .hypotheses = 3}, ISOBIT_E_OPTION},
        {{.beams = 100000}, ISOBIT_E_LIMIT},
        {{.max_length = 1}, ISOBIT_E_OPTION},
        {{.max_length = 42}, ISOBIT_E_LIMIT},
        {{.max_new_tokens = SIZE_MAX}, ISOBIT_E_LIMIT},
        {{.has_length_penalty = 1, .length_penalty = NAN}, ISOBIT_E_OPTION},
        {{.repetition_penalty = -1}, ISOBIT_E_OPTION},
        {{.early_stopping = (iso_early_stopping)9}, ISOBIT_E_OPTION},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        iso_generate_options o = bad[i].o;
        o.size = o.size ? o.size : sizeof o;
        assert_int_equal(iso_generate(&g, model, ids, &S, 1, &o, NULL, &error), bad[i].status);
    }
    assert_null(g);
    iso_context context = {.size = 3};
    assert_int_equal(iso_generate(&g, model, ids, &S, 1, NULL, &context, &error), ISOBIT_E_SIZE);
    assert_int_equal(iso_generate(&g, NULL, ids, &S, 1, NULL, NULL, &error), ISOBIT_E_NULL);
    /* No sources: an empty result. */
    ok(iso_generate(&g, model, NULL, NULL, 0, NULL, NULL, &error), &error);
    assert_int_equal(g->count, 0);
    iso_generation_free(g);
    iso_generation_free(NULL);
    iso_model_free(model);
    iso_model_free(NULL);
    (void)state;
}

void test_lengths(void **state) {
    iso_model *model = load_golden("paper", NULL);
    const iso_model_info *info = iso_model_get_info(model);
    const uint32_t source[] = {9, 22, 31, 2};
    const size_t S = 4;
    iso_error error = {0};
    iso_generation *g;
    /* max_new_tokens wins over max_length and does not count the start token; no forced end. */
    iso_generate_options o = {
        .size = sizeof o, .beams = 1, .max_length = 9, .max_new_tokens = 3, .min_length = 30};
    ok(iso_generate(&g, model, source, &S, 1, &o, NULL, &error), &error);
    assert_int_equal(g->best[0].length, 3);
    iso_generation_free(g);
    o.max_new_tokens = 0;
    ok(iso_generate(&g, model, source, &S, 1, &o, NULL, &error), &error);
    assert_int_equal(g->best[0].length, 8);
    assert_true(g->best[0].ids[7] != info->eos_ids[0]);
    iso_generation_free(g);
    /* As many positions as there are: the last token needs none. */
    o.max_length = info->max_positions + 1;
    o.min_length = 100;
    ok(iso_generate(&g, model, source, &S, 1, &o, NULL, &error), &error);
    assert_int_equal(g->best[0].length, info->max_positions);
    iso_generation_free(g);
    /* More beams than tokens in the vocabulary. */
    o = (iso_generate_options){.size = sizeof o, .beams = 60, .hypotheses = 60, .max_length = 4};
    ok(iso_generate(&g, model, source, &S, 1, &o, NULL, &error), &error);
    assert_int_equal(g->count, 60);
    iso_generation_free(g);
    iso_model_free(model);
    (void)state;
}

/* Every token forbidden, and weights of NaN and Inf: any result, but no crash. */
void test_nothing_is_finite(void **state) {
    static const char *const more[] = {
        ",\"eos_token_id\":2,\"decoder_start_token_id\":1,\"forced_eos_token_id\":null,"
        "\"pad_token_id\":0,\"bad_words_ids\":[[0],[1],[2],[3],[4]]",
        ",\"eos_token_id\":2,\"decoder_start_token_id\":1,\"pad_token_id\":0"};
    const float values[] = {0, NAN, INFINITY};
    for (size_t i = 0; i < 6; i++) {
        files f;
        files_make(&f);
        files_config(&f, "marian", 5, 8, 2, 12, more[i / 3]);
        builder b = {.state = i + 1};
        builder_model(&b, 5, 8, 12, 0);
        builder_tensor(&b, "final_logits_bias", 1, 5, values[i % 3], 0.5f);
        builder_write(&b, &f);
        iso_model *model = load(f.directory);
        for (size_t beams = 1; beams <= 4; beams++) {
            iso_generate_options o = {.size = sizeof o,
                                      .beams = beams,
                                      .hypotheses = beams,
                                      .attention = 1,
                                      .max_length = 9};
            const uint32_t source[] = {3, 4, 0};
            const size_t lengths[] = {2, 1};
            iso_error error = {0};
            iso_generation *g;
            ok(iso_generate(&g, model, source, lengths, 2, &o, NULL, &error), &error);
            for (size_t h = 0; h < g->count; h++)
                for (size_t t = 0; t < g->best[h].length; t++)
                    assert_true(g->best[h].ids[t] < 5);
            iso_generation_free(g);
        }
        iso_model_free(model);
        files_remove(&f);
    }
    (void)state;
}
