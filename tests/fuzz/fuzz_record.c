/* SPDX-License-Identifier: MIT
 *
 * Input: a recorded run, as it is, and once more with size and checksum made to fit, which no
 * mutation hits. What is accepted must give the same bytes again.
 */
#include "fuzz.h"
#include "record.h"
#include "record_corpus.h"

#include <stdlib.h>
#include <string.h>

static void read_record(const uint8_t *data, size_t bytes) {
    struct iso_record record;
    char message[ISO_RECORD_MESSAGE];
    if (!iso_record_unpack(&record, data, bytes, message)) {
        FUZZ_CHECK(message[0] && memchr(message, 0, sizeof message));
        for (const char *m = message; *m; m++)
            FUZZ_CHECK(*m >= ' ' && *m <= '~');
        FUZZ_CHECK(!record.sections && !record.count);
        return;
    }
    unsigned char *again;
    size_t size;
    FUZZ_CHECK(iso_record_pack(&record, &again, &size));
    FUZZ_CHECK(size == bytes && fuzz_equal(again, data, bytes));
    free(again);
    iso_record_free(&record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    uint8_t *copy = fuzz_copy(data, bytes);
    read_record(copy, bytes);
    record_seal(copy, bytes);
    read_record(copy, bytes);
    free(copy);
    return 0;
}
