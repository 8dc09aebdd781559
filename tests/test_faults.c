/* SPDX-License-Identifier: MIT
 *
 * What the system may refuse: each allocation in turn, each system call on a file, reads that are
 * short or interrupted, files that change while they are read, things that are no files. A call
 * says so with its code, leaves the caller's pointers alone and loses nothing (the leak checker of
 * the sanitizer build watches), and afterwards everything works and gives the bits it gave before.
 * The linker sends the calls of the libraries through this file (faults.cmake, --wrap).
 */
#include "test_faults.h"

/* ------------------------------------------------------------------------------------ faults */

struct memory_faults memory;

struct io_faults io;
int mapping; /* the model is loaded with its files mapped */

static int no_memory(void) {
    const size_t n = ++memory.allocations;
    return n == memory.failing || (memory.all_from && n >= memory.all_from);
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);

void *__wrap_malloc(size_t bytes) { return no_memory() ? NULL : __real_malloc(bytes); }
void *__wrap_calloc(size_t count, size_t bytes) {
    return no_memory() ? NULL : __real_calloc(count, bytes);
}
void *__wrap_realloc(void *old, size_t bytes) {
    return no_memory() ? NULL : __real_realloc(old, bytes);
}
void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    return no_memory() ? NULL : __real_aligned_alloc(alignment, bytes);
}

/* 1 and errno if this call is to fail. `slow`: it may be interrupted. */
static int refused(int slow) {
    static int turn;
    if (io.interrupt && slow && (turn = !turn)) {
        errno = EINTR;
        return 1;
    }
    if (++io.calls != io.failing)
        return 0;
    errno = io.code;
    return 1;
}

static int wrapped_open(int (*real)(const char *, int, ...), const char *path, int flags) {
    return refused(1) ? -1 : real(path, flags);
}

static int wrapped_fstat(int (*real)(int, struct stat *), int fd, struct stat *st) {
    if (refused(0))
        return -1;
    int result = real(fd, st);
    if (result == 0)
        st->st_size += io.more;
    return result;
}

static ssize_t wrapped_pread(ssize_t (*real)(int, void *, size_t, off_t), int fd, void *to,
                             size_t bytes, off_t offset) {
    if (refused(1))
        return -1;
    if (io.cut_path && ++io.reads == io.cut_at)
        assert_int_equal(truncate(io.cut_path, io.cut_bytes), 0);
    return real(fd, to, io.shortest && bytes > io.shortest ? io.shortest : bytes, offset);
}

/* The names that 64-bit file offsets give them, and the plain ones. */
#define WRAP(suffix)                                                                               \
    int __real_open##suffix(const char *path, int flags, ...);                                     \
    int __wrap_open##suffix(const char *path, int flags, ...);                                     \
    int __wrap_open##suffix(const char *path, int flags, ...) {                                    \
        return wrapped_open(__real_open##suffix, path, flags);                                     \
    }                                                                                              \
    int __real_fstat##suffix(int fd, struct stat *st);                                             \
    int __wrap_fstat##suffix(int fd, struct stat *st);                                             \
    int __wrap_fstat##suffix(int fd, struct stat *st) {                                            \
        return wrapped_fstat(__real_fstat##suffix, fd, st);                                        \
    }                                                                                              \
    ssize_t __real_pread##suffix(int fd, void *to, size_t bytes, off_t offset);                    \
    ssize_t __wrap_pread##suffix(int fd, void *to, size_t bytes, off_t offset);                    \
    ssize_t __wrap_pread##suffix(int fd, void *to, size_t bytes, off_t offset) {                   \
        return wrapped_pread(__real_pread##suffix, fd, to, bytes, offset);                         \
    }
WRAP()
WRAP(64)

#define WRAP_MAP(suffix)                                                                           \
    void *__real_mmap##suffix(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);  \
    void *__wrap_mmap##suffix(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);  \
    void *__wrap_mmap##suffix(void *at, size_t bytes, int prot, int flags, int fd, off_t offset) { \
        if (fd >= 0 && io.no_maps) {                                                               \
            errno = ENODEV;                                                                        \
            return MAP_FAILED;                                                                     \
        }                                                                                          \
        io.maps += fd >= 0;                                                                        \
        return __real_mmap##suffix(at, bytes, prot, flags, fd, offset);                            \
    }
WRAP_MAP()
WRAP_MAP(64)

int __real_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes);

int __wrap_munmap(void *at, size_t bytes) {
    if (io.maps) /* stacks of threads are unmapped elsewhere */
        io.maps--;
    return __real_munmap(at, bytes);
}

void no_faults(void) {
    const size_t maps = io.maps;
    memset(&memory, 0, sizeof memory);
    memset(&io, 0, sizeof io);
    io.maps = maps;
}

/* ------------------------------------------------------------------------------------- calls */

static const char vocabulary[] = "{\"<pad>\":0,\"<s>\":1,\"</s>\":2,\"<unk>\":3,\"a\":4,\"b\":5}";

void good_files(const files *f) {
    builder b = {.state = 5};
    files_config(f, "marian", V, D, 2, FFN,
                 ",\"eos_token_id\":[2],\"decoder_start_token_id\":1,\"pad_token_id\":0");
    files_text(f, "generation_config.json", "{\"num_beams\":2,\"bad_words_ids\":[[3],[4,5]]}");
    files_text(f, "tokenizer_config.json",
               "{\"tokenizer_class\":\"isobit-characters\",\"split_words\":true}");
    files_text(f, "vocab.json", vocabulary);
    builder_model(&b, V, D, FFN, 1);
    builder_write(&b, f);
}

static const uint32_t sources[] = {9, 7, 3, 2, 5, 6, 2}, targets[] = {5, 6, 2, 7};
static const size_t lengths[] = {4, 3}, target_lengths[] = {2, 2};

iso_status ask_generate(answer *a, const iso_model *model, const iso_context *context,
                        iso_error *error) {
    const iso_generate_options o = {
        .size = sizeof o, .beams = 3, .hypotheses = 2, .max_length = 9, .attention = 1};
    iso_generation *const untouched = (iso_generation *)(void *)a, *g = untouched;
    iso_status status = iso_generate(&g, model, sources, lengths, 2, &o, context, error);
    if (status) {
        assert_ptr_equal(g, untouched);
        return status;
    }
    a->count = 0;
    for (size_t i = 0; i < g->count; i++)
        for (size_t t = 0; t < g->best[i].length; t++)
            a->ids[a->count++] = g->best[i].ids[t];
    iso_generation_free(g);
    return ISOBIT_OK;
}

iso_status ask_score(answer *a, const iso_model *model, iso_error *error) {
    return iso_score_f32(a->scores, model, sources, lengths, targets, target_lengths, 2, NULL,
                         error);
}

void ask(answer *a, const iso_model *model) {
    iso_error error = {0};
    memset(a, 0, sizeof *a);
    assert_int_equal(ask_generate(a, model, NULL, &error), ISOBIT_OK);
    assert_int_equal(ask_score(a, model, &error), ISOBIT_OK);
    assert_int_equal(iso_logits_f32(a->logits, model, sources, 4, targets, 3, 0, NULL, &error),
                     ISOBIT_OK);
}

iso_status load(iso_model **model, const files *f, iso_error *error) {
    iso_model *const untouched = (iso_model *)(void *)error;
    *model = untouched;
    *error = (iso_error){0};
    const iso_load_options options = {.size = sizeof options, .map = mapping};
    iso_status status = iso_model_load(model, f->directory, &options, NULL, error);
    if (status) {
        assert_ptr_equal(*model, untouched);
        assert_int_equal(error->status, status);
        assert_true(error->message[0]);
        *model = NULL;
    }
    return status;
}

void same(const answer *expected, const files *f) {
    iso_error error;
    iso_model *model;
    answer got;
    no_faults();
    assert_int_equal(load(&model, f, &error), ISOBIT_OK);
    ask(&got, model);
    assert_memory_equal(&got, expected, sizeof got);
    iso_model_free(model);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_json_without_memory),
        cmocka_unit_test(test_config_without_memory),
        cmocka_unit_test(test_lists_without_memory),
        cmocka_unit_test(test_no_memory_for_weights),
        cmocka_unit_test(test_no_memory_for_a_weight),
        cmocka_unit_test(test_models_fail),
        cmocka_unit_test(test_no_memory_for_a_weight_of_models),
        cmocka_unit_test(test_weights_too_large),
        cmocka_unit_test(test_system_calls_fail),
        cmocka_unit_test(test_short_reads),
        cmocka_unit_test(test_files_change),
        cmocka_unit_test(test_no_regular_files),
        cmocka_unit_test(test_mapped),
        cmocka_unit_test(test_dense_faults),
        cmocka_unit_test(test_beyond_4_gib),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
