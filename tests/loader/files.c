/* SPDX-License-Identifier: MIT
 *
 * See test_loader.c: files that are cut, changed, or no files.
 */
#include "../test_loader.h"

void test_file_length(void **state) {
    files f;
    iso_error error;
    iso_load_options small = {.size = sizeof small, .max_header_bytes = 64};
    files_make(&f);
    good_model(&f);
    assert_int_equal(load(&f, NULL, &error), ISOBIT_OK);
    assert_int_equal(load(&f, &small, &error), ISOBIT_E_HEADER_SIZE);
    static const struct {
        unsigned char bytes[12];
        size_t count;
        iso_status status;
    } short_files[] = {
        {{0}, 0, ISOBIT_E_TRUNCATED},
        {{2}, 7, ISOBIT_E_TRUNCATED},
        {{0}, 8, ISOBIT_E_HEADER_SIZE},
        {{1, 0, 0, 0, 0, 0, 0, 0, '{'}, 9, ISOBIT_E_HEADER_SIZE},
        {{2, 0, 0, 0, 0, 0, 0, 0, '{'}, 9, ISOBIT_E_TRUNCATED},
        {{2, 0, 0, 0, 0, 0, 0, 0, '{', '}'}, 10, ISOBIT_E_MISSING}, /* a file, but no tensor */
        {{0, 0xe1, 0xf5, 0x05}, 12, ISOBIT_E_TRUNCATED},            /* 100,000,000 */
        {{1, 0xe1, 0xf5, 0x05}, 12, ISOBIT_E_HEADER_SIZE},          /* one more */
        {{0, 0, 0, 0, 0, 0, 0, 0x80}, 12, ISOBIT_E_HEADER_SIZE},
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 12, ISOBIT_E_HEADER_SIZE},
        {{0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 12, ISOBIT_E_HEADER_SIZE}, /* wraps */
    };
    for (size_t i = 0; i < sizeof short_files / sizeof *short_files; i++) {
        files_write(&f, "model.safetensors", short_files[i].bytes, short_files[i].count);
        assert_int_equal(load(&f, NULL, &error), short_files[i].status);
    }
    files_remove(&f);
    (void)state;
}

static unsigned char *read_all(const files *f, size_t *bytes) {
    char path[160];
    files_path(f, "model.safetensors", path, sizeof path);
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    assert_int_equal(fseek(in, 0, SEEK_END), 0);
    *bytes = (size_t)ftell(in);
    rewind(in);
    unsigned char *data = malloc(*bytes);
    assert_int_equal(fread(data, 1, *bytes, in), *bytes);
    (void)fclose(in);
    return data;
}

/* The whole loader on files that are cut, and whose header has one bit flipped. */
void test_file_mutations(void **state) {
    files f;
    iso_error error;
    size_t bytes, header = 8;
    files_make(&f);
    good_model(&f);
    unsigned char *data = read_all(&f, &bytes);
    for (int i = 0; i < 2; i++)
        header += (size_t)data[i] << (8 * i);
    /* In place: replacing thousands of files is what would take the time. */
    char path[160];
    files_path(&f, "model.safetensors", path, sizeof path);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    /* Every bit; an emulator takes some, each of them in some byte. */
    const size_t step = getenv("ISOBIT_EMULATED") ? 13 : 1;
    for (size_t bit = 0; bit < 8 * header; bit += step) {
        const size_t i = bit / 8;
        const unsigned char flipped = (unsigned char)(data[i] ^ 1 << bit % 8);
        assert_int_equal(pwrite(fd, &flipped, 1, (off_t)i), 1);
        load(&f, NULL, &error);
        assert_int_equal(pwrite(fd, &data[i], 1, (off_t)i), 1);
    }
    assert_int_equal(load(&f, NULL, &error), ISOBIT_OK);
    for (size_t n = bytes - 1;; n -= n > header ? (bytes - header) / 64 : 1) {
        assert_int_equal(ftruncate(fd, (off_t)n), 0);
        assert_int_equal(load(&f, NULL, &error), ISOBIT_E_TRUNCATED);
        if (n == 0)
            break;
    }
    assert_int_equal(close(fd), 0);
    /* One byte more than the tensors claim. */
    files_write(&f, "model.safetensors", data, bytes);
    assert_int_equal(load(&f, NULL, &error), ISOBIT_OK);
    data = realloc(data, bytes + 1);
    data[bytes] = 0;
    files_write(&f, "model.safetensors", data, bytes + 1);
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_HOLE);
    free(data);
    files_remove(&f);
    (void)state;
}

void test_not_a_file(void **state) {
    files f;
    iso_error error;
    char path[160];
    files_make(&f);
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_MISSING); /* no config.json */
    assert_non_null(strstr(error.message, "config.json"));
    good_model(&f);
    files_path(&f, "model.safetensors", path, sizeof path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_MISSING);
    files_text(&f, "pytorch_model.bin", "");
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_TRUNCATED);
    assert_non_null(strstr(error.message, "pytorch_model.bin"));
    assert_int_equal(mkfifo(path, 0600), 0); /* would block a careless reader for ever */
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_IO);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_IO);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink("model.safetensors", path), 0); /* leads to itself */
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_IO);
    assert_non_null(strstr(error.message, "cannot be opened"));
    assert_int_equal(unlink(path), 0);
    files_remove(&f);
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_MISSING); /* no directory */
    (void)state;
}

/* An executor whose first region adds a byte to the weights, while they are being packed. */
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

void test_file_grows(void **state) {
    files f;
    iso_error error = {0};
    iso_model *model = NULL;
    char path[160];
    files_make(&f);
    good_model(&f);
    files_path(&f, "model.safetensors", path, sizeof path);
    const char *grows = path;
    const iso_executor executor = {growing_for, &grows, 2};
    const iso_context context = {.size = sizeof context, .executor = &executor};
    assert_int_equal(iso_model_load(&model, f.directory, NULL, &context, &error), ISOBIT_E_IO);
    assert_null(grows);
    assert_null(model);
    assert_non_null(strstr(error.message, "changed"));
    files_remove(&f);
    (void)state;
}

/* Text files of just the most bytes that are read at all (then they are not JSON), and one more. */
void test_largest_texts(void **state) {
    static const struct {
        const char *name;
        off_t most;
    } texts[] = {{"config.json", (off_t)4 << 20},
                 {"tokenizer_config.json", (off_t)4 << 20},
                 {"vocab.json", (off_t)64 << 20}};
    files f;
    iso_error error;
    iso_tokenizer *t;
    files_make(&f);
    for (size_t i = 0; i < 3; i++)
        for (int more = 0; more < 2; more++) {
            char path[160];
            files_text(&f, "config.json", "{}");
            files_text(&f, "tokenizer_config.json", "{\"tokenizer_class\":\"isobit-characters\"}");
            files_text(&f, "vocab.json", "{}");
            files_path(&f, texts[i].name, path, sizeof path);
            assert_int_equal(truncate(path, texts[i].most + more), 0);
            assert_int_equal(i ? iso_tokenizer_load(&t, f.directory, &error)
                               : load(&f, NULL, &error),
                             more ? ISOBIT_E_LIMIT : ISOBIT_E_JSON);
        }
    files_remove(&f);
    (void)state;
}
