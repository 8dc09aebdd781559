/* SPDX-License-Identifier: MIT
 *
 * SentencePiece for C: sentencepiece.cc on Debian's libsentencepiece, or no_sentencepiece.c where
 * that is not there. The library trusts its files; text_spm_check, which reads them first, does
 * not.
 */
#ifndef ISOBIT_MODEL_SENTENCEPIECE_H
#define ISOBIT_MODEL_SENTENCEPIECE_H

#include <isobit/isobit.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct text_spm text_spm; /* immutable: may be shared by any number of threads */

/* Receives text, piece by piece; not terminated. */
typedef void text_spm_put(void *to, const char *text, size_t bytes);

/*
 * A model from the bytes of a .spm file, which text_spm_check has passed. When that fails, `why`
 * [bytes_of_why] has the reason: ISOBIT_E_CONFIG, or ISOBIT_E_NOMEM, ISOBIT_E_UNSUPPORTED.
 */
iso_status text_spm_load(text_spm **spm, const char *proto, size_t bytes, char *why,
                         size_t bytes_of_why);
/* The pieces of a text, in order. ISOBIT_E_CONFIG: SentencePiece finds that its model contradicts
 * itself there. */
iso_status text_spm_encode(const text_spm *spm, const char *text, size_t bytes, text_spm_put *put,
                           void *to);
/* The text of pieces, in one call of `put`. */
iso_status text_spm_decode(const text_spm *spm, const char *const *pieces, size_t count,
                           text_spm_put *put, void *to);
void text_spm_free(text_spm *spm); /* NULL is allowed */

#ifdef __cplusplus
}
#endif

#endif
