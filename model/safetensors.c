/* SPDX-License-Identifier: MIT
 *
 * The header of a safetensors file, read by a parser of its own, because a model file is untrusted
 * and a general JSON parser would accept more than the format: recursion, the last of two equal
 * keys, fractions, numbers that round. Here the nesting is fixed by the functions below (header,
 * entry, list), every byte is looked at a bounded number of times, memory is a small multiple of
 * the header, and each rule has its own error code:
 *
 *   length of the header     HEADER_SIZE (impossible), TRUNCATED (the file is shorter)
 *   text                     UTF8, JSON; unknown fields of an entry are skipped
 *   names                    DUPLICATE (after unescaping), JSON (empty, or with NUL), LIMIT
 *   fields of an entry       DUPLICATE, MISSING, JSON
 *   numbers                  JSON unless plain decimal, OVERFLOW from 2^63 on, LIMIT for the rank
 *   shape times type         OVERFLOW; OFFSET when it is not the span of data_offsets
 *   the data as a whole      OFFSET (reversed, overlapping), HOLE, TRUNCATED
 */
#include "checkpoint.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NAME_BYTES 4096
#define MAX_SKIP_DEPTH 32

typedef struct cursor {
    char *at, *end;
    const char *start;
    const char *name; /* of the entry that is being read, for messages */
    size_t name_bytes;
    iso_error *error;
} cursor;

typedef struct string {
    char *text; /* unescaped in place, NUL-terminated */
    size_t bytes;
} string;

static iso_status bad(const cursor *c, iso_status status, const char *what) {
    model_quoted name;
    size_t at = (size_t)(c->at - c->start);
    if (!c->name)
        return model_fail(c->error, status, "safetensors header, byte %zu: %s", at, what);
    return model_fail(c->error, status, "safetensors header, entry %s, byte %zu: %s",
                      model_quote(&name, c->name, c->name_bytes), at, what);
}

static void skip_space(cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
        c->at++;
}

/* Takes `byte` after white space. */
static int accept(cursor *c, char byte) {
    skip_space(c);
    if (c->at == c->end || *c->at != byte)
        return 0;
    c->at++;
    return 1;
}

static iso_status expect(cursor *c, char byte, const char *what) {
    return accept(c, byte) ? ISOBIT_OK : bad(c, ISOBIT_E_JSON, what);
}

static int hex4(const cursor *c, const char *at, uint32_t *value) {
    *value = 0;
    if (c->end - at < 4)
        return 0;
    for (int i = 0; i < 4; i++) {
        char x = at[i];
        uint32_t digit;
        if (x >= '0' && x <= '9')
            digit = (uint32_t)(x - '0');
        else if ((x | 32) >= 'a' && (x | 32) <= 'f')
            digit = (uint32_t)((x | 32) - 'a') + 10;
        else
            return 0;
        *value = *value << 4 | digit;
    }
    return 1;
}

static char *put_utf8(char *to, uint32_t code) {
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
    } else {
        if (code < 0x10000) {
            *to++ = (char)(0xe0 | code >> 12);
        } else {
            *to++ = (char)(0xf0 | code >> 18);
            *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        }
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
    }
    *to++ = (char)(0x80 | (code & 0x3f));
    return to;
}

/* A string, unescaped over itself: an escape is never shorter than what it stands for. */
static iso_status read_string(cursor *c, string *s) {
    iso_status status = expect(c, '"', "a string is expected");
    if (status)
        return status;
    char *to = s->text = c->at;
    for (;;) {
        if (c->at == c->end)
            return bad(c, ISOBIT_E_JSON, "a string does not end");
        unsigned char byte = (unsigned char)*c->at;
        if (byte == '"')
            break;
        if (byte < 0x20)
            return bad(c, ISOBIT_E_JSON, "a control character in a string");
        if (byte != '\\') {
            *to++ = *c->at++;
            continue;
        }
        if (c->end - c->at < 2)
            return bad(c, ISOBIT_E_JSON, "a string does not end");
        static const char escapes[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
        const char *known = memchr(escapes, c->at[1], sizeof escapes - 1);
        if (known) {
            *to++ = meaning[known - escapes];
            c->at += 2;
            continue;
        }
        uint32_t code, low;
        if (c->at[1] != 'u' || !hex4(c, c->at + 2, &code))
            return bad(c, ISOBIT_E_JSON, "an escape that does not exist");
        size_t used = 6;
        if (code >= 0xd800 && code < 0xdc00 && c->end - c->at >= 12 && c->at[6] == '\\' &&
            c->at[7] == 'u' && hex4(c, c->at + 8, &low) && low >= 0xdc00 && low < 0xe000) {
            code = 0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00));
            used = 12;
        } else if (code >= 0xd800 && code < 0xe000) {
            return bad(c, ISOBIT_E_JSON, "half of a surrogate pair");
        }
        to = put_utf8(to, code);
        c->at += used;
    }
    c->at++;
    *to = 0; /* on the closing quote, or before it */
    s->bytes = (size_t)(to - s->text);
    return ISOBIT_OK;
}

static iso_status read_name(cursor *c, string *s) {
    iso_status status = read_string(c, s);
    if (status)
        return status;
    if (s->bytes == 0)
        return bad(c, ISOBIT_E_JSON, "an empty name");
    if (memchr(s->text, 0, s->bytes))
        return bad(c, ISOBIT_E_JSON, "a name with a NUL character");
    if (s->bytes > MAX_NAME_BYTES)
        return bad(c, ISOBIT_E_LIMIT, "a name of more than 4096 bytes");
    return ISOBIT_OK;
}

/* A plain decimal number below 2^63. */
static iso_status read_number(cursor *c, uint64_t *value) {
    skip_space(c);
    const char *first = c->at;
    uint64_t v = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*c->at - '0'), &v) || v > INT64_MAX)
            return bad(c, ISOBIT_E_OVERFLOW, "a number of 2^63 or more");
    }
    if (c->at == first)
        return bad(c, ISOBIT_E_JSON, "a whole number of at least 0 is expected");
    if (*first == '0' && c->at - first > 1)
        return bad(c, ISOBIT_E_JSON, "a number that begins with 0");
    if (c->at < c->end && (*c->at == '.' || *c->at == 'e' || *c->at == 'E'))
        return bad(c, ISOBIT_E_JSON, "a number with a fraction or an exponent");
    *value = v;
    return ISOBIT_OK;
}

static iso_status read_numbers(cursor *c, uint64_t *values, size_t limit, size_t *count) {
    iso_status status = expect(c, '[', "a list of numbers is expected");
    *count = 0;
    if (status || accept(c, ']'))
        return status;
    do {
        if (*count == limit)
            return bad(c, ISOBIT_E_LIMIT, "a list with too many numbers");
        status = read_number(c, &values[(*count)++]);
    } while (!status && accept(c, ','));
    return status ? status : expect(c, ']', "',' or ']' is expected");
}

static size_t skip_digits(cursor *c) {
    const char *first = c->at;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9')
        c->at++;
    return (size_t)(c->at - first);
}

static int skip_either(cursor *c, char a, char b) {
    if (c->at == c->end || (*c->at != a && *c->at != b))
        return 0;
    c->at++;
    return 1;
}

/* A number, true, false or null in a field that we do not know. */
static iso_status skip_scalar(cursor *c) {
    static const char *const words[] = {"true", "false", "null"};
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(c->end - c->at) >= n && memcmp(c->at, words[i], n) == 0) {
            c->at += n;
            return ISOBIT_OK;
        }
    }
    skip_either(c, '-', '-');
    const char *first = c->at;
    size_t digits = skip_digits(c);
    if (digits == 0)
        return bad(c, ISOBIT_E_JSON, "a value is expected");
    if (digits > 1 && *first == '0')
        return bad(c, ISOBIT_E_JSON, "a number that begins with 0");
    if (skip_either(c, '.', '.') && !skip_digits(c))
        return bad(c, ISOBIT_E_JSON, "digits are expected after '.'");
    if (skip_either(c, 'e', 'E')) {
        skip_either(c, '+', '-');
        if (!skip_digits(c))
            return bad(c, ISOBIT_E_JSON, "digits are expected in the exponent");
    }
    return ISOBIT_OK;
}

/* Any value; what is open is a bit for each level: 1 an object, 0 a list. */
static iso_status skip_value(cursor *c) {
    uint32_t open = 0;
    unsigned depth = 0;
    iso_status status;
    string ignored;
    for (;;) {
        skip_space(c);
        int object = accept(c, '{');
        if (object || accept(c, '[')) {
            if (depth == MAX_SKIP_DEPTH)
                return bad(c, ISOBIT_E_LIMIT, "values are nested too deeply");
            if (!accept(c, object ? '}' : ']')) {
                open = open << 1 | (uint32_t)object;
                depth++;
                if (object && ((status = read_string(c, &ignored)) ||
                               (status = expect(c, ':', "':' is expected"))))
                    return status;
                continue;
            }
        } else {
            status = c->at < c->end && *c->at == '"' ? read_string(c, &ignored) : skip_scalar(c);
            if (status)
                return status;
        }
        /* A value has ended: close what ends with it, then go on to the next one. */
        while (depth && accept(c, open & 1 ? '}' : ']')) {
            open >>= 1;
            depth--;
        }
        if (!depth)
            return ISOBIT_OK;
        if ((status = expect(c, ',', "',' or a closing bracket is expected")))
            return status;
        if ((open & 1) &&
            ((status = read_string(c, &ignored)) || (status = expect(c, ':', "':' is expected"))))
            return status;
    }
}

/* Bits of an element; 0 for a type that we do not know. */
static unsigned dtype_bits(const char *name, model_dtype *dtype) {
    static const struct {
        const char *name;
        unsigned char bits, dtype;
    } known[] = {
        {"F32", 32, MODEL_F32},          {"F16", 16, MODEL_F16},
        {"BF16", 16, MODEL_BF16},        {"BOOL", 8, MODEL_OTHER},
        {"U8", 8, MODEL_OTHER},          {"I8", 8, MODEL_I8},
        {"F8_E5M2", 8, MODEL_OTHER},     {"F8_E4M3", 8, MODEL_OTHER},
        {"F8_E8M0", 8, MODEL_OTHER},     {"F8_E4M3FNUZ", 8, MODEL_OTHER},
        {"F8_E5M2FNUZ", 8, MODEL_OTHER}, {"I16", 16, MODEL_OTHER},
        {"U16", 16, MODEL_OTHER},        {"I32", 32, MODEL_OTHER},
        {"U32", 32, MODEL_OTHER},        {"I64", 64, MODEL_OTHER},
        {"U64", 64, MODEL_OTHER},        {"F64", 64, MODEL_F64},
        {"C64", 64, MODEL_OTHER},        {"F4", 4, MODEL_OTHER},
        {"F6_E2M3", 6, MODEL_OTHER},     {"F6_E3M2", 6, MODEL_OTHER},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i].name) == 0) {
            *dtype = (model_dtype)known[i].dtype;
            return known[i].bits;
        }
    *dtype = MODEL_UNKNOWN;
    return 0;
}

/* The product of the shape and the element size must be what data_offsets spans. */
static iso_status check_extent(const cursor *c, const model_tensor *t, unsigned bits) {
    if (t->begin > t->end)
        return bad(c, ISOBIT_E_OFFSET, "data_offsets are reversed");
    uint64_t total;
    const char *wrong = model_tensor_extent(t, bits ? bits : 1, &total);
    if (wrong)
        return bad(c, ISOBIT_E_OVERFLOW, wrong);
    if (bits && (total % 8 || total / 8 != t->end - t->begin))
        return bad(c, ISOBIT_E_OFFSET, "data_offsets do not span shape times element size");
    return ISOBIT_OK;
}

/* {"dtype": ..., "shape": [...], "data_offsets": [begin, end]} in any order. */
static iso_status read_entry(cursor *c, model_tensor *t) {
    enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4 };
    unsigned seen = 0, field, bits = 0;
    iso_status status = expect(c, '{', "an object is expected");
    if (status)
        return status;
    if (accept(c, '}'))
        return bad(c, ISOBIT_E_MISSING, "dtype, shape or data_offsets is not there");
    do {
        string key, dtype;
        if ((status = read_string(c, &key)) || (status = expect(c, ':', "':' is expected")))
            return status;
        if (strlen(key.text) != key.bytes)
            return bad(c, ISOBIT_E_JSON, "a key with a NUL character");
        field = strcmp(key.text, "dtype") == 0          ? DTYPE
                : strcmp(key.text, "shape") == 0        ? SHAPE
                : strcmp(key.text, "data_offsets") == 0 ? OFFSETS
                                                        : 0;
        if (seen & field)
            return bad(c, ISOBIT_E_DUPLICATE, "dtype, shape or data_offsets occurs twice");
        seen |= field;
        if (field == DTYPE) {
            if (!(status = read_string(c, &dtype))) {
                /* A NUL must not turn an unknown type into a known one. */
                t->dtype = MODEL_UNKNOWN;
                bits = strlen(dtype.text) == dtype.bytes ? dtype_bits(dtype.text, &t->dtype) : 0;
                size_t keep =
                    dtype.bytes < sizeof t->dtype_name - 1 ? dtype.bytes : sizeof t->dtype_name - 1;
                memcpy(t->dtype_name, dtype.text, keep);
                t->dtype_name[keep] = 0;
            }
        } else if (field == SHAPE) {
            status = read_numbers(c, t->shape, MODEL_MAX_RANK, &t->rank);
        } else if (field == OFFSETS) {
            uint64_t offsets[3];
            size_t count;
            status = read_numbers(c, offsets, 3, &count);
            if (!status && count != 2)
                status = bad(c, ISOBIT_E_JSON, "data_offsets must be two numbers");
            if (!status) {
                t->begin = offsets[0];
                t->end = offsets[1];
            }
        } else {
            status = skip_value(c);
        }
        if (status)
            return status;
    } while (accept(c, ','));
    if ((status = expect(c, '}', "',' or '}' is expected")))
        return status;
    if (seen != (DTYPE | SHAPE | OFFSETS))
        return bad(c, ISOBIT_E_MISSING, "dtype, shape or data_offsets is not there");
    return check_extent(c, t, bits);
}

static int by_name(const void *a, const void *b) {
    const string *x = a, *y = b;
    size_t n = x->bytes < y->bytes ? x->bytes : y->bytes;
    int order = memcmp(x->text, y->text, n);
    return order ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int tensor_by_offset(const void *a, const void *b) {
    const model_tensor *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/*
 * No fewer than the entries of an object in this text, each having `colons` colons and at least
 * `shortest` bytes: memory stays a small multiple of the text, whatever it is.
 */
static size_t count_limit(const char *text, size_t bytes, size_t colons, size_t shortest) {
    size_t n = 0;
    for (size_t i = 0; i < bytes; i++)
        n += text[i] == ':';
    return (n / colons < bytes / shortest ? n / colons : bytes / shortest) + 1;
}

/* "__metadata__": an object of strings. */
static iso_status read_metadata(cursor *c, model_arena *arena) {
    iso_status status = expect(c, '{', "an object is expected");
    if (status || accept(c, '}'))
        return status;
    size_t limit = count_limit(c->at, (size_t)(c->end - c->at), 1, sizeof "\"\":\"\"" - 1);
    size_t count = 0;
    string *keys = model_alloc(arena, limit, sizeof *keys), value;
    if (!keys)
        return bad(c, ISOBIT_E_NOMEM, "out of memory");
    do {
        string none, *key = count < limit ? &keys[count] : &none;
        if ((status = read_string(c, key)) || (status = expect(c, ':', "':' is expected")) ||
            (status = read_string(c, &value)))
            return status;
        count++;
    } while (accept(c, ','));
    if ((status = expect(c, '}', "',' or '}' is expected")))
        return status;
    qsort(keys, count, sizeof *keys, by_name);
    for (size_t i = 1; i < count; i++)
        if (by_name(&keys[i - 1], &keys[i]) == 0)
            return bad(c, ISOBIT_E_DUPLICATE, "a key of __metadata__ occurs twice");
    return ISOBIT_OK;
}

/* The tensors must fill the data, each byte once. */
static iso_status check_layout(model_header *h, uint64_t data_bytes, iso_error *error) {
    model_quoted name;
    uint64_t end = 0;
    qsort(h->tensors, h->count, sizeof *h->tensors, tensor_by_offset);
    for (size_t i = 0; i < h->count; i++) {
        const model_tensor *t = &h->tensors[i];
        model_quote(&name, t->name, t->name_bytes);
        if (t->begin < end)
            return model_fail(error, ISOBIT_E_OFFSET,
                              "tensor %s begins at byte %llu of the data, before the end %llu of "
                              "the one before it",
                              name.text, (unsigned long long)t->begin, (unsigned long long)end);
        if (t->begin > end)
            return model_fail(
                error, ISOBIT_E_HOLE,
                "tensor %s begins at byte %llu of the data, after a hole from %llu on", name.text,
                (unsigned long long)t->begin, (unsigned long long)end);
        end = t->end;
        if (end > data_bytes)
            return model_fail(error, ISOBIT_E_TRUNCATED,
                              "tensor %s ends at byte %llu of the data, of which the file has %llu",
                              name.text, (unsigned long long)end, (unsigned long long)data_bytes);
    }
    if (end < data_bytes)
        return model_fail(
            error, ISOBIT_E_HOLE,
            "the last tensor ends at byte %llu of the data, of which the file has %llu",
            (unsigned long long)end, (unsigned long long)data_bytes);
    return ISOBIT_OK;
}

iso_status model_header_parse(model_header *header, model_arena *arena, char *text, size_t bytes,
                              uint64_t data_bytes, iso_error *error) {
    cursor c = {text, text + bytes, text, NULL, 0, error};
    for (size_t at = 0, n; at < bytes; at += n) {
        uint32_t code;
        if (!(n = model_utf8(text + at, bytes - at, &code))) {
            c.at = text + at;
            return bad(&c, ISOBIT_E_UTF8, "not valid UTF-8");
        }
    }
    static const char shortest[] = "\"a\":{\"dtype\":\"\",\"shape\":[],\"data_offsets\":[0,0]}";
    size_t limit = count_limit(text, bytes, 4, sizeof shortest - 1), count = 0, metadata = 0;
    model_tensor *tensors = model_alloc(arena, limit, sizeof *tensors);
    iso_status status;
    if (!tensors)
        return bad(&c, ISOBIT_E_NOMEM, "out of memory");
    if ((status = expect(&c, '{', "an object is expected")))
        return status;
    if (!accept(&c, '}')) {
        do {
            string name;
            c.name = NULL;
            if ((status = read_name(&c, &name)) || (status = expect(&c, ':', "':' is expected")))
                return status;
            c.name = name.text;
            c.name_bytes = name.bytes;
            if (strcmp(name.text, "__metadata__") == 0) {
                if (metadata++)
                    return bad(&c, ISOBIT_E_DUPLICATE, "the name occurs twice");
                status = read_metadata(&c, arena);
            } else {
                /* Beyond the limit an entry cannot be complete, and reading it fails. */
                model_tensor none, *t = count < limit ? &tensors[count++] : &none;
                *t = (model_tensor){.name = name.text, .name_bytes = name.bytes};
                status = read_entry(&c, t);
            }
            if (status)
                return status;
        } while (accept(&c, ','));
        c.name = NULL;
        if ((status = expect(&c, '}', "',' or '}' is expected")))
            return status;
    }
    skip_space(&c);
    if (c.at != c.end)
        return bad(&c, ISOBIT_E_JSON, "text after the header");
    header->tensors = tensors;
    header->count = count;
    if ((status = check_layout(header, data_bytes, error)))
        return status;
    qsort(tensors, count, sizeof *tensors, model_tensor_order);
    for (size_t i = 1; i < count; i++)
        if (model_tensor_order(&tensors[i - 1], &tensors[i]) == 0) {
            c.name = tensors[i].name;
            c.name_bytes = tensors[i].name_bytes;
            return bad(&c, ISOBIT_E_DUPLICATE, "the name occurs twice");
        }
    return ISOBIT_OK;
}

iso_status model_checkpoint_open(model_checkpoint *checkpoint, const char *directory,
                                 const char *name, size_t max_header_bytes, iso_error *error) {
    *checkpoint = (model_checkpoint){.file.fd = -1};
    iso_status status = model_file_open(&checkpoint->file, directory, name, error);
    if (status)
        return status;
    unsigned char length[8];
    const model_file *file = &checkpoint->file;
    if (file->bytes < 8)
        return model_fail(error, ISOBIT_E_TRUNCATED, "%s has %llu bytes; the shortest has 10", name,
                          (unsigned long long)file->bytes);
    if ((status = model_file_read(file, length, 0, 8, error)))
        return status;
    uint64_t n = 0;
    for (int i = 7; i >= 0; i--)
        n = n << 8 | length[i];
    if (n < 2 || n > max_header_bytes)
        return model_fail(error, ISOBIT_E_HEADER_SIZE,
                          "%s: a header of %llu bytes; 2 to %zu are possible", name,
                          (unsigned long long)n, max_header_bytes);
    if (n > file->bytes - 8)
        return model_fail(error, ISOBIT_E_TRUNCATED, "%s: a header of %llu bytes in a file of %llu",
                          name, (unsigned long long)n, (unsigned long long)file->bytes);
    char *text = model_alloc(&checkpoint->arena, (size_t)n, 1);
    if (!text)
        return model_fail(error, ISOBIT_E_NOMEM, "out of memory for the header of %s", name);
    if ((status = model_file_read(file, text, 8, (size_t)n, error)))
        return status;
    checkpoint->data_start = 8 + n;
    status = model_header_parse(&checkpoint->header, &checkpoint->arena, text, (size_t)n,
                                file->bytes - 8 - n, error);
    if (status && error) { /* the parser does not know which file it reads */
        const iso_error inner = *error;
        return model_fail(error, status, "%s: %s", name, inner.message);
    }
    return status;
}
