/* SPDX-License-Identifier: MIT
 *
 * The configuration of a model: what its family says, and config.json.
 */
#ifndef ISOBIT_MODEL_CONFIG_H
#define ISOBIT_MODEL_CONFIG_H

#include "base.h"

#define MODEL_NO_ID UINT32_MAX

typedef struct model_ids {
    const uint32_t *ids;
    size_t count;
} model_ids;

typedef enum model_position {
    MODEL_POS_NONE,
    MODEL_POS_SINUSOIDS,
    MODEL_POS_LEARNED
} model_position;

/* Names of the tensors of a stack, without ".weight" and ".bias". */
typedef struct model_stack_names {
    const char *layers; /* what precedes the number of a layer and a dot; of it, the names follow */
    const char *self[4]; /* q, k, v, output; without k and v, q is one tensor for the three */
    const char *self_norm, *self_after;
    const char *head_norm[2]; /* of each head of queries, of keys */
    const char *cross[4], *cross_norm;
    const char *fc1, *fc2, *ffn_norm, *ffn_after;
    /* What stands in the place of fc1 where it is gated: gate, other factor; without the latter one
     * tensor for the two. */
    const char *gate[2];
    const char *relative; /* a bias for each distance and head */
    /* Whole names. */
    const char *positions, *types, *embedding_norm, *final_norm;
    const char *rope_divisors; /* of the rates of rotary embeddings; may be absent */
} model_stack_names;

typedef struct model_names {
    const char *prefix; /* of many names; files may leave it out */
    model_stack_names encoder, decoder;
    const char *shared;          /* the embedding that both stacks share, */
    const char *source, *target; /* or of each; also other names of the shared one */
    const char *head, *head_bias;
    const char *head_dense, *head_norm; /* what the head of a masked language model begins with */
    const char *pooler;
} model_names;

/* The keys of config.json; where one is NULL, the row's value stands. */
typedef struct model_keys {
    const char *d, *encoder_layers, *decoder_layers, *encoder_heads, *decoder_heads, *encoder_ffn,
        *decoder_ffn, *source_vocabulary, *target_vocabulary, *max_positions, *types, *activation,
        *norm_eps;
    const char *gated_activation; /* instead of `activation`: the name may begin with "gated-" */
    const char *head_width, *buckets, *max_distance;
    const char *key_heads, *attention_bias, *ffn_bias, *rope_theta, *window;
    const char *use_window, *window_from; /* whether there is one, and from which layer on */
    const char *window_pattern;           /* every so many layers there is none */
    const char *local_theta;              /* rope_theta of layers with a window */
    const char *query_scalar;             /* instead of the width of a head in attention's scale */
    const char *attention_cap, *logits_cap;
    const char *rotary_part;     /* of a head's elements that turn */
    const char *embedding_width; /* must be that of the model */
} model_keys;

/* A key that must be absent or have this value: true, false, or a text. */
typedef struct model_must {
    const char *key, *value;
} model_must;

typedef enum model_presence { MODEL_NEVER, MODEL_ALWAYS, MODEL_IF_STORED } model_presence;

/* How rotary embeddings are stretched to more positions: "rope_scaling". */
typedef enum model_rope_kind {
    MODEL_ROPE_PLAIN,
    MODEL_ROPE_DYNAMIC, /* changes nothing within the positions of the model */
    MODEL_ROPE_LINEAR,
    MODEL_ROPE_LLAMA3,
    MODEL_ROPE_YARN,
    MODEL_ROPE_LONG
} model_rope_kind;

typedef struct model_rope {
    model_rope_kind kind;
    double factor, original;
    /* "llama3": its frequency factors. "yarn": turns within the original positions, of which fewer
     * than `low` are slowed down wholly, and more than `high` not at all. */
    double low, high;
    int fraction;   /* "yarn": the ends of the ramp may lie between two rates */
    double scaling; /* of cosines and sines; 0: 1 */
    /* "longrope": [count] how many times slower each rate is; that of longer texts, of up to `all`
     * positions. */
    const double *slower, *slower_longer;
    size_t count, all;
    double reached; /* "dynamic": how many times the positions of the model there are; 0: once */
} model_rope;

/* A linear layer between pooling and normalization: act(x W^T + b), `in` numbers in, `out` out. */
typedef struct model_dense_config {
    const char *folder; /* of its files, in that of the model */
    size_t in, out;
    int bias;
    iso_activation act;
} model_dense_config;

/* What sentence-transformers says of a folder. */
typedef struct model_sentence {
    iso_pooling pooling;
    int normalize;
    model_dense_config *dense; /* [dense_count] in their order */
    size_t dense_count;
    size_t max_length;
    char refused[200];  /* a module that isobit lacks; then no Dense counts */
    int lower;          /* texts are put in lower case */
    const char *prompt; /* before each text, or NULL */
    int drops_prompt;   /* from the mean and so on */
} model_sentence;

/* What sampling keeps of a distribution, in the order in which it is applied. */
typedef struct model_warp {
    float temperature;  /* above 0 */
    size_t top_k;       /* 0: all */
    float top_p, min_p; /* 1 and 0: all */
} model_warp;

/* Generation defaults, from generation_config.json or, where that is absent, config.json. */
typedef struct model_search {
    size_t beams, max_length, max_new_tokens, min_length, min_new_tokens, no_repeat_ngram;
    float length_penalty, repetition_penalty;
    iso_early_stopping early_stopping;
    int renormalize;
    uint32_t forced_bos;
    model_ids forced_eos;
    model_ids bad_words; /* for each: its length, then its ids */
    int sample;
    model_warp warp; /* as the file has it; checked by model_warp_check where it is used */
} model_search;

/*
 * One struct for all families: a family is a row of it (families/) that config.json overrides.
 * The forward pass tests these members, and pointers for weights that may be absent; it never
 * asks for the family.
 */
typedef struct model_config {
    const char *family;
    const model_keys *keys;
    const model_names *names;
    const model_names *other_names[2]; /* that a file may have instead, or NULL */
    const char *part;                  /* the object in config.json that is meant, or NULL */
    const char *part_type;             /* its model_type */
    const char *encoder_class; /* of an encoder alone of this family, as "architectures" says it */
    model_must must[4];
    /* Sizes; a stack without layers does not exist. */
    size_t d, encoder_layers, decoder_layers, encoder_heads, decoder_heads, encoder_ffn,
        decoder_ffn;
    size_t source_vocabulary, target_vocabulary, max_positions;
    /* The layers. */
    const char *activation_name;
    iso_activation activation;
    int gelu_is_tanh; /* files say "gelu" where they mean its approximation */
    double norm_eps;
    int rms_norm, norm_bias;
    int norm_less_one;  /* weights of norms are stored less 1 */
    int head_norm;      /* RMS norms of each head of queries and keys */
    int pre_norm;       /* x + f(norm(x)) instead of norm(x + f(x)) */
    int norms_after;    /* and another norm of f's result, before it is added */
    int embedding_norm; /* a norm on the sum of embedding and position */
    int final_norm;     /* a norm at the end of each stack */
    int attention_bias, ffn_bias;
    int no_output_bias;     /* attention_bias is for q, k and v only */
    int linear_in_out;      /* matrices are stored [in][out] */
    int gated;              /* act(x W^T) times x V^T, W and V side by side in fc1 */
    size_t head_width;      /* 0: d / heads */
    size_t key_heads;       /* of self-attention; 0: as many as heads, else a divisor of them */
    int unscaled_attention; /* scores are q k, not q k / sqrt(head width) */
    double query_scalar;    /* or q k / sqrt(this), unless it is 0 */
    /* cap tanh(x / cap) of scores, and of logits; 0: none */
    double attention_cap, logits_cap;
    /* Self-attention with a bias that depends on head and distance: of the encoder's buckets half
     * are for keys before the query, half for those behind it. 0: there is none. */
    size_t buckets, max_distance;
    int relative_in_each; /* layer its own; else the first layer's is for all */
    int head_if_stored;   /* a head of its own is one that the file has, whatever tie_logits says */
    int scale_tied_logits; /* by 1 / sqrt(d) where tie_logits is on; without it there is a head */
    model_presence logits_bias;
    /* Positions and embeddings. */
    model_position position;
    iso_position_layout position_layout;
    int stored_positions; /* a table in the file takes the place of the computed one */
    size_t position_offset;
    int positions_count_offset; /* max_positions in config.json is the number of rows */
    size_t types;               /* rows of a table of token types, of which 0 is used */
    size_t window;              /* the last keys that self-attention sees; 0: all */
    size_t window_from;         /* the first layer with a window */
    size_t window_pattern;      /* every so many layers there is none; 0: see window_from */
    const char *window_layers;  /* [layers] or NULL: 1 for a layer with a window */
    double rope_theta;          /* base of rotary embeddings of queries and keys; 0: none */
    double local_theta;         /* that of layers with a window, which are not stretched; 0: all
                                   layers are alike */
    double rotary_part;         /* of a head's elements that turn, the first ones; 0: all */
    model_rope rope;
    int scale_embedding; /* times sqrt(d) */
    int share_embeddings, tie_logits;
    /* Token ids. */
    uint32_t pad, bos, start, unk;
    model_ids eos;
    int forces_eos; /* forced_eos_token_id is eos when config.json lacks the key */
    model_search search;
    model_sentence sentence;
} model_config;

/* How many elements of a head of that width turn. */
static inline size_t model_rotary(const model_config *c, size_t width) {
    return c->rotary_part > 0 ? (size_t)((double)width * c->rotary_part) : width;
}

/* The row of a model_type, or NULL; and all names, for messages. */
const model_config *model_family_find(const char *model_type);
const char *model_family_names(void);

iso_status model_config_read(model_config *config, model_arena *arena, const char *directory,
                             iso_error *error);
/* The same of an object that stands for config.json, and a row: a family's, maybe with changes. */
struct json_t;
iso_status model_config_from(model_config *config, model_arena *arena, const model_config *row,
                             const char *file, const struct json_t *root, iso_error *error);

/* As many positions as the options of loading ask for, where there are fewer. */
iso_status model_config_lengthen(model_config *config, size_t positions, iso_error *error);

/* Of a family of both the encoder. */
void model_config_encoder_alone(model_config *config);

/* sentence_files.c: what sentence-transformers wrote beside config.json, if it did. Of a family of
 * both it takes the encoder alone. */
iso_status model_sentence_read(model_config *config, model_arena *arena, const char *directory,
                               iso_error *error);

#endif
