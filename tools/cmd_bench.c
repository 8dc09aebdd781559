/* SPDX-License-Identifier: MIT
 *
 * isobit bench: how fast a model is here, and how fast it could be at best. Encoding is compared
 * with the peak of fused multiply-adds, or of int8 or BF16 where the matrices are multiplied so. A
 * step of decoding reads all weights of the decoder and multiplies them with its rows: its bound is
 * the longer of reading so many bytes and of so many multiply-adds. Both peaks are measured beside
 * each case, with the code of isobit_bench; only builds that have it (ISOBIT_BENCH_PEAKS) give
 * percentages.
 */
#include "cli.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#if defined(ISOBIT_BENCH_PEAKS)
#include "peaks.h"
#endif

enum { SOURCE_TOKENS = 32, TARGET_TOKENS = 32, CASES = 6, ENCODER_CASES = 2 };
static const double default_seconds = 2;

static const char *const kind_names[ISOBIT_PROFILE_KINDS] = {
    "linear", "logits", "attention", "norm", "embedding", "cache", "search", "other"};

/* What matrices are multiplied with. */
static const struct multiply {
    const char *name, *peak, *unit, *json;
} multiplies[] = {{"fma", "FMA", "GFLOP/s", "fma_peak"},
                  {"int8", "int8", "GOP/s", "int8_peak"},
                  {"bf16", "bf16", "GFLOP/s", "bf16_peak"}};
enum { BY_FMA, BY_INT8, BY_BF16 };

struct bench {
    struct session session;
    double seconds;        /* for each case */
    size_t threads, cases; /* without a decoder the first ENCODER_CASES */
    uint32_t *sources;
    size_t *lengths;
    float *output;
    char *memory; /* what the reading peak reads */
    size_t memory_bytes;
    double own_peak; /* of memory, before that */
};

struct result {
    char name[40];
    size_t sentences, tokens, beams; /* tokens of a source; beams 0: encode only */
    size_t runs;
    double seconds;                           /* of the fastest call */
    double rate, flops;                       /* tokens/s; of all of its matrix products */
    double step_seconds, step_flops, bytes;   /* of the fastest step */
    double kinds[ISOBIT_PROFILE_KINDS], kind; /* seconds, and their sum */
    double multiply, read, bound;             /* peaks; seconds at best */
    bool reads;                               /* the bound is reading */
};

/* ------------------------------------------------------------------------------ measurements */

static int multiplies_by(const struct bench *b) {
    const iso_model_info *i = b->session.info;
    const bool bf16 = native_numerics(&b->session.context) != NULL && i->parameters_16 != 0;
    return i->parameters_int8 != 0 || i->parameters_int4 != 0 ? BY_INT8 : bf16 ? BY_BF16 : BY_FMA;
}

static double peak_memory(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? 1024.0 * (double)usage.ru_maxrss : 0;
}

/* Of all but the memory that the reading peak reads. */
static double model_memory(const struct bench *b) {
    const double since = peak_memory() - (double)b->memory_bytes;
    return since > b->own_peak ? since : b->own_peak;
}

#if defined(ISOBIT_BENCH_PEAKS)
enum { PEAK_SHOTS = 3 };
static const double peak_seconds = 0.01; /* of a shot */

static const enum bench_bound bounds[] = {
    [BY_FMA] = BENCH_FMA, [BY_INT8] = BENCH_INT8, [BY_BF16] = BENCH_BF16};

static double larger(double a, double b) { return a > b ? a : b; }

/* Peaks in the neighbourhood of a case; called before and after each of its calls. */
static void measure_peaks(struct bench *b, struct result *r) {
    const struct bench_place place = {b->session.context.isa, b->session.context.executor,
                                      b->threads};
    r->multiply = larger(r->multiply, bench_best_peak(&place, bounds[multiplies_by(b)], NULL, NULL,
                                                      0, peak_seconds, 1));
    if (r->bytes <= 0)
        return;
    const size_t bytes = (size_t)r->bytes;
    if (b->memory_bytes < bytes) {
        free(b->memory);
        if (b->own_peak <= 0)
            b->own_peak = peak_memory();
        /* In huge pages, as the weights: the peak of small ones is little more than half of it. */
        const size_t huge = (size_t)2 << 20, all = (bytes + 4096 + huge - 1) / huge * huge;
        b->memory = aligned_alloc(huge, all);
        b->memory_bytes = b->memory != NULL ? all : 0;
        if (b->memory != NULL) {
            (void)madvise(b->memory, all, MADV_HUGEPAGE);
            memset(b->memory, 1, all);
        }
    }
    if (b->memory != NULL)
        r->read = larger(r->read, bench_best_peak(&place, BENCH_READ, b->memory, NULL, bytes,
                                                  peak_seconds, PEAK_SHOTS));
}
#else
static void measure_peaks(struct bench *b, struct result *r) {
    (void)b;
    (void)r;
}
#endif

/* How many tokens a call generates. Of a decoder alone prompts take positions, too, and what is
 * measured in place of encoding is the time to the first token. */
static size_t target_tokens(const struct bench *b, const struct result *r) {
    size_t most = b->session.info->max_positions;
    if (b->session.info->encoder_layers == 0)
        most = r->beams == 0 ? 1 : most + 1 - r->tokens;
    return most < TARGET_TOKENS ? most : TARGET_TOKENS;
}

static int call(struct bench *b, const struct result *r) {
    iso_error error = {0};
    iso_status status;
    const bool prompts = b->session.info->encoder_layers == 0;
    if (r->beams == 0 && !prompts) {
        status = iso_encode_batch_f32(b->output, b->session.model, b->sources, b->lengths,
                                      r->sentences, &b->session.context, &error);
        return status == ISOBIT_OK ? 0 : fail_error(&error, status);
    }
    /* No sentence ends before all of them do: each call has the same work. */
    const size_t tokens = target_tokens(b, r), before = prompts ? r->tokens : 1;
    const iso_generate_options how = {.size = sizeof how,
                                      .beams = r->beams != 0 ? r->beams : 1,
                                      .sampling = ISOBIT_SAMPLING_OFF,
                                      .max_new_tokens = tokens,
                                      .min_length = tokens + before};
    iso_generation *generation = NULL;
    status = iso_generate(&generation, b->session.model, b->sources, b->lengths, r->sentences, &how,
                          &b->session.context, &error);
    iso_generation_free(generation);
    return status == ISOBIT_OK ? 0 : fail_error(&error, status);
}

/* Calls once, and adds what the profile says to the result. */
static int call_profiled(struct bench *b, struct result *r, bool by_kind) {
    iso_profile p = {.size = sizeof p, .by_kind = by_kind};
    iso_model_set_profile(b->session.model, &p);
    const double start = seconds_now();
    int code = call(b, r);
    const double seconds = seconds_now() - start;
    iso_model_set_profile(b->session.model, NULL);
    if (code != 0)
        return code;
    if (by_kind) {
        for (int k = 0; k < ISOBIT_PROFILE_KINDS; k++) {
            r->kinds[k] += p.kind_seconds[k];
            r->kind += p.kind_seconds[k];
        }
        return 0;
    }
    r->runs++;
    r->flops = p.flops;
    if (r->seconds <= 0 || seconds < r->seconds)
        r->seconds = seconds;
    if (p.steps == 0)
        return 0;
    const double steps = (double)p.steps, step = p.fastest_step;
    r->bytes = p.step_weight_bytes / steps;
    r->step_flops = p.step_flops / steps;
    if (r->step_seconds <= 0 || step < r->step_seconds)
        r->step_seconds = step;
    return 0;
}

static int measure(struct bench *b, struct result *r) {
    size_t length = b->session.info->max_positions, all = r->sentences;
    if (b->session.info->encoder_layers == 0 && r->beams == 0)
        snprintf(r->name, sizeof r->name, "prompt %zu x %zu", all, r->tokens);
    r->tokens = r->tokens < length ? r->tokens : length;
    for (size_t i = 0; i < all; i++)
        b->lengths[i] = r->tokens;
    int code = call(b, r); /* caches, page tables, threads */
    const double end = seconds_now() + b->seconds;
    do {
        measure_peaks(b, r);
        if (code == 0)
            code = call_profiled(b, r, false);
        measure_peaks(b, r);
        if (code == 0)
            code = call_profiled(b, r, true);
    } while (code == 0 && seconds_now() < end);
    if (code != 0)
        return code;
    if (r->beams == 0) {
        r->rate = (double)(all * r->tokens) / r->seconds;
        r->bound = r->multiply > 0 ? r->flops / r->multiply : 0;
        return 0;
    }
    r->rate = (double)(all * target_tokens(b, r)) / r->seconds;
    if (r->multiply > 0 && r->read > 0) {
        const double reading = r->bytes / r->read, multiplying = r->step_flops / r->multiply;
        r->reads = reading > multiplying;
        r->bound = r->reads ? reading : multiplying;
    }
    return 0;
}

/* The longest part of a call: what the bound is compared with. */
static double measured(const struct result *r) {
    return r->beams == 0 ? r->seconds : r->step_seconds;
}

static double speed(const struct result *r) {
    return (r->beams == 0 ? r->flops : r->step_flops) / measured(r) * 1e-9;
}

/* ------------------------------------------------------------------------------------ output */

static void print_text(const struct bench *b, const struct result *results) {
    const iso_model_info *i = b->session.info;
    const struct multiply *by = &multiplies[multiplies_by(b)];
    printf("model    %s: d %zu, heads %zu, ffn %zu, layers %zu + %zu, vocabulary %zu; %.1f million "
           "parameters%s\n",
           i->family, i->d, i->encoder_layers != 0 ? i->encoder_heads : i->decoder_heads,
           i->encoder_layers != 0 ? i->encoder_ffn : i->decoder_ffn, i->encoder_layers,
           i->decoder_layers, i->decoder_layers != 0 ? i->target_vocabulary : i->source_vocabulary,
           (double)i->parameters * 1e-6,
           i->parameters_int4   ? ", int4"
           : i->parameters_int8 ? ", int8"
                                : "");
    const char *native = native_numerics(&b->session.context);
    printf("runs on  %s, threads %zu%s%s\n\n", iso_isa_name(b->session.context.isa), b->threads,
           native != NULL ? ", numerics " : "", native != NULL ? native : "");
    printf("%-24s %9s %9s %9s  %s\n", "", "tokens/s", "ms", "GFLOP/s", "of the bound");
    for (size_t c = 0; c < b->cases; c++) {
        const struct result *r = &results[c];
        printf("%-24s %9.0f %9.3f %9.1f  ", r->name, r->rate, 1e3 * measured(r), speed(r));
        if (r->bound <= 0)
            puts("-");
        else if (r->reads)
            printf("%5.1f %%: reads %.1f of %.1f GB/s\n", 100 * r->bound / measured(r),
                   r->bytes / measured(r) * 1e-9, r->read * 1e-9);
        else
            printf("%5.1f %%: %s peak %.1f %s\n", 100 * r->bound / measured(r), by->peak,
                   r->multiply * 1e-9, by->unit);
    }
    puts("\nms and GFLOP/s: of a call when encoding, or when reading prompts; of a step when "
         "decoding.\n"
         "tokens/s: with all that a call does, target tokens when decoding.\n");
    printf("%-24s", "% of the time");
    for (int k = 0; k < ISOBIT_PROFILE_KINDS; k++)
        printf(" %9s", kind_names[k]);
    for (size_t c = 0; c < b->cases; c++) {
        printf("\n%-24s", results[c].name);
        for (int k = 0; k < ISOBIT_PROFILE_KINDS; k++)
            printf(" %9.1f", 100 * results[c].kinds[k] / results[c].kind);
    }
    printf("\n\npeak memory %.1f MiB, weights %.1f MiB\n", model_memory(b) / (1 << 20),
           (double)i->weight_bytes / (1 << 20));
}

static json_t *json_result(const struct result *r, const struct multiply *by) {
    json_t *object = json_object(), *kinds = json_object();
    json_object_set_new(object, "name", json_string(r->name));
    json_object_set_new(object, "sentences", json_integer((json_int_t)r->sentences));
    json_object_set_new(object, "source_tokens", json_integer((json_int_t)r->tokens));
    json_object_set_new(object, "beams", json_integer((json_int_t)r->beams));
    json_object_set_new(object, "runs", json_integer((json_int_t)r->runs));
    json_object_set_new(object, "tokens_per_second", json_real(r->rate));
    json_object_set_new(object, "seconds", json_real(r->seconds));
    json_object_set_new(object, "flops", json_real(r->flops));
    if (r->beams != 0) {
        json_object_set_new(object, "step_seconds", json_real(r->step_seconds));
        json_object_set_new(object, "step_flops", json_real(r->step_flops));
        json_object_set_new(object, "step_weight_bytes", json_real(r->bytes));
    }
    if (r->bound > 0) {
        json_object_set_new(object, by->json, json_real(r->multiply));
        if (r->beams != 0)
            json_object_set_new(object, "read_peak", json_real(r->read));
        json_object_set_new(object, "bound", json_string(r->reads ? "read" : by->name));
        json_object_set_new(object, "percent_of_bound", json_real(100 * r->bound / measured(r)));
    }
    for (int k = 0; k < ISOBIT_PROFILE_KINDS; k++)
        json_object_set_new(kinds, kind_names[k], json_real(100 * r->kinds[k] / r->kind));
    json_object_set_new(object, "percent_of_time", kinds);
    return object;
}

static int print_json(const struct bench *b, const struct result *results) {
    const iso_model_info *i = b->session.info;
    json_t *object = json_object(), *cases = json_array();
    json_object_set_new(object, "version", json_string(iso_version()));
    json_object_set_new(object, "family", json_string(i->family));
    json_object_set_new(object, "parameters", json_integer((json_int_t)i->parameters));
    json_object_set_new(object, "parameters_16", json_integer((json_int_t)i->parameters_16));
    json_object_set_new(object, "parameters_8", json_integer((json_int_t)i->parameters_8));
    json_object_set_new(object, "parameters_4", json_integer((json_int_t)i->parameters_4));
    json_object_set_new(object, "parameters_int8", json_integer((json_int_t)i->parameters_int8));
    json_object_set_new(object, "parameters_int4", json_integer((json_int_t)i->parameters_int4));
    json_object_set_new(object, "weight_bytes", json_integer((json_int_t)i->weight_bytes));
    json_object_set_new(object, "isa", json_string(iso_isa_name(b->session.context.isa)));
    json_object_set_new(object, "numerics", json_string(iso_numerics(b->session.context.isa)));
    json_object_set_new(object, "threads", json_integer((json_int_t)b->threads));
    for (size_t c = 0; c < b->cases; c++)
        json_array_append_new(cases, json_result(&results[c], &multiplies[multiplies_by(b)]));
    json_object_set_new(object, "cases", cases);
    json_object_set_new(object, "peak_memory_bytes", json_integer((json_int_t)model_memory(b)));
    char *text = json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    json_decref(object);
    if (text == NULL)
        return fail("out of memory for the output");
    puts(text);
    free(text);
    return 0;
}

/* ----------------------------------------------------------------------------------- the call */

static int bench(struct bench *b, const struct options *options) {
    struct result results[CASES] = {
        {.name = "encode 1 x 128", .sentences = 1, .tokens = 128},
        {.name = "encode 32 x 32", .sentences = 32, .tokens = 32},
        {.name = "decode 1, greedy", .sentences = 1, .tokens = SOURCE_TOKENS, .beams = 1},
        {.name = "decode 32, greedy", .sentences = 32, .tokens = SOURCE_TOKENS, .beams = 1},
        {.name = "decode 1, 4 beams", .sentences = 1, .tokens = SOURCE_TOKENS, .beams = 4},
        {.name = "decode 8, 4 beams", .sentences = 8, .tokens = SOURCE_TOKENS, .beams = 4},
    };
    const size_t most = 32 * SOURCE_TOKENS;
    b->cases = b->session.info->decoder_layers != 0 ? CASES : ENCODER_CASES;
    b->sources = malloc(most * sizeof *b->sources);
    b->lengths = malloc(32 * sizeof *b->lengths);
    b->output = malloc(most * b->session.info->d * sizeof *b->output);
    if (b->sources == NULL || b->lengths == NULL || b->output == NULL)
        return fail("out of memory");
    for (size_t i = 0; i < most; i++) /* all over the vocabulary */
        b->sources[i] = (uint32_t)(i * 7919 % b->session.info->source_vocabulary);
    int code = 0;
    for (size_t c = 0; c < b->cases && code == 0; c++)
        code = measure(b, &results[c]);
    if (code != 0)
        return code;
    if (options->json)
        return print_json(b, results);
    print_text(b, results);
    return 0;
}

int cmd_bench(const struct options *options) {
    struct bench b = {.seconds = options->seconds > 0 ? options->seconds : default_seconds};
    struct options own = *options;
    char directory[RANDOM_MODEL_PATH] = "";
    int code = 0;
    if (options->base && (code = random_model_make(directory)) == 0)
        own.model = directory;
    if (code == 0)
        code = session_open(&b.session, &own, 0);
    random_model_remove(directory);
    b.threads = b.session.context.executor != NULL ? b.session.context.executor->max_threads : 1;
    if (code == 0)
        code = bench(&b, options);
    free(b.sources);
    free(b.lengths);
    free(b.output);
    free(b.memory);
    session_close(&b.session);
    return code;
}
