/* SPDX-License-Identifier: MIT
 *
 * Loading with several threads. Models of many pieces are loaded with executors of all kinds, and
 * each number in memory is looked up in the file where the layout says that it comes from. Of
 * several faults the first one is reported, whoever meets it. A mapped model gives the same bits.
 */
#include "model_files.h"

#include "weights.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* ------------------------------------------------------------------------------- executors */

static void last_first(void *user, size_t n, void (*fn)(void *, size_t), void *arg) {
    while (n > 0)
        fn(arg, --n);
    (void)user;
}

/* Only then cuts the file off, when its header has been read. */
typedef struct cut {
    const char *path;
    size_t bytes;
    const iso_executor *next;
} cut;

static void cut_first(void *user, size_t n, void (*fn)(void *, size_t), void *arg) {
    const cut *c = user;
    assert_int_equal(truncate(c->path, (off_t)c->bytes), 0);
    c->next->parallel_for(c->next->user, n, fn, arg);
}

enum { EXECUTORS = 5, NAME = 200 };
static iso_pool *pools[3];

static int make_pools(void **state) {
    for (size_t i = 0; i < 3; i++)
        if (iso_pool_create(&pools[i], i + 2))
            return 1;
    (void)state;
    return 0;
}

static int free_pools(void **state) {
    for (size_t i = 0; i < 3; i++)
        iso_pool_destroy(pools[i]);
    (void)state;
    return 0;
}

/* None, one that runs the last task first, pools of 2, 3 and 4 threads. */
static const iso_executor *executor(size_t i) {
    static const iso_executor serial = {last_first, NULL, 5};
    return i == 0 ? NULL : i == 1 ? &serial : iso_pool_executor(pools[i - 2]);
}

static iso_status load_as(iso_model **model, const files *f, const iso_executor *e, int finite,
                          int map, iso_error *error) {
    const iso_context context = {.size = sizeof context, .executor = e};
    const iso_load_options options = {
        .size = sizeof options, .reject_nonfinite = finite, .map = map};
    *model = NULL;
    return iso_model_load(model, f->directory, &options, &context, error);
}

static iso_status load(iso_model **model, const files *f, const iso_executor *e, int finite,
                       iso_error *error) {
    return load_as(model, f, e, finite, 0, error);
}

/* ---------------------------------------------------------------------------------- models */

/* The tensors of a file, and where they are in it. */
typedef struct contents {
    builder b;
    struct {
        char name[NAME];
        size_t at;
    } tensor[100];
    size_t count;
} contents;

#define NO_LAYER SIZE_MAX

static void add(contents *c, const char *tail, size_t layer, size_t n, size_t k) {
    char *name = c->tensor[c->count].name;
    if (layer == NO_LAYER)
        (void)snprintf(name, NAME, "%s", tail);
    else
        (void)snprintf(name, NAME, "h.%zu%s", layer, tail);
    c->tensor[c->count++].at = c->b.data.count;
    builder_tensor(&c->b, name, n, k, 0, 1);
}

/* Where the numbers of a tensor are, at any address. */
static uint8_t *find(const contents *c, const char *name) {
    for (size_t t = 0; t < c->count; t++)
        if (strcmp(c->tensor[t].name, name) == 0)
            return c->b.data.bytes + c->tensor[t].at;
    fail_msg("no tensor %s", name);
    return NULL;
}

static float stored(const uint8_t *tensor, size_t i) {
    float value;
    memcpy(&value, tensor + i * sizeof value, sizeof value);
    return value;
}

static void put(contents *c, const char *name, size_t i, float value) {
    memcpy(find(c, name) + i * sizeof value, &value, sizeof value);
}

/* A copy of the builder is written, so that the contents stay. */
static size_t write_file(const contents *c, const files *f) {
    builder b = {.state = 1};
    blob_add(&b.header, c->b.header.bytes, c->b.header.count);
    blob_add(&b.data, c->b.data.bytes, c->b.data.count);
    builder_write(&b, f);
    char path[160];
    struct stat st;
    files_path(f, "model.safetensors", path, sizeof path);
    assert_int_equal(stat(path, &st), 0);
    return (size_t)st.st_size - c->b.data.count; /* where the data begins */
}

/* Sizes that no panel and no piece divides. Matrices are stored [in][out]. */
enum { V = 3001, D = 200, FFN = 808, LAYERS = 3, P = 300 };
static contents gpt2;

static int make_gpt2(void **state) {
    contents *c = &gpt2;
#ifdef __GLIBC__
    mallopt(M_PERTURB, 85); /* new memory is not 0 */
#endif
    add(c, "wte.weight", NO_LAYER, V, D);
    add(c, "wpe.weight", NO_LAYER, P, D);
    for (size_t l = 0; l < LAYERS; l++) {
        add(c, ".ln_1.weight", l, D, 0);
        add(c, ".ln_1.bias", l, D, 0);
        add(c, ".attn.c_attn.weight", l, D, 3 * D);
        add(c, ".attn.c_attn.bias", l, 3 * D, 0);
        add(c, ".attn.c_proj.weight", l, D, D);
        add(c, ".attn.c_proj.bias", l, D, 0);
        add(c, ".ln_2.weight", l, D, 0);
        add(c, ".ln_2.bias", l, D, 0);
        add(c, ".mlp.c_fc.weight", l, D, FFN);
        add(c, ".mlp.c_fc.bias", l, FFN, 0);
        add(c, ".mlp.c_proj.weight", l, FFN, D);
        add(c, ".mlp.c_proj.bias", l, D, 0);
    }
    add(c, "ln_f.weight", NO_LAYER, D, 0);
    add(c, "ln_f.bias", NO_LAYER, D, 0);
    return make_pools(state);
}

static int free_gpt2(void **state) {
    blob_free(&gpt2.b.header);
    blob_free(&gpt2.b.data);
    return free_pools(state);
}

static void gpt2_config(const files *f) {
    char text[300];
    (void)snprintf(text, sizeof text,
                   "{\"model_type\":\"gpt2\",\"n_embd\":%d,\"n_layer\":%d,\"n_head\":4,"
                   "\"n_inner\":%d,\"n_positions\":%d,\"vocab_size\":%d,"
                   "\"bos_token_id\":0,\"eos_token_id\":0}",
                   D, LAYERS, FFN, P, V);
    files_text(f, "config.json", text);
}

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* A packed matrix of n rows: row i, column j is number at(i, j) of a tensor. */
static void check_packed(const contents *c, const char *name, const iso_packed *w, size_t n,
                         size_t k, size_t row, size_t column, size_t first) {
    assert_int_equal(w->k, k);
    const size_t last = first + n == w->n ? (w->n + 15) / 16 * 16 : first + n;
    const uint8_t *tensor = find(c, name);
    for (size_t i = first; i < last; i++)
        for (size_t j = 0; j < k; j++) {
            const float expected =
                i < first + n ? stored(tensor, (i - first) * row + j * column) : 0;
            const float *got = &w->data[i / 16 * 16 * k + j * 16 + i % 16];
            if (bits_of(*got) != bits_of(expected))
                fail_msg("%s [%zu][%zu]: %g, not %g", name, i, j, (double)*got, (double)expected);
        }
}

static void check_vector(const contents *c, const char *name, const float *got, size_t n) {
    const uint8_t *tensor = find(c, name);
    for (size_t i = 0; i < n; i++) {
        const float expected = stored(tensor, i);
        if (bits_of(got[i]) != bits_of(expected))
            fail_msg("%s [%zu]: %g, not %g", name, i, (double)got[i], (double)expected);
    }
}

static void check_turned(size_t layer, const char *tail, const model_linear *linear, size_t n,
                         size_t k) {
    char name[NAME];
    (void)snprintf(name, sizeof name, "h.%zu%s.weight", layer, tail);
    assert_int_equal(linear->w.n, n);
    check_packed(&gpt2, name, &linear->w, n, k, 1, n, 0);
    (void)snprintf(name, sizeof name, "h.%zu%s.bias", layer, tail);
    check_vector(&gpt2, name, linear->bias, n);
}

static void check_norm(const contents *c, const char *name, const model_norm *norm, size_t n) {
    char full[2 * NAME];
    (void)snprintf(full, sizeof full, "%s.weight", name);
    check_vector(c, full, norm->gamma, n);
    (void)snprintf(full, sizeof full, "%s.bias", name);
    check_vector(c, full, norm->beta, n);
}

static void test_turned(void **state) {
    files f;
    files_make(&f);
    gpt2_config(&f);
    write_file(&gpt2, &f);
    for (size_t e = 0; e < EXECUTORS; e++) {
        iso_model *model;
        iso_error error;
        if (load(&model, &f, executor(e), 0, &error))
            fail_msg("executor %zu: %s", e, error.message);
        check_packed(&gpt2, "wte.weight", &model->logits.w, V, D, D, 1, 0);
        check_vector(&gpt2, "wpe.weight", model->decoder.positions, (size_t)P * D);
        for (size_t l = 0; l < LAYERS; l++) {
            const model_layer *layer = &model->decoder.layer[l];
            char name[NAME];
            check_turned(l, ".attn.c_attn", &layer->self_qkv, 3 * D, D);
            check_turned(l, ".attn.c_proj", &layer->self_out, D, D);
            check_turned(l, ".mlp.c_fc", &layer->fc1, FFN, D);
            check_turned(l, ".mlp.c_proj", &layer->fc2, D, FFN);
            (void)snprintf(name, sizeof name, "h.%zu.ln_1", l);
            check_norm(&gpt2, name, &layer->self_norm, D);
            (void)snprintf(name, sizeof name, "h.%zu.ln_2", l);
            check_norm(&gpt2, name, &layer->ffn_norm, D);
        }
        check_norm(&gpt2, "ln_f", &model->decoder.final_norm, D);
        iso_model_free(model);
    }
    files_remove(&f);
    (void)state;
}

/* Both models generate the same bits for prompts of several lengths. */
static void same_bits(const iso_model *a, const iso_model *b, const iso_executor *e) {
    static const size_t lengths[] = {1, 5, 40};
    const iso_context context = {.size = sizeof context, .executor = e};
    const iso_generate_options options = {
        .size = sizeof options, .max_new_tokens = 4, .beams = 2, .hypotheses = 2};
    uint32_t ids[46];
    for (size_t i = 0; i < 46; i++)
        ids[i] = 2 + (uint32_t)i % 17;
    iso_generation *results[2];
    iso_error error;
    for (int i = 0; i < 2; i++)
        if (iso_generate(&results[i], i ? b : a, ids, lengths, 3, &options, &context, &error))
            fail_msg("%s", error.message);
    for (size_t i = 0; i < results[0]->count; i++) {
        const iso_hypothesis *x = &results[0]->best[i], *y = &results[1]->best[i];
        assert_int_equal(x->length, y->length);
        assert_memory_equal(x->ids, y->ids, x->length * sizeof *x->ids);
        assert_memory_equal(x->log_probs, y->log_probs, x->length * sizeof *x->log_probs);
    }
    iso_generation_free(results[0]);
    iso_generation_free(results[1]);
}

static int lies_in(const iso_model *model, const float *at) {
    const char *start = model->map_count ? model->maps[0].at : NULL;
    return start && (const char *)at >= start && (const char *)at < start + model->maps[0].bytes;
}

/* Queries, keys and values of a few heads below each other: parts end within a panel and a piece.
 */
static void test_stacked(void **state) {
    enum { W = 864, HEADS = 16, KEY_HEADS = 2, WIDTH = W / HEADS, KEYS = KEY_HEADS * WIDTH };
    static contents c = {.b.state = 7};
    files f;
    files_make(&f);
    static const char layer[] = "model.layers.0.";
    static const struct {
        const char *name;
        size_t n, k;
    } tensors[] = {/* not in the order in which they are stacked */
                   {"self_attn.v_proj.weight", KEYS, W},     {"mlp.up_proj.weight", 24, W},
                   {"self_attn.q_proj.weight", W, W},        {"self_attn.k_proj.weight", KEYS, W},
                   {"self_attn.o_proj.weight", W, W},        {"mlp.gate_proj.weight", 24, W},
                   {"mlp.down_proj.weight", W, 24},          {"input_layernorm.weight", W, 0},
                   {"post_attention_layernorm.weight", W, 0}};
    char name[NAME], text[300];
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        (void)snprintf(name, sizeof name, "%s%s", layer, tensors[i].name);
        add(&c, name, NO_LAYER, tensors[i].n, tensors[i].k);
    }
    add(&c, "model.embed_tokens.weight", NO_LAYER, 20, W);
    add(&c, "lm_head.weight", NO_LAYER, 20, W);
    add(&c, "model.norm.weight", NO_LAYER, W, 0);
    (void)snprintf(text, sizeof text,
                   "{\"model_type\":\"llama\",\"hidden_size\":%d,\"num_hidden_layers\":1,"
                   "\"num_attention_heads\":%d,\"num_key_value_heads\":%d,"
                   "\"intermediate_size\":24,\"max_position_embeddings\":64,\"vocab_size\":20,"
                   "\"rms_norm_eps\":1e-5,\"tie_word_embeddings\":false,"
                   "\"bos_token_id\":0,\"eos_token_id\":1}",
                   W, HEADS, KEY_HEADS);
    files_text(&f, "config.json", text);
    write_file(&c, &f);
    for (size_t e = 0; e < EXECUTORS; e++) {
        iso_model *model;
        iso_error error;
        if (load(&model, &f, executor(e), 0, &error))
            fail_msg("executor %zu: %s", e, error.message);
        const model_layer *l = &model->decoder.layer[0];
        const iso_packed *qkv = &l->self_qkv.w;
        assert_int_equal(qkv->n, W + 2 * KEYS);
        check_packed(&c, "model.layers.0.self_attn.q_proj.weight", qkv, W, W, W, 1, 0);
        check_packed(&c, "model.layers.0.self_attn.k_proj.weight", qkv, KEYS, W, W, 1, W);
        check_packed(&c, "model.layers.0.self_attn.v_proj.weight", qkv, KEYS, W, W, 1, W + KEYS);
        check_packed(&c, "model.layers.0.mlp.gate_proj.weight", &l->fc1.w, 24, W, W, 1, 0);
        check_packed(&c, "model.layers.0.mlp.up_proj.weight", &l->fc1.w, 24, W, W, 1, 24);
        check_packed(&c, "model.layers.0.mlp.down_proj.weight", &l->fc2.w, W, 24, 24, 1, 0);
        check_vector(&c, "model.embed_tokens.weight", model->decoder.embedding.rows,
                     (size_t)20 * W);
        check_vector(&c, "model.layers.0.input_layernorm.weight", l->self_norm.gamma, W);
        iso_model *mapped;
        if (load_as(&mapped, &f, executor(e), 0, 1, &error))
            fail_msg("executor %zu: %s", e, error.message);
        assert_non_null(mapped->decoder.layer[0].self_qkv.w.data); /* three tensors */
        assert_true(lies_in(mapped, mapped->decoder.layer[0].fc2.plain));
        assert_true(lies_in(mapped, mapped->decoder.embedding.rows));
        same_bits(model, mapped, executor(e));
        iso_model_free(mapped);
        iso_model_free(model);
    }
    blob_free(&c.b.header);
    blob_free(&c.b.data);
    files_remove(&f);
    (void)state;
}

/* ---------------------------------------------------------------------------------- errors */

/* Numbers that are not finite in several places: the first one counts, in the order of loading. */
static void test_first_error(void **state) {
    static const struct {
        const char *name;
        size_t at;
    } places[] = {{"h.2.mlp.c_proj.weight", 7},
                  {"h.2.ln_1.bias", 3},
                  {"h.1.mlp.c_fc.weight", 150000},
                  {"h.1.mlp.c_fc.weight", 90000},
                  {"h.0.attn.c_attn.weight", 0},
                  {"wte.weight", 600000},
                  {"wte.weight", 599999},
                  /* the first one that a second thread sees, the last one of the first thread */
                  {"wte.weight", 512000},
                  {"wte.weight", 511999},
                  {"wte.weight", 2}};
    const size_t count = sizeof places / sizeof *places;
    const int times = getenv("ISOBIT_EMULATED") ? 2 : 5; /* mapped, and not */
    float before[sizeof places / sizeof *places];
    files f;
    files_make(&f);
    gpt2_config(&f);
    for (size_t i = 0; i < count; i++) {
        char says[200];
        before[i] = stored(find(&gpt2, places[i].name), places[i].at);
        put(&gpt2, places[i].name, places[i].at, i % 2 ? INFINITY : NAN);
        write_file(&gpt2, &f);
        (void)snprintf(says, sizeof says,
                       "tensor \"%s\": element %zu is not finite, and such weights are rejected",
                       places[i].name, places[i].at);
        for (size_t e = 0; e < EXECUTORS; e++)
            for (int again = 0; again < times; again++) {
                iso_model *model;
                iso_error error;
                assert_int_equal(load_as(&model, &f, executor(e), 1, again & 1, &error),
                                 ISOBIT_E_RANGE);
                assert_null(model);
                assert_string_equal(error.message, says);
            }
    }
    for (size_t i = 0; i < count; i++)
        put(&gpt2, places[i].name, places[i].at, before[i]);
    files_remove(&f);
    (void)state;
}

/* The file is cut after its header has been read: before the data, within it, before its end. */
static void test_cut(void **state) {
    char path[160];
    files f;
    files_make(&f);
    gpt2_config(&f);
    files_path(&f, "model.safetensors", path, sizeof path);
    for (size_t where = 0; where < 4; where++) {
        char first[500] = "";
        for (size_t e = 1; e < EXECUTORS; e++) {
            iso_model *model;
            iso_error error;
            const size_t start = write_file(&gpt2, &f), data = gpt2.b.data.count;
            cut c = {path, start + (where < 3 ? where * data / 2 - (where == 2) : data / 9),
                     executor(e)};
            const iso_executor cutting = {cut_first, &c, c.next->max_threads};
            assert_int_equal(load(&model, &f, &cutting, 0, &error), ISOBIT_E_TRUNCATED);
            assert_null(model);
            assert_non_null(strstr(error.message, "model.safetensors: the file ends at byte "));
            if (!first[0])
                memcpy(first, error.message, sizeof first);
            assert_string_equal(error.message, first);
        }
    }
    files_remove(&f);
    (void)state;
}

/* ---------------------------------------------------------------------------------- mapped */

static void test_mapped(void **state) {
    files f;
    files_make(&f);
    gpt2_config(&f);
    write_file(&gpt2, &f);
    for (size_t e = 0; e < EXECUTORS; e++) {
        iso_model *packed, *mapped;
        iso_error error;
        assert_int_equal(load(&packed, &f, executor(e), 0, &error), ISOBIT_OK);
        assert_int_equal(load_as(&mapped, &f, executor(e), e & 1, 1, &error), ISOBIT_OK);
        assert_null(packed->maps);
        const model_layer *layer = &mapped->decoder.layer[LAYERS - 1];
        const float *const in_file[] = {mapped->logits.plain,  layer->self_qkv.plain,
                                        layer->self_out.plain, layer->fc1.plain,
                                        layer->fc2.plain,      mapped->decoder.embedding.rows};
        for (size_t i = 0; i < sizeof in_file / sizeof *in_file; i++)
            assert_true(lies_in(mapped, in_file[i]));
        assert_null(layer->fc1.w.data);
        assert_false(lies_in(mapped, mapped->decoder.positions)); /* some are changed */
        check_vector(&gpt2, "h.2.mlp.c_fc.weight", layer->fc1.plain, (size_t)D * FFN);
        assert_int_equal(mapped->info.parameters, packed->info.parameters);
        assert_int_equal(mapped->info.has_logits, 1);
        same_bits(packed, mapped, executor(e));
        iso_model_free(packed);
        iso_model_free(mapped);
    }
    files_remove(&f);
    (void)state;
}

/* Another file may take the name: the model keeps the one that it has. */
static void test_replaced(void **state) {
    char path[160], other[160];
    files f;
    iso_model *packed, *mapped;
    iso_error error;
    files_make(&f);
    gpt2_config(&f);
    write_file(&gpt2, &f);
    assert_int_equal(load(&packed, &f, NULL, 0, &error), ISOBIT_OK);
    assert_int_equal(load_as(&mapped, &f, NULL, 0, 1, &error), ISOBIT_OK);
    files_text(&f, "other", "short");
    files_path(&f, "other", other, sizeof other);
    files_path(&f, "model.safetensors", path, sizeof path);
    assert_int_equal(rename(other, path), 0);
    same_bits(packed, mapped, NULL);
    iso_model_free(packed);
    iso_model_free(mapped);
    assert_int_equal(load_as(&mapped, &f, NULL, 0, 1, &error), ISOBIT_E_TRUNCATED);
    files_remove(&f);
    (void)state;
}

/* Numbers at odd addresses, and those that are not F32, are read and packed as ever. */
static void test_not_mapped(void **state) {
    for (int odd = 0; odd < 4; odd++) {
        static contents c;
        files f;
        iso_model *model;
        iso_error error;
        files_make(&f);
        gpt2_config(&f);
        c = gpt2;
        c.b.header = (blob){0};
        blob_add(&c.b.header, gpt2.b.header.bytes, gpt2.b.header.count);
        size_t start;
        do {
            blob_add(&c.b.header, " ", 1);
            start = write_file(&c, &f);
        } while (start % 4 != (size_t)odd);
        assert_int_equal(load_as(&model, &f, NULL, 0, 1, &error), ISOBIT_OK);
        const model_linear *fc1 = &model->decoder.layer[0].fc1;
        assert_int_equal(fc1->plain != NULL, odd == 0);
        assert_int_equal(fc1->w.data == NULL, odd == 0);
        if (odd)
            check_turned(0, ".mlp.c_fc", fc1, FFN, D);
        iso_model_free(model);
        blob_free(&c.b.header);
        files_remove(&f);
    }
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turned),      cmocka_unit_test(test_stacked),
        cmocka_unit_test(test_first_error), cmocka_unit_test(test_cut),
        cmocka_unit_test(test_mapped),      cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_not_mapped),
    };
    return cmocka_run_group_tests(tests, make_gpt2, free_gpt2);
}
