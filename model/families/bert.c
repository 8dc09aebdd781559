/* SPDX-License-Identifier: MIT
 *
 * Encoders alone: BERT and those that came from its code.
 */
#include "families/rows.h"

#define BERT_KEYS                                                                                  \
    .d = "hidden_size", .encoder_layers = "num_hidden_layers",                                     \
    .encoder_heads = "num_attention_heads", .encoder_ffn = "intermediate_size",                    \
    .source_vocabulary = "vocab_size", .max_positions = "max_position_embeddings",                 \
    .types = "type_vocab_size", .activation = "hidden_act", .norm_eps = "layer_norm_eps"
static const model_keys bert_keys = {BERT_KEYS};
static const model_keys distilbert_keys = {
    .d = "dim",
    .encoder_layers = "n_layers",
    .encoder_heads = "n_heads",
    .encoder_ffn = "hidden_dim",
    .source_vocabulary = "vocab_size",
    .max_positions = "max_position_embeddings",
    .activation = "activation",
};

#define BERT_ENCODER(prefix)                                                                       \
    {                                                                                              \
        .layers = prefix "encoder.layer.",                                                         \
        .self = {"attention.self.query", "attention.self.key", "attention.self.value",             \
                 "attention.output.dense"},                                                        \
        .self_norm = "attention.output.LayerNorm", .fc1 = "intermediate.dense",                    \
        .fc2 = "output.dense", .ffn_norm = "output.LayerNorm",                                     \
        .positions = prefix "embeddings.position_embeddings",                                      \
        .types = prefix "embeddings.token_type_embeddings",                                        \
        .embedding_norm = prefix "embeddings.LayerNorm"                                            \
    }

static const model_names bert_names = {
    .prefix = "bert.",
    .encoder = BERT_ENCODER("bert."),
    .shared = "bert.embeddings.word_embeddings.weight",
    .head = "cls.predictions.decoder.weight",
    .head_bias = "cls.predictions.bias",
    .head_dense = "cls.predictions.transform.dense",
    .head_norm = "cls.predictions.transform.LayerNorm",
    .pooler = "bert.pooler.dense",
};
static const model_names roberta_names = {
    .prefix = "roberta.",
    .encoder = BERT_ENCODER("roberta."),
    .shared = "roberta.embeddings.word_embeddings.weight",
    .head = "lm_head.decoder.weight",
    .head_bias = "lm_head.bias",
    .head_dense = "lm_head.dense",
    .head_norm = "lm_head.layer_norm",
    .pooler = "roberta.pooler.dense",
};
static const model_names distilbert_names = {
    .prefix = "distilbert.",
    .encoder = {.layers = "distilbert.transformer.layer.",
                .self = {"attention.q_lin", "attention.k_lin", "attention.v_lin",
                         "attention.out_lin"},
                .self_norm = "sa_layer_norm",
                .fc1 = "ffn.lin1",
                .fc2 = "ffn.lin2",
                .ffn_norm = "output_layer_norm",
                .positions = "distilbert.embeddings.position_embeddings",
                .embedding_norm = "distilbert.embeddings.LayerNorm"},
    .shared = "distilbert.embeddings.word_embeddings.weight",
    .head = "vocab_projector.weight",
    .head_bias = "vocab_projector.bias",
    .head_dense = "vocab_transform",
    .head_norm = "vocab_layer_norm",
};

/* An encoder alone, post-norm, with learned positions and a norm on the sum of embeddings. */
#define FROM_BERT(layers, vocabulary)                                                              \
    .d = 768, .encoder_layers = (layers), .encoder_heads = 12, .encoder_ffn = 3072,                \
    .source_vocabulary = (vocabulary), .max_positions = 512, .activation_name = "gelu",            \
    .norm_eps = 1e-12, .norm_bias = 1, .attention_bias = 1, .ffn_bias = 1, .embedding_norm = 1,    \
    .position = MODEL_POS_LEARNED, .share_embeddings = 1, .tie_logits = 1, .start = MODEL_NO_ID,   \
    .unk = MODEL_NO_ID
#define MUST_BE_BERT                                                                               \
    .must = {{"position_embedding_type", "absolute"},                                              \
             {"is_decoder", "false"},                                                              \
             {"add_cross_attention", "false"}}

/* RoBERTa (Liu et al. 2019, arXiv 1907.11692): positions from pad + 1 = 2 on. */
#define ROBERTA(type, vocabulary)                                                                  \
    {                                                                                              \
        .family = type, .keys = &bert_keys, .names = &roberta_names, FROM_BERT(12, vocabulary),    \
        FAIRSEQ_IDS, MUST_BE_BERT, .types = 2, .position_offset = 2, .positions_count_offset = 1   \
    }

static const model_config rows[] = {
    /* Devlin et al. 2018, arXiv 1810.04805; MiniLM is one too. */
    {.family = "bert",
     .keys = &bert_keys,
     .names = &bert_names,
     FROM_BERT(12, 30522),
     MUST_BE_BERT,
     .types = 2,
     .pad = 0,
     .bos = MODEL_NO_ID},
    ROBERTA("roberta", 50265),
    ROBERTA("xlm-roberta", 30522),
    ROBERTA("camembert", 30522),
    /* Sanh et al. 2019, arXiv 1910.01108. */
    {.family = "distilbert",
     .keys = &distilbert_keys,
     .names = &distilbert_names,
     FROM_BERT(6, 30522),
     .pad = 0,
     .bos = MODEL_NO_ID},
};
const model_family_rows model_bert_rows = {rows, sizeof rows / sizeof *rows};
