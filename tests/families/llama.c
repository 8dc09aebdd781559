/* SPDX-License-Identifier: MIT
 *
 * Llama and its kind.
 */
#include "test_families.h"

#define YARN(numbers) "{\"rope_type\":\"yarn\"" numbers "}"
#define LONG(numbers) "{\"rope_type\":\"longrope\",\"long_factor\":[1,2,3,4]" numbers "}"
#define LLAMA3(numbers) "{\"rope_type\":\"llama3\",\"factor\":8" numbers "}"

void test_llama_config(void **state) {
    static const changed_config cases[] = {
        {"llama", "num_key_value_heads", "3", ISOBIT_E_CONFIG,
         "\"num_key_value_heads\" 3 does not divide \"num_attention_heads\" 4"},
        {"llama", "num_key_value_heads", "0", ISOBIT_E_CONFIG, "\"num_key_value_heads\" is 0"},
        {"llama", "num_key_value_heads", "1", ISOBIT_E_SHAPE, "k_proj.weight"},
        {"llama", "num_key_value_heads", NULL, ISOBIT_E_SHAPE, "k_proj.weight"},
        {"llama", "head_dim", "7", ISOBIT_E_SHAPE, "q_proj.weight"},
        {"llama3-bf16", "head_dim", "null", ISOBIT_E_CONFIG, "not a multiple"},
        {"llama", "attention_bias", "1", ISOBIT_E_CONFIG, "attention_bias"},
        {"llama", "mlp_bias", "false", ISOBIT_OK, ""},
        {"llama", "mlp_bias", "1", ISOBIT_E_CONFIG, "mlp_bias"},
        {"qwen2-f16", "attention_bias", "false", ISOBIT_OK, ""}, /* it has no such key */
        {"qwen2-f16", "use_sliding_window", "1", ISOBIT_E_CONFIG, "use_sliding_window"},
        {"qwen2-window", "sliding_window", "-1", ISOBIT_E_CONFIG, "sliding_window"},
        {"qwen2-window", "max_window_layers", "0.5", ISOBIT_E_CONFIG, "max_window_layers"},
        {"qwen2-window", "max_window_layers", "99", ISOBIT_OK, ""},
        {"qwen2-window", "layer_types", "[\"full_attention\"]", ISOBIT_E_CONFIG,
         "\"layer_types\" is a list; a list with the type of each layer"},
        {"qwen2-window", "layer_types", "7", ISOBIT_E_CONFIG, "layer_types"},
        {"qwen2-window", "layer_types",
         "[\"full_attention\",\"chunked_attention\",\"full_attention\"]", ISOBIT_E_UNSUPPORTED,
         "\"layer_types\" has \"chunked_attention\""},
        {"qwen2-window", "layer_types", "[\"full_attention\",null,\"full_attention\"]",
         ISOBIT_E_UNSUPPORTED, "\"layer_types\" has null"},
        {"llama", "rope_theta", "0", ISOBIT_E_CONFIG, "rope_theta"},
        {"llama", "rope_theta", "1", ISOBIT_E_CONFIG, "rope_theta"},
        {"llama", "rope_scaling", "null", ISOBIT_OK, ""},
        {"llama", "rope_scaling", "2", ISOBIT_E_CONFIG, "rope_scaling"},
        {"llama", "rope_scaling", "{}", ISOBIT_E_UNSUPPORTED, "the type \"\""},
        {"llama", "rope_scaling", "{\"rope_type\":\"default\",\"factor\":\"x\"}", ISOBIT_OK, ""},
        {"llama", "rope_scaling", "{\"rope_type\":\"default\",\"rope_theta\":1.5}", ISOBIT_OK, ""},
        {"llama", "rope_scaling", "{\"rope_type\":\"default\",\"rope_theta\":0.5}", ISOBIT_E_CONFIG,
         "rope_theta"},
        {"llama", "rope_theta", "1.5", ISOBIT_OK, ""},
        {"llama", "rope_scaling", "{\"rope_type\":\"ntk\",\"factor\":4}", ISOBIT_E_UNSUPPORTED,
         "\"ntk\"; default, linear, dynamic, llama3, yarn and longrope"},
        {"llama", "rope_scaling", "{\"type\":\"dynamic\",\"factor\":4}", ISOBIT_OK, ""},
        {"llama", "rope_scaling", "{\"type\":\"dynamic\"}", ISOBIT_E_CONFIG,
         "type dynamic lacks numbers"},
        {"llama", "rope_scaling", YARN(",\"factor\":4"), ISOBIT_OK, ""},
        {"llama", "rope_scaling", YARN(",\"factor\":0.5"), ISOBIT_E_CONFIG, "\"factor\""},
        {"llama", "rope_scaling", YARN(""), ISOBIT_E_CONFIG, "type yarn lacks numbers"},
        {"llama", "rope_scaling", YARN(",\"original_max_position_embeddings\":20"), ISOBIT_OK, ""},
        {"llama", "rope_scaling", YARN(",\"factor\":4,\"original_max_position_embeddings\":1.5"),
         ISOBIT_E_CONFIG, "original_max_position_embeddings"},
        {"llama", "rope_scaling", YARN(",\"factor\":4,\"original_max_position_embeddings\":1"),
         ISOBIT_OK, ""},
        {"llama-yarn", "original_max_position_embeddings", "1", ISOBIT_OK, ""},
        {"llama-yarn", "original_max_position_embeddings", "0", ISOBIT_E_CONFIG,
         "original_max_position_embeddings"},
        {"llama", "rope_scaling", YARN(",\"factor\":4,\"beta_fast\":2,\"beta_slow\":3"),
         ISOBIT_E_CONFIG, "contradict"},
        {"llama", "rope_scaling", YARN(",\"factor\":4,\"beta_fast\":0,\"beta_slow\":0"), ISOBIT_OK,
         ""},
        {"llama", "rope_scaling", YARN(",\"factor\":4,\"beta_fast\":-1"), ISOBIT_E_CONFIG,
         "\"beta_fast\" is -1"},
        {"llama", "rope_scaling", YARN(",\"factor\":4,\"beta_slow\":-1"), ISOBIT_E_CONFIG,
         "beta_slow"},
        {"llama", "rope_scaling", YARN(",\"factor\":4,\"mscale\":\"1\""), ISOBIT_E_CONFIG,
         "\"mscale\""},
        {"llama", "rope_scaling", YARN(",\"factor\":4,\"mscale\":0,\"mscale_all_dim\":0"),
         ISOBIT_OK, ""},
        {"llama", "rope_scaling", YARN(",\"factor\":4,\"mscale_all_dim\":-1"), ISOBIT_E_CONFIG,
         "mscale_all_dim"},
        {"llama", "rope_scaling", YARN(",\"factor\":4,\"truncate\":1"), ISOBIT_E_CONFIG,
         "truncate"},
        {"llama", "rope_scaling", YARN(",\"factor\":4,\"attention_factor\":0"), ISOBIT_E_CONFIG,
         "attention_factor"},
        {"llama", "rope_scaling", LONG(""), ISOBIT_E_CONFIG, "\"short_factor\" is null"},
        {"llama", "rope_scaling", LONG(",\"short_factor\":[]"), ISOBIT_E_CONFIG, "short_factor"},
        {"llama", "rope_scaling", LONG(",\"short_factor\":7"), ISOBIT_E_CONFIG, "short_factor"},
        {"llama", "rope_scaling", LONG(",\"short_factor\":[1,2,3,4]"), ISOBIT_OK, ""},
        {"llama", "rope_scaling", LONG(",\"short_factor\":[1,2,3,0]"), ISOBIT_E_CONFIG,
         "\"short_factor\" is 0"},
        {"llama", "rope_scaling", LONG(",\"short_factor\":[1,2,3,\"4\"]"), ISOBIT_E_CONFIG,
         "short_factor"},
        {"llama", "rope_scaling",
         "{\"type\":\"su\",\"short_factor\":[1,2,3],\"long_factor\":[1,2,3]}", ISOBIT_E_CONFIG,
         "\"short_factor\" has 3 numbers; 4 are expected"},
        {"llama", "rope_scaling", "{\"type\":\"su\",\"short_factor\":[1,2,3,4]}", ISOBIT_E_CONFIG,
         "\"long_factor\" is null"},
        {"llama", "rope_scaling",
         "{\"type\":\"longrope\",\"short_factor\":[1,2,3,4],"
         "\"long_factor\":[1]}",
         ISOBIT_E_CONFIG, "\"long_factor\" 1"},
        {"llama", "rope_scaling", "{\"rope_type\":\"linear\"}", ISOBIT_E_CONFIG, "lacks numbers"},
        {"llama", "rope_scaling", "{\"rope_type\":\"linear\",\"factor\":0.5}", ISOBIT_E_CONFIG,
         "factor"},
        {"llama", "rope_scaling", LLAMA3(""), ISOBIT_E_CONFIG, "llama3 lacks numbers"},
        {"llama", "rope_scaling",
         LLAMA3(",\"low_freq_factor\":4,\"high_freq_factor\":4,"
                "\"original_max_position_embeddings\":16"),
         ISOBIT_E_CONFIG, "contradict"},
        {"llama", "rope_scaling",
         LLAMA3(",\"low_freq_factor\":1,\"high_freq_factor\":4,"
                "\"original_max_position_embeddings\":0"),
         ISOBIT_E_CONFIG, "original_max_position_embeddings"},
        {"llama", "rope_scaling", LLAMA3(",\"low_freq_factor\":0,\"high_freq_factor\":4"),
         ISOBIT_E_CONFIG, "\"low_freq_factor\" is 0"},
        {"llama", "rope_scaling", LLAMA3(",\"low_freq_factor\":1,\"high_freq_factor\":0"),
         ISOBIT_E_CONFIG, "\"high_freq_factor\" is 0"},
        {"llama", "rope_scaling",
         LLAMA3(",\"low_freq_factor\":0.2,\"high_freq_factor\":0.5,"
                "\"original_max_position_embeddings\":16"),
         ISOBIT_OK, ""},
        {"llama", "max_position_embeddings", "1e6", ISOBIT_OK, ""},
        {"llama", "hidden_act", "\"nonsense\"", ISOBIT_E_UNSUPPORTED, "nonsense"},
        {"mistral", "sliding_window", "0", ISOBIT_E_CONFIG, "sliding_window"},
        {"mistral", "sliding_window", "1", ISOBIT_OK, ""},
    };
    check_configs(cases, sizeof cases / sizeof *cases);
    (void)state;
}

static int same_bytes(const void *a, const void *b, size_t bytes) {
    return memcmp(a, b, bytes) == 0;
}

static void logits_as(float *logits, const char *folder, const char *changes) {
    const uint32_t ids[9] = {3, 14, 15, 9, 26, 5, 35, 8, 9};
    iso_model *model = load_as(folder, changes);
    iso_error error = {0};
    assert_true(iso_model_get_info(model)->target_vocabulary <= MOST_V);
    ok(iso_logits_f32(logits, model, NULL, 0, ids, 9, 0, NULL, &error), &error);
    iso_model_free(model);
}

/* Numbers that need not be given, and what they are then; factors by which rates turn slower. */
void test_rope_numbers(void **state) {
    static const struct {
        const char *folder, *a, *b;
        int same;
    } cases[] = {
#define STRETCH(type, numbers) "{\"rope_scaling\":{\"type\":\"" type "\"" numbers "}}"
#define FOUR ",\"factor\":4,\"original_max_position_embeddings\":20"
#define SHORT "\"short_factor\":[1,1.25,2,3.5]"
#define LOW_AND_HIGH ",\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4"
        /* The positions are 40: twice as many as the original ones. */
        {"llama", STRETCH("yarn", ",\"factor\":2,\"original_max_position_embeddings\":20"),
         STRETCH("yarn", ",\"original_max_position_embeddings\":20"), 1},
        {"llama", STRETCH("yarn", FOUR),
         STRETCH("yarn", ",\"original_max_position_embeddings\":20"), 0},
        {"llama", STRETCH("yarn", ",\"factor\":4"),
         STRETCH("yarn", ",\"factor\":4,\"original_max_position_embeddings\":40"), 1},
        {"llama", STRETCH("yarn", FOUR), STRETCH("yarn", FOUR ",\"beta_fast\":32,\"beta_slow\":1"),
         1},
        /* Without a ramp there is nothing to be cut to whole rates. */
        {"llama", STRETCH("yarn", FOUR ",\"beta_slow\":0.5"),
         STRETCH("yarn", FOUR ",\"beta_slow\":0.5,\"truncate\":false"), 0},
        /* 0.1 ln 4 + 1 */
        {"llama", STRETCH("yarn", FOUR),
         STRETCH("yarn", FOUR ",\"attention_factor\":1.138629436111989"), 1},
        {"llama", STRETCH("yarn", FOUR ",\"mscale\":1.4"), STRETCH("yarn", FOUR), 1},
        {"llama", STRETCH("yarn", FOUR ",\"mscale\":0.7,\"mscale_all_dim\":0.7"),
         STRETCH("yarn", FOUR ",\"attention_factor\":1"), 1},
        {"llama", STRETCH("yarn", ",\"factor\":1"), STRETCH("default", ""), 1},
        {"llama", STRETCH("longrope", ",\"factor\":1," SHORT ",\"long_factor\":[1,1,1,1]"),
         STRETCH("su", "," SHORT ",\"long_factor\":[1,2,3,4]"), 1},
        /* sqrt(1 + ln 4 / ln 40) */
        {"llama", STRETCH("longrope", ",\"factor\":4," SHORT ",\"long_factor\":[1,2,3,4]"),
         STRETCH("longrope",
                 ",\"attention_factor\":1.1729465671624668," SHORT ",\"long_factor\":[1,2,3,4]"),
         1},
        {"llama", STRETCH("longrope", ",\"short_factor\":[4,4,4,4],\"long_factor\":[1,2,3,4]"),
         STRETCH("linear", ",\"factor\":4"), 1},
        /* Waves are 6 to 200 positions long: all are short, or all are long. */
        {"llama", STRETCH("llama3", LOW_AND_HIGH ",\"original_max_position_embeddings\":4000"),
         STRETCH("default", ""), 1},
        {"llama", STRETCH("llama3", LOW_AND_HIGH ",\"original_max_position_embeddings\":4"),
         STRETCH("linear", ",\"factor\":8"), 1},
    };
    static float a[9 * MOST_V], b[9 * MOST_V];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        logits_as(a, cases[i].folder, cases[i].a);
        logits_as(b, cases[i].folder, cases[i].b);
        if (same_bytes(a, b, sizeof a) != cases[i].same)
            fail_msg("%s and %s: logits are %s", cases[i].a, cases[i].b,
                     cases[i].same ? "others" : "the same");
    }
    (void)state;
}

/* As transformers 5 writes them, configurations say the same with other keys. */
void test_new_keys(void **state) {
    static const struct {
        const char *folder, *changes;
        int same;
    } cases[] = {
        {"llama",
         "{\"rope_theta\":null,\"rope_scaling\":null,\"rope_parameters\":"
         "{\"rope_theta\":100.0,\"rope_type\":\"linear\",\"factor\":2.5}}",
         1},
        {"llama",
         "{\"rope_theta\":null,\"rope_scaling\":null,\"rope_parameters\":"
         "{\"rope_theta\":100.0,\"rope_type\":\"default\"}}",
         0},
        {"llama3-bf16",
         "{\"rope_theta\":null,\"rope_scaling\":null,\"rope_parameters\":"
         "{\"rope_theta\":100.0,\"rope_type\":\"llama3\",\"factor\":8.0,\"low_freq_factor\":1.0,"
         "\"high_freq_factor\":4.0,\"original_max_position_embeddings\":16}}",
         1},
        {"llama-yarn",
         "{\"rope_theta\":null,\"rope_scaling\":null,\"rope_parameters\":"
         "{\"rope_theta\":100.0,\"rope_type\":\"yarn\",\"factor\":4.0,\"beta_fast\":1,"
         "\"original_max_position_embeddings\":10,\"beta_slow\":0.25,\"mscale\":1.4,"
         "\"mscale_all_dim\":0.3,\"truncate\":true}}",
         1},
        {"llama-longrope",
         "{\"rope_theta\":null,\"rope_scaling\":null,\"original_max_position_embeddings\":null,"
         "\"rope_parameters\":{\"rope_theta\":100.0,\"rope_type\":\"longrope\",\"factor\":2,"
         "\"short_factor\":[1,1.25,2,3.5],\"long_factor\":[2,3,8,20],"
         "\"original_max_position_embeddings\":40}}",
         1},
        {"llama-longrope", "{\"original_max_position_embeddings\":null}", 0},
        {"mistral", "{\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":4}}", 1},
        {"qwen2-f16",
         "{\"rope_theta\":null,\"rope_parameters\":{\"rope_theta\":100.0,"
         "\"rope_type\":\"default\"}}",
         1},
        {"t5", "{\"scale_decoder_outputs\":true,\"transformers_version\":\"5.24.0\"}", 1},
        {"t5", "{\"scale_decoder_outputs\":false,\"transformers_version\":\"5.24.0\"}", 0},
        {"flan-t5-bf16",
         "{\"tie_word_embeddings\":true,\"scale_decoder_outputs\":false,"
         "\"transformers_version\":\"5.24.0\"}",
         1},
        {"mt5-f16", "{\"tie_word_embeddings\":true,\"transformers_version\":\"5.24.0\"}", 1},
    };
    enum { LENGTH = 9 };
    const uint32_t ids[LENGTH] = {3, 14, 15, 9, 26, 5, 35, 8, 9};
    static float logits[2][LENGTH * MOST_V];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        iso_model *models[] = {load(cases[i].folder), load_as(cases[i].folder, cases[i].changes)};
        iso_error error = {0};
        for (int m = 0; m < 2; m++) {
            const iso_model_info *info = iso_model_get_info(models[m]);
            const int both = info->encoder_layers != 0;
            assert_true(info->target_vocabulary <= MOST_V);
            memset(logits[m], 0, sizeof logits[m]);
            ok(iso_logits_f32(logits[m], models[m], both ? ids : NULL, both ? LENGTH : 0, ids,
                              LENGTH, 0, NULL, &error),
               &error);
            iso_model_free(models[m]);
        }
        if (same_bytes(logits[0], logits[1], sizeof logits[0]) != cases[i].same)
            fail_msg("%s with %s: logits are %s", cases[i].folder, cases[i].changes,
                     cases[i].same ? "others" : "the same");
    }
    (void)state;
}

/* What a configuration says of windows, in its words or in those of a newer one. */
void test_window(void **state) {
    static const struct {
        const char *folder, *a, *b;
        int same;
    } cases[] = {
        {"mistral-window", "{}", "{\"sliding_window\":null}", 0},
        {"mistral-window", "{\"sliding_window\":9}", "{\"sliding_window\":8}", 0},
        {"mistral-window", "{\"sliding_window\":9}", "{\"sliding_window\":null}", 1}, /* 9 tokens */
        {"mistral-window", "{\"sliding_window\":2147483648}", "{\"sliding_window\":null}", 1},
        {"qwen2-window", "{\"layer_types\":null}",
         "{\"max_window_layers\":9,\"layer_types\":[\"full_attention\",\"sliding_attention\","
         "\"sliding_attention\"]}",
         1},
        {"qwen2-window", "{}",
         "{\"layer_types\":[\"full_attention\",\"sliding_attention\",\"full_attention\"]}", 0},
        {"qwen2-window", "{\"use_sliding_window\":false}", "{\"sliding_window\":null}", 1},
        {"qwen2-window", "{\"layer_types\":null,\"max_window_layers\":3}",
         "{\"sliding_window\":null}", 1},
        {"qwen2-window", "{\"layer_types\":null,\"max_window_layers\":2}",
         "{\"sliding_window\":null}", 0},
    };
    static float a[9 * MOST_V], b[9 * MOST_V];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        logits_as(a, cases[i].folder, cases[i].a);
        logits_as(b, cases[i].folder, cases[i].b);
        if (same_bytes(a, b, sizeof a) != cases[i].same)
            fail_msg("%s, %s and %s: logits are %s", cases[i].folder, cases[i].a, cases[i].b,
                     cases[i].same ? "others" : "the same");
    }
    (void)state;
}

/* A window that spans blocks of keys: at once and step by step, with the bits of each other. */
void test_long_windows(void **state) {
    enum { LENGTH = 220 };
    static uint32_t ids[LENGTH];
    static float at_once[LENGTH * MOST_V], steps[LENGTH * MOST_V];
    for (size_t i = 0; i < LENGTH; i++)
        ids[i] = (uint32_t)(i * i * 7 + i / 3) % 50;
    for (size_t window = 60; window <= 140; window += 16) {
        char changes[80];
        (void)snprintf(changes, sizeof changes,
                       "{\"sliding_window\":%zu,\"max_position_embeddings\":300}", window);
        iso_model *model = load_as("mistral-window", changes);
        iso_error error = {0};
        ok(iso_logits_f32(at_once, model, NULL, 0, ids, LENGTH, 0, NULL, &error), &error);
        ok(iso_logits_f32(steps, model, NULL, 0, ids, LENGTH, 1, NULL, &error), &error);
        assert_memory_equal(at_once, steps, LENGTH * 50 * sizeof(float));
        /* What lies three windows back, one for each layer, has no influence. */
        ids[0] ^= 1;
        ok(iso_logits_f32(steps, model, NULL, 0, ids, LENGTH, 0, NULL, &error), &error);
        for (size_t t = 0; t < LENGTH; t++)
            assert_int_equal(same_bytes(at_once + t * 50, steps + t * 50, 50 * sizeof(float)),
                             t > 3 * (window - 1));
        iso_model_free(model);
    }
    (void)state;
}
