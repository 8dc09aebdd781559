/* SPDX-License-Identifier: MIT
 *
 * Input: a letter and the files of a tokenizer, then a text, with bytes 0xff between them:
 *   j  tokenizer.json      m  vocab.json, merges.txt      w  vocab.txt
 * What loads cuts the text with and without room, and joins it again, whole and token by token.
 * What is read of tokenizer.json without a tree is what jansson reads.
 */
#include "fuzz_text.h"
#include "scanned.h"

#include <string.h>

enum { MOST_TEXT = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const char *const configs[] = {"{\"tokenizer_class\":\"PreTrainedTokenizerFast\"}",
                                          "{\"tokenizer_class\":\"RobertaTokenizer\"}",
                                          "{\"tokenizer_class\":\"BertTokenizer\"}"};
    static const char letters[] = "jmw";
    static const char *const names[][2] = {
        {"tokenizer.json", NULL}, {"vocab.json", "merges.txt"}, {"vocab.txt", NULL}};
    const char *letter = bytes && data[0] ? strchr(letters, data[0]) : NULL;
    const uint8_t *parts[3];
    size_t sizes[3];
    iso_error error = {0};
    iso_tokenizer *t = NULL;
    if (!letter)
        return 0;
    const size_t kind = (size_t)(letter - letters), files = names[kind][1] ? 2 : 1;
    if (fuzz_split(data + 1, bytes - 1, parts, sizes, files + 1) < files + 1)
        return 0;
    if (kind == 0)
        FUZZ_CHECK(scanned_compare((const char *)parts[0], sizes[0]) >= 0);
    fuzz_no_files();
    fuzz_file("tokenizer_config.json", configs[kind], strlen(configs[kind]));
    for (size_t i = 0; i < files; i++)
        fuzz_file(names[kind][i], parts[i], sizes[i]);
    iso_status status = iso_tokenizer_load(&t, FUZZ_DIRECTORY, &error);
    if (status) {
        FUZZ_CHECK(t == NULL);
        fuzz_check_error(status, &error);
    } else if (sizes[files] <= MOST_TEXT) {
        fuzz_use_tokenizer(t, parts[files], sizes[files]);
    }
    iso_tokenizer_free(t);
    return 0;
}
