/* SPDX-License-Identifier: MIT
 *
 * Directories with a file of SentencePiece and without tokenizer.json, as transformers turns them
 * into a pipeline: the order of the tokens is a matter of the family, and so are the special
 * tokens, of which tokenizer_config.json, special_tokens_map.json and added_tokens.json tell the
 * rest. And languages, whose tokens stand around a source and before a target.
 */
#include "pipeline_spm.h"

#include "files.h"

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

iso_status text_spm_no_memory(const text_spm_reader *r) {
    return model_fail(r->error, ISOBIT_E_NOMEM, "out of memory for %s", r->family->file);
}

const char *text_spm_special(const text_spm_reader *r, const char *key, const char *otherwise) {
    const json_t *value = json_object_get(r->config, key);
    if (json_is_null(value))
        return NULL;
    return text_string_or(value ? r->config : r->map, key, otherwise);
}

const json_t *text_spm_additional(const text_spm_reader *r) {
    const json_t *list = json_object_get(r->config, "additional_special_tokens");
    return json_is_array(list) ? list : json_object_get(r->map, "additional_special_tokens");
}

const char *text_spm_name_of(const json_t *one) {
    return json_is_string(one) ? json_string_value(one) : text_string_or(one, "content", "");
}

/* ------------------------------------------------------------------------------- the pipeline */

/* A flag of tokenizer_config.json, for which null is false. */
static int flag(const json_t *config, const char *key) {
    const json_t *value = json_object_get(config, key);
    return !value || json_is_true(value);
}

/* The old way spaces become bars in each part of a text; the new way only the first one gets one
 * more. */
static iso_status make_llama_steps(const text_spm_reader *r) {
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

static iso_status make_steps(text_spm_reader *r) {
    text_pipeline *p = r->p;
    if (r->family->layout == LLAMA)
        return make_llama_steps(r);
    if (r->pieces.charsmap_bytes) {
        text_step *step = &p->steps[p->step_count++];
        char *copy = model_alloc(&r->t->arena, r->pieces.charsmap_bytes, 1);
        if (!copy)
            return text_spm_no_memory(r);
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
static iso_status count_extra(const text_spm_reader *r, size_t *extra) {
    size_t listed = 0;
    const json_t *list = text_spm_additional(r), *one;
    iso_status status = read_number(r->config, "extra_ids", 100, extra, r->error);
    for (size_t i = 0; (one = json_array_get(list, i)); i++)
        listed += strstr(text_spm_name_of(one), "<extra_id_") != NULL;
    if (!status && listed && *extra && listed != *extra)
        status = model_fail(r->error, ISOBIT_E_CONFIG,
                            "tokenizer_config.json: extra_ids is %zu, but "
                            "additional_special_tokens has %zu of them",
                            *extra, listed);
    return status;
}

static iso_status build(text_spm_reader *r, const char *proto, size_t bytes, model_arena *scratch) {
    size_t extra = 0, offset = 0;
    iso_status status =
        text_spm_check(&r->pieces, scratch, r->family->file, proto, bytes, r->error);
    if (!status && r->family->layout == T5)
        status = count_extra(r, &extra);
    if (!status && r->family->layout == PEGASUS)
        status = read_number(r->config, "offset", 103, &offset, r->error);
    if (!status)
        status = text_spm_put_tokens(r, extra, offset);
    if (!status)
        status = text_spm_add_tokens(r, extra, offset);
    if (!status)
        status = text_pipeline_vocabulary(r->t, r->p, r->ids, r->added, r->family->file, r->error);
    if (!status)
        status = text_spm_make_model(r, offset);
    if (!status)
        status = make_steps(r);
    if (!status && r->family->place == NOWHERE && !r->family->bos)
        status = put_around(r->t, r->p->after, &r->p->after_count,
                            text_string_or(r->config, "eos_token", "</s>"), r->error);
    return status;
}

static void free_lists(const text_spm_reader *r) {
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
    text_spm_reader r = {
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
    text_spm_reader r = {.t = t,
                         .p = p,
                         .family = &family,
                         .config = config,
                         .pieces = *pieces,
                         .added = json_array(),
                         .known = json_object(),
                         .error = error};
    iso_status status = text_spm_put_tokens(&r, extra, 0);
    if (!status && (!config || !r.added || !r.known || !text_spm_add_pieces(&r) ||
                    !text_spm_add_numbered(&r, "extra", 0, extra)))
        status = text_spm_no_memory(&r);
    if (!status)
        status = text_pipeline_vocabulary(t, p, r.ids, r.added, name, error);
    if (!status)
        status = text_spm_make_model(&r, 0);
    if (!status)
        status = make_steps(&r);
    json_decref(config);
    free_lists(&r);
    return status;
}

/* ------------------------------------------------------------------------------------- around */

/* One token that `add` asks for, or not. */
static iso_status put_wanted(const text_spm_reader *r, const char *add, int otherwise,
                             const char *key, const char *name, uint32_t *ids, size_t *count) {
    const json_t *value = json_object_get(r->config, add);
    *count = 0;
    if (value ? !json_is_true(value) : !otherwise)
        return ISOBIT_OK;
    const char *token = text_spm_special(r, key, name);
    if (!token)
        return model_fail(r->error, ISOBIT_E_CONFIG,
                          "tokenizer_config.json: %s asks for a token, but %s is null", add, key);
    return put_around(r->t, ids, count, token, r->error);
}

iso_status text_pipeline_around(iso_tokenizer *t, text_pipeline *p,
                                const struct text_family *family, const char *directory,
                                const json_t *config, iso_error *error) {
    json_t *map = NULL;
    text_spm_reader r = {
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
