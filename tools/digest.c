/* SPDX-License-Identifier: MIT
 *
 * The hash by which results are compared between instruction sets and machines. Floats enter as
 * their bits: -0 differs from 0, and the last digit counts. Every array enters with its length, so
 * that no two different results are the same stream of bytes.
 */
#include "cli.h"

#include <endian.h>
#include <string.h>

bool digest_open(struct digest *digest) {
    digest->state = XXH3_createState();
    return digest->state != NULL && XXH3_64bits_reset(digest->state) == XXH_OK;
}

void digest_close(struct digest *digest) {
    XXH3_freeState(digest->state);
    digest->state = NULL;
}

void digest_size(struct digest *digest, size_t value) {
    const uint64_t word = htole64(value);
    XXH3_64bits_update(digest->state, &word, sizeof word);
}

/* Words of 32 bits enter as little-endian bytes on every machine. */
static void add_words(struct digest *digest, const void *words, size_t count) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    XXH3_64bits_update(digest->state, words, count * sizeof(uint32_t));
#else
    for (size_t i = 0; i < count; i++) {
        uint32_t word;
        memcpy(&word, (const char *)words + i * sizeof word, sizeof word);
        word = htole32(word);
        XXH3_64bits_update(digest->state, &word, sizeof word);
    }
#endif
}

void digest_ids(struct digest *digest, const uint32_t *ids, size_t count) {
    digest_size(digest, count);
    add_words(digest, ids, count);
}

void digest_floats(struct digest *digest, const float *floats, size_t count) {
    digest_size(digest, count);
    add_words(digest, floats, count);
}

void digest_generation(struct digest *digest, const iso_generation *generation) {
    digest_size(digest, generation->count);
    for (size_t i = 0; i < generation->count; i++) {
        const iso_hypothesis *best = &generation->best[i];
        digest_ids(digest, best->ids, best->length);
        digest_floats(digest, best->log_probs, best->length);
        digest_floats(digest, &best->score, 1);
    }
}

uint64_t digest_value(const struct digest *digest) { return XXH3_64bits_digest(digest->state); }
