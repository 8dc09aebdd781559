/* SPDX-License-Identifier: MIT
 *
 * isobit run (text) and isobit generate (token ids): the same loop over batches of lines. Only
 * the parsing of a line and the printing of a sequence differ.
 */
#include "cli.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------------------------- as text */

/* A decoder alone goes on with its source: what people want to read is both. Line breaks are then
 * written as \n, so that a line of input stays a line of output. */
static int print_sequence(const struct session *session, const uint32_t *source, size_t length,
                          const iso_hypothesis *best) {
    if (session->tokenizer == NULL) {
        for (size_t i = 0; i < best->length; i++)
            printf("%s%u", i > 0 ? " " : "", (unsigned)best->ids[i]);
        return 0;
    }
    const bool goes_on = session->info->encoder_layers == 0;
    size_t begins;
    char *text = decode_answer(session, source, length, best, &begins);
    if (text == NULL)
        return fail("out of memory for the output");
    for (const char *c = text; *c != '\0'; c++)
        if (*c == '\n' && goes_on)
            fputs("\\n", stdout);
        else
            putchar(*c);
    free(text);
    return 0;
}

/* Nine digits give the float back exactly. */
static void print_score(float score, bool first) {
    printf("%c%.9g", first ? '\t' : ' ', (double)score);
}

/* The sequences of a line lie `stride` apart, which is the number of samples. */
static int print_line(const struct session *session, const struct options *options,
                      const uint32_t *source, const size_t *lengths, const iso_hypothesis *best,
                      size_t stride, size_t count) {
    for (size_t i = 0; i < count; source += lengths[i++]) {
        if (i > 0)
            putchar(' ');
        if (print_sequence(session, source, lengths[i], &best[i * stride]) != 0)
            return 1;
    }
    for (size_t i = 0; i < count && options->scores; i++)
        print_score(best[i * stride].score, i == 0);
    putchar('\n');
    return 0;
}

/* ----------------------------------------------------------------------------------- as JSON */

static json_t *json_float(float value) {
    return isfinite(value) ? json_real((double)value) : json_null();
}

static json_t *json_ids(const uint32_t *ids, size_t count) {
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, json_integer(ids[i]));
    return array;
}

static json_t *json_sequence(const struct session *session, const uint32_t *source, size_t length,
                             const iso_hypothesis *best) {
    json_t *object = json_object();
    if (session->tokenizer != NULL) {
        size_t begins = 0;
        char *from = decode_source(session, source, length);
        char *to = decode_answer(session, source, length, best, &begins);
        if (from != NULL && to != NULL) {
            json_object_set_new(object, "source", json_string(from));
            json_object_set_new(object, "output", json_string(to + begins));
        }
        free(from);
        free(to);
    }
    json_object_set_new(object, "source_ids", json_ids(source, length));
    json_object_set_new(object, "ids", json_ids(best->ids, best->length));
    json_object_set_new(object, "score", json_float(best->score));
    json_t *log_probs = json_array();
    for (size_t i = 0; i < best->length; i++)
        json_array_append_new(log_probs, json_float(best->log_probs[i]));
    json_object_set_new(object, "log_probs", log_probs);
    return object;
}

static int print_json(const struct session *session, unsigned long long number, size_t sample,
                      const uint32_t *source, const size_t *lengths, const iso_hypothesis *best,
                      size_t stride, size_t count) {
    json_t *sequences = json_array();
    for (size_t i = 0; i < count; source += lengths[i], i++)
        json_array_append_new(sequences,
                              json_sequence(session, source, lengths[i], &best[i * stride]));
    json_t *object = json_object();
    json_object_set_new(object, "line", json_integer((json_int_t)number));
    if (stride > 1)
        json_object_set_new(object, "sample", json_integer((json_int_t)sample + 1));
    json_object_set_new(object, "sequences", sequences);
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(object);
    if (text == NULL)
        return fail("out of memory for the output");
    puts(text);
    free(text);
    return 0;
}

/* ---------------------------------------------------------------------------------- the loop */

static int print_batch(const struct session *session, const struct options *options,
                       const struct batch *batch, const iso_generation *generation) {
    const uint32_t *source = batch->sources.data;
    const size_t samples = options->samples != 0 ? options->samples : 1;
    size_t sequence = 0;
    for (size_t line = 0; line < batch->line_sequences.count; line++) {
        size_t count = generation != NULL ? batch->line_sequences.data[line] : 0;
        const size_t *lengths = batch->source_lengths.data + sequence;
        for (size_t sample = 0; sample < samples; sample++) {
            const iso_hypothesis *best =
                generation != NULL ? generation->best + sequence * samples + sample : NULL;
            int code = options->json
                           ? print_json(session, batch->first_line + line, sample, source, lengths,
                                        best, samples, count)
                           : print_line(session, options, source, lengths, best, samples, count);
            if (code != 0)
                return code;
        }
        for (size_t i = 0; i < count; i++)
            source += lengths[i];
        sequence += count;
    }
    return output_flush();
}

/* One sequence after the other, each printed while it grows. */
static int stream_batch(const struct session *session, const iso_generate_options *how,
                        const struct batch *batch) {
    const uint32_t *source = batch->sources.data;
    const size_t *length = batch->source_lengths.data;
    iso_generate_options with = *how;
    int code = 0;
    for (size_t line = 0; line < batch->line_sequences.count && code == 0; line++) {
        for (size_t i = 0; i < batch->line_sequences.data[line] && code == 0; i++) {
            if (i > 0)
                putchar(' ');
            code = stream_sequence(session, &with, source, *length);
            source += *length++;
            with.first_source++;
        }
        putchar('\n');
        code = code != 0 ? code : output_flush();
    }
    return code;
}

static int compute_batch(const struct session *session, const struct options *options,
                         const iso_generate_options *how, const struct batch *batch,
                         struct digest *digest) {
    iso_generation *generation = NULL;
    iso_error error = {0};
    if (options->stream)
        return stream_batch(session, how, batch);
    if (batch->source_lengths.count > 0) {
        iso_status status = iso_generate(&generation, session->model, batch->sources.data,
                                         batch->source_lengths.data, batch->source_lengths.count,
                                         how, &session->context, &error);
        if (status != ISOBIT_OK)
            return fail_error(&error, status);
    }
    int code = 0;
    if (!options->digest) {
        code = print_batch(session, options, batch, generation);
    } else if (generation != NULL) {
        /* One sequence at a time: the hash must not depend on how lines fell into batches. */
        for (size_t i = 0; i < generation->count; i++) {
            iso_generation one = {.count = 1, .hypotheses = 1, .best = &generation->best[i]};
            digest_generation(digest, &one);
        }
    }
    iso_generation_free(generation);
    return code;
}

static iso_generate_options generate_options(const struct options *options) {
    iso_generate_options how = {
        .size = sizeof how,
        .beams = options->beam,
        .max_length = options->max_length,
        .hypotheses = options->samples,
        .temperature = options->temperature.value,
        .top_p = options->top_p.value,
        .has_min_p = options->min_p.given,
        .min_p = options->min_p.value,
        .seed = {(uint32_t)options->seed.value, (uint32_t)(options->seed.value >> 32)}};
    if (options->sample || options->beam != 0)
        how.sampling = options->sample ? ISOBIT_SAMPLING_ON : ISOBIT_SAMPLING_OFF;
    if (options->top_k.given) /* 0 is all here, and the default there */
        how.top_k = options->top_k.value != 0 && options->top_k.value < SIZE_MAX
                        ? (size_t)options->top_k.value
                        : SIZE_MAX;
    return how;
}

struct run {
    iso_generate_options how;
    struct picture picture;
};

static int begin(struct lines *l) {
    struct run *run = l->user;
    run->how = generate_options(l->options);
    session_begin(&l->session, &run->how);
    return 0;
}

static int put_batch(struct lines *l) {
    struct run *run = l->user;
    int code = picture_keep(&run->picture, l->options, &l->batch);
    if (code == 0)
        code = compute_batch(&l->session, l->options, &run->how, &l->batch, &l->digest);
    run->how.first_source +=
        l->batch.source_lengths.count; /* what is drawn does not know of batches */
    return code;
}

static int draw(struct lines *l) {
    struct run *run = l->user;
    run->how.first_source = 0;
    run->how.hypotheses = 1;
    return picture_draw(&run->picture, &l->session, l->options, &run->how);
}

static int generate(const struct options *options, bool text) {
    const struct lines_command command = {.needs = NEEDS_DECODER | (text ? NEEDS_TEXT : 0U),
                                          .parse = text ? batch_parse_text : batch_parse_ids,
                                          .begin = begin,
                                          .put = put_batch,
                                          .end = draw};
    struct run run = {0};
    const int code = lines_run(options, &command, &run);
    picture_free(&run.picture);
    return code;
}

int cmd_run(const struct options *options) { return generate(options, true); }

int cmd_generate(const struct options *options) { return generate(options, false); }
