/* SPDX-License-Identifier: MIT
 *
 * Matrices in groups as others write them, and what is refused of them.
 */
#include "test_quantize.h"

#include <math.h>

/* ------------------------------------------------------------------- files that others write */

/* The file of a folder, to be changed and written again. */
typedef struct changed {
    stored s;
    blob more; /* data behind that of the file */
} changed;

static json_t *entry_of(const changed *c, const char *name) {
    json_t *entry = json_object_get(c->s.header, name);
    assert_non_null(entry);
    return entry;
}

/* Another name for a tensor. */
static void rename_tensor(changed *c, const char *name, const char *to) {
    json_t *entry = json_incref(entry_of(c, name));
    json_object_del(c->s.header, name);
    json_object_set_new(c->s.header, to, entry);
}

static void add_tensor(changed *c, const char *name, const char *dtype, size_t n, size_t k,
                       const void *data, size_t bytes) {
    const size_t at = c->s.count - (size_t)(c->s.data - c->s.bytes) + c->more.count;
    blob_add(&c->more, data, bytes);
    json_t *shape =
        k ? json_pack("[I, I]", (json_int_t)n, (json_int_t)k) : json_pack("[I]", (json_int_t)n);
    json_object_set_new(c->s.header, name,
                        json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype, "shape", shape,
                                  "data_offsets", (json_int_t)at,
                                  (json_int_t)at + (json_int_t)bytes));
}

static void write_changed(changed *c, const char *folder) {
    files f;
    char *text = json_dumps(c->s.header, JSON_COMPACT);
    (void)snprintf(f.directory, sizeof f.directory, "%.60s", folder);
    blob all = blob_file(text, strlen(text), 0);
    blob_add(&all, c->s.data, c->s.count - (size_t)(c->s.data - c->s.bytes));
    blob_add(&all, c->more.bytes, c->more.count);
    files_write(&f, "model.safetensors", all.bytes, all.count);
    blob_free(&all);
    blob_free(&c->more);
    stored_free(&c->s);
    free(text);
}

/* The scales of all matrices in another type. */
static void change_scales(const char *folder, const char *dtype) {
    changed c = {.s = stored_read(folder)};
    const char *names[64], *name;
    json_t *entry;
    size_t count = 0;
    json_object_foreach(c.s.header, name, entry) if (strstr(name, ".weight_scale")) names[count++] =
        name;
    for (size_t i = 0; i < count; i++) {
        stored_tensor t;
        char own[200], other[220];
        blob data = {0};
        (void)snprintf(own, sizeof own, "%s", names[i]);
        (void)snprintf(other, sizeof other, "old.%s", own);
        assert_true(stored_find(&c.s, own, &t));
        const int wide = strcmp(dtype, "F32") == 0;
        for (size_t k = 0; k < t.count; k++) { /* also numbers that F16 does not have */
            const float value = (float)(wide ? stored_number(&t, k) * 1.0009765f
                                             : rounded(stored_number(&t, k), 8, -126));
            uint32_t bits;
            memcpy(&bits, &value, sizeof bits);
            bits = wide ? bits : bits >> 16;
            for (size_t byte = 0; byte < (wide ? 4 : 2); byte++)
                blob_add(&data, &(unsigned char){(unsigned char)(bits >> 8 * byte)}, 1);
        }
        rename_tensor(&c, own, other);
        add_tensor(&c, own, dtype, t.shape[0], t.shape[1], data.bytes, data.count);
        blob_free(&data);
    }
    write_changed(&c, folder);
}

/* The numbers of a matrix for another one, too, in place of what it had. */
static void copy_matrix(changed *c, const char *from, const char *to) {
    static const char *const ends[] = {"_packed", "_scale", "_shape"};
    rename_tensor(c, to, "old");
    for (size_t i = 0; i < COUNT(ends); i++) {
        char name[200];
        stored_tensor t;
        (void)snprintf(name, sizeof name, "%s%s", from, ends[i]);
        assert_true(stored_find(&c->s, name, &t));
        (void)snprintf(name, sizeof name, "%s%s", to, ends[i]);
        add_tensor(c, name, t.dtype, t.shape[0], t.rank == 2 ? t.shape[1] : 0, t.at, t.bytes);
    }
}

/* A table that is not the logits, with scales of each type. */
void test_groups_table(void **state) {
    static const char llama[] = ISOBIT_TEST_DATA "/models/llama";
    static const char *const types[] = {NULL, "F32", "BF16"};
    for (size_t i = 0; i < COUNT(types); i++) {
        const iso_quantize_options options = {.size = sizeof options, .type = ISOBIT_QUANTIZE_INT4};
        place p;
        iso_error error = {0};
        place_make(&p);
        assert_int_equal(iso_model_quantize(llama, p.out, &options, NULL, &error), ISOBIT_OK);
        changed c = {.s = stored_read(p.out)};
        copy_matrix(&c, "lm_head.weight", "model.embed_tokens.weight");
        write_changed(&c, p.out);
        if (types[i])
            change_scales(p.out, types[i]);
        check_groups_loaded(&p, llama);
        place_remove(&p);
    }
    (void)state;
}

/* Scales of F32 and BF16. */
void test_groups_of_others(void **state) {
    static const char *const types[] = {"F32", "BF16"};
    static void (*const make[])(const place *p) = {make_model, make_gpt2};
    for (size_t m = 0; m < COUNT(make); m++)
        for (size_t i = 0; i < COUNT(types); i++) {
            if (getenv("ISOBIT_EMULATED") && i != m) /* each once */
                continue;
            place p;
            place_make(&p);
            make[m](&p);
            const iso_quantize_options options = {
                .size = sizeof options, .type = ISOBIT_QUANTIZE_INT4, .group = m ? 64 : 32};
            quantize(&p, &options, NULL);
            change_scales(p.out, types[i]);
            check_groups_loaded(&p, p.from.directory);
            remove_tree(p.out);
            place_remove(&p);
        }
    (void)state;
}

/* ----------------------------------------------------------------------------- what is refused */

#define X "model.encoder.layers.0.fc1.weight"

static void set_bytes(changed *c, const char *name, size_t at, uint64_t value, size_t bytes) {
    stored_tensor t;
    assert_true(stored_find(&c->s, name, &t));
    unsigned char *to = c->s.bytes + (t.at - c->s.bytes) + at;
    for (size_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> 8 * i);
}
static void no_scale(changed *c) { rename_tensor(c, X "_scale", "x"); }
static void no_shape(changed *c) { rename_tensor(c, X "_shape", "x"); }
static void zero_points(changed *c) { add_tensor(c, X "_zero_point", "I32", 0, 0, "", 0); }
static void order(changed *c) { add_tensor(c, X "_g_idx", "I32", 0, 0, "", 0); }
static void twice(changed *c) { add_tensor(c, X, "F32", 0, 0, "", 0); }
static void bytes(changed *c) {
    json_object_set_new(entry_of(c, X "_packed"), "dtype", json_string("U8"));
    json_array_set_new(json_object_get(entry_of(c, X "_packed"), "shape"), 1, json_integer(D / 2));
}
static void list_of_three(changed *c) {
    rename_tensor(c, X "_shape", "x");
    add_tensor(c, X "_shape", "I32", 3, 0, "123456789012", 12);
}
static void float_shape(changed *c) {
    rename_tensor(c, X "_shape", "x");
    add_tensor(c, X "_shape", "F32", 2, 0, "12345678", 8);
}
/* A shape of I32, which is as good. */
static void short_shape(changed *c) {
    static const unsigned char shape[8] = {F, 0, 0, 0, D};
    rename_tensor(c, X "_shape", "x");
    add_tensor(c, X "_shape", "I32", 2, 0, shape, sizeof shape);
}
static void no_rows(changed *c) { set_bytes(c, X "_shape", 0, 0, 8); }
static void negative_rows(changed *c) { set_bytes(c, X "_shape", 0, UINT64_MAX, 8); }
static void fewer_rows(changed *c) { set_bytes(c, X "_shape", 0, F - 1, 8); }
static void other_columns(changed *c) { set_bytes(c, X "_shape", 8, D + 32, 8); }
/* 4 bits of more columns, as the file has it; the configuration wants other ones. */
static void other_matrix(changed *c) {
    set_bytes(c, X "_shape", 8, D / 2, 8);
    json_array_set_new(json_object_get(entry_of(c, X "_scale"), "shape"), 1, json_integer(1));
    json_array_set_new(json_object_get(entry_of(c, X "_scale"), "shape"), 0, json_integer(2 * F));
}
static void scales_of_rows(changed *c) {
    rename_tensor(c, X "_scale", "x");
    static const char zeros[F * 2];
    add_tensor(c, X "_scale", "F16", F, 0, zeros, sizeof zeros);
}
static void groups_of_16(changed *c) {
    rename_tensor(c, X "_scale", "x");
    static const char zeros[F * 8];
    add_tensor(c, X "_scale", "F16", F, 4, zeros, sizeof zeros);
}
static void scales_of_more_rows(changed *c) {
    rename_tensor(c, X "_scale", "x");
    static const char zeros[(F + 1) * 4];
    add_tensor(c, X "_scale", "F16", F + 1, 2, zeros, sizeof zeros);
}
static void integer_scales(changed *c) {
    json_object_set_new(entry_of(c, X "_scale"), "dtype", json_string("I16"));
}
static void nameless_scales(changed *c) {
    json_object_set_new(entry_of(c, X "_scale"), "dtype", json_string("F3\x7f"));
}
static void nameless_numbers(changed *c) {
    json_object_set_new(entry_of(c, X "_packed"), "dtype", json_string("I3\x7f"));
}
static void nan_scale(changed *c) { set_bytes(c, X "_scale", 10, 0x7e00, 2); }
static void infinite_scale(changed *c) { set_bytes(c, X "_scale", 10, 0x7c00, 2); }
static void zero_scale(changed *c) { set_bytes(c, X "_scale", 10, 0, 2); }
static void negative_scale(changed *c) { set_bytes(c, X "_scale", 10, 0x8001, 2); }
/* A vector in groups. */
static void vector(changed *c) {
    static const char zeros[16 * D];
    static const int64_t shape[2] = {1, 64};
    rename_tensor(c, "model.encoder.layers.0.final_layer_norm.weight", "x");
    add_tensor(c, "model.encoder.layers.0.final_layer_norm.weight_packed", "I32", 1, 8, zeros, 32);
    add_tensor(c, "model.encoder.layers.0.final_layer_norm.weight_scale", "F16", 1, 2, zeros, 4);
    unsigned char le[16];
    for (size_t i = 0; i < 16; i++)
        le[i] = (unsigned char)((uint64_t)shape[i / 8] >> i % 8 * 8);
    add_tensor(c, "model.encoder.layers.0.final_layer_norm.weight_shape", "I64", 2, 0, le, 16);
}

void test_groups_refused(void **state) {
    static const struct {
        void (*change)(changed *c);
        iso_status status;
        const char *says;
    } rows[] = {
        {no_scale, ISOBIT_E_MISSING, "\"" X "\" has weight_packed, and no weight_scale"},
        {no_shape, ISOBIT_E_MISSING, "\"" X "\" has weight_packed, and no weight_shape"},
        {zero_points, ISOBIT_E_UNSUPPORTED, "\"" X "\" has zero points"},
        {order, ISOBIT_E_UNSUPPORTED, "\"" X "\" has weight_g_idx"},
        {twice, ISOBIT_E_DUPLICATE, "\"" X "\" is there, and its weight_packed, too"},
        {bytes, ISOBIT_E_UNSUPPORTED, "weight_packed has the element type U8; I32 is expected"},
        {nameless_numbers, ISOBIT_E_UNSUPPORTED, "the element type \"I3\\x7f\"; I32 is expected"},
        {nameless_scales, ISOBIT_E_DTYPE, "the element type \"F3\\x7f\"; F32, F16 or BF16"},
        {list_of_three, ISOBIT_E_SHAPE, "\"" X "\": its weight_shape is no list of two"},
        {float_shape, ISOBIT_E_SHAPE, "\"" X "\": its weight_shape is no list of two"},
        {short_shape, ISOBIT_OK, ""},
        {no_rows, ISOBIT_E_SHAPE, "weight_shape says 0;"},
        {negative_rows, ISOBIT_E_SHAPE, "weight_shape says 18446744073709551615;"},
        {fewer_rows, ISOBIT_E_SHAPE, "has the shape [95, 64]; weight_packed of rank 2"},
        {other_columns, ISOBIT_E_SHAPE, "has the shape [96, 96]; weight_packed of rank 2"},
        {other_matrix, ISOBIT_E_SHAPE,
         "has the shape [96, 32]; scales of rank 2 and shape [192, 1]"},
        {scales_of_rows, ISOBIT_E_SHAPE, "scales of rank 1 and shape [96, 0] do not fit"},
        {groups_of_16, ISOBIT_E_UNSUPPORTED, "\"" X "\" has groups of 16; 32, 64 and 128"},
        {scales_of_more_rows, ISOBIT_E_SHAPE, "scales of rank 2 and shape [97, 2] do not fit"},
        {integer_scales, ISOBIT_E_DTYPE, "\"" X "\": its scales have the element type I16"},
        {nan_scale, ISOBIT_E_RANGE, "\"" X "\": the scale of group 1 of row 2 is not above 0"},
        {infinite_scale, ISOBIT_E_RANGE, "\"" X "\": the scale of group 1 of row 2"},
        {zero_scale, ISOBIT_E_RANGE, "\"" X "\": the scale of group 1 of row 2"},
        {negative_scale, ISOBIT_E_RANGE, "\"" X "\": the scale of group 1 of row 2"},
        {vector, ISOBIT_E_DTYPE, "final_layer_norm.weight\" has the element type I32"},
    };
    place p;
    place_make(&p);
    make_model(&p);
    const iso_quantize_options options = {.size = sizeof options, .type = ISOBIT_QUANTIZE_INT4};
    for (size_t i = 0; i < COUNT(rows); i++) {
        iso_error error = {0};
        iso_model *model = NULL;
        quantize(&p, &options, NULL);
        changed c = {.s = stored_read(p.out)};
        rows[i].change(&c);
        write_changed(&c, p.out);
        const iso_status got = iso_model_load(&model, p.out, NULL, NULL, &error);
        if (got != rows[i].status || !strstr(error.message, rows[i].says))
            fail_msg("row %zu: %d, %s", i, (int)got, error.message);
        iso_model_free(model);
        remove_tree(p.out);
    }
    place_remove(&p);
    (void)state;
}

/* What config.json may say of groups. */
void test_groups_config(void **state) {
    static const struct {
        const char *path, *key, *value; /* the latter: JSON */
        const char *says;               /* NULL: it is read */
    } rows[] = {
        {"", "format", "\"mixed-precision\"", "\"format\" of a group is absent"},
        {"", "format", "\"marlin-24\"", "\"marlin-24\""},
        {"config_groups/group_0", "format", "\"pack-quantized\"", NULL},
        {"config_groups/group_0", "format", "\"int-quantized\"",
         "\"num_bits\" of weights is 4; only 8"},
        {"config_groups/group_0/weights", "num_bits", "3",
         "\"num_bits\" of weights is 3; only 4 or 8"},
        {"config_groups/group_0/weights", "group_size", "16", "\"group_size\" of weights is 16"},
        {"config_groups/group_0/weights", "group_size", "64", NULL},
        {"config_groups/group_0/weights", "symmetric", "false",
         "\"symmetric\" of weights is false"},
        {"config_groups/group_0/weights", "strategy", "\"channel\"", "only group is supported"},
        {"config_groups/group_0/weights", "type", "\"float\"", "\"type\" of weights"},
        {"config_groups/group_0/weights", "dynamic", "true", "\"dynamic\" of weights is true"},
        {"config_groups/group_0/weights", "actorder", "\"group\"", "\"actorder\" of weights"},
        {"config_groups/group_0/weights", "actorder", "\"weight\"", NULL},
        {"config_groups/group_0/weights", "actorder", "\"static\"", NULL},
        {"config_groups/group_0/weights", "actorder", "null", NULL},
        {"config_groups/group_0", "weights", "null", "\"weights\" of a group is absent"},
        {"config_groups/group_0", "input_activations", "{}", "\"input_activations\" of a group"},
        {"config_groups/group_0", "output_activations", "{}", "\"output_activations\" of a group"},
    };
    place p;
    char path[200];
    place_make(&p);
    make_model(&p);
    const iso_quantize_options options = {.size = sizeof options, .type = ISOBIT_QUANTIZE_INT4};
    quantize(&p, &options, NULL);
    (void)snprintf(path, sizeof path, "%s/config.json", p.out);
    json_t *whole = read_config(p.out);
    const json_t *q = json_object_get(whole, "quantization_config");
    assert_string_equal(json_string_value(json_object_get(q, "format")), "pack-quantized");
    assert_int_equal(json_integer_value(json_at(json_object_get(whole, "quantization_config"),
                                                "config_groups/group_0/weights/group_size")),
                     32);
    assert_int_equal(json_integer_value(json_at(json_object_get(whole, "quantization_config"),
                                                "config_groups/group_1/weights/num_bits")),
                     8);
    for (size_t i = 0; i < COUNT(rows); i++) {
        iso_error error = {0};
        iso_model *model = NULL;
        json_t *config = json_deep_copy(whole);
        json_t *at = json_at(json_object_get(config, "quantization_config"), rows[i].path);
        json_object_set_new(at, rows[i].key, json_loads(rows[i].value, JSON_DECODE_ANY, NULL));
        assert_int_equal(json_dump_file(config, path, 0), 0);
        json_decref(config);
        const iso_status got = iso_model_load(&model, p.out, NULL, NULL, &error);
        if (rows[i].says ? got != ISOBIT_E_UNSUPPORTED || !strstr(error.message, rows[i].says)
                         : got != ISOBIT_OK)
            fail_msg("row %zu: %d, %s", i, (int)got, error.message);
        iso_model_free(model);
    }
    json_decref(whole);
    place_remove(&p);
    (void)state;
}

/* Memory and reads that fail while such a model is loaded. */
void test_groups_faults(void **state) {
    place p;
    place_make(&p);
    make_model(&p);
    const iso_quantize_options options = {.size = sizeof options, .type = ISOBIT_QUANTIZE_INT4};
    quantize(&p, &options, NULL);
    for (int kind = CALL_MEMORY; kind <= CALL_READ; kind++) {
        size_t failing = 1;
        for (;; failing++) {
            iso_error error = {0};
            iso_model *model = NULL;
            calls[kind] = (struct calls){0, failing};
            const iso_status status = iso_model_load(&model, p.out, NULL, NULL, &error);
            calls[kind].failing = 0;
            if (!status) {
                iso_model_free(model);
                break;
            }
            assert_int_equal(status, kind == CALL_MEMORY ? ISOBIT_E_NOMEM : ISOBIT_E_IO);
        }
        assert_true(failing > 50);
    }
    place_remove(&p);
    (void)state;
}
