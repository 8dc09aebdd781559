/* SPDX-License-Identifier: MIT
 *
 * Stands in for sentencepiece.cc where isobit is built without libsentencepiece: everything but
 * loading such a model works.
 */
#include "sentencepiece.h"

#include <stdio.h>

iso_status text_spm_load(text_spm **spm, const char *proto, size_t bytes, char *why,
                         size_t bytes_of_why) {
    (void)spm, (void)proto, (void)bytes;
    (void)snprintf(why, bytes_of_why,
                   "this isobit was built without SentencePiece (ISOBIT_SENTENCEPIECE)");
    return ISOBIT_E_UNSUPPORTED;
}

iso_status text_spm_encode(const text_spm *spm, const char *text, size_t bytes, text_spm_put *put,
                           void *to) {
    (void)spm, (void)text, (void)bytes, (void)put, (void)to;
    return ISOBIT_E_UNSUPPORTED;
}

iso_status text_spm_decode(const text_spm *spm, const char *const *pieces, size_t count,
                           text_spm_put *put, void *to) {
    (void)spm, (void)pieces, (void)count, (void)put, (void)to;
    return ISOBIT_E_UNSUPPORTED;
}

void text_spm_free(text_spm *spm) { (void)spm; }
