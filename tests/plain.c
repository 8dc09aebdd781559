/* SPDX-License-Identifier: MIT
 *
 * See plain.h. What enters the hash, and in which order, is as in the harness (runner.c): a table
 * without a defect gives the committed hash, which every user of this file checks first.
 */
#include "plain.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "committed.h"

static void add_row(XXH3_state_t *hash, const float *row, size_t n) {
    uint32_t words[256];
    for (size_t done = 0; done < n;) {
        size_t here = n - done < 256 ? n - done : 256;
        memcpy(words, row + done, here * sizeof *words);
        for (size_t i = 0; i < here; i++)
            words[i] = htole32((words[i] & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : words[i]);
        XXH3_64bits_update(hash, words, here * sizeof *words);
        done += here;
    }
}

static void add_outputs(XXH3_state_t *hash, const struct iso_check_operands *o) {
    for (unsigned i = 0; i < o->count; i++) {
        const struct iso_check_operand *v = &o->v[i];
        bool output = v->role == ISO_CHECK_OUT || v->role == ISO_CHECK_INOUT;
        for (size_t r = 0; r < v->rows && output && v->bytes && !v->absent; r++)
            add_row(hash, (const float *)v->at + r * v->ld, v->cols);
    }
}

uint64_t plain_hash(const struct iso_check_suite *suite, enum iso_check_plan plan,
                    const struct iso_kernels *table) {
    XXH3_state_t *hash = XXH3_createState();
    struct iso_check_cases list;
    struct iso_check_operands o = {0};
    iso_check_suite_cases(suite, &list, plan);
    XXH3_64bits_reset(hash);
    for (size_t i = 0; i < list.count; i++) {
        if (!(list.v[i].flags & ISO_CHECK_CASE_GOLDEN))
            continue;
        iso_check_operands_begin(&o, list.v[i].seed);
        o.spot = list.v[i].spot;
        suite->setup(&o, &list.v[i]);
        iso_check_operands_plain(&o);
        suite->call(table, &list.v[i], &o);
        add_outputs(hash, &o);
        iso_check_operands_end(&o);
    }
    free(list.v);
    uint64_t value = XXH3_64bits_digest(hash);
    XXH3_freeState(hash);
    return value;
}

bool plain_committed(uint64_t *hash, const struct iso_check_suite *suite,
                     enum iso_check_plan plan) {
    char name[ISO_CHECK_GOLDEN_NAME], line[256], word[64];
    unsigned long long value = 0;
    int version;
    bool found = false;
    FILE *f = fopen(ISOBIT_TEST_DATA "/golden.txt", "r");
    iso_check_golden_name(name, suite, plan);
    while (f && !found && fgets(line, sizeof line, f))
        found = sscanf(line, "%63s %d %llx", word, &version, &value) == 3 && !strcmp(word, name);
    if (f)
        fclose(f);
    *hash = value;
    return found;
}
