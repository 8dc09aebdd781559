/* SPDX-License-Identifier: MIT
 *
 * Input: the files of a tokenizer, then a text, and at will a tokenizer_config.json in place of the
 * usual one, with bytes 0xff between them; a target for each kind:
 *   pipeline  tokenizer.json      bpe  vocab.json, merges.txt      wordpiece  vocab.txt
 * What loads cuts the text with and without room, and joins it again, whole and token by token.
 * What is read of tokenizer.json without a tree is what jansson reads.
 */
#include "fuzz_text.h"
#if !defined FUZZ_TARGET_bpe && !defined FUZZ_TARGET_wordpiece
#include "scanned.h"
#endif

#include <string.h>

enum { MOST_TEXT = 4096 };

#if defined FUZZ_TARGET_bpe
enum { FILES = 2 };
static const char config[] = "{\"tokenizer_class\":\"RobertaTokenizer\"}";
static const char *const names[] = {"vocab.json", "merges.txt"};
#elif defined FUZZ_TARGET_wordpiece
enum { FILES = 1 };
static const char config[] = "{\"tokenizer_class\":\"BertTokenizer\"}";
static const char *const names[] = {"vocab.txt"};
#else
enum { FILES = 1 };
static const char config[] = "{\"tokenizer_class\":\"PreTrainedTokenizerFast\"}";
static const char *const names[] = {"tokenizer.json"};
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    const uint8_t *parts[FILES + 2];
    size_t sizes[FILES + 2];
    iso_error error = {0};
    iso_tokenizer *t = NULL;
    const size_t count = fuzz_split(data, bytes, parts, sizes, FILES + 2);
    if (count < FILES + 1)
        return 0;
#if !defined FUZZ_TARGET_bpe && !defined FUZZ_TARGET_wordpiece
    FUZZ_CHECK(scanned_compare((const char *)parts[0], sizes[0]) >= 0);
#endif
    fuzz_no_files();
    fuzz_file("tokenizer_config.json", config, sizeof config - 1);
    if (count == FILES + 2)
        fuzz_file("tokenizer_config.json", parts[FILES + 1], sizes[FILES + 1]);
    for (size_t i = 0; i < FILES; i++)
        fuzz_file(names[i], parts[i], sizes[i]);
    iso_status status = iso_tokenizer_load(&t, FUZZ_DIRECTORY, &error);
    if (status) {
        FUZZ_CHECK(t == NULL);
        fuzz_check_error(status, &error);
    } else if (sizes[FILES] <= MOST_TEXT) {
        fuzz_use_tokenizer(t, parts[FILES], sizes[FILES]);
    }
    iso_tokenizer_free(t);
    return 0;
}
