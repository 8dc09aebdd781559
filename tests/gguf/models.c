/* SPDX-License-Identifier: MIT
 *
 * See test_gguf.c: files that llama.cpp's conversion has made beside the directories that they were
 * made from, and what a file says that a config.json would.
 */
#include "../test_gguf.h"

#include <jansson.h>

enum { LENGTH = 7 };
static const uint32_t ids[LENGTH] = {7, 11, 5, 2, 49, 0, 23};

/* Of a model with an encoder the ids are source and target. */
static void numbers_of(const char *path, float *to, size_t length) {
    iso_error error = {0};
    iso_model *model = load(path);
    const iso_model_info *info = iso_model_get_info(model);
    const int both = info->encoder_layers != 0;
    memset(to, 0, LENGTH * MOST * sizeof *to);
    assert_true(info->target_vocabulary <= MOST && info->d <= MOST);
    assert_int_equal(info->decoder_layers
                         ? iso_logits_f32(to, model, both ? ids : NULL, both ? length : 0, ids,
                                          length, 0, NULL, &error)
                         : iso_encode_batch_f32(to, model, ids, &length, 1, NULL, &error),
                     ISOBIT_OK);
    iso_model_free(model);
}

static void same_info(const char *path, const char *other) {
    iso_model *a = load(path), *b = load(other);
    const iso_model_info *x = iso_model_get_info(a), *y = iso_model_get_info(b);
    assert_string_equal(x->family, y->family);
    assert_int_equal(x->d, y->d);
    assert_int_equal(x->max_positions, y->max_positions);
    assert_int_equal(x->encoder_layers, y->encoder_layers);
    assert_int_equal(x->decoder_layers, y->decoder_layers);
    assert_int_equal(x->encoder_heads, y->encoder_heads);
    assert_int_equal(x->decoder_heads, y->decoder_heads);
    assert_int_equal(x->decoder_ffn, y->decoder_ffn);
    assert_int_equal(x->target_vocabulary, y->target_vocabulary);
    assert_int_equal(x->pad_id, y->pad_id);
    assert_int_equal(x->bos_id, y->bos_id);
    if (x->decoder_layers) /* an encoder alone has no use for it */
        assert_int_equal(x->decoder_start_id, y->decoder_start_id);
    assert_int_equal(x->eos_count, y->eos_count);
    for (size_t i = 0; i < x->eos_count; i++)
        assert_int_equal(x->eos_ids[i], y->eos_ids[i]);
    iso_model_free(a);
    iso_model_free(b);
}

/* One file of a folder, or nothing. */
static blob read_file(const char *folder, const char *name) {
    char path[600], buffer[4096];
    blob b = {0};
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    for (size_t n; file && (n = fread(buffer, 1, sizeof buffer, file)) > 0;)
        blob_add(&b, buffer, n);
    if (file)
        (void)fclose(file);
    return b;
}

/* Of a folder with other keys in its configuration. */
static void numbers_as(const char *folder, const char *changes, float *to, size_t length) {
    files f;
    blob config = read_file(folder, "config.json"),
         weights = read_file(folder, "model.safetensors");
    json_t *root = json_loadb((const char *)config.bytes, config.count, 0, NULL);
    json_t *more = json_loads(changes, 0, NULL);
    assert_true(root && more);
    assert_int_equal(json_object_update(root, more), 0);
    char *text = json_dumps(root, 0);
    files_make(&f);
    files_text(&f, "config.json", text);
    files_write(&f, "model.safetensors", weights.bytes, weights.count);
    numbers_of(f.directory, to, length);
    remove_all(&f);
    free(text);
    json_decref(root);
    json_decref(more);
    blob_free(&config);
    blob_free(&weights);
}

/* What files of Gemma do not say: that of llama.cpp. Scores are divided by sqrt(width of a head).
 */
#define GEMMA_BASE "\"rope_theta\":10000"
#define GEMMA_SCALE "\"query_pre_attn_scalar\":12"

void test_same_bits(void **state) {
    static const struct {
        const char *path, *folder;
        size_t length;
        const char *changes; /* in the folder */
    } pairs[] = {
        {DATA "/gguf/gemma.gguf", DATA "/models/gemma-bf16", LENGTH, "{" GEMMA_BASE "}"},
        {DATA "/gguf/gemma2.gguf", DATA "/models/gemma2-bf16", LENGTH,
         "{\"rope_parameters\":null," GEMMA_BASE "," GEMMA_SCALE "}"},
        {DATA "/gguf/gemma3.gguf", DATA "/models/gemma3-bf16", LENGTH, "{" GEMMA_SCALE "}"},
        {DATA "/gguf/llama.gguf", DATA "/models/llama", LENGTH, NULL},
        {DATA "/gguf/yarn.gguf", DATA "/models/llama-yarn", LENGTH, NULL},
        {DATA "/gguf/longrope.gguf", DATA "/models/llama-longrope", LENGTH, NULL},
        {DATA "/gguf/qwen2.gguf", DATA "/models/qwen2-f16", LENGTH, NULL},
        {DATA "/gguf/qwen3.gguf", DATA "/models/qwen3-bf16", LENGTH, NULL},
        {DATA "/gguf/gpt2.gguf", DATA "/models/gpt2", LENGTH, NULL},
        {DATA "/gguf/bert.gguf", DATA "/models/bert", LENGTH, NULL},
        {DATA "/gguf/t5.gguf", DATA "/models/t5", LENGTH, NULL},
        {DATA "/gguf/flan-t5.gguf", DATA "/models/flan-t5-bf16", LENGTH, NULL},
        {DATA "/gguf/umt5.gguf", DATA "/models/umt5", LENGTH, NULL},
        /* The largest distance of that folder is not the one of all files; it is not reached. */
        {DATA "/gguf/t5encoder.gguf", DATA "/models/t5-encoder-bf16", 2, NULL},
    };
    static float got[LENGTH * MOST], expected[LENGTH * MOST];
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        numbers_of(pairs[i].path, got, pairs[i].length);
        numbers_as(pairs[i].folder, pairs[i].changes ? pairs[i].changes : "{}", expected,
                   pairs[i].length);
        /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): bits are meant */
        if (memcmp(got, expected, sizeof got) != 0)
            fail_msg("%s has other bits", pairs[i].path);
        same_info(pairs[i].path, pairs[i].folder);
    }
    (void)state;
}

/* The scaling of Llama 3 is there as divisors, which the conversion has rounded to floats. */
void test_llama3(void **state) {
    static float got[LENGTH * MOST], expected[LENGTH * MOST];
    numbers_of(DATA "/gguf/llama3.gguf", got, LENGTH);
    numbers_of(DATA "/models/llama3-bf16", expected, LENGTH);
    for (size_t i = 0; i < LENGTH * MOST; i++)
        if (!(fabs((double)got[i] - (double)expected[i]) <= 2e-6))
            fail_msg("number %zu is %.9g; %.9g is expected", i, (double)got[i],
                     (double)expected[i]);
    same_info(DATA "/gguf/llama3.gguf", DATA "/models/llama3-bf16");
    (void)state;
}

/* ------------------------------------------------------------------------------------------ T5 */

/* Of one layer each; `heads`: how many matrices of logits, the second with another element. */
static void write_t5(const files *f, const char *skip, int heads) {
    static const char *const parts[] = {"attn_q", "attn_k", "attn_v", "attn_o"};
    gguf_maker m = {.version = 3, .alignment = 32, .skip = skip};
    char name[80];
    gguf_text(&m, "general.architecture", "t5");
    gguf_u32(&m, "t5.block_count", 1);
    gguf_u32(&m, "t5.context_length", 4);
    gguf_u32(&m, "t5.embedding_length", 4);
    gguf_u32(&m, "t5.feed_forward_length", 3);
    gguf_u32(&m, "t5.attention.head_count", 2);
    gguf_u32(&m, "t5.attention.key_length", 2);
    gguf_u32(&m, "t5.attention.relative_buckets_count", 4);
    gguf_number(&m, "t5.attention.layer_norm_rms_epsilon", GGUF_F32, 0x3f800000, 4);
    gguf_u32(&m, "t5.decoder_start_token_id", 0);
    gguf_u32(&m, "tokenizer.ggml.eos_token_id", 1);
    gguf_f32(&m, "token_embd.weight", 4, 7);
    if (heads) {
        gguf_f32(&m, "output.weight", 4, 7);
        m.data.bytes[m.data.count - 1] ^= heads > 1;
    }
    for (int decoder = 0; decoder < 2; decoder++) {
        const char *stack = decoder ? "dec" : "enc";
        for (int cross = 0; cross <= decoder; cross++) {
            const char *kind = cross ? "cross_" : "";
            for (size_t i = 0; i < 4; i++) {
                (void)snprintf(name, sizeof name, "%s.blk.0.%s%s.weight", stack, kind, parts[i]);
                gguf_f32(&m, name, 4, 4);
            }
            (void)snprintf(name, sizeof name, "%s.blk.0.%sattn_norm.weight", stack, kind);
            gguf_f32(&m, name, 4, 0);
        }
        (void)snprintf(name, sizeof name, "%s.blk.0.attn_rel_b.weight", stack);
        gguf_f32(&m, name, 2, 4);
        (void)snprintf(name, sizeof name, "%s.blk.0.ffn_norm.weight", stack);
        gguf_f32(&m, name, 4, 0);
        (void)snprintf(name, sizeof name, "%s.blk.0.ffn_up.weight", stack);
        gguf_f32(&m, name, 4, 3);
        (void)snprintf(name, sizeof name, "%s.blk.0.ffn_down.weight", stack);
        gguf_f32(&m, name, 3, 4);
        (void)snprintf(name, sizeof name, "%s.output_norm.weight", stack);
        gguf_f32(&m, name, 4, 0);
    }
    blob b = gguf_finish(&m);
    files_write(f, NAME, b.bytes, b.count);
    blob_free(&b);
}

/* Logits are scaled where the head is the embedding, even if the file has it twice. */
void test_t5(void **state) {
    static const struct {
        const char *skip, *says;
    } rows[] = {
        {"t5.decoder_start_token_id", "has no key \"decoder_start_token_id\""},
        {"t5.attention.relative_buckets_count",
         "has no key \"t5.attention.relative_buckets_count\""},
        {"dec.blk.0.cross_attn_k.weight", "no tensor \"dec.blk.0.cross_attn_k.weight\""},
        {"enc.blk.0.attn_rel_b.weight", "no tensor \"enc.blk.0.attn_rel_b.weight\""},
    };
    static const uint32_t few[] = {2, 5, 1};
    float logits[3][3 * 7];
    char path[160];
    iso_error error;
    files f;
    files_make(&f);
    files_path(&f, NAME, path, sizeof path);
    for (int heads = 0; heads < 3; heads++) {
        write_t5(&f, NULL, heads);
        iso_model *model = load(path);
        assert_int_equal(iso_logits_f32(logits[heads], model, few, 3, few, 3, 0, NULL, &error),
                         ISOBIT_OK);
        iso_model_free(model);
    }
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): bits are meant */
    assert_int_equal(memcmp(logits[0], logits[1], sizeof *logits), 0);
    for (size_t i = 0; i < 3 * 7; i++) /* 1 / sqrt(4), but for the last token */
        assert_true((2 * logits[0][i] == logits[2][i]) == (i % 7 != 6));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_t5(&f, rows[i].skip, 0);
        assert_int_equal(load_from(path, 0, &error), ISOBIT_E_MISSING);
        if (!strstr(error.message, rows[i].says))
            fail_msg("%s: %s", rows[i].skip, error.message);
    }
    remove_all(&f);
    (void)state;
}

/* ------------------------------------------------------------------------------- configuration,
 * sentences, text */

/* The configuration of a file with one value of 4 bytes changed. */
static model_config config_of(const char *name, const char *key, const char *bytes) {
    model_gguf gguf;
    model_checkpoint checkpoint;
    model_config config;
    model_arena arena = {0};
    iso_error error = {0};
    assert_int_equal(
        model_gguf_open(&gguf, &checkpoint, DATA "/gguf", name, GGUF_MAX_BYTES, &error), ISOBIT_OK);
    gguf_value *value = (gguf_value *)(uintptr_t)model_gguf_find(&gguf, key);
    assert_non_null(value);
    value->data = bytes;
    assert_int_equal(model_gguf_config(&gguf, &checkpoint, &config, &arena), ISOBIT_OK);
    model_arena_free(&arena);
    model_checkpoint_close(&checkpoint);
    return config;
}

void test_config(void **state) {
    static const char many[4] = {0, 0, 1, 0}, two[4] = {0, 0, 0, 0x40};
    /* What config.json would have as defaults and such files do not have is not there. */
    model_config c = config_of("qwen2.gguf", "qwen2.context_length", many);
    assert_int_equal(c.max_positions, 65536);
    assert_int_equal(c.window, 0);
    c = config_of("longrope.gguf", "llama.rope.scaling.attn_factor", two);
    assert_true(c.rope.scaling == 2);
    assert_int_equal(c.max_positions, 40);
    c = config_of("yarn.gguf", "llama.rope.scaling.yarn_attn_factor", two);
    assert_true(c.rope.scaling == 2);
    (void)state;
}

/* gemma3.gguf with another window: 0 is none, and then no layer has a base of its own. */
void test_gemma3(void **state) {
    static const char key[] = "gemma3.attention.sliding_window";
    static const struct {
        unsigned char window;
        const char *changes;
    } rows[] = {{0, "{" GEMMA_SCALE ",\"layer_types\":[\"full_attention\",\"full_attention\","
                    "\"full_attention\",\"full_attention\"]}"},
                {4, "{" GEMMA_SCALE ",\"sliding_window\":4}"}};
    static float got[LENGTH * MOST], expected[LENGTH * MOST];
    static const char sixty[4] = {62, 0, 0, 0}, many[4] = {46, 0, 0, 0};
    char path[160];
    files f;
    files_make(&f);
    files_path(&f, NAME, path, sizeof path);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        blob all = read_file(DATA "/gguf", "gemma3.gguf");
        size_t at = 0; /* the key with its end, and the type of a number of 4 bytes */
        while (memcmp(all.bytes + at, key, sizeof key - 1) != 0 ||
               all.bytes[at + sizeof key - 1] != GGUF_U32)
            at++;
        all.bytes[at + sizeof key - 1 + 4] = rows[i].window;
        files_write(&f, NAME, all.bytes, all.count);
        numbers_of(path, got, LENGTH);
        numbers_as(DATA "/models/gemma3-bf16", rows[i].changes, expected, LENGTH);
        assert_memory_equal(got, expected, sizeof got);
        blob_free(&all);
    }
    remove_all(&f);
    /* The largest ones divide by another width. */
    assert_true(config_of("gemma3.gguf", "gemma3.block_count", sixty).query_scalar == 32 / 4);
    assert_true(config_of("gemma2.gguf", "gemma2.block_count", many).query_scalar == 32 / 4);
    assert_true(config_of("gemma2.gguf", "gemma2.block_count", sixty).query_scalar == 0);
    (void)state;
}

/* Vectors of sentences with the pooling of that number, or (0) as the file or folder says. */
static iso_status sentence(const char *path, iso_pooling pooling, float *y, iso_error *error) {
    iso_model *model = load(path);
    const size_t length = LENGTH;
    const iso_sentence_options how = {.size = sizeof how, .pooling = pooling};
    memset(y, 0, MOST * sizeof *y);
    const iso_status status = iso_sentence_embed_f32(y, model, ids, &length, 1, &how, NULL, error);
    iso_model_free(model);
    return status;
}

/* bert.gguf with one more number; another value keeps what follows aligned. */
static void write_bert(const files *f, const char *key, uint32_t number) {
    char piece[4096];
    blob all = {0};
    gguf_maker m = {0};
    FILE *in = fopen(DATA "/gguf/bert.gguf", "rb");
    assert_non_null(in);
    for (size_t n; (n = fread(piece, 1, sizeof piece, in));)
        blob_add(&all, piece, n);
    (void)fclose(in);
    gguf_u32(&m, key, number);
    char rest[32] = {0};
    memset(rest, 'x', 31 - (m.values.count + 21 + 31) % 32);
    gguf_text(&m, "a", rest);
    assert_int_equal(m.values.count % 32, 0);
    all.bytes[16] = (unsigned char)(all.bytes[16] + 2);
    blob b = {0};
    blob_add(&b, all.bytes, 24);
    blob_add(&b, m.values.bytes, m.values.count);
    blob_add(&b, all.bytes + 24, all.count - 24);
    files_write(f, NAME, b.bytes, b.count);
    blob_free(&b);
    blob_free(&all);
    blob_free(&m.values);
}

void test_sentences(void **state) {
    static const char folder[] = DATA "/models/bert";
    float got[MOST], expected[MOST];
    char path[160];
    iso_error error = {0};
    files f;
    files_make(&f);
    files_path(&f, NAME, path, sizeof path);
    assert_int_equal(sentence(folder, ISOBIT_POOLING_DEFAULT, expected, &error), ISOBIT_OK);
    assert_int_equal(sentence(DATA "/gguf/bert.gguf", ISOBIT_POOLING_DEFAULT, got, &error),
                     ISOBIT_OK);
    assert_memory_equal(got, expected, sizeof got);
    for (uint32_t type = 1; type <= 2; type++) {
        write_bert(&f, "bert.pooling_type", type);
        assert_int_equal(sentence(folder, type == 1 ? ISOBIT_POOLING_MEAN : ISOBIT_POOLING_CLS,
                                  expected, &error),
                         ISOBIT_OK);
        assert_int_equal(sentence(path, ISOBIT_POOLING_DEFAULT, got, &error), ISOBIT_OK);
        assert_memory_equal(got, expected, sizeof got);
    }
    write_bert(&f, "bert.pooling_type", 3);
    assert_int_equal(sentence(path, ISOBIT_POOLING_DEFAULT, got, &error), ISOBIT_E_UNSUPPORTED);
    assert_non_null(strstr(error.message, "pooling of the type 3"));
    /* Nothing gives BERT a width of heads; a key may say it all the same. */
    iso_model *model = load(DATA "/gguf/bert.gguf");
    const iso_model_info *info = iso_model_get_info(model);
    const uint32_t width = (uint32_t)(info->d / info->encoder_heads);
    iso_model_free(model);
    write_bert(&f, "bert.attention.key_length", width);
    iso_model_free(load(path));
    write_bert(&f, "bert.attention.key_length", width + 1);
    assert_int_equal(load_from(path, 0, &error), ISOBIT_E_UNSUPPORTED);
    assert_non_null(
        strstr(error.message, "bert.attention.key_length\" is not the width of a head"));
    remove_all(&f);
    (void)state;
}

/* From text to text with one file. */
void test_text(void **state) {
    static const char path[] = DATA "/gguf/gpt2.gguf", text[] = "the band and the end.";
    iso_error error = {0};
    iso_model *model = load(path);
    iso_tokenizer *tokenizer = NULL;
    assert_int_equal(iso_tokenizer_load(&tokenizer, path, &error), ISOBIT_OK);
    assert_int_equal(iso_tokenizer_fits(tokenizer, model, &error), ISOBIT_OK);
    iso_tokenizer *larger = NULL;
    assert_int_equal(iso_tokenizer_load(&larger, DATA "/gguf/tokens-llama.gguf", &error),
                     ISOBIT_OK);
    assert_int_equal(iso_tokenizer_fits(larger, model, &error), ISOBIT_E_CONFIG);
    assert_non_null(strstr(error.message, "but the source vocabulary of the model has"));
    iso_tokenizer_free(larger);
    uint32_t tokens[40];
    size_t count = 0, length, sequences, needed;
    assert_int_equal(iso_tokenizer_encode(tokenizer, text, strlen(text), tokens, 40, &count,
                                          &length, 1, &sequences, &error),
                     ISOBIT_OK);
    /* "and" after a space is " a", "n", "d": that merge comes before the others. */
    static const uint32_t expected[] = {32, 29, 4, 38, 34, 16, 6, 33, 29, 7, 16, 6, 30};
    assert_int_equal(count, sizeof expected / sizeof *expected);
    assert_memory_equal(tokens, expected, sizeof expected);
    char back[64];
    assert_int_equal(iso_tokenizer_decode(tokenizer, tokens, count, back, sizeof back, &needed),
                     ISOBIT_OK);
    assert_string_equal(back, text);
    const iso_generate_options how = {.size = sizeof how, .max_new_tokens = 5};
    iso_generation *g = NULL;
    assert_int_equal(iso_generate(&g, model, tokens, &count, 1, &how, NULL, &error), ISOBIT_OK);
    assert_true(g->best->length > 0);
    iso_generation_free(g);
    iso_tokenizer_free(tokenizer);
    iso_model_free(model);
    (void)state;
}
