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
    ISO_FILL_COUNT
};
/* True when all values and what a kernel makes of them are finite and far from overflow. */
bool iso_fill_is_finite(unsigned fill);
const char *iso_fill_name(unsigned fill);

/* ------------------------------------------------------------------------------ the operands */

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
    size_t filled;
    char *pool; /* memory of the case */
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
    /* Work of one call: operations, and bytes that must move; NULL or 0 when it makes no sense. */
    double (*flops)(const struct iso_kernels *t, const struct iso_case *c);
    double (*bytes)(const struct iso_case *c);
};

/* All suites, in the order of kernels.def. */
extern const struct iso_suite *const iso_suites[];
extern const size_t iso_suite_count;
void iso_suite_cases(const struct iso_suite *suite, struct iso_cases *list, enum iso_plan plan);
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

struct iso_run {
    enum iso_plan plan;
    const char *kernel;    /* NULL: all */
    const char *only_case; /* NULL: all; else a decimal number */
    const struct iso_set *sets;
    size_t set_count;
    const char *golden;    /* file to compare with, or NULL */
    const char *update;    /* file to write, or NULL */
    unsigned case_seconds; /* a call that takes longer has failed */
    unsigned max_reports;  /* lines per kernel and instruction set */
    FILE *out;             /* NULL: silent (self-test) */
    bool timing;
    bool stop; /* at the first failure */
    /* results */
    size_t failures;
    char first_failure[512];
};
void iso_run_init(struct iso_run *run);
/* Runs one suite and adds up the failures. */
void iso_run_suite(struct iso_run *run, const struct iso_suite *suite);
void iso_run_all(struct iso_run *run);

#endif
