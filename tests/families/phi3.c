/* SPDX-License-Identifier: MIT
 *
 * Phi-3, Gemma and OPT; more than the original positions.
 */
#include "test_families.h"

void test_phi3_gemma_opt_config(void **state) {
    static const changed_config cases[] = {
        {"phi3-bf16", "partial_rotary_factor", "1.5", ISOBIT_E_CONFIG, "a number of at most 1"},
        {"phi3-bf16", "partial_rotary_factor", "0", ISOBIT_E_CONFIG, "a number above 0"},
        {"phi3-bf16", "partial_rotary_factor", "0.4", ISOBIT_E_CONFIG,
         "\"partial_rotary_factor\" lets 3 elements of a head turn"},
        {"phi3-bf16", "partial_rotary_factor", "0.1", ISOBIT_E_CONFIG, "lets 0 elements"},
        {"phi3-bf16", "partial_rotary_factor", "\"all\"", ISOBIT_E_CONFIG, "partial_rotary_factor"},
        {"phi3-bf16", "rope_scaling", "{\"partial_rotary_factor\":2}", ISOBIT_E_CONFIG,
         "\"partial_rotary_factor\" is 2"},
        {"phi3-longrope", "partial_rotary_factor", "0.5", ISOBIT_E_CONFIG,
         "\"short_factor\" has 4 numbers; 2 are expected"},
        {"phi3-bf16", "num_key_value_heads", "4", ISOBIT_E_SHAPE, "qkv_proj.weight"},
        {"phi3-bf16", "intermediate_size", "96", ISOBIT_E_SHAPE, "gate_up_proj.weight"},
        {"phi3-bf16", "sliding_window", "0", ISOBIT_E_CONFIG, "sliding_window"},
        {"gemma-bf16", "use_bidirectional_attention", "true", ISOBIT_E_UNSUPPORTED,
         "\"use_bidirectional_attention\" is true; only false"},
        {"gemma-bf16", "use_bidirectional_attention", "null", ISOBIT_OK, ""},
        {"gemma-bf16", "head_dim", NULL, ISOBIT_E_SHAPE, "q_proj.weight"}, /* 256 */
        {"gemma-bf16", "attention_bias", "true", ISOBIT_E_MISSING, "q_proj.bias"},
        {"gemma-bf16", "model_type", "\"gemma3n\"", ISOBIT_E_UNSUPPORTED,
         "model_type \"gemma3n\" is not one of"},
        {"gemma-bf16", "model_type", "\"gemma2\"", ISOBIT_E_MISSING,
         "post_feedforward_layernorm.weight"},
        {"opt-f16", "word_embed_proj_dim", "12", ISOBIT_E_UNSUPPORTED,
         "\"word_embed_proj_dim\" is 12; only the value of \"hidden_size\", 24"},
        {"opt-f16", "word_embed_proj_dim", "0", ISOBIT_E_CONFIG, "word_embed_proj_dim"},
        {"opt-f16", "word_embed_proj_dim", "null", ISOBIT_OK, ""},
        {"opt-f16", "do_layer_norm_before", "false", ISOBIT_E_UNSUPPORTED,
         "\"do_layer_norm_before\" is false; only true"},
        {"opt-f16", "_remove_final_layer_norm", "true", ISOBIT_E_UNSUPPORTED,
         "_remove_final_layer_norm"},
        {"opt-f16", "layer_norm_elementwise_affine", "false", ISOBIT_E_UNSUPPORTED,
         "layer_norm_elementwise_affine"},
        {"opt-f16", "enable_bias", "false", ISOBIT_OK, ""},
        {"opt-f16", "max_position_embeddings", "41", ISOBIT_E_SHAPE, "embed_positions.weight"},
    };
    check_configs(cases, sizeof cases / sizeof *cases);
    (void)state;
}

/* Other words for the same model. */
void test_phi3_gemma_words(void **state) {
    static const struct {
        const char *name, *changes;
        int same;
    } cases[] = {
        {"gemma-bf16", "{\"hidden_act\":\"gelu\"}", 1}, /* as the first files have it */
        {"gemma-bf16", "{\"hidden_act\":\"silu\"}", 0},
        {"phi3-longrope",
         "{\"rope_scaling\":{\"type\":\"yarn\",\"short_factor\":[1.0,1.25,2.0,3.5],"
         "\"long_factor\":[1.5,3.0,8.0,20.0]}}",
         1},
        {"phi3-longrope", "{\"rope_scaling\":null}", 0},
        {"phi3-bf16",
         "{\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":100,"
         "\"partial_rotary_factor\":0.75},\"partial_rotary_factor\":null}",
         1},
        {"phi3-bf16", "{\"partial_rotary_factor\":null}", 0}, /* all */
        {"opt-f16", "{\"enable_bias\":false}", 0},
    };
    static float want[9 * MOST_V], y[9 * MOST_V];
    const uint32_t ids[9] = {3, 14, 15, 9, 26, 5, 35, 8, 9};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        iso_error e = {0};
        iso_model *model = load(cases[i].name), *other = load_as(cases[i].name, cases[i].changes);
        const size_t bytes = 9 * iso_model_get_info(model)->target_vocabulary * sizeof *y;
        ok(iso_token_logits_f32(want, model, ids, 9, NULL, &e), &e);
        ok(iso_token_logits_f32(y, other, ids, 9, NULL, &e), &e);
        if ((memcmp(want, y, bytes) == 0) != cases[i].same)
            fail_msg("%s %s", cases[i].name, cases[i].changes);
        iso_model_free(model);
        iso_model_free(other);
    }
    (void)state;
}

/* ------------------------------------------------ more than the original positions, asked for */

enum { LONGER = 55, LONGER_V = 50 };

/* The rows of logits that were computed of the whole text by transformers. */
static void check_longer(const json_t *c, const float *logits, const char *name) {
    const json_t *rows = json_object_get(c, "rows");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const size_t row = (size_t)json_integer_value(json_array_get(rows, i));
        assert_true(row < LONGER);
        check_close(json_array_get(json_object_get(c, "logits"), i), logits + row * LONGER_V,
                    LONGER_V, name, "logits of a longer text");
    }
    assert_int_equal(json_array_size(rows), 5);
}

void test_longer_texts(void **state) {
    static const struct {
        const char *name, *changes;
    } models[] = {{"phi3-longrope", "{}"},
                  {"llama", "{\"rope_scaling\":{\"rope_type\":\"dynamic\",\"factor\":3}}"}};
    static float y[LONGER * LONGER_V], z[LONGER * LONGER_V];
    iso_pool *pool;
    assert_int_equal(iso_pool_create(&pool, 3), ISOBIT_OK);
    for (size_t m = 0; m < 2; m++) {
        const char *const name = models[m].name;
        /* Dynamic rates are those of a text of just so many positions; a text may be shorter. */
        const size_t positions = m == 0 ? 80 : LONGER;
        char path[600];
        iso_model *model = NULL;
        iso_error e = {0};
        uint32_t ids[LONGER];
        (void)snprintf(path, sizeof path, "%s/models/%s/longer.json", ISOBIT_TEST_DATA, name);
        json_t *c = json_load_file(path, 0, NULL);
        const json_t *source = json_object_get(c, "source");
        assert_int_equal(json_array_size(source), LONGER);
        for (size_t i = 0; i < LONGER; i++)
            ids[i] = (uint32_t)json_integer_value(json_array_get(source, i));
        ok(try_longer(&model, name, models[m].changes, positions, &e), &e);
        assert_int_equal(iso_model_get_info(model)->max_positions, positions);
        assert_int_equal(iso_model_get_info(model)->target_vocabulary, LONGER_V);
        ok(iso_token_logits_f32(y, model, ids, LONGER, NULL, &e), &e);
        check_longer(c, y, name);
        /* Step by step; each instruction set; threads; a text alone that is the beginning. */
        ok(iso_logits_f32(z, model, NULL, 0, ids, LONGER, 1, NULL, &e), &e);
        assert_memory_equal(y, z, sizeof y);
        for (size_t i = 0; i <= iso_isa_count(); i++) {
            iso_context context = {.size = sizeof context};
            if (i == iso_isa_count())
                context.executor = iso_pool_executor(pool);
            else if (iso_isa_missing(context.isa = iso_isa_get(i)))
                continue;
            ok(iso_token_logits_f32(z, model, ids, LONGER, &context, &e), &e);
            assert_memory_equal(y, z, sizeof y);
        }
        ok(iso_token_logits_f32(z, model, ids, 9, NULL, &e), &e);
        assert_memory_equal(y, z, 9 * LONGER_V * sizeof *y);
        for (size_t beams = 1; beams <= 3 && m == 0; beams += 2) {
            const json_t *want = json_object_get(c, beams == 1 ? "greedy" : "beams");
            const iso_generate_options options = {
                .size = sizeof options, .beams = beams, .max_new_tokens = 8};
            const size_t length = LONGER;
            iso_generation *g = NULL;
            ok(iso_generate(&g, model, ids, &length, 1, &options, NULL, &e), &e);
            const iso_hypothesis *h = &g->best[0];
            assert_int_equal(h->length, json_array_size(want));
            for (size_t i = 0; i < h->length; i++)
                assert_int_equal(h->ids[i], json_integer_value(json_array_get(want, i)));
            iso_generation_free(g);
        }
        iso_model_free(model);
        json_decref(c);
    }
    iso_pool_destroy(pool);
    (void)state;
}

void test_longer_arguments(void **state) {
    static const struct {
        const char *name, *changes;
        size_t positions;
        iso_status status;
        const char *part;
        size_t found;
    } cases[] = {
        {"phi3-longrope", "{}", 40, ISOBIT_OK, "", 40},
        {"phi3-longrope", "{}", 41, ISOBIT_OK, "", 41},
        {"phi3-longrope", "{}", 81, ISOBIT_E_LIMIT, "positions is 81; the model has at most 80", 0},
        {"phi3-longrope", "{}", SIZE_MAX, ISOBIT_E_LIMIT, "at most 80", 0},
        {"llama", "{}", 7, ISOBIT_OK, "", 40},
        {"llama", "{}", 41, ISOBIT_E_LIMIT, "positions is 41; the model has at most 40", 0},
        {"llama", "{\"rope_scaling\":{\"rope_type\":\"dynamic\",\"factor\":2}}", 1048577,
         ISOBIT_E_LIMIT, "at most 1048576", 0},
        {"mistral-window", "{\"rope_scaling\":{\"rope_type\":\"dynamic\",\"factor\":2}}", 41,
         ISOBIT_E_UNSUPPORTED, "with sliding windows and dynamic", 0},
        {"bert", "{}", 41, ISOBIT_E_LIMIT, "at most 40", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        iso_model *model = NULL;
        iso_error e = {0};
        const iso_status status =
            try_longer(&model, cases[i].name, cases[i].changes, cases[i].positions, &e);
        expect(cases[i].status, cases[i].part, status, &e);
        if (!status)
            assert_int_equal(iso_model_get_info(model)->max_positions, cases[i].found);
        iso_model_free(model);
    }
    (void)state;
}
