/* SPDX-License-Identifier: MIT
 *
 * See fuzz_text.h.
 */
#include "fuzz_text.h"

#include <stdlib.h>
#include <string.h>

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

void fuzz_use_tokenizer(const iso_tokenizer *t, const uint8_t *data, size_t bytes) {
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
