/* SPDX-License-Identifier: MIT
 *
 * A strict reader of the files of SentencePiece, before libsentencepiece or a pipeline sees them.
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

enum { TEXT_MAX_PIECE_BYTES = 1024 };

typedef struct text_piece {
    const char *text; /* in the file: not terminated */
    size_t bytes;
    text_piece_type type;
    float score; /* finite */
} text_piece;

/* How pieces are found in a text; the values of the file. */
typedef enum text_spm_model { TEXT_SPM_UNIGRAM = 1, TEXT_SPM_BPE } text_spm_model;

/* All of it points into the file. */
typedef struct text_pieces {
    text_piece *pieces;
    size_t count;
    text_spm_model model;
    uint64_t unk; /* the number of the unknown piece, as the file has it: may be beyond them */
    const char *unk_text; /* its text, not terminated */
    size_t unk_bytes;
    const char *charsmap; /* of the normaliser, for text_charsmap_open; none: 0 bytes */
    size_t charsmap_bytes;
} text_pieces;

/*
 * Refuses a file that libsentencepiece could not read without harm: the wire format of protobuf,
 * pieces, scores, and the double arrays of normalisation, each index of which must stay inside.
 */
iso_status text_spm_check(text_pieces *pieces, model_arena *arena, const char *name,
                          const char *proto, size_t bytes, iso_error *error);

/* A table of normal forms: the longest way through it that no reader may leave. */
typedef struct text_charsmap {
    const unsigned char *units; /* of the double array, each 4 bytes, the lowest first */
    const char *strings;
    size_t string_bytes;
} text_charsmap;

/*
 * The table that the normaliser of a file has, or tokenizer.json; the same checks. No bytes at all
 * are a table without entries: units is NULL.
 */
iso_status text_charsmap_open(text_charsmap *map, model_arena *arena, const char *name,
                              const char *bytes, size_t count, iso_error *error);
/* The normal form of the shortest beginning of a text that the table has one for, or NULL. */
const char *text_charsmap_find(const text_charsmap *map, const char *text, size_t bytes);

#endif
