/* SPDX-License-Identifier: MIT
 *
 * Directories with a file of SentencePiece and without tokenizer.json, as transformers turns them
 * into a pipeline: the order of the tokens is a matter of the family, and so are the special
 * tokens, of which tokenizer_config.json, special_tokens_map.json and added_tokens.json tell the
 * rest. And languages, whose tokens stand around a source and before a target.
 */
#include "files.h"
#include "pipeline.h"

#include <stdio.h>
#include <stdlib.h>

typedef enum layout {
    FAIRSEQ, /* <s> <pad> </s> <unk>, the pieces but for the first three */
    T5,      /* the pieces, <extra_id_N> ... <extra_id_0> */
    PEGASUS, /* <pad> </s> and tokens for training, the pieces but for the first two */
    LLAMA    /* the pieces, the first three of which the configuration may name otherwise */
} layout;

typedef enum place { NOWHERE, BEFORE, AFTER } place; /* of the language of a source */

struct text_family {
    const char *file,
        *first; /* of SentencePiece; the language of a source that none is named for */
    layout layout;
    place place;
    const char *const *languages;
    size_t language_count; /* 0: up to the NULL at the end */
    int added_languages;   /* behind the vocabulary rather than in it */
    int has_bos;           /* <s> is special */
    const char *bos, *eos; /* around a text, if tokenizer_config.json says so, or NULL */
    const char *mask;      /* or NULL */
    int normalized_mask;   /* looked for in normal forms */
    int ignores_decoder;   /* "added_tokens_decoder" of tokenizer_config.json */
};

const struct text_family text_nllb = {.file = "sentencepiece.bpe.model",
                                      .first = "eng_Latn",
                                      .layout = FAIRSEQ,
                                      .place = BEFORE,
                                      .languages = text_nllb_languages,
                                      .added_languages = 1,
                                      .has_bos = 1,
                                      .mask = "<mask>",
                                      .normalized_mask = 1};
const struct text_family text_mbart = {.file = "sentencepiece.bpe.model",
                                       .first = "en_XX",
                                       .layout = FAIRSEQ,
                                       .place = AFTER,
                                       .languages = text_mbart_languages,
                                       .language_count = 25,
                                       .has_bos = 1,
                                       .mask = "<mask>"};
const struct text_family text_mbart50 = {.file = "sentencepiece.bpe.model",
                                         .first = "en_XX",
                                         .layout = FAIRSEQ,
                                         .place = BEFORE,
                                         .languages = text_mbart_languages,
                                         .mask = "<mask>",
                                         .normalized_mask = 1};
const struct text_family text_t5 = {.file = "spiece.model", .layout = T5};
const struct text_family text_pegasus = {
    .file = "spiece.model", .layout = PEGASUS, .mask = "<mask_2>", .ignores_decoder = 1};

const struct text_family text_llama = {
    .file = "tokenizer.model", .layout = LLAMA, .has_bos = 1, .bos = "<s>", .eos = "</s>"};
/* In tokenizer.json alone. */
const struct text_family text_gemma = {.layout = LLAMA, .bos = "<bos>", .eos = "<eos>"};

/* A whole number that tokenizer_config.json may have. */
static iso_status read_number(const json_t *config, const char *key, size_t otherwise,
                              size_t *number, iso_error *error) {
    enum { MOST = 65536 };
    const json_t *value = json_object_get(config, key);
    *number = otherwise;
    if (!value || json_is_null(value) || model_json_size(value, 0, MOST, number))
        return ISOBIT_OK;
    return model_fail(error, ISOBIT_E_CONFIG,
                      "tokenizer_config.json: %s is not a whole number up to %d", key, MOST);
}

/* Without the file transformers cannot load a Llama at all; its tokenizer.json is as good. */
int text_family_rebuilds(const struct text_family *family, const char *directory,
                         const json_t *config) {
    model_file file;
    if (!json_is_boolean(json_object_get(config, "add_prefix_space")))
        return 0;
    if (family != &text_llama)
        return family->layout == T5;
    if (model_file_open(&file, directory, family->file, NULL))
        return 0;
    model_file_close(&file);
    return 1;
}

int text_family_updates(const struct text_family *family) { return !family->ignores_decoder; }

/* ------------------------------------------------------------------------ tokens in their order */

typedef struct reader {
    iso_tokenizer *t;
    text_pipeline *p;
    const struct text_family *family;
    const char *directory;
    const json_t *config, *map; /* tokenizer_config.json, special_tokens_map.json or NULL */
    text_pieces pieces;
    json_t *ids, *added, *known; /* `known`: an object with the tokens of the list `added` */
    float *scores;               /* by id */
    size_t count, room;
    iso_error *error;
} reader;

static iso_status no_memory(const reader *r) {
    return model_fail(r->error, ISOBIT_E_NOMEM, "out of memory for %s", r->family->file);
}

static iso_status put_token(reader *r, const char *token, size_t bytes, float score) {
    model_quoted quoted;
    if (json_object_getn(r->ids, token, bytes))
        return model_fail(r->error, ISOBIT_E_DUPLICATE, "%s: two tokens are %s", r->family->file,
                          model_quote(&quoted, token, bytes));
    if (r->count == r->room ||
        json_object_setn_new(r->ids, token, bytes, json_integer((json_int_t)r->count)))
        return no_memory(r);
    r->scores[r->count++] = score;
    return ISOBIT_OK;
}

static iso_status put_numbered(reader *r, const char *format, size_t number, float score) {
    char token[40];
    (void)snprintf(token, sizeof token, format[0] == 'e' ? "<extra_id_%zu>" : "<unk_%zu>", number);
    return put_token(r, token, strlen(token), score);
}

/* As the file has them, but for the scores of the first three, and names that tokenizer_config.json
 * gives them. */
static iso_status put_llama(reader *r) {
    enum { NAMED = 3 };
    const json_t *decoder = json_object_get(r->config, "added_tokens_decoder");
    iso_status status = ISOBIT_OK;
    if (r->pieces.count < NAMED)
        return model_fail(r->error, ISOBIT_E_CONFIG, "%s has less than %d pieces", r->family->file,
                          NAMED);
    for (size_t i = 0; i < r->pieces.count && !status; i++) {
        const text_piece *piece = &r->pieces.pieces[i];
        if (!piece->bytes) { /* an id without a token */
            r->scores[r->count++] = 0;
            continue;
        }
        const char key[] = {(char)('0' + i % 10), 0};
        const char *name =
            i < NAMED ? text_string_or(json_object_get(decoder, key), "content", NULL) : NULL;
        status = name ? put_token(r, name, strlen(name), 0)
                      : put_token(r, piece->text, piece->bytes, i < NAMED ? 0 : piece->score);
    }
    return status;
}

static iso_status put_pieces(reader *r, size_t first) {
    iso_status status = ISOBIT_OK;
    if (r->pieces.count <= first)
        return model_fail(r->error, ISOBIT_E_CONFIG, "%s has no more than %zu pieces",
                          r->family->file, r->pieces.count);
    for (size_t i = first; i < r->pieces.count && !status; i++) {
        const text_piece *piece = &r->pieces.pieces[i];
        if (piece->bytes)
            status = put_token(r, piece->text, piece->bytes, piece->score);
        else /* an id without a token */
            r->scores[r->count++] = 0;
    }
    return status;
}

static iso_status put_names(reader *r, const char *const *names, size_t count) {
    iso_status status = ISOBIT_OK;
    for (size_t i = 0; names && names[i] && (!count || i < count) && !status; i++)
        status = put_token(r, names[i], strlen(names[i]), 0);
    return status;
}

/* A special token: as the files name it, else as transformers does. NULL: a file says none. */
static const char *special(const reader *r, const char *key, const char *otherwise) {
    const json_t *value = json_object_get(r->config, key);
    if (json_is_null(value))
        return NULL;
    return text_string_or(value ? r->config : r->map, key, otherwise);
}

static iso_status put_fairseq(reader *r) {
    static const char *const first[] = {"<s>", "<pad>", "</s>", "<unk>", NULL};
    iso_status status = put_names(r, first, 0);
    if (!status)
        status = put_pieces(r, 3);
    if (status || r->family->added_languages)
        return status;
    status = put_names(r, r->family->languages, r->family->language_count);
    return status ? status : put_token(r, "<mask>", 6, 0);
}

static iso_status put_t5(reader *r, size_t extra) {
    iso_status status = put_pieces(r, 0);
    for (size_t i = extra; i > 0 && !status; i--)
        status = put_numbered(r, "extra", i - 1, 0);
    return status;
}

static iso_status put_pegasus(reader *r, size_t offset) {
    const char *names[] = {special(r, "pad_token", "<pad>"), special(r, "eos_token", "</s>"),
                           special(r, "mask_token_sent", "<mask_1>"),
                           special(r, "mask_token", r->family->mask), NULL};
    if (!names[2])
        names[3] = NULL;
    iso_status status = put_names(r, names, 0);
    for (size_t i = 2; i < offset && !status; i++)
        status = put_numbered(r, "unk", i, -100);
    return status ? status : put_pieces(r, 2);
}

static iso_status put_tokens(reader *r, size_t extra, size_t offset) {
    const size_t most = 4 + 256 + (extra > offset ? extra : offset);
    r->room = r->pieces.count + most;
    r->scores = model_alloc(&r->t->arena, r->room, sizeof *r->scores);
    r->ids = json_object();
    if (!r->scores || !r->ids)
        return no_memory(r);
    return r->family->layout == FAIRSEQ ? put_fairseq(r)
           : r->family->layout == T5    ? put_t5(r, extra)
           : r->family->layout == LLAMA ? put_llama(r)
                                        : put_pegasus(r, offset);
}

/* ------------------------------------------------------------------------------ added tokens */

static int has_token(const reader *r, const char *token) {
    return json_object_get(r->known, token) != NULL;
}

/* Takes over `one`; NULL: no memory. */
static int append(reader *r, const char *token, json_t *one) {
    return one && !json_array_append_new(r->added, one) &&
           !json_object_set_new(r->known, token, json_true());
}

/* A token that is not in the list yet; with an id behind all others, if it has none. */
static int add_token(reader *r, const char *token, int special, int is_mask, int normalized) {
    if (!token || !token[0] || has_token(r, token))
        return 1;
    return append(r, token,
                  json_pack("{s:s, s:b, s:b, s:b}", "content", token, "special", special, "lstrip",
                            is_mask, "normalized", is_mask ? normalized : !special));
}

/* A special token that the files may name, maybe as an object with its properties. */
static int add_named(reader *r, const char *key, const char *otherwise) {
    const char *token = special(r, key, otherwise);
    const json_t *value = json_object_get(r->config, key);
    if (!value)
        value = json_object_get(r->map, key);
    if (r->family->layout != LLAMA || !json_is_object(value))
        return add_token(r, token, 1, 0, 0);
    if (!token || !token[0] || has_token(r, token))
        return 1;
    json_t *copy = text_json_copy(value);
    if (!copy || json_object_set_new(copy, "special", json_true())) {
        json_decref(copy);
        return 0;
    }
    return append(r, token, copy);
}

/* Control pieces are special, those of users are not; both are found as they are written. */
static int add_pieces(reader *r) {
    for (size_t i = 0; i < r->pieces.count; i++) {
        const text_piece *piece = &r->pieces.pieces[i];
        char token[TEXT_MAX_PIECE_BYTES + 1];
        if (piece->type != TEXT_PIECE_CONTROL && piece->type != TEXT_PIECE_USER_DEFINED)
            continue;
        memcpy(token, piece->text, piece->bytes);
        token[piece->bytes] = 0;
        if (!append(r, token,
                    json_pack("{s:s, s:b, s:b}", "content", token, "special",
                              piece->type == TEXT_PIECE_CONTROL, "normalized", 0)))
            return 0;
    }
    return 1;
}

/* "additional_special_tokens", a list of strings or objects. */
static const json_t *additional(const reader *r) {
    const json_t *list = json_object_get(r->config, "additional_special_tokens");
    return json_is_array(list) ? list : json_object_get(r->map, "additional_special_tokens");
}

static const char *name_of(const json_t *one) {
    return json_is_string(one) ? json_string_value(one) : text_string_or(one, "content", "");
}

static int add_additional(reader *r, const char *containing) {
    const json_t *list = additional(r), *one;
    int fine = 1;
    for (size_t i = 0; fine && (one = json_array_get(list, i)); i++)
        if (!containing || strstr(name_of(one), containing))
            fine = add_token(r, name_of(one), 1, 0, 0);
    return fine;
}

static int add_names(reader *r, const char *const *names, size_t count) {
    int fine = 1;
    for (size_t i = 0; names && names[i] && (!count || i < count) && fine; i++)
        fine = add_token(r, names[i], 1, 0, 0);
    return fine;
}

static int add_numbered(reader *r, const char *format, size_t from, size_t to) {
    char token[40];
    int fine = 1;
    for (size_t i = from; i < to && fine; i++) {
        (void)snprintf(token, sizeof token, format[0] == 'e' ? "<extra_id_%zu>" : "<unk_%zu>", i);
        fine = add_token(r, token, 1, 0, 0);
    }
    return fine;
}

/* What transformers adds for a class, in its order. */
static int add_special(reader *r, size_t extra, size_t offset) {
    enum { ALL, FAIRSEQ_ONLY, WITH_BOS };
    static const struct {
        const char *key, *token;
        int who, of_llama; /* Llama has a default of it */
    } first[] = {{"bos_token", "<s>", WITH_BOS, 1}, {"eos_token", "</s>", ALL, 1},
                 {"unk_token", "<unk>", ALL, 1},    {"sep_token", "</s>", FAIRSEQ_ONLY, 0},
                 {"pad_token", "<pad>", ALL, 0},    {"cls_token", "<s>", FAIRSEQ_ONLY, 0}};
    const struct text_family *f = r->family;
    const int fairseq = f->layout == FAIRSEQ, llama = f->layout == LLAMA;
    int fine = 1;
    for (size_t i = 0; i < sizeof first / sizeof *first && fine; i++)
        if (llama || first[i].who == ALL ||
            (fairseq && (first[i].who == FAIRSEQ_ONLY || f->has_bos)))
            fine = add_named(r, first[i].key, llama && !first[i].of_llama ? NULL : first[i].token);
    if (llama)
        fine = fine && add_named(r, "mask_token", NULL);
    /* NLLB has its languages before the mask, although transformers would add them after it. */
    const int own = fairseq && !(f->added_languages && json_is_array(additional(r)));
    if (f->added_languages)
        fine =
            fine && (own ? add_names(r, f->languages, f->language_count) : add_additional(r, NULL));
    if (f->mask)
        fine =
            fine && add_token(r, special(r, "mask_token", f->mask), 1, fairseq, f->normalized_mask);
    if (f->layout == PEGASUS)
        fine =
            fine &&
            add_names(r, (const char *const[]){special(r, "mask_token_sent", "<mask_1>"), NULL}, 0);
    if (!f->added_languages && own)
        fine = fine && add_names(r, f->languages, f->language_count);
    fine = fine && add_additional(r, NULL);
    if (f->layout == T5)
        fine = fine && add_numbered(r, "extra", 0, extra);
    if (f->layout == PEGASUS)
        fine = fine && add_numbered(r, "unk", 2, offset);
    return fine;
}

/* added_tokens.json: an object of ids. The special ones among them are those that are named so. */
static int add_older(reader *r, const json_t *older) {
    const char *token;
    json_t *id;
    reader named = *r;
    named.added = json_array();
    named.known = json_object();
    int fine = named.added && named.known && add_special(&named, 0, 0);
    json_object_foreach((json_t *)(uintptr_t)older, token, id) {
        const int is_special = has_token(&named, token);
        fine = fine && (has_token(r, token) ||
                        append(r, token,
                               json_pack("{s:s, s:b, s:b, s:O}", "content", token, "special",
                                         is_special, "normalized", !is_special, "id", id)));
    }
    json_decref(named.added);
    json_decref(named.known);
    return fine;
}

/* Tokens that no file gives an id come behind all others. */
static int number_tokens(reader *r) {
    size_t next = r->count, id;
    json_t *one;
    for (size_t i = 0; (one = json_array_get(r->added, i)); i++)
        if (model_json_size(json_object_get(one, "id"), 0, MODEL_NO_ID - 2, &id) && id >= next)
            next = id + 1;
    for (size_t i = 0; (one = json_array_get(r->added, i)); i++) {
        const char *token = text_string_or(one, "content", "");
        const json_t *known = json_object_get(r->ids, token);
        if (known ? json_object_set(one, "id", (json_t *)(uintptr_t)known)
            : json_object_get(one, "id")
                ? 0
                : json_object_set_new(one, "id", json_integer((json_int_t)next++)))
            return 0;
    }
    return 1;
}

static iso_status add_tokens(reader *r, size_t extra, size_t offset) {
    const json_t *decoder = json_object_get(r->config, "added_tokens_decoder");
    json_t *older = NULL;
    r->added = json_array();
    r->known = json_object();
    iso_status status = ISOBIT_OK;
    if (!r->added || !r->known || !add_pieces(r))
        return no_memory(r);
    if (!json_is_object(decoder))
        status = text_json_optional(&older, r->directory, "added_tokens.json",
                                    TEXT_MAX_CONFIG_BYTES, r->error);
    else if (text_family_updates(r->family))
        status = text_added_update(r->added, decoder, r->family->file, r->error);
    json_t *one;
    for (size_t i = 0; !status && (one = json_array_get(r->added, i)); i++)
        if (json_object_set_new(r->known, text_string_or(one, "content", ""), json_true()))
            status = no_memory(r);
    const int fine = status || ((!older || add_older(r, older)) && add_special(r, extra, offset) &&
                                number_tokens(r));
    json_decref(older);
    return fine ? status : no_memory(r);
}

/* ---------------------------------------------------------------------------------------- BPE */

/* A way to make a piece of two others; pieces with high scores are made first. */
typedef struct pair {
    float score;
    uint32_t left_length, right_length; /* code points */
    text_merge merge;
} pair;

static int by_score(const void *a, const void *b) {
    const pair *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    if (x->left_length != y->left_length)
        return x->left_length > y->left_length ? -1 : 1;
    if (x->right_length != y->right_length)
        return x->right_length > y->right_length ? -1 : 1;
    return (x->merge.made > y->merge.made) - (x->merge.made < y->merge.made);
}

/* Pairs that make token `id`; they are counted only, while `pairs` is NULL. */
static size_t pairs_of(const reader *r, uint32_t id, pair *pairs) {
    const text_vocabulary *v = &r->t->vocabulary[TEXT_SOURCE];
    const text_entry *entry = &v->by_id[id];
    size_t count = 0, length = 0, at = 0;
    uint32_t code;
    for (size_t i = 0; i < entry->bytes; i++)
        length += ((unsigned char)entry->token[i] & 0xc0) != 0x80;
    for (size_t left = 1; left < length; left++) {
        at += model_utf8(entry->token + at, entry->bytes - at, &code);
        const uint32_t a = text_vocabulary_find(v, entry->token, at);
        const uint32_t b = a < r->count
                               ? text_vocabulary_find(v, entry->token + at, entry->bytes - at)
                               : MODEL_NO_ID;
        if (b >= r->count)
            continue;
        if (pairs)
            pairs[count] = (pair){r->scores[id],
                                  (uint32_t)left,
                                  (uint32_t)(length - left),
                                  {.left = a, .right = b, .made = id}};
        count++;
    }
    return count;
}

static iso_status make_merges(reader *r) {
    text_model *m = &r->p->model;
    size_t count = 0, used = 0;
    for (size_t id = 0; id < r->count; id++)
        count += pairs_of(r, (uint32_t)id, NULL);
    if (count > 64 * r->count + 65536)
        return model_fail(r->error, ISOBIT_E_CONFIG, "%s: %zu pairs of pieces make another piece",
                          r->family->file, count);
    model_arena scratch = {0};
    pair *pairs = model_alloc(&scratch, count, sizeof *pairs);
    iso_status status = pairs ? text_pipeline_bpe(r->t, r->p, count, r->error) : no_memory(r);
    if (!status) {
        for (size_t id = 0; id < r->count; id++)
            used += pairs_of(r, (uint32_t)id, pairs + used);
        if (count)
            qsort(pairs, count, sizeof *pairs, by_score);
        for (size_t i = 0; i < count; i++) {
            m->merges[i] = pairs[i].merge;
            m->merges[i].rank = (uint32_t)i;
        }
        m->merge_count = count;
        text_bpe_finish(m, &r->t->arena);
        m->encode = text_bpe_encode_characters;
        m->fuse_unk = 1;
    }
    model_arena_free(&scratch);
    return status;
}

static iso_status make_unigram(reader *r) {
    text_model *m = &r->p->model;
    double *scores = model_alloc(&r->t->arena, r->t->vocabulary[TEXT_SOURCE].count, sizeof *scores);
    if (!scores)
        return no_memory(r);
    for (size_t i = 0; i < r->count; i++)
        scores[i] = (double)r->scores[i];
    m->scores = scores;
    m->encode = text_unigram_encode;
    text_unigram_finish(m, &r->t->vocabulary[TEXT_SOURCE]);
    return ISOBIT_OK;
}

static iso_status make_model(reader *r, size_t offset) {
    text_model *m = &r->p->model;
    const int bpe = r->pieces.model == TEXT_SPM_BPE;
    const uint64_t number = r->family->layout == FAIRSEQ   ? 3
                            : r->family->layout == LLAMA   ? 0
                            : r->pieces.unk >= r->count    ? r->count
                            : r->family->layout == PEGASUS ? r->pieces.unk + offset
                                                           : r->pieces.unk;
    m->unk = bpe ? text_vocabulary_find(m->vocabulary, r->pieces.unk_text, r->pieces.unk_bytes)
             : number < r->count ? (uint32_t)number
                                 : MODEL_NO_ID;
    if (m->unk >= r->count)
        return model_fail(r->error, ISOBIT_E_MISSING, "%s: the unknown piece is not in it",
                          r->family->file);
    if (r->family->layout == LLAMA)
        text_spelt_find(m);
    return bpe ? make_merges(r) : make_unigram(r);
}

/* ------------------------------------------------------------------------------- the pipeline */

/* A flag of tokenizer_config.json, for which null is false. */
static int flag(const json_t *config, const char *key) {
    const json_t *value = json_object_get(config, key);
    return !value || json_is_true(value);
}

/* The old way spaces become bars in each part of a text; the new way only the first one gets one
 * more. */
static iso_status make_llama_steps(const reader *r) {
    text_pipeline *p = r->p;
    const int prefix = flag(r->config, "add_prefix_space");
    p->decode = text_decode_spelt;
    p->strip = (size_t)prefix;
    if (json_is_false(json_object_get(r->config, "legacy"))) {
        p->metaspace = (text_metaspace){
            .used = 1, .prepend = prefix ? TEXT_PREPEND_FIRST : TEXT_PREPEND_NEVER};
        return ISOBIT_OK;
    }
    if (prefix)
        p->steps[p->step_count++] = (text_step){.run = text_step_prepend, .to = TEXT_BAR};
    p->steps[p->step_count++] = (text_step){.run = text_step_replace, .from = " ", .to = TEXT_BAR};
    return ISOBIT_OK;
}

static iso_status make_steps(reader *r) {
    text_pipeline *p = r->p;
    if (r->family->layout == LLAMA)
        return make_llama_steps(r);
    if (r->pieces.charsmap_bytes) {
        text_step *step = &p->steps[p->step_count++];
        char *copy = model_alloc(&r->t->arena, r->pieces.charsmap_bytes, 1);
        if (!copy)
            return no_memory(r);
        memcpy(copy, r->pieces.charsmap, r->pieces.charsmap_bytes);
        *step = (text_step){.run = text_step_charsmap};
        iso_status status = text_charsmap_open(&step->charsmap, &r->t->arena, r->family->file, copy,
                                               r->pieces.charsmap_bytes, r->error);
        if (status)
            return status;
    }
    p->steps[p->step_count++] = (text_step){.run = text_step_strip, .right = 1};
    p->steps[p->step_count++] = (text_step){.run = text_step_replace, .to = TEXT_BAR};
    text_prepend prepend = TEXT_PREPEND_ALWAYS;
    if (r->family->layout == T5 && json_is_false(json_object_get(r->config, "add_prefix_space")))
        prepend = TEXT_PREPEND_NEVER;
    else if (r->family->layout == T5 && json_is_false(json_object_get(r->config, "legacy")))
        prepend = TEXT_PREPEND_FIRST;
    p->metaspace = (text_metaspace){.used = 1,
                                    .words = r->family->layout == PEGASUS,
                                    .prepend = prepend,
                                    .split = 1,
                                    .decoder = prepend};
    p->decode = text_decode_metaspace;
    return ISOBIT_OK;
}

static iso_status put_around(iso_tokenizer *t, uint32_t *ids, size_t *count, const char *token,
                             iso_error *error) {
    model_quoted quoted;
    const uint32_t id = text_vocabulary_find(&t->vocabulary[TEXT_SOURCE], token, strlen(token));
    if (id == MODEL_NO_ID)
        return model_fail(error, ISOBIT_E_MISSING, "the vocabulary has no token %s",
                          model_quote(&quoted, token, strlen(token)));
    ids[(*count)++] = id;
    return ISOBIT_OK;
}

/* So many <extra_id_N> as tokenizer_config.json asks for; names that it lists must agree. */
static iso_status count_extra(const reader *r, size_t *extra) {
    size_t listed = 0;
    const json_t *list = additional(r), *one;
    iso_status status = read_number(r->config, "extra_ids", 100, extra, r->error);
    for (size_t i = 0; (one = json_array_get(list, i)); i++)
        listed += strstr(name_of(one), "<extra_id_") != NULL;
    if (!status && listed && *extra && listed != *extra)
        status = model_fail(r->error, ISOBIT_E_CONFIG,
                            "tokenizer_config.json: extra_ids is %zu, but "
                            "additional_special_tokens has %zu of them",
                            *extra, listed);
    return status;
}

static iso_status build(reader *r, const char *proto, size_t bytes, model_arena *scratch) {
    size_t extra = 0, offset = 0;
    iso_status status =
        text_spm_check(&r->pieces, scratch, r->family->file, proto, bytes, r->error);
    if (!status && r->family->layout == T5)
        status = count_extra(r, &extra);
    if (!status && r->family->layout == PEGASUS)
        status = read_number(r->config, "offset", 103, &offset, r->error);
    if (!status)
        status = put_tokens(r, extra, offset);
    if (!status)
        status = add_tokens(r, extra, offset);
    if (!status)
        status = text_pipeline_vocabulary(r->t, r->p, r->ids, r->added, r->family->file, r->error);
    if (!status)
        status = make_model(r, offset);
    if (!status)
        status = make_steps(r);
    if (!status && r->family->place == NOWHERE && !r->family->bos)
        status = put_around(r->t, r->p->after, &r->p->after_count,
                            text_string_or(r->config, "eos_token", "</s>"), r->error);
    return status;
}

static void free_lists(const reader *r) {
    json_decref(r->ids);
    json_decref(r->added);
    json_decref(r->known);
}

iso_status text_pipeline_spm(iso_tokenizer *t, text_pipeline *p, const struct text_family *family,
                             const char *directory, const json_t *config, iso_error *error) {
    model_arena scratch = {0};
    char *proto;
    size_t bytes;
    json_t *map = NULL;
    reader r = {
        .t = t, .p = p, .family = family, .directory = directory, .config = config, .error = error};
    if (!family->file)
        return model_fail(error, ISOBIT_E_MISSING, "there is no file tokenizer.json");
    iso_status status = model_file_text(&proto, &bytes, &scratch, directory, family->file,
                                        TEXT_MAX_VOCABULARY_BYTES, error);
    if (!status && !json_is_object(json_object_get(config, "added_tokens_decoder")))
        status = text_json_optional(&map, directory, "special_tokens_map.json",
                                    TEXT_MAX_CONFIG_BYTES, error);
    r.map = map;
    if (!status)
        status = build(&r, proto, bytes, &scratch);
    json_decref(map);
    free_lists(&r);
    model_arena_free(&scratch);
    return status;
}

iso_status text_pipeline_pieces(iso_tokenizer *t, text_pipeline *p, const text_pieces *pieces,
                                int prefix, size_t extra, const char *name, iso_error *error) {
    const struct text_family family = {.file = name,
                                       .layout = pieces->model == TEXT_SPM_BPE ? LLAMA : T5};
    json_t *config = json_pack("{s:b}", "add_prefix_space", prefix);
    reader r = {.t = t,
                .p = p,
                .family = &family,
                .config = config,
                .pieces = *pieces,
                .added = json_array(),
                .known = json_object(),
                .error = error};
    iso_status status = put_tokens(&r, extra, 0);
    if (!status && (!config || !r.added || !r.known || !add_pieces(&r) ||
                    !add_numbered(&r, "extra", 0, extra)))
        status = no_memory(&r);
    if (!status)
        status = text_pipeline_vocabulary(t, p, r.ids, r.added, name, error);
    if (!status)
        status = make_model(&r, 0);
    if (!status)
        status = make_steps(&r);
    json_decref(config);
    free_lists(&r);
    return status;
}

/* ------------------------------------------------------------------------------------- around */

/* One token that `add` asks for, or not. */
static iso_status put_wanted(const reader *r, const char *add, int otherwise, const char *key,
                             const char *name, uint32_t *ids, size_t *count) {
    const json_t *value = json_object_get(r->config, add);
    *count = 0;
    if (value ? !json_is_true(value) : !otherwise)
        return ISOBIT_OK;
    const char *token = special(r, key, name);
    if (!token)
        return model_fail(r->error, ISOBIT_E_CONFIG,
                          "tokenizer_config.json: %s asks for a token, but %s is null", add, key);
    return put_around(r->t, ids, count, token, r->error);
}

iso_status text_pipeline_around(iso_tokenizer *t, text_pipeline *p,
                                const struct text_family *family, const char *directory,
                                const json_t *config, iso_error *error) {
    json_t *map = NULL;
    reader r = {
        .t = t, .p = p, .family = family, .directory = directory, .config = config, .error = error};
    iso_status status = ISOBIT_OK;
    if (!family->bos)
        return ISOBIT_OK;
    if (!json_is_object(json_object_get(config, "added_tokens_decoder")))
        status = text_json_optional(&map, directory, "special_tokens_map.json",
                                    TEXT_MAX_CONFIG_BYTES, error);
    r.map = map;
    if (!status)
        status = put_wanted(&r, "add_bos_token", 1, "bos_token", family->bos, p->before,
                            &p->before_count);
    if (!status)
        status =
            put_wanted(&r, "add_eos_token", 0, "eos_token", family->eos, p->after, &p->after_count);
    json_decref(map);
    return status;
}

/* --------------------------------------------------------------------------------- languages */

/* A special token that is added and has a name without brackets. */
static uint32_t language_at(const text_pipeline *p, const text_vocabulary *v, size_t i) {
    const text_added *added = &p->added.tokens[i];
    return v->special[added->id] && v->by_id[added->id].token[0] != '<' ? added->id : MODEL_NO_ID;
}

static iso_status find_language(const iso_tokenizer *t, const text_pipeline *p, const char *name,
                                uint32_t *id, iso_error *error) {
    const text_vocabulary *v = &t->vocabulary[TEXT_SOURCE];
    text_languages known = {0};
    model_quoted quoted;
    *id = MODEL_NO_ID;
    for (size_t i = 0; i < p->added.count; i++) {
        const uint32_t one = language_at(p, v, i);
        if (one == MODEL_NO_ID)
            continue;
        if (strcmp(v->by_id[one].token, name) == 0)
            *id = one;
        text_languages_add(&known, v->by_id[one].token, v->by_id[one].bytes);
    }
    if (*id != MODEL_NO_ID)
        return ISOBIT_OK;
    return text_languages_fail(&known, model_quote(&quoted, name, strlen(name)), error);
}

iso_status text_pipeline_languages(iso_tokenizer *t, text_pipeline *p,
                                   const struct text_family *family, const json_t *config,
                                   iso_error *error) {
    uint32_t id;
    if (family->place == NOWHERE)
        return text_languages_none(t, error);
    const char *source =
        t->source_language ? t->source_language : text_string_or(config, "src_lang", family->first);
    const char *target =
        t->target_language ? t->target_language : text_string_or(config, "tgt_lang", NULL);
    const int last =
        family->place == AFTER ||
        (family->added_languages && json_is_true(json_object_get(config, "legacy_behaviour")));
    p->before_count = p->after_count = 0;
    iso_status status = put_around(t, p->after, &p->after_count,
                                   text_string_or(config, "eos_token", "</s>"), error);
    if (!status)
        status = find_language(t, p, source, &id, error);
    if (!status && last)
        p->after[p->after_count++] = id;
    else if (!status)
        p->before[p->before_count++] = id;
    if (!status && target)
        status = find_language(t, p, target, &t->forced_bos, error);
    return status;
}
