/* SPDX-License-Identifier: MIT
 *
 * The tokenizer "isobit-characters": a token is one code point, named by vocab.json. A line is cut
 * into words at white space, hyphens and dashes; each word is a sequence of its own. Punctuation
 * around a word (characters at either end that the vocabulary lacks) is dropped; inside a word
 * such a character is the unknown token. Lower-casing covers ASCII, Latin-1 and Latin Extended-A.
 * A typographic apostrophe counts as the plain one where the vocabulary has only that.
 */
#include "text.h"

#include <stdlib.h>
#include <string.h>

typedef struct letter {
    uint32_t code, id;
} letter;

typedef struct characters {
    int lowercase, split_words;
    letter *letters; /* sorted by code point */
    size_t letter_count;
} characters;

/* ----------------------------------------------------------------------------------- letters */

static int by_code(const void *a, const void *b) {
    const letter *x = a, *y = b;
    return (x->code > y->code) - (x->code < y->code);
}

static const letter *find_letter(const iso_tokenizer *t, uint32_t code) {
    const characters *c = t->state;
    const letter key = {code, 0};
    return bsearch(&key, c->letters, c->letter_count, sizeof key, by_code);
}

static uint32_t lower(uint32_t c) {
    if ((c >= 'A' && c <= 'Z') || (c >= 0xc0 && c <= 0xde && c != 0xd7))
        return c + 0x20;
    if (c == 0x130) /* capital I with a dot */
        return 'i';
    if (c == 0x178)
        return 0xff;
    /* Latin Extended-A: pairs, the capital even in some stretches and odd in others. */
    if ((c >= 0x100 && c <= 0x137) || (c >= 0x14a && c <= 0x177))
        return c | 1;
    if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e))
        return c + (c & 1);
    return c;
}

static int is_dash(uint32_t c) { return c == '-' || (c >= 0x2010 && c <= 0x2015) || c == 0x2212; }

/* The id of a code point; the unknown id when the vocabulary lacks it. */
static uint32_t id_of(const iso_tokenizer *t, uint32_t code, int *known) {
    if (((const characters *)t->state)->lowercase)
        code = lower(code);
    const letter *found = find_letter(t, code);
    if (!found && (code == 0x2019 || code == 0x2bc))
        found = find_letter(t, '\'');
    *known = found != NULL;
    return found ? found->id : t->unk;
}

/* ----------------------------------------------------------------------------------- loading */

static iso_status read_letters(characters *c, iso_tokenizer *t, iso_error *error) {
    const text_vocabulary *v = &t->vocabulary[TEXT_SOURCE];
    uint32_t code;
    c->letters = model_alloc(&t->arena, v->count, sizeof *c->letters);
    if (!c->letters)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory for the vocabulary");
    for (size_t i = 0; i < v->count; i++) {
        const text_entry *entry = &v->by_id[i];
        if (entry->bytes && model_utf8(entry->token, entry->bytes, &code) == entry->bytes)
            c->letters[c->letter_count++] = (letter){code, entry->id};
    }
    qsort(c->letters, c->letter_count, sizeof *c->letters, by_code);
    return ISOBIT_OK;
}

static iso_status load(iso_tokenizer *t, const text_class *of, const char *directory,
                       const json_t *config, iso_error *error) {
    static const char file[] = "vocab.json";
    text_vocabulary *v = &t->vocabulary[TEXT_SOURCE];
    json_t *vocabulary;
    uint32_t ignored = 0;
    (void)of;
    characters *c = t->state = model_alloc(&t->arena, 1, sizeof *c);
    if (!c)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    *c = (characters){.lowercase = json_is_true(json_object_get(config, "lowercase")),
                      .split_words = json_is_true(json_object_get(config, "split_words"))};
    iso_status status =
        model_json_load(&vocabulary, directory, file, TEXT_MAX_VOCABULARY_BYTES, error);
    if (status)
        return status;
    status = text_vocabulary_read(v, &t->arena, vocabulary, file, 0, error);
    json_decref(vocabulary);
    if (status || (status = read_letters(c, t, error)) ||
        (status = text_find_special(v, config, "eos_token", "</s>", file, &t->eos, error)) ||
        (status = text_find_special(v, config, "unk_token", "<unk>", file, &t->unk, error)))
        return status;
    (void)text_find_special(v, config, "pad_token", "<pad>", file, &ignored, error);
    (void)text_find_special(v, config, "bos_token", "<s>", file, &ignored, error);
    t->vocabulary[TEXT_TARGET] = *v;
    return ISOBIT_OK;
}

/* ------------------------------------------------------------------------------ text and ids */

/* One word, text[0 .. bytes), valid UTF-8. */
static void put_word(const iso_tokenizer *t, text_ids *out, const char *text, size_t bytes) {
    size_t first = bytes, end = 0, before = out->id_count;
    uint32_t code;
    int known;
    for (size_t at = 0, n; at < bytes; at += n) {
        n = model_utf8(text + at, bytes - at, &code);
        id_of(t, code, &known);
        if (known) {
            first = at < first ? at : first;
            end = at + n;
        }
    }
    for (size_t at = 0, n; at < bytes; at += n) {
        n = model_utf8(text + at, bytes - at, &code);
        const uint32_t id = id_of(t, code, &known);
        if (at < first || at >= end) {
            out->dropped++;
        } else {
            text_put_id(out, id);
            out->unknown += !known;
        }
    }
    if (end == 0)
        return;
    text_put_id(out, t->eos);
    text_end_sequence(out, before);
}

static iso_status encode(const iso_tokenizer *t, text_ids *out, const char *text, size_t bytes,
                         iso_error *error) {
    const characters *c = t->state;
    uint32_t code;
    size_t first = 0;
    (void)error;
    for (size_t at = 0, n; at < bytes; at += n) {
        n = model_utf8(text + at, bytes - at, &code);
        if (c->split_words && (text_is_space(code) || is_dash(code))) {
            put_word(t, out, text + first, at - first);
            first = at + n;
        }
    }
    put_word(t, out, text + first, bytes - first);
    return ISOBIT_OK;
}

static iso_status decode(const iso_tokenizer *t, text_chars *out, const uint32_t *ids, size_t count,
                         int side) {
    const text_vocabulary *v = &t->vocabulary[side];
    for (size_t i = 0; i < count; i++)
        if (!v->special[ids[i]])
            text_put_chars(out, v->by_id[ids[i]].token, v->by_id[ids[i]].bytes);
    return ISOBIT_OK;
}

const text_kind text_characters = {load, encode, decode, NULL, 0, NULL};
