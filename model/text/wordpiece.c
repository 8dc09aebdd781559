/* SPDX-License-Identifier: MIT
 *
 * WordPiece: the longest piece that the rest of a word begins with, again and again; a word with a
 * rest that no piece begins is the unknown token as a whole.
 */
#include "pipeline.h"

static size_t count_characters(const char *text, size_t bytes) {
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++)
        count += ((unsigned char)text[i] & 0xc0) != 0x80;
    return count;
}

/* The longest piece at `from`: its bytes, or 0. `key`: room for prefix and word. */
static size_t longest_piece(const text_model *model, const char *word, size_t bytes, size_t from,
                            char *key, uint32_t *id) {
    const size_t prefix = from ? strlen(model->prefix) : 0;
    memcpy(key, model->prefix, prefix);
    memcpy(key + prefix, word + from, bytes - from);
    for (size_t end = bytes; end > from; end--) {
        if (end < bytes && ((unsigned char)word[end] & 0xc0) == 0x80)
            continue; /* within a character */
        *id = text_vocabulary_find(model->vocabulary, key, prefix + end - from);
        if (*id != MODEL_NO_ID && !model->only_added[*id])
            return end - from;
    }
    return 0;
}

iso_status text_wordpiece_encode(const text_model *model, text_ids *out, const char *word,
                                 size_t bytes) {
    model_arena scratch = {0};
    const size_t characters = count_characters(word, bytes);
    uint32_t id = MODEL_NO_ID;
    size_t piece = 0;
    char *key = NULL;
    uint32_t *ids = NULL;
    size_t count = 0;
    if (characters <= model->longest_word) {
        key = model_alloc(&scratch, bytes + strlen(model->prefix) + 1, 1);
        ids = model_alloc(&scratch, bytes, sizeof *ids);
        if (!key || !ids) {
            model_arena_free(&scratch);
            return ISOBIT_E_NOMEM;
        }
        for (size_t at = 0; at < bytes; at += piece) {
            piece = longest_piece(model, word, bytes, at, key, &id);
            if (piece == 0)
                break;
            ids[count++] = id;
        }
    }
    if (piece) {
        for (size_t i = 0; i < count; i++)
            text_put_id(out, ids[i]);
    } else {
        text_put_id(out, model->unk);
        out->unknown += characters;
    }
    model_arena_free(&scratch);
    return ISOBIT_OK;
}

/* ------------------------------------------------------------------------------------ decode */

/* What the decoder of tokenizers replaces, in this order. */
static const char *const untidy[][2] = {
    {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
    {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
    {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
};

/* In place: `to` is not longer than `from`. */
static void replace(text_buffer *text, const char *from, const char *to) {
    const size_t n = strlen(from), m = strlen(to);
    size_t kept = 0;
    for (size_t at = 0; at < text->count;) {
        if (text->count - at >= n && memcmp(text->text + at, from, n) == 0) {
            memcpy(text->text + kept, to, m);
            kept += m;
            at += n;
        } else {
            text->text[kept++] = text->text[at++];
        }
    }
    text->count = kept;
}

void text_tidy(text_buffer *text, int of_decoder) {
    for (size_t i = 0; i < sizeof untidy / sizeof *untidy; i++)
        if (of_decoder || strcmp(untidy[i][0], " do not") != 0)
            replace(text, untidy[i][0], untidy[i][1]);
}

/*
 * What is tidied begins with a space and has four bytes at most, so a word of that length, or none
 * before it, ends all doubt. A space ends it, too, unless what goes before it can become a part of
 * something: " ' " loses its spaces, and may so make an ending.
 */
static int is_settled(const text_buffer *text, size_t end) {
    enum { LONGEST = 4 };
    size_t word = end;
    while (word > 0 && text->text[word - 1] != ' ')
        word--;
    if (word == 0 || end - word >= LONGEST)
        return 1;
    return end < text->count && !strchr(" 'n", text->text[end - 1]);
}

void text_hold(text_buffer *text) {
    size_t end = text->count;
    while (!is_settled(text, end))
        while (text->text[--end] != ' ')
            ;
    text->count = end;
}

void text_decode_wordpiece(const text_pipeline *p, const text_vocabulary *v, text_buffer *out,
                           const uint32_t *ids, size_t count) {
    const size_t prefix = strlen(p->model.prefix);
    int first = 1;
    for (size_t i = 0; i < count; i++) {
        const text_entry *entry = &v->by_id[ids[i]];
        text_buffer piece = {0};
        if (v->special[ids[i]])
            continue;
        const int continues = !first && prefix && entry->bytes >= prefix &&
                              memcmp(entry->token, p->model.prefix, prefix) == 0;
        if (!continues && !first)
            text_buffer_put(&piece, " ", 1);
        text_buffer_put(&piece, entry->token + (continues ? prefix : 0),
                        entry->bytes - (continues ? prefix : 0));
        if (p->cleanup)
            text_tidy(&piece, 1);
        text_buffer_put(out, piece.text, piece.count);
        out->failed |= piece.failed;
        text_buffer_free(&piece);
        first = 0;
    }
}
