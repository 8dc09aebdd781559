/* SPDX-License-Identifier: MIT
 *
 * The metadata of a GGUF file as the configuration of a model. An architecture is the row of a
 * family with the names that keys and tensors have in such files, so that config.c reads it as it
 * reads config.json. What would change a model and no key of ours stands for is refused by name.
 */
#define _POSIX_C_SOURCE 200809L
#include "gguf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------- architectures */

#define LAYER .self = {"attn_q", "attn_k", "attn_v", "attn_output"}, .fc2 = "ffn_down"
#define GATED                                                                                      \
    .layers = "blk.", LAYER, .self_norm = "attn_norm",                                             \
    .head_norm = {"attn_q_norm", "attn_k_norm"}, .gate = {"ffn_gate", "ffn_up"},                   \
    .ffn_norm = "ffn_norm", .final_norm = "output_norm"
static const model_names llama_names = {
    .prefix = "",
    .decoder = {GATED, .rope_divisors = "rope_freqs.weight"},
    .shared = "token_embd.weight",
    .head = "output.weight",
};
static const model_names gemma_names = {
    .prefix = "",
    .decoder = {GATED, .self_after = "post_attention_norm", .ffn_after = "post_ffw_norm"},
    .shared = "token_embd.weight",
    .head = "output.weight",
};
static const model_names gpt2_names = {
    .prefix = "",
    .decoder = {.layers = "blk.",
                .self = {"attn_qkv", NULL, NULL, "attn_output"},
                .self_norm = "attn_norm",
                .fc1 = "ffn_up",
                .fc2 = "ffn_down",
                .ffn_norm = "ffn_norm",
                .positions = "position_embd",
                .final_norm = "output_norm"},
    .shared = "token_embd.weight",
    .head = "output.weight",
};
/* These files leave out what is on top of the encoder. */
static const model_names bert_names = {
    .prefix = "",
    .encoder = {.layers = "blk.",
                LAYER,
                .self_norm = "attn_output_norm",
                .fc1 = "ffn_up",
                .ffn_norm = "layer_output_norm",
                .positions = "position_embd",
                .types = "token_types",
                .embedding_norm = "token_embd_norm"},
    .shared = "token_embd.weight",
    .head = "cls.predictions.decoder.weight",
    .head_bias = "cls.predictions.bias",
    .head_dense = "cls.predictions.transform.dense",
    .head_norm = "cls.predictions.transform.LayerNorm",
};

#define T5_LAYER                                                                                   \
    .self = {"attn_q", "attn_k", "attn_v", "attn_o"}, .self_norm = "attn_norm",                    \
    .relative = "attn_rel_b", .fc1 = "ffn_up", .gate = {"ffn_gate", "ffn_up"}, .fc2 = "ffn_down",  \
    .ffn_norm = "ffn_norm"
static const model_names t5_names = {
    .prefix = "",
    .encoder = {.layers = "enc.blk.", T5_LAYER, .final_norm = "enc.output_norm"},
    .decoder = {.layers = "dec.blk.",
                T5_LAYER,
                .cross = {"cross_attn_q", "cross_attn_k", "cross_attn_v", "cross_attn_o"},
                .cross_norm = "cross_attn_norm",
                .final_norm = "dec.output_norm"},
    .shared = "token_embd.weight",
    .head = "output.weight",
};

#define ACTIVATION "activation of the feed-forward layer"
#define ATTENTION_BIAS "bias of attention"
#define FFN_BIAS "bias of the feed-forward layer"
#define TYPES "tokenizer.ggml.token_type_count"
#define DECODER_KEYS(name)                                                                         \
    .d = name ".embedding_length", .decoder_layers = name ".block_count",                          \
    .decoder_heads = name ".attention.head_count", .decoder_ffn = name ".feed_forward_length",     \
    .source_vocabulary = name ".vocab_size", .max_positions = name ".context_length"
#define ROPE_KEYS(name)                                                                            \
    DECODER_KEYS(name),                                                                            \
        .norm_eps = name ".attention.layer_norm_rms_epsilon",                                      \
        .head_width = name ".attention.key_length", .key_heads = name ".attention.head_count_kv",  \
        .rope_theta = name ".rope.freq_base", .window = name ".attention.sliding_window"
static const model_keys llama_keys = {ROPE_KEYS("llama"), .attention_bias = ATTENTION_BIAS,
                                      .ffn_bias = FFN_BIAS};
static const model_keys qwen2_keys = {ROPE_KEYS("qwen2")};
static const model_keys qwen3_keys = {ROPE_KEYS("qwen3"), .attention_bias = ATTENTION_BIAS};
static const model_keys gemma_keys = {ROPE_KEYS("gemma")};
static const model_keys gemma2_keys = {ROPE_KEYS("gemma2"),
                                       .window_pattern = "gemma2.attention.sliding_window_pattern",
                                       .attention_cap = "gemma2.attn_logit_softcapping",
                                       .logits_cap = "gemma2.final_logit_softcapping"};
static const model_keys gemma3_keys = {
    ROPE_KEYS("gemma3"), .window_pattern = "gemma3.attention.sliding_window_pattern",
    .local_theta = "gemma3.rope.freq_base_swa", .logits_cap = "gemma3.final_logit_softcapping"};
static const model_keys gpt2_keys = {DECODER_KEYS("gpt2"),
                                     .norm_eps = "gpt2.attention.layer_norm_epsilon"};
static const model_keys bert_keys = {.d = "bert.embedding_length",
                                     .encoder_layers = "bert.block_count",
                                     .encoder_heads = "bert.attention.head_count",
                                     .encoder_ffn = "bert.feed_forward_length",
                                     .source_vocabulary = "bert.vocab_size",
                                     .max_positions = "bert.context_length",
                                     .types = TYPES,
                                     .norm_eps = "bert.attention.layer_norm_epsilon"};
/* Positions have no end, whatever "context_length" says; nothing says the largest distance. */
#define T5_KEYS(name)                                                                              \
    .d = name ".embedding_length", .encoder_layers = name ".block_count",                          \
    .encoder_heads = name ".attention.head_count", .decoder_heads = name ".attention.head_count",  \
    .encoder_ffn = name ".feed_forward_length", .decoder_ffn = name ".feed_forward_length",        \
    .source_vocabulary = name ".vocab_size", .gated_activation = ACTIVATION,                       \
    .norm_eps = name ".attention.layer_norm_rms_epsilon",                                          \
    .head_width = name ".attention.key_length",                                                    \
    .buckets = name ".attention.relative_buckets_count"
static const model_keys t5_keys = {T5_KEYS("t5"), .decoder_layers = "t5.decoder_block_count"};
static const model_keys t5encoder_keys = {T5_KEYS("t5encoder")};

typedef struct architecture {
    const char *name, *family;
    const model_keys *keys;
    const model_names *names;
    int pairs; /* rotary embeddings turn neighbours: rows of q and k lie in that order */
    /* That of so many layers has scores of q k / sqrt(d / heads), whatever the width of a head. */
    size_t layers_by_width;
} architecture;

/* Llama is also what Mistral's files say; T5 those of mT5 and umT5. */
static const architecture architectures[] = {
    {"llama", "llama", &llama_keys, &llama_names, 1, 0},
    {"qwen2", "qwen2", &qwen2_keys, &llama_names, 0, 0},
    {"qwen3", "qwen3", &qwen3_keys, &llama_names, 0, 0},
    {"gemma", "gemma", &gemma_keys, &llama_names, 0, 0},
    {"gemma2", "gemma2", &gemma2_keys, &gemma_names, 0, 46},
    {"gemma3", "gemma3_text", &gemma3_keys, &gemma_names, 0, 62},
    {"gpt2", "gpt2", &gpt2_keys, &gpt2_names, 0, 0},
    {"bert", "bert", &bert_keys, &bert_names, 0, 0},
    {"t5", "t5", &t5_keys, &t5_names, 0, 0},
    {"t5encoder", "t5", &t5encoder_keys, &t5_names, 0, 0},
};
enum { ARCHITECTURES = sizeof architectures / sizeof *architectures };

static iso_status find_architecture(const model_gguf *g, const architecture **found) {
    const gguf_value *v;
    model_quoted quoted;
    iso_status status = model_gguf_get(g, &v, "general.type", GGUF_STRING);
    if (!status && v && !model_gguf_is(v, "model"))
        return model_fail(g->error, ISOBIT_E_UNSUPPORTED, "%s: \"general.type\" is not \"model\"",
                          g->file);
    if (!status)
        status = model_gguf_get(g, &v, "general.architecture", GGUF_STRING);
    if (status)
        return status;
    if (!v)
        return model_fail(g->error, ISOBIT_E_MISSING, "%s has no key \"general.architecture\"",
                          g->file);
    for (int i = 0; i < ARCHITECTURES; i++)
        if (model_gguf_is(v, architectures[i].name)) {
            *found = &architectures[i];
            return ISOBIT_OK;
        }
    size_t bytes;
    const char *at = v->data, *name = model_gguf_string(&at, &bytes);
    return model_fail(g->error, ISOBIT_E_UNSUPPORTED,
                      "%s: the architecture %s is not one of llama, qwen2, qwen3, gemma, gemma2, "
                      "gemma3, gpt2, bert, t5, t5encoder",
                      g->file, model_quote(&quoted, name, bytes));
}

/* A key of the architecture: llama.block_count. */
static const gguf_value *find_own(const model_gguf *g, const architecture *a, const char *key) {
    char name[128];
    (void)snprintf(name, sizeof name, "%s.%s", a->name, key);
    return model_gguf_find(g, name);
}

/* -------------------------------------------------------------------------------- refusals */

static int is_zero(const gguf_value *v) {
    if (v->array || v->type == GGUF_STRING)
        return 0;
    const uint64_t bits = model_gguf_number(v->data, v->bytes);
    const int real = v->type == GGUF_F32 || v->type == GGUF_F64;
    return bits == 0 || (real && bits == UINT64_C(1) << (8 * v->bytes - 1));
}

/* What would compute something else, in keys and in tensors. */
static iso_status refuse_others(const model_gguf *g, const architecture *a, const model_config *row,
                                const model_checkpoint *checkpoint) {
    const model_keys *keys = a->keys;
    const struct {
        const char *name;
        int fine; /* it is read */
    } zero[] = {{"expert_count", 0},
                {"attention.clamp_kqv", 0},
                {"attention.max_alibi_bias", 0},
                {"use_parallel_residual", 0},
                {"attn_logit_softcapping", keys->attention_cap != NULL},
                {"final_logit_softcapping", keys->logits_cap != NULL},
                {"rope.freq_base_swa", keys->local_theta != NULL},
                {"logit_scale", 0},
                {"embedding_scale", 0},
                {"residual_scale", 0},
                {"attention.scale", 0}};
    const gguf_value *scaling = find_own(g, a, "rope.scaling.type");
    const int longrope = a->keys->rope_theta && scaling && model_gguf_is(scaling, "longrope");
    const struct {
        const char *name;
        int fine; /* the configuration has it */
    } tensors[] = {
        {"blk.0.attn_sub_norm.weight", 0},      {"blk.0.ffn_gate_inp.weight", 0},
        {"blk.0.attn_rot_embd.weight", 0},      {"blk.0.ffn_norm_exps.weight", 0},
        {"blk.0.attn_norm_2.weight", 0},        {"blk.0.attn_q_norm.weight", row->head_norm},
        {"rope_factors_long.weight", longrope}, {"rope_factors_short.weight", longrope}};
    for (size_t i = 0; i < sizeof zero / sizeof *zero; i++) {
        const gguf_value *v = zero[i].fine ? NULL : find_own(g, a, zero[i].name);
        if (v && !is_zero(v))
            return model_fail(g->error, ISOBIT_E_UNSUPPORTED,
                              "%s: \"%s.%s\" is not 0; isobit has nothing for it", g->file, a->name,
                              zero[i].name);
    }
    const gguf_value *causal = find_own(g, a, "attention.causal");
    if (causal && is_zero(causal) != (a->keys->encoder_layers != NULL))
        return model_fail(g->error, ISOBIT_E_UNSUPPORTED,
                          "%s: \"%s.attention.causal\" is not as the family has it", g->file,
                          a->name);
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        if (!tensors[i].fine && model_checkpoint_find(checkpoint, tensors[i].name))
            return model_fail(g->error, ISOBIT_E_UNSUPPORTED,
                              "%s: tensor \"%s\" is of a variant that isobit does not have",
                              g->file, tensors[i].name);
    return ISOBIT_OK;
}

/* A file says everything; there are no defaults as config.json has them. */
static iso_status require(const model_gguf *g, const model_keys *k) {
    const char *const needed[] = {k->d,
                                  k->encoder_layers,
                                  k->encoder_layers ? NULL : k->decoder_layers,
                                  k->encoder_heads,
                                  k->decoder_heads,
                                  k->encoder_ffn,
                                  k->decoder_ffn,
                                  k->max_positions,
                                  k->norm_eps,
                                  k->buckets};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (needed[i] && !model_gguf_find(g, needed[i]))
            return model_fail(g->error, ISOBIT_E_MISSING, "%s has no key \"%s\"", g->file,
                              needed[i]);
    return ISOBIT_OK;
}

/* ------------------------------------------------------------------------------------- JSON */

static iso_status no_memory(const model_gguf *g) {
    return model_fail(g->error, ISOBIT_E_NOMEM, "out of memory for the metadata of %s", g->file);
}

/* The keys of the architecture as they are. */
static iso_status copy_values(const model_gguf *g, const architecture *a, json_t *root) {
    const size_t own = strlen(a->name);
    model_quoted quoted;
    for (size_t i = 0; i < g->count; i++) {
        const gguf_value *v = &g->values[i];
        if (v->key_bytes <= own || memcmp(v->key, a->name, own) != 0 || v->key[own] != '.')
            continue;
        if (!model_gguf_has_json(v))
            return model_fail(g->error, ISOBIT_E_CONFIG,
                              "%s: %s is not finite, or a string that is not UTF-8", g->file,
                              model_quote(&quoted, v->key, v->key_bytes));
        char *key = strndup(v->key, v->key_bytes);
        const int failed = !key || json_object_set_new(root, key, model_gguf_json(v));
        free(key);
        if (failed)
            return no_memory(g);
    }
    return ISOBIT_OK;
}

/* The size of a table, which the file need not give as a key. */
static int set_rows(const model_checkpoint *checkpoint, json_t *root, const char *key,
                    const char *tensor) {
    const model_tensor *t = model_checkpoint_find(checkpoint, tensor);
    return !key || !t || json_object_get(root, key) ||
           !json_object_set_new(root, key, json_real((double)t->shape[0]));
}

static int set_flag(json_t *root, const char *key, int value) {
    return !key || !json_object_set_new(root, key, json_boolean(value));
}

/* Ids of tokens; a text ends with any of the last three. */
static iso_status set_ids(const model_gguf *g, json_t *root) {
    static const struct {
        const char *key, *to;
    } ids[] = {{"t5.decoder_start_token_id", "decoder_start_token_id"},
               {"tokenizer.ggml.bos_token_id", "bos_token_id"},
               {"tokenizer.ggml.padding_token_id", "pad_token_id"},
               {"tokenizer.ggml.unknown_token_id", "unk_token_id"},
               {"tokenizer.ggml.eos_token_id", NULL},
               {"tokenizer.ggml.eot_token_id", NULL},
               {"tokenizer.ggml.eom_token_id", NULL}};
    json_t *ends = json_array();
    int failed = 0;
    iso_status status = ISOBIT_OK;
    for (size_t i = 0; !status && i < sizeof ids / sizeof *ids; i++) {
        const gguf_value *v;
        status = model_gguf_get(g, &v, ids[i].key, GGUF_U32);
        if (!status && v)
            failed |= ids[i].to ? json_object_set_new(root, ids[i].to, model_gguf_json(v))
                                : json_array_append_new(ends, model_gguf_json(v));
    }
    failed |= json_object_set_new(root, "eos_token_id", ends);
    return status ? status : failed ? no_memory(g) : ISOBIT_OK;
}

static int is_one(const gguf_value *v) {
    return v->type == GGUF_F32 && !v->array && model_gguf_number(v->data, 4) == 0x3f800000;
}

/* What a scaling is made of, here and in "rope_scaling". */
static iso_status copy_scaling(const model_gguf *g, const architecture *a, int longrope,
                               json_t *scaling) {
    enum { BOTH, YARN, LONG };
    static const struct {
        const char *key, *to;
        int of;
    } parts[] = {{"rope.scaling.original_context_length", "original_max_position_embeddings", BOTH},
                 {"rope.scaling.yarn_beta_fast", "beta_fast", YARN},
                 {"rope.scaling.yarn_beta_slow", "beta_slow", YARN},
                 {"rope.scaling.yarn_attn_factor", "attention_factor", YARN},
                 {"rope.scaling.attn_factor", "attention_factor", LONG}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const gguf_value *v = find_own(g, a, parts[i].key);
        if (v && (parts[i].of == BOTH || parts[i].of == (longrope ? LONG : YARN)) &&
            json_object_set_new(scaling, parts[i].to, model_gguf_json(v)))
            return no_memory(g);
    }
    return ISOBIT_OK;
}

/* What else llama.cpp has for yarn, where it would change something. */
static iso_status refuse_scaling(const model_gguf *g, const architecture *a) {
    static const struct {
        const char *key;
        int one; /* what it must be: 1, or 0 */
    } parts[] = {{"rope.scaling.yarn_ext_factor", 1},
                 {"rope.scaling.attn_factor", 1},
                 {"rope.scaling.yarn_log_multiplier", 0}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const gguf_value *v = find_own(g, a, parts[i].key);
        if (v && !(parts[i].one ? is_one(v) : is_zero(v)))
            return model_fail(g->error, ISOBIT_E_UNSUPPORTED,
                              "%s: \"%s.%s\" is not %d; isobit has nothing for it", g->file,
                              a->name, parts[i].key, parts[i].one);
    }
    return ISOBIT_OK;
}

/* The factors of longrope are tensors here, and lists in "rope_scaling". */
static iso_status set_factors(const model_gguf *g, const model_checkpoint *checkpoint,
                              const char *tensor, json_t *scaling, const char *key) {
    enum { MOST = 4096 };
    const model_tensor *t = model_checkpoint_find(checkpoint, tensor);
    json_t *list = json_array();
    iso_status status = list ? ISOBIT_OK : no_memory(g);
    if (!t)
        status = model_fail(g->error, ISOBIT_E_MISSING, "%s has no tensor \"%s\"", g->file, tensor);
    else if (t->dtype != MODEL_F32 || t->rank != 1 || t->shape[0] > MOST)
        status = model_fail(g->error, ISOBIT_E_SHAPE,
                            "%s: tensor \"%s\" has type %s and %zu dimensions; at most %d numbers "
                            "of type F32 are expected",
                            g->file, tensor, t->dtype_name, t->rank, MOST);
    for (uint64_t i = 0; !status && i < t->shape[0]; i++) {
        float factor;
        status = model_checkpoint_read(checkpoint, t, &factor, 4 * i, 4, g->error);
        json_t *number = status ? NULL : json_real((double)factor);
        if (!status && !number && !isfinite(factor))
            status = model_fail(g->error, ISOBIT_E_RANGE,
                                "%s: tensor \"%s\": element %llu is not finite", g->file, tensor,
                                (unsigned long long)i);
        else if (!status && (!number || json_array_append_new(list, number)))
            status = no_memory(g);
    }
    if (!status && json_object_set(scaling, key, list))
        status = no_memory(g);
    json_decref(list);
    return status;
}

/* The scaling that a type names, without its factor. */
static iso_status add_scaling(const model_gguf *g, const architecture *a,
                              const model_checkpoint *checkpoint, const char *type,
                              json_t *scaling) {
    const int longrope = strcmp(type, "longrope") == 0;
    iso_status status = longrope ? ISOBIT_OK : refuse_scaling(g, a);
    if (!status && strcmp(type, "linear") != 0)
        status = copy_scaling(g, a, longrope, scaling);
    if (!status && longrope)
        status = set_factors(g, checkpoint, "rope_factors_short.weight", scaling, "short_factor");
    if (!status && longrope)
        status = set_factors(g, checkpoint, "rope_factors_long.weight", scaling, "long_factor");
    return status;
}

/* The scaling of Llama 3 is a tensor, rope_freqs.weight, and no key. */
static iso_status set_rope(const model_gguf *g, const architecture *a,
                           const model_checkpoint *checkpoint, json_t *root) {
    static const char *const types[] = {"linear", "yarn", "longrope"};
    const gguf_value *type = find_own(g, a, "rope.scaling.type"),
                     *factor = find_own(g, a, "rope.scaling.factor"),
                     *old = find_own(g, a, "rope.scale_linear");
    if (!a->keys->rope_theta || (type && model_gguf_is(type, "none")))
        return ISOBIT_OK;
    size_t kind = 0;
    while (type && kind < sizeof types / sizeof *types && !model_gguf_is(type, types[kind]))
        kind++;
    if (kind == sizeof types / sizeof *types)
        return model_fail(g->error, ISOBIT_E_UNSUPPORTED,
                          "%s: \"%s.rope.scaling.type\" is not \"none\", \"linear\", \"yarn\" or "
                          "\"longrope\"; isobit has no other",
                          g->file, a->name);
    const int longrope = kind + 1 == sizeof types / sizeof *types;
    if (!type && !old) {
        return !factor || is_zero(factor)
                   ? ISOBIT_OK
                   : model_fail(g->error, ISOBIT_E_MISSING,
                                "%s: \"%s.rope.scaling.factor\" is there without a type", g->file,
                                a->name);
    }
    if (!factor)
        factor = old;
    if (longrope ? factor && factor->array : !factor || factor->array || is_zero(factor))
        return model_fail(g->error, ISOBIT_E_MISSING,
                          "%s: \"%s.rope.scaling.factor\" is not there, or not a number above 0",
                          g->file, a->name);
    json_t *scaling = json_pack("{s:s}", "type", types[kind]);
    if (!scaling || json_object_set_new(root, "rope_scaling", scaling) ||
        (factor && !is_zero(factor) &&
         json_object_set_new(scaling, "factor", model_gguf_json(factor))))
        return no_memory(g);
    return add_scaling(g, a, checkpoint, types[kind], scaling);
}

/* Whether the logits have a matrix of their own. T5's files may have that of the embedding twice,
 * and whether its logits are scaled depends on that. */
static iso_status find_tied(const model_gguf *g, const model_config *row,
                            const model_checkpoint *checkpoint, int *tied) {
    enum { PIECE = 1024 };
    const model_tensor *head = model_checkpoint_find(checkpoint, row->names->head),
                       *table = model_checkpoint_find(checkpoint, row->names->shared);
    char a[PIECE], b[PIECE];
    *tied = !head;
    if (!head || !table || !row->scale_tied_logits || head->dtype != table->dtype ||
        head->end - head->begin != table->end - table->begin)
        return ISOBIT_OK;
    const uint64_t bytes = head->end - head->begin;
    for (uint64_t at = 0; at < bytes; at += PIECE) {
        const size_t n = bytes - at < PIECE ? (size_t)(bytes - at) : PIECE;
        iso_status status = model_checkpoint_read(checkpoint, head, a, at, n, g->error);
        if (!status)
            status = model_checkpoint_read(checkpoint, table, b, at, n, g->error);
        if (status || memcmp(a, b, n) != 0)
            return status;
    }
    *tied = 1;
    return ISOBIT_OK;
}

/* T5: what the tensors say. A gate is one of GELU, as llama.cpp has it. */
static int set_t5(const model_checkpoint *checkpoint, const architecture *a, json_t *root) {
    const int gated = model_checkpoint_find(checkpoint, "enc.blk.0.ffn_gate.weight") != NULL;
    return !a->keys->gated_activation ||
           (!json_object_set_new(root, ACTIVATION, json_string(gated ? "gated-gelu" : "relu")) &&
            set_flag(root, "is_encoder_decoder", a->keys->decoder_layers != NULL));
}

static iso_status make_json(const model_gguf *g, const architecture *a, const model_config *row,
                            const model_checkpoint *checkpoint, json_t *root) {
    int tied;
    iso_status status = find_tied(g, row, checkpoint, &tied);
    if (status || (status = copy_values(g, a, root)) || (status = set_ids(g, root)) ||
        (status = set_rope(g, a, checkpoint, root)))
        return status;
    return set_rows(checkpoint, root, a->keys->source_vocabulary, "token_embd.weight") &&
                   set_rows(checkpoint, root, a->keys->types, "token_types.weight") &&
                   set_flag(root, "tie_word_embeddings", tied) &&
                   set_flag(root, a->keys->attention_bias,
                            model_checkpoint_find(checkpoint, "blk.0.attn_q.bias") != NULL) &&
                   set_flag(root, a->keys->ffn_bias,
                            model_checkpoint_find(checkpoint, "blk.0.ffn_up.bias") != NULL) &&
                   set_t5(checkpoint, a, root)
               ? ISOBIT_OK
               : no_memory(g);
}

/* -------------------------------------------------------------------------- what comes of it */

static iso_status check_width(const model_gguf *g, const architecture *a, const char *key,
                              size_t width) {
    const gguf_value *v = find_own(g, a, key);
    const int whole = v && !v->array && v->type != GGUF_STRING && v->type != GGUF_F32 &&
                      v->type != GGUF_F64 && v->type != GGUF_BOOL;
    const int same = !v || (whole && model_gguf_number(v->data, v->bytes) == width);
    return same ? ISOBIT_OK
                : model_fail(g->error, ISOBIT_E_UNSUPPORTED,
                             "%s: \"%s.%s\" is not the width of a head, %zu", g->file, a->name, key,
                             width);
}

/* How the vectors of tokens become one of a text. */
static void set_sentence(const model_gguf *g, const architecture *a, model_config *c) {
    model_sentence *s = &c->sentence;
    const gguf_value *v = find_own(g, a, "pooling_type");
    *s = (model_sentence){.pooling = ISOBIT_POOLING_MEAN, .normalize = 1, .max_length = SIZE_MAX};
    const uint64_t how = v && !v->array && v->type == GGUF_U32 ? model_gguf_number(v->data, 4) : 1;
    if (how == 2)
        s->pooling = ISOBIT_POOLING_CLS;
    else if (how != 1)
        (void)snprintf(s->refused, sizeof s->refused, "pooling of the type %llu",
                       (unsigned long long)how);
}

/* The rows of q and k, as rotary embeddings that turn neighbours want them. */
static void mark_pairs(model_checkpoint *checkpoint, const model_config *c, size_t width) {
    static const char *const tails[] = {"attn_q.weight", "attn_q.bias", "attn_k.weight",
                                        "attn_k.bias"};
    char name[64];
    for (size_t i = 0; i < c->decoder_layers; i++)
        for (size_t k = 0; k < sizeof tails / sizeof *tails; k++) {
            (void)snprintf(name, sizeof name, "blk.%zu.%s", i, tails[k]);
            const model_tensor *t = model_checkpoint_find(checkpoint, name);
            if (t && t->shape[0] % width == 0 && width % 2 == 0)
                checkpoint->header.tensors[t - checkpoint->header.tensors].paired = width;
        }
}

/* The family, with the names of such files; without one window that they do not have. Norms have
 * their weights as they are. */
static model_config make_row(const model_gguf *g, const architecture *a,
                             const model_checkpoint *checkpoint) {
    const gguf_value *window = find_own(g, a, "attention.sliding_window");
    const int in_each = model_checkpoint_find(checkpoint, "enc.blk.1.attn_rel_b.weight") ||
                        model_checkpoint_find(checkpoint, "dec.blk.1.attn_rel_b.weight");
    model_config row = *model_family_find(in_each && a->names == &t5_names ? "umt5" : a->family);
    row.keys = a->keys;
    row.names = a->names;
    row.linear_in_out = 0;
    row.window_from = 0;
    if (a->keys->local_theta && (!window || is_zero(window)))
        row.window_pattern = 0; /* Gemma 3 whose layers are all alike */
    row.window = row.window_pattern && !a->keys->local_theta ? row.window : 0;
    row.norm_less_one = 0;
    row.query_scalar = 0;
    row.pad = row.bos = row.unk = row.start = MODEL_NO_ID;
    row.eos = (model_ids){NULL, 0};
    return row;
}

iso_status model_gguf_config(const model_gguf *g, model_checkpoint *checkpoint,
                             model_config *config, model_arena *arena) {
    const architecture *a = NULL;
    iso_status status = find_architecture(g, &a);
    if (status)
        return status;
    const model_config row = make_row(g, a, checkpoint);
    if ((status = refuse_others(g, a, &row, checkpoint)) || (status = require(g, a->keys)))
        return status;
    json_t *root = json_object();
    status = root ? make_json(g, a, &row, checkpoint, root) : no_memory(g);
    if (!status && !row.window_pattern && a->keys->local_theta) /* it may be 0 */
        (void)json_object_del(root, a->keys->window);
    if (!status)
        status = model_config_from(config, arena, &row, g->file, root, g->error);
    json_decref(root);
    if (status)
        return status;
    set_sentence(g, a, config);
    if (a->layers_by_width && config->decoder_layers == a->layers_by_width)
        config->query_scalar = (double)(config->d / config->decoder_heads);
    const size_t H = config->decoder_layers ? config->decoder_heads : config->encoder_heads;
    const size_t width = config->head_width ? config->head_width : config->d / H;
    if ((status = check_width(g, a, "attention.key_length", width)) ||
        (status = check_width(g, a, "attention.value_length", width)) ||
        (a->keys->rope_theta && (status = check_width(g, a, "rope.dimension_count", width))))
        return status;
    if (a->pairs)
        mark_pairs(checkpoint, config, width);
    return status;
}
