/* SPDX-License-Identifier: MIT
 *
 * See test_gguf.c: files that break a rule, are cut, have a bit flipped, or metadata of any length.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "../test_gguf.h"

void test_rows(void **state) {
    files f;
    char path[160];
    files_make(&f);
    files_path(&f, NAME, path, sizeof path);
    const gguf_row *row;
    for (size_t i = 0; (row = gguf_row_at(i)); i++) {
        iso_error error;
        blob b = gguf_spoilt(row);
        files_write(&f, NAME, b.bytes, b.count);
        const iso_status status = load_from(path, row->text, &error);
        if (status != row->status || error.status != status || !strstr(error.message, row->says))
            fail_msg("%s: %d \"%s\" instead of %d \"%s\"", row->name, (int)status, error.message,
                     (int)row->status, row->says);
        if (status && !strstr(error.message, row->says[0] == '"' ? "model.gguf" : row->says))
            if (!strstr(error.message, "tensor "))
                fail_msg("%s: no file in \"%s\"", row->name, error.message);
        blob_free(&b);
    }
    remove_all(&f);
    (void)state;
}

/* A file of that path in memory: thousands of versions of it on a disk would take minutes. */
static int file_in_memory(const char *path) {
    char real[64];
    const int fd = memfd_create("gguf", 0);
    assert_true(fd >= 0);
    (void)snprintf(real, sizeof real, "/proc/self/fd/%d", fd);
    assert_int_equal(symlink(real, path), 0);
    return fd;
}

static void overwrite(int fd, const blob *b, size_t bytes) {
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    assert_int_equal(pwrite(fd, b->bytes, bytes, 0), bytes);
}

/* Any prefix, and any bit flipped: refused with a sentence, or as good as another file. */
void test_mutations(void **state) {
    files f;
    char path[160];
    iso_error error;
    gguf_maker m = {0};
    gguf_good(&m);
    blob b = gguf_finish(&m);
    files_make(&f);
    files_path(&f, NAME, path, sizeof path);
    const int fd = file_in_memory(path);
    size_t before = 0; /* of the data */
    for (size_t n = 0; n < b.count; n++) {
        overwrite(fd, &b, n);
        if (load_from(path, 0, &error) != ISOBIT_E_TRUNCATED ||
            !strstr(error.message, "the file is too short for a GGUF file") != (n >= 24))
            fail_msg("%zu of %zu bytes: %s", n, b.count, error.message);
        before += strstr(error.message, "the file ends before the data of its tensors") != NULL;
    }
    assert_in_range(before, 1, 31);
    size_t good = 0;
    for (size_t bit = 0; bit < 8 * b.count; bit++) {
        b.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        overwrite(fd, &b, b.count);
        for (int text = 0; text < 2; text++) {
            const iso_status status = load_from(path, text, &error);
            good += !status;
            if (status == ISOBIT_E_INTERNAL || error.status != status ||
                (status && !error.message[0]))
                fail_msg("bit %zu: %d \"%s\"", bit, (int)status, error.message);
        }
        b.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    assert_true(good > 0);
    (void)close(fd);
    blob_free(&b);
    remove_all(&f);
    (void)state;
}

/* Cut everywhere within its only entry: a value, an array, a tensor. What is long enough for an
 * entry is read, what is not is not. */
void test_cut_entries(void **state) {
    static const struct {
        const char *bytes;
        size_t count, least; /* of an entry of that kind */
        int tensor;
        iso_status whole;
    } rows[] = {
        {"\1\0\0\0\0\0\0\0x\0\0\0\0\7", 14, 14, 0, ISOBIT_E_MISSING},
        {"\3\0\0\0\0\0\0\0xyz\1\0\0\0\7", 16, 14, 0, ISOBIT_E_MISSING},
        {"\3\0\0\0\0\0\0\0xyz\11\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\7", 28, 14, 0, ISOBIT_E_MISSING},
        {"\1\0\0\0\0\0\0\0x\1\0\0\0\1\0\0\0\0\0\0\0\30\0\0\0\0\0\0\0\0\0\0\0", 33, 33, 1,
         ISOBIT_E_TRUNCATED},
        {"\3\0\0\0\0\0\0\0xyz\1\0\0\0\1\0\0\0\0\0\0\0\30\0\0\0\0\0\0\0\0\0\0\0", 35, 33, 1,
         ISOBIT_E_TRUNCATED},
    };
    files f;
    char path[160];
    files_make(&f);
    files_path(&f, NAME, path, sizeof path);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t n = 0; n <= rows[i].count; n++) {
            blob b = {0};
            iso_error error;
            blob_add(&b, "GGUF\3\0\0\0", 8);
            gguf_put(&b, (uint64_t)rows[i].tensor, 8);
            gguf_put(&b, (uint64_t)!rows[i].tensor, 8);
            blob_add(&b, rows[i].bytes, n);
            files_write(&f, NAME, b.bytes, b.count);
            const iso_status status = load_from(path, 0, &error);
            const char *says = n < rows[i].least   ? "the file is too short for what it counts"
                               : n < rows[i].count ? "goes beyond the end of the file"
                               : rows[i].tensor    ? "the file ends before the data of its tensors"
                                                   : "has no key \"general.architecture\"";
            if (status != (n < rows[i].count ? ISOBIT_E_TRUNCATED : rows[i].whole) ||
                !strstr(error.message, says))
                fail_msg("entry %zu, %zu bytes: %d \"%s\"", i, n, (int)status, error.message);
            blob_free(&b);
        }
    remove_all(&f);
    (void)state;
}

/* Before the data there may be more than is read at first, and not more than the limit. */
void test_long_metadata(void **state) {
    static char text[3 << 20];
    files f;
    char path[160];
    iso_error error = {0};
    iso_model *model = NULL;
    gguf_maker m = {0};
    gguf_good(&m);
    memset(text, 'x', sizeof text - 1);
    gguf_text(&m, "a.long.text", text);
    blob b = gguf_finish(&m);
    files_make(&f);
    files_path(&f, NAME, path, sizeof path);
    files_write(&f, NAME, b.bytes, b.count);
    iso_model_free(load(path));
    iso_load_options options = {.size = sizeof options, .max_header_bytes = 2 << 20};
    assert_int_equal(iso_model_load(&model, path, &options, NULL, &error), ISOBIT_E_LIMIT);
    assert_non_null(strstr(error.message, "longer than max_header_bytes"));
    options.max_header_bytes = 30; /* less than its entries have at least */
    assert_int_equal(iso_model_load(&model, path, &options, NULL, &error), ISOBIT_E_LIMIT);
    assert_non_null(strstr(error.message, "longer than max_header_bytes"));
    options.max_header_bytes = 23;
    assert_int_equal(iso_model_load(&model, path, &options, NULL, &error), ISOBIT_E_LIMIT);
    assert_non_null(strstr(error.message, "max_header_bytes is too small"));
    /* The value lies beyond the end of a file that is longer than what was read of it. */
    b.bytes[b.count - 1] = 0;
    assert_int_equal(truncate(path, 2 << 20), 0);
    assert_int_equal(load_from(path, 0, &error), ISOBIT_E_TRUNCATED);
    blob_free(&b);
    remove_all(&f);
    (void)state;
}
