/* SPDX-License-Identifier: MIT
 *
 * The profile, and allocations: none in a step, and each of them failing once.
 */
#include "test_model.h"

/* Multiply-adds of one row through a layer's products, times two. */
static double row_flops(size_t d, size_t f, size_t squares) {
    return 2.0 * ((double)squares * (double)d * (double)d + 2.0 * (double)d * (double)f);
}

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void test_profile(void **state) {
    enum { S = 5, T = 7 };
    const uint32_t source[S] = {3, 4, 5, 6, 2};
    const size_t length = S;
    iso_error error = {0};
    iso_model *model = load_golden(golden[3], NULL);
    const iso_model_info *i = iso_model_get_info(model);
    const double d = (double)i->d, layers = (double)i->decoder_layers;
    iso_profile p = {.size = sizeof p, .by_kind = 1}, wrong = {.size = 1};
    static float x[S * 256], y[S * 256];
    assert_true(i->d <= 256);
    assert_int_equal(iso_model_set_profile(NULL, &p), ISOBIT_E_NULL);
    assert_int_equal(iso_model_set_profile(model, &wrong), ISOBIT_E_SIZE);
    ok(iso_encode_f32(x, model, source, S, NULL, &error), &error);
    assert_int_equal(iso_model_set_profile(model, &p), ISOBIT_OK);
    ok(iso_encode_f32(y, model, source, S, NULL, &error), &error);
    assert_memory_equal(x, y, S * i->d * sizeof *x);
    /* q, k, v, out and the feed-forward layer; S x S scores, and as much for the values. */
    double expected =
        (double)i->encoder_layers * (S * row_flops(i->d, i->encoder_ffn, 4) + 2.0 * S * S * 2 * d);
    assert_true(p.flops == expected);
    assert_true(
        p.kind_seconds[ISOBIT_PROFILE_LINEAR] > 0 && p.kind_seconds[ISOBIT_PROFILE_ATTENTION] > 0 &&
        p.kind_seconds[ISOBIT_PROFILE_NORM] > 0 && p.kind_seconds[ISOBIT_PROFILE_EMBEDDING] > 0);
    assert_true(p.kind_seconds[ISOBIT_PROFILE_LOGITS] == 0 && p.steps == 0);

    /* T steps: q, k, v, out, q, out. */
    iso_generate_options o = {
        .size = sizeof o, .beams = 1, .max_new_tokens = T, .min_length = T + 1};
    iso_generation *g;
    p = (iso_profile){.size = sizeof p, .by_kind = 1};
    const double start = seconds_now();
    ok(iso_generate(&g, model, source, &length, 1, &o, NULL, &error), &error);
    const double seconds = seconds_now() - start;
    assert_int_equal(g->best[0].length, T);
    iso_generation_free(g);
    assert_int_equal(p.steps, T);
    const double logits = d * (double)i->target_vocabulary;
    const double rows = layers * row_flops(i->d, i->decoder_ffn, 6) + 2 * logits;
    /* Self-attention over 1 ... T positions, and over the source. */
    assert_true(p.step_flops ==
                T * rows + layers * 2 * 2 * d * (T * (T + 1) / 2) + T * layers * 2 * 2 * d * S);
    assert_true(p.step_weight_bytes == T * rows * 2); /* 4 bytes for each multiply-add */
    assert_true(p.fastest_step > 0 && p.fastest_step * T <= p.step_seconds);
    double sum = 0;
    for (int k = 0; k < ISOBIT_PROFILE_KINDS; k++)
        sum += p.kind_seconds[k];
    assert_true(sum >= p.step_seconds * 0.999 && sum <= seconds * 1.001);
    assert_true(p.kind_seconds[ISOBIT_PROFILE_LOGITS] > 0 &&
                p.kind_seconds[ISOBIT_PROFILE_SEARCH] > 0);

    const iso_profile before = p;
    assert_int_equal(iso_model_set_profile(model, NULL), ISOBIT_OK);
    ok(iso_encode_f32(y, model, source, S, NULL, &error), &error);
    assert_memory_equal(&before, &p, sizeof p);
    iso_model_free(model);
    (void)state;
}

/* ------------------------------------------------------------------------------ allocations */

/* The linker sends every allocation of the libraries through here (model.cmake, --wrap). */
static size_t allocations, failing_one; /* the latter counts from 1; 0: none */

static int fails(void) { return ++allocations == failing_one; }

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);

void *__wrap_malloc(size_t bytes) { return fails() ? NULL : __real_malloc(bytes); }
void *__wrap_calloc(size_t count, size_t bytes) {
    return fails() ? NULL : __real_calloc(count, bytes);
}
void *__wrap_realloc(void *old, size_t bytes) {
    return fails() ? NULL : __real_realloc(old, bytes);
}
void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    return fails() ? NULL : __real_aligned_alloc(alignment, bytes);
}

/* However many steps a search takes, it allocates as often. */
void test_steps_allocate_nothing(void **state) {
    for (size_t m = 0; m < 2 * golden_count; m += 2 * model_step() - 1) {
        iso_model *model =
            m < golden_count ? load_golden(golden[m], NULL) : load_int8(golden[m - golden_count]);
        const uint32_t sources[] = {9, 22, 31, 2, 5, 6, 7};
        const size_t lengths[] = {4, 2, 1};
        for (size_t j = 0; j < 4; j++) {
            const size_t beams = j == 1 ? 4 : j == 2 ? 32 : 1; /* 32: rows for each thread */
            size_t counts[2], tokens[2];
            for (size_t i = 0; i < 2; i++) {
                backwards three;
                iso_generate_options o = {.size = sizeof o,
                                          .beams = beams,
                                          .max_length = 30,
                                          .min_length = i ? 30 : 1,
                                          .early_stopping = ISOBIT_EARLY_TRUE,
                                          .attention = has_encoder(model),
                                          .sampling = j == 3 ? ISOBIT_SAMPLING_ON
                                                             : ISOBIT_SAMPLING_DEFAULT};
                iso_generation *g;
                iso_error error = {0};
                allocations = 0;
                ok(iso_generate(&g, model, sources, lengths, 3, &o,
                                j != 2 ? NULL : make_backwards(&three, 3), &error),
                   &error);
                counts[i] = allocations;
                tokens[i] = 0;
                for (size_t h = 0; h < g->count; h++)
                    tokens[i] += g->best[h].length;
                iso_generation_free(g);
            }
            assert_int_equal(counts[0], counts[1]);
            assert_true(counts[0] > 0 && tokens[0] <= tokens[1]);
        }
        iso_model_free(model);
    }
    (void)state;
}

/* Each allocation fails once: ISOBIT_E_NOMEM, and nothing is lost (see the leak checker). */
static size_t fail_each_allocation(const char *name) {
    char path[600];
    (void)snprintf(path, sizeof path, "%s/models/%s", ISOBIT_TEST_DATA, name);
    const uint32_t sources[] = {9, 22, 31, 2, 5, 6, 7}, targets[] = {5, 6, 2, 7};
    const size_t lengths[] = {4, 2, 1}, target_lengths[] = {2, 1, 1};
    static corpus c;
    backwards two; /* threads, with rows enough for both */
    const iso_context *context = make_backwards(&two, 2);
    size_t failures = 0;
    make_corpus(&c, 20);
    for (int call = 0; call < 7; call++) {
        iso_model *model = call ? load(path) : NULL;
        iso_status status = ISOBIT_E_NOMEM;
        for (size_t k = 1; status; k++) {
            iso_error error = {0};
            iso_generation *g = NULL;
            iso_tokenizer *t = NULL;
            float scores[SENTENCES * 32], y[400];
            iso_generate_options o = {.size = sizeof o, .beams = 2, .attention = 1};
            if (call == 6)
                o = (iso_generate_options){
                    .size = sizeof o, .sampling = ISOBIT_SAMPLING_ON, .hypotheses = 2};
            allocations = 0;
            failing_one = k;
            if (call == 0)
                status = iso_model_load(&model, path, NULL, NULL, &error);
            else if (call == 1 || call == 6)
                status = iso_generate(&g, model, sources, lengths, 3, &o, NULL, &error);
            else if (call == 2)
                status = iso_score_f32(scores, model, sources, lengths, targets, target_lengths, 3,
                                       NULL, &error);
            else if (call == 3)
                status = iso_logits_f32(y, model, sources, 4, targets, 2, 1, NULL, &error);
            else if (call == 4)
                status = iso_tokenizer_load(&t, G2P, &error);
            else
                status = iso_score_f32(scores, model, c.ids, c.lengths, c.ids, c.lengths, SENTENCES,
                                       context, &error);
            failing_one = 0;
            iso_generation_free(g);
            iso_tokenizer_free(t);
            if (status)
                assert_int_equal(status, ISOBIT_E_NOMEM);
            failures += status != ISOBIT_OK;
            assert_true(k < 10000);
        }
        iso_model_free(model);
    }
    return failures;
}

/* Loading alone. */
static size_t fail_each_load(const char *name, size_t compute) {
    char path[600];
    const iso_load_options options = {.size = sizeof options, .compute = compute};
    iso_model *model = NULL;
    iso_status status = ISOBIT_E_NOMEM;
    (void)snprintf(path, sizeof path, "%s/models/%s", ISOBIT_TEST_DATA, name);
    size_t k = 0;
    while (status) {
        iso_error error = {0};
        allocations = 0;
        failing_one = ++k;
        status = iso_model_load(&model, path, &options, NULL, &error);
        failing_one = 0;
        if (status)
            assert_int_equal(status, ISOBIT_E_NOMEM);
    }
    iso_model_free(model);
    return k - 1;
}

void test_out_of_memory(void **state) {
    assert_true(fail_each_allocation(golden[2]) > 100);
    assert_true(fail_each_allocation("umt5") > 100); /* a bias of each layer */
    assert_true(fail_each_load("phi3-longrope", ISOBIT_COMPUTE_AUTO) > 10);
    assert_true(fail_each_load("gpt2", ISOBIT_COMPUTE_INT8) > 10);
    (void)state;
}
