/* SPDX-License-Identifier: MIT
 *
 * tokenizer.json into a pipeline. Whatever a file asks for beyond what the pipeline can do is
 * refused by its name, never left out.
 */
#include "files.h"
#include "pipeline.h"
#include "scan.h"

#include <math.h>
#include <stdlib.h>

static const char file[] = "tokenizer.json";

static iso_status refuse(iso_error *error, const char *part, const char *what) {
    model_quoted quoted;
    return model_fail(error, ISOBIT_E_UNSUPPORTED, "tokenizer.json: %s %s is not supported", part,
                      model_quote(&quoted, what, strlen(what)));
}

static iso_status damaged(iso_error *error, const char *part) {
    return model_fail(error, ISOBIT_E_CONFIG, "tokenizer.json: %s is not as expected", part);
}

static const char *type_of(const json_t *part) { return text_string_or(part, "type", ""); }

static int is_true(const json_t *part, const char *key) {
    return json_is_true(json_object_get(part, key));
}

/* A flag with a default. */
static int flag(const json_t *part, const char *key, int otherwise) {
    const json_t *value = json_object_get(part, key);
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

/* The members of a Sequence, or the part itself: one after the other, NULL at the end. */
static const json_t *member(const json_t *part, const char *list, size_t i) {
    if (strcmp(type_of(part), "Sequence") == 0)
        return json_array_get(json_object_get(part, list), i);
    return i == 0 && json_is_object(part) ? part : NULL;
}

/* -------------------------------------------------------------------------------- vocabulary */

iso_status text_pipeline_added(iso_tokenizer *t, text_pipeline *p, size_t own,
                               const json_t *vocabulary, const json_t *added, const char *where,
                               iso_error *error) {
    text_vocabulary *v = &t->vocabulary[TEXT_SOURCE];
    const size_t count = json_array_size(added);
    p->added.tokens = model_alloc(&t->arena, count, sizeof *p->added.tokens);
    char *only_added = model_alloc(&t->arena, v->count, 1);
    if (!p->added.tokens || !only_added)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory for %s", where);
    memset(only_added, 0, v->count);
    for (size_t i = own; i < v->tokens; i++)
        only_added[v->by_token[i].id] = 1;
    p->model.only_added = only_added;
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_array_get(added, i);
        const char *token = text_string_or(one, "content", "");
        const uint32_t id = text_vocabulary_find(v, token, strlen(token));
        if (id == MODEL_NO_ID || !token[0])
            return model_fail(error, ISOBIT_E_CONFIG, "%s: added token %zu is not as expected",
                              where, i);
        const int special = is_true(one, "special");
        v->special[id] |= (char)special;
        if (vocabulary)
            only_added[id] = !json_object_get(vocabulary, token);
        p->added.tokens[p->added.count++] = (text_added){v->by_id[id].token,
                                                         v->by_id[id].bytes,
                                                         id,
                                                         is_true(one, "single_word"),
                                                         is_true(one, "lstrip"),
                                                         is_true(one, "rstrip"),
                                                         flag(one, "normalized", !special)};
    }
    return ISOBIT_OK;
}

iso_status text_pipeline_vocabulary(iso_tokenizer *t, text_pipeline *p, const json_t *vocabulary,
                                    const json_t *added, const char *where, iso_error *error) {
    size_t id;
    json_t *all = json_object(), *one;
    int failed = !all || json_object_update(all, (json_t *)(uintptr_t)vocabulary) != 0;
    for (size_t i = 0; !failed && (one = json_array_get(added, i)); i++) {
        const char *token = text_string_or(one, "content", "");
        const json_t *value = json_object_get(one, "id"), *old = json_object_get(all, token);
        if (!value)
            continue;
        if (!model_json_size(value, 0, MODEL_NO_ID - 1, &id) ||
            (old && json_number_value(old) != json_number_value(value))) {
            json_decref(all);
            return model_fail(error, ISOBIT_E_CONFIG, "%s: added token %zu contradicts the others",
                              where, i);
        }
        failed = json_object_set(all, token, (json_t *)(uintptr_t)value) != 0;
    }
    iso_status status =
        failed ? model_fail(error, ISOBIT_E_NOMEM, "out of memory for %s", where)
               : text_vocabulary_read(&t->vocabulary[TEXT_SOURCE], &t->arena, all, where, 1, error);
    json_decref(all);
    const size_t own = t->vocabulary[TEXT_SOURCE].tokens;
    return status ? status : text_pipeline_added(t, p, own, vocabulary, added, where, error);
}

/* -------------------------------------------------------------- properties of added tokens */

json_t *text_json_copy(const json_t *object) {
    json_t *copy = json_copy((json_t *)(uintptr_t)object);
    if (copy && json_object_size(copy) == json_object_size(object))
        return copy;
    json_decref(copy);
    return NULL;
}

/* A list of them knows where each is by its text, and that only while it is updated. CONFIG: the
 * key is no number. */
static iso_status update_one(json_t *list, json_t *places, const json_t *one, const char *key) {
    static const char *const names[] = {"single_word", "lstrip", "rstrip", "normalized", "special"};
    const char *token = text_string_or(one, "content", "");
    const json_t *place = json_object_get(places, token);
    int failed = 0;
    if (!json_is_object(one) || !token[0])
        return ISOBIT_OK;
    if (place) {
        json_t *old = json_array_get(list, (size_t)json_integer_value(place));
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            json_t *value = json_object_get(one, names[i]);
            failed |= value && json_object_set(old, names[i], value);
        }
        return failed ? ISOBIT_E_NOMEM : ISOBIT_OK;
    }
    char *end = NULL;
    const long long id = key ? strtoll(key, &end, 10) : 0;
    if (key && (*end || end == key))
        return ISOBIT_E_CONFIG;
    json_t *copy = text_json_copy(one);
    failed =
        !copy || json_array_append_new(list, copy) ||
        (key && json_object_set_new(copy, "id", json_integer(id))) ||
        json_object_set_new(places, token, json_integer((json_int_t)json_array_size(list) - 1));
    return failed ? ISOBIT_E_NOMEM : ISOBIT_OK;
}

iso_status text_added_update(json_t *list, const json_t *more, const char *where,
                             iso_error *error) {
    json_t *places, *one;
    const char *key;
    size_t i;
    if (!more) /* as mostly; then the places are of no use */
        return ISOBIT_OK;
    places = json_object();
    iso_status status = list && places ? ISOBIT_OK : ISOBIT_E_NOMEM;
    json_array_foreach(list, i, one) {
        if (!status && json_object_set_new(places, text_string_or(one, "content", ""),
                                           json_integer((json_int_t)i)))
            status = ISOBIT_E_NOMEM;
    }
    json_array_foreach((json_t *)(uintptr_t)more, i, one) {
        status = status ? status : update_one(list, places, one, NULL);
    }
    json_object_foreach((json_t *)(uintptr_t)more, key, one) {
        status = status ? status : update_one(list, places, one, key);
    }
    json_decref(places);
    return !status                    ? ISOBIT_OK
           : status == ISOBIT_E_NOMEM ? model_fail(error, status, "out of memory for %s", where)
                                      : model_fail(error, status,
                                                   "tokenizer_config.json: added_tokens_decoder "
                                                   "is not as expected");
}

/* ------------------------------------------------------------------------------------ base64 */

static int digit64(char c) {
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

/* The bytes that a text stands for, written to out [length / 4 * 3]; 0: it is none. */
static int read_base64(char *out, const char *text, size_t length, size_t *bytes) {
    uint32_t bits = 0;
    *bytes = 0;
    if (length % 4)
        return 0;
    const size_t end = length - (length && text[length - 1] == '=') -
                       (length > 1 && text[length - 2] == '=' && text[length - 1] == '=');
    for (size_t i = 0; i < end; i++) {
        const int digit = digit64(text[i]);
        if (digit < 0)
            return 0;
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 != 0) /* 6, 4, 2 bits are left over */
            out[(*bytes)++] = (char)(bits >> (6 - 2 * (i % 4)) & 255);
    }
    return 1;
}

static iso_status read_charsmap(iso_tokenizer *t, text_step *step, const json_t *part,
                                iso_error *error) {
    const json_t *map = json_object_get(part, "precompiled_charsmap");
    size_t bytes = 0;
    if (json_is_null(map))
        return ISOBIT_OK;
    char *decoded = model_alloc(&t->arena, json_string_length(map) + 1, 1);
    if (!decoded)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory for %s", file);
    if (!json_is_string(map) ||
        !read_base64(decoded, json_string_value(map), json_string_length(map), &bytes))
        return damaged(error, "precompiled_charsmap");
    return text_charsmap_open(&step->charsmap, &t->arena, file, decoded, bytes, error);
}

static char *copy_text(iso_tokenizer *t, const char *text) {
    char *copy = model_alloc(&t->arena, strlen(text) + 1, 1);
    return copy ? strcpy(copy, text) : NULL;
}

static iso_status read_replace(iso_tokenizer *t, text_step *step, const json_t *part,
                               iso_error *error) {
    const json_t *pattern = json_object_get(part, "pattern");
    const char *regex = text_string_or(pattern, "Regex", NULL);
    const char *from = text_string_or(pattern, "String", NULL);
    const char *to = text_string_or(part, "content", NULL);
    if (!to || (!regex && (!from || !from[0])))
        return damaged(error, "the normalizer Replace");
    if (regex && strcmp(regex, " {2,}") != 0)
        return refuse(error, "the normalizer Replace with the pattern", regex);
    step->from = regex ? NULL : copy_text(t, from);
    step->to = copy_text(t, to);
    if (!step->to || (!regex && !step->from))
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory for %s", file);
    return ISOBIT_OK;
}

static iso_status read_prefix(iso_tokenizer *t, text_step *step, const json_t *part,
                              iso_error *error) {
    const char *prefix = text_string_or(part, "prepend", NULL);
    if (!prefix)
        return damaged(error, "the normalizer Prepend");
    step->to = copy_text(t, prefix);
    return step->to ? ISOBIT_OK : model_fail(error, ISOBIT_E_NOMEM, "out of memory for %s", file);
}

/* ------------------------------------------------------------------------------------- steps */

static iso_status read_step(iso_tokenizer *t, text_pipeline *p, const json_t *part,
                            iso_error *error) {
    static const struct {
        const char *type;
        text_step step;
    } known[] = {
        {"NFC", {.run = text_step_form, .form = TEXT_NFC}},
        {"NFD", {.run = text_step_form, .form = TEXT_NFD}},
        {"NFKC", {.run = text_step_form, .form = TEXT_NFKC}},
        {"NFKD", {.run = text_step_form, .form = TEXT_NFKD}},
        {"Lowercase", {.run = text_step_lowercase}},
        {"StripAccents", {.run = text_step_strip_accents}},
        {"BertNormalizer", {.run = text_step_bert}},
        {"Precompiled", {.run = text_step_charsmap}},
        {"Replace", {.run = text_step_replace}},
        {"Prepend", {.run = text_step_prepend}},
        {"Strip", {.run = text_step_strip}},
    };
    const char *type = type_of(part);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(type, known[i].type) != 0)
            continue;
        if (p->step_count == TEXT_MAX_STEPS)
            return refuse(error, "a normalizer of so many steps as", type);
        text_step *step = &p->steps[p->step_count++];
        *step = known[i].step;
        step->clean = flag(part, "clean_text", 1);
        step->chinese_characters = flag(part, "handle_chinese_chars", 1);
        step->lowercase = flag(part, "lowercase", 1);
        step->strip_accents = flag(part, "strip_accents", step->lowercase);
        step->left = flag(part, "strip_left", 0);
        step->right = flag(part, "strip_right", 0);
        if (step->run == text_step_charsmap)
            return read_charsmap(t, step, part, error);
        if (step->run == text_step_replace)
            return read_replace(t, step, part, error);
        if (step->run == text_step_prepend)
            return read_prefix(t, step, part, error);
        return ISOBIT_OK;
    }
    return refuse(error, "normalizer", type);
}

/* A bar for a space, in old files and new ones. */
static iso_status read_prepend(const json_t *part, text_prepend *prepend, iso_error *error) {
    const char *scheme = text_string_or(part, "prepend_scheme", "always");
    if (strcmp(text_string_or(part, "replacement", ""), TEXT_BAR) != 0)
        return refuse(error, "Metaspace with the replacement",
                      text_string_or(part, "replacement", ""));
    if (strcmp(scheme, "always") != 0 && strcmp(scheme, "first") != 0 &&
        strcmp(scheme, "never") != 0)
        return refuse(error, "Metaspace with the prepend_scheme", scheme);
    *prepend = !flag(part, "add_prefix_space", 1) || scheme[0] == 'n' ? TEXT_PREPEND_NEVER
               : scheme[0] == 'f'                                     ? TEXT_PREPEND_FIRST
                                                                      : TEXT_PREPEND_ALWAYS;
    return ISOBIT_OK;
}

/* Metaspace, maybe after WhitespaceSplit. */
static iso_status read_metaspace(text_pipeline *p, const json_t *root, int *used,
                                 iso_error *error) {
    text_metaspace *m = &p->metaspace;
    const json_t *part;
    *used = 0;
    for (size_t i = 0; (part = member(root, "pretokenizers", i)); i++) {
        const int words = strcmp(type_of(part), "WhitespaceSplit") == 0;
        if (!words && strcmp(type_of(part), "Metaspace") != 0)
            return i ? refuse(error, "with Metaspace the pre_tokenizer", type_of(part)) : ISOBIT_OK;
        if (i && (words || m->used))
            return refuse(error, "a second pre_tokenizer", type_of(part));
        *used = 1;
        m->words = m->words || words;
        if (words)
            continue;
        m->used = 1;
        m->split = flag(part, "split", 1);
        iso_status status = read_prepend(part, &m->prepend, error);
        if (status)
            return status;
    }
    return *used && !m->used
               ? refuse(error, "without Metaspace the pre_tokenizer", "WhitespaceSplit")
               : ISOBIT_OK;
}

/* A split at spaces, of which the last step has left none. */
static int is_idle_split(const text_pipeline *p, const json_t *part) {
    const text_step *last = p->step_count ? &p->steps[p->step_count - 1] : NULL;
    return strcmp(text_string_or(json_object_get(part, "pattern"), "String", ""), " ") == 0 &&
           last && last->run == text_step_replace && last->from && strcmp(last->from, " ") == 0 &&
           !strchr(last->to, ' ') && !is_true(part, "invert");
}

/* Either BERT's, or a regular expression that is known and ByteLevel, or none that matters. */
static iso_status read_splitter(text_pipeline *p, const json_t *root, int *byte_level,
                                iso_error *error) {
    const json_t *part;
    int split = 0;
    *byte_level = 0;
    for (size_t i = 0; (part = member(root, "pretokenizers", i)); i++) {
        const char *type = type_of(part);
        const char *pattern = text_string_or(json_object_get(part, "pattern"), "Regex", "");
        if (strcmp(type, "Split") == 0 && is_idle_split(p, part))
            continue;
        if (*byte_level || (split && strcmp(type, "ByteLevel") != 0)) {
            return refuse(error, "a pre_tokenizer before", type);
        } else if (strcmp(type, "ByteLevel") == 0) {
            *byte_level = 1;
            p->prefix_space = flag(part, "add_prefix_space", 1);
            if (split && flag(part, "use_regex", 1))
                return refuse(error, "a pre_tokenizer that splits twice, with", type);
            if (p->prefix_space && split)
                return refuse(error, "add_prefix_space after a split in", type);
            if (flag(part, "use_regex", 1))
                p->split = text_split_gpt2;
        } else if (strcmp(type, "BertPreTokenizer") == 0) {
            p->split = text_split_bert;
        } else if (strcmp(type, "Split") == 0) {
            p->split = text_splitter_of(pattern);
            if (!p->split || strcmp(text_string_or(part, "behavior", ""), "Isolated") != 0 ||
                is_true(part, "invert"))
                return refuse(error, "the pre_tokenizer Split with the pattern", pattern);
        } else {
            return refuse(error, "pre_tokenizer", type);
        }
        split = 1;
    }
    return ISOBIT_OK;
}

/* ------------------------------------------------------------------------------------- models */

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
        return damaged(error, "a merge");
    return text_pipeline_merge(p, text, (size_t)(space - text), space + 1, strlen(space + 1), file,
                               error);
}

/* Neither matters where each byte is a token. */
static iso_status check_byte_level(const text_pipeline *p, const json_t *model, iso_error *error) {
    size_t known = 0;
    for (int byte = 0; byte < 256; byte++)
        known += p->model.bytes[byte] != MODEL_NO_ID;
    if (known < 256 && (is_true(model, "byte_fallback") || is_true(model, "fuse_unk")))
        return refuse(error, "with the pre_tokenizer ByteLevel the model BPE with",
                      "byte_fallback or fuse_unk");
    return ISOBIT_OK;
}

/* BPE on characters. */
static iso_status read_characters(text_pipeline *p, const json_t *model, iso_error *error) {
    p->model.encode = text_bpe_encode_characters;
    p->model.fuse_unk = is_true(model, "fuse_unk");
    if (is_true(model, "byte_fallback"))
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
            return refuse(error, "in the model BPE", empty[i]);
    if (json_number_value(json_object_get(model, "dropout")) != 0)
        return refuse(error, "in the model BPE", "dropout");
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
    p->model.ignore_merges = is_true(model, "ignore_merges");
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
        return damaged(error, "max_input_chars_per_word");
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
            return damaged(error, "a score of the vocabulary");
    }
    if (!count || !model_json_size(json_object_get(model, "unk_id"), 0, count - 1, &unk))
        return damaged(error, "unk_id");
    p->model.unk = (uint32_t)unk;
    p->model.scores = scores;
    p->model.encode = text_unigram_encode;
    if (is_true(model, "byte_fallback"))
        text_spelt_find(&p->model);
    text_unigram_finish(&p->model, &t->vocabulary[TEXT_SOURCE]);
    return ISOBIT_OK;
}

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

static iso_status read_model(iso_tokenizer *t, text_pipeline *p, const json_t *model,
                             const text_scanned *scanned, int byte_level, iso_error *error) {
    const char *type = type_of(model), *unk = text_string_or(model, "unk_token", "");
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
        return refuse(error, "with the pre_tokenizer Metaspace the model", type);
    if (strcmp(type, "WordPiece") == 0 && !byte_level)
        return read_wordpiece(t, p, model, error);
    return refuse(error,
                  byte_level ? "with the pre_tokenizer ByteLevel the model"
                             : "without the pre_tokenizer ByteLevel the model",
                  type);
}

/* -------------------------------------------------------------------- special tokens around */

static iso_status put_around(text_pipeline *p, int after, const char *token, iso_error *error) {
    const uint32_t id = text_vocabulary_find(p->model.vocabulary, token, strlen(token));
    size_t *count = after ? &p->after_count : &p->before_count;
    if (id == MODEL_NO_ID || *count == TEXT_MAX_AROUND)
        return damaged(error, "post_processor");
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
    return !status && after != 1 ? damaged(error, "post_processor") : status;
}

static iso_status read_around(text_pipeline *p, const json_t *root, iso_error *error) {
    const json_t *part;
    iso_status status = ISOBIT_OK;
    for (size_t i = 0; !status && (part = member(root, "processors", i)); i++) {
        const char *type = type_of(part);
        if (strcmp(type, "TemplateProcessing") == 0) {
            status = read_template(p, part, error);
        } else if (strcmp(type, "BertProcessing") == 0 || strcmp(type, "RobertaProcessing") == 0) {
            const json_t *cls = json_array_get(json_object_get(part, "cls"), 0);
            const json_t *sep = json_array_get(json_object_get(part, "sep"), 0);
            status = json_is_string(cls) && json_is_string(sep)
                         ? put_around(p, 0, json_string_value(cls), error)
                         : damaged(error, "post_processor");
            if (!status)
                status = put_around(p, 1, json_string_value(sep), error);
        } else if (strcmp(type, "ByteLevel") != 0) { /* which only moves offsets */
            status = refuse(error, "post_processor", type);
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
    for (; (part = member(root, "decoders", i)); i++) {
        if (i == TYPES || strcmp(type_of(part), types[i]) != 0)
            return refuse(error, "for this model the decoder", type_of(part));
        const json_t *pattern = json_object_get(part, "pattern");
        if (i == REPLACE && (strcmp(text_string_or(pattern, "String", ""), TEXT_BAR) != 0 ||
                             strcmp(text_string_or(part, "content", ""), " ") != 0))
            return refuse(error, "another decoder Replace than of U+2581 by", " ");
        if (i == STRIP && (!model_json_size(json_object_get(part, "start"), 0, 1024, &p->strip) ||
                           !model_json_size(json_object_get(part, "stop"), 0, 1024, &stop)))
            return damaged(error, "the decoder Strip");
        if (i == STRIP && (stop || strcmp(text_string_or(part, "content", ""), " ") != 0))
            return refuse(error, "another decoder Strip than at the beginning, of", " ");
    }
    return i > FALLBACK ? ISOBIT_OK : refuse(error, "for this model the decoder", type_of(root));
}

static iso_status read_decoder(text_pipeline *p, const json_t *part, int byte_level,
                               iso_error *error) {
    const char *type = type_of(part);
    const char *wanted = byte_level ? "ByteLevel" : "WordPiece";
    if (p->model.encode == text_bpe_encode_characters || p->model.encode == text_unigram_encode) {
        if (strcmp(type, "Metaspace") != 0)
            return read_spelt(p, part, error);
        p->decode = text_decode_metaspace;
        return read_prepend(part, &p->metaspace.decoder, error);
    }
    if (strcmp(type, wanted) != 0)
        return refuse(error, "for this model the decoder", type);
    p->cleanup = !byte_level && flag(part, "cleanup", 1);
    if (!byte_level && strcmp(text_string_or(part, "prefix", "##"), p->model.prefix) != 0)
        return refuse(error, "a decoder with the prefix", text_string_or(part, "prefix", "##"));
    return ISOBIT_OK;
}

/* The vocabulary of what was scanned, with the added tokens; 0: the file is read as a whole. */
static int use_scanned(iso_tokenizer *t, const text_scanned *s, const json_t *config) {
    const json_t *model = json_object_get(s->rest, "model");
    json_t *added = json_object_get(s->rest, "added_tokens");
    text_vocabulary *v = &t->vocabulary[TEXT_SOURCE];
    if (s->is_list != (strcmp(type_of(model), "Unigram") == 0))
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
    if (json_is_array(vocabulary) && strcmp(type_of(model), "Unigram") == 0) {
        vocabulary = made = unigram_ids(vocabulary);
        if (!made)
            return damaged(error, "the vocabulary");
    }
    if (!json_is_object(vocabulary))
        return refuse(error, "the model", type_of(model));
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
    for (size_t i = 0; !status && (part = member(normalizer, "normalizers", i)); i++)
        status = read_step(t, p, part, error);
    if (!status)
        status = read_metaspace(p, json_object_get(root, "pre_tokenizer"), &metaspace, error);
    if (!status && !metaspace)
        status = read_splitter(p, json_object_get(root, "pre_tokenizer"), &byte_level, error);
    if (!status)
        status = read_model(t, p, model, scanned, byte_level, error);
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
