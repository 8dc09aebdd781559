/* SPDX-License-Identifier: MIT
 *
 * What is refused when a model is written, with the words and, among threads, the first error.
 */
#include "test_quantize.h"

#include <math.h>

static void with_number(const place *p, size_t at, float x) {
    stored s = stored_read(p->from.directory);
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    for (size_t k = 0; k < 4; k++)
        s.bytes[(size_t)(s.data - s.bytes) + 4 * at + k] = (unsigned char)(bits >> 8 * k);
    files_write(&p->from, "model.safetensors", s.bytes, s.count);
    stored_free(&s);
}

/* What is of no use and has the name of what is to be written. */
void test_taken_names(void **state) {
    static const struct {
        const char *name;
        iso_quantize_type type;
    } rows[] = {{"model.encoder.layers.0.fc1.weight_scale", ISOBIT_QUANTIZE_INT8},
                {"model.encoder.layers.0.fc1.weight_scale", ISOBIT_QUANTIZE_INT4},
                {"model.decoder.layers.0.fc2.weight_shape", ISOBIT_QUANTIZE_INT4}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        const iso_quantize_options options = {.size = sizeof options, .type = rows[i].type};
        char says[200];
        place p;
        place_make(&p);
        builder b = {.state = 5};
        builder_model(&b, V, D, F, 1);
        builder_tensor(&b, rows[i].name, F, 0, 1, 0);
        builder_write(&b, &p.from);
        files_config(&p.from, "marian", V, D, 4, F,
                     ",\"pad_token_id\":1,\"eos_token_id\":2,\"decoder_start_token_id\":1,"
                     "\"max_position_embeddings\":32");
        (void)snprintf(says, sizeof says, "tensor \"%s\" is there already", rows[i].name);
        refuses(&p, &options, ISOBIT_E_DUPLICATE, says);
        quantize(&p, NULL, NULL); /* which writes none of that name */
        place_remove(&p);
    }
    (void)state;
}

/* The first number that is none, whichever thread meets it. */
void test_first_error(void **state) {
    iso_pool *pool = NULL;
    place p;
    place_make(&p);
    make_gpt2(&p);
    with_number(&p, 70000, NAN); /* in the second piece of the table, */
    with_number(&p, 140000, INFINITY);
    with_number(&p, 250000, NAN); /* in the fourth and last */
    assert_int_equal(iso_pool_create(&pool, 5), ISOBIT_OK);
    const iso_context context = {.size = sizeof context, .executor = iso_pool_executor(pool)};
    for (int i = 0; i < 30; i++) {
        iso_error error = {0};
        assert_int_equal(
            iso_model_quantize(p.from.directory, p.out, NULL, i ? &context : NULL, &error),
            ISOBIT_E_RANGE);
        assert_non_null(strstr(error.message, "\"wte.weight\": element 70000 is not finite"));
    }
    iso_pool_destroy(pool);
    place_remove(&p);
    (void)state;
}

static void count_kept(void *user, const iso_quantized_tensor *t) {
    *(size_t *)user += t->note && strcmp(t->note, "kept") == 0;
}

/* Bytes. */
enum { LARGEST_CONFIG = 4 << 20 };

void test_refusals(void **state) {
    static const char *const keep[] = {"encoder_attn", "shared", NULL};
    const iso_quantize_options f16 = {.size = sizeof f16, .type = ISOBIT_QUANTIZE_F16};
    iso_quantize_options options = {.size = sizeof options};
    place p;
    place_make(&p);
    refuses(&p, NULL, ISOBIT_E_MISSING, "there is no file config.json");
    make_model(&p);
    options.type = 99;
    refuses(&p, &options, ISOBIT_E_OPTION, "type 99");
    options = (iso_quantize_options){.size = sizeof options + 8};
    refuses(&p, &options, ISOBIT_E_SIZE, "unknown size");
    options = (iso_quantize_options){.size = sizeof options, .keep = keep, .keep_count = 3};
    refuses(&p, &options, ISOBIT_E_NULL, "a text of keep is NULL");
    const iso_context context = {.size = 1};
    assert_int_equal(iso_model_quantize(p.from.directory, p.out, NULL, &context, NULL),
                     ISOBIT_E_SIZE);
    assert_int_equal(iso_model_quantize(NULL, p.out, NULL, NULL, NULL), ISOBIT_E_NULL);
    assert_int_equal(iso_model_quantize(p.from.directory, NULL, NULL, NULL, NULL), ISOBIT_E_NULL);
    iso_error error = {0};
    assert_int_equal(iso_model_quantize(p.from.directory, "", NULL, NULL, &error), ISOBIT_E_IO);
    assert_string_equal(error.message, "the name of the folder to write is empty");

    /* Numbers that are none, or that F16 does not have: the first one, whoever met it. */
    with_number(&p, D + 3, 65520);
    with_number(&p, D * 5, -1e6f);
    refuses(&p, &f16, ISOBIT_E_RANGE,
            "tensor \"model.shared.weight\": element 67 is too large for F16");
    with_number(&p, D + 3, 65519.996f);
    with_number(&p, D * 5, 0);
    quantize(&p, &f16, NULL);
    remove_tree(p.out);
    with_number(&p, D + 3, NAN);
    refuses(&p, &f16, ISOBIT_E_RANGE, "tensor \"model.shared.weight\": element 67 is not finite");
    refuses(&p, NULL, ISOBIT_E_RANGE, "tensor \"model.shared.weight\": element 67 is not finite");
    with_number(&p, D + 3, 3e38f); /* BF16 has 3.39e38 */
    quantize(&p, NULL, NULL);
    remove_tree(p.out);
    with_number(&p, D + 3, 3.4e38f);
    refuses(&p, NULL, ISOBIT_E_RANGE, "element 67 is too large for BF16");
    with_number(&p, D + 3, 1);
    /* q_proj.bias of the first layer, after the table and its matrix. */
    with_number(&p, V * D + D * D + 2, INFINITY);
    refuses(&p, NULL, ISOBIT_E_RANGE, "q_proj.bias\": element 2 is not finite");
    with_number(&p, V * D + D * D + 2, 1);

    /* The largest text of config.json: spaces at its end. */
    char path[200], *text = calloc(1, LARGEST_CONFIG + 2);
    assert_non_null(text);
    (void)snprintf(path, sizeof path, "%s/config.json", p.from.directory);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    memset(text, ' ', LARGEST_CONFIG + 1);
    text[fread(text, 1, LARGEST_CONFIG, file)] = ' ';
    (void)fclose(file);
    write_file(p.from.directory, "config.json", text);
    refuses(&p, NULL, ISOBIT_E_LIMIT, "config.json");
    text[LARGEST_CONFIG] = 0;
    write_file(p.from.directory, "config.json", text);
    quantize(&p, NULL, NULL);
    remove_tree(p.out);
    free(text);

    size_t kept = 0;
    options = (iso_quantize_options){
        .size = sizeof options, .keep = keep, .keep_count = 2, .report = count_kept, .user = &kept};
    quantize(&p, &options, NULL);
    assert_int_equal(kept, 5); /* the table and four projections */
    stored s = stored_read(p.out);
    stored_tensor t;
    assert_true(stored_find(&s, "model.shared.weight", &t));
    assert_string_equal(t.dtype, "F32");
    assert_true(stored_find(&s, "model.decoder.layers.0.encoder_attn.k_proj.weight", &t));
    assert_string_equal(t.dtype, "F32");
    assert_true(stored_find(&s, "model.decoder.layers.0.self_attn.k_proj.weight", &t));
    assert_string_equal(t.dtype, "BF16");
    stored_free(&s);
    place_remove(&p);
    (void)state;
}
