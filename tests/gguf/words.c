/* SPDX-License-Identifier: MIT
 *
 * See test_gguf.c: tables of Unigram and WordPiece.
 */
#include "../test_gguf.h"

#define A14 "aaaaaaaaaaaaaa"
static const char *const t5_tokens[] = {
    "<pad>", "</s>",   "<unk>",        U81,      "a",       (U81 "xa"),
    A14,     "[PAD7]", "<extra_id_0>", "[LOUD]", (U81 "a"), NULL};
static const char *const bert_tokens[] = {"[PAD]", "[UNK]",   "[CLS]", "[SEP]", (U81 "ab"),
                                          "a",     (U81 "a"), "b",     U81,     NULL};
enum { MOST_WORDS = 12 };

/* One of the two vocabularies with one token changed, and what the text becomes. */
typedef struct word_row {
    const char *name;
    iso_status status;
    const char *says; /* or the text */
    const char *skip;
    void (*add)(gguf_maker *m);
    size_t id;
    const char *token; /* NULL: none is changed */
    uint32_t type;
    size_t length;
    uint32_t ids[8];
} word_row;

static void make_words(gguf_maker *m, const word_row *row, const char *model,
                       const char *const *all, const uint32_t *all_types) {
    const char *tokens[MOST_WORDS] = {0};
    uint32_t types[MOST_WORDS], scores[MOST_WORDS];
    size_t count = 0;
    for (; all[count]; count++) {
        tokens[count] = all[count];
        types[count] = all_types[count];
        scores[count] = types[count] == 4 ? 0xc47a0000 : types[count] == 3 ? 0 : 0xbf800000;
    }
    if (row->token) {
        tokens[row->id] = row->token;
        types[row->id] = row->type;
    }
    m->version = 3;
    m->alignment = 32;
    m->skip = row->skip;
    gguf_text(m, K("model"), model);
    gguf_text(m, K("pre"), "default");
    gguf_texts(m, K("tokens"), tokens);
    gguf_numbers(m, K("scores"), GGUF_F32, scores, count);
    gguf_numbers(m, K("token_type"), GGUF_I32, types, count);
    if (row->add)
        row->add(m);
}

static void flag_of(gguf_maker *m, const char *key, int value) {
    gguf_number(m, key, GGUF_BOOL, (uint64_t)value, 1);
}
static void no_eos(gguf_maker *m) { flag_of(m, K("add_eos_token"), 0); }
static void bos_pad(gguf_maker *m) {
    flag_of(m, K("add_bos_token"), 1);
    gguf_u32(m, K("bos_token_id"), 0);
}
static void bos_alone(gguf_maker *m) { gguf_u32(m, K("bos_token_id"), 0); }
static void cls_and_sep(gguf_maker *m) {
    bos_pad(m);
    gguf_u32(m, K("cls_token_id"), 3);
    gguf_u32(m, K("seperator_token_id"), 2);
}
static void accents_number(gguf_maker *m) { gguf_u32(m, K("normalizer.strip_accents"), 1); }
static void bos_one(gguf_maker *m) { gguf_u32(m, K("add_bos_token"), 1); }
static void cls_beyond(gguf_maker *m) { gguf_u32(m, K("cls_token_id"), 9); }
static void unk_sep(gguf_maker *m) { gguf_u32(m, K("unknown_token_id"), 3); }
static void unk_nine(gguf_maker *m) { gguf_u32(m, K("unknown_token_id"), 9); }
static void capitals(gguf_maker *m) { flag_of(m, K("normalizer.lowercase"), 0); }
static void small(gguf_maker *m) { flag_of(m, K("normalizer.lowercase"), 1); }
static void accents(gguf_maker *m) { flag_of(m, K("normalizer.strip_accents"), 0); }
static void small_number(gguf_maker *m) { gguf_u32(m, K("normalizer.lowercase"), 1); }
static void map_text(gguf_maker *m) { gguf_text(m, K("precompiled_charsmap"), "x"); }
static void map_of(gguf_maker *m, uint8_t type, uint8_t first) {
    const unsigned char head[] = {type, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, first, 9, 9};
    gguf_number(m, K("precompiled_charsmap"), GGUF_ARRAY, head[0], 4);
    blob_add(&m->values, head + 4, sizeof head - 4);
}
static void map_short(gguf_maker *m) { map_of(m, GGUF_U8, 9); }
static void map_signed(gguf_maker *m) { map_of(m, GGUF_I8, 9); }
static void merges_number(gguf_maker *m) { gguf_u32(m, K("merges"), 1); }

static const word_row t5_rows[] = {
    {"good", ISOBIT_OK, "a", .length = 2, .ids = {10, 1}},
    {"no prefix", ISOBIT_OK, "a", .add = no_prefix, .length = 2, .ids = {4, 1}},
    {"no end", ISOBIT_OK, "a", .add = no_eos, .length = 1, .ids = {10}},
    {"a beginning", ISOBIT_OK, "a", .add = bos_pad, .length = 3, .ids = {0, 10, 1}},
    /* A token that was added costs nothing: one that is unknown would cost more otherwise. */
    {"unknown", ISOBIT_OK, "x" A14, .length = 4, .ids = {3, 2, 6, 1}},
    {"added", ISOBIT_OK, "a<extra_id_0>[LOUD]", .length = 4, .ids = {10, 8, 9, 1}},
    {"filler", ISOBIT_OK, "[", .length = 3, .ids = {3, 2, 1}},
    {"no need of merges", ISOBIT_OK, "a", .add = merges_number, .length = 2, .ids = {10, 1}},
    {"no scores", ISOBIT_E_MISSING, "no key \"tokenizer.ggml.scores\"", .skip = K("scores")},
    {"no end there", ISOBIT_E_MISSING, "no key \"tokenizer.ggml.eos_token_id\"", .id = 1,
     .token = "b", .type = 1},
    {"twice", ISOBIT_E_DUPLICATE, "two tokens are \"a\"", .id = 6, .token = "a", .type = 1},
    {"map a text", ISOBIT_E_CONFIG, "\"tokenizer.ggml.precompiled_charsmap\" is a string; an array",
     .add = map_text},
    {"map short", ISOBIT_E_CONFIG, "model.gguf", .add = map_short},
    {"map signed", ISOBIT_E_CONFIG, "model.gguf", .add = map_signed},
};

static const word_row bert_rows[] = {
    {"good", ISOBIT_OK, "ab aab", .length = 6, .ids = {2, 4, 6, 5, 7, 3}},
    {"no key of words", ISOBIT_OK, "ab", .skip = K("pre"), .length = 3, .ids = {2, 4, 3}},
    {"a bar alone", ISOBIT_OK, "a" U81, .length = 4, .ids = {2, 6, 8, 3}},
    {"unknown", ISOBIT_OK, "ba", .length = 3, .ids = {2, 1, 3}},
    {"special", ISOBIT_OK, "a[SEP]", .length = 4, .ids = {2, 6, 3, 3}},
    {"unknown by key", ISOBIT_OK, "ba", .add = unk_sep, .length = 3, .ids = {2, 3, 3}},
    {"keys", ISOBIT_OK, "ab", .add = cls_and_sep, .length = 3, .ids = {3, 4, 2}},
    {"first token asked for", ISOBIT_OK, "ab", .add = bos_pad, .length = 3, .ids = {0, 4, 3}},
    {"first token not asked for", ISOBIT_OK, "ab", .add = bos_alone, .length = 3, .ids = {2, 4, 3}},
    {"no capitals", ISOBIT_OK,
     "\xc3\x81"
     "B",
     .length = 3, .ids = {2, 4, 3}},
    {"a capital", ISOBIT_OK, "AB", .id = 8, .token = U81 "C", .type = 1, .length = 3,
     .ids = {2, 1, 3}},
    {"a capital in a name", ISOBIT_OK, "AB", .id = 8, .token = U81 "[X]", .type = 1, .length = 3,
     .ids = {2, 4, 3}},
    {"capitals by key", ISOBIT_OK, "AB", .add = capitals, .length = 3, .ids = {2, 1, 3}},
    {"no capitals by key", ISOBIT_OK, "AB", .add = small, .id = 8, .token = U81 "C", .type = 1,
     .length = 3, .ids = {2, 4, 3}},
    {"accents", ISOBIT_OK,
     "\xc3\xa1"
     "b",
     .add = accents, .length = 3, .ids = {2, 1, 3}},
    {"no types", ISOBIT_E_MISSING, "no key \"tokenizer.ggml.token_type\"", .skip = K("token_type")},
    {"flag a number", ISOBIT_E_CONFIG, "normalizer.lowercase\" is a 32-bit number; true or false",
     .add = small_number},
    {"accents a number", ISOBIT_E_CONFIG, "strip_accents\" is a 32-bit number; true or false",
     .add = accents_number},
    {"unknown a text", ISOBIT_E_CONFIG, "unknown_token_id\" is a string; a 32-bit number",
     .add = unk_text},
    {"no unknown", ISOBIT_E_MISSING, "no key \"tokenizer.ggml.unknown_token_id\"", .id = 1,
     .token = U81 "x", .type = 1},
    {"unknown beyond", ISOBIT_E_CONFIG, "unknown_token_id\" is 9, which is no token",
     .add = unk_nine},
    {"no first token", ISOBIT_E_MISSING, "no key \"tokenizer.ggml.cls_token_id\"", .id = 2,
     .token = U81 "x", .type = 1},
    {"first token beyond", ISOBIT_E_CONFIG, "cls_token_id\" is 9, which is no token",
     .add = cls_beyond},
    {"first token a number", ISOBIT_E_CONFIG, "add_bos_token\" is a 32-bit number; true or false",
     .add = bos_one},
    {"twice", ISOBIT_E_DUPLICATE, "token 7, \"##a\", occurs twice", .id = 7, .token = "a",
     .type = 1},
    {"no UTF-8", ISOBIT_E_UTF8, "token 7 is not UTF-8", .id = 7, .token = "\xff", .type = 1},
    {"type 7", ISOBIT_E_CONFIG, "token 7 has the type 7", .id = 7, .token = "b", .type = 7},
};

void test_words(void **state) {
    static const uint32_t t5_types[] = {3, 3, 2, 1, 1, 1, 1, 5, 4, 4, 1},
                          bert_types[] = {3, 3, 3, 3, 1, 1, 1, 1, 1};
    const size_t count = sizeof t5_rows / sizeof *t5_rows;
    files f;
    char path[160];
    files_make(&f);
    files_path(&f, NAME, path, sizeof path);
    for (size_t i = 0; i < count + sizeof bert_rows / sizeof *bert_rows; i++) {
        const int bert = i >= count;
        const word_row *row = bert ? &bert_rows[i - count] : &t5_rows[i];
        iso_error error = {0};
        iso_tokenizer *t = NULL;
        gguf_maker m = {0};
        make_words(&m, row, bert ? "bert" : "t5", bert ? bert_tokens : t5_tokens,
                   bert ? bert_types : t5_types);
        blob b = gguf_finish(&m);
        files_write(&f, NAME, b.bytes, b.count);
        const iso_status status = iso_tokenizer_load(&t, path, &error);
        piece_row as = {
            .name = row->name, .status = row->status, .says = row->says, .length = row->length};
        memcpy(as.ids, row->ids, sizeof row->ids);
        check_row(&as, path, status, &error, t);
        if (strcmp(row->name, "added") == 0) { /* what is special is no text */
            char text[40];
            size_t needed;
            assert_int_equal(
                iso_tokenizer_decode(t, row->ids, row->length, text, sizeof text, &needed),
                ISOBIT_OK);
            assert_string_equal(text, "a[LOUD]");
        }
        iso_tokenizer_free(t);
        blob_free(&b);
    }
    remove_all(&f);
    (void)state;
}
