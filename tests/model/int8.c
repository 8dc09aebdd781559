/* SPDX-License-Identifier: MIT
 *
 * Models computed with int8: the same bits at once and step by step, on every instruction set and
 * with threads (wide.c and costs.c have more of it), near those of f32; and the bits of the
 * operations of int8, called by hand.
 */
#include "test_model.h"

static iso_status load_computed(iso_model **model, const char *path, size_t compute, int map,
                                iso_error *error) {
    const iso_load_options options = {.size = sizeof options, .compute = compute, .map = map};
    *model = NULL;
    return iso_model_load(model, path, &options, NULL, error);
}

iso_model *load_int8(const char *name) {
    char path[600];
    iso_error error = {0};
    iso_model *model;
    (void)snprintf(path, sizeof path, "%s/models/%s", ISOBIT_TEST_DATA, name);
    ok(load_computed(&model, path, ISOBIT_COMPUTE_INT8, 0, &error), &error);
    return model;
}

void test_int8_bits(void **state) {
    enum { T = 40, S = 30 };
    double worst = 0, sum = 0;
    size_t count = 0;
    iso_pool *pool;
    assert_int_equal(iso_pool_create(&pool, 3), ISOBIT_OK);
    for (size_t m = 0; m < golden_count; m += model_step(), count++) {
        iso_model *plain = load_golden(golden[m], NULL), *model = load_int8(golden[m]);
        const iso_model_info *info = iso_model_get_info(model), *other = iso_model_get_info(plain);
        const int both = has_encoder(model);
        const size_t V = info->target_vocabulary;
        uint32_t source[S], target[T];
        for (uint32_t i = 0; i < T; i++) {
            source[i % S] = (i * 11 + 3) % (uint32_t)info->source_vocabulary;
            target[i] = i || !both ? (i * 17 + 5) % (uint32_t)V : info->decoder_start_id;
        }
        float *usual = malloc(T * V * sizeof(float)), *whole = malloc(T * V * sizeof(float));
        float *other_way = malloc(T * V * sizeof(float));
        assert_true(usual && whole && other_way);
        logits_of(usual, plain, source, S, target, T, 0);
        logits_of(whole, model, source, S, target, T, 0);
        const double moved = farthest(whole, usual, T * V) / farthest(usual, NULL, T * V);
        assert_true(moved > 0);
        worst = fmax(worst, moved);
        sum += moved;
        for (size_t i = 0; i < 2 * iso_isa_count(); i++) {
            const iso_context context = {.size = sizeof context,
                                         .isa = iso_isa_get(i / 2),
                                         .executor = i % 2 ? iso_pool_executor(pool) : NULL};
            iso_error error = {0};
            for (int stepwise = 0; stepwise < 2 && !iso_isa_missing(context.isa); stepwise++) {
                ok(iso_logits_f32(other_way, model, both ? source : NULL, both ? S : 0, target, T,
                                  stepwise, &context, &error),
                   &error);
                assert_memory_equal(whole, other_way, T * V * sizeof(float));
            }
        }
        assert_int_equal(info->parameters, other->parameters);
        assert_int_equal(other->parameters_int8, 0);
        assert_int_equal(info->parameters_int8, info->parameters_8);
        assert_true(2 * info->parameters_int8 > info->parameters);
        assert_true(info->weight_bytes < other->weight_bytes);
        free(usual);
        free(whole);
        free(other_way);
        iso_model_free(plain);
        iso_model_free(model);
    }
    iso_pool_destroy(pool);
    print_message("int8 moves logits by %.2g of the largest at most, %.2g as a rule\n", worst,
                  sum / (double)count);
    assert_true(worst < 0.2 && sum < 0.05 * (double)count); /* random numbers, and few of them */
    (void)state;
}

/* ------------------------------------------------------------------------------------ by hand */

enum { V = 53, D = 40, F = 72, P = 16, T = 9 };

typedef struct matrix {
    float *w;
    void *memory;
    iso_packed_s8 packed;
} matrix;

/* A tensor [rows][columns] of the file, and packed: `turned` [k][n]. */
static matrix add_matrix(builder *b, const char *name, size_t rows, size_t columns, int turned,
                         float spread) {
    const size_t n = turned ? columns : rows, k = turned ? rows : columns, at = b->data.count;
    matrix m = {.w = malloc(rows * columns * sizeof(float))};
    size_t bytes;
    builder_tensor(b, name, rows, columns, 0, spread);
    assert_int_equal(iso_pack_s8_bytes(&bytes, n, k), ISOBIT_OK);
    m.memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_true(m.w && m.memory);
    memcpy(m.w, b->data.bytes + at, rows * columns * sizeof(float));
    assert_int_equal(iso_pack_s8(&m.packed, m.memory, bytes, m.w, columns, n, k, turned, NULL),
                     ISOBIT_OK);
    return m;
}

static void free_matrix(matrix *m) {
    free(m->w);
    free(m->memory);
}

static void add_vector(float *v, builder *b, const char *name, size_t n, float centre,
                       float spread) {
    const size_t at = b->data.count;
    builder_tensor(b, name, n, 0, centre, spread);
    memcpy(v, b->data.bytes + at, n * sizeof *v);
}

static void linear(float *y, const float *x, const matrix *w, const float *bias, iso_activation act,
                   const float *residual) {
    const iso_linear_options o = {.size = sizeof o,
                                  .bias = bias,
                                  .act = act,
                                  .residual = residual,
                                  .ldr = residual ? w->packed.n : 0};
    assert_int_equal(iso_linear_s8(y, w->packed.n, x, w->packed.k, &w->packed, T, &o, NULL),
                     ISOBIT_OK);
}

static void norm(float *y, const float *x, const float *gamma, const float *beta) {
    const iso_norm_options o = {.size = sizeof o, .gamma = gamma, .beta = beta, .eps = 1e-5f};
    assert_int_equal(iso_layernorm_f32(y, D, x, D, T, D, &o, NULL), ISOBIT_OK);
}

/*
 * A GPT-2 of one layer, whose attention adds nothing: rows of the tied table, the feed-forward
 * layer, whose matrices are stored [in][out], and the logits are what the operations give.
 */
void test_int8_layers(void **state) {
    files f;
    iso_error error = {0};
    builder b = {.state = 5};
    files_make(&f);
    files_text(&f, "config.json",
               "{\"model_type\":\"gpt2\",\"n_embd\":40,\"n_layer\":1,\"n_head\":4,\"n_inner\":72,"
               "\"n_positions\":16,\"vocab_size\":53,\"bos_token_id\":0,\"eos_token_id\":0}");
    float gamma[2][D], beta[2][D], up_bias[F], down_bias[D], unused[3 * D];
    matrix wte = add_matrix(&b, "wte.weight", V, D, 0, 1);
    matrix wpe = add_matrix(&b, "wpe.weight", P, D, 0, 1);
    add_vector(unused, &b, "h.0.ln_1.weight", D, 1, 0.3f);
    add_vector(unused, &b, "h.0.ln_1.bias", D, 0, 0.3f);
    matrix qkv = add_matrix(&b, "h.0.attn.c_attn.weight", D, 3 * D, 1, 0.5f);
    add_vector(unused, &b, "h.0.attn.c_attn.bias", 3 * D, 0, 0.1f);
    matrix out = add_matrix(&b, "h.0.attn.c_proj.weight", D, D, 1, 0);
    add_vector(unused, &b, "h.0.attn.c_proj.bias", D, 0, 0);
    add_vector(gamma[0], &b, "h.0.ln_2.weight", D, 1, 0.3f);
    add_vector(beta[0], &b, "h.0.ln_2.bias", D, 0, 0.3f);
    matrix up = add_matrix(&b, "h.0.mlp.c_fc.weight", D, F, 1, 0.5f);
    add_vector(up_bias, &b, "h.0.mlp.c_fc.bias", F, 0, 0.1f);
    matrix down = add_matrix(&b, "h.0.mlp.c_proj.weight", F, D, 1, 0.5f);
    add_vector(down_bias, &b, "h.0.mlp.c_proj.bias", D, 0, 0.1f);
    add_vector(gamma[1], &b, "ln_f.weight", D, 1, 0.3f);
    add_vector(beta[1], &b, "ln_f.bias", D, 0, 0.3f);
    builder_write(&b, &f);

    static float table[V * D], x[T * D], h[T * D], hidden[T * F], expected[T * V], logits[T * V];
    int8_t q[V * D];
    float scales[V];
    uint32_t ids[T], positions[T];
    for (uint32_t t = 0; t < T; t++) {
        ids[t] = (t * 13 + 4) % V;
        positions[t] = t;
    }
    assert_int_equal(iso_quantize_s8(q, D, scales, wte.w, D, V, D, NULL), ISOBIT_OK);
    for (size_t i = 0; i < V * D; i++)
        table[i] = (float)q[i] * scales[i / D];
    assert_int_equal(iso_embed_f32(x, D, ids, T, table, V, D, 1, wpe.w, positions, P, NULL),
                     ISOBIT_OK);
    norm(h, x, gamma[0], beta[0]);
    linear(hidden, h, &up, up_bias, ISOBIT_ACT_GELU_TANH, NULL);
    linear(x, hidden, &down, down_bias, ISOBIT_ACT_NONE, x);
    norm(h, x, gamma[1], beta[1]);
    linear(expected, h, &wte, NULL, ISOBIT_ACT_NONE, NULL);

    for (int map = 0; map < 2; map++) { /* a mapped file has the same model */
        iso_model *model;
        ok(load_computed(&model, f.directory, ISOBIT_COMPUTE_INT8, map, &error), &error);
        ok(iso_logits_f32(logits, model, NULL, 0, ids, T, map, NULL, &error), &error);
        assert_memory_equal(logits, expected, sizeof logits);
        assert_int_equal(iso_model_get_info(model)->parameters_int8, V * D + 4 * D * D + 2 * D * F);
        iso_model_free(model);
    }
    free_matrix(&wte);
    free_matrix(&wpe);
    free_matrix(&qkv);
    free_matrix(&out);
    free_matrix(&up);
    free_matrix(&down);
    files_remove(&f);
    (void)state;
}

/* ------------------------------------------------------------------------------------ options */

void test_compute_option(void **state) {
    iso_error error = {0};
    iso_model *model = NULL;
    iso_load_options options = {.size = sizeof options, .compute = 4};
    assert_int_equal(iso_model_load(&model, G2P, &options, NULL, &error), ISOBIT_E_OPTION);
    assert_non_null(strstr(error.message, "compute 4"));
    options =
        (iso_load_options){.size = sizeof options, .compute = ISOBIT_COMPUTE_INT8, .widen = 1};
    assert_int_equal(iso_model_load(&model, G2P, &options, NULL, &error), ISOBIT_E_OPTION);
    assert_non_null(strstr(error.message, "widen"));
    options.compute = ISOBIT_COMPUTE_INT4;
    assert_int_equal(iso_model_load(&model, G2P, &options, NULL, &error), ISOBIT_E_OPTION);
    assert_non_null(strstr(error.message, "asks for int4"));
    options = (iso_load_options){.size = sizeof options, .compute = ISOBIT_COMPUTE_INT4};
    assert_int_equal(iso_model_load(&model, G2P, &options, NULL, &error), ISOBIT_E_UNSUPPORTED);
    assert_non_null(strstr(error.message, "no matrix of 4 or 8 bits"));
    assert_null(model);
    options.compute = ISOBIT_COMPUTE_AUTO;
    /* A header without it: what is there is not read. And f32 is what a file of floats has. */
    options.size = offsetof(iso_load_options, compute);
    ok(iso_model_load(&model, G2P, &options, NULL, &error), &error);
    assert_int_equal(iso_model_get_info(model)->parameters_int8, 0);
    iso_model_free(model);
    ok(load_computed(&model, G2P, ISOBIT_COMPUTE_F32, 0, &error), &error);
    const iso_model_info *info = iso_model_get_info(model);
    assert_true(info->parameters_int8 == 0 && info->parameters_16 > info->parameters / 2);
    iso_model_free(model);
    /* What a step reads of int8 is a byte for each multiply-add. */
    const uint32_t source[] = {7, 9, 21, 2};
    const size_t length = 4;
    double bytes[2];
    for (size_t i = 0; i < 2; i++) {
        iso_generate_options o = {
            .size = sizeof o, .beams = 1, .max_new_tokens = 3, .min_length = 4};
        iso_profile p = {.size = sizeof p};
        iso_generation *g;
        ok(load_computed(&model, G2P, i ? ISOBIT_COMPUTE_INT8 : ISOBIT_COMPUTE_F32, 0, &error),
           &error);
        assert_int_equal(iso_model_set_profile(model, &p), ISOBIT_OK);
        ok(iso_generate(&g, model, source, &length, 1, &o, NULL, &error), &error);
        iso_generation_free(g);
        bytes[i] = p.step_weight_bytes;
        iso_model_free(model);
    }
    assert_true(bytes[0] == 2 * bytes[1]); /* of F16 */
    (void)state;
}
