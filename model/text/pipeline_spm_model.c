/* SPDX-License-Identifier: MIT
 *
 * See pipeline_spm.h: what makes tokens of a word.
 */
#include "pipeline_spm.h"

#include <stdlib.h>

/* A way to make a piece of two others; pieces with high scores are made first. */
typedef struct pair {
    float score;
    uint32_t left_length, right_length; /* code points */
    text_merge merge;
} pair;

static int by_score(const void *a, const void *b) {
    const pair *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    if (x->left_length != y->left_length)
        return x->left_length > y->left_length ? -1 : 1;
    if (x->right_length != y->right_length)
        return x->right_length > y->right_length ? -1 : 1;
    return (x->merge.made > y->merge.made) - (x->merge.made < y->merge.made);
}

/* Pairs that make token `id`; they are counted only, while `pairs` is NULL. */
static size_t pairs_of(const text_spm_reader *r, uint32_t id, pair *pairs) {
    const text_vocabulary *v = &r->t->vocabulary[TEXT_SOURCE];
    const text_entry *entry = &v->by_id[id];
    size_t count = 0, length = 0, at = 0;
    uint32_t code;
    for (size_t i = 0; i < entry->bytes; i++)
        length += ((unsigned char)entry->token[i] & 0xc0) != 0x80;
    for (size_t left = 1; left < length; left++) {
        at += model_utf8(entry->token + at, entry->bytes - at, &code);
        const uint32_t a = text_vocabulary_find(v, entry->token, at);
        const uint32_t b = a < r->count
                               ? text_vocabulary_find(v, entry->token + at, entry->bytes - at)
                               : MODEL_NO_ID;
        if (b >= r->count)
            continue;
        if (pairs)
            pairs[count] = (pair){r->scores[id],
                                  (uint32_t)left,
                                  (uint32_t)(length - left),
                                  {.left = a, .right = b, .made = id}};
        count++;
    }
    return count;
}

static iso_status make_merges(text_spm_reader *r) {
    text_model *m = &r->p->model;
    size_t count = 0, used = 0;
    for (size_t id = 0; id < r->count; id++)
        count += pairs_of(r, (uint32_t)id, NULL);
    if (count > 64 * r->count + 65536)
        return model_fail(r->error, ISOBIT_E_CONFIG, "%s: %zu pairs of pieces make another piece",
                          r->family->file, count);
    model_arena scratch = {0};
    pair *pairs = model_alloc(&scratch, count, sizeof *pairs);
    iso_status status =
        pairs ? text_pipeline_bpe(r->t, r->p, count, r->error) : text_spm_no_memory(r);
    if (!status) {
        for (size_t id = 0; id < r->count; id++)
            used += pairs_of(r, (uint32_t)id, pairs + used);
        if (count)
            qsort(pairs, count, sizeof *pairs, by_score);
        for (size_t i = 0; i < count; i++) {
            m->merges[i] = pairs[i].merge;
            m->merges[i].rank = (uint32_t)i;
        }
        m->merge_count = count;
        text_bpe_finish(m, &r->t->arena);
        m->encode = text_bpe_encode_characters;
        m->fuse_unk = 1;
    }
    model_arena_free(&scratch);
    return status;
}

static iso_status make_unigram(text_spm_reader *r) {
    text_model *m = &r->p->model;
    double *scores = model_alloc(&r->t->arena, r->t->vocabulary[TEXT_SOURCE].count, sizeof *scores);
    if (!scores)
        return text_spm_no_memory(r);
    for (size_t i = 0; i < r->count; i++)
        scores[i] = (double)r->scores[i];
    m->scores = scores;
    m->encode = text_unigram_encode;
    text_unigram_finish(m, &r->t->vocabulary[TEXT_SOURCE]);
    return ISOBIT_OK;
}

iso_status text_spm_make_model(text_spm_reader *r, size_t offset) {
    text_model *m = &r->p->model;
    const int bpe = r->pieces.model == TEXT_SPM_BPE;
    const uint64_t number = r->family->layout == FAIRSEQ   ? 3
                            : r->family->layout == LLAMA   ? 0
                            : r->pieces.unk >= r->count    ? r->count
                            : r->family->layout == PEGASUS ? r->pieces.unk + offset
                                                           : r->pieces.unk;
    m->unk = bpe ? text_vocabulary_find(m->vocabulary, r->pieces.unk_text, r->pieces.unk_bytes)
             : number < r->count ? (uint32_t)number
                                 : MODEL_NO_ID;
    if (m->unk >= r->count)
        return model_fail(r->error, ISOBIT_E_MISSING, "%s: the unknown piece is not in it",
                          r->family->file);
    if (r->family->layout == LLAMA)
        text_spelt_find(m);
    return bpe ? make_merges(r) : make_unigram(r);
}
