/* SPDX-License-Identifier: MIT
 *
 * See unicode.h. Case and categories are those of single code points: no tokenizer looks further.
 */
#include "unicode.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

static utf8proc_category_t category(uint32_t code) {
    return utf8proc_category((utf8proc_int32_t)code);
}

int text_is_letter(uint32_t code) {
    const utf8proc_category_t c = category(code);
    return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

int text_is_number(uint32_t code) {
    const utf8proc_category_t c = category(code);
    return c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO;
}

int text_is_punctuation(uint32_t code) {
    const utf8proc_category_t c = category(code);
    return c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO;
}

int text_is_accent(uint32_t code) { return category(code) == UTF8PROC_CATEGORY_MN; }

int text_is_mark(uint32_t code) {
    const utf8proc_category_t c = category(code);
    return c >= UTF8PROC_CATEGORY_MN && c <= UTF8PROC_CATEGORY_ME;
}

int text_is_other(uint32_t code) {
    const utf8proc_category_t c = category(code);
    return c >= UTF8PROC_CATEGORY_CC && c <= UTF8PROC_CATEGORY_CO;
}

int text_is_word(uint32_t code) {
    const utf8proc_category_t c = category(code);
    return text_is_letter(code) || text_is_mark(code) || c == UTF8PROC_CATEGORY_ND ||
           c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_PC || code == 0x200c ||
           code == 0x200d;
}

int text_is_space(uint32_t c) {
    return c == ' ' || (c >= 9 && c <= 13) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

/* ----------------------------------------------------------------------------------- buffers */

void text_buffer_put(text_buffer *b, const char *text, size_t bytes) {
    if (b->failed || bytes == 0)
        return;
    if (bytes > b->room - b->count) {
        const size_t room = bytes > SIZE_MAX / 4 - b->room ? 0 : 2 * b->room + bytes + 64;
        char *grown = room ? realloc(b->text, room) : NULL;
        if (!grown) {
            b->failed = 1;
            return;
        }
        b->text = grown;
        b->room = room;
    }
    memcpy(b->text + b->count, text, bytes);
    b->count += bytes;
}

void text_buffer_code(text_buffer *b, uint32_t code) {
    utf8proc_uint8_t bytes[4];
    const utf8proc_ssize_t count = utf8proc_encode_char((utf8proc_int32_t)code, bytes);
    text_buffer_put(b, (const char *)bytes, count > 0 ? (size_t)count : 0);
}

void text_buffer_free(text_buffer *b) {
    free(b->text);
    *b = (text_buffer){0};
}

/* ---------------------------------------------------------------------------------- clusters */

size_t text_grapheme(const char *text, size_t bytes) {
    enum { GRAVE = 0x300 }; /* any mark will do */
    uint32_t code = 0, next = 0;
    utf8proc_int32_t state = 0;
    size_t end = model_utf8(text, bytes, &code);
    for (size_t n; end < bytes; end += n, code = next) {
        /* Most text is made of these, and they stand alone. */
        if (code >= ' ' && code < 0x7f && (unsigned char)text[end] < 0x80)
            break;
        n = model_utf8(text + end, bytes - end, &next);
        next = text_is_new_mark(next) ? GRAVE : next;
        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)code, (utf8proc_int32_t)next,
                                             &state))
            break;
    }
    return end;
}

/* ------------------------------------------------------------------------------------- forms */

static void normalize(text_buffer *out, const char *text, size_t bytes, text_form form) {
    static const int options[] = {
        [TEXT_NFC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE,
        [TEXT_NFD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE,
        [TEXT_NFKC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
        [TEXT_NFKD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT,
    };
    utf8proc_uint8_t *made = NULL;
    if (bytes == 0 || out->failed)
        return;
    const utf8proc_ssize_t count =
        utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)bytes, &made,
                     (utf8proc_option_t)options[form]);
    if (count < 0)
        out->failed = 1;
    else
        text_buffer_put(out, (const char *)made, (size_t)count);
    free(made);
}

/* Nothing goes past a character that is not assigned, and none changes it. */
void text_normalize(text_buffer *out, const char *text, size_t bytes, text_form form) {
    uint32_t code = 0;
    size_t done = 0;
    for (size_t at = 0, n; at < bytes; at += n) {
        n = model_utf8(text + at, bytes - at, &code);
        if (!text_is_unformed(code))
            continue;
        normalize(out, text + done, at - done, form);
        text_buffer_put(out, text + at, n);
        done = at + n;
    }
    if (done < bytes) /* there may be no text */
        normalize(out, text + done, bytes - done, form);
}

void text_put_lower(text_buffer *out, uint32_t code) {
    if (code == 0x130) { /* the only one that becomes two: i and a dot above */
        text_buffer_put(out, "i\xcc\x87", 3);
        return;
    }
    text_buffer_code(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)code));
}
