/* SPDX-License-Identifier: MIT
 *
 * Generation beyond the searches: sampling against definitions in double precision that sort
 * everything, against the warpers of transformers (tests/data/sampling.json, made by
 * tools/make_sampling.py) and against chance; forced first tokens, sequences that end a target,
 * and the function that is called for each token.
 */
#include "test_sample.h"

void ok(iso_status status, const iso_error *error) {
    if (status)
        fail_msg("status %d: %s", (int)status, error->message);
}

/*
 * A small model of random weights; `more` is added to its configuration, and a second EOS where it
 * is not 0.
 */
iso_model *make_model_with(uint32_t second_eos, const char *more) {
    files f;
    char text[600], eos[32] = "2";
    files_make(&f);
    if (second_eos)
        (void)snprintf(eos, sizeof eos, "[2,%u]", second_eos);
    (void)snprintf(text, sizeof text,
                   ",\"eos_token_id\":%s,\"decoder_start_token_id\":1,\"pad_token_id\":0,"
                   "\"forced_eos_token_id\":null,\"max_position_embeddings\":40%s",
                   eos, more);
    files_config(&f, "marian", V, 16, 2, 24, text);
    builder b = {.state = 5};
    builder_model(&b, V, 16, 24, 1);
    builder_write(&b, &f);
    iso_model *model = NULL;
    iso_error error = {0};
    iso_status status = iso_model_load(&model, f.directory, NULL, NULL, &error);
    files_remove(&f);
    ok(status, &error);
    return model;
}

iso_model *make_model(const char *more) { return make_model_with(0, more); }

const uint32_t sources[] = {7, 9, 2, 30, 31, 32, 33, 2, 5, 2};
const size_t lengths[] = {3, 5, 2};

/* ------------------------------------------------------------------------------ forced tokens */

static void test_forced_bos(void **state) {
    iso_model *models[] = {make_model(""), make_model(",\"forced_bos_token_id\":11")};
    iso_error error = {0};
    for (size_t m = 0; m < 2; m++)
        for (size_t beams = 1; beams <= 3; beams += 2)
            for (uint32_t id = 0; id <= V; id += V - 1) { /* the last round: the default */
                iso_generate_options o = {.size = sizeof o,
                                          .beams = beams,
                                          .max_length = 6,
                                          .has_forced_bos = id < V - 1 || m == 0,
                                          .forced_bos = id ? id : 4};
                const uint32_t wanted = o.has_forced_bos ? o.forced_bos : 11;
                iso_generation *g;
                ok(iso_generate(&g, models[m], sources, lengths, 3, &o, NULL, &error), &error);
                for (size_t i = 0; i < 3; i++) {
                    assert_int_equal(g->best[i].ids[0], wanted);
                    assert_true(g->best[i].log_probs[0] == 0 || beams == 1);
                }
                iso_generation_free(g);
            }
    iso_generate_options o = {.size = sizeof o, .has_forced_bos = 1, .forced_bos = V};
    iso_generation *g = NULL;
    assert_int_equal(iso_generate(&g, models[0], sources, lengths, 3, &o, NULL, &error),
                     ISOBIT_E_RANGE);
    assert_string_equal(error.message, "forced_bos is 61; the vocabulary has 61 tokens");
    assert_null(g);
    /* Without the flag it is not looked at. */
    o.has_forced_bos = 0;
    ok(iso_generate(&g, models[0], sources, lengths, 3, &o, NULL, &error), &error);
    iso_generation_free(g);
    for (size_t m = 0; m < 2; m++)
        iso_model_free(models[m]);
    (void)state;
}

/* ----------------------------------------------------------------------- defaults and options */

static void test_defaults(void **state) {
    static const struct {
        const char *more;
        int sampling;
        float temperature;
        size_t top_k;
        float top_p, min_p;
    } good[] = {
        {"", 0, 1, 50, 1, 0},
        {",\"top_k\":null,\"temperature\":null,\"do_sample\":null", 0, 1, 0, 1, 0},
        {",\"do_sample\":true,\"temperature\":0.5,\"top_k\":0,\"top_p\":0.25,\"min_p\":0.125", 1,
         0.5f, 0, 0.25f, 0.125f},
        {",\"do_sample\":true,\"temperature\":2,\"top_k\":7.0,\"top_p\":1,\"min_p\":1", 1, 2, 7, 1,
         1},
        /* Where nobody samples, nobody minds. */
        {",\"temperature\":0.0,\"top_p\":0,\"min_p\":-1", 0, 0, 50, 0, -1},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        iso_model *model = make_model(good[i].more);
        const iso_model_info *info = iso_model_get_info(model);
        assert_int_equal(info->default_sampling, good[i].sampling);
        assert_true(info->default_temperature == good[i].temperature);
        assert_int_equal(info->default_top_k, good[i].top_k);
        assert_true(info->default_top_p == good[i].top_p);
        assert_true(info->default_min_p == good[i].min_p);
        iso_model_free(model);
    }
    static const struct {
        const char *more, *message;
    } bad[] = {
        {"\"do_sample\":1", "\"do_sample\" is 1; true or false is expected"},
        {"\"do_sample\":true,\"temperature\":0", "\"temperature\" is 0; a number above 0 is"},
        {"\"do_sample\":true,\"temperature\":1e-60", "a number above 0 is expected"},
        {"\"do_sample\":true,\"temperature\":-1", "\"temperature\" is -1; a number above 0"},
        {"\"temperature\":\"hot\"", "a number in range is expected"},
        {"\"top_k\":-1", "\"top_k\" is -1; a whole number from 0 to"},
        {"\"top_k\":2.5", "\"top_k\" is a number with a fraction"},
        {"\"top_k\":1e300", "a whole number from 0 to"},
        {"\"do_sample\":true,\"top_p\":0", "\"top_p\" is 0; a number above 0 and at most 1 is"},
        {"\"do_sample\":true,\"top_p\":1.5", "a number above 0 and at most 1 is expected"},
        {"\"top_p\":true", "\"top_p\" is true; a number above 0 and at most 1 is"},
        {"\"top_p\":1e300", "a number above 0 and at most 1 is expected"},
        {"\"do_sample\":true,\"min_p\":-0.1", "a number from 0 to 1 is expected"},
        {"\"do_sample\":true,\"min_p\":1.01", "a number from 0 to 1 is expected"},
        {"\"min_p\":[]", "a number from 0 to 1 is expected"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        files f;
        char text[300];
        iso_model *model = NULL;
        iso_error error = {0};
        files_make(&f);
        files_config(&f, "marian", V, 16, 2, 24,
                     ",\"eos_token_id\":2,\"decoder_start_token_id\":1,\"pad_token_id\":0");
        (void)snprintf(text, sizeof text, "{\"eos_token_id\":2,%s}", bad[i].more);
        files_text(&f, "generation_config.json", text);
        builder b = {.state = 5};
        builder_model(&b, V, 16, 24, 1);
        builder_write(&b, &f);
        assert_int_equal(iso_model_load(&model, f.directory, NULL, NULL, &error), ISOBIT_E_CONFIG);
        if (strncmp(error.message, "generation_config.json: ", 24) != 0 ||
            !strstr(error.message, bad[i].message))
            fail_msg("%s: %s", bad[i].more, error.message);
        files_remove(&f);
    }
    (void)state;
}

static void test_options(void **state) {
    iso_model *model = make_model("");
    iso_error error = {0};
    iso_generation *g = NULL;
    static const uint32_t stop[] = {2, 5, 6, 0}, beyond[] = {1, V}, behind[] = {1, 5, 3, 1, 2};
    const struct {
        iso_generate_options o;
        iso_status status;
        const char *message;
    } bad[] = {
        {{.temperature = -1}, ISOBIT_E_OPTION, "temperature is -1; a number above 0 is expected"},
        {{.temperature = NAN}, ISOBIT_E_OPTION, "temperature is nan; a number above 0"},
        {{.temperature = INFINITY}, ISOBIT_E_OPTION, "temperature is inf; a number above 0"},
        {{.top_p = -0.5f}, ISOBIT_E_OPTION, "top_p is -0.5; a number above 0 and at most 1"},
        {{.top_p = 1.5f}, ISOBIT_E_OPTION, "top_p is 1.5; a number above 0 and at most 1"},
        {{.top_p = NAN}, ISOBIT_E_OPTION, "top_p is nan; a number above 0 and at most 1"},
        {{.has_min_p = 1, .min_p = -0.25f}, ISOBIT_E_OPTION, "min_p is -0.25; a number from 0"},
        {{.has_min_p = 1, .min_p = 1.25f}, ISOBIT_E_OPTION, "min_p is 1.25; a number from 0 to 1"},
        {{.has_min_p = 1, .min_p = NAN}, ISOBIT_E_OPTION, "min_p is nan; a number from 0 to 1"},
        {{.beams = 2}, ISOBIT_E_OPTION, "sampling with 2 beams; "},
        {{.hypotheses = 1025}, ISOBIT_E_LIMIT, "1025 samples; at most 1024 are possible"},
        {{.sampling = (iso_sampling)3}, ISOBIT_E_OPTION, "sampling is 3, which has no meaning"},
        {{.stop_count = 1}, ISOBIT_E_NULL, "stop_ids is NULL, stop_count is 1"},
        {{.stop_ids = stop, .stop_count = 4}, ISOBIT_E_DIM, "stop_ids[3] is the length 0"},
        {{.stop_ids = stop, .stop_count = 2},
         ISOBIT_E_DIM,
         "stop_ids[0] is the length 2, and 1 numbers follow"},
        {{.stop_ids = behind, .stop_count = 5},
         ISOBIT_E_DIM,
         "stop_ids[2] is the length 3, and 2 numbers follow"},
        {{.stop_ids = beyond, .stop_count = 2},
         ISOBIT_E_RANGE,
         "stop_ids[1] is 61; the vocabulary has 61 tokens"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        iso_generate_options o = bad[i].o;
        o.size = sizeof o;
        o.sampling = o.sampling ? o.sampling : ISOBIT_SAMPLING_ON;
        assert_int_equal(iso_generate(&g, model, sources, lengths, 3, &o, NULL, &error),
                         bad[i].status);
        if (!strstr(error.message, bad[i].message))
            fail_msg("case %zu: %s", i, error.message);
        assert_null(g);
    }
    iso_model_free(model);

    /* A model that samples with beams, which is a method that we lack, until the caller decides. */
    model = make_model(",\"do_sample\":true,\"num_beams\":4,\"top_k\":1");
    iso_generate_options o = {.size = sizeof o, .max_length = 8};
    assert_int_equal(iso_generate(&g, model, sources, lengths, 3, NULL, NULL, &error),
                     ISOBIT_E_UNSUPPORTED);
    assert_non_null(strstr(error.message, "sampling with 4 beams, as the model's files ask for"));
    iso_generation *greedy, *beams;
    o.beams = 4;
    o.sampling = ISOBIT_SAMPLING_OFF;
    ok(iso_generate(&beams, model, sources, lengths, 3, &o, NULL, &error), &error);
    o.beams = 0;
    ok(iso_generate(&g, model, sources, lengths, 3, &o, NULL, &error), &error);
    for (size_t i = 0; i < 3; i++)
        same_hypothesis(&g->best[i], &beams->best[i]);
    iso_generation_free(g);
    o.beams = 1;
    ok(iso_generate(&greedy, model, sources, lengths, 3, &o, NULL, &error), &error);
    for (size_t i = 0; i < 2; i++) { /* its top_k of 1, by either way of asking for sampling */
        o.beams = i;
        o.sampling = i ? ISOBIT_SAMPLING_DEFAULT : ISOBIT_SAMPLING_ON;
        ok(iso_generate(&g, model, sources, lengths, 3, &o, NULL, &error), &error);
        for (size_t j = 0; j < 3; j++)
            same_hypothesis(&g->best[j], &greedy->best[j]);
        iso_generation_free(g);
    }
    iso_generation_free(greedy);
    iso_generation_free(beams);
    iso_model_free(model);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forced_bos),
        cmocka_unit_test(test_philox),
        cmocka_unit_test(test_warp),
        cmocka_unit_test(test_transformers),
        cmocka_unit_test(test_draw),
        cmocka_unit_test(test_literal_sampling),
        cmocka_unit_test(test_chance),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_greedy_is_the_limit),
        cmocka_unit_test(test_nothing_is_finite),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_is_last),
        cmocka_unit_test(test_on_token),
    };
    return cmocka_run_group_tests_name("sample", tests, NULL, NULL);
}
