/* SPDX-License-Identifier: MIT
 *
 * See test_loader.c: the header of a safetensors file, in memory.
 */
#include "../test_loader.h"

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

void test_header_rules(void **state) {
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

/* Where a string has to be, that is said, not what would have come behind it. */
void test_header_strings(void **state) {
    static const char *const texts[] = {"{1}",
                                        "{\"__metadata__\":{1}}",
                                        "{\"__metadata__\":{\"a\":\"\",1}}",
                                        "{\"__metadata__\":{\"a\":1}}",
                                        ENTRY("1"),
                                        ENTRY(TYPE ",1"),
                                        ENTRY("\"dtype\":1"),
                                        ENTRY(TYPE "," SHAPE "," SPAN ",\"x\":{1}"),
                                        ENTRY(TYPE "," SHAPE "," SPAN ",\"x\":{\"y\":1,2}")};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        iso_error error = {0};
        assert_int_equal(parse(texts[i], strlen(texts[i]), 8, &error), ISOBIT_E_JSON);
        if (!strstr(error.message, ": a string is expected"))
            fail_msg("%s: \"%s\"", texts[i], error.message);
    }
    (void)state;
}

/* Eight elements of each type span as many bytes as one element has bits. */
void test_types(void **state) {
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

void test_header_limits(void **state) {
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

void test_header_mutations(void **state) {
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
