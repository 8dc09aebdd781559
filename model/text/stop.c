/* SPDX-License-Identifier: MIT
 *
 * Texts that end a sequence. Where they end is looked for in the text of the last tokens only: what
 * lies before has been looked at when it was the last.
 */
#include "text.h"

#include <stdlib.h>
#include <string.h>

typedef struct stop_text {
    const char *text;
    size_t bytes;
} stop_text;

struct iso_stop {
    const iso_tokenizer *tokenizer;
    stop_text *texts; /* [count] */
    size_t count, longest;
    model_arena arena;
};

/* ----------------------------------------------------------------------------------- making */

static iso_status add(iso_stop *stop, const char *text, iso_error *error) {
    uint32_t code;
    const size_t bytes = text ? strlen(text) : 0, number = stop->count;
    if (!text)
        return model_fail(error, ISOBIT_E_NULL, "stop text %zu is NULL", number);
    if (!bytes)
        return model_fail(error, ISOBIT_E_OPTION, "stop text %zu is empty", number);
    for (size_t at = 0, n; at < bytes; at += n)
        if (!(n = model_utf8(text + at, bytes - at, &code)))
            return model_fail(error, ISOBIT_E_UTF8, "stop text %zu is not valid UTF-8 at byte %zu",
                              number, at);
    char *copy = model_alloc(&stop->arena, bytes, 1);
    if (!copy)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory for the stop texts");
    memcpy(copy, text, bytes);
    stop->texts[stop->count++] = (stop_text){copy, bytes};
    stop->longest = bytes > stop->longest ? bytes : stop->longest;
    return ISOBIT_OK;
}

iso_status iso_stop_create(iso_stop **stop, const iso_tokenizer *tokenizer,
                           const char *const *texts, size_t count, iso_error *error) {
    if (!stop || !tokenizer || (!texts && count))
        return model_fail(error, ISOBIT_E_NULL, "an argument is NULL");
    model_arena arena = {0};
    iso_stop *made = model_alloc(&arena, 1, sizeof *made);
    if (!made)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory for the stop texts");
    *made = (iso_stop){.tokenizer = tokenizer, .arena = arena};
    iso_status status = ISOBIT_OK;
    if (!(made->texts = model_alloc(&made->arena, count, sizeof *made->texts)))
        status = model_fail(error, ISOBIT_E_NOMEM, "out of memory for the stop texts");
    for (size_t i = 0; i < count && !status; i++)
        status = add(made, texts[i], error);
    if (status)
        iso_stop_free(made);
    else
        *stop = made;
    return status;
}

void iso_stop_free(iso_stop *stop) {
    if (!stop)
        return;
    model_arena arena = stop->arena; /* which holds the struct itself */
    model_arena_free(&arena);
}

/* ----------------------------------------------------------------------------------- looking */

/* Where the first of the texts begins; `bytes`: nowhere. */
static size_t first_of(const iso_stop *stop, const char *text, size_t bytes) {
    for (size_t at = 0; at < bytes; at++)
        for (size_t i = 0; i < stop->count; i++) {
            const stop_text *s = &stop->texts[i];
            if (s->bytes <= bytes - at && memcmp(text + at, s->text, s->bytes) == 0)
                return at;
        }
    return bytes;
}

/* Where what may become one of the texts begins; `bytes`: nowhere. */
static size_t first_begun(const iso_stop *stop, const char *text, size_t bytes) {
    for (size_t at = bytes < stop->longest ? 0 : bytes - stop->longest + 1; at < bytes; at++)
        for (size_t i = 0; i < stop->count; i++) {
            const stop_text *s = &stop->texts[i];
            if (bytes - at < s->bytes && memcmp(text + at, s->text, bytes - at) == 0)
                return at;
        }
    return bytes;
}

iso_status iso_stop_find(const iso_stop *stop, const char *text, size_t bytes, int partial,
                         size_t *before) {
    if (!stop || (!text && bytes) || !before)
        return ISOBIT_E_NULL;
    *before = first_of(stop, text, bytes);
    if (*before == bytes && partial)
        *before = first_begun(stop, text, bytes);
    return ISOBIT_OK;
}

/*
 * The first token of a window may give another text than in the middle of a sequence: it loses its
 * space, or the bytes before it that make a character. So what the first few tokens give is not
 * looked at; as many bytes as a character has may be as many tokens.
 */
enum { MARGIN = 4 };
/* Tidied text is a little shorter where more follows. */
enum { SLACK = 8 };

/* The bytes of the text of some tokens; SIZE_MAX: it cannot be had. */
static size_t bytes_of(const iso_tokenizer *t, const uint32_t *ids, size_t count) {
    size_t needed = 1;
    const iso_status status = iso_tokenizer_decode(t, ids, count, NULL, 0, &needed);
    return status == ISOBIT_OK || status == ISOBIT_E_WORKSPACE ? needed - 1 : SIZE_MAX;
}

/* Whether one of the texts is in that of some tokens behind `skip` bytes; below 0: out of memory.
 */
static int holds(const iso_stop *stop, const uint32_t *ids, size_t count, size_t skip) {
    char few[512];
    const size_t bytes = bytes_of(stop->tokenizer, ids, count);
    char *text = bytes < sizeof few ? few : bytes < SIZE_MAX ? malloc(bytes + 1) : NULL;
    if (!text)
        return -1;
    int found = -1;
    if (iso_tokenizer_decode(stop->tokenizer, ids, count, text, bytes + 1, NULL) == ISOBIT_OK) {
        skip = skip < bytes ? skip : bytes;
        found = first_of(stop, text + skip, bytes - skip) < bytes - skip;
    }
    if (text != few)
        free(text);
    return found;
}

int iso_stop_is_last(void *stop_of, const iso_sequence *sequence) {
    const iso_stop *stop = stop_of;
    if (!stop || !sequence || !sequence->length)
        return stop && sequence ? 0 : -1;
    const iso_tokenizer *t = stop->tokenizer;
    const uint32_t *ids = sequence->ids;
    const size_t length = sequence->length;
    for (size_t window = stop->longest + MARGIN + 1; window < length; window *= 2) {
        const uint32_t *from = ids + length - window;
        const size_t skip = bytes_of(t, from, MARGIN), before = bytes_of(t, from, window - 1);
        if (skip == SIZE_MAX || before == SIZE_MAX)
            return -1;
        if (before >= skip && before - skip >= stop->longest + SLACK)
            return holds(stop, from, window, skip);
    }
    return holds(stop, ids, length, 0);
}
