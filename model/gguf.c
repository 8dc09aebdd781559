/* SPDX-License-Identifier: MIT
 *
 * GGUF, the files of llama.cpp, versions 2 and 3: a head with two counts, metadata, the places of
 * the tensors, then their data. All numbers are little-endian, and nothing says how long the parts
 * before the data are: they are read from more and more of the file. A value is looked at where it
 * lies; memory is for the list of values and of tensors alone, and the file is long enough for
 * each of these before there is room for it.
 *
 *   head       UNSUPPORTED (no GGUF, another version, big-endian), LIMIT (too many entries)
 *   metadata   TRUNCATED, DUPLICATE, UTF8 (keys), CONFIG (a value that is none), UNSUPPORTED
 *              (a type that does not exist, arrays of arrays, one of several files)
 *   tensors    UTF8 (names), LIMIT (rank), OVERFLOW (shape), UNSUPPORTED (quantised ones),
 *              DUPLICATE; OFFSET (not aligned, overlapping), HOLE, TRUNCATED for their data
 */
#include "gguf.h"

#include "blocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES ((size_t)1 << 20)
#define MAX_VALUES 65536
#define MAX_TENSORS 262144
#define MAX_NAME_BYTES 4096
#define MAX_DIMENSIONS 4
#define MAX_ALIGNMENT 65536
#define HEAD_BYTES 24
/* Of an entry: length and text of the key, type, value. Of a tensor: name, rank, size, type,
 * offset. */
#define LEAST_VALUE (8 + 1 + 4 + 1)
#define LEAST_TENSOR (8 + 1 + 4 + 8 + 4 + 8)

typedef struct reader {
    model_gguf *gguf;
    model_checkpoint *checkpoint;
    char *text;
    size_t bytes, at;
    uint64_t values, tensors, alignment;
    char what[160]; /* is read: for messages */
    iso_error *error;
} reader;

static iso_status bad(const reader *r, iso_status status, const char *what) {
    return model_fail(r->error, status, "%s: %s%s%s", r->gguf->file, r->what, r->what[0] ? " " : "",
                      what);
}

static iso_status ends(const reader *r) {
    return bad(r, ISOBIT_E_TRUNCATED, "goes beyond the end of the file");
}

/* What is read from now on: "the value of", "tensor", or nothing. */
static void name_part(reader *r, const char *kind, const char *name, size_t bytes) {
    model_quoted quoted;
    r->what[0] = 0;
    if (name)
        (void)snprintf(r->what, sizeof r->what, "%s %s", kind, model_quote(&quoted, name, bytes));
    else
        (void)snprintf(r->what, sizeof r->what, "%s", kind);
}

uint64_t model_gguf_number(const char *at, size_t bytes) {
    uint64_t value = 0;
    for (size_t i = bytes; i-- > 0;)
        value = value << 8 | (unsigned char)at[i];
    return value;
}

static iso_status take_number(reader *r, uint64_t *value, size_t bytes) {
    if (r->bytes - r->at < bytes)
        return ends(r);
    *value = model_gguf_number(r->text + r->at, bytes);
    r->at += bytes;
    return ISOBIT_OK;
}

static iso_status take_string(reader *r, char **text, size_t *bytes) {
    uint64_t length = 0;
    iso_status status = take_number(r, &length, 8);
    if (status)
        return status;
    if (length > r->bytes - r->at)
        return ends(r);
    *text = r->text + r->at;
    *bytes = (size_t)length;
    r->at += *bytes;
    return ISOBIT_OK;
}

/* A key or the name of a tensor. */
static iso_status take_name(reader *r, char **text, size_t *bytes) {
    iso_status status = take_string(r, text, bytes);
    if (status)
        return status;
    if (!*bytes || *bytes > MAX_NAME_BYTES)
        return bad(r, ISOBIT_E_LIMIT, "has a name that has not 1 to 4096 bytes");
    if (!model_gguf_is_text(*text, *bytes))
        return bad(r, ISOBIT_E_UTF8, "has a name that is not UTF-8, or has a NUL character");
    return ISOBIT_OK;
}

/* -------------------------------------------------------------------------------- metadata */

/* Bytes of a value; 0: they depend on the value, or there is no such type. */
static size_t type_bytes(uint64_t type) {
    static const unsigned char bytes[GGUF_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return type < GGUF_TYPES ? bytes[type] : 0;
}

static iso_status take_items(reader *r, gguf_value *v) {
    const size_t each = type_bytes(v->type), least = each ? each : 8;
    char *text;
    v->data = r->text + r->at;
    const size_t first = r->at;
    if (v->count > (r->bytes - r->at) / least)
        return ends(r);
    r->at += each * v->count; /* strings follow one by one */
    for (size_t i = 0, n; !each && i < v->count; i++) {
        iso_status status = take_string(r, &text, &n);
        if (status)
            return status;
    }
    for (size_t i = 0; v->type == GGUF_BOOL && i < v->count; i++)
        if ((unsigned char)v->data[i] > 1)
            return bad(r, ISOBIT_E_CONFIG, "is neither 0 nor 1, and should be true or false");
    v->bytes = r->at - first;
    return ISOBIT_OK;
}

static iso_status take_value(reader *r, gguf_value *v) {
    char *key;
    uint64_t type = 0, count = 1;
    name_part(r, "a value", NULL, 0);
    iso_status status = take_name(r, &key, &v->key_bytes);
    if (status)
        return status;
    v->key = key;
    name_part(r, "the value of", v->key, v->key_bytes);
    if ((status = take_number(r, &type, 4)))
        return status;
    v->array = type == GGUF_ARRAY;
    if (v->array && ((status = take_number(r, &type, 4)) || (status = take_number(r, &count, 8))))
        return status;
    if (v->array && type == GGUF_ARRAY)
        return bad(r, ISOBIT_E_UNSUPPORTED, "is an array of arrays, which isobit does not read");
    if (type >= GGUF_TYPES)
        return model_fail(r->error, ISOBIT_E_UNSUPPORTED,
                          "%s: %s has the type %llu; 0 to 12 are possible", r->gguf->file, r->what,
                          (unsigned long long)type);
    if (count > r->bytes) /* no item has less than a byte; and a count fits */
        return ends(r);
    v->type = (gguf_type)type;
    v->count = (size_t)count;
    return take_items(r, v);
}

static int compare_keys(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
    const int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);
    return order ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

static int by_key(const void *a, const void *b) {
    const gguf_value *x = a, *y = b;
    return compare_keys(x->key, x->key_bytes, y->key, y->key_bytes);
}

const gguf_value *model_gguf_find(const model_gguf *gguf, const char *key) {
    const gguf_value wanted = {.key = key, .key_bytes = strlen(key)};
    return gguf->count ? bsearch(&wanted, gguf->values, gguf->count, sizeof wanted, by_key) : NULL;
}

static const char *const type_names[GGUF_TYPES] = {"an 8-bit number",   "a signed 8-bit number",
                                                   "a 16-bit number",   "a signed 16-bit number",
                                                   "a 32-bit number",   "a signed 32-bit number",
                                                   "a float",           "true or false",
                                                   "a string",          "an array",
                                                   "a 64-bit number",   "a signed 64-bit number",
                                                   "a float of 64 bits"};

static iso_status get(const model_gguf *gguf, const gguf_value **value, const char *key,
                      gguf_type type, int array) {
    const gguf_value *v = *value = model_gguf_find(gguf, key);
    if (!v || (v->array == array && v->type == type))
        return ISOBIT_OK;
    return model_fail(gguf->error, ISOBIT_E_CONFIG, "%s: \"%s\" is %s%s; %s%s is expected",
                      gguf->file, key, v->array ? "an array, each item " : "", type_names[v->type],
                      array ? "an array, each item " : "", type_names[type]);
}

iso_status model_gguf_get(const model_gguf *gguf, const gguf_value **value, const char *key,
                          gguf_type type) {
    return get(gguf, value, key, type, 0);
}

iso_status model_gguf_array(const model_gguf *gguf, const gguf_value **value, const char *key,
                            gguf_type type) {
    return get(gguf, value, key, type, 1);
}

const char *model_gguf_string(const char **at, size_t *bytes) {
    const char *text = *at + 8;
    *bytes = (size_t)model_gguf_number(*at, 8);
    *at = text + *bytes;
    return text;
}

int model_gguf_is(const gguf_value *value, const char *text) {
    size_t bytes;
    const char *at = value->data;
    if (value->array || value->type != GGUF_STRING)
        return 0;
    const char *is = model_gguf_string(&at, &bytes);
    return bytes == strlen(text) && memcmp(is, text, bytes) == 0;
}

int model_gguf_is_text(const char *text, size_t bytes) {
    uint32_t code;
    size_t n = 1;
    for (size_t at = 0; at < bytes && n; at += n)
        n = text[at] ? model_utf8(text + at, bytes - at, &code) : 0;
    return n != 0;
}

int model_gguf_has_json(const gguf_value *value) {
    size_t bytes;
    const char *at = value->data;
    if (value->array)
        return 1;
    if (value->type == GGUF_STRING) {
        const char *text = model_gguf_string(&at, &bytes);
        return model_gguf_is_text(text, bytes);
    }
    const uint64_t bits = model_gguf_number(at, value->bytes);
    return value->type == GGUF_F32   ? (bits & 0x7f800000) != 0x7f800000
           : value->type == GGUF_F64 ? bits << 1 >> 53 != 0x7ff
                                     : 1;
}

json_t *model_gguf_json(const gguf_value *value) {
    const char *at = value->data;
    if (value->array)
        return json_array();
    if (value->type == GGUF_STRING) {
        size_t bytes;
        const char *text = model_gguf_string(&at, &bytes);
        return json_stringn(text, bytes);
    }
    const uint64_t bits = model_gguf_number(at, value->bytes);
    const uint32_t low = (uint32_t)bits;
    float single;
    double real;
    memcpy(&single, &low, sizeof single);
    memcpy(&real, &bits, sizeof real);
    switch (value->type) {
    case GGUF_BOOL: return json_boolean(bits != 0);
    case GGUF_F32: return json_real((double)single); /* NULL for what is not finite */
    case GGUF_F64: return json_real(real);
    case GGUF_I8: return json_real((double)(int8_t)bits);
    case GGUF_I16: return json_real((double)(int16_t)bits);
    case GGUF_I32: return json_real((double)(int32_t)bits);
    case GGUF_I64: return json_real((double)(int64_t)bits);
    default: return json_real((double)bits);
    }
}

/* -------------------------------------------------------------------------------- tensors */

/* Bits of an element, or of a block; 0 for types that are refused: quantised in ways that are not
 * read, or unknown. */
static unsigned tensor_type(uint64_t type, const char **name, model_dtype *dtype) {
    static const struct {
        const char *name;
        unsigned char type, bits, dtype; /* bits: not of blocks */
    } known[] = {
        {"F32", 0, 32, MODEL_F32},
        {"F16", 1, 16, MODEL_F16},
        {"Q4_0", 2, 0, MODEL_Q4_0},
        {"Q4_1", 3, 0, MODEL_Q4_1},
        {"Q4_2", 4, 0, 0},
        {"Q4_3", 5, 0, 0},
        {"Q5_0", 6, 0, MODEL_Q5_0},
        {"Q5_1", 7, 0, MODEL_Q5_1},
        {"Q8_0", 8, 0, MODEL_Q8_0},
        {"Q8_1", 9, 0, 0},
        {"Q2_K", 10, 0, MODEL_Q2_K},
        {"Q3_K", 11, 0, MODEL_Q3_K},
        {"Q4_K", 12, 0, MODEL_Q4_K},
        {"Q5_K", 13, 0, MODEL_Q5_K},
        {"Q6_K", 14, 0, MODEL_Q6_K},
        {"Q8_K", 15, 0, 0},
        {"IQ2_XXS", 16, 0, 0},
        {"IQ2_XS", 17, 0, 0},
        {"IQ3_XXS", 18, 0, 0},
        {"IQ1_S", 19, 0, 0},
        {"IQ4_NL", 20, 0, MODEL_IQ4_NL},
        {"IQ3_S", 21, 0, 0},
        {"IQ2_S", 22, 0, 0},
        {"IQ4_XS", 23, 0, MODEL_IQ4_XS},
        {"I8", 24, 8, MODEL_OTHER},
        {"I16", 25, 16, MODEL_OTHER},
        {"I32", 26, 32, MODEL_OTHER},
        {"I64", 27, 64, MODEL_OTHER},
        {"F64", 28, 64, MODEL_F64},
        {"IQ1_M", 29, 0, 0},
        {"BF16", 30, 16, MODEL_BF16},
        {"Q4_0_4_4", 31, 0, 0},
        {"Q4_0_4_8", 32, 0, 0},
        {"Q4_0_8_8", 33, 0, 0},
        {"TQ1_0", 34, 0, 0},
        {"TQ2_0", 35, 0, 0},
        {"IQ4_NL_4_4", 36, 0, 0},
        {"IQ4_NL_4_8", 37, 0, 0},
        {"IQ4_NL_8_8", 38, 0, 0},
        {"MXFP4", 39, 0, 0},
        {"NVFP4", 40, 0, 0},
        {"Q1_0", 41, 0, 0},
        {"Q2_0", 42, 0, 0},
    };
    *name = NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].type == type) {
            *name = known[i].name;
            *dtype = (model_dtype)known[i].dtype;
            const model_block_type *blocks = model_block_type_of(*dtype);
            return blocks ? 8u * blocks->bytes : known[i].bits;
        }
    return 0;
}

/* Sizes come with that of a row first. */
static iso_status take_shape(reader *r, model_tensor *t) {
    uint64_t rank = 0;
    iso_status status = take_number(r, &rank, 4);
    if (status)
        return status;
    if (rank < 1 || rank > MAX_DIMENSIONS)
        return bad(r, ISOBIT_E_LIMIT, "has not 1 to 4 dimensions");
    t->rank = (size_t)rank;
    for (size_t i = t->rank; i-- > 0;) {
        if ((status = take_number(r, &t->shape[i], 8)))
            return status;
        if (t->shape[i] == 0)
            return bad(r, ISOBIT_E_SHAPE, "has a dimension of 0");
    }
    return ISOBIT_OK;
}

static iso_status take_tensor(reader *r, model_tensor *t) {
    char *name;
    const char *type_name;
    uint64_t type = 0, bits;
    *t = (model_tensor){0};
    name_part(r, "a tensor", NULL, 0);
    iso_status status = take_name(r, &name, &t->name_bytes);
    if (status)
        return status;
    t->name = name;
    name_part(r, "tensor", t->name, t->name_bytes);
    if ((status = take_shape(r, t)) || (status = take_number(r, &type, 4)) ||
        (status = take_number(r, &t->begin, 8)))
        return status;
    name[t->name_bytes] = 0; /* what follows is read */
    const unsigned each = tensor_type(type, &type_name, &t->dtype);
    if (!type_name)
        return model_fail(r->error, ISOBIT_E_UNSUPPORTED,
                          "%s: %s has type %llu, which isobit does not know", r->gguf->file,
                          r->what, (unsigned long long)type);
    if (!each)
        return model_fail(r->error, ISOBIT_E_UNSUPPORTED,
                          "%s: tensor %s has type %s, which isobit does not read yet",
                          r->gguf->file, r->what + sizeof "tensor", type_name);
    (void)snprintf(t->dtype_name, sizeof t->dtype_name, "%s", type_name);
    model_tensor units = *t; /* elements, or blocks of them */
    const model_block_type *blocks = model_block_type_of(t->dtype);
    if (blocks) {
        const size_t elements = model_block_elements(blocks);
        if (t->shape[t->rank - 1] % elements)
            return model_fail(r->error, ISOBIT_E_SHAPE,
                              "%s: %s has rows that are no whole blocks of %zu elements",
                              r->gguf->file, r->what, elements);
        units.shape[t->rank - 1] /= elements;
    }
    const char *wrong = model_tensor_extent(&units, each, &bits);
    if (wrong || __builtin_add_overflow(t->begin, bits / 8, &t->end))
        return bad(r, ISOBIT_E_OVERFLOW, wrong ? wrong : "ends beyond 2^64 bytes");
    if (t->begin % r->alignment)
        return bad(r, ISOBIT_E_OFFSET, "does not begin at a multiple of general.alignment");
    return ISOBIT_OK;
}

static int by_place(const void *a, const void *b) {
    const model_tensor *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* The tensors fill the data, each byte once, but for what aligns the next one. */
static iso_status check_places(reader *r, uint64_t data_bytes) {
    model_header *h = &r->checkpoint->header;
    model_quoted name;
    uint64_t end = 0, next = 0; /* no tensor ends where aligning that could wrap: see below */
    if (h->count)
        qsort(h->tensors, h->count, sizeof *h->tensors, by_place);
    for (size_t i = 0; i < h->count; i++) {
        const model_tensor *t = &h->tensors[i];
        model_quote(&name, t->name, t->name_bytes);
        if (t->begin != next)
            return model_fail(r->error, t->begin < next ? ISOBIT_E_OFFSET : ISOBIT_E_HOLE,
                              "%s: tensor %s begins at byte %llu of the data; it should at %llu, "
                              "where the one before it ends",
                              r->gguf->file, name.text, (unsigned long long)t->begin,
                              (unsigned long long)next);
        end = t->end;
        if (end > data_bytes)
            return model_fail(
                r->error, ISOBIT_E_TRUNCATED,
                "%s: tensor %s ends at byte %llu of the data, of which there are %llu",
                r->gguf->file, name.text, (unsigned long long)end, (unsigned long long)data_bytes);
        next = (end + r->alignment - 1) / r->alignment * r->alignment; /* end: within a file */
    }
    if (data_bytes > next)
        return model_fail(r->error, ISOBIT_E_HOLE,
                          "%s: the last tensor ends at byte %llu of the data, of which there are "
                          "%llu",
                          r->gguf->file, (unsigned long long)end, (unsigned long long)data_bytes);
    return ISOBIT_OK;
}

/* --------------------------------------------------------------------------------- the file */

static iso_status read_head(reader *r) {
    const model_file *f = &r->checkpoint->file;
    char head[HEAD_BYTES];
    if (f->bytes < HEAD_BYTES)
        return bad(r, ISOBIT_E_TRUNCATED, "the file is too short for a GGUF file");
    iso_status status = model_file_read(f, head, 0, HEAD_BYTES, r->error);
    if (status)
        return status;
    const uint64_t version = model_gguf_number(head + 4, 4);
    if (memcmp(head, "GGUF", 4) != 0)
        return bad(r, ISOBIT_E_UNSUPPORTED, "this is no GGUF file: it does not begin with GGUF");
    if (version && version % 65536 == 0)
        return bad(r, ISOBIT_E_UNSUPPORTED,
                   "this is a big-endian GGUF file; isobit reads little-endian ones");
    if (version != 2 && version != 3)
        return model_fail(r->error, ISOBIT_E_UNSUPPORTED,
                          "%s: this is GGUF of version %llu; isobit reads versions 2 and 3",
                          r->gguf->file, (unsigned long long)version);
    r->tensors = model_gguf_number(head + 8, 8);
    r->values = model_gguf_number(head + 16, 8);
    if (r->values > MAX_VALUES || r->tensors > MAX_TENSORS)
        return model_fail(r->error, ISOBIT_E_LIMIT,
                          "%s: %llu values and %llu tensors; at most %d and %d are supported",
                          r->gguf->file, (unsigned long long)r->values,
                          (unsigned long long)r->tensors, MAX_VALUES, MAX_TENSORS);
    if (r->values * LEAST_VALUE + r->tensors * LEAST_TENSOR > f->bytes - HEAD_BYTES)
        return bad(r, ISOBIT_E_TRUNCATED, "the file is too short for what it counts");
    return ISOBIT_OK;
}

static iso_status check_values(reader *r) {
    model_gguf *g = r->gguf;
    const gguf_value *v;
    model_quoted key;
    if (g->count)
        qsort(g->values, g->count, sizeof *g->values, by_key);
    for (size_t i = 1; i < g->count; i++)
        if (by_key(&g->values[i - 1], &g->values[i]) == 0)
            return model_fail(r->error, ISOBIT_E_DUPLICATE, "%s: the key %s occurs twice", g->file,
                              model_quote(&key, g->values[i].key, g->values[i].key_bytes));
    iso_status status = model_gguf_get(g, &v, "general.alignment", GGUF_U32);
    if (!status && v)
        r->alignment = model_gguf_number(v->data, 4);
    if (!status &&
        (r->alignment < 8 || r->alignment > MAX_ALIGNMENT || (r->alignment & (r->alignment - 1))))
        return model_fail(
            r->error, ISOBIT_E_CONFIG,
            "%s: \"general.alignment\" is %llu; a power of 2 from 8 to %d is expected", g->file,
            (unsigned long long)r->alignment, MAX_ALIGNMENT);
    if (!status && !(status = model_gguf_get(g, &v, "split.count", GGUF_U16)) && v &&
        model_gguf_number(v->data, 2) > 1)
        return model_fail(r->error, ISOBIT_E_UNSUPPORTED,
                          "%s is one of %llu files of a model that was split; isobit reads models "
                          "in one file, as llama-gguf-split --merge makes them",
                          g->file, (unsigned long long)model_gguf_number(v->data, 2));
    return status;
}

/* What precedes the data, from so much of the file as there is in r->text. */
static iso_status read_parts(reader *r) {
    model_header *h = &r->checkpoint->header;
    model_arena *arena = &r->checkpoint->arena;
    iso_status status;
    r->at = HEAD_BYTES;
    r->alignment = 32;
    r->gguf->count = h->count = 0;
    /* Every entry has its bytes in the text, or is not reached. */
    const size_t values = (size_t)r->values, tensors = (size_t)r->tensors;
    if (values * LEAST_VALUE + tensors * LEAST_TENSOR > r->bytes - HEAD_BYTES)
        return bad(r, ISOBIT_E_TRUNCATED, "the file is too short for what it counts");
    r->gguf->values = model_alloc(arena, values + 1, sizeof *r->gguf->values);
    h->tensors = model_alloc(arena, tensors + 1, sizeof *h->tensors);
    if (!r->gguf->values || !h->tensors)
        return bad(r, ISOBIT_E_NOMEM, "out of memory for its values and tensors");
    for (size_t i = 0; i < values; i++)
        if ((status = take_value(r, &r->gguf->values[r->gguf->count++])))
            return status;
    name_part(r, "", NULL, 0);
    if ((status = check_values(r)))
        return status;
    for (size_t i = 0; i < tensors; i++)
        if ((status = take_tensor(r, &h->tensors[h->count++])))
            return status;
    name_part(r, "", NULL, 0);
    return ISOBIT_OK;
}

static iso_status check_tensors(reader *r) {
    const model_file *f = &r->checkpoint->file;
    model_header *h = &r->checkpoint->header;
    model_quoted name;
    const uint64_t start = (r->at + r->alignment - 1) / r->alignment * r->alignment;
    r->checkpoint->data_start = start;
    if (start > f->bytes && h->count)
        return bad(r, ISOBIT_E_TRUNCATED, "the file ends before the data of its tensors");
    iso_status status = check_places(r, start > f->bytes ? 0 : f->bytes - start);
    if (status || !h->count)
        return status;
    qsort(h->tensors, h->count, sizeof *h->tensors, model_tensor_order);
    for (size_t i = 1; i < h->count; i++)
        if (model_tensor_order(&h->tensors[i - 1], &h->tensors[i]) == 0)
            return model_fail(r->error, ISOBIT_E_DUPLICATE, "%s: tensor %s occurs twice",
                              r->gguf->file,
                              model_quote(&name, h->tensors[i].name, h->tensors[i].name_bytes));
    return ISOBIT_OK;
}

iso_status model_gguf_open(model_gguf *gguf, model_checkpoint *checkpoint, const char *directory,
                           const char *name, size_t max_header_bytes, iso_error *error) {
    reader r = {.gguf = gguf, .checkpoint = checkpoint, .error = error};
    iso_error why;
    *gguf = (model_gguf){.file = name, .error = error};
    *checkpoint = (model_checkpoint){.file.fd = -1};
    iso_status status = model_file_open(&checkpoint->file, directory, name, error);
    if (status || (status = read_head(&r)))
        return status;
    const uint64_t all = checkpoint->file.bytes;
    const size_t limit = all < max_header_bytes ? (size_t)all : max_header_bytes;
    if (limit < HEAD_BYTES)
        return bad(&r, ISOBIT_E_LIMIT, "max_header_bytes is too small for any GGUF file");
    for (size_t bytes = FIRST_BYTES < limit ? FIRST_BYTES : limit;;) {
        r.text = model_alloc(&checkpoint->arena, bytes, 1);
        r.bytes = bytes;
        if (!r.text)
            return bad(&r, ISOBIT_E_NOMEM, "out of memory for what precedes the tensors");
        if ((status = model_file_read(&checkpoint->file, r.text, 0, bytes, error)))
            return status;
        gguf->error = r.error = &why; /* not the caller's: more of the file may help */
        status = read_parts(&r);
        gguf->error = r.error = error;
        if (!status)
            return check_tensors(&r);
        if (status != ISOBIT_E_TRUNCATED || bytes == all)
            return model_fail(error, status, "%s", why.message);
        name_part(&r, "", NULL, 0);
        if (bytes == limit)
            return bad(&r, ISOBIT_E_LIMIT,
                       "what precedes the tensors is longer than "
                       "max_header_bytes");
        model_arena_free(&checkpoint->arena);
        checkpoint->header = (model_header){0};
        gguf->count = 0;
        bytes = bytes > limit / 4 ? limit : 4 * bytes;
    }
}
