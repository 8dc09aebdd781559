/* SPDX-License-Identifier: MIT
 *
 * What ISOBIT_VERBOSE writes. It is read at the first call of a process, so each case runs in a
 * child; this process calls no operation itself.
 */
#include "test_verbose.h"

/* ------------------------------------------------------------------------------------ harness */

char directory[] = "/tmp/isobit-verbose-XXXXXX";
char path[64];

static char *read_all(int fd) {
    const off_t bytes = lseek(fd, 0, SEEK_END);
    assert_true(bytes >= 0);
    char *text = malloc((size_t)bytes + 1);
    assert_non_null(text);
    assert_int_equal(pread(fd, text, (size_t)bytes, 0), bytes);
    text[bytes] = '\0';
    return text;
}

char *read_path(const char *from) {
    const int fd = open(from, O_RDONLY);
    assert_true(fd >= 0);
    char *text = read_all(fd);
    close(fd);
    return text;
}

static void set(const char *name, const char *value) {
    if (value) {
        setenv(name, value, 1);
    } else {
        unsetenv(name);
    }
}

/* Runs fn in a child with these values (NULL: not set), and gives what it wrote to stderr. */
char *run(const char *verbose, const char *file, int (*fn)(void)) {
    char name[64];
    snprintf(name, sizeof(name), "%s/stderr", directory);
    const int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        set("ISOBIT_VERBOSE", verbose);
        set("ISOBIT_VERBOSE_FILE", file);
        dup2(fd, STDERR_FILENO);
        close(fd);
        _exit(fn());
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    char *text = read_all(fd);
    close(fd);
    if (status != 0) {
        const size_t length = strlen(text);
        fail_msg("the child ended with %x and wrote at last\n%s", (unsigned)status,
                 text + (length > 800 ? length - 800 : 0));
    }
    return text;
}

/* Takes the next line from *text, without its end; NULL after the last one. */
char *next_line(char **text) {
    char *line = *text, *end = strchr(line, '\n');
    if (!*line) {
        return NULL;
    }
    if (!end) {
        fail_msg("a line without end: %.200s", line);
    }
    *end = '\0';
    *text = end + 1;
    return line;
}

bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* "12.345678ms" and what follows; where that ends in "; ..." more may follow. */
static bool is_time(const char *text, const char *rest) {
    const size_t whole = strspn(text, "0123456789");
    const char *more = strstr(rest, "; ...");
    return whole > 0 && text[whole] == '.' && strspn(text + whole + 1, "0123456789") == 6 &&
           begins(text + whole + 7, "ms") &&
           (more ? strncmp(text + whole + 9, rest, (size_t)(more - rest) + 2) == 0
                 : strcmp(text + whole + 9, rest) == 0);
}

void is_header(const char *line) {
    char expected[64];
    snprintf(expected, sizeof(expected), "iso_verbose,1,info,isobit %s,numerics %d,", iso_version(),
             ISOBIT_NUMERICS_VERSION);
    assert_non_null(line);
    if (!begins(line, expected)) {
        fail_msg("the first line is %s", line);
    }
    const char *cpu = line + strlen(expected), *isas = strrchr(line, ',') + 1;
    assert_true(isas - cpu > 1);
    assert_non_null(strstr(isas, "scalar"));
}

/* A line "iso_verbose,1,exec," `call` ",time" and, if it is not NULL, "," `way`. */
void is_call(const char *line, const char *call, const char *way) {
    char expected[600], rest[200] = "";
    snprintf(expected, sizeof(expected), "iso_verbose,1,exec,%s,", call);
    if (way) {
        snprintf(rest, sizeof(rest), ",%s", way);
    }
    if (!line || !begins(line, expected) || !is_time(line + strlen(expected), rest)) {
        fail_msg("the line\n    %s\nis not\n    %s1.234567ms%s", line ? line : "(none)", expected,
                 rest);
    }
}

/* --------------------------------------------------------------------------- what does not change
 */

static int write_results(void) {
    static _Alignas(64) float results[EVERY_OP_COUNT * EVERY_OP_FLOATS];
    every_op_init();
    if (!every_op_all(results, NULL)) {
        return 1;
    }
    FILE *file = fopen(path, "we");
    return !file || fwrite(results, sizeof(results), 1, file) != 1 || fclose(file) != 0;
}

static void the_bits_do_not_change(void **state) {
    (void)state;
    static const size_t bytes = sizeof(float) * EVERY_OP_COUNT * EVERY_OP_FLOATS;
    free(run("0", NULL, write_results));
    char *off = read_path(path), *text = run("2", NULL, write_results), *rest = text;
    char *on = read_path(path);
    size_t lines = 0;
    while (next_line(&rest)) {
        ++lines;
    }
    /* every_op_init packs in five ways, and keys and values of two heads; "caches" is two calls. */
    assert_int_equal(lines, 1 + 5 + 4 + EVERY_OP_COUNT + 1);
    assert_memory_equal(off, on, bytes);
    free(off);
    free(on);
    free(text);
    unlink(path);
}

static int errno_stays(void) {
    close(STDERR_FILENO); /* no line can be written */
    errno = ERANGE;
    int bad = one_call() || errno != ERANGE;
    bad |= one_call() || errno != ERANGE;
    iso_verbose_call("x", NULL, "y", NULL, ISOBIT_OK, 1);
    return bad || errno != ERANGE;
}

static void errno_does_not_change(void **state) {
    (void)state;
    free(run("1", NULL, errno_stays));
    free(run("1", "/nonexistent/file", errno_stays));
}

/* ---------------------------------------------------------------------------- libraries above */

static char long_text[20000];

static int calls_from_above(void) {
    const iso_context x = scalar();
    iso_verbose_call("sgemm", &x, "m1n2k3", "why", ISOBIT_OK, 1.5);
    iso_verbose_call("sgemm", &x, NULL, NULL, ISOBIT_OK, 1e-6);
    iso_verbose_call(NULL, &x, "a,b\"c\nd", "e\tf", ISOBIT_OK, NAN);
    iso_verbose_call("sgemm", &x, "s", "why", ISOBIT_OK, -1);
    iso_verbose_call("sgemm", &x, "s", "why", ISOBIT_OK, INFINITY);
    iso_verbose_call("sgemm", &x, "s", "why", ISOBIT_E_DIM, 1);
    memset(long_text, ',', sizeof(long_text) - 1);
    iso_verbose_call(long_text, &x, long_text, long_text, ISOBIT_OK, 1);
    return 0;
}

static int level_is_1(void) { return iso_verbose() != 1; }
static int level_is_2(void) { return iso_verbose() != 2; }
static int level_is_0(void) { return iso_verbose() != 0 || calls_from_above(); }

static void libraries_above_write_too(void **state) {
    (void)state;
    static const char *const expected[] = {
        "iso_verbose,1,exec,sgemm,scalar,m1n2k3,thr1,1.500000ms,why",
        "iso_verbose,1,exec,sgemm,scalar,-,thr1,0.000001ms,-",
        "iso_verbose,1,exec,-,scalar,\"a,b\"\"c?d\",thr1,0.000000ms,e?f",
        "iso_verbose,1,exec,sgemm,scalar,s,thr1,0.000000ms,why",
        "iso_verbose,1,exec,sgemm,scalar,s,thr1,1000000000000.000000ms,why",
        "iso_verbose,1,exec,sgemm,scalar,s,thr1,error,a dimension is out of range,refused",
    };
    char *text = run("2", NULL, calls_from_above), *rest = text;
    is_header(next_line(&rest));
    for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); ++i) {
        const char *line = next_line(&rest);
        assert_non_null(line);
        assert_string_equal(line, expected[i]);
    }
    const char *line = next_line(&rest); /* cut, and still with all its fields */
    assert_non_null(line);
    assert_in_range(strlen(line), 1000, 4000);
    assert_non_null(strstr(line, ",\",scalar,\","));
    assert_non_null(strstr(line, ",\",thr1,1.000000ms,\","));
    assert_null(next_line(&rest));
    free(text);
}

static void levels(void **state) {
    (void)state;
    free(run("1", NULL, level_is_1));
    free(run("2", NULL, level_is_2));
    static const char *const off[] = {NULL, "", "0"};
    for (size_t i = 0; i < sizeof(off) / sizeof(*off); ++i) {
        char *text = run(off[i], NULL, level_is_0);
        assert_string_equal(text, "");
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_has_its_line),
        cmocka_unit_test(no_operation_is_left_out),
        cmocka_unit_test(off_is_silent),
        cmocka_unit_test(wrong_values_are_told),
        cmocka_unit_test(the_time_is_that_of_the_call),
        cmocka_unit_test(ways_are_told),
        cmocka_unit_test(small_products_are_told),
        cmocka_unit_test(refused_calls_are_told),
        cmocka_unit_test(wrong_isa_is_told),
        cmocka_unit_test(lines_are_appended_to_a_file),
        cmocka_unit_test(the_file_is_closed_on_exec),
        cmocka_unit_test(a_file_that_cannot_be_opened),
        cmocka_unit_test(other_files_get_no_lines),
        cmocka_unit_test(lines_do_not_mix),
        cmocka_unit_test(the_first_call_of_many),
        cmocka_unit_test(the_bits_do_not_change),
        cmocka_unit_test(errno_does_not_change),
        cmocka_unit_test(libraries_above_write_too),
        cmocka_unit_test(levels),
    };
    unsetenv("ISOBIT_ISA");
    if (!mkdtemp(directory)) {
        return 1;
    }
    snprintf(path, sizeof(path), "%s/lines", directory);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char name[64];
    snprintf(name, sizeof(name), "%s/stderr", directory);
    unlink(name);
    unlink(path);
    rmdir(directory);
    return failed;
}
