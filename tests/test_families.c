/* SPDX-License-Identifier: MIT
 *
 * The families of models: of each a checkpoint that transformers wrote (tests/data/models, made by
 * tools/make_golden.py; test_model compares what encoder-decoders compute). Here: every tensor is
 * needed, and of the shape that config.json says; what encoders alone compute, against PyTorch in
 * double precision.
 */
#include "model_files.h"

#include <isobit/model.h>

#include "internal.h"

#include <endian.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>
#include <jansson.h>

typedef struct family {
    const char *name;
    const char *optional[3]; /* parts of names that the family can do without */
} family;

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
    {"opt-f16", {NULL}},
};

static void ok(iso_status status, const iso_error *error) {
    if (status)
        fail_msg("status %d: %s", (int)status, error->message);
}

/* A file of the family's directory. */
static blob read_file(const char *directory, const char *name) {
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
static iso_status load_folder(const char *name, const char *config, const blob *weights,
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

static iso_status load_with(const char *name, const blob *weights, iso_error *error) {
    return load_folder(name, NULL, weights, error);
}

static int is_optional(const family *f, const char *tensor) {
    for (size_t i = 0; i < sizeof f->optional / sizeof *f->optional; i++)
        if (f->optional[i] && strstr(tensor, f->optional[i]))
            return 1;
    return 0;
}

/* The header of the weights, parsed. */
static json_t *read_header(const blob *weights) {
    uint64_t bytes;
    memcpy(&bytes, weights->bytes, sizeof bytes);
    bytes = le64toh(bytes);
    json_t *header = json_loadb((const char *)weights->bytes + 8, (size_t)bytes, 0, NULL);
    assert_non_null(header);
    return header;
}

/* The same file with another header; offsets of the data stay. */
static blob with_header(const blob *weights, const json_t *header) {
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

enum { MOST = 64, MOST_V = 64 };

static iso_model *load(const char *name) {
    char path[600];
    iso_model *model = NULL;
    iso_error error = {0};
    (void)snprintf(path, sizeof path, "%s/models/%s", ISOBIT_TEST_DATA, name);
    ok(iso_model_load(&model, path, NULL, NULL, &error), &error);
    return model;
}

static json_t *load_cases(const char *name) {
    char path[600];
    (void)snprintf(path, sizeof path, "%s/models/%s/expected.json", ISOBIT_TEST_DATA, name);
    json_t *cases = json_load_file(path, 0, NULL);
    assert_non_null(cases);
    return cases;
}

static size_t read_ids(const json_t *list, uint32_t *ids) {
    assert_true(json_array_size(list) <= MOST);
    for (size_t i = 0; i < json_array_size(list); i++)
        ids[i] = (uint32_t)json_integer_value(json_array_get(list, i));
    return json_array_size(list);
}

/* Rows of numbers, or one row. */
static void check_close(const json_t *list, const float *values, size_t count, const char *name,
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

static void check_vector(const iso_model *model, const uint32_t *ids, size_t length,
                         iso_pooling pooling, int normalize, const json_t *want, const char *name,
                         const char *what) {
    float y[MOST];
    iso_error error = {0};
    const iso_sentence_options options = {sizeof options, pooling, normalize};
    ok(iso_sentence_embed_f32(y, model, ids, &length, 1, &options, NULL, &error), &error);
    check_close(want, y, iso_model_get_info(model)->d, name, what);
}

static const char *const encoders[] = {"bert", "roberta-f16", "distilbert-bf16", "minilm",
                                       "t5-encoder-bf16"};
#define ENCODERS (sizeof encoders / sizeof *encoders)

static void test_encoders(void **state) {
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

/* Vectors of a batch in any order, on any instruction set, are those of each sequence alone. */
static void test_vectors_alone_or_together(void **state) {
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

static void expect(iso_status want, const char *part, iso_status status, const iso_error *error) {
    if (status != want || !strstr(error->message, part))
        fail_msg("status %d, \"%s\"; %d and %s are expected", (int)status, error->message,
                 (int)want, part);
}

static void test_encoder_arguments(void **state) {
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

/* ------------------------------------------------------------------------------ decoders alone */

static const char *const decoders[] = {
    "gpt2",       "gpt2-untied-f16", "llama",          "llama3-bf16",    "qwen2-f16",
    "mistral",    "llama-yarn",      "llama-longrope", "mistral-window", "qwen2-window",
    "qwen3-bf16", "phi3-bf16",       "phi3-longrope",  "gemma-bf16",     "opt-f16"};
#define DECODERS (sizeof decoders / sizeof *decoders)

static void test_decoders(void **state) {
    static float logits[MOST * MOST_V], other[MOST * MOST_V];
    for (size_t m = 0; m < DECODERS; m++) {
        const char *name = decoders[m];
        iso_model *model = load(name);
        const iso_model_info *info = iso_model_get_info(model);
        const size_t V = info->target_vocabulary;
        json_t *cases = load_cases(name), *c;
        assert_int_equal(info->encoder_layers, 0);
        assert_int_equal(info->max_positions, 40);
        size_t i;
        json_array_foreach(cases, i, c) {
            uint32_t ids[MOST];
            iso_error error = {0};
            const size_t S = read_ids(json_object_get(c, "source"), ids);
            ok(iso_token_logits_f32(logits, model, ids, S, NULL, &error), &error);
            check_close(json_object_get(c, "logits"), logits, S * V, name, "logits");
            for (int stepwise = 0; stepwise < 2; stepwise++) {
                memset(other, 0, sizeof other);
                ok(iso_logits_f32(other, model, NULL, 0, ids, S, stepwise, NULL, &error), &error);
                assert_memory_equal(logits, other, S * V * sizeof *logits);
            }
        }
        json_decref(cases);
        iso_model_free(model);
    }
    (void)state;
}

/* ln softmax(x)[token] in double precision. */
static double log_prob(const float *x, size_t V, uint32_t token) {
    double most = -INFINITY, sum = 0;
    for (size_t v = 0; v < V; v++)
        most = (double)x[v] > most ? (double)x[v] : most;
    for (size_t v = 0; v < V; v++)
        sum += exp((double)x[v] - most);
    return (double)x[token] - most - log(sum);
}

/* A continuation is as probable as the logits of prompt and continuation together say; in batches
 * of any kind, on any instruction set, with the same bits. */
static void test_decoder_scores(void **state) {
    enum { COUNT = 19 };
    static float logits[MOST * MOST_V];
    for (size_t m = 0; m < DECODERS; m++) {
        iso_model *model = load(decoders[m]);
        const size_t V = iso_model_get_info(model)->target_vocabulary;
        static uint32_t prompts[COUNT * 20], targets[COUNT * 20];
        static float alone[COUNT * 20], together[COUNT * 20];
        size_t S[COUNT], T[COUNT], s = 0, t = 0;
        iso_error error = {0};
        for (size_t i = 0; i < COUNT; i++) {
            uint32_t all[40];
            S[i] = 1 + i * 7 % 20;
            T[i] = i * 5 % 21;
            for (size_t j = 0; j < S[i]; j++)
                all[j] = prompts[s + j] = (uint32_t)((i * 13 + j * j * 3) % V);
            for (size_t j = 0; j < T[i]; j++)
                all[S[i] + j] = targets[t + j] = (uint32_t)((i + j * 11) % V);
            ok(iso_score_f32(alone + t, model, prompts + s, &S[i], targets + t, &T[i], 1, NULL,
                             &error),
               &error);
            ok(iso_token_logits_f32(logits, model, all, S[i] + T[i], NULL, &error), &error);
            for (size_t j = 0; j < T[i]; j++) {
                const double want = log_prob(logits + (S[i] - 1 + j) * V, V, targets[t + j]);
                if (!(fabs((double)alone[t + j] - want) <= 1e-5))
                    fail_msg("%s, token %zu: %g, not %g", decoders[m], j, (double)alone[t + j],
                             want);
            }
            s += S[i];
            t += T[i];
        }
        for (size_t i = 0; i < iso_isa_count(); i++) {
            const iso_context context = {.size = sizeof context, .isa = iso_isa_get(i)};
            if (iso_isa_missing(context.isa))
                continue;
            memset(together, 0, sizeof together);
            ok(iso_score_f32(together, model, prompts, S, targets, T, COUNT, &context, &error),
               &error);
            assert_memory_equal(alone, together, t * sizeof *alone);
        }
        iso_model_free(model);
    }
    (void)state;
}

static int second_of(void *user, const iso_sequence *s) {
    const iso_hypothesis *whole = user;
    assert_memory_equal(s->ids, whole->ids, s->length * sizeof *s->ids);
    return s->length == 2;
}

/* What is said of a prompt that leaves no room, and how much of it a default takes. */
static void test_prompts(void **state) {
    iso_model *model = load("gpt2"), *total = load("gpt2-untied-f16");
    uint32_t ids[80];
    const size_t lengths[] = {40, 3}, thirty = 30, six = 6;
    iso_error e = {0};
    iso_generation *g = NULL;
    for (uint32_t i = 0; i < 80; i++)
        ids[i] = 3 + i * 7 % 40;
    /* The folder says 12 new tokens: where positions lack, as many as there are. The last token
     * needs none. */
    ok(iso_generate(&g, model, ids, lengths, 2, NULL, NULL, &e), &e);
    assert_int_equal(g->best[0].length, 1);
    assert_in_range(g->best[1].length, 1, 12);
    iso_generation_free(g);
    /* Who asks for more than there is, is told. */
    iso_generate_options o = {.size = sizeof o, .max_new_tokens = 2};
    expect(ISOBIT_E_LIMIT, "prompt 0 has 40 tokens, and up to 2 may follow",
           iso_generate(&g, model, ids, lengths, 2, &o, NULL, &e), &e);
    o = (iso_generate_options){.size = sizeof o, .max_length = 40};
    expect(ISOBIT_E_LIMIT, "max_length, which counts them, is 40",
           iso_generate(&g, model, ids, lengths, 2, &o, NULL, &e), &e);
    o = (iso_generate_options){.size = sizeof o, .max_length = 8, .min_length = 8};
    ok(iso_generate(&g, model, ids, &six, 1, &o, NULL, &e), &e);
    assert_int_equal(g->best[0].length, 2);
    iso_generation_free(g);
    /* A stop is of what is generated: not begun by the end of the prompt. */
    ok(iso_generate(&g, model, ids, &six, 1, NULL, NULL, &e), &e);
    const size_t free_length = g->best[0].length;
    const uint32_t stop[] = {2, ids[5], g->best[0].ids[0]};
    iso_generation_free(g);
    o = (iso_generate_options){.size = sizeof o, .stop_ids = stop, .stop_count = 3};
    ok(iso_generate(&g, model, ids, &six, 1, &o, NULL, &e), &e);
    assert_true(free_length > 1);
    assert_int_equal(g->best[0].length, free_length);
    /* Nor does a function that is asked see the prompt. */
    const iso_hypothesis whole = g->best[0];
    o = (iso_generate_options){
        .size = sizeof o, .is_last = second_of, .is_last_user = (void *)&whole};
    iso_generation *two;
    ok(iso_generate(&two, model, ids, &six, 1, &o, NULL, &e), &e);
    assert_int_equal(two->best[0].length, 2);
    iso_generation_free(two);
    iso_generation_free(g);
    /* Of the other folder max_length is 30, the prompt included. */
    expect(ISOBIT_E_LIMIT, "prompt 0 has 30 tokens",
           iso_generate(&g, total, ids, &thirty, 1, NULL, NULL, &e), &e);
    o = (iso_generate_options){.size = sizeof o, .attention = 1};
    expect(ISOBIT_E_UNSUPPORTED, "attention", iso_generate(&g, model, ids, &six, 1, &o, NULL, &e),
           &e);
    iso_model_free(model);
    iso_model_free(total);
    (void)state;
}

/* Samples of prompts in any company are those of each alone: sequence i is first_source + i. */
static void test_samples_of_prompts(void **state) {
    enum { COUNT = 9, SAMPLES = 5 };
    iso_model *model = load("gpt2");
    uint32_t ids[COUNT * 20];
    size_t lengths[COUNT], first[COUNT], at = 0, different = 0;
    iso_error e = {0};
    for (size_t i = 0; i < COUNT; i++) {
        lengths[i] = 1 + i * 5 % 17;
        first[i] = at;
        for (size_t t = 0; t < lengths[i]; t++, at++)
            ids[at] = (uint32_t)(3 + (i * 3 + t * 5) % 40);
    }
    iso_generate_options o = {.size = sizeof o,
                              .hypotheses = SAMPLES,
                              .sampling = ISOBIT_SAMPLING_ON,
                              .temperature = 1.5f,
                              .seed = {99}};
    for (size_t isa = 0; isa < iso_isa_count(); isa++) {
        const iso_context context = {.size = sizeof context, .isa = iso_isa_get(isa)};
        if (iso_isa_missing(context.isa))
            continue;
        iso_generation *all, *one;
        o.first_source = 0;
        ok(iso_generate(&all, model, ids, lengths, COUNT, &o, &context, &e), &e);
        for (size_t i = 0; i < COUNT; i++) {
            o.first_source = i;
            ok(iso_generate(&one, model, ids + first[i], &lengths[i], 1, &o, NULL, &e), &e);
            for (size_t h = 0; h < SAMPLES; h++) {
                const iso_hypothesis *a = &all->best[i * SAMPLES + h], *b = &one->best[h];
                assert_int_equal(a->length, b->length);
                assert_memory_equal(a->ids, b->ids, a->length * sizeof *a->ids);
                assert_memory_equal(a->log_probs, b->log_probs, a->length * sizeof(float));
                different += h && memcmp(a->ids, one->best[0].ids, sizeof *a->ids) != 0;
            }
            iso_generation_free(one);
        }
        iso_generation_free(all);
    }
    assert_true(different > COUNT);
    iso_model_free(model);
    (void)state;
}

static void test_decoder_arguments(void **state) {
    iso_model *model = load("gpt2");
    uint32_t ids[42] = {0};
    const size_t two = 2, most = 40, none = 0;
    static float y[MOST * MOST_V];
    iso_error e = {0};
    expect(ISOBIT_E_UNSUPPORTED, "no encoder", iso_encode_f32(y, model, ids, 2, NULL, &e), &e);
    expect(ISOBIT_E_UNSUPPORTED, "no encoder",
           iso_sentence_embed_f32(y, model, ids, &two, 1, NULL, NULL, &e), &e);
    expect(ISOBIT_E_UNSUPPORTED, "must be NULL",
           iso_logits_f32(y, model, ids, 2, ids, 2, 0, NULL, &e), &e);
    expect(ISOBIT_E_LIMIT, "40 positions", iso_token_logits_f32(y, model, ids, 41, NULL, &e), &e);
    expect(ISOBIT_E_LIMIT, "40 positions",
           iso_score_f32(y, model, ids, &most, ids, &two, 1, NULL, &e), &e);
    expect(ISOBIT_E_DIM, "no tokens", iso_score_f32(y, model, ids, &none, ids, &two, 1, NULL, &e),
           &e);
    ids[1] = 50;
    expect(ISOBIT_E_RANGE, "id 50", iso_token_logits_f32(y, model, ids, 2, NULL, &e), &e);
    iso_model_free(model);
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

static void test_sentence_files(void **state) {
    static const struct {
        const char *name, *text;
        iso_status load, embed;
        const char *part;
    } cases[] = {
        {"modules.json", "{}", ISOBIT_E_JSON, 0, "a list is expected"},
        {"modules.json", "[" FIRST "]", 0, 0, ""},
        {"modules.json", "[" FIRST "," MODULE("Dense", "2_Dense") "]", 0, ISOBIT_E_UNSUPPORTED,
         "module 2, \"Dense\""},
        {"modules.json", "[" MODULE("Transformer", "") "," MODULE("Pooling", "../x") "]", 0,
         ISOBIT_E_UNSUPPORTED, "module 1"},
        {"modules.json", "[3]", 0, ISOBIT_E_UNSUPPORTED, "module 0"},
        {"1_Pooling/config.json", "{}", ISOBIT_E_CONFIG, 0, "no way of pooling"},
        {"1_Pooling/config.json", "{\"pooling_mode_lasttoken\":true}", 0, ISOBIT_E_UNSUPPORTED,
         "lasttoken"},
        {"1_Pooling/config.json",
         "{\"pooling_mode_mean_tokens\":true,\"pooling_mode_cls_token\":true}", 0,
         ISOBIT_E_UNSUPPORTED, "cls_token"},
        {"sentence_bert_config.json", "{\"max_seq_length\":0}", ISOBIT_E_CONFIG, 0,
         "max_seq_length"},
        {"sentence_bert_config.json", "{\"max_seq_length\":null}", 0, 0, ""},
        {"sentence_bert_config.json", "[", ISOBIT_E_JSON, 0, "sentence_bert_config.json"},
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
    (void)state;
}

/* ------------------------------------------------------------------------------------------ T5 */

/* For every distance transformers was asked for its bucket. */
static void test_first_distances(void **state) {
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

typedef struct changed_config {
    const char *folder, *key, *value;
    iso_status status;
    const char *part; /* of the sentence */
} changed_config;

static void check_configs(const changed_config *cases, size_t count) {
    for (const changed_config *c = cases; c < cases + count; c++) {
        iso_error error = {0};
        const iso_status status = load_changed(c->folder, c->key, c->value, &error);
        expect(c->status, c->part, status, &error);
    }
}

static void test_t5_config(void **state) {
    static const changed_config cases[] = {
        {"t5", "d_kv", "0", ISOBIT_E_CONFIG, "\"d_kv\" is 0; a whole number from 1 to 512"},
        {"t5", "d_kv", "513", ISOBIT_E_CONFIG, "\"d_kv\" is 513"},
        {"t5", "d_kv", "16", ISOBIT_E_SHAPE, "SelfAttention.q.weight"},
        {"t5", "num_heads", "0", ISOBIT_E_CONFIG, "\"num_heads\" is 0"},
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
static void test_t5_names(void **state) {
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
static iso_status try_longer(iso_model **model, const char *name, const char *changes,
                             size_t positions, iso_error *error) {
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

static iso_model *load_as(const char *name, const char *changes) {
    iso_model *model = NULL;
    iso_error error = {0};
    ok(try_longer(&model, name, changes, 0, &error), &error);
    return model;
}

/* A folder of both as an encoder alone: what there is of the decoder is not read. */
static void test_t5_encoders(void **state) {
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

static void test_t5_info(void **state) {
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

/* -------------------------------------------------------------------- Phi-3, Gemma and OPT */

static void test_phi3_gemma_opt_config(void **state) {
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
        {"gemma-bf16", "model_type", "\"gemma2\"", ISOBIT_E_UNSUPPORTED,
         "model_type \"gemma2\" is not one of"},
        {"opt-f16", "word_embed_proj_dim", "12", ISOBIT_E_UNSUPPORTED,
         "\"word_embed_proj_dim\" is 12; only the value of \"hidden_size\", 24"},
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
static void test_phi3_gemma_words(void **state) {
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

static void test_longer_texts(void **state) {
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

static void test_longer_arguments(void **state) {
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

/* --------------------------------------------------------------------------------------- Llama */

#define YARN(numbers) "{\"rope_type\":\"yarn\"" numbers "}"
#define LONG(numbers) "{\"rope_type\":\"longrope\",\"long_factor\":[1,2,3,4]" numbers "}"
#define LLAMA3(numbers) "{\"rope_type\":\"llama3\",\"factor\":8" numbers "}"

static void test_llama_config(void **state) {
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
        {"llama-yarn", "original_max_position_embeddings", "0", ISOBIT_E_CONFIG,
         "original_max_position_embeddings"},
        {"llama", "rope_scaling", YARN(",\"factor\":4,\"beta_fast\":2,\"beta_slow\":3"),
         ISOBIT_E_CONFIG, "contradict"},
        {"llama", "rope_scaling", YARN(",\"factor\":4,\"beta_fast\":0,\"beta_slow\":0"), ISOBIT_OK,
         ""},
        {"llama", "rope_scaling", YARN(",\"factor\":4,\"beta_slow\":-1"), ISOBIT_E_CONFIG,
         "beta_slow"},
        {"llama", "rope_scaling", YARN(",\"factor\":4,\"mscale\":\"1\""), ISOBIT_E_CONFIG,
         "\"mscale\""},
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
        {"llama", "max_position_embeddings", "1e6", ISOBIT_OK, ""},
        {"llama", "hidden_act", "\"nonsense\"", ISOBIT_E_UNSUPPORTED, "nonsense"},
        {"mistral", "sliding_window", "0", ISOBIT_E_CONFIG, "sliding_window"},
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
static void test_rope_numbers(void **state) {
    static const struct {
        const char *folder, *a, *b;
        int same;
    } cases[] = {
#define STRETCH(type, numbers) "{\"rope_scaling\":{\"type\":\"" type "\"" numbers "}}"
#define FOUR ",\"factor\":4,\"original_max_position_embeddings\":20"
#define SHORT "\"short_factor\":[1,1.25,2,3.5]"
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
static void test_new_keys(void **state) {
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
static void test_window(void **state) {
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
static void test_long_windows(void **state) {
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensors_are_needed),
        cmocka_unit_test(test_shapes_are_checked),
        cmocka_unit_test(test_encoders),
        cmocka_unit_test(test_vectors_alone_or_together),
        cmocka_unit_test(test_encoder_arguments),
        cmocka_unit_test(test_sentence_files),
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
        cmocka_unit_test(test_phi3_gemma_opt_config),
        cmocka_unit_test(test_phi3_gemma_words),
        cmocka_unit_test(test_longer_texts),
        cmocka_unit_test(test_longer_arguments),
        cmocka_unit_test(test_llama_config),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_long_windows),
        cmocka_unit_test(test_rope_numbers),
        cmocka_unit_test(test_new_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
