/* SPDX-License-Identifier: MIT
 *
 * Unigram: of all ways to cut a word into tokens the one with the largest sum of scores, found from
 * left to right as tokenizers does it; of equal sums the first one found counts. A character that
 * is no token scores less than any token; such characters in a row are one unknown token, or the
 * tokens of their bytes.
 */
#include "pipeline.h"

static const double unknown_penalty = 10.0;

void text_unigram_finish(text_model *model, text_vocabulary *v) {
    double least = 0;
    int any = 0;
    text_vocabulary_sort(v);
    for (size_t i = 0; i < v->tokens; i++) {
        const uint32_t id = v->by_token[i].id;
        if (model->only_added[id])
            continue;
        if (!any || model->scores[id] < least)
            least = model->scores[id];
        any = 1;
    }
    model->unk_score = least - unknown_penalty;
}

/* Tokens that begin with the same bytes, in the order of the vocabulary. */
typedef struct range {
    size_t low, high;
} range;

/* Those of them whose byte at `offset` is `byte`; of `low` and `high` all have one there. */
static range narrow(const text_entry *tokens, range r, size_t offset, unsigned char byte) {
    for (int side = 0; side < 2; side++) {
        size_t low = r.low, high = r.high;
        while (low < high) {
            const size_t middle = low + (high - low) / 2;
            const text_entry *entry = &tokens[middle];
            /* A token that ends here comes before all others. */
            const int value =
                entry->bytes == offset ? -1 : (int)(unsigned char)entry->token[offset];
            if (value < byte + side)
                low = middle + 1;
            else
                high = middle;
        }
        *(side ? &r.high : &r.low) = low;
    }
    return r;
}

/* The best way to a place in the word: the last token of it and where that begins. */
typedef struct place {
    double score;
    size_t from;
    uint32_t id;
    int reached;
} place;

static void offer(place *to, double score, size_t from, uint32_t id) {
    if (!to->reached || score > to->score)
        *to = (place){score, from, id, 1};
}

static void find_ways(const text_model *model, place *places, const char *word, size_t bytes) {
    const text_vocabulary *v = model->vocabulary;
    uint32_t code;
    for (size_t at = 0, n; at < bytes; at += n) {
        n = model_utf8(word + at, bytes - at, &code);
        const double score = places[at].score;
        range r = {0, v->tokens};
        int alone = 0; /* the character is a token */
        for (size_t end = at; end < bytes && r.low < r.high;) {
            r = narrow(v->by_token, r, end - at, (unsigned char)word[end]);
            end++;
            if (r.low == r.high || v->by_token[r.low].bytes != end - at)
                continue;
            const uint32_t id = v->by_token[r.low].id;
            if (model->only_added[id])
                continue;
            offer(&places[end], score + model->scores[id], at, id);
            alone |= end == at + n;
        }
        if (!alone)
            offer(&places[at + n], score + model->unk_score, at, model->unk);
    }
}

static size_t count_unknown(const char *text, size_t bytes) {
    size_t count = 0;
    uint32_t code;
    for (size_t at = 0, n; at < bytes; at += n) {
        n = model_utf8(text + at, bytes - at, &code);
        count += !text_is_bar(text + at, n);
    }
    return count;
}

/* The way is known from its end; the places are turned so that each names the next one. */
static void put_way(const text_model *model, text_ids *out, place *places, const char *word,
                    size_t bytes) {
    size_t next = 0;
    uint32_t id = MODEL_NO_ID;
    for (size_t at = bytes, to = 0;; at = next) {
        const place here = places[at];
        next = here.from;
        places[at].from = to;
        places[at].id = id;
        to = at;
        id = here.id;
        if (at == 0)
            break;
    }
    for (size_t at = 0, end; at < bytes; at = end) {
        id = places[at].id;
        end = places[at].from;
        if (id == model->unk) {
            while (end < bytes && places[end].id == model->unk)
                end = places[end].from;
            /* Together they may be a token. */
            const uint32_t whole = text_vocabulary_find(model->vocabulary, word + at, end - at);
            if (whole != MODEL_NO_ID && !model->only_added[whole]) {
                id = whole;
            } else if (text_spells(model, word + at, end - at)) {
                text_put_spelt(model, out, word + at, end - at);
                continue;
            } else {
                out->unknown += count_unknown(word + at, end - at);
            }
        }
        text_put_id(out, id);
    }
}

iso_status text_unigram_encode(const text_model *model, text_ids *out, const char *word,
                               size_t bytes) {
    place few[96];
    model_arena scratch = {0};
    place *places = few;
    if (bytes >= sizeof few / sizeof *few) {
        places = bytes < SIZE_MAX ? model_alloc(&scratch, bytes + 1, sizeof *places) : NULL;
        if (!places)
            return ISOBIT_E_NOMEM;
    }
    memset(places, 0, (bytes + 1) * sizeof *places);
    find_ways(model, places, word, bytes);
    put_way(model, out, places, word, bytes);
    model_arena_free(&scratch);
    return ISOBIT_OK;
}
