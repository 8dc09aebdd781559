/* SPDX-License-Identifier: MIT
 *
 * Embeddings from a table whose rows are no floats.
 */
#ifndef ISOBIT_EMBED_ROWS_H
#define ISOBIT_EMBED_ROWS_H

#include "check.h"

#define ISO_EMBED_FLOATS 512 /* that are made at a time */

struct iso_embedding {
    float *y;
    size_t ldy;
    const uint32_t *ids;
    size_t count;
    const void *table;
    size_t row_bytes, d;
    /* Elements [first, first + n) of a row; `first` is a multiple of ISO_EMBED_FLOATS. */
    void (*floats)(float *to, const void *row, size_t first, size_t n, int type);
    int type;
    float scale;
    const float *positions;
    const uint32_t *position_rows;
};

/* As iso_embed_f32 with these floats. */
iso_status iso_embed_rows(const struct iso_embedding *embedding, size_t vocabulary,
                          size_t position_count, const iso_context *context);

/* What all embeddings ask of their ids: each is in the vocabulary, and each position exists. */
static inline iso_status iso_check_ids(const uint32_t *ids, size_t count, size_t vocabulary,
                                       const float *positions, const uint32_t *position_rows,
                                       size_t position_count) {
    for (size_t i = 0; i < count; i++)
        if (ids[i] >= vocabulary ||
            (positions && (position_rows ? position_rows[i] : i) >= position_count))
            return ISOBIT_E_RANGE;
    return ISOBIT_OK;
}

#endif
