/* SPDX-License-Identifier: MIT
 *
 * The tokenizer "isobit-characters": a token is one code point, named by vocab.json. A line is cut
 * into words at white space, hyphens and dashes; each word is a sequence of its own. Punctuation
 * around a word (characters at either end that the vocabulary lacks) is dropped; inside a word
 * such a character is the unknown token. Lower-casing covers ASCII, Latin-1 and Latin Extended-A.
 * A typographic apostrophe counts as the plain one where the vocabulary has only that.
 */
#include "json.h"

#include <stdlib.h>
#include <string.h>

#define MAX_VOCABULARY_BYTES ((size_t)64 << 20)
#define MAX_CONFIG_BYTES ((size_t)4 << 20)

typedef struct letter {
    uint32_t code, id;
} letter;

struct iso_tokenizer {
    int lowercase, split_words;
    uint32_t eos, unk;
    const char **tokens; /* [count] */
    char *special;       /* [count] */
    size_t count;
    letter *letters; /* sorted by code point */
    size_t letter_count;
    model_arena arena;
};

/* ----------------------------------------------------------------------------------- letters */

static int by_code(const void *a, const void *b) {
    const letter *x = a, *y = b;
    return (x->code > y->code) - (x->code < y->code);
}

static const letter *find_letter(const iso_tokenizer *t, uint32_t code) {
    const letter key = {code, 0};
    return bsearch(&key, t->letters, t->letter_count, sizeof key, by_code);
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

static int is_space(uint32_t c) {
    return c == ' ' || (c >= 9 && c <= 13) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

static int is_dash(uint32_t c) { return c == '-' || (c >= 0x2010 && c <= 0x2015) || c == 0x2212; }

/* The id of a code point; the unknown id when the vocabulary lacks it. */
static uint32_t id_of(const iso_tokenizer *t, uint32_t code, int *known) {
    if (t->lowercase)
        code = lower(code);
    const letter *found = find_letter(t, code);
    if (!found && (code == 0x2019 || code == 0x2bc))
        found = find_letter(t, '\'');
    *known = found != NULL;
    return found ? found->id : t->unk;
}

/* ----------------------------------------------------------------------------------- loading */

static const char *string_or(const json_t *root, const char *key, const char *otherwise) {
    const json_t *value = json_object_get(root, key);
    /* Special tokens are strings, or objects with their string in "content". */
    if (json_is_object(value))
        value = json_object_get(value, "content");
    return json_is_string(value) ? json_string_value(value) : otherwise;
}

static iso_status read_vocabulary(iso_tokenizer *t, const json_t *vocabulary, iso_error *error) {
    const char *name;
    const json_t *value;
    model_quoted quoted;
    t->count = json_object_size(vocabulary);
    t->tokens = model_alloc(&t->arena, t->count, sizeof *t->tokens);
    t->special = model_alloc(&t->arena, t->count, 1);
    t->letters = model_alloc(&t->arena, t->count, sizeof *t->letters);
    if (!t->tokens || !t->special || !t->letters)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory for the vocabulary");
    for (size_t i = 0; i < t->count; i++) {
        t->tokens[i] = NULL;
        t->special[i] = 0;
    }
    json_object_foreach((json_t *)(uintptr_t)vocabulary, name, value) {
        size_t id, bytes = strlen(name);
        uint32_t code;
        model_quote(&quoted, name, bytes);
        if (t->count == 0 || !model_json_size(value, 0, t->count - 1, &id))
            return model_fail(
                error, ISOBIT_E_CONFIG,
                "vocab.json: the id of %s is not a whole number below %zu, the number "
                "of tokens",
                quoted.text, t->count);
        if (t->tokens[id])
            return model_fail(error, ISOBIT_E_DUPLICATE, "vocab.json: %s has the id %zu of another",
                              quoted.text, id);
        char *copy = model_alloc(&t->arena, bytes + 1, 1);
        if (!copy)
            return model_fail(error, ISOBIT_E_NOMEM, "out of memory for the vocabulary");
        t->tokens[id] = memcpy(copy, name, bytes + 1);
        if (bytes && model_utf8(name, bytes, &code) == bytes)
            t->letters[t->letter_count++] = (letter){code, (uint32_t)id};
    }
    qsort(t->letters, t->letter_count, sizeof *t->letters, by_code);
    return ISOBIT_OK;
}

static iso_status find_special(iso_tokenizer *t, const json_t *config, const char *key,
                               const char *name, uint32_t *id, iso_error *error) {
    model_quoted quoted;
    name = string_or(config, key, name);
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->tokens[i], name) == 0) {
            t->special[i] = 1;
            *id = (uint32_t)i;
            return ISOBIT_OK;
        }
    if (*id == MODEL_NO_ID)
        return model_fail(error, ISOBIT_E_MISSING, "vocab.json has no token %s (%s)",
                          model_quote(&quoted, name, strlen(name)), key);
    return ISOBIT_OK;
}

static iso_status read_tokenizer(iso_tokenizer *t, const char *directory, json_t **config,
                                 json_t **vocabulary, iso_error *error) {
    static const char class_name[] = "isobit-characters";
    model_quoted quoted;
    uint32_t ignored = 0;
    iso_status status =
        model_json_load(config, directory, "tokenizer_config.json", MAX_CONFIG_BYTES, error);
    if (status)
        return status;
    const char *name = string_or(*config, "tokenizer_class", "");
    if (strcmp(name, class_name) != 0)
        return model_fail(error, ISOBIT_E_UNSUPPORTED,
                          "tokenizer_config.json: tokenizer_class %s is not \"%s\"; use token ids",
                          model_quote(&quoted, name, strlen(name)), class_name);
    t->lowercase = json_is_true(json_object_get(*config, "lowercase"));
    t->split_words = json_is_true(json_object_get(*config, "split_words"));
    if ((status =
             model_json_load(vocabulary, directory, "vocab.json", MAX_VOCABULARY_BYTES, error)) ||
        (status = read_vocabulary(t, *vocabulary, error)))
        return status;
    t->eos = t->unk = MODEL_NO_ID;
    if ((status = find_special(t, *config, "eos_token", "</s>", &t->eos, error)) ||
        (status = find_special(t, *config, "unk_token", "<unk>", &t->unk, error)) ||
        (status = find_special(t, *config, "pad_token", "<pad>", &ignored, error)))
        return status;
    return find_special(t, *config, "bos_token", "<s>", &ignored, error);
}

iso_status iso_tokenizer_load(iso_tokenizer **tokenizer, const char *directory, iso_error *error) {
    if (!tokenizer || !directory)
        return model_fail(error, ISOBIT_E_NULL, "tokenizer and directory must not be NULL");
    model_arena arena = {0};
    iso_tokenizer *t = model_alloc(&arena, 1, sizeof *t);
    if (!t)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    *t = (iso_tokenizer){.arena = arena};
    json_t *config = NULL, *vocabulary = NULL;
    iso_status status = read_tokenizer(t, directory, &config, &vocabulary, error);
    json_decref(config);
    json_decref(vocabulary);
    if (status)
        iso_tokenizer_free(t);
    else
        *tokenizer = t;
    return status;
}

void iso_tokenizer_free(iso_tokenizer *tokenizer) {
    if (!tokenizer)
        return;
    model_arena arena = tokenizer->arena; /* which holds the tokenizer itself */
    model_arena_free(&arena);
}

/* ------------------------------------------------------------------------------------ encode */

/* What has been written, and what would be with more room. */
typedef struct output {
    uint32_t *ids;
    size_t *lengths;
    size_t id_room, sequence_room, id_count, sequence_count;
} output;

static void put(output *out, uint32_t id) {
    if (out->id_count < out->id_room)
        out->ids[out->id_count] = id;
    out->id_count++;
}

/* One word, text[0 .. bytes), valid UTF-8. */
static void put_word(const iso_tokenizer *t, output *out, const char *text, size_t bytes) {
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
    if (end == 0)
        return;
    for (size_t at = first; at < end;) {
        at += model_utf8(text + at, end - at, &code);
        put(out, id_of(t, code, &known));
    }
    put(out, t->eos);
    if (out->sequence_count < out->sequence_room)
        out->lengths[out->sequence_count] = out->id_count - before;
    out->sequence_count++;
}

iso_status iso_tokenizer_encode(const iso_tokenizer *tokenizer, const char *text, size_t bytes,
                                uint32_t *ids, size_t capacity_ids, size_t *id_count,
                                size_t *lengths, size_t capacity_sequences, size_t *sequence_count,
                                iso_error *error) {
    if (!tokenizer || (!text && bytes) || (!ids && capacity_ids) || !id_count ||
        (!lengths && capacity_sequences) || !sequence_count)
        return model_fail(error, ISOBIT_E_NULL, "an argument is NULL");
    output out = {ids, lengths, capacity_ids, capacity_sequences, 0, 0};
    uint32_t code;
    if (!text)
        text = ""; /* C11 adds not even 0 to NULL */
    for (size_t at = 0, n; at < bytes; at += n)
        if (!(n = model_utf8(text + at, bytes - at, &code)))
            return model_fail(error, ISOBIT_E_UTF8, "the text is not valid UTF-8 at byte %zu", at);
    size_t first = 0;
    for (size_t at = 0, n; at < bytes; at += n) {
        n = model_utf8(text + at, bytes - at, &code);
        if (tokenizer->split_words && (is_space(code) || is_dash(code))) {
            put_word(tokenizer, &out, text + first, at - first);
            first = at + n;
        }
    }
    put_word(tokenizer, &out, text + first, bytes - first);
    *id_count = out.id_count;
    *sequence_count = out.sequence_count;
    if (out.id_count > capacity_ids || out.sequence_count > capacity_sequences)
        return model_fail(error, ISOBIT_E_WORKSPACE,
                          "the text gives %zu ids in %zu sequences; there is room for %zu and %zu",
                          out.id_count, out.sequence_count, capacity_ids, capacity_sequences);
    return ISOBIT_OK;
}

/* ------------------------------------------------------------------------------------ decode */

iso_status iso_tokenizer_decode(const iso_tokenizer *tokenizer, const uint32_t *ids, size_t count,
                                char *text, size_t bytes, size_t *needed) {
    if (!tokenizer || (!ids && count) || (!text && bytes))
        return ISOBIT_E_NULL;
    for (size_t i = 0; i < count; i++)
        if (ids[i] >= tokenizer->count)
            return ISOBIT_E_RANGE;
    size_t at = 0;
    int cut = bytes == 0;
    for (size_t i = 0, used = 0; i < count; i++) {
        const char *token = tokenizer->tokens[ids[i]];
        const size_t n = tokenizer->special[ids[i]] ? 0 : strlen(token);
        cut |= n >= bytes - used; /* whole tokens only, and room for the NUL */
        if (!cut) {
            memcpy(text + used, token, n);
            used += n;
        }
        if (bytes)
            text[used] = 0;
        at += n;
    }
    if (bytes && !count)
        text[0] = 0;
    if (needed)
        *needed = at + 1;
    return cut ? ISOBIT_E_WORKSPACE : ISOBIT_OK;
}

const char *iso_tokenizer_token(const iso_tokenizer *tokenizer, uint32_t id) {
    return tokenizer && id < tokenizer->count ? tokenizer->tokens[id] : NULL;
}
