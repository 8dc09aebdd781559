/* SPDX-License-Identifier: MIT
 *
 * The families of models: of each a checkpoint that transformers wrote (tests/data/models, made by
 * tools/make_golden.py; test_model compares what encoder-decoders compute). Here: every tensor is
 * needed, and of the shape that config.json says.
 */
#include "model_files.h"

#include <isobit/model.h>

#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

typedef struct family {
    const char *name;
    const char *optional[2]; /* tensors that the family can do without */
} family;

static const family families[] = {
    {"bart", {"final_logits_bias"}},
    {"mbart-f16", {"final_logits_bias"}},
    {"pegasus-bf16", {"final_logits_bias", "embed_positions"}},
    {"m2m-100", {NULL}},
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
    assert_non_null(file);
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, file)) > 0;)
        blob_add(&b, buffer, n);
    assert_int_equal(fclose(file), 0);
    return b;
}

/* The family's directory again, with other weights. */
static iso_status load_with(const char *name, const blob *weights, iso_error *error) {
    files f;
    files_make(&f);
    static const char *const texts[] = {"config.json", "generation_config.json"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        blob text = read_file(name, texts[i]);
        files_write(&f, texts[i], text.bytes, text.count);
        blob_free(&text);
    }
    files_write(&f, "model.safetensors", weights->bytes, weights->count);
    iso_model *model = NULL;
    iso_status status = iso_model_load(&model, f.directory, NULL, NULL, error);
    assert_true(!status == (model != NULL));
    iso_model_free(model);
    files_remove(&f);
    return status;
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
        assert_true(tried >= 20);
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
            if (status != ISOBIT_E_SHAPE || !strstr(error.message, name))
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensors_are_needed),
        cmocka_unit_test(test_shapes_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
