/* SPDX-License-Identifier: MIT
 *
 * What tokenizers does of SentencePiece's work: its table of normal forms, and the bar (U+2581)
 * that stands for a space.
 */
#include "pipeline.h"

/* ------------------------------------------------------------------------------------- steps */

/*
 * Whole characters as readers see them (grapheme clusters) of less than 6 bytes first, then code
 * points. Of a cluster that begins with a key of the table, the rest is lost, too: so does
 * tokenizers.
 */
void text_step_charsmap(const text_step *step, text_buffer *out, const char *text, size_t bytes) {
    enum { LONGEST = 6 };
    uint32_t code;
    for (size_t at = 0, cluster; at < bytes; at += cluster) {
        cluster = text_grapheme(text + at, bytes - at);
        const char *form =
            cluster < LONGEST ? text_charsmap_find(&step->charsmap, text + at, cluster) : NULL;
        if (form) {
            text_buffer_put(out, form, strlen(form));
            continue;
        }
        for (size_t i = 0, n; i < cluster; i += n) {
            n = model_utf8(text + at + i, cluster - i, &code);
            form = text_charsmap_find(&step->charsmap, text + at + i, n);
            text_buffer_put(out, form ? form : text + at + i, form ? strlen(form) : n);
        }
    }
}

void text_step_replace(const text_step *step, text_buffer *out, const char *text, size_t bytes) {
    const size_t length = step->from ? strlen(step->from) : 0;
    for (size_t at = 0, n; at < bytes; at += n) {
        n = 0;
        if (!step->from)
            while (n < bytes - at && text[at + n] == ' ')
                n++;
        else if (length <= bytes - at && memcmp(text + at, step->from, length) == 0)
            n = length;
        if (n >= (step->from ? 1 : 2)) {
            text_buffer_put(out, step->to, strlen(step->to));
        } else {
            n = 1;
            text_buffer_put(out, text + at, 1);
        }
    }
}

void text_step_prepend(const text_step *step, text_buffer *out, const char *text, size_t bytes) {
    if (bytes)
        text_buffer_put(out, step->to, strlen(step->to));
    text_buffer_put(out, text, bytes);
}

void text_step_strip(const text_step *step, text_buffer *out, const char *text, size_t bytes) {
    size_t begin = step->left ? bytes : 0, end = step->right ? 0 : bytes;
    uint32_t code = 0;
    for (size_t at = 0, n; at < bytes; at += n) {
        n = model_utf8(text + at, bytes - at, &code);
        if (text_is_space(code))
            continue;
        begin = at < begin ? at : begin;
        end = at + n > end ? at + n : end;
    }
    if (begin < end)
        text_buffer_put(out, text + begin, end - begin);
}

/* ------------------------------------------------------------------------------------- words */

/* A part with bars instead of spaces, cut before each of them. */
static iso_status put_bars(const text_pipeline *p, text_ids *out, const char *text, size_t bytes,
                           int prepend) {
    text_buffer bars = {0};
    if (prepend && text[0] != ' ' && !text_is_bar(text, bytes))
        text_buffer_put(&bars, TEXT_BAR, TEXT_BAR_BYTES);
    for (size_t at = 0, n; at < bytes; at += n) {
        if (text[at] == ' ') {
            n = 1;
            text_buffer_put(&bars, TEXT_BAR, TEXT_BAR_BYTES);
            continue;
        }
        const char *space = memchr(text + at, ' ', bytes - at);
        n = space ? (size_t)(space - text) - at : bytes - at;
        text_buffer_put(&bars, text + at, n);
    }
    iso_status status = bars.failed ? ISOBIT_E_NOMEM : ISOBIT_OK;
    for (size_t at = 0, end; at < bars.count && !status; at = end) {
        end = at + 1;
        while (end < bars.count &&
               !(p->metaspace.split && text_is_bar(bars.text + end, bars.count - end)))
            end++;
        status = p->model.encode(&p->model, out, bars.text + at, end - at);
    }
    text_buffer_free(&bars);
    return status;
}

iso_status text_metaspace_put(const text_pipeline *p, text_ids *out, const char *text, size_t bytes,
                              int first) {
    const text_metaspace *m = &p->metaspace;
    iso_status status = ISOBIT_OK;
    uint32_t code = 0;
    if (!m->words)
        return put_bars(p, out, text, bytes,
                        m->prepend == TEXT_PREPEND_ALWAYS ||
                            (m->prepend == TEXT_PREPEND_FIRST && first));
    for (size_t begin = 0, end, n; begin < bytes && !status; begin = end + n) {
        for (end = begin; end < bytes; end += n) {
            n = model_utf8(text + end, bytes - end, &code);
            if (text_is_space(code))
                break;
        }
        n = end < bytes ? n : 0;
        if (end > begin)
            status = put_bars(p, out, text + begin, end - begin,
                              m->prepend == TEXT_PREPEND_ALWAYS ||
                                  (m->prepend == TEXT_PREPEND_FIRST && first && begin == 0));
    }
    return status;
}

/* ------------------------------------------------------------------------------------ decode */

void text_decode_metaspace(const text_pipeline *p, const text_vocabulary *v, text_buffer *out,
                           const uint32_t *ids, size_t count) {
    int first = p->metaspace.decoder != TEXT_PREPEND_NEVER;
    for (size_t i = 0; i < count; i++) {
        const text_entry *entry = &v->by_id[ids[i]];
        if (v->special[ids[i]])
            continue;
        for (size_t at = 0, n; at < entry->bytes; at += n) {
            const int bar = text_is_bar(entry->token + at, entry->bytes - at);
            n = bar ? TEXT_BAR_BYTES : 1;
            if (!bar || !first)
                text_buffer_put(out, bar ? " " : entry->token + at, 1);
        }
        first = 0;
    }
}
