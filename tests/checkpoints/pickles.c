/* SPDX-License-Identifier: MIT
 *
 * The rules of torch.save.
 */
#include "test_checkpoints.h"

iso_status open_bin(model_checkpoint *c, const files *f, const blob *b, size_t limit,
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

void test_pickles(void **state) {
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
void test_pickles_alone(void **state) {
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
void test_no_memory(void **state) {
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
void test_members(void **state) {
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
void test_limits(void **state) {
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
void test_long_pickles(void **state) {
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
void test_other_files(void **state) {
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
void test_mutations(void **state) {
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
