/* SPDX-License-Identifier: MIT
 *
 * Directories without tokenizer.json: vocab.json with merges.txt, or vocab.txt. What these do not
 * say, and transformers has in the code of a class, is a recipe here; tokenizer_config.json may
 * change its special tokens and flags.
 */
#include "files.h"
#include "pipeline.h"
#include "scan.h"

#include <stdlib.h>

enum { SPECIALS = 7 };

struct text_recipe {
    const char *specials[SPECIALS]; /* in the order of `keys` below; NULL: none */
    text_splitter *split;           /* of BPE; NULL: WordPiece as BERT has it */
    int nfc;                        /* the normal form of BPE */
    const char *before, *after;     /* keys of the special tokens around a text, or NULL */
    int mask_lstrip;                /* the mask takes the space before it along */
};

static const char *const keys[SPECIALS] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                           "pad_token", "cls_token", "mask_token"};

const struct text_recipe text_gpt2 = {
    .specials = {"<|endoftext|>", "<|endoftext|>", "<|endoftext|>"}, .split = text_split_gpt2};
const struct text_recipe text_roberta = {
    .specials = {"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"},
    .split = text_split_gpt2,
    .before = "cls_token",
    .after = "sep_token",
    .mask_lstrip = 1};
const struct text_recipe text_qwen2 = {
    .specials = {NULL, "<|endoftext|>", NULL, NULL, "<|endoftext|>"},
    .split = text_split_qwen2,
    .nfc = 1};
const struct text_recipe text_bert = {
    .specials = {NULL, NULL, "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"},
    .before = "cls_token",
    .after = "sep_token"};

typedef struct reader {
    iso_tokenizer *t;
    text_pipeline *p;
    const struct text_recipe *recipe;
    const char *directory;
    const json_t *config;
    iso_error *error;
} reader;

static const char *special(const reader *r, const char *key) {
    for (int i = 0; i < SPECIALS; i++)
        if (strcmp(keys[i], key) == 0 && r->recipe->specials[i])
            return text_string_or(r->config, key, r->recipe->specials[i]);
    return NULL;
}

/* -------------------------------------------------------------------------------- vocabulary */

/* The tokens of vocab.txt, whose ids are the numbers of their lines. */
static json_t *read_lines(char *text, size_t bytes) {
    json_t *vocabulary = json_object();
    json_int_t id = 0;
    for (char *at = text, *end; vocabulary && at < text + bytes; at = end + 1, id++) {
        end = memchr(at, '\n', (size_t)(text + bytes - at));
        if (!end)
            end = text + bytes;
        size_t n = (size_t)(end - at);
        n -= n > 0 && at[n - 1] == '\r';
        at[n] = 0;
        if (strlen(at) != n || json_object_set_new(vocabulary, at, json_integer(id)) != 0) {
            json_decref(vocabulary); /* a NUL, or no UTF-8, or no memory */
            return NULL;
        }
    }
    return vocabulary;
}

/* The special tokens, and those of "added_tokens_decoder": {"id": {"content", ...}}. `vocabulary`:
 * NULL if the tokens are in that of the tokenizer. */
static json_t *added_tokens(const reader *r, const json_t *vocabulary) {
    const text_vocabulary *v = &r->t->vocabulary[TEXT_SOURCE];
    json_t *list = json_array(), *one;
    const json_t *decoder = json_object_get(r->config, "added_tokens_decoder");
    const char *key;
    int failed = !list;
    json_object_foreach((json_t *)(uintptr_t)decoder, key, one) {
        if (!json_is_object(one))
            continue;
        json_t *copy = model_json_copy(one);
        failed |= !copy || json_array_append_new(list, copy) ||
                  json_object_set_new(copy, "id", json_integer(strtoll(key, NULL, 10)));
    }
    for (int i = 0; i < SPECIALS && !failed; i++) {
        const char *token = special(r, keys[i]);
        int known = 0;
        for (size_t k = 0; token && k < json_array_size(list); k++)
            known |= strcmp(text_string_or(json_array_get(list, k), "content", ""), token) == 0;
        if (!token || known ||
            !(vocabulary ? json_object_get(vocabulary, token) != NULL
                         : text_vocabulary_find(v, token, strlen(token)) != MODEL_NO_ID))
            continue;
        one = json_pack("{s:s, s:b, s:b}", "content", token, "special", 1, "lstrip",
                        i == SPECIALS - 1 && r->recipe->mask_lstrip);
        failed = !one || json_array_append_new(list, one);
    }
    if (failed) {
        json_decref(list);
        return NULL;
    }
    return list;
}

/* What was scanned, with the added tokens; *used is 0 if it cannot be used. */
static iso_status use_scanned(const reader *r, const text_scanned *s, const char *file, int *used) {
    text_vocabulary *v = &r->t->vocabulary[TEXT_SOURCE];
    const size_t more =
        SPECIALS + json_object_size(json_object_get(r->config, "added_tokens_decoder"));
    json_t *added = NULL;
    *used = text_scanned_begin(s, v, &r->t->arena, more) && (added = added_tokens(r, NULL)) &&
            text_scanned_finish(v, &r->t->arena, added);
    const iso_status status =
        *used ? text_pipeline_added(r->t, r->p, s->count, NULL, added, file, r->error) : ISOBIT_OK;
    json_decref(added);
    return status;
}

static iso_status read_tree(const reader *r, char *text, size_t bytes, const char *file) {
    json_t *vocabulary = NULL;
    iso_status status = ISOBIT_OK;
    if (r->recipe->split)
        status = model_json_parse(&vocabulary, text, bytes, file, r->error);
    else if (!(vocabulary = read_lines(text, bytes)))
        status = model_fail(r->error, ISOBIT_E_UTF8, "%s: the tokens are not valid UTF-8", file);
    json_t *added = status ? NULL : added_tokens(r, vocabulary);
    if (!status)
        status = added ? text_pipeline_vocabulary(r->t, r->p, vocabulary, added, file, r->error)
                       : model_fail(r->error, ISOBIT_E_NOMEM, "out of memory for %s", file);
    json_decref(added);
    json_decref(vocabulary);
    return status;
}

static iso_status read_vocabulary(const reader *r, const char *file) {
    model_arena scratch = {0};
    char *text;
    size_t bytes;
    text_scanned scanned;
    int used = 0;
    iso_status status = model_file_text(&text, &bytes, &scratch, r->directory, file,
                                        TEXT_MAX_VOCABULARY_BYTES, r->error);
    if (!status && (r->recipe->split ? text_scan_vocabulary(&scanned, text, bytes)
                                     : text_scan_lines(&scanned, text, bytes))) {
        status = use_scanned(r, &scanned, file, &used);
        text_scanned_free(&scanned);
    }
    if (!status && !used)
        status = read_tree(r, text, bytes, file);
    model_arena_free(&scratch);
    return status;
}

/* ------------------------------------------------------------------------------------ models */

static size_t count_newlines(const char *text, size_t bytes) {
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++)
        count += text[i] == '\n';
    return count;
}

static iso_status read_merges(const reader *r) {
    static const char file[] = "merges.txt";
    model_arena scratch = {0};
    char *text;
    size_t bytes;
    iso_status status = model_file_text(&text, &bytes, &scratch, r->directory, file,
                                        TEXT_MAX_VOCABULARY_BYTES, r->error);
    if (!status)
        status = text_pipeline_bpe(r->t, r->p, count_newlines(text, bytes) + 1, r->error);
    for (char *at = text, *end; !status && at < text + bytes; at = end + 1) {
        end = memchr(at, '\n', (size_t)(text + bytes - at));
        if (!end)
            end = text + bytes;
        size_t n = (size_t)(end - at);
        n -= n > 0 && at[n - 1] == '\r';
        const char *space = memchr(at, ' ', n);
        if (n == 0 || (n >= 8 && memcmp(at, "#version", 8) == 0))
            continue;
        if (!space)
            status = model_fail(r->error, ISOBIT_E_CONFIG,
                                "merges.txt: a line is no pair of tokens after %zu merges",
                                r->p->model.merge_count);
        else
            status = text_pipeline_merge(r->p, at, (size_t)(space - at), space + 1,
                                         n - (size_t)(space + 1 - at), file, r->error);
    }
    model_arena_free(&scratch);
    text_bpe_finish(&r->p->model, &r->t->arena);
    return status;
}

static int flag(const json_t *config, const char *key, int otherwise) {
    const json_t *value = json_object_get(config, key);
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

void text_pipeline_wordpiece(text_pipeline *p, int lowercase, int strip_accents, int chinese) {
    p->steps[p->step_count++] = (text_step){
        .run = text_step_bert,
        .clean = 1,
        .chinese_characters = chinese,
        .strip_accents = strip_accents,
        .lowercase = lowercase,
    };
    p->split = text_split_bert;
    p->model.encode = text_wordpiece_encode;
    p->model.prefix = "##";
    p->model.longest_word = 100;
    p->decode = text_decode_wordpiece;
    p->cleanup = 1;
}

static iso_status make_wordpiece(const reader *r) {
    text_pipeline *p = r->p;
    const char *unk = special(r, "unk_token");
    const int lowercase = flag(r->config, "do_lower_case", 1);
    text_pipeline_wordpiece(p, lowercase, flag(r->config, "strip_accents", lowercase),
                            flag(r->config, "tokenize_chinese_chars", 1));
    p->model.unk = text_vocabulary_find(p->model.vocabulary, unk, strlen(unk));
    if (p->model.unk != MODEL_NO_ID)
        return ISOBIT_OK;
    return model_fail(r->error, ISOBIT_E_MISSING, "vocab.txt has no unknown token");
}

static iso_status make_bpe(const reader *r) {
    text_pipeline *p = r->p;
    p->split = r->recipe->split;
    p->prefix_space = flag(r->config, "add_prefix_space", 0);
    if (r->recipe->nfc)
        p->steps[p->step_count++] = (text_step){.run = text_step_form, .form = TEXT_NFC};
    return read_merges(r);
}

static iso_status put_around(const reader *r, const char *key, uint32_t *ids, size_t *count) {
    model_quoted quoted;
    const char *token = key ? special(r, key) : NULL;
    if (!token)
        return ISOBIT_OK;
    *ids = text_vocabulary_find(r->p->model.vocabulary, token, strlen(token));
    *count = 1;
    if (*ids != MODEL_NO_ID)
        return ISOBIT_OK;
    return model_fail(r->error, ISOBIT_E_MISSING, "the vocabulary has no token %s (%s)",
                      model_quote(&quoted, token, strlen(token)), key);
}

iso_status text_pipeline_files(iso_tokenizer *t, text_pipeline *p, const struct text_recipe *recipe,
                               const char *directory, const json_t *config, iso_error *error) {
    const reader r = {t, p, recipe, directory, config, error};
    iso_status status = read_vocabulary(&r, recipe->split ? "vocab.json" : "vocab.txt");
    if (!status)
        status = recipe->split ? make_bpe(&r) : make_wordpiece(&r);
    if (!status)
        status = put_around(&r, recipe->before, p->before, &p->before_count);
    if (!status)
        status = put_around(&r, recipe->after, p->after, &p->after_count);
    return status;
}
