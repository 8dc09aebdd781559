/* SPDX-License-Identifier: MIT
 *
 * Memory that is handed out piece by piece and freed at once. Each block is aligned to 64 bytes,
 * as packed weights and vector loads want it; the first 64 bytes of a block link it to the older
 * ones. Large blocks are not touched here: pages that a cache never uses cost nothing.
 */
#include "internal.h"

#include <stdlib.h>

void *model_alloc(model_arena *arena, size_t count, size_t size) {
    size_t bytes, total;
    if (__builtin_mul_overflow(count, size, &bytes) ||
        __builtin_add_overflow(bytes, (size_t)64 + 63, &total) || total > PTRDIFF_MAX)
        return NULL;
    total &= ~(size_t)63;
    void **block = aligned_alloc(64, total);
    if (!block)
        return NULL;
    *block = arena->newest;
    arena->newest = block;
    arena->bytes += bytes;
    return (char *)block + 64;
}

void *model_alloc3(model_arena *arena, size_t a, size_t b, size_t c, size_t size) {
    size_t count;
    if (__builtin_mul_overflow(a, b, &count) || __builtin_mul_overflow(count, c, &count))
        return NULL;
    return model_alloc(arena, count, size);
}

void model_arena_free(model_arena *arena) {
    while (arena->newest) {
        void **block = arena->newest;
        arena->newest = *block;
        free(block);
    }
    arena->bytes = 0;
}
