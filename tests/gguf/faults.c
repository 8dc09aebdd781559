/* SPDX-License-Identifier: MIT
 *
 * See test_gguf.c: every allocation and every read fails once.
 */
#include "../test_gguf.h"

static size_t open_files(void) {
    size_t count = 0;
    DIR *directory = opendir("/proc/self/fd");
    assert_non_null(directory);
    while (readdir(directory))
        count++;
    (void)closedir(directory);
    return count;
}

/* What a tokenizer makes of special tokens, of one of users and of other text. */
static iso_status special_text(const char *path, uint32_t *to, iso_error *error) {
    static const char text[] = "<s>a</s><unk>[LOUD]b<extra_id_0>";
    iso_tokenizer *t = NULL;
    size_t count, length, sequences;
    memset(to, 0, MOST * sizeof *to);
    iso_status status = iso_tokenizer_load(&t, path, error);
    if (!status)
        status = iso_tokenizer_encode(t, text, strlen(text), to, MOST, &count, &length, 1,
                                      &sequences, error);
    iso_tokenizer_free(t);
    return status;
}

/* Without memory for something a tokenizer is refused, or is as ever. */
static void fail_pieces(const char *path) {
    uint32_t expected[MOST], got[MOST];
    iso_error error = {0};
    size_t refusals = 0;
    assert_int_equal(special_text(path, expected, &error), ISOBIT_OK);
    for (memory.failing = 1, memory.count = 0;; memory.failing++, memory.count = 0) {
        const iso_status status = special_text(path, got, &error);
        if (memory.count < memory.failing)
            break;
        if (status ? status != ISOBIT_E_NOMEM : memcmp(got, expected, sizeof got) != 0)
            fail_msg("allocation %zu: %d (%s)", memory.failing, (int)status, error.message);
        refusals += status == ISOBIT_E_NOMEM;
    }
    memory.failing = 0;
    assert_true(refusals > 10);
}

void test_faults(void **state) {
    files f;
    gguf_maker m = {0};
    gguf_good(&m);
    blob b = gguf_finish(&m);
    files_make(&f);
    files_write(&f, NAME, b.bytes, b.count);
    blob_free(&b);
    const char *const paths[] = {
        DATA "/gguf/llama.gguf",       DATA "/gguf/gpt2.gguf",      DATA "/gguf/longrope.gguf",
        DATA "/gguf/t5.gguf",          DATA "/gguf/gpt2.gguf",      DATA "/gguf/tokens-llama.gguf",
        DATA "/gguf/tokens-bert.gguf", DATA "/gguf/tokens-t5.gguf", f.directory,
        DATA "/gguf/qwen3-q.gguf"};
    const size_t before = open_files();
    for (int i = 0; i < 10; i++) {
        const char *path = paths[i];
        const int text = i >= 4 && i < 9;
        iso_error error;
        for (memory.failing = 1, memory.count = 0;; memory.failing++, memory.count = 0) {
            const iso_status status = load_from(path, text, &error);
            if (memory.count < memory.failing) {
                assert_int_equal(status, ISOBIT_OK);
                break;
            }
            if (text && status == ISOBIT_OK)
                continue; /* tables that find tokens faster are done without */
            if (status != ISOBIT_E_NOMEM || !strstr(error.message, "out of memory"))
                fail_msg("allocation %zu: %d (%s)", memory.failing, (int)status, error.message);
        }
        memory.failing = 0;
        for (io.failing = 1, io.count = 0;; io.failing++, io.count = 0) {
            const iso_status status = load_from(path, text, &error);
            if (io.count < io.failing) {
                assert_int_equal(status, ISOBIT_OK);
                break;
            }
            if (status != ISOBIT_E_IO || !strstr(error.message, "failed (errno"))
                fail_msg("read %zu: %d (%s)", io.failing, (int)status, error.message);
        }
        io.failing = 0;
    }
    assert_int_equal(open_files(), before);
    char path[160];
    files_path(&f, NAME, path, sizeof path);
    m = (gguf_maker){0};
    make_good_pieces(&m);
    b = gguf_finish(&m);
    files_write(&f, NAME, b.bytes, b.count);
    blob_free(&b);
    fail_pieces(path);
    fail_pieces(DATA "/gguf/tokens-t5.gguf");
    remove_all(&f);
    (void)state;
}
