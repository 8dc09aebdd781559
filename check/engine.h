/* SPDX-License-Identifier: MIT
 *
 * Runs the suites of a target: each case on each variant, flush against a guard page on the right,
 * then on the left, then at some other alignment. What a call gave is compared with the oracle,
 * with the predicted bits where there are some, with every other run of the same case, and at
 * last, as a hash, with results that are committed. Every call goes through the trampoline of
 * abi.h. What is printed is the affair of report.c.
 */
#ifndef ISOBIT_CHECK_ENGINE_H
#define ISOBIT_CHECK_ENGINE_H

#include <isobit/check.h>

/*
 * The errors of a group of cases: of all elements whose true value is known and that need not be
 * exact. An error is counted in units of its bound. A kernel may stay within its bounds everywhere
 * and yet be worse than it should be; that shows here, and only here.
 */
struct iso_check_errors {
    const char *name;
    size_t elements;
    double rms;   /* root of the mean square */
    double q999;  /* 99.9 % are not larger */
    double bias;  /* mean of |result| - |true value| */
    double worst; /* largest, and in ULP */
    double ulp;
};
enum { ISO_CHECK_GROUPS = 16 };

/* What became of one suite on one variant. */
struct iso_check_tally {
    size_t cases, calls, failures;
    double worst;  /* error, in units of the bound */
    double ulp;    /* in ULP of the true value, where the bound is a matter of ULP */
    size_t stack;  /* most bytes of a call; 0 when that is not measured */
    void *hash;    /* while it runs */
    size_t hashed; /* cases in it */
    uint64_t bits; /* the hash */
    double seconds;
    double call_seconds, flops; /* of the calls themselves; with iso_check_run.timing */
    struct iso_check_errors groups[ISO_CHECK_GROUPS];
    size_t group_count;
    void *sums; /* of the groups, while it runs */
};
void iso_check_tally_begin(struct iso_check_tally *t);
void iso_check_tally_end(struct iso_check_tally *t);

struct iso_check_failure {
    const struct iso_check_suite *suite;
    const struct iso_check_case *c; /* NULL: about all of them, as a hash */
    const struct iso_check_variant *variant;
    const char *place; /* right, left, or elements past a page */
    size_t offset;     /* that the third place of the case had */
    const char *reason;
};

/* A call that has been judged: told to whoever records or compares results. */
struct iso_check_observation {
    const struct iso_check_suite *suite;
    const struct iso_check_case *c;
    const struct iso_check_variant *variant;
    const struct iso_check_operands *operands; /* outputs are at `at` */
    size_t place;                              /* 0: the first call of the case on this variant */
    size_t offset;                             /* as in iso_check_failure */
    bool first;                                /* no variant ran the case before */
    bool bits;                                 /* all variants promise the same bits */
    bool wrong;
};

/* A file, or its text, or neither: then nothing is compared. */
struct iso_check_committed {
    const char *file, *text;
};

struct iso_check_run {
    const struct iso_check_target *target;
    enum iso_check_plan plan;
    const char *name;                         /* of a suite; NULL: all */
    const char *only_case;                    /* NULL: all; else a decimal number */
    const struct iso_check_variant *variants; /* of the target; may be others with such tables */
    size_t variant_count;
    int numerics;                      /* version of the committed hashes */
    struct iso_check_committed golden; /* hashes to compare with */
    const char *update;                /* file to write, or NULL */
    struct iso_check_committed errors; /* those that groups may have */
    const char *update_errors;
    size_t part, parts; /* parts > 1: only the cases whose number is `part` modulo `parts` */
    bool once;          /* each case in one place: for emulators */
    bool where;         /* only the cases with this value of this parameter */
    size_t where_index, where_value;
    unsigned case_seconds; /* a call that takes longer has failed */
    uint64_t seed;         /* of the random stream */
    size_t iters;          /* its cases; 0: until the time is over */
    double time_box;       /* seconds since iso_check_run_init; 0: no limit */
    bool timing;
    bool stop; /* at the first failure */
    /* called at once for each failure (count: those of this suite on this variant), and for each
     * suite and variant when it is done; may be NULL */
    void (*failed)(struct iso_check_run *run, const struct iso_check_failure *f, size_t count);
    void (*row)(struct iso_check_run *run, const struct iso_check_suite *suite,
                const struct iso_check_variant *variant, const struct iso_check_tally *t,
                bool random);
    /* There is no way back (fault.h): what is left to be done before the program ends with this
     * exit code; may be NULL. */
    int (*ended)(struct iso_check_run *run);
    void *user;
    /* called for each call; may be NULL */
    void (*observe)(void *observer, const struct iso_check_observation *seen);
    void *observer;
    /* results */
    double start;
    size_t failures;
    char first_failure[512];
};
/* All of the target, in the full plan. */
void iso_check_run_init(struct iso_check_run *run, const struct iso_check_target *target);
const struct iso_check_suite *iso_check_suite_named(const struct iso_check_target *target,
                                                    const char *name); /* or NULL */
/* Frees nothing; list->v is the caller's. */
void iso_check_suite_cases(const struct iso_check_suite *suite, struct iso_check_cases *list,
                           enum iso_check_plan plan);
bool iso_check_has_random(const struct iso_check_suite *suite);
/* Parameters, fill and flags of a case of the random stream. */
void iso_check_random_case(const struct iso_check_suite *suite, struct iso_check_case *c,
                           struct iso_check_random *r);
/* Why a suite cannot run on a variant, or NULL. */
const char *iso_check_missing(const struct iso_check_target *target,
                              const struct iso_check_suite *suite,
                              const struct iso_check_variant *variant);
/* Runs one suite, or all of them, and adds up the failures. */
void iso_check_run_suite(struct iso_check_run *run, const struct iso_check_suite *suite);
void iso_check_run_all(struct iso_check_run *run);
/* The random stream: each suite in turn. */
void iso_check_run_random(struct iso_check_run *run);
/* One case on all variants; tallies [variant_count], begun by the caller. */
void iso_check_run_case(struct iso_check_run *run, const struct iso_check_suite *suite,
                        const struct iso_check_case *c, size_t offset,
                        struct iso_check_tally *tallies);
double iso_check_run_seconds(const struct iso_check_run *run);
/* True when guard pages on the right are used for scalar only: see guard.h. */
bool iso_check_guards_are_shy(void);

#endif
