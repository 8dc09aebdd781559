/* SPDX-License-Identifier: MIT
 *
 * Packed weights as products read them: panels of floats, or of fewer bits, which are widened to
 * floats in registers or block by block.
 */
#ifndef ISOBIT_PACKED_WEIGHTS_H
#define ISOBIT_PACKED_WEIGHTS_H

#include "gemm/product.h"
#include "prefetch.h"

struct iso_weights {
    const void *data;
    size_t n, k;
    int w16, q;                       /* as in a plan's shape; else they are floats */
    int type;                         /* of w16 or q, as kernels have it */
    const struct iso_kernels *native; /* that multiply w16 as BF16, or NULL */
};

/* From a panel to the next: floats, elements of 16 bits or words. */
size_t iso_weights_panel(const struct iso_weights *w);

/* How weights of fewer bits are multiplied: many rows widen them once, block by block. */
enum iso_gemm_way iso_weights_way(const struct iso_gemm_shape *shape,
                                  const struct iso_gemm_machine *machine);

/* W16, B16 and Q: rows i .. i+m, columns j .. j+n of C, for all k. */
void iso_product_weights(const struct iso_product *t, size_t i, size_t m, size_t j, size_t n,
                         float *scratch);

/* Those of fewer bits, columns j .. j+n, steps p .. p+k: made floats, in panels, */
void iso_weights_widen(const struct iso_product *t, float *panels, size_t j, size_t n, size_t p,
                       size_t k);
/* and to be prefetched. */
struct iso_shares iso_weights_shares(const struct iso_product *t, size_t j, size_t n, size_t p,
                                     size_t k, size_t shares);

#endif
