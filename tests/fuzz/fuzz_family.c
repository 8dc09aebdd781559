/* SPDX-License-Identifier: MIT
 *
 * Input: tokenizer_config.json, special_tokens_map.json, added_tokens.json, vocab.json, a text and
 * a file of SentencePiece, with bytes 0xff between them; the file goes by all of its names. What
 * loads cuts the text and joins it again. (A file that only libsentencepiece reads is fuzz_spm's.)
 */
#include "fuzz_text.h"

enum { CONFIG, MAP, ADDED, VOCABULARY, TEXT, PIECES, PARTS, MOST_TEXT = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const char *const names[] = {"tokenizer_config.json", "special_tokens_map.json",
                                        "added_tokens.json", "vocab.json"};
    const uint8_t *parts[PARTS];
    size_t sizes[PARTS];
    iso_error error = {0};
    iso_tokenizer *t = NULL;
    uint32_t first = 0;
    if (fuzz_split(data, bytes, parts, sizes, PARTS) < PARTS)
        return 0;
    fuzz_no_files();
    for (int i = CONFIG; i <= VOCABULARY; i++)
        if (sizes[i] || i == CONFIG)
            fuzz_file(names[i], parts[i], sizes[i]);
    fuzz_file("sentencepiece.bpe.model", parts[PIECES], sizes[PIECES]);
    fuzz_file("spiece.model", parts[PIECES], sizes[PIECES]);
    fuzz_file("tokenizer.model", parts[PIECES], sizes[PIECES]);
    iso_status status = iso_tokenizer_load(&t, FUZZ_DIRECTORY, &error);
    if (status) {
        FUZZ_CHECK(t == NULL);
        fuzz_check_error(status, &error);
    } else {
        FUZZ_CHECK(iso_tokenizer_forced_bos(t, &first) == ISOBIT_OK);
        FUZZ_CHECK(first == UINT32_MAX || iso_tokenizer_token(t, first));
        if (sizes[TEXT] <= MOST_TEXT)
            fuzz_use_tokenizer(t, parts[TEXT], sizes[TEXT]);
    }
    iso_tokenizer_free(t);
    return 0;
}
