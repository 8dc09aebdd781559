/* SPDX-License-Identifier: MIT
 *
 * The rules of an index.
 */
#include "test_checkpoints.h"

/* Shards "a" (tensors x, y) and "b" (tensor z; and, if it is twice, y). */
void small_shards(const files *f, int twice) {
#define T(name, from, to)                                                                          \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[" from "," to "]}"
    static const char a[] = "{" T("x", "0", "8") "," T("y", "8", "16") "}",
                      b[] = "{" T("z", "0", "8") "}",
                      c[] = "{" T("z", "0", "8") "," T("y", "8", "16") "}";
    blob file = blob_file(a, sizeof a - 1, 16);
    files_write(f, "a", file.bytes, file.count);
    blob_free(&file);
    file = twice ? blob_file(c, sizeof c - 1, 16) : blob_file(b, sizeof b - 1, 8);
    files_write(f, "b", file.bytes, file.count);
    blob_free(&file);
}

#define NAME50 "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
#define NAME250 NAME50 NAME50 NAME50 NAME50 NAME50
#define REFUSED(name, shown, why)                                                                  \
    {                                                                                              \
        ISOBIT_E_CONFIG,                                                                           \
            INDEX ": the shard of tensor \"x\" has the name " shown ", which is refused: " why,    \
            MAP("\"x\":\"" name "\"")                                                              \
    }
static const struct {
    iso_status status;
    const char *says, *index;
} indices[] = {
    {ISOBIT_OK, "", MAP("\"x\":\"a\",\"y\":\"a\",\"z\":\"b\"")},
    {ISOBIT_OK, "", MAP("\"z\":\"b\"")},
    {ISOBIT_OK, "", "{\"metadata\":7,\"weight_map\":{\"x\":\"a\",\"z\":\"b\"},\"more\":[]}"},
    {ISOBIT_E_JSON, "not valid JSON", "{\"weight_map\":{"},
    {ISOBIT_E_JSON, "an object is expected", "[]"},
    {ISOBIT_E_DUPLICATE, "not valid JSON", MAP("\"x\":\"a\",\"x\":\"b\"")},
    {ISOBIT_E_MISSING, INDEX " has no weight_map", "{\"metadata\":{}}"},
    {ISOBIT_E_MISSING, "weight_map names no tensor", MAP("")},
    {ISOBIT_E_JSON, "weight_map is a list; an object is expected", "{\"weight_map\":[\"a\"]}"},
    {ISOBIT_E_JSON, "weight_map is null; an object is expected", "{\"weight_map\":null}"},
    {ISOBIT_E_JSON, "weight_map is \"a\"; an object is expected", "{\"weight_map\":\"a\"}"},
    {ISOBIT_E_JSON, "the shard of tensor \"x\" is 7; a string is expected", MAP("\"x\":7")},
    {ISOBIT_E_JSON, "the shard of tensor \"x\" is an object; a string", MAP("\"x\":{}")},
    REFUSED("", "\"\"", "it is empty"),
    REFUSED("/etc/passwd", "\"/etc/passwd\"", "a shard lies in the directory of the model"),
    REFUSED("c/a", "\"c/a\"", "a shard lies in the directory of the model"),
    REFUSED("./a", "\"./a\"", "a shard lies in the directory of the model"),
    REFUSED("../a", "\"../a\"", "a shard lies in the directory of the model"),
    REFUSED("c\\\\a", "\"c\\x5ca\"", "a shard lies in the directory of the model"),
    REFUSED("..", "\"..\"", "it leads to another directory"),
    REFUSED("a..b", "\"a..b\"", "it leads to another directory"),
    REFUSED(".", "\".\"", "it leads to another directory"),
    REFUSED("a\\u001b[2J", "\"a\\x1b[2J\"", "only printable ASCII characters are expected"),
    REFUSED("\xc3\xa9", "\"\\xc3\\xa9\"", "only printable ASCII characters are expected"),
    {ISOBIT_E_JSON, "not valid JSON", MAP("\"x\":\"a\\u0000\"")},
    {ISOBIT_E_CONFIG, "which is refused: it has more than 255 bytes",
     MAP("\"x\":\"" NAME250 "nnnnnn\"")},
    {ISOBIT_E_MISSING, "there is no file " NAME250, MAP("\"x\":\"" NAME250 "nnnnn\"")},
    {ISOBIT_E_MISSING, "there is no file c in", MAP("\"x\":\"a\",\"z\":\"c\"")},
    {ISOBIT_E_MISSING, INDEX ": tensor \"z\" should be in a and is not",
     MAP("\"x\":\"a\",\"z\":\"a\"")},
    {ISOBIT_E_MISSING, "tensor \"\" should be in a and is not", MAP("\"\":\"a\"")},
    {ISOBIT_E_TRUNCATED, "empty has 0 bytes", MAP("\"x\":\"empty\"")},
    {ISOBIT_E_JSON, "text: safetensors header, byte 0: an object is expected",
     MAP("\"x\":\"text\"")},
    {ISOBIT_E_IO, "is not a regular file", MAP("\"x\":\"folder\"")},
};

static iso_status open_index(model_checkpoint *c, const files *f, iso_error *error) {
    *error = (iso_error){0};
    return model_checkpoint_open_shards(c, f->directory, INDEX, 1 << 20, model_checkpoint_open,
                                        error);
}

void test_indices(void **state) {
    files f;
    iso_error error;
    model_checkpoint c;
    char path[160];
    files_make(&f);
    small_shards(&f, 0);
    files_text(&f, "empty", "");
    files_write(&f, "text", "\2\0\0\0\0\0\0\0[]", 10);
    files_path(&f, "folder", path, sizeof path);
    assert_int_equal(mkdir(path, 0700), 0);
    for (size_t i = 0; i < sizeof indices / sizeof *indices; i++) {
        files_text(&f, INDEX, indices[i].index);
        const iso_status status = open_index(&c, &f, &error);
        if (status != indices[i].status || (status && !strstr(error.message, indices[i].says)))
            fail_msg("%s: status %d (%s), expected %d (%s)", indices[i].index, (int)status,
                     error.message, (int)indices[i].status, indices[i].says);
        model_checkpoint_close(&c);
    }
    /* What the index leaves out is not there; what it has is in its shard. */
    files_text(&f, INDEX, MAP("\"z\":\"b\",\"x\":\"a\""));
    assert_int_equal(open_index(&c, &f, &error), ISOBIT_OK);
    assert_int_equal(c.header.count, 2);
    assert_null(model_checkpoint_find(&c, "y"));
    assert_string_equal(c.shards[model_checkpoint_find(&c, "x")->shard].file.name, "a");
    assert_string_equal(c.shards[model_checkpoint_find(&c, "z")->shard].file.name, "b");
    model_checkpoint_close(&c);
    /* A tensor in two shards. */
    small_shards(&f, 1);
    files_text(&f, INDEX, MAP("\"y\":\"a\",\"z\":\"b\""));
    assert_int_equal(open_index(&c, &f, &error), ISOBIT_E_DUPLICATE);
    assert_string_equal(error.message, "tensor \"y\" is in a and in b");
    model_checkpoint_close(&c);
    assert_int_equal(rmdir(path), 0);
    remove_all(&f);
    (void)state;
}

/* 512 shards, which are not there, and one more; an index of 16 MiB, and one byte more. */
void test_index_limits(void **state) {
    files f;
    iso_error error;
    model_checkpoint c;
    char path[160];
    files_make(&f);
    for (unsigned shards = 512; shards <= 513; shards++) {
        blob b = {0};
        put_text(&b, "{\"weight_map\":{");
        for (unsigned i = 0; i < shards; i++) {
            char entry[40];
            (void)snprintf(entry, sizeof entry, "%s\"%u\":\"s%u\"", i ? "," : "", i, i);
            put_text(&b, entry);
        }
        put_text(&b, "}}");
        files_write(&f, INDEX, b.bytes, b.count);
        blob_free(&b);
        assert_int_equal(open_index(&c, &f, &error),
                         shards == 512 ? ISOBIT_E_MISSING : ISOBIT_E_LIMIT);
        assert_non_null(strstr(error.message, shards == 512
                                                  ? "there is no file s0 in"
                                                  : "names 513 shards; the limit is 512"));
        model_checkpoint_close(&c);
    }
    files_path(&f, INDEX, path, sizeof path);
    for (int more = 0; more < 2; more++) { /* zeros: not JSON */
        assert_int_equal(truncate(path, ((off_t)16 << 20) + more), 0);
        assert_int_equal(open_index(&c, &f, &error), more ? ISOBIT_E_LIMIT : ISOBIT_E_JSON);
        model_checkpoint_close(&c);
    }
    remove_all(&f);
    (void)state;
}
