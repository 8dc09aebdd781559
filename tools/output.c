/* SPDX-License-Identifier: MIT
 *
 * Standard output, whose errors count, and the little that a program must know about UTF-8 to
 * line things up.
 */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int output_flush(void) {
    static bool told;
    errno = 0;
    bool lost = fflush(stdout) != 0;
    if (!lost && !ferror(stdout))
        return 0;
    if (!told)
        fail("cannot write the output: %s",
             errno != 0 ? strerror(errno) : "an earlier write failed");
    told = true;
    return 1;
}

uint32_t next_code_point(const char **text) {
    const unsigned char *s = (const unsigned char *)*text;
    if (s[0] == 0)
        return 0;
    size_t more = s[0] >= 0xf0 ? 3 : s[0] >= 0xe0 ? 2 : s[0] >= 0xc0 ? 1 : 0;
    uint32_t value = more == 0 ? s[0] : s[0] & (0x3fU >> more);
    size_t used = 1;
    for (; used <= more && (s[used] & 0xc0) == 0x80; used++)
        value = value << 6 | (s[used] & 0x3fU);
    *text += used;
    return value;
}

/* Marks that take no room of their own: the ranges that phonetic text and accents use. */
bool is_combining(uint32_t c) {
    return (c >= 0x300 && c <= 0x36f) || (c >= 0x1ab0 && c <= 0x1aff) ||
           (c >= 0x1dc0 && c <= 0x1dff) || (c >= 0x200b && c <= 0x200f);
}

size_t display_width(const char *text) {
    size_t width = 0;
    for (uint32_t c; (c = next_code_point(&text)) != 0;)
        width += !is_combining(c);
    return width;
}

typedef iso_status decoder(const iso_tokenizer *tokenizer, const uint32_t *ids, size_t count,
                           char *text, size_t bytes, size_t *needed);

static char *decode(decoder *decode_ids, const struct session *session, const uint32_t *ids,
                    size_t count) {
    size_t needed = 0;
    decode_ids(session->tokenizer, ids, count, NULL, 0, &needed);
    char *text = malloc(needed + 1);
    if (text == NULL)
        return NULL;
    text[0] = '\0';
    if (decode_ids(session->tokenizer, ids, count, text, needed + 1, NULL) != ISOBIT_OK) {
        free(text);
        return NULL;
    }
    return text;
}

char *decode_text(const struct session *session, const uint32_t *ids, size_t count) {
    return decode(iso_tokenizer_decode, session, ids, count);
}

char *decode_partial(const struct session *session, const uint32_t *ids, size_t count) {
    return decode(iso_tokenizer_decode_partial, session, ids, count);
}

char *decode_source(const struct session *session, const uint32_t *ids, size_t count) {
    return decode(iso_tokenizer_decode_source, session, ids, count);
}

/* A source and what a decoder alone has made of it, as one text. */
static char *decode_continued(const struct session *session, const uint32_t *source, size_t length,
                              const iso_hypothesis *best) {
    struct ids all = {0};
    char *text = NULL;
    if (ids_grow(&all, length + best->length)) {
        memcpy(all.data, source, length * sizeof *source);
        if (best->length > 0)
            memcpy(all.data + length, best->ids, best->length * sizeof *best->ids);
        text = decode_text(session, all.data, length + best->length);
    }
    free(all.data);
    return text;
}

size_t shown_bytes(const struct session *session, const char *text, size_t begins, bool partial) {
    size_t before = strlen(text) - begins;
    if (session->stop != NULL)
        (void)iso_stop_find(session->stop, text + begins, before, partial, &before);
    return begins + before;
}

char *decode_answer(const struct session *session, const uint32_t *source, size_t length,
                    const iso_hypothesis *best, size_t *begins) {
    const bool goes_on = session->info->encoder_layers == 0;
    char *from = goes_on ? decode_source(session, source, length) : NULL;
    char *text = goes_on ? decode_continued(session, source, length, best)
                         : decode_text(session, best->ids, best->length);
    size_t same = 0;
    while (from != NULL && text != NULL && from[same] != '\0' && from[same] == text[same])
        same++;
    *begins = from != NULL && from[same] == '\0' ? same : 0;
    if (text != NULL)
        text[shown_bytes(session, text, same, false)] = '\0';
    if (goes_on && from == NULL) {
        free(text);
        text = NULL;
    }
    free(from);
    return text;
}
