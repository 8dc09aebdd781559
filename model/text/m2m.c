/* SPDX-License-Identifier: MIT
 *
 * The tokenizer of M2M100 and WMT21 directories, as transformers' M2M100Tokenizer:
 * sentencepiece.bpe.model cuts a text into pieces, vocab.json gives their ids, and the languages,
 * "__en__", come behind them. A source is [language] text </s>.
 */
#include "spm_text.h"

static const char vocabulary_file[] = "vocab.json", spm_file[] = "sentencepiece.bpe.model";

typedef struct m2m {
    text_spm *spm;
    text_added_set added; /* found as they are written */
    uint32_t source;      /* the language */
} m2m;

/* ---------------------------------------------------------------------------------- loading */

enum { LONGEST_NAME = 40 };

/* Of one of the lists, which have no longer names. */
static const char *language_token(char token[LONGEST_NAME + 5], const char *name) {
    const size_t bytes = strlen(name);
    memcpy(token, "__", 2);
    memcpy(token + 2, name, bytes);
    memcpy(token + 2 + bytes, "__", 3);
    return token;
}

/* The languages that the directory has: a list of the names. */
static iso_status choose_languages(const json_t *config, const char *const **names,
                                   iso_error *error) {
    model_quoted quoted;
    const char *codes = text_string_or(config, "language_codes", "m2m100");
    *names = strcmp(codes, "m2m100") == 0  ? text_m2m_languages
             : strcmp(codes, "wmt21") == 0 ? text_wmt21_languages
                                           : NULL;
    if (*names)
        return ISOBIT_OK;
    return model_fail(error, ISOBIT_E_UNSUPPORTED,
                      "tokenizer_config.json: language_codes %s are neither \"m2m100\" nor "
                      "\"wmt21\"",
                      model_quote(&quoted, codes, strlen(codes)));
}

static iso_status read_vocabulary(iso_tokenizer *t, const char *const *names, const char *directory,
                                  iso_error *error) {
    json_t *object = NULL;
    char token[LONGEST_NAME + 5];
    iso_status status =
        model_json_load(&object, directory, vocabulary_file, TEXT_MAX_VOCABULARY_BYTES, error);
    if (status)
        return status;
    const size_t size = json_object_size(object);
    int failed = 0;
    for (size_t i = 0; names[i] && !failed; i++)
        failed = json_object_set_new(object, language_token(token, names[i]),
                                     json_integer((json_int_t)size + (json_int_t)i));
    status = failed ? model_fail(error, ISOBIT_E_NOMEM, "out of memory for %s", vocabulary_file)
                    : text_vocabulary_read(&t->vocabulary[TEXT_SOURCE], &t->arena, object,
                                           vocabulary_file, 0, error);
    json_decref(object);
    return status;
}

static iso_status read_special(iso_tokenizer *t, const json_t *config, iso_error *error) {
    text_vocabulary *v = &t->vocabulary[TEXT_SOURCE];
    uint32_t pad = MODEL_NO_ID, bos = 0;
    iso_status status =
        text_find_special(v, config, "eos_token", "</s>", vocabulary_file, &t->eos, error);
    if (!status)
        status =
            text_find_special(v, config, "unk_token", "<unk>", vocabulary_file, &t->unk, error);
    if (!status)
        status = text_find_special(v, config, "pad_token", "<pad>", vocabulary_file, &pad, error);
    if (!status) /* not needed */
        status = text_find_special(v, config, "bos_token", "<s>", vocabulary_file, &bos, error);
    return status;
}

static iso_status find_language(const iso_tokenizer *t, const char *const *names, const char *name,
                                uint32_t *id, iso_error *error) {
    const text_vocabulary *v = &t->vocabulary[TEXT_SOURCE];
    text_languages known = {0};
    model_quoted quoted;
    char token[LONGEST_NAME + 5];
    for (size_t i = 0; names[i]; i++) {
        text_languages_add(&known, names[i], strlen(names[i]));
        if (strcmp(names[i], name) != 0)
            continue;
        (void)language_token(token, name);
        *id = text_vocabulary_find(v, token, strlen(token));
        return ISOBIT_OK;
    }
    return text_languages_fail(&known, model_quote(&quoted, name, strlen(name)), error);
}

/* Special tokens and languages are cut out of a text. */
static iso_status read_added(iso_tokenizer *t, const char *const *names, iso_error *error) {
    text_vocabulary *v = &t->vocabulary[TEXT_SOURCE];
    m2m *m = t->state;
    char token[LONGEST_NAME + 5];
    size_t count = 0;
    while (names[count])
        count++;
    m->added.tokens = model_alloc(&t->arena, v->special_count + count, sizeof *m->added.tokens);
    if (!m->added.tokens)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory for the languages");
    for (size_t i = 0; i < v->special_count + count; i++) {
        uint32_t id = i < v->special_count ? v->specials[i] : 0;
        if (i >= v->special_count) {
            const char *name = language_token(token, names[i - v->special_count]);
            id = text_vocabulary_find(v, name, strlen(name));
        }
        v->special[id] = 1;
        m->added.tokens[m->added.count++] =
            (text_added){.token = v->by_id[id].token, .bytes = v->by_id[id].bytes, .id = id};
    }
    text_added_sort(&m->added);
    return ISOBIT_OK;
}

static iso_status load(iso_tokenizer *t, const text_class *of, const char *directory,
                       const json_t *config, iso_error *error) {
    const char *const *names;
    (void)of;
    m2m *m = t->state = model_alloc(&t->arena, 1, sizeof *m);
    if (!m)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    *m = (m2m){0};
    const char *source =
        t->source_language ? t->source_language : text_string_or(config, "src_lang", "en");
    const char *target =
        t->target_language ? t->target_language : text_string_or(config, "tgt_lang", NULL);
    iso_status status = choose_languages(config, &names, error);
    if (!status)
        status = read_vocabulary(t, names, directory, error);
    if (!status)
        status = read_special(t, config, error);
    if (!status)
        status = read_added(t, names, error);
    if (!status)
        status = find_language(t, names, source, &m->source, error);
    if (!status && target)
        status = find_language(t, names, target, &t->forced_bos, error);
    if (!status)
        status = text_spm_open(&m->spm, directory, spm_file, &t->vocabulary[TEXT_SOURCE],
                               vocabulary_file, error);
    t->vocabulary[TEXT_TARGET] = t->vocabulary[TEXT_SOURCE];
    return status;
}

static void release(iso_tokenizer *t) {
    const m2m *m = t->state;
    if (m)
        text_spm_free(m->spm);
}

/* ------------------------------------------------------------------------------ text and ids */

typedef struct encoding {
    const iso_tokenizer *t;
    text_ids *out;
} encoding;

static void put_piece(void *to, const char *piece, size_t bytes) {
    encoding *e = to;
    uint32_t id = text_vocabulary_find(&e->t->vocabulary[TEXT_SOURCE], piece, bytes);
    if (id == MODEL_NO_ID) {
        id = e->t->unk;
        e->out->unknown += text_count_characters(piece, bytes);
    }
    text_put_id(e->out, id);
}

static iso_status put_part(void *to, const text_added *added, const char *text, size_t bytes) {
    encoding *e = to;
    const m2m *m = e->t->state;
    if (!added)
        return text_spm_encode(m->spm, text, bytes, put_piece, e);
    text_put_id(e->out, added->id);
    return ISOBIT_OK;
}

static iso_status encode(const iso_tokenizer *t, text_ids *out, const char *text, size_t bytes,
                         iso_error *error) {
    const m2m *m = t->state;
    encoding e = {t, out};
    const size_t before = out->id_count;
    text_put_id(out, m->source);
    const size_t first = out->id_count;
    iso_status status = text_added_split(&m->added, 0, text, bytes, put_part, &e);
    if (status)
        return model_fail(error, status, "%s cannot cut the text: %s", spm_file,
                          iso_strerror(status));
    if (out->id_count == first) { /* nothing is left of it */
        out->id_count = before;
        return ISOBIT_OK;
    }
    text_put_id(out, t->eos);
    text_end_sequence(out, before);
    return ISOBIT_OK;
}

static iso_status decode(const iso_tokenizer *t, text_chars *out, const uint32_t *ids, size_t count,
                         int side) {
    const m2m *m = t->state;
    return text_spm_decode_ids(m->spm, &t->vocabulary[side], out, ids, count, 0);
}

const text_kind text_m2m = {load, encode, decode, release, 1, NULL};
