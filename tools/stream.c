/* SPDX-License-Identifier: MIT
 *
 * One sequence whose tokens are printed as soon as they are there. Text goes out in whole
 * characters, and what is out is never taken back.
 */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

struct stream {
    const struct session *session;
    struct ids ids;
    size_t printed, begins; /* bytes of text, and of those, what comes from the source */
    int code;
};

static int print_new_text(struct stream *stream, bool last) {
    char *text =
        (last ? decode_text : decode_partial)(stream->session, stream->ids.data, stream->ids.count);
    if (text == NULL)
        return fail("out of memory for the output");
    const size_t all = strlen(text);
    const size_t bytes =
        shown_bytes(stream->session, text, stream->begins < all ? stream->begins : all, !last);
    if (bytes > stream->printed) {
        fwrite(text + stream->printed, 1, bytes - stream->printed, stdout);
        stream->printed = bytes;
    }
    free(text);
    return 0;
}

static int print_token(void *user, const iso_token *token) {
    struct stream *stream = user;
    if (stream->session->tokenizer == NULL) {
        printf("%s%u", token->position > 0 ? " " : "", (unsigned)token->id);
    } else if (!ids_grow(&stream->ids, 1)) {
        stream->code = fail("out of memory for the output");
    } else {
        stream->ids.data[stream->ids.count++] = token->id;
        stream->code = print_new_text(stream, token->last != 0);
    }
    if (stream->code == 0)
        stream->code = output_flush();
    return stream->code;
}

int stream_sequence(const struct session *session, const iso_generate_options *how,
                    const uint32_t *source, size_t length) {
    struct stream stream = {.session = session};
    iso_generate_options with = *how;
    iso_generation *generation = NULL;
    iso_error error = {0};
    /* A decoder alone goes on with its source, which is a part of the text. */
    if (session->tokenizer != NULL && session->info->encoder_layers == 0) {
        if (!ids_grow(&stream.ids, length))
            return fail("out of memory for the output");
        memcpy(stream.ids.data, source, length * sizeof *source);
        stream.ids.count = length;
        stream.begins = SIZE_MAX; /* no stop text ends a prompt */
        stream.code = print_new_text(&stream, false);
        stream.begins = stream.printed;
        stream.code = stream.code != 0 ? stream.code : output_flush();
        if (stream.code != 0) {
            free(stream.ids.data);
            return stream.code;
        }
    }
    with.on_token = print_token;
    with.user = &stream;
    iso_status status = iso_generate(&generation, session->model, source, &length, 1, &with,
                                     &session->context, &error);
    if (status != ISOBIT_OK && stream.code == 0) /* else the reason has been told */
        stream.code = fail_error(&error, status);
    iso_generation_free(generation);
    free(stream.ids.data);
    return stream.code;
}
