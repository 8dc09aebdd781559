/* SPDX-License-Identifier: MIT
 *
 * Byte fallback: characters that a vocabulary lacks are spelt in the tokens <0x00> ... <0xFF>, and
 * these are joined to characters again.
 */
#include "pipeline.h"

#include <stdio.h>

void text_spelt_find(text_model *model) {
    char token[8];
    model->byte_fallback = 1;
    for (unsigned byte = 0; byte < 256; byte++) {
        const int n = snprintf(token, sizeof token, "<0x%02X>", byte);
        const uint32_t id = text_vocabulary_find(model->vocabulary, token, (size_t)n);
        model->spelt[byte] = id != MODEL_NO_ID && model->only_added[id] ? MODEL_NO_ID : id;
    }
}

int text_spells(const text_model *model, const char *text, size_t bytes) {
    for (size_t i = 0; i < bytes && model->byte_fallback; i++)
        if (model->spelt[(unsigned char)text[i]] == MODEL_NO_ID)
            return 0;
    return model->byte_fallback;
}

void text_put_spelt(const text_model *model, text_ids *out, const char *text, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        text_put_id(out, model->spelt[(unsigned char)text[i]]);
}

/* ------------------------------------------------------------------------------------ decode */

static int digit16(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The byte that a token spells, or -1. One digit may have a plus before it: so does tokenizers. */
static int spelt_byte(const char *token, size_t bytes) {
    if (bytes != 6 || memcmp(token, "<0x", 3) != 0 || token[5] != '>')
        return -1;
    const int high = token[3] == '+' ? 0 : digit16(token[3]), low = digit16(token[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Bytes in a row are text, or each of them U+FFFD if that is no UTF-8. */
static void put_run(text_buffer *out, text_buffer *run) {
    size_t at = 0;
    uint32_t code;
    for (size_t n; at < run->count && (n = model_utf8(run->text + at, run->count - at, &code));)
        at += n;
    if (at == run->count)
        text_buffer_put(out, run->text, run->count);
    for (size_t i = 0; at < run->count && i < run->count; i++)
        text_buffer_put(out, "\xef\xbf\xbd", 3);
    run->count = 0;
}

void text_decode_spelt(const text_pipeline *p, const text_vocabulary *v, text_buffer *out,
                       const uint32_t *ids, size_t count) {
    text_buffer run = {0};
    for (size_t i = 0; i < count; i++) {
        const text_entry *entry = &v->by_id[ids[i]];
        const int byte = spelt_byte(entry->token, entry->bytes);
        const char c = (char)byte;
        if (v->special[ids[i]])
            continue;
        if (byte >= 0) {
            text_buffer_put(&run, &c, 1);
            continue;
        }
        put_run(out, &run);
        for (size_t at = 0, n; at < entry->bytes; at += n) {
            const int bar = text_is_bar(entry->token + at, entry->bytes - at);
            n = bar ? TEXT_BAR_BYTES : 1;
            text_buffer_put(out, bar ? " " : entry->token + at, 1);
        }
    }
    /* One more byte can change all of a run. */
    if (!out->partial)
        put_run(out, &run);
    size_t spaces = 0;
    while (spaces < p->strip && spaces < out->count && out->text[spaces] == ' ')
        spaces++;
    out->count -= spaces;
    if (out->count && spaces)
        memmove(out->text, out->text + spaces, out->count);
    out->failed |= run.failed;
    text_buffer_free(&run);
}
