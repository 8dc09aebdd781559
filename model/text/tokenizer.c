/* SPDX-License-Identifier: MIT
 *
 * The public functions of tokenizers: which kind a directory needs, checks of arguments, and the
 * counting of what does not fit.
 */
#include "weights.h"
#include "gguf.h"
#include "text.h"

#include <string.h>

static const text_class classes[] = {
    {"isobit-characters", NULL, &text_characters, NULL, NULL},
    {"MarianTokenizer", "marian", &text_marian, NULL, NULL},
    {"GPT2Tokenizer", "gpt2", &text_pipeline_kind, &text_gpt2, NULL},
    {"RobertaTokenizer", "roberta", &text_pipeline_kind, &text_roberta, NULL},
    {"BartTokenizer", "bart", &text_pipeline_kind, &text_roberta, NULL},
    {"Qwen2Tokenizer", "qwen2", &text_pipeline_kind, &text_qwen2, NULL},
    {"BertTokenizer", "bert", &text_pipeline_kind, &text_bert, NULL},
    {"DistilBertTokenizer", "distilbert", &text_pipeline_kind, &text_bert, NULL},
    {"PreTrainedTokenizer", NULL, &text_pipeline_kind, NULL, NULL},
    {"LlamaTokenizer", "llama", &text_pipeline_kind, NULL, &text_llama},
    {"LlamaTokenizer", "mistral", &text_pipeline_kind, NULL, &text_llama},
    {"GemmaTokenizer", NULL, &text_pipeline_kind, NULL, &text_gemma},
    {"NllbTokenizer", NULL, &text_pipeline_kind, NULL, &text_nllb},
    {"M2M100Tokenizer", "m2m_100", &text_m2m, NULL, NULL},
    {"MBartTokenizer", "mbart", &text_pipeline_kind, NULL, &text_mbart},
    {"MBart50Tokenizer", NULL, &text_pipeline_kind, NULL, &text_mbart50},
    {"T5Tokenizer", "t5", &text_pipeline_kind, NULL, &text_t5},
    {"PegasusTokenizer", "pegasus", &text_pipeline_kind, NULL, &text_pegasus},
};
enum { CLASSES = sizeof classes / sizeof classes[0] };

/* ---------------------------------------------------------------------------------- loading */

/* "BertTokenizerFast" is "BertTokenizer" with other code behind it. */
static int is_class(const char *name, const char *of) {
    const size_t n = strlen(of);
    return strncmp(name, of, n) == 0 && (name[n] == 0 || strcmp(name + n, "Fast") == 0);
}

/* The class of that name, or of a model_type; NULL: none. */
static const text_class *class_of(const char *name, const char *model_type) {
    for (int i = 0; i < CLASSES; i++)
        if (name[0] ? is_class(name, classes[i].name)
                    : classes[i].model_type && strcmp(model_type, classes[i].model_type) == 0)
            return &classes[i];
    return NULL;
}

static iso_status find_class(const text_class **of, const char *directory, const json_t *config,
                             iso_error *error) {
    model_quoted quoted;
    json_t *model = NULL;
    const char *file = "tokenizer_config.json",
               *name = text_string_or(config, "tokenizer_class", "");
    const char *type = "";
    if (!name[0]) {
        const iso_status status =
            text_json_optional(&model, directory, "config.json", TEXT_MAX_CONFIG_BYTES, error);
        if (status)
            return status;
        if (!model)
            return model_fail(error, ISOBIT_E_UNSUPPORTED,
                              "%s has no tokenizer_config.json with a tokenizer_class, and no "
                              "config.json",
                              directory);
        file = "config.json";
        name = text_string_or(model, "tokenizer_class", "");
        type = text_string_or(model, "model_type", "");
    }
    *of = class_of(name, type);
    const int by_class = name[0] != 0;
    model_quote(&quoted, by_class ? name : type, strlen(by_class ? name : type));
    json_decref(model);
    if (*of)
        return ISOBIT_OK;
    if (by_class)
        return model_fail(error, ISOBIT_E_UNSUPPORTED,
                          "%s: tokenizer_class %s is none that isobit has; use token ids", file,
                          quoted.text);
    return model_fail(error, ISOBIT_E_UNSUPPORTED,
                      "tokenizer_config.json has no tokenizer_class, and isobit none for the "
                      "model_type %s; use token ids",
                      quoted.text);
}

static iso_status read_tokenizer(iso_tokenizer *t, const char *directory, json_t **config,
                                 iso_error *error) {
    iso_status status = text_json_optional(config, directory, "tokenizer_config.json",
                                           TEXT_MAX_CONFIG_BYTES, error);
    const text_class *of = NULL;
    if (!status)
        status = find_class(&of, directory, *config, error);
    if (status)
        return status;
    t->kind = of->kind;
    status = of->family || of->kind == &text_m2m ? ISOBIT_OK : text_languages_none(t, error);
    return status ? status : t->kind->load(t, of, directory, *config, error);
}

iso_status iso_tokenizer_load_with(iso_tokenizer **tokenizer, const char *directory,
                                   const iso_tokenizer_options *options, iso_error *error) {
    iso_tokenizer_options own = {.size = sizeof own};
    if (!tokenizer || !directory)
        return model_fail(error, ISOBIT_E_NULL, "tokenizer and directory must not be NULL");
    if (options && !MODEL_OPTIONS(options, own, target_language))
        return model_fail(error, ISOBIT_E_SIZE, "the options have an unknown size");
    model_arena arena = {0};
    iso_tokenizer *t = model_alloc(&arena, 1, sizeof *t);
    if (!t)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory");
    *t = (iso_tokenizer){.arena = arena,
                         .eos = MODEL_NO_ID,
                         .unk = MODEL_NO_ID,
                         .forced_bos = MODEL_NO_ID,
                         .source_language = own.source_language,
                         .target_language = own.target_language};
    json_t *config = NULL;
    gguf_place gguf;
    iso_status status = model_gguf_locate(&gguf, directory, error);
    if (!status)
        status = gguf.name ? text_gguf_load(t, gguf.directory, gguf.name, error)
                           : read_tokenizer(t, directory, &config, error);
    model_arena_free(&gguf.arena);
    json_decref(config);
    t->source_language = t->target_language = NULL; /* the caller's */
    if (status)
        iso_tokenizer_free(t);
    else
        *tokenizer = t;
    return status;
}

iso_status iso_tokenizer_load(iso_tokenizer **tokenizer, const char *directory, iso_error *error) {
    return iso_tokenizer_load_with(tokenizer, directory, NULL, error);
}

iso_status iso_tokenizer_forced_bos(const iso_tokenizer *tokenizer, uint32_t *id) {
    if (!tokenizer || !id)
        return ISOBIT_E_NULL;
    *id = tokenizer->forced_bos;
    return ISOBIT_OK;
}

void iso_tokenizer_free(iso_tokenizer *tokenizer) {
    if (!tokenizer)
        return;
    if (tokenizer->kind && tokenizer->kind->free)
        tokenizer->kind->free(tokenizer);
    model_arena arena = tokenizer->arena; /* which holds the tokenizer itself */
    model_arena_free(&arena);
}

iso_status iso_tokenizer_fits(const iso_tokenizer *tokenizer, const iso_model *model,
                              iso_error *error) {
    static const char *const names[] = {"source", "target"};
    if (!tokenizer || !model)
        return model_fail(error, ISOBIT_E_NULL, "tokenizer and model must not be NULL");
    const iso_model_info *info = iso_model_get_info(model);
    for (int side = 0; side < 2; side++) {
        const size_t tokens = tokenizer->vocabulary[side].count;
        const size_t ids = side ? info->target_vocabulary : info->source_vocabulary;
        /* Rows that a model has for the sake of its shape. */
        if (tokens > ids || (tokens < ids && !tokenizer->kind->surplus))
            return model_fail(error, ISOBIT_E_CONFIG,
                              "the tokenizer has %zu tokens, but the %s vocabulary of the model "
                              "has %zu",
                              tokens, names[side], ids);
    }
    return ISOBIT_OK;
}

/* ------------------------------------------------------------------------------------- text */

void text_put_id(text_ids *out, uint32_t id) {
    if (out->id_count < out->id_room)
        out->ids[out->id_count] = id;
    out->id_count++;
}

void text_end_sequence(text_ids *out, size_t before) {
    if (out->sequence_count < out->sequence_room)
        out->lengths[out->sequence_count] = out->id_count - before;
    out->sequence_count++;
}

iso_status text_check_utf8(const char *text, size_t bytes, iso_error *error) {
    uint32_t code;
    for (size_t at = 0, n; at < bytes; at += n)
        if (!(n = model_utf8(text + at, bytes - at, &code)))
            return model_fail(error, ISOBIT_E_UTF8, "the text is not valid UTF-8 at byte %zu", at);
    return ISOBIT_OK;
}

iso_status text_ids_count(const text_ids *ids, size_t *id_count, size_t *sequence_count,
                          iso_error *error) {
    *id_count = ids->id_count;
    *sequence_count = ids->sequence_count;
    if (ids->id_count > ids->id_room || ids->sequence_count > ids->sequence_room)
        return model_fail(error, ISOBIT_E_WORKSPACE,
                          "the text gives %zu ids in %zu sequences; there is room for %zu and %zu",
                          ids->id_count, ids->sequence_count, ids->id_room, ids->sequence_room);
    return ISOBIT_OK;
}

static iso_status encode(const iso_tokenizer *tokenizer, text_ids *out, const char *text,
                         size_t bytes, iso_error *error) {
    if (!text)
        text = ""; /* C11 adds not even 0 to NULL */
    const iso_status status = text_check_utf8(text, bytes, error);
    return status ? status : tokenizer->kind->encode(tokenizer, out, text, bytes, error);
}

iso_status iso_tokenizer_encode(const iso_tokenizer *tokenizer, const char *text, size_t bytes,
                                uint32_t *ids, size_t capacity_ids, size_t *id_count,
                                size_t *lengths, size_t capacity_sequences, size_t *sequence_count,
                                iso_error *error) {
    if (!tokenizer || (!text && bytes) || (!ids && capacity_ids) || !id_count ||
        (!lengths && capacity_sequences) || !sequence_count)
        return model_fail(error, ISOBIT_E_NULL, "an argument is NULL");
    text_ids out = {.ids = ids,
                    .lengths = lengths,
                    .id_room = capacity_ids,
                    .sequence_room = capacity_sequences};
    iso_status status = encode(tokenizer, &out, text, bytes, error);
    return status ? status : text_ids_count(&out, id_count, sequence_count, error);
}

iso_status iso_tokenizer_lacks(const iso_tokenizer *tokenizer, const char *text, size_t bytes,
                               size_t *unknown, size_t *dropped, iso_error *error) {
    if (!tokenizer || (!text && bytes) || !unknown || !dropped)
        return model_fail(error, ISOBIT_E_NULL, "an argument is NULL");
    text_ids out = {0};
    iso_status status = encode(tokenizer, &out, text, bytes, error);
    if (!status) {
        *unknown = out.unknown;
        *dropped = out.dropped;
    }
    return status;
}

void text_put_chars(text_chars *out, const char *text, size_t bytes) {
    out->needed += bytes;
    out->cut |= bytes >= out->room - out->used; /* room for the NUL */
    if (out->cut)
        return;
    memcpy(out->text + out->used, text, bytes);
    out->used += bytes;
}

/* The ids that are tokens. */
static iso_status without_surplus(model_arena *scratch, const uint32_t **ids, size_t *count,
                                  size_t tokens) {
    size_t kept = 0;
    uint32_t *known = model_alloc(scratch, *count, sizeof *known);
    if (!known)
        return ISOBIT_E_NOMEM;
    for (size_t i = 0; i < *count; i++)
        if ((*ids)[i] < tokens)
            known[kept++] = (*ids)[i];
    *ids = known;
    *count = kept;
    return ISOBIT_OK;
}

static iso_status decode(const iso_tokenizer *tokenizer, int side, int partial, const uint32_t *ids,
                         size_t count, char *text, size_t bytes, size_t *needed) {
    if (!tokenizer || (!ids && count) || (!text && bytes))
        return ISOBIT_E_NULL;
    const size_t tokens = tokenizer->vocabulary[side].count;
    model_arena scratch = {0};
    iso_status status = ISOBIT_OK;
    for (size_t i = 0; i < count && !status; i++)
        if (ids[i] >= tokens)
            status = tokenizer->kind->surplus ? without_surplus(&scratch, &ids, &count, tokens)
                                              : ISOBIT_E_RANGE;
    if (status)
        return status;
    text_chars out = {.text = text, .room = bytes, .cut = bytes == 0, .partial = partial};
    status = tokenizer->kind->decode(tokenizer, &out, ids, count, side);
    model_arena_free(&scratch);
    if (bytes)
        text[out.used] = 0;
    if (status)
        return status;
    if (needed)
        *needed = out.needed + 1;
    return out.cut ? ISOBIT_E_WORKSPACE : ISOBIT_OK;
}

iso_status iso_tokenizer_decode(const iso_tokenizer *tokenizer, const uint32_t *ids, size_t count,
                                char *text, size_t bytes, size_t *needed) {
    return decode(tokenizer, TEXT_TARGET, 0, ids, count, text, bytes, needed);
}

iso_status iso_tokenizer_decode_source(const iso_tokenizer *tokenizer, const uint32_t *ids,
                                       size_t count, char *text, size_t bytes, size_t *needed) {
    return decode(tokenizer, TEXT_SOURCE, 0, ids, count, text, bytes, needed);
}

iso_status iso_tokenizer_decode_partial(const iso_tokenizer *tokenizer, const uint32_t *ids,
                                        size_t count, char *text, size_t bytes, size_t *needed) {
    return decode(tokenizer, TEXT_TARGET, 1, ids, count, text, bytes, needed);
}

static const char *token(const iso_tokenizer *tokenizer, int side, uint32_t id) {
    if (!tokenizer || id >= tokenizer->vocabulary[side].count)
        return NULL;
    return tokenizer->vocabulary[side].by_id[id].token;
}

const char *iso_tokenizer_token(const iso_tokenizer *tokenizer, uint32_t id) {
    return token(tokenizer, TEXT_TARGET, id);
}

const char *iso_tokenizer_source_token(const iso_tokenizer *tokenizer, uint32_t id) {
    return token(tokenizer, TEXT_SOURCE, id);
}
