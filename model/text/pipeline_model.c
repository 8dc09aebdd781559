/* SPDX-License-Identifier: MIT
 *
 * The model of tokenizer.json: BPE, WordPiece or Unigram. BPE of other files, too.
 */
#include "pipeline_json.h"

#include <math.h>

static const char file[] = "tokenizer.json";

iso_status text_pipeline_bpe(iso_tokenizer *t, text_pipeline *p, size_t merges, iso_error *error) {
    text_model *m = &p->model;
    text_buffer letter = {0};
    m->encode = text_bpe_encode;
    p->decode = text_decode_bytes;
    for (unsigned byte = 0; byte < 256; byte++) {
        letter.count = 0;
        text_buffer_code(&letter, text_byte_letter((unsigned char)byte));
        m->bytes[byte] = letter.failed
                             ? MODEL_NO_ID
                             : text_vocabulary_find(m->vocabulary, letter.text, letter.count);
    }
    const int failed = letter.failed;
    text_buffer_free(&letter);
    m->merges = model_alloc(&t->arena, merges, sizeof *m->merges);
    if (failed || !m->merges)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory for the merges");
    return ISOBIT_OK;
}

iso_status text_pipeline_merge(text_pipeline *p, const char *left, size_t left_bytes,
                               const char *right, size_t right_bytes, const char *where,
                               iso_error *error) {
    text_model *m = &p->model;
    const uint32_t a = text_vocabulary_find(m->vocabulary, left, left_bytes);
    const uint32_t b = text_vocabulary_find(m->vocabulary, right, right_bytes);
    uint32_t made = MODEL_NO_ID;
    char few[128];
    if (a == MODEL_NO_ID || b == MODEL_NO_ID) {
        /* then it does not matter */
    } else if (left_bytes <= sizeof few / 2 && right_bytes <= sizeof few / 2) {
        memcpy(few, left, left_bytes);
        memcpy(few + left_bytes, right, right_bytes);
        if (left_bytes + right_bytes)
            made = text_vocabulary_find(m->vocabulary, few, left_bytes + right_bytes);
    } else {
        text_buffer both = {0};
        text_buffer_put(&both, left, left_bytes);
        text_buffer_put(&both, right, right_bytes);
        const int failed = both.failed;
        if (!failed)
            made = text_vocabulary_find(m->vocabulary, both.text, both.count);
        text_buffer_free(&both);
        if (failed)
            return model_fail(error, ISOBIT_E_NOMEM, "out of memory for %s", where);
    }
    if (a == MODEL_NO_ID || b == MODEL_NO_ID || made == MODEL_NO_ID)
        return model_fail(error, ISOBIT_E_CONFIG,
                          "%s: merge %zu has parts that are not in the vocabulary", where,
                          m->merge_count);
    m->merges[m->merge_count] = (text_merge){a, b, (uint32_t)m->merge_count, made};
    m->merge_count++;
    return ISOBIT_OK;
}

static iso_status read_merge(text_pipeline *p, const json_t *one, iso_error *error) {
    if (json_is_array(one) && json_array_size(one) == 2 && json_is_string(json_array_get(one, 0)) &&
        json_is_string(json_array_get(one, 1))) {
        const json_t *a = json_array_get(one, 0), *b = json_array_get(one, 1);
        return text_pipeline_merge(p, json_string_value(a), json_string_length(a),
                                   json_string_value(b), json_string_length(b), file, error);
    }
    const char *text = json_is_string(one) ? json_string_value(one) : "";
    const char *space = strchr(text, ' ');
    if (!space)
        return text_json_damaged(error, "a merge");
    return text_pipeline_merge(p, text, (size_t)(space - text), space + 1, strlen(space + 1), file,
                               error);
}

/* Neither matters where each byte is a token. */
static iso_status check_byte_level(const text_pipeline *p, const json_t *model, iso_error *error) {
    size_t known = 0;
    for (int byte = 0; byte < 256; byte++)
        known += p->model.bytes[byte] != MODEL_NO_ID;
    if (known < 256 &&
        (text_json_true(model, "byte_fallback") || text_json_true(model, "fuse_unk")))
        return text_json_refuse(error, "with the pre_tokenizer ByteLevel the model BPE with",
                                "byte_fallback or fuse_unk");
    return ISOBIT_OK;
}

/* BPE on characters. */
static iso_status read_characters(text_pipeline *p, const json_t *model, iso_error *error) {
    p->model.encode = text_bpe_encode_characters;
    p->model.fuse_unk = text_json_true(model, "fuse_unk");
    if (text_json_true(model, "byte_fallback"))
        text_spelt_find(&p->model);
    if (json_is_string(json_object_get(model, "unk_token")) && p->model.unk == MODEL_NO_ID)
        return model_fail(error, ISOBIT_E_MISSING,
                          "tokenizer.json: the unknown token of BPE is not in the vocabulary");
    return ISOBIT_OK;
}

static iso_status read_scanned_merges(text_pipeline *p, const text_scanned *s, iso_error *error) {
    const char *text = s->merges_text;
    iso_status status = ISOBIT_OK;
    for (size_t i = 0; i < s->merge_count && !status; i++) {
        const text_scanned_merge *merge = &s->merges[i];
        status = text_pipeline_merge(p, text, merge->left, text + merge->left, merge->right, file,
                                     error);
        text += merge->left + merge->right;
    }
    return status;
}

static iso_status read_bpe(iso_tokenizer *t, text_pipeline *p, const json_t *model,
                           const text_scanned *scanned, int byte_level, iso_error *error) {
    static const char *const empty[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const json_t *merges = json_object_get(model, "merges"), *one;
    for (int i = 0; i < 2; i++)
        if (text_string_or(model, empty[i], "")[0])
            return text_json_refuse(error, "in the model BPE", empty[i]);
    if (json_number_value(json_object_get(model, "dropout")) != 0)
        return text_json_refuse(error, "in the model BPE", "dropout");
    iso_status status =
        text_pipeline_bpe(t, p, scanned ? scanned->merge_count : json_array_size(merges), error);
    if (!status && byte_level)
        status = check_byte_level(p, model, error);
    else if (!status)
        status = read_characters(p, model, error);
    if (!status && scanned)
        status = read_scanned_merges(p, scanned, error);
    for (size_t i = 0; !status && (one = json_array_get(merges, i)); i++)
        status = read_merge(p, one, error);
    text_bpe_finish(&p->model, &t->arena);
    p->model.ignore_merges = text_json_true(model, "ignore_merges");
    return status;
}

static iso_status read_wordpiece(iso_tokenizer *t, text_pipeline *p, const json_t *model,
                                 iso_error *error) {
    const json_t *longest = json_object_get(model, "max_input_chars_per_word");
    const char *prefix = text_string_or(model, "continuing_subword_prefix", "##");
    char *copy = model_alloc(&t->arena, strlen(prefix) + 1, 1);
    if (!copy)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    p->model.prefix = strcpy(copy, prefix);
    p->model.encode = text_wordpiece_encode;
    p->decode = text_decode_wordpiece;
    p->model.longest_word = 100;
    if (longest && !model_json_size(longest, 1, 1 << 20, &p->model.longest_word))
        return text_json_damaged(error, "max_input_chars_per_word");
    if (p->model.unk == MODEL_NO_ID)
        return model_fail(
            error, ISOBIT_E_MISSING,
            "tokenizer.json: the unknown token of WordPiece is not in the vocabulary");
    return ISOBIT_OK;
}

/* The scores, in the order of the ids. */
static iso_status read_unigram(iso_tokenizer *t, text_pipeline *p, const json_t *model,
                               const text_scanned *scanned, iso_error *error) {
    const json_t *list = json_object_get(model, "vocab"), *one;
    const size_t count = scanned ? scanned->count : json_array_size(list);
    size_t unk = 0;
    double *scores = model_alloc(&t->arena, t->vocabulary[TEXT_SOURCE].count, sizeof *scores);
    if (!scores)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory for %s", file);
    for (size_t i = 0; scanned && i < count; i++)
        scores[i] = scanned->tokens[i].score;
    for (size_t i = 0; (one = json_array_get(list, i)); i++) {
        scores[i] = json_number_value(json_array_get(one, 1));
        if (!json_is_number(json_array_get(one, 1)) || !isfinite(scores[i]))
            return text_json_damaged(error, "a score of the vocabulary");
    }
    if (!count || !model_json_size(json_object_get(model, "unk_id"), 0, count - 1, &unk))
        return text_json_damaged(error, "unk_id");
    p->model.unk = (uint32_t)unk;
    p->model.scores = scores;
    p->model.encode = text_unigram_encode;
    if (text_json_true(model, "byte_fallback"))
        text_spelt_find(&p->model);
    text_unigram_finish(&p->model, &t->vocabulary[TEXT_SOURCE]);
    return ISOBIT_OK;
}

iso_status text_json_model(iso_tokenizer *t, text_pipeline *p, const json_t *model,
                           const text_scanned *scanned, int byte_level, iso_error *error) {
    const char *type = text_json_type(model), *unk = text_string_or(model, "unk_token", "");
    /* Old files name no type; only BPE has merges. */
    if (!type[0])
        type = json_object_get(model, "merges") ? "BPE" : "WordPiece";
    p->model.unk =
        unk[0] ? text_vocabulary_find(p->model.vocabulary, unk, strlen(unk)) : MODEL_NO_ID;
    const int whole = !byte_level && p->split == text_split_none;
    if (strcmp(type, "BPE") == 0 && (byte_level || whole))
        return read_bpe(t, p, model, scanned, byte_level, error);
    if (strcmp(type, "Unigram") == 0 && whole)
        return read_unigram(t, p, model, scanned, error);
    if (p->metaspace.used)
        return text_json_refuse(error, "with the pre_tokenizer Metaspace the model", type);
    if (strcmp(type, "WordPiece") == 0 && !byte_level)
        return read_wordpiece(t, p, model, error);
    return text_json_refuse(error,
                            byte_level ? "with the pre_tokenizer ByteLevel the model"
                                       : "without the pre_tokenizer ByteLevel the model",
                            type);
}
