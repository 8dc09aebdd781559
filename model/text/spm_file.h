/* SPDX-License-Identifier: MIT
 *
 * A strict reader of .spm files, before libsentencepiece sees them.
 */
#ifndef ISOBIT_MODEL_SPM_FILE_H
#define ISOBIT_MODEL_SPM_FILE_H

#include "text.h"

typedef enum text_piece_type {
    TEXT_PIECE_NORMAL = 1,
    TEXT_PIECE_UNKNOWN,
    TEXT_PIECE_CONTROL,
    TEXT_PIECE_USER_DEFINED,
    TEXT_PIECE_UNUSED,
    TEXT_PIECE_BYTE
} text_piece_type;

typedef struct text_piece {
    const char *text; /* in the file: not terminated */
    size_t bytes;
    text_piece_type type;
} text_piece;

typedef struct text_pieces {
    text_piece *pieces;
    size_t count;
} text_pieces;

/*
 * Refuses a file that libsentencepiece could not read without harm: the wire format of protobuf,
 * pieces, scores, and the double arrays of normalisation, each index of which must stay inside.
 */
iso_status text_spm_check(text_pieces *pieces, model_arena *arena, const char *name,
                          const char *proto, size_t bytes, iso_error *error);

#endif
