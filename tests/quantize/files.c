/* SPDX-License-Identifier: MIT
 *
 * What is at the place of the folder, what a killed process has left, what is copied, and calls
 * that fail: nothing stays but what was there.
 */
#include "test_quantize.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------------------- calls that fail */

struct calls calls[CALL_KINDS];

static int fails(int kind) { return ++calls[kind].count == calls[kind].failing; }

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes) { return fails(CALL_MEMORY) ? NULL : __real_malloc(bytes); }

void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    return fails(CALL_MEMORY) ? NULL : __real_aligned_alloc(alignment, bytes);
}

/* 64-bit file offsets give some calls another name. */
#define WRAP(kind, type, name, code, parameters, arguments)                                        \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters {                                                                \
        if (!fails(kind))                                                                          \
            return __real_##name arguments;                                                        \
        errno = code;                                                                              \
        return -1;                                                                                 \
    }
WRAP(CALL_READ, ssize_t, pread, EIO, (int fd, void *to, size_t n, off_t at), (fd, to, n, at))
WRAP(CALL_READ, ssize_t, pread64, EIO, (int fd, void *to, size_t n, off_t at), (fd, to, n, at))
WRAP(CALL_READ, ssize_t, read, EIO, (int fd, void *to, size_t n), (fd, to, n))
WRAP(CALL_WRITE, ssize_t, pwrite, ENOSPC, (int fd, const void *from, size_t n, off_t at),
     (fd, from, n, at))
WRAP(CALL_WRITE, ssize_t, pwrite64, ENOSPC, (int fd, const void *from, size_t n, off_t at),
     (fd, from, n, at))
/* A disk takes its time, and nobody could see a difference here. */
static int __real_fsync(int fd) {
    (void)fd;
    return 0;
}
WRAP(CALL_SYNC, int, fsync, EIO, (int fd), (fd))
#define WRAP_LIST(name)                                                                            \
    void *__real_##name(void *directory);                                                          \
    void *__wrap_##name(void *directory);                                                          \
    void *__wrap_##name(void *directory) {                                                         \
        if (!fails(CALL_LIST))                                                                     \
            return __real_##name(directory);                                                       \
        errno = EIO;                                                                               \
        return NULL;                                                                               \
    }
WRAP_LIST(readdir)
WRAP_LIST(readdir64)
/* What cannot be brought onto the disk any more is closed all the same. */
int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd) {
    const int result = __real_close(fd);
    if (!fails(CALL_CLOSE))
        return result;
    errno = EIO;
    return -1;
}
WRAP(CALL_NAME, int, rename, EACCES, (const char *a, const char *b), (a, b))
WRAP(CALL_NAME, int, mkdir, EACCES, (const char *path, mode_t mode), (path, mode))
WRAP(CALL_NAME, int, mkdirat, EACCES, (int fd, const char *path, mode_t mode), (fd, path, mode))
/* No program that is started meanwhile gets a file of ours. */
static int open_call(int how) {
    assert_true(how & O_CLOEXEC);
    return CALL_OPEN;
}
WRAP(open_call(how), int, openat, EMFILE, (int fd, const char *path, int how, mode_t mode),
     (fd, path, how, mode))
WRAP(open_call(how), int, openat64, EMFILE, (int fd, const char *path, int how, mode_t mode),
     (fd, path, how, mode))

static size_t open_files(void) {
    DIR *directory = opendir("/proc/self/fd");
    size_t count = 0;
    while (directory && readdir(directory))
        count++;
    if (directory)
        (void)closedir(directory);
    return count;
}

/* -------------------------------------------------------------------------------- the model */

static const char source[] = ISOBIT_TEST_DATA "/models/paper-alias-bf16";
static const char bin[] = ISOBIT_TEST_DATA "/bin/zip.bin";

static void copy(const char *from, const char *folder, const char *name) {
    char path[400], buffer[4096];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *in = fopen(from, "rb"), *out = fopen(path, "wb");
    assert_true(in && out);
    for (size_t got; (got = fread(buffer, 1, sizeof buffer, in)) > 0;)
        assert_int_equal(fwrite(buffer, 1, got, out), got);
    (void)fclose(in);
    assert_int_equal(fclose(out), 0);
}

static void copy_model(const place *p, const char *weights, const char *name) {
    char path[400];
    (void)snprintf(path, sizeof path, "%s/config.json", source);
    copy(path, p->from.directory, "config.json");
    copy(weights, p->from.directory, name);
}

static void logits(float *to, const char *folder) {
    static const uint32_t ids[] = {7, 11, 5, 2}, target[] = {1, 9, 30};
    iso_error error = {0};
    iso_model *model = NULL;
    if (iso_model_load(&model, folder, NULL, NULL, &error) ||
        iso_logits_f32(to, model, ids, COUNT(ids), target, COUNT(target), 0, NULL, &error))
        fail_msg("%s: %s", folder, error.message);
    iso_model_free(model);
}

/* ------------------------------------------------------------------------- what was there */

void test_places(void **state) {
    place p;
    char inner[300];
    place_make(&p);
    copy_model(&p, bin, "pytorch_model.bin");
    write_file(p.from.directory, "file", "text");

    assert_int_equal(mkdir(p.out, 0755), 0);
    quantize(&p, NULL, NULL); /* an empty folder */
    refuses(&p, NULL, ISOBIT_E_IO, "exists, and is not empty");
    remove_tree(p.out);
    assert_int_equal(mkdir(p.out, 0755), 0);
    write_file(p.out, ".hidden", "mine");
    refuses(&p, NULL, ISOBIT_E_IO, "exists, and is not empty");
    calls[CALL_OPEN] = (struct calls){0, 1};
    refuses(&p, NULL, ISOBIT_E_IO, "cannot be read (errno 24)");
    remove_tree(p.out);
    copy(bin, "/tmp", strrchr(p.out, '/') + 1);
    refuses(&p, NULL, ISOBIT_E_IO, "exists, and is no folder");
    assert_int_equal(unlink(p.out), 0);
    assert_int_equal(symlink("nowhere", p.out), 0);
    refuses(&p, NULL, ISOBIT_E_IO, "exists, and is no folder");
    assert_int_equal(unlink(p.out), 0);
    assert_false(is_there(p.partial));

    place other = p;
    (void)snprintf(other.out, sizeof other.out, "%s/none/out", p.from.directory);
    refuses(&other, NULL, ISOBIT_E_IO, "none/out.partial\" cannot be made");
    /* A name in the folder where the process is. */
    char here[PATH_MAX];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(p.from.directory), 0);
    (void)snprintf(other.out, sizeof other.out, "beside");
    (void)snprintf(other.partial, sizeof other.partial, "beside.partial");
    quantize(&other, NULL, NULL);
    remove_tree("beside");
    assert_int_equal(chdir(here), 0);
    /* Slashes at the end, and a folder in the model's own. */
    (void)snprintf(other.out, sizeof other.out, "%s/out//", p.from.directory);
    (void)snprintf(inner, sizeof inner, "%s/out/model.safetensors", p.from.directory);
    (void)snprintf(other.partial, sizeof other.partial, "%s/out.partial", p.from.directory);
    quantize(&other, NULL, NULL);
    assert_true(is_there(inner));
    place_remove(&p);
    (void)state;
}

/* What a killed process leaves, what another one writes, and what is somebody's. */
void test_leftovers(void **state) {
    place p;
    char inner[300];
    place_make(&p);
    copy_model(&p, bin, "pytorch_model.bin");
    assert_int_equal(mkdir(p.partial, 0755), 0);
    quantize(&p, NULL, NULL); /* killed before it wrote anything */
    remove_tree(p.out);

    assert_int_equal(mkdir(p.partial, 0755), 0);
    write_file(p.partial, "isobit-incomplete", "");
    write_file(p.partial, "model.safetensors", "half of it");
    (void)snprintf(inner, sizeof inner, "%s/1_Pooling", p.partial);
    assert_int_equal(mkdir(inner, 0755), 0);
    write_file(inner, "config.json", "{");
    const int fd = open(p.partial, O_RDONLY | O_DIRECTORY);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    refuses(&p, NULL, ISOBIT_E_IO, "is being written by another process");
    assert_true(is_there(inner));
    close(fd);
    quantize(&p, NULL, NULL);
    (void)snprintf(inner, sizeof inner, "%s/1_Pooling", p.out);
    assert_false(is_there(inner));
    (void)snprintf(inner, sizeof inner, "%s/isobit-incomplete", p.out);
    assert_false(is_there(inner));
    remove_tree(p.out);

    assert_int_equal(mkdir(p.partial, 0755), 0);
    write_file(p.partial, "letters.txt", "mine");
    refuses(&p, NULL, ISOBIT_E_IO, "exists, and isobit has not left it");
    (void)snprintf(inner, sizeof inner, "%s/letters.txt", p.partial);
    assert_true(is_there(inner));
    remove_tree(p.partial);
    assert_int_equal(symlink(p.from.directory, p.partial), 0);
    refuses(&p, NULL, ISOBIT_E_IO, "cannot be opened");
    assert_int_equal(unlink(p.partial), 0);
    assert_false(is_there(p.out));
    place_remove(&p);
    (void)state;
}

/* -------------------------------------------------------------------------- what is copied */

/* Views with strides and names for one tensor, as torch.save has them; shards; other files. */
void test_copies(void **state) {
    static const char *const copied[] = {"config.json", "vocab.json", "README.md",
                                         "1_Pooling/config.json", "spiece.model"};
    static const char *const others[] = {
        "pytorch_model.bin",        "model.onnx", "tf_model.h5", ".git", ".gitattributes", "onnx",
        "consolidated.safetensors", "nothing"};
    static float wanted[3 * 64], got[3 * 64];
    place p;
    char inner[300];
    place_make(&p);
    copy_model(&p, bin, "pytorch_model.bin");
    for (size_t i = 1; i < COUNT(copied); i++)
        if (!strchr(copied[i], '/'))
            write_file(p.from.directory, copied[i], copied[i]);
    write_file(p.from.directory, "model.onnx", "");
    write_file(p.from.directory, "tf_model.h5", "");
    write_file(p.from.directory, ".gitattributes", "");
    write_file(p.from.directory, "consolidated.safetensors", "");
    (void)snprintf(inner, sizeof inner, "%s/nothing", p.from.directory);
    assert_int_equal(symlink("nowhere", inner), 0);
    static const char *const folders[] = {"1_Pooling", ".git", "onnx"};
    for (size_t i = 0; i < COUNT(folders); i++) {
        (void)snprintf(inner, sizeof inner, "%s/%s", p.from.directory, folders[i]);
        assert_int_equal(mkdir(inner, 0755), 0);
        write_file(inner, "config.json", "{}");
    }
    const iso_quantize_options f16 = {.size = sizeof f16, .type = ISOBIT_QUANTIZE_F16};
    const iso_quantize_options bf16 = {.size = sizeof bf16, .type = ISOBIT_QUANTIZE_BF16};
    logits(wanted, p.from.directory);
    quantize(&p, &bf16, NULL); /* which it is already */
    logits(got, p.out);
    assert_memory_equal(got, wanted, sizeof got);
    for (size_t i = 0; i < COUNT(copied); i++) {
        (void)snprintf(inner, sizeof inner, "%s/%s", p.out, copied[i]);
        if (!is_there(inner))
            fail_msg("%s was not copied", copied[i]);
    }
    for (size_t i = 0; i < COUNT(others); i++) {
        (void)snprintf(inner, sizeof inner, "%s/%s", p.out, others[i]);
        if (is_there(inner))
            fail_msg("%s was copied", others[i]);
    }
    /* From views of the .bin file and from the copy: the same numbers. */
    stored copy = stored_read(p.out);
    stored_tensor tied;
    assert_true(
        stored_find(&copy, "shared.weight", &tied)); /* of two names for one tensor, the one */
    assert_false(stored_find(&copy, "lm_head.weight", &tied));
    remove_tree(p.out);
    quantize(&p, &f16, NULL);
    stored other = stored_read(p.out);
    const char *name;
    json_t *entry;
    json_object_foreach(copy.header, name, entry) {
        stored_tensor a, b;
        if (strcmp(name, "__metadata__") == 0)
            continue;
        assert_true(stored_find(&copy, name, &a) && stored_find(&other, name, &b));
        for (size_t i = 0; i < a.count; i++) {
            const double x = stored_number(&a, i), y = stored_number(&b, i);
            assert_true(strcmp(b.dtype, "F16") == 0 ? y == rounded(x, 11, -14) : x == y);
        }
    }
    stored_free(&other);
    stored_free(&copy);
    remove_tree(p.out);

    /* A file with an index. */
    static char text[100000] = "{\"weight_map\":{";
    (void)snprintf(inner, sizeof inner, "%s/model.safetensors", source);
    stored whole = stored_read(source);
    copy_model(&p, inner, "model-00001-of-00001.safetensors");
    json_object_foreach(whole.header, name, entry) {
        const size_t used = strlen(text);
        if (strcmp(name, "__metadata__") != 0)
            (void)snprintf(text + used, sizeof text - used,
                           "%s\"%s\":\"model-00001-of-00001.safetensors\"",
                           text[used - 1] == '{' ? "" : ",", name);
    }
    (void)snprintf(text + strlen(text), sizeof text - strlen(text), "}}");
    write_file(p.from.directory, "model.safetensors.index.json", text);
    stored_free(&whole);
    quantize(&p, &f16, NULL);
    (void)snprintf(inner, sizeof inner, "%s/model.safetensors.index.json", p.out);
    assert_false(is_there(inner));
    logits(got, p.out);
    remove_tree(p.out);
    place_remove(&p);
    (void)state;
}

/* ------------------------------------------------------------------------------- failures */

typedef struct stopping {
    size_t left;
    char config[200]; /* which is written after all weights */
    int is_written, is_all;
} stopping;

static int stop_at(void *user, uint64_t done, uint64_t total) {
    stopping *s = user;
    assert_true(done <= total);
    s->is_written = is_there(s->config);
    s->is_all = done == total;
    return --s->left == 0;
}

/* Whenever the caller stops: nothing stays. */
void test_cancel(void **state) {
    place p;
    place_make(&p);
    copy_model(&p, bin, "pytorch_model.bin");
    const size_t files_before = open_files();
    size_t stops = 0;
    for (size_t at = 1;; at++, stops++) {
        stopping s = {.left = at};
        const iso_quantize_options options = {
            .size = sizeof options, .type = ISOBIT_QUANTIZE_F16, .progress = stop_at, .user = &s};
        (void)snprintf(s.config, sizeof s.config, "%s/config.json", p.partial);
        iso_error error = {0};
        const iso_status status =
            iso_model_quantize(p.from.directory, p.out, &options, NULL, &error);
        if (s.left) {
            assert_int_equal(status, ISOBIT_OK);
            assert_true(s.is_written && s.is_all);
            break;
        }
        assert_int_equal(status, ISOBIT_E_CANCELLED);
        assert_false(is_there(p.out) || is_there(p.partial));
    }
    /* Once for each tensor, which are small, and before the folder gets its name. */
    stored made = stored_read(p.out);
    const size_t tensors = json_object_size(made.header) - 1;
    assert_int_equal(stops, tensors + 1);
    stored_free(&made);
    assert_int_equal(open_files(), files_before);
    place_remove(&p);
    (void)state;
}

/* Somebody writes to the file that is read. */
static int lengthen(void *user, uint64_t done, uint64_t total) {
    const char *path = user;
    FILE *file = fopen(path, "ab");
    assert_non_null(file);
    (void)fputc(0, file);
    assert_int_equal(fclose(file), 0);
    (void)done, (void)total;
    return 0;
}

void test_changing_file(void **state) {
    place p;
    char path[300];
    place_make(&p);
    copy_model(&p, bin, "pytorch_model.bin");
    (void)snprintf(path, sizeof path, "%s/pytorch_model.bin", p.from.directory);
    const iso_quantize_options options = {
        .size = sizeof options, .progress = lengthen, .user = path};
    refuses(&p, &options, ISOBIT_E_IO, "the file changed while it was read");
    assert_false(is_there(p.out) || is_there(p.partial));
    place_remove(&p);
    (void)state;
}

/* Each call fails once: an error, and no folder. */
static void faults(size_t type) {
    static const iso_status expected[] = {ISOBIT_E_NOMEM, ISOBIT_E_IO, ISOBIT_E_IO, ISOBIT_E_IO,
                                          ISOBIT_E_IO,    ISOBIT_E_IO, ISOBIT_E_IO, ISOBIT_E_IO};
    /* Files are the marker, two of the folder and one in a folder in it; two folders, and that
     * around. */
    static const size_t least[] = {40, 40, 40, 7, 2, 3, 12, 10};
    place p;
    char inner[300];
    place_make(&p);
    copy_model(&p, bin, "pytorch_model.bin");
    (void)snprintf(inner, sizeof inner, "%s/1_Pooling", p.from.directory);
    assert_int_equal(mkdir(inner, 0755), 0);
    write_file(inner, "config.json", "{}");
    const iso_quantize_options options = {.size = sizeof options, .type = type};
    const size_t files_before = open_files();
    /* Folders and files are the same, whatever the type. */
    const int kinds = type == ISOBIT_QUANTIZE_F16 ? CALL_KINDS : CALL_SYNC;
    for (int kind = 0; kind < kinds; kind++) {
        size_t tries = 0, wishes = 0;
        for (size_t failing = 1;; failing++, tries++) {
            iso_error error = {0};
            calls[kind] = (struct calls){0, failing};
            const iso_status status =
                iso_model_quantize(p.from.directory, p.out, &options, NULL, &error);
            const int reached = calls[kind].count >= failing;
            calls[kind].failing = 0;
            if (status == ISOBIT_OK) { /* the last fsync, that of the folder around, is a wish */
                assert_true(is_there(p.out) && !is_there(p.partial));
                remove_tree(p.out);
                if (!reached)
                    break;
                wishes++;
                continue;
            }
            if (!reached || status != expected[kind])
                fail_msg("call %zu of kind %d: %d, %s", failing, kind, (int)status, error.message);
            const char *code = strstr(error.message, "(errno ");
            if (kind == CALL_OPEN && code)
                assert_int_equal(strtol(code + 7, NULL, 10), EMFILE);
            if (is_there(p.out) || (is_there(p.partial) && kind != CALL_OPEN && kind != CALL_LIST))
                fail_msg("call %zu of kind %d: a folder is left", failing, kind);
            remove_tree(p.partial);
        }
        assert_true(tries >= least[kind]);
        /* The four files must be closed, of the others nothing was written. */
        assert_int_equal(wishes, kind == CALL_SYNC ? 1 : kind == CALL_CLOSE ? tries - 4 : 0);
        assert_int_equal(open_files(), files_before);
    }
    place_remove(&p);
}

void test_faults(void **state) {
    faults(ISOBIT_QUANTIZE_F16);
    faults(ISOBIT_QUANTIZE_INT8);
    faults(ISOBIT_QUANTIZE_INT4);
    (void)state;
}
