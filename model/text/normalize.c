/* SPDX-License-Identifier: MIT
 *
 * The steps of normal forms.
 */
#include "pipeline.h"

void text_step_form(const text_step *step, text_buffer *out, const char *text, size_t bytes) {
    text_normalize(out, text, bytes, step->form);
}

void text_step_lowercase(const text_step *step, text_buffer *out, const char *text, size_t bytes) {
    uint32_t code = 0;
    (void)step;
    for (size_t at = 0; at < bytes;) {
        at += model_utf8(text + at, bytes - at, &code);
        text_put_lower(out, code);
    }
}

static void strip(text_buffer *out, const char *text, size_t bytes, int (*is)(uint32_t)) {
    uint32_t code = 0;
    for (size_t at = 0, n; at < bytes; at += n) {
        n = model_utf8(text + at, bytes - at, &code);
        if (!is(code))
            text_buffer_put(out, text + at, n);
    }
}

void text_step_strip_accents(const text_step *step, text_buffer *out, const char *text,
                             size_t bytes) {
    (void)step;
    strip(out, text, bytes, text_is_old_mark);
}

/* The ideographs that BERT takes one by one; kana and hangul are not among them. */
static int is_chinese(uint32_t c) {
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
           (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
           (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

/* Controls away, white space to spaces, spaces around ideographs. */
static void clean(const text_step *step, text_buffer *out, const char *text, size_t bytes) {
    uint32_t code = 0;
    for (size_t at = 0, n; at < bytes; at += n) {
        n = model_utf8(text + at, bytes - at, &code);
        if (step->clean && text_is_bert_control(code))
            continue;
        if (step->clean && text_is_space(code)) {
            text_buffer_put(out, " ", 1);
            continue;
        }
        const int alone = step->chinese_characters && is_chinese(code);
        text_buffer_put(out, " ", (size_t)alone);
        text_buffer_put(out, text + at, n);
        text_buffer_put(out, " ", (size_t)alone);
    }
}

void text_step_bert(const text_step *step, text_buffer *out, const char *text, size_t bytes) {
    text_buffer a = {0}, b = {0};
    clean(step, &a, text, bytes);
    if (step->strip_accents) {
        text_normalize(&b, a.text, a.count, TEXT_NFD);
        a.count = 0;
        strip(&a, b.text, b.count, text_is_bert_accent);
    }
    if (step->lowercase)
        text_step_lowercase(step, out, a.text, a.count);
    else
        text_buffer_put(out, a.text, a.count);
    out->failed |= a.failed | b.failed;
    text_buffer_free(&a);
    text_buffer_free(&b);
}
