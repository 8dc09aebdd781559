/* SPDX-License-Identifier: MIT
 *
 * Memory that comes next, in shares that tiles prefetch one after the other. In a burst prefetches
 * would wait for each other, and the product for them; a tile, that takes some thousand cycles, has
 * time for some lines.
 */
#ifndef ISOBIT_PREFETCH_H
#define ISOBIT_PREFETCH_H

#include "check.h"

struct iso_shares {
    const float *from; /* the next run of lines */
    size_t runs, next; /* so many are left, with this stride in floats */
    size_t each, done; /* shares of a run, and how many of them are done */
    size_t floats, ld; /* of a share; between lines, if they do not follow each other */
};

/* Runs of so many floats in about `shares` shares. */
static inline struct iso_shares iso_shares_of(const void *from, size_t runs, size_t next,
                                              size_t floats, size_t shares) {
    struct iso_shares s = {.from = from, .runs = runs, .next = next};
    const size_t most = shares > runs ? shares / runs : 1;
    s.floats = iso_round_up((floats + most - 1) / most, ISO_LINE);
    s.each = (floats + s.floats - 1) / s.floats;
    return s;
}

/* Of rows with stride ld: what will be panels, a line of each row in a share. Where a row does not
 * begin at a line, the first of 16 columns lie in the last line of those before, which is there
 * already. */
static inline struct iso_shares iso_shares_of_rows(const float *from, size_t panels, size_t ld) {
    return (struct iso_shares){
        .from = from + ISO_PANEL - 1, .runs = panels, .next = ISO_PANEL, .each = 1, .ld = ld};
}

static inline const float *iso_next_share(struct iso_shares *s) {
    if (s->runs == 0)
        return NULL;
    const float *share = s->from + s->done * s->floats;
    if (++s->done == s->each)
        s->done = 0, s->from += s->next, s->runs--;
    return share;
}

#endif
