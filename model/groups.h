/* SPDX-License-Identifier: MIT
 *
 * Matrices of 4 or 8 bits in groups, as compressed-tensors stores them ("pack-quantized"): X is
 * X_packed, words of 32 bits, with X_scale and X_shape.
 */
#ifndef ISOBIT_MODEL_GROUPS_H
#define ISOBIT_MODEL_GROUPS_H

#include "elements.h"

/* Each such matrix of a file as one tensor X more, of MODEL_GROUPS and the shape [out][in]. What
 * its parts say must fit together. */
iso_status model_groups_find(model_checkpoint *checkpoint, iso_error *error);

/* What a model may hold it as, and how its numbers lie there. */
model_form model_groups_form(const model_tensor *t);

/* model_read_elements of such a tensor. */
iso_status model_groups_read(const model_source *source, const model_tensor *t, model_form f,
                             char *to, size_t first, size_t count);

#endif
