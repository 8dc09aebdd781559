/* SPDX-License-Identifier: MIT
 *
 * See test_text_families.c: pieces that make no sense, and those that stand for bytes.
 */
#include "../test_text_families.h"

static void refused(const files *f, const char *title, const bytes *b, const char *config,
                    iso_status status, const char *says) {
    iso_error error = {0};
    iso_tokenizer *t = NULL;
    files_write(f, "spiece.model", b->data, b->count);
    files_write(f, "sentencepiece.bpe.model", b->data, b->count);
    files_write(f, "tokenizer.model", b->data, b->count);
    files_text(f, "tokenizer_config.json", config);
    const iso_status got = iso_tokenizer_load(&t, f->directory, &error);
    if (got != status || (got && !strstr(error.message, says)))
        fail_msg("%s: %d \"%s\"", title, (int)got, error.message);
    iso_tokenizer_free(t);
}

/* The part of the trainer: model, number and name of the unknown piece. */
static void trainer(bytes *b, unsigned model, uint64_t unk, const char *name) {
    static bytes message;
    message.count = 0;
    number_field(&message, 3, model);
    number_field(&message, 40, unk);
    if (name)
        field(&message, 45, name, strlen(name));
    field(b, 2, message.data, message.count);
}

void test_pieces(void **state) {
    static const char t5[] = CLASS("T5Tokenizer", ""), nllb[] = CLASS("NllbTokenizer", ""),
                      pegasus[] = CLASS("PegasusTokenizer", "");
    static bytes b;
    files f;
    (void)state;
    files_make(&f);
    b.count = 0;
    good_pieces(&b);
    refused(&f, "the end of a text is added", &b, t5, ISOBIT_OK, "");
    piece(&b, "</s>", 4, 0, TEXT_PIECE_CONTROL);
    refused(&f, "good", &b, t5, ISOBIT_OK, "");
    refused(&f, "good", &b, pegasus, ISOBIT_E_DUPLICATE, "two tokens are \"</s>\"");
    const size_t good = b.count;
    piece(&b, "a", 1, minus_one, TEXT_PIECE_NORMAL);
    refused(&f, "twice", &b, t5, ISOBIT_E_DUPLICATE, "spiece.model: two tokens are \"a\"");
    b.count = good;
    piece(&b, "<extra_id_7>", 12, minus_one, TEXT_PIECE_NORMAL);
    refused(&f, "extra", &b, t5, ISOBIT_E_DUPLICATE, "two tokens are \"<extra_id_7>\"");
    for (unsigned model = 1; model < 3; model++) {
        b.count = good;
        trainer(&b, model, 0, "<unk>");
        refused(&f, "named", &b, t5, ISOBIT_OK, "");
        b.count = good;
        trainer(&b, model, 5, "zz");
        refused(&f, "another number", &b, t5, model == 1 ? ISOBIT_OK : ISOBIT_E_MISSING,
                "the unknown piece is not in it");
        b.count = good;
        trainer(&b, model, 105, "zz");
        refused(&f, "beyond", &b, t5, ISOBIT_E_MISSING, "spiece.model: the unknown piece");
        b.count = good;
        trainer(&b, model, UINT64_MAX, "zz");
        refused(&f, "far beyond", &b, t5, ISOBIT_E_MISSING, "spiece.model: the unknown piece");
    }
    b.count = good;
    trainer(&b, 1, 0, "\xff");
    refused(&f, "no text", &b, t5, ISOBIT_E_CONFIG, "the name of the unknown piece");
    b.count = 0;
    piece(&b, "<unk>", 5, 0, TEXT_PIECE_UNKNOWN);
    piece(&b, "<s>", 3, 0, TEXT_PIECE_CONTROL);
    refused(&f, "two pieces", &b, pegasus, ISOBIT_E_CONFIG, "has no more than 2 pieces");
    refused(&f, "two pieces", &b, LLAMA(""), ISOBIT_E_CONFIG,
            "tokenizer.model has less than 3 pieces");
    piece(&b, "</s>", 4, 0, TEXT_PIECE_CONTROL);
    refused(&f, "three pieces", &b, nllb, ISOBIT_E_CONFIG, "has no more than 3 pieces");
    refused(&f, "three pieces", &b, LLAMA(""), ISOBIT_OK, "");
    refused(&f, "a name twice", &b,
            LLAMA(",\"added_tokens_decoder\":{\"1\":{\"content\":\"<unk>\"}}"), ISOBIT_E_DUPLICATE,
            "tokenizer.model: two tokens are \"<unk>\"");
    piece(&b, "a", 1, 0, TEXT_PIECE_NORMAL);
    refused(&f, "four pieces", &b, nllb, ISOBIT_OK, "");
    refused(&f, "no mask", &b, CLASS("MBartTokenizer", ",\"mask_token\":null"), ISOBIT_OK, "");
    /* Each piece of n letters is made in n - 1 ways. */
    static char letters[1024];
    b.count = 0;
    memset(letters, 'a', sizeof letters);
    piece(&b, "<unk>", 5, 0, TEXT_PIECE_UNKNOWN);
    piece(&b, "</s>", 4, 0, TEXT_PIECE_CONTROL);
    trainer(&b, 2, 0, NULL);
    for (size_t n = 1; n <= 300; n++)
        piece(&b, letters, n, 0, TEXT_PIECE_NORMAL);
    refused(&f, "a few ways", &b, t5, ISOBIT_OK, "");
    files_remove(&f);
}

/* Bytes for characters: one that lacks some is not shown yet. */
void test_marian_bytes(void **state) {
    static const uint32_t ids[] = {3, 4, 5};
    static bytes b, trainer;
    files f;
    char text[32], name[8];
    iso_error error = {0};
    iso_tokenizer *t = NULL;
    (void)state;
    files_make(&f);
    b.count = trainer.count = 0;
    piece(&b, "<unk>", 5, 0, TEXT_PIECE_UNKNOWN);
    piece(&b, "</s>", 4, 0, TEXT_PIECE_CONTROL);
    piece(&b, "a", 1, minus_one, TEXT_PIECE_NORMAL);
    for (unsigned i = 0; i < 256; i++) {
        (void)snprintf(name, sizeof name, "<0x%02X>", i);
        piece(&b, name, 6, 0, TEXT_PIECE_BYTE);
    }
    number_field(&trainer, 3, 1);
    number_field(&trainer, 35, 1);
    field(&b, 2, trainer.data, trainer.count);
    files_write(&f, "source.spm", b.data, b.count);
    files_write(&f, "target.spm", b.data, b.count);
    files_text(&f, "tokenizer_config.json", CLASS("MarianTokenizer", ""));
    files_text(&f, "vocab.json",
               "{\"</s>\":0,\"<unk>\":1,\"<pad>\":2,\"a\":3,\"<0xC3>\":4,\"<0xA9>\":5}");
    if (iso_tokenizer_load(&t, f.directory, &error))
        fail_msg("%s", error.message);
    for (size_t count = 1; count <= 3; count++) {
        static const char *const whole[] = {"a", "a\xef\xbf\xbd", "a\xc3\xa9"}, *const partial[] = {
                                                                                    "a", "a",
                                                                                    "a\xc3\xa9"};
        assert_int_equal(iso_tokenizer_decode(t, ids, count, text, sizeof text, NULL), ISOBIT_OK);
        assert_string_equal(text, whole[count - 1]);
        assert_int_equal(iso_tokenizer_decode_partial(t, ids, count, text, sizeof text, NULL),
                         ISOBIT_OK);
        assert_string_equal(text, partial[count - 1]);
    }
    iso_tokenizer_free(t);
    files_remove(&f);
}
