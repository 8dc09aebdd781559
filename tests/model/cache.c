/* SPDX-License-Identifier: MIT
 *
 * Caches of 16 bits: steps, through iso_attention_w16, give the bits of whole targets, whose keys
 * and values are rounded and stay f32; on every instruction set, in any batch, and when beams
 * change places. They are not the bits of an f32 cache, but near them.
 */
#include "test_model.h"

static iso_model *load_cached(const char *name, size_t cache) {
    char path[600];
    iso_error error = {0};
    iso_model *model;
    const iso_load_options options = {.size = sizeof options, .cache = cache};
    (void)snprintf(path, sizeof path, "%s/models/%s", ISOBIT_TEST_DATA, name);
    ok(iso_model_load(&model, path, &options, NULL, &error), &error);
    return model;
}

double farthest(const float *a, const float *b, size_t n) {
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        const double distance = fabs((double)a[i] - (b ? (double)b[i] : 0));
        if (distance > most)
            most = distance;
    }
    return most;
}

void test_cached_in_16_bits(void **state) {
    enum { T = 40, S = 30 };
    double worst[3] = {0};
    for (size_t m = 0; m < golden_count; m += model_step()) {
        iso_model *plain = load_golden(golden[m], NULL);
        const iso_model_info *info = iso_model_get_info(plain);
        const size_t V = info->target_vocabulary;
        uint32_t source[S], target[T];
        for (uint32_t i = 0; i < T; i++) {
            source[i % S] = (i * 11 + 3) % (uint32_t)info->source_vocabulary;
            target[i] =
                i || !has_encoder(plain) ? (i * 17 + 5) % (uint32_t)V : info->decoder_start_id;
        }
        float *unrounded = malloc(T * V * sizeof(float)), *whole = malloc(T * V * sizeof(float));
        float *steps = malloc(T * V * sizeof(float));
        assert_true(unrounded && whole && steps);
        logits_of(unrounded, plain, source, S, target, T, 0);
        const double most = farthest(unrounded, NULL, T * V);
        for (size_t cache = ISOBIT_CACHE_F16; cache <= ISOBIT_CACHE_BF16; cache++) {
            iso_model *model = load_cached(golden[m], cache);
            logits_of(whole, model, source, S, target, T, 0);
            assert_memory_not_equal(whole, unrounded, T * V * sizeof(float));
            worst[cache] = fmax(worst[cache], farthest(whole, unrounded, T * V) / most);
            for (size_t i = 0; i < iso_isa_count(); i++) {
                const iso_context context = {.size = sizeof context, .isa = iso_isa_get(i)};
                iso_error error = {0};
                const int both = has_encoder(model);
                if (iso_isa_missing(context.isa))
                    continue;
                for (int stepwise = 0; stepwise < 2; stepwise++) {
                    ok(iso_logits_f32(steps, model, both ? source : NULL, both ? S : 0, target, T,
                                      stepwise, &context, &error),
                       &error);
                    assert_memory_equal(whole, steps, T * V * sizeof(float));
                }
            }
            iso_model_free(model);
        }
        free(unrounded);
        free(whole);
        free(steps);
        iso_model_free(plain);
    }
    print_message("logits move by %.1g (f16), %.1g (bf16) of the largest\n", worst[1], worst[2]);
    assert_true(worst[1] < 0.01 && worst[2] < 0.05 && worst[1] < worst[2]);
    (void)state;
}

/* Each of several hypotheses has the scores of its tokens, whichever rows of the caches its beam
 * went through; alone, in a batch and on threads. */
void test_beams_in_16_bits(void **state) {
    static corpus c;
    iso_error error = {0};
    iso_pool *pool;
    assert_int_equal(iso_pool_create(&pool, 3), ISOBIT_OK);
    const iso_context threads = {.size = sizeof threads, .executor = iso_pool_executor(pool)};
    /* Those that force no token: elsewhere it has a probability of 1. */
    const char *const plain[] = {golden[3], golden[4], golden[5], "gpt2", "llama", "qwen2-f16"};
    const size_t step = model_step() > 1 ? 5 : 1; /* F16, BF16, F16 */
    for (size_t m = 0; m < 2 * (sizeof plain / sizeof *plain); m += step) {
        iso_model *model = load_cached(plain[m / 2], 1 + m % 2);
        make_corpus(&c, iso_model_get_info(model)->source_vocabulary);
        for (size_t beams = 1; beams <= 4; beams += 3) {
            const iso_generate_options o = {
                .size = sizeof o, .beams = beams, .hypotheses = beams, .max_new_tokens = 9};
            iso_generation *g, *alone;
            ok(iso_generate(&g, model, c.ids, c.lengths, SENTENCES, &o, &threads, &error), &error);
            for (size_t i = 0; i < SENTENCES; i++) {
                ok(iso_generate(&alone, model, c.ids + c.first[i], &c.lengths[i], 1, &o, NULL,
                                &error),
                   &error);
                for (size_t h = 0; h < beams; h++) {
                    const iso_hypothesis *best = &g->best[i * beams + h];
                    float scores[16];
                    same_hypothesis(best, &alone->best[h], 0);
                    ok(iso_score_f32(scores, model, c.ids + c.first[i], &c.lengths[i], best->ids,
                                     &best->length, 1, NULL, &error),
                       &error);
                    assert_memory_equal(scores, best->log_probs, best->length * sizeof *scores);
                }
                iso_generation_free(alone);
            }
            iso_generation_free(g);
        }
        iso_model_free(model);
    }
    iso_pool_destroy(pool);
    (void)state;
}

void test_cache_option(void **state) {
    iso_error error = {0};
    iso_model *model = NULL;
    iso_load_options options = {.size = sizeof options, .cache = 3};
    assert_int_equal(iso_model_load(&model, G2P, &options, NULL, &error), ISOBIT_E_OPTION);
    assert_non_null(strstr(error.message, "cache 3"));
    options.cache = ISOBIT_CACHE_BF16;
    options.size =
        offsetof(iso_load_options, cache); /* a header without it: what is there is not read */
    ok(iso_model_load(&model, G2P, &options, NULL, &error), &error);
    const uint32_t source[] = {7, 9, 21, 2};
    float *y[2];
    for (int i = 0; i < 2; i++) {
        const iso_model_info *info = iso_model_get_info(model);
        const uint32_t target[] = {info->decoder_start_id, 5, 9, 11};
        y[i] = malloc(4 * info->target_vocabulary * sizeof(float));
        assert_non_null(y[i]);
        logits_of(y[i], model, source, 4, target, 4, i);
        if (i)
            assert_memory_equal(y[0], y[1], 4 * info->target_vocabulary * sizeof(float));
        iso_model_free(model);
        model = load(G2P);
    }
    iso_model_free(model);
    free(y[0]);
    free(y[1]);
    (void)state;
}
