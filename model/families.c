/* SPDX-License-Identifier: MIT
 *
 * The families of models by their names (families/rows.h).
 */
#include "families/rows.h"

#include <string.h>

const model_config *model_family_find(const char *model_type) {
    static const model_family_rows *const groups[] = {&model_bart_rows, &model_t5_rows,
                                                      &model_bert_rows, &model_gpt_rows};
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (size_t i = 0; i < groups[g]->count; i++)
            if (strcmp(model_type, groups[g]->rows[i].family) == 0)
                return &groups[g]->rows[i];
    return NULL;
}

const char *model_family_names(void) {
    return "isobit-transformer, marian, bart, mbart, pegasus, m2m_100, t5, mt5, umt5, bert, "
           "roberta, xlm-roberta, camembert, distilbert, gpt2, llama, mistral, qwen2, qwen3, phi3, "
           "gemma, gemma2, gemma3_text, gemma3, opt";
}
