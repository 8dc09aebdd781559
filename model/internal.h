/* SPDX-License-Identifier: MIT
 *
 * What the files of the model layer share: errors with a sentence, memory that is freed at once,
 * files, the checkpoint reader, the configuration, the weights of a model, and the parts of a
 * forward pass. The layer does no arithmetic on tensors of its own: it decides shapes, weights and
 * the order of calls into <isobit/ops.h>.
 *
 * Letters: B sentences, S source length, T target length, d model width, H heads, dh width of a
 * head, f width of the feed-forward layer, V vocabulary.
 */
#ifndef ISOBIT_MODEL_INTERNAL_H
#define ISOBIT_MODEL_INTERNAL_H

#include <isobit/model.h>

#include <stddef.h>
#include <string.h>

#define MODEL_NO_ID UINT32_MAX

/* ---------------------------------------------------------------------------------- errors */

/* Fills *error, if there is one, and returns `status`. The sentence is cut to what fits. */
iso_status model_fail(iso_error *error, iso_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Text from a file, made fit for a message: quoted, non-ASCII and control bytes as \xNN, cut. */
typedef struct model_quoted {
    char text[104]; /* room for the longest names of tensors that there are */
} model_quoted;
const char *model_quote(model_quoted *out, const char *text, size_t bytes);

/* ---------------------------------------------------------------------------------- memory */

/* Blocks that live and die together, each aligned to 64 bytes. All zero is an empty arena. */
typedef struct model_arena {
    struct model_block *newest, *spare;
    size_t bytes; /* handed out so far */
    char *room;   /* what is left of a reserve */
    size_t room_bytes;
} model_arena;

void *model_alloc(model_arena *arena, size_t count, size_t size); /* NULL: no memory, overflow */
void *model_alloc3(model_arena *arena, size_t a, size_t b, size_t c, size_t size); /* a x b x c */
/* The same for memory of which a large part may never be used. */
void *model_alloc_sparse(model_arena *arena, size_t a, size_t b, size_t c, size_t size);
/* One block for the next pieces, each rounded up to 64 bytes; 0: no memory. */
int model_arena_reserve(model_arena *arena, size_t bytes);
void model_arena_recycle(model_arena *arena); /* all that it gave is over, its memory is kept */
void model_arena_free(model_arena *arena);

/* ----------------------------------------------------------------------------------- files */

typedef struct model_file {
    int fd;
    uint64_t bytes;
    const char *name; /* the plain name, for messages */
} model_file;

/* Opens directory/name for reading; regular files only. ISOBIT_E_MISSING when it is not there. */
iso_status model_file_open(model_file *file, const char *directory, const char *name,
                           iso_error *error);
/* All of `bytes` bytes at `offset`, or an error. */
iso_status model_file_read(const model_file *file, void *to, uint64_t offset, size_t bytes,
                           iso_error *error);
/* Says ISOBIT_E_IO if the file no longer has the size that it was opened with. */
iso_status model_file_unchanged(const model_file *file, iso_error *error);
void model_file_close(model_file *file);

/* A whole file in memory, to be read only. All zero is none. */
typedef struct model_map {
    void *at;
    size_t bytes;
} model_map;
/* Maps the file, where that works; it may be closed then. `executor`: or NULL. */
void model_file_map(model_map *map, const model_file *file, const iso_executor *executor);
void model_file_unmap(model_map *map);

/* The whole of a small text file, NUL-terminated, in the arena. */
iso_status model_file_text(char **text, size_t *bytes, model_arena *arena, const char *directory,
                           const char *name, size_t limit, iso_error *error);

/* The length in bytes of the UTF-8 sequence at `text`, its code point in *code; 0 if invalid. */
size_t model_utf8(const char *text, size_t bytes, uint32_t *code);

/* ------------------------------------------------------------------------------ checkpoints */

typedef enum model_dtype {
    MODEL_F32,
    MODEL_F16,
    MODEL_BF16,
    MODEL_F64,
    MODEL_OTHER,
    MODEL_UNKNOWN
} model_dtype;

#define MODEL_MAX_RANK 8

typedef struct model_tensor {
    const char *name; /* NUL-terminated; holds no other NUL */
    size_t name_bytes;
    model_dtype dtype;
    char dtype_name[12];
    size_t rank;
    uint64_t shape[MODEL_MAX_RANK];
    uint64_t begin, end;     /* bytes from the start of the data; all elements lie between */
    const uint64_t *strides; /* [rank], in elements; NULL: row-major, nothing between elements */
    size_t shard;            /* the one that has it, in a checkpoint of several files */
    /* Row 2 i + j of each so many rows is what is read as row j rows / 2 + i; 0: as they lie. */
    size_t paired;
} model_tensor;

typedef struct model_header {
    model_tensor *tensors; /* sorted by name */
    size_t count;
} model_header;

/*
 * Reads the JSON header `text` (changed in place: names point into it) of a file whose data is
 * `data_bytes` long. Everything of *header is in the arena.
 */
iso_status model_header_parse(model_header *header, model_arena *arena, char *text, size_t bytes,
                              uint64_t data_bytes, iso_error *error);

/*
 * The weights of a model: one file, or an index and its shards, each a checkpoint of one file. The
 * file of an index has no descriptor, only its name.
 */
typedef struct model_checkpoint {
    model_file file;
    model_header header;
    uint64_t data_start;
    model_arena arena;
    struct model_checkpoint *shards; /* [shard_count], NULL: one file */
    size_t shard_count;
} model_checkpoint;

/*
 * A file of safetensors, one of torch.save (bin.c), an index of each (checkpoint.c). Whatever comes
 * back, the checkpoint is to be closed. Headers, and what a .bin file has instead, are limited to
 * max_header_bytes.
 */
typedef iso_status model_checkpoint_opener(model_checkpoint *checkpoint, const char *directory,
                                           const char *name, size_t max_header_bytes,
                                           iso_error *error);
model_checkpoint_opener model_checkpoint_open, model_checkpoint_open_bin;
iso_status model_checkpoint_open_shards(model_checkpoint *checkpoint, const char *directory,
                                        const char *name, size_t max_header_bytes,
                                        model_checkpoint_opener *open_shard, iso_error *error);
void model_checkpoint_close(model_checkpoint *checkpoint);
const model_tensor *model_checkpoint_find(const model_checkpoint *checkpoint, const char *name);
/* Bytes [offset, offset + bytes) of a tensor. */
iso_status model_checkpoint_read(const model_checkpoint *checkpoint, const model_tensor *tensor,
                                 void *to, uint64_t offset, size_t bytes, iso_error *error);
/* model_file_unchanged of all its files. */
iso_status model_checkpoint_unchanged(const model_checkpoint *checkpoint, iso_error *error);

/* Sorts by name (no other NUL than at the end). */
int model_tensor_order(const void *a, const void *b);
/*
 * The size of a shape with `bits` bits an element, in *total_bits; or what is wrong with it. A zero
 * does not hide that the other sizes are impossible.
 */
const char *model_tensor_extent(const model_tensor *tensor, unsigned bits, uint64_t *total_bits);

/* ----------------------------------------------------------------------------------- config */

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
    const char *self_norm;
    const char *head_norm[2]; /* of each head of queries, of keys */
    const char *cross[4], *cross_norm;
    const char *fc1, *fc2, *ffn_norm;
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
    const char *rotary_part;              /* of a head's elements that turn */
    const char *embedding_width;          /* must be that of the model */
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

/* What sentence-transformers says of a folder. */
typedef struct model_sentence {
    iso_pooling pooling;
    int normalize;
    size_t max_length;
    char refused[72];   /* a module that is not known */
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
    int embedding_norm; /* a norm on the sum of embedding and position */
    int final_norm;     /* a norm at the end of each stack */
    int attention_bias, ffn_bias;
    int no_output_bias;     /* attention_bias is for q, k and v only */
    int linear_in_out;      /* matrices are stored [in][out] */
    int gated;              /* act(x W^T) times x V^T, W and V side by side in fc1 */
    size_t head_width;      /* 0: d / heads */
    size_t key_heads;       /* of self-attention; 0: as many as heads, else a divisor of them */
    int unscaled_attention; /* scores are q k, not q k / sqrt(head width) */
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
    const char *window_layers;  /* [layers] or NULL: 1 for a layer with a window */
    double rope_theta;          /* base of rotary embeddings of queries and keys; 0: none */
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

/* sentence.c: what sentence-transformers wrote beside config.json, if it did. */
iso_status model_sentence_read(model_config *config, model_arena *arena, const char *directory,
                               iso_error *error);

/* ---------------------------------------------------------------------------------- weights */

typedef struct model_norm {
    const float *gamma, *beta; /* [d]; gamma NULL: this norm does not exist */
} model_norm;

typedef struct model_linear {
    iso_packed w;       /* n 0: there is none */
    const float *plain; /* instead of w.data: [n][k], or turned: [k][n] */
    int turned;
    const float *bias; /* may be NULL */
} model_linear;

/* An embedding table: row-major, or, to keep one copy of a tied matrix, the packed logits. */
typedef struct model_table {
    const float *rows; /* [V][d], or NULL */
    iso_packed packed;
} model_table;

typedef struct model_layer {
    model_linear self_qkv; /* d -> q | k | v */
    model_linear self_out;
    model_norm self_norm;
    const float *q_norm, *k_norm;              /* [dh] of each head, or NULL */
    model_linear cross_q, cross_kv, cross_out; /* decoder only */
    model_norm cross_norm;
    model_linear fc1, fc2;
    model_norm ffn_norm;
    const float *relative; /* [buckets of the model][H] the bias of self-attention, or NULL */
    size_t window;         /* how many keys a query of self-attention sees, its own too; 0: all */
} model_layer;

typedef struct model_stack {
    size_t layers, H, dh, f, V; /* 0 layers: there is no such stack */
    size_t Hk;                  /* heads of keys and values of self-attention: each for H / Hk */
    size_t qkv;                 /* width of q | k | v: (H + 2 Hk) dh */
    const float *rope;          /* [max_positions][rotary], or NULL */
    size_t rotary;              /* how many elements of a head turn */
    float scale;                /* of the scores of attention */
    model_layer *layer;
    const uint32_t *first_distance; /* [buckets] of each bucket of one direction, or NULL */
    size_t buckets;
    model_table embedding;
    const float *positions; /* [max_positions][d] */
    model_norm embedding_norm, final_norm;
} model_stack;

struct iso_model {
    model_config config;
    model_stack encoder, decoder;
    size_t columns; /* of a row between two ops: the model's width, or that of all heads */
    size_t hidden;  /* of a row within the feed-forward layer */
    model_linear logits;
    model_linear head_dense, pooler; /* of an encoder alone; may be absent */
    model_norm head_norm;
    iso_model_info info;
    model_map *maps; /* [map_count], files in which weights are used, or NULL */
    size_t map_count;
    iso_profile *profile; /* of the caller, or NULL */
    model_arena arena;
};

/* Where weights come from while a model is loaded. */
typedef struct model_source {
    const model_checkpoint *checkpoint;
    const char *prefix; /* that names may lack in the file */
    model_arena *arena;
    const iso_context *context;
    iso_error *error;
    int load; /* 0: only names, element types and shapes are checked, and parameters counted */
    int reject_nonfinite;
    model_map *maps; /* of each shard, where files are to be used as they lie; or NULL */
    size_t parameters;
    size_t bytes; /* that the weights will take */
    model_arena scratch;
    struct model_take *takes; /* [take_count] to be read; there is room for take_limit */
    size_t take_count, take_limit;
    size_t chunk_floats; /* of a thread that reads: */
    float *chunk;        /* [chunk_floats] */
    unsigned char *raw;  /* [2 chunk_floats] bytes as the file has them */
} model_source;

#define MODEL_MAX_NAME 192

/* While nothing is loaded yet: n x k floats will be needed. */
iso_status model_source_plan(model_source *source, size_t n, size_t k);

/* The first of `count` names that the file has, also without their prefix; or NULL. */
const model_tensor *model_source_find(const model_source *source, const char *const *names,
                                      size_t count);

/*
 * Weights by name: their memory, which model_source_finish fills. A name of several parts, 3 at
 * most, means tensors of the same shape stacked: packed [parts n][k], vectors [parts n]. `in_out`:
 * one tensor of the shape [k, n]. `leading_one`: the shape in the file is [1, n].
 */
iso_status model_take_packed(model_source *source, model_linear *out, const char *const *names,
                             size_t parts, size_t n, size_t k, int in_out);
/* q [n][k], and k and v of other_n rows: packed [n + 2 other_n][k], and as a vector. */
iso_status model_take_grouped(model_source *source, model_linear *out, const char *const *names,
                              size_t n, size_t other_n, size_t k);
iso_status model_take_grouped_vector(model_source *source, const float **out,
                                     const char *const *names, size_t n, size_t other_n);
iso_status model_take_vector(model_source *source, const float **out, const char *const *names,
                             size_t parts, size_t n, int leading_one);
iso_status model_take_rows(model_source *source, const float **out, const char *name, size_t n,
                           size_t k);
/* The same for rows that will not be changed. */
iso_status model_take_table(model_source *source, const float **out, const char *name, size_t n,
                            size_t k);

/* Reads all that was taken since the last time, with the threads of the context. The error is the
 * one that a single thread would have met first. */
iso_status model_source_finish(model_source *source);

iso_status model_take_all(iso_model *model, model_source *source); /* take.c */

/* ----------------------------------------------------------------------- the forward pass */

/*
 * Structs that begin with their size may come from an older header, and be shorter: not shorter
 * than in the first version, which ended with `last`. Beyond that, members may be used only if
 * `size` reaches them.
 */
#define MODEL_SIZE_UP_TO(type, last)                                                               \
    ((offsetof(type, last) + sizeof((type){0}.last) + _Alignof(type) - 1) / _Alignof(type) *       \
     _Alignof(type))
#define MODEL_SIZE_IS_KNOWN(p, last)                                                               \
    ((p)->size >= MODEL_SIZE_UP_TO(__typeof__(*(p)), last) && (p)->size <= sizeof *(p))

/* The options in `own`, what their caller does not know being 0; NULL when the size is unknown. */
#define MODEL_OPTIONS(options, own, last)                                                          \
    (MODEL_SIZE_IS_KNOWN(options, last)                                                            \
         ? memcpy(memset(&(own), 0, sizeof(own)), options, (options)->size)                        \
         : NULL)

struct model_cache;

#define MODEL_BLOCK_ROWS 128 /* that go together through all ops between attentions, at most */

/* One call: its memory, its context with a workspace for every op, and row buffers. */
typedef struct model_run {
    const iso_model *model;
    iso_context context;
    iso_error *error;
    model_arena arena;
    iso_profile *profile; /* of the caller, or NULL */
    double lap;           /* when the last lap ended, if there is a profile */
    size_t rows;          /* of the buffers */
    float *x;             /* [rows][d] the stream */
    float *h;             /* [rows][columns of the model] */
    float *wide;          /* [rows][3 columns] */
    float *hidden;        /* [rows that go together][hidden of the model] */
    uint32_t *iota;       /* [rows] 0, 1, 2 ... */
    size_t threads;
    struct model_part *parts;        /* [threads], or NULL */
    const struct model_shown *shown; /* who wants to see attention, or NULL */
    float *weights;                  /* where the attention of the next call goes, or NULL */
} model_run;

/* What a thread works with that takes rows on its own: a run on some rows of another one. */
typedef struct model_part {
    model_run run;
    iso_error error;
    iso_profile profile; /* counts its multiply-adds */
    iso_status status;
} model_part;

/* Of one sequence the attention of some layers: [layers][H][T][S] of that kind. */
typedef struct model_shown {
    iso_attention_kind kind;
    size_t first, layers, floats; /* the last: of a layer */
    float *weights;
} model_shown;

/* Layer l is next: its attention of that kind is shown, or not. */
static inline void model_show(model_run *run, iso_attention_kind kind, size_t l) {
    const model_shown *s = run->shown;
    run->weights = s && s->kind == kind && l >= s->first && l - s->first < s->layers
                       ? s->weights + (l - s->first) * s->floats
                       : NULL;
}

/* Attention over sequences that lie one after the other: queries and keys of one of them. */
typedef struct model_span {
    size_t first_q, T, first_k, S;
} model_span;

/* The bias of self-attention by distance, as ISOBIT_BY_DISTANCE says it: key j of query i at
 * zero + j - i of its head. */
typedef struct model_bias {
    float *values;          /* [H][ld]; NULL: there is no bias */
    size_t ld, zero, after; /* the last: keys that follow a query, at most */
    const float *of;        /* the table of the layer that `values` is of */
} model_bias;

/* run.c. `memory`: an arena to go on with, which the run takes over; NULL for a new one. */
iso_status model_run_begin(model_run *run, model_arena *memory, const iso_model *model,
                           const iso_context *context, size_t rows, iso_error *error);
/* Gives the ops of this run at least so much workspace. */
iso_status model_run_workspace(model_run *run, size_t bytes);
/* Workspace for products of exactly `rows` rows; more rows may need less. */
iso_status model_run_linear_workspace(model_run *run, size_t rows);
iso_status model_run_end(model_run *run, iso_status status);
/* Whether each op has all threads. Who wants to know of each kind of op has them one by one. */
int model_run_one_by_one(const model_run *run, size_t rows);
/* An op has failed, where none should. */
iso_status model_run_fail(model_run *run, iso_status status, const char *where);

/* profile.c: without a profile, as usual, a test of a pointer. */
double model_now(void); /* seconds, from an arbitrary start */
void model_profile_lap(model_run *run, iso_profile_kind kind);

/* The time since the last lap was spent on `kind`. */
static inline void model_lap(model_run *run, iso_profile_kind kind) {
    if (run->profile && run->profile->by_kind)
        model_profile_lap(run, kind);
}

/* So many multiply-adds. */
static inline void model_count(const model_run *run, size_t m, size_t n, size_t k) {
    if (run->profile)
        run->profile->flops += 2.0 * (double)m * (double)n * (double)k;
}

/* layers.c: each a piece of the paper, rows x d. */
iso_status model_project(model_run *run, float *y, size_t ldy, const float *x, size_t ldx,
                         const model_linear *linear, size_t rows, iso_activation act,
                         const float *residual);

/*
 * What rows go through between one attention and the next, in this order; what is absent is left
 * out. No row needs another one here.
 */
typedef struct model_positionwise {
    const model_stack *embed; /* the stack whose embeddings of `ids` at `positions` are x */
    const uint32_t *ids, *positions;
    const model_layer *heads;  /* the layer whose norms of queries and keys `next` needs */
    const model_stack *rotate; /* the stack whose rotary embeddings turn what `next` gives */
    const model_linear *out;   /* of the attention that run->h holds, with its norm */
    const model_norm *out_norm;
    const model_layer *feed_forward;
    const model_linear *next; /* into the next attention, with its norm: to run->wide */
    const model_norm *next_norm;
    const model_norm *last; /* the norm at the end of a stack */
} model_positionwise;

/* y = norm of x; y rows of ldy. */
iso_status model_normalize(model_run *run, float *y, size_t ldy, const float *x, size_t rows,
                           const model_norm *norm);
iso_status model_between(model_run *run, const model_positionwise *p, size_t rows); /* between.c */
/* The same without dealing out rows: an op after the other. */
iso_status model_positionwise_rows(model_run *run, const model_positionwise *p, size_t rows);
/* Hk: heads of k and v; window: of each query, 0 for none. The bias may be NULL, or have no values.
 */
iso_status model_attend_spans(model_run *run, const model_stack *stack, size_t Hk, const float *q,
                              size_t ldq, const float *k, const float *v, size_t ldk,
                              const model_span *spans, size_t count, int causal, size_t window,
                              const model_bias *bias);
iso_status model_attend_workspace(model_run *run, const model_stack *stack, size_t Hk, size_t ldq,
                                  size_t ldk, const model_span *spans, size_t count, int causal,
                                  const model_bias *bias);

/* relative.c: how many distances from 0 on share the first bucket, how many the next one, and so
 * on, of n for one direction: first[b] is the first distance of bucket b, or of a later one. */
void model_first_distances(uint32_t *first, size_t n, size_t max_distance);
/* Memory for spans of up to `longest` positions, if the stack has such a bias. */
iso_status model_bias_make(model_bias *bias, model_run *run, const model_stack *stack,
                           size_t longest, int causal);
/* From now on that of a layer; at no cost if it is that already. */
void model_bias_set(model_bias *bias, const model_stack *stack, const model_layer *layer);
/* Up to T keys that precede a query, and its own: [H][T], the last one that of distance 0. */
void model_bias_before(float *values, const model_stack *stack, const model_layer *layer, size_t T);

/* transformer.c: run->x holds the result. */
iso_status model_encode(model_run *run, const uint32_t *ids, const uint32_t *positions,
                        const model_span *spans, size_t count, size_t rows);
/* Whole sequences of a decoder, [rows] in all, sequence i at self[i]. */
typedef struct model_decoder_batch {
    uint32_t *ids, *positions;
    model_span *self;
    size_t count, rows;
    /* What an encoder made, or cross is NULL: */
    model_span *cross;
    const float *memory; /* [memory_rows][d] */
    size_t memory_rows;
    float *kv; /* [memory_rows][2 H dh] scratch */
} model_decoder_batch;

/* `cache`, if not NULL, receives the keys and values of sequence i for the first beam of sentence
 * places[i]. */
iso_status model_decode_whole(model_run *run, const model_decoder_batch *batch,
                              struct model_cache *cache, const size_t *places);
iso_status model_logits(model_run *run, float *logits, const float *x, size_t rows);
/* Whether the model has the stack that a call needs; an error that says so if not. */
iso_status model_needs(const model_stack *stack, const char *name, iso_error *error);

/*
 * The keys and values of decoding: sentences x beams, one target position at a time, each sentence
 * at its own. Without an encoder there are none of a source; a prompt takes the first positions of
 * a sentence instead. What lies beyond the lengths is never read.
 */
typedef struct model_cache {
    size_t sentences, beams, T, S; /* capacities; S 0: no encoder */
    size_t *source_lengths;        /* [sentences] */
    size_t *lengths;               /* [sentences] positions that there are */
    size_t *key_lengths;           /* [sentences x beams] of a step */
    float *self_k, *self_v;        /* [layers][sentences x beams][H] panels | [T][dh] */
    float *cross_k, *cross_v;      /* [layers][sentences][H] panels | [S][dh] */
    size_t panels_t, panels_s;     /* floats of one head's panels */
    float *bias;                   /* [biases][H][T], the last one of distance 0; or NULL */
    size_t biases;                 /* 1: the same one for all layers */
    float *row_bias;               /* [sentences x beams][H][T] of a step, or NULL */
} model_cache;

/* Bytes that one sentence takes in a cache; 0 on overflow. */
size_t model_cache_bytes(const iso_model *model, size_t beams, size_t T, size_t S);
/* Workspace for every step. */
iso_status model_cache_workspace(const model_cache *cache, model_run *run, float *weights);
iso_status model_cache_make(model_cache *cache, model_run *run, size_t sentences, size_t beams,
                            size_t T, size_t S);
/* Computes the keys and values of the encoder output run->x, that at spans[i] for sentence
 * first + i. */
iso_status model_cache_sources(model_cache *cache, model_run *run, size_t first,
                               const model_span *spans, size_t count, size_t rows);
/* Rows of the self-attention caches; of a sentence all that there is. */
void model_cache_copy_beam(model_cache *cache, const iso_model *model, size_t to, size_t from);
void model_cache_copy_sentence(model_cache *cache, const iso_model *model, size_t to, size_t from);
/*
 * One step for sentences x beams rows, each at the position where its sentence is; the lengths grow
 * by it. weights, where not NULL, receives the cross-attention [layers][sentences][H][beams][S of
 * the cache].
 */
iso_status model_decode_step(model_cache *cache, model_run *run, const uint32_t *ids,
                             uint32_t *positions, size_t sentences, float *weights);

/* One sequence, or pair of sequences, of a call, sorted so that equal lengths are neighbours. */
typedef struct model_item {
    size_t S, T;                       /* lengths */
    size_t first_source, first_target; /* where they begin in the arrays of the call */
    size_t index;                      /* in the order of the call */
} model_item;

/*
 * Items for `count` sources and, if not NULL, targets: checked (`target_limit` for the latter),
 * longest first. The array is in the arena.
 */
iso_status model_items(model_item **items, model_arena *arena, const iso_model *model,
                       const uint32_t *sources, const size_t *source_lengths,
                       const uint32_t *targets, const size_t *target_lengths, size_t count,
                       iso_error *error);

/* The ids of some items, one after the other, ready for the encoder. */
typedef struct model_batch {
    uint32_t *ids, *positions; /* [rows] */
    model_span *spans;         /* [count] */
    size_t count, rows;
} model_batch;

iso_status model_batch_sources(model_batch *batch, model_arena *arena, const iso_model *model,
                               const model_item *items, size_t count, const uint32_t *sources,
                               iso_error *error);

/* x = log softmax(x), [rows][V] */
iso_status model_log_softmax(model_run *run, float *x, size_t rows, size_t V);

/* Checks ids and lengths; `what` is "source" or "target". */
iso_status model_check_ids(const uint32_t *ids, size_t length, size_t V, size_t limit,
                           const char *what, size_t sequence, iso_error *error);
iso_status model_check_context(const iso_context *context, iso_error *error);

#endif
