/* SPDX-License-Identifier: MIT
 *
 * See test_loader.c: tensors that are missing, of another shape or type, or hold anything.
 */
#include "../test_loader.h"

void test_tensors(void **state) {
    files f;
    iso_error error;
    files_make(&f);
    static const char name[] = "model.decoder.layers.0.encoder_attn.v_proj.weight";
    static const struct {
        const char *dtype;
        iso_status status;
    } types[] = {
        {"I32", ISOBIT_E_DTYPE}, {"U32", ISOBIT_E_DTYPE}, {"Q4_0\\n", ISOBIT_E_UNSUPPORTED}};
    good_model(&f);
    for (size_t i = 0; i < 3; i++) {
        builder b = {.state = 1, .odd = name, .dtype = types[i].dtype};
        builder_model(&b, V, D, FFN, 1);
        builder_write(&b, &f);
        assert_int_equal(load(&f, NULL, &error), types[i].status);
        assert_non_null(strstr(error.message, name));
    }
    /* Each tensor missing. */
    static const char *const missing[] = {"model.shared.weight", "final_logits_bias",
                                          "model.encoder.layers.0.fc1.bias", name};
    for (size_t i = 0; i < 4; i++) {
        builder b = {.state = 1, .skip = missing[i]};
        builder_model(&b, V, D, FFN, 1);
        builder_write(&b, &f);
        assert_int_equal(load(&f, NULL, &error), ISOBIT_E_MISSING);
        assert_non_null(strstr(error.message, missing[i]));
    }
    /* Other shapes than config.json says: width, vocabulary, bias without its leading 1. */
    static const struct {
        size_t v, d, f;
    } shapes[] = {{V, D + 2, FFN}, {V + 1, D, FFN}, {V - 1, D, FFN}, {V, D, FFN + 1}};
    for (size_t i = 0; i < 4; i++) {
        builder b = {.state = 1};
        builder_model(&b, shapes[i].v, shapes[i].d, shapes[i].f, 1);
        builder_write(&b, &f);
        assert_int_equal(load(&f, NULL, &error), ISOBIT_E_SHAPE);
        assert_non_null(strstr(error.message, "expected"));
    }
    builder b = {.state = 1};
    builder_model(&b, V, D, FFN, 0);
    builder_tensor(&b, "final_logits_bias", V, 0, 0, 1);
    builder_write(&b, &f);
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_SHAPE);
    /* A stored position table of another size; one more tensor that nobody knows is fine. */
    b = (builder){.state = 1};
    builder_model(&b, V, D, FFN, 1);
    builder_tensor(&b, "model.encoder.embed_positions.weight", 5, D, 0, 1);
    builder_write(&b, &f);
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_SHAPE);
    b = (builder){.state = 1};
    builder_model(&b, V, D, FFN, 1);
    builder_tensor(&b, "something.else", 5, 3, 0, 1);
    builder_write(&b, &f);
    assert_int_equal(load(&f, NULL, &error), ISOBIT_OK);
    files_remove(&f);
    (void)state;
}

/* Sizes that no file can have by now, but that a change of a limit could let through. */
void test_impossible_sizes(void **state) {
    iso_error error = {0};
    model_arena arena = {0};
    model_tensor t = {.name = "a", .name_bytes = 1, .dtype = MODEL_F32, .rank = 2};
    model_checkpoint c = {.file.fd = -1, .header = {&t, 1}};
    model_source source = {.checkpoint = &c, .arena = &arena, .error = &error};
    const char *const names[] = {"a", "a"};
    const float *rows;
    model_linear packed;
    t.shape[0] = 1, t.shape[1] = SIZE_MAX / 16 + 1;
    assert_int_equal(model_take_rows(&source, &rows, "a", 1, SIZE_MAX / 16 + 1), ISOBIT_E_OVERFLOW);
    source.load = 1;
    t.shape[0] = SIZE_MAX / 2 + 1, t.shape[1] = 1;
    assert_int_equal(model_take_packed(&source, &packed, names, 2, SIZE_MAX / 2 + 1, 1, 0),
                     ISOBIT_E_OVERFLOW);
    assert_int_equal(model_take_packed(&source, &packed, names, 1, SIZE_MAX / 2 + 1, 1, 0),
                     ISOBIT_E_OVERFLOW);
    model_arena_free(&source.scratch);
    model_arena_free(&arena);
    (void)state;
}

/* Two embeddings of their own, of which one or both are not there. */
void test_unshared_embeddings(void **state) {
    files f;
    iso_error error;
    files_make(&f);
    files_config(&f, "marian", V, D, 2, FFN, IDS ",\"share_encoder_decoder_embeddings\":false");
    for (int have = 0; have < 4; have++) {
        builder b = {.state = 1, .skip = "model.shared.weight"};
        builder_model(&b, V, D, FFN, 1);
        if (have & 1)
            builder_tensor(&b, "model.encoder.embed_tokens.weight", V, D, 0, 1);
        if (have & 2)
            builder_tensor(&b, "model.decoder.embed_tokens.weight", V, D, 0, 1);
        builder_write(&b, &f);
        assert_int_equal(load(&f, NULL, &error), have == 3 ? ISOBIT_OK : ISOBIT_E_MISSING);
        if (have != 3)
            assert_non_null(strstr(error.message, have == 2 ? "encoder.embed" : "decoder.embed"));
    }
    files_remove(&f);
    (void)state;
}

/* A computed table of positions holds at most 2^26 elements. */
void test_most_positions(void **state) {
    static const struct {
        size_t d, positions;
        iso_status status;
    } tables[] = {{64, 1 << 20, ISOBIT_E_RANGE}, {265, 253241, ISOBIT_E_LIMIT}};
    iso_load_options reject = {.size = sizeof reject, .reject_nonfinite = 1};
    files f;
    iso_error error;
    files_make(&f);
    /* The possible one is computed all the same: a minute under an emulator. */
    for (size_t i = getenv("ISOBIT_EMULATED") ? 1 : 0; i < 2; i++) {
        char more[200];
        builder b = {.state = 1, .skip = "model.shared.weight"};
        (void)snprintf(more, sizeof more, IDS ",\"max_position_embeddings\":%zu",
                       tables[i].positions);
        files_config(&f, "marian", V, tables[i].d, 1, FFN, more);
        builder_model(&b, V, tables[i].d, FFN, 1);
        b.skip = NULL; /* ends the load, after the table was found to be possible */
        builder_tensor(&b, "model.shared.weight", V, tables[i].d, NAN, 0);
        builder_write(&b, &f);
        assert_int_equal(load(&f, &reject, &error), tables[i].status);
    }
    files_remove(&f);
    (void)state;
}

/* So does one of rotary embeddings, which turn two elements of a head together. */
void test_most_rotary(void **state) {
    enum { HEAD = 999 }; /* stands for the width of a head */
    static const struct {
        const char *name;
        size_t n, k;
    } tensors[] = {{"self_attn.q_proj.weight", HEAD, D},     {"self_attn.k_proj.weight", HEAD, D},
                   {"self_attn.v_proj.weight", HEAD, D},     {"self_attn.o_proj.weight", D, HEAD},
                   {"mlp.gate_proj.weight", FFN, D},         {"mlp.up_proj.weight", FFN, D},
                   {"mlp.down_proj.weight", D, FFN},         {"input_layernorm.weight", D, 0},
                   {"post_attention_layernorm.weight", D, 0}};
    static const struct {
        size_t width, positions;
        iso_status status;
        const char *says;
    } cases[] = {
        {66, 40, ISOBIT_OK, ""},
        {66, 1 << 20, ISOBIT_E_LIMIT,
         "rotary embeddings of 1048576 positions of 66 elements; at most 67108864 "
         "elements are supported"},
        {65, 40, ISOBIT_E_CONFIG, "heads of width 65; rotary embeddings need an even one"}};
    files f;
    iso_error error;
    files_make(&f);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[400];
        builder b = {.state = 1};
        builder_tensor(&b, "model.embed_tokens.weight", V, D, 0, 1);
        builder_tensor(&b, "model.norm.weight", D, 0, 1, 0);
        for (size_t t = 0; t < sizeof tensors / sizeof *tensors; t++) {
            (void)snprintf(text, sizeof text, "model.layers.0.%s", tensors[t].name);
            const size_t n = tensors[t].n, k = tensors[t].k, width = cases[i].width;
            builder_tensor(&b, text, n == HEAD ? width : n, k == HEAD ? width : k, 0, 1);
        }
        builder_write(&b, &f);
        (void)snprintf(text, sizeof text,
                       "{\"model_type\":\"llama\",\"vocab_size\":%d,\"hidden_size\":%d,"
                       "\"num_hidden_layers\":1,\"num_attention_heads\":1,\"head_dim\":%zu,"
                       "\"intermediate_size\":%d,\"hidden_act\":\"silu\",\"rope_theta\":100.0,"
                       "\"tie_word_embeddings\":true,\"bos_token_id\":1,\"eos_token_id\":2,"
                       "\"rms_norm_eps\":1e-6,\"max_position_embeddings\":%zu}",
                       V, D, cases[i].width, FFN, cases[i].positions);
        files_text(&f, "config.json", text);
        assert_int_equal(load(&f, NULL, &error), cases[i].status);
        if (cases[i].status)
            assert_string_equal(error.message, cases[i].says);
    }
    files_remove(&f);
    (void)state;
}

/* A table of positions is computed once, for both stacks; 1024 of them are most of this model. */
void test_positions_are_shared(void **state) {
    files f;
    iso_error error;
    iso_model *model;
    const size_t table = 1024 * D * sizeof(float);
    files_make(&f);
    good_model(&f);
    assert_int_equal(iso_model_load(&model, f.directory, NULL, NULL, &error), ISOBIT_OK);
    assert_ptr_equal(model->encoder.positions, model->decoder.positions);
    const size_t bytes = iso_model_get_info(model)->weight_bytes;
    assert_in_range(bytes, table, 2 * table - 1);
    iso_model_free(model);
    files_remove(&f);
    (void)state;
}

void test_nonfinite(void **state) {
    files f;
    iso_error error;
    files_make(&f);
    files_config(&f, "marian", V, D, 2, FFN, IDS);
    iso_load_options reject = {.size = sizeof reject, .reject_nonfinite = 1};
    for (int i = 0; i < 3; i++) {
        const float values[] = {0, NAN, -INFINITY};
        builder b = {.state = 1};
        builder_model(&b, V, D, FFN, 0);
        builder_tensor(&b, "final_logits_bias", 1, V, values[i], 0);
        builder_write(&b, &f);
        assert_int_equal(load(&f, NULL, &error), ISOBIT_OK); /* legal data */
        assert_int_equal(load(&f, &reject, &error), i ? ISOBIT_E_RANGE : ISOBIT_OK);
        if (i)
            assert_non_null(strstr(error.message, "final_logits_bias"));
    }
    iso_load_options bad = {.size = 1};
    assert_int_equal(load(&f, &bad, &error), ISOBIT_E_SIZE);
    files_remove(&f);
    (void)state;
}

/* F16 and BF16 bit patterns of all kinds, seen through the encoder's embedding. */
void test_conversions(void **state) {
    for (int bf16 = 0; bf16 < 2; bf16++) {
        model_arena arena = {0};
        model_checkpoint c;
        files f;
        files_make(&f);
        char header[120];
        (void)snprintf(header, sizeof header,
                       "{\"a\":{\"dtype\":\"%s\",\"shape\":[65536],\"data_offsets\":[0,131072]}}",
                       bf16 ? "BF16" : "F16");
        blob b = blob_file(header, strlen(header), 0); /* its data begins at any alignment */
        for (uint32_t i = 0; i < 65536; i++) {
            const unsigned char half[] = {(unsigned char)i, (unsigned char)(i >> 8)};
            blob_add(&b, half, 2);
        }
        files_write(&f, "model.safetensors", b.bytes, b.count);
        blob_free(&b);
        iso_error error = {0};
        const float *values;
        const char *name = "a";
        assert_int_equal(model_checkpoint_open(&c, f.directory, "model.safetensors", 1000, &error),
                         0);
        model_source source = {.checkpoint = &c, .arena = &arena, .error = &error};
        for (source.load = 0; source.load < 2; source.load++)
            assert_int_equal(model_take_vector(&source, &values, &name, 1, 65536, 0), 0);
        assert_int_equal(model_source_finish(&source), 0);
        for (uint32_t i = 0; i < 65536; i++) {
            const uint32_t exponent = i >> 10 & 31, fraction = i & 1023;
            float expected;
            if (bf16) {
                uint32_t bits = i << 16;
                memcpy(&expected, &bits, 4);
            } else {
                expected = exponent == 31  ? (fraction ? NAN : INFINITY)
                           : exponent == 0 ? ldexpf((float)fraction, -24)
                                           : ldexpf((float)(1024 + fraction), (int)exponent - 25);
                expected = i & 0x8000 ? -expected : expected;
            }
            if (isnan(expected)) {
                assert_true(isnan(values[i]));
                continue;
            }
            assert_memory_equal(&values[i], &expected, 4);
        }
        model_arena_free(&source.scratch);
        model_arena_free(&arena);
        model_checkpoint_close(&c);
        files_remove(&f);
    }
    (void)state;
}
