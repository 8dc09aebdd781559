/* SPDX-License-Identifier: MIT
 *
 * The forms in which weights come: shards of safetensors, files of torch.save in both forms, shards
 * of those. A model has the same bits whatever form it is loaded from; files that torch itself has
 * written (tools/make_bin.py) are among them. Then each rule of the readers is broken once, with
 * the sentence that it must give, and good files are cut and flipped bit by bit.
 */
#include "test_checkpoints.h"

#define BIN_INDEX "pytorch_model.bin.index.json"

/* ------------------------------------------------------------------------------------ faults */

struct fault memory, io;

void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);

void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    return ++memory.count == memory.failing ? NULL : __real_aligned_alloc(alignment, bytes);
}

/* The names that 64-bit file offsets give it, and the plain one. */
#define WRAP(suffix)                                                                               \
    ssize_t __real_pread##suffix(int fd, void *to, size_t bytes, off_t offset);                    \
    ssize_t __wrap_pread##suffix(int fd, void *to, size_t bytes, off_t offset);                    \
    ssize_t __wrap_pread##suffix(int fd, void *to, size_t bytes, off_t offset) {                   \
        if (++io.count == io.failing) {                                                            \
            errno = EIO;                                                                           \
            return -1;                                                                             \
        }                                                                                          \
        return __real_pread##suffix(fd, to, bytes, offset);                                        \
    }
WRAP()
WRAP(64)

/* ------------------------------------------------------------------------------------- files */

/* All that a test has written, whatever its name. */
void remove_all(const files *f) {
    DIR *directory = opendir(f->directory);
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory));) {
        char path[400];
        (void)snprintf(path, sizeof path, "%s/%s", f->directory, entry->d_name);
        (void)unlink(path);
    }
    (void)closedir(directory);
    assert_int_equal(rmdir(f->directory), 0);
}

void remove_file(const files *f, const char *name) {
    char path[400];
    (void)snprintf(path, sizeof path, "%s/%s", f->directory, name);
    assert_int_equal(unlink(path), 0);
}

static blob read_data(const char *name) {
    char path[600], piece[4096];
    blob b = {0};
    (void)snprintf(path, sizeof path, "%s/%s", ISOBIT_TEST_DATA, name);
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    for (size_t n; (n = fread(piece, 1, sizeof piece, in));)
        blob_add(&b, piece, n);
    (void)fclose(in);
    return b;
}

void copy_data(const files *f, const char *from, const char *name) {
    blob b = read_data(from);
    files_write(f, name, b.bytes, b.count);
    blob_free(&b);
}

void put(blob *b, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char byte = (unsigned char)(value >> 8 * i);
        blob_add(b, &byte, 1);
    }
}

void put_text(blob *b, const char *text) { blob_add(b, text, strlen(text)); }

/* A string of a pickle. */
static void put_string(blob *b, const char *text) {
    put_text(b, "X");
    put(b, strlen(text), 4);
    put_text(b, text);
}

/* A number of a pickle. */
static void put_number(blob *b, uint64_t value) {
    put_text(b, "\x8a\x08");
    put(b, value, 8);
}

/* An entry of a state dict. */
void put_tensor(blob *b, const tensor *t) {
    put_string(b, t->name);
    put_text(b, "ctorch._utils\n_rebuild_tensor_v2\n((");
    put_string(b, "storage");
    put_text(b, "ctorch\n");
    put_text(b, t->class);
    put_text(b, "\n");
    put_string(b, t->key);
    put_string(b, "cpu");
    put_number(b, t->elements);
    put_text(b, "tQ");
    put_number(b, t->offset);
    for (int i = 0; i < 2; i++) {
        put_text(b, "(");
        for (size_t k = 0; k < t->rank; k++)
            put_number(b, i ? t->strides[k] : t->shape[k]);
        put_text(b, "t");
    }
    put_text(b, "\x89}tR");
}

/* ------------------------------------------------------------------- every form, the same bits */

enum { SOURCE = 4, TARGET = 3, MOST = 64 };

/* Logits of the model in the directory, or the golden one of that name. */
static void logits_of(const files *f, const char *golden, float logits[TARGET * MOST]) {
    static const uint32_t source[SOURCE] = {7, 11, 5, 2}, target[TARGET] = {1, 9, 30};
    char path[400];
    iso_error error = {0};
    iso_model *model = NULL;
    (void)snprintf(path, sizeof path, "%s%s", golden ? ISOBIT_TEST_DATA "/models/" : "",
                   golden ? golden : f->directory);
    if (iso_model_load(&model, path, NULL, NULL, &error))
        fail_msg("%s: %s", path, error.message);
    assert_true(iso_model_get_info(model)->target_vocabulary <= MOST);
    memset(logits, 0, TARGET * MOST * sizeof *logits);
    assert_int_equal(iso_logits_f32(logits, model, source, SOURCE, target, TARGET, 0, NULL, &error),
                     ISOBIT_OK);
    iso_model_free(model);
}

static void same_bits(const files *f, const char *golden) {
    float expected[TARGET * MOST], got[TARGET * MOST];
    logits_of(f, golden, expected);
    logits_of(f, NULL, got);
    assert_memory_equal(got, expected, sizeof got);
}

static void test_written_by_torch(void **state) {
    static const char *const forms[] = {"bin/zip.bin", "bin/legacy.bin"};
    files f;
    files_make(&f);
    copy_data(&f, "models/paper-alias-bf16/config.json", "config.json");
    for (int i = 0; i < 2; i++) {
        copy_data(&f, forms[i], BIN);
        same_bits(&f, "paper-alias-bf16");
    }
    remove_all(&f);
    (void)state;
}

const char *shard_name(int bin, size_t shard) {
    static char name[64];
    (void)snprintf(name, sizeof name,
                   bin ? "pytorch_model-%05zu-of-%05d.bin" : "model-%05zu-of-%05d.safetensors",
                   shard + 1, SHARDS);
    return name;
}

static blob bytes_of(const model_checkpoint *c, const model_tensor *t) {
    blob b = {0};
    unsigned char *bytes = malloc((size_t)(t->end - t->begin));
    assert_non_null(bytes);
    assert_int_equal(model_checkpoint_read(c, t, bytes, 0, (size_t)(t->end - t->begin), NULL),
                     ISOBIT_OK);
    blob_add(&b, bytes, (size_t)(t->end - t->begin));
    free(bytes);
    return b;
}

/* Every third tensor of a checkpoint as a file of its own. */
static void write_shard(const files *f, const model_checkpoint *c, size_t shard) {
    blob header = {0}, data = {0};
    for (size_t i = shard; i < c->header.count; i += SHARDS) {
        const model_tensor *t = &c->header.tensors[i];
        char entry[400], shape[60];
        blob b = bytes_of(c, t);
        (void)snprintf(shape, sizeof shape, t->rank == 2 ? "%zu,%zu" : "%zu", (size_t)t->shape[0],
                       (size_t)t->shape[1]);
        (void)snprintf(entry, sizeof entry,
                       "%c\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                       i == shard ? '{' : ',', t->name, t->dtype_name, shape, data.count,
                       data.count + b.count);
        put_text(&header, entry);
        blob_add(&data, b.bytes, b.count);
        blob_free(&b);
    }
    put_text(&header, "}");
    blob file = blob_file((char *)header.bytes, header.count, 0);
    blob_add(&file, data.bytes, data.count);
    files_write(f, shard_name(0, shard), file.bytes, file.count);
    blob_free(&header);
    blob_free(&data);
    blob_free(&file);
}

/* The same in the older form of torch.save. */
static void write_bin_shard(const files *f, const model_checkpoint *c, size_t shard) {
    blob state = {0}, keys = {0}, data = {0};
    put_text(&state, "\x80\2}(");
    put_text(&keys, "\x80\2](");
    for (size_t i = shard; i < c->header.count; i += SHARDS) {
        const model_tensor *t = &c->header.tensors[i];
        char key[32];
        blob b = bytes_of(c, t);
        (void)snprintf(key, sizeof key, "%zu", i);
        const size_t size = t->dtype == MODEL_F32 ? 4 : 2;
        const tensor own = {t->name,
                            size == 4 ? "FloatStorage" : "HalfStorage",
                            key,
                            b.count / size,
                            0,
                            t->rank,
                            {t->shape[0], t->shape[1]},
                            {t->rank == 2 ? t->shape[1] : 1, 1}};
        put_tensor(&state, &own);
        put_string(&keys, key);
        put(&data, b.count / size, 8);
        blob_add(&data, b.bytes, b.count);
        blob_free(&b);
    }
    put_text(&state, "u.");
    put_text(&keys, "e.");
    static const char version[] = "\x80\2M\xe9\3.",
                      system[] = "\x80\2}X\15\0\0\0little_endian\x88s.";
    const bin_part pickles[] = {{NULL, version, sizeof version - 1},
                                {NULL, system, sizeof system - 1},
                                {NULL, state.bytes, state.count},
                                {NULL, keys.bytes, keys.count}};
    blob file = bin_legacy(pickles, data.bytes, data.count);
    files_write(f, shard_name(1, shard), file.bytes, file.count);
    blob_free(&state);
    blob_free(&keys);
    blob_free(&data);
    blob_free(&file);
}

/* The golden model of that name in shards, with its index. */
void write_shards(const files *f, const char *golden, int bin) {
    char path[400];
    model_checkpoint c;
    blob index = {0};
    (void)snprintf(path, sizeof path, "models/%s/config.json", golden);
    copy_data(f, path, "config.json");
    (void)snprintf(path, sizeof path, "%s/models/%s", ISOBIT_TEST_DATA, golden);
    assert_int_equal(model_checkpoint_open(&c, path, "model.safetensors", 1 << 20, NULL),
                     ISOBIT_OK);
    put_text(&index, "{\"metadata\":{\"total_size\":1},\"weight_map\":{");
    for (size_t i = 0; i < c.header.count; i++) {
        if (i < SHARDS && bin)
            write_bin_shard(f, &c, i);
        else if (i < SHARDS)
            write_shard(f, &c, i);
        put_text(&index, i ? ",\"" : "\"");
        put_text(&index, c.header.tensors[i].name);
        put_text(&index, "\":\"");
        put_text(&index, shard_name(bin, i % SHARDS));
        put_text(&index, "\"");
    }
    put_text(&index, "}}");
    files_write(f, bin ? BIN_INDEX : INDEX, index.bytes, index.count);
    blob_free(&index);
    model_checkpoint_close(&c);
}

static void test_shards(void **state) {
    static const char *const golden[] = {"paper", "paper-untied-f16"};
    for (size_t i = 0; i < 4; i++) {
        files f;
        files_make(&f);
        write_shards(&f, golden[i / 2], i % 2);
        same_bits(&f, golden[i / 2]);
        remove_all(&f);
    }
    (void)state;
}

iso_status load(const files *f, iso_error *error) {
    iso_model *model = NULL;
    *error = (iso_error){0};
    iso_status status = iso_model_load(&model, f->directory, NULL, NULL, error);
    if (status) {
        assert_null(model);
        assert_int_equal(error->status, status);
        for (const char *m = error->message; *m; m++)
            assert_true(*m >= ' ' && *m <= '~');
    }
    iso_model_free(model);
    return status;
}

void expect(iso_status status, const char *says, const files *f) {
    iso_error error;
    const iso_status got = load(f, &error);
    if (got != status || (status && !strstr(error.message, says)))
        fail_msg("status %d (%s), expected %d (%s)", (int)got, error.message, (int)status, says);
}

/* What is read first, where a directory has several forms: each one that is spoilt is noticed. */
static void test_order(void **state) {
    files f;
    files_make(&f);
    copy_data(&f, "models/paper/config.json", "config.json");
    expect(ISOBIT_E_MISSING, "no model.safetensors, no pytorch_model.bin, and no .index.json", &f);
    files_text(&f, BIN_INDEX, "{}");
    expect(ISOBIT_E_MISSING, "pytorch_model.bin.index.json has no weight_map", &f);
    files_text(&f, BIN, "");
    expect(ISOBIT_E_TRUNCATED, "pytorch_model.bin: the file is too short", &f);
    files_text(&f, INDEX, "{}");
    expect(ISOBIT_E_MISSING, "model.safetensors.index.json has no weight_map", &f);
    files_text(&f, "model.safetensors", "");
    expect(ISOBIT_E_TRUNCATED, "model.safetensors has 0 bytes", &f);
    copy_data(&f, "models/paper/model.safetensors", "model.safetensors");
    expect(ISOBIT_OK, "", &f);
    remove_all(&f);
    (void)state;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_by_torch),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_indices),
        cmocka_unit_test(test_index_limits),
        cmocka_unit_test(test_pickles),
        cmocka_unit_test(test_pickles_alone),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_long_pickles),
        cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_wrong_tensors),
        cmocka_unit_test(test_files_grow),
        cmocka_unit_test(test_faults),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("checkpoints", tests, NULL, NULL);
}
