/* SPDX-License-Identifier: MIT
 *
 * See fuzz_base.h.
 */
#include "fuzz_base.h"
#include "fuzz.h"
#include "model_files.h"

#include <string.h>

static const char config[] =
    "{\"model_type\":\"marian\",\"vocab_size\":6,\"d_model\":2,\"encoder_layers\":1,"
    "\"decoder_layers\":1,\"encoder_attention_heads\":1,\"decoder_attention_heads\":1,"
    "\"encoder_ffn_dim\":1,\"decoder_ffn_dim\":1,\"activation_function\":\"relu\","
    "\"max_position_embeddings\":8,\"eos_token_id\":2,\"decoder_start_token_id\":1,"
    "\"pad_token_id\":0,\"num_beams\":2,\"no_repeat_ngram_size\":2,\"bad_words_ids\":[[5],[3,4]]}";

const fuzz_base *fuzz_base_model(int int8) {
    static fuzz_base bases[2];
    static blob texts[2]; /* keeps the bytes reachable */
    fuzz_base *base = &bases[int8];
    blob *all = &texts[int8];
    if (base->bytes)
        return base;
    builder b = {.state = 1, .int8 = int8};
    builder_model(&b, 6, 2, 1, 1);
    blob_add(&b.header, "}", 1);
    while (b.header.count % 8) /* else no weight is aligned, and none is used mapped */
        blob_add(&b.header, " ", 1);
    blob file = blob_file((char *)b.header.bytes, b.header.count, 0);
    blob_add(&file, b.data.bytes, b.data.count);
    blob_add(all, config, sizeof config - 1);
    blob_add(all, file.bytes, file.count);
    *base = (fuzz_base){all->bytes, sizeof config - 1, file.count};
    blob_free(&b.header);
    blob_free(&b.data);
    blob_free(&file);
    return base;
}
