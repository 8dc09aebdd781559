/* SPDX-License-Identifier: MIT
 *
 * Every row of the corpus (corpus.h) through the loaders: it must give its code and its words, and
 * leave the caller's pointer untouched. Then every truncation and every flipped bit of three good
 * files: whatever the loader makes of it, it is an error or a model that computes. Run it under
 * the sanitizers too.
 */
#include "corpus.h"

#include <isobit/model.h>

#include "checkpoint.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static size_t rows_run;

/* ---------------------------------------------------------------------------------- the rows */

static int printable(const char *message) {
    for (; *message; message++)
        if (*message < ' ' || *message > '~')
            return 0;
    return 1;
}

static void judge(const char *table, const char *name, iso_status expected, const char *says,
                  iso_status status, const iso_error *error) {
    rows_run++;
    if (status != expected || error->status != status || !strstr(error->message, says) ||
        !printable(error->message))
        fail_msg("%s, %s: status %d (%s), expected %d with '%s'", table, name, (int)status,
                 error->message, (int)expected, says);
}

static iso_status load(const files *f, iso_error *error) {
    iso_model *const untouched = (iso_model *)(void *)error, *model = untouched;
    *error = (iso_error){0};
    iso_status status = iso_model_load(&model, f->directory, NULL, NULL, error);
    if (status)
        assert_ptr_equal(model, untouched);
    else
        iso_model_free(model);
    return status;
}

static void test_headers(void **state) {
    files f;
    iso_error error;
    files_make(&f);
    corpus_good_model(&f);
    for (size_t i = 0; i < corpus_header_count; i++) {
        const corpus_header *row = &corpus_headers[i];
        blob text = {0};
        if (row->build)
            text = row->build();
        else
            blob_add(&text, row->text, strlen(row->text));
        /* Through the file ... */
        blob file = blob_file((char *)text.bytes, text.count, row->data_bytes);
        files_write(&f, "model.safetensors", file.bytes, file.count);
        blob_free(&file);
        judge("header", row->name, row->status, row->says, load(&f, &error), &error);
        /* ... and alone, in memory of exactly its size. */
        model_arena arena = {0};
        model_header header = {0};
        char *exact = malloc(text.count);
        assert_non_null(exact);
        memcpy(exact, text.bytes, text.count);
        iso_status status =
            model_header_parse(&header, &arena, exact, text.count, row->data_bytes, &error);
        assert_int_equal(status, row->status);
        assert_true(arena.bytes <= 8 * text.count + 1024);
        model_arena_free(&arena);
        free(exact);
        blob_free(&text);
    }
    files_remove(&f);
    (void)state;
}

static void test_files(void **state) {
    files f;
    iso_error error;
    files_make(&f);
    corpus_good_model(&f);
    for (size_t i = 0; i < corpus_file_count; i++) {
        const corpus_file *row = &corpus_files[i];
        unsigned char bytes[4096] = {0};
        memcpy(bytes, row->start, sizeof row->start);
        files_write(&f, "model.safetensors", bytes, row->bytes);
        judge("file", row->name, row->status, row->says, load(&f, &error), &error);
    }
    files_remove(&f);
    (void)state;
}

static void test_tensors(void **state) {
    files f;
    iso_error error;
    files_make(&f);
    corpus_good_model(&f);
    for (size_t i = 0; i < corpus_tensor_file_count; i++) {
        const corpus_tensors *row = &corpus_tensor_files[i];
        builder b = {.state = 1, .skip = row->skip, .odd = row->odd, .dtype = row->dtype};
        builder_model(&b, row->v ? row->v : CORPUS_V, row->d ? row->d : CORPUS_D,
                      row->f ? row->f : CORPUS_FFN, 1);
        b.skip = NULL;
        if (row->extra)
            builder_tensor(&b, row->extra, row->n, row->k, 0, 1);
        builder_write(&b, &f);
        judge("tensors", row->name, row->status, row->says, load(&f, &error), &error);
    }
    files_remove(&f);
    (void)state;
}

static void test_configs(void **state) {
    files f;
    iso_error error;
    files_make(&f);
    corpus_good_model(&f);
    assert_int_equal(load(&f, &error), ISOBIT_OK);
    for (size_t i = 0; i < corpus_config_count; i++) {
        const corpus_config *row = &corpus_configs[i];
        char *text = corpus_config_text(row);
        files_text(&f, "config.json", text);
        free(text);
        judge("config.json", row->name, row->status, row->says, load(&f, &error), &error);
    }
    corpus_good_model(&f);
    for (size_t i = 0; i < corpus_generation_config_count; i++) {
        const corpus_text *row = &corpus_generation_configs[i];
        files_text(&f, "generation_config.json", row->text);
        judge("generation_config.json", row->name, row->status, row->says, load(&f, &error),
              &error);
    }
    /* A text file beyond the limit is not read at all. */
    char path[160];
    files_path(&f, "config.json", path, sizeof path);
    assert_int_equal(truncate(path, ((off_t)4 << 20) + 1), 0);
    judge("config.json", "large", ISOBIT_E_LIMIT, "limit", load(&f, &error), &error);
    files_remove(&f);
    (void)state;
}

/* 200 kB of weights, and a configuration that makes 260 MiB of positions of them. */
static void test_small_file_large_model(void **state) {
    enum { WIDTH = 65 };
    files f;
    iso_error error;
    files_make(&f);
    builder b = {.state = 1};
    files_config(&f, "marian", 4, WIDTH, 1, 1,
                 ",\"eos_token_id\":2,\"decoder_start_token_id\":1,\"pad_token_id\":0,"
                 "\"max_position_embeddings\":1048576");
    builder_model(&b, 4, WIDTH, 1, 1);
    builder_write(&b, &f);
    judge("config.json", "positions 2^20 of 65", ISOBIT_E_LIMIT, "positions", load(&f, &error),
          &error);
    files_remove(&f);
    (void)state;
}

static iso_status load_tokenizer(const files *f, iso_error *error) {
    iso_tokenizer *const untouched = (iso_tokenizer *)(void *)error, *tokenizer = untouched;
    *error = (iso_error){0};
    iso_status status = iso_tokenizer_load(&tokenizer, f->directory, error);
    if (status)
        assert_ptr_equal(tokenizer, untouched);
    else
        iso_tokenizer_free(tokenizer);
    return status;
}

static void test_tokenizers(void **state) {
    files f;
    iso_error error;
    files_make(&f);
    for (size_t i = 0; i <= corpus_tokenizer_count; i++) {
        const corpus_text *row = i ? &corpus_tokenizers[i - 1] : NULL;
        files_text(&f, "tokenizer_config.json",
                   row && row->text ? row->text : corpus_good_tokenizer);
        files_text(&f, "vocab.json",
                   row && row->vocabulary ? row->vocabulary : corpus_good_vocabulary);
        iso_status status = load_tokenizer(&f, &error);
        if (row)
            judge("tokenizer", row->name, row->status, row->says, status, &error);
        else
            assert_int_equal(status, ISOBIT_OK);
    }
    files_remove(&f);
    (void)state;
}

static void test_count(void **state) {
    print_message("corpus: %zu malformed files\n", rows_run);
    assert_true(rows_run >= 300);
    (void)state;
}

/* ---------------------------------------------------------------------------------- mutations */

/* A file that is changed in place: replacing thousands of files is what would take the time. */
typedef struct victim {
    unsigned char *good;
    size_t bytes;
    int fd;
} victim;

static void victim_open(victim *v, const files *f, const char *name) {
    char path[160];
    files_path(f, name, path, sizeof path);
    v->fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(v->fd >= 0);
    off_t end = lseek(v->fd, 0, SEEK_END);
    assert_true(end > 0);
    v->bytes = (size_t)end;
    v->good = malloc(v->bytes);
    assert_non_null(v->good);
    assert_int_equal(pread(v->fd, v->good, v->bytes, 0), v->bytes);
}

static void victim_flip(const victim *v, size_t bit) {
    const unsigned char byte = (unsigned char)(v->good[bit / 8] ^ 1u << bit % 8);
    assert_int_equal(pwrite(v->fd, &byte, 1, (off_t)(bit / 8)), 1);
}

static void victim_restore(const victim *v, size_t byte) {
    assert_int_equal(pwrite(v->fd, v->good + byte, 1, (off_t)byte), 1);
}

static void victim_cut(const victim *v, size_t bytes) {
    assert_int_equal(ftruncate(v->fd, (off_t)bytes), 0);
}

static void victim_close(victim *v) {
    assert_int_equal(close(v->fd), 0);
    free(v->good);
}

/* Loads; a model that results must generate. 1 if it loaded. */
static int behaves(const files *f) {
    static const uint32_t sources[] = {3, 4, 2, 5, 2};
    static const size_t lengths[] = {3, 2};
    const iso_generate_options options = {.size = sizeof options, .beams = 2, .max_new_tokens = 3};
    iso_error error = {0};
    iso_model *model = NULL;
    iso_status status = iso_model_load(&model, f->directory, NULL, NULL, &error);
    if (status) {
        assert_int_equal(error.status, status);
        assert_true(status != ISOBIT_E_INTERNAL && printable(error.message));
        return 0;
    }
    iso_generation *result = NULL;
    status = iso_generate(&result, model, sources, lengths, 2, &options, NULL, &error);
    if (status == ISOBIT_OK) {
        const size_t V = iso_model_get_info(model)->target_vocabulary;
        assert_int_equal(result->count, 2);
        for (size_t i = 0; i < result->count; i++)
            for (size_t t = 0; t < result->best[i].length; t++)
                assert_true(result->best[i].ids[t] < V);
        iso_generation_free(result);
    } else {
        /* Legal configurations may contradict the call: ids beyond a smaller vocabulary, limits. */
        assert_true(status != ISOBIT_E_INTERNAL && printable(error.message));
    }
    iso_model_free(model);
    return 1;
}

static double seconds(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void test_mutated_safetensors(void **state) {
    files f;
    victim v;
    files_make(&f);
    /* As small as can be, so that every bit can be had. */
    builder b = {.state = 1};
    files_config(&f, "marian", 6, 2, 1, 1,
                 ",\"eos_token_id\":2,\"decoder_start_token_id\":1,\"pad_token_id\":0");
    builder_model(&b, 6, 2, 1, 1);
    builder_write(&b, &f);
    victim_open(&v, &f, "model.safetensors");
    size_t header = 8;
    for (int i = 0; i < 2; i++)
        header += (size_t)v.good[i] << 8 * i;
    const double start = seconds();
    for (size_t n = v.bytes; n-- > 0;) {
        victim_cut(&v, n);
        assert_int_equal(behaves(&f), 0);
    }
    assert_int_equal(pwrite(v.fd, v.good, v.bytes, 0), v.bytes);
    /* Every bit; an emulator takes some. */
    const size_t step = getenv("ISOBIT_EMULATED") ? 13 : 1;
    size_t loaded = 0, tried = 0;
    for (size_t bit = 0; bit < 8 * v.bytes; bit += step) {
        victim_flip(&v, bit);
        const int ok = behaves(&f);
        loaded += (size_t)ok;
        tried++;
        if (bit >= 8 * header)
            assert_int_equal(ok, 1); /* any bits are weights, NaN too */
        victim_restore(&v, bit / 8);
    }
    print_message("model.safetensors: %zu cuts, %zu flips, of which %zu load, %.1f s\n", v.bytes,
                  tried, loaded, seconds() - start);
    assert_int_equal(behaves(&f), 1);
    victim_close(&v);
    files_remove(&f);
    (void)state;
}

static void test_mutated_config(void **state) {
    files f;
    victim v;
    files_make(&f);
    corpus_good_model(&f);
    victim_open(&v, &f, "config.json");
    for (size_t n = v.bytes; n-- > 0;) {
        victim_cut(&v, n);
        assert_int_equal(behaves(&f), 0);
    }
    assert_int_equal(pwrite(v.fd, v.good, v.bytes, 0), v.bytes);
    size_t loaded = 0;
    for (size_t bit = 0; bit < 8 * v.bytes; bit++) {
        victim_flip(&v, bit);
        loaded += (size_t)behaves(&f);
        victim_restore(&v, bit / 8);
    }
    print_message("config.json: %zu cuts, %zu flips, of which %zu load\n", v.bytes, 8 * v.bytes,
                  loaded);
    assert_int_equal(behaves(&f), 1);
    victim_close(&v);
    files_remove(&f);
    (void)state;
}

/* 1 if it loads; then it must cut and join text. */
static int tokenizes(const files *f) {
    static const char text[] = "ab\xc3\xa9 b-A, \xe2\x80\x99 <unk>";
    iso_error error = {0};
    iso_tokenizer *t = NULL;
    iso_status status = iso_tokenizer_load(&t, f->directory, &error);
    if (status) {
        assert_int_equal(error.status, status);
        assert_true(status != ISOBIT_E_INTERNAL && printable(error.message));
        return 0;
    }
    uint32_t ids[64];
    size_t lengths[16], count, sequences, needed;
    char out[256];
    assert_int_equal(iso_tokenizer_encode(t, text, sizeof text - 1, ids, 64, &count, lengths, 16,
                                          &sequences, &error),
                     ISOBIT_OK);
    for (size_t i = 0; i < count; i++)
        assert_non_null(iso_tokenizer_token(t, ids[i]));
    assert_int_equal(iso_tokenizer_decode(t, ids, count, out, sizeof out, &needed), ISOBIT_OK);
    assert_int_equal(strlen(out) + 1, needed);
    iso_tokenizer_free(t);
    return 1;
}

static void test_mutated_vocabulary(void **state) {
    files f;
    victim v;
    files_make(&f);
    files_text(&f, "tokenizer_config.json", corpus_good_tokenizer);
    files_text(&f, "vocab.json", corpus_good_vocabulary);
    victim_open(&v, &f, "vocab.json");
    for (size_t n = v.bytes; n-- > 0;) {
        victim_cut(&v, n);
        assert_int_equal(tokenizes(&f), 0);
    }
    assert_int_equal(pwrite(v.fd, v.good, v.bytes, 0), v.bytes);
    size_t loaded = 0;
    for (size_t bit = 0; bit < 8 * v.bytes; bit++) {
        victim_flip(&v, bit);
        loaded += (size_t)tokenizes(&f);
        victim_restore(&v, bit / 8);
    }
    print_message("vocab.json: %zu cuts, %zu flips, of which %zu load\n", v.bytes, 8 * v.bytes,
                  loaded);
    assert_int_equal(tokenizes(&f), 1);
    victim_close(&v);
    files_remove(&f);
    (void)state;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_configs),
        cmocka_unit_test(test_small_file_large_model),
        cmocka_unit_test(test_tokenizers),
        cmocka_unit_test(test_count),
        cmocka_unit_test(test_mutated_safetensors),
        cmocka_unit_test(test_mutated_config),
        cmocka_unit_test(test_mutated_vocabulary),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("corpus", tests, NULL, NULL);
}
