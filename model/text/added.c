/* SPDX-License-Identifier: MIT
 *
 * Added tokens: the longest one wherever one begins, from left to right.
 */
#include "pipeline.h"

#include <stdlib.h>

static int by_token(const void *a, const void *b) {
    const text_added *x = a, *y = b;
    const int order = memcmp(x->token, y->token, x->bytes < y->bytes ? x->bytes : y->bytes);
    return order ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

void text_added_sort(text_added_set *set) {
    size_t at = 0, kept = 0;
    for (size_t i = 0; i < set->count; i++)
        if (set->tokens[i].bytes)
            set->tokens[kept++] = set->tokens[i];
    set->count = kept;
    if (set->count)
        qsort(set->tokens, set->count, sizeof *set->tokens, by_token);
    for (size_t byte = 0; byte < 256; byte++) {
        set->first[byte] = at;
        while (at < set->count && (unsigned char)set->tokens[at].token[0] == byte)
            at++;
    }
    set->first[256] = at;
}

/* The longest token that the text begins with: it is the last in the order that does. */
static const text_added *find(const text_added_set *set, int normalized, const char *text,
                              size_t bytes) {
    const unsigned char byte = (unsigned char)text[0];
    for (size_t i = set->first[byte + 1]; i > set->first[byte]; i--) {
        const text_added *token = &set->tokens[i - 1];
        if (token->normalized == normalized && token->bytes <= bytes &&
            memcmp(token->token, text, token->bytes) == 0)
            return token;
    }
    return NULL;
}

/* The code point that ends at `at`. */
static uint32_t before(const char *text, size_t at, size_t *bytes) {
    uint32_t code = 0;
    size_t begin = at - 1;
    while (begin > 0 && ((unsigned char)text[begin] & 0xc0) == 0x80)
        begin--;
    *bytes = at - begin;
    (void)model_utf8(text + begin, *bytes, &code);
    return code;
}

static int stands_alone(const char *text, size_t bytes, size_t begin, size_t end) {
    size_t n;
    uint32_t code = 0;
    if (begin > 0 && text_is_word(before(text, begin, &n)))
        return 0;
    return end == bytes || !model_utf8(text + end, bytes - end, &code) || !text_is_word(code);
}

iso_status text_added_split(const text_added_set *set, int normalized, const char *text,
                            size_t bytes, text_part *part, void *to) {
    size_t first = 0;
    uint32_t code;
    iso_status status = ISOBIT_OK;
    for (size_t at = 0; at < bytes && !status;) {
        const text_added *token = find(set, normalized, text + at, bytes - at);
        if (!token) {
            at++;
            continue;
        }
        size_t begin = at, end = at + token->bytes, n;
        at = end;
        if (token->single_word && !stands_alone(text, bytes, begin, end))
            continue;
        while (token->lstrip && begin > first && text_is_space(before(text, begin, &n)))
            begin -= n;
        while (token->rstrip && end < bytes && (n = model_utf8(text + end, bytes - end, &code)) &&
               text_is_space(code))
            end += n;
        if (begin > first)
            status = part(to, NULL, text + first, begin - first);
        if (!status)
            status = part(to, token, text + begin, end - begin);
        first = at = end;
    }
    if (!status && first < bytes)
        status = part(to, NULL, text + first, bytes - first);
    return status;
}
