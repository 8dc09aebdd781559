/* SPDX-License-Identifier: MIT
 *
 * System calls that fail, and files that change.
 */
#include "test_faults.h"

void test_system_calls_fail(void **state) {
    static const int codes[] = {EIO, EACCES, EMFILE, ENOMEM, ESTALE};
    files f;
    iso_error error;
    iso_model *model;
    answer good;
    files_make(&f);
    good_files(&f);
    assert_int_equal(load(&model, &f, &error), ISOBIT_OK);
    ask(&good, model);
    iso_model_free(model);
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++)
        for (int tokenizer = 0; tokenizer < 2; tokenizer++) {
            size_t failures = 0;
            for (size_t k = 1;; k++) {
                iso_tokenizer *t = NULL;
                no_faults();
                io.failing = k;
                io.code = codes[c];
                model = NULL;
                iso_status status = tokenizer ? iso_tokenizer_load(&t, f.directory, &error)
                                              : load(&model, &f, &error);
                iso_model_free(model);
                iso_tokenizer_free(t);
                if (io.calls < k) {
                    assert_int_equal(status, ISOBIT_OK);
                    break;
                }
                if (status != ISOBIT_E_IO)
                    fail_msg("errno %d at call %zu: status %d (%s)", codes[c], k, (int)status,
                             error.message);
                failures++;
            }
            assert_true(failures >= (tokenizer ? 8 : 30));
        }
    same(&good, &f);
    files_remove(&f);
    (void)state;
}

void test_short_reads(void **state) {
    static const size_t shortest[] = {1, 2, 7, 4095, 0};
    files f;
    iso_error error;
    iso_model *model;
    answer good, got;
    files_make(&f);
    good_files(&f);
    assert_int_equal(load(&model, &f, &error), ISOBIT_OK);
    ask(&good, model);
    iso_model_free(model);
    for (size_t i = 0; i < 5; i++)
        for (int interrupt = 0; interrupt < 2; interrupt++) {
            iso_tokenizer *t = NULL;
            no_faults();
            io.shortest = shortest[i];
            io.interrupt = interrupt;
            assert_int_equal(load(&model, &f, &error), ISOBIT_OK);
            assert_int_equal(iso_tokenizer_load(&t, f.directory, &error), ISOBIT_OK);
            no_faults();
            ask(&got, model);
            assert_memory_equal(&got, &good, sizeof got);
            assert_string_equal(iso_tokenizer_token(t, 5), "b");
            iso_tokenizer_free(t);
            iso_model_free(model);
        }
    files_remove(&f);
    (void)state;
}

/* A file that is not what fstat said; then files that are cut while they are read. */
void test_files_change(void **state) {
    static const char *const names[] = {"config.json", "generation_config.json",
                                        "model.safetensors"};
    files f;
    iso_error error;
    iso_model *model;
    answer good;
    files_make(&f);
    good_files(&f);
    assert_int_equal(load(&model, &f, &error), ISOBIT_OK);
    ask(&good, model);
    iso_model_free(model);
    static const off_t more[] = {1, 1000, (off_t)1 << 40, -1, -1000, INT64_MIN / 2};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        no_faults();
        io.more = more[i];
        iso_status status = load(&model, &f, &error);
        /* Whatever comes first: an end too early, text cut short, a file too large or no file. */
        assert_true(status == ISOBIT_E_TRUNCATED || status == ISOBIT_E_JSON ||
                    status == ISOBIT_E_LIMIT || status == ISOBIT_E_IO);
    }
    no_faults();
    assert_int_equal(load(&model, &f, &error), ISOBIT_OK);
    iso_model_free(model);
    for (size_t n = 0; n < 3; n++) {
        char path[160];
        struct stat st;
        files_path(&f, names[n], path, sizeof path);
        assert_int_equal(stat(path, &st), 0);
        size_t failures = 0;
        for (size_t at = 1;; at++) {
            good_files(&f);
            no_faults();
            io.cut_path = path;
            io.cut_bytes = st.st_size / 2;
            io.cut_at = at;
            iso_status status = load(&model, &f, &error);
            iso_model_free(model);
            if (io.reads < at) {
                assert_int_equal(status, ISOBIT_OK);
                break;
            }
            /* Text files that are through are no longer looked at; the cut may come before. */
            if (n == 2)
                assert_true(status == ISOBIT_E_TRUNCATED || status == ISOBIT_E_IO);
            else
                assert_true(status == ISOBIT_E_TRUNCATED || status == ISOBIT_E_IO ||
                            status == (n && at == 1 ? ISOBIT_E_JSON : ISOBIT_OK));
            failures += status != ISOBIT_OK;
        }
        assert_true(failures > 0);
    }
    /* Text files that grow: what was read is not all of it. */
    for (size_t n = 0; n < 2; n++) {
        char path[160];
        struct stat st;
        size_t noticed = 0;
        good_files(&f);
        files_path(&f, names[n], path, sizeof path);
        assert_int_equal(stat(path, &st), 0);
        for (size_t at = 1; at <= 4; at++) {
            good_files(&f);
            no_faults();
            io.cut_path = path;
            io.cut_bytes = st.st_size + 1;
            io.cut_at = at;
            iso_status status = load(&model, &f, &error);
            iso_model_free(model);
            noticed += status == ISOBIT_E_IO && strstr(error.message, names[n]) &&
                       strstr(error.message, "the file changed while it was read");
        }
        assert_true(noticed > 0);
    }
    no_faults();
    good_files(&f);
    same(&good, &f);
    files_remove(&f);
    (void)state;
}

/* Each of these would block, never end, or have no size. */
void test_no_regular_files(void **state) {
    static const char *const names[] = {"config.json", "model.safetensors",
                                        "generation_config.json", "tokenizer_config.json",
                                        "vocab.json"};
    files f;
    iso_error error;
    no_faults();
    files_make(&f);
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (int kind = 0; kind < 6; kind++) {
            char path[160];
            int fd = -1;
            good_files(&f);
            files_path(&f, names[n], path, sizeof path);
            assert_int_equal(unlink(path), 0);
            if (kind == 0) {
                assert_int_equal(mkfifo(path, 0600), 0);
            } else if (kind == 1) {
                assert_int_equal(mkdir(path, 0700), 0);
            } else if (kind == 2) {
                struct sockaddr_un address = {.sun_family = AF_UNIX};
                (void)snprintf(address.sun_path, sizeof address.sun_path, "%.100s", path);
                fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
                assert_true(fd >= 0);
                assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
            } else {
                /* A link to itself, to what never ends, and to what is never there. */
                static const char *const to[] = {NULL, "/dev/zero", "/dev/full"};
                assert_int_equal(symlink(to[kind - 3] ? to[kind - 3] : path, path), 0);
            }
            iso_model *model = NULL;
            iso_tokenizer *t = NULL;
            iso_status status =
                n < 3 ? load(&model, &f, &error) : iso_tokenizer_load(&t, f.directory, &error);
            if (status != ISOBIT_E_IO)
                fail_msg("%s, kind %d: status %d (%s)", names[n], kind, (int)status, error.message);
            if (fd >= 0)
                assert_int_equal(close(fd), 0);
            assert_int_equal(kind == 1 ? rmdir(path) : unlink(path), 0);
        }
    /* A directory that is a file, and one whose name is too long. */
    char longer[5000];
    iso_model *model = NULL;
    memset(longer, 'a', sizeof longer);
    longer[sizeof longer - 1] = 0;
    good_files(&f);
    char path[160];
    files_path(&f, "vocab.json", path, sizeof path);
    assert_int_equal(iso_model_load(&model, path, NULL, NULL, &error), ISOBIT_E_MISSING);
    assert_int_equal(iso_model_load(&model, longer, NULL, NULL, &error), ISOBIT_E_IO);
    assert_int_equal(iso_model_load(&model, "", NULL, NULL, &error), ISOBIT_E_MISSING);
    files_remove(&f);
    (void)state;
}

/* Weights beyond 4 GiB, in a file of which most is a hole of the file system. */
void test_beyond_4_gib(void **state) {
    const uint64_t shift = ((uint64_t)5 << 30) + 3; /* not aligned */
    files f;
    iso_error error;
    iso_model *model;
    answer good, got;
    builder b = {.state = 5};
    blob header = {0};
    no_faults();
    files_make(&f);
    good_files(&f);
    assert_int_equal(load(&model, &f, &error), ISOBIT_OK);
    ask(&good, model);
    iso_model_free(model);
    /* The same tensors, all of them further back, behind one that nobody uses. */
    builder_model(&b, V, D, FFN, 1);
    blob_add(&b.header, "}", 2);
    char text[160];
    (void)snprintf(text, sizeof text,
                   "{\"unused\":{\"dtype\":\"U8\",\"shape\":[%llu],\"data_offsets\":[0,%llu]},",
                   (unsigned long long)shift, (unsigned long long)shift);
    blob_add(&header, text, strlen(text));
    static const char key[] = "\"data_offsets\":[";
    const char *at = (const char *)b.header.bytes + 1;
    for (const char *next; (next = strstr(at, key)); at = strchr(next, ']')) {
        char *end;
        next += sizeof key - 1;
        blob_add(&header, at, (size_t)(next - at));
        const unsigned long long from = strtoull(next, &end, 10), to = strtoull(end + 1, NULL, 10);
        (void)snprintf(text, sizeof text, "%llu,%llu", from + shift, to + shift);
        blob_add(&header, text, strlen(text));
    }
    blob_add(&header, at, strlen(at));
    blob file = blob_file((char *)header.bytes, header.count, 0);
    files_write(&f, "model.safetensors", file.bytes, file.count);
    char path[160];
    files_path(&f, "model.safetensors", path, sizeof path);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    if (pwrite(fd, b.data.bytes, b.data.count, (off_t)(file.count + shift)) !=
        (ssize_t)b.data.count) {
        print_message("SKIPPED: this file system has no files of 5 GiB\n");
    } else {
        iso_status status = load(&model, &f, &error);
        if (status)
            fail_msg("%s", error.message);
        ask(&got, model);
        assert_memory_equal(&got, &good, sizeof got);
        iso_model_free(model);
        /* One byte more, or less, and 4 GiB less: what a 32-bit size would not see. */
        const off_t whole = (off_t)(file.count + shift + b.data.count);
        assert_int_equal(ftruncate(fd, whole + 1), 0);
        assert_int_equal(load(&model, &f, &error), ISOBIT_E_HOLE);
        assert_int_equal(ftruncate(fd, whole - 1), 0);
        assert_int_equal(load(&model, &f, &error), ISOBIT_E_TRUNCATED);
        assert_int_equal(ftruncate(fd, whole - ((off_t)1 << 32)), 0);
        assert_int_equal(load(&model, &f, &error), ISOBIT_E_TRUNCATED);
    }
    assert_int_equal(close(fd), 0);
    blob_free(&file);
    blob_free(&header);
    blob_free(&b.header);
    blob_free(&b.data);
    files_remove(&f);
    (void)state;
}

/*
 * The same with mapped weights: what was mapped is unmapped again, whatever fails, and where
 * nothing can be mapped the weights are read. The bits are those of weights that were read.
 */
void test_mapped(void **state) {
    files f;
    iso_error error;
    iso_model *model;
    answer good, got;
    no_faults();
    files_make(&f);
    good_files(&f);
    assert_int_equal(load(&model, &f, &error), ISOBIT_OK);
    ask(&good, model);
    const size_t bytes = iso_model_get_info(model)->weight_bytes;
    iso_model_free(model);
    assert_int_equal(io.maps, 0);
    mapping = 1;
    for (int none = 0; none < 2; none++) {
        no_faults();
        io.no_maps = none;
        assert_int_equal(load(&model, &f, &error), ISOBIT_OK);
        assert_int_equal(io.maps, !none);
        /* No second copy, of the table at least. */
        if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && !none)
            assert_true(iso_model_get_info(model)->weight_bytes + V * D * sizeof(float) <= bytes);
        ask(&got, model);
        assert_memory_equal(&got, &good, sizeof got);
        iso_model_free(model);
        assert_int_equal(io.maps, 0);
    }
    /* What is mapped is not read to be looked at. */
    size_t calls[2];
    for (size_t i = 0; i < 2; i++) {
        const iso_load_options options = {
            .size = sizeof options, .map = 1, .reject_nonfinite = i == 1};
        no_faults();
        assert_int_equal(iso_model_load(&model, f.directory, &options, NULL, &error), ISOBIT_OK);
        calls[i] = io.calls;
        iso_model_free(model);
    }
    assert_int_equal(calls[0], calls[1]);
    for (int kind = 0; kind < 3; kind++) { /* an allocation; it and all after it; a call */
        size_t failures = 0;
        for (size_t k = 1;; k++) {
            no_faults();
            *(kind == 0 ? &memory.failing : kind == 1 ? &memory.all_from : &io.failing) = k;
            io.code = EIO;
            iso_status status = load(&model, &f, &error);
            const size_t made = kind == 2 ? io.calls : memory.allocations;
            memory.failing = memory.all_from = 0;
            assert_int_equal(io.maps, status == ISOBIT_OK);
            iso_model_free(model);
            assert_int_equal(io.maps, 0);
            if (k > made) {
                assert_int_equal(status, ISOBIT_OK);
                break;
            }
            if (status && status != (kind == 2 ? ISOBIT_E_IO : ISOBIT_E_NOMEM))
                fail_msg("kind %d, %zu: status %d (%s)", kind, k, (int)status, error.message);
            failures += status != ISOBIT_OK;
            assert_true(k < 10000);
        }
        assert_true(failures >= 10);
    }
    for (size_t shortest = 1; shortest < 8; shortest += 6) {
        no_faults();
        io.shortest = shortest;
        io.interrupt = 1;
        assert_int_equal(load(&model, &f, &error), ISOBIT_OK);
        no_faults();
        ask(&got, model);
        assert_memory_equal(&got, &good, sizeof got);
        iso_model_free(model);
    }
    /* A file that is shorter or longer than fstat says, or was replaced: nothing is touched. */
    static const off_t more[] = {1, 1000, -1, -1000};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        no_faults();
        io.more = more[i];
        assert_int_not_equal(load(&model, &f, &error), ISOBIT_OK);
        assert_int_equal(io.maps, 0);
    }
    /* The file is replaced while the model lives, as the header says: it keeps the old one. */
    no_faults();
    assert_int_equal(load(&model, &f, &error), ISOBIT_OK);
    char path[160], other[160];
    files_path(&f, "model.safetensors", path, sizeof path);
    files_path(&f, "other", other, sizeof other);
    files_text(&f, "other", "no weights");
    assert_int_equal(rename(other, path), 0);
    ask(&got, model);
    assert_memory_equal(&got, &good, sizeof got);
    iso_model_free(model);
    assert_int_equal(io.maps, 0);
    mapping = 0;
    good_files(&f);
    same(&good, &f);
    files_remove(&f);
    (void)state;
}
