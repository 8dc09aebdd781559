/* SPDX-License-Identifier: MIT
 *
 * The tokenizer that a GGUF file has in its metadata, as a pipeline: byte-level BPE, which such
 * files call "gpt2", the pieces of SentencePiece with their scores, "llama" (merged) or "t5"
 * (Unigram), or WordPiece, "bert". How text is cut into words they say with a name; flags of added
 * tokens, but whether they are text, they do not say.
 */
#include "gguf.h"
#include "pipeline.h"

#include <math.h>
#include <stdio.h>

#define KEY(name) "tokenizer.ggml." name

/* The numbers are those of the file. */
enum { CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, BYTE = 6 }; /* as text_piece_type has them */

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

/* What "tokenizer.ggml.model" may be. */
typedef enum model_kind { BYTES, PIECES, UNIGRAM, WORDS } model_kind;
static const char *const kinds[] = {"gpt2", "llama", "t5", "bert"};
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct reader {
    iso_tokenizer *t;
    text_pipeline *p;
    const model_gguf *g;
    model_kind kind;
    int pieces;        /* of SentencePiece: scores, not merges, and no words */
    const cutter *cut; /* of BYTES */
    const gguf_value *tokens, *types, *merges, *scores;
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
    size_t kind = 0;
    while (kind < KINDS && !model_gguf_is(model, kinds[kind]))
        kind++;
    if (kind == KINDS)
        return unknown(r, model, KEY("model"));
    r->kind = (model_kind)kind;
    r->pieces = r->kind == PIECES || r->kind == UNIGRAM;
    if (r->pieces)
        return !pre || model_gguf_is(pre, "default") ? ISOBIT_OK : unknown(r, pre, KEY("pre"));
    if (r->kind == WORDS) /* BERT's words, whatever name some of its models have */
        return ISOBIT_OK;
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
        (r->kind == BYTES &&
         (status = model_gguf_array(g, &r->merges, KEY("merges"), GGUF_STRING))) ||
        (r->pieces && (status = model_gguf_array(g, &r->scores, KEY("scores"), GGUF_F32))) ||
        (status = model_gguf_array(g, &r->types, KEY("token_type"), GGUF_I32)))
        return status;
    if (!r->tokens)
        return missing(r, KEY("tokens"));
    if (r->pieces ? !r->scores : r->kind == BYTES && !r->merges)
        return missing(r, r->pieces ? KEY("scores") : KEY("merges"));
    if (r->kind != BYTES && !r->types)
        return missing(r, KEY("token_type"));
    if (r->types && r->types->count != r->tokens->count)
        return model_fail(g->error, ISOBIT_E_CONFIG, "%s: %zu tokens, but %zu types of tokens",
                          g->file, r->tokens->count, r->types->count);
    if (r->pieces && r->scores->count != r->tokens->count)
        return model_fail(g->error, ISOBIT_E_CONFIG, "%s: %zu tokens, but %zu scores of tokens",
                          g->file, r->tokens->count, r->scores->count);
    return ISOBIT_OK;
}

static iso_status take_type(const reader *r, size_t id, uint64_t *type) {
    *type = r->types ? model_gguf_number(r->types->data + 4 * id, 4) : 1;
    if (*type >= 1 && *type <= BYTE)
        return ISOBIT_OK;
    return model_fail(r->g->error, ISOBIT_E_CONFIG,
                      "%s: token %zu has the type %llu; 1 to 6 are possible", r->g->file, id,
                      (unsigned long long)*type);
}

static iso_status check_text(const reader *r, size_t id, const char *text, size_t bytes) {
    if (model_gguf_is_text(text, bytes))
        return ISOBIT_OK;
    return model_fail(r->g->error, ISOBIT_E_UTF8,
                      "%s: token %zu is not UTF-8, or has a NUL character", r->g->file, id);
}

static iso_status no_token(const reader *r, const char *key, uint64_t id) {
    return model_fail(r->g->error, ISOBIT_E_CONFIG, "%s: \"%s\" is %llu, which is no token",
                      r->g->file, key, (unsigned long long)id);
}

/* -------------------------------------------------------------------------------- vocabulary */

/* Tokens of control are no text; those of users are; unused ones stand for none. */
static iso_status put_token(const reader *r, json_t *vocabulary, json_t *added, size_t id,
                            const char *text, size_t bytes) {
    uint64_t type;
    model_quoted quoted;
    iso_status status = take_type(r, id, &type);
    if (status || type == UNUSED || (status = check_text(r, id, text, bytes)))
        return status;
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

/* WordPiece: such files have a bar before what begins a word, not "##" before what does not. A bar
 * alone continues one, as no token is empty. */
static iso_status put_word(const reader *r, json_t *vocabulary, json_t *added, size_t id,
                           const char *text, size_t bytes, text_buffer *name) {
    uint64_t type;
    iso_status status = take_type(r, id, &type);
    if (status || type == CONTROL)
        return status ? status : put_token(r, vocabulary, added, id, text, bytes);
    if (bytes > TEXT_BAR_BYTES && text_is_bar(text, bytes))
        return put_token(r, vocabulary, added, id, text + TEXT_BAR_BYTES, bytes - TEXT_BAR_BYTES);
    name->count = 0;
    text_buffer_put(name, "##", 2);
    text_buffer_put(name, text, bytes);
    return name->failed ? no_memory(r)
                        : put_token(r, vocabulary, added, id, name->text, name->count);
}

static iso_status read_vocabulary(const reader *r) {
    json_t *vocabulary = json_object(), *added = json_array();
    const char *at = r->tokens->data;
    text_buffer name = {0};
    iso_status status = vocabulary && added ? ISOBIT_OK : no_memory(r);
    for (size_t id = 0; id < r->tokens->count && !status; id++) {
        size_t bytes;
        const char *text = model_gguf_string(&at, &bytes);
        status = r->kind == WORDS ? put_word(r, vocabulary, added, id, text, bytes, &name)
                                  : put_token(r, vocabulary, added, id, text, bytes);
    }
    text_buffer_free(&name);
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
    text_bpe_finish(&r->p->model, &r->t->arena);
    return status;
}

/* ----------------------------------------------------------------------------- SentencePiece */

/* What fills up a vocabulary, with the number of its place, stands for no token. Other unused
 * pieces are pieces, as with tokenizer.model. */
static int is_filler(uint64_t type, size_t id, const char *text, size_t bytes) {
    char filler[32];
    const int n = snprintf(filler, sizeof filler, "[PAD%zu]", id);
    return type == UNUSED && bytes == (size_t)n && memcmp(text, filler, bytes) == 0;
}

/* <0x00> to <0xFF> */
static int is_byte(const char *text, size_t bytes) {
    static const char digits[] = "0123456789ABCDEF";
    return bytes == 6 && memcmp(text, "<0x", 3) == 0 && strchr(digits, text[3]) &&
           strchr(digits, text[4]) && text[5] == '>';
}

/* <extra_id_0> and so on, which T5 has behind its pieces. */
static int is_extra(const char *text, size_t bytes) {
    static const char begins[] = "<extra_id_";
    return bytes > sizeof begins - 1 && memcmp(text, begins, sizeof begins - 1) == 0;
}

static iso_status take_piece(const reader *r, size_t id, const char *text, size_t bytes,
                             text_piece *piece) {
    const uint32_t bits = (uint32_t)model_gguf_number(r->scores->data + 4 * id, 4);
    const model_gguf *g = r->g;
    model_quoted quoted;
    uint64_t type;
    float score;
    iso_status status = take_type(r, id, &type);
    if (status || (status = check_text(r, id, text, bytes)))
        return status;
    memcpy(&score, &bits, sizeof score);
    if (!isfinite(score))
        return model_fail(g->error, ISOBIT_E_CONFIG, "%s: the score of token %zu is not finite",
                          g->file, id);
    if (bytes < 1 || bytes > TEXT_MAX_PIECE_BYTES)
        return model_fail(g->error, ISOBIT_E_CONFIG, "%s: token %zu has %zu bytes, not 1 to %d",
                          g->file, id, bytes, TEXT_MAX_PIECE_BYTES);
    if (type == BYTE && !is_byte(text, bytes))
        return model_fail(g->error, ISOBIT_E_CONFIG,
                          "%s: token %zu, %s, has the type of bytes, but is not one of <0x00> to "
                          "<0xFF>",
                          g->file, id, model_quote(&quoted, text, bytes));
    *piece = (text_piece){text, is_filler(type, id, text, bytes) ? 0 : bytes, (text_piece_type)type,
                          score};
    /* What was added later has no score with transformers. */
    if (r->kind == UNIGRAM && type == USER_DEFINED) {
        piece->score = 0;
        if (is_extra(text, bytes))
            piece->type = TEXT_PIECE_CONTROL;
    }
    return ISOBIT_OK;
}

/* The one that a key names, or its type, or the first one, as is usual. It is special whatever its
 * type is: so it is with transformers. */
static iso_status find_unknown(const reader *r, text_pieces *all) {
    static const char key[] = KEY("unknown_token_id");
    const gguf_value *named;
    uint64_t unk = UINT64_MAX;
    iso_status status = model_gguf_get(r->g, &named, key, GGUF_U32);
    if (status)
        return status;
    for (size_t id = all->count; id-- > 0;)
        if (all->pieces[id].type == TEXT_PIECE_UNKNOWN) {
            all->pieces[id].type = TEXT_PIECE_CONTROL;
            unk = id;
        }
    if (named)
        unk = model_gguf_number(named->data, 4);
    else if (unk == UINT64_MAX && all->count && all->pieces[0].type == TEXT_PIECE_CONTROL)
        unk = 0;
    if (unk == UINT64_MAX)
        return missing(r, key);
    if (unk >= all->count || !all->pieces[unk].bytes)
        return no_token(r, key, unk);
    text_piece *piece = &all->pieces[unk];
    piece->type = TEXT_PIECE_CONTROL;
    all->unk = unk;
    all->unk_text = piece->text;
    all->unk_bytes = piece->bytes;
    return ISOBIT_OK;
}

/* Files made of tokenizer.json alone have one score for all: what merges first is lost. */
static iso_status check_scores(const reader *r, const text_pieces *all) {
    const text_piece *first = NULL;
    size_t normal = 0, same = 0;
    for (size_t id = 0; id < all->count; id++) {
        const text_piece *piece = &all->pieces[id];
        if (piece->type != TEXT_PIECE_NORMAL)
            continue;
        first = first ? first : piece;
        normal++;
        same += piece->score == first->score;
    }
    if (normal < 2 || same < normal)
        return ISOBIT_OK;
    return model_fail(r->g->error, ISOBIT_E_UNSUPPORTED,
                      "%s: all %zu normal tokens have the same score, so that the order of their "
                      "merges is unknown; a file that was made from tokenizer.model has it",
                      r->g->file, normal);
}

static iso_status check_bytes(const reader *r) {
    for (unsigned byte = 0; byte < 256; byte++)
        if (r->p->model.spelt[byte] == MODEL_NO_ID)
            return model_fail(r->g->error, ISOBIT_E_CONFIG,
                              "%s: there is no token <0x%02X>; each byte must have one", r->g->file,
                              byte);
    return ISOBIT_OK;
}

/* Bytes, signed or not. */
static iso_status find_charsmap(const reader *r, text_pieces *all) {
    static const char key[] = KEY("precompiled_charsmap");
    const gguf_value *v = model_gguf_find(r->g, key);
    if (!v)
        return ISOBIT_OK;
    if (!v->array || (v->type != GGUF_U8 && v->type != GGUF_I8))
        return model_gguf_array(r->g, &v, key, GGUF_U8);
    all->charsmap = v->data;
    all->charsmap_bytes = v->bytes;
    return ISOBIT_OK;
}

/* As transformers does it for spiece.model, which T5's files come from: 100 tokens more behind the
 * pieces, where the model has ids for them. */
static size_t count_extra(const reader *r, const text_pieces *all) {
    enum { EXTRA = 100 };
    const gguf_value *a = model_gguf_find(r->g, "general.architecture");
    const int of_t5 = a && (model_gguf_is(a, "t5") || model_gguf_is(a, "t5encoder"));
    return r->kind == UNIGRAM && of_t5 && r->tokens->count - all->count >= EXTRA ? EXTRA : 0;
}

static iso_status read_pieces(const reader *r) {
    model_arena scratch = {0};
    text_pieces all = {.model = r->kind == UNIGRAM ? TEXT_SPM_UNIGRAM : TEXT_SPM_BPE,
                       .count = r->tokens->count};
    const char *at = r->tokens->data;
    const gguf_value *prefix;
    iso_status status = model_gguf_get(r->g, &prefix, KEY("add_space_prefix"), GGUF_BOOL);
    all.pieces = model_alloc(&scratch, all.count, sizeof *all.pieces);
    if (!status && !all.pieces)
        status = no_memory(r);
    for (size_t id = 0; id < all.count && !status; id++) {
        size_t bytes;
        const char *text = model_gguf_string(&at, &bytes);
        status = take_piece(r, id, text, bytes, &all.pieces[id]);
    }
    while (!status && all.count && !all.pieces[all.count - 1].bytes)
        all.count--;
    if (!status)
        status = find_unknown(r, &all);
    if (!status)
        status = r->kind == UNIGRAM ? find_charsmap(r, &all) : check_scores(r, &all);
    if (!status)
        status = text_pipeline_pieces(r->t, r->p, &all, !prefix || prefix->data[0] != 0,
                                      count_extra(r, &all), r->g->file, r->g->error);
    model_arena_free(&scratch);
    return status || r->kind == UNIGRAM ? status : check_bytes(r);
}

/* ------------------------------------------------------------------------------------- around */

/* The token that begins or ends a text, where the file or its kind wants one; `usual`: the id where
 * the file gives none, if that is special. */
static iso_status put_around(const reader *r, const char *flag, int otherwise, const char *key,
                             uint32_t usual, uint32_t *ids, size_t *count) {
    const gguf_value *wanted, *id;
    iso_status status = model_gguf_get(r->g, &wanted, flag, GGUF_BOOL);
    if (!status)
        status = model_gguf_get(r->g, &id, key, GGUF_U32);
    if (status || !(wanted ? wanted->data[0] != 0 : otherwise && (id || usual != MODEL_NO_ID)))
        return status;
    const uint64_t token = id ? model_gguf_number(id->data, 4) : usual;
    const text_vocabulary *v = &r->t->vocabulary[TEXT_SOURCE];
    const int there = token < v->count && v->by_id[token].bytes;
    if (!id && !(there && v->special[token]))
        return missing(r, key);
    if (!there)
        return no_token(r, key, token);
    ids[(*count)++] = (uint32_t)token;
    return ISOBIT_OK;
}

static iso_status read_bpe(const reader *r) {
    text_pipeline *p = r->p;
    iso_status status = read_vocabulary(r);
    if (!status)
        status = read_merges(r);
    p->split = r->cut->split;
    p->model.ignore_merges = r->cut->ignore_merges;
    if (r->cut->nfc)
        p->steps[p->step_count++] = (text_step){.run = text_step_form, .form = TEXT_NFC};
    return status;
}

/* Around a text of BERT: the token of a key; that which other models have there, if the file asks
 * for it; or the one of that name. */
static iso_status put_bert(const reader *r, const char *key, const char *flag, const char *other,
                           const char *name, uint32_t *ids, size_t *count) {
    const gguf_value *wanted;
    iso_status status = model_gguf_get(r->g, &wanted, flag, GGUF_BOOL);
    if (status)
        return status;
    const int by_key = model_gguf_find(r->g, key) != NULL;
    if (by_key || (wanted && wanted->data[0] && model_gguf_find(r->g, other)))
        return put_around(r, KEY("none"), 1, by_key ? key : other, MODEL_NO_ID, ids, count);
    const uint32_t id = text_vocabulary_find(r->p->model.vocabulary, name, strlen(name));
    if (id == MODEL_NO_ID)
        return missing(r, key);
    ids[(*count)++] = id;
    return ISOBIT_OK;
}

/* Whether a vocabulary without capital letters is meant, where the file does not say so. Brackets
 * are around names of tokens. */
static int is_lowercase(const reader *r) {
    const char *at = r->tokens->data;
    for (size_t id = 0; id < r->tokens->count; id++) {
        size_t bytes;
        const char *text = model_gguf_string(&at, &bytes);
        const size_t bar = text_is_bar(text, bytes) ? TEXT_BAR_BYTES : 0;
        if (model_gguf_number(r->types->data + 4 * id, 4) != TEXT_PIECE_NORMAL ||
            (bytes > bar && text[bar] == '['))
            continue;
        for (size_t i = 0; i < bytes; i++)
            if (text[i] >= 'A' && text[i] <= 'Z')
                return 0;
    }
    return 1;
}

static iso_status read_words(const reader *r) {
    static const char key[] = KEY("unknown_token_id");
    const gguf_value *lowercase, *accents, *unknown;
    const model_gguf *g = r->g;
    text_pipeline *p = r->p;
    iso_status status = read_vocabulary(r);
    if (status ||
        (status = model_gguf_get(g, &lowercase, KEY("normalizer.lowercase"), GGUF_BOOL)) ||
        (status = model_gguf_get(g, &accents, KEY("normalizer.strip_accents"), GGUF_BOOL)) ||
        (status = model_gguf_get(g, &unknown, key, GGUF_U32)))
        return status;
    const int lower = lowercase ? lowercase->data[0] != 0 : is_lowercase(r);
    text_pipeline_wordpiece(p, lower, accents ? accents->data[0] != 0 : lower, 1);
    const uint64_t unk = unknown ? model_gguf_number(unknown->data, 4)
                                 : text_vocabulary_find(p->model.vocabulary, "[UNK]", 5);
    const text_vocabulary *v = &r->t->vocabulary[TEXT_SOURCE];
    if (!unknown && unk == MODEL_NO_ID)
        return missing(r, key);
    if (unk >= v->count || !v->by_id[unk].bytes)
        return no_token(r, key, unk);
    p->model.unk = (uint32_t)unk;
    status = put_bert(r, KEY("cls_token_id"), KEY("add_bos_token"), KEY("bos_token_id"), "[CLS]",
                      p->before, &p->before_count);
    return status ? status
                  : put_bert(r, KEY("seperator_token_id"), KEY("add_eos_token"),
                             KEY("eos_token_id"), "[SEP]", p->after, &p->after_count);
}

/* What goes around a text of the other kinds. */
static iso_status read_around(const reader *r) {
    text_pipeline *p = r->p;
    const int unigram = r->kind == UNIGRAM;
    const iso_status status = put_around(
        r, KEY("add_bos_token"), r->kind == PIECES || (r->cut && r->cut->bos), KEY("bos_token_id"),
        r->kind == PIECES ? 1 : MODEL_NO_ID, p->before, &p->before_count);
    return status ? status
                  : put_around(r, KEY("add_eos_token"), unigram, KEY("eos_token_id"),
                               r->kind == PIECES ? 2
                               : unigram         ? 1
                                                 : MODEL_NO_ID,
                               p->after, &p->after_count);
}

iso_status text_pipeline_gguf(iso_tokenizer *t, text_pipeline *p, const char *directory,
                              const char *name, iso_error *error) {
    model_checkpoint checkpoint;
    model_gguf gguf;
    reader r = {.t = t, .p = p, .g = &gguf};
    iso_status status = model_gguf_open(&gguf, &checkpoint, directory, name, GGUF_MAX_BYTES, error);
    if (!status)
        status = find_kind(&r);
    if (!status)
        status = find_arrays(&r);
    if (!status)
        status = r.pieces ? read_pieces(&r) : r.kind == WORDS ? read_words(&r) : read_bpe(&r);
    if (!status && r.kind != WORDS)
        status = read_around(&r);
    if (!status)
        status = model_checkpoint_unchanged(&checkpoint, error);
    model_checkpoint_close(&checkpoint);
    return status;
}
