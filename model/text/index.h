/* SPDX-License-Identifier: MIT
 *
 * Hash tables that no file can make slow: an item is near where its hash says, or the table gives
 * up, and the caller, who then has a sorted array instead, searches that.
 */
#ifndef ISOBIT_MODEL_INDEX_H
#define ISOBIT_MODEL_INDEX_H

#include "base.h"

#include <string.h>

/* At most half of the slots are used: of a million items with good hashes none is so far away. */
enum { TEXT_WINDOW = 160 };

typedef struct text_index {
    uint32_t *slots; /* the number of an item and 1; 0: empty. NULL: there is no table */
    size_t mask;     /* the number of slots, a power of two, less one */
} text_index;

/* An empty table for so many items; none, if there is no memory. */
static inline void text_index_begin(text_index *x, model_arena *arena, size_t items) {
    size_t slots = 16;
    *x = (text_index){NULL, 0};
    if (items >= UINT32_MAX / 4)
        return;
    while (slots < 2 * items)
        slots *= 2;
    x->slots = model_alloc(arena, slots, sizeof *x->slots);
    if (!x->slots)
        return;
    memset(x->slots, 0, slots * sizeof *x->slots);
    x->mask = slots - 1;
}

/* Where step 0, 1 ... of a search looks. */
static inline uint32_t *text_index_slot(const text_index *x, uint64_t hash, size_t step) {
    return &x->slots[((size_t)hash + step) & x->mask];
}

/* Each bit of the result depends on all bits of x. */
static inline uint64_t text_mix(uint64_t x) {
    x = (x ^ x >> 32) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 29) * 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

#endif
