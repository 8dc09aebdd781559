/* SPDX-License-Identifier: MIT
 *
 * See bin_files.h: pickles, and the older form, which is made of them.
 */
#include "../bin_files.h"

#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))

#define PART(text) text, sizeof(text) - 1
/* A string; its length must be less than 256. */
#define S(length, text) "X" length "\0\0\0" text
#define GLOBAL(module, name) "c" module "\n" name "\n"
#define STORAGE_OF(class, key, count) "(" S("\7", "storage") class key S("\3", "cpu") count
#define FLOATS GLOBAL("torch", "FloatStorage")
#define STORAGE(key, count) STORAGE_OF(FLOATS, S("\1", key), count) "tQ"
#define ORDERED GLOBAL("collections", "OrderedDict") ")R"
#define REBUILD GLOBAL("torch._utils", "_rebuild_tensor_v2")
/* Offset, shape and strides are operations. */
#define TENSOR(storage, offset, shape, strides)                                                    \
    REBUILD "(" storage offset shape strides "\x89" ORDERED "tR"
#define NAME S("\1", "a")
#define PICKLE(text) "\x80\2" text "."
#define DICT(items) PICKLE("}(" items "u")
#define ROW_MAJOR TENSOR(STORAGE("0", "K\6"), "K\0", "K\2K\3\x86", "K\3K\1\x86")
#define OTHER S("\1", "b") TENSOR(STORAGE("1", "K\4"), "K\0", "K\4\x85", "K\1\x85")
#define GOOD DICT(NAME ROW_MAJOR)
/* One tensor "a" of these places in storage "0", which has 6 elements. */
#define ONE(offset, shape, strides) DICT(NAME TENSOR(STORAGE("0", "K\6"), offset, shape, strides))
#define HUGE "\x8a\x08\0\0\0\0\0\0\0\x40"               /* 2^62 */
#define MOST "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f" /* 2^63 - 1 */
#define MANY32 "(((((((((((((((((((((((((((((((("       /* as many marks as may be open */

const bin_part bin_good_pickle = {NULL, PART(GOOD)};
const bin_part bin_good_pair = {NULL, PART(DICT(NAME ROW_MAJOR OTHER))};

const bin_pickle_row bin_pickles[] = {
    /* What is allowed. */
    {"good", ISOBIT_OK, "", PART(GOOD)},
    {"empty", ISOBIT_OK, "", PART(PICKLE("}"))},
    {"ordered", ISOBIT_OK, "", PART(PICKLE(ORDERED "(" NAME ROW_MAJOR "u"))},
    {"one by one", ISOBIT_OK, "", PART(PICKLE("}" NAME ROW_MAJOR "s" OTHER "s"))},
    {"metadata", ISOBIT_OK, "",
     PART(PICKLE(ORDERED "(" NAME ROW_MAJOR "u}" S("\11", "_metadata") ORDERED
                 "(" S("\0", "") "}" S("\7", "version") "K\1susb"))},
    {"attributes of an empty one", ISOBIT_OK, "", PART(PICKLE("}}b"))},
    {"parameter", ISOBIT_OK, "",
     PART(
         DICT(NAME GLOBAL("torch._utils", "_rebuild_parameter") ROW_MAJOR "\x88" ORDERED "\x87R"))},
    {"other values", ISOBIT_OK, "",
     PART(DICT(
         NAME ROW_MAJOR S("\1", "n") "N" S("\1", "f") "G\0\0\0\0\0\0\0\0" S("\1", "t") "\x88" S(
             "\1",
             "i") "J\xff\xff\xff\xff" S("\1",
                                        "l") "](K\1K\2e" S("\1",
                                                           "m") "]K\1a" S("\1",
                                                                          "o") "M\1\1" S("\1",
                                                                                         "p") "\x8a"
                                                                                              "\0"
                                                                                              "U\1x"
                                                                                              "N"))},
    {"transposed", ISOBIT_OK, "", PART(ONE("K\0", "K\3K\2\x86", "K\1K\3\x86"))},
    {"the last element", ISOBIT_OK, "", PART(ONE("K\5", ")", ")"))},
    {"gaps", ISOBIT_OK, "", PART(ONE("K\1", "K\3\x85", "K\2\x85"))},
    {"nothing, far away", ISOBIT_OK, "", PART(ONE("K\xff", "K\0K\xff\x86", "K\xffK\xff\x86"))},
    {"view", ISOBIT_OK, "",
     PART(DICT(
         NAME TENSOR(STORAGE_OF(FLOATS, S("\1", "0"), "K\6") "NtQ", "K\0", "K\6\x85", "K\1\x85")))},
    {"memo", ISOBIT_OK, "", PART(PICKLE("}q\0(" NAME "q\1" ROW_MAJOR "q\2" S("\1", "b") "h\2u"))},
    {"memo from 1", ISOBIT_OK, "", PART(PICKLE("}q\1(" NAME "r\2\0\0\0" ROW_MAJOR "u"))},
    {"long", ISOBIT_OK, "",
     PART(DICT(NAME TENSOR(STORAGE("0", "\x8a\1\6"), "\x8a\2\1\0", "\x8a\1\2\x85", "K\1\x85")))},
    {"types", ISOBIT_OK, "",
     PART(DICT(NAME ROW_MAJOR S("\1", "b")
                   TENSOR(STORAGE_OF(GLOBAL("torch", "LongStorage"), S("\1", "1"), "K\2") "tQ",
                          "K\0", "K\2\x85", "K\1\x85")))},

    /* What would be run. */
    {"os.system", ISOBIT_E_UNSUPPORTED,
     "pytorch_model.bin: the pickle asks for \"os.system\"; only what a state dict of tensors "
     "needs "
     "is known here, and nothing is run",
     PART(PICKLE(GLOBAL("os", "system") S("\2", "ls") "\x85R"))},
    {"builtins.eval", ISOBIT_E_UNSUPPORTED, "asks for \"builtins.eval\"",
     PART(PICKLE(GLOBAL("builtins", "eval") S("\1", "1") "\x85R"))},
    {"torch.load", ISOBIT_E_UNSUPPORTED, "asks for \"torch.load\"",
     PART(PICKLE(GLOBAL("torch", "load") ")R"))},
    {"attribute of a module that is known", ISOBIT_E_UNSUPPORTED, "\"collections.namedtuple\"",
     PART(PICKLE(GLOBAL("collections", "namedtuple") ")R"))},
    {"known name of another module", ISOBIT_E_UNSUPPORTED, "\"os.OrderedDict\"",
     PART(PICKLE(GLOBAL("os", "OrderedDict") ")R"))},
    {"begins like a name", ISOBIT_E_UNSUPPORTED, "\"torch.FloatStorageX\"",
     PART(PICKLE(GLOBAL("torch", "FloatStorageX")))},
    {"no name", ISOBIT_E_UNSUPPORTED, "\".\"", PART(PICKLE(GLOBAL("", "")))},
    {"name with controls", ISOBIT_E_UNSUPPORTED, "\"o\\x1bs.\\xffx\"",
     PART(PICKLE(GLOBAL("o\x1bs", "\xffx")))},
    {"complex numbers", ISOBIT_E_UNSUPPORTED, "\"torch.ComplexFloatStorage\"",
     PART(PICKLE(GLOBAL("torch", "ComplexFloatStorage")))},
#define OP(op, name)                                                                               \
    {                                                                                              \
        name, ISOBIT_E_UNSUPPORTED, "(" name ") is refused; no state dict needs it",               \
            PART(PICKLE(op))                                                                       \
    }
    OP("(i", "INST"),
    OP("(o", "OBJ"),
    OP("))\x81", "NEWOBJ"),
    OP("\x82\1", "EXT1"),
    OP("P1\n", "PERSID"),
    OP("\x93", "STACK_GLOBAL"),
    OP("\x94", "MEMOIZE"),
    OP("\x95", "FRAME"),
    OP("N0", "POP"),
    OP("I1\n", "INT"),
    OP("\x8b", "LONG4"),
    OP("\x80\2", "PROTO"),
    OP("\xff", "of an unknown kind"),

    /* The machine. */
    {"no pickle", ISOBIT_E_UNSUPPORTED, "protocol 2", PART("{}")},
    {"protocol 4", ISOBIT_E_UNSUPPORTED, "protocol 2", PART("\x80\4}.")},
    {"nothing", ISOBIT_E_TRUNCATED, "in the middle", PART("")},
    {"one byte", ISOBIT_E_TRUNCATED, "in the middle", PART("\x80")},
    {"no stop", ISOBIT_E_TRUNCATED, "byte 3: it ends in the middle", PART("\x80\2}")},
    {"behind the stop", ISOBIT_E_CONFIG, "goes on behind", PART(GOOD "N")},
    {"string too long", ISOBIT_E_TRUNCATED, "in the middle", PART("\x80\2X\4\0\0\0abc")},
    {"string of 4 GB", ISOBIT_E_TRUNCATED, "in the middle", PART("\x80\2X\xff\xff\xff\xff")},
    {"global without end", ISOBIT_E_TRUNCATED, "in the middle",
     PART("\x80\2"
          "cos\nsys")},
    {"no value", ISOBIT_E_CONFIG, "one value", PART(PICKLE(""))},
    {"two values", ISOBIT_E_CONFIG, "one value", PART(PICKLE("}}"))},
    {"a mark left", ISOBIT_E_CONFIG, "one value", PART(PICKLE("}("))},
    {"tuple of nothing", ISOBIT_E_CONFIG, "too few values", PART(PICKLE("\x85"))},
    {"tuple of 1 of 2", ISOBIT_E_CONFIG, "too few values", PART(PICKLE("N\x86"))},
    {"tuple beyond a mark", ISOBIT_E_CONFIG, "too few values", PART(PICKLE("N(N\x86"))},
    {"tuple without a mark", ISOBIT_E_CONFIG, "no mark", PART(PICKLE("Nt"))},
    {"items without a mark", ISOBIT_E_CONFIG, "no mark", PART(PICKLE("}NNu"))},
    {"items beyond a mark", ISOBIT_E_CONFIG, "too few values", PART(PICKLE("}((NNu"))},
    {"items for nothing", ISOBIT_E_CONFIG, "too few values", PART(PICKLE("(NNu"))},
    {"items for no dictionary", ISOBIT_E_CONFIG, "no dictionary", PART(PICKLE("](NNu"))},
    {"items for no list", ISOBIT_E_CONFIG, "no list", PART(PICKLE("}(NNe"))},
    {"item for no list", ISOBIT_E_CONFIG, "no list", PART(PICKLE("NNa"))},
    {"item for no dictionary", ISOBIT_E_CONFIG, "no dictionary", PART(PICKLE("NNNs"))},
    {"key without value", ISOBIT_E_CONFIG, "a key without a value", PART(PICKLE("}(NNNu"))},
    {"memo of nothing", ISOBIT_E_CONFIG, "too few values", PART(PICKLE("q\0"))},
    {"memo with a gap", ISOBIT_E_CONFIG, "with gaps", PART(PICKLE("}q\2"))},
    {"memo far away", ISOBIT_E_CONFIG, "with gaps", PART(PICKLE("}r\xff\xff\xff\xff"))},
    {"memo not there", ISOBIT_E_CONFIG, "has not numbered", PART(PICKLE("h\0"))},
    {"memo left out", ISOBIT_E_CONFIG, "has not numbered", PART(PICKLE("}q\1h\0"))},
    {"memo not there, long", ISOBIT_E_CONFIG, "has not numbered", PART(PICKLE("}q\0j\1\0\0\0"))},
    {"number of 9 bytes", ISOBIT_E_LIMIT, "64 bits",
     PART(PICKLE("\x8a\x09"
                 "123456789"))},
    {"32 marks", ISOBIT_E_CONFIG, "one value", PART(PICKLE(MANY32))},
    {"33 marks", ISOBIT_E_LIMIT, "too deeply", PART(PICKLE(MANY32 "("))},

    /* Calls. */
    {"call of a number", ISOBIT_E_CONFIG, "cannot be called", PART(PICKLE("N)R"))},
    {"call with a number", ISOBIT_E_CONFIG, "cannot be called",
     PART(PICKLE(GLOBAL("collections", "OrderedDict") "NR"))},
    {"call of nothing", ISOBIT_E_CONFIG, "too few values", PART(PICKLE(")R"))},
    {"a storage is made", ISOBIT_E_UNSUPPORTED, "out of nothing", PART(PICKLE(FLOATS ")R"))},
    {"OrderedDict of a list", ISOBIT_E_UNSUPPORTED, "made of something",
     PART(PICKLE(GLOBAL("collections", "OrderedDict") "]\x85R"))},
    {"parameter of nothing", ISOBIT_E_CONFIG, "needs a tensor",
     PART(PICKLE(GLOBAL("torch._utils", "_rebuild_parameter") "N\x88N\x87R"))},
    {"parameter of two", ISOBIT_E_CONFIG, "needs a tensor",
     PART(PICKLE(GLOBAL("torch._utils", "_rebuild_parameter") ROW_MAJOR "\x88\x86R"))},
#define BAD_TENSOR(name, args)                                                                     \
    {                                                                                              \
        name, ISOBIT_E_CONFIG, "a tensor needs a storage, an offset, a shape and as many strides", \
            PART(PICKLE(REBUILD "(" args "tR"))                                                    \
    }
    BAD_TENSOR("tensor of nothing", ""),
    BAD_TENSOR("tensor of five", STORAGE("0", "K\6") "K\0))N"),
    BAD_TENSOR("tensor of eight", STORAGE("0", "K\6") "K\0))NNNN"),
    BAD_TENSOR("tensor without storage", "NK\0))NN"),
    BAD_TENSOR("offset no number", STORAGE("0", "K\6") "\x88))NN"),
    BAD_TENSOR("offset -1", STORAGE("0", "K\6") "J\xff\xff\xff\xff))NN"),
    BAD_TENSOR("shape no tuple", STORAGE("0", "K\6") "K\0N)NN"),
    BAD_TENSOR("strides no tuple", STORAGE("0", "K\6") "K\0)NNN"),
    BAD_TENSOR("fewer strides", STORAGE("0", "K\6") "K\0K\1\x85)NN"),
    {"size no number", ISOBIT_E_CONFIG, "numbers of at least 0",
     PART(ONE("K\0", "N\x85", "K\1\x85"))},
    {"size -1", ISOBIT_E_CONFIG, "numbers of at least 0",
     PART(ONE("K\0", "J\xff\xff\xff\xff\x85", "K\1\x85"))},
    {"stride -1", ISOBIT_E_CONFIG, "numbers of at least 0",
     PART(ONE("K\5", "K\2\x85", "\x8a\1\xff\x85"))},
    {"8 dimensions", ISOBIT_OK, "",
     PART(ONE("K\0", "(K\1K\1K\1K\1K\1K\1K\1K\1t", "(K\1K\1K\1K\1K\1K\1K\1K\1t"))},
    {"9 dimensions", ISOBIT_E_LIMIT, "more than 8 dimensions",
     PART(ONE("K\0", "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t", "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t"))},
#define BAD_STORAGE(name, id)                                                                      \
    {                                                                                              \
        name, ISOBIT_E_CONFIG,                                                                     \
            "a storage needs a class, a key, a device and a number of elements",                   \
            PART(PICKLE(id "Q"))                                                                   \
    }
    {"storage of nothing", ISOBIT_E_CONFIG, "too few values", PART(PICKLE("Q"))},
    BAD_STORAGE("storage no tuple", "N"),
    BAD_STORAGE("storage of four", "(" S("\7", "storage") FLOATS S("\1", "0") S("\3", "cpu") "t"),
    BAD_STORAGE("storage of seven", STORAGE_OF(FLOATS, S("\1", "0"), "K\6") "NNt"),
    BAD_STORAGE("module", "(" S("\6", "module") FLOATS S("\1", "0") S("\3", "cpu") "K\6t"),
    BAD_STORAGE("storage of no class", STORAGE_OF("N", S("\1", "0"), "K\6") "t"),
    BAD_STORAGE("storage of another class",
                STORAGE_OF(GLOBAL("collections", "OrderedDict"), S("\1", "0"), "K\6") "t"),
    BAD_STORAGE("storage without a key", STORAGE_OF(FLOATS, "K\0", "K\6") "t"),
    BAD_STORAGE("storage without a size", STORAGE_OF(FLOATS, S("\1", "0"), "N") "t"),
    BAD_STORAGE("storage of -1", STORAGE_OF(FLOATS, S("\1", "0"), "J\xff\xff\xff\xff") "t"),
    {"part of a storage", ISOBIT_E_UNSUPPORTED, "a part of another one",
     PART(PICKLE(STORAGE_OF(FLOATS, S("\1", "0"), "K\6") ")tQ"))},
    {"attributes of a tensor", ISOBIT_E_UNSUPPORTED, "no dictionary",
     PART(DICT(NAME ROW_MAJOR "}b"))},
    {"attributes that are no dictionary", ISOBIT_E_UNSUPPORTED, "no dictionary",
     PART(PICKLE(ORDERED "Nb"))},
    {"attributes in a tuple", ISOBIT_E_UNSUPPORTED, "no dictionary",
     PART(PICKLE("}(}}}}tb"))}, /* which dictionaries were above before */
    {"attributes of nothing", ISOBIT_E_CONFIG, "too few values", PART(PICKLE("}b"))},

    /* Storages. */
    {"storage not there", ISOBIT_E_MISSING, "storage \"7\" is not in the ZIP archive",
     PART(DICT(NAME TENSOR(STORAGE("7", "K\6"), "K\0", "K\6\x85", "K\1\x85")))},
    {"a path as key", ISOBIT_E_MISSING, "storage \"../data.pkl\" is not",
     PART(DICT(
         NAME TENSOR(STORAGE_OF(FLOATS, S("\13", "../data.pkl"), "K\6") "tQ", "K\0", ")", ")")))},
    {"smaller storage", ISOBIT_E_OFFSET, "storage \"0\" has another size",
     PART(DICT(NAME TENSOR(STORAGE("0", "K\7"), "K\0", "K\6\x85", "K\1\x85")))},
    {"larger storage", ISOBIT_E_OFFSET, "storage \"0\" has another size",
     PART(DICT(NAME TENSOR(STORAGE("0", "K\5"), "K\0", "K\5\x85", "K\1\x85")))},
    {"size of the other type", ISOBIT_E_OFFSET, "storage \"0\" has another size",
     PART(DICT(NAME TENSOR(STORAGE_OF(GLOBAL("torch", "HalfStorage"), S("\1", "0"), "K\6") "tQ",
                           "K\0", "K\6\x85", "K\1\x85")))},
    {"size that wraps", ISOBIT_E_OVERFLOW, "storage \"0\" is too large",
     PART(DICT(NAME TENSOR(STORAGE("0", HUGE), "K\0", "K\6\x85", "K\1\x85")))},
    {"two sizes", ISOBIT_E_CONFIG, "storage \"0\" is described in two ways",
     PART(DICT(NAME ROW_MAJOR S("\1", "b") TENSOR(STORAGE("0", "K\5"), "K\0", ")", ")")))},
    {"two types", ISOBIT_E_CONFIG, "storage \"0\" is described in two ways",
     PART(DICT(NAME ROW_MAJOR S("\1", "b") TENSOR(
         STORAGE_OF(GLOBAL("torch", "IntStorage"), S("\1", "0"), "K\6") "tQ", "K\0", ")", ")")))},

/* Tensors. */
#define OUTSIDE(name, offset, shape, strides)                                                      \
    {                                                                                              \
        name, ISOBIT_E_OFFSET,                                                                     \
            "tensor \"a\" does not lie within its storage, which has 6 elements",                  \
            PART(ONE(offset, shape, strides))                                                      \
    }
    OUTSIDE("one too many", "K\0", "K\7\x85", "K\1\x85"),
    OUTSIDE("offset too large", "K\1", "K\2K\3\x86", "K\3K\1\x86"),
    OUTSIDE("offset behind the end", "K\6", ")", ")"),
    OUTSIDE("stride too large", "K\0", "K\2K\3\x86", "K\4K\1\x86"),
    OUTSIDE("one element many times", "K\0", "K\7\x85", "K\0\x85"),
    OUTSIDE("rows that overlap", "K\0", "K\3K\3\x86", "K\1K\1\x86"),
    OUTSIDE("offset wraps", "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", "K\2\x85", HUGE "\x85"),
    OUTSIDE("offset and strides wrap to 0", "K\2", "K\2K\2\x86", MOST MOST "\x86"),
    OUTSIDE("strides wrap", "K\0", "K\5K\1\x86", HUGE HUGE "\x86"),
    OUTSIDE("sum of strides wraps", "K\0", "(K\2K\2K\2K\2t", "(" HUGE HUGE HUGE HUGE "t"),
    {"shape wraps", ISOBIT_E_OVERFLOW, "tensor \"a\": the product of the shape overflows",
     PART(ONE("K\0", HUGE "K\4\x86", "K\0K\0\x86"))},
    {"shape wraps before a 0", ISOBIT_E_OVERFLOW,
     "tensor \"a\": the product of the shape overflows",
     PART(ONE("K\0", HUGE HUGE "K\0\x87", "K\0K\0K\0\x87"))},
    {"bytes wrap", ISOBIT_E_OVERFLOW, "tensor \"a\": the size in bytes overflows",
     PART(ONE("K\0", HUGE "\x85", "K\0\x85"))},
    {"a list", ISOBIT_E_CONFIG, "not about a state dict", PART(PICKLE("]"))},
    {"a tensor", ISOBIT_E_CONFIG, "not about a state dict", PART(PICKLE(ROW_MAJOR))},
    {"name no string", ISOBIT_E_CONFIG, "no string", PART(DICT("K\1" ROW_MAJOR))},
    {"twice", ISOBIT_E_DUPLICATE, "tensor \"a\" occurs twice",
     PART(DICT(NAME ROW_MAJOR NAME ROW_MAJOR))},
    {"empty name", ISOBIT_E_UTF8, "the name \"\" of a tensor", PART(DICT(S("\0", "") ROW_MAJOR))},
    {"name with NUL", ISOBIT_E_UTF8, "the name \"a\\x00b\"", PART(DICT(S("\3", "a\0b") ROW_MAJOR))},
    {"name not UTF-8", ISOBIT_E_UTF8, "the name \"\\xff\"", PART(DICT(S("\1", "\xff") ROW_MAJOR))},
};
const size_t bin_pickle_count = COUNT(bin_pickles);

/* --------------------------------------------------------------------------------- older form */

#define VERSION PICKLE("M\xe9\3")
#define SYSTEM(value) DICT(S("\20", "protocol_version") "M\xe9\3" S("\15", "little_endian") value)
#define KEYS PICKLE("](" S("\1", "0") S("\1", "1") "e")
#define DATA0                                                                                      \
    "\6\0\0\0\0\0\0\0\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40\0\0\xa0\x40\0\0\xc0\x40"
#define DATA1 "\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define DATA DATA0 DATA1

static const bin_part legacy[5] = {{NULL, PART(VERSION)},
                                   {NULL, PART(SYSTEM("\x88"))},
                                   {NULL, PART(DICT(NAME ROW_MAJOR OTHER))},
                                   {NULL, PART(KEYS)},
                                   {NULL, PART(DATA)}};

blob bin_legacy(const bin_part pickles[4], const void *rest, size_t bytes) {
    static const char magic[] = "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
    blob b = {0};
    blob_add(&b, magic, sizeof magic - 1);
    for (int i = 0; i < 4; i++)
        blob_add(&b, pickles[i].data, pickles[i].bytes);
    blob_add(&b, rest, bytes);
    return b;
}

blob bin_legacy_of(const void *pickle, size_t bytes) {
    const bin_part pickles[] = {legacy[0], legacy[1], {NULL, pickle, bytes}, legacy[3]};
    return bin_legacy(pickles, DATA, sizeof DATA - 1);
}

const bin_legacy_row bin_legacies[] = {
    {"good", ISOBIT_OK, "", 4, PART(DATA)},
    {"keys the other way", ISOBIT_OK, "", 3, PART(PICKLE("](" S("\1", "0") "e" S("\1", "1") "a"))},
    {"version", ISOBIT_E_UNSUPPORTED, "its protocol is not 1001", 0, PART(PICKLE("M\xea\3"))},
    {"version no number", ISOBIT_E_UNSUPPORTED, "its protocol is not 1001", 0, PART(PICKLE("N"))},
    {"version pickle", ISOBIT_E_UNSUPPORTED, "protocol 2", 0, PART("\x80\3K\1.")},
    {"big-endian", ISOBIT_E_UNSUPPORTED, "its little_endian is False", 1, PART(SYSTEM("\x89"))},
    {"endian no bool", ISOBIT_E_CONFIG, "in which order its bytes are", 1, PART(SYSTEM("K\1"))},
    {"no order", ISOBIT_E_CONFIG, "in which order its bytes are", 1, PART(PICKLE("}"))},
    {"no facts", ISOBIT_E_CONFIG, "in which order its bytes are", 1, PART(PICKLE("N"))},
    {"system runs", ISOBIT_E_UNSUPPORTED, "\"os.system\"", 1, PART(PICKLE(GLOBAL("os", "system")))},
    {"runs", ISOBIT_E_UNSUPPORTED, "\"os.system\"", 2, PART(PICKLE(GLOBAL("os", "system")))},
    {"keys run", ISOBIT_E_UNSUPPORTED, "\"os.system\"", 3, PART(PICKLE(GLOBAL("os", "system")))},
    {"keys no list", ISOBIT_E_CONFIG, "list of the keys", 3, PART(PICKLE("}"))},
    {"keys with a storage", ISOBIT_E_CONFIG, "list of the keys", 3,
     PART(PICKLE("](" STORAGE("0", "K\6") "e"))},
    {"key no string", ISOBIT_E_CONFIG, "no string", 3, PART(PICKLE("]K\1a"))},
    {"key of no tensor", ISOBIT_E_CONFIG, "storage \"2\" belongs to no tensor", 3,
     PART(PICKLE("](" S("\1", "0") S("\1", "2") "e"))},
    {"key twice", ISOBIT_E_DUPLICATE, "storage \"0\" occurs twice", 3,
     PART(PICKLE("](" S("\1", "0") S("\1", "0") "e"))},
    {"key left out", ISOBIT_E_MISSING, "storage \"1\" is not in the list of keys", 3,
     PART(PICKLE("]" S("\1", "0") "a"))},
    {"keys the wrong way", ISOBIT_E_OFFSET, "storage \"1\" has another size", 3,
     PART(PICKLE("](" S("\1", "1") S("\1", "0") "e"))},
    {"other size", ISOBIT_E_OFFSET, "storage \"0\" has another size", 4,
     PART("\7\0\0\0\0\0\0\0" DATA)},
    {"cut data", ISOBIT_E_TRUNCATED, "storage \"1\" goes beyond the end", 4,
     PART(DATA0 "\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")},
    {"cut size", ISOBIT_E_TRUNCATED, "storage \"1\" goes beyond the end", 4,
     PART(DATA0 "\4\0\0\0")},
    {"no data", ISOBIT_E_TRUNCATED, "storage \"0\" goes beyond the end", 4, PART("")},
    {"a byte more", ISOBIT_E_HOLE, "goes on behind the last storage", 4, PART(DATA "\0")},
    {"two sizes", ISOBIT_E_CONFIG, "storage \"0\" is described in two ways", 2,
     PART(DICT(NAME ROW_MAJOR S("\1", "b") TENSOR(STORAGE("0", "K\5"), "K\0", ")", ")")))},
    {"size wraps", ISOBIT_E_OVERFLOW, "storage \"0\" is too large", 2,
     PART(DICT(NAME TENSOR(STORAGE("0", HUGE), "K\0", "K\6\x85", "K\1\x85") OTHER))},
    {"size beyond the file", ISOBIT_E_TRUNCATED, "storage \"0\" goes beyond the end", 2,
     PART(DICT(NAME TENSOR(STORAGE("0", "\x8a\x08\0\0\0\0\0\0\0\x20"), "K\0", "K\6\x85", "K\1\x85")
                   OTHER))},
};
const size_t bin_legacy_count = COUNT(bin_legacies);

blob bin_legacy_spoilt(const bin_legacy_row *row) {
    bin_part parts[5];
    memcpy(parts, legacy, sizeof parts);
    parts[row->which] = (bin_part){NULL, row->text, row->bytes};
    return bin_legacy(parts, parts[4].data, parts[4].bytes);
}
