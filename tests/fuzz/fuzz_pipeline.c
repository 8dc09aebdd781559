/* SPDX-License-Identifier: MIT
 *
 * Input: a letter and the files of a tokenizer, then a text, with bytes 0xff between them:
 *   j  tokenizer.json      m  vocab.json, merges.txt      w  vocab.txt
 * What loads cuts the text with and without room, and joins it again, whole and token by token.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_TEXT = 4096 };

static void join(const iso_tokenizer *t, const uint32_t *ids, size_t count) {
    size_t whole = 0, needed = 0, before = 0;
    FUZZ_CHECK(iso_tokenizer_decode(t, ids, count, NULL, 0, &whole) == ISOBIT_E_WORKSPACE);
    char *out = malloc(whole), *part = malloc(whole);
    FUZZ_CHECK(out && part);
    FUZZ_CHECK(iso_tokenizer_decode(t, ids, count, out, whole, &needed) == ISOBIT_OK);
    FUZZ_CHECK(needed == whole);
    FUZZ_CHECK(iso_tokenizer_decode(t, ids, count, part, whole - 1, NULL) == ISOBIT_E_WORKSPACE);
    for (size_t k = count > 16 ? count - 16 : 0; k <= count; k++) {
        FUZZ_CHECK(iso_tokenizer_decode_partial(t, ids, k, part, whole, &needed) == ISOBIT_OK);
        FUZZ_CHECK(needed > before && memcmp(part, out, needed - 1) == 0);
        before = needed - 1;
    }
    free(part);
    free(out);
}

static void use(const iso_tokenizer *t, const uint8_t *data, size_t bytes) {
    iso_error error = {0};
    char *text = fuzz_copy(data, bytes);
    size_t needed = 0, sequences = 0, count = 0, length = 0, unknown = 0, dropped = 0;
    iso_status status =
        iso_tokenizer_encode(t, text, bytes, NULL, 0, &needed, NULL, 0, &sequences, &error);
    if (status && status != ISOBIT_E_WORKSPACE) {
        FUZZ_CHECK(status == ISOBIT_E_UTF8);
        fuzz_check_error(status, &error);
        free(text);
        return;
    }
    FUZZ_CHECK(sequences <= 1 && !sequences == !needed);
    uint32_t *ids = malloc(needed * sizeof *ids + 1);
    FUZZ_CHECK(ids);
    FUZZ_CHECK(iso_tokenizer_encode(t, text, bytes, ids, needed, &count, &length, 1, &sequences,
                                    &error) == ISOBIT_OK);
    FUZZ_CHECK(count == needed && (!sequences || length == count));
    FUZZ_CHECK(iso_tokenizer_lacks(t, text, bytes, &unknown, &dropped, &error) == ISOBIT_OK);
    for (size_t i = 0; i < count; i++)
        FUZZ_CHECK(iso_tokenizer_token(t, ids[i]));
    join(t, ids, count);
    free(ids);
    free(text);
}

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
    fuzz_no_files();
    fuzz_file("tokenizer_config.json", configs[kind], strlen(configs[kind]));
    for (size_t i = 0; i < files; i++)
        fuzz_file(names[kind][i], parts[i], sizes[i]);
    iso_status status = iso_tokenizer_load(&t, FUZZ_DIRECTORY, &error);
    if (status) {
        FUZZ_CHECK(t == NULL);
        fuzz_check_error(status, &error);
    } else if (sizes[files] <= MOST_TEXT) {
        use(t, parts[files], sizes[files]);
    }
    iso_tokenizer_free(t);
    return 0;
}
