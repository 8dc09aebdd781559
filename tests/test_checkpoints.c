/* SPDX-License-Identifier: MIT
 *
 * The forms in which weights come: shards of safetensors, files of torch.save in both forms, shards
 * of those. A model has the same bits whatever form it is loaded from; files that torch itself has
 * written (tools/make_bin.py) are among them. Then each rule of the readers is broken once, with
 * the sentence that it must give, and good files are cut and flipped bit by bit.
 */
#include "bin_files.h"

#include <isobit/model.h>

#include "bin.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define BIN "pytorch_model.bin"
#define INDEX "model.safetensors.index.json"
#define BIN_INDEX "pytorch_model.bin.index.json"

/* ------------------------------------------------------------------------------------ faults */

/* Counted from 1: the allocation, or the call on a file, that fails; 0: none. */
static struct { size_t count, failing; } memory, io;

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
static void remove_all(const files *f) {
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

static void remove_file(const files *f, const char *name) {
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

static void copy_data(const files *f, const char *from, const char *name) {
    blob b = read_data(from);
    files_write(f, name, b.bytes, b.count);
    blob_free(&b);
}

static void put(blob *b, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char byte = (unsigned char)(value >> 8 * i);
        blob_add(b, &byte, 1);
    }
}

static void put_text(blob *b, const char *text) { blob_add(b, text, strlen(text)); }

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

typedef struct tensor {
    const char *name, *class, *key;
    uint64_t elements; /* of the storage */
    uint64_t offset;
    size_t rank;
    uint64_t shape[2], strides[2];
} tensor;

/* An entry of a state dict. */
static void put_tensor(blob *b, const tensor *t) {
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

enum { SHARDS = 3 };

static const char *shard_name(int bin, size_t shard) {
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
static void write_shards(const files *f, const char *golden, int bin) {
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

static iso_status load(const files *f, iso_error *error) {
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

static void expect(iso_status status, const char *says, const files *f) {
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

/* --------------------------------------------------------------------------- rules of an index */

/* Shards "a" (tensors x, y) and "b" (tensor z; and, if it is twice, y). */
static void small_shards(const files *f, int twice) {
#define T(name, from, to)                                                                          \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[" from "," to "]}"
    static const char a[] = "{" T("x", "0", "8") "," T("y", "8", "16") "}",
                      b[] = "{" T("z", "0", "8") "}",
                      c[] = "{" T("z", "0", "8") "," T("y", "8", "16") "}";
    blob file = blob_file(a, sizeof a - 1, 16);
    files_write(f, "a", file.bytes, file.count);
    blob_free(&file);
    file = twice ? blob_file(c, sizeof c - 1, 16) : blob_file(b, sizeof b - 1, 8);
    files_write(f, "b", file.bytes, file.count);
    blob_free(&file);
}

#define NAME50 "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
#define NAME250 NAME50 NAME50 NAME50 NAME50 NAME50
#define MAP(entries) "{\"weight_map\":{" entries "}}"
#define REFUSED(name, shown, why)                                                                  \
    {                                                                                              \
        ISOBIT_E_CONFIG,                                                                           \
            INDEX ": the shard of tensor \"x\" has the name " shown ", which is refused: " why,    \
            MAP("\"x\":\"" name "\"")                                                              \
    }
static const struct {
    iso_status status;
    const char *says, *index;
} indices[] = {
    {ISOBIT_OK, "", MAP("\"x\":\"a\",\"y\":\"a\",\"z\":\"b\"")},
    {ISOBIT_OK, "", MAP("\"z\":\"b\"")},
    {ISOBIT_OK, "", "{\"metadata\":7,\"weight_map\":{\"x\":\"a\",\"z\":\"b\"},\"more\":[]}"},
    {ISOBIT_E_JSON, "not valid JSON", "{\"weight_map\":{"},
    {ISOBIT_E_JSON, "an object is expected", "[]"},
    {ISOBIT_E_DUPLICATE, "not valid JSON", MAP("\"x\":\"a\",\"x\":\"b\"")},
    {ISOBIT_E_MISSING, INDEX " has no weight_map", "{\"metadata\":{}}"},
    {ISOBIT_E_MISSING, "weight_map names no tensor", MAP("")},
    {ISOBIT_E_JSON, "weight_map is a list; an object is expected", "{\"weight_map\":[\"a\"]}"},
    {ISOBIT_E_JSON, "weight_map is null; an object is expected", "{\"weight_map\":null}"},
    {ISOBIT_E_JSON, "weight_map is \"a\"; an object is expected", "{\"weight_map\":\"a\"}"},
    {ISOBIT_E_JSON, "the shard of tensor \"x\" is 7; a string is expected", MAP("\"x\":7")},
    {ISOBIT_E_JSON, "the shard of tensor \"x\" is an object; a string", MAP("\"x\":{}")},
    REFUSED("", "\"\"", "it is empty"),
    REFUSED("/etc/passwd", "\"/etc/passwd\"", "a shard lies in the directory of the model"),
    REFUSED("c/a", "\"c/a\"", "a shard lies in the directory of the model"),
    REFUSED("./a", "\"./a\"", "a shard lies in the directory of the model"),
    REFUSED("../a", "\"../a\"", "a shard lies in the directory of the model"),
    REFUSED("c\\\\a", "\"c\\x5ca\"", "a shard lies in the directory of the model"),
    REFUSED("..", "\"..\"", "it leads to another directory"),
    REFUSED("a..b", "\"a..b\"", "it leads to another directory"),
    REFUSED(".", "\".\"", "it leads to another directory"),
    REFUSED("a\\u001b[2J", "\"a\\x1b[2J\"", "only printable ASCII characters are expected"),
    REFUSED("\xc3\xa9", "\"\\xc3\\xa9\"", "only printable ASCII characters are expected"),
    {ISOBIT_E_JSON, "not valid JSON", MAP("\"x\":\"a\\u0000\"")},
    {ISOBIT_E_CONFIG, "which is refused: it has more than 255 bytes",
     MAP("\"x\":\"" NAME250 "nnnnnn\"")},
    {ISOBIT_E_MISSING, "there is no file " NAME250, MAP("\"x\":\"" NAME250 "nnnnn\"")},
    {ISOBIT_E_MISSING, "there is no file c in", MAP("\"x\":\"a\",\"z\":\"c\"")},
    {ISOBIT_E_MISSING, INDEX ": tensor \"z\" should be in a and is not",
     MAP("\"x\":\"a\",\"z\":\"a\"")},
    {ISOBIT_E_MISSING, "tensor \"\" should be in a and is not", MAP("\"\":\"a\"")},
    {ISOBIT_E_TRUNCATED, "empty has 0 bytes", MAP("\"x\":\"empty\"")},
    {ISOBIT_E_JSON, "text: safetensors header, byte 0: an object is expected",
     MAP("\"x\":\"text\"")},
    {ISOBIT_E_IO, "is not a regular file", MAP("\"x\":\"folder\"")},
};

static iso_status open_index(model_checkpoint *c, const files *f, iso_error *error) {
    *error = (iso_error){0};
    return model_checkpoint_open_shards(c, f->directory, INDEX, 1 << 20, model_checkpoint_open,
                                        error);
}

static void test_indices(void **state) {
    files f;
    iso_error error;
    model_checkpoint c;
    char path[160];
    files_make(&f);
    small_shards(&f, 0);
    files_text(&f, "empty", "");
    files_write(&f, "text", "\2\0\0\0\0\0\0\0[]", 10);
    files_path(&f, "folder", path, sizeof path);
    assert_int_equal(mkdir(path, 0700), 0);
    for (size_t i = 0; i < sizeof indices / sizeof *indices; i++) {
        files_text(&f, INDEX, indices[i].index);
        const iso_status status = open_index(&c, &f, &error);
        if (status != indices[i].status || (status && !strstr(error.message, indices[i].says)))
            fail_msg("%s: status %d (%s), expected %d (%s)", indices[i].index, (int)status,
                     error.message, (int)indices[i].status, indices[i].says);
        model_checkpoint_close(&c);
    }
    /* What the index leaves out is not there; what it has is in its shard. */
    files_text(&f, INDEX, MAP("\"z\":\"b\",\"x\":\"a\""));
    assert_int_equal(open_index(&c, &f, &error), ISOBIT_OK);
    assert_int_equal(c.header.count, 2);
    assert_null(model_checkpoint_find(&c, "y"));
    assert_string_equal(c.shards[model_checkpoint_find(&c, "x")->shard].file.name, "a");
    assert_string_equal(c.shards[model_checkpoint_find(&c, "z")->shard].file.name, "b");
    model_checkpoint_close(&c);
    /* A tensor in two shards. */
    small_shards(&f, 1);
    files_text(&f, INDEX, MAP("\"y\":\"a\",\"z\":\"b\""));
    assert_int_equal(open_index(&c, &f, &error), ISOBIT_E_DUPLICATE);
    assert_string_equal(error.message, "tensor \"y\" is in a and in b");
    model_checkpoint_close(&c);
    assert_int_equal(rmdir(path), 0);
    remove_all(&f);
    (void)state;
}

/* 512 shards, which are not there, and one more; an index of 16 MiB, and one byte more. */
static void test_index_limits(void **state) {
    files f;
    iso_error error;
    model_checkpoint c;
    char path[160];
    files_make(&f);
    for (unsigned shards = 512; shards <= 513; shards++) {
        blob b = {0};
        put_text(&b, "{\"weight_map\":{");
        for (unsigned i = 0; i < shards; i++) {
            char entry[40];
            (void)snprintf(entry, sizeof entry, "%s\"%u\":\"s%u\"", i ? "," : "", i, i);
            put_text(&b, entry);
        }
        put_text(&b, "}}");
        files_write(&f, INDEX, b.bytes, b.count);
        blob_free(&b);
        assert_int_equal(open_index(&c, &f, &error),
                         shards == 512 ? ISOBIT_E_MISSING : ISOBIT_E_LIMIT);
        assert_non_null(strstr(error.message, shards == 512
                                                  ? "there is no file s0 in"
                                                  : "names 513 shards; the limit is 512"));
        model_checkpoint_close(&c);
    }
    files_path(&f, INDEX, path, sizeof path);
    for (int more = 0; more < 2; more++) { /* zeros: not JSON */
        assert_int_equal(truncate(path, ((off_t)16 << 20) + more), 0);
        assert_int_equal(open_index(&c, &f, &error), more ? ISOBIT_E_LIMIT : ISOBIT_E_JSON);
        model_checkpoint_close(&c);
    }
    remove_all(&f);
    (void)state;
}

/* ------------------------------------------------------------------------- rules of torch.save */

static iso_status open_bin(model_checkpoint *c, const files *f, const blob *b, size_t limit,
                           iso_error *error) {
    files_write(f, BIN, b->bytes, b->count);
    *error = (iso_error){0};
    return model_checkpoint_open_bin(c, f->directory, BIN, limit, error);
}

/* What must hold of whatever is opened. */
static void check_tensors(const model_checkpoint *c, size_t bytes) {
    for (size_t i = 0; i < c->header.count; i++) {
        const model_tensor *t = &c->header.tensors[i];
        assert_int_equal(strlen(t->name), t->name_bytes);
        assert_ptr_equal(model_checkpoint_find(c, t->name), t);
        assert_true(t->begin <= t->end && t->end <= bytes && t->rank <= MODEL_MAX_RANK);
    }
}

static void run_row(const files *f, const char *name, blob b, size_t limit, iso_status status,
                    const char *says) {
    model_checkpoint c;
    iso_error error;
    const iso_status got = open_bin(&c, f, &b, limit, &error);
    if (got != status || (got && !strstr(error.message, says)))
        fail_msg("%s: status %d (%s), expected %d (%s)", name, (int)got, error.message, (int)status,
                 says);
    assert_int_equal(error.status, got);
    for (const char *m = error.message; *m; m++)
        assert_true(*m >= ' ' && *m <= '~');
    if (!got)
        check_tensors(&c, b.count);
    model_checkpoint_close(&c);
    blob_free(&b);
}

static void test_pickles(void **state) {
    files f;
    files_make(&f);
    for (size_t i = 0; i < bin_pickle_count; i++) {
        const bin_pickle_row *row = &bin_pickles[i];
        bin_places places;
        run_row(&f, row->name, bin_zip_of(row->text, row->bytes, i % 2 == 0, &places), 1 << 20,
                row->status, row->says);
    }
    for (size_t i = 0; i < bin_zip_count; i++)
        run_row(&f, bin_zips[i].name, bin_zip_spoilt(&bin_zips[i]), 1 << 20, bin_zips[i].status,
                bin_zips[i].says);
    for (size_t i = 0; i < bin_legacy_count; i++)
        run_row(&f, bin_legacies[i].name, bin_legacy_spoilt(&bin_legacies[i]), 1 << 20,
                bin_legacies[i].status, bin_legacies[i].says);
    remove_all(&f);
    (void)state;
}

/*
 * The reader alone, in memory of exactly the size, so that a sanitizer sees every byte read too
 * far; and on each beginning of what is allowed, where the rest is there but not to be read.
 */
static void test_pickles_alone(void **state) {
    for (size_t i = 0; i < bin_pickle_count; i++) {
        const bin_pickle_row *row = &bin_pickles[i];
        for (size_t n = 0; n <= row->bytes; n++) {
            model_arena arena = {0};
            model_pickle p;
            iso_error error = {0};
            const size_t room = row->status ? n : row->bytes;
            char *text = malloc(room ? room : 1);
            assert_non_null(text);
            memcpy(text, row->text, room);
            const iso_status status = model_pickle_read(&p, &arena, BIN, text, n, &error);
            if (!row->status && n < row->bytes && status != ISOBIT_E_TRUNCATED)
                fail_msg("%s, cut at %zu: status %d (%s)", row->name, n, (int)status,
                         error.message);
            if (!row->status && n == row->bytes)
                assert_int_equal(status, ISOBIT_OK);
            /* The promise on memory: a small multiple of the text. */
            assert_true(arena.bytes <= 64 * n + 16384);
            model_arena_free(&arena);
            free(text);
        }
    }
    (void)state;
}

/* Small pieces of memory come from larger ones: each kind of them is the one that finds none. */
static void test_no_memory(void **state) {
    for (size_t pad = 0; pad < 512; pad++) {
        blob b = {0};
        put_text(&b, "\x80\2}(U\1p]");
        for (size_t i = 0; i < pad; i++)
            put_text(&b, "K\1\x85"
                         "a");
        blob_add(&b, (const char *)bin_good_pair.data + 4, bin_good_pair.bytes - 4);
        for (memory.failing = 1, memory.count = 0;; memory.failing++, memory.count = 0) {
            model_arena arena = {0};
            model_pickle p;
            iso_error error = {0};
            const iso_status status =
                model_pickle_read(&p, &arena, BIN, (char *)b.bytes, b.count, &error);
            const int all = memory.count < memory.failing;
            model_arena_free(&arena);
            if (status != (all ? ISOBIT_OK : ISOBIT_E_NOMEM) || error.status != status)
                fail_msg("%zu items, allocation %zu: %d (%s)", pad, memory.failing, (int)status,
                         error.message);
            if (all)
                break;
        }
        memory.failing = 0;
        blob_free(&b);
    }
    (void)state;
}

/* Archives of other members than the usual ones. */
static void test_members(void **state) {
#define PKL(folder)                                                                                \
    { folder "data.pkl", bin_good_pickle.data, bin_good_pickle.bytes }
#define DATA(folder)                                                                               \
    { folder "data/0", bin_storages[0].data, bin_storages[0].bytes }
    const struct {
        iso_status status;
        const char *says;
        bin_part members[4];
    } rows[] = {
        {ISOBIT_OK, "", {PKL("archive/"), DATA("archive/")}}, /* torch before 2.0 */
        {ISOBIT_OK,
         "",
         {DATA("x/"), {"x/sub/data.pkl", "", 0}, PKL("x/"), {"x/byteorder", "little", 6}}},
        {ISOBIT_OK, "", {PKL("\xff/"), DATA("\xff/")}},
        {ISOBIT_OK, "", {PKL("/"), DATA("/")}},
        {ISOBIT_E_MISSING, "no member data.pkl in a folder", {PKL(""), DATA("")}},
        {ISOBIT_E_MISSING, "no member data.pkl in a folder", {{"x/data.pklx", "", 0}, DATA("x/")}},
        {ISOBIT_E_DUPLICATE, "two members data.pkl", {PKL("x/"), PKL("y/"), DATA("x/")}},
        {ISOBIT_E_MISSING, "storage \"0\" is not in", {PKL("x/"), DATA("y/")}},
        {ISOBIT_E_MISSING,
         "storage \"0\" is not in",
         {PKL("x/"), {"x/data/00", "", 0}, {"x/data/", "", 0}}},
        {ISOBIT_E_UNSUPPORTED,
         "its byteorder is big; only files of little-endian machines are read",
         {PKL("x/"), DATA("x/"), {"x/byteorder", "big", 3}}},
        {ISOBIT_E_UNSUPPORTED,
         "neither little nor big",
         {PKL("x/"), DATA("x/"), {"x/byteorder", "", 0}}},
        {ISOBIT_E_UNSUPPORTED,
         "neither little nor big",
         {PKL("x/"), DATA("x/"), {"x/byteorder", "little\n", 7}}},
        {ISOBIT_E_UNSUPPORTED,
         "neither little nor big",
         {PKL("x/"), DATA("x/"), {"x/byteorder", "little and more", 15}}},
    };
    files f;
    files_make(&f);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int zip64 = 0; zip64 < 2; zip64++) {
            size_t count = 0;
            bin_places places;
            while (count < 4 && rows[i].members[count].name)
                count++;
            run_row(&f, rows[i].says, bin_zip(rows[i].members, count, zip64, &places), 1 << 20,
                    rows[i].status, rows[i].says);
        }
    remove_all(&f);
    (void)state;
}

static blob repeated(const char *first, const char *unit, size_t times, const char *last) {
    blob b = {0}, file;
    bin_places places;
    put_text(&b, "\x80\2");
    put_text(&b, first);
    for (size_t i = 0; i < times; i++)
        put_text(&b, unit);
    put_text(&b, last);
    file = bin_zip_of(b.bytes, b.count, 0, &places);
    blob_free(&b);
    return file;
}

/* Each limit, and one more. */
static void test_limits(void **state) {
    files f;
    bin_places places;
    files_make(&f);
    const size_t pickle = bin_good_pickle.bytes;
    blob b = bin_zip_of(bin_good_pickle.data, pickle, 0, &places);
    const size_t directory = places.end - places.entry[0];
    blob_free(&b);
    /* A pickle longer than the directory, and the other way round. */
    blob large = repeated("](", "K\1", 500, "e.");
    run_row(&f, "pickle", large, 1005, ISOBIT_E_LIMIT, "data.pkl is longer than max_header_bytes");
    large = repeated("](", "K\1", 500, "e.");
    run_row(&f, "pickle", large, 1006, ISOBIT_E_CONFIG, "not about a state dict");
    for (size_t more = 0; more < 2; more++)
        run_row(&f, "directory", bin_zip_of(bin_good_pickle.data, pickle, 0, &places),
                directory - more, more ? ISOBIT_E_LIMIT : ISOBIT_OK,
                "its directory is longer than max_header_bytes");
    /* The older form: the pickles up to the list of keys. */
    b = bin_legacy_of(bin_good_pair.data, bin_good_pair.bytes);
    const size_t all = b.count - bin_storages[0].bytes - bin_storages[1].bytes - 16;
    blob_free(&b);
    for (size_t more = 0; more < 2; more++)
        run_row(&f, "pickles", bin_legacy_of(bin_good_pair.data, bin_good_pair.bytes), all - more,
                more ? ISOBIT_E_LIMIT : ISOBIT_OK, "its pickles are longer than max_header_bytes");
    run_row(&f, "stack", repeated("", "N", 65536, "."), 1 << 20, ISOBIT_E_CONFIG, "one value");
    run_row(&f, "stack", repeated("", "N", 65537, "."), 1 << 20, ISOBIT_E_LIMIT,
            "too many values on its stack");
    const size_t values = 3000000 * (8 / sizeof(void *)); /* they are as large as a few pointers */
    run_row(&f, "memory", repeated("]", "}a", values, "."), 16 << 20, ISOBIT_E_LIMIT,
            "more values than a state dict has");
    /* Names. */
    run_row(&f, "module", repeated("c", "m", 200, "\nn\n."), 1 << 20, ISOBIT_E_UNSUPPORTED,
            "asks for \"mmm");
    run_row(&f, "module", repeated("c", "m", 201, "\nn\n."), 1 << 20, ISOBIT_E_LIMIT,
            "a name of more than 200 bytes");
    run_row(&f, "name in it", repeated("cm\n", "n", 201, "\n."), 1 << 20, ISOBIT_E_LIMIT,
            "a name of more than 200 bytes");
    char text[5000];
    for (size_t bytes = 200; bytes <= 201; bytes++) {
        blob own = {0};
        memset(text, 'k', bytes);
        text[bytes] = 0;
        put_text(&own, "\x80\2}(");
        put_tensor(&own, &(tensor){"a", "FloatStorage", text, 6, 0, 0, {0}, {0}});
        put_text(&own, "u.");
        run_row(&f, "key", bin_zip_of(own.bytes, own.count, 0, &places), 1 << 20,
                bytes == 200 ? ISOBIT_E_MISSING : ISOBIT_E_LIMIT,
                bytes == 200 ? "is not in the ZIP archive" : "a key of more than 200 bytes");
        blob_free(&own);
    }
    for (size_t bytes = 4096; bytes <= 4097; bytes++) {
        blob own = {0};
        memset(text, 'n', bytes);
        text[bytes] = 0;
        put_text(&own, "\x80\2}(");
        put_tensor(&own, &(tensor){text, "FloatStorage", "0", 6, 0, 0, {0}, {0}});
        put_text(&own, "u.");
        run_row(&f, "tensor", bin_zip_of(own.bytes, own.count, 0, &places), 1 << 20,
                bytes == 4096 ? ISOBIT_OK : ISOBIT_E_UTF8, "is not 1 to 4096 bytes of UTF-8");
        blob_free(&own);
    }
    /* 2^18 entries: here all of one name, which is no tensor. */
    for (size_t more = 0; more < 2; more++)
        run_row(&f, "entries", repeated("}", "U\1aNs", 262144 + more, "."), 2 << 20,
                more ? ISOBIT_E_LIMIT : ISOBIT_OK, "more than 262144 entries");
    remove_all(&f);
    (void)state;
}

/* Pickles longer than what is read of an older file at first, and the file then. */
static void test_long_pickles(void **state) {
    files f;
    files_make(&f);
    for (size_t strings = 1; strings <= 16; strings *= 4) {
        blob b = {0};
        put_text(&b, "\x80\2}(");
        for (size_t i = 0; i < strings; i++) {
            put_text(&b, "U\1sX");
            put(&b, 100000, 4);
            for (size_t k = 0; k < 100000; k++)
                put_text(&b, "s");
        }
        blob_add(&b, (const char *)bin_good_pair.data + 4, bin_good_pair.bytes - 4);
        run_row(&f, "long", bin_legacy_of(b.bytes, b.count), 8 << 20, ISOBIT_OK, "");
        run_row(&f, "long", bin_legacy_of(b.bytes, b.count), 90000, ISOBIT_E_LIMIT, "longer than");
        blob_free(&b);
    }
    remove_all(&f);
    (void)state;
}

/* What is no file of torch.save at all. */
static void test_other_files(void **state) {
    static const char *const texts[] = {"version https://git-lfs.github.com/spec/v1\n",
                                        "<!DOCTYPE html><html>", "\x80\4}................."};
    files f;
    files_make(&f);
    for (size_t bytes = 0; bytes < 15; bytes++) {
        blob b = {0};
        blob_add(&b, "PK\3\4\0\0\0\0\0\0\0\0\0\0\0", bytes);
        run_row(&f, "short", b, 1 << 20, ISOBIT_E_TRUNCATED, "too short for one of torch.save");
    }
    blob b = {0};
    blob_add(&b, "PK\3\4\0\0\0\0\0\0\0\0\0\0\0", 15);
    run_row(&f, "short", b, 1 << 20, ISOBIT_E_TRUNCATED, "too short for one");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        b = (blob){0};
        put_text(&b, texts[i]);
        run_row(&f, texts[i], b, 1 << 20, ISOBIT_E_UNSUPPORTED, "torch.save has not written it");
    }
    remove_all(&f);
    (void)state;
}

/* Every cut and every bit of a file in each form: an error, or tensors that lie in the file. */
static void test_mutations(void **state) {
    const size_t step = getenv("ISOBIT_EMULATED") ? 13 : 1;
    files f;
    char path[160];
    files_make(&f);
    files_path(&f, BIN, path, sizeof path);
    for (int form = 0; form < 3; form++) {
        bin_places places;
        model_checkpoint c;
        iso_error error;
        size_t opened = 0;
        blob b = form == 2 ? bin_legacy_of(bin_good_pair.data, bin_good_pair.bytes)
                           : bin_zip_of(bin_good_pickle.data, bin_good_pickle.bytes, form, &places);
        files_write(&f, BIN, b.bytes, b.count);
        /* In place: replacing thousands of files is what would take the time. */
        const int fd = open(path, O_WRONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        for (size_t bit = 0; bit < 8 * b.count; bit += step) {
            const unsigned char flipped = (unsigned char)(b.bytes[bit / 8] ^ 1u << bit % 8);
            assert_int_equal(pwrite(fd, &flipped, 1, (off_t)(bit / 8)), 1);
            iso_status status = model_checkpoint_open_bin(&c, f.directory, BIN, 1 << 20, &error);
            if (status == ISOBIT_OK) {
                check_tensors(&c, b.count);
                opened++;
            } else {
                assert_int_equal(error.status, status);
                assert_true(status != ISOBIT_E_INTERNAL && error.message[0]);
            }
            model_checkpoint_close(&c);
            assert_int_equal(pwrite(fd, &b.bytes[bit / 8], 1, (off_t)(bit / 8)), 1);
        }
        assert_int_equal(model_checkpoint_open_bin(&c, f.directory, BIN, 1 << 20, &error),
                         ISOBIT_OK);
        model_checkpoint_close(&c);
        for (size_t n = b.count; n-- > 0;) {
            assert_int_equal(ftruncate(fd, (off_t)n), 0);
            assert_int_not_equal(model_checkpoint_open_bin(&c, f.directory, BIN, 1 << 20, &error),
                                 ISOBIT_OK);
            model_checkpoint_close(&c);
        }
        assert_int_equal(close(fd), 0);
        print_message("form %d: %zu bytes, %zu bits, of which %zu do no harm\n", form, b.count,
                      8 * b.count, opened);
        blob_free(&b);
    }
    remove_all(&f);
    (void)state;
}

/* ---------------------------------------------------------------------------------- elements */

/* Element i of a storage: exact in F16 and BF16 too, where it has few bits. */
static double value_of(size_t i) { return (double)(i % 251) - 125; }

/* The bits of a small whole number: a sign, an exponent, the rest. */
static uint64_t bits_of(double x, unsigned exponent_bits, unsigned fraction_bits) {
    const uint64_t sign = x < 0, bias = ((uint64_t)1 << (exponent_bits - 1)) - 1;
    const unsigned whole = (unsigned)(x < 0 ? -x : x);
    unsigned top = 0;
    while (whole >> top > 1)
        top++;
    return sign << (exponent_bits + fraction_bits) |
           (whole ? (bias + top) << fraction_bits |
                        ((uint64_t)(whole - (1u << top)) << (fraction_bits - top))
                  : 0);
}

static const struct {
    const char *class;
    size_t size;
    unsigned exponent_bits, fraction_bits;
} types[] = {{"FloatStorage", 4, 8, 23},
             {"HalfStorage", 2, 5, 10},
             {"BFloat16Storage", 2, 8, 7},
             {"DoubleStorage", 8, 11, 52}};

/* Reads the tensor through the loader in each way, and compares with its definition. */
static void check_elements(const model_checkpoint *c, const tensor *t) {
    model_arena arena = {0};
    iso_error error = {0};
    const iso_context context = {.size = sizeof context};
    model_source source = {.checkpoint = c, .arena = &arena, .context = &context, .error = &error};
    const size_t n = (size_t)t->shape[0], k = t->rank == 2 ? (size_t)t->shape[1] : 1;
    const float *got = NULL;
    model_linear packed = {0};
    for (source.load = 0; source.load < 2; source.load++) {
        iso_status status = t->rank == 2 ? model_take_rows(&source, &got, t->name, n, k)
                                         : model_take_vector(&source, &got, &t->name, 1, n, 0);
        if (!status && t->rank == 2)
            status = model_take_packed(&source, &packed, &t->name, 1, n, k, 0);
        if (status)
            fail_msg("%s: %s", t->name, error.message);
    }
    if (model_source_finish(&source))
        fail_msg("%s: %s", t->name, error.message);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < k; j++) {
            const float expected = (float)value_of(
                (size_t)(t->offset + i * t->strides[0] + (t->rank == 2 ? j * t->strides[1] : 0)));
            if (got[i * k + j] != expected)
                fail_msg("%s %s [%zu][%zu]: %g, not %g", t->name, t->class, i, j,
                         (double)got[i * k + j], (double)expected);
            /* Panels of 16 rows, each [k][16]. */
            if (t->rank == 2 && packed.w.data[i / 16 * 16 * k + j * 16 + i % 16] != expected)
                fail_msg("%s %s [%zu][%zu] packed", t->name, t->class, i, j);
        }
    model_arena_free(&source.scratch);
    model_arena_free(&arena);
}

/* Views of one storage in each element type; some so large that they are read in pieces. */
static void test_elements(void **state) {
    enum { ELEMENTS = 400000 };
    static const tensor views[] = {
        {"whole", NULL, "0", ELEMENTS, 0, 2, {400, 1000}, {1000, 1}},
        {"transposed", NULL, "0", ELEMENTS, 0, 2, {1000, 400}, {1, 1000}},
        {"part", NULL, "0", ELEMENTS, 5007, 2, {300, 900}, {1000, 1}},
        {"part transposed", NULL, "0", ELEMENTS, 5007, 2, {900, 300}, {1, 1000}},
        {"columns with gaps", NULL, "0", ELEMENTS, 3, 2, {200, 300}, {1000, 3}},
        {"rows with gaps", NULL, "0", ELEMENTS, 3, 2, {300, 200}, {3, 1000}},
        {"both far", NULL, "0", ELEMENTS, 1, 2, {5, 4}, {70000, 9000}},
        {"far apart", NULL, "0", ELEMENTS, 9, 2, {3, 3}, {40000, 131072}},
        {"one row", NULL, "0", ELEMENTS, 17, 2, {1, 70000}, {7, 2}},
        {"one column", NULL, "0", ELEMENTS, 17, 2, {70000, 1}, {5, 9}},
        {"vector", NULL, "0", ELEMENTS, 2, 1, {150000}, {1}},
        {"every other", NULL, "0", ELEMENTS, 2, 1, {150000}, {2}},
        {"every 90000th", NULL, "0", ELEMENTS, 2, 1, {4}, {90000}},
    };
    const size_t count = sizeof views / sizeof *views;
    files f;
    files_make(&f);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        blob pickle = {0}, data = {0};
        bin_places places;
        model_checkpoint c;
        iso_error error;
        put_text(&pickle, "\x80\2}(");
        for (size_t v = 0; v < count; v++) {
            tensor t = views[v];
            t.class = types[i].class;
            put_tensor(&pickle, &t);
        }
        put_text(&pickle, "u.");
        for (size_t e = 0; e < ELEMENTS; e++)
            put(&data, bits_of(value_of(e), types[i].exponent_bits, types[i].fraction_bits),
                types[i].size);
        const bin_part members[] = {{"m/data.pkl", pickle.bytes, pickle.count},
                                    {"m/data/0", data.bytes, data.count}};
        blob file = bin_zip(members, 2, 1, &places);
        assert_int_equal(open_bin(&c, &f, &file, 1 << 20, &error), ISOBIT_OK);
        for (size_t v = 0; v < count; v++) {
            tensor t = views[v];
            t.class = types[i].class;
            check_elements(&c, &t);
        }
        model_checkpoint_close(&c);
        blob_free(&pickle);
        blob_free(&data);
        blob_free(&file);
    }
    remove_all(&f);
    (void)state;
}

/* Doubles are rounded to the nearest float; what is no float becomes an infinity. */
static void test_doubles(void **state) {
    static const struct {
        uint64_t bits;
        uint32_t rounded;
    } rows[] = {
        {0x3ff0000000000000, 0x3f800000}, {0x3ff0000010000000, 0x3f800000},
        {0x3ff0000010000001, 0x3f800001}, {0x3ff0000030000000, 0x3f800002},
        {0xbff0000030000000, 0xbf800002}, {0x7fefffffffffffff, 0x7f800000},
        {0x36a0000000000000, 0x00000001}, {0x3690000000000000, 0x00000000},
        {0x8000000000000000, 0x80000000}, {0xfff0000000000000, 0xff800000},
    };
    const size_t count = sizeof rows / sizeof *rows;
    files f;
    model_arena arena = {0};
    model_checkpoint c;
    iso_error error = {0};
    const float *got;
    const char *name = "d";
    char header[100];
    files_make(&f);
    (void)snprintf(header, sizeof header,
                   "{\"d\":{\"dtype\":\"F64\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}", count,
                   8 * count);
    blob b = blob_file(header, strlen(header), 0);
    for (size_t i = 0; i < count; i++)
        put(&b, rows[i].bits, 8);
    files_write(&f, "model.safetensors", b.bytes, b.count);
    blob_free(&b);
    assert_int_equal(model_checkpoint_open(&c, f.directory, "model.safetensors", 1000, &error),
                     ISOBIT_OK);
    model_source source = {.checkpoint = &c, .arena = &arena, .error = &error};
    for (source.load = 0; source.load < 2; source.load++)
        assert_int_equal(model_take_vector(&source, &got, &name, 1, count, 0), ISOBIT_OK);
    assert_int_equal(model_source_finish(&source), ISOBIT_OK);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &got[i], 4);
        assert_int_equal(bits, rows[i].rounded);
    }
    /* Such an infinity is not finite. */
    source.reject_nonfinite = 1;
    assert_int_equal(model_take_vector(&source, &got, &name, 1, count, 0), ISOBIT_OK);
    assert_int_equal(model_source_finish(&source), ISOBIT_E_RANGE);
    assert_non_null(strstr(error.message, "tensor \"d\": element 5 is not finite"));
    model_arena_free(&source.scratch);
    model_arena_free(&arena);
    model_checkpoint_close(&c);
    remove_all(&f);
    (void)state;
}

/* ------------------------------------------------------------------------------ the whole loader
 */

/* A tensor of whole numbers is read, but no weight; what is not there is said by its file. */
static void test_wrong_tensors(void **state) {
    static const char *const classes[][2] = {{"LongStorage", "I64"},  {"IntStorage", "I32"},
                                             {"ShortStorage", "I16"}, {"CharStorage", "I8"},
                                             {"ByteStorage", "U8"},   {"BoolStorage", "BOOL"}};
    static const size_t sizes[] = {8, 4, 2, 1, 1, 1};
    files f;
    char says[200];
    files_make(&f);
    copy_data(&f, "models/paper-alias-bf16/config.json", "config.json");
    for (size_t i = 0; i < 6; i++) {
        blob b = {0};
        bin_places places;
        put_text(&b, "\x80\2}(");
        put_tensor(&b,
                   &(tensor){"lm_head.weight", classes[i][0], "0", 24 / sizes[i], 0, 1, {1}, {1}});
        put_text(&b, "u.");
        blob file = bin_zip_of(b.bytes, b.count, 0, &places);
        files_write(&f, BIN, file.bytes, file.count);
        (void)snprintf(says, sizeof says,
                       "tensor \"lm_head.weight\" has the element type %s; F32, "
                       "F16, BF16 or F64 is expected",
                       classes[i][1]);
        expect(ISOBIT_E_DTYPE, says, &f);
        blob_free(&b);
        blob_free(&file);
    }
    bin_places places;
    blob file = bin_zip_of(bin_good_pickle.data, bin_good_pickle.bytes, 1, &places);
    files_write(&f, BIN, file.bytes, file.count);
    blob_free(&file);
    expect(ISOBIT_E_MISSING, "pytorch_model.bin has no tensor \"model.shared.weight\"", &f);
    remove_file(&f, BIN);
    small_shards(&f, 0);
    files_text(&f, INDEX, MAP("\"x\":\"a\",\"z\":\"b\""));
    expect(ISOBIT_E_MISSING, INDEX " has no tensor \"model.shared.weight\"", &f);
    remove_all(&f);
    (void)state;
}

/* An executor whose first region adds a byte to a file, while weights are being packed. */
static void growing_for(void *user, size_t n, void (*fn)(void *, size_t), void *arg) {
    const char **path = user;
    if (*path) {
        struct stat st;
        assert_int_equal(stat(*path, &st), 0);
        assert_int_equal(truncate(*path, st.st_size + 1), 0);
        *path = NULL;
    }
    for (size_t i = 0; i < n; i++)
        fn(arg, i);
}

static size_t open_files(void) {
    size_t count = 0;
    DIR *directory = opendir("/proc/self/fd");
    while (directory && readdir(directory))
        count++;
    if (directory)
        (void)closedir(directory);
    return count;
}

/* Of each shard, and of a .bin file, it is noticed; and no file stays open. */
static void test_files_grow(void **state) {
    const size_t before = open_files();
    for (size_t i = 0; i <= SHARDS; i++) {
        files f;
        iso_error error;
        iso_model *model = NULL;
        char path[160], says[100];
        files_make(&f);
        const char *name = i < SHARDS ? shard_name(0, i) : BIN;
        (void)snprintf(says, sizeof says, "%s: the file changed while it was read", name);
        files_path(&f, name, path, sizeof path);
        if (i < SHARDS) {
            write_shards(&f, "paper", 0);
        } else {
            copy_data(&f, "models/paper-alias-bf16/config.json", "config.json");
            copy_data(&f, "bin/zip.bin", BIN);
        }
        const char *grows = path;
        const iso_executor executor = {growing_for, &grows, 2};
        const iso_context context = {.size = sizeof context, .executor = &executor};
        assert_int_equal(iso_model_load(&model, f.directory, NULL, &context, &error), ISOBIT_E_IO);
        assert_null(model);
        assert_string_equal(error.message, says);
        remove_all(&f);
    }
    assert_int_equal(open_files(), before);
    (void)state;
}

/* Each allocation and each read fails once: it is said, nothing is lost, and then all is well. */
static void test_faults(void **state) {
    const size_t before = open_files();
    for (int form = 0; form < 4; form++) {
        files f;
        iso_error error;
        files_make(&f);
        if (form < 2) {
            write_shards(&f, "paper", form);
        } else {
            copy_data(&f, "models/paper-alias-bf16/config.json", "config.json");
            copy_data(&f, form == 2 ? "bin/zip.bin" : "bin/legacy.bin", BIN);
        }
        for (memory.failing = 1, memory.count = 0;; memory.failing++, memory.count = 0) {
            const iso_status status = load(&f, &error);
            if (memory.count < memory.failing) {
                assert_int_equal(status, ISOBIT_OK);
                break;
            }
            if (status != ISOBIT_E_NOMEM || !strstr(error.message, "out of memory"))
                fail_msg("allocation %zu: %d (%s)", memory.failing, (int)status, error.message);
        }
        memory.failing = 0;
        for (io.failing = 1, io.count = 0;; io.failing++, io.count = 0) {
            const iso_status status = load(&f, &error);
            if (io.count < io.failing) {
                assert_int_equal(status, ISOBIT_OK);
                break;
            }
            if (status != ISOBIT_E_IO || !strstr(error.message, "failed (errno"))
                fail_msg("read %zu: %d (%s)", io.failing, (int)status, error.message);
        }
        io.failing = 0;
        remove_all(&f);
    }
    assert_int_equal(open_files(), before);
    (void)state;
}

int main(void) {
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
    return cmocka_run_group_tests_name("checkpoints", tests, NULL, NULL);
}
