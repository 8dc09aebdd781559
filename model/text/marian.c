/* SPDX-License-Identifier: MIT
 *
 * The tokenizer of Marian and OPUS-MT directories, as transformers' MarianTokenizer: source.spm
 * cuts a text into pieces, vocab.json gives their ids (those of SentencePiece are not used), </s>
 * ends the sequence. Special tokens that are written out in the text are cut out first, then a
 * target language at the beginning (">>fra<<"). Generated pieces become text through target.spm.
 */
#include "spm_text.h"

typedef struct marian {
    text_spm *spm[2];        /* source.spm, target.spm */
    uint32_t eos[2], unk[2]; /* of each side */
} marian;

/* ---------------------------------------------------------------------------------- loading */

static iso_status load_vocabulary(iso_tokenizer *t, int side, const char *directory,
                                  const json_t *config, const char *name, iso_error *error) {
    text_vocabulary *v = &t->vocabulary[side];
    json_t *object = NULL;
    uint32_t eos = MODEL_NO_ID, unk = MODEL_NO_ID, pad = MODEL_NO_ID;
    iso_status status = model_json_load(&object, directory, name, TEXT_MAX_VOCABULARY_BYTES, error);
    if (status)
        return status;
    status = text_vocabulary_read(v, &t->arena, object, name, 0, error);
    json_decref(object);
    if (status || (status = text_find_special(v, config, "eos_token", "</s>", name, &eos, error)) ||
        (status = text_find_special(v, config, "unk_token", "<unk>", name, &unk, error)) ||
        (status = text_find_special(v, config, "pad_token", "<pad>", name, &pad, error)))
        return status;
    marian *m = t->state;
    for (int s = side; s < 2; s++) { /* the target's own ones come later, if there are any */
        m->eos[s] = eos;
        m->unk[s] = unk;
    }
    t->eos = m->eos[TEXT_SOURCE];
    t->unk = m->unk[TEXT_SOURCE];
    return ISOBIT_OK;
}

static iso_status load(iso_tokenizer *t, const text_class *of, const char *directory,
                       const json_t *config, iso_error *error) {
    const int separate = json_is_true(json_object_get(config, "separate_vocabs"));
    static const char *const spm_names[] = {"source.spm", "target.spm"};
    const char *names[] = {"vocab.json", separate ? "target_vocab.json" : "vocab.json"};
    (void)of;
    marian *m = t->state = model_alloc(&t->arena, 1, sizeof *m);
    if (!m)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    *m = (marian){0};
    iso_status status = load_vocabulary(t, TEXT_SOURCE, directory, config, names[0], error);
    t->vocabulary[TEXT_TARGET] = t->vocabulary[TEXT_SOURCE];
    if (!status && separate)
        status = load_vocabulary(t, TEXT_TARGET, directory, config, names[1], error);
    for (int side = 0; side < 2 && !status; side++)
        status = text_spm_open(&m->spm[side], directory, spm_names[side], &t->vocabulary[side],
                               names[side], error);
    return status;
}

static void release(iso_tokenizer *t) {
    marian *m = t->state;
    for (int side = 0; m && side < 2; side++)
        text_spm_free(m->spm[side]);
}

/* ----------------------------------------------------------------------------------- encode */

typedef struct encoding {
    const iso_tokenizer *t;
    text_ids *out;
    int side;
} encoding;

static void put_piece(void *to, const char *piece, size_t bytes) {
    encoding *e = to;
    uint32_t id = text_vocabulary_find(&e->t->vocabulary[e->side], piece, bytes);
    if (id == MODEL_NO_ID) {
        id = ((const marian *)e->t->state)->unk[e->side];
        e->out->unknown += text_count_characters(piece, bytes);
    }
    text_put_id(e->out, id);
}

/*
 * A language code of a line, as transformers finds it: from the first ">>" to the last "<<", with
 * something between. 0: none.
 */
static size_t find_code(const char *line, size_t bytes, size_t *begin) {
    size_t first = 0, last = bytes;
    while (first + 5 <= bytes && (line[first] != '>' || line[first + 1] != '>'))
        first++;
    while (last >= first + 5 && (line[last - 1] != '<' || line[last - 2] != '<'))
        last--;
    *begin = first;
    return last >= first + 5 && line[first] == '>' ? last - first : 0;
}

/* Text without special tokens in it. A code at its beginning is a token, others are left out. */
static iso_status put_text(encoding *e, const char *text, size_t bytes) {
    const marian *m = e->t->state;
    model_arena scratch = {0};
    char *rest = model_alloc(&scratch, bytes + 1, 1);
    size_t used = 0, begin;
    if (!rest)
        return ISOBIT_E_NOMEM;
    for (size_t at = 0, line; at < bytes; at += line) {
        const char *end = memchr(text + at, '\n', bytes - at);
        line = end ? (size_t)(end - text) - at + 1 : bytes - at;
        const size_t code = find_code(text + at, line, &begin);
        if (code && at + begin == 0)
            put_piece(e, text, code);
        else if (code)
            e->out->dropped += text_count_characters(text + at + begin, code);
        else
            begin = line;
        memcpy(rest + used, text + at, begin);
        used += begin;
        memcpy(rest + used, text + at + begin + code, line - begin - code);
        used += line - begin - code;
    }
    iso_status status =
        used ? text_spm_encode(m->spm[e->side], rest, used, put_piece, e) : ISOBIT_OK;
    model_arena_free(&scratch);
    return status;
}

/* The special token at the beginning of a text, or NULL. */
static const text_entry *special_at(const text_vocabulary *v, const char *text, size_t bytes) {
    const text_entry *longest = NULL;
    for (size_t i = 0; i < v->special_count; i++) {
        const text_entry *entry = &v->by_id[v->specials[i]];
        if (entry->bytes && entry->bytes <= bytes && !memcmp(entry->token, text, entry->bytes) &&
            (!longest || entry->bytes > longest->bytes))
            longest = entry;
    }
    return longest;
}

static iso_status encode_side(const iso_tokenizer *t, text_ids *out, const char *text, size_t bytes,
                              int side, iso_error *error) {
    const text_vocabulary *v = &t->vocabulary[side];
    encoding e = {t, out, side};
    const size_t before = out->id_count;
    iso_status status = ISOBIT_OK;
    size_t first = 0;
    for (size_t at = 0; at < bytes && !status;) {
        const text_entry *special = special_at(v, text + at, bytes - at);
        if (!special) {
            at++;
            continue;
        }
        status = put_text(&e, text + first, at - first);
        text_put_id(out, special->id);
        first = at += special->bytes;
    }
    if (!status)
        status = put_text(&e, text + first, bytes - first);
    if (status)
        return model_fail(error, status, "%s.spm cannot cut the text: %s",
                          side == TEXT_SOURCE ? "source" : "target", iso_strerror(status));
    if (out->id_count == before)
        return ISOBIT_OK;
    text_put_id(out, ((const marian *)t->state)->eos[side]);
    text_end_sequence(out, before);
    return ISOBIT_OK;
}

static iso_status encode(const iso_tokenizer *t, text_ids *out, const char *text, size_t bytes,
                         iso_error *error) {
    return encode_side(t, out, text, bytes, TEXT_SOURCE, error);
}

static iso_status encode_target(const iso_tokenizer *t, text_ids *out, const char *text,
                                size_t bytes, iso_error *error) {
    return encode_side(t, out, text, bytes, TEXT_TARGET, error);
}

/* ----------------------------------------------------------------------------------- decode */

static iso_status decode(const iso_tokenizer *t, text_chars *out, const uint32_t *ids, size_t count,
                         int side) {
    const marian *m = t->state;
    return text_spm_decode_ids(m->spm[side], &t->vocabulary[side], out, ids, count, 1);
}

const text_kind text_marian = {load, encode, decode, release, 0, encode_target};
