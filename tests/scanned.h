/* SPDX-License-Identifier: MIT
 *
 * What model/text/scan.c reads of tokenizer.json, against the tree that jansson makes of all of it.
 */
#ifndef ISOBIT_TESTS_SCANNED_H
#define ISOBIT_TESTS_SCANNED_H

#include "text/scan.h"

#include <stdlib.h>

static int scanned_ids(const text_scanned *s, const json_t *object) {
    const char *key, *text = s->text;
    json_t *value;
    size_t i = 0;
    if (!json_is_object(object) || json_object_size(object) != s->count)
        return 0;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        if (strlen(key) != s->tokens[i].bytes || strcmp(key, text) != 0 || !json_is_number(value) ||
            json_number_value(value) != (double)s->tokens[i].id)
            return 0;
        text += s->tokens[i++].bytes + 1;
    }
    return 1;
}

static int same_bits(double x, double y) {
    uint64_t a, b;
    memcpy(&a, &x, sizeof a);
    memcpy(&b, &y, sizeof b);
    return a == b;
}

static int scanned_scores(const text_scanned *s, const json_t *list) {
    const char *text = s->text;
    if (!json_is_array(list) || json_array_size(list) != s->count)
        return 0;
    for (size_t i = 0; i < s->count; i++) {
        const json_t *one = json_array_get(list, i);
        const char *token = json_string_value(json_array_get(one, 0));
        const double score = json_number_value(json_array_get(one, 1));
        if (json_array_size(one) != 2 || !token || strcmp(token, text) != 0 ||
            strlen(token) != s->tokens[i].bytes || !json_is_number(json_array_get(one, 1)) ||
            !same_bits(score, s->tokens[i].score) || s->tokens[i].id != i)
            return 0;
        text += s->tokens[i].bytes + 1;
    }
    return 1;
}

static int scanned_merges(const text_scanned *s, const json_t *list) {
    const char *text = s->merges_text;
    if (!text)
        return !list;
    if (!json_is_array(list) || json_array_size(list) != s->merge_count)
        return 0;
    for (size_t i = 0; i < s->merge_count; i++) {
        const json_t *one = json_array_get(list, i);
        const text_scanned_merge merge = s->merges[i];
        const char *left = json_string_value(json_is_array(one) ? json_array_get(one, 0) : one);
        const char *right = json_string_value(json_array_get(one, 1));
        size_t left_bytes = left ? strlen(left) : 0;
        if (json_is_string(one)) {
            right = strchr(left, ' ');
            if (!right)
                return 0;
            left_bytes = (size_t)(right++ - left);
        } else if (json_array_size(one) != 2) {
            return 0;
        }
        if (!left || !right || left_bytes != merge.left || strlen(right) != merge.right ||
            memcmp(left, text, left_bytes) != 0 ||
            memcmp(right, text + left_bytes, merge.right) != 0)
            return 0;
        text += left_bytes + merge.right;
    }
    return 1;
}

/* 1: it was read; 0: it was left to jansson; -1: it was read, and should not have been so. */
static inline int scanned_compare(const char *text, size_t bytes) {
    text_scanned s;
    text_vocabulary v = {0};
    model_arena arena = {0};
    json_error_t error;
    int result = 0;
    if (!text_scan_tokenizer(&s, text, bytes))
        return 0;
    if (text_scanned_begin(&s, &v, &arena, 0)) {
        json_t *root =
            json_loadb(text, bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &error);
        json_t *model = json_object_get(root, "model");
        const json_t *vocabulary = json_object_get(model, "vocab");
        int same = (s.is_list ? scanned_scores(&s, vocabulary) : scanned_ids(&s, vocabulary)) &&
                   scanned_merges(&s, s.merges_text ? json_object_get(model, "merges") : NULL);
        /* And the rest of it. */
        json_object_set_new(model, "vocab", s.is_list ? json_array() : json_object());
        if (s.merges_text)
            json_object_set_new(model, "merges", json_array());
        same = same && json_equal(root, s.rest);
        result = same ? 1 : -1;
        json_decref(root);
    }
    text_scanned_free(&s);
    model_arena_free(&arena);
    return result;
}

#endif
