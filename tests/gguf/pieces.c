/* SPDX-License-Identifier: MIT
 *
 * See test_gguf.c: tables of pieces, as those of SentencePiece.
 */
#include "../test_gguf.h"

/* <unk> <s> </s>, 256 bytes, then: */
enum { BAR = 259, A, B, AB, BAR_A, PAD, LOUD, UNUSED_BA, PIECES };
/* -1, -1.125 ...: the lower, the larger x is. */
#define SCORE(x) (0xbf800000u + ((uint32_t)(x) << 20))

static void make_pieces(gguf_maker *m, const piece_row *row) {
    static const char *const last[] = {U81,        "a",       "b", "ab", "\xe2\x96\x81\x61",
                                       "[PAD264]", "[LOUD] ", "ba"};
    static const uint32_t last_types[] = {1, 1, 1, 1, 1, 5, 4, 5};
    static const uint32_t last_scores[] = {SCORE(9), SCORE(8),  SCORE(7), SCORE(1),
                                           SCORE(2), SCORE(10), SCORE(4), SCORE(3)};
    const char *tokens[PIECES + 1] = {"<unk>", "<s>", "</s>"};
    uint32_t types[PIECES] = {2, 3, 3}, scores[PIECES] = {0};
    static char bytes[256][16];
    for (unsigned i = 0; i < 256; i++) {
        (void)snprintf(bytes[i], sizeof bytes[i], "<0x%02X>", i);
        tokens[3 + i] = bytes[i];
        types[3 + i] = 6;
    }
    for (size_t i = BAR; i < PIECES; i++) {
        tokens[i] = last[i - BAR];
        types[i] = last_types[i - BAR];
        scores[i] = last_scores[i - BAR];
    }
    if (row->token) {
        tokens[row->id] = row->token;
        types[row->id] = row->type;
        scores[row->id] = row->score;
    }
    const size_t count = row->count ? row->count : PIECES;
    tokens[count] = NULL;
    m->version = 3;
    m->alignment = 32;
    m->skip = row->skip;
    gguf_text(m, K("model"), "llama");
    gguf_text(m, K("pre"), "default");
    gguf_texts(m, K("tokens"), tokens);
    gguf_numbers(m, K("scores"), GGUF_F32, scores, count);
    gguf_numbers(m, K("token_type"), GGUF_I32, types, count);
    gguf_u32(m, K("bos_token_id"), 1);
    gguf_u32(m, K("eos_token_id"), 2);
    gguf_u32(m, K("unknown_token_id"), 0);
    m->skip = NULL;
    if (row->add)
        row->add(m);
}

void no_prefix(gguf_maker *m) { gguf_number(m, K("add_space_prefix"), GGUF_BOOL, 0, 1); }
static void number_prefix(gguf_maker *m) { gguf_u32(m, K("add_space_prefix"), 1); }
static void no_bos(gguf_maker *m) { gguf_number(m, K("add_bos_token"), GGUF_BOOL, 0, 1); }
static void with_eos(gguf_maker *m) { gguf_number(m, K("add_eos_token"), GGUF_BOOL, 1, 1); }
static void words_of_llama3(gguf_maker *m) { gguf_text(m, K("pre"), "llama-bpe"); }
static void two_scores(gguf_maker *m) {
    gguf_numbers(m, K("scores"), GGUF_F32, (const uint32_t[]){0, 0}, 2);
}
static void whole_scores(gguf_maker *m) {
    gguf_numbers(m, K("scores"), GGUF_I32, (const uint32_t[]){0, 0}, 2);
}
static void two_types(gguf_maker *m) {
    gguf_numbers(m, K("token_type"), GGUF_I32, (const uint32_t[]){2, 3}, 2);
}
static void same_scores(gguf_maker *m) {
    static uint32_t scores[PIECES];
    for (size_t i = 0; i < PIECES; i++)
        scores[i] = 0xc47a0000; /* -1000, the unused ones too */
    scores[UNUSED_BA] = 0;
    gguf_numbers(m, K("scores"), GGUF_F32, scores, PIECES);
}
void unk_text(gguf_maker *m) { gguf_text(m, K("unknown_token_id"), "0"); }
static void unk_beyond(gguf_maker *m) { gguf_u32(m, K("unknown_token_id"), PIECES); }
static void unk_end(gguf_maker *m) { gguf_u32(m, K("unknown_token_id"), 2); }
static void unk_filler(gguf_maker *m) { gguf_u32(m, K("unknown_token_id"), A); }
static void bos_beyond(gguf_maker *m) { gguf_u32(m, K("bos_token_id"), PIECES); }
static void bos_filler(gguf_maker *m) { gguf_u32(m, K("bos_token_id"), PAD); }

static const char *long_piece(void) {
    static char text[1026];
    memset(text, 'x', 1025);
    return text;
}

#define AB_IDS .length = 3, .ids = {1, BAR, AB}
#define CHANGE(at, text, kind, value) .id = at, .token = text, .type = kind, .score = value
static const piece_row piece_rows[] = {
    {"good", ISOBIT_OK, "ab", AB_IDS},
    {"no words", ISOBIT_OK, "ab", .skip = K("pre"), AB_IDS},
    {"scores decide", ISOBIT_OK, "ab", CHANGE(BAR_A, U81 "a", 1, SCORE(0)), .length = 3,
     .ids = {1, BAR_A, B}},
    {"no prefix", ISOBIT_OK, "ab a", .add = no_prefix, .length = 3, .ids = {1, AB, BAR_A}},
    {"no first token", ISOBIT_OK, "ab", .add = no_bos, .length = 2, .ids = {BAR, AB}},
    {"a last token", ISOBIT_OK, "ab", .add = with_eos, .length = 4, .ids = {1, BAR, AB, 2}},
    {"usual first token", ISOBIT_OK, "ab", .skip = K("bos_token_id"), AB_IDS},
    {"usual last token", ISOBIT_OK, "ab", .skip = K("eos_token_id"), .add = with_eos, .length = 4,
     .ids = {1, BAR, AB, 2}},
    {"bytes", ISOBIT_OK, "\n\xc3\xa9", .length = 5, .ids = {1, BAR, 13, 198, 172}},
    {"special", ISOBIT_OK, "a</s><unk>b", .length = 6, .ids = {1, BAR_A, 2, 0, BAR, B}},
    {"unknown by type", ISOBIT_OK, "<unk>a", .skip = K("unknown_token_id"), .length = 3,
     .ids = {1, 0, BAR_A}},
    {"unknown first", ISOBIT_OK, "<unk>a", .skip = K("unknown_token_id"), CHANGE(0, "<unk>", 3, 0),
     .length = 3, .ids = {1, 0, BAR_A}},
    {"unknown by key", ISOBIT_OK, "<unk>a", CHANGE(0, "<unk>", 1, 0), .length = 3,
     .ids = {1, 0, BAR_A}},
    {"another unknown", ISOBIT_OK, "<unk>a", .skip = K("unknown_token_id"), .add = unk_end,
     .length = 3, .ids = {1, 0, BAR_A}},
    {"of users", ISOBIT_OK, "a[LOUD] a", .length = 4, .ids = {1, BAR_A, LOUD, BAR_A}},
    {"unused, but a piece", ISOBIT_OK, "ba", .length = 3, .ids = {1, BAR, UNUSED_BA}},
    {"filler", ISOBIT_OK, "b", CHANGE(A, "[PAD260]", 5, 0), .length = 3, .ids = {1, BAR, B}},

    {"other words", ISOBIT_E_UNSUPPORTED, "pre\" is \"llama-bpe\"", .skip = K("pre"),
     .add = words_of_llama3},
    {"no tokens", ISOBIT_E_MISSING, "no key \"tokenizer.ggml.tokens\"", .skip = K("tokens")},
    {"no scores", ISOBIT_E_MISSING, "no key \"tokenizer.ggml.scores\"", .skip = K("scores")},
    {"no types", ISOBIT_E_MISSING, "no key \"tokenizer.ggml.token_type\"", .skip = K("token_type")},
    {"two scores", ISOBIT_E_CONFIG, "267 tokens, but 2 scores", .skip = K("scores"),
     .add = two_scores},
    {"whole scores", ISOBIT_E_CONFIG, "each item a float is expected", .skip = K("scores"),
     .add = whole_scores},
    {"two types", ISOBIT_E_CONFIG, "267 tokens, but 2 types", .skip = K("token_type"),
     .add = two_types},
    {"same scores", ISOBIT_E_UNSUPPORTED, "all 5 normal tokens have the same score",
     .skip = K("scores"), .add = same_scores},
    {"type 0", ISOBIT_E_CONFIG, "token 262 has the type 0", CHANGE(AB, "ab", 0, 0)},
    {"type 7", ISOBIT_E_CONFIG, "token 262 has the type 7", CHANGE(AB, "ab", 7, 0)},
    {"no number", ISOBIT_E_CONFIG, "score of token 262 is not", CHANGE(AB, "ab", 1, 0x7fc00000)},
    {"infinite", ISOBIT_E_CONFIG, "score of token 262 is not", CHANGE(AB, "ab", 1, 0xff800000)},
    {"empty", ISOBIT_E_CONFIG, "token 262 has 0 bytes", CHANGE(AB, "", 1, 0)},
    {"long", ISOBIT_E_CONFIG, "token 262 has 1025 bytes", CHANGE(AB, NULL, 1, 0)},
    {"no UTF-8", ISOBIT_E_UTF8, "token 262 is not UTF-8", CHANGE(AB, "\xff", 1, 0)},
    {"twice", ISOBIT_E_DUPLICATE, "two tokens are \"a\"", CHANGE(AB, "a", 1, 0)},
    {"odd byte", ISOBIT_E_CONFIG, "token 3, \"<0x0g>\", has the type of bytes",
     CHANGE(3, "<0x0g>", 6, 0)},
    {"no byte", ISOBIT_E_CONFIG, "there is no token <0x41>", CHANGE(3 + 0x41, "x", 1, 0)},
    {"two tokens", ISOBIT_E_CONFIG, "has less than 3 pieces", .count = 2},
    {"unknown beyond", ISOBIT_E_CONFIG, "unknown_token_id\" is 267, which is no token",
     .skip = K("unknown_token_id"), .add = unk_beyond},
    {"unknown a text", ISOBIT_E_CONFIG, "unknown_token_id\" is a string; a 32-bit number",
     .skip = K("unknown_token_id"), .add = unk_text},
    {"unknown a filler", ISOBIT_E_CONFIG, "unknown_token_id\" is 260, which is no token",
     .skip = K("unknown_token_id"), .add = unk_filler, CHANGE(A, "[PAD260]", 5, 0)},
    {"no unknown", ISOBIT_E_MISSING, "no key \"tokenizer.ggml.unknown_token_id\"",
     .skip = K("unknown_token_id"), CHANGE(0, "<unk>", 1, 0)},
    {"first token beyond", ISOBIT_E_CONFIG, "bos_token_id\" is 267, which is no token",
     .skip = K("bos_token_id"), .add = bos_beyond},
    {"first token a filler", ISOBIT_E_CONFIG, "bos_token_id\" is 264, which is no token",
     .skip = K("bos_token_id"), .add = bos_filler},
    {"no first token", ISOBIT_E_MISSING, "no key \"tokenizer.ggml.bos_token_id\"",
     .skip = K("bos_token_id"), CHANGE(1, "<s>", 1, 0)},
    {"prefix 1", ISOBIT_E_CONFIG, "add_space_prefix\" is a 32-bit number", .add = number_prefix},
};

void check_row(const piece_row *row, const char *path, iso_status status, const iso_error *error,
               const iso_tokenizer *t) {
    uint32_t got[12];
    size_t count, length, sequences;
    iso_error why = {0};
    if (status != row->status || (status && !strstr(error->message, row->says)))
        fail_msg("%s: %d \"%s\" instead of %d \"%s\"", row->name, (int)status, error->message,
                 (int)row->status, row->says);
    if (status) {
        assert_non_null(strstr(error->message, strrchr(path, '/') + 1));
        return;
    }
    assert_int_equal(iso_tokenizer_encode(t, row->says, strlen(row->says), got, 12, &count, &length,
                                          1, &sequences, &why),
                     ISOBIT_OK);
    if (count != row->length || memcmp(got, row->ids, count * sizeof *got) != 0)
        fail_msg("%s: %zu ids of \"%s\", or others: %u %u %u", row->name, count, row->says, got[0],
                 got[1], got[2]);
}

void test_pieces(void **state) {
    files f;
    char path[160];
    files_make(&f);
    files_path(&f, NAME, path, sizeof path);
    for (size_t i = 0; i < sizeof piece_rows / sizeof *piece_rows; i++) {
        piece_row row = piece_rows[i];
        iso_error error = {0};
        iso_tokenizer *t = NULL;
        gguf_maker m = {0};
        if (strcmp(row.name, "long") == 0)
            row.token = long_piece();
        make_pieces(&m, &row);
        blob b = gguf_finish(&m);
        files_write(&f, NAME, b.bytes, b.count);
        const iso_status status = iso_tokenizer_load(&t, path, &error);
        check_row(&row, path, status, &error, t);
        iso_tokenizer_free(t);
        blob_free(&b);
    }
    remove_all(&f);
    (void)state;
}

/* Pieces with the same score: of the pairs that make them the one with the longer left part comes
 * first, then that with the longer right one, then that of the first piece. */
void test_equal_scores(void **state) {
    enum { FIRST = 259, MORE = 7 };
    static const struct {
        const char *pieces[MORE];
        size_t count;
        uint32_t ids[3];
    } rows[] = {{{"a", "b", "c", "d", "bc", "abc", "bcd"}, 2, {FIRST, FIRST + 6}},
                {{"a", "b", "c", "d", "cd", "ab", "bcd"}, 2, {FIRST, FIRST + 6}},
                {{"a", "b", "c", "d", "xx", "ab", "bc"}, 3, {FIRST + 5, FIRST + 2, FIRST + 3}}};
    static char bytes[256][16];
    const char *tokens[FIRST + MORE + 1] = {"<unk>", "<s>", "</s>"};
    uint32_t types[FIRST + MORE] = {2, 3, 3}, scores[FIRST + MORE] = {0};
    files f;
    char path[160];
    files_make(&f);
    files_path(&f, NAME, path, sizeof path);
    for (unsigned i = 0; i < 256; i++) {
        (void)snprintf(bytes[i], sizeof bytes[i], "<0x%02X>", i);
        tokens[3 + i] = bytes[i];
        types[3 + i] = 6;
    }
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        iso_error error = {0};
        iso_tokenizer *t = NULL;
        gguf_maker m = {.version = 3, .alignment = 32};
        for (size_t i = 0; i < MORE; i++) {
            tokens[FIRST + i] = rows[row].pieces[i];
            types[FIRST + i] = 1;
            scores[FIRST + i] = SCORE(i == 4 ? 1 : 5);
        }
        tokens[FIRST + MORE] = NULL;
        gguf_text(&m, K("model"), "llama");
        gguf_texts(&m, K("tokens"), tokens);
        gguf_numbers(&m, K("scores"), GGUF_F32, scores, FIRST + MORE);
        gguf_numbers(&m, K("token_type"), GGUF_I32, types, FIRST + MORE);
        no_prefix(&m);
        no_bos(&m);
        blob b = gguf_finish(&m);
        files_write(&f, NAME, b.bytes, b.count);
        if (iso_tokenizer_load(&t, path, &error))
            fail_msg("row %zu: %s", row, error.message);
        uint32_t got[4];
        size_t count, length, sequences;
        assert_int_equal(
            iso_tokenizer_encode(t, "abcd", 4, got, 4, &count, &length, 1, &sequences, &error),
            ISOBIT_OK);
        if (count != rows[row].count || memcmp(got, rows[row].ids, count * sizeof *got) != 0)
            fail_msg("row %zu: %zu tokens, %u %u", row, count, got[0], got[1]);
        iso_tokenizer_free(t);
        blob_free(&b);
    }
    remove_all(&f);
    (void)state;
}

/* Each piece of a row of "a" is made of two others in as many ways as it has bytes: a vocabulary of
 * so many ways is refused. */
void test_many_pairs(void **state) {
    enum { LONGEST = 640, FIRST = 259 };
    static char bytes[256][16];
    static char texts[LONGEST][LONGEST + 1];
    static const char *tokens[FIRST + LONGEST + 1] = {"<unk>", "<s>", "</s>"};
    static uint32_t types[FIRST + LONGEST] = {2, 3, 3}, scores[FIRST + LONGEST];
    static const size_t longest[] = {400, LONGEST};
    files f;
    char path[160];
    files_make(&f);
    files_path(&f, NAME, path, sizeof path);
    for (unsigned i = 0; i < 256; i++) {
        (void)snprintf(bytes[i], sizeof bytes[i], "<0x%02X>", i);
        tokens[3 + i] = bytes[i];
        types[3 + i] = 6;
    }
    for (size_t i = 0; i < LONGEST; i++) {
        memset(texts[i], 'a', i + 1);
        types[FIRST + i] = 1;
        scores[FIRST + i] = SCORE(i);
    }
    for (size_t trial = 0; trial < 2; trial++) {
        const size_t count = FIRST + longest[trial];
        iso_error error = {0};
        iso_tokenizer *t = NULL;
        gguf_maker m = {.version = 3, .alignment = 32};
        for (size_t i = 0; i < LONGEST; i++)
            tokens[FIRST + i] = i < longest[trial] ? texts[i] : NULL;
        gguf_text(&m, K("model"), "llama");
        gguf_texts(&m, K("tokens"), tokens);
        gguf_numbers(&m, K("scores"), GGUF_F32, scores, count);
        gguf_numbers(&m, K("token_type"), GGUF_I32, types, count);
        blob b = gguf_finish(&m);
        files_write(&f, NAME, b.bytes, b.count);
        assert_int_equal(iso_tokenizer_load(&t, path, &error), trial ? ISOBIT_E_CONFIG : ISOBIT_OK);
        if (trial && !strstr(error.message, "204480 pairs of pieces make another piece"))
            fail_msg("%s", error.message);
        iso_tokenizer_free(t);
        blob_free(&b);
    }
    remove_all(&f);
    (void)state;
}

void make_good_pieces(gguf_maker *m) { make_pieces(m, &piece_rows[0]); }
