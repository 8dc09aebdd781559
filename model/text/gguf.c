/* SPDX-License-Identifier: MIT
 *
 * The tokenizer that a GGUF file has in its metadata, as a pipeline: byte-level BPE, which such
 * files call "gpt2". How text is cut into words they say with a name; flags of added tokens, but
 * whether they are text, they do not say.
 */
#include "gguf.h"
#include "pipeline.h"

#define KEY(name) "tokenizer.ggml." name

/* The numbers are those of the file. */
enum { CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, BYTE = 6 };

/* What a name says of words; the flags are for files that do not have them. */
typedef struct cutter {
    const char *pre;
    text_splitter *split;
    int ignore_merges, nfc, bos;
} cutter;

static const cutter cutters[] = {
    {"gpt-2", text_split_gpt2, 0, 0, 0},
    {"llama-bpe", text_split_llama3, 1, 0, 1},
    {"qwen2", text_split_qwen2, 0, 1, 0},
};
enum { CUTTERS = sizeof cutters / sizeof *cutters };

typedef struct reader {
    iso_tokenizer *t;
    text_pipeline *p;
    const model_gguf *g;
    const cutter *cut;
    const gguf_value *tokens, *types, *merges;
} reader;

/* A string that must be one of those that are known. */
static iso_status unknown(const reader *r, const gguf_value *v, const char *what) {
    model_quoted quoted;
    size_t bytes;
    const char *at = v->data, *text = model_gguf_string(&at, &bytes);
    return model_fail(r->g->error, ISOBIT_E_UNSUPPORTED,
                      "%s: \"%s\" is %s, which isobit does not have; use token ids", r->g->file,
                      what, model_quote(&quoted, text, bytes));
}

static iso_status missing(const reader *r, const char *key) {
    return model_fail(r->g->error, ISOBIT_E_MISSING, "%s has no key \"%s\"", r->g->file, key);
}

static iso_status no_memory(const reader *r) {
    return model_fail(r->g->error, ISOBIT_E_NOMEM, "out of memory for the tokenizer of %s",
                      r->g->file);
}

static iso_status find_kind(reader *r) {
    const gguf_value *model, *pre;
    iso_status status = model_gguf_get(r->g, &model, KEY("model"), GGUF_STRING);
    if (status || (status = model_gguf_get(r->g, &pre, KEY("pre"), GGUF_STRING)))
        return status;
    if (!model)
        return missing(r, KEY("model"));
    if (!model_gguf_is(model, "gpt2"))
        return unknown(r, model, KEY("model"));
    if (!pre)
        return missing(r, KEY("pre"));
    for (int i = 0; i < CUTTERS; i++)
        if (model_gguf_is(pre, cutters[i].pre))
            r->cut = &cutters[i];
    return r->cut ? ISOBIT_OK : unknown(r, pre, KEY("pre"));
}

static iso_status find_arrays(reader *r) {
    const model_gguf *g = r->g;
    iso_status status;
    if ((status = model_gguf_array(g, &r->tokens, KEY("tokens"), GGUF_STRING)) ||
        (status = model_gguf_array(g, &r->merges, KEY("merges"), GGUF_STRING)) ||
        (status = model_gguf_array(g, &r->types, KEY("token_type"), GGUF_I32)))
        return status;
    if (!r->tokens || !r->merges)
        return missing(r, r->tokens ? KEY("merges") : KEY("tokens"));
    if (r->types && r->types->count != r->tokens->count)
        return model_fail(g->error, ISOBIT_E_CONFIG, "%s: %zu tokens, but %zu types of tokens",
                          g->file, r->tokens->count, r->types->count);
    return ISOBIT_OK;
}

/* -------------------------------------------------------------------------------- vocabulary */

/* Tokens of control are no text; those of users are; unused ones stand for none. */
static iso_status put_token(const reader *r, json_t *vocabulary, json_t *added, size_t id,
                            const char *text, size_t bytes) {
    const uint64_t type = r->types ? model_gguf_number(r->types->data + 4 * id, 4) : 1;
    model_quoted quoted;
    if (type < 1 || type > BYTE)
        return model_fail(r->g->error, ISOBIT_E_CONFIG,
                          "%s: token %zu has the type %llu; 1 to 6 are possible", r->g->file, id,
                          (unsigned long long)type);
    if (type == UNUSED)
        return ISOBIT_OK;
    if (!model_gguf_is_text(text, bytes))
        return model_fail(r->g->error, ISOBIT_E_UTF8,
                          "%s: token %zu is not UTF-8, or has a NUL character", r->g->file, id);
    json_t *token = json_stringn(text, bytes);
    if (!token)
        return no_memory(r);
    const char *name = json_string_value(token);
    int failed = 0;
    if (json_object_get(vocabulary, name)) {
        json_decref(token);
        return model_fail(r->g->error, ISOBIT_E_DUPLICATE, "%s: token %zu, %s, occurs twice",
                          r->g->file, id, model_quote(&quoted, text, bytes));
    }
    failed = json_object_set_new(vocabulary, name, json_integer((json_int_t)id));
    if (!failed && (type == CONTROL || type == USER_DEFINED)) {
        json_t *one = json_pack("{s:O, s:b}", "content", token, "special", type == CONTROL);
        failed = !one || json_array_append_new(added, one);
    }
    json_decref(token);
    return failed ? no_memory(r) : ISOBIT_OK;
}

static iso_status read_vocabulary(const reader *r) {
    json_t *vocabulary = json_object(), *added = json_array();
    const char *at = r->tokens->data;
    iso_status status = vocabulary && added ? ISOBIT_OK : no_memory(r);
    for (size_t id = 0; id < r->tokens->count && !status; id++) {
        size_t bytes;
        const char *text = model_gguf_string(&at, &bytes);
        status = put_token(r, vocabulary, added, id, text, bytes);
    }
    if (!status)
        status = text_pipeline_vocabulary(r->t, r->p, vocabulary, added, r->g->file, r->g->error);
    json_decref(vocabulary);
    json_decref(added);
    return status;
}

static iso_status read_merges(const reader *r) {
    const char *at = r->merges->data;
    iso_status status = text_pipeline_bpe(r->t, r->p, r->merges->count, r->g->error);
    for (size_t i = 0; i < r->merges->count && !status; i++) {
        size_t bytes;
        const char *text = model_gguf_string(&at, &bytes);
        const char *space = bytes ? memchr(text + 1, ' ', bytes - 1) : NULL;
        if (!space)
            return model_fail(r->g->error, ISOBIT_E_CONFIG, "%s: merge %zu is no pair of tokens",
                              r->g->file, i);
        status = text_pipeline_merge(r->p, text, (size_t)(space - text), space + 1,
                                     bytes - (size_t)(space + 1 - text), r->g->file, r->g->error);
    }
    text_bpe_sort(&r->p->model);
    return status;
}

/* The token that begins or ends a text, where the file or its kind wants one. */
static iso_status put_around(const reader *r, const char *flag, int otherwise, const char *key,
                             uint32_t *ids, size_t *count) {
    const gguf_value *wanted, *id;
    iso_status status = model_gguf_get(r->g, &wanted, flag, GGUF_BOOL);
    if (!status)
        status = model_gguf_get(r->g, &id, key, GGUF_U32);
    if (status || !(wanted ? wanted->data[0] != 0 : otherwise && id))
        return status;
    if (!id)
        return missing(r, key);
    const uint64_t token = model_gguf_number(id->data, 4);
    const text_vocabulary *v = &r->t->vocabulary[TEXT_SOURCE];
    if (token >= v->count || !v->by_id[token].bytes)
        return model_fail(r->g->error, ISOBIT_E_CONFIG, "%s: \"%s\" is %llu, which is no token",
                          r->g->file, key, (unsigned long long)token);
    ids[(*count)++] = (uint32_t)token;
    return ISOBIT_OK;
}

iso_status text_pipeline_gguf(iso_tokenizer *t, text_pipeline *p, const char *directory,
                              const char *name, iso_error *error) {
    model_checkpoint checkpoint;
    model_gguf gguf;
    reader r = {t, p, &gguf, NULL, NULL, NULL, NULL};
    iso_status status = model_gguf_open(&gguf, &checkpoint, directory, name, GGUF_MAX_BYTES, error);
    if (!status)
        status = find_kind(&r);
    if (!status)
        status = find_arrays(&r);
    if (!status)
        status = read_vocabulary(&r);
    if (!status)
        status = read_merges(&r);
    if (!status)
        status = put_around(&r, KEY("add_bos_token"), r.cut->bos, KEY("bos_token_id"), p->before,
                            &p->before_count);
    if (!status)
        status =
            put_around(&r, KEY("add_eos_token"), 0, KEY("eos_token_id"), p->after, &p->after_count);
    if (!status) {
        p->split = r.cut->split;
        p->model.ignore_merges = r.cut->ignore_merges;
        if (r.cut->nfc)
            p->steps[p->step_count++] = (text_step){.run = text_step_form, .form = TEXT_NFC};
        status = model_checkpoint_unchanged(&checkpoint, error);
    }
    model_checkpoint_close(&checkpoint);
    return status;
}
