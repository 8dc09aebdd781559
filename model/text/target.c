/* SPDX-License-Identifier: MIT
 *
 * Text as the target of a model with an encoder: what stands around a source gives way to the
 * language of the target, or to what begins every text, and to one end token.
 */
#include "pipeline.h"

/* What a kind puts around each sequence of a source, and a target begins with (MODEL_NO_ID:
 * nothing) and ends with. */
typedef struct around {
    size_t before, after;
    uint32_t first, last;
} around;

/* Languages are written without brackets, <s> and [CLS] with them. */
static int is_language(const iso_tokenizer *t, uint32_t id) {
    const char *token = iso_tokenizer_token(t, id);
    return token && token[0] != '<' && token[0] != '[';
}

static around around_of(const iso_tokenizer *t) {
    around a = {0, 1, t->forced_bos, t->eos};
    if (t->kind == &text_m2m) {
        a.before = 1;
    } else if (t->kind == &text_pipeline_kind) {
        const text_pipeline *p = t->state;
        a.before = p->before_count;
        a.after = p->after_count;
        a.last = a.after ? p->after[0] : MODEL_NO_ID; /* a language would be behind it */
        if (a.first == MODEL_NO_ID && a.before && !is_language(t, p->before[0]))
            a.first = p->before[0];
    }
    return a;
}

static void put_sequence(text_ids *out, const around *a, const uint32_t *ids, size_t count) {
    const size_t before = out->id_count;
    if (a->first != MODEL_NO_ID)
        text_put_id(out, a->first);
    for (size_t i = a->before; i + a->after < count; i++)
        text_put_id(out, ids[i]);
    if (a->last != MODEL_NO_ID)
        text_put_id(out, a->last);
    text_end_sequence(out, before);
}

/* The sequences of a source, with what belongs around a target. */
static iso_status put_around(const iso_tokenizer *t, text_ids *out, const around *a,
                             const char *text, size_t bytes, iso_error *error) {
    text_ids source = {0};
    model_arena arena = {0};
    iso_status status = t->kind->encode(t, &source, text, bytes, error);
    if (status)
        return status;
    source = (text_ids){.ids = model_alloc(&arena, source.id_count + 1, sizeof *source.ids),
                        .lengths =
                            model_alloc(&arena, source.sequence_count + 1, sizeof *source.lengths),
                        .id_room = source.id_count,
                        .sequence_room = source.sequence_count};
    status = source.ids && source.lengths
                 ? t->kind->encode(t, &source, text, bytes, error)
                 : model_fail(error, ISOBIT_E_NOMEM, "out of memory for the tokens of a text");
    for (size_t i = 0, at = 0; i < source.sequence_count && !status; at += source.lengths[i++])
        put_sequence(out, a, source.ids + at, source.lengths[i]);
    out->unknown = source.unknown;
    out->dropped = source.dropped;
    model_arena_free(&arena);
    return status;
}

static iso_status encode_target(const iso_tokenizer *t, text_ids *out, const around *a,
                                const char *text, size_t bytes, iso_error *error) {
    if (!text)
        text = "";
    const iso_status status = text_check_utf8(text, bytes, error);
    if (status)
        return status;
    return t->kind->encode_target ? t->kind->encode_target(t, out, text, bytes, error)
                                  : put_around(t, out, a, text, bytes, error);
}

iso_status iso_tokenizer_encode_target(const iso_tokenizer *tokenizer, const char *text,
                                       size_t bytes, uint32_t *ids, size_t capacity_ids,
                                       size_t *id_count, size_t *lengths, size_t capacity_sequences,
                                       size_t *sequence_count, size_t *given, iso_error *error) {
    if (!tokenizer || (!text && bytes) || (!ids && capacity_ids) || !id_count ||
        (!lengths && capacity_sequences) || !sequence_count || !given)
        return model_fail(error, ISOBIT_E_NULL, "an argument is NULL");
    text_ids out = {.ids = ids,
                    .lengths = lengths,
                    .id_room = capacity_ids,
                    .sequence_room = capacity_sequences};
    const around a = around_of(tokenizer);
    const iso_status status = encode_target(tokenizer, &out, &a, text, bytes, error);
    if (status)
        return status;
    *given = !tokenizer->kind->encode_target && a.first != MODEL_NO_ID;
    return text_ids_count(&out, id_count, sequence_count, error);
}

iso_status iso_tokenizer_target_lacks(const iso_tokenizer *tokenizer, const char *text,
                                      size_t bytes, size_t *unknown, size_t *dropped,
                                      iso_error *error) {
    if (!tokenizer || (!text && bytes) || !unknown || !dropped)
        return model_fail(error, ISOBIT_E_NULL, "an argument is NULL");
    text_ids out = {0};
    const around a = around_of(tokenizer);
    const iso_status status = encode_target(tokenizer, &out, &a, text, bytes, error);
    if (!status) {
        *unknown = out.unknown;
        *dropped = out.dropped;
    }
    return status;
}
