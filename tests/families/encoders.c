/* SPDX-License-Identifier: MIT
 *
 * Encoders alone, and the folders of sentence-transformers.
 */
#include "test_families.h"

static const char *const encoders[] = {"bert", "roberta-f16", "distilbert-bf16", "minilm",
                                       "t5-encoder-bf16"};
#define ENCODERS (sizeof encoders / sizeof *encoders)

void test_encoders(void **state) {
    for (size_t m = 0; m < ENCODERS; m++) {
        const char *name = encoders[m];
        iso_model *model = load(name);
        const iso_model_info *info = iso_model_get_info(model);
        const size_t d = info->d, V = info->target_vocabulary;
        json_t *cases = load_cases(name), *c;
        assert_int_equal(info->decoder_layers, 0);
        const size_t positions = m == 4 ? (size_t)1 << 20 : 40;
        assert_int_equal(info->has_logits, m < 3);
        assert_int_equal(info->has_pooler, m == 0 || m == 3);
        assert_int_equal(info->max_positions, positions);
        assert_int_equal(info->sentence_max_length, m == 3 ? 16 : positions);
        assert_true(d <= MOST && V <= MOST_V);
        size_t i;
        json_array_foreach(cases, i, c) {
            uint32_t ids[MOST];
            static float x[MOST * MOST], logits[MOST * MOST_V];
            iso_error error = {0};
            const size_t S = read_ids(json_object_get(c, "source"), ids);
            ok(iso_encode_f32(x, model, ids, S, NULL, &error), &error);
            check_close(json_object_get(c, "encoder"), x, S * d, name, "encoder");
            const json_t *want = json_object_get(c, "logits");
            assert_int_equal(!json_is_null(want), info->has_logits);
            iso_status status = iso_token_logits_f32(logits, model, ids, S, NULL, &error);
            if (info->has_logits) {
                ok(status, &error);
                check_close(want, logits, S * V, name, "logits");
                /* Some of them, in any order, and one twice. */
                static float some[3 * MOST_V];
                const size_t at[] = {S - 1, 0, S - 1};
                ok(iso_token_logits_at_f32(some, model, ids, S, at, 3, NULL, &error), &error);
                for (size_t k = 0; k < 3; k++)
                    assert_memory_equal(some + k * V, logits + at[k] * V, V * sizeof *some);
            } else {
                assert_int_equal(status, ISOBIT_E_UNSUPPORTED);
            }
            want = json_object_get(c, "pooled");
            assert_int_equal(!json_is_null(want), info->has_pooler);
            if (info->has_pooler)
                check_vector(model, ids, S, ISOBIT_POOLING_POOLER, -1, want, name, "pooler");
            check_vector(model, ids, S, ISOBIT_POOLING_MEAN, -1, json_object_get(c, "mean"), name,
                         "mean");
            check_vector(model, ids, S, ISOBIT_POOLING_MAX, -1, json_object_get(c, "max"), name,
                         "max");
            check_vector(model, ids, S, ISOBIT_POOLING_CLS, -1,
                         json_array_get(json_object_get(c, "encoder"), 0), name, "cls");
            if (m < 4)
                check_vector(model, ids, S, ISOBIT_POOLING_DEFAULT, 0, json_object_get(c, "unit"),
                             name, "as the folder says");
        }
        json_decref(cases);
        iso_model_free(model);
    }
    (void)state;
}

/* A matrix of the logits of its own, which has the numbers of the embedding here. */
void test_untied_head(void **state) {
    static const uint32_t ids[] = {3, 31, 2, 17};
    static float want[4 * MOST_V], got[4 * MOST_V];
    files f;
    iso_error error = {0};
    iso_model *tied = load("bert"), *model = NULL;
    blob config = read_file("bert", "config.json"),
         weights = read_file("bert", "model.safetensors");
    json_t *root = json_loadb((const char *)config.bytes, config.count, 0, NULL);
    json_t *header = read_header(&weights),
           *table = json_object_get(header, "bert.embeddings.word_embeddings.weight");
    const json_t *offsets = json_object_get(table, "data_offsets");
    const size_t begin = (size_t)json_integer_value(json_array_get(offsets, 0)),
                 bytes = (size_t)json_integer_value(json_array_get(offsets, 1)) - begin;
    uint64_t length;
    memcpy(&length, weights.bytes, sizeof length);
    const size_t start = 8 + (size_t)le64toh(length), end = weights.count - start;
    json_t *head = json_pack("{s:O, s:O, s:[I, I]}", "dtype", json_object_get(table, "dtype"),
                             "shape", json_object_get(table, "shape"), "data_offsets",
                             (json_int_t)end, (json_int_t)end + (json_int_t)bytes);
    assert_int_equal(json_object_set_new(header, "cls.predictions.decoder.weight", head), 0);
    unsigned char *copy = malloc(bytes);
    assert_non_null(copy);
    memcpy(copy, weights.bytes + start + begin, bytes);
    blob_add(&weights, copy, bytes);
    free(copy);
    assert_int_equal(json_object_set_new(root, "tie_word_embeddings", json_false()), 0);
    char *text = json_dumps(root, 0);
    blob b = with_header(&weights, header);
    files_make(&f);
    files_text(&f, "config.json", text);
    files_write(&f, "model.safetensors", b.bytes, b.count);
    ok(iso_model_load(&model, f.directory, NULL, NULL, &error), &error);
    const iso_model_info *info = iso_model_get_info(model);
    assert_int_equal(info->parameters,
                     iso_model_get_info(tied)->parameters + info->target_vocabulary * info->d);
    ok(iso_token_logits_f32(want, tied, ids, 4, NULL, &error), &error);
    ok(iso_token_logits_f32(got, model, ids, 4, NULL, &error), &error);
    assert_memory_equal(got, want, 4 * info->target_vocabulary * sizeof *got);
    iso_model_free(tied);
    iso_model_free(model);
    files_remove(&f);
    free(text);
    json_decref(root);
    json_decref(header);
    blob_free(&b);
    blob_free(&weights);
    blob_free(&config);
    (void)state;
}

/* Vectors of a batch in any order, on any instruction set, are those of each sequence alone. */
void test_vectors_alone_or_together(void **state) {
    for (size_t m = 0; m < ENCODERS; m++) {
        iso_model *model = load(encoders[m]);
        const size_t d = iso_model_get_info(model)->d;
        enum { COUNT = 23 };
        uint32_t ids[COUNT * 40];
        size_t lengths[COUNT], at = 0;
        static float alone[COUNT * MOST], together[COUNT * MOST];
        iso_error error = {0};
        for (size_t i = 0; i < COUNT; i++) {
            lengths[i] = 1 + i * 7 % 40;
            for (size_t t = 0; t < lengths[i]; t++)
                ids[at + t] = (uint32_t)((i * 31 + t * t * 7) % 50);
            ok(iso_sentence_embed_f32(alone + i * d, model, ids + at, &lengths[i], 1, NULL, NULL,
                                      &error),
               &error);
            at += lengths[i];
        }
        for (size_t i = 0; i < iso_isa_count(); i++) {
            const iso_context context = {.size = sizeof context, .isa = iso_isa_get(i)};
            if (iso_isa_missing(context.isa))
                continue;
            memset(together, 0, sizeof together);
            ok(iso_sentence_embed_f32(together, model, ids, lengths, COUNT, NULL, &context, &error),
               &error);
            assert_memory_equal(alone, together, COUNT * d * sizeof *alone);
        }
        iso_model_free(model);
    }
    (void)state;
}

void expect(iso_status want, const char *part, iso_status status, const iso_error *error) {
    if (status != want || !strstr(error->message, part))
        fail_msg("status %d, \"%s\"; %d and %s are expected", (int)status, error->message,
                 (int)want, part);
}

void test_encoder_arguments(void **state) {
    iso_model *model = load("distilbert-bf16"), *both = load("bart");
    const uint32_t ids[] = {3, 4, 50};
    size_t two = 2, three = 3, none = 0, huge = SIZE_MAX;
    static float y[MOST * MOST];
    iso_error e = {0};
    iso_generation *g = NULL;
    iso_sentence_options o = {sizeof o, ISOBIT_POOLING_POOLER, 0};
    expect(ISOBIT_E_UNSUPPORTED, "no pooler",
           iso_sentence_embed_f32(y, model, ids, &two, 1, &o, NULL, &e), &e);
    o.pooling = (iso_pooling)9;
    expect(ISOBIT_E_RANGE, "pooling 9",
           iso_sentence_embed_f32(y, model, ids, &two, 1, &o, NULL, &e), &e);
    o = (iso_sentence_options){sizeof o, ISOBIT_POOLING_MEAN, 2};
    expect(ISOBIT_E_RANGE, "normalize is 2",
           iso_sentence_embed_f32(y, model, ids, &two, 1, &o, NULL, &e), &e);
    o.size = 3;
    expect(ISOBIT_E_SIZE, "size", iso_sentence_embed_f32(y, model, ids, &two, 1, &o, NULL, &e), &e);
    expect(ISOBIT_E_RANGE, "id 50",
           iso_sentence_embed_f32(y, model, ids, &three, 1, NULL, NULL, &e), &e);
    expect(ISOBIT_E_DIM, "no tokens",
           iso_sentence_embed_f32(y, model, ids, &none, 1, NULL, NULL, &e), &e);
    const size_t wrap[] = {huge, 2};
    expect(ISOBIT_E_OVERFLOW, "too long",
           iso_sentence_embed_f32(y, model, ids, wrap, 2, NULL, NULL, &e), &e);
    expect(ISOBIT_E_NULL, "NULL", iso_sentence_embed_f32(NULL, model, ids, &two, 1, NULL, NULL, &e),
           &e);
    ok(iso_sentence_embed_f32(NULL, model, NULL, NULL, 0, NULL, NULL, &e), &e);
    expect(ISOBIT_E_NULL, "NULL", iso_token_logits_f32(NULL, model, ids, 2, NULL, &e), &e);
    expect(ISOBIT_E_RANGE, "id 50", iso_token_logits_f32(y, model, ids, 3, NULL, &e), &e);
    ok(iso_token_logits_f32(NULL, model, NULL, 0, NULL, &e), &e);
    const size_t places[] = {0, 2};
    expect(ISOBIT_E_RANGE, "position 2 of a sequence of 2 tokens",
           iso_token_logits_at_f32(y, model, ids, 2, places, 2, NULL, &e), &e);
    expect(ISOBIT_E_NULL, "NULL", iso_token_logits_at_f32(y, model, ids, 2, NULL, 2, NULL, &e), &e);
    expect(ISOBIT_E_RANGE, "id 50", iso_token_logits_at_f32(y, model, ids, 3, places, 2, NULL, &e),
           &e);
    expect(ISOBIT_E_UNSUPPORTED, "decoder",
           iso_token_logits_at_f32(y, both, ids, 2, places, 1, NULL, &e), &e);
    ok(iso_token_logits_at_f32(NULL, model, ids, 2, NULL, 0, NULL, &e), &e);
    expect(ISOBIT_E_UNSUPPORTED, "decoder", iso_token_logits_f32(y, both, ids, 2, NULL, &e), &e);
    /* Calls that need a decoder. */
    expect(ISOBIT_E_UNSUPPORTED, "no decoder",
           iso_logits_f32(y, model, ids, 2, ids, 2, 0, NULL, &e), &e);
    expect(ISOBIT_E_UNSUPPORTED, "no decoder",
           iso_score_f32(y, model, ids, &two, ids, &two, 1, NULL, &e), &e);
    expect(ISOBIT_E_UNSUPPORTED, "no decoder",
           iso_generate(&g, model, ids, &two, 1, NULL, NULL, &e), &e);
    assert_null(g);
    /* An encoder with a decoder gives vectors too. */
    ok(iso_sentence_embed_f32(y, both, ids, &two, 1, NULL, NULL, &e), &e);
    iso_model_free(model);
    iso_model_free(both);
    (void)state;
}

/* The folder of minilm with one file changed; what loading it and then asking for vectors say. */
static void with_file(const char *name, const char *text, iso_status load_status,
                      iso_status embed_status, const char *part) {
    static const char *const texts[] = {"config.json", "modules.json", "sentence_bert_config.json",
                                        "model.safetensors", "1_Pooling/config.json"};
    files f;
    char path[600];
    files_make(&f);
    files_path(&f, "1_Pooling", path, sizeof path);
    assert_int_equal(mkdir(path, 0700), 0);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        blob b = read_file("minilm", texts[i]);
        files_write(&f, texts[i], b.bytes, b.count);
        blob_free(&b);
    }
    /* It is asked where the other says nothing. */
    if (strcmp(name, "tokenizer_config.json") == 0)
        files_text(&f, "sentence_bert_config.json", "{}");
    files_text(&f, name, text);
    iso_model *model = NULL;
    iso_error e = {0};
    iso_status status = iso_model_load(&model, f.directory, NULL, NULL, &e);
    expect(load_status, load_status ? part : "", status, &e);
    if (!status) {
        const uint32_t ids[] = {3, 4};
        const size_t two = 2;
        float y[MOST], z[MOST];
        const iso_sentence_options own = {sizeof own, ISOBIT_POOLING_CLS, -1};
        status = iso_sentence_embed_f32(y, model, ids, &two, 1, NULL, NULL, &e);
        expect(embed_status, embed_status ? part : "", status, &e);
        ok(iso_sentence_embed_f32(z, model, ids, &two, 1, &own, NULL, &e), &e);
        /* A folder that says CLS and nothing of a length gives just that. */
        if (!embed_status && strcmp(part, "cls") == 0)
            assert_memory_equal(y, z, iso_model_get_info(model)->d * sizeof *y);
    }
    iso_model_free(model);
    files_remove(&f);
}

#define MODULE(type, path)                                                                         \
    "{\"type\":\"sentence_transformers.models." type "\",\"path\":\"" path "\"}"
#define FIRST MODULE("Transformer", "") "," MODULE("Pooling", "1_Pooling")

#define PROMPTS(name)                                                                              \
    "{\"prompts\":{\"query\":\"query: \",\"number\":3,\"\":\"\"},\"default_prompt_name\":" name "}"

void test_sentence_files(void **state) {
    static const struct {
        const char *name, *text;
        iso_status load, embed;
        const char *part;
    } cases[] = {
        {"modules.json", "{}", ISOBIT_E_JSON, 0, "a list is expected"},
        {"modules.json", "[" FIRST "]", 0, 0, ""},
        {"modules.json", "[" FIRST "," MODULE("CNN", "2_CNN") "]", 0, ISOBIT_E_UNSUPPORTED,
         "module 2, \"CNN\""},
        {"modules.json", "[" MODULE("Transformer", "") "," MODULE("Pooling", "../x") "]", 0,
         ISOBIT_E_UNSUPPORTED, "module 1"},
        {"modules.json", "[3]", 0, ISOBIT_E_UNSUPPORTED, "module 0"},
        {"1_Pooling/config.json", "{}", ISOBIT_E_CONFIG, 0, "no way of pooling"},
        {"1_Pooling/config.json", "{\"pooling_mode_lasttoken\":true}", 0, ISOBIT_E_UNSUPPORTED,
         "lasttoken"},
        {"1_Pooling/config.json",
         "{\"pooling_mode_mean_tokens\":true,\"pooling_mode_cls_token\":true}", 0,
         ISOBIT_E_UNSUPPORTED, "cls_token"},
        {"1_Pooling/config.json", /* what is said is the first that isobit lacks */
         "{\"pooling_mode_mean_tokens\":true,\"pooling_mode_cls_token\":true,"
         "\"pooling_mode_max_tokens\":true}",
         0, ISOBIT_E_UNSUPPORTED, "cls_token"},
        {"sentence_bert_config.json", "{\"max_seq_length\":0}", ISOBIT_E_CONFIG, 0,
         "max_seq_length"},
        {"sentence_bert_config.json", "{\"max_seq_length\":null}", 0, 0, ""},
        {"sentence_bert_config.json", "[", ISOBIT_E_JSON, 0, "sentence_bert_config.json"},
        {"sentence_bert_config.json", "{\"max_seq_length\":1}", 0, 0, ""},
        {"sentence_bert_config.json", "{\"max_seq_length\":2147483648}", 0, 0, ""},
        {"sentence_bert_config.json", "{\"max_seq_length\":2147483647.5}", ISOBIT_E_CONFIG, 0,
         "max_seq_length"},
        {"sentence_bert_config.json", "{\"do_lower_case\":1}", ISOBIT_E_CONFIG, 0,
         "\"do_lower_case\" must be true or false"},
        {"tokenizer_config.json", "[", ISOBIT_E_JSON, 0, "tokenizer_config.json"},
        {"tokenizer_config.json", "{\"model_max_length\":0}", ISOBIT_E_CONFIG, 0,
         "tokenizer_config.json: \"model_max_length\""},
        {"tokenizer_config.json", "{\"model_max_length\":1e30}", 0, 0, ""},
        {"config_sentence_transformers.json", "[", ISOBIT_E_JSON, 0,
         "config_sentence_transformers.json"},
        {"config_sentence_transformers.json", PROMPTS("\"query\""), 0, 0, ""},
        {"config_sentence_transformers.json", PROMPTS("null"), 0, 0, ""},
        {"config_sentence_transformers.json", PROMPTS("\"other\""), ISOBIT_E_CONFIG, 0,
         "\"default_prompt_name\" is \"other\", which is none of the prompts"},
        {"config_sentence_transformers.json", PROMPTS("\"number\""), ISOBIT_E_CONFIG, 0,
         "\"default_prompt_name\" is \"number\", which is none of the prompts"},
        {"config_sentence_transformers.json", PROMPTS("3"), ISOBIT_E_CONFIG, 0,
         "\"default_prompt_name\" is 3, which is none of the prompts"},
        {"config.json", "{\"model_type\":\"bert\",\"position_embedding_type\":\"relative_key\"}",
         ISOBIT_E_UNSUPPORTED, 0, "only absolute"},
        {"config.json", "{\"model_type\":\"bert\",\"is_decoder\":true}", ISOBIT_E_UNSUPPORTED, 0,
         "is_decoder"},
        {"config.json", "{\"model_type\":\"roberta\",\"max_position_embeddings\":2}",
         ISOBIT_E_CONFIG, 0, "more than 2"},
        {"config.json", "{\"model_type\":\"bert\",\"hidden_size\":10,\"num_attention_heads\":3}",
         ISOBIT_E_CONFIG, 0, "num_attention_heads"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        with_file(cases[i].name, cases[i].text, cases[i].load, cases[i].embed, cases[i].part);
    /* Nobody asks a decoder alone for vectors, nor looks at more where modules.json is not there.
     */
    static const char *const unread[][2] = {{"gpt2", "modules.json"},
                                            {"t5", "sentence_bert_config.json"}};
    for (size_t k = 0; k < 2; k++) {
        static const char *const names[] = {"config.json", "model.safetensors"};
        files f;
        iso_model *model = NULL;
        iso_error e = {0};
        files_make(&f);
        for (size_t i = 0; i < 2; i++) {
            blob b = read_file(unread[k][0], names[i]);
            files_write(&f, names[i], b.bytes, b.count);
            blob_free(&b);
        }
        files_text(&f, unread[k][1], "[");
        ok(iso_model_load(&model, f.directory, NULL, NULL, &e), &e);
        assert_true(iso_model_get_info(model)->decoder_layers > 0);
        iso_model_free(model);
        files_remove(&f);
    }
    /* As long as a file may be, and a byte more. */
    static char text[(1 << 20) + 2];
    for (size_t bytes = 1 << 20; bytes <= (1 << 20) + 1; bytes++) {
        memset(text, ' ', bytes);
        text[0] = '{';
        text[bytes - 1] = '}';
        with_file("sentence_bert_config.json", text, bytes == 1 << 20 ? ISOBIT_OK : ISOBIT_E_LIMIT,
                  0, "sentence_bert_config.json");
    }
    (void)state;
}
