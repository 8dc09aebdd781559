/* SPDX-License-Identifier: MIT
 *
 * A text as one sequence of ids for iso_sentence_embed_f32, as sentence-transformers makes it: its
 * prompt before it, white space around it away, perhaps in lower case, cut to the length that the
 * folder says.
 */
#include "weights.h"
#include "pipeline.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* White space as Python's str.strip() has it. */
static int is_stripped(uint32_t code) { return text_is_space(code) || (code >= 28 && code <= 31); }

static void strip(const char **text, size_t *bytes) {
    uint32_t code;
    size_t n;
    while (*bytes && (n = model_utf8(*text, *bytes, &code)) && is_stripped(code)) {
        *text += n;
        *bytes -= n;
    }
    for (size_t at = *bytes; at; *bytes = at) {
        do
            at--;
        while (at && ((unsigned char)(*text)[at] & 0xc0) == 0x80);
        if (!model_utf8(*text + at, *bytes - at, &code) || !is_stripped(code))
            return;
    }
}

/* -------------------------------------------------------------------------------- lower case */

/* Between letters these neither make a word nor end it: Unicode's Case_Ignorable. */
static int is_ignorable(uint32_t c) {
    static const uint32_t others[] = {'\'',   '.',    ':',    0xb7,   0x387,  0x55f,
                                      0x5f4,  0x2018, 0x2019, 0x2024, 0x2027, 0xfe13,
                                      0xfe52, 0xfe55, 0xff07, 0xff0e, 0xff1a};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (c == others[i])
            return 1;
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return 1;
    default: return 0;
    }
}

/* Of what is not ignorable, Unicode's Cased: letters with case, and what only looks like them. */
static int is_cased(uint32_t c) {
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT: return 1;
    default:
        return c == 0xaa || c == 0xba || (c >= 0x2160 && c <= 0x217f) ||
               (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
               (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
    }
}

/* Appends the text as Python's str.lower() has it: a sigma at the end of a word is another one. */
static void put_lower(text_buffer *out, const char *text, size_t bytes) {
    uint32_t code = 0, next = 0;
    int in_word = 0; /* the last one that is not ignorable is cased */
    for (size_t at = 0; at < bytes;) {
        at += model_utf8(text + at, bytes - at, &code);
        if (code == 0x3a3 && in_word) {
            size_t behind = at;
            int goes_on = 0;
            while (behind < bytes) {
                behind += model_utf8(text + behind, bytes - behind, &next);
                if (!is_ignorable(next)) {
                    goes_on = is_cased(next);
                    break;
                }
            }
            text_buffer_code(out, goes_on ? 0x3c3 : 0x3c2);
        } else {
            text_put_lower(out, code);
        }
        if (!is_ignorable(code))
            in_word = is_cased(code);
    }
}

/* ------------------------------------------------------------------------------------- tokens */

/* The sequences of a text: memory of `arena`, with room for one more id. */
typedef struct sequences {
    uint32_t *ids;
    size_t *lengths;
    size_t id_count, count;
} sequences;

static iso_status cut_text(sequences *to, const iso_tokenizer *t, const char *text, size_t bytes,
                           model_arena *arena, iso_error *error) {
    const iso_status status =
        iso_tokenizer_encode(t, text, bytes, NULL, 0, &to->id_count, NULL, 0, &to->count, error);
    if (status && status != ISOBIT_E_WORKSPACE)
        return status;
    to->ids = model_alloc(arena, to->id_count + 1, sizeof *to->ids);
    to->lengths = model_alloc(arena, to->count + 1, sizeof *to->lengths);
    if (!to->ids || !to->lengths)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory for the tokens of a text");
    return iso_tokenizer_encode(t, text, bytes, to->ids, to->id_count, &to->id_count, to->lengths,
                                to->count, &to->count, error);
}

/* Of nothing, for an encoder alone: the special tokens around it. */
static iso_status cut_nothing(sequences *to, const iso_model *model, const iso_tokenizer *t,
                              model_arena *arena, iso_error *error) {
    const text_pipeline *p = t->kind == &text_pipeline_kind ? t->state : NULL;
    if (model->config.decoder_layers || !p || p->before_count + p->after_count == 0)
        return model_fail(error, ISOBIT_E_DIM, "the text has no tokens");
    to->count = 1;
    to->id_count = p->before_count + p->after_count;
    to->ids = model_alloc(arena, to->id_count, sizeof *to->ids);
    if (!to->ids)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory for the tokens of a text");
    memcpy(to->ids, p->before, p->before_count * sizeof *to->ids);
    memcpy(to->ids + p->before_count, p->after, p->after_count * sizeof *to->ids);
    return ISOBIT_OK;
}

/* The text with what the folder says of texts done to it; its memory is that of the buffer. */
static iso_status prepare(text_buffer *buffer, const model_sentence *s, const char *text,
                          size_t bytes, iso_error *error) {
    text_buffer whole = {0};
    text_buffer_put(&whole, s->prompt ? s->prompt : "", s->prompt ? strlen(s->prompt) : 0);
    text_buffer_put(&whole, bytes ? text : "", bytes);
    const char *from = whole.text ? whole.text : "";
    size_t count = whole.count;
    strip(&from, &count);
    if (s->lower)
        put_lower(buffer, from, count);
    else
        text_buffer_put(buffer, from, count);
    const int failed = whole.failed || buffer->failed;
    text_buffer_free(&whole);
    return failed ? model_fail(error, ISOBIT_E_NOMEM, "out of memory for a text") : ISOBIT_OK;
}

/* The last token, which is a special one, stays where a text is cut. */
static iso_status take(uint32_t *ids, size_t capacity, iso_sentence_tokens *tokens,
                       const sequences *of, size_t most, iso_error *error) {
    if (of->count > 1)
        return model_fail(error, ISOBIT_E_DIM,
                          "the text is %zu sequences of tokens, where a vector needs one",
                          of->count);
    tokens->whole = of->id_count;
    tokens->count = of->id_count < most ? of->id_count : most;
    if (tokens->count > capacity)
        return model_fail(error, ISOBIT_E_WORKSPACE,
                          "the text has %zu tokens; there is room for %zu", tokens->count,
                          capacity);
    if (!tokens->count)
        return ISOBIT_OK;
    memcpy(ids, of->ids, (tokens->count - 1) * sizeof *ids);
    ids[tokens->count - 1] = of->ids[of->id_count - 1];
    return ISOBIT_OK;
}

iso_status iso_sentence_ids(const iso_model *model, const iso_tokenizer *tokenizer,
                            const char *text, size_t bytes, uint32_t *ids, size_t capacity,
                            iso_sentence_tokens *tokens, iso_error *error) {
    if (!model || !tokenizer || (!text && bytes) || (!ids && capacity) || !tokens)
        return model_fail(error, ISOBIT_E_NULL, "an argument is NULL");
    const model_sentence *s = &model->config.sentence;
    *tokens = (iso_sentence_tokens){0};
    if (s->drops_prompt && s->prompt && s->prompt[0])
        return model_fail(error, ISOBIT_E_UNSUPPORTED,
                          "sentence-transformers' include_prompt false is not supported: pooling "
                          "without the tokens of the prompt");
    iso_status status = text_check_utf8(text, bytes, error);
    if (status)
        return status;
    text_buffer own = {0};
    model_arena arena = {0};
    sequences made = {0};
    status = prepare(&own, s, text, bytes, error);
    const char *prepared = own.text ? own.text : "";
    if (!status)
        status = iso_tokenizer_lacks(tokenizer, prepared, own.count, &tokens->unknown,
                                     &tokens->dropped, error);
    if (!status)
        status = cut_text(&made, tokenizer, prepared, own.count, &arena, error);
    if (!status && !made.count)
        status = cut_nothing(&made, model, tokenizer, &arena, error);
    if (!status)
        status = take(ids, capacity, tokens, &made, iso_model_get_info(model)->sentence_max_length,
                      error);
    text_buffer_free(&own);
    model_arena_free(&arena);
    return status;
}
