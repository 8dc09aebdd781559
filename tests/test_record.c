/* SPDX-License-Identifier: MIT
 *
 * Recorded runs: the format byte by byte, damaged files, files that cannot be written, and what is
 * said about cases that are equal, different, allowed to differ, wrong, or in one run only.
 *
 *   test_record                     the tests
 *   test_record alter FILE WHAT     changes a good file for test_record.sh, its checksum too
 */
#include "test_record.h"

/* ------------------------------------------------------------------------------- the format */

static void test_good(void **state) {
    struct iso_record r;
    char message[ISO_RECORD_MESSAGE];
    blob b = record_good();
    assert_true(iso_record_unpack(&r, b.bytes, b.count, message));
    assert_int_equal(r.numerics, 3);
    assert_int_equal(r.plan, 1);
    assert_int_equal(r.part, 1);
    assert_int_equal(r.parts, 4);
    assert_true(r.iters == 5 && r.seed == UINT64_C(0x8000000000000106));
    assert_string_equal(r.target, "isobit");
    assert_string_equal(r.version, "0.1.0");
    assert_string_equal(r.machine, "m");
    assert_string_equal(r.variants, "");
    assert_string_equal(r.compiler, "gcc");
    assert_int_equal(r.count, 3);
    const struct iso_record_section *s = iso_record_find(&r, "softmax", "");
    assert_non_null(s);
    assert_int_equal(s->count, 2);
    assert_true(s->cases[0].key == 0x04030201 && s->cases[0].hash == UINT64_C(0x1817161514131211));
    assert_true(s->cases[0].bound == 250 && s->cases[0].ulp == ISO_RECORD_NO_ULP);
    assert_int_equal(s->cases[0].count, 2);
    assert_int_equal(s->samples[0], -1);
    assert_int_equal(s->samples[1], ISO_RECORD_NO_SAMPLE);
    assert_true(s->cases[1].bound == ISO_RECORD_WRONG && s->cases[1].ulp == 10);
    s = iso_record_find(&r, "peak", "scalar");
    assert_non_null(s);
    assert_int_equal(s->samples[s->cases[0].first], 127);
    assert_int_equal(iso_record_find(&r, "peak", "avx2")->count, 0);
    assert_null(iso_record_find(&r, "peak", ""));
    unsigned char *again;
    size_t size;
    assert_true(iso_record_pack(&r, &again, &size));
    assert_int_equal(size, b.count);
    assert_memory_equal(again, b.bytes, size);
    free(again);
    iso_record_free(&r);
    blob_free(&b);
    (void)state;
}

/* Memory of exactly that size, so that a sanitizer sees the first byte too far. */
static bool unpack(const unsigned char *bytes, size_t size, char message[ISO_RECORD_MESSAGE]) {
    struct iso_record r;
    unsigned char *exact = malloc(size ? size : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    bool good = iso_record_unpack(&r, exact, size, message);
    if (good) {
        unsigned char *again;
        size_t packed;
        assert_true(iso_record_pack(&r, &again, &packed));
        assert_int_equal(packed, size);
        assert_memory_equal(again, exact, size);
        free(again);
    } else {
        assert_true(message[0] && !r.sections && !r.count);
        for (const char *m = message; *m; m++)
            assert_true(*m >= ' ' && *m <= '~');
    }
    iso_record_free(&r);
    free(exact);
    return good;
}

static void test_bad(void **state) {
    char message[ISO_RECORD_MESSAGE];
    for (size_t i = 0; i < record_row_count; i++) {
        blob b = record_spoilt(&record_rows[i]);
        if (unpack(b.bytes, b.count, message) || !strstr(message, record_rows[i].says))
            fail_msg("%s: '%s', expected '%s'", record_rows[i].name, message, record_rows[i].says);
        blob_free(&b);
    }
    (void)state;
}

/* Every length, and every bit; then every value of every byte, sealed again. */
static void test_every_byte(void **state) {
    char message[ISO_RECORD_MESSAGE];
    blob b = record_good();
    size_t accepted = 0;
    for (size_t n = 0; n < b.count; n++)
        assert_false(unpack(b.bytes, n, message));
    for (size_t i = 0; i < 8 * b.count; i++) {
        b.bytes[i / 8] ^= (unsigned char)(1u << i % 8);
        assert_false(unpack(b.bytes, b.count, message));
        b.bytes[i / 8] ^= (unsigned char)(1u << i % 8);
    }
    for (size_t i = 0; i < b.count - 8; i++) {
        unsigned char was = b.bytes[i];
        for (unsigned value = 0; value < 256; value++) {
            b.bytes[i] = (unsigned char)value;
            record_seal(b.bytes, b.count);
            accepted += unpack(b.bytes, b.count, message);
        }
        b.bytes[i] = was;
    }
    assert_true(accepted > 10000); /* hashes, keys, seed, ... */
    blob_free(&b);
    (void)state;
}

static void test_text(void **state) {
    char text[ISO_RECORD_TEXT], wide[2 * ISO_RECORD_TEXT];
    iso_record_text(text, "a\x1b[1m\xc3\xa9\n");
    assert_string_equal(text, "a?[1m???");
    memset(wide, 'x', sizeof wide - 1);
    wide[sizeof wide - 1] = 0;
    iso_record_text(text, wide);
    assert_int_equal(strlen(text), ISO_RECORD_TEXT - 1);
    (void)state;
}

/* --------------------------------------------------------------------------------- the files */

static size_t entries(const char *directory) {
    DIR *d = opendir(directory);
    size_t n = 0;
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static void refused(const char *path, const char *says) {
    struct iso_record r;
    char message[ISO_RECORD_MESSAGE];
    assert_false(iso_record_read(&r, path, message));
    assert_non_null(strstr(message, says));
}

static void test_read(void **state) {
    files f;
    char path[256];
    files_make(&f);
    files_path(&f, "r", path, sizeof path);
    refused(path, strerror(ENOENT));
    refused(f.directory, "not a regular file");
    refused("/dev/null", "not a regular file");
    assert_int_equal(mkfifo(path, 0600), 0);
    refused(path, "not a regular file");
    unlink(path);
    files_text(&f, "r", "");
    refused(path, "not a file that isobit");
    assert_int_equal(truncate(path, (off_t)ISO_RECORD_MOST_BYTES + 1), 0); /* a hole */
    refused(path, "too large");
    blob b = record_good();
    struct iso_record r;
    char message[ISO_RECORD_MESSAGE];
    files_write(&f, "r", b.bytes, b.count);
    assert_true(iso_record_read(&r, path, message));
    assert_int_equal(r.count, 3);
    iso_record_free(&r);
    blob_free(&b);
    files_remove(&f);
    (void)state;
}

static void test_write(void **state) {
    files f;
    char path[256], message[ISO_RECORD_MESSAGE];
    struct iso_record r, again;
    blob b = record_good();
    assert_true(iso_record_unpack(&r, b.bytes, b.count, message));
    files_make(&f);
    files_path(&f, "r", path, sizeof path);
    assert_true(iso_record_writable(path, message));
    assert_int_equal(entries(f.directory), 0);
    assert_true(iso_record_write(&r, path, message));
    assert_true(iso_record_read(&again, path, message));
    assert_int_equal(again.count, r.count);
    iso_record_free(&again);

    /* Where there is no room for it: what was there stays, and nothing else. */
    struct rlimit limit, small;
    files_text(&f, "r", "before");
    getrlimit(RLIMIT_FSIZE, &limit);
    small = limit;
    small.rlim_cur = 100;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    bool written = iso_record_write(&r, path, message);
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_false(written);
    assert_string_equal(message, "cannot be written: File too large");
    refused(path, "not a file that isobit");
    assert_int_equal(entries(f.directory), 1);

    /* It replaces what a link leads to, and keeps its mode; a device stays what it is. */
    char link[256];
    struct stat st;
    files_path(&f, "link", link, sizeof link);
    assert_int_equal(symlink("r", link), 0);
    assert_int_equal(chmod(path, 0640), 0);
    assert_true(iso_record_write(&r, link, message));
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal((size_t)st.st_size, b.count);
    assert_int_equal(entries(f.directory), 2);
    assert_false(iso_record_write(&r, "/dev/full", message));
    assert_string_equal(message, "cannot be written: No space left on device");
    assert_true(stat("/dev/full", &st) == 0 && S_ISCHR(st.st_mode));

    assert_false(iso_record_write(&r, f.directory, message));
    assert_false(iso_record_writable(f.directory, message));
    files_path(&f, "none/r", path, sizeof path);
    assert_false(iso_record_writable(path, message));
    assert_string_equal(message, "cannot be written: No such file or directory");
    unlink(link);
    files_remove(&f);
    blob_free(&b);
    iso_record_free(&r);
    (void)state;
}

/* ----------------------------------------------------------------------------------- altering */

static int alter(const char *path, const char *what) {
    struct iso_record r;
    char message[ISO_RECORD_MESSAGE];
    unsigned char *bytes;
    size_t size;
    if (!iso_record_read(&r, path, message) || !r.count || !r.sections[0].count)
        return 2;
    struct iso_record_section *s = &r.sections[0];
    struct iso_record_case *c = &s->cases[s->count / 2];
    if (!strcmp(what, "hash")) {
        c->hash ^= 1;
        for (unsigned i = 0; i < c->count; i++)
            s->samples[c->first + i] = (int8_t)(s->samples[c->first + i] + 3);
    } else if (!strcmp(what, "wrong")) {
        c->bound = ISO_RECORD_WRONG;
    } else if (!strcmp(what, "target")) {
        iso_record_text(r.target, "other");
    } else if (!strcmp(what, "numerics")) {
        r.numerics++;
    } else if (!strcmp(what, "keys")) {
        for (size_t i = 0; i < s->count; i++)
            s->cases[i].key ^= 1;
    }
    if (!iso_record_pack(&r, &bytes, &size))
        return 2;
    if (!strcmp(what, "newer")) {
        bytes[8]++;
        record_seal(bytes, size);
    }
    FILE *f = fopen(path, "wb");
    bool good = f && fwrite(bytes, 1, size, f) == size;
    good = f && fclose(f) == 0 && good;
    free(bytes);
    iso_record_free(&r);
    return good ? 0 : 2;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),       cmocka_unit_test(test_bad),
        cmocka_unit_test(test_every_byte), cmocka_unit_test(test_text),
        cmocka_unit_test(test_read),       cmocka_unit_test(test_write),
        cmocka_unit_test(test_hash),       cmocka_unit_test(test_measure),
        cmocka_unit_test(test_samples),    cmocka_unit_test(test_recorder),
        cmocka_unit_test(test_comparison), cmocka_unit_test(test_other_variants),
    };
    if (argc == 4 && !strcmp(argv[1], "alter"))
        return alter(argv[2], argv[3]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
