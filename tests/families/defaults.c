/* SPDX-License-Identifier: MIT
 *
 * What a family has where config.json says nothing: the default values of its configuration class
 * in transformers.
 */
#include "test_families.h"

#include "config.h"

#define NO_ID MODEL_NO_ID

/* Where a class has no start, it is bos. RoBERTa's positions begin at 2. */
typedef struct defaults {
    const char *family;
    size_t d, encoder_layers, decoder_layers, heads, ffn, vocabulary, positions;
    iso_activation activation;
    double norm_eps;
    uint32_t pad, bos, eos, start;
    /* of what has them: heads of keys, their width, a window, the base of rotary embeddings */
    size_t key_heads, head_width, window;
    double theta;
    int tied;
    size_t types;
} defaults;

#define RELU ISOBIT_ACT_RELU
#define ERF ISOBIT_ACT_GELU_ERF
#define TANH ISOBIT_ACT_GELU_TANH
#define SILU ISOBIT_ACT_SILU
static const defaults rows[] = {
    {"marian", 1024, 12, 12, 16, 4096, 58101, 1024, ERF, 1e-5, 58100, NO_ID, 0, 58100, .tied = 1},
    {"bart", 1024, 12, 12, 16, 4096, 50265, 1024, ERF, 1e-5, 1, 0, 2, 2, .tied = 1},
    {"mbart", 1024, 12, 12, 16, 4096, 50265, 1024, ERF, 1e-5, 1, 0, 2, 0, .tied = 1}, /* bos */
    {"pegasus", 1024, 12, 12, 16, 4096, 50265, 1024, ERF, 1e-5, 0, NO_ID, 1, 0, .tied = 1},
    {"m2m_100", 1024, 12, 12, 16, 4096, 128112, 1024, RELU, 1e-5, 1, 0, 2, 2, .tied = 1},
    {"t5", 512, 6, 6, 8, 2048, 32128, 1 << 20, RELU, 1e-6, 0, NO_ID, 1, 0, .tied = 1},
    {"mt5", 512, 8, 8, 6, 1024, 250112, 1 << 20, TANH, 1e-6, 0, NO_ID, 1, 0, .head_width = 64},
    {"umt5", 512, 8, 8, 6, 1024, 250112, 1 << 20, TANH, 1e-6, 0, NO_ID, 1, 0, .head_width = 64,
     .tied = 1},
    {"bert", 768, 12, 0, 12, 3072, 30522, 512, ERF, 1e-12, 0, NO_ID, NO_ID, NO_ID, .tied = 1,
     .types = 2},
    {"roberta", 768, 12, 0, 12, 3072, 50265, 510, ERF, 1e-12, 1, 0, 2, NO_ID, .tied = 1,
     .types = 2},
    {"xlm-roberta", 768, 12, 0, 12, 3072, 30522, 510, ERF, 1e-12, 1, 0, 2, NO_ID, .tied = 1,
     .types = 2},
    {"camembert", 768, 12, 0, 12, 3072, 30522, 510, ERF, 1e-12, 1, 0, 2, NO_ID, .tied = 1,
     .types = 2},
    {"distilbert", 768, 6, 0, 12, 3072, 30522, 512, ERF, 1e-12, 0, NO_ID, NO_ID, NO_ID, .tied = 1},
    {"gpt2", 768, 0, 12, 12, 3072, 50257, 1024, TANH, 1e-5, NO_ID, 50256, 50256, NO_ID, .tied = 1},
    {"llama", 4096, 0, 32, 32, 11008, 32000, 2048, SILU, 1e-6, NO_ID, 1, 2, NO_ID, .theta = 1e4},
    {"mistral", 4096, 0, 32, 32, 14336, 32000, 131072, SILU, 1e-6, NO_ID, 1, 2, NO_ID, 8,
     .window = 4096, .theta = 1e4},
    {"qwen2", 4096, 0, 32, 32, 22016, 151936, 32768, SILU, 1e-6, NO_ID, NO_ID, NO_ID, NO_ID,
     .theta = 1e4},
    {"qwen3", 4096, 0, 32, 32, 22016, 151936, 32768, SILU, 1e-6, NO_ID, NO_ID, NO_ID, NO_ID, 32,
     128, .theta = 1e4},
    {"phi3", 3072, 0, 32, 32, 8192, 32064, 4096, SILU, 1e-5, 32000, 1, 32000, NO_ID, .theta = 1e4},
    {"gemma", 3072, 0, 28, 16, 24576, 256000, 8192, TANH, 1e-6, 0, 2, 1, NO_ID, 16, 256,
     .theta = 1e4, .tied = 1},
    {"gemma2", 2304, 0, 26, 8, 9216, 256000, 8192, TANH, 1e-6, 0, 2, 1, NO_ID, 4, 256, 4096,
     .theta = 1e4, .tied = 1},
    {"gemma3_text", 2304, 0, 26, 8, 9216, 262208, 131072, TANH, 1e-6, 0, 2, 1, NO_ID, 4, 256, 4096,
     .theta = 1e6, .tied = 1},
    {"opt", 768, 0, 12, 12, 3072, 50272, 2048, RELU, 1e-5, 1, 2, 2, NO_ID, .tied = 1},
};

static void same(const char *model, const char *what, size_t got, size_t wanted) {
    if (got != wanted)
        fail_msg("%s: %s is %zu, not %zu", model, what, got, wanted);
}

/* What config.json says alone. */
static iso_status try_config(model_config *c, model_arena *arena, const char *model,
                             const char *more, iso_error *error) {
    files f;
    char text[400];
    *error = (iso_error){0};
    files_make(&f);
    (void)snprintf(text, sizeof text, "{\"model_type\":\"%s\"%s}", model, more);
    files_text(&f, "config.json", text);
    const iso_status status = model_config_read(c, arena, f.directory, error);
    files_remove(&f);
    return status;
}

static void read_config(model_config *c, model_arena *arena, const char *model, const char *more) {
    iso_error error;
    if (try_config(c, arena, model, more, &error))
        fail_msg("%s: %s", model, error.message);
}

void test_defaults(void **state) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const defaults *w = &rows[i];
        model_config c;
        model_arena arena = {0};
        read_config(&c, &arena, w->family, "");
        same(w->family, "d", c.d, w->d);
        same(w->family, "encoder_layers", c.encoder_layers, w->encoder_layers);
        same(w->family, "decoder_layers", c.decoder_layers, w->decoder_layers);
        if (w->encoder_layers) {
            same(w->family, "encoder_heads", c.encoder_heads, w->heads);
            same(w->family, "encoder_ffn", c.encoder_ffn, w->ffn);
        }
        if (w->decoder_layers) {
            same(w->family, "decoder_heads", c.decoder_heads, w->heads);
            same(w->family, "decoder_ffn", c.decoder_ffn, w->ffn);
            same(w->family, "target_vocabulary", c.target_vocabulary, w->vocabulary);
        }
        same(w->family, "source_vocabulary", c.source_vocabulary, w->vocabulary);
        same(w->family, "max_positions", c.max_positions, w->positions);
        same(w->family, "activation", c.activation, w->activation);
        same(w->family, "norm_eps", c.norm_eps == w->norm_eps, 1);
        same(w->family, "pad", c.pad, w->pad);
        same(w->family, "bos", c.bos, w->bos);
        same(w->family, "eos", c.eos.count ? c.eos.ids[0] : NO_ID, w->eos);
        same(w->family, "start", c.start, w->start);
        same(w->family, "key_heads", c.key_heads ? c.key_heads : w->heads,
             w->key_heads ? w->key_heads : w->heads);
        same(w->family, "head_width", c.head_width ? c.head_width : c.d / w->heads,
             w->head_width ? w->head_width : w->d / w->heads);
        same(w->family, "window", c.window, w->window);
        same(w->family, "types", c.types, w->types);
        same(w->family, "rope_theta", c.rope_theta == w->theta, 1);
        same(w->family, "tie_logits", c.tie_logits != 0, (size_t)w->tied);
        model_arena_free(&arena);
    }
    model_config c;
    model_arena arena = {0};
    static const char *const qwen[] = {"qwen2", "qwen3"}; /* which have a window for the asking */
    for (size_t i = 0; i < 2; i++) {
        read_config(&c, &arena, qwen[i], ",\"use_sliding_window\":true,\"num_hidden_layers\":40");
        same(qwen[i], "window", c.window, 4096);
        same(qwen[i], "max_window_layers", c.window_from, 28);
    }
    read_config(&c, &arena, "gemma2", "");
    assert_true(c.attention_cap == 50 && c.logits_cap == 30 && c.query_scalar == 256);
    read_config(&c, &arena, "gemma3_text", "");
    assert_true(c.local_theta == 10000 && c.query_scalar == 256 && c.logits_cap == 0);
    read_config(&c, &arena, "bart", ",\"repetition_penalty\":1.5,\"length_penalty\":0.5");
    assert_true(c.search.repetition_penalty == 1.5f && c.search.length_penalty == 0.5f);
    /* The base model of "Attention Is All You Need". */
    read_config(
        &c, &arena, "isobit-transformer",
        ",\"vocab_size\":37000,\"pad_token_id\":0,\"eos_token_id\":1,\"decoder_start_token_id\":0");
    assert_true(c.d == 512 && c.encoder_layers == 6 && c.decoder_layers == 6);
    assert_true(c.encoder_heads == 8 && c.decoder_heads == 8 && c.activation == RELU);
    assert_true(c.encoder_ffn == 2048 && c.decoder_ffn == 2048 && c.max_positions == 512);
    model_arena_free(&arena);
    (void)state;
}

/* Numbers at the ends of what is allowed; NULL: allowed. */
void test_limits(void **state) {
    static const struct {
        const char *model, *more, *refused;
    } limits[] = {
        {"bert", ",\"max_position_embeddings\":1048576", NULL},
        {"bert", ",\"max_position_embeddings\":1048577", "a whole number from 1 to 1048576"},
        {"bert",
         ",\"hidden_size\":1,\"num_attention_heads\":1,\"num_hidden_layers\":1,"
         "\"intermediate_size\":1,\"vocab_size\":1,\"type_vocab_size\":1",
         NULL},
        {"bert", ",\"layer_norm_eps\":1e-30", NULL},
        {"opt", ",\"hidden_size\":1,\"num_attention_heads\":1,\"word_embed_proj_dim\":1", NULL},
        {"qwen2", ",\"use_sliding_window\":true,\"max_window_layers\":0", NULL},
        {"gemma3_text", ",\"sliding_window_pattern\":1", NULL},
        {"gemma3_text", ",\"query_pre_attn_scalar\":0.5", NULL},
        {"gemma3_text", ",\"rope_local_base_freq\":1.5", NULL},
        {"gemma3_text", ",\"rope_local_base_freq\":1", "\"rope_local_base_freq\" is 1"},
        {"gemma3_text",
         ",\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"default\"},"
         "\"sliding_attention\":{\"rope_theta\":1.5}}",
         NULL},
        {"gemma2", ",\"final_logit_softcapping\":0.5,\"attn_logit_softcapping\":0.5", NULL},
        {"llama", ",\"rope_scaling\":{\"type\":\"default\",\"rope_theta\":1}",
         "\"rope_theta\" is 1"},
        {"llama", ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"attention_factor\":0.5}",
         NULL},
        {"llama",
         ",\"head_dim\":4,\"rope_scaling\":{\"type\":\"longrope\",\"factor\":1,"
         "\"short_factor\":[1e-6,1e6],\"long_factor\":[1e6,1e-6]}",
         NULL},
        {"llama",
         ",\"head_dim\":4,\"rope_scaling\":{\"type\":\"longrope\",\"factor\":1,"
         "\"short_factor\":[1,1.1e6],\"long_factor\":[1,1]}",
         "a list of numbers from 1e-6 to 1e6"},
        {"llama",
         ",\"head_dim\":4,\"rope_scaling\":{\"type\":\"longrope\",\"factor\":1,"
         "\"short_factor\":[1,0.9e-6],\"long_factor\":[1,1]}",
         "a list of numbers from 1e-6 to 1e6"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        model_config c;
        model_arena arena = {0};
        iso_error error;
        const iso_status status = try_config(&c, &arena, limits[i].model, limits[i].more, &error);
        if (status != (limits[i].refused ? ISOBIT_E_CONFIG : ISOBIT_OK) ||
            (status && !strstr(error.message, limits[i].refused)))
            fail_msg("%s%s: status %d (%s)", limits[i].model, limits[i].more, (int)status,
                     error.message);
        model_arena_free(&arena);
    }
}
