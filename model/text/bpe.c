/* SPDX-License-Identifier: MIT
 *
 * BPE: each byte of a word, or each character, is a token at first; then the neighbours whose pair
 * has the lowest rank merge, the leftmost first, until no pair is known. A heap of pairs makes that
 * n log n for words of any length.
 */
#include "pipeline.h"

#include <stdlib.h>

/* Printable letters of Latin-1 stand for themselves, other bytes for U+0100 and on, in order. */
uint32_t text_byte_letter(unsigned char byte) {
    if ((byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae)
        return byte;
    return byte <= ' '    ? 0x100u + byte        /* 0 .. 32 */
           : byte <= 0xa0 ? 0x121u + byte - 0x7f /* 127 .. 160 */
                          : 0x143u;              /* 173 */
}

int text_letter_byte(uint32_t code) {
    if (code >= 0x100 && code <= 0x120)
        return (int)(code - 0x100);
    if (code >= 0x121 && code <= 0x142)
        return (int)(code - 0x121 + 0x7f);
    if (code == 0x143)
        return 0xad;
    return code < 0x100 && text_byte_letter((unsigned char)code) == code ? (int)code : -1;
}

/* ------------------------------------------------------------------------------------ merges */

static int by_pair(const void *a, const void *b) {
    const text_merge *x = a, *y = b;
    if (x->left != y->left)
        return x->left < y->left ? -1 : 1;
    if (x->right != y->right)
        return x->right < y->right ? -1 : 1;
    return 0;
}

static int by_pair_and_rank(const void *a, const void *b) {
    const text_merge *x = a, *y = b;
    const int order = by_pair(a, b);
    return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

/* The slot with the pair, or the empty one for it; NULL: there is neither. */
static uint32_t *find_slot(const text_model *model, uint32_t left, uint32_t right) {
    const uint64_t hash = text_mix((uint64_t)left << 32 | right);
    for (size_t step = 0; step < TEXT_WINDOW; step++) {
        uint32_t *slot = text_index_slot(&model->index, hash, step);
        if (!*slot ||
            (model->merges[*slot - 1].left == left && model->merges[*slot - 1].right == right))
            return slot;
    }
    return NULL;
}

/* Of the same pair the last one counts. */
static int index_merges(text_model *model) {
    for (size_t i = 0; i < model->merge_count; i++) {
        uint32_t *slot = find_slot(model, model->merges[i].left, model->merges[i].right);
        if (!slot)
            return 0;
        *slot = (uint32_t)i + 1;
    }
    return 1;
}

void text_bpe_finish(text_model *model, model_arena *arena) {
    text_index_begin(&model->index, arena, model->merge_count);
    if (model->index.slots && index_merges(model))
        return;
    model->index.slots = NULL;
    if (model->merge_count)
        qsort(model->merges, model->merge_count, sizeof *model->merges, by_pair_and_rank);
    size_t kept = 0;
    for (size_t i = 0; i < model->merge_count; i++)
        if (i + 1 == model->merge_count || by_pair(&model->merges[i], &model->merges[i + 1]) != 0)
            model->merges[kept++] = model->merges[i];
    model->merge_count = kept;
}

static const text_merge *find(const text_model *model, uint32_t left, uint32_t right) {
    const text_merge key = {left, right, 0, 0};
    if (model->index.slots) {
        const uint32_t *slot = find_slot(model, left, right);
        return slot && *slot ? &model->merges[*slot - 1] : NULL;
    }
    return model->merge_count
               ? bsearch(&key, model->merges, model->merge_count, sizeof key, by_pair)
               : NULL;
}

/* -------------------------------------------------------------------------------------- heap */

/* A token of the word, linked with its neighbours; a merged one has gone. */
typedef struct symbol {
    uint32_t id;
    uint32_t previous, next; /* NO_SYMBOL at the ends */
    int gone;
} symbol;

#define NO_SYMBOL UINT32_MAX

typedef struct candidate {
    uint32_t rank, position, made;
} candidate;

typedef struct heap {
    candidate *items; /* the smallest first */
    size_t count;
} heap;

static int is_before(candidate a, candidate b) {
    return a.rank != b.rank ? a.rank < b.rank : a.position < b.position;
}

static void push(heap *h, candidate c) {
    size_t i = h->count++;
    for (; i > 0 && is_before(c, h->items[(i - 1) / 2]); i = (i - 1) / 2)
        h->items[i] = h->items[(i - 1) / 2];
    h->items[i] = c;
}

static candidate pop(heap *h) {
    const candidate first = h->items[0], last = h->items[--h->count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < h->count; i = child) {
        if (child + 1 < h->count && is_before(h->items[child + 1], h->items[child]))
            child++;
        if (!is_before(h->items[child], last))
            break;
        h->items[i] = h->items[child];
    }
    h->items[i] = last;
    return first;
}

static void offer(const text_model *model, heap *h, const symbol *symbols, uint32_t left) {
    if (left == NO_SYMBOL || symbols[left].next == NO_SYMBOL)
        return;
    const text_merge *merge = find(model, symbols[left].id, symbols[symbols[left].next].id);
    if (merge)
        push(h, (candidate){merge->rank, left, merge->made});
}

static void merge_all(const text_model *model, symbol *symbols, size_t count, heap *h) {
    for (size_t i = 0; i + 1 < count; i++)
        offer(model, h, symbols, (uint32_t)i);
    while (h->count) {
        const candidate c = pop(h);
        symbol *left = &symbols[c.position];
        if (left->gone || left->next == NO_SYMBOL)
            continue;
        symbol *right = &symbols[left->next];
        const text_merge *merge = find(model, left->id, right->id);
        if (!merge || merge->made != c.made)
            continue; /* one of the two has merged since */
        left->id = merge->made;
        left->next = right->next;
        right->gone = 1;
        if (right->next != NO_SYMBOL)
            symbols[right->next].previous = c.position;
        offer(model, h, symbols, left->previous);
        offer(model, h, symbols, c.position);
    }
}

/* ------------------------------------------------------------------------------------- words */

/* A word of bytes that is a token as it stands; 1: no memory. */
static int find_word(const text_model *model, const char *word, size_t bytes, uint32_t *id) {
    text_buffer letters = {0};
    for (size_t i = 0; i < bytes; i++)
        text_buffer_code(&letters, text_byte_letter((unsigned char)word[i]));
    const int failed = letters.failed;
    if (!failed)
        *id = text_vocabulary_find(model->vocabulary, letters.text, letters.count);
    text_buffer_free(&letters);
    return failed;
}

static size_t add_symbol(symbol *symbols, size_t count, uint32_t id) {
    symbols[count] = (symbol){id, count ? (uint32_t)count - 1 : NO_SYMBOL, (uint32_t)count + 1, 0};
    return count + 1;
}

/* The tokens of single bytes; those that the vocabulary lacks are the unknown one, or left out. */
static size_t first_symbols(const text_model *model, text_ids *out, symbol *symbols,
                            const char *word, size_t bytes) {
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++) {
        const int begins = ((unsigned char)word[i] & 0xc0) != 0x80;
        uint32_t id = model->bytes[(unsigned char)word[i]];
        if (id == MODEL_NO_ID) {
            id = model->unk;
            *(id == MODEL_NO_ID ? &out->dropped : &out->unknown) += (size_t)begins;
        }
        if (id == MODEL_NO_ID)
            continue;
        count = add_symbol(symbols, count, id);
    }
    if (count)
        symbols[count - 1].next = NO_SYMBOL;
    return count;
}

static uint32_t find_own(const text_model *model, const char *word, size_t bytes) {
    const uint32_t id = text_vocabulary_find(model->vocabulary, word, bytes);
    return id != MODEL_NO_ID && model->only_added[id] ? MODEL_NO_ID : id;
}

/*
 * The tokens of characters, of the bytes of a character, or the unknown one. That waits for a known
 * character, or for a second unknown one if it does not take it in: bytes go before it, as in
 * tokenizers.
 */
static size_t first_characters(const text_model *model, text_ids *out, symbol *symbols,
                               const char *word, size_t bytes) {
    size_t count = 0;
    uint32_t code;
    int waits = 0;
    for (size_t at = 0, n; at < bytes; at += n) {
        n = model_utf8(word + at, bytes - at, &code);
        const uint32_t id = find_own(model, word + at, n);
        if (id == MODEL_NO_ID && text_spells(model, word + at, n)) {
            for (size_t i = 0; i < n; i++)
                count = add_symbol(symbols, count, model->spelt[(unsigned char)word[at + i]]);
            continue;
        }
        if (id == MODEL_NO_ID && model->unk == MODEL_NO_ID) {
            out->dropped += !text_is_bar(word + at, n);
            continue;
        }
        if (waits && (id != MODEL_NO_ID || !model->fuse_unk))
            count = add_symbol(symbols, count, model->unk);
        waits = id == MODEL_NO_ID;
        if (waits)
            out->unknown += !text_is_bar(word + at, n);
        else
            count = add_symbol(symbols, count, id);
    }
    if (waits)
        count = add_symbol(symbols, count, model->unk);
    if (count)
        symbols[count - 1].next = NO_SYMBOL;
    return count;
}

typedef size_t first(const text_model *model, text_ids *out, symbol *symbols, const char *word,
                     size_t bytes);

static iso_status put_merged(const text_model *model, text_ids *out, const char *word, size_t bytes,
                             first *symbols_of) {
    model_arena scratch = {0};
    symbol few[64];
    candidate few_items[192];
    symbol *symbols = few;
    heap h = {few_items, 0};
    if (bytes > 64) { /* a merge takes one pair away and may offer two */
        symbols = bytes < UINT32_MAX / 4 ? model_alloc(&scratch, bytes, sizeof *symbols) : NULL;
        h.items = symbols ? model_alloc3(&scratch, bytes, 3, 1, sizeof *h.items) : NULL;
        if (!h.items) {
            model_arena_free(&scratch);
            return ISOBIT_E_NOMEM;
        }
    }
    const size_t count = symbols_of(model, out, symbols, word, bytes);
    merge_all(model, symbols, count, &h);
    for (size_t i = 0; i < count; i++)
        if (!symbols[i].gone)
            text_put_id(out, symbols[i].id);
    model_arena_free(&scratch);
    return ISOBIT_OK;
}

iso_status text_bpe_encode(const text_model *model, text_ids *out, const char *word, size_t bytes) {
    uint32_t whole = MODEL_NO_ID;
    if (model->ignore_merges && find_word(model, word, bytes, &whole))
        return ISOBIT_E_NOMEM;
    if (whole != MODEL_NO_ID && !model->only_added[whole]) {
        text_put_id(out, whole);
        return ISOBIT_OK;
    }
    return put_merged(model, out, word, bytes, first_symbols);
}

iso_status text_bpe_encode_characters(const text_model *model, text_ids *out, const char *word,
                                      size_t bytes) {
    const uint32_t whole = model->ignore_merges ? find_own(model, word, bytes) : MODEL_NO_ID;
    if (whole != MODEL_NO_ID) {
        text_put_id(out, whole);
        return ISOBIT_OK;
    }
    return put_merged(model, out, word, bytes, first_characters);
}

/* ------------------------------------------------------------------------------------ decode */

/*
 * Appends bytes of which some may be no UTF-8: as much of a character as could begin one is one
 * U+FFFD, as the Unicode standard recommends. *complete: what is to come cannot mend it.
 */
static size_t wrong_bytes(const unsigned char *s, size_t bytes, int *complete) {
    const unsigned char c = s[0];
    const unsigned char low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    const unsigned char high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    const size_t whole = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    *complete = c < 0xc2 || c > 0xf4 || (bytes > 1 && (s[1] < low || s[1] > high));
    if (*complete || bytes == 1)
        return 1;
    size_t n = 2;
    while (n < whole && n < bytes && (s[n] & 0xc0) == 0x80)
        n++;
    *complete = n < bytes;
    return n;
}

static void put_repaired(text_buffer *out, const char *text, size_t bytes) {
    uint32_t code;
    int complete;
    for (size_t at = 0, n; at < bytes; at += n) {
        if ((n = model_utf8(text + at, bytes - at, &code))) {
            text_buffer_put(out, text + at, n);
            continue;
        }
        n = wrong_bytes((const unsigned char *)text + at, bytes - at, &complete);
        if (complete || !out->partial)
            text_buffer_put(out, "\xef\xbf\xbd", 3);
    }
}

/* The bytes of a token; one that is not made of byte letters is text. */
static void put_token(text_buffer *out, const char *token, size_t bytes) {
    const size_t before = out->count;
    uint32_t code = 0;
    for (size_t at = 0; at < bytes;) {
        at += model_utf8(token + at, bytes - at, &code);
        const int byte = text_letter_byte(code);
        if (byte < 0) {
            out->count = before;
            text_buffer_put(out, token, bytes);
            return;
        }
        const char c = (char)byte;
        text_buffer_put(out, &c, 1);
    }
}

void text_decode_bytes(const text_pipeline *p, const text_vocabulary *v, text_buffer *out,
                       const uint32_t *ids, size_t count) {
    text_buffer raw = {0};
    (void)p;
    for (size_t i = 0; i < count; i++)
        if (!v->special[ids[i]])
            put_token(&raw, v->by_id[ids[i]].token, v->by_id[ids[i]].bytes);
    put_repaired(out, raw.text, raw.count);
    out->failed |= raw.failed;
    text_buffer_free(&raw);
}
