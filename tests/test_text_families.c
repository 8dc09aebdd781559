/* SPDX-License-Identifier: MIT
 *
 * Tokenizers of families with SentencePiece's files: which language stands where, what the files of
 * a directory may say about it, and directories that are damaged, one thing at a time: one clear
 * sentence each.
 */
#include "test_text_families.h"

int with_sentencepiece;

static char *read_data(const char *name, const char *file, size_t *count) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/text/%s/%s", ISOBIT_TEST_DATA, name, file);
    FILE *from = fopen(path, "rb");
    if (!from)
        return NULL;
    char *data = malloc(1 << 17);
    assert_non_null(data);
    *count = fread(data, 1, 1 << 17, from);
    assert_true(*count < 1 << 17);
    assert_int_equal(fclose(from), 0);
    return data;
}

/* A copy of tests/data/text/NAME. */
static void copy(files *f, const char *name) {
    static const char *const all[] = {
        "sentencepiece.bpe.model", "spiece.model",          "vocab.json",
        "tokenizer.json",          "tokenizer_config.json", "special_tokens_map.json",
        "tokenizer.model"};
    files_make(f);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t count = 0;
        char *data = read_data(name, all[i], &count);
        if (data)
            files_write(f, all[i], data, count);
        free(data);
    }
}

typedef struct trial {
    const char *name;   /* of the directory */
    const char *config; /* tokenizer_config.json, NULL: as it is */
    const char *from, *to;
    iso_status status;
    const char *says;         /* part of the sentence; or the source of "ab", in tokens */
    const char *target;       /* the first token of targets, NULL: none */
    const char *other, *text; /* another file, and what it has; NULL: it is removed */
} trial;

static void source(const iso_tokenizer *t, const char *text, char *tokens, size_t room) {
    uint32_t ids[64];
    size_t count, length, sequences, at = 0;
    assert_int_equal(
        iso_tokenizer_encode(t, text, strlen(text), ids, 64, &count, &length, 1, &sequences, NULL),
        ISOBIT_OK);
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(tokens + at, room - at, "%s%s", i ? " " : "",
                               iso_tokenizer_token(t, ids[i]));
    assert_true(at < room);
}

static void try_one(const trial *r) {
    files f;
    iso_error error = {0};
    iso_tokenizer *t = NULL;
    char tokens[256], path[160];
    uint32_t first = 0;
    const iso_tokenizer_options options = {
        .size = sizeof options, .source_language = r->from, .target_language = r->to};
    copy(&f, r->name);
    if (r->config)
        files_text(&f, "tokenizer_config.json", r->config);
    if (r->other && r->text) {
        files_text(&f, r->other, r->text);
    } else if (r->other) {
        files_path(&f, r->other, path, sizeof path);
        assert_int_equal(remove(path), 0);
    }
    const iso_status status = iso_tokenizer_load_with(&t, f.directory, &options, &error);
    if (status != r->status || !status != (t != NULL) ||
        (status && (error.status != status || !strstr(error.message, r->says))))
        fail_msg("%s %s, from %s: %d \"%s\"", r->name, r->config, r->from, (int)status,
                 error.message);
    if (t) {
        source(t, "ab", tokens, sizeof tokens);
        if (strcmp(tokens, r->says) != 0)
            fail_msg("%s %s, from %s: \"%s\"", r->name, r->config, r->from, tokens);
        assert_int_equal(iso_tokenizer_forced_bos(t, &first), ISOBIT_OK);
        if (r->target)
            assert_string_equal(iso_tokenizer_token(t, first), r->target);
        else
            assert_int_equal(first, UINT32_MAX);
    }
    iso_tokenizer_free(t);
    files_remove(&f);
}

static void test_languages(void **state) {
    static const trial rows[] = {
        /* NLLB-200: the language first, or last as it was once. */
        {"nllb", NULL, NULL, NULL, 0, "eng_Latn" AB "</s>", NULL, NULL, NULL},
        {"nllb", NULL, "fra_Latn", "zul_Latn", 0, "fra_Latn" AB "</s>", "zul_Latn", NULL, NULL},
        {"nllb", NLLB, "x_y", "eng_Latn", 0, "x_y" AB "</s>", "eng_Latn", NULL, NULL},
        {"nllb", CLASS("NllbTokenizer", ",\"additional_special_tokens\":[]"), NULL, NULL,
         ISOBIT_E_UNSUPPORTED, "has no language \"eng_Latn\", nor any other", NULL, NULL, NULL},
        {"nllb", CLASS("NllbTokenizer", ""), NULL, "ace_Arab", 0, "eng_Latn" AB "</s>", "ace_Arab",
         NULL, NULL},
        {"nllb", CLASS("NllbTokenizerFast", ",\"src_lang\":\"deu_Latn\",\"tgt_lang\":\"fra_Latn\""),
         NULL, NULL, 0, "deu_Latn" AB "</s>", "fra_Latn", NULL, NULL},
        {"nllb", CLASS("NllbTokenizer", ",\"src_lang\":\"deu_Latn\",\"tgt_lang\":\"fra_Latn\""),
         "ell_Grek", "zho_Hans", 0, "ell_Grek" AB "</s>", "zho_Hans", NULL, NULL},
        {"nllb", CLASS("NllbTokenizer", ",\"src_lang\":null,\"legacy_behaviour\":true"), NULL, NULL,
         0, BAR "a b </s> eng_Latn", NULL, NULL, NULL},
        {"nllb-json", NULL, "fra_Latn", "zul_Latn", 0, "fra_Latn" AB "</s>", "zul_Latn", NULL,
         NULL},
        {"nllb", NULL, "xx", NULL, ISOBIT_E_UNSUPPORTED,
         "no language \"xx\"; it has 5, for example ace_Arab deu_Latn eng_Latn fra_Latn zul_Latn",
         NULL, NULL, NULL},
        {"nllb", NULL, NULL, "<mask>", ISOBIT_E_UNSUPPORTED, "no language \"<mask>\"; it has 5",
         NULL, NULL, NULL},
        {"nllb-json", NULL, NULL, "", ISOBIT_E_UNSUPPORTED, "no language \"\"; it has 5", NULL,
         NULL, NULL},
        {"nllb", CLASS("NllbTokenizer", ""), NULL, "eng", ISOBIT_E_UNSUPPORTED, "it has 202", NULL,
         NULL, NULL},
        /* mBART has it last, mBART-50 first. */
        {"mbart", NULL, NULL, NULL, 0, BAR "a b </s> en_XX", NULL, NULL, NULL},
        {"mbart", NULL, "zh_CN", "ro_RO", 0, BAR "a b </s> zh_CN", "ro_RO", NULL, NULL},
        {"mbart", NULL, "sl_SI", NULL, ISOBIT_E_UNSUPPORTED, "it has 25, for example ar_AR", NULL,
         NULL, NULL},
        {"mbart50", NULL, "sl_SI", "ar_AR", 0, "sl_SI" AB "</s>", "ar_AR", NULL, NULL},
        {"mbart50-json", NULL, "sl_SI", "ar_AR", 0, "sl_SI" AB "</s>", "ar_AR", NULL, NULL},
        {"mbart", "{}", NULL, NULL, 0, BAR "a b </s> en_XX", NULL, "config.json",
         "{\"model_type\":\"mbart\"}"},
        {"mbart", "{}", NULL, NULL, 0, "en_XX" AB "</s>", NULL, "config.json",
         "{\"model_type\":\"mbart\",\"tokenizer_class\":\"MBart50Tokenizer\"}"},
        {"mbart", "{}", NULL, NULL, ISOBIT_E_UNSUPPORTED,
         "has no tokenizer_config.json with a tokenizer_class, and no config.json", NULL, NULL,
         NULL},
        {"mbart", "{}", NULL, NULL, ISOBIT_E_UNSUPPORTED, "isobit none for the model_type \"odd\"",
         NULL, "config.json", "{\"model_type\":\"odd\"}"},
        {"mbart", "{}", NULL, NULL, ISOBIT_E_UNSUPPORTED, "config.json: tokenizer_class \"Odd\"",
         NULL, "config.json", "{\"tokenizer_class\":\"Odd\"}"},
        /* None. */
        {"t5", NULL, NULL, NULL, 0, BAR "a b </s>", NULL, NULL, NULL},
        {"t5", NULL, "en", NULL, ISOBIT_E_UNSUPPORTED, "no languages to choose from", NULL, NULL,
         NULL},
        {"pegasus", NULL, NULL, "en", ISOBIT_E_UNSUPPORTED, "no languages to choose from", NULL,
         NULL, NULL},
        {"llama3", NULL, NULL, "en", ISOBIT_E_UNSUPPORTED, "no languages to choose from", NULL,
         NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        try_one(&rows[i]);
}

static void test_m2m(void **state) {
    static const trial rows[] = {
        {"m2m_100", NULL, NULL, NULL, 0, "__en__" AB "</s>", NULL, NULL, NULL},
        {"m2m_100", NULL, "zu", "fr", 0, "__zu__" AB "</s>", "__fr__", NULL, NULL},
        {"m2m_100", CLASS("M2M100Tokenizer", ",\"src_lang\":\"de\",\"tgt_lang\":\"af\""), NULL,
         NULL, 0, "__de__" AB "</s>", "__af__", NULL, NULL},
        {"m2m_100", CLASS("M2M100Tokenizer", ",\"language_codes\":\"wmt21\""), "de", "ha", 0,
         "__de__" AB "</s>", "__ha__", NULL, NULL},
        {"m2m_100", CLASS("M2M100Tokenizer", ",\"language_codes\":\"wmt21\""), "fr", NULL,
         ISOBIT_E_UNSUPPORTED, "no language \"fr\"; it has 8, for example en ha is ja cs ru", NULL,
         NULL, NULL},
        {"m2m_100", "{}", NULL, NULL, 0, "__en__" AB "</s>", NULL, "config.json",
         "{\"model_type\":\"m2m_100\"}"},
        {"m2m_100", NULL, "eng_Latn", NULL, ISOBIT_E_UNSUPPORTED, "it has 100, for example af am",
         NULL, NULL, NULL},
        {"m2m_100", NULL, NULL,
         "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567",
         ISOBIT_E_UNSUPPORTED, "it has 100", NULL, NULL, NULL},
        {"m2m_100", CLASS("M2M100Tokenizer", ",\"language_codes\":\"zz\""), NULL, NULL,
         ISOBIT_E_UNSUPPORTED, "language_codes \"zz\"", NULL, NULL, NULL},
        {"m2m_100", NULL, NULL, NULL, ISOBIT_E_MISSING, "vocab.json", NULL, "vocab.json", NULL},
        {"m2m_100", NULL, NULL, NULL, ISOBIT_E_MISSING, "sentencepiece.bpe.model", NULL,
         "sentencepiece.bpe.model", NULL},
        {"m2m_100", NULL, NULL, NULL, ISOBIT_E_CONFIG, "not a SentencePiece model", NULL,
         "sentencepiece.bpe.model", "x"},
        {"m2m_100", NULL, NULL, NULL, ISOBIT_E_CONFIG, "contradict each other", NULL, "vocab.json",
         "{\"</s>\":0,\"<unk>\":1,\"<pad>\":2}"},
        {"m2m_100", NULL, NULL, NULL, ISOBIT_E_MISSING, "no token \"<pad>\"", NULL, "vocab.json",
         "{\"</s>\":0,\"<unk>\":1}"},
        {"m2m_100", NULL, NULL, NULL, ISOBIT_E_CONFIG, "is not a whole number below 102", NULL,
         "vocab.json", "{\"</s>\":0,\"<unk>\":200}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        try_one(&rows[i]);
}

/* A token that the file of SentencePiece lacks keeps its bar, as transformers gives it. */
static void test_m2m_bar(void **state) {
    static const char more[] = ",\"" BAR "qq\":";
    static char changed[1 << 14];
    char *vocabulary, text[32];
    size_t count = 0;
    files f;
    iso_error error = {0};
    iso_tokenizer *t = NULL;
    uint32_t id = 0;
    (void)state;
    copy(&f, "m2m_100");
    vocabulary = read_data("m2m_100", "vocab.json", &count);
    assert_non_null(vocabulary);
    while (count && vocabulary[count - 1] != '}')
        count--;
    size_t tokens = 0;
    for (size_t i = 0; i + 3 < count; i++)
        tokens += memcmp(vocabulary + i, "\": ", 3) == 0 && vocabulary[i + 3] >= '0' &&
                  vocabulary[i + 3] <= '9';
    (void)snprintf(changed, sizeof changed, "%.*s%s%zu}", (int)count - 1, vocabulary, more, tokens);
    free(vocabulary);
    files_text(&f, "vocab.json", changed);
    if (iso_tokenizer_load(&t, f.directory, &error))
        fail_msg("%s", error.message);
    while (iso_tokenizer_token(t, id) && strcmp(iso_tokenizer_token(t, id), BAR "qq") != 0)
        id++;
    const uint32_t ids[] = {id, id};
    assert_int_equal(iso_tokenizer_decode(t, ids, 2, text, sizeof text, NULL), ISOBIT_OK);
    assert_string_equal(text, BAR "qq" BAR "qq");
    iso_tokenizer_free(t);
    files_remove(&f);
}

/* What the files beside a file of SentencePiece say. */
static void test_files(void **state) {
    static const trial rows[] = {
        {"t5", NULL, NULL, NULL, ISOBIT_E_MISSING, "spiece.model", NULL, "spiece.model", NULL},
        {"t5", NULL, NULL, NULL, ISOBIT_E_CONFIG, "spiece.model: not a SentencePiece model", NULL,
         "spiece.model", "x"},
        {"t5", CLASS("T5Tokenizer", ",\"eos_token\":\"zz\""), NULL, NULL, 0, BAR "a b zz", NULL,
         NULL, NULL},
        {"t5", CLASS("T5Tokenizer", ",\"extra_ids\":-1"), NULL, NULL, ISOBIT_E_CONFIG,
         "extra_ids is not a whole number", NULL, NULL, NULL},
        {"t5", CLASS("T5Tokenizer", ",\"extra_ids\":\"1\""), NULL, NULL, ISOBIT_E_CONFIG,
         "extra_ids is not a whole number", NULL, NULL, NULL},
        {"t5", CLASS("T5Tokenizer", ",\"extra_ids\":70000"), NULL, NULL, ISOBIT_E_CONFIG,
         "extra_ids is not a whole number up to 65536", NULL, NULL, NULL},
        {"t5",
         CLASS("T5Tokenizer",
               ",\"extra_ids\":2,\"additional_special_tokens\":[\"<extra_id_0>\",\"y\"]"),
         NULL, NULL, ISOBIT_E_CONFIG, "extra_ids is 2, but additional_special_tokens has 1 of them",
         NULL, NULL, NULL},
        {"t5", CLASS("T5Tokenizer", ",\"additional_special_tokens\":[\"b\"]"), NULL, NULL, 0,
         BAR "a b </s>", NULL, NULL, NULL},
        {"t5", CLASS("T5Tokenizer", ",\"added_tokens_decoder\":{\"x\":{\"content\":\"y\"}}"), NULL,
         NULL, ISOBIT_E_CONFIG, "added_tokens_decoder is not as expected", NULL, NULL, NULL},
        {"t5", CLASS("T5Tokenizer", ",\"added_tokens_decoder\":{\"5\":{\"content\":\"yyyy\"}}"),
         NULL, NULL, ISOBIT_E_DUPLICATE, "of another", NULL, NULL, NULL},
        {"t5",
         CLASS("T5Tokenizer",
               ",\"added_tokens_decoder\":{\"330\":{\"content\":\"ab\",\"special\":false}}"),
         NULL, NULL, 0, "ab </s>", NULL, NULL, NULL},
        {"t5",
         CLASS("T5Tokenizer", ",\"added_tokens_decoder\":{\"7\":\"x\",\"8\":{\"content\":\"\"}}"),
         NULL, NULL, 0, BAR "a b </s>", NULL, NULL, NULL},
        {"t5", NULL, NULL, NULL, 0, "ab </s>", NULL, "added_tokens.json", "{\"ab\":330}"},
        {"t5", NULL, NULL, NULL, ISOBIT_E_JSON, "added_tokens.json", NULL, "added_tokens.json",
         "x"},
        {"t5", NULL, NULL, NULL, ISOBIT_E_JSON, "special_tokens_map.json", NULL,
         "special_tokens_map.json", "["},
        {"t5", NULL, NULL, NULL, 0, "ab </s>", NULL, "special_tokens_map.json",
         "{\"additional_special_tokens\":[{\"content\":\"ab\"}]}"},
        {"pegasus", NULL, NULL, NULL, 0, BAR "a b </s>", NULL, NULL, NULL},
        {"pegasus", CLASS("PegasusTokenizer", ",\"mask_token_sent\":null,\"offset\":0"), NULL, NULL,
         0, BAR "a b </s>", NULL, NULL, NULL},
        {"pegasus", CLASS("PegasusTokenizer", ",\"offset\":1.5"), NULL, NULL, ISOBIT_E_CONFIG,
         "offset is not a whole number", NULL, NULL, NULL},
        {"pegasus", CLASS("PegasusTokenizer", ",\"pad_token\":\"</s>\""), NULL, NULL,
         ISOBIT_E_DUPLICATE, "spiece.model: two tokens are \"</s>\"", NULL, NULL, NULL},
        {"bart", NULL, NULL, NULL, ISOBIT_E_MISSING, "vocab.json", NULL, "vocab.json", NULL},
        /* tokenizer_config.json may change what tokenizer.json has. */
        {"nllb-json",
         CLASS("NllbTokenizer", ",\"added_tokens_decoder\":{\"350\":{\"content\":\"ab\"}}"), NULL,
         NULL, 0, "eng_Latn ab </s>", NULL, NULL, NULL},
        {"nllb-json",
         CLASS("NllbTokenizer", ",\"added_tokens_decoder\":{\"\":{\"content\":\"y\"}}"), NULL, NULL,
         ISOBIT_E_CONFIG, "added_tokens_decoder is not as expected", NULL, NULL, NULL},
        {"nllb-json", CLASS("NllbTokenizer", ",\"eos_token\":\"zz\""), NULL, NULL, ISOBIT_E_MISSING,
         "no token \"zz\"", NULL, NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        try_one(&rows[i]);
}

#define NORMALIZED                                                                                 \
    "{\"__type\":\"AddedToken\",\"content\":\"a\",\"normalized\":true,\"lstrip\":false}"

/* Llama: tokenizer.model or tokenizer.json, and the tokens around a text in either case. */
static void test_llama(void **state) {
    static const trial rows[] = {
        {"llama", NULL, NULL, NULL, 0, "<s> " BAR "a b", NULL, NULL, NULL},
        {"llama", "{}", NULL, NULL, 0, "<s> " BAR "a b", NULL, "config.json",
         "{\"model_type\":\"llama\"}"},
        {"llama", "{}", NULL, NULL, 0, "<s> " BAR "a b", NULL, "config.json",
         "{\"model_type\":\"mistral\"}"},
        {"llama", LLAMA(",\"add_bos_token\":false,\"add_eos_token\":true"), NULL, NULL, 0,
         BAR "a b </s>", NULL, NULL, NULL},
        {"llama", LLAMA(",\"add_bos_token\":null"), NULL, NULL, 0, BAR "a b", NULL, NULL, NULL},
        {"llama", LLAMA(",\"bos_token\":\"zz\""), NULL, NULL, 0, "zz " BAR "a b", NULL, NULL, NULL},
        {"llama", NULL, NULL, NULL, 0, "</s> " BAR "a b", NULL, "special_tokens_map.json",
         "{\"bos_token\":{\"content\":\"</s>\"}}"},
        {"llama", LLAMA(",\"bos_token\":null"), NULL, NULL, ISOBIT_E_CONFIG,
         "tokenizer_config.json: add_bos_token asks for a token, but bos_token is null", NULL, NULL,
         NULL},
        {"llama", LLAMA(",\"add_prefix_space\":false"), NULL, NULL, 0, "<s> a b", NULL, NULL, NULL},
        {"llama", LLAMA(",\"add_prefix_space\":null"), NULL, NULL, 0, "<s> a b", NULL, NULL, NULL},
        {"llama", LLAMA(",\"pad_token\":" NORMALIZED), NULL, NULL, 0, "<s> a b", NULL, NULL, NULL},
        {"llama", LLAMA(",\"pad_token\":{}"), NULL, NULL, 0, "<s> " BAR "a b", NULL, NULL, NULL},
        {"llama", LLAMA(",\"pad_token\":\"a\",\"legacy\":false"), NULL, NULL, 0, "<s> a b", NULL,
         NULL, NULL},
        {"llama", LLAMA(",\"pad_token\":\"a\""), NULL, NULL, 0, "<s> a " BAR "b", NULL, NULL, NULL},
        {"llama",
         LLAMA(",\"added_tokens_decoder\":{\"0\":{\"content\":\"?\",\"special\":true},\"2\":{"
               "\"content\":\"end\",\"special\":true}},\"eos_token\":\"end\",\"unk_token\":\"?\","
               "\"add_eos_token\":true"),
         NULL, NULL, ISOBIT_E_MISSING, "tokenizer.model: the unknown piece is not in it", NULL,
         NULL, NULL},
        {"llama", NULL, "en", NULL, ISOBIT_E_UNSUPPORTED, "no languages to choose from", NULL, NULL,
         NULL},
        {"llama", NULL, NULL, NULL, ISOBIT_E_MISSING, "tokenizer.model", NULL, "tokenizer.model",
         NULL},
        {"llama", NULL, NULL, NULL, ISOBIT_E_CONFIG, "tokenizer.model: not a SentencePiece model",
         NULL, "tokenizer.model", "x"},
        {"llama-json", NULL, NULL, NULL, 0, "<s> " BAR "a b </s>", NULL, NULL, NULL},
        {"llama-json", LLAMA(""), NULL, NULL, 0, "<s> " BAR "a b", NULL, NULL, NULL},
        {"llama-json", LLAMA(",\"add_prefix_space\":true"), NULL, NULL, 0, "<s> " BAR "a b", NULL,
         NULL, NULL},
        {"llama-json", LLAMA(",\"bos_token\":\"zz\""), NULL, NULL, ISOBIT_E_MISSING,
         "no token \"zz\"", NULL, NULL, NULL},
        {"llama-json", NULL, NULL, NULL, ISOBIT_E_JSON, "special_tokens_map.json", NULL,
         "special_tokens_map.json", "["},
        {"llama-json", CLASS("PreTrainedTokenizerFast", ",\"add_bos_token\":false"), NULL, NULL, 0,
         "<s> " BAR "a b </s>", NULL, NULL, NULL},
        {"llama-json", CLASS("GemmaTokenizer", ",\"bos_token\":\"<unk>\""), NULL, NULL, 0,
         "<unk> " BAR "a b", NULL, NULL, NULL},
        {"llama-json",
         CLASS("GemmaTokenizer", ",\"add_prefix_space\":true,\"bos_token\":\"<unk>\""), NULL, NULL,
         0, "<unk> " BAR "a b", NULL, NULL, NULL},
        {"llama-json", CLASS("T5Tokenizer", ""), NULL, NULL, 0, "<s> " BAR "a b </s>", NULL, NULL,
         NULL},
        {"llama-json", CLASS("T5Tokenizer", ",\"add_prefix_space\":true"), NULL, NULL,
         ISOBIT_E_MISSING, "there is no file spiece.model", NULL, NULL, NULL},
        {"llama-json", CLASS("GemmaTokenizer", ""), NULL, NULL, ISOBIT_E_MISSING,
         "there is no file tokenizer.json", NULL, "tokenizer.json", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        try_one(&rows[i]);
}

static void test_options(void **state) {
    files f;
    iso_error error = {0};
    iso_tokenizer *t = NULL;
    struct {
        iso_tokenizer_options known;
        size_t more;
    } newer = {{.size = sizeof newer}, 0};
    (void)state;
    copy(&f, "nllb");
    assert_int_equal(iso_tokenizer_load_with(&t, f.directory, &newer.known, &error), ISOBIT_E_SIZE);
    newer.known.size = sizeof newer.known - sizeof(char *);
    assert_int_equal(iso_tokenizer_load_with(&t, f.directory, &newer.known, &error), ISOBIT_E_SIZE);
    assert_null(t);
    assert_int_equal(iso_tokenizer_load_with(NULL, f.directory, NULL, &error), ISOBIT_E_NULL);
    assert_int_equal(iso_tokenizer_load_with(&t, NULL, NULL, &error), ISOBIT_E_NULL);
    assert_int_equal(iso_tokenizer_load_with(&t, f.directory, NULL, &error), ISOBIT_OK);
    iso_tokenizer_free(t);
    files_remove(&f);
}

/* Vocabularies that lack something, and a language with a long name. */
static void test_lacking(void **state) {
    static char name[4096];
    (void)state;
    try_one(&(const trial){"marian", CLASS("MarianTokenizer", ",\"separate_vocabs\":true"), NULL,
                           NULL, ISOBIT_E_MISSING, "target_vocab.json", NULL, NULL, NULL});
    try_one(&(const trial){"marian", CLASS("MarianTokenizer", ""), NULL, NULL, ISOBIT_E_MISSING,
                           "no token \"<pad>\"", NULL, "vocab.json",
                           "{\"</s>\":0,\"<unk>\":1,\"a\":2}"});
    try_one(&(const trial){"marian", CLASS("MarianTokenizer", ""), NULL, NULL, ISOBIT_E_MISSING,
                           "no token \"</s>\"", NULL, "vocab.json",
                           "{\"<pad>\":0,\"<unk>\":1,\"a\":2}"});
    try_one(&(const trial){"marian", CLASS("MarianTokenizer", ""), NULL, NULL, ISOBIT_E_MISSING,
                           "no token \"<unk>\"", NULL, "vocab.json",
                           "{\"<pad>\":0,\"</s>\":1,\"a\":2}"});
    memset(name, 'x', sizeof name - 1);
    try_one(&(const trial){"m2m_100", NULL, name, NULL, ISOBIT_E_UNSUPPORTED, "no language \"xxx",
                           NULL, NULL, NULL});
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_languages), cmocka_unit_test(test_files),
        cmocka_unit_test(test_llama),     cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_options),   cmocka_unit_test(test_targets),
    };
    const struct CMUnitTest with_spm[] = {
        cmocka_unit_test(test_m2m), cmocka_unit_test(test_m2m_bar), cmocka_unit_test(test_lacking),
        cmocka_unit_test(test_marian_bytes)};
    (void)argv;
    with_sentencepiece = argc > 1; /* any argument: libsentencepiece is there */
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (with_sentencepiece)
        failed += cmocka_run_group_tests(with_spm, NULL, NULL);
    return failed != 0;
}
