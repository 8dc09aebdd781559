/* SPDX-License-Identifier: MIT
 *
 * See pipeline_spm.h: the pieces in the order of a family, and the tokens among them.
 */
#include "pipeline_spm.h"

#include <stdio.h>

static iso_status put_token(text_spm_reader *r, const char *token, size_t bytes, float score) {
    model_quoted quoted;
    if (json_object_getn(r->ids, token, bytes))
        return model_fail(r->error, ISOBIT_E_DUPLICATE, "%s: two tokens are %s", r->family->file,
                          model_quote(&quoted, token, bytes));
    if (r->count == r->room ||
        json_object_setn_new(r->ids, token, bytes, json_integer((json_int_t)r->count)))
        return text_spm_no_memory(r);
    r->scores[r->count++] = score;
    return ISOBIT_OK;
}

static iso_status put_numbered(text_spm_reader *r, const char *format, size_t number, float score) {
    char token[40];
    (void)snprintf(token, sizeof token, format[0] == 'e' ? "<extra_id_%zu>" : "<unk_%zu>", number);
    return put_token(r, token, strlen(token), score);
}

/* As the file has them, but for the scores of the first three, and names that tokenizer_config.json
 * gives them. */
static iso_status put_llama(text_spm_reader *r) {
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

static iso_status put_pieces(text_spm_reader *r, size_t first) {
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

static iso_status put_names(text_spm_reader *r, const char *const *names, size_t count) {
    iso_status status = ISOBIT_OK;
    for (size_t i = 0; names && names[i] && (!count || i < count) && !status; i++)
        status = put_token(r, names[i], strlen(names[i]), 0);
    return status;
}

static iso_status put_fairseq(text_spm_reader *r) {
    static const char *const first[] = {"<s>", "<pad>", "</s>", "<unk>", NULL};
    iso_status status = put_names(r, first, 0);
    if (!status)
        status = put_pieces(r, 3);
    if (status || r->family->added_languages)
        return status;
    status = put_names(r, r->family->languages, r->family->language_count);
    return status ? status : put_token(r, "<mask>", 6, 0);
}

static iso_status put_t5(text_spm_reader *r, size_t extra) {
    iso_status status = put_pieces(r, 0);
    for (size_t i = extra; i > 0 && !status; i--)
        status = put_numbered(r, "extra", i - 1, 0);
    return status;
}

static iso_status put_pegasus(text_spm_reader *r, size_t offset) {
    const char *names[] = {text_spm_special(r, "pad_token", "<pad>"),
                           text_spm_special(r, "eos_token", "</s>"),
                           text_spm_special(r, "mask_token_sent", "<mask_1>"),
                           text_spm_special(r, "mask_token", r->family->mask), NULL};
    if (!names[2])
        names[3] = NULL;
    iso_status status = put_names(r, names, 0);
    for (size_t i = 2; i < offset && !status; i++)
        status = put_numbered(r, "unk", i, -100);
    return status ? status : put_pieces(r, 2);
}

iso_status text_spm_put_tokens(text_spm_reader *r, size_t extra, size_t offset) {
    const size_t most = 4 + 256 + (extra > offset ? extra : offset);
    r->room = r->pieces.count + most;
    r->scores = model_alloc(&r->t->arena, r->room, sizeof *r->scores);
    r->ids = json_object();
    if (!r->scores || !r->ids)
        return text_spm_no_memory(r);
    return r->family->layout == FAIRSEQ ? put_fairseq(r)
           : r->family->layout == T5    ? put_t5(r, extra)
           : r->family->layout == LLAMA ? put_llama(r)
                                        : put_pegasus(r, offset);
}
