/* SPDX-License-Identifier: MIT
 *
 * Text into words. The regular expressions of the families are few and known; each is written out
 * here as a scanner. Letters are \p{L}, numbers \p{N}, spaces \s.
 */
#include "pipeline.h"

typedef struct character {
    uint32_t code;
    size_t bytes; /* 0: the end */
} character;

static character at(const char *text, size_t bytes, size_t offset) {
    character c = {0, 0};
    if (offset < bytes)
        c.bytes = model_utf8(text + offset, bytes - offset, &c.code);
    return c;
}

static int is_newline(uint32_t c) { return c == '\r' || c == '\n'; }

/* What is no space, letter or number. */
static int is_symbol(uint32_t c) {
    return !text_is_space(c) && !text_is_letter(c) && !text_is_number(c);
}

/* The end of what `is` holds for, from `offset` on, at most `most` characters. */
static size_t run(const char *text, size_t bytes, size_t offset, int (*is)(uint32_t), size_t most) {
    for (character c; most-- && (c = at(text, bytes, offset)).bytes && is(c.code);)
        offset += c.bytes;
    return offset;
}

/* 's, 't, 're, 've, 'm, 'll, 'd: its length, or 0. The long s folds to s. */
static size_t contraction(const char *text, size_t bytes, int any_case) {
    static const char *const endings[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    if (bytes < 2 || text[0] != '\'')
        return 0;
    if (any_case && bytes >= 3 && text[1] == '\xc5' && text[2] == '\xbf')
        return 3;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t n = 0;
        while (endings[i][n] && n + 1 < bytes &&
               (text[n + 1] == endings[i][n] || (any_case && text[n + 1] == endings[i][n] - 32)))
            n++;
        if (!endings[i][n])
            return n + 1;
    }
    return 0;
}

/* \s+(?!\S)|\s+ : white space but for its last character, if something follows. */
static size_t spaces(const char *text, size_t bytes) {
    size_t end = 0, last = 0;
    for (character c; (c = at(text, bytes, end)).bytes && text_is_space(c.code); end += c.bytes)
        last = end;
    return end == bytes || last == 0 ? end : last;
}

/* 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
size_t text_split_gpt2(const char *text, size_t bytes, int *word) {
    static int (*const kinds[])(uint32_t) = {text_is_letter, text_is_number, is_symbol};
    const size_t end = contraction(text, bytes, 0), skip = text[0] == ' ';
    *word = 1;
    for (int i = 0; i < 3 && !end; i++) {
        const size_t stop = run(text, bytes, skip, kinds[i], SIZE_MAX);
        if (stop > skip)
            return stop;
    }
    return end ? end : spaces(text, bytes);
}

/*
 * (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[\r\n]*|
 * \s*[\r\n]+|\s+(?!\S)|\s+
 */
static size_t split_cl100k(const char *text, size_t bytes, size_t digits) {
    const character first = at(text, bytes, 0);
    size_t end = contraction(text, bytes, 1), newline = 0;
    if (end)
        return end;
    size_t skip = is_newline(first.code) || text_is_letter(first.code) || text_is_number(first.code)
                      ? 0
                      : first.bytes;
    end = run(text, bytes, skip, text_is_letter, SIZE_MAX);
    if (end > skip)
        return end;
    if ((end = run(text, bytes, 0, text_is_number, digits)) > 0)
        return end;
    skip = text[0] == ' ';
    end = run(text, bytes, skip, is_symbol, SIZE_MAX);
    if (end > skip)
        return run(text, bytes, end, is_newline, SIZE_MAX);
    end = 0;
    for (character c; (c = at(text, bytes, end)).bytes && text_is_space(c.code);) {
        end += c.bytes;
        if (is_newline(c.code))
            newline = end;
    }
    return newline ? newline : spaces(text, bytes);
}

size_t text_split_llama3(const char *text, size_t bytes, int *word) {
    *word = 1;
    return split_cl100k(text, bytes, 3);
}

size_t text_split_qwen2(const char *text, size_t bytes, int *word) {
    *word = 1;
    return split_cl100k(text, bytes, 1);
}

/* White space is dropped, punctuation stands alone. */
static int is_bert_word(uint32_t c) { return !text_is_space(c) && !text_is_bert_punctuation(c); }

size_t text_split_bert(const char *text, size_t bytes, int *word) {
    const character first = at(text, bytes, 0);
    *word = !text_is_space(first.code);
    const size_t end = run(text, bytes, 0, is_bert_word, SIZE_MAX);
    return end ? end : first.bytes;
}

size_t text_split_none(const char *text, size_t bytes, int *word) {
    (void)text;
    *word = 1;
    return bytes;
}

text_splitter *text_splitter_of(const char *pattern) {
    static const struct {
        const char *pattern;
        text_splitter *split;
    } known[] = {
        {"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
         text_split_gpt2},
        {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
         " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
         text_split_llama3},
        {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"
         " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
         text_split_qwen2},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(pattern, known[i].pattern) == 0)
            return known[i].split;
    return NULL;
}
