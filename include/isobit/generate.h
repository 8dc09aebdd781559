/* SPDX-License-Identifier: MIT
 *
 * Generation with the models of model.h: greedily, with beams, by sampling; and continuous batches.
 */
#ifndef ISOBIT_MODEL_H
#include <isobit/model.h> /* which includes this */
#elif !defined ISOBIT_GENERATE_H
#define ISOBIT_GENERATE_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Generation. The sources of a decoder alone are prompts, of at least one token, which is
 * continued; repetition penalty and no_repeat_ngram count the prompt. Where neither the options nor
 * the files limit the length, 20 tokens are generated, and where the files do, what the positions
 * of the model leave. Members that are 0 take the model's default (generation_config.json,
 * config.json), unless stated. The algorithms are those of transformers >= 4.50, ties going to the
 * lowest index.
 *
 * With sampling each token is drawn at random from what the processors (repetition penalty and so
 * on) leave, after temperature, top-k, top-p and min-p, in this order. The random numbers are a
 * function of the seed, the number of the source, the index of the sample and the position: one
 * seed gives the same text on every instruction set, with any number of threads, whatever else is
 * in the call (docs/numerics.md).
 */
typedef enum iso_early_stopping {
    ISOBIT_EARLY_DEFAULT = 0,
    ISOBIT_EARLY_FALSE,
    ISOBIT_EARLY_TRUE,
    ISOBIT_EARLY_NEVER
} iso_early_stopping;

typedef enum iso_sampling {
    ISOBIT_SAMPLING_DEFAULT = 0, /* do_sample of the model */
    ISOBIT_SAMPLING_OFF,         /* greedy or beams */
    ISOBIT_SAMPLING_ON           /* the model's own number of beams is then left aside */
} iso_sampling;

/* One token of a sequence that grows. The library makes it; it may get more members at its end. */
typedef struct iso_token {
    size_t source;     /* index in the call */
    size_t hypothesis; /* 0 to hypotheses - 1 */
    size_t position;   /* in its sequence, from 0 */
    uint32_t id;
    float log_prob; /* as in iso_hypothesis */
    int last;       /* 1: its sequence ends here */
} iso_token;

/* What has been generated of one sequence, the newest token last. It may get more members. */
typedef struct iso_sequence {
    size_t source; /* index in the call */
    const uint32_t
        *ids; /* [length], without the start token or the prompt; valid during the call */
    size_t length;
} iso_sequence;

typedef struct iso_generate_options {
    size_t size;       /* sizeof(iso_generate_options) */
    size_t beams;      /* 1: greedy; more than 1 excludes sampling (ISOBIT_E_OPTION) */
    size_t hypotheses; /* how many to return for each source, at most beams; with sampling so many
                          independent samples; 0: 1 */
    size_t max_length; /* of the target, the decoder start token included: at least 2, and at most
                          max_positions + 1 (ISOBIT_E_LIMIT), the last token needing none; of a
                          decoder alone the prompt is counted instead */
    size_t max_new_tokens; /* not counting the start token; wins over max_length; 0: not set */
    int has_length_penalty;
    float length_penalty; /* used when has_length_penalty */
    iso_early_stopping early_stopping;
    float repetition_penalty; /* 0: default; 1: none */
    size_t no_repeat_ngram;   /* 0: default */
    size_t min_length;        /* start token, or prompt, included; 0: default */
    int attention;            /* 1: return cross-attention weights; ISOBIT_E_UNSUPPORTED without an
                                 encoder */
    size_t batch_tokens;      /* sources are grouped to about this many tokens; 0: automatic */
    int has_forced_bos;
    uint32_t forced_bos; /* used when has_forced_bos: the first token of each target, in place of
                            the model's forced_bos_token_id (the language, where models have
                            several); ISOBIT_E_RANGE outside of the vocabulary */
    iso_sampling sampling;
    /* The next four are used, and checked (ISOBIT_E_OPTION), with sampling only. */
    float temperature; /* above 0; 0: default, which is 1 where the files say nothing */
    size_t top_k; /* tokens kept, and those as probable as the last of them; SIZE_MAX, as any number
                     from the vocabulary on: all; 0: default, which is 50 as in transformers */
    float top_p;  /* above 0, at most 1: the fewest most probable tokens that reach this sum are
                     kept; 1: all; 0: default, which is 1 */
    int has_min_p;
    float min_p; /* used when has_min_p: 0 to 1, what is less probable than min_p times the most
                    probable token is left out; default 0 */
    uint32_t seed[2]; /* 64 bits, the low half first; any value */
    /* The number of the first source, for the random numbers: those who cut their sources into
     * several calls count on, and get the same texts. */
    size_t first_source;
    /* Sequences of ids, each as its length and then its ids: a target ends with the first of them
     * that it contains. They are compared with generated tokens only; ISOBIT_E_DIM where lengths do
     * not fit. stop_count is the count of all these numbers. */
    const uint32_t *stop_ids;
    size_t stop_count;
    /*
     * Called for each token of the result: greedy and sampled ones as soon as they are there, those
     * of a beam search when their source is finished. The positions of one sequence come in order;
     * between sequences no order is promised. It runs in the thread that called iso_generate, one
     * call at a time, and may use the library, but must not jump out. What it returns ends the
     * call if it is not 0: iso_generate then gives ISOBIT_E_CANCELLED and no result, since the
     * caller has seen all tokens so far.
     */
    int (*on_token)(void *user, const iso_token *token); /* NULL: none */
    void *user;                                          /* for on_token */
    /*
     * Called for each token that is chosen and does not end its sequence by itself: whether the
     * sequence ends with it, and this one alone. 0: it goes on; above 0: it ends here; below 0: the
     * call ends with ISOBIT_E_CANCELLED and no result. Of a beam search, as with the stopping
     * criteria of transformers, it is called for each candidate to continue a beam, of which most
     * are dropped. It runs in all threads of the executor, several calls at a time for different
     * sources, and in an order that is not promised: what it returns should depend on the sequence
     * only. It must not jump out, nor use the executor.
     */
    int (*is_last)(void *user, const iso_sequence *sequence); /* NULL: none */
    void *is_last_user;                                       /* for is_last */
} iso_generate_options;

/* One generated sequence, without the start token, or the prompt; a final EOS is included when
 * there is one. */
typedef struct iso_hypothesis {
    const uint32_t *ids;
    size_t length;          /* 0: fewer were found than asked for */
    float score;            /* beams: sum of log-probabilities / length^penalty; else the sum */
    const float *log_probs; /* [length], of each token as the search saw it, after processors; with
                               sampling before temperature, top-k, top-p and min-p */
    const float *attention; /* [decoder_layers][decoder_heads][length][source length], or NULL */
} iso_hypothesis;

/* The result of a call; owns all that it points to. */
typedef struct iso_generation {
    size_t count;               /* sources x hypotheses */
    size_t hypotheses;          /* for each source, best first; samples by their index */
    const iso_hypothesis *best; /* [count]: source i has best[i * hypotheses ...] */
} iso_generation;

ISOBIT_API iso_status iso_generate(iso_generation **result, const iso_model *model,
                                   const uint32_t *sources, const size_t *source_lengths,
                                   size_t count, const iso_generate_options *options,
                                   const iso_context *context, iso_error *error);
ISOBIT_API void iso_generation_free(iso_generation *result); /* NULL is allowed */

/*
 * Continuous batches, for servers: sequences of any length join a batch that runs, and leave it,
 * between any two steps. Each has options of its own. What comes of a sequence has the bits that
 * iso_generate gives for it alone, with the same options, whatever else is in the batch; random
 * numbers are those of the source first_source.
 *
 *     iso_batch_create(&batch, model, NULL, context, &error);
 *     iso_batch_add(batch, &number, ids, length, &options, &error);
 *     for (size_t unfinished = 1; unfinished;) {
 *         iso_batch_step(batch, &unfinished, &error);
 *         for (iso_generation *g; !iso_batch_take(batch, &g, &number, &error) && g;) {
 *             answer(number, g);
 *             iso_generation_free(g);
 *         }
 *         ... iso_batch_add(...) for whoever has come in the meantime
 *     }
 *     iso_batch_free(batch);
 *
 * A batch is used by one thread at a time; several batches may share a model. The model and the
 * context's executor must live as long as the batch (the structs of context, executor and options
 * are copied), and no profile counts it. Its caches are allocated by iso_batch_create, for
 * max_sequences of the greatest length. What a sequence needs is allocated by iso_batch_add. A step
 * allocates only what reading the sources of those takes that join in it, and keeps that for the
 * next ones.
 */
typedef struct iso_batch iso_batch;

typedef struct iso_batch_options {
    size_t size;            /* sizeof(iso_batch_options) */
    size_t max_sequences;   /* that run together; 0: 32, or as many as max_cache_bytes holds */
    size_t rows;            /* of each sequence: its beams, or samples; 0: 1 */
    size_t max_source;      /* tokens of the longest source, if the model has an encoder; 0: 512 */
    size_t max_length;      /* of targets, as in iso_generate_options, the start token or the prompt
                               included; 0: 513. This and max_source are lowered to what the positions
                               of the model serve */
    size_t max_cache_bytes; /* of keys and values: ISOBIT_E_LIMIT if max_sequences need more. 0: 1
                               GiB, or no limit where max_sequences is given */
    size_t step_tokens; /* of prompts that are read in one step: of a longer one a part, the next
                           part in the next step; 0: 512. Or of sources, or one longer source; 0:
                           2048 */
    size_t attention;   /* 1: sequences may ask for cross-attention weights */
} iso_batch_options;

ISOBIT_API iso_status iso_batch_create(iso_batch **batch, const iso_model *model,
                                       const iso_batch_options *options, const iso_context *context,
                                       iso_error *error);
ISOBIT_API void iso_batch_free(iso_batch *batch); /* NULL is allowed */

/*
 * One more sequence. It waits until one of the running ones has left, if max_sequences run, and
 * those that wait join in the order in which they were added. *number, if not NULL, receives its
 * number in this batch, counted from 0, which is also the `source` of iso_token and iso_sequence.
 * The source, the options and stop_ids are copied; batch_tokens is not used. ISOBIT_E_OPTION where
 * the batch was made for another number of rows, ISOBIT_E_LIMIT where it may get longer than the
 * batch was made for; else the errors of iso_generate. The others go on, whatever comes of it.
 */
ISOBIT_API iso_status iso_batch_add(iso_batch *batch, size_t *number, const uint32_t *source,
                                    size_t length, const iso_generate_options *options,
                                    iso_error *error);
/*
 * One token of each running sequence, after those that wait have joined, or a part of their prompts
 * has been read: a long one holds up the others for step_tokens at most. *unfinished, if not NULL,
 * receives how many run or wait then; nothing is done if there are none. Callbacks of sequences are
 * called from here, and must not use the batch; where one of them ends the call of iso_generate, it
 * ends its sequence, as iso_batch_cancel does, and this function goes on. ISOBIT_E_NOMEM where
 * there is no memory to read sources: then nothing has changed, and the next call tries again.
 */
ISOBIT_API iso_status iso_batch_step(iso_batch *batch, size_t *unfinished, iso_error *error);
/*
 * The next finished sequence, in the order in which they finished; those of one step in no promised
 * order. *result, with its hypotheses only, is the caller's (iso_generation_free), and outlives the
 * batch; NULL if there is none. What is not taken stays. With ISOBIT_E_NOMEM it can be taken later.
 */
ISOBIT_API iso_status iso_batch_take(iso_batch *batch, iso_generation **result, size_t *number,
                                     iso_error *error);
/* A sequence that waits, runs or has not been taken goes without a result. ISOBIT_E_RANGE where
 * there is no such number (any more). */
ISOBIT_API iso_status iso_batch_cancel(iso_batch *batch, size_t number, iso_error *error);

#ifdef __cplusplus
}
#endif

#endif
