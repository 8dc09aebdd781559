/* SPDX-License-Identifier: MIT
 *
 * tokenizer.json into a pipeline. Whatever a file asks for beyond what the pipeline can do is
 * refused by its name, never left out.
 */
#include "pipeline_json.h"

#include "files.h"

static const char file[] = "tokenizer.json";

iso_status text_json_refuse(iso_error *error, const char *part, const char *what) {
    model_quoted quoted;
    return model_fail(error, ISOBIT_E_UNSUPPORTED, "tokenizer.json: %s %s is not supported", part,
                      model_quote(&quoted, what, strlen(what)));
}

iso_status text_json_damaged(iso_error *error, const char *part) {
    return model_fail(error, ISOBIT_E_CONFIG, "tokenizer.json: %s is not as expected", part);
}

const char *text_json_type(const json_t *part) { return text_string_or(part, "type", ""); }

int text_json_true(const json_t *part, const char *key) {
    return json_is_true(json_object_get(part, key));
}

int text_json_flag(const json_t *part, const char *key, int otherwise) {
    const json_t *value = json_object_get(part, key);
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

const json_t *text_json_member(const json_t *part, const char *list, size_t i) {
    if (strcmp(text_json_type(part), "Sequence") == 0)
        return json_array_get(json_object_get(part, list), i);
    return i == 0 && json_is_object(part) ? part : NULL;
}

/* -------------------------------------------------------------------- special tokens around */

static iso_status put_around(text_pipeline *p, int after, const char *token, iso_error *error) {
    const uint32_t id = text_vocabulary_find(p->model.vocabulary, token, strlen(token));
    size_t *count = after ? &p->after_count : &p->before_count;
    if (id == MODEL_NO_ID || *count == TEXT_MAX_AROUND)
        return text_json_damaged(error, "post_processor");
    (after ? p->after : p->before)[(*count)++] = id;
    return ISOBIT_OK;
}

/* TemplateProcessing: special tokens by name, $A among them. */
static iso_status read_template(text_pipeline *p, const json_t *part, iso_error *error) {
    const json_t *single = json_object_get(part, "single"), *one;
    int after = 0;
    iso_status status = ISOBIT_OK;
    for (size_t i = 0; !status && (one = json_array_get(single, i)); i++) {
        const json_t *special = json_object_get(one, "SpecialToken");
        if (json_object_get(one, "Sequence"))
            after++;
        else
            status = put_around(p, after, text_string_or(special, "id", ""), error);
    }
    return !status && after != 1 ? text_json_damaged(error, "post_processor") : status;
}

static iso_status read_around(text_pipeline *p, const json_t *root, iso_error *error) {
    const json_t *part;
    iso_status status = ISOBIT_OK;
    for (size_t i = 0; !status && (part = text_json_member(root, "processors", i)); i++) {
        const char *type = text_json_type(part);
        if (strcmp(type, "TemplateProcessing") == 0) {
            status = read_template(p, part, error);
        } else if (strcmp(type, "BertProcessing") == 0 || strcmp(type, "RobertaProcessing") == 0) {
            const json_t *cls = json_array_get(json_object_get(part, "cls"), 0);
            const json_t *sep = json_array_get(json_object_get(part, "sep"), 0);
            status = json_is_string(cls) && json_is_string(sep)
                         ? put_around(p, 0, json_string_value(cls), error)
                         : text_json_damaged(error, "post_processor");
            if (!status)
                status = put_around(p, 1, json_string_value(sep), error);
        } else if (strcmp(type, "ByteLevel") != 0) { /* which only moves offsets */
            status = text_json_refuse(error, "post_processor", type);
        }
    }
    return status;
}

/* Replace, ByteFallback, Fuse and Strip, of which the last two may be missing. */
static iso_status read_spelt(text_pipeline *p, const json_t *root, iso_error *error) {
    static const char *const types[] = {"Replace", "ByteFallback", "Fuse", "Strip"};
    enum { REPLACE, FALLBACK, FUSE, STRIP, TYPES };
    const json_t *part;
    size_t i = 0, stop = 0;
    p->decode = text_decode_spelt;
    for (; (part = text_json_member(root, "decoders", i)); i++) {
        if (i == TYPES || strcmp(text_json_type(part), types[i]) != 0)
            return text_json_refuse(error, "for this model the decoder", text_json_type(part));
        const json_t *pattern = json_object_get(part, "pattern");
        if (i == REPLACE && (strcmp(text_string_or(pattern, "String", ""), TEXT_BAR) != 0 ||
                             strcmp(text_string_or(part, "content", ""), " ") != 0))
            return text_json_refuse(error, "another decoder Replace than of U+2581 by", " ");
        if (i == STRIP && (!model_json_size(json_object_get(part, "start"), 0, 1024, &p->strip) ||
                           !model_json_size(json_object_get(part, "stop"), 0, 1024, &stop)))
            return text_json_damaged(error, "the decoder Strip");
        if (i == STRIP && (stop || strcmp(text_string_or(part, "content", ""), " ") != 0))
            return text_json_refuse(error, "another decoder Strip than at the beginning, of", " ");
    }
    return i > FALLBACK
               ? ISOBIT_OK
               : text_json_refuse(error, "for this model the decoder", text_json_type(root));
}

static iso_status read_decoder(text_pipeline *p, const json_t *part, int byte_level,
                               iso_error *error) {
    const char *type = text_json_type(part);
    const char *wanted = byte_level ? "ByteLevel" : "WordPiece";
    if (p->model.encode == text_bpe_encode_characters || p->model.encode == text_unigram_encode) {
        if (strcmp(type, "Metaspace") != 0)
            return read_spelt(p, part, error);
        p->decode = text_decode_metaspace;
        return text_json_prepend(part, &p->metaspace.decoder, error);
    }
    if (strcmp(type, wanted) != 0)
        return text_json_refuse(error, "for this model the decoder", type);
    p->cleanup = !byte_level && text_json_flag(part, "cleanup", 1);
    if (!byte_level && strcmp(text_string_or(part, "prefix", "##"), p->model.prefix) != 0)
        return text_json_refuse(error, "a decoder with the prefix",
                                text_string_or(part, "prefix", "##"));
    return ISOBIT_OK;
}

/* ------------------------------------------------------------------------------------- the file */

/* The vocabulary of Unigram, a list of [token, score], as an object of ids. */
static json_t *unigram_ids(const json_t *list) {
    json_t *object = json_object();
    const json_t *one;
    for (size_t i = 0; object && (one = json_array_get(list, i)); i++) {
        const char *token = json_string_value(json_array_get(one, 0));
        if (!token || strlen(token) != json_string_length(json_array_get(one, 0)) ||
            json_object_get(object, token) ||
            json_object_set_new(object, token, json_integer((json_int_t)i))) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

/* The vocabulary of what was scanned, with the added tokens; 0: the file is read as a whole. */
static int use_scanned(iso_tokenizer *t, const text_scanned *s, const json_t *config) {
    const json_t *model = json_object_get(s->rest, "model");
    json_t *added = json_object_get(s->rest, "added_tokens");
    text_vocabulary *v = &t->vocabulary[TEXT_SOURCE];
    if (s->is_list != (strcmp(text_json_type(model), "Unigram") == 0))
        return 0;
    return !text_added_update(added, json_object_get(config, "added_tokens_decoder"), file, NULL) &&
           text_scanned_begin(s, v, &t->arena, json_array_size(added)) &&
           text_scanned_finish(v, &t->arena, added);
}

/* The tokens, with those that are added. */
static iso_status read_tokens(iso_tokenizer *t, text_pipeline *p, const json_t *root,
                              const json_t *config, iso_error *error) {
    const json_t *model = json_object_get(root, "model");
    json_t *vocabulary = json_object_get(model, "vocab"), *made = NULL;
    json_t *added = json_object_get(root, "added_tokens"), *fresh = NULL;
    if (json_is_array(vocabulary) && strcmp(text_json_type(model), "Unigram") == 0) {
        vocabulary = made = unigram_ids(vocabulary);
        if (!made)
            return text_json_damaged(error, "the vocabulary");
    }
    if (!json_is_object(vocabulary))
        return text_json_refuse(error, "the model", text_json_type(model));
    if (!json_is_array(added))
        added = fresh = json_array();
    iso_status status =
        text_added_update(added, json_object_get(config, "added_tokens_decoder"), file, error);
    if (!status)
        status = text_pipeline_vocabulary(t, p, vocabulary, added, file, error);
    json_decref(made);
    json_decref(fresh);
    return status;
}

static iso_status read_root(iso_tokenizer *t, text_pipeline *p, const json_t *root,
                            const text_scanned *scanned, const json_t *config, iso_error *error) {
    const json_t *model = json_object_get(root, "model"), *part;
    const json_t *normalizer = json_object_get(root, "normalizer");
    int byte_level = 0, metaspace = 0;
    iso_status status =
        scanned ? text_pipeline_added(t, p, scanned->count, NULL,
                                      json_object_get(root, "added_tokens"), file, error)
                : read_tokens(t, p, root, config, error);
    for (size_t i = 0; !status && (part = text_json_member(normalizer, "normalizers", i)); i++)
        status = text_json_step(t, p, part, error);
    if (!status)
        status = text_json_metaspace(p, json_object_get(root, "pre_tokenizer"), &metaspace, error);
    if (!status && !metaspace)
        status = text_json_splitter(p, json_object_get(root, "pre_tokenizer"), &byte_level, error);
    if (!status)
        status = text_json_model(t, p, model, scanned, byte_level, error);
    if (!status)
        status = read_around(p, json_object_get(root, "post_processor"), error);
    if (!status)
        status = read_decoder(p, json_object_get(root, "decoder"), byte_level, error);
    return status;
}

static iso_status read_text(iso_tokenizer *t, text_pipeline *p, const char *text, size_t bytes,
                            const json_t *config, iso_error *error) {
    text_scanned scanned;
    json_t *root = NULL;
    iso_status status = ISOBIT_OK;
    int used = text_scan_tokenizer(&scanned, text, bytes);
    if (used && !use_scanned(t, &scanned, config)) {
        text_scanned_free(&scanned);
        used = 0;
    }
    if (!used)
        status = model_json_parse(&root, text, bytes, file, error);
    if (!status)
        status = read_root(t, p, used ? scanned.rest : root, used ? &scanned : NULL, config, error);
    json_decref(root);
    if (used)
        text_scanned_free(&scanned);
    return status;
}

iso_status text_pipeline_json(iso_tokenizer *t, text_pipeline *p, const char *directory,
                              const json_t *config, int *found, iso_error *error) {
    model_arena scratch = {0};
    iso_error own = {0};
    char *text;
    size_t bytes;
    iso_status status =
        model_file_text(&text, &bytes, &scratch, directory, file, TEXT_MAX_VOCABULARY_BYTES, &own);
    *found = status != ISOBIT_E_MISSING;
    if (status && *found && error)
        *error = own;
    if (!status)
        status = read_text(t, p, text, bytes, config, error);
    model_arena_free(&scratch);
    return *found ? status : ISOBIT_OK;
}
