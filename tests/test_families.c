/* SPDX-License-Identifier: MIT
 *
 * The families of models: of each a checkpoint that transformers wrote (tests/data/models, made by
 * tools/make_golden.py; test_model compares what encoder-decoders compute). Here: every tensor is
 * needed, and of the shape that config.json says; what encoders alone compute, against PyTorch in
 * double precision.
 */
#include "test_families.h"

static const family families[] = {
    {"bart", {"final_logits_bias"}},
    {"mbart-f16", {"final_logits_bias"}},
    {"pegasus-bf16", {"final_logits_bias", "embed_positions"}},
    {"m2m-100", {NULL}},
    {"t5", {"EncDecAttention.relative"}},
    {"flan-t5-bf16", {NULL}},
    {"mt5-f16", {NULL}},
    {"umt5", {NULL}},
    /* Without its first tensor the head is not there; the same for the pooler. */
    {"bert", {"cls.seq_relationship", "transform.dense.weight", "pooler.dense.weight"}},
    {"roberta-f16", {"lm_head.dense.weight"}},
    {"distilbert-bf16", {"vocab_transform.weight"}},
    {"minilm", {"pooler.dense.weight"}},
    {"t5-encoder-bf16", {NULL}},
    {"sentence-t5", {NULL}},
    {"gpt2", {NULL}},
    {"gpt2-untied-f16", {"lm_head.weight"}},
    {"llama", {"lm_head.weight"}},
    {"llama3-bf16", {NULL}},
    {"qwen2-f16", {NULL}},
    {"mistral", {"lm_head.weight"}},
    {"llama-yarn", {"lm_head.weight"}},
    {"llama-longrope", {"lm_head.weight"}},
    {"mistral-window", {"lm_head.weight"}},
    {"qwen2-window", {"lm_head.weight"}},
    {"qwen3-bf16", {NULL}},
    {"phi3-bf16", {NULL}},
    {"phi3-longrope", {"lm_head.weight"}},
    {"gemma-bf16", {NULL}},
    {"gemma2-bf16", {NULL}},
    {"gemma3-bf16", {NULL}},
    {"gemma3-part", {"vision_tower.", "multi_modal_projector."}},
    {"opt-f16", {NULL}},
};

void ok(iso_status status, const iso_error *error) {
    if (status)
        fail_msg("status %d: %s", (int)status, error->message);
}

/* A file of the family's directory. */
blob read_file(const char *directory, const char *name) {
    char path[600], buffer[4096];
    blob b = {0};
    (void)snprintf(path, sizeof path, "%s/models/%s/%s", ISOBIT_TEST_DATA, directory, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        return b;
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, file)) > 0;)
        blob_add(&b, buffer, n);
    assert_int_equal(fclose(file), 0);
    return b;
}

/* The family's directory again, with other weights, and unless it is NULL another config.json. */
iso_status load_folder(const char *name, const char *config, const blob *weights,
                       iso_error *error) {
    files f;
    files_make(&f);
    static const char *const texts[] = {"config.json", "generation_config.json"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        blob text = read_file(name, texts[i]);
        if (!text.count) /* encoders do not generate */
            continue;
        files_write(&f, texts[i], text.bytes, text.count);
        blob_free(&text);
    }
    if (config)
        files_text(&f, "config.json", config);
    files_write(&f, "model.safetensors", weights->bytes, weights->count);
    iso_model *model = NULL;
    iso_status status = iso_model_load(&model, f.directory, NULL, NULL, error);
    assert_true(!status == (model != NULL));
    iso_model_free(model);
    files_remove(&f);
    return status;
}

iso_status load_with(const char *name, const blob *weights, iso_error *error) {
    return load_folder(name, NULL, weights, error);
}

static int is_optional(const family *f, const char *tensor) {
    for (size_t i = 0; i < sizeof f->optional / sizeof *f->optional; i++)
        if (f->optional[i] && strstr(tensor, f->optional[i]))
            return 1;
    return 0;
}

/* The header of the weights, parsed. */
json_t *read_header(const blob *weights) {
    uint64_t bytes;
    memcpy(&bytes, weights->bytes, sizeof bytes);
    bytes = le64toh(bytes);
    json_t *header = json_loadb((const char *)weights->bytes + 8, (size_t)bytes, 0, NULL);
    assert_non_null(header);
    return header;
}

/* The same file with another header; offsets of the data stay. */
blob with_header(const blob *weights, const json_t *header) {
    uint64_t old;
    memcpy(&old, weights->bytes, sizeof old);
    old = le64toh(old);
    char *text = json_dumps(header, JSON_COMPACT);
    blob b = blob_file(text, strlen(text), 0);
    blob_add(&b, weights->bytes + 8 + old, weights->count - 8 - (size_t)old);
    free(text);
    return b;
}

/* Without a tensor there is one sentence that names it, but for those that may be absent. */
static void test_tensors_are_needed(void **state) {
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const family *f = &families[i];
        blob weights = read_file(f->name, "model.safetensors");
        json_t *header = read_header(&weights);
        const char *name;
        json_t *value;
        void *next;
        size_t tried = 0;
        json_object_foreach_safe(header, next, name, value) {
            if (strcmp(name, "__metadata__") == 0)
                continue;
            json_t *other = json_copy(header);
            assert_int_equal(json_object_set(other, "nobody.asks.for.this", value), 0);
            assert_int_equal(json_object_del(other, name), 0);
            blob b = with_header(&weights, other);
            iso_error error = {0};
            iso_status status = load_with(f->name, &b, &error);
            if (is_optional(f, name)) {
                ok(status, &error);
            } else if (status != ISOBIT_E_MISSING || !strstr(error.message, name)) {
                fail_msg("%s without %s: status %d, \"%s\"", f->name, name, (int)status,
                         error.message);
            }
            blob_free(&b);
            json_decref(other);
            tried++;
        }
        assert_true(tried >= 14);
        json_decref(header);
        blob_free(&weights);
    }
    (void)state;
}

/* A shape with the same number of elements that config.json does not say. */
static void test_shapes_are_checked(void **state) {
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const family *f = &families[i];
        blob weights = read_file(f->name, "model.safetensors");
        json_t *header = read_header(&weights);
        const char *name;
        json_t *value;
        json_object_foreach(header, name, value) {
            json_t *shape = json_object_get(value, "shape");
            if (!shape)
                continue;
            json_t *old = json_copy(shape);
            const size_t rank = json_array_size(shape);
            if (rank == 1) { /* [n] -> [n, 1] */
                json_array_append_new(shape, json_integer(1));
            } else { /* [n, k] -> [1, n k] */
                json_int_t n = json_integer_value(json_array_get(shape, 0));
                json_int_t k = json_integer_value(json_array_get(shape, 1));
                json_array_set_new(shape, 0, json_integer(n == 1 ? k : 1));
                json_array_set_new(shape, 1, json_integer(n == 1 ? 1 : n * k));
            }
            blob b = with_header(&weights, header);
            iso_error error = {0};
            iso_status status = load_with(f->name, &b, &error);
            if (strstr(name, "seq_relationship") || /* which nobody reads */
                strstr(name, "vision_tower.") || strstr(name, "multi_modal_projector.") ||
                strstr(name, "EncDecAttention.relative"))
                ok(status, &error);
            else if (status != ISOBIT_E_SHAPE || !strstr(error.message, name))
                fail_msg("%s, %s of another shape: status %d, \"%s\"", f->name, name, (int)status,
                         error.message);
            blob_free(&b);
            json_object_set_new(value, "shape", old);
        }
        json_decref(header);
        blob_free(&weights);
    }
    (void)state;
}

/* ------------------------------------------------------------------------------ encoders alone */

iso_model *load(const char *name) {
    char path[600];
    iso_model *model = NULL;
    iso_error error = {0};
    (void)snprintf(path, sizeof path, "%s/models/%s", ISOBIT_TEST_DATA, name);
    ok(iso_model_load(&model, path, NULL, NULL, &error), &error);
    return model;
}

json_t *load_cases(const char *name) {
    char path[600];
    (void)snprintf(path, sizeof path, "%s/models/%s/expected.json", ISOBIT_TEST_DATA, name);
    json_t *cases = json_load_file(path, 0, NULL);
    assert_non_null(cases);
    return cases;
}

size_t read_ids(const json_t *list, uint32_t *ids) {
    assert_true(json_array_size(list) <= MOST);
    for (size_t i = 0; i < json_array_size(list); i++)
        ids[i] = (uint32_t)json_integer_value(json_array_get(list, i));
    return json_array_size(list);
}

/* Rows of numbers, or one row. */
void check_close(const json_t *list, const float *values, size_t count, const char *name,
                 const char *what) {
    size_t at = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *row = json_array_get(list, i);
        const size_t n = json_is_array(row) ? json_array_size(row) : 1;
        for (size_t j = 0; j < n; j++, at++) {
            const double want =
                json_number_value(json_is_array(row) ? json_array_get(row, j) : row);
            if (!(fabs((double)values[at] - want) <= 2e-5))
                fail_msg("%s, %s: element %zu is %.9g, not %.9g", name, what, at,
                         (double)values[at], want);
        }
    }
    assert_int_equal(at, count);
}

void check_vector(const iso_model *model, const uint32_t *ids, size_t length, iso_pooling pooling,
                  int normalize, const json_t *want, const char *name, const char *what) {
    float y[MOST];
    iso_error error = {0};
    const iso_sentence_options options = {sizeof options, pooling, normalize};
    ok(iso_sentence_embed_f32(y, model, ids, &length, 1, &options, NULL, &error), &error);
    check_close(want, y, iso_model_get_info(model)->d, name, what);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensors_are_needed),
        cmocka_unit_test(test_shapes_are_checked),
        cmocka_unit_test(test_encoders),
        cmocka_unit_test(test_untied_head),
        cmocka_unit_test(test_vectors_alone_or_together),
        cmocka_unit_test(test_encoder_arguments),
        cmocka_unit_test(test_sentence_files),
        cmocka_unit_test(test_dense_golden),
        cmocka_unit_test(test_dense_layers),
        cmocka_unit_test(test_dense_files),
        cmocka_unit_test(test_dense_weights),
        cmocka_unit_test(test_decoders),
        cmocka_unit_test(test_decoder_scores),
        cmocka_unit_test(test_decoder_arguments),
        cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_samples_of_prompts),
        cmocka_unit_test(test_first_distances),
        cmocka_unit_test(test_t5_config),
        cmocka_unit_test(test_t5_names),
        cmocka_unit_test(test_t5_info),
        cmocka_unit_test(test_t5_encoders),
        cmocka_unit_test(test_t5_without_decoder),
        cmocka_unit_test(test_phi3_gemma_opt_config),
        cmocka_unit_test(test_phi3_gemma_words),
        cmocka_unit_test(test_gemma3_config),
        cmocka_unit_test(test_gemma3_words),
        cmocka_unit_test(test_gemma2_words),
        cmocka_unit_test(test_gemma3_wide_window),
        cmocka_unit_test(test_gemma3_names),
        cmocka_unit_test(test_longer_texts),
        cmocka_unit_test(test_longer_arguments),
        cmocka_unit_test(test_llama_config),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_long_windows),
        cmocka_unit_test(test_rope_numbers),
        cmocka_unit_test(test_new_keys),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_limits),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
