/* SPDX-License-Identifier: MIT
 *
 * Text in and out of the models of model.h: tokenizers, and texts at which generation stops.
 */
#ifndef ISOBIT_MODEL_H
#include <isobit/model.h> /* which includes this */
#elif !defined ISOBIT_TEXT_H
#define ISOBIT_TEXT_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Text in and out. What a directory has is told by "tokenizer_class" in tokenizer_config.json or,
 * where that is missing, by its files:
 *   isobit-characters  code points as tokens, vocab.json; a line is split into words, each a
 *                      sequence of its own
 *   GPT2Tokenizer, RobertaTokenizer, BartTokenizer, Qwen2Tokenizer, BertTokenizer,
 *   DistilBertTokenizer, PreTrainedTokenizerFast, the same with "Fast" at the end
 *                      byte-level BPE or WordPiece: tokenizer.json; without it, but for the last
 *                      one, vocab.json and merges.txt, or vocab.txt. What tokenizer.json asks for
 *                      and isobit lacks is refused by name
 *   LlamaTokenizer, GemmaTokenizer, the same with "Fast" at the end
 *                      BPE with byte fallback, or what else tokenizer.json has; without it, but not
 *                      for Gemma, tokenizer.model (SentencePiece). add_bos_token (true if it is not
 *                      there) and add_eos_token of tokenizer_config.json say what is put around a
 *                      text
 *   MarianTokenizer    source.spm, target.spm (SentencePiece) and vocab.json: Marian, OPUS-MT.
 *                      Needs a library that was built with ISOBIT_SENTENCEPIECE
 *   M2M100Tokenizer    sentencepiece.bpe.model and vocab.json; the same holds
 *   NllbTokenizer, MBartTokenizer, MBart50Tokenizer, T5Tokenizer, PegasusTokenizer, the same with
 *                      "Fast" at the end
 *                      tokenizer.json; without it sentencepiece.bpe.model or spiece.model, unigram
 *                      or BPE. As transformers' "Fast" classes cut text, without SentencePiece
 * A .gguf file, or a directory of one, as iso_model_load takes it, has its tokenizer in itself: the
 * one that such files call "gpt2", with the words of "gpt-2", "llama-bpe" or "qwen2", or the pieces
 * and scores of SentencePiece's BPE, "llama", cut as from tokenizer.model with "legacy". Of added
 * tokens they do not say whether white space beside them goes along; none does. Those of "llama"
 * are found as the file has them; and it needs scores, types and a token for each byte.
 * ISOBIT_E_UNSUPPORTED for others ("bert", whose files do not say whether text is to be in lower
 * case), and for scores that are all the same, as files made without tokenizer.model have them: use
 * ids. The files are untrusted, as those of a model are.
 */
typedef struct iso_tokenizer iso_tokenizer;
ISOBIT_API iso_status iso_tokenizer_load(iso_tokenizer **tokenizer, const char *directory,
                                         iso_error *error);
ISOBIT_API void iso_tokenizer_free(iso_tokenizer *tokenizer); /* NULL is allowed */

/*
 * Languages, as the tokenizer names them ("eng_Latn", "en_XX"; M2M100: "en"). NULL: what
 * tokenizer_config.json says (src_lang, tgt_lang), else English as the source and no target.
 * ISOBIT_E_UNSUPPORTED for one that the tokenizer lacks, and for any where it has none.
 */
typedef struct iso_tokenizer_options {
    size_t size;                                   /* sizeof(iso_tokenizer_options) */
    const char *source_language, *target_language; /* not kept */
} iso_tokenizer_options;

/* The same as iso_tokenizer_load with options, or NULL. */
ISOBIT_API iso_status iso_tokenizer_load_with(iso_tokenizer **tokenizer, const char *directory,
                                              const iso_tokenizer_options *options,
                                              iso_error *error);
/*
 * The id of the target language, with which generation must begin (forced_bos of
 * iso_generate_options); UINT32_MAX if there is none.
 */
ISOBIT_API iso_status iso_tokenizer_forced_bos(const iso_tokenizer *tokenizer, uint32_t *id);

/*
 * One text as ids for iso_sentence_embed_f32, as sentence-transformers makes them from the folder:
 * after the prompt of default_prompt_name, without white space around both, in lower case where
 * do_lower_case says so, and cut to sentence_max_length tokens, of which the last one stays where
 * it is. Of a text that is empty, what is around it. ids [capacity]; ISOBIT_E_WORKSPACE says that
 * tokens->count are needed, ISOBIT_E_DIM that the text is several sequences, or nothing at all, and
 * ISOBIT_E_UNSUPPORTED that the folder asks for what isobit lacks.
 */
typedef struct iso_sentence_tokens {
    size_t count;            /* ids */
    size_t whole;            /* as many would there be uncut */
    size_t unknown, dropped; /* as iso_tokenizer_lacks has it */
} iso_sentence_tokens;

ISOBIT_API iso_status iso_sentence_ids(const iso_model *model, const iso_tokenizer *tokenizer,
                                       const char *text, size_t bytes, uint32_t *ids,
                                       size_t capacity, iso_sentence_tokens *tokens,
                                       iso_error *error);

/*
 * Whether the tokenizer fits the model: ISOBIT_E_CONFIG if not. It has as many tokens; or the model
 * has more ids, which some have for the sake of its shape: those give no text (not for
 * isobit-characters and MarianTokenizer, whose ids are all tokens).
 */
ISOBIT_API iso_status iso_tokenizer_fits(const iso_tokenizer *tokenizer, const iso_model *model,
                                         iso_error *error);

/*
 * Cuts one line of UTF-8 into sequences of source ids (each with its EOS): ids [capacity_ids],
 * lengths [capacity_sequences]; both counts are set to what is needed, and ISOBIT_E_WORKSPACE says
 * that a capacity was too small. An empty line, or one of punctuation only, has no sequence.
 */
ISOBIT_API iso_status iso_tokenizer_encode(const iso_tokenizer *tokenizer, const char *text,
                                           size_t bytes, uint32_t *ids, size_t capacity_ids,
                                           size_t *id_count, size_t *lengths,
                                           size_t capacity_sequences, size_t *sequence_count,
                                           iso_error *error);

/*
 * The same for a target of a model with an encoder, for iso_score_f32: each sequence is what
 * generation would give for that text. It begins with the target language, if there is one, or with
 * what begins all texts of such models (<s> of BART), and ends with EOS. *given receives how many
 * of its first ids, 0 or 1, are no part of the text.
 */
ISOBIT_API iso_status iso_tokenizer_encode_target(const iso_tokenizer *tokenizer, const char *text,
                                                  size_t bytes, uint32_t *ids, size_t capacity_ids,
                                                  size_t *id_count, size_t *lengths,
                                                  size_t capacity_sequences, size_t *sequence_count,
                                                  size_t *given, iso_error *error);

/*
 * How many characters (code points) of a text the vocabulary lacks: `unknown` of them became the
 * unknown token, `dropped` are in no token at all.
 */
ISOBIT_API iso_status iso_tokenizer_lacks(const iso_tokenizer *tokenizer, const char *text,
                                          size_t bytes, size_t *unknown, size_t *dropped,
                                          iso_error *error);
/* The same of a text as iso_tokenizer_encode_target takes it. */
ISOBIT_API iso_status iso_tokenizer_target_lacks(const iso_tokenizer *tokenizer, const char *text,
                                                 size_t bytes, size_t *unknown, size_t *dropped,
                                                 iso_error *error);

/* The text of one generated sequence, special tokens left out, NUL-terminated; see iso_info_json
 * for `text`, `bytes` and `needed`. */
ISOBIT_API iso_status iso_tokenizer_decode(const iso_tokenizer *tokenizer, const uint32_t *ids,
                                           size_t count, char *text, size_t bytes, size_t *needed);
/*
 * The same for a sequence that is still being generated: a character that lacks bytes at the end is
 * left out until the next ids bring them, so that what is shown need never be taken back. With byte
 * fallback all bytes at the end wait for another token: one of them that fits no character makes
 * U+FFFD of each, as in tokenizers.
 */
ISOBIT_API iso_status iso_tokenizer_decode_partial(const iso_tokenizer *tokenizer,
                                                   const uint32_t *ids, size_t count, char *text,
                                                   size_t bytes, size_t *needed);
/* The same for ids of a source, where sources have a vocabulary of their own. */
ISOBIT_API iso_status iso_tokenizer_decode_source(const iso_tokenizer *tokenizer,
                                                  const uint32_t *ids, size_t count, char *text,
                                                  size_t bytes, size_t *needed);

/*
 * Texts that end a sequence. A sequence ends with the first token with which its text, as
 * iso_tokenizer_decode gives it, has one of them in it: the text may lie in several tokens, begin
 * within one and end within one, which is the last. Only what is generated counts, no prompt. These
 * are the stop_strings of transformers, but that these look at the text of each token alone,
 * special ones and the space before the first word included.
 *
 * `texts` are copied; the tokenizer must live as long. ISOBIT_E_OPTION for an empty text. One
 * object may be used by any number of threads.
 */
typedef struct iso_stop iso_stop;
ISOBIT_API iso_status iso_stop_create(iso_stop **stop, const iso_tokenizer *tokenizer,
                                      const char *const *texts, size_t count, iso_error *error);
ISOBIT_API void iso_stop_free(iso_stop *stop); /* NULL is allowed */
/* is_last of iso_generate_options, with the object as is_last_user: 1, 0, or -1 where a text cannot
 * be had (no memory, an id that is no token). It decodes the last few tokens only. */
ISOBIT_API int iso_stop_is_last(void *stop, const iso_sequence *sequence);
/*
 * What to show of a text: *before receives the bytes before the first of the texts, or all. With
 * `partial`, of a text that still grows, also what may be the beginning of one is left out, so that
 * what is shown need never be taken back.
 */
ISOBIT_API iso_status iso_stop_find(const iso_stop *stop, const char *text, size_t bytes,
                                    int partial, size_t *before);

/* The text of one token (for labels), special tokens included; NULL when out of range. */
ISOBIT_API const char *iso_tokenizer_token(const iso_tokenizer *tokenizer, uint32_t id);
ISOBIT_API const char *iso_tokenizer_source_token(const iso_tokenizer *tokenizer, uint32_t id);

#ifdef __cplusplus
}
#endif

#endif
