/* SPDX-License-Identifier: MIT
 *
 * The harness of isobit for kernels of one's own: `isobit check --plugin FILE.so` (docs/check.md).
 *
 * A target is what is checked: variants of the same functions, such as one for each instruction
 * set, and suites. A suite is data about one operation: its cases, how a case's operands are made,
 * how the function is called on them, and what should come out. The harness owns everything else:
 * memory with guard pages, alignment, the calling convention, comparing, hashing, reporting.
 * Suites of usual operations come with the library (struct iso_check_operations); a suite of one's
 * own needs three functions: setup, call and reference. isobit's kernels are checked by this very
 * interface.
 *
 * Nothing here may be called by two threads at once. Where memory runs out, the program ends with
 * a line on stderr and exit code 2. Matrices are row-major, strides count elements.
 */
#ifndef ISOBIT_CHECK_H
#define ISOBIT_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <isobit/isobit.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this header; it is raised when a plug-in that was built with an older one cannot be used. */
#define ISO_CHECK_VERSION 1

/* ------------------------------------------------------------------------------- the numbers */

/*
 * Inputs come from integers by exact scaling, so that they are the same on every machine and no
 * libm has a say in them.
 */
struct iso_check_random {
    uint64_t state;
};
ISOBIT_API uint64_t iso_check_random_next(struct iso_check_random *r);
ISOBIT_API size_t iso_check_random_below(struct iso_check_random *r, size_t n); /* n >= 1 */
/* 0 .. max, all numbers of digits alike; and what a row may have beside its elements. */
ISOBIT_API size_t iso_check_random_log(struct iso_check_random *r, size_t max);
ISOBIT_API size_t iso_check_random_gap(struct iso_check_random *r);

enum iso_check_fill {
    ISO_CHECK_FILL_UNIFORM = 0, /* [-1, 1] in steps of 2^-23 */
    ISO_CHECK_FILL_INTEGER,     /* -8 .. 8: sums of products below 2^24 are exact */
    ISO_CHECK_FILL_WIDE,        /* both signs, exponents -20 .. 20 */
    ISO_CHECK_FILL_NORMAL,      /* sums of twelve uniform numbers, up to 6 */
    ISO_CHECK_FILL_TINY,        /* subnormal and just above */
    ISO_CHECK_FILL_HUGE,        /* near the largest float: sums overflow */
    ISO_CHECK_FILL_CANCEL,      /* pairs x, -x(1 + 2^-20) */
    ISO_CHECK_FILL_EQUAL,       /* one value for everything */
    ISO_CHECK_FILL_OFFSET,      /* 1e6 and a little */
    ISO_CHECK_FILL_RISING,      /* each above the one before it */
    ISO_CHECK_FILL_FALLING,
    ISO_CHECK_FILL_SCORES,    /* -100 .. 20, where exp goes through its whole range */
    ISO_CHECK_FILL_ZERO,      /* +0 and -0 */
    ISO_CHECK_FILL_SPECIAL,   /* uniform, with a NaN, an infinity or a -0 here and there */
    ISO_CHECK_FILL_MINUS_INF, /* uniform, with many -Inf */
    ISO_CHECK_FILL_BITS,      /* any of the 2^32 patterns */
    ISO_CHECK_FILL_COUNT,
    /* not among those that golden cases run through: */
    ISO_CHECK_FILL_SMALL =
        ISO_CHECK_FILL_COUNT, /* exponents -74 .. -67: sums of products are subnormal */
    ISO_CHECK_FILL_ONES,
    ISO_CHECK_FILL_ALTERNATE,   /* 1, -1, 1 ... */
    ISO_CHECK_FILL_EXPONENTS,   /* both signs, exponents -126 .. 127 */
    ISO_CHECK_FILL_POWERS,      /* powers of two, exponents -20 .. 20 */
    ISO_CHECK_FILL_OPPOSITE,    /* pairs x, -x + 2^-20 or less; in a product, along k */
    ISO_CHECK_FILL_SPIKE_FIRST, /* a row's first element is 2^20 times the others */
    ISO_CHECK_FILL_SPIKE_LAST,
    ISO_CHECK_FILL_PLATEAU, /* 1024 and normal numbers times 2^-10 */
    ISO_CHECK_FILL_EDGE,    /* where exp overflows, turns subnormal and is 0, a few ULP around */
    ISO_CHECK_FILL_LADDER,  /* 0, -1, ... -104, and again: exp goes down all steps */
    ISO_CHECK_FILL_STEEP,   /* each 90 above the one before: what went before counts for nothing */
    ISO_CHECK_FILL_MINUS_ZERO, /* -0 */
    ISO_CHECK_FILL_ALL_MINUS_INF,
    /* these single out one element, iso_check_case.spot: of the row ... */
    ISO_CHECK_FILL_TOP_AT,   /* 50 above the others */
    ISO_CHECK_FILL_ALONE_AT, /* all others are -Inf */
    /* ... or of all elements of the case, in the order in which they are filled */
    ISO_CHECK_FILL_NAN_AT,
    ISO_CHECK_FILL_INF_AT,
    ISO_CHECK_FILL_MINUS_INF_AT,
    ISO_CHECK_FILL_ALL
};
/* True when all values and what a kernel makes of them are finite and far from overflow. */
ISOBIT_API bool iso_check_fill_is_finite(unsigned fill);
/* True when sums of products may overflow on the way to a finite result. */
ISOBIT_API bool iso_check_fill_may_overflow(unsigned fill);
ISOBIT_API bool iso_check_fill_has_spot(unsigned fill);
ISOBIT_API const char *iso_check_fill_name(unsigned fill);
/* What fills have in common: "plain", "spread", "cancel", "scores", "special". */
ISOBIT_API const char *iso_check_fill_class(unsigned fill);

/* ------------------------------------------------------------------------------ the operands */

/* What outputs hold before the call. No kernel makes this NaN by itself, so where it still stands
 * nothing was written. */
#define ISO_CHECK_CANARY_BITS UINT32_C(0xffe5c3a1)

enum iso_check_role { ISO_CHECK_IN, ISO_CHECK_OUT, ISO_CHECK_INOUT, ISO_CHECK_SCRATCH };

struct iso_check_operand {
    const char *name;
    enum iso_check_role role;
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

enum { ISO_CHECK_OPERANDS = 12 };

struct iso_check_operands {
    struct iso_check_operand v[ISO_CHECK_OPERANDS];
    unsigned count;
    struct iso_check_random random;
    float equal; /* state of the fills */
    float last;
    size_t filled;      /* elements of the row */
    size_t cols;        /* of the row; 0: not known */
    size_t spot, drawn; /* iso_check_case.spot, and the elements of the case so far */
    char *pool;         /* memory of the case */
    size_t pool_used, pool_bytes;
    void *overflow; /* list of blocks that did not fit */
};

/*
 * Declared by setup in the order in which `call` numbers them. The pointer is the host copy; for
 * iso_check_in the gaps of ld hold NaN and the elements are for the suite to fill. Zero-sized
 * operands are not NULL in the call, but touching them faults.
 */
ISOBIT_API void *iso_check_in(struct iso_check_operands *o, const char *name, size_t element,
                              size_t rows, size_t cols, size_t ld);
ISOBIT_API float *iso_check_in_f32(struct iso_check_operands *o, const char *name, size_t rows,
                                   size_t cols, size_t ld, unsigned fill);
ISOBIT_API void *iso_check_out(struct iso_check_operands *o, const char *name, size_t rows,
                               size_t cols, size_t ld);
ISOBIT_API float *iso_check_inout_f32(struct iso_check_operands *o, const char *name, size_t rows,
                                      size_t cols, size_t ld, unsigned fill);
ISOBIT_API void iso_check_scratch(struct iso_check_operands *o, const char *name, size_t floats);
ISOBIT_API void iso_check_absent(struct iso_check_operands *o, const char *name);

/* Fills rows x cols; may be called again with another fill. */
ISOBIT_API void iso_check_fill(struct iso_check_operands *o, float *to, size_t rows, size_t cols,
                               size_t ld, unsigned fill);
ISOBIT_API float iso_check_fill_value(struct iso_check_operands *o, unsigned fill);

/* Arrays for expectations, made on demand; freed with the case. */
ISOBIT_API void *iso_check_operands_alloc(struct iso_check_operands *o, size_t bytes);
ISOBIT_API double *iso_check_expect(struct iso_check_operands *o, unsigned index);
ISOBIT_API double *iso_check_bound(struct iso_check_operands *o, unsigned index);
ISOBIT_API float *iso_check_exact(struct iso_check_operands *o, unsigned index);

ISOBIT_API void iso_check_operands_begin(struct iso_check_operands *o, uint64_t seed);
ISOBIT_API void iso_check_operands_end(struct iso_check_operands *o);
/* Places the operands in their host copies, aligned to 64 bytes: for benchmarks. */
ISOBIT_API void iso_check_operands_plain(struct iso_check_operands *o);

#define ISO_CHECK_AT(type, o, index) ((type *)(o)->v[index].at)
#define ISO_CHECK_HOST(type, o, index) ((type *)(o)->v[index].host)

/* --------------------------------------------------------------------------------- the suite */

enum { ISO_CHECK_CASE_PARAMS = 12 };

enum iso_check_case_flags {
    ISO_CHECK_CASE_GOLDEN =
        1,                    /* its results enter the hash that is committed; runs in every plan */
    ISO_CHECK_CASE_ALIGN = 2, /* runs at all 64 alignments */
    ISO_CHECK_CASE_ONCE = 4,  /* runs in one place only: long sweeps */
    ISO_CHECK_CASE_TRAPLESS = 8, /* must not raise invalid, divide by zero or overflow */
    ISO_CHECK_CASE_NO_BITS = 16  /* results may differ between instruction sets */
};

struct iso_check_case {
    size_t
        p[ISO_CHECK_CASE_PARAMS]; /* what they mean is the suite's affair; iso_check_suite.params */
    unsigned fill, flags;
    size_t spot; /* which element the fill singles out; 0 with most fills */
    uint64_t seed;
};

enum iso_check_plan {
    ISO_CHECK_PLAN_QUICK,
    ISO_CHECK_PLAN_FULL,
    ISO_CHECK_PLAN_EXHAUSTIVE,
    ISO_CHECK_PLAN_BENCH
};

struct iso_check_cases {
    struct iso_check_case *v;
    size_t count, room;
    enum iso_check_plan plan;
};
/* Appends a case. A case that is neither golden nor of the plan's share is dropped: in the quick
 * plan one in `thin` stays. */
ISOBIT_API void iso_check_cases_add(struct iso_check_cases *list, struct iso_check_case c,
                                    unsigned thin);

struct iso_check_suite {
    const char *name;   /* of the operation; where the target has a function of this name, variants
                         * in whose table it is NULL are skipped */
    const char *params; /* "m n k ldc", for reports */
    void (*cases)(struct iso_check_cases *list);
    void (*setup)(struct iso_check_operands *o, const struct iso_check_case *c);
    void (*call)(const void *table, const struct iso_check_case *c,
                 const struct iso_check_operands *o);
    /* Sets expect, bound and exact of the outputs from the host copies. */
    void (*reference)(struct iso_check_operands *o, const struct iso_check_case *c);
    /* Anything else that should hold of the results (at `at`): NULL, or what is wrong. */
    const char *(*check)(const struct iso_check_operands *o, const struct iso_check_case *c);
    /* The name of the group whose errors a case is counted with (struct iso_check_errors): a
     * constant. NULL: the class of its fill. */
    const char *(*group)(const struct iso_check_case *c);
    /* A case of the random stream: parameters, fill and flags. NULL: there are none. */
    void (*random)(struct iso_check_case *c, struct iso_check_random *r);
    /* Work of one call: operations, and bytes that must move; NULL or 0 when it makes no sense. */
    double (*flops)(const void *table, const struct iso_check_case *c);
    double (*bytes)(const struct iso_check_case *c);
};

ISOBIT_API void iso_check_suite_cases(const struct iso_check_suite *suite,
                                      struct iso_check_cases *list, enum iso_check_plan plan);
/* "m=3 n=17 ... fill=uniform" */
ISOBIT_API void iso_check_case_text(char *text, size_t bytes, const struct iso_check_suite *suite,
                                    const struct iso_check_case *c);

/* -------------------------------------------------------------------------------- the target */

/* A function of the tables: "(float *y, const float *x, size_t n)", and where the pointer lies in
 * a table. Argument types: pointers, float, double, int, int32_t, uint32_t, size_t and such. */
struct iso_check_function {
    const char *name, *arguments;
    size_t offset;
};
#define ISO_CHECK_FUNCTION(type, member, arguments)                                                \
    { #member, arguments, offsetof(type, member) }

struct iso_check_variant {
    const char *name;
    const void *table;   /* a struct whose function pointers the target lists */
    const char *missing; /* why it cannot run here; NULL: it can */
};

struct iso_check_target {
    size_t size;      /* sizeof(struct iso_check_target) */
    unsigned version; /* ISO_CHECK_VERSION */
    const char *name;
    const struct iso_check_variant *variants;
    size_t variant_count;
    const struct iso_check_suite *const *suites;
    size_t suite_count;
    const struct iso_check_function *functions;
    size_t function_count;
    size_t table_bytes; /* of each variant's table */
};

#ifdef __cplusplus
}
#endif

#endif
