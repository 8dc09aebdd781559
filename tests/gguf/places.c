/* SPDX-License-Identifier: MIT
 *
 * See test_gguf.c: where a file may lie, and what may lie beside it.
 */
#include "../test_gguf.h"

static void refused(const char *path, iso_status status, const char *says) {
    for (int text = 0; text < 2; text++) {
        iso_error error;
        if (load_from(path, text, &error) != status || !strstr(error.message, says))
            fail_msg("%s: \"%s\" instead of \"%s\"", path, error.message, says);
    }
}

static void accepted(const char *path) {
    for (int text = 0; text < 2; text++) {
        iso_error error;
        if (load_from(path, text, &error))
            fail_msg("%s: %s", path, error.message);
    }
}

void test_places(void **state) {
    files f;
    char path[160], here[1024];
    iso_error error;
    gguf_maker m = {0};
    gguf_good(&m);
    blob b = gguf_finish(&m);
    files_make(&f);
    assert_int_equal(load_from(f.directory, 0, &error), ISOBIT_E_MISSING);
    assert_non_null(strstr(error.message, "there is no file config.json in"));
    files_path(&f, NAME, path, sizeof path);
    refused(path, ISOBIT_E_MISSING, "there is no file model.gguf in");
    no_directory = ENOMEM;
    assert_int_equal(load_from(f.directory, 0, &error), ISOBIT_E_NOMEM);
    assert_string_equal(error.message, "out of memory");
    no_directory = EACCES;
    assert_int_equal(load_from(f.directory, 0, &error), ISOBIT_E_MISSING);
    assert_non_null(strstr(error.message, "there is no file config.json in"));
    assert_int_equal(load_from("/no such directory", 0, &error), ISOBIT_E_MISSING);
    assert_non_null(strstr(error.message, "there is no file config.json in"));
    files_write(&f, NAME, b.bytes, b.count);
    files_text(&f, "README.md", "x");
    files_text(&f, ".gguf", "x"); /* only a suffix */
    accepted(path);
    accepted(f.directory);
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(f.directory), 0);
    accepted(NAME);
    accepted("./" NAME);
    accepted(".");
    for (int length = 60; length <= 68; length++) { /* of a directory; memory comes in lines */
        char slashes[80] = ".";
        memset(slashes + 1, '/', (size_t)length);
        strcpy(slashes + 1 + length, NAME);
        accepted(slashes);
    }
    assert_int_equal(chdir(here), 0);
    for (int text = 0; text < 2; text++) {
        growing = path;
        assert_int_equal(load_from(path, text, &error), ISOBIT_E_IO);
        assert_non_null(strstr(error.message, "the file changed while it was read"));
        files_write(&f, NAME, b.bytes, b.count);
    }
    /* Two of them: which one? */
    files_write(&f, "other.gguf", b.bytes, b.count);
    refused(f.directory, ISOBIT_E_CONFIG, "there is more than one .gguf file in");
    accepted(path);
    /* Files beside it that cannot be opened do not count as missing. */
    files_path(&f, "config.json", path, sizeof path);
    assert_int_equal(mkdir(path, 0777), 0);
    refused(f.directory, ISOBIT_E_IO, "config.json in");
    assert_int_equal(rmdir(path), 0);
    files_path(&f, NAME, path, sizeof path);
    /* A directory of another form goes first. */
    files_text(&f, "config.json", "{}");
    assert_int_equal(load_from(f.directory, 0, &error), ISOBIT_E_MISSING);
    assert_non_null(strstr(error.message, "config.json has no string \"model_type\""));
    accepted(path);
    /* A directory that is called like a file is one. */
    files_path(&f, "d.gguf", path, sizeof path);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(load_from(path, 0, &error), ISOBIT_E_MISSING);
    assert_non_null(strstr(error.message, "there is no file config.json in"));
    blob_free(&b);
    remove_all(&f);
    (void)state;
}
