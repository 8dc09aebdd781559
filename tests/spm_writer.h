/* SPDX-License-Identifier: MIT
 *
 * Files of SentencePiece made by a test: fields of protobuf, and pieces.
 */
#ifndef ISOBIT_TESTS_SPM_WRITER_H
#define ISOBIT_TESTS_SPM_WRITER_H

#include "text/spm_file.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* A file, or a message of it. */
typedef struct bytes {
    unsigned char data[1 << 16];
    size_t count;
} bytes;

static inline void put(bytes *b, const void *data, size_t count) {
    assert_true(b->count + count <= sizeof b->data);
    memcpy(b->data + b->count, data, count);
    b->count += count;
}

static inline void byte(bytes *b, unsigned value) {
    const unsigned char c = (unsigned char)value;
    put(b, &c, 1);
}

static inline void varint(bytes *b, uint64_t value) {
    for (; value > 127; value >>= 7)
        byte(b, (unsigned)(value & 127) | 128);
    byte(b, (unsigned)value);
}

static inline void field(bytes *b, unsigned number, const void *data, size_t count) {
    varint(b, number << 3 | 2);
    varint(b, count);
    put(b, data, count);
}

static inline void number_field(bytes *b, unsigned number, uint64_t value) {
    varint(b, number << 3);
    varint(b, value);
}

static inline void piece(bytes *b, const char *text, size_t count, uint32_t score, unsigned type) {
    static bytes one;
    one.count = 0;
    field(&one, 1, text, count);
    varint(&one, 2 << 3 | 5);
    for (int i = 0; i < 4; i++)
        byte(&one, score >> 8 * i & 255);
    number_field(&one, 3, type);
    field(b, 1, one.data, one.count);
}

static const uint32_t minus_one = 0xbf800000;

/* Pieces for <unk>, a, b, and the bar that stands for a space. */
static inline void good_pieces(bytes *b) {
    piece(b, "<unk>", 5, 0, TEXT_PIECE_UNKNOWN);
    piece(b, "a", 1, minus_one, TEXT_PIECE_NORMAL);
    piece(b, "b", 1, minus_one, TEXT_PIECE_NORMAL);
    piece(b, "\xe2\x96\x81", 3, minus_one, TEXT_PIECE_NORMAL);
}

#endif
