/* SPDX-License-Identifier: MIT
 *
 * Input: config.json, and after a byte 0xff generation_config.json; after more of them what
 * sentence-transformers writes beside these. What is accepted lies within the limits that the rest
 * of the model layer counts on.
 */
#include "fuzz.h"
#include "config.h"

#include <math.h>
#include <string.h>

static void check_ids(const model_ids *ids, size_t V) {
    for (size_t i = 0; i < ids->count; i++)
        FUZZ_CHECK(ids->ids[i] < V);
}

static void check_stack(const model_config *c, size_t layers, size_t heads, size_t ffn) {
    if (!layers)
        return;
    FUZZ_CHECK(layers <= 512 && heads && ffn && c->head_width <= 512);
    FUZZ_CHECK(c->head_width || (c->d % heads == 0 && c->d / heads <= 512));
}

static void check_config(const model_config *c) {
    const model_search *s = &c->search;
    const size_t V = c->target_vocabulary;
    FUZZ_CHECK(c->d && (c->encoder_layers || c->decoder_layers) && c->source_vocabulary && V);
    check_stack(c, c->encoder_layers, c->encoder_heads, c->encoder_ffn);
    check_stack(c, c->decoder_layers, c->decoder_heads, c->decoder_ffn);
    FUZZ_CHECK(!c->buckets || (c->buckets >= 4 && c->buckets % 2 == 0 && c->buckets <= 65536));
    FUZZ_CHECK(!c->buckets || c->max_distance > c->buckets / 2);
    FUZZ_CHECK(c->max_distance <= (size_t)1 << 20);
    FUZZ_CHECK(c->max_positions && c->max_positions <= (size_t)1 << 20);
    FUZZ_CHECK(isfinite(c->norm_eps) && c->norm_eps > 0);
    FUZZ_CHECK(c->start < V ||
               (c->start == MODEL_NO_ID && !(c->encoder_layers && c->decoder_layers)));
    FUZZ_CHECK(s->forced_bos < V || s->forced_bos == MODEL_NO_ID);
    FUZZ_CHECK(s->beams && s->beams <= 1024 && s->max_length != 1);
    FUZZ_CHECK(isfinite(s->length_penalty) && isfinite(s->repetition_penalty));
    FUZZ_CHECK(s->repetition_penalty > 0);
    FUZZ_CHECK(isfinite(s->warp.temperature) && isfinite(s->warp.top_p) && isfinite(s->warp.min_p));
    FUZZ_CHECK(!s->sample || (s->warp.temperature > 0 && s->warp.top_p > 0 && s->warp.top_p <= 1 &&
                              s->warp.min_p >= 0 && s->warp.min_p <= 1));
    check_ids(&c->eos, V);
    check_ids(&s->forced_eos, V);
    for (size_t i = 0; i < s->bad_words.count;) {
        size_t n = s->bad_words.ids[i++];
        FUZZ_CHECK(n && n <= s->bad_words.count - i);
        for (; n; n--)
            FUZZ_CHECK(s->bad_words.ids[i++] < V);
    }
}

static void check_sentence(const model_config *c) {
    const model_sentence *s = &c->sentence;
    size_t width = c->d;
    FUZZ_CHECK(s->pooling <= ISOBIT_POOLING_POOLER && (s->pooling || s->refused[0]));
    FUZZ_CHECK((s->normalize == 1 || s->normalize == -1) && s->max_length);
    FUZZ_CHECK(memchr(s->refused, 0, sizeof s->refused));
    for (const char *m = s->refused; *m; m++)
        FUZZ_CHECK(*m >= ' ' && *m <= '~');
    FUZZ_CHECK(s->dense_count <= 8 && (!s->refused[0] || !s->dense_count));
    for (size_t i = 0; i < s->dense_count; i++) {
        const model_dense_config *dense = &s->dense[i];
        FUZZ_CHECK(dense->in == width && dense->out && dense->out <= (size_t)1 << 20);
        FUZZ_CHECK(!strchr(dense->folder, '/') && strcmp(dense->folder, "..") != 0);
        width = dense->out;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const char *const names[] = {"config.json", "generation_config.json", "modules.json",
                                        "1_Pooling/config.json", "2_Dense/config.json"};
    enum { PARTS = sizeof names / sizeof *names };
    const uint8_t *parts[PARTS];
    size_t sizes[PARTS];
    iso_error error = {0};
    model_arena arena = {0};
    model_config config;
    size_t count = fuzz_split(data, bytes, parts, sizes, PARTS);
    fuzz_no_files();
    for (size_t i = 0; i < count; i++)
        fuzz_file(names[i], parts[i], sizes[i]);
    iso_status status = model_config_read(&config, &arena, FUZZ_DIRECTORY, &error);
    if (status)
        fuzz_check_error(status, &error);
    else
        check_config(&config);
    if (!status) {
        status = model_sentence_read(&config, &arena, FUZZ_DIRECTORY, &error);
        if (status)
            fuzz_check_error(status, &error);
        else if (!config.decoder_layers)
            check_sentence(&config);
    }
    model_arena_free(&arena);
    return 0;
}
