/* SPDX-License-Identifier: MIT
 *
 * Decoders alone.
 */
#include "test_families.h"

static const char *const decoders[] = {
    "gpt2",        "gpt2-untied-f16", "llama",          "llama3-bf16",    "qwen2-f16",
    "mistral",     "llama-yarn",      "llama-longrope", "mistral-window", "qwen2-window",
    "qwen3-bf16",  "phi3-bf16",       "phi3-longrope",  "gemma-bf16",     "opt-f16",
    "gemma2-bf16", "gemma3-bf16",     "gemma3-part"};
#define DECODERS (sizeof decoders / sizeof *decoders)

void test_decoders(void **state) {
    static float logits[MOST * MOST_V], other[MOST * MOST_V];
    for (size_t m = 0; m < DECODERS; m++) {
        const char *name = decoders[m];
        iso_model *model = load(name);
        const iso_model_info *info = iso_model_get_info(model);
        const size_t V = info->target_vocabulary;
        json_t *cases = load_cases(name), *c;
        assert_int_equal(info->encoder_layers, 0);
        assert_int_equal(info->max_positions, 40);
        size_t i;
        json_array_foreach(cases, i, c) {
            uint32_t ids[MOST];
            iso_error error = {0};
            const size_t S = read_ids(json_object_get(c, "source"), ids);
            ok(iso_token_logits_f32(logits, model, ids, S, NULL, &error), &error);
            check_close(json_object_get(c, "logits"), logits, S * V, name, "logits");
            for (int stepwise = 0; stepwise < 2; stepwise++) {
                memset(other, 0, sizeof other);
                ok(iso_logits_f32(other, model, NULL, 0, ids, S, stepwise, NULL, &error), &error);
                assert_memory_equal(logits, other, S * V * sizeof *logits);
            }
        }
        json_decref(cases);
        iso_model_free(model);
    }
    (void)state;
}

/* ln softmax(x)[token] in double precision. */
static double log_prob(const float *x, size_t V, uint32_t token) {
    double most = -INFINITY, sum = 0;
    for (size_t v = 0; v < V; v++)
        most = (double)x[v] > most ? (double)x[v] : most;
    for (size_t v = 0; v < V; v++)
        sum += exp((double)x[v] - most);
    return (double)x[token] - most - log(sum);
}

/* A continuation is as probable as the logits of prompt and continuation together say; in batches
 * of any kind, on any instruction set, with the same bits. */
void test_decoder_scores(void **state) {
    enum { COUNT = 19 };
    static float logits[MOST * MOST_V];
    for (size_t m = 0; m < DECODERS; m++) {
        iso_model *model = load(decoders[m]);
        const size_t V = iso_model_get_info(model)->target_vocabulary;
        static uint32_t prompts[COUNT * 20], targets[COUNT * 20];
        static float alone[COUNT * 20], together[COUNT * 20];
        size_t S[COUNT], T[COUNT], s = 0, t = 0;
        iso_error error = {0};
        for (size_t i = 0; i < COUNT; i++) {
            uint32_t all[40];
            S[i] = 1 + i * 7 % 20;
            T[i] = i * 5 % 21;
            for (size_t j = 0; j < S[i]; j++)
                all[j] = prompts[s + j] = (uint32_t)((i * 13 + j * j * 3) % V);
            for (size_t j = 0; j < T[i]; j++)
                all[S[i] + j] = targets[t + j] = (uint32_t)((i + j * 11) % V);
            ok(iso_score_f32(alone + t, model, prompts + s, &S[i], targets + t, &T[i], 1, NULL,
                             &error),
               &error);
            ok(iso_token_logits_f32(logits, model, all, S[i] + T[i], NULL, &error), &error);
            for (size_t j = 0; j < T[i]; j++) {
                const double want = log_prob(logits + (S[i] - 1 + j) * V, V, targets[t + j]);
                if (!(fabs((double)alone[t + j] - want) <= 1e-5))
                    fail_msg("%s, token %zu: %g, not %g", decoders[m], j, (double)alone[t + j],
                             want);
            }
            s += S[i];
            t += T[i];
        }
        for (size_t i = 0; i < iso_isa_count(); i++) {
            const iso_context context = {.size = sizeof context, .isa = iso_isa_get(i)};
            if (iso_isa_missing(context.isa))
                continue;
            memset(together, 0, sizeof together);
            ok(iso_score_f32(together, model, prompts, S, targets, T, COUNT, &context, &error),
               &error);
            assert_memory_equal(alone, together, t * sizeof *alone);
        }
        iso_model_free(model);
    }
    (void)state;
}

static int second_of(void *user, const iso_sequence *s) {
    const iso_hypothesis *whole = user;
    assert_memory_equal(s->ids, whole->ids, s->length * sizeof *s->ids);
    return s->length == 2;
}

/* What is said of a prompt that leaves no room, and how much of it a default takes. */
void test_prompts(void **state) {
    iso_model *model = load("gpt2"), *total = load("gpt2-untied-f16");
    uint32_t ids[80];
    const size_t lengths[] = {40, 3}, thirty = 30, six = 6;
    iso_error e = {0};
    iso_generation *g = NULL;
    for (uint32_t i = 0; i < 80; i++)
        ids[i] = 3 + i * 7 % 40;
    /* The folder says 12 new tokens: where positions lack, as many as there are. The last token
     * needs none. */
    ok(iso_generate(&g, model, ids, lengths, 2, NULL, NULL, &e), &e);
    assert_int_equal(g->best[0].length, 1);
    assert_in_range(g->best[1].length, 1, 12);
    iso_generation_free(g);
    /* Who asks for more than there is, is told. */
    iso_generate_options o = {.size = sizeof o, .max_new_tokens = 2};
    expect(ISOBIT_E_LIMIT, "prompt 0 has 40 tokens, and up to 2 may follow",
           iso_generate(&g, model, ids, lengths, 2, &o, NULL, &e), &e);
    o = (iso_generate_options){.size = sizeof o, .max_length = 40};
    expect(ISOBIT_E_LIMIT, "max_length, which counts them, is 40",
           iso_generate(&g, model, ids, lengths, 2, &o, NULL, &e), &e);
    o = (iso_generate_options){.size = sizeof o, .max_length = 8, .min_length = 8};
    ok(iso_generate(&g, model, ids, &six, 1, &o, NULL, &e), &e);
    assert_int_equal(g->best[0].length, 2);
    iso_generation_free(g);
    /* A stop is of what is generated: not begun by the end of the prompt. */
    ok(iso_generate(&g, model, ids, &six, 1, NULL, NULL, &e), &e);
    const size_t free_length = g->best[0].length;
    const uint32_t stop[] = {2, ids[5], g->best[0].ids[0]};
    iso_generation_free(g);
    o = (iso_generate_options){.size = sizeof o, .stop_ids = stop, .stop_count = 3};
    ok(iso_generate(&g, model, ids, &six, 1, &o, NULL, &e), &e);
    assert_true(free_length > 1);
    assert_int_equal(g->best[0].length, free_length);
    /* Nor does a function that is asked see the prompt. */
    const iso_hypothesis whole = g->best[0];
    o = (iso_generate_options){
        .size = sizeof o, .is_last = second_of, .is_last_user = (void *)&whole};
    iso_generation *two;
    ok(iso_generate(&two, model, ids, &six, 1, &o, NULL, &e), &e);
    assert_int_equal(two->best[0].length, 2);
    iso_generation_free(two);
    iso_generation_free(g);
    /* Of the other folder max_length is 30, the prompt included. */
    expect(ISOBIT_E_LIMIT, "prompt 0 has 30 tokens",
           iso_generate(&g, total, ids, &thirty, 1, NULL, NULL, &e), &e);
    o = (iso_generate_options){.size = sizeof o, .attention = 1};
    expect(ISOBIT_E_UNSUPPORTED, "attention", iso_generate(&g, model, ids, &six, 1, &o, NULL, &e),
           &e);
    iso_model_free(model);
    iso_model_free(total);
    (void)state;
}

/* Samples of prompts in any company are those of each alone: sequence i is first_source + i. */
void test_samples_of_prompts(void **state) {
    enum { COUNT = 9, SAMPLES = 5 };
    iso_model *model = load("gpt2");
    uint32_t ids[COUNT * 20];
    size_t lengths[COUNT], first[COUNT], at = 0, different = 0;
    iso_error e = {0};
    for (size_t i = 0; i < COUNT; i++) {
        lengths[i] = 1 + i * 5 % 17;
        first[i] = at;
        for (size_t t = 0; t < lengths[i]; t++, at++)
            ids[at] = (uint32_t)(3 + (i * 3 + t * 5) % 40);
    }
    iso_generate_options o = {.size = sizeof o,
                              .hypotheses = SAMPLES,
                              .sampling = ISOBIT_SAMPLING_ON,
                              .temperature = 1.5f,
                              .seed = {99}};
    for (size_t isa = 0; isa < iso_isa_count(); isa++) {
        const iso_context context = {.size = sizeof context, .isa = iso_isa_get(isa)};
        if (iso_isa_missing(context.isa))
            continue;
        iso_generation *all, *one;
        o.first_source = 0;
        ok(iso_generate(&all, model, ids, lengths, COUNT, &o, &context, &e), &e);
        for (size_t i = 0; i < COUNT; i++) {
            o.first_source = i;
            ok(iso_generate(&one, model, ids + first[i], &lengths[i], 1, &o, NULL, &e), &e);
            for (size_t h = 0; h < SAMPLES; h++) {
                const iso_hypothesis *a = &all->best[i * SAMPLES + h], *b = &one->best[h];
                assert_int_equal(a->length, b->length);
                assert_memory_equal(a->ids, b->ids, a->length * sizeof *a->ids);
                assert_memory_equal(a->log_probs, b->log_probs, a->length * sizeof(float));
                different += h && memcmp(a->ids, one->best[0].ids, sizeof *a->ids) != 0;
            }
            iso_generation_free(one);
        }
        iso_generation_free(all);
    }
    assert_true(different > COUNT);
    iso_model_free(model);
    (void)state;
}

void test_decoder_arguments(void **state) {
    iso_model *model = load("gpt2");
    uint32_t ids[42] = {0};
    const size_t two = 2, most = 40, none = 0;
    static float y[MOST * MOST_V];
    iso_error e = {0};
    expect(ISOBIT_E_UNSUPPORTED, "no encoder", iso_encode_f32(y, model, ids, 2, NULL, &e), &e);
    expect(ISOBIT_E_UNSUPPORTED, "no encoder",
           iso_sentence_embed_f32(y, model, ids, &two, 1, NULL, NULL, &e), &e);
    expect(ISOBIT_E_UNSUPPORTED, "must be NULL",
           iso_logits_f32(y, model, ids, 2, ids, 2, 0, NULL, &e), &e);
    expect(ISOBIT_E_LIMIT, "40 positions", iso_token_logits_f32(y, model, ids, 41, NULL, &e), &e);
    expect(ISOBIT_E_LIMIT, "40 positions",
           iso_score_f32(y, model, ids, &most, ids, &two, 1, NULL, &e), &e);
    expect(ISOBIT_E_DIM, "no tokens", iso_score_f32(y, model, ids, &none, ids, &two, 1, NULL, &e),
           &e);
    ids[1] = 50;
    expect(ISOBIT_E_RANGE, "id 50", iso_token_logits_f32(y, model, ids, 2, NULL, &e), &e);
    iso_model_free(model);
    (void)state;
}
