/* SPDX-License-Identifier: MIT
 *
 * Long texts of decoders alone, which go through a model in parts: logits, scores, generation and
 * batches have the bits of one token after the other, at lengths around those of the parts, with
 * windows, shared heads, learned positions and caches of 16 bits, on every instruction set and with
 * threads; a long prompt holds up nobody for longer than a part; and memory grows by what the
 * caches take.
 */
#include "model_files.h"
#include "transformer.h"

#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

enum { PART = MODEL_PROMPT_ROWS, MOST = 2 * PART + 80, VOCABULARY = 50 };

static void ok(iso_status status, const iso_error *error) {
    if (status)
        fail_msg("status %d: %s", (int)status, error->message);
}

/* -------------------------------------------------------------------------------------- memory */

/* The arenas of the libraries come through here (model.cmake, --wrap). */
enum { BLOCKS = 4096 };
static void *blocks[BLOCKS];
static size_t live, peak;

void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *block);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void __wrap_free(void *block);

void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    void *block = __real_aligned_alloc(alignment, bytes);
    size_t i = 0;
    while (block && i < BLOCKS && blocks[i])
        i++;
    assert_true(i < BLOCKS);
    blocks[i] = block;
    live += malloc_usable_size(block);
    peak = live > peak ? live : peak;
    return block;
}

void __wrap_free(void *block) {
    for (size_t i = 0; block && i < BLOCKS; i++)
        if (blocks[i] == block) {
            live -= malloc_usable_size(block);
            blocks[i] = NULL;
            break;
        }
    __real_free(block);
}

/* -------------------------------------------------------------------------------------- models */

static blob read_file(const char *folder, const char *name) {
    char path[600], buffer[4096];
    blob b = {0};
    (void)snprintf(path, sizeof path, "%s/models/%s/%s", ISOBIT_TEST_DATA, folder, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, file)) > 0;)
        blob_add(&b, buffer, n);
    assert_int_equal(fclose(file), 0);
    return b;
}

/* The weights with a longer table of positions, of rows of d elements of 2 or 4 bytes. */
static void add_positions(blob *weights, const char *name, size_t rows) {
    uint64_t bytes;
    memcpy(&bytes, weights->bytes, sizeof bytes);
    json_t *header = json_loadb((const char *)weights->bytes + 8, (size_t)bytes, 0, NULL);
    json_t *old = json_object_get(header, name);
    assert_non_null(old);
    const size_t d = (size_t)json_integer_value(json_array_get(json_object_get(old, "shape"), 1));
    const char *dtype = json_string_value(json_object_get(old, "dtype"));
    const int halves = strcmp(dtype, "F16") == 0;
    const size_t data = weights->count - 8 - (size_t)bytes, more = rows * d * (halves ? 2 : 4);
    json_t *table = json_pack("{s:s, s:[I,I], s:[I,I]}", "dtype", dtype, "shape", (json_int_t)rows,
                              (json_int_t)d, "data_offsets", (json_int_t)data,
                              (json_int_t)data + (json_int_t)more);
    assert_int_equal(json_object_set(header, "nobody.asks.for.this", old), 0);
    assert_int_equal(json_object_set_new(header, name, table), 0);
    char *text = json_dumps(header, JSON_COMPACT);
    blob b = blob_file(text, strlen(text), 0);
    blob_add(&b, weights->bytes + 8 + bytes, data);
    uint32_t x = 7;
    for (size_t i = 0; i < rows * d; i++) {
        x = x * 1664525u + 1013904223u;
        const uint16_t half = (uint16_t)(0x3000 | (x >> 16 & 0x87ff)); /* 1/8 to 1/2 */
        const float one = (float)(int32_t)x / 4e9f;
        blob_add(&b, halves ? (const void *)&half : &one, halves ? 2 : 4);
    }
    free(text);
    json_decref(header);
    blob_free(weights);
    *weights = b;
}

typedef struct folder {
    const char *name, *changes; /* of the configuration, beside the number of positions */
    const char *positions, *table;
} folder;

#define ROTARY "max_position_embeddings", NULL
static const folder folders[] = {
    {"gpt2", "{}", "n_positions", "transformer.wpe.weight"},
    {"opt-f16", "{}", "max_position_embeddings", "model.decoder.embed_positions.weight"},
    {"llama", "{}", ROTARY},
    {"llama3-bf16", "{}", ROTARY},
    {"qwen2-f16", "{}", ROTARY},
    {"mistral", "{}", ROTARY},
    {"mistral-window", "{\"sliding_window\": 300}", ROTARY},
    {"qwen2-window", "{\"sliding_window\": 700}", ROTARY},
    {"qwen3-bf16", "{}", ROTARY},
    {"phi3-bf16", "{\"sliding_window\": 513}", ROTARY},
    {"gemma-bf16", "{}", ROTARY},
    {"gemma2-bf16", "{\"sliding_window\": 100}", ROTARY},
    {"gemma3-bf16", "{\"sliding_window\": 350}", ROTARY},
};
enum { FOLDERS = sizeof folders / sizeof *folders };

static iso_model *load(const folder *f, size_t positions, size_t cache) {
    files made;
    iso_error error = {0};
    iso_model *model = NULL;
    const iso_load_options options = {.size = sizeof options, .cache = cache};
    blob config = read_file(f->name, "config.json"),
         weights = read_file(f->name, "model.safetensors");
    json_t *root = json_loadb((const char *)config.bytes, config.count, 0, NULL);
    json_t *changes = json_loads(f->changes, 0, NULL);
    assert_true(root && changes);
    assert_int_equal(json_object_update(root, changes), 0);
    assert_int_equal(json_object_set_new(root, f->positions, json_integer((json_int_t)positions)),
                     0);
    if (f->table)
        add_positions(&weights, f->table, positions + (strcmp(f->name, "opt-f16") ? 0 : 2));
    char *text = json_dumps(root, 0);
    files_make(&made);
    files_text(&made, "config.json", text);
    files_write(&made, "model.safetensors", weights.bytes, weights.count);
    ok(iso_model_load(&model, made.directory, &options, NULL, &error), &error);
    files_remove(&made);
    free(text);
    json_decref(root);
    json_decref(changes);
    blob_free(&config);
    blob_free(&weights);
    assert_int_equal(iso_model_get_info(model)->max_positions, positions);
    assert_int_equal(iso_model_get_info(model)->target_vocabulary, VOCABULARY);
    return model;
}

static void make_text(uint32_t *ids, size_t count, uint32_t seed) {
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        ids[i] = (seed >> 8) % VOCABULARY;
    }
}

/* Where it is slow, one with a window and shared heads, and the best set alone. */
static bool is_slow(void) { return getenv("ISOBIT_EMULATED") != NULL; }
static size_t first_folder(void) { return is_slow() ? 6 : 0; }
static size_t folder_step(void) { return is_slow() ? FOLDERS : 1; }

/* --------------------------------------------------------------------------------------- tests */

static float steps[MOST * VOCABULARY], logits[MOST * VOCABULARY];

/* The rows of `logits` that a text has when each token is computed on its own. */
static void make_steps(const iso_model *model, const uint32_t *ids, size_t count) {
    iso_error error = {0};
    ok(iso_logits_f32(steps, model, NULL, 0, ids, count, 1, NULL, &error), &error);
}

static void one_of_lengths(const iso_model *model, const iso_context *context,
                           const uint32_t *ids) {
    static const size_t lengths[] = {MOST, PART - 1, PART, PART + 1, 2 * PART, 2 * PART + 1};
    for (size_t i = 0; i < (context->isa == iso_isa_active() && !is_slow() ? 6 : 1); i++) {
        const size_t n = lengths[i];
        iso_error error = {0};
        memset(logits, 0xff, sizeof logits);
        ok(iso_logits_f32(logits, model, NULL, 0, ids, n, 0, context, &error), &error);
        assert_memory_equal(logits, steps, n * VOCABULARY * sizeof *logits);
    }
}

/* At once, and that is in parts, as step by step. */
static void test_logits(void **state) {
    static uint32_t ids[MOST];
    iso_pool *pool;
    assert_int_equal(iso_pool_create(&pool, 3), ISOBIT_OK);
    for (size_t f = first_folder(); f < 2 * FOLDERS; f += folder_step()) {
        const size_t cache = f < FOLDERS ? ISOBIT_CACHE_F32 : 1 + f % 2;
        iso_model *model = load(&folders[f % FOLDERS], MOST, cache);
        make_text(ids, MOST, (uint32_t)f);
        make_steps(model, ids, MOST);
        for (size_t i = 0; i < iso_isa_count(); i++) {
            const iso_context context = {.size = sizeof context,
                                         .isa = iso_isa_get(i),
                                         .executor = (f + i) % 2 ? iso_pool_executor(pool) : NULL};
            /* levels, avx512_vnni and the like, have the kernels of their set */
            const bool other = is_slow() || strchr(iso_isa_name(context.isa), '_') != NULL;
            if (!iso_isa_missing(context.isa) && (!other || context.isa == iso_isa_active()))
                one_of_lengths(model, &context, ids);
        }
        iso_model_free(model);
    }
    iso_pool_destroy(pool);
    (void)state;
}

/* Where a target begins and ends in the first part of a text, in a later one, and at their ends. */
static void test_scores(void **state) {
    static const size_t S[] = {1, PART, PART + 1, 600, 100, 3, PART - 3, 2 * PART + 1, 1};
    static const size_t T[] = {600, 1, 2, 500, 100, 20, 4, 60, PART};
    enum { COUNT = sizeof S / sizeof *S };
    static uint32_t ids[COUNT][MOST], sources[COUNT * MOST], targets[COUNT * MOST];
    static float scores[COUNT * MOST];
    const iso_softmax_options log = {.size = sizeof log, .log = 1};
    iso_error error = {0};
    for (size_t f = first_folder(); f < FOLDERS; f += folder_step()) {
        iso_model *model = load(&folders[f], MOST, f % 3);
        size_t s = 0, t = 0;
        const size_t count = is_slow() ? 3 : COUNT;
        for (size_t i = 0; i < count; i++) {
            make_text(ids[i], S[i] + T[i], (uint32_t)(f + i));
            memcpy(sources + s, ids[i], S[i] * sizeof **ids);
            memcpy(targets + t, ids[i] + S[i], T[i] * sizeof **ids);
            s += S[i], t += T[i];
        }
        ok(iso_score_f32(scores, model, sources, S, targets, T, count, NULL, &error), &error);
        t = 0;
        for (size_t i = 0; i < count; t += T[i++]) {
            make_steps(model, ids[i], S[i] + T[i] - 1);
            ok(iso_softmax_f32(logits, VOCABULARY, steps, VOCABULARY, S[i] + T[i] - 1, VOCABULARY,
                               &log, NULL),
               &error);
            for (size_t j = 0; j < T[i]; j++) {
                const float *want = &logits[(S[i] - 1 + j) * VOCABULARY + ids[i][S[i] + j]];
                assert_memory_equal(&scores[t + j], want, sizeof *want);
            }
        }
        iso_model_free(model);
    }
    (void)state;
}

/* A hypothesis has the log-probabilities of the same tokens one after the other. */
static void check_hypothesis(const iso_model *model, const uint32_t *prompt, size_t S,
                             const iso_hypothesis *h, int greedy) {
    static uint32_t ids[MOST + 80];
    const iso_softmax_options log = {.size = sizeof log, .log = 1};
    assert_true(h->length > 0 && S + h->length - 1 <= MOST);
    memcpy(ids, prompt, S * sizeof *ids);
    memcpy(ids + S, h->ids, h->length * sizeof *ids);
    make_steps(model, ids, S + h->length - 1);
    for (size_t t = 0; t < h->length; t++) {
        float *row = steps + (S - 1 + t) * VOCABULARY;
        assert_int_equal(
            iso_softmax_f32(row, VOCABULARY, row, VOCABULARY, 1, VOCABULARY, &log, NULL),
            ISOBIT_OK);
        assert_memory_equal(&h->log_probs[t], &row[h->ids[t]], sizeof *row);
        for (size_t v = 0; v < VOCABULARY && greedy; v++)
            assert_true(row[v] <= row[h->ids[t]]);
    }
}

enum { PROMPTS = 7 };
static const size_t prompt_lengths[PROMPTS] = {PART + 1,      700,      20, PART,
                                               2 * PART + 40, PART - 1, 300};

static void test_generation(void **state) {
    static uint32_t prompts[PROMPTS * MOST];
    iso_pool *pool;
    assert_int_equal(iso_pool_create(&pool, 2), ISOBIT_OK);
    const iso_context context = {.size = sizeof context, .executor = iso_pool_executor(pool)};
    make_text(prompts, sizeof prompts / sizeof *prompts, 3);
    for (size_t f = first_folder(); f < FOLDERS; f += folder_step()) {
        iso_model *model = load(&folders[f], MOST, f % 3);
        for (int kind = 0; kind < 3; kind++) { /* greedy, beams, samples */
            const iso_generate_options o = {.size = sizeof o,
                                            .beams = kind == 1 ? 3 : 1,
                                            .hypotheses = kind ? 3 : 1,
                                            .max_new_tokens = 9,
                                            .batch_tokens = f % 2 ? 0 : 100000,
                                            .sampling = kind == 2 ? ISOBIT_SAMPLING_ON
                                                                  : ISOBIT_SAMPLING_OFF};
            iso_generation *g;
            iso_error error = {0};
            const size_t count = is_slow() ? 3 : PROMPTS;
            ok(iso_generate(&g, model, prompts, prompt_lengths, count, &o, &context, &error),
               &error);
            const uint32_t *prompt = prompts;
            for (size_t i = 0; i < count; prompt += prompt_lengths[i++])
                for (size_t h = 0; h < (is_slow() ? !kind || i % 2 == 0 : o.hypotheses); h++)
                    check_hypothesis(model, prompt, prompt_lengths[i],
                                     &g->best[i * o.hypotheses + h], kind == 0);
            iso_generation_free(g);
        }
        iso_model_free(model);
    }
    iso_pool_destroy(pool);
    (void)state;
}

static int hear(void *user, const iso_token *token) {
    size_t *tokens = user;
    (void)token;
    ++*tokens;
    return 0;
}

/* While a long prompt is read, those that run get a token in each step. */
static void test_batch(void **state) {
    enum { SHORT = 12, LONG = 2 * PART + 40, NEW = 30 };
    static uint32_t ids[SHORT + LONG];
    make_text(ids, SHORT + LONG, 5);
    for (size_t f = first_folder(); f < FOLDERS; f += folder_step()) {
        iso_model *model = load(&folders[f], MOST, f % 3);
        const size_t part = f % 2 ? 0 : 200, each = part ? part : PART;
        const size_t parts = (LONG - 1 + each - 1) / each; /* but for its last token */
        const iso_batch_options size = {
            .size = sizeof size, .max_length = MOST, .step_tokens = part};
        size_t heard[3] = {0};
        iso_generate_options o = {
            .size = sizeof o, .max_new_tokens = NEW, .min_length = NEW, .on_token = hear};
        iso_batch *b;
        iso_error error = {0};
        size_t number, unfinished;
        ok(iso_batch_create(&b, model, &size, NULL, &error), &error);
        o.user = &heard[0];
        ok(iso_batch_add(b, NULL, ids, SHORT, &o, &error), &error);
        ok(iso_batch_step(b, NULL, &error), &error);
        o.user = &heard[1];
        ok(iso_batch_add(b, NULL, ids + SHORT, LONG, &o, &error), &error);
        for (size_t step = 1; step <= parts; step++) {
            if (step == 2) { /* nobody overtakes */
                o.user = &heard[2];
                ok(iso_batch_add(b, NULL, ids + 3, SHORT, &o, &error), &error);
            }
            ok(iso_batch_step(b, NULL, &error), &error);
            assert_int_equal(heard[0], 1 + step);
            assert_int_equal(heard[1], step == parts);
            assert_true(!heard[2] || step == parts);
        }
        for (unfinished = 1; unfinished;)
            ok(iso_batch_step(b, &unfinished, &error), &error);
        for (size_t i = 0; i < 3; i++) {
            iso_generation *g;
            ok(iso_batch_take(b, &g, &number, &error), &error);
            assert_non_null(g);
            const size_t first[] = {0, SHORT, 3}, lengths[] = {SHORT, LONG, SHORT};
            iso_generation *alone;
            o.on_token = NULL;
            ok(iso_generate(&alone, model, ids + first[number], &lengths[number], 1, &o, NULL,
                            &error),
               &error);
            const size_t n = alone->best[0].length;
            assert_int_equal(g->best[0].length, n);
            assert_memory_equal(g->best[0].ids, alone->best[0].ids, n * sizeof(uint32_t));
            assert_memory_equal(g->best[0].log_probs, alone->best[0].log_probs, n * sizeof(float));
            iso_generation_free(alone);
            iso_generation_free(g);
        }
        iso_batch_free(b);
        iso_model_free(model);
    }
    (void)state;
}

/* The most memory that a call has at a time. */
static size_t peak_of(const iso_model *model, int call, const uint32_t *ids, size_t tokens,
                      float *y) {
    const size_t T = tokens - 8;
    const size_t lengths[] = {8};
    iso_generate_options o = {.size = sizeof o, .max_new_tokens = 2};
    iso_generation *g = NULL;
    iso_error error = {0};
    const size_t before = live;
    peak = live;
    if (call == 0)
        ok(iso_generate(&g, model, ids, &tokens, 1, &o, NULL, &error), &error);
    else if (call == 1)
        ok(iso_score_f32(y, model, ids, lengths, ids + 8, &T, 1, NULL, &error), &error);
    else
        ok(iso_logits_f32(y, model, NULL, 0, ids, tokens, 0, NULL, &error), &error);
    iso_generation_free(g);
    assert_int_equal(live, before);
    return peak - before;
}

/* For each token more a cache is longer by two rows of each layer, and some arrays of ids. */
static void test_memory(void **state) {
    enum { FEW = 2 * PART, MANY = 8 * PART, ROW = 100, LAYERS = 2, KEYS = 2 * 8 };
    static uint32_t ids[MANY];
    static float y[MANY * VOCABULARY];
    iso_model *model = load(&folders[2], MANY + 2, ISOBIT_CACHE_F32);
    const size_t tokens = is_slow() ? MANY / 2 : MANY;
    make_text(ids, MANY, 1);
    for (int call = 0; call < 3; call += is_slow() ? 2 : 1) {
        const size_t few = peak_of(model, call, ids, FEW, y),
                     many = peak_of(model, call, ids, tokens, y);
        const size_t most = (tokens - FEW) * (LAYERS * 2 * KEYS * sizeof(float) + ROW);
        if (many - few > most)
            fail_msg("call %d: %zu and %zu bytes, %zu more are allowed", call, few, many, most);
    }
    iso_model_free(model);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_logits), cmocka_unit_test(test_scores),
                                       cmocka_unit_test(test_generation),
                                       cmocka_unit_test(test_batch), cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests_name("long", tests, NULL, NULL);
}
