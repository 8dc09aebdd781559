/* SPDX-License-Identifier: MIT
 *
 * Gemma 2 and 3: layers with a window and a base of their own, soft caps, the part of a
 * configuration that is meant, and the names of tensors around it.
 */
#include "test_families.h"

void test_gemma3_config(void **state) {
    static const changed_config cases[] = {
        {"gemma3-bf16", "layer_types", "[\"full_attention\"]", ISOBIT_E_CONFIG,
         "a list with the type of each layer"},
        {"gemma3-bf16", "layer_types", "\"full_attention\"", ISOBIT_E_CONFIG, "a list with"},
        {"gemma3-bf16", "layer_types",
         "[\"full_attention\",\"full_attention\",\"chunked_attention\",\"full_attention\"]",
         ISOBIT_E_UNSUPPORTED, "\"layer_types\" has \"chunked_attention\""},
        {"gemma3-bf16", "sliding_window", "null", ISOBIT_E_CONFIG,
         "\"sliding_window\" is null; a number, since some layers have a window, is expected"},
        {"gemma3-bf16", "sliding_window", "0", ISOBIT_E_CONFIG, "\"sliding_window\" is 0"},
        {"gemma3-bf16", "sliding_window_pattern", "0", ISOBIT_E_CONFIG, "from 1"},
        {"gemma3-bf16", "sliding_window_pattern", "2.5", ISOBIT_E_CONFIG, "with a fraction"},
        {"gemma3-bf16", "rope_parameters", "{\"rope_type\":\"default\",\"rope_theta\":10}",
         ISOBIT_E_CONFIG, "an object with one for each type of layer"},
        {"gemma3-bf16", "rope_parameters", "{\"full_attention\":{\"rope_type\":\"default\"}}",
         ISOBIT_OK, ""},
        {"gemma3-bf16", "rope_parameters",
         "{\"full_attention\":{\"rope_type\":\"default\"},\"sliding_attention\":3}",
         ISOBIT_E_CONFIG, "an object with one for each type of layer"},
        {"gemma3-bf16", "rope_parameters",
         "{\"full_attention\":{\"rope_type\":\"default\"},"
         "\"sliding_attention\":{\"rope_type\":\"linear\",\"factor\":2}}",
         ISOBIT_E_UNSUPPORTED, "of sliding_attention has the type \"linear\""},
        {"gemma3-bf16", "rope_parameters",
         "{\"full_attention\":{\"rope_type\":\"default\"},\"sliding_attention\":{\"rope_theta\":1}"
         "}",
         ISOBIT_E_CONFIG, "\"rope_theta\" is 1"},
        {"gemma3-bf16", "rope_local_base_freq", "0.5", ISOBIT_E_CONFIG, "rope_local_base_freq"},
        {"gemma3-bf16", "query_pre_attn_scalar", "0", ISOBIT_E_CONFIG, "a number above 0"},
        {"gemma3-bf16", "query_pre_attn_scalar", "\"256\"", ISOBIT_E_CONFIG, "pre_attn_scalar"},
        {"gemma3-bf16", "attn_logit_softcapping", "50", ISOBIT_E_UNSUPPORTED, "only null"},
        {"gemma3-bf16", "final_logit_softcapping", "30", ISOBIT_OK, ""},
        {"gemma2-bf16", "final_logit_softcapping", "0", ISOBIT_E_CONFIG, "a number above 0"},
        {"gemma2-bf16", "attn_logit_softcapping", "-50", ISOBIT_E_CONFIG, "attn_logit_soft"},
        {"gemma2-bf16", "attn_logit_softcapping", "\"50\"", ISOBIT_E_CONFIG, "attn_logit_soft"},
        {"gemma2-bf16", "layer_types", "[]", ISOBIT_E_CONFIG, "a list with the type of each layer"},
        {"gemma2-bf16", "sliding_window", "null", ISOBIT_E_CONFIG, "since some layers have"},
        {"gemma2-bf16", "use_bidirectional_attention", "true", ISOBIT_E_UNSUPPORTED, "only false"},
        {"gemma2-bf16", "model_type", "\"gemma3_text\"", ISOBIT_E_UNSUPPORTED, "softcapping"},
        {"gemma3-bf16", "use_bidirectional_attention", "true", ISOBIT_E_UNSUPPORTED, "only false"},
        {"gemma3-bf16", "hidden_activation", "\"nonsense\"", ISOBIT_E_UNSUPPORTED, "nonsense"},
        {"gemma3-bf16", "head_dim", "13", ISOBIT_E_SHAPE, "q_proj.weight"},
        {"gemma3-bf16", "tie_word_embeddings", "false", ISOBIT_OK, ""}, /* there is no other head */
        {"gemma3-part", "text_config", "null", ISOBIT_E_CONFIG, "\"text_config\" is null"},
        {"gemma3-part", "text_config", "[]", ISOBIT_E_CONFIG, "an object is expected"},
        {"gemma3-part", "text_config", "{\"model_type\":\"gemma2\"}", ISOBIT_E_UNSUPPORTED,
         "\"model_type\" of \"text_config\" is \"gemma2\"; only gemma3_text"},
        {"gemma3-part", "text_config", "{}", ISOBIT_E_SHAPE, "embed_tokens.weight"},
        {"gemma3-part", "eos_token_id", "50", ISOBIT_OK, ""}, /* generation_config.json counts */
        {"gemma3-part", "vision_config", "null", ISOBIT_OK, ""},
        {"gemma3-part", "model_type", "\"gemma3_text\"", ISOBIT_E_MISSING, "\"model.embed_tokens"},
    };
    check_configs(cases, sizeof cases / sizeof *cases);
    (void)state;
}

enum { LENGTH = 30, V = 50 };

static void logits_as(float *y, const char *name, const char *changes) {
    uint32_t ids[LENGTH];
    iso_error error = {0};
    iso_model *model = load_as(name, changes);
    for (uint32_t i = 0; i < LENGTH; i++)
        ids[i] = (i * i * 7 + i / 3) % V;
    ok(iso_token_logits_f32(y, model, ids, LENGTH, NULL, &error), &error);
    iso_model_free(model);
}

#define OLD_ROPE                                                                                   \
    "\"rope_parameters\":null,\"rope_theta\":1000.0,\"rope_scaling\":{\"rope_type\":\"linear\","   \
    "\"factor\":4.0}"

/* The same in the words of the folders on the hub, and what makes a difference. */
void test_gemma3_words(void **state) {
    static const struct {
        const char *changes;
        int same;
    } cases[] = {
        {"{\"layer_types\":null,\"sliding_window_pattern\":3," OLD_ROPE
         ",\"rope_local_base_freq\":50}",
         1},
        {"{\"layer_types\":null,\"sliding_window_pattern\":2}", 0},
        {"{\"layer_types\":null,\"sliding_window_pattern\":null}", 0}, /* 6 */
        {"{\"layer_types\":[\"sliding_attention\",\"sliding_attention\",\"full_attention\","
         "\"sliding_attention\"],\"sliding_window_pattern\":2}",
         1},
        {"{" OLD_ROPE ",\"rope_local_base_freq\":60}", 0},
        {"{" OLD_ROPE "}", 0}, /* 10000 */
        {"{\"query_pre_attn_scalar\":11}", 0},
        {"{\"query_pre_attn_scalar\":null}", 0}, /* 256 */
        {"{\"sliding_window\":6}", 0},
        {"{\"hidden_activation\":\"silu\"}", 0},
        {"{\"hidden_activation\":null,\"head_dim\":12.0}", 1},
        {"{\"hidden_act\":\"silu\"}", 1}, /* which nobody reads */
    };
    static float want[LENGTH * V], y[LENGTH * V];
    logits_as(want, "gemma3-bf16", "{}");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        logits_as(y, "gemma3-bf16", cases[i].changes);
        if ((memcmp((const char *)want, (const char *)y, sizeof y) == 0) != cases[i].same)
            fail_msg("%s: logits are %s", cases[i].changes, cases[i].same ? "others" : "the same");
    }
    (void)state;
}

/* Null means that there is no cap; where a key is absent it is 50, or 30. */
void test_gemma2_words(void **state) {
    static const struct {
        const char *a, *b;
        int same;
    } cases[] = {
        {"{\"layer_types\":null}", "{}", 1},
        {"{\"sliding_window_pattern\":3}", "{}", 1}, /* which nobody reads */
        {"{\"attn_logit_softcapping\":null}", "{}", 0},
        {"{\"attn_logit_softcapping\":null}", "{\"attn_logit_softcapping\":50}", 0},
        {"{\"final_logit_softcapping\":null}", "{}", 0},
        {"{\"query_pre_attn_scalar\":1}", "{\"query_pre_attn_scalar\":12}", 0}, /* head_dim */
        {"{\"final_logit_softcapping\":30}", "{}", 0},
        {"{\"layer_types\":[\"full_attention\",\"full_attention\",\"full_attention\","
         "\"full_attention\"]}",
         "{}", 0},
    };
    static float a[LENGTH * V], b[LENGTH * V];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        logits_as(a, "gemma2-bf16", cases[i].a);
        logits_as(b, "gemma2-bf16", cases[i].b);
        if ((memcmp((const char *)a, (const char *)b, sizeof a) == 0) != cases[i].same)
            fail_msg("%s: logits are %s", cases[i].a, cases[i].same ? "others" : "the same");
    }
    /* No logit is beyond the cap. */
    logits_as(a, "gemma2-bf16", "{\"final_logit_softcapping\":0.25}");
    for (size_t i = 0; i < LENGTH * V; i++)
        assert_true(fabsf(a[i]) <= 0.25f);
    (void)state;
}

/* A window that is no shorter than all positions hides nothing, but its layers have their base. */
void test_gemma3_wide_window(void **state) {
    static float a[LENGTH * V], b[LENGTH * V];
    logits_as(a, "gemma3-bf16", "{\"sliding_window\":30}");
    logits_as(b, "gemma3-bf16", "{\"sliding_window\":4096}");
    assert_memory_equal(a, b, sizeof a);
    logits_as(b, "gemma3-bf16",
              "{\"layer_types\":[\"full_attention\",\"full_attention\",\"full_attention\","
              "\"full_attention\"]}");
    assert_memory_not_equal(a, b, sizeof a);
    (void)state;
}

/* The decoder of a model with images may lie behind another prefix, or none. */
void test_gemma3_names(void **state) {
    static const char *const prefixes[] = {"language_model.model.", "model.language_model.",
                                           "model.", ""};
    static const char old[] = "language_model.model.";
    blob weights = read_file("gemma3-part", "model.safetensors");
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        json_t *header = read_header(&weights), *renamed = json_object(), *value;
        const char *name;
        json_object_foreach(header, name, value) {
            char text[200];
            const int part = strncmp(name, old, sizeof old - 1) == 0;
            (void)snprintf(text, sizeof text, "%s%s", part ? prefixes[i] : "",
                           name + (part ? sizeof old - 1 : 0));
            assert_int_equal(json_object_set(renamed, text, value), 0);
        }
        blob b = with_header(&weights, renamed);
        iso_error error = {0};
        ok(load_with("gemma3-part", &b, &error), &error);
        blob_free(&b);
        json_decref(header);
        json_decref(renamed);
    }
    blob_free(&weights);
    (void)state;
}
