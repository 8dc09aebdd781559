/* SPDX-License-Identifier: MIT
 *
 * The rows of the corpus. Rules that loaders elsewhere have broken come with a word on how: sizes
 * that wrap, sums that wrap after the check, a shape of which the product is 0 by accident, spans
 * that are not those of the shape, files of some bytes that ask for gigabytes, text that recurses.
 */
#include "corpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* ------------------------------------------------------------------------------------ headers */

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

/* -------------------------------------------------------------------------------------- files */

const corpus_file corpus_files[] = {
    {"empty", ISOBIT_E_TRUNCATED, "0 bytes", 0, {0}},
    {"one byte", ISOBIT_E_TRUNCATED, "1 bytes", 1, {2}},
    {"seven bytes", ISOBIT_E_TRUNCATED, "7 bytes", 7, {2}},
    {"length 0", ISOBIT_E_HEADER_SIZE, "header of 0", 8, {0}},
    {"length 0 and text", ISOBIT_E_HEADER_SIZE, "header of 0", 10, {[8] = '{', '}'}},
    {"length 1", ISOBIT_E_HEADER_SIZE, "header of 1", 9, {1, [8] = '{'}},
    {"length 2, nothing", ISOBIT_E_TRUNCATED, "header of 2", 8, {2}},
    {"length 2, one byte", ISOBIT_E_TRUNCATED, "header of 2", 9, {2, [8] = '{'}},
    {"length by one", ISOBIT_E_TRUNCATED, "header of 3", 10, {3, [8] = '{', '}'}},
    {"length big endian", ISOBIT_E_HEADER_SIZE, "header of", 10, {[7] = 2, '{', '}'}},
    {"length 100000000", ISOBIT_E_TRUNCATED, "100000000", 16, {0, 0xe1, 0xf5, 0x05}},
    {"length 100000001", ISOBIT_E_HEADER_SIZE, "100000001", 16, {1, 0xe1, 0xf5, 0x05}},
    {"length 2^31", ISOBIT_E_HEADER_SIZE, "2147483648", 16, {0, 0, 0, 0x80}},
    {"length 2^32", ISOBIT_E_HEADER_SIZE, "4294967296", 16, {0, 0, 0, 0, 1}},
    {"length 2^32+2", ISOBIT_E_HEADER_SIZE, "4294967298", 16, {2, 0, 0, 0, 1, 0, 0, 0, '{', '}'}},
    {"length 2^63-1",
     ISOBIT_E_HEADER_SIZE,
     "9223372036854775807",
     16,
     {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}},
    {"length 2^63", ISOBIT_E_HEADER_SIZE, "9223372036854775808", 16, {[7] = 0x80}},
    {"length 2^64-8 wraps",
     ISOBIT_E_HEADER_SIZE,
     "18446744073709551608",
     16,
     {0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
    {"length 2^64-5 wraps",
     ISOBIT_E_HEADER_SIZE,
     "18446744073709551611",
     16,
     {0xfb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
    {"length 2^64-1",
     ISOBIT_E_HEADER_SIZE,
     "18446744073709551615",
     16,
     {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
    {"zeros", ISOBIT_E_HEADER_SIZE, "header of 0", 4096, {0}},
    {"header of zeros", ISOBIT_E_JSON, "object", 4096, {0xf8, 0x0f}},
    {"no tensor", ISOBIT_E_MISSING, "no tensor", 10, {2, [8] = '{', '}'}},
    {"a ZIP archive", ISOBIT_E_HEADER_SIZE, "header of", 64, {'P', 'K', 3, 4, 20, 0, 8, 8}},
    {"a pickle", ISOBIT_E_HEADER_SIZE, "header of", 64, {0x80, 2, 0x8a, 10, 'l', 0xfc, 0x9c, 'F'}},
    {"a GGUF file", ISOBIT_E_HEADER_SIZE, "header of", 64, {'G', 'G', 'U', 'F', 3, 0, 0, 0}},
    {"a text", ISOBIT_E_HEADER_SIZE, "header of", 64, {'v', 'e', 'r', 's', 'i', 'o', 'n', ' '}},
};
const size_t corpus_file_count = COUNT(corpus_files);

/* -------------------------------------------------------------------------------------- tensors */

#define ENCODER "model.encoder.layers.0."
#define DECODER "model.decoder.layers.0."
#define MISSING(tensor)                                                                            \
    { "missing " tensor, ISOBIT_E_MISSING, tensor, .skip = tensor }

const corpus_tensors corpus_tensor_files[] = {
    MISSING("model.shared.weight"),
    MISSING("final_logits_bias"),
    MISSING(ENCODER "self_attn.q_proj.weight"),
    MISSING(ENCODER "self_attn.k_proj.bias"),
    MISSING(ENCODER "self_attn.out_proj.weight"),
    MISSING(ENCODER "self_attn_layer_norm.weight"),
    MISSING(ENCODER "self_attn_layer_norm.bias"),
    MISSING(ENCODER "fc1.weight"),
    MISSING(ENCODER "fc2.bias"),
    MISSING(DECODER "encoder_attn.q_proj.weight"),
    MISSING(DECODER "encoder_attn.k_proj.weight"),
    MISSING(DECODER "encoder_attn.v_proj.bias"),
    MISSING(DECODER "encoder_attn.out_proj.weight"),
    MISSING(DECODER "encoder_attn_layer_norm.weight"),
    MISSING(DECODER "final_layer_norm.bias"),
    {"vocabulary smaller", ISOBIT_E_SHAPE, "[7, 8] is expected", .v = CORPUS_V - 1},
    {"vocabulary larger", ISOBIT_E_SHAPE, "[7, 8] is expected", .v = CORPUS_V + 1},
    {"width smaller", ISOBIT_E_SHAPE, "[7, 8] is expected", .d = CORPUS_D - 1},
    {"width larger", ISOBIT_E_SHAPE, "[7, 8] is expected", .d = CORPUS_D * 2},
    {"ffn smaller", ISOBIT_E_SHAPE, "[12, 8] is expected", .f = CORPUS_FFN - 1},
    {"ffn larger", ISOBIT_E_SHAPE, "[12, 8] is expected", .f = CORPUS_FFN + 16},
    {"embedding transposed", ISOBIT_E_SHAPE, "[7, 8] is expected", .skip = "model.shared.weight",
     .extra = "model.shared.weight", .n = CORPUS_D, .k = CORPUS_V},
    {"embedding a vector", ISOBIT_E_SHAPE, "[7, 8] is expected", .skip = "model.shared.weight",
     .extra = "model.shared.weight", .n = CORPUS_D * CORPUS_V},
    {"bias without its 1", ISOBIT_E_SHAPE, "[1, 7] is expected", .skip = "final_logits_bias",
     .extra = "final_logits_bias", .n = CORPUS_V},
    {"bias long", ISOBIT_E_SHAPE, "[1, 7] is expected", .skip = "final_logits_bias",
     .extra = "final_logits_bias", .n = 1, .k = CORPUS_V + 1},
    {"norm a matrix", ISOBIT_E_SHAPE, "[8] is expected", .skip = ENCODER "final_layer_norm.weight",
     .extra = ENCODER "final_layer_norm.weight", .n = 8, .k = 1},
    {"norm empty", ISOBIT_E_SHAPE, "[8] is expected", .skip = ENCODER "final_layer_norm.weight",
     .extra = ENCODER "final_layer_norm.weight", .n = 0},
    {"positions short", ISOBIT_E_SHAPE, "embed_positions",
     .extra = "model.encoder.embed_positions.weight", .n = 5, .k = CORPUS_D},
    {"positions narrow", ISOBIT_E_SHAPE, "embed_positions",
     .extra = "model.decoder.embed_positions.weight", .n = 1024, .k = CORPUS_D - 1},
    {"integers", ISOBIT_E_DTYPE, "F32, F16, BF16 or F64", .odd = ENCODER "fc1.weight",
     .dtype = "I32"},
    {"unsigned", ISOBIT_E_DTYPE, "F32, F16, BF16 or F64", .odd = "model.shared.weight",
     .dtype = "U32"},
    {"unknown type", ISOBIT_E_UNSUPPORTED, "unknown element type", .odd = "model.shared.weight",
     .dtype = "F33"},
    {"unknown type escaped", ISOBIT_E_UNSUPPORTED, "\\x0a", .odd = "model.shared.weight",
     .dtype = "Q4\\n"},
    {"small letters", ISOBIT_E_UNSUPPORTED, "\"f32\"", .odd = "final_logits_bias", .dtype = "f32"},
    {"type with NUL", ISOBIT_E_UNSUPPORTED, "unknown element type", .odd = DECODER "fc2.bias",
     .dtype = "F32\\u0000"},
};
const size_t corpus_tensor_file_count = COUNT(corpus_tensor_files);

/* -------------------------------------------------------------------------------------- config */

static const char *const good_config[][2] = {
    {"model_type", "\"marian\""},
    {"vocab_size", "7"},
    {"d_model", "8"},
    {"encoder_layers", "1"},
    {"decoder_layers", "1"},
    {"encoder_attention_heads", "2"},
    {"decoder_attention_heads", "2"},
    {"encoder_ffn_dim", "12"},
    {"decoder_ffn_dim", "12"},
    {"activation_function", "\"relu\""},
    {"eos_token_id", "2"},
    {"decoder_start_token_id", "1"},
    {"pad_token_id", "0"},
};

char *corpus_config_text(const corpus_config *row) {
    blob b = {0};
    int found = 0;
    if (row && !row->key) {
        add(&b, row->value);
    } else {
        for (size_t i = 0; i <= COUNT(good_config); i++) {
            const char *key = i < COUNT(good_config) ? good_config[i][0] : row ? row->key : NULL;
            const char *value = i < COUNT(good_config) ? good_config[i][1] : NULL;
            if (row && key && strcmp(key, row->key) == 0) {
                if (found++)
                    continue;
                value = row->value;
            }
            if (!value)
                continue;
            add(&b, b.count ? ",\"" : "{\"");
            add(&b, key);
            add(&b, "\":");
            add(&b, value);
        }
        add(&b, "}");
    }
    blob_add(&b, "", 1);
    return (char *)b.bytes;
}

/* What no size may be; .5 of a layer, and numbers that a cast would wrap. */
#define NO_SIZES(key)                                                                              \
    {key " 0", ISOBIT_E_CONFIG, key, key, "0"}, {key " -1", ISOBIT_E_CONFIG, key, key, "-1"},      \
        {key " 1.5", ISOBIT_E_CONFIG, key, key, "1.5"},                                            \
        {key " text", ISOBIT_E_CONFIG, key, key, "\"8\""},                                         \
        {key " true", ISOBIT_E_CONFIG, key, key, "true"},                                          \
        {key " list", ISOBIT_E_CONFIG, key, key, "[8]"},                                           \
        {key " 2^32+8", ISOBIT_E_CONFIG, key, key, "4294967304"},                                  \
        {key " 2^64+8", ISOBIT_E_CONFIG, key, key, "18446744073709551624"},                        \
        {key " 1e308", ISOBIT_E_CONFIG, key, key, "1e308"}, {                                      \
        key " 1e999", ISOBIT_E_JSON, "config.json", key, "1e999"                                   \
    }
#define NO_FLAGS(key)                                                                              \
    {key " 1", ISOBIT_E_CONFIG, key, key, "1"},                                                    \
        {key " text", ISOBIT_E_CONFIG, key, key, "\"true\""}, {                                    \
        key " list", ISOBIT_E_CONFIG, key, key, "[]"                                               \
    }
/* -1 is absent in some formats; here it is wrong. */
#define NO_IDS(key)                                                                                \
    {key " -1", ISOBIT_E_CONFIG, key, key, "-1"}, {key " V", ISOBIT_E_CONFIG, key, key, "7"},      \
        {key " 0.5", ISOBIT_E_CONFIG, key, key, "0.5"},                                            \
        {key " text", ISOBIT_E_CONFIG, key, key, "\"0\""},                                         \
        {key " 2^32", ISOBIT_E_CONFIG, key, key, "4294967296"}, {                                  \
        key " 2^32-1", ISOBIT_E_CONFIG, key, key, "4294967295"                                     \
    }
#define NO_REALS(key)                                                                              \
    {key " text", ISOBIT_E_CONFIG, key, key, "\"1\""},                                             \
        {key " -1e7", ISOBIT_E_CONFIG, key, key, "-1e7"}, {                                        \
        key " 1e31", ISOBIT_E_CONFIG, key, key, "1e31"                                             \
    }
#define NO_COUNTS(key)                                                                             \
    {key " -1", ISOBIT_E_CONFIG, key, key, "-1"}, {key " 0.5", ISOBIT_E_CONFIG, key, key, "0.5"},  \
        {key " text", ISOBIT_E_CONFIG, key, key, "\"1\""}, {                                       \
        key " 2^31+1", ISOBIT_E_CONFIG, key, key, "2147483649"                                     \
    }
#define WHOLE(name, status, says, text)                                                            \
    { name, status, says, NULL, text }

const corpus_config corpus_configs[] = {
    WHOLE("empty", ISOBIT_E_JSON, "config.json", ""),
    WHOLE("spaces", ISOBIT_E_JSON, "config.json", " \n "),
    WHOLE("list", ISOBIT_E_JSON, "object", "[]"),
    WHOLE("string", ISOBIT_E_JSON, "config.json", "\"marian\""),
    WHOLE("open", ISOBIT_E_JSON, "config.json", "{\"model_type\":\"marian\""),
    WHOLE("comma", ISOBIT_E_JSON, "config.json", "{\"model_type\":\"marian\",}"),
    WHOLE("text behind", ISOBIT_E_JSON, "config.json", "{} x"),
    WHOLE("comment", ISOBIT_E_JSON, "config.json", "{} // x"),
    WHOLE("NaN", ISOBIT_E_JSON, "config.json", "{\"model_type\":NaN}"),
    WHOLE("UTF-8", ISOBIT_E_UTF8, "config.json", "{\"model_type\":\"\xc3\"}"),
    WHOLE("UTF-8 surrogate", ISOBIT_E_UTF8, "config.json", "{\"a\":\"\xed\xa0\x80\"}"),
    WHOLE("escape half pair", ISOBIT_E_JSON, "config.json", "{\"a\":\"\\ud800\"}"),
    WHOLE("key twice", ISOBIT_E_DUPLICATE, "config.json", "{\"a\":1,\"a\":1}"),
    WHOLE("key twice escaped", ISOBIT_E_DUPLICATE, "config.json", "{\"a\":1,\"\\u0061\":1}"),
    WHOLE("key twice inside", ISOBIT_E_DUPLICATE, "config.json", "{\"x\":[{\"a\":1,\"a\":1}]}"),
    WHOLE("nothing", ISOBIT_E_MISSING, "model_type", "{}"),
    WHOLE("nested 65", ISOBIT_E_LIMIT, "64",
          "{\"x\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["),
    {"no model_type", ISOBIT_E_MISSING, "model_type", "model_type", NULL},
    {"model_type null", ISOBIT_E_MISSING, "model_type", "model_type", "null"},
    {"model_type number", ISOBIT_E_MISSING, "model_type", "model_type", "1"},
    {"model_type list", ISOBIT_E_MISSING, "model_type", "model_type", "[\"marian\"]"},
    {"model_type other", ISOBIT_E_UNSUPPORTED, "\"mamba\"", "model_type", "\"mamba\""},
    {"model_type empty", ISOBIT_E_UNSUPPORTED, "marian", "model_type", "\"\""},
    {"model_type escaped", ISOBIT_E_UNSUPPORTED, "\\x1b", "model_type", "\"\\u001b]0;x\\u0007\""},
    {"model_type format", ISOBIT_E_UNSUPPORTED, "%n", "model_type", "\"%n%n%s\""},
    {"model_type capital", ISOBIT_E_UNSUPPORTED, "Marian", "model_type", "\"Marian\""},
    NO_SIZES("vocab_size"),
    NO_SIZES("d_model"),
    NO_SIZES("encoder_layers"),
    NO_SIZES("decoder_layers"),
    NO_SIZES("encoder_attention_heads"),
    NO_SIZES("decoder_attention_heads"),
    NO_SIZES("encoder_ffn_dim"),
    NO_SIZES("decoder_ffn_dim"),
    NO_SIZES("max_position_embeddings"),
    NO_SIZES("decoder_vocab_size"),
    {"layers 513", ISOBIT_E_CONFIG, "encoder_layers", "encoder_layers", "513"},
    {"layers 2, tensors of 1", ISOBIT_E_MISSING, "layers.1.", "decoder_layers", "2"},
    {"layers 512, tensors of 1", ISOBIT_E_MISSING, "layers.1.", "encoder_layers", "512"},
    {"positions 2^20+1", ISOBIT_E_CONFIG, "max_position", "max_position_embeddings", "1048577"},
    {"heads 3 of 8", ISOBIT_E_CONFIG, "multiple", "encoder_attention_heads", "3"},
    {"heads 16 of 8", ISOBIT_E_CONFIG, "multiple", "decoder_attention_heads", "16"},
    {"heads of 1024", ISOBIT_E_LIMIT, "512", "d_model", "2048"},
    {"decoder_vocab_size other", ISOBIT_E_CONFIG, "shared", "decoder_vocab_size", "8"},
    {"d_model other", ISOBIT_E_SHAPE, "expected", "d_model", "10"},
    {"d_model large", ISOBIT_E_SHAPE, "expected", "d_model", "1024"},
    {"ffn other", ISOBIT_E_SHAPE, "expected", "encoder_ffn_dim", "13"},
    {"ffn default", ISOBIT_E_SHAPE, "[4096, 8] is expected", "encoder_ffn_dim", NULL},
    {"decoder ffn default", ISOBIT_E_SHAPE, "[4096, 8] is expected", "decoder_ffn_dim", NULL},
    {"vocab_size default", ISOBIT_E_SHAPE, "[58101, 8] is expected", "vocab_size", NULL},
    {"d_model default", ISOBIT_E_SHAPE, "[7, 1024] is expected", "d_model", NULL},
    {"ffn 2^24", ISOBIT_E_SHAPE, "expected", "decoder_ffn_dim", "16777216"},
    {"vocab_size other", ISOBIT_E_SHAPE, "expected", "vocab_size", "8"},
    {"vocab_size 2^31", ISOBIT_E_SHAPE, "expected", "vocab_size", "2147483648"},
    {"vocab_size below ids", ISOBIT_E_CONFIG, "eos_token_id", "vocab_size", "2"},
    {"activation other", ISOBIT_E_UNSUPPORTED, "quick_gelu", "activation_function",
     "\"quick_gelu\""},
    {"activation empty", ISOBIT_E_UNSUPPORTED, "activation_function", "activation_function",
     "\"\""},
    {"activation number", ISOBIT_E_CONFIG, "activation_function", "activation_function", "1"},
    {"activation list", ISOBIT_E_CONFIG, "activation_function", "activation_function",
     "[\"relu\"]"},
    NO_FLAGS("scale_embedding"),
    NO_FLAGS("share_encoder_decoder_embeddings"),
    NO_FLAGS("tie_word_embeddings"),
    NO_FLAGS("renormalize_logits"),
    NO_IDS("pad_token_id"),
    NO_IDS("bos_token_id"),
    NO_IDS("unk_token_id"),
    NO_IDS("decoder_start_token_id"),
    NO_IDS("eos_token_id"),
    NO_IDS("forced_bos_token_id"),
    NO_IDS("forced_eos_token_id"),
    {"eos list with text", ISOBIT_E_CONFIG, "eos_token_id", "eos_token_id", "[2,\"3\"]"},
    {"eos list of lists", ISOBIT_E_CONFIG, "eos_token_id", "eos_token_id", "[[2]]"},
    {"eos object", ISOBIT_E_CONFIG, "eos_token_id", "eos_token_id", "{\"0\":2}"},
    {"eos list beyond", ISOBIT_E_CONFIG, "eos_token_id", "eos_token_id", "[2,7]"},
    {"not shared, no tensor", ISOBIT_E_MISSING, "embed_tokens", "share_encoder_decoder_embeddings",
     "false"},
    {"num_beams 0", ISOBIT_E_CONFIG, "num_beams", "num_beams", "0"},
    {"num_beams 1025", ISOBIT_E_CONFIG, "num_beams", "num_beams", "1025"},
    NO_COUNTS("num_beams"),
    NO_COUNTS("max_length"),
    NO_COUNTS("max_new_tokens"),
    NO_COUNTS("min_length"),
    NO_COUNTS("min_new_tokens"),
    NO_COUNTS("no_repeat_ngram_size"),
    {"max_length 1", ISOBIT_E_CONFIG, "max_length", "max_length", "1"},
    {"max_new_tokens 0", ISOBIT_E_CONFIG, "max_new_tokens", "max_new_tokens", "0"},
    NO_REALS("length_penalty"),
    NO_REALS("repetition_penalty"),
    {"repetition_penalty 0", ISOBIT_E_CONFIG, "repetition_penalty", "repetition_penalty", "0.0"},
    {"repetition_penalty -1", ISOBIT_E_CONFIG, "repetition_penalty", "repetition_penalty", "-1"},
    {"repetition_penalty that is 0 as a float", ISOBIT_E_CONFIG, "repetition_penalty",
     "repetition_penalty", "1e-131"},
    {"early_stopping text", ISOBIT_E_CONFIG, "early_stopping", "early_stopping", "\"true\""},
    {"early_stopping number", ISOBIT_E_CONFIG, "early_stopping", "early_stopping", "1"},
    {"bad words number", ISOBIT_E_CONFIG, "bad_words_ids", "bad_words_ids", "3"},
    {"bad words flat", ISOBIT_E_CONFIG, "bad_words_ids", "bad_words_ids", "[1,2]"},
    {"bad words empty word", ISOBIT_E_CONFIG, "bad_words_ids", "bad_words_ids", "[[1],[]]"},
    {"bad words text", ISOBIT_E_CONFIG, "bad_words_ids", "bad_words_ids", "[[\"1\"]]"},
    {"bad words negative", ISOBIT_E_CONFIG, "bad_words_ids", "bad_words_ids", "[[1,-1]]"},
    {"bad words beyond", ISOBIT_E_CONFIG, "bad_words_ids", "bad_words_ids", "[[1],[2,7]]"},
    {"bad words object", ISOBIT_E_CONFIG, "bad_words_ids", "bad_words_ids", "{}"},
};
const size_t corpus_config_count = COUNT(corpus_configs);

/* ---------------------------------------------------------------------------------- generation */

#define OF_GENERATION "generation_config.json"

const corpus_text corpus_generation_configs[] = {
    {"empty", ISOBIT_E_JSON, OF_GENERATION, "", NULL},
    {"list", ISOBIT_E_JSON, OF_GENERATION, "[]", NULL},
    {"open", ISOBIT_E_JSON, OF_GENERATION, "{\"num_beams\":", NULL},
    {"UTF-8", ISOBIT_E_UTF8, OF_GENERATION, "{\"a\":\"\xff\"}", NULL},
    {"key twice", ISOBIT_E_DUPLICATE, OF_GENERATION, "{\"num_beams\":1,\"num_beams\":2}", NULL},
    {"beams 0", ISOBIT_E_CONFIG, OF_GENERATION ": \"num_beams\"", "{\"num_beams\":0}", NULL},
    {"beams many", ISOBIT_E_CONFIG, OF_GENERATION ": \"num_beams\"", "{\"num_beams\":99999}", NULL},
    {"length 0", ISOBIT_E_CONFIG, OF_GENERATION ": \"max_length\"", "{\"max_length\":0}", NULL},
    {"new tokens 0", ISOBIT_E_CONFIG, "max_new_tokens", "{\"max_new_tokens\":0}", NULL},
    {"penalty text", ISOBIT_E_CONFIG, "length_penalty", "{\"length_penalty\":\"x\"}", NULL},
    {"penalty 0", ISOBIT_E_CONFIG, "repetition_penalty", "{\"repetition_penalty\":0}", NULL},
    {"early", ISOBIT_E_CONFIG, "early_stopping", "{\"early_stopping\":[]}", NULL},
    {"eos beyond", ISOBIT_E_CONFIG, OF_GENERATION ": \"eos_token_id\"", "{\"eos_token_id\":7}",
     NULL},
    {"eos text", ISOBIT_E_CONFIG, "eos_token_id", "{\"eos_token_id\":\"</s>\"}", NULL},
    {"pad beyond", ISOBIT_E_CONFIG, "pad_token_id", "{\"pad_token_id\":70}", NULL},
    {"start beyond", ISOBIT_E_CONFIG, "decoder_start_token_id", "{\"decoder_start_token_id\":7}",
     NULL},
    {"forced eos beyond", ISOBIT_E_CONFIG, "forced_eos_token_id", "{\"forced_eos_token_id\":[9]}",
     NULL},
    {"bad words", ISOBIT_E_CONFIG, "bad_words_ids", "{\"bad_words_ids\":[[58100]]}", NULL},
};
const size_t corpus_generation_config_count = COUNT(corpus_generation_configs);

/* ---------------------------------------------------------------------------------- tokenizers */

const char corpus_good_tokenizer[] =
    "{\"tokenizer_class\":\"isobit-characters\",\"lowercase\":true,\"split_words\":true}";
const char corpus_good_vocabulary[] =
    "{\"<pad>\":0,\"<s>\":1,\"</s>\":2,\"<unk>\":3,\"a\":4,\"b\":5,\"\xc3\xa9\":6}";

#define SPECIAL "\"</s>\":0,\"<unk>\":1"
#define VOCABULARY(name, status, says, text)                                                       \
    { name, status, says, NULL, text }
#define CLASS "\"tokenizer_class\":\"isobit-characters\""

const corpus_text corpus_tokenizers[] = {
    VOCABULARY("vocabulary empty file", ISOBIT_E_JSON, "vocab.json", ""),
    VOCABULARY("vocabulary list", ISOBIT_E_JSON, "vocab.json", "[\"a\",\"b\"]"),
    VOCABULARY("vocabulary open", ISOBIT_E_JSON, "vocab.json", "{" SPECIAL),
    VOCABULARY("vocabulary comma", ISOBIT_E_JSON, "vocab.json", "{" SPECIAL ",}"),
    VOCABULARY("vocabulary UTF-8", ISOBIT_E_UTF8, "vocab.json", "{" SPECIAL ",\"\xe9\":2}"),
    VOCABULARY("vocabulary overlong", ISOBIT_E_UTF8, "vocab.json", "{" SPECIAL ",\"\xc0\x80\":2}"),
    VOCABULARY("vocabulary NUL", ISOBIT_E_JSON, "vocab.json", "{" SPECIAL ",\"a\\u0000\":2}"),
    VOCABULARY("vocabulary empty", ISOBIT_E_MISSING, "</s>", "{}"),
    VOCABULARY("vocabulary no eos", ISOBIT_E_MISSING, "</s>", "{\"<unk>\":0}"),
    VOCABULARY("vocabulary no unk", ISOBIT_E_MISSING, "<unk>", "{\"</s>\":0}"),
    VOCABULARY("vocabulary token twice", ISOBIT_E_DUPLICATE, "vocab.json",
               "{" SPECIAL ",\"a\":2,\"a\":3}"),
    VOCABULARY("vocabulary token twice escaped", ISOBIT_E_DUPLICATE, "vocab.json",
               "{" SPECIAL ",\"a\":2,\"\\u0061\":3}"),
    VOCABULARY("vocabulary id twice", ISOBIT_E_DUPLICATE, "of another", "{" SPECIAL ",\"a\":1}"),
    VOCABULARY("vocabulary id count", ISOBIT_E_CONFIG, "\"a\"", "{" SPECIAL ",\"a\":3}"),
    VOCABULARY("vocabulary id -1", ISOBIT_E_CONFIG, "\"a\"", "{" SPECIAL ",\"a\":-1}"),
    VOCABULARY("vocabulary id fraction", ISOBIT_E_CONFIG, "\"a\"", "{" SPECIAL ",\"a\":1.5}"),
    VOCABULARY("vocabulary id text", ISOBIT_E_CONFIG, "\"a\"", "{" SPECIAL ",\"a\":\"2\"}"),
    VOCABULARY("vocabulary id null", ISOBIT_E_CONFIG, "\"a\"", "{" SPECIAL ",\"a\":null}"),
    VOCABULARY("vocabulary id list", ISOBIT_E_CONFIG, "\"a\"", "{" SPECIAL ",\"a\":[2]}"),
    VOCABULARY("vocabulary id 2^32+2", ISOBIT_E_CONFIG, "\"a\"", "{" SPECIAL ",\"a\":4294967298}"),
    VOCABULARY("vocabulary id 2^64+2", ISOBIT_E_CONFIG, "\"a\"",
               "{" SPECIAL ",\"a\":18446744073709551618}"),
    VOCABULARY("vocabulary id 1e308", ISOBIT_E_CONFIG, "\"a\"", "{" SPECIAL ",\"a\":1e308}"),
    VOCABULARY("vocabulary escaped", ISOBIT_E_CONFIG, "\\x0a", "{" SPECIAL ",\"a\\n\":9}"),
    VOCABULARY("vocabulary nested", ISOBIT_E_LIMIT, "64",
               "{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["),
    {"class missing", ISOBIT_E_UNSUPPORTED, "tokenizer_class", "{}", NULL},
    {"class null", ISOBIT_E_UNSUPPORTED, "tokenizer_class", "{\"tokenizer_class\":null}", NULL},
    {"class other", ISOBIT_E_UNSUPPORTED, "XLNetTokenizer",
     "{\"tokenizer_class\":\"XLNetTokenizer\"}", NULL},
    {"class without its files", ISOBIT_E_MISSING, "source.spm",
     "{\"tokenizer_class\":\"MarianTokenizer\"}", NULL},
    {"class long", ISOBIT_E_UNSUPPORTED, "\"...",
     "{\"tokenizer_class\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}",
     NULL},
    {"config empty", ISOBIT_E_JSON, "tokenizer_config.json", "", NULL},
    {"config list", ISOBIT_E_JSON, "tokenizer_config.json", "[]", NULL},
    {"config open", ISOBIT_E_JSON, "tokenizer_config.json", "{" CLASS, NULL},
    {"config UTF-8", ISOBIT_E_UTF8, "tokenizer_config.json", "{\"a\":\"\xf5\"}", NULL},
    {"config key twice", ISOBIT_E_DUPLICATE, "tokenizer_config.json", "{" CLASS "," CLASS "}",
     NULL},
    {"eos other", ISOBIT_E_MISSING, "[EOS]", "{" CLASS ",\"eos_token\":\"[EOS]\"}", NULL},
    {"unk object", ISOBIT_E_MISSING, "[UNK]", "{" CLASS ",\"unk_token\":{\"content\":\"[UNK]\"}}",
     NULL},
};
const size_t corpus_tokenizer_count = COUNT(corpus_tokenizers);

void corpus_good_model(const files *f) {
    builder b = {.state = 1};
    char *text = corpus_config_text(NULL);
    files_text(f, "config.json", text);
    free(text);
    builder_model(&b, CORPUS_V, CORPUS_D, CORPUS_FFN, 1);
    builder_write(&b, f);
}
