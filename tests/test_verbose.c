/* SPDX-License-Identifier: MIT
 *
 * What ISOBIT_VERBOSE writes. It is read at the first call of a process, so each case runs in a
 * child; this process calls no operation itself.
 */
#include "every_op.h"
#include "kernels.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* ------------------------------------------------------------------------------------ harness */

static char directory[] = "/tmp/isobit-verbose-XXXXXX", path[64];

static char *read_all(int fd) {
    const off_t bytes = lseek(fd, 0, SEEK_END);
    assert_true(bytes >= 0);
    char *text = malloc((size_t)bytes + 1);
    assert_non_null(text);
    assert_int_equal(pread(fd, text, (size_t)bytes, 0), bytes);
    text[bytes] = '\0';
    return text;
}

static char *read_path(const char *from) {
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
static char *run(const char *verbose, const char *file, int (*fn)(void)) {
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
static char *next_line(char **text) {
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

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* "12.345678ms" and what follows; where that ends in "; ..." more may follow. */
static bool is_time(const char *text, const char *rest) {
    const size_t whole = strspn(text, "0123456789");
    const char *more = strstr(rest, "; ...");
    return whole > 0 && text[whole] == '.' && strspn(text + whole + 1, "0123456789") == 6 &&
           begins(text + whole + 7, "ms") &&
           (more ? strncmp(text + whole + 9, rest, (size_t)(more - rest) + 2) == 0
                 : strcmp(text + whole + 9, rest) == 0);
}

static void is_header(const char *line) {
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
static void is_call(const char *line, const char *call, const char *way) {
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

/* ----------------------------------------------------------------------- one line for each call */

static iso_context scalar(void) {
    iso_context context = {.size = sizeof(context)};
    if (iso_isa_find(&context.isa, "scalar")) {
        _exit(9);
    }
    return context;
}

enum { ROOM = 4096 };
static _Alignas(64) float out[ROOM], other[ROOM], in[ROOM];

#define STRIDES(s)                                                                                 \
    { (size_t)16 * (s), 4, s }
static const iso_attention_shape heads = {.B = 1,
                                          .H = 2,
                                          .Sq = 3,
                                          .Sk = 5,
                                          .dh = 4,
                                          .q = STRIDES(8),
                                          .k = STRIDES(9),
                                          .v = STRIDES(10),
                                          .o = STRIDES(11)};

static const char all_masks[] = "attention_f32,scalar,B1H2Sq3Sk5dh4:ldq8:ldk9:ldv10:ldo11:causal"
                                ":past2:window4:key_lengths:bias:weights:key_panels,thr1";

/* Each operation plain, then with all its options. NULL: no more. */
static const char *const each_line[] = {
    "gemm_f32,scalar,m2n3k4:nn:lda4:ldb5:ldc6,thr1",
    "gemm_f32,scalar,m2n3k4:tt:lda4:ldb5:ldc6:alpha:beta:bias:gelu_erf:residual,thr1",
    "pack_f32,scalar,n3k4:n:ldw5,thr1",
    "pack_f32,scalar,n3k4:t:ldw5,thr1",
    "linear_f32,scalar,m2n3k4:ldx5:ldy6,thr1",
    "linear_f32,scalar,m2n3k4:ldx5:ldy6:bias:silu:residual,thr1",
    "gemv_f32,scalar,n3k4:n:ldw5,thr1",
    "gemv_f32,scalar,n3k4:t:ldw5,thr1",
    "softmax_f32,scalar,rows2n3:ldx4:ldy5,thr1",
    "softmax_f32,scalar,rows2n3:ldx4:ldy5:log:safe:lengths:mask,thr1",
    "logsumexp_f32,scalar,rows2n3:ldx4,thr1",
    "layernorm_f32,scalar,rows2n3:ldx4:ldy5,thr1",
    "layernorm_f32,scalar,rows2n3:ldx4:ldy5:gamma:beta:residual:sum,thr1",
    "rmsnorm_f32,scalar,rows2n3:ldx4:ldy5,thr1",
    "rmsnorm_f32,scalar,rows2n3:ldx4:ldy5:gamma:residual,thr1",
    "eltwise_f32,scalar,rows2n3:ldx4:ldy5,thr1",
    "eltwise_f32,scalar,rows2n3:ldx4:ldy5:bias:tanh:residual,thr1",
    "axpby_f32,scalar,rows2n3:ldx4:ldy5,thr1",
    "axpby_f32,scalar,rows2n3:ldx4:ldy5:alpha:beta,thr1",
    "gate_f32,scalar,rows2n3:lda4:ldb5:ldy6,thr1",
    "gate_f32,scalar,rows2n3:lda4:ldb5:ldy6:silu,thr1",
    "attention_f32,scalar,B1H2Sq3Sk5dh4:ldq8:ldk9:ldv10:ldo11,thr1",
    all_masks,
    "key_panels_append,scalar,first1count2dh3:ldk4,thr1",
    "embed_f32,scalar,count2d3:vocabulary4:ldy5,thr1",
    "embed_f32,scalar,count2d3:vocabulary4:ldy5:positions:position_rows,thr1",
    "positions_f32,scalar,first7count2d3:ldy4:interleaved,thr1",
    "positions_f32,scalar,first7count2d3:ldy4:half_d,thr1",
    "positions_f32,scalar,first7count2d4:ldy4:half_hm1,thr1",
    "rope_f32,scalar,rows2H1dh4rotary2:positions2:ldx4:ldy5:half,thr1",
    "rope_f32,scalar,rows2H1dh4rotary4:positions3:ldx5:ldy4:interleaved:position_rows,thr1",
    "rope_table_f32,scalar,first7count2rotary4:ld5,thr1",
    "rope_table_f32,scalar,first7count2rotary4:ld5:scaling,thr1",
    NULL,
};

static int each_call(void) {
    const iso_context x = scalar();
    const iso_gemm_options g = {.size = sizeof(g),
                                .trans_a = 1,
                                .trans_b = 1,
                                .alpha = 2,
                                .beta = 1,
                                .bias = in,
                                .act = ISOBIT_ACT_GELU_ERF,
                                .residual = other,
                                .ldr = 6};
    const iso_linear_options l = {
        .size = sizeof(l), .bias = in, .act = ISOBIT_ACT_SILU, .residual = other, .ldr = 6};
    const size_t lengths[] = {3, 1}, keys[] = {4};
    const uint8_t mask[6] = {1, 1, 1, 1};
    const iso_softmax_options s = {
        .size = sizeof(s), .log = 1, .safe = 1, .lengths = lengths, .mask = mask, .ldm = 3};
    const iso_norm_options plain = {.size = sizeof(plain)};
    const iso_norm_options n = {.size = sizeof(n),
                                .gamma = in,
                                .beta = in,
                                .eps = 1,
                                .residual = in,
                                .ldr = 5,
                                .sum = other,
                                .lds = 5};
    const iso_norm_options r = {.size = sizeof(r), .gamma = in, .eps = 1, .residual = in, .ldr = 5};
    const iso_eltwise_options e = {
        .size = sizeof(e), .bias = in, .act = ISOBIT_ACT_TANH, .residual = in, .ldr = 5};
    const iso_attention_options a = {.size = sizeof(a),
                                     .scale = 1,
                                     .causal = 1,
                                     .past = 2,
                                     .key_lengths = keys,
                                     .bias = in,
                                     .bias_strides = {0, 0, 5},
                                     .weights = other,
                                     .weights_strides = {30, 15, 5},
                                     .key_panels = 1,
                                     .window = 4};
    const uint32_t ids[] = {3, 0}, rows[] = {1, 2};
    iso_packed p;
    int bad = 0;
    bad |= iso_gemm_f32(out, 6, in, 4, in, 5, 2, 3, 4, NULL, &x) != 0;
    bad |= iso_gemm_f32(out, 6, in, 4, in, 5, 2, 3, 4, &g, &x) != 0;
    bad |= iso_pack_f32(&p, out, sizeof(out), in, 5, 3, 4, 0, &x) != 0;
    bad |= iso_pack_f32(&p, out, sizeof(out), in, 5, 3, 4, 1, &x) != 0;
    bad |= iso_linear_f32(other, 6, in, 5, &p, 2, NULL, &x) != 0;
    bad |= iso_linear_f32(other, 6, in, 5, &p, 2, &l, &x) != 0;
    bad |= iso_gemv_f32(out, in, 5, in, 3, 4, 0, &x) != 0;
    bad |= iso_gemv_f32(out, in, 5, in, 3, 4, 1, &x) != 0;
    bad |= iso_softmax_f32(out, 5, in, 4, 2, 3, NULL, &x) != 0;
    bad |= iso_softmax_f32(out, 5, in, 4, 2, 3, &s, &x) != 0;
    bad |= iso_logsumexp_f32(out, other, in, 4, 2, 3, &x) != 0;
    bad |= iso_layernorm_f32(out, 5, in, 4, 2, 3, &plain, &x) != 0;
    bad |= iso_layernorm_f32(out, 5, in, 4, 2, 3, &n, &x) != 0;
    bad |= iso_rmsnorm_f32(out, 5, in, 4, 2, 3, &plain, &x) != 0;
    bad |= iso_rmsnorm_f32(out, 5, in, 4, 2, 3, &r, &x) != 0;
    bad |= iso_eltwise_f32(out, 5, in, 4, 2, 3, NULL, &x) != 0;
    bad |= iso_eltwise_f32(out, 5, in, 4, 2, 3, &e, &x) != 0;
    bad |= iso_axpby_f32(out, 5, in, 4, 2, 3, 1, 0, &x) != 0;
    bad |= iso_axpby_f32(out, 5, in, 4, 2, 3, 2, 1, &x) != 0;
    bad |= iso_gate_f32(out, 6, in, 4, in, 5, 2, 3, ISOBIT_ACT_NONE, &x) != 0;
    bad |= iso_gate_f32(out, 6, in, 4, in, 5, 2, 3, ISOBIT_ACT_SILU, &x) != 0;
    bad |= iso_attention_f32(out, in, in, in, &heads, NULL, &x) != 0;
    bad |= iso_attention_f32(out, in, in, in, &heads, &a, &x) != 0;
    bad |= iso_key_panels_append(out, 1, in, 4, 2, 3, &x) != 0;
    bad |= iso_embed_f32(out, 5, ids, 2, in, 4, 3, 1, NULL, NULL, 0, &x) != 0;
    bad |= iso_embed_f32(out, 5, ids, 2, in, 4, 3, 1, in, rows, 3, &x) != 0;
    bad |= iso_positions_f32(out, 4, 7, 2, 3, ISOBIT_POS_INTERLEAVED, &x) != 0;
    bad |= iso_positions_f32(out, 4, 7, 2, 3, ISOBIT_POS_HALF_D, &x) != 0;
    bad |= iso_positions_f32(out, 4, 7, 2, 4, ISOBIT_POS_HALF_HM1, &x) != 0;
    bad |= iso_rope_f32(out, 5, in, 4, 2, 1, 4, 2, ISOBIT_ROPE_HALF, in, 2, NULL, 2, &x) != 0;
    bad |=
        iso_rope_f32(out, 4, in, 5, 2, 1, 4, 4, ISOBIT_ROPE_INTERLEAVED, in, 4, rows, 3, &x) != 0;
    bad |= iso_rope_table_f32(out, 5, 7, 2, in, 4, 1, &x) != 0;
    bad |= iso_rope_table_f32(out, 5, 7, 2, in, 4, 0.5f, &x) != 0;
    return bad;
}

static void each_call_has_its_line(void **state) {
    (void)state;
    char *text = run("1", NULL, each_call), *rest = text;
    is_header(next_line(&rest));
    for (size_t i = 0; each_line[i]; ++i) {
        is_call(next_line(&rest), each_line[i], NULL);
    }
    assert_null(next_line(&rest));
    free(text);
}

/* Operations that are added must be told, too: the header against the list above. */
static void no_operation_is_left_out(void **state) {
    (void)state;
    char *text = read_path(ISOBIT_SOURCE_DIR "/include/isobit/ops.h");
    size_t operations = 0;
    for (const char *at = text; (at = strstr(at, "ISOBIT_API iso_status iso_"));) {
        at += strlen("ISOBIT_API iso_status iso_");
        const size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_");
        if (length > 6 && begins(at + length - 6, "_bytes")) {
            continue; /* only a size is computed */
        }
        bool found = false;
        for (size_t i = 0; each_line[i]; ++i) {
            found |= strncmp(each_line[i], at, length) == 0 && each_line[i][length] == ',';
        }
        if (!found) {
            fail_msg("%.*s", (int)length, at);
        }
        ++operations;
    }
    assert_true(operations >= 14);
    free(text);
}

static int every_call(void) {
    static _Alignas(64) float results[EVERY_OP_COUNT * EVERY_OP_FLOATS];
    every_op_init();
    return !every_op_all(results, NULL);
}

static void off_is_silent(void **state) {
    (void)state;
    static const char *const values[] = {NULL, "", "0"};
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); ++i) {
        char *text = run(values[i], path, every_call);
        assert_string_equal(text, "");
        assert_int_equal(access(path, F_OK), -1);
        free(text);
    }
}

static void wrong_values_are_told(void **state) {
    (void)state;
    static const char *const values[] = {"3", "-1", "yes", "1 ", "01", "2x", "a,\"b\n"};
    static const char *const said[] = {"3", "-1", "yes", "1 ", "01", "2x", "\"a,\"\"b?\""};
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); ++i) {
        char expected[200], *text = run(values[i], path, every_call);
        snprintf(expected, sizeof(expected),
                 "iso_verbose,1,error,ISOBIT_VERBOSE is none of 0 1 2 and counts as 0,%s\n",
                 said[i]);
        assert_string_equal(text, expected);
        assert_int_equal(access(path, F_OK), -1);
        free(text);
    }
}

static void slowly(void *user, size_t n, void (*fn)(void *arg, size_t i), void *arg) {
    (void)user;
    const struct timespec nap = {.tv_nsec = 30000000};
    nanosleep(&nap, NULL);
    for (size_t i = 0; i < n; ++i) {
        fn(arg, i);
    }
}

static int slow_call(void) {
    const iso_executor executor = {slowly, NULL, 3};
    iso_context x = scalar();
    x.executor = &executor;
    iso_packed p;
    return iso_pack_f32(&p, out, sizeof(out), in, 5, 3, 4, 0, &x) != ISOBIT_OK;
}

static void the_time_is_that_of_the_call(void **state) {
    (void)state;
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    char *text = run("1", NULL, slow_call), *rest = text;
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double most =
        (double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) * 1e-6;
    is_header(next_line(&rest));
    const char *line = next_line(&rest), call[] = "pack_f32,scalar,n3k4:n:ldw5,thr3";
    is_call(line, call, NULL);
    const double ms = strtod(strrchr(line, ',') + 1, NULL);
    if (!(ms >= 30 && ms <= most)) {
        fail_msg("%g ms is not between 30 and %g", ms, most);
    }
    assert_null(next_line(&rest));
    free(text);
}

/* ------------------------------------------------------------------------------------- reasons */

enum { BIG = 1100 * 2048 };
static const char *isa_name;
static float *big[3];

static iso_status product(size_t m, size_t n, size_t k, int trans_a, int trans_b, float beta,
                          const iso_context *x) {
    const iso_gemm_options o = {
        .size = sizeof(o), .trans_a = trans_a, .trans_b = trans_b, .alpha = 1, .beta = beta};
    return iso_gemm_f32(big[0], n, big[1], trans_a ? m : k, big[2], trans_b ? k : n, m, n, k, &o,
                        x);
}

static iso_status attend(size_t queries, size_t keys, int panels, const iso_context *x) {
    const iso_attention_shape s = {
        1, 2, queries, keys, 64, {0, 64, 128}, {0, 64 * keys, 64}, {0, 64, 128}, {0, 64, 128}};
    const iso_attention_options o = {.size = sizeof(o), .scale = 1, .key_panels = panels};
    return iso_attention_f32(big[0], big[1], big[2], big[2], &s, &o, x);
}

/* What is chosen on all machines and instruction sets alike. */
static int some_ways(void) {
    iso_context x = {.size = sizeof(x)};
    for (size_t i = 0; i < 3; ++i) {
        big[i] = aligned_alloc(64, BIG * sizeof(float));
        if (!big[i]) {
            return 8;
        }
        memset(big[i], 0, BIG * sizeof(float));
    }
    iso_pool *pool = NULL;
    iso_packed p;
    int bad = iso_isa_find(&x.isa, isa_name) != 0;
    bad |= iso_pool_create(&pool, 2) != 0;
    bad |= product(16, 16, 16, 0, 0, 0, &x) != 0;
    bad |= product(0, 16, 16, 0, 0, 0, &x) != 0;
    bad |= product(16, 16, 0, 0, 0, 0, &x) != 0;
    bad |= product(1, 100, 10, 0, 0, 0, &x) != 0;
    bad |= product(1, 1100, 2048, 0, 0, 0, &x) != 0;
    bad |= product(130, 700, 400, 0, 0, 0, &x) != 0;
    bad |= product(130, 700, 400, 1, 0, 0, &x) != 0;
    bad |= product(1, 200, 100, 0, 1, 0, &x) != 0;
    bad |= product(32, 512, 512, 0, 1, 0, &x) != 0;
    bad |= product(300, 100, 300, 0, 1, 0, &x) != 0;
    x.executor = iso_pool_executor(pool);
    bad |= product(130, 700, 400, 0, 0, 0, &x) != 0;
    bad |= product(4, 70, 30, 0, 0, 0, &x) != 0;
    bad |= iso_pack_f32(&p, big[2], BIG * sizeof(float), big[1], 300, 200, 300, 0, &x) != 0;
    bad |= iso_linear_f32(big[0], 200, big[1], 300, &p, 100, NULL, &x) != 0;
    bad |= iso_linear_f32(big[0], 200, big[1], 300, &p, 1, NULL, &x) != 0;
    bad |= iso_linear_f32(big[0], 200, big[1], 300, &p, 0, NULL, &x) != 0;
    bad |= iso_gemv_f32(big[0], big[1], 1000, big[2], 1000, 1000, 1, &x) != 0;
    bad |= iso_gemv_f32(big[0], big[1], 10, big[2], 10, 10, 1, &x) != 0;
    bad |= iso_gemv_f32(big[0], big[1], 10, big[2], 10, 0, 1, &x) != 0;
    bad |= attend(250, 100, 0, &x) != 0;
    bad |= attend(600, 600, 0, &x) != 0;
    bad |= attend(1, 100, 0, &x) != 0;
    bad |= attend(1, 100, 1, &x) != 0;
    bad |= attend(0, 100, 1, &x) != 0;
    iso_pool_destroy(pool);
    return bad;
}

static void ways_are_told(void **state) {
    (void)state;
    static const char *const expected[][2] = {
        {"gemm_f32,%s,m16n16k16:nn:lda16:ldb16:ldc16,thr1", "tiny"},
        {"gemm_f32,%s,m0n16k16:nn:lda16:ldb16:ldc16,thr1", "no product"},
        {"gemm_f32,%s,m16n16k0:nn:lda0:ldb16:ldc16,thr1", "no product"},
        {"gemm_f32,%s,m1n100k10:nn:lda10:ldb100:ldc100,thr1", "B in place; tasks 1; ..."},
        {"gemm_f32,%s,m1n1100k2048:nn:lda2048:ldb1100:ldc1100,thr1",
         "along rows of B; tasks 1; ..."},
        {"gemm_f32,%s,m130n700k400:nn:lda400:ldb700:ldc700,thr1",
         "packs B by blocks; tasks 1; ..."},
        {"gemm_f32,%s,m130n700k400:tn:lda130:ldb700:ldc700,thr1",
         "packs B for all tasks; tasks 1; ..."},
        {"gemm_f32,%s,m1n200k100:nt:lda100:ldb100:ldc200,thr1",
         "transposed B in registers; tasks 1; ..."},
        {"gemm_f32,%s,m32n512k512:nt:lda512:ldb512:ldc512,thr1",
         "transposed product that packs A; tasks 1; ..."},
        {"gemm_f32,%s,m300n100k300:nt:lda300:ldb300:ldc100,thr1",
         "packs B by blocks; tasks 1; ..."},
        {"gemm_f32,%s,m130n700k400:nn:lda400:ldb700:ldc700,thr2",
         "packs B by blocks; tasks 2; ..."},
        {"gemm_f32,%s,m4n70k30:nn:lda30:ldb70:ldc70,thr2", "B in place; tasks 1; ..."},
        {"pack_f32,%s,n200k300:n:ldw300,thr2", "-"},
        {"linear_f32,%s,m100n200k300:ldx300:ldy200,thr2", "packed B; tasks 2; ..."},
        {"linear_f32,%s,m1n200k300:ldx300:ldy200,thr2", "packed B; tasks 1; ..."},
        {"linear_f32,%s,m0n200k300:ldx300:ldy200,thr2", "no product"},
        {"gemv_f32,%s,n1000k1000:t:ldw1000,thr2", "adds up rows with scratch; tasks 2"},
        {"gemv_f32,%s,n10k10:t:ldw10,thr2", "adds up rows; tasks 1"},
        {"gemv_f32,%s,n10k0:t:ldw10,thr2", "no product"},
        {"attention_f32,%s,B1H2Sq250Sk100dh64:ldq128:ldk64:ldv128:ldo128,thr2",
         "packs keys; tasks 2; by heads; ..."},
        {"attention_f32,%s,B1H2Sq600Sk600dh64:ldq128:ldk64:ldv128:ldo128,thr2",
         "packs keys and values; tasks 2; by heads; ..."},
        {"attention_f32,%s,B1H2Sq1Sk100dh64:ldq128:ldk64:ldv128:ldo128,thr2",
         "one query with keys in place; tasks 1; by heads; blocks of 1 queries; keys of one query "
         "are "
         "read once"},
        {"attention_f32,%s,B1H2Sq1Sk100dh64:ldq128:ldk64:ldv128:ldo128:key_panels,thr2",
         "keys in panels; tasks 1; by heads; ..."},
        {"attention_f32,%s,B1H2Sq0Sk100dh64:ldq128:ldk64:ldv128:ldo128:key_panels,thr2",
         "nothing to do"},
    };
    for (size_t isa = 0; isa < iso_isa_count(); ++isa) {
        if (iso_isa_missing(iso_isa_get(isa))) {
            continue;
        }
        isa_name = iso_isa_name(iso_isa_get(isa));
        char *text = run("2", NULL, some_ways), *rest = text;
        is_header(next_line(&rest));
        for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); ++i) {
            char call[200];
            const char *hole = strchr(expected[i][0], '%');
            snprintf(call, sizeof(call), "%.*s%s%s", (int)(hole - expected[i][0]), expected[i][0],
                     isa_name, hole + 2);
            is_call(next_line(&rest), call, expected[i][1]);
        }
        assert_null(next_line(&rest));
        free(text);
    }
}

/* -------------------------------------------------------------------------------------- errors */

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

static void refused_calls_are_told(void **state) {
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

static void wrong_isa_is_told(void **state) {
    (void)state;
    char *text = run("1", NULL, no_isa), *rest = text;
    is_header(next_line(&rest));
    const char *line = next_line(&rest);
    assert_non_null(line);
    assert_string_equal(line, "iso_verbose,1,exec,gemv_f32,-,n3k4:n:ldw5,thr-,error,\"no "
                              "instruction set of that name, or this machine lacks it\"");
    assert_null(next_line(&rest));
    free(text);
}

/* ----------------------------------------------------------------------------------- the files */

static int one_call(void) {
    const iso_context x = scalar();
    return iso_gemv_f32(out, in, 5, in, 3, 4, 0, &x) != ISOBIT_OK;
}
static const char one_line[] = "gemv_f32,scalar,n3k4:n:ldw5,thr1";

static void lines_are_appended_to_a_file(void **state) {
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

static void the_file_is_closed_on_exec(void **state) {
    (void)state;
    free(run("1", path, closed_on_exec));
    unlink(path);
}

static void a_file_that_cannot_be_opened(void **state) {
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

static void other_files_get_no_lines(void **state) {
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

static void lines_do_not_mix(void **state) {
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
static void the_first_call_of_many(void **state) {
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
    assert_int_equal(lines, 1 + 1 + EVERY_OP_COUNT); /* every_op_init packs */
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
