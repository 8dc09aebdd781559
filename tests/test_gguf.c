/* SPDX-License-Identifier: MIT
 *
 * GGUF files. Those that llama.cpp's conversion has made (tools/make_gguf.py) must give the bits of
 * the directories that they were made from; test_text does the same for tokens. Then each rule of
 * the reader is broken once, with the sentence that it must give, a good file is cut and flipped
 * bit by bit, and every allocation and every read fails once.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "gguf_files.h"

#include <isobit/model.h>

#include "gguf.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#define DATA ISOBIT_TEST_DATA
#define NAME "model.gguf"

/* ------------------------------------------------------------------------------------ faults */

/* Counted from 1: the allocation, or the read, that fails; 0: none. */
static struct { size_t count, failing; } memory, io;
static const char *growing; /* a file that is longer after the next read */

static void grow(void) {
    if (!growing)
        return;
    FILE *file = fopen(growing, "ab");
    growing = NULL;
    assert_non_null(file);
    assert_int_equal(fputc(0, file), 0);
    assert_int_equal(fclose(file), 0);
}

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes) {
    return ++memory.count == memory.failing ? NULL : __real_malloc(bytes);
}
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    return ++memory.count == memory.failing ? NULL : __real_aligned_alloc(alignment, bytes);
}

static int no_directory; /* errno of the next directory that is opened; 0: it is opened */

DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
DIR *__wrap_opendir(const char *path) {
    if (!no_directory)
        return __real_opendir(path);
    errno = no_directory;
    no_directory = 0;
    return NULL;
}

/* The names that 64-bit file offsets give it, and the plain one. */
#define WRAP(suffix)                                                                               \
    ssize_t __real_pread##suffix(int fd, void *to, size_t bytes, off_t offset);                    \
    ssize_t __wrap_pread##suffix(int fd, void *to, size_t bytes, off_t offset);                    \
    ssize_t __wrap_pread##suffix(int fd, void *to, size_t bytes, off_t offset) {                   \
        grow();                                                                                    \
        if (++io.count == io.failing) {                                                            \
            errno = EIO;                                                                           \
            return -1;                                                                             \
        }                                                                                          \
        return __real_pread##suffix(fd, to, bytes, offset);                                        \
    }
WRAP()
WRAP(64)

/* ------------------------------------------------------------------------------------- files */

static void remove_all(const files *f) {
    DIR *directory = opendir(f->directory);
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory));) {
        char path[400];
        (void)snprintf(path, sizeof path, "%s/%s", f->directory, entry->d_name);
        (void)unlink(path);
        (void)rmdir(path);
    }
    (void)closedir(directory);
    assert_int_equal(rmdir(f->directory), 0);
}

static iso_model *load(const char *path) {
    iso_error error = {0};
    iso_model *model = NULL;
    if (iso_model_load(&model, path, NULL, NULL, &error))
        fail_msg("%s: %s", path, error.message);
    return model;
}

static iso_status load_from(const char *path, int text, iso_error *error) {
    iso_model *model = NULL;
    iso_tokenizer *tokenizer = NULL;
    *error = (iso_error){0};
    const iso_status status = text ? iso_tokenizer_load(&tokenizer, path, error)
                                   : iso_model_load(&model, path, NULL, NULL, error);
    assert_int_equal(status != ISOBIT_OK, !model && !tokenizer);
    iso_model_free(model);
    iso_tokenizer_free(tokenizer);
    return status;
}

/* -------------------------------------------------------------------------------- same bits */

enum { LENGTH = 7, MOST = 64 };
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

static void test_same_bits(void **state) {
    static const struct {
        const char *path, *folder;
        size_t length;
    } pairs[] = {
        {DATA "/gguf/llama.gguf", DATA "/models/llama", LENGTH},
        {DATA "/gguf/yarn.gguf", DATA "/models/llama-yarn", LENGTH},
        {DATA "/gguf/longrope.gguf", DATA "/models/llama-longrope", LENGTH},
        {DATA "/gguf/qwen2.gguf", DATA "/models/qwen2-f16", LENGTH},
        {DATA "/gguf/qwen3.gguf", DATA "/models/qwen3-bf16", LENGTH},
        {DATA "/gguf/gpt2.gguf", DATA "/models/gpt2", LENGTH},
        {DATA "/gguf/bert.gguf", DATA "/models/bert", LENGTH},
        {DATA "/gguf/t5.gguf", DATA "/models/t5", LENGTH},
        {DATA "/gguf/flan-t5.gguf", DATA "/models/flan-t5-bf16", LENGTH},
        {DATA "/gguf/umt5.gguf", DATA "/models/umt5", LENGTH},
        /* The largest distance of that folder is not the one of all files; it is not reached. */
        {DATA "/gguf/t5encoder.gguf", DATA "/models/t5-encoder-bf16", 2},
    };
    static float got[LENGTH * MOST], expected[LENGTH * MOST];
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        numbers_of(pairs[i].path, got, pairs[i].length);
        numbers_of(pairs[i].folder, expected, pairs[i].length);
        /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): bits are meant */
        if (memcmp(got, expected, sizeof got) != 0)
            fail_msg("%s has other bits", pairs[i].path);
        same_info(pairs[i].path, pairs[i].folder);
    }
    (void)state;
}

/* The scaling of Llama 3 is there as divisors, which the conversion has rounded to floats. */
static void test_llama3(void **state) {
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

static void add_matrix(gguf_maker *m, const char *name, uint64_t k, uint64_t n) {
    gguf_tensor(m, name, 0, n ? 2 : 1, (const uint64_t[]){k, n}, (size_t)(4 * k * (n ? n : 1)));
}

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
    add_matrix(&m, "token_embd.weight", 4, 7);
    if (heads) {
        add_matrix(&m, "output.weight", 4, 7);
        m.data.bytes[m.data.count - 1] ^= heads > 1;
    }
    for (int decoder = 0; decoder < 2; decoder++) {
        const char *stack = decoder ? "dec" : "enc";
        for (int cross = 0; cross <= decoder; cross++) {
            const char *kind = cross ? "cross_" : "";
            for (size_t i = 0; i < 4; i++) {
                (void)snprintf(name, sizeof name, "%s.blk.0.%s%s.weight", stack, kind, parts[i]);
                add_matrix(&m, name, 4, 4);
            }
            (void)snprintf(name, sizeof name, "%s.blk.0.%sattn_norm.weight", stack, kind);
            add_matrix(&m, name, 4, 0);
        }
        (void)snprintf(name, sizeof name, "%s.blk.0.attn_rel_b.weight", stack);
        add_matrix(&m, name, 2, 4);
        (void)snprintf(name, sizeof name, "%s.blk.0.ffn_norm.weight", stack);
        add_matrix(&m, name, 4, 0);
        (void)snprintf(name, sizeof name, "%s.blk.0.ffn_up.weight", stack);
        add_matrix(&m, name, 4, 3);
        (void)snprintf(name, sizeof name, "%s.blk.0.ffn_down.weight", stack);
        add_matrix(&m, name, 3, 4);
        (void)snprintf(name, sizeof name, "%s.output_norm.weight", stack);
        add_matrix(&m, name, 4, 0);
    }
    blob b = gguf_finish(&m);
    files_write(f, NAME, b.bytes, b.count);
    blob_free(&b);
}

/* Logits are scaled where the head is the embedding, even if the file has it twice. */
static void test_t5(void **state) {
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

static void test_config(void **state) {
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

static void test_sentences(void **state) {
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
static void test_text(void **state) {
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

/* ----------------------------------------------------------------------------- SentencePiece */

/* <unk> <s> </s>, 256 bytes, then: */
enum { BAR = 259, A, B, AB, BAR_A, PAD, LOUD, UNUSED_BA, PIECES };
#define K(name) "tokenizer.ggml." name
#define U81 "\xe2\x96\x81"
/* -1, -1.125 ...: the lower, the larger x is. */
#define SCORE(x) (0xbf800000u + ((uint32_t)(x) << 20))

/* A vocabulary of pieces with one thing changed, and what "ab" becomes, or another text. */
typedef struct piece_row {
    const char *name;
    iso_status status;
    const char *says; /* or the text */
    const char *skip;
    void (*add)(gguf_maker *m);
    size_t id, count;  /* the token that is changed; so many tokens, or (0) all */
    const char *token; /* NULL: no token is changed */
    uint32_t type, score;
    size_t length;
    uint32_t ids[12];
} piece_row;

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

static void no_prefix(gguf_maker *m) { gguf_number(m, K("add_space_prefix"), GGUF_BOOL, 0, 1); }
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
static void unk_text(gguf_maker *m) { gguf_text(m, K("unknown_token_id"), "0"); }
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

static void check_row(const piece_row *row, const char *path, iso_status status,
                      const iso_error *error, const iso_tokenizer *t) {
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

static void test_pieces(void **state) {
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
static void test_equal_scores(void **state) {
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
static void test_many_pairs(void **state) {
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

/* ---------------------------------------------------------------------- Unigram and WordPiece */

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

static void test_words(void **state) {
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

/* --------------------------------------------------------------------------------- bad files */

static void test_rows(void **state) {
    files f;
    char path[160];
    files_make(&f);
    files_path(&f, NAME, path, sizeof path);
    for (size_t i = 0; i < gguf_row_count; i++) {
        const gguf_row *row = &gguf_rows[i];
        iso_error error;
        blob b = gguf_spoilt(row);
        files_write(&f, NAME, b.bytes, b.count);
        const iso_status status = load_from(path, row->text, &error);
        if (status != row->status || error.status != status || !strstr(error.message, row->says))
            fail_msg("%s: %d \"%s\" instead of %d \"%s\"", row->name, (int)status, error.message,
                     (int)row->status, row->says);
        if (status && !strstr(error.message, row->says[0] == '"' ? "model.gguf" : row->says))
            if (!strstr(error.message, "tensor "))
                fail_msg("%s: no file in \"%s\"", row->name, error.message);
        blob_free(&b);
    }
    remove_all(&f);
    (void)state;
}

/* A file of that path in memory: thousands of versions of it on a disk would take minutes. */
static int file_in_memory(const char *path) {
    char real[64];
    const int fd = memfd_create("gguf", 0);
    assert_true(fd >= 0);
    (void)snprintf(real, sizeof real, "/proc/self/fd/%d", fd);
    assert_int_equal(symlink(real, path), 0);
    return fd;
}

static void overwrite(int fd, const blob *b, size_t bytes) {
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    assert_int_equal(pwrite(fd, b->bytes, bytes, 0), bytes);
}

/* Any prefix, and any bit flipped: refused with a sentence, or as good as another file. */
static void test_mutations(void **state) {
    files f;
    char path[160];
    iso_error error;
    gguf_maker m = {0};
    gguf_good(&m);
    blob b = gguf_finish(&m);
    files_make(&f);
    files_path(&f, NAME, path, sizeof path);
    const int fd = file_in_memory(path);
    size_t before = 0; /* of the data */
    for (size_t n = 0; n < b.count; n++) {
        overwrite(fd, &b, n);
        if (load_from(path, 0, &error) != ISOBIT_E_TRUNCATED ||
            !strstr(error.message, "the file is too short for a GGUF file") != (n >= 24))
            fail_msg("%zu of %zu bytes: %s", n, b.count, error.message);
        before += strstr(error.message, "the file ends before the data of its tensors") != NULL;
    }
    assert_in_range(before, 1, 31);
    size_t good = 0;
    for (size_t bit = 0; bit < 8 * b.count; bit++) {
        b.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        overwrite(fd, &b, b.count);
        for (int text = 0; text < 2; text++) {
            const iso_status status = load_from(path, text, &error);
            good += !status;
            if (status == ISOBIT_E_INTERNAL || error.status != status ||
                (status && !error.message[0]))
                fail_msg("bit %zu: %d \"%s\"", bit, (int)status, error.message);
        }
        b.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    assert_true(good > 0);
    (void)close(fd);
    blob_free(&b);
    remove_all(&f);
    (void)state;
}

/* Cut everywhere within its only entry: a value, an array, a tensor. What is long enough for an
 * entry is read, what is not is not. */
static void test_cut_entries(void **state) {
    static const struct {
        const char *bytes;
        size_t count, least; /* of an entry of that kind */
        int tensor;
        iso_status whole;
    } rows[] = {
        {"\1\0\0\0\0\0\0\0x\0\0\0\0\7", 14, 14, 0, ISOBIT_E_MISSING},
        {"\3\0\0\0\0\0\0\0xyz\1\0\0\0\7", 16, 14, 0, ISOBIT_E_MISSING},
        {"\3\0\0\0\0\0\0\0xyz\11\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\7", 28, 14, 0, ISOBIT_E_MISSING},
        {"\1\0\0\0\0\0\0\0x\1\0\0\0\1\0\0\0\0\0\0\0\30\0\0\0\0\0\0\0\0\0\0\0", 33, 33, 1,
         ISOBIT_E_TRUNCATED},
        {"\3\0\0\0\0\0\0\0xyz\1\0\0\0\1\0\0\0\0\0\0\0\30\0\0\0\0\0\0\0\0\0\0\0", 35, 33, 1,
         ISOBIT_E_TRUNCATED},
    };
    files f;
    char path[160];
    files_make(&f);
    files_path(&f, NAME, path, sizeof path);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t n = 0; n <= rows[i].count; n++) {
            blob b = {0};
            iso_error error;
            blob_add(&b, "GGUF\3\0\0\0", 8);
            gguf_put(&b, (uint64_t)rows[i].tensor, 8);
            gguf_put(&b, (uint64_t)!rows[i].tensor, 8);
            blob_add(&b, rows[i].bytes, n);
            files_write(&f, NAME, b.bytes, b.count);
            const iso_status status = load_from(path, 0, &error);
            const char *says = n < rows[i].least   ? "the file is too short for what it counts"
                               : n < rows[i].count ? "goes beyond the end of the file"
                               : rows[i].tensor    ? "the file ends before the data of its tensors"
                                                   : "has no key \"general.architecture\"";
            if (status != (n < rows[i].count ? ISOBIT_E_TRUNCATED : rows[i].whole) ||
                !strstr(error.message, says))
                fail_msg("entry %zu, %zu bytes: %d \"%s\"", i, n, (int)status, error.message);
            blob_free(&b);
        }
    remove_all(&f);
    (void)state;
}

/* Before the data there may be more than is read at first, and not more than the limit. */
static void test_long_metadata(void **state) {
    static char text[3 << 20];
    files f;
    char path[160];
    iso_error error = {0};
    iso_model *model = NULL;
    gguf_maker m = {0};
    gguf_good(&m);
    memset(text, 'x', sizeof text - 1);
    gguf_text(&m, "a.long.text", text);
    blob b = gguf_finish(&m);
    files_make(&f);
    files_path(&f, NAME, path, sizeof path);
    files_write(&f, NAME, b.bytes, b.count);
    iso_model_free(load(path));
    iso_load_options options = {.size = sizeof options, .max_header_bytes = 2 << 20};
    assert_int_equal(iso_model_load(&model, path, &options, NULL, &error), ISOBIT_E_LIMIT);
    assert_non_null(strstr(error.message, "longer than max_header_bytes"));
    options.max_header_bytes = 30; /* less than its entries have at least */
    assert_int_equal(iso_model_load(&model, path, &options, NULL, &error), ISOBIT_E_LIMIT);
    assert_non_null(strstr(error.message, "longer than max_header_bytes"));
    options.max_header_bytes = 23;
    assert_int_equal(iso_model_load(&model, path, &options, NULL, &error), ISOBIT_E_LIMIT);
    assert_non_null(strstr(error.message, "max_header_bytes is too small"));
    /* The value lies beyond the end of a file that is longer than what was read of it. */
    b.bytes[b.count - 1] = 0;
    assert_int_equal(truncate(path, 2 << 20), 0);
    assert_int_equal(load_from(path, 0, &error), ISOBIT_E_TRUNCATED);
    blob_free(&b);
    remove_all(&f);
    (void)state;
}

/* ------------------------------------------------------------------------------------ places */

static void refused(const char *path, iso_status status, const char *says) {
    for (int text = 0; text < 2; text++) {
        iso_error error;
        if (load_from(path, text, &error) != status || !strstr(error.message, says))
            fail_msg("%s: \"%s\" instead of \"%s\"", path, error.message, says);
    }
}

static void accepted(const char *path) {
    for (int text = 0; text < 2; text++) {
        iso_error error;
        if (load_from(path, text, &error))
            fail_msg("%s: %s", path, error.message);
    }
}

static void test_places(void **state) {
    files f;
    char path[160], here[1024];
    iso_error error;
    gguf_maker m = {0};
    gguf_good(&m);
    blob b = gguf_finish(&m);
    files_make(&f);
    assert_int_equal(load_from(f.directory, 0, &error), ISOBIT_E_MISSING);
    assert_non_null(strstr(error.message, "there is no file config.json in"));
    files_path(&f, NAME, path, sizeof path);
    refused(path, ISOBIT_E_MISSING, "there is no file model.gguf in");
    no_directory = ENOMEM;
    assert_int_equal(load_from(f.directory, 0, &error), ISOBIT_E_NOMEM);
    assert_string_equal(error.message, "out of memory");
    no_directory = EACCES;
    assert_int_equal(load_from(f.directory, 0, &error), ISOBIT_E_MISSING);
    assert_non_null(strstr(error.message, "there is no file config.json in"));
    assert_int_equal(load_from("/no such directory", 0, &error), ISOBIT_E_MISSING);
    assert_non_null(strstr(error.message, "there is no file config.json in"));
    files_write(&f, NAME, b.bytes, b.count);
    files_text(&f, "README.md", "x");
    files_text(&f, ".gguf", "x"); /* only a suffix */
    accepted(path);
    accepted(f.directory);
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(f.directory), 0);
    accepted(NAME);
    accepted("./" NAME);
    accepted(".");
    assert_int_equal(chdir(here), 0);
    for (int text = 0; text < 2; text++) {
        growing = path;
        assert_int_equal(load_from(path, text, &error), ISOBIT_E_IO);
        assert_non_null(strstr(error.message, "the file changed while it was read"));
        files_write(&f, NAME, b.bytes, b.count);
    }
    /* Two of them: which one? */
    files_write(&f, "other.gguf", b.bytes, b.count);
    refused(f.directory, ISOBIT_E_CONFIG, "there is more than one .gguf file in");
    accepted(path);
    /* Files beside it that cannot be opened do not count as missing. */
    files_path(&f, "config.json", path, sizeof path);
    assert_int_equal(mkdir(path, 0777), 0);
    refused(f.directory, ISOBIT_E_IO, "config.json in");
    assert_int_equal(rmdir(path), 0);
    files_path(&f, NAME, path, sizeof path);
    /* A directory of another form goes first. */
    files_text(&f, "config.json", "{}");
    assert_int_equal(load_from(f.directory, 0, &error), ISOBIT_E_MISSING);
    assert_non_null(strstr(error.message, "config.json has no string \"model_type\""));
    accepted(path);
    /* A directory that is called like a file is one. */
    files_path(&f, "d.gguf", path, sizeof path);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(load_from(path, 0, &error), ISOBIT_E_MISSING);
    assert_non_null(strstr(error.message, "there is no file config.json in"));
    blob_free(&b);
    remove_all(&f);
    (void)state;
}

/* ------------------------------------------------------------------------------ the checkpoint */

/* Rows of pairs, in pieces of any length, against the definition. */
static void test_pairs(void **state) {
    enum { ROWS = 12, WIDTH = 6, ROW_BYTES = 6 };
    unsigned char stored[ROWS * ROW_BYTES], expected[ROWS * ROW_BYTES], got[ROWS * ROW_BYTES];
    files f;
    iso_error error = {0};
    for (size_t i = 0; i < sizeof stored; i++)
        stored[i] = (unsigned char)(i * 7 + 3);
    for (size_t row = 0; row < ROWS; row++) {
        const size_t head = row / WIDTH, at = row % WIDTH, half = at / (WIDTH / 2),
                     i = at % (WIDTH / 2);
        memcpy(expected + row * ROW_BYTES, stored + (head * WIDTH + 2 * i + half) * ROW_BYTES,
               ROW_BYTES);
    }
    files_make(&f);
    files_write(&f, NAME, stored, sizeof stored);
    model_checkpoint c = {.file.fd = -1};
    assert_int_equal(model_file_open(&c.file, f.directory, NAME, &error), ISOBIT_OK);
    const model_tensor t = {
        .rank = 2, .shape = {ROWS, 3}, .end = sizeof stored, .dtype = MODEL_F16, .paired = WIDTH};
    for (size_t from = 0; from < sizeof stored; from++)
        for (size_t n = 1; n <= sizeof stored - from; n++) {
            memset(got, 0, sizeof got);
            assert_int_equal(model_checkpoint_read(&c, &t, got, from, n, &error), ISOBIT_OK);
            assert_memory_equal(got, expected + from, n);
        }
    model_checkpoint_close(&c);
    remove_all(&f);
    (void)state;
}

/* -------------------------------------------------------------------------------------- faults */

static size_t open_files(void) {
    size_t count = 0;
    DIR *directory = opendir("/proc/self/fd");
    assert_non_null(directory);
    while (readdir(directory))
        count++;
    (void)closedir(directory);
    return count;
}

/* What a tokenizer makes of special tokens, of one of users and of other text. */
static iso_status special_text(const char *path, uint32_t *to, iso_error *error) {
    static const char text[] = "<s>a</s><unk>[LOUD]b<extra_id_0>";
    iso_tokenizer *t = NULL;
    size_t count, length, sequences;
    memset(to, 0, MOST * sizeof *to);
    iso_status status = iso_tokenizer_load(&t, path, error);
    if (!status)
        status = iso_tokenizer_encode(t, text, strlen(text), to, MOST, &count, &length, 1,
                                      &sequences, error);
    iso_tokenizer_free(t);
    return status;
}

/* Without memory for something a tokenizer is refused, or is as ever. */
static void fail_pieces(const char *path) {
    uint32_t expected[MOST], got[MOST];
    iso_error error = {0};
    size_t refusals = 0;
    assert_int_equal(special_text(path, expected, &error), ISOBIT_OK);
    for (memory.failing = 1, memory.count = 0;; memory.failing++, memory.count = 0) {
        const iso_status status = special_text(path, got, &error);
        if (memory.count < memory.failing)
            break;
        if (status ? status != ISOBIT_E_NOMEM : memcmp(got, expected, sizeof got) != 0)
            fail_msg("allocation %zu: %d (%s)", memory.failing, (int)status, error.message);
        refusals += status == ISOBIT_E_NOMEM;
    }
    memory.failing = 0;
    assert_true(refusals > 10);
}

static void test_faults(void **state) {
    files f;
    gguf_maker m = {0};
    gguf_good(&m);
    blob b = gguf_finish(&m);
    files_make(&f);
    files_write(&f, NAME, b.bytes, b.count);
    blob_free(&b);
    const char *const paths[] = {
        DATA "/gguf/llama.gguf",       DATA "/gguf/gpt2.gguf",      DATA "/gguf/longrope.gguf",
        DATA "/gguf/t5.gguf",          DATA "/gguf/gpt2.gguf",      DATA "/gguf/tokens-llama.gguf",
        DATA "/gguf/tokens-bert.gguf", DATA "/gguf/tokens-t5.gguf", f.directory};
    const size_t before = open_files();
    for (int i = 0; i < 9; i++) {
        const char *path = paths[i];
        const int text = i >= 4;
        iso_error error;
        for (memory.failing = 1, memory.count = 0;; memory.failing++, memory.count = 0) {
            const iso_status status = load_from(path, text, &error);
            if (memory.count < memory.failing) {
                assert_int_equal(status, ISOBIT_OK);
                break;
            }
            if (text && status == ISOBIT_OK)
                continue; /* tables that find tokens faster are done without */
            if (status != ISOBIT_E_NOMEM || !strstr(error.message, "out of memory"))
                fail_msg("allocation %zu: %d (%s)", memory.failing, (int)status, error.message);
        }
        memory.failing = 0;
        for (io.failing = 1, io.count = 0;; io.failing++, io.count = 0) {
            const iso_status status = load_from(path, text, &error);
            if (io.count < io.failing) {
                assert_int_equal(status, ISOBIT_OK);
                break;
            }
            if (status != ISOBIT_E_IO || !strstr(error.message, "failed (errno"))
                fail_msg("read %zu: %d (%s)", io.failing, (int)status, error.message);
        }
        io.failing = 0;
    }
    assert_int_equal(open_files(), before);
    char path[160];
    files_path(&f, NAME, path, sizeof path);
    m = (gguf_maker){0};
    make_pieces(&m, &piece_rows[0]);
    b = gguf_finish(&m);
    files_write(&f, NAME, b.bytes, b.count);
    blob_free(&b);
    fail_pieces(path);
    fail_pieces(DATA "/gguf/tokens-t5.gguf");
    remove_all(&f);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),          cmocka_unit_test(test_cut_entries),
        cmocka_unit_test(test_pieces),        cmocka_unit_test(test_many_pairs),
        cmocka_unit_test(test_equal_scores),  cmocka_unit_test(test_words),
        cmocka_unit_test(test_long_metadata), cmocka_unit_test(test_places),
        cmocka_unit_test(test_config),        cmocka_unit_test(test_t5),
        cmocka_unit_test(test_pairs),         cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_llama3),        cmocka_unit_test(test_sentences),
        cmocka_unit_test(test_text),          cmocka_unit_test(test_faults),
        cmocka_unit_test(test_mutations),
    };
    json_set_alloc_funcs(__wrap_malloc, free);
    return cmocka_run_group_tests_name("gguf", tests, NULL, NULL);
}
