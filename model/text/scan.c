/* SPDX-License-Identifier: MIT
 *
 * See scan.h. What is not vocabulary or merges is skipped here, not checked: it is put together,
 * and jansson checks it. A value that is whole is one wherever it stands, so that the file is
 * valid if the rest is, with an empty value in its place.
 */
#include "scan.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>

typedef struct scan {
    text_scanned *to;
    const char *at, *end;
    char *text; /* where strings go; they are never longer than in the file */
    char *rest; /* what was not taken, up to `kept` */
    const char *kept;
    size_t rest_bytes;
    char point; /* of the locale, which strtod expects */
} scan;

static int is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/* The next character that is no white space; NUL at the end. */
static char next(scan *s) {
    while (s->at < s->end && is_space(*s->at)) {
        s->at++;
        while (s->end - s->at >= 4 && memcmp(s->at, "    ", 4) == 0) /* files are indented */
            s->at += 4;
    }
    return s->at < s->end ? *s->at : 0;
}

static int take(scan *s, char c) {
    if (next(s) != c || s->at == s->end)
        return 0;
    s->at++;
    return 1;
}

/* ----------------------------------------------------------------------------------- strings */

static int hex4(scan *s, uint32_t *code) {
    *code = 0;
    if (s->end - s->at < 4)
        return 0;
    for (int i = 0; i < 4; i++) {
        const char c = *s->at++;
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0)
            return 0;
        *code = *code << 4 | (uint32_t)digit;
    }
    return 1;
}

static char *put_code(char *to, uint32_t code) {
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 63));
    } else if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 63));
        *to++ = (char)(0x80 | (code & 63));
    } else {
        *to++ = (char)(0xf0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 63));
        *to++ = (char)(0x80 | (code >> 6 & 63));
        *to++ = (char)(0x80 | (code & 63));
    }
    return to;
}

/* After the backslash; NULL: no escape, or one of NUL or of half a character. */
static char *escape(scan *s, char *to) {
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    uint32_t code, low;
    if (s->at == s->end || !*s->at)
        return NULL;
    const char c = *s->at++;
    const char *name = strchr(names, c);
    if (name) {
        *to++ = values[name - names];
        return to;
    }
    if (c != 'u' || !hex4(s, &code) || code == 0 || (code >= 0xdc00 && code < 0xe000))
        return NULL;
    if (code >= 0xd800 && code < 0xdc00) {
        if (s->end - s->at < 6 || s->at[0] != '\\' || s->at[1] != 'u')
            return NULL;
        s->at += 2;
        if (!hex4(s, &low) || low < 0xdc00 || low >= 0xe000)
            return NULL;
        code = 0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00));
    }
    return put_code(to, code);
}

/* A string to s->text, without a NUL. */
static int string(scan *s, uint32_t *bytes) {
    char *to = s->text;
    uint32_t code;
    if (!take(s, '"'))
        return 0;
    while (s->at < s->end && *s->at != '"') {
        const unsigned char c = (unsigned char)*s->at;
        size_t n;
        if (c >= 0x20 && c < 0x80 && c != '\\') {
            *to++ = (char)c;
            s->at++;
        } else if (c == '\\') {
            s->at++;
            to = escape(s, to);
            if (!to)
                return 0;
        } else if (c >= 0x80 && (n = model_utf8(s->at, (size_t)(s->end - s->at), &code))) {
            memcpy(to, s->at, n);
            to += n;
            s->at += n;
        } else {
            return 0;
        }
    }
    *bytes = (uint32_t)(to - s->text);
    s->text = to;
    return take(s, '"');
}

/* ----------------------------------------------------------------------------------- numbers */

static size_t digits(scan *s) {
    const char *from = s->at;
    while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
        s->at++;
    return (size_t)(s->at - from);
}

/* What comes next is another token of JSON. */
static int ends(const scan *s) {
    return s->at < s->end && (is_space(*s->at) || *s->at == ',' || *s->at == '}' || *s->at == ']');
}

static int whole_number(scan *s, uint32_t *id) {
    (void)next(s);
    const char *from = s->at;
    const size_t n = digits(s);
    if (n == 0 || n > 9 || (n > 1 && *from == '0') || !ends(s))
        return 0;
    *id = 0;
    for (size_t i = 0; i < n; i++)
        *id = *id * 10 + (uint32_t)(from[i] - '0');
    return 1;
}

static int number(scan *s, double *value) {
    char copy[64];
    (void)next(s);
    const char *from = s->at;
    s->at += s->at < s->end && *s->at == '-';
    const char first = s->at < s->end ? *s->at : 0;
    const size_t n = digits(s);
    if (n == 0 || (n > 1 && first == '0'))
        return 0;
    const size_t point = (size_t)(s->at - from);
    const int fraction = s->at < s->end && *s->at == '.';
    s->at += fraction;
    if (fraction && !digits(s))
        return 0;
    if (s->at < s->end && (*s->at == 'e' || *s->at == 'E')) {
        s->at++;
        s->at += s->at < s->end && (*s->at == '-' || *s->at == '+');
        (void)digits(s); /* without one strtod ends before it */
    }
    const size_t bytes = (size_t)(s->at - from);
    if (bytes >= sizeof copy || !ends(s))
        return 0;
    memcpy(copy, from, bytes);
    copy[bytes] = 0;
    if (fraction)
        copy[point] = s->point;
    char *end = NULL;
    *value = strtod(copy, &end);
    return end == copy + bytes && isfinite(*value);
}

/* ------------------------------------------------------------------------ vocabulary, merges */

/* {"token": id, ...} */
static int read_ids(scan *s) {
    text_scanned *to = s->to;
    to->text = s->text;
    if (!take(s, '{'))
        return 0;
    if (next(s) == '}')
        return take(s, '}');
    do {
        text_scanned_token *token = &to->tokens[to->count];
        if (!string(s, &token->bytes) || !take(s, ':') || !whole_number(s, &token->id))
            return 0;
        *s->text++ = 0;
        to->count++;
    } while (take(s, ','));
    to->text_bytes = (size_t)(s->text - to->text);
    return take(s, '}');
}

/* [["token", score], ...] */
static int read_scores(scan *s) {
    text_scanned *to = s->to;
    to->text = s->text;
    to->is_list = 1;
    (void)take(s, '['); /* which the caller has seen */
    if (next(s) == ']')
        return take(s, ']');
    do {
        text_scanned_token *token = &to->tokens[to->count];
        if (!take(s, '[') || !string(s, &token->bytes) || !take(s, ',') ||
            !number(s, &token->score) || !take(s, ']'))
            return 0;
        *s->text++ = 0;
        token->id = (uint32_t)to->count++;
    } while (take(s, ','));
    to->text_bytes = (size_t)(s->text - to->text);
    return take(s, ']');
}

/* "left right", in which the first space counts. */
static int read_merge_text(scan *s, text_scanned_merge *merge) {
    char *from = s->text;
    uint32_t bytes;
    if (!string(s, &bytes))
        return 0;
    char *space = memchr(from, ' ', bytes);
    if (!space)
        return 0;
    merge->left = (uint32_t)(space - from);
    merge->right = bytes - merge->left - 1;
    memmove(space, space + 1, merge->right);
    s->text--;
    return 1;
}

/* ["left right", ...] or [["left", "right"], ...] */
static int read_merges(scan *s) {
    text_scanned *to = s->to;
    to->merges_text = s->text;
    (void)take(s, '['); /* which the caller has seen */
    if (next(s) == ']')
        return take(s, ']');
    do {
        text_scanned_merge *merge = &to->merges[to->merge_count++];
        if (next(s) == '"' ? !read_merge_text(s, merge)
                           : !take(s, '[') || !string(s, &merge->left) || !take(s, ',') ||
                                 !string(s, &merge->right) || !take(s, ']'))
            return 0;
    } while (take(s, ','));
    return take(s, ']');
}

/* -------------------------------------------------------------------------------------- files */

/* A string of which nothing is wanted. */
static int skip_string(scan *s) {
    (void)take(s, '"'); /* which the caller has seen */
    for (; s->at < s->end && *s->at != '"'; s->at++)
        s->at += *s->at == '\\' && s->end - s->at > 1;
    return take(s, '"');
}

static int skip_value(scan *s) {
    size_t depth = 0;
    do {
        const char c = next(s);
        if (s->at == s->end)
            return 0;
        if (c == '"') {
            (void)skip_string(s);
            continue;
        }
        if (c == '{' || c == '[')
            depth++;
        depth -= depth && (c == '}' || c == ']');
        s->at++;
    } while (depth || (s->at < s->end && *s->at != ',' && *s->at != ']' && *s->at != '}'));
    return 1;
}

static void keep(scan *s, const char *until, const char *instead) {
    const size_t bytes = (size_t)(until - s->kept), more = strlen(instead);
    memcpy(s->rest + s->rest_bytes, s->kept, bytes);
    memcpy(s->rest + s->rest_bytes + bytes, instead, more);
    s->rest_bytes += bytes + more;
    s->kept = s->at;
}

/* A value that is taken out. */
static int cut(scan *s, int (*read)(scan *), const char *instead) {
    (void)next(s);
    const char *from = s->at;
    if (!read(s))
        return 0;
    keep(s, from, instead);
    return 1;
}

static int is_key(const char *key, const char *end, const char *name) {
    const size_t n = strlen(name);
    return (size_t)(end - key) == n && memcmp(key, name, n) == 0;
}

/* The members of an object: of the file, and within that of "model". */
static int read_members(scan *s, int in_model) {
    int fine = 1;
    (void)take(s, '{'); /* as what stands between members: checked with the rest */
    do {
        if (next(s) != '"')
            return 0;
        const char *key = s->at + 1;
        (void)skip_string(s); /* without an end it is the last */
        const char *end = s->at - 1;
        (void)take(s, ':'); /* a part of the rest, and checked with it */
        const char c = next(s);
        const int vocabulary = in_model && is_key(key, end, "vocab");
        if (!in_model && is_key(key, end, "model") && c == '{')
            fine = read_members(s, 1);
        else if (vocabulary && !s->to->text && c == '{')
            fine = cut(s, read_ids, "{}");
        else if (vocabulary && !s->to->text && c == '[')
            fine = cut(s, read_scores, "[]");
        else if (in_model && is_key(key, end, "merges") && !s->to->merges_text && c == '[')
            fine = cut(s, read_merges, "[]");
        else
            fine = skip_value(s);
    } while (fine && take(s, ','));
    return fine && take(s, '}');
}

/* Memory for the most that a text of so many bytes can hold; what is not used costs nothing. */
static int begin(scan *s, text_scanned *to, const char *text, size_t bytes, size_t shortest) {
    enum { SHORTEST_MERGE = 4 }; /* " ", */
    *to = (text_scanned){0};
    *s = (scan){.to = to, .at = text, .end = text + bytes, .kept = text};
    s->point = localeconv()->decimal_point[0];
    s->text = model_alloc_sparse(&to->arena, bytes + 1, 1, 1, 1);
    s->rest = model_alloc_sparse(&to->arena, bytes + 1, 1, 1, 1);
    to->tokens = model_alloc_sparse(&to->arena, bytes / shortest + 2, 1, 1, sizeof *to->tokens);
    to->merges =
        model_alloc_sparse(&to->arena, bytes / SHORTEST_MERGE + 2, 1, 1, sizeof *to->merges);
    return s->text && s->rest && to->tokens && to->merges;
}

enum { SHORTEST_TOKEN = 5, SHORTEST_LINE = 1 }; /* "":1, and an empty line */

static int fail(text_scanned *to) {
    text_scanned_free(to);
    return 0;
}

int text_scan_tokenizer(text_scanned *to, const char *text, size_t bytes) {
    scan s;
    if (!begin(&s, to, text, bytes, SHORTEST_TOKEN) || !read_members(&s, 0) || !to->text)
        return fail(to);
    keep(&s, s.end, "");
    if (model_json_parse(&to->rest, s.rest, s.rest_bytes, "", NULL))
        return fail(to);
    return 1;
}

int text_scan_vocabulary(text_scanned *to, const char *text, size_t bytes) {
    scan s;
    if (!begin(&s, to, text, bytes, SHORTEST_TOKEN) || !read_ids(&s) || (next(&s), s.at != s.end))
        return fail(to);
    return 1;
}

int text_scan_lines(text_scanned *to, const char *text, size_t bytes) {
    scan s;
    uint32_t code;
    if (!begin(&s, to, text, bytes, SHORTEST_LINE))
        return fail(to);
    to->text = s.text;
    for (const char *end; s.at < s.end; s.at = end + 1) {
        end = memchr(s.at, '\n', (size_t)(s.end - s.at));
        if (!end)
            end = s.end;
        size_t n = (size_t)(end - s.at);
        n -= n > 0 && s.at[n - 1] == '\r';
        for (size_t i = 0, step; i < n; i += step)
            if (!(step = model_utf8(s.at + i, n - i, &code)) || !code)
                return fail(to);
        memcpy(s.text, s.at, n);
        s.text[n] = 0;
        s.text += n + 1;
        to->tokens[to->count] = (text_scanned_token){(uint32_t)n, (uint32_t)to->count, 0};
        to->count++;
    }
    to->text_bytes = (size_t)(s.text - to->text);
    return 1;
}

void text_scanned_free(text_scanned *s) {
    json_decref(s->rest);
    model_arena_free(&s->arena);
    *s = (text_scanned){0};
}

int text_scanned_begin(const text_scanned *s, text_vocabulary *v, model_arena *arena, size_t more) {
    char *text = model_alloc(arena, s->text_bytes + 1, 1);
    if (!text || !text_vocabulary_begin(v, arena, s->count + more))
        return 0;
    memcpy(text, s->text, s->text_bytes);
    for (size_t i = 0; i < s->count; i++) {
        if (!text_vocabulary_put(v, text, s->tokens[i].bytes, s->tokens[i].id))
            return 0;
        text += s->tokens[i].bytes + 1;
    }
    return 1;
}

/* Added tokens behind the others; 0: they contradict them, or are not as expected. */
static int put_added(text_vocabulary *v, model_arena *arena, const json_t *added) {
    size_t id;
    json_t *one;
    for (size_t i = 0; (one = json_array_get(added, i)); i++) {
        const char *token = text_string_or(one, "content", "");
        const json_t *value = json_object_get(one, "id");
        const uint32_t old = text_vocabulary_find(v, token, strlen(token));
        if (!value)
            continue;
        if (!model_json_size(value, 0, MODEL_NO_ID - 1, &id) || (old != MODEL_NO_ID && old != id))
            return 0;
        const size_t bytes = strlen(token);
        char *copy = old == MODEL_NO_ID ? model_alloc(arena, bytes + 1, 1) : NULL;
        if (copy && !text_vocabulary_put(v, memcpy(copy, token, bytes + 1), bytes, (uint32_t)id))
            return 0;
        if (!copy && old == MODEL_NO_ID)
            return 0;
    }
    return 1;
}

int text_scanned_finish(text_vocabulary *v, model_arena *arena, const json_t *added) {
    if (!put_added(v, arena, added))
        return 0;
    size_t count = v->tokens;
    for (size_t i = 0; i < v->tokens; i++) {
        if (v->by_token[i].id > TEXT_MAX_ID(v->tokens))
            return 0;
        if (v->by_token[i].id >= count)
            count = (size_t)v->by_token[i].id + 1;
    }
    return !text_vocabulary_number(v, arena, count, "", NULL);
}
