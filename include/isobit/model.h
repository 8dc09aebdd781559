/* SPDX-License-Identifier: MIT
 *
 * Encoder-decoder Transformers ("Attention Is All You Need" and descendants) on the operations of
 * ops.h: load a checkpoint directory, encode, score. With it come generate.h, which generates, and
 * text.h, which has tokenizers. Library: isobit_model.
 *
 * Token ids are uint32_t, checked against the vocabulary (ISOBIT_E_RANGE). A batch of sequences is
 * passed as one array of ids, one sequence after the other, with the length of each: results do
 * not depend, to the bit, on which sequences travel together, and come in the order of the call.
 * A source without any token is ISOBIT_E_DIM (an empty sentence is its EOS); a sequence longer than
 * the model's positions is ISOBIT_E_LIMIT.
 *
 * Of a context the instruction set and the executor are used; memory is allocated by the call, at
 * its beginning: none between two steps of a search.
 */
#ifndef ISOBIT_MODEL_H
#define ISOBIT_MODEL_H

#include <isobit/isobit.h>
#include <isobit/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Where a call can fail for reasons that a code cannot tell, it fills this, if given: one English
 * sentence that names the file, tensor or key, what was found and what was expected. Text that
 * comes from files is escaped and cut.
 */
typedef struct iso_error {
    iso_status status;
    char message[500];
} iso_error;

/* A loaded model: immutable, may be shared by any number of threads. */
typedef struct iso_model iso_model;

/*
 * What linear layers, that of the logits too, multiply with.
 *   AUTO  int8 where a file has int8 (see iso_model_load), and else f32
 *   F32   floats; what a file has in int8 becomes floats, integer times scale, when it is loaded
 *   INT8  all matrices become int8 when they are loaded, those in blocks of GGUF too, which are
 *         rounded a second time; a quarter of the memory of F32. Products are those of
 *         iso_linear_s8: results differ from those of f32, and are the same bits with every
 *         instruction set and number of threads, in any batch, at once or step by step.
 *   INT4  as AUTO, but matrices that the model has in groups, of 4 or 8 bits (GGUF's blocks, and
 *         those of iso_model_quantize's INT4), stay as they are and multiply rows that are rounded
 *         to int8 in blocks of 32, see iso_linear_q_s8: faster than rows of f32, with an error that
 *         is small beside that of weights of 4 bits, and smaller than that of INT8; the same bits
 *         wherever INT8 has them. ISOBIT_E_UNSUPPORTED: the model has no such matrix.
 * Norms, attention, embeddings and biases stay f32. A tied embedding has the rows of the int8
 * matrix, integer times scale; one of its own stays as it is in the file.
 */
typedef enum iso_compute {
    ISOBIT_COMPUTE_AUTO = 0,
    ISOBIT_COMPUTE_F32,
    ISOBIT_COMPUTE_INT8,
    ISOBIT_COMPUTE_INT4
} iso_compute;

/*
 * F16 and BF16 take half the memory of a cache, for which steps of long texts wait; arithmetic
 * stays f32, results are those of rounded keys and values. F16 has three bits more for numbers
 * below 65520; what is larger becomes an infinity, and the result NaN. BF16 has room for all.
 */
typedef enum iso_cache { ISOBIT_CACHE_F32 = 0, ISOBIT_CACHE_F16, ISOBIT_CACHE_BF16 } iso_cache;

typedef struct iso_load_options {
    size_t size;             /* sizeof(iso_load_options) */
    int reject_nonfinite;    /* 1: a NaN or Inf among the weights is an error (ISOBIT_E_RANGE) */
    size_t max_header_bytes; /* of a safetensors file, the pickle of a .bin, or what precedes the
                                tensors of a GGUF file; 0: 100,000,000 */
    /* 1: weights that lie in a file as they are needed (F32, a matrix or embedding table in one
     * tensor) are used where they lie, mapped: not read, copied or packed, and shared by all
     * processes that do so. Results are the same bits. Only for files that nobody changes while the
     * model lives: it would change with them, and if they are cut off, the process gets SIGBUS. A
     * file is replaced safely by renaming another one to its name. */
    int map;
    /* How many positions a text may have; up to those that the model has anyway (max_positions of
     * its info, where this is 0) it says nothing, and more are for "longrope" and "dynamic" only:
     * see below. */
    size_t positions;
    /* 1: F16, BF16, GGUF's blocks and groups become f32 in memory: results are the same bits, and
     * matrices take two to seven times the memory. 0: matrices that a file has in one of these stay
     * so, or in 8 or 4 bits that hold the same, packed, and become f32 where they are multiplied.
     */
    size_t widen;
    /* What the keys and values that decoders attend to are rounded to, once: those of the caches of
     * decoding, of targets and of sources, and the same ones where a target or prompt is computed
     * at once, so that steps agree with it to the bit. Encoders are as they are. */
    size_t cache; /* an iso_cache; ISOBIT_E_OPTION for any other number */
    /* An iso_compute; ISOBIT_E_OPTION for any other number, and for INT8 or INT4 with `widen`,
     * which asks for the opposite. INT8 with `map`: matrices are read, as they become int8. */
    size_t compute;
} iso_load_options;

/*
 * Reads `directory`: config.json, generation_config.json (optional; where it exists, it replaces
 * all generation keys of config.json), and the weights (F32, F16, BF16, F64, which is rounded, or
 * int8) from the first of these that is there:
 *   model.safetensors
 *   model.safetensors.index.json   and the shards that it names, at most 512, in the same directory
 *   pytorch_model.bin              as torch.save writes a state dict: ZIP archive or older form
 *   pytorch_model.bin.index.json   and its shards
 * A .bin is a pickle, which could call anything; here it is only read, and whatever it asks for
 * beyond the tensors of a state dict is ISOBIT_E_UNSUPPORTED, with its name. Views with strides are
 * read as what they show. All names, element types and shapes are checked against config.json
 * before the first weight is read. Weights are converted to f32, but for matrices and embedding
 * tables of 16 bits or fewer (see `widen`), and packed, a piece at a time, with
 * the threads of the executor: a tied embedding is held once, and loading takes little more memory
 * than the model has in the end. The model, and the error if there are several, are the same with
 * any executor.
 * Safetensors may have matrices in int8 as compressed-tensors writes "int-quantized": X.weight of
 * I8, in the shape that floats would have, and X.weight_scale (F32, F16 or BF16; [n, 1] or [n])
 * with a scale for each of the n outputs, finite and not negative, 0 only where all of a row is.
 * What is not symmetric, or what "quantization_config" says beyond that (other methods, static
 * activations, blocks, fp8), is ISOBIT_E_UNSUPPORTED. See `compute`.
 * And in 4 or 8 bits in groups of 32, 64 or 128, "pack-quantized": X.weight_packed, X.weight_scale
 * (above 0 and finite) and X.weight_shape, [out][in] in every family. Matrices stay so in memory,
 * and become f32, number times scale, where they are multiplied.
 * Nothing of the files stays open, unless `map` is set. The files are untrusted: whatever they
 * hold, the call fails cleanly or gives a usable model. The families, by model_type, all as
 * transformers computes them:
 *   encoder-decoders  "isobit-transformer" (the paper's), "marian", "bart", "mbart", "pegasus",
 *                     "m2m_100" (M2M100, NLLB-200), "t5" (FLAN-T5, MADLAD-400 too), "mt5", "umt5"
 *   encoders          "bert" (MiniLM too), "roberta", "xlm-roberta", "camembert", "distilbert"
 *   decoders          "gpt2", "llama" (2 and 3 too), "mistral", "qwen2", "qwen3",
 *                     "phi3" (Phi-3, Phi-4-mini), "gemma" (the first one), "gemma2",
 *                     "gemma3_text", "gemma3" (what it makes of texts: the part for images is not
 *                     read), "opt"
 * Of "opt" the one of 350 million parameters is refused: it has norms behind its layers, and
 * narrower embeddings.
 * Of "gemma" the hidden_act "gelu" is the approximation by tanh, as its makers meant it and
 * transformers 5 has it; transformers 4.51 takes it at its word.
 *
 * Of t5, mt5 and umt5 an encoder alone is one whose is_encoder_decoder is false, whose
 * architectures say T5EncoderModel, MT5EncoderModel or UMT5EncoderModel, whose weights have no
 * layer of a decoder, or whose folder has the modules.json of sentence-transformers.
 * Sliding windows are those of the configuration; caches keep all keys.
 * Rotary embeddings may be scaled ("linear", "llama3", "yarn", "dynamic", "longrope"). "dynamic"
 * and "longrope" turn even the first keys otherwise once a text is longer than
 * max_position_embeddings, or original_max_position_embeddings: the model has no more positions
 * than that, unless `positions` of the options asks for more. Then the choice is made once, while
 * the model is loaded, and is for all texts, short ones too, so that a text may grow: "longrope"
 * has its long factors, as transformers has for whole texts of more than the original positions;
 * "dynamic" (not with sliding windows) has the base of a text of just so many positions.
 *
 * `directory` may also be the path of a .gguf file, or a directory that has exactly one
 * and no config.json: GGUF of version 2 or 3, little-endian, in one file, of the architectures
 * llama (that is Mistral too), qwen2, qwen3, gemma, gemma2, gemma3, gpt2, bert, t5 and t5encoder,
 * with tensors of F32, F16, BF16 or F64, or of the blocks Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K,
 * Q4_K, Q5_K, Q6_K, IQ4_NL and IQ4_XS. A weight of these is scale * number, or that plus or minus
 * an offset, as ggml defines it: the product is exact and the sum rounded to f32 once. A scale or
 * offset that is not finite is ISOBIT_E_RANGE. Tensors of other types are ISOBIT_E_UNSUPPORTED,
 * with the name of the tensor and its type, and so is what else isobit lacks. The logits have the
 * bits of the folder that the file was made from; where Llama 3 stretches its rotary embeddings,
 * the file has rounded numbers for that. A generation ends with the file's eos, eot or eom token;
 * it has no other defaults for generation, and no head for masked tokens.
 *
 * Where tie_word_embeddings is true (of t5 and umt5 the default), T5 and its kind
 * scale their logits, and an lm_head.weight in the file is not used. Position tables that are
 * computed, not read, are limited to 2^26 elements (ISOBIT_E_LIMIT), so that a small file cannot
 * ask for gigabytes.
 */
ISOBIT_API iso_status iso_model_load(iso_model **model, const char *directory,
                                     const iso_load_options *options, const iso_context *context,
                                     iso_error *error);
ISOBIT_API void iso_model_free(iso_model *model); /* NULL is allowed */

/* What the configuration says; lives as long as the model. Absent ids are UINT32_MAX. */
typedef struct iso_model_info {
    const char *family; /* the model_type */
    /* Of a stack that the model does not have, all sizes are 0. */
    size_t d, encoder_layers, decoder_layers, encoder_heads, decoder_heads, encoder_ffn,
        decoder_ffn;
    size_t source_vocabulary, target_vocabulary;
    /* The longest source, and the longest target with its start token. 2^20 where positions have no
     * end, as with T5, which takes memory of heads x min(S, 512) x 2 S floats for S tokens. */
    size_t max_positions;
    uint32_t pad_id, bos_id, decoder_start_id, unk_id;
    const uint32_t *eos_ids;
    size_t eos_count;
    size_t default_beams, default_max_length;
    size_t parameters;   /* distinct weights */
    size_t weight_bytes; /* of the packed model in memory */
    int has_logits;      /* scores of tokens: not so where an encoder came without such a head */
    int has_pooler;
    size_t sentence_max_length; /* to which sentence-transformers cuts; else max_positions */
    /* What the files say of sampling, for iso_generate: top_k 0, top_p 1 and min_p 0 keep all. */
    int default_sampling;
    float default_temperature;
    size_t default_top_k;
    float default_top_p, default_min_p;
    size_t default_max_new_tokens; /* of a decoder alone; 0: default_max_length counts the prompt */
    size_t parameters_16;          /* of `parameters`, those that are held in 16 bits, */
    size_t parameters_8, parameters_4; /* and in 8 or 4, with scales: of groups, */
    size_t parameters_int8; /* or, of those in 8, of rows: so many are multiplied as int8 */
    /* Element types that the files have, and how many weights of each: "Q4_K 65536, F32 768". */
    const char *weight_types;
    size_t parameters_int4; /* of those in groups, of 4 or 8 bits: so many multiply rows of int8 */
    size_t sentence_d;      /* numbers of a vector of iso_sentence_embed_f32 */
} iso_model_info;

ISOBIT_API const iso_model_info *iso_model_get_info(const iso_model *model);

/*
 * Writes a model once more, as the folder `to`, with matrices of fewer bits; `directory` is one
 * that iso_model_load takes (no GGUF, and not quantised yet), and so is `to` afterwards. Matrices
 * are the linear layers, the logits and the embedding tables; all else (norms, biases, positions,
 * what no part of the model uses) keeps its bits. Weights are written as one model.safetensors;
 * other files of the folder are copied, but no other weights.
 *   BF16, F16  rounded to nearest, to even. ISOBIT_E_RANGE for a number that F16 has not.
 *   INT8       integers and a scale for each output, as iso_pack_s8 makes them: loaded, the folder
 *              has the bits that the model has with the compute INT8.
 *   INT4       numbers of 4 bits, -8 to 7, times an F16 scale for each `group` of a row: of some
 *              scales the one with the least squared error. The logits have 8 bits, -128 to 127.
 *              A matrix whose rows are no whole groups stays as it is.
 * Of INT8 and INT4 embeddings that are not the logits, too, stay as they are. Both have the form
 * of compressed-tensors, "int-quantized" (X.weight, X.weight_scale) and "pack-quantized"
 * (X.weight_packed, X.weight_scale, X.weight_shape), and quantization_config in config.json.
 * A matrix that its family stores [in][out] (GPT-2) stays so in INT8, and is [out][in] in INT4.
 *
 * A NaN or an infinity in a tensor is ISOBIT_E_RANGE, with its name. The bytes of the file are the
 * same with every instruction set, number of threads and machine. The folder is written as `to`
 * and ".partial", brought onto the disk, and then renamed: it is there complete or not at all.
 * `to` must not exist, or be an empty folder (ISOBIT_E_IO). What a process that was killed has
 * left there is removed by the next call for the same folder. Memory: some pieces of a tensor for
 * each thread of the executor.
 */
typedef enum iso_quantize_type {
    ISOBIT_QUANTIZE_BF16 = 0,
    ISOBIT_QUANTIZE_F16,
    ISOBIT_QUANTIZE_INT8,
    ISOBIT_QUANTIZE_INT4
} iso_quantize_type;

/* What became of a tensor. */
typedef struct iso_quantized_tensor {
    const char *name;
    const uint64_t *shape; /* [rank] in the file that was read */
    size_t rank;
    const char *from, *type;    /* of elements, before and now: "F32", "BF16" */
    const char *note;           /* why it is as it was, or otherwise than asked for; or NULL */
    uint64_t from_bytes, bytes; /* with scales */
    double largest;             /* error, in magnitude: of the number that is used instead */
    double rms, tensor_rms;     /* root mean square of the errors, and of the numbers themselves */
} iso_quantized_tensor;

typedef struct iso_quantize_options {
    size_t size; /* sizeof(iso_quantize_options) */
    size_t type; /* an iso_quantize_type; ISOBIT_E_OPTION for any other number */
    /* Tensors stay as they are whose names contain one of these texts. */
    const char *const *keep; /* [keep_count] */
    size_t keep_count;
    size_t group; /* of INT4: how many numbers of a row share a scale, 32, 64 or 128; 0: 32 */
    /* Where given, they are called by the thread of the call: when a tensor is written, in the
     * order of the names; and now and then how many bytes of how many have been read, where any
     * other number than 0 ends the call with ISOBIT_E_CANCELLED. */
    void (*report)(void *user, const iso_quantized_tensor *tensor);
    int (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
} iso_quantize_options;

ISOBIT_API iso_status iso_model_quantize(const char *directory, const char *to,
                                         const iso_quantize_options *options,
                                         const iso_context *context, iso_error *error);

/* Output of the encoder for one sequence: y [length][d]. Calls that need a stack which the model
 * does not have are ISOBIT_E_UNSUPPORTED. */
ISOBIT_API iso_status iso_encode_f32(float *y, const iso_model *model, const uint32_t *source,
                                     size_t length, const iso_context *context, iso_error *error);

/* The same for `count` sequences, one after the other in `sources` and in y. */
ISOBIT_API iso_status iso_encode_batch_f32(float *y, const iso_model *model,
                                           const uint32_t *sources, const size_t *lengths,
                                           size_t count, const iso_context *context,
                                           iso_error *error);

/*
 * Encoders alone (BERT and its kind): one vector for each sequence, y [count][sentence_d of
 * iso_model_info].
 *   MEAN    the mean of the encoder's output over all tokens of the sequence
 *   CLS     the output of the first token
 *   MAX     the largest of each component
 *   POOLER  tanh(W y + b) of the first token, where the model has a pooler
 * `pooling` 0 takes what the folder says (1_Pooling/config.json of sentence-transformers), and MEAN
 * where it says nothing. `normalize`: 1 divides each vector by its Euclidean norm, -1 does not, 0
 * takes what the folder says (modules.json), and yes where it says nothing.
 * Between the two are the folder's Dense modules (2_Dense ...; sentence-t5, GTR, LaBSE, distiluse):
 * act(W y + b), the identity, tanh, ReLU, GELU or SiLU. They are there whatever the options are, in
 * f32, also where the model has fewer bits, and sentence_d is the width of the last one; without
 * them it is d. A module that isobit does not have is ISOBIT_E_UNSUPPORTED, unless both options are
 * given, which then take the place of all modules: sentence_d is d.
 */
typedef enum iso_pooling {
    ISOBIT_POOLING_DEFAULT = 0,
    ISOBIT_POOLING_MEAN,
    ISOBIT_POOLING_CLS,
    ISOBIT_POOLING_MAX,
    ISOBIT_POOLING_POOLER
} iso_pooling;

typedef struct iso_sentence_options {
    size_t size; /* sizeof(iso_sentence_options) */
    iso_pooling pooling;
    int normalize;
} iso_sentence_options;

ISOBIT_API iso_status iso_sentence_embed_f32(float *y, const iso_model *model, const uint32_t *ids,
                                             const size_t *lengths, size_t count,
                                             const iso_sentence_options *options,
                                             const iso_context *context, iso_error *error);

/*
 * Scores of all tokens at each position of one sequence: logits [length][target_vocabulary]. Of an
 * encoder alone those of its masked language model: which token stands there;
 * ISOBIT_E_UNSUPPORTED where it came without that head. Of a decoder alone: which token comes next.
 */
ISOBIT_API iso_status iso_token_logits_f32(float *logits, const iso_model *model,
                                           const uint32_t *ids, size_t length,
                                           const iso_context *context, iso_error *error);

/*
 * The same of an encoder alone at some positions only, in any order: logits
 * [position_count][target_vocabulary], with the bits of those rows. ISOBIT_E_RANGE for a position
 * that is none.
 */
ISOBIT_API iso_status iso_token_logits_at_f32(float *logits, const iso_model *model,
                                              const uint32_t *ids, size_t length,
                                              const size_t *positions, size_t position_count,
                                              const iso_context *context, iso_error *error);

/*
 * Logits of a given target, one sequence: logits [target_length][target_vocabulary], row t being
 * the prediction after target[0..t]; target begins with the decoder start token. `stepwise` 0
 * computes all rows at once, 1 token by token through the caches: the same bits. A decoder alone
 * has no start token: source is NULL, source_length 0.
 */
ISOBIT_API iso_status iso_logits_f32(float *logits, const iso_model *model, const uint32_t *source,
                                     size_t source_length, const uint32_t *target,
                                     size_t target_length, int stepwise, const iso_context *context,
                                     iso_error *error);

/*
 * What the heads of some layers attend to in one sequence, or pair of sequences: weights
 * [layer_count][heads][queries][keys], the softmax with which values are added, 0 where nothing may
 * be seen. For who wants to look: nothing is as fast as without it.
 *   ENCODER  queries and keys are the source; target is NULL, target_length 0
 *   DECODER  both are the target, as iso_logits_f32 has it
 *   CROSS    queries are the target, keys the source
 * Layers are first_layer and those after it; ISOBIT_E_RANGE beyond the last one.
 */
typedef enum iso_attention_kind {
    ISOBIT_ATTENTION_ENCODER = 0,
    ISOBIT_ATTENTION_DECODER,
    ISOBIT_ATTENTION_CROSS
} iso_attention_kind;

ISOBIT_API iso_status iso_attention_weights_f32(float *weights, const iso_model *model,
                                                iso_attention_kind kind, size_t first_layer,
                                                size_t layer_count, const uint32_t *source,
                                                size_t source_length, const uint32_t *target,
                                                size_t target_length, const iso_context *context,
                                                iso_error *error);

/*
 * Log-probability of each token of given targets: `log_probs` receives one float for each target
 * token, in order. Targets do not include the decoder start token; whether they end with EOS is
 * the caller's choice. `count` sequences; sources and targets are concatenated. The sources of a
 * decoder alone are prompts, of at least one token, and the targets how they go on.
 */
ISOBIT_API iso_status iso_score_f32(float *log_probs, const iso_model *model,
                                    const uint32_t *sources, const size_t *source_lengths,
                                    const uint32_t *targets, const size_t *target_lengths,
                                    size_t count, const iso_context *context, iso_error *error);

/*
 * Where the time goes, for benchmarks. While a profile is set, each call on the model adds to it;
 * the caller owns it, and may run one call at a time only. It changes no result.
 */
typedef enum iso_profile_kind {
    ISOBIT_PROFILE_LINEAR = 0, /* products with weights, but for the logits */
    ISOBIT_PROFILE_LOGITS,     /* products with the weights of the logits */
    ISOBIT_PROFILE_ATTENTION,
    ISOBIT_PROFILE_NORM,
    ISOBIT_PROFILE_EMBEDDING,
    ISOBIT_PROFILE_CACHE,  /* keys and values into the caches, beams moving there */
    ISOBIT_PROFILE_SEARCH, /* from logits to tokens: log-softmax, the choice, beams */
    ISOBIT_PROFILE_OTHER,  /* memory, copies, results */
    ISOBIT_PROFILE_KINDS
} iso_profile_kind;

typedef struct iso_profile {
    size_t size;  /* sizeof(iso_profile) */
    int by_kind;  /* 1: fill kind_seconds, which takes a look at the clock for each operation */
    double flops; /* of matrix products and attention, two for each multiply-add */
    double kind_seconds[ISOBIT_PROFILE_KINDS];
    /* Of that, the steps of decoding: one position of all sentences of a group each. */
    size_t steps;
    double step_seconds, fastest_step, step_flops;
    double step_weight_bytes; /* of the matrices that they multiply with */
} iso_profile;

ISOBIT_API iso_status iso_model_set_profile(iso_model *model, iso_profile *profile); /* or NULL */

#ifdef __cplusplus
}
#endif

/* The rest of the interface. */
#include <isobit/generate.h>
#include <isobit/text.h>

#endif
