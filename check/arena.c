/* SPDX-License-Identifier: MIT
 *
 * Where operands lie during a call. Inputs lie in pages that are mapped twice: the harness writes
 * through one view, the kernel gets the other one, which is read-only. So writing to an input
 * faults at no cost per call.
 */
#include "arena.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common.h"

enum { SLOT_BYTES = 32 << 20, FENCE = 64 };

struct slot {
    char *write, *read; /* the same pages; each view between two pages that nobody may touch */
};
static struct slot slots[ISO_CHECK_OPERANDS];
static size_t page_bytes;

static char *map_view(int fd, int protection) {
    size_t total = SLOT_BYTES + 2 * page_bytes;
    char *base = mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        iso_check_die("mmap");
    char *view = mmap(base + page_bytes, SLOT_BYTES, protection, MAP_SHARED | MAP_FIXED, fd, 0);
    if (view == MAP_FAILED)
        iso_check_die("mmap");
    return view;
}

void iso_check_arena_init(void) {
    if (page_bytes)
        return;
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    for (unsigned i = 0; i < ISO_CHECK_OPERANDS; i++) {
        int fd = memfd_create("operand", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, SLOT_BYTES))
            iso_check_die("memfd");
        slots[i].write = map_view(fd, PROT_READ | PROT_WRITE);
        slots[i].read = map_view(fd, PROT_READ);
        close(fd);
    }
}

static size_t slot_offset(const struct iso_check_operand *v, enum iso_check_side side,
                          size_t offset) {
    if (side == ISO_CHECK_RIGHT)
        return SLOT_BYTES - v->bytes;
    return side == ISO_CHECK_LEFT ? 0 : page_bytes + offset * v->element;
}

void iso_check_arena_place(struct iso_check_operands *o, enum iso_check_side side, size_t offset) {
    for (unsigned i = 0; i < o->count; i++) {
        struct iso_check_operand *v = &o->v[i];
        if (v->absent) {
            v->at = NULL;
            continue;
        }
        if (v->bytes + 2 * page_bytes > SLOT_BYTES)
            errno = 0, iso_check_die("operand too large");
        /* operands differ in their alignment too */
        size_t start = slot_offset(v, side, (offset + 5 * i * (offset / 16)) % 64);
        size_t end = start + v->bytes;
        size_t before = start < FENCE ? start : FENCE;
        size_t after = SLOT_BYTES - end < FENCE ? SLOT_BYTES - end : FENCE;
        uint32_t word = v->role == ISO_CHECK_IN ? GAP_BITS : ISO_CHECK_CANARY_BITS;
        iso_check_fill_words(slots[i].write + start - before, before, word);
        memcpy(slots[i].write + start, v->host, v->bytes);
        iso_check_fill_words(slots[i].write + end, after, word);
        v->at = (v->role == ISO_CHECK_IN ? slots[i].read : slots[i].write) + start;
    }
}

/* Gaps and surroundings of the outputs; the inputs look after themselves. */
bool iso_check_arena_intact(char *text, size_t bytes, const struct iso_check_operands *o) {
    for (unsigned i = 0; i < o->count; i++) {
        const struct iso_check_operand *v = &o->v[i];
        if (v->role == ISO_CHECK_IN || v->absent)
            continue;
        const char *at = v->at;
        size_t start = (size_t)(at - slots[i].write), end = start + v->bytes;
        size_t before = start < FENCE ? start : FENCE;
        size_t after = SLOT_BYTES - end < FENCE ? SLOT_BYTES - end : FENCE;
        uint32_t fence[FENCE / 4];
        iso_check_fill_words(fence, sizeof fence, ISO_CHECK_CANARY_BITS);
        if (memcmp(at - before, fence, before)) {
            snprintf(text, bytes, "wrote before the begin of %s", v->name);
            return false;
        }
        if (memcmp(at + v->bytes, fence, after)) {
            snprintf(text, bytes, "wrote past the end of %s", v->name);
            return false;
        }
        const uint32_t *words = (const uint32_t *)v->at;
        for (size_t r = 0; r + 1 < v->rows && v->bytes && v->role != ISO_CHECK_SCRATCH; r++) {
            for (size_t c = v->cols; c < v->ld; c++) {
                if (words[r * v->ld + c] != ISO_CHECK_CANARY_BITS) {
                    snprintf(text, bytes, "wrote to the gap of %s, row %zu column %zu", v->name, r,
                             c);
                    return false;
                }
            }
        }
    }
    return true;
}

bool iso_check_arena_fault(char *text, size_t bytes, const struct iso_check_operands *o,
                           const char *address) {
    for (unsigned i = 0; i < o->count; i++) {
        const struct iso_check_operand *v = &o->v[i];
        char *view = v->role == ISO_CHECK_IN ? slots[i].read : slots[i].write;
        ptrdiff_t at = address - view;
        if (at >= 0 && at < SLOT_BYTES) {
            snprintf(text, bytes, "wrote to the input %s, byte %td", v->name,
                     address - (char *)v->at);
            return true;
        }
        if (at >= -(ptrdiff_t)page_bytes && at < SLOT_BYTES + (ptrdiff_t)page_bytes) {
            snprintf(text, bytes, "touched memory past the %s end of %s (byte %td of %zu)",
                     at < 0 ? "left" : "right", v->name, v->at ? address - (char *)v->at : 0,
                     v->bytes);
            return true;
        }
    }
    return false;
}
