/* SPDX-License-Identifier: MIT
 *
 * The harness of the kernel tests, and the form of a suite. A suite is data about one kernel of
 * kernels.def: its cases, how a case's operands are made, how the kernel is called on them, and
 * what should come out. The harness owns everything else: memory with guard pages, alignment,
 * instruction sets, comparing, hashing, reporting. The benchmarks time the same suites: they use
 * `cases` with ISO_PLAN_BENCH, setup, iso_operands_plain, call, flops and bytes.
 *
 * Every kernel has to define `const struct iso_suite iso_suite_<name>`; without it the test
 * program does not link.
 */
#ifndef ISOBIT_TESTS_RUNNER_H
#define ISOBIT_TESTS_RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "kernels.h"

/* ------------------------------------------------------------------------------- the numbers */

/*
 * Inputs come from integers by exact scaling, so that they are the same on every machine and no
 * libm has a say in them.
 */
struct iso_random {
    uint64_t state;
};
uint64_t iso_random_next(struct iso_random *r);
size_t iso_random_below(struct iso_random *r, size_t n); /* n >= 1 */
/* 0 .. max, all numbers of digits alike; and what a row may have beside its elements. */
size_t iso_random_log(struct iso_random *r, size_t max);
size_t iso_random_gap(struct iso_random *r);

enum iso_fill {
    ISO_FILL_UNIFORM = 0, /* [-1, 1] in steps of 2^-23 */
    ISO_FILL_INTEGER,     /* -8 .. 8: sums of products below 2^24 are exact */
    ISO_FILL_WIDE,        /* both signs, exponents -20 .. 20 */
    ISO_FILL_NORMAL,      /* sums of twelve uniform numbers, up to 6 */
    ISO_FILL_TINY,        /* subnormal and just above */
    ISO_FILL_HUGE,        /* near the largest float: sums overflow */
    ISO_FILL_CANCEL,      /* pairs x, -x(1 + 2^-20) */
    ISO_FILL_EQUAL,       /* one value for everything */
    ISO_FILL_OFFSET,      /* 1e6 and a little */
    ISO_FILL_RISING,      /* each above the one before it */
    ISO_FILL_FALLING,
    ISO_FILL_SCORES,    /* -100 .. 20, where exp goes through its whole range */
    ISO_FILL_ZERO,      /* +0 and -0 */
    ISO_FILL_SPECIAL,   /* uniform, with a NaN, an infinity or a -0 here and there */
    ISO_FILL_MINUS_INF, /* uniform, with many -Inf */
    ISO_FILL_BITS,      /* any of the 2^32 patterns */
    ISO_FILL_COUNT,
    /* not among those that golden cases run through: */
    ISO_FILL_SMALL = ISO_FILL_COUNT, /* exponents -74 .. -67: sums of products are subnormal */
    ISO_FILL_ONES,
    ISO_FILL_ALTERNATE,   /* 1, -1, 1 ... */
    ISO_FILL_EXPONENTS,   /* both signs, exponents -126 .. 127 */
    ISO_FILL_POWERS,      /* powers of two, exponents -20 .. 20 */
    ISO_FILL_OPPOSITE,    /* pairs x, -x + 2^-20 or less; in a product, along k */
    ISO_FILL_SPIKE_FIRST, /* a row's first element is 2^20 times the others */
    ISO_FILL_SPIKE_LAST,
    ISO_FILL_PLATEAU,    /* 1024 and normal numbers times 2^-10 */
    ISO_FILL_EDGE,       /* where exp overflows, turns subnormal and is 0, a few ULP around */
    ISO_FILL_LADDER,     /* 0, -1, ... -104, and again: exp goes down all steps */
    ISO_FILL_STEEP,      /* each 90 above the one before: what went before counts for nothing */
    ISO_FILL_MINUS_ZERO, /* -0 */
    ISO_FILL_ALL_MINUS_INF,
    /* these single out one element, iso_case.spot: of the row ... */
    ISO_FILL_TOP_AT,   /* 50 above the others */
    ISO_FILL_ALONE_AT, /* all others are -Inf */
    /* ... or of all elements of the case, in the order in which they are filled */
    ISO_FILL_NAN_AT,
    ISO_FILL_INF_AT,
    ISO_FILL_MINUS_INF_AT,
    ISO_FILL_ALL
};
/* True when all values and what a kernel makes of them are finite and far from overflow. */
bool iso_fill_is_finite(unsigned fill);
/* True when sums of products may overflow on the way to a finite result. */
bool iso_fill_may_overflow(unsigned fill);
bool iso_fill_has_spot(unsigned fill);
const char *iso_fill_name(unsigned fill);
/* What fills have in common: "plain", "spread", "cancel", "scores", "special". */
const char *iso_fill_class(unsigned fill);

/* ------------------------------------------------------------------------------ the operands */

/* What outputs hold before the call. No kernel makes this NaN by itself, so where it still stands
 * nothing was written. */
#define ISO_CANARY_BITS UINT32_C(0xffe5c3a1)

enum iso_role { ISO_IN, ISO_OUT, ISO_INOUT, ISO_SCRATCH };

struct iso_operand {
    const char *name;
    enum iso_role role;
    bool absent;    /* passed as NULL */
    size_t element; /* bytes: 1, 4 or 8 */
    size_t rows, cols, ld;
    size_t bytes;   /* from the first element to the end of the last */
    void *host;     /* what it holds before the call; gaps of inputs are NaN */
    void *at;       /* where it lies during the call */
    double *expect; /* outputs: [rows][cols] the true values, or NULL */
    double *bound;  /* how far from them a result may lie */
    float *exact;   /* the bits themselves, where they can be predicted; else NULL */
};

enum { ISO_OPERANDS = 12 };

struct iso_operands {
    struct iso_operand v[ISO_OPERANDS];
    unsigned count;
    struct iso_random random;
    float equal; /* state of the fills */
    float last;
    size_t filled;      /* elements of the row */
    size_t cols;        /* of the row; 0: not known */
    size_t spot, drawn; /* iso_case.spot, and the elements of the case so far */
    char *pool;         /* memory of the case */
    size_t pool_used, pool_bytes;
    void *overflow; /* list of blocks that did not fit */
};

/*
 * Declared by setup in the order in which `call` numbers them. The pointer is the host copy; for
 * iso_in the gaps of ld hold NaN and the elements are for the suite to fill. Zero-sized operands
 * are not NULL in the call, but touching them faults.
 */
void *iso_in(struct iso_operands *o, const char *name, size_t element, size_t rows, size_t cols,
             size_t ld);
float *iso_in_f32(struct iso_operands *o, const char *name, size_t rows, size_t cols, size_t ld,
                  unsigned fill);
void *iso_out(struct iso_operands *o, const char *name, size_t rows, size_t cols, size_t ld);
float *iso_inout_f32(struct iso_operands *o, const char *name, size_t rows, size_t cols, size_t ld,
                     unsigned fill);
void iso_scratch(struct iso_operands *o, const char *name, size_t floats);
void iso_absent(struct iso_operands *o, const char *name);

/* Fills rows x cols; may be called again with another fill. */
void iso_fill(struct iso_operands *o, float *to, size_t rows, size_t cols, size_t ld,
              unsigned fill);
float iso_fill_value(struct iso_operands *o, unsigned fill);

/* Arrays for expectations, made on demand; freed with the case. */
void *iso_operands_alloc(struct iso_operands *o, size_t bytes);
double *iso_expect(struct iso_operands *o, unsigned index);
double *iso_bound(struct iso_operands *o, unsigned index);
float *iso_exact(struct iso_operands *o, unsigned index);

void iso_operands_begin(struct iso_operands *o, uint64_t seed);
void iso_operands_end(struct iso_operands *o);
/* Places the operands in their host copies, aligned to 64 bytes: for benchmarks. */
void iso_operands_plain(struct iso_operands *o);

#define ISO_AT(type, o, index) ((type *)(o)->v[index].at)
#define ISO_HOST(type, o, index) ((type *)(o)->v[index].host)

/* --------------------------------------------------------------------------------- the suite */

enum { ISO_CASE_PARAMS = 12 };

enum iso_case_flags {
    ISO_CASE_GOLDEN = 1,   /* its results enter the hash that is committed; runs in every plan */
    ISO_CASE_ALIGN = 2,    /* runs at all 64 alignments */
    ISO_CASE_ONCE = 4,     /* runs in one place only: long sweeps */
    ISO_CASE_TRAPLESS = 8, /* must not raise invalid, divide by zero or overflow */
    ISO_CASE_NO_BITS = 16  /* results may differ between instruction sets */
};

struct iso_case {
    size_t p[ISO_CASE_PARAMS]; /* what they mean is the suite's affair; iso_suite.params */
    unsigned fill, flags;
    size_t spot; /* which element the fill singles out; 0 with most fills */
    uint64_t seed;
};

enum iso_plan { ISO_PLAN_QUICK, ISO_PLAN_FULL, ISO_PLAN_EXHAUSTIVE, ISO_PLAN_BENCH };

struct iso_cases {
    struct iso_case *v;
    size_t count, room;
    enum iso_plan plan;
};
/* Appends a case. A case that is neither golden nor of the plan's share is dropped: in the quick
 * plan one in `thin` stays. */
void iso_cases_add(struct iso_cases *list, struct iso_case c, unsigned thin);

struct iso_suite {
    const char *kernel;
    const char *params; /* "m n k ldc", for reports */
    void (*cases)(struct iso_cases *list);
    void (*setup)(struct iso_operands *o, const struct iso_case *c);
    void (*call)(const struct iso_kernels *t, const struct iso_case *c,
                 const struct iso_operands *o);
    /* Sets expect, bound and exact of the outputs from the host copies. */
    void (*reference)(struct iso_operands *o, const struct iso_case *c);
    /* Anything else that should hold of the results (at `at`): NULL, or what is wrong. */
    const char *(*check)(const struct iso_operands *o, const struct iso_case *c);
    /* The name of the group whose errors a case is counted with (struct iso_errors): a constant.
     * NULL: the class of its fill. */
    const char *(*group)(const struct iso_case *c);
    /* A case of the random stream: parameters, fill and flags. NULL: there are none. */
    void (*random)(struct iso_case *c, struct iso_random *r);
    /* Work of one call: operations, and bytes that must move; NULL or 0 when it makes no sense. */
    double (*flops)(const struct iso_kernels *t, const struct iso_case *c);
    double (*bytes)(const struct iso_case *c);
};

/* All suites, in the order of kernels.def. */
extern const struct iso_suite *const iso_suites[];
extern const size_t iso_suite_count;
void iso_suite_cases(const struct iso_suite *suite, struct iso_cases *list, enum iso_plan plan);
const struct iso_suite *iso_suite_named(const char *kernel); /* or NULL */
/* "m=3 n=17 ... fill=uniform" */
void iso_case_text(char *text, size_t bytes, const struct iso_suite *suite,
                   const struct iso_case *c);

/* ---------------------------------------------------------------------- the instruction sets */

struct iso_set {
    const char *name;
    const struct iso_kernels *table;
    const char *missing; /* NULL: runs here */
};
/* The rows of isas.def; returns how many. */
size_t iso_sets(const struct iso_set **sets);

/* --------------------------------------------------------------------------------- the runner */

/*
 * The errors of a group of cases: of all elements whose true value is known and that need not be
 * exact. An error is counted in units of its bound. A kernel may stay within its bounds everywhere
 * and yet be worse than it should be; that shows here, and only here.
 */
struct iso_errors {
    const char *name;
    size_t elements;
    double rms;   /* root of the mean square */
    double q999;  /* 99.9 % are not larger */
    double bias;  /* mean of |result| - |true value| */
    double worst; /* largest, and in ULP */
    double ulp;
};
enum { ISO_GROUPS = 16 };

/* What became of one suite on one instruction set. */
struct iso_tally {
    size_t cases, calls, failures;
    double worst;  /* error, in units of the bound */
    double ulp;    /* in ULP of the true value, where the bound is a matter of ULP */
    size_t stack;  /* most bytes of a call; 0 when that is not measured */
    void *hash;    /* while it runs */
    size_t hashed; /* cases in it */
    uint64_t bits; /* the hash */
    double seconds;
    struct iso_errors groups[ISO_GROUPS];
    size_t group_count;
    void *sums; /* of the groups, while it runs */
};
void iso_tally_begin(struct iso_tally *t);
void iso_tally_end(struct iso_tally *t);

struct iso_failure {
    const struct iso_suite *suite;
    const struct iso_case *c; /* NULL: about all of them, as a hash */
    const struct iso_set *set;
    const char *place; /* right, left, or elements past a page */
    size_t offset;     /* that the third place of the case had */
    const char *reason;
};

/* A call that has been judged: told to whoever records or compares results. */
struct iso_observation {
    const struct iso_suite *suite;
    const struct iso_case *c;
    const struct iso_set *set;
    const struct iso_operands *operands; /* outputs are at `at` */
    size_t place;                        /* 0: the first call of the case on this set */
    size_t offset;
    bool first; /* no set ran the case before */
    bool bits;  /* all sets promise the same bits */
    bool wrong;
};

struct iso_run {
    enum iso_plan plan;
    const char *kernel;    /* NULL: all */
    const char *only_case; /* NULL: all; else a decimal number */
    const struct iso_set *sets;
    size_t set_count;
    const char *golden; /* file to compare with, or NULL */
    const char *update; /* file to write, or NULL */
    const char *errors; /* file with the errors that groups may have, or NULL */
    const char *update_errors;
    size_t part, parts; /* parts > 1: only the cases whose number is `part` modulo `parts` */
    bool where;         /* only the cases with this value of this parameter */
    size_t where_index, where_value;
    unsigned case_seconds; /* a call that takes longer has failed */
    uint64_t seed;         /* of the random stream */
    size_t iters;          /* its cases; 0: until the time is over */
    double time_box;       /* seconds since iso_run_init; 0: no limit */
    bool timing;
    bool stop; /* at the first failure */
    /* called at once for each failure (count: those of this kernel on this set), and for each
     * kernel and set when it is done; may be NULL */
    void (*failed)(struct iso_run *run, const struct iso_failure *f, size_t count);
    void (*row)(struct iso_run *run, const struct iso_suite *suite, const struct iso_set *set,
                const struct iso_tally *t, bool random);
    void *user;
    /* called for each call; may be NULL */
    void (*observe)(void *observer, const struct iso_observation *seen);
    void *observer;
    /* results */
    double start;
    size_t failures;
    char first_failure[512];
};
void iso_run_init(struct iso_run *run);
/* Runs one suite, or all of them, and adds up the failures. */
void iso_run_suite(struct iso_run *run, const struct iso_suite *suite);
void iso_run_all(struct iso_run *run);
/* The random stream: each kernel in turn. */
void iso_run_random(struct iso_run *run);
/* One case on all sets; tallies [set_count], begun by the caller. */
void iso_run_case(struct iso_run *run, const struct iso_suite *suite, const struct iso_case *c,
                  size_t offset, struct iso_tally *tallies);
enum { ISO_REPLAY_TEXT = 900 };
/* "gemv isa=avx2 at=right n=19 ... fill=uniform kind=8 seed=0x12 offset=13": all that a case
 * consists of (kind is iso_case.flags). isa and at are for the reader: a replay runs all sets and
 * places, since bits are compared. */
void iso_replay_text(char *line, size_t bytes, const struct iso_failure *f);
double iso_run_seconds(const struct iso_run *run);
/* True when guard pages on the right are used for scalar only: see guard.h. */
bool iso_guards_are_shy(void);

#endif
