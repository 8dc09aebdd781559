/* SPDX-License-Identifier: MIT
 *
 * isobit score: how probable given targets are, token by token.
 */
#include "cli.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

static int print_json(unsigned long long number, const float *log_probs, size_t count) {
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, isfinite(log_probs[i]) ? json_real((double)log_probs[i])
                                                            : json_null());
    json_t *object = json_object();
    json_object_set_new(object, "line", json_integer((json_int_t)number));
    json_object_set_new(object, "log_probs", array);
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(object);
    if (text == NULL)
        return fail("out of memory for the output");
    puts(text);
    free(text);
    return 0;
}

static int print_batch(const struct options *options, const struct batch *batch,
                       const float *log_probs, struct digest *digest) {
    size_t sequence = 0;
    for (size_t line = 0; line < batch->line_sequences.count; line++) {
        bool empty = batch->line_sequences.data[line] == 0;
        size_t count = empty ? 0 : batch->target_lengths.data[sequence];
        if (options->digest) {
            if (!empty)
                digest_floats(digest, log_probs, count);
        } else if (options->json) {
            if (print_json(batch->first_line + line, log_probs, count) != 0)
                return 1;
        } else {
            for (size_t i = 0; i < count; i++) {
                fputs(i > 0 ? " " : "", stdout);
                printf(options->hex ? "%a" : "%.9g", (double)log_probs[i]);
            }
            putchar('\n');
        }
        log_probs += count;
        sequence += !empty;
    }
    return options->digest ? 0 : output_flush();
}

static int compute_batch(const struct session *session, const struct options *options,
                         const struct batch *batch, struct digest *digest) {
    float *log_probs = calloc(batch->targets.count + 1, sizeof *log_probs);
    if (log_probs == NULL)
        return fail("out of memory for the scores");
    iso_error error = {0};
    iso_status status = ISOBIT_OK;
    if (batch->source_lengths.count > 0)
        status = iso_score_f32(log_probs, session->model, batch->sources.data,
                               batch->source_lengths.data, batch->targets.data,
                               batch->target_lengths.data, batch->source_lengths.count,
                               &session->context, &error);
    int code = status == ISOBIT_OK ? print_batch(options, batch, log_probs, digest)
                                   : fail_error(&error, status);
    free(log_probs);
    return code;
}

static int loop(const struct session *session, const struct options *options, struct input *input,
                struct batch *batch, struct digest *digest) {
    struct progress progress;
    progress_start(&progress);
    int code = 0;
    while (code == 0 && batch_read(batch, input, session, batch_parse_pair, &code)) {
        code = compute_batch(session, options, batch, digest);
        progress_show(&progress, input);
    }
    progress_end(&progress);
    if (code == 0 && batch->error[0] != '\0')
        code = fail("%s", batch->error);
    if (code == 0 && options->digest)
        printf("%016llx\n", (unsigned long long)digest_value(digest));
    return code;
}

int cmd_score(const struct options *options) {
    struct session session;
    struct input input = {.fd = -1};
    struct batch batch = {0};
    struct digest digest = {0};
    int code = session_open(&session, options, NEEDS_DECODER);
    if (code == 0 && !digest_open(&digest))
        code = fail("out of memory");
    if (code == 0)
        code = input_open(&input, options);
    if (code == 0)
        code = loop(&session, options, &input, &batch, &digest);
    digest_close(&digest);
    batch_free(&batch);
    input_close(&input);
    session_close(&session);
    return code;
}
