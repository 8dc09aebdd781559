/* SPDX-License-Identifier: MIT
 *
 * T5 and its kind.
 */
#include "layers.h"
#include "test_families.h"

/* For every distance transformers was asked for its bucket. */
void test_first_distances(void **state) {
    json_t *cases = json_load_file(ISOBIT_TEST_DATA "/models/t5_buckets.json", 0, NULL), *c, *first;
    size_t i, b;
    assert_true(json_array_size(cases) >= 9);
    json_array_foreach(cases, i, c) {
        uint32_t found[64];
        const size_t n = (size_t)json_integer_value(json_object_get(c, "buckets"));
        assert_true(n <= 64 && n == json_array_size(json_object_get(c, "first")));
        model_first_distances(found, n,
                              (size_t)json_integer_value(json_object_get(c, "max_distance")));
        json_array_foreach(json_object_get(c, "first"), b, first)
            assert_int_equal(found[b], json_integer_value(first));
    }
    json_decref(cases);
    (void)state;
}

/* The folder with one key of config.json changed to `value`, which is JSON; NULL: without the key.
 */
static iso_status load_changed(const char *name, const char *key, const char *value,
                               iso_error *error) {
    blob config = read_file(name, "config.json"), weights = read_file(name, "model.safetensors");
    json_t *root = json_loadb((const char *)config.bytes, config.count, 0, NULL);
    assert_non_null(root);
    if (value)
        json_object_set_new(root, key, json_loads(value, JSON_DECODE_ANY, NULL));
    else
        json_object_del(root, key);
    char *text = json_dumps(root, 0);
    const iso_status status = load_folder(name, text, &weights, error);
    free(text);
    json_decref(root);
    blob_free(&config);
    blob_free(&weights);
    return status;
}

void check_configs(const changed_config *cases, size_t count) {
    for (const changed_config *c = cases; c < cases + count; c++) {
        iso_error error = {0};
        const iso_status status = load_changed(c->folder, c->key, c->value, &error);
        expect(c->status, c->part, status, &error);
    }
}

void test_t5_config(void **state) {
    static const changed_config cases[] = {
        {"t5", "d_kv", "0", ISOBIT_E_CONFIG, "\"d_kv\" is 0; a whole number from 1 to 512"},
        {"t5", "d_kv", "513", ISOBIT_E_CONFIG, "\"d_kv\" is 513"},
        {"t5", "d_kv", "16", ISOBIT_E_SHAPE, "SelfAttention.q.weight"},
        {"t5", "num_heads", "0", ISOBIT_E_CONFIG, "\"num_heads\" is 0"},
        {"t5", "is_encoder_decoder", "1", ISOBIT_E_CONFIG, "is_encoder_decoder"},
        {"t5", "num_layers", "0", ISOBIT_E_CONFIG, "\"num_layers\" is 0"},
        {"t5", "num_decoder_layers", "0", ISOBIT_E_CONFIG, "\"num_decoder_layers\" is 0"},
        {"t5", "num_decoder_layers", "3", ISOBIT_E_MISSING, "decoder.block.2.layer.0"},
        {"t5", "d_ff", "-1", ISOBIT_E_CONFIG, "\"d_ff\" is -1"},
        {"t5", "relative_attention_num_buckets", "0", ISOBIT_E_CONFIG, "from 1"},
        {"t5", "relative_attention_num_buckets", "2", ISOBIT_E_CONFIG, "even number from 4"},
        {"t5", "relative_attention_num_buckets", "31", ISOBIT_E_CONFIG, "even number from 4"},
        {"t5", "relative_attention_num_buckets", "34", ISOBIT_E_SHAPE, "relative_attention_bias"},
        {"t5", "relative_attention_max_distance", "0", ISOBIT_E_CONFIG, "from 1"},
        {"t5", "relative_attention_max_distance", "16", ISOBIT_E_CONFIG, "more than 16"},
        {"t5", "relative_attention_max_distance", "1e9", ISOBIT_E_CONFIG, "max_distance\" is"},
        {"t5", "feed_forward_proj", "\"nonsense\"", ISOBIT_E_UNSUPPORTED, "\"nonsense\""},
        {"t5", "feed_forward_proj", "\"gated\"", ISOBIT_E_UNSUPPORTED, "\"gated\""},
        {"t5", "feed_forward_proj", "\"gated-\"", ISOBIT_E_UNSUPPORTED, "\"gated-\""},
        {"t5", "feed_forward_proj", "\"gated-gelu-silu\"", ISOBIT_E_UNSUPPORTED,
         "\"gated-gelu-silu"},
        {"t5", "feed_forward_proj", "\"relu-gelu\"", ISOBIT_E_UNSUPPORTED, "\"relu-gelu\""},
        {"t5", "feed_forward_proj", "3", ISOBIT_E_CONFIG, "the name of a function"},
        {"t5", "feed_forward_proj", "\"gated-relu\"", ISOBIT_E_MISSING, "DenseReluDense.wi_0"},
        {"flan-t5-bf16", "feed_forward_proj", "\"relu\"", ISOBIT_E_MISSING, "DenseReluDense.wi."},
        {"flan-t5-bf16", "num_decoder_layers", NULL, ISOBIT_OK, ""},
        {"t5", "scale_decoder_outputs", "1", ISOBIT_E_CONFIG, "scale_decoder_outputs"},
        {"t5", "tie_word_embeddings", "false", ISOBIT_E_MISSING, "\"lm_head.weight\""},
        {"umt5", "tie_word_embeddings", "false", ISOBIT_E_MISSING, "\"lm_head.weight\""},
        {"flan-t5-bf16", "tie_word_embeddings", "true", ISOBIT_OK, ""},
        {"t5", "model_type", "\"umt5\"", ISOBIT_E_MISSING,
         "block.1.layer.0.SelfAttention.relative"},
        /* Absent or null: what the class has. */
        {"t5", "feed_forward_proj", NULL, ISOBIT_OK, ""},
        {"t5", "relative_attention_num_buckets", "null", ISOBIT_OK, ""},
        {"t5", "relative_attention_max_distance", "17", ISOBIT_OK, ""},
        {"t5", "feed_forward_proj", "\"gelu\"", ISOBIT_OK, ""},
        {"flan-t5-bf16", "feed_forward_proj", "\"gated-swish\"", ISOBIT_OK, ""},
    };
    check_configs(cases, sizeof cases / sizeof *cases);
    (void)state;
}

/* Files name the embedding as they like; where it is tied, a head of their own is not used. */
void test_t5_names(void **state) {
    static const char stray[] =
        "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight";
    static const struct {
        const char *folder, *from, *to;
        iso_status status;
    } cases[] = {
        {"t5", "shared.weight", "decoder.embed_tokens.weight", ISOBIT_OK},
        {"t5", "shared.weight", "lm_head.weight", ISOBIT_OK},
        {"t5", stray, "lm_head.weight", ISOBIT_OK},
        {"flan-t5-bf16", "shared.weight", "decoder.embed_tokens.weight", ISOBIT_OK},
        {"flan-t5-bf16", "shared.weight", "encoder.embed_tokens.weight", ISOBIT_OK},
        {"flan-t5-bf16", "lm_head.weight", "encoder.embed_tokens.weight", ISOBIT_E_MISSING},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        blob weights = read_file(cases[i].folder, "model.safetensors");
        json_t *header = read_header(&weights);
        iso_error error = {0};
        assert_int_equal(
            json_object_set(header, cases[i].to, json_object_get(header, cases[i].from)), 0);
        assert_int_equal(json_object_del(header, cases[i].from), 0);
        blob b = with_header(&weights, header);
        const iso_status status = load_with(cases[i].folder, &b, &error);
        expect(cases[i].status, cases[i].status ? cases[i].from : "", status, &error);
        blob_free(&b);
        blob_free(&weights);
        json_decref(header);
    }
    (void)state;
}

/* A folder with other keys in its configuration, if any; null is as good as absent. */
iso_status try_longer(iso_model **model, const char *name, const char *changes, size_t positions,
                      iso_error *error) {
    const iso_load_options options = {.size = sizeof options, .positions = positions};
    files f;
    files_make(&f);
    blob config = read_file(name, "config.json"), weights = read_file(name, "model.safetensors");
    json_t *root = json_loadb((const char *)config.bytes, config.count, 0, NULL);
    json_t *more = json_loads(changes, 0, NULL);
    assert_true(root && more);
    assert_int_equal(json_object_update(root, more), 0);
    char *text = json_dumps(root, 0);
    files_text(&f, "config.json", text);
    files_write(&f, "model.safetensors", weights.bytes, weights.count);
    const iso_status status = iso_model_load(model, f.directory, &options, NULL, error);
    files_remove(&f);
    free(text);
    json_decref(root);
    json_decref(more);
    blob_free(&config);
    blob_free(&weights);
    return status;
}

iso_model *load_as(const char *name, const char *changes) {
    iso_model *model = NULL;
    iso_error error = {0};
    ok(try_longer(&model, name, changes, 0, &error), &error);
    return model;
}

/* A folder of both as an encoder alone: what there is of the decoder is not read. */
void test_t5_encoders(void **state) {
    static const char *const changes[] = {"{\"is_encoder_decoder\":false}",
                                          "{\"architectures\":[\"T5EncoderModel\"]}"};
    const uint32_t ids[] = {3, 14, 15, 9, 1};
    float want[5 * 24], x[5 * 24];
    iso_error error = {0};
    iso_model *both = load("flan-t5-bf16");
    ok(iso_encode_f32(want, both, ids, 5, NULL, &error), &error);
    for (size_t i = 0; i < 2; i++) {
        iso_model *model = load_as("flan-t5-bf16", changes[i]);
        const iso_model_info *info = iso_model_get_info(model);
        assert_int_equal(info->decoder_layers, 0);
        assert_int_equal(info->decoder_heads, 0);
        assert_int_equal(info->has_logits, 0);
        assert_true(info->parameters < iso_model_get_info(both)->parameters);
        ok(iso_encode_f32(x, model, ids, 5, NULL, &error), &error);
        assert_memory_equal(x, want, sizeof x);
        iso_model_free(model);
    }
    iso_model_free(both);
    (void)state;
}

/* So is one whose weights have no decoder, whatever config.json says, and a folder of
 * sentence-transformers. */
void test_t5_without_decoder(void **state) {
    const uint32_t ids[] = {3, 14, 15, 9, 1};
    float want[5 * 24], x[5 * 24];
    iso_error error = {0};
    iso_model *both = load("flan-t5-bf16");
    ok(iso_encode_f32(want, both, ids, 5, NULL, &error), &error);
    for (int with_modules = 0; with_modules < 2; with_modules++) {
        files f;
        iso_model *model = NULL;
        blob config = read_file("flan-t5-bf16", "config.json"),
             weights = read_file("flan-t5-bf16", "model.safetensors");
        json_t *header = read_header(&weights), *other = json_object(), *value;
        const char *name;
        files_make(&f);
        files_write(&f, "config.json", config.bytes, config.count);
        if (with_modules)
            files_text(&f, "modules.json", "[]");
        json_object_foreach(header, name, value) {
            const int hidden = !with_modules && strncmp(name, "decoder.", 8) == 0;
            assert_int_equal(json_object_set(other, hidden ? name + 1 : name, value), 0);
        }
        blob b = with_header(&weights, other);
        files_write(&f, "model.safetensors", b.bytes, b.count);
        ok(iso_model_load(&model, f.directory, NULL, NULL, &error), &error);
        assert_int_equal(iso_model_get_info(model)->decoder_layers, 0);
        assert_int_equal(iso_model_get_info(model)->decoder_ffn, 0);
        ok(iso_encode_f32(x, model, ids, 5, NULL, &error), &error);
        assert_memory_equal(x, want, sizeof x);
        iso_model_free(model);
        files_remove(&f);
        json_decref(header);
        json_decref(other);
        blob_free(&b);
        blob_free(&weights);
        blob_free(&config);
    }
    iso_model_free(both);
    (void)state;
}

void test_t5_info(void **state) {
    iso_model *model = load("flan-t5-bf16");
    const iso_model_info *info = iso_model_get_info(model);
    assert_string_equal(info->family, "t5");
    assert_int_equal(info->encoder_layers, 1);
    assert_int_equal(info->decoder_layers, 3);
    assert_int_equal(info->encoder_heads, 3);
    assert_int_equal(info->decoder_ffn, 40);
    assert_int_equal(info->max_positions, 1 << 20);
    assert_int_equal(info->decoder_start_id, 0);
    assert_int_equal(info->pad_id, 0);
    assert_int_equal(info->eos_ids[0], 1);
    assert_int_equal(info->default_max_length, 14);
    /* Products with q, k, v, o, gate and its factor, and back; scores, and as much for values. */
    enum { S = 5, INNER = 36, D = 24, F = 40 };
    const uint32_t ids[S] = {3, 4, 5, 6, 1};
    iso_profile p = {.size = sizeof p};
    iso_error error = {0};
    float y[S * D];
    assert_int_equal(iso_model_set_profile(model, &p), ISOBIT_OK);
    ok(iso_encode_f32(y, model, ids, S, NULL, &error), &error);
    assert_true(p.flops == 2.0 * S * (4 * INNER * D + 3 * F * D) + 2.0 * S * S * 2 * INNER);
    iso_model_free(model);
    (void)state;
}
