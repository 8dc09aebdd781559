/* SPDX-License-Identifier: MIT
 *
 * Memory that cannot be had.
 */
#include "test_faults.h"

enum { LOAD, TOKENIZER, GENERATE, SCORE, POOL, INFO, CALLS };
static const char *const call_names[] = {"model load", "tokenizer load", "generate",
                                         "score",      "pool",           "info"};

static iso_status call_once(int call, const files *f, iso_model *model, answer *a) {
    iso_error error = {0};
    iso_status status = ISOBIT_OK;
    if (call == LOAD) {
        iso_model *made;
        status = load(&made, f, &error);
        iso_model_free(made);
    } else if (call == TOKENIZER) {
        iso_tokenizer *const untouched = (iso_tokenizer *)(void *)a, *t = untouched;
        status = iso_tokenizer_load(&t, f->directory, &error);
        if (status) {
            assert_ptr_equal(t, untouched);
            assert_int_equal(error.status, status);
        } else {
            iso_tokenizer_free(t);
        }
    } else if (call == GENERATE) {
        status = ask_generate(a, model, NULL, &error);
        assert_int_equal(error.status, status);
    } else if (call == SCORE) {
        status = ask_score(a, model, &error);
        assert_int_equal(error.status, status);
    } else if (call == POOL) {
        iso_pool *const untouched = (iso_pool *)(void *)a, *pool = untouched;
        status = iso_pool_create(&pool, 3);
        if (status) {
            assert_ptr_equal(pool, untouched);
        } else {
            /* A pool of fewer threads than asked for is a pool. */
            const iso_context context = {.size = sizeof context,
                                         .executor = iso_pool_executor(pool)};
            const size_t from = memory.failing, all = memory.all_from;
            memory.failing = memory.all_from = 0;
            assert_int_equal(ask_generate(a, model, &context, &error), ISOBIT_OK);
            memory.failing = from;
            memory.all_from = all;
            iso_pool_destroy(pool);
        }
    } else {
        static char text[65536];
        status = iso_info_json(text, sizeof text, NULL);
    }
    return status;
}

void test_no_memory(void **state) {
    files f;
    iso_model *model;
    iso_error error;
    answer good, got;
    files_make(&f);
    good_files(&f);
    assert_int_equal(load(&model, &f, &error), ISOBIT_OK);
    ask(&good, model);
    for (int call = 0; call < CALLS; call++)
        for (int rest = 0; rest < 2; rest++) { /* one fails; or that one and all after it */
            size_t failures = 0;
            iso_status status = ISOBIT_E_NOMEM;
            for (size_t k = 1; k == 1 || memory.allocations >= k - 1; k++) {
                no_faults();
                *(rest ? &memory.all_from : &memory.failing) = k;
                status = call_once(call, &f, model, &got);
                memory.failing = memory.all_from = 0;
                const size_t made = memory.allocations;
                failures += status != ISOBIT_OK;
                if (status && status != ISOBIT_E_NOMEM)
                    fail_msg("%s, allocation %zu fails: status %d (%s)", call_names[call], k,
                             (int)status, iso_strerror(status));
                if (k > made) {
                    assert_int_equal(status, ISOBIT_OK);
                    break;
                }
                assert_true(k < 10000);
            }
            assert_int_equal(status, ISOBIT_OK);
            print_message("%s: %zu failures\n", call_names[call], failures);
            assert_true(failures > 0 || call == POOL || call == INFO);
            ask(&got, model);
            assert_memory_equal(&got, &good, sizeof got);
        }
    iso_model_free(model);
    same(&good, &f);
    files_remove(&f);
    (void)state;
}

/*
 * A JSON parser without memory. jansson fails then without a word, or, when a string cannot grow
 * (2.14 drops the byte), with any: so only the first kind is looked at, and its other allocations
 * are not made to fail one by one.
 */
static void *no_memory_at_all(size_t bytes) {
    (void)bytes;
    return NULL;
}

void test_json_without_memory(void **state) {
    files f;
    iso_error error;
    iso_model *model;
    iso_tokenizer *t = NULL;
    no_faults();
    files_make(&f);
    good_files(&f);
    json_malloc_t before;
    json_free_t before_free;
    json_get_alloc_funcs(&before, &before_free);
    json_set_alloc_funcs(no_memory_at_all, free);
    iso_status status = load(&model, &f, &error);
    iso_status tokenizer_status = iso_tokenizer_load(&t, f.directory, &error);
    json_set_alloc_funcs(before, before_free); /* not malloc, which is that of this file here */
    assert_int_equal(status, ISOBIT_E_NOMEM);
    assert_int_equal(tokenizer_status, ISOBIT_E_NOMEM);
    assert_null(t);
    files_remove(&f);
    (void)state;
}

/* Its other allocations: what configurations make of objects that have been read. */
static size_t json_made, json_failing;
static long json_kept;
static int json_parsing;

json_t *__real_json_loadb(const char *text, size_t size, size_t flags, json_error_t *where);
json_t *__wrap_json_loadb(const char *text, size_t size, size_t flags, json_error_t *where);
json_t *__wrap_json_loadb(const char *text, size_t size, size_t flags, json_error_t *where) {
    json_parsing++;
    json_t *value = __real_json_loadb(text, size, flags, where);
    json_parsing--;
    return value;
}

static void *json_get(size_t bytes) {
    void *got = !json_parsing && ++json_made == json_failing ? NULL : malloc(bytes);
    json_kept += got != NULL;
    return got;
}

static void json_drop(void *old) {
    json_kept -= old != NULL;
    free(old);
}

static iso_status read_config(const char *directory, iso_error *error) {
    model_config config;
    model_arena arena = {0};
    *error = (iso_error){0};
    const iso_status status = model_config_read(&config, &arena, directory, error);
    model_arena_free(&arena);
    return status;
}

void test_config_without_memory(void **state) {
    static const char folder[] = ISOBIT_TEST_DATA "/models/gemma3-part";
    json_malloc_t before;
    json_free_t before_free;
    iso_error error;
    no_faults();
    json_get_alloc_funcs(&before, &before_free);
    json_set_alloc_funcs(json_get, json_drop);
    for (json_failing = 1;; json_failing++) {
        json_made = 0;
        const iso_status status = read_config(folder, &error);
        if (status != (json_made < json_failing ? ISOBIT_OK : ISOBIT_E_NOMEM))
            fail_msg("allocation %zu: status %d (%s)", json_failing, (int)status, error.message);
        assert_int_equal(json_kept, 0);
        if (json_made < json_failing)
            break;
    }
    json_set_alloc_funcs(before, before_free);
    (void)state;
}

/* Of the library itself: lists of ids, of factors, and of layers, named or counted. */
void test_lists_without_memory(void **state) {
    static const struct {
        const char *config;
        size_t lists;
    } rows[] = {
        {"{\"model_type\":\"gemma3_text\",\"eos_token_id\":[1,2]}", 2},
        {"{\"model_type\":\"gemma3_text\",\"num_hidden_layers\":1,\"layer_types\":["
         "\"full_attention\"]}",
         1},
        {"{\"model_type\":\"llama\",\"head_dim\":4,\"original_max_position_embeddings\":9,"
         "\"bad_words_ids\":[[3]],"
         "\"rope_scaling\":{\"type\":\"longrope\",\"long_factor\":[1,2],\"short_factor\":[1,2]}}",
         3},
    };
    files f;
    iso_error error;
    files_make(&f);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t k = 0;
        iso_status status;
        files_text(&f, "config.json", rows[i].config);
        do {
            no_faults();
            memory.failing = ++k;
            status = read_config(f.directory, &error);
            if (status != (memory.allocations < k ? ISOBIT_OK : ISOBIT_E_NOMEM))
                fail_msg("%s, allocation %zu: status %d (%s)", rows[i].config, k, (int)status,
                         error.message);
        } while (status);
        assert_true(k > 1 + rows[i].lists);
    }
    no_faults();
    files_remove(&f);
    (void)state;
}

/* ------------------------------------------------------------------------------------ weights */

/* The memory of all weights is asked for at once, and that it is not there has a sentence. */
void test_no_memory_for_weights(void **state) {
    files f;
    iso_error error;
    iso_model *model;
    size_t said = 0;
    files_make(&f);
    good_files(&f);
    for (size_t k = 1;; k++) {
        no_faults();
        memory.failing = k;
        const iso_status status = load(&model, &f, &error);
        memory.failing = 0;
        iso_model_free(model);
        said += status && !strcmp(error.message, "out of memory for the weights");
        if (k > memory.allocations)
            break;
    }
    assert_int_equal(said, 1);
    files_remove(&f);
    (void)state;
}

size_t each_take_fails(iso_model *model, model_source *source) {
    for (size_t k = 1;; k++) {
        memory.allocations = 0, memory.failing = k;
        source->take_count = 0;
        iso_status status = model_take_all(model, source);
        if (!status)
            status = model_source_finish(source);
        memory.failing = 0;
        if (k > memory.allocations) {
            assert_int_equal(status, ISOBIT_OK);
            return k;
        }
        if (status != ISOBIT_E_NOMEM)
            fail_msg("weight %zu: status %d (%s)", k, (int)status, source->error->message);
    }
}

/*
 * Without that memory each weight is asked for by itself. Nobody does this, but weights check what
 * they get all the same: the sizes of the two passes might come to differ.
 */
void test_no_memory_for_a_weight(void **state) {
    files f;
    iso_error error = {0};
    model_checkpoint checkpoint = {.file.fd = -1};
    iso_model model = {.arena = {0}};
    model_layer layers[2];
    const iso_context context = {.size = sizeof context};
    model_source source = {.checkpoint = &checkpoint,
                           .prefix = "model.",
                           .arena = &model.arena,
                           .context = &context,
                           .error = &error};
    builder b = {.state = 5};
    no_faults();
    files_make(&f);
    good_files(&f);
    files_config(&f, "marian", V, D, 2, FFN,
                 ",\"eos_token_id\":[2],\"decoder_start_token_id\":1,\"pad_token_id\":0,"
                 "\"max_position_embeddings\":9");
    builder_model(&b, V, D, FFN, 1);
    /* One table of positions is there, the other one is computed. */
    builder_tensor(&b, "model.decoder.embed_positions.weight", 9, D, 0, 1);
    builder_write(&b, &f);
    memset(layers, 0, sizeof layers);
    model.encoder = (model_stack){.layers = 1,
                                  .H = 2,
                                  .Hk = 2,
                                  .dh = D / 2,
                                  .qkv = 3 * D,
                                  .f = FFN,
                                  .V = V,
                                  .layer = &layers[0]};
    model.decoder = model.encoder;
    model.decoder.layer = &layers[1];
    assert_int_equal(model_config_read(&model.config, &model.arena, f.directory, &error),
                     ISOBIT_OK);
    assert_int_equal(
        model_checkpoint_open(&checkpoint, f.directory, "model.safetensors", 100000, &error),
        ISOBIT_OK);
    assert_int_equal(model_take_all(&model, &source), ISOBIT_OK);
    source.load = 1;
    assert_true(each_take_fails(&model, &source) > 30);
    model_arena_free(&source.scratch);
    model_arena_free(&model.arena);
    model_checkpoint_close(&checkpoint);
    files_remove(&f);
    (void)state;
}

/* Sizes that no file can have: a sum or product of them must not begin again at 0. */
void test_weights_too_large(void **state) {
    static const struct {
        size_t n, k, before;
    } sums[] = {{SIZE_MAX / 2 + 1, 2, 0}, /* n k */
                {SIZE_MAX / 4 + 1, 1, 0}, /* bytes */
                {SIZE_MAX / 4, 1, 0},     /* bytes, rounded up */
                {16, 1, SIZE_MAX - 63}};  /* and those of other weights */
    static const char *const names[] = {"a", "a"};
    iso_error error = {0};
    model_tensor t = {.name = "a", .name_bytes = 1, .rank = 1, .shape = {SIZE_MAX / 2 + 1}};
    const model_checkpoint checkpoint = {.file.fd = -1, .header = {&t, 1}};
    model_source source = {.checkpoint = &checkpoint, .error = &error};
    const float *data;
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        source.bytes = sums[i].before;
        assert_int_equal(model_source_plan(&source, sums[i].n, sums[i].k, sizeof(float)),
                         ISOBIT_E_OVERFLOW);
    }
    source.bytes = 0;
    assert_int_equal(model_take_vector(&source, &data, names, 2, SIZE_MAX / 2 + 1, 0),
                     ISOBIT_E_OVERFLOW);
    assert_int_equal(model_source_finish(&source), ISOBIT_OK); /* nothing was noted */
    model_arena_free(&source.scratch);
    (void)state;
}
