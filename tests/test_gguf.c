/* SPDX-License-Identifier: MIT
 *
 * GGUF files. Those that llama.cpp's conversion has made (tools/make_gguf.py) must give the bits of
 * the directories that they were made from; test_text does the same for tokens. Then each rule of
 * the reader is broken once, with the sentence that it must give, a good file is cut and flipped
 * bit by bit, and every allocation and every read fails once.
 */
#include "test_gguf.h"

#include <jansson.h>

/* ------------------------------------------------------------------------------------ faults */

struct fault memory, io;
const char *growing;

static void grow(void) {
    if (!growing)
        return;
    FILE *file = fopen(growing, "ab");
    growing = NULL;
    assert_non_null(file);
    assert_int_equal(fputc(0, file), 0);
    assert_int_equal(fclose(file), 0);
}

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes) {
    return ++memory.count == memory.failing ? NULL : __real_malloc(bytes);
}
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    return ++memory.count == memory.failing ? NULL : __real_aligned_alloc(alignment, bytes);
}

int no_directory;

DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
DIR *__wrap_opendir(const char *path) {
    if (!no_directory)
        return __real_opendir(path);
    errno = no_directory;
    no_directory = 0;
    return NULL;
}

/* The names that 64-bit file offsets give it, and the plain one. */
#define WRAP(suffix)                                                                               \
    ssize_t __real_pread##suffix(int fd, void *to, size_t bytes, off_t offset);                    \
    ssize_t __wrap_pread##suffix(int fd, void *to, size_t bytes, off_t offset);                    \
    ssize_t __wrap_pread##suffix(int fd, void *to, size_t bytes, off_t offset) {                   \
        grow();                                                                                    \
        if (++io.count == io.failing) {                                                            \
            errno = EIO;                                                                           \
            return -1;                                                                             \
        }                                                                                          \
        return __real_pread##suffix(fd, to, bytes, offset);                                        \
    }
WRAP()
WRAP(64)

/* ------------------------------------------------------------------------------------- files */

void remove_all(const files *f) {
    DIR *directory = opendir(f->directory);
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory));) {
        char path[400];
        (void)snprintf(path, sizeof path, "%s/%s", f->directory, entry->d_name);
        (void)unlink(path);
        (void)rmdir(path);
    }
    (void)closedir(directory);
    assert_int_equal(rmdir(f->directory), 0);
}

iso_model *load(const char *path) {
    iso_error error = {0};
    iso_model *model = NULL;
    if (iso_model_load(&model, path, NULL, NULL, &error))
        fail_msg("%s: %s", path, error.message);
    return model;
}

iso_status load_from(const char *path, int text, iso_error *error) {
    iso_model *model = NULL;
    iso_tokenizer *tokenizer = NULL;
    *error = (iso_error){0};
    const iso_status status = text ? iso_tokenizer_load(&tokenizer, path, error)
                                   : iso_model_load(&model, path, NULL, NULL, error);
    assert_int_equal(status != ISOBIT_OK, !model && !tokenizer);
    iso_model_free(model);
    iso_tokenizer_free(tokenizer);
    return status;
}

/* ------------------------------------------------------------------------------ the checkpoint */

/* Rows of pairs, in pieces of any length, against the definition. */
static void test_pairs(void **state) {
    enum { ROWS = 12, WIDTH = 6, ROW_BYTES = 6 };
    unsigned char stored[ROWS * ROW_BYTES], expected[ROWS * ROW_BYTES], got[ROWS * ROW_BYTES];
    files f;
    iso_error error = {0};
    for (size_t i = 0; i < sizeof stored; i++)
        stored[i] = (unsigned char)(i * 7 + 3);
    for (size_t row = 0; row < ROWS; row++) {
        const size_t head = row / WIDTH, at = row % WIDTH, half = at / (WIDTH / 2),
                     i = at % (WIDTH / 2);
        memcpy(expected + row * ROW_BYTES, stored + (head * WIDTH + 2 * i + half) * ROW_BYTES,
               ROW_BYTES);
    }
    files_make(&f);
    files_write(&f, NAME, stored, sizeof stored);
    model_checkpoint c = {.file.fd = -1};
    assert_int_equal(model_file_open(&c.file, f.directory, NAME, &error), ISOBIT_OK);
    const model_tensor t = {
        .rank = 2, .shape = {ROWS, 3}, .end = sizeof stored, .dtype = MODEL_F16, .paired = WIDTH};
    for (size_t from = 0; from < sizeof stored; from++)
        for (size_t n = 1; n <= sizeof stored - from; n++) {
            memset(got, 0, sizeof got);
            assert_int_equal(model_checkpoint_read(&c, &t, got, from, n, &error), ISOBIT_OK);
            assert_memory_equal(got, expected + from, n);
        }
    model_checkpoint_close(&c);
    remove_all(&f);
    (void)state;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),          cmocka_unit_test(test_cut_entries),
        cmocka_unit_test(test_pieces),        cmocka_unit_test(test_many_pairs),
        cmocka_unit_test(test_equal_scores),  cmocka_unit_test(test_words),
        cmocka_unit_test(test_long_metadata), cmocka_unit_test(test_places),
        cmocka_unit_test(test_config),        cmocka_unit_test(test_t5),
        cmocka_unit_test(test_pairs),         cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_gemma3),        cmocka_unit_test(test_llama3),
        cmocka_unit_test(test_sentences),     cmocka_unit_test(test_text),
        cmocka_unit_test(test_faults),        cmocka_unit_test(test_mutations),
    };
    json_set_alloc_funcs(__wrap_malloc, free);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("gguf", tests, NULL, NULL);
}
