/* SPDX-License-Identifier: MIT
 *
 * Dense modules of sentence-transformers, between pooling and normalization: against golden vectors
 * (tools/make_dense.py), against act(W x + b) in double precision, and what is refused.
 */
#include "test_families.h"

/* A folder of minilm with a folder of each of these names in it. */
static const char *const folders[] = {"1_Pooling", "2_Dense", "3_Dense", "4_Normalize"};
#define FOLDERS (sizeof folders / sizeof *folders)
enum { D = 24, MOST_WIDE = 40 };

/* The folder `name` of f. */
static files inner(const files *f, const char *name) {
    files made;
    (void)snprintf(made.directory, sizeof made.directory, "%.40s/%.16s", f->directory, name);
    return made;
}

static void make_folder(files *f) {
    static const char *const texts[] = {"config.json", "modules.json", "model.safetensors",
                                        "1_Pooling/config.json"};
    files_make(f);
    for (size_t i = 0; i < FOLDERS; i++) {
        const files in = inner(f, folders[i]);
        assert_int_equal(mkdir(in.directory, 0700), 0);
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        blob b = read_file("minilm", texts[i]);
        files_write(f, texts[i], b.bytes, b.count);
        blob_free(&b);
    }
}

static void remove_folder(const files *f) {
    for (size_t i = 0; i < FOLDERS; i++) {
        const files in = inner(f, folders[i]);
        files_remove(&in);
    }
    files_remove(f);
}

#define MODULE(type, path)                                                                         \
    "{\"type\":\"sentence_transformers.models." type "\",\"path\":\"" path "\"}"
#define FIRST MODULE("Transformer", "") "," MODULE("Pooling", "1_Pooling")
#define DENSE "," MODULE("Dense", "2_Dense")
#define DENSE_2 "," MODULE("Dense", "3_Dense")
#define LENGTH "," MODULE("Normalize", "4_Normalize")

/* ------------------------------------------------------------------------------ golden vectors */

/* As text: "mean yes 0.1 ...", a line for each text. */
static double *read_vectors(const char *name, const char *how, size_t count, size_t d) {
    blob b = read_file(name, "vectors.txt");
    blob_add(&b, "", 1);
    double *y = calloc(count * d, sizeof *y);
    assert_non_null(y);
    size_t found = 0;
    for (char *rest, *line = strtok_r((char *)b.bytes, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        char *at = line + strlen(how);
        if (strncmp(line, how, strlen(how)) != 0)
            continue;
        assert_true(found < count);
        for (size_t j = 0; j < d; j++)
            y[found * d + j] = strtod(at, &at);
        assert_int_equal(*at, 0);
        found++;
    }
    assert_int_equal(found, count);
    blob_free(&b);
    return y;
}

static void check_near(const float *y, const double *want, size_t count, const char *what) {
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)y[i] - want[i]) <= 2e-5))
            fail_msg("%s: number %zu is %.9g, not %.9g", what, i, (double)y[i], want[i]);
}

/* sentence-t5: an encoder of T5 alone, whose vectors have fewer numbers than the model is wide. */
void test_dense_golden(void **state) {
    iso_model *model = load("sentence-t5");
    const iso_model_info *info = iso_model_get_info(model);
    blob text = read_file("sentence-t5", "ids.json");
    json_t *all = json_loadb((const char *)text.bytes, text.count, 0, NULL), *one;
    enum { COUNT = 13, WIDTH = 12 };
    uint32_t ids[COUNT * MOST];
    size_t lengths[COUNT], total = 0, i;
    static float y[COUNT * WIDTH], alone[WIDTH];
    iso_error e = {0};
    assert_int_equal(json_array_size(all), COUNT);
    assert_int_equal(info->decoder_layers, 0);
    assert_int_equal(info->d, 16);
    assert_int_equal(info->sentence_d, WIDTH);
    assert_int_equal(info->sentence_max_length, 24);
    json_array_foreach(all, i, one) total += lengths[i] = read_ids(one, ids + total);
    double *want = read_vectors("sentence-t5", "mean yes", COUNT, WIDTH);
    ok(iso_sentence_embed_f32(y, model, ids, lengths, COUNT, NULL, NULL, &e), &e);
    check_near(y, want, COUNT * WIDTH, "sentence-t5");
    free(want);
    want = read_vectors("sentence-t5", "max no", COUNT, WIDTH);
    const iso_sentence_options other = {sizeof other, ISOBIT_POOLING_MAX, -1};
    ok(iso_sentence_embed_f32(y, model, ids, lengths, COUNT, &other, NULL, &e), &e);
    check_near(y, want, COUNT * WIDTH, "sentence-t5, max");
    free(want);
    /* Alone or together, on any instruction set and with any threads the same bits. */
    iso_pool *pool = NULL;
    assert_int_equal(iso_pool_create(&pool, 2), ISOBIT_OK);
    for (size_t k = 0; k < iso_isa_count(); k++) {
        const iso_context context = {.size = sizeof context,
                                     .isa = iso_isa_get(k),
                                     .executor = k % 2 ? NULL : iso_pool_executor(pool)};
        if (iso_isa_missing(context.isa))
            continue;
        for (size_t n = 0, at = 0; n < COUNT; at += lengths[n++]) {
            ok(iso_sentence_embed_f32(alone, model, ids + at, &lengths[n], 1, &other, &context, &e),
               &e);
            assert_memory_equal(alone, y + n * WIDTH, sizeof alone);
        }
    }
    iso_pool_destroy(pool);
    json_decref(all);
    blob_free(&text);
    iso_model_free(model);
    (void)state;
}

/* ------------------------------------------------------------------------ in double precision */

/* What a module computes, and its weights as doubles. */
typedef struct layer {
    size_t in, out;
    int bias;
    const char *act;
    double w[MOST_WIDE * MOST_WIDE], b[MOST_WIDE];
} layer;

static double apply(const char *act, double x) {
    return strcmp(act, "Tanh") == 0   ? tanh(x)
           : strcmp(act, "ReLU") == 0 ? (x > 0 ? x : 0)
           : strcmp(act, "GELU") == 0 ? 0.5 * x * (1 + erf(x / sqrt(2)))
           : strcmp(act, "SiLU") == 0 ? x / (1 + exp(-x))
                                      : x;
}

/* Writes the folder of a module, with numbers that BF16 has, in F32 or BF16. */
static void write_layer(layer *l, const files *f, uint64_t seed, int half) {
    builder b = {.state = seed};
    char config[300], shape[40];
    static unsigned char w[MOST_WIDE * MOST_WIDE * 4], bias[MOST_WIDE * 4];
    const size_t size = half ? 2 : 4;
    for (size_t i = 0; i < l->out * l->in + l->out; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const int of_bias = i >= l->out * l->in;
        const size_t at = of_bias ? i - l->out * l->in : i;
        const float x = (float)((int)(seed >> 56) - 128) / 256; /* 8 bits */
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        *(of_bias ? &l->b[at] : &l->w[at]) = of_bias && !l->bias ? 0 : (double)x;
        bits = htole32(half ? bits >> 16 : bits);
        memcpy((of_bias ? bias : w) + at * size, &bits, size);
    }
    (void)snprintf(shape, sizeof shape, "%zu,%zu", l->out, l->in);
    builder_given(&b, "linear.weight", half ? "BF16" : "F32", shape, w, l->out * l->in * size);
    (void)snprintf(shape, sizeof shape, "%zu", l->out);
    builder_given(&b, "linear.bias", half ? "BF16" : "F32", shape, bias, l->out * size);
    builder_write(&b, f);
    (void)snprintf(config, sizeof config,
                   "{\"in_features\":%zu,\"out_features\":%zu,\"bias\":%s,"
                   "\"activation_function\":\"torch.nn.modules.activation.%s\"}",
                   l->in, l->out, l->bias ? "true" : "false", l->act);
    files_text(f, "config.json", config);
}

static void compute(const layer *l, double *y, const double *x) {
    for (size_t i = 0; i < l->out; i++) {
        double sum = l->b[i];
        for (size_t j = 0; j < l->in; j++)
            sum += l->w[i * l->in + j] * x[j];
        y[i] = apply(l->act, sum);
    }
}

/* Behind the means that transformers computes, and behind what int8 makes of the encoder. */
void test_dense_layers(void **state) {
    static const char *const acts[] = {"Identity", "Tanh", "ReLU", "GELU", "SiLU"};
    static const size_t widths[][2] = {{40, 12}, {1, 0}, {24, 17}, {33, 40}, {12, 1}};
    for (size_t a = 0; a < 5; a++) {
        static layer l[2];
        files f;
        iso_model *model = NULL, *int8 = NULL;
        iso_error e = {0};
        const size_t count = widths[a][1] ? 2 : 1, out = widths[a][count - 1];
        json_t *cases = load_cases("minilm"), *c;
        size_t i;
        make_folder(&f);
        l[0] = (layer){.in = D, .out = widths[a][0], .bias = a % 2 == 0, .act = acts[a]};
        l[1] = (layer){.in = widths[a][0], .out = widths[a][1], .bias = a % 2, .act = acts[4 - a]};
        for (size_t k = 0; k < count; k++) {
            const files in = inner(&f, folders[1 + k]);
            write_layer(&l[k], &in, a * 2 + k + 1, (a + k) % 2 == 1);
        }
        files_text(&f, "modules.json",
                   count == 2 ? "[" FIRST DENSE DENSE_2 "]" : "[" FIRST DENSE LENGTH "]");
        ok(iso_model_load(&model, f.directory, NULL, NULL, &e), &e);
        const iso_load_options options = {.size = sizeof options, .compute = ISOBIT_COMPUTE_INT8};
        ok(iso_model_load(&int8, f.directory, &options, NULL, &e), &e);
        const iso_model_info *info = iso_model_get_info(model);
        assert_int_equal(info->sentence_d, out);
        /* Counted as any other weights. */
        size_t more = 0;
        for (size_t k = 0; k < count; k++)
            more += l[k].out * (l[k].in + (l[k].bias ? 1 : 0));
        assert_int_equal(info->parameters, 11816 + more);
        assert_int_equal(iso_model_get_info(int8)->parameters, 11816 + more);
        json_array_foreach(cases, i, c) {
            uint32_t ids[MOST];
            float y[40];
            static float x[MOST * D];
            double mean[D], middle[40], want[40];
            const size_t S = read_ids(json_object_get(c, "source"), ids);
            const iso_sentence_options how = {sizeof how, ISOBIT_POOLING_MEAN, -1};
            for (int as_int8 = 0; as_int8 < 2; as_int8++) {
                const iso_model *m = as_int8 ? int8 : model;
                ok(iso_encode_f32(x, m, ids, S, NULL, &e), &e);
                for (size_t j = 0; j < D; j++) {
                    mean[j] = json_number_value(json_array_get(json_object_get(c, "mean"), j));
                    for (size_t t = 0; t < S && as_int8; t++)
                        mean[j] = (t ? mean[j] : 0) + (double)x[t * D + j] / (double)S;
                }
                compute(&l[0], count == 2 ? middle : want, mean);
                if (count == 2)
                    compute(&l[1], want, middle);
                ok(iso_sentence_embed_f32(y, m, ids, &S, 1, &how, NULL, &e), &e);
                check_near(y, want, out, acts[a]);
            }
        }
        json_decref(cases);
        iso_model_free(model);
        iso_model_free(int8);
        remove_folder(&f);
    }
    (void)state;
}

/* ----------------------------------------------------------------------------- what is refused */

/* Two good modules, one file of the folder changed (NULL text: without it), and what loading and
 * then asking for vectors say. */
static void with_change(const char *name, const char *text, iso_status load_status,
                        iso_status embed_status, const char *part) {
    static layer l[2];
    files f;
    iso_model *model = NULL;
    iso_error e = {0};
    char path[120];
    make_folder(&f);
    l[0] = (layer){.in = D, .out = 40, .bias = 1, .act = "Tanh"};
    l[1] = (layer){.in = 40, .out = 12, .bias = 0, .act = "GELU"};
    for (size_t k = 0; k < 2; k++) {
        const files in = inner(&f, folders[1 + k]);
        write_layer(&l[k], &in, k + 1, 0);
    }
    files_text(&f, "modules.json", "[" FIRST DENSE DENSE_2 LENGTH "]");
    files_path(&f, name, path, sizeof path);
    if (text)
        files_text(&f, name, text);
    else
        assert_int_equal(remove(path), 0);
    const iso_status status = iso_model_load(&model, f.directory, NULL, NULL, &e);
    expect(load_status, load_status ? part : "", status, &e);
    if (!status) {
        const uint32_t ids[] = {3, 4};
        const size_t two = 2, d = iso_model_get_info(model)->sentence_d;
        float y[40];
        const iso_sentence_options own = {sizeof own, ISOBIT_POOLING_CLS, -1},
                                   half = {sizeof half, ISOBIT_POOLING_CLS, 0};
        assert_true(d == (embed_status ? D : 12) || strcmp(part, "40") == 0);
        expect(embed_status, embed_status ? part : "",
               iso_sentence_embed_f32(y, model, ids, &two, 1, NULL, NULL, &e), &e);
        expect(embed_status, embed_status ? part : "",
               iso_sentence_embed_f32(y, model, ids, &two, 1, &half, NULL, &e), &e);
        /* In place of what is not known the encoder's own vector. */
        ok(iso_sentence_embed_f32(y, model, ids, &two, 1, &own, NULL, &e), &e);
        if (embed_status) {
            float x[2 * D];
            ok(iso_encode_f32(x, model, ids, 2, NULL, &e), &e);
            assert_memory_equal(y, x, D * sizeof *y);
        }
    }
    iso_model_free(model);
    remove_folder(&f);
}

#define CONFIG(in, out, more) "{\"in_features\":" in ",\"out_features\":" out more "}"
#define ACT(name) CONFIG("24", "40", ",\"activation_function\":" name)
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01234567"
#define NO_VECTOR 0, ISOBIT_E_UNSUPPORTED

void test_dense_files(void **state) {
    static const struct {
        const char *name, *text;
        iso_status load, embed;
        const char *part;
    } cases[] = {
        /* Files that are not there, and weights of another shape. */
        {"2_Dense/config.json", NULL, ISOBIT_E_MISSING, 0, "2_Dense/config.json"},
        {"3_Dense/model.safetensors", NULL, ISOBIT_E_MISSING, 0,
         "3_Dense: there are no weights in"},
        {"2_Dense/model.safetensors", "{}", ISOBIT_E_TRUNCATED, 0, "2_Dense: model.safetensors"},
        {"3_Dense/config.json", CONFIG("40", "13", ""), ISOBIT_E_SHAPE, 0,
         "3_Dense: tensor \"linear.weight\" has rank 2 and shape [12, 40]; [13, 40] is expected"},
        /* Numbers that contradict each other, or are none. */
        {"2_Dense/config.json", CONFIG("23", "40", ""), ISOBIT_E_CONFIG, 0,
         "2_Dense/config.json: \"in_features\" is 23; the vectors that it gets have 24 numbers"},
        {"3_Dense/config.json", CONFIG("24", "12", ""), ISOBIT_E_CONFIG, 0,
         "3_Dense/config.json: \"in_features\" is 24; the vectors that it gets have 40 numbers"},
        {"2_Dense/config.json", CONFIG("1", "40", ""), ISOBIT_E_CONFIG, 0,
         "\"in_features\" is 1; the vectors that it gets have 24 numbers"},
        {"2_Dense/config.json", CONFIG("0", "40", ""), ISOBIT_E_CONFIG, 0, "\"in_features\" is 0"},
        {"2_Dense/config.json", CONFIG("24", "0", ""), ISOBIT_E_CONFIG, 0, "\"out_features\" is 0"},
        {"2_Dense/config.json", CONFIG("24", "1e9", ""), ISOBIT_E_CONFIG, 0, "\"out_features\" is"},
        {"2_Dense/config.json", CONFIG("\"24\"", "40", ""), ISOBIT_E_CONFIG, 0, "\"in_features\""},
        {"2_Dense/config.json", CONFIG("24", "40", ",\"bias\":3"), ISOBIT_E_CONFIG, 0, "\"bias\""},
        {"2_Dense/config.json", "{\"out_features\":40}", ISOBIT_E_MISSING, 0,
         "2_Dense/config.json has no key \"in_features\""},
        {"2_Dense/config.json", "{\"in_features\":24}", ISOBIT_E_MISSING, 0,
         "has no key \"out_features\""},
        {"2_Dense/config.json", "[]", ISOBIT_E_JSON, 0, "an object is expected"},
        /* The bias is there unless the file says no, and tanh unless it says another function. */
        {"2_Dense/config.json", CONFIG("24", "40", ""), 0, 0, ""},
        {"2_Dense/config.json", CONFIG("24", "40", ",\"bias\":false,\"new\":1"), 0, 0, ""},
        {"3_Dense/config.json", CONFIG("40", "12", ",\"use_residual\":false"), 0, 0, ""},
        /* Activations. */
        {"2_Dense/config.json", ACT("\"torch.nn.Tanh\""), 0, 0, ""},
        {"2_Dense/config.json", ACT("\"torch.nn.modules.activation.Softplus\""), NO_VECTOR,
         "module 2, \"Dense\", with activation_function "
         "\"torch.nn.modules.activation.Softplus\" is not supported"},
        {"2_Dense/config.json", ACT("\"torch.nn.functional.relu\""), NO_VECTOR, "functional.relu"},
        {"2_Dense/config.json", ACT("\"own.Tanh\""), NO_VECTOR, "\"own.Tanh\""},
        {"2_Dense/config.json", ACT("\"torch.nn.\""), NO_VECTOR, "\"torch.nn.\""},
        {"2_Dense/config.json", ACT("null"), NO_VECTOR, "activation_function null"},
        {"3_Dense/config.json", CONFIG("40", "12", ",\"use_residual\":true"), NO_VECTOR,
         "module 3, \"Dense\", with use_residual true"},
        {"2_Dense/config.json", CONFIG("24", "40", ",\"module_input_name\":\"token_embeddings\""),
         NO_VECTOR, "module_input_name \"token_embeddings\""},
        {"2_Dense/config.json", CONFIG("24", "40", ",\"module_output_name\":\"x\""), NO_VECTOR,
         "module_output_name \"x\""},
        {"2_Dense/config.json",
         CONFIG("24", "40",
                ",\"module_input_name\":\"sentence_embedding\","
                "\"module_output_name\":null"),
         0, 0, ""},
        {"4_Normalize/config.json", "{\"module_input_name\":\"sentence_embedding\"}", 0, 0, ""},
        {"4_Normalize/config.json", "{\"module_input_name\":\"token_embeddings\"}", NO_VECTOR,
         "module 4, \"Normalize\", with module_input_name"},
        {"4_Normalize/config.json", "3", ISOBIT_E_JSON, 0, "4_Normalize/config.json"},
        /* The order of modules, their places and their names. */
        {"modules.json", "[" MODULE("Transformer", "") DENSE "," MODULE("Pooling", "1_Pooling") "]",
         NO_VECTOR, "module 1, \"Dense\""},
        {"modules.json", "[" FIRST LENGTH DENSE "]", NO_VECTOR, "module 3, \"Dense\""},
        {"modules.json", "[" FIRST LENGTH LENGTH "]", NO_VECTOR, "module 3, \"Normalize\""},
        {"modules.json", "[" FIRST "," MODULE("Pooling", "1_Pooling") "]", NO_VECTOR,
         "module 2, \"Pooling\""},
        {"modules.json", "[" FIRST DENSE "," MODULE("LayerNorm", "3_LayerNorm") "]", NO_VECTOR,
         "module 3, \"LayerNorm\""},
        {"modules.json", "[" FIRST "," MODULE("Dense", "../2_Dense") "]", NO_VECTOR,
         "module 2, \"Dense\", with the path \"../2_Dense\""},
        {"modules.json", "[" FIRST "," MODULE("Dense", "2_/../2_Dense") "]", NO_VECTOR, "the path"},
        {"modules.json", "[" FIRST "," MODULE("Dense", "") "]", NO_VECTOR, "the path \"\""},
        {"modules.json", "[" FIRST "," MODULE("Dense", "..") "]", NO_VECTOR, "the path \"..\""},
        {"modules.json", "[" FIRST "," MODULE("Dense", "/tmp") "]", NO_VECTOR, "the path"},
        {"modules.json", "[" FIRST "," MODULE("Dense", "2_D\\u00e9nse") "]", NO_VECTOR, "the path"},
        /* 64 bytes, and one more. */
        {"modules.json", "[" FIRST "," MODULE("Dense", "2_" LETTERS "de") "]", ISOBIT_E_MISSING, 0,
         "2_" LETTERS "de/config.json"},
        {"modules.json", "[" FIRST "," MODULE("Dense", "2_" LETTERS "def") "]", NO_VECTOR,
         "the path"},
        {"modules.json", "[" FIRST "," MODULE("Normalize", "../4_Normalize") "]", NO_VECTOR,
         "module 2, \"Normalize\", with the path"},
        {"modules.json", "[" FIRST ",{\"type\":\"pylate.models.Dense\",\"path\":\"2_Dense\"}]",
         NO_VECTOR, "module 2, \"pylate.models.Dense\""},
        {"modules.json",
         "[{\"type\":\"sentence_transformers.base.modules.transformer.Transformer\",\"path\":\"\"},"
         "{\"type\":\"sentence_transformers.sentence_transformer.modules.pooling.Pooling\","
         "\"path\":\"1_Pooling\"},"
         "{\"type\":\"sentence_transformers.base.modules.dense.Dense\",\"path\":\"2_Dense\"},"
         "{\"type\":\"sentence_transformers.sentence_transformer.modules.Dense\","
         "\"path\":\"3_Dense\"}]",
         0, 0, ""},
        {"modules.json", "[" FIRST DENSE "]", 0, 0, "40"},
        /* How newer files name the pooling. */
        {"1_Pooling/config.json", "{\"pooling_mode\":\"mean\"}", 0, 0, ""},
        {"1_Pooling/config.json", "{\"pooling_mode\":[\"cls\"]}", 0, 0, ""},
        {"1_Pooling/config.json", "{\"pooling_mode\":\"max\",\"pooling_mode_cls_token\":true}", 0,
         0, ""},
        {"1_Pooling/config.json", "{\"pooling_mode\":\"lasttoken\"}", NO_VECTOR,
         "module 1, \"Pooling\", with pooling_mode \"lasttoken\""},
        {"1_Pooling/config.json", "{\"pooling_mode\":[\"mean\",\"cls\"]}", NO_VECTOR,
         "with pooling_mode \"cls\""},
        {"1_Pooling/config.json", "{\"pooling_mode\":\"median\"}", NO_VECTOR, "\"median\""},
        {"1_Pooling/config.json", "{\"pooling_mode\":3}", NO_VECTOR, "pooling_mode 3"},
        {"1_Pooling/config.json", "{\"pooling_mode\":[]}", ISOBIT_E_CONFIG, 0, "no way of pooling"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        with_change(cases[i].name, cases[i].text, cases[i].load, cases[i].embed, cases[i].part);
    (void)state;
}

/* As many in a row as there may be, and one more; no bias in the file; a NaN among the weights. */
void test_dense_weights(void **state) {
    static layer l;
    files f;
    iso_error e = {0};
    make_folder(&f);
    const files in = inner(&f, "2_Dense");
    l = (layer){.in = D, .out = D, .bias = 1, .act = "Tanh"};
    write_layer(&l, &in, 7, 0);
    const uint32_t ids[] = {3, 4};
    const size_t two = 2;
    float y[D];
    for (size_t count = 8; count <= 9; count++) {
        char text[2000] = "[" FIRST;
        iso_model *model = NULL;
        for (size_t i = 0; i < count; i++)
            (void)strcat(text, DENSE);
        files_text(&f, "modules.json", strcat(text, "]"));
        ok(iso_model_load(&model, f.directory, NULL, NULL, &e), &e);
        iso_status status = iso_sentence_embed_f32(y, model, ids, &two, 1, NULL, NULL, &e);
        if (count == 9)
            expect(ISOBIT_E_UNSUPPORTED, "module 10, \"Dense\"", status, &e);
        else
            ok(status, &e);
        iso_model_free(model);
    }
    files_text(&f, "modules.json", "[" FIRST DENSE "]");
    /* What lacks a tensor, or has it with another rank. */
    builder b = {.state = 3};
    builder_tensor(&b, "linear.weight", D, D, 0, 1);
    builder_write(&b, &in);
    iso_model *model = NULL;
    expect(ISOBIT_E_MISSING, "2_Dense: model.safetensors has no tensor \"linear.bias\"",
           iso_model_load(&model, f.directory, NULL, NULL, &e), &e);
    builder_tensor(&b, "linear.bias", D, 0, 0, 1);
    builder_write(&b, &in);
    expect(ISOBIT_E_MISSING, "2_Dense: model.safetensors has no tensor \"linear.weight\"",
           iso_model_load(&model, f.directory, NULL, NULL, &e), &e);
    builder_tensor(&b, "linear.weight", D * D, 0, 0, 1);
    builder_tensor(&b, "linear.bias", D, 0, 0, 1);
    builder_write(&b, &in);
    expect(ISOBIT_E_SHAPE, "2_Dense: tensor \"linear.weight\" has rank 1",
           iso_model_load(&model, f.directory, NULL, NULL, &e), &e);
    /* A NaN is rejected by who asks for that, else it is in the vector. */
    static float w[D * D];
    const uint32_t nan_bits = htole32(0x7fc00000);
    memcpy(&w[5 * D + 3], &nan_bits, sizeof nan_bits);
    builder_given(&b, "linear.weight", "F32", "24,24", w, sizeof w);
    builder_given(&b, "linear.bias", "F32", "24", w, D * sizeof *w);
    builder_write(&b, &in);
    iso_load_options options = {.size = sizeof options, .reject_nonfinite = 1};
    expect(ISOBIT_E_RANGE, "2_Dense: tensor \"linear.weight\": element 123 is not finite",
           iso_model_load(&model, f.directory, &options, NULL, &e), &e);
    ok(iso_model_load(&model, f.directory, NULL, NULL, &e), &e);
    ok(iso_sentence_embed_f32(y, model, ids, &two, 1, NULL, NULL, &e), &e);
    for (size_t i = 0; i < D; i++)
        assert_true(i == 5 ? y[i] != y[i] : y[i] == 0);
    iso_model_free(model);
    /* Mapped, or without the keys that say what is so anyway, the vectors are the same. */
    write_layer(&l, &in, 7, 0);
    float same[D];
    for (int i = 0; i < 3; i++) {
        options = (iso_load_options){.size = sizeof options, .map = i == 1};
        if (i == 2)
            files_text(&in, "config.json", CONFIG("24", "24", ""));
        ok(iso_model_load(&model, f.directory, &options, NULL, &e), &e);
        ok(iso_sentence_embed_f32(i ? same : y, model, ids, &two, 1, NULL, NULL, &e), &e);
        iso_model_free(model);
        if (i)
            assert_memory_equal(y, same, sizeof y);
    }
    remove_folder(&f);
    (void)state;
}
