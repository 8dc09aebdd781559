/* SPDX-License-Identifier: MIT
 *
 * See test_loader.c: config.json and generation_config.json.
 */
#include "../test_loader.h"

typedef struct config_case {
    iso_status status;
    const char *text; /* replaces the whole file if it does not begin with a comma */
    const char *says;
} config_case;

#define SIZES                                                                                      \
    "\"encoder_layers\":1,\"decoder_layers\":1,\"encoder_attention_heads\":2,"                     \
    "\"decoder_attention_heads\":2,\"encoder_ffn_dim\":12,\"decoder_ffn_dim\":12"
#define MARIAN "{\"model_type\":\"marian\",\"vocab_size\":7,\"d_model\":8," SIZES IDS

static const config_case configs[] = {
    {ISOBIT_OK, ",\"unknown\":{\"x\":[1]},\"num_beams\":null,\"max_length\":20.0", NULL},
    {ISOBIT_OK, ",\"model_max_length\":1000000000000000019884624838656", NULL},
    {ISOBIT_OK, ",\"bad_words_ids\":[[0],[1,2]],\"early_stopping\":\"never\"", NULL},
    /* Each limit is allowed, and not one more or less. */
    {ISOBIT_OK,
     ",\"num_beams\":1024,\"max_length\":2,\"max_new_tokens\":1,\"min_length\":0,"
     "\"min_new_tokens\":0,\"no_repeat_ngram_size\":0,\"repetition_penalty\":0.5",
     NULL},
    {ISOBIT_OK,
     ",\"num_beams\":1,\"max_length\":2147483648,\"max_new_tokens\":2147483648,"
     "\"min_length\":2147483648,\"min_new_tokens\":2147483648,"
     "\"no_repeat_ngram_size\":2147483648,\"forced_eos_token_id\":[0,6]",
     NULL},
    {ISOBIT_E_CONFIG, ",\"max_length\":2147483649", "max_length"},
    {ISOBIT_E_CONFIG, ",\"max_new_tokens\":2147483649", "max_new_tokens"},
    {ISOBIT_E_CONFIG, ",\"min_length\":2147483649", "min_length"},
    {ISOBIT_E_CONFIG, ",\"min_new_tokens\":2147483649", "min_new_tokens"},
    {ISOBIT_E_CONFIG, ",\"no_repeat_ngram_size\":2147483649", "no_repeat_ngram_size"},
    {ISOBIT_E_LIMIT, "{\"model_type\":\"marian\",\"d_model\":8208}", "513"},
    {ISOBIT_OK, ",\"length_penalty\":-1000000,\"repetition_penalty\":1e30", NULL},
    {ISOBIT_E_CONFIG, ",\"length_penalty\":-1000001", "length_penalty"},
    {ISOBIT_E_CONFIG, ",\"repetition_penalty\":1.1e30", "repetition_penalty"},
    {ISOBIT_E_JSON, "", NULL},
    {ISOBIT_E_JSON, "[]", NULL},
    {ISOBIT_E_JSON, "{\"model_type\":\"marian\"", NULL},
    {ISOBIT_E_UTF8, "{\"model_type\":\"\xff\"}", NULL},
    {ISOBIT_E_DUPLICATE, MARIAN ",\"d_model\":8}", NULL},
    {ISOBIT_E_MISSING, "{}", "model_type"},
    {ISOBIT_E_MISSING, "{\"model_type\":3}", "model_type"},
    {ISOBIT_E_UNSUPPORTED, "{\"model_type\":\"bert\\n\"}", "isobit-transformer, marian"},
    {ISOBIT_E_CONFIG, "{\"model_type\":\"marian\",\"d_model\":0}", "d_model"},
    {ISOBIT_E_CONFIG, "{\"model_type\":\"marian\",\"d_model\":-8}", "d_model"},
    {ISOBIT_E_CONFIG, "{\"model_type\":\"marian\",\"d_model\":8.5}", "d_model"},
    {ISOBIT_E_CONFIG, "{\"model_type\":\"marian\",\"d_model\":\"8\"}", "d_model"},
    {ISOBIT_E_CONFIG, "{\"model_type\":\"marian\",\"d_model\":1e300}", "d_model"},
    {ISOBIT_E_CONFIG, "{\"model_type\":\"marian\",\"encoder_layers\":100000}", "encoder_layers"},
    {ISOBIT_E_CONFIG, "{\"model_type\":\"marian\",\"max_position_embeddings\":1e9}",
     "max_position"},
    {ISOBIT_E_CONFIG, "{\"model_type\":\"marian\",\"encoder_attention_heads\":3}", "heads"},
    {ISOBIT_E_LIMIT, "{\"model_type\":\"marian\",\"encoder_attention_heads\":1}", "512"},
    {ISOBIT_E_CONFIG, "{\"model_type\":\"marian\",\"scale_embedding\":1}", "scale_embedding"},
    {ISOBIT_E_CONFIG, "{\"model_type\":\"marian\",\"activation_function\":7}", "activation"},
    {ISOBIT_E_UNSUPPORTED, "{\"model_type\":\"marian\",\"activation_function\":\"quick_gelu\"}",
     "quick_gelu"},
    {ISOBIT_E_MISSING, "{\"model_type\":\"isobit-transformer\"}", "vocab_size"},
    {ISOBIT_E_MISSING, "{\"model_type\":\"isobit-transformer\",\"vocab_size\":9}",
     "decoder_start_token_id"},
    {ISOBIT_E_CONFIG,
     "{\"model_type\":\"isobit-transformer\",\"vocab_size\":9,"
     "\"layer_norm_epsilon\":0}",
     "layer_norm_epsilon"},
    /* Without a default that would be refused under the same name. */
    {ISOBIT_E_CONFIG,
     "{\"model_type\":\"isobit-transformer\",\"vocab_size\":9,\"decoder_start_token_id\":1,"
     "\"pad_token_id\":\"x\"}",
     "pad_token_id"},
    {ISOBIT_E_CONFIG,
     "{\"model_type\":\"isobit-transformer\",\"vocab_size\":9,\"decoder_start_token_id\":\"x\"}",
     "decoder_start_token_id"},
    {ISOBIT_E_CONFIG, "{\"model_type\":\"marian\",\"decoder_vocab_size\":9}", "decoder_vocab_size"},
    {ISOBIT_E_CONFIG, "{\"model_type\":\"marian\",\"vocab_size\":9}", "decoder_start_token_id"},
    {ISOBIT_E_CONFIG, ",\"forced_bos_token_id\":7", "forced_bos_token_id"},
    {ISOBIT_E_CONFIG, ",\"forced_eos_token_id\":[2,9]", "forced_eos_token_id"},
    {ISOBIT_E_CONFIG, ",\"forced_eos_token_id\":[2,-1]", "forced_eos_token_id"},
    {ISOBIT_E_CONFIG, ",\"bad_words_ids\":[[7]]", "bad_words_ids"},
    {ISOBIT_E_CONFIG, ",\"bad_words_ids\":[[0,4294967294]]", "is 4294967294; the vocabulary has"},
    {ISOBIT_E_CONFIG, ",\"bad_words_ids\":[[0,4294967295]]", "a token id"}, /* none */
    {ISOBIT_E_CONFIG, ",\"forced_eos_token_id\":[4294967294]", "is 4294967294; the vocabulary has"},
    {ISOBIT_E_CONFIG, ",\"forced_eos_token_id\":[4294967295]", "a token id"},
    {ISOBIT_E_CONFIG, ",\"bad_words_ids\":[[]]", "bad_words_ids"},
    {ISOBIT_E_CONFIG, ",\"bad_words_ids\":[3]", "bad_words_ids"},
    {ISOBIT_E_CONFIG, ",\"bad_words_ids\":{}", "bad_words_ids"},
    {ISOBIT_E_CONFIG, ",\"num_beams\":0", "num_beams"},
    {ISOBIT_E_CONFIG, ",\"max_length\":1", "max_length"},
    {ISOBIT_E_CONFIG, ",\"early_stopping\":\"sometimes\"", "early_stopping"},
    {ISOBIT_E_CONFIG, ",\"length_penalty\":\"1\"", "length_penalty"},
    {ISOBIT_E_CONFIG, ",\"repetition_penalty\":0", "repetition_penalty"},
    {ISOBIT_E_CONFIG, ",\"renormalize_logits\":\"yes\"", "renormalize_logits"},
    {ISOBIT_E_CONFIG, ",\"no_repeat_ngram_size\":-1", "no_repeat_ngram_size"},
};

void test_config(void **state) {
    files f;
    iso_error error;
    files_make(&f);
    good_model(&f);
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        const config_case *c = &configs[i];
        if (*c->text == ',')
            files_config(&f, "marian", V, D, 2, FFN, IDS);
        char text[1500];
        if (*c->text == ',')
            (void)snprintf(text, sizeof text, MARIAN "%s}", c->text);
        else
            (void)snprintf(text, sizeof text, "%s", c->text);
        files_text(&f, "config.json", text);
        iso_status status = load(&f, NULL, &error);
        if (status != c->status || (c->says && !strstr(error.message, c->says)))
            fail_msg("%s: status %d (%s), expected %d (%s)", c->text, (int)status, error.message,
                     (int)c->status, c->says ? c->says : "");
    }
    /* The deepest nesting that is allowed; then one that a recursive parser would follow. */
    blob b = {0};
    blob_add(&b, MARIAN ",\"x\":", sizeof MARIAN ",\"x\":" - 1);
    for (int i = 0; i < 126; i++)
        blob_add(&b, i < 63 ? "[" : "]", 1);
    blob_add(&b, "}", 1);
    files_write(&f, "config.json", b.bytes, b.count);
    blob_free(&b);
    assert_int_equal(load(&f, NULL, &error), ISOBIT_OK);
    blob_add(&b, "{\"x\":", 5);
    for (size_t i = 0; i < 100000; i++)
        blob_add(&b, "[", 1);
    files_write(&f, "config.json", b.bytes, b.count);
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_LIMIT);
    blob_free(&b);
    /* Lists of 65536 ids (of bad words: their lengths included), and one more. */
    for (int words = 0; words < 2; words++)
        for (size_t count = 65536; count <= 65537; count++) {
            const char *first =
                words ? MARIAN ",\"bad_words_ids\":[[0" : MARIAN ",\"forced_eos_token_id\":[0";
            b = (blob){0};
            blob_add(&b, first, strlen(first));
            for (size_t i = (size_t)words + 1; i < count; i++)
                blob_add(&b, ",0", 2);
            blob_add(&b, words ? "]]}" : "]}", 2 + (size_t)words);
            files_write(&f, "config.json", b.bytes, b.count);
            blob_free(&b);
            assert_int_equal(load(&f, NULL, &error), count == 65536 ? ISOBIT_OK : ISOBIT_E_CONFIG);
        }
    /* generation_config.json: its errors count, and its keys replace those of config.json. */
    files_text(&f, "config.json", MARIAN ",\"num_beams\":5,\"max_length\":9}");
    files_text(&f, "generation_config.json", "{\"num_beams\":0}");
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_CONFIG);
    assert_non_null(strstr(error.message, "generation_config.json"));
    files_text(&f, "generation_config.json", "{\"num_beams\":");
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_JSON);
    files_text(&f, "generation_config.json", "{\"max_length\":12,\"eos_token_id\":[3,4]}");
    iso_model *model;
    assert_int_equal(iso_model_load(&model, f.directory, NULL, NULL, &error), ISOBIT_OK);
    const iso_model_info *info = iso_model_get_info(model);
    assert_int_equal(info->default_beams, 1);
    assert_int_equal(info->default_max_length, 12);
    assert_int_equal(info->eos_count, 2);
    assert_int_equal(info->eos_ids[1], 4);
    assert_int_equal(info->pad_id, 0);
    assert_int_equal(info->unk_id, UINT32_MAX);
    iso_model_free(model);
    /* A default is lowered to what the positions allow, and not further. */
    for (size_t positions = 10; positions <= 12; positions++) {
        char text[400];
        (void)snprintf(text, sizeof text, MARIAN ",\"max_position_embeddings\":%zu}", positions);
        files_text(&f, "config.json", text);
        assert_int_equal(iso_model_load(&model, f.directory, NULL, NULL, &error), ISOBIT_OK);
        assert_int_equal(iso_model_get_info(model)->default_max_length, positions == 10 ? 11 : 12);
        iso_model_free(model);
    }
    files_remove(&f);
    (void)state;
}
