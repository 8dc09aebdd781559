/* SPDX-License-Identifier: MIT
 *
 * A whole tiny model. The first byte of the input says how the rest is meant:
 *   even  records of three bytes (offset, 16 bits, little endian; byte) that patch a good model,
 *         config.json and model.safetensors lying one after the other; with 2 one of int8;
 *   odd   config.json, a byte 0xff, model.safetensors.
 * What loads must search, score and give the same bits again, and with its files mapped; and so
 * with int8.
 */
#include "fuzz.h"
#include "fuzz_base.h"

#include <stdlib.h>
#include <string.h>

/* Two short sentences; a vocabulary may have become too small for them: that is an error then. */
static const uint32_t sources[] = {3, 4, 2, 0, 2}, targets[] = {3, 2, 4};
static const size_t lengths[] = {3, 2}, target_lengths[] = {2, 1};

static int is_of_the_call(iso_status status) {
    return status == ISOBIT_E_RANGE || status == ISOBIT_E_LIMIT || status == ISOBIT_E_OPTION ||
           status == ISOBIT_E_DIM || status == ISOBIT_E_NOMEM || status == ISOBIT_E_OVERFLOW;
}

/* What takes one stack only. */
static void use_one(iso_model *const *models) {
    const iso_model *model = models[0];
    const size_t d = iso_model_get_info(model)->sentence_d,
                 V = iso_model_get_info(model)->target_vocabulary;
    iso_error error = {0};
    float *x[2], *logits[2];
    iso_status status = ISOBIT_OK;
    if (d > 4096 || V > 4096)
        return;
    for (int i = 0; i < 2; i++) {
        x[i] = calloc(2 * d, sizeof(float));
        logits[i] = calloc(3 * V, sizeof(float));
        FUZZ_CHECK(x[i] && logits[i]);
        status = iso_sentence_embed_f32(x[i], models[i], sources, lengths, 2, NULL, NULL, &error);
        FUZZ_CHECK(!status || status == ISOBIT_E_UNSUPPORTED || is_of_the_call(status));
        status = iso_token_logits_f32(logits[i], models[i], sources, 3, NULL, &error);
        FUZZ_CHECK(!status || status == ISOBIT_E_UNSUPPORTED || is_of_the_call(status));
    }
    FUZZ_CHECK(fuzz_equal(x[0], x[1], 2 * d * sizeof(float)));
    FUZZ_CHECK(fuzz_equal(logits[0], logits[1], 3 * V * sizeof(float)));
    for (int i = 0; i < 2; i++) {
        free(x[i]);
        free(logits[i]);
    }
}

/* The same model twice. */
static void use(iso_model *const *models) {
    const iso_model_info *info = iso_model_get_info(models[0]);
    const iso_generate_options options = {.size = sizeof options,
                                          .beams = info->default_sampling         ? 1
                                                   : info->target_vocabulary >= 2 ? 2
                                                                                  : 1,
                                          .max_new_tokens = 3,
                                          .attention = info->encoder_layers != 0};
    iso_error error = {0};
    iso_generation *g[2] = {NULL, NULL};
    if (!info->decoder_layers) {
        use_one(models);
        return;
    }
    if (!info->encoder_layers)
        use_one(models);
    float scores[2][3];
    memset(scores, 0, sizeof scores);
    for (int i = 0; i < 2; i++) {
        iso_status status =
            iso_generate(&g[i], models[i], sources, lengths, 2, &options, NULL, &error);
        FUZZ_CHECK(status == ISOBIT_OK || is_of_the_call(status));
        if (status)
            fuzz_check_error(status, &error);
        status = iso_score_f32(scores[i], models[i], sources, lengths, targets, target_lengths, 2,
                               NULL, &error);
        FUZZ_CHECK(status == ISOBIT_OK || is_of_the_call(status));
    }
    FUZZ_CHECK(fuzz_equal(scores[0], scores[1], sizeof scores[0]));
    FUZZ_CHECK(!g[0] == !g[1]);
    for (size_t i = 0; g[0] && i < g[0]->count; i++) {
        const iso_hypothesis *a = &g[0]->best[i], *b = &g[1]->best[i];
        FUZZ_CHECK(a->length == b->length && a->length <= 3);
        FUZZ_CHECK(fuzz_equal(&a->score, &b->score, sizeof a->score));
        for (size_t t = 0; t < a->length; t++)
            FUZZ_CHECK(a->ids[t] == b->ids[t] && a->ids[t] < info->target_vocabulary);
    }
    iso_generation_free(g[0]);
    iso_generation_free(g[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    uint8_t *copy = NULL;
    iso_error error = {0};
    if (bytes == 0)
        return 0;
    fuzz_no_files();
    if (data[0] & 1) {
        const uint8_t *parts[2];
        size_t sizes[2], count = fuzz_split(data + 1, bytes - 1, parts, sizes, 2);
        fuzz_file("config.json", parts[0], sizes[0]);
        if (count == 2)
            fuzz_file("model.safetensors", parts[1], sizes[1]);
    } else {
        const fuzz_base *base = fuzz_base_model(data[0] >> 1 & 1);
        const size_t all = base->config_bytes + base->weights_bytes;
        copy = fuzz_copy(base->bytes, all);
        for (size_t i = 1; i + 3 <= bytes; i += 3)
            copy[(data[i] + 256u * data[i + 1]) % all] = data[i + 2];
        fuzz_file("config.json", copy, base->config_bytes);
        fuzz_file("model.safetensors", copy + base->config_bytes, base->weights_bytes);
    }
    const iso_load_options plain = {.size = sizeof plain, .compute = ISOBIT_COMPUTE_F32};
    const iso_load_options mapped = {.size = sizeof mapped, .map = 1, .widen = 1};
    const iso_load_options int8 = {.size = sizeof int8, .compute = ISOBIT_COMPUTE_INT8};
    iso_model *models[2] = {NULL, NULL};
    iso_status status = iso_model_load(&models[0], FUZZ_DIRECTORY, &plain, NULL, &error);
    FUZZ_CHECK(iso_model_load(&models[1], FUZZ_DIRECTORY, &mapped, NULL, &error) == status);
    FUZZ_CHECK(!models[0] == !!status && !models[1] == !!status);
    if (status)
        fuzz_check_error(status, &error);
    else
        use(models);
    for (int as_int8 = 0; as_int8 < 2; as_int8++) { /* as the file has it, twice, and as int8 */
        iso_model_free(models[0]);
        iso_model_free(models[1]);
        models[0] = models[1] = NULL;
        for (int i = 0; i < 2; i++)
            FUZZ_CHECK(iso_model_load(&models[i], FUZZ_DIRECTORY, as_int8 ? &int8 : NULL, NULL,
                                      &error) == status);
        if (!status)
            use(models);
    }
    iso_model_free(models[0]);
    iso_model_free(models[1]);
    free(copy);
    return 0;
}
