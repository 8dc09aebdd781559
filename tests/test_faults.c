/* SPDX-License-Identifier: MIT
 *
 * What the system may refuse: each allocation in turn, each system call on a file, reads that are
 * short or interrupted, files that change while they are read, things that are no files. A call
 * says so with its code, leaves the caller's pointers alone and loses nothing (the leak checker of
 * the sanitizer build watches), and afterwards everything works and gives the bits it gave before.
 * The linker sends the calls of the libraries through this file (faults.cmake, --wrap).
 */
#include "model/internal.h"
#include "model_files.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

/* ------------------------------------------------------------------------------------ faults */

static struct {
    size_t allocations, failing; /* the failing one counts from 1; 0: none */
    size_t all_from;             /* from this one on all fail; 0: none */
} memory;

static struct {
    size_t calls, failing; /* as above: open, fstat, pread */
    int code;              /* errno of the failing one */
    int interrupt;         /* every second call is interrupted first */
    size_t shortest;       /* no read gives more bytes; 0: no limit */
    off_t more;            /* fstat claims so many bytes more */
    const char *cut_path;  /* is cut to cut_bytes at the read number cut_at */
    off_t cut_bytes;
    size_t reads, cut_at;
    int no_maps; /* no file can be mapped */
    size_t maps; /* that are there now */
} io;

static int mapping; /* the model is loaded with its files mapped */

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

static void no_faults(void) {
    const size_t maps = io.maps;
    memset(&memory, 0, sizeof memory);
    memset(&io, 0, sizeof io);
    io.maps = maps;
}

/* ------------------------------------------------------------------------------------- calls */

enum { V = 11, D = 8, FFN = 12 };

static const char vocabulary[] = "{\"<pad>\":0,\"<s>\":1,\"</s>\":2,\"<unk>\":3,\"a\":4,\"b\":5}";

static void good_files(const files *f) {
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

/* What a model says: equal models give equal bits. */
typedef struct answer {
    float logits[3 * V], scores[4];
    uint32_t ids[64];
    size_t count;
} answer;

static const uint32_t sources[] = {9, 7, 3, 2, 5, 6, 2}, targets[] = {5, 6, 2, 7};
static const size_t lengths[] = {4, 3}, target_lengths[] = {2, 2};

static iso_status ask_generate(answer *a, const iso_model *model, const iso_context *context,
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

static iso_status ask_score(answer *a, const iso_model *model, iso_error *error) {
    return iso_score_f32(a->scores, model, sources, lengths, targets, target_lengths, 2, NULL,
                         error);
}

static void ask(answer *a, const iso_model *model) {
    iso_error error = {0};
    memset(a, 0, sizeof *a);
    assert_int_equal(ask_generate(a, model, NULL, &error), ISOBIT_OK);
    assert_int_equal(ask_score(a, model, &error), ISOBIT_OK);
    assert_int_equal(iso_logits_f32(a->logits, model, sources, 4, targets, 3, 0, NULL, &error),
                     ISOBIT_OK);
}

static iso_status load(iso_model **model, const files *f, iso_error *error) {
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

static void same(const answer *expected, const files *f) {
    iso_error error;
    iso_model *model;
    answer got;
    no_faults();
    assert_int_equal(load(&model, f, &error), ISOBIT_OK);
    ask(&got, model);
    assert_memory_equal(&got, expected, sizeof got);
    iso_model_free(model);
}

/* -------------------------------------------------------------------------------- allocations */

enum { LOAD, TOKENIZER, GENERATE, SCORE, POOL, INFO, CALLS };
static const char *const call_names[] = {"model load", "tokenizer load", "generate",
                                         "score",      "pool",           "info"};

static iso_status call_once(int call, const files *f, iso_model *model, answer *a) {
    iso_error error = {0};
    iso_status status = ISOBIT_OK;
    if (call == LOAD) {
        iso_model *made;
        status = load(&made, f, &error);
        iso_model_free(made);
    } else if (call == TOKENIZER) {
        iso_tokenizer *const untouched = (iso_tokenizer *)(void *)a, *t = untouched;
        status = iso_tokenizer_load(&t, f->directory, &error);
        if (status) {
            assert_ptr_equal(t, untouched);
            assert_int_equal(error.status, status);
        } else {
            iso_tokenizer_free(t);
        }
    } else if (call == GENERATE) {
        status = ask_generate(a, model, NULL, &error);
        assert_int_equal(error.status, status);
    } else if (call == SCORE) {
        status = ask_score(a, model, &error);
        assert_int_equal(error.status, status);
    } else if (call == POOL) {
        iso_pool *const untouched = (iso_pool *)(void *)a, *pool = untouched;
        status = iso_pool_create(&pool, 3);
        if (status) {
            assert_ptr_equal(pool, untouched);
        } else {
            /* A pool of fewer threads than asked for is a pool. */
            const iso_context context = {.size = sizeof context,
                                         .executor = iso_pool_executor(pool)};
            const size_t from = memory.failing, all = memory.all_from;
            memory.failing = memory.all_from = 0;
            assert_int_equal(ask_generate(a, model, &context, &error), ISOBIT_OK);
            memory.failing = from;
            memory.all_from = all;
            iso_pool_destroy(pool);
        }
    } else {
        static char text[65536];
        status = iso_info_json(text, sizeof text, NULL);
    }
    return status;
}

static void test_no_memory(void **state) {
    files f;
    iso_model *model;
    iso_error error;
    answer good, got;
    files_make(&f);
    good_files(&f);
    assert_int_equal(load(&model, &f, &error), ISOBIT_OK);
    ask(&good, model);
    for (int call = 0; call < CALLS; call++)
        for (int rest = 0; rest < 2; rest++) { /* one fails; or that one and all after it */
            size_t failures = 0;
            iso_status status = ISOBIT_E_NOMEM;
            for (size_t k = 1; k == 1 || memory.allocations >= k - 1; k++) {
                no_faults();
                *(rest ? &memory.all_from : &memory.failing) = k;
                status = call_once(call, &f, model, &got);
                memory.failing = memory.all_from = 0;
                const size_t made = memory.allocations;
                failures += status != ISOBIT_OK;
                if (status && status != ISOBIT_E_NOMEM)
                    fail_msg("%s, allocation %zu fails: status %d (%s)", call_names[call], k,
                             (int)status, iso_strerror(status));
                if (k > made) {
                    assert_int_equal(status, ISOBIT_OK);
                    break;
                }
                assert_true(k < 10000);
            }
            assert_int_equal(status, ISOBIT_OK);
            print_message("%s: %zu failures\n", call_names[call], failures);
            assert_true(failures > 0 || call == POOL || call == INFO);
            ask(&got, model);
            assert_memory_equal(&got, &good, sizeof got);
        }
    iso_model_free(model);
    same(&good, &f);
    files_remove(&f);
    (void)state;
}

/*
 * A JSON parser without memory. jansson fails then without a word, or, when a string cannot grow
 * (2.14 drops the byte), with any: so only the first kind is looked at, and its other allocations
 * are not made to fail one by one.
 */
static void *no_memory_at_all(size_t bytes) {
    (void)bytes;
    return NULL;
}

static void test_json_without_memory(void **state) {
    files f;
    iso_error error;
    iso_model *model;
    iso_tokenizer *t = NULL;
    no_faults();
    files_make(&f);
    good_files(&f);
    json_malloc_t before;
    json_free_t before_free;
    json_get_alloc_funcs(&before, &before_free);
    json_set_alloc_funcs(no_memory_at_all, free);
    iso_status status = load(&model, &f, &error);
    iso_status tokenizer_status = iso_tokenizer_load(&t, f.directory, &error);
    json_set_alloc_funcs(before, before_free); /* not malloc, which is that of this file here */
    assert_int_equal(status, ISOBIT_E_NOMEM);
    assert_int_equal(tokenizer_status, ISOBIT_E_NOMEM);
    assert_null(t);
    files_remove(&f);
    (void)state;
}

/* ------------------------------------------------------------------------------------ weights */

/* The memory of all weights is asked for at once, and that it is not there has a sentence. */
static void test_no_memory_for_weights(void **state) {
    files f;
    iso_error error;
    iso_model *model;
    size_t said = 0;
    files_make(&f);
    good_files(&f);
    for (size_t k = 1;; k++) {
        no_faults();
        memory.failing = k;
        const iso_status status = load(&model, &f, &error);
        memory.failing = 0;
        iso_model_free(model);
        said += status && !strcmp(error.message, "out of memory for the weights");
        if (k > memory.allocations)
            break;
    }
    assert_int_equal(said, 1);
    files_remove(&f);
    (void)state;
}

/*
 * Without that memory each weight is asked for by itself. Nobody does this, but weights check what
 * they get all the same: the sizes of the two passes might come to differ.
 */
static void test_no_memory_for_a_weight(void **state) {
    files f;
    iso_error error = {0};
    model_checkpoint checkpoint = {.file.fd = -1};
    iso_model model = {.arena = {0}};
    model_layer layers[2];
    const iso_context context = {.size = sizeof context};
    model_source source = {.checkpoint = &checkpoint,
                           .prefix = "model.",
                           .arena = &model.arena,
                           .context = &context,
                           .error = &error};
    builder b = {.state = 5};
    no_faults();
    files_make(&f);
    good_files(&f);
    files_config(&f, "marian", V, D, 2, FFN,
                 ",\"eos_token_id\":[2],\"decoder_start_token_id\":1,\"pad_token_id\":0,"
                 "\"max_position_embeddings\":9");
    builder_model(&b, V, D, FFN, 1);
    /* One table of positions is there, the other one is computed. */
    builder_tensor(&b, "model.decoder.embed_positions.weight", 9, D, 0, 1);
    builder_write(&b, &f);
    memset(layers, 0, sizeof layers);
    model.encoder = (model_stack){.layers = 1,
                                  .H = 2,
                                  .Hk = 2,
                                  .dh = D / 2,
                                  .qkv = 3 * D,
                                  .f = FFN,
                                  .V = V,
                                  .layer = &layers[0]};
    model.decoder = model.encoder;
    model.decoder.layer = &layers[1];
    assert_int_equal(model_config_read(&model.config, &model.arena, f.directory, &error),
                     ISOBIT_OK);
    assert_int_equal(
        model_checkpoint_open(&checkpoint, f.directory, "model.safetensors", 100000, &error),
        ISOBIT_OK);
    assert_int_equal(model_take_all(&model, &source), ISOBIT_OK);
    source.load = 1;
    for (size_t k = 1;; k++) {
        memory.allocations = 0, memory.failing = k;
        source.take_count = 0;
        iso_status status = model_take_all(&model, &source);
        if (!status)
            status = model_source_finish(&source);
        memory.failing = 0;
        if (k > memory.allocations) {
            assert_int_equal(status, ISOBIT_OK);
            assert_true(k > 30);
            break;
        }
        if (status != ISOBIT_E_NOMEM)
            fail_msg("weight %zu: status %d (%s)", k, (int)status, error.message);
    }
    model_arena_free(&source.scratch);
    model_arena_free(&model.arena);
    model_checkpoint_close(&checkpoint);
    files_remove(&f);
    (void)state;
}

/* Sizes that no file can have: a sum or product of them must not begin again at 0. */
static void test_weights_too_large(void **state) {
    static const struct {
        size_t n, k, before;
    } sums[] = {{SIZE_MAX / 2 + 1, 2, 0}, /* n k */
                {SIZE_MAX / 4 + 1, 1, 0}, /* bytes */
                {SIZE_MAX / 4, 1, 0},     /* bytes, rounded up */
                {16, 1, SIZE_MAX - 63}};  /* and those of other weights */
    static const char *const names[] = {"a", "a"};
    iso_error error = {0};
    model_tensor t = {.name = "a", .name_bytes = 1, .rank = 1, .shape = {SIZE_MAX / 2 + 1}};
    const model_checkpoint checkpoint = {.file.fd = -1, .header = {&t, 1}};
    model_source source = {.checkpoint = &checkpoint, .error = &error};
    const float *data;
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        source.bytes = sums[i].before;
        assert_int_equal(model_source_plan(&source, sums[i].n, sums[i].k), ISOBIT_E_OVERFLOW);
    }
    source.bytes = 0;
    assert_int_equal(model_take_vector(&source, &data, names, 2, SIZE_MAX / 2 + 1, 0),
                     ISOBIT_E_OVERFLOW);
    model_arena_free(&source.scratch);
    (void)state;
}

/* -------------------------------------------------------------------------------------- files */

static void test_system_calls_fail(void **state) {
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

static void test_short_reads(void **state) {
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
static void test_files_change(void **state) {
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
    good_files(&f);
    same(&good, &f);
    files_remove(&f);
    (void)state;
}

/* Each of these would block, never end, or have no size. */
static void test_no_regular_files(void **state) {
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
static void test_beyond_4_gib(void **state) {
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
static void test_mapped(void **state) {
    files f;
    iso_error error;
    iso_model *model;
    answer good, got;
    no_faults();
    files_make(&f);
    good_files(&f);
    assert_int_equal(load(&model, &f, &error), ISOBIT_OK);
    ask(&good, model);
    iso_model_free(model);
    assert_int_equal(io.maps, 0);
    mapping = 1;
    for (int none = 0; none < 2; none++) {
        no_faults();
        io.no_maps = none;
        assert_int_equal(load(&model, &f, &error), ISOBIT_OK);
        assert_int_equal(io.maps, !none);
        ask(&got, model);
        assert_memory_equal(&got, &good, sizeof got);
        iso_model_free(model);
        assert_int_equal(io.maps, 0);
    }
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_json_without_memory),
        cmocka_unit_test(test_no_memory_for_weights),
        cmocka_unit_test(test_no_memory_for_a_weight),
        cmocka_unit_test(test_weights_too_large),
        cmocka_unit_test(test_system_calls_fail),
        cmocka_unit_test(test_short_reads),
        cmocka_unit_test(test_files_change),
        cmocka_unit_test(test_no_regular_files),
        cmocka_unit_test(test_mapped),
        cmocka_unit_test(test_beyond_4_gib),
    };
    return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
