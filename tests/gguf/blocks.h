/* SPDX-License-Identifier: MIT
 *
 * GGUF's blocks of quantised elements, written: bits are put where the format has them, by tables
 * and code of the tests alone.
 */
#ifndef ISOBIT_TESTS_GGUF_BLOCKS_H
#define ISOBIT_TESTS_GGUF_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

/* What a block holds; written block by block. */
typedef struct block_content {
    uint16_t scale, offset; /* F16 */
    int scales[16], offsets[16], numbers[256];
} block_content;

typedef struct block_kind {
    const char *name;
    uint32_t type; /* as GGUF numbers it */
    size_t elements, bytes, group;
    int has_offset, minus;       /* w = s q + o, or s q - o */
    size_t scale_at, offset_at;  /* bytes of a block */
    int least, most;             /* of numbers */
    int least_scale, most_scale; /* of those of groups; equal: the block is one group */
    int most_offset;             /* from 0 on */
    void (*write)(unsigned char *to, const block_content *c);
} block_kind;

extern const block_kind block_kinds[];
extern const size_t block_kind_count;
const block_kind *block_kind_find(const char *name);

/* How they are filled: what models have, small numbers; or the ends of every range. */
enum { BLOCK_PLAIN, BLOCK_EXTREME };

/* A block of `kind`, random, and the weights that its definition gives, in double and rounded once.
 * `state` is that of the random numbers. */
void block_make(unsigned char *to, float *weights, const block_kind *kind, int fill,
                uint64_t *state);

#endif
