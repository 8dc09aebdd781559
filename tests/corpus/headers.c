/* SPDX-License-Identifier: MIT
 *
 * Rows of corpus.h: headers. Rules that loaders elsewhere have broken come with a word on how:
 * sizes that wrap, sums that wrap after the check, a shape of which the product is 0 by accident,
 * spans that are not those of the shape, files of some bytes that ask for gigabytes, text that
 * recurses.
 */
#include "../corpus.h"

#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define T(name, shape, from, to)                                                                   \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":[" shape "],\"data_offsets\":[" from "," to "]}"
#define TYPED(type, shape, from, to)                                                               \
    "{\"a\":{\"dtype\":\"" type "\",\"shape\":[" shape "],\"data_offsets\":[" from "," to "]}}"
#define ONE(shape, from, to) "{" T("a", shape, from, to) "}"
#define ENTRY(fields) "{\"a\":{" fields "}}"
#define TYPE "\"dtype\":\"F32\""
#define SHAPE "\"shape\":[2]"
#define SPAN "\"data_offsets\":[0,8]"
#define EXTRA(value) ENTRY(TYPE "," SHAPE "," SPAN ",\"x\":" value)
#define GOOD T("a", "2", "0", "8")

static void add(blob *b, const char *text) { blob_add(b, text, strlen(text)); }

static void repeat(blob *b, const char *text, size_t times) {
    for (size_t i = 0; i < times; i++)
        add(b, text);
}

static blob long_name(void) {
    blob b = {0};
    add(&b, "{\"");
    repeat(&b, "n", 4097);
    add(&b, "\":{" TYPE "," SHAPE "," SPAN "}}");
    return b;
}

/* 683 escapes of six bytes each are 4098 bytes as text, and as UTF-8 2049: short enough. */
static blob long_escapes(void) {
    blob b = {0};
    add(&b, "{\"");
    repeat(&b, "\\u00e9", 2049);
    add(&b, "\":{" TYPE "," SHAPE "," SPAN "}}");
    return b;
}

static blob nested(const char *open, size_t depth, const char *close) {
    blob b = {0};
    add(&b, "{\"a\":{" TYPE "," SHAPE "," SPAN ",\"x\":");
    repeat(&b, open, depth);
    repeat(&b, close, close[0] ? depth : 0);
    add(&b, "}}");
    return b;
}

static blob nested_lists(void) { return nested("[", 33, "]"); }
static blob nested_open(void) { return nested("[", 200000, ""); }
static blob nested_objects(void) { return nested("{\"y\":", 100000, ""); }
static blob nested_mixed(void) { return nested("[{\"y\":", 17, "}]"); }

static blob nested_top(void) {
    blob b = {0};
    repeat(&b, "[", 100000);
    return b;
}

static blob nested_metadata(void) {
    blob b = {0};
    add(&b, "{\"__metadata__\":");
    repeat(&b, "{\"a\":", 50000);
    return b;
}

static blob many_colons(void) {
    blob b = {0};
    add(&b, "{\"");
    repeat(&b, ":", 60000);
    return b;
}

static blob many_empty(void) {
    blob b = {0};
    add(&b, "{");
    repeat(&b, "\"a\":{},", 10000);
    return b;
}

static blob many_metadata(void) {
    blob b = {0};
    add(&b, "{\"__metadata__\":{");
    repeat(&b, "\"\":\"\",", 10000);
    add(&b, "\"\":\"\"}}");
    return b;
}

static blob many_fields(void) {
    blob b = {0};
    add(&b, "{\"a\":{");
    repeat(&b, "\"x\":0,", 10000);
    add(&b, TYPE "," SHAPE "," SPAN "," TYPE "}}");
    return b;
}

static blob long_number(void) {
    blob b = {0};
    add(&b, "{\"a\":{" TYPE ",\"data_offsets\":[0,8],\"shape\":[");
    repeat(&b, "9", 20000);
    add(&b, "]}}");
    return b;
}

static blob long_dtype(void) {
    blob b = {0};
    add(&b, "{\"a\":{" SHAPE "," SPAN ",\"dtype\":\"");
    repeat(&b, "F32", 5000);
    return b;
}

static blob long_string(void) {
    blob b = {0};
    add(&b, "{\"");
    repeat(&b, "\\\"", 20000);
    return b;
}

static blob long_space(void) {
    blob b = {0};
    repeat(&b, " \n", 20000);
    return b;
}

/* Nothing of a header may hide behind a NUL. */
static blob nul_first(void) {
    blob b = {0};
    blob_add(&b, "\0{}", 3);
    return b;
}

static blob nul_last(void) {
    blob b = {0};
    blob_add(&b, "{}\0", 3);
    return b;
}

static blob nul_in_name(void) {
    blob b = {0};
    blob_add(&b, "{\"a\0\":", 6);
    add(&b, "{" TYPE "," SHAPE "," SPAN "}}");
    return b;
}

const corpus_header corpus_headers[] = {
    /* Text that is no UTF-8. */
    {"utf8 lone continuation", ISOBIT_E_UTF8, "UTF-8", 8, "{" T("\x80", "2", "0", "8") "}", 0},
    {"utf8 byte ff", ISOBIT_E_UTF8, "UTF-8", 8, "{" T("a\xff", "2", "0", "8") "}", 0},
    {"utf8 byte fe", ISOBIT_E_UTF8, "UTF-8", 8, "{" T("\xfe\xfe", "2", "0", "8") "}", 0},
    {"utf8 overlong slash", ISOBIT_E_UTF8, "UTF-8", 8, "{" T("\xc0\xaf", "2", "0", "8") "}", 0},
    {"utf8 overlong c1", ISOBIT_E_UTF8, "UTF-8", 8, "{" T("\xc1\xbf", "2", "0", "8") "}", 0},
    {"utf8 overlong 3", ISOBIT_E_UTF8, "UTF-8", 8, "{" T("\xe0\x9f\xbf", "2", "0", "8") "}", 0},
    {"utf8 overlong 4", ISOBIT_E_UTF8, "UTF-8", 8, "{" T("\xf0\x8f\xbf\xbf", "2", "0", "8") "}", 0},
    {"utf8 first surrogate", ISOBIT_E_UTF8, "UTF-8", 8, "{" T("\xed\xa0\x80", "2", "0", "8") "}",
     0},
    {"utf8 last surrogate", ISOBIT_E_UTF8, "UTF-8", 8, "{" T("\xed\xbf\xbf", "2", "0", "8") "}", 0},
    {"utf8 beyond 10ffff", ISOBIT_E_UTF8, "UTF-8", 8, "{" T("\xf4\x90\x80\x80", "2", "0", "8") "}",
     0},
    {"utf8 f5", ISOBIT_E_UTF8, "UTF-8", 8, "{" T("\xf5\x80\x80\x80", "2", "0", "8") "}", 0},
    {"utf8 five bytes", ISOBIT_E_UTF8, "UTF-8", 8, "{" T("\xf8\x88\x80\x80\x80", "2", "0", "8") "}",
     0},
    {"utf8 cut 2", ISOBIT_E_UTF8, "UTF-8", 0, "{}\xc3", 0},
    {"utf8 cut 3", ISOBIT_E_UTF8, "UTF-8", 0, "{}\xe2\x82", 0},
    {"utf8 cut 4", ISOBIT_E_UTF8, "UTF-8", 0, "{}\xf0\x9f\x98", 0},
    {"utf8 cut by ascii", ISOBIT_E_UTF8, "UTF-8", 8, "{" T("\xe2\x82z", "2", "0", "8") "}", 0},
    {"utf8 in metadata", ISOBIT_E_UTF8, "UTF-8", 0, "{\"__metadata__\":{\"a\":\"\xff\"}}", 0},
    {"utf8 in dtype", ISOBIT_E_UTF8, "UTF-8", 8, TYPED("F32\xff", "2", "0", "8"), 0},
    {"utf8 byte order mark", ISOBIT_E_JSON, "object", 0, "\xef\xbb\xbf{}", 0},
    {"utf16", ISOBIT_E_UTF8, "UTF-8", 0, "\xff\xfe{", 0},

    /* Text that is no JSON, or not of the form. */
    {"top list", ISOBIT_E_JSON, "object", 0, "[]", 0},
    {"top string", ISOBIT_E_JSON, "object", 0, "\"a\"", 0},
    {"top number", ISOBIT_E_JSON, "object", 0, "12", 0},
    {"top null", ISOBIT_E_JSON, "object", 0, "null", 0},
    {"only spaces", ISOBIT_E_JSON, "object", 0, "  \t\r\n", 0},
    {"only many spaces", ISOBIT_E_JSON, "object", 0, NULL, long_space},
    {"form feed", ISOBIT_E_JSON, "object", 0, "\f{}", 0},
    {"nbsp", ISOBIT_E_JSON, "object", 0, "\xc2\xa0{}", 0},
    {"two objects", ISOBIT_E_JSON, "after the header", 0, "{}{}", 0},
    {"second header", ISOBIT_E_JSON, "after the header", 0, "{} {\"a\":1}", 0},
    {"closing twice", ISOBIT_E_JSON, "after the header", 0, "{}}", 0},
    {"nul first", ISOBIT_E_JSON, "object", 0, NULL, nul_first},
    {"nul last", ISOBIT_E_JSON, "after the header", 0, NULL, nul_last},
    {"nul in a name", ISOBIT_E_JSON, "control character", 8, NULL, nul_in_name},
    {"no end", ISOBIT_E_JSON, "'}'", 8, "{" GOOD, 0},
    {"no end of entry", ISOBIT_E_JSON, "'}'", 8, "{\"a\":{" TYPE "," SHAPE "," SPAN, 0},
    {"open brace", ISOBIT_E_JSON, "string", 0, "{ ", 0},
    {"comma first", ISOBIT_E_JSON, "string", 8, "{," GOOD "}", 0},
    {"comma last", ISOBIT_E_JSON, "string", 8, "{" GOOD ",}", 0},
    {"comma twice", ISOBIT_E_JSON, "string", 16, "{" GOOD ",," T("b", "2", "8", "16") "}", 0},
    {"no comma", ISOBIT_E_JSON, "'}'", 16, "{" GOOD " " T("b", "2", "8", "16") "}", 0},
    {"semicolon", ISOBIT_E_JSON, "'}'", 16, "{" GOOD ";" T("b", "2", "8", "16") "}", 0},
    {"comment", ISOBIT_E_JSON, "after the header", 0, "{}//", 0},
    {"comment inside", ISOBIT_E_JSON, "string", 0, "{/**/}", 0},
    {"name bare", ISOBIT_E_JSON, "string", 8, "{a:{" TYPE "," SHAPE "," SPAN "}}", 0},
    {"name number", ISOBIT_E_JSON, "string", 8, "{1:{" TYPE "," SHAPE "," SPAN "}}", 0},
    {"name quoted once", ISOBIT_E_JSON, "string", 8, "{'a':{" TYPE "," SHAPE "," SPAN "}}", 0},
    {"no colon", ISOBIT_E_JSON, "':'", 8, "{\"a\"{" TYPE "," SHAPE "," SPAN "}}", 0},
    {"colon twice", ISOBIT_E_JSON, "object", 8, "{\"a\"::{" TYPE "," SHAPE "," SPAN "}}", 0},
    {"entry null", ISOBIT_E_JSON, "entry \"a\"", 0, "{\"a\":null}", 0},
    {"entry number", ISOBIT_E_JSON, "entry \"a\"", 0, "{\"a\":7}", 0},
    {"entry list", ISOBIT_E_JSON, "entry \"a\"", 0, "{\"a\":[0,8]}", 0},
    {"entry string", ISOBIT_E_JSON, "entry \"a\"", 0, "{\"a\":\"F32\"}", 0},
    {"string open", ISOBIT_E_JSON, "does not end", 0, "{\"abc", 0},
    {"string open after escape", ISOBIT_E_JSON, "does not end", 0, "{\"abc\\", 0},
    {"string open long", ISOBIT_E_JSON, "does not end", 0, NULL, long_string},
    {"string escaped end", ISOBIT_E_JSON, "object", 8,
     "{\"a\\\":{\""
     ":1}",
     0},
    {"string newline", ISOBIT_E_JSON, "control character", 8, "{" T("a\nb", "2", "0", "8") "}", 0},
    {"string control", ISOBIT_E_JSON, "control character", 8, "{" T("\x1f", "2", "0", "8") "}", 0},
    {"escape x", ISOBIT_E_JSON, "escape", 8, "{" T("\\x41", "2", "0", "8") "}", 0},
    {"escape capital", ISOBIT_E_JSON, "escape", 8, "{" T("\\N", "2", "0", "8") "}", 0},
    {"escape octal", ISOBIT_E_JSON, "escape", 8, "{" T("\\101", "2", "0", "8") "}", 0},
    {"escape u short", ISOBIT_E_JSON, "escape", 8, "{" T("\\u41", "2", "0", "8") "}", 0},
    {"escape u capital", ISOBIT_E_JSON, "escape", 8, "{" T("\\U0041", "2", "0", "8") "}", 0},
    {"escape u sign", ISOBIT_E_JSON, "escape", 8, "{" T("\\u+041", "2", "0", "8") "}", 0},
    {"escape u at the end", ISOBIT_E_JSON, "escape", 0, "{\"\\u004", 0},
    {"escape half pair", ISOBIT_E_JSON, "surrogate", 8, "{" T("\\ud83d", "2", "0", "8") "}", 0},
    {"escape second half", ISOBIT_E_JSON, "surrogate", 8, "{" T("\\ude00", "2", "0", "8") "}", 0},
    {"escape pair of firsts", ISOBIT_E_JSON, "surrogate", 8,
     "{" T("\\ud83d\\ud83d", "2", "0", "8") "}", 0},
    {"escape pair cut", ISOBIT_E_JSON, "surrogate", 0, "{\"\\ud83d\\ude0", 0},

    /* Names. */
    {"name empty", ISOBIT_E_JSON, "empty name", 8, "{" T("", "2", "0", "8") "}", 0},
    {"name of a NUL", ISOBIT_E_JSON, "NUL", 8, "{" T("\\u0000", "2", "0", "8") "}", 0},
    {"name cut by a NUL", ISOBIT_E_JSON, "NUL", 8, "{" T("weight\\u0000x", "2", "0", "8") "}", 0},
    {"name too long", ISOBIT_E_LIMIT, "4096", 8, NULL, long_name},
    {"name too long escaped", ISOBIT_E_LIMIT, "4096", 8, NULL, long_escapes},
    {"name twice", ISOBIT_E_DUPLICATE, "twice", 16, "{" GOOD "," T("a", "2", "8", "16") "}", 0},
    {"name twice escaped", ISOBIT_E_DUPLICATE, "twice", 16,
     "{" T("a/b", "2", "0", "8") "," T("a\\/b", "2", "8", "16") "}", 0},
    {"name twice as a pair", ISOBIT_E_DUPLICATE, "twice", 16,
     "{" T("\xf0\x9f\x98\x80", "2", "0", "8") "," T("\\ud83d\\ude00", "2", "8", "16") "}", 0},
    {"name twice empty tensors", ISOBIT_E_DUPLICATE, "twice", 8,
     "{" T("b", "0", "0", "0") "," GOOD "," T("b", "0", "8", "8") "}", 0},
    {"name thrice apart", ISOBIT_E_DUPLICATE, "twice", 32,
     "{" GOOD
     "," T("b", "2", "8", "16") "," T("a", "2", "16", "24") "," T("c", "2", "24", "32") "}",
     0},
    {"name printed escaped", ISOBIT_E_OFFSET, "\\x1b[2J", 4, "{" T("\\u001b[2J", "2", "0", "4") "}",
     0},
    {"name as a format", ISOBIT_E_OFFSET, "%n%s%s", 4, "{" T("%n%s%s", "2", "0", "4") "}", 0},

    /* __metadata__. */
    {"metadata list", ISOBIT_E_JSON, "object", 0, "{\"__metadata__\":[]}", 0},
    {"metadata null", ISOBIT_E_JSON, "object", 0, "{\"__metadata__\":null}", 0},
    {"metadata string", ISOBIT_E_JSON, "object", 0, "{\"__metadata__\":\"pt\"}", 0},
    {"metadata number", ISOBIT_E_JSON, "string", 0, "{\"__metadata__\":{\"format\":1}}", 0},
    {"metadata nested", ISOBIT_E_JSON, "string", 0, "{\"__metadata__\":{\"format\":{}}}", 0},
    {"metadata of lists", ISOBIT_E_JSON, "string", 0, "{\"__metadata__\":{\"format\":[\"pt\"]}}",
     0},
    {"metadata null value", ISOBIT_E_JSON, "string", 0, "{\"__metadata__\":{\"format\":null}}", 0},
    {"metadata comma", ISOBIT_E_JSON, "string", 0, "{\"__metadata__\":{\"a\":\"b\",}}", 0},
    {"metadata open", ISOBIT_E_JSON, "entry \"__metadata__\"", 0, "{\"__metadata__\":{\"a\":\"b\"",
     0},
    {"metadata key twice", ISOBIT_E_DUPLICATE, "__metadata__", 0,
     "{\"__metadata__\":{\"a\":\"b\",\"a\":\"b\"}}", 0},
    {"metadata key twice escaped", ISOBIT_E_DUPLICATE, "__metadata__", 0,
     "{\"__metadata__\":{\"a\":\"b\",\"\\u0061\":\"c\"}}", 0},
    {"metadata twice", ISOBIT_E_DUPLICATE, "twice", 8,
     "{\"__metadata__\":{}," GOOD ",\"__metadata__\":{}}", 0},
    {"metadata twice escaped", ISOBIT_E_DUPLICATE, "twice", 0,
     "{\"__metadata__\":{},\"__meta\\u0064ata__\":{}}", 0},
    {"metadata deep", ISOBIT_E_JSON, "string", 0, NULL, nested_metadata},
    {"metadata many empty keys", ISOBIT_E_DUPLICATE, "__metadata__", 0, NULL, many_metadata},

    /* Fields of an entry. */
    {"no fields", ISOBIT_E_MISSING, "not there", 0, "{\"a\":{}}", 0},
    {"no dtype", ISOBIT_E_MISSING, "not there", 8, ENTRY(SHAPE "," SPAN), 0},
    {"no shape", ISOBIT_E_MISSING, "not there", 8, ENTRY(TYPE "," SPAN), 0},
    {"no offsets", ISOBIT_E_MISSING, "not there", 8, ENTRY(TYPE "," SHAPE), 0},
    {"only unknown fields", ISOBIT_E_MISSING, "not there", 0, ENTRY("\"x\":1,\"y\":2"), 0},
    {"capital dtype", ISOBIT_E_MISSING, "not there", 8, ENTRY("\"DTYPE\":\"F32\"," SHAPE "," SPAN),
     0},
    {"dtype twice", ISOBIT_E_DUPLICATE, "twice", 8, ENTRY(TYPE "," TYPE "," SHAPE "," SPAN), 0},
    {"shape twice", ISOBIT_E_DUPLICATE, "twice", 8, ENTRY(TYPE "," SHAPE "," SHAPE "," SPAN), 0},
    {"offsets twice", ISOBIT_E_DUPLICATE, "twice", 8, ENTRY(TYPE "," SHAPE "," SPAN "," SPAN), 0},
    {"dtype twice escaped", ISOBIT_E_DUPLICATE, "twice", 8,
     ENTRY(TYPE "," SHAPE "," SPAN ",\"d\\u0074ype\":\"F32\""), 0},
    {"dtype twice after many", ISOBIT_E_DUPLICATE, "twice", 8, NULL, many_fields},
    {"key with NUL", ISOBIT_E_JSON, "NUL", 8,
     ENTRY(TYPE "," SHAPE "," SPAN ",\"dtype\\u0000\":\"F32\""), 0},
    {"dtype number", ISOBIT_E_JSON, "string", 8, ENTRY("\"dtype\":0," SHAPE "," SPAN), 0},
    {"dtype null", ISOBIT_E_JSON, "string", 8, ENTRY("\"dtype\":null," SHAPE "," SPAN), 0},
    {"dtype list", ISOBIT_E_JSON, "string", 8, ENTRY("\"dtype\":[\"F32\"]," SHAPE "," SPAN), 0},
    {"dtype open", ISOBIT_E_JSON, "does not end", 8, NULL, long_dtype},
    {"shape number", ISOBIT_E_JSON, "list", 8, ENTRY(TYPE ",\"shape\":2," SPAN), 0},
    {"shape null", ISOBIT_E_JSON, "list", 8, ENTRY(TYPE ",\"shape\":null," SPAN), 0},
    {"shape string", ISOBIT_E_JSON, "list", 8, ENTRY(TYPE ",\"shape\":\"2\"," SPAN), 0},
    {"shape object", ISOBIT_E_JSON, "list", 8, ENTRY(TYPE ",\"shape\":{\"0\":2}," SPAN), 0},
    {"shape of strings", ISOBIT_E_JSON, "whole number", 8, ENTRY(TYPE ",\"shape\":[\"2\"]," SPAN),
     0},
    {"shape of lists", ISOBIT_E_JSON, "whole number", 8, ENTRY(TYPE ",\"shape\":[[2]]," SPAN), 0},
    {"shape with null", ISOBIT_E_JSON, "whole number", 8, ENTRY(TYPE ",\"shape\":[null]," SPAN), 0},
    {"shape comma", ISOBIT_E_JSON, "whole number", 8, ENTRY(TYPE ",\"shape\":[2,]," SPAN), 0},
    {"shape open", ISOBIT_E_JSON, "']'", 8, ENTRY(TYPE ",\"shape\":[2"), 0},
    {"offsets one", ISOBIT_E_JSON, "two numbers", 8, ENTRY(TYPE "," SHAPE ",\"data_offsets\":[8]"),
     0},
    {"offsets none", ISOBIT_E_JSON, "two numbers", 8, ENTRY(TYPE "," SHAPE ",\"data_offsets\":[]"),
     0},
    {"offsets three", ISOBIT_E_JSON, "two numbers", 8,
     ENTRY(TYPE "," SHAPE ",\"data_offsets\":[0,8,16]"), 0},
    {"offsets four", ISOBIT_E_LIMIT, "too many", 8,
     ENTRY(TYPE "," SHAPE ",\"data_offsets\":[0,8,16,24]"), 0},
    {"offsets number", ISOBIT_E_JSON, "list", 8, ENTRY(TYPE "," SHAPE ",\"data_offsets\":8"), 0},
    {"offsets object", ISOBIT_E_JSON, "list", 8,
     ENTRY(TYPE "," SHAPE ",\"data_offsets\":{\"0\":0,\"1\":8}"), 0},

    /* Values of unknown fields are read as strictly. */
    {"unknown bare word", ISOBIT_E_JSON, "value", 8, EXTRA("F32"), 0},
    {"unknown true cut", ISOBIT_E_JSON, "value", 8, EXTRA("tru"), 0},
    {"unknown NaN", ISOBIT_E_JSON, "value", 8, EXTRA("NaN"), 0},
    {"unknown Infinity", ISOBIT_E_JSON, "value", 8, EXTRA("-Infinity"), 0},
    {"unknown plus", ISOBIT_E_JSON, "value", 8, EXTRA("+1"), 0},
    {"unknown hex", ISOBIT_E_JSON, "'}'", 8, EXTRA("0x10"), 0},
    {"unknown leading zero", ISOBIT_E_JSON, "begins with 0", 8, EXTRA("-012"), 0},
    {"unknown point first", ISOBIT_E_JSON, "value", 8, EXTRA(".5"), 0},
    {"unknown point last", ISOBIT_E_JSON, "digits", 8, EXTRA("5."), 0},
    {"unknown exponent", ISOBIT_E_JSON, "exponent", 8, EXTRA("5e+"), 0},
    {"unknown empty", ISOBIT_E_JSON, "value", 8, EXTRA(""), 0},
    {"unknown list open", ISOBIT_E_JSON, "closing bracket", 8, EXTRA("[1"), 0},
    {"unknown list crossed", ISOBIT_E_JSON, "closing bracket", 8, EXTRA("[{\"y\":1]}"), 0},
    {"unknown list comma", ISOBIT_E_JSON, "value", 8, EXTRA("[1,]"), 0},
    {"unknown object key", ISOBIT_E_JSON, "string", 8, EXTRA("{1:1}"), 0},
    {"unknown object colon", ISOBIT_E_JSON, "':'", 8, EXTRA("{\"y\" 1}"), 0},
    {"unknown object comma", ISOBIT_E_JSON, "string", 8, EXTRA("{\"y\":1,}"), 0},

    /* Depth: parsers that recurse run out of stack. */
    {"nested 33", ISOBIT_E_LIMIT, "nested", 8, NULL, nested_lists},
    {"nested 34 mixed", ISOBIT_E_LIMIT, "nested", 8, NULL, nested_mixed},
    {"nested 200000", ISOBIT_E_LIMIT, "nested", 8, NULL, nested_open},
    {"nested objects", ISOBIT_E_LIMIT, "nested", 8, NULL, nested_objects},
    {"nested at the top", ISOBIT_E_JSON, "object", 0, NULL, nested_top},

    /* Small files that look like very many entries. */
    {"many colons", ISOBIT_E_JSON, "does not end", 0, NULL, many_colons},
    {"many empty entries", ISOBIT_E_MISSING, "not there", 0, NULL, many_empty},

    /* Numbers. */
    {"number negative", ISOBIT_E_JSON, "whole number", 8, ONE("-2", "0", "8"), 0},
    {"number minus zero", ISOBIT_E_JSON, "whole number", 8, ONE("2", "-0", "8"), 0},
    {"number negative end", ISOBIT_E_JSON, "whole number", 8, ONE("2", "0", "-8"), 0},
    {"number plus", ISOBIT_E_JSON, "whole number", 8, ONE("+2", "0", "8"), 0},
    {"number fraction", ISOBIT_E_JSON, "fraction", 8, ONE("2.0", "0", "8"), 0},
    {"number fraction offset", ISOBIT_E_JSON, "fraction", 8, ONE("2", "0", "8.0"), 0},
    {"number exponent", ISOBIT_E_JSON, "exponent", 8, ONE("2e0", "0", "8"), 0},
    {"number capital exponent", ISOBIT_E_JSON, "exponent", 8, ONE("2E0", "0", "8"), 0},
    {"number leading zero", ISOBIT_E_JSON, "begins with 0", 8, ONE("02", "0", "8"), 0},
    {"number leading zeros", ISOBIT_E_JSON, "begins with 0", 8, ONE("2", "0", "0008"), 0},
    {"number hex", ISOBIT_E_JSON, "']'", 8, ONE("0x2", "0", "8"), 0},
    {"number string", ISOBIT_E_JSON, "whole number", 8, ONE("2", "0", "\"8\""), 0},
    {"number boolean", ISOBIT_E_JSON, "whole number", 8, ONE("true", "0", "8"), 0},
    {"number in two", ISOBIT_E_JSON, "']'", 8, ONE("2 0", "0", "8"), 0},
    {"number 2^63", ISOBIT_E_OVERFLOW, "2^63", 8, ONE("9223372036854775808", "0", "8"), 0},
    {"number 2^64", ISOBIT_E_OVERFLOW, "2^63", 8, ONE("18446744073709551616", "0", "8"), 0},
    {"number 2^64+2", ISOBIT_E_OVERFLOW, "2^63", 8, ONE("18446744073709551618", "0", "8"), 0},
    {"number end 2^64+8", ISOBIT_E_OVERFLOW, "2^63", 8, ONE("2", "0", "18446744073709551624"), 0},
    {"number begin 2^64", ISOBIT_E_OVERFLOW, "2^63", 8, ONE("2", "18446744073709551616", "8"), 0},
    {"number of 20000 digits", ISOBIT_E_OVERFLOW, "2^63", 8, NULL, long_number},
    {"rank 9", ISOBIT_E_LIMIT, "too many", 4, ONE("1,1,1,1,1,1,1,1,1", "0", "4"), 0},
    {"rank 12 of zeros", ISOBIT_E_LIMIT, "too many", 0, ONE("0,0,0,0,0,0,0,0,0,0,0,0", "0", "0"),
     0},

    /* Products that wrap: to the right number, to 0, or hidden by a 0. */
    {"product 2^32 squared", ISOBIT_E_OVERFLOW, "product", 0,
     ONE("4294967296,4294967296", "0", "0"), 0},
    {"product wraps to 8 bytes", ISOBIT_E_OVERFLOW, "overflows", 8,
     ONE("4611686018427387906", "0", "8"), 0},
    {"product of max and 2", ISOBIT_E_OVERFLOW, "overflows", 0,
     ONE("9223372036854775807,2", "0", "0"), 0},
    {"product of max and 3", ISOBIT_E_OVERFLOW, "product", 0,
     ONE("9223372036854775807,3", "0", "0"), 0},
    {"product of three", ISOBIT_E_OVERFLOW, "product", 0,
     ONE("2097152,2097152,4194304,2", "0", "0"), 0},
    {"product of eight", ISOBIT_E_OVERFLOW, "product", 0,
     ONE("256,256,256,256,256,256,256,256", "0", "0"), 0},
    {"product behind zero", ISOBIT_E_OVERFLOW, "product", 0,
     ONE("0,4294967296,4294967296", "0", "0"), 0},
    {"product before zero", ISOBIT_E_OVERFLOW, "product", 0,
     ONE("4294967296,4294967296,0", "0", "0"), 0},
    {"bytes wrap", ISOBIT_E_OVERFLOW, "bytes overflows", 0, ONE("4611686018427387904", "0", "0"),
     0},
    {"bits wrap", ISOBIT_E_OVERFLOW, "bytes overflows", 0, ONE("576460752303423488", "0", "0"), 0},
    {"bits wrap F64", ISOBIT_E_OVERFLOW, "bytes overflows", 0,
     TYPED("F64", "288230376151711744", "0", "0"), 0},
    {"bits wrap F4", ISOBIT_E_OVERFLOW, "bytes overflows", 0,
     TYPED("F4", "4611686018427387904", "0", "0"), 0},

    /* The span is not shape times element size: readers that take one for the other run over. */
    {"span short", ISOBIT_E_OFFSET, "span", 8, ONE("3", "0", "8"), 0},
    {"span long", ISOBIT_E_OFFSET, "span", 8, ONE("1", "0", "8"), 0},
    {"span by one byte", ISOBIT_E_OFFSET, "span", 9, ONE("2", "0", "9"), 0},
    {"span of a scalar", ISOBIT_E_OFFSET, "span", 8, ONE("", "0", "8"), 0},
    {"span of nothing", ISOBIT_E_OFFSET, "span", 8, ONE("0", "0", "8"), 0},
    {"span empty", ISOBIT_E_OFFSET, "span", 0, ONE("2", "0", "0"), 0},
    {"span F16", ISOBIT_E_OFFSET, "span", 8, TYPED("F16", "2", "0", "8"), 0},
    {"span BF16", ISOBIT_E_OFFSET, "span", 8, TYPED("BF16", "8", "0", "8"), 0},
    {"span U8", ISOBIT_E_OFFSET, "span", 8, TYPED("U8", "2", "0", "8"), 0},
    {"span I64", ISOBIT_E_OFFSET, "span", 8, TYPED("I64", "2", "0", "8"), 0},
    {"span C64", ISOBIT_E_OFFSET, "span", 8, TYPED("C64", "2", "0", "8"), 0},
    {"span F8", ISOBIT_E_OFFSET, "span", 8, TYPED("F8_E4M3", "9", "0", "8"), 0},
    {"span of half a byte", ISOBIT_E_OFFSET, "span", 2, TYPED("F4", "3", "0", "2"), 0},
    {"span cut to a byte", ISOBIT_E_OFFSET, "span", 1, TYPED("F4", "3", "0", "1"), 0},
    {"span cut to two bytes", ISOBIT_E_OFFSET, "span", 2, TYPED("F6_E2M3", "3", "0", "2"), 0},
    {"span of six bits", ISOBIT_E_OFFSET, "span", 1, TYPED("F6_E3M2", "1", "0", "1"), 0},

    /* The data: reversed, overlapping, with holes, beyond the end. */
    {"reversed", ISOBIT_E_OFFSET, "reversed", 8, ONE("2", "8", "0"), 0},
    {"reversed at the limit", ISOBIT_E_OFFSET, "reversed", 8, ONE("2", "9223372036854775807", "7"),
     0},
    {"overlap by one", ISOBIT_E_OFFSET, "before the end", 15,
     "{" GOOD "," T("b", "2", "7", "15") "}", 0},
    {"overlap whole", ISOBIT_E_OFFSET, "before the end", 8, "{" GOOD "," T("b", "2", "0", "8") "}",
     0},
    {"overlap inside", ISOBIT_E_OFFSET, "before the end", 16,
     "{" T("a", "4", "0", "16") "," T("b", "2", "4", "12") "}", 0},
    {"overlap of an empty one", ISOBIT_E_OFFSET, "before the end", 8,
     "{" GOOD "," T("b", "0", "4", "4") "}", 0},
    {"overlap unsorted", ISOBIT_E_OFFSET, "before the end", 16,
     "{" T("b", "2", "8", "16") "," T("a", "3", "0", "12") "}", 0},
    {"hole first", ISOBIT_E_HOLE, "hole", 9, ONE("2", "1", "9"), 0},
    {"hole between", ISOBIT_E_HOLE, "hole", 17, "{" GOOD "," T("b", "2", "9", "17") "}", 0},
    {"hole last", ISOBIT_E_HOLE, "last tensor", 9, ONE("2", "0", "8"), 0},
    {"hole is all", ISOBIT_E_HOLE, "last tensor", 1, "{}", 0},
    {"hole behind metadata", ISOBIT_E_HOLE, "last tensor", 4096, "{\"__metadata__\":{}}", 0},
    {"hole before an empty one", ISOBIT_E_HOLE, "hole", 12,
     "{" GOOD "," T("b", "0", "12", "12") "}", 0},
    {"polyglot", ISOBIT_E_HOLE, "last tensor", 64, "{" GOOD "}", 0},
    {"end beyond by one", ISOBIT_E_TRUNCATED, "ends at byte", 7, ONE("2", "0", "8"), 0},
    {"end beyond, second", ISOBIT_E_TRUNCATED, "ends at byte", 15,
     "{" GOOD "," T("b", "2", "8", "16") "}", 0},
    {"end beyond far", ISOBIT_E_TRUNCATED, "ends at byte", 8,
     ONE("268435456,1073741824", "0", "1152921504606846976"), 0},
    {"end beyond, no data", ISOBIT_E_TRUNCATED, "ends at byte", 0, ONE("2", "0", "8"), 0},
    {"end beyond, petabytes of bool", ISOBIT_E_TRUNCATED, "ends at byte", 0,
     TYPED("BOOL", "1125899906842624", "0", "1125899906842624"), 0},
    {"begin beyond", ISOBIT_E_HOLE, "hole", 8,
     ONE("0", "9223372036854775807", "9223372036854775807"), 0},
    {"unknown type beyond", ISOBIT_E_TRUNCATED, "ends at byte", 4, TYPED("Q4_K", "9", "0", "5"), 0},
};
const size_t corpus_header_count = COUNT(corpus_headers);
