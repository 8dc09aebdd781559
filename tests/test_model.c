/* SPDX-License-Identifier: MIT
 *
 * The model layer against PyTorch (tests/data/models, made by tools/make_golden.py), against
 * itself (any batch, any number of threads, any instruction set, cached or not: the same bits),
 * and the beam search against a literal one that recomputes everything from scratch.
 */
#include "test_model.h"

#include "sanitized.h"

#define ATTENTION_ERROR 1e-5

const char *const golden[] = {"marian-swish",
                              "marian-relu-f16",
                              "marian-gelu-bf16",
                              "paper",
                              "paper-untied-f16",
                              "paper-alias-bf16",
                              "bart",
                              "mbart-f16",
                              "pegasus-bf16",
                              "m2m-100",
                              "gpt2",
                              "gpt2-untied-f16",
                              "t5",
                              "flan-t5-bf16",
                              "mt5-f16",
                              "umt5",
                              "llama",
                              "llama3-bf16",
                              "qwen2-f16",
                              "mistral",
                              "llama-yarn",
                              "llama-longrope",
                              "mistral-window",
                              "qwen2-window",
                              "qwen3-bf16",
                              "phi3-bf16",
                              "phi3-longrope",
                              "gemma-bf16",
                              "opt-f16",
                              "gemma2-bf16",
                              "gemma3-bf16",
                              "gemma3-part"};
const size_t golden_count = sizeof golden / sizeof *golden;
void ok(iso_status status, const iso_error *error) {
    if (status)
        fail_msg("status %d: %s", (int)status, error->message);
}

iso_model *load(const char *directory) {
    iso_model *model = NULL;
    iso_error error = {0};
    ok(iso_model_load(&model, directory, NULL, NULL, &error), &error);
    return model;
}

iso_model *load_golden(const char *name, json_t **cases) {
    char path[600];
    (void)snprintf(path, sizeof path, "%s/models/%s", ISOBIT_TEST_DATA, name);
    iso_model *model = load(path);
    if (cases) {
        (void)snprintf(path, sizeof path, "%s/models/%s/expected.json", ISOBIT_TEST_DATA, name);
        *cases = json_load_file(path, 0, NULL);
        assert_non_null(*cases);
    }
    return model;
}

size_t read_ids(const json_t *list, uint32_t *ids, size_t room) {
    assert_true(json_array_size(list) <= room);
    for (size_t i = 0; i < json_array_size(list); i++)
        ids[i] = (uint32_t)json_integer_value(json_array_get(list, i));
    return json_array_size(list);
}

/* The largest difference between nested lists and an array. */
static double largest_error(const json_t *list, const float **values) {
    double most = 0;
    if (!json_is_array(list))
        return fabs(json_number_value(list) - (double)*(*values)++);
    for (size_t i = 0; i < json_array_size(list); i++) {
        double error = largest_error(json_array_get(list, i), values);
        most = !(error <= most) ? error : most; /* a NaN stays */
    }
    return most;
}

void check_close(const json_t *list, const float *values, size_t count, double tolerance,
                 const char *what) {
    const float *at = values;
    double error = largest_error(list, &at);
    assert_int_equal(at - values, count);
    if (!(error <= tolerance))
        fail_msg("%s: error %g, at most %g is allowed", what, error, tolerance);
}

static iso_generate_options settings(const json_t *s, size_t beams) {
    iso_generate_options o = {.size = sizeof o, .beams = beams, .attention = 1};
    const json_t *value;
    if ((value = json_object_get(s, "num_beams")))
        o.hypotheses = o.beams = (size_t)json_integer_value(value);
    if ((value = json_object_get(s, "length_penalty"))) {
        o.has_length_penalty = 1;
        o.length_penalty = (float)json_number_value(value);
    }
    if ((value = json_object_get(s, "early_stopping")))
        o.early_stopping = json_is_string(value) ? ISOBIT_EARLY_NEVER
                           : json_is_true(value) ? ISOBIT_EARLY_TRUE
                                                 : ISOBIT_EARLY_FALSE;
    if ((value = json_object_get(s, "no_repeat_ngram_size")))
        o.no_repeat_ngram = (size_t)json_integer_value(value);
    if ((value = json_object_get(s, "repetition_penalty")))
        o.repetition_penalty = (float)json_number_value(value);
    if ((value = json_object_get(s, "min_length")))
        o.min_length = (size_t)json_integer_value(value);
    return o;
}

static void check_ids(const iso_hypothesis *h, const json_t *expected, const char *what) {
    uint32_t ids[64];
    size_t n = read_ids(expected, ids, 64);
    int same = n == h->length && memcmp(ids, h->ids, n * sizeof *ids) == 0;
    for (size_t i = 0; !same && i < h->length; i++)
        print_error("  token %zu: %u, expected %d\n", i, h->ids[i], i < n ? (int)ids[i] : -1);
    if (!same)
        fail_msg("%s: other tokens", what);
}

/* A decoder alone has no source but a prompt, and no attention over an encoder. */
int has_encoder(const iso_model *model) { return iso_model_get_info(model)->encoder_layers != 0; }

void logits_of(float *logits, const iso_model *model, const uint32_t *source, size_t S,
               const uint32_t *target, size_t T, int stepwise) {
    iso_error error = {0};
    const int both = has_encoder(model);
    ok(iso_logits_f32(logits, model, both ? source : NULL, both ? S : 0, target, T, stepwise, NULL,
                      &error),
       &error);
}

/* Emulated, or with sanitizers, most tests take every eleventh model (model.cmake); a step of twice
 * that, less 1, is still each model elsewhere. */
size_t model_step(void) { return getenv("ISOBIT_LONG") ? 1 : getenv("ISOBIT_EMULATED") ? 11 : 1; }

static void test_golden(void **state) {
    /* Emulated, a third of them: the kernels have the bits of x86-64, where all of them run. */
    const size_t step = model_step() > 1 && !SANITIZED ? 3 : 1;
    for (size_t m = 0; m < golden_count; m += step) {
        json_t *cases, *c;
        iso_model *model = load_golden(golden[m], &cases);
        const iso_model_info *info = iso_model_get_info(model);
        const size_t V = info->target_vocabulary, d = info->d;
        const size_t heads = info->decoder_layers * info->decoder_heads;
        iso_error error = {0};
        size_t i;
        json_array_foreach(cases, i, c) {
            uint32_t source[64], target[64];
            size_t S = read_ids(json_object_get(c, "source"), source, 64);
            const int both = has_encoder(model);
            size_t T = read_ids(json_object_get(c, both ? "target" : "source"), target, 64);
            float *encoded = malloc(S * d * sizeof(float)), *logits = malloc(T * V * sizeof(float));
            if (both) {
                ok(iso_encode_f32(encoded, model, source, S, NULL, &error), &error);
                check_close(json_object_get(c, "encoder"), encoded, S * d, LOGITS_ERROR, golden[m]);
            }
            logits_of(logits, model, source, S, target, T, 0);
            check_close(json_object_get(c, "logits"), logits, T * V, LOGITS_ERROR, golden[m]);
            free(encoded);
            free(logits);

            json_t *run;
            size_t j;
            iso_generation *g;
            json_array_foreach(json_object_get(c, "greedy"), j, run) {
                iso_generate_options o = settings(json_object_get(run, "settings"), 1);
                o.attention = both;
                ok(iso_generate(&g, model, source, &S, 1, &o, NULL, &error), &error);
                check_ids(&g->best[0], json_object_get(run, "ids"), golden[m]);
                if (json_is_array(json_object_get(run, "attention")))
                    check_close(json_object_get(run, "attention"), g->best[0].attention,
                                heads * g->best[0].length * S, ATTENTION_ERROR, golden[m]);
                iso_generation_free(g);
            }
            json_array_foreach(json_object_get(c, "beams"), j, run) {
                iso_generate_options o = settings(json_object_get(run, "settings"), 1);
                char what[100];
                o.attention = both;
                (void)snprintf(what, sizeof what, "%s, source %zu, beams %zu", golden[m], i, j);
                ok(iso_generate(&g, model, source, &S, 1, &o, NULL, &error), &error);
                assert_int_equal(g->count, o.beams);
                for (size_t h = 0; h < o.beams; h++) {
                    double score =
                        json_number_value(json_array_get(json_object_get(run, "scores"), h));
                    check_ids(&g->best[h], json_array_get(json_object_get(run, "ids"), h), what);
                    if (!(fabs(score - (double)g->best[h].score) <= 1e-4 * (1 + fabs(score))))
                        fail_msg("%s: score %g, expected %g", what, (double)g->best[h].score,
                                 score);
                }
                const json_t *attention = json_object_get(run, "attention");
                for (size_t k = 0; k < 2 && json_is_array(json_array_get(attention, k)); k++) {
                    const iso_hypothesis *h = &g->best[k ? o.beams - 1 : 0];
                    check_close(json_array_get(attention, k), h->attention, heads * h->length * S,
                                ATTENTION_ERROR, what);
                }
                iso_generation_free(g);
            }
        }
        json_decref(cases);
        iso_model_free(model);
    }
    (void)state;
}

/* ------------------------------------------------------------------------- the shipped model */

static void test_g2p(void **state) {
    if (access(G2P "/model.safetensors", R_OK) != 0)
        skip();
    iso_model *model = load(G2P);
    const iso_model_info *info = iso_model_get_info(model);
    iso_tokenizer *t;
    iso_error error = {0};
    assert_string_equal(info->family, "isobit-transformer");
    assert_int_equal(info->eos_count, 1);
    assert_true(info->weight_bytes >= info->parameters * 4 - info->parameters_16 * 2);
    ok(iso_tokenizer_load(&t, G2P, &error), &error);
    static const char text[] = "\xc2\xbfna\xc3\x8fve? \xe2\x80\x9c"
                               "Don\xe2\x80\x99t\xe2\x80\x9d "
                               "co-operate... !? a#b";
    uint32_t ids[100];
    size_t lengths[10], id_count, sequences;
    ok(iso_tokenizer_encode(t, text, strlen(text), ids, 100, &id_count, lengths, 10, &sequences,
                            &error),
       &error);
    assert_int_equal(sequences, 5); /* naïve, don't, co, operate, a#b */
    static const size_t expected[] = {6, 6, 3, 8, 4};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(lengths[i], expected[i]);
    char back[100];
    size_t needed;
    assert_int_equal(iso_tokenizer_decode(t, ids, lengths[0], back, sizeof back, &needed), 0);
    assert_string_equal(back, "na\xc3\xafve");
    assert_int_equal(needed, 7);
    assert_int_equal(iso_tokenizer_decode(t, ids + 6, lengths[1], back, sizeof back, NULL), 0);
    assert_string_equal(back, "don't");
    assert_int_equal(ids[6 + 6 + 3 + 8 + 1], info->unk_id); /* the # of a#b */
    assert_int_equal(iso_tokenizer_decode(t, ids, lengths[0], back, 5, &needed),
                     ISOBIT_E_WORKSPACE);
    assert_string_equal(back, "na\xc3\xaf");
    assert_string_equal(iso_tokenizer_token(t, info->eos_ids[0]), "</s>");
    assert_null(iso_tokenizer_token(t, 100000));
    assert_int_equal(iso_tokenizer_encode(t, text, strlen(text), ids, 3, &id_count, lengths, 1,
                                          &sequences, &error),
                     ISOBIT_E_WORKSPACE);
    assert_int_equal(sequences, 5);
    assert_int_equal(
        iso_tokenizer_encode(t, "a\xff", 2, ids, 9, &id_count, lengths, 9, &sequences, &error),
        ISOBIT_E_UTF8);
    ok(iso_tokenizer_encode(t, " ... ", 5, NULL, 0, &id_count, NULL, 0, &sequences, &error),
       &error);
    assert_int_equal(sequences, 0);

    iso_generation *g;
    ok(iso_tokenizer_encode(t, text, strlen(text), ids, 100, &id_count, lengths, 10, &sequences,
                            &error),
       &error);
    ok(iso_generate(&g, model, ids, lengths, sequences, NULL, NULL, &error), &error);
    for (size_t i = 0; i < g->count; i++) {
        assert_true(g->best[i].length >= 2);
        assert_int_equal(g->best[i].ids[g->best[i].length - 1], info->eos_ids[0]);
    }
    iso_generation_free(g);
    iso_tokenizer_free(t);
    iso_model_free(model);
    (void)state;
}

/* ---------------------------------------------------------------------------------- memory */

/* The largest resident size so far, in bytes; an exec starts it afresh. */
static double resident(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024;
}

/* Runs in a process of its own: loads, generates, and compares with 1.3 x weights + caches. */
static int measure_memory(const char *directory) {
    double before = resident();
    iso_model *model;
    iso_generation *g;
    iso_error error = {0};
    if (iso_model_load(&model, directory, NULL, NULL, &error)) {
        print_error("%s\n", error.message);
        return 1;
    }
    const iso_model_info *info = iso_model_get_info(model);
    double weights = (double)info->parameters * 4, after_load = resident() - before;
    const uint32_t source[] = {5, 6, 7, 8, 2};
    const size_t S = 5, T = 16;
    iso_generate_options o = {.size = sizeof o, .beams = 4, .max_length = T};
    if (iso_generate(&g, model, source, &S, 1, &o, NULL, &error)) {
        print_error("%s\n", error.message);
        return 1;
    }
    double after = resident() - before;
    /* Panels of 64 keys, values, and pages that are touched in part. */
    double caches = 4.0 * (double)(info->d * 64 * 2 * 2 * 4) + (1 << 20);
    print_message("weights %.1f MB, after loading %.1f MB, after generating %.1f MB\n",
                  weights / 1e6, after_load / 1e6, after / 1e6);
    iso_generation_free(g);
    iso_model_free(model);
    return after_load > 1.3 * weights || after > 1.3 * weights + caches;
}

static void test_memory(void **state) {
#if SANITIZED
    skip();
#else
    if (getenv("ISOBIT_EMULATED")) /* the size would be that of the emulator */
        skip();
    const size_t V = 40000, d = 128;
    files f;
    files_make(&f);
    files_config(&f, "marian", V, d, 4, 128,
                 ",\"eos_token_id\":2,\"decoder_start_token_id\":1,\"pad_token_id\":0,"
                 "\"max_position_embeddings\":64");
    builder b = {.state = 7};
    builder_model(&b, V, d, 128, 1);
    builder_write(&b, &f);
    int result = -1;
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test_model", "--measure-memory", f.directory, (char *)NULL);
        _exit(127);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &result, 0), child);
    files_remove(&f);
    assert_int_equal(result, 0);
#endif
    (void)state;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--measure-memory") == 0)
        return measure_memory(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_batch_and_permutation),
        cmocka_unit_test(test_cached_is_recomputed),
        cmocka_unit_test(test_long_distances),
        cmocka_unit_test(test_cached_in_16_bits),
        cmocka_unit_test(test_beams_in_16_bits),
        cmocka_unit_test(test_cache_option),
        cmocka_unit_test(test_int8_bits),
        cmocka_unit_test(test_int8_layers),
        cmocka_unit_test(test_native_numerics),
        cmocka_unit_test(test_compute_option),
        cmocka_unit_test(test_scores_agree),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_instruction_sets),
        cmocka_unit_test(test_literal_beam_search),
        cmocka_unit_test(test_near_ties),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_nothing_is_finite),
        cmocka_unit_test(test_g2p),
        cmocka_unit_test(test_wide_vocabulary),
        cmocka_unit_test(test_wide_on_threads),
        cmocka_unit_test(test_encode_batch),
        cmocka_unit_test(test_widened),
        cmocka_unit_test(test_rows_among_threads),
        cmocka_unit_test(test_profile),
        cmocka_unit_test(test_steps_allocate_nothing),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_memory),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
