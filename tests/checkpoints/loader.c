/* SPDX-License-Identifier: MIT
 *
 * The whole loader.
 */
#include "test_checkpoints.h"

/* A tensor of whole numbers is read, but no weight; what is not there is said by its file. */
void test_wrong_tensors(void **state) {
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
void test_files_grow(void **state) {
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
void test_faults(void **state) {
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
