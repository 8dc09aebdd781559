/* SPDX-License-Identifier: MIT
 *
 * Input: tokenizer_config.json, vocab.json and a text, with bytes 0xff between them. What loads
 * cuts the text with room, without room and with a little less than it needs, and joins it again.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

static void use(const iso_tokenizer *t, const uint8_t *data, size_t bytes) {
    iso_error error = {0};
    char *text = fuzz_copy(data, bytes);
    size_t ids_needed = 0, sequences_needed = 0, id_count = 0, sequence_count = 0, needed = 0;
    iso_status status = iso_tokenizer_encode(t, text, bytes, NULL, 0, &ids_needed, NULL, 0,
                                             &sequences_needed, &error);
    if (status && status != ISOBIT_E_WORKSPACE) {
        FUZZ_CHECK(status == ISOBIT_E_UTF8);
        fuzz_check_error(status, &error);
        free(text);
        return;
    }
    /* Each id needs a byte, or is the end of a sequence. */
    FUZZ_CHECK(ids_needed <= bytes + sequences_needed && sequences_needed <= bytes);
    FUZZ_CHECK(!status == !ids_needed);
    uint32_t *ids = malloc(ids_needed * sizeof *ids + 1);
    size_t *lengths = malloc(sequences_needed * sizeof *lengths + 1);
    FUZZ_CHECK(ids && lengths);
    if (ids_needed)
        FUZZ_CHECK(iso_tokenizer_encode(t, text, bytes, ids, ids_needed - 1, &id_count, lengths,
                                        sequences_needed - 1, &sequence_count,
                                        &error) == ISOBIT_E_WORKSPACE);
    FUZZ_CHECK(iso_tokenizer_encode(t, text, bytes, ids, ids_needed, &id_count, lengths,
                                    sequences_needed, &sequence_count, &error) == ISOBIT_OK);
    FUZZ_CHECK(id_count == ids_needed && sequence_count == sequences_needed);
    size_t sum = 0;
    for (size_t i = 0; i < sequence_count; i++)
        sum += lengths[i];
    FUZZ_CHECK(sum == id_count);
    for (size_t i = 0; i < id_count; i++)
        FUZZ_CHECK(iso_tokenizer_token(t, ids[i]));
    status = iso_tokenizer_decode(t, ids, id_count, NULL, 0, &needed);
    FUZZ_CHECK(status == ISOBIT_E_WORKSPACE && needed >= 1);
    for (size_t room = needed > 3 ? needed - 3 : 1; room <= needed; room++) {
        char *out = malloc(room);
        FUZZ_CHECK(out);
        status = iso_tokenizer_decode(t, ids, id_count, out, room, &needed);
        FUZZ_CHECK(status == (room < needed ? ISOBIT_E_WORKSPACE : ISOBIT_OK));
        FUZZ_CHECK(memchr(out, 0, room) && (status || strlen(out) + 1 == needed));
        free(out);
    }
    free(lengths);
    free(ids);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    const uint8_t *parts[3];
    size_t sizes[3];
    iso_error error = {0};
    iso_tokenizer *t = NULL;
    if (fuzz_split(data, bytes, parts, sizes, 3) < 3)
        return 0;
    fuzz_no_files();
    fuzz_file("tokenizer_config.json", parts[0], sizes[0]);
    fuzz_file("vocab.json", parts[1], sizes[1]);
    iso_status status = iso_tokenizer_load(&t, FUZZ_DIRECTORY, &error);
    if (status) {
        FUZZ_CHECK(t == NULL);
        fuzz_check_error(status, &error);
    } else {
        uint32_t id = 0;
        while (iso_tokenizer_token(t, id))
            id++;
        FUZZ_CHECK(iso_tokenizer_decode(t, &id, 1, NULL, 0, NULL) == ISOBIT_E_RANGE);
        use(t, parts[2], sizes[2]);
    }
    iso_tokenizer_free(t);
    return 0;
}
