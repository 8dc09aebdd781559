/* SPDX-License-Identifier: MIT
 *
 * Models of BF16 in native numerics: near what fixed ones give, the same bits at once and step by
 * step and with threads on one set, and the fixed ones on sets that have no such instructions.
 */
#include "test_model.h"

enum { T = 40, S = 30 };

static void logits_on(float *logits, const iso_model *model, const uint32_t *source,
                      const uint32_t *target, int stepwise, const iso_context *context) {
    const int both = has_encoder(model);
    iso_error error = {0};
    ok(iso_logits_f32(logits, model, both ? source : NULL, both ? S : 0, target, T, stepwise,
                      context, &error),
       &error);
}

/* The logarithm of the sum of the exponentials of a row. */
static double log_sum(const float *x, size_t V) {
    double sum = 0, top = -INFINITY;
    for (size_t v = 0; v < V; v++)
        top = (double)x[v] > top ? (double)x[v] : top;
    for (size_t v = 0; v < V; v++)
        sum += exp((double)x[v] - top);
    return top + log(sum);
}

/* Differences of log-probabilities, summed up by row. */
static double moved(const float *a, const float *b, size_t V, double *most) {
    double all = 0;
    for (size_t t = 0; t < T; t++, a += V, b += V) {
        const double of_a = log_sum(a, V), of_b = log_sum(b, V);
        for (size_t v = 0; v < V; v++) {
            const double difference = fabs(((double)a[v] - of_a) - ((double)b[v] - of_b));
            all += difference / (double)(T * V);
            *most = fmax(*most, difference);
        }
    }
    return all;
}

void test_native_numerics(void **state) {
    double worst = 0, mean = 0;
    size_t count = 0;
    iso_pool *pool;
    assert_int_equal(iso_pool_create(&pool, 3), ISOBIT_OK);
    for (size_t m = 0; m < golden_count; m++) {
        if (!strstr(golden[m], "bf16"))
            continue;
        iso_model *model = load_golden(golden[m], NULL);
        const iso_model_info *info = iso_model_get_info(model);
        const size_t V = info->target_vocabulary, bytes = T * V * sizeof(float);
        uint32_t source[S], target[T];
        for (uint32_t i = 0; i < T; i++) {
            source[i % S] = (i * 11 + 3) % (uint32_t)info->source_vocabulary;
            target[i] =
                i || !has_encoder(model) ? (i * 17 + 5) % (uint32_t)V : info->decoder_start_id;
        }
        float *fixed = malloc(bytes), *whole = malloc(bytes), *other = malloc(bytes);
        assert_true(fixed && whole && other);
        assert_int_equal(iso_set_numerics("fixed"), ISOBIT_OK);
        logits_on(fixed, model, source, target, 0, NULL);
        assert_int_equal(iso_set_numerics("native"), ISOBIT_OK);
        for (size_t i = 0; i < iso_isa_count(); i++) {
            iso_context context = {.size = sizeof context, .isa = iso_isa_get(i)};
            if (iso_isa_missing(context.isa))
                continue;
            logits_on(whole, model, source, target, 0, &context);
            if (strncmp(iso_numerics(context.isa), "native", 6) != 0) {
                assert_memory_equal(whole, fixed, bytes);
                continue;
            }
            assert_int_not_equal(memcmp(whole, fixed, bytes), 0);
            mean += moved(whole, fixed, V, &worst), count++;
            logits_on(other, model, source, target, 1, &context);
            assert_memory_equal(whole, other, bytes);
            context.executor = iso_pool_executor(pool);
            logits_on(other, model, source, target, 0, &context);
            assert_memory_equal(whole, other, bytes);
        }
        free(fixed);
        free(whole);
        free(other);
        iso_model_free(model);
    }
    assert_int_equal(iso_set_numerics(NULL), ISOBIT_OK);
    iso_pool_destroy(pool);
    if (count == 0) {
        print_message("SKIPPED: native numerics: this CPU has no products of BF16\n");
    } else {
        print_message("native numerics move log-probabilities by %.2g at most, %.2g as a rule\n",
                      worst, mean / (double)count);
        assert_true(worst < 0.2 && mean < 0.02 * (double)count);
    }
    (void)state;
}
