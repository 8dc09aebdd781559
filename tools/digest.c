/* SPDX-License-Identifier: MIT
 *
 * The hash by which results are compared between instruction sets and machines. Floats enter as
 * their bits: -0 differs from 0, and the last digit counts. Every array enters with its length, so
 * that no two different results are the same stream of bytes.
 */
#include "cli.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the hash is defined over little-endian words");

bool digest_open(struct digest *digest) {
    digest->state = XXH3_createState();
    return digest->state != NULL && XXH3_64bits_reset(digest->state) == XXH_OK;
}

void digest_close(struct digest *digest) {
    XXH3_freeState(digest->state);
    digest->state = NULL;
}

void digest_size(struct digest *digest, size_t value) {
    uint64_t word = value;
    XXH3_64bits_update(digest->state, &word, sizeof word);
}

void digest_ids(struct digest *digest, const uint32_t *ids, size_t count) {
    digest_size(digest, count);
    XXH3_64bits_update(digest->state, ids, count * sizeof *ids);
}

void digest_floats(struct digest *digest, const float *floats, size_t count) {
    digest_size(digest, count);
    XXH3_64bits_update(digest->state, floats, count * sizeof *floats);
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
