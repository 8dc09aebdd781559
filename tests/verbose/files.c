/* SPDX-License-Identifier: MIT
 *
 * Errors, the files that lines go to, threads and processes.
 */
#include "test_verbose.h"

static int refused_calls(void) {
    iso_context x = scalar();
    const iso_gemm_options g = {.size = 3, .act = ISOBIT_ACT_TANH, .bias = in};
    int bad = iso_gemm_f32(out, 16, NULL, 16, in, 16, 16, 16, 16, NULL, &x) != ISOBIT_E_NULL;
    bad |= iso_gemm_f32(out, 16, in, 16, in, 16, 16, 16, 16, &g, &x) != ISOBIT_E_SIZE;
    bad |= iso_linear_f32(out, 16, in, 16, NULL, 16, NULL, &x) != ISOBIT_E_NULL;
    bad |= iso_attention_f32(out, in, in, in, NULL, NULL, &x) != ISOBIT_E_NULL;
    bad |= iso_softmax_f32(out, 2, in, 4, 2, 3, NULL, &x) != ISOBIT_E_LD;
    x.isa = (const iso_isa *)(const void *)in; /* not one of ours */
    bad |= iso_axpby_f32(out, 4, in, 4, 2, 3, 1, 1, &x) != ISOBIT_E_ISA;
    x.size = 8;
    bad |= iso_axpby_f32(out, 4, in, 4, 2, 3, 1, 1, &x) != ISOBIT_E_SIZE;
    return bad;
}

void refused_calls_are_told(void **state) {
    (void)state;
    static const char *const expected[] = {
        "gemm_f32,scalar,m16n16k16:nn:lda16:ldb16:ldc16,thr1,error,a pointer that is read or "
        "written is NULL",
        "gemm_f32,scalar,m16n16k16:nn:lda16:ldb16:ldc16,thr1,error,the size member of an options "
        "struct is not one that this version knows",
        "linear_f32,scalar,m16n0k0:ldx16:ldy16,thr1,error,a pointer that is read or written is "
        "NULL",
        "attention_f32,scalar,B0H0Sq0Sk0dh0:ldq0:ldk0:ldv0:ldo0,thr1,error,a pointer that is read "
        "or written is NULL",
        "softmax_f32,scalar,rows2n3:ldx4:ldy2,thr1,error,a stride is smaller than the row that it "
        "steps over",
        "axpby_f32,-,rows2n3:ldx4:ldy4:beta,thr-,error,\"no instruction set of that name, or this "
        "machine lacks it\"",
        "axpby_f32,-,rows2n3:ldx4:ldy4:beta,thr-,error,the size member of an options struct is not "
        "one that this version knows",
    };
    for (int level = 1; level <= 2; ++level) {
        char *text = run(level == 1 ? "1" : "2", NULL, refused_calls), *rest = text;
        is_header(next_line(&rest));
        for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); ++i) {
            char line[600];
            snprintf(line, sizeof(line), "iso_verbose,1,exec,%s%s", expected[i],
                     level == 1 ? "" : ",refused");
            const char *got = next_line(&rest);
            assert_non_null(got);
            assert_string_equal(got, line);
        }
        assert_null(next_line(&rest));
        free(text);
    }
}

static int no_isa(void) {
    setenv("ISOBIT_ISA", "mmx", 1);
    return iso_gemv_f32(out, in, 5, in, 3, 4, 0, NULL) != ISOBIT_E_ISA;
}

void wrong_isa_is_told(void **state) {
    (void)state;
    char *text = run("1", NULL, no_isa), *rest = text;
    is_header(next_line(&rest));
    const char *line = next_line(&rest);
    assert_non_null(line);
    assert_string_equal(line, "iso_verbose,1,exec,gemv_f32,-,n3k4:ldw5,thr-,error,\"no "
                              "instruction set of that name, or this machine lacks it\"");
    assert_null(next_line(&rest));
    free(text);
}

/* ----------------------------------------------------------------------------------- the files */

int one_call(void) {
    const iso_context x = scalar();
    return iso_gemv_f32(out, in, 5, in, 3, 4, 0, &x) != ISOBIT_OK;
}
static const char one_line[] = "gemv_f32,scalar,n3k4:ldw5,thr1";

void lines_are_appended_to_a_file(void **state) {
    (void)state;
    FILE *before = fopen(path, "we");
    assert_non_null(before);
    fputs("old\n", before);
    fclose(before);
    for (int i = 0; i < 2; ++i) {
        char *text = run("1", path, one_call);
        assert_string_equal(text, "");
        free(text);
    }
    char *text = read_path(path), *rest = text;
    assert_string_equal(next_line(&rest), "old");
    for (int i = 0; i < 2; ++i) {
        is_header(next_line(&rest));
        is_call(next_line(&rest), one_line, NULL);
    }
    assert_null(next_line(&rest));
    free(text);
    unlink(path);
}

/* Programs that are executed do not inherit it. */
static int closed_on_exec(void) {
    struct stat file, other_file;
    int found = 0;
    if (one_call() || stat(path, &file)) {
        return 1;
    }
    for (int fd = 3; fd < 100; ++fd) {
        if (fstat(fd, &other_file) == 0 && other_file.st_ino == file.st_ino &&
            other_file.st_dev == file.st_dev) {
            const int flags = fcntl(fd, F_GETFD);
            found += flags >= 0 && (flags & FD_CLOEXEC) ? 1 : 1000;
        }
    }
    return found != 1;
}

void the_file_is_closed_on_exec(void **state) {
    (void)state;
    free(run("1", path, closed_on_exec));
    unlink(path);
}

void a_file_that_cannot_be_opened(void **state) {
    (void)state;
    char *text = run("1", "/nonexistent/a,b", one_call), *rest = text;
    const char *line = next_line(&rest);
    assert_non_null(line);
    assert_string_equal(line, "iso_verbose,1,error,cannot open the file of ISOBIT_VERBOSE_FILE; "
                              "the lines go to stderr,\"/nonexistent/a,b\"");
    is_header(next_line(&rest));
    is_call(next_line(&rest), one_line, NULL);
    assert_null(next_line(&rest));
    free(text);
    text = rest = run("1", "", one_call); /* empty counts as none */
    is_header(next_line(&rest));
    is_call(next_line(&rest), one_line, NULL);
    assert_null(next_line(&rest));
    free(text);
}

/* A program that closes all files gets another one with the number of ours. */
static int reused_number(void) {
    char name[64];
    int bad = one_call();
    for (int fd = 3; fd < 100; ++fd) {
        close(fd);
    }
    snprintf(name, sizeof(name), "%s/precious", directory);
    for (int i = 0; i < 20; ++i) {
        bad |= open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) < 0;
    }
    bad |= one_call() || one_call();
    struct stat precious;
    bad |= stat(name, &precious) != 0 || precious.st_size != 0;
    unlink(name);
    return bad;
}

void other_files_get_no_lines(void **state) {
    (void)state;
    char *text = run("1", path, reused_number), *rest = text;
    const char *line = next_line(&rest);
    assert_non_null(line);
    assert_string_equal(line,
                        "iso_verbose,1,error,the program closed the file of ISOBIT_VERBOSE_FILE");
    is_call(next_line(&rest), one_line, NULL);
    is_call(next_line(&rest), one_line, NULL);
    assert_null(next_line(&rest));
    free(text);
    text = rest = read_path(path);
    is_header(next_line(&rest));
    is_call(next_line(&rest), one_line, NULL);
    assert_null(next_line(&rest));
    free(text);
    unlink(path);
}

/* ------------------------------------------------------------------------ threads and processes */

enum { THREADS = 8, CALLS = 200 };

static void *many_calls(void *arg) {
    (void)arg;
    const iso_context x = scalar();
    float y[3];
    for (int i = 0; i < CALLS; ++i) {
        if (iso_gemv_f32(y, in, 5, in, 3, 4, 0, &x)) {
            return (void *)in;
        }
    }
    return NULL;
}

static int many_threads(void) {
    pthread_t threads[THREADS];
    int bad = 0;
    for (int i = 0; i < THREADS; ++i) {
        bad |= pthread_create(&threads[i], NULL, many_calls, NULL) != 0;
    }
    for (int i = 0; i < THREADS; ++i) {
        void *result = in;
        bad |= pthread_join(threads[i], &result) != 0 || result != NULL;
    }
    return bad;
}

static int threads_and_a_fork(void) {
    int bad = one_call();
    const pid_t child = fork();
    if (child < 0) {
        return 1;
    }
    bad |= many_threads();
    if (child == 0) {
        _exit(bad);
    }
    int status = -1;
    return bad || waitpid(child, &status, 0) != child || status != 0;
}

void lines_do_not_mix(void **state) {
    (void)state;
    for (int to_file = 0; to_file < 2; ++to_file) {
        char *text = run("2", to_file ? path : NULL, threads_and_a_fork);
        if (to_file) {
            assert_string_equal(text, "");
            free(text);
            text = read_path(path);
        }
        char *rest = text;
        const char *line;
        is_header(next_line(&rest));
        int lines = 0;
        for (; (line = next_line(&rest)); ++lines) {
            char expected[100];
            snprintf(expected, sizeof(expected), "iso_verbose,1,exec,%s,", one_line);
            assert_true(begins(line, expected));
            const char *way = strchr(line + strlen(expected), ',');
            assert_non_null(way);
            is_call(line, one_line, way + 1);
            assert_non_null(strstr(way, "tasks 1"));
        }
        assert_int_equal(lines, 1 + 2 * THREADS * CALLS);
        free(text);
    }
    unlink(path);
}

/* Many threads make the first call: one header, before all else. */
void the_first_call_of_many(void **state) {
    (void)state;
    char *text = run("1", path, many_threads), *rest;
    assert_string_equal(text, "");
    free(text);
    text = rest = read_path(path);
    is_header(next_line(&rest));
    for (int i = 0; i < THREADS * CALLS; ++i) {
        is_call(next_line(&rest), one_line, NULL);
    }
    assert_null(next_line(&rest));
    free(text);
    unlink(path);
}
