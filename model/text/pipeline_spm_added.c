/* SPDX-License-Identifier: MIT
 *
 * See pipeline_spm.h: special tokens, those of users, and those that older files add.
 */
#include "pipeline_spm.h"

#include <stdio.h>

static int has_token(const text_spm_reader *r, const char *token) {
    return json_object_get(r->known, token) != NULL;
}

/* Takes over `one`; NULL: no memory. */
static int append(text_spm_reader *r, const char *token, json_t *one) {
    return one && !json_array_append_new(r->added, one) &&
           !json_object_set_new(r->known, token, json_true());
}

/* A token that is not in the list yet; with an id behind all others, if it has none. */
static int add_token(text_spm_reader *r, const char *token, int special, int is_mask,
                     int normalized) {
    if (!token || !token[0] || has_token(r, token))
        return 1;
    return append(r, token,
                  json_pack("{s:s, s:b, s:b, s:b}", "content", token, "special", special, "lstrip",
                            is_mask, "normalized", is_mask ? normalized : !special));
}

/* A special token that the files may name, maybe as an object with its properties. */
static int add_named(text_spm_reader *r, const char *key, const char *otherwise) {
    const char *token = text_spm_special(r, key, otherwise);
    const json_t *value = json_object_get(r->config, key);
    if (!value)
        value = json_object_get(r->map, key);
    if (r->family->layout != LLAMA || !json_is_object(value))
        return add_token(r, token, 1, 0, 0);
    if (!token || !token[0] || has_token(r, token))
        return 1;
    json_t *copy = model_json_copy(value);
    if (!copy || json_object_set_new(copy, "special", json_true())) {
        json_decref(copy);
        return 0;
    }
    return append(r, token, copy);
}

int text_spm_add_pieces(text_spm_reader *r) {
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

static int add_additional(text_spm_reader *r, const char *containing) {
    const json_t *list = text_spm_additional(r), *one;
    int fine = 1;
    for (size_t i = 0; fine && (one = json_array_get(list, i)); i++)
        if (!containing || strstr(text_spm_name_of(one), containing))
            fine = add_token(r, text_spm_name_of(one), 1, 0, 0);
    return fine;
}

static int add_names(text_spm_reader *r, const char *const *names, size_t count) {
    int fine = 1;
    for (size_t i = 0; names && names[i] && (!count || i < count) && fine; i++)
        fine = add_token(r, names[i], 1, 0, 0);
    return fine;
}

int text_spm_add_numbered(text_spm_reader *r, const char *format, size_t from, size_t to) {
    char token[40];
    int fine = 1;
    for (size_t i = from; i < to && fine; i++) {
        (void)snprintf(token, sizeof token, format[0] == 'e' ? "<extra_id_%zu>" : "<unk_%zu>", i);
        fine = add_token(r, token, 1, 0, 0);
    }
    return fine;
}

/* What transformers adds for a class, in its order. */
static int add_special(text_spm_reader *r, size_t extra, size_t offset) {
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
    const int own = fairseq && !(f->added_languages && json_is_array(text_spm_additional(r)));
    if (f->added_languages)
        fine =
            fine && (own ? add_names(r, f->languages, f->language_count) : add_additional(r, NULL));
    if (f->mask)
        fine = fine && add_token(r, text_spm_special(r, "mask_token", f->mask), 1, fairseq,
                                 f->normalized_mask);
    if (f->layout == PEGASUS)
        fine = fine && add_names(r,
                                 (const char *const[]){
                                     text_spm_special(r, "mask_token_sent", "<mask_1>"), NULL},
                                 0);
    if (!f->added_languages && own)
        fine = fine && add_names(r, f->languages, f->language_count);
    fine = fine && add_additional(r, NULL);
    if (f->layout == T5)
        fine = fine && text_spm_add_numbered(r, "extra", 0, extra);
    if (f->layout == PEGASUS)
        fine = fine && text_spm_add_numbered(r, "unk", 2, offset);
    return fine;
}

/* added_tokens.json: an object of ids. The special ones among them are those that are named so. */
static int add_older(text_spm_reader *r, const json_t *older) {
    const char *token;
    json_t *id;
    text_spm_reader named = *r;
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
static int number_tokens(text_spm_reader *r) {
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

iso_status text_spm_add_tokens(text_spm_reader *r, size_t extra, size_t offset) {
    const json_t *decoder = json_object_get(r->config, "added_tokens_decoder");
    json_t *older = NULL;
    r->added = json_array();
    r->known = json_object();
    iso_status status = ISOBIT_OK;
    if (!r->added || !r->known || !text_spm_add_pieces(r))
        return text_spm_no_memory(r);
    if (!json_is_object(decoder))
        status = text_json_optional(&older, r->directory, "added_tokens.json",
                                    TEXT_MAX_CONFIG_BYTES, r->error);
    else if (text_family_updates(r->family))
        status = text_added_update(r->added, decoder, r->family->file, r->error);
    json_t *one;
    for (size_t i = 0; !status && (one = json_array_get(r->added, i)); i++)
        if (json_object_set_new(r->known, text_string_or(one, "content", ""), json_true()))
            status = text_spm_no_memory(r);
    const int fine = status || ((!older || add_older(r, older)) && add_special(r, extra, offset) &&
                                number_tokens(r));
    json_decref(older);
    return fine ? status : text_spm_no_memory(r);
}
