/* SPDX-License-Identifier: MIT
 *
 * Runs a pipeline: see pipeline.h.
 */
#include "pipeline.h"

/* ------------------------------------------------------------------------------------ encode */

typedef struct encoding {
    const text_pipeline *p;
    text_ids *out;
    int first; /* nothing came before this part of the text */
} encoding;

static iso_status put_words(const text_pipeline *p, text_ids *out, const char *text, size_t bytes) {
    iso_status status = ISOBIT_OK;
    for (size_t at = 0, n; at < bytes && !status; at += n) {
        int word = 1;
        n = p->split(text + at, bytes - at, &word);
        if (n == 0 || n > bytes - at)
            return ISOBIT_E_INTERNAL;
        if (word)
            status = p->model.encode(&p->model, out, text + at, n);
    }
    return status;
}

static iso_status put_part(void *to, const text_added *added, const char *text, size_t bytes) {
    encoding *e = to;
    const int first = e->first;
    text_buffer with_space = {0};
    e->first = 0;
    if (added) {
        text_put_id(e->out, added->id);
        return ISOBIT_OK;
    }
    if (e->p->metaspace.used)
        return text_metaspace_put(e->p, e->out, text, bytes, first);
    if (!e->p->prefix_space || text[0] == ' ')
        return put_words(e->p, e->out, text, bytes);
    text_buffer_put(&with_space, " ", 1);
    text_buffer_put(&with_space, text, bytes);
    iso_status status = with_space.failed
                            ? ISOBIT_E_NOMEM
                            : put_words(e->p, e->out, with_space.text, with_space.count);
    text_buffer_free(&with_space);
    return status;
}

/* Puts a text through all steps. */
static void normal_form(const text_pipeline *p, text_buffer *form, const char *text, size_t bytes) {
    text_buffer_put(form, text, bytes);
    for (size_t i = 0; i < p->step_count; i++) {
        text_buffer next = {0};
        p->steps[i].run(&p->steps[i], &next, form->text, form->count);
        next.failed |= form->failed;
        text_buffer_free(form);
        *form = next;
    }
}

/* Text between added tokens, in whose normal form others may hide. */
static iso_status put_raw(void *to, const text_added *added, const char *text, size_t bytes) {
    encoding *e = to;
    if (added)
        return put_part(to, added, text, bytes);
    text_buffer form = {0};
    normal_form(e->p, &form, text, bytes);
    iso_status status = form.failed
                            ? ISOBIT_E_NOMEM
                            : text_added_split(&e->p->added, 1, form.text, form.count, put_part, e);
    text_buffer_free(&form);
    e->first = 0;
    return status;
}

static iso_status encode(const iso_tokenizer *t, text_ids *out, const char *text, size_t bytes,
                         iso_error *error) {
    const text_pipeline *p = t->state;
    encoding e = {p, out, 1};
    const size_t before = out->id_count;
    for (size_t i = 0; i < p->before_count; i++)
        text_put_id(out, p->before[i]);
    const size_t first = out->id_count;
    iso_status status = text_added_split(&p->added, 0, text, bytes, put_raw, &e);
    if (status)
        return model_fail(error, status, "the tokenizer: %s", iso_strerror(status));
    if (out->id_count == first) { /* nothing is left of it */
        out->id_count = before;
        return ISOBIT_OK;
    }
    for (size_t i = 0; i < p->after_count; i++)
        text_put_id(out, p->after[i]);
    text_end_sequence(out, before);
    return ISOBIT_OK;
}

/* ------------------------------------------------------------------------------------ decode */

static iso_status decode(const iso_tokenizer *t, text_chars *out, const uint32_t *ids, size_t count,
                         int side) {
    const text_pipeline *p = t->state;
    text_buffer text = {.partial = out->partial};
    p->decode(p, &t->vocabulary[side], &text, ids, count);
    if (p->cleanup_text) {
        if (text.partial)
            text_hold(&text);
        text_tidy(&text, 0);
    }
    const int failed = text.failed;
    if (!failed)
        text_put_chars(out, text.text ? text.text : "", text.count);
    text_buffer_free(&text);
    return failed ? ISOBIT_E_NOMEM : ISOBIT_OK;
}

/* ----------------------------------------------------------------------------------- loading */

/* Tokens that are looked for in normal forms have one themselves; an empty one is never found. */
static iso_status normalize_added(iso_tokenizer *t, text_pipeline *p, iso_error *error) {
    for (size_t i = 0; i < p->added.count; i++) {
        text_added *added = &p->added.tokens[i];
        text_buffer form = {0};
        if (!added->normalized || !p->step_count)
            continue;
        normal_form(p, &form, added->token, added->bytes);
        char *copy = form.failed ? NULL : model_alloc(&t->arena, form.count + 1, 1);
        if (copy) {
            memcpy(copy, form.count ? form.text : "", form.count);
            added->token = copy;
            added->bytes = form.count;
        }
        text_buffer_free(&form);
        if (!copy)
            return model_fail(error, ISOBIT_E_NOMEM, "out of memory for the added tokens");
    }
    return ISOBIT_OK;
}

/* Without anything in it. */
static text_pipeline *new_pipeline(iso_tokenizer *t, iso_error *error) {
    text_pipeline *p = t->state = model_alloc(&t->arena, 1, sizeof *p);
    if (p)
        *p = (text_pipeline){
            .split = text_split_none,
            .model = {.vocabulary = &t->vocabulary[TEXT_SOURCE], .unk = MODEL_NO_ID, .prefix = ""}};
    else
        (void)model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    return p;
}

static iso_status finish(iso_tokenizer *t, text_pipeline *p, iso_error *error) {
    iso_status status = normalize_added(t, p, error);
    if (!status)
        text_added_sort(&p->added);
    t->vocabulary[TEXT_TARGET] = t->vocabulary[TEXT_SOURCE];
    return status;
}

/* tokenizer.json tells everything; of the older files, a recipe tells the rest. */
static iso_status load(iso_tokenizer *t, const text_class *of, const char *directory,
                       const json_t *config, iso_error *error) {
    text_pipeline *p = new_pipeline(t, error);
    int found = 0;
    if (!p)
        return ISOBIT_E_NOMEM;
    p->cleanup_text = json_is_true(json_object_get(config, "clean_up_tokenization_spaces"));
    iso_status status = ISOBIT_OK;
    if (!of->family || !text_family_rebuilds(of->family, directory, config))
        status = text_pipeline_json(t, p, directory,
                                    of->family && !text_family_updates(of->family) ? NULL : config,
                                    &found, error);
    if (!found && of->family)
        status = text_pipeline_spm(t, p, of->family, directory, config, error);
    else if (!found)
        status = of->recipe
                     ? text_pipeline_files(t, p, of->recipe, directory, config, error)
                     : model_fail(error, ISOBIT_E_MISSING, "there is no file tokenizer.json");
    if (!status && of->family)
        status = text_pipeline_around(t, p, of->family, directory, config, error);
    if (!status && of->family)
        status = text_pipeline_languages(t, p, of->family, config, error);
    return status ? status : finish(t, p, error);
}

iso_status text_gguf_load(iso_tokenizer *t, const char *directory, const char *name,
                          iso_error *error) {
    t->kind = &text_pipeline_kind;
    iso_status status = text_languages_none(t, error);
    text_pipeline *p = status ? NULL : new_pipeline(t, error);
    if (!p)
        return status ? status : ISOBIT_E_NOMEM;
    status = text_pipeline_gguf(t, p, directory, name, error);
    return status ? status : finish(t, p, error);
}

const text_kind text_pipeline_kind = {load, encode, decode, NULL, 1, NULL};
