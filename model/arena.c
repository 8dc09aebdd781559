/* SPDX-License-Identifier: MIT
 *
 * Memory that is handed out piece by piece and freed at once. Each block is aligned to 64 bytes,
 * as packed weights and vector loads want it; the first 64 bytes of a block link it to the older
 * ones. Blocks can be kept for more of the same work, which saves the page faults of new ones: a
 * tenth of the time when a small model generates from many sources.
 *
 * Large blocks ask for huge pages, where the system gives them to who asks: with pages of 4 KiB one
 * thread reads weights from memory at 15 to 17 GB/s, with 2 MiB at 27 to 30 (Zen 4), and a block
 * takes hundreds of times fewer page faults. A huge page is there as a whole once a byte of it is
 * used, so memory that may stay unused (model_alloc_sparse) does without.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* madvise */
#endif
#include "base.h"

#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

struct model_block { /* and the memory, from byte 64 on */
    struct model_block *next;
    size_t bytes;
};

/* The smallest spare block that has so many bytes and not too many, off its list; or NULL. */
static struct model_block *take_spare(model_arena *arena, size_t bytes) {
    struct model_block **best = NULL;
    for (struct model_block **at = &arena->spare; *at; at = &(*at)->next)
        if ((*at)->bytes >= bytes && (*at)->bytes / 4 <= bytes + 1024 &&
            (!best || (*at)->bytes < (*best)->bytes))
            best = at;
    if (!best)
        return NULL;
    struct model_block *block = *best;
    *best = block->next;
    return block;
}

static void *get_block(model_arena *arena, size_t bytes, int huge) {
    size_t total, alignment = 64;
    struct model_block *block = take_spare(arena, bytes);
#ifdef MADV_HUGEPAGE
    if (huge && bytes >= 2 * HUGE_PAGE)
        alignment = HUGE_PAGE;
#endif
    if (!block) {
        if (__builtin_add_overflow(bytes, 64 + alignment - 1, &total) || total > PTRDIFF_MAX)
            return NULL;
        total &= ~(alignment - 1);
        block = aligned_alloc(alignment, total);
        if (!block)
            return NULL;
#ifdef MADV_HUGEPAGE
        if (alignment == HUGE_PAGE) /* a wish; where it is not granted, nothing is lost */
            (void)madvise(block, total, MADV_HUGEPAGE);
#endif
        block->bytes = total - 64;
    }
    block->next = arena->newest;
    arena->newest = block;
    return (char *)block + 64;
}

static void *take(model_arena *arena, size_t count, size_t size, int huge) {
    size_t bytes, even;
    if (__builtin_mul_overflow(count, size, &bytes) ||
        __builtin_add_overflow(bytes, (size_t)63, &even))
        return NULL;
    even &= ~(size_t)63;
    void *piece = arena->room;
    if (piece && even <= arena->room_bytes) {
        arena->room += even;
        arena->room_bytes -= even;
    } else if (!(piece = get_block(arena, bytes, huge))) {
        return NULL;
    }
    arena->bytes += bytes;
    return piece;
}

int model_arena_reserve(model_arena *arena, size_t bytes) {
    char *room = get_block(arena, bytes, 1);
    arena->room = room;
    arena->room_bytes = room ? bytes : 0;
    return room != NULL;
}

void *model_alloc(model_arena *arena, size_t count, size_t size) {
    return take(arena, count, size, 1);
}

void *model_alloc3(model_arena *arena, size_t a, size_t b, size_t c, size_t size) {
    size_t count;
    if (__builtin_mul_overflow(a, b, &count) || __builtin_mul_overflow(count, c, &count))
        return NULL;
    return take(arena, count, size, 1);
}

void *model_alloc_sparse(model_arena *arena, size_t a, size_t b, size_t c, size_t size) {
    size_t count;
    if (__builtin_mul_overflow(a, b, &count) || __builtin_mul_overflow(count, c, &count))
        return NULL;
    return take(arena, count, size, 0);
}

void model_arena_recycle(model_arena *arena) {
    struct model_block *spare = arena->spare;
    while (arena->newest) {
        struct model_block *block = arena->newest;
        arena->newest = block->next;
        block->next = spare;
        spare = block;
    }
    *arena = (model_arena){.spare = spare};
}

void model_arena_free(model_arena *arena) {
    model_arena_recycle(arena);
    while (arena->spare) {
        struct model_block *block = arena->spare;
        arena->spare = block->next;
        free(block);
    }
    *arena = (model_arena){0};
}
