/* SPDX-License-Identifier: MIT
 *
 * isobit score: how probable given targets are, of ids token by token, of texts as a whole.
 */
#include "cli.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

/* The target of one line; a line of words has several sequences. */
struct target_line {
    const uint32_t *ids;
    const float *log_probs;
    const size_t *lengths;
    size_t sequences;
    size_t given; /* tokens at the beginning of each that no text asks for */
};

struct sum {
    double log_prob;
    size_t tokens;
};

/* In double precision, one after the other: many tokens would leave little of a float. */
static struct sum sum_of(const struct target_line *t) {
    struct sum sum = {0};
    const float *log_probs = t->log_probs;
    for (size_t i = 0; i < t->sequences; log_probs += t->lengths[i++])
        for (size_t k = t->given; k < t->lengths[i]; k++, sum.tokens++)
            sum.log_prob += (double)log_probs[k];
    return sum;
}

static double perplexity(struct sum sum) { return exp(-sum.log_prob / (double)sum.tokens); }

/* ------------------------------------------------------------------------------------- output */

static json_t *json_number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static int print_json(const struct lines *l, unsigned long long number,
                      const struct target_line *t) {
    const struct sum sum = sum_of(t);
    json_t *array = json_array(), *tokens = json_array(), *object = json_object();
    const float *log_probs = t->log_probs;
    const uint32_t *ids = t->ids;
    for (size_t i = 0; i < t->sequences; i++)
        for (size_t k = 0; k < t->lengths[i]; k++, log_probs++, ids++) {
            if (k < t->given)
                continue;
            json_array_append_new(array, json_number((double)*log_probs));
            if (l->session.tokenizer != NULL)
                json_array_append_new(tokens,
                                      json_string(iso_tokenizer_token(l->session.tokenizer, *ids)));
        }
    json_object_set_new(object, "line", json_integer((json_int_t)number));
    if (l->session.tokenizer != NULL)
        json_object_set(object, "tokens", tokens);
    json_object_set_new(object, "log_probs", array);
    json_object_set_new(object, "sum", json_number(sum.log_prob));
    json_object_set_new(object, "count", json_integer((json_int_t)sum.tokens));
    json_object_set_new(object, "perplexity", json_number(perplexity(sum)));
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(tokens);
    json_decref(object);
    if (text == NULL)
        return fail("out of memory for the output");
    puts(text);
    free(text);
    return 0;
}

static void print_tokens(const struct target_line *t, bool hex) {
    for (size_t i = 0; t->sequences > 0 && i < t->lengths[0]; i++) {
        fputs(i > 0 ? " " : "", stdout);
        printf(hex ? "%a" : "%.9g", (double)t->log_probs[i]);
    }
    putchar('\n');
}

static void print_sum(const struct target_line *t, bool hex) {
    const struct sum sum = sum_of(t);
    if (t->sequences > 0)
        printf(hex ? "%a\t%zu\t%a" : "%.9g\t%zu\t%.9g", sum.log_prob, sum.tokens, perplexity(sum));
    putchar('\n');
}

static int put_line(struct lines *l, unsigned long long number, const struct target_line *t) {
    if (l->options->json)
        return print_json(l, number, t);
    if (l->options->digest) {
        const float *log_probs = t->log_probs;
        for (size_t i = 0; i < t->sequences; log_probs += t->lengths[i++])
            digest_floats(&l->digest, log_probs + t->given, t->lengths[i] - t->given);
    } else if (l->options->as_text) {
        print_sum(t, l->options->hex);
    } else {
        print_tokens(t, l->options->hex);
    }
    return 0;
}

static int print_batch(struct lines *l, const float *log_probs) {
    const struct batch *batch = &l->batch;
    struct target_line t = {batch->targets.data, log_probs, batch->target_lengths.data, 0,
                            batch->given};
    for (size_t line = 0; line < batch->line_sequences.count; line++) {
        t.sequences = batch->line_sequences.data[line];
        const int code = put_line(l, batch->first_line + line, &t);
        if (code != 0)
            return code;
        for (; t.sequences > 0; t.sequences--, t.lengths++) {
            t.ids += *t.lengths;
            t.log_probs += *t.lengths;
        }
    }
    return l->options->digest ? 0 : output_flush();
}

/* ----------------------------------------------------------------------------------- the loop */

static int put_batch(struct lines *l) {
    const struct batch *batch = &l->batch;
    float *log_probs = calloc(batch->targets.count + 1, sizeof *log_probs);
    if (log_probs == NULL)
        return fail("out of memory for the scores");
    iso_error error = {0};
    iso_status status = ISOBIT_OK;
    if (batch->source_lengths.count > 0)
        status = iso_score_f32(log_probs, l->session.model, batch->sources.data,
                               batch->source_lengths.data, batch->targets.data,
                               batch->target_lengths.data, batch->source_lengths.count,
                               &l->session.context, &error);
    int code = status == ISOBIT_OK ? print_batch(l, log_probs) : fail_error(&error, status);
    free(log_probs);
    return code;
}

int cmd_score(const struct options *options) {
    const struct lines_command command = {
        .needs = NEEDS_DECODER | (options->as_text ? NEEDS_TEXT : 0U),
        .parse = options->as_text ? batch_parse_text_pair : batch_parse_pair,
        .put = put_batch};
    return lines_run(options, &command, NULL);
}
