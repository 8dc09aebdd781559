/* SPDX-License-Identifier: MIT
 *
 * See spm_file.h. A .spm file is a protobuf message; what is checked here is what the library takes
 * for granted. The field numbers are those of SentencePiece's ModelProto:
 *   1 pieces {1 text, 2 score, 3 type}        2 trainer {3 model type, 40 number, 44 surface and 45
 * text of the unknown piece} 3, 5 normaliser, denormaliser {2 charsmap: u32 bytes of a double
 * array, the array, then strings}
 */
#include "spm_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_NESTED = 32 }; /* the library keeps so many prefixes of a place in the text */

typedef struct span {
    const unsigned char *at, *end;
} span;

/* One field of a message: a number, or bytes. */
typedef struct field {
    uint64_t number, value;
    int type;
    span bytes;
} field;

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

typedef struct reader {
    const char *name;
    model_arena *arena;
    iso_error *error;
} reader;

static iso_status refuse(const reader *r, const char *what) {
    return model_fail(r->error, ISOBIT_E_CONFIG, "%s: %s", r->name, what);
}

static size_t length(span s) { return (size_t)(s.end - s.at); }

/* ------------------------------------------------------------------------------ wire format */

static int read_varint(span *s, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (s->at == s->end || (shift == 63 && *s->at > 1))
            return 0;
        *value |= (uint64_t)(*s->at & 0x7f) << shift;
        if (!(*s->at++ & 0x80))
            return 1;
    }
    return 0;
}

static uint64_t little_endian(const unsigned char *from, size_t bytes) {
    uint64_t value = 0;
    while (bytes--)
        value = value << 8 | from[bytes];
    return value;
}

/* The next field of *s, taken off it; 0 when there is none that makes sense. */
static int read_field(span *s, field *f) {
    uint64_t key;
    if (!read_varint(s, &key) || key >> 3 == 0 || key >> 32 != 0)
        return 0;
    *f = (field){.number = key >> 3, .type = (int)(key & 7)};
    if (f->type == VARINT)
        return read_varint(s, &f->value);
    if (f->type != BYTES && f->type != FIXED32 && f->type != FIXED64)
        return 0;
    uint64_t bytes = f->type == FIXED32 ? 4 : 8;
    if (f->type == BYTES && !read_varint(s, &bytes))
        return 0;
    if (bytes > length(*s))
        return 0;
    f->bytes = (span){s->at, s->at + (size_t)bytes};
    if (f->type != BYTES)
        f->value = little_endian(s->at, (size_t)bytes);
    s->at += (size_t)bytes;
    return 1;
}

static int is_text(span s) {
    uint32_t code;
    while (s.at < s.end) {
        const size_t n = model_utf8((const char *)s.at, length(s), &code);
        if (n == 0 || code == 0)
            return 0;
        s.at += n;
    }
    return 1;
}

/* --------------------------------------------------------------------------------- charsmap */

/* Units of the double array, as Darts-clone packs them. */
static uint32_t unit(const unsigned char *units, size_t i) {
    return (uint32_t)little_endian(units + 4 * i, 4);
}
static size_t offset_of(uint32_t u) { return (size_t)(u >> 10) << ((u & 0x200) >> 6); }
static uint32_t label_of(uint32_t u) { return u & 0x800000ff; }
static int has_leaf(uint32_t u) { return u >> 8 & 1; }

/* A node of the way that the walk is on. */
typedef struct place {
    uint32_t node;
    uint16_t next;   /* the label to look for next */
    uint16_t leaves; /* the most strings on a way from here on */
} place;

enum { UNSEEN = 0, OPEN = 255 }; /* else 1 + the most strings on a way from the node on */

typedef struct walk {
    const unsigned char *units;
    size_t count, string_bytes;
    unsigned char *seen;
    place *way;
    size_t depth;
} walk;

/* Enters a node: NULL, or why it must not be. */
static const char *enter(walk *w, size_t node) {
    const uint32_t u = unit(w->units, node);
    const size_t base = node ^ offset_of(u);
    const int leaf = w->depth > 0 && has_leaf(u); /* the root has none */
    if ((base | 0xff) >= w->count)
        return "the table of normal forms points outside of itself";
    if (leaf && (unit(w->units, base) & 0x7fffffff) >= w->string_bytes)
        return "the table of normal forms names one that is not there";
    w->seen[node] = OPEN;
    w->way[w->depth++] = (place){(uint32_t)node, 1, (uint16_t)leaf};
    return NULL;
}

/* Leaves the last node of the way, and tells the one before it. */
static void leave(walk *w) {
    const place done = w->way[--w->depth];
    w->seen[done.node] = (unsigned char)(1 + done.leaves);
    if (w->depth) {
        place *before = &w->way[w->depth - 1];
        const int own = w->depth > 1 && has_leaf(unit(w->units, before->node));
        if (done.leaves + own > before->leaves)
            before->leaves = (uint16_t)(done.leaves + own);
    }
}

/* Goes on to the next child. Nodes may be shared, but no way may come back to itself. */
static const char *step(walk *w) {
    place *here = &w->way[w->depth - 1];
    const size_t base = here->node ^ offset_of(unit(w->units, here->node));
    if (here->leaves > MAX_NESTED)
        return "too many keys of the table of normal forms begin with each other";
    if (here->next > 255) {
        leave(w);
        return NULL;
    }
    const uint32_t label = here->next++;
    const size_t child = base ^ label;
    if (label_of(unit(w->units, child)) != label)
        return NULL;
    if (w->seen[child] == UNSEEN)
        return enter(w, child);
    if (w->seen[child] == OPEN)
        return "the table of normal forms goes in circles";
    const int own = w->depth > 1 && has_leaf(unit(w->units, here->node));
    if (w->seen[child] - 1 + own > here->leaves)
        here->leaves = (uint16_t)(w->seen[child] - 1 + own);
    return NULL;
}

/*
 * All ways through the double array from its root: each index stays inside, and on none are more
 * strings than the library has room for.
 */
static iso_status check_ways(const reader *r, const unsigned char *units, size_t count,
                             size_t string_bytes) {
    model_arena scratch = {0};
    walk w = {units,
              count,
              string_bytes,
              model_alloc(&scratch, count, 1),
              model_alloc(&scratch, count, sizeof(place)),
              0};
    const char *wrong = NULL;
    if (!w.seen || !w.way) {
        model_arena_free(&scratch);
        return model_fail(r->error, ISOBIT_E_NOMEM, "out of memory for %s", r->name);
    }
    memset(w.seen, UNSEEN, count);
    wrong = enter(&w, 0);
    while (!wrong && w.depth)
        wrong = step(&w);
    model_arena_free(&scratch);
    return wrong ? refuse(r, wrong) : ISOBIT_OK;
}

static iso_status check_charsmap(const reader *r, span map) {
    if (length(map) == 0)
        return ISOBIT_OK;
    const size_t trie_bytes = length(map) < 4 ? 0 : (size_t)little_endian(map.at, 4);
    if (trie_bytes == 0 || trie_bytes % 1024 || trie_bytes > length(map) - 4)
        return refuse(r, "the table of normal forms has a wrong size");
    const unsigned char *units = map.at + 4;
    span strings = {units + trie_bytes, map.end};
    if (length(strings) == 0 || map.end[-1] != 0)
        return refuse(r, "the normal forms do not end");
    for (const unsigned char *end; strings.at < map.end; strings.at = end + 1) {
        end = memchr(strings.at, 0, length(strings));
        if (!is_text((span){strings.at, end}))
            return refuse(r, "a normal form is not valid UTF-8");
    }
    return check_ways(r, units, trie_bytes / 4, (size_t)(map.end - units) - trie_bytes);
}

/* The last table counts, as everywhere in protobuf. */
static iso_status check_normalizer(const reader *r, span message, span *map) {
    field f;
    iso_status status = ISOBIT_OK;
    while (!status && length(message)) {
        if (!read_field(&message, &f))
            return refuse(r, "the normaliser is damaged");
        if (f.number == 2 && f.type == BYTES) {
            status = check_charsmap(r, f.bytes);
            *map = f.bytes;
        }
    }
    return status;
}

iso_status text_charsmap_open(text_charsmap *map, model_arena *arena, const char *name,
                              const char *bytes, size_t count, iso_error *error) {
    const reader r = {name, arena, error};
    const span all = {(const unsigned char *)bytes, (const unsigned char *)bytes + count};
    *map = (text_charsmap){0};
    iso_status status = count ? check_charsmap(&r, all) : ISOBIT_OK;
    if (status || !count)
        return status;
    const size_t trie_bytes = (size_t)little_endian(all.at, 4);
    *map = (text_charsmap){all.at + 4, bytes + 4 + trie_bytes, count - 4 - trie_bytes};
    return ISOBIT_OK;
}

const char *text_charsmap_find(const text_charsmap *map, const char *text, size_t bytes) {
    if (!map->units)
        return NULL;
    size_t node = offset_of(unit(map->units, 0));
    for (size_t i = 0; i < bytes && text[i]; i++) {
        const unsigned char c = (unsigned char)text[i];
        const uint32_t u = unit(map->units, node ^ c);
        if (label_of(u) != c)
            return NULL;
        node = (node ^ c) ^ offset_of(u);
        if (has_leaf(u))
            return map->strings + (unit(map->units, node) & 0x7fffffff);
    }
    return NULL;
}

/* ----------------------------------------------------------------------------------- pieces */

static iso_status read_piece(const reader *r, span message, text_piece *piece, size_t number) {
    static const char *const damaged = "piece %zu is damaged: %s";
    field f;
    float score = 0;
    uint64_t type = TEXT_PIECE_NORMAL;
    span text = {message.at, message.at};
    char what[100];
    const char *why = NULL;
    while (!why && length(message)) {
        if (!read_field(&message, &f)) {
            why = "not protobuf";
        } else if (f.number == 1 && f.type == BYTES) {
            text = f.bytes;
        } else if (f.number == 2 && f.type == FIXED32) {
            const uint32_t bits = (uint32_t)f.value;
            memcpy(&score, &bits, sizeof score);
        } else if (f.number == 3 && f.type == VARINT) {
            type = f.value;
        }
    }
    if (!why && (length(text) == 0 || length(text) > TEXT_MAX_PIECE_BYTES))
        why = "its length";
    if (!why && !is_text(text))
        why = "not valid UTF-8";
    if (!why && !isfinite(score))
        why = "its score is not finite";
    if (!why && (type < TEXT_PIECE_NORMAL || type > TEXT_PIECE_BYTE))
        why = "an unknown type";
    if (why) {
        (void)snprintf(what, sizeof what, damaged, number, why);
        return refuse(r, what);
    }
    *piece = (text_piece){(const char *)text.at, length(text), (text_piece_type)type, score};
    return ISOBIT_OK;
}

static int by_text(const void *a, const void *b) {
    const text_piece *x = a, *y = b;
    const int order = memcmp(x->text, y->text, x->bytes < y->bytes ? x->bytes : y->bytes);
    return order ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* User-defined pieces that begin with each other: not more than the library has room for. */
static iso_status check_nesting(const reader *r, const text_pieces *all) {
    text_piece *sorted = model_alloc(r->arena, all->count, sizeof *sorted);
    size_t stack[MAX_NESTED], depth = 0, count = 0;
    if (!sorted)
        return model_fail(r->error, ISOBIT_E_NOMEM, "out of memory for %s", r->name);
    for (size_t i = 0; i < all->count; i++)
        if (all->pieces[i].type == TEXT_PIECE_USER_DEFINED)
            sorted[count++] = all->pieces[i];
    qsort(sorted, count, sizeof *sorted, by_text);
    for (size_t i = 0; i < count; i++) {
        while (depth && (sorted[stack[depth - 1]].bytes > sorted[i].bytes ||
                         memcmp(sorted[stack[depth - 1]].text, sorted[i].text,
                                sorted[stack[depth - 1]].bytes) != 0))
            depth--;
        if (depth == MAX_NESTED)
            return refuse(r, "too many user-defined pieces begin with each other");
        stack[depth++] = i;
    }
    return ISOBIT_OK;
}

static iso_status check_trainer(const reader *r, text_pieces *all, span message) {
    field f;
    uint64_t model = TEXT_SPM_UNIGRAM;
    while (length(message)) {
        if (!read_field(&message, &f))
            return refuse(r, "the trainer's part is damaged");
        if (f.number == 3 && f.type == VARINT)
            model = f.value;
        if (f.number == 44 && f.type == BYTES && !is_text(f.bytes))
            return refuse(r, "the text of the unknown piece is not valid UTF-8");
        if (f.number == 40 && f.type == VARINT)
            all->unk = f.value;
        if (f.number == 45 && f.type == BYTES) {
            if (!is_text(f.bytes))
                return refuse(r, "the name of the unknown piece is not valid UTF-8");
            all->unk_text = (const char *)f.bytes.at;
            all->unk_bytes = length(f.bytes);
        }
    }
    all->model = (text_spm_model)model;
    if (model != TEXT_SPM_UNIGRAM && model != TEXT_SPM_BPE)
        return model_fail(r->error, ISOBIT_E_UNSUPPORTED,
                          "%s: a SentencePiece model of type %llu; 1 (unigram) and 2 (BPE) are "
                          "supported",
                          r->name, (unsigned long long)model);
    return ISOBIT_OK;
}

iso_status text_spm_check(text_pieces *pieces, model_arena *arena, const char *name,
                          const char *proto, size_t bytes, iso_error *error) {
    const reader r = {name, arena, error};
    const span all = {(const unsigned char *)proto, (const unsigned char *)proto + bytes};
    span map = {all.at, all.at}, other = map;
    field f;
    *pieces = (text_pieces){.model = TEXT_SPM_UNIGRAM, .unk_text = "<unk>", .unk_bytes = 5};
    for (span rest = all; length(rest); pieces->count += f.number == 1 && f.type == BYTES)
        if (!read_field(&rest, &f))
            return refuse(&r, "not a SentencePiece model, or damaged");
    if (pieces->count == 0)
        return refuse(&r, "not a SentencePiece model: it has no pieces");
    pieces->pieces = model_alloc(arena, pieces->count, sizeof *pieces->pieces);
    if (!pieces->pieces)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory for %s", name);
    size_t at = 0;
    iso_status status = ISOBIT_OK;
    for (span rest = all; !status && length(rest) && read_field(&rest, &f);) {
        if (f.type != BYTES)
            continue;
        if (f.number == 1) {
            status = read_piece(&r, f.bytes, &pieces->pieces[at], at);
            at++;
        } else if (f.number == 2) {
            status = check_trainer(&r, pieces, f.bytes);
        } else if (f.number == 3 || f.number == 5) {
            status = check_normalizer(&r, f.bytes, f.number == 3 ? &map : &other);
        }
    }
    pieces->charsmap = (const char *)map.at;
    pieces->charsmap_bytes = length(map);
    return status ? status : check_nesting(&r, pieces);
}
