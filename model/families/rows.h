/* SPDX-License-Identifier: MIT
 *
 * The families of models by what they came from: for each a row of flags and default values, the
 * keys of its config.json and the names of its tensors. A new family is a new row; only if it has a
 * block that no other has does layers.c change. What a row leaves 0 is off, or must be given by
 * config.json.
 */
#ifndef ISOBIT_FAMILIES_ROWS_H
#define ISOBIT_FAMILIES_ROWS_H

#include "config.h"

typedef struct model_family_rows {
    const model_config *rows;
    size_t count;
} model_family_rows;

extern const model_family_rows model_bart_rows, model_t5_rows, model_bert_rows, model_gpt_rows;

/* Layers as BART's code names them; OPT's too. */
#define BART_LAYER                                                                                 \
    .self = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj"},    \
    .self_norm = "self_attn_layer_norm", .fc1 = "fc1", .fc2 = "fc2",                               \
    .ffn_norm = "final_layer_norm"

/* Ids of fairseq's dictionaries: <s> 0, <pad> 1, </s> 2. */
#define FAIRSEQ_IDS .pad = 1, .bos = 0, .eos = {(const uint32_t[]){2}, 1}

#endif
