/* SPDX-License-Identifier: MIT
 *
 * A folder of sentence-transformers with two Dense modules and a prompt: memory, system calls,
 * short reads, and a file that is cut.
 */
#include "test_faults.h"

enum { FIRST = 12, WIDTH = 10, COUNT = 2, MEMORY = 0, CALLS = 1 };

static files folder, second; /* the model, and its second module */
static iso_error error;

#define MODULE(type, path)                                                                         \
    "{\"type\":\"sentence_transformers.models." type "\",\"path\":\"" path "\"}"

/* Behind the weights of the second module lies a tensor that nobody reads. */
static void write_second(void) {
    builder b = {.state = 7};
    builder_tensor(&b, "linear.weight", WIDTH, FIRST, 0, 1);
    builder_tensor(&b, "unread", 3, 0, 0, 1);
    builder_write(&b, &second);
}

static void make_folder(void) {
    static const char from[] = ISOBIT_TEST_DATA "/models/sentence-t5";
    static const char *const linked[] = {"config.json", "sentence_bert_config.json",
                                         "model.safetensors", "2_Dense"};
    char path[160], target[400];
    files_make(&folder);
    for (size_t i = 0; i < sizeof linked / sizeof *linked; i++) {
        files_path(&folder, linked[i], path, sizeof path);
        (void)snprintf(target, sizeof target, "%s/%s", from, linked[i]);
        assert_int_equal(symlink(target, path), 0);
    }
    files_path(&folder, "1_Pooling", path, sizeof path);
    assert_int_equal(mkdir(path, 0700), 0);
    files_text(&folder, "1_Pooling/config.json", "{\"pooling_mode_mean_tokens\":true}");
    files_text(&folder, "modules.json",
               "[" MODULE("Transformer", "") "," MODULE("Pooling", "1_Pooling") "," MODULE(
                   "Dense", "2_Dense") "," MODULE("Dense", "3_Dense") "]");
    (void)snprintf(second.directory, sizeof second.directory, "%.40s/3_Dense", folder.directory);
    assert_int_equal(mkdir(second.directory, 0700), 0);
    files_text(&second, "config.json", "{\"in_features\":12,\"out_features\":10,\"bias\":false}");
    write_second();
    /* A prompt of 64 bytes, and one that ends it. */
    files_text(&folder, "config_sentence_transformers.json",
               "{\"prompts\":{\"query\":\"query: and 57 bytes, of which arenas give a multiple of "
               "64, more\"},\"default_prompt_name\":\"query\"}");
}

static void remove_folder(void) {
    char path[160];
    files_remove(&second);
    files_path(&folder, "2_Dense", path, sizeof path);
    assert_int_equal(unlink(path), 0);
    files_remove(&folder);
}

/* Loads the folder if *model is NULL, and makes two vectors. */
static iso_status vectors(iso_model **model, float *y) {
    static const uint32_t ids[] = {3, 31, 2, 1, 14, 15, 1};
    static const size_t lengths[COUNT] = {4, 3};
    error = (iso_error){0};
    iso_status status =
        *model ? ISOBIT_OK : iso_model_load(model, folder.directory, NULL, NULL, &error);
    if (!status)
        status = iso_sentence_embed_f32(y, *model, ids, lengths, COUNT, NULL, NULL, &error);
    if (status) {
        assert_int_equal(error.status, status);
        assert_true(error.message[0]);
    }
    return status;
}

/* Each allocation, or each call on a file, fails once; `loaded`: only those of making vectors. */
static size_t each_fails(int kind, iso_model *loaded, const float *good) {
    for (size_t k = 1;; k++) {
        float y[COUNT * WIDTH];
        iso_model *model = loaded;
        no_faults();
        *(kind == MEMORY ? &memory.failing : &io.failing) = k;
        io.code = EIO;
        const iso_status status = vectors(&model, y);
        const size_t made = kind == MEMORY ? memory.allocations : io.calls;
        no_faults();
        if (!loaded)
            iso_model_free(model);
        if (k > made) {
            assert_int_equal(status, ISOBIT_OK);
            assert_memory_equal(y, good, sizeof y);
            return k - 1;
        }
        if (status != (kind == MEMORY ? ISOBIT_E_NOMEM : ISOBIT_E_IO))
            fail_msg("call %zu of kind %d fails: status %d", k, kind, (int)status);
    }
}

/* Cut by a byte that nobody reads, whenever it is: while the file is open, it is noticed. */
static void each_cut(void) {
    char path[160];
    struct stat st;
    size_t noticed = 0;
    files_path(&second, "model.safetensors", path, sizeof path);
    assert_int_equal(stat(path, &st), 0);
    for (size_t at = 1;; at++) {
        float y[COUNT * WIDTH];
        iso_model *model = NULL;
        write_second();
        no_faults();
        io.cut_path = path;
        io.cut_bytes = st.st_size - 1;
        io.cut_at = at;
        const iso_status status = vectors(&model, y);
        iso_model_free(model);
        if (io.reads < at)
            break;
        if (status && status != ISOBIT_E_TRUNCATED && status != ISOBIT_E_IO)
            fail_msg("cut at read %zu: status %d", at, (int)status);
        noticed += strstr(error.message, "3_Dense: model.safetensors: the file changed") != NULL;
    }
    no_faults();
    assert_true(noticed > 0);
}

void test_dense_faults(void **state) {
    float good[COUNT * WIDTH], y[COUNT * WIDTH];
    iso_model *model = NULL, *own = NULL;
    no_faults();
    make_folder();
    assert_int_equal(vectors(&model, good), ISOBIT_OK);
    assert_int_equal(iso_model_get_info(model)->sentence_d, WIDTH);
    assert_true(each_fails(MEMORY, NULL, good) > 40);
    assert_true(each_fails(MEMORY, model, good) > 5);
    assert_true(each_fails(CALLS, NULL, good) > 30);
    io.shortest = 7;
    io.interrupt = 1;
    assert_int_equal(vectors(&own, y), ISOBIT_OK);
    no_faults();
    assert_memory_equal(y, good, sizeof y);
    each_cut();
    iso_model_free(own);
    iso_model_free(model);
    remove_folder();
    (void)state;
}
