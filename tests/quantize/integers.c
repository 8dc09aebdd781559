/* SPDX-License-Identifier: MIT
 *
 * Models that are written with integers and scales: each by its definition, what config.json says,
 * and the bits of the model when the folder is loaded.
 */
#include "test_quantize.h"

#include <math.h>

json_t *json_at(json_t *root, const char *path) {
    char part[60];
    while (root && *path) {
        const size_t bytes = strcspn(path, "/");
        (void)snprintf(part, sizeof part, "%.*s", (int)bytes, path);
        root = json_is_array(root) ? json_array_get(root, (size_t)atoi(part))
                                   : json_object_get(root, part);
        path += bytes + (path[bytes] == '/');
    }
    return root;
}

json_t *read_config(const char *folder) {
    char path[300];
    (void)snprintf(path, sizeof path, "%s/config.json", folder);
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    return root;
}

/* ------------------------------------------------------------------------------------ int8 */

/* What is known of one matrix; `turned`: it is stored [in][out]. */
static size_t at(const stored_tensor *t, int turned, size_t row, size_t column) {
    return turned ? column * t->shape[1] + row : row * t->shape[1] + column;
}

/* Row i of the matrix as integers and a scale; each operation rounded to float. */
static double integers(double *q, const stored_tensor *t, int turned, size_t row, size_t k) {
    double most = 0;
    for (size_t j = 0; j < k; j++)
        most = fmax(most, fabs(stored_number(t, at(t, turned, row, j))));
    const int none = most < 0x1p-119;
    const double inverse = none ? 0 : (double)(float)(127 / most);
    for (size_t j = 0; j < k; j++)
        q[j] = rint((double)(float)(stored_number(t, at(t, turned, row, j)) * inverse));
    return none ? 0 : (double)(float)(most / 127);
}

typedef struct errors {
    double largest, rms, tensor_rms;
    char type[8];
} errors;

/* Each number of the matrix, and its errors. */
static errors check_int8(const stored *from, const stored *to, const char *name, int turned) {
    static double q[GPT_F];
    stored_tensor a, b, scales;
    char other[200];
    errors e = {.type = "I8"};
    (void)snprintf(other, sizeof other, "%s_scale", name);
    assert_true(stored_find(from, name, &a) && stored_find(to, name, &b) &&
                stored_find(to, other, &scales));
    const size_t n = a.shape[turned], k = a.shape[!turned];
    assert_string_equal(b.dtype, "I8");
    assert_string_equal(scales.dtype, "F32");
    assert_memory_equal(a.shape, b.shape, sizeof a.shape);
    assert_true(scales.rank == 2 && scales.shape[0] == n && scales.shape[1] == 1);
    for (size_t i = 0; i < n; i++) {
        const double scale = integers(q, &a, turned, i, k);
        if (stored_number(&scales, i) != scale)
            fail_msg("%s: scale %zu is %a, not %a", name, i, stored_number(&scales, i), scale);
        for (size_t j = 0; j < k; j++) {
            const double x = stored_number(&a, at(&a, turned, i, j)),
                         y = stored_number(&b, at(&b, turned, i, j)), error = y * scale - x;
            if (y != q[j])
                fail_msg("%s: number %zu, %zu is %g, not %g", name, i, j, y, q[j]);
            e.largest = fmax(e.largest, fabs(error));
            e.rms += error * error;
            e.tensor_rms += x * x;
        }
    }
    e.rms = sqrt(e.rms / (double)a.count);
    e.tensor_rms = sqrt(e.tensor_rms / (double)a.count);
    return e;
}

/* What is said of the tensors, for later. */
typedef struct said {
    char name[200], type[8], note[60];
    double largest, rms, tensor_rms;
    uint64_t bytes;
} said;
static said all_said[100];
static size_t said_count;

static void listen(void *user, const iso_quantized_tensor *t) {
    assert_true(said_count < COUNT(all_said));
    said *s = &all_said[said_count++];
    *s = (said){
        .largest = t->largest, .rms = t->rms, .tensor_rms = t->tensor_rms, .bytes = t->bytes};
    (void)snprintf(s->name, sizeof s->name, "%s", t->name);
    (void)snprintf(s->type, sizeof s->type, "%s", t->type);
    (void)snprintf(s->note, sizeof s->note, "%s", t->note ? t->note : "");
    (void)user;
}

static const said *find_said(const char *name) {
    for (size_t i = 0; i < said_count; i++)
        if (strcmp(all_said[i].name, name) == 0)
            return &all_said[i];
    fail_msg("nothing is said of %s", name);
    return NULL;
}

static void check_said(const char *name, const errors *e) {
    const said *s = find_said(name);
    assert_string_equal(s->type, e->type);
    if (fabs(s->largest - e->largest) > 1e-12 * e->largest ||
        fabs(s->rms - e->rms) > 1e-12 * e->rms ||
        fabs(s->tensor_rms - e->tensor_rms) > 1e-12 * e->tensor_rms)
        fail_msg("%s: %g, %g, %g, not %g, %g, %g", name, s->largest, s->rms, s->tensor_rms,
                 e->largest, e->rms, e->tensor_rms);
}

void test_int8(void **state) {
    place p;
    place_make(&p);
    make_model(&p);
    stored from = stored_read(p.from.directory);
    /* A row of zeros, and one of numbers that are next to nothing. */
    stored_tensor t;
    assert_true(stored_find(&from, "model.encoder.layers.0.fc1.weight", &t));
    unsigned char *data = from.bytes + (t.at - from.bytes);
    memset(data, 0, (size_t)8 * D);
    for (size_t i = D; i < (size_t)2 * D; i++)
        data[4 * i + 3] = 2; /* 2^-123 */
    files_write(&p.from, "model.safetensors", from.bytes, from.count);
    said_count = 0;
    const iso_quantize_options options = {
        .size = sizeof options, .type = ISOBIT_QUANTIZE_INT8, .report = listen};
    quantize(&p, &options, NULL);
    stored to = stored_read(p.out);
    const char *name;
    json_t *entry;
    size_t matrices = 0;
    json_object_foreach(from.header, name, entry) {
        stored_tensor a, b;
        assert_true(stored_find(&from, name, &a) && stored_find(&to, name, &b));
        if (a.rank == 2 && a.shape[0] > 1) {
            const errors e = check_int8(&from, &to, name, 0);
            check_said(name, &e);
            assert_int_equal(find_said(name)->bytes, a.count + 4 * a.shape[0]);
            matrices++;
        } else {
            assert_memory_equal(a.at, b.at, a.bytes);
        }
    }
    assert_int_equal(matrices, 17);
    assert_int_equal(json_object_size(to.header), json_object_size(from.header) + 17 + 1);
    stored_free(&to);
    stored_free(&from);
    /* It is quantised now. */
    iso_error error = {0};
    assert_int_equal(iso_model_quantize(p.out, p.partial, &options, NULL, &error),
                     ISOBIT_E_UNSUPPORTED);
    assert_non_null(
        strstr(error.message, "has \"quantization_config\": the model is quantised already"));
    assert_false(is_there(p.partial));
    place_remove(&p);
    (void)state;
}

/* ---------------------------------------------------------------------------- all families */

/* The folder computes what the model computes when its matrices become int8. */
static void check_int8_model(const char *folder, const place *p) {
    static float got[MOST_LOGITS], wanted[MOST_LOGITS], floats[MOST_LOGITS];
    const iso_quantize_options options = {.size = sizeof options, .type = ISOBIT_QUANTIZE_INT8};
    const iso_load_options int8 = {.size = sizeof int8, .compute = ISOBIT_COMPUTE_INT8};
    iso_error error = {0};
    if (iso_model_quantize(folder, p->out, &options, NULL, &error))
        fail_msg("%s: %s", folder, error.message);
    compute(got, p->out, NULL);
    compute(wanted, folder, &int8);
    compute(floats, folder, NULL);
    if (memcmp(got, wanted, sizeof got) != 0) /* NOLINT: bits are meant */
        fail_msg("%s: other bits than with int8", folder);
    assert_true(memcmp(got, floats, sizeof got) != 0); /* NOLINT */
    remove_tree(p->out);
}

void test_int8_models(void **state) {
    each_model(check_int8_model);
    (void)state;
}

/* Matrices [in][out], of several pieces: they keep their shape. */
void test_int8_turned(void **state) {
    static const char *const turned[] = {"h.0.attn.c_attn.weight", "h.0.attn.c_proj.weight",
                                         "h.0.mlp.c_fc.weight", "h.0.mlp.c_proj.weight"};
    place p;
    place_make(&p);
    make_gpt2(&p);
    said_count = 0;
    const iso_quantize_options options = {
        .size = sizeof options, .type = ISOBIT_QUANTIZE_INT8, .report = listen};
    quantize(&p, &options, NULL);
    stored from = stored_read(p.from.directory), to = stored_read(p.out);
    for (size_t i = 0; i < COUNT(turned); i++) {
        const errors e = check_int8(&from, &to, turned[i], 1);
        check_said(turned[i], &e);
    }
    const errors e = check_int8(&from, &to, "wte.weight", 0);
    check_said("wte.weight", &e);
    assert_string_equal(find_said("h.0.attn.bias")->note, "not used");
    stored_free(&to);
    stored_free(&from);
    check_int8_model(p.from.directory, &(place){.from = p.from, .out = "/tmp/isobit-test-turned"});
    /* The first number that is none, whichever piece and thread meets it: in the order of rows. */
    stored bad = stored_read(p.from.directory);
    stored_tensor t;
    assert_true(stored_find(&bad, "h.0.mlp.c_fc.weight", &t));
    unsigned char *data = bad.bytes + (t.at - bad.bytes);
    memset(data + (size_t)4 * (100 * GPT_F + 9000), 0xff, 4);
    memset(data + (size_t)4 * (101 * GPT_F + 5), 0xff, 4);
    files_write(&p.from, "model.safetensors", bad.bytes, bad.count);
    char says[100];
    (void)snprintf(says, sizeof says, "c_fc.weight\": element %d is not finite", 101 * GPT_F + 5);
    remove_tree(p.out);
    refuses(&p, &options, ISOBIT_E_RANGE, says);
    stored_free(&bad);
    place_remove(&p);
    (void)state;
}

/* ----------------------------------------------------------------------------- config.json */

static int has_text(const json_t *list, const char *text) {
    size_t i, count = 0;
    json_t *value;
    json_array_foreach(list, i, value) count += strcmp(json_string_value(value), text) == 0;
    assert_true(count <= 1);
    return (int)count;
}

/* A head of its own is a layer like others; in groups it has more bits, and is named. */
static void check_own_head(const place *p) {
    for (size_t type = ISOBIT_QUANTIZE_INT8; type <= ISOBIT_QUANTIZE_INT4; type++) {
        const iso_quantize_options options = {.size = sizeof options, .type = type};
        iso_error error = {0};
        assert_int_equal(
            iso_model_quantize(ISOBIT_TEST_DATA "/models/llama", p->out, &options, NULL, &error),
            ISOBIT_OK);
        json_t *to = read_config(p->out), *q = json_object_get(to, "quantization_config");
        const json_t *ignored = json_object_get(q, "ignore");
        const char *target = json_string_value(json_at(q, "config_groups/group_1/targets/0"));
        assert_false(has_text(ignored, "lm_head"));
        assert_true(has_text(ignored, "model.embed_tokens"));
        if (type == ISOBIT_QUANTIZE_INT8)
            assert_null(target);
        else
            assert_string_equal(target, "lm_head");
        json_decref(to);
        remove_tree(p->out);
    }
}

/* All keys are as they were, and there is one more. */
void test_config(void **state) {
    static const char *const keep[] = {"fc2"};
    place p;
    place_make(&p);
    make_model(&p);
    static const char *const configs[] = {
        /* what is behind the last brace, numbers that no double has, an escape */
        "{\"model_type\":\"marian\",\"vocab_size\":53,\"d_model\":64,\"encoder_layers\":1,"
        "\"decoder_layers\":1,\"encoder_attention_heads\":4,\"decoder_attention_heads\":4,"
        "\"encoder_ffn_dim\":96,\"decoder_ffn_dim\":96,\"activation_function\":\"relu\","
        "\"max_position_embeddings\":32,\"eos_token_id\":2,\"decoder_start_token_id\":1,"
        "\"pad_token_id\":1,\"x\":0.10000000000000000001,\"y\":{\"a}\":\"}\\u00e4\"} \n }\n\n"};
    files_text(&p.from, "config.json", configs[0]);
    const iso_quantize_options options = {
        .size = sizeof options, .type = ISOBIT_QUANTIZE_INT8, .keep = keep, .keep_count = 1};
    quantize(&p, &options, NULL);
    json_t *from = read_config(p.from.directory), *to = read_config(p.out), *value;
    const char *key;
    json_object_foreach(from, key, value) assert_true(json_equal(value, json_object_get(to, key)));
    assert_int_equal(json_object_size(to), json_object_size(from) + 1);
    json_t *q = json_object_get(to, "quantization_config");
    static const char *const texts[][2] = {
        {"quant_method", "compressed-tensors"},
        {"format", "int-quantized"},
        {"quantization_status", "compressed"},
        {"config_groups/group_0/targets/0", "Linear"},
        {"config_groups/group_0/weights/type", "int"},
        {"config_groups/group_0/weights/strategy", "channel"},
        {"config_groups/group_0/input_activations/strategy", "token"},
        {"config_groups/group_1/targets/0", "model.shared"},
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        const char *text = json_string_value(json_at(q, texts[i][0]));
        if (!text || strcmp(text, texts[i][1]) != 0)
            fail_msg("%s is %s", texts[i][0], text ? text : "no text");
    }
    static const char *const numbers[] = {"weights", "input_activations"};
    for (size_t i = 0; i < COUNT(numbers); i++) {
        const json_t *group = json_at(q, "config_groups/group_0");
        const json_t *of = json_object_get(group, numbers[i]);
        assert_int_equal(json_integer_value(json_object_get(of, "num_bits")), 8);
        assert_string_equal(json_string_value(json_object_get(of, "type")), "int");
        assert_true(json_is_true(json_object_get(of, "symmetric")));
        assert_true(json_is_null(json_object_get(of, "group_size")));
        assert_true(json_is_null(json_object_get(group, "output_activations")));
    }
    assert_true(json_is_true(json_at(q, "config_groups/group_0/weights/symmetric")));
    assert_true(json_is_false(json_at(q, "config_groups/group_0/weights/dynamic")));
    assert_true(json_is_true(json_at(q, "config_groups/group_0/input_activations/dynamic")));
    assert_true(json_is_null(json_at(q, "config_groups/group_1/input_activations")));
    const json_t *ignored = json_object_get(q, "ignore");
    assert_int_equal(json_array_size(ignored), 3);
    assert_true(has_text(ignored, "model.encoder.layers.0.fc2"));
    assert_true(has_text(ignored, "model.decoder.layers.0.fc2"));
    assert_true(has_text(ignored, "lm_head")); /* of Linear, in no file: it is the table */
    json_decref(from);
    json_decref(to);
    remove_tree(p.out);
    static float logits[MOST_LOGITS];
    quantize(&p, &options, NULL);
    compute(logits, p.out, NULL);
    remove_tree(p.out);
    check_own_head(&p);
    place_remove(&p);
    (void)state;
}
