/* SPDX-License-Identifier: MIT
 *
 * The normalizer and the pre_tokenizer of tokenizer.json. Whatever they ask for beyond what the
 * pipeline can do is refused by its name, never left out.
 */
#include "pipeline_json.h"

static const char file[] = "tokenizer.json";

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
        return text_json_damaged(error, "precompiled_charsmap");
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
        return text_json_damaged(error, "the normalizer Replace");
    if (regex && strcmp(regex, " {2,}") != 0)
        return text_json_refuse(error, "the normalizer Replace with the pattern", regex);
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
        return text_json_damaged(error, "the normalizer Prepend");
    step->to = copy_text(t, prefix);
    return step->to ? ISOBIT_OK : model_fail(error, ISOBIT_E_NOMEM, "out of memory for %s", file);
}

/* ------------------------------------------------------------------------------------- steps */

iso_status text_json_step(iso_tokenizer *t, text_pipeline *p, const json_t *part,
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
    const char *type = text_json_type(part);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(type, known[i].type) != 0)
            continue;
        if (p->step_count == TEXT_MAX_STEPS)
            return text_json_refuse(error, "a normalizer of so many steps as", type);
        text_step *step = &p->steps[p->step_count++];
        *step = known[i].step;
        step->clean = text_json_flag(part, "clean_text", 1);
        step->chinese_characters = text_json_flag(part, "handle_chinese_chars", 1);
        step->lowercase = text_json_flag(part, "lowercase", 1);
        step->strip_accents = text_json_flag(part, "strip_accents", step->lowercase);
        step->left = text_json_flag(part, "strip_left", 0);
        step->right = text_json_flag(part, "strip_right", 0);
        if (step->run == text_step_charsmap)
            return read_charsmap(t, step, part, error);
        if (step->run == text_step_replace)
            return read_replace(t, step, part, error);
        if (step->run == text_step_prepend)
            return read_prefix(t, step, part, error);
        return ISOBIT_OK;
    }
    return text_json_refuse(error, "normalizer", type);
}

iso_status text_json_prepend(const json_t *part, text_prepend *prepend, iso_error *error) {
    const char *scheme = text_string_or(part, "prepend_scheme", "always");
    if (strcmp(text_string_or(part, "replacement", ""), TEXT_BAR) != 0)
        return text_json_refuse(error, "Metaspace with the replacement",
                                text_string_or(part, "replacement", ""));
    if (strcmp(scheme, "always") != 0 && strcmp(scheme, "first") != 0 &&
        strcmp(scheme, "never") != 0)
        return text_json_refuse(error, "Metaspace with the prepend_scheme", scheme);
    *prepend = !text_json_flag(part, "add_prefix_space", 1) || scheme[0] == 'n' ? TEXT_PREPEND_NEVER
               : scheme[0] == 'f'                                               ? TEXT_PREPEND_FIRST
                                  : TEXT_PREPEND_ALWAYS;
    return ISOBIT_OK;
}

iso_status text_json_metaspace(text_pipeline *p, const json_t *root, int *used, iso_error *error) {
    text_metaspace *m = &p->metaspace;
    const json_t *part;
    *used = 0;
    for (size_t i = 0; (part = text_json_member(root, "pretokenizers", i)); i++) {
        const int words = strcmp(text_json_type(part), "WhitespaceSplit") == 0;
        if (!words && strcmp(text_json_type(part), "Metaspace") != 0)
            return i ? text_json_refuse(error, "with Metaspace the pre_tokenizer",
                                        text_json_type(part))
                     : ISOBIT_OK;
        if (i && (words || m->used))
            return text_json_refuse(error, "a second pre_tokenizer", text_json_type(part));
        *used = 1;
        m->words = m->words || words;
        if (words)
            continue;
        m->used = 1;
        m->split = text_json_flag(part, "split", 1);
        iso_status status = text_json_prepend(part, &m->prepend, error);
        if (status)
            return status;
    }
    return *used && !m->used
               ? text_json_refuse(error, "without Metaspace the pre_tokenizer", "WhitespaceSplit")
               : ISOBIT_OK;
}

/* A split at spaces, of which the last step has left none. */
static int is_idle_split(const text_pipeline *p, const json_t *part) {
    const text_step *last = p->step_count ? &p->steps[p->step_count - 1] : NULL;
    return strcmp(text_string_or(json_object_get(part, "pattern"), "String", ""), " ") == 0 &&
           last && last->run == text_step_replace && last->from && strcmp(last->from, " ") == 0 &&
           !strchr(last->to, ' ') && !text_json_true(part, "invert");
}

iso_status text_json_splitter(text_pipeline *p, const json_t *root, int *byte_level,
                              iso_error *error) {
    const json_t *part;
    int split = 0;
    *byte_level = 0;
    for (size_t i = 0; (part = text_json_member(root, "pretokenizers", i)); i++) {
        const char *type = text_json_type(part);
        const char *pattern = text_string_or(json_object_get(part, "pattern"), "Regex", "");
        if (strcmp(type, "Split") == 0 && is_idle_split(p, part))
            continue;
        if (*byte_level || (split && strcmp(type, "ByteLevel") != 0)) {
            return text_json_refuse(error, "a pre_tokenizer before", type);
        } else if (strcmp(type, "ByteLevel") == 0) {
            *byte_level = 1;
            p->prefix_space = text_json_flag(part, "add_prefix_space", 1);
            if (split && text_json_flag(part, "use_regex", 1))
                return text_json_refuse(error, "a pre_tokenizer that splits twice, with", type);
            if (p->prefix_space && split)
                return text_json_refuse(error, "add_prefix_space after a split in", type);
            if (text_json_flag(part, "use_regex", 1))
                p->split = text_split_gpt2;
        } else if (strcmp(type, "BertPreTokenizer") == 0) {
            p->split = text_split_bert;
        } else if (strcmp(type, "Split") == 0) {
            p->split = text_splitter_of(pattern);
            if (!p->split || strcmp(text_string_or(part, "behavior", ""), "Isolated") != 0 ||
                text_json_true(part, "invert"))
                return text_json_refuse(error, "the pre_tokenizer Split with the pattern", pattern);
        } else {
            return text_json_refuse(error, "pre_tokenizer", type);
        }
        split = 1;
    }
    return ISOBIT_OK;
}
