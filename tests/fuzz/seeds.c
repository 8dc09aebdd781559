/* SPDX-License-Identifier: MIT
 *
 * Writes the seeds of the fuzz targets: the corpus of malformed files, good files, and calls of
 * the operations.
 *
 *   fuzz_seeds DIRECTORY     makes DIRECTORY/<target>/<number>
 */
#include "fuzz.h"
#include "bin_files.h"
#include "corpus.h"
#include "fuzz_base.h"
#include "gguf_files.h"
#include "record_corpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *root;
static char folder[1024];
static unsigned number;

static void target(const char *name) {
    (void)snprintf(folder, sizeof folder, "%s/%s", root, name);
    (void)mkdir(folder, 0777);
    number = 0;
}

static void seed(blob *b) {
    char path[1100];
    (void)snprintf(path, sizeof path, "%s/%04u", folder, number++);
    FILE *file = fopen(path, "wb");
    if (!file || (b->count && fwrite(b->bytes, 1, b->count, file) != b->count) ||
        fclose(file) != 0) {
        (void)fprintf(stderr, "cannot write %s\n", path);
        exit(1);
    }
    blob_free(b);
}

static void add(blob *b, const char *text) { blob_add(b, text, strlen(text)); }

static void split(blob *b) {
    const unsigned char byte = FUZZ_SPLIT;
    blob_add(b, &byte, 1);
}

/* The longest rows are of no use to a fuzzer. */
enum { LONGEST = 4096 };

static void safetensors(void) {
    blob b = {0};
    const fuzz_base *base = fuzz_base_model(0);
    target("fuzz_safetensors");
    blob_add(&b, base->bytes + base->config_bytes, base->weights_bytes);
    seed(&b);
    for (size_t i = 0; i < corpus_header_count; i++) {
        const corpus_header *row = &corpus_headers[i];
        blob text = row->build ? row->build() : (blob){0};
        if (!row->build)
            add(&text, row->text);
        b = blob_file((char *)text.bytes, text.count, row->data_bytes);
        if (b.count <= LONGEST + 64)
            seed(&b);
        blob_free(&b);
        blob_free(&text);
    }
    for (size_t i = 0; i < corpus_file_count; i++) {
        blob_add(&b, corpus_files[i].start,
                 corpus_files[i].bytes < 24 ? corpus_files[i].bytes : 24);
        seed(&b);
    }
}

static void one_byte(blob *b, unsigned char byte) { blob_add(b, &byte, 1); }

/* Files of torch.save, their pickles alone, and small shards. */
static void bin(void) {
    static const char index[] = "{\"weight_map\":{\"x\":\"a\",\"z\":\"b\"}}",
                      shard[] = "{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
                      other[] = "{\"z\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}";
    blob b = {0};
    target("fuzz_bin");
    for (size_t i = 0; i < bin_pickle_count; i++)
        for (unsigned char form = 1; form <= 2; form++) {
            one_byte(&b, form);
            blob_add(&b, bin_pickles[i].text, bin_pickles[i].bytes);
            seed(&b);
        }
    one_byte(&b, 2);
    blob_add(&b, bin_good_pair.data, bin_good_pair.bytes);
    seed(&b);
    one_byte(&b, 1);
    for (int i = 0; i <= 1024; i++) /* so many values that the stack has just doubled */
        one_byte(&b, '}');
    seed(&b);
    for (size_t i = 0; i < bin_zip_count + bin_legacy_count; i++) {
        blob file = i < bin_zip_count ? bin_zip_spoilt(&bin_zips[i])
                                      : bin_legacy_spoilt(&bin_legacies[i - bin_zip_count]);
        one_byte(&b, 0);
        blob_add(&b, file.bytes, file.count);
        blob_free(&file);
        seed(&b);
    }
    for (int i = 0; i < 2; i++) {
        blob first = blob_file(shard, sizeof shard - 1, 8),
             second =
                 i ? blob_file(shard, sizeof shard - 1, 8) : blob_file(other, sizeof other - 1, 8);
        one_byte(&b, 3);
        add(&b, index);
        split(&b);
        blob_add(&b, first.bytes, first.count);
        split(&b);
        blob_add(&b, second.bytes, second.count);
        blob_free(&first);
        blob_free(&second);
        seed(&b);
    }
}

/* A file of the tests' tokenizers, which must be there. */
static size_t read_text(const char *name, unsigned char *bytes, size_t room) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/text/%s", ISOBIT_TEST_DATA, name);
    FILE *file = fopen(path, "rb");
    const size_t count = file ? fread(bytes, 1, room, file) : 0;
    if (!count || count == room || fclose(file) != 0) {
        (void)fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    return count;
}

enum { ROOM = 1 << 15 };

/* Files that are good, and that break one rule; the long name is of no use to a fuzzer. */
static void gguf(void) {
    target("fuzz_gguf");
    const gguf_row *row;
    for (size_t i = 0; (row = gguf_row_at(i)); i++) {
        blob b = gguf_spoilt(row);
        if (b.count <= LONGEST)
            seed(&b);
        blob_free(&b);
    }
    static const char *const whole[] = {"../gguf/tokens-llama.gguf", "../gguf/qwen2-q4_0.gguf",
                                        "../gguf/llama-q8_0.gguf"};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        static unsigned char bytes[ROOM];
        blob b = {0};
        blob_add(&b, bytes, read_text(whole[i], bytes, sizeof bytes));
        seed(&b);
    }
}

static void config(void) {
    static const char *const other[] = {
        "{\"model_type\":\"bert\",\"vocab_size\":6}",
        "{\"model_type\":\"gpt2\"}",
        "{\"model_type\":\"gpt2\",\"quantization_config\":{\"quant_method\":\"compressed-tensors\","
        "\"format\":\"int-quantized\",\"config_groups\":{\"group_0\":{\"input_activations\":{"
        "\"num_bits\":8,\"type\":\"int\",\"symmetric\":true,\"strategy\":\"token\",\"dynamic\":"
        "true},"
        "\"weights\":{\"num_bits\":8,\"type\":\"int\",\"symmetric\":true,\"strategy\":\"channel\"}}"
        "}}}",
        "{\"model_type\":\"t5\",\"d_kv\":3,\"num_heads\":5,\"num_decoder_layers\":1,"
        "\"relative_attention_num_buckets\":8,\"relative_attention_max_distance\":20,"
        "\"feed_forward_proj\":\"gated-gelu\",\"tie_word_embeddings\":false}",
        "{\"model_type\":\"llama\",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4,"
        "\"original_max_position_embeddings\":512,\"beta_fast\":8,\"beta_slow\":2,\"mscale\":1,"
        "\"mscale_all_dim\":0.5,\"truncate\":false}}",
        "{\"model_type\":\"qwen2\",\"num_hidden_layers\":2,\"use_sliding_window\":true,"
        "\"sliding_window\":9,\"max_window_layers\":1,\"layer_types\":[\"full_attention\","
        "\"sliding_attention\"]}",
        "{\"model_type\":\"t5\",\"architectures\":[\"T5EncoderModel\"],\"num_layers\":2}",
        "{\"model_type\":\"umt5\",\"is_encoder_decoder\":false}",
        "{\"model_type\":\"mistral\",\"sliding_window\":null}",
        "{\"model_type\":\"gemma2\",\"num_hidden_layers\":3,\"attn_logit_softcapping\":null,"
        "\"final_logit_softcapping\":6.5,\"query_pre_attn_scalar\":9}",
        "{\"model_type\":\"gemma3_text\",\"num_hidden_layers\":3,\"sliding_window\":9,"
        "\"sliding_window_pattern\":2,\"rope_local_base_freq\":50,\"rope_parameters\":{"
        "\"full_attention\":{\"rope_type\":\"linear\",\"factor\":8,\"rope_theta\":99},"
        "\"sliding_attention\":{\"rope_type\":\"default\",\"rope_theta\":7}}}",
        "{\"model_type\":\"gemma3\",\"eos_token_id\":[1,2],\"text_config\":{\"model_type\":"
        "\"gemma3_text\",\"num_hidden_layers\":2,\"layer_types\":[\"full_attention\","
        "\"sliding_attention\"]},\"vision_config\":{}}",
        "{\"model_type\":\"llama\",\"hidden_size\":8,\"num_attention_heads\":2,"
        "\"original_max_position_embeddings\":9,\"rope_parameters\":{\"type\":\"longrope\","
        "\"attention_factor\":1.5,\"short_factor\":[1,2],\"long_factor\":[3,4.5]}}"};
    static const char *const sentence[] = {
        "{\"model_type\":\"t5\"}", "{}",
        "[{\"type\":\"sentence_transformers.models.Transformer\",\"path\":\"\"},"
        "{\"type\":\"sentence_transformers.models.Pooling\",\"path\":\"1_Pooling\"},"
        "{\"type\":\"sentence_transformers.models.Dense\",\"path\":\"2_Dense\"},"
        "{\"type\":\"sentence_transformers.models.Dense\",\"path\":\"2_Dense\"},"
        "{\"type\":\"sentence_transformers.models.Normalize\",\"path\":\"3_Normalize\"}]",
        "{\"pooling_mode\":[\"mean\"],\"pooling_mode_cls_token\":true}",
        "{\"in_features\":512,\"out_features\":512,\"bias\":false,\"use_residual\":false,"
        "\"activation_function\":\"torch.nn.modules.activation.Tanh\","
        "\"module_input_name\":\"sentence_embedding\"}"};
    target("fuzz_config");
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        blob b = {0};
        add(&b, other[i]);
        seed(&b);
    }
    blob whole = {0};
    for (size_t i = 0; i < sizeof sentence / sizeof *sentence; i++) {
        if (i)
            split(&whole);
        add(&whole, sentence[i]);
    }
    seed(&whole);
    for (size_t i = 0; i <= corpus_config_count; i++) {
        blob b = {0};
        char *text = corpus_config_text(i ? &corpus_configs[i - 1] : NULL);
        add(&b, text);
        free(text);
        seed(&b);
    }
    for (size_t i = 0; i < corpus_generation_config_count; i++) {
        blob b = {0};
        char *text = corpus_config_text(NULL);
        add(&b, text);
        free(text);
        split(&b);
        add(&b, corpus_generation_configs[i].text);
        seed(&b);
    }
}

static void tokenizer(void) {
    static const char text[] = "ab\xc3\xa9 b-A, \xe2\x80\x99 \xe2\x80\x93 <unk>";
    target("fuzz_tokenizer");
    for (size_t i = 0; i <= corpus_tokenizer_count; i++) {
        const corpus_text *row = i ? &corpus_tokenizers[i - 1] : NULL;
        blob b = {0};
        add(&b, row && row->text ? row->text : corpus_good_tokenizer);
        split(&b);
        add(&b, row && row->vocabulary ? row->vocabulary : corpus_good_vocabulary);
        split(&b);
        add(&b, text);
        seed(&b);
    }
}

static const char odd_text[] = "The \xef\xac\x81rst fox\t>>fra<< \xf0\x9f\xa6\x8a e\xcc\x81";

/* Small tokenizers of each kind, and texts that meet what they have. */
#define BPE                                                                                        \
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"\u00c3\":3,\"\u00a9\":4,"   \
    "\"\u0120\":5,\"\u0120a\":6},\"merges\":[\"a b\",[\"\u0120\",\"a\"]]}"
#define WORDPIECE                                                                                  \
    "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"a\":1,\"##b\":2,"  \
    "\"'\":3}}"
#define BYTE_LEVEL "\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"decoder\":{\"type\":\"ByteLevel\"}"
#define BERT                                                                                       \
    "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"decoder\":{\"type\":\"WordPiece\"}"
static const char added[] =
    ",\"added_tokens\":[{\"content\":\"<s>\",\"id\":9,\"special\":true,\"lstrip\":true},"
    "{\"content\":\"b\",\"id\":1,\"single_word\":true,\"rstrip\":true}]";
static const char qwen2[] =
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
    "\"pattern\":"
    "{\"Regex\":\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}"
    "|"
    " ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"},"
    "\"behavior\":\"Isolated\"},{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
    "\"use_regex\":false}]},\"decoder\":{\"type\":\"ByteLevel\"}";
static const char *const heads[] = {"{" BPE "," BYTE_LEVEL, "{" WORDPIECE "," BERT, "{" BPE ","};
static const char some_text[] = "ab aB\xc3\xa9  b' <s>\t\xcc\x81\xc4\xb0\xe4\xb8\xad'S 12\r\n x";

/* Of parts that are put together in several ways. */
static void assembled(void) {
    static const char *const steps[] = {"NFC", "NFKD", "StripAccents", "Lowercase",
                                        "BertNormalizer"};
    for (int i = 0; i < 12; i++) {
        blob b = {0};
        char step[80];
        (void)snprintf(step, sizeof step, ",\"normalizer\":{\"type\":\"%s\"}", steps[i % 5]);
        add(&b, heads[i % 3]);
        add(&b, i % 3 == 2 ? qwen2 : "");
        add(&b, i & 1 ? added : "");
        add(&b, i & 2 ? step : "");
        add(&b, "}");
        split(&b);
        add(&b, some_text);
        seed(&b);
    }
}

static void of_folders(void) {
    blob b = {0};
    static const char *const jsons[] = {"nllb-json/tokenizer.json", "mbart50-json/tokenizer.json",
                                        "llama-json/tokenizer.json"};
    static unsigned char bytes[ROOM];
    for (int i = 0; i < 3; i++) {
        const size_t count = read_text(jsons[i], bytes, sizeof bytes);
        blob_add(&b, bytes, count);
        split(&b);
        add(&b, odd_text);
        add(&b, " a  <mask> xsl_SI </s>\xc3\xa9");
        seed(&b);
    }
}

/* Bytes for some characters, without words. */
static void spelt(void) {
    blob b = {0};
    static const char *const fallbacks[] = {
        "", ",\"unk_token\":\"?\"",
        ",\"unk_token\":\"?\",\"fuse_unk\":true,\"ignore_merges\":true"};
    for (int i = 0; i < 3; i++) {
        add(&b, "{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true");
        add(&b, fallbacks[i]);
        add(&b,
            ",\"vocab\":{\"?\":0,\"a\":1,\"b\":2,\"ab\":3,\"\xe2\x96\x81\":4,\"\xe2\x96\x81"
            "a\":5,\"<0xC3>\":6,\"<0xA9>\":7,\"<0x0A>\":8},\"merges\":[\"a b\",\"\xe2\x96\x81 "
            "a\"]},"
            "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\","
            "\"prepend\":\"\xe2\x96\x81\"},{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},"
            "\"content\":\"\xe2\x96\x81\"}]},\"decoder\":{\"type\":\"Sequence\",\"decoders\":["
            "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xe2\x96\x81\"},\"content\":\" \"},"
            "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \","
            "\"start\":1,\"stop\":0}]}}");
        split(&b);
        add(&b, some_text);
        seed(&b);
    }
}

/* What tokenizer_config.json says of tokens that tokenizer.json has, and of others. */
static void configured(void) {
    blob b = {0};
    static const char *const configs[] = {
        "{\"added_tokens_decoder\":{\"1\":{\"content\":\"b\",\"lstrip\":true,\"special\":true},"
        "\"30\":{\"content\":\"<x>\",\"single_word\":true,\"normalized\":false}}",
        "{\"added_tokens_decoder\":{\"x\":{\"content\":\"<q>\"}}",
        "{\"additional_special_tokens\":[\"<y>\",{\"content\":\"ab\",\"rstrip\":true}],"
        "\"bos_token\":{\"content\":\"<s>\"},\"eos_token\":\"a\",\"add_bos_token\":true"};
    for (int i = 0; i < 9; i++) {
        add(&b, heads[i % 3]);
        add(&b, i % 3 == 2 ? qwen2 : "");
        add(&b, i % 3 == 1 ? "" : added);
        add(&b, "}");
        split(&b);
        add(&b, some_text);
        split(&b);
        add(&b, configs[i / 3]);
        add(&b, ",\"clean_up_tokenization_spaces\":true,\"tokenizer_class\":\"");
        add(&b, i % 3 == 1 ? "BertTokenizerFast\"}" : "GPT2TokenizerFast\"}");
        seed(&b);
    }
}

static void pipeline(void) {
    target("fuzz_pipeline");
    assembled();
    of_folders();
    spelt();
    configured();
}

static void wordpiece(void) {
    blob b = {0};
    static const char *const vocabularies[] = {
        "[UNK]\n[CLS]\n[SEP]\na\n##b\n\xc3\xa9\n",
        "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]\r\nab\r\n##\xe4\xb8\xad\r\n##x",
        "[UNK]\na\na\n",
        "[CLS]\n[SEP]\n",
        "[UNK]\n\n##\n",
        ""};
    target("fuzz_wordpiece");
    for (size_t i = 0; i < sizeof vocabularies / sizeof *vocabularies; i++) {
        add(&b, vocabularies[i]);
        split(&b);
        add(&b, some_text);
        seed(&b);
    }
}

static void bpe(void) {
    blob b = {0};
    static const struct {
        const char *vocabulary, *merges;
    } pairs[] = {
#define WORDS "\"a\":0,\"b\":1,\"ab\":2,\"<s>\":3,\"</s>\":4"
        {"{" WORDS "}", "#version: 0.2\na b\n"},
        {"{" WORDS ",\"<unk>\":5,\"<pad>\":6,\"<mask>\":7,\"\u0120\":8,\"\u0120a\":9,"
         "\"\u00c3\":10,\"\u00a9\":11,\"\u00c3\u00a9\":12}",
         "\u0120 a\r\n\u00c3 \u00a9\r\n"},
        {"{" WORDS "}", "a b\na b\n"}, /* twice */
        {"{" WORDS "}", "a c\n"},      /* no token */
        {"{" WORDS "}", "ab\n"},
        {"{" WORDS "}", "a  b\n b\n"},
        {"{\"a\":0,\"b\":0}", ""},
        {"{\"a\":4294967296}", ""},
        {"[]", "\n"},
#undef WORDS
    };
    target("fuzz_bpe");
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        add(&b, pairs[i].vocabulary);
        split(&b);
        add(&b, pairs[i].merges);
        split(&b);
        add(&b, some_text);
        seed(&b);
    }
}

/* The files of the tiny Marian model, and each of them damaged in places. */
static void spm(void) {
    static unsigned char bytes[ROOM];
    target("fuzz_spm");
    for (int i = 0; i < 2; i++) {
        const size_t count =
            read_text(i ? "marian/target.spm" : "marian/source.spm", bytes, sizeof bytes);
        for (size_t k = 0; k <= 256; k++) {
            blob b = {0};
            const size_t at = k * 977 % count;
            const unsigned char was = bytes[at];
            if (k)
                bytes[at] ^= (unsigned char)(1u << k % 8);
            add(&b, odd_text);
            split(&b);
            blob_add(&b, bytes, k % 16 == 15 ? at : count);
            seed(&b);
            bytes[at] = was;
        }
    }
}

/* The same of families, and what may stand beside their files. */
static void family(void) {
    static const struct {
        const char *pieces, *vocabulary, *config, *map, *added;
    } rows[] = {
        {"nllb/sentencepiece.bpe.model", NULL,
         "{\"tokenizer_class\":\"NllbTokenizer\",\"src_lang\":\"a_b\",\"legacy_behaviour\":true}",
         "{\"additional_special_tokens\":[\"a_b\",\"c_d\"]}", "{\"a_b\":221,\"c_d\":222}"},
        {"nllb/sentencepiece.bpe.model", NULL,
         "{\"tokenizer_class\":\"NllbTokenizer\",\"src_lang\":\"a_b\",\"tgt_lang\":\"fra_Latn\","
         "\"added_tokens_decoder\":{\"300\":{\"content\":\"a_b\",\"special\":true,\"lstrip\":true,"
         "\"rstrip\":true}},\"clean_up_tokenization_spaces\":true}",
         "", ""},
        {"mbart/sentencepiece.bpe.model", NULL,
         "{\"tokenizer_class\":\"MBart50Tokenizer\",\"tgt_lang\":\"sl_SI\"}", "", ""},
        {"t5/spiece.model", NULL, "{\"tokenizer_class\":\"T5Tokenizer\",\"extra_ids\":3}", "",
         "{\"fox\":999}"},
        {"t5-bpe/spiece.model", NULL,
         "{\"tokenizer_class\":\"T5Tokenizer\",\"legacy\":false,\"extra_ids\":0}", "", ""},
        {"pegasus/spiece.model", NULL, "{\"tokenizer_class\":\"PegasusTokenizer\",\"offset\":5}",
         "{\"mask_token\":\"<m>\"}", ""},
        {"llama/tokenizer.model", NULL,
         "{\"tokenizer_class\":\"LlamaTokenizer\",\"add_eos_token\":true,\"pad_token\":{"
         "\"content\":"
         "\"fox\",\"normalized\":true,\"lstrip\":true}}",
         "{\"bos_token\":\"<unk>\"}", "{\"a_b\":420}"},
        {"llama/tokenizer.model", NULL,
         "{\"tokenizer_class\":\"LlamaTokenizer\",\"legacy\":false,\"added_tokens_decoder\":{\"1\":"
         "{"
         "\"content\":\"<bos>\",\"special\":true}},\"add_bos_token\":false}",
         "", ""},
        {"m2m_100/sentencepiece.bpe.model", "m2m_100/vocab.json",
         "{\"tokenizer_class\":\"M2M100Tokenizer\",\"src_lang\":\"de\",\"tgt_lang\":\"fr\"}", "",
         ""},
    };
    static unsigned char bytes[ROOM], vocabulary[ROOM];
    target("fuzz_family");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const size_t count = read_text(rows[i].pieces, bytes, sizeof bytes);
        const size_t ids = rows[i].vocabulary ? read_text(rows[i].vocabulary, vocabulary, ROOM) : 0;
        for (size_t k = 0; k <= 32; k++) {
            blob b = {0};
            const size_t at = k * 977 % count;
            const unsigned char was = bytes[at];
            if (k)
                bytes[at] ^= (unsigned char)(1u << k % 8);
            add(&b, rows[i].config);
            split(&b);
            add(&b, rows[i].map);
            split(&b);
            add(&b, rows[i].added);
            split(&b);
            blob_add(&b, vocabulary, ids);
            split(&b);
            add(&b, odd_text);
            add(&b, " a  <mask> x<extra_id_0>a_b </s>\xc3\xa9");
            split(&b);
            blob_add(&b, bytes, k % 16 == 15 ? at : count);
            seed(&b);
            bytes[at] = was;
        }
    }
}

static void good_model(int int8) {
    const fuzz_base *base = fuzz_base_model(int8);
    const size_t all = base->config_bytes + base->weights_bytes;
    blob b = {0};
    add(&b, "\1");
    blob_add(&b, base->bytes, base->config_bytes);
    split(&b);
    blob_add(&b, base->bytes + base->config_bytes, base->weights_bytes);
    seed(&b);
    blob_add(&b, int8 ? "\2" : "", 1); /* no patch */
    seed(&b);
    for (size_t i = 0; i < 64; i++) {
        const size_t offset = i * 977 % all;
        const unsigned char patch[] = {(unsigned char)(2 * int8), (unsigned char)offset,
                                       (unsigned char)(offset >> 8),
                                       (unsigned char)("0123456789{}[]\":,eE-. \\u\xff"[i % 26])};
        blob_add(&b, patch, sizeof patch);
        seed(&b);
    }
}

static void model(void) {
    target("fuzz_model");
    good_model(0);
    good_model(1);
}

static void ops(void) {
    uint64_t state = 1;
    target("fuzz_ops");
    for (unsigned i = 0; i < 480; i++) {
        blob b = {0};
        unsigned char bytes[40];
        for (size_t k = 0; k < sizeof bytes; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            bytes[k] = (unsigned char)(state >> 56);
        }
        bytes[0] = (unsigned char)(i % 24); /* the operation */
        blob_add(&b, bytes, sizeof bytes);
        seed(&b);
    }
}

static void record(void) {
    blob b = record_good();
    target("fuzz_record");
    seed(&b);
    for (size_t i = 0; i < record_row_count; i++) {
        b = record_spoilt(&record_rows[i]);
        seed(&b);
    }
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    root = argv[1];
    (void)mkdir(root, 0777);
    safetensors();
    bin();
    gguf();
    config();
    tokenizer();
    spm();
    family();
    pipeline();
    wordpiece();
    bpe();
    model();
    ops();
    record();
    return 0;
}
