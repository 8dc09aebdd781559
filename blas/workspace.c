/* SPDX-License-Identifier: MIT
 *
 * Scratch that stays between calls. Memory that large products allocate and free goes back to the
 * system, with malloc's other free memory above it, and comes again as pages that the kernel
 * clears one by one: a quarter of the time of PyTorch's forward pass.
 */
#include "core.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

/* A fork while another thread computes loses the child a slot. */
#define SLOTS 16
#define MOST_BYTES                                                                                 \
    ((size_t)64 << 20) /* of a slot: larger products take too long for this to count */

static struct iso_blas_slot {
    atomic_bool taken;
    void *memory;
    size_t bytes;
} slots[SLOTS];

static int take(struct iso_blas_slot *s) {
    return !atomic_exchange_explicit(&s->taken, true, memory_order_acquire);
}
static void give(struct iso_blas_slot *s) {
    atomic_store_explicit(&s->taken, false, memory_order_release);
}

const iso_context *iso_blas_borrow(struct borrowed *b, size_t bytes, const iso_context *context) {
    struct iso_blas_slot *s = slots;
    if (bytes > MOST_BYTES)
        return context;
    while (!take(s))
        if (++s == slots + SLOTS)
            return context;
    if (s->bytes < bytes) {
        free(s->memory);
        s->memory = malloc(bytes);
        s->bytes = s->memory ? bytes : 0;
    }
    b->slot = s;
    b->context = context ? *context : (iso_context){.size = sizeof b->context};
    b->context.workspace = s->memory, b->context.workspace_bytes = s->bytes; /* or none */
    return &b->context;
}

void iso_blas_give_back(struct borrowed *b) {
    if (b->slot)
        give(b->slot);
}

/* For those who unload the library. */
__attribute__((destructor)) static void release(void) {
    for (struct iso_blas_slot *s = slots; s < slots + SLOTS; s++)
        if (take(s))
            free(s->memory);
}
