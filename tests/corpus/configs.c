/* SPDX-License-Identifier: MIT
 *
 * Rows of corpus.h: config.json, generation_config.json and tokenizers; the good model.
 */
#include "../corpus.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))

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

static void add(blob *b, const char *text) { blob_add(b, text, strlen(text)); }

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
