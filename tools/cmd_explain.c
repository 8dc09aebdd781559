/* SPDX-License-Identifier: MIT
 *
 * isobit explain: how an operation of a given shape is computed here, why, and how fast it can be
 * at best. The plan is what the library itself says with ISOBIT_VERBOSE=2, of calls that are made
 * for it; so are the times. Peaks are measured beside them, in builds that have the code of
 * isobit_bench.
 */
#include "cli.h"

#include <isobit/ops.h>

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(ISOBIT_BENCH_PEAKS)
#include "peaks.h"
#endif

static const double default_seconds = 0.3;

enum { DIMENSIONS = 5, OPERANDS = 4 };

struct operation {
    const char *name, *shape;
    size_t dimensions;
};
enum { GEMM, LINEAR, ATTENTION };
static const struct operation operations[] = {{"gemm", "MxNxK", 3},
                                              {"linear", "MxNxK", 3},
                                              {"attention", "BATCHxHEADSxQUERIESxKEYSxWIDTH", 5}};

struct explain {
    int operation;
    const struct options *options;
    size_t d[DIMENSIONS];
    iso_context context;
    iso_pool *pool;
    size_t threads;
    float *operands[OPERANDS];
    size_t floats[OPERANDS]; /* inputs, then the output */
    iso_packed packed;
    char verbose[64]; /* the file of lines */
    char plan[1200];
    double flops, bytes, seconds; /* of a call; the best one */
    double fma, read;             /* peaks, 0: not known */
};

/* "16x37000x512": so many numbers of at least 1, whose product is below 2^48. */
static bool parse_shape(size_t *d, size_t count, const char *text) {
    double all = 1;
    for (size_t i = 0; i < count; i++) {
        char *end = NULL;
        errno = 0;
        const unsigned long long value = strtoull(text, &end, 10);
        if (text[0] < '0' || text[0] > '9' || errno != 0 || value == 0 ||
            *end != (i + 1 < count ? 'x' : '\0'))
            return false;
        d[i] = (size_t)value, all *= (double)value;
        text = end + 1;
    }
    return all < 281474976710656.0;
}

static void set_sizes(struct explain *x) {
    const size_t *d = x->d;
    if (x->operation == ATTENTION) {
        const size_t heads = d[0] * d[1];
        x->floats[0] = heads * d[2] * d[4];
        x->floats[1] = x->floats[2] = heads * d[3] * d[4];
        x->flops = 4.0 * (double)heads * (double)d[2] * (double)d[3] * (double)d[4];
        if (x->options->causal && d[2] <= d[3]) /* query i sees keys - queries + i + 1 keys */
            x->flops *= 1 - ((double)d[2] - 1) / (2 * (double)d[3]);
        x->floats[3] = x->floats[0];
    } else {
        x->floats[0] = d[0] * d[2];
        x->floats[1] = (d[1] + 15) / 16 * 16 * d[2];
        x->floats[3] = d[0] * d[1];
        x->flops = 2.0 * (double)d[0] * (double)d[1] * (double)d[2];
    }
    for (size_t i = 0; i < OPERANDS; i++)
        x->bytes += (double)x->floats[i] * sizeof(float);
}

static int make_operands(struct explain *x) {
    uint32_t state = 1;
    for (size_t i = 0; i < OPERANDS; i++) {
        if (x->floats[i] == 0)
            continue;
        x->operands[i] = aligned_alloc(64, (x->floats[i] * sizeof(float) + 63) / 64 * 64);
        if (x->operands[i] == NULL)
            return fail("not enough memory for %.0f MB of operands", x->bytes / 1e6);
        for (size_t j = 0; j < x->floats[i]; j++) {
            state = state * 1664525 + 1013904223;
            x->operands[i][j] = (float)(state >> 16) / 65536 - 0.5f;
        }
    }
    x->packed = (iso_packed){x->operands[1], x->d[1], x->d[2]}; /* random panels are panels */
    return 0;
}

static iso_status call(const struct explain *x) {
    const size_t *d = x->d;
    float *const *f = x->operands;
    if (x->operation == LINEAR)
        return iso_linear_f32(f[3], d[1], f[0], d[2], &x->packed, d[0], NULL, &x->context);
    if (x->operation == GEMM) {
        const iso_gemm_options how = {
            .size = sizeof how, .alpha = 1, .trans_b = x->options->transposed};
        return iso_gemm_f32(f[3], d[1], f[0], d[2], f[1], x->options->transposed ? d[2] : d[1],
                            d[0], d[1], d[2], &how, &x->context);
    }
    const size_t width = d[1] * d[4]; /* heads beside each other, as projections leave them */
    const iso_attention_shape shape = {.B = d[0],
                                       .H = d[1],
                                       .Sq = d[2],
                                       .Sk = d[3],
                                       .dh = d[4],
                                       .q = {d[2] * width, d[4], width},
                                       .k = {d[3] * width, d[4], width},
                                       .v = {d[3] * width, d[4], width},
                                       .o = {d[2] * width, d[4], width}};
    const iso_attention_options how = {.size = sizeof how,
                                       .scale = 0.125f,
                                       .causal = x->options->causal,
                                       .past = x->options->causal ? d[3] - d[2] : 0};
    return iso_attention_f32(f[3], f[0], f[1], f[2], &shape, &how, &x->context);
}

/* The last field but one is the time of the call, the last one its plan. */
static bool read_line(struct explain *x, char *line) {
    char *time = strstr(line, "ms,");
    if (strncmp(line, "iso_verbose,1,exec,", 19) != 0 || time == NULL)
        return false;
    *time = '\0';
    const char *begin = strrchr(line, ',');
    const double seconds = begin != NULL ? strtod(begin + 1, NULL) / 1000 : 0;
    if (x->seconds <= 0 || seconds < x->seconds)
        x->seconds = seconds;
    snprintf(x->plan, sizeof x->plan, "%s", time + 3);
    x->plan[strcspn(x->plan, "\n")] = '\0';
    return true;
}

static int read_lines(struct explain *x) {
    FILE *file = fopen(x->verbose, "r");
    char line[4096];
    bool any = false;
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        any |= read_line(x, line);
    if (file != NULL)
        fclose(file);
    return any ? 0 : fail("%s: the library wrote no line about the call", x->verbose);
}

#if defined(ISOBIT_BENCH_PEAKS)
static void measure_peaks(struct explain *x) {
    const struct bench_place place = {x->context.isa, x->context.executor, x->threads};
    const size_t least = (size_t)1 << 16, wanted = (size_t)x->bytes;
    const size_t bytes = ((wanted > least ? wanted : least) + 4095) / 4096 * 4096;
    float *memory = aligned_alloc(4096, bytes + 4096);
    if (memory == NULL)
        return;
    memset(memory, 1, bytes + 4096);
    x->fma = bench_best_peak(&place, BENCH_FMA, NULL, NULL, 0, 0.01, 5);
    x->read = bench_best_peak(&place, BENCH_READ, memory, NULL, bytes, 0.02, 5);
    free(memory);
}
#else
static void measure_peaks(struct explain *x) { (void)x; }
#endif

/* Calls for so many seconds, at least twice; at most 20000 lines are written. */
static int measure(struct explain *x) {
    const double until =
        seconds_now() + (x->options->seconds > 0 ? x->options->seconds : default_seconds);
    for (int i = 0; i < 2 || (i < 20000 && seconds_now() < until); i++) {
        const iso_status status = call(x);
        if (status != ISOBIT_OK)
            return fail("%s: %s", operations[x->operation].name, iso_strerror(status));
    }
    measure_peaks(x);
    return read_lines(x);
}

/* The plan, and behind it the reason, which begins with where B lies or with keys. */
static char *split_reason(char *plan) {
    char *reason = strstr(plan, "; B of ");
    if (reason == NULL)
        reason = strstr(plan, "; keys ");
    if (reason == NULL)
        return NULL;
    *reason = '\0';
    return reason + 2;
}

static void print_text(struct explain *x, const char *shape) {
    char *reason = split_reason(x->plan);
    printf("%s %s%s: %s, %zu thread%s\n", operations[x->operation].name, shape,
           x->options->transposed ? ", transposed B"
           : x->options->causal   ? ", causal"
                                  : "",
           iso_isa_name(x->context.isa), x->threads, x->threads == 1 ? "" : "s");
    printf("  plan    %s\n", x->plan);
    if (reason != NULL)
        printf("  why     %s\n", reason);
    printf("  work    %.4g MFLOP, %.4g MB of operands\n", x->flops / 1e6, x->bytes / 1e6);
    if (x->fma > 0 && x->read > 0) {
        const double compute = x->flops / x->fma, move = x->bytes / x->read;
        const double bound = compute > move ? compute : move;
        printf("  bound   %.4g ms: multiply-adds %.4g ms at %.4g GFLOP/s, reading %.4g ms at %.4g "
               "GB/s\n",
               bound * 1e3, compute * 1e3, x->fma / 1e9, move * 1e3, x->read / 1e9);
        printf("  limit   %s\n", compute > move ? "multiply-adds" : "reading operands");
        printf("  here    %.4g ms, %.0f %% of the bound\n", x->seconds * 1e3,
               100 * bound / x->seconds);
    } else {
        printf("  here    %.4g ms, %.4g GFLOP/s\n", x->seconds * 1e3, x->flops / x->seconds / 1e9);
    }
}

static int print_json(struct explain *x, const char *shape) {
    char *reason = split_reason(x->plan);
    json_t *root = json_pack(
        "{ss ss sb sb ss si ss ss? sf sf sf}", "operation", operations[x->operation].name, "shape",
        shape, "transposed_b", (int)x->options->transposed, "causal", (int)x->options->causal,
        "isa", iso_isa_name(x->context.isa), "threads", (int)x->threads, "plan", x->plan, "why",
        reason, "flops", x->flops, "bytes", x->bytes, "seconds", x->seconds);
    if (root != NULL && x->fma > 0 && x->read > 0) {
        const double compute = x->flops / x->fma, move = x->bytes / x->read;
        json_object_set_new(root, "fma_peak", json_real(x->fma));
        json_object_set_new(root, "read_peak", json_real(x->read));
        json_object_set_new(root, "limit", json_string(compute > move ? "fma" : "read"));
        json_object_set_new(root, "bound", json_real(compute > move ? compute : move));
    }
    char *text = root != NULL ? json_dumps(root, JSON_INDENT(1)) : NULL;
    json_decref(root);
    if (text == NULL)
        return fail("not enough memory");
    puts(text);
    free(text);
    return 0;
}

static int run(struct explain *x, const char *shape) {
    int code = choose_isa(&x->context, x->options);
    if (code == 0 && x->threads > 1) {
        const iso_status status = iso_pool_create(&x->pool, x->threads);
        if (status != ISOBIT_OK)
            return fail("cannot start %zu threads: %s", x->threads, iso_strerror(status));
        x->context.executor = iso_pool_executor(x->pool);
    }
    if (code == 0)
        code = make_operands(x);
    if (code == 0)
        code = measure(x);
    if (code == 0 && x->options->json)
        code = print_json(x, shape);
    else if (code == 0)
        print_text(x, shape);
    return code != 0 ? code : output_flush();
}

int cmd_explain(const struct options *options) {
    enum { COUNT = sizeof operations / sizeof *operations };
    struct explain x = {.options = options, .context = {.size = sizeof(iso_context)}};
    if (options->count != 2)
        return usage("explain wants an operation and a shape, as: isobit explain gemm 16x512x512");
    while (x.operation < COUNT && strcmp(options->arguments[0], operations[x.operation].name) != 0)
        x.operation++;
    if (x.operation == COUNT)
        return usage("explain knows gemm, linear and attention, not '%s'", options->arguments[0]);
    const struct operation *operation = &operations[x.operation];
    const char *shape = options->arguments[1];
    if (!parse_shape(x.d, operation->dimensions, shape))
        return usage("the shape of %s is %s, numbers from 1 on; found '%s'", operation->name,
                     operation->shape, shape);
    if (options->transposed && x.operation != GEMM)
        return usage("--bt is for gemm");
    if (options->causal && (x.operation != ATTENTION || x.d[2] > x.d[3]))
        return usage("--causal is for attention with at least as many keys as queries");
    x.threads = options->threads != 0 ? options->threads : iso_usable_threads();
    set_sizes(&x);

    const char *directory = getenv("TMPDIR");
    snprintf(x.verbose, sizeof x.verbose, "%s/isobit-explain-XXXXXX",
             directory != NULL && strlen(directory) < 30 ? directory : "/tmp");
    const int fd = mkstemp(x.verbose);
    if (fd < 0)
        return fail("%s: %s", x.verbose, strerror(errno));
    close(fd);
    /* Read by the library at its first call. */
    int code = setenv("ISOBIT_VERBOSE", "2", 1) || setenv("ISOBIT_VERBOSE_FILE", x.verbose, 1)
                   ? fail("not enough memory")
                   : run(&x, shape);
    unlink(x.verbose);
    for (size_t i = 0; i < OPERANDS; i++)
        free(x.operands[i]);
    iso_pool_destroy(x.pool);
    return code;
}
