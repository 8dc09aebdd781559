/* SPDX-License-Identifier: MIT
 *
 * Mutations of JSON as what it is: values are removed, copied to other places or replaced. Bytes
 * that change at random mostly give no JSON, and so test its parser alone, which is not ours. The
 * JSON is what precedes the first byte 0xff; what follows it, and every other time all of it,
 * is for libFuzzer's own mutations.
 */
#include "fuzz.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed);

enum { NODES = 1024 };

/* A value, and where it is: in an object, which has the key, or in an array. */
typedef struct node {
    json_t *parent, *value;
    const char *key;
    size_t index;
} node;

typedef struct tree {
    node nodes[NODES];
    size_t count;
} tree;

static unsigned next(unsigned *state, size_t count) {
    *state = *state * 1664525u + 1013904223u;
    return (unsigned)((*state >> 8) % count);
}

static void collect(tree *t, json_t *parent) {
    const char *key;
    json_t *value;
    size_t index;
    json_object_foreach(parent, key, value) if (t->count < NODES) {
        t->nodes[t->count++] = (node){parent, value, key, 0};
        collect(t, value);
    }
    json_array_foreach(parent, index, value) if (t->count < NODES) {
        t->nodes[t->count++] = (node){parent, value, NULL, index};
        collect(t, value);
    }
}

static void put(const node *at, json_t *value) {
    if (at->key)
        (void)json_object_set_new(at->parent, at->key, value);
    else
        (void)json_array_set_new(at->parent, at->index, value);
}

static json_t *odd_value(unsigned *state) {
    static const char *const words[] = {"",
                                        "a",
                                        "ab",
                                        "\xc3\xa9",
                                        "\xe2\x96\x81",
                                        "\xc4\xa0",
                                        "##b",
                                        "<0xC3>",
                                        "a b",
                                        " ",
                                        "[UNK]",
                                        "NFC",
                                        "NFKC",
                                        "NFD",
                                        "NFKD",
                                        "Lowercase",
                                        "StripAccents",
                                        "Strip",
                                        "Nmt",
                                        "Prepend",
                                        "Replace",
                                        "Precompiled",
                                        "Sequence",
                                        "BertNormalizer",
                                        "BertPreTokenizer",
                                        "ByteLevel",
                                        "Metaspace",
                                        "Whitespace",
                                        "WhitespaceSplit",
                                        "Digits",
                                        "Punctuation",
                                        "Split",
                                        "Isolated",
                                        "Removed",
                                        "MergedWithPrevious",
                                        "TemplateProcessing",
                                        "RobertaProcessing",
                                        "BertProcessing",
                                        "ByteFallback",
                                        "Fuse",
                                        "WordPiece",
                                        "BPE",
                                        "Unigram",
                                        "WordLevel",
                                        "BPEDecoder",
                                        "first",
                                        "never",
                                        "always"};
    static const json_int_t numbers[] = {0,     1,          2,          3, -1,        255,
                                         65536, 2147483647, 4294967295, 7, INT64_MAX, INT64_MIN};
    static const double reals[] = {0, -1, -1e300, 1e300, -0.5, 1e-320};
    switch (next(state, 8)) {
    case 0: return json_null();
    case 1: return json_boolean(next(state, 2));
    case 2: return json_integer(numbers[next(state, sizeof numbers / sizeof *numbers)]);
    case 3: return json_real(reals[next(state, sizeof reals / sizeof *reals)]);
    case 4: return next(state, 2) ? json_array() : json_object();
    default: return json_string(words[next(state, sizeof words / sizeof *words)]);
    }
}

static void mutate(tree *t, unsigned *state) {
    const node *at = &t->nodes[next(state, t->count)], *from = &t->nodes[next(state, t->count)];
    switch (next(state, 6)) {
    case 0:
        if (at->key)
            (void)json_object_del(at->parent, at->key);
        else
            (void)json_array_remove(at->parent, at->index);
        break;
    case 1: put(at, json_deep_copy(from->value)); break;
    case 2: put(at, odd_value(state)); break;
    case 3: /* the same again, or another one beside it */
        if (at->key)
            (void)json_object_set_new(at->parent, from->key ? from->key : "type",
                                      json_deep_copy(at->value));
        else
            (void)json_array_insert_new(at->parent, at->index, json_deep_copy(from->value));
        break;
    case 4: /* into a container */
        if (json_is_array(at->value))
            (void)json_array_append_new(at->value, json_deep_copy(from->value));
        else if (json_is_object(at->value) && from->key)
            (void)json_object_set_new(at->value, from->key, json_deep_copy(from->value));
        else
            put(at, odd_value(state));
        break;
    default: /* another value under the same key, which is of the right type more often */
        for (size_t i = 0; at->key && i < t->count; i++) {
            const node *other = &t->nodes[(i + (size_t)(from - t->nodes)) % t->count];
            if (other != at && other->key && strcmp(other->key, at->key) == 0) {
                put(at, json_deep_copy(other->value));
                break;
            }
        }
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed) {
    unsigned state = seed;
    const uint8_t *end = bytes ? memchr(data, FUZZ_SPLIT, bytes) : NULL;
    const size_t text = end ? (size_t)(end - data) : bytes, rest = bytes - text;
    const unsigned way = next(&state, 4);
    if (way == 0 || (way == 1 && !rest))
        return LLVMFuzzerMutate(data, bytes, most);
    if (way == 1) /* the byte 0xff stays */
        return text + 1 + LLVMFuzzerMutate(data + text + 1, rest - 1, most - text - 1);
    json_t *root = json_loadb((const char *)data, text, JSON_ALLOW_NUL, NULL);
    static tree t;
    t.count = 0;
    if (root)
        collect(&t, root);
    if (t.count)
        mutate(&t, &state);
    char *out = t.count ? json_dumps(root, JSON_COMPACT) : NULL;
    const size_t length = out ? strlen(out) : 0;
    json_decref(root);
    if (!out || length + rest > most) {
        free(out);
        return LLVMFuzzerMutate(data, bytes, most);
    }
    memmove(data + length, data + text, rest);
    memcpy(data, out, length);
    free(out);
    return length + rest;
}
