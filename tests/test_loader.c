/* SPDX-License-Identifier: MIT
 *
 * Model files are untrusted. Each rule of the readers is broken here at least once, with the code
 * that it must give; small files are cut at every byte and have every bit of their header flipped,
 * which must never do more than fail. Meant to run under the sanitizers as well.
 */
#include "model_files.h"

#include <isobit/model.h>

#include "weights.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* ------------------------------------------------------------------------- header, in memory */

static iso_status parse(const char *header, size_t bytes, uint64_t data_bytes, iso_error *error) {
    model_arena arena = {0};
    model_header h = {0};
    /* A copy of exactly that size, so that a sanitizer sees every byte read too far. */
    char *text = malloc(bytes ? bytes : 1);
    memcpy(text, header, bytes);
    iso_status status = model_header_parse(&h, &arena, text, bytes, data_bytes, error);
    /* The promise on memory: a small multiple of the header. */
    assert_true(arena.bytes <= 8 * bytes + 1024);
    uint64_t at = 0;
    for (size_t i = 0; i < h.count && !status; i++) {
        assert_true(h.tensors[i].end <= data_bytes);
        at += h.tensors[i].end - h.tensors[i].begin;
        assert_true(h.tensors[i].rank <= MODEL_MAX_RANK);
        assert_int_equal(strlen(h.tensors[i].name), h.tensors[i].name_bytes);
    }
    if (!status)
        assert_true(at == data_bytes);
    free(text);
    model_arena_free(&arena);
    return status;
}

/* An entry "name": {F32, [n], [from, to]}. */
#define T(name, shape, from, to)                                                                   \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":[" shape "],\"data_offsets\":[" from "," to "]}"
#define ENTRY(fields) "{\"a\":{" fields "}}"
#define TYPE "\"dtype\":\"F32\""
#define SHAPE "\"shape\":[2]"
#define SPAN "\"data_offsets\":[0,8]"

typedef struct header_case {
    iso_status status;
    size_t data_bytes;
    const char *text;
} header_case;

static const header_case cases[] = {
    /* What is allowed. */
    {ISOBIT_OK, 0, "{}"},
    {ISOBIT_OK, 0, " \n\t{ }\r  "},
    {ISOBIT_OK, 8, "{" T("a", "2", "0", "8") "}"},
    {ISOBIT_OK, 8,
     "{ \"a\" : { \"data_offsets\" : [ 0 , 8 ] , \"shape\" : [ 2 ] , \"dtype\" : "
     "\"F32\" } } "},
    {ISOBIT_OK, 16, "{" T("b", "2", "8", "16") "," T("a", "1,2,1", "0", "8") "}"},
    {ISOBIT_OK, 4, "{" T("scalar", "", "0", "4") "}"},
    {ISOBIT_OK, 8,
     "{" T("a", "2", "0", "8") "," T("empty", "0", "8", "8") "," T("e2", "3,0", "0", "0") "}"},
    {ISOBIT_OK, 8, "{\"__metadata__\":{\"format\":\"pt\",\"x\":\"\"}," T("a", "2", "0", "8") "}"},
    {ISOBIT_OK, 0, "{\"__metadata__\":{}}"},
    {ISOBIT_OK, 8, "{" T("\\u0061\\n\\ud83d\\ude00\\/", "2", "0", "8") "}"},
    {ISOBIT_OK, 8, "{" T("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "2", "0", "8") "}"},
    {ISOBIT_OK, 4, "{" T("a", "1,1,1,1,1,1,1,1", "0", "4") "}"},
    {ISOBIT_OK, 8,
     ENTRY(TYPE ",\"x\":[1,{\"y\":[-1.5e+3,true,false,null,\"s\"],\"z\":{}},[]]," SHAPE "," SPAN)},
    {ISOBIT_OK, 3, "{\"a\":{\"dtype\":\"F4\",\"shape\":[2,3],\"data_offsets\":[0,3]}}"},
    /* An unknown type is read; using the tensor is what fails. */
    {ISOBIT_OK, 5, "{\"a\":{\"dtype\":\"Q5_K\",\"shape\":[9],\"data_offsets\":[0,5]}}"},

    /* Text. */
    {ISOBIT_E_UTF8, 8, "{" T("\xff", "2", "0", "8") "}"},
    {ISOBIT_E_UTF8, 8, "{" T("\xc0\x80", "2", "0", "8") "}"},
    {ISOBIT_E_UTF8, 8, "{" T("\xe0\x80\x80", "2", "0", "8") "}"},
    {ISOBIT_E_UTF8, 8, "{" T("\xed\xa0\x80", "2", "0", "8") "}"},
    {ISOBIT_E_UTF8, 8, "{" T("\xf4\x90\x80\x80", "2", "0", "8") "}"},
    {ISOBIT_E_UTF8, 0, "{}\x80"},
    {ISOBIT_E_JSON, 0, "[]"},
    {ISOBIT_E_JSON, 0, "{} {}"},
    {ISOBIT_E_JSON, 0, "{}x"},
    {ISOBIT_E_JSON, 0, "{,}"},
    {ISOBIT_E_JSON, 8, "{" T("a", "2", "0", "8") ",}"},
    {ISOBIT_E_JSON, 8, "{" T("a", "2", "0", "8")},
    {ISOBIT_E_JSON, 8, "{'a':1}"},
    {ISOBIT_E_JSON, 8, "{\"a\":1}"},
    {ISOBIT_E_JSON, 8, "{\"a\" {}}"},
    {ISOBIT_E_JSON, 8, "{\"a\":[]}"},
    {ISOBIT_E_JSON, 8, "{" T("a\\x", "2", "0", "8") "}"},
    {ISOBIT_E_JSON, 8, "{" T("a\\u12g4", "2", "0", "8") "}"},
    {ISOBIT_E_JSON, 8, "{" T("\\ud800", "2", "0", "8") "}"},
    {ISOBIT_E_JSON, 8, "{" T("\\udc00", "2", "0", "8") "}"},
    {ISOBIT_E_JSON, 8, "{" T("\\ud800\\u0041", "2", "0", "8") "}"},
    {ISOBIT_E_JSON, 8, "{" T("a\n", "2", "0", "8") "}"},
    {ISOBIT_E_JSON, 0, "{\"a"},
    {ISOBIT_E_JSON, 0, "{\"a\\"},
    {ISOBIT_E_JSON, 0, "{\"a\\u00"},

    /* Names. */
    {ISOBIT_E_DUPLICATE, 16, "{" T("a", "2", "0", "8") "," T("a", "2", "8", "16") "}"},
    {ISOBIT_E_DUPLICATE, 16, "{" T("a", "2", "0", "8") "," T("\\u0061", "2", "8", "16") "}"},
/* The first and the last code point of each length, escaped and as they are. */
#define TWICE(escaped, plain)                                                                      \
    { ISOBIT_E_DUPLICATE, 16, "{" T(escaped, "2", "0", "8") "," T(plain, "2", "8", "16") "}" }
    TWICE("\\u0001", "\\u0001"),
    TWICE("\\u007f", "\x7f"),
    TWICE("\\u0080", "\xc2\x80"),
    TWICE("\\u07ff", "\xdf\xbf"),
    TWICE("\\u0800", "\xe0\xa0\x80"),
    TWICE("\\uffff", "\xef\xbf\xbf"),
    TWICE("\\ud800\\udc00", "\xf0\x90\x80\x80"),
    TWICE("\\udbff\\udfff", "\xf4\x8f\xbf\xbf"),
    {ISOBIT_E_DUPLICATE, 0, "{\"__metadata__\":{},\"__metadata__\":{}}"},
    {ISOBIT_E_DUPLICATE, 0, "{\"__metadata__\":{\"a\":\"\",\"b\":\"\",\"\\u0061\":\"x\"}}"},
    {ISOBIT_E_JSON, 8, "{" T("", "2", "0", "8") "}"},
    {ISOBIT_E_JSON, 8, "{" T("a\\u0000b", "2", "0", "8") "}"},
    {ISOBIT_E_JSON, 0, "{\"__metadata__\":{\"a\":1}}"},
    {ISOBIT_E_JSON, 0, "{\"__metadata__\":{\"a\":{}}}"},
    {ISOBIT_E_JSON, 0, "{\"__metadata__\":[]}"},
    {ISOBIT_E_JSON, 0, "{\"__metadata__\":{\"a\":\"b\",}}"},
    {ISOBIT_E_JSON, 0, "{\"__metadata__\":{\"a\"}}"},

    {ISOBIT_E_JSON, 0, "{\"__metadata__\":{\"a\" \"b\"}}"},

    /* Fields. */
    {ISOBIT_E_MISSING, 8, ENTRY("")},
    {ISOBIT_E_MISSING, 8, ENTRY(TYPE "," SHAPE)},
    {ISOBIT_E_MISSING, 8, ENTRY(TYPE "," SPAN)},
    {ISOBIT_E_MISSING, 8, ENTRY(SHAPE "," SPAN)},
    {ISOBIT_E_DUPLICATE, 8, ENTRY(TYPE "," TYPE "," SHAPE "," SPAN)},
    {ISOBIT_E_DUPLICATE, 8, ENTRY(TYPE "," SHAPE "," SPAN "," SHAPE)},
    {ISOBIT_E_DUPLICATE, 8, ENTRY(TYPE "," SPAN "," SHAPE ",\"data_off\\u0073ets\":[0,8]")},
    {ISOBIT_E_JSON, 8, ENTRY("\"dtype\":32," SHAPE "," SPAN)},
    {ISOBIT_E_JSON, 8, ENTRY(TYPE ",\"shape\":2," SPAN)},
    {ISOBIT_E_JSON, 8, ENTRY(TYPE ",\"shape\":[\"2\"]," SPAN)},
    {ISOBIT_E_JSON, 8, ENTRY(TYPE ",\"shape\":[[2]]," SPAN)},
    {ISOBIT_E_JSON, 8, ENTRY(TYPE ",\"shape\":[2,]," SPAN)},
    {ISOBIT_E_JSON, 8, ENTRY(TYPE ",\"shape\":[2" SPAN)},
    {ISOBIT_E_JSON, 8, ENTRY(TYPE "," SHAPE ",\"data_offsets\":[0]")},
    {ISOBIT_E_JSON, 8, ENTRY(TYPE "," SHAPE ",\"data_offsets\":[]")},
    {ISOBIT_E_JSON, 8, ENTRY(TYPE "," SHAPE ",\"data_offsets\":[0,8,9]")},
    {ISOBIT_E_JSON, 8, ENTRY(TYPE " " SHAPE "," SPAN)},
    {ISOBIT_E_JSON, 8, ENTRY("\"dtype\" \"F32\"," SHAPE "," SPAN)},
    {ISOBIT_E_JSON, 8, ENTRY(TYPE "," SHAPE "," SPAN ",\"x\":{\"y\" 2}")},
    {ISOBIT_E_JSON, 8, ENTRY(TYPE "," SHAPE "," SPAN ",\"x\":{\"y\":1,\"z\" 2}")},
    {ISOBIT_E_JSON, 8, ENTRY(TYPE "," SHAPE "," SPAN ",\"x\":{\"y\":1,2:2}")},
    {ISOBIT_E_JSON, 8, ENTRY(TYPE "," SHAPE "," SPAN ",")},
    {ISOBIT_E_JSON, 8, ENTRY(TYPE "," SHAPE "," SPAN ",\"x\":nul")},
    {ISOBIT_E_JSON, 8, ENTRY(TYPE "," SHAPE "," SPAN ",\"x\":01")},
    {ISOBIT_E_JSON, 8, ENTRY(TYPE "," SHAPE "," SPAN ",\"x\":1.")},
    {ISOBIT_E_JSON, 8, ENTRY(TYPE "," SHAPE "," SPAN ",\"x\":1e")},
    {ISOBIT_E_JSON, 8, ENTRY(TYPE "," SHAPE "," SPAN ",\"x\":-")},
    {ISOBIT_E_JSON, 8, ENTRY(TYPE "," SHAPE "," SPAN ",\"x\":[1 2]")},
    {ISOBIT_E_JSON, 8, ENTRY(TYPE "," SHAPE "," SPAN ",\"x\":[1}")},
    {ISOBIT_E_JSON, 8, ENTRY(TYPE "," SHAPE "," SPAN ",\"x\":{1:2}")},
    {ISOBIT_E_JSON, 8, ENTRY(TYPE "," SHAPE "," SPAN ",\"x\":{\"y\",2}")},
    {ISOBIT_E_JSON, 8, ENTRY(TYPE "," SHAPE "," SPAN ",\"x\\u0000\":1")},

    /* Numbers. */
    {ISOBIT_E_JSON, 8, "{" T("a", "-2", "0", "8") "}"},
    {ISOBIT_E_JSON, 8, "{" T("a", "+2", "0", "8") "}"},
    {ISOBIT_E_JSON, 8, "{" T("a", "2.0", "0", "8") "}"},
    {ISOBIT_E_JSON, 8, "{" T("a", "2e0", "0", "8") "}"},
    {ISOBIT_E_JSON, 8, "{" T("a", "02", "0", "8") "}"},
    {ISOBIT_E_JSON, 8, "{" T("a", "2", "00", "8") "}"},
    {ISOBIT_E_JSON, 8, "{" T("a", "2", "-0", "8") "}"},
    {ISOBIT_E_OVERFLOW, 8, "{" T("a", "9223372036854775808", "0", "8") "}"},
    {ISOBIT_E_OVERFLOW, 8, "{" T("a", "2", "0", "18446744073709551624") "}"},
    {ISOBIT_E_OVERFLOW, 8, "{" T("a", "99999999999999999999999999999", "0", "8") "}"},
    {ISOBIT_E_LIMIT, 4, "{" T("a", "1,1,1,1,1,1,1,1,1", "0", "4") "}"},
    {ISOBIT_E_LIMIT, 8, ENTRY(TYPE "," SHAPE ",\"data_offsets\":[0,8,9,9]")},

    /* Shape times element size. Products that wrap to the right number, or to 0, or hide by a 0. */
    {ISOBIT_E_OFFSET, 8, "{" T("a", "3", "0", "8") "}"},
    {ISOBIT_E_OFFSET, 8, "{" T("a", "2,0", "0", "8") "}"},
    {ISOBIT_E_OFFSET, 8, "{" T("a", "", "0", "8") "}"},
    {ISOBIT_E_OFFSET, 8, "{\"a\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,8]}}"},
    {ISOBIT_E_OFFSET, 1, "{\"a\":{\"dtype\":\"F4\",\"shape\":[1],\"data_offsets\":[0,1]}}"},
    {ISOBIT_E_OVERFLOW, 0, "{" T("a", "4294967296,4294967296", "0", "0") "}"},
    {ISOBIT_E_OVERFLOW, 8, "{" T("a", "4611686018427387904,4", "0", "8") "}"},
    {ISOBIT_E_OVERFLOW, 0, "{" T("a", "1152921504606846976", "0", "0") "}"},
    {ISOBIT_E_OVERFLOW, 0, "{" T("a", "0,4294967296,4294967296", "0", "0") "}"},

    /* The data. */
    {ISOBIT_E_OFFSET, 8, "{" T("a", "2", "8", "0") "}"},
    {ISOBIT_E_OFFSET, 12, "{" T("a", "2", "0", "8") "," T("b", "2", "4", "12") "}"},
    {ISOBIT_E_OFFSET, 8, "{" T("a", "2", "0", "8") "," T("b", "2", "0", "8") "}"},
    {ISOBIT_E_OFFSET, 8, "{" T("a", "2", "0", "8") "," T("b", "0", "4", "4") "}"},
    {ISOBIT_E_HOLE, 12, "{" T("a", "2", "4", "12") "}"},
    {ISOBIT_E_HOLE, 20, "{" T("a", "2", "0", "8") "," T("b", "2", "12", "20") "}"},
    {ISOBIT_E_HOLE, 12, "{" T("a", "2", "0", "8") "}"},
    {ISOBIT_E_HOLE, 1, "{}"},
    {ISOBIT_E_TRUNCATED, 7, "{" T("a", "2", "0", "8") "}"},
    {ISOBIT_E_TRUNCATED, 8, "{" T("a", "2", "0", "8") "," T("b", "2", "8", "16") "}"},
    {ISOBIT_E_TRUNCATED, 0, "{" T("a", "134217728,1073741824", "0", "576460752303423488") "}"},
};

static void test_header_rules(void **state) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        iso_error error = {0};
        const header_case *c = &cases[i];
        iso_status status = parse(c->text, strlen(c->text), c->data_bytes, &error);
        if (status != c->status)
            fail_msg("case %zu, %s: status %d (%s), expected %d", i, c->text, (int)status,
                     error.message, (int)c->status);
        if (status) {
            assert_int_equal(error.status, status);
            assert_true(strlen(error.message) > 10);
        }
        for (const char *m = error.message; *m; m++)
            assert_true(*m >= ' ' && *m < 127);
    }
    (void)state;
}

/* Eight elements of each type span as many bytes as one element has bits. */
static void test_types(void **state) {
    static const struct {
        const char *name;
        uint64_t bits;
    } types[] = {{"F32", 32},    {"F16", 16},        {"BF16", 16},       {"BOOL", 8},
                 {"U8", 8},      {"I8", 8},          {"F8_E5M2", 8},     {"F8_E4M3", 8},
                 {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
                 {"U16", 16},    {"I32", 32},        {"U32", 32},        {"I64", 64},
                 {"U64", 64},    {"F64", 64},        {"C64", 64},        {"F4", 4},
                 {"F6_E2M3", 6}, {"F6_E3M2", 6}};
    iso_error error;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (uint64_t bytes = types[i].bits - 1; bytes <= types[i].bits + 1; bytes++) {
            char text[160];
            int n = snprintf(text, sizeof text,
                             "{\"a\":{\"dtype\":\"%s\",\"shape\":[8],\"data_offsets\":[0,%d]}}",
                             types[i].name, (int)bytes);
            assert_int_equal(parse(text, (size_t)n, bytes, &error),
                             bytes == types[i].bits ? ISOBIT_OK : ISOBIT_E_OFFSET);
        }
    (void)state;
}

static void test_header_limits(void **state) {
    iso_error error = {0};
    blob b = {0};
    /* A name of 4096 bytes, and one of 4097. */
    for (size_t bytes = 4096; bytes <= 4097; bytes++) {
        b.count = 0;
        blob_add(&b, "{\"", 2);
        for (size_t i = 0; i < bytes; i++)
            blob_add(&b, "n", 1);
        static const char rest[] = "\":{" TYPE "," SHAPE "," SPAN "}}";
        blob_add(&b, rest, sizeof rest - 1);
        assert_int_equal(parse((char *)b.bytes, b.count, 8, &error),
                         bytes == 4096 ? ISOBIT_OK : ISOBIT_E_LIMIT);
        assert_true(strlen(error.message) < 300);
    }
    /* An unknown field that nests too deeply, and one that does not. */
    for (size_t depth = 32; depth <= 100000; depth += 99968) {
        b.count = 0;
        static const char first[] = "{\"a\":{" TYPE "," SHAPE "," SPAN ",\"x\":";
        blob_add(&b, first, sizeof first - 1);
        for (size_t i = 0; i < depth; i++)
            blob_add(&b, "[", 1);
        for (size_t i = 0; i < depth; i++)
            blob_add(&b, "]", 1);
        blob_add(&b, "}}", 2);
        assert_int_equal(parse((char *)b.bytes, b.count, 8, &error),
                         depth == 32 ? ISOBIT_OK : ISOBIT_E_LIMIT);
    }
    /* Text that looks like very many entries must not make us reserve much: parse() checks. */
    for (int kind = 0; kind < 3; kind++) {
        static const char *const unit[] = {":", "\"\":", "{\"a\":"};
        b.count = 0;
        blob_add(&b, kind == 1 ? "{\"__metadata__\":{" : "{\"", kind == 1 ? 17 : 2);
        for (size_t i = 0; i < 20000; i++)
            blob_add(&b, unit[kind], strlen(unit[kind]));
        assert_true(parse((char *)b.bytes, b.count, 8, &error) != ISOBIT_OK);
    }
    blob_free(&b);
    (void)state;
}

static const char seed[] =
    "{\"__metadata__\":{\"format\":\"pt\"},\"w\\u00e9\":{\"dtype\":\"F32\",\"shape\":[2,3],"
    "\"data_offsets\":[0,24]},\"b\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[24,32],"
    "\"x\":[1,{\"y\":-2e5}]}} ";

static void test_header_mutations(void **state) {
    iso_error error = {0};
    const size_t bytes = sizeof seed - 1;
    char text[sizeof seed];
    assert_int_equal(parse(seed, bytes, 32, &error), ISOBIT_OK);
    for (size_t n = 0; n + 1 < bytes; n++) /* the last byte is a space */
        assert_int_not_equal(parse(seed, n, 32, &error), ISOBIT_OK);
    size_t accepted = 0;
    for (size_t i = 0; i < bytes; i++)
        for (int bit = 0; bit < 8; bit++) {
            memcpy(text, seed, bytes);
            text[i] = (char)(text[i] ^ 1 << bit);
            accepted += parse(text, bytes, 32, &error) == ISOBIT_OK;
        }
    /* Only letters of names, types that are as wide, and unknown fields can change unnoticed. */
    assert_true(accepted < bytes * 2);
    /* Every byte replaced by every structural character, and every byte left out. */
    static const char structural[] = "{}[]:,\"\\0129-eE. \x01\x7f\xff";
    for (size_t i = 0; i < bytes; i++) {
        for (size_t k = 0; k < sizeof structural - 1; k++) {
            memcpy(text, seed, bytes);
            text[i] = structural[k];
            parse(text, bytes, 32, &error);
        }
        memcpy(text, seed, i);
        memcpy(text + i, seed + i + 1, bytes - i - 1);
        parse(text, bytes - 1, 32, &error);
    }
    (void)state;
}

/* ------------------------------------------------------------------------------------- files */

static iso_status load(const files *f, const iso_load_options *options, iso_error *error) {
    iso_model *model = NULL;
    *error = (iso_error){0};
    iso_status status = iso_model_load(&model, f->directory, options, NULL, error);
    if (status) {
        assert_null(model); /* untouched */
        assert_int_equal(error->status, status);
        assert_true(error->message[0] != 0 && !strchr(error->message, '\n'));
    }
    iso_model_free(model);
    return status;
}

#define V 7
#define D 8
#define FFN 12
#define IDS ",\"eos_token_id\":2,\"decoder_start_token_id\":1,\"pad_token_id\":0"

static void good_model(const files *f) {
    builder b = {.state = 1};
    files_config(f, "marian", V, D, 2, FFN, IDS);
    builder_model(&b, V, D, FFN, 1);
    builder_write(&b, f);
}

static void test_file_length(void **state) {
    files f;
    iso_error error;
    iso_load_options small = {.size = sizeof small, .max_header_bytes = 64};
    files_make(&f);
    good_model(&f);
    assert_int_equal(load(&f, NULL, &error), ISOBIT_OK);
    assert_int_equal(load(&f, &small, &error), ISOBIT_E_HEADER_SIZE);
    static const struct {
        unsigned char bytes[12];
        size_t count;
        iso_status status;
    } short_files[] = {
        {{0}, 0, ISOBIT_E_TRUNCATED},
        {{2}, 7, ISOBIT_E_TRUNCATED},
        {{0}, 8, ISOBIT_E_HEADER_SIZE},
        {{1, 0, 0, 0, 0, 0, 0, 0, '{'}, 9, ISOBIT_E_HEADER_SIZE},
        {{2, 0, 0, 0, 0, 0, 0, 0, '{'}, 9, ISOBIT_E_TRUNCATED},
        {{2, 0, 0, 0, 0, 0, 0, 0, '{', '}'}, 10, ISOBIT_E_MISSING}, /* a file, but no tensor */
        {{0, 0xe1, 0xf5, 0x05}, 12, ISOBIT_E_TRUNCATED},            /* 100,000,000 */
        {{1, 0xe1, 0xf5, 0x05}, 12, ISOBIT_E_HEADER_SIZE},          /* one more */
        {{0, 0, 0, 0, 0, 0, 0, 0x80}, 12, ISOBIT_E_HEADER_SIZE},
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 12, ISOBIT_E_HEADER_SIZE},
        {{0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 12, ISOBIT_E_HEADER_SIZE}, /* wraps */
    };
    for (size_t i = 0; i < sizeof short_files / sizeof *short_files; i++) {
        files_write(&f, "model.safetensors", short_files[i].bytes, short_files[i].count);
        assert_int_equal(load(&f, NULL, &error), short_files[i].status);
    }
    files_remove(&f);
    (void)state;
}

static unsigned char *read_all(const files *f, size_t *bytes) {
    char path[160];
    files_path(f, "model.safetensors", path, sizeof path);
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    assert_int_equal(fseek(in, 0, SEEK_END), 0);
    *bytes = (size_t)ftell(in);
    rewind(in);
    unsigned char *data = malloc(*bytes);
    assert_int_equal(fread(data, 1, *bytes, in), *bytes);
    (void)fclose(in);
    return data;
}

/* The whole loader on files that are cut, and whose header has one bit flipped. */
static void test_file_mutations(void **state) {
    files f;
    iso_error error;
    size_t bytes, header = 8;
    files_make(&f);
    good_model(&f);
    unsigned char *data = read_all(&f, &bytes);
    for (int i = 0; i < 2; i++)
        header += (size_t)data[i] << (8 * i);
    /* In place: replacing thousands of files is what would take the time. */
    char path[160];
    files_path(&f, "model.safetensors", path, sizeof path);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (size_t i = 0; i < header; i++)
        for (int bit = 0; bit < 8; bit++) {
            const unsigned char flipped = (unsigned char)(data[i] ^ 1 << bit);
            assert_int_equal(pwrite(fd, &flipped, 1, (off_t)i), 1);
            load(&f, NULL, &error);
            assert_int_equal(pwrite(fd, &data[i], 1, (off_t)i), 1);
        }
    assert_int_equal(load(&f, NULL, &error), ISOBIT_OK);
    for (size_t n = bytes - 1;; n -= n > header ? (bytes - header) / 64 : 1) {
        assert_int_equal(ftruncate(fd, (off_t)n), 0);
        assert_int_equal(load(&f, NULL, &error), ISOBIT_E_TRUNCATED);
        if (n == 0)
            break;
    }
    assert_int_equal(close(fd), 0);
    /* One byte more than the tensors claim. */
    files_write(&f, "model.safetensors", data, bytes);
    assert_int_equal(load(&f, NULL, &error), ISOBIT_OK);
    data = realloc(data, bytes + 1);
    data[bytes] = 0;
    files_write(&f, "model.safetensors", data, bytes + 1);
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_HOLE);
    free(data);
    files_remove(&f);
    (void)state;
}

static void test_not_a_file(void **state) {
    files f;
    iso_error error;
    char path[160];
    files_make(&f);
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_MISSING); /* no config.json */
    assert_non_null(strstr(error.message, "config.json"));
    good_model(&f);
    files_path(&f, "model.safetensors", path, sizeof path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_MISSING);
    files_text(&f, "pytorch_model.bin", "");
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_TRUNCATED);
    assert_non_null(strstr(error.message, "pytorch_model.bin"));
    assert_int_equal(mkfifo(path, 0600), 0); /* would block a careless reader for ever */
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_IO);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_IO);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink("model.safetensors", path), 0); /* leads to itself */
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_IO);
    assert_non_null(strstr(error.message, "cannot be opened"));
    assert_int_equal(unlink(path), 0);
    files_remove(&f);
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_MISSING); /* no directory */
    (void)state;
}

/* An executor whose first region adds a byte to the weights, while they are being packed. */
static void growing_for(void *user, size_t n, void (*fn)(void *, size_t), void *arg) {
    const char **path = user;
    if (*path) {
        struct stat st;
        assert_int_equal(stat(*path, &st), 0);
        assert_int_equal(truncate(*path, st.st_size + 1), 0);
        *path = NULL;
    }
    for (size_t i = 0; i < n; i++)
        fn(arg, i);
}

static void test_file_grows(void **state) {
    files f;
    iso_error error = {0};
    iso_model *model = NULL;
    char path[160];
    files_make(&f);
    good_model(&f);
    files_path(&f, "model.safetensors", path, sizeof path);
    const char *grows = path;
    const iso_executor executor = {growing_for, &grows, 2};
    const iso_context context = {.size = sizeof context, .executor = &executor};
    assert_int_equal(iso_model_load(&model, f.directory, NULL, &context, &error), ISOBIT_E_IO);
    assert_null(grows);
    assert_null(model);
    assert_non_null(strstr(error.message, "changed"));
    files_remove(&f);
    (void)state;
}

/* ------------------------------------------------------------------------ tensors and config */

static void test_tensors(void **state) {
    files f;
    iso_error error;
    files_make(&f);
    static const char name[] = "model.decoder.layers.0.encoder_attn.v_proj.weight";
    static const struct {
        const char *dtype;
        iso_status status;
    } types[] = {
        {"I32", ISOBIT_E_DTYPE}, {"U32", ISOBIT_E_DTYPE}, {"Q4_0\\n", ISOBIT_E_UNSUPPORTED}};
    good_model(&f);
    for (size_t i = 0; i < 3; i++) {
        builder b = {.state = 1, .odd = name, .dtype = types[i].dtype};
        builder_model(&b, V, D, FFN, 1);
        builder_write(&b, &f);
        assert_int_equal(load(&f, NULL, &error), types[i].status);
        assert_non_null(strstr(error.message, name));
    }
    /* Each tensor missing. */
    static const char *const missing[] = {"model.shared.weight", "final_logits_bias",
                                          "model.encoder.layers.0.fc1.bias", name};
    for (size_t i = 0; i < 4; i++) {
        builder b = {.state = 1, .skip = missing[i]};
        builder_model(&b, V, D, FFN, 1);
        builder_write(&b, &f);
        assert_int_equal(load(&f, NULL, &error), ISOBIT_E_MISSING);
        assert_non_null(strstr(error.message, missing[i]));
    }
    /* Other shapes than config.json says: width, vocabulary, bias without its leading 1. */
    static const struct {
        size_t v, d, f;
    } shapes[] = {{V, D + 2, FFN}, {V + 1, D, FFN}, {V - 1, D, FFN}, {V, D, FFN + 1}};
    for (size_t i = 0; i < 4; i++) {
        builder b = {.state = 1};
        builder_model(&b, shapes[i].v, shapes[i].d, shapes[i].f, 1);
        builder_write(&b, &f);
        assert_int_equal(load(&f, NULL, &error), ISOBIT_E_SHAPE);
        assert_non_null(strstr(error.message, "expected"));
    }
    builder b = {.state = 1};
    builder_model(&b, V, D, FFN, 0);
    builder_tensor(&b, "final_logits_bias", V, 0, 0, 1);
    builder_write(&b, &f);
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_SHAPE);
    /* A stored position table of another size; one more tensor that nobody knows is fine. */
    b = (builder){.state = 1};
    builder_model(&b, V, D, FFN, 1);
    builder_tensor(&b, "model.encoder.embed_positions.weight", 5, D, 0, 1);
    builder_write(&b, &f);
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_SHAPE);
    b = (builder){.state = 1};
    builder_model(&b, V, D, FFN, 1);
    builder_tensor(&b, "something.else", 5, 3, 0, 1);
    builder_write(&b, &f);
    assert_int_equal(load(&f, NULL, &error), ISOBIT_OK);
    files_remove(&f);
    (void)state;
}

/* Sizes that no file can have by now, but that a change of a limit could let through. */
static void test_impossible_sizes(void **state) {
    iso_error error = {0};
    model_arena arena = {0};
    model_tensor t = {.name = "a", .name_bytes = 1, .dtype = MODEL_F32, .rank = 2};
    model_checkpoint c = {.file.fd = -1, .header = {&t, 1}};
    model_source source = {.checkpoint = &c, .arena = &arena, .error = &error};
    const char *const names[] = {"a", "a"};
    const float *rows;
    model_linear packed;
    t.shape[0] = 1, t.shape[1] = SIZE_MAX / 16 + 1;
    assert_int_equal(model_take_rows(&source, &rows, "a", 1, SIZE_MAX / 16 + 1), ISOBIT_E_OVERFLOW);
    source.load = 1;
    t.shape[0] = SIZE_MAX / 2 + 1, t.shape[1] = 1;
    assert_int_equal(model_take_packed(&source, &packed, names, 2, SIZE_MAX / 2 + 1, 1, 0),
                     ISOBIT_E_OVERFLOW);
    assert_int_equal(model_take_packed(&source, &packed, names, 1, SIZE_MAX / 2 + 1, 1, 0),
                     ISOBIT_E_OVERFLOW);
    model_arena_free(&source.scratch);
    model_arena_free(&arena);
    (void)state;
}

/* Two embeddings of their own, of which one or both are not there. */
static void test_unshared_embeddings(void **state) {
    files f;
    iso_error error;
    files_make(&f);
    files_config(&f, "marian", V, D, 2, FFN, IDS ",\"share_encoder_decoder_embeddings\":false");
    for (int have = 0; have < 4; have++) {
        builder b = {.state = 1, .skip = "model.shared.weight"};
        builder_model(&b, V, D, FFN, 1);
        if (have & 1)
            builder_tensor(&b, "model.encoder.embed_tokens.weight", V, D, 0, 1);
        if (have & 2)
            builder_tensor(&b, "model.decoder.embed_tokens.weight", V, D, 0, 1);
        builder_write(&b, &f);
        assert_int_equal(load(&f, NULL, &error), have == 3 ? ISOBIT_OK : ISOBIT_E_MISSING);
        if (have != 3)
            assert_non_null(strstr(error.message, have == 2 ? "encoder.embed" : "decoder.embed"));
    }
    files_remove(&f);
    (void)state;
}

/* A computed table of positions holds at most 2^26 elements. */
static void test_most_positions(void **state) {
    static const struct {
        size_t d, positions;
        iso_status status;
    } tables[] = {{64, 1 << 20, ISOBIT_E_RANGE}, {265, 253241, ISOBIT_E_LIMIT}};
    iso_load_options reject = {.size = sizeof reject, .reject_nonfinite = 1};
    files f;
    iso_error error;
    files_make(&f);
    for (size_t i = 0; i < 2; i++) {
        char more[200];
        builder b = {.state = 1, .skip = "model.shared.weight"};
        (void)snprintf(more, sizeof more, IDS ",\"max_position_embeddings\":%zu",
                       tables[i].positions);
        files_config(&f, "marian", V, tables[i].d, 1, FFN, more);
        builder_model(&b, V, tables[i].d, FFN, 1);
        b.skip = NULL; /* ends the load before the table, which is found to be possible first */
        builder_tensor(&b, "model.shared.weight", V, tables[i].d, NAN, 0);
        builder_write(&b, &f);
        assert_int_equal(load(&f, &reject, &error), tables[i].status);
    }
    files_remove(&f);
    (void)state;
}

/* Text files of just the most bytes that are read at all (then they are not JSON), and one more. */
static void test_largest_texts(void **state) {
    static const struct {
        const char *name;
        off_t most;
    } texts[] = {{"config.json", (off_t)4 << 20},
                 {"tokenizer_config.json", (off_t)4 << 20},
                 {"vocab.json", (off_t)64 << 20}};
    files f;
    iso_error error;
    iso_tokenizer *t;
    files_make(&f);
    for (size_t i = 0; i < 3; i++)
        for (int more = 0; more < 2; more++) {
            char path[160];
            files_text(&f, "config.json", "{}");
            files_text(&f, "tokenizer_config.json", "{\"tokenizer_class\":\"isobit-characters\"}");
            files_text(&f, "vocab.json", "{}");
            files_path(&f, texts[i].name, path, sizeof path);
            assert_int_equal(truncate(path, texts[i].most + more), 0);
            assert_int_equal(i ? iso_tokenizer_load(&t, f.directory, &error)
                               : load(&f, NULL, &error),
                             more ? ISOBIT_E_LIMIT : ISOBIT_E_JSON);
        }
    files_remove(&f);
    (void)state;
}

/* A table of positions is computed once, for both stacks; 1024 of them are most of this model. */
static void test_positions_are_shared(void **state) {
    files f;
    iso_error error;
    iso_model *model;
    const size_t table = 1024 * D * sizeof(float);
    files_make(&f);
    good_model(&f);
    assert_int_equal(iso_model_load(&model, f.directory, NULL, NULL, &error), ISOBIT_OK);
    assert_ptr_equal(model->encoder.positions, model->decoder.positions);
    const size_t bytes = iso_model_get_info(model)->weight_bytes;
    assert_in_range(bytes, table, 2 * table - 1);
    iso_model_free(model);
    files_remove(&f);
    (void)state;
}

static void test_arguments(void **state) {
    files f;
    iso_error error = {0};
    iso_model *model = NULL;
    files_make(&f);
    good_model(&f);
    assert_int_equal(iso_model_load(NULL, f.directory, NULL, NULL, &error), ISOBIT_E_NULL);
    assert_int_equal(iso_model_load(&model, NULL, NULL, NULL, &error), ISOBIT_E_NULL);
    iso_context context = {.size = 1};
    assert_int_equal(iso_model_load(&model, f.directory, NULL, &context, &error), ISOBIT_E_SIZE);
    /* A set that is none of the library's: found out by the first op. */
    context = (iso_context){.size = sizeof context, .isa = (const iso_isa *)(const void *)&error};
    assert_int_equal(iso_model_load(&model, f.directory, NULL, &context, &error), ISOBIT_E_ISA);
    assert_non_null(strstr(error.message, iso_strerror(ISOBIT_E_ISA)));
    assert_null(model);
    uint32_t code;
    assert_int_equal(model_utf8("a", 0, &code), 0);
    /* Too long, a surrogate, beyond the last one; and their neighbours, which are right. */
    assert_int_equal(model_utf8("\xe0\x9f\xbf", 3, &code), 0);
    assert_int_equal(model_utf8("\xe0\xa0\x80", 3, &code), 3);
    assert_int_equal(model_utf8("\xf0\x8f\xbf\xbf", 4, &code), 0);
    assert_int_equal(model_utf8("\xf0\x90\x80\x80", 4, &code), 4);
    assert_int_equal(model_utf8("\xed\xa0\x80", 3, &code), 0);
    assert_int_equal(model_utf8("\xed\x9f\xbf", 3, &code), 3);
    assert_int_equal(model_utf8("\xf4\x90\x80\x80", 4, &code), 0);
    assert_int_equal(model_utf8("\xf4\x8f\xbf\xbf", 4, &code), 4);
    assert_int_equal(code, 0x10ffff);
    files_remove(&f);
    (void)state;
}

static void test_nonfinite(void **state) {
    files f;
    iso_error error;
    files_make(&f);
    files_config(&f, "marian", V, D, 2, FFN, IDS);
    iso_load_options reject = {.size = sizeof reject, .reject_nonfinite = 1};
    for (int i = 0; i < 3; i++) {
        const float values[] = {0, NAN, -INFINITY};
        builder b = {.state = 1};
        builder_model(&b, V, D, FFN, 0);
        builder_tensor(&b, "final_logits_bias", 1, V, values[i], 0);
        builder_write(&b, &f);
        assert_int_equal(load(&f, NULL, &error), ISOBIT_OK); /* legal data */
        assert_int_equal(load(&f, &reject, &error), i ? ISOBIT_E_RANGE : ISOBIT_OK);
        if (i)
            assert_non_null(strstr(error.message, "final_logits_bias"));
    }
    iso_load_options bad = {.size = 1};
    assert_int_equal(load(&f, &bad, &error), ISOBIT_E_SIZE);
    files_remove(&f);
    (void)state;
}

/* F16 and BF16 bit patterns of all kinds, seen through the encoder's embedding. */
static void test_conversions(void **state) {
    for (int bf16 = 0; bf16 < 2; bf16++) {
        model_arena arena = {0};
        model_checkpoint c;
        files f;
        files_make(&f);
        char header[120];
        (void)snprintf(header, sizeof header,
                       "{\"a\":{\"dtype\":\"%s\",\"shape\":[65536],\"data_offsets\":[0,131072]}}",
                       bf16 ? "BF16" : "F16");
        blob b = blob_file(header, strlen(header), 0); /* its data begins at any alignment */
        for (uint32_t i = 0; i < 65536; i++) {
            const unsigned char half[] = {(unsigned char)i, (unsigned char)(i >> 8)};
            blob_add(&b, half, 2);
        }
        files_write(&f, "model.safetensors", b.bytes, b.count);
        blob_free(&b);
        iso_error error = {0};
        const float *values;
        const char *name = "a";
        assert_int_equal(model_checkpoint_open(&c, f.directory, "model.safetensors", 1000, &error),
                         0);
        model_source source = {.checkpoint = &c, .arena = &arena, .error = &error};
        for (source.load = 0; source.load < 2; source.load++)
            assert_int_equal(model_take_vector(&source, &values, &name, 1, 65536, 0), 0);
        assert_int_equal(model_source_finish(&source), 0);
        for (uint32_t i = 0; i < 65536; i++) {
            const uint32_t exponent = i >> 10 & 31, fraction = i & 1023;
            float expected;
            if (bf16) {
                uint32_t bits = i << 16;
                memcpy(&expected, &bits, 4);
            } else {
                expected = exponent == 31  ? (fraction ? NAN : INFINITY)
                           : exponent == 0 ? ldexpf((float)fraction, -24)
                                           : ldexpf((float)(1024 + fraction), (int)exponent - 25);
                expected = i & 0x8000 ? -expected : expected;
            }
            if (isnan(expected)) {
                assert_true(isnan(values[i]));
                continue;
            }
            assert_memory_equal(&values[i], &expected, 4);
        }
        model_arena_free(&source.scratch);
        model_arena_free(&arena);
        model_checkpoint_close(&c);
        files_remove(&f);
    }
    (void)state;
}

typedef struct config_case {
    iso_status status;
    const char *text; /* replaces the whole file if it does not begin with a comma */
    const char *says;
} config_case;

#define SIZES                                                                                      \
    "\"encoder_layers\":1,\"decoder_layers\":1,\"encoder_attention_heads\":2,"                     \
    "\"decoder_attention_heads\":2,\"encoder_ffn_dim\":12,\"decoder_ffn_dim\":12"
#define MARIAN "{\"model_type\":\"marian\",\"vocab_size\":7,\"d_model\":8," SIZES IDS

static const config_case configs[] = {
    {ISOBIT_OK, ",\"unknown\":{\"x\":[1]},\"num_beams\":null,\"max_length\":20.0", NULL},
    {ISOBIT_OK, ",\"model_max_length\":1000000000000000019884624838656", NULL},
    {ISOBIT_OK, ",\"bad_words_ids\":[[0],[1,2]],\"early_stopping\":\"never\"", NULL},
    /* Each limit is allowed, and not one more or less. */
    {ISOBIT_OK,
     ",\"num_beams\":1024,\"max_length\":2,\"max_new_tokens\":1,\"min_length\":0,"
     "\"min_new_tokens\":0,\"no_repeat_ngram_size\":0,\"repetition_penalty\":0.5",
     NULL},
    {ISOBIT_OK,
     ",\"num_beams\":1,\"max_length\":2147483648,\"max_new_tokens\":2147483648,"
     "\"min_length\":2147483648,\"min_new_tokens\":2147483648,"
     "\"no_repeat_ngram_size\":2147483648,\"forced_eos_token_id\":[0,6]",
     NULL},
    {ISOBIT_E_CONFIG, ",\"max_length\":2147483649", "max_length"},
    {ISOBIT_E_CONFIG, ",\"max_new_tokens\":2147483649", "max_new_tokens"},
    {ISOBIT_E_CONFIG, ",\"min_length\":2147483649", "min_length"},
    {ISOBIT_E_CONFIG, ",\"min_new_tokens\":2147483649", "min_new_tokens"},
    {ISOBIT_E_CONFIG, ",\"no_repeat_ngram_size\":2147483649", "no_repeat_ngram_size"},
    {ISOBIT_E_LIMIT, "{\"model_type\":\"marian\",\"d_model\":8208}", "513"},
    {ISOBIT_OK, ",\"length_penalty\":-1000000,\"repetition_penalty\":1e30", NULL},
    {ISOBIT_E_CONFIG, ",\"length_penalty\":-1000001", "length_penalty"},
    {ISOBIT_E_CONFIG, ",\"repetition_penalty\":1.1e30", "repetition_penalty"},
    {ISOBIT_E_JSON, "", NULL},
    {ISOBIT_E_JSON, "[]", NULL},
    {ISOBIT_E_JSON, "{\"model_type\":\"marian\"", NULL},
    {ISOBIT_E_UTF8, "{\"model_type\":\"\xff\"}", NULL},
    {ISOBIT_E_DUPLICATE, MARIAN ",\"d_model\":8}", NULL},
    {ISOBIT_E_MISSING, "{}", "model_type"},
    {ISOBIT_E_MISSING, "{\"model_type\":3}", "model_type"},
    {ISOBIT_E_UNSUPPORTED, "{\"model_type\":\"bert\\n\"}", "isobit-transformer, marian"},
    {ISOBIT_E_CONFIG, "{\"model_type\":\"marian\",\"d_model\":0}", "d_model"},
    {ISOBIT_E_CONFIG, "{\"model_type\":\"marian\",\"d_model\":-8}", "d_model"},
    {ISOBIT_E_CONFIG, "{\"model_type\":\"marian\",\"d_model\":8.5}", "d_model"},
    {ISOBIT_E_CONFIG, "{\"model_type\":\"marian\",\"d_model\":\"8\"}", "d_model"},
    {ISOBIT_E_CONFIG, "{\"model_type\":\"marian\",\"d_model\":1e300}", "d_model"},
    {ISOBIT_E_CONFIG, "{\"model_type\":\"marian\",\"encoder_layers\":100000}", "encoder_layers"},
    {ISOBIT_E_CONFIG, "{\"model_type\":\"marian\",\"max_position_embeddings\":1e9}",
     "max_position"},
    {ISOBIT_E_CONFIG, "{\"model_type\":\"marian\",\"encoder_attention_heads\":3}", "heads"},
    {ISOBIT_E_LIMIT, "{\"model_type\":\"marian\",\"encoder_attention_heads\":1}", "512"},
    {ISOBIT_E_CONFIG, "{\"model_type\":\"marian\",\"scale_embedding\":1}", "scale_embedding"},
    {ISOBIT_E_CONFIG, "{\"model_type\":\"marian\",\"activation_function\":7}", "activation"},
    {ISOBIT_E_UNSUPPORTED, "{\"model_type\":\"marian\",\"activation_function\":\"quick_gelu\"}",
     "quick_gelu"},
    {ISOBIT_E_MISSING, "{\"model_type\":\"isobit-transformer\"}", "vocab_size"},
    {ISOBIT_E_MISSING, "{\"model_type\":\"isobit-transformer\",\"vocab_size\":9}",
     "decoder_start_token_id"},
    {ISOBIT_E_CONFIG,
     "{\"model_type\":\"isobit-transformer\",\"vocab_size\":9,"
     "\"layer_norm_epsilon\":0}",
     "layer_norm_epsilon"},
    /* Without a default that would be refused under the same name. */
    {ISOBIT_E_CONFIG,
     "{\"model_type\":\"isobit-transformer\",\"vocab_size\":9,\"decoder_start_token_id\":1,"
     "\"pad_token_id\":\"x\"}",
     "pad_token_id"},
    {ISOBIT_E_CONFIG,
     "{\"model_type\":\"isobit-transformer\",\"vocab_size\":9,\"decoder_start_token_id\":\"x\"}",
     "decoder_start_token_id"},
    {ISOBIT_E_CONFIG, "{\"model_type\":\"marian\",\"decoder_vocab_size\":9}", "decoder_vocab_size"},
    {ISOBIT_E_CONFIG, "{\"model_type\":\"marian\",\"vocab_size\":9}", "decoder_start_token_id"},
    {ISOBIT_E_CONFIG, ",\"forced_bos_token_id\":7", "forced_bos_token_id"},
    {ISOBIT_E_CONFIG, ",\"forced_eos_token_id\":[2,9]", "forced_eos_token_id"},
    {ISOBIT_E_CONFIG, ",\"forced_eos_token_id\":[2,-1]", "forced_eos_token_id"},
    {ISOBIT_E_CONFIG, ",\"bad_words_ids\":[[7]]", "bad_words_ids"},
    {ISOBIT_E_CONFIG, ",\"bad_words_ids\":[[]]", "bad_words_ids"},
    {ISOBIT_E_CONFIG, ",\"bad_words_ids\":[3]", "bad_words_ids"},
    {ISOBIT_E_CONFIG, ",\"bad_words_ids\":{}", "bad_words_ids"},
    {ISOBIT_E_CONFIG, ",\"num_beams\":0", "num_beams"},
    {ISOBIT_E_CONFIG, ",\"max_length\":1", "max_length"},
    {ISOBIT_E_CONFIG, ",\"early_stopping\":\"sometimes\"", "early_stopping"},
    {ISOBIT_E_CONFIG, ",\"length_penalty\":\"1\"", "length_penalty"},
    {ISOBIT_E_CONFIG, ",\"repetition_penalty\":0", "repetition_penalty"},
    {ISOBIT_E_CONFIG, ",\"renormalize_logits\":\"yes\"", "renormalize_logits"},
    {ISOBIT_E_CONFIG, ",\"no_repeat_ngram_size\":-1", "no_repeat_ngram_size"},
};

static void test_config(void **state) {
    files f;
    iso_error error;
    files_make(&f);
    good_model(&f);
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        const config_case *c = &configs[i];
        if (*c->text == ',')
            files_config(&f, "marian", V, D, 2, FFN, IDS);
        char text[1500];
        if (*c->text == ',')
            (void)snprintf(text, sizeof text, MARIAN "%s}", c->text);
        else
            (void)snprintf(text, sizeof text, "%s", c->text);
        files_text(&f, "config.json", text);
        iso_status status = load(&f, NULL, &error);
        if (status != c->status || (c->says && !strstr(error.message, c->says)))
            fail_msg("%s: status %d (%s), expected %d (%s)", c->text, (int)status, error.message,
                     (int)c->status, c->says ? c->says : "");
    }
    /* The deepest nesting that is allowed; then one that a recursive parser would follow. */
    blob b = {0};
    blob_add(&b, MARIAN ",\"x\":", sizeof MARIAN ",\"x\":" - 1);
    for (int i = 0; i < 126; i++)
        blob_add(&b, i < 63 ? "[" : "]", 1);
    blob_add(&b, "}", 1);
    files_write(&f, "config.json", b.bytes, b.count);
    blob_free(&b);
    assert_int_equal(load(&f, NULL, &error), ISOBIT_OK);
    blob_add(&b, "{\"x\":", 5);
    for (size_t i = 0; i < 100000; i++)
        blob_add(&b, "[", 1);
    files_write(&f, "config.json", b.bytes, b.count);
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_LIMIT);
    blob_free(&b);
    /* Lists of 65536 ids (of bad words: their lengths included), and one more. */
    for (int words = 0; words < 2; words++)
        for (size_t count = 65536; count <= 65537; count++) {
            const char *first =
                words ? MARIAN ",\"bad_words_ids\":[[0" : MARIAN ",\"forced_eos_token_id\":[0";
            b = (blob){0};
            blob_add(&b, first, strlen(first));
            for (size_t i = (size_t)words + 1; i < count; i++)
                blob_add(&b, ",0", 2);
            blob_add(&b, words ? "]]}" : "]}", 2 + (size_t)words);
            files_write(&f, "config.json", b.bytes, b.count);
            blob_free(&b);
            assert_int_equal(load(&f, NULL, &error), count == 65536 ? ISOBIT_OK : ISOBIT_E_CONFIG);
        }
    /* generation_config.json: its errors count, and its keys replace those of config.json. */
    files_text(&f, "config.json", MARIAN ",\"num_beams\":5,\"max_length\":9}");
    files_text(&f, "generation_config.json", "{\"num_beams\":0}");
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_CONFIG);
    assert_non_null(strstr(error.message, "generation_config.json"));
    files_text(&f, "generation_config.json", "{\"num_beams\":");
    assert_int_equal(load(&f, NULL, &error), ISOBIT_E_JSON);
    files_text(&f, "generation_config.json", "{\"max_length\":12,\"eos_token_id\":[3,4]}");
    iso_model *model;
    assert_int_equal(iso_model_load(&model, f.directory, NULL, NULL, &error), ISOBIT_OK);
    const iso_model_info *info = iso_model_get_info(model);
    assert_int_equal(info->default_beams, 1);
    assert_int_equal(info->default_max_length, 12);
    assert_int_equal(info->eos_count, 2);
    assert_int_equal(info->eos_ids[1], 4);
    assert_int_equal(info->pad_id, 0);
    assert_int_equal(info->unk_id, UINT32_MAX);
    iso_model_free(model);
    /* A default is lowered to what the positions allow, and not further. */
    for (size_t positions = 10; positions <= 12; positions++) {
        char text[400];
        (void)snprintf(text, sizeof text, MARIAN ",\"max_position_embeddings\":%zu}", positions);
        files_text(&f, "config.json", text);
        assert_int_equal(iso_model_load(&model, f.directory, NULL, NULL, &error), ISOBIT_OK);
        assert_int_equal(iso_model_get_info(model)->default_max_length, positions == 10 ? 11 : 12);
        iso_model_free(model);
    }
    files_remove(&f);
    (void)state;
}

static void test_tokenizer(void **state) {
    files f;
    iso_error error;
    iso_tokenizer *t = NULL;
    files_make(&f);
    static const struct {
        iso_status status;
        const char *config, *vocabulary;
    } bad[] = {
        {ISOBIT_E_UNSUPPORTED, "{\"tokenizer_class\":\"XLNetTokenizer\"}", "{}"},
        {ISOBIT_E_UNSUPPORTED, "{}", "{}"},
        {ISOBIT_E_JSON, "{", "{}"},
        {ISOBIT_E_MISSING, "{\"tokenizer_class\":\"isobit-characters\"}", "{}"},
        {ISOBIT_E_MISSING, "{\"tokenizer_class\":\"isobit-characters\"}", "{\"</s>\":0}"},
        {ISOBIT_E_CONFIG, "{\"tokenizer_class\":\"isobit-characters\"}",
         "{\"</s>\":0,\"<unk>\":4294967295}"},
        {ISOBIT_E_CONFIG, "{\"tokenizer_class\":\"isobit-characters\"}",
         "{\"</s>\":0,\"<unk>\":2}"},
        {ISOBIT_E_DUPLICATE, "{\"tokenizer_class\":\"isobit-characters\"}",
         "{\"</s>\":0,\"<unk>\":0}"},
        {ISOBIT_E_DUPLICATE, "{\"tokenizer_class\":\"isobit-characters\"}",
         "{\"</s>\":0,\"</s>\":1}"},
        {ISOBIT_OK, "{\"tokenizer_class\":\"isobit-characters\"}",
         "{\"<end>\":0,\"</s>\":1.0,\"<unk>\":2,\"\":3,\"a\":4,\" \":5,\"B\":6}"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        files_text(&f, "tokenizer_config.json", bad[i].config);
        files_text(&f, "vocab.json", bad[i].vocabulary);
        iso_status status = iso_tokenizer_load(&t, f.directory, &error);
        if (status != bad[i].status)
            fail_msg("%s %s: status %d (%s)", bad[i].config, bad[i].vocabulary, (int)status,
                     error.message);
    }
    /* Without split_words and lowercase a line is one sequence, as it is. */
    uint32_t ids[16];
    size_t lengths[4], count, sequences;
    assert_int_equal(
        iso_tokenizer_encode(t, "?aB ab?", 7, ids, 16, &count, lengths, 4, &sequences, &error),
        ISOBIT_OK);
    static const uint32_t expected[] = {4, 6, 5, 4, 1};
    assert_int_equal(sequences, 1);
    assert_int_equal(count, 5);
    assert_memory_equal(ids, expected, sizeof expected);
    iso_tokenizer_free(t);
    iso_tokenizer_free(NULL);
    files_remove(&f);
    (void)state;
}

/* ----------------------------------------------------------------------- characters, one by one */

static size_t put_code(char *to, uint32_t c) {
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xc0 | c >> 6);
        to[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    to[0] = (char)(0xe0 | c >> 12);
    to[1] = (char)(0x80 | (c >> 6 & 0x3f));
    to[2] = (char)(0x80 | (c & 0x3f));
    return 3;
}

/* </s> is 0, <unk> is 1, and the code points from '#' to U+0180 are themselves. */
static iso_tokenizer *letters_tokenizer(const files *f) {
    iso_error error;
    iso_tokenizer *t = NULL;
    blob b = {0};
    char entry[48];
    blob_add(&b, "{\"</s>\":0,\"<unk>\":1", 20);
    for (uint32_t c = 2; c <= 0x180; c++) {
        char code[4] = {0};
        (void)put_code(code, c);
        const int bytes = c < '#' || c == '\\'
                              ? snprintf(entry, sizeof entry, ",\"none %u\":%u", c, c)
                              : snprintf(entry, sizeof entry, ",\"%s\":%u", code, c);
        blob_add(&b, entry, (size_t)bytes);
    }
    blob_add(&b, "}", 1);
    files_write(f, "vocab.json", b.bytes, b.count);
    blob_free(&b);
    files_text(f, "tokenizer_config.json",
               "{\"tokenizer_class\":\"isobit-characters\",\"lowercase\":true,"
               "\"split_words\":true}");
    assert_int_equal(iso_tokenizer_load(&t, f->directory, &error), ISOBIT_OK);
    return t;
}

/* The tokens of "a", the code point, "b"; how many sequences they are. */
static size_t between(const iso_tokenizer *t, uint32_t c, uint32_t ids[8], size_t *count) {
    char text[8] = "a";
    size_t bytes = 1 + put_code(text + 1, c), lengths[3], sequences;
    iso_error error;
    text[bytes++] = 'b';
    assert_int_equal(
        iso_tokenizer_encode(t, text, bytes, ids, 8, count, lengths, 3, &sequences, &error),
        ISOBIT_OK);
    return sequences;
}

static void test_letters(void **state) {
    static const uint32_t pairs[][2] = {
        {'@', '@'},     {'A', 'a'},     {'Z', 'z'},     {'[', '['},     {0xbf, 0xbf},
        {0xc0, 0xe0},   {0xd6, 0xf6},   {0xd7, 0xd7},   {0xd8, 0xf8},   {0xde, 0xfe},
        {0xdf, 0xdf},   {0xff, 0xff},   {0x100, 0x101}, {0x101, 0x101}, {0x12e, 0x12f},
        {0x12f, 0x12f}, {0x130, 'i'},   {0x131, 0x131}, {0x132, 0x133}, {0x136, 0x137},
        {0x137, 0x137}, {0x138, 0x138}, {0x139, 0x13a}, {0x13a, 0x13a}, {0x147, 0x148},
        {0x148, 0x148}, {0x149, 0x149}, {0x14a, 0x14b}, {0x14b, 0x14b}, {0x176, 0x177},
        {0x177, 0x177}, {0x178, 0xff},  {0x179, 0x17a}, {0x17d, 0x17e}, {0x17e, 0x17e},
        {0x17f, 0x17f}, {0x180, 0x180}, {0x2bc, '\''},  {0x2019, '\''}, {0x2018, 1},
        {0x2bb, 1},     {0x2bd, 1},     {0x201a, 1},
    };
    static const uint32_t apart[] = {
        ' ',    9,      10,     13,     0x85, 0xa0,   0x1680, 0x2000, 0x200a, 0x2028,
        0x2029, 0x202f, 0x205f, 0x3000, '-',  0x2010, 0x2012, 0x2015, 0x2212,
    };
    static const uint32_t together[] = {
        8,      14,     0x1f,   '!',    ',',    '.',    0x84,   0x86,   0x9f,
        0xa1,   0x167f, 0x1681, 0x1fff, 0x200b, 0x200f, 0x2016, 0x2027, 0x202a,
        0x202e, 0x2030, 0x205e, 0x2060, 0x2fff, 0x3001, 0x2211, 0x2213,
    };
    files f;
    uint32_t ids[8];
    size_t count;
    files_make(&f);
    iso_tokenizer *t = letters_tokenizer(&f);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_int_equal(between(t, pairs[i][0], ids, &count), 1);
        assert_int_equal(count, 4);
        assert_int_equal(ids[0], 'a');
        assert_int_equal(ids[1], pairs[i][1]);
        assert_int_equal(ids[2], 'b');
        assert_int_equal(ids[3], 0);
    }
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
        assert_int_equal(between(t, apart[i], ids, &count), 2);
    for (size_t i = 0; i < sizeof together / sizeof *together; i++)
        assert_int_equal(between(t, together[i], ids, &count), 1);
    iso_tokenizer_free(t);
    files_remove(&f);
    (void)state;
}

static void test_tokenizer_arguments(void **state) {
    files f;
    uint32_t ids[16];
    size_t count, lengths[4], sequences, needed;
    char text[16];
    iso_error error;
    files_make(&f);
    iso_tokenizer *t = letters_tokenizer(&f), *none = NULL;
    assert_int_equal(iso_tokenizer_load(NULL, f.directory, &error), ISOBIT_E_NULL);
    assert_int_equal(iso_tokenizer_load(&none, NULL, &error), ISOBIT_E_NULL);
    assert_null(none);

#define ENCODE(t, text, bytes, ids, room, count, lengths, sequence_room, sequences)                \
    iso_tokenizer_encode(t, text, bytes, ids, room, count, lengths, sequence_room, sequences,      \
                         &error)
    assert_int_equal(ENCODE(NULL, "a", 1, ids, 9, &count, lengths, 4, &sequences), ISOBIT_E_NULL);
    assert_int_equal(ENCODE(t, NULL, 1, ids, 9, &count, lengths, 4, &sequences), ISOBIT_E_NULL);
    assert_int_equal(ENCODE(t, "a", 1, NULL, 9, &count, lengths, 4, &sequences), ISOBIT_E_NULL);
    assert_int_equal(ENCODE(t, "a", 1, ids, 9, NULL, lengths, 4, &sequences), ISOBIT_E_NULL);
    assert_int_equal(ENCODE(t, "a", 1, ids, 9, &count, NULL, 4, &sequences), ISOBIT_E_NULL);
    assert_int_equal(ENCODE(t, "a", 1, ids, 9, &count, lengths, 4, NULL), ISOBIT_E_NULL);
    assert_int_equal(ENCODE(t, NULL, 0, ids, 9, &count, lengths, 4, &sequences), ISOBIT_OK);
    assert_int_equal(count + sequences, 0);
    assert_int_equal(ENCODE(t, "a\xc3", 2, ids, 9, &count, lengths, 4, &sequences), ISOBIT_E_UTF8);
    /* "ab c" is 5 ids in 2 sequences: just enough room, then too little of each. */
    ids[5] = 77, lengths[2] = 77;
    assert_int_equal(ENCODE(t, "ab c", 4, ids, 5, &count, lengths, 2, &sequences), ISOBIT_OK);
    assert_true(count == 5 && sequences == 2 && lengths[0] == 3 && lengths[1] == 2);
    assert_int_equal(ENCODE(t, "ab c", 4, ids, 4, &count, lengths, 2, &sequences),
                     ISOBIT_E_WORKSPACE);
    assert_int_equal(ENCODE(t, "ab c", 4, ids, 5, &count, lengths, 1, &sequences),
                     ISOBIT_E_WORKSPACE);
    assert_true(count == 5 && sequences == 2 && ids[5] == 77 && lengths[2] == 77);
#undef ENCODE

    assert_int_equal(iso_tokenizer_decode(NULL, ids, 5, text, 16, &needed), ISOBIT_E_NULL);
    assert_int_equal(iso_tokenizer_decode(t, NULL, 5, text, 16, &needed), ISOBIT_E_NULL);
    assert_int_equal(iso_tokenizer_decode(t, ids, 5, NULL, 16, &needed), ISOBIT_E_NULL);
    /* </s> is left out. */
    memset(text, 'x', sizeof text);
    assert_int_equal(iso_tokenizer_decode(t, ids, 5, text, 4, &needed), ISOBIT_OK);
    assert_int_equal(needed, 4);
    assert_memory_equal(text, "abc\0x", 5);
    assert_int_equal(iso_tokenizer_decode(t, ids, 5, text, 3, &needed), ISOBIT_E_WORKSPACE);
    assert_string_equal(text, "ab");
    assert_int_equal(iso_tokenizer_decode(t, ids, 5, NULL, 0, &needed), ISOBIT_E_WORKSPACE);
    assert_int_equal(needed, 4);
    assert_int_equal(iso_tokenizer_decode(t, NULL, 0, text, 1, NULL), ISOBIT_OK);
    assert_int_equal(text[0], 0);
    ids[0] = 0x180, ids[1] = 0x181;
    assert_int_equal(iso_tokenizer_decode(t, ids, 1, text, 16, NULL), ISOBIT_OK);
    assert_string_equal(text, "\xc6\x80");
    assert_int_equal(iso_tokenizer_decode(t, ids, 2, text, 16, NULL), ISOBIT_E_RANGE);
    assert_string_equal(iso_tokenizer_token(t, 0x180), "\xc6\x80");
    assert_null(iso_tokenizer_token(t, 0x181));
    assert_null(iso_tokenizer_token(NULL, 0));
    iso_tokenizer_free(t);
    files_remove(&f);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header_rules),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_header_limits),
        cmocka_unit_test(test_header_mutations),
        cmocka_unit_test(test_file_length),
        cmocka_unit_test(test_file_mutations),
        cmocka_unit_test(test_not_a_file),
        cmocka_unit_test(test_file_grows),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_nonfinite),
        cmocka_unit_test(test_conversions),
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_tokenizer),
        cmocka_unit_test(test_impossible_sizes),
        cmocka_unit_test(test_unshared_embeddings),
        cmocka_unit_test(test_positions_are_shared),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_most_positions),
        cmocka_unit_test(test_largest_texts),
        cmocka_unit_test(test_letters),
        cmocka_unit_test(test_tokenizer_arguments),
    };
    return cmocka_run_group_tests_name("loader", tests, NULL, NULL);
}
