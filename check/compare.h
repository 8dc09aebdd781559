/* SPDX-License-Identifier: MIT
 *
 * Recording what the cases of a run give, and comparing them with what another run has recorded:
 * another machine, compiler or version. Both watch the engine, which tells them of every call
 * (struct iso_check_observation); neither changes what it checks.
 */
#ifndef ISOBIT_CHECK_COMPARE_H
#define ISOBIT_CHECK_COMPARE_H

#include "record.h"

#include "engine.h"

/* --------------------------------------------------------------------------------- recording */

struct iso_recorder {
    struct iso_record record;
    struct iso_record_section *last; /* of the case that is being observed */
    bool failed;                     /* no memory: there will be no file */
};
void iso_recorder_observe(struct iso_recorder *r, const struct iso_check_observation *seen);

/* --------------------------------------------------------------------------------- comparing */

enum iso_verdict {
    ISO_EQUAL,
    ISO_DIFFERENT, /* within its bound, but equal bits were promised */
    ISO_ALLOWED,   /* other bits, within the bound, and nothing else was promised */
    ISO_WRONG,     /* here, or where the file was recorded */
    ISO_ABSENT,    /* the file has no such case */
    ISO_VERDICTS
};

/* What became of a suite on a variant. */
struct iso_compared {
    const struct iso_check_suite *suite;
    const struct iso_check_variant *variant;
    size_t count[ISO_VERDICTS];
    unsigned ulp;   /* largest difference of two samples, where a step is an ULP */
    unsigned parts; /* and where it is a hundredth of the bound */
};

struct iso_comparison {
    const struct iso_record *file;
    const char *only;                /* the only suite that runs, or NULL */
    struct iso_section_index *index; /* one for each section of the file */
    struct iso_compared *rows;
    size_t row_count, room;
    struct iso_compared *row; /* of the case that is being observed, */
    enum iso_verdict verdict; /* and what it counts as so far */
    /* Called for each case that differs, and for what is wrong in the file (the engine itself
     * reports what is wrong here); nth: of this suite, variant and verdict. May be NULL. */
    void (*differs)(struct iso_comparison *k, const struct iso_check_observation *seen,
                    const char *text, size_t nth);
    void *user;
};
/* False without memory. `file` must outlive the comparison. */
bool iso_comparison_begin(struct iso_comparison *k, const struct iso_record *file);
bool iso_comparison_observe(struct iso_comparison *k, const struct iso_check_observation *seen);
/* All rows in one, and how many cases of the file did not run though their suite
 * was to. */
struct iso_compared iso_comparison_total(const struct iso_comparison *k, size_t *unmet);
void iso_comparison_end(struct iso_comparison *k);

#endif
